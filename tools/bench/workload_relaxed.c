/*
 * tools/bench/workload_relaxed.c -- relaxed puts, which are in the log when they
 * return but not yet on the disk: one after another by one thread, in turns with a
 * bare write of 4 KiB (a unit of the log is at least that) to a file that is there;
 * then as many as 1, 4 and 16 threads can, and as many bare writes as one can.
 *
 * Each thread fills a batch of its own again and again, which counts. What the store
 * does beside that, syncing ten times a second and checkpoints, counts as far as it
 * holds the puts up; before the bare writes it is waited for.
 */
#include <stdlib.h>

#include "tools/bench/bench.h"
#include "tools/bench/crowd.h"
#include "tools/bench/floor.h"
#include "tools/bench/store.h"
#include "tools/must/must.h"

enum {
    WRITE_BYTES = 4096,
    /* A put takes microseconds: many more of them make a 99th percentile. */
    REPEATS_FACTOR = 20,
};

static const size_t thread_counts[] = {1, 4, 16};
enum { THREAD_COUNTS = sizeof thread_counts / sizeof thread_counts[0] };

struct relaxed {
    struct stele *store;
    struct floor_file *floor;
    uint64_t items;
    uint64_t repeats;
    uint64_t duration_ms;
};

static void *relaxed_start(const char *directory, const struct bench_size *size)
{
    struct relaxed *self = must_have(calloc(1, sizeof *self));

    self->store = bench_store_create(directory);
    self->floor = floor_file_create(directory);
    self->items = size->items;
    self->repeats = REPEATS_FACTOR * size->repeats_small;
    self->duration_ms = size->threads_ms;
    bench_store_put_items(self->store, NULL, size->items);
    return self;
}

static void put_relaxed(struct stele *store, struct stele_batch *batch,
                        const char *key)
{
    struct stele_error error = {0};

    stele_batch_clear(batch);
    must(stele_batch_put(batch, item_table, key, ITEM_KEY_BYTES, item_value,
                         ITEM_VALUE_BYTES, &error),
         &error);
    must(stele_commit(store, batch, STELE_RELAXED, NULL, &error), &error);
}

/* ---- One after another ---------------------------------------------------------- */

static void measure_latency(struct relaxed *self, struct stats *stats)
{
    struct stele_error error = {0};
    struct samples stele = {0};
    struct samples floor = {0};
    struct stele_batch *batch;

    must(stele_batch_create(&batch, &error), &error);
    for (uint64_t i = 0; i < self->repeats; i++) {
        char key[ITEM_KEY_BYTES + 1];
        uint64_t start_ns;

        item_key(key, i * 7919 % self->items);
        start_ns = clock_ns();
        put_relaxed(self->store, batch, key);
        samples_add(&stele, (double)(clock_ns() - start_ns) / 1e3);

        start_ns = clock_ns();
        floor_file_write(self->floor, WRITE_BYTES);
        samples_add(&floor, (double)(clock_ns() - start_ns) / 1e3);
    }
    stele_batch_destroy(batch);
    stats_add(stats, "relaxed.p50", samples_median(&stele));
    stats_add(stats, "relaxed.floor_p50", samples_median(&floor));
    stats_add(stats, "relaxed.p99", samples_percentile(&stele, 99));
    stats_add(stats, "relaxed.floor_p99", samples_percentile(&floor, 99));
    samples_free(&stele);
    samples_free(&floor);
}

/* ---- As many as can be ---------------------------------------------------------- */

static void *create_batch(void *context)
{
    struct stele_error error = {0};
    struct stele_batch *batch;

    (void)context;
    must(stele_batch_create(&batch, &error), &error);
    return batch;
}

static void destroy_batch(void *context, void *batch)
{
    (void)context;
    stele_batch_destroy(batch);
}

static void commit_to_store(void *context, void *batch, uint64_t item)
{
    const struct relaxed *self = context;
    char key[ITEM_KEY_BYTES + 1];

    item_key(key, item);
    put_relaxed(self->store, batch, key);
}

static void write_to_floor(void *context, void *thread, uint64_t item)
{
    const struct relaxed *self = context;

    (void)thread;
    (void)item;
    floor_file_write(self->floor, WRITE_BYTES);
}

static void relaxed_round(void *workload, struct stats *stats)
{
    struct relaxed *self = workload;
    const struct crowd store = {.context = self,
                                .begin = create_batch,
                                .end = destroy_batch,
                                .step = commit_to_store,
                                .items = self->items};
    const struct crowd floor = {
        .context = self, .step = write_to_floor, .items = self->items};

    measure_latency(self, stats);
    for (size_t i = 0; i < THREAD_COUNTS; i++) {
        stats_add_point(stats, "relaxed", "stele", thread_counts[i],
                        crowd_run(&store, thread_counts[i], self->duration_ms));
        bench_store_checkpoint(self->store);
    }
    stats_add_point(stats, "relaxed", "bare", 1,
                    crowd_run(&floor, 1, self->duration_ms));
    bench_store_must_hold(self->store, self->items);
}

static void relaxed_finish(void *workload)
{
    struct relaxed *self = workload;

    bench_store_close(self->store);
    floor_file_destroy(self->floor);
    free(self);
}

static const struct bench_ratio ratios[] = {
    {"relaxed put, p50, over a bare write of 4 KiB", "relaxed.p50", "us",
     BENCH_AT_MOST, 0, .floor = "relaxed.floor_p50"},
    {"relaxed put, p99, over the same", "relaxed.p99", "us", BENCH_AT_MOST, 0,
     .floor = "relaxed.floor_p99"},
    {"1 thread of relaxed puts, over one of bare writes", "relaxed@stele#1",
     "/s", BENCH_AT_LEAST, 0, .floor = "relaxed@bare#1"},
};

const struct bench_workload workload_relaxed = {
    .name = "relaxed",
    .ratios = ratios,
    .ratio_count = sizeof ratios / sizeof ratios[0],
    .start = relaxed_start,
    .round = relaxed_round,
    .finish = relaxed_finish,
};
