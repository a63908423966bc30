/*
 * tests/sim/index_sim.c -- engine/index.h on the simulated machine; linked in
 * place of index_lmdb.c.
 *
 * LMDB itself stays outside the simulation. What it promises is kept: after a cut
 * the index holds what its last transaction committed, or the one in flight
 * (SIM_OP_MAP_BEGIN, SIM_OP_MAP_END). Names are the file system's: a data.mdb is a
 * file of the simulated disk, and only its contents are a map. Its handles may
 * find no memory, as the real one's.
 */
#include "engine/index.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/io.h"
#include "engine/index_file.h"
#include "tests/sim/disk.h"
#include "tests/sim/map.h"

static const struct bytes key_applied = {"\0applied", 8};
static const struct bytes key_applying = {"\0applying", 9};
static const struct bytes key_identity = {"\0identity", 9};
static const struct bytes key_lowest_unreserved = {"\x01", 1};

struct index {
    struct sim_disk *disk;
    uint32_t inode;
    struct index_identity identity;
    uint32_t readers_max;
    uint32_t readers_in_use;
    bool writing;
    bool write_failed;
};

struct index_reader {
    struct index *index;
    struct sim_map *map;
    struct wal_position applied;
    struct wal_position applying;
};

struct index_cursor {
    struct index_reader *reader;
    uint32_t place;
    bool positioned;
};

struct index_writer {
    struct index *index;
    struct sim_map *map; /* Its own. */
    uint64_t changes;    /* A page each, as far as a checkpoint is concerned. */
};

/* ---- Values ----------------------------------------------------------------------- */

static enum stele_status check_key(struct bytes key, struct stele_error *error)
{
    if (key.size == 0 || key.size > BASE_KEY_BYTES_MAX ||
        *(const uint8_t *)key.data == 0) {
        return error_set(error, STELE_INVALID, "index: invalid key");
    }
    return STELE_OK;
}

static enum stele_status look_up(const struct sim_map *map, struct bytes key,
                                 struct base_value *value_out,
                                 struct stele_error *error)
{
    struct bytes stored;
    enum stele_status status = check_key(key, error);

    if (status != STELE_OK) {
        return status;
    }
    if (!sim_map_get(map, key, &stored)) {
        return error_set(error, STELE_NOT_FOUND, "index: no such key");
    }
    return base_value_read("index", key, stored, value_out, error);
}

static void put_position(struct sim_map *map, struct bytes key,
                         const struct wal_position *position)
{
    uint8_t stored[WAL_POSITION_BYTES];

    wal_position_encode(position, stored);
    sim_map_put(map, key, (struct bytes){stored, sizeof stored});
}

static bool get_position(const struct sim_map *map, struct bytes key,
                         struct wal_position *position_out)
{
    struct bytes stored;

    return sim_map_get(map, key, &stored) &&
           stored.size == WAL_POSITION_BYTES &&
           wal_position_decode(stored.data, position_out);
}

/* ---- Create, open, close ------------------------------------------------------------ */

/* The inode of data.mdb, with all the faults of finding it. */
static enum stele_status find_data(struct io_dir *dir, enum io_open_mode mode,
                                   uint32_t *inode_out,
                                   struct stele_error *error)
{
    struct io_file *file;
    struct io_file_info info;
    enum stele_status status =
        io_file_open(dir, INDEX_DATA_NAME, mode, &file, error);

    if (status != STELE_OK) {
        return status;
    }
    status = io_file_info(file, &info, error);
    io_file_close(file);
    if (status == STELE_OK) {
        *inode_out = (uint32_t)info.inode;
    }
    return status;
}

static enum stele_status commit_map(struct sim_disk *disk, uint32_t inode,
                                    struct sim_map *map,
                                    struct stele_error *error)
{
    const int result = sim_disk_commit_map(disk, inode, map);

    if (result == 0) {
        return STELE_OK;
    }
    return error_set_errno(
        error,
        result == -ENOSPC || result == -EDQUOT ? STELE_NO_SPACE : STELE_IO,
        -result, "index/data.mdb: commit");
}

enum stele_status index_create(struct io_dir *dir,
                               const struct index_options *options,
                               const struct index_identity *identity,
                               const struct wal_position *base,
                               struct stele_error *error)
{
    struct sim_map *map;
    uint32_t inode = 0;
    enum stele_status status =
        find_data(dir, IO_OPEN_CREATE_NEW, &inode, error);

    (void)options;
    if (status != STELE_OK) {
        return status;
    }
    map = sim_map_create();
    put_position(map, key_applied, base);
    put_position(map, key_applying, base);
    sim_map_put(map, key_identity, (struct bytes){identity, sizeof *identity});
    status = commit_map(sim_disk_of(io_dir_io(dir)), inode, map, error);
    sim_map_unref(map);
    return status == STELE_OK ? io_dir_sync(dir, error) : status;
}

enum stele_status index_open(struct io_dir *dir,
                             const struct index_options *options,
                             struct index **index_out,
                             struct stele_error *error)
{
    struct sim_disk *disk = sim_disk_of(io_dir_io(dir));
    const struct sim_map *map;
    struct bytes identity;
    struct index *index;
    uint32_t inode = 0;
    enum stele_status status =
        find_data(dir, options->read_only ? IO_OPEN_READ : IO_OPEN_READ_WRITE,
                  &inode, error);

    if (status != STELE_OK) {
        return status;
    }
    map = sim_image_node(sim_disk_cache(disk), inode)->map;
    if (map == NULL || !sim_map_get(map, key_identity, &identity) ||
        identity.size != sizeof index->identity) {
        return error_set(error, STELE_CORRUPT, "index/data.mdb: not an index");
    }
    index = malloc(sizeof *index);
    if (index == NULL) {
        return error_no_memory(error, "index");
    }
    *index = (struct index){
        .disk = disk, .inode = inode, .readers_max = options->readers_max};
    memcpy(&index->identity, identity.data, sizeof index->identity);
    *index_out = index;
    return STELE_OK;
}

void index_close(struct index *index)
{
    if (index != NULL) {
        assert(index_is_idle(index));
        free(index);
    }
}

void index_forsake(struct index *index)
{
    free(index); /* Simulated processes do not fork. */
}

bool index_is_idle(struct index *index)
{
    return index->readers_in_use == 0 && !index->writing;
}

const struct index_identity *index_identity(const struct index *index)
{
    return &index->identity;
}

enum stele_status index_reader_check(struct index *index,
                                     struct stele_error *error)
{
    (void)index;
    (void)error;
    return STELE_OK;
}

/* ---- Reading -------------------------------------------------------------------------- */

enum stele_status index_reader_acquire(struct index *index,
                                       struct index_reader **reader_out,
                                       struct stele_error *error)
{
    struct index_reader *reader;
    struct sim_map *map =
        sim_image_node(sim_disk_cache(index->disk), index->inode)->map;
    struct wal_position applied;
    struct wal_position applying;

    if (index->readers_in_use == index->readers_max) {
        return error_set(error, STELE_BUSY, "index: all readers are in use");
    }
    if (!get_position(map, key_applied, &applied) ||
        !get_position(map, key_applying, &applying)) {
        return error_set(error, STELE_CORRUPT, "index: no valid position");
    }
    reader = malloc(sizeof *reader);
    if (reader == NULL) {
        return error_no_memory(error, "index reader");
    }
    *reader = (struct index_reader){.index = index,
                                    .map = sim_map_ref(map),
                                    .applied = applied,
                                    .applying = applying};
    index->readers_in_use++;
    *reader_out = reader;
    return STELE_OK;
}

void index_reader_release(struct index_reader *reader)
{
    if (reader != NULL) {
        reader->index->readers_in_use--;
        sim_map_unref(reader->map);
        free(reader);
    }
}

void index_reader_forsake(struct index_reader *reader)
{
    index_reader_release(reader);
}

const struct wal_position *index_reader_applied(const struct index_reader *r)
{
    return &r->applied;
}

const struct wal_position *index_reader_applying(const struct index_reader *r)
{
    return &r->applying;
}

enum stele_status index_reader_get(struct index_reader *reader,
                                   struct bytes key,
                                   struct base_value *value_out,
                                   struct stele_error *error)
{
    return look_up(reader->map, key, value_out, error);
}

enum stele_status index_reader_entry_count(struct index_reader *reader,
                                           uint64_t *count_out,
                                           struct stele_error *error)
{
    (void)error;
    *count_out = sim_map_count(reader->map);
    return STELE_OK;
}

enum stele_status index_cursor_open(struct index_reader *reader,
                                    struct index_cursor **cursor_out,
                                    struct stele_error *error)
{
    struct index_cursor *cursor = malloc(sizeof *cursor);

    if (cursor == NULL) {
        return error_no_memory(error, "index cursor");
    }
    *cursor = (struct index_cursor){.reader = reader};
    *cursor_out = cursor;
    return STELE_OK;
}

void index_cursor_close(struct index_cursor *cursor)
{
    free(cursor);
}

static uint32_t first_place(const struct sim_map *map)
{
    return sim_map_lower(map, key_lowest_unreserved);
}

static enum stele_status stand(struct index_cursor *cursor, uint32_t place,
                               struct base_entry *entry_out,
                               struct stele_error *error)
{
    const struct sim_map *map = cursor->reader->map;

    cursor->positioned =
        place >= first_place(map) && place < sim_map_count(map);
    if (!cursor->positioned) {
        return error_set(error, STELE_NOT_FOUND, "index: no such entry");
    }
    cursor->place = place;
    entry_out->key = sim_map_key(map, place);
    entry_out->stored = sim_map_value(map, place);
    return STELE_OK;
}

enum stele_status index_cursor_seek(struct index_cursor *cursor,
                                    struct bytes key,
                                    struct base_entry *entry_out,
                                    struct stele_error *error)
{
    const struct sim_map *map = cursor->reader->map;
    uint32_t place = sim_map_lower(map, key);

    if (place < first_place(map)) {
        place = first_place(map);
    }
    return stand(cursor, place, entry_out, error);
}

enum stele_status index_cursor_seek_before(struct index_cursor *cursor,
                                           struct bytes key,
                                           struct base_entry *entry_out,
                                           struct stele_error *error)
{
    return stand(cursor, sim_map_lower(cursor->reader->map, key) - 1, entry_out,
                 error);
}

static enum stele_status move(struct index_cursor *cursor, uint32_t step,
                              struct base_entry *entry_out,
                              struct stele_error *error)
{
    if (!cursor->positioned) {
        return error_set(error, STELE_INVALID, "index: seek first");
    }
    return stand(cursor, cursor->place + step, entry_out, error);
}

enum stele_status index_cursor_next(struct index_cursor *cursor,
                                    struct base_entry *entry_out,
                                    struct stele_error *error)
{
    return move(cursor, 1, entry_out, error);
}

enum stele_status index_cursor_prev(struct index_cursor *cursor,
                                    struct base_entry *entry_out,
                                    struct stele_error *error)
{
    return move(cursor, UINT32_MAX, entry_out, error);
}

/* ---- Writing -------------------------------------------------------------------------- */

enum stele_status index_writer_begin(struct index *index,
                                     struct index_writer **writer_out,
                                     struct stele_error *error)
{
    struct index_writer *writer;

    assert(!index->writing);
    if (index->write_failed) {
        return error_set(error, STELE_IO, "index: an earlier commit failed");
    }
    writer = malloc(sizeof *writer);
    if (writer == NULL) {
        return error_no_memory(error, "index writer");
    }
    *writer = (struct index_writer){
        .index = index,
        .map = sim_map_copy(
            sim_image_node(sim_disk_cache(index->disk), index->inode)->map)};
    index->writing = true;
    *writer_out = writer;
    return STELE_OK;
}

enum stele_status index_writer_get(struct index_writer *writer,
                                   struct bytes key,
                                   struct base_value *value_out,
                                   struct stele_error *error)
{
    return look_up(writer->map, key, value_out, error);
}

enum stele_status index_writer_put(struct index_writer *writer,
                                   struct bytes key,
                                   const struct base_value *value,
                                   struct stele_error *error)
{
    uint8_t *stored;
    enum stele_status status = check_key(key, error);

    if (status != STELE_OK) {
        return status;
    }
    writer->changes++;
    stored = sim_allocate(BASE_VALUE_HEADER_BYTES + value->value.size);
    base_value_encode_header(value->lsn, value->check, stored);
    if (value->value.size > 0) {
        memcpy(stored + BASE_VALUE_HEADER_BYTES, value->value.data,
               value->value.size);
    }
    sim_map_put(
        writer->map, key,
        (struct bytes){stored, BASE_VALUE_HEADER_BYTES + value->value.size});
    free(stored);
    return STELE_OK;
}

uint64_t index_writer_pages(const struct index_writer *writer)
{
    return writer->changes;
}

enum stele_status index_writer_append(struct index_writer *writer,
                                      struct bytes key, struct bytes stored,
                                      struct stele_error *error)
{
    const enum stele_status status = check_key(key, error);

    if (status == STELE_OK) {
        sim_map_put(writer->map, key, stored);
    }
    return status;
}

enum stele_status index_writer_delete(struct index_writer *writer,
                                      struct bytes key,
                                      struct stele_error *error)
{
    struct bytes ignored;
    enum stele_status status = check_key(key, error);

    if (status == STELE_OK && sim_map_get(writer->map, key, &ignored)) {
        writer->changes++;
        sim_map_remove(writer->map, sim_map_lower(writer->map, key));
    }
    return status;
}

enum stele_status index_writer_sweep(struct index_writer *writer,
                                     struct bytes first, struct bytes end,
                                     uint64_t visits_max, index_visit *visit,
                                     void *context, bool *more_out,
                                     uint8_t next_key[511],
                                     size_t *next_key_bytes_out,
                                     struct stele_error *error)
{
    uint32_t place = sim_map_lower(writer->map, first);
    uint64_t visits = 0;

    *more_out = false;
    *next_key_bytes_out = 0;
    if (place < first_place(writer->map)) {
        place = first_place(writer->map);
    }
    while (place < sim_map_count(writer->map)) {
        const struct bytes key = sim_map_key(writer->map, place);
        struct base_value value;
        bool delete_it = false;
        enum stele_status status;

        if (bytes_compare(key, end) >= 0) {
            break;
        }
        if (visits++ == visits_max) {
            *more_out = true;
            *next_key_bytes_out = key.size;
            memcpy(next_key, key.data, key.size);
            break;
        }
        status = base_value_read(
            "index", key, sim_map_value(writer->map, place), &value, error);
        if (status != STELE_OK) {
            return status;
        }
        visit(context, key, &value, &delete_it);
        if (delete_it) {
            sim_map_remove(writer->map, place);
        } else {
            place++;
        }
    }
    return STELE_OK;
}

enum stele_status index_writer_commit(struct index_writer *writer,
                                      const struct wal_position *applied,
                                      const struct wal_position *applying,
                                      struct stele_error *error)
{
    struct index *index = writer->index;
    enum stele_status status;

    put_position(writer->map, key_applied, applied);
    put_position(writer->map, key_applying, applying);
    status = commit_map(index->disk, index->inode, writer->map, error);
    index->write_failed = status != STELE_OK && status != STELE_NO_SPACE;
    index_writer_abort(writer);
    return status;
}

void index_writer_abort(struct index_writer *writer)
{
    if (writer != NULL) {
        writer->index->writing = false;
        sim_map_unref(writer->map);
        free(writer);
    }
}
