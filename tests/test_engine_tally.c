/*
 * tests/test_engine_tally.c -- engine/tally.h.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <string.h>

#include "engine/tally.h"

#define BYTES(literal) ((struct bytes){literal, sizeof(literal) - 1})

enum { MESSAGES_MAX = 8, STORED_BYTES_MAX = 64 };

/* ---- A small vocabulary ---------------------------------------------------------- */

static struct tally tally;
static struct stele_error error;
static char messages[MESSAGES_MAX][STELE_ERROR_MESSAGE_BYTES];
static size_t message_count;

static void remember(void *context, const struct stele_error *problem)
{
    assert_ptr_equal(context, &tally);
    assert_int_equal(problem->status, STELE_CORRUPT);
    assert_true(message_count < MESSAGES_MAX);
    memcpy(messages[message_count++], problem->message,
           sizeof problem->message);
}

static int setup(void **state)
{
    (void)state;
    message_count = 0;
    tally_init(&tally, "base", remember, &tally);
    return 0;
}

/* What a base stores. Borrowed until the next call. */
static struct bytes stored_of(struct bytes key, struct bytes value)
{
    static uint8_t stored[STORED_BYTES_MAX];

    base_value_encode_header(7, base_value_check(key, 7, value), stored);
    memcpy(stored + BASE_VALUE_HEADER_BYTES, value.data, value.size);
    return (struct bytes){stored, BASE_VALUE_HEADER_BYTES + value.size};
}

static uint64_t check_of(struct bytes key)
{
    return base_value_check(key, 7, BYTES("value"));
}

static enum stele_status add(struct bytes key)
{
    return tally_add(&tally, key, stored_of(key, BYTES("value")), &error);
}

static enum stele_status add_row(struct bytes key, uint64_t count, uint64_t sum)
{
    uint8_t row[BASE_VALUE_TABLE_ROW_BYTES];

    table_row_encode(&(struct table_row){.count = count, .sum = sum}, row);
    return tally_add(&tally, key,
                     stored_of(key, (struct bytes){row, sizeof row}), &error);
}

/* With a bit flipped in byte `offset` of what is stored. */
static enum stele_status add_rotten(struct bytes key, size_t offset)
{
    uint8_t rotten[STORED_BYTES_MAX];
    const struct bytes stored = stored_of(key, BYTES("value"));

    memcpy(rotten, stored.data, stored.size);
    rotten[offset] ^= 1;
    return tally_add(&tally, key, (struct bytes){rotten, stored.size}, &error);
}

static enum stele_status end(void)
{
    return tally_end(&tally, &error);
}

/* ---- Sound ------------------------------------------------------------------------ */

static void nothing_is_sound(void **state)
{
    (void)state;
    assert_int_equal(end(), STELE_OK);
    assert_int_equal(tally.totals.tables + tally.totals.keys + tally.totals.sum,
                     0);
}

static void tables_and_keys_are_counted_and_checks_summed(void **state)
{
    const uint64_t sum = check_of(BYTES("a\0"
                                        "1")) +
                         check_of(BYTES("a\0"
                                        "2"));
    const uint64_t other = check_of(BYTES("c\0"
                                          "1"));

    (void)state;
    assert_int_equal(add_row(BYTES("a\0"), 2, sum), STELE_OK);
    assert_int_equal(add(BYTES("a\0"
                               "1")),
                     STELE_OK);
    assert_int_equal(add(BYTES("a\0"
                               "2")),
                     STELE_OK);
    assert_int_equal(add_row(BYTES("b\0"), 0, 0), STELE_OK);
    assert_int_equal(add_row(BYTES("c\0"), 1, other), STELE_OK);
    assert_int_equal(add(BYTES("c\0"
                               "1")),
                     STELE_OK);
    assert_int_equal(end(), STELE_OK);
    assert_int_equal(tally.totals.tables, 3);
    assert_int_equal(tally.totals.keys, 3);
    assert_int_equal(tally.totals.sum, sum + other);
    assert_int_equal(message_count, 0);
}

/* ---- Damaged ------------------------------------------------------------------------ */

static void a_rotten_value_is_the_one_finding(void **state)
{
    (void)state;
    assert_int_equal(add_row(BYTES("t\0"), 1, check_of(BYTES("t\0k"))),
                     STELE_OK);
    assert_int_equal(add_rotten(BYTES("t\0k"), BASE_VALUE_HEADER_BYTES),
                     STELE_CORRUPT);
    assert_string_equal(error.message,
                        "base: table \"t\", key \"k\": check mismatch");
    assert_int_equal(end(), STELE_OK);
    assert_int_equal(message_count, 1);
    assert_string_equal(messages[0], error.message);
}

static void a_rotten_check_is_found_in_the_sum_too(void **state)
{
    (void)state;
    assert_int_equal(add_row(BYTES("t\0"), 1, check_of(BYTES("t\0k"))),
                     STELE_OK);
    assert_int_equal(add_rotten(BYTES("t\0k"), 8), STELE_CORRUPT);
    assert_int_equal(end(), STELE_CORRUPT);
    assert_int_equal(message_count, 2);
}

static void a_missing_key_is_found_when_the_next_table_begins(void **state)
{
    (void)state;
    assert_int_equal(add_row(BYTES("t\0"), 3, 0x11), STELE_OK);
    assert_int_equal(add_row(BYTES("u\0"), 0, 0), STELE_CORRUPT);
    assert_string_equal(error.message,
                        "base: row of table \"t\": it says 3 keys, sum "
                        "0000000000000011; there are 0, sum 0000000000000000");
    assert_int_equal(end(), STELE_OK); /* Nothing is told twice. */
    assert_int_equal(message_count, 1);
}

static void a_missing_key_is_found_at_the_end(void **state)
{
    (void)state;
    assert_int_equal(add_row(BYTES("t\0"), 1, 0), STELE_OK);
    assert_int_equal(end(), STELE_CORRUPT);
    assert_int_equal(end(), STELE_OK);
}

static void a_wrong_sum_alone_is_found(void **state)
{
    (void)state;
    assert_int_equal(add_row(BYTES("t\0"), 1, check_of(BYTES("t\0k")) + 1),
                     STELE_OK);
    assert_int_equal(add(BYTES("t\0k")), STELE_OK);
    assert_int_equal(end(), STELE_CORRUPT);
}

static void a_table_without_a_row_is_told_of_once(void **state)
{
    (void)state;
    assert_int_equal(add(BYTES("t\0"
                               "1")),
                     STELE_CORRUPT);
    assert_string_equal(error.message,
                        "base: table \"t\", key \"1\": its table has no row");
    assert_int_equal(add(BYTES("t\0"
                               "2")),
                     STELE_OK);
    assert_int_equal(end(), STELE_OK);
    assert_int_equal(message_count, 1);
    assert_int_equal(tally.totals.keys, 2);
}

/* Its claims are not believed, so they prove nothing of the keys. */
static void a_rotten_row_is_the_one_finding(void **state)
{
    (void)state;
    assert_int_equal(add_rotten(BYTES("t\0"), BASE_VALUE_HEADER_BYTES),
                     STELE_CORRUPT);
    assert_string_equal(error.message,
                        "base: row of table \"t\": check mismatch");
    assert_int_equal(add(BYTES("t\0k")), STELE_OK);
    assert_int_equal(end(), STELE_OK);
    assert_int_equal(message_count, 1);
    assert_int_equal(tally.totals.tables, 1);
}

static void a_row_of_another_length_is_found(void **state)
{
    (void)state;
    assert_int_equal(add(BYTES("t\0")), STELE_CORRUPT);
    assert_string_equal(error.message,
                        "base: row of table \"t\": not as long as a row");
    assert_int_equal(add(BYTES("t\0k")), STELE_OK);
    assert_int_equal(end(), STELE_OK);
    assert_int_equal(message_count, 1);
}

static void a_key_of_no_table_is_found(void **state)
{
    (void)state;
    assert_int_equal(add(BYTES("stray")), STELE_CORRUPT);
    assert_string_equal(error.message,
                        "base: key \"stray\" without a table: misplaced");
    assert_int_equal(message_count, 1);
}

static void what_is_too_short_for_a_value_is_found(void **state)
{
    (void)state;
    assert_int_equal(add_row(BYTES("t\0"), 1, 0), STELE_OK);
    assert_int_equal(tally_add(&tally, BYTES("t\0k"), BYTES("short"), &error),
                     STELE_CORRUPT);
    assert_string_equal(
        error.message, "base: table \"t\", key \"k\": shorter than its header");
    assert_int_equal(end(), STELE_OK);
}

/* The table before it, and the entry itself. */
static void two_findings_at_one_entry_are_both_told(void **state)
{
    (void)state;
    assert_int_equal(add_row(BYTES("t\0"), 1, 0), STELE_OK);
    assert_int_equal(add_rotten(BYTES("u\0"), BASE_VALUE_HEADER_BYTES),
                     STELE_CORRUPT);
    assert_int_equal(message_count, 2);
    assert_string_equal(error.message, messages[0]);
    assert_string_equal(messages[1],
                        "base: row of table \"u\": check mismatch");
}

static void nobody_need_be_told(void **state)
{
    (void)state;
    tally_init(&tally, "base", NULL, NULL);
    assert_int_equal(tally_add(&tally, BYTES("stray"), BYTES(""), NULL),
                     STELE_CORRUPT);
}

#define TALLY_TEST(name) cmocka_unit_test_setup(name, setup)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TALLY_TEST(nothing_is_sound),
        TALLY_TEST(tables_and_keys_are_counted_and_checks_summed),
        TALLY_TEST(a_rotten_value_is_the_one_finding),
        TALLY_TEST(a_rotten_check_is_found_in_the_sum_too),
        TALLY_TEST(a_missing_key_is_found_when_the_next_table_begins),
        TALLY_TEST(a_missing_key_is_found_at_the_end),
        TALLY_TEST(a_wrong_sum_alone_is_found),
        TALLY_TEST(a_table_without_a_row_is_told_of_once),
        TALLY_TEST(a_rotten_row_is_the_one_finding),
        TALLY_TEST(a_row_of_another_length_is_found),
        TALLY_TEST(a_key_of_no_table_is_found),
        TALLY_TEST(what_is_too_short_for_a_value_is_found),
        TALLY_TEST(two_findings_at_one_entry_are_both_told),
        TALLY_TEST(nobody_need_be_told),
    };

    return cmocka_run_group_tests_name("engine/tally", tests, NULL, NULL);
}
