/*
 * tests/test_snapshot_format.c -- snapshot/format.h: the bytes of header, footer and
 * a small file, and what is not taken for them.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "snapshot/format.h"
#include "tests/lib/reseal.h"
#include "tests/lib/snapshot_file.h"

enum {
    VERSION_OFFSET = 8,
    BLOCK_BYTES_OFFSET = 12,
    LSN_OFFSET = 32,
    ZERO_OFFSET = 40,
    HEADER_CHECKSUM_OFFSET = 56,
};

/* ---- Golden bytes ------------------------------------------------------------------ */

static const uint8_t golden_header[SNAPSHOT_HEADER_BYTES] = {
    'S',  'T',  'E',  'L',  'S',  'N',  'A',  'P',  /* magic */
    0x01, 0x00, 0x00, 0x00,                         /* version */
    0x00, 0x00, 0x01, 0x00,                         /* block bytes */
    0xa0, 0xa1, 0xa2, 0xa3, 0xa4, 0xa5, 0xa6, 0xa7, /* uuid */
    0xa8, 0xa9, 0xaa, 0xab, 0xac, 0xad, 0xae, 0xaf, /**/
    0x2b, 0x1a, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, /* lsn */
    0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, /* zero */
    0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, /**/
    0x1a, 0x58, 0x26, 0x97, 0x30, 0x75, 0x42, 0x3b, /* checksum */
};

/* "a" -> "", "bc" -> "value" */
static const uint8_t golden_block[] = {
    0x14, 0x00, 0x00, 0x00,                         /* entry bytes */
    0x02, 0x00, 0x00, 0x00,                         /* entry count */
    0x34, 0xf0, 0x5c, 0xff, 0x9b, 0x95, 0xd6, 0x66, /* checksum */
    0x01, 0x00, 0x00, 0x00, 0x00, 0x00, 'a',        /**/
    0x02, 0x00, 0x05, 0x00, 0x00, 0x00, 'b',  'c',  /**/
    'v',  'a',  'l',  'u',  'e',                    /**/
};

static const uint8_t golden_footer[SNAPSHOT_FOOTER_BYTES] = {
    'S',  'T',  'E',  'L',  'S',  'E',  'N',  'D',  /* magic */
    0x2b, 0x1a, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, /* lsn */
    0x02, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, /* entries */
    0x01, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, /* blocks */
    0x02, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, /* tables */
    0x03, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, /* keys */
    0x08, 0x07, 0x06, 0x05, 0x04, 0x03, 0x02, 0x01, /* sum */
    0xc0, 0xc1, 0xc2, 0x00, 0x00, 0x00, 0x00, 0x00, /* position */
    0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, /**/
    0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, /**/
    0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, /**/
    0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, /**/
    0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, /**/
    0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, /**/
    0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, /**/
    0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, /**/
    0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0xcf, /**/
    0x26, 0x8e, 0x8c, 0xdf, 0x69, 0xdb, 0x1f, 0x85, /* digest */
    0x81, 0xb2, 0x74, 0x78, 0x33, 0x2c, 0x85, 0x42, /**/
    0x4a, 0x6a, 0x76, 0xdb, 0xa1, 0x47, 0x6e, 0xb1, /* checksum */
};

static uint64_t golden_seed(void)
{
    return get_u64le(golden_header + HEADER_CHECKSUM_OFFSET);
}

/* ---- Header --------------------------------------------------------------------------- */

static void a_header_is_its_golden_bytes(void **state)
{
    uint8_t header[SNAPSHOT_HEADER_BYTES];
    struct snapshot_header decoded;

    (void)state;
    snapshot_header_encode(snapshot_file_uuid, SNAPSHOT_FILE_LSN, header);
    assert_memory_equal(header, golden_header, sizeof header);
    assert_int_equal(snapshot_header_decode(golden_header, &decoded),
                     SNAPSHOT_VALID);
    assert_memory_equal(decoded.uuid, snapshot_file_uuid, SNAPSHOT_UUID_BYTES);
    assert_int_equal(decoded.lsn, SNAPSHOT_FILE_LSN);
    assert_true(decoded.checksum == golden_seed());
}

static void a_header_with_any_bit_changed_is_invalid(void **state)
{
    (void)state;
    for (size_t bit = 0; bit < sizeof golden_header * 8; bit++) {
        uint8_t header[SNAPSHOT_HEADER_BYTES];
        struct snapshot_header decoded = {.lsn = 42};

        memcpy(header, golden_header, sizeof header);
        header[bit / 8] ^= (uint8_t)(1 << bit % 8);
        assert_int_equal(snapshot_header_decode(header, &decoded),
                         SNAPSHOT_INVALID);
        assert_int_equal(decoded.lsn, 42);
    }
}

/* The header with one byte changed, and sealed again. */
static enum snapshot_verdict decode_with(size_t offset, uint8_t byte)
{
    uint8_t header[SNAPSHOT_HEADER_BYTES];
    struct snapshot_header decoded;

    memcpy(header, golden_header, sizeof header);
    header[offset] = byte;
    reseal_snapshot_header(header);
    return snapshot_header_decode(header, &decoded);
}

static void only_an_intact_header_can_be_newer(void **state)
{
    (void)state;
    assert_int_equal(decode_with(LSN_OFFSET, 0xee), SNAPSHOT_VALID);
    assert_int_equal(decode_with(VERSION_OFFSET, 2), SNAPSHOT_NEWER);
    assert_int_equal(decode_with(0, 's'), SNAPSHOT_INVALID);
    assert_int_equal(decode_with(BLOCK_BYTES_OFFSET, 1), SNAPSHOT_INVALID);
    for (size_t offset = ZERO_OFFSET; offset < HEADER_CHECKSUM_OFFSET;
         offset++) {
        assert_int_equal(decode_with(offset, 1), SNAPSHOT_INVALID);
    }
}

/* ---- Footer --------------------------------------------------------------------------- */

static void a_footer_is_its_golden_bytes(void **state)
{
    uint8_t footer[SNAPSHOT_FOOTER_BYTES];
    struct snapshot_info info;

    (void)state;
    assert_true(snapshot_footer_decode(golden_footer, golden_seed(), &info));
    assert_int_equal(info.lsn, SNAPSHOT_FILE_LSN);
    assert_int_equal(info.entries, 2);
    assert_int_equal(info.blocks, 1);
    assert_memory_equal(&info.totals, &snapshot_file_totals,
                        sizeof info.totals);
    assert_memory_equal(info.position, snapshot_file_position,
                        sizeof info.position);
    snapshot_footer_encode(&info, golden_seed(), footer);
    assert_memory_equal(footer, golden_footer, sizeof footer);
}

static void a_footer_with_any_bit_changed_is_invalid(void **state)
{
    struct snapshot_info info;

    (void)state;
    for (size_t bit = 0; bit < sizeof golden_footer * 8; bit++) {
        uint8_t footer[SNAPSHOT_FOOTER_BYTES];

        memcpy(footer, golden_footer, sizeof footer);
        footer[bit / 8] ^= (uint8_t)(1 << bit % 8);
        assert_false(snapshot_footer_decode(footer, golden_seed(), &info));
    }
}

static void a_footer_belongs_to_its_header(void **state)
{
    struct snapshot_info info;

    (void)state;
    assert_false(
        snapshot_footer_decode(golden_footer, golden_seed() + 1, &info));
}

/* ---- The file -------------------------------------------------------------------------- */

static void a_small_file_is_its_golden_bytes(void **state)
{
    uint8_t golden[sizeof golden_header + sizeof golden_block +
                   sizeof golden_footer];
    struct snapshot_entry entries[] = {
        {.key = {"a", 1}, .stored = {NULL, 0}},
        {.key = {"bc", 2}, .stored = {"value", 5}},
    };
    const struct snapshot_pairs pairs = {.entries = entries, .count = 2};
    struct snapshot_file file;
    struct snapshot_info info;
    uint8_t *bytes;
    size_t size;

    (void)state;
    memcpy(golden, golden_header, sizeof golden_header);
    memcpy(golden + sizeof golden_header, golden_block, sizeof golden_block);
    memcpy(golden + sizeof golden_header + sizeof golden_block, golden_footer,
           sizeof golden_footer);

    snapshot_file_setup(&file);
    snapshot_file_make(&file, &pairs, &info);
    bytes = files_read(file.path, &size);
    assert_int_equal(size, sizeof golden);
    assert_memory_equal(bytes, golden, size);
    free(bytes);
    files_write(file.path, golden, sizeof golden);
    snapshot_file_assert(&file, &pairs);
    snapshot_file_teardown(&file);
}

/* The seals of the golden bytes, made without the code under test. */
static void the_golden_bytes_are_sealed_as_the_format_says(void **state)
{
    uint8_t golden[sizeof golden_header + sizeof golden_block +
                   sizeof golden_footer];
    const size_t footer = sizeof golden_header + sizeof golden_block;

    (void)state;
    memcpy(golden, golden_header, sizeof golden_header);
    memcpy(golden + sizeof golden_header, golden_block, sizeof golden_block);
    memcpy(golden + footer, golden_footer, sizeof golden_footer);
    reseal_snapshot_header(golden);
    reseal_snapshot_block(golden, sizeof golden, sizeof golden_header);
    reseal_snapshot_footer(golden, sizeof golden);
    assert_memory_equal(golden, golden_header, sizeof golden_header);
    assert_memory_equal(golden + sizeof golden_header, golden_block,
                        sizeof golden_block);
    assert_memory_equal(golden + footer, golden_footer, sizeof golden_footer);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_header_is_its_golden_bytes),
        cmocka_unit_test(a_header_with_any_bit_changed_is_invalid),
        cmocka_unit_test(only_an_intact_header_can_be_newer),
        cmocka_unit_test(a_footer_is_its_golden_bytes),
        cmocka_unit_test(a_footer_with_any_bit_changed_is_invalid),
        cmocka_unit_test(a_footer_belongs_to_its_header),
        cmocka_unit_test(a_small_file_is_its_golden_bytes),
        cmocka_unit_test(the_golden_bytes_are_sealed_as_the_format_says),
    };

    return cmocka_run_group_tests_name("snapshot/format", tests, NULL, NULL);
}
