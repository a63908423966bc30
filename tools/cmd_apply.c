/*
 * tools/cmd_apply.c -- stele apply: JSON lines as one batch, or as several.
 *
 * 1. Read all of the input.
 * 2. Go through all lines, batch by batch, without committing: a malformed line
 *    or a batch that is too large ends it here, with nothing applied.
 * 3. Open the store and commit. One batch is still in memory from step 2;
 *    several are made again, one after the other.
 */
#include <inttypes.h>
#include <stdio.h>

#include "base/error.h"
#include "engine/stele.h"
#include "tools/apply_line.h"
#include "tools/commands.h"
#include "tools/input.h"
#include "tools/lines.h"
#include "tools/options.h"
#include "tools/output.h"
#include "tools/progress.h"
#include "tools/report.h"
#include "tools/store.h"

/* What a segment holds besides the largest batch (stele.h, Limits). */
enum { SEGMENT_MARGIN_BYTES = 8 * 1024 };

struct apply_run {
    const char *input_name;
    struct input input;
    uint64_t lines_total;
    uint64_t batch_ops;       /* Operations in a batch. */
    uint64_t value_bytes_max; /* Of one value. */
    struct stele_batch *batch;
    struct output_mode mode;

    /* What step 2 found. */
    uint64_t batch_count;
    uint64_t largest_bytes;
    uint64_t largest_line_last;
};

/* Add lines until the batch is full or the input ends. */
static enum stele_status fill_batch(struct apply_run *run, struct lines *lines,
                                    struct stele_error *error)
{
    struct line line;

    while (stele_batch_ops(run->batch) < run->batch_ops &&
           lines_next(lines, &line)) {
        const enum stele_status status = apply_line(
            run->batch, line.data, line.bytes, run->value_bytes_max, error);

        if (status != STELE_OK) {
            return error_wrap(error, status, "%s: line %" PRIu64,
                              run->input_name, lines->number);
        }
        progress_count("line", lines->number, run->lines_total);
    }
    return STELE_OK;
}

static enum stele_status check_lines(struct apply_run *run,
                                     struct stele_error *error)
{
    struct lines lines = lines_init(run->input.data, run->input.bytes);

    if (run->input.bytes == 0) {
        return error_set(error, STELE_INVALID,
                         "%s: empty, so there is nothing to apply",
                         run->input_name);
    }
    while (lines.rest_bytes > 0) {
        enum stele_status status;

        stele_batch_clear(run->batch);
        status = fill_batch(run, &lines, error);
        if (status != STELE_OK) {
            return status;
        }
        run->batch_count += 1;
        if (stele_batch_bytes(run->batch) > run->largest_bytes) {
            run->largest_bytes = stele_batch_bytes(run->batch);
            run->largest_line_last = lines.number;
        }
    }
    return STELE_OK;
}

/* Refuse a batch that cannot be committed before the first one is. */
static int check_batch_bytes(struct stele *store, const struct apply_run *run)
{
    struct stele_stats stats = {.size = sizeof stats};
    struct stele_error error = {0};
    const enum stele_status status = stele_stats(store, &stats, &error);
    const uint64_t bytes_max = stats.segment_bytes - SEGMENT_MARGIN_BYTES;

    if (status != STELE_OK) {
        return report_error(status, &error);
    }
    if (run->largest_bytes > bytes_max) {
        report_problem("%s: the batch that ends at line %" PRIu64
                       " has %" PRIu64 " bytes, this store takes %" PRIu64
                       " (--batch-size makes smaller ones)",
                       run->input_name, run->largest_line_last,
                       run->largest_bytes, bytes_max);
        return EXIT_USAGE;
    }
    return EXIT_DONE;
}

static int commit_again(struct stele *store, struct apply_run *run)
{
    struct lines lines = lines_init(run->input.data, run->input.bytes);
    int code = EXIT_DONE;

    while (code == EXIT_DONE && lines.rest_bytes > 0) {
        struct stele_error error = {0};
        enum stele_status status;

        stele_batch_clear(run->batch);
        status = fill_batch(run, &lines, &error);
        code = status == STELE_OK ? store_commit(store, run->batch, &run->mode)
                                  : report_error(status, &error);
    }
    return code;
}

static int commit(const char *path, struct apply_run *run)
{
    struct stele *store = NULL;
    int code = store_open_writing(path, &store);

    if (code == EXIT_DONE) {
        code = check_batch_bytes(store, run);
    }
    if (code == EXIT_DONE) {
        code = run->batch_count == 1
                   ? store_commit(store, run->batch, &run->mode)
                   : commit_again(store, run);
    }
    return store_close(store, code);
}

static enum stele_status prepare(struct apply_run *run, const char *path,
                                 struct stele_error *error)
{
    struct lines lines;
    enum stele_status status = input_read(path, &run->input, error);

    if (status != STELE_OK) {
        /* A file that is missing is not a key that is missing. */
        return status == STELE_NOT_FOUND ? STELE_IO : status;
    }
    run->input_name = input_name(path);
    lines = lines_init(run->input.data, run->input.bytes);
    run->lines_total = lines_count(&lines);
    status = stele_batch_create(&run->batch, error);
    return status == STELE_OK ? check_lines(run, error) : status;
}

int cmd_apply(int argc, char **argv)
{
    struct stele_options defaults;
    struct apply_run run = {.batch_ops = UINT64_MAX};
    const struct option_spec specs[] = {
        {"batch-size", OPTION_NUMBER, .number = &run.batch_ops},
        {"json", OPTION_FLAG, .flag = &run.mode.json},
    };
    struct arguments arguments;
    struct stele_error error = {0};
    enum stele_status status;
    int code;

    stele_options_init(&defaults);
    run.value_bytes_max = defaults.value_bytes_max;
    code = options_parse(argc, argv, specs, sizeof specs / sizeof specs[0], 2,
                         2, &arguments);
    if (code != EXIT_DONE) {
        return code;
    }
    status = prepare(&run, arguments.items[1], &error);
    code = status == STELE_OK ? commit(arguments.items[0], &run)
                              : report_error(status, &error);
    stele_batch_destroy(run.batch);
    input_free(&run.input);
    return code;
}
