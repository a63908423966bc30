/*
 * tools/bench/workload_bytes.c -- bytes written and syncs, counted from outside
 * the store (tools/bench/counted.h), beside LMDB's own durable commits.
 *
 * 1. Syncs of the log, around each durable commit of batches of many sizes and of
 *    a delete by prefix: exactly one each. What the background syncs meanwhile
 *    (segments being prepared, ANCHOR, checkpoints, opening and closing) is told
 *    beside it, shared out among the same commits.
 * 2. Write amplification: all bytes written to all files, zeros of prepared
 *    segments, index and snapshots included, over the bytes of keys and values
 *    that were put: by a load into an empty store, opened and closed; then by
 *    overwriting all of it some more times, in order, and at random. Segments have
 *    the default's 64 MiB: the load pays for a whole one and does not fill half.
 * 3. The same commits by Stele and by a bare LMDB, each in a process of its own:
 *    all bytes from opening a store that was closed cleanly up to its next close,
 *    the checkpoint that the commits owe included. Segments are small beside what
 *    is committed, so that each commit pays for its share of zeros.
 *
 * Bytes are what was handed to the kernel, not what the disk made of it.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/bench/bench.h"
#include "tools/bench/bytes_job.h"
#include "tools/bench/store.h"
#include "tools/must/must.h"

enum {
    DIRECTORY_BYTES = 4096,
    BATCH_ITEMS = 1000,
    /* Of all items. What is written by so many is the log of three default segments
     * within 1 %, so that each pass pays for its share of zeros, no more or less. */
    OVERWRITES = 8,
};

struct bytes {
    bool wanted; /* In the next round. */
    bool quick;
    char directory[DIRECTORY_BYTES];
    uint64_t items;
    uint64_t prefix_keys;
    uint64_t commits_of_a_size; /* At most. */
    uint64_t overwrites;
};

/* What Stele and LMDB both do. The items that are committed are all there are,
 * over `share`. */
struct compared {
    const char *work;
    const char *x;        /* Of the series' name. */
    uint64_t batch_items; /* 0: all items. */
    uint64_t share;
};

static const struct compared compared[] = {
    /* The log of so many single puts makes a checkpoint due (64 MiB), and little more. */
    {"put", "1", 1, 6},          {"put", "50", 50, 4},
    {"put", "1000", 1000, 1},    {"load", "1000", 1000, 1},
    {"delete", "1000", 1000, 2}, {"delete_prefix", "100000", 0, 1},
};
enum { COMPARED = sizeof compared / sizeof compared[0] };

static void *bytes_start(const char *directory, const struct bench_size *size)
{
    struct bytes *self = must_have(calloc(1, sizeof *self));

    self->quick = size->quick;
    self->wanted = counted_is_possible();
    if (!self->wanted) {
        fprintf(stderr, "bytes: there is no counter to preload beside this "
                        "program (sanitizer builds have none): not measured\n");
    }
    snprintf(self->directory, sizeof self->directory, "%s/job", directory);
    self->items = size->bytes_items;
    self->prefix_keys = size->prefix_keys;
    self->commits_of_a_size = size->repeats_small / 10;
    self->overwrites = size->quick ? 1 : OVERWRITES;
    return self;
}

/* ---- Syncs of a commit ------------------------------------------------------ */

/* Of all commits. */
struct sync_extremes {
    uint64_t least;
    uint64_t most;
};

/* Returns how many commits there were. */
static uint64_t add_size(struct stats *stats, const struct counted *counted,
                         const struct bytes_job_size *size,
                         struct sync_extremes *extremes)
{
    char name[SERIES_NAME_BYTES];
    uint64_t commits = 0;
    uint64_t total = 0;

    for (size_t i = 1; i < counted->count; i++) {
        const struct counted_mark *mark = &counted->marks[i];
        uint64_t syncs;

        if (strcmp(mark->name, size->name) != 0) {
            continue;
        }
        syncs = mark->counts.syncs[COUNTED_LOG] -
                mark[-1].counts.syncs[COUNTED_LOG];
        total += syncs;
        commits++;
        extremes->least = syncs < extremes->least ? syncs : extremes->least;
        extremes->most = syncs > extremes->most ? syncs : extremes->most;
    }
    snprintf(name, sizeof name, "commit_syncs%s%s",
             size->puts == 0 ? "." : "@stele#", size->name);
    stats_add(stats, name, (double)total / (double)commits);
    return commits;
}

static void count_syncs(const struct bytes *self, struct stats *stats)
{
    const struct bytes_job job = {
        .work = "sizes",
        .whom = "stele",
        .directory = self->directory,
        .items = self->prefix_keys,
        .commits = self->commits_of_a_size,
    };
    struct sync_extremes extremes = {.least = UINT64_MAX};
    struct counted counted;
    uint64_t commits = 0;
    struct counts all;
    uint64_t others;

    bytes_job_count(&job, &counted);
    for (size_t i = 0; i < BYTES_JOB_SIZES; i++) {
        commits += add_size(stats, &counted, &bytes_job_sizes[i], &extremes);
    }
    all = counts_between(counted_at(&counted, "begin"),
                         counted_at(&counted, "end"));
    others = counts_syncs(&all) - all.syncs[COUNTED_LOG];
    stats_add(stats, "commit_syncs.least", (double)extremes.least);
    stats_add(stats, "commit_syncs.most", (double)extremes.most);
    stats_add(stats, "commit_syncs.others", (double)others / (double)commits);
    counted_free(&counted);
}

/* ---- Write amplification ---------------------------------------------------- */

/* Beside it, of what the bytes are. */
static void add_amplification(struct stats *stats, const char *what,
                              const struct counts *counts, double item_bytes)
{
    char name[SERIES_NAME_BYTES];

    snprintf(name, sizeof name, "amplification.%s", what);
    stats_add(stats, name, (double)counts_bytes(counts));
    snprintf(name, sizeof name, "amplification.%s.items", what);
    stats_add(stats, name, item_bytes);
    for (size_t file = 0; file < COUNTED_CLASSES; file++) {
        snprintf(name, sizeof name, "amplification.%s@%s", what,
                 counted_class_names[file]);
        stats_add(stats, name, (double)counts->bytes[file] / item_bytes);
    }
}

static void count_amplification(const struct bytes *self, struct stats *stats)
{
    static const char *const parts[] = {"load", "in_order", "at_random"};
    const double item_bytes =
        (double)(self->items * (ITEM_KEY_BYTES + ITEM_VALUE_BYTES));
    const struct bytes_job job = {
        .work = "overwrite",
        .whom = "stele",
        .directory = self->directory,
        .items = self->items,
        .batch_items = BATCH_ITEMS,
        .commits = self->overwrites,
    };
    struct counted counted;
    const struct counts *begin;

    bytes_job_count(&job, &counted);
    begin = counted_at(&counted, "begin");
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) {
        const struct counts *end = counted_at(&counted, parts[i]);
        const struct counts counts = counts_between(begin, end);

        add_amplification(stats, parts[i], &counts,
                          i == 0 ? item_bytes
                                 : (double)job.commits * item_bytes);
        begin = end;
    }
    counted_free(&counted);
}

/* ---- Stele beside LMDB ------------------------------------------------------ */

static void add_compared(struct stats *stats, const char *what,
                         const struct compared *one, const char *line,
                         double value)
{
    char name[SERIES_NAME_BYTES];

    snprintf(name, sizeof name, "%s.%s@%s#%s", what, one->work, line, one->x);
    stats_add(stats, name, value);
}

static void count_one(const struct bytes *self, struct stats *stats,
                      const struct compared *one, const char *whom)
{
    const uint64_t batch_items =
        one->batch_items == 0 ? self->items : one->batch_items;
    const struct bytes_job job = {
        .work = one->work,
        .whom = whom,
        .directory = self->directory,
        .items = self->items,
        .batch_items = batch_items,
        .commits = self->items / one->share / batch_items,
    };
    const double commits = (double)job.commits;
    struct counted counted;
    struct counts counts;

    bytes_job_count(&job, &counted);
    counts = counts_between(counted_at(&counted, "begin"),
                            counted_at(&counted, "end"));
    counted_free(&counted);
    add_compared(stats, "bytes", one, whom,
                 (double)counts_bytes(&counts) / commits);
    add_compared(stats, "syncs", one, whom,
                 (double)counts_syncs(&counts) / commits);
    if (strcmp(whom, "stele") != 0) {
        return; /* LMDB's are all of one class. */
    }
    for (size_t file = 0; file < COUNTED_CLASSES; file++) {
        add_compared(stats, "stele_bytes", one, counted_class_names[file],
                     (double)counts.bytes[file] / commits);
    }
}

/* ---- The workload ----------------------------------------------------------- */

static void bytes_round(void *workload, struct stats *stats)
{
    struct bytes *self = workload;

    if (!self->wanted) {
        return;
    }
    self->wanted = !self->quick; /* Counts hardly vary: once may do. */
    count_syncs(self, stats);
    count_amplification(self, stats);
    for (size_t i = 0; i < COMPARED; i++) {
        count_one(self, stats, &compared[i], "stele");
        count_one(self, stats, &compared[i], "lmdb");
    }
}

static void bytes_finish(void *workload)
{
    free(workload);
}

static const struct bench_ratio ratios[] = {
    {"syncs of the log per durable commit, 1 put", "commit_syncs@stele#1", "",
     BENCH_AT_MOST, 1.0, .constant = 1, .each = true},
    {"the same, 10 puts", "commit_syncs@stele#10", "", BENCH_AT_MOST, 1.0,
     .constant = 1, .each = true},
    {"the same, 1,000 puts", "commit_syncs@stele#1000", "", BENCH_AT_MOST, 1.0,
     .constant = 1, .each = true},
    {"the same, 100,000 puts", "commit_syncs@stele#100000", "", BENCH_AT_MOST,
     1.0, .constant = 1, .each = true},
    {"the same, 1,000,000 puts", "commit_syncs@stele#1000000", "",
     BENCH_AT_MOST, 1.0, .constant = 1, .each = true},
    {"the same, delete by prefix of 1,000,000 keys", "commit_syncs.prefix", "",
     BENCH_AT_MOST, 1.0, .constant = 1, .each = true},
    {"the most of any of these commits", "commit_syncs.most", "", BENCH_AT_MOST,
     1.0, .constant = 1, .each = true},
    {"the least of any of these commits", "commit_syncs.least", "",
     BENCH_AT_LEAST, 1.0, .constant = 1, .each = true},
    {"syncs of everything else, in the background, per commit",
     "commit_syncs.others", "", BENCH_AT_MOST, 0, .constant = 1},
    {"all bytes written, over keys and values; load of 100,000",
     "amplification.load", "B", BENCH_AT_MOST, 5.0,
     .floor = "amplification.load.items"},
    {"the same, all of them put 8 more times in order",
     "amplification.in_order", "B", BENCH_AT_MOST, 5.0,
     .floor = "amplification.in_order.items"},
    {"the same, all of them put 8 more times at random",
     "amplification.at_random", "B", BENCH_AT_MOST, 5.0,
     .floor = "amplification.at_random.items"},
    {"all bytes written per commit, 1 random put, over bare LMDB",
     "bytes.put@stele#1", "B", BENCH_AT_MOST, 0.5, .floor = "bytes.put@lmdb#1"},
    {"the same, 50 random puts", "bytes.put@stele#50", "B", BENCH_AT_MOST, 0.5,
     .floor = "bytes.put@lmdb#50"},
    {"the same, 1,000 random puts", "bytes.put@stele#1000", "B", BENCH_AT_MOST,
     0.5, .floor = "bytes.put@lmdb#1000"},
    {"the same, 1,000 puts in order, from an empty store",
     "bytes.load@stele#1000", "B", BENCH_AT_MOST, 0.5,
     .floor = "bytes.load@lmdb#1000"},
    {"the same, 1,000 random deletes", "bytes.delete@stele#1000", "B",
     BENCH_AT_MOST, 0.5, .floor = "bytes.delete@lmdb#1000"},
    {"the same, delete by prefix of 100,000 keys",
     "bytes.delete_prefix@stele#100000", "B", BENCH_AT_MOST, 0.5,
     .floor = "bytes.delete_prefix@lmdb#100000"},
};

const struct bench_workload workload_bytes = {
    .name = "bytes",
    .ratios = ratios,
    .ratio_count = sizeof ratios / sizeof ratios[0],
    .start = bytes_start,
    .round = bytes_round,
    .finish = bytes_finish,
};
