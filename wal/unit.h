/*
 * wal/unit.h -- the unit: one group commit, one write, one sync.
 *
 * A unit starts on a 4096-byte boundary of its segment, never crosses the
 * segment's end, and is padded with zeros to a multiple of 4096.
 *
 *       0        8          16        20       24       32        40
 *      +--------+----------+---------+--------+--------+---------+---------
 *      | magic  | header   | version | record | number | segment | body
 *      |STELUNIT| checksum |         | count  |        |         | bytes
 *      | 8      | u64      | u32     | u32    | u64    | u64     | u64
 *      +--------+----------+---------+--------+--------+---------+---------
 *       48          56           64            72        80      96    128
 *      +-----------+------------+-------------+---------+-------+-----+
 *      | first lsn | unit       | incarnation | wall ns | chain | zero|
 *      |           | durable    |             |         |       |     |
 *      | u64       | u64        | u64         | u64     | 16    | 32  |
 *      +-----------+------------+-------------+---------+-------+-----+
 *
 * followed by the records (wal/record.h), back to back.
 *
 * number        1 for the store's first unit, then one more each.
 * unit durable  the highest unit known durable when this one was written: what
 *               a later header proves about an earlier unit (wal/recovery.h).
 * incarnation   counts opens for writing.
 * wall ns       max(of the previous unit, now). Information: orders nothing.
 * chain         XXH3-128 folded over the previous unit's chain, the bytes 16 ..
 *               80 of this header, and each record's header; so it covers every
 *               byte of the history but the bodies, whose checksums it covers.
 *               Before the first unit: wal/position.h.
 * checksum      XXH3-64 of the bytes 16 .. 128: the length can be believed, and
 *               unit durable be used as evidence, before the body is read.
 *
 * Both are seeded with the segment's salt and the unit's file offset. So a value
 * that contains the image of a unit is never taken for one, nor is a unit at
 * another place, or of another segment.
 *
 * A unit is WHOLE at a place if and only if
 *
 *   (1) magic, header checksum and segment are right, the version is 1;
 *   (2) header + body end inside the segment;
 *   (3) number = the previous unit's + 1;
 *   (4) the body is exactly record count (>= 1) valid records, with LSNs that
 *       ascend from first lsn, itself above the previous unit's last; and
 *   (5) chain is as computed from the previous unit's chain.
 */
#ifndef WAL_UNIT_H
#define WAL_UNIT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/bytes.h"
#include "base/checksum.h"
#include "wal/position.h"
#include "wal/record.h"

enum {
    WAL_PAGE_BYTES = 4096, /* Units start on a multiple of this. */
    WAL_UNIT_HEADER_BYTES = 128,
    WAL_UNIT_VERSION = 1,
    WAL_UNIT_RECORDS_MAX = 1000, /* Of one group: an iovec entry each. */
};

struct wal_unit {
    uint64_t number;
    uint64_t segment;
    uint64_t body_bytes;
    uint64_t lsn_first;
    uint64_t unit_durable;
    uint64_t incarnation;
    uint64_t wall_ns;
    uint32_t record_count;
    struct checksum128 chain;
};

/* The seed of both checksums of a unit at this place. */
uint64_t wal_unit_seed(uint64_t segment_salt, uint64_t offset);

/* Header and body, padded. */
uint64_t wal_unit_padded_bytes(uint64_t body_bytes);

/* The chain of `unit` (its own `chain` is not used) after `previous`, over
 * `record_count` records whose headers stand at record_headers[i]. */
struct checksum128 wal_chain_next(const struct checksum128 *previous,
                                  const struct wal_unit *unit,
                                  const uint8_t *const *record_headers,
                                  uint64_t seed);

void wal_unit_encode_header(const struct wal_unit *unit, uint64_t seed,
                            uint8_t target[WAL_UNIT_HEADER_BYTES]);

/*
 * Rules (1) and (2), for a unit at `offset` of segment `segment` with
 * `segment_bytes`. True: *unit_out is what its writer wrote, except that the
 * body may be damaged. `source` may be arbitrary bytes.
 */
bool wal_unit_decode_header(const uint8_t source[WAL_UNIT_HEADER_BYTES],
                            uint64_t seed, uint64_t segment, uint64_t offset,
                            uint64_t segment_bytes, struct wal_unit *unit_out);

/*
 * Rules (3) to (5). `body` has unit->body_bytes. True: `*lsn_last_out` is the
 * LSN of the last record, and the records decode without failure.
 */
bool wal_unit_is_whole(const struct wal_unit *unit, const uint8_t *body,
                       uint64_t seed, const struct wal_position *previous,
                       uint64_t *lsn_last_out);

#endif
