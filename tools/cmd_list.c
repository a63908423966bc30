/* tools/cmd_list.c -- stele list: keys and values in order. */
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

struct list_request {
    const char *table; /* NULL: all. */
    char *prefix_text;
    struct bytes prefix;
    bool values;
    uint64_t limit; /* Counts down. */
    uint64_t at;    /* LSN. */
    struct output_mode mode;
};

static void print_json(const struct list_request *request, const char *table,
                       const struct stele_entry *entry)
{
    printf("{\"table\":\"%s\",", table);
    output_json_bytes(stdout, &request->mode, "key",
                      (struct bytes){entry->key, entry->key_bytes});
    if (request->values) {
        putchar(',');
        output_json_bytes(
            stdout, &request->mode, "value",
            (struct bytes){entry->value.data, entry->value.bytes});
    }
    printf(",\"lsn\":%" PRIu64 "}\n", entry->value.lsn);
}

static void print_text(const struct list_request *request, const char *table,
                       const struct stele_entry *entry)
{
    if (request->table == NULL) {
        printf("%s\t", table);
    }
    output_bytes(stdout, &request->mode,
                 (struct bytes){entry->key, entry->key_bytes});
    if (request->values) {
        putchar('\t');
        output_bytes(stdout, &request->mode,
                     (struct bytes){entry->value.data, entry->value.bytes});
    }
    putchar('\n');
}

static enum stele_status list_table(void *context, struct stele_view *view,
                                    const char *table,
                                    struct stele_error *error)
{
    struct list_request *request = context;
    struct stele_cursor *cursor = NULL;
    struct stele_entry entry;
    enum stele_status status =
        stele_cursor_open(view, table, request->prefix.data,
                          request->prefix.size, &cursor, error);

    while (status == STELE_OK && request->limit > 0) {
        status = stele_cursor_next(cursor, &entry, error);
        if (status == STELE_OK) {
            request->limit -= 1;
            (request->mode.json ? print_json : print_text)(request, table,
                                                           &entry);
        }
    }
    stele_cursor_close(cursor);
    return status == STELE_NOT_FOUND ? STELE_OK : status;
}

static int list(struct stele_view *view, struct list_request *request)
{
    struct stele_error error = {0};
    uint64_t lsn = 0;
    enum stele_status status;

    if (request->table == NULL) {
        status = store_for_each_table(view, list_table, request, &error);
        return status == STELE_OK ? EXIT_DONE : report_error(status, &error);
    }
    status = stele_table_lsn(view, request->table, &lsn, &error);
    if (status == STELE_OK && lsn == 0) {
        report_problem("%s: no such table", request->table);
        return EXIT_NEGATIVE;
    }
    if (status == STELE_OK) {
        status = list_table(request, view, request->table, &error);
    }
    return status == STELE_OK ? EXIT_DONE : report_error(status, &error);
}

/* No prefix and an empty one are the same: every key begins with it. */
static enum stele_status take_prefix(struct list_request *request,
                                     struct stele_error *error)
{
    if (request->prefix_text == NULL || request->prefix_text[0] == '\0') {
        return STELE_OK;
    }
    return key_argument(request->prefix_text, &request->mode, &request->prefix,
                        error);
}

int cmd_list(int argc, char **argv)
{
    struct list_request request = {.limit = UINT64_MAX, .at = STORE_LSN_NEWEST};
    const struct option_spec specs[] = {
        {"prefix", OPTION_TEXT, .text = &request.prefix_text},
        {"values", OPTION_FLAG, .flag = &request.values},
        {"at", OPTION_LSN, .number = &request.at},
        {"limit", OPTION_NUMBER, .number = &request.limit},
        {"hex", OPTION_FLAG, .flag = &request.mode.hex},
        {"json", OPTION_FLAG, .flag = &request.mode.json},
    };
    struct arguments arguments;
    struct stele *store = NULL;
    struct stele_view *view = NULL;
    struct stele_error error = {0};
    enum stele_status status;
    int code;

    code = options_parse(argc, argv, specs, sizeof specs / sizeof specs[0], 1,
                         2, &arguments);
    if (code != EXIT_DONE) {
        return code;
    }
    request.table = arguments.count == 2 ? arguments.items[1] : NULL;
    status = take_prefix(&request, &error);
    if (status != STELE_OK) {
        return report_error(status, &error);
    }
    code = store_open_view(arguments.items[0], request.at, &store, &view);
    if (code != EXIT_DONE) {
        return code;
    }
    return store_close_view(store, view, list(view, &request));
}
