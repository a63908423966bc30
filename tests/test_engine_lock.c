/*
 * tests/test_engine_lock.c -- LOCK unlinked or replaced under a live writer:
 * somebody else can lock a file of that name now, so this one must stop.
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

#include "tests/lib/files.h"
#include "tests/lib/store_dir.h"

static struct store_dir dir;
static char path[FILES_PATH_BYTES];

static int set_up(void **state)
{
    (void)state;
    store_dir_make(&dir);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    store_dir_remove(&dir);
    return 0;
}

/* ---- Vocabulary ------------------------------------------------------------- */

static uint64_t inode_of_lock(void)
{
    struct stat info;

    store_dir_path(&dir, "LOCK", path);
    assert_int_equal(stat(path, &info), 0);
    return info.st_ino;
}

/* The message of POISONED once the loss is noticed. */
static char missing[STELE_ERROR_MESSAGE_BYTES];
static char replaced[STELE_ERROR_MESSAGE_BYTES];

#define STOPPED "writing has stopped, reopen the store: "
#define EXPECTED                                                               \
    "LOCK: expected the file that this process has locked (inode %" PRIu64 ")" \
    ","                                                                        \
    " "

static void open_store(void)
{
    store_dir_open(&dir);
    store_dir_put(&dir, "a", "1");
}

static void unlink_lock(void)
{
    snprintf(missing, sizeof missing, STOPPED EXPECTED "but it is missing",
             inode_of_lock());
    store_dir_path(&dir, "LOCK", path);
    files_remove(path);
}

static void replace_lock(void)
{
    const uint64_t locked = inode_of_lock();
    char to[FILES_PATH_BYTES];

    store_dir_path(&dir, "another", path);
    files_write(path, "", 0);
    store_dir_path(&dir, "LOCK", to);
    files_rename(path, to);
    snprintf(replaced, sizeof replaced,
             STOPPED EXPECTED "found another (inode %" PRIu64 ")", locked,
             inode_of_lock());
}

static void assert_poisoned(enum stele_status status, const char *message)
{
    assert_int_equal(status, STELE_POISONED);
    assert_string_equal(dir.error.message, message);
}

static void assert_commits_are_refused_and_reads_go_on(const char *message)
{
    assert_poisoned(store_dir_try_put(&dir, "late", "x"), message);
    assert_poisoned(stele_checkpoint(dir.store, &dir.error), message);
    assert_true(store_dir_has(&dir, "a", "1"));
    assert_true(store_dir_has(&dir, "late", NULL));
    assert_true(store_dir_stats(&dir).poisoned);
}

/* The handle goes, and the next one finds what was acknowledged. */
static void assert_reopening_works(const char *message)
{
    char closing[STELE_ERROR_MESSAGE_BYTES];
    struct stele *store = dir.store;

    snprintf(closing, sizeof closing, "close: %.240s", message);
    dir.store = NULL;
    assert_poisoned(stele_close(store, &dir.error), closing);
    store_dir_open(&dir);
    assert_true(store_dir_has(&dir, "a", "1"));
    assert_true(store_dir_has(&dir, "late", NULL));
    store_dir_put(&dir, "late", "y");
    store_dir_close(&dir);
}

/* Puts until the log goes to another segment, or a put is refused. */
static enum stele_status put_past_a_rotation(void)
{
    const uint64_t segment = store_dir_stats(&dir).segment_current;
    enum stele_status status;

    do {
        status = store_dir_try_put_bytes(&dir, "filler", 100 << 10);
    } while (status == STELE_OK &&
             store_dir_stats(&dir).segment_current == segment);
    return status;
}

/* ---- The tests ----------------------------------------------------------------- */

static void a_lock_that_stays_is_never_noticed(void **state)
{
    (void)state;
    open_store();
    assert_int_equal(put_past_a_rotation(), STELE_OK);
    assert_int_equal(stele_checkpoint(dir.store, &dir.error), STELE_OK);
    store_dir_close(&dir);
}

static void a_missing_lock_is_noticed_by_a_checkpoint(void **state)
{
    (void)state;
    open_store();
    unlink_lock();
    assert_poisoned(stele_checkpoint(dir.store, &dir.error), missing);
    assert_int_equal(store_dir_stats(&dir).checkpoint_transactions, 0);
    assert_commits_are_refused_and_reads_go_on(missing);
    assert_reopening_works(missing);
}

static void a_replaced_lock_is_noticed_by_a_checkpoint(void **state)
{
    (void)state;
    open_store();
    replace_lock();
    assert_poisoned(stele_checkpoint(dir.store, &dir.error), replaced);
    assert_commits_are_refused_and_reads_go_on(replaced);
    assert_reopening_works(replaced);
}

static void a_replaced_lock_is_noticed_by_the_base_keeper(void **state)
{
    (void)state;
    dir.tuning.manual = false;
    open_store();
    replace_lock();
    assert_poisoned(stele_checkpoint(dir.store, &dir.error), replaced);
    assert_commits_are_refused_and_reads_go_on(replaced);
    assert_reopening_works(replaced);
}

static void a_missing_lock_is_noticed_by_a_rotation(void **state)
{
    uint64_t segment;

    (void)state;
    dir.options.memtable_bytes = 16 << 20; /* No checkpoint comes first. */
    open_store();
    segment = store_dir_stats(&dir).segment_current;
    unlink_lock();
    assert_poisoned(put_past_a_rotation(), missing);
    assert_int_equal(store_dir_stats(&dir).segment_current, segment);
    assert_commits_are_refused_and_reads_go_on(missing);
    assert_reopening_works(missing);
}

static void a_replaced_lock_is_noticed_by_a_rotation(void **state)
{
    (void)state;
    dir.options.memtable_bytes = 16 << 20;
    open_store();
    replace_lock();
    assert_poisoned(put_past_a_rotation(), replaced);
    assert_commits_are_refused_and_reads_go_on(replaced);
    assert_reopening_works(replaced);
}

/* A clean end tells the next open not to look behind it: not ours to say when
 * somebody else may be writing there. */
static void the_end_is_not_declared_clean_without_the_lock(void **state)
{
    struct stele *store;
    char closing[STELE_ERROR_MESSAGE_BYTES];
    uint64_t digest;

    (void)state;
    dir.options.skip_close_checkpoint = true;
    open_store();
    store_dir_put(&dir, "a", "1");
    unlink_lock();
    digest = store_dir_digest(&dir);
    snprintf(closing, sizeof closing, "close: %.240s", missing);
    store = dir.store;
    dir.store = NULL;
    assert_poisoned(stele_close(store, &dir.error), closing);
    assert_true(store_dir_digest(&dir) == digest);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
        TEST(a_lock_that_stays_is_never_noticed),
        TEST(a_missing_lock_is_noticed_by_a_checkpoint),
        TEST(a_replaced_lock_is_noticed_by_a_checkpoint),
        TEST(a_replaced_lock_is_noticed_by_the_base_keeper),
        TEST(a_missing_lock_is_noticed_by_a_rotation),
        TEST(a_replaced_lock_is_noticed_by_a_rotation),
        TEST(the_end_is_not_declared_clean_without_the_lock),
#undef TEST
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
