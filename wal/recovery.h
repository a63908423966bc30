/*
 * wal/recovery.h -- where the log ends, and what that means.
 *
 * Let N be the first unit after the base that is not whole (wal/unit.h). The
 * rows are tried in the order E, B, D, A, C; exactly one decides any input:
 *
 *     | row | found at N                                   | evidence | verdict
 *     |-----|----------------------------------------------|----------|---------
 *     |  E  | I/O error, short file, foreign uuid, newer   |    -     | refuse,
 *     |     | format, no valid anchor slot, a segment      |          | naming it
 *     |     | missing between the oldest needed and the    |          |
 *     |     | last named, a unit before N once more in a   |          |
 *     |     | later segment, no base left                  |          |
 *     |  B  | the page at N is zero, or N lies beyond the  |   yes    | LOST:
 *     |     | last segment                                 |          | refuse
 *     |  D  | anything else that is not a whole unit       |   yes    | CORRUPT:
 *     |     |                                              |          | refuse
 *     |  A  | every byte from N to the end of the last     |    no    | the log
 *     |     | existing segment is zero                     |          | ends here
 *     |  C  | anything else that is not a whole unit       |    no    | torn tail:
 *     |     |                                              |          | drop
 *
 * Evidence that N was durable:
 *
 *     unit    a later unit header that verifies, its body whole or not, with
 *             unit_durable >= N (looked for on page boundaries; when N's own
 *             header verifies, from behind its claimed end);
 *     anchor  a durable anchor slot that names a unit >= N;
 *     index   its positions applied and applying, and those of snapshots (given by
 *             the caller);
 *     caller  min_expected_lsn above the last LSN found.
 *
 * A checksum mismatch alone cannot tell a torn write from rot; later evidence
 * can. "Unit N+1 is valid" proves nothing by itself: disks reorder what was not
 * synced, and a gap followed by a valid record occurs on ext4 and xfs.
 *
 * This module writes nothing, except wal_recovery_harden().
 */
#ifndef WAL_RECOVERY_H
#define WAL_RECOVERY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/io.h"
#include "base/status.h"
#include "wal/anchor.h"
#include "wal/position.h"

enum wal_row {
    WAL_ROW_A = 'A',
    WAL_ROW_B = 'B',
    WAL_ROW_C = 'C',
    WAL_ROW_D = 'D',
    WAL_ROW_E = 'E',
};

struct wal_recovery_facts {
    bool refused;   /* Something of row E. */
    bool evidence;  /* N was durable. */
    bool page_zero; /* The page at N is zero, or N is beyond the last one. */
    bool rest_zero; /* Every byte from N on is zero. */
};

/* The table. Total. */
enum wal_row wal_recovery_row(const struct wal_recovery_facts *facts);

/* A position that was durable if its source, the index or a snapshot, is of this
 * log. If one claim differs from the log, none of its source's counts. */
struct wal_claim {
    const char *name; /* "index applied", for messages. */
    unsigned source;  /* A number for each. */
    struct wal_position position;
    bool differs; /* Out: the log has another unit of that number. */
};

struct wal_recovery_input {
    struct io_dir *wal_dir;
    const struct wal_anchor *anchor;
    struct wal_position base; /* Start behind this. */
    struct wal_claim *claims;
    size_t claim_count;
    uint64_t min_expected_lsn;
};

struct wal_recovery {
    bool base_found;  /* False: base is not in this log; nothing else is set. */
    enum wal_row row; /* A or C. */
    struct wal_position end; /* Of the last whole unit. */
    /* The place of N: where the next unit goes, if the row is A. */
    uint64_t next_segment;
    uint64_t next_offset;
    uint64_t units; /* After the base. */
    uint64_t records;
    uint64_t dropped_bytes;     /* Row C: pages that are not zero. */
    uint64_t segment_remains;   /* Row C: the last segment that has such. */
    uint64_t unit_proven;       /* Durable by evidence; the rest is accepted. */
    struct wal_position proven; /* At or before unit_proven. */
    uint64_t segment_last;      /* That exists. */
    uint64_t wall_ns_last;
};

/*
 * Find the end of the log and decide. OK: rows A and C. CORRUPT: rows B and D,
 * and E when it is damage; other statuses are row E. The message names the row,
 * the file, the offset, and the evidence. Writes nothing.
 */
enum stele_status wal_recovery_run(const struct wal_recovery_input *input,
                                   struct wal_recovery *recovery_out,
                                   struct stele_error *error) STELE_MUST_CHECK;

/*
 * Write the units after unit_proven again, with the same bytes, and sync them:
 * after a failed sync of an earlier process the page cache holds what the disk
 * does not, and syncing alone would succeed without writing. Before anyone sees
 * them. Needs no space except on a copy-on-write file system (NO_SPACE).
 * BUSY: a unit has gone since wal_recovery_run() read it. A sync had failed, the
 * unit was in the page cache only, and another process has dropped the cache
 * (wal_recovery_settle()): run again.
 */
enum stele_status wal_recovery_harden(
    const struct wal_recovery_input *input, const struct wal_recovery *recovery,
    struct stele_error *error) STELE_MUST_CHECK;

/*
 * What a reader that may not write does instead: sync the segments of the
 * unproven suffix (a read-only descriptor will do), and drop their cache, so
 * that the next wal_recovery_run() reads the disk.
 */
enum stele_status wal_recovery_settle(
    const struct wal_recovery_input *input, const struct wal_recovery *recovery,
    struct stele_error *error) STELE_MUST_CHECK;

#endif
