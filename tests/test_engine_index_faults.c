/*
 * tests/test_engine_index_faults.c -- a disk that fails around index/data.mdb.
 *
 * Only "there is no such file" is absence. Whatever else keeps the index from
 * being looked at is a failure of the open, which touches nothing: an index that
 * cannot be read today is neither set aside nor built anew.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "tests/lib/files.h"
#include "tests/lib/io_fault.h"
#include "tests/lib/store_dir.h"

enum { CALLS_MAX = 20 /* More than one open makes on data.mdb, of a kind. */ };

static struct store_dir dir;

/* ---- Vocabulary ------------------------------------------------------------- */

static const char *at(const char *name)
{
    return store_dir_at(&dir, name);
}

/* A store with an index, and with a tail that is not in it; closed. */
static int set_up(void **state)
{
    (void)state;
    store_dir_make(&dir);
    dir.options.skip_close_checkpoint = true;
    store_dir_open(&dir);
    store_dir_put(&dir, "a", "1");
    assert_int_equal(stele_checkpoint(dir.store, &dir.error), STELE_OK);
    store_dir_put(&dir, "b", "2");
    store_dir_close(&dir);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    store_dir_remove(&dir);
    return 0;
}

static void break_calls(enum io_fault_call call, uint64_t after_calls,
                        int times, int sys_errno)
{
    const struct io_fault fault = {.call = call,
                                   .suffix = "data.mdb",
                                   .after_calls = after_calls,
                                   .times = times,
                                   .sys_errno = sys_errno};

    io_fault_arm(&fault);
}

static void assert_whole(void)
{
    assert_true(store_dir_has(&dir, "a", "1"));
    assert_true(store_dir_has(&dir, "b", "2"));
}

/* Every call of this kind on data.mdb in turn, until an open makes none more:
 * refused with this errno; the index stays, and the next open uses it. Before
 * the verdict not a byte is changed. */
static void assert_every_failure_refuses(enum stele_open_mode mode,
                                         enum io_fault_call call, int times,
                                         int sys_errno)
{
    uint64_t after_calls = 0;

    for (; after_calls < CALLS_MAX; after_calls++) {
        const uint64_t digest = store_dir_digest(&dir);
        enum stele_status status;

        break_calls(call, after_calls, times, sys_errno);
        status = store_dir_try_open(&dir, mode);
        if (io_fault_count() == 0) {
            assert_int_equal(status, STELE_OK);
            break;
        }
        io_fault_arm(NULL);
        assert_int_equal(status, STELE_IO);
        assert_int_equal(dir.error.sys_errno, sys_errno);
        assert_non_null(strstr(dir.error.message, "data.mdb"));
        assert_true(store_dir_digest(&dir) == digest);
    }
    assert_in_range(after_calls, 1, CALLS_MAX - 1);
    io_fault_arm(NULL);
    assert_whole();
    assert_false(store_dir_stats(&dir).index_rebuilt);
    assert_false(files_exists(at("quarantine")));
    store_dir_close(&dir);
}

/* ---- Opening ------------------------------------------------------------------- */

static const int errnos[] = {EIO, EACCES, EMFILE};
enum { ERRNOS = sizeof errnos / sizeof errnos[0] };

static void an_index_that_cannot_be_opened_refuses_the_writer(void **state)
{
    (void)state;
    for (size_t index = 0; index < ERRNOS; index++) {
        assert_every_failure_refuses(STELE_OPEN_EXISTING, IO_FAULT_OPEN, 1,
                                     errnos[index]);
    }
}

static void an_index_that_cannot_be_looked_at_refuses_the_writer(void **state)
{
    (void)state;
    for (size_t index = 0; index < ERRNOS; index++) {
        assert_every_failure_refuses(STELE_OPEN_EXISTING, IO_FAULT_INFO, 1,
                                     errnos[index]);
    }
}

static void an_index_that_cannot_be_read_refuses_the_writer(void **state)
{
    (void)state;
    assert_every_failure_refuses(STELE_OPEN_EXISTING, IO_FAULT_READ, 1, EIO);
}

/* A reader that may not write lock.mdb tries once more without: for ever. */
static void an_index_that_cannot_be_opened_or_read_refuses_the_reader(
    void **state)
{
    (void)state;
    for (size_t index = 0; index < ERRNOS; index++) {
        assert_every_failure_refuses(STELE_OPEN_READ_ONLY, IO_FAULT_OPEN,
                                     IO_FAULT_FOREVER, errnos[index]);
        assert_every_failure_refuses(STELE_OPEN_READ_ONLY, IO_FAULT_INFO,
                                     IO_FAULT_FOREVER, errnos[index]);
    }
    assert_every_failure_refuses(STELE_OPEN_READ_ONLY, IO_FAULT_READ,
                                 IO_FAULT_FOREVER, EIO);
}

static void an_index_that_is_missing_is_built_anew(void **state)
{
    (void)state;
    files_remove(at("index/data.mdb"));
    store_dir_open(&dir);
    assert_true(store_dir_stats(&dir).index_rebuilt);
    assert_whole();
}

/* ---- Growing --------------------------------------------------------------------- */

/* The file is as long as its meta page claims, so that the next checkpoint must
 * grow it. */
static void open_without_slack(void)
{
    store_dir_open(&dir);
    store_dir_close(&dir);
    files_truncate(at("index/data.mdb"), 64 << 10);
    store_dir_open(&dir);
    assert_false(store_dir_stats(&dir).index_rebuilt);
}

static void a_full_disk_only_delays_the_checkpoint(void **state)
{
    (void)state;
    open_without_slack();
    break_calls(IO_FAULT_GROW, 0, 1, ENOSPC);
    assert_int_equal(stele_checkpoint(dir.store, &dir.error), STELE_NO_SPACE);
    assert_int_equal(dir.error.sys_errno, ENOSPC);
    assert_int_equal(io_fault_count(), 1);
    assert_int_equal(store_dir_stats(&dir).checkpoint_transactions, 0);
    assert_int_equal(store_dir_stats(&dir).checkpoint_failures, 1);
    store_dir_put(&dir, "c", "3");
    assert_int_equal(stele_checkpoint(dir.store, &dir.error), STELE_OK);
    assert_whole();
    store_dir_close(&dir);
    store_dir_open(&dir);
    assert_false(store_dir_stats(&dir).index_rebuilt);
    assert_whole();
    assert_true(store_dir_has(&dir, "c", "3"));
}

/* What the disk made of it is unknown: the index is not written again, and built
 * anew by the next open. The log is not concerned. */
static void a_failure_to_grow_ends_checkpoints_and_nothing_else(void **state)
{
    (void)state;
    open_without_slack();
    break_calls(IO_FAULT_GROW, 0, 1, EIO);
    assert_int_equal(stele_checkpoint(dir.store, &dir.error), STELE_IO);
    assert_int_equal(dir.error.sys_errno, EIO);
    assert_int_equal(io_fault_count(), 1);
    assert_int_equal(store_dir_stats(&dir).checkpoint_transactions, 0);
    assert_int_equal(store_dir_stats(&dir).last_checkpoint_error.status,
                     STELE_IO);
    assert_false(store_dir_stats(&dir).poisoned);
    store_dir_put(&dir, "c", "3");
    assert_whole();
    assert_int_equal(stele_checkpoint(dir.store, &dir.error), STELE_IO);
    store_dir_close(&dir);
    store_dir_open(&dir);
    assert_true(store_dir_stats(&dir).index_rebuilt);
    assert_whole();
    assert_true(store_dir_has(&dir, "c", "3"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
        TEST(an_index_that_cannot_be_opened_refuses_the_writer),
        TEST(an_index_that_cannot_be_looked_at_refuses_the_writer),
        TEST(an_index_that_cannot_be_read_refuses_the_writer),
        TEST(an_index_that_cannot_be_opened_or_read_refuses_the_reader),
        TEST(an_index_that_is_missing_is_built_anew),
        TEST(a_full_disk_only_delays_the_checkpoint),
        TEST(a_failure_to_grow_ends_checkpoints_and_nothing_else),
#undef TEST
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
