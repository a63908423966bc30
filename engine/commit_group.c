/*
 * engine/commit_group.c -- the life of a commit. See engine/commit_group.h.
 *
 * The happy path, in the leader:
 *
 *     1. take a group of requests;
 *     2. make room in the memtable (freeze it) and in the log (rotate), before
 *        any LSN is assigned;
 *     3. for each batch: expectations, LSN, insertion under a version that no
 *        reader can see yet;
 *     4. one write of the whole group;
 *     5. one sync, if anybody asked for durability;
 *     6. publish, write the hint, wake the group.
 *
 * What can fail, and what state that leaves:
 *
 *     2           the batches are refused; nothing has changed;
 *     3           a batch is refused and consumes no LSN, the rest goes on;
 *     4, no space the group is withdrawn whole: not applied; the store goes on;
 *     4, 5        anything else: unknown. The store is poisoned before the role
 *                 is given up; what was inserted stays invisible.
 */
#include "engine/commit_group.h"

#include <assert.h>

#include "base/error.h"
#include "engine/apply.h"
#include "engine/damage.h"
#include "engine/keepers.h"
#include "wal/unit.h"

/* ---- Deciding requests ---------------------------------------------------- */

void commit_decide(struct commit_request *request, enum stele_status status,
                   const struct stele_error *error)
{
    request->decided = true;
    request->status = status;
    if (status != STELE_OK) {
        request->error = *error;
        request->error.status = status;
    } else if (request->result != NULL) {
        request->result->lsn = request->lsn;
    }
}

static void decide_rest(struct commit_request *group, enum stele_status status,
                        const struct stele_error *error)
{
    for (; group != NULL; group = group->next) {
        if (!group->decided) {
            commit_decide(group, status, error);
        }
    }
}

void commit_decide_batches(struct commit_request *group,
                           enum stele_status status,
                           const struct stele_error *error)
{
    for (; group != NULL; group = group->next) {
        if (!group->decided && group->kind == COMMIT_BATCH) {
            commit_decide(group, status, error);
        }
    }
}

bool commit_has_undecided_batch(const struct commit_request *group)
{
    for (; group != NULL; group = group->next) {
        if (!group->decided && group->kind == COMMIT_BATCH) {
            return true;
        }
    }
    return false;
}

/* ---- Syncing and freezing ---------------------------------------------------- */

enum stele_status commit_sync_log(struct stele *store,
                                  struct stele_error *error)
{
    enum stele_status status = wal_writer_sync(store->writer, error);

    if (status != STELE_OK) {
        store_poison(store, error);
        return status;
    }
    store->lsn_synced = store->lsn_last;
    mutex_lock(&store->keeper_mutex);
    store->relaxed_pending = false;
    mutex_unlock(&store->keeper_mutex);
    return STELE_OK;
}

void commit_write_hint(struct stele *store)
{
    const struct wal_position durable = wal_writer_durable(store->writer);
    struct stele_error error;
    enum stele_status status;

    if (durable.unit == store->hint_unit) {
        return;
    }
    status = wal_hint_write(&store->anchor_file, store->incarnation, &durable,
                            &error);
    if (status == STELE_OK) {
        store->hint_unit = durable.unit;
    } else if (status != STELE_NO_SPACE) {
        /* The commit is durable all the same. (A copy-on-write file system may
         * have no room for the hint: other processes then lag until it has.) */
        store_poison(store, &error);
    }
}

/* What the base keeper has made for us, or NULL. */
static struct memtable *take_spare(struct stele *store)
{
    struct memtable *spare;

    mutex_lock(&store->keeper_mutex);
    spare = store->spare;
    store->spare = NULL;
    mutex_unlock(&store->keeper_mutex);
    return spare;
}

void commit_keep_spare(struct stele *store)
{
    struct memtable *fresh;
    struct stele_error ignored; /* The leader makes its own then. */
    bool wanted;

    mutex_lock(&store->keeper_mutex);
    wanted = store->spare == NULL;
    mutex_unlock(&store->keeper_mutex);
    if (!wanted ||
        memtable_create(store->options.memtable_bytes, store->hash_seed, &fresh,
                        &ignored) != STELE_OK) {
        return;
    }
    mutex_lock(&store->keeper_mutex);
    assert(store->spare == NULL); /* Nobody else makes one. */
    store->spare = fresh;
    mutex_unlock(&store->keeper_mutex);
}

/* An empty memtable, and the state to publish it with. */
static enum stele_status allocate_active(struct stele *store,
                                         struct memtable **fresh_out,
                                         struct state **next_out,
                                         struct stele_error *error)
{
    struct state *next = state_allocate();
    enum stele_status status = STELE_OK;

    if (next == NULL) {
        return error_no_memory(error, "state");
    }
    *fresh_out = take_spare(store);
    if (*fresh_out == NULL) {
        status = memtable_create(store->options.memtable_bytes,
                                 store->hash_seed, fresh_out, error);
    }
    if (status != STELE_OK) {
        state_discard(next);
        return status;
    }
    *next_out = next;
    return STELE_OK;
}

enum stele_status commit_renew_active(struct stele *store,
                                      struct stele_error *error)
{
    struct memtable *fresh = NULL;
    struct state *next = NULL;
    struct state *current;
    enum stele_status status = allocate_active(store, &fresh, &next, error);

    if (status != STELE_OK) {
        return status;
    }
    current = state_acquire(&store->publisher);
    assert(current->layers[STATE_FROZEN].memtable == NULL);
    state_publish_rebase(&store->publisher, next, current->lsn, fresh, NULL);
    state_release(current);
    memtable_unref(fresh); /* The state holds it. */
    return STELE_OK;
}

enum stele_status commit_freeze_active(struct stele *store, bool *frozen_out,
                                       struct stele_error *error)
{
    const struct wal_position written = wal_writer_written(store->writer);
    struct memtable *fresh = NULL;
    struct state *next = NULL;
    enum stele_status status;
    bool nothing;

    *frozen_out = false;
    mutex_lock(&store->keeper_mutex);
    nothing = store->frozen || written.unit <= store->applied.unit;
    mutex_unlock(&store->keeper_mutex);
    if (nothing) {
        return STELE_OK;
    }
    /* The index must never hold what the log could lose. */
    status = commit_sync_log(store, error);
    if (status != STELE_OK) {
        return status;
    }
    status = allocate_active(store, &fresh, &next, error);
    if (status != STELE_OK) {
        return status;
    }
    state_publish_freeze(&store->publisher, next, fresh);
    memtable_unref(fresh); /* The state holds it. */
    store->log_bytes_frozen = wal_writer_stats(store->writer).bytes;
    mutex_lock(&store->keeper_mutex);
    store->frozen = true;
    store->frozen_end = written;
    store->frozen_log_bytes = store->log_bytes_frozen;
    condition_broadcast(&store->base_work);
    mutex_unlock(&store->keeper_mutex);
    *frozen_out = true;
    return STELE_OK;
}

/* ---- One group -------------------------------------------------------------------- */

/* What process_commits() keeps while it works. */
struct work {
    struct stele *store;
    struct commit_request *group;
    struct memtable *memtable;
    struct state *state;      /* Before the group. */
    struct base base;         /* Its index reader, once one is needed. */
    struct range_set *ranges; /* With the group's; a reference. */
    struct state *next;
    uint64_t lsn_before;
    uint32_t record_count;
};

static bool needs_lookup(const struct commit_request *request)
{
    return request->batch->expectation_count > 0 ||
           (request->result != NULL && request->result->outcomes != NULL);
}

/* Insert one batch. Failure: `*refused_out` if nothing of it was inserted. */
static enum stele_status insert_batch(struct work *work,
                                      struct commit_request *request,
                                      bool *refused_out,
                                      struct stele_error *error)
{
    struct stele *store = work->store;
    struct stele_batch *batch = request->batch;
    const struct apply_target target = {.memtable = work->memtable,
                                        .ranges = &store->group->ranges};
    struct apply_lookup lookup = {.state = work->state,
                                  .pending = &store->group->ranges,
                                  .base = &work->base};
    enum stele_op_outcome *outcomes =
        request->result == NULL ? NULL : request->result->outcomes;
    enum stele_status status = STELE_OK;

    *refused_out = true;
    if (needs_lookup(request) && work->base.index == NULL) {
        status = index_reader_acquire(store->index, &work->base.index, error);
    }
    if (status == STELE_OK && batch->expectation_count > 0) {
        uint64_t failed_op = 0;

        status =
            apply_expectations(&lookup, batch_body(batch), &failed_op, error);
        if (status == STELE_PRECONDITION && request->result != NULL) {
            request->result->failed_op = failed_op;
        }
    }
    if (status != STELE_OK) {
        return status;
    }
    *refused_out = false;
    request->lsn = store->lsn_last + 1;
    status = apply_body(&target, batch_body(batch), request->lsn, &lookup,
                        outcomes, error);
    if (status != STELE_OK) {
        return status;
    }
    store->lsn_last = request->lsn;
    batch_set_lsn(batch, request->lsn);
    store->group->records[work->record_count] = batch->data;
    store->group->record_bytes[work->record_count] = batch->bytes;
    work->record_count++;
    return STELE_OK;
}

static void withdraw(struct work *work)
{
    /* What was refused may have been so on account of what goes now. */
    for (struct commit_request *request = work->group; request != NULL;
         request = request->next) {
        if (request->refused_behind) {
            request->refused_behind = false;
            request->decided = false;
        }
    }
    memtable_withdraw(work->memtable);
    range_builder_clear(&work->store->group->ranges);
    work->store->lsn_last = work->lsn_before;
    work->record_count = 0;
}

/* Insert all batches. One that fails half way is decided, and the others start
 * again without it. */
static void insert_group(struct work *work)
{
    struct commit_request *request = work->group;

    while (request != NULL) {
        struct stele_error error;
        enum stele_status status;
        bool refused;

        if (request->decided || request->kind != COMMIT_BATCH) {
            request = request->next;
            continue;
        }
        status = damage_note(work->store,
                             insert_batch(work, request, &refused, &error));
        if (status != STELE_OK) {
            commit_decide(request, status, &error);
            request->refused_behind =
                status == STELE_PRECONDITION && work->record_count > 0;
            if (!refused) {
                withdraw(work);
                request = work->group;
                continue;
            }
        }
        request = request->next;
    }
}

/* Everything that publishing will need, so that it cannot fail. */
static enum stele_status prepare_publish(struct work *work,
                                         struct stele_error *error)
{
    struct range_set *before = work->state->layers[STATE_ACTIVE].ranges;
    struct range_builder *builder = &work->store->group->ranges;

    work->next = state_allocate();
    if (work->next == NULL) {
        return error_no_memory(error, "state");
    }
    if (range_builder_is_empty(builder)) {
        range_set_ref(before);
        work->ranges = before;
        return STELE_OK;
    }
    return range_builder_finish(builder, before, &work->ranges, error);
}

static void publish(struct work *work)
{
    struct stele *store = work->store;

    memtable_settle(work->memtable);
    state_publish_commit(&store->publisher, work->next, store->lsn_last,
                         work->ranges);
    work->next = NULL;
    atomic_fetch_add_explicit(&store->stat_records, work->record_count,
                              memory_order_relaxed);
    if (store->group->ranges.splits > 0) {
        atomic_fetch_add_explicit(&store->stat_range_splits,
                                  store->group->ranges.splits,
                                  memory_order_relaxed);
        store->group->ranges.splits = 0;
    }
}

/* Whether somebody in the group waits for the disk. */
static bool wants_sync(struct stele *store, const struct commit_request *group,
                       uint64_t now_ns)
{
    const uint64_t window_ns =
        (uint64_t)store->options.relaxed_sync_ms * 1000000u;
    bool overdue;

    /* The log keeper sees to it, unless it is busy, leading for one. */
    mutex_lock(&store->keeper_mutex);
    overdue =
        store->relaxed_pending && now_ns >= store->relaxed_since_ns + window_ns;
    mutex_unlock(&store->keeper_mutex);
    if (overdue) {
        return true;
    }
    if (store->lsn_last - store->lsn_synced >= STORE_LSN_UNSYNCED_MAX) {
        return true; /* The next open skips 2^20 LSNs: stay well below. */
    }
    for (; group != NULL; group = group->next) {
        if (!group->decided && (group->kind == COMMIT_SYNC ||
                                group->durability == STELE_DURABLE)) {
            return true;
        }
    }
    return false;
}

/* The write or the sync of the group failed half way. */
static void end_unknown(struct work *work, const struct stele_error *cause)
{
    struct stele_error error = *cause;

    /* Before the role is given up: the next leader must not write. */
    store_poison(work->store, cause);
    error_wrap(&error, STELE_UNKNOWN, "outcome unknown");
    decide_rest(work->group, STELE_UNKNOWN, &error);
}

/* Tell the log keeper what is due. */
static void note_unsynced(struct stele *store, uint64_t now_ns)
{
    mutex_lock(&store->keeper_mutex);
    if (!store->relaxed_pending) {
        store->relaxed_pending = true;
        store->relaxed_since_ns = now_ns;
        keepers_kick_log(store);
    }
    mutex_unlock(&store->keeper_mutex);
}

static void note_activity(struct stele *store, uint64_t now_ns)
{
    const bool segment_wanted = wal_writer_half_full(store->writer) &&
                                wal_writer_prepared_count(store->writer) == 0;

    atomic_store(&store->activity_ns, now_ns);
    mutex_lock(&store->keeper_mutex);
    if (store->log_keeper_asleep ||
        (segment_wanted && !store->segment_wanted)) {
        store->segment_wanted = store->segment_wanted || segment_wanted;
        keepers_kick_log(store);
    }
    mutex_unlock(&store->keeper_mutex);
}

static void write_group(struct work *work)
{
    struct stele *store = work->store;
    struct stele_error error;
    enum stele_status status = STELE_OK;
    const uint64_t now_ns = io_clock_monotonic_ns(store->io);

    insert_group(work);
    if (work->record_count > 0) {
        status = prepare_publish(work, &error);
        if (status == STELE_OK) {
            status = wal_writer_append(store->writer, store->group->records,
                                       store->group->record_bytes,
                                       work->record_count, work->lsn_before + 1,
                                       store->lsn_last, &error);
            if (status != STELE_OK && status != STELE_NO_SPACE) {
                end_unknown(work, &error);
                return;
            }
            if (status == STELE_NO_SPACE) {
                atomic_fetch_add(&store->stat_groups_withdrawn, 1);
            }
        }
        if (status != STELE_OK) {
            /* Not applied, and nothing changed. */
            withdraw(work);
            commit_decide_batches(work->group, status, &error);
        }
    }
    if (wants_sync(store, work->group, now_ns)) {
        status = commit_sync_log(store, &error);
        if (status != STELE_OK) {
            end_unknown(work, &error);
            return;
        }
    } else if (work->record_count > 0) {
        note_unsynced(store, now_ns);
    }
    if (work->record_count > 0) {
        publish(work);
    }
    commit_write_hint(store);
    decide_rest(work->group, STELE_OK, NULL);
    note_activity(store, now_ns);
}

static void process_commits(struct stele *store, struct commit_request *group)
{
    struct work work = {.store = store, .group = group};

    commit_make_room(store, group);
    if (atomic_load(&store->poisoned)) {
        struct stele_error error;
        const enum stele_status status = store_check_writable(store, &error);

        decide_rest(group, status, &error);
        return;
    }
    work.state = state_acquire(&store->publisher);
    /* Only the holder of the role replaces it. */
    work.memtable = work.state->layers[STATE_ACTIVE].memtable;
    work.lsn_before = store->lsn_last;
    write_group(&work);
    range_builder_clear(&store->group->ranges);
    range_set_unref(work.ranges);
    state_discard(work.next);
    base_release(&work.base);
    state_release(work.state);
}

void commit_process(struct stele *store, struct commit_request *group)
{
    struct stele_error error;
    enum stele_status status = store_check_writable(store, &error);

    if (status != STELE_OK) {
        decide_rest(group, status, &error);
    } else if (group->kind == COMMIT_FREEZE) {
        status = commit_freeze_active(store, &group->froze, &error);
        commit_decide(group, status, &error);
    } else {
        process_commits(store, group);
    }
}
