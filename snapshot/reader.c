/*
 * snapshot/reader.c -- see snapshot/reader.h.
 *
 * What was read counts only once it has verified: a call that fails changes
 * nothing, and the next one reads the same block again.
 */
#include "snapshot/reader.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#include "base/error.h"
#include "base/numbered.h"
#include "snapshot/reader_internal.h"

/* ---- Header and footer ------------------------------------------------------- */

static enum stele_status check_header(struct io_file *file, uint64_t lsn,
                                      const uint8_t *uuid,
                                      struct snapshot_header *header_out,
                                      struct stele_error *error)
{
    const char *name = io_file_name(file);
    uint8_t bytes[SNAPSHOT_HEADER_BYTES];
    enum stele_status status =
        io_file_read_exact(file, bytes, sizeof bytes, 0, error);

    if (status != STELE_OK) {
        return status;
    }
    switch (snapshot_header_decode(bytes, header_out)) {
    case SNAPSHOT_VALID:
        break;
    case SNAPSHOT_INVALID:
        return error_set(error, STELE_CORRUPT,
                         "%s: offset 0: not a valid snapshot header", name);
    case SNAPSHOT_NEWER:
        return error_set(error, STELE_FOREIGN,
                         "%s: offset 8: format version %" PRIu32
                         ", this program knows %d",
                         name, get_u32le(bytes + 8), SNAPSHOT_VERSION);
    }
    if (uuid != NULL &&
        memcmp(uuid, header_out->uuid, SNAPSHOT_UUID_BYTES) != 0) {
        return error_set(error, STELE_FOREIGN,
                         "%s: offset 16: belongs to another store", name);
    }
    if (header_out->lsn != lsn) {
        return error_set(error, STELE_CORRUPT,
                         "%s: offset 32: is the snapshot of LSN %" PRIu64
                         " by its header, expected %" PRIu64,
                         name, header_out->lsn, lsn);
    }
    return STELE_OK;
}

static enum stele_status check_footer(struct io_file *file, uint64_t file_bytes,
                                      const struct snapshot_header *header,
                                      struct snapshot_info *info_out,
                                      struct stele_error *error)
{
    const char *name = io_file_name(file);
    const uint64_t offset = file_bytes - SNAPSHOT_FOOTER_BYTES;
    uint8_t bytes[SNAPSHOT_FOOTER_BYTES];
    enum stele_status status =
        io_file_read_exact(file, bytes, sizeof bytes, offset, error);

    if (status != STELE_OK) {
        return status;
    }
    if (!snapshot_footer_decode(bytes, header->checksum, info_out)) {
        return error_set(error, STELE_CORRUPT,
                         "%s: offset %" PRIu64
                         ": not a valid snapshot footer, expected one in the "
                         "last %d bytes",
                         name, offset, SNAPSHOT_FOOTER_BYTES);
    }
    if (info_out->lsn != header->lsn) {
        return error_set(error, STELE_CORRUPT,
                         "%s: offset %" PRIu64 ": LSN %" PRIu64
                         ", expected %" PRIu64,
                         name, offset + 8, info_out->lsn, header->lsn);
    }
    info_out->file_bytes = file_bytes;
    memcpy(info_out->uuid, header->uuid, sizeof info_out->uuid);
    return STELE_OK;
}

static enum stele_status check_ends(struct io_file *file, uint64_t lsn,
                                    const uint8_t *uuid, uint64_t *seed_out,
                                    struct snapshot_info *info_out,
                                    struct stele_error *error)
{
    struct snapshot_header header;
    struct io_file_info file_info;
    enum stele_status status = io_file_info(file, &file_info, error);

    if (status != STELE_OK) {
        return status;
    }
    if (file_info.type != IO_TYPE_REGULAR) {
        return error_set(error, STELE_CORRUPT, "%s: not a regular file",
                         io_file_name(file));
    }
    if (file_info.size_bytes < SNAPSHOT_HEADER_BYTES + SNAPSHOT_FOOTER_BYTES) {
        return error_set(error, STELE_CORRUPT,
                         "%s: the file has %" PRIu64
                         " bytes, expected at least %d",
                         io_file_name(file), file_info.size_bytes,
                         SNAPSHOT_HEADER_BYTES + SNAPSHOT_FOOTER_BYTES);
    }
    status = check_header(file, lsn, uuid, &header, error);
    if (status == STELE_OK) {
        status =
            check_footer(file, file_info.size_bytes, &header, info_out, error);
        *seed_out = header.checksum;
    }
    return status;
}

/* A symbolic link and a socket are refused by the kernel: something else has the
 * name, as if it were a directory. */
static enum stele_status open_named(struct io_dir *dir, const char *name,
                                    struct io_file **file_out,
                                    struct stele_error *error)
{
    struct stele_error failure;
    enum stele_status status =
        io_file_open(dir, name, IO_OPEN_READ, file_out, &failure);

    if (status == STELE_OK) {
        return STELE_OK;
    }
    if (failure.sys_errno == ELOOP || failure.sys_errno == ENXIO) {
        status = STELE_CORRUPT;
        failure.status = status;
    }
    if (error != NULL) {
        *error = failure;
    }
    return status;
}

/* A failure leaves no file open. */
static enum stele_status open_file(
    struct io_dir *dir, uint64_t lsn, enum snapshot_name which,
    const uint8_t *uuid, struct io_file **file_out, uint64_t *seed_out,
    struct snapshot_info *info_out, struct stele_error *error)
{
    char name[NUMBERED_NAME_BYTES];
    struct io_file *file;
    enum stele_status status;

    numbered_name(
        lsn, which == SNAPSHOT_PUBLISHED ? SNAPSHOT_SUFFIX : NUMBERED_TEMPORARY,
        name);
    status = open_named(dir, name, &file, error);
    if (status != STELE_OK) {
        return status;
    }
    status = check_ends(file, lsn, uuid, seed_out, info_out, error);
    if (status != STELE_OK) {
        io_file_close(file);
        return status;
    }
    *file_out = file;
    return STELE_OK;
}

enum stele_status snapshot_read_info(struct io_dir *dir, uint64_t lsn,
                                     const uint8_t *uuid,
                                     struct snapshot_info *info_out,
                                     struct stele_error *error)
{
    struct snapshot_info info;
    struct io_file *file;
    uint64_t seed;
    const enum stele_status status = open_file(
        dir, lsn, SNAPSHOT_PUBLISHED, uuid, &file, &seed, &info, error);

    if (status == STELE_OK) {
        io_file_close(file);
        *info_out = info;
    }
    return status;
}

/* ---- The reader ---------------------------------------------------------------- */

/* The digest begins with the header. */
static enum stele_status begin(struct snapshot_reader *reader,
                               struct stele_error *error)
{
    uint8_t header[SNAPSHOT_HEADER_BYTES];

    reader->digest = checksum_stream_create();
    if (reader->digest == NULL) {
        return error_no_memory(error, "snapshot reader");
    }
    snapshot_header_encode(reader->info.uuid, reader->info.lsn, header);
    checksum_stream_update(reader->digest, header, sizeof header);
    reader->offset = sizeof header;
    reader->blocks_end = reader->info.file_bytes - SNAPSHOT_FOOTER_BYTES;
    return STELE_OK;
}

enum stele_status snapshot_reader_open(struct io_dir *dir, uint64_t lsn,
                                       enum snapshot_name name,
                                       const uint8_t *uuid,
                                       struct snapshot_reader **reader_out,
                                       struct stele_error *error)
{
    struct snapshot_reader *reader = calloc(1, sizeof *reader);
    enum stele_status status;

    if (reader == NULL) {
        return error_no_memory(error, "snapshot reader");
    }
    status = open_file(dir, lsn, name, uuid, &reader->file, &reader->seed,
                       &reader->info, error);
    if (status == STELE_OK) {
        status = begin(reader, error);
    }
    if (status != STELE_OK) {
        snapshot_reader_close(reader);
        return status;
    }
    *reader_out = reader;
    return STELE_OK;
}

const struct snapshot_info *snapshot_reader_info(
    const struct snapshot_reader *reader)
{
    return &reader->info;
}

uint64_t snapshot_reader_bytes(const struct snapshot_reader *reader)
{
    return reader->offset == reader->blocks_end ? reader->info.file_bytes
                                                : reader->offset;
}

/* What only the whole file can tell. */
static enum stele_status check_whole(const struct snapshot_reader *reader,
                                     struct stele_error *error)
{
    const struct snapshot_info *info = &reader->info;
    const struct checksum128 digest = checksum_stream_digest(reader->digest);

    if (reader->entries != info->entries || reader->blocks != info->blocks) {
        return error_set(
            error, STELE_CORRUPT,
            "%s: offset %" PRIu64 ": %" PRIu64 " entries in %" PRIu64
            " blocks, expected %" PRIu64 " in %" PRIu64,
            io_file_name(reader->file), reader->blocks_end, reader->entries,
            reader->blocks, info->entries, info->blocks);
    }
    if (memcmp(digest.bytes, info->digest.bytes, sizeof digest.bytes) != 0) {
        return error_set(error, STELE_CORRUPT,
                         "%s: offset %" PRIu64
                         ": the digest of the file does not match",
                         io_file_name(reader->file), reader->blocks_end);
    }
    return STELE_OK;
}

/* Go on to the next block, whose keys must be above all before. */
static enum stele_status next_block(struct snapshot_reader *reader,
                                    struct stele_error *error)
{
    const struct bytes key_last = {reader->key_last, reader->key_last_bytes};
    struct snapshot_block *block = &reader->block;
    struct bytes key;
    enum stele_status status;

    status = snapshot_block_read(block, reader->file, reader->offset,
                                 reader->blocks_end, reader->seed, error);
    if (status != STELE_OK) {
        return status;
    }
    if (bytes_compare(snapshot_block_entry(block, 0).key, key_last) <= 0) {
        block->count = 0;
        return error_set(error, STELE_CORRUPT,
                         "%s: offset %" PRIu64
                         ": expected a key above those of the block before it",
                         io_file_name(reader->file), reader->offset);
    }
    key = snapshot_block_entry(block, block->count - 1).key;
    memcpy(reader->key_last, key.data, key.size);
    reader->key_last_bytes = key.size;
    checksum_stream_update(reader->digest, block->bytes, block->size);
    reader->block_offset = reader->offset;
    reader->offset += block->size;
    reader->entries += block->count;
    reader->blocks++;
    reader->index = 0;
    return STELE_OK;
}

enum stele_status snapshot_reader_next(struct snapshot_reader *reader,
                                       struct snapshot_entry *entry_out,
                                       struct stele_error *error)
{
    enum stele_status status = STELE_OK;

    if (reader->index >= reader->block.count) {
        if (reader->offset == reader->blocks_end) {
            status = check_whole(reader, error);
            return status != STELE_OK
                       ? status
                       : error_set(error, STELE_NOT_FOUND,
                                   "no more entries in the snapshot");
        }
        status = next_block(reader, error);
    }
    if (status == STELE_OK) {
        *entry_out = snapshot_block_entry(&reader->block, reader->index);
        reader->index++;
    }
    return status;
}

enum stele_status snapshot_reader_verify(struct snapshot_reader *reader,
                                         uint64_t bytes_max, bool *done_out,
                                         struct stele_error *error)
{
    const uint64_t start = snapshot_reader_bytes(reader);
    enum stele_status status = STELE_OK;

    while (status == STELE_OK &&
           snapshot_reader_bytes(reader) - start < bytes_max) {
        struct snapshot_entry ignored;

        status = snapshot_reader_next(reader, &ignored, error);
    }
    *done_out = status == STELE_NOT_FOUND;
    return *done_out ? STELE_OK : status;
}

uint64_t snapshot_reader_offset(const struct snapshot_reader *reader)
{
    return reader->block_offset;
}

enum stele_status snapshot_reader_drop_cache(struct snapshot_reader *reader,
                                             struct stele_error *error)
{
    return io_file_drop_cache(reader->file, error);
}

void snapshot_reader_close(struct snapshot_reader *reader)
{
    if (reader == NULL) {
        return;
    }
    io_file_close(reader->file);
    checksum_stream_free(reader->digest);
    snapshot_block_free(&reader->block);
    free(reader);
}
