/*
 * tools/bench/plot.c -- see tools/bench/plot.h.
 *
 * gnuplot gets a script on its standard input, the data in it. What it draws has no
 * date and no path, so that the same numbers make the same file.
 */
#include "tools/bench/plot.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tools/bench/names.h"
#include "tools/must/must.h"

static void find_lines(const struct bench_plot *plot, const struct stats *stats,
                       struct names *lines_out)
{
    char name[SERIES_NAME_BYTES];

    lines_out->count = 0;
    for (size_t i = 0; stats_series_name(stats, i, name); i++) {
        struct series_name parsed;

        series_name_parse(name, &parsed);
        if (strcmp(parsed.what, plot->series) == 0 && parsed.x > 0) {
            names_add(lines_out, parsed.line);
        }
    }
}

static void write_data(FILE *script, const struct bench_plot *plot,
                       const struct stats *stats, const char *line)
{
    char name[SERIES_NAME_BYTES];

    for (size_t i = 0; stats_series_name(stats, i, name); i++) {
        struct series_name parsed;

        series_name_parse(name, &parsed);
        if (strcmp(parsed.what, plot->series) == 0 &&
            strcmp(parsed.line, line) == 0 && parsed.x > 0) {
            fprintf(script, "%.17g %.17g\n", parsed.x,
                    stats_median(stats, name));
        }
    }
}

static void write_script(FILE *script, const struct bench_plot *plot,
                         const struct stats *stats, const struct names *lines,
                         const char *directory)
{
    fprintf(script,
            "set terminal svg size 720,420 font 'sans-serif,13' "
            "background 'white'\n"
            "set output '%s/%s.svg'\n"
            "set title '%s'\nset xlabel '%s'\nset ylabel '%s'\n"
            "set logscale xy\nset format x '%%.0s%%c'\n"
            "set format y '%%.0s%%c'\nset grid\nset offsets graph 0.05, graph "
            "0.05\n"
            "set key outside right top\n"
            "set linetype 9 lc rgb 'gray50'\nset linetype cycle 9\n",
            directory, plot->file, plot->title, plot->x_label, plot->y_label);
    for (size_t i = 0; i < lines->count; i++) {
        fprintf(script, "$data%zu << END\n", i);
        write_data(script, plot, stats, lines->names[i]);
        fprintf(script, "END\n");
    }
    fprintf(script, "plot ");
    for (size_t i = 0; i < lines->count; i++) {
        fprintf(script,
                "%s$data%zu with linespoints lw %d pt 7 ps 0.6 title "
                "'%s' noenhanced",
                i == 0 ? "" : ", ", i,
                strcmp(lines->names[i], "stele") == 0 ? 3 : 1, lines->names[i]);
    }
    fputc('\n', script);
}

void plot_check(const char *directory)
{
    if (access(directory, W_OK | X_OK) != 0) {
        die("%s: %s", directory, strerror(errno));
    }
    if (system("gnuplot --version > /dev/null 2>&1") != 0) {
        die("gnuplot is not installed");
    }
}

void plot_draw(const struct bench_plot *plot, const struct stats *stats,
               const char *directory)
{
    struct names lines;
    FILE *script;

    find_lines(plot, stats, &lines);
    if (lines.count == 0) {
        return;
    }
    signal(SIGPIPE, SIG_IGN); /* pclose() says how gnuplot ended. */
    script = popen("gnuplot", "w");
    if (script == NULL) {
        die("gnuplot: %s", strerror(errno));
    }
    write_script(script, plot, stats, &lines, directory);
    if (pclose(script) != 0) {
        die("%s/%s.svg: gnuplot failed, or is not installed", directory,
            plot->file);
    }
}
