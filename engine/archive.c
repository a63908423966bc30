/* engine/archive.c -- see engine/archive.h. */
#include "engine/archive.h"

#include <assert.h>
#include <inttypes.h>
#include <string.h>

#include "base/bytes.h"
#include "base/checksum.h"
#include "base/error.h"
#include "engine/store.h"
#include "wal/segment.h"

enum { CHECKSUM_OFFSET = ARCHIVE_BYTES - 8 };

static const uint8_t archive_magic[8] = "STELARCH";

/* ---- Bytes ------------------------------------------------------------------ */

static void write_position(struct byte_writer *out,
                           const struct wal_position *position)
{
    uint8_t bytes[WAL_POSITION_BYTES];

    wal_position_encode(position, bytes);
    byte_writer_copy(out, bytes, sizeof bytes);
}

void archive_encode(const struct archive *archive,
                    uint8_t target[ARCHIVE_BYTES])
{
    struct byte_writer out = byte_writer_init(target, ARCHIVE_BYTES);

    byte_writer_copy(&out, archive_magic, sizeof archive_magic);
    byte_writer_u32(&out, ARCHIVE_VERSION);
    byte_writer_u32(&out, 0);
    byte_writer_copy(&out, archive->uuid.bytes, WAL_UUID_BYTES);
    byte_writer_copy(&out, archive->parent_uuid.bytes, WAL_UUID_BYTES);
    byte_writer_u64(&out, archive->parent_lsn);
    byte_writer_u64(&out, archive->segment_bytes);
    write_position(&out, &archive->base);
    write_position(&out, &archive->end);
    byte_writer_u64(&out, archive->segment_first);
    byte_writer_u64(&out, archive->wall_ns);
    assert(out.offset == CHECKSUM_OFFSET);
    byte_writer_u64(&out, checksum64(target, CHECKSUM_OFFSET, 0));
}

static bool read_position(struct byte_reader *in, const struct wal_uuid *uuid,
                          struct wal_position *position_out)
{
    const uint8_t *bytes = byte_reader_take(in, WAL_POSITION_BYTES);

    return wal_position_decode(bytes, position_out) &&
           wal_uuid_equal(&position_out->uuid, uuid);
}

/* What the checksum says was written, but no program of ours writes. */
static bool makes_sense(const struct archive *archive)
{
    return archive->segment_bytes >= WAL_SEGMENT_BYTES_MIN &&
           archive->segment_bytes <= WAL_SEGMENT_BYTES_MAX &&
           archive->segment_bytes % WAL_SEGMENT_HEADER_BYTES == 0 &&
           archive->base.lsn <= archive->end.lsn &&
           archive->base.unit <= archive->end.unit &&
           archive->segment_first >= WAL_SEGMENT_FIRST &&
           archive->segment_first <= wal_segment_behind(&archive->base);
}

enum archive_verdict archive_decode(const uint8_t source[ARCHIVE_BYTES],
                                    struct archive *archive_out)
{
    struct byte_reader in = byte_reader_init(source, ARCHIVE_BYTES);
    const uint8_t *magic = byte_reader_take(&in, sizeof archive_magic);
    const uint32_t version = byte_reader_u32(&in);
    struct archive archive;
    bool positions;

    if (memcmp(magic, archive_magic, sizeof archive_magic) != 0 ||
        get_u64le(source + CHECKSUM_OFFSET) !=
            checksum64(source, CHECKSUM_OFFSET, 0)) {
        return ARCHIVE_INVALID;
    }
    if (version != ARCHIVE_VERSION) {
        return ARCHIVE_NEWER;
    }
    (void)byte_reader_u32(&in);
    byte_reader_copy(&in, archive.uuid.bytes, WAL_UUID_BYTES);
    byte_reader_copy(&in, archive.parent_uuid.bytes, WAL_UUID_BYTES);
    archive.parent_lsn = byte_reader_u64(&in);
    archive.segment_bytes = byte_reader_u64(&in);
    positions = read_position(&in, &archive.uuid, &archive.base) &&
                read_position(&in, &archive.uuid, &archive.end);
    archive.segment_first = byte_reader_u64(&in);
    archive.wall_ns = byte_reader_u64(&in);
    if (!positions || !makes_sense(&archive)) {
        return ARCHIVE_INVALID;
    }
    *archive_out = archive;
    return ARCHIVE_VALID;
}

/* ---- The file ------------------------------------------------------------------ */

static enum stele_status read_file(struct io_file *file,
                                   struct archive *archive_out,
                                   struct stele_error *error)
{
    uint8_t bytes[ARCHIVE_BYTES];
    struct io_file_info info;
    enum stele_status status = io_file_info(file, &info, error);

    if (status != STELE_OK) {
        return status;
    }
    if (info.type != IO_TYPE_REGULAR || info.size_bytes != sizeof bytes) {
        return error_set(error, STELE_CORRUPT,
                         "%s: the file has %" PRIu64
                         " bytes, expected a regular one of %d",
                         io_file_name(file), info.size_bytes, ARCHIVE_BYTES);
    }
    status = io_file_read_exact(file, bytes, sizeof bytes, 0, error);
    if (status != STELE_OK) {
        return status;
    }
    switch (archive_decode(bytes, archive_out)) {
    case ARCHIVE_VALID:
        return STELE_OK;
    case ARCHIVE_NEWER:
        return error_set(
            error, STELE_FOREIGN,
            "%s: offset 8: format version %" PRIu32 ", this program knows %d",
            io_file_name(file), get_u32le(bytes + 8), ARCHIVE_VERSION);
    case ARCHIVE_INVALID:
        break;
    }
    return error_set(error, STELE_CORRUPT,
                     "%s: offset 0: not the list of an archive, or damaged",
                     io_file_name(file));
}

enum stele_status archive_read(struct io_dir *dir, struct archive *archive_out,
                               struct stele_error *error)
{
    struct io_file *file;
    enum stele_status status =
        io_file_open(dir, ARCHIVE_NAME, IO_OPEN_READ, &file, error);

    if (status == STELE_OK) {
        status = read_file(file, archive_out, error);
        io_file_close(file);
    }
    return status;
}

enum stele_status archive_write(struct io_dir *dir,
                                const struct archive *archive,
                                struct stele_error *error)
{
    uint8_t bytes[ARCHIVE_BYTES];
    struct io_file *file;
    enum stele_status status =
        io_file_open(dir, ARCHIVE_TEMPORARY_NAME, IO_OPEN_CREATE, &file, error);

    if (status != STELE_OK) {
        return status;
    }
    archive_encode(archive, bytes);
    status = io_file_write(file, bytes, sizeof bytes, 0, error);
    if (status == STELE_OK) {
        /* A name that is durable before its bytes would be a damaged archive,
         * in place of one that was good. */
        status = io_file_sync(file, error);
    }
    io_file_close(file);
    if (status == STELE_OK) {
        status =
            io_rename(dir, ARCHIVE_TEMPORARY_NAME, dir, ARCHIVE_NAME, error);
    }
    /* Whoever is told that the backup is done may remove what it was made of. */
    return status == STELE_OK ? io_dir_sync(dir, error) : status;
}

/* ---- What it says ----------------------------------------------------------------- */

struct wal_anchor archive_anchor(const struct archive *archive,
                                 uint64_t segment_oldest)
{
    return (struct wal_anchor){
        .format_min = WAL_ANCHOR_VERSION,
        .uuid = archive->uuid,
        .parent_uuid = archive->parent_uuid,
        .parent_lsn = archive->parent_lsn,
        .segment_last = wal_segment_behind(&archive->end),
        .segment_oldest = segment_oldest,
        .segment_bytes = archive->segment_bytes,
        .durable = archive->end,
    };
}
