/* snapshot/block.c -- see snapshot/block.h. */
#include "snapshot/block.h"

#include <inttypes.h>
#include <stdlib.h>

#include "base/checksum.h"
#include "base/error.h"
#include "snapshot/format.h"

enum {
    CHECKSUM_OFFSET = 8,
    ENTRY_BYTES_MIN = SNAPSHOT_ENTRY_HEADER_BYTES + 1,
    ENTRY_BYTES_MAX = SNAPSHOT_ENTRY_HEADER_BYTES + SNAPSHOT_KEY_BYTES_MAX +
                      SNAPSHOT_STORED_BYTES_MAX,
    BLOCK_CAPACITY = SNAPSHOT_BLOCK_HEADER_BYTES + SNAPSHOT_BLOCK_BYTES,
};

static uint64_t checksum_of(const uint8_t *block, uint32_t entry_bytes,
                            uint64_t seed, uint64_t offset)
{
    return checksum64_pair(block, CHECKSUM_OFFSET,
                           block + SNAPSHOT_BLOCK_HEADER_BYTES, entry_bytes,
                           seed + offset);
}

void snapshot_block_seal(uint8_t *block, uint32_t entry_bytes, uint32_t count,
                         uint64_t seed, uint64_t offset)
{
    put_u32le(block + 0, entry_bytes);
    put_u32le(block + 4, count);
    put_u64le(block + CHECKSUM_OFFSET,
              checksum_of(block, entry_bytes, seed, offset));
}

/* ---- Reading -------------------------------------------------------------- */

/* Room for so many bytes; what is in the block is lost. One large entry does not
 * keep its memory: the next block gives it back. */
static enum stele_status make_room(struct snapshot_block *block, size_t bytes,
                                   struct stele_error *error)
{
    const size_t capacity = bytes < BLOCK_CAPACITY ? BLOCK_CAPACITY : bytes;

    if (capacity == block->capacity) {
        return STELE_OK;
    }
    free(block->bytes);
    block->bytes = malloc(capacity);
    block->capacity = block->bytes == NULL ? 0 : capacity;
    return block->bytes == NULL ? error_no_memory(error, "snapshot block")
                                : STELE_OK;
}

static enum stele_status make_room_for_offsets(struct snapshot_block *block,
                                               uint32_t count,
                                               struct stele_error *error)
{
    uint32_t *offsets;

    if (count <= block->offset_capacity) {
        return STELE_OK;
    }
    offsets = realloc(block->offsets, count * sizeof *offsets);
    if (offsets == NULL) {
        return error_no_memory(error, "snapshot block");
    }
    block->offsets = offsets;
    block->offset_capacity = count;
    return STELE_OK;
}

/* Until the checksum is verified the lengths are only claims: bound them. */
static bool is_plausible(uint32_t entry_bytes, uint32_t count, uint64_t room)
{
    const uint32_t entry_bytes_max =
        count == 1 ? ENTRY_BYTES_MAX : SNAPSHOT_BLOCK_BYTES;

    return count > 0 && entry_bytes <= entry_bytes_max && entry_bytes <= room &&
           count <= entry_bytes / ENTRY_BYTES_MIN;
}

/* Find the entries; the block is sealed, but by whom? */
static enum stele_status find_entries(struct snapshot_block *block,
                                      uint32_t count, const char *name,
                                      uint64_t offset,
                                      struct stele_error *error)
{
    struct byte_reader in = byte_reader_init(block->bytes, block->size);
    struct bytes previous = {.size = 0};

    (void)byte_reader_take(&in, SNAPSHOT_BLOCK_HEADER_BYTES);
    for (uint32_t index = 0; index < count; index++) {
        const size_t start = in.offset;
        const uint16_t key_bytes = byte_reader_u16(&in);
        const uint32_t stored_bytes = byte_reader_u32(&in);
        const struct bytes key = {byte_reader_take(&in, key_bytes), key_bytes};

        (void)byte_reader_take(&in, stored_bytes);
        if (in.failed) {
            return error_set(error, STELE_CORRUPT,
                             "%s: offset %" PRIu64
                             ": an entry does not end in its block, which has "
                             "%zu bytes",
                             name, offset + start, block->size);
        }
        if (key_bytes == 0 || key_bytes > SNAPSHOT_KEY_BYTES_MAX ||
            stored_bytes > SNAPSHOT_STORED_BYTES_MAX) {
            return error_set(error, STELE_CORRUPT,
                             "%s: offset %" PRIu64 ": key of %u bytes with "
                             "%" PRIu32 " stored, expected 1 to %d and up to "
                             "%d",
                             name, offset + start, (unsigned)key_bytes,
                             stored_bytes, SNAPSHOT_KEY_BYTES_MAX,
                             SNAPSHOT_STORED_BYTES_MAX);
        }
        if (index > 0 && bytes_compare(previous, key) >= 0) {
            return error_set(error, STELE_CORRUPT,
                             "%s: offset %" PRIu64
                             ": expected a key above the one before it",
                             name, offset + start);
        }
        block->offsets[index] = (uint32_t)start;
        previous = key;
    }
    if (in.offset != block->size) {
        return error_set(error, STELE_CORRUPT,
                         "%s: offset %" PRIu64 ": %zu bytes behind the last of "
                         "%" PRIu32 " entries, expected none",
                         name, offset + in.offset, block->size - in.offset,
                         count);
    }
    block->count = count;
    return STELE_OK;
}

static enum stele_status read_block(struct snapshot_block *block,
                                    struct io_file *file, uint64_t offset,
                                    uint64_t end, uint64_t seed,
                                    struct stele_error *error)
{
    const char *name = io_file_name(file);
    uint8_t header[SNAPSHOT_BLOCK_HEADER_BYTES];
    enum stele_status status;
    uint32_t entry_bytes;
    uint32_t count;

    if (end - offset < sizeof header) {
        return error_set(error, STELE_CORRUPT,
                         "%s: offset %" PRIu64 ": %" PRIu64
                         " bytes, expected a block or the footer",
                         name, offset, end - offset);
    }
    status = io_file_read_exact(file, header, sizeof header, offset, error);
    if (status != STELE_OK) {
        return status;
    }
    entry_bytes = get_u32le(header + 0);
    count = get_u32le(header + 4);
    if (!is_plausible(entry_bytes, count, end - offset - sizeof header)) {
        return error_set(
            error, STELE_CORRUPT,
            "%s: offset %" PRIu64 ": block of %" PRIu32 " bytes in %" PRIu32
            " entries, expected up to %" PRIu64,
            name, offset, entry_bytes, count, end - offset - sizeof header);
    }
    status = make_room(block, sizeof header + entry_bytes, error);
    if (status == STELE_OK) {
        status = make_room_for_offsets(block, count, error);
    }
    if (status == STELE_OK) {
        memcpy(block->bytes, header, sizeof header);
        status = io_file_read_exact(file, block->bytes + sizeof header,
                                    entry_bytes, offset + sizeof header, error);
    }
    if (status != STELE_OK) {
        return status;
    }
    if (get_u64le(header + CHECKSUM_OFFSET) !=
        checksum_of(block->bytes, entry_bytes, seed, offset)) {
        return error_set(error, STELE_CORRUPT,
                         "%s: offset %" PRIu64
                         ": the checksum of the block does not match",
                         name, offset);
    }
    block->size = sizeof header + entry_bytes;
    return find_entries(block, count, name, offset, error);
}

enum stele_status snapshot_block_read(struct snapshot_block *block,
                                      struct io_file *file, uint64_t offset,
                                      uint64_t end, uint64_t seed,
                                      struct stele_error *error)
{
    enum stele_status status;

    block->size = 0;
    block->count = 0;
    status = read_block(block, file, offset, end, seed, error);
    if (status != STELE_OK) {
        block->size = 0;
    }
    return status;
}

/* ---- What is in it -------------------------------------------------------- */

struct snapshot_entry snapshot_block_entry(const struct snapshot_block *block,
                                           uint32_t index)
{
    const uint8_t *entry = block->bytes + block->offsets[index];
    const uint8_t *key = entry + SNAPSHOT_ENTRY_HEADER_BYTES;
    const size_t key_bytes = get_u16le(entry + 0);

    return (struct snapshot_entry){
        .key = {key, key_bytes},
        .stored = {key + key_bytes, get_u32le(entry + 2)},
    };
}

uint32_t snapshot_block_lower(const struct snapshot_block *block,
                              struct bytes key)
{
    uint32_t low = 0;
    uint32_t high = block->count;

    while (low < high) {
        const uint32_t middle = low + (high - low) / 2;

        if (bytes_compare(snapshot_block_entry(block, middle).key, key) < 0) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

uint64_t snapshot_block_checksum(const struct snapshot_block *block)
{
    return get_u64le(block->bytes + CHECKSUM_OFFSET);
}

void snapshot_block_free(struct snapshot_block *block)
{
    free(block->bytes);
    free(block->offsets);
    *block = (struct snapshot_block){0};
}
