/*
 * wal/position.h -- a place in the log: right behind one unit.
 *
 * The same 80 bytes stand in ANCHOR, in the index and in snapshots:
 *
 *      0        16    24     32      48        56      64    72         80
 *     +--------+-----+------+-------+---------+-------+-----+----------+
 *     | uuid   | lsn | unit | chain | segment | start | end | checksum |
 *     +--------+-----+------+-------+---------+-------+-----+----------+
 *
 * lsn is the last LSN of the unit; chain its chain value (wal/unit.h); start
 * and end are its offsets in the segment, end included padding. Before the
 * first unit everything but uuid, lsn (0, but in a restored store) and chain is 0. checksum is XXH3-64 of the
 * bytes 0 .. 72.
 */
#ifndef WAL_POSITION_H
#define WAL_POSITION_H

#include <stdbool.h>
#include <stdint.h>

#include "base/checksum.h"

enum { WAL_UUID_BYTES = 16, WAL_POSITION_BYTES = 80 };

struct wal_uuid {
    uint8_t bytes[WAL_UUID_BYTES];
};

struct wal_position {
    struct wal_uuid uuid;
    uint64_t lsn;
    uint64_t unit;
    struct checksum128 chain;
    uint64_t segment;
    uint64_t start_offset;
    uint64_t end_offset;
};

/* The position before the first unit of the store `uuid`, whose log begins behind
 * `lsn`: unit 0. */
struct wal_position wal_position_origin(const struct wal_uuid *uuid,
                                        uint64_t lsn);

/* Same unit, same history. */
bool wal_position_equal(const struct wal_position *left,
                        const struct wal_position *right);

bool wal_uuid_equal(const struct wal_uuid *left, const struct wal_uuid *right);

void wal_position_encode(const struct wal_position *position,
                         uint8_t target[WAL_POSITION_BYTES]);

/* False if the checksum does not hold; `position_out` is then untouched. */
bool wal_position_decode(const uint8_t source[WAL_POSITION_BYTES],
                         struct wal_position *position_out);

#endif
