/* wal/anchor.c -- see wal/anchor.h. */
#include "wal/anchor.h"

#include <assert.h>
#include <inttypes.h>
#include <string.h>

#include "base/bytes.h"
#include "base/checksum.h"
#include "base/error.h"

enum {
    ANCHOR_CHECKSUM_OFFSET = 8,
    ANCHOR_FIELDS_OFFSET = 16,
    ANCHOR_FIELDS_END = 272,
    HINT_FIELDS_OFFSET = 16,
    ANCHOR_FLAG_CLEAN = 1 << 0,
    ANCHOR_FLAG_INDEX_SUSPECT = 1 << 1,
};

#define ANCHOR_TEMPORARY_NAME "ANCHOR.tmp"
#define HINT_OFFSET           ((uint64_t)2 * WAL_ANCHOR_SLOT_BYTES)

static const uint8_t anchor_magic[8] = "STELANCH";
static const uint8_t hint_magic[8] = "STELHINT";

/* ---- Bytes -------------------------------------------------------------------- */

struct wal_position wal_anchor_origin(const struct wal_anchor *anchor)
{
    return wal_position_origin(&anchor->uuid, anchor->parent_lsn);
}

void wal_anchor_encode(const struct wal_anchor *anchor,
                       uint8_t target[WAL_ANCHOR_SLOT_BYTES])
{
    struct byte_writer out = byte_writer_init(target, WAL_ANCHOR_SLOT_BYTES);
    const struct wal_uuid no_cluster = {{0}};
    uint8_t position[WAL_POSITION_BYTES];

    memset(target, 0, WAL_ANCHOR_SLOT_BYTES);
    byte_writer_copy(&out, anchor_magic, sizeof anchor_magic);
    byte_writer_u64(&out, 0); /* The checksum, below. */
    byte_writer_u32(&out, WAL_ANCHOR_VERSION);
    byte_writer_u32(&out, anchor->format_min);
    byte_writer_u64(&out, anchor->slot_sequence);
    byte_writer_copy(&out, anchor->uuid.bytes, WAL_UUID_BYTES);
    byte_writer_copy(&out, anchor->parent_uuid.bytes, WAL_UUID_BYTES);
    byte_writer_u64(&out, anchor->parent_lsn);
    byte_writer_u64(&out, anchor->incarnation);
    byte_writer_u64(&out, anchor->lsn_floor);
    byte_writer_u64(&out, anchor->segment_last);
    byte_writer_u64(&out, anchor->segment_oldest);
    byte_writer_u64(&out, anchor->segment_bytes);
    byte_writer_u32(
        &out,
        (anchor->clean ? (uint32_t)ANCHOR_FLAG_CLEAN : 0) |
            (anchor->index_suspect ? (uint32_t)ANCHOR_FLAG_INDEX_SUSPECT : 0));
    byte_writer_u32(&out, 0);
    for (size_t index = 0; index < WAL_ANCHOR_SNAPSHOTS; index++) {
        byte_writer_u64(&out, anchor->snapshots[index]);
    }
    byte_writer_u64(&out, anchor->index_generation);
    byte_writer_u64(&out, anchor->index_inode);
    byte_writer_u64(&out, anchor->index_birth_ns);
    byte_writer_u32(&out, anchor->index_format);
    byte_writer_u32(&out, 0);
    wal_position_encode(&anchor->durable, position);
    byte_writer_copy(&out, position, sizeof position);
    byte_writer_copy(&out, no_cluster.bytes, WAL_UUID_BYTES);
    byte_writer_u64(&out, 0);
    assert(out.offset == ANCHOR_FIELDS_END);
    put_u64le(target + ANCHOR_CHECKSUM_OFFSET,
              checksum64(target + ANCHOR_FIELDS_OFFSET,
                         WAL_ANCHOR_USED_BYTES - ANCHOR_FIELDS_OFFSET, 0));
}

enum wal_anchor_verdict wal_anchor_decode(
    const uint8_t source[WAL_ANCHOR_SLOT_BYTES], struct wal_anchor *anchor_out)
{
    struct byte_reader in = byte_reader_init(source, WAL_ANCHOR_USED_BYTES);
    struct wal_anchor anchor = {0};
    const uint8_t *magic = byte_reader_take(&in, sizeof anchor_magic);
    const uint64_t checksum = byte_reader_u64(&in);
    uint8_t position[WAL_POSITION_BYTES];
    uint32_t version;
    uint32_t flags;

    if (memcmp(magic, anchor_magic, sizeof anchor_magic) != 0 ||
        checksum != checksum64(source + ANCHOR_FIELDS_OFFSET,
                               WAL_ANCHOR_USED_BYTES - ANCHOR_FIELDS_OFFSET,
                               0)) {
        return WAL_ANCHOR_INVALID;
    }
    version = byte_reader_u32(&in);
    anchor.format_min = byte_reader_u32(&in);
    if (version != WAL_ANCHOR_VERSION ||
        anchor.format_min > WAL_ANCHOR_VERSION) {
        return WAL_ANCHOR_NEWER;
    }
    anchor.slot_sequence = byte_reader_u64(&in);
    byte_reader_copy(&in, anchor.uuid.bytes, WAL_UUID_BYTES);
    byte_reader_copy(&in, anchor.parent_uuid.bytes, WAL_UUID_BYTES);
    anchor.parent_lsn = byte_reader_u64(&in);
    anchor.incarnation = byte_reader_u64(&in);
    anchor.lsn_floor = byte_reader_u64(&in);
    anchor.segment_last = byte_reader_u64(&in);
    anchor.segment_oldest = byte_reader_u64(&in);
    anchor.segment_bytes = byte_reader_u64(&in);
    flags = byte_reader_u32(&in);
    anchor.clean = (flags & ANCHOR_FLAG_CLEAN) != 0;
    anchor.index_suspect = (flags & ANCHOR_FLAG_INDEX_SUSPECT) != 0;
    (void)byte_reader_u32(&in);
    for (size_t index = 0; index < WAL_ANCHOR_SNAPSHOTS; index++) {
        anchor.snapshots[index] = byte_reader_u64(&in);
    }
    anchor.index_generation = byte_reader_u64(&in);
    anchor.index_inode = byte_reader_u64(&in);
    anchor.index_birth_ns = byte_reader_u64(&in);
    anchor.index_format = byte_reader_u32(&in);
    (void)byte_reader_u32(&in);
    byte_reader_copy(&in, position, sizeof position);
    assert(!in.failed);
    if (!wal_position_decode(position, &anchor.durable)) {
        return WAL_ANCHOR_INVALID;
    }
    *anchor_out = anchor;
    return WAL_ANCHOR_VALID;
}

/* ---- The file -------------------------------------------------------------------- */

static enum stele_status write_slot(struct wal_anchor_file *file, unsigned slot,
                                    const struct wal_anchor *anchor,
                                    struct stele_error *error)
{
    uint8_t page[WAL_ANCHOR_SLOT_BYTES];
    enum stele_status status;

    wal_anchor_encode(anchor, page);
    status = io_file_write(file->file, page, sizeof page,
                           (uint64_t)slot * WAL_ANCHOR_SLOT_BYTES, error);
    if (status != STELE_OK) {
        return status;
    }
    /* Before the other slot, the only other valid copy, may be overwritten. */
    return io_file_sync(file->file, error);
}

enum stele_status wal_anchor_create(struct io_dir *dir,
                                    const struct wal_anchor *anchor,
                                    struct stele_error *error)
{
    uint8_t pages[WAL_ANCHOR_BYTES] = {0};
    struct io_file *file;
    enum stele_status status =
        io_file_open(dir, ANCHOR_TEMPORARY_NAME, IO_OPEN_CREATE, &file, error);

    if (status != STELE_OK) {
        return error_wrap(error, status, "create anchor");
    }
    wal_anchor_encode(anchor, pages);
    wal_anchor_encode(anchor, pages + WAL_ANCHOR_SLOT_BYTES);
    status = io_file_write(file, pages, sizeof pages, 0, error);
    if (status == STELE_OK) {
        /* A name that is durable before its bytes would be an empty anchor. */
        status = io_file_sync(file, error);
    }
    io_file_close(file);
    if (status == STELE_OK) {
        status =
            io_rename(dir, ANCHOR_TEMPORARY_NAME, dir, WAL_ANCHOR_NAME, error);
    }
    if (status == STELE_OK) {
        /* The store exists once this name does. */
        status = io_dir_sync(dir, error);
    }
    return status == STELE_OK ? STELE_OK
                              : error_wrap(error, status, "create anchor");
}

enum stele_status wal_anchor_read(struct wal_anchor_file *file,
                                  struct wal_anchor *anchor_out,
                                  struct stele_error *error)
{
    struct wal_anchor found[2];
    bool newer = false;

    for (unsigned slot = 0; slot < 2; slot++) {
        uint8_t page[WAL_ANCHOR_SLOT_BYTES];
        enum wal_anchor_verdict verdict;
        enum stele_status status =
            io_file_read_exact(file->file, page, sizeof page,
                               (uint64_t)slot * WAL_ANCHOR_SLOT_BYTES, error);

        if (status != STELE_OK) {
            return status;
        }
        verdict = wal_anchor_decode(page, &found[slot]);
        file->slot_valid[slot] = verdict == WAL_ANCHOR_VALID;
        newer = newer || verdict == WAL_ANCHOR_NEWER;
    }
    if (newer) {
        return error_set(error, STELE_FOREIGN,
                         "%s: written by a newer program, this one knows "
                         "format %d",
                         io_file_name(file->file), WAL_ANCHOR_VERSION);
    }
    if (!file->slot_valid[0] && !file->slot_valid[1]) {
        return error_set(error, STELE_CORRUPT,
                         "%s: offsets 0 and %d: neither slot is valid",
                         io_file_name(file->file), WAL_ANCHOR_SLOT_BYTES);
    }
    file->newest =
        file->slot_valid[1] && (!file->slot_valid[0] ||
                                found[1].slot_sequence > found[0].slot_sequence)
            ? 1
            : 0;
    *anchor_out = found[file->newest];
    if (!file->slot_valid[1 - file->newest]) {
        /* The other one may have been newer, and have said that it is not. */
        anchor_out->clean = false;
    }
    return STELE_OK;
}

enum stele_status wal_anchor_open(struct io_dir *dir, enum io_open_mode mode,
                                  struct wal_anchor_file *file_out,
                                  struct wal_anchor *anchor_out,
                                  struct stele_error *error)
{
    struct wal_anchor_file file = {0};
    struct io_file_info info;
    enum stele_status status =
        io_file_open(dir, WAL_ANCHOR_NAME, mode, &file.file, error);

    if (status != STELE_OK) {
        return status;
    }
    status = io_file_info(file.file, &info, error);
    if (status == STELE_OK &&
        (info.type != IO_TYPE_REGULAR || info.size_bytes != WAL_ANCHOR_BYTES)) {
        status = error_set(
            error, STELE_CORRUPT,
            "%s: the file has %" PRIu64 " bytes, expected a regular one of %d",
            io_file_name(file.file), info.size_bytes, WAL_ANCHOR_BYTES);
    }
    if (status == STELE_OK) {
        status = wal_anchor_read(&file, anchor_out, error);
    }
    if (status != STELE_OK) {
        wal_anchor_close(&file);
        return status;
    }
    *file_out = file;
    return STELE_OK;
}

enum stele_status wal_anchor_heal(struct wal_anchor_file *file,
                                  const struct wal_anchor *anchor,
                                  struct stele_error *error)
{
    const unsigned other = 1 - file->newest;
    enum stele_status status = STELE_OK;

    if (!file->slot_valid[other]) {
        status = write_slot(file, other, anchor, error);
    }
    if (status == STELE_OK) {
        /* In place: what was read may be in the page cache only. */
        status = write_slot(file, file->newest, anchor, error);
    }
    if (status != STELE_OK) {
        return error_wrap(error, status, "anchor");
    }
    file->slot_valid[0] = true;
    file->slot_valid[1] = true;
    return STELE_OK;
}

enum stele_status wal_anchor_write(struct wal_anchor_file *file,
                                   struct wal_anchor *anchor,
                                   struct stele_error *error)
{
    const unsigned next = 1 - file->newest;
    struct wal_anchor written = *anchor;
    enum stele_status status;

    written.slot_sequence++;
    status = write_slot(file, next, &written, error);
    if (status != STELE_OK) {
        return error_wrap(error, status, "anchor");
    }
    file->newest = next;
    *anchor = written;
    return STELE_OK;
}

enum stele_status wal_hint_write(struct wal_anchor_file *file,
                                 uint64_t incarnation,
                                 const struct wal_position *position,
                                 struct stele_error *error)
{
    uint8_t hint[WAL_HINT_BYTES];
    struct byte_writer out = byte_writer_init(hint, sizeof hint);
    uint8_t encoded[WAL_POSITION_BYTES];

    byte_writer_copy(&out, hint_magic, sizeof hint_magic);
    byte_writer_u64(&out, 0); /* The checksum, below. */
    byte_writer_u64(&out, incarnation);
    wal_position_encode(position, encoded);
    byte_writer_copy(&out, encoded, sizeof encoded);
    assert(out.offset == sizeof hint);
    put_u64le(hint + ANCHOR_CHECKSUM_OFFSET,
              checksum64(hint + HINT_FIELDS_OFFSET,
                         sizeof hint - HINT_FIELDS_OFFSET, 0));
    return io_file_write(file->file, hint, sizeof hint, HINT_OFFSET, error);
}

enum stele_status wal_hint_read(struct wal_anchor_file *file, bool *valid_out,
                                uint64_t *incarnation_out,
                                struct wal_position *position_out,
                                struct stele_error *error)
{
    uint8_t hint[WAL_HINT_BYTES];
    struct byte_reader in = byte_reader_init(hint, sizeof hint);
    const uint8_t *magic;
    uint64_t checksum;
    uint64_t incarnation;
    enum stele_status status =
        io_file_read_exact(file->file, hint, sizeof hint, HINT_OFFSET, error);

    if (status != STELE_OK) {
        return status;
    }
    magic = byte_reader_take(&in, sizeof hint_magic);
    checksum = byte_reader_u64(&in);
    incarnation = byte_reader_u64(&in);
    *valid_out = memcmp(magic, hint_magic, sizeof hint_magic) == 0 &&
                 checksum == checksum64(hint + HINT_FIELDS_OFFSET,
                                        sizeof hint - HINT_FIELDS_OFFSET, 0) &&
                 wal_position_decode(hint + in.offset, position_out);
    if (*valid_out) {
        *incarnation_out = incarnation;
    }
    return STELE_OK;
}

void wal_anchor_close(struct wal_anchor_file *file)
{
    io_file_close(file->file);
    file->file = NULL;
}
