/*
 * engine/verdict.h -- where the log ends, given what the index and the snapshots
 * say of it.
 *
 * Their positions are evidence (wal/recovery.h), and they are bases only if they
 * stand in the log. Whoever opens the log, for writing or only to read, comes
 * through here.
 */
#ifndef ENGINE_VERDICT_H
#define ENGINE_VERDICT_H

#include <stdbool.h>

#include "base/status.h"
#include "engine/store.h"
#include "wal/recovery.h"

enum {
    VERDICT_APPLIED,
    VERDICT_APPLYING,
    VERDICT_SNAPSHOTS, /* From here on, the newest first. */
    VERDICT_CLAIMS = VERDICT_SNAPSHOTS + 4,
    VERDICT_NAME_BYTES = 32,
};

struct verdict {
    struct wal_claim claims[VERDICT_CLAIMS];
    char names[VERDICT_CLAIMS][VERDICT_NAME_BYTES];
    struct wal_recovery_input input; /* Refers to `claims`. */
    bool index_is_foreign; /* It is no base of this log: do without it. */
};

/* The index's positions; the log's origin without one. CORRUPT: the index holds none
 * that can be believed. */
enum stele_status verdict_index_positions(
    struct stele *store, struct wal_position *applied_out,
    struct wal_position *applying_out,
    struct stele_error *error) STELE_MUST_CHECK;

/*
 * Decide, into store->recovery. OK: rows A and C, behind `input.base`: the index's
 * applied position; without an index that of the newest base there is
 * (engine/bases.h), of the oldest one if index_is_foreign. A refusal is about the
 * log: an index or a snapshot that is merely wrong is never the reason, and one that
 * knows of more than the log holds is evidence even if it is no base.
 */
enum stele_status verdict_reach(struct stele *store, struct verdict *verdict,
                                struct stele_error *error) STELE_MUST_CHECK;

#endif
