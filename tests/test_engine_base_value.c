/*
 * tests/test_engine_base_value.c -- engine/base_value.h.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#include "engine/base_value.h"

#define BYTES(literal) ((struct bytes){literal, sizeof(literal) - 1})

#define LSN UINT64_C(0x0102030405060708)

/* Of LSN, the key topics 0x00 a, and "value". */
static const uint8_t golden[] = {
    0x08, 0x07, 0x06, 0x05, 0x04, 0x03, 0x02, 0x01, /* lsn */
    0xce, 0xa4, 0xbd, 0x92,                         /* check */
    'v',  'a',  'l',  'u',  'e',
};

static const uint8_t golden_row[BASE_VALUE_TABLE_ROW_BYTES] = {
    0x02, 0x01, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, /* count */
    0x18, 0x17, 0x16, 0x15, 0x14, 0x13, 0x12, 0x11, /* sum */
};

static void a_value_is_encoded_as_the_golden_bytes(void **state)
{
    const struct bytes value = BYTES("value");
    uint8_t encoded[sizeof golden];

    (void)state;
    base_value_encode_header(
        LSN, base_value_check(BYTES("topics\0a"), LSN, value), encoded);
    memcpy(encoded + BASE_VALUE_HEADER_BYTES, value.data, value.size);
    assert_memory_equal(encoded, golden, sizeof golden);
}

static void the_golden_bytes_are_decoded_and_verify(void **state)
{
    struct base_value value;

    (void)state;
    assert_true(
        base_value_decode((struct bytes){golden, sizeof golden}, &value));
    assert_int_equal(value.lsn, LSN);
    assert_int_equal(value.check, 0x92bda4ce);
    assert_int_equal(value.value.size, 5);
    assert_memory_equal(value.value.data, "value", 5);
    assert_true(base_value_verify(BYTES("topics\0a"), &value));
}

static void no_single_bit_flip_verifies(void **state)
{
    (void)state;
    for (size_t bit = 0; bit < sizeof golden * 8; bit++) {
        uint8_t damaged[sizeof golden];
        struct base_value value;

        memcpy(damaged, golden, sizeof damaged);
        damaged[bit / 8] ^= (uint8_t)(1u << (bit % 8));
        assert_true(
            base_value_decode((struct bytes){damaged, sizeof damaged}, &value));
        assert_false(base_value_verify(BYTES("topics\0a"), &value));
    }
}

/* A bit of the key may rot, too, or a pointer lead to another entry. */
static void a_value_under_another_key_does_not_verify(void **state)
{
    struct base_value value;

    (void)state;
    assert_true(
        base_value_decode((struct bytes){golden, sizeof golden}, &value));
    assert_false(base_value_verify(BYTES("topics\0b"), &value));
    assert_false(base_value_verify(BYTES("topics\0"), &value));
    assert_false(base_value_verify(BYTES("topics\0av"), &value));
}

/* The border between key and value is covered by the check. */
static void a_byte_moved_from_key_to_value_changes_the_check(void **state)
{
    (void)state;
    assert_int_not_equal(base_value_check(BYTES("t\0ab"), LSN, BYTES("c")),
                         base_value_check(BYTES("t\0a"), LSN, BYTES("bc")));
}

static void bytes_shorter_than_the_header_are_no_value(void **state)
{
    (void)state;
    for (size_t kept_bytes = 0; kept_bytes < BASE_VALUE_HEADER_BYTES;
         kept_bytes++) {
        struct base_value value = {.lsn = 42};

        assert_false(
            base_value_decode((struct bytes){golden, kept_bytes}, &value));
        assert_int_equal(value.lsn, 42);
    }
}

static void an_empty_value_is_a_header_alone(void **state)
{
    const struct bytes empty = {NULL, 0};
    uint8_t encoded[BASE_VALUE_HEADER_BYTES];
    struct base_value value;

    (void)state;
    base_value_encode_header(LSN, base_value_check(BYTES("t\0a"), LSN, empty),
                             encoded);
    assert_true(
        base_value_decode((struct bytes){encoded, sizeof encoded}, &value));
    assert_int_equal(value.value.size, 0);
    assert_true(base_value_verify(BYTES("t\0a"), &value));
}

static void a_table_row_is_the_golden_bytes_both_ways(void **state)
{
    const struct table_row row = {.count = 0x0102,
                                  .sum = UINT64_C(0x1112131415161718)};
    uint8_t encoded[BASE_VALUE_TABLE_ROW_BYTES];
    struct table_row decoded;

    (void)state;
    table_row_encode(&row, encoded);
    assert_memory_equal(encoded, golden_row, sizeof golden_row);
    assert_true(table_row_decode((struct bytes){golden_row, sizeof golden_row},
                                 &decoded));
    assert_int_equal(decoded.count, row.count);
    assert_int_equal(decoded.sum, row.sum);
}

static void a_table_row_of_another_length_is_none(void **state)
{
    const uint8_t longer[BASE_VALUE_TABLE_ROW_BYTES + 1] = {0};
    struct table_row row;

    (void)state;
    for (size_t bytes = 0; bytes <= sizeof longer; bytes++) {
        assert_int_equal(table_row_decode((struct bytes){longer, bytes}, &row),
                         bytes == BASE_VALUE_TABLE_ROW_BYTES);
    }
}

static void the_table_name_of_a_key_ends_at_its_first_zero(void **state)
{
    (void)state;
    assert_int_equal(base_key_table_bytes(BYTES("topics\0a")), 6);
    assert_int_equal(base_key_table_bytes(BYTES("topics\0")), 6);
    assert_int_equal(base_key_table_bytes(BYTES("topics\0a\0b")), 6);
}

static void a_key_without_a_table_has_a_name_of_no_bytes(void **state)
{
    (void)state;
    assert_int_equal(base_key_table_bytes((struct bytes){NULL, 0}), 0);
    assert_int_equal(base_key_table_bytes(BYTES("topics")), 0);
    assert_int_equal(base_key_table_bytes(BYTES("\0applied")), 0);
}

static void a_table_name_has_at_most_63_bytes(void **state)
{
    char key[BASE_TABLE_NAME_BYTES_MAX + 3];

    (void)state;
    memset(key, 'x', sizeof key);
    key[BASE_TABLE_NAME_BYTES_MAX] = '\0';
    assert_int_equal(base_key_table_bytes((struct bytes){key, sizeof key}),
                     BASE_TABLE_NAME_BYTES_MAX);
    key[BASE_TABLE_NAME_BYTES_MAX] = 'x';
    key[BASE_TABLE_NAME_BYTES_MAX + 1] = '\0';
    assert_int_equal(base_key_table_bytes((struct bytes){key, sizeof key}), 0);
}

/* ---- In words ---------------------------------------------------------------- */

static const char *message_of(struct bytes key, struct bytes stored)
{
    static struct stele_error error;
    struct base_value value;

    assert_int_equal(base_value_read("index", key, stored, &value, &error),
                     STELE_CORRUPT);
    assert_int_equal(error.status, STELE_CORRUPT);
    return error.message;
}

static void what_can_be_trusted_is_read(void **state)
{
    struct stele_error error;
    struct base_value value;

    (void)state;
    assert_int_equal(base_value_read("index", BYTES("topics\0a"),
                                     (struct bytes){golden, sizeof golden},
                                     &value, &error),
                     STELE_OK);
    assert_int_equal(value.lsn, LSN);
    assert_memory_equal(value.value.data, "value", 5);
}

static void damage_is_told_by_table_and_key(void **state)
{
    const struct bytes wrong = {golden, sizeof golden};

    (void)state;
    assert_string_equal(
        message_of(BYTES("topics\0orders"), wrong),
        "index: table \"topics\", key \"orders\": check mismatch");
    assert_string_equal(message_of(BYTES("topics\0"), wrong),
                        "index: row of table \"topics\": check mismatch");
    assert_string_equal(
        message_of(BYTES("topics"), wrong),
        "index: key \"topics\" without a table: check mismatch");
    assert_string_equal(message_of(BYTES("topics\0a"), BYTES("short")),
                        "index: table \"topics\", key \"a\": shorter than its "
                        "header");
}

static void names_that_are_not_printable_are_told_in_hex(void **state)
{
    const struct bytes wrong = {golden, sizeof golden};

    (void)state;
    assert_string_equal(message_of(BYTES("t\0a\0b\n"), wrong),
                        "index: table \"t\", key 6100620a: check mismatch");
    assert_string_equal(message_of(BYTES("\xfft\0a"), wrong),
                        "index: table ff74, key \"a\": check mismatch");
}

static void however_long_they_are_the_message_keeps_its_end(void **state)
{
    static const uint8_t firsts[] = {'x', 0xff};

    (void)state;
    for (size_t table = 0; table < 2; table++) {
        for (size_t rest = 0; rest < 2; rest++) {
            uint8_t key[BASE_KEY_BYTES_MAX];
            const char *message;

            memset(key, firsts[table], BASE_TABLE_NAME_BYTES_MAX);
            key[BASE_TABLE_NAME_BYTES_MAX] = '\0';
            memset(key + BASE_TABLE_NAME_BYTES_MAX + 1, firsts[rest],
                   sizeof key - BASE_TABLE_NAME_BYTES_MAX - 1);
            message = message_of((struct bytes){key, sizeof key},
                                 (struct bytes){golden, sizeof golden});
            assert_non_null(strstr(message, "...: check mismatch"));
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_value_is_encoded_as_the_golden_bytes),
        cmocka_unit_test(the_golden_bytes_are_decoded_and_verify),
        cmocka_unit_test(no_single_bit_flip_verifies),
        cmocka_unit_test(a_value_under_another_key_does_not_verify),
        cmocka_unit_test(a_byte_moved_from_key_to_value_changes_the_check),
        cmocka_unit_test(bytes_shorter_than_the_header_are_no_value),
        cmocka_unit_test(an_empty_value_is_a_header_alone),
        cmocka_unit_test(a_table_row_is_the_golden_bytes_both_ways),
        cmocka_unit_test(a_table_row_of_another_length_is_none),
        cmocka_unit_test(the_table_name_of_a_key_ends_at_its_first_zero),
        cmocka_unit_test(a_key_without_a_table_has_a_name_of_no_bytes),
        cmocka_unit_test(a_table_name_has_at_most_63_bytes),
        cmocka_unit_test(what_can_be_trusted_is_read),
        cmocka_unit_test(damage_is_told_by_table_and_key),
        cmocka_unit_test(names_that_are_not_printable_are_told_in_hex),
        cmocka_unit_test(however_long_they_are_the_message_keeps_its_end),
    };

    return cmocka_run_group_tests_name("engine/base_value", tests, NULL, NULL);
}
