/*
 * engine/segments.c -- the next segment: examining those found at open, making
 * new ones, naming them in ANCHOR before they are used.
 *
 * Runs in the log keeper once the current segment is half full, or in a leader
 * that finds none prepared; one at a time.
 */
#include "base/error.h"
#include "engine/store.h"
#include "wal/segment.h"

static void name_segment(struct wal_anchor *anchor, const void *context)
{
    const uint64_t *seq = context;

    if (*seq > anchor->segment_last) {
        anchor->segment_last = *seq;
    }
}

/* Give segment `seq` to the writer if it is unused; *given_out says so. */
static enum stele_status offer_segment(struct stele *store, uint64_t seq,
                                       bool *given_out,
                                       struct stele_error *error)
{
    struct wal_segment segment;
    enum stele_status status = wal_segment_open(
        store->wal_dir, seq, &store->uuid, IO_OPEN_READ_WRITE, &segment, error);
    bool unused = false;

    *given_out = false;
    if (status != STELE_OK) {
        return status;
    }
    status = wal_segment_is_unused(&segment, &unused, error);
    /* Of another length it may lack the room that batches were promised. */
    if (status == STELE_OK && unused && segment.bytes == store->segment_bytes) {
        bool named;

        /* The gap check at open counts on it: named before it is used. */
        mutex_lock(&store->anchor_mutex);
        named = store->anchor.segment_last >= seq;
        mutex_unlock(&store->anchor_mutex);
        if (!named) {
            status = store_name_segment(store, seq, error);
        }
        if (status == STELE_OK) {
            status = wal_writer_add_prepared(store->writer, &segment, error);
        }
        if (status == STELE_OK) {
            *given_out = true;
            return STELE_OK;
        }
    }
    wal_segment_close(&segment);
    return status;
}

/* Make one more segment; it becomes a candidate. */
static enum stele_status make_segment(struct stele *store,
                                      struct stele_error *error)
{
    struct wal_segment segment;
    struct stele_error failure;
    enum stele_status status;
    bool names_unknown;
    uint64_t seq;

    mutex_lock(&store->anchor_mutex);
    seq = store->anchor.segment_last;
    mutex_unlock(&store->anchor_mutex);
    if (store->candidate_last > seq) {
        seq = store->candidate_last;
    }
    seq++;
    status = store_check_writable(store, error);
    if (status != STELE_OK) {
        return status;
    }
    status = wal_segment_prepare(store->wal_dir, seq, &store->uuid,
                                 store->segment_bytes, store->fs_kind, &segment,
                                 &names_unknown, &failure);
    if (status != STELE_OK) {
        if (names_unknown) {
            store_poison(store, &failure);
        }
        if (error != NULL) {
            *error = failure;
        }
        return status;
    }
    wal_segment_close(&segment);
    store->candidate_first = seq;
    store->candidate_last = seq;
    return STELE_OK;
}

enum stele_status store_name_segment(struct stele *store, uint64_t seq,
                                     struct stele_error *error)
{
    return store_write_anchor(store, name_segment, &seq, error);
}

enum stele_status store_prepare_segment(struct stele *store,
                                        struct stele_error *error)
{
    enum stele_status status = STELE_OK;
    bool given = false;

    mutex_lock(&store->prepare_mutex);
    while (status == STELE_OK && !given &&
           wal_writer_prepared_count(store->writer) == 0) {
        if (store->candidate_first > store->candidate_last) {
            status = make_segment(store, error);
            continue;
        }
        status = offer_segment(store, store->candidate_first, &given, error);
        if (status == STELE_OK) {
            store->candidate_first++; /* Given, or never to be used. */
        }
    }
    mutex_unlock(&store->prepare_mutex);
    return status;
}
