/* engine/keepers.c -- see engine/keepers.h. */
#include "engine/keepers.h"

#include <signal.h>

#include "base/error.h"
#include "engine/checkpoint.h"
#include "engine/commit.h"
#include "engine/commit_group.h"
#include "engine/damage.h"
#include "engine/snapshots.h"

enum {
    NS_PER_MS = 1000000,
    RETRY_MS = 250,      /* After a failure: the disk may be full. */
    BASE_TICK_MS = 1000, /* How often the base keeper looks around. */
    READER_CHECK_TICKS = 60,
};

static uint64_t ns_since(const struct stele *store, uint64_t then_ns)
{
    const uint64_t now_ns = io_clock_monotonic_ns(store->io);

    return now_ns > then_ns ? now_ns - then_ns : 0;
}

/* ---- Log keeper -------------------------------------------------------------- */

static void name_durable_end(struct wal_anchor *anchor, const void *context)
{
    const struct wal_position *durable = context;

    anchor->durable = *durable;
}

/* After a short idle the last durable unit is named in ANCHOR, so that its loss
 * would be noticed. Returns when it is due, 0: nothing to name. */
static uint64_t tend_anchor(struct stele *store)
{
    const uint64_t idle_ns = store->tuning.idle_anchor_ms * NS_PER_MS;
    const struct wal_position durable = wal_writer_durable(store->writer);
    struct stele_error ignored;
    uint64_t past_ns;
    bool due;

    mutex_lock(&store->anchor_mutex);
    due = durable.unit > store->anchor.durable.unit;
    mutex_unlock(&store->anchor_mutex);
    if (!due) {
        return 0;
    }
    past_ns = ns_since(store, atomic_load(&store->activity_ns));
    if (past_ns < idle_ns) {
        return idle_ns - past_ns;
    }
    if (store_write_anchor(store, name_durable_end, &durable, &ignored) !=
        STELE_OK) {
        return (uint64_t)RETRY_MS * NS_PER_MS; /* Or poisoned: no more. */
    }
    return 0;
}

static uint64_t tend_relaxed(struct stele *store)
{
    const uint64_t window_ns =
        (uint64_t)store->options.relaxed_sync_ms * NS_PER_MS;
    struct stele_error ignored;
    uint64_t past_ns;
    bool pending;

    mutex_lock(&store->keeper_mutex);
    pending = store->relaxed_pending;
    past_ns = pending ? ns_since(store, store->relaxed_since_ns) : 0;
    mutex_unlock(&store->keeper_mutex);
    if (!pending) {
        return 0;
    }
    if (past_ns < window_ns) {
        return window_ns - past_ns;
    }
    if (commit_sync(store, &ignored) != STELE_OK) {
        return (uint64_t)RETRY_MS * NS_PER_MS; /* Poisoned: nothing is due. */
    }
    return 0;
}

static uint64_t tend_segments(struct stele *store)
{
    struct stele_error ignored;
    bool wanted;

    mutex_lock(&store->keeper_mutex);
    wanted = store->segment_wanted;
    mutex_unlock(&store->keeper_mutex);
    if (!wanted) {
        return 0;
    }
    if (store_prepare_segment(store, &ignored) != STELE_OK) {
        return (uint64_t)RETRY_MS * NS_PER_MS;
    }
    mutex_lock(&store->keeper_mutex);
    store->segment_wanted = false;
    mutex_unlock(&store->keeper_mutex);
    return 0;
}

/* Nothing was committed for a while, and the index lacks something: a checkpoint
 * now makes the next open quick. Not the base keeper's business: it must never
 * wait for the role, whose holder may be waiting for it. */
static uint64_t tend_idle(struct stele *store)
{
    const uint64_t idle_ns =
        (uint64_t)store->options.idle_checkpoint_ms * NS_PER_MS;
    const struct wal_position written = wal_writer_written(store->writer);
    struct stele_error ignored;
    uint64_t past_ns;
    bool due;
    bool froze;

    mutex_lock(&store->keeper_mutex);
    due = !store->frozen && !store->index_dead &&
          written.unit > store->applied.unit;
    mutex_unlock(&store->keeper_mutex);
    if (!due) {
        return 0;
    }
    past_ns = ns_since(store, atomic_load(&store->activity_ns));
    if (past_ns < idle_ns) {
        return idle_ns - past_ns;
    }
    if (commit_freeze(store, &froze, &ignored) != STELE_OK) {
        return (uint64_t)RETRY_MS * NS_PER_MS; /* No memory, or poisoned. */
    }
    return 0;
}

/* The sooner of two waits; 0 means none. */
static uint64_t sooner(uint64_t left_ns, uint64_t right_ns)
{
    if (left_ns == 0 || right_ns == 0) {
        return left_ns + right_ns;
    }
    return left_ns < right_ns ? left_ns : right_ns;
}

uint64_t keepers_tend_log(struct stele *store)
{
    uint64_t wait_ns = tend_relaxed(store);

    if (store->tuning.manual) {
        damage_tend(store); /* There is no base keeper to do it. */
    }
    wait_ns = sooner(wait_ns, tend_segments(store));
    wait_ns = sooner(wait_ns, tend_anchor(store));
    return sooner(wait_ns, tend_idle(store));
}

void keepers_kick_log(struct stele *store)
{
    store->log_keeper_asleep = false;
    store->log_keeper_kicked = true;
    condition_broadcast(&store->log_work);
}

static void *log_keeper_main(void *context)
{
    struct stele *store = context;

    for (;;) {
        uint64_t wait_ns = 0;

        /* First what was committed meanwhile may stay unsynced no longer. */
        commit_lead_for_others(store);
        if (!atomic_load(&store->poisoned)) {
            wait_ns = keepers_tend_log(store);
        }
        mutex_lock(&store->keeper_mutex);
        if (store->stopping) {
            mutex_unlock(&store->keeper_mutex);
            return NULL;
        }
        if (store->log_keeper_kicked) {
            /* There is work, said since we looked: look again. */
        } else if (wait_ns > 0) {
            condition_wait_for(&store->log_work, &store->keeper_mutex, wait_ns);
        } else if (store->log_keeper_asleep) {
            condition_wait(&store->log_work, &store->keeper_mutex);
        } else {
            /* Once more, now that whoever has work knows to say so. */
            store->log_keeper_asleep = true;
        }
        store->log_keeper_kicked = false;
        mutex_unlock(&store->keeper_mutex);
    }
}

/* ---- Base keeper ----------------------------------------------------------------- */

static bool is_stopping(struct stele *store)
{
    bool stopping;

    mutex_lock(&store->keeper_mutex);
    stopping = store->stopping;
    mutex_unlock(&store->keeper_mutex);
    return stopping;
}

/* How long to leave the disk to the commits before the next transaction: the
 * whole pause while the active memtable is less than half full, none from three
 * quarters on, and in between less the fuller it is. */
static uint64_t pause_ns(struct stele *store)
{
    struct state *current = state_acquire(&store->publisher);
    const struct state_layer *active = &current->layers[STATE_ACTIVE];
    const uint64_t limit = store->options.memtable_bytes;
    const uint64_t bytes =
        memtable_bytes(active->memtable) + range_set_bytes(active->ranges);
    const uint64_t whole = store->tuning.checkpoint_pause_ms * NS_PER_MS;
    bool hurry;

    state_release(current);
    mutex_lock(&store->keeper_mutex);
    hurry = store->checkpoint_hurry > 0;
    mutex_unlock(&store->keeper_mutex);
    if (hurry) {
        return 0;
    }
    if (bytes <= limit / 2) {
        return whole;
    }
    if (bytes >= limit - limit / 4) {
        return 0;
    }
    return whole / 64 * ((limit - limit / 4 - bytes) * 64 / (limit / 4));
}

/* Pause; false: go on at once, somebody waits or the store closes. */
static void rest(struct stele *store)
{
    const uint64_t wait_ns = pause_ns(store);

    if (wait_ns == 0) {
        return;
    }
    mutex_lock(&store->keeper_mutex);
    if (!store->stopping && store->checkpoint_hurry == 0) {
        condition_wait_for(&store->base_work, &store->keeper_mutex, wait_ns);
    }
    mutex_unlock(&store->keeper_mutex);
}

/* A snapshot under way goes on by a step. How long to leave the disk to others
 * before the next, in ms; BASE_TICK_MS: there is none. */
static uint64_t tend_snapshot(struct stele *store)
{
    struct stele_error ignored; /* Told in the statistics, and to who waits. */

    if (store->snapshot_run == NULL) {
        return BASE_TICK_MS;
    }
    if (snapshots_advance(store, store->tuning.snapshot_step_bytes, &ignored) !=
            STELE_OK ||
        store->snapshot_run == NULL) {
        return BASE_TICK_MS;
    }
    return snapshots_are_late(store) ? 0 : store->tuning.checkpoint_pause_ms;
}

/* Between two checkpoints: the index is the state of one LSN. */
static void begin_snapshot_if_due(struct stele *store)
{
    struct stele_error ignored;

    if (store->snapshot_run == NULL && snapshots_due(store) &&
        snapshots_begin(store, &ignored) != STELE_OK) {
        return; /* Tried again later. */
    }
}

static enum stele_status drain(struct stele *store, struct stele_error *error)
{
    struct checkpoint *checkpoint;
    enum stele_status status = checkpoint_begin(store, &checkpoint, error);
    bool done = false;

    if (status != STELE_OK) {
        return status;
    }
    /* Small ones, also if somebody waits for the end: a commit's sync has to wait for
     * the disk to be done with one. */
    checkpoint_limit_pages(checkpoint, store->tuning.checkpoint_pages_per_step);
    while (status == STELE_OK && !done && !is_stopping(store)) {
        status =
            checkpoint_advance(store, checkpoint, UINT64_MAX, &done, error);
        /* Both go on, however much is committed. */
        (void)tend_snapshot(store);
        if (status == STELE_OK && !done) {
            rest(store);
        }
    }
    checkpoint_destroy(checkpoint);
    return status;
}

static void *base_keeper_main(void *context)
{
    struct stele *store = context;
    unsigned ticks = 0;

    for (;;) {
        struct stele_error error;
        uint64_t wait_ms = BASE_TICK_MS;
        bool frozen;
        bool unseen;

        mutex_lock(&store->keeper_mutex);
        frozen = store->frozen && !store->index_dead;
        mutex_unlock(&store->keeper_mutex);
        if (atomic_load(&store->poisoned)) {
            frozen = true; /* Seen, but nothing is written any more. */
        } else if (frozen) {
            wait_ms = drain(store, &error) == STELE_OK ? 0 : RETRY_MS;
        }
        if (atomic_load(&store->poisoned)) {
            snapshots_abort(store);
        } else {
            uint64_t snapshot_wait_ms;

            begin_snapshot_if_due(store);
            snapshot_wait_ms = tend_snapshot(store);
            wait_ms = wait_ms < snapshot_wait_ms ? wait_ms : snapshot_wait_ms;
        }
        damage_tend(store);
        state_sweep(&store->publisher);
        commit_keep_spare(store);
        if (++ticks % READER_CHECK_TICKS == 0 &&
            index_reader_check(store->index, &error) != STELE_OK) {
            ticks = 0; /* Tried again in a minute. */
        }
        mutex_lock(&store->keeper_mutex);
        if (store->stopping) {
            mutex_unlock(&store->keeper_mutex);
            snapshots_abort(store);
            return NULL;
        }
        /* Frozen, or a snapshot asked for, since we looked, so that nobody's
         * signal was waited for. */
        unseen = !store->index_dead &&
                 ((store->frozen && !frozen) || (snapshots_are_awaited(store) &&
                                                 store->snapshot_run == NULL));
        if (wait_ms > 0 && !unseen) {
            condition_wait_for(&store->base_work, &store->keeper_mutex,
                               wait_ms * NS_PER_MS);
        }
        mutex_unlock(&store->keeper_mutex);
    }
}

/* ---- Both ------------------------------------------------------------------------ */

enum stele_status keepers_start(struct stele *store, struct stele_error *error)
{
    sigset_t all;
    sigset_t before;
    int log_result;
    int base_result = 0;

    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    store->keepers_started = true;
    log_result =
        pthread_create(&store->log_keeper, NULL, log_keeper_main, store);
    if (log_result == 0) {
        base_result =
            pthread_create(&store->base_keeper, NULL, base_keeper_main, store);
    }
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (log_result == 0 && base_result == 0) {
        return STELE_OK;
    }
    store->keepers_started = false;
    if (log_result == 0) {
        mutex_lock(&store->keeper_mutex);
        store->stopping = true;
        condition_broadcast(&store->log_work);
        mutex_unlock(&store->keeper_mutex);
        pthread_join(store->log_keeper, NULL);
    }
    return error_set_errno(error, STELE_IO,
                           log_result != 0 ? log_result : base_result,
                           "start keeper threads");
}

void keepers_stop(struct stele *store)
{
    if (!store->keepers_started) {
        snapshots_abort(store);
        return;
    }
    mutex_lock(&store->keeper_mutex);
    store->stopping = true;
    condition_broadcast(&store->log_work);
    condition_broadcast(&store->base_work);
    mutex_unlock(&store->keeper_mutex);
    pthread_join(store->log_keeper, NULL);
    pthread_join(store->base_keeper, NULL);
    store->keepers_started = false;
}
