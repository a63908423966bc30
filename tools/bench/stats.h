/*
 * tools/bench/stats.h -- samples, their percentiles, and named series of them.
 */
#ifndef TOOLS_BENCH_STATS_H
#define TOOLS_BENCH_STATS_H

#include <stddef.h>
#include <stdint.h>

uint64_t clock_ns(void);

/* A growing list of numbers. Zero-initialize. */
struct samples {
    double *values;
    size_t count;
    size_t capacity;
};

void samples_add(struct samples *samples, double value);
/* `percentile` 0 to 100. Sorts. At least one sample. */
double samples_percentile(struct samples *samples, double percentile);
void samples_free(struct samples *samples);

/* Series by name, one sample a round. Zero-initialize. */
struct stats {
    struct stats_series *series;
    size_t count;
};

void stats_add(struct stats *stats, const char *name, double value);
/* Dies if there is no such series. */
double stats_median(struct stats *stats, const char *name);
void stats_free(struct stats *stats);

#endif
