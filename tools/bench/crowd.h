/*
 * tools/bench/crowd.h -- many threads that do the same, over and over, for a while.
 */
#ifndef TOOLS_BENCH_CROWD_H
#define TOOLS_BENCH_CROWD_H

#include <stddef.h>
#include <stdint.h>

struct crowd {
    void *context;
    /* What a thread needs for its steps, made before the clock starts and released
     * after it stopped. NULL: nothing. */
    void *(*begin)(void *context);
    void (*end)(void *context, void *thread);
    /* `item` is one of the thread's own part of 0 to `items` - 1. */
    void (*step)(void *context, void *thread, uint64_t item);
    uint64_t items;
};

/* Steps a second. */
double crowd_run(const struct crowd *crowd, size_t threads,
                 uint64_t duration_ms);

#endif
