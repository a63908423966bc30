/*
 * tests/test_engine_open.c -- what opening makes of a log or an index that is
 * not as it was left, of what an older program passes, and what statistics say
 * while something happens in between.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "engine/options.h"
#include "engine/store.h"
#include "engine/view.h"
#include "tests/lib/files.h"
#include "tests/lib/io_fault.h"
#include "tests/lib/store_dir.h"
#include "wal/anchor.h"

#define FIRST_SEGMENT  "wal/0000000000000001.wal"
#define SECOND_SEGMENT "wal/0000000000000002.wal"

enum {
    PAGE = 4096,
    LARGE_BYTES = 300 << 10, /* Three of them fill a segment. */
    SECOND_NS = 1000000000,
    QUARANTINE_MAX = 9999,
};

/* ---- A small vocabulary ----------------------------------------------------------------- */

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

/* One at a time. */
static const char *at(const char *name)
{
    return store_dir_at(&dir, name);
}

/* In any mode, and nothing is touched. */
static void assert_refused(enum stele_status status, const char *message)
{
    static const enum stele_open_mode modes[] = {
        STELE_OPEN_EXISTING, STELE_OPEN_CREATE, STELE_OPEN_READ_ONLY};
    const uint64_t digest = store_dir_digest(&dir);

    for (size_t index = 0; index < sizeof modes / sizeof *modes; index++) {
        assert_int_equal(store_dir_try_open(&dir, modes[index]), status);
        if (strstr(dir.error.message, message) == NULL) {
            fail_msg("\"%s\" is not in \"%s\"", message, dir.error.message);
        }
    }
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

/* "a" is in the index, "b" only in the log. Closed. */
static void leave_a_store(void)
{
    store_dir_open(&dir);
    store_dir_put(&dir, "a", "1");
    assert_int_equal(stele_checkpoint(dir.store, &dir.error), STELE_OK);
    store_dir_put(&dir, "b", "2");
    store_dir_kill(&dir);
}

static void assert_all_there(void)
{
    assert_true(store_dir_has(&dir, "a", "1"));
    assert_true(store_dir_has(&dir, "b", "2"));
}

/* A reader does without the index and leaves it; a writer builds a new one. */
static void assert_read_without_and_rebuilt(void)
{
    const uint64_t digest = store_dir_digest(&dir);

    if (store_dir_try_open(&dir, STELE_OPEN_READ_ONLY) != STELE_OK) {
        fail_msg("%s", dir.error.message);
    }
    assert_all_there();
    store_dir_close(&dir);
    assert_true(store_dir_digest(&dir) == digest);
    for (int again = 0; again < 2; again++) {
        store_dir_open(&dir);
        assert_int_equal(store_dir_stats(&dir).index_rebuilt, again == 0);
        assert_all_there();
        assert_verifies();
        store_dir_close(&dir);
    }
}

/* ---- The log ---------------------------------------------------------------------------------- */

/* A clean end is not looked behind: this one must not be called so, or the next
 * unit would be written over what a reader may still take for the log. */
static void a_torn_tail_is_not_forgotten_by_a_clean_close(void **state)
{
    static const char torn[] = "a torn page";
    struct wal_position end;
    char found[sizeof torn];

    (void)state;
    store_dir_open(&dir);
    store_dir_put(&dir, "a", "1");
    end = wal_writer_durable(dir.store->writer);
    store_dir_kill(&dir);
    files_write_at(at(FIRST_SEGMENT), end.end_offset + 100, torn, sizeof torn);
    files_write_at(at(FIRST_SEGMENT), end.end_offset + 2 * PAGE, torn,
                   sizeof torn);
    for (int close = 0; close < 3; close++) {
        store_dir_open(&dir);
        assert_int_equal(store_dir_stats(&dir).recovery_row, 'C');
        assert_int_equal(store_dir_stats(&dir).recovery_dropped_bytes,
                         2 * PAGE);
        store_dir_close(&dir);
    }
    store_dir_open(&dir);
    store_dir_put(&dir, "b", "2");
    assert_int_equal(wal_writer_durable(dir.store->writer).segment, 2);
    store_dir_close(&dir);
    files_read_at(at(FIRST_SEGMENT), end.end_offset + 100, found, sizeof torn);
    assert_memory_equal(found, torn, sizeof torn);
    store_dir_open(&dir);
    assert_int_equal(store_dir_stats(&dir).recovery_row, 'A');
    assert_all_there();
    assert_verifies();
}

/* The refused commit had the log go to another segment, in which nothing stands:
 * the torn tail is still what lies behind the end. */
static void nor_by_a_commit_that_was_refused(void **state)
{
    static const char torn[] = "a torn page";
    struct stele_batch *batch;
    struct wal_position end;

    (void)state;
    store_dir_open(&dir);
    store_dir_put(&dir, "a", "1");
    end = wal_writer_durable(dir.store->writer);
    store_dir_kill(&dir);
    files_write_at(at(FIRST_SEGMENT), end.end_offset + 100, torn, sizeof torn);
    assert_int_equal(stele_batch_create(&batch, &dir.error), STELE_OK);
    assert_int_equal(stele_batch_expect_absent(batch, "t", "a", 1, &dir.error),
                     STELE_OK);
    assert_int_equal(stele_batch_put(batch, "t", "b", 1, "2", 1, &dir.error),
                     STELE_OK);
    for (int close = 0; close < 2; close++) {
        store_dir_open(&dir);
        assert_int_equal(store_dir_stats(&dir).recovery_row, 'C');
        assert_int_equal(
            stele_commit(dir.store, batch, STELE_DURABLE, NULL, &dir.error),
            STELE_PRECONDITION);
        assert_int_equal(store_dir_stats(&dir).rotations, 1);
        store_dir_close(&dir);
    }
    stele_batch_destroy(batch);
    store_dir_open(&dir);
    store_dir_put(&dir, "b", "2");
    assert_int_equal(wal_writer_durable(dir.store->writer).segment, 2);
}

/* Unit 4 is the first of segment 2: not behind unit 3, where there are zeros. */
static void damage_at_the_start_of_a_segment_is_named_there(void **state)
{
    static const char expected[] =
        "recover: row D: " SECOND_SEGMENT ": offset 4096: unit 4 is damaged, "
        "but ";
    static const uint64_t offsets[] = {PAGE + 5000, PAGE + 20};

    (void)state;
    store_dir_open(&dir);
    for (int index = 0; index < 8; index++) {
        char key[16];

        snprintf(key, sizeof key, "k%d", index);
        assert_int_equal(store_dir_try_put_bytes(&dir, key, LARGE_BYTES),
                         STELE_OK);
        assert_int_equal(wal_writer_durable(dir.store->writer).segment,
                         (uint64_t)index / 3 + 1);
    }
    store_dir_kill(&dir);
    /* In its body, and in its header. */
    for (size_t index = 0; index < 2; index++) {
        files_flip_bit(at(SECOND_SEGMENT), offsets[index], 0);
        assert_refused(STELE_CORRUPT, expected);
        files_flip_bit(at(SECOND_SEGMENT), offsets[index], 0);
    }
    store_dir_open(&dir); /* Nothing else was wrong. */
}

static void an_anchor_of_another_length_is_refused(void **state)
{
    static const uint64_t lengths[] = {2 * PAGE, 3 * PAGE - 1, 3 * PAGE + 1,
                                       4 * PAGE};
    size_t bytes;
    uint8_t *whole;

    (void)state;
    leave_a_store();
    whole = files_read(at("ANCHOR"), &bytes);
    assert_int_equal(bytes, WAL_ANCHOR_BYTES);
    for (size_t index = 0; index < sizeof lengths / sizeof *lengths; index++) {
        char message[64];

        files_truncate(at("ANCHOR"), lengths[index]);
        snprintf(message, sizeof message,
                 "ANCHOR: the file has %" PRIu64 " bytes", lengths[index]);
        assert_refused(STELE_CORRUPT, message);
        files_write_at(at("ANCHOR"), 0, whole, bytes);
        files_truncate(at("ANCHOR"), bytes);
    }
    free(whole);
    store_dir_open(&dir);
    assert_all_there();
}

/* ---- The index --------------------------------------------------------------------------------- */

/* Every copy: LMDB does not write in place. How many there are. */
static unsigned damage_position(const char *key, size_t key_bytes)
{
    unsigned copies = 0;
    size_t bytes;
    uint8_t *data = files_read(at("index/data.mdb"), &bytes);
    const uint8_t *end = data + bytes;
    const uint8_t *found = memmem(data, bytes, key, key_bytes);

    while (found != NULL && found + key_bytes + WAL_POSITION_BYTES < end) {
        files_flip_bit(at("index/data.mdb"),
                       (uint64_t)(found - data) + key_bytes + 30, 0);
        copies++;
        found += key_bytes;
        found = memmem(found, (size_t)(end - found), key, key_bytes);
    }
    free(data);
    return copies;
}

static void an_index_without_a_believable_position_is_rebuilt(void **state)
{
    static const struct {
        const char *key;
        size_t bytes;
    } keys[] = {{"\0applied", 8}, {"\0applying", 9}};

    (void)state;
    leave_a_store();
    for (size_t index = 0; index < 2; index++) {
        assert_true(damage_position(keys[index].key, keys[index].bytes) > 0);
        assert_read_without_and_rebuilt();
    }
}

static void a_file_in_place_of_the_index_is_set_aside(void **state)
{
    static const char text[] = "no directory\n";
    size_t bytes;
    uint8_t *kept;

    (void)state;
    leave_a_store();
    files_remove(at("index/data.mdb"));
    files_remove(at("index/lock.mdb"));
    assert_int_equal(rmdir(at("index")), 0);
    files_write(at("index"), text, sizeof text);
    assert_read_without_and_rebuilt();
    kept = files_read(at("quarantine/index.0001"), &bytes);
    assert_int_equal(bytes, sizeof text);
    assert_memory_equal(kept, text, sizeof text);
    free(kept);
}

/* Cut short, it is no index any more. */
static void spoil_index(void)
{
    files_truncate(at("index/data.mdb"), PAGE);
}

static void every_index_that_was_set_aside_is_kept(void **state)
{
    (void)state;
    leave_a_store();
    for (unsigned round = 1; round <= 3; round++) {
        char name[64];
        uint64_t digest;

        spoil_index();
        digest = files_tree_digest(at("index"), NULL);
        store_dir_open(&dir);
        assert_all_there();
        store_dir_close(&dir);
        assert_int_equal(files_count(at("quarantine"), ""), round);
        snprintf(name, sizeof name, "quarantine/index.%04u", round);
        assert_true(files_tree_digest(at(name), NULL) == digest);
    }
    store_dir_open(&dir);
    assert_false(store_dir_stats(&dir).index_rebuilt);
}

static void a_full_quarantine_keeps_the_index_where_it_is(void **state)
{
    uint64_t digest;

    (void)state;
    leave_a_store();
    assert_int_equal(mkdir(at("quarantine"), 0700), 0);
    for (unsigned number = 1; number <= QUARANTINE_MAX; number++) {
        char name[64];

        snprintf(name, sizeof name, "quarantine/index.%04u", number);
        files_write(at(name), "", 0);
    }
    spoil_index();
    digest = files_tree_digest(at("index"), NULL);
    assert_int_equal(store_dir_try_open(&dir, STELE_OPEN_EXISTING), STELE_IO);
    assert_non_null(strstr(dir.error.message,
                           "quarantine/ holds 9999 of that name already"));
    assert_true(files_tree_digest(at("index"), NULL) == digest);
    files_remove(at("quarantine/index.9999")); /* Also the last name is one. */
    store_dir_open(&dir);
    assert_all_there();
    assert_true(files_exists(at("quarantine/index.9999/data.mdb")));
}

/* ---- An older program ----------------------------------------------------------------------------- */

static void assert_same_options(const struct stele_options *left,
                                const struct stele_options *right)
{
    assert_int_equal(left->size, right->size);
    assert_int_equal(left->mode, right->mode);
    assert_int_equal(left->segment_bytes, right->segment_bytes);
    assert_int_equal(left->memtable_bytes, right->memtable_bytes);
    assert_int_equal(left->value_bytes_max, right->value_bytes_max);
    assert_int_equal(left->batch_ops_max, right->batch_ops_max);
    assert_int_equal(left->views_max, right->views_max);
    assert_int_equal(left->index_map_bytes, right->index_map_bytes);
    assert_int_equal(left->commit_wait_ms, right->commit_wait_ms);
    assert_int_equal(left->relaxed_sync_ms, right->relaxed_sync_ms);
    assert_int_equal(left->idle_checkpoint_ms, right->idle_checkpoint_ms);
    assert_int_equal(left->view_age_max_ms, right->view_age_max_ms);
    assert_int_equal(left->min_expected_lsn, right->min_expected_lsn);
    assert_int_equal(left->allow_unsafe_fs, right->allow_unsafe_fs);
    assert_int_equal(left->skip_close_checkpoint, right->skip_close_checkpoint);
    assert_int_equal(left->rebuild_index, right->rebuild_index);
    assert_int_equal(left->ignore_index, right->ignore_index);
    assert_memory_equal(left->reserved, right->reserved, sizeof left->reserved);
    assert_true(left->progress == right->progress);
    assert_ptr_equal(left->progress_context, right->progress_context);
}

static void an_older_header_gets_no_more_bytes_than_it_knows(void **state)
{
    static const size_t sizes[] = {
        offsetof(struct stele_options, memtable_bytes),
        offsetof(struct stele_options, views_max),
        offsetof(struct stele_options, min_expected_lsn),
        sizeof(struct stele_options) - 8,
        sizeof(struct stele_options),
    };

    (void)state;
    for (size_t index = 0; index < sizeof sizes / sizeof *sizes; index++) {
        struct stele_options options;
        struct stele_options taken;
        struct stele_options defaults;
        const uint8_t *bytes = (const uint8_t *)&options;

        stele_options_init(&defaults);
        memset(&options, 0xa5, sizeof options);
        stele_options_init_sized(&options, sizes[index]);
        for (size_t byte = sizes[index]; byte < sizeof options; byte++) {
            assert_int_equal(bytes[byte], 0xa5);
        }
        assert_int_equal(options.size, sizes[index]);
        assert_int_equal(options_take(&options, &taken, &dir.error), STELE_OK);
        assert_same_options(&taken, &defaults);
    }
}

/* ---- Statistics ------------------------------------------------------------------------------------- */

/* A clock that the test turns; looking at it takes long enough for something to
 * happen, once, before the caller has the time in its hands. */
static uint64_t now_ns;
static void (*meanwhile)(void);

static uint64_t told_time(struct io *io)
{
    const uint64_t then_ns = now_ns;

    (void)io;
    if (meanwhile != NULL) {
        void (*what)(void) = meanwhile;

        meanwhile = NULL;
        now_ns += SECOND_NS;
        what();
    }
    return then_ns;
}

static void tell_the_time(void)
{
    static struct io_calls calls;
    static struct io io = {.calls = &calls};

    calls = *io_fault_io()->calls;
    calls.clock_monotonic_ns = told_time;
    now_ns = SECOND_NS;
    meanwhile = NULL;
    dir.tuning.io = &io;
}

static struct stele_view *late_view;

/* As another thread would, unless the list of views is kept from it. */
static void open_late_view(void)
{
    if (pthread_mutex_trylock(&dir.store->views_mutex.native) == 0) {
        pthread_mutex_unlock(&dir.store->views_mutex.native);
        assert_int_equal(stele_view_open(dir.store, &late_view, &dir.error),
                         STELE_OK);
    }
}

static void a_view_that_was_just_opened_is_not_ages_old(void **state)
{
    struct stele_view *view;

    (void)state;
    tell_the_time();
    store_dir_open(&dir);
    assert_int_equal(store_dir_stats(&dir).view_age_max_ns, 0);
    late_view = NULL;
    meanwhile = open_late_view;
    assert_int_equal(store_dir_stats(&dir).view_age_max_ns, 0);
    assert_null(meanwhile);
    stele_view_close(late_view);
    assert_int_equal(stele_view_open(dir.store, &view, &dir.error), STELE_OK);
    now_ns += 5 * (uint64_t)SECOND_NS;
    assert_int_equal(store_dir_stats(&dir).view_age_max_ns,
                     5 * (uint64_t)SECOND_NS);
    stele_view_close(view);
}

static void commit_meanwhile(void)
{
    (void)store_dir_put(&dir, "late", "1");
}

static void nothing_is_durable_before_it_is_visible(void **state)
{
    struct stele_stats stats;

    (void)state;
    tell_the_time();
    store_dir_open(&dir);
    store_dir_put(&dir, "early", "1");
    meanwhile = commit_meanwhile;
    stats = store_dir_stats(&dir);
    assert_null(meanwhile);
    assert_true(stats.lsn_durable <= stats.lsn_visible);
    assert_true(stats.lsn_durable >= 1);
    stats = store_dir_stats(&dir);
    assert_int_equal(stats.lsn_visible, 2);
    assert_int_equal(stats.lsn_durable, 2);
}

static void delete_ranges(unsigned from, unsigned count)
{
    struct stele_batch *batch;

    assert_int_equal(stele_batch_create(&batch, &dir.error), STELE_OK);
    for (unsigned index = from; index < from + count; index++) {
        char first[16];
        char end[16];

        snprintf(first, sizeof first, "%06u", 2 * index);
        snprintf(end, sizeof end, "%06u", 2 * index + 1);
        assert_int_equal(
            stele_batch_delete_range(batch, "t", first, 6, end, 6, &dir.error),
            STELE_OK);
    }
    assert_int_equal(
        stele_commit(dir.store, batch, STELE_RELAXED, NULL, &dir.error),
        STELE_OK);
    stele_batch_destroy(batch);
}

/* It counts against the memtable: counted too often, it would stop commits. */
static void fragments_that_many_old_views_share_are_counted_once(void **state)
{
    enum { VIEWS = 16, FRAGMENTS = 1000 };
    struct stele_view *views[VIEWS];
    uint64_t set_bytes;

    (void)state;
    store_dir_open(&dir);
    delete_ranges(0, FRAGMENTS);
    for (size_t index = 0; index < VIEWS; index++) {
        store_dir_put_relaxed(&dir, "k", "v");
        assert_int_equal(stele_view_open(dir.store, &views[index], &dir.error),
                         STELE_OK);
    }
    store_dir_put_relaxed(&dir, "k", "v");
    /* The newest state has them too. */
    assert_int_equal(atomic_load(&dir.store->publisher.retired_bytes), 0);
    set_bytes = range_set_bytes(views[0]->state->layers[STATE_ACTIVE].ranges);
    assert_true(set_bytes > FRAGMENTS);
    delete_ranges(FRAGMENTS, 1);
    store_dir_put_relaxed(&dir, "k", "v");
    assert_int_equal(atomic_load(&dir.store->publisher.retired_bytes),
                     set_bytes);
    for (size_t index = 0; index < VIEWS; index++) {
        stele_view_close(views[index]);
    }
    store_dir_put_relaxed(&dir, "k", "v");
    assert_int_equal(atomic_load(&dir.store->publisher.retired_bytes), 0);
}

#define OPEN_TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        OPEN_TEST(a_torn_tail_is_not_forgotten_by_a_clean_close),
        OPEN_TEST(nor_by_a_commit_that_was_refused),
        OPEN_TEST(damage_at_the_start_of_a_segment_is_named_there),
        OPEN_TEST(an_anchor_of_another_length_is_refused),
        OPEN_TEST(an_index_without_a_believable_position_is_rebuilt),
        OPEN_TEST(a_file_in_place_of_the_index_is_set_aside),
        OPEN_TEST(every_index_that_was_set_aside_is_kept),
        OPEN_TEST(a_full_quarantine_keeps_the_index_where_it_is),
        OPEN_TEST(an_older_header_gets_no_more_bytes_than_it_knows),
        OPEN_TEST(a_view_that_was_just_opened_is_not_ages_old),
        OPEN_TEST(nothing_is_durable_before_it_is_visible),
        OPEN_TEST(fragments_that_many_old_views_share_are_counted_once),
    };

    return cmocka_run_group_tests_name("engine/open", tests, NULL, NULL);
}
