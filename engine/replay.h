/*
 * engine/replay.h -- log records into memory: the tail on top of a base.
 */
#ifndef ENGINE_REPLAY_H
#define ENGINE_REPLAY_H

#include <stdint.h>

#include "base/status.h"
#include "engine/memtable.h"
#include "engine/ranges.h"
#include "wal/reader.h"

/* Where replayed records go: a memtable, and the fragments that belong to it. */
struct replay {
    struct memtable *memtable; /* Borrowed. */
    struct range_set *ranges;  /* A reference of its own. */
    uint64_t lsn_max;          /* Records above it are left out; 0: none are. */
    uint64_t records;
};

/* Apply one unit. A failure leaves the memtable as it was before the unit. */
enum stele_status replay_unit(struct replay *replay,
                              const struct wal_reader_unit *unit,
                              struct stele_error *error) STELE_MUST_CHECK;

/* Release what `replay` holds. */
void replay_deinit(struct replay *replay);

#endif
