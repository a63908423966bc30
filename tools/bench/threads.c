/* tools/bench/threads.c -- see tools/bench/threads.h. */
#include "tools/bench/threads.h"

#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <time.h>

#include "tools/bench/stats.h"
#include "tools/must/must.h"

struct worker {
    struct bench_thread thread;
    const struct bench_task *task;
    const atomic_bool *stop;
    pthread_t handle;
};

static void *worker_main(void *context)
{
    struct worker *worker = context;

    while (!atomic_load(worker->stop)) {
        worker->task->step(&worker->thread);
        worker->thread.steps++;
    }
    if (worker->task->end != NULL) {
        worker->task->end(&worker->thread);
    }
    return NULL;
}

double threads_rate(const struct bench_task *task, size_t count,
                    uint64_t duration_ms)
{
    struct worker workers[THREADS_MAX];
    const struct timespec duration = {
        .tv_sec = (time_t)(duration_ms / 1000),
        .tv_nsec = (long)(duration_ms % 1000) * 1000000,
    };
    atomic_bool stop = false;
    const uint64_t start_ns = clock_ns();
    uint64_t steps = 0;

    assert(count <= THREADS_MAX);
    for (size_t i = 0; i < count; i++) {
        workers[i] = (struct worker){
            .thread = {.context = task->context, .index = i, .count = count},
            .task = task,
            .stop = &stop,
        };
        if (pthread_create(&workers[i].handle, NULL, worker_main,
                           &workers[i]) != 0) {
            die("thread %zu cannot be started", i);
        }
    }
    nanosleep(&duration, NULL);
    atomic_store(&stop, true);
    for (size_t i = 0; i < count; i++) {
        pthread_join(workers[i].handle, NULL);
        steps += workers[i].thread.steps;
    }
    return (double)steps / ((double)(clock_ns() - start_ns) / 1e9);
}

void threads_item_key(const struct bench_thread *thread, uint64_t items,
                      char key[ITEM_KEY_BYTES + 1])
{
    const uint64_t range = items / thread->count;

    /* A stride without a pattern; any order will do. */
    item_key(key, thread->index * range + thread->steps * 7919 % range);
}
