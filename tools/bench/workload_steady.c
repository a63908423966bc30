/*
 * tools/bench/workload_steady.c -- the size of a store's directory after random
 * writes of ten times the log that makes a snapshot due, over the formula of
 * DESIGN.md ("Retention").
 */
#include <errno.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "tools/bench/bench.h"
#include "tools/bench/store.h"
#include "tools/must/must.h"

enum { DIRECTORY_BYTES = 4096, TRIGGERS = 10 };

#define MIB           ((uint64_t)1 << 20)
#define TRIGGER_LEAST (64 * MIB)

struct steady_workload {
    char directory[DIRECTORY_BYTES];
    uint64_t items;
    uint64_t log_bytes; /* To write in a round. */
    uint64_t seed;
};

static void *steady_start(const char *directory, const struct bench_size *size)
{
    struct steady_workload *self = must_have(calloc(1, sizeof *self));
    struct stele *store;

    snprintf(self->directory, sizeof self->directory, "%s", directory);
    self->items = size->items;
    self->log_bytes = TRIGGERS * size->steady_log_bytes;
    self->seed = 1;
    store = bench_store_create(self->directory);
    bench_store_put_items(store, NULL, self->items);
    bench_store_close(store);
    return self;
}

static uint64_t counted_bytes;
static uint64_t counted_index_bytes;

static int count_file(const char *path, const struct stat *info, int type,
                      struct FTW *where)
{
    const char *name = path + where->base;

    if (type == FTW_F) {
        counted_bytes += (uint64_t)info->st_blocks * 512;
        if (name[0] == 'd') { /* index/data.mdb */
            counted_index_bytes = (uint64_t)info->st_blocks * 512;
        }
    }
    return 0;
}

static void count_directory(const struct steady_workload *self)
{
    char path[DIRECTORY_BYTES + 16];

    counted_bytes = 0;
    counted_index_bytes = 0;
    snprintf(path, sizeof path, "%s/store", self->directory);
    if (nftw(path, count_file, 16, FTW_PHYS) != 0) {
        die("%s: %s", path, strerror(errno));
    }
}

/* index + 3 S + 2 max(64 MiB, S) + 4 x 64 MiB + 3 segments: DESIGN.md, without what
 * batches take that wait for the checkpoint. */
static uint64_t allowed(struct stele *store)
{
    struct stele_snapshot_info info = {0};
    struct stele_error error = {0};
    uint64_t snapshot = 0;

    while (stele_snapshot_next(store, info.lsn, &info, &error) == STELE_OK) {
        snapshot = info.bytes;
    }
    return counted_index_bytes + 3 * snapshot +
           2 * (snapshot > TRIGGER_LEAST ? snapshot : TRIGGER_LEAST) +
           4 * TRIGGER_LEAST + 3 * bench_store_stats(store).segment_bytes;
}

static void steady_round(void *workload, struct stats *stats)
{
    struct steady_workload *self = workload;
    struct stele *store = bench_store_open(self->directory);

    bench_store_write_at_random(store, self->items, self->log_bytes,
                                STELE_DURABLE, &self->seed);
    count_directory(self);
    stats_add(stats, "steady.bytes", (double)counted_bytes);
    stats_add(stats, "steady.allowed", (double)allowed(store));
    stats_add(stats, "steady.snapshots",
              (double)bench_store_stats(store).snapshots_taken);
    bench_store_close(store);
}

static void steady_finish(void *workload)
{
    free(workload);
}

static const struct bench_ratio ratios[] = {
    {"directory after 10 x 64 MiB of random writes, over the formula",
     "steady.bytes", "B", BENCH_AT_MOST, 1.0, .floor = "steady.allowed",
     .each = true},
    {"snapshots that were taken meanwhile, over 5", "steady.snapshots", "",
     BENCH_AT_LEAST, 1.0, .constant = TRIGGERS / 2, .each = true},
};

const struct bench_workload workload_steady = {
    .name = "steady",
    .ratios = ratios,
    .ratio_count = sizeof ratios / sizeof ratios[0],
    .start = steady_start,
    .round = steady_round,
    .finish = steady_finish,
};
