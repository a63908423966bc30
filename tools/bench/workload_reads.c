/*
 * tools/bench/workload_reads.c -- point gets and ordered scans inside one view, in
 * turns with the same reads of a bare LMDB that holds the same items.
 *
 * The index has all items. The memtable is empty, or holds newer versions of items
 * chosen at random: half of what fits, or all but a twentieth. Gets are of all items
 * in random order. What is read is copied out on both sides; Stele verifies the check
 * of every value on the way, which the bare LMDB has none of. A scan that only touches
 * each value is measured as well: LMDB then hardly looks at the pages.
 *
 * A store remembers nothing between two reads, and both sides' pages are in the page
 * cache: this is about instructions and cache misses.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/bench/bare_lmdb.h"
#include "tools/bench/bench.h"
#include "tools/bench/reader.h"
#include "tools/bench/store.h"
#include "tools/must/must.h"

enum {
    TURNS = 5, /* In a round, of which the median counts. */
    LMDB_BATCH = 10000,
};

/* Stele and LMDB with the same items. */
struct pair {
    const char *suffix; /* Of the series' names. */
    struct stele *store;
    struct bare_lmdb *lmdb;
    uint64_t *numbers;       /* Of all items, in random order, ... */
    char *key_bytes;         /* ... and their keys. */
    struct reader_keys keys; /* The same. */
    uint64_t overwritten;    /* So many of them, from the first on. */
    uint64_t seed;
};

struct reads {
    struct pair small;
    struct pair large;
};

static void fill_lmdb(struct bare_lmdb *lmdb, uint64_t items)
{
    uint64_t *numbers = numbers_in_order(items);

    bare_lmdb_put(lmdb, numbers, items);
    free(numbers);
}

static void make_keys(struct pair *pair, uint64_t items)
{
    uint64_t *numbers = must_have(malloc(items * sizeof numbers[0]));
    char *keys = must_have(malloc(items * ITEM_KEY_BYTES + 1));

    random_numbers(numbers, items, items, &pair->seed);
    for (uint64_t i = 0; i < items; i++) {
        item_key(keys + i * ITEM_KEY_BYTES, numbers[i]);
    }
    pair->numbers = numbers;
    pair->key_bytes = keys;
    pair->keys = (struct reader_keys){.keys = keys, .count = items};
}

static void pair_start(struct pair *pair, const char *parent,
                       const char *suffix, uint64_t items)
{
    char directory[BENCH_PATH_BYTES];

    bench_directory(parent, suffix[0] == '\0' ? "small" : "large", directory);
    pair->suffix = suffix;
    pair->seed = 3;
    pair->store = bench_store_create(directory);
    pair->lmdb = bare_lmdb_open(directory);
    bench_store_put_items(pair->store, NULL, items);
    bench_store_settle(pair->store);
    fill_lmdb(pair->lmdb, items);
    make_keys(pair, items);
}

static void *reads_start(const char *directory, const struct bench_size *size)
{
    struct reads *self = must_have(calloc(1, sizeof *self));

    pair_start(&self->small, directory, "", size->items);
    pair_start(&self->large, directory, "_large", size->open_items);
    return self;
}

/* What both sides do in turns, and whose series it goes to. */
struct measured {
    const char *what;
    size_t threads;
    bool scans;
    bool touch_only;
};

static const struct measured measured[] = {
    {"get", 1, false, false},        {"get", 2, false, false},
    {"scan", 1, true, false},        {"scan", 2, true, false},
    {"scan_touched", 1, true, true},
};

static void add(struct stats *stats, const struct pair *pair,
                const struct measured *of, const char *line,
                struct samples *samples)
{
    char what[SERIES_NAME_BYTES];

    snprintf(what, sizeof what, "%s%s", of->what, pair->suffix);
    stats_add_point(stats, what, line, of->threads, samples_median(samples));
    samples_free(samples);
}

static void measure(const struct pair *pair, const char *line,
                    const struct measured *of, struct stats *stats)
{
    const struct reader_keys *keys = of->scans ? NULL : &pair->keys;
    struct samples stele = {0};
    struct samples lmdb = {0};
    char floor[SERIES_NAME_BYTES];

    for (int turn = 0; turn < TURNS; turn++) {
        samples_add(&stele, reader_run(&stele_reader, pair->store, of->threads,
                                       keys, of->touch_only));
        samples_add(&lmdb, reader_run(&bare_lmdb_reader, pair->lmdb,
                                      of->threads, keys, of->touch_only));
    }
    snprintf(floor, sizeof floor, "lmdb_beside_%s", line);
    add(stats, pair, of, line, &stele);
    add(stats, pair, of, floor, &lmdb);
}

static void measure_all(const struct pair *pair, const char *line,
                        struct stats *stats)
{
    for (size_t i = 0; i < sizeof measured / sizeof *measured; i++) {
        measure(pair, line, &measured[i], stats);
    }
}

/* The same items of both, so that the pages of both are as old. */
static void overwrite(struct pair *pair, uint64_t percent)
{
    uint64_t next = pair->overwritten;

    bench_store_overwrite(pair->store, pair->numbers, pair->keys.count,
                          &pair->overwritten, percent);
    while (next < pair->overwritten) {
        const uint64_t first = next % pair->keys.count;
        const uint64_t behind = pair->keys.count - first;
        const uint64_t left = pair->overwritten - next;
        const uint64_t most = left < behind ? left : behind;
        const uint64_t count = most < LMDB_BATCH ? most : LMDB_BATCH;

        bare_lmdb_put(pair->lmdb, pair->numbers + first, count);
        next += count;
    }
}

static void pair_round(struct pair *pair, struct stats *stats)
{
    bench_store_checkpoint(pair->store);
    measure_all(pair, "empty", stats);
    overwrite(pair, 50);
    measure_all(pair, "half", stats);
    overwrite(pair, 95);
    measure_all(pair, "full", stats);
}

static void reads_round(void *workload, struct stats *stats)
{
    struct reads *self = workload;

    pair_round(&self->small, stats);
    pair_round(&self->large, stats);
}

static void pair_finish(struct pair *pair)
{
    bench_store_close(pair->store);
    bare_lmdb_close(pair->lmdb);
    free(pair->numbers);
    free(pair->key_bytes);
}

static void reads_finish(void *workload)
{
    struct reads *self = workload;

    pair_finish(&self->small);
    pair_finish(&self->large);
    free(self);
}

static const struct bench_ratio ratios[] = {
    {"point get, checkpointed, over bare LMDB", "get@empty#1", "M/s",
     BENCH_AT_LEAST, 0.9, .floor = "get@lmdb_beside_empty#1"},
    {"point get, memtable half full, over bare LMDB", "get@half#1", "M/s",
     BENCH_AT_LEAST, 0.7, .floor = "get@lmdb_beside_half#1"},
    {"point get, memtable full, over bare LMDB", "get@full#1", "M/s",
     BENCH_AT_LEAST, 0.7, .floor = "get@lmdb_beside_full#1"},
    {"the same with 2 threads, checkpointed", "get@empty#2", "M/s",
     BENCH_AT_LEAST, 0, .floor = "get@lmdb_beside_empty#2"},
    {"ordered scan, checkpointed, over bare LMDB", "scan@empty#1", "M/s",
     BENCH_AT_LEAST, 0.9, .floor = "scan@lmdb_beside_empty#1"},
    {"the same, values only touched", "scan_touched@empty#1", "M/s",
     BENCH_AT_LEAST, 0, .floor = "scan_touched@lmdb_beside_empty#1"},
    {"ordered scan, memtable full, 100,000 items, over bare LMDB",
     "scan@full#1", "M/s", BENCH_AT_LEAST, 0.25,
     .floor = "scan@lmdb_beside_full#1"},
    {"point get, 1,000,000 items, checkpointed", "get_large@empty#1", "M/s",
     BENCH_AT_LEAST, 0, .floor = "get_large@lmdb_beside_empty#1"},
    {"ordered scan, 1,000,000 items, checkpointed", "scan_large@empty#1", "M/s",
     BENCH_AT_LEAST, 0.9, .floor = "scan_large@lmdb_beside_empty#1"},
    {"ordered scan, 1,000,000 items, memtable full", "scan_large@full#1", "M/s",
     BENCH_AT_LEAST, 0.5, .floor = "scan_large@lmdb_beside_full#1"},
};

const struct bench_workload workload_reads = {
    .name = "reads",
    .ratios = ratios,
    .ratio_count = sizeof ratios / sizeof ratios[0],
    .start = reads_start,
    .round = reads_round,
    .finish = reads_finish,
};
