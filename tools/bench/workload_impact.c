/*
 * tools/bench/workload_impact.c -- how long readers and committers wait while
 * large batches, checkpoints and snapshots go on.
 *
 * Three windows of the same length: before, during, after. In the one in the
 * middle a thread commits 10,000 puts, takes a checkpoint, takes a snapshot,
 * over and over; the window lasts until there were at least three of each. Both
 * are asked for by somebody who waits, so they go on without the pauses that
 * they make when nobody does: this is the worse case. Of this window only those
 * samples count that overlap with such work.
 *
 * Readers and committers have windows of their own: on a machine of few cores
 * they would measure one another. Samples follow one another, so that a long
 * stall is one slow sample, not many.
 *
 * Who never pauses is set back by the scheduler when the keepers wake up, and
 * that would be measured instead of the store; so there is a pause after each
 * burst. But the first read after a pause finds cold caches: bursts are so long
 * that those are less than one in a hundred, and do not make the idle p99 look
 * slow. And idle is idle: before it a snapshot is taken, so that none becomes
 * due, and every item is read, so that no page is left to be mapped.
 *
 * How much of it is the machine's, whose cores, caches and disk are shared with
 * the work, say two clients that do not use the store, beside the same work.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "tools/bench/bench.h"
#include "tools/bench/impact_background.h"
#include "tools/bench/impact_clients.h"
#include "tools/bench/store.h"
#include "tools/must/must.h"

enum { PAUSE_NS = 50000, NS_PER_MS = 1000000 };

struct impact {
    struct stele *store;
    struct impact_clients *clients;
    struct bench_size size;
    uint64_t seed;
    /* In a round, in the window in which there were the fewest of it. */
    size_t overlapped_least[IMPACT_KINDS];
};

/* ---- A window ------------------------------------------------------------ */

struct sample {
    uint64_t begin_ns;
    uint64_t end_ns;
};

/* Zero-initialize. */
struct window {
    struct sample *samples;
    size_t count;
    size_t capacity;
};

static void window_add(struct window *window, uint64_t begin_ns,
                       uint64_t end_ns)
{
    if (window->count == window->capacity) {
        window->capacity = window->capacity == 0 ? 65536 : 2 * window->capacity;
        window->samples = must_have(realloc(
            window->samples, window->capacity * sizeof window->samples[0]));
    }
    window->samples[window->count++] = (struct sample){begin_ns, end_ns};
}

static void watch_burst(struct impact *self, const struct impact_client *client,
                        struct window *window)
{
    static const struct timespec pause = {.tv_nsec = PAUSE_NS};

    for (uint64_t i = 0; i < client->burst; i++) {
        uint64_t begin_ns;

        impact_clients_choose(self->clients);
        begin_ns = clock_ns();
        client->once(self->clients);
        window_add(window, begin_ns, clock_ns());
    }
    nanosleep(&pause, NULL);
}

/* `background` NULL: idle. */
static struct window watch(struct impact *self,
                           const struct impact_client *client,
                           const struct impact_background *background)
{
    const uint64_t until_ns = clock_ns() + self->size.impact_ms * NS_PER_MS;
    struct window window = {0};

    do {
        watch_burst(self, client, &window);
    } while (clock_ns() < until_ns ||
             (client->reads && window.count < self->size.impact_reads) ||
             (background != NULL &&
              impact_background_cycles(background) < self->size.impact_cycles));
    return window;
}

/* In microseconds, those that overlap with work of this kind. `background`
 * NULL: all. */
static struct samples durations(const struct window *window,
                                const struct impact_background *background,
                                enum impact_kind kind)
{
    struct samples samples = {0};

    for (size_t i = 0; i < window->count; i++) {
        const struct sample *sample = &window->samples[i];

        if (background == NULL ||
            impact_background_count(background, kind, sample->begin_ns,
                                    sample->end_ns) > 0) {
            samples_add(&samples,
                        (double)(sample->end_ns - sample->begin_ns) / 1e3);
        }
    }
    return samples;
}

/* ---- Series -------------------------------------------------------------- */

static void add(struct stats *stats, const struct impact_client *client,
                const char *what, const char *line, double value)
{
    char name[SERIES_NAME_BYTES];

    snprintf(name, sizeof name, "impact_%s_%s@%s", client->name, what, line);
    stats_add(stats, name, value);
}

/* How long one in 2, 10, 100 ... takes at least. */
static void add_percentiles(struct stats *stats,
                            const struct impact_client *client,
                            const char *line, struct samples *samples)
{
    static const unsigned one_in[] = {2, 10, 100, 1000, 10000};

    for (size_t i = 0; i < sizeof one_in / sizeof one_in[0]; i++) {
        char name[SERIES_NAME_BYTES];

        if (samples->count < one_in[i]) {
            return;
        }
        snprintf(name, sizeof name, "impact_%s_percentile@%s#%u", client->name,
                 line, one_in[i]);
        stats_add(stats, name,
                  samples_percentile(samples, 100 - 100.0 / one_in[i]));
    }
}

static void add_window(struct stats *stats, const struct impact_client *client,
                       const char *line, struct samples samples)
{
    if (samples.count == 0) {
        die("no sample of %s %s", client->name, line);
    }
    add(stats, client, "p99", line, samples_percentile(&samples, 99));
    if (!client->bare) {
        add(stats, client, "p50", line, samples_median(&samples));
        add(stats, client, "p999", line, samples_percentile(&samples, 99.9));
        add_percentiles(stats, client, line, &samples);
        add(stats, client, "samples", line, (double)samples.count);
    }
    samples_free(&samples);
}

static void add_kinds(struct stats *stats, const struct impact_client *client,
                      const struct window *window,
                      const struct impact_background *background)
{
    static const char *const names[IMPACT_KINDS] = {
        [IMPACT_BATCH] = "batch",
        [IMPACT_CHECKPOINT] = "checkpoint",
        [IMPACT_SNAPSHOT] = "snapshot",
    };

    for (enum impact_kind kind = 0; kind < IMPACT_KINDS; kind++) {
        struct samples samples = durations(window, background, kind);

        if (samples.count > 0) {
            add(stats, client, "p99_in", names[kind],
                samples_percentile(&samples, 99));
        }
        samples_free(&samples);
    }
}

/* ---- Rounds -------------------------------------------------------------- */

static void *impact_start(const char *directory, const struct bench_size *size)
{
    struct impact *self = must_have(calloc(1, sizeof *self));

    self->store = bench_store_create(directory);
    self->clients = impact_clients_create(self->store, directory, size->items);
    self->size = *size;
    self->seed = 4;
    bench_store_put_items(self->store, NULL, size->items);
    return self;
}

/* Nothing is left to do, also not soon. */
static void settle(struct impact *self)
{
    struct stele_error error = {0};

    must(stele_snapshot(self->store, NULL, &error), &error);
    impact_clients_read_all(self->clients);
}

static void note_overlapped(struct impact *self, const struct window *window,
                            const struct impact_background *background)
{
    for (enum impact_kind kind = 0; kind < IMPACT_KINDS; kind++) {
        const size_t count = impact_background_count(
            background, kind, window->samples[0].begin_ns,
            window->samples[window->count - 1].end_ns);

        if (count < self->overlapped_least[kind]) {
            self->overlapped_least[kind] = count;
        }
    }
}

static void watch_idle(struct impact *self, const struct impact_client *client,
                       const char *line, struct stats *stats)
{
    struct window window = watch(self, client, NULL);

    add_window(stats, client, line, durations(&window, NULL, IMPACT_KINDS));
    free(window.samples);
}

static void watch_during(struct impact *self,
                         const struct impact_client *client,
                         struct stats *stats)
{
    struct impact_background *background = impact_background_start(
        self->store, self->size.items, self->size.impact_batch_items,
        1 + random_number(UINT32_MAX, &self->seed));
    struct window window = watch(self, client, background);

    impact_background_stop(background);
    add_window(stats, client, "during",
               durations(&window, background, IMPACT_KINDS));
    if (!client->bare) {
        add_kinds(stats, client, &window, background);
    }
    note_overlapped(self, &window, background);
    impact_background_destroy(background);
    free(window.samples);
}

static void watch_all(struct impact *self, const struct impact_client *client,
                      struct stats *stats)
{
    settle(self);
    watch_idle(self, client, "before", stats);
    watch_during(self, client, stats);
    if (!client->bare) {
        watch_idle(self, client, "after", stats);
    }
}

static void impact_round(void *workload, struct stats *stats)
{
    struct impact *self = workload;

    for (enum impact_kind kind = 0; kind < IMPACT_KINDS; kind++) {
        self->overlapped_least[kind] = SIZE_MAX;
    }
    for (size_t i = 0; i < IMPACT_CLIENTS; i++) {
        watch_all(self, &impact_every_client[i], stats);
    }
    stats_add(stats, "impact_batches",
              (double)self->overlapped_least[IMPACT_BATCH]);
    stats_add(stats, "impact_checkpoints",
              (double)self->overlapped_least[IMPACT_CHECKPOINT]);
    stats_add(stats, "impact_snapshots",
              (double)self->overlapped_least[IMPACT_SNAPSHOT]);
}

static void impact_finish(void *workload)
{
    struct impact *self = workload;

    impact_clients_destroy(self->clients);
    bench_store_close(self->store);
    free(self);
}

static const struct bench_ratio ratios[] = {
    {"reader p99 during batch, checkpoint, snapshot, over before",
     "impact_reader_p99@during", "us", BENCH_AT_MOST, 2.0,
     .floor = "impact_reader_p99@before"},
    {"the same without a store: a search in memory",
     "impact_bare_reader_p99@during", "us", BENCH_AT_MOST, 0,
     .floor = "impact_bare_reader_p99@before"},
    {"committer p99 during batch, checkpoint, snapshot, over before",
     "impact_committer_p99@during", "us", BENCH_AT_MOST, 3.0,
     .floor = "impact_committer_p99@before"},
    {"the same without a store: a bare write + sync", "impact_floor_p99@during",
     "us", BENCH_AT_MOST, 0, .floor = "impact_floor_p99@before"},
    {"reads during them in a round, over 200,000",
     "impact_reader_samples@during", "", BENCH_AT_LEAST, 1.0,
     .constant = 200000, .each = true},
    {"batches in each window, over 3", "impact_batches", "", BENCH_AT_LEAST,
     1.0, .constant = 3, .each = true},
    {"checkpoints in each window, over 3", "impact_checkpoints", "",
     BENCH_AT_LEAST, 1.0, .constant = 3, .each = true},
    {"snapshots in each window, over 3", "impact_snapshots", "", BENCH_AT_LEAST,
     1.0, .constant = 3, .each = true},
};

static const struct bench_plot plots[] = {
    {"impact_reader", "Reads while batches, checkpoints, snapshots run",
     "one in so many is slower", "us", "impact_reader_percentile"},
    {"impact_committer",
     "Durable puts while batches, checkpoints, snapshots run",
     "one in so many is slower", "us", "impact_committer_percentile"},
};

const struct bench_workload workload_impact = {
    .name = "impact",
    .ratios = ratios,
    .ratio_count = sizeof ratios / sizeof ratios[0],
    .plots = plots,
    .plot_count = sizeof plots / sizeof plots[0],
    .start = impact_start,
    .round = impact_round,
    .finish = impact_finish,
};
