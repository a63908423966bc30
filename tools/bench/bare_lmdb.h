/*
 * tools/bench/bare_lmdb.h -- items in an LMDB environment with nothing around
 * it: what Stele's index is made of, committing by itself.
 *
 * Every put and delete is one transaction, synced by LMDB's default flags. Keys
 * are "table 0x00 key" in the one unnamed database, as in Stele's index.
 */
#ifndef TOOLS_BENCH_BARE_LMDB_H
#define TOOLS_BENCH_BARE_LMDB_H

#include <stdint.h>

#include "tools/bench/reader.h"

struct bare_lmdb;

/* The one in directory/lmdb; made if there is none. */
struct bare_lmdb *bare_lmdb_open(const char *directory);

/* The items with these numbers. */
void bare_lmdb_put(struct bare_lmdb *lmdb, const uint64_t *numbers,
                   uint64_t count);
void bare_lmdb_delete(struct bare_lmdb *lmdb, const uint64_t *numbers,
                      uint64_t count);
/* All items, by their prefix. */
void bare_lmdb_delete_prefix(struct bare_lmdb *lmdb);

/* Items in it. */
uint64_t bare_lmdb_count(struct bare_lmdb *lmdb);
/* Transactions that wrote, since it was made. */
uint64_t bare_lmdb_commits(struct bare_lmdb *lmdb);

/* Its source is a struct bare_lmdb; each view is one read transaction. */
extern const struct reader bare_lmdb_reader;

void bare_lmdb_close(struct bare_lmdb *lmdb);

#endif
