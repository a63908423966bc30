/*
 * snapshot/block.h -- one block in memory (snapshot/format.h has its bytes): sealed
 * by the writer, read and verified by the reader and the map.
 *
 * A block that was read is whole: its checksum holds, its entries fill it exactly,
 * every length is within its bounds, and its keys ascend.
 */
#ifndef SNAPSHOT_BLOCK_H
#define SNAPSHOT_BLOCK_H

#include <stddef.h>
#include <stdint.h>

#include "base/bytes.h"
#include "base/io.h"
#include "base/status.h"

struct snapshot_entry {
    struct bytes key; /* Borrowed; whoever gives it says until when. */
    struct bytes stored;
};

/* A zeroed one is empty. */
struct snapshot_block {
    uint8_t *bytes; /* Header and entries. */
    size_t capacity;
    size_t size;       /* Of what is in it; 0: nothing. */
    uint32_t *offsets; /* Of the entries, in `bytes`. */
    uint32_t offset_capacity;
    uint32_t count; /* Of the entries. */
};

/* Fill in the header of a block whose entries are in their place behind it. */
void snapshot_block_seal(uint8_t *block, uint32_t entry_bytes, uint32_t count,
                         uint64_t seed, uint64_t offset);

/* Read and verify the block at `offset`, which ends at `end` at the latest. A
 * failure leaves it empty. */
enum stele_status snapshot_block_read(
    struct snapshot_block *block, struct io_file *file, uint64_t offset,
    uint64_t end, uint64_t seed, struct stele_error *error) STELE_MUST_CHECK;

/* Borrowed until the block is read into or freed. */
struct snapshot_entry snapshot_block_entry(const struct snapshot_block *block,
                                           uint32_t index);

/* The index of the first entry >= key, or count. */
uint32_t snapshot_block_lower(const struct snapshot_block *block,
                              struct bytes key);

/* As it stands in the header. */
uint64_t snapshot_block_checksum(const struct snapshot_block *block);

/* Accepts an empty one. */
void snapshot_block_free(struct snapshot_block *block);

#endif
