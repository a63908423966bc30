/*
 * tests/test_wal_record.c -- wal/record.h, rule by rule.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#include "wal/record.h"

enum {
    LENGTH_OFFSET = 0,
    LSN_OFFSET = 8,
    FLAGS_OFFSET = 16,
    ZERO_OFFSET = 20,
    TERM_OFFSET = 24,
    CHECKSUM_OFFSET = 48,
    BODY_BYTES = 3,
};

static const uint8_t golden[WAL_RECORD_HEADER_BYTES + BODY_BYTES] = {
    0x03, 0x00, 0x00, 0x00,                         /* body bytes */
    0x05, 0x00, 0x00, 0x00,                         /* op count */
    0x08, 0x07, 0x06, 0x05, 0x04, 0x03, 0x02, 0x01, /* lsn */
    0x01, 0x00, 0x00, 0x00,                         /* flags: has a tag */
    0x00, 0x00, 0x00, 0x00,                         /* zero */
    0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, /* term */
    0xb0, 0xb1, 0xb2, 0xb3, 0xb4, 0xb5, 0xb6, 0xb7, /* tag */
    0xb8, 0xb9, 0xba, 0xbb, 0xbc, 0xbd, 0xbe, 0xbf, /**/
    0xd5, 0xdd, 0x6d, 0x43, 0x27, 0x88, 0xb9, 0xfd, /* body checksum */
    'k',  '=',  'v',
};

/* ---- A small vocabulary ------------------------------------------------------ */

static struct wal_record example(void)
{
    struct wal_record record = {
        .lsn = UINT64_C(0x0102030405060708),
        .op_count = 5,
        .flags = WAL_RECORD_HAS_TAG,
        .body_bytes = BODY_BYTES,
        .body_checksum = wal_record_body_checksum("k=v", BODY_BYTES),
    };

    for (uint8_t index = 0; index < WAL_RECORD_TAG_BYTES; index++) {
        record.tag[index] = (uint8_t)(0xb0 + index);
    }
    return record;
}

static bool decodes(const uint8_t *data, size_t bytes)
{
    struct byte_reader in = byte_reader_init(data, bytes);
    struct wal_record record = {.lsn = 42};
    const bool decoded = wal_record_decode(&in, &record);

    if (!decoded) { /* Then the result is untouched. */
        assert_int_equal(record.lsn, 42);
        assert_null(record.body);
    }
    return decoded;
}

/* The golden record with `bytes` bytes at `offset` replaced. */
static bool decodes_with(size_t offset, const void *bytes, size_t count)
{
    uint8_t changed[sizeof golden];

    memcpy(changed, golden, sizeof changed);
    memcpy(changed + offset, bytes, count);
    return decodes(changed, sizeof changed);
}

/* ---- Tests ---------------------------------------------------------------------- */

static void a_record_is_encoded_as_the_golden_bytes(void **state)
{
    const struct wal_record record = example();
    uint8_t encoded[WAL_RECORD_HEADER_BYTES];

    (void)state;
    wal_record_encode_header(&record, encoded);
    assert_memory_equal(encoded, golden, sizeof encoded);
}

static void the_golden_bytes_are_decoded_to_every_field(void **state)
{
    const struct wal_record expected = example();
    struct byte_reader in = byte_reader_init(golden, sizeof golden);
    struct wal_record record;

    (void)state;
    assert_true(wal_record_decode(&in, &record));
    assert_int_equal(in.offset, sizeof golden);
    assert_int_equal(record.lsn, expected.lsn);
    assert_int_equal(record.term, 0);
    assert_int_equal(record.body_checksum, expected.body_checksum);
    assert_int_equal(record.op_count, 5);
    assert_int_equal(record.flags, WAL_RECORD_HAS_TAG);
    assert_memory_equal(record.tag, expected.tag, sizeof record.tag);
    assert_int_equal(record.body_bytes, BODY_BYTES);
    assert_ptr_equal(record.body, golden + WAL_RECORD_HEADER_BYTES);
}

static void records_stand_back_to_back(void **state)
{
    uint8_t two[2 * sizeof golden];
    struct byte_reader in = byte_reader_init(two, sizeof two);
    struct wal_record record;

    (void)state;
    memcpy(two, golden, sizeof golden);
    memcpy(two + sizeof golden, golden, sizeof golden);
    assert_true(wal_record_decode(&in, &record));
    assert_true(wal_record_decode(&in, &record));
    assert_int_equal(in.offset, sizeof two);
    assert_false(wal_record_decode(&in, &record));
}

static void a_body_may_be_empty(void **state)
{
    struct wal_record record = {.lsn = 1};
    uint8_t encoded[WAL_RECORD_HEADER_BYTES];

    (void)state;
    record.body_checksum = wal_record_body_checksum("", 0);
    wal_record_encode_header(&record, encoded);
    assert_true(decodes(encoded, sizeof encoded));
}

/* Rule (1). A power cut during a write leaves a prefix behind. */
static void no_proper_prefix_of_a_record_is_valid(void **state)
{
    (void)state;
    assert_true(decodes(golden, sizeof golden));
    for (size_t bytes = 0; bytes < sizeof golden; bytes++) {
        assert_false(decodes(golden, bytes));
    }
}

/* Rule (1). The length is a claim until the checksum holds. */
static void a_length_beyond_the_bytes_at_hand_is_refused(void **state)
{
    static const uint32_t lengths[] = {4, 1 << 30, INT32_MAX, UINT32_C(1) << 31,
                                       UINT32_MAX};

    (void)state;
    for (size_t index = 0; index < sizeof lengths / sizeof *lengths; index++) {
        uint8_t length[4];

        put_u32le(length, lengths[index]);
        assert_false(decodes_with(LENGTH_OFFSET, length, sizeof length));
    }
}

/* Rule (2). */
static void unknown_flags_and_a_nonzero_zero_are_refused(void **state)
{
    (void)state;
    for (unsigned bit = 1; bit < 32; bit++) {
        uint8_t flags[4];

        put_u32le(flags, UINT32_C(1) << bit | WAL_RECORD_HAS_TAG);
        assert_false(decodes_with(FLAGS_OFFSET, flags, sizeof flags));
    }
    for (unsigned bit = 0; bit < 32; bit++) {
        uint8_t zero[4];

        put_u32le(zero, UINT32_C(1) << bit);
        assert_false(decodes_with(ZERO_OFFSET, zero, sizeof zero));
    }
}

/* Rule (3). */
static void no_bit_flip_in_checksum_or_body_is_accepted(void **state)
{
    (void)state;
    for (size_t bit = (size_t)CHECKSUM_OFFSET * 8; bit < sizeof golden * 8;
         bit++) {
        const uint8_t flipped = (uint8_t)(golden[bit / 8] ^ (1u << (bit % 8)));

        assert_false(decodes_with(bit / 8, &flipped, 1));
    }
}

/* Of the rest of the header the record says nothing: the unit's chain does. */
static void lsn_and_term_are_left_to_the_chain(void **state)
{
    const uint8_t other = 0xee;

    (void)state;
    assert_true(decodes_with(LSN_OFFSET, &other, 1));
    assert_true(decodes_with(TERM_OFFSET, &other, 1));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_record_is_encoded_as_the_golden_bytes),
        cmocka_unit_test(the_golden_bytes_are_decoded_to_every_field),
        cmocka_unit_test(records_stand_back_to_back),
        cmocka_unit_test(a_body_may_be_empty),
        cmocka_unit_test(no_proper_prefix_of_a_record_is_valid),
        cmocka_unit_test(a_length_beyond_the_bytes_at_hand_is_refused),
        cmocka_unit_test(unknown_flags_and_a_nonzero_zero_are_refused),
        cmocka_unit_test(no_bit_flip_in_checksum_or_body_is_accepted),
        cmocka_unit_test(lsn_and_term_are_left_to_the_chain),
    };

    return cmocka_run_group_tests_name("wal/record", tests, NULL, NULL);
}
