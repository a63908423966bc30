/*
 * tools/bench/bench.h -- what a workload of stele-bench is.
 *
 * A run goes through its workloads round by round, so that whatever else the
 * machine does hits all of them alike, and within a round a workload takes turns
 * with its floor: the same bytes by bare system calls. Only ratios of medians
 * over the rounds of one run are believed.
 *
 * To add one: write workload_<name>.c, declare it below, list it in main.c.
 */
#ifndef TOOLS_BENCH_BENCH_H
#define TOOLS_BENCH_BENCH_H

#include <stdint.h>

#include "tools/bench/stats.h"

struct bench_size {
    uint64_t items;         /* In the table that is worked on. */
    uint64_t prefix_keys;   /* That one prefix delete deletes. */
    uint64_t repeats_small; /* In a round, of what takes well below 1 ms. */
    uint64_t repeats_large;
    uint64_t threads_ms;       /* For each number of threads. */
    uint64_t open_items;       /* In the index of the larger store. */
    uint64_t open_tail;        /* Records that are not. */
    uint64_t steady_log_bytes; /* A tenth of what is written. */
};

enum bench_direction { BENCH_AT_MOST, BENCH_AT_LEAST };

/* One line of the report: the series `stele` over the series `floor`. */
struct bench_ratio {
    const char *what;
    const char *stele;
    const char *floor;
    const char *unit;
    enum bench_direction direction;
    double bar;  /* Missed: the run fails. 0: none. */
    double goal; /* Only reported, unless --strict. 0: none. */
};

struct bench_workload {
    const char *name;
    const struct bench_ratio *ratios;
    size_t ratio_count;
    /* Make what the rounds need in `directory`, which is empty. */
    void *(*start)(const char *directory, const struct bench_size *size);
    /* Add one sample to each series. */
    void (*round)(void *workload, struct stats *stats);
    void (*finish)(void *workload);
};

extern const struct bench_workload workload_put;
extern const struct bench_workload workload_batch_delete;
extern const struct bench_workload workload_prefix_delete;
extern const struct bench_workload workload_threads;
extern const struct bench_workload workload_open;
extern const struct bench_workload workload_rebuild;
extern const struct bench_workload workload_steady;

#endif
