/* tools/cmd_init.c -- stele init: make an empty store. */
#include <stdio.h>
#include <string.h>

#include "engine/stele.h"
#include "tools/commands.h"
#include "tools/options.h"
#include "tools/output.h"
#include "tools/report.h"
#include "tools/store.h"

static int print_created(const char *path, struct stele *store,
                         const struct output_mode *mode)
{
    struct stele_stats stats = {.size = sizeof stats};
    struct stele_error error = {0};
    const enum stele_status status = stele_stats(store, &stats, &error);
    const struct bytes uuid = {.data = stats.uuid, .size = sizeof stats.uuid};

    if (status != STELE_OK) {
        return report_error(status, &error);
    }
    if (mode->json) {
        putchar('{');
        output_json_bytes(stdout, mode, "dir",
                          (struct bytes){.data = path, .size = strlen(path)});
        fputs(",\"uuid\":\"", stdout);
        output_hex(stdout, uuid);
        fputs("\"}\n", stdout);
    } else {
        printf("%s: made store ", path);
        output_hex(stdout, uuid);
        putchar('\n');
    }
    return EXIT_DONE;
}

int cmd_init(int argc, char **argv)
{
    struct output_mode mode = {0};
    struct stele_options options;
    struct arguments arguments;
    struct stele *store = NULL;
    struct stele_error error = {0};
    enum stele_status status;
    int code;

    stele_options_init(&options);
    options.mode = STELE_OPEN_CREATE_NEW;
    const struct option_spec specs[] = {
        {"segment-bytes", OPTION_NUMBER, .number = &options.segment_bytes},
        {"json", OPTION_FLAG, .flag = &mode.json},
    };

    code = options_parse(argc, argv, specs, sizeof specs / sizeof specs[0], 1,
                         1, &arguments);
    if (code != EXIT_DONE) {
        return code;
    }
    status = stele_open(arguments.items[0], &options, &store, &error);
    if (status == STELE_EXISTS) {
        report_problem("%s: a store exists already", arguments.items[0]);
        return EXIT_NEGATIVE;
    }
    if (status == STELE_NOT_FOUND) {
        status = STELE_IO; /* The parent directory: not a missing key. */
    }
    if (status != STELE_OK) {
        return report_error(status, &error);
    }
    code = print_created(arguments.items[0], store, &mode);
    if (code == EXIT_DONE) {
        code = store_note_file_system(store);
    }
    return store_close(store, code);
}
