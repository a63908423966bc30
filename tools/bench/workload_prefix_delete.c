/*
 * tools/bench/workload_prefix_delete.c -- delete every item by their prefix, in
 * between single puts. The items are put again, and the index brought up to
 * date, before each round.
 */
#include <stdlib.h>

#include "tools/bench/bench.h"
#include "tools/bench/store.h"
#include "tools/must/must.h"

enum { PUTS = 21 }; /* In a round; an odd number has one median. */

struct prefix_delete {
    struct stele *store;
    uint64_t keys;
};

static void *prefix_delete_start(const char *directory,
                                 const struct bench_size *size)
{
    struct prefix_delete *self = must_have(calloc(1, sizeof *self));

    self->store = bench_store_create(directory);
    self->keys = size->prefix_keys;
    return self;
}

static double delete_all_us(struct stele *store)
{
    struct stele_error error = {0};
    struct stele_batch *batch;
    const uint64_t start_ns = clock_ns();

    must(stele_batch_create(&batch, &error), &error);
    must(stele_batch_delete_prefix(batch, item_table, "item/", 5, &error),
         &error);
    must(stele_commit(store, batch, STELE_DURABLE, NULL, &error), &error);
    stele_batch_destroy(batch);
    return (double)(clock_ns() - start_ns) / 1e3;
}

static void prefix_delete_round(void *workload, struct stats *stats)
{
    struct prefix_delete *self = workload;
    struct samples puts = {0};

    bench_store_put_items(self->store, NULL, self->keys);
    bench_store_must_hold(self->store, self->keys);
    for (int i = 0; i < PUTS; i++) {
        if (i == PUTS / 2) {
            stats_add(stats, "prefix_delete", delete_all_us(self->store));
        }
        samples_add(&puts, bench_store_put_us(self->store, "others", "key"));
    }
    bench_store_must_hold(self->store, 0);
    stats_add(stats, "prefix_delete.put", samples_percentile(&puts, 50));
    samples_free(&puts);
}

static void prefix_delete_finish(void *workload)
{
    struct prefix_delete *self = workload;

    bench_store_close(self->store);
    free(self);
}

static const struct bench_ratio ratios[] = {
    {"prefix delete, 1,000,000 keys, over a single put", "prefix_delete", "us",
     BENCH_AT_MOST, 1.5, .floor = "prefix_delete.put"},
};

const struct bench_workload workload_prefix_delete = {
    .name = "prefix_delete",
    .ratios = ratios,
    .ratio_count = sizeof ratios / sizeof ratios[0],
    .start = prefix_delete_start,
    .round = prefix_delete_round,
    .finish = prefix_delete_finish,
};
