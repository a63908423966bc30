/*
 * tools/bench/workload_memory.c -- the most memory that a store takes under all kinds
 * of work, over the bound that the design sets: 64 MiB, and three times the largest
 * batch, whatever the size of the state. (What old views pin comes on top; here are
 * none.)
 *
 * Two stores, with few items and with many. In each round each is opened, gets random
 * puts for several memtables, one batch of many deletes, the largest batch, which is
 * deleted by its prefix, checkpoints and a snapshot, and is closed. From before the
 * opening to after the close everything anonymous that the process takes counts, the
 * batches themselves included. Afterwards the stores are what they were.
 */
#include <stdlib.h>

#include "tools/bench/bench.h"
#include "tools/bench/memory.h"
#include "tools/bench/store.h"
#include "tools/must/must.h"

enum { ITEMS_FEW = 1000, DELETES = 10000 };

#define MIB         ((double)(1 << 20))
#define BOUND_BYTES (64 * MIB)
#define BOUND_BATCH 3

static const char other_table[] = "others";

struct loaded {
    char *directory;
    uint64_t items;
};

struct memory {
    struct loaded few;
    struct loaded many;
    uint64_t log_bytes; /* Of random puts. */
    uint64_t largest_batch;
    uint64_t numbers[DELETES];
    char keys[DELETES][ITEM_KEY_BYTES + 1]; /* Of the numbers. */
    uint64_t seed;
};

static void *memory_start(const char *directory, const struct bench_size *size)
{
    struct memory *self = must_have(calloc(1, sizeof *self));

    self->few = (struct loaded){
        bench_store_load(directory, "few", ITEMS_FEW),
        ITEMS_FEW,
    };
    self->many = (struct loaded){
        bench_store_load(directory, "many", size->open_items),
        size->open_items,
    };
    self->log_bytes = size->steady_log_bytes;
    self->largest_batch = size->largest_batch;
    self->seed = 3;
    return self;
}

static void delete_and_put_back(struct memory *self, struct stele *store,
                                const struct loaded *loaded, uint64_t count)
{
    bench_store_delete_us(store, self->keys, count, NULL);
    bench_store_must_hold(store, loaded->items - count);
    bench_store_put_items(store, self->numbers, count);
}

/* Returns how large it was. */
static uint64_t commit_largest_batch(const struct memory *self,
                                     struct stele *store)
{
    struct stele_error error = {0};
    struct stele_batch *batch;
    uint64_t bytes;

    must(stele_batch_create(&batch, &error), &error);
    for (uint64_t i = 0; i < self->largest_batch; i++) {
        char key[ITEM_KEY_BYTES + 1];

        item_key(key, i);
        must(stele_batch_put(batch, other_table, key, ITEM_KEY_BYTES,
                             item_value, ITEM_VALUE_BYTES, &error),
             &error);
    }
    must(stele_commit(store, batch, STELE_DURABLE, NULL, &error), &error);
    bytes = stele_batch_bytes(batch);
    stele_batch_destroy(batch);
    return bytes;
}

/* Everything at once. Returns the bytes of the largest batch. */
static uint64_t work(struct memory *self, const struct loaded *loaded,
                     uint64_t deletes)
{
    struct stele *store = bench_store_open(loaded->directory);
    struct stele_error error = {0};
    uint64_t largest_bytes;

    bench_store_write_at_random(store, loaded->items, self->log_bytes,
                                STELE_RELAXED, &self->seed);
    delete_and_put_back(self, store, loaded, deletes);
    largest_bytes = commit_largest_batch(self, store);
    bench_store_checkpoint(store);
    must(stele_snapshot(store, NULL, &error), &error);
    (void)bench_store_delete_all_us(store, other_table);
    bench_store_checkpoint(store);
    bench_store_must_hold(store, loaded->items);
    bench_store_close(store);
    return largest_bytes;
}

/* The most bytes that were there. */
static double measure(struct memory *self, const struct loaded *loaded,
                      uint64_t *largest_bytes_out)
{
    const uint64_t deletes = loaded->items < DELETES ? loaded->items : DELETES;

    random_keys(self->keys, self->numbers, deletes, loaded->items, &self->seed);
    memory_watch();
    *largest_bytes_out = work(self, loaded, deletes);
    return (double)memory_most();
}

static void memory_round(void *workload, struct stats *stats)
{
    struct memory *self = workload;
    uint64_t largest_bytes;

    stats_add(stats, "memory.few",
              measure(self, &self->few, &largest_bytes) / MIB);
    stats_add(stats, "memory.many",
              measure(self, &self->many, &largest_bytes) / MIB);
    stats_add(stats, "memory.bound",
              (BOUND_BYTES + BOUND_BATCH * (double)largest_bytes) / MIB);
}

static void memory_finish(void *workload)
{
    struct memory *self = workload;

    free(self->few.directory);
    free(self->many.directory);
    free(self);
}

static const struct bench_ratio ratios[] = {
    {"memory, 1,000 items, over 64 MiB + 3 x the largest batch", "memory.few",
     "MiB", BENCH_AT_MOST, 1.0, .floor = "memory.bound", .each = true},
    {"memory, 1,000,000 items, over the same", "memory.many", "MiB",
     BENCH_AT_MOST, 1.0, .floor = "memory.bound", .each = true},
    {"memory, 1,000,000 items, over 1,000 items", "memory.many", "MiB",
     BENCH_AT_MOST, 1.25, .floor = "memory.few"},
};

const struct bench_workload workload_memory = {
    .name = "memory",
    .ratios = ratios,
    .ratio_count = sizeof ratios / sizeof ratios[0],
    .start = memory_start,
    .round = memory_round,
    .finish = memory_finish,
};
