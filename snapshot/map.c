/* snapshot/map.c -- see snapshot/map.h. */
#include "snapshot/map.h"

#include <assert.h>
#include <inttypes.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "base/error.h"
#include "snapshot/block.h"
#include "snapshot/reader_internal.h"

/* What is kept of a block. */
struct map_block {
    uint64_t offset;
    uint64_t checksum;
    uint32_t count;
    uint16_t key_bytes; /* Of the first key, at `key_offset` of `keys`. */
    size_t key_offset;
};

struct snapshot_map {
    _Atomic uint64_t references;
    struct io_file *file; /* Open as long as this lives: it may be unlinked. */
    struct snapshot_info info;
    uint64_t seed;
    struct map_block *blocks; /* Ascending, by offset and by key. */
    size_t block_count;
    size_t block_capacity;
    uint8_t *keys;
    size_t key_bytes;
    size_t key_capacity;
};

/* ---- Opening ------------------------------------------------------------------ */

static enum stele_status make_room(struct snapshot_map *map, size_t key_bytes,
                                   struct stele_error *error)
{
    if (map->block_count == map->block_capacity) {
        const size_t capacity = map->block_capacity * 2 + 64;
        struct map_block *grown =
            realloc(map->blocks, capacity * sizeof *grown);

        if (grown == NULL) {
            return error_no_memory(error, "snapshot map");
        }
        map->blocks = grown;
        map->block_capacity = capacity;
    }
    if (map->key_capacity - map->key_bytes < key_bytes) {
        const size_t capacity = map->key_capacity * 2 + SNAPSHOT_KEY_BYTES_MAX;
        uint8_t *grown = realloc(map->keys, capacity);

        if (grown == NULL) {
            return error_no_memory(error, "snapshot map");
        }
        map->keys = grown;
        map->key_capacity = capacity;
    }
    return STELE_OK;
}

/* Keep what is needed to find the block again. */
static enum stele_status note_block(struct snapshot_map *map, uint64_t offset,
                                    const struct snapshot_block *block,
                                    struct stele_error *error)
{
    const struct bytes key = snapshot_block_entry(block, 0).key;
    const enum stele_status status = make_room(map, key.size, error);

    if (status != STELE_OK) {
        return status;
    }
    map->blocks[map->block_count++] = (struct map_block){
        .offset = offset,
        .checksum = snapshot_block_checksum(block),
        .count = block->count,
        .key_bytes = (uint16_t)key.size,
        .key_offset = map->key_bytes,
    };
    memcpy(map->keys + map->key_bytes, key.data, key.size);
    map->key_bytes += key.size;
    return STELE_OK;
}

/* Read it all. */
static enum stele_status survey(struct snapshot_map *map,
                                struct snapshot_reader *reader,
                                struct stele_error *error)
{
    for (;;) {
        const uint64_t blocks = reader->blocks;
        struct snapshot_entry entry;
        enum stele_status status = snapshot_reader_next(reader, &entry, error);

        if (status == STELE_OK && reader->blocks != blocks) {
            status =
                note_block(map, reader->block_offset, &reader->block, error);
        }
        if (status != STELE_OK) {
            return status == STELE_NOT_FOUND ? STELE_OK : status;
        }
    }
}

enum stele_status snapshot_map_open(struct io_dir *dir, uint64_t lsn,
                                    const uint8_t *uuid,
                                    struct snapshot_map **map_out,
                                    struct stele_error *error)
{
    struct snapshot_map *map = calloc(1, sizeof *map);
    struct snapshot_reader *reader;
    enum stele_status status;

    if (map == NULL) {
        return error_no_memory(error, "snapshot map");
    }
    atomic_init(&map->references, 1);
    status = snapshot_reader_open(dir, lsn, SNAPSHOT_PUBLISHED, uuid, &reader,
                                  error);
    if (status == STELE_OK) {
        status = survey(map, reader, error);
        map->info = reader->info;
        map->seed = reader->seed;
        map->file = reader->file;
        reader->file = NULL;
        snapshot_reader_close(reader);
    }
    if (status != STELE_OK) {
        snapshot_map_unref(map);
        return status;
    }
    *map_out = map;
    return STELE_OK;
}

const struct snapshot_info *snapshot_map_info(const struct snapshot_map *map)
{
    return &map->info;
}

void snapshot_map_ref(struct snapshot_map *map)
{
    atomic_fetch_add_explicit(&map->references, 1, memory_order_relaxed);
}

void snapshot_map_unref(struct snapshot_map *map)
{
    /* Whoever frees it must see what all others did with it. */
    if (map == NULL || atomic_fetch_sub_explicit(&map->references, 1,
                                                 memory_order_acq_rel) != 1) {
        return;
    }
    io_file_close(map->file);
    free(map->blocks);
    free(map->keys);
    free(map);
}

/* How many blocks begin with a key below `key`. */
static size_t blocks_below(const struct snapshot_map *map, struct bytes key)
{
    size_t low = 0;
    size_t high = map->block_count;

    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        const struct map_block *block = &map->blocks[middle];
        const struct bytes first = {map->keys + block->key_offset,
                                    block->key_bytes};

        if (bytes_compare(first, key) < 0) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

/* ---- The cursor ----------------------------------------------------------------- */

struct snapshot_cursor {
    struct snapshot_map *map;
    struct snapshot_block block; /* Number `loaded`, verified. */
    size_t loaded;               /* block_count: none. */
    bool stands;                 /* On an entry: */
    size_t block_index;
    uint32_t entry_index;
};

enum stele_status snapshot_cursor_open(struct snapshot_map *map,
                                       struct snapshot_cursor **cursor_out,
                                       struct stele_error *error)
{
    struct snapshot_cursor *cursor = calloc(1, sizeof *cursor);

    if (cursor == NULL) {
        return error_no_memory(error, "snapshot cursor");
    }
    snapshot_map_ref(map);
    cursor->map = map;
    cursor->loaded = map->block_count;
    *cursor_out = cursor;
    return STELE_OK;
}

void snapshot_cursor_close(struct snapshot_cursor *cursor)
{
    if (cursor == NULL) {
        return;
    }
    snapshot_block_free(&cursor->block);
    snapshot_map_unref(cursor->map);
    free(cursor);
}

/* Have the block in memory; it may have rotted since it was read last. */
static enum stele_status load(struct snapshot_cursor *cursor,
                              size_t block_index, struct stele_error *error)
{
    const struct snapshot_map *map = cursor->map;
    const struct map_block *expected = &map->blocks[block_index];
    enum stele_status status;

    if (cursor->loaded == block_index) {
        return STELE_OK;
    }
    cursor->loaded = map->block_count;
    status = snapshot_block_read(&cursor->block, map->file, expected->offset,
                                 map->info.file_bytes - SNAPSHOT_FOOTER_BYTES,
                                 map->seed, error);
    if (status != STELE_OK) {
        return status;
    }
    if (snapshot_block_checksum(&cursor->block) != expected->checksum) {
        return error_set(error, STELE_CORRUPT,
                         "%s: offset %" PRIu64
                         ": the block is another one than when the file was "
                         "opened",
                         io_file_name(map->file), expected->offset);
    }
    cursor->loaded = block_index;
    return STELE_OK;
}

static enum stele_status no_entry(struct snapshot_cursor *cursor,
                                  struct stele_error *error)
{
    cursor->stands = false;
    return error_set(error, STELE_NOT_FOUND, "no more entries in the snapshot");
}

/* Stand on an entry of the block that is loaded. */
static struct snapshot_entry stand(struct snapshot_cursor *cursor,
                                   uint32_t entry_index)
{
    cursor->stands = true;
    cursor->block_index = cursor->loaded;
    cursor->entry_index = entry_index;
    return snapshot_block_entry(&cursor->block, entry_index);
}

enum stele_status snapshot_cursor_seek(struct snapshot_cursor *cursor,
                                       struct bytes key,
                                       struct snapshot_entry *entry_out,
                                       struct stele_error *error)
{
    const size_t below = blocks_below(cursor->map, key);
    enum stele_status status;

    if (below > 0) {
        uint32_t entry_index;

        status = load(cursor, below - 1, error);
        if (status != STELE_OK) {
            return status;
        }
        entry_index = snapshot_block_lower(&cursor->block, key);
        if (entry_index < cursor->block.count) {
            *entry_out = stand(cursor, entry_index);
            return STELE_OK;
        }
    }
    if (below == cursor->map->block_count) {
        return no_entry(cursor, error);
    }
    status = load(cursor, below, error);
    if (status == STELE_OK) {
        *entry_out = stand(cursor, 0);
    }
    return status;
}

enum stele_status snapshot_cursor_seek_before(struct snapshot_cursor *cursor,
                                              struct bytes key,
                                              struct snapshot_entry *entry_out,
                                              struct stele_error *error)
{
    const size_t below = blocks_below(cursor->map, key);
    enum stele_status status;

    if (below == 0) {
        return no_entry(cursor, error);
    }
    status = load(cursor, below - 1, error);
    if (status == STELE_OK) {
        const uint32_t entry_index = snapshot_block_lower(&cursor->block, key);

        /* The block's first key is below. */
        assert(entry_index > 0);
        *entry_out = stand(cursor, entry_index - 1);
    }
    return status;
}

static enum stele_status check_stands(const struct snapshot_cursor *cursor,
                                      struct stele_error *error)
{
    return cursor->stands ? STELE_OK
                          : error_set(error, STELE_INVALID,
                                      "the cursor stands on no entry: seek");
}

enum stele_status snapshot_cursor_next(struct snapshot_cursor *cursor,
                                       struct snapshot_entry *entry_out,
                                       struct stele_error *error)
{
    const struct snapshot_map *map = cursor->map;
    enum stele_status status = check_stands(cursor, error);
    size_t block_index = cursor->block_index;
    uint32_t entry_index = cursor->entry_index + 1;

    if (status != STELE_OK) {
        return status;
    }
    if (entry_index == map->blocks[block_index].count) {
        block_index++;
        entry_index = 0;
    }
    if (block_index == map->block_count) {
        return no_entry(cursor, error);
    }
    status = load(cursor, block_index, error);
    if (status == STELE_OK) {
        *entry_out = stand(cursor, entry_index);
    }
    return status;
}

enum stele_status snapshot_cursor_prev(struct snapshot_cursor *cursor,
                                       struct snapshot_entry *entry_out,
                                       struct stele_error *error)
{
    const struct snapshot_map *map = cursor->map;
    enum stele_status status = check_stands(cursor, error);
    size_t block_index = cursor->block_index;
    uint32_t entry_index = cursor->entry_index;

    if (status != STELE_OK) {
        return status;
    }
    if (entry_index == 0) {
        if (block_index == 0) {
            return no_entry(cursor, error);
        }
        block_index--;
        entry_index = map->blocks[block_index].count;
    }
    status = load(cursor, block_index, error);
    if (status == STELE_OK) {
        *entry_out = stand(cursor, entry_index - 1);
    }
    return status;
}
