/*
 * engine/archive.h -- what an archive is: the directory that backups fill, and from
 * which a store is restored.
 *
 *     ARCHIVE               what is in it, whole and verified
 *     ARCHIVE.lock          of one backup at a time; there before all else
 *     snapshot/<lsn>.snap   as in the store
 *     wal/<seq>.wal         as in the store, the last one zeros behind the end
 *
 * ARCHIVE, 248 bytes, little-endian:
 *
 *       0  magic "STELARCH"          8
 *       8  version               u32
 *      12  zero                  u32
 *      16  uuid                   16     of the store
 *      32  parent uuid            16     of the one that it was restored from
 *      48  parent lsn            u64
 *      56  segment bytes         u64
 *      64  base                   80     position (wal/position.h): a snapshot's, or
 *                                        where the log begins
 *     144  end                    80     position of the last unit
 *     224  segment first         u64     from it to the end the log has no gap
 *     232  wall ns               u64     of the last unit; 0: there is none
 *     240  checksum              u64     XXH3-64 of the bytes 0 .. 240
 *
 * It is valid if the checksum holds, both positions are of the uuid, and base is not
 * behind end. It vouches for the snapshot at base (none at the log's beginning) and
 * for the log from base, and from the first unit of segment first, to end: they were
 * read back before it was written. What else lies there is of earlier backups, good
 * for restoring as far as it verifies then, or of one that did not come to its end,
 * which nobody reads: behind `end` nothing is.
 *
 * Nothing in an archive is deleted by the engine; files are replaced only by longer
 * or sounder copies of themselves.
 */
#ifndef ENGINE_ARCHIVE_H
#define ENGINE_ARCHIVE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/io.h"
#include "base/status.h"
#include "wal/anchor.h"
#include "wal/position.h"

enum { ARCHIVE_VERSION = 1, ARCHIVE_BYTES = 248 };

#define ARCHIVE_NAME           "ARCHIVE"
#define ARCHIVE_TEMPORARY_NAME "ARCHIVE.tmp"
#define ARCHIVE_LOCK_NAME      "ARCHIVE.lock"

struct archive {
    struct wal_uuid uuid;
    struct wal_uuid parent_uuid;
    uint64_t parent_lsn;
    uint64_t segment_bytes;
    struct wal_position base;
    struct wal_position end;
    uint64_t segment_first;
    uint64_t wall_ns;
};

void archive_encode(const struct archive *archive,
                    uint8_t target[ARCHIVE_BYTES]);

enum archive_verdict {
    ARCHIVE_VALID,
    ARCHIVE_INVALID,
    ARCHIVE_NEWER, /* Intact, of a version this program does not know. */
};
enum archive_verdict archive_decode(const uint8_t source[ARCHIVE_BYTES],
                                    struct archive *archive_out);

/* NOT_FOUND: there is none. CORRUPT; FOREIGN: of a newer version. */
enum stele_status archive_read(struct io_dir *dir, struct archive *archive_out,
                               struct stele_error *error) STELE_MUST_CHECK;

/* ARCHIVE.tmp, synced, renamed, directory synced: until this returns OK the earlier
 * one counts, or (a failed sync of the directory) either does. */
enum stele_status archive_write(struct io_dir *dir,
                                const struct archive *archive,
                                struct stele_error *error) STELE_MUST_CHECK;

/* What is needed of ANCHOR to find bases (engine/bases.h) in an archive, whose log
 * begins in segment `segment_oldest`. */
struct wal_anchor archive_anchor(const struct archive *archive,
                                 uint64_t segment_oldest);

#endif
