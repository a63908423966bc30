/*
 * tools/bench/stats.h -- samples, their percentiles, and named series of them.
 */
#ifndef TOOLS_BENCH_STATS_H
#define TOOLS_BENCH_STATS_H

#include <stdbool.h>
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
/* Of an even count the mean of the two in the middle. */
double samples_median(struct samples *samples);
void samples_free(struct samples *samples);

/* Series by name, one sample a round. Zero-initialize. */
struct stats {
    struct stats_series *series;
    size_t count;
};

void stats_add(struct stats *stats, const char *name, double value);
/* To "what@line#x". */
void stats_add_point(struct stats *stats, const char *what, const char *line,
                     uint64_t x, double value);
bool stats_has(const struct stats *stats, const char *name);
/* Dies if there is no such series. */
double stats_median(const struct stats *stats, const char *name);
/* The least and the greatest of numerator over denominator, round by round.
 * `denominator` NULL: over `constant`. */
void stats_spread(const struct stats *stats, const char *numerator,
                  const char *denominator, double constant, double *least_out,
                  double *greatest_out);

/* A series' name "what@line#x", taken apart. Without a line: "". Without x: -1. */
enum { SERIES_NAME_BYTES = 64 };
struct series_name {
    char what[SERIES_NAME_BYTES];
    char line[SERIES_NAME_BYTES];
    double x;
};

/* Of the series number `index`, in the order in which they were first added; false:
 * there are no more. */
bool stats_series_name(const struct stats *stats, size_t index,
                       char name_out[SERIES_NAME_BYTES]);
void series_name_parse(const char *name, struct series_name *parsed_out);
/* The name with another line. */
void series_name_replace_line(const char *name, const char *line,
                              char name_out[SERIES_NAME_BYTES]);

void stats_free(struct stats *stats);

#endif
