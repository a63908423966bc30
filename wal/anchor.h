/*
 * wal/anchor.h -- ANCHOR: what must be known before any segment is read.
 *
 * Three pages of 4096 bytes. Slots 0 and 1 alternate: the next write goes to
 * the slot with the older sequence number and is synced, so that one valid slot
 * survives a power cut in any write. Slot 2 is the hint.
 *
 * A slot (little-endian; the rest of its page is zero):
 *
 *       0  magic "STELANCH"          8
 *       8  checksum              u64     XXH3-64 of the bytes 16 .. 512
 *      16  version               u32
 *      20  format min            u32     the newest format in the directory
 *      24  slot sequence         u64     the higher one counts
 *      32  uuid                   16
 *      48  parent uuid            16     of the store this was restored from
 *      64  parent lsn            u64
 *      72  incarnation           u64     counts opens for writing
 *      80  lsn floor             u64     no LSN up to here is ever given again
 *      88  segment last          u64     the newest segment made
 *      96  segment oldest        u64     the oldest one needed
 *     104  segment bytes         u64     the length of every segment
 *     112  flags                 u32     1: clean end, 2: index suspect
 *     116  zero                  u32
 *     120  snapshots         2 x u64     LSNs of the newest two; 0: none
 *     136  index generation      u64     0: none yet
 *     144  index inode           u64
 *     152  index birth ns        u64
 *     160  index format          u32
 *     164  zero                  u32
 *     168  durable                80     position (wal/position.h)
 *     248  cluster uuid           16     zero (room for a replicated mode)
 *     264  term                  u64     zero
 *     272  zeros to 512
 *
 * The hint (one small write before an acknowledgement, never synced for its own
 * sake, never waited for, never evidence):
 *
 *       0  magic "STELHINT"          8
 *       8  checksum              u64     XXH3-64 of the bytes 16 .. 104
 *      16  incarnation           u64
 *      24  position               80     the visible durable one
 *
 * What each write of a slot means, and when it is due:
 *
 *     open       after the verdict and never before it: the other slot first if
 *                it is invalid, then the newest one again in place (after a
 *                failed sync the page cache may show what the disk does not
 *                have), then "not clean" with the new incarnation and LSN floor,
 *                durable before the first unit.
 *     segment    a new one is named before it is used.
 *     index      its identity, before it is written.
 *     idle       the last durable unit, so that its loss would be noticed.
 *     close      clean, with the last LSN ever assigned.
 *
 * The anchor is evidence, not truth: it can only make the store more suspicious.
 *
 * Threads: one writer of slots at a time (the caller's mutex); the hint is
 * written by the holder of the log role.
 */
#ifndef WAL_ANCHOR_H
#define WAL_ANCHOR_H

#include <stdbool.h>
#include <stdint.h>

#include "base/io.h"
#include "base/status.h"
#include "wal/position.h"

enum {
    WAL_ANCHOR_VERSION = 1,
    WAL_ANCHOR_SLOT_BYTES = 4096,
    WAL_ANCHOR_BYTES = 3 * WAL_ANCHOR_SLOT_BYTES,
    WAL_ANCHOR_USED_BYTES = 512,
    WAL_HINT_BYTES = 104,
    WAL_ANCHOR_SNAPSHOTS = 2,
};

#define WAL_ANCHOR_NAME "ANCHOR"

struct wal_anchor {
    uint32_t format_min;
    uint64_t slot_sequence;
    struct wal_uuid uuid;
    struct wal_uuid parent_uuid;
    uint64_t parent_lsn;
    uint64_t incarnation;
    uint64_t lsn_floor;
    uint64_t segment_last;
    uint64_t segment_oldest;
    uint64_t segment_bytes;
    bool clean;
    bool index_suspect;
    uint64_t snapshots[WAL_ANCHOR_SNAPSHOTS];
    uint64_t index_generation;
    uint64_t index_inode;
    uint64_t index_birth_ns;
    uint32_t index_format;
    struct wal_position durable;
};

/* Before the store's first unit: behind the LSN it was restored from, or 0. */
struct wal_position wal_anchor_origin(const struct wal_anchor *anchor);

/* ---- Bytes ------------------------------------------------------------------ */

void wal_anchor_encode(const struct wal_anchor *anchor,
                       uint8_t target[WAL_ANCHOR_SLOT_BYTES]);

enum wal_anchor_verdict {
    WAL_ANCHOR_VALID,
    WAL_ANCHOR_INVALID, /* Torn, damaged or never written. */
    WAL_ANCHOR_NEWER,   /* Intact, of a version this program does not know. */
};
enum wal_anchor_verdict wal_anchor_decode(
    const uint8_t source[WAL_ANCHOR_SLOT_BYTES], struct wal_anchor *anchor_out);

/* ---- The file --------------------------------------------------------------- */

struct wal_anchor_file {
    struct io_file *file;
    bool slot_valid[2]; /* As read at open; both after a heal. */
    unsigned newest;    /* The slot that counts. */
};

/* Make ANCHOR with both slots holding `anchor`: ANCHOR.tmp, synced, renamed,
 * directory synced. What makes a directory a store, so it comes last. */
enum stele_status wal_anchor_create(struct io_dir *dir,
                                    const struct wal_anchor *anchor,
                                    struct stele_error *error) STELE_MUST_CHECK;

/* Open and read. Clean only if both slots are valid: one that is not may have been
 * the newer. NOT_FOUND: no such file. CORRUPT: no valid slot, or the wrong
 * length. FOREIGN: newer. Writes nothing. */
enum stele_status wal_anchor_open(struct io_dir *dir, enum io_open_mode mode,
                                  struct wal_anchor_file *file_out,
                                  struct wal_anchor *anchor_out,
                                  struct stele_error *error) STELE_MUST_CHECK;

/* Read the newest valid slot again (another process writes it). */
enum stele_status wal_anchor_read(struct wal_anchor_file *file,
                                  struct wal_anchor *anchor_out,
                                  struct stele_error *error) STELE_MUST_CHECK;

/* Both slots hold `anchor`, durably, before the first alternating write. */
enum stele_status wal_anchor_heal(struct wal_anchor_file *file,
                                  const struct wal_anchor *anchor,
                                  struct stele_error *error) STELE_MUST_CHECK;

/* Write the next slot and sync. On success anchor->slot_sequence has advanced.
 * After a failure (other than NO_SPACE: nothing was written) write no more. */
enum stele_status wal_anchor_write(struct wal_anchor_file *file,
                                   struct wal_anchor *anchor,
                                   struct stele_error *error) STELE_MUST_CHECK;

enum stele_status wal_hint_write(struct wal_anchor_file *file,
                                 uint64_t incarnation,
                                 const struct wal_position *position,
                                 struct stele_error *error) STELE_MUST_CHECK;

/* False: none valid (never written, or torn by a concurrent write: try again). */
enum stele_status wal_hint_read(struct wal_anchor_file *file, bool *valid_out,
                                uint64_t *incarnation_out,
                                struct wal_position *position_out,
                                struct stele_error *error) STELE_MUST_CHECK;

/* Accepts a closed one. */
void wal_anchor_close(struct wal_anchor_file *file);

#endif
