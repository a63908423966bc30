/*
 * wal/segment.h -- a segment: a file of fixed length, complete before use.
 *
 *      0          8         12     16     32    40      48     56         64
 *     +----------+---------+------+------+-----+-------+------+----------+--
 *     | magic    | version | zero | uuid | seq | length| salt | checksum |
 *     | STELESEG | u32     | u32  | 16   | u64 | u64   | u64  | u64      |
 *     +----------+---------+------+------+-----+-------+------+----------+--
 *
 * and zeros up to 4096, where the first unit (wal/unit.h) may stand. checksum is
 * XXH3-64 of the bytes 0 .. 56. Nothing about the predecessor is in here: only
 * the unit at 4096 speaks for a segment, by its number and chain.
 *
 * Name: wal/<seq, 16 lower-case hex digits>.wal; .tmp while being prepared
 * (base/numbered.h).
 *
 * A prepared segment holds header and zeros, is synced, has its durable name,
 * and is named in ANCHOR before use. So a commit never changes file metadata,
 * and its sync never waits for the file system's journal. (Overwriting written
 * zeros: 138 us for a durable 4 KiB; fallocate'd 208, growing 210.) On a
 * copy-on-write file system, where every write allocates anyway, the blocks are
 * reserved instead.
 *
 * Segments are never recycled, truncated or overwritten, except by recovery
 * with the same bytes: every published recycler had years of bugs for it.
 */
#ifndef WAL_SEGMENT_H
#define WAL_SEGMENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/io.h"
#include "base/status.h"
#include "wal/position.h"

enum {
    WAL_SEGMENT_VERSION = 1,
    WAL_SEGMENT_HEADER_BYTES = 4096,
    WAL_SEGMENT_FIRST = 1, /* Of every log. */
};
#define WAL_SEGMENT_SUFFIX    ".wal"
#define WAL_SEGMENT_BYTES_MIN ((uint64_t)1 << 14)
#define WAL_SEGMENT_BYTES_MAX ((uint64_t)1 << 30)

/* An open segment. */
struct wal_segment {
    uint64_t seq;
    uint64_t bytes;
    uint64_t salt;
    struct io_file *file;
};

/* The segment in which the log goes on behind a position, and where in it: also
 * before the first unit. */
uint64_t wal_segment_behind(const struct wal_position *position);
uint64_t wal_segment_offset_behind(const struct wal_position *position);

/*
 * Make segment `seq`, in place of a blank file if there is one of that name
 * (EXISTS: any other). NO_SPACE, IO: the temporary is gone again, nothing
 * changed, and a new try may be made. If *names_unknown_out is set as well, a
 * directory sync failed: what is durable in wal/ is unknown, write no more.
 */
enum stele_status wal_segment_prepare(
    struct io_dir *wal_dir, uint64_t seq, const struct wal_uuid *uuid,
    uint64_t bytes, enum io_fs_kind fs_kind, struct wal_segment *segment_out,
    bool *names_unknown_out, struct stele_error *error) STELE_MUST_CHECK;

/* Open and check the header. CORRUPT: checksum or length; FOREIGN: another
 * store's, or a newer version. */
enum stele_status wal_segment_open(struct io_dir *wal_dir, uint64_t seq,
                                   const struct wal_uuid *uuid,
                                   enum io_open_mode mode,
                                   struct wal_segment *segment_out,
                                   struct stele_error *error) STELE_MUST_CHECK;

/* Whether everything behind the header is zero. Reads it all. */
enum stele_status wal_segment_is_unused(
    const struct wal_segment *segment, bool *unused_out,
    struct stele_error *error) STELE_MUST_CHECK;

/* Whether the file of segment `seq` can hold no unit: not longer than a header, or
 * all zeros. What a power cut may leave of a segment that was being made, where
 * a name becomes durable before the bytes. */
enum stele_status wal_segment_is_blank(
    struct io_dir *wal_dir, uint64_t seq, bool *blank_out,
    struct stele_error *error) STELE_MUST_CHECK;

/* Accepts a closed one. */
void wal_segment_close(struct wal_segment *segment);

#endif
