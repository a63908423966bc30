/*
 * tests/test_engine_ranges.c -- engine/ranges.h, by example and against a brute
 * force over a small keyspace.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "engine/ranges.h"

/* ---- Vocabulary ------------------------------------------------------------ */

static uint64_t random_state;

/* splitmix64 */
static uint64_t random_next(void)
{
    uint64_t z = random_state += UINT64_C(0x9e3779b97f4a7c15);

    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return z ^ z >> 31;
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

static void add(struct range_builder *builder, const char *first,
                const char *end, uint64_t lsn)
{
    assert_int_equal(
        range_builder_add(builder, text(first), text(end), lsn, 0, NULL),
        STELE_OK);
}

/* A set of one fragment. */
static struct range_set *fragment(struct bytes first, struct bytes end,
                                  uint64_t lsn, uint32_t op_index)
{
    struct range_builder builder;
    struct range_set *set;

    range_builder_init(&builder);
    assert_int_equal(
        range_builder_add(&builder, first, end, lsn, op_index, NULL), STELE_OK);
    assert_int_equal(range_builder_finish(&builder, NULL, &set, NULL),
                     STELE_OK);
    range_builder_deinit(&builder);
    return set;
}

/* Consumes both. */
static struct range_set *merge(struct range_set *left, struct range_set *right,
                               uint64_t *splits)
{
    struct range_set *merged;

    assert_int_equal(range_set_merge(left, right, &merged, splits, NULL),
                     STELE_OK);
    range_set_unref(left);
    range_set_unref(right);
    return merged;
}

static struct range_set *set_of(const char *first, const char *end,
                                uint64_t lsn)
{
    return fragment(text(first), text(end), lsn, 0);
}

static void assert_fragment(const struct range_set *set, size_t index,
                            const char *first, const char *end, uint64_t lsn)
{
    const struct range_fragment *found = range_set_at(set, index);

    assert_int_equal(bytes_compare(found->first, text(first)), 0);
    assert_int_equal(bytes_compare(found->end, text(end)), 0);
    assert_int_equal(found->lsn, lsn);
}

/* ---- Sets ------------------------------------------------------------------ */

static void null_is_the_empty_set_everywhere(void **state)
{
    struct range_set *merged = (void *)1;
    uint64_t splits = 0;

    (void)state;
    range_set_ref(NULL);
    range_set_unref(NULL);
    assert_int_equal(range_set_count(NULL), 0);
    assert_int_equal(range_set_bytes(NULL), 0);
    assert_int_equal(range_set_lower(NULL, text("k")), 0);
    assert_null(range_set_find(NULL, text("k")));
    assert_int_equal(range_set_merge(NULL, NULL, &merged, &splits, NULL),
                     STELE_OK);
    assert_null(merged);
}

static void a_fragment_covers_its_first_key_but_not_its_end(void **state)
{
    struct range_set *set = set_of("b", "d", 5);

    (void)state;
    assert_null(range_set_find(set, text("a")));
    assert_null(range_set_find(set, text("azzz")));
    assert_ptr_equal(range_set_find(set, text("b")), range_set_at(set, 0));
    assert_ptr_equal(range_set_find(set, text("czzz")), range_set_at(set, 0));
    assert_null(range_set_find(set, text("d")));
    range_set_unref(set);
}

static void lower_is_the_covering_fragment_or_the_next_one(void **state)
{
    uint64_t splits = 0;
    struct range_set *set =
        merge(set_of("b", "d", 1), set_of("f", "h", 2), &splits);

    (void)state;
    assert_int_equal(range_set_lower(set, text("a")), 0);
    assert_int_equal(range_set_lower(set, text("b")), 0);
    assert_int_equal(range_set_lower(set, text("c")), 0);
    assert_int_equal(range_set_lower(set, text("d")), 1);
    assert_int_equal(range_set_lower(set, text("e")), 1);
    assert_int_equal(range_set_lower(set, text("g")), 1);
    assert_int_equal(range_set_lower(set, text("h")), 2);
    assert_int_equal(range_set_count(set), 2);
    range_set_unref(set);
}

static void a_set_lives_until_its_last_reference_goes(void **state)
{
    struct range_set *set = set_of("b", "d", 5);

    (void)state;
    range_set_ref(set);
    range_set_unref(set);
    assert_fragment(set, 0, "b", "d", 5);
    range_set_unref(set);
}

static void bounds_are_borrowed(void **state)
{
    const struct bytes first = text("b");
    const struct bytes end = text("d");
    struct range_set *set = fragment(first, end, 5, 6);

    (void)state;
    assert_ptr_equal(range_set_at(set, 0)->first.data, first.data);
    assert_ptr_equal(range_set_at(set, 0)->end.data, end.data);
    assert_int_equal(range_set_at(set, 0)->op_index, 6);
    range_set_unref(set);
}

static void bytes_grow_with_the_fragments(void **state)
{
    uint64_t splits = 0;
    struct range_set *one = set_of("a", "b", 1);
    const uint64_t one_bytes = range_set_bytes(one);
    struct range_set *two = merge(one, set_of("c", "d", 2), &splits);

    (void)state;
    assert_true(one_bytes >= sizeof(struct range_fragment));
    assert_int_equal(range_set_bytes(two),
                     one_bytes + sizeof(struct range_fragment));
    range_set_unref(two);
}

/* ---- Merging --------------------------------------------------------------- */

static void a_merge_leaves_its_inputs_alone(void **state)
{
    struct range_set *left = set_of("a", "z", 1);
    struct range_set *right = set_of("m", "n", 2);
    struct range_set *merged;
    uint64_t splits = 0;

    (void)state;
    assert_int_equal(range_set_merge(left, right, &merged, &splits, NULL),
                     STELE_OK);
    assert_int_equal(range_set_count(left), 1);
    assert_int_equal(range_set_count(right), 1);
    assert_fragment(left, 0, "a", "z", 1);
    assert_fragment(right, 0, "m", "n", 2);
    range_set_unref(left);
    range_set_unref(right);
    assert_int_equal(range_set_count(merged), 3);
    range_set_unref(merged);
}

static void a_merge_with_the_empty_set_has_the_same_fragments(void **state)
{
    uint64_t splits = 0;
    struct range_set *set = merge(set_of("a", "c", 1), NULL, &splits);

    (void)state;
    set = merge(NULL, set, &splits);
    assert_int_equal(range_set_count(set), 1);
    assert_fragment(set, 0, "a", "c", 1);
    assert_int_equal(splits, 0);
    range_set_unref(set);
}

static void a_newer_range_inside_an_older_one_splits_it(void **state)
{
    uint64_t splits = 10;
    struct range_set *set =
        merge(set_of("a", "z", 1), set_of("m", "n", 2), &splits);

    (void)state;
    assert_int_equal(range_set_count(set), 3);
    assert_fragment(set, 0, "a", "m", 1);
    assert_fragment(set, 1, "m", "n", 2);
    assert_fragment(set, 2, "n", "z", 1);
    assert_int_equal(splits, 11);
    range_set_unref(set);
}

static void a_fragment_in_three_pieces_is_one_split(void **state)
{
    uint64_t splits = 0;
    struct range_set *newer =
        merge(set_of("c", "d", 2), set_of("m", "n", 3), &splits);
    struct range_set *set = merge(newer, set_of("a", "z", 1), &splits);

    (void)state;
    assert_int_equal(range_set_count(set), 5);
    assert_int_equal(splits, 1);
    range_set_unref(set);
}

static void a_fragment_that_is_only_shortened_is_not_split(void **state)
{
    uint64_t splits = 0;
    struct range_set *set =
        merge(set_of("a", "m", 1), set_of("g", "z", 2), &splits);

    (void)state;
    assert_int_equal(range_set_count(set), 2);
    assert_fragment(set, 0, "a", "g", 1);
    assert_fragment(set, 1, "g", "z", 2);
    assert_int_equal(splits, 0);
    range_set_unref(set);
}

static void an_older_range_inside_a_newer_one_disappears(void **state)
{
    uint64_t splits = 0;
    struct range_set *older =
        merge(set_of("c", "d", 2), set_of("m", "n", 3), &splits);
    struct range_set *set = merge(older, set_of("a", "z", 4), &splits);

    (void)state;
    assert_int_equal(range_set_count(set), 1);
    assert_fragment(set, 0, "a", "z", 4);
    assert_int_equal(splits, 0);
    range_set_unref(set);
}

static void of_one_batch_the_later_operation_wins(void **state)
{
    uint64_t splits = 0;
    struct range_set *set =
        merge(fragment(text("a"), text("z"), 7, 2),
              fragment(text("a"), text("z"), 7, 1), &splits);

    (void)state;
    assert_int_equal(range_set_count(set), 1);
    assert_int_equal(range_set_at(set, 0)->op_index, 2);
    range_set_unref(set);
}

static void neighbours_of_one_version_that_touch_become_one(void **state)
{
    uint64_t splits = 0;
    struct range_set *set =
        merge(set_of("a", "m", 4), set_of("m", "z", 4), &splits);

    (void)state;
    assert_int_equal(range_set_count(set), 1);
    assert_fragment(set, 0, "a", "z", 4);
    range_set_unref(set);
}

static void neighbours_that_do_not_touch_or_differ_stay_apart(void **state)
{
    uint64_t splits = 0;
    struct range_set *apart =
        merge(set_of("a", "m", 4), set_of("n", "z", 4), &splits);
    struct range_set *different =
        merge(set_of("a", "m", 4), set_of("m", "z", 5), &splits);

    (void)state;
    assert_int_equal(range_set_count(apart), 2);
    assert_int_equal(range_set_count(different), 2);
    range_set_unref(apart);
    range_set_unref(different);
}

static void overlaps_of_one_version_become_one_and_split_nothing(void **state)
{
    uint64_t splits = 0;
    struct range_set *set =
        merge(set_of("a", "z", 4), set_of("m", "n", 4), &splits);

    (void)state;
    assert_int_equal(range_set_count(set), 1);
    assert_fragment(set, 0, "a", "z", 4);
    assert_int_equal(splits, 0);
    range_set_unref(set);
}

/* ---- Builder --------------------------------------------------------------- */

static void a_builder_is_empty_until_something_is_added(void **state)
{
    struct range_builder builder;

    (void)state;
    range_builder_init(&builder);
    assert_true(range_builder_is_empty(&builder));
    assert_null(range_builder_find(&builder, text("k")));
    add(&builder, "a", "z", 1);
    assert_false(range_builder_is_empty(&builder));
    range_builder_deinit(&builder);
}

static void a_builder_finds_the_newest_range_over_a_key(void **state)
{
    struct range_builder builder;

    (void)state;
    range_builder_init(&builder);
    add(&builder, "a", "z", 1);
    add(&builder, "c", "m", 2);
    add(&builder, "l", "n", 3);
    assert_int_equal(range_builder_find(&builder, text("b"))->lsn, 1);
    assert_int_equal(range_builder_find(&builder, text("c"))->lsn, 2);
    assert_int_equal(range_builder_find(&builder, text("l"))->lsn, 3);
    assert_null(range_builder_find(&builder, text("z")));
    range_builder_deinit(&builder);
}

static void finishing_an_empty_builder_yields_the_base(void **state)
{
    struct range_builder builder;
    struct range_set *base = set_of("a", "c", 1);
    struct range_set *set;

    (void)state;
    range_builder_init(&builder);
    assert_int_equal(range_builder_finish(&builder, NULL, &set, NULL),
                     STELE_OK);
    assert_null(set);
    assert_int_equal(range_builder_finish(&builder, base, &set, NULL),
                     STELE_OK);
    range_set_unref(base);
    assert_int_equal(range_set_count(set), 1);
    assert_fragment(set, 0, "a", "c", 1);
    range_set_unref(set);
    range_builder_deinit(&builder);
}

static void finishing_lays_the_builder_over_the_base_and_keeps_it(void **state)
{
    struct range_builder builder;
    struct range_set *base = set_of("a", "z", 1);
    struct range_set *set;

    (void)state;
    range_builder_init(&builder);
    add(&builder, "c", "d", 2);
    for (int round = 0; round < 2; round++) {
        assert_int_equal(range_builder_finish(&builder, base, &set, NULL),
                         STELE_OK);
        assert_int_equal(range_set_count(set), 3);
        assert_fragment(set, 1, "c", "d", 2);
        range_set_unref(set);
    }
    assert_int_equal(range_builder_find(&builder, text("c"))->lsn, 2);
    range_set_unref(base);
    range_builder_deinit(&builder);
}

static void clearing_forgets_everything_but_the_splits(void **state)
{
    struct range_builder builder;
    struct range_set *set = NULL;

    (void)state;
    range_builder_init(&builder);
    add(&builder, "a", "z", 1);
    add(&builder, "c", "d", 2);
    assert_int_equal(range_builder_finish(&builder, NULL, &set, NULL),
                     STELE_OK);
    range_set_unref(set);
    assert_int_equal(builder.splits, 1);
    range_builder_clear(&builder);
    assert_true(range_builder_is_empty(&builder));
    assert_null(range_builder_find(&builder, text("c")));
    assert_int_equal(builder.splits, 1);
    range_builder_deinit(&builder);
}

/* ---- Against a brute force ------------------------------------------------- */

/* A keyspace of all keys of one to three letters out of `letters`. Place p is
 * what lies from key p to before key p + 1. */
enum { KEYS = 39, PLACES = KEYS - 1 };
static const uint8_t letters[] = {0x00, 0x61, 0xff};

struct model_key {
    uint8_t data[3];
    size_t size;
};
static struct model_key keys[KEYS];

struct version {
    uint64_t lsn; /* 0: not covered. */
    uint32_t op_index;
};

struct model {
    struct version places[PLACES];
};

static int key_order(const void *left, const void *right)
{
    const struct model_key *l = left;
    const struct model_key *r = right;

    return bytes_compare((struct bytes){l->data, l->size},
                         (struct bytes){r->data, r->size});
}

static void make_keys(void)
{
    size_t count = 0;

    for (size_t size = 1, combinations = 3; size <= 3;
         size++, combinations *= 3) {
        for (size_t c = 0; c < combinations; c++) {
            size_t rest = c;

            keys[count].size = size;
            for (size_t i = 0; i < size; i++, rest /= 3) {
                keys[count].data[i] = letters[rest % 3];
            }
            count++;
        }
    }
    assert_int_equal(count, KEYS);
    qsort(keys, KEYS, sizeof keys[0], key_order);
}

static struct bytes key_at(size_t index)
{
    return (struct bytes){keys[index].data, keys[index].size};
}

static bool newer(struct version left, struct version right)
{
    return left.lsn > right.lsn ||
           (left.lsn == right.lsn && left.op_index > right.op_index);
}

static bool same(struct version left, struct version right)
{
    return left.lsn == right.lsn && left.op_index == right.op_index;
}

static void model_add(struct model *model, size_t first, size_t end,
                      struct version version)
{
    for (size_t place = first; place < end; place++) {
        if (newer(version, model->places[place])) {
            model->places[place] = version;
        }
    }
}

static struct version version_over(const struct range_fragment *found)
{
    return found == NULL ? (struct version){0, 0}
                         : (struct version){found->lsn, found->op_index};
}

static void assert_set_is(const struct range_set *set,
                          const struct model *model)
{
    size_t fragment_count = 0;

    for (size_t place = 0; place < PLACES; place++) {
        const struct version expected = model->places[place];
        const size_t lower = range_set_lower(set, key_at(place));

        assert_true(
            same(version_over(range_set_find(set, key_at(place))), expected));
        fragment_count +=
            expected.lsn != 0 &&
            (place == 0 || !same(expected, model->places[place - 1]));
        /* The first with an end above the key. */
        assert_true(
            lower == range_set_count(set) ||
            bytes_compare(range_set_at(set, lower)->end, key_at(place)) > 0);
        assert_true(lower == 0 ||
                    bytes_compare(range_set_at(set, lower - 1)->end,
                                  key_at(place)) <= 0);
    }
    /* As few as possible, sorted, disjoint, none empty. */
    assert_int_equal(range_set_count(set), fragment_count);
    for (size_t i = 0; i < fragment_count; i++) {
        const struct range_fragment *here = range_set_at(set, i);

        assert_true(bytes_compare(here->first, here->end) < 0);
        assert_true(i == 0 || bytes_compare(range_set_at(set, i - 1)->end,
                                            here->first) <= 0);
    }
}

/* How many stretches of one version in `cut` are in several pieces once what
 * is newer in `by` is laid over them. */
static uint64_t model_splits(const struct model *cut, const struct model *by)
{
    uint64_t splits = 0;
    size_t end;

    for (size_t first = 0; first < PLACES; first = end) {
        size_t piece_count = 0;
        bool hidden = true;

        for (end = first;
             end < PLACES && same(cut->places[end], cut->places[first]);
             end++) {
            if (newer(by->places[end], cut->places[end])) {
                hidden = true;
            } else {
                piece_count += hidden;
                hidden = false;
            }
        }
        splits += cut->places[first].lsn != 0 && piece_count >= 2;
    }
    return splits;
}

static void random_bounds(size_t *first, size_t *end)
{
    *first = random_below(PLACES);
    *end = *first + 1 + random_below(PLACES - *first);
    if (random_below(2) == 0 && *end > *first + 4) {
        *end = *first + 1 + random_below(4);
    }
}

/* Versions in any order, many of them equal. */
static struct range_set *random_set(struct model *model)
{
    const size_t count = random_below(9);
    struct range_set *set = NULL;
    uint64_t splits = 0;

    memset(model, 0, sizeof *model);
    for (size_t i = 0; i < count; i++) {
        const struct version version = {1 + random_below(4),
                                        (uint32_t)random_below(2)};
        size_t first;
        size_t end;

        random_bounds(&first, &end);
        model_add(model, first, end, version);
        set = merge(
            set,
            fragment(key_at(first), key_at(end), version.lsn, version.op_index),
            &splits);
        assert_set_is(set, model);
    }
    return set;
}

static void random_merges_equal_the_brute_force(void **state)
{
    (void)state;
    random_start();
    make_keys();
    for (int round = 0; round < 2000; round++) {
        struct model left_model;
        struct model right_model;
        struct model merged_model;
        struct range_set *left = random_set(&left_model);
        struct range_set *right = random_set(&right_model);
        struct range_set *merged;
        uint64_t splits = 0;

        merged_model = left_model;
        for (size_t place = 0; place < PLACES; place++) {
            model_add(&merged_model, place, place + 1,
                      right_model.places[place]);
        }
        merged = merge(left, right, &splits);
        assert_set_is(merged, &merged_model);
        assert_int_equal(splits, model_splits(&left_model, &right_model) +
                                     model_splits(&right_model, &left_model));
        range_set_unref(merged);
    }
}

static void random_builders_equal_the_brute_force(void **state)
{
    struct model model = {0};
    struct range_set *set = NULL;
    struct range_builder builder;
    uint64_t lsn = 0;

    (void)state;
    random_start();
    make_keys();
    range_builder_init(&builder);
    for (int group = 0; group < 300; group++) {
        const size_t count = random_below(20);
        struct model group_model = {0};
        struct range_set *base = set;

        for (size_t i = 0; i < count; i++) {
            size_t first;
            size_t end;

            lsn++;
            random_bounds(&first, &end);
            assert_int_equal(range_builder_add(&builder, key_at(first),
                                               key_at(end), lsn, 0, NULL),
                             STELE_OK);
            model_add(&group_model, first, end, (struct version){lsn, 0});
            model_add(&model, first, end, (struct version){lsn, 0});
            for (size_t place = 0; place < PLACES; place++) {
                assert_true(same(
                    version_over(range_builder_find(&builder, key_at(place))),
                    group_model.places[place]));
            }
        }
        assert_int_equal(range_builder_is_empty(&builder), count == 0);
        assert_int_equal(range_builder_finish(&builder, base, &set, NULL),
                         STELE_OK);
        range_set_unref(base);
        range_builder_clear(&builder);
        assert_set_is(set, &model);
    }
    range_set_unref(set);
    range_builder_deinit(&builder);
}

/* 20,000 disjoint additions: would take minutes if each copied all before. */
static void many_additions_are_not_quadratic(void **state)
{
    enum { ADDITIONS = 20000 };
    static uint8_t bounds[2 * ADDITIONS][4];
    struct range_builder builder;
    struct range_set *set;

    (void)state;
    range_builder_init(&builder);
    for (uint32_t i = 0; i < 2 * ADDITIONS; i++) {
        bounds[i][0] = (uint8_t)(i >> 24);
        bounds[i][1] = (uint8_t)(i >> 16);
        bounds[i][2] = (uint8_t)(i >> 8);
        bounds[i][3] = (uint8_t)i;
    }
    for (size_t i = 0; i < ADDITIONS; i++) {
        const size_t place = i * 7919 % ADDITIONS;

        assert_int_equal(
            range_builder_add(&builder, (struct bytes){bounds[2 * place], 4},
                              (struct bytes){bounds[2 * place + 1], 4}, i + 1,
                              0, NULL),
            STELE_OK);
    }
    assert_int_equal(range_builder_finish(&builder, NULL, &set, NULL),
                     STELE_OK);
    assert_int_equal(range_set_count(set), ADDITIONS);
    range_set_unref(set);
    range_builder_deinit(&builder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(null_is_the_empty_set_everywhere),
        cmocka_unit_test(a_fragment_covers_its_first_key_but_not_its_end),
        cmocka_unit_test(lower_is_the_covering_fragment_or_the_next_one),
        cmocka_unit_test(a_set_lives_until_its_last_reference_goes),
        cmocka_unit_test(bounds_are_borrowed),
        cmocka_unit_test(bytes_grow_with_the_fragments),
        cmocka_unit_test(a_merge_leaves_its_inputs_alone),
        cmocka_unit_test(a_merge_with_the_empty_set_has_the_same_fragments),
        cmocka_unit_test(a_newer_range_inside_an_older_one_splits_it),
        cmocka_unit_test(a_fragment_in_three_pieces_is_one_split),
        cmocka_unit_test(a_fragment_that_is_only_shortened_is_not_split),
        cmocka_unit_test(an_older_range_inside_a_newer_one_disappears),
        cmocka_unit_test(of_one_batch_the_later_operation_wins),
        cmocka_unit_test(neighbours_of_one_version_that_touch_become_one),
        cmocka_unit_test(neighbours_that_do_not_touch_or_differ_stay_apart),
        cmocka_unit_test(overlaps_of_one_version_become_one_and_split_nothing),
        cmocka_unit_test(a_builder_is_empty_until_something_is_added),
        cmocka_unit_test(a_builder_finds_the_newest_range_over_a_key),
        cmocka_unit_test(finishing_an_empty_builder_yields_the_base),
        cmocka_unit_test(finishing_lays_the_builder_over_the_base_and_keeps_it),
        cmocka_unit_test(clearing_forgets_everything_but_the_splits),
        cmocka_unit_test(random_merges_equal_the_brute_force),
        cmocka_unit_test(random_builders_equal_the_brute_force),
        cmocka_unit_test(many_additions_are_not_quadratic),
    };

    return cmocka_run_group_tests_name("engine/ranges", tests, NULL, NULL);
}
