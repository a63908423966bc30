/*
 * tests/test_engine_commit.c -- commits that meet the keepers, each other, and a
 * full disk at the worst moment.
 *
 * Nothing is left to the scheduler: what another thread does in between is done
 * inside a call that the thread under test makes. This program is linked with
 * --wrap for three of them; the clock and the log's writes come through struct
 * io_calls.
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

#include "base/error.h"
#include "engine/checkpoint.h"
#include "engine/commit.h"
#include "engine/keepers.h"
#include "engine/store.h"
#include "tests/lib/child.h"
#include "tests/lib/files.h"
#include "tests/lib/io_fault.h"
#include "tests/lib/run.h"
#include "tests/lib/store_dir.h"

enum {
    NEVER_MS = 3600000,
    PATIENCE_US = 20000000, /* What takes longer has been forgotten. */
    NAP_US = 100,
    HANG_SECONDS = 120, /* The whole program. */
    NS_PER_MS = 1000000,
    MEMTABLE_BYTES_MIN = 64 << 10,
};

/* ---- A small vocabulary --------------------------------------------------------------- */

static struct store_dir dir;
static struct stele_batch *batch; /* "k" = "v" */

static struct stele_batch *new_batch(const char *key, const void *value,
                                     size_t value_bytes)
{
    struct stele_batch *made;

    assert_int_equal(stele_batch_create(&made, &dir.error), STELE_OK);
    assert_int_equal(stele_batch_put(made, "t", key, strlen(key), value,
                                     value_bytes, &dir.error),
                     STELE_OK);
    return made;
}

static struct stele_batch *large_batch(const char *key, size_t value_bytes)
{
    uint8_t *value = calloc(1, value_bytes);
    struct stele_batch *made;

    assert_non_null(value);
    made = new_batch(key, value, value_bytes);
    free(value);
    return made;
}

static enum stele_status commit(struct stele_batch *of,
                                enum stele_durability durability)
{
    return stele_commit(dir.store, of, durability, NULL, &dir.error);
}

/* An asynchronous commit, and how it ended. Any thread. */
struct promise {
    _Atomic unsigned done_count;
    enum stele_status status;
};

static void fulfil(void *context, enum stele_status status,
                   const struct stele_error *error)
{
    struct promise *promise = context;

    (void)error;
    promise->status = status;
    atomic_fetch_add(&promise->done_count, 1);
}

static void promise_commit(struct promise *promise, struct stele_batch *of,
                           enum stele_durability durability)
{
    struct stele_error error;

    run_expect_ok(stele_commit_async(dir.store, of, durability, NULL, fulfil,
                                     promise, &error),
                  &error, "commit asynchronously");
}

/* Wait for something that another thread is about to bring about. */
static bool comes_true(bool (*is_true)(const void *context),
                       const void *context)
{
    const uint64_t began_us = clock_us();

    while (!is_true(context)) {
        if (clock_us() - began_us > PATIENCE_US) {
            return false;
        }
        usleep(NAP_US); /* The machine has others to run. */
    }
    return true;
}

static bool is_kept(const void *context)
{
    const struct promise *promise = context;

    return atomic_load(&promise->done_count) > 0;
}

static bool is_set(const void *context)
{
    const _Atomic bool *flag = context;

    return atomic_load(flag);
}

/* ---- Acting inside calls -------------------------------------------------------------------- */

/* What is done, once, by the log keeper when it gets there. */
enum place { NOWHERE, BEFORE_ITS_SYNC, BEFORE_ITS_FREEZE, BEFORE_IT_WAITS };

static _Atomic int ambush; /* enum place */
static struct promise ambush_promise;

/* A commit arrives just now, when the keeper has looked at the queue. */
static void spring(enum place place)
{
    if (atomic_load(&ambush) == (int)place &&
        pthread_equal(pthread_self(), dir.store->log_keeper)) {
        atomic_store(&ambush, NOWHERE);
        promise_commit(&ambush_promise, batch, STELE_RELAXED);
    }
}

/* Once the store is open. */
static void lay_ambush(enum place place)
{
    ambush_promise = (struct promise){0};
    atomic_store(&ambush, (int)place);
}

enum stele_status __real_commit_sync(struct stele *store,
                                     struct stele_error *error);
enum stele_status __wrap_commit_sync(struct stele *store,
                                     struct stele_error *error);
enum stele_status __real_commit_freeze(struct stele *store, bool *frozen_out,
                                       struct stele_error *error);
enum stele_status __wrap_commit_freeze(struct stele *store, bool *frozen_out,
                                       struct stele_error *error);
enum stele_status __real_checkpoint_begin(struct stele *store,
                                          struct checkpoint **checkpoint_out,
                                          struct stele_error *error);
enum stele_status __wrap_checkpoint_begin(struct stele *store,
                                          struct checkpoint **checkpoint_out,
                                          struct stele_error *error);

/* Who asks for the role, and who begins checkpoints. */
static _Thread_local bool is_base_keeper;
static _Atomic uint64_t freezes_by_base_keeper;

enum stele_status __wrap_commit_sync(struct stele *store,
                                     struct stele_error *error)
{
    spring(BEFORE_ITS_SYNC);
    return __real_commit_sync(store, error);
}

enum stele_status __wrap_commit_freeze(struct stele *store, bool *frozen_out,
                                       struct stele_error *error)
{
    if (is_base_keeper) {
        atomic_fetch_add(&freezes_by_base_keeper, 1);
    }
    spring(BEFORE_ITS_FREEZE);
    return __real_commit_freeze(store, frozen_out, error);
}

/* Checkpoints do not begin while this is held. */
static pthread_mutex_t checkpoint_gate = PTHREAD_MUTEX_INITIALIZER;

/* Of the base keeper: without keepers it is called from its own file. */
enum stele_status __wrap_checkpoint_begin(struct stele *store,
                                          struct checkpoint **checkpoint_out,
                                          struct stele_error *error)
{
    is_base_keeper = true;
    pthread_mutex_lock(&checkpoint_gate);
    pthread_mutex_unlock(&checkpoint_gate);
    return __real_checkpoint_begin(store, checkpoint_out, error);
}

/* ---- A clock and a log that tell --------------------------------------------------------------- */

static struct io_calls calls;
static struct io io = {.calls = &calls};

static _Atomic uint64_t told_ns;               /* 0: the time it is. */
static _Thread_local _Atomic bool *clock_flag; /* Set when this thread looks. */
static _Thread_local unsigned clock_skip;      /* But for so many times. */

static uint64_t told_time(struct io *self)
{
    const uint64_t ns = atomic_load(&told_ns);

    (void)self;
    /* Here, with no mutex held, the keeper has looked at the queue and has not
     * waited yet. */
    spring(BEFORE_IT_WAITS);
    if (clock_flag != NULL && clock_skip-- == 0) {
        atomic_store(clock_flag, true);
        clock_flag = NULL;
    }
    return ns != 0 ? ns : io_posix()->calls->clock_monotonic_ns(io_posix());
}

/* As long as there are batches left, each write of the log queues another. */
static struct stele_batch **load_batches;
static struct promise *load_promises;
static _Atomic size_t load_count;
static _Atomic size_t load_next;
static uint64_t load_step_ns;
static _Atomic uint64_t load_synced_ns;
static _Atomic uint64_t load_longest_ns; /* Without a sync. */

static bool is_log(int fd)
{
    char link[64];
    char name[FILES_PATH_BYTES];
    ssize_t bytes;

    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    bytes = readlink(link, name, sizeof name);
    return bytes > 4 && memcmp(name + bytes - 4, ".wal", 4) == 0;
}

static ssize_t write_under_load(struct io *self, int fd,
                                const struct iovec *iov, int iov_count,
                                uint64_t offset)
{
    (void)self;
    if (load_next < load_count && is_log(fd)) {
        const uint64_t now_ns = atomic_fetch_add(&told_ns, load_step_ns);

        if (now_ns - load_synced_ns > load_longest_ns) {
            load_longest_ns = now_ns - load_synced_ns;
        }
        promise_commit(&load_promises[load_next], load_batches[load_next],
                       STELE_RELAXED);
        load_next++;
    }
    return io_fault_io()->calls->writev(io_fault_io(), fd, iov, iov_count,
                                        offset);
}

static int sync_under_load(struct io *self, int fd)
{
    (void)self;
    if (load_count > 0 && is_log(fd)) {
        load_synced_ns = atomic_load(&told_ns);
    }
    return io_fault_io()->calls->sync_data(io_fault_io(), fd);
}

/* ---- Setting up ------------------------------------------------------------------------------------ */

static int setup(void **state)
{
    (void)state;
    store_dir_make(&dir);
    calls = *io_fault_io()->calls;
    calls.clock_monotonic_ns = told_time;
    calls.writev = write_under_load;
    calls.sync_data = sync_under_load;
    dir.tuning.io = &io;
    atomic_store(&told_ns, 0);
    load_count = 0;
    load_next = 0;
    batch = new_batch("k", "v", 1);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    store_dir_remove(&dir);
    stele_batch_destroy(batch);
    return 0;
}

/* With keepers that have nothing to do but what the test is about. */
static void open_with_keepers(void)
{
    dir.tuning.manual = false;
    store_dir_open(&dir);
}

static void keepers_are_idle(void)
{
    dir.options.relaxed_sync_ms = NEVER_MS;
    dir.options.idle_checkpoint_ms = NEVER_MS;
    dir.tuning.idle_anchor_ms = NEVER_MS;
}

/* ---- Asynchronous commits and the log keeper --------------------------------------------------------- */

/* It looks around once more, now that the clock says so much. */
static void wake_log_keeper(uint64_t later_ms)
{
    atomic_fetch_add(&told_ns, later_ms * NS_PER_MS);
    mutex_lock(&dir.store->keeper_mutex);
    keepers_kick_log(dir.store);
    mutex_unlock(&dir.store->keeper_mutex);
}

static void assert_ambush_is_survived(void)
{
    assert_true(comes_true(is_kept, &ambush_promise));
    assert_int_equal(ambush_promise.status, STELE_OK);
    assert_int_equal(atomic_load(&ambush), NOWHERE);
    assert_true(store_dir_has(&dir, "k", "v"));
    store_dir_close(&dir);
    assert_int_equal(atomic_load(&ambush_promise.done_count), 1);
}

/* It has promised to lead for the new commit, and goes to ask for a sync: it must
 * not wait for itself. */
static void a_keeper_that_syncs_does_not_wait_for_itself(void **state)
{
    (void)state;
    keepers_are_idle();
    dir.options.relaxed_sync_ms = 100;
    atomic_store(&told_ns, NS_PER_MS);
    open_with_keepers();
    store_dir_put_relaxed(&dir, "before", "1");
    lay_ambush(BEFORE_ITS_SYNC);
    wake_log_keeper(100);
    assert_ambush_is_survived();
}

static void nor_when_it_freezes_the_memtable(void **state)
{
    (void)state;
    keepers_are_idle();
    dir.options.idle_checkpoint_ms = 100;
    atomic_store(&told_ns, NS_PER_MS);
    open_with_keepers();
    store_dir_put(&dir, "before", "1");
    lay_ambush(BEFORE_ITS_FREEZE);
    wake_log_keeper(100);
    assert_ambush_is_survived();
}

/* Nothing else would wake it for an hour. */
static void a_commit_that_comes_just_before_the_keeper_waits_wakes_it(
    void **state)
{
    (void)state;
    keepers_are_idle();
    atomic_store(&told_ns, NS_PER_MS);
    open_with_keepers();
    store_dir_put(&dir, "before", "1"); /* To be named in ANCHOR some time. */
    lay_ambush(BEFORE_IT_WAITS);
    wake_log_keeper(0);
    assert_ambush_is_survived();
}

static bool load_is_done(const void *context)
{
    (void)context;
    for (size_t index = 0; index < load_count; index++) {
        if (atomic_load(&load_promises[index].done_count) == 0) {
            return false;
        }
    }
    return true;
}

/* The keeper leads without a break: it never comes to its other work. */
static void the_relaxed_window_holds_while_commits_pour_in(void **state)
{
    enum { COUNT = 100, STEP_MS = 10, WINDOW_MS = 100 };
    static struct stele_batch *batches[COUNT];
    static struct promise promises[COUNT];
    uint64_t syncs;

    (void)state;
    keepers_are_idle();
    dir.options.relaxed_sync_ms = WINDOW_MS;
    atomic_store(&told_ns, NS_PER_MS);
    open_with_keepers();
    for (size_t index = 0; index < COUNT; index++) {
        char key[16];

        snprintf(key, sizeof key, "load %zu", index);
        batches[index] = new_batch(key, "v", 1);
        promises[index] = (struct promise){0};
    }
    load_batches = batches;
    load_promises = promises;
    load_step_ns = STEP_MS * NS_PER_MS;
    load_synced_ns = NS_PER_MS;
    load_longest_ns = 0;
    load_next = 1; /* The rest follows from the writes. */
    syncs = io_fault_syncs(".wal");
    load_count = COUNT;
    promise_commit(&promises[0], batches[0], STELE_RELAXED);
    assert_true(comes_true(load_is_done, NULL));
    assert_true(load_longest_ns <= (WINDOW_MS + 2 * STEP_MS) * NS_PER_MS);
    /* And one sync is for many commits. */
    syncs = io_fault_syncs(".wal") - syncs;
    assert_true(syncs >= COUNT * STEP_MS / WINDOW_MS / 2);
    assert_true(syncs <= COUNT / 2);
    load_count = 0;
    atomic_store(&told_ns, 0);
    store_dir_close(&dir);
    for (size_t index = 0; index < COUNT; index++) {
        assert_int_equal(promises[index].status, STELE_OK);
        stele_batch_destroy(batches[index]);
    }
}

struct committer {
    pthread_t thread;
    uint64_t number;
    bool hung;
};

static void *commit_one_after_the_other(void *context)
{
    enum { COMMITS = 100 };
    struct committer *committer = context;
    struct stele_error error;
    struct stele_batch *own;
    char key[16];

    snprintf(key, sizeof key, "own %d", (int)committer->number);
    run_expect_ok(stele_batch_create(&own, &error), &error, "create batch");
    run_expect_ok(stele_batch_put(own, "t", key, strlen(key), "v", 1, &error),
                  &error, "add a put");
    for (uint64_t n = 0; n < COMMITS && !committer->hung; n++) {
        struct promise promise = {0};

        if (n % 8 == committer->number) {
            run_expect_ok(
                stele_commit(dir.store, own, STELE_RELAXED, NULL, &error),
                &error, "commit");
            continue;
        }
        promise_commit(&promise, own, STELE_RELAXED);
        committer->hung = !comes_true(is_kept, &promise);
    }
    stele_batch_destroy(own);
    return NULL;
}

static void asynchronous_commits_of_many_threads_all_end(void **state)
{
    enum { THREADS = 4 };
    struct committer committers[THREADS];

    (void)state;
    dir.options.relaxed_sync_ms = 1;
    dir.options.idle_checkpoint_ms = 1;
    dir.tuning.idle_anchor_ms = 1;
    open_with_keepers();
    for (uint64_t number = 0; number < THREADS; number++) {
        committers[number] = (struct committer){.number = number};
        assert_int_equal(pthread_create(&committers[number].thread, NULL,
                                        commit_one_after_the_other,
                                        &committers[number]),
                         0);
    }
    for (size_t index = 0; index < THREADS; index++) {
        pthread_join(committers[index].thread, NULL);
        assert_false(committers[index].hung);
    }
    store_dir_close(&dir);
}

/* ---- Room -------------------------------------------------------------------------------------------------- */

/* It is full of what did not happen: nothing that a checkpoint could take. */
static void fill_with_withdrawn_groups(void)
{
    struct stele_batch *large = large_batch("large", 4 * MEMTABLE_BYTES_MIN);

    store_dir_put(&dir, "before", "1");
    assert_int_equal(stele_checkpoint(dir.store, &dir.error), STELE_OK);
    for (int round = 0; round < 10; round++) {
        const struct io_fault full = {.call = IO_FAULT_WRITE,
                                      .suffix = ".wal",
                                      .times = 1,
                                      .sys_errno = ENOSPC};

        io_fault_arm(&full);
        assert_int_equal(commit(large, STELE_DURABLE), STELE_NO_SPACE);
        io_fault_arm(NULL);
        assert_int_equal(commit(batch, STELE_DURABLE), STELE_OK);
        assert_true(store_dir_has(&dir, "before", "1"));
        assert_true(store_dir_has(&dir, "large", NULL));
        assert_true(store_dir_has(&dir, "k", "v"));
        assert_int_equal(stele_checkpoint(dir.store, &dir.error), STELE_OK);
    }
    stele_batch_destroy(large);
}

static void a_memtable_full_of_withdrawn_groups_is_renewed(void **state)
{
    (void)state;
    keepers_are_idle();
    dir.options.memtable_bytes = MEMTABLE_BYTES_MIN;
    dir.options.commit_wait_ms = 1; /* There is nothing to wait for. */
    open_with_keepers();
    fill_with_withdrawn_groups();
    store_dir_close(&dir);
    store_dir_open(&dir);
    assert_true(store_dir_has(&dir, "before", "1"));
    assert_true(store_dir_has(&dir, "k", "v"));
    assert_true(store_dir_has(&dir, "large", NULL));
}

static void also_without_keepers(void **state)
{
    (void)state;
    dir.options.memtable_bytes = MEMTABLE_BYTES_MIN;
    store_dir_open(&dir);
    fill_with_withdrawn_groups();
}

static uint64_t checkpoints_awaited;

static bool are_taken(const void *context)
{
    const struct stele *store = context;

    return atomic_load(&store->stat_checkpoints) >= checkpoints_awaited;
}

/* Whoever holds it may be waiting for the base keeper. */
static void the_base_keeper_does_not_ask_for_the_role(void **state)
{
    (void)state;
    keepers_are_idle();
    dir.options.idle_checkpoint_ms = 1;
    dir.tuning.idle_anchor_ms = 1;
    dir.options.memtable_bytes = MEMTABLE_BYTES_MIN;
    atomic_store(&freezes_by_base_keeper, 0);
    open_with_keepers();
    for (checkpoints_awaited = 1; checkpoints_awaited <= 5;
         checkpoints_awaited++) {
        store_dir_put(&dir, "k", "v");
        assert_true(comes_true(are_taken, dir.store)); /* By itself. */
    }
    for (int round = 0; round < 20; round++) {
        assert_int_equal(store_dir_try_put_bytes(&dir, "k", MEMTABLE_BYTES_MIN),
                         STELE_OK);
    }
    store_dir_close(&dir);
    assert_int_equal(atomic_load(&freezes_by_base_keeper), 0);
}

static bool is_frozen(const void *context)
{
    struct stele *store = dir.store;
    bool frozen;

    (void)context;
    mutex_lock(&store->keeper_mutex);
    frozen = store->frozen;
    mutex_unlock(&store->keeper_mutex);
    return frozen;
}

static bool log_keeper_sleeps(const void *context)
{
    struct stele *store = dir.store;
    bool asleep;

    (void)context;
    mutex_lock(&store->keeper_mutex);
    asleep = store->log_keeper_asleep;
    mutex_unlock(&store->keeper_mutex);
    return asleep;
}

/* It could not be frozen then, and afterwards nobody commits any more. */
static void what_was_committed_during_a_checkpoint_gets_one_too(void **state)
{
    (void)state;
    keepers_are_idle();
    dir.options.idle_checkpoint_ms = 1;
    dir.tuning.idle_anchor_ms = 1;
    pthread_mutex_lock(&checkpoint_gate);
    open_with_keepers();
    store_dir_put(&dir, "k", "1");
    assert_true(comes_true(is_frozen, NULL));
    store_dir_put(&dir, "k", "2");
    assert_true(comes_true(log_keeper_sleeps, NULL));
    pthread_mutex_unlock(&checkpoint_gate);
    checkpoints_awaited = 2;
    assert_true(comes_true(are_taken, dir.store));
    assert_int_equal(store_dir_stats(&dir).lsn_applied, 2);
    store_dir_close(&dir);
}

/* Commits until the memtable is full, the frozen one is not drained, and the next
 * has to wait. */
struct waiter {
    pthread_t thread;
    struct stele_batch *batch;
    _Atomic bool waits;
    _Atomic bool ended;
    enum stele_status status;
};

static void *commit_into_a_full_memtable(void *context)
{
    struct waiter *waiter = context;
    struct stele_error error;

    /* The clock is read for the deadline, and then to see what is left of it:
     * with keeper_mutex, which is given up by waiting. */
    clock_skip = 1;
    clock_flag = &waiter->waits;
    waiter->status =
        stele_commit(dir.store, waiter->batch, STELE_DURABLE, NULL, &error);
    clock_flag = NULL;
    atomic_store(&waiter->ended, true);
    return NULL;
}

static void who_waits_for_room_is_told_of_poison_at_once(void **state)
{
    struct waiter waiter = {0};
    struct stele_error cause = {0};
    uint64_t began_us;

    (void)state;
    keepers_are_idle();
    dir.options.memtable_bytes = MEMTABLE_BYTES_MIN;
    dir.options.commit_wait_ms = 2 * PATIENCE_US / 1000;
    open_with_keepers();
    pthread_mutex_lock(&checkpoint_gate);
    waiter.batch = large_batch("large", MEMTABLE_BYTES_MIN);
    /* The second freezes the first, and fills the next memtable. */
    assert_int_equal(commit(waiter.batch, STELE_DURABLE), STELE_OK);
    assert_int_equal(commit(waiter.batch, STELE_DURABLE), STELE_OK);
    assert_int_equal(pthread_create(&waiter.thread, NULL,
                                    commit_into_a_full_memtable, &waiter),
                     0);
    assert_true(comes_true(is_set, &waiter.waits));
    mutex_lock(&dir.store->keeper_mutex);
    mutex_unlock(&dir.store->keeper_mutex);
    assert_false(atomic_load(&waiter.ended));
    began_us = clock_us();
    error_set(&cause, STELE_IO, "ANCHOR: as if a sync had failed");
    store_poison(dir.store, &cause);
    assert_true(comes_true(is_set, &waiter.ended));
    assert_true(clock_us() - began_us < PATIENCE_US);
    pthread_join(waiter.thread, NULL);
    pthread_mutex_unlock(&checkpoint_gate);
    assert_int_equal(waiter.status, STELE_POISONED);
    stele_batch_destroy(waiter.batch);
}

/* ---- What is refused -------------------------------------------------------------------------------------------- */

static void an_unknown_durability_is_refused(void **state)
{
    struct promise promise = {0};
    struct stele_stats stats;

    (void)state;
    store_dir_open(&dir);
    for (int durability = 2; durability < 100; durability += 5) {
        assert_int_equal(commit(batch, (enum stele_durability)durability),
                         STELE_INVALID);
        assert_int_equal(stele_commit_async(dir.store, batch,
                                            (enum stele_durability)durability,
                                            NULL, fulfil, &promise, &dir.error),
                         STELE_INVALID);
    }
    stats = store_dir_stats(&dir);
    assert_int_equal(stats.lsn_visible, 0);
    assert_int_equal(stats.units_written, 0);
    assert_int_equal(atomic_load(&promise.done_count), 0);
    assert_int_equal(commit(batch, STELE_RELAXED), STELE_OK);
}

/* Both would have the record's bytes at once, with two LSNs in them. */
static void a_batch_is_in_one_commit_at_a_time(void **state)
{
    struct promise promise = {0};

    (void)state;
    store_dir_open(&dir);
    promise_commit(&promise, batch, STELE_DURABLE); /* Waits for a leader. */
    assert_int_equal(commit(batch, STELE_DURABLE), STELE_INVALID);
    assert_non_null(strstr(dir.error.message, "another commit of this batch"));
    assert_int_equal(stele_commit_async(dir.store, batch, STELE_DURABLE, NULL,
                                        fulfil, &promise, &dir.error),
                     STELE_INVALID);
    assert_int_equal(atomic_load(&promise.done_count), 0);
    store_dir_put(&dir, "other", "1"); /* Leads for both. */
    assert_int_equal(atomic_load(&promise.done_count), 1);
    assert_int_equal(promise.status, STELE_OK);
    assert_int_equal(commit(batch, STELE_DURABLE), STELE_OK);
    assert_int_equal(commit(batch, STELE_DURABLE), STELE_OK);
    store_dir_kill(&dir);
    store_dir_open(&dir);
    assert_true(store_dir_has(&dir, "k", "v"));
    assert_true(store_dir_has(&dir, "other", "1"));
    assert_int_equal(store_dir_stats(&dir).recovery_replayed_records, 4);
}

/* "It is there already" was said of a put that then did not happen. */
static void an_expectation_is_not_judged_by_what_was_withdrawn(void **state)
{
    const struct io_fault full = {.call = IO_FAULT_WRITE,
                                  .suffix = ".wal",
                                  .times = 1,
                                  .sys_errno = ENOSPC};
    struct promise first = {0};
    struct promise put = {0};
    struct promise behind = {0};
    struct stele_batch *hopeless = new_batch("other", "2", 1);
    struct stele_batch *careful = new_batch("k", "w", 1);

    (void)state;
    store_dir_open(&dir);
    store_dir_put(&dir, "other", "1");
    assert_int_equal(
        stele_batch_expect_absent(hopeless, "t", "other", 5, &dir.error),
        STELE_OK);
    assert_int_equal(
        stele_batch_expect_absent(careful, "t", "k", 1, &dir.error), STELE_OK);
    io_fault_arm(&full);
    promise_commit(&first, hopeless, STELE_DURABLE);
    promise_commit(&put, batch, STELE_DURABLE);
    promise_commit(&behind, careful, STELE_DURABLE);
    assert_int_equal(stele_sync(dir.store, &dir.error), STELE_OK);
    assert_int_equal(io_fault_count(), 1);
    io_fault_arm(NULL);
    assert_int_equal(first.status,
                     STELE_PRECONDITION); /* On its own account. */
    assert_int_equal(put.status, STELE_NO_SPACE);
    assert_int_equal(behind.status, STELE_NO_SPACE);
    assert_true(store_dir_has(&dir, "k", NULL));
    assert_int_equal(commit(careful, STELE_DURABLE), STELE_OK);
    assert_int_equal(commit(careful, STELE_DURABLE), STELE_PRECONDITION);
    assert_true(store_dir_has(&dir, "k", "w"));
    stele_batch_destroy(hopeless);
    stele_batch_destroy(careful);
}

#define COMMIT_TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        COMMIT_TEST(a_keeper_that_syncs_does_not_wait_for_itself),
        COMMIT_TEST(nor_when_it_freezes_the_memtable),
        COMMIT_TEST(a_commit_that_comes_just_before_the_keeper_waits_wakes_it),
        COMMIT_TEST(the_relaxed_window_holds_while_commits_pour_in),
        COMMIT_TEST(asynchronous_commits_of_many_threads_all_end),
        COMMIT_TEST(a_memtable_full_of_withdrawn_groups_is_renewed),
        COMMIT_TEST(also_without_keepers),
        COMMIT_TEST(the_base_keeper_does_not_ask_for_the_role),
        COMMIT_TEST(what_was_committed_during_a_checkpoint_gets_one_too),
        COMMIT_TEST(who_waits_for_room_is_told_of_poison_at_once),
        COMMIT_TEST(an_unknown_durability_is_refused),
        COMMIT_TEST(a_batch_is_in_one_commit_at_a_time),
        COMMIT_TEST(an_expectation_is_not_judged_by_what_was_withdrawn),
    };

    alarm(HANG_SECONDS); /* What waits for ever has failed. */
    return cmocka_run_group_tests_name("engine/commit", tests, NULL, NULL);
}
