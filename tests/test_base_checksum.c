/* tests/test_base_checksum.c -- base/checksum.h: its values, and bytes in pieces. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/checksum.h"
#include "tests/lib/run.h"

/* ---- Values -------------------------------------------------------------------- */

/* Every format depends on these values. */
static void the_checksums_are_xxh3(void **state)
{
    static const uint8_t empty128[CHECKSUM128_BYTES] = {
        0x99, 0xaa, 0x06, 0xd3, 0x01, 0x47, 0x98, 0xd8,
        0x60, 0x01, 0xc3, 0x24, 0x46, 0x8d, 0x49, 0x7f,
    };
    struct checksum128 sum = checksum128("", 0, 0);

    (void)state;
    assert_true(checksum64("", 0, 0) == UINT64_C(0x2d06800538d394c2));
    assert_memory_equal(sum.bytes, empty128, sizeof empty128);
}

static void a_seed_changes_a_checksum(void **state)
{
    const struct checksum128 unseeded = checksum128("a", 1, 0);
    const struct checksum128 seeded = checksum128("a", 1, 1);

    (void)state;
    assert_true(checksum64("a", 1, 0) != checksum64("a", 1, 1));
    assert_memory_not_equal(unseeded.bytes, seeded.bytes, CHECKSUM128_BYTES);
}

static void a_pair_covers_the_border_between_its_runs(void **state)
{
    const uint64_t sum = checksum64_pair("ab", 2, "cd", 2, 0);

    (void)state;
    assert_true(sum == checksum64_pair("ab", 2, "cd", 2, 0));
    assert_true(sum != checksum64_pair("a", 1, "bcd", 3, 0));
    assert_true(sum != checksum64_pair("abc", 3, "d", 1, 0));
    assert_true(sum != checksum64_pair("cd", 2, "ab", 2, 0));
    assert_true(sum != checksum64_pair("ab", 2, "cd", 2, 1));
}

/* ---- Bytes in pieces ------------------------------------------------------------- */

enum {
    STREAM_BYTES = 5000, /* Several of XXH3's internal buffers and blocks. */
    STREAM_ROUNDS = 200,
};

static uint8_t bytes[STREAM_BYTES];

static void fill_bytes(struct random_source *random)
{
    for (size_t index = 0; index < sizeof bytes; index++) {
        bytes[index] = (uint8_t)random_u64(random);
    }
}

static void assert_digest(const struct checksum_stream *stream, size_t size)
{
    const struct checksum128 expected = checksum128(bytes, size, 0);
    const struct checksum128 found = checksum_stream_digest(stream);

    assert_memory_equal(found.bytes, expected.bytes, CHECKSUM128_BYTES);
}

static void a_stream_of_nothing_is_the_sum_of_nothing(void **state)
{
    struct checksum_stream *stream = checksum_stream_create();

    (void)state;
    assert_non_null(stream);
    assert_digest(stream, 0);
    checksum_stream_update(stream, "", 0);
    assert_digest(stream, 0);
    checksum_stream_free(stream);
    checksum_stream_free(NULL);
}

static void a_stream_is_its_pieces_in_one(void **state)
{
    struct random_source random = run_random(1);

    (void)state;
    fill_bytes(&random);
    for (unsigned round = 0; round < STREAM_ROUNDS; round++) {
        const uint64_t piece_max = UINT64_C(1) << random_below(&random, 13);
        struct checksum_stream *stream = checksum_stream_create();
        size_t done = 0;

        assert_non_null(stream);
        while (done < sizeof bytes) {
            const size_t left = sizeof bytes - done;
            const size_t piece = (size_t)random_below(&random, piece_max + 1);
            const size_t taken = piece < left ? piece : left;

            checksum_stream_update(stream, bytes + done, taken);
            done += taken;
            if (random_one_in(&random, 4)) {
                assert_digest(stream, done); /* And more follows. */
            }
        }
        assert_digest(stream, sizeof bytes);
        checksum_stream_free(stream);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_checksums_are_xxh3),
        cmocka_unit_test(a_seed_changes_a_checksum),
        cmocka_unit_test(a_pair_covers_the_border_between_its_runs),
        cmocka_unit_test(a_stream_of_nothing_is_the_sum_of_nothing),
        cmocka_unit_test(a_stream_is_its_pieces_in_one),
    };

    return cmocka_run_group_tests_name("base/checksum", tests, NULL, NULL);
}
