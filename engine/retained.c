/* engine/retained.c -- see engine/retained.h. */
#include "engine/retained.h"

#include <inttypes.h>
#include <string.h>

#include "base/error.h"

enum { TRIES_MAX = 10 };

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

static bool same(const struct retained *left, const struct retained *right)
{
    return left->anchor.segment_oldest == right->anchor.segment_oldest &&
           memcmp(left->anchor.snapshots, right->anchor.snapshots,
                  sizeof left->anchor.snapshots) == 0;
}

bool retained_again(struct retained_tries *tries, struct retained *now,
                    enum stele_status status)
{
    const bool moved = tries->count == 0 || !same(&tries->last, now);

    tries->count++;
    retained_free(&tries->last);
    tries->last = *now;
    *now = (struct retained){0};
    if ((status == STELE_NOT_FOUND || status == STELE_CORRUPT) && moved &&
        tries->count < TRIES_MAX) {
        return true;
    }
    retained_free(&tries->last);
    return false;
}

/* Why there is no base up to `lsn_max`. `damaged`: one that looked like one, or
 * NULL. */
static enum stele_status explain(const struct bases *bases, uint64_t lsn_max,
                                 const struct base_item *damaged,
                                 struct stele_error *error)
{
    if (damaged != NULL) {
        return error_set(error, bases_status(&damaged->why), "%s",
                         damaged->why.message);
    }
    for (size_t index = bases->count; index > 0; index--) {
        const struct base_item *item = &bases->items[index - 1];

        if (item->counts && !item->stands && item->lsn <= lsn_max) {
            return error_set(error, bases_status(&item->why), "%s",
                             item->why.message);
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
    const struct bases *bases = &retained->bases;
    const struct base_item *damaged = NULL;
    struct base_item *item;

    while ((item = bases_newest(bases, lsn_max)) != NULL) {
        struct stele_error failure = {0};
        enum stele_status status = STELE_OK;

        *map_out = NULL;
        if (item->kind == BASE_SNAPSHOT) {
            status = snapshot_map_open(store->snapshot_dir, item->lsn,
                                       store->uuid.bytes, map_out, &failure);
        }
        if (status == STELE_OK) {
            *item_out = item;
            return STELE_OK;
        }
        if (!bases_is_damage(&failure)) {
            if (error != NULL) {
                *error = failure;
            }
            return status;
        }
        bases_rule_out(item, &failure);
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
