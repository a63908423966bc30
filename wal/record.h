/*
 * wal/record.h -- the WAL record: one batch, one LSN, all or nothing.
 *
 * Records stand back to back in the body of a unit (wal/unit.h).
 *
 *      0      4       8     16      20     24     32    48         56
 *     +------+-------+-----+-------+------+------+-----+----------+---...---+
 *     | body | op    | lsn | flags | zero | term | tag | checksum | body    |
 *     | bytes| count |     |       |      |      |     | of body  |         |
 *     | u32  | u32   | u64 | u32   | u32  | u64  | 16  | u64      | n bytes |
 *     +------+-------+-----+-------+------+------+-----+----------+---...---+
 *
 * The body is the batch's operations (engine/ops.h), which wal/ does not look
 * into. checksum is XXH3-64 of the body alone, so that the caller's thread can
 * compute it before the LSN is known; the header itself is covered by the
 * unit's chain. term is 0 (room for a replicated mode). tag is 0 unless
 * WAL_RECORD_HAS_TAG is set.
 *
 * A record is valid if and only if
 *
 *   (1) the bytes at hand hold all of it,
 *   (2) the unknown flags and the zero field are zero, and
 *   (3) checksum == checksum64(body, 0).
 */
#ifndef WAL_RECORD_H
#define WAL_RECORD_H

#include <assert.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/bytes.h"

enum {
    WAL_RECORD_TAG_BYTES = 16,
    WAL_RECORD_HEADER_BYTES = 56,
};

enum wal_record_flags {
    WAL_RECORD_HAS_TAG = 1u << 0,
};

struct wal_record {
    uint64_t lsn;
    uint64_t term;
    uint64_t body_checksum;
    uint32_t op_count;
    uint32_t flags;
    uint32_t body_bytes;
    uint8_t tag[WAL_RECORD_TAG_BYTES];
    const uint8_t *body; /* Borrowed from the buffer decoded. */
};

uint64_t wal_record_body_checksum(const void *body, size_t body_bytes);

/* Everything but `body`, which the caller has placed behind the header. */
void wal_record_encode_header(const struct wal_record *record,
                              uint8_t target[WAL_RECORD_HEADER_BYTES]);

/* Take the next record off `in`. False if a rule is broken; then
 * `record_out` is untouched. `in` may hold arbitrary bytes. */
bool wal_record_decode(struct byte_reader *in, struct wal_record *record_out);

#endif
