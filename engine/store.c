/*
 * engine/store.c -- the handle: made, poisoned, closed.
 *
 * Opening: claim and lock the directory (engine/enter.h), then recover and
 * replay (engine/open.h). A failure on the way closes everything again.
 * Closing: let commits finish, sync, checkpoint, declare the end clean. Whatever
 * fails there, the handle is gone and the next open recovers.
 */
#include "engine/store.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "engine/checkpoint.h"
#include "engine/commit.h"
#include "engine/damage.h"
#include "engine/enter.h"
#include "engine/follow.h"
#include "engine/forsake.h"
#include "engine/keepers.h"
#include "engine/open.h"
#include "engine/options.h"
#include "engine/registry.h"

enum stele_status store_check_process(const struct stele *store,
                                      struct stele_error *error)
{
    return registry_check_process(store->process, error);
}

/* ---- Poison and anchor ------------------------------------------------------------ */

void store_poison(struct stele *store, const struct stele_error *error)
{
    mutex_lock(&store->poison_mutex);
    if (!atomic_load(&store->poisoned)) {
        store->poison_error = *error;
        atomic_store(&store->poisoned, true);
    }
    mutex_unlock(&store->poison_mutex);
    mutex_lock(&store->keeper_mutex);
    condition_broadcast(&store->base_progress); /* Nobody waits for room now. */
    mutex_unlock(&store->keeper_mutex);
}

enum stele_status store_check_writable(struct stele *store,
                                       struct stele_error *error)
{
    if (!atomic_load(&store->poisoned)) {
        return STELE_OK;
    }
    /* Not changed after the flag was set. */
    return error_set(error, STELE_POISONED,
                     "writing has stopped, reopen the store: %.200s",
                     store->poison_error.message);
}

static enum stele_status compare_lock(struct stele *store,
                                      struct stele_error *error)
{
    struct io_file_info locked;
    struct io_file_info named;
    enum stele_status status = io_file_info(store->lock_file, &locked, error);

    if (status != STELE_OK) {
        return status;
    }
    status = io_info(store->dir, STORE_LOCK_NAME, &named, error);
    if (status == STELE_NOT_FOUND) {
        return error_set(error, STELE_LOCKED,
                         "LOCK: expected the file that this process has locked "
                         "(inode %" PRIu64 "), but it is missing",
                         locked.inode);
    }
    if (status != STELE_OK) {
        return status;
    }
    if (named.inode != locked.inode || named.device != locked.device) {
        return error_set(error, STELE_LOCKED,
                         "LOCK: expected the file that this process has locked "
                         "(inode %" PRIu64 "), found another (inode %" PRIu64
                         ")",
                         locked.inode, named.inode);
    }
    return STELE_OK;
}

enum stele_status store_check_lock(struct stele *store,
                                   struct stele_error *error)
{
    struct stele_error failure;
    const enum stele_status status = compare_lock(store, &failure);

    if (status == STELE_LOCKED) {
        store_poison(store, &failure);
    } else if (status != STELE_OK && error != NULL) {
        *error = failure; /* Nobody knows: not now. */
    }
    return status == STELE_OK || status == STELE_LOCKED
               ? store_check_writable(store, error)
               : status;
}

enum stele_status store_write_anchor(struct stele *store,
                                     store_anchor_change *change,
                                     const void *context,
                                     struct stele_error *error)
{
    struct stele_error failure;
    struct wal_anchor next;
    enum stele_status status;

    mutex_lock(&store->anchor_mutex);
    status = store_check_writable(store, error);
    if (status == STELE_OK) {
        next = store->anchor;
        change(&next, context);
        status = wal_anchor_write(&store->anchor_file, &next, &failure);
        if (status == STELE_OK) {
            store->anchor = next;
        } else {
            if (status != STELE_NO_SPACE) {
                store_poison(store, &failure);
            }
            if (error != NULL) {
                *error = failure;
            }
        }
    }
    mutex_unlock(&store->anchor_mutex);
    return status;
}

enum stele_status store_read_anchor(struct stele *store,
                                    struct wal_anchor *anchor_out,
                                    struct stele_error *error)
{
    enum stele_status status = STELE_OK;

    if (store->read_only) {
        mutex_lock(&store->follow.mutex);
        status = wal_anchor_read(&store->anchor_file, anchor_out, error);
        mutex_unlock(&store->follow.mutex);
    } else {
        mutex_lock(&store->anchor_mutex);
        *anchor_out = store->anchor;
        mutex_unlock(&store->anchor_mutex);
    }
    return status;
}

uint64_t store_segment_oldest(struct stele *store)
{
    uint64_t seq;

    mutex_lock(&store->anchor_mutex);
    seq = store->anchor.segment_oldest;
    mutex_unlock(&store->anchor_mutex);
    return seq;
}

/* ---- Taking the handle apart ------------------------------------------------------------ */

static void store_free(struct stele *store)
{
    if (store == NULL) {
        return;
    }
    if (store->read_only) {
        follow_stop(store);
    } else {
        commit_queue_deinit(store);
        state_publisher_deinit(&store->publisher);
        memtable_unref(store->spare);
    }
    index_close(store->index);
    wal_writer_destroy(store->writer);
    wal_anchor_close(&store->anchor_file);
    io_dir_close(store->snapshot_dir);
    io_dir_close(store->wal_dir);
    io_dir_close(store->dir);
    registry_release(store->registry); /* Gives the lock up: last. */
    mutex_deinit(&store->prepare_mutex);
    mutex_deinit(&store->retention_mutex);
    mutex_deinit(&store->anchor_mutex);
    mutex_deinit(&store->poison_mutex);
    mutex_deinit(&store->keeper_mutex);
    mutex_deinit(&store->views_mutex);
    mutex_deinit(&store->follow.mutex);
    condition_deinit(&store->base_progress);
    condition_deinit(&store->base_work);
    condition_deinit(&store->log_work);
    free(store);
}

static struct stele *store_allocate(const struct stele_options *options,
                                    const struct store_tuning *tuning)
{
    /* The published state and the hazard slots have cache lines of their own. */
    struct stele *store = aligned_alloc(_Alignof(struct stele), sizeof *store);

    if (store == NULL) {
        return NULL;
    }
    memset(store, 0, sizeof *store);
    store->options = *options;
    store->tuning = *tuning;
    if (tuning->segment_bytes != 0) {
        store->options.segment_bytes = tuning->segment_bytes;
    }
    store->io = tuning->io;
    store->process = registry_process();
    store->read_only = options->mode == STELE_OPEN_READ_ONLY;
    mutex_init(&store->prepare_mutex);
    mutex_init(&store->retention_mutex);
    mutex_init(&store->anchor_mutex);
    mutex_init(&store->poison_mutex);
    mutex_init(&store->keeper_mutex);
    mutex_init(&store->views_mutex);
    mutex_init(&store->follow.mutex);
    condition_init(&store->base_progress);
    condition_init(&store->base_work);
    condition_init(&store->log_work);
    return store;
}

/* ---- Opening ----------------------------------------------------------------- */

enum stele_status store_open(const char *path,
                             const struct stele_options *options,
                             const struct store_tuning *tuning,
                             struct stele **store_out,
                             struct stele_error *error)
{
    struct stele_options taken;
    struct stele *store;
    enum stele_status status = options_take(options, &taken, error);

    if (status != STELE_OK) {
        return error_wrap(error, status, "open %s", path);
    }
    store = store_allocate(&taken, tuning);
    if (store == NULL) {
        return error_no_memory(error, "store");
    }
    status = enter_directory(store, path, error);
    if (status == STELE_OK) {
        store->hash_seed = tuning->hash_seed;
        if (store->hash_seed == 0) {
            status = io_random(store->io, &store->hash_seed,
                               sizeof store->hash_seed, error);
        }
    }
    if (status == STELE_OK) {
        status = enter_store(store, error);
    }
    if (status == STELE_OK) {
        status = open_anchor(store, error);
    }
    if (status == STELE_OK) {
        status = store->read_only ? open_for_reading(store, error)
                                  : open_for_writing(store, error);
    }
    if (status != STELE_OK) {
        store_free(store);
        return error_wrap(error, status, "open %s", path);
    }
    *store_out = store;
    return STELE_OK;
}

enum stele_status stele_open(const char *path,
                             const struct stele_options *options,
                             struct stele **store_out,
                             struct stele_error *error)
{
    struct store_tuning tuning;

    if (path == NULL || path[0] == '\0') {
        return error_set(error, STELE_INVALID, "open: the path is empty");
    }
    store_tuning_init(&tuning);
    return store_open(path, options, &tuning, store_out, error);
}

/* ---- Closing -------------------------------------------------------------------------------------- */

static void declare_clean(struct wal_anchor *anchor, const void *context)
{
    struct stele *store = (struct stele *)(uintptr_t)context;

    anchor->durable = wal_writer_durable(store->writer);
    anchor->clean = !wal_writer_end_is_torn(store->writer);
    anchor->lsn_floor = store->lsn_last;
}

/* Everything into the index, so that the next open replays nothing. */
static enum stele_status checkpoint_at_close(struct stele *store,
                                             struct stele_error *error)
{
    enum stele_status status = checkpoint_run(store, error);
    bool froze = false;

    if (status == STELE_OK) {
        status = commit_freeze(store, &froze, error);
    }
    return status == STELE_OK && froze ? checkpoint_run(store, error) : status;
}

static enum stele_status finish_writing(struct stele *store,
                                        struct stele_error *error)
{
    enum stele_status checkpointed = STELE_OK;
    enum stele_status status = commit_sync(store, error);

    keepers_stop(store);
    if (status == STELE_OK) {
        /* Commits that were queued behind the sync, asynchronous ones. */
        status = commit_sync(store, error);
    }
    if (status == STELE_OK && !store->options.skip_close_checkpoint) {
        /* A full disk costs the next open some replay, no more. */
        checkpointed = checkpoint_at_close(store, error);
    }
    damage_tend(store);
    if (status == STELE_OK) {
        status = store_check_lock(store, error);
    }
    if (status == STELE_OK) {
        /* A clean end is one that the next open need not look behind. */
        status = store_write_anchor(store, declare_clean, store,
                                    checkpointed == STELE_OK ? error : NULL);
    }
    return status == STELE_OK ? checkpointed : status;
}

enum stele_status stele_close(struct stele *store, struct stele_error *error)
{
    enum stele_status status = STELE_OK;
    uint64_t views;

    if (store == NULL) {
        return STELE_OK;
    }
    if (store_check_process(store, NULL) != STELE_OK) {
        store_forsake(store);
        return STELE_OK;
    }
    mutex_lock(&store->views_mutex);
    views = store->views_open;
    mutex_unlock(&store->views_mutex);
    if (views > 0) {
        return error_set(error, STELE_BUSY,
                         "close: %" PRIu64 " views are still open", views);
    }
    if (!store->read_only) {
        status = finish_writing(store, error);
    }
    store_free(store);
    return status == STELE_OK ? STELE_OK : error_wrap(error, status, "close");
}

void store_abandon(struct stele *store)
{
    struct stele_error killed;

    if (!store->read_only) {
        error_set(&killed, STELE_POISONED, "the handle was abandoned");
        store_poison(store, &killed);
        keepers_stop(store);
    }
    store_free(store);
}
