/*
 * tools/bench/lmdb_reads.h -- what reading takes without a store: a bare LMDB with the
 * same entries as Stele's index has, read in one transaction a thread.
 */
#ifndef TOOLS_BENCH_LMDB_READS_H
#define TOOLS_BENCH_LMDB_READS_H

#include <stdint.h>

#include "tools/bench/reader.h"

struct lmdb_reads;

/* With the items 0 to count - 1: the key behind the name of its table and a zero, the
 * value behind as many bytes as Stele keeps of each. */
struct lmdb_reads *lmdb_reads_create(const char *directory, uint64_t count);
void lmdb_reads_destroy(struct lmdb_reads *lmdb);

/* `source` is a struct lmdb_reads: tools/bench/reader.h. */
extern const struct reader lmdb_reader;

#endif
