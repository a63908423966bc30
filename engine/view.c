/*
 * engine/view.c -- views, and point reads in them.
 *
 * Opening, the happy path: pin the published state; take an index reader from
 * the pool; if the index has not gone past the state's LSN, this is a consistent
 * pair. Pinning comes first: memtables leave the state only after the
 * checkpoint's last commit, so what the state no longer has, a later index
 * reader has.
 */
#include "engine/view.h"

#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "engine/cursor.h"
#include "engine/damage.h"
#include "engine/follow.h"
#include "engine/limits.h"
#include "engine/lookup.h"
#include "engine/past.h"
#include "engine/registry.h"

enum { VIEW_TRIES_MAX = 1000 };

static enum stele_status pin_once(struct stele *store, struct state **state_out,
                                  struct base *base_out,
                                  struct stele_error *error)
{
    struct state *state = state_acquire(&store->publisher);
    const enum stele_status status =
        index_reader_acquire(store->index, &base_out->index, error);

    if (status != STELE_OK) {
        state_release(state);
        return status;
    }
    *state_out = state;
    return STELE_OK;
}

/* Pin a state and an index reader that fit together. */
static enum stele_status pin(struct stele *store, struct stele_view *view,
                             struct stele_error *error)
{
    for (int tries = 0; tries < VIEW_TRIES_MAX; tries++) {
        struct base base = {0};
        enum stele_status status;
        struct state *state;

        status = store->read_only ? follow_pin(store, &state, &base, error)
                                  : pin_once(store, &state, &base, error);
        if (status != STELE_OK) {
            return status;
        }
        if (base.index == NULL ||
            (index_reader_applied(base.index)->lsn <= state->lsn &&
             index_reader_applying(base.index)->lsn <= state->lsn)) {
            view->state = state;
            view->base = base;
            view->lsn = state->lsn;
            return STELE_OK;
        }
        /* A checkpoint has begun since the state was pinned: again, with a
         * newer state. */
        base_release(&base);
        state_release(state);
    }
    return error_set(error, STELE_BUSY,
                     "open view: the index stayed ahead of the state");
}

/* One more of views_max, holding nothing yet. */
static enum stele_status enroll(struct stele *store,
                                struct stele_view **view_out,
                                struct stele_error *error)
{
    struct stele_view *view = calloc(1, sizeof *view);

    if (view == NULL) {
        return error_no_memory(error, "view");
    }
    view->store = store;
    view->process = store->process;
    view->opened_ns = io_clock_monotonic_ns(store->io);
    mutex_lock(&store->views_mutex);
    if (store->views_open >= store->options.views_max) {
        mutex_unlock(&store->views_mutex);
        free(view);
        return error_set(error, STELE_BUSY,
                         "open view: %" PRIu32 " are open, the most there may "
                         "be",
                         store->options.views_max);
    }
    store->views_open++;
    view->next = store->views;
    if (view->next != NULL) {
        view->next->prev = view;
    }
    store->views = view;
    mutex_unlock(&store->views_mutex);
    *view_out = view;
    return STELE_OK;
}

/* To the caller, if it could be opened. */
static enum stele_status hand_out(struct stele_view *view,
                                  enum stele_status status,
                                  struct stele_view **view_out)
{
    if (status == STELE_OK) {
        *view_out = view;
    } else {
        stele_view_close(view);
    }
    return status;
}

enum stele_status stele_view_open(struct stele *store,
                                  struct stele_view **view_out,
                                  struct stele_error *error)
{
    enum stele_status status = store_check_process(store, error);
    struct stele_view *view = NULL;

    if (status == STELE_OK) {
        status = enroll(store, &view, error);
    }
    if (status == STELE_OK) {
        status = pin(store, view, error);
    }
    return hand_out(view, status, view_out);
}

enum stele_status stele_view_open_at(struct stele *store, uint64_t lsn,
                                     struct stele_view **view_out,
                                     struct stele_error *error)
{
    enum stele_status status = store_check_process(store, error);
    struct stele_view *view = NULL;

    if (status == STELE_OK) {
        status = enroll(store, &view, error);
    }
    if (status == STELE_OK) {
        status = past_pin(store, lsn, &view->state, &view->base, error);
    }
    if (status == STELE_OK) {
        view->past = true;
        view->lsn = lsn;
    }
    return hand_out(view, status, view_out);
}

static void release_state(struct stele_view *view)
{
    if (view->state == NULL) {
        return;
    }
    if (view->past) {
        state_destroy(view->state);
    } else {
        state_release(view->state);
    }
    view->state = NULL;
}

static void unpin(struct stele_view *view)
{
    base_release(&view->base);
    release_state(view);
}

void stele_view_close(struct stele_view *view)
{
    struct stele *store;

    if (view == NULL) {
        return;
    }
    store = view->store;
    cursor_orphan_all(view);
    if (view_check_process(view, NULL) != STELE_OK) {
        /* What it pins is the parent's, or went with the store; but what a past
         * one holds is its own. */
        base_forsake(&view->base);
        if (view->past && view->state != NULL) {
            state_forsake(view->state);
        }
        free(view);
        return;
    }
    unpin(view);
    mutex_lock(&store->views_mutex);
    if (view->prev != NULL) {
        view->prev->next = view->next;
    } else {
        store->views = view->next;
    }
    if (view->next != NULL) {
        view->next->prev = view->prev;
    }
    store->views_open--;
    mutex_unlock(&store->views_mutex);
    free(view);
}

uint64_t stele_view_lsn(const struct stele_view *view)
{
    return view->lsn;
}

enum stele_status view_check_process(const struct stele_view *view,
                                     struct stele_error *error)
{
    return registry_check_process(view->process, error);
}

enum stele_status view_check(struct stele_view *view, struct stele_error *error)
{
    const uint64_t age_max_ns =
        (uint64_t)view->store->options.view_age_max_ms * 1000000u;

    if (age_max_ns == 0) {
        return STELE_OK;
    }
    /* Cursors borrow from the view's base: they notice, and let go, first. */
    if (view->state != NULL &&
        io_clock_monotonic_ns(view->store->io) - view->opened_ns > age_max_ns &&
        view->cursors == NULL) {
        unpin(view);
    }
    if (view->state == NULL ||
        io_clock_monotonic_ns(view->store->io) - view->opened_ns > age_max_ns) {
        return error_set(error, STELE_EXPIRED,
                         "the view is older than view_age_max_ms (%" PRIu32 ")",
                         view->store->options.view_age_max_ms);
    }
    return STELE_OK;
}

enum stele_status view_note(struct stele_view *view, enum stele_status status)
{
    return view->base.index == NULL ? status : damage_note(view->store, status);
}

static enum stele_status get(struct stele_view *view, const char *table,
                             const void *key, size_t key_bytes,
                             struct lookup_value *value_out,
                             struct stele_error *error)
{
    struct full_key full;
    enum stele_status status =
        limit_check_key(table, key, key_bytes, "key", error);

    if (status == STELE_OK) {
        status = view_check(view, error);
    }
    if (status != STELE_OK) {
        return status;
    }
    full_key_init(&full, (struct bytes){table, strlen(table)},
                  (struct bytes){key, key_bytes});
    status =
        view_note(view, lookup_key(view->state, view->lsn, NULL, &view->base,
                                   full_key_bytes(&full), value_out, error));
    if (status == STELE_NOT_FOUND) {
        error_set(error, STELE_NOT_FOUND, "no such key in table %s", table);
    }
    return status;
}

enum stele_status stele_view_get(struct stele_view *view, const char *table,
                                 const void *key, size_t key_bytes,
                                 struct stele_value *value_out,
                                 struct stele_error *error)
{
    struct lookup_value found;
    enum stele_status status = view_check_process(view, error);

    if (status != STELE_OK) {
        return status;
    }
    if (view->store->options.view_age_max_ms != 0) {
        return error_set(error, STELE_INVALID,
                         "zero-copy reads are refused while view_age_max_ms is "
                         "set");
    }
    status = get(view, table, key, key_bytes, &found, error);
    if (status != STELE_OK) {
        return status;
    }
    *value_out = (struct stele_value){
        .data = found.value.data, .bytes = found.value.size, .lsn = found.lsn};
    return STELE_OK;
}

enum stele_status stele_view_copy(struct stele_view *view, const char *table,
                                  const void *key, size_t key_bytes,
                                  void *buffer, size_t buffer_bytes,
                                  size_t *value_bytes_out, uint64_t *lsn_out,
                                  struct stele_error *error)
{
    struct lookup_value found;
    const struct base_kept *kept;
    enum stele_status status = view_check_process(view, error);

    if (status != STELE_OK) {
        return status;
    }
    kept = view->base.kept;
    status = get(view, table, key, key_bytes, &found, error);
    if (status == STELE_OK) {
        *value_bytes_out = found.value.size;
        if (lsn_out != NULL) {
            *lsn_out = found.lsn;
        }
        if (found.value.size > buffer_bytes) {
            status = error_set(error, STELE_TOO_BIG,
                               "the value has %zu bytes, the buffer %zu",
                               found.value.size, buffer_bytes);
        } else if (found.value.size > 0) {
            memcpy(buffer, found.value.data, found.value.size);
        }
        base_keep_up_to(&view->base, kept);
    }
    return status;
}
