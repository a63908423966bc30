/*
 * tests/test_wal_position.c -- wal/position.h, byte by byte.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#include "wal/position.h"

static const uint8_t golden[WAL_POSITION_BYTES] = {
    0xa0, 0xa1, 0xa2, 0xa3, 0xa4, 0xa5, 0xa6, 0xa7, /* uuid */
    0xa8, 0xa9, 0xaa, 0xab, 0xac, 0xad, 0xae, 0xaf, /**/
    0x08, 0x07, 0x06, 0x05, 0x04, 0x03, 0x02, 0x01, /* lsn */
    0x18, 0x17, 0x16, 0x15, 0x14, 0x13, 0x12, 0x11, /* unit */
    0xc0, 0xc1, 0xc2, 0xc3, 0xc4, 0xc5, 0xc6, 0xc7, /* chain */
    0xc8, 0xc9, 0xca, 0xcb, 0xcc, 0xcd, 0xce, 0xcf, /**/
    0x03, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, /* segment */
    0x00, 0x10, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, /* start */
    0x00, 0x20, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, /* end */
    0x38, 0xa8, 0xfc, 0xef, 0xd6, 0x9a, 0xa7, 0x7a, /* checksum */
};

static const uint8_t golden_origin_chain[CHECKSUM128_BYTES] = {
    0xae, 0x20, 0x29, 0xec, 0xe9, 0x45, 0xba, 0x0b,
    0x3d, 0x12, 0x95, 0x16, 0x5c, 0xd2, 0xfb, 0x44,
};

static struct wal_position example(void)
{
    struct wal_position position = {
        .lsn = UINT64_C(0x0102030405060708),
        .unit = UINT64_C(0x1112131415161718),
        .segment = 3,
        .start_offset = 4096,
        .end_offset = 8192,
    };

    for (uint8_t index = 0; index < 16; index++) {
        position.uuid.bytes[index] = (uint8_t)(0xa0 + index);
        position.chain.bytes[index] = (uint8_t)(0xc0 + index);
    }
    return position;
}

static void a_position_is_encoded_as_the_golden_bytes(void **state)
{
    const struct wal_position position = example();
    uint8_t encoded[WAL_POSITION_BYTES];

    (void)state;
    wal_position_encode(&position, encoded);
    assert_memory_equal(encoded, golden, sizeof golden);
}

static void the_golden_bytes_are_decoded_to_every_field(void **state)
{
    const struct wal_position expected = example();
    struct wal_position position;

    (void)state;
    assert_true(wal_position_decode(golden, &position));
    assert_true(wal_position_equal(&position, &expected));
    assert_int_equal(position.segment, expected.segment);
    assert_int_equal(position.start_offset, expected.start_offset);
    assert_int_equal(position.end_offset, expected.end_offset);
}

static void no_single_bit_flip_is_accepted_or_touches_the_result(void **state)
{
    (void)state;
    for (size_t bit = 0; bit < sizeof golden * 8; bit++) {
        struct wal_position position = {.lsn = 42};
        uint8_t damaged[WAL_POSITION_BYTES];

        memcpy(damaged, golden, sizeof damaged);
        damaged[bit / 8] ^= (uint8_t)(1u << (bit % 8));
        assert_false(wal_position_decode(damaged, &position));
        assert_int_equal(position.lsn, 42);
        assert_int_equal(position.end_offset, 0);
    }
}

/* A page that was never written must not read as "the log is empty". */
static void eighty_zeroes_are_not_a_position(void **state)
{
    const uint8_t zeroes[WAL_POSITION_BYTES] = {0};
    struct wal_position position;

    (void)state;
    assert_false(wal_position_decode(zeroes, &position));
}

static void the_origin_is_zero_but_for_uuid_and_chain(void **state)
{
    const struct wal_uuid uuid = example().uuid;
    const struct wal_position origin = wal_position_origin(&uuid, 0);

    (void)state;
    assert_true(wal_uuid_equal(&origin.uuid, &uuid));
    assert_memory_equal(origin.chain.bytes, golden_origin_chain,
                        CHECKSUM128_BYTES);
    assert_int_equal(origin.lsn, 0);
    assert_int_equal(origin.unit, 0);
    assert_int_equal(origin.segment, 0);
    assert_int_equal(origin.start_offset, 0);
    assert_int_equal(origin.end_offset, 0);
}

static void positions_differ_by_uuid_lsn_unit_and_chain(void **state)
{
    const struct wal_position position = example();
    struct wal_position other = position;

    (void)state;
    assert_true(wal_position_equal(&position, &other));
    other.uuid.bytes[15] ^= 1;
    assert_false(wal_uuid_equal(&position.uuid, &other.uuid));
    assert_false(wal_position_equal(&position, &other));
    other = position;
    other.lsn++;
    assert_false(wal_position_equal(&position, &other));
    other = position;
    other.unit++;
    assert_false(wal_position_equal(&position, &other));
    other = position;
    other.chain.bytes[15] ^= 1;
    assert_false(wal_position_equal(&position, &other));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_position_is_encoded_as_the_golden_bytes),
        cmocka_unit_test(the_golden_bytes_are_decoded_to_every_field),
        cmocka_unit_test(no_single_bit_flip_is_accepted_or_touches_the_result),
        cmocka_unit_test(eighty_zeroes_are_not_a_position),
        cmocka_unit_test(the_origin_is_zero_but_for_uuid_and_chain),
        cmocka_unit_test(positions_differ_by_uuid_lsn_unit_and_chain),
    };

    return cmocka_run_group_tests_name("wal/position", tests, NULL, NULL);
}
