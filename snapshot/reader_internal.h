/*
 * snapshot/reader_internal.h -- what reader.c and map.c, which begins as a reader,
 * share.
 */
#ifndef SNAPSHOT_READER_INTERNAL_H
#define SNAPSHOT_READER_INTERNAL_H

#include "base/checksum.h"
#include "snapshot/block.h"
#include "snapshot/reader.h"

struct snapshot_reader {
    struct io_file *file;
    struct snapshot_info info;
    uint64_t seed;
    uint64_t blocks_end;            /* Where the footer begins. */
    struct checksum_stream *digest; /* Of the bytes up to `offset`. */
    uint64_t offset;                /* Of the next block. */
    uint64_t entries;               /* Up to there. */
    uint64_t blocks;
    struct snapshot_block block; /* The one before `offset`. */
    uint64_t block_offset;
    uint32_t index; /* In `block`, of the next entry. */
    size_t key_last_bytes;
    uint8_t key_last[SNAPSHOT_KEY_BYTES_MAX]; /* Of the block before it. */
};

#endif
