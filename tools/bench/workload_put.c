/*
 * tools/bench/workload_put.c -- one durable put after another, by one thread,
 * in turns with one bare write and sync of 4 KiB.
 */
#include <stdlib.h>

#include "tools/bench/bench.h"
#include "tools/bench/floor.h"
#include "tools/bench/store.h"
#include "tools/must/must.h"

struct put {
    struct stele *store;
    struct floor_file *floor;
    uint64_t repeats;
    uint64_t items;
    uint64_t seed;
};

static void *put_start(const char *directory, const struct bench_size *size)
{
    struct put *put = must_have(calloc(1, sizeof *put));

    put->store = bench_store_create(directory);
    put->floor = floor_file_create(directory);
    put->repeats = size->repeats_small;
    put->items = size->items;
    put->seed = 1;
    bench_store_put_items(put->store, NULL, size->items);
    return put;
}

static void put_round(void *workload, struct stats *stats)
{
    struct put *put = workload;
    struct samples stele = {0};
    struct samples floor = {0};
    uint64_t *numbers = must_have(malloc(put->repeats * sizeof numbers[0]));

    random_numbers(numbers, put->repeats, put->items, &put->seed);
    for (uint64_t i = 0; i < put->repeats; i++) {
        char key[ITEM_KEY_BYTES + 1];
        uint64_t start_ns;

        item_key(key, numbers[i]);
        samples_add(&stele, bench_store_put_us(put->store, item_table, key));

        start_ns = clock_ns();
        floor_file_append(put->floor, 4096);
        samples_add(&floor, (double)(clock_ns() - start_ns) / 1e3);
    }
    stats_add(stats, "put.p50", samples_median(&stele));
    stats_add(stats, "put.floor_p50", samples_median(&floor));
    stats_add(stats, "put.p99", samples_percentile(&stele, 99));
    stats_add(stats, "put.floor_p99", samples_percentile(&floor, 99));
    samples_free(&stele);
    samples_free(&floor);
    free(numbers);
}

static void put_finish(void *workload)
{
    struct put *put = workload;

    bench_store_close(put->store);
    floor_file_destroy(put->floor);
    free(put);
}

static const struct bench_ratio ratios[] = {
    {"durable put, p50, over a bare write + sync of 4 KiB", "put.p50", "us",
     BENCH_AT_MOST, 1.10, .floor = "put.floor_p50"},
    {"durable put, p99, over the same", "put.p99", "us", BENCH_AT_MOST, 0,
     .floor = "put.floor_p99"},
};

const struct bench_workload workload_put = {
    .name = "put",
    .ratios = ratios,
    .ratio_count = sizeof ratios / sizeof ratios[0],
    .start = put_start,
    .round = put_round,
    .finish = put_finish,
};
