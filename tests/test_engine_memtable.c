/*
 * tests/test_engine_memtable.c -- engine/memtable.h: by example, against a
 * model, and with one writer and three readers at once.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/wait.h>
#include <unistd.h>

#include "engine/memtable.h"

/* ---- Vocabulary ------------------------------------------------------------ */

enum { BYTES_TARGET = 1 << 20, HASH_SEED = 42, CHECK = 7 };
static const uint64_t LATEST = UINT64_MAX;

static uint64_t mix(uint64_t z)
{
    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return z ^ z >> 31;
}

static uint64_t random_state;

/* splitmix64 */
static uint64_t random_next(void)
{
    random_state += UINT64_C(0x9e3779b97f4a7c15);
    return mix(random_state);
}

static size_t random_below(size_t limit)
{
    return (size_t)(random_next() % limit);
}

static void random_start(void)
{
    const char *given = getenv("STELE_TEST_SEED");
    uint64_t seed = 0;

    if (given != NULL) {
        seed = strtoull(given, NULL, 0);
    } else {
        assert_int_equal(getrandom(&seed, sizeof seed, 0), sizeof seed);
    }
    print_message("STELE_TEST_SEED=%llu\n", (unsigned long long)seed);
    random_state = seed;
}

static struct bytes text(const char *string)
{
    return (struct bytes){.data = string, .size = strlen(string)};
}

static struct memtable *create(void)
{
    struct memtable *memtable;

    assert_int_equal(memtable_create(BYTES_TARGET, HASH_SEED, &memtable, NULL),
                     STELE_OK);
    return memtable;
}

static enum stele_status insert(struct memtable *memtable, struct bytes key,
                                uint64_t lsn, uint32_t op_index,
                                enum memtable_kind kind, struct bytes value)
{
    return memtable_insert(memtable, key, memtable_hash(memtable, key), lsn,
                           op_index, kind, value, CHECK, NULL);
}

static void put(struct memtable *memtable, const char *key, uint64_t lsn,
                const char *value)
{
    assert_int_equal(
        insert(memtable, text(key), lsn, 0, MEMTABLE_PUT, text(value)),
        STELE_OK);
}

static const struct memtable_version *find_bytes(
    const struct memtable *memtable, struct bytes key, uint64_t lsn_max)
{
    return memtable_find(memtable, key, memtable_hash(memtable, key), lsn_max);
}

static const struct memtable_version *find(const struct memtable *memtable,
                                           const char *key, uint64_t lsn_max)
{
    return find_bytes(memtable, text(key), lsn_max);
}

static bool has_value(const struct memtable_version *version, const char *value)
{
    return version != NULL && version->value_bytes == strlen(value) &&
           memcmp(version->value, value, version->value_bytes) == 0;
}

static struct memtable_order *acquire(struct memtable *memtable)
{
    struct memtable_order *order;

    assert_int_equal(memtable_order_acquire(memtable, &order, NULL), STELE_OK);
    return order;
}

static bool is_at(const struct memtable_iterator *iterator, const char *key)
{
    return iterator->node != NULL &&
           bytes_compare(memtable_node_key(iterator->node), text(key)) == 0;
}

/* ---- Versions -------------------------------------------------------------- */

static void what_was_not_inserted_is_not_found(void **state)
{
    struct memtable *memtable = create();

    (void)state;
    assert_null(find(memtable, "k", LATEST));
    put(memtable, "k", 1, "v");
    assert_null(find(memtable, "K", LATEST));
    assert_null(find(memtable, "kk", LATEST));
    memtable_unref(memtable);
}

static void a_version_carries_all_that_was_inserted(void **state)
{
    struct memtable *memtable = create();
    const struct memtable_version *version;

    (void)state;
    assert_int_equal(
        insert(memtable, text("k"), 9, 3, MEMTABLE_PUT, text("value")),
        STELE_OK);
    version = find(memtable, "k", LATEST);
    assert_true(has_value(version, "value"));
    assert_int_equal(version->lsn, 9);
    assert_int_equal(version->op_index, 3);
    assert_int_equal(version->check, CHECK);
    assert_int_equal(version->kind, MEMTABLE_PUT);
    assert_null(version->older);
    memtable_unref(memtable);
}

static void find_returns_the_newest_version_up_to_the_lsn(void **state)
{
    struct memtable *memtable = create();

    (void)state;
    put(memtable, "k", 10, "ten");
    put(memtable, "k", 20, "twenty");
    put(memtable, "k", 30, "thirty");
    assert_null(find(memtable, "k", 9));
    assert_true(has_value(find(memtable, "k", 10), "ten"));
    assert_true(has_value(find(memtable, "k", 29), "twenty"));
    assert_true(has_value(find(memtable, "k", 30), "thirty"));
    assert_true(has_value(find(memtable, "k", LATEST), "thirty"));
    memtable_unref(memtable);
}

static void of_one_batch_the_later_operation_is_found(void **state)
{
    struct memtable *memtable = create();

    (void)state;
    assert_int_equal(insert(memtable, text("k"), 1, 0, MEMTABLE_PUT, text("a")),
                     STELE_OK);
    assert_int_equal(insert(memtable, text("k"), 1, 1, MEMTABLE_PUT, text("b")),
                     STELE_OK);
    assert_true(has_value(find(memtable, "k", 1), "b"));
    assert_true(has_value(find(memtable, "k", 1)->older, "a"));
    memtable_unref(memtable);
}

static void deletes_and_touches_are_versions_without_a_value(void **state)
{
    struct memtable *memtable = create();

    (void)state;
    put(memtable, "k", 1, "v");
    assert_int_equal(insert(memtable, text("k"), 2, 0, MEMTABLE_DELETE,
                            (struct bytes){NULL, 0}),
                     STELE_OK);
    assert_int_equal(insert(memtable, text("t"), 2, 1, MEMTABLE_TOUCH,
                            (struct bytes){NULL, 0}),
                     STELE_OK);
    assert_int_equal(find(memtable, "k", 2)->kind, MEMTABLE_DELETE);
    assert_int_equal(find(memtable, "k", 2)->value_bytes, 0);
    assert_int_equal(find(memtable, "t", 2)->kind, MEMTABLE_TOUCH);
    memtable_unref(memtable);
}

static void key_and_value_are_copied(void **state)
{
    struct memtable *memtable = create();
    char key[] = "key";
    char value[] = "value";

    (void)state;
    put(memtable, key, 1, value);
    memset(key, 'x', sizeof key - 1);
    memset(value, 'x', sizeof value - 1);
    assert_true(has_value(find(memtable, "key", 1), "value"));
    memtable_unref(memtable);
}

static void keys_are_bytes_of_any_kind_and_length(void **state)
{
    static const char zeroes[3];
    struct memtable *memtable = create();

    (void)state;
    for (size_t size = 1; size <= 3; size++) {
        assert_int_equal(insert(memtable, (struct bytes){zeroes, size}, size, 0,
                                MEMTABLE_PUT, text("v")),
                         STELE_OK);
    }
    for (size_t size = 1; size <= 3; size++) {
        assert_int_equal(
            find_bytes(memtable, (struct bytes){zeroes, size}, LATEST)->lsn,
            size);
    }
    memtable_unref(memtable);
}

/* The child's verdict: an assertion ends it with SIGABRT. */
static bool inserting_aborts(struct memtable *memtable, uint64_t lsn,
                             uint32_t op_index)
{
    const pid_t child = fork();
    int outcome = 0;

    assert_true(child >= 0);
    if (child == 0) {
        const int nowhere = open("/dev/null", O_WRONLY);

        (void)dup2(nowhere, STDERR_FILENO);
        (void)signal(SIGABRT, SIG_DFL);
        (void)insert(memtable, text("k"), lsn, op_index, MEMTABLE_PUT,
                     text("v"));
        _exit(0);
    }
    assert_int_equal(waitpid(child, &outcome, 0), child);
    return WIFSIGNALED(outcome) && WTERMSIG(outcome) == SIGABRT;
}

static void a_version_that_is_not_the_newest_is_our_bug(void **state)
{
    struct memtable *memtable = create();

    (void)state;
    assert_int_equal(insert(memtable, text("k"), 5, 5, MEMTABLE_PUT, text("v")),
                     STELE_OK);
    assert_true(inserting_aborts(memtable, 4, 9));
    assert_true(inserting_aborts(memtable, 5, 5));
    assert_false(inserting_aborts(memtable, 5, 6));
    assert_false(inserting_aborts(memtable, 6, 0));
    memtable_unref(memtable);
}

static void more_keys_than_buckets_are_all_found(void **state)
{
    enum { KEYS = 20000 };
    struct memtable *memtable;

    (void)state;
    assert_int_equal(memtable_create(0, HASH_SEED, &memtable, NULL), STELE_OK);
    for (uint32_t i = 0; i < KEYS; i++) {
        assert_int_equal(insert(memtable, (struct bytes){&i, sizeof i}, i + 1,
                                0, MEMTABLE_PUT, (struct bytes){&i, sizeof i}),
                         STELE_OK);
    }
    assert_int_equal(memtable_node_count(memtable), KEYS);
    for (uint32_t i = 0; i < KEYS; i++) {
        assert_int_equal(
            find_bytes(memtable, (struct bytes){&i, sizeof i}, LATEST)->lsn,
            i + 1);
    }
    memtable_unref(memtable);
}

static void keys_of_one_hash_are_told_apart(void **state)
{
    static const char *const keys[] = {"abc", "ab", "a", "abd", "b"};
    enum { COUNT = sizeof keys / sizeof keys[0] };
    struct memtable *memtable = create();

    (void)state;
    for (size_t i = 0; i < COUNT; i++) {
        assert_int_equal(memtable_insert(memtable, text(keys[i]), 0, i + 1, 0,
                                         MEMTABLE_PUT, text(keys[i]), CHECK,
                                         NULL),
                         STELE_OK);
    }
    assert_int_equal(memtable_node_count(memtable), COUNT);
    for (size_t i = 0; i < COUNT; i++) {
        assert_true(has_value(memtable_find(memtable, text(keys[i]), 0, LATEST),
                              keys[i]));
    }
    assert_null(memtable_find(memtable, text("abcd"), 0, LATEST));
    memtable_unref(memtable);
}

static void memtables_of_one_seed_hash_alike(void **state)
{
    struct memtable *one = create();
    struct memtable *same = create();
    struct memtable *other;

    (void)state;
    assert_int_equal(memtable_create(BYTES_TARGET, HASH_SEED + 1, &other, NULL),
                     STELE_OK);
    assert_true(memtable_hash(one, text("k")) ==
                memtable_hash(same, text("k")));
    assert_true(memtable_hash(one, text("k")) !=
                memtable_hash(other, text("k")));
    memtable_unref(one);
    memtable_unref(same);
    memtable_unref(other);
}

/* ---- Settle and withdraw --------------------------------------------------- */

static void withdrawing_takes_back_what_came_since_the_settle(void **state)
{
    struct memtable *memtable = create();

    (void)state;
    put(memtable, "old", 1, "v1");
    memtable_settle(memtable);
    put(memtable, "old", 2, "v2");
    put(memtable, "old", 3, "v3");
    put(memtable, "new", 3, "v");
    memtable_withdraw(memtable);
    assert_true(has_value(find(memtable, "old", LATEST), "v1"));
    assert_null(find(memtable, "new", LATEST));
    memtable_unref(memtable);
}

static void without_a_settle_everything_is_withdrawn(void **state)
{
    struct memtable *memtable = create();

    (void)state;
    put(memtable, "k", 1, "v");
    memtable_withdraw(memtable);
    assert_null(find(memtable, "k", LATEST));
    memtable_unref(memtable);
}

static void withdrawing_nothing_changes_nothing(void **state)
{
    struct memtable *memtable = create();

    (void)state;
    put(memtable, "k", 1, "v");
    memtable_settle(memtable);
    memtable_withdraw(memtable);
    memtable_withdraw(memtable);
    assert_true(has_value(find(memtable, "k", LATEST), "v"));
    memtable_unref(memtable);
}

static void a_withdrawn_node_stays_and_is_used_again(void **state)
{
    struct memtable *memtable = create();
    struct memtable_order *order;
    struct memtable_iterator iterator;

    (void)state;
    put(memtable, "k", 1, "first");
    memtable_withdraw(memtable);
    assert_int_equal(memtable_node_count(memtable), 1);
    order = acquire(memtable);
    memtable_iterator_init(&iterator, order);
    memtable_iterator_seek(&iterator, text("k"));
    assert_true(is_at(&iterator, "k"));
    assert_null(memtable_node_find(iterator.node, LATEST));

    /* The same LSN again: the group was not published. */
    put(memtable, "k", 1, "second");
    assert_int_equal(memtable_node_count(memtable), 1);
    assert_true(has_value(find(memtable, "k", 1), "second"));
    assert_true(has_value(memtable_node_find(iterator.node, 1), "second"));
    memtable_order_release(order);
    memtable_unref(memtable);
}

static void a_group_of_any_size_can_be_withdrawn(void **state)
{
    enum { OPS = 5000 };
    struct memtable *memtable = create();

    (void)state;
    for (uint32_t i = 0; i < OPS; i++) {
        const uint32_t key = i % 100;

        assert_int_equal(insert(memtable, (struct bytes){&key, sizeof key}, 1,
                                i, MEMTABLE_PUT, text("v")),
                         STELE_OK);
    }
    memtable_withdraw(memtable);
    for (uint32_t key = 0; key < 100; key++) {
        assert_null(
            find_bytes(memtable, (struct bytes){&key, sizeof key}, LATEST));
    }
    memtable_unref(memtable);
}

/* ---- Life and memory ------------------------------------------------------- */

static void a_memtable_lives_until_its_last_reference_goes(void **state)
{
    struct memtable *memtable = create();

    (void)state;
    put(memtable, "k", 1, "v");
    memtable_ref(memtable);
    memtable_unref(memtable);
    assert_true(has_value(find(memtable, "k", 1), "v"));
    memtable_unref(memtable);
}

static void null_can_be_released(void **state)
{
    (void)state;
    memtable_unref(NULL);
    memtable_order_release(NULL);
}

static void allocations_are_separate_and_last(void **state)
{
    static const size_t sizes[] = {1, 3, 8, 1000, 40000, 200000};
    enum { COUNT = sizeof sizes / sizeof sizes[0] };
    struct memtable *memtable = create();
    uint8_t *taken[COUNT];

    (void)state;
    assert_non_null(memtable_allocate(memtable, 0));
    for (size_t i = 0; i < COUNT; i++) {
        taken[i] = memtable_allocate(memtable, sizes[i]);
        assert_non_null(taken[i]);
        memset(taken[i], (int)i + 1, sizes[i]);
        put(memtable, "k", i + 1, "in between");
    }
    for (size_t i = 0; i < COUNT; i++) {
        assert_int_equal(taken[i][0], i + 1);
        assert_int_equal(taken[i][sizes[i] - 1], i + 1);
    }
    memtable_unref(memtable);
}

static void an_impossible_allocation_yields_null(void **state)
{
    struct memtable *memtable = create();

    (void)state;
    assert_null(memtable_allocate(memtable, SIZE_MAX));
    assert_non_null(memtable_allocate(memtable, 1));
    memtable_unref(memtable);
}

static void bytes_count_arena_hash_nodes_and_runs(void **state)
{
    enum { VALUE_BYTES = 1 << 20, NODES = 10000 };
    static uint8_t value[VALUE_BYTES];
    struct memtable *memtable = create();
    const uint64_t empty_bytes = memtable_bytes(memtable);
    uint64_t before;

    (void)state;
    /* The hash: a pointer for each 64 bytes. */
    assert_true(empty_bytes >= BYTES_TARGET / 64 * sizeof(void *));
    assert_true(empty_bytes < BYTES_TARGET / 4);

    assert_int_equal(insert(memtable, text("large"), 1, 0, MEMTABLE_PUT,
                            (struct bytes){value, VALUE_BYTES}),
                     STELE_OK);
    assert_in_range(memtable_bytes(memtable), empty_bytes + VALUE_BYTES,
                    empty_bytes + VALUE_BYTES + 100000);

    before = memtable_bytes(memtable);
    for (uint32_t i = 0; i < NODES; i++) {
        assert_int_equal(insert(memtable, (struct bytes){&i, sizeof i}, 2, i,
                                MEMTABLE_PUT, text("v")),
                         STELE_OK);
    }
    assert_true(memtable_bytes(memtable) >= before + NODES * 64);

    before = memtable_bytes(memtable);
    memtable_order_release(acquire(memtable));
    assert_in_range(memtable_bytes(memtable), before + NODES * sizeof(void *),
                    before + NODES * sizeof(void *) + 1000);

    before = memtable_bytes(memtable);
    memtable_order_release(acquire(memtable));
    assert_int_equal(memtable_bytes(memtable), before);
    memtable_unref(memtable);
}

/* ---- Order ----------------------------------------------------------------- */

static void the_order_of_an_empty_memtable_is_empty(void **state)
{
    struct memtable *memtable = create();
    struct memtable_order *order = acquire(memtable);
    struct memtable_iterator iterator;

    (void)state;
    assert_int_equal(memtable_order_count(order), 0);
    memtable_iterator_init(&iterator, order);
    memtable_iterator_seek(&iterator, text("a"));
    assert_null(iterator.node);
    memtable_iterator_seek_before(&iterator, text("a"));
    assert_null(iterator.node);
    memtable_order_release(order);
    memtable_unref(memtable);
}

static void an_order_has_the_nodes_before_it_and_no_later_ones(void **state)
{
    struct memtable *memtable = create();
    struct memtable_order *order;
    struct memtable_order *later;
    struct memtable_iterator iterator;

    (void)state;
    put(memtable, "b", 1, "v");
    put(memtable, "a", 2, "v");
    order = acquire(memtable);
    put(memtable, "aa", 3, "v");
    later = acquire(memtable);
    assert_int_equal(memtable_order_count(order), 2);
    assert_int_equal(memtable_order_count(later), 3);

    memtable_iterator_init(&iterator, order);
    memtable_iterator_seek(&iterator, text("a"));
    assert_true(is_at(&iterator, "a"));
    memtable_iterator_next(&iterator);
    assert_true(is_at(&iterator, "b"));
    memtable_iterator_next(&iterator);
    assert_null(iterator.node);
    memtable_order_release(order);
    memtable_order_release(later);
    memtable_unref(memtable);
}

static void without_new_nodes_the_order_is_shared(void **state)
{
    struct memtable *memtable = create();
    struct memtable_order *order;
    struct memtable_order *again;

    (void)state;
    put(memtable, "a", 1, "v");
    order = acquire(memtable);
    put(memtable, "a", 2, "v");
    again = acquire(memtable);
    assert_ptr_equal(order, again);
    memtable_order_release(order);
    memtable_order_release(again);
    memtable_unref(memtable);
}

static void an_order_keeps_its_runs_but_not_the_memtable(void **state)
{
    struct memtable *memtable = create();
    struct memtable_order *order;

    (void)state;
    put(memtable, "a", 1, "v");
    put(memtable, "b", 2, "v");
    order = acquire(memtable);
    memtable_unref(memtable);
    assert_int_equal(memtable_order_count(order), 2);
    memtable_order_release(order);
}

static void an_iterator_begins_off_an_end_and_stays_there(void **state)
{
    struct memtable *memtable = create();
    struct memtable_order *order;
    struct memtable_iterator iterator;

    (void)state;
    put(memtable, "a", 1, "v");
    order = acquire(memtable);
    memtable_iterator_init(&iterator, order);
    assert_null(iterator.node);
    memtable_iterator_next(&iterator);
    assert_null(iterator.node);
    memtable_iterator_prev(&iterator);
    assert_null(iterator.node);

    memtable_iterator_seek(&iterator, text("a"));
    memtable_iterator_next(&iterator);
    assert_null(iterator.node);
    memtable_iterator_prev(&iterator);
    assert_null(iterator.node);

    memtable_iterator_seek(&iterator, text("a"));
    memtable_iterator_prev(&iterator);
    assert_null(iterator.node);
    memtable_iterator_next(&iterator);
    assert_null(iterator.node);
    memtable_order_release(order);
    memtable_unref(memtable);
}

static void seeks_go_to_the_first_at_or_the_last_before_the_key(void **state)
{
    struct memtable *memtable = create();
    struct memtable_order *order;
    struct memtable_iterator iterator;

    (void)state;
    put(memtable, "d", 1, "v");
    put(memtable, "b", 2, "v");
    order = acquire(memtable);
    memtable_iterator_init(&iterator, order);
    memtable_iterator_seek(&iterator, (struct bytes){NULL, 0});
    assert_true(is_at(&iterator, "b"));
    memtable_iterator_seek(&iterator, text("b"));
    assert_true(is_at(&iterator, "b"));
    memtable_iterator_seek(&iterator, text("c"));
    assert_true(is_at(&iterator, "d"));
    memtable_iterator_seek(&iterator, text("e"));
    assert_null(iterator.node);
    memtable_iterator_seek_before(&iterator, text("e"));
    assert_true(is_at(&iterator, "d"));
    memtable_iterator_seek_before(&iterator, text("d"));
    assert_true(is_at(&iterator, "b"));
    memtable_iterator_seek_before(&iterator, text("b"));
    assert_null(iterator.node);
    memtable_order_release(order);
    memtable_unref(memtable);
}

static void an_iterator_turns_around_between_runs(void **state)
{
    static const char *const keys[] = {"a", "b", "c", "d", "e", "f", "g"};
    struct memtable *memtable = create();
    struct memtable_order *order;
    struct memtable_iterator iterator;

    (void)state;
    /* Runs of 4, 2 and 1. */
    put(memtable, "a", 1, "v");
    put(memtable, "c", 1, "v");
    put(memtable, "e", 1, "v");
    put(memtable, "g", 1, "v");
    memtable_order_release(acquire(memtable));
    put(memtable, "b", 1, "v");
    put(memtable, "f", 1, "v");
    memtable_order_release(acquire(memtable));
    put(memtable, "d", 1, "v");
    order = acquire(memtable);

    memtable_iterator_init(&iterator, order);
    for (size_t i = 1; i + 1 < 7; i++) {
        memtable_iterator_seek(&iterator, text(keys[i]));
        memtable_iterator_next(&iterator);
        assert_true(is_at(&iterator, keys[i + 1]));
        memtable_iterator_prev(&iterator);
        assert_true(is_at(&iterator, keys[i]));
        memtable_iterator_prev(&iterator);
        assert_true(is_at(&iterator, keys[i - 1]));
        memtable_iterator_next(&iterator);
        assert_true(is_at(&iterator, keys[i]));
    }
    memtable_order_release(order);
    memtable_unref(memtable);
}

/* ---- Against a model ------------------------------------------------------- */

enum { MODEL_KEY_BYTES_MAX = 60, MODEL_KEYS_MAX = 3000 };

struct model_key {
    uint8_t data[MODEL_KEY_BYTES_MAX];
    size_t size;
};

static struct bytes model_key_bytes(const struct model_key *key)
{
    return (struct bytes){key->data, key->size};
}

static int model_key_order(const void *left, const void *right)
{
    return bytes_compare(model_key_bytes(left), model_key_bytes(right));
}

/* One of a few tables, often a long prefix in common, and then zeroes, prefixes
 * of other keys, and bytes that are negative as chars. */
static struct model_key random_key(void)
{
    static const char *const tables[] = {"t", "topics", "topic-config"};
    static const uint8_t letters[] = {0x00, 0x01, 0x61, 0xff};
    const char *table = tables[random_below(3)];
    const size_t tail_bytes = random_below(12);
    struct model_key key = {.size = strlen(table) + 1};

    memcpy(key.data, table, key.size);
    if (random_below(2) == 0) {
        const size_t prefix_bytes = 8 * random_below(4) + random_below(2);

        memset(key.data + key.size, 'p', prefix_bytes);
        key.size += prefix_bytes;
    }
    for (size_t i = 0; i < tail_bytes; i++) {
        key.data[key.size++] = letters[random_below(sizeof letters)];
    }
    return key;
}

/* `count` of them or a few less: sorted, without duplicates. */
static size_t random_keys(struct model_key *keys, size_t count)
{
    size_t distinct = 0;

    for (size_t i = 0; i < count; i++) {
        keys[i] = random_key();
    }
    qsort(keys, count, sizeof keys[0], model_key_order);
    for (size_t i = 0; i < count; i++) {
        if (distinct == 0 ||
            model_key_order(&keys[distinct - 1], &keys[i]) != 0) {
            keys[distinct++] = keys[i];
        }
    }
    return distinct;
}

/* The keys an order should have, sorted. */
struct expected {
    struct bytes keys[MODEL_KEYS_MAX];
    size_t count;
};

static size_t expected_lower(const struct expected *expected, struct bytes key)
{
    size_t place = 0;

    while (place < expected->count &&
           bytes_compare(expected->keys[place], key) < 0) {
        place++;
    }
    return place;
}

/* `place` of expected->count, or -1: off an end. */
static void assert_at(const struct memtable_iterator *iterator,
                      const struct expected *expected, ptrdiff_t place)
{
    if (place < 0 || (size_t)place >= expected->count) {
        assert_null(iterator->node);
        return;
    }
    assert_non_null(iterator->node);
    assert_int_equal(
        bytes_compare(memtable_node_key(iterator->node), expected->keys[place]),
        0);
}

static void assert_order_is(const struct memtable_order *order,
                            const struct expected *expected)
{
    const struct bytes behind_all = {"\xff\xff", 2};
    const ptrdiff_t count = (ptrdiff_t)expected->count;
    struct memtable_iterator iterator;

    assert_int_equal(memtable_order_count(order), expected->count);
    memtable_iterator_init(&iterator, order);
    memtable_iterator_seek(&iterator, (struct bytes){NULL, 0});
    for (ptrdiff_t place = 0; place <= count; place++) {
        assert_at(&iterator, expected, place);
        memtable_iterator_next(&iterator);
    }
    memtable_iterator_seek_before(&iterator, behind_all);
    for (ptrdiff_t place = count - 1; place >= -1; place--) {
        assert_at(&iterator, expected, place);
        memtable_iterator_prev(&iterator);
    }
}

static void assert_random_walk(const struct memtable_order *order,
                               const struct expected *expected)
{
    struct memtable_iterator iterator;
    ptrdiff_t place = -1;

    memtable_iterator_init(&iterator, order);
    for (int step = 0; step < 200; step++) {
        const struct model_key key = random_key();

        /* Off an end, a step leads nowhere: seek. */
        switch (place < 0 || (size_t)place >= expected->count
                    ? random_below(2)
                    : random_below(40)) {
        case 0:
            memtable_iterator_seek(&iterator, model_key_bytes(&key));
            place = (ptrdiff_t)expected_lower(expected, model_key_bytes(&key));
            break;
        case 1:
            memtable_iterator_seek_before(&iterator, model_key_bytes(&key));
            place = (ptrdiff_t)expected_lower(expected, model_key_bytes(&key));
            place--;
            break;
        default:
            if (random_below(2) == 0) {
                memtable_iterator_next(&iterator);
                place++;
            } else {
                memtable_iterator_prev(&iterator);
                place--;
            }
        }
        assert_at(&iterator, expected, place);
    }
}

static void random_orders_equal_the_sorted_keys(void **state)
{
    static struct model_key keys[MODEL_KEYS_MAX];
    static size_t shuffled[MODEL_KEYS_MAX];
    static bool inserted[MODEL_KEYS_MAX];
    static struct expected expected;

    (void)state;
    random_start();
    for (int round = 0; round < 10; round++) {
        const size_t count =
            random_keys(keys, 1 + random_below(MODEL_KEYS_MAX));
        const size_t step_max = 1 + random_below(count);
        struct memtable *memtable = create();
        size_t done = 0;

        for (size_t i = 0; i < count; i++) {
            const size_t other = random_below(i + 1);

            shuffled[i] = shuffled[other];
            shuffled[other] = i;
        }
        memset(inserted, 0, sizeof inserted);
        for (int acquisition = 0; acquisition < 30; acquisition++) {
            const size_t step = random_below(step_max + 1);
            struct memtable_order *order;

            for (size_t i = 0; i < step && done < count; i++, done++) {
                assert_int_equal(insert(memtable,
                                        model_key_bytes(&keys[shuffled[done]]),
                                        done + 1, 0, MEMTABLE_PUT, text("v")),
                                 STELE_OK);
                inserted[shuffled[done]] = true;
            }
            expected.count = 0;
            for (size_t i = 0; i < count; i++) {
                if (inserted[i]) {
                    expected.keys[expected.count++] = model_key_bytes(&keys[i]);
                }
            }
            order = acquire(memtable);
            assert_order_is(order, &expected);
            assert_random_walk(order, &expected);
            memtable_order_release(order);
        }
        memtable_unref(memtable);
    }
}

/* However the nodes come, an order never has more runs than an iterator. */
static void an_order_after_each_insertion_stays_correct(void **state)
{
    static struct model_key keys[MODEL_KEYS_MAX];
    static struct expected expected;
    struct memtable *memtable = create();
    struct memtable_order *order;
    size_t count;

    (void)state;
    random_start();
    count = random_keys(keys, MODEL_KEYS_MAX);
    for (size_t i = 0; i < count; i++) {
        const size_t place = i % 2 == 0 ? i / 2 : count - 1 - i / 2;

        assert_int_equal(insert(memtable, model_key_bytes(&keys[place]), i + 1,
                                0, MEMTABLE_PUT, text("v")),
                         STELE_OK);
        order = acquire(memtable);
        assert_int_equal(memtable_order_count(order), i + 1);
        memtable_order_release(order);
        expected.keys[place] = model_key_bytes(&keys[place]);
    }
    expected.count = count;
    order = acquire(memtable);
    assert_order_is(order, &expected);
    memtable_order_release(order);
    memtable_unref(memtable);
}

enum { MODEL_GROUPS = 400, MODEL_VERSIONS_MAX = 400, MODEL_NODES = 100 };

struct model_version {
    uint64_t lsn;
    uint32_t op_index;
    enum memtable_kind kind;
    uint64_t value;
};

struct model_node {
    struct model_version versions[MODEL_VERSIONS_MAX]; /* Oldest first. */
    size_t count;
    size_t settled_count;
    bool known; /* Has a node in the memtable. */
};

static void assert_found(const struct memtable *memtable,
                         const struct model_key *key,
                         const struct model_node *node, uint64_t lsn_max)
{
    const struct memtable_version *found =
        find_bytes(memtable, model_key_bytes(key), lsn_max);
    size_t count = node->count;

    while (count > 0 && node->versions[count - 1].lsn > lsn_max) {
        count--;
    }
    /* The newest visible one, and from there on all of them. */
    for (; count > 0; count--, found = found->older) {
        const struct model_version *expected = &node->versions[count - 1];

        assert_non_null(found);
        assert_int_equal(found->lsn, expected->lsn);
        assert_int_equal(found->op_index, expected->op_index);
        assert_int_equal(found->kind, expected->kind);
        assert_int_equal(found->value_bytes,
                         expected->kind == MEMTABLE_PUT ? 8 : 0);
        assert_memory_equal(found->value, &expected->value, found->value_bytes);
    }
    assert_null(found);
}

static void random_group(struct memtable *memtable,
                         const struct model_key *keys, size_t key_count,
                         struct model_node *nodes, uint64_t lsn)
{
    const uint32_t op_count = 1 + (uint32_t)random_below(30);

    for (uint32_t op_index = 0; op_index < op_count; op_index++) {
        const size_t place = random_below(key_count);
        const struct model_version version = {
            .lsn = lsn,
            .op_index = op_index,
            .kind = (enum memtable_kind)random_below(3),
            .value = random_next(),
        };

        if (nodes[place].count == MODEL_VERSIONS_MAX) {
            continue;
        }
        assert_int_equal(
            insert(memtable, model_key_bytes(&keys[place]), lsn, op_index,
                   version.kind,
                   (struct bytes){&version.value,
                                  version.kind == MEMTABLE_PUT ? 8 : 0}),
            STELE_OK);
        nodes[place].versions[nodes[place].count++] = version;
        nodes[place].known = true;
    }
}

static void random_groups_equal_the_model(void **state)
{
    static struct model_key keys[MODEL_NODES];
    static struct model_node nodes[MODEL_NODES];
    struct memtable *memtable = create();
    size_t key_count;

    (void)state;
    random_start();
    key_count = random_keys(keys, MODEL_NODES);
    memset(nodes, 0, sizeof nodes);
    for (uint64_t lsn = 1; lsn <= MODEL_GROUPS; lsn++) {
        size_t known_count = 0;
        const bool withdrawn = random_below(3) == 0;

        random_group(memtable, keys, key_count, nodes, lsn);
        if (withdrawn) {
            memtable_withdraw(memtable);
        } else {
            memtable_settle(memtable);
        }
        for (size_t i = 0; i < key_count; i++) {
            if (withdrawn) {
                nodes[i].count = nodes[i].settled_count;
            }
            nodes[i].settled_count = nodes[i].count;
            known_count += nodes[i].known;
            assert_found(memtable, &keys[i], &nodes[i], random_below(lsn + 2));
            assert_found(memtable, &keys[i], &nodes[i], LATEST);
        }
        assert_int_equal(memtable_node_count(memtable), known_count);
    }
    memtable_unref(memtable);
}

/* ---- Threads --------------------------------------------------------------- */

/*
 * Group g puts three keys with LSN g: the same one each time ("every"), one of
 * ROUND ("round", g % ROUND) and one of its own ("own", mixed g). Every third
 * group is first written with another value and own key ("gone"), and
 * withdrawn. So a reader at LSN v knows exactly what it has to find.
 */
enum { GROUPS = 20000, ROUND = 50, READERS = 3 };

struct threads_test {
    struct memtable *memtable;
    _Atomic uint64_t lsn_visible;
};

struct threads_key {
    uint8_t data[24];
    size_t size;
};

static struct threads_key threads_key(const char *kind, uint64_t number)
{
    struct threads_key key = {.size = strlen(kind) + 8};

    memcpy(key.data, kind, strlen(kind));
    for (size_t i = 0; i < 8; i++) {
        key.data[strlen(kind) + i] = (uint8_t)(number >> (56 - 8 * i));
    }
    return key;
}

static enum stele_status threads_put(struct memtable *memtable,
                                     const char *kind, uint64_t number,
                                     uint64_t lsn, uint32_t op_index,
                                     uint64_t value)
{
    const struct threads_key key = threads_key(kind, number);

    return insert(memtable, (struct bytes){key.data, key.size}, lsn, op_index,
                  MEMTABLE_PUT, (struct bytes){&value, sizeof value});
}

static enum stele_status threads_group(struct memtable *memtable, uint64_t lsn,
                                       const char *own, uint64_t value)
{
    enum stele_status status = threads_put(memtable, "every", 0, lsn, 0, value);

    if (status == STELE_OK) {
        status = threads_put(memtable, "round", lsn % ROUND, lsn, 1, value);
    }
    if (status == STELE_OK) {
        status = threads_put(memtable, own, mix(lsn), lsn, 2, value);
    }
    return status;
}

/* A failure in a thread is a text for later: cmocka's assertions jump. */
struct threads_worker {
    struct threads_test *test;
    pthread_t thread;
    uint64_t random;
    const char *failure;
};

static void *write_groups(void *argument)
{
    struct threads_worker *worker = argument;
    struct threads_test *test = worker->test;
    enum stele_status status = STELE_OK;

    for (uint64_t lsn = 1; lsn <= GROUPS; lsn++) {
        if (lsn % 3 == 0) {
            status = threads_group(test->memtable, lsn, "gone", 0);
            memtable_withdraw(test->memtable);
        }
        if (status == STELE_OK) {
            status = threads_group(test->memtable, lsn, "own", lsn);
        }
        if (status != STELE_OK) {
            worker->failure = "an insertion failed";
        }
        memtable_settle(test->memtable);
        /* Even after a failure: the readers wait for the last one. */
        atomic_store_explicit(&test->lsn_visible, lsn, memory_order_release);
    }
    return NULL;
}

/* At `lsn_visible`, the newest version of the key is that of group `lsn`. */
static bool threads_finds(const struct memtable *memtable, const char *kind,
                          uint64_t number, uint64_t lsn_visible, uint64_t lsn)
{
    const struct threads_key key = threads_key(kind, number);
    const struct memtable_version *version =
        find_bytes(memtable, (struct bytes){key.data, key.size}, lsn_visible);

    if (version == NULL) {
        return lsn == 0;
    }
    return version->lsn == lsn && version->value_bytes == sizeof lsn &&
           memcmp(version->value, &lsn, sizeof lsn) == 0;
}

static const char *threads_check_finds(const struct memtable *memtable,
                                       uint64_t lsn_visible, uint64_t random)
{
    const uint64_t own = 1 + random % lsn_visible;
    const uint64_t round = random % ROUND;
    uint64_t round_lsn = lsn_visible;

    while (round_lsn > 0 && round_lsn % ROUND != round) {
        round_lsn--;
    }
    if (!threads_finds(memtable, "every", 0, lsn_visible, lsn_visible)) {
        return "the key of every group";
    }
    if (!threads_finds(memtable, "round", round, lsn_visible, round_lsn)) {
        return "the key of some groups";
    }
    if (!threads_finds(memtable, "own", mix(own), lsn_visible, own)) {
        return "a group's own key";
    }
    if (!threads_finds(memtable, "gone", mix(own), lsn_visible, 0)) {
        return "a withdrawn key";
    }
    if (!threads_finds(memtable, "own", mix(lsn_visible + 1), lsn_visible, 0)) {
        return "a key that is being inserted";
    }
    return NULL;
}

static const char *threads_check_pass(const struct memtable_order *order,
                                      uint64_t lsn_visible, bool forward)
{
    const uint64_t visible_expected =
        1 + (lsn_visible < ROUND ? lsn_visible : ROUND) + lsn_visible;
    const struct memtable_node *previous = NULL;
    uint64_t node_count = 0;
    uint64_t visible_count = 0;
    struct memtable_iterator iterator;

    memtable_iterator_init(&iterator, order);
    if (forward) {
        memtable_iterator_seek(&iterator, text("a"));
    } else {
        memtable_iterator_seek_before(&iterator, text("z"));
    }
    while (iterator.node != NULL) {
        if (previous != NULL &&
            (bytes_compare(memtable_node_key(previous),
                           memtable_node_key(iterator.node)) < 0) != forward) {
            return "nodes out of order";
        }
        previous = iterator.node;
        node_count++;
        visible_count += memtable_node_find(previous, lsn_visible) != NULL;
        if (forward) {
            memtable_iterator_next(&iterator);
        } else {
            memtable_iterator_prev(&iterator);
        }
    }
    if (node_count != memtable_order_count(order)) {
        return "the number of nodes";
    }
    return visible_count == visible_expected ? NULL
                                             : "the number of visible nodes";
}

static void *read_groups(void *argument)
{
    struct threads_worker *worker = argument;
    struct memtable *memtable = worker->test->memtable;
    uint64_t lsn_visible = 0;

    while (lsn_visible < GROUPS && worker->failure == NULL) {
        struct memtable_order *order;

        lsn_visible = atomic_load_explicit(&worker->test->lsn_visible,
                                           memory_order_acquire);
        if (lsn_visible == 0) {
            continue;
        }
        for (int i = 0; i < 100 && worker->failure == NULL; i++) {
            worker->random = mix(worker->random + 1);
            worker->failure =
                threads_check_finds(memtable, lsn_visible, worker->random);
        }
        if (memtable_order_acquire(memtable, &order, NULL) != STELE_OK) {
            worker->failure = "acquiring an order failed";
            break;
        }
        if (worker->failure == NULL) {
            worker->failure =
                threads_check_pass(order, lsn_visible, worker->random % 2 == 0);
        }
        memtable_order_release(order);

        if (memtable_bytes(memtable) == 0 ||
            memtable_node_count(memtable) < lsn_visible) {
            worker->failure = "the counts";
        }
    }
    return NULL;
}

static void readers_see_their_lsn_while_the_writer_goes_on(void **state)
{
    struct threads_test test = {.lsn_visible = 0};
    struct threads_worker workers[1 + READERS];

    (void)state;
    random_start();
    /* Few buckets: readers meet nodes of keys that they do not look for. */
    assert_int_equal(memtable_create(0, HASH_SEED, &test.memtable, NULL),
                     STELE_OK);
    for (size_t i = 0; i <= READERS; i++) {
        workers[i] =
            (struct threads_worker){.test = &test, .random = random_next()};
        assert_int_equal(pthread_create(&workers[i].thread, NULL,
                                        i == 0 ? write_groups : read_groups,
                                        &workers[i]),
                         0);
    }
    for (size_t i = 0; i <= READERS; i++) {
        assert_int_equal(pthread_join(workers[i].thread, NULL), 0);
    }
    for (size_t i = 0; i <= READERS; i++) {
        if (workers[i].failure != NULL) {
            fail_msg("thread %zu: %s", i, workers[i].failure);
        }
    }
    memtable_unref(test.memtable);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_was_not_inserted_is_not_found),
        cmocka_unit_test(a_version_carries_all_that_was_inserted),
        cmocka_unit_test(find_returns_the_newest_version_up_to_the_lsn),
        cmocka_unit_test(of_one_batch_the_later_operation_is_found),
        cmocka_unit_test(deletes_and_touches_are_versions_without_a_value),
        cmocka_unit_test(key_and_value_are_copied),
        cmocka_unit_test(keys_are_bytes_of_any_kind_and_length),
        cmocka_unit_test(a_version_that_is_not_the_newest_is_our_bug),
        cmocka_unit_test(more_keys_than_buckets_are_all_found),
        cmocka_unit_test(keys_of_one_hash_are_told_apart),
        cmocka_unit_test(memtables_of_one_seed_hash_alike),
        cmocka_unit_test(withdrawing_takes_back_what_came_since_the_settle),
        cmocka_unit_test(without_a_settle_everything_is_withdrawn),
        cmocka_unit_test(withdrawing_nothing_changes_nothing),
        cmocka_unit_test(a_withdrawn_node_stays_and_is_used_again),
        cmocka_unit_test(a_group_of_any_size_can_be_withdrawn),
        cmocka_unit_test(a_memtable_lives_until_its_last_reference_goes),
        cmocka_unit_test(null_can_be_released),
        cmocka_unit_test(allocations_are_separate_and_last),
        cmocka_unit_test(an_impossible_allocation_yields_null),
        cmocka_unit_test(bytes_count_arena_hash_nodes_and_runs),
        cmocka_unit_test(the_order_of_an_empty_memtable_is_empty),
        cmocka_unit_test(an_order_has_the_nodes_before_it_and_no_later_ones),
        cmocka_unit_test(without_new_nodes_the_order_is_shared),
        cmocka_unit_test(an_order_keeps_its_runs_but_not_the_memtable),
        cmocka_unit_test(an_iterator_begins_off_an_end_and_stays_there),
        cmocka_unit_test(seeks_go_to_the_first_at_or_the_last_before_the_key),
        cmocka_unit_test(an_iterator_turns_around_between_runs),
        cmocka_unit_test(random_orders_equal_the_sorted_keys),
        cmocka_unit_test(an_order_after_each_insertion_stays_correct),
        cmocka_unit_test(random_groups_equal_the_model),
        cmocka_unit_test(readers_see_their_lsn_while_the_writer_goes_on),
    };

    return cmocka_run_group_tests_name("engine/memtable", tests, NULL, NULL);
}
