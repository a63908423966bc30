/* tools/cmd_tables.c -- stele tables: every table and its count. */
#include <inttypes.h>
#include <stdio.h>

#include "engine/stele.h"
#include "tools/commands.h"
#include "tools/options.h"
#include "tools/output.h"
#include "tools/report.h"
#include "tools/store.h"

static enum stele_status print_table(void *context, struct stele_view *view,
                                     const char *table,
                                     struct stele_error *error)
{
    const struct output_mode *mode = context;
    uint64_t count;
    uint64_t lsn;
    enum stele_status status = stele_table_count(view, table, &count, error);

    if (status == STELE_OK) {
        status = stele_table_lsn(view, table, &lsn, error);
    }
    if (status != STELE_OK) {
        return status;
    }
    if (mode->json) {
        printf("{\"table\":\"%s\",\"count\":%" PRIu64 ",\"lsn\":%" PRIu64 "}\n",
               table, count, lsn);
    } else {
        printf("%s\t%" PRIu64 "\t%" PRIu64 "\n", table, count, lsn);
    }
    return STELE_OK;
}

static int print_tables(struct stele_view *view, struct output_mode *mode)
{
    struct stele_error error = {0};
    const enum stele_status status =
        store_for_each_table(view, print_table, mode, &error);

    return status == STELE_OK ? EXIT_DONE : report_error(status, &error);
}

int cmd_tables(int argc, char **argv)
{
    struct output_mode mode = {0};
    uint64_t at = STORE_LSN_NEWEST;
    const struct option_spec specs[] = {
        {"at", OPTION_LSN, .number = &at},
        {"json", OPTION_FLAG, .flag = &mode.json},
    };
    struct arguments arguments;
    struct stele *store = NULL;
    struct stele_view *view = NULL;
    int code;

    code = options_parse(argc, argv, specs, sizeof specs / sizeof specs[0], 1,
                         1, &arguments);
    if (code != EXIT_DONE) {
        return code;
    }
    code = store_open_view(arguments.items[0], at, &store, &view);
    if (code != EXIT_DONE) {
        return code;
    }
    return store_close_view(store, view, print_tables(view, &mode));
}
