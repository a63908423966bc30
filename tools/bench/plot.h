/*
 * tools/bench/plot.h -- pictures of a run: SVG files, drawn by gnuplot.
 */
#ifndef TOOLS_BENCH_PLOT_H
#define TOOLS_BENCH_PLOT_H

#include "tools/bench/bench.h"

/* Dies if gnuplot is not installed, or nothing can be written to the directory: better
 * before the run than behind it. */
void plot_check(const char *directory);

/* Write directory/<file>.svg of what was measured. Dies if gnuplot is not installed
 * or fails. Nothing is drawn of a plot without series. */
void plot_draw(const struct bench_plot *plot, const struct stats *stats,
               const char *directory);

#endif
