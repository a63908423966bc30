/*
 * tests/test_engine_base_open.c -- whose index is believed: only a file that
 * nobody but the store's owner can have a hand in.
 *
 * Other users' files are told by the file-system door: no test runs as root for
 * certain.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "engine/base_open.h"
#include "tests/lib/files.h"
#include "tests/lib/store_dir.h"

enum { OTHER_UID = 54321, THIRD_UID = 54322 };

static struct store_dir dir;

/* ---- Vocabulary ------------------------------------------------------------- */

/* These files, until they are replaced by others, belong to these users. */
static struct claim {
    uint64_t inode;
    uint32_t uid;
} claims[2];

/* Where the store goes, once, as soon as its index has been looked at. */
static const char *moves_to;

static int told_info(struct io *self, int fd, const char *name,
                     struct io_file_info *info_out)
{
    const int result = io_posix()->calls->info(io_posix(), fd, name, info_out);

    (void)self;
    if (moves_to != NULL && name != NULL && strcmp(name, "data.mdb") == 0) {
        files_rename(dir.path, moves_to);
        moves_to = NULL;
        assert_int_equal(mkdir(dir.path, 0700),
                         0); /* Another takes its name. */
    }
    for (size_t index = 0; result == 0 && index < 2; index++) {
        if (claims[index].inode == info_out->inode) {
            info_out->owner_uid = claims[index].uid;
        }
    }
    return result;
}

static struct io_calls calls;
static struct io told_io = {.calls = &calls};

static const char *at(const char *name)
{
    return store_dir_at(&dir, name);
}

static struct claim belongs_to(const char *name, uint32_t uid)
{
    struct stat info;

    assert_int_equal(stat(at(name), &info), 0);
    return (struct claim){.inode = info.st_ino, .uid = uid};
}

/* A store with an index, closed. */
static int set_up(void **state)
{
    (void)state;
    memset(claims, 0, sizeof claims);
    calls = *io_posix()->calls;
    calls.info = told_info;
    store_dir_make(&dir);
    dir.tuning.io = &told_io;
    store_dir_open(&dir);
    store_dir_put(&dir, "a", "1");
    store_dir_close(&dir);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    store_dir_remove(&dir);
    return 0;
}

/* A reader goes without it and says why; a writer builds another. */
static void assert_set_aside(const char *reason)
{
    struct stele_error why = {0};
    bool usable = true;
    struct stat before;

    assert_int_equal(stat(at("index/data.mdb"), &before), 0);
    assert_int_equal(store_dir_try_open(&dir, STELE_OPEN_READ_ONLY), STELE_OK);
    assert_true(store_dir_has(&dir, "a", "1"));
    assert_int_equal(base_open(dir.store, &usable, &why, &dir.error), STELE_OK);
    assert_false(usable);
    assert_int_equal(why.status, STELE_FOREIGN);
    assert_string_equal(why.message, reason);
    store_dir_close(&dir);

    store_dir_open(&dir);
    assert_true(store_dir_stats(&dir).index_rebuilt);
    assert_true(store_dir_has(&dir, "a", "1"));
    store_dir_close(&dir);
    assert_int_equal(files_count(at("quarantine"), ""), 1);
    assert_true(belongs_to("quarantine/index.0001/data.mdb", 0).inode ==
                before.st_ino);
}

static void assert_kept(void)
{
    store_dir_open(&dir);
    assert_false(store_dir_stats(&dir).index_rebuilt);
    assert_true(store_dir_has(&dir, "a", "1"));
    store_dir_close(&dir);
    assert_false(files_exists(at("quarantine")));
}

/* ---- The tests ----------------------------------------------------------------- */

static void an_index_of_another_user_is_set_aside(void **state)
{
    char reason[STELE_ERROR_MESSAGE_BYTES];

    (void)state;
    claims[0] = belongs_to("index/data.mdb", OTHER_UID);
    snprintf(reason, sizeof reason,
             "index/data.mdb belongs to user %d, not to %u like ANCHOR, nor to "
             "%u like this process",
             OTHER_UID, (unsigned)geteuid(), (unsigned)geteuid());
    assert_set_aside(reason);
}

static void an_index_of_a_third_user_is_set_aside_in_another_users_store(
    void **state)
{
    char reason[STELE_ERROR_MESSAGE_BYTES];

    (void)state;
    claims[0] = belongs_to("index/data.mdb", THIRD_UID);
    claims[1] = belongs_to("ANCHOR", OTHER_UID);
    snprintf(reason, sizeof reason,
             "index/data.mdb belongs to user %d, not to %d like ANCHOR, nor to "
             "%u like this process",
             THIRD_UID, OTHER_UID, (unsigned)geteuid());
    assert_set_aside(reason);
}

/* As when root looks at a service's store. */
static void the_index_of_another_users_store_is_kept(void **state)
{
    (void)state;
    claims[0] = belongs_to("index/data.mdb", OTHER_UID);
    claims[1] = belongs_to("ANCHOR", OTHER_UID);
    assert_kept();
}

/* As when root had to rebuild it there. */
static void an_index_of_our_own_in_another_users_store_is_kept(void **state)
{
    (void)state;
    claims[1] = belongs_to("ANCHOR", OTHER_UID);
    assert_kept();
}

static void an_index_with_a_second_name_is_set_aside(void **state)
{
    char other_name[FILES_PATH_BYTES];

    (void)state;
    store_dir_path(&dir, "elsewhere", other_name);
    assert_int_equal(link(at("index/data.mdb"), other_name), 0);
    assert_set_aside("index/data.mdb has 2 names, expected one");
}

static void an_index_behind_a_symbolic_link_is_set_aside(void **state)
{
    char target[FILES_PATH_BYTES];

    (void)state;
    store_dir_path(&dir, "elsewhere", target);
    files_rename(at("index/data.mdb"), target);
    assert_int_equal(symlink("../elsewhere", at("index/data.mdb")), 0);
    store_dir_open(&dir);
    assert_true(store_dir_stats(&dir).index_rebuilt);
    assert_true(store_dir_has(&dir, "a", "1"));
    assert_true(files_exists(target));
}

static void the_index_that_was_looked_at_is_opened_wherever_its_name_leads(
    void **state)
{
    char elsewhere[FILES_PATH_BYTES];

    (void)state;
    snprintf(elsewhere, sizeof elsewhere, "%s.moved", dir.path);
    moves_to = elsewhere;
    store_dir_open(&dir);
    assert_null(moves_to);
    assert_false(store_dir_stats(&dir).index_rebuilt);
    assert_true(store_dir_has(&dir, "a", "1"));
    store_dir_close(&dir);
    assert_int_equal(rmdir(dir.path), 0); /* Nothing was made there. */
    files_rename(elsewhere, dir.path);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
        TEST(an_index_of_another_user_is_set_aside),
        TEST(an_index_of_a_third_user_is_set_aside_in_another_users_store),
        TEST(the_index_of_another_users_store_is_kept),
        TEST(an_index_of_our_own_in_another_users_store_is_kept),
        TEST(an_index_with_a_second_name_is_set_aside),
        TEST(an_index_behind_a_symbolic_link_is_set_aside),
        TEST(the_index_that_was_looked_at_is_opened_wherever_its_name_leads),
#undef TEST
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
