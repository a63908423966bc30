/*
 * wal/segment.c -- see wal/segment.h.
 *
 * Preparing, the happy path: create <seq>.tmp; reserve; write header and zeros;
 * sync; rename to <seq>.wal; sync wal/. A failure before the rename removes the
 * temporary. Runs in the log keeper, or in a leader that found none prepared.
 */
#include "wal/segment.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/checksum.h"
#include "base/error.h"
#include "base/numbered.h"

enum {
    SEGMENT_CHECKSUM_OFFSET = 56,
    SEGMENT_FIELDS_END = 64,
    SEGMENT_CHUNK_BYTES = 256 << 10, /* Of zeros a write. */
    SEGMENT_READ_BYTES = 256 << 10,
};

static const uint8_t segment_magic[8] = "STELESEG";

/* ---- Positions ------------------------------------------------------------ */

uint64_t wal_segment_behind(const struct wal_position *position)
{
    return position->unit == 0 ? (uint64_t)WAL_SEGMENT_FIRST
                               : position->segment;
}

uint64_t wal_segment_offset_behind(const struct wal_position *position)
{
    return position->unit == 0 ? (uint64_t)WAL_SEGMENT_HEADER_BYTES
                               : position->end_offset;
}

/* ---- Preparing ------------------------------------------------------------ */

static void encode_header(const struct wal_segment *segment,
                          const struct wal_uuid *uuid,
                          uint8_t target[SEGMENT_FIELDS_END])
{
    struct byte_writer out = byte_writer_init(target, SEGMENT_FIELDS_END);

    byte_writer_copy(&out, segment_magic, sizeof segment_magic);
    byte_writer_u32(&out, WAL_SEGMENT_VERSION);
    byte_writer_u32(&out, 0);
    byte_writer_copy(&out, uuid->bytes, WAL_UUID_BYTES);
    byte_writer_u64(&out, segment->seq);
    byte_writer_u64(&out, segment->bytes);
    byte_writer_u64(&out, segment->salt);
    byte_writer_u64(&out, checksum64(target, SEGMENT_CHECKSUM_OFFSET, 0));
    assert(out.offset == SEGMENT_FIELDS_END);
}

/* Write header and zeros into the new, empty file, and sync it. */
static enum stele_status fill(const struct wal_segment *segment,
                              const struct wal_uuid *uuid,
                              enum io_fs_kind fs_kind,
                              struct stele_error *error)
{
    const size_t chunk_bytes = segment->bytes < SEGMENT_CHUNK_BYTES
                                   ? (size_t)segment->bytes
                                   : SEGMENT_CHUNK_BYTES;
    uint8_t *chunk = calloc(1, chunk_bytes);
    enum stele_status status;

    if (chunk == NULL) {
        return error_no_memory(error, "segment");
    }
    /* Learn early that the disk is full, and get the blocks in one piece. */
    status = io_file_allocate(segment->file, segment->bytes, error);
    if (status == STELE_UNSUPPORTED) {
        /* The zeros below make the length, where any are written. */
        status = fs_kind == IO_FS_COPY_ON_WRITE
                     ? io_file_grow(segment->file, segment->bytes, error)
                     : STELE_OK;
    }
    for (uint64_t offset = chunk_bytes;
         status == STELE_OK && fs_kind != IO_FS_COPY_ON_WRITE &&
         offset < segment->bytes;
         offset += chunk_bytes) {
        const uint64_t left = segment->bytes - offset;
        const uint64_t bytes = left < chunk_bytes ? left : chunk_bytes;

        status =
            io_file_write(segment->file, chunk, (size_t)bytes, offset, error);
        if (status == STELE_OK) {
            /* A sync of all of them at once would hold up the commits'. */
            status = io_file_write_back(segment->file, offset, bytes, error);
        }
    }
    if (status == STELE_OK) {
        encode_header(segment, uuid, chunk);
        status = io_file_write(segment->file, chunk,
                               fs_kind == IO_FS_COPY_ON_WRITE
                                   ? WAL_SEGMENT_HEADER_BYTES
                                   : chunk_bytes,
                               0, error);
    }
    if (status == STELE_OK) {
        /* Before the name exists: on xfs a rename without this leaves an empty
         * file under the final name after a power cut. */
        status = io_file_sync(segment->file, error);
    }
    free(chunk);
    return status;
}

enum stele_status wal_segment_prepare(struct io_dir *wal_dir, uint64_t seq,
                                      const struct wal_uuid *uuid,
                                      uint64_t bytes, enum io_fs_kind fs_kind,
                                      struct wal_segment *segment_out,
                                      bool *names_unknown_out,
                                      struct stele_error *error)
{
    struct wal_segment segment = {.seq = seq, .bytes = bytes};
    char temporary[NUMBERED_NAME_BYTES];
    char name[NUMBERED_NAME_BYTES];
    struct io_file_info ignored;
    enum stele_status status;

    assert(bytes >= WAL_SEGMENT_BYTES_MIN && bytes <= WAL_SEGMENT_BYTES_MAX &&
           bytes % WAL_SEGMENT_HEADER_BYTES == 0);
    *names_unknown_out = false;
    numbered_name(seq, NUMBERED_TEMPORARY, temporary);
    numbered_name(seq, WAL_SEGMENT_SUFFIX, name);

    /* The rename below must never replace a segment. */
    status = io_info(wal_dir, name, &ignored, error);
    if (status == STELE_OK) {
        bool blank;

        status = wal_segment_is_blank(wal_dir, seq, &blank, error);
        if (status == STELE_OK && !blank) {
            status = error_set(error, STELE_EXISTS,
                               "prepare segment: wal/%s exists", name);
        }
    } else if (status == STELE_NOT_FOUND) {
        status = STELE_OK;
    }
    if (status != STELE_OK) {
        return status;
    }
    status = io_random(io_dir_io(wal_dir), &segment.salt, sizeof segment.salt,
                       error);
    if (status != STELE_OK) {
        return status;
    }
    status = io_file_open(wal_dir, temporary, IO_OPEN_CREATE_NEW, &segment.file,
                          error);
    if (status == STELE_EXISTS) {
        /* Left by a try of this process that could not clean up. */
        status = io_unlink(wal_dir, temporary, error);
        if (status == STELE_OK) {
            status = io_file_open(wal_dir, temporary, IO_OPEN_CREATE_NEW,
                                  &segment.file, error);
        }
    }
    if (status != STELE_OK) {
        return error_wrap(error, status, "prepare segment");
    }
    status = fill(&segment, uuid, fs_kind, error);
    if (status == STELE_OK) {
        status = io_rename(wal_dir, temporary, wal_dir, name, error);
    }
    if (status != STELE_OK) {
        struct stele_error ignored_error;

        if (io_unlink(wal_dir, temporary, &ignored_error) != STELE_OK) {
            /* It is only a temporary; the next open removes it. */
        }
        wal_segment_close(&segment);
        return error_wrap(error, status, "prepare segment");
    }
    /* A unit in a file whose name is not durable is not durable. */
    status = io_dir_sync(wal_dir, error);
    if (status != STELE_OK) {
        *names_unknown_out = true;
        wal_segment_close(&segment);
        return error_wrap(error, status, "prepare segment");
    }
    *segment_out = segment;
    return STELE_OK;
}

/* ---- Opening ---------------------------------------------------------------- */

static enum stele_status decode_header(
    const uint8_t source[WAL_SEGMENT_HEADER_BYTES], uint64_t size_bytes,
    const struct wal_uuid *uuid, struct wal_segment *segment,
    struct stele_error *error)
{
    struct byte_reader in = byte_reader_init(source, SEGMENT_FIELDS_END);
    const char *name = io_file_name(segment->file);
    const uint8_t *magic = byte_reader_take(&in, sizeof segment_magic);
    const uint32_t version = byte_reader_u32(&in);
    struct wal_uuid found;
    uint64_t seq;
    uint64_t checksum;

    (void)byte_reader_u32(&in);
    byte_reader_copy(&in, found.bytes, WAL_UUID_BYTES);
    seq = byte_reader_u64(&in);
    segment->bytes = byte_reader_u64(&in);
    segment->salt = byte_reader_u64(&in);
    checksum = byte_reader_u64(&in);
    assert(!in.failed);

    if (memcmp(magic, segment_magic, sizeof segment_magic) != 0 ||
        checksum != checksum64(source, SEGMENT_CHECKSUM_OFFSET, 0)) {
        return error_set(error, STELE_CORRUPT,
                         "%s: offset 0: not a valid segment header", name);
    }
    if (version != WAL_SEGMENT_VERSION) {
        return error_set(error, STELE_FOREIGN,
                         "%s: offset 8: format version %" PRIu32
                         ", this program knows %d",
                         name, version, WAL_SEGMENT_VERSION);
    }
    if (!wal_uuid_equal(&found, uuid)) {
        return error_set(error, STELE_FOREIGN,
                         "%s: offset 16: belongs to another store", name);
    }
    if (seq != segment->seq) {
        return error_set(error, STELE_CORRUPT,
                         "%s: offset 32: is segment %016" PRIx64
                         " by its header",
                         name, seq);
    }
    if (segment->bytes < WAL_SEGMENT_BYTES_MIN ||
        segment->bytes > WAL_SEGMENT_BYTES_MAX ||
        segment->bytes % WAL_SEGMENT_HEADER_BYTES != 0 ||
        segment->bytes != size_bytes) {
        return error_set(error, STELE_CORRUPT,
                         "%s: the file has %" PRIu64
                         " bytes, expected %" PRIu64,
                         name, size_bytes, segment->bytes);
    }
    return STELE_OK;
}

/* The file of segment->seq, whatever is in it. A failure closes it. */
static enum stele_status open_file(struct io_dir *wal_dir,
                                   enum io_open_mode mode,
                                   struct wal_segment *segment,
                                   struct io_file_info *info_out,
                                   struct stele_error *error)
{
    char name[NUMBERED_NAME_BYTES];
    enum stele_status status;

    numbered_name(segment->seq, WAL_SEGMENT_SUFFIX, name);
    status = io_file_open(wal_dir, name, mode, &segment->file, error);
    if (status == STELE_OK) {
        status = io_file_info(segment->file, info_out, error);
        if (status != STELE_OK) {
            wal_segment_close(segment);
        }
    }
    return status;
}

enum stele_status wal_segment_open(struct io_dir *wal_dir, uint64_t seq,
                                   const struct wal_uuid *uuid,
                                   enum io_open_mode mode,
                                   struct wal_segment *segment_out,
                                   struct stele_error *error)
{
    struct wal_segment segment = {.seq = seq};
    uint8_t header[WAL_SEGMENT_HEADER_BYTES];
    struct io_file_info info;
    enum stele_status status = open_file(wal_dir, mode, &segment, &info, error);

    if (status != STELE_OK) {
        return status;
    }
    if (info.type != IO_TYPE_REGULAR) {
        status = error_set(error, STELE_CORRUPT, "%s: not a regular file",
                           io_file_name(segment.file));
    }
    if (status == STELE_OK) {
        status =
            io_file_read_exact(segment.file, header, sizeof header, 0, error);
    }
    if (status == STELE_OK) {
        status = decode_header(header, info.size_bytes, uuid, &segment, error);
    }
    if (status != STELE_OK) {
        wal_segment_close(&segment);
        return status;
    }
    *segment_out = segment;
    return STELE_OK;
}

enum stele_status wal_segment_is_unused(const struct wal_segment *segment,
                                        bool *unused_out,
                                        struct stele_error *error)
{
    uint8_t *chunk = malloc(SEGMENT_READ_BYTES);
    enum stele_status status = STELE_OK;
    bool unused = true;

    if (chunk == NULL) {
        return error_no_memory(error, "segment");
    }
    for (uint64_t offset = WAL_SEGMENT_HEADER_BYTES;
         unused && offset < segment->bytes;) {
        const uint64_t left = segment->bytes - offset;
        const size_t bytes =
            left < SEGMENT_READ_BYTES ? (size_t)left : SEGMENT_READ_BYTES;

        status = io_file_read_exact(segment->file, chunk, bytes, offset, error);
        if (status != STELE_OK) {
            break;
        }
        unused = bytes_are_zero(chunk, bytes);
        offset += bytes;
    }
    free(chunk);
    if (status == STELE_OK) {
        *unused_out = unused;
    }
    return status;
}

enum stele_status wal_segment_is_blank(struct io_dir *wal_dir, uint64_t seq,
                                       bool *blank_out,
                                       struct stele_error *error)
{
    struct wal_segment segment = {.seq = seq};
    uint8_t header[WAL_SEGMENT_HEADER_BYTES];
    struct io_file_info info;
    enum stele_status status =
        open_file(wal_dir, IO_OPEN_READ, &segment, &info, error);

    if (status != STELE_OK) {
        return status;
    }
    if (info.type != IO_TYPE_REGULAR || info.size_bytes <= sizeof header) {
        *blank_out = info.type == IO_TYPE_REGULAR;
    } else {
        status =
            io_file_read_exact(segment.file, header, sizeof header, 0, error);
        *blank_out =
            status == STELE_OK && bytes_are_zero(header, sizeof header);
        segment.bytes = info.size_bytes;
        if (*blank_out) {
            status = wal_segment_is_unused(&segment, blank_out, error);
        }
    }
    wal_segment_close(&segment);
    return status;
}

void wal_segment_close(struct wal_segment *segment)
{
    io_file_close(segment->file);
    segment->file = NULL;
}
