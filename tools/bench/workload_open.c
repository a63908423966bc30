/*
 * tools/bench/workload_open.c -- opening after a kill, and after a clean close.
 *
 * Two stores, with few items in the index and with many. In each round a child
 * opens each, commits the same tail, which stays out of the index, and is
 * killed. How long the next open takes must depend on the tail alone. Closing
 * brings the tail into the index; then opening has nothing to do.
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tools/bench/bench.h"
#include "tools/bench/store.h"
#include "tools/must/must.h"

enum { ITEMS_FEW = 1000, DIRECTORY_BYTES = 4096 };

/* What an open may take. */
#define KILLED_US_MAX 250000.0
#define CLEAN_US_MAX  10000.0

struct opened {
    char directory[DIRECTORY_BYTES];
    const char *killed_series;
    const char *clean_series;
};

struct open_workload {
    struct opened few;
    struct opened many;
    uint64_t tail_records;
};

static void load(struct opened *opened, const char *parent, const char *name,
                 uint64_t items)
{
    struct stele *store;

    snprintf(opened->directory, sizeof opened->directory, "%s/%s", parent,
             name);
    if (mkdir(opened->directory, 0700) != 0) {
        die("%s: %s", opened->directory, strerror(errno));
    }
    store = bench_store_create(opened->directory);
    bench_store_put_items(store, NULL, items);
    bench_store_close(store);
}

static void *open_start(const char *directory, const struct bench_size *size)
{
    struct open_workload *self = must_have(calloc(1, sizeof *self));

    self->tail_records = size->open_tail;
    load(&self->few, directory, "few", ITEMS_FEW);
    load(&self->many, directory, "many", size->open_items);
    self->few.killed_series = "open.killed_few";
    self->few.clean_series = "open.clean_few";
    self->many.killed_series = "open.killed_many";
    self->many.clean_series = "open.clean_many";
    return self;
}

/* In a child: one record a commit, of items that are there, and dead. */
static void commit_and_die(const char *directory, uint64_t records)
{
    struct stele *store = bench_store_open(directory);
    struct stele_error error = {0};
    struct stele_batch *batch;

    must(stele_batch_create(&batch, &error), &error);
    for (uint64_t i = 0; i < records; i++) {
        char key[ITEM_KEY_BYTES + 1];

        item_key(key, i % ITEMS_FEW);
        stele_batch_clear(batch);
        must(stele_batch_put(batch, item_table, key, ITEM_KEY_BYTES, item_value,
                             ITEM_VALUE_BYTES, &error),
             &error);
        must(stele_commit(store, batch, STELE_RELAXED, NULL, &error), &error);
    }
    must(stele_sync(store, &error), &error);
    raise(SIGKILL);
}

static void leave_tail(const char *directory, uint64_t records)
{
    const pid_t pid = fork();
    int outcome = 0;

    if (pid < 0) {
        die("fork: %s", strerror(errno));
    }
    if (pid == 0) {
        commit_and_die(directory, records);
        _exit(1);
    }
    if (waitpid(pid, &outcome, 0) != pid || !WIFSIGNALED(outcome) ||
        WTERMSIG(outcome) != SIGKILL) {
        die("the process to be killed ended by itself");
    }
}

/* Open, check what was replayed, and close. */
static double open_us(const char *directory, uint64_t replayed)
{
    struct stele_stats stats = {.size = sizeof stats};
    struct stele_error error = {0};
    const uint64_t start_ns = clock_ns();
    struct stele *store = bench_store_open(directory);
    const double us = (double)(clock_ns() - start_ns) / 1e3;

    must(stele_stats(store, &stats, &error), &error);
    if (stats.recovery_replayed_records != replayed || stats.index_rebuilt) {
        die("an open replayed %llu records, not %llu",
            (unsigned long long)stats.recovery_replayed_records,
            (unsigned long long)replayed);
    }
    bench_store_close(store);
    return us;
}

static void round_of(const struct opened *opened, uint64_t tail_records,
                     struct stats *stats)
{
    leave_tail(opened->directory, tail_records);
    stats_add(stats, opened->killed_series,
              open_us(opened->directory, tail_records));
    stats_add(stats, opened->clean_series, open_us(opened->directory, 0));
}

static void open_round(void *workload, struct stats *stats)
{
    const struct open_workload *self = workload;

    round_of(&self->few, self->tail_records, stats);
    round_of(&self->many, self->tail_records, stats);
}

static void open_finish(void *workload)
{
    free(workload);
}

static const struct bench_ratio ratios[] = {
    {"open after a kill, 1,000,000 items, over 1,000 items", "open.killed_many",
     "us", BENCH_AT_MOST, 1.25, .floor = "open.killed_few"},
    {"open after a kill, 1,000,000 items, over 250 ms", "open.killed_many",
     "us", BENCH_AT_MOST, 1.0, .constant = KILLED_US_MAX},
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
