/* tools/bench/stats.c -- see tools/bench/stats.h. */
#include "tools/bench/stats.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "tools/must/must.h"

enum { NAME_BYTES = 64, NS_PER_S = 1000000000 };

struct stats_series {
    char name[NAME_BYTES];
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
        assert(strlen(name) < NAME_BYTES);
        stats->series = must_have(
            realloc(stats->series, (stats->count + 1) * sizeof *series));
        series = &stats->series[stats->count++];
        memset(series, 0, sizeof *series);
        strcpy(series->name, name);
    }
    samples_add(&series->samples, value);
}

double stats_median(struct stats *stats, const char *name)
{
    struct stats_series *series = find(stats, name);

    if (series == NULL) {
        die("no series %s", name);
    }
    return samples_percentile(&series->samples, 50);
}

void stats_free(struct stats *stats)
{
    for (size_t i = 0; i < stats->count; i++) {
        samples_free(&stats->series[i].samples);
    }
    free(stats->series);
    *stats = (struct stats){0};
}
