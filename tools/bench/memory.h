/*
 * tools/bench/memory.h -- the most anonymous memory that this process had between
 * two calls: heap and stacks, but not the pages of mapped files (LMDB's map).
 */
#ifndef TOOLS_BENCH_MEMORY_H
#define TOOLS_BENCH_MEMORY_H

#include <stdint.h>

/* Begin to look, a few times each millisecond, in a thread of its own. */
void memory_watch(void);

/* Stop. The bytes above what there were at the beginning. */
uint64_t memory_most(void);

#endif
