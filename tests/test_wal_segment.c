/*
 * tests/test_wal_segment.c -- wal/segment.h: preparing with every call
 * failing in turn, and a header damaged byte by byte.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/bytes.h"
#include "base/checksum.h"
#include "tests/lib/files.h"
#include "tests/lib/io_fault.h"
#include "tests/lib/temp_dir.h"
#include "tests/lib/wal_log.h"
#include "wal/segment.h"

#define NAME      "0000000000000003.wal"
#define TEMPORARY "0000000000000003.tmp"

enum {
    SEQ = 3,
    BYTES = WAL_LOG_SEGMENT_BYTES,
    HEADER_FIELDS_BYTES = 64,
    VERSION_OFFSET = 8,
    UUID_OFFSET = 16,
    SEQ_OFFSET = 32,
    LENGTH_OFFSET = 40,
    CHECKSUM_OFFSET = 56,
    DISK_CALLS_MAX = 100, /* More than preparing one makes. */
};

static const uint8_t golden[HEADER_FIELDS_BYTES] = {
    'S',  'T',  'E',  'L',  'E',  'S',  'E',  'G',  /* magic */
    0x01, 0x00, 0x00, 0x00,                         /* version */
    0x00, 0x00, 0x00, 0x00,                         /* zero */
    0xa0, 0xa1, 0xa2, 0xa3, 0xa4, 0xa5, 0xa6, 0xa7, /* uuid */
    0xa8, 0xa9, 0xaa, 0xab, 0xac, 0xad, 0xae, 0xaf, /**/
    0x03, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, /* seq */
    0x00, 0x00, 0x10, 0x00, 0x00, 0x00, 0x00, 0x00, /* length */
    0x5a, 0x5a, 0x5a, 0x5a, 0x5a, 0x5a, 0x5a, 0x5a, /* salt */
    0x40, 0x8e, 0xda, 0x58, 0x9a, 0x91, 0x1b, 0x03, /* checksum */
};

/* ---- A small vocabulary -------------------------------------------------------- */

static char *wal_path;
static struct io_dir *wal_dir;
static char path[FILES_PATH_BYTES]; /* Of segment SEQ. */
static bool names_unknown;
static struct stele_error error;

static int make_directory(void **state)
{
    (void)state;
    wal_path = temp_dir_make();
    files_path(path, wal_path, NAME);
    error = (struct stele_error){0};
    assert_int_equal(io_dir_open(io_fault_io(), wal_path, &wal_dir, &error),
                     STELE_OK);
    return 0;
}

static int remove_directory(void **state)
{
    (void)state;
    io_fault_arm(NULL);
    io_dir_close(wal_dir);
    temp_dir_remove(wal_path);
    return 0;
}

/* Prepare segment SEQ and close it again. */
static enum stele_status prepare_as(enum io_fs_kind fs_kind)
{
    const struct wal_uuid uuid = wal_log_uuid();
    struct wal_segment segment = {0};
    const enum stele_status status = wal_segment_prepare(
        wal_dir, SEQ, &uuid, BYTES, fs_kind, &segment, &names_unknown, &error);

    wal_segment_close(&segment);
    return status;
}

static enum stele_status prepare(void)
{
    return prepare_as(IO_FS_OVERWRITE);
}

static enum stele_status open_it(void)
{
    const struct wal_uuid uuid = wal_log_uuid();
    struct wal_segment segment = {0};
    const enum stele_status status =
        wal_segment_open(wal_dir, SEQ, &uuid, IO_OPEN_READ, &segment, &error);

    if (status == STELE_OK) {
        assert_int_equal(segment.seq, SEQ);
        assert_int_equal(segment.bytes, BYTES);
    }
    wal_segment_close(&segment);
    return status;
}

static bool is_unused(void)
{
    const struct wal_uuid uuid = wal_log_uuid();
    struct wal_segment segment;
    bool unused;

    assert_int_equal(
        wal_segment_open(wal_dir, SEQ, &uuid, IO_OPEN_READ, &segment, &error),
        STELE_OK);
    assert_int_equal(wal_segment_is_unused(&segment, &unused, &error),
                     STELE_OK);
    wal_segment_close(&segment);
    return unused;
}

/* Change a field and make the header's checksum hold again. */
static void rewrite_header(uint64_t offset, const void *data, size_t bytes)
{
    uint8_t header[HEADER_FIELDS_BYTES];

    files_read_at(path, 0, header, sizeof header);
    memcpy(header + offset, data, bytes);
    put_u64le(header + CHECKSUM_OFFSET, checksum64(header, CHECKSUM_OFFSET, 0));
    files_write_at(path, 0, header, sizeof header);
}

static void break_call(enum io_fault_call call, uint64_t after_calls,
                       int sys_errno)
{
    const struct io_fault fault = {.call = call,
                                   .after_calls = after_calls,
                                   .times = 1,
                                   .sys_errno = sys_errno};

    io_fault_arm(&fault);
}

/* ---- Preparing ----------------------------------------------------------------------- */

/* The kernel's calls, but for randomness. */
static int not_so_random(struct io *io, void *target, size_t bytes)
{
    (void)io;
    memset(target, 0x5a, bytes);
    return 0;
}

static void a_prepared_segment_is_the_golden_header_and_zeros(void **state)
{
    struct io_calls calls = *io_posix()->calls;
    struct io fixed = {.calls = &calls};
    const struct wal_uuid uuid = wal_log_uuid();
    struct wal_segment segment;
    struct io_dir *dir;
    size_t bytes;
    uint8_t *data;

    (void)state;
    calls.random = not_so_random;
    assert_int_equal(io_dir_open(&fixed, wal_path, &dir, &error), STELE_OK);
    assert_int_equal(wal_segment_prepare(dir, SEQ, &uuid, BYTES,
                                         IO_FS_OVERWRITE, &segment,
                                         &names_unknown, &error),
                     STELE_OK);
    assert_int_equal(segment.seq, SEQ);
    assert_int_equal(segment.bytes, BYTES);
    assert_true(segment.salt == UINT64_C(0x5a5a5a5a5a5a5a5a));
    wal_segment_close(&segment);
    io_dir_close(dir);

    data = files_read(path, &bytes);
    assert_int_equal(bytes, BYTES);
    assert_memory_equal(data, golden, sizeof golden);
    assert_true(bytes_are_zero(data + sizeof golden, bytes - sizeof golden));
    free(data);
}

static void a_prepared_segment_has_its_blocks(void **state)
{
    struct stat found;

    (void)state;
    assert_int_equal(prepare(), STELE_OK);
    assert_int_equal(stat(path, &found), 0);
    assert_true((uint64_t)found.st_blocks * 512 >= BYTES);
    assert_int_equal(found.st_mode & 0777, 0600);
    assert_int_equal(files_count(wal_path, ""), 1);
}

/* There every write allocates: zeros would only wear the disk out. */
static void on_a_copy_on_write_file_system_the_zeros_are_reserved(void **state)
{
    (void)state;
    assert_int_equal(prepare_as(IO_FS_COPY_ON_WRITE), STELE_OK);
    assert_int_equal(files_size(path), BYTES);
    assert_int_equal(open_it(), STELE_OK);
    assert_true(is_unused());
}

static void a_segment_is_synced_before_it_has_its_name(void **state)
{
    const uint64_t before = io_fault_syncs(".tmp");

    (void)state;
    assert_int_equal(prepare(), STELE_OK);
    assert_int_equal(io_fault_syncs(".tmp"), before + 1);
    assert_int_equal(io_fault_syncs(".wal"), 0);
}

static void every_segment_has_a_salt_of_its_own(void **state)
{
    uint8_t first[HEADER_FIELDS_BYTES];
    uint8_t second[HEADER_FIELDS_BYTES];

    (void)state;
    assert_int_equal(prepare(), STELE_OK);
    files_read_at(path, 0, first, sizeof first);
    files_remove(path);
    assert_int_equal(prepare(), STELE_OK);
    files_read_at(path, 0, second, sizeof second);
    assert_memory_not_equal(first + 48, second + 48, 8);
}

/* The n-th call of a kind fails, for n = 1, 2, ... until preparing succeeds. */
static void fail_each(enum io_fault_call call, int sys_errno,
                      enum stele_status expected)
{
    uint64_t calls = 0;

    for (;; calls++) {
        enum stele_status status;

        assert_true(calls < DISK_CALLS_MAX);
        break_call(call, calls, sys_errno);
        status = prepare();
        if (io_fault_count() == 0) {
            assert_int_equal(status, STELE_OK);
            break;
        }
        assert_int_equal(status, expected);
        assert_false(names_unknown);
        /* Neither a temporary nor a segment: a new try may be made. */
        assert_int_equal(files_count(wal_path, ""), 0);
    }
    assert_true(calls > 0);
    files_remove(path);
}

static void a_failed_preparation_leaves_no_temporary(void **state)
{
    (void)state;
    fail_each(IO_FAULT_OPEN, EMFILE, STELE_IO);
    fail_each(IO_FAULT_ALLOCATE, ENOSPC, STELE_NO_SPACE);
    fail_each(IO_FAULT_ALLOCATE, EIO, STELE_IO);
    fail_each(IO_FAULT_WRITE, ENOSPC, STELE_NO_SPACE);
    fail_each(IO_FAULT_WRITE, EDQUOT, STELE_NO_SPACE);
    fail_each(IO_FAULT_WRITE, EIO, STELE_IO);
    fail_each(IO_FAULT_WRITE, 0, STELE_IO); /* Short. */
    fail_each(IO_FAULT_WRITE_BACK, EIO, STELE_IO);
    fail_each(IO_FAULT_WRITE_BACK, ENOSPC, STELE_IO);
    fail_each(IO_FAULT_SYNC, EIO, STELE_IO);
    fail_each(IO_FAULT_SYNC, ENOSPC, STELE_IO);
    fail_each(IO_FAULT_RENAME, ENOSPC, STELE_NO_SPACE);
    fail_each(IO_FAULT_RENAME, EIO, STELE_IO);
}

static void the_message_says_what_was_being_done(void **state)
{
    (void)state;
    break_call(IO_FAULT_SYNC, 0, EIO);
    assert_int_equal(prepare(), STELE_IO);
    assert_non_null(strstr(error.message, "prepare segment: "));
    assert_non_null(strstr(error.message,
                           TEMPORARY ": sync: Input/output error (errno 5)"));
}

static void a_file_system_that_cannot_reserve_gets_zeros_all_the_same(
    void **state)
{
    (void)state;
    break_call(IO_FAULT_ALLOCATE, 0, EOPNOTSUPP);
    assert_int_equal(prepare(), STELE_OK);
    assert_int_equal(io_fault_count(), 1);
    assert_int_equal(files_size(path), BYTES);
    assert_true(is_unused());
}

static void one_that_cannot_reserve_and_copies_on_write_sets_the_length(
    void **state)
{
    (void)state;
    break_call(IO_FAULT_ALLOCATE, 0, EOPNOTSUPP);
    assert_int_equal(prepare_as(IO_FS_COPY_ON_WRITE), STELE_OK);
    assert_int_equal(io_fault_count(), 1);
    assert_int_equal(files_size(path), BYTES);
    assert_int_equal(open_it(), STELE_OK);
    assert_true(is_unused());
}

/* What is durable in wal/ is unknown then. */
static void a_failed_directory_sync_is_told_apart(void **state)
{
    (void)state;
    break_call(IO_FAULT_SYNC_DIR, 0, EIO);
    assert_int_equal(prepare(), STELE_IO);
    assert_true(names_unknown);
}

static void a_segment_is_never_replaced(void **state)
{
    const uint8_t byte = 1;

    (void)state;
    assert_int_equal(prepare(), STELE_OK);
    files_write_at(path, 4096, &byte, 1);
    assert_int_equal(prepare(), STELE_EXISTS);
    assert_string_equal(error.message, "prepare segment: wal/" NAME " exists");
    assert_false(is_unused());
}

static void a_temporary_of_an_earlier_try_is_replaced(void **state)
{
    char temporary[FILES_PATH_BYTES];

    (void)state;
    files_path(temporary, wal_path, TEMPORARY);
    files_write(temporary, "left over", 9);
    assert_int_equal(prepare(), STELE_OK);
    assert_false(files_exists(temporary));
    assert_true(is_unused());
}

/* ---- Opening ---------------------------------------------------------------------------- */

static void only_a_missing_file_is_not_found(void **state)
{
    (void)state;
    assert_int_equal(open_it(), STELE_NOT_FOUND);
    assert_int_equal(prepare(), STELE_OK);
    break_call(IO_FAULT_OPEN, 0, EACCES);
    assert_int_equal(open_it(), STELE_IO);
    break_call(IO_FAULT_OPEN, 0, EMFILE);
    assert_int_equal(open_it(), STELE_IO);
    break_call(IO_FAULT_READ, 0, EIO);
    assert_int_equal(open_it(), STELE_IO);
    assert_int_equal(open_it(), STELE_OK);
}

static void damage_in_any_byte_of_the_header_is_noticed(void **state)
{
    (void)state;
    assert_int_equal(prepare(), STELE_OK);
    for (uint64_t bit = 0; bit < (uint64_t)HEADER_FIELDS_BYTES * 8; bit++) {
        files_flip_bit(path, 0, bit);
        assert_int_equal(open_it(), STELE_CORRUPT);
        assert_non_null(strstr(error.message,
                               NAME ": offset 0: not a valid segment header"));
        files_flip_bit(path, 0, bit);
    }
    assert_int_equal(open_it(), STELE_OK);
}

static void a_segment_of_another_store_is_foreign(void **state)
{
    const uint8_t other = 0xee;

    (void)state;
    assert_int_equal(prepare(), STELE_OK);
    rewrite_header(UUID_OFFSET, &other, 1);
    assert_int_equal(open_it(), STELE_FOREIGN);
    assert_non_null(
        strstr(error.message, NAME ": offset 16: belongs to another store"));
}

static void a_segment_of_a_newer_format_is_foreign(void **state)
{
    const uint8_t newer[4] = {2, 0, 0, 0};

    (void)state;
    assert_int_equal(prepare(), STELE_OK);
    rewrite_header(VERSION_OFFSET, newer, sizeof newer);
    assert_int_equal(open_it(), STELE_FOREIGN);
    assert_non_null(
        strstr(error.message,
               NAME ": offset 8: format version 2, this program knows 1"));
}

static void a_segment_under_another_name_is_corrupt(void **state)
{
    const uint8_t seq[8] = {4};

    (void)state;
    assert_int_equal(prepare(), STELE_OK);
    rewrite_header(SEQ_OFFSET, seq, sizeof seq);
    assert_int_equal(open_it(), STELE_CORRUPT);
    assert_non_null(
        strstr(error.message,
               NAME ": offset 32: is segment 0000000000000004 by its header"));
}

static void a_file_of_another_length_is_corrupt(void **state)
{
    static const uint64_t lengths[] = {
        0, 1, 63, 4095, 4096, BYTES / 2, BYTES - 1, BYTES + 1, 2 * BYTES};

    (void)state;
    assert_int_equal(prepare(), STELE_OK);
    for (size_t index = 0; index < sizeof lengths / sizeof *lengths; index++) {
        char copy[FILES_PATH_BYTES];

        files_path(copy, wal_path, "copy");
        files_copy(path, copy);
        files_truncate(path, lengths[index]);
        assert_int_equal(open_it(), STELE_CORRUPT);
        files_rename(copy, path);
    }
    files_truncate(path, BYTES - 1);
    assert_int_equal(open_it(), STELE_CORRUPT);
    assert_non_null(strstr(error.message, NAME
                           ": the file has 1048575 bytes, expected 1048576"));
}

/* Under a good checksum, from a store made otherwise. */
static void a_length_that_cannot_be_is_corrupt(void **state)
{
    static const uint64_t lengths[] = {0, 4096, BYTES + 1,
                                       UINT64_C(13000000000000000), UINT64_MAX};

    (void)state;
    assert_int_equal(prepare(), STELE_OK);
    for (size_t index = 0; index < sizeof lengths / sizeof *lengths; index++) {
        uint8_t length[8];

        put_u64le(length, lengths[index]);
        rewrite_header(LENGTH_OFFSET, length, sizeof length);
        assert_int_equal(open_it(), STELE_CORRUPT);
    }
}

static void what_is_not_a_file_is_not_a_segment(void **state)
{
    (void)state;
    assert_int_equal(mkfifo(path, 0600), 0);
    assert_int_equal(open_it(), STELE_CORRUPT);
    assert_non_null(strstr(error.message, NAME ": not a regular file"));
}

/* ---- Unused -------------------------------------------------------------------------------- */

static void one_byte_behind_the_header_is_use(void **state)
{
    static const uint64_t offsets[] = {4096, 8191, BYTES / 2, BYTES - 1};

    (void)state;
    assert_int_equal(prepare(), STELE_OK);
    assert_true(is_unused());
    for (size_t index = 0; index < sizeof offsets / sizeof *offsets; index++) {
        files_flip_bit(path, offsets[index], 0);
        assert_false(is_unused());
        files_flip_bit(path, offsets[index], 0);
    }
    assert_true(is_unused());
}

static void an_error_while_looking_is_not_an_answer(void **state)
{
    const struct wal_uuid uuid = wal_log_uuid();
    struct wal_segment segment;
    bool unused = false;

    (void)state;
    assert_int_equal(prepare(), STELE_OK);
    assert_int_equal(
        wal_segment_open(wal_dir, SEQ, &uuid, IO_OPEN_READ, &segment, &error),
        STELE_OK);
    break_call(IO_FAULT_READ, 0, EIO);
    assert_int_equal(wal_segment_is_unused(&segment, &unused, &error),
                     STELE_IO);
    assert_false(unused);
    files_truncate(path, BYTES / 2);
    assert_int_equal(wal_segment_is_unused(&segment, &unused, &error),
                     STELE_CORRUPT);
    assert_false(unused);
    wal_segment_close(&segment);
}

#define DISK_TEST(name)                                                        \
    cmocka_unit_test_setup_teardown(name, make_directory, remove_directory)

int main(void)
{
    const struct CMUnitTest tests[] = {
        DISK_TEST(a_prepared_segment_is_the_golden_header_and_zeros),
        DISK_TEST(a_prepared_segment_has_its_blocks),
        DISK_TEST(on_a_copy_on_write_file_system_the_zeros_are_reserved),
        DISK_TEST(a_segment_is_synced_before_it_has_its_name),
        DISK_TEST(every_segment_has_a_salt_of_its_own),
        DISK_TEST(a_failed_preparation_leaves_no_temporary),
        DISK_TEST(the_message_says_what_was_being_done),
        DISK_TEST(a_file_system_that_cannot_reserve_gets_zeros_all_the_same),
        DISK_TEST(one_that_cannot_reserve_and_copies_on_write_sets_the_length),
        DISK_TEST(a_failed_directory_sync_is_told_apart),
        DISK_TEST(a_segment_is_never_replaced),
        DISK_TEST(a_temporary_of_an_earlier_try_is_replaced),
        DISK_TEST(only_a_missing_file_is_not_found),
        DISK_TEST(damage_in_any_byte_of_the_header_is_noticed),
        DISK_TEST(a_segment_of_another_store_is_foreign),
        DISK_TEST(a_segment_of_a_newer_format_is_foreign),
        DISK_TEST(a_segment_under_another_name_is_corrupt),
        DISK_TEST(a_file_of_another_length_is_corrupt),
        DISK_TEST(a_length_that_cannot_be_is_corrupt),
        DISK_TEST(what_is_not_a_file_is_not_a_segment),
        DISK_TEST(one_byte_behind_the_header_is_use),
        DISK_TEST(an_error_while_looking_is_not_an_answer),
    };

    return cmocka_run_group_tests_name("wal/segment", tests, NULL, NULL);
}
