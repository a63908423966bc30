/* engine/retention.c -- see engine/retention.h. */
#include "engine/retention.h"

#include <inttypes.h>
#include <string.h>

#include "base/error.h"
#include "base/numbered.h"
#include "engine/retained.h"
#include "engine/verdict.h"
#include "wal/reader.h"
#include "wal/segment.h"

enum { NS_PER_MS = 1000000 };

/* ---- The rule ----------------------------------------------------------------- */

static uint64_t least(uint64_t left, uint64_t right)
{
    return left < right ? left : right;
}

uint64_t retention_oldest(const struct retention_needs *needs, uint64_t oldest)
{
    uint64_t needed = least(needs->current, needs->snapshot);

    if (needs->snapshots_few) {
        return oldest;
    }
    needed = least(needed, needs->index);
    needed = least(needed, needs->held);
    needed = least(needed, needs->bytes);
    needed = least(needed, needs->time);
    return needed > oldest ? needed : oldest;
}

enum stele_kept retention_why(const struct retention_needs *needs, uint64_t seq,
                              uint64_t *lsn_out)
{
    *lsn_out = 0;
    if (seq >= needs->current) {
        return STELE_KEPT_CURRENT;
    }
    if (needs->snapshots_few) {
        return STELE_KEPT_SNAPSHOTS;
    }
    if (seq >= needs->snapshot) {
        *lsn_out = needs->snapshot_lsn;
        return STELE_KEPT_SNAPSHOT;
    }
    if (seq >= needs->index) {
        *lsn_out = needs->index_lsn;
        return STELE_KEPT_INDEX;
    }
    if (seq >= needs->held) {
        *lsn_out = needs->held_lsn;
        return STELE_KEPT_HELD;
    }
    if (seq >= needs->bytes) {
        return STELE_KEPT_BYTES;
    }
    return seq >= needs->time ? STELE_KEPT_TIME : STELE_KEPT_FOR_NOW;
}

/* ---- What is needed -------------------------------------------------------------- */

static void look_at_snapshots(const struct bases *bases,
                              struct retention_needs *needs)
{
    unsigned count = 0;

    for (size_t index = bases->count; index > 0; index--) {
        const struct base_item *item = &bases->items[index - 1];

        if (item->kind == BASE_SNAPSHOT && item->counts && item->stands) {
            needs->snapshot = wal_segment_behind(&item->position);
            needs->snapshot_lsn = item->lsn;
            count++;
        }
    }
    needs->snapshots_few = count < WAL_ANCHOR_SNAPSHOTS;
}

/* What was written before this was so long ago that retain_log_ms does not keep
 * it. The clock may jump: then more stays, or less of what nothing needs. */
static enum stele_status look_at_clock(struct stele *store, uint64_t oldest,
                                       struct retention_needs *needs,
                                       struct stele_error *error)
{
    const uint64_t now_ns = io_clock_wall_ns(store->io);
    const uint64_t retained_ms = store->options.retain_log_ms;

    if (retained_ms == 0) {
        return STELE_OK;
    }
    /* A segment is as young as the first unit behind it. That a crash left one
     * without a unit at its start says nothing. */
    needs->time = oldest;
    for (uint64_t seq = oldest + 1; seq <= needs->current; seq++) {
        uint64_t wall_ns = 0;
        bool found;
        const enum stele_status status = wal_reader_first_wall_ns(
            store->wal_dir, seq, &store->uuid, &found, &wall_ns, error);

        if (status != STELE_OK) {
            return status;
        }
        if (found && (wall_ns >= now_ns ||
                      (now_ns - wall_ns) / NS_PER_MS < retained_ms)) {
            return STELE_OK;
        }
        if (found) {
            needs->time = seq;
        }
    }
    return STELE_OK;
}

static void look_at_bytes(const struct stele *store,
                          struct retention_needs *needs)
{
    const uint64_t bytes = store->options.retain_log_bytes;
    const uint64_t segments =
        bytes / store->segment_bytes + (bytes % store->segment_bytes != 0);

    if (bytes > 0) {
        needs->bytes =
            needs->current > segments ? needs->current - segments : 0;
    }
}

enum stele_status retention_look(struct stele *store, const struct bases *bases,
                                 struct retention_needs *needs_out,
                                 struct stele_error *error)
{
    struct retention_needs needs = {
        .snapshot = UINT64_MAX,
        .held = UINT64_MAX,
        .bytes = UINT64_MAX,
        .time = UINT64_MAX,
    };
    struct wal_position applied;
    struct wal_position applying;
    enum stele_status status =
        verdict_index_positions(store, &applied, &applying, error);

    if (status != STELE_OK) {
        return status;
    }
    needs.index = wal_segment_behind(&applied);
    needs.index_lsn = applied.lsn;
    needs.current = store->read_only
                        ? wal_segment_behind(&store->follow.shown)
                        : wal_writer_stats(store->writer).segment_current;
    look_at_snapshots(bases, &needs);
    for (const struct retention_hold *hold = store->holds; hold != NULL;
         hold = hold->next) {
        if (hold->segment < needs.held) {
            needs.held = hold->segment;
            needs.held_lsn = hold->lsn;
        }
    }
    look_at_bytes(store, &needs);
    status = look_at_clock(store, store_segment_oldest(store), &needs, error);
    if (status == STELE_OK) {
        *needs_out = needs;
    }
    return status;
}

/* ---- Removing ------------------------------------------------------------------------- */

enum stele_status retention_remove_leftovers(struct stele *store,
                                             struct stele_error *error)
{
    const uint64_t oldest = store_segment_oldest(store);
    struct numbered_list list;
    enum stele_status status =
        numbered_list_read(store->wal_dir, WAL_SEGMENT_SUFFIX, &list, error);

    if (status != STELE_OK) {
        return status;
    }
    /* The oldest first: what is left of them is never a log with a hole. */
    for (size_t index = numbered_list_lower(&list, WAL_SEGMENT_FIRST);
         status == STELE_OK && index < list.count &&
         list.numbers[index] < oldest;
         index++) {
        char name[NUMBERED_NAME_BYTES];

        numbered_name(list.numbers[index], WAL_SEGMENT_SUFFIX, name);
        status = io_unlink(store->wal_dir, name, error);
        if (status == STELE_OK) {
            atomic_fetch_add(&store->stat_segments_removed, 1);
        }
    }
    numbered_list_free(&list);
    return status;
}

/* Whether nothing needs the snapshot. Not so of one that is damaged or foreign:
 * that is evidence. */
static bool is_superfluous(const struct stele *store,
                           const struct retention_needs *needs,
                           const struct base_item *item)
{
    const uint64_t kept = least(needs->bytes, needs->time);

    if (item->kind != BASE_SNAPSHOT || item->counts || !item->claims ||
        needs->snapshots_few || item->lsn >= needs->snapshot_lsn) {
        return false;
    }
    for (const struct retention_hold *hold = store->holds; hold != NULL;
         hold = hold->next) {
        if (item->lsn >= hold->lsn) {
            return false;
        }
    }
    return item->stands ? wal_segment_behind(&item->position) < kept
                        : item->trimmed;
}

static enum stele_status remove_snapshots(struct stele *store,
                                          const struct retention_needs *needs,
                                          const struct bases *bases,
                                          struct stele_error *error)
{
    enum stele_status status = STELE_OK;

    for (size_t index = 0; status == STELE_OK && index < bases->count;
         index++) {
        char name[NUMBERED_NAME_BYTES];

        if (is_superfluous(store, needs, &bases->items[index])) {
            numbered_name(bases->items[index].lsn, SNAPSHOT_SUFFIX, name);
            status = io_unlink(store->snapshot_dir, name, error);
        }
    }
    return status;
}

struct retaining {
    uint64_t counted[WAL_ANCHOR_SNAPSHOTS];
    uint64_t oldest;
};

static void name_retained(struct wal_anchor *anchor, const void *context)
{
    const struct retaining *retained = context;

    memcpy(anchor->snapshots, retained->counted, sizeof anchor->snapshots);
    anchor->segment_oldest = retained->oldest;
}

static enum stele_status apply(struct stele *store, struct retaining *retained,
                               struct stele_error *error)
{
    struct wal_anchor wanted;
    struct retention_needs needs;
    struct bases bases;
    enum stele_status status;

    mutex_lock(&store->anchor_mutex);
    wanted = store->anchor;
    mutex_unlock(&store->anchor_mutex);
    memcpy(wanted.snapshots, retained->counted, sizeof wanted.snapshots);
    status =
        bases_read(store->snapshot_dir, store->wal_dir, &wanted, &bases, error);
    if (status != STELE_OK) {
        return status;
    }
    status = retention_look(store, &bases, &needs, error);
    if (status == STELE_OK) {
        retained->oldest = retention_oldest(&needs, wanted.segment_oldest);
        /* Before anything goes: what ANCHOR calls needed is there. */
        status = store_write_anchor(store, name_retained, retained, error);
    }
    if (status == STELE_OK) {
        status = retention_remove_leftovers(store, error);
    }
    if (status == STELE_OK) {
        status = remove_snapshots(store, &needs, &bases, error);
    }
    bases_free(&bases);
    return status;
}

enum stele_status retention_apply(struct stele *store,
                                  const uint64_t counted[WAL_ANCHOR_SNAPSHOTS],
                                  struct stele_error *error)
{
    struct retaining retained;
    enum stele_status status;

    memcpy(retained.counted, counted, sizeof retained.counted);
    mutex_lock(&store->retention_mutex);
    /* What is another writer's by now must not go. */
    status = store_check_lock(store, error);
    if (status == STELE_OK) {
        status = apply(store, &retained, error);
    }
    mutex_unlock(&store->retention_mutex);
    return status == STELE_OK ? STELE_OK
                              : error_wrap(error, status, "retention");
}

/* ---- Holds ------------------------------------------------------------------------- */

enum stele_status retention_hold(struct stele *store, uint64_t lsn,
                                 struct retention_hold *hold_out,
                                 struct stele_error *error)
{
    const struct base_item *base;
    struct retained retained;
    enum stele_status status;

    mutex_lock(&store->retention_mutex);
    status = retained_read(store, &retained, error);
    if (status == STELE_OK) {
        base = bases_newest(&retained.bases, lsn);
        if (base == NULL) {
            status = error_set(error, STELE_NOT_FOUND,
                               "LSN %" PRIu64 " is older than what is retained",
                               lsn);
        } else {
            *hold_out = (struct retention_hold){
                .lsn = base->lsn,
                .segment = wal_segment_behind(&base->position),
                .next = store->holds,
            };
            store->holds = hold_out;
        }
        retained_free(&retained);
    }
    mutex_unlock(&store->retention_mutex);
    return status;
}

void retention_release(struct stele *store, struct retention_hold *hold)
{
    struct retention_hold **link = &store->holds;

    mutex_lock(&store->retention_mutex);
    while (*link != hold) {
        link = &(*link)->next;
    }
    *link = hold->next;
    mutex_unlock(&store->retention_mutex);
}

/* ---- The API ---------------------------------------------------------------------- */

/* Of a store as ANCHOR names it now. */
static enum stele_status explain(struct stele *store, uint64_t seq,
                                 enum stele_kept *kept_out, uint64_t *lsn_out,
                                 struct stele_error *error)
{
    /* Of a reader's index and what it shows; of a writer's holds. */
    struct mutex *mutex =
        store->read_only ? &store->follow.mutex : &store->retention_mutex;
    struct retention_needs needs;
    struct retained retained;
    enum stele_status status = retained_read(store, &retained, error);

    if (status != STELE_OK) {
        return status;
    }
    mutex_lock(mutex);
    status = retention_look(store, &retained.bases, &needs, error);
    mutex_unlock(mutex);
    if (status == STELE_OK) {
        *kept_out = retention_why(&needs, seq, lsn_out);
    }
    retained_free(&retained);
    return status;
}

enum stele_status stele_segment_next(struct stele *store, uint64_t after,
                                     struct stele_segment *segment_out,
                                     struct stele_error *error)
{
    struct stele_segment segment = {.bytes = store->segment_bytes};
    struct numbered_list list;
    enum stele_status status = store_check_process(store, error);
    size_t index;

    if (status == STELE_OK) {
        status = numbered_list_read(store->wal_dir, WAL_SEGMENT_SUFFIX, &list,
                                    error);
    }
    if (status != STELE_OK) {
        return status;
    }
    index = numbered_list_lower(&list, after);
    if (index < list.count && list.numbers[index] == after) {
        index++;
    }
    if (index == list.count) {
        status = error_set(error, STELE_NOT_FOUND,
                           "no segment behind %016" PRIx64, after);
    } else {
        segment.sequence = list.numbers[index];
        status = explain(store, segment.sequence, &segment.kept, &segment.lsn,
                         error);
    }
    numbered_list_free(&list);
    if (status == STELE_OK) {
        *segment_out = segment;
    }
    return status;
}
