/* engine/bases.c -- see engine/bases.h. */
#include "engine/bases.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/numbered.h"
#include "engine/store.h"
#include "snapshot/reader.h"
#include "wal/reader.h"
#include "wal/segment.h"

struct gathering {
    struct io_dir *snapshot_dir;
    struct io_dir *wal_dir;
    const struct wal_anchor *anchor;
    struct wal_position origin;
};

static bool is_named(const struct wal_anchor *anchor, uint64_t lsn)
{
    for (size_t index = 0; index < WAL_ANCHOR_SNAPSHOTS; index++) {
        if (anchor->snapshots[index] == lsn) {
            return true;
        }
    }
    return false;
}

bool bases_is_damage(const struct stele_error *failure)
{
    return failure->status == STELE_CORRUPT ||
           failure->status == STELE_FOREIGN ||
           failure->status == STELE_NOT_FOUND ||
           (failure->status == STELE_IO && failure->sys_errno == EIO);
}

enum stele_status bases_status(const struct stele_error *why)
{
    return why->status == STELE_IO ? STELE_IO : STELE_CORRUPT;
}

/* Does the position that the snapshot names stand in the log? */
static enum stele_status check_position(const struct gathering *gathering,
                                        struct base_item *item,
                                        struct stele_error *error)
{
    struct wal_position position;
    struct stele_error failure;
    enum stele_status status;

    if (!wal_position_decode(item->info.position, &position) ||
        position.lsn != item->lsn ||
        !wal_uuid_equal(&position.uuid, &gathering->anchor->uuid)) {
        error_set(&item->why, STELE_CORRUPT,
                  "snapshot/%016" PRIx64
                  ".snap: its position is not one of LSN %" PRIu64,
                  item->lsn, item->lsn);
        return STELE_OK;
    }
    item->position = position;
    item->claims = true;
    status = wal_reader_check_position(
        gathering->wal_dir, &position, &gathering->origin,
        gathering->anchor->segment_oldest, &item->stands, &failure);
    if (status != STELE_OK && bases_is_damage(&failure)) {
        /* Of the log: where opening reads it, recovery says so, too. */
        item->undecided = true;
        error_set(&item->why, STELE_CORRUPT,
                  "snapshot/%016" PRIx64 ".snap: the log behind it: %.200s",
                  item->lsn, failure.message);
        return STELE_OK;
    }
    if (status != STELE_OK) {
        if (error != NULL) {
            *error = failure;
        }
        return status;
    }
    item->trimmed =
        wal_segment_behind(&position) < gathering->anchor->segment_oldest;
    if (item->trimmed) {
        item->stands = false;
        error_set(&item->why, STELE_NOT_FOUND,
                  "snapshot/%016" PRIx64 ".snap: the log behind it was removed",
                  item->lsn);
    } else if (!item->stands) {
        error_set(
            &item->why, STELE_CORRUPT,
            "snapshot/%016" PRIx64 ".snap: the log does not have unit "
            "%" PRIu64 " as it was, in wal/%016" PRIx64 ".wal, offset %" PRIu64,
            item->lsn, position.unit, position.segment, position.start_offset);
    }
    return STELE_OK;
}

static enum stele_status read_snapshot(const struct gathering *gathering,
                                       uint64_t lsn, struct base_item *item,
                                       struct stele_error *error)
{
    enum stele_status status;

    *item = (struct base_item){
        .kind = BASE_SNAPSHOT,
        .lsn = lsn,
        .counts = is_named(gathering->anchor, lsn),
    };
    status = snapshot_read_info(gathering->snapshot_dir, lsn,
                                gathering->anchor->uuid.bytes, &item->info,
                                &item->why);
    if (status == STELE_OK) {
        return check_position(gathering, item, error);
    }
    if (bases_is_damage(&item->why)) {
        item->unreadable = status == STELE_IO;
        return STELE_OK;
    }
    if (error != NULL) {
        *error = item->why;
    }
    return status;
}

/* Where reading the log can begin. */
static void find_log_start(const struct gathering *gathering,
                           struct bases *bases)
{
    const struct base_item *oldest;

    if (bases->log_whole) {
        bases->log_readable = true;
        bases->log_start = gathering->origin;
        return;
    }
    oldest = bases_oldest(bases);
    if (oldest != NULL) {
        bases->log_readable = true;
        bases->log_start = oldest->position;
    }
}

enum stele_status bases_read(struct io_dir *snapshot_dir,
                             struct io_dir *wal_dir,
                             const struct wal_anchor *anchor,
                             struct bases *bases_out, struct stele_error *error)
{
    const struct gathering gathering = {
        .snapshot_dir = snapshot_dir,
        .wal_dir = wal_dir,
        .anchor = anchor,
        .origin = wal_anchor_origin(anchor),
    };
    struct bases bases = {.log_whole =
                              anchor->segment_oldest == WAL_SEGMENT_FIRST};
    struct numbered_list list = {0};
    enum stele_status status = STELE_OK;

    if (snapshot_dir != NULL) {
        status =
            numbered_list_read(snapshot_dir, SNAPSHOT_SUFFIX, &list, error);
    }
    if (status == STELE_OK) {
        bases.items = calloc(list.count + 1, sizeof *bases.items);
        if (bases.items == NULL) {
            status = error_no_memory(error, "snapshots");
        }
    }
    /* A restored store began with a snapshot, not with nothing. */
    if (status == STELE_OK && bases.log_whole && anchor->parent_lsn == 0) {
        bases.items[bases.count++] = (struct base_item){
            .kind = BASE_ORIGIN,
            .position = gathering.origin,
            .stands = true,
        };
    }
    for (size_t index = 0; status == STELE_OK && index < list.count; index++) {
        status = read_snapshot(&gathering, list.numbers[index],
                               &bases.items[bases.count], error);
        bases.count++;
    }
    numbered_list_free(&list);
    if (status != STELE_OK) {
        bases_free(&bases);
        return error_wrap(error, status, "snapshots");
    }
    find_log_start(&gathering, &bases);
    *bases_out = bases;
    return STELE_OK;
}

void bases_free(struct bases *bases)
{
    free(bases->items);
    *bases = (struct bases){0};
}

struct base_item *bases_newest(const struct bases *bases, uint64_t lsn_max)
{
    for (size_t index = bases->count; index > 0; index--) {
        struct base_item *item = &bases->items[index - 1];

        if (item->stands && item->lsn <= lsn_max) {
            return item;
        }
    }
    return NULL;
}

void bases_rule_out(struct base_item *item, const struct stele_error *why)
{
    item->stands = false;
    item->unreadable = why->status == STELE_IO;
    item->why = *why;
}

const struct base_item *bases_oldest(const struct bases *bases)
{
    for (size_t index = 0; index < bases->count; index++) {
        if (bases->items[index].stands) {
            return &bases->items[index];
        }
    }
    return NULL;
}

const struct stele_error *bases_why_none(const struct bases *bases)
{
    for (size_t index = bases->count; index > 0; index--) {
        if (bases->items[index - 1].unreadable) {
            return &bases->items[index - 1].why;
        }
    }
    return bases->count == 0 ? NULL : &bases->items[bases->count - 1].why;
}
