/* engine/restore_point.c -- see engine/restore_point.h. */
#include "engine/restore_point.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/bytes.h"
#include "base/error.h"
#include "base/numbered.h"
#include "engine/store.h"
#include "wal/reader.h"
#include "wal/record.h"
#include "wal/segment.h"

enum { NS_PER_S = 1000000000 };

/* ---- The archive ------------------------------------------------------------------ */

static enum stele_status open_inside(struct io_dir *dir, const char *name,
                                     struct io_dir **dir_out,
                                     struct stele_error *error)
{
    const enum stele_status status = io_dir_open_in(dir, name, dir_out, error);

    return status == STELE_NOT_FOUND
               ? error_set(error, STELE_CORRUPT, "%s/ is missing", name)
               : status;
}

static enum stele_status read_bases(struct restore_source *source,
                                    struct stele_error *error)
{
    struct numbered_list list;
    enum stele_status status =
        numbered_list_read(source->wal_dir, WAL_SEGMENT_SUFFIX, &list, error);

    if (status != STELE_OK) {
        return status;
    }
    if (list.count == 0) {
        return error_set(error, STELE_CORRUPT, "wal/ is empty");
    }
    source->anchor = archive_anchor(&source->archive, list.numbers[0]);
    numbered_list_free(&list);
    return bases_read(source->snapshot_dir, source->wal_dir, &source->anchor,
                      &source->bases, error);
}

enum stele_status restore_source_open(struct io *io, const char *path,
                                      struct restore_source *source_out,
                                      struct stele_error *error)
{
    struct restore_source source = {0};
    struct io_dir *dir;
    enum stele_status status = io_dir_open(io, path, &dir, error);

    if (status == STELE_NOT_FOUND) {
        return error_set(error, STELE_FOREIGN, "%s: no such directory", path);
    }
    if (status != STELE_OK) {
        return status;
    }
    status = archive_read(dir, &source.archive, error);
    if (status == STELE_NOT_FOUND) {
        status = error_set(error, STELE_FOREIGN,
                           "%s is no archive: it has no " ARCHIVE_NAME, path);
    }
    if (status == STELE_OK) {
        status =
            open_inside(dir, STORE_SNAPSHOT_NAME, &source.snapshot_dir, error);
    }
    if (status == STELE_OK) {
        status = open_inside(dir, STORE_WAL_NAME, &source.wal_dir, error);
    }
    io_dir_close(dir);
    if (status == STELE_OK) {
        status = read_bases(&source, error);
    }
    if (status != STELE_OK) {
        restore_source_close(&source);
        return status;
    }
    *source_out = source;
    return STELE_OK;
}

void restore_source_close(struct restore_source *source)
{
    bases_free(&source->bases);
    io_dir_close(source->snapshot_dir);
    io_dir_close(source->wal_dir);
    *source = (struct restore_source){0};
}

/* ---- The base ----------------------------------------------------------------------- */

/* When the state of a base was written; 0: nobody knows. */
static enum stele_status base_wall_ns(const struct restore_source *source,
                                      const struct base_item *base,
                                      uint64_t *wall_ns_out,
                                      struct stele_error *error)
{
    *wall_ns_out = 0;
    return base->position.unit == 0
               ? STELE_OK
               : wal_reader_wall_ns(source->wal_dir, &base->position,
                                    wall_ns_out, error);
}

/* The newest base that is not beyond the target; point->base NULL: there is none. */
static enum stele_status choose_base(const struct restore_source *source,
                                     const struct restore_target *target,
                                     struct restore_point *point,
                                     struct stele_error *error)
{
    enum stele_status status = STELE_OK;

    point->base = NULL;
    for (size_t index = source->bases.count; status == STELE_OK && index > 0;
         index--) {
        struct base_item *item = &source->bases.items[index - 1];
        uint64_t wall_ns;

        if (!item->stands || item->lsn > target->lsn) {
            continue;
        }
        status = base_wall_ns(source, item, &wall_ns, error);
        if (status == STELE_OK && wall_ns <= target->time_ns) {
            *point = (struct restore_point){
                .base = item,
                .unit_last = item->position.unit,
                .lsn = item->lsn,
                .wall_ns = wall_ns,
            };
            return STELE_OK;
        }
    }
    return status;
}

/* ---- What is not there ------------------------------------------------------------------ */

/* "LSN 17", or the time in seconds. */
static void describe(const struct restore_target *target, char *text,
                     size_t text_bytes)
{
    if (target->time_ns == UINT64_MAX) {
        snprintf(text, text_bytes, "LSN %" PRIu64, target->lsn);
    } else {
        snprintf(text, text_bytes, "the time @%" PRIu64 ".%09" PRIu64,
                 target->time_ns / NS_PER_S, target->time_ns % NS_PER_S);
    }
}

/* A snapshot at or below the target that should be a base, and is damaged. One whose
 * log is missing is, if ARCHIVE vouches for that log; else it may be of a backup that
 * did not come to its end. */
static const struct base_item *find_damaged(const struct restore_source *source,
                                            const struct restore_target *target)
{
    for (size_t index = source->bases.count; index > 0; index--) {
        const struct base_item *item = &source->bases.items[index - 1];

        if (item->kind == BASE_SNAPSHOT && !item->stands &&
            item->lsn <= target->lsn &&
            (!item->claims ||
             (item->why.status != STELE_CORRUPT && !item->trimmed) ||
             wal_segment_behind(&item->position) >=
                 source->archive.segment_first)) {
            return item;
        }
    }
    return NULL;
}

static enum stele_status not_there(const struct restore_source *source,
                                   const struct restore_target *target,
                                   const struct restore_point *point,
                                   struct stele_error *error)
{
    const struct base_item *damaged = find_damaged(source, target);
    const struct base_item *next = NULL;
    char wanted[64];

    if (damaged != NULL) {
        return error_set(error, bases_status(&damaged->why),
                         "the archive's snapshot of LSN %" PRIu64
                         " is no base: %.150s",
                         damaged->lsn, damaged->why.message);
    }
    for (size_t index = source->bases.count; index > 0; index--) {
        const struct base_item *item = &source->bases.items[index - 1];

        if (item->stands &&
            (point->base == NULL || item->lsn > point->base->lsn) &&
            item->lsn <= source->archive.end.lsn) {
            next = item;
        }
    }
    describe(target, wanted, sizeof wanted);
    if (point->base == NULL && next == NULL) {
        return error_set(error, STELE_CORRUPT, "the archive has no base left");
    }
    if (point->base == NULL) {
        return error_set(error, STELE_NOT_FOUND,
                         "%s is older than the archive, which has LSN "
                         "%" PRIu64 " to %" PRIu64,
                         wanted, next->lsn, source->archive.end.lsn);
    }
    return error_set(error, STELE_NOT_FOUND,
                     "%s is in a gap of the archive: behind LSN %" PRIu64
                     " it goes on with LSN %" PRIu64 " to %" PRIu64,
                     wanted, point->lsn,
                     next == NULL ? source->archive.end.lsn : next->lsn,
                     source->archive.end.lsn);
}

/* No whole unit follows. It is a gap if nothing at all does: the segment in which a
 * backup ended is zeros from there on. */
static enum stele_status explain_end(const struct restore_source *source,
                                     const struct restore_target *target,
                                     const struct restore_point *point,
                                     const struct wal_reader *reader,
                                     struct stele_error *error)
{
    const uint64_t left = reader->segment.bytes - reader->offset;
    uint8_t page[WAL_PAGE_BYTES];
    const size_t bytes = left < sizeof page ? (size_t)left : sizeof page;
    enum stele_status status = io_file_read_exact(reader->segment.file, page,
                                                  bytes, reader->offset, error);

    if (status != STELE_OK) {
        return status;
    }
    if (reader->segment.seq < source->archive.segment_first &&
        bytes_are_zero(page, bytes)) {
        return not_there(source, target, point, error);
    }
    return error_set(error, STELE_CORRUPT,
                     "wal/%016" PRIx64 ".wal: offset %" PRIu64 ": unit %" PRIu64
                     " is not whole, but ARCHIVE has unit "
                     "%" PRIu64,
                     reader->segment.seq, reader->offset,
                     reader->previous.unit + 1, source->archive.end.unit);
}

/* ---- The log behind the base --------------------------------------------------------------- */

/* The last record of the unit up to that LSN; there is one. */
static uint64_t last_lsn(const struct wal_reader_unit *unit, uint64_t lsn_max)
{
    struct byte_reader in = byte_reader_init(unit->body, unit->unit.body_bytes);
    struct wal_record record;
    uint64_t lsn = unit->unit.lsn_first;

    while (in.offset < in.size && wal_record_decode(&in, &record) &&
           record.lsn <= lsn_max) {
        lsn = record.lsn;
    }
    return lsn;
}

static enum stele_status walk(const struct restore_source *source,
                              const struct restore_target *target,
                              struct restore_point *point,
                              struct stele_error *error)
{
    struct wal_reader reader;
    enum stele_status status =
        wal_reader_open(&reader, source->wal_dir, &point->base->position,
                        source->anchor.segment_oldest, IO_OPEN_READ, error);

    if (status != STELE_OK) {
        return status;
    }
    while (status == STELE_OK && reader.previous.lsn < target->lsn &&
           reader.previous.unit < source->archive.end.unit) {
        struct wal_reader_unit unit;
        bool whole;

        status = wal_reader_next(&reader, &unit, &whole, error);
        if (status == STELE_OK && !whole) {
            status = explain_end(source, target, point, &reader, error);
        }
        if (status == STELE_OK && (unit.unit.lsn_first > target->lsn ||
                                   unit.unit.wall_ns > target->time_ns)) {
            break; /* It is beyond. */
        }
        if (status == STELE_OK) {
            point->unit_last = unit.unit.number;
            point->lsn = last_lsn(&unit, target->lsn);
            point->wall_ns = unit.unit.wall_ns;
        }
    }
    if (status == STELE_OK &&
        reader.previous.unit == source->archive.end.unit &&
        !wal_position_equal(&reader.previous, &source->archive.end)) {
        status =
            error_set(error, STELE_CORRUPT,
                      "the log behind LSN %" PRIu64
                      " ends in another unit %" PRIu64 " than ARCHIVE says",
                      point->base->lsn, source->archive.end.unit);
    }
    wal_reader_close(&reader);
    return status;
}

enum stele_status restore_point_find(const struct restore_source *source,
                                     const struct restore_target *target,
                                     struct restore_point *point_out,
                                     struct stele_error *error)
{
    const struct archive *archive = &source->archive;
    struct restore_target wanted = *target;
    struct restore_point point;
    enum stele_status status;

    if (wanted.lsn == UINT64_MAX) {
        wanted.lsn = archive->end.lsn;
    }
    if (wanted.lsn > archive->end.lsn) {
        return error_set(error, STELE_NOT_FOUND,
                         "LSN %" PRIu64 " is not in the archive, which ends at "
                         "LSN %" PRIu64,
                         wanted.lsn, archive->end.lsn);
    }
    status = choose_base(source, &wanted, &point, error);
    if (status == STELE_OK && point.base == NULL) {
        return not_there(source, &wanted, &point, error);
    }
    if (status == STELE_OK) {
        status = walk(source, &wanted, &point, error);
    }
    if (status == STELE_OK && target->time_ns != UINT64_MAX &&
        point.wall_ns == 0) {
        /* Of the state before the first unit no time is known. An empty store is
         * not what somebody means who mistypes a year. */
        point.base = NULL;
        return not_there(source, &wanted, &point, error);
    }
    if (status == STELE_OK) {
        *point_out = point;
    }
    return status;
}
