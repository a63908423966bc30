/*
 * tests/test_engine_damage.c -- a store that somebody did something to while it
 * was closed: torn tails, damaged logs, an index that is gone, cut, copied or
 * rotten.
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
#include <unistd.h>

#include "tests/lib/files.h"
#include "tests/lib/io_fault.h"
#include "tests/lib/store_dir.h"

#define FIRST_SEGMENT  "wal/0000000000000001.wal"
#define SECOND_SEGMENT "wal/0000000000000002.wal"

enum { PAGE = 4096, DEPTH = 4 };

/* ---- A small vocabulary ------------------------------------------------------------------- */

static struct store_dir dir;

static int setup(void **state)
{
    (void)state;
    store_dir_make(&dir);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    store_dir_remove(&dir);
    return 0;
}

static const char *at(const char *name)
{
    return store_dir_at(&dir, name);
}

static void damage_text(const char *file, const char *text)
{
    files_flip_everywhere(file, text, strlen(text), 0);
}

static void assert_refused(enum stele_status expected, const char *part)
{
    const uint64_t digest = store_dir_digest(&dir);

    assert_int_equal(store_dir_try_open(&dir, STELE_OPEN_EXISTING), expected);
    if (strstr(dir.error.message, part) == NULL) {
        fail_msg("%s", dir.error.message);
    }
    /* Evidence stays as it is: also under a second look, or a reader's. */
    assert_true(store_dir_digest(&dir) == digest);
    assert_int_equal(store_dir_try_open(&dir, STELE_OPEN_READ_ONLY), expected);
    assert_true(store_dir_digest(&dir) == digest);
}

static enum stele_status verify(uint64_t *problems_out)
{
    struct stele_verify_report report = {.size = sizeof report};
    const enum stele_status status =
        stele_verify(dir.store, NULL, NULL, &report, &dir.error);

    *problems_out = report.problems;
    return status;
}

static void assert_verifies(void)
{
    uint64_t problems;

    assert_int_equal(verify(&problems), STELE_OK);
    assert_int_equal(problems, 0);
}

/* "a" and "b" are in the index; "c" is in the log only. Closed. */
static void leave_a_store(void)
{
    store_dir_open(&dir);
    store_dir_put(&dir, "a", "value of a");
    store_dir_put(&dir, "b", "value of b");
    assert_int_equal(stele_checkpoint(dir.store, &dir.error), STELE_OK);
    dir.options.skip_close_checkpoint = true;
    store_dir_put(&dir, "c", "value of c");
    store_dir_close(&dir);
}

static void assert_all_there(void)
{
    assert_true(store_dir_has(&dir, "a", "value of a"));
    assert_true(store_dir_has(&dir, "b", "value of b"));
    assert_true(store_dir_has(&dir, "c", "value of c"));
}

/* The index was set aside, and there is a new one. */
static void assert_rebuilt(uint64_t set_aside)
{
    store_dir_open(&dir);
    assert_true(store_dir_stats(&dir).index_rebuilt);
    assert_all_there();
    assert_verifies();
    assert_int_equal(
        files_exists(at("quarantine")) ? files_count(at("quarantine"), "") : 0,
        set_aside);
    assert_false(files_exists(at("index.tmp")));
    store_dir_close(&dir);
    store_dir_open(&dir); /* And stays. */
    assert_false(store_dir_stats(&dir).index_rebuilt);
    assert_all_there();
}

/* ---- Torn tails ------------------------------------------------------------------------------ */

static void a_torn_tail_is_dropped_and_counted(void **state)
{
    (void)state;
    store_dir_open(&dir);
    store_dir_put(&dir, "kept", "acknowledged");
    store_dir_put_relaxed(&dir, "torn", "never durable");
    store_dir_kill(&dir);
    damage_text(at(FIRST_SEGMENT), "never durable");
    store_dir_open(&dir);
    assert_int_equal(store_dir_stats(&dir).recovery_row, 'C');
    assert_int_equal(store_dir_stats(&dir).recovery_dropped_bytes, PAGE);
    assert_true(store_dir_has(&dir, "kept", "acknowledged"));
    assert_true(store_dir_has(&dir, "torn", NULL));
    store_dir_put(&dir, "next", "1");
    assert_int_equal(store_dir_stats(&dir).segment_current, 2);
    store_dir_close(&dir);
    store_dir_open(&dir);
    assert_int_equal(store_dir_stats(&dir).recovery_row, 'A');
    assert_true(store_dir_has(&dir, "next", "1"));
    assert_verifies();
}

/* The recovery itself is cut short, before its first commit, again and again. */
static void a_torn_tail_stays_dropped_while_nothing_is_committed(void **state)
{
    (void)state;
    store_dir_open(&dir);
    store_dir_put(&dir, "kept", "acknowledged");
    store_dir_put_relaxed(&dir, "torn", "never durable");
    store_dir_kill(&dir);
    damage_text(at(FIRST_SEGMENT), "never durable");
    for (int tries = 0; tries < DEPTH; tries++) {
        store_dir_open(&dir);
        assert_int_equal(store_dir_stats(&dir).recovery_row, 'C');
        assert_true(store_dir_has(&dir, "kept", "acknowledged"));
        store_dir_kill(&dir);
    }
    store_dir_open(&dir);
    store_dir_close(&dir);
    store_dir_open(&dir); /* Also by a clean close. */
    assert_true(store_dir_has(&dir, "torn", NULL));
    store_dir_put(&dir, "next", "1");
    store_dir_close(&dir);
    store_dir_open(&dir);
    assert_true(store_dir_has(&dir, "next", "1"));
    assert_verifies();
}

static void unsynced_commits_survive_a_kill(void **state)
{
    (void)state;
    store_dir_open(&dir);
    for (int index = 0; index < 5; index++) {
        char key[16];

        snprintf(key, sizeof key, "k%d", index);
        store_dir_put_relaxed(&dir, key, key);
    }
    store_dir_kill(&dir);
    store_dir_open(&dir);
    for (int index = 0; index < 5; index++) {
        char key[16];

        snprintf(key, sizeof key, "k%d", index);
        assert_true(store_dir_has(&dir, key, key));
    }
    /* They were made durable before anybody saw them. */
    assert_int_equal(store_dir_stats(&dir).lsn_durable,
                     store_dir_stats(&dir).lsn_visible);
}

/* The page cache may hold what the disk does not. */
static void an_unsynced_tail_is_written_again_and_synced_before_it_is_shown(
    void **state)
{
    static const enum io_fault_call calls[] = {IO_FAULT_WRITE, IO_FAULT_SYNC};
    uint64_t syncs;

    (void)state;
    store_dir_open(&dir);
    store_dir_put_relaxed(&dir, "k", "v");
    store_dir_kill(&dir);
    for (size_t index = 0; index < 2; index++) {
        const struct io_fault fault = {.call = calls[index],
                                       .suffix = ".wal",
                                       .times = 1,
                                       .sys_errno = EIO};

        io_fault_arm(&fault);
        assert_int_equal(store_dir_try_open(&dir, STELE_OPEN_EXISTING),
                         STELE_IO);
        assert_int_equal(io_fault_count(), 1);
    }
    syncs = io_fault_syncs(".wal");
    store_dir_open(&dir);
    assert_int_equal(io_fault_syncs(".wal"), syncs + 1);
    assert_true(store_dir_has(&dir, "k", "v"));
    store_dir_kill(&dir);
    store_dir_open(&dir); /* ANCHOR names it now: nothing to be done. */
    assert_int_equal(io_fault_syncs(".wal"), syncs + 1);
}

/* ---- A damaged log ------------------------------------------------------------------------------ */

static void a_damaged_acknowledged_commit_is_refused(void **state)
{
    (void)state;
    dir.options.skip_close_checkpoint = true;
    store_dir_open(&dir);
    store_dir_put(&dir, "a", "value of a");
    store_dir_put(&dir, "b", "value of b");
    store_dir_put(&dir, "c", "value of c");
    store_dir_close(&dir);
    damage_text(at(FIRST_SEGMENT), "value of b");
    assert_refused(STELE_CORRUPT, "recover: row D: " FIRST_SEGMENT
                                  ": offset 8192: unit 2 is damaged");
}

static void a_lost_acknowledged_commit_is_refused(void **state)
{
    (void)state;
    dir.options.skip_close_checkpoint = true;
    store_dir_open(&dir);
    store_dir_put(&dir, "a", "value of a");
    store_dir_put(&dir, "b", "value of b");
    store_dir_close(&dir);
    files_fill_at(at(FIRST_SEGMENT), 2 * PAGE, 0, PAGE);
    assert_refused(STELE_CORRUPT, "recover: row B: " FIRST_SEGMENT
                                  ": offset 8192: unit 2 is lost, but ANCHOR "
                                  "names unit 2 as durable");
}

/* The index knows of it, even if ANCHOR does not. */
static void a_log_that_ends_before_the_index_is_refused(void **state)
{
    (void)state;
    store_dir_open(&dir);
    store_dir_put(&dir, "a", "value of a");
    store_dir_put(&dir, "b", "value of b");
    assert_int_equal(stele_checkpoint(dir.store, &dir.error), STELE_OK);
    store_dir_kill(&dir);
    files_fill_at(at(FIRST_SEGMENT), 2 * PAGE, 0, PAGE);
    assert_int_equal(store_dir_try_open(&dir, STELE_OPEN_EXISTING),
                     STELE_CORRUPT);
    assert_non_null(strstr(dir.error.message,
                           "recover: row B: " FIRST_SEGMENT
                           ": offset 8192: unit 2 is lost, but index applied "
                           "is unit 2"));
}

static void a_store_that_ends_before_what_its_caller_knows_is_refused(
    void **state)
{
    (void)state;
    leave_a_store();
    dir.options.min_expected_lsn = 4;
    assert_refused(STELE_CORRUPT, "the caller expects LSN 4");
    dir.options.min_expected_lsn = 3;
    store_dir_open(&dir);
    assert_all_there();
}

static void an_anchor_without_a_valid_slot_is_refused(void **state)
{
    (void)state;
    leave_a_store();
    files_flip_bit(at("ANCHOR"), 100, 0);
    store_dir_open(&dir); /* One slot is enough, and is healed. */
    store_dir_close(&dir);
    files_flip_bit(at("ANCHOR"), PAGE + 100, 0);
    store_dir_open(&dir);
    store_dir_close(&dir);
    files_flip_bit(at("ANCHOR"), 100, 0);
    files_flip_bit(at("ANCHOR"), PAGE + 100, 0);
    assert_refused(STELE_CORRUPT, "neither slot is valid");
}

static void leftovers_of_a_killed_process_are_removed(void **state)
{
    (void)state;
    leave_a_store();
    files_write(at("wal/0000000000000007.tmp"), "half", 4);
    assert_int_equal(mkdir(at("index.tmp"), 0700), 0);
    files_write(at("index.tmp/data.mdb"), "half", 4);
    files_write(at("wal/notes.txt"), "mine", 4);
    files_remove(at("index/data.mdb")); /* So that it is rebuilt. */
    store_dir_open(&dir);
    assert_all_there();
    assert_int_equal(files_count(at("wal"), ".tmp"), 0);
    assert_false(files_exists(at("index.tmp")));
    assert_true(files_exists(at("wal/notes.txt"))); /* Not ours. */
}

/* ---- An index that is gone, cut, copied, or rotten ------------------------------------------------ */

static void a_removed_index_is_rebuilt_from_the_log(void **state)
{
    (void)state;
    leave_a_store();
    files_remove(at("index/data.mdb"));
    files_remove(at("index/lock.mdb"));
    files_remove(at("index"));
    assert_rebuilt(0);
}

static void a_removed_data_file_is_rebuilt_from_the_log(void **state)
{
    (void)state;
    leave_a_store();
    files_remove(at("index/data.mdb"));
    assert_rebuilt(1);
}

static void a_cut_index_is_set_aside_and_rebuilt(void **state)
{
    static const uint64_t pages[] = {2, 1, 0};

    (void)state;
    leave_a_store();
    for (size_t index = 0; index < 3; index++) {
        files_truncate(at("index/data.mdb"), pages[index] * PAGE);
        assert_rebuilt(index + 1);
        store_dir_close(&dir);
    }
    assert_true(files_exists(at("quarantine/index.0001/data.mdb")));
    assert_true(files_exists(at("quarantine/index.0003/data.mdb")));
}

/* The same bytes in another file: a copy of a live one may be of any moment. */
static void a_copied_index_is_set_aside_and_rebuilt(void **state)
{
    char copy[FILES_PATH_BYTES];

    (void)state;
    leave_a_store();
    store_dir_path(&dir, "copy", copy);
    files_copy(at("index/data.mdb"), copy);
    files_rename(copy, at("index/data.mdb"));
    assert_rebuilt(1);
}

static void garbage_in_place_of_the_index_is_set_aside_and_rebuilt(void **state)
{
    const uint64_t two_pages = (uint64_t)2 * PAGE;

    (void)state;
    leave_a_store();
    files_fill_at(at("index/data.mdb"), 0, 0xee, (size_t)two_pages);
    assert_rebuilt(1);
}

static void a_reader_does_without_an_index(void **state)
{
    uint64_t digest;

    (void)state;
    leave_a_store();
    files_truncate(at("index/data.mdb"), PAGE);
    digest = store_dir_digest(&dir);
    assert_int_equal(store_dir_try_open(&dir, STELE_OPEN_READ_ONLY), STELE_OK);
    assert_all_there();
    assert_true(store_dir_digest(&dir) == digest);
}

static void a_rotten_value_is_refused_naming_its_table(void **state)
{
    struct stele_view *view;
    struct stele_cursor *cursor;
    struct stele_entry entry;
    uint64_t problems;

    (void)state;
    leave_a_store();
    damage_text(at("index/data.mdb"), "value of b");
    store_dir_open(&dir);
    assert_int_equal(store_dir_try_get(&dir, "b"), STELE_CORRUPT);
    store_dir_assert_error(&dir,
                           "index: table \"t\", key \"b\": check mismatch");
    assert_true(store_dir_has(&dir, "a", "value of a"));
    assert_true(store_dir_has(&dir, "c", "value of c"));

    assert_int_equal(stele_view_open(dir.store, &view, &dir.error), STELE_OK);
    assert_int_equal(stele_cursor_open(view, "t", NULL, 0, &cursor, &dir.error),
                     STELE_OK);
    assert_int_equal(stele_cursor_first(cursor, &entry, &dir.error), STELE_OK);
    assert_int_equal(stele_cursor_next(cursor, &entry, &dir.error),
                     STELE_CORRUPT);
    store_dir_assert_error(&dir,
                           "index: table \"t\", key \"b\": check mismatch");
    stele_cursor_close(cursor);
    stele_view_close(view);

    assert_int_equal(verify(&problems), STELE_CORRUPT);
    assert_true(problems > 0);
    store_dir_kill(&dir);
    files_remove(at("index/data.mdb")); /* The log has it whole. */
    store_dir_open(&dir);
    assert_all_there();
    assert_verifies();
}

/* The next open would refuse it. */
static void a_named_segment_that_was_emptied_or_has_gone_is_found(void **state)
{
    uint64_t problems;

    (void)state;
    leave_a_store();
    store_dir_open(&dir);
    assert_int_equal(store_prepare_segment(dir.store, &dir.error), STELE_OK);
    assert_verifies();
    files_truncate(at(SECOND_SEGMENT), 0);
    assert_int_equal(verify(&problems), STELE_CORRUPT);
    assert_int_equal(problems, 1);
    files_remove(at(SECOND_SEGMENT));
    assert_int_equal(verify(&problems), STELE_CORRUPT);
    assert_int_equal(problems, 1);
}

/* Log and ANCHOR of an older copy, under the index of today. */
static void a_log_that_was_rolled_back_under_its_index_is_refused(void **state)
{
    char kept[FILES_PATH_BYTES];
    char anchor[FILES_PATH_BYTES];

    (void)state;
    store_dir_open(&dir);
    store_dir_put(&dir, "a", "value of a");
    store_dir_put(&dir, "b", "value of b");
    store_dir_kill(&dir);
    store_dir_path(&dir, "kept", kept);
    files_copy(at(FIRST_SEGMENT), kept);
    store_dir_path(&dir, "anchor", anchor);
    files_copy(at("ANCHOR"), anchor);
    store_dir_open(&dir);
    store_dir_put(&dir, "newer", "history");
    store_dir_close(&dir); /* Into the index. */

    files_rename(kept, at(FIRST_SEGMENT));
    files_rename(anchor, at("ANCHOR"));
    assert_int_equal(store_dir_try_open(&dir, STELE_OPEN_EXISTING),
                     STELE_CORRUPT);
    assert_non_null(strstr(dir.error.message, "index appl"));
}

#define STORE_TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        STORE_TEST(a_torn_tail_is_dropped_and_counted),
        STORE_TEST(a_torn_tail_stays_dropped_while_nothing_is_committed),
        STORE_TEST(unsynced_commits_survive_a_kill),
        STORE_TEST(
            an_unsynced_tail_is_written_again_and_synced_before_it_is_shown),
        STORE_TEST(a_damaged_acknowledged_commit_is_refused),
        STORE_TEST(a_lost_acknowledged_commit_is_refused),
        STORE_TEST(a_log_that_ends_before_the_index_is_refused),
        STORE_TEST(a_store_that_ends_before_what_its_caller_knows_is_refused),
        STORE_TEST(an_anchor_without_a_valid_slot_is_refused),
        STORE_TEST(leftovers_of_a_killed_process_are_removed),
        STORE_TEST(a_removed_index_is_rebuilt_from_the_log),
        STORE_TEST(a_removed_data_file_is_rebuilt_from_the_log),
        STORE_TEST(a_cut_index_is_set_aside_and_rebuilt),
        STORE_TEST(a_copied_index_is_set_aside_and_rebuilt),
        STORE_TEST(garbage_in_place_of_the_index_is_set_aside_and_rebuilt),
        STORE_TEST(a_reader_does_without_an_index),
        STORE_TEST(a_rotten_value_is_refused_naming_its_table),
        STORE_TEST(a_named_segment_that_was_emptied_or_has_gone_is_found),
        STORE_TEST(a_log_that_was_rolled_back_under_its_index_is_refused),
    };

    return cmocka_run_group_tests_name("engine/store: damage", tests, NULL,
                                       NULL);
}
