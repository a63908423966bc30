/*
 * tests/test_engine_archive.c -- engine/archive.h: the bytes of ARCHIVE, and what is
 * not taken for them.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <string.h>

#include "base/bytes.h"
#include "base/checksum.h"
#include "engine/archive.h"
#include "tests/lib/files.h"
#include "tests/lib/io_fault.h"
#include "tests/lib/temp_dir.h"

enum {
    VERSION_OFFSET = 8,
    UUID_OFFSET = 16,
    SEGMENT_BYTES_OFFSET = 56,
    BASE_OFFSET = 64,
    SEGMENT_FIRST_OFFSET = 224,
    CHECKSUM_OFFSET = 240,
};

/* ---- Golden bytes ------------------------------------------------------------------ */

static const uint8_t golden[ARCHIVE_BYTES] = {
    'S',  'T',  'E',  'L',  'A',  'R',  'C',  'H',  /* magic */
    0x01, 0x00, 0x00, 0x00,                         /* version */
    0x00, 0x00, 0x00, 0x00,                         /* zero */
    0xa0, 0xa1, 0xa2, 0xa3, 0xa4, 0xa5, 0xa6, 0xa7, /* uuid */
    0xa8, 0xa9, 0xaa, 0xab, 0xac, 0xad, 0xae, 0xaf, /**/
    0xb0, 0xb1, 0xb2, 0xb3, 0xb4, 0xb5, 0xb6, 0xb7, /* parent uuid */
    0xb8, 0xb9, 0xba, 0xbb, 0xbc, 0xbd, 0xbe, 0xbf, /**/
    0x22, 0x11, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, /* parent lsn */
    0x00, 0x00, 0x00, 0x04, 0x00, 0x00, 0x00, 0x00, /* segment bytes */
    0xa0, 0xa1, 0xa2, 0xa3, 0xa4, 0xa5, 0xa6, 0xa7, /* base: uuid */
    0xa8, 0xa9, 0xaa, 0xab, 0xac, 0xad, 0xae, 0xaf, /**/
    0x2b, 0x1a, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, /* lsn */
    0x07, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, /* unit */
    0x50, 0x51, 0x52, 0x53, 0x54, 0x55, 0x56, 0x57, /* chain */
    0x58, 0x59, 0x5a, 0x5b, 0x5c, 0x5d, 0x5e, 0x5f, /**/
    0x03, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, /* segment */
    0x00, 0x10, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, /* start */
    0x00, 0x30, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, /* end */
    0x6d, 0xb9, 0x47, 0xb5, 0xe8, 0xf8, 0x7d, 0x93, /* checksum */
    0xa0, 0xa1, 0xa2, 0xa3, 0xa4, 0xa5, 0xa6, 0xa7, /* end: uuid */
    0xa8, 0xa9, 0xaa, 0xab, 0xac, 0xad, 0xae, 0xaf, /**/
    0x2f, 0x1a, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, /* lsn */
    0x09, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, /* unit */
    0x50, 0x51, 0x52, 0x53, 0x54, 0x55, 0x56, 0x57, /* chain */
    0x58, 0x59, 0x5a, 0x5b, 0x5c, 0x5d, 0x5e, 0x5f, /**/
    0x04, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, /* segment */
    0x00, 0x10, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, /* start */
    0x00, 0x30, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, /* end */
    0x38, 0x8b, 0x56, 0xb8, 0x48, 0xd0, 0xf0, 0xce, /* checksum */
    0x02, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, /* segment first */
    0x11, 0x12, 0x13, 0x14, 0x15, 0x16, 0x17, 0x18, /* wall ns */
    0xaa, 0x92, 0xdf, 0x19, 0x2f, 0xac, 0xfb, 0x09, /* checksum */
};

static struct wal_uuid uuid_of(uint8_t first)
{
    struct wal_uuid uuid;

    for (uint8_t index = 0; index < sizeof uuid.bytes; index++) {
        uuid.bytes[index] = (uint8_t)(first + index);
    }
    return uuid;
}

static struct wal_position position_of(uint64_t lsn, uint64_t unit,
                                       uint64_t segment)
{
    struct wal_position position = {
        .uuid = uuid_of(0xa0),
        .lsn = lsn,
        .unit = unit,
        .segment = segment,
        .start_offset = 0x1000,
        .end_offset = 0x3000,
    };

    for (uint8_t index = 0; index < sizeof position.chain.bytes; index++) {
        position.chain.bytes[index] = (uint8_t)(0x50 + index);
    }
    return position;
}

static struct archive sample(void)
{
    return (struct archive){
        .uuid = uuid_of(0xa0),
        .parent_uuid = uuid_of(0xb0),
        .parent_lsn = 0x1122,
        .segment_bytes = 64 << 20,
        .base = position_of(0x1a2b, 7, 3),
        .end = position_of(0x1a2f, 9, 4),
        .segment_first = 2,
        .wall_ns = 0x1817161514131211,
    };
}

static void an_archive_is_its_golden_bytes(void **state)
{
    const struct archive archive = sample();
    uint8_t bytes[ARCHIVE_BYTES];
    struct archive decoded;

    (void)state;
    archive_encode(&archive, bytes);
    assert_memory_equal(bytes, golden, sizeof bytes);
    assert_int_equal(archive_decode(golden, &decoded), ARCHIVE_VALID);
    assert_true(wal_uuid_equal(&decoded.uuid, &archive.uuid));
    assert_true(wal_uuid_equal(&decoded.parent_uuid, &archive.parent_uuid));
    assert_int_equal(decoded.parent_lsn, archive.parent_lsn);
    assert_int_equal(decoded.segment_bytes, archive.segment_bytes);
    assert_true(wal_position_equal(&decoded.base, &archive.base));
    assert_true(wal_position_equal(&decoded.end, &archive.end));
    assert_int_equal(decoded.segment_first, archive.segment_first);
    assert_true(decoded.wall_ns == archive.wall_ns);
}

static void an_archive_with_any_bit_changed_is_invalid(void **state)
{
    (void)state;
    for (size_t bit = 0; bit < sizeof golden * 8; bit++) {
        struct archive decoded = {.parent_lsn = 42};
        uint8_t bytes[ARCHIVE_BYTES];

        memcpy(bytes, golden, sizeof bytes);
        bytes[bit / 8] ^= (uint8_t)(1 << bit % 8);
        assert_int_equal(archive_decode(bytes, &decoded), ARCHIVE_INVALID);
        assert_int_equal(decoded.parent_lsn, 42);
    }
}

/* ---- What a right checksum does not make right -------------------------------------- */

static enum archive_verdict decode_resealed(uint8_t bytes[ARCHIVE_BYTES])
{
    struct archive ignored;

    put_u64le(bytes + CHECKSUM_OFFSET, checksum64(bytes, CHECKSUM_OFFSET, 0));
    return archive_decode(bytes, &ignored);
}

static enum archive_verdict decode_with(size_t offset, uint64_t value)
{
    uint8_t bytes[ARCHIVE_BYTES];

    memcpy(bytes, golden, sizeof bytes);
    put_u64le(bytes + offset, value);
    return decode_resealed(bytes);
}

static void numbers_that_nobody_writes_are_invalid(void **state)
{
    struct archive archive = sample();
    uint8_t bytes[ARCHIVE_BYTES];

    (void)state;
    assert_int_equal(decode_with(SEGMENT_BYTES_OFFSET, 64 << 20),
                     ARCHIVE_VALID);
    assert_int_equal(decode_with(SEGMENT_BYTES_OFFSET, 0), ARCHIVE_INVALID);
    assert_int_equal(decode_with(SEGMENT_BYTES_OFFSET, (64 << 20) + 1),
                     ARCHIVE_INVALID);
    assert_int_equal(decode_with(SEGMENT_FIRST_OFFSET, 0), ARCHIVE_INVALID);
    assert_int_equal(decode_with(SEGMENT_FIRST_OFFSET, 4), ARCHIVE_INVALID);
    assert_int_equal(decode_with(UUID_OFFSET, 1), ARCHIVE_INVALID);
    assert_int_equal(decode_with(BASE_OFFSET + 16, 1), ARCHIVE_INVALID);
    archive.base = archive.end;
    archive.end = position_of(0x1a2b, 7, 3);
    archive_encode(&archive, bytes);
    assert_int_equal(decode_resealed(bytes), ARCHIVE_INVALID);
}

static void a_newer_version_is_told_from_damage(void **state)
{
    uint8_t bytes[ARCHIVE_BYTES];

    (void)state;
    memcpy(bytes, golden, sizeof bytes);
    bytes[VERSION_OFFSET] = 2;
    assert_int_equal(decode_resealed(bytes), ARCHIVE_NEWER);
}

/* ---- The file ----------------------------------------------------------------------- */

static char *path;
static struct io_dir *dir;
static struct stele_error error;

static int setup(void **state)
{
    (void)state;
    path = temp_dir_make();
    assert_int_equal(io_dir_open(io_fault_io(), path, &dir, &error), STELE_OK);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    io_fault_arm(NULL);
    io_dir_close(dir);
    temp_dir_remove(path);
    return 0;
}

static void what_was_written_is_read(void **state)
{
    const struct archive archive = sample();
    struct archive found;

    (void)state;
    assert_int_equal(archive_read(dir, &found, &error), STELE_NOT_FOUND);
    assert_int_equal(archive_write(dir, &archive, &error), STELE_OK);
    assert_int_equal(archive_read(dir, &found, &error), STELE_OK);
    assert_true(wal_position_equal(&found.end, &archive.end));
    assert_int_equal(files_count(path, ""), 1);
}

static void a_write_that_fails_leaves_the_one_before(void **state)
{
    struct archive archive = sample();
    uint64_t failures = 0;

    (void)state;
    assert_int_equal(archive_write(dir, &archive, &error), STELE_OK);
    archive.wall_ns = 1;
    for (uint64_t call = 0;; call++) {
        const struct io_fault fault = {.call = IO_FAULT_ANY,
                                       .after_calls = call,
                                       .times = 1,
                                       .sys_errno = EIO};
        struct archive found;
        enum stele_status status;

        io_fault_arm(&fault);
        status = archive_write(dir, &archive, &error);
        io_fault_arm(NULL);
        assert_int_equal(archive_read(dir, &found, &error), STELE_OK);
        if (status == STELE_OK) {
            assert_int_equal(found.wall_ns, 1);
            break;
        }
        failures++;
    }
    assert_true(failures >= 4);
}

static void a_file_of_another_length_is_corrupt(void **state)
{
    const struct archive archive = sample();
    char file[FILES_PATH_BYTES];
    struct archive found;

    (void)state;
    assert_int_equal(archive_write(dir, &archive, &error), STELE_OK);
    files_path(file, path, ARCHIVE_NAME);
    files_truncate(file, ARCHIVE_BYTES - 1);
    assert_int_equal(archive_read(dir, &found, &error), STELE_CORRUPT);
    assert_non_null(strstr(
        error.message,
        "ARCHIVE: the file has 247 bytes, expected a regular one of 248"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_archive_is_its_golden_bytes),
        cmocka_unit_test(an_archive_with_any_bit_changed_is_invalid),
        cmocka_unit_test(numbers_that_nobody_writes_are_invalid),
        cmocka_unit_test(a_newer_version_is_told_from_damage),
        cmocka_unit_test_setup_teardown(what_was_written_is_read, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(
            a_write_that_fails_leaves_the_one_before, setup, teardown),
        cmocka_unit_test_setup_teardown(a_file_of_another_length_is_corrupt,
                                        setup, teardown),
    };

    return cmocka_run_group_tests_name("engine/archive", tests, NULL, NULL);
}
