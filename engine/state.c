/* engine/state.c -- see engine/state.h. */
#include "engine/state.h"

#include <assert.h>
#include <stdlib.h>

#include "base/error.h"

static void layer_set(struct state_layer *layer, struct memtable *memtable,
                      struct range_set *ranges)
{
    layer->memtable = memtable;
    layer->ranges = ranges;
    if (memtable != NULL) {
        memtable_ref(memtable);
    }
    range_set_ref(ranges);
}

static void state_free(struct state *state)
{
    for (int index = 0; index < STATE_LAYERS; index++) {
        memtable_unref(state->layers[index].memtable);
        range_set_unref(state->layers[index].ranges);
    }
    free(state);
}

struct state *state_allocate(void)
{
    return calloc(1, sizeof(struct state));
}

void state_discard(struct state *unused)
{
    free(unused);
}

struct state *state_create(uint64_t lsn, struct memtable *memtable,
                           struct range_set *ranges)
{
    struct state *state = state_allocate();

    if (state != NULL) {
        state->lsn = lsn;
        layer_set(&state->layers[STATE_ACTIVE], memtable, ranges);
    }
    return state;
}

void state_destroy(struct state *state)
{
    state_free(state);
}

enum stele_status state_publisher_init(struct state_publisher *publisher,
                                       uint64_t lsn, struct memtable *active,
                                       struct range_set *ranges,
                                       struct stele_error *error)
{
    struct state *first = state_create(lsn, active, ranges);

    if (first == NULL) {
        return error_no_memory(error, "state");
    }
    mutex_init(&publisher->mutex);
    atomic_store(&publisher->current, first);
    return STELE_OK;
}

void state_publisher_deinit(struct state_publisher *publisher)
{
    struct state *current = atomic_load(&publisher->current);

    if (current == NULL) {
        return;
    }
    state_sweep(publisher);
    assert(publisher->retired == NULL);
    assert(atomic_load(&current->references) == 0);
    state_free(current);
    atomic_store(&publisher->current, NULL);
    mutex_deinit(&publisher->mutex);
}

static bool is_still(const struct state *state)
{
    for (int index = 0; index < STATE_LAYERS; index++) {
        struct memtable *memtable = state->layers[index].memtable;

        if (memtable != NULL && !memtable_is_still(memtable)) {
            return false;
        }
    }
    return true;
}

void state_forsake(struct state *state)
{
    if (is_still(state)) {
        state_free(state);
    }
}

void state_publisher_forsake(struct state_publisher *publisher)
{
    struct state *current = atomic_load(&publisher->current);
    struct state *next;

    if (current == NULL || !mutex_try_lock(&publisher->mutex)) {
        return;
    }
    current->retired_next = publisher->retired;
    for (const struct state *state = current; state != NULL;
         state = state->retired_next) {
        if (!is_still(state)) {
            return;
        }
    }
    for (; current != NULL; current = next) {
        next = current->retired_next;
        state_free(current);
    }
}

/* A slot that no other thread is using right now. Threads start at different
 * slots, so that they rarely meet. */
static struct state_hazard *hazard_claim(struct state_publisher *publisher,
                                         struct state *state)
{
    static _Thread_local unsigned start;
    static _Atomic unsigned threads;

    if (start == 0) {
        start = atomic_fetch_add(&threads, 1) + 1;
    }
    for (unsigned index = start;; index++) {
        struct state_hazard *hazard =
            &publisher->hazards[index % STATE_HAZARD_SLOTS];
        struct state *expected = NULL;

        if (atomic_compare_exchange_strong(&hazard->state, &expected, state)) {
            return hazard;
        }
    }
}

struct state *state_acquire(struct state_publisher *publisher)
{
    struct state *state = atomic_load(&publisher->current);
    struct state_hazard *hazard = hazard_claim(publisher, state);

    for (;;) {
        /* Sequentially consistent: either this load sees the replacement, or
         * the sweep after the replacement sees the slot. */
        struct state *current = atomic_load(&publisher->current);

        if (current == state) {
            break;
        }
        state = current;
        atomic_store(&hazard->state, state);
    }
    atomic_fetch_add(&state->references, 1);
    atomic_store(&hazard->state, NULL);
    return state;
}

void state_release(struct state *state)
{
    const uint64_t before = atomic_fetch_sub(&state->references, 1);

    assert(before > 0);
    (void)before; /* The sweep frees it, should it be retired. */
}

static bool is_hazard(struct state_publisher *publisher,
                      const struct state *state)
{
    for (size_t index = 0; index < STATE_HAZARD_SLOTS; index++) {
        if (atomic_load(&publisher->hazards[index].state) == state) {
            return true;
        }
    }
    return false;
}

static void sweep(struct state_publisher *publisher)
{
    const struct state *current = atomic_load(&publisher->current);
    const struct range_set *counted = current->layers[STATE_ACTIVE].ranges;
    struct state **link = &publisher->retired;
    uint64_t kept_bytes = 0;

    while (*link != NULL) {
        struct state *state = *link;

        /* Most are kept by a count, which is cheap to see. Before freeing: the
         * slots first, then the count, as a reader counts before it clears. */
        if (atomic_load(&state->references) != 0 ||
            is_hazard(publisher, state) ||
            atomic_load(&state->references) != 0) {
            const struct range_set *ranges = state->layers[STATE_ACTIVE].ranges;

            /* Neighbours mostly share one, with each other or the current. */
            if (ranges != counted) {
                kept_bytes +=
                    range_set_bytes(state->layers[STATE_ACTIVE].ranges);
                counted = ranges;
            }
            link = &state->retired_next;
            continue;
        }
        *link = state->retired_next;
        state_free(state);
    }
    atomic_store(&publisher->retired_bytes, kept_bytes);
}

static void replace(struct state_publisher *publisher, struct state *next)
{
    struct state *before = atomic_exchange(&publisher->current, next);

    before->retired_next = publisher->retired;
    publisher->retired = before;
    sweep(publisher);
}

void state_publish_commit(struct state_publisher *publisher, struct state *next,
                          uint64_t lsn, struct range_set *active_ranges)
{
    const struct state *before;

    mutex_lock(&publisher->mutex);
    before = atomic_load(&publisher->current);
    assert(lsn >= before->lsn);
    next->lsn = lsn;
    layer_set(&next->layers[STATE_ACTIVE],
              before->layers[STATE_ACTIVE].memtable, active_ranges);
    layer_set(&next->layers[STATE_FROZEN],
              before->layers[STATE_FROZEN].memtable,
              before->layers[STATE_FROZEN].ranges);
    replace(publisher, next);
    mutex_unlock(&publisher->mutex);
}

void state_publish_freeze(struct state_publisher *publisher, struct state *next,
                          struct memtable *active)
{
    const struct state *before;

    mutex_lock(&publisher->mutex);
    before = atomic_load(&publisher->current);
    assert(before->layers[STATE_FROZEN].memtable == NULL);
    next->lsn = before->lsn;
    layer_set(&next->layers[STATE_ACTIVE], active, NULL);
    layer_set(&next->layers[STATE_FROZEN],
              before->layers[STATE_ACTIVE].memtable,
              before->layers[STATE_ACTIVE].ranges);
    replace(publisher, next);
    mutex_unlock(&publisher->mutex);
}

void state_publish_drained(struct state_publisher *publisher,
                           struct state *next)
{
    const struct state *before;

    mutex_lock(&publisher->mutex);
    before = atomic_load(&publisher->current);
    next->lsn = before->lsn;
    layer_set(&next->layers[STATE_ACTIVE],
              before->layers[STATE_ACTIVE].memtable,
              before->layers[STATE_ACTIVE].ranges);
    replace(publisher, next);
    mutex_unlock(&publisher->mutex);
}

void state_publish_rebase(struct state_publisher *publisher, struct state *next,
                          uint64_t lsn, struct memtable *active,
                          struct range_set *active_ranges)
{
    mutex_lock(&publisher->mutex);
    assert(lsn >= atomic_load(&publisher->current)->lsn);
    next->lsn = lsn;
    layer_set(&next->layers[STATE_ACTIVE], active, active_ranges);
    replace(publisher, next);
    mutex_unlock(&publisher->mutex);
}

void state_sweep(struct state_publisher *publisher)
{
    mutex_lock(&publisher->mutex);
    sweep(publisher);
    mutex_unlock(&publisher->mutex);
}
