/* tools/bench/impact_background.c -- see tools/bench/impact_background.h. */
#include "tools/bench/impact_background.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "tools/bench/stats.h"
#include "tools/bench/store.h"
#include "tools/must/must.h"

/* A call that did some of it. */
struct interval {
    enum impact_kind kind;
    uint64_t begin_ns;
    uint64_t end_ns;
};

struct impact_background {
    pthread_t thread;
    struct stele *store;
    struct stele_batch *batch;
    uint64_t *numbers; /* Of the items in the batch. */
    uint64_t batch_items;
    uint64_t items;
    uint64_t seed;
    atomic_bool stop;
    _Atomic uint64_t cycles;
    struct stele_stats before; /* It started. */
    struct interval *intervals;
    size_t interval_count;
    size_t interval_capacity;
};

/* ---- The thread ---------------------------------------------------------- */

static void note(struct impact_background *background, enum impact_kind kind,
                 uint64_t begin_ns)
{
    const uint64_t end_ns = clock_ns();

    if (background->interval_count == background->interval_capacity) {
        background->interval_capacity = background->interval_capacity == 0
                                            ? 64
                                            : 2 * background->interval_capacity;
        background->intervals = must_have(realloc(
            background->intervals,
            background->interval_capacity * sizeof background->intervals[0]));
    }
    background->intervals[background->interval_count++] =
        (struct interval){kind, begin_ns, end_ns};
}

static void commit_batch(struct impact_background *background)
{
    struct stele_error error = {0};
    uint64_t begin_ns;

    random_numbers(background->numbers, background->batch_items,
                   background->items, &background->seed);
    stele_batch_clear(background->batch);
    bench_batch_put_items(background->batch, item_table, background->numbers,
                          background->batch_items);
    begin_ns = clock_ns();
    must(stele_commit(background->store, background->batch, STELE_DURABLE, NULL,
                      &error),
         &error);
    note(background, IMPACT_BATCH, begin_ns);
}

static void take_checkpoint(struct impact_background *background)
{
    const uint64_t begin_ns = clock_ns();

    bench_store_checkpoint(background->store);
    note(background, IMPACT_CHECKPOINT, begin_ns);
}

static void take_snapshot(struct impact_background *background)
{
    struct stele_error error = {0};
    const uint64_t begin_ns = clock_ns();

    must(stele_snapshot(background->store, NULL, &error), &error);
    note(background, IMPACT_SNAPSHOT, begin_ns);
}

static void *background_main(void *context)
{
    struct impact_background *background = context;

    while (!atomic_load(&background->stop)) {
        commit_batch(background);
        take_checkpoint(background);
        take_snapshot(background);
        atomic_fetch_add(&background->cycles, 1);
    }
    return NULL;
}

/* ---- From outside -------------------------------------------------------- */

struct impact_background *impact_background_start(struct stele *store,
                                                  uint64_t items,
                                                  uint64_t batch_items,
                                                  uint64_t seed)
{
    struct impact_background *background =
        must_have(calloc(1, sizeof *background));
    struct stele_error error = {0};

    background->store = store;
    must(stele_batch_create(&background->batch, &error), &error);
    background->numbers =
        must_have(malloc(batch_items * sizeof background->numbers[0]));
    background->batch_items = batch_items;
    background->items = items;
    background->seed = seed;
    background->before = bench_store_stats(store);
    if (pthread_create(&background->thread, NULL, background_main,
                       background) != 0) {
        die("the background thread cannot be started");
    }
    return background;
}

uint64_t impact_background_cycles(const struct impact_background *background)
{
    return atomic_load(&background->cycles);
}

void impact_background_stop(struct impact_background *background)
{
    struct stele_stats after;

    atomic_store(&background->stop, true);
    pthread_join(background->thread, NULL);
    after = bench_store_stats(background->store);
    if (after.checkpoints - background->before.checkpoints <
            background->cycles ||
        after.snapshots_taken - background->before.snapshots_taken <
            background->cycles) {
        die("not as many checkpoints and snapshots as were asked for");
    }
}

size_t impact_background_count(const struct impact_background *background,
                               enum impact_kind kind, uint64_t begin_ns,
                               uint64_t end_ns)
{
    size_t count = 0;

    for (size_t i = 0; i < background->interval_count; i++) {
        const struct interval *interval = &background->intervals[i];

        if ((kind == IMPACT_KINDS || interval->kind == kind) &&
            interval->begin_ns <= end_ns && begin_ns <= interval->end_ns) {
            count++;
        }
    }
    return count;
}

void impact_background_destroy(struct impact_background *background)
{
    stele_batch_destroy(background->batch);
    free(background->numbers);
    free(background->intervals);
    free(background);
}
