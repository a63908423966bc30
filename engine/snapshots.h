/*
 * engine/snapshots.h -- taking a snapshot: the index as it stands right behind a
 * checkpoint, into one file, in steps, while commits and checkpoints go on.
 *
 *     copy        one index reader, in key order; every check verified and copied,
 *                 never made anew; every table's count and sum compared
 *     finish      footer, sync, cache dropped, still under a temporary name
 *     read back   from the disk, to the end
 *     publish     rename, directory sync
 *     the other   the snapshot that was the newest is read again, from the disk: it
 *                 is about to become the one that the log is kept for
 *     retain      ANCHOR names the two; what they make superfluous is removed
 *
 * A failure before `publish` leaves nothing behind, and nothing is ever removed before
 * `retain`. A snapshot that does not verify, or does not belong to this log, goes to
 * quarantine/, and the next older one is the other; one that cannot be read (EIO) is
 * passed over, and stays where it is.
 *
 * While the index is applying > applied it is no state of any LSN: then there is
 * nothing to take yet.
 *
 * Threads: the base keeper; in manual mode the caller. Stopping the store gives the
 * one under way up.
 */
#ifndef ENGINE_SNAPSHOTS_H
#define ENGINE_SNAPSHOTS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/status.h"
#include "engine/bases.h"
#include "engine/store.h"

/* Whether the log since the last one calls for the next, or somebody waits for
 * one, and it is not too soon after one that failed. */
bool snapshots_due(struct stele *store);

/* Whether somebody waits for one that there is not yet. Under keeper_mutex. */
bool snapshots_are_awaited(const struct stele *store);

/* Whether the one under way should go on without pauses: somebody waits, or the log
 * grows faster than it. */
bool snapshots_are_late(struct stele *store);

/* Begin one: store->snapshot_run. There may be nothing to take; then there is
 * none. */
enum stele_status snapshots_begin(struct stele *store,
                                  struct stele_error *error) STELE_MUST_CHECK;

/* Go on by about `bytes_max` bytes, with the bookkeeping. After the last step, and
 * after a failure, store->snapshot_run is gone. */
enum stele_status snapshots_advance(struct stele *store, uint64_t bytes_max,
                                    struct stele_error *error) STELE_MUST_CHECK;

/* Give up the one under way, if there is one: its temporary is removed. */
void snapshots_abort(struct stele *store);

/* In a child of the process that began it: close its files. */
void snapshots_forsake(struct stele *store);

/*
 * At open, after the verdict: which snapshots still count (*counted_out, the newer
 * first; 0: none). One that ANCHOR names but that is missing or damaged does not any
 * more, and last_snapshot_error says so; damaged ones are set aside, temporaries and
 * leftovers of retention removed.
 */
enum stele_status snapshots_settle(struct stele *store,
                                   uint64_t counted_out[WAL_ANCHOR_SNAPSHOTS],
                                   struct stele_error *error) STELE_MUST_CHECK;

/* Move the snapshot at `lsn` into quarantine/: it is damaged, and evidence. ANCHOR
 * no longer names it. */
enum stele_status snapshots_set_aside(struct stele *store, uint64_t lsn,
                                      struct stele_error *error)
    STELE_MUST_CHECK;

#endif
