/*
 * tests/test_failures_snapshots.c -- what went wrong in other systems with snapshots,
 * with the removal of old logs, and with the index behind them.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/numbered.h"
#include "engine/checkpoint.h"
#include "engine/commit.h"
#include "engine/retention.h"
#include "engine/snapshots.h"
#include "tests/lib/generations.h"
#include "tests/lib/io_fault.h"
#include "tests/lib/store_dir.h"
#include "tests/lib/temp_dir.h"
#include "wal/segment.h"

static struct store_dir dir;

static void make(void)
{
    generations_make(&dir);
    dir.options.skip_close_checkpoint = true;
}

static int setup(void **state)
{
    (void)state;
    make();
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    store_dir_remove(&dir);
    return 0;
}

/* ---- Vocabulary -------------------------------------------------------------------- */

static const char *at(const char *name)
{
    return store_dir_at(&dir, name);
}

static void remove_index(void)
{
    files_remove(at("index/data.mdb"));
}

/* ---- Names ------------------------------------------------------------------------- */

/* etcd#6368, #22340, kafka#10405, #10680, ClickHouse#111339: a rename without a
 * directory sync; what counted on the name had gone. */
static void a_snapshot_counts_only_when_its_name_is_durable(void **state)
{
    uint64_t older;
    size_t segments;

    (void)state;
    generations_write(&dir);
    generations_snapshot(&dir);
    generations_write(&dir);
    older = generations_snapshot(&dir);
    generations_write(&dir);
    assert_int_equal(stele_checkpoint(dir.store, &dir.error), STELE_OK);
    segments = files_count(at("wal"), ".wal");
    io_fault_arm(&(struct io_fault){
        .call = IO_FAULT_SYNC_DIR, .times = 1, .sys_errno = EIO});
    assert_int_equal(stele_snapshot(dir.store, NULL, &dir.error), STELE_IO);
    io_fault_arm(NULL);
    /* Nothing has gone on the strength of it, and nothing more is written. */
    assert_int_equal(files_count(at("wal"), ".wal"), segments);
    assert_int_equal(store_dir_stats(&dir).snapshot_lsns[0], older);
    assert_true(store_dir_stats(&dir).poisoned);
    store_dir_kill(&dir);
    store_dir_open(&dir);
    assert_int_equal(store_dir_stats(&dir).snapshot_lsns[0], older);
    generations_assert(&dir);
    generations_reopen_without_index(&dir);
    generations_assert(&dir);
}

/* ---- Contiguity -------------------------------------------------------------------- */

/* etcd#14569, #12237, dqlite#309: a snapshot that is newer than the log was taken for
 * the state, and the log went on somewhere else. */
static void a_snapshot_beyond_the_logs_end_is_a_refusal(void **state)
{
    static const char segment[] = "wal/0000000000000001.wal";
    char kept[FILES_PATH_BYTES];
    char expected[128];
    uint64_t lsn;

    (void)state;
    store_dir_put(&dir, "a", "b");
    store_dir_path(&dir, "kept", kept);
    files_copy(at(segment), kept);
    store_dir_put(&dir, "a", "c");
    lsn = generations_snapshot(&dir);
    store_dir_kill(&dir);
    /* The log is as it was before; nothing else knows of more. */
    remove_index();
    files_rename(kept, at(segment));
    assert_int_equal(store_dir_try_open(&dir, STELE_OPEN_EXISTING),
                     STELE_CORRUPT);
    snprintf(expected, sizeof expected, "snapshot %016" PRIx64 " is unit 2",
             lsn);
    assert_non_null(strstr(dir.error.message, expected));
    assert_non_null(strstr(dir.error.message, "wal/0000000000000001.wal: "
                                              "offset 8192: unit 2 is lost"));
    assert_true(files_exists(at(generations_snapshot_name(lsn))));
}

/* raft#431, lxd#13319: a gap between the snapshot and the log behind it. */
static void a_gap_behind_the_snapshot_is_a_refusal(void **state)
{
    struct stele_stats stats;
    char away[FILES_PATH_BYTES];
    char missing[64];

    (void)state;
    generations_leave_two(&dir);
    stats = store_dir_stats(&dir);
    store_dir_kill(&dir);
    snprintf(missing, sizeof missing, "wal/%016" PRIx64 ".wal",
             stats.segment_current - 1);
    store_dir_path(&dir, "away", away);
    files_rename(at(missing), away);
    remove_index();
    assert_int_equal(store_dir_try_open(&dir, STELE_OPEN_EXISTING),
                     STELE_CORRUPT);
    assert_non_null(strstr(dir.error.message, missing));
    assert_non_null(strstr(dir.error.message, "row E"));
    files_rename(away, at(missing));
    store_dir_open(&dir);
    generations_assert(&dir);
}

/* ---- Damage -------------------------------------------------------------------------- */

/* openim-server#2903, ZooKeeper PR117, redisraft#654: the newest snapshot was cut or
 * could not be read, and the older one was not even tried. */
static void a_newest_snapshot_that_cannot_be_read_leaves_the_older(void **state)
{
    (void)state;
    for (int how = 0; how < 3; how++) {
        char name[64];
        uint64_t newest = generations_leave_two(&dir);

        snprintf(name, sizeof name, "%s", generations_snapshot_name(newest));
        store_dir_kill(&dir);
        remove_index();
        if (how == 0) { /* Empty, as after a power cut. */
            files_truncate(at(name), 0);
        } else if (how == 1) { /* A block's last byte. */
            files_truncate(at(name), files_size(at(name)) / 2);
        } else {
            io_fault_arm(&(struct io_fault){.call = IO_FAULT_READ,
                                            .suffix = name + 9,
                                            .after_calls = 3,
                                            .times = IO_FAULT_FOREVER,
                                            .sys_errno = EIO});
        }
        store_dir_open(&dir);
        io_fault_arm(NULL);
        generations_assert(&dir);
        assert_true(store_dir_stats(&dir).index_rebuilt);
        /* Evidence; but what a disk did not read this time may be sound. */
        assert_int_equal(files_exists(at(name)), how == 2);
        assert_int_equal(files_count(at("quarantine"), ".snap.0001"), how < 2);
        assert_int_not_equal(store_dir_stats(&dir).last_snapshot_error.status,
                             STELE_OK);
        store_dir_assert_verifies(&dir);
        store_dir_remove(&dir);
        make();
    }
}

/* WFLY-13991 (Artemis), rocketmq's load(), Prometheus#16074: the damaged file was
 * deleted, and with it what could have been saved. */
static void nothing_damaged_is_ever_deleted(void **state)
{
    uint8_t *damaged;
    uint8_t *found;
    char name[64];
    char aside[96];
    size_t bytes;
    size_t found_bytes;

    (void)state;
    generations_write(&dir);
    snprintf(name, sizeof name, "%s",
             generations_snapshot_name(generations_snapshot(&dir)));
    files_flip_bit(at(name), files_size(at(name)) / 2, 1);
    damaged = files_read(at(name), &bytes);
    for (int round = 0; round < 5; round++) {
        generations_write(&dir);
        generations_snapshot(&dir);
        store_dir_close(&dir);
        store_dir_open(&dir);
    }
    snprintf(aside, sizeof aside, "quarantine/%s.0001", name + 9);
    found = files_read(at(aside), &found_bytes);
    assert_int_equal(found_bytes, bytes);
    assert_memory_equal(found, damaged, bytes);
    free(found);
    free(damaged);
    generations_assert(&dir);
}

/* ---- Retention ------------------------------------------------------------------------ */

/* etcd PR11308, #19601, RaftKeeper#392, memgraph PR2283: a purge deleted log that
 * somebody still needed. Without any of its consumers the state is still there. */
static void every_consumer_finds_the_log_it_needs(void **state)
{
    struct retention_hold hold;
    struct stele_view *view;
    char name[64];
    uint64_t held;

    (void)state;
    generations_write(&dir);
    generations_snapshot(&dir);
    held = store_dir_stats(&dir).lsn_visible + 7;
    generations_write(&dir);
    assert_int_equal(retention_hold(dir.store, held, &hold, &dir.error),
                     STELE_OK);
    for (int round = 0; round < 4; round++) {
        generations_write(&dir);
        generations_snapshot(&dir);
    }
    /* Who holds an LSN: the state at it, key by key. */
    assert_int_equal(stele_view_open_at(dir.store, held, &view, &dir.error),
                     STELE_OK);
    {
        struct stele_value value;

        for (unsigned key = 0; key < GENERATIONS_KEYS; key++) {
            assert_int_equal(stele_view_get(view, "t", generations_key(key), 4,
                                            &value, &dir.error),
                             STELE_OK);
            assert_memory_equal(value.data,
                                generations_value(key, key < 7 ? 2 : 1),
                                GENERATIONS_VALUE_BYTES);
        }
    }
    stele_view_close(view);
    retention_release(dir.store, &hold);
    generations_write(&dir);
    generations_snapshot(&dir);
    generations_write(&dir);
    /* The index. */
    store_dir_kill(&dir);
    store_dir_open(&dir);
    generations_assert(&dir);
    /* The newest snapshot. */
    generations_reopen_without_index(&dir);
    generations_assert(&dir);
    /* The older one. */
    snprintf(name, sizeof name, "%s",
             generations_snapshot_name(store_dir_stats(&dir).snapshot_lsns[0]));
    files_remove(at(name));
    generations_reopen_without_index(&dir);
    generations_assert(&dir);
    store_dir_assert_verifies(&dir);
}

/* The wall clock of this test. */
static uint64_t wall_ns;
static uint64_t wall_clock(struct io *io)
{
    (void)io;
    return wall_ns;
}

/* Again, by that clock, which stands at `seconds`; the log of a second is kept. */
static void reopen_at(uint64_t seconds)
{
    static struct io_calls calls;
    static struct io clock_io = {.calls = &calls};

    store_dir_close(&dir);
    calls = *io_fault_io()->calls;
    calls.clock_wall_ns = wall_clock;
    dir.tuning.io = &clock_io;
    dir.options.retain_log_ms = 1000;
    wall_ns = seconds * 1000000000;
    store_dir_open(&dir);
}

static void set_time_of_file(const char *path, time_t seconds)
{
    const struct timespec times[2] = {{.tv_sec = seconds}, {.tv_sec = seconds}};

    assert_int_equal(utimensat(AT_FDCWD, path, times, 0), 0);
}

/* rocksdb's HISTORY, rqlite#2809: the clock went back, and the newest file was taken
 * for the oldest and deleted. */
static void what_is_newest_is_told_by_its_lsn_not_by_a_clock(void **state)
{
    uint64_t lsns[3];

    (void)state;
    reopen_at(2000000000);
    for (int round = 0; round < 3; round++) {
        generations_write(&dir);
        lsns[round] = generations_snapshot(&dir);
        set_time_of_file(at(generations_snapshot_name(lsns[round])),
                         1000000 - round);
        wall_ns -= UINT64_C(3600) * 1000000000;
    }
    assert_int_equal(store_dir_stats(&dir).snapshot_lsns[0], lsns[2]);
    assert_int_equal(store_dir_stats(&dir).snapshot_lsns[1], lsns[1]);
    wall_ns = UINT64_MAX / 2; /* And far ahead: nothing that is needed goes. */
    generations_write(&dir);
    generations_snapshot(&dir);
    generations_write(&dir);
    generations_reopen_without_index(&dir);
    generations_assert(&dir);
    store_dir_assert_verifies(&dir);
    store_dir_kill(&dir);
}

/* A crash at a rotation leaves a segment that nothing can be told of: it holds up
 * what is kept by time no longer than the segments around it. */
static void a_segment_without_a_date_is_not_kept_for_ever(void **state)
{
    char torn[FILES_PATH_BYTES];
    char name[NUMBERED_NAME_BYTES + 16];
    uint64_t seq;

    (void)state;
    reopen_at(1000000000);
    generations_write(&dir);
    assert_int_equal(store_prepare_segment(dir.store, &dir.error), STELE_OK);
    seq = store_dir_stats(&dir).segment_last;
    assert_true(seq > store_dir_stats(&dir).segment_current);
    store_dir_kill(&dir);
    snprintf(name, sizeof name, "wal/%016" PRIx64 ".wal", seq);
    files_path(torn, dir.path, name);
    files_fill_at(torn, WAL_SEGMENT_HEADER_BYTES, 'x', 100);
    store_dir_open(&dir);
    assert_int_equal(store_dir_stats(&dir).recovery_row, 'C');
    for (int round = 0; round < 4; round++) {
        generations_write(&dir);
        generations_snapshot(&dir);
        wall_ns += UINT64_C(3600) * 1000000000;
    }
    assert_true(store_dir_stats(&dir).segment_first > seq);
    generations_assert(&dir);
    store_dir_kill(&dir);
}

/* ---- Index and replay ------------------------------------------------------------------ */

/* etcd#13766: what the index said that it had applied was not what it had. */
static void what_is_applied_is_told_with_the_data(void **state)
{
    struct checkpoint *checkpoint;
    bool done = false;
    bool froze;

    (void)state;
    for (unsigned steps = 1; steps < GENERATIONS_KEYS; steps += 5) {
        generations_write(&dir);
        assert_int_equal(commit_freeze(dir.store, &froze, &dir.error),
                         STELE_OK);
        assert_int_equal(checkpoint_begin(dir.store, &checkpoint, &dir.error),
                         STELE_OK);
        for (unsigned step = 0; step < steps && !done; step++) {
            assert_int_equal(
                checkpoint_advance(dir.store, checkpoint, 1, &done, &dir.error),
                STELE_OK);
        }
        checkpoint_destroy(checkpoint);
        store_dir_kill(&dir); /* Between two transactions. */
        store_dir_open(&dir);
        generations_assert(&dir);
        store_dir_assert_verifies(&dir);
    }
}

/* fsdb#23: a snapshot was taken, the cut of the log got lost, and what the snapshot
 * held was applied once more. */
static void a_log_that_was_not_cut_is_not_applied_twice(void **state)
{
    struct stele_batch *batch;
    uint64_t count = 0;
    uint64_t lsn;
    struct stele_view *view;

    (void)state;
    generations_write(&dir);
    /* An order that matters: put, clear, put. */
    assert_int_equal(stele_batch_create(&batch, &dir.error), STELE_OK);
    assert_int_equal(stele_batch_clear_table(batch, "t", &dir.error), STELE_OK);
    assert_int_equal(
        stele_batch_put(batch, "t", "last", 4, "one", 3, &dir.error), STELE_OK);
    assert_int_equal(
        stele_commit(dir.store, batch, STELE_DURABLE, NULL, &dir.error),
        STELE_OK);
    stele_batch_destroy(batch);
    io_fault_arm(&(struct io_fault){.call = IO_FAULT_WRITE,
                                    .suffix = "ANCHOR",
                                    .times = 1,
                                    .sys_errno = ENOSPC});
    lsn = store_dir_stats(&dir).lsn_visible;
    assert_int_equal(stele_snapshot(dir.store, NULL, &dir.error),
                     STELE_NO_SPACE);
    io_fault_arm(NULL);
    /* The snapshot is there, all of the log is, and nothing says so. */
    assert_true(files_exists(at(generations_snapshot_name(lsn))));
    assert_true(files_exists(at("wal/0000000000000001.wal")));
    generations_reopen_without_index(&dir);
    assert_true(store_dir_has(&dir, "last", "one"));
    assert_int_equal(stele_view_open(dir.store, &view, &dir.error), STELE_OK);
    assert_int_equal(stele_table_count(view, "t", &count, &dir.error),
                     STELE_OK);
    assert_int_equal(count, 1);
    stele_view_close(view);
    store_dir_assert_verifies(&dir);
    generations_snapshot(&dir);
    assert_int_equal(files_count(at("snapshot"), ""), 1);
}

/* ---- While it runs ----------------------------------------------------------------------- */

/* nats#7827, mosquitto#172, #3110: while the state was saved the broker stood still. */
static void commits_and_reads_go_on_between_any_two_steps(void **state)
{
    unsigned steps = 0;
    unsigned commits = 0;

    (void)state;
    generations_write(&dir);
    assert_int_equal(stele_checkpoint(dir.store, &dir.error), STELE_OK);
    assert_int_equal(snapshots_begin(dir.store, &dir.error), STELE_OK);
    while (dir.store->snapshot_run != NULL) {
        assert_int_equal(snapshots_advance(dir.store, 1, &dir.error), STELE_OK);
        store_dir_put(&dir, "meanwhile", "is acknowledged");
        assert_true(store_dir_has(&dir, "meanwhile", "is acknowledged"));
        commits++;
        if (++steps % 8 == 0) {
            assert_int_equal(stele_checkpoint(dir.store, &dir.error), STELE_OK);
        }
    }
    assert_true(commits > 6);
    assert_int_equal(store_dir_stats(&dir).snapshots_taken, 1);
}

static void copy_tree(const char *from, const char *to)
{
    char command[2 * FILES_PATH_BYTES + 32];

    snprintf(command, sizeof command, "cp -r %s/. %s/", from, to);
    assert_int_equal(system(command), 0);
}

/* redis PR10178, pebble#5142: a plain copy of a live directory was useless, or looked
 * damaged. It is noticed: the index is not the one that ANCHOR names, and is built
 * anew from what can be checked. */
static void a_plain_copy_of_a_live_directory_is_noticed(void **state)
{
    struct checkpoint *checkpoint;
    struct store_dir copy = dir;
    bool froze;
    bool done;

    (void)state;
    generations_leave_two(&dir);
    assert_int_equal(commit_freeze(dir.store, &froze, &dir.error), STELE_OK);
    assert_int_equal(checkpoint_begin(dir.store, &checkpoint, &dir.error),
                     STELE_OK);
    assert_int_equal(
        checkpoint_advance(dir.store, checkpoint, 7, &done, &dir.error),
        STELE_OK);
    copy.path = temp_dir_make();
    copy.store = NULL;
    copy_tree(dir.path, copy.path);
    checkpoint_destroy(checkpoint);
    store_dir_open(&copy);
    assert_true(store_dir_stats(&copy).index_rebuilt);
    assert_int_equal(files_count(store_dir_at(&copy, "quarantine"), "0001"), 1);
    for (unsigned key = 0; key < GENERATIONS_KEYS; key++) {
        assert_true(store_dir_has(&copy, generations_key(key),
                                  generations_value_now(key)));
    }
    store_dir_assert_verifies(&copy);
    store_dir_remove(&copy);
}

#define STORE_TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        STORE_TEST(a_snapshot_counts_only_when_its_name_is_durable),
        STORE_TEST(a_snapshot_beyond_the_logs_end_is_a_refusal),
        STORE_TEST(a_gap_behind_the_snapshot_is_a_refusal),
        STORE_TEST(a_newest_snapshot_that_cannot_be_read_leaves_the_older),
        STORE_TEST(nothing_damaged_is_ever_deleted),
        STORE_TEST(every_consumer_finds_the_log_it_needs),
        STORE_TEST(a_segment_without_a_date_is_not_kept_for_ever),
        STORE_TEST(what_is_newest_is_told_by_its_lsn_not_by_a_clock),
        STORE_TEST(what_is_applied_is_told_with_the_data),
        STORE_TEST(a_log_that_was_not_cut_is_not_applied_twice),
        STORE_TEST(commits_and_reads_go_on_between_any_two_steps),
        STORE_TEST(a_plain_copy_of_a_live_directory_is_noticed),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
