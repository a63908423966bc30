/*
 * tools/bench/report.h -- what a run found: ratios with their bars, and every series.
 */
#ifndef TOOLS_BENCH_REPORT_H
#define TOOLS_BENCH_REPORT_H

#include <stdbool.h>
#include <stdio.h>

#include "tools/bench/bench.h"

struct bench_verdict {
    unsigned missed;     /* Bars. */
    unsigned unmeasured; /* What has a bar and could not be measured here. */
};

/* One line for each ratio of the workload: medians, ratio, its least and greatest over
 * the rounds, the bar. With `bars` false none is held against anything. */
struct bench_verdict report_ratios(FILE *file,
                                   const struct bench_workload *workload,
                                   const struct stats *stats, bool bars);
void report_ratios_head(FILE *file);
struct bench_verdict report_ratios_json(FILE *file,
                                        const struct bench_workload *workload,
                                        const struct stats *stats, bool bars);

/* The medians of all series that have lines: a row for each x, a column for each
 * line. */
void report_tables(FILE *file, const struct stats *stats);
/* The medians of all series, an object each. */
void report_series_json(FILE *file, const struct stats *stats);

#endif
