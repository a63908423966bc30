/*
 * tools/bench/workload_scale.c -- how what a store takes grows with what is in it:
 * the same work on stores of 1,000, 100,000, 1,000,000 and 10,000,000 items.
 *
 * 1. Once, in the first round, each store is worked on, checkpointed and snapshotted;
 *    then its index is removed and built anew by the next open. What memory both
 *    take, and how long the second.
 * 2. Each round: they take turns at being opened after a clean close. Then all are
 *    open, and take turns put by put, and batch delete by batch delete, which is put
 *    back untimed. Then reads of each, in an index that is up to date.
 * 3. They take turns at being left with the same tail by a child that is killed, and
 *    opened again.
 *
 * No snapshot becomes due in the middle of a measurement: the smaller stores take one
 * before it, and of the largest, five rounds write less log than it has state.
 * Reads are of an index that is in memory: a scan of all that nobody times has brought
 * it there. (The largest is some 3 GB.) Filling a batch counts as much as committing
 * it.
 *
 * The largest store takes up to 10 GB of disk. Loading it takes a minute, the first
 * step half of one, and a round about as long: five minutes a run of 5 rounds.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "tools/bench/bench.h"
#include "tools/bench/memory.h"
#include "tools/bench/reopen.h"
#include "tools/bench/store.h"
#include "tools/must/must.h"

enum {
    SIZES_MAX = sizeof((struct bench_size *)0)->scale / sizeof(uint64_t),
    DELETES = 1000, /* No more than the smallest has. */
    GETS = 10000,
    GETS_AT_ONCE = 100, /* Timed together: one is too short. */
    SCAN_MAX = 1000000,
    SNAPSHOT_ITEMS_MAX = 1000000, /* More: none but the first. */
};

#define MIB ((double)(1 << 20))

struct sized {
    char *directory;
    uint64_t items;
    struct stele *store; /* In the middle of a round. */
};

struct scale {
    struct sized sizes[SIZES_MAX];
    size_t count;
    uint64_t puts;
    uint64_t repeats;
    uint64_t tail_records;
    uint64_t seed;
    uint64_t rounds;
    uint64_t numbers[GETS];
    char keys[GETS][ITEM_KEY_BYTES + 1]; /* Of the numbers. */
};

static void *scale_start(const char *directory, const struct bench_size *size)
{
    struct scale *self = must_have(calloc(1, sizeof *self));

    self->puts = size->repeats_small;
    self->repeats = size->repeats_large;
    self->tail_records = size->open_tail;
    self->seed = 4;
    for (size_t i = 0; i < SIZES_MAX && size->scale[i] != 0; i++) {
        char name[32];

        snprintf(name, sizeof name, "%" PRIu64, size->scale[i]);
        self->sizes[i].items = size->scale[i];
        self->sizes[i].directory =
            bench_store_load(directory, name, size->scale[i]);
        self->count++;
    }
    return self;
}

static void add(struct stats *stats, const char *series,
                const struct sized *sized, double value)
{
    char name[SERIES_NAME_BYTES];

    if (snprintf(name, sizeof name, "%s#%" PRIu64, series, sized->items) >=
        SERIES_NAME_BYTES) {
        die("a long name: %s", series);
    }
    stats_add(stats, name, value);
}

/* And, for the ratios, under a name that does not say how many. */
static void add_time(const struct scale *self, struct stats *stats,
                     const char *line, size_t index, double us)
{
    char name[SERIES_NAME_BYTES];

    snprintf(name, sizeof name, "scale_time@%s", line);
    add(stats, name, &self->sizes[index], us);
    if (index == 0 || index + 1 == self->count) {
        snprintf(name, sizeof name, "scale.%s_%s", line,
                 index == 0 ? "few" : "most");
        stats_add(stats, name, us);
    }
}

static void add_medians(const struct scale *self, struct stats *stats,
                        const char *line, struct samples samples[])
{
    for (size_t i = 0; i < self->count; i++) {
        add_time(self, stats, line, i, samples_median(&samples[i]));
        samples_free(&samples[i]);
    }
}

static void choose(struct scale *self, uint64_t count, uint64_t items)
{
    random_keys(self->keys, self->numbers, count, items, &self->seed);
}

/* ---- Once: snapshot and rebuild ------------------------------------------------- */

static void work_and_snapshot(struct scale *self, const struct sized *sized)
{
    struct stele *store = bench_store_open(sized->directory);
    struct stele_error error = {0};

    bench_store_half_fill(store);
    bench_store_delete_us(store, self->keys, DELETES, NULL);
    bench_store_must_hold(store, sized->items - DELETES);
    bench_store_put_items(store, self->numbers, DELETES);
    must(stele_snapshot(store, NULL, &error), &error);
    bench_store_close(store);
}

static double rebuild_us(const struct sized *sized)
{
    const uint64_t start_ns = clock_ns();
    struct stele *store = bench_store_open(sized->directory);
    const double us = (double)(clock_ns() - start_ns) / 1e3;

    if (!bench_store_stats(store).index_rebuilt) {
        die("an index that was removed was not built anew");
    }
    bench_store_must_hold(store, sized->items);
    bench_store_close(store);
    return us;
}

static void measure_rebuild(struct scale *self, struct stats *stats)
{
    for (size_t i = 0; i < self->count; i++) {
        const struct sized *sized = &self->sizes[i];

        choose(self, DELETES, sized->items);
        memory_watch();
        work_and_snapshot(self, sized);
        add(stats, "scale_memory@working", sized, (double)memory_most() / MIB);

        reopen_remove_index(sized->directory);
        memory_watch();
        add_time(self, stats, "rebuild", i, rebuild_us(sized));
        add(stats, "scale_memory@rebuild", sized, (double)memory_most() / MIB);
    }
}

/* ---- Writes --------------------------------------------------------------------- */

static void measure_puts(struct scale *self, struct stats *stats)
{
    struct samples puts[SIZES_MAX] = {{0}};

    for (uint64_t put = 0; put < self->puts; put++) {
        for (size_t i = 0; i < self->count; i++) {
            const struct sized *sized = &self->sizes[i];
            char key[ITEM_KEY_BYTES + 1];

            /* A stride without a pattern, through all of them. */
            item_key(key, put * UINT64_C(2654435761) % sized->items);
            samples_add(&puts[i],
                        bench_store_put_us(sized->store, item_table, key));
        }
    }
    add_medians(self, stats, "put", puts);
}

static void measure_deletes(struct scale *self, struct stats *stats)
{
    struct samples deletes[SIZES_MAX] = {{0}};

    for (uint64_t repeat = 0; repeat < self->repeats; repeat++) {
        for (size_t i = 0; i < self->count; i++) {
            const struct sized *sized = &self->sizes[i];

            choose(self, DELETES, sized->items);
            samples_add(
                &deletes[i],
                bench_store_delete_us(sized->store, self->keys, DELETES, NULL));
            bench_store_must_hold(sized->store, sized->items - DELETES);
            bench_store_put_items(sized->store, self->numbers, DELETES);
        }
    }
    add_medians(self, stats, "delete_1000", deletes);
}

/* ---- Reads ---------------------------------------------------------------------- */

static double get_ns(struct scale *self, const struct sized *sized)
{
    const uint64_t keys = sized->items < GETS ? sized->items : GETS;
    struct stele_error error = {0};
    struct samples gets = {0};
    struct stele_view *view;
    double p50;

    choose(self, keys, sized->items);
    must(stele_view_open(sized->store, &view, &error), &error);
    for (uint64_t first = 0; first < GETS; first += GETS_AT_ONCE) {
        const uint64_t start_ns = clock_ns();

        for (uint64_t i = first; i < first + GETS_AT_ONCE; i++) {
            struct stele_value value;

            must(stele_view_get(view, item_table, self->keys[i % keys],
                                ITEM_KEY_BYTES, &value, &error),
                 &error);
        }
        samples_add(&gets, (double)(clock_ns() - start_ns) / GETS_AT_ONCE);
    }
    stele_view_close(view);
    p50 = samples_median(&gets);
    samples_free(&gets);
    return p50;
}

/* In key order. Returns the nanoseconds for each. */
static double scan_ns(const struct sized *sized, uint64_t count)
{
    struct stele_error error = {0};
    struct stele_cursor *cursor;
    struct stele_view *view;
    uint64_t start_ns;
    double ns;

    must(stele_view_open(sized->store, &view, &error), &error);
    start_ns = clock_ns();
    must(stele_cursor_open(view, item_table, NULL, 0, &cursor, &error), &error);
    for (uint64_t i = 0; i < count; i++) {
        struct stele_entry entry;

        must(stele_cursor_next(cursor, &entry, &error), &error);
    }
    ns = (double)(clock_ns() - start_ns) / (double)count;
    stele_cursor_close(cursor);
    stele_view_close(view);
    return ns;
}

static void measure_reads(struct scale *self, struct stats *stats)
{
    for (size_t i = 0; i < self->count; i++) {
        const struct sized *sized = &self->sizes[i];
        const uint64_t count =
            sized->items < SCAN_MAX ? sized->items : SCAN_MAX;
        struct samples scans = {0};

        scan_ns(sized, sized->items); /* From the disk, if it has to be. */
        add(stats, "scale_read@get", sized, get_ns(self, sized));
        for (uint64_t repeat = 0; repeat < self->repeats; repeat++) {
            samples_add(&scans, scan_ns(sized, count));
        }
        add(stats, "scale_read@scan", sized, samples_median(&scans));
        samples_free(&scans);
    }
}

/* ---- Opening -------------------------------------------------------------------- */

static void measure_clean(struct scale *self, struct stats *stats)
{
    struct samples opens[SIZES_MAX] = {{0}};

    for (uint64_t repeat = 0; repeat < self->repeats; repeat++) {
        for (size_t i = 0; i < self->count; i++) {
            samples_add(&opens[i], reopen_us(self->sizes[i].directory, 0));
        }
    }
    add_medians(self, stats, "open_clean", opens);
}

static void measure_killed(struct scale *self, struct stats *stats)
{
    struct samples opens[SIZES_MAX] = {{0}};

    for (uint64_t repeat = 0; repeat < self->repeats; repeat++) {
        for (size_t i = 0; i < self->count; i++) {
            const char *directory = self->sizes[i].directory;

            reopen_leave_tail(directory, self->tail_records);
            samples_add(&opens[i], reopen_us(directory, self->tail_records));
        }
    }
    add_medians(self, stats, "open_killed", opens);
}

/* ---- The round ------------------------------------------------------------------ */

static void open_all(struct scale *self)
{
    struct stele_error error = {0};

    for (size_t i = 0; i < self->count; i++) {
        struct sized *sized = &self->sizes[i];

        sized->store = bench_store_open(sized->directory);
        if (sized->items <= SNAPSHOT_ITEMS_MAX) {
            must(stele_snapshot(sized->store, NULL, &error), &error);
        }
    }
}

static void close_all(struct scale *self)
{
    for (size_t i = 0; i < self->count; i++) {
        bench_store_close(self->sizes[i].store);
    }
}

static void scale_round(void *workload, struct stats *stats)
{
    struct scale *self = workload;

    if (self->rounds++ == 0) {
        measure_rebuild(self, stats);
    }
    measure_clean(self, stats);
    open_all(self);
    measure_puts(self, stats);
    measure_deletes(self, stats);
    measure_reads(self, stats);
    close_all(self);
    measure_killed(self, stats);
}

static void scale_finish(void *workload)
{
    struct scale *self = workload;

    for (size_t i = 0; i < self->count; i++) {
        free(self->sizes[i].directory);
    }
    free(self);
}

static const struct bench_ratio ratios[] = {
    {"durable put, p50, 10,000,000 items, over 1,000 items", "scale.put_most",
     "us", BENCH_AT_MOST, 1.25, .floor = "scale.put_few"},
    {"batch delete of 1,000, 10,000,000 items, over 1,000 items",
     "scale.delete_1000_most", "us", BENCH_AT_MOST, 0,
     .floor = "scale.delete_1000_few"},
    {"open after a kill, 10,000,000 items, over 1,000 items",
     "scale.open_killed_most", "us", BENCH_AT_MOST, 1.5,
     .floor = "scale.open_killed_few"},
};

static const struct bench_plot plots[] = {
    {"scale_time", "What depends on the number of items, and what does not",
     "items in the store", "microseconds", "scale_time"},
    {"scale_read", "Reading, by the number of items", "items in the store",
     "nanoseconds an item", "scale_read"},
    {"scale_memory", "Peak memory, by the number of items",
     "items in the store", "MiB, map of the index left out", "scale_memory"},
};

const struct bench_workload workload_scale = {
    .name = "scale",
    .ratios = ratios,
    .ratio_count = sizeof ratios / sizeof ratios[0],
    .plots = plots,
    .plot_count = sizeof plots / sizeof plots[0],
    .start = scale_start,
    .round = scale_round,
    .finish = scale_finish,
};
