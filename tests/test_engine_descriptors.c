/*
 * tests/test_engine_descriptors.c -- the descriptors of an open store: none
 * outlives an exec, and there are few, however long the log is.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <dirent.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/lib/files.h"
#include "tests/lib/store_dir.h"

enum {
    TINY_SEGMENT_BYTES = 16 << 10,
    SEGMENTS = 300,
    VALUE_BYTES = 6000,
    OPEN_MAX = 12, /* Of the door's; LMDB has three more an environment. */
};

static struct store_dir dir;

/* ---- Vocabulary ------------------------------------------------------------- */

/* What goes through the door, counted. */
static _Atomic int open_now;
static _Atomic int open_most;

static int count_open(int fd)
{
    if (fd >= 0) {
        const int now = atomic_fetch_add(&open_now, 1) + 1;

        if (now > atomic_load(&open_most)) {
            atomic_store(&open_most, now);
        }
    }
    return fd;
}

static int counted_open_dir(struct io *self, int parent, const char *path)
{
    (void)self;
    return count_open(io_posix()->calls->open_dir(io_posix(), parent, path));
}

static int counted_open_file(struct io *self, int parent, const char *name,
                             enum io_open_mode mode)
{
    (void)self;
    return count_open(
        io_posix()->calls->open_file(io_posix(), parent, name, mode));
}

static int counted_close(struct io *self, int fd)
{
    (void)self;
    atomic_fetch_sub(&open_now, 1);
    return io_posix()->calls->close(io_posix(), fd);
}

static struct io_calls calls;
static struct io counting_io = {.calls = &calls};

static int set_up(void **state)
{
    (void)state;
    store_dir_make(&dir);
    calls = *io_posix()->calls;
    calls.open_dir = counted_open_dir;
    calls.open_file = counted_open_file;
    calls.close = counted_close;
    atomic_store(&open_now, 0);
    atomic_store(&open_most, 0);
    dir.tuning.io = &counting_io;
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    store_dir_remove(&dir);
    return 0;
}

static void assert_few(void)
{
    if (atomic_load(&open_most) > OPEN_MAX) {
        fail_msg("%d descriptors at once, at most %d expected",
                 atomic_load(&open_most), OPEN_MAX);
    }
}

/* Every descriptor on something in the store's directory; returns how many. */
static int assert_close_on_exec(void)
{
    DIR *list = opendir("/proc/self/fd");
    int count = 0;

    assert_non_null(list);
    for (struct dirent *entry; (entry = readdir(list)) != NULL;) {
        char link[300];
        char target[512];
        ssize_t bytes;

        snprintf(link, sizeof link, "/proc/self/fd/%s", entry->d_name);
        bytes = readlink(link, target, sizeof target - 1);
        if (bytes <= 0) {
            continue;
        }
        target[bytes] = '\0';
        if (strncmp(target, dir.path, strlen(dir.path)) != 0) {
            continue;
        }
        count++;
        if ((fcntl((int)strtol(entry->d_name, NULL, 10), F_GETFD) &
             FD_CLOEXEC) == 0) {
            fail_msg("%s would outlive an exec", target);
        }
    }
    closedir(list);
    return count;
}

static void assert_verifies(void)
{
    struct stele_verify_report report = {.size = sizeof report};

    if (stele_verify(dir.store, NULL, NULL, &report, &dir.error) != STELE_OK) {
        fail_msg("%s", dir.error.message);
    }
    assert_true(report.segments >= SEGMENTS);
}

/* ---- The tests ----------------------------------------------------------------- */

static void no_descriptor_of_a_writer_outlives_an_exec(void **state)
{
    struct stele_view *view;

    (void)state;
    dir.tuning.manual = false;
    store_dir_open(&dir);
    store_dir_put(&dir, "a", "1");
    assert_int_equal(stele_view_open(dir.store, &view, &dir.error), STELE_OK);
    assert_int_equal(stele_checkpoint(dir.store, &dir.error), STELE_OK);
    /* LOCK, ANCHOR, a segment, two directories, data.mdb thrice, lock.mdb. */
    assert_true(assert_close_on_exec() >= 9);
    stele_view_close(view);
}

static void no_descriptor_of_a_reader_outlives_an_exec(void **state)
{
    struct stele_view *view;

    (void)state;
    store_dir_open(&dir);
    store_dir_put(&dir, "a", "1");
    store_dir_close(&dir);
    assert_int_equal(store_dir_try_open(&dir, STELE_OPEN_READ_ONLY), STELE_OK);
    assert_int_equal(stele_view_open(dir.store, &view, &dir.error), STELE_OK);
    assert_true(assert_close_on_exec() >= 6);
    stele_view_close(view);
}

/* A log of several hundred segments, none of them in the index if so asked. */
static void leave_many_segments(void)
{
    char name[32];

    dir.tuning.segment_bytes = TINY_SEGMENT_BYTES;
    store_dir_open(&dir);
    for (int number = 0; store_dir_stats(&dir).segment_current < SEGMENTS;
         number++) {
        snprintf(name, sizeof name, "key%d", number % 100);
        assert_int_equal(store_dir_try_put_bytes(&dir, name, VALUE_BYTES),
                         STELE_OK);
    }
    assert_few();
}

static void a_long_log_is_written_and_verified_with_few_descriptors(
    void **state)
{
    (void)state;
    leave_many_segments();
    assert_verifies();
    assert_int_equal(stele_checkpoint(dir.store, &dir.error), STELE_OK);
    assert_verifies();
    assert_few();
    store_dir_close(&dir);
    assert_int_equal(atomic_load(&open_now), 0);
}

static void a_long_log_is_recovered_with_few_descriptors(void **state)
{
    (void)state;
    dir.options.memtable_bytes = 64 << 20; /* Nothing goes to the index. */
    leave_many_segments();
    store_dir_kill(&dir);
    store_dir_open(&dir);
    assert_true(store_dir_stats(&dir).recovery_replayed_records >= SEGMENTS);
    assert_few();
    store_dir_close(&dir);
    assert_int_equal(atomic_load(&open_now), 0);
}

static void an_index_is_rebuilt_from_a_long_log_with_few_descriptors(
    void **state)
{
    char path[FILES_PATH_BYTES];

    (void)state;
    leave_many_segments();
    store_dir_close(&dir);
    store_dir_path(&dir, "index/data.mdb", path);
    files_remove(path);
    store_dir_open(&dir);
    assert_true(store_dir_stats(&dir).index_rebuilt);
    assert_verifies();
    assert_few();
    store_dir_close(&dir);
    assert_int_equal(atomic_load(&open_now), 0);
}

static void a_long_log_is_read_with_few_descriptors(void **state)
{
    struct stele_view *view;

    (void)state;
    dir.options.memtable_bytes = 64 << 20;
    leave_many_segments();
    store_dir_kill(&dir);
    assert_int_equal(store_dir_try_open(&dir, STELE_OPEN_READ_ONLY), STELE_OK);
    assert_int_equal(stele_view_open(dir.store, &view, &dir.error), STELE_OK);
    assert_verifies();
    stele_view_close(view);
    assert_few();
    store_dir_close(&dir);
    assert_int_equal(atomic_load(&open_now), 0);
}

/* An open that is refused gives back what it had opened. */
static void a_refused_open_keeps_no_descriptor(void **state)
{
    char path[FILES_PATH_BYTES];

    (void)state;
    store_dir_open(&dir);
    store_dir_put(&dir, "a", "1");
    store_dir_close(&dir);
    store_dir_path(&dir, "wal/0000000000000001.wal", path);
    files_fill_at(path, 0, 0, 4096);
    assert_int_equal(store_dir_try_open(&dir, STELE_OPEN_EXISTING),
                     STELE_CORRUPT);
    assert_int_equal(assert_close_on_exec(), 0);
    assert_int_equal(atomic_load(&open_now), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
        TEST(no_descriptor_of_a_writer_outlives_an_exec),
        TEST(no_descriptor_of_a_reader_outlives_an_exec),
        TEST(a_long_log_is_written_and_verified_with_few_descriptors),
        TEST(a_long_log_is_recovered_with_few_descriptors),
        TEST(an_index_is_rebuilt_from_a_long_log_with_few_descriptors),
        TEST(a_long_log_is_read_with_few_descriptors),
        TEST(a_refused_open_keeps_no_descriptor),
#undef TEST
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
