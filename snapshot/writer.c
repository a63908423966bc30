/*
 * snapshot/writer.c -- see snapshot/writer.h.
 *
 * Happy path: make <lsn>.tmp; write the header; gather entries until a block is
 * full, seal and write it; write the last block and the footer; sync; drop the
 * cache; rename to <lsn>.snap; sync the directory.
 *
 * Whatever fails, the writer is finished: only the name of a temporary is left,
 * which destroying it unlinks. That goes for a failed sync too. It is never asked
 * again (the kernel may have dropped the pages), but it poisons nobody: no one has
 * relied on the file yet, and the next try makes another one. Only a directory
 * sync that fails leaves a doubt that outlives the writer.
 */
#include "snapshot/writer.h"

#include <inttypes.h>
#include <stdlib.h>

#include "base/checksum.h"
#include "base/error.h"
#include "base/numbered.h"
#include "snapshot/block.h"

enum { PACE_BYTES = 256 << 10 };

enum writer_stage {
    WRITER_WRITING,
    WRITER_FINISHED,
    WRITER_PUBLISHED, /* There is no temporary any more. */
    WRITER_FAILED,
};

struct snapshot_writer {
    struct io_dir *dir; /* Borrowed. */
    struct io_file *file;
    struct checksum_stream *digest; /* Of everything written. */
    uint8_t *block;                 /* Header and entries, not written yet. */
    uint8_t uuid[SNAPSHOT_UUID_BYTES];
    uint64_t lsn;
    uint64_t seed;
    uint64_t offset;       /* Where the next write goes. */
    uint64_t written_back; /* Before it. */
    uint64_t entries;
    uint64_t blocks;
    uint32_t entry_bytes; /* In `block` ... */
    uint32_t entry_count; /* ... and their number. */
    enum writer_stage stage;
    uint16_t key_last_bytes; /* 0: no key yet. */
    uint8_t key_last[SNAPSHOT_KEY_BYTES_MAX];
};

/* ---- Creating -------------------------------------------------------------- */

static enum stele_status make_file(struct snapshot_writer *writer,
                                   struct stele_error *error)
{
    char name[NUMBERED_NAME_BYTES];
    enum stele_status status;

    numbered_name(writer->lsn, NUMBERED_TEMPORARY, name);
    status = io_file_open(writer->dir, name, IO_OPEN_CREATE_NEW, &writer->file,
                          error);
    if (status == STELE_EXISTS) {
        /* Left by a try of this process that could not clean up. */
        status = io_unlink(writer->dir, name, error);
        if (status == STELE_OK) {
            status = io_file_open(writer->dir, name, IO_OPEN_CREATE_NEW,
                                  &writer->file, error);
        }
    }
    return status;
}

static enum stele_status append(struct snapshot_writer *writer,
                                const void *data, size_t bytes,
                                struct stele_error *error)
{
    const enum stele_status status =
        io_file_write(writer->file, data, bytes, writer->offset, error);

    if (status != STELE_OK) {
        writer->stage = WRITER_FAILED;
        return status;
    }
    checksum_stream_update(writer->digest, data, bytes);
    writer->offset += bytes;
    return STELE_OK;
}

static enum stele_status begin(struct snapshot_writer *writer,
                               struct stele_error *error)
{
    uint8_t header[SNAPSHOT_HEADER_BYTES];
    enum stele_status status;

    writer->block = malloc(SNAPSHOT_BLOCK_HEADER_BYTES + SNAPSHOT_BLOCK_BYTES);
    writer->digest = checksum_stream_create();
    if (writer->block == NULL || writer->digest == NULL) {
        return error_no_memory(error, "snapshot writer");
    }
    status = make_file(writer, error);
    if (status != STELE_OK) {
        return status;
    }
    snapshot_header_encode(writer->uuid, writer->lsn, header);
    writer->seed = get_u64le(header + SNAPSHOT_HEADER_BYTES - sizeof(uint64_t));
    return append(writer, header, sizeof header, error);
}

enum stele_status snapshot_writer_create(
    struct io_dir *dir, const uint8_t uuid[SNAPSHOT_UUID_BYTES], uint64_t lsn,
    struct snapshot_writer **writer_out, struct stele_error *error)
{
    struct snapshot_writer *writer = calloc(1, sizeof *writer);
    enum stele_status status;

    if (writer == NULL) {
        return error_no_memory(error, "snapshot writer");
    }
    writer->dir = dir;
    writer->lsn = lsn;
    memcpy(writer->uuid, uuid, sizeof writer->uuid);
    status = begin(writer, error);
    if (status != STELE_OK) {
        snapshot_writer_destroy(writer);
        return error_wrap(error, status, "write snapshot");
    }
    *writer_out = writer;
    return STELE_OK;
}

/* ---- Entries --------------------------------------------------------------- */

/* Seal and write a block, which is `block`, or one made for a large entry. */
static enum stele_status write_block(struct snapshot_writer *writer,
                                     uint8_t *block, uint32_t entry_bytes,
                                     uint32_t count, struct stele_error *error)
{
    enum stele_status status;

    snapshot_block_seal(block, entry_bytes, count, writer->seed,
                        writer->offset);
    status =
        append(writer, block, SNAPSHOT_BLOCK_HEADER_BYTES + entry_bytes, error);
    if (status == STELE_OK) {
        writer->blocks++;
    }
    return status;
}

static enum stele_status write_gathered(struct snapshot_writer *writer,
                                        struct stele_error *error)
{
    enum stele_status status;

    if (writer->entry_count == 0) {
        return STELE_OK;
    }
    status = write_block(writer, writer->block, writer->entry_bytes,
                         writer->entry_count, error);
    writer->entry_bytes = 0;
    writer->entry_count = 0;
    return status;
}

static void encode_entry(uint8_t *target, size_t entry_bytes, struct bytes key,
                         struct bytes stored)
{
    struct byte_writer out = byte_writer_init(target, entry_bytes);

    byte_writer_u16(&out, (uint16_t)key.size);
    byte_writer_u32(&out, (uint32_t)stored.size);
    byte_writer_copy(&out, key.data, key.size);
    byte_writer_copy(&out, stored.data, stored.size);
}

/* A block of its own; the memory for it is needed only now. */
static enum stele_status write_large(struct snapshot_writer *writer,
                                     uint32_t entry_bytes, struct bytes key,
                                     struct bytes stored,
                                     struct stele_error *error)
{
    uint8_t *block = malloc(SNAPSHOT_BLOCK_HEADER_BYTES + (size_t)entry_bytes);
    enum stele_status status;

    if (block == NULL) {
        return error_no_memory(error, "snapshot block");
    }
    encode_entry(block + SNAPSHOT_BLOCK_HEADER_BYTES, entry_bytes, key, stored);
    status = write_block(writer, block, entry_bytes, 1, error);
    free(block);
    return status;
}

static enum stele_status check_stage(const struct snapshot_writer *writer,
                                     enum writer_stage expected,
                                     struct stele_error *error)
{
    static const char *const stages[] = {
        [WRITER_WRITING] = "not finished",
        [WRITER_FINISHED] = "finished",
        [WRITER_PUBLISHED] = "published",
        [WRITER_FAILED] = "given up after a failure",
    };

    return writer->stage == expected
               ? STELE_OK
               : error_set(error, STELE_INVALID, "%s: is %s",
                           io_file_name(writer->file), stages[writer->stage]);
}

static enum stele_status check_entry(const struct snapshot_writer *writer,
                                     struct bytes key, struct bytes stored,
                                     struct stele_error *error)
{
    const struct bytes key_last = {writer->key_last, writer->key_last_bytes};

    if (key.size == 0 || key.size > SNAPSHOT_KEY_BYTES_MAX ||
        stored.size > SNAPSHOT_STORED_BYTES_MAX) {
        return error_set(error, STELE_INVALID,
                         "%s: key of %zu bytes with %zu stored, expected 1 to "
                         "%d and up to %d",
                         io_file_name(writer->file), key.size, stored.size,
                         SNAPSHOT_KEY_BYTES_MAX, SNAPSHOT_STORED_BYTES_MAX);
    }
    if (bytes_compare(key, key_last) <= 0) {
        return error_set(error, STELE_INVALID,
                         "%s: entry %" PRIu64
                         ": expected a key above the one before it",
                         io_file_name(writer->file), writer->entries);
    }
    return STELE_OK;
}

enum stele_status snapshot_writer_add(struct snapshot_writer *writer,
                                      struct bytes key, struct bytes stored,
                                      struct stele_error *error)
{
    enum stele_status status = check_stage(writer, WRITER_WRITING, error);
    uint32_t entry_bytes;

    if (status == STELE_OK) {
        status = check_entry(writer, key, stored, error);
    }
    if (status != STELE_OK) {
        return status;
    }
    entry_bytes =
        (uint32_t)(SNAPSHOT_ENTRY_HEADER_BYTES + key.size + stored.size);
    if (entry_bytes > SNAPSHOT_BLOCK_BYTES - writer->entry_bytes) {
        status = write_gathered(writer, error);
    }
    if (status == STELE_OK && entry_bytes > SNAPSHOT_BLOCK_BYTES) {
        status = write_large(writer, entry_bytes, key, stored, error);
    } else if (status == STELE_OK) {
        encode_entry(writer->block + SNAPSHOT_BLOCK_HEADER_BYTES +
                         writer->entry_bytes,
                     entry_bytes, key, stored);
        writer->entry_bytes += entry_bytes;
        writer->entry_count++;
    }
    if (status != STELE_OK) {
        return status;
    }
    memcpy(writer->key_last, key.data, key.size);
    writer->key_last_bytes = (uint16_t)key.size;
    writer->entries++;
    return STELE_OK;
}

uint64_t snapshot_writer_bytes(const struct snapshot_writer *writer)
{
    return writer->offset;
}

/* ---- To the disk ------------------------------------------------------------ */

static enum stele_status sync_file(struct snapshot_writer *writer,
                                   struct stele_error *error)
{
    const enum stele_status status = io_file_sync(writer->file, error);

    if (status != STELE_OK) {
        writer->stage = WRITER_FAILED; /* Never asked again. */
    }
    return status;
}

enum stele_status snapshot_writer_pace(struct snapshot_writer *writer,
                                       struct stele_error *error)
{
    const uint64_t from = writer->written_back;
    enum stele_status status = check_stage(writer, WRITER_WRITING, error);

    if (status != STELE_OK || writer->offset - from < PACE_BYTES) {
        return status;
    }
    writer->written_back = writer->offset;
    status =
        io_file_write_back(writer->file, from, writer->offset - from, error);
    if (status != STELE_OK) {
        writer->stage = WRITER_FAILED; /* As after a failed sync. */
    }
    return status;
}

static enum stele_status write_footer(struct snapshot_writer *writer,
                                      struct snapshot_info *info,
                                      struct stele_error *error)
{
    uint8_t footer[SNAPSHOT_FOOTER_BYTES];
    enum stele_status status = write_gathered(writer, error);

    if (status != STELE_OK) {
        return status;
    }
    info->entries = writer->entries;
    info->blocks = writer->blocks;
    info->digest = checksum_stream_digest(writer->digest);
    snapshot_footer_encode(info, writer->seed, footer);
    status = append(writer, footer, sizeof footer, error);
    info->file_bytes = writer->offset;
    return status;
}

enum stele_status snapshot_writer_finish(
    struct snapshot_writer *writer, const struct snapshot_totals *totals,
    const uint8_t position[SNAPSHOT_POSITION_BYTES],
    struct snapshot_info *info_out, struct stele_error *error)
{
    struct snapshot_info info = {.lsn = writer->lsn, .totals = *totals};
    enum stele_status status = check_stage(writer, WRITER_WRITING, error);

    if (status != STELE_OK) {
        return status;
    }
    memcpy(info.uuid, writer->uuid, sizeof info.uuid);
    memcpy(info.position, position, sizeof info.position);
    status = write_footer(writer, &info, error);
    if (status == STELE_OK) {
        /* Before the name exists: after a power cut a name could else lead to
         * fewer bytes than it promises, and the log they replace may be gone. */
        status = sync_file(writer, error);
    }
    if (status == STELE_OK) {
        /* Reading it back must ask the disk. */
        status = io_file_drop_cache(writer->file, error);
    }
    if (status != STELE_OK) {
        writer->stage = WRITER_FAILED;
        return status;
    }
    writer->stage = WRITER_FINISHED;
    *info_out = info;
    return STELE_OK;
}

enum stele_status snapshot_writer_publish(struct snapshot_writer *writer,
                                          bool *names_unknown_out,
                                          struct stele_error *error)
{
    char temporary[NUMBERED_NAME_BYTES];
    char name[NUMBERED_NAME_BYTES];
    enum stele_status status = check_stage(writer, WRITER_FINISHED, error);

    *names_unknown_out = false;
    if (status != STELE_OK) {
        return status;
    }
    numbered_name(writer->lsn, NUMBERED_TEMPORARY, temporary);
    numbered_name(writer->lsn, SNAPSHOT_SUFFIX, name);
    status = io_rename(writer->dir, temporary, writer->dir, name, error);
    if (status != STELE_OK) {
        writer->stage = WRITER_FAILED;
        return error_wrap(error, status, "publish snapshot");
    }
    writer->stage = WRITER_PUBLISHED;
    /* A snapshot whose name a power cut takes away is none, and the log that it
     * stands for may be removed as soon as this returns. */
    status = io_dir_sync(writer->dir, error);
    if (status != STELE_OK) {
        *names_unknown_out = true;
        return error_wrap(error, status, "publish snapshot");
    }
    return STELE_OK;
}

/* ---- The end ----------------------------------------------------------------- */

void snapshot_writer_destroy(struct snapshot_writer *writer)
{
    if (writer == NULL) {
        return;
    }
    if (writer->file != NULL && writer->stage != WRITER_PUBLISHED) {
        char name[NUMBERED_NAME_BYTES];
        struct stele_error ignored;

        numbered_name(writer->lsn, NUMBERED_TEMPORARY, name);
        if (io_unlink(writer->dir, name, &ignored) != STELE_OK) {
            /* It is only a temporary; the next open removes it. */
        }
    }
    snapshot_writer_forsake(writer);
}

void snapshot_writer_forsake(struct snapshot_writer *writer)
{
    if (writer == NULL) {
        return;
    }
    io_file_close(writer->file);
    checksum_stream_free(writer->digest);
    free(writer->block);
    free(writer);
}
