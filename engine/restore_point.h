/*
 * engine/restore_point.h -- which state of an archive is meant, and what it is made
 * from.
 *
 * An archive may hold several stretches of the log: those of earlier backups that
 * went to the same place, with gaps between them where the store had let its log go.
 * A state is there if a base is at or below it and the log reaches it without a gap.
 * (What a gap has held nobody knows, so an LSN in it is not there even if it was never
 * given.)
 */
#ifndef ENGINE_RESTORE_POINT_H
#define ENGINE_RESTORE_POINT_H

#include <stdint.h>

#include "base/io.h"
#include "base/status.h"
#include "engine/archive.h"
#include "engine/bases.h"

/* An archive that was opened to restore from it. */
struct restore_source {
    struct archive archive;
    struct wal_anchor anchor; /* As a store would have it. */
    struct io_dir *snapshot_dir;
    struct io_dir *wal_dir;
    struct bases bases;
};

/* FOREIGN: it is none, or newer. CORRUPT. Writes nothing. */
enum stele_status restore_source_open(
    struct io *io, const char *path, struct restore_source *source_out,
    struct stele_error *error) STELE_MUST_CHECK;
void restore_source_close(struct restore_source *source);

/* The last batch of an LSN and a wall time up to these; UINT64_MAX: whatever it is. */
struct restore_target {
    uint64_t lsn;
    uint64_t time_ns;
};

struct restore_point {
    struct base_item *base; /* Of the source. */
    uint64_t unit_last;     /* Which holds that batch. */
    uint64_t lsn;           /* Of it. */
    uint64_t wall_ns;       /* Of the unit; 0: unknown. */
};

/*
 * Reads and verifies the log from the base to the point. NOT_FOUND: the archive does
 * not have it; the message says what it has. CORRUPT: it should.
 */
enum stele_status restore_point_find(
    const struct restore_source *source, const struct restore_target *target,
    struct restore_point *point_out,
    struct stele_error *error) STELE_MUST_CHECK;

#endif
