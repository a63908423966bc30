/* tests/test_base_bytes.c -- base/bytes.h. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#include "base/bytes.h"

#define BYTES(literal) ((struct bytes){literal, sizeof(literal) - 1})

static const uint8_t ascending[] = {1, 2, 3, 4, 5, 6, 7, 8};

static struct byte_reader reader_of(size_t size)
{
    assert_true(size <= sizeof ascending);
    return byte_reader_init(ascending, size);
}

/* ---- Order ----------------------------------------------------------------- */

static void bytes_compare_as_unsigned_numbers(void **state)
{
    (void)state;
    assert_true(bytes_compare(BYTES("a"), BYTES("b")) < 0);
    assert_true(bytes_compare(BYTES("\x7f"), BYTES("\x80")) < 0);
    assert_true(bytes_compare(BYTES("\xff"), BYTES("\x00")) > 0);
    assert_true(bytes_compare(BYTES("ab"), BYTES("ab")) == 0);
}

static void a_proper_prefix_comes_first(void **state)
{
    (void)state;
    assert_true(bytes_compare(BYTES("ab"), BYTES("ab\0")) < 0);
    assert_true(bytes_compare(BYTES("abc"), BYTES("ab")) > 0);
    assert_true(bytes_compare((struct bytes){NULL, 0}, BYTES("\0")) < 0);
    assert_true(
        bytes_compare((struct bytes){NULL, 0}, (struct bytes){NULL, 0}) == 0);
}

/* ---- Integers --------------------------------------------------------------- */

static void integers_are_little_endian(void **state)
{
    uint8_t target[8];

    (void)state;
    put_u16le(target, 0x0201);
    assert_memory_equal(target, ascending, 2);
    put_u32le(target, 0x04030201);
    assert_memory_equal(target, ascending, 4);
    put_u64le(target, UINT64_C(0x0807060504030201));
    assert_memory_equal(target, ascending, 8);
    assert_int_equal(get_u16le(ascending), 0x0201);
    assert_int_equal(get_u32le(ascending), 0x04030201);
    assert_int_equal(get_u64le(ascending), UINT64_C(0x0807060504030201));
}

static void the_largest_integers_survive(void **state)
{
    uint8_t target[8];

    (void)state;
    put_u16le(target, UINT16_MAX);
    assert_int_equal(get_u16le(target), UINT16_MAX);
    put_u32le(target, UINT32_MAX);
    assert_int_equal(get_u32le(target), UINT32_MAX);
    put_u64le(target, UINT64_MAX);
    assert_true(get_u64le(target) == UINT64_MAX);
}

/* ---- The reader --------------------------------------------------------------- */

static void a_reader_takes_fields_in_order(void **state)
{
    struct byte_reader in = reader_of(8);
    uint8_t copied[1];

    (void)state;
    assert_int_equal(byte_reader_u8(&in), 1);
    assert_int_equal(byte_reader_u16(&in), 0x0302);
    assert_int_equal(byte_reader_u32(&in), 0x07060504);
    byte_reader_copy(&in, copied, 1);
    assert_int_equal(copied[0], 8);
    assert_int_equal(in.offset, 8);
    assert_false(in.failed);
}

static void a_reader_at_its_end_still_gives_zero_bytes(void **state)
{
    struct byte_reader in = reader_of(0);

    (void)state;
    assert_non_null(byte_reader_take(&in, 0));
    assert_false(in.failed);
}

static void the_first_read_that_does_not_fit_fails_for_good(void **state)
{
    struct byte_reader in = reader_of(3);
    uint8_t copied[2] = {0xee, 0xee};

    (void)state;
    assert_int_equal(byte_reader_u8(&in), 1);
    assert_int_equal(byte_reader_u32(&in), 0);
    assert_true(in.failed);
    assert_int_equal(in.offset, 1);
    /* These two would fit. */
    assert_int_equal(byte_reader_u8(&in), 0);
    assert_int_equal(byte_reader_u16(&in), 0);
    byte_reader_copy(&in, copied, sizeof copied);
    assert_int_equal(copied[0], 0);
    assert_int_equal(copied[1], 0);
    assert_int_equal(byte_reader_u64(&in), 0);
    assert_int_equal(in.offset, 1);
}

/* offset + count wraps: a comparison of the sum would let it pass. */
static void a_length_near_the_top_of_the_range_does_not_fit(void **state)
{
    (void)state;
    for (size_t below = 0; below < 16; below++) {
        struct byte_reader in = reader_of(8);

        assert_int_equal(byte_reader_u32(&in), 0x04030201);
        assert_null(byte_reader_take(&in, SIZE_MAX - below));
        assert_true(in.failed);
        assert_int_equal(in.offset, 4);
    }
}

/* ---- The writer --------------------------------------------------------------- */

static void a_writer_puts_fields_in_order(void **state)
{
    uint8_t target[15] = {0};
    struct byte_writer out = byte_writer_init(target, sizeof target);

    (void)state;
    byte_writer_u16(&out, 0x0201);
    byte_writer_u32(&out, 0x06050403);
    byte_writer_u64(&out, UINT64_C(0x0e0d0c0b0a090807));
    byte_writer_copy(&out, "\x0f", 1);
    byte_writer_copy(&out, NULL, 0);
    assert_int_equal(out.offset, sizeof target);
    for (uint8_t index = 0; index < sizeof target; index++) {
        assert_int_equal(target[index], index + 1);
    }
}

/* ---- Zeros ---------------------------------------------------------------------- */

static void a_run_is_zero_only_if_every_byte_is(void **state)
{
    uint8_t run[40] = {0};

    (void)state;
    assert_true(bytes_are_zero(NULL, 0));
    for (size_t size = 1; size <= sizeof run; size++) {
        assert_true(bytes_are_zero(run, size));
        for (size_t index = 0; index < size; index++) {
            run[index] = 1;
            assert_false(bytes_are_zero(run, size));
            run[index] = 0;
        }
    }
}

static void what_lies_behind_a_run_does_not_count(void **state)
{
    const uint8_t run[] = {0, 0, 0, 1};

    (void)state;
    assert_true(bytes_are_zero(run, 3));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bytes_compare_as_unsigned_numbers),
        cmocka_unit_test(a_proper_prefix_comes_first),
        cmocka_unit_test(integers_are_little_endian),
        cmocka_unit_test(the_largest_integers_survive),
        cmocka_unit_test(a_reader_takes_fields_in_order),
        cmocka_unit_test(a_reader_at_its_end_still_gives_zero_bytes),
        cmocka_unit_test(the_first_read_that_does_not_fit_fails_for_good),
        cmocka_unit_test(a_length_near_the_top_of_the_range_does_not_fit),
        cmocka_unit_test(a_writer_puts_fields_in_order),
        cmocka_unit_test(a_run_is_zero_only_if_every_byte_is),
        cmocka_unit_test(what_lies_behind_a_run_does_not_count),
    };

    return cmocka_run_group_tests_name("base/bytes", tests, NULL, NULL);
}
