/* tools/bench/stats.c -- see tools/bench/stats.h. */
#include "tools/bench/stats.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "tools/must/must.h"

enum { NS_PER_S = 1000000000 };

struct stats_series {
    char name[SERIES_NAME_BYTES];
    struct samples samples;
};

uint64_t clock_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * NS_PER_S + (uint64_t)now.tv_nsec;
}

void samples_add(struct samples *samples, double value)
{
    if (samples->count == samples->capacity) {
        samples->capacity = samples->capacity == 0 ? 64 : 2 * samples->capacity;
        samples->values = must_have(realloc(
            samples->values, samples->capacity * sizeof samples->values[0]));
    }
    samples->values[samples->count++] = value;
}

static int compare(const void *left, const void *right)
{
    const double a = *(const double *)left;
    const double b = *(const double *)right;

    return (a > b) - (a < b);
}

double samples_percentile(struct samples *samples, double percentile)
{
    size_t index;

    assert(samples->count > 0);
    qsort(samples->values, samples->count, sizeof samples->values[0], compare);
    index = (size_t)(percentile / 100 * (double)samples->count);
    return samples->values[index < samples->count ? index : samples->count - 1];
}

double samples_median(struct samples *samples)
{
    const double upper = samples_percentile(samples, 50); /* Sorts them. */
    const size_t middle = samples->count / 2;

    return samples->count % 2 == 1
               ? upper
               : (samples->values[middle - 1] + samples->values[middle]) / 2;
}

void samples_free(struct samples *samples)
{
    free(samples->values);
    *samples = (struct samples){0};
}

static struct stats_series *find(const struct stats *stats, const char *name)
{
    for (size_t i = 0; i < stats->count; i++) {
        if (strcmp(stats->series[i].name, name) == 0) {
            return &stats->series[i];
        }
    }
    return NULL;
}

void stats_add(struct stats *stats, const char *name, double value)
{
    struct stats_series *series = find(stats, name);

    if (series == NULL) {
        assert(strlen(name) < SERIES_NAME_BYTES);
        stats->series = must_have(
            realloc(stats->series, (stats->count + 1) * sizeof *series));
        series = &stats->series[stats->count++];
        memset(series, 0, sizeof *series);
        strcpy(series->name, name);
    }
    samples_add(&series->samples, value);
}

void stats_add_point(struct stats *stats, const char *what, const char *line,
                     uint64_t x, double value)
{
    char name[2 * SERIES_NAME_BYTES];

    snprintf(name, sizeof name, "%s@%s#%" PRIu64, what, line, x);
    stats_add(stats, name, value);
}

bool stats_has(const struct stats *stats, const char *name)
{
    return find(stats, name) != NULL;
}

static const struct samples *samples_of(const struct stats *stats,
                                        const char *name)
{
    const struct stats_series *series = find(stats, name);

    if (series == NULL) {
        die("no series %s", name);
    }
    return &series->samples;
}

/* The order of the rounds stays: only a copy is sorted. */
double stats_median(const struct stats *stats, const char *name)
{
    const struct samples *samples = samples_of(stats, name);
    struct samples copy = {0};
    double median;

    for (size_t i = 0; i < samples->count; i++) {
        samples_add(&copy, samples->values[i]);
    }
    median = samples_median(&copy);
    samples_free(&copy);
    return median;
}

void stats_spread(const struct stats *stats, const char *numerator,
                  const char *denominator, double constant, double *least_out,
                  double *greatest_out)
{
    const struct samples *above = samples_of(stats, numerator);
    const struct samples *below =
        denominator == NULL ? NULL : samples_of(stats, denominator);

    assert(below == NULL || below->count >= above->count);
    for (size_t i = 0; i < above->count; i++) {
        const double ratio =
            above->values[i] / (below == NULL ? constant : below->values[i]);

        *least_out = i == 0 || ratio < *least_out ? ratio : *least_out;
        *greatest_out = i == 0 || ratio > *greatest_out ? ratio : *greatest_out;
    }
}

bool stats_series_name(const struct stats *stats, size_t index,
                       char name_out[SERIES_NAME_BYTES])
{
    if (index >= stats->count) {
        return false;
    }
    memcpy(name_out, stats->series[index].name, SERIES_NAME_BYTES);
    return true;
}

void series_name_parse(const char *name, struct series_name *parsed_out)
{
    const char *line = strchr(name, '@');
    const char *x = strchr(name, '#');
    const char *end = name + strlen(name);
    const char *line_end = x != NULL ? x : end;
    const char *what_end = line != NULL ? line : line_end;

    memset(parsed_out, 0, sizeof *parsed_out);
    memcpy(parsed_out->what, name, (size_t)(what_end - name));
    if (line != NULL) {
        memcpy(parsed_out->line, line + 1, (size_t)(line_end - line - 1));
    }
    parsed_out->x = x == NULL ? -1 : strtod(x + 1, NULL);
}

void series_name_replace_line(const char *name, const char *line,
                              char name_out[SERIES_NAME_BYTES])
{
    const char *x = strchr(name, '#');
    struct series_name parsed;
    int bytes;

    series_name_parse(name, &parsed);
    bytes = snprintf(name_out, SERIES_NAME_BYTES, "%s@%s%s", parsed.what, line,
                     x == NULL ? "" : x);
    assert(bytes > 0 && bytes < SERIES_NAME_BYTES);
}

void stats_free(struct stats *stats)
{
    for (size_t i = 0; i < stats->count; i++) {
        samples_free(&stats->series[i].samples);
    }
    free(stats->series);
    *stats = (struct stats){0};
}
