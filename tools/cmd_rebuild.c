/*
 * tools/cmd_rebuild.c -- stele rebuild: build the index anew.
 *
 * What the index says of the log's end is evidence, so opening reads it even if it
 * is to be set aside. A child tries that first: if it dies of it, nothing of the
 * index is touched.
 */
#include <inttypes.h>
#include <stdio.h>

#include "engine/stele.h"
#include "tools/child.h"
#include "tools/commands.h"
#include "tools/options.h"
#include "tools/output.h"
#include "tools/progress.h"
#include "tools/report.h"
#include "tools/store.h"

struct sum {
    uint64_t tables;
    uint64_t keys;
};

static enum stele_status count_table(void *context, struct stele_view *view,
                                     const char *table,
                                     struct stele_error *error)
{
    struct sum *sum = context;
    uint64_t count;
    const enum stele_status status =
        stele_table_count(view, table, &count, error);

    if (status == STELE_OK) {
        sum->tables++;
        sum->keys += count;
    }
    return status;
}

static int print_what_was_done(struct stele *store,
                               const struct output_mode *mode)
{
    struct stele_error error = {0};
    struct stele_view *view = NULL;
    struct sum sum = {0};
    uint64_t lsn = 0;
    enum stele_status status = stele_checkpoint(store, &error);

    if (status == STELE_OK) {
        status = stele_view_open(store, &view, &error);
    }
    if (status == STELE_OK) {
        lsn = stele_view_lsn(view);
        status = store_for_each_table(view, count_table, &sum, &error);
        stele_view_close(view);
    }
    if (status != STELE_OK) {
        return report_error(status, &error);
    }
    if (mode->json) {
        printf("{\"keys\":%" PRIu64 ",\"tables\":%" PRIu64 ",\"lsn\":%" PRIu64
               "}\n",
               sum.keys, sum.tables, lsn);
    } else {
        printf("index rebuilt: %" PRIu64 " key%s in %" PRIu64
               " table%s, up to LSN %" PRIu64 "\n",
               sum.keys, sum.keys == 1 ? "" : "s", sum.tables,
               sum.tables == 1 ? "" : "s", lsn);
    }
    return EXIT_DONE;
}

/* A child_work: does it live through opening? */
static void try_opening(const void *context, void *answer)
{
    bool *lived = answer;
    struct stele_options options;
    struct stele_error ignored;
    struct stele *store = NULL;

    stele_options_init(&options);
    options.mode = STELE_OPEN_READ_ONLY;
    /* What a failure means, opening for writing will say. */
    if (stele_open(context, &options, &store, &ignored) == STELE_OK) {
        (void)store_close(store, EXIT_DONE);
    }
    *lived = true;
}

static int choose_options(const char *path, struct stele_options *options)
{
    struct child_outcome outcome;
    bool lived;

    stele_options_init(options);
    options->rebuild_index = true;
    options->progress = progress_of_store;
    outcome = child_run(try_opening, path, &lived, sizeof lived);
    if (outcome.end == CHILD_CRASHED) {
        report_note("index: opening it killed the process that tried (%s): it "
                    "is not read at all, and what it knew of the log's end is "
                    "left out",
                    child_signal_text(outcome.signal));
        options->ignore_index = true;
        return EXIT_DONE;
    }
    return outcome.end == CHILD_ANSWERED ? EXIT_DONE : child_report(&outcome);
}

int cmd_rebuild(int argc, char **argv)
{
    struct output_mode mode = {0};
    const struct option_spec specs[] = {
        {"json", OPTION_FLAG, .flag = &mode.json},
    };
    struct stele_options options;
    struct arguments arguments;
    struct stele *store = NULL;
    int code;

    code = options_parse(argc, argv, specs, sizeof specs / sizeof specs[0], 1,
                         1, &arguments);
    if (code == EXIT_DONE) {
        code = choose_options(arguments.items[0], &options);
    }
    if (code != EXIT_DONE) {
        return code;
    }
    progress_step("rebuilding", "the index");
    code = store_open_with(arguments.items[0], &options, &store);
    if (code == EXIT_DONE) {
        code = store_note_file_system(store);
    }
    if (code == EXIT_DONE) {
        code = print_what_was_done(store, &mode);
    }
    progress_end();
    return store_close(store, code);
}
