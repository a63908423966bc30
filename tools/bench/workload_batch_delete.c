/*
 * tools/bench/workload_batch_delete.c -- delete some of the items, in random
 * order, as one durable batch; beside it a bare write and sync of as many bytes,
 * a single put, and for the smallest batch one durable delete after another.
 *
 * Before each: the items deleted last are put back, the index is brought up to
 * date, and the memtable is filled to the half with other keys. Filling the
 * batch counts as much as committing it; no outcomes are asked for. The largest
 * batch deletes all items if there are fewer.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "tools/bench/bench.h"
#include "tools/bench/floor.h"
#include "tools/bench/store.h"
#include "tools/must/must.h"

static const uint64_t batch_ops[] = {50, 1000, 10000, 100000};
enum {
    BATCH_SIZES = sizeof batch_ops / sizeof batch_ops[0],
    LOOP_OPS = 50,
    SETTLING_PUTS = 5,
    /* A delete in the log, and at most what is around all of a batch. */
    OP_BYTES = 3 + ITEM_KEY_BYTES,
    AROUND_BYTES = 100,
};

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

/* In microseconds, one of each for each repeat. */
struct measured {
    struct samples stele;
    struct samples floor;
    struct samples put;
};

/* Choose that many items, and bring the store into the state described above. */
static void prepare(struct batch_delete *self, uint64_t ops)
{
    random_keys(self->keys, self->numbers, ops, self->items, &self->seed);
    bench_store_half_fill(self->store);
}

static void put_back(struct batch_delete *self, uint64_t ops)
{
    bench_store_must_hold(self->store, self->items - ops);
    bench_store_put_items(self->store, self->numbers, ops);
}

static void measure_floor(struct batch_delete *self, uint64_t ops,
                          struct measured *measured)
{
    const size_t bytes = ops * OP_BYTES + AROUND_BYTES;
    const uint64_t start_ns = clock_ns();

    floor_file_append(self->floor, bytes);
    samples_add(&measured->floor, (double)(clock_ns() - start_ns) / 1e3);
    samples_add(&measured->put,
                bench_store_put_us(self->store, "others", "key"));
}

/* Each comes first as often as not: the disk is slower after the much that was written
 * to fill the memtable, which some puts wait out. */
static void measure(struct batch_delete *self, uint64_t ops, uint64_t repeat,
                    struct measured *measured)
{
    size_t bytes;

    for (int i = 0; i < SETTLING_PUTS; i++) {
        (void)bench_store_put_us(self->store, "others", "key");
    }
    if (repeat % 2 == 1) {
        measure_floor(self, ops, measured);
    }
    samples_add(&measured->stele,
                bench_store_delete_us(self->store, self->keys, ops, &bytes));
    if (repeat % 2 == 0) {
        measure_floor(self, ops, measured);
    }
    if (bytes > ops * OP_BYTES + AROUND_BYTES || bytes < ops * OP_BYTES) {
        die("a record of %zu bytes", bytes);
    }
}

static double loop_us(struct batch_delete *self)
{
    struct stele_error error = {0};
    const uint64_t start_ns = clock_ns();

    for (uint64_t i = 0; i < LOOP_OPS; i++) {
        must(stele_delete(self->store, item_table, self->keys[i],
                          ITEM_KEY_BYTES, NULL, &error),
             &error);
    }
    return (double)(clock_ns() - start_ns) / 1e3;
}

static void add_median(struct stats *stats, const char *what, const char *line,
                       uint64_t ops, struct samples *samples)
{
    stats_add_point(stats, what, line, ops, samples_median(samples));
    samples_free(samples);
}

static void round_of_batches(struct batch_delete *self, uint64_t ops,
                             struct stats *stats)
{
    const uint64_t found = ops < self->items ? ops : self->items;
    struct measured measured = {{0}, {0}, {0}};

    for (uint64_t i = 0; i < self->repeats; i++) {
        prepare(self, found);
        measure(self, found, i, &measured);
        put_back(self, found);
    }
    add_median(stats, "batch_delete", "stele", ops, &measured.stele);
    add_median(stats, "batch_delete", "bare", ops, &measured.floor);
    add_median(stats, "batch_delete", "put", ops, &measured.put);
}

static void round_of_loops(struct batch_delete *self, struct stats *stats)
{
    struct samples loops = {0};

    for (uint64_t i = 0; i < self->repeats; i++) {
        prepare(self, LOOP_OPS);
        samples_add(&loops, loop_us(self));
        put_back(self, LOOP_OPS);
    }
    add_median(stats, "loop_delete", "stele", LOOP_OPS, &loops);
}

static void batch_delete_round(void *workload, struct stats *stats)
{
    struct batch_delete *self = workload;

    for (size_t size = 0; size < BATCH_SIZES; size++) {
        round_of_batches(self, batch_ops[size], stats);
    }
    round_of_loops(self, stats);
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
    {"batch delete, 100,000 items, over a bare write + sync",
     "batch_delete@stele#100000", "us", BENCH_AT_MOST, 0,
     .floor = "batch_delete@bare#100000"},
    {"one batch of 50 over 50 single deletes", "batch_delete@stele#50", "us",
     BENCH_AT_MOST, 0, .floor = "loop_delete@stele#50"},
};

const struct bench_workload workload_batch_delete = {
    .name = "batch_delete",
    .ratios = ratios,
    .ratio_count = sizeof ratios / sizeof ratios[0],
    .start = batch_delete_start,
    .round = batch_delete_round,
    .finish = batch_delete_finish,
};
