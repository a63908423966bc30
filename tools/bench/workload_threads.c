/*
 * tools/bench/workload_threads.c -- 1, 4, 16, 64 threads of durable puts, in
 * turns with as many on a bare group-committed log.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "tools/bench/bench.h"
#include "tools/bench/floor.h"
#include "tools/bench/store.h"
#include "tools/must/must.h"

enum {
    THREADS_MAX = 64,
    /* What a put is in the log: key, value, and what describes them. */
    RECORD_BYTES = ITEM_KEY_BYTES + ITEM_VALUE_BYTES + 68,
};

static const size_t thread_counts[] = {1, 4, 16, 64};
enum { THREAD_COUNTS = sizeof thread_counts / sizeof thread_counts[0] };

struct threads {
    struct stele *store;
    struct floor_log *floor;
    uint64_t items;
    uint64_t duration_ms;
};

struct worker {
    const struct threads *threads;
    pthread_t thread;
    uint64_t first; /* Its own part of the items. */
    uint64_t range;
    uint64_t commits;
    void (*commit)(struct worker *worker);
    const atomic_bool *stop;
};

static void commit_to_store(struct worker *worker)
{
    struct stele_error error = {0};
    char key[ITEM_KEY_BYTES + 1];

    /* A stride without a pattern; any order will do. */
    item_key(key, worker->first + worker->commits * 7919 % worker->range);
    must(stele_put(worker->threads->store, item_table, key, ITEM_KEY_BYTES,
                   item_value, ITEM_VALUE_BYTES, NULL, &error),
         &error);
}

static void commit_to_floor(struct worker *worker)
{
    floor_log_commit(worker->threads->floor, RECORD_BYTES);
}

static void *worker_main(void *context)
{
    struct worker *worker = context;

    while (!atomic_load(worker->stop)) {
        worker->commit(worker);
        worker->commits++;
    }
    return NULL;
}

/* Commits a second. */
static double run(const struct threads *threads, size_t thread_count,
                  void (*commit)(struct worker *worker))
{
    struct worker workers[THREADS_MAX];
    const uint64_t range = threads->items / thread_count;
    const struct timespec duration = {
        .tv_sec = (time_t)(threads->duration_ms / 1000),
        .tv_nsec = (long)(threads->duration_ms % 1000) * 1000000,
    };
    atomic_bool stop = false;
    const uint64_t start_ns = clock_ns();
    uint64_t commits = 0;

    for (size_t i = 0; i < thread_count; i++) {
        workers[i] = (struct worker){
            .threads = threads,
            .first = i * range,
            .range = range,
            .commit = commit,
            .stop = &stop,
        };
        if (pthread_create(&workers[i].thread, NULL, worker_main,
                           &workers[i]) != 0) {
            die("thread %zu cannot be started", i);
        }
    }
    nanosleep(&duration, NULL);
    atomic_store(&stop, true);
    for (size_t i = 0; i < thread_count; i++) {
        pthread_join(workers[i].thread, NULL);
        commits += workers[i].commits;
    }
    return (double)commits / ((double)(clock_ns() - start_ns) / 1e9);
}

static void *threads_start(const char *directory, const struct bench_size *size)
{
    struct threads *threads = must_have(calloc(1, sizeof *threads));

    threads->store = bench_store_create(directory);
    threads->floor = floor_log_create(directory);
    threads->items = size->items;
    threads->duration_ms = size->threads_ms;
    bench_store_put_items(threads->store, NULL, size->items);
    return threads;
}

static void threads_round(void *workload, struct stats *stats)
{
    const struct threads *threads = workload;

    for (size_t i = 0; i < THREAD_COUNTS; i++) {
        const size_t count = thread_counts[i];

        stats_add_point(stats, "threads", "stele", count,
                        run(threads, count, commit_to_store));
        stats_add_point(stats, "threads", "bare_log", count,
                        run(threads, count, commit_to_floor));
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
