/*
 * tests/lib/reseal.h -- lies that are believed: fields on disk changed behind the
 * back of a store, with every checksum over them made right again.
 *
 * Offsets are those of the formats' own headers. Closed stores only.
 */
#ifndef TESTS_LIB_RESEAL_H
#define TESTS_LIB_RESEAL_H

#include <stddef.h>
#include <stdint.h>

#include "wal/position.h"

/* The u64 at `offset` of both slots of the ANCHOR at `path` (wal/anchor.h). */
void reseal_anchor_u64(const char *path, size_t offset, uint64_t value);
/* ... and the durable position. */
void reseal_anchor_durable(const char *path,
                           const struct wal_position *position);

/* The u64 at `offset` of a segment's header (wal/segment.h). */
void reseal_segment_u64(const char *path, size_t offset, uint64_t value);

/* A unit of one record, in memory: change `bytes`, then put it back. Its chain
 * goes on from that of the unit at `previous_offset`; 0: it is the first. */
struct reseal_unit {
    const char *path; /* Of the segment; the caller's. */
    uint64_t offset;
    uint64_t seed;
    struct checksum128 previous;
    uint8_t *bytes; /* Header, then the record. */
    size_t size;
};

enum {
    RESEAL_RECORD = 128,          /* Where the record begins, in `bytes` ... */
    RESEAL_OPS = 128 + 56,        /* ... and the operations. */
    RESEAL_UNIT_BODY_BYTES = 40,  /* u64, of the unit. */
    RESEAL_RECORD_BODY_BYTES = 0, /* u32, of the record. */
    RESEAL_RECORD_OP_COUNT = 4,   /* u32 */
};

void reseal_unit_begin(struct reseal_unit *unit, const char *path,
                       uint64_t offset, uint64_t previous_offset);
/* Seal it, write it where it was, and free the memory. */
void reseal_unit_end(struct reseal_unit *unit);

/* Parts of a snapshot in memory (snapshot/format.h). The header's checksum seeds
 * the others: seal it first. */
void reseal_snapshot_header(uint8_t *file);
/* The block at `offset`, of as many bytes as it claims to have. */
void reseal_snapshot_block(uint8_t *file, size_t file_bytes, size_t offset);
/* The digest too. */
void reseal_snapshot_footer(uint8_t *file, size_t file_bytes);

#endif
