/*
 * engine/past.c -- see engine/past.h.
 *
 * The happy path: see that the LSN is durable; take the index as the base if it
 * has not gone past the LSN, else the newest snapshot that has not, else nothing;
 * replay the log from there into a memtable of the view's own.
 *
 * Runs in the caller's thread and holds nothing back: retention may remove a
 * snapshot or a segment between its name being read and its being opened. Then
 * ANCHOR says other things than before, and everything is looked up anew.
 */
#include "engine/past.h"

#include <inttypes.h>

#include "base/error.h"
#include "engine/follow.h"
#include "engine/replay.h"
#include "engine/retained.h"

enum { PAST_MEMTABLES = 16 }; /* The largest log that the hash is made for. */

/* ---- The newest LSN, and the index ------------------------------------------------ */

/* The newest LSN that a power cut cannot take back, and an index reader, if there
 * is an index. */
static enum stele_status look(struct stele *store, uint64_t *newest_out,
                              struct base *index_out, struct stele_error *error)
{
    enum stele_status status = STELE_OK;
    struct state *state;

    if (store->read_only) {
        status = follow_pin(store, &state, index_out, error);
        if (status != STELE_OK) {
            return status;
        }
        *newest_out = state->lsn;
        state_release(state);
        return STELE_OK;
    }
    state = state_acquire(&store->publisher);
    *newest_out = wal_writer_durable(store->writer).lsn;
    if (*newest_out > state->lsn) {
        *newest_out = state->lsn;
    }
    state_release(state);
    *index_out = (struct base){0};
    return index_reader_acquire(store->index, &index_out->index, error);
}

/* Below this the index is no base. */
static uint64_t index_lsn(const struct base *index)
{
    const uint64_t applied = index_reader_applied(index->index)->lsn;
    const uint64_t applying = index_reader_applying(index->index)->lsn;

    return applied > applying ? applied : applying;
}

/* ---- The base ----------------------------------------------------------------------- */

static enum stele_status too_old(const struct retained *retained,
                                 const struct base *index, uint64_t lsn,
                                 struct stele_error *error)
{
    uint64_t oldest = index->index == NULL ? UINT64_MAX : index_lsn(index);

    for (size_t number = 0; number < retained->bases.count; number++) {
        const struct base_item *item = &retained->bases.items[number];

        if (item->stands && item->lsn < oldest) {
            oldest = item->lsn;
        }
    }
    if (oldest == UINT64_MAX) {
        return error_set(error, STELE_NOT_FOUND,
                         "LSN %" PRIu64 " is not retained: no base is left",
                         lsn);
    }
    return error_set(error, STELE_NOT_FOUND,
                     "LSN %" PRIu64 " is older than what is retained: the "
                     "oldest base is at LSN %" PRIu64,
                     lsn, oldest);
}

/* The nearest base at or below `lsn`, and where the log goes on behind it. Takes
 * the index reader over, whatever happens. */
static enum stele_status choose_base(struct stele *store,
                                     struct retained *retained,
                                     struct base *index, uint64_t lsn,
                                     struct base *base_out,
                                     struct wal_position *position_out,
                                     struct stele_error *error)
{
    const struct base_item *item;
    struct base base = {0};
    enum stele_status status;

    if (index->index != NULL && index_lsn(index) <= lsn) {
        *position_out = *index_reader_applied(index->index);
        *base_out = *index;
        return STELE_OK;
    }
    status =
        retained_open_base(store, retained, lsn, &item, &base.snapshot, error);
    if (status == STELE_NOT_FOUND) {
        status = too_old(retained, index, lsn, error);
    }
    base_release(index);
    if (status == STELE_OK) {
        *position_out = item->position;
        *base_out = base;
    }
    return status;
}

/* ---- The log on top of it --------------------------------------------------------------- */

/* What the hash should be made for: the log may be many memtables long. */
static uint64_t bytes_target(const struct stele *store,
                             const struct retained *retained,
                             const struct wal_position *position)
{
    const uint64_t bytes_max = store->options.memtable_bytes * PAST_MEMTABLES;
    const uint64_t bytes =
        (retained->anchor.segment_last - wal_segment_behind(position)) *
        store->segment_bytes;

    if (bytes < store->options.memtable_bytes) {
        return store->options.memtable_bytes;
    }
    return bytes > bytes_max ? bytes_max : bytes;
}

static enum stele_status replay_up_to(struct stele *store,
                                      const struct retained *retained,
                                      const struct wal_position *position,
                                      uint64_t lsn, struct state **state_out,
                                      struct stele_error *error)
{
    struct replay replay = {.lsn_max = lsn};
    struct wal_reader reader = {0};
    enum stele_status status =
        memtable_create(bytes_target(store, retained, position),
                        store->hash_seed, &replay.memtable, error);

    if (status == STELE_OK) {
        status = wal_reader_open(&reader, store->wal_dir, position,
                                 retained->anchor.segment_oldest, IO_OPEN_READ,
                                 error);
    }
    while (status == STELE_OK && reader.previous.lsn < lsn) {
        struct wal_reader_unit unit;

        status = wal_reader_next_whole(&reader, &unit, "a later one is durable",
                                       error);
        if (status == STELE_OK) {
            status = replay_unit(&replay, &unit, error);
        }
    }
    wal_reader_close(&reader);
    if (status == STELE_OK) {
        *state_out = state_create(lsn, replay.memtable, replay.ranges);
        if (*state_out == NULL) {
            status = error_no_memory(error, "state");
        }
    }
    replay_deinit(&replay);
    memtable_unref(replay.memtable);
    return status;
}

/* ---- All of it ------------------------------------------------------------------------------ */

/* Once, from what is retained now. */
static enum stele_status pin_once(struct stele *store, uint64_t lsn,
                                  struct retained *retained,
                                  struct state **state_out,
                                  struct base *base_out,
                                  struct stele_error *error)
{
    struct wal_position position;
    struct base index;
    uint64_t newest;
    enum stele_status status = look(store, &newest, &index, error);

    if (status != STELE_OK) {
        return status;
    }
    if (lsn > newest) {
        base_release(&index);
        return error_set(error, STELE_NOT_FOUND,
                         "LSN %" PRIu64 " is not there yet: the newest durable "
                         "one is %" PRIu64,
                         lsn, newest);
    }
    status = retained_read(store, retained, error);
    if (status != STELE_OK) {
        base_release(&index);
        return status;
    }
    status =
        choose_base(store, retained, &index, lsn, base_out, &position, error);
    if (status != STELE_OK) {
        return status;
    }
    status = replay_up_to(store, retained, &position, lsn, state_out, error);
    if (status != STELE_OK) {
        base_release(base_out);
    }
    return status;
}

enum stele_status past_pin(struct stele *store, uint64_t lsn,
                           struct state **state_out, struct base *base_out,
                           struct stele_error *error)
{
    struct retained_tries tries = {0};
    struct retained now = {0};
    enum stele_status status;

    do {
        status = pin_once(store, lsn, &now, state_out, base_out, error);
    } while (retained_again(&tries, &now, status));
    return status;
}
