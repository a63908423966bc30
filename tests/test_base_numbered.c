/*
 * tests/test_base_numbered.c -- base/numbered.h: which names are numbers', and
 * what is found in a directory that has others too.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>

#include "base/numbered.h"
#include "tests/lib/files.h"
#include "tests/lib/io_fault.h"
#include "tests/lib/temp_dir.h"

/* ---- A small vocabulary -------------------------------------------------------- */

static char *path;
static struct io_dir *dir;
static struct stele_error error;

static int make_directory(void **state)
{
    (void)state;
    path = temp_dir_make();
    error = (struct stele_error){0};
    assert_int_equal(io_dir_open(io_fault_io(), path, &dir, &error), STELE_OK);
    return 0;
}

static int remove_directory(void **state)
{
    (void)state;
    io_fault_arm(NULL);
    io_dir_close(dir);
    temp_dir_remove(path);
    return 0;
}

static void put_file(const char *name)
{
    char file[FILES_PATH_BYTES];

    files_path(file, path, name);
    files_write(file, "", 0);
}

static void break_call(enum io_fault_call call, int sys_errno)
{
    const struct io_fault fault = {
        .call = call, .times = 1, .sys_errno = sys_errno};

    io_fault_arm(&fault);
}

/* ---- Names ------------------------------------------------------------------------ */

static void a_name_is_sixteen_lower_case_digits_and_a_suffix(void **state)
{
    static const struct {
        uint64_t number;
        const char *suffix;
        const char *name;
    } cases[] = {
        {0, ".wal", "0000000000000000.wal"},
        {1, ".snap", "0000000000000001.snap"},
        {0xabcdef, ".tmp", "0000000000abcdef.tmp"},
        {UINT64_MAX, ".snap", "ffffffffffffffff.snap"},
    };

    (void)state;
    for (size_t index = 0; index < sizeof cases / sizeof *cases; index++) {
        char name[NUMBERED_NAME_BYTES];
        uint64_t number = 42;

        numbered_name(cases[index].number, cases[index].suffix, name);
        assert_string_equal(name, cases[index].name);
        assert_true(numbered_parse(name, cases[index].suffix, &number));
        assert_true(number == cases[index].number);
    }
}

static void no_other_name_is_a_number(void **state)
{
    static const char *const names[] = {
        "",
        ".wal",
        "1.wal",
        "000000000000001.wal",
        "00000000000000001.wal",
        "0000000000000001",
        "0000000000000001.WAL",
        "0000000000000001.wal~",
        "0000000000000001.wal.bak",
        "x0000000000000001.wal",
        " 000000000000001.wal",
        "+000000000000001.wal",
        "-000000000000001.wal",
        "0x00000000000001.wal",
        "000000000000000g.wal",
        "000000000000000A.wal",
        "000000000000000\n.wal",
        "0000000000000001.tmp",
        "0000000000000001.snap",
        "0000000000000001.wa\0l",
    };

    (void)state;
    for (size_t index = 0; index < sizeof names / sizeof *names; index++) {
        uint64_t number = 42;

        assert_false(numbered_parse(names[index], ".wal", &number));
        assert_int_equal(number, 42);
    }
}

/* ---- Directories -------------------------------------------------------------------- */

static void a_list_is_ascending_and_knows_only_its_suffix(void **state)
{
    static const char *const names[] = {
        "000000000000000b.wal",     "0000000000000002.wal",
        "000000000000000a.wal",     "0000000000000001.wal",
        "0000000000000005.wal.bak", "notes.txt",
        "000000000000000A.wal",     "0000000000000003.wal",
        "0000000000000004.snap",
    };
    static const uint64_t numbers[] = {1, 2, 3, 10, 11};
    struct numbered_list list;

    (void)state;
    for (size_t index = 0; index < sizeof names / sizeof *names; index++) {
        put_file(names[index]);
    }
    assert_int_equal(numbered_list_read(dir, ".wal", &list, &error), STELE_OK);
    assert_int_equal(list.count, 5);
    assert_memory_equal(list.numbers, numbers, sizeof numbers);
    assert_false(list.temporaries);
    assert_int_equal(numbered_list_lower(&list, 0), 0);
    assert_int_equal(numbered_list_lower(&list, 3), 2);
    assert_int_equal(numbered_list_lower(&list, 4), 3);
    assert_int_equal(numbered_list_lower(&list, 12), 5);
    numbered_list_free(&list);
    assert_int_equal(numbered_list_read(dir, ".snap", &list, &error), STELE_OK);
    assert_int_equal(list.count, 1);
    assert_int_equal(list.numbers[0], 4);
    numbered_list_free(&list);
}

static void an_empty_directory_has_an_empty_list(void **state)
{
    struct numbered_list list;

    (void)state;
    assert_int_equal(numbered_list_read(dir, ".wal", &list, &error), STELE_OK);
    assert_int_equal(list.count, 0);
    assert_int_equal(numbered_list_lower(&list, 1), 0);
    numbered_list_free(&list);
}

static void temporaries_are_removed_and_nothing_else(void **state)
{
    static const char *const names[] = {
        "0000000000000003.tmp", "0000000000000009.tmp", "0000000000000003.wal",
        "000000000000009.tmp",  "ANCHOR.tmp",           "x.tmp"};
    struct numbered_list list;

    (void)state;
    for (size_t index = 0; index < sizeof names / sizeof *names; index++) {
        put_file(names[index]);
    }
    assert_int_equal(numbered_list_read(dir, ".wal", &list, &error), STELE_OK);
    assert_true(list.temporaries);
    numbered_list_free(&list);
    assert_int_equal(numbered_remove_temporaries(dir, &error), STELE_OK);
    assert_int_equal(files_count(path, ""), 4);
    assert_int_equal(files_count(path, ".tmp"), 3);
    assert_int_equal(files_count(path, ".wal"), 1);
}

static void a_directory_that_cannot_be_listed_is_no_empty_one(void **state)
{
    struct numbered_list list = {.count = 42};

    (void)state;
    break_call(IO_FAULT_LIST, EIO);
    assert_int_equal(numbered_list_read(dir, ".wal", &list, &error), STELE_IO);
    assert_int_equal(list.count, 42);
    break_call(IO_FAULT_LIST, EIO);
    assert_int_equal(numbered_remove_temporaries(dir, &error), STELE_IO);
}

static void a_temporary_that_cannot_be_removed_is_told(void **state)
{
    (void)state;
    put_file("0000000000000001.tmp");
    break_call(IO_FAULT_UNLINK, EACCES);
    assert_int_equal(numbered_remove_temporaries(dir, &error), STELE_IO);
    assert_int_equal(files_count(path, ".tmp"), 1);
}

#define DISK_TEST(name)                                                        \
    cmocka_unit_test_setup_teardown(name, make_directory, remove_directory)

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_name_is_sixteen_lower_case_digits_and_a_suffix),
        cmocka_unit_test(no_other_name_is_a_number),
        DISK_TEST(a_list_is_ascending_and_knows_only_its_suffix),
        DISK_TEST(an_empty_directory_has_an_empty_list),
        DISK_TEST(temporaries_are_removed_and_nothing_else),
        DISK_TEST(a_directory_that_cannot_be_listed_is_no_empty_one),
        DISK_TEST(a_temporary_that_cannot_be_removed_is_told),
    };

    return cmocka_run_group_tests_name("base/numbered", tests, NULL, NULL);
}
