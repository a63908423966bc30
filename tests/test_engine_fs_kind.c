/*
 * tests/test_engine_fs_kind.c -- the kinds of file systems: which are refused,
 * and what is said of the others. The kind is told by the file-system door.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#include "tests/lib/files.h"
#include "tests/lib/store_dir.h"

static struct store_dir dir;
static enum io_fs_kind told_kind;

static int told_fs_kind(struct io *self, int fd, enum io_fs_kind *kind_out)
{
    (void)self;
    (void)fd;
    *kind_out = told_kind;
    return 0;
}

static struct io_calls calls;
static struct io told_io = {.calls = &calls};

static int set_up(void **state)
{
    (void)state;
    store_dir_make(&dir);
    calls = *io_posix()->calls;
    calls.fs_kind = told_fs_kind;
    dir.tuning.io = &told_io;
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    store_dir_remove(&dir);
    return 0;
}

/* Of a store that is made, used and looked at there. NULL: there is none. */
static void assert_opens_and_warns(enum io_fs_kind kind, const char *warning)
{
    told_kind = kind;
    for (int reading = 0; reading <= 1; reading++) {
        if (reading == 0) {
            store_dir_open(&dir);
            store_dir_put(&dir, "a", "1");
        } else {
            assert_int_equal(store_dir_try_open(&dir, STELE_OPEN_READ_ONLY),
                             STELE_OK);
        }
        if (warning == NULL) {
            assert_null(store_dir_stats(&dir).fs_warning);
        } else {
            assert_non_null(store_dir_stats(&dir).fs_warning);
            assert_string_equal(store_dir_stats(&dir).fs_warning, warning);
        }
        store_dir_close(&dir);
    }
}

static void a_disk_needs_no_warning(void **state)
{
    (void)state;
    assert_opens_and_warns(IO_FS_OVERWRITE, NULL);
    assert_opens_and_warns(IO_FS_COPY_ON_WRITE, NULL);
}

static void memory_and_layers_are_allowed_with_a_warning(void **state)
{
    (void)state;
    assert_opens_and_warns(IO_FS_VOLATILE,
                           "the store is on a file system in memory: nothing "
                           "of it outlives the machine");
    assert_opens_and_warns(IO_FS_LAYERED,
                           "the store is on a layered file system (overlay, "
                           "FUSE): it is only as durable as what lies below");
}

static void a_network_is_refused_unless_allowed_and_then_warned_of(void **state)
{
    static const enum stele_open_mode modes[] = {
        STELE_OPEN_EXISTING, STELE_OPEN_CREATE, STELE_OPEN_READ_ONLY};

    (void)state;
    told_kind = IO_FS_NETWORK;
    for (size_t index = 0; index < sizeof modes / sizeof modes[0]; index++) {
        assert_int_equal(store_dir_try_open(&dir, modes[index]),
                         STELE_UNSUPPORTED);
        assert_non_null(strstr(dir.error.message,
                               ": the directory is on a network file system, "
                               "where locks and syncs cannot be trusted "
                               "(allow_unsafe_fs)"));
        assert_int_equal(files_count(dir.path, ""), 0);
    }
    dir.options.allow_unsafe_fs = true;
    assert_opens_and_warns(IO_FS_NETWORK,
                           "the store is on a network file system: neither "
                           "locks nor syncs can be trusted");
}

/* Built with a header that does not know the warning yet. */
static void an_older_program_gets_no_more_bytes_than_it_knows(void **state)
{
    struct stele_stats stats;
    const char *const untouched = "untouched";

    (void)state;
    told_kind = IO_FS_VOLATILE;
    store_dir_open(&dir);
    stats =
        (struct stele_stats){.size = offsetof(struct stele_stats, fs_warning),
                             .fs_warning = untouched};
    assert_int_equal(stele_stats(dir.store, &stats, &dir.error), STELE_OK);
    assert_int_equal(stats.incarnation, 1);
    assert_ptr_equal(stats.fs_warning, untouched);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
        TEST(a_disk_needs_no_warning),
        TEST(memory_and_layers_are_allowed_with_a_warning),
        TEST(a_network_is_refused_unless_allowed_and_then_warned_of),
        TEST(an_older_program_gets_no_more_bytes_than_it_knows),
#undef TEST
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
