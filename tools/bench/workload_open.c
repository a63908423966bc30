/*
 * tools/bench/workload_open.c -- opening after a kill, and after a clean close.
 *
 * Two stores, with few items in the index and with many. In each round a child
 * opens each, commits the same tail, which stays out of the index, and is
 * killed. How long the next open takes must depend on the tail alone. Closing
 * brings the tail into the index; then opening has nothing to do.
 */
#include <stdlib.h>

#include "tools/bench/bench.h"
#include "tools/bench/reopen.h"
#include "tools/bench/store.h"
#include "tools/must/must.h"

enum { ITEMS_FEW = REOPEN_ITEMS_LEAST };

/* What an open may take. */
#define KILLED_US_MAX 250000.0
#define CLEAN_US_MAX  10000.0

struct opened {
    char *directory;
    const char *killed_series;
    const char *clean_series;
};

struct open_workload {
    struct opened few;
    struct opened many;
    uint64_t tail_records;
};

static void *open_start(const char *directory, const struct bench_size *size)
{
    struct open_workload *self = must_have(calloc(1, sizeof *self));

    self->tail_records = size->open_tail;
    self->few.directory = bench_store_load(directory, "few", ITEMS_FEW);
    self->many.directory =
        bench_store_load(directory, "many", size->open_items);
    self->few.killed_series = "open.killed_few";
    self->few.clean_series = "open.clean_few";
    self->many.killed_series = "open.killed_many";
    self->many.clean_series = "open.clean_many";
    return self;
}

static void round_of(const struct opened *opened, uint64_t tail_records,
                     struct stats *stats)
{
    reopen_leave_tail(opened->directory, tail_records);
    stats_add(stats, opened->killed_series,
              reopen_us(opened->directory, tail_records));
    stats_add(stats, opened->clean_series, reopen_us(opened->directory, 0));
}

static void open_round(void *workload, struct stats *stats)
{
    const struct open_workload *self = workload;

    round_of(&self->few, self->tail_records, stats);
    round_of(&self->many, self->tail_records, stats);
}

static void open_finish(void *workload)
{
    struct open_workload *self = workload;

    free(self->few.directory);
    free(self->many.directory);
    free(self);
}

static const struct bench_ratio ratios[] = {
    {"open after a kill, 1,000,000 items, over 1,000 items", "open.killed_many",
     "us", BENCH_AT_MOST, 1.25, .floor = "open.killed_few"},
    {"open after a kill, 63 MiB of log, 1,000,000 items, over 250 ms",
     "open.killed_many", "us", BENCH_AT_MOST, 1.0, .constant = KILLED_US_MAX},
    {"open after a clean close, 1,000,000 items, over 10 ms", "open.clean_many",
     "us", BENCH_AT_MOST, 1.0, .constant = CLEAN_US_MAX},
};

const struct bench_workload workload_open = {
    .name = "open",
    .ratios = ratios,
    .ratio_count = sizeof ratios / sizeof ratios[0],
    .start = open_start,
    .round = open_round,
    .finish = open_finish,
};
