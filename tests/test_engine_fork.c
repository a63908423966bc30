/*
 * tests/test_engine_fork.c -- what fork() makes of an open store.
 *
 * Real forks. A child checks with EXPECT and ends by _exit(): cmocka's
 * assertions are for the parent. "Another process" is this program, started
 * anew, without anything inherited.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <dirent.h>
#include <malloc.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/lib/child.h"
#include "tests/lib/store_dir.h"

static const char forked_message[] =
    "the handle belongs to the process that forked this one: only close it "
    "here, and open the store anew";

static struct store_dir dir;
static struct stele_error error;

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

/* In a child. */
#define EXPECT(truth) expect(truth, #truth, __LINE__)
static void expect(bool truth, const char *text, int line)
{
    if (!truth) {
        fprintf(stderr, "in a child, line %d: %s: %s\n", line, text,
                error.message);
        _exit(1);
    }
}

static bool is_forked(enum stele_status status)
{
    const bool forked = status == STELE_FORKED &&
                        error.status == STELE_FORKED &&
                        strcmp(error.message, forked_message) == 0;

    error = (struct stele_error){0};
    return forked;
}

/* One end waits for the other: a byte through a pipe. */
struct gate {
    int fds[2];
};
static struct gate child_ready = {{-1, -1}};
static struct gate parent_done = {{-1, -1}};

static pid_t fork_child(void (*body)(void))
{
    const pid_t pid = fork();

    assert_true(pid >= 0);
    if (pid == 0) {
        /* Should the parent end early, the gate is no longer waited for. */
        close(parent_done.fds[1]);
        body();
        _exit(0);
    }
    close(child_ready.fds[1]); /* And should the child. */
    child_ready.fds[1] = -1;
    return pid;
}

static void wait_for(pid_t pid)
{
    int outcome;

    assert_int_equal(waitpid(pid, &outcome, 0), pid);
    assert_true(WIFEXITED(outcome));
    assert_int_equal(WEXITSTATUS(outcome), 0);
}

static void in_child(void (*body)(void))
{
    wait_for(fork_child(body));
}

static void gate_make(struct gate *gate)
{
    assert_int_equal(pipe(gate->fds), 0);
}

static void gate_open(const struct gate *gate)
{
    if (write(gate->fds[1], "", 1) != 1) {
        abort();
    }
}

static void gate_pass(const struct gate *gate)
{
    char byte;

    if (read(gate->fds[0], &byte, 1) != 1) {
        abort();
    }
}

static void gate_remove(struct gate *gate)
{
    close(gate->fds[0]);
    close(gate->fds[1]);
    *gate = (struct gate){{-1, -1}};
}

/* What another process is told when it opens the store. */
static enum stele_status another_process(const char *how)
{
    const char *const arguments[] = {"open", dir.path, how, NULL};
    struct child child = child_start(arguments);
    struct message answer;

    assert_true(child_receive(&child, &answer));
    child_join(&child);
    child_forget(&child);
    return (enum stele_status)answer.kind;
}

static int be_another_process(const char *path, const char *how)
{
    struct stele_options options;
    struct message answer = {0};
    struct stele *store = NULL;

    stele_options_init(&options);
    options.mode =
        strcmp(how, "read") == 0 ? STELE_OPEN_READ_ONLY : STELE_OPEN_EXISTING;
    options.index_map_bytes = 64 << 20;
    answer.kind = stele_open(path, &options, &store, &error);
    if (answer.kind == STELE_OK) {
        answer.kind = stele_close(store, &error);
    }
    parent_send(&answer);
    return 0;
}

/* Descriptors of this process on what is in the store's directory. */
static size_t descriptors(const char *name)
{
    DIR *list = opendir("/proc/self/fd");
    size_t count = 0;

    for (struct dirent *entry; (entry = readdir(list)) != NULL;) {
        char link[300];
        char target[512];
        ssize_t bytes;

        snprintf(link, sizeof link, "/proc/self/fd/%s", entry->d_name);
        bytes = readlink(link, target, sizeof target - 1);
        if (bytes > 0) {
            target[bytes] = '\0';
            count += strncmp(target, dir.path, strlen(dir.path)) == 0 &&
                     strstr(target + strlen(dir.path), name) != NULL;
        }
    }
    closedir(list);
    return count;
}

/* ---- Calls -------------------------------------------------------------------- */

static struct stele_batch *batch;

static void done(void *context, enum stele_status status,
                 const struct stele_error *reason)
{
    (void)context;
    (void)status;
    (void)reason;
    expect(false, "no callback", __LINE__);
}

static void call_everything_on_the_store(void)
{
    const uint8_t tag[STELE_TAG_BYTES] = {1};
    struct stele_stats stats = {.size = sizeof stats};
    struct stele_verify_report report = {.size = sizeof report};
    struct stele_view *view;
    uint64_t lsn;

    EXPECT(
        is_forked(stele_commit(dir.store, batch, STELE_DURABLE, NULL, &error)));
    EXPECT(is_forked(stele_commit_async(dir.store, batch, STELE_DURABLE, NULL,
                                        done, NULL, &error)));
    EXPECT(is_forked(stele_put(dir.store, "t", "k", 1, "v", 1, NULL, &error)));
    EXPECT(is_forked(stele_put(dir.store, "", "", 0, "v", 1, NULL, &error)));
    EXPECT(is_forked(stele_delete(dir.store, "t", "k", 1, NULL, &error)));
    EXPECT(is_forked(stele_sync(dir.store, &error)));
    EXPECT(is_forked(stele_checkpoint(dir.store, &error)));
    EXPECT(is_forked(stele_find_tag(dir.store, tag, 0, &lsn, &error)));
    EXPECT(is_forked(stele_view_open(dir.store, &view, &error)));
    EXPECT(is_forked(stele_stats(dir.store, &stats, &error)));
    EXPECT(is_forked(stele_verify(dir.store, NULL, NULL, &report, &error)));
    stele_batch_destroy(batch);
    EXPECT(stele_close(dir.store, &error) == STELE_OK);
}

static void batch_with_a_put(void)
{
    assert_int_equal(stele_batch_create(&batch, &error), STELE_OK);
    assert_int_equal(stele_batch_put(batch, "t", "a", 1, "1", 1, &error),
                     STELE_OK);
}

static void every_call_on_an_inherited_store_returns_forked(void **state)
{
    (void)state;
    store_dir_open(&dir);
    batch_with_a_put();
    in_child(call_everything_on_the_store);
    assert_int_equal(
        stele_commit(dir.store, batch, STELE_DURABLE, NULL, &error), STELE_OK);
    stele_batch_destroy(batch);
    assert_true(store_dir_has(&dir, "a", "1"));
}

static void every_call_on_a_store_inherited_for_reading_returns_forked(
    void **state)
{
    (void)state;
    store_dir_open(&dir);
    store_dir_put(&dir, "a", "1");
    store_dir_close(&dir);
    assert_int_equal(store_dir_try_open(&dir, STELE_OPEN_READ_ONLY), STELE_OK);
    batch_with_a_put();
    in_child(call_everything_on_the_store);
    stele_batch_destroy(batch);
    assert_true(store_dir_has(&dir, "a", "1"));
}

static struct stele_view *view;
static struct stele_cursor *cursor;

static void open_view_and_cursor(void)
{
    assert_int_equal(stele_view_open(dir.store, &view, &error), STELE_OK);
    assert_int_equal(stele_cursor_open(view, "t", NULL, 0, &cursor, &error),
                     STELE_OK);
}

static void close_view_and_cursor(void)
{
    stele_cursor_close(cursor);
    stele_view_close(view);
}

static void call_everything_on_the_view(void)
{
    char name[STELE_TABLE_NAME_BYTES_MAX + 1];
    struct stele_cursor *another;
    struct stele_value value;
    struct stele_entry entry;
    char buffer[10];
    size_t bytes;
    uint64_t count;

    EXPECT(is_forked(stele_view_get(view, "t", "a", 1, &value, &error)));
    EXPECT(is_forked(stele_view_get(view, "", "", 0, &value, &error)));
    EXPECT(is_forked(stele_view_copy(view, "t", "a", 1, buffer, sizeof buffer,
                                     &bytes, NULL, &error)));
    EXPECT(is_forked(stele_cursor_open(view, "t", NULL, 0, &another, &error)));
    EXPECT(is_forked(stele_table_next(view, NULL, name, &error)));
    EXPECT(is_forked(stele_table_count(view, "t", &count, &error)));
    EXPECT(is_forked(stele_table_lsn(view, "t", &count, &error)));
    EXPECT(is_forked(stele_cursor_first(cursor, &entry, &error)));
    EXPECT(is_forked(stele_cursor_last(cursor, &entry, &error)));
    EXPECT(is_forked(stele_cursor_seek(cursor, "a", 1, &entry, &error)));
    EXPECT(is_forked(stele_cursor_seek(cursor, "", 0, &entry, &error)));
    EXPECT(is_forked(stele_cursor_next(cursor, &entry, &error)));
    EXPECT(is_forked(stele_cursor_prev(cursor, &entry, &error)));
    EXPECT(stele_view_lsn(view) > 0);
}

static void every_call_on_an_inherited_view_or_cursor_returns_forked(
    void **state)
{
    (void)state;
    store_dir_open(&dir);
    store_dir_put(&dir, "a", "1");
    open_view_and_cursor();
    in_child(call_everything_on_the_view);
    close_view_and_cursor();
}

/* ---- Closing ------------------------------------------------------------------- */

static void close_store(void)
{
    EXPECT(stele_close(dir.store, &error) == STELE_OK);
}

static void close_from_the_leaves(void)
{
    close_view_and_cursor();
    close_store();
}

static void close_from_the_root(void)
{
    close_store();
    EXPECT(is_forked(
        stele_view_get(view, "t", "a", 1, &(struct stele_value){0}, &error)));
    stele_view_close(view);
    EXPECT(
        is_forked(stele_cursor_next(cursor, &(struct stele_entry){0}, &error)));
    stele_cursor_close(cursor);
}

static void close_the_view_only(void)
{
    close_view_and_cursor();
}

/* LMDB's table of readers is shared memory: a child that gave the parent's slot
 * back would leave the pages of this view to the next checkpoints. */
static void what_a_child_closes_stays_open_in_the_parent(void **state)
{
    static void (*const bodies[])(void) = {
        close_from_the_leaves, close_from_the_root, close_the_view_only};
    struct stele_value value;
    struct stele_entry entry;

    (void)state;
    for (size_t index = 0; index < sizeof bodies / sizeof bodies[0]; index++) {
        store_dir_open(&dir);
        store_dir_put(&dir, "a", "before");
        for (int key = 0; key < 500; key++) {
            char name[16];

            snprintf(name, sizeof name, "key%d", key);
            assert_int_equal(store_dir_try_put_bytes(&dir, name, 100),
                             STELE_OK);
        }
        assert_int_equal(stele_checkpoint(dir.store, &error), STELE_OK);
        open_view_and_cursor();
        in_child(bodies[index]);
        for (int round = 0; round < 5; round++) {
            store_dir_put(&dir, "a", "after");
            for (int key = 0; key < 500; key += 10) {
                char name[16];

                snprintf(name, sizeof name, "key%d", key);
                assert_int_equal(store_dir_try_put_bytes(&dir, name, 101),
                                 STELE_OK);
            }
            assert_int_equal(stele_checkpoint(dir.store, &error), STELE_OK);
        }
        assert_int_equal(stele_view_get(view, "t", "a", 1, &value, &error),
                         STELE_OK);
        assert_int_equal(value.bytes, strlen("before"));
        while (stele_cursor_next(cursor, &entry, &error) == STELE_OK) {
            assert_true(entry.value.bytes != 101 &&
                        entry.value.bytes != strlen("after"));
        }
        assert_int_equal(error.status, STELE_NOT_FOUND);
        close_view_and_cursor();
        store_dir_close(&dir);
    }
}

static void expect_only_lmdb_left(void)
{
    EXPECT(descriptors("/LOCK") == 0); /* Given up at the fork. */
    EXPECT(descriptors("/ANCHOR") == 1);
    close_store();
    EXPECT(descriptors("") == descriptors("/index/"));
    EXPECT(descriptors("/index/") == 3);
}

static void a_child_that_closes_gives_the_descriptors_back(void **state)
{
    (void)state;
    store_dir_open(&dir);
    store_dir_put(&dir, "a", "1");
    in_child(expect_only_lmdb_left);
    assert_int_equal(descriptors("/LOCK"), 1);
}

static size_t heap_bytes(void)
{
    return mallinfo2().uordblks + mallinfo2().hblkhd;
}

static void expect_memory_back(void)
{
    const size_t before = heap_bytes();

    close_store();
    /* A sanitizer's allocator does not say. */
    EXPECT(before == 0 || heap_bytes() + (512 << 10) <= before);
}

static void a_child_that_closes_gives_the_memtable_back(void **state)
{
    (void)state;
    store_dir_open(&dir);
    assert_int_equal(store_dir_try_put_bytes(&dir, "a", 512 << 10), STELE_OK);
    in_child(expect_memory_back);
}

static void a_grandchild_may_close_as_well(void)
{
    const pid_t pid = fork();

    EXPECT(pid >= 0);
    if (pid == 0) {
        EXPECT(is_forked(stele_sync(dir.store, &error)));
        close_store();
        _exit(0);
    }
    EXPECT(waitpid(pid, &(int){0}, 0) == pid);
    EXPECT(is_forked(stele_sync(dir.store, &error)));
    close_store();
}

static void a_child_of_a_child_is_no_closer_to_the_parent(void **state)
{
    (void)state;
    store_dir_open(&dir);
    in_child(a_grandchild_may_close_as_well);
    store_dir_put(&dir, "a", "1");
}

/* ---- The lock -------------------------------------------------------------------- */

static void the_parent_keeps_the_lock_when_a_child_closes(void **state)
{
    (void)state;
    store_dir_open(&dir);
    store_dir_put(&dir, "a", "1");
    in_child(close_store);
    assert_int_equal(another_process("write"), STELE_LOCKED);
    assert_int_equal(another_process("read"), STELE_OK);
    store_dir_put(&dir, "b", "2");
    store_dir_close(&dir);
    assert_int_equal(another_process("write"), STELE_OK);
}

static void live_until_told(void)
{
    gate_open(&child_ready);
    gate_pass(&parent_done);
}

static void a_child_that_lives_on_does_not_hold_the_lock(void **state)
{
    pid_t pid;

    (void)state;
    gate_make(&child_ready);
    gate_make(&parent_done);
    store_dir_open(&dir);
    pid = fork_child(live_until_told);
    gate_pass(&child_ready);
    assert_int_equal(another_process("write"), STELE_LOCKED);
    store_dir_close(&dir);
    assert_int_equal(another_process("write"), STELE_OK);
    store_dir_open(&dir);
    gate_open(&parent_done);
    wait_for(pid);
    gate_remove(&child_ready);
    gate_remove(&parent_done);
}

/* Another thread may fork at any time, also while a store is being opened. */
static pid_t forked_in_open;

static int open_file_and_fork(struct io *io, int dir_fd, const char *name,
                              enum io_open_mode mode)
{
    const int fd = io_posix()->calls->open_file(io, dir_fd, name, mode);

    if (strcmp(name, "LOCK") == 0 && forked_in_open == 0) {
        forked_in_open = fork_child(live_until_told);
        gate_pass(&child_ready);
    }
    return fd;
}

static void nor_does_one_that_was_forked_while_LOCK_was_opened(void **state)
{
    static struct io_calls calls;
    static struct io io = {.calls = &calls};

    (void)state;
    gate_make(&child_ready);
    gate_make(&parent_done);
    store_dir_open(&dir);
    store_dir_close(&dir);
    calls = *io_posix()->calls;
    calls.open_file = open_file_and_fork;
    dir.tuning.io = &io;
    forked_in_open = 0;
    store_dir_open(&dir);
    assert_true(forked_in_open > 0);
    assert_int_equal(another_process("write"), STELE_LOCKED);
    store_dir_close(&dir);
    assert_int_equal(another_process("write"), STELE_OK);
    gate_open(&parent_done);
    wait_for(forked_in_open);
    gate_remove(&child_ready);
    gate_remove(&parent_done);
}

/* A program that holds a lock of its own over a fork, as this library does, and
 * opens and closes stores under it. Its handlers were there before any store. */
static pthread_mutex_t program_lock = PTHREAD_MUTEX_INITIALIZER;
static struct gate forking = {{-1, -1}}; /* Not in use: no lock. */

static void lock_program(void)
{
    if (forking.fds[1] >= 0) {
        gate_open(&forking);
        pthread_mutex_lock(&program_lock);
    }
}

static void unlock_program(void)
{
    if (forking.fds[1] >= 0) {
        pthread_mutex_unlock(&program_lock);
    }
}

static void do_nothing(void)
{
}

static void *fork_once(void *context)
{
    (void)context;
    in_child(do_nothing);
    return NULL;
}

static void a_fork_waits_for_no_program_that_waits_for_the_library(void **state)
{
    pthread_t thread;

    (void)state;
    store_dir_open(&dir);
    gate_make(&forking);
    pthread_mutex_lock(&program_lock);
    assert_int_equal(pthread_create(&thread, NULL, fork_once, NULL), 0);
    gate_pass(&forking);
    store_dir_close(&dir);
    pthread_mutex_unlock(&program_lock);
    pthread_join(thread, NULL);
    gate_remove(&forking);
}

/* ---- Opening in the child ----------------------------------------------------------- */

/* NULL: refused. */
static struct stele *open_own(enum stele_open_mode mode)
{
    struct stele *store;

    dir.options.mode = mode;
    return store_open(dir.path, &dir.options, &dir.tuning, &store, &error) ==
                   STELE_OK
               ? store
               : NULL;
}

static void expect_found(struct stele_view *own, const char *key,
                         const char *value)
{
    struct stele_value found;

    EXPECT(stele_view_get(own, "t", key, strlen(key), &found, &error) ==
           STELE_OK);
    EXPECT(found.bytes == strlen(value) &&
           memcmp(found.data, value, found.bytes) == 0);
}

/* The inherited handle is closed while the child's own has a view: closing
 * LMDB's inherited descriptor would have dropped what protects it. */
static void read_beside_the_parent(void)
{
    struct stele *own = open_own(STELE_OPEN_READ_ONLY);
    struct stele_view *own_view;

    EXPECT(own != NULL);
    EXPECT(stele_view_open(own, &own_view, &error) == STELE_OK);
    expect_found(own_view, "a", "before");
    close_store();
    gate_open(&child_ready);
    gate_pass(&parent_done);
    expect_found(own_view, "a", "before");
    stele_view_close(own_view);
    EXPECT(stele_view_open(own, &own_view, &error) == STELE_OK);
    expect_found(own_view, "a", "after 9");
    stele_view_close(own_view);
    EXPECT(stele_close(own, &error) == STELE_OK);
}

static void a_child_may_read_the_store_beside_its_parent(void **state)
{
    pid_t pid;

    (void)state;
    gate_make(&child_ready);
    gate_make(&parent_done);
    store_dir_open(&dir);
    store_dir_put(&dir, "a", "before");
    assert_int_equal(stele_checkpoint(dir.store, &error), STELE_OK);
    pid = fork_child(read_beside_the_parent);
    gate_pass(&child_ready);
    /* Looks for readers that are gone. */
    assert_int_equal(another_process("read"), STELE_OK);
    for (int round = 0; round < 10; round++) {
        char value[16];

        snprintf(value, sizeof value, "after %d", round);
        store_dir_put(&dir, "a", value);
        assert_int_equal(stele_checkpoint(dir.store, &error), STELE_OK);
    }
    gate_open(&parent_done);
    wait_for(pid);
    gate_remove(&child_ready);
    gate_remove(&parent_done);
}

static void write_after_the_parent(void)
{
    struct stele *own = open_own(STELE_OPEN_EXISTING);

    EXPECT(own == NULL && error.status == STELE_LOCKED);
    EXPECT(strstr(error.message, "the store is open for writing by pid") !=
           NULL);
    gate_open(&child_ready);
    gate_pass(&parent_done);
    own = open_own(STELE_OPEN_EXISTING);
    EXPECT(own != NULL);
    EXPECT(open_own(STELE_OPEN_READ_ONLY) == NULL &&
           error.status == STELE_LOCKED); /* One handle a process, as ever. */
    EXPECT(stele_put(own, "t", "b", 1, "of the child", 12, NULL, &error) ==
           STELE_OK);
    close_store(); /* The inherited one, last. */
    EXPECT(stele_close(own, &error) == STELE_OK);
}

static void a_child_may_write_once_its_parent_has_closed(void **state)
{
    pid_t pid;

    (void)state;
    gate_make(&child_ready);
    gate_make(&parent_done);
    store_dir_open(&dir);
    store_dir_put(&dir, "a", "1");
    pid = fork_child(write_after_the_parent);
    gate_pass(&child_ready);
    store_dir_close(&dir);
    gate_open(&parent_done);
    wait_for(pid);
    gate_remove(&child_ready);
    gate_remove(&parent_done);
    store_dir_open(&dir);
    assert_true(store_dir_has(&dir, "a", "1"));
    assert_true(store_dir_has(&dir, "b", "of the child"));
}

/* ---- Forks in the midst of everything ---------------------------------------------- */

enum { COMMITTERS = 3, FORKS = 30 };
static _Atomic bool stopping;

struct committer {
    int number;
    int committed;
};

static void *commit_until_stopped(void *context)
{
    struct committer *committer = context;

    while (!atomic_load(&stopping)) {
        struct stele_error failure = {0};
        struct stele_view *own;
        char key[32];

        snprintf(key, sizeof key, "%d/%d", committer->number,
                 committer->committed);
        if (stele_put(dir.store, "t", key, strlen(key), key, strlen(key), NULL,
                      &failure) != STELE_OK ||
            stele_view_open(dir.store, &own, &failure) != STELE_OK) {
            fprintf(stderr, "%s\n", failure.message);
            abort();
        }
        stele_view_close(own);
        committer->committed++;
    }
    return NULL;
}

static void be_refused_and_close(void)
{
    EXPECT(is_forked(stele_sync(dir.store, &error)));
    stele_view_close(view);
    close_store();
}

static void forks_amid_commits_lose_nothing_and_hang_nobody(void **state)
{
    struct committer committers[COMMITTERS] = {{0}};
    pthread_t threads[COMMITTERS];

    (void)state;
    atomic_store(&stopping, false);
    dir.tuning.manual = false;
    dir.tuning.checkpoint_pause_ms = 0;
    dir.options.memtable_bytes = 64 << 10;
    store_dir_open(&dir);
    for (int index = 0; index < COMMITTERS; index++) {
        committers[index].number = index;
        assert_int_equal(pthread_create(&threads[index], NULL,
                                        commit_until_stopped,
                                        &committers[index]),
                         0);
    }
    for (int round = 0; round < FORKS; round++) {
        assert_int_equal(stele_view_open(dir.store, &view, &error), STELE_OK);
        in_child(be_refused_and_close);
        stele_view_close(view);
    }
    atomic_store(&stopping, true);
    for (int index = 0; index < COMMITTERS; index++) {
        pthread_join(threads[index], NULL);
    }
    store_dir_close(&dir);
    store_dir_open(&dir);
    for (int index = 0; index < COMMITTERS; index++) {
        for (int n = 0; n < committers[index].committed; n++) {
            char key[32];

            snprintf(key, sizeof key, "%d/%d", index, n);
            assert_true(store_dir_has(&dir, key, key));
        }
    }
    store_dir_close(&dir);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
        TEST(every_call_on_an_inherited_store_returns_forked),
        TEST(every_call_on_a_store_inherited_for_reading_returns_forked),
        TEST(every_call_on_an_inherited_view_or_cursor_returns_forked),
        TEST(what_a_child_closes_stays_open_in_the_parent),
        TEST(a_child_that_closes_gives_the_descriptors_back),
        TEST(a_child_that_closes_gives_the_memtable_back),
        TEST(a_child_of_a_child_is_no_closer_to_the_parent),
        TEST(the_parent_keeps_the_lock_when_a_child_closes),
        TEST(a_child_that_lives_on_does_not_hold_the_lock),
        TEST(nor_does_one_that_was_forked_while_LOCK_was_opened),
        TEST(a_fork_waits_for_no_program_that_waits_for_the_library),
        TEST(a_child_may_read_the_store_beside_its_parent),
        TEST(a_child_may_write_once_its_parent_has_closed),
        TEST(forks_amid_commits_lose_nothing_and_hang_nobody),
#undef TEST
    };

    if (argc == 4) {
        return be_another_process(argv[2], argv[3]);
    }
    if (pthread_atfork(lock_program, unlock_program, unlock_program) != 0) {
        return EXIT_FAILURE;
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
