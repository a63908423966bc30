/*
 * tools/bench/workload_threads.c -- 1, 4, 16, 64 threads of durable puts, in
 * turns with as many on a bare group-committed log.
 */
#include <stdio.h>
#include <stdlib.h>

#include "tools/bench/bench.h"
#include "tools/bench/crowd.h"
#include "tools/bench/floor.h"
#include "tools/bench/store.h"
#include "tools/must/must.h"

/* What a put is in the log: key, value, and what describes them. */
enum { RECORD_BYTES = ITEM_KEY_BYTES + ITEM_VALUE_BYTES + 68 };

static const size_t thread_counts[] = {1, 4, 16, 64};
enum { THREAD_COUNTS = sizeof thread_counts / sizeof thread_counts[0] };

struct threads {
    struct stele *store;
    struct floor_log *floor;
    uint64_t items;
    uint64_t duration_ms;
    unsigned rounds; /* Begun. */
};

static void commit_to_store(void *context, void *thread, uint64_t item)
{
    struct threads *threads = context;
    struct stele_error error = {0};
    char key[ITEM_KEY_BYTES + 1];

    (void)thread;
    item_key(key, item);
    must(stele_put(threads->store, item_table, key, ITEM_KEY_BYTES, item_value,
                   ITEM_VALUE_BYTES, NULL, &error),
         &error);
}

static void commit_to_floor(void *context, void *thread, uint64_t item)
{
    struct threads *threads = context;

    (void)thread;
    (void)item;
    floor_log_commit(threads->floor, RECORD_BYTES);
}

static void measure(struct threads *threads, struct stats *stats,
                    const char *line, size_t thread_count,
                    void (*commit)(void *, void *, uint64_t))
{
    const struct crowd crowd = {
        .context = threads, .step = commit, .items = threads->items};

    stats_add_point(stats, "threads", line, thread_count,
                    crowd_run(&crowd, thread_count, threads->duration_ms));
}

static void *threads_start(const char *directory, const struct bench_size *size)
{
    struct threads *threads = must_have(calloc(1, sizeof *threads));

    threads->store = bench_store_create(directory);
    threads->floor = floor_log_create(directory);
    threads->items = size->items;
    threads->duration_ms = size->threads_ms;
    bench_store_put_items(threads->store, NULL, size->items);
    bench_store_settle(threads->store);
    return threads;
}

static void threads_round(void *workload, struct stats *stats)
{
    struct threads *threads = workload;

    threads->rounds++;
    for (size_t i = 0; i < THREAD_COUNTS; i++) {
        /* What one leaves behind for the disk, the other meets: in turns. */
        if (threads->rounds % 2 == 0) {
            measure(threads, stats, "bare_log", thread_counts[i],
                    commit_to_floor);
        }
        measure(threads, stats, "stele", thread_counts[i], commit_to_store);
        bench_store_checkpoint(threads->store);
        if (threads->rounds % 2 == 1) {
            measure(threads, stats, "bare_log", thread_counts[i],
                    commit_to_floor);
        }
    }
}

static void threads_finish(void *workload)
{
    struct threads *threads = workload;

    bench_store_close(threads->store);
    floor_log_destroy(threads->floor);
    free(threads);
}

static const struct bench_ratio ratios[] = {
    {"1 thread of durable puts, over a bare group-committed log",
     "threads@stele#1", "/s", BENCH_AT_LEAST, 0.9,
     .floor = "threads@bare_log#1"},
    {"4 threads, over the same", "threads@stele#4", "/s", BENCH_AT_LEAST, 0.9,
     .floor = "threads@bare_log#4"},
    {"16 threads, over the same", "threads@stele#16", "/s", BENCH_AT_LEAST, 0,
     .floor = "threads@bare_log#16"},
    {"64 threads, over the same", "threads@stele#64", "/s", BENCH_AT_LEAST, 0,
     .floor = "threads@bare_log#64"},
};

const struct bench_workload workload_threads = {
    .name = "threads",
    .ratios = ratios,
    .ratio_count = sizeof ratios / sizeof ratios[0],
    .start = threads_start,
    .round = threads_round,
    .finish = threads_finish,
};
