/*
 * engine/backup.c -- stele_backup(): a base and the log behind it, into an archive
 * (engine/archive.h).
 *
 * The happy path: see that the destination is ours and lock it; open every file that
 * is needed; copy what it does not hold yet, each file under a temporary name, synced,
 * renamed; sync the directories; read all of it back from the disk; write ARCHIVE.
 *
 * Until that last step the earlier ARCHIVE counts, and what it vouches for is all
 * there: no file is deleted, and one that is replaced by a longer copy of itself
 * holds all that it held: that part is copied from the archive itself, since the
 * store's may have rotted since. So a backup that fails, or is killed, anywhere leaves the
 * archive that was there. Its leftovers are temporaries, which the next one removes,
 * and whole files that nobody vouches for yet.
 *
 * A snapshot that turns out to be damaged while it is read is left where it is (this
 * handle may be a reader), and an older base and the longer log are taken. If what is
 * read back of the archive is damaged, the store's log is verified, and then copied
 * again.
 *
 * Runs in the caller's thread. Commits, checkpoints and snapshots go on; while the
 * files are opened, and longer in a handle that writes, retention is held.
 */
#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/numbered.h"
#include "engine/archive.h"
#include "engine/backup_dest.h"
#include "engine/backup_source.h"
#include "engine/bases.h"
#include "engine/retention.h"
#include "engine/store.h"
#include "snapshot/writer.h"
#include "wal/reader.h"
#include "wal/segment.h"

enum { COPY_BYTES = 1 << 20 };

struct backup {
    struct stele *store;
    struct backup_dest dest;
    struct backup_source source;
    bool copy_all;        /* Also what the archive seems to hold. */
    bool base_damaged;    /* The store's snapshot cannot be read. */
    bool archive_damaged; /* What is in the archive cannot be read. */
    uint64_t wall_ns;     /* Of the last unit. */
    struct stele_backup_report report;
    stele_progress *progress;
    void *context;
    uint64_t done_bytes; /* Of this step ... */
    uint64_t told_bytes; /* ... as `progress` was told last. */
};

/* ---- Progress ----------------------------------------------------------------- */

static uint64_t total_bytes(const struct backup *backup)
{
    const struct backup_source *source = &backup->source;
    uint64_t bytes = source->snapshot == NULL
                         ? 0
                         : snapshot_reader_info(source->snapshot)->file_bytes;

    for (size_t index = 0; index < source->segment_count; index++) {
        bytes += backup_source_used_bytes(source, &source->segments[index]);
    }
    return bytes;
}

static void begin_step(struct backup *backup)
{
    backup->done_bytes = 0;
    backup->told_bytes = 0;
}

static void tell(struct backup *backup, const char *step, uint64_t bytes)
{
    backup->done_bytes += bytes;
    if (backup->progress != NULL &&
        backup->done_bytes - backup->told_bytes >= COPY_BYTES) {
        backup->told_bytes = backup->done_bytes;
        backup->progress(backup->context, step, backup->done_bytes,
                         total_bytes(backup));
    }
}

/* ---- The snapshot --------------------------------------------------------------- */

static bool same_snapshot(const struct snapshot_info *left,
                          const struct snapshot_info *right)
{
    return memcmp(left->digest.bytes, right->digest.bytes,
                  sizeof left->digest.bytes) == 0;
}

static bool has_snapshot(const struct backup *backup,
                         const struct snapshot_info *info)
{
    struct snapshot_info there;
    struct stele_error ignored;

    return !backup->copy_all &&
           snapshot_read_info(backup->dest.snapshot_dir, info->lsn, info->uuid,
                              &there, &ignored) == STELE_OK &&
           same_snapshot(&there, info);
}

/* The same state makes the same file: so it is read, all of it verified, and written
 * anew, and the digests must agree. */
static enum stele_status copy_entries(struct backup *backup,
                                      struct snapshot_writer *writer,
                                      struct stele_error *error)
{
    struct snapshot_reader *reader = backup->source.snapshot;
    uint64_t read_bytes = 0;
    enum stele_status status = STELE_OK;

    while (status == STELE_OK) {
        struct snapshot_entry entry;
        struct stele_error failure = {0};

        status = snapshot_reader_next(reader, &entry, &failure);
        if (status == STELE_NOT_FOUND) {
            return STELE_OK;
        }
        if (status != STELE_OK) {
            backup->base_damaged = bases_is_damage(&failure);
            if (error != NULL) {
                *error = failure;
            }
            return status;
        }
        status = snapshot_writer_add(writer, entry.key, entry.stored, error);
        tell(backup, "copying", snapshot_reader_bytes(reader) - read_bytes);
        read_bytes = snapshot_reader_bytes(reader);
        if (status == STELE_OK) {
            status = snapshot_writer_pace(writer, error);
        }
    }
    return status;
}

static enum stele_status write_snapshot(struct backup *backup,
                                        struct snapshot_writer *writer,
                                        struct stele_error *error)
{
    const struct snapshot_info *info =
        snapshot_reader_info(backup->source.snapshot);
    struct snapshot_info written;
    bool ignored;
    enum stele_status status = copy_entries(backup, writer, error);

    if (status == STELE_OK) {
        status = snapshot_writer_finish(writer, &info->totals, info->position,
                                        &written, error);
    }
    if (status == STELE_OK && !same_snapshot(&written, info)) {
        backup->base_damaged = true;
        status = error_set(error, STELE_CORRUPT,
                           "snapshot/%016" PRIx64
                           ".snap: its entries make another file",
                           info->lsn);
    }
    if (status == STELE_OK) {
        status = snapshot_writer_publish(writer, &ignored, error);
        backup->report.bytes_copied += written.file_bytes;
    }
    return status;
}

static enum stele_status copy_snapshot(struct backup *backup,
                                       struct stele_error *error)
{
    struct snapshot_writer *writer = NULL;
    const struct snapshot_info *info;
    enum stele_status status;

    if (backup->source.snapshot == NULL) {
        return STELE_OK;
    }
    info = snapshot_reader_info(backup->source.snapshot);
    if (has_snapshot(backup, info)) {
        backup->report.bytes_present += info->file_bytes;
        tell(backup, "copying", info->file_bytes);
        return STELE_OK;
    }
    status = snapshot_writer_create(backup->dest.snapshot_dir, info->uuid,
                                    info->lsn, &writer, error);
    if (status == STELE_OK) {
        status = write_snapshot(backup, writer, error);
    }
    snapshot_writer_destroy(writer);
    return status;
}

/* ---- The log ------------------------------------------------------------------------ */

/* All of it from `start` to `end`, as it lies in `wal_dir`. */
static enum stele_status read_log(struct backup *backup, struct io_dir *wal_dir,
                                  uint64_t segment_oldest, const char *step,
                                  struct stele_error *error)
{
    const struct backup_source *source = &backup->source;
    struct wal_reader reader;
    enum stele_status status = wal_reader_open(
        &reader, wal_dir, &source->start, segment_oldest, IO_OPEN_READ, error);

    if (status != STELE_OK) {
        return status;
    }
    backup->report.units = 0;
    while (status == STELE_OK && reader.previous.unit < source->end.unit) {
        struct wal_reader_unit unit;

        status =
            wal_reader_next_whole(&reader, &unit, "it is in the store", error);
        if (status == STELE_OK) {
            backup->report.units++;
            tell(backup, step,
                 unit.position.end_offset - unit.position.start_offset);
        }
    }
    if (status == STELE_OK &&
        !wal_position_equal(&reader.previous, &source->end)) {
        status =
            error_set(error, STELE_CORRUPT,
                      "the log ends in another unit %" PRIu64 " than it did",
                      source->end.unit);
    }
    wal_reader_close(&reader);
    return status;
}

/* Before anything in the archive is replaced that may be sound. */
static enum stele_status verify_source(struct backup *backup,
                                       struct stele_error *error)
{
    const enum stele_status status = read_log(
        backup, backup->store->wal_dir, backup->source.anchor.segment_oldest,
        "reading the log", error);

    begin_step(backup);
    return status == STELE_OK ? STELE_OK
                              : error_wrap(error, status, "the store's log");
}

/* ---- Segments ---------------------------------------------------------------------- */

/* The archive's own copy of it, if the last backup has vouched for any of it. */
static bool open_there(const struct backup *backup,
                       const struct wal_segment *segment,
                       struct wal_segment *there)
{
    const struct archive *earlier = &backup->dest.earlier;
    struct stele_error ignored;

    if (!backup->source.continues || segment->seq < earlier->segment_first ||
        segment->seq > wal_segment_behind(&earlier->end) ||
        wal_segment_open(backup->dest.wal_dir, segment->seq,
                         &backup->source.anchor.uuid, IO_OPEN_READ, there,
                         &ignored) != STELE_OK) {
        return false;
    }
    if (there->salt == segment->salt && there->bytes == segment->bytes) {
        return true;
    }
    wal_segment_close(there);
    return false;
}

/* Whether the archive has it complete: the last backup has vouched for all of it. */
static bool has_segment(const struct backup *backup,
                        const struct wal_segment *segment)
{
    const struct archive *earlier = &backup->dest.earlier;
    struct wal_segment there;

    if (backup->copy_all || !open_there(backup, segment, &there)) {
        return false;
    }
    wal_segment_close(&there);
    return segment->seq < wal_segment_behind(&earlier->end) ||
           /* Nothing has happened since. */
           wal_position_equal(&earlier->end, &backup->source.end);
}

/* How much of the archive's own copy goes into the new one: what it vouches for, and
 * the store may have lost to rot in the meantime. When all is copied, the log of the
 * store was verified from `start` on. */
static uint64_t kept_bytes(const struct backup *backup, uint64_t seq)
{
    const struct wal_position *kept_to =
        backup->copy_all ? &backup->source.start : &backup->dest.earlier.end;

    return seq == wal_segment_behind(kept_to)
               ? wal_segment_offset_behind(kept_to)
               : 0;
}

/* The bytes [from, to). What stays unwritten reads as zeros and takes no space. */
static enum stele_status copy_run(struct backup *backup, struct io_file *source,
                                  uint64_t from, uint64_t to,
                                  struct io_file *target,
                                  struct stele_error *error)
{
    uint8_t *buffer = malloc(COPY_BYTES);
    enum stele_status status = STELE_OK;

    if (buffer == NULL) {
        return error_no_memory(error, "backup");
    }
    for (uint64_t offset = from; status == STELE_OK && offset < to;) {
        const uint64_t left = to - offset;
        const size_t bytes = left < COPY_BYTES ? (size_t)left : COPY_BYTES;

        status = io_file_read_exact(source, buffer, bytes, offset, error);
        if (status == STELE_OK && !bytes_are_zero(buffer, bytes)) {
            status = io_file_write(target, buffer, bytes, offset, error);
            backup->report.bytes_copied += bytes;
            if (status == STELE_OK) {
                /* The broker's commits may be on the same disk. */
                status = io_file_write_back(target, offset, bytes, error);
            }
        }
        offset += bytes;
        tell(backup, "copying", bytes);
    }
    free(buffer);
    return status;
}

/* That what was kept arrived: read back before it is all that there is. */
static enum stele_status compare_run(struct io_file *left,
                                     struct io_file *right, uint64_t to,
                                     struct stele_error *error)
{
    uint8_t *buffer = malloc((size_t)2 * COPY_BYTES);
    enum stele_status status = STELE_OK;

    if (buffer == NULL) {
        return error_no_memory(error, "backup");
    }
    for (uint64_t offset = 0; status == STELE_OK && offset < to;
         offset += COPY_BYTES) {
        const uint64_t left_bytes = to - offset;
        const size_t bytes =
            left_bytes < COPY_BYTES ? (size_t)left_bytes : COPY_BYTES;

        status = io_file_read_exact(left, buffer, bytes, offset, error);
        if (status == STELE_OK) {
            status = io_file_read_exact(right, buffer + COPY_BYTES, bytes,
                                        offset, error);
        }
        if (status == STELE_OK &&
            memcmp(buffer, buffer + COPY_BYTES, bytes) != 0) {
            status = error_set(error, STELE_IO,
                               "%s: offset %" PRIu64 ": read back: other bytes "
                               "than in %s",
                               io_file_name(left), offset, io_file_name(right));
        }
    }
    free(buffer);
    return status;
}

static enum stele_status copy_bytes(struct backup *backup,
                                    const struct wal_segment *segment,
                                    struct io_file *target,
                                    struct stele_error *error)
{
    const uint64_t used = backup_source_used_bytes(&backup->source, segment);
    struct wal_segment there = {0};
    const uint64_t kept = open_there(backup, segment, &there)
                              ? kept_bytes(backup, segment->seq)
                              : 0;
    enum stele_status status = io_file_grow(target, segment->bytes, error);

    if (status == STELE_OK && kept > 0) {
        status = copy_run(backup, there.file, 0, kept, target, error);
    }
    if (status == STELE_OK) {
        status = copy_run(backup, segment->file, kept, used, target, error);
    }
    /* Before the name exists, and long before ARCHIVE vouches for it. */
    if (status == STELE_OK) {
        status = io_file_sync(target, error);
    }
    if (status == STELE_OK && kept > 0) {
        status = io_file_drop_cache(target, error);
    }
    if (status == STELE_OK && kept > 0) {
        status = compare_run(target, there.file, kept, error);
    }
    wal_segment_close(&there);
    return status;
}

static enum stele_status write_segment(struct backup *backup,
                                       const struct wal_segment *segment,
                                       struct stele_error *error)
{
    struct io_dir *dir = backup->dest.wal_dir;
    char temporary[NUMBERED_NAME_BYTES];
    char name[NUMBERED_NAME_BYTES];
    struct io_file *target;
    struct stele_error ignored;
    enum stele_status status;

    numbered_name(segment->seq, NUMBERED_TEMPORARY, temporary);
    numbered_name(segment->seq, WAL_SEGMENT_SUFFIX, name);
    status = io_file_open(dir, temporary, IO_OPEN_CREATE_NEW, &target, error);
    if (status != STELE_OK) {
        return status;
    }
    status = copy_bytes(backup, segment, target, error);
    io_file_close(target);
    if (status == STELE_OK) {
        status = io_rename(dir, temporary, dir, name, error);
    }
    if (status != STELE_OK && io_unlink(dir, temporary, &ignored) != STELE_OK) {
        /* It is only a temporary; the next backup removes it. */
    }
    backup->report.segments_copied += status == STELE_OK;
    return status;
}

static enum stele_status copy_segment(struct backup *backup,
                                      const struct wal_segment *segment,
                                      struct stele_error *error)
{
    const uint64_t used = backup_source_used_bytes(&backup->source, segment);

    if (has_segment(backup, segment)) {
        backup->report.bytes_present += used;
        tell(backup, "copying", used);
        return STELE_OK;
    }
    return write_segment(backup, segment, error);
}

static enum stele_status copy(struct backup *backup, struct stele_error *error)
{
    const struct backup_source *source = &backup->source;
    enum stele_status status = copy_snapshot(backup, error);

    for (size_t index = 0; status == STELE_OK && index < source->segment_count;
         index++) {
        status = copy_segment(backup, &source->segments[index], error);
    }
    /* Every name in it, before ARCHIVE vouches for what they lead to. */
    if (status == STELE_OK) {
        status = io_dir_sync(backup->dest.snapshot_dir, error);
    }
    if (status == STELE_OK) {
        status = io_dir_sync(backup->dest.wal_dir, error);
    }
    return status == STELE_OK ? io_dir_sync(backup->dest.dir, error) : status;
}

/* ---- Reading back -------------------------------------------------------------------- */

static enum stele_status verify_snapshot(struct backup *backup,
                                         struct stele_error *error)
{
    const struct snapshot_info *info;
    struct snapshot_reader *reader;
    uint64_t read_bytes = 0;
    enum stele_status status;
    bool done = false;

    if (backup->source.snapshot == NULL) {
        return STELE_OK;
    }
    info = snapshot_reader_info(backup->source.snapshot);
    status =
        snapshot_reader_open(backup->dest.snapshot_dir, info->lsn,
                             SNAPSHOT_PUBLISHED, info->uuid, &reader, error);
    if (status != STELE_OK) {
        return status;
    }
    status = snapshot_reader_drop_cache(reader, error);
    while (status == STELE_OK && !done) {
        status = snapshot_reader_verify(reader, COPY_BYTES, &done, error);
        tell(backup, "reading back",
             snapshot_reader_bytes(reader) - read_bytes);
        read_bytes = snapshot_reader_bytes(reader);
    }
    snapshot_reader_close(reader);
    return status;
}

/* What is read next of the log comes from the disk. */
static enum stele_status drop_cache(struct backup *backup,
                                    struct stele_error *error)
{
    const struct backup_source *source = &backup->source;
    enum stele_status status = STELE_OK;

    for (size_t index = 0; status == STELE_OK && index < source->segment_count;
         index++) {
        struct wal_segment segment;

        status = wal_segment_open(
            backup->dest.wal_dir, source->segments[index].seq,
            &source->anchor.uuid, IO_OPEN_READ, &segment, error);
        if (status == STELE_OK) {
            status = io_file_drop_cache(segment.file, error);
            wal_segment_close(&segment);
        }
    }
    return status;
}

static enum stele_status verify_log(struct backup *backup,
                                    struct stele_error *error)
{
    const struct backup_source *source = &backup->source;
    const struct wal_position origin = wal_anchor_origin(&source->anchor);
    const uint64_t first = wal_segment_behind(&source->start);
    bool stands = false;
    enum stele_status status = drop_cache(backup, error);

    if (status == STELE_OK) {
        status = read_log(backup, backup->dest.wal_dir, first, "reading back",
                          error);
    }
    if (status == STELE_OK) {
        status = wal_reader_check_position(backup->dest.wal_dir, &source->base,
                                           &origin, first, &stands, error);
    }
    if (status == STELE_OK && !stands) {
        status = error_set(error, STELE_CORRUPT,
                           "the log that was copied does not have unit "
                           "%" PRIu64 ", which the snapshot is of",
                           source->base.unit);
    }
    if (status == STELE_OK && source->end.unit > 0) {
        status = wal_reader_wall_ns(backup->dest.wal_dir, &source->end,
                                    &backup->wall_ns, error);
    }
    return status;
}

/* From the disk, all that ARCHIVE is going to vouch for. */
static enum stele_status verify(struct backup *backup,
                                struct stele_error *error)
{
    struct stele_error failure = {0};
    enum stele_status status;

    begin_step(backup);
    status = verify_snapshot(backup, &failure);
    if (status == STELE_OK) {
        status = verify_log(backup, &failure);
    }
    backup->archive_damaged = status != STELE_OK && bases_is_damage(&failure);
    return status == STELE_OK
               ? STELE_OK
               : error_set(error, status, "read back: %.230s", failure.message);
}

/* ---- All of it --------------------------------------------------------------------------- */

static enum stele_status vouch(struct backup *backup, struct stele_error *error)
{
    const struct backup_source *source = &backup->source;
    const uint64_t first = wal_segment_behind(&source->start);
    const uint64_t earlier = backup->dest.earlier.segment_first;
    const struct archive archive = {
        .uuid = source->anchor.uuid,
        .parent_uuid = source->anchor.parent_uuid,
        .parent_lsn = source->anchor.parent_lsn,
        .segment_bytes = source->anchor.segment_bytes,
        .base = source->base,
        .end = source->end,
        .segment_first = source->continues && earlier < first ? earlier : first,
        .wall_ns = backup->wall_ns,
    };

    return archive_write(backup->dest.dir, &archive, error);
}

static enum stele_status run_once(struct backup *backup, uint64_t base_lsn_max,
                                  struct stele_error *error)
{
    enum stele_status status = backup_source_open(
        backup->store, backup->dest.has_earlier ? &backup->dest.earlier : NULL,
        base_lsn_max, &backup->source, error);

    begin_step(backup);
    backup->report = (struct stele_backup_report){0};
    backup->wall_ns = 0;
    backup->base_damaged = false;
    backup->archive_damaged = false;
    if (status == STELE_OK && backup->copy_all) {
        status = verify_source(backup, error);
    }
    if (status == STELE_OK) {
        status = copy(backup, error);
    }
    if (status == STELE_OK) {
        status = verify(backup, error);
    }
    return status == STELE_OK ? vouch(backup, error) : status;
}

static enum stele_status run(struct backup *backup, struct stele_error *error)
{
    uint64_t base_lsn_max = UINT64_MAX;

    for (;;) {
        const enum stele_status status = run_once(backup, base_lsn_max, error);

        if (status == STELE_OK) {
            return STELE_OK;
        }
        if (backup->base_damaged) {
            base_lsn_max = backup->source.base.lsn - 1;
        } else if (backup->archive_damaged && !backup->copy_all) {
            backup->copy_all = true;
        } else {
            return status;
        }
        backup_source_close(&backup->source);
    }
}

static enum stele_status run_held(struct backup *backup, const char *dest,
                                  struct stele_error *error)
{
    struct stele *store = backup->store;
    struct retention_hold hold;
    bool held = false;
    enum stele_status status = STELE_OK;

    if (!store->read_only) {
        status = retention_hold(store, UINT64_MAX, &hold, error);
        held = status == STELE_OK;
        if (status == STELE_NOT_FOUND) {
            status = STELE_OK; /* No base: that is told below. */
        }
    }
    if (status == STELE_OK) {
        status = backup_dest_open(store, dest, &backup->dest, error);
    }
    if (status == STELE_OK) {
        status = run(backup, error);
        backup->report.lsn = backup->source.end.lsn;
        backup->report.snapshot_lsn =
            backup->source.snapshot == NULL ? 0 : backup->source.base.lsn;
    }
    backup_source_close(&backup->source);
    backup_dest_close(&backup->dest);
    if (held) {
        retention_release(store, &hold);
    }
    return status;
}

enum stele_status stele_backup(struct stele *store, const char *dest,
                               struct stele_backup_report *report,
                               stele_progress *progress, void *context,
                               struct stele_error *error)
{
    struct backup backup = {
        .store = store, .progress = progress, .context = context};
    enum stele_status status = store_check_process(store, error);

    if (status != STELE_OK) {
        return status;
    }
    if (dest == NULL || dest[0] == '\0') {
        return error_set(error, STELE_INVALID, "the path is empty");
    }
    if (report != NULL &&
        (report->size == 0 || report->size > sizeof *report)) {
        return error_set(error, STELE_INVALID,
                         "a report of %zu bytes: set size to sizeof",
                         report->size);
    }
    status = run_held(&backup, dest, error);
    if (status == STELE_OK && report != NULL) {
        backup.report.size = report->size;
        memcpy(report, &backup.report, report->size);
    }
    return status;
}
