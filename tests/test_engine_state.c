/*
 * tests/test_engine_state.c -- engine/state.h: the published object, and that it
 * lives exactly as long as somebody needs it.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "engine/state.h"

#define BYTES(literal) ((struct bytes){literal, sizeof(literal) - 1})

enum {
    FIRST_LSN = 10,
    MEMTABLE_BYTES = 64 << 10,
    HASH_SEED = 1,
    READERS = 4,
    PUBLICATIONS = 5000,
    FREEZE_EVERY = 50,
};

/* ---- A small vocabulary ------------------------------------------------------------ */

static struct state_publisher publisher;
static struct memtable *memtable;
static struct stele_error error;

static struct memtable *make_memtable(void)
{
    struct memtable *made;

    assert_int_equal(memtable_create(MEMTABLE_BYTES, HASH_SEED, &made, &error),
                     STELE_OK);
    return made;
}

/* One fragment. */
static struct range_set *make_ranges(uint64_t lsn)
{
    struct range_builder builder;
    struct range_set *ranges;

    range_builder_init(&builder);
    assert_int_equal(range_builder_add(&builder, BYTES("t\0a"), BYTES("t\0b"),
                                       lsn, 0, &error),
                     STELE_OK);
    assert_int_equal(range_builder_finish(&builder, NULL, &ranges, &error),
                     STELE_OK);
    range_builder_deinit(&builder);
    return ranges;
}

static int start(void **state)
{
    (void)state;
    memset(&publisher, 0, sizeof publisher);
    memtable = make_memtable();
    return state_publisher_init(&publisher, FIRST_LSN, memtable, NULL,
                                &error) == STELE_OK
               ? 0
               : -1;
}

static int stop(void **state)
{
    (void)state;
    state_publisher_deinit(&publisher);
    memtable_unref(memtable);
    return 0;
}

static struct state *allocated(void)
{
    struct state *next = state_allocate();

    assert_non_null(next);
    return next;
}

static void publish(uint64_t lsn, struct range_set *ranges)
{
    state_publish_commit(&publisher, allocated(), lsn, ranges);
}

static void freeze_onto(struct memtable *fresh)
{
    state_publish_freeze(&publisher, allocated(), fresh);
}

static uint64_t visible_lsn(void)
{
    struct state *current = state_acquire(&publisher);
    const uint64_t lsn = current->lsn;

    state_release(current);
    return lsn;
}

static size_t retired_count(void)
{
    size_t count = 0;

    for (const struct state *state = publisher.retired; state != NULL;
         state = state->retired_next) {
        count++;
    }
    return count;
}

/* ---- Publishing ------------------------------------------------------------------------ */

static void the_first_state_is_what_it_was_started_with(void **state)
{
    struct state *current = state_acquire(&publisher);

    (void)state;
    assert_int_equal(current->lsn, FIRST_LSN);
    assert_ptr_equal(current->layers[STATE_ACTIVE].memtable, memtable);
    assert_null(current->layers[STATE_ACTIVE].ranges);
    assert_null(current->layers[STATE_FROZEN].memtable);
    state_release(current);
}

static void a_commit_replaces_the_lsn_and_the_fragments(void **state)
{
    struct range_set *ranges = make_ranges(11);
    struct state *current;

    (void)state;
    publish(11, ranges);
    current = state_acquire(&publisher);
    assert_int_equal(current->lsn, 11);
    assert_ptr_equal(current->layers[STATE_ACTIVE].memtable, memtable);
    assert_ptr_equal(current->layers[STATE_ACTIVE].ranges, ranges);
    state_release(current);
    range_set_unref(ranges); /* The state has a reference of its own. */
    assert_int_equal(visible_lsn(), 11);
}

static void a_freeze_moves_the_active_layer_down(void **state)
{
    struct range_set *ranges = make_ranges(11);
    struct memtable *fresh = make_memtable();
    struct state *current;

    (void)state;
    publish(11, ranges);
    freeze_onto(fresh);
    current = state_acquire(&publisher);
    assert_int_equal(current->lsn, 11);
    assert_ptr_equal(current->layers[STATE_ACTIVE].memtable, fresh);
    assert_null(current->layers[STATE_ACTIVE].ranges);
    assert_ptr_equal(current->layers[STATE_FROZEN].memtable, memtable);
    assert_ptr_equal(current->layers[STATE_FROZEN].ranges, ranges);
    state_release(current);

    publish(12, NULL); /* The frozen layer stays. */
    current = state_acquire(&publisher);
    assert_ptr_equal(current->layers[STATE_FROZEN].ranges, ranges);
    state_release(current);

    state_publish_drained(&publisher, allocated());
    current = state_acquire(&publisher);
    assert_int_equal(current->lsn, 12);
    assert_ptr_equal(current->layers[STATE_ACTIVE].memtable, fresh);
    assert_null(current->layers[STATE_FROZEN].memtable);
    assert_null(current->layers[STATE_FROZEN].ranges);
    state_release(current);
    range_set_unref(ranges);
    memtable_unref(fresh);
}

static void a_rebase_replaces_everything(void **state)
{
    struct range_set *ranges = make_ranges(20);
    struct memtable *fresh = make_memtable();
    struct memtable *other = make_memtable();
    struct state *current;

    (void)state;
    freeze_onto(other);
    state_publish_rebase(&publisher, allocated(), 20, fresh, ranges);
    current = state_acquire(&publisher);
    assert_int_equal(current->lsn, 20);
    assert_ptr_equal(current->layers[STATE_ACTIVE].memtable, fresh);
    assert_ptr_equal(current->layers[STATE_ACTIVE].ranges, ranges);
    assert_null(current->layers[STATE_FROZEN].memtable);
    state_release(current);
    range_set_unref(ranges);
    memtable_unref(fresh);
    memtable_unref(other);
}

/* ---- Lifetimes ---------------------------------------------------------------------------- */

static void a_state_that_nobody_holds_goes_with_its_replacement(void **state)
{
    (void)state;
    publish(11, NULL);
    publish(12, NULL);
    assert_int_equal(retired_count(), 0);
}

static void a_held_state_stays_as_it_is(void **state)
{
    struct range_set *ranges = make_ranges(11);
    struct memtable *fresh = make_memtable();
    struct state *held;

    (void)state;
    publish(11, ranges);
    held = state_acquire(&publisher);
    publish(12, NULL);
    freeze_onto(fresh);
    state_publish_drained(&publisher, allocated());
    range_set_unref(ranges); /* Now only the held one has them. */
    memtable_unref(fresh);
    assert_int_equal(held->lsn, 11);
    assert_ptr_equal(held->layers[STATE_ACTIVE].memtable, memtable);
    assert_int_equal(range_set_count(held->layers[STATE_ACTIVE].ranges), 1);
    assert_int_equal(retired_count(), 1);

    state_release(held);
    assert_int_equal(retired_count(), 1); /* Until somebody sweeps. */
    state_sweep(&publisher);
    assert_int_equal(retired_count(), 0);
}

static void a_state_is_held_as_often_as_it_was_acquired(void **state)
{
    struct state *held = state_acquire(&publisher);

    (void)state;
    assert_ptr_equal(state_acquire(&publisher), held);
    publish(11, NULL);
    state_release(held);
    state_sweep(&publisher);
    assert_int_equal(retired_count(), 1);
    state_release(held);
    state_sweep(&publisher);
    assert_int_equal(retired_count(), 0);
}

static void any_number_of_states_may_be_held(void **state)
{
    struct state *held[3 * STATE_HAZARD_SLOTS];
    const size_t count = sizeof held / sizeof *held;

    (void)state;
    for (size_t index = 0; index < count; index++) {
        held[index] = state_acquire(&publisher);
        publish(FIRST_LSN + 1 + index, NULL);
    }
    assert_int_equal(retired_count(), count);
    for (size_t index = 0; index < count; index += 2) {
        assert_int_equal(held[index]->lsn, FIRST_LSN + index);
        state_release(held[index]);
    }
    state_sweep(&publisher);
    assert_int_equal(retired_count(), count / 2);
    for (size_t index = 1; index < count; index += 2) {
        assert_int_equal(held[index]->lsn, FIRST_LSN + index);
        state_release(held[index]);
    }
    state_sweep(&publisher);
    assert_int_equal(retired_count(), 0);
}

/* They count in `memtable_bytes`, so that old views cannot fill the memory. */
static void fragments_that_only_old_views_use_are_counted(void **state)
{
    struct range_set *ranges = make_ranges(11);
    struct state *held;

    (void)state;
    publish(11, ranges);
    held = state_acquire(&publisher);
    assert_int_equal(atomic_load(&publisher.retired_bytes), 0);
    publish(12, NULL);
    assert_int_equal(atomic_load(&publisher.retired_bytes),
                     range_set_bytes(ranges));
    state_release(held);
    state_sweep(&publisher);
    assert_int_equal(atomic_load(&publisher.retired_bytes), 0);
    range_set_unref(ranges);
}

static void what_was_allocated_for_nothing_is_given_back(void **state)
{
    (void)state;
    state_discard(allocated());
    state_discard(NULL);
}

/* ---- Threads --------------------------------------------------------------------------------- */

static _Atomic bool stopping;

/* Acquire and release as fast as it goes; what is seen must be whole, and time
 * must not run backwards. Returns NULL, or a complaint. */
static void *read_until_stopped(void *context)
{
    uint64_t lsn_before = 0;

    (void)context;
    while (!atomic_load(&stopping)) {
        struct state *current = state_acquire(&publisher);
        const struct state_layer *active = &current->layers[STATE_ACTIVE];
        const struct range_fragment *fragment =
            range_set_find(active->ranges, BYTES("t\0a"));
        const char *complaint = NULL;

        if (current->lsn < lsn_before) {
            complaint = "an older state after a newer one";
        } else if (fragment != NULL && fragment->lsn != current->lsn) {
            complaint = "fragments of another state";
        } else if (memtable_node_count(active->memtable) != 0) {
            complaint = "a memtable that is not one";
        } else {
            lsn_before = current->lsn;
            state_release(current);
            continue;
        }
        state_release(current);
        return (void *)(uintptr_t)complaint;
    }
    return NULL;
}

static void readers_and_a_publisher_do_not_disturb_each_other(void **state)
{
    pthread_t readers[READERS];

    (void)state;
    atomic_store(&stopping, false);
    for (int index = 0; index < READERS; index++) {
        assert_int_equal(
            pthread_create(&readers[index], NULL, read_until_stopped, NULL), 0);
    }
    for (uint64_t count = 1; count <= PUBLICATIONS; count++) {
        struct range_set *ranges = make_ranges(FIRST_LSN + count);

        publish(FIRST_LSN + count, ranges);
        range_set_unref(ranges);
        if (count % FREEZE_EVERY == 0) {
            struct memtable *fresh = make_memtable();

            freeze_onto(fresh);
            memtable_unref(fresh);
            state_publish_drained(&publisher, allocated());
        }
    }
    atomic_store(&stopping, true);
    for (int index = 0; index < READERS; index++) {
        void *complaint;

        assert_int_equal(pthread_join(readers[index], &complaint), 0);
        if (complaint != NULL) {
            fail_msg("%s", (const char *)complaint);
        }
    }
    state_sweep(&publisher);
    assert_int_equal(retired_count(), 0);
    assert_int_equal(visible_lsn(), FIRST_LSN + PUBLICATIONS);
}

#define STATE_TEST(name) cmocka_unit_test_setup_teardown(name, start, stop)

int main(void)
{
    const struct CMUnitTest tests[] = {
        STATE_TEST(the_first_state_is_what_it_was_started_with),
        STATE_TEST(a_commit_replaces_the_lsn_and_the_fragments),
        STATE_TEST(a_freeze_moves_the_active_layer_down),
        STATE_TEST(a_rebase_replaces_everything),
        STATE_TEST(a_state_that_nobody_holds_goes_with_its_replacement),
        STATE_TEST(a_held_state_stays_as_it_is),
        STATE_TEST(a_state_is_held_as_often_as_it_was_acquired),
        STATE_TEST(any_number_of_states_may_be_held),
        STATE_TEST(fragments_that_only_old_views_use_are_counted),
        STATE_TEST(what_was_allocated_for_nothing_is_given_back),
        STATE_TEST(readers_and_a_publisher_do_not_disturb_each_other),
    };

    return cmocka_run_group_tests_name("engine/state", tests, NULL, NULL);
}
