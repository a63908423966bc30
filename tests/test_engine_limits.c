/* tests/test_engine_limits.c -- engine/limits.h: each limit, and one more. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <string.h>

#include "engine/limits.h"

#define BYTES(literal) ((struct bytes){literal, sizeof(literal) - 1})

/* ---- A small vocabulary ------------------------------------------------------- */

static struct stele_error error;

/* A name of `size` times 't'. */
static const char *name_of(size_t size)
{
    static char name[128];

    memset(name, 't', sizeof name);
    name[size] = '\0';
    return name;
}

static enum stele_status check_key_bytes(const char *table, size_t key_bytes)
{
    static const char key[1024];

    return limit_check_key(table, key, key_bytes, "key", &error);
}

/* The end of the keys that begin with `prefix`, which there is. */
static void assert_prefix_end(struct bytes prefix, struct bytes expected)
{
    uint8_t end[16];
    size_t end_bytes;

    assert_true(prefix_end(prefix, end, &end_bytes));
    assert_int_equal(end_bytes, expected.size);
    assert_memory_equal(end, expected.data, expected.size);
}

/* ---- Table names --------------------------------------------------------------- */

static void a_table_name_has_1_to_63_bytes(void **state)
{
    (void)state;
    assert_int_equal(limit_check_table(name_of(1), &error), STELE_OK);
    assert_int_equal(limit_check_table(name_of(63), &error), STELE_OK);
    assert_int_equal(limit_check_table(name_of(64), &error), STELE_TOO_BIG);
    assert_string_equal(error.message, "the table name has more than 63 bytes");
    assert_int_equal(limit_check_table(name_of(0), &error), STELE_INVALID);
    assert_string_equal(error.message, "the table name is empty");
    assert_int_equal(limit_check_table(NULL, &error), STELE_INVALID);
    assert_false(limit_table_name_is_valid((struct bytes){NULL, 0}));
    assert_true(limit_table_name_is_valid((struct bytes){name_of(63), 63}));
    assert_false(limit_table_name_is_valid((struct bytes){name_of(64), 64}));
}

static void a_table_name_is_of_letters_digits_and_three_others(void **state)
{
    static const char allowed[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                  "abcdefghijklmnopqrstuvwxyz"
                                  "0123456789._-";

    (void)state;
    for (int byte = 1; byte < 256; byte++) {
        const char name[] = {'a', (char)byte, 'z', '\0'};
        const bool expected = strchr(allowed, byte) != NULL;

        assert_int_equal(limit_table_name_is_valid((struct bytes){name, 3}),
                         expected);
        assert_int_equal(limit_check_table(name, &error),
                         expected ? STELE_OK : STELE_INVALID);
    }
    /* Not as bytes from a disk either, where it does not end there. */
    assert_false(limit_table_name_is_valid(BYTES("a\0z")));
}

/* ---- Keys -------------------------------------------------------------------------- */

static void name_and_key_have_510_bytes_together(void **state)
{
    (void)state;
    for (size_t name_bytes = 1; name_bytes <= 63; name_bytes++) {
        assert_int_equal(check_key_bytes(name_of(name_bytes), 510 - name_bytes),
                         STELE_OK);
        assert_int_equal(check_key_bytes(name_of(name_bytes), 511 - name_bytes),
                         STELE_TOO_BIG);
    }
    assert_int_equal(check_key_bytes("t", 510), STELE_TOO_BIG);
    assert_string_equal(error.message,
                        "the key has 510 bytes, in table t at most 509 fit");
    assert_int_equal(check_key_bytes("t", SIZE_MAX), STELE_TOO_BIG);
}

static void a_key_has_at_least_one_byte(void **state)
{
    (void)state;
    assert_int_equal(check_key_bytes("t", 1), STELE_OK);
    assert_int_equal(check_key_bytes("t", 0), STELE_INVALID);
    assert_string_equal(error.message, "the key is empty");
    assert_int_equal(limit_check_key("t", NULL, 3, "prefix", &error),
                     STELE_INVALID);
    assert_string_equal(error.message, "the prefix is empty");
    assert_int_equal(check_key_bytes("no table", 1), STELE_INVALID);
}

/* ---- Full keys ----------------------------------------------------------------------- */

static void a_full_key_is_table_zero_key(void **state)
{
    struct full_key full;

    (void)state;
    full_key_init(&full, BYTES("topics"), BYTES("a\0b"));
    assert_int_equal(full.size, 10);
    assert_memory_equal(full.data, "topics\0a\0b", 10);
    full_key_init(&full, BYTES("t"), (struct bytes){NULL, 0});
    assert_int_equal(full.size, 2);
    assert_memory_equal(full.data, "t\0", 2);
}

static void all_keys_of_a_table_lie_between_its_first_and_end(void **state)
{
    static const struct bytes keys[] = {
        {"\0", 1}, {"\0\0", 2}, {"a", 1}, {"\xff", 1}, {"\xff\xff\xff\xff", 4}};
    struct full_key first;
    struct full_key end;
    struct full_key full;

    (void)state;
    full_key_table_first(&first, BYTES("t"));
    full_key_table_end(&end, BYTES("t"));
    for (size_t index = 0; index < sizeof keys / sizeof *keys; index++) {
        full_key_init(&full, BYTES("t"), keys[index]);
        assert_true(
            bytes_compare(full_key_bytes(&full), full_key_bytes(&first)) >= 0);
        assert_true(bytes_compare(full_key_bytes(&full), full_key_bytes(&end)) <
                    0);
    }
    /* The table's row, and the tables around it, do not. */
    full_key_init(&full, BYTES("t"), (struct bytes){NULL, 0});
    assert_true(bytes_compare(full_key_bytes(&full), full_key_bytes(&first)) <
                0);
    full_key_init(&full, BYTES("t-"), BYTES("a"));
    assert_true(bytes_compare(full_key_bytes(&full), full_key_bytes(&end)) > 0);
    full_key_init(&full, BYTES("s.zzzz"), BYTES("\xff"));
    assert_true(bytes_compare(full_key_bytes(&full), full_key_bytes(&first)) <
                0);
}

static void the_longest_full_key_fits(void **state)
{
    static const uint8_t key[LIMIT_FULL_KEY_BYTES_MAX];
    struct full_key full;

    (void)state;
    full_key_init(&full, (struct bytes){name_of(63), 63},
                  (struct bytes){key, 510 - 63});
    assert_int_equal(full.size, LIMIT_FULL_KEY_BYTES_MAX);
    full_key_init(&full, BYTES("t"), (struct bytes){key, 509});
    assert_int_equal(full.size, LIMIT_FULL_KEY_BYTES_MAX);
}

/* ---- Prefixes ---------------------------------------------------------------------------- */

static void the_end_of_a_prefix_is_the_next_one_up(void **state)
{
    (void)state;
    assert_prefix_end(BYTES("a"), BYTES("b"));
    assert_prefix_end(BYTES("ab"), BYTES("ac"));
    assert_prefix_end(BYTES("a\x00"), BYTES("a\x01"));
    assert_prefix_end(BYTES("a\xfe"), BYTES("a\xff"));
    assert_prefix_end(BYTES("a\xff"), BYTES("b"));
    assert_prefix_end(BYTES("a\xff\xff"), BYTES("b"));
    assert_prefix_end(BYTES("\x7f"), BYTES("\x80"));
}

static void nothing_is_above_a_prefix_of_the_highest_bytes(void **state)
{
    uint8_t end[4];
    size_t end_bytes = 77;

    (void)state;
    assert_false(prefix_end(BYTES("\xff"), end, &end_bytes));
    assert_false(prefix_end(BYTES("\xff\xff\xff"), end, &end_bytes));
    assert_int_equal(end_bytes, 77);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_table_name_has_1_to_63_bytes),
        cmocka_unit_test(a_table_name_is_of_letters_digits_and_three_others),
        cmocka_unit_test(name_and_key_have_510_bytes_together),
        cmocka_unit_test(a_key_has_at_least_one_byte),
        cmocka_unit_test(a_full_key_is_table_zero_key),
        cmocka_unit_test(all_keys_of_a_table_lie_between_its_first_and_end),
        cmocka_unit_test(the_longest_full_key_fits),
        cmocka_unit_test(the_end_of_a_prefix_is_the_next_one_up),
        cmocka_unit_test(nothing_is_above_a_prefix_of_the_highest_bytes),
    };

    return cmocka_run_group_tests_name("engine/limits", tests, NULL, NULL);
}
