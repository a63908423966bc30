/*
 * tests/test_engine_index_damage.c -- a value in the index that fails its check:
 * what whoever meets it is told, what goes on meanwhile, and what mends it. And
 * the options that set an index aside, or do without it.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "engine/base_value.h"
#include "engine/keepers.h"
#include "engine/view.h"
#include "tests/lib/files.h"
#include "tests/lib/io_fault.h"
#include "tests/lib/store_dir.h"

enum {
    PAGE = 4096,
    KEYS = 16,
    NAME_BYTES = 24,
    WAIT_SLICE_NS = 10000000,
};

#define DAMAGED "index: table \"t\", key \"b\": check mismatch"

/* ---- A small vocabulary ---------------------------------------------------------- */

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

static void damage(const char *text, uint64_t bit)
{
    files_flip_everywhere(at("index/data.mdb"), text, strlen(text), bit);
}

static void open_to_read(void)
{
    if (store_dir_try_open(&dir, STELE_OPEN_READ_ONLY) != STELE_OK) {
        fail_msg("%s", dir.error.message);
    }
}

static size_t set_aside(void)
{
    return files_exists(at("quarantine")) ? files_count(at("quarantine"), "")
                                          : 0;
}

static bool anchor_says_so(void)
{
    bool suspect;

    mutex_lock(&dir.store->anchor_mutex);
    suspect = dir.store->anchor.index_suspect;
    mutex_unlock(&dir.store->anchor_mutex);
    return suspect;
}

/* "a", "b" and "c", all in the index. Closed. */
static void leave_a_store(void)
{
    store_dir_open(&dir);
    store_dir_put(&dir, "a", "value of a");
    store_dir_put(&dir, "b", "value of b");
    store_dir_put(&dir, "c", "value of c");
    store_dir_close(&dir);
}

/* The same, and the value of "b" rotten. Open. */
static void open_with_a_rotten_value(void)
{
    leave_a_store();
    damage("value of b", 3);
    store_dir_open(&dir);
    assert_false(store_dir_stats(&dir).index_rebuilt);
    assert_false(store_dir_stats(&dir).index_damaged);
}

static void meet_it(void)
{
    assert_int_equal(store_dir_try_get(&dir, "b"), STELE_CORRUPT);
    store_dir_assert_error(&dir, DAMAGED);
}

/* The index was set aside as evidence; `b` is what the key has to be now. */
static void assert_mended(const char *b)
{
    store_dir_open(&dir);
    assert_true(store_dir_stats(&dir).index_rebuilt);
    assert_false(store_dir_stats(&dir).index_damaged);
    assert_true(store_dir_has(&dir, "a", "value of a"));
    assert_true(store_dir_has(&dir, "b", b));
    assert_true(store_dir_has(&dir, "c", "value of c"));
    assert_int_equal(set_aside(), 1);
    assert_true(files_exists(at("quarantine/index.0001/data.mdb")));
    store_dir_assert_verifies(&dir);
    store_dir_close(&dir);
    store_dir_open(&dir); /* And stays. */
    assert_false(store_dir_stats(&dir).index_rebuilt);
    assert_int_equal(set_aside(), 1);
}

/* ---- Any value --------------------------------------------------------------------- */

static void name_key(unsigned key, char name[NAME_BYTES])
{
    snprintf(name, NAME_BYTES, "key %02u", key);
}

static void name_value(unsigned key, char value[NAME_BYTES])
{
    snprintf(value, NAME_BYTES, "the value of %02u", key);
}

static void assert_all_right_but(unsigned rotten)
{
    for (unsigned key = 0; key < KEYS; key++) {
        char name[NAME_BYTES];
        char value[NAME_BYTES];

        name_key(key, name);
        name_value(key, value);
        if (key == rotten) {
            assert_int_equal(store_dir_try_get(&dir, name), STELE_CORRUPT);
            store_dir_assert_error(
                &dir, "index: table \"t\", key \"%s\": check mismatch", name);
        } else {
            assert_true(store_dir_has(&dir, name, value));
        }
    }
}

static void the_one_finding(void *context, const struct stele_error *problem)
{
    char expected[STELE_ERROR_MESSAGE_BYTES];

    snprintf(expected, sizeof expected,
             "index: table \"t\", key \"%s\": check mismatch",
             (const char *)context);
    assert_string_equal(problem->message, expected);
    assert_int_equal(problem->status, STELE_CORRUPT);
}

static void assert_verify_finds_just(unsigned rotten)
{
    struct stele_verify_report report = {.size = sizeof report};
    char name[NAME_BYTES];

    name_key(rotten, name);
    assert_int_equal(
        stele_verify(dir.store, the_one_finding, name, &report, &dir.error),
        STELE_CORRUPT);
    assert_int_equal(report.problems, 1);
    assert_int_equal(report.index_items, KEYS);
}

static void a_bit_flipped_in_any_stored_value_is_found_and_mended(void **state)
{
    (void)state;
    store_dir_open(&dir);
    for (unsigned key = 0; key < KEYS; key++) {
        char name[NAME_BYTES];
        char value[NAME_BYTES];

        name_key(key, name);
        name_value(key, value);
        store_dir_put(&dir, name, value);
    }
    store_dir_close(&dir);
    for (unsigned rotten = 0; rotten < KEYS; rotten++) {
        char value[NAME_BYTES];

        name_value(rotten, value);
        damage(value, rotten * 7 % (strlen(value) * 8));
        open_to_read();
        assert_all_right_but(rotten);
        assert_verify_finds_just(rotten);
        store_dir_close(&dir);
        store_dir_open(&dir);
        assert_all_right_but(rotten);
        store_dir_close(&dir);
        store_dir_open(&dir);
        assert_true(store_dir_stats(&dir).index_rebuilt);
        assert_all_right_but(KEYS);
        store_dir_assert_verifies(&dir);
        assert_int_equal(set_aside(), rotten + 1);
        store_dir_close(&dir);
    }
}

/* ---- Whoever meets it ---------------------------------------------------------------- */

static void by_copying(void)
{
    struct stele_view *view;
    char buffer[NAME_BYTES] = "untouched";
    size_t bytes;

    assert_int_equal(stele_view_open(dir.store, &view, &dir.error), STELE_OK);
    assert_int_equal(stele_view_copy(view, "t", "b", 1, buffer, sizeof buffer,
                                     &bytes, NULL, &dir.error),
                     STELE_CORRUPT);
    assert_string_equal(buffer, "untouched");
    stele_view_close(view);
}

/* The first step finds a sound entry, the second one the rotten one. */
static void by_walking(enum stele_status (*step)(struct stele_cursor *,
                                                 struct stele_entry *,
                                                 struct stele_error *))
{
    struct stele_view *view;
    struct stele_cursor *cursor;
    struct stele_entry entry;

    assert_int_equal(stele_view_open(dir.store, &view, &dir.error), STELE_OK);
    assert_int_equal(stele_cursor_open(view, "t", NULL, 0, &cursor, &dir.error),
                     STELE_OK);
    assert_int_equal(step(cursor, &entry, &dir.error), STELE_OK);
    assert_int_equal(step(cursor, &entry, &dir.error), STELE_CORRUPT);
    /* Whoever goes on all the same does not get past it. */
    assert_int_equal(step(cursor, &entry, &dir.error), STELE_CORRUPT);
    stele_cursor_close(cursor);
    stele_view_close(view);
}

static void by_walking_on(void)
{
    by_walking(stele_cursor_next);
}

static void by_walking_back(void)
{
    by_walking(stele_cursor_prev);
}

static void by_seeking(void)
{
    struct stele_view *view;
    struct stele_cursor *cursor;
    struct stele_entry entry;

    assert_int_equal(stele_view_open(dir.store, &view, &dir.error), STELE_OK);
    assert_int_equal(stele_cursor_open(view, "t", NULL, 0, &cursor, &dir.error),
                     STELE_OK);
    assert_int_equal(stele_cursor_seek(cursor, "b", 1, &entry, &dir.error),
                     STELE_CORRUPT);
    stele_cursor_close(cursor);
    stele_view_close(view);
}

static void by_counting_over_it(void)
{
    struct stele_view *view;
    uint64_t count;

    store_dir_put(&dir, "b", "a new one");
    assert_int_equal(stele_view_open(dir.store, &view, &dir.error), STELE_OK);
    assert_int_equal(stele_table_count(view, "t", &count, &dir.error),
                     STELE_CORRUPT);
    stele_view_close(view);
}

static void by_expecting(void)
{
    struct stele_batch *batch;

    assert_int_equal(stele_batch_create(&batch, &dir.error), STELE_OK);
    assert_int_equal(stele_batch_expect_present(batch, "t", "b", 1, &dir.error),
                     STELE_OK);
    assert_int_equal(stele_batch_put(batch, "t", "b", 1, "no", 2, &dir.error),
                     STELE_OK);
    assert_int_equal(
        stele_commit(dir.store, batch, STELE_DURABLE, NULL, &dir.error),
        STELE_CORRUPT);
    stele_batch_destroy(batch);
}

static void by_asking_for_outcomes(void)
{
    enum stele_op_outcome outcome;
    struct stele_commit_result result = {.outcomes = &outcome};
    struct stele_batch *batch;

    assert_int_equal(stele_batch_create(&batch, &dir.error), STELE_OK);
    assert_int_equal(stele_batch_delete(batch, "t", "b", 1, &dir.error),
                     STELE_OK);
    assert_int_equal(
        stele_commit(dir.store, batch, STELE_DURABLE, &result, &dir.error),
        STELE_CORRUPT);
    stele_batch_destroy(batch);
}

static void by_a_checkpoint_over_it(void)
{
    store_dir_put(&dir, "b", "a new one");
    assert_int_equal(stele_checkpoint(dir.store, &dir.error), STELE_CORRUPT);
    assert_true(anchor_says_so()); /* Whoever takes one may write. */
}

static void by_a_checkpoint_that_sweeps_it(void)
{
    struct stele_batch *batch;

    assert_int_equal(stele_batch_create(&batch, &dir.error), STELE_OK);
    assert_int_equal(stele_batch_delete_prefix(batch, "t", "b", 1, &dir.error),
                     STELE_OK);
    assert_int_equal(
        stele_commit(dir.store, batch, STELE_DURABLE, NULL, &dir.error),
        STELE_OK);
    stele_batch_destroy(batch);
    assert_int_equal(stele_checkpoint(dir.store, &dir.error), STELE_CORRUPT);
}

static void whoever_meets_it_is_told_and_the_next_open_mends_it(void **state)
{
    static const struct {
        void (*meet)(void);
        const char *b; /* What it is then. */
    } ways[] = {
        {meet_it, "value of b"},
        {by_copying, "value of b"},
        {by_walking_on, "value of b"},
        {by_walking_back, "value of b"},
        {by_seeking, "value of b"},
        {by_counting_over_it, "a new one"},
        {by_expecting, "value of b"},
        {by_asking_for_outcomes, "value of b"},
        {by_a_checkpoint_over_it, "a new one"},
        {by_a_checkpoint_that_sweeps_it, NULL},
    };

    (void)state;
    for (size_t way = 0; way < sizeof ways / sizeof *ways; way++) {
        open_with_a_rotten_value();
        ways[way].meet();
        assert_non_null(strstr(dir.error.message, DAMAGED));
        assert_true(store_dir_stats(&dir).index_damaged);
        /* Everything else goes on. */
        assert_true(store_dir_has(&dir, "a", "value of a"));
        store_dir_put(&dir, "d", "put meanwhile");
        (void)keepers_tend_log(dir.store);
        assert_true(anchor_says_so());
        store_dir_kill(&dir);
        assert_mended(ways[way].b);
        assert_true(store_dir_has(&dir, "d", "put meanwhile"));
        store_dir_remove(&dir);
        store_dir_make(&dir);
    }
}

/* The row of "t" as it stands in the index. */
static void row_of_the_table(uint8_t row[BASE_VALUE_TABLE_ROW_BYTES])
{
    struct table_row counted = {0};
    struct stele_view *view;
    struct stele_cursor *cursor;
    struct stele_entry entry;

    assert_int_equal(stele_view_open(dir.store, &view, &dir.error), STELE_OK);
    assert_int_equal(stele_cursor_open(view, "t", NULL, 0, &cursor, &dir.error),
                     STELE_OK);
    while (stele_cursor_next(cursor, &entry, &dir.error) == STELE_OK) {
        const char full[] = {'t', 0, *(const char *)entry.key};

        assert_int_equal(entry.key_bytes, 1);
        counted.count++;
        counted.sum += base_value_check(
            (struct bytes){full, sizeof full}, entry.value.lsn,
            (struct bytes){entry.value.data, entry.value.bytes});
    }
    stele_cursor_close(cursor);
    stele_view_close(view);
    table_row_encode(&counted, row);
}

static enum stele_status count_table(uint64_t *count_out)
{
    struct stele_view *view;
    enum stele_status status;

    assert_int_equal(stele_view_open(dir.store, &view, &dir.error), STELE_OK);
    status = stele_table_count(view, "t", count_out, &dir.error);
    stele_view_close(view);
    return status;
}

static void a_rotten_row_of_a_table_is_told_and_mended_alike(void **state)
{
    uint8_t row[BASE_VALUE_TABLE_ROW_BYTES];
    struct stele_view *view;
    uint64_t number;

    (void)state;
    store_dir_open(&dir);
    store_dir_put(&dir, "a", "value of a");
    store_dir_put(&dir, "b", "value of b");
    store_dir_put(&dir, "c", "value of c");
    row_of_the_table(row);
    store_dir_close(&dir);
    files_flip_everywhere(at("index/data.mdb"), row, sizeof row, 1);
    store_dir_open(&dir);
    assert_int_equal(count_table(&number), STELE_CORRUPT);
    store_dir_assert_error(&dir, "index: row of table \"t\": check mismatch");
    assert_int_equal(stele_view_open(dir.store, &view, &dir.error), STELE_OK);
    assert_int_equal(stele_table_lsn(view, "t", &number, &dir.error),
                     STELE_CORRUPT);
    stele_view_close(view);
    assert_true(store_dir_has(&dir, "b", "value of b"));
    assert_true(store_dir_stats(&dir).index_damaged);
    store_dir_close(&dir);
    assert_mended("value of b");
    assert_int_equal(count_table(&number), STELE_OK);
    assert_int_equal(number, 3);
}

/* ---- What is noted, and by whom -------------------------------------------------------- */

static void a_read_changes_nothing_on_the_disk(void **state)
{
    uint64_t digest;

    (void)state;
    open_with_a_rotten_value();
    digest = store_dir_digest(&dir);
    meet_it();
    assert_true(store_dir_digest(&dir) == digest);
    assert_false(anchor_says_so());
}

static void a_close_notes_it(void **state)
{
    (void)state;
    open_with_a_rotten_value();
    meet_it();
    store_dir_close(&dir);
    assert_mended("value of b");
}

static void a_checkpoint_notes_it(void **state)
{
    (void)state;
    open_with_a_rotten_value();
    meet_it();
    assert_int_equal(stele_checkpoint(dir.store, &dir.error), STELE_OK);
    assert_true(anchor_says_so());
    store_dir_kill(&dir);
    assert_mended("value of b");
}

static void the_base_keeper_notes_it(void **state)
{
    (void)state;
    dir.tuning.manual = false;
    open_with_a_rotten_value();
    meet_it();
    while (!anchor_says_so()) { /* It looks once a second. */
        mutex_lock(&dir.store->keeper_mutex);
        condition_wait_for(&dir.store->base_progress, &dir.store->keeper_mutex,
                           WAIT_SLICE_NS);
        mutex_unlock(&dir.store->keeper_mutex);
    }
    store_dir_kill(&dir);
    assert_mended("value of b");
}

static void a_note_that_finds_no_space_is_made_later(void **state)
{
    const struct io_fault full = {.call = IO_FAULT_WRITE,
                                  .suffix = "ANCHOR",
                                  .times = 1,
                                  .sys_errno = ENOSPC};

    (void)state;
    open_with_a_rotten_value();
    meet_it();
    io_fault_arm(&full);
    (void)keepers_tend_log(dir.store);
    assert_int_equal(io_fault_count(), 1);
    assert_false(anchor_says_so());
    assert_false(store_dir_stats(&dir).poisoned);
    (void)keepers_tend_log(dir.store);
    assert_true(anchor_says_so());
}

static void it_is_noted_once(void **state)
{
    uint64_t digest;

    (void)state;
    open_with_a_rotten_value();
    meet_it();
    (void)keepers_tend_log(dir.store);
    digest = store_dir_digest(&dir);
    meet_it();
    (void)keepers_tend_log(dir.store);
    assert_true(store_dir_digest(&dir) == digest);
}

static void a_reader_only_reports_it(void **state)
{
    uint64_t digest;

    (void)state;
    open_with_a_rotten_value();
    store_dir_close(&dir);
    digest = store_dir_digest(&dir);
    open_to_read();
    meet_it();
    assert_true(store_dir_stats(&dir).index_damaged);
    assert_true(store_dir_has(&dir, "c", "value of c"));
    store_dir_close(&dir);
    assert_true(store_dir_digest(&dir) == digest);
    open_to_read();
    assert_false(store_dir_stats(&dir).index_damaged);
    store_dir_close(&dir);
    store_dir_open(&dir); /* It has met nothing yet. */
    assert_false(store_dir_stats(&dir).index_rebuilt);
    meet_it();
    store_dir_close(&dir);
    open_to_read(); /* What a writer has noted it knows. */
    assert_true(store_dir_stats(&dir).index_damaged);
    assert_true(store_dir_has(&dir, "b", "value of b"));
    store_dir_close(&dir);
    assert_mended("value of b");
}

/* ---- Setting it aside, doing without it ---------------------------------------------------- */

static void told_nothing(void *context, const char *step, uint64_t done,
                         uint64_t total)
{
    (void)context;
    (void)step;
    (void)done;
    (void)total;
}

static void an_index_is_rebuilt_for_the_asking(void **state)
{
    (void)state;
    leave_a_store();
    dir.options.rebuild_index = true;
    dir.options.progress = told_nothing;
    dir.options.progress_context = &dir;
    store_dir_open(&dir);
    assert_ptr_equal(dir.store->options.progress, told_nothing);
    assert_ptr_equal(dir.store->options.progress_context, &dir);
    store_dir_close(&dir);
    dir.options.rebuild_index = false;
    assert_int_equal(set_aside(), 1);
    store_dir_open(&dir);
    assert_false(store_dir_stats(&dir).index_rebuilt);
    assert_true(store_dir_has(&dir, "b", "value of b"));
    store_dir_assert_verifies(&dir);
    store_dir_close(&dir);

    damage("value of b", 0); /* Nobody has met it. */
    dir.options.rebuild_index = true;
    store_dir_open(&dir);
    assert_true(store_dir_stats(&dir).index_rebuilt);
    assert_true(store_dir_has(&dir, "b", "value of b"));
    store_dir_assert_verifies(&dir);
    assert_int_equal(set_aside(), 2);
}

static void nor_is_one_needed_for_that(void **state)
{
    (void)state;
    leave_a_store();
    files_remove(at("index/data.mdb"));
    files_remove(at("index/lock.mdb"));
    files_remove(at("index"));
    dir.options.rebuild_index = true;
    store_dir_open(&dir);
    assert_true(store_dir_has(&dir, "b", "value of b"));
    assert_int_equal(set_aside(), 0);
}

/* What an index says of the log's end is evidence before it is set aside; unless
 * it is not to be touched. */
static void an_index_that_is_to_be_rebuilt_is_evidence_all_the_same(
    void **state)
{
    (void)state;
    store_dir_open(&dir);
    store_dir_put(&dir, "a", "value of a");
    store_dir_put(&dir, "b", "value of b");
    assert_int_equal(stele_checkpoint(dir.store, &dir.error), STELE_OK);
    store_dir_kill(&dir);
    files_fill_at(at("wal/0000000000000001.wal"), 2 * PAGE, 0, PAGE);
    dir.options.rebuild_index = true;
    assert_int_equal(store_dir_try_open(&dir, STELE_OPEN_EXISTING),
                     STELE_CORRUPT);
    assert_non_null(strstr(dir.error.message,
                           "unit 2 is lost, but index applied is unit 2"));
    assert_int_equal(set_aside(), 0);
    dir.options.ignore_index = true;
    store_dir_open(&dir);
    assert_true(store_dir_has(&dir, "a", "value of a"));
    assert_true(store_dir_has(&dir, "b", NULL));
    assert_int_equal(set_aside(), 1);
}

static void a_reader_that_ignores_the_index_reads_from_the_log(void **state)
{
    struct stele_verify_report report = {.size = sizeof report};
    uint64_t digest;

    (void)state;
    leave_a_store();
    damage("value of b", 0);
    digest = files_tree_digest(dir.path, NULL);
    dir.options.ignore_index = true;
    open_to_read();
    for (int look = 0; look < 2; look++) {
        assert_null(dir.store->index);
        assert_true(store_dir_has(&dir, "a", "value of a"));
        assert_true(store_dir_has(&dir, "b", "value of b"));
    }
    assert_int_equal(stele_verify(dir.store, NULL, NULL, &report, &dir.error),
                     STELE_OK);
    assert_int_equal(report.index_items, 0);
    assert_int_equal(report.records, 3);
    store_dir_close(&dir);
    assert_true(files_tree_digest(dir.path, NULL) == digest);
}

/* Not even its name is followed. */
static void what_stands_in_its_place_does_not_matter_then(void **state)
{
    (void)state;
    leave_a_store();
    files_fill_at(at("index/data.mdb"), 0, 0xee,
                  (size_t)files_size(at("index/data.mdb")));
    files_remove(at("index/lock.mdb"));
    dir.options.ignore_index = true;
    open_to_read();
    assert_true(store_dir_has(&dir, "b", "value of b"));
    assert_false(files_exists(at("index/lock.mdb")));
}

static void assert_invalid(enum stele_open_mode mode, const char *message)
{
    const uint64_t digest = files_tree_digest(dir.path, NULL);

    assert_int_equal(store_dir_try_open(&dir, mode), STELE_INVALID);
    store_dir_assert_error(&dir, "open %s: %s", dir.path, message);
    assert_true(files_tree_digest(dir.path, NULL) == digest);
}

static void the_options_are_invalid_where_they_mean_nothing(void **state)
{
    (void)state;
    leave_a_store();
    dir.options.ignore_index = true;
    assert_invalid(STELE_OPEN_EXISTING,
                   "option ignore_index: the store is opened for writing, "
                   "without rebuild_index");
    dir.options.rebuild_index = true;
    assert_invalid(STELE_OPEN_READ_ONLY,
                   "option rebuild_index: the store is opened for reading "
                   "only");
    dir.options.ignore_index = false;
    assert_invalid(STELE_OPEN_READ_ONLY,
                   "option rebuild_index: the store is opened for reading "
                   "only");
}

#define STORE_TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        STORE_TEST(a_bit_flipped_in_any_stored_value_is_found_and_mended),
        STORE_TEST(whoever_meets_it_is_told_and_the_next_open_mends_it),
        STORE_TEST(a_rotten_row_of_a_table_is_told_and_mended_alike),
        STORE_TEST(a_read_changes_nothing_on_the_disk),
        STORE_TEST(a_close_notes_it),
        STORE_TEST(a_checkpoint_notes_it),
        STORE_TEST(the_base_keeper_notes_it),
        STORE_TEST(a_note_that_finds_no_space_is_made_later),
        STORE_TEST(it_is_noted_once),
        STORE_TEST(a_reader_only_reports_it),
        STORE_TEST(an_index_is_rebuilt_for_the_asking),
        STORE_TEST(nor_is_one_needed_for_that),
        STORE_TEST(an_index_that_is_to_be_rebuilt_is_evidence_all_the_same),
        STORE_TEST(a_reader_that_ignores_the_index_reads_from_the_log),
        STORE_TEST(what_stands_in_its_place_does_not_matter_then),
        STORE_TEST(the_options_are_invalid_where_they_mean_nothing),
    };

    return cmocka_run_group_tests_name("engine: damage in the index", tests,
                                       NULL, NULL);
}
