/*
 * snapshot/format.h -- the bytes of a snapshot: the whole state at one LSN, in
 * key order, in one file that needs no other.
 *
 *     header    64 bytes
 *     blocks    of up to 64 KiB of entries, or of one larger entry
 *     footer    160 bytes, the last of the file
 *
 * Header (little-endian, like everything here):
 *
 *       0  magic "STELSNAP"          8
 *       8  version               u32
 *      12  block bytes           u32     65,536
 *      16  uuid                   16     of the store
 *      32  lsn                   u64     of the state; also the file's name
 *      40  zero                   16
 *      56  checksum              u64     XXH3-64 of the bytes 0 .. 56
 *
 * Block:
 *
 *       0  entry bytes           u32     of all entries; never 0
 *       4  entry count           u32
 *       8  checksum              u64     XXH3-64 of the bytes 0 .. 8 and the
 *                                        entries (checksum64_pair()), seeded
 *                                        with the header's checksum + the
 *                                        block's file offset, modulo 2^64
 *      16  entries
 *
 * Entry:
 *
 *       0  key bytes             u16     1 to 511
 *       2  stored bytes          u32     up to SNAPSHOT_STORED_BYTES_MAX
 *       6  key, then what is stored for it
 *
 * Keys ascend strictly, over block borders too. What is stored is the caller's
 * (engine/base_value.h: LSN, check, value; the rows of tables, with their counts,
 * sums and versions, are entries like any other, right before their table's keys).
 *
 * Footer:
 *
 *       0  magic "STELSEND"          8
 *       8  lsn                   u64     once more
 *      16  entries               u64     in all blocks
 *      24  blocks                u64
 *      32  tables                u64     the caller's totals ...
 *      40  keys                  u64     ... tables' rows left out
 *      48  sum                   u64     ... of the keys' checks, modulo 2^64
 *      56  position               80     the caller's: the place in the log that
 *                                        this state is of (wal/position.h)
 *     136  digest                 16     XXH3-128 of the file up to the footer
 *     152  checksum              u64     XXH3-64 of the footer's bytes 0 .. 152,
 *                                        seeded with the header's checksum
 *
 * The same state at the same position is the same file, byte for byte: nothing of
 * a clock or of the process is in it. That a block's checksum is seeded with its
 * place keeps blocks from being taken for each other; the digest, that one is
 * missing. Nothing here is believed before its checksum is verified, and no
 * length before it is compared with its bounds.
 */
#ifndef SNAPSHOT_FORMAT_H
#define SNAPSHOT_FORMAT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/checksum.h"

enum {
    SNAPSHOT_VERSION = 1,
    SNAPSHOT_UUID_BYTES = 16,
    SNAPSHOT_POSITION_BYTES = 80,
    SNAPSHOT_HEADER_BYTES = 64,
    SNAPSHOT_BLOCK_BYTES = 64 << 10,
    SNAPSHOT_BLOCK_HEADER_BYTES = 16,
    SNAPSHOT_ENTRY_HEADER_BYTES = 6,
    SNAPSHOT_FOOTER_BYTES = 160,
    SNAPSHOT_KEY_BYTES_MAX = 511,
    SNAPSHOT_STORED_BYTES_MAX = (16 << 20) + 64,
};

#define SNAPSHOT_SUFFIX ".snap"

/* What the caller counts, for the footer. */
struct snapshot_totals {
    uint64_t tables;
    uint64_t keys;
    uint64_t sum;
};

/* What header and footer say. */
struct snapshot_info {
    uint8_t uuid[SNAPSHOT_UUID_BYTES];
    uint64_t lsn;
    uint64_t file_bytes;
    uint64_t entries;
    uint64_t blocks;
    struct snapshot_totals totals;
    uint8_t position[SNAPSHOT_POSITION_BYTES];
    struct checksum128 digest;
};

struct snapshot_header {
    uint8_t uuid[SNAPSHOT_UUID_BYTES];
    uint64_t lsn;
    uint64_t checksum; /* Seeds all others. */
};

void snapshot_header_encode(const uint8_t uuid[SNAPSHOT_UUID_BYTES],
                            uint64_t lsn,
                            uint8_t target[SNAPSHOT_HEADER_BYTES]);

enum snapshot_verdict {
    SNAPSHOT_VALID,
    SNAPSHOT_INVALID,
    SNAPSHOT_NEWER, /* Intact, of a version this program does not know. */
};
enum snapshot_verdict snapshot_header_decode(
    const uint8_t source[SNAPSHOT_HEADER_BYTES],
    struct snapshot_header *header_out);

/* uuid and file_bytes of `info` are not in it. */
void snapshot_footer_encode(const struct snapshot_info *info, uint64_t seed,
                            uint8_t target[SNAPSHOT_FOOTER_BYTES]);
bool snapshot_footer_decode(const uint8_t source[SNAPSHOT_FOOTER_BYTES],
                            uint64_t seed, struct snapshot_info *info_out);

#endif
