/*
 * engine/retention.h -- which segments and snapshots are still needed, and removing
 * those that are not.
 *
 * The log is kept whole while there are fewer than two verified snapshots. Then the
 * oldest segment that is needed is the oldest of those in which stand
 *
 *     the older of the two snapshots      a base for when the newer one is damaged
 *     the index's applied position        its base; the snapshots may overtake it
 *     what is held                        by a feed, a backup, a view of the past
 *
 * or that the options keep (retain_log_bytes, retain_log_ms). Everything is ordered
 * by LSN and segment number. Clocks only say what may stay longer: no clock can make
 * something go that is needed.
 *
 * What goes is written into ANCHOR first, durably, and then unlinked, the oldest
 * first: a crash in between leaves leftovers below ANCHOR's oldest segment, which
 * nobody takes for part of the log, and which the next open removes.
 *
 * Threads: for the base keeper, or who plays it.
 */
#ifndef ENGINE_RETENTION_H
#define ENGINE_RETENTION_H

#include <stdbool.h>
#include <stdint.h>

#include "base/status.h"
#include "engine/bases.h"
#include "engine/store.h"

/* From which segment on each needs the log; UINT64_MAX: it needs none. */
struct retention_needs {
    bool snapshots_few; /* Fewer than two: nothing goes. */
    uint64_t current;   /* Segment; it and all later ones are in use. */
    uint64_t snapshot;  /* Of the older of the two. */
    uint64_t snapshot_lsn;
    uint64_t index;
    uint64_t index_lsn;
    uint64_t held;
    uint64_t held_lsn;
    uint64_t bytes;
    uint64_t time;
};

/* The oldest segment needed, given that `oldest` is the oldest there is. */
uint64_t retention_oldest(const struct retention_needs *needs, uint64_t oldest);

/* Why segment `seq` is kept; *lsn_out: of what needs it, or 0. */
enum stele_kept retention_why(const struct retention_needs *needs, uint64_t seq,
                              uint64_t *lsn_out);

/* What the store needs now. `bases` as ANCHOR will count them. Under
 * retention_mutex; of a read-only handle, under its follow mutex. */
enum stele_status retention_look(struct stele *store, const struct bases *bases,
                                 struct retention_needs *needs_out,
                                 struct stele_error *error) STELE_MUST_CHECK;

/*
 * Let the log go as far as it is not needed any more, and snapshots that are
 * neither counted, nor held, nor in a segment that the options keep. `counted` are
 * the LSNs of the two newest verified snapshots (0: none), durable under their
 * names: they are named in ANCHOR here.
 */
enum stele_status retention_apply(struct stele *store,
                                  const uint64_t counted[WAL_ANCHOR_SNAPSHOTS],
                                  struct stele_error *error) STELE_MUST_CHECK;

/* Unlink the segments below ANCHOR's oldest: leftovers of an earlier life. */
enum stele_status retention_remove_leftovers(
    struct stele *store, struct stele_error *error) STELE_MUST_CHECK;

/* ---- Holds ----------------------------------------------------------------- */

/* While it is there, the newest base at or below `lsn` and the log from there stay.
 * In memory only: it ends with the handle. NOT_FOUND: that base is gone already. */
struct retention_hold {
    uint64_t lsn;                /* Of the base. */
    uint64_t segment;            /* Where the log goes on behind it. */
    struct retention_hold *next; /* In store->holds. */
};
enum stele_status retention_hold(struct stele *store, uint64_t lsn,
                                 struct retention_hold *hold_out,
                                 struct stele_error *error) STELE_MUST_CHECK;
void retention_release(struct stele *store, struct retention_hold *hold);

#endif
