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

static void prefix_delete_round(void *workload, struct stats *stats)
{
    struct prefix_delete *self = workload;
    struct samples puts = {0};

    bench_store_put_items(self->store, NULL, self->keys);
    bench_store_settle(self->store);
    bench_store_must_hold(self->store, self->keys);
    for (int i = 0; i < PUTS; i++) {
        if (i == PUTS / 2) {
            stats_add(stats, "prefix_delete",
                      bench_store_delete_all_us(self->store, item_table));
        }
        samples_add(&puts, bench_store_put_us(self->store, "others", "key"));
    }
    bench_store_must_hold(self->store, 0);
    stats_add(stats, "prefix_delete.put", samples_median(&puts));
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
