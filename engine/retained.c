/* engine/retained.c -- see engine/retained.h. */
#include "engine/retained.h"

#include <inttypes.h>
#include <string.h>

#include "base/error.h"

enum stele_status retained_read(struct stele *store,
                                struct retained *retained_out,
                                struct stele_error *error)
{
    struct retained retained = {0};
    enum stele_status status;

    mutex_lock(&store->anchor_mutex);
    retained.anchor = store->anchor;
    mutex_unlock(&store->anchor_mutex);
    status = bases_read(store->snapshot_dir, store->wal_dir, &retained.anchor,
                        &retained.bases, error);
    if (status != STELE_OK) {
        return status;
    }
    *retained_out = retained;
    return STELE_OK;
}

void retained_free(struct retained *retained)
{
    bases_free(&retained->bases);
    *retained = (struct retained){0};
}

bool retained_same(const struct retained *left, const struct retained *right)
{
    return left->anchor.segment_oldest == right->anchor.segment_oldest &&
           memcmp(left->anchor.snapshots, right->anchor.snapshots,
                  sizeof left->anchor.snapshots) == 0;
}

/* Why there is no base up to `lsn_max`. `damaged`: one that looked like one, or
 * NULL. */
static enum stele_status explain(const struct bases *bases, uint64_t lsn_max,
                                 const struct base_item *damaged,
                                 struct stele_error *error)
{
    if (damaged != NULL) {
        return error_set(error, damaged->unreadable ? STELE_IO : STELE_CORRUPT,
                         "%s", damaged->why.message);
    }
    for (size_t index = bases->count; index > 0; index--) {
        const struct base_item *item = &bases->items[index - 1];

        if (item->counts && !item->stands && item->lsn <= lsn_max) {
            return error_set(error, item->unreadable ? STELE_IO : STELE_CORRUPT,
                             "%s", item->why.message);
        }
    }
    return error_set(error, STELE_NOT_FOUND, "no base is left");
}

enum stele_status retained_open_base(struct stele *store,
                                     struct retained *retained,
                                     uint64_t lsn_max,
                                     const struct base_item **item_out,
                                     struct snapshot_map **map_out,
                                     struct stele_error *error)
{
    struct bases *bases = &retained->bases;
    const struct base_item *damaged = NULL;

    for (size_t index = bases->count; index > 0; index--) {
        struct base_item *item = &bases->items[index - 1];
        enum stele_status status = STELE_OK;

        if (!item->stands || item->lsn > lsn_max) {
            continue;
        }
        *map_out = NULL;
        if (item->kind == BASE_SNAPSHOT) {
            status = snapshot_map_open(store->snapshot_dir, item->lsn,
                                       store->uuid.bytes, map_out, &item->why);
        }
        if (status == STELE_OK) {
            *item_out = item;
            return STELE_OK;
        }
        if (!bases_is_damage(&item->why)) {
            if (error != NULL) {
                *error = item->why;
            }
            return status;
        }
        item->stands = false;
        item->unreadable = status == STELE_IO;
        damaged = damaged == NULL ? item : damaged;
    }
    return explain(bases, lsn_max, damaged, error);
}

enum stele_status retained_open_log(struct stele *store,
                                    struct wal_reader *reader,
                                    struct stele_error *error)
{
    struct retained retained;
    enum stele_status status = retained_read(store, &retained, error);

    if (status != STELE_OK) {
        return status;
    }
    status = retained.bases.log_readable
                 ? wal_reader_open(
                       reader, store->wal_dir, &retained.bases.log_start,
                       retained.anchor.segment_oldest, IO_OPEN_READ, error)
                 : error_set(error, STELE_CORRUPT,
                             "the log begins with wal/%016" PRIx64
                             ".wal, and there is no snapshot to go on from",
                             retained.anchor.segment_oldest);
    retained_free(&retained);
    return status;
}
