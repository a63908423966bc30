/*
 * engine/commit_room.c -- room for a group, in the memtable and in the log.
 *
 * Before any LSN is assigned: what finds no room is refused, and nothing has
 * happened. Waiting for the checkpoint ends at each batch's deadline.
 */
#include <assert.h>

#include "base/error.h"
#include "engine/checkpoint.h"
#include "engine/commit_group.h"

enum fullness { HAS_ROOM, CHECKPOINT_DUE, FULL };

static enum fullness memtable_fullness(struct stele *store)
{
    struct state *current = state_acquire(&store->publisher);
    const struct state_layer *active = &current->layers[STATE_ACTIVE];
    const uint64_t limit = store->options.memtable_bytes;
    /* What only old views hold counts, but cannot fill the memtable alone. */
    const uint64_t retired = atomic_load(&store->publisher.retired_bytes);
    const uint64_t bytes = memtable_bytes(active->memtable) +
                           range_set_bytes(active->ranges) +
                           (retired < limit / 2 ? retired : limit / 2);
    const size_t fragments = range_set_count(active->ranges);

    state_release(current);
    if (bytes >= limit || fragments >= store->tuning.range_fragments_max) {
        return FULL;
    }
    if (wal_writer_stats(store->writer).bytes - store->log_bytes_frozen >=
        STORE_LOG_BYTES_PER_CHECKPOINT) {
        return CHECKPOINT_DUE;
    }
    return HAS_ROOM;
}

/* Refuse what has waited long enough. The time until the next one is due. */
static uint64_t expire(struct commit_request *group, uint64_t now_ns)
{
    uint64_t left_ns = UINT64_MAX;
    struct stele_error error;

    error_set(
        &error, STELE_BUSY,
        "the memtable is full and the checkpoint did not make room within "
        "commit_wait_ms");
    for (; group != NULL; group = group->next) {
        if (group->decided || group->kind != COMMIT_BATCH) {
            continue;
        }
        if (group->deadline_ns <= now_ns) {
            commit_decide(group, STELE_BUSY, &error);
        } else if (group->deadline_ns - now_ns < left_ns) {
            left_ns = group->deadline_ns - now_ns;
        }
    }
    return left_ns;
}

/* The active memtable is full and the frozen one is still draining: wait for
 * the base keeper. Returns when it is worth looking again. */
static void wait_for_base(struct stele *store, struct commit_request *group)
{
    struct stele_error error;
    uint64_t left_ns;

    if (store->tuning.manual) {
        const enum stele_status status = checkpoint_run(store, &error);

        if (status != STELE_OK) {
            commit_decide_batches(group, status, &error);
        }
        return;
    }
    mutex_lock(&store->keeper_mutex);
    if (store->checkpoint_error.status != STELE_OK) {
        error = store->checkpoint_error;
        mutex_unlock(&store->keeper_mutex);
        commit_decide_batches(group, error.status, &error);
        return;
    }
    left_ns = expire(group, io_clock_monotonic_ns(store->io));
    if (store->frozen && !atomic_load(&store->poisoned) &&
        commit_has_undecided_batch(group)) {
        condition_broadcast(&store->base_work);
        condition_wait_for(&store->base_progress, &store->keeper_mutex,
                           left_ns);
    }
    mutex_unlock(&store->keeper_mutex);
}

/* Full, nothing to freeze, and nothing frozen: of what is not in the index. */
static bool is_full_of_nothing(struct stele *store)
{
    const struct wal_position written = wal_writer_written(store->writer);
    bool nothing;

    mutex_lock(&store->keeper_mutex);
    nothing = !store->frozen && written.unit <= store->applied.unit;
    mutex_unlock(&store->keeper_mutex);
    return nothing;
}

static void make_room_in_memtable(struct stele *store,
                                  struct commit_request *group)
{
    while (commit_has_undecided_batch(group)) {
        const enum fullness fullness = memtable_fullness(store);
        struct stele_error error;
        enum stele_status status;
        bool froze;

        if (fullness == HAS_ROOM) {
            return;
        }
        status = commit_freeze_active(store, &froze, &error);
        if (status != STELE_OK) {
            commit_decide_batches(group, status, &error);
            return;
        }
        if (froze || fullness == CHECKPOINT_DUE) {
            return;
        }
        if (is_full_of_nothing(store)) {
            status = commit_renew_active(store, &error);
            if (status != STELE_OK) {
                commit_decide_batches(group, status, &error);
            }
            return;
        }
        /* Waiting may take long, and the relaxed window is short. */
        status = commit_sync_log(store, &error);
        if (status != STELE_OK) {
            commit_decide_batches(group, STELE_POISONED, &error);
            return;
        }
        commit_write_hint(store);
        wait_for_base(store, group);
        status = store_check_writable(store, &error);
        if (status != STELE_OK) {
            commit_decide_batches(group, status, &error);
            return;
        }
    }
}

static uint64_t group_body_bytes(const struct commit_request *group)
{
    uint64_t bytes = 0;

    for (; group != NULL; group = group->next) {
        if (!group->decided && group->kind == COMMIT_BATCH) {
            bytes += group->batch->bytes;
        }
    }
    return bytes;
}

static void make_room_in_log(struct stele *store, struct commit_request *group)
{
    const uint64_t body_bytes = group_body_bytes(group);
    struct stele_error error;
    enum stele_status status = STELE_OK;

    if (body_bytes == 0 || wal_writer_has_room(store->writer, body_bytes)) {
        return;
    }
    if (wal_writer_prepared_count(store->writer) == 0) {
        status = store_prepare_segment(store, &error);
        if (status != STELE_OK) {
            commit_decide_batches(group, status, &error);
            return;
        }
    }
    status = store_check_lock(store, &error);
    if (status != STELE_OK) {
        commit_decide_batches(group, status, &error);
        return;
    }
    status = wal_writer_rotate(store->writer, &error);
    if (status != STELE_OK) {
        store_poison(store, &error);
        commit_decide_batches(group, STELE_POISONED, &error);
        return;
    }
    assert(wal_writer_has_room(store->writer, body_bytes));
}

void commit_make_room(struct stele *store, struct commit_request *group)
{
    make_room_in_memtable(store, group);
    make_room_in_log(store, group);
}
