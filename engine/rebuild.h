/*
 * engine/rebuild.h -- an index made anew: a base, loaded in key order, and the log
 * behind it.
 *
 * The index is expendable; this is what that costs. Everything is verified on the
 * way: the snapshot's blocks, order, counts and digest, every value's check, every
 * table's count and sum. Memory: one memtable and one transaction.
 */
#ifndef ENGINE_REBUILD_H
#define ENGINE_REBUILD_H

#include <stdbool.h>
#include <stdint.h>

#include "base/io.h"
#include "base/status.h"
#include "engine/bases.h"
#include "engine/index.h"
#include "engine/stele.h"

enum rebuild_tail {
    REBUILD_LEAVE_TAIL, /* Less than a memtable of log may be left out. */
    REBUILD_ALL,
};

struct rebuild_plan {
    struct io_dir *dir; /* Empty: the index is made in it. */
    struct index_options options;
    struct index_identity identity;
    const struct base_item *base;
    struct io_dir *snapshot_dir; /* Of the base. */
    struct io_dir *wal_dir;
    uint64_t segment_oldest;
    uint64_t unit_last; /* Up to this unit; it is known to be whole ... */
    /* ... but of it no record above this LSN; 0: all of them. Then `applied` is of a
     * state that the log does not have: such an index is for reading, once. */
    uint64_t lsn_last;
    enum rebuild_tail tail;
    uint64_t memtable_bytes;
    uint64_t hash_seed;
    uint64_t pages_max;       /* Dirty ones in a transaction. */
    stele_progress *progress; /* May be NULL. */
    void *progress_context;
};

/*
 * Make it, closed and durable when it returns OK; its applied position is that of
 * the last unit in it. After a failure `dir` holds something of no use.
 * *base_damaged_out: the failure is the base's own; another one may do.
 */
enum stele_status rebuild_index(const struct rebuild_plan *plan,
                                bool *base_damaged_out,
                                struct stele_error *error) STELE_MUST_CHECK;

#endif
