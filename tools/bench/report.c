/* tools/bench/report.c -- see tools/bench/report.h. */
#include "tools/bench/report.h"

#include <stdlib.h>
#include <string.h>

#include "tools/bench/names.h"
#include "tools/must/must.h"

/* ---- Ratios --------------------------------------------------------------------- */

/* A ratio with its numbers. */
struct found {
    bool stele_measured; /* False: its workload could not be run here. */
    bool measured;       /* And there is something to stand over. */
    char floor[SERIES_NAME_BYTES]; /* What it stands over; "": a constant. */
    double stele;
    double below;
    double value; /* Of the medians; where each round counts, of the worst. */
    double least;
    double greatest;
    bool missed;
};

static bool is_better(const struct bench_ratio *ratio, double left,
                      double right)
{
    return ratio->direction == BENCH_AT_MOST ? left < right : left > right;
}

static void find_rival(const struct bench_ratio *ratio,
                       const struct stats *stats, struct found *found)
{
    double best = 0;

    for (const char *const *rival = ratio->rivals; *rival != NULL; rival++) {
        char name[SERIES_NAME_BYTES];
        double median;

        series_name_replace_line(ratio->stele, *rival, name);
        if (!stats_has(stats, name)) {
            continue;
        }
        median = stats_median(stats, name);
        if (found->floor[0] == '\0' || is_better(ratio, median, best)) {
            best = median;
            memcpy(found->floor, name, sizeof name);
        }
    }
}

static struct found find(const struct bench_ratio *ratio,
                         const struct stats *stats, bool bars)
{
    struct found found = {.stele_measured = stats_has(stats, ratio->stele)};

    if (!found.stele_measured) {
        return found;
    }
    found.stele = stats_median(stats, ratio->stele);
    if (ratio->rivals != NULL) {
        find_rival(ratio, stats, &found);
        found.measured = found.floor[0] != '\0';
    } else {
        found.measured = true;
        if (ratio->floor != NULL) {
            snprintf(found.floor, sizeof found.floor, "%s", ratio->floor);
        }
    }
    if (!found.measured) {
        return found;
    }
    found.below = found.floor[0] == '\0' ? ratio->constant
                                         : stats_median(stats, found.floor);
    found.value = found.stele / found.below;
    stats_spread(stats, ratio->stele,
                 found.floor[0] == '\0' ? NULL : found.floor, ratio->constant,
                 &found.least, &found.greatest);
    if (ratio->each) {
        found.value =
            ratio->direction == BENCH_AT_MOST ? found.greatest : found.least;
    }
    found.missed =
        bars && ratio->bar != 0 &&
        (ratio->direction == BENCH_AT_MOST ? found.value > ratio->bar
                                           : found.value < ratio->bar);
    return found;
}

static void judge(const struct bench_ratio *ratio, const struct found *found,
                  bool bars, struct bench_verdict *verdict)
{
    if (found->missed) {
        verdict->missed++;
    } else if (bars && ratio->bar != 0 && !found->measured) {
        verdict->unmeasured++;
    }
}

/* As many digits as say something. */
static void print_number(FILE *file, double value)
{
    fprintf(file, " %10.*f", value < 10 ? 3 : value < 1000 ? 1 : 0, value);
}

void report_ratios_head(FILE *file)
{
    fprintf(file, "%-62s %10s %10s %-4s %7s %15s  %s\n", "medians", "Stele",
            "floor", "", "ratio", "(its spread)", "bar");
}

struct bench_verdict report_ratios(FILE *file,
                                   const struct bench_workload *workload,
                                   const struct stats *stats, bool bars)
{
    struct bench_verdict verdict = {0, 0};

    for (size_t i = 0; i < workload->ratio_count; i++) {
        const struct bench_ratio *ratio = &workload->ratios[i];
        struct series_name floor;
        struct found found;
        char spread[64];

        if (!bars && !stats_has(stats, ratio->stele)) {
            continue;
        }
        found = find(ratio, stats, bars);
        judge(ratio, &found, bars, &verdict);
        fprintf(file, "%-62s", ratio->what);
        if (!found.stele_measured) {
            fprintf(file, " %10s %10s %-4s  not measured\n", "-", "-",
                    ratio->unit);
            continue;
        }
        print_number(file, found.stele);
        if (!found.measured) {
            fprintf(file, " %10s %-4s  none of them is installed\n", "-",
                    ratio->unit);
            continue;
        }
        print_number(file, found.below);
        snprintf(spread, sizeof spread, "(%.2f-%.2f)", found.least,
                 found.greatest);
        fprintf(file, " %-4s %7.2f %15s", ratio->unit, found.value, spread);
        if (bars && ratio->bar != 0) {
            fprintf(file, "  %s %.2f %s",
                    ratio->direction == BENCH_AT_MOST ? "<=" : ">=", ratio->bar,
                    found.missed ? "MISSED" : "met");
        }
        series_name_parse(found.floor, &floor);
        if (ratio->rivals != NULL) {
            fprintf(file, "  (%s)", floor.line);
        }
        fputc('\n', file);
    }
    return verdict;
}

struct bench_verdict report_ratios_json(FILE *file,
                                        const struct bench_workload *workload,
                                        const struct stats *stats, bool bars)
{
    struct bench_verdict verdict = {0, 0};

    for (size_t i = 0; i < workload->ratio_count; i++) {
        const struct bench_ratio *ratio = &workload->ratios[i];
        struct found found;

        if (!bars && !stats_has(stats, ratio->stele)) {
            continue;
        }
        found = find(ratio, stats, bars);
        judge(ratio, &found, bars, &verdict);
        fprintf(file,
                "{\"what\":\"%s\",\"series\":\"%s\",\"unit\":\"%s\","
                "\"direction\":\"%s\"",
                ratio->what, ratio->stele, ratio->unit,
                ratio->direction == BENCH_AT_MOST ? "at_most" : "at_least");
        if (found.stele_measured) {
            fprintf(file, ",\"stele\":%.3f", found.stele);
        }
        if (found.measured) {
            fprintf(file,
                    ",\"floor\":%.3f,\"ratio\":%.4f,\"ratio_least\":%.4f,"
                    "\"ratio_greatest\":%.4f",
                    found.below, found.value, found.least, found.greatest);
        }
        if (found.floor[0] != '\0') {
            fprintf(file, ",\"floor_series\":\"%s\"", found.floor);
        }
        if (bars && ratio->bar != 0) {
            fprintf(file, ",\"bar\":%.2f,\"met\":%s", ratio->bar,
                    !found.measured ? "null"
                    : found.missed  ? "false"
                                    : "true");
        }
        fprintf(file, "}\n");
    }
    return verdict;
}

/* ---- Series ------------------------------------------------------------------------ */

/* The series that have a line, and of it the row: "what#x". */
static bool row_of(const char *series, char row_out[SERIES_NAME_BYTES],
                   struct series_name *parsed_out)
{
    const char *x = strchr(series, '#');

    series_name_parse(series, parsed_out);
    if (parsed_out->line[0] == '\0') {
        return false;
    }
    if (snprintf(row_out, SERIES_NAME_BYTES, "%s%s", parsed_out->what,
                 x == NULL ? "" : x) >= SERIES_NAME_BYTES) {
        die("a long name: %s", series);
    }
    return true;
}

/* The rows of one `what`: they have the same lines. */
static void report_table(FILE *file, const struct stats *stats,
                         const char *what)
{
    char series[SERIES_NAME_BYTES];
    struct series_name parsed;
    struct names lines = {.count = 0};
    struct names rows = {.count = 0};
    char row[SERIES_NAME_BYTES];

    for (size_t i = 0; stats_series_name(stats, i, series); i++) {
        if (row_of(series, row, &parsed) && strcmp(parsed.what, what) == 0) {
            names_add(&lines, parsed.line);
            names_add(&rows, row);
        }
    }
    fprintf(file, "\n%-34s", what);
    for (size_t line = 0; line < lines.count; line++) {
        fprintf(file, " %10s", lines.names[line]);
    }
    fputc('\n', file);
    for (size_t i = 0; i < rows.count; i++) {
        fprintf(file, "%-34s", rows.names[i]);
        for (size_t line = 0; line < lines.count; line++) {
            series_name_replace_line(rows.names[i], lines.names[line], series);
            if (stats_has(stats, series)) {
                print_number(file, stats_median(stats, series));
            } else {
                fprintf(file, " %10s", "-");
            }
        }
        fputc('\n', file);
    }
}

void report_tables(FILE *file, const struct stats *stats)
{
    char series[SERIES_NAME_BYTES];
    struct names whats = {.count = 0};

    for (size_t i = 0; stats_series_name(stats, i, series); i++) {
        struct series_name parsed;

        series_name_parse(series, &parsed);
        if (parsed.line[0] != '\0') {
            names_add(&whats, parsed.what);
        }
    }
    for (size_t i = 0; i < whats.count; i++) {
        report_table(file, stats, whats.names[i]);
    }
}

void report_series_json(FILE *file, const struct stats *stats)
{
    char series[SERIES_NAME_BYTES];

    for (size_t i = 0; stats_series_name(stats, i, series); i++) {
        fprintf(file, "{\"series\":\"%s\",\"median\":%.4f}\n", series,
                stats_median(stats, series));
    }
}
