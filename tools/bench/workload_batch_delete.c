/*
 * tools/bench/workload_batch_delete.c -- delete some of the items, in random
 * order, as one durable batch; beside it a bare write and sync of as many bytes,
 * and a single put.
 *
 * Before each: the items deleted last are put back, the index is brought up to
 * date, and the memtable is filled to the half with other keys. Filling the
 * batch counts as much as committing it; no outcomes are asked for.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "tools/bench/bench.h"
#include "tools/bench/floor.h"
#include "tools/bench/store.h"
#include "tools/must/must.h"

static const uint64_t batch_ops[] = {50, 1000, 10000};
enum { BATCH_SIZES = sizeof batch_ops / sizeof batch_ops[0] };

struct batch_delete {
    struct stele *store;
    struct floor_file *floor;
    uint64_t *numbers;
    char (*keys)[ITEM_KEY_BYTES + 1]; /* Of the numbers. */
    uint64_t items;
    uint64_t repeats;
    uint64_t seed;
};

static void *batch_delete_start(const char *directory,
                                const struct bench_size *size)
{
    struct batch_delete *self = must_have(calloc(1, sizeof *self));

    self->store = bench_store_create(directory);
    self->floor = floor_file_create(directory);
    self->numbers =
        must_have(malloc(batch_ops[BATCH_SIZES - 1] * sizeof self->numbers[0]));
    self->keys =
        must_have(malloc(batch_ops[BATCH_SIZES - 1] * sizeof self->keys[0]));
    self->items = size->items;
    self->repeats = size->repeats_large;
    self->seed = 2;
    bench_store_put_items(self->store, NULL, size->items);
    return self;
}

static void choose(struct batch_delete *self, uint64_t ops)
{
    random_numbers(self->numbers, ops, self->items, &self->seed);
    for (uint64_t i = 0; i < ops; i++) {
        item_key(self->keys[i], self->numbers[i]);
    }
}

/* In microseconds, one of each for each repeat. */
struct measured {
    struct samples stele;
    struct samples floor;
    struct samples put;
};

static void measure(struct batch_delete *self, uint64_t ops,
                    struct measured *measured)
{
    struct stele_error error = {0};
    struct stele_batch *batch;
    uint64_t start_ns;
    size_t bytes;

    start_ns = clock_ns();
    must(stele_batch_create(&batch, &error), &error);
    for (uint64_t i = 0; i < ops; i++) {
        must(stele_batch_delete(batch, item_table, self->keys[i],
                                ITEM_KEY_BYTES, &error),
             &error);
    }
    must(stele_commit(self->store, batch, STELE_DURABLE, NULL, &error), &error);
    samples_add(&measured->stele, (double)(clock_ns() - start_ns) / 1e3);
    bytes = (size_t)stele_batch_bytes(batch);
    stele_batch_destroy(batch);

    start_ns = clock_ns();
    floor_file_append(self->floor, bytes);
    samples_add(&measured->floor, (double)(clock_ns() - start_ns) / 1e3);

    start_ns = clock_ns();
    must(stele_put(self->store, "others", "key", 3, item_value,
                   ITEM_VALUE_BYTES, NULL, &error),
         &error);
    samples_add(&measured->put, (double)(clock_ns() - start_ns) / 1e3);
}

static void add_median(struct stats *stats, const char *line, uint64_t ops,
                       struct samples *samples)
{
    stats_add_point(stats, "batch_delete", line, ops,
                    samples_percentile(samples, 50));
    samples_free(samples);
}

static void batch_delete_round(void *workload, struct stats *stats)
{
    struct batch_delete *self = workload;

    for (size_t size = 0; size < BATCH_SIZES; size++) {
        struct measured measured = {{0}, {0}, {0}};

        for (uint64_t i = 0; i < self->repeats; i++) {
            choose(self, batch_ops[size]);
            bench_store_half_fill(self->store);
            measure(self, batch_ops[size], &measured);
            bench_store_put_items(self->store, self->numbers, batch_ops[size]);
        }
        add_median(stats, "stele", batch_ops[size], &measured.stele);
        add_median(stats, "bare", batch_ops[size], &measured.floor);
        add_median(stats, "put", batch_ops[size], &measured.put);
    }
}

static void batch_delete_finish(void *workload)
{
    struct batch_delete *self = workload;

    bench_store_close(self->store);
    floor_file_destroy(self->floor);
    free(self->numbers);
    free(self->keys);
    free(self);
}

static const struct bench_ratio ratios[] = {
    {"batch delete, 50 items, over a single put", "batch_delete@stele#50", "us",
     BENCH_AT_MOST, 1.25, .floor = "batch_delete@put#50"},
    {"batch delete, 1,000 items, over a bare write + sync",
     "batch_delete@stele#1000", "us", BENCH_AT_MOST, 2.0,
     .floor = "batch_delete@bare#1000"},
    {"batch delete, 10,000 items, over a bare write + sync",
     "batch_delete@stele#10000", "us", BENCH_AT_MOST, 2.5,
     .floor = "batch_delete@bare#10000"},
};

const struct bench_workload workload_batch_delete = {
    .name = "batch_delete",
    .ratios = ratios,
    .ratio_count = sizeof ratios / sizeof ratios[0],
    .start = batch_delete_start,
    .round = batch_delete_round,
    .finish = batch_delete_finish,
};
