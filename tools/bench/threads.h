/*
 * tools/bench/threads.h -- so many threads that do the same for a while.
 */
#ifndef TOOLS_BENCH_THREADS_H
#define TOOLS_BENCH_THREADS_H

#include <stddef.h>
#include <stdint.h>

#include "tools/bench/store.h"

enum { THREADS_MAX = 64 };

/* One of them, as its step sees it. */
struct bench_thread {
    void *context;
    size_t index; /* Of `count`. */
    size_t count;
    uint64_t steps; /* That it has done. */
    void *own;      /* Whatever the step keeps here; `end` gets to see it. */
};

/* What they do. */
struct bench_task {
    void (*step)(struct bench_thread *thread);
    void (*end)(struct bench_thread *thread); /* May be NULL. */
    void *context;
};

/* Steps a second of all of them together. */
double threads_rate(const struct bench_task *task, size_t count,
                    uint64_t duration_ms);

/* The key for the thread's next step: of its own part of the items. */
void threads_item_key(const struct bench_thread *thread, uint64_t items,
                      char key[ITEM_KEY_BYTES + 1]);

#endif
