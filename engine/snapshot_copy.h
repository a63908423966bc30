/*
 * engine/snapshot_copy.h -- an index, as one reader sees it, into a snapshot that is
 * not published yet.
 *
 * In key order; every check is verified and copied, never made anew; every table's
 * count and sum is compared. What does not verify does not become a snapshot.
 *
 * Threads: one at a time.
 */
#ifndef ENGINE_SNAPSHOT_COPY_H
#define ENGINE_SNAPSHOT_COPY_H

#include <stdbool.h>
#include <stdint.h>

#include "base/status.h"
#include "engine/index.h"
#include "engine/tally.h"
#include "snapshot/writer.h"
#include "wal/position.h"

struct snapshot_copy {
    struct snapshot_writer *writer; /* Borrowed. */
    struct index_cursor *cursor;
    struct base_entry entry; /* To copy next; no key: there is none. */
    struct tally tally;
};

/* From the first entry on. Closed before `reader` is released. */
enum stele_status snapshot_copy_open(
    struct snapshot_copy *copy, struct index_reader *reader,
    struct snapshot_writer *writer, struct stele_error *error) STELE_MUST_CHECK;

/* Go on by about `bytes_max` bytes. *done_out: that was the last entry. CORRUPT: a
 * value or a table is damaged. */
enum stele_status snapshot_copy_advance(
    struct snapshot_copy *copy, uint64_t bytes_max, bool *done_out,
    struct stele_error *error) STELE_MUST_CHECK;

/* The footer, for a state that is of this position; all of it is on the disk when it
 * returns OK, and its cache dropped. */
enum stele_status snapshot_copy_finish(
    struct snapshot_copy *copy, const struct wal_position *position,
    struct snapshot_info *info_out, struct stele_error *error) STELE_MUST_CHECK;

/* Accepts one that is closed or zeroed. */
void snapshot_copy_close(struct snapshot_copy *copy);

#endif
