/* tools/cmd_get.c -- stele get: print the value of a key. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "engine/stele.h"
#include "tools/commands.h"
#include "tools/key_argument.h"
#include "tools/options.h"
#include "tools/output.h"
#include "tools/report.h"
#include "tools/store.h"

struct get_request {
    char *table;
    struct bytes key;
    struct output_mode mode;
    bool raw;
    uint64_t at; /* LSN. */
};

static void print_value(const struct get_request *request,
                        const struct stele_value *value)
{
    const struct output_mode *mode = &request->mode;
    const struct bytes data = {.data = value->data, .size = value->bytes};

    if (request->raw) {
        fwrite(data.data, 1, data.size, stdout);
        return;
    }
    if (!mode->json) {
        output_bytes(stdout, mode, data);
        putchar('\n');
        return;
    }
    printf("{\"table\":\"%s\",", request->table);
    output_json_bytes(stdout, mode, "key", request->key);
    putchar(',');
    output_json_bytes(stdout, mode, "value", data);
    printf(",\"lsn\":%" PRIu64 "}\n", value->lsn);
}

static int print_found(const char *path, const struct get_request *request)
{
    struct stele *store = NULL;
    struct stele_view *view = NULL;
    struct stele_value value;
    struct stele_error error = {0};
    enum stele_status status;
    int code = store_open_view(path, request->at, &store, &view);

    if (code != EXIT_DONE) {
        return code;
    }
    status = stele_view_get(view, request->table, request->key.data,
                            request->key.size, &value, &error);
    if (status == STELE_OK) {
        print_value(request, &value);
    } else if (status == STELE_NOT_FOUND) {
        report_problem("%s: no such key", request->table);
        code = EXIT_NEGATIVE;
    } else {
        code = report_error(status, &error);
    }
    return store_close_view(store, view, code);
}

int cmd_get(int argc, char **argv)
{
    struct get_request request = {.at = STORE_LSN_NEWEST};
    const struct option_spec specs[] = {
        {"at", OPTION_LSN, .number = &request.at},
        {"raw", OPTION_FLAG, .flag = &request.raw},
        {"hex", OPTION_FLAG, .flag = &request.mode.hex},
        {"json", OPTION_FLAG, .flag = &request.mode.json},
    };
    struct arguments arguments;
    struct stele_error error = {0};
    enum stele_status status;
    int code;

    code = options_parse(argc, argv, specs, sizeof specs / sizeof specs[0], 3,
                         3, &arguments);
    if (code != EXIT_DONE) {
        return code;
    }
    if (request.raw && request.mode.json) {
        return report_usage("--raw and --json exclude each other");
    }
    request.table = arguments.items[1];
    status =
        key_argument(arguments.items[2], &request.mode, &request.key, &error);
    if (status != STELE_OK) {
        return report_error(status, &error);
    }
    return print_found(arguments.items[0], &request);
}
