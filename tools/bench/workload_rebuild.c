/*
 * tools/bench/workload_rebuild.c -- taking a snapshot, and opening without an index.
 *
 * One store with many items. In each round some of them change and a snapshot is
 * taken; then index/ is removed, and the next open loads the snapshot and replays
 * the log behind it. The state before and after is compared by a digest of every
 * item: key, value and LSN.
 */
#include <stdio.h>
#include <stdlib.h>

#include "base/checksum.h"
#include "tools/bench/bench.h"
#include "tools/bench/memory.h"
#include "tools/bench/reopen.h"
#include "tools/bench/store.h"
#include "tools/must/must.h"

enum { DIRECTORY_BYTES = 4096, CHANGES_PER_TENTH = 10 };

#define REBUILD_US_MAX 2e6
#define MEMORY_MAX     ((double)(64 << 20))

struct rebuild_workload {
    char directory[DIRECTORY_BYTES];
    uint64_t items;
    uint64_t changes; /* In a round. */
};

static void *rebuild_start(const char *directory, const struct bench_size *size)
{
    struct rebuild_workload *self = must_have(calloc(1, sizeof *self));
    struct stele *store;

    snprintf(self->directory, sizeof self->directory, "%s", directory);
    self->items = size->open_items;
    self->changes = size->open_tail;
    store = bench_store_create(self->directory);
    bench_store_put_items(store, NULL, self->items);
    bench_store_close(store);
    return self;
}

static uint64_t digest_of(struct stele *store)
{
    struct stele_error error = {0};
    struct stele_cursor *cursor;
    struct stele_entry entry;
    struct stele_view *view;
    uint64_t digest = 0;
    enum stele_status status;

    must(stele_view_open(store, &view, &error), &error);
    must(stele_cursor_open(view, item_table, NULL, 0, &cursor, &error), &error);
    while ((status = stele_cursor_next(cursor, &entry, &error)) == STELE_OK) {
        digest = checksum64_pair(entry.key, entry.key_bytes, entry.value.data,
                                 entry.value.bytes, digest ^ entry.value.lsn);
    }
    if (status != STELE_NOT_FOUND) {
        must(status, &error);
    }
    stele_cursor_close(cursor);
    stele_view_close(view);
    return digest;
}

static uint64_t take_snapshot(const struct rebuild_workload *self,
                              struct stats *stats)
{
    struct stele *store = bench_store_open(self->directory);
    struct stele_error error = {0};
    uint64_t start_ns;
    uint64_t digest;

    bench_store_put_items(store, NULL, self->changes);
    memory_watch();
    start_ns = clock_ns();
    must(stele_snapshot(store, NULL, &error), &error);
    stats_add(stats, "rebuild.snapshot", (double)(clock_ns() - start_ns) / 1e3);
    stats_add(stats, "rebuild.snapshot_memory", (double)memory_most());
    bench_store_put_items(store, NULL, self->changes / CHANGES_PER_TENTH);
    digest = digest_of(store);
    bench_store_close(store);
    return digest;
}

static void rebuild_round(void *workload, struct stats *stats)
{
    const struct rebuild_workload *self = workload;
    const uint64_t before = take_snapshot(self, stats);
    struct stele *store;
    uint64_t start_ns;

    reopen_remove_index(self->directory);
    memory_watch();
    start_ns = clock_ns();
    store = bench_store_open(self->directory);
    stats_add(stats, "rebuild.open", (double)(clock_ns() - start_ns) / 1e3);
    stats_add(stats, "rebuild.memory", (double)memory_most());
    if (!bench_store_stats(store).index_rebuilt || digest_of(store) != before) {
        die("a rebuilt index is not the state that it was");
    }
    bench_store_close(store);
}

static void rebuild_finish(void *workload)
{
    free(workload);
}

static const struct bench_ratio ratios[] = {
    {"open without an index, 1,000,000 items, over 2 s", "rebuild.open", "us",
     BENCH_AT_MOST, 1.0, .constant = REBUILD_US_MAX},
    {"memory of that, LMDB's map left out, over 64 MiB", "rebuild.memory", "B",
     BENCH_AT_MOST, 1.0, .constant = MEMORY_MAX},
    {"memory of taking a snapshot, over 64 MiB", "rebuild.snapshot_memory", "B",
     BENCH_AT_MOST, 1.0, .constant = MEMORY_MAX},
    {"taking a snapshot, 1,000,000 items, over 2 s", "rebuild.snapshot", "us",
     BENCH_AT_MOST, 1.0, .constant = REBUILD_US_MAX},
};

const struct bench_workload workload_rebuild = {
    .name = "rebuild",
    .ratios = ratios,
    .ratio_count = sizeof ratios / sizeof ratios[0],
    .start = rebuild_start,
    .round = rebuild_round,
    .finish = rebuild_finish,
};
