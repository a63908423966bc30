/*
 * tests/test_engine_store.c -- opening, using and closing a store, through the
 * public API. Faults are in test_engine_faults.c, damage in
 * test_engine_damage.c.
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

#include "engine/view.h"
#include "tests/lib/files.h"
#include "tests/lib/io_fault.h"
#include "tests/lib/store_dir.h"

enum {
    LSN_SKIP = 1 << 20, /* After an end that was not clean. */
    RECORD_RESERVED_BYTES = 8 << 10,
};

/* ---- A small vocabulary ---------------------------------------------------------------- */

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

/* The path of `name` in the store's directory; valid until the next call. */
static const char *at(const char *name)
{
    return store_dir_at(&dir, name);
}

/* The error of the last open, without "open <path>: ". */
static const char *open_message(void)
{
    const size_t prefix = strlen("open ") + strlen(dir.path) + strlen(": ");

    assert_true(strlen(dir.error.message) > prefix);
    return dir.error.message + prefix;
}

static void assert_open_fails(enum stele_open_mode mode,
                              enum stele_status expected)
{
    assert_int_equal(store_dir_try_open(&dir, mode), expected);
    assert_int_equal(dir.error.status, expected);
    assert_null(dir.store);
}

/* A new store with one key in it, closed. */
static void leave_a_store(void)
{
    store_dir_open(&dir);
    store_dir_put(&dir, "k", "v");
    store_dir_close(&dir);
}

/* One PUT, as a batch. */
static struct stele_batch *batch_of(const char *key, size_t value_bytes)
{
    struct stele_batch *batch;
    char *value = calloc(1, value_bytes + 1);

    assert_non_null(value);
    assert_int_equal(stele_batch_create(&batch, &dir.error), STELE_OK);
    assert_int_equal(stele_batch_put(batch, "t", key, strlen(key), value,
                                     value_bytes, &dir.error),
                     STELE_OK);
    free(value);
    return batch;
}

/* ---- What a directory is ------------------------------------------------------------------ */

static void a_missing_directory_is_made_only_when_asked(void **state)
{
    (void)state;
    assert_int_equal(rmdir(dir.path), 0);
    assert_open_fails(STELE_OPEN_EXISTING, STELE_NOT_FOUND);
    assert_open_fails(STELE_OPEN_READ_ONLY, STELE_NOT_FOUND);
    assert_false(files_exists(dir.path));
    assert_int_equal(store_dir_try_open(&dir, STELE_OPEN_CREATE_NEW), STELE_OK);
    store_dir_put(&dir, "k", "v");
    store_dir_close(&dir);
    assert_int_equal(store_dir_try_open(&dir, STELE_OPEN_EXISTING), STELE_OK);
    assert_true(store_dir_has(&dir, "k", "v"));
}

static void a_missing_parent_is_not_made(void **state)
{
    struct stele *none = NULL;

    (void)state;
    dir.options.mode = STELE_OPEN_CREATE;
    assert_int_equal(store_open(at("no/store"), &dir.options, &dir.tuning,
                                &none, &dir.error),
                     STELE_NOT_FOUND);
    assert_int_equal(files_count(dir.path, ""), 0);
}

static void an_empty_directory_is_a_store_only_when_asked(void **state)
{
    (void)state;
    assert_open_fails(STELE_OPEN_EXISTING, STELE_NOT_FOUND);
    assert_string_equal(open_message(), "there is no store in the directory");
    assert_open_fails(STELE_OPEN_READ_ONLY, STELE_NOT_FOUND);
    assert_int_equal(files_count(dir.path, ""), 0); /* Not even LOCK. */
    assert_int_equal(store_dir_try_open(&dir, STELE_OPEN_CREATE), STELE_OK);
}

static void a_directory_with_anything_else_in_it_is_refused(void **state)
{
    (void)state;
    files_write(at("notes.txt"), "mine", 4);
    for (int mode = STELE_OPEN_EXISTING; mode <= STELE_OPEN_READ_ONLY; mode++) {
        assert_open_fails((enum stele_open_mode)mode, STELE_FOREIGN);
        assert_string_equal(open_message(),
                            "the directory is not a store: it has no ANCHOR, "
                            "but notes.txt");
        assert_int_equal(files_count(dir.path, ""), 1);
    }
}

static void a_look_alike_in_wal_is_refused_as_well(void **state)
{
    (void)state;
    assert_int_equal(mkdir(at("wal"), 0700), 0);
    files_write(at("wal/1.log"), "mine", 4);
    assert_open_fails(STELE_OPEN_CREATE, STELE_FOREIGN);
    assert_string_equal(
        open_message(),
        "the directory is not a store: it has no ANCHOR, but wal/1.log");
}

static void a_store_is_opened_but_not_made_again(void **state)
{
    (void)state;
    leave_a_store();
    assert_open_fails(STELE_OPEN_CREATE_NEW, STELE_EXISTS);
    for (int mode = STELE_OPEN_EXISTING; mode <= STELE_OPEN_READ_ONLY; mode++) {
        if (mode != STELE_OPEN_CREATE_NEW) {
            assert_int_equal(
                store_dir_try_open(&dir, (enum stele_open_mode)mode), STELE_OK);
            assert_true(store_dir_has(&dir, "k", "v"));
            store_dir_close(&dir);
        }
    }
}

static void an_unfinished_creation_is_resumed_when_asked(void **state)
{
    (void)state;
    assert_int_equal(mkdir(at("wal"), 0700), 0);
    files_write(at("LOCK"), "", 0);
    files_write(at("ANCHOR.tmp"), "half", 4);
    files_write(at("wal/0000000000000001.tmp"), "half", 4);
    files_write(at("wal/0000000000000001.wal"), "", 0);
    assert_open_fails(STELE_OPEN_EXISTING, STELE_NOT_FOUND);
    assert_open_fails(STELE_OPEN_READ_ONLY, STELE_NOT_FOUND);
    store_dir_open(&dir);
    store_dir_put(&dir, "k", "v");
    assert_int_equal(files_count(at("wal"), ".tmp"), 0);
    assert_false(files_exists(at("ANCHOR.tmp")));
    store_dir_close(&dir);
}

static void an_anchor_missing_over_units_is_damage_not_an_empty_store(
    void **state)
{
    uint64_t digest;

    (void)state;
    leave_a_store();
    files_remove(at("ANCHOR"));
    digest = store_dir_digest(&dir);
    for (int mode = STELE_OPEN_EXISTING; mode <= STELE_OPEN_READ_ONLY; mode++) {
        assert_open_fails((enum stele_open_mode)mode, STELE_CORRUPT);
        assert_string_equal(open_message(),
                            "row E: ANCHOR is missing, but "
                            "wal/0000000000000001.wal is in use");
    }
    assert_true(store_dir_digest(&dir) == digest);
}

static void a_missing_wal_or_snapshot_directory_is_damage(void **state)
{
    static const char *const names[] = {"wal", "snapshot"};

    (void)state;
    leave_a_store();
    for (size_t index = 0; index < 2; index++) {
        char hidden[FILES_PATH_BYTES];
        char message[64];

        store_dir_path(&dir, "hidden", hidden);
        files_rename(at(names[index]), hidden);
        assert_open_fails(STELE_OPEN_CREATE, STELE_CORRUPT);
        snprintf(message, sizeof message, "row E: %s/ is missing",
                 names[index]);
        assert_string_equal(open_message(), message);
        files_rename(hidden, at(names[index]));
    }
    store_dir_open(&dir);
    assert_true(store_dir_has(&dir, "k", "v"));
}

static void files_and_directories_are_the_owners_alone(void **state)
{
    static const char *const files[] = {"LOCK", "ANCHOR", "index/data.mdb",
                                        "index/lock.mdb",
                                        "wal/0000000000000001.wal"};
    static const char *const directories[] = {"wal", "snapshot", "index"};
    const mode_t before = umask(0);
    struct stat found;

    (void)state;
    leave_a_store();
    umask(before);
    for (size_t index = 0; index < sizeof files / sizeof *files; index++) {
        assert_int_equal(stat(at(files[index]), &found), 0);
        assert_int_equal(found.st_mode & 0777, 0600);
    }
    for (size_t index = 0; index < 3; index++) {
        assert_int_equal(stat(at(directories[index]), &found), 0);
        assert_int_equal(found.st_mode & 0777, 0700);
    }
}

/* ---- Options -------------------------------------------------------------------------------- */

struct option_case {
    const char *name;
    size_t offset;
    size_t bytes;
    uint64_t good;
    uint64_t bad;
};

#define OPTION(field, good, bad)                                               \
    {                                                                          \
#field, offsetof(struct stele_options, field),                         \
            sizeof((struct stele_options *)0)->field, good, bad                \
    }

static void set_option(const struct option_case *option, uint64_t value)
{
    uint8_t *field = (uint8_t *)&dir.options + option->offset;

    if (option->bytes == sizeof(uint32_t)) {
        const uint32_t narrow = (uint32_t)value;

        memcpy(field, &narrow, sizeof narrow);
    } else {
        memcpy(field, &value, sizeof value);
    }
}

static void options_out_of_range_are_named(void **state)
{
    static const struct option_case cases[] = {
        OPTION(segment_bytes, 1 << 20, (1 << 20) - 4096),
        OPTION(segment_bytes, 1 << 20, ((uint64_t)1 << 30) + 4096),
        OPTION(segment_bytes, (1 << 20) + 4096, (1 << 20) + 512),
        OPTION(memtable_bytes, 64 << 10, (64 << 10) - 1),
        OPTION(value_bytes_max, 1, 0),
        OPTION(value_bytes_max, 16 << 20, (16 << 20) + 1),
        OPTION(batch_ops_max, 1, 0),
        OPTION(batch_ops_max, 1 << 24, (1 << 24) + 1),
        OPTION(views_max, 1, 0),
        OPTION(index_map_bytes, 1 << 20, (1 << 20) - 1),
        OPTION(index_map_bytes, 1 << 20, ((uint64_t)1 << 46) + 1),
    };

    (void)state;
    for (size_t index = 0; index < sizeof cases / sizeof *cases; index++) {
        const struct stele_options before = dir.options;

        set_option(&cases[index], cases[index].bad);
        assert_open_fails(STELE_OPEN_CREATE, STELE_INVALID);
        assert_non_null(strstr(open_message(), cases[index].name));
        assert_int_equal(files_count(dir.path, ""), 0);
        set_option(&cases[index], cases[index].good);
        assert_open_fails(STELE_OPEN_EXISTING, STELE_NOT_FOUND);
        dir.options = before;
    }
    assert_open_fails((enum stele_open_mode)(STELE_OPEN_READ_ONLY + 1),
                      STELE_INVALID);
}

static void options_of_another_size_are_an_older_or_a_newer_header(void **state)
{
    (void)state;
    dir.options.size = 0;
    assert_open_fails(STELE_OPEN_CREATE, STELE_INVALID);
    dir.options.size = sizeof dir.options + 1;
    assert_open_fails(STELE_OPEN_CREATE, STELE_INVALID);
    /* Older: what it did not know keeps its default. */
    dir.options.size = offsetof(struct stele_options, memtable_bytes);
    dir.options.views_max = 0;
    dir.options.index_map_bytes = 0;
    store_dir_open(&dir);
    assert_int_equal(dir.store->options.views_max, 1024);
    assert_int_equal(store_dir_stats(&dir).segment_bytes, 1 << 20);
}

static void a_path_is_needed(void **state)
{
    struct stele *none = NULL;

    (void)state;
    assert_int_equal(stele_open("", NULL, &none, &dir.error), STELE_INVALID);
    assert_int_equal(stele_open(NULL, NULL, &none, &dir.error), STELE_INVALID);
    assert_null(none);
}

/* What a store was made with stays; the option is for new ones. */
static void an_existing_store_keeps_its_segment_size(void **state)
{
    (void)state;
    leave_a_store();
    dir.options.segment_bytes = 4 << 20;
    store_dir_open(&dir);
    assert_int_equal(store_dir_stats(&dir).segment_bytes, 1 << 20);
}

/* ---- LSNs and closing ------------------------------------------------------------------------ */

static void after_a_clean_close_nothing_is_replayed(void **state)
{
    uint64_t lsn;

    (void)state;
    store_dir_open(&dir);
    lsn = store_dir_put(&dir, "k", "v");
    store_dir_close(&dir);
    store_dir_open(&dir);
    assert_int_equal(store_dir_stats(&dir).recovery_row, 'A');
    assert_int_equal(store_dir_stats(&dir).recovery_replayed_records, 0);
    assert_int_equal(store_dir_stats(&dir).lsn_visible, lsn);
    assert_int_equal(store_dir_put(&dir, "k", "w"), lsn + 1);
    assert_false(store_dir_stats(&dir).index_rebuilt);
}

static void closing_without_a_checkpoint_leaves_the_tail_to_the_log(
    void **state)
{
    (void)state;
    dir.options.skip_close_checkpoint = true;
    leave_a_store();
    store_dir_open(&dir);
    assert_int_equal(store_dir_stats(&dir).recovery_replayed_records, 1);
    assert_true(store_dir_has(&dir, "k", "v"));
}

/* A relaxed commit that was lost may have shown its LSN to somebody. */
static void after_a_kill_lsns_skip_ahead(void **state)
{
    uint64_t lsn;

    (void)state;
    store_dir_open(&dir);
    lsn = store_dir_put(&dir, "k", "v");
    store_dir_kill(&dir);
    store_dir_open(&dir);
    assert_true(store_dir_has(&dir, "k", "v"));
    assert_int_equal(store_dir_stats(&dir).lsn_visible, lsn);
    assert_int_equal(store_dir_put(&dir, "k", "w"), lsn + LSN_SKIP + 1);
    store_dir_kill(&dir);
    store_dir_open(&dir);
    assert_int_equal(store_dir_put(&dir, "k", "x"), lsn + 2 * LSN_SKIP + 2);
}

static void even_a_kill_without_a_commit_skips_lsns(void **state)
{
    (void)state;
    for (uint64_t kills = 0; kills < 3; kills++) {
        store_dir_open(&dir);
        store_dir_kill(&dir);
    }
    store_dir_open(&dir);
    assert_int_equal(store_dir_put(&dir, "k", "v"), 3 * LSN_SKIP + 1);
}

static void every_open_for_writing_is_an_incarnation(void **state)
{
    (void)state;
    for (uint64_t opens = 1; opens <= 3; opens++) {
        store_dir_open(&dir);
        assert_int_equal(store_dir_stats(&dir).incarnation, opens);
        store_dir_close(&dir);
    }
}

static void a_close_with_live_views_closes_nothing(void **state)
{
    struct stele_view *views[2];

    (void)state;
    store_dir_open(&dir);
    store_dir_put(&dir, "k", "v");
    assert_int_equal(stele_view_open(dir.store, &views[0], &dir.error),
                     STELE_OK);
    assert_int_equal(stele_view_open(dir.store, &views[1], &dir.error),
                     STELE_OK);
    assert_int_equal(stele_close(dir.store, &dir.error), STELE_BUSY);
    assert_string_equal(dir.error.message, "close: 2 views are still open");
    store_dir_put(&dir, "k", "w"); /* It still works. */
    stele_view_close(views[0]);
    assert_int_equal(stele_close(dir.store, &dir.error), STELE_BUSY);
    stele_view_close(views[1]);
    store_dir_close(&dir);
    assert_int_equal(stele_close(NULL, &dir.error), STELE_OK);
}

/* ---- One handle ---------------------------------------------------------------------------------- */

static void a_store_is_open_once_in_a_process(void **state)
{
    struct stele *second = NULL;
    char link[FILES_PATH_BYTES + 8];

    (void)state;
    store_dir_open(&dir);
    assert_int_equal(
        store_open(dir.path, &dir.options, &dir.tuning, &second, &dir.error),
        STELE_LOCKED);
    assert_string_equal(open_message(),
                        "this process has the store open already");
    dir.options.mode = STELE_OPEN_READ_ONLY;
    assert_int_equal(
        store_open(dir.path, &dir.options, &dir.tuning, &second, &dir.error),
        STELE_LOCKED);
    /* Whatever path leads there. */
    snprintf(link, sizeof link, "%s.link", dir.path);
    assert_int_equal(symlink(dir.path, link), 0);
    assert_int_equal(
        store_open(link, &dir.options, &dir.tuning, &second, &dir.error),
        STELE_LOCKED);
    assert_int_equal(unlink(link), 0);
    assert_null(second);
    store_dir_put(&dir, "k", "v"); /* The first one is not disturbed. */
    store_dir_close(&dir);
    store_dir_open(&dir);
}

/* As another process would. */
static void a_store_that_somebody_holds_is_locked_and_the_holder_named(
    void **state)
{
    struct io_file *lock;
    struct io_dir *directory;
    char pid[64];
    uint64_t digest;

    (void)state;
    leave_a_store();
    assert_int_equal(io_dir_open(io_posix(), dir.path, &directory, &dir.error),
                     STELE_OK);
    assert_int_equal(
        io_file_open(directory, "LOCK", IO_OPEN_READ_WRITE, &lock, &dir.error),
        STELE_OK);
    assert_int_equal(io_file_lock(lock, 0, &dir.error), STELE_OK);
    digest = store_dir_digest(&dir);
    assert_open_fails(STELE_OPEN_CREATE, STELE_LOCKED);
    snprintf(pid, sizeof pid, "the store is open for writing by pid %ld on ",
             (long)getpid());
    assert_int_equal(strncmp(open_message(), pid, strlen(pid)), 0);
    assert_true(store_dir_digest(&dir) == digest);
    io_file_close(lock);
    io_dir_close(directory);
    store_dir_open(&dir);
}

/* ---- Reading only ------------------------------------------------------------------------------------ */

static void a_read_only_handle_refuses_to_write(void **state)
{
    struct stele_batch *batch = batch_of("k", 1);

    (void)state;
    leave_a_store();
    assert_int_equal(store_dir_try_open(&dir, STELE_OPEN_READ_ONLY), STELE_OK);
    assert_int_equal(store_dir_try_put(&dir, "k", "w"), STELE_READ_ONLY);
    assert_int_equal(
        stele_commit(dir.store, batch, STELE_RELAXED, NULL, &dir.error),
        STELE_READ_ONLY);
    assert_int_equal(stele_delete(dir.store, "t", "k", 1, NULL, &dir.error),
                     STELE_READ_ONLY);
    assert_int_equal(stele_sync(dir.store, &dir.error), STELE_READ_ONLY);
    assert_int_equal(stele_checkpoint(dir.store, &dir.error), STELE_READ_ONLY);
    assert_true(store_dir_has(&dir, "k", "v"));
    stele_batch_destroy(batch);
}

static void a_read_only_handle_writes_nothing(void **state)
{
    uint64_t digest;

    (void)state;
    store_dir_open(&dir);
    store_dir_put(&dir, "in index", "1");
    assert_int_equal(stele_checkpoint(dir.store, &dir.error), STELE_OK);
    store_dir_put(&dir, "in log", "2");
    store_dir_put_relaxed(&dir, "unsynced", "3");
    store_dir_kill(&dir);
    digest = store_dir_digest(&dir);
    assert_int_equal(store_dir_try_open(&dir, STELE_OPEN_READ_ONLY), STELE_OK);
    assert_true(store_dir_has(&dir, "in index", "1"));
    assert_true(store_dir_has(&dir, "in log", "2"));
    assert_true(store_dir_has(&dir, "unsynced", "3"));
    assert_true(store_dir_digest(&dir) == digest);
    store_dir_close(&dir);
    assert_true(store_dir_digest(&dir) == digest);
}

/* ---- Batches over the options -------------------------------------------------------------------------- */

static void values_over_the_option_are_refused(void **state)
{
    (void)state;
    dir.options.value_bytes_max = 100;
    store_dir_open(&dir);
    assert_int_equal(store_dir_try_put_bytes(&dir, "k", 100), STELE_OK);
    assert_int_equal(store_dir_try_put_bytes(&dir, "k2", 101), STELE_TOO_BIG);
    assert_string_equal(
        dir.error.message,
        "commit: a value has 101 bytes, at most 100 are allowed");
    assert_true(store_dir_has(&dir, "k2", NULL));
    store_dir_put(&dir, "k3", "v");
}

static void more_operations_than_the_option_are_refused(void **state)
{
    struct stele_batch *batch;

    (void)state;
    dir.options.batch_ops_max = 3;
    store_dir_open(&dir);
    batch = batch_of("k", 1);
    for (int ops = 2; ops <= 4; ops++) {
        const enum stele_status expected = ops <= 3 ? STELE_OK : STELE_TOO_BIG;

        assert_int_equal(stele_batch_delete(batch, "t", "k", 1, &dir.error),
                         STELE_OK);
        assert_int_equal(
            stele_commit(dir.store, batch, STELE_DURABLE, NULL, &dir.error),
            expected);
    }
    assert_string_equal(
        dir.error.message,
        "commit: the batch has 4 operations, at most 3 are allowed");
    stele_batch_destroy(batch);
}

static void an_empty_batch_is_refused(void **state)
{
    struct stele_batch *batch;

    (void)state;
    store_dir_open(&dir);
    assert_int_equal(stele_batch_create(&batch, &dir.error), STELE_OK);
    assert_int_equal(
        stele_commit(dir.store, batch, STELE_DURABLE, NULL, &dir.error),
        STELE_INVALID);
    stele_batch_destroy(batch);
}

/* What the writer accepts, the reader must. */
static void the_largest_record_is_written_and_replayed(void **state)
{
    const uint64_t most = (1 << 20) - RECORD_RESERVED_BYTES;
    struct stele_batch *empty = batch_of("k", 0);
    const uint64_t overhead = stele_batch_bytes(empty);
    struct stele_batch *largest = batch_of("k", most - overhead);
    struct stele_batch *larger = batch_of("k2", most - overhead);

    (void)state;
    stele_batch_destroy(empty);
    assert_int_equal(stele_batch_bytes(largest), most);
    assert_int_equal(stele_batch_bytes(larger), most + 1);
    dir.options.value_bytes_max = 2 << 20;
    store_dir_open(&dir);
    store_dir_put(&dir, "before", "1");
    assert_int_equal(
        stele_commit(dir.store, larger, STELE_DURABLE, NULL, &dir.error),
        STELE_TOO_BIG);
    assert_string_equal(dir.error.message,
                        "commit: the record has 1040385 bytes, at most 1040384 "
                        "fit into a segment");
    assert_int_equal(
        stele_commit(dir.store, largest, STELE_DURABLE, NULL, &dir.error),
        STELE_OK);
    assert_int_equal(
        stele_commit(dir.store, largest, STELE_RELAXED, NULL, &dir.error),
        STELE_OK);
    store_dir_put(&dir, "behind", "2");
    store_dir_kill(&dir);
    store_dir_open(&dir);
    assert_int_equal(store_dir_try_get(&dir, "k"), STELE_OK);
    assert_true(store_dir_has(&dir, "k2", NULL));
    assert_true(store_dir_has(&dir, "before", "1"));
    assert_true(store_dir_has(&dir, "behind", "2"));
    stele_batch_destroy(largest);
    stele_batch_destroy(larger);
}

/* ---- Preconditions and outcomes ---------------------------------------------------------------------------- */

static void a_failed_expectation_names_its_operation_and_changes_nothing(
    void **state)
{
    struct stele_commit_result result = {0};
    struct stele_batch *batch;
    uint64_t lsn;

    (void)state;
    store_dir_open(&dir);
    lsn = store_dir_put(&dir, "k", "v");
    batch = batch_of("new", 1);
    assert_int_equal(
        stele_batch_expect_lsn(batch, "t", "k", 1, lsn, &dir.error), STELE_OK);
    assert_int_equal(stele_batch_expect_absent(batch, "t", "k", 1, &dir.error),
                     STELE_OK);
    assert_int_equal(
        stele_commit(dir.store, batch, STELE_DURABLE, &result, &dir.error),
        STELE_PRECONDITION);
    assert_int_equal(result.failed_op, 2);
    assert_string_equal(dir.error.message,
                        "operation 2: a key of table t is present");
    assert_true(store_dir_has(&dir, "new", NULL));
    assert_int_equal(store_dir_put(&dir, "k", "w"), lsn + 1);
    stele_batch_destroy(batch);
}

static void outcomes_are_given_for_every_operation(void **state)
{
    enum stele_op_outcome outcomes[7];
    struct stele_commit_result result = {.outcomes = outcomes};
    struct stele_batch *batch;

    (void)state;
    store_dir_open(&dir);
    store_dir_put(&dir, "old", "v");
    assert_int_equal(stele_checkpoint(dir.store, &dir.error), STELE_OK);
    batch = batch_of("new", 1);
    assert_int_equal(stele_batch_put(batch, "t", "old", 3, "", 0, &dir.error),
                     STELE_OK);
    assert_int_equal(stele_batch_delete(batch, "t", "new", 3, &dir.error),
                     STELE_OK);
    assert_int_equal(stele_batch_delete(batch, "t", "new", 3, &dir.error),
                     STELE_OK);
    assert_int_equal(stele_batch_clear_table(batch, "t", &dir.error), STELE_OK);
    assert_int_equal(stele_batch_delete(batch, "t", "old", 3, &dir.error),
                     STELE_OK);
    assert_int_equal(stele_batch_put(batch, "t", "old", 3, "", 0, &dir.error),
                     STELE_OK);
    assert_int_equal(
        stele_commit(dir.store, batch, STELE_DURABLE, &result, &dir.error),
        STELE_OK);
    assert_int_equal(outcomes[0], STELE_OP_CREATED);
    assert_int_equal(outcomes[1], STELE_OP_REPLACED);
    assert_int_equal(outcomes[2], STELE_OP_DELETED);
    assert_int_equal(outcomes[3], STELE_OP_ABSENT);
    assert_int_equal(outcomes[4], STELE_OP_DONE);
    assert_int_equal(outcomes[5], STELE_OP_ABSENT);
    assert_int_equal(outcomes[6], STELE_OP_CREATED);
    stele_batch_destroy(batch);
}

static void a_tagged_batch_is_found_again(void **state)
{
    static const uint8_t tag[STELE_TAG_BYTES] = "a tag of sixteen";
    static const uint8_t other[STELE_TAG_BYTES] = {1};
    struct stele_commit_result result = {0};
    struct stele_batch *batch = batch_of("k", 1);
    uint64_t lsn;

    (void)state;
    store_dir_open(&dir);
    store_dir_put(&dir, "before", "v");
    stele_batch_set_tag(batch, tag);
    assert_int_equal(
        stele_commit(dir.store, batch, STELE_DURABLE, &result, &dir.error),
        STELE_OK);
    store_dir_kill(&dir);
    store_dir_open(&dir);
    assert_int_equal(stele_find_tag(dir.store, tag, 0, &lsn, &dir.error),
                     STELE_OK);
    assert_int_equal(lsn, result.lsn);
    assert_int_equal(
        stele_find_tag(dir.store, tag, result.lsn + 1, &lsn, &dir.error),
        STELE_NOT_FOUND);
    assert_int_equal(stele_find_tag(dir.store, other, 0, &lsn, &dir.error),
                     STELE_NOT_FOUND);
    stele_batch_destroy(batch);
}

/* ---- Views ------------------------------------------------------------------------------------------------------ */

/* A clock that goes as the test wants, on the same file system. */
static uint64_t now_ns;

static uint64_t told_time(struct io *io)
{
    (void)io;
    return now_ns;
}

static void tell_the_time(void)
{
    static struct io_calls calls;
    static struct io io = {.calls = &calls};

    calls = *io_fault_io()->calls;
    calls.clock_monotonic_ns = told_time;
    now_ns = 1000000000;
    dir.tuning.io = &io;
}

static void an_old_view_expires_at_its_owners_next_call(void **state)
{
    struct stele_view *view;
    struct stele_cursor *cursor;
    struct stele_entry entry;
    struct stele_value value;
    uint64_t count;
    uint64_t lsn;
    size_t bytes;
    char buffer[8];

    (void)state;
    tell_the_time();
    dir.options.view_age_max_ms = 10;
    store_dir_open(&dir);
    store_dir_put(&dir, "k", "v");
    assert_int_equal(stele_view_open(dir.store, &view, &dir.error), STELE_OK);
    assert_int_equal(stele_cursor_open(view, "t", NULL, 0, &cursor, &dir.error),
                     STELE_OK);
    /* Nobody could take a pointer back. */
    assert_int_equal(stele_view_get(view, "t", "k", 1, &value, &dir.error),
                     STELE_INVALID);
    now_ns += 10 * 1000000;
    assert_int_equal(stele_view_copy(view, "t", "k", 1, buffer, sizeof buffer,
                                     &bytes, &lsn, &dir.error),
                     STELE_OK);
    assert_int_equal(bytes, 1);
    assert_int_equal(stele_cursor_first(cursor, &entry, &dir.error), STELE_OK);

    now_ns++;
    assert_int_equal(stele_cursor_next(cursor, &entry, &dir.error),
                     STELE_EXPIRED);
    assert_int_equal(stele_view_copy(view, "t", "k", 1, buffer, sizeof buffer,
                                     &bytes, &lsn, &dir.error),
                     STELE_EXPIRED);
    assert_int_equal(stele_table_count(view, "t", &count, &dir.error),
                     STELE_EXPIRED);
    assert_int_equal(stele_table_lsn(view, "t", &lsn, &dir.error),
                     STELE_EXPIRED);
    assert_null(view->state); /* What it pinned is free. */
    assert_true(base_is_empty(&view->base));
    assert_int_equal(stele_cursor_first(cursor, &entry, &dir.error),
                     STELE_EXPIRED);
    stele_cursor_close(cursor);
    stele_view_close(view);
    assert_int_equal(stele_view_open(dir.store, &view, &dir.error), STELE_OK);
    assert_int_equal(stele_view_copy(view, "t", "k", 1, buffer, sizeof buffer,
                                     &bytes, NULL, &dir.error),
                     STELE_OK);
    stele_view_close(view);
}

static void a_copy_into_a_small_buffer_tells_the_whole_length(void **state)
{
    struct stele_view *view;
    char buffer[8] = "untouch";
    size_t bytes = 0;
    uint64_t lsn = 0;

    (void)state;
    store_dir_open(&dir);
    store_dir_put(&dir, "k", "0123456789");
    assert_int_equal(stele_view_open(dir.store, &view, &dir.error), STELE_OK);
    assert_int_equal(
        stele_view_copy(view, "t", "k", 1, buffer, 7, &bytes, &lsn, &dir.error),
        STELE_TOO_BIG);
    assert_int_equal(bytes, 10);
    assert_int_equal(lsn, stele_view_lsn(view));
    assert_string_equal(buffer, "untouch");
    stele_view_close(view);
}

static void no_more_views_are_open_than_the_option_allows(void **state)
{
    struct stele_view *views[3];
    struct stele_view *one_more = NULL;

    (void)state;
    dir.options.views_max = 3;
    store_dir_open(&dir);
    for (size_t index = 0; index < 3; index++) {
        assert_int_equal(stele_view_open(dir.store, &views[index], &dir.error),
                         STELE_OK);
    }
    assert_int_equal(stele_view_open(dir.store, &one_more, &dir.error),
                     STELE_BUSY);
    assert_null(one_more);
    assert_int_equal(store_dir_stats(&dir).views_open, 3);
    store_dir_put(&dir, "k", "v"); /* Commits do not need one. */
    stele_view_close(views[1]);
    assert_int_equal(stele_view_open(dir.store, &views[1], &dir.error),
                     STELE_OK);
    for (size_t index = 0; index < 3; index++) {
        stele_view_close(views[index]);
    }
}

static void relaxed_commits_are_seen_here_before_they_are_durable(void **state)
{
    struct stele_stats stats;

    (void)state;
    store_dir_open(&dir);
    store_dir_put_relaxed(&dir, "k", "v");
    assert_true(store_dir_has(&dir, "k", "v"));
    stats = store_dir_stats(&dir);
    assert_int_equal(stats.lsn_visible, 1);
    assert_int_equal(stats.lsn_durable, 0);
    assert_int_equal(stele_sync(dir.store, &dir.error), STELE_OK);
    assert_int_equal(store_dir_stats(&dir).lsn_durable, 1);
}

static void statistics_of_another_size_are_an_older_header(void **state)
{
    struct stele_stats stats = {.size = 0};

    (void)state;
    store_dir_open(&dir);
    assert_int_equal(stele_stats(dir.store, &stats, &dir.error), STELE_INVALID);
    stats.size = sizeof stats + 1;
    assert_int_equal(stele_stats(dir.store, &stats, &dir.error), STELE_INVALID);
    stats.size = offsetof(struct stele_stats, lsn_visible);
    stats.lsn_visible = 42;
    assert_int_equal(stele_stats(dir.store, &stats, &dir.error), STELE_OK);
    assert_int_equal(stats.incarnation, 1);
    assert_int_equal(stats.lsn_visible, 42);
}

#define STORE_TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        STORE_TEST(a_missing_directory_is_made_only_when_asked),
        STORE_TEST(a_missing_parent_is_not_made),
        STORE_TEST(an_empty_directory_is_a_store_only_when_asked),
        STORE_TEST(a_directory_with_anything_else_in_it_is_refused),
        STORE_TEST(a_look_alike_in_wal_is_refused_as_well),
        STORE_TEST(a_store_is_opened_but_not_made_again),
        STORE_TEST(an_unfinished_creation_is_resumed_when_asked),
        STORE_TEST(an_anchor_missing_over_units_is_damage_not_an_empty_store),
        STORE_TEST(a_missing_wal_or_snapshot_directory_is_damage),
        STORE_TEST(files_and_directories_are_the_owners_alone),
        STORE_TEST(options_out_of_range_are_named),
        STORE_TEST(options_of_another_size_are_an_older_or_a_newer_header),
        STORE_TEST(a_path_is_needed),
        STORE_TEST(an_existing_store_keeps_its_segment_size),
        STORE_TEST(after_a_clean_close_nothing_is_replayed),
        STORE_TEST(closing_without_a_checkpoint_leaves_the_tail_to_the_log),
        STORE_TEST(after_a_kill_lsns_skip_ahead),
        STORE_TEST(even_a_kill_without_a_commit_skips_lsns),
        STORE_TEST(every_open_for_writing_is_an_incarnation),
        STORE_TEST(a_close_with_live_views_closes_nothing),
        STORE_TEST(a_store_is_open_once_in_a_process),
        STORE_TEST(a_store_that_somebody_holds_is_locked_and_the_holder_named),
        STORE_TEST(a_read_only_handle_refuses_to_write),
        STORE_TEST(a_read_only_handle_writes_nothing),
        STORE_TEST(values_over_the_option_are_refused),
        STORE_TEST(more_operations_than_the_option_are_refused),
        STORE_TEST(an_empty_batch_is_refused),
        STORE_TEST(the_largest_record_is_written_and_replayed),
        STORE_TEST(
            a_failed_expectation_names_its_operation_and_changes_nothing),
        STORE_TEST(outcomes_are_given_for_every_operation),
        STORE_TEST(a_tagged_batch_is_found_again),
        STORE_TEST(an_old_view_expires_at_its_owners_next_call),
        STORE_TEST(a_copy_into_a_small_buffer_tells_the_whole_length),
        STORE_TEST(no_more_views_are_open_than_the_option_allows),
        STORE_TEST(relaxed_commits_are_seen_here_before_they_are_durable),
        STORE_TEST(statistics_of_another_size_are_an_older_header),
    };

    return cmocka_run_group_tests_name("engine/store", tests, NULL, NULL);
}
