/* tools/cmd_snapshot.c -- stele snapshot: the whole state into one file. */
#include <inttypes.h>
#include <stdio.h>

#include "engine/stele.h"
#include "tools/commands.h"
#include "tools/options.h"
#include "tools/output.h"
#include "tools/progress.h"
#include "tools/report.h"
#include "tools/store.h"

static void print_snapshot(const struct stele_snapshot_info *info,
                           const struct output_mode *mode)
{
    if (mode->json) {
        printf("{\"lsn\":%" PRIu64 ",\"bytes\":%" PRIu64 ",\"keys\":%" PRIu64
               ",\"tables\":%" PRIu64 "}\n",
               info->lsn, info->bytes, info->keys, info->tables);
    } else {
        printf("lsn %" PRIu64 ", %" PRIu64 " keys in %" PRIu64
               " tables, %" PRIu64 " bytes\n",
               info->lsn, info->keys, info->tables, info->bytes);
    }
}

static int snapshot(struct stele *store, const struct output_mode *mode)
{
    struct stele_snapshot_info info = {0};
    struct stele_error error = {0};
    enum stele_status status;

    progress_step("taking", "a snapshot");
    status = stele_snapshot(store, &info.lsn, &error);
    progress_end();

    /* Of the empty state before the first batch none is needed. */
    if (status == STELE_OK && info.lsn > 0) {
        status = stele_snapshot_next(store, info.lsn - 1, &info, &error);
    }
    if (status != STELE_OK) {
        return report_error(status, &error);
    }
    print_snapshot(&info, mode);
    return EXIT_DONE;
}

int cmd_snapshot(int argc, char **argv)
{
    struct output_mode mode = {0};
    const struct option_spec specs[] = {
        {"json", OPTION_FLAG, .flag = &mode.json},
    };
    struct arguments arguments;
    struct stele *store = NULL;
    int code;

    code = options_parse(argc, argv, specs, sizeof specs / sizeof specs[0], 1,
                         1, &arguments);
    if (code == EXIT_DONE) {
        code = store_open_writing(arguments.items[0], &store);
    }
    return code == EXIT_DONE ? store_close(store, snapshot(store, &mode))
                             : code;
}
