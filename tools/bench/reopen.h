/*
 * tools/bench/reopen.h -- what a store that is opened again has to recover from. The
 * store is in directory/store (tools/bench/store.h), and closed.
 */
#ifndef TOOLS_BENCH_REOPEN_H
#define TOOLS_BENCH_REOPEN_H

#include <stdint.h>

/* Items that a store must have to be left with a tail. */
enum { REOPEN_ITEMS_LEAST = 1000 };

/* A child opens it, puts `records` items again, one a commit, durably in the end, and
 * is killed: none of them is in the index. */
void reopen_leave_tail(const char *directory, uint64_t records);

/* Open it, see that so many records were replayed and that the index was there, and
 * close it. The opening, in microseconds. */
double reopen_us(const char *directory, uint64_t replayed);

/* The next open has to build it anew. */
void reopen_remove_index(const char *directory);

#endif
