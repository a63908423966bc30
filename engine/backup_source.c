/* engine/backup_source.c -- see engine/backup_source.h. */
#include "engine/backup_source.h"

#include <inttypes.h>
#include <stdlib.h>

#include "base/error.h"
#include "engine/follow.h"
#include "engine/retained.h"
#include "wal/reader.h"
#include "wal/segment.h"

/* ---- The end ------------------------------------------------------------------- */

static enum stele_status find_end(struct stele *store,
                                  struct wal_position *end_out,
                                  struct stele_error *error)
{
    enum stele_status status;
    struct state *state;
    struct base base;

    if (!store->read_only) {
        status = stele_sync(store, error);
        if (status == STELE_OK || status == STELE_POISONED) {
            /* What was durable when it was poisoned still is. */
            *end_out = wal_writer_durable(store->writer);
            status = STELE_OK;
        }
        return status;
    }
    status = follow_pin(store, &state, &base, error);
    if (status == STELE_OK) {
        state_release(state);
        base_release(&base);
        mutex_lock(&store->follow.mutex);
        *end_out = store->follow.shown;
        mutex_unlock(&store->follow.mutex);
    }
    return status;
}

/* ---- The base ------------------------------------------------------------------ */

/* The newest one: a snapshot that counts, or the origin. */
static struct base_item *choose_base(struct bases *bases, uint64_t lsn_max)
{
    for (size_t index = bases->count; index > 0; index--) {
        struct base_item *item = &bases->items[index - 1];

        if (item->stands && item->lsn <= lsn_max &&
            (item->counts || item->kind == BASE_ORIGIN)) {
            return item;
        }
    }
    return NULL;
}

static enum stele_status no_base(const struct bases *bases,
                                 struct stele_error *error)
{
    for (size_t index = bases->count; index > 0; index--) {
        const struct base_item *item = &bases->items[index - 1];

        if (item->why.status != STELE_OK) {
            return error_set(error, bases_status(&item->why),
                             "no base is left: %.200s", item->why.message);
        }
    }
    return error_set(error, STELE_CORRUPT, "no base is left");
}

/* A damaged one no longer stands, and the next older one is tried. */
static enum stele_status open_base(struct stele *store,
                                   struct retained *retained, uint64_t lsn_max,
                                   struct backup_source *source,
                                   struct stele_error *error)
{
    for (;;) {
        struct base_item *item = choose_base(&retained->bases, lsn_max);
        enum stele_status status = STELE_OK;

        if (item == NULL) {
            return no_base(&retained->bases, error);
        }
        if (item->kind == BASE_SNAPSHOT) {
            status = snapshot_reader_open(store->snapshot_dir, item->lsn,
                                          SNAPSHOT_PUBLISHED, store->uuid.bytes,
                                          &source->snapshot, &item->why);
        }
        if (status == STELE_OK) {
            source->base = item->position;
            return STELE_OK;
        }
        if (!bases_is_damage(&item->why)) {
            if (error != NULL) {
                *error = item->why;
            }
            return status;
        }
        item->stands = false;
    }
}

/* ---- What the archive has already -------------------------------------------------- */

static enum stele_status find_start(struct stele *store,
                                    const struct archive *earlier,
                                    struct backup_source *source,
                                    struct stele_error *error)
{
    const struct wal_position origin = wal_anchor_origin(&source->anchor);
    enum stele_status status;

    source->start = source->base;
    if (earlier == NULL) {
        return STELE_OK;
    }
    if (earlier->end.unit > source->end.unit ||
        earlier->end.lsn > source->end.lsn) {
        return error_set(error, STELE_FOREIGN,
                         "the archive holds the log up to LSN %" PRIu64
                         ", the store's ends at LSN %" PRIu64
                         ": it was put back to an earlier state",
                         earlier->end.lsn, source->end.lsn);
    }
    if (wal_segment_behind(&earlier->end) < source->anchor.segment_oldest) {
        return STELE_OK; /* There is nothing left to compare. */
    }
    status = wal_reader_check_position(store->wal_dir, &earlier->end, &origin,
                                       source->anchor.segment_oldest,
                                       &source->continues, error);
    if (status == STELE_OK && !source->continues) {
        return error_set(error, STELE_FOREIGN,
                         "the store's log does not have unit %" PRIu64
                         " with LSN %" PRIu64
                         ", where the archive's ends: it is of another history",
                         earlier->end.unit, earlier->end.lsn);
    }
    if (status == STELE_OK && earlier->end.unit < source->start.unit) {
        source->start = earlier->end;
    }
    return status;
}

/* ---- Files ------------------------------------------------------------------------- */

static enum stele_status open_segments(struct stele *store,
                                       struct backup_source *source,
                                       struct stele_error *error)
{
    const uint64_t first = wal_segment_behind(&source->start);
    const uint64_t last = wal_segment_behind(&source->end);
    enum stele_status status = STELE_OK;

    source->segments =
        calloc((size_t)(last - first) + 1, sizeof *source->segments);
    if (source->segments == NULL) {
        return error_no_memory(error, "list of segments");
    }
    for (uint64_t seq = first; status == STELE_OK && seq <= last; seq++) {
        status =
            wal_segment_open(store->wal_dir, seq, &store->uuid, IO_OPEN_READ,
                             &source->segments[source->segment_count], error);
        source->segment_count += status == STELE_OK;
    }
    return status;
}

static enum stele_status open_once(struct stele *store,
                                   const struct archive *earlier,
                                   uint64_t base_lsn_max,
                                   struct retained *retained,
                                   struct backup_source *source,
                                   struct stele_error *error)
{
    enum stele_status status = find_end(store, &source->end, error);

    if (status == STELE_OK) {
        status = retained_read(store, retained, error);
    }
    if (status == STELE_OK) {
        source->anchor = retained->anchor;
        status = open_base(store, retained,
                           base_lsn_max < source->end.lsn ? base_lsn_max
                                                          : source->end.lsn,
                           source, error);
    }
    if (status == STELE_OK) {
        status = find_start(store, earlier, source, error);
    }
    return status == STELE_OK ? open_segments(store, source, error) : status;
}

enum stele_status backup_source_open(struct stele *store,
                                     const struct archive *earlier,
                                     uint64_t base_lsn_max,
                                     struct backup_source *source_out,
                                     struct stele_error *error)
{
    struct retained_tries tries = {0};
    struct stele_error failure = {0};
    struct retained now = {0};
    enum stele_status status;

    do {
        struct backup_source source = {0};

        status =
            open_once(store, earlier, base_lsn_max, &now, &source, &failure);
        if (status == STELE_OK) {
            *source_out = source;
        } else {
            backup_source_close(&source);
        }
    } while (retained_again(&tries, &now, status));
    if (status != STELE_OK && error != NULL) {
        *error = failure;
    }
    if (status == STELE_NOT_FOUND && error != NULL) {
        error->status = STELE_CORRUPT; /* Of what ANCHOR calls needed. */
    }
    return status == STELE_NOT_FOUND ? STELE_CORRUPT : status;
}

void backup_source_close(struct backup_source *source)
{
    snapshot_reader_close(source->snapshot);
    for (size_t index = 0; index < source->segment_count; index++) {
        wal_segment_close(&source->segments[index]);
    }
    free(source->segments);
    *source = (struct backup_source){0};
}

uint64_t backup_source_used_bytes(const struct backup_source *source,
                                  const struct wal_segment *segment)
{
    return segment->seq == wal_segment_behind(&source->end)
               ? wal_segment_offset_behind(&source->end)
               : segment->bytes;
}
