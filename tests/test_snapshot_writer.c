/*
 * tests/test_snapshot_writer.c -- snapshot/writer.h: what is written is read again,
 * and with every call failing in turn nothing is left and nothing published.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "tests/lib/io_fault.h"
#include "tests/lib/run.h"
#include "tests/lib/snapshot_file.h"

enum {
    RANDOM_ROUNDS = 40,
    DISK_CALLS_MAX = 100, /* More than writing one makes. */
    FULL_ENTRY_STORED = SNAPSHOT_BLOCK_BYTES - SNAPSHOT_ENTRY_HEADER_BYTES - 7,
};

/* ---- A small vocabulary ---------------------------------------------------------- */

static struct snapshot_file file;
static struct snapshot_writer *writer;
static struct snapshot_info info;
static bool names_unknown;
static struct stele_error error;

static int setup(void **state)
{
    (void)state;
    snapshot_file_setup(&file);
    writer = NULL;
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    snapshot_writer_destroy(writer);
    snapshot_file_teardown(&file);
    return 0;
}

static enum stele_status create(void)
{
    return snapshot_writer_create(file.dir, snapshot_file_uuid,
                                  SNAPSHOT_FILE_LSN, &writer, &error);
}

static enum stele_status add(const void *key, size_t key_bytes,
                             const void *stored, size_t stored_bytes)
{
    return snapshot_writer_add(writer, (struct bytes){key, key_bytes},
                               (struct bytes){stored, stored_bytes}, &error);
}

static enum stele_status add_text(const char *key)
{
    return add(key, strlen(key), "value", 5);
}

static enum stele_status pace(void)
{
    return snapshot_writer_pace(writer, &error);
}

static enum stele_status finish(void)
{
    return snapshot_writer_finish(writer, &snapshot_file_totals,
                                  snapshot_file_position, &info, &error);
}

static enum stele_status publish(void)
{
    return snapshot_writer_publish(writer, &names_unknown, &error);
}

static void destroy(void)
{
    snapshot_writer_destroy(writer);
    writer = NULL;
}

static void assert_round_trip(struct snapshot_pairs pairs)
{
    struct snapshot_info read;

    snapshot_file_make(&file, &pairs, &info);
    assert_int_equal(info.entries, pairs.count);
    assert_int_equal(files_count(file.dir_path, ""), 1);
    snapshot_file_assert(&file, &pairs);
    assert_int_equal(snapshot_read_info(file.dir, SNAPSHOT_FILE_LSN,
                                        snapshot_file_uuid, &read, &error),
                     STELE_OK);
    assert_memory_equal(&read, &info, sizeof info);
    snapshot_pairs_free(&pairs);
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

/* ---- Round trips ----------------------------------------------------------------------- */

static void random_entries_are_read_as_they_were_written(void **state)
{
    struct random_source random = run_random(1);

    (void)state;
    for (unsigned round = 0; round < RANDOM_ROUNDS; round++) {
        assert_round_trip(snapshot_pairs_random(
            &random, (size_t)random_below(
                         &random, random_one_in(&random, 4) ? 5 : 200)));
    }
}

static void no_entries_are_a_header_and_a_footer(void **state)
{
    (void)state;
    assert_round_trip(snapshot_pairs_counted(0, 0));
    assert_int_equal(info.blocks, 0);
    assert_int_equal(info.file_bytes,
                     SNAPSHOT_HEADER_BYTES + SNAPSHOT_FOOTER_BYTES);
}

static void the_largest_value_has_a_block_of_its_own(void **state)
{
    (void)state;
    assert_round_trip(snapshot_pairs_counted(2, SNAPSHOT_STORED_BYTES_MAX));
    assert_int_equal(info.blocks, 2);
}

static void an_entry_that_fills_a_block_is_the_border(void **state)
{
    (void)state;
    for (size_t stored = FULL_ENTRY_STORED - 9; stored <= FULL_ENTRY_STORED + 9;
         stored++) {
        assert_round_trip(snapshot_pairs_counted(3, stored));
        assert_int_equal(info.blocks, 3);
    }
    /* Two, or three, that fill it together. */
    for (size_t stored = FULL_ENTRY_STORED / 2 - 20;
         stored <= FULL_ENTRY_STORED / 2; stored++) {
        const size_t fit = 2 * (SNAPSHOT_ENTRY_HEADER_BYTES + 7 + stored) <=
                                   SNAPSHOT_BLOCK_BYTES
                               ? 2
                               : 1;

        assert_round_trip(snapshot_pairs_counted(4, stored));
        assert_int_equal(info.blocks, 4 / fit);
    }
}

static void the_same_entries_are_the_same_bytes(void **state)
{
    struct random_source random = run_random(2);
    struct snapshot_pairs pairs = snapshot_pairs_random(&random, 300);
    size_t first_size;
    size_t second_size;
    uint8_t *first;
    uint8_t *second;

    (void)state;
    snapshot_file_make(&file, &pairs, &info);
    first = files_read(file.path, &first_size);
    /* Once more, paced now and then. */
    assert_int_equal(create(), STELE_OK);
    for (size_t index = 0; index < pairs.count; index++) {
        const struct snapshot_entry *entry = &pairs.entries[index];

        assert_int_equal(
            snapshot_writer_add(writer, entry->key, entry->stored, &error),
            STELE_OK);
        if (random_one_in(&random, 10)) {
            assert_int_equal(pace(), STELE_OK);
        }
    }
    assert_int_equal(finish(), STELE_OK);
    assert_int_equal(publish(), STELE_OK);
    second = files_read(file.path, &second_size);
    assert_int_equal(first_size, second_size);
    assert_memory_equal(first, second, first_size);
    free(first);
    free(second);
    snapshot_pairs_free(&pairs);
}

/* ---- What is refused ---------------------------------------------------------------------- */

static void a_key_must_be_above_the_one_before(void **state)
{
    (void)state;
    assert_int_equal(create(), STELE_OK);
    assert_int_equal(add_text("bb"), STELE_OK);
    assert_int_equal(add_text("bb"), STELE_INVALID);
    assert_int_equal(add_text("b"), STELE_INVALID);
    assert_int_equal(add_text("a"), STELE_INVALID);
    assert_non_null(strstr(error.message, SNAPSHOT_FILE_TEMPORARY
                           ": entry 1: expected a key above the one before"));
    assert_int_equal(add_text("bba"), STELE_OK);
    assert_int_equal(finish(), STELE_OK);
    assert_int_equal(info.entries, 2);
}

static void lengths_are_bounded(void **state)
{
    static const uint8_t key[SNAPSHOT_KEY_BYTES_MAX + 1] = {'k'};

    (void)state;
    assert_int_equal(create(), STELE_OK);
    assert_int_equal(add(key, 0, "v", 1), STELE_INVALID);
    assert_int_equal(add(key, sizeof key, "v", 1), STELE_INVALID);
    /* Not looked at. */
    assert_int_equal(add(key, 1, NULL, SNAPSHOT_STORED_BYTES_MAX + 1),
                     STELE_INVALID);
    assert_int_equal(add(key, 1, NULL, SIZE_MAX), STELE_INVALID);
    assert_int_equal(add(key, sizeof key - 1, NULL, 0), STELE_OK);
    assert_int_equal(finish(), STELE_OK);
    assert_int_equal(info.entries, 1);
}

static void steps_have_an_order(void **state)
{
    (void)state;
    assert_int_equal(create(), STELE_OK);
    assert_int_equal(publish(), STELE_INVALID);
    assert_int_equal(finish(), STELE_OK);
    assert_int_equal(finish(), STELE_INVALID);
    assert_int_equal(pace(), STELE_INVALID);
    assert_int_equal(add_text("a"), STELE_INVALID);
    assert_non_null(
        strstr(error.message, SNAPSHOT_FILE_TEMPORARY ": is finished"));
    assert_int_equal(publish(), STELE_OK);
    assert_int_equal(publish(), STELE_INVALID);
}

/* ---- Names ---------------------------------------------------------------------------------- */

static void nothing_is_a_snapshot_until_it_is_published(void **state)
{
    struct snapshot_reader *reader;

    (void)state;
    assert_int_equal(create(), STELE_OK);
    assert_int_equal(add_text("a"), STELE_OK);
    assert_int_equal(finish(), STELE_OK);
    assert_false(files_exists(file.path));
    assert_int_equal(snapshot_reader_open(file.dir, SNAPSHOT_FILE_LSN,
                                          SNAPSHOT_TEMPORARY, NULL, &reader,
                                          &error),
                     STELE_OK);
    snapshot_reader_close(reader);
    assert_int_equal(publish(), STELE_OK);
    assert_true(files_exists(file.path));
    assert_false(files_exists(file.temporary));
    destroy();
    assert_true(files_exists(file.path));
}

static void what_is_not_published_is_gone_with_its_writer(void **state)
{
    (void)state;
    assert_int_equal(create(), STELE_OK);
    assert_true(files_exists(file.temporary));
    destroy();
    assert_int_equal(files_count(file.dir_path, ""), 0);
    assert_int_equal(create(), STELE_OK);
    assert_int_equal(finish(), STELE_OK);
    destroy();
    assert_int_equal(files_count(file.dir_path, ""), 0);
}

static void a_temporary_of_an_earlier_try_is_replaced(void **state)
{
    (void)state;
    files_write(file.temporary, NULL, 0);
    files_fill_at(file.temporary, 0, 'x', 1000); /* Longer than what follows. */
    assert_round_trip(snapshot_pairs_counted(0, 0));
}

static void a_forsaken_writer_touches_no_name(void **state)
{
    (void)state;
    assert_int_equal(create(), STELE_OK);
    snapshot_writer_forsake(writer);
    writer = NULL;
    snapshot_writer_forsake(NULL);
    assert_true(files_exists(file.temporary));
}

static void bytes_are_counted_as_they_are_written(void **state)
{
    (void)state;
    assert_int_equal(create(), STELE_OK);
    assert_int_equal(snapshot_writer_bytes(writer), SNAPSHOT_HEADER_BYTES);
    assert_int_equal(add_text("a"), STELE_OK);
    assert_int_equal(snapshot_writer_bytes(writer), SNAPSHOT_HEADER_BYTES);
    assert_int_equal(finish(), STELE_OK);
    assert_int_equal(snapshot_writer_bytes(writer), files_size(file.temporary));
    assert_int_equal(snapshot_writer_bytes(writer), info.file_bytes);
}

/* ---- Faults ----------------------------------------------------------------------------------- */

/* All steps, of several blocks. The first failure. */
static enum stele_status write_all(const struct snapshot_pairs *pairs)
{
    enum stele_status status = create();

    names_unknown = false;
    for (size_t index = 0; status == STELE_OK && index < pairs->count;
         index++) {
        status = snapshot_writer_add(writer, pairs->entries[index].key,
                                     pairs->entries[index].stored, &error);
        if (status == STELE_OK) {
            status = pace();
        }
    }
    if (status == STELE_OK) {
        status = finish();
    }
    return status == STELE_OK ? publish() : status;
}

/* Until it no longer strikes; how often it did. */
static unsigned fail_every(enum io_fault_call call, int sys_errno,
                           enum stele_status expected)
{
    struct snapshot_pairs pairs = snapshot_pairs_counted(2000, 400);

    for (unsigned after = 0; after < DISK_CALLS_MAX; after++) {
        enum stele_status status;

        break_call(call, after, sys_errno);
        status = write_all(&pairs);
        if (io_fault_count() == 0) {
            assert_int_equal(status, STELE_OK);
            destroy();
            snapshot_file_assert(&file, &pairs);
            snapshot_pairs_free(&pairs);
            return after;
        }
        assert_int_equal(status, expected);
        assert_false(names_unknown);
        assert_false(files_exists(file.path));
        if (writer != NULL) { /* It goes on with nothing. */
            assert_int_equal(add_text("z"), STELE_INVALID);
            assert_int_equal(pace(), STELE_INVALID);
            assert_int_equal(finish(), STELE_INVALID);
            assert_int_equal(publish(), STELE_INVALID);
        }
        destroy();
        assert_int_equal(files_count(file.dir_path, ""), 0);
    }
    fail();
    return 0;
}

static void a_failed_write_leaves_nothing(void **state)
{
    (void)state;
    /* Header, thirteen blocks, footer. */
    assert_int_equal(fail_every(IO_FAULT_WRITE, EIO, STELE_IO), 15);
    files_remove(file.path);
    assert_int_equal(fail_every(IO_FAULT_WRITE, ENOSPC, STELE_NO_SPACE), 15);
    files_remove(file.path);
    assert_int_equal(fail_every(IO_FAULT_WRITE, 0, STELE_IO), 15); /* Short. */
}

static void a_failed_sync_leaves_nothing_and_is_not_repeated(void **state)
{
    const uint64_t before = io_fault_calls(IO_FAULT_SYNC);

    (void)state;
    assert_int_equal(fail_every(IO_FAULT_SYNC, EIO, STELE_IO), 1);
    assert_int_equal(io_fault_calls(IO_FAULT_SYNC) - before, 2);
    files_remove(file.path);
    /* Never "no space": nobody knows what is on the disk. */
    assert_int_equal(fail_every(IO_FAULT_SYNC, ENOSPC, STELE_IO), 1);
}

/* Nor is the sync asked then, which would not know of it any more. */
static void what_is_not_written_back_leaves_nothing(void **state)
{
    const uint64_t before = io_fault_calls(IO_FAULT_SYNC);

    (void)state;
    assert_int_equal(fail_every(IO_FAULT_WRITE_BACK, EIO, STELE_IO), 2);
    assert_int_equal(io_fault_calls(IO_FAULT_SYNC) - before, 1);
    files_remove(file.path);
    assert_int_equal(fail_every(IO_FAULT_WRITE_BACK, ENOSPC, STELE_IO), 2);
}

static void a_failed_creation_or_rename_leaves_nothing(void **state)
{
    (void)state;
    assert_int_equal(fail_every(IO_FAULT_CREATE, EACCES, STELE_IO), 1);
    files_remove(file.path);
    assert_int_equal(fail_every(IO_FAULT_RENAME, EIO, STELE_IO), 1);
}

static void a_failed_directory_sync_is_told_apart(void **state)
{
    struct snapshot_pairs pairs = snapshot_pairs_counted(10, 100);

    (void)state;
    break_call(IO_FAULT_SYNC_DIR, 0, EIO);
    assert_int_equal(write_all(&pairs), STELE_IO);
    assert_true(names_unknown);
    assert_non_null(strstr(error.message, "publish snapshot: "));
    /* The name is there, whether or not it is durable, and nothing else. */
    destroy();
    assert_false(files_exists(file.temporary));
    snapshot_file_assert(&file, &pairs);
    snapshot_pairs_free(&pairs);
}

static void a_snapshot_is_synced_before_it_has_its_name(void **state)
{
    uint64_t syncs;

    (void)state;
    assert_int_equal(create(), STELE_OK);
    assert_int_equal(add_text("a"), STELE_OK);
    syncs = io_fault_calls(IO_FAULT_SYNC);
    assert_int_equal(finish(), STELE_OK);
    assert_int_equal(io_fault_calls(IO_FAULT_SYNC), syncs + 1);
    assert_false(files_exists(file.path));
    syncs = io_fault_calls(IO_FAULT_SYNC_DIR);
    assert_int_equal(publish(), STELE_OK);
    assert_int_equal(io_fault_calls(IO_FAULT_SYNC_DIR), syncs + 1);
}

#define DISK_TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        DISK_TEST(random_entries_are_read_as_they_were_written),
        DISK_TEST(no_entries_are_a_header_and_a_footer),
        DISK_TEST(the_largest_value_has_a_block_of_its_own),
        DISK_TEST(an_entry_that_fills_a_block_is_the_border),
        DISK_TEST(the_same_entries_are_the_same_bytes),
        DISK_TEST(a_key_must_be_above_the_one_before),
        DISK_TEST(lengths_are_bounded),
        DISK_TEST(steps_have_an_order),
        DISK_TEST(nothing_is_a_snapshot_until_it_is_published),
        DISK_TEST(what_is_not_published_is_gone_with_its_writer),
        DISK_TEST(a_temporary_of_an_earlier_try_is_replaced),
        DISK_TEST(a_forsaken_writer_touches_no_name),
        DISK_TEST(bytes_are_counted_as_they_are_written),
        DISK_TEST(a_failed_write_leaves_nothing),
        DISK_TEST(a_failed_sync_leaves_nothing_and_is_not_repeated),
        DISK_TEST(what_is_not_written_back_leaves_nothing),
        DISK_TEST(a_failed_creation_or_rename_leaves_nothing),
        DISK_TEST(a_failed_directory_sync_is_told_apart),
        DISK_TEST(a_snapshot_is_synced_before_it_has_its_name),
    };

    run_seed();
    return cmocka_run_group_tests_name("snapshot/writer", tests, NULL, NULL);
}
