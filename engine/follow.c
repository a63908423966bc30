/*
 * engine/follow.c -- see engine/follow.h.
 *
 * Catching up, the happy path: find out what must be shown (the target); read
 * units from where we stand up to it; insert them; publish. Runs in whatever
 * thread opens a view, one at a time. Writes nothing.
 */
#include "engine/follow.h"

#include <assert.h>
#include <inttypes.h>

#include "base/error.h"
#include "engine/replay.h"

enum {
    HINT_TRIES_MAX = 1000, /* Torn by a concurrent write each time: no. */
    REBASE_MEMTABLES = 4,  /* How large the tail may grow. */
    CLAIM_APPLIED = 0,
    CLAIM_APPLYING = 1,
    CLAIM_COUNT = 2,
};

static enum stele_status writer_is_alive(struct stele *store, bool *alive_out,
                                         struct stele_error *error)
{
    enum stele_status status;

    *alive_out = false;
    if (store->lock_file == NULL) {
        status = io_file_open(store->dir, STORE_LOCK_NAME, IO_OPEN_READ,
                              &store->lock_file, error);
        if (status != STELE_OK) {
            return status == STELE_NOT_FOUND ? STELE_OK : status;
        }
    }
    return io_file_lock_held(store->lock_file, alive_out, error);
}

/* The hint, if there is one and it is further than *position. */
static enum stele_status consider_hint(struct stele *store,
                                       struct wal_position *position,
                                       struct stele_error *error)
{
    for (int tries = 0; tries < HINT_TRIES_MAX; tries++) {
        struct wal_position hint;
        uint64_t incarnation;
        enum stele_status status;
        bool valid;

        status = wal_hint_read(&store->anchor_file, &valid, &incarnation, &hint,
                               error);
        if (status != STELE_OK) {
            return status;
        }
        if (valid) {
            if (hint.unit > position->unit &&
                wal_uuid_equal(&hint.uuid, &store->uuid)) {
                *position = hint;
            }
            return STELE_OK;
        }
    }
    return STELE_OK; /* There is none. */
}

static enum stele_status index_positions(struct stele *store,
                                         struct wal_position *applied_out,
                                         struct wal_position *applying_out,
                                         struct stele_error *error)
{
    struct index_reader *reader;
    enum stele_status status;

    *applied_out = wal_position_origin(&store->uuid);
    *applying_out = *applied_out;
    if (store->index == NULL) {
        return STELE_OK;
    }
    status = index_reader_acquire(store->index, &reader, error);
    if (status == STELE_OK) {
        *applied_out = *index_reader_applied(reader);
        *applying_out = *index_reader_applying(reader);
        index_reader_release(reader);
    }
    return status;
}

/* ANCHOR as it is now. The handle's statistics read it too. */
static enum stele_status read_anchor(struct stele *store,
                                     struct stele_error *error)
{
    struct wal_anchor anchor;
    enum stele_status status =
        wal_anchor_read(&store->anchor_file, &anchor, error);

    if (status == STELE_OK) {
        mutex_lock(&store->anchor_mutex);
        store->anchor = anchor;
        mutex_unlock(&store->anchor_mutex);
    }
    return status;
}

/* What a live writer has made visible and durable. */
static enum stele_status target_of_writer(struct stele *store,
                                          struct wal_position *target_out,
                                          struct stele_error *error)
{
    struct wal_position target;
    struct wal_position applied;
    enum stele_status status = index_positions(store, &applied, &target, error);

    if (status == STELE_OK) {
        status = read_anchor(store, error);
    }
    if (status == STELE_OK) {
        if (store->anchor.durable.unit > target.unit) {
            target = store->anchor.durable;
        }
        status = consider_hint(store, &target, error);
    }
    if (status == STELE_OK) {
        *target_out = target;
    }
    return status;
}

/* What recovery accepts, made as durable as a reader can make it. */
static enum stele_status target_of_recovery(struct stele *store,
                                            struct wal_position *target_out,
                                            struct stele_error *error)
{
    struct wal_claim claims[CLAIM_COUNT] = {
        [CLAIM_APPLIED] = {.name = "index applied"},
        [CLAIM_APPLYING] = {.name = "index applying"},
    };
    struct wal_recovery_input input = {
        .wal_dir = store->wal_dir,
        .anchor = &store->anchor,
        .base = store->applied,
        .claims = claims,
        .claim_count = CLAIM_COUNT,
        .min_expected_lsn = store->options.min_expected_lsn,
    };
    enum stele_status status =
        index_positions(store, &claims[CLAIM_APPLIED].position,
                        &claims[CLAIM_APPLYING].position, error);

    if (status == STELE_OK) {
        status = wal_recovery_run(&input, &store->recovery, error);
    }
    if (status == STELE_OK && store->recovery.base_found) {
        const uint64_t accepted = store->recovery.end.unit;

        status = wal_recovery_settle(&input, &store->recovery, error);
        if (status == STELE_OK && accepted > store->recovery.unit_proven) {
            status = wal_recovery_run(&input, &store->recovery, error);
        }
    }
    if (status == STELE_OK &&
        (!store->recovery.base_found || claims[CLAIM_APPLIED].differs ||
         claims[CLAIM_APPLYING].differs)) {
        status = error_set(error, STELE_FOREIGN,
                           "the index does not descend from this log");
    }
    if (status == STELE_OK) {
        *target_out = store->recovery.end;
    }
    return status;
}

/* Read up to the target, and show it. */
static enum stele_status advance(struct stele *store,
                                 const struct wal_position *target,
                                 struct stele_error *error)
{
    struct state *current = state_acquire(&store->publisher);
    struct replay replay = {
        .memtable = current->layers[STATE_ACTIVE].memtable,
        .ranges = current->layers[STATE_ACTIVE].ranges,
    };
    struct wal_reader *reader = &store->follow_reader;
    enum stele_status status = STELE_OK;
    struct state *next = NULL;

    range_set_ref(replay.ranges);
    if (target->unit > reader->previous.unit) {
        status = wal_reader_refresh(reader, error);
    }
    while (status == STELE_OK && reader->previous.unit < target->unit) {
        struct wal_reader_unit unit;
        bool whole;

        status = wal_reader_next(reader, &unit, &whole, error);
        if (status == STELE_OK && !whole) {
            status = error_set(
                error, STELE_CORRUPT,
                "wal/%016" PRIx64 ".wal: offset %" PRIu64 ": unit %" PRIu64
                " is not whole, but unit %" PRIu64 " was acknowledged",
                reader->segment.seq, reader->offset, reader->previous.unit + 1,
                target->unit);
        }
        if (status == STELE_OK) {
            status = replay_unit(&replay, &unit, error);
        }
    }
    if (status == STELE_OK && reader->previous.unit == target->unit &&
        !wal_position_equal(&reader->previous, target)) {
        status =
            error_set(error, STELE_CORRUPT,
                      "wal/%016" PRIx64 ".wal: offset %" PRIu64
                      ": unit %" PRIu64 " is not the one that was acknowledged",
                      reader->previous.segment, reader->previous.start_offset,
                      target->unit);
    }
    if (status == STELE_OK && reader->previous.lsn > current->lsn) {
        next = state_allocate();
        if (next == NULL) {
            status = error_no_memory(error, "state");
        } else {
            state_publish_commit(&store->publisher, next, reader->previous.lsn,
                                 replay.ranges);
        }
    }
    store->replayed_records += replay.records;
    replay_deinit(&replay);
    state_release(current);
    return status;
}

/* Start a tail behind the index's applied position (or the log's start). */
static enum stele_status start_tail(struct stele *store,
                                    struct stele_error *error)
{
    struct memtable *memtable = NULL;
    struct wal_reader reader;
    struct wal_position applied;
    struct wal_position applying;
    struct state *next = NULL;
    enum stele_status status =
        index_positions(store, &applied, &applying, error);

    if (status == STELE_OK) {
        status = memtable_create(store->options.memtable_bytes,
                                 store->hash_seed, &memtable, error);
    }
    if (status == STELE_OK) {
        status =
            wal_reader_open(&reader, store->wal_dir, &applied,
                            store->anchor.segment_oldest, IO_OPEN_READ, error);
    }
    if (status != STELE_OK) {
        memtable_unref(memtable);
        return status;
    }
    if (!store->following) {
        status = state_publisher_init(&store->publisher, applied.lsn, memtable,
                                      NULL, error);
    } else {
        next = state_allocate();
        if (next == NULL) {
            status = error_no_memory(error, "state");
        } else {
            state_publish_rebase(&store->publisher, next, applied.lsn, memtable,
                                 NULL);
        }
    }
    memtable_unref(memtable);
    if (status != STELE_OK) {
        wal_reader_close(&reader);
        return status;
    }
    if (store->following) {
        wal_reader_close(&store->follow_reader);
    }
    store->follow_reader = reader;
    store->applied = applied;
    store->following = true;
    return STELE_OK;
}

/* The tail has grown large, and most of it is in the index by now. */
static bool rebase_is_due(struct stele *store)
{
    struct state *current = state_acquire(&store->publisher);
    const uint64_t bytes =
        memtable_bytes(current->layers[STATE_ACTIVE].memtable);
    struct stele_error ignored;
    struct wal_position applied;
    struct wal_position applying;

    const uint64_t lsn = current->lsn;

    state_release(current);
    return bytes > store->options.memtable_bytes * REBASE_MEMTABLES &&
           index_positions(store, &applied, &applying, &ignored) == STELE_OK &&
           applied.unit > store->applied.unit && applied.lsn >= lsn;
}

static enum stele_status catch_up(struct stele *store,
                                  struct stele_error *error)
{
    struct wal_position target = wal_position_origin(&store->uuid);
    enum stele_status status;
    bool alive;

    status = writer_is_alive(store, &alive, error);
    if (status != STELE_OK) {
        return status;
    }
    if (alive) {
        if (rebase_is_due(store)) {
            status = start_tail(store, error);
        }
        if (status == STELE_OK) {
            status = target_of_writer(store, &target, error);
        }
        store->follow_anchor_sequence = 0; /* Look again once it is gone. */
        return status == STELE_OK ? advance(store, &target, error) : status;
    }
    status = read_anchor(store, error);
    if (status == STELE_OK) {
        status = consider_hint(store, &target, error);
    }
    if (status != STELE_OK) {
        return status;
    }
    if (store->follow_anchor_sequence == store->anchor.slot_sequence + 1 &&
        store->follow_hint_unit == target.unit) {
        return STELE_OK; /* Nobody has written since we looked. */
    }
    store->follow_hint_unit = target.unit;
    status = target_of_recovery(store, &target, error);
    if (status == STELE_OK) {
        status = advance(store, &target, error);
    }
    if (status == STELE_OK) {
        store->follow_anchor_sequence = store->anchor.slot_sequence + 1;
    }
    return status;
}

enum stele_status follow_catch_up(struct stele *store,
                                  struct stele_error *error)
{
    enum stele_status status;

    mutex_lock(&store->follow_mutex);
    status = catch_up(store, error);
    mutex_unlock(&store->follow_mutex);
    return status;
}

enum stele_status follow_start(struct stele *store, struct stele_error *error)
{
    enum stele_status status = start_tail(store, error);

    if (status == STELE_OK) {
        status = follow_catch_up(store, error);
    }
    if ((status == STELE_FOREIGN || status == STELE_CORRUPT) &&
        store->index != NULL) {
        /* Perhaps only the index is wrong: the log is whole without it. */
        follow_stop(store);
        index_close(store->index);
        store->index = NULL;
        status = start_tail(store, error);
        if (status == STELE_OK) {
            status = follow_catch_up(store, error);
        }
    }
    return status;
}

void follow_stop(struct stele *store)
{
    if (!store->following) {
        return;
    }
    wal_reader_close(&store->follow_reader);
    state_publisher_deinit(&store->publisher);
    store->following = false;
}
