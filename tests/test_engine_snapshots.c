/*
 * tests/test_engine_snapshots.c -- taking snapshots, what they let go, and
 * rebuilding from them, on real files and step by step.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/numbered.h"
#include "engine/checkpoint.h"
#include "engine/commit.h"
#include "engine/retention.h"
#include "engine/snapshots.h"
#include "snapshot/reader.h"
#include "tests/lib/generations.h"
#include "tests/lib/io_fault.h"
#include "tests/lib/store_dir.h"

static struct store_dir dir;

static int setup(void **state)
{
    (void)state;
    generations_make(&dir);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    store_dir_remove(&dir);
    return 0;
}

/* ---- Vocabulary -------------------------------------------------------------------- */

static const char *snapshot_file(uint64_t lsn)
{
    return store_dir_at(&dir, generations_snapshot_name(lsn));
}

static size_t count(const char *name, const char *suffix)
{
    return files_count(store_dir_at(&dir, name), suffix);
}

/* Flip a bit where this text stands in the file. */
static void rot(const char *path, const char *text)
{
    const uint64_t place = files_find(path, text, strlen(text));

    assert_int_not_equal(place, UINT64_MAX);
    files_flip_bit(path, place, 3);
}

/* ---- Taking one ----------------------------------------------------------------------- */

static void a_snapshot_is_the_whole_state_at_its_lsn(void **state)
{
    struct snapshot_reader *reader;
    struct snapshot_entry entry;
    uint64_t keys = 0;
    uint64_t lsn;

    (void)state;
    generations_write(&dir);
    lsn = generations_snapshot(&dir);
    assert_int_equal(lsn, store_dir_stats(&dir).lsn_visible);
    assert_int_equal(snapshot_reader_open(dir.store->snapshot_dir, lsn,
                                          SNAPSHOT_PUBLISHED, NULL, &reader,
                                          &dir.error),
                     STELE_OK);
    while (snapshot_reader_next(reader, &entry, &dir.error) == STELE_OK) {
        struct base_value value;

        assert_true(base_value_decode(entry.stored, &value));
        if (base_key_table_bytes(entry.key) + 1 < entry.key.size) {
            assert_int_equal(value.value.size, GENERATIONS_VALUE_BYTES);
            assert_memory_equal(value.value.data,
                                generations_value_now((unsigned)keys),
                                GENERATIONS_VALUE_BYTES);
            keys++;
        }
    }
    assert_int_equal(dir.error.status, STELE_NOT_FOUND);
    assert_int_equal(keys, GENERATIONS_KEYS);
    assert_int_equal(snapshot_reader_info(reader)->totals.keys,
                     GENERATIONS_KEYS);
    assert_int_equal(snapshot_reader_info(reader)->totals.tables, 1);
    snapshot_reader_close(reader);
    assert_int_equal(store_dir_stats(&dir).snapshot_lsns[0], lsn);
    assert_int_equal(count("snapshot", ".tmp"), 0);
}

static void a_state_is_not_taken_twice(void **state)
{
    (void)state;
    assert_int_equal(generations_snapshot(&dir),
                     0); /* The empty state needs none. */
    assert_int_equal(count("snapshot", ""), 0);
    generations_write(&dir);
    assert_int_equal(generations_snapshot(&dir), generations_snapshot(&dir));
    assert_int_equal(count("snapshot", ""), 1);
    assert_int_equal(store_dir_stats(&dir).snapshots_taken, 1);
}

static void commits_and_checkpoints_go_on_while_one_is_taken(void **state)
{
    uint64_t lsn;

    (void)state;
    generations_write(&dir);
    assert_int_equal(stele_checkpoint(dir.store, &dir.error), STELE_OK);
    lsn = store_dir_stats(&dir).lsn_applied;
    assert_int_equal(snapshots_begin(dir.store, &dir.error), STELE_OK);
    for (unsigned steps = 0; dir.store->snapshot_run != NULL; steps++) {
        assert_int_equal(
            snapshots_advance(dir.store, GENERATIONS_STEP_BYTES, &dir.error),
            STELE_OK);
        if (steps % 4 == 0) {
            store_dir_put(&dir, generations_key(steps % GENERATIONS_KEYS),
                          "changed meanwhile");
            assert_int_equal(stele_checkpoint(dir.store, &dir.error), STELE_OK);
        }
    }
    assert_int_equal(store_dir_stats(&dir).snapshot_lsns[0], lsn);
    /* It has nothing of what came later: rebuilt from it and the log, all is. */
    generations_reopen_without_index(&dir);
    assert_true(store_dir_has(&dir, generations_key(0), "changed meanwhile"));
    assert_true(
        store_dir_has(&dir, generations_key(1), generations_value_now(1)));
    store_dir_assert_verifies(&dir);
}

static void an_index_between_two_lsns_is_not_taken(void **state)
{
    struct checkpoint *checkpoint;
    bool froze;
    bool done;

    (void)state;
    generations_write(&dir);
    dir.store->tuning.checkpoint_pages_max = 1;
    assert_int_equal(commit_freeze(dir.store, &froze, &dir.error), STELE_OK);
    assert_int_equal(checkpoint_begin(dir.store, &checkpoint, &dir.error),
                     STELE_OK);
    assert_int_equal(
        checkpoint_advance(dir.store, checkpoint, 3, &done, &dir.error),
        STELE_OK);
    assert_false(done);
    assert_int_equal(snapshots_begin(dir.store, &dir.error), STELE_OK);
    assert_null(dir.store->snapshot_run);
    checkpoint_destroy(checkpoint);
    /* Nor by another life. */
    store_dir_kill(&dir);
    store_dir_open(&dir);
    assert_int_equal(snapshots_begin(dir.store, &dir.error), STELE_OK);
    assert_null(dir.store->snapshot_run);
    assert_int_equal(count("snapshot", ""), 0);
    generations_snapshot(&dir);
    generations_assert(&dir);
}

static void closing_gives_the_one_under_way_up(void **state)
{
    (void)state;
    generations_write(&dir);
    assert_int_equal(stele_checkpoint(dir.store, &dir.error), STELE_OK);
    assert_int_equal(snapshots_begin(dir.store, &dir.error), STELE_OK);
    assert_int_equal(snapshots_advance(dir.store, 1, &dir.error), STELE_OK);
    assert_int_equal(count("snapshot", ".tmp"), 1);
    store_dir_close(&dir);
    assert_int_equal(count("snapshot", ""), 0);
    store_dir_open(&dir);
    generations_assert(&dir);
}

static void the_temporary_of_a_killed_process_is_removed(void **state)
{
    (void)state;
    generations_write(&dir);
    assert_int_equal(stele_checkpoint(dir.store, &dir.error), STELE_OK);
    assert_int_equal(snapshots_begin(dir.store, &dir.error), STELE_OK);
    assert_int_equal(snapshots_advance(dir.store, 1, &dir.error), STELE_OK);
    store_dir_kill(&dir);
    assert_int_equal(count("snapshot", ".tmp"), 1);
    store_dir_open(&dir);
    assert_int_equal(count("snapshot", ""), 0);
    generations_assert(&dir);
}

static void a_log_that_has_grown_makes_one_due(void **state)
{
    (void)state;
    dir.store->tuning.snapshot_log_bytes = GENERATIONS_SEGMENT_BYTES;
    assert_false(snapshots_due(dir.store));
    generations_write(&dir);
    assert_false(snapshots_due(dir.store)); /* It would not have it. */
    assert_int_equal(stele_checkpoint(dir.store, &dir.error), STELE_OK);
    assert_true(snapshots_due(dir.store));
    generations_snapshot(&dir);
    assert_false(snapshots_due(dir.store));
    /* The last one's size counts, too: two segments. */
    store_dir_put(&dir, "a", "b");
    for (unsigned key = 0; key < GENERATIONS_KEYS / 2; key++) {
        store_dir_put(&dir, generations_key(key), generations_value_now(key));
    }
    assert_int_equal(stele_checkpoint(dir.store, &dir.error), STELE_OK);
    assert_false(snapshots_due(dir.store));
    /* And it does over the end of a process. */
    store_dir_close(&dir);
    store_dir_open(&dir);
    dir.store->tuning.snapshot_log_bytes = GENERATIONS_SEGMENT_BYTES;
    assert_false(snapshots_due(dir.store));
    generations_write(&dir);
    assert_int_equal(stele_checkpoint(dir.store, &dir.error), STELE_OK);
    assert_true(snapshots_due(dir.store));
}

/* ---- What does not become one ------------------------------------------------------------- */

static void nothing_rotten_becomes_a_snapshot(void **state)
{
    uint64_t first;

    (void)state;
    generations_write(&dir);
    first = generations_snapshot(&dir);
    generations_write(&dir);
    assert_int_equal(stele_checkpoint(dir.store, &dir.error), STELE_OK);
    rot(store_dir_at(&dir, "index/data.mdb"), "key 17 generation 2");
    store_dir_put(&dir, "a", "b");
    assert_int_equal(stele_snapshot(dir.store, NULL, &dir.error),
                     STELE_CORRUPT);
    assert_non_null(strstr(dir.error.message, "table \"t\", key \"0017\""));
    assert_int_equal(count("snapshot", ""), 1);
    assert_int_equal(store_dir_stats(&dir).snapshot_lsns[0], first);
    assert_int_equal(store_dir_stats(&dir).segments_removed, 0);
    assert_true(store_dir_stats(&dir).index_damaged);
    /* The index is expendable: it is built anew, and nothing was laundered. */
    generations_reopen_without_index(&dir);
    generations_assert(&dir);
    generations_snapshot(&dir);
    assert_int_equal(store_dir_stats(&dir).snapshots_taken, 1);
}

static void a_count_that_is_wrong_becomes_no_snapshot(void **state)
{
    struct index_writer *writer;

    (void)state;
    generations_write(&dir);
    assert_int_equal(stele_checkpoint(dir.store, &dir.error), STELE_OK);
    assert_int_equal(index_writer_begin(dir.store->index, &writer, &dir.error),
                     STELE_OK);
    assert_int_equal(index_writer_delete(writer,
                                         (struct bytes){"t\0"
                                                        "0017",
                                                        6},
                                         &dir.error),
                     STELE_OK);
    assert_int_equal(index_writer_commit(writer, &dir.store->applied,
                                         &dir.store->applied, &dir.error),
                     STELE_OK);
    assert_int_equal(stele_snapshot(dir.store, NULL, &dir.error),
                     STELE_CORRUPT);
    assert_non_null(strstr(dir.error.message, "it says 40 keys"));
    assert_int_equal(count("snapshot", ""), 0);
}

static void a_full_disk_leaves_nothing_and_removes_nothing(void **state)
{
    static const struct io_fault faults[] = {
        {.call = IO_FAULT_CREATE,
         .suffix = ".tmp",
         .times = IO_FAULT_FOREVER,
         .sys_errno = ENOSPC},
        {.call = IO_FAULT_WRITE,
         .suffix = ".tmp",
         .times = IO_FAULT_FOREVER,
         .sys_errno = ENOSPC},
        {.call = IO_FAULT_WRITE,
         .suffix = ".tmp",
         .after_calls = 1,
         .times = IO_FAULT_FOREVER,
         .sys_errno = EDQUOT},
    };
    size_t segments;

    (void)state;
    for (int round = 0; round < 2; round++) {
        generations_write(&dir);
        generations_snapshot(&dir);
    }
    generations_write(&dir);
    segments = count("wal", ".wal");
    for (size_t index = 0; index < sizeof faults / sizeof *faults; index++) {
        io_fault_arm(&faults[index]);
        assert_int_equal(stele_snapshot(dir.store, NULL, &dir.error),
                         STELE_NO_SPACE);
        io_fault_arm(NULL);
        assert_int_equal(count("snapshot", ".tmp"), 0);
        assert_int_equal(count("snapshot", ".snap"), 2);
        assert_int_equal(count("wal", ".wal"), segments);
        assert_int_equal(store_dir_stats(&dir).last_snapshot_error.status,
                         STELE_NO_SPACE);
    }
    generations_snapshot(&dir); /* Tried again, with space. */
    assert_int_equal(store_dir_stats(&dir).last_snapshot_error.status,
                     STELE_OK);
    assert_int_equal(count("snapshot", ".snap"), 2);
    generations_assert(&dir);
}

static void a_failing_sync_is_not_repeated_and_poisons_nothing(void **state)
{
    (void)state;
    generations_write(&dir);
    io_fault_arm(&(struct io_fault){
        .call = IO_FAULT_SYNC, .suffix = ".tmp", .times = 1, .sys_errno = EIO});
    assert_int_equal(stele_snapshot(dir.store, NULL, &dir.error), STELE_IO);
    assert_int_equal(io_fault_count(), 1);
    io_fault_arm(NULL);
    assert_int_equal(count("snapshot", ""), 0);
    assert_false(store_dir_stats(&dir).poisoned);
    generations_snapshot(&dir);
}

static void a_directory_sync_that_fails_poisons(void **state)
{
    (void)state;
    generations_write(&dir);
    assert_int_equal(stele_checkpoint(dir.store, &dir.error), STELE_OK);
    io_fault_arm(&(struct io_fault){
        .call = IO_FAULT_SYNC_DIR, .times = 1, .sys_errno = EIO});
    assert_int_equal(stele_snapshot(dir.store, NULL, &dir.error), STELE_IO);
    io_fault_arm(NULL);
    assert_true(store_dir_stats(&dir).poisoned);
    assert_int_equal(store_dir_try_put(&dir, "a", "b"), STELE_POISONED);
    store_dir_kill(&dir);
    store_dir_open(&dir);
    generations_assert(&dir);
    generations_snapshot(&dir);
}

/* ---- What they let go ------------------------------------------------------------------------ */

static void the_log_is_whole_until_there_are_two(void **state)
{
    uint64_t first;
    uint64_t second;
    uint64_t third;
    struct stele_segment segment;

    (void)state;
    generations_write(&dir);
    first = generations_snapshot(&dir);
    assert_int_equal(store_dir_stats(&dir).segment_first, 1);
    assert_int_equal(stele_segment_next(dir.store, 0, &segment, &dir.error),
                     STELE_OK);
    assert_int_equal(segment.kept, STELE_KEPT_SNAPSHOTS);
    generations_write(&dir);
    second = generations_snapshot(&dir);
    assert_int_equal(store_dir_stats(&dir).snapshot_lsns[0], second);
    assert_int_equal(store_dir_stats(&dir).snapshot_lsns[1], first);
    assert_true(store_dir_stats(&dir).segment_first > 1);
    assert_false(files_exists(store_dir_at(&dir, "wal/0000000000000001.wal")));
    assert_int_equal(stele_segment_next(dir.store, 0, &segment, &dir.error),
                     STELE_OK);
    assert_int_equal(segment.sequence, store_dir_stats(&dir).segment_first);
    assert_int_equal(segment.kept, STELE_KEPT_SNAPSHOT);
    assert_int_equal(segment.lsn, first);
    generations_write(&dir);
    third = generations_snapshot(&dir);
    assert_int_equal(count("snapshot", ""), 2);
    assert_false(files_exists(snapshot_file(first)));
    assert_true(files_exists(snapshot_file(second)));
    assert_true(files_exists(snapshot_file(third)));
    store_dir_assert_verifies(&dir);
}

static void nothing_goes_that_is_held(void **state)
{
    struct retention_hold hold;
    uint64_t first;

    (void)state;
    generations_write(&dir);
    first = generations_snapshot(&dir);
    assert_int_equal(retention_hold(dir.store, first + 3, &hold, &dir.error),
                     STELE_OK);
    for (int round = 0; round < 3; round++) {
        generations_write(&dir);
        generations_snapshot(&dir);
    }
    assert_true(files_exists(snapshot_file(first)));
    assert_true(store_dir_stats(&dir).segment_first <= hold.segment);
    retention_release(dir.store, &hold);
    generations_write(&dir);
    generations_snapshot(&dir);
    assert_false(files_exists(snapshot_file(first)));
    assert_true(store_dir_stats(&dir).segment_first > hold.segment);
    assert_int_equal(retention_hold(dir.store, first + 3, &hold, &dir.error),
                     STELE_NOT_FOUND);
}

static void options_keep_more(void **state)
{
    uint64_t first;

    (void)state;
    store_dir_close(&dir);
    dir.options.retain_log_bytes = 100 * GENERATIONS_SEGMENT_BYTES;
    store_dir_open(&dir);
    generations_write(&dir);
    first = generations_snapshot(&dir);
    for (int round = 0; round < 3; round++) {
        generations_write(&dir);
        generations_snapshot(&dir);
    }
    assert_int_equal(store_dir_stats(&dir).segment_first, 1);
    assert_true(files_exists(snapshot_file(first)));
    store_dir_close(&dir);
    dir.options.retain_log_bytes = 0;
    dir.options.retain_log_ms = 3600 * 1000;
    store_dir_open(&dir);
    generations_write(&dir);
    generations_snapshot(&dir);
    assert_int_equal(store_dir_stats(&dir).segment_first, 1);
    store_dir_close(&dir);
    dir.options.retain_log_ms = 0;
    store_dir_open(&dir);
    generations_write(&dir);
    generations_snapshot(&dir);
    assert_int_equal(count("snapshot", ""), 2);
    assert_true(store_dir_stats(&dir).segment_first > 1);
    generations_assert(&dir);
}

static void a_removal_that_was_cut_short_is_finished_at_open(void **state)
{
    (void)state;
    for (int round = 0; round < 3; round++) {
        generations_write(&dir);
        if (round == 2) {
            io_fault_arm(&(struct io_fault){.call = IO_FAULT_UNLINK,
                                            .suffix = ".wal",
                                            .after_calls = 1,
                                            .times = IO_FAULT_FOREVER,
                                            .sys_errno = EIO});
            assert_int_equal(stele_snapshot(dir.store, NULL, &dir.error),
                             STELE_IO);
            io_fault_arm(NULL);
        } else {
            generations_snapshot(&dir);
        }
    }
    store_dir_kill(&dir);
    store_dir_open(&dir);
    generations_assert(&dir);
    assert_int_equal(count("wal", ".wal"),
                     store_dir_stats(&dir).segment_last -
                         store_dir_stats(&dir).segment_first + 1);
    store_dir_assert_verifies(&dir);
}

/* ---- Rebuilding --------------------------------------------------------------------------------- */

static void an_index_that_is_gone_is_built_from_the_newest(void **state)
{
    (void)state;
    for (int round = 0; round < 3; round++) {
        generations_write(&dir);
        generations_snapshot(&dir);
    }
    generations_write(&dir);
    generations_reopen_without_index(&dir);
    generations_assert(&dir);
    store_dir_assert_verifies(&dir);
    store_dir_close(&dir);
    store_dir_open(&dir);
    assert_false(store_dir_stats(&dir).index_rebuilt);
    generations_assert(&dir);
}

static void assert_the_older_one_serves(uint64_t damaged)
{
    generations_reopen_without_index(&dir);
    generations_assert(&dir);
    assert_false(files_exists(snapshot_file(damaged)));
    assert_int_equal(count("quarantine", ".snap.0001"), 1);
    assert_int_equal(store_dir_stats(&dir).last_snapshot_error.status,
                     STELE_CORRUPT);
    store_dir_assert_verifies(&dir);
}

static void a_newest_one_that_rotted_is_set_aside_and_the_older_serves(
    void **state)
{
    uint64_t newest;

    (void)state;
    newest = generations_leave_two(&dir);
    rot(snapshot_file(newest), "key 17 generation 3");
    assert_the_older_one_serves(newest);
}

static void a_newest_one_that_was_cut_is_set_aside_and_the_older_serves(
    void **state)
{
    uint64_t newest;

    (void)state;
    newest = generations_leave_two(&dir);
    files_truncate(snapshot_file(newest),
                   files_size(snapshot_file(newest)) - 1);
    assert_the_older_one_serves(newest);
}

/* It was OK to be asked for one of this LSN, and there was none. */
static void one_that_was_set_aside_at_open_is_taken_again(void **state)
{
    uint64_t older;
    uint64_t newest;

    (void)state;
    generations_write(&dir);
    older = generations_snapshot(&dir);
    generations_write(&dir);
    newest = generations_snapshot(&dir);
    rot(snapshot_file(newest), "key 17 generation 2");
    generations_reopen_without_index(&dir);
    assert_false(files_exists(snapshot_file(newest)));
    assert_int_equal(store_dir_stats(&dir).snapshot_lsns[0], older);
    assert_int_equal(store_dir_stats(&dir).snapshot_lsns[1], 0);
    assert_int_equal(generations_snapshot(&dir), newest);
    assert_true(files_exists(snapshot_file(newest)));
    assert_int_equal(store_dir_stats(&dir).snapshot_lsns[0], newest);
    assert_int_equal(store_dir_stats(&dir).snapshot_lsns[1], older);
}

/* A disk that fails to read is not a file that is damaged: nothing is moved, the
 * status says so, and the next open, which can read, finds all of it. */
static void two_that_cannot_be_read_are_left_where_they_are(void **state)
{
    (void)state;
    (void)generations_leave_two(&dir);
    for (uint64_t after = 0; after < 6; after++) {
        store_dir_kill(&dir);
        files_remove(store_dir_at(&dir, "index/data.mdb"));
        io_fault_arm(&(struct io_fault){.call = IO_FAULT_READ,
                                        .suffix = ".snap",
                                        .after_calls = after,
                                        .times = IO_FAULT_FOREVER,
                                        .sys_errno = EIO});
        assert_int_equal(store_dir_try_open(&dir, STELE_OPEN_EXISTING),
                         STELE_IO);
        io_fault_arm(NULL);
        store_dir_open(&dir);
        generations_assert(&dir);
        assert_int_equal(count("snapshot", ".snap"), 2);
        assert_int_equal(count("quarantine", ".snap.0001"), 0);
    }
}

static void two_that_are_damaged_are_a_refusal(void **state)
{
    uint64_t newest;
    uint64_t older;

    (void)state;
    newest = generations_leave_two(&dir);
    older = store_dir_stats(&dir).snapshot_lsns[1];
    files_truncate(snapshot_file(newest), 100);
    files_truncate(snapshot_file(older), 0);
    /* The index is there: nothing is lost. */
    store_dir_kill(&dir);
    store_dir_open(&dir);
    generations_assert(&dir);
    assert_int_equal(store_dir_stats(&dir).snapshot_lsns[0], 0);
    generations_snapshot(&dir);
    generations_snapshot(&dir);
    generations_assert(&dir);
    store_dir_put(&dir, "a", "b");
    newest = generations_snapshot(&dir);
    older = store_dir_stats(&dir).snapshot_lsns[1];
    files_truncate(snapshot_file(newest), 100);
    files_truncate(snapshot_file(older), 0);
    store_dir_kill(&dir);
    files_remove(store_dir_at(&dir, "index/data.mdb"));
    assert_int_equal(store_dir_try_open(&dir, STELE_OPEN_EXISTING),
                     STELE_CORRUPT);
    assert_non_null(strstr(dir.error.message, "row E: no base is left"));
    assert_true(files_exists(snapshot_file(newest)));
    assert_true(files_exists(snapshot_file(older)));
}

static void an_older_one_that_rotted_does_not_count(void **state)
{
    uint64_t first;
    uint64_t second;

    (void)state;
    generations_write(&dir);
    first = generations_snapshot(&dir);
    generations_write(&dir);
    second = generations_snapshot(&dir);
    rot(snapshot_file(second), "key 17 generation 2");
    generations_write(&dir);
    generations_snapshot(
        &dir); /* The second is read again: the first stays the older one. */
    assert_int_equal(store_dir_stats(&dir).snapshot_lsns[1], first);
    assert_true(files_exists(snapshot_file(first)));
    assert_int_equal(count("quarantine", ".snap.0001"), 1);
    store_dir_assert_verifies(&dir);
}

/* The new one is good; what was found of the one before it is told all the same. */
static void an_older_one_that_rotted_is_told_of(void **state)
{
    uint64_t second;

    (void)state;
    generations_write(&dir);
    generations_snapshot(&dir);
    generations_write(&dir);
    second = generations_snapshot(&dir);
    rot(snapshot_file(second), "key 17 generation 2");
    generations_write(&dir);
    generations_snapshot(&dir);
    assert_int_equal(store_dir_stats(&dir).last_snapshot_error.status,
                     STELE_CORRUPT);
    generations_write(&dir);
    generations_snapshot(&dir);
    assert_int_equal(store_dir_stats(&dir).last_snapshot_error.status,
                     STELE_OK);
}

/* What cannot be built anew must not be taken away. */
static void an_index_that_cannot_be_rebuilt_is_not_set_aside(void **state)
{
    uint64_t newest;

    (void)state;
    newest = generations_leave_two(&dir);
    rot(snapshot_file(newest), "key 17 generation 3");
    rot(snapshot_file(store_dir_stats(&dir).snapshot_lsns[1]),
        "key 17 generation 2");
    store_dir_close(&dir);
    dir.options.rebuild_index = true;
    assert_int_equal(store_dir_try_open(&dir, STELE_OPEN_EXISTING),
                     STELE_CORRUPT);
    assert_non_null(strstr(dir.error.message, "row E: no base is left"));
    assert_true(files_exists(store_dir_at(&dir, "index/data.mdb")));
    dir.options.rebuild_index = false;
    store_dir_open(&dir);
    generations_assert(&dir);
}

/* The log at its place is damaged, where opening does not look. */
static void assert_the_older_one_says(const char *segment)
{
    struct stele_snapshot_info info;

    generations_assert(&dir);
    assert_int_equal(stele_snapshot_next(dir.store, 0, &info, &dir.error),
                     STELE_OK);
    assert_false(info.usable);
    assert_int_equal(info.why.status, STELE_CORRUPT);
    assert_non_null(strstr(info.why.message, segment));
    assert_int_equal(store_dir_stats(&dir).last_snapshot_error.status,
                     STELE_CORRUPT);
    assert_true(files_exists(snapshot_file(info.lsn)));
    assert_int_equal(store_dir_stats(&dir).snapshot_lsns[1], 0);
}

static const char *leave_a_segment_of_the_older_one(void)
{
    static char segment[64];

    generations_leave_two(&dir);
    snprintf(segment, sizeof segment, "wal/%016" PRIx64 ".wal",
             store_dir_stats(&dir).segment_first);
    store_dir_close(&dir);
    return segment;
}

static void one_in_a_damaged_segment_says_so_and_stays(void **state)
{
    const char *segment;

    (void)state;
    segment = leave_a_segment_of_the_older_one();
    files_flip_bit(store_dir_at(&dir, segment), 0, 0);
    store_dir_open(&dir);
    assert_the_older_one_says(segment);
}

static void one_in_an_unreadable_segment_says_so_and_stays(void **state)
{
    const char *segment;

    (void)state;
    segment = leave_a_segment_of_the_older_one();
    io_fault_arm(&(struct io_fault){.call = IO_FAULT_READ,
                                    .suffix = segment + strlen("wal/"),
                                    .times = IO_FAULT_FOREVER,
                                    .sys_errno = EIO});
    store_dir_open(&dir);
    assert_the_older_one_says(segment);
    io_fault_arm(NULL);
}

static void segments_end_with_the_last_number(void **state)
{
    struct stele_segment segment;

    (void)state;
    assert_int_equal(
        stele_segment_next(dir.store, UINT64_MAX, &segment, &dir.error),
        STELE_NOT_FOUND);
}

static void what_is_no_file_is_no_snapshot(void **state)
{
    (void)state;
    generations_write(&dir);
    store_dir_close(&dir);
    assert_int_equal(symlink("/dev/zero", snapshot_file(5)), 0);
    assert_int_equal(store_dir_try_open(&dir, STELE_OPEN_READ_ONLY), STELE_OK);
    generations_assert(&dir);
    store_dir_close(&dir);
    store_dir_open(&dir);
    generations_assert(&dir);
    assert_int_equal(count("quarantine", ".snap.0001"), 1);
}

#define SNAPSHOT_TEST(name)                                                    \
    cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        SNAPSHOT_TEST(a_snapshot_is_the_whole_state_at_its_lsn),
        SNAPSHOT_TEST(a_state_is_not_taken_twice),
        SNAPSHOT_TEST(commits_and_checkpoints_go_on_while_one_is_taken),
        SNAPSHOT_TEST(an_index_between_two_lsns_is_not_taken),
        SNAPSHOT_TEST(closing_gives_the_one_under_way_up),
        SNAPSHOT_TEST(the_temporary_of_a_killed_process_is_removed),
        SNAPSHOT_TEST(a_log_that_has_grown_makes_one_due),
        SNAPSHOT_TEST(nothing_rotten_becomes_a_snapshot),
        SNAPSHOT_TEST(a_count_that_is_wrong_becomes_no_snapshot),
        SNAPSHOT_TEST(a_full_disk_leaves_nothing_and_removes_nothing),
        SNAPSHOT_TEST(a_failing_sync_is_not_repeated_and_poisons_nothing),
        SNAPSHOT_TEST(a_directory_sync_that_fails_poisons),
        SNAPSHOT_TEST(the_log_is_whole_until_there_are_two),
        SNAPSHOT_TEST(nothing_goes_that_is_held),
        SNAPSHOT_TEST(options_keep_more),
        SNAPSHOT_TEST(a_removal_that_was_cut_short_is_finished_at_open),
        SNAPSHOT_TEST(an_index_that_is_gone_is_built_from_the_newest),
        SNAPSHOT_TEST(
            a_newest_one_that_rotted_is_set_aside_and_the_older_serves),
        SNAPSHOT_TEST(
            a_newest_one_that_was_cut_is_set_aside_and_the_older_serves),
        SNAPSHOT_TEST(one_that_was_set_aside_at_open_is_taken_again),
        SNAPSHOT_TEST(two_that_cannot_be_read_are_left_where_they_are),
        SNAPSHOT_TEST(two_that_are_damaged_are_a_refusal),
        SNAPSHOT_TEST(an_older_one_that_rotted_does_not_count),
        SNAPSHOT_TEST(an_older_one_that_rotted_is_told_of),
        SNAPSHOT_TEST(an_index_that_cannot_be_rebuilt_is_not_set_aside),
        SNAPSHOT_TEST(one_in_a_damaged_segment_says_so_and_stays),
        SNAPSHOT_TEST(one_in_an_unreadable_segment_says_so_and_stays),
        SNAPSHOT_TEST(segments_end_with_the_last_number),
        SNAPSHOT_TEST(what_is_no_file_is_no_snapshot),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
