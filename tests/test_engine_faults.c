/*
 * tests/test_engine_faults.c -- a store whose disk is full or fails: what a
 * commit returns, what the handle does afterwards, and what is there after the
 * next open.
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

#include "tests/lib/files.h"
#include "tests/lib/io_fault.h"
#include "tests/lib/store_dir.h"

enum {
    CALLS_MAX = 200, /* More than any one open makes of a kind. */
};

/* ---- A small vocabulary ------------------------------------------------------------------ */

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

/* `times` calls on files named so fail, after so many others. */
static void break_calls(enum io_fault_call call, const char *suffix,
                        uint64_t after_calls, int times, int sys_errno)
{
    const struct io_fault fault = {.call = call,
                                   .suffix = suffix,
                                   .after_calls = after_calls,
                                   .times = times,
                                   .sys_errno = sys_errno};

    io_fault_arm(&fault);
}

static void break_once(enum io_fault_call call, const char *suffix,
                       int sys_errno)
{
    break_calls(call, suffix, 0, 1, sys_errno);
}

static size_t open_descriptors(void)
{
    return files_count("/proc/self/fd", "");
}

/* A store with "before" in it, open. */
static void begin(void)
{
    store_dir_open(&dir);
    store_dir_put(&dir, "before", "1");
}

/* The handle takes no more commits, whatever they are; reads go on. */
static void assert_poisoned(const char *reason)
{
    assert_int_equal(store_dir_try_put(&dir, "k", "v"), STELE_POISONED);
    assert_non_null(
        strstr(dir.error.message, "writing has stopped, reopen the store: "));
    assert_non_null(strstr(dir.error.message, reason));
    assert_int_equal(stele_sync(dir.store, &dir.error), STELE_POISONED);
    assert_true(store_dir_stats(&dir).poisoned);
    assert_true(store_dir_has(&dir, "before", "1"));
}

/* A close that says so and leaves every byte as it is. */
static void close_poisoned(void)
{
    const uint64_t digest = store_dir_digest(&dir);
    struct stele *store = dir.store;

    io_fault_arm(NULL);
    dir.store = NULL;
    assert_int_equal(stele_close(store, &dir.error), STELE_POISONED);
    assert_true(store_dir_digest(&dir) == digest);
}

static void assert_verifies(void)
{
    struct stele_verify_report report = {.size = sizeof report};

    if (stele_verify(dir.store, NULL, NULL, &report, &dir.error) != STELE_OK) {
        fail_msg("%s", dir.error.message);
    }
    assert_int_equal(report.problems, 0);
}

/* ---- The log is full: not applied, and it goes on -------------------------------------------- */

static void a_withdrawn_range_delete_deletes_nothing(void **state)
{
    struct stele_batch *batch;

    (void)state;
    begin();
    assert_int_equal(stele_batch_create(&batch, &dir.error), STELE_OK);
    assert_int_equal(stele_batch_clear_table(batch, "t", &dir.error), STELE_OK);
    break_once(IO_FAULT_WRITE, ".wal", ENOSPC);
    assert_int_equal(
        stele_commit(dir.store, batch, STELE_DURABLE, NULL, &dir.error),
        STELE_NO_SPACE);
    assert_true(store_dir_has(&dir, "before", "1"));
    assert_int_equal(store_dir_stats(&dir).range_fragments, 0);
    assert_int_equal(
        stele_commit(dir.store, batch, STELE_DURABLE, NULL, &dir.error),
        STELE_OK);
    assert_true(store_dir_has(&dir, "before", NULL));
    stele_batch_destroy(batch);
}

/* ---- The log fails: unknown, and no more writing ------------------------------------------------- */

static void after_a_failed_write_the_outcome_is_unknown(void **state)
{
    static const int errnos[] = {EIO, 0 /* Short. */, EROFS};

    (void)state;
    for (size_t index = 0; index < sizeof errnos / sizeof *errnos; index++) {
        store_dir_open(&dir);
        store_dir_put(&dir, "before", "1");
        break_once(IO_FAULT_WRITE, ".wal", errnos[index]);
        assert_int_equal(store_dir_try_put(&dir, "unknown", "x"),
                         STELE_UNKNOWN);
        assert_int_equal(
            strncmp(dir.error.message, "outcome unknown: append unit ", 29), 0);
        assert_true(store_dir_has(&dir, "unknown", NULL));
        assert_poisoned("append unit");
        close_poisoned();
        store_dir_open(&dir); /* Half a unit is a torn tail. */
        assert_int_equal(store_dir_stats(&dir).recovery_row,
                         errnos[index] == 0 ? 'C' : 'A');
        assert_true(store_dir_has(&dir, "before", "1"));
        assert_true(store_dir_has(&dir, "unknown", NULL));
        store_dir_put(&dir, "after", "2");
        assert_verifies();
        store_dir_close(&dir);
    }
}

/* The bytes are in the page cache: reopening accepts and writes them again. */
static void after_a_failed_sync_reopening_decides(void **state)
{
    static const uint8_t tag[STELE_TAG_BYTES] = "a tag of sixteen";
    struct stele_batch *batch;
    uint64_t lsn;

    (void)state;
    begin();
    assert_int_equal(stele_batch_create(&batch, &dir.error), STELE_OK);
    assert_int_equal(
        stele_batch_put(batch, "t", "unknown", 7, "x", 1, &dir.error),
        STELE_OK);
    stele_batch_set_tag(batch, tag);
    break_once(IO_FAULT_SYNC, ".wal", EIO);
    assert_int_equal(
        stele_commit(dir.store, batch, STELE_DURABLE, NULL, &dir.error),
        STELE_UNKNOWN);
    assert_int_equal(io_fault_count(), 1);
    assert_true(store_dir_has(&dir, "unknown", NULL)); /* Not shown here. */
    assert_poisoned("sync unit 2: ");
    assert_int_equal(stele_checkpoint(dir.store, &dir.error), STELE_POISONED);
    close_poisoned();
    store_dir_open(&dir);
    assert_int_equal(stele_find_tag(dir.store, tag, 0, &lsn, &dir.error),
                     STELE_OK);
    assert_true(store_dir_has(&dir, "unknown", "x"));
    assert_verifies();
    stele_batch_destroy(batch);
}

static void a_failed_hint_stops_writing_but_the_commit_is_durable(void **state)
{
    (void)state;
    begin();
    break_once(IO_FAULT_WRITE, "ANCHOR", EIO);
    assert_int_equal(store_dir_try_put(&dir, "durable", "x"), STELE_OK);
    assert_int_equal(io_fault_count(), 1);
    assert_poisoned("ANCHOR");
    assert_true(store_dir_has(&dir, "durable", "x"));
    close_poisoned();
    store_dir_open(&dir);
    assert_true(store_dir_has(&dir, "durable", "x"));
}

static void a_hint_without_space_is_only_late(void **state)
{
    (void)state;
    begin();
    break_once(IO_FAULT_WRITE, "ANCHOR", ENOSPC);
    store_dir_put(&dir, "durable", "x");
    assert_int_equal(io_fault_count(), 1);
    store_dir_put(&dir, "next", "y");
    assert_false(store_dir_stats(&dir).poisoned);
}

/* A name that may not be durable: no unit may stand under it. */
static void a_failed_directory_sync_stops_writing(void **state)
{
    (void)state;
    begin();
    assert_int_equal(store_dir_try_put_bytes(&dir, "fill", 900 << 10),
                     STELE_OK);
    break_once(IO_FAULT_SYNC_DIR, NULL, EIO);
    assert_int_not_equal(store_dir_try_put_bytes(&dir, "next", 200 << 10),
                         STELE_OK);
    assert_poisoned("sync directory");
    close_poisoned();
    store_dir_open(&dir);
    assert_true(store_dir_has(&dir, "next", NULL));
    assert_int_equal(store_dir_try_put_bytes(&dir, "next", 200 << 10),
                     STELE_OK);
    assert_verifies();
}

/* It is only a temporary: it goes, and a new one is made. */
static void a_failed_sync_of_a_new_segment_does_not_stop_writing(void **state)
{
    (void)state;
    begin();
    assert_int_equal(store_dir_try_put_bytes(&dir, "fill", 900 << 10),
                     STELE_OK);
    break_once(IO_FAULT_SYNC, ".tmp", EIO);
    assert_int_equal(store_dir_try_put_bytes(&dir, "next", 200 << 10),
                     STELE_IO);
    assert_false(store_dir_stats(&dir).poisoned);
    assert_int_equal(files_count(at("wal"), ".tmp"), 0);
    assert_int_equal(store_dir_try_put_bytes(&dir, "next", 200 << 10),
                     STELE_OK);
}

static void a_failed_anchor_at_rotation_stops_writing(void **state)
{
    (void)state;
    begin();
    assert_int_equal(store_dir_try_put_bytes(&dir, "fill", 900 << 10),
                     STELE_OK);
    break_once(IO_FAULT_SYNC, "ANCHOR", EIO);
    assert_int_not_equal(store_dir_try_put_bytes(&dir, "next", 200 << 10),
                         STELE_OK);
    assert_poisoned("ANCHOR");
    close_poisoned();
    store_dir_open(&dir);
    assert_true(store_dir_has(&dir, "next", NULL));
    assert_int_equal(store_dir_try_put_bytes(&dir, "next", 200 << 10),
                     STELE_OK);
}

/* ---- Closing with a failing disk -------------------------------------------------------------------- */

static void a_close_that_fails_loses_nothing(void **state)
{
    static const struct {
        enum io_fault_call call;
        const char *suffix;
    } cases[] = {{IO_FAULT_SYNC, ".wal"},
                 {IO_FAULT_WRITE, "ANCHOR"},
                 {IO_FAULT_SYNC, "ANCHOR"}};

    (void)state;
    for (size_t index = 0; index < sizeof cases / sizeof *cases; index++) {
        struct stele *store;

        begin();
        store_dir_put_relaxed(&dir, "relaxed", "x");
        break_once(cases[index].call, cases[index].suffix, EIO);
        store = dir.store;
        dir.store = NULL;
        assert_int_not_equal(stele_close(store, &dir.error), STELE_OK);
        assert_int_equal(strncmp(dir.error.message, "close: ", 7), 0);
        assert_int_equal(io_fault_count(), 1);
        store_dir_open(&dir); /* The handle was gone all the same. */
        assert_true(store_dir_has(&dir, "before", "1"));
        assert_true(store_dir_has(&dir, "relaxed", "x"));
        store_dir_close(&dir);
    }
}

/* ---- Every call fails once --------------------------------------------------------------------------------- */

static const enum io_fault_call all_calls[] = {
    IO_FAULT_OPEN,     IO_FAULT_READ,     IO_FAULT_WRITE, IO_FAULT_SYNC,
    IO_FAULT_SYNC_DIR, IO_FAULT_ALLOCATE, IO_FAULT_RENAME};

/* The n-th call of each kind fails while a store is made, over what the try
 * before has left: there is none, or there is one; never something else. */
static void a_creation_that_fails_anywhere_can_be_resumed(void **state)
{
    (void)state;
    for (size_t kind = 0; kind < sizeof all_calls / sizeof *all_calls; kind++) {
        bool failed = true;

        for (uint64_t calls = 0; failed; calls++) {
            const size_t descriptors = open_descriptors();
            enum stele_status status;

            assert_true(calls < CALLS_MAX);
            break_calls(all_calls[kind], NULL, calls, 1, EIO);
            status = store_dir_try_open(&dir, STELE_OPEN_CREATE);
            failed = io_fault_count() > 0;
            io_fault_arm(NULL);
            if (!failed) {
                assert_int_equal(status, STELE_OK);
                break;
            }
            assert_int_not_equal(status, STELE_OK);
            assert_int_equal(open_descriptors(), descriptors);
            if (files_exists(at("ANCHOR"))) {
                store_dir_open(&dir);
                store_dir_put(&dir, "k", "v");
                store_dir_remove(&dir);
                store_dir_make(&dir);
            } else {
                assert_int_equal(store_dir_try_open(&dir, STELE_OPEN_EXISTING),
                                 STELE_NOT_FOUND);
            }
        }
        store_dir_put(&dir, "k", "v");
        assert_int_equal(files_count(dir.path, ".tmp"), 0);
        assert_int_equal(files_count(at("wal"), ""), 1);
        store_dir_remove(&dir);
        store_dir_make(&dir);
    }
}

/* The same while one with a tail, unsynced, is opened: the first open that
 * works has all of it. */
static void an_open_that_fails_anywhere_loses_and_leaks_nothing(void **state)
{
    (void)state;
    store_dir_open(&dir);
    store_dir_put(&dir, "before", "1");
    assert_int_equal(stele_checkpoint(dir.store, &dir.error), STELE_OK);
    store_dir_put(&dir, "tail", "2");
    store_dir_put_relaxed(&dir, "unsynced", "3");
    store_dir_kill(&dir);
    for (size_t kind = 0; kind < sizeof all_calls / sizeof *all_calls; kind++) {
        const size_t descriptors = open_descriptors();
        bool failed = true;

        for (uint64_t calls = 0; failed; calls++) {
            enum stele_status status;

            assert_true(calls < CALLS_MAX);
            break_calls(all_calls[kind], NULL, calls, 1, EIO);
            status = store_dir_try_open(&dir, STELE_OPEN_EXISTING);
            failed = io_fault_count() > 0;
            io_fault_arm(NULL);
            assert_int_equal(status, failed ? STELE_IO : STELE_OK);
            if (failed) {
                assert_int_equal(open_descriptors(), descriptors);
            }
        }
        assert_true(store_dir_has(&dir, "before", "1"));
        assert_true(store_dir_has(&dir, "tail", "2"));
        assert_true(store_dir_has(&dir, "unsynced", "3"));
        assert_false(store_dir_stats(&dir).index_rebuilt);
        store_dir_kill(&dir);
        assert_int_equal(open_descriptors(), descriptors);
    }
}

#define STORE_TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        STORE_TEST(a_withdrawn_range_delete_deletes_nothing),
        STORE_TEST(after_a_failed_write_the_outcome_is_unknown),
        STORE_TEST(after_a_failed_sync_reopening_decides),
        STORE_TEST(a_failed_hint_stops_writing_but_the_commit_is_durable),
        STORE_TEST(a_hint_without_space_is_only_late),
        STORE_TEST(a_failed_directory_sync_stops_writing),
        STORE_TEST(a_failed_sync_of_a_new_segment_does_not_stop_writing),
        STORE_TEST(a_failed_anchor_at_rotation_stops_writing),
        STORE_TEST(a_close_that_fails_loses_nothing),
        STORE_TEST(a_creation_that_fails_anywhere_can_be_resumed),
        STORE_TEST(an_open_that_fails_anywhere_loses_and_leaks_nothing),
    };

    return cmocka_run_group_tests_name("engine/store: faults", tests, NULL,
                                       NULL);
}
