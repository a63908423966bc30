/*
 * tests/test_cli_trimmed.c -- the program `stele` on a store whose log no longer
 * has its beginning.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/lib/files.h"
#include "tests/lib/store_dir.h"
#include "tests/lib/store_snapshot.h"

enum { OUTPUT_BYTES = 8192, PUTS = 40 };

static struct store_dir dir;
static char output[OUTPUT_BYTES]; /* Of the last call, stderr too. */

/* Run the program beside this one; its exit code. */
__attribute__((format(printf, 1, 2))) static int stele(const char *format, ...)
{
    char program[4096] = "";
    char arguments[1024];
    char command[8192];
    va_list args;
    FILE *pipe;
    int status;

    assert_true(readlink("/proc/self/exe", program, sizeof program - 1) > 0);
    *strrchr(program, '/') = '\0';
    va_start(args, format);
    vsnprintf(arguments, sizeof arguments, format, args);
    va_end(args);
    snprintf(command, sizeof command, "'%s/stele' %s 2>&1", program, arguments);
    pipe = popen(command, "r");
    assert_non_null(pipe);
    output[fread(output, 1, sizeof output - 1, pipe)] = '\0';
    status = pclose(pipe);
    assert_true(WIFEXITED(status));
    return WEXITSTATUS(status);
}

/* LSNs 1 to PUTS put k = "1", "2", ...; the snapshot is at PUTS - 2. */
static int setup(void **state)
{
    (void)state;
    store_dir_make(&dir);
    dir.tuning.segment_bytes = 64 << 10;
    store_dir_open(&dir);
    for (unsigned lsn = 1; lsn <= PUTS; lsn++) {
        char value[16];

        snprintf(value, sizeof value, "%u", lsn);
        assert_true(store_dir_put(&dir, "k", value) == lsn);
        if (lsn == PUTS - 2) {
            assert_true(store_snapshot_take(dir.store) == lsn);
        }
    }
    assert_true(store_snapshot_trim(dir.store, PUTS - 2) > 0);
    store_dir_close(&dir);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    store_dir_remove(&dir);
    return 0;
}

static void the_log_is_shown_from_the_oldest_snapshot_on(void **state)
{
    (void)state;
    assert_int_equal(stele("log '%s'", dir.path), 0);
    assert_memory_equal(output, "lsn 39 ", 7);
    assert_non_null(strstr(output, "\nlsn 40 "));
}

static void without_a_snapshot_nobody_knows_where_it_goes_on(void **state)
{
    char path[FILES_PATH_BYTES];

    (void)state;
    store_snapshot_path(dir.path, PUTS - 2, path);
    files_remove(path);
    assert_int_equal(stele("log '%s'", dir.path), 3);
    assert_memory_equal(output, "stele: log: the log begins with wal/", 36);
    assert_non_null(strstr(output, ".wal, and there is no snapshot to go on "
                                   "from\n"));
}

static void the_past_reaches_back_to_it(void **state)
{
    (void)state;
    assert_int_equal(stele("get '%s' t k --at 38", dir.path), 0);
    assert_string_equal(output, "38\n");
    assert_int_equal(stele("get '%s' t k --at 39", dir.path), 0);
    assert_string_equal(output, "39\n");
    assert_int_equal(stele("diff '%s' 40 38 --values", dir.path), 1);
    assert_string_equal(output, "~ t\tk\t40\t38\n");
    assert_int_equal(stele("get '%s' t k --at 37", dir.path), 1);
    assert_string_equal(output,
                        "stele: get: LSN 37 is older than what is retained: "
                        "the oldest base is at LSN 38\n");
    assert_int_equal(stele("diff '%s' 37 38", dir.path), 2);
    assert_int_equal(stele("get '%s' t k", dir.path), 0);
    assert_string_equal(output, "40\n");
}

#define TRIMMED_TEST(name)                                                     \
    cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TRIMMED_TEST(the_log_is_shown_from_the_oldest_snapshot_on),
        TRIMMED_TEST(without_a_snapshot_nobody_knows_where_it_goes_on),
        TRIMMED_TEST(the_past_reaches_back_to_it),
    };

    return cmocka_run_group_tests_name("cli/trimmed", tests, NULL, NULL);
}
