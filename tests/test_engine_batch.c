/*
 * tests/test_engine_batch.c -- batches, through the public API: every limit and
 * one more, what a failed call leaves, and the bytes a batch becomes.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "engine/batch.h"
#include "engine/ops.h"
#include "engine/stele.h"
#include "wal/record.h"

enum {
    TABLE_BYTES_MAX = STELE_TABLE_NAME_BYTES_MAX,
    KEY_BYTES_MAX = STELE_TABLE_AND_KEY_BYTES_MAX - 1, /* In table "t". */
    VALUE_BYTES_MAX = 16 << 20,
};

/* ---- A small vocabulary ------------------------------------------------------------- */

static struct stele_batch *batch;
static struct stele_error error;
static uint8_t zeros[VALUE_BYTES_MAX + 1];
static uint8_t highest[STELE_TABLE_AND_KEY_BYTES_MAX + 1];

static int make_batch(void **state)
{
    (void)state;
    memset(highest, 0xff, sizeof highest);
    error = (struct stele_error){0};
    return stele_batch_create(&batch, &error) == STELE_OK ? 0 : -1;
}

static int destroy_batch(void **state)
{
    (void)state;
    stele_batch_destroy(batch);
    return 0;
}

static enum stele_status put(const char *table, size_t key_bytes,
                             size_t value_bytes)
{
    return stele_batch_put(batch, table, zeros, key_bytes, zeros, value_bytes,
                           &error);
}

static enum stele_status delete_range(const char *first, const char *end)
{
    return stele_batch_delete_range(batch, "t", first,
                                    first == NULL ? 0 : strlen(first), end,
                                    end == NULL ? 0 : strlen(end), &error);
}

/* A name of `size` times 't'. */
static const char *name_of(size_t size)
{
    static char name[TABLE_BYTES_MAX + 2];

    memset(name, 't', sizeof name);
    name[size] = '\0';
    return name;
}

static bool body_is(const void *data, size_t size)
{
    const struct bytes body = batch_body(batch);

    return bytes_compare(body, (struct bytes){data, size}) == 0;
}

#define BODY_IS(literal) body_is(literal, sizeof(literal) - 1)

/* ---- Limits, and one more --------------------------------------------------------------- */

static void table_names_are_checked_by_every_call(void **state)
{
    static const char *const bad[] = {"", "a b", "a/b", "t\xc3\xa4", "t:"};

    (void)state;
    assert_int_equal(put(name_of(TABLE_BYTES_MAX), 1, 0), STELE_OK);
    assert_int_equal(put(name_of(TABLE_BYTES_MAX + 1), 1, 0), STELE_TOO_BIG);
    assert_int_equal(put(NULL, 1, 0), STELE_INVALID);
    for (size_t index = 0; index < sizeof bad / sizeof *bad; index++) {
        const char *name = bad[index];

        assert_int_equal(put(name, 1, 0), STELE_INVALID);
        assert_int_equal(stele_batch_delete(batch, name, "k", 1, &error),
                         STELE_INVALID);
        assert_int_equal(
            stele_batch_delete_range(batch, name, "a", 1, "b", 1, &error),
            STELE_INVALID);
        assert_int_equal(stele_batch_delete_prefix(batch, name, "p", 1, &error),
                         STELE_INVALID);
        assert_int_equal(stele_batch_clear_table(batch, name, &error),
                         STELE_INVALID);
        assert_int_equal(stele_batch_expect_lsn(batch, name, "k", 1, 1, &error),
                         STELE_INVALID);
        assert_int_equal(stele_batch_expect_absent(batch, name, "k", 1, &error),
                         STELE_INVALID);
        assert_int_equal(
            stele_batch_expect_present(batch, name, "k", 1, &error),
            STELE_INVALID);
    }
    assert_int_equal(stele_batch_ops(batch), 1);
}

static void keys_are_checked_by_every_call(void **state)
{
    static const struct {
        size_t key_bytes;
        enum stele_status expected;
    } cases[] = {{0, STELE_INVALID},
                 {1, STELE_OK},
                 {KEY_BYTES_MAX, STELE_OK},
                 {KEY_BYTES_MAX + 1, STELE_TOO_BIG},
                 {SIZE_MAX, STELE_TOO_BIG}};

    (void)state;
    for (size_t index = 0; index < sizeof cases / sizeof *cases; index++) {
        const size_t bytes = cases[index].key_bytes;
        const enum stele_status expected = cases[index].expected;

        assert_int_equal(put("t", bytes, 0), expected);
        assert_int_equal(stele_batch_delete(batch, "t", zeros, bytes, &error),
                         expected);
        assert_int_equal(
            stele_batch_delete_prefix(batch, "t", zeros, bytes, &error),
            expected);
        assert_int_equal(
            stele_batch_delete_range(batch, "t", zeros, bytes, NULL, 0, &error),
            expected);
        assert_int_equal(stele_batch_delete_range(batch, "t", NULL, 0, highest,
                                                  bytes, &error),
                         expected);
        assert_int_equal(
            stele_batch_expect_lsn(batch, "t", zeros, bytes, 1, &error),
            expected);
        assert_int_equal(
            stele_batch_expect_absent(batch, "t", zeros, bytes, &error),
            expected);
        assert_int_equal(
            stele_batch_expect_present(batch, "t", zeros, bytes, &error),
            expected);
    }
    assert_int_equal(stele_batch_put(batch, "t", NULL, 1, "v", 1, &error),
                     STELE_INVALID);
    assert_int_equal(stele_batch_ops(batch), 2 * 8);
}

static void the_longest_key_depends_on_the_tables_name(void **state)
{
    (void)state;
    assert_int_equal(put(name_of(TABLE_BYTES_MAX),
                         STELE_TABLE_AND_KEY_BYTES_MAX - TABLE_BYTES_MAX, 0),
                     STELE_OK);
    assert_int_equal(put(name_of(TABLE_BYTES_MAX),
                         STELE_TABLE_AND_KEY_BYTES_MAX - TABLE_BYTES_MAX + 1,
                         0),
                     STELE_TOO_BIG);
}

static void a_value_has_0_bytes_to_16_mib(void **state)
{
    (void)state;
    assert_int_equal(put("t", 1, 0), STELE_OK);
    assert_int_equal(put("t", 1, VALUE_BYTES_MAX), STELE_OK);
    assert_int_equal(put("t", 1, VALUE_BYTES_MAX + 1), STELE_TOO_BIG);
    assert_string_equal(error.message, "the value has 16777217 bytes, at most "
                                       "16777216 are possible");
    assert_int_equal(stele_batch_put(batch, "t", "k", 1, NULL, 0, &error),
                     STELE_OK);
    assert_int_equal(stele_batch_put(batch, "t", "k", 1, NULL, 1, &error),
                     STELE_INVALID);
    assert_int_equal(stele_batch_ops(batch), 3);
}

static void an_empty_range_is_invalid(void **state)
{
    (void)state;
    assert_int_equal(delete_range("a", "b"), STELE_OK);
    assert_int_equal(delete_range("a", NULL), STELE_OK);
    assert_int_equal(delete_range(NULL, "a"), STELE_OK);
    assert_int_equal(delete_range(NULL, NULL), STELE_OK);
    assert_int_equal(delete_range("a", "a"), STELE_INVALID);
    assert_string_equal(error.message,
                        "the range is empty: its end is not above its start");
    assert_int_equal(delete_range("b", "a"), STELE_INVALID);
    assert_int_equal(delete_range("ab", "a"), STELE_INVALID);
    assert_int_equal(delete_range("", "a"), STELE_INVALID);
    assert_int_equal(delete_range("a", ""), STELE_INVALID);
    assert_int_equal(stele_batch_ops(batch), 4);
}

/* ---- What a failed call leaves -------------------------------------------------------------- */

static void a_failed_call_leaves_the_batch_as_it_was(void **state)
{
    uint64_t bytes;
    uint8_t *before;

    (void)state;
    assert_int_equal(put("t", 3, 5), STELE_OK);
    bytes = stele_batch_bytes(batch);
    before = malloc(bytes);
    assert_non_null(before);
    memcpy(before, batch->data, bytes);

    assert_int_equal(put("u", 0, 5), STELE_INVALID);
    assert_int_equal(put("u v", 3, 5), STELE_INVALID);
    assert_int_equal(put("u", KEY_BYTES_MAX + 1, 5), STELE_TOO_BIG);
    assert_int_equal(put("u", 3, VALUE_BYTES_MAX + 1), STELE_TOO_BIG);
    assert_int_equal(delete_range("b", "a"), STELE_INVALID);
    assert_int_equal(stele_batch_delete_prefix(batch, "u", "", 0, &error),
                     STELE_INVALID);

    assert_int_equal(stele_batch_ops(batch), 1);
    assert_int_equal(stele_batch_bytes(batch), bytes);
    assert_memory_equal(batch->data, before, bytes);
    free(before);
    /* Nor has it changed the table: this needs no new one. */
    assert_int_equal(stele_batch_put(batch, "t", "k", 1, "v", 1, &error),
                     STELE_OK);
    assert_int_equal(stele_batch_bytes(batch), bytes + 7 + 1 + 1);
}

/* The format's bound on the number of operations. */
static void a_batch_has_at_most_16_mi_operations(void **state)
{
    (void)state;
    batch->op_count = (1u << 24) - 1;
    assert_int_equal(stele_batch_delete(batch, "t", "k", 1, &error), STELE_OK);
    assert_int_equal(stele_batch_delete(batch, "t", "k", 1, &error),
                     STELE_TOO_BIG);
    assert_string_equal(error.message, "the batch has 16777216 operations, the "
                                       "most there can be");
}

/* ---- Bytes ---------------------------------------------------------------------------------- */

static void operations_are_encoded_as_they_are_added(void **state)
{
    (void)state;
    assert_int_equal(stele_batch_ops(batch), 0);
    assert_int_equal(stele_batch_bytes(batch), WAL_RECORD_HEADER_BYTES);
    assert_int_equal(stele_batch_put(batch, "t", "k", 1, "v", 1, &error),
                     STELE_OK);
    assert_true(BODY_IS("\x01\x01t\x02\x01\x00\x01\x00\x00\x00kv"));
    assert_int_equal(stele_batch_bytes(batch), WAL_RECORD_HEADER_BYTES + 12);
}

static void the_table_is_named_only_when_it_changes(void **state)
{
    (void)state;
    for (int round = 0; round < 2; round++) {
        assert_int_equal(stele_batch_delete(batch, "t", "a", 1, &error),
                         STELE_OK);
        assert_int_equal(stele_batch_delete(batch, "t", "b", 1, &error),
                         STELE_OK);
        assert_int_equal(stele_batch_delete(batch, "tt", "c", 1, &error),
                         STELE_OK);
    }
    assert_true(BODY_IS("\x01\x01t\x03\x01\x00"
                        "a\x03\x01\x00"
                        "b\x01\x02tt\x03\x01\x00"
                        "c\x01\x01t\x03\x01\x00"
                        "a\x03\x01\x00"
                        "b\x01\x02tt\x03\x01\x00"
                        "c"));
}

static void a_prefix_is_a_range_to_the_next_one_up(void **state)
{
    (void)state;
    assert_int_equal(stele_batch_delete_prefix(batch, "t", "ab", 2, &error),
                     STELE_OK);
    assert_true(BODY_IS("\x01\x01t\x04\x02\x00\x02\x00"
                        "abac"));
    stele_batch_clear(batch);
    assert_int_equal(stele_batch_delete_prefix(batch, "t", "a\xff", 2, &error),
                     STELE_OK);
    assert_true(BODY_IS("\x01\x01t\x04\x02\x00\x01\x00"
                        "a\xff"
                        "b"));
    stele_batch_clear(batch);
    assert_int_equal(
        stele_batch_delete_prefix(batch, "t", "\xff\xff", 2, &error), STELE_OK);
    assert_true(BODY_IS("\x01\x01t\x04\x02\x00\x00\x00\xff\xff"));
}

/* Headline case: the record of a prefix delete, whatever lies under it. */
static void a_delete_of_everything_is_a_few_bytes(void **state)
{
    (void)state;
    assert_int_equal(stele_batch_clear_table(batch, "t", &error), STELE_OK);
    assert_true(BODY_IS("\x01\x01t\x04\x00\x00\x00\x00"));
    assert_true(stele_batch_bytes(batch) < 200);
}

static void every_batch_of_valid_calls_is_a_valid_body(void **state)
{
    struct ops_reader reader;
    struct bytes body;
    struct op op;
    uint32_t count = 0;

    (void)state;
    assert_int_equal(
        stele_batch_expect_lsn(batch, "t", "k", 1, UINT64_MAX, &error),
        STELE_OK);
    assert_int_equal(
        stele_batch_expect_absent(batch, "t", zeros, KEY_BYTES_MAX, &error),
        STELE_OK);
    assert_int_equal(stele_batch_expect_present(batch, "u", highest, 1, &error),
                     STELE_OK);
    assert_int_equal(put("t", KEY_BYTES_MAX, VALUE_BYTES_MAX), STELE_OK);
    assert_int_equal(stele_batch_delete_range(batch, "t", zeros, KEY_BYTES_MAX,
                                              highest, KEY_BYTES_MAX, &error),
                     STELE_OK);
    assert_int_equal(
        stele_batch_delete_prefix(batch, "t", highest, KEY_BYTES_MAX, &error),
        STELE_OK);
    assert_int_equal(stele_batch_clear_table(batch, "u", &error), STELE_OK);
    body = batch_body(batch);
    reader = ops_reader_init(body.data, body.size);
    while (ops_next(&reader, &op) == OPS_OP) {
        count++;
    }
    assert_int_equal(ops_next(&reader, &op), OPS_END);
    assert_int_equal(count, 7);
    assert_int_equal(count, stele_batch_ops(batch));
}

static void a_sealed_batch_is_a_valid_record(void **state)
{
    static const uint8_t tag[STELE_TAG_BYTES] = "a tag of sixteen";
    struct wal_record record;
    struct byte_reader in;

    (void)state;
    assert_int_equal(put("t", 3, 5), STELE_OK);
    assert_int_equal(put("t", 4, 6), STELE_OK);
    for (int tagged = 0; tagged < 2; tagged++) {
        batch_seal(batch);
        batch_set_lsn(batch, 42);
        in = byte_reader_init(batch->data, batch->bytes);
        assert_true(wal_record_decode(&in, &record));
        assert_int_equal(in.offset, in.size);
        assert_int_equal(record.lsn, 42);
        assert_int_equal(record.op_count, 2);
        assert_int_equal(record.flags, tagged == 0 ? 0 : WAL_RECORD_HAS_TAG);
        stele_batch_set_tag(batch, tag);
    }
    assert_memory_equal(record.tag, tag, sizeof tag);
}

static void a_cleared_batch_is_as_new(void **state)
{
    static const uint8_t tag[STELE_TAG_BYTES] = {1};
    struct wal_record record;
    struct byte_reader in;

    (void)state;
    assert_int_equal(put("t", 3, 5), STELE_OK);
    assert_int_equal(stele_batch_expect_absent(batch, "t", "k", 1, &error),
                     STELE_OK);
    stele_batch_set_tag(batch, tag);
    stele_batch_clear(batch);
    assert_int_equal(stele_batch_ops(batch), 0);
    assert_int_equal(stele_batch_bytes(batch), WAL_RECORD_HEADER_BYTES);
    assert_int_equal(batch->expectation_count, 0);
    assert_int_equal(batch->value_bytes_max, 0);
    /* The table is named again, and the tag is gone. */
    assert_int_equal(stele_batch_delete(batch, "t", "k", 1, &error), STELE_OK);
    assert_true(BODY_IS("\x01\x01t\x03\x01\x00k"));
    batch_seal(batch);
    batch_set_lsn(batch, 1);
    in = byte_reader_init(batch->data, batch->bytes);
    assert_true(wal_record_decode(&in, &record));
    assert_int_equal(record.flags, 0);
    assert_true(bytes_are_zero(record.tag, sizeof record.tag));
    stele_batch_destroy(NULL);
}

#define BATCH_TEST(name)                                                       \
    cmocka_unit_test_setup_teardown(name, make_batch, destroy_batch)

int main(void)
{
    const struct CMUnitTest tests[] = {
        BATCH_TEST(table_names_are_checked_by_every_call),
        BATCH_TEST(keys_are_checked_by_every_call),
        BATCH_TEST(the_longest_key_depends_on_the_tables_name),
        BATCH_TEST(a_value_has_0_bytes_to_16_mib),
        BATCH_TEST(an_empty_range_is_invalid),
        BATCH_TEST(a_failed_call_leaves_the_batch_as_it_was),
        BATCH_TEST(a_batch_has_at_most_16_mi_operations),
        BATCH_TEST(operations_are_encoded_as_they_are_added),
        BATCH_TEST(the_table_is_named_only_when_it_changes),
        BATCH_TEST(a_prefix_is_a_range_to_the_next_one_up),
        BATCH_TEST(a_delete_of_everything_is_a_few_bytes),
        BATCH_TEST(every_batch_of_valid_calls_is_a_valid_body),
        BATCH_TEST(a_sealed_batch_is_a_valid_record),
        BATCH_TEST(a_cleared_batch_is_as_new),
    };

    return cmocka_run_group_tests_name("engine/batch", tests, NULL, NULL);
}
