/*
 * tests/test_engine_follow.c -- a handle that only reads: what it shows beside a
 * writer that comes, goes, checkpoints and dies at the worst moment, and when
 * its own reading fails half way.
 *
 * The writer is another process, which does one thing each time it is asked and
 * then says so: every interleaving is chosen by the test.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "engine/checkpoint.h"
#include "engine/commit.h"
#include "engine/store.h"
#include "engine/view.h"
#include "tests/lib/child.h"
#include "tests/lib/files.h"
#include "tests/lib/io_fault.h"
#include "tests/lib/run.h"
#include "tests/lib/sanitized.h"
#include "tests/lib/store_dir.h"
#include "tests/lib/store_snapshot.h"

#define FIRST_SEGMENT "wal/0000000000000001.wal"

enum {
    FAULT_STEP = SANITIZED_CHOICE(1, 4), /* Everything takes longer there. */
    PAGE = 4096,
    HINT_OFFSET = 2 * PAGE, /* In ANCHOR. */
    HINT_BYTES = 104,
    KEY_BYTES = 32,
    LARGE_BYTES = 300 << 10, /* A few of them fill a segment. */
    MEMTABLE_BYTES_MIN = 64 << 10,
    MAP_BYTES_MIN = 1 << 20,
    ROUNDS_MAX = 200, /* More than any one view makes calls of a kind. */
};

static void name_key(uint64_t n, char key[KEY_BYTES])
{
    snprintf(key, KEY_BYTES, "k%06" PRIu64, n);
}

/* ---- The writer process -------------------------------------------------------------- */

enum command {
    OPEN,
    OPEN_HINTLESS,   /* On a disk that has no room for the hint. */
    PUT,             /* Key n, a value of `more` bytes. The answer: its LSN. */
    DELETE_ALL,      /* By prefix. */
    CHECKPOINT,      /* Whole. */
    CHECKPOINT_PART, /* End the one under way, begin the next. */
    TRIM,      /* Snapshot; the log before it goes. The answer: its LSN. */
    CLOSE,     /* Clean; the memtable is left to the log. */
    ABANDON,   /* As if it had been killed. */
    HOLD_LOCK, /* Nothing but LOCK, as a writer has that just began. */
};

struct writer {
    const char *path;
    struct stele *store;
    struct checkpoint *checkpoint; /* Under way. */
    struct io_dir *dir;            /* Of HOLD_LOCK. */
    struct io_file *lock_file;
    struct stele_error error;
};

/* Durability is not the question here: what other processes see is. */
static int no_sync(struct io *io, int fd)
{
    (void)io;
    (void)fd;
    return 0;
}

static ssize_t no_room_for_the_hint(struct io *io, int fd,
                                    const struct iovec *iov, int count,
                                    uint64_t offset)
{
    return iov[0].iov_len == HINT_BYTES && offset == HINT_OFFSET
               ? -ENOSPC
               : io_posix()->calls->writev(io, fd, iov, count, offset);
}

static void writer_open(struct writer *writer, bool hintless)
{
    static struct io_calls calls;
    static struct io io = {.calls = &calls};
    struct stele_options options;
    struct store_tuning tuning;

    calls = *io_posix()->calls;
    calls.sync_data = no_sync;
    calls.sync_dir = no_sync;
    if (hintless) {
        calls.writev = no_room_for_the_hint;
    }
    stele_options_init(&options);
    options.mode = STELE_OPEN_CREATE;
    options.segment_bytes = 1 << 20;
    options.memtable_bytes = 64 << 20;
    options.index_map_bytes = 64 << 20;
    options.skip_close_checkpoint = true;
    store_tuning_init(&tuning);
    tuning.io = &io;
    tuning.manual = true;
    run_expect_ok(store_open(writer->path, &options, &tuning, &writer->store,
                             &writer->error),
                  &writer->error, "open");
}

static uint64_t writer_put(struct writer *writer, uint64_t n, uint64_t bytes)
{
    char key[KEY_BYTES];
    uint8_t *value = malloc(bytes);
    uint64_t lsn = 0;

    if (value == NULL) {
        run_fail("no memory for a value");
    }
    memset(value, 'v', bytes);
    name_key(n, key);
    run_expect_ok(stele_put(writer->store, "t", key, strlen(key), value, bytes,
                            &lsn, &writer->error),
                  &writer->error, "put");
    free(value);
    return lsn;
}

static void writer_delete_all(struct writer *writer)
{
    struct stele_batch *batch;

    run_expect_ok(stele_batch_create(&batch, &writer->error), &writer->error,
                  "create batch");
    run_expect_ok(stele_batch_delete_prefix(batch, "t", "k", 1, &writer->error),
                  &writer->error, "add a delete");
    run_expect_ok(
        stele_commit(writer->store, batch, STELE_DURABLE, NULL, &writer->error),
        &writer->error, "delete");
    stele_batch_destroy(batch);
}

static void writer_advance(struct writer *writer, uint64_t ops_max)
{
    bool done;

    run_expect_ok(checkpoint_advance(writer->store, writer->checkpoint, ops_max,
                                     &done, &writer->error),
                  &writer->error, "advance the checkpoint");
    if (done) {
        checkpoint_destroy(writer->checkpoint);
        writer->checkpoint = NULL;
    }
}

static void writer_checkpoint_part(struct writer *writer)
{
    bool froze;

    while (writer->checkpoint != NULL) {
        writer_advance(writer, UINT64_MAX);
    }
    run_expect_ok(commit_freeze(writer->store, &froze, &writer->error),
                  &writer->error, "freeze");
    if (froze) {
        run_expect_ok(checkpoint_begin(writer->store, &writer->checkpoint,
                                       &writer->error),
                      &writer->error, "begin a checkpoint");
        writer_advance(writer, 1);
    }
}

static void writer_abandon(struct writer *writer)
{
    checkpoint_destroy(writer->checkpoint);
    writer->checkpoint = NULL;
    if (writer->store != NULL) {
        store_abandon(writer->store);
        writer->store = NULL;
    }
    io_file_close(writer->lock_file);
    writer->lock_file = NULL;
    io_dir_close(writer->dir);
    writer->dir = NULL;
}

static void writer_hold_lock(struct writer *writer)
{
    run_expect_ok(
        io_dir_open(io_posix(), writer->path, &writer->dir, &writer->error),
        &writer->error, "open the directory");
    run_expect_ok(io_file_open(writer->dir, STORE_LOCK_NAME, IO_OPEN_READ_WRITE,
                               &writer->lock_file, &writer->error),
                  &writer->error, "open LOCK");
    run_expect_ok(io_file_lock(writer->lock_file, 0, &writer->error),
                  &writer->error, "lock");
}

static int writer_main(const char *path)
{
    struct writer writer = {.path = path};
    struct message message;

    while (parent_receive(&message)) {
        switch ((enum command)message.kind) {
        case OPEN:
            writer_open(&writer, false);
            break;
        case OPEN_HINTLESS:
            writer_open(&writer, true);
            break;
        case PUT:
            message.lsn = writer_put(&writer, message.n, message.more);
            break;
        case DELETE_ALL:
            writer_delete_all(&writer);
            break;
        case CHECKPOINT:
            run_expect_ok(stele_checkpoint(writer.store, &writer.error),
                          &writer.error, "checkpoint");
            break;
        case CHECKPOINT_PART:
            writer_checkpoint_part(&writer);
            break;
        case TRIM:
            message.lsn = store_snapshot_take(writer.store);
            message.n = store_snapshot_trim(writer.store, message.lsn);
            if (message.n == 0) {
                run_fail("there was no log to remove");
            }
            break;
        case CLOSE:
            run_expect_ok(stele_close(writer.store, &writer.error),
                          &writer.error, "close");
            writer.store = NULL;
            break;
        case ABANDON:
            writer_abandon(&writer);
            break;
        case HOLD_LOCK:
            writer_hold_lock(&writer);
            break;
        }
        parent_send(&message);
    }
    writer_abandon(&writer);
    return EXIT_SUCCESS;
}

/* ---- A small vocabulary ----------------------------------------------------------------- */

static struct store_dir dir; /* The reader's: this process only reads. */
static struct child writer;
static bool writer_started;

static uint64_t ask_for(enum command command, uint64_t n, uint64_t bytes)
{
    struct message message = {.kind = (uint32_t)command, .n = n, .more = bytes};

    if (!writer_started) {
        const char *const arguments[] = {"writer", dir.path, NULL};

        writer = child_start(arguments);
        writer_started = true;
    }
    child_send(&writer, &message);
    if (!child_receive(&writer, &message)) {
        run_fail("the writer is gone");
    }
    return message.lsn;
}

static void ask(enum command command)
{
    (void)ask_for(command, 0, 0);
}

static uint64_t ask_put(uint64_t n)
{
    return ask_for(PUT, n, 1);
}

static int setup(void **state)
{
    (void)state;
    store_dir_make(&dir);
    dir.options.memtable_bytes = 64 << 20;
    writer_started = false;
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    if (writer_started) {
        child_dismiss(&writer);
        child_join(&writer);
        child_forget(&writer);
    }
    store_dir_remove(&dir);
    return 0;
}

static const char *at(const char *name)
{
    return store_dir_at(&dir, name);
}

static void open_reader(void)
{
    if (store_dir_try_open(&dir, STELE_OPEN_READ_ONLY) != STELE_OK) {
        fail_msg("%s", dir.error.message);
    }
}

static struct stele_view *open_view(void)
{
    struct stele_view *view;

    if (stele_view_open(dir.store, &view, &dir.error) != STELE_OK) {
        fail_msg("%s", dir.error.message);
    }
    return view;
}

static bool view_has(struct stele_view *view, uint64_t n)
{
    struct stele_value value;
    char key[KEY_BYTES];
    enum stele_status status;

    name_key(n, key);
    status = stele_view_get(view, "t", key, strlen(key), &value, &dir.error);
    assert_true(status == STELE_OK || status == STELE_NOT_FOUND);
    return status == STELE_OK;
}

/* In a new view. */
static bool has(uint64_t n)
{
    struct stele_view *view = open_view();
    const bool found = view_has(view, n);

    stele_view_close(view);
    return found;
}

static void arm(enum io_fault_call call, uint64_t after_calls, int sys_errno)
{
    const struct io_fault fault = {.call = call,
                                   .suffix = ".wal",
                                   .after_calls = after_calls,
                                   .times = 1,
                                   .sys_errno = sys_errno};

    io_fault_arm(&fault);
}

/* ---- What the index knows ------------------------------------------------------------------ */

/* The index holds an acknowledged commit that the log has lost; nothing else
 * tells of it. To do without the index, as without any other damaged one, would
 * be to show a store without the commit. */
static void a_log_that_ends_before_the_index_is_not_shown(void **state)
{
    uint64_t digest;

    (void)state;
    store_dir_open(&dir);
    store_dir_put(&dir, "a", "1");
    store_dir_put(&dir, "b", "1");
    assert_int_equal(stele_checkpoint(dir.store, &dir.error), STELE_OK);
    store_dir_kill(&dir);
    files_fill_at(at(FIRST_SEGMENT), 2 * PAGE, 0, PAGE);
    digest = store_dir_digest(&dir);
    assert_int_equal(store_dir_try_open(&dir, STELE_OPEN_READ_ONLY),
                     STELE_CORRUPT);
    assert_non_null(strstr(dir.error.message,
                           "recover: row B: " FIRST_SEGMENT
                           ": offset 8192: unit 2 is lost, but index"));
    assert_true(store_dir_digest(&dir) == digest);
}

/* ---- Failures half way ------------------------------------------------------------------------ */

/* After each of them the next view is right: nothing deleted is back, and nothing
 * is missing. */
static void fail_everywhere(enum io_fault_call call, int sys_errno,
                            bool writer_lives)
{
    uint64_t struck = 1;
    uint64_t n = 0;

    ask(OPEN);
    ask_put(n);
    open_reader();
    for (uint64_t after = 0; struck > 0; after += FAULT_STEP, n += 10) {
        struct stele_view *view;
        enum stele_status status;

        assert_true(after < ROUNDS_MAX);
        ask_put(n);
        ask(CHECKPOINT); /* So that no round is longer than another. */
        assert_true(has(n));
        ask(DELETE_ALL);
        for (uint64_t large = 1; large <= 4; large++) {
            ask_for(PUT, n + large, LARGE_BYTES);
        }
        ask_put(n + 9);
        if (!writer_lives) {
            ask(CLOSE);
        }
        arm(call, after, sys_errno);
        status = stele_view_open(dir.store, &view, &dir.error);
        struck = io_fault_count();
        io_fault_arm(NULL);
        if (status == STELE_OK) {
            assert_false(view_has(view, n));
            assert_true(view_has(view, n + 9));
            stele_view_close(view);
        } else {
            assert_true(struck > 0);
            assert_int_not_equal(status, STELE_CORRUPT);
        }
        for (int again = 0; again < 2; again++) {
            assert_false(has(n));
            assert_true(has(n + 4));
            assert_true(has(n + 9));
        }
        if (!writer_lives) {
            ask(OPEN);
        }
    }
    assert_true(n >= 20); /* It struck. */
}

static void a_failed_read_leaves_nothing_half_applied(void **state)
{
    (void)state;
    fail_everywhere(IO_FAULT_READ, EIO, true);
}

static void also_without_a_writer(void **state)
{
    (void)state;
    fail_everywhere(IO_FAULT_READ, EIO, false);
}

static void a_segment_that_cannot_be_opened_leaves_nothing_stale(void **state)
{
    (void)state;
    fail_everywhere(IO_FAULT_OPEN, EMFILE, true);
}

static void also_without_a_writer_in_the_way(void **state)
{
    (void)state;
    fail_everywhere(IO_FAULT_OPEN, EMFILE, false);
}

/* ---- Writers that start ------------------------------------------------------------------------- */

/* It holds LOCK and is still looking: the hint is from another life, or, as
 * here, lost. What was acknowledged then is shown all the same. */
static void a_writer_that_only_holds_LOCK_has_declared_nothing(void **state)
{
    (void)state;
    ask(OPEN);
    ask_put(1);
    ask_put(2);
    ask(ABANDON);
    files_fill_at(at("ANCHOR"), HINT_OFFSET, 0, HINT_BYTES);
    for (int when = 0; when < 2; when++) {
        if (when == 0) { /* Before the handle is opened, and after. */
            ask(HOLD_LOCK);
        }
        open_reader();
        if (when == 1) {
            ask(HOLD_LOCK);
        }
        assert_true(has(1));
        assert_true(has(2));
        store_dir_close(&dir);
        ask(ABANDON);
    }
}

/* Reads of the log; before the one of this number a writer comes by. */
static int64_t visit_before_read;
static int64_t reads;
static bool visitor_stays;
static bool visitor_is_there; /* All the time. */
static uint64_t visits;

static bool is_log(int fd)
{
    char link[64];
    char name[FILES_PATH_BYTES];
    ssize_t bytes;

    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    bytes = readlink(link, name, sizeof name);
    return bytes > 4 && memcmp(name + bytes - 4, ".wal", 4) == 0;
}

static void visit(void)
{
    if (!visitor_is_there) {
        ask(OPEN);
    }
    for (int puts = 0; puts < 4; puts++) {
        ask_put(++visits);
    }
    if (!visitor_stays) {
        ask(ABANDON);
    }
}

static ssize_t read_with_visitors(struct io *io, int fd, void *target,
                                  size_t bytes, uint64_t offset)
{
    (void)io;
    if (is_log(fd) && reads++ == visit_before_read) {
        visit();
    }
    return io_posix()->calls->read(io_posix(), fd, target, bytes, offset);
}

static void open_with_visitors(void)
{
    static struct io_calls calls;
    static struct io io = {.calls = &calls};

    calls = *io_posix()->calls;
    calls.read = read_with_visitors;
    calls.sync_data = no_sync;
    dir.tuning.io = &io;
    visits = 0;
    visit_before_read = -1;
    open_reader();
}

static void expect_visits_anywhere(void)
{
    visitor_is_there = false;
    ask(OPEN);
    ask(ABANDON);
    open_with_visitors();
    for (int64_t before = 0; before < ROUNDS_MAX; before += FAULT_STEP) {
        const uint64_t visits_before = visits;

        visit(); /* So that there is something to look at, unproven. */
        if (visitor_stays) {
            ask(ABANDON);
        }
        reads = 0;
        visit_before_read = before;
        assert_true(has(visits_before + 4)); /* Not refused, and shown. */
        visit_before_read = -1;
        if (reads <= before) {
            assert_true(before > 0);
            return;
        }
        assert_true(has(visits));
        if (visitor_stays) {
            ask(ABANDON);
        }
    }
    fail_msg("a view reads the log more than %d times", ROUNDS_MAX);
}

static void a_verdict_under_which_a_writer_came_and_went_is_not_believed(
    void **state)
{
    (void)state;
    visitor_stays = false;
    expect_visits_anywhere();
}

static void also_if_the_writer_stays(void **state)
{
    (void)state;
    visitor_stays = true;
    expect_visits_anywhere();
}

/* What it commits moves neither the hint nor ANCHOR. Such a log, read while it
 * grows, looks like one with a gap. */
static void a_writer_without_room_for_the_hint_is_shown_as_far_as_ANCHOR_goes(
    void **state)
{
    (void)state;
    ask(OPEN_HINTLESS);
    open_with_visitors();
    visitor_is_there = true;
    for (visit_before_read = 0; visit_before_read < 10; visit_before_read++) {
        reads = 0;
        visit();
        assert_false(has(visits)); /* Late, but not refused. */
    }
    visit_before_read = -1;
    ask(CLOSE);
    assert_true(has(visits));
}

static void what_the_caller_knows_is_demanded_beside_a_writer_too(void **state)
{
    uint64_t lsn;

    (void)state;
    ask(OPEN);
    lsn = ask_put(1);
    dir.options.min_expected_lsn = lsn + 1;
    for (int lives = 1; lives >= 0; lives--) {
        assert_int_equal(store_dir_try_open(&dir, STELE_OPEN_READ_ONLY),
                         STELE_CORRUPT);
        assert_non_null(strstr(dir.error.message, "the caller expects"));
        if (lives == 1) {
            ask(CLOSE);
        }
    }
    ask(OPEN);
    dir.options.min_expected_lsn = lsn;
    open_reader();
    assert_true(has(1));
}

/* Nor is it opened again and again, which would cost the whole tail each time. */
static void a_reader_that_ignores_the_index_follows_by_the_log_alone(
    void **state)
{
    (void)state;
    ask(OPEN);
    (void)ask_put(1);
    (void)ask_put(2);
    ask(CHECKPOINT);
    dir.options.ignore_index = true;
    open_reader();
    assert_true(has(1));
    (void)ask_put(3);
    assert_true(has(3));
    ask(CHECKPOINT);
    assert_true(has(2));
    assert_null(dir.store->index);
    assert_int_equal(store_dir_stats(&dir).recovery_replayed_records, 3);
}

/* ---- The index under a reader ---------------------------------------------------------------------- */

/* Always in the middle of a checkpoint, as under load. */
static void the_tail_is_begun_anew_behind_a_newer_index(void **state)
{
    enum { PUTS = 300, PUT_BYTES = 8 << 10, PUTS_PER_CHECKPOINT = 8 };
    enum { TAIL_BYTES_MAX = 8 * MEMTABLE_BYTES_MIN };
    uint64_t largest = 0;

    (void)state;
    dir.options.memtable_bytes = MEMTABLE_BYTES_MIN;
    ask(OPEN);
    ask_put(0);
    open_reader();
    for (uint64_t n = 1; n <= PUTS; n++) {
        uint64_t bytes;

        ask_for(PUT, n, PUT_BYTES);
        if (n % PUTS_PER_CHECKPOINT == 0) {
            ask(CHECKPOINT_PART);
        }
        assert_true(has(n));
        bytes = store_dir_stats(&dir).memtable_bytes;
        largest = bytes > largest ? bytes : largest;
    }
    assert_true(largest > 4 * MEMTABLE_BYTES_MIN); /* It had to, ... */
    assert_true(largest < TAIL_BYTES_MAX);         /* ... and it did. */
    for (uint64_t n = 0; n <= PUTS; n++) {
        assert_true(has(n));
    }
}

/* A small map, and then the writer puts three times as much into the index. */
static void outgrow_the_map(bool view_is_open)
{
    enum { LARGE = 10 };
    struct stele_view *held;
    struct stele_view *view;

    dir.options.index_map_bytes = MAP_BYTES_MIN;
    ask(OPEN);
    ask_put(0);
    ask(CHECKPOINT);
    open_reader();
    assert_true(has(0));
    held = view_is_open ? open_view() : NULL;
    for (uint64_t n = 1; n <= LARGE; n++) {
        ask_for(PUT, n, LARGE_BYTES);
    }
    ask(CHECKPOINT);
    if (view_is_open) {
        assert_int_equal(stele_view_open(dir.store, &view, &dir.error),
                         STELE_BUSY);
        assert_true(view_has(held, 0));
        assert_false(view_has(held, 1));
        stele_view_close(held);
    }
    for (uint64_t n = 0; n <= LARGE; n++) {
        assert_true(has(n));
    }
}

static void a_map_that_the_writer_outgrew_is_followed(void **state)
{
    (void)state;
    outgrow_the_map(false);
}

static void but_only_once_no_view_is_open_in_it(void **state)
{
    (void)state;
    outgrow_the_map(true);
}

static void remove_index(void)
{
    files_remove(at("index/data.mdb"));
    files_remove(at("index/lock.mdb"));
}

static uint64_t generation(void)
{
    return dir.store->index == NULL
               ? 0
               : index_identity(dir.store->index)->generation;
}

static void an_index_that_was_rebuilt_is_taken_over(void **state)
{
    struct stele_view *held;

    (void)state;
    ask(OPEN);
    ask_put(1);
    ask(CHECKPOINT);
    open_reader();
    assert_true(has(1));
    assert_int_equal(generation(), 1);
    held = open_view();
    ask(CLOSE);
    remove_index();
    ask(OPEN);
    ask_put(2);
    ask(CHECKPOINT);
    /* While the view is open the removed one will do. */
    assert_true(has(1));
    assert_true(has(2));
    assert_int_equal(generation(), 1);
    assert_true(view_has(held, 1));
    assert_false(view_has(held, 2));
    stele_view_close(held);
    ask_put(3);
    assert_true(has(1));
    assert_true(has(2));
    assert_true(has(3));
    assert_int_equal(generation(), 2);
}

static void a_reader_without_an_index_takes_the_first_one(void **state)
{
    (void)state;
    ask(OPEN);
    ask_put(1);
    ask(CLOSE);
    remove_index();
    open_reader();
    assert_true(has(1));
    assert_int_equal(generation(), 0);
    ask(OPEN);
    ask_put(2);
    ask(CHECKPOINT);
    assert_true(has(1));
    assert_true(has(2));
    assert_int_equal(generation(), 2);
}

static void without_lock_mdb_reading_makes_none(void **state)
{
    struct stele_view *held;
    struct stele_view *view;
    uint64_t digest;

    (void)state;
    ask(OPEN);
    ask_put(1);
    ask(CHECKPOINT);
    ask_put(2);
    ask(CLOSE);
    files_remove(at("index/lock.mdb"));
    digest = files_tree_digest(dir.path, NULL);
    open_reader();
    assert_true(has(1));
    assert_true(has(2));
    held = open_view();
    assert_true(files_tree_digest(dir.path, NULL) == digest);
    /* A writer that now comes knows nothing of the view: no further one. */
    ask(OPEN);
    assert_int_equal(stele_view_open(dir.store, &view, &dir.error), STELE_BUSY);
    assert_non_null(strstr(dir.error.message, "close the open views"));
    stele_view_close(held);
    ask_put(3);
    assert_true(has(1));
    assert_true(has(3));
    assert_true(files_exists(at("index/lock.mdb")));
}

/* ---- Threads ------------------------------------------------------------------------------------------- */

static _Atomic bool stop_viewing;

static void *view_again_and_again(void *context)
{
    struct stele *store = context;

    while (!atomic_load(&stop_viewing)) {
        struct stele_segment segment;
        struct stele_view *view;
        struct stele_error error;

        run_expect_ok(stele_view_open(store, &view, &error), &error,
                      "open view");
        stele_view_close(view);
        run_expect_ok(stele_segment_next(store, 0, &segment, &error), &error,
                      "segment");
    }
    return NULL;
}

static void statistics_may_be_asked_for_while_views_are_opened(void **state)
{
    enum { ROUNDS = 200 };
    pthread_t threads[2];
    uint64_t lsn = 0;

    (void)state;
    ask(OPEN);
    ask_put(0);
    open_reader();
    atomic_store(&stop_viewing, false);
    for (size_t index = 0; index < 2; index++) {
        assert_int_equal(pthread_create(&threads[index], NULL,
                                        view_again_and_again, dir.store),
                         0);
    }
    for (uint64_t round = 0; round < ROUNDS; round++) {
        struct stele_stats stats;

        if (round == ROUNDS / 2) {
            ask(ABANDON); /* From here on by verdict. */
            ask(OPEN);
            ask(CLOSE);
        } else if (round < ROUNDS / 2) {
            (void)ask_put(round);
        }
        stats = store_dir_stats(&dir);
        assert_true(stats.lsn_visible >= lsn);
        assert_true(stats.lsn_durable <= stats.lsn_visible);
        lsn = stats.lsn_visible;
    }
    atomic_store(&stop_viewing, true);
    for (size_t index = 0; index < 2; index++) {
        pthread_join(threads[index], NULL);
    }
}

/* ---- Snapshots -------------------------------------------------------------------------- */

static void put_large(uint64_t first, uint64_t count)
{
    for (uint64_t n = first; n < first + count; n++) {
        (void)ask_for(PUT, n, LARGE_BYTES);
    }
}

static void assert_shows(uint64_t count)
{
    struct stele_view *view = open_view();

    for (uint64_t n = 0; n < count; n++) {
        assert_true(view_has(view, n));
    }
    assert_false(view_has(view, count));
    stele_view_close(view);
}

/* Retention asks no reader. */
static void a_tail_whose_log_was_removed_is_begun_anew(void **state)
{
    struct stele_view *before;

    (void)state;
    ask(OPEN);
    put_large(0, 2);
    open_reader();
    before = open_view();
    put_large(2, 8);
    ask(TRIM);
    put_large(10, 1);
    assert_shows(11);
    assert_true(view_has(before, 1));
    assert_false(view_has(before, 2));
    stele_view_close(before);
}

/* Its oldest segment is gone, too, so that there is no other base. */
static void leave_only_a_snapshot(void)
{
    ask(OPEN);
    put_large(0, 8);
    ask(TRIM);
    put_large(8, 2);
    files_remove(at("index/data.mdb"));
}

static void without_an_index_a_reader_stands_on_a_snapshot(void **state)
{
    struct stele_view *view;
    uint64_t count;

    (void)state;
    leave_only_a_snapshot();
    open_reader();
    assert_shows(10);
    put_large(10, 3);
    assert_shows(13);
    view = open_view();
    assert_non_null(view->base.snapshot);
    assert_int_equal(stele_table_count(view, "t", &count, &dir.error),
                     STELE_OK);
    assert_int_equal(count, 13);
    ask(DELETE_ALL);
    assert_shows(0);
    assert_true(view_has(view, 12));
    stele_view_close(view);
}

/* The one that was looked at is not read again for every view. */
static void without_an_index_a_reader_goes_on_with_its_tail(void **state)
{
    uint64_t replayed;

    (void)state;
    leave_only_a_snapshot();
    open_reader();
    assert_shows(10);
    replayed = store_dir_stats(&dir).recovery_replayed_records;
    put_large(10, 1);
    assert_shows(11);
    assert_shows(11);
    assert_int_equal(store_dir_stats(&dir).recovery_replayed_records,
                     replayed + 1);
}

static void without_a_snapshot_either_it_says_so(void **state)
{
    char path[FILES_PATH_BYTES];

    (void)state;
    leave_only_a_snapshot();
    store_snapshot_path(dir.path, 8, path);
    files_flip_bit(path, files_size(path) / 2, 0);
    assert_int_equal(store_dir_try_open(&dir, STELE_OPEN_READ_ONLY),
                     STELE_CORRUPT);
    assert_non_null(
        strstr(dir.error.message,
               "row E: no base is left: snapshot/0000000000000008.snap: "));
    files_remove(path);
    assert_int_equal(store_dir_try_open(&dir, STELE_OPEN_READ_ONLY),
                     STELE_CORRUPT);
    store_dir_assert_error(&dir, "open %s: row E: no base is left", dir.path);
}

#define FOLLOW_TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        FOLLOW_TEST(a_log_that_ends_before_the_index_is_not_shown),
        FOLLOW_TEST(a_failed_read_leaves_nothing_half_applied),
        FOLLOW_TEST(also_without_a_writer),
        FOLLOW_TEST(a_segment_that_cannot_be_opened_leaves_nothing_stale),
        FOLLOW_TEST(also_without_a_writer_in_the_way),
        FOLLOW_TEST(a_writer_that_only_holds_LOCK_has_declared_nothing),
        FOLLOW_TEST(
            a_verdict_under_which_a_writer_came_and_went_is_not_believed),
        FOLLOW_TEST(also_if_the_writer_stays),
        FOLLOW_TEST(
            a_writer_without_room_for_the_hint_is_shown_as_far_as_ANCHOR_goes),
        FOLLOW_TEST(what_the_caller_knows_is_demanded_beside_a_writer_too),
        FOLLOW_TEST(a_reader_that_ignores_the_index_follows_by_the_log_alone),
        FOLLOW_TEST(the_tail_is_begun_anew_behind_a_newer_index),
        FOLLOW_TEST(a_map_that_the_writer_outgrew_is_followed),
        FOLLOW_TEST(but_only_once_no_view_is_open_in_it),
        FOLLOW_TEST(an_index_that_was_rebuilt_is_taken_over),
        FOLLOW_TEST(a_reader_without_an_index_takes_the_first_one),
        FOLLOW_TEST(without_lock_mdb_reading_makes_none),
        FOLLOW_TEST(a_tail_whose_log_was_removed_is_begun_anew),
        FOLLOW_TEST(without_an_index_a_reader_stands_on_a_snapshot),
        FOLLOW_TEST(without_an_index_a_reader_goes_on_with_its_tail),
        FOLLOW_TEST(without_a_snapshot_either_it_says_so),
        FOLLOW_TEST(statistics_may_be_asked_for_while_views_are_opened),
    };

    if (argc == 3 && strcmp(argv[1], "writer") == 0) {
        return writer_main(argv[2]);
    }
    run_seed(); /* A child of ours that fails names it. */
    return cmocka_run_group_tests_name("engine/follow", tests, NULL, NULL);
}
