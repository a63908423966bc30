/*
 * tools/bench/bench.h -- what a workload of stele-bench is.
 *
 * A run goes through its workloads round by round, so that whatever else the
 * machine does hits all of them alike, and within a round a workload takes turns
 * with its floor: the same bytes by bare system calls, the same reads of a bare
 * LMDB, or other stores doing the same. Only ratios of medians over the rounds of
 * one run are believed.
 *
 * A series has a name like "delete@rocksdb#1000": what is measured, of whom (a
 * line of a plot), and at which value of what varies (its x axis). The last two
 * are optional.
 *
 * To add one: write workload_<name>.c, declare it below, list it in main.c.
 */
#ifndef TOOLS_BENCH_BENCH_H
#define TOOLS_BENCH_BENCH_H

#include <stdbool.h>
#include <stdint.h>

#include "tools/bench/stats.h"

struct bench_size {
    bool quick;             /* Too small to be believed: for the tests. */
    uint64_t items;         /* In the table that is worked on. */
    uint64_t prefix_keys;   /* That one prefix delete deletes. */
    uint64_t repeats_small; /* In a round, of what takes well below 1 ms. */
    uint64_t repeats_large;
    uint64_t threads_ms;       /* In a round, for each number of threads. */
    uint64_t peer_threads_ms;  /* The same for peers; a sixth for 1 and 4. */
    uint64_t peer_cap_ms;      /* Nothing is repeated on a peer for longer. */
    uint64_t open_items;       /* In the index of the larger store. */
    uint64_t open_tail;        /* Records that are not. */
    uint64_t steady_log_bytes; /* A tenth of what is written. */
    /* Of a window in which latencies are watched, at least: */
    uint64_t impact_ms;
    uint64_t impact_reads;  /* In a round, of each kind of window. */
    uint64_t impact_cycles; /* Batches, checkpoints and snapshots in it. */
    uint64_t impact_batch_items;
    uint64_t bytes_items;   /* That are put while bytes are counted. */
    uint64_t largest_batch; /* Puts in it. */
    uint64_t scale[4];      /* Items, from few to many; 0: no more. */
};

enum bench_direction { BENCH_AT_MOST, BENCH_AT_LEAST };

/* One line of the report: the series `stele` over something else. What is not
 * measured at the size of a quick run is left out of its report. */
struct bench_ratio {
    const char *what;
    const char *stele;
    const char *unit;
    enum bench_direction direction;
    double bar; /* Missed: the run fails. 0: none. */
    bool each;  /* It holds in each round, not for the medians only. */
    /* What it stands over, one of these: */
    const char *floor; /* A series. */
    double constant;
    /* The best of the series that are named as `stele` is, but of these, NULL behind
     * the last, as far as they were measured. */
    const char *const *rivals;
};

/* A picture: a line for each name behind '@' in the series `series`, over what is
 * behind '#'. Both axes are logarithmic. */
struct bench_plot {
    const char *file; /* Without ".svg". */
    const char *title;
    const char *x_label;
    const char *y_label;
    const char *series;
};

struct bench_workload {
    const char *name;
    const struct bench_ratio *ratios;
    size_t ratio_count;
    const struct bench_plot *plots;
    size_t plot_count;
    /* Make what the rounds need in `directory`, which is empty. */
    void *(*start)(const char *directory, const struct bench_size *size);
    /* Add a sample to each series that the round measures. */
    void (*round)(void *workload, struct stats *stats);
    void (*finish)(void *workload);
};

extern const struct bench_workload workload_put;
extern const struct bench_workload workload_batch_delete;
extern const struct bench_workload workload_prefix_delete;
extern const struct bench_workload workload_threads;
extern const struct bench_workload workload_open;
extern const struct bench_workload workload_reads;
extern const struct bench_workload workload_rebuild;
extern const struct bench_workload workload_steady;
extern const struct bench_workload workload_impact;
extern const struct bench_workload workload_bytes;
extern const struct bench_workload workload_relaxed;
extern const struct bench_workload workload_memory;
extern const struct bench_workload workload_scale;
extern const struct bench_workload workload_peers;

#endif
