/* tools/bench/crowd.c -- see tools/bench/crowd.h. */
#include "tools/bench/crowd.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <time.h>

#include "tools/bench/stats.h"
#include "tools/must/must.h"

/* Items without a pattern; any order will do. */
enum { STRIDE = 7919 };

struct shared {
    const struct crowd *crowd;
    pthread_barrier_t barrier; /* All begin, and end, with the clock. */
    atomic_bool stop;
};

struct worker {
    struct shared *shared;
    pthread_t thread;
    uint64_t first; /* Its own part of the items. */
    uint64_t range;
    uint64_t steps;
};

static void *worker_main(void *context)
{
    struct worker *worker = context;
    const struct crowd *crowd = worker->shared->crowd;
    void *mine = crowd->begin == NULL ? NULL : crowd->begin(crowd->context);

    pthread_barrier_wait(&worker->shared->barrier);
    while (!atomic_load(&worker->shared->stop)) {
        crowd->step(crowd->context, mine,
                    worker->first + worker->steps * STRIDE % worker->range);
        worker->steps++;
    }
    pthread_barrier_wait(&worker->shared->barrier);
    if (crowd->end != NULL) {
        crowd->end(crowd->context, mine);
    }
    return NULL;
}

static struct worker *start(struct shared *shared, size_t threads)
{
    struct worker *workers = must_have(calloc(threads, sizeof workers[0]));
    const uint64_t range = shared->crowd->items / threads;

    if (pthread_barrier_init(&shared->barrier, NULL, (unsigned)threads + 1) !=
        0) {
        die("pthread_barrier_init");
    }
    for (size_t i = 0; i < threads; i++) {
        workers[i] = (struct worker){
            .shared = shared, .first = i * range, .range = range};
        if (pthread_create(&workers[i].thread, NULL, worker_main,
                           &workers[i]) != 0) {
            die("thread %zu cannot be started", i);
        }
    }
    return workers;
}

/* How many steps they made. */
static uint64_t join(struct shared *shared, struct worker *workers,
                     size_t threads)
{
    uint64_t steps = 0;

    for (size_t i = 0; i < threads; i++) {
        pthread_join(workers[i].thread, NULL);
        steps += workers[i].steps;
    }
    pthread_barrier_destroy(&shared->barrier);
    free(workers);
    return steps;
}

double crowd_run(const struct crowd *crowd, size_t threads,
                 uint64_t duration_ms)
{
    const struct timespec duration = {
        .tv_sec = (time_t)(duration_ms / 1000),
        .tv_nsec = (long)(duration_ms % 1000) * 1000000,
    };
    struct shared shared = {.crowd = crowd};
    struct worker *workers = start(&shared, threads);
    uint64_t start_ns;
    uint64_t elapsed_ns;

    pthread_barrier_wait(&shared.barrier);
    start_ns = clock_ns();
    nanosleep(&duration, NULL);
    atomic_store(&shared.stop, true);
    pthread_barrier_wait(&shared.barrier);
    elapsed_ns = clock_ns() - start_ns;
    return (double)join(&shared, workers, threads) / ((double)elapsed_ns / 1e9);
}
