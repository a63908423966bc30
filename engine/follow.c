/*
 * engine/follow.c -- see engine/follow.h.
 *
 * Catching up, the happy path: look who is writing; find out what must be shown
 * (the target); read units from where the tail ends up to it; insert them;
 * publish. Runs in whatever thread opens a view, one at a time. Writes nothing.
 *
 * The base is the index; without one that may be used, the newest snapshot; or
 * nothing, as long as the log is whole. A tail that failed half way is thrown away
 * and built anew on the base, to the side: what is shown is never half of
 * something.
 */
#include "engine/follow.h"

#include <assert.h>
#include <inttypes.h>

#include "base/error.h"
#include "engine/base_open.h"
#include "engine/enter.h"
#include "engine/replay.h"
#include "engine/retained.h"
#include "engine/verdict.h"

enum {
    HINT_TRIES_MAX = 1000, /* Torn by a concurrent write each time: no. */
    LOOK_TRIES_MAX = 1000, /* Somebody wrote in each of them: no. */
    REBASE_MEMTABLES = 4,  /* How large the tail may grow. */
};

/* ---- Looking ------------------------------------------------------------------ */

static enum stele_status look_at_hint(struct stele *store,
                                      struct follow_sight *sight,
                                      struct stele_error *error)
{
    sight->hint = wal_anchor_origin(&store->anchor);
    sight->hint_incarnation = 0;
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
            if (wal_uuid_equal(&hint.uuid, &store->uuid)) {
                sight->hint = hint;
                sight->hint_incarnation = incarnation;
            }
            return STELE_OK;
        }
    }
    return STELE_OK; /* There is none. */
}

static enum stele_status look(struct stele *store, struct follow_sight *sight,
                              struct stele_error *error)
{
    struct wal_anchor anchor;
    enum stele_status status =
        enter_writer_alive(store, &sight->writer_alive, error);

    if (status == STELE_OK) {
        status = enter_writer_declared(store, &sight->writer_declared, error);
    }
    if (status == STELE_OK) {
        status = wal_anchor_read(&store->anchor_file, &anchor, error);
    }
    if (status == STELE_OK) {
        status = look_at_hint(store, sight, error);
    }
    if (status != STELE_OK) {
        return status;
    }
    sight->anchor_sequence = anchor.slot_sequence;
    mutex_lock(&store->anchor_mutex); /* The statistics read it. */
    store->anchor = anchor;
    mutex_unlock(&store->anchor_mutex);
    return STELE_OK;
}

static bool same_sight(const struct follow_sight *left,
                       const struct follow_sight *right)
{
    return left->writer_alive == right->writer_alive &&
           left->writer_declared == right->writer_declared &&
           left->anchor_sequence == right->anchor_sequence &&
           left->hint_incarnation == right->hint_incarnation &&
           wal_position_equal(&left->hint, &right->hint);
}

/* ---- The index --------------------------------------------------------------------- */

static void tail_close(struct follow_tail *tail)
{
    if (tail->memtable == NULL) {
        return;
    }
    wal_reader_close(&tail->reader);
    range_set_unref(tail->ranges);
    memtable_unref(tail->memtable);
    snapshot_map_unref(tail->snapshot);
    *tail = (struct follow_tail){0};
}

/* The index we have open is no longer the store's (rebuilt), or may not be read
 * beside a writer (no reader slot): take the one that is there now. */
static enum stele_status refresh_index(struct stele *store,
                                       const struct follow_sight *sight,
                                       struct stele_error *error)
{
    const bool stale = store->index == NULL
                           ? store->anchor.index_generation > 0
                           : store->anchor.index_generation !=
                                 index_identity(store->index)->generation;
    const bool unsafe = store->index_no_lock && sight->writer_alive;
    enum stele_status status;

    if (store->options.ignore_index || (!stale && !unsafe)) {
        return STELE_OK;
    }
    if (store->index != NULL && !index_is_idle(store->index)) {
        /* Views are open on it. A deleted index is a base like any other. */
        return unsafe ? error_set(error, STELE_BUSY,
                                  "a writer has started and this process may "
                                  "not write index/lock.mdb: close the open "
                                  "views")
                      : STELE_OK;
    }
    if (store->index != NULL) {
        tail_close(&store->follow.tail);
        index_close(store->index);
        store->index = NULL;
    }
    status = base_find(store, error);
    if (store->index != NULL) {
        tail_close(&store->follow.tail); /* It stands on something else. */
    }
    return status;
}

/* ---- What must be shown ---------------------------------------------------------------- */

/* What a writer that has taken possession made visible and durable. */
static enum stele_status target_of_writer(struct stele *store,
                                          const struct follow_sight *sight,
                                          struct wal_position *target_out,
                                          struct stele_error *error)
{
    struct wal_position applied;
    enum stele_status status =
        verdict_index_positions(store, &applied, target_out, error);

    if (status == STELE_OK && store->anchor.durable.unit > target_out->unit) {
        *target_out = store->anchor.durable;
    }
    /* A hint of another life: that of this one found no space. */
    if (status == STELE_OK &&
        sight->hint_incarnation == store->anchor.incarnation &&
        sight->hint.unit > target_out->unit) {
        *target_out = sight->hint;
    }
    return status;
}

/* What the verdict accepts, made as durable as a reader can make it. */
static enum stele_status target_of_verdict(struct stele *store,
                                           struct wal_position *target_out,
                                           struct stele_error *error)
{
    struct verdict verdict;
    struct stele_error ignored;
    enum stele_status status = verdict_reach(store, &verdict, error);

    if (status == STELE_OK && verdict.index_is_foreign) {
        if (!index_is_idle(store->index)) {
            return error_set(error, STELE_FOREIGN,
                             "the index does not descend from this log");
        }
        tail_close(&store->follow.tail);
        index_close(store->index);
        store->index = NULL;
    }
    if (status != STELE_OK) {
        return status;
    }
    store->follow.unproven = false;
    if (store->recovery.end.unit > store->recovery.unit_proven) {
        status =
            wal_recovery_settle(&verdict.input, &store->recovery, &ignored);
        if (status != STELE_OK) {
            /* What is proven is shown, and that it is not all. */
            store->follow.unproven = true;
            *target_out = store->recovery.proven;
            return STELE_OK;
        }
        status = verdict_reach(store, &verdict, error);
    }
    if (status == STELE_OK) {
        *target_out = store->recovery.end;
    }
    return status;
}

/* ---- Showing it ---------------------------------------------------------------------------- */

static uint64_t snapshot_newest(const struct wal_anchor *anchor)
{
    uint64_t newest = 0;

    for (size_t index = 0; index < WAL_ANCHOR_SNAPSHOTS; index++) {
        if (anchor->snapshots[index] > newest) {
            newest = anchor->snapshots[index];
        }
    }
    return newest;
}

/* Without an index: the newest snapshot that is not ahead, or nothing. */
static enum stele_status stand_on_snapshot(struct stele *store,
                                           uint64_t lsn_max,
                                           struct follow_tail *tail,
                                           struct stele_error *error)
{
    const struct base_item *item;
    struct retained retained;
    enum stele_status status = retained_read(store, &retained, error);

    if (status != STELE_OK) {
        return status;
    }
    status = retained_open_base(store, &retained, lsn_max, &item,
                                &tail->snapshot, error);
    if (status == STELE_OK) {
        tail->base = item->position;
        tail->snapshot_newest = snapshot_newest(&retained.anchor);
    } else if (status == STELE_NOT_FOUND) {
        status = error_set(error, STELE_CORRUPT, "row E: no base is left");
    } else if (status == STELE_CORRUPT) {
        status = error_wrap(error, status, "row E: no base is left");
    }
    retained_free(&retained);
    return status;
}

static enum stele_status tail_open(struct stele *store,
                                   const struct wal_position *goal,
                                   struct follow_tail *tail,
                                   struct stele_error *error)
{
    struct wal_position applying;
    enum stele_status status =
        store->index == NULL
            ? stand_on_snapshot(store, goal->lsn, tail, error)
            : verdict_index_positions(store, &tail->base, &applying, error);

    if (status == STELE_OK) {
        status = memtable_create(store->options.memtable_bytes,
                                 store->hash_seed, &tail->memtable, error);
    }
    if (status == STELE_OK) {
        status =
            wal_reader_open(&tail->reader, store->wal_dir, &tail->base,
                            store->anchor.segment_oldest, IO_OPEN_READ, error);
    }
    if (status != STELE_OK) {
        memtable_unref(tail->memtable);
        snapshot_map_unref(tail->snapshot);
        *tail = (struct follow_tail){0};
    }
    return status;
}

/* Read up to the target. After a failure the tail is of no use. */
static enum stele_status tail_advance(struct stele *store,
                                      struct follow_tail *tail,
                                      const struct wal_position *target,
                                      struct stele_error *error)
{
    struct replay replay = {.memtable = tail->memtable, .ranges = tail->ranges};
    struct wal_reader *reader = &tail->reader;
    enum stele_status status = wal_reader_refresh(reader, error);

    while (status == STELE_OK && reader->previous.unit < target->unit) {
        struct wal_reader_unit unit;

        status = wal_reader_next_whole(reader, &unit,
                                       "a later one was acknowledged", error);
        if (status == STELE_OK) {
            status = replay_unit(&replay, &unit, error);
        }
    }
    tail->ranges = replay.ranges;
    store->replayed_records += replay.records;
    if (status == STELE_OK && reader->previous.unit == target->unit &&
        !wal_position_equal(&reader->previous, target)) {
        status =
            error_set(error, STELE_CORRUPT,
                      "wal/%016" PRIx64 ".wal: offset %" PRIu64
                      ": unit %" PRIu64 " is not the one that was acknowledged",
                      reader->previous.segment, reader->previous.start_offset,
                      target->unit);
    }
    return status;
}

/* The tail has grown large, and there is a newer base. */
static bool rebase_is_due(struct stele *store)
{
    struct follow_tail *tail = &store->follow.tail;
    struct wal_position applied;
    struct wal_position applying;
    struct stele_error ignored;

    if (memtable_bytes(tail->memtable) <=
        store->options.memtable_bytes * REBASE_MEMTABLES) {
        return false;
    }
    if (store->index == NULL) {
        return snapshot_newest(&store->anchor) > tail->snapshot_newest;
    }
    return verdict_index_positions(store, &applied, &applying, &ignored) ==
               STELE_OK &&
           applied.unit > tail->base.unit;
}

static enum stele_status publish(struct stele *store,
                                 const struct follow_tail *tail, bool fresh,
                                 struct state **next, struct stele_error *error)
{
    const uint64_t lsn = tail->reader.previous.lsn;
    enum stele_status status = STELE_OK;

    if (!store->follow.started) {
        status = state_publisher_init(&store->publisher, lsn, tail->memtable,
                                      tail->ranges, error);
        store->follow.started = status == STELE_OK;
        return status;
    }
    if (fresh) {
        state_publish_rebase(&store->publisher, *next, lsn, tail->memtable,
                             tail->ranges);
    } else {
        state_publish_commit(&store->publisher, *next, lsn, tail->ranges);
    }
    *next = NULL;
    return status;
}

/* Go on with the tail that there is. */
static enum stele_status show_more(struct stele *store,
                                   const struct wal_position *goal,
                                   struct state **next,
                                   struct stele_error *error)
{
    struct follow_tail *tail = &store->follow.tail;
    enum stele_status status = tail_advance(store, tail, goal, error);

    if (status == STELE_OK) {
        status = publish(store, tail, false, next, error);
    }
    if (status != STELE_OK) {
        tail_close(tail); /* Half read. */
    }
    return status;
}

/* Begin a tail on the newest base. */
static enum stele_status show_anew(struct stele *store,
                                   const struct wal_position *goal,
                                   struct state **next,
                                   struct stele_error *error)
{
    struct follow_tail built = {0};
    enum stele_status status = tail_open(store, goal, &built, error);

    if (status == STELE_OK && built.reader.previous.unit > goal->unit) {
        status = error_set(error, STELE_BUSY,
                           "the index has gone past what was to be shown");
    }
    if (status == STELE_OK) {
        status = tail_advance(store, &built, goal, error);
    }
    if (status == STELE_OK) {
        status = publish(store, &built, true, next, error);
    }
    if (status != STELE_OK) {
        tail_close(&built);
        return status;
    }
    tail_close(&store->follow.tail);
    store->follow.tail = built;
    return STELE_OK;
}

/* Show the target, or what is shown already if that is more. */
static enum stele_status show(struct stele *store,
                              const struct wal_position *target,
                              struct stele_error *error)
{
    struct follow *follow = &store->follow;
    const struct wal_position goal =
        follow->started && follow->shown.unit > target->unit ? follow->shown
                                                             : *target;
    bool fresh = follow->tail.memtable == NULL || rebase_is_due(store);
    struct state *next;
    enum stele_status status = STELE_OK;

    if (!fresh && follow->started && goal.unit == follow->shown.unit) {
        return STELE_OK;
    }
    next = state_allocate();
    if (next == NULL) {
        return error_no_memory(error, "state");
    }
    if (!fresh) {
        /* Of an old tail the log may have been removed: then it is of no use. */
        fresh = show_more(store, &goal, &next, error) != STELE_OK;
    }
    if (fresh) {
        status = show_anew(store, &goal, &next, error);
    }
    state_discard(next);
    if (status == STELE_OK) {
        follow->shown = follow->tail.reader.previous;
    }
    return status;
}

/* ---- Catching up ------------------------------------------------------------------------------ */

/* Once, given what was seen. */
static enum stele_status catch_up_once(struct stele *store,
                                       const struct follow_sight *sight,
                                       struct stele_error *error)
{
    struct wal_position target;
    enum stele_status status = refresh_index(store, sight, error);

    if (status == STELE_OK) {
        status = sight->writer_declared
                     ? target_of_writer(store, sight, &target, error)
                     : target_of_verdict(store, &target, error);
    }
    return status == STELE_OK ? show(store, &target, error) : status;
}

static enum stele_status catch_up(struct stele *store,
                                  struct stele_error *error)
{
    struct follow *follow = &store->follow;

    for (int tries = 0; tries < LOOK_TRIES_MAX; tries++) {
        struct follow_sight before;
        struct follow_sight after;
        struct stele_error failure = {0};
        enum stele_status found;
        enum stele_status status = look(store, &before, error);

        if (status != STELE_OK) {
            return status;
        }
        if (follow->caught_up && !before.writer_alive &&
            same_sight(&before, &follow->sight)) {
            return STELE_OK; /* Nobody has written since we looked. */
        }
        follow->caught_up = false;
        found = catch_up_once(store, &before, &failure);
        if (found == STELE_OK && before.writer_declared) {
            return STELE_OK;
        }
        /* A verdict, or a failure, counts only if nobody wrote meanwhile. */
        status = look(store, &after, error);
        if (status != STELE_OK) {
            return status;
        }
        if (same_sight(&before, &after)) {
            if (found != STELE_OK && error != NULL) {
                *error = failure;
            }
            follow->sight = after;
            follow->caught_up = found == STELE_OK && !after.writer_alive;
            return found;
        }
    }
    return error_set(error, STELE_BUSY,
                     "the store changed while it was looked at");
}

enum stele_status follow_pin(struct stele *store, struct state **state_out,
                             struct base *base_out, struct stele_error *error)
{
    struct state *state = NULL;
    enum stele_status status;

    *base_out = (struct base){0};
    mutex_lock(&store->follow.mutex);
    status = catch_up(store, error);
    if (status == STELE_OK) {
        assert(store->follow.tail.memtable != NULL);
        state = state_acquire(&store->publisher);
        if (store->index != NULL) {
            status =
                index_reader_acquire(store->index, &base_out->index, error);
        } else if (store->follow.tail.snapshot != NULL) {
            snapshot_map_ref(store->follow.tail.snapshot);
            base_out->snapshot = store->follow.tail.snapshot;
        }
    }
    mutex_unlock(&store->follow.mutex);
    if (status == STELE_OK) {
        *state_out = state;
    } else if (state != NULL) {
        state_release(state);
    }
    return status;
}

enum stele_status follow_start(struct stele *store, struct stele_error *error)
{
    enum stele_status status;

    mutex_lock(&store->follow.mutex);
    status = catch_up(store, error);
    if (status == STELE_OK &&
        store->follow.shown.lsn < store->options.min_expected_lsn) {
        status =
            error_set(error, STELE_CORRUPT,
                      "the store ends at LSN %" PRIu64
                      ", but the caller expects %" PRIu64,
                      store->follow.shown.lsn, store->options.min_expected_lsn);
    }
    mutex_unlock(&store->follow.mutex);
    return status;
}

void follow_drop_tail(struct stele *store)
{
    tail_close(&store->follow.tail);
}

void follow_stop(struct stele *store)
{
    follow_drop_tail(store);
    if (store->follow.started) {
        state_publisher_deinit(&store->publisher);
        store->follow.started = false;
    }
}
