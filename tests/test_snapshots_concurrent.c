/*
 * tests/test_snapshots_concurrent.c -- snapshots while eight threads commit: each is
 * exactly the state at its LSN.
 *
 * The committers write the histories of tests/lib/history.h, whose state follows
 * from a number, and note the LSN of every batch. A snapshot at LSN n must show of
 * each committer the last batch with an LSN up to n, and nothing else: by
 * history_check() on a view of that LSN, and by comparing the file's entries, one by
 * one and by the sum of their checks, with that view.
 */
#include <inttypes.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/error.h"
#include "engine/base_value.h"
#include "engine/limits.h"
#include "engine/retention.h"
#include "engine/store.h"
#include "snapshot/reader.h"
#include "snapshot/writer.h"
#include "tests/lib/history.h"
#include "tests/lib/run.h"
#include "tests/lib/temp_dir.h"

enum {
    COMMITTERS = 8,
    SNAPSHOTS = 12,
    BALLAST_KEYS = 20000, /* So that a snapshot takes a while. */
    BALLAST_BYTES = 100,
    BATCHES_MAX = 200000, /* A committer ends there. */
    STEP_BYTES = 4096,    /* So that a snapshot takes many. */
};

static struct stele *store;
static _Atomic bool stop;

struct committer {
    pthread_t thread;
    uint32_t owner;
    _Atomic uint64_t count; /* Batches committed, and lsns[1 .. count] known. */
    _Atomic uint64_t *lsns;
};
static struct committer committers[COMMITTERS];

static void *commit_main(void *context)
{
    struct committer *self = context;
    struct stele_error error = {0};
    struct stele_batch *batch;

    run_expect_ok(stele_batch_create(&batch, &error), &error, "batch");
    for (uint64_t n = 1; n < BATCHES_MAX && !atomic_load(&stop); n++) {
        struct stele_commit_result result = {0};

        history_fill(batch, self->owner, n);
        run_expect_ok(stele_commit(store, batch,
                                   n % 4 == 0 ? STELE_DURABLE : STELE_RELAXED,
                                   &result, &error),
                      &error, "commit");
        atomic_store(&self->lsns[n], result.lsn);
        atomic_store(&self->count, n);
    }
    stele_batch_destroy(batch);
    return NULL;
}

/* The model: which batch of a committer a state at `lsn` ends with. */
static void assert_ends_at(const struct committer *committer,
                           const struct history_seen *seen, uint64_t lsn)
{
    uint64_t next_lsn;

    if (seen->lsn > lsn) {
        run_fail("owner %" PRIu32 ": batch %" PRIu64 " has LSN %" PRIu64
                 ", the snapshot %" PRIu64,
                 committer->owner, seen->n, seen->lsn, lsn);
    }
    /* What came next was later: if it is not noted yet, it was. */
    next_lsn = atomic_load(&committer->lsns[seen->n + 1]);
    if (next_lsn != 0 && next_lsn <= lsn) {
        run_fail("owner %" PRIu32 ": batch %" PRIu64
                 " is the last, but %" PRIu64 " has LSN %" PRIu64
                 ", the snapshot %" PRIu64,
                 committer->owner, seen->n, seen->n + 1, next_lsn, lsn);
    }
}

/* Entry by entry; both are in key order. */
struct walk {
    struct stele_view *view;
    struct snapshot_reader *reader;
    uint64_t keys;
    uint64_t sum; /* Of the checks of what the view shows. */
};

static bool next_key(struct walk *walk, struct snapshot_entry *entry)
{
    struct stele_error error = {0};
    enum stele_status status;

    do {
        status = snapshot_reader_next(walk->reader, entry, &error);
    } while (status == STELE_OK && /* Not the rows. */
             base_key_table_bytes(entry->key) + 1 == entry->key.size);
    if (status != STELE_OK && status != STELE_NOT_FOUND) {
        run_fail("snapshot: %s", error.message);
    }
    return status == STELE_OK;
}

static void compare_entry(struct walk *walk, const char *table,
                          const struct stele_entry *shown)
{
    const struct bytes value = {shown->value.data, shown->value.bytes};
    struct snapshot_entry entry;
    struct base_value stored;
    struct full_key key;

    full_key_init(&key, (struct bytes){table, strlen(table)},
                  (struct bytes){shown->key, shown->key_bytes});
    if (!next_key(walk, &entry) || !base_value_decode(entry.stored, &stored) ||
        bytes_compare(entry.key, full_key_bytes(&key)) != 0 ||
        bytes_compare(stored.value, value) != 0 ||
        stored.lsn != shown->value.lsn) {
        run_fail("table %s: the snapshot has another entry than the view",
                 table);
    }
    walk->keys++;
    walk->sum +=
        base_value_check(full_key_bytes(&key), shown->value.lsn, value);
}

static void compare_table(struct walk *walk, const char *table)
{
    struct stele_error error = {0};
    struct stele_cursor *cursor;
    struct stele_entry shown;
    enum stele_status status;

    run_expect_ok(
        stele_cursor_open(walk->view, table, NULL, 0, &cursor, &error), &error,
        "cursor");
    while ((status = stele_cursor_next(cursor, &shown, &error)) == STELE_OK) {
        compare_entry(walk, table, &shown);
    }
    if (status != STELE_NOT_FOUND) {
        run_fail("cursor: %s", error.message);
    }
    stele_cursor_close(cursor);
}

static void compare_with_file(struct stele_view *view, uint64_t lsn)
{
    struct walk walk = {.view = view};
    char table[STELE_TABLE_NAME_BYTES_MAX + 1] = "";
    struct stele_error error = {0};
    struct snapshot_entry more;
    const struct snapshot_info *info;

    run_expect_ok(snapshot_reader_open(store->snapshot_dir, lsn,
                                       SNAPSHOT_PUBLISHED, NULL, &walk.reader,
                                       &error),
                  &error, "snapshot");
    while (stele_table_next(view, table[0] == '\0' ? NULL : table, table,
                            &error) == STELE_OK) {
        compare_table(&walk, table);
    }
    if (next_key(&walk, &more)) {
        run_fail("the snapshot has more than the view");
    }
    info = snapshot_reader_info(walk.reader);
    if (info->totals.keys != walk.keys || info->totals.sum != walk.sum) {
        run_fail("the snapshot's digest is not the state's");
    }
    snapshot_reader_close(walk.reader);
}

static void check_snapshot(uint64_t lsn)
{
    struct stele_error error = {0};
    struct stele_view *view;

    run_expect_ok(stele_view_open_at(store, lsn, &view, &error), &error,
                  "view of a snapshot's LSN");
    for (unsigned index = 0; index < COMMITTERS; index++) {
        const struct history_seen seen =
            history_check(view, committers[index].owner);

        assert_ends_at(&committers[index], &seen, lsn);
    }
    compare_with_file(view, lsn);
    stele_view_close(view);
}

static void start_committers(void)
{
    atomic_store(&stop, false);
    for (unsigned index = 0; index < COMMITTERS; index++) {
        struct committer *committer = &committers[index];

        committer->owner = index;
        atomic_store(&committer->count, 0);
        committer->lsns = calloc(BATCHES_MAX + 1, sizeof *committer->lsns);
        assert_non_null(committer->lsns);
        assert_int_equal(
            pthread_create(&committer->thread, NULL, commit_main, committer),
            0);
    }
}

static void stop_committers(void)
{
    atomic_store(&stop, true);
    for (unsigned index = 0; index < COMMITTERS; index++) {
        assert_int_equal(pthread_join(committers[index].thread, NULL), 0);
    }
}

static void free_committers(void)
{
    for (unsigned index = 0; index < COMMITTERS; index++) {
        free(committers[index].lsns);
    }
}

static void open_in(const char *path)
{
    struct stele_error error = {0};
    struct stele_options options;
    struct store_tuning tuning;

    stele_options_init(&options);
    options.mode = STELE_OPEN_CREATE;
    options.segment_bytes = 1 << 20;
    options.memtable_bytes = 256 << 10;
    store_tuning_init(&tuning);
    tuning.snapshot_step_bytes = STEP_BYTES;
    tuning.snapshot_log_bytes = 4 << 20; /* By themselves, too. */
    tuning.checkpoint_pause_ms = 1;
    run_expect_ok(store_open(path, &options, &tuning, &store, &error), &error,
                  "open");
}

static void put_ballast(void)
{
    static const char value[BALLAST_BYTES] = "ballast";
    struct stele_error error = {0};
    struct stele_batch *batch;

    run_expect_ok(stele_batch_create(&batch, &error), &error, "batch");
    for (unsigned number = 0; number < BALLAST_KEYS; number++) {
        char key[16];
        const int bytes = snprintf(key, sizeof key, "%08u", number);

        run_expect_ok(stele_batch_put(batch, "ballast", key, (size_t)bytes,
                                      value, sizeof value, &error),
                      &error, "put");
        if (stele_batch_bytes(batch) > (256 << 10) ||
            number + 1 == BALLAST_KEYS) {
            run_expect_ok(
                stele_commit(store, batch, STELE_DURABLE, NULL, &error), &error,
                "commit");
            stele_batch_clear(batch);
        }
    }
    stele_batch_destroy(batch);
}

static uint64_t commits(void)
{
    uint64_t sum = 0;

    for (unsigned index = 0; index < COMMITTERS; index++) {
        sum += atomic_load(&committers[index].count);
    }
    return sum;
}

static void snapshots_during_commits_are_exact_at_their_lsn(void **state)
{
    struct stele_stats stats = {.size = sizeof stats};
    struct stele_error error = {0};
    char *path = temp_dir_make();
    uint64_t last = 0;

    (void)state;
    open_in(path);
    put_ballast();
    start_committers();
    for (int round = 0; round < SNAPSHOTS; round++) {
        const uint64_t before = commits();
        struct retention_hold hold;
        uint64_t lsn;

        run_expect_ok(stele_snapshot(store, &lsn, &error), &error, "snapshot");
        if (lsn <= last || commits() <= before) {
            run_fail("nothing was committed while a snapshot was taken");
        }
        last = lsn;
        /* It may be superfluous soon: those that are due by themselves. */
        if (retention_hold(store, lsn, &hold, &error) == STELE_OK) {
            if (hold.lsn == lsn) {
                check_snapshot(lsn);
            }
            retention_release(store, &hold);
        }
    }
    stop_committers();
    print_message("%" PRIu64 " commits\n", commits());
    /* Those that are left, from what is on the disk alone. */
    run_expect_ok(stele_snapshot(store, &last, &error), &error, "snapshot");
    run_expect_ok(stele_stats(store, &stats, &error), &error, "stats");
    for (int index = 0; index < 2; index++) {
        assert_int_not_equal(stats.snapshot_lsns[index], 0);
        check_snapshot(stats.snapshot_lsns[index]);
    }
    assert_true(stats.segments_removed > 0);
    run_expect_ok(stele_close(store, &error), &error, "close");
    open_in(path);
    check_snapshot(last);
    run_expect_ok(stele_close(store, &error), &error, "close");
    free_committers();
    temp_dir_remove(path);
}

/* ---- One for each call ------------------------------------------------------------------ */

static _Atomic bool taken;

static void *take_main(void *context)
{
    struct stele_error error = {0};

    (void)context;
    run_expect_ok(stele_snapshot(store, NULL, &error), &error, "snapshot");
    atomic_store(&taken, true);
    return NULL;
}

static void checkpoint_something(void)
{
    struct stele_error error = {0};

    run_expect_ok(stele_put(store, "t", "k", 1, "v", 1, NULL, &error), &error,
                  "put");
    run_expect_ok(stele_checkpoint(store, &error), &error, "checkpoint");
}

static struct stele_stats stats_now(void)
{
    struct stele_stats stats = {.size = sizeof stats};
    struct stele_error error = {0};

    run_expect_ok(stele_stats(store, &stats, &error), &error, "stats");
    return stats;
}

/* The index goes on while one is taken; who asked for it did not ask for more. */
static void a_call_takes_no_second_snapshot(void **state)
{
    enum { CALLS = 20 };
    struct stele_error error = {0};
    char *path = temp_dir_make();

    (void)state;
    open_in(path);
    put_ballast();
    for (uint64_t call = 1; call <= CALLS; call++) {
        pthread_t taker;

        checkpoint_something();
        atomic_store(&taken, false);
        assert_int_equal(pthread_create(&taker, NULL, take_main, NULL), 0);
        while (!atomic_load(&taken) && stats_now().snapshot_bytes_done == 0) {
        }
        checkpoint_something();
        assert_int_equal(pthread_join(taker, NULL), 0);
        /* The base keeper looks around behind each. */
        checkpoint_something();
        checkpoint_something();
        assert_int_equal(stats_now().snapshot_bytes_done, 0);
        assert_int_equal(stats_now().snapshots_taken, call);
    }
    run_expect_ok(stele_close(store, &error), &error, "close");
    temp_dir_remove(path);
}

/* ---- Without memory ------------------------------------------------------------------ */

void *__real_calloc(size_t items, size_t bytes);
void *__wrap_calloc(size_t items, size_t bytes);

static _Atomic bool no_memory; /* For the store's own threads. */
static _Thread_local bool is_a_caller;

void *__wrap_calloc(size_t items, size_t bytes)
{
    return atomic_load(&no_memory) && !is_a_caller
               ? NULL
               : __real_calloc(items, bytes);
}

/* Whoever waits for a snapshot is told that it cannot even be begun. */
static void without_memory_nobody_waits_for_ever(void **state)
{
    struct stele_error error = {0};
    char *path = temp_dir_make();

    (void)state;
    open_in(path);
    checkpoint_something();
    is_a_caller = true;
    atomic_store(&no_memory, true);
    assert_int_equal(stele_snapshot(store, NULL, &error), STELE_NO_MEMORY);
    atomic_store(&no_memory, false);
    run_expect_ok(stele_snapshot(store, NULL, &error), &error, "snapshot");
    run_expect_ok(stele_close(store, &error), &error, "close");
    temp_dir_remove(path);
}

/* ---- Asking while one fails -------------------------------------------------------- */

enum stele_status __real_snapshot_writer_create(struct io_dir *dir,
                                                const uint8_t uuid[16],
                                                uint64_t lsn,
                                                struct snapshot_writer **out,
                                                struct stele_error *error);
enum stele_status __wrap_snapshot_writer_create(struct io_dir *dir,
                                                const uint8_t uuid[16],
                                                uint64_t lsn,
                                                struct snapshot_writer **out,
                                                struct stele_error *error);

static _Atomic bool no_room; /* Once ... */
static _Atomic bool is_held; /* ... which is about to be said ... */
static _Atomic bool may_go_on;

enum stele_status __wrap_snapshot_writer_create(struct io_dir *dir,
                                                const uint8_t uuid[16],
                                                uint64_t lsn,
                                                struct snapshot_writer **out,
                                                struct stele_error *error)
{
    if (!atomic_exchange(&no_room, false)) {
        return __real_snapshot_writer_create(dir, uuid, lsn, out, error);
    }
    atomic_store(&is_held, true);
    while (!atomic_load(&may_go_on)) {
        sched_yield();
    }
    return error_set(error, STELE_NO_SPACE, "no room");
}

struct asker {
    pthread_t thread;
    enum stele_status status;
};

static void *ask_main(void *context)
{
    struct asker *self = context;
    struct stele_error error = {0};

    self->status = stele_snapshot(store, NULL, &error);
    return NULL;
}

static void ask(struct asker *asker)
{
    assert_int_equal(pthread_create(&asker->thread, NULL, ask_main, asker), 0);
}

static uint32_t waiting(void)
{
    uint32_t count;

    mutex_lock(&store->keeper_mutex);
    count = store->snapshot_hurry;
    mutex_unlock(&store->keeper_mutex);
    return count;
}

/* Who asks while one fails gets another: the failure began before the question. */
static void nobody_is_told_of_a_failure_from_before(void **state)
{
    struct stele_error error = {0};
    char *path = temp_dir_make();
    struct asker first;
    struct asker second;

    (void)state;
    open_in(path);
    checkpoint_something();
    atomic_store(&no_room, true);
    ask(&first);
    while (!atomic_load(&is_held)) {
        sched_yield();
    }
    ask(&second);
    while (waiting() < 2) {
        sched_yield();
    }
    atomic_store(&may_go_on, true);
    assert_int_equal(pthread_join(first.thread, NULL), 0);
    assert_int_equal(pthread_join(second.thread, NULL), 0);
    if (first.status != STELE_OK) { /* The second's came before it woke. */
        assert_int_equal(first.status, STELE_NO_SPACE);
    }
    assert_int_equal(second.status, STELE_OK);
    assert_int_equal(stats_now().snapshot_failures, 1);
    run_expect_ok(stele_close(store, &error), &error, "close");
    temp_dir_remove(path);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(snapshots_during_commits_are_exact_at_their_lsn),
        cmocka_unit_test(a_call_takes_no_second_snapshot),
        cmocka_unit_test(without_memory_nobody_waits_for_ever),
        cmocka_unit_test(nobody_is_told_of_a_failure_from_before),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
