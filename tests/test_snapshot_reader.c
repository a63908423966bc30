/*
 * tests/test_snapshot_reader.c -- snapshot/reader.h: no file that is damaged, cut,
 * put together from pieces or made up of lies is read to its end.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/bytes.h"
#include "tests/lib/io_fault.h"
#include "tests/lib/reseal.h"
#include "tests/lib/run.h"
#include "tests/lib/snapshot_file.h"

enum {
    FIRST = SNAPSHOT_HEADER_BYTES, /* The first block. */
    FIRST_ENTRY = FIRST + SNAPSHOT_BLOCK_HEADER_BYTES,
    APPENDED_MAX = 300,
    DAMAGE_ROUNDS = 2000,
    DAMAGE_BYTES_MAX = 8,
};

/* ---- A small vocabulary ---------------------------------------------------------- */

static struct snapshot_file file;
static struct snapshot_info info;
static struct stele_error error;
static uint8_t *bytes; /* The sound file. */
static size_t size;

static int setup(void **state)
{
    (void)state;
    snapshot_file_setup(&file);
    bytes = NULL;
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    free(bytes);
    snapshot_file_teardown(&file);
    return 0;
}

/* Of so many entries with so much each; kept in `bytes`. */
static void make(size_t count, size_t stored_bytes)
{
    struct snapshot_pairs pairs = snapshot_pairs_counted(count, stored_bytes);

    snapshot_file_make(&file, &pairs, &info);
    snapshot_pairs_free(&pairs);
    free(bytes);
    bytes = files_read(file.path, &size);
}

static enum stele_status scan(void)
{
    return snapshot_file_scan(&file, &error);
}

static enum stele_status scan_of(const uint8_t *data, size_t data_bytes)
{
    files_write(file.path, data, data_bytes);
    return scan();
}

/* The file as it is in `bytes` by now, with its footer sealed. */
static enum stele_status scan_lie(void)
{
    reseal_snapshot_footer(bytes, size);
    return scan_of(bytes, size);
}

static void assert_says(const char *text)
{
    if (strstr(error.message, text) == NULL) {
        fail_msg("\"%s\" is not in \"%s\"", text, error.message);
    }
}

static void open_fails_with(enum io_fault_call call, int sys_errno)
{
    const struct io_fault fault = {
        .call = call, .times = 1, .sys_errno = sys_errno};

    io_fault_arm(&fault);
}

static enum stele_status open_as(uint64_t lsn, const uint8_t *uuid)
{
    struct snapshot_reader *reader = NULL;
    const enum stele_status status = snapshot_reader_open(
        file.dir, lsn, SNAPSHOT_PUBLISHED, uuid, &reader, &error);

    snapshot_reader_close(reader);
    return status;
}

static enum stele_status open_it(void)
{
    return open_as(SNAPSHOT_FILE_LSN, snapshot_file_uuid);
}

static size_t block_bytes(size_t offset)
{
    return SNAPSHOT_BLOCK_HEADER_BYTES + get_u32le(bytes + offset);
}

/* ---- Opening ------------------------------------------------------------------------- */

static void only_a_missing_file_is_not_found(void **state)
{
    (void)state;
    assert_int_equal(open_it(), STELE_NOT_FOUND);
    make(3, 10);
    open_fails_with(IO_FAULT_OPEN, EACCES);
    assert_int_equal(open_it(), STELE_IO);
    open_fails_with(IO_FAULT_OPEN, EMFILE);
    assert_int_equal(open_it(), STELE_IO);
    open_fails_with(IO_FAULT_READ, EIO);
    assert_int_equal(open_it(), STELE_IO);
    open_fails_with(IO_FAULT_INFO, EIO);
    assert_int_equal(open_it(), STELE_IO);
    assert_int_equal(open_it(), STELE_OK);
}

static void what_is_not_a_file_is_not_a_snapshot(void **state)
{
    (void)state;
    assert_int_equal(mkfifo(file.path, 0600), 0);
    assert_int_equal(open_it(), STELE_CORRUPT);
    assert_says(SNAPSHOT_FILE_NAME ": not a regular file");
    files_remove(file.path);
    assert_int_equal(mkdir(file.path, 0700), 0);
    assert_int_equal(open_it(), STELE_CORRUPT);
    assert_int_equal(rmdir(file.path), 0);
    assert_int_equal(symlink("/dev/zero", file.path), 0);
    assert_int_equal(open_it(), STELE_CORRUPT);
}

static void a_snapshot_of_another_store_is_foreign(void **state)
{
    uint8_t other[SNAPSHOT_UUID_BYTES];

    (void)state;
    make(3, 10);
    memcpy(other, snapshot_file_uuid, sizeof other);
    other[SNAPSHOT_UUID_BYTES - 1] ^= 1;
    assert_int_equal(open_as(SNAPSHOT_FILE_LSN, other), STELE_FOREIGN);
    assert_says(SNAPSHOT_FILE_NAME ": offset 16: belongs to another store");
    assert_int_equal(open_as(SNAPSHOT_FILE_LSN, NULL), STELE_OK);
}

static void a_snapshot_of_a_newer_format_is_foreign(void **state)
{
    (void)state;
    make(3, 10);
    put_u32le(bytes + 8, 2);
    reseal_snapshot_header(bytes);
    assert_int_equal(scan_lie(), STELE_FOREIGN);
    assert_says(SNAPSHOT_FILE_NAME
                ": offset 8: format version 2, this program knows 1");
}

static void a_snapshot_under_another_name_is_corrupt(void **state)
{
    char path[FILES_PATH_BYTES];

    (void)state;
    make(3, 10);
    files_path(path, file.dir_path, "0000000000001a2c.snap");
    files_rename(file.path, path);
    assert_int_equal(open_as(SNAPSHOT_FILE_LSN + 1, NULL), STELE_CORRUPT);
    assert_says("0000000000001a2c.snap: offset 32: is the snapshot of LSN 6699 "
                "by its header, expected 6700");
}

static void header_and_footer_can_be_asked_for_alone(void **state)
{
    struct snapshot_info found = {.lsn = 42};

    (void)state;
    make(3000, 100);
    files_flip_bit(file.path, FIRST_ENTRY, 0); /* Not looked at. */
    assert_int_equal(snapshot_read_info(file.dir, SNAPSHOT_FILE_LSN,
                                        snapshot_file_uuid, &found, &error),
                     STELE_OK);
    assert_memory_equal(&found, &info, sizeof info);
    files_flip_bit(file.path, size - 1, 0);
    found.lsn = 42;
    assert_int_equal(snapshot_read_info(file.dir, SNAPSHOT_FILE_LSN,
                                        snapshot_file_uuid, &found, &error),
                     STELE_CORRUPT);
    assert_int_equal(found.lsn, 42);
}

/* ---- Damage ----------------------------------------------------------------------------- */

static void any_bit_that_changed_is_noticed(void **state)
{
    (void)state;
    make(5, 20);
    for (uint64_t bit = 0; bit < (uint64_t)size * 8; bit++) {
        files_flip_bit(file.path, 0, bit);
        assert_int_equal(scan(), STELE_CORRUPT);
        assert_says(SNAPSHOT_FILE_NAME ": offset ");
        files_flip_bit(file.path, 0, bit);
    }
    assert_int_equal(scan(), STELE_NOT_FOUND);
}

static void a_file_cut_anywhere_is_noticed(void **state)
{
    (void)state;
    make(5, 20);
    for (size_t left = 0; left < size; left++) {
        assert_int_equal(scan_of(bytes, left), STELE_CORRUPT);
    }
    assert_int_equal(scan_of(bytes, 100), STELE_CORRUPT);
    assert_says(SNAPSHOT_FILE_NAME
                ": the file has 100 bytes, expected at least 224");
}

static void bytes_behind_the_footer_are_noticed(void **state)
{
    uint8_t *longer;

    (void)state;
    make(5, 20);
    longer = calloc(1, size + APPENDED_MAX);
    assert_non_null(longer);
    memcpy(longer, bytes, size);
    for (size_t more = 1; more <= APPENDED_MAX; more++) {
        assert_int_equal(scan_of(longer, size + more), STELE_CORRUPT);
    }
    /* The footer once more. */
    memcpy(longer + size, bytes + size - SNAPSHOT_FOOTER_BYTES,
           SNAPSHOT_FOOTER_BYTES);
    assert_int_equal(scan_of(longer, size + SNAPSHOT_FOOTER_BYTES),
                     STELE_CORRUPT);
    free(longer);
}

static void blocks_that_changed_places_are_noticed(void **state)
{
    size_t second;
    uint8_t *swapped;

    (void)state;
    make(3000, 100);
    second = FIRST + block_bytes(FIRST);
    assert_int_equal(block_bytes(FIRST), block_bytes(second));
    swapped = malloc(size);
    assert_non_null(swapped);
    memcpy(swapped, bytes, size);
    memcpy(swapped + FIRST, bytes + second, block_bytes(second));
    memcpy(swapped + second, bytes + FIRST, block_bytes(FIRST));
    assert_int_equal(scan_of(swapped, size), STELE_CORRUPT);
    assert_says(SNAPSHOT_FILE_NAME
                ": offset 64: the checksum of the block does not match");
    free(swapped);
}

/* Leave out the block at `offset`. */
static void leave_out(size_t offset)
{
    const size_t left_out = block_bytes(offset);

    memmove(bytes + offset, bytes + offset + left_out,
            size - offset - left_out);
    size -= left_out;
}

static void a_block_that_is_left_out_is_noticed(void **state)
{
    size_t last = FIRST;

    (void)state;
    make(3000, 100);
    while (last + block_bytes(last) < size - SNAPSHOT_FOOTER_BYTES) {
        last += block_bytes(last);
    }
    /* No block behind it has moved: only the footer knows. */
    leave_out(last);
    assert_int_equal(scan_of(bytes, size), STELE_CORRUPT);
    assert_says("2895 entries in 5 blocks, expected 3000 in 6");
    make(3000, 100);
    leave_out(FIRST);
    assert_int_equal(scan_of(bytes, size), STELE_CORRUPT);
}

static void a_block_of_another_content_is_noticed_by_the_digest(void **state)
{
    (void)state;
    make(5, 20);
    bytes[FIRST_ENTRY + SNAPSHOT_ENTRY_HEADER_BYTES + 10]++;
    reseal_snapshot_block(bytes, size, FIRST);
    assert_int_equal(scan_of(bytes, size), STELE_CORRUPT);
    assert_says(": the digest of the file does not match");
    assert_int_equal(scan_lie(), STELE_NOT_FOUND); /* Just another snapshot. */
}

static void random_damage_is_noticed(void **state)
{
    struct random_source random = run_random(1);
    struct snapshot_pairs pairs = snapshot_pairs_random(&random, 60);

    (void)state;
    snapshot_file_make(&file, &pairs, &info);
    snapshot_pairs_free(&pairs);
    bytes = files_read(file.path, &size);
    for (unsigned round = 0; round < DAMAGE_ROUNDS; round++) {
        const uint64_t count = 1 + random_below(&random, DAMAGE_BYTES_MAX);
        uint64_t offsets[DAMAGE_BYTES_MAX];
        uint8_t changes = 0;

        for (uint64_t index = 0; index < count; index++) {
            uint8_t byte = (uint8_t)random_u64(&random);

            offsets[index] = random_below(&random, size);
            changes |= byte ^ bytes[offsets[index]];
            files_write_at(file.path, offsets[index], &byte, 1);
        }
        if (changes != 0 && scan() != STELE_CORRUPT) {
            /* One write may have undone another. */
            size_t found_size;
            uint8_t *found = files_read(file.path, &found_size);

            assert_memory_equal(found, bytes, size);
            free(found);
        }
        for (uint64_t index = 0; index < count; index++) {
            files_write_at(file.path, offsets[index], &bytes[offsets[index]],
                           1);
        }
    }
    assert_int_equal(scan(), STELE_NOT_FOUND);
}

/* ---- Lies under good checksums ------------------------------------------------------------- */

struct lie {
    size_t offset;
    unsigned width;
    uint64_t value;
    const char *says;
};

static void tell(const struct lie *lie)
{
    uint8_t value[8];

    put_u64le(value, lie->value);
    memcpy(bytes + lie->offset, value, lie->width);
}

/* In the first block, which is sealed over each of them. */
static void assert_caught(const struct lie *lies, size_t count)
{
    for (size_t index = 0; index < count; index++) {
        make(5, 20);
        tell(&lies[index]);
        reseal_snapshot_block(bytes, size, FIRST);
        assert_int_equal(scan_lie(), STELE_CORRUPT);
        assert_says(lies[index].says);
    }
}

/* Five entries of 6 + 7 + 20 bytes, in one block of 165. */
static void lengths_of_a_block_are_bounded(void **state)
{
    static const struct lie lies[] = {
        {FIRST, 4, 0, "block of 0 bytes in 5 entries"},
        {FIRST, 4, 1, "block of 1 bytes"},
        {FIRST, 4, 34, "block of 34 bytes in 5 entries"},
        {FIRST, 4, 164, "does not end in its block"},
        {FIRST, 4, 166, "block of 166 bytes in 5 entries, expected up to 165"},
        {FIRST, 4, 165 + SNAPSHOT_FOOTER_BYTES, "block of 325 bytes"},
        {FIRST, 4, SNAPSHOT_BLOCK_BYTES, "block of 65536 bytes"},
        {FIRST, 4, INT32_MAX, "block of 2147483647 bytes"},
        {FIRST, 4, UINT32_MAX, "block of 4294967295 bytes"},
        {FIRST, 4, UINT32_MAX - 15, "block of 4294967280 bytes"},
        {FIRST, 4, 149, "does not end in its block"},
        {FIRST + 4, 4, 0, "165 bytes in 0 entries"},
        {FIRST + 4, 4, 1, "132 bytes behind the last of 1 entries"},
        {FIRST + 4, 4, 4, "33 bytes behind the last of 4 entries"},
        {FIRST + 4, 4, 6, "offset 245: an entry does not end in its block"},
        {FIRST + 4, 4, 24, "165 bytes in 24 entries"},
        {FIRST + 4, 4, UINT32_MAX, "165 bytes in 4294967295 entries"},
    };

    (void)state;
    assert_caught(lies, sizeof lies / sizeof *lies);
}

static void lengths_of_an_entry_are_bounded(void **state)
{
    enum { SECOND_ENTRY = FIRST_ENTRY + 33, LAST_ENTRY = FIRST_ENTRY + 4 * 33 };
    static const struct lie lies[] = {
        {FIRST_ENTRY, 2, 0, "offset 80: key of 0 bytes with 20 stored"},
        {FIRST_ENTRY, 2, UINT16_MAX, "offset 80: an entry does not end"},
        {FIRST_ENTRY, 2, 8, "does not end in its block"},
        {FIRST_ENTRY + 2, 4, 21, "does not end in its block"},
        {FIRST_ENTRY + 2, 4, UINT32_MAX, "offset 80: an entry does not end"},
        {SECOND_ENTRY + 2, 4, 19, "does not end in its block"},
        {LAST_ENTRY + 2, 4, 19, "1 bytes behind the last of 5 entries"},
        {LAST_ENTRY + 2, 4, 21, "offset 212: an entry does not end"},
        {LAST_ENTRY, 2, 6, "offset 212: expected a key above the one before"},
    };

    (void)state;
    assert_caught(lies, sizeof lies / sizeof *lies);
}

/* A key, or a value, that is really there, but longer than any may be. */
static void lengths_are_bounded_even_where_there_are_so_many_bytes(void **state)
{
    (void)state;
    make(1, 1000);
    put_u16le(bytes + FIRST_ENTRY, SNAPSHOT_KEY_BYTES_MAX + 1);
    put_u32le(bytes + FIRST_ENTRY + 2, 1000 - (SNAPSHOT_KEY_BYTES_MAX + 1 - 7));
    reseal_snapshot_block(bytes, size, FIRST);
    assert_int_equal(scan_lie(), STELE_CORRUPT);
    assert_says("key of 512 bytes with 495 stored, expected 1 to 511");
    make(1, SNAPSHOT_STORED_BYTES_MAX);
    put_u16le(bytes + FIRST_ENTRY, 6);
    put_u32le(bytes + FIRST_ENTRY + 2, SNAPSHOT_STORED_BYTES_MAX + 1);
    reseal_snapshot_block(bytes, size, FIRST);
    assert_int_equal(scan_lie(), STELE_CORRUPT);
    assert_says("key of 6 bytes with 16777281 stored");
    /* Two entries in more than a block may hold of them. */
    make(1, 2 * SNAPSHOT_BLOCK_BYTES);
    put_u32le(bytes + FIRST + 4, 2);
    reseal_snapshot_block(bytes, size, FIRST);
    assert_int_equal(scan_lie(), STELE_CORRUPT);
    assert_says("in 2 entries");
}

static void totals_must_be_those_of_the_file(void **state)
{
    static const struct {
        size_t offset; /* In the footer. */
        uint64_t value;
        const char *says;
    } lies[] = {
        {8, 7, ": LSN 7, expected 6699"},
        {16, 4, ": 5 entries in 1 blocks, expected 4 in 1"},
        {16, UINT64_MAX, "expected 18446744073709551615 in 1"},
        {24, 0, ": 5 entries in 1 blocks, expected 5 in 0"},
        {24, UINT64_MAX, "expected 5 in 18446744073709551615"},
    };

    (void)state;
    for (size_t index = 0; index < sizeof lies / sizeof *lies; index++) {
        make(5, 20);
        put_u64le(bytes + size - SNAPSHOT_FOOTER_BYTES + lies[index].offset,
                  lies[index].value);
        assert_int_equal(scan_lie(), STELE_CORRUPT);
        assert_says(lies[index].says);
    }
}

static void bytes_between_blocks_and_footer_are_noticed(void **state)
{
    static const size_t counts[] = {1, 15, 16, 100};

    (void)state;
    for (size_t index = 0; index < sizeof counts / sizeof *counts; index++) {
        const size_t more = counts[index];

        make(5, 20);
        bytes = realloc(bytes, size + more);
        assert_non_null(bytes);
        memmove(bytes + size - SNAPSHOT_FOOTER_BYTES + more,
                bytes + size - SNAPSHOT_FOOTER_BYTES, SNAPSHOT_FOOTER_BYTES);
        memset(bytes + size - SNAPSHOT_FOOTER_BYTES, 0, more);
        size += more;
        assert_int_equal(scan_lie(), STELE_CORRUPT);
        assert_says(more < SNAPSHOT_BLOCK_HEADER_BYTES
                        ? " bytes, expected a block or the footer"
                        : "offset 245: block of 0 bytes in 0 entries");
    }
}

static void keys_that_do_not_ascend_are_noticed(void **state)
{
    uint8_t *second_key;

    (void)state;
    make(5, 20);
    second_key = bytes + FIRST_ENTRY + 33 + SNAPSHOT_ENTRY_HEADER_BYTES;
    memcpy(second_key, "k000000", 7); /* The first one again. */
    reseal_snapshot_block(bytes, size, FIRST);
    assert_int_equal(scan_lie(), STELE_CORRUPT);
    assert_says("offset 113: expected a key above the one before it");
    memcpy(second_key, "a000000", 7);
    reseal_snapshot_block(bytes, size, FIRST);
    assert_int_equal(scan_lie(), STELE_CORRUPT);
    memcpy(second_key, "k000000", 7);
    second_key[6] = '1';
    reseal_snapshot_block(bytes, size, FIRST);
    assert_int_equal(scan_lie(), STELE_NOT_FOUND);
}

static void keys_that_do_not_ascend_over_a_border_are_noticed(void **state)
{
    static const char *const keys[] = {"a000000", "k000000"};

    (void)state;
    for (size_t index = 0; index < sizeof keys / sizeof *keys; index++) {
        size_t second;

        make(2, SNAPSHOT_BLOCK_BYTES - 100); /* A block each. */
        second = FIRST + block_bytes(FIRST);
        memcpy(bytes + second + SNAPSHOT_BLOCK_HEADER_BYTES +
                   SNAPSHOT_ENTRY_HEADER_BYTES,
               keys[index], 7);
        reseal_snapshot_block(bytes, size, second);
        assert_int_equal(scan_lie(), STELE_CORRUPT);
        assert_says(": expected a key above those of the block before it");
    }
}

/* ---- Going on ---------------------------------------------------------------------------------- */

/* A read fails, in turn each; the same call is made again. */
static void a_read_that_failed_can_be_made_again(void **state)
{
    struct random_source random = run_random(2);
    struct snapshot_pairs pairs = snapshot_pairs_random(&random, 100);

    (void)state;
    snapshot_file_make(&file, &pairs, &info);
    for (uint64_t after = 0;; after++) {
        const struct io_fault fault = {.call = IO_FAULT_READ,
                                       .after_calls = after,
                                       .times = 1,
                                       .sys_errno = EIO};
        struct snapshot_reader *reader;
        struct snapshot_entry entry;
        unsigned failures = 0;

        assert_int_equal(snapshot_reader_open(file.dir, SNAPSHOT_FILE_LSN,
                                              SNAPSHOT_PUBLISHED, NULL, &reader,
                                              &error),
                         STELE_OK);
        io_fault_arm(&fault);
        for (size_t index = 0; index < pairs.count;) {
            const enum stele_status status =
                snapshot_reader_next(reader, &entry, &error);

            if (status == STELE_IO) {
                failures++;
                continue;
            }
            assert_int_equal(status, STELE_OK);
            assert_true(bytes_compare(entry.key, pairs.entries[index].key) ==
                        0);
            index++;
        }
        assert_int_equal(snapshot_reader_next(reader, &entry, &error),
                         STELE_NOT_FOUND);
        assert_int_equal(snapshot_reader_next(reader, &entry, &error),
                         STELE_NOT_FOUND);
        snapshot_reader_close(reader);
        if (failures == 0) {
            assert_int_equal(after, 2 * info.blocks);
            break;
        }
    }
    snapshot_pairs_free(&pairs);
}

static void progress_and_place_are_told(void **state)
{
    struct snapshot_reader *reader;
    struct snapshot_entry entry;

    (void)state;
    make(3000, 100);
    assert_int_equal(snapshot_reader_open(file.dir, SNAPSHOT_FILE_LSN,
                                          SNAPSHOT_PUBLISHED, NULL, &reader,
                                          &error),
                     STELE_OK);
    assert_memory_equal(snapshot_reader_info(reader), &info, sizeof info);
    assert_int_equal(snapshot_reader_bytes(reader), SNAPSHOT_HEADER_BYTES);
    assert_int_equal(snapshot_reader_drop_cache(reader, &error), STELE_OK);
    assert_int_equal(snapshot_reader_next(reader, &entry, &error), STELE_OK);
    assert_int_equal(snapshot_reader_offset(reader), FIRST);
    assert_int_equal(snapshot_reader_bytes(reader), FIRST + block_bytes(FIRST));
    for (unsigned index = 1; index < 3000; index++) {
        assert_int_equal(snapshot_reader_next(reader, &entry, &error),
                         STELE_OK);
    }
    assert_true(snapshot_reader_offset(reader) > size / 2);
    assert_int_equal(snapshot_reader_bytes(reader), size);
    snapshot_reader_close(reader);
}

#define DISK_TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        DISK_TEST(only_a_missing_file_is_not_found),
        DISK_TEST(what_is_not_a_file_is_not_a_snapshot),
        DISK_TEST(a_snapshot_of_another_store_is_foreign),
        DISK_TEST(a_snapshot_of_a_newer_format_is_foreign),
        DISK_TEST(a_snapshot_under_another_name_is_corrupt),
        DISK_TEST(header_and_footer_can_be_asked_for_alone),
        DISK_TEST(any_bit_that_changed_is_noticed),
        DISK_TEST(a_file_cut_anywhere_is_noticed),
        DISK_TEST(bytes_behind_the_footer_are_noticed),
        DISK_TEST(blocks_that_changed_places_are_noticed),
        DISK_TEST(a_block_that_is_left_out_is_noticed),
        DISK_TEST(a_block_of_another_content_is_noticed_by_the_digest),
        DISK_TEST(random_damage_is_noticed),
        DISK_TEST(lengths_of_a_block_are_bounded),
        DISK_TEST(lengths_of_an_entry_are_bounded),
        DISK_TEST(lengths_are_bounded_even_where_there_are_so_many_bytes),
        DISK_TEST(totals_must_be_those_of_the_file),
        DISK_TEST(bytes_between_blocks_and_footer_are_noticed),
        DISK_TEST(keys_that_do_not_ascend_are_noticed),
        DISK_TEST(keys_that_do_not_ascend_over_a_border_are_noticed),
        DISK_TEST(a_read_that_failed_can_be_made_again),
        DISK_TEST(progress_and_place_are_told),
    };

    run_seed();
    return cmocka_run_group_tests_name("snapshot/reader", tests, NULL, NULL);
}
