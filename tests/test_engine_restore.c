/*
 * tests/test_engine_restore.c -- restoring, on real files: every LSN of a history and
 * every moment in it, what is not there, what is damaged, what is in the way, and
 * what a failure leaves.
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
#include <sys/stat.h>
#include <unistd.h>

#include "engine/archive.h"
#include "engine/restore.h"
#include "tests/lib/archive_dir.h"
#include "tests/lib/io_fault.h"
#include "tests/lib/state_digest.h"
#include "tests/lib/store_dir.h"

enum {
    SEGMENT_BYTES = 64 << 10,
    VALUE_BYTES = 3000,
    KEYS = 8,
    MOMENTS_MAX = 64,
    GROUP = 3,
};

/* The state after a batch, and a time between it and the next one. */
struct moment {
    uint64_t lsn;
    uint64_t digest;
    uint64_t time_ns;
};

static struct store_dir dir;
static struct archive_dir archive;
static struct moment moments[MOMENTS_MAX];
static size_t moment_count;
static unsigned writes;

static int setup(void **state)
{
    (void)state;
    store_dir_make(&dir);
    dir.tuning.segment_bytes = SEGMENT_BYTES;
    dir.tuning.snapshot_retry_ms = 0;
    archive_dir_make(&archive);
    moment_count = 0;
    writes = 0;
    store_dir_open(&dir);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    archive_dir_remove(&archive);
    store_dir_remove(&dir);
    return 0;
}

/* ---- Vocabulary: a history ----------------------------------------------------------- */

static uint64_t lsn_now(void)
{
    return store_dir_stats(&dir).lsn_visible;
}

static void note_moment(uint64_t lsn)
{
    assert_true(moment_count < MOMENTS_MAX);
    moments[moment_count++] = (struct moment){
        .lsn = lsn,
        .digest = state_digest_at(dir.store, lsn),
        .time_ns = io_clock_wall_ns(io_posix()),
    };
}

/* Another batch: mostly a put of a page, now and then a range delete. */
static void fill(struct stele_batch *batch)
{
    char value[VALUE_BYTES];
    char key[16];

    stele_batch_clear(batch);
    memset(value, '.', sizeof value);
    snprintf(value, sizeof value, "write %u ", writes);
    snprintf(key, sizeof key, "%u", writes % KEYS);
    if (writes % 7 == 6) {
        assert_int_equal(
            stele_batch_delete_range(batch, "t", "2", 1, "4", 1, &dir.error),
            STELE_OK);
    } else {
        assert_int_equal(stele_batch_put(batch, writes % 5 == 4 ? "u" : "t",
                                         key, strlen(key), value, sizeof value,
                                         &dir.error),
                         STELE_OK);
    }
    writes++;
}

static void ignore_done(void *context, enum stele_status status,
                        const struct stele_error *error)
{
    (void)context;
    (void)error;
    assert_int_equal(status, STELE_OK);
}

/* One unit of so many batches: the last one leads for all. */
static void write_unit(size_t batch_count)
{
    struct stele_batch *batches[GROUP];
    struct stele_commit_result results[GROUP] = {0};

    for (size_t index = 0; index < batch_count; index++) {
        assert_int_equal(stele_batch_create(&batches[index], &dir.error),
                         STELE_OK);
        fill(batches[index]);
        assert_int_equal(
            index + 1 < batch_count
                ? stele_commit_async(dir.store, batches[index], STELE_DURABLE,
                                     &results[index], ignore_done, NULL,
                                     &dir.error)
                : stele_commit(dir.store, batches[index], STELE_DURABLE,
                               &results[index], &dir.error),
            STELE_OK);
    }
    for (size_t index = 0; index < batch_count; index++) {
        stele_batch_destroy(batches[index]);
        note_moment(results[index].lsn);
    }
}

static void write_units(unsigned count)
{
    for (unsigned index = 0; index < count; index++) {
        write_unit(index % 3 == 2 ? GROUP : 1);
    }
}

/* Past the first segment: as long as an archive has that one, its log is a base. */
static void leave_first_segment(void)
{
    write_units(12);
    assert_true(store_dir_stats(&dir).segment_current > 1);
    moment_count = 0;
}

static uint64_t snapshot(void)
{
    uint64_t lsn = 0;

    if (stele_snapshot(dir.store, &lsn, &dir.error) != STELE_OK) {
        fail_msg("%s", dir.error.message);
    }
    return lsn;
}

static struct stele_backup_report backup(void)
{
    return archive_dir_backup(&archive, dir.store);
}

static const struct moment *last_moment(void)
{
    return &moments[moment_count - 1];
}

/* ---- Vocabulary: restoring ------------------------------------------------------------- */

static enum stele_status try_restore(uint64_t until_lsn)
{
    struct stele_restore_report ignored;

    return archive_dir_try_restore(&archive, until_lsn, 0, &ignored);
}

static struct stele_restore_report restore(uint64_t until_lsn)
{
    struct stele_restore_report report;

    if (archive_dir_try_restore(&archive, until_lsn, 0, &report) != STELE_OK) {
        fail_msg("%s", archive.error.message);
    }
    return report;
}

static struct store_dir open_restored(void)
{
    struct store_dir restored = archive_dir_restored(&archive, &dir);

    if (store_dir_try_open(&restored, STELE_OPEN_EXISTING) != STELE_OK) {
        fail_msg("%s", restored.error.message);
    }
    return restored;
}

static void close_restored(struct store_dir *restored)
{
    store_dir_close(restored);
    free(restored->path);
}

static uint64_t restored_digest(uint64_t lsn)
{
    return archive_dir_digest(&archive, &dir, lsn);
}

static void assert_error(const char *text)
{
    if (strstr(archive.error.message, text) == NULL) {
        fail_msg("\"%s\" does not say \"%s\"", archive.error.message, text);
    }
}

/* Refused like this, and there is nothing. */
static void assert_refused(uint64_t until_lsn, enum stele_status status,
                           const char *text)
{
    assert_int_equal(try_restore(until_lsn), status);
    assert_error(text);
    assert_false(files_exists(archive.restored));
    assert_false(files_exists(archive.sibling));
}

static const char *at(const char *name)
{
    return archive_dir_at(&archive, name);
}

static const char *snapshot_name(uint64_t lsn)
{
    static char name[40];

    snprintf(name, sizeof name, "snapshot/%016" PRIx64 ".snap", lsn);
    return name;
}

/* ---- Every state ------------------------------------------------------------------------- */

static void assert_every_moment_restores(void)
{
    for (size_t index = 0; index < moment_count; index++) {
        if (restored_digest(moments[index].lsn) != moments[index].digest) {
            fail_msg("LSN %" PRIu64, moments[index].lsn);
        }
    }
}

static void every_lsn_of_a_log_that_is_whole_restores(void **state)
{
    (void)state;
    write_units(13);
    backup();
    assert_every_moment_restores();
    assert_true(restored_digest(0) == last_moment()->digest);
}

static void every_lsn_behind_a_snapshot_restores(void **state)
{
    (void)state;
    leave_first_segment();
    note_moment(snapshot());
    write_units(9);
    backup();
    assert_every_moment_restores();
    assert_refused(moments[0].lsn - 1, STELE_NOT_FOUND,
                   "is older than the archive, which has LSN ");
}

static void every_lsn_restores_from_the_nearest_of_several_bases(void **state)
{
    (void)state;
    write_units(5);
    backup();
    snapshot();
    write_units(5);
    backup();
    snapshot();
    write_units(5);
    backup();
    assert_int_equal(files_count(at("snapshot"), ""), 2);
    assert_every_moment_restores();
}

static void a_group_is_cut_between_its_batches(void **state)
{
    struct stele_restore_report report;
    struct store_dir restored;

    (void)state;
    write_unit(GROUP);
    backup();
    report = restore(moments[1].lsn);
    assert_int_equal(report.lsn, moments[1].lsn);
    restored = open_restored();
    assert_int_equal(store_dir_try_get(&restored, "0"), STELE_OK);
    assert_int_equal(store_dir_try_get(&restored, "1"), STELE_OK);
    assert_int_equal(store_dir_try_get(&restored, "2"), STELE_NOT_FOUND);
    close_restored(&restored);
}

/* LSNs have gaps; the state at one that was never given is that before it. */
static void an_lsn_that_was_never_given_is_the_one_before(void **state)
{
    struct stele_restore_report report;
    uint64_t before;

    (void)state;
    write_units(3);
    before = lsn_now();
    store_dir_kill(&dir);
    store_dir_open(&dir);
    write_units(1);
    assert_true(lsn_now() > before + STORE_LSN_SKIP);
    backup();
    report = restore(before + 1000);
    assert_int_equal(report.lsn, before);
    archive_dir_forget(&archive);
    assert_refused(lsn_now() + 1, STELE_NOT_FOUND,
                   "is not in the archive, which ends at LSN ");
}

static void an_empty_store_restores_to_an_empty_store(void **state)
{
    struct stele_restore_report report;
    struct store_dir restored;

    (void)state;
    backup();
    report = restore(0);
    assert_int_equal(report.lsn, 0);
    assert_int_equal(report.keys, 0);
    restored = open_restored();
    store_dir_put(&restored, "k", "v");
    close_restored(&restored);
}

/* ---- Until a time ------------------------------------------------------------------------- */

static void until_a_time_is_all_that_was_written_by_then(void **state)
{
    (void)state;
    write_units(5);
    backup();
    snapshot();
    write_units(6);
    backup();
    for (size_t index = 0; index < moment_count; index++) {
        const struct moment *moment = &moments[index];
        struct stele_restore_report report;
        struct store_dir restored;

        if (index + 1 < moment_count &&
            moments[index + 1].lsn == moment->lsn + 1 &&
            moments[index + 1].time_ns - moment->time_ns == 0) {
            continue; /* No time is between them. */
        }
        assert_int_equal(
            archive_dir_try_restore(&archive, 0, moment->time_ns, &report),
            STELE_OK);
        assert_true(report.time_ns > 0 && report.time_ns <= moment->time_ns);
        restored = open_restored();
        /* Of a group that was noted after all of it was written: all of it. */
        assert_true(report.lsn >= moment->lsn &&
                    report.lsn < moment->lsn + GROUP);
        for (size_t other = 0; other < moment_count; other++) {
            if (moments[other].lsn == report.lsn) {
                assert_true(state_digest_now(restored.store) ==
                            moments[other].digest);
            }
        }
        close_restored(&restored);
        archive_dir_forget(&archive);
    }
}

static void a_time_before_the_first_batch_is_not_there(void **state)
{
    struct stele_restore_report report;
    const uint64_t before_ns = io_clock_wall_ns(io_posix());

    (void)state;
    write_units(3);
    backup();
    assert_int_equal(archive_dir_try_restore(&archive, 0, before_ns, &report),
                     STELE_NOT_FOUND);
    assert_error("is older than the archive, which has LSN 0 to ");
    assert_int_equal(archive_dir_try_restore(&archive, 0, 1, &report),
                     STELE_NOT_FOUND);
    assert_error("the time @0.000000001 is older than");
    snapshot();
    write_units(1);
    files_remove(at(ARCHIVE_NAME));
    archive_dir_remove(&archive);
    archive_dir_make(&archive);
    backup();
    assert_int_equal(archive_dir_try_restore(&archive, 0, before_ns, &report),
                     STELE_NOT_FOUND);
    assert_false(files_exists(archive.restored));
}

static void a_time_after_the_end_is_the_end(void **state)
{
    struct stele_restore_report report;

    (void)state;
    write_units(3);
    backup();
    assert_int_equal(archive_dir_try_restore(
                         &archive, 0, last_moment()->time_ns + 1, &report),
                     STELE_OK);
    assert_int_equal(report.lsn, lsn_now());
}

static void an_lsn_and_a_time_are_too_much(void **state)
{
    struct stele_restore_report report;

    (void)state;
    write_units(1);
    backup();
    assert_int_equal(archive_dir_try_restore(&archive, 1, 1, &report),
                     STELE_INVALID);
}

/* ---- A restored store is a store ------------------------------------------------------------ */

static void assert_parent(const struct store_dir *restored, uint64_t lsn)
{
    assert_memory_equal(restored->store->anchor.parent_uuid.bytes,
                        dir.store->uuid.bytes, STELE_UUID_BYTES);
    assert_int_equal(restored->store->anchor.parent_lsn, lsn);
    assert_memory_not_equal(restored->store->uuid.bytes, dir.store->uuid.bytes,
                            STELE_UUID_BYTES);
}

static void it_has_a_uuid_of_its_own_and_lsns_far_above(void **state)
{
    struct stele_restore_report report;
    struct store_dir restored;
    uint64_t lsn;

    (void)state;
    write_units(4);
    backup();
    report = restore(0);
    assert_int_equal(report.lsn, lsn_now());
    assert_int_equal(report.tables, 2);
    assert_int_equal(files_count(archive.restored, ""), 3);
    restored = open_restored();
    assert_parent(&restored, lsn_now());
    assert_memory_equal(report.uuid, restored.store->uuid.bytes,
                        STELE_UUID_BYTES);
    assert_int_equal(store_dir_stats(&restored).lsn_visible, lsn_now());
    assert_int_equal(store_dir_stats(&restored).snapshot_lsns[0], lsn_now());
    lsn = store_dir_put(&restored, "new", "1");
    assert_int_equal(lsn, lsn_now() + STORE_LSN_SKIP + 1);
    close_restored(&restored);
}

static void it_opens_for_reading_at_once(void **state)
{
    struct store_dir restored;

    (void)state;
    write_units(4);
    backup();
    restore(0);
    restored = archive_dir_restored(&archive, &dir);
    assert_int_equal(store_dir_try_open(&restored, STELE_OPEN_READ_ONLY),
                     STELE_OK);
    assert_true(state_digest_now(restored.store) == last_moment()->digest);
    close_restored(&restored);
}

static void it_survives_all_that_a_store_survives(void **state)
{
    struct store_dir restored;
    uint64_t digest;

    (void)state;
    write_units(4);
    backup();
    restore(0);
    restored = open_restored();
    for (unsigned round = 0; round < 60; round++) {
        char key[16];

        snprintf(key, sizeof key, "new %u", round);
        assert_int_equal(store_dir_try_put_bytes(&restored, key, VALUE_BYTES),
                         STELE_OK);
        if (round % 20 == 19) {
            uint64_t lsn;

            assert_int_equal(
                stele_snapshot(restored.store, &lsn, &restored.error),
                STELE_OK);
        }
    }
    assert_true(store_dir_stats(&restored).segment_first > 1);
    digest = state_digest_now(restored.store);
    store_dir_kill(&restored);
    files_remove(store_dir_at(&restored, "index/data.mdb"));
    store_dir_open(&restored);
    assert_true(store_dir_stats(&restored).index_rebuilt);
    assert_true(state_digest_now(restored.store) == digest);
    store_dir_assert_verifies(&restored);
    store_dir_close(&restored);
    store_dir_open(&restored);
    assert_true(state_digest_now(restored.store) == digest);
    close_restored(&restored);
}

static void it_can_be_backed_up_and_restored_in_turn(void **state)
{
    struct archive_dir second;
    struct store_dir restored;
    uint64_t digest;
    uint64_t born;

    (void)state;
    write_units(4);
    backup();
    born = restore(0).lsn;
    restored = open_restored();
    archive_dir_make(&second);
    assert_int_equal(archive_dir_backup(&second, restored.store).lsn, born);
    assert_true(archive_dir_digest(&second, &dir, 0) == last_moment()->digest);
    store_dir_put(&restored, "second generation", "1");
    digest = state_digest_now(restored.store);
    assert_int_equal(archive_dir_backup(&second, restored.store).snapshot_lsn,
                     born);
    assert_true(archive_dir_digest(&second, &dir, 0) == digest);
    assert_true(archive_dir_digest(&second, &dir, born) ==
                last_moment()->digest);
    assert_int_equal(archive_dir_try_backup(&archive, restored.store,
                                            &(struct stele_backup_report){0}),
                     STELE_FOREIGN);
    archive_dir_remove(&second);
    close_restored(&restored);
}

/* The archive may be on a medium that cannot be written. */
static void the_archive_is_only_read(void **state)
{
    uint64_t digest;

    (void)state;
    write_units(4);
    backup();
    digest = files_tree_digest(archive.archive, NULL);
    assert_int_equal(chmod(at("wal"), 0500), 0);
    assert_int_equal(chmod(at("snapshot"), 0500), 0);
    assert_int_equal(chmod(archive.archive, 0500), 0);
    restore(0);
    assert_true(files_tree_digest(archive.archive, NULL) == digest);
    assert_int_equal(chmod(archive.archive, 0700), 0);
    assert_int_equal(chmod(at("wal"), 0700), 0);
    assert_int_equal(chmod(at("snapshot"), 0700), 0);
}

/* ---- What is in the way ----------------------------------------------------------------------- */

static void an_empty_directory_is_taken(void **state)
{
    (void)state;
    write_units(2);
    backup();
    assert_int_equal(mkdir(archive.restored, 0700), 0);
    assert_true(restored_digest(0) == last_moment()->digest);
}

static void anything_else_at_the_place_is_left_alone(void **state)
{
    char letter[FILES_PATH_BYTES];

    (void)state;
    write_units(2);
    backup();
    files_write(archive.restored, "dear", 4);
    assert_int_equal(try_restore(0), STELE_EXISTS);
    assert_int_equal(files_size(archive.restored), 4);
    files_remove(archive.restored);
    assert_int_equal(mkdir(archive.restored, 0700), 0);
    files_path(letter, archive.restored, "letter");
    files_write(letter, "dear", 4);
    assert_int_equal(try_restore(0), STELE_EXISTS);
    assert_error("restored is not empty: it has letter");
    assert_int_equal(files_count(archive.restored, ""), 1);
    assert_false(files_exists(archive.sibling));
}

static void a_place_without_a_name_or_a_parent_is_refused(void **state)
{
    static const char *const nameless[] = {".", "..", "/", "a/..", ""};
    char deep[FILES_PATH_BYTES];

    (void)state;
    write_units(1);
    backup();
    for (size_t index = 0; index < sizeof nameless / sizeof *nameless;
         index++) {
        assert_int_equal(stele_restore(archive.archive, nameless[index], NULL,
                                       NULL, &archive.error),
                         STELE_INVALID);
    }
    files_path(deep, archive.path, "deep/down");
    assert_int_equal(
        stele_restore(archive.archive, deep, NULL, NULL, &archive.error),
        STELE_IO);
}

static void slashes_behind_the_name_are_no_part_of_it(void **state)
{
    char path[FILES_PATH_BYTES];

    (void)state;
    write_units(1);
    backup();
    snprintf(path, sizeof path, "%.500s//", archive.restored);
    assert_int_equal(
        stele_restore(archive.archive, path, NULL, NULL, &archive.error),
        STELE_OK);
    assert_true(files_exists(archive.restored));
    assert_false(files_exists(archive.sibling));
}

static void make_leftover(const char *name)
{
    char path[FILES_PATH_BYTES];

    files_path(path, archive.sibling, name);
    if (strchr(name, '.') == NULL || strcmp(name, "index.tmp") == 0) {
        assert_int_equal(mkdir(path, 0700), 0);
    } else {
        files_write(path, "", 0);
    }
}

static void what_a_killed_restore_left_is_removed(void **state)
{
    (void)state;
    write_units(2);
    backup();
    assert_int_equal(mkdir(archive.sibling, 0700), 0); /* At once. */
    assert_true(restored_digest(0) == last_moment()->digest);
    assert_int_equal(mkdir(archive.sibling, 0700), 0);
    make_leftover("index.tmp"); /* Before it could mark it. */
    assert_true(restored_digest(0) == last_moment()->digest);
    assert_int_equal(mkdir(archive.sibling, 0700), 0);
    make_leftover("index.tmp");
    make_leftover("index.tmp/RESTORE.lock");
    make_leftover("index.tmp/data.mdb");
    make_leftover("wal");
    make_leftover("wal/0000000000000001.wal");
    make_leftover("snapshot");
    make_leftover("snapshot/0000000000000001.tmp");
    make_leftover("ANCHOR.tmp");
    assert_true(restored_digest(0) == last_moment()->digest);
    assert_false(files_exists(archive.sibling));
}

static void what_no_restore_left_is_not_removed(void **state)
{
    (void)state;
    write_units(2);
    backup();
    assert_int_equal(mkdir(archive.sibling, 0700), 0);
    make_leftover("wal");
    assert_int_equal(try_restore(0), STELE_EXISTS);
    assert_error("is in the way, and not what a restore leaves");
    make_leftover("index.tmp");
    make_leftover("index.tmp/RESTORE.lock");
    make_leftover("letter.txt");
    assert_int_equal(try_restore(0), STELE_EXISTS);
    assert_int_equal(files_count(archive.sibling, ""), 3);
    assert_false(files_exists(archive.restored));
}

/* A store that was once open is nobody's leftover. */
static void a_store_of_the_siblings_name_is_not_removed(void **state)
{
    struct store_dir restored;

    (void)state;
    write_units(2);
    backup();
    restore(0);
    files_rename(archive.restored, archive.sibling);
    assert_int_equal(try_restore(0), STELE_EXISTS);
    files_rename(archive.sibling, archive.restored);
    restored = open_restored();
    close_restored(&restored);
    files_rename(archive.restored, archive.sibling);
    assert_int_equal(try_restore(0), STELE_EXISTS);
    assert_false(files_exists(archive.restored));
}

static void another_restore_at_work_is_not_disturbed(void **state)
{
    char index_path[FILES_PATH_BYTES];
    struct io_file *mark;
    struct io_dir *other;

    (void)state;
    write_units(2);
    backup();
    assert_int_equal(mkdir(archive.sibling, 0700), 0);
    make_leftover("index.tmp");
    make_leftover("index.tmp/RESTORE.lock");
    files_path(index_path, archive.sibling, "index.tmp");
    assert_int_equal(
        io_dir_open(io_posix(), index_path, &other, &archive.error), STELE_OK);
    assert_int_equal(io_file_open(other, "RESTORE.lock", IO_OPEN_READ_WRITE,
                                  &mark, &archive.error),
                     STELE_OK);
    assert_int_equal(io_file_lock(mark, 0, &archive.error), STELE_OK);
    assert_int_equal(try_restore(0), STELE_LOCKED);
    assert_error("another restore is making");
    assert_int_equal(files_count(index_path, ""), 1);
    io_file_close(mark);
    io_dir_close(other);
    assert_true(restored_digest(0) == last_moment()->digest);
}

/* ---- Two at once ---- */

/* The kernel's file system, in which somebody else comes to the end of a restore
 * while this one has just looked at the sibling. */
static struct io_calls overtaken_calls;
static struct io overtaken_io = {.calls = &overtaken_calls};

static const char *const store_names[] = {"ANCHOR", "wal", "snapshot"};

static void move_store(const char *from, const char *to)
{
    for (size_t index = 0; index < sizeof store_names / sizeof *store_names;
         index++) {
        char source[FILES_PATH_BYTES];
        char target[FILES_PATH_BYTES];

        files_path(source, from, store_names[index]);
        files_path(target, to, store_names[index]);
        files_rename(source, target);
    }
}

static int info_and_be_overtaken(struct io *io, int fd, const char *name,
                                 struct io_file_info *info_out)
{
    const int result = io_posix()->calls->info(io, fd, name, info_out);

    if (name != NULL && strstr(name, ".restore-tmp") != NULL) {
        char aside[FILES_PATH_BYTES];

        files_path(aside, archive.path, "aside");
        move_store(aside, archive.sibling);
        files_rename(archive.sibling, archive.restored);
    }
    return result;
}

/* In which the mark, when it was made, is taken for a leftover's. */
static int lock_when_removed(struct io *io, int fd, uint64_t byte)
{
    char command[2 * FILES_PATH_BYTES];

    if (files_exists(archive.sibling)) {
        snprintf(command, sizeof command, "rm -rf %.400s", archive.sibling);
        assert_int_equal(system(command), 0);
    }
    return io_posix()->calls->lock(io, fd, byte);
}

static void a_restore_that_is_taken_for_a_leftover_says_so(void **state)
{
    struct store_tuning tuning;

    (void)state;
    write_units(2);
    backup();
    overtaken_calls = *io_posix()->calls;
    overtaken_calls.lock = lock_when_removed;
    store_tuning_init(&tuning);
    tuning.io = &overtaken_io;
    assert_int_equal(restore_store(archive.archive, archive.restored, NULL,
                                   &tuning, NULL, &archive.error),
                     STELE_LOCKED);
    assert_error("another restore");
    assert_false(files_exists(archive.restored));
}

static void a_restore_that_overtakes_keeps_what_it_made(void **state)
{
    char aside[FILES_PATH_BYTES];
    struct store_tuning tuning;
    struct store_dir restored;
    enum stele_status status;

    (void)state;
    write_units(2);
    backup();
    restore(0);
    /* As if it had only begun. */
    files_path(aside, archive.path, "aside");
    assert_int_equal(mkdir(aside, 0700), 0);
    move_store(archive.restored, aside);
    files_rename(archive.restored, archive.sibling);
    overtaken_calls = *io_posix()->calls;
    overtaken_calls.info = info_and_be_overtaken;
    store_tuning_init(&tuning);
    tuning.io = &overtaken_io;
    status = restore_store(archive.archive, archive.restored, NULL, &tuning,
                           NULL, &archive.error);
    restored = open_restored();
    assert_true(state_digest_now(restored.store) == last_moment()->digest);
    close_restored(&restored);
    assert_int_equal(status, STELE_LOCKED);
    assert_error("another restore");
}

/* ---- What is no archive, or damaged ----------------------------------------------------------- */

static void what_is_no_archive_is_refused(void **state)
{
    (void)state;
    assert_refused(0, STELE_FOREIGN, "archive: no such directory");
    assert_int_equal(mkdir(archive.archive, 0700), 0);
    assert_refused(0, STELE_FOREIGN, "is no archive: it has no ARCHIVE");
    assert_int_equal(
        stele_restore(dir.path, archive.restored, NULL, NULL, &archive.error),
        STELE_FOREIGN);
}

/* With damage a restore is refused, or is what it would have been without; and what
 * `refused_out` counts, it is refused. */
static void assert_never_wrong(const char *path, uint64_t offset,
                               unsigned *refused_out)
{
    const enum stele_status expected[] = {STELE_CORRUPT, STELE_FOREIGN};
    enum stele_status status;

    files_flip_bit(path, offset, 5);
    status = try_restore(0);
    if (status == STELE_OK) {
        struct store_dir restored = open_restored();

        assert_true(state_digest_now(restored.store) == last_moment()->digest);
        close_restored(&restored);
        archive_dir_forget(&archive);
    } else {
        assert_true(status == expected[0] || status == expected[1]);
        assert_false(files_exists(archive.restored));
        ++*refused_out;
    }
    files_flip_bit(path, offset, 5);
}

static void a_flipped_bit_anywhere_never_makes_a_wrong_state(void **state)
{
    char path[FILES_PATH_BYTES];
    unsigned refused = 0;
    uint64_t bytes;
    uint64_t lsn;

    (void)state;
    leave_first_segment();
    lsn = snapshot();
    write_units(3);
    backup();
    for (uint64_t offset = 0; offset < ARCHIVE_BYTES; offset += 3) {
        assert_never_wrong(at(ARCHIVE_NAME), offset, &refused);
    }
    assert_int_equal(refused, (ARCHIVE_BYTES + 2) / 3);
    refused = 0;
    snprintf(path, sizeof path, "%s", at(snapshot_name(lsn)));
    bytes = files_size(path);
    for (uint64_t offset = 0; offset < bytes; offset += bytes / 60) {
        assert_never_wrong(path, offset, &refused);
    }
    assert_true(refused >= 60);
    refused = 0;
    snprintf(path, sizeof path, "%s", at("wal/0000000000000002.wal"));
    for (uint64_t offset = 0; offset < SEGMENT_BYTES; offset += 1000) {
        assert_never_wrong(path, offset, &refused);
    }
    assert_true(refused >=
                10); /* What is in front of the base does not count. */
}

static void of_a_damaged_snapshot_an_older_base_is_used(void **state)
{
    uint64_t newest;

    (void)state;
    write_units(3);
    backup();
    snapshot();
    write_units(3);
    newest = snapshot();
    write_units(3);
    backup();
    files_flip_bit(at(snapshot_name(newest)), 1000, 5); /* Its body ... */
    assert_true(restored_digest(0) == last_moment()->digest);
    files_flip_bit(at(snapshot_name(newest)), 40, 5); /* ... and its header. */
    assert_true(restored_digest(0) == last_moment()->digest);
    assert_every_moment_restores();
}

static void without_a_sound_base_the_damage_is_the_reason(void **state)
{
    uint64_t lsn;

    (void)state;
    leave_first_segment();
    lsn = snapshot();
    write_units(3);
    backup();
    files_flip_bit(at(snapshot_name(lsn)), 1000, 5);
    assert_refused(0, STELE_CORRUPT, "check");
    files_flip_bit(at(snapshot_name(lsn)), 40, 5);
    assert_refused(0, STELE_CORRUPT, "not a valid snapshot header");
    files_remove(at(snapshot_name(lsn)));
    assert_refused(0, STELE_CORRUPT, "the archive has no base left");
}

static void a_segment_that_is_missing_is_damage(void **state)
{
    (void)state;
    write_units(20);
    backup();
    assert_true(files_count(at("wal"), "") >= 2);
    files_remove(at("wal/0000000000000002.wal"));
    assert_refused(0, STELE_CORRUPT, "is not whole, but ARCHIVE has unit");
    files_remove(at("wal/0000000000000001.wal"));
    assert_refused(0, STELE_CORRUPT, "wal/ is empty");
}

/* ---- Failures ------------------------------------------------------------------------------------ */

/* A fault at every call, one after the other: then there is no store, or a whole one,
 * and what is in the way of the next restore is nothing. */
static void fail_at_every_call(enum io_fault_call call, int sys_errno,
                               int times)
{
    uint64_t failures = 0;
    bool struck = true;

    for (uint64_t number = 0; struck; number++) {
        const struct io_fault fault = {.call = call,
                                       .after_calls = number,
                                       .times = times,
                                       .sys_errno = sys_errno};
        enum stele_status status;
        uint64_t strikes;

        io_fault_arm(&fault);
        strikes = io_fault_count();
        status = try_restore(0);
        struck = io_fault_count() > strikes;
        io_fault_arm(NULL);
        if (status != STELE_OK) {
            failures++;
        }
        if (status == STELE_OK || files_exists(archive.restored)) {
            struct store_dir restored = open_restored();

            assert_true(state_digest_now(restored.store) ==
                        last_moment()->digest);
            close_restored(&restored);
            archive_dir_forget(&archive);
        }
        if (number % 8 == 0) {
            assert_true(restored_digest(0) == last_moment()->digest);
            assert_false(files_exists(archive.sibling));
        }
    }
    assert_true(failures >= 3);
}

static void prepare_failures(void)
{
    leave_first_segment();
    snapshot();
    write_units(3);
    backup();
}

static void a_restore_that_fails_once_anywhere_leaves_nothing(void **state)
{
    (void)state;
    prepare_failures();
    fail_at_every_call(IO_FAULT_ANY, EIO, 1);
}

static void one_that_fails_from_some_call_on_is_done_by_the_next(void **state)
{
    (void)state;
    prepare_failures();
    fail_at_every_call(IO_FAULT_ANY, EIO, IO_FAULT_FOREVER);
}

/* No sync is left out, and none that fails is passed over. */
static void nothing_gets_its_name_that_is_not_synced(void **state)
{
    uint64_t file_syncs;
    uint64_t dir_syncs;

    (void)state;
    prepare_failures();
    file_syncs = io_fault_syncs(".tmp");
    dir_syncs = io_fault_calls(IO_FAULT_SYNC_DIR);
    restore(0);
    /* The segment, the snapshot, ANCHOR. */
    assert_int_equal(io_fault_syncs(".tmp") - file_syncs, 3);
    /* The mark in index.tmp/ and above, the index; wal/, the new directory,
     * snapshot/, ANCHOR; the parent. */
    assert_int_equal(io_fault_calls(IO_FAULT_SYNC_DIR) - dir_syncs, 8);
    archive_dir_forget(&archive);
    for (uint64_t number = 0;; number++) {
        const struct io_fault fault = {.call = IO_FAULT_SYNC_DIR,
                                       .after_calls = number,
                                       .times = 1,
                                       .sys_errno = EIO};
        enum stele_status status;

        io_fault_arm(&fault);
        status = try_restore(0);
        if (io_fault_count() == 0) {
            assert_int_equal(status, STELE_OK);
            break;
        }
        io_fault_arm(NULL);
        assert_int_equal(status, STELE_IO);
        archive_dir_forget(&archive); /* The last one: it has its name. */
    }
}

static void the_new_snapshot_is_read_back_before_it_has_its_name(void **state)
{
    const struct io_fault fault = {.call = IO_FAULT_READ,
                                   .suffix = ".tmp",
                                   .after_calls = 2, /* Header and footer. */
                                   .times = 1,
                                   .sys_errno = EIO};

    (void)state;
    prepare_failures();
    io_fault_arm(&fault);
    assert_refused(0, STELE_IO, ".tmp: offset 64: read");
    assert_int_equal(io_fault_count(), 1);
}

static void a_full_disk_leaves_nothing(void **state)
{
    (void)state;
    prepare_failures();
    fail_at_every_call(IO_FAULT_WRITE, ENOSPC, IO_FAULT_FOREVER);
    fail_at_every_call(IO_FAULT_FULL, ENOSPC, IO_FAULT_FOREVER);
}

static void a_full_disk_is_called_by_its_name(void **state)
{
    const struct io_fault fault = {.call = IO_FAULT_WRITE,
                                   .suffix = ".tmp",
                                   .times = IO_FAULT_FOREVER,
                                   .sys_errno = ENOSPC};

    (void)state;
    prepare_failures();
    io_fault_arm(&fault);
    assert_refused(0, STELE_NO_SPACE, ".tmp: ");
}

/* ---- Arguments ------------------------------------------------------------------------------------ */

static void count_progress(void *context, const char *step, uint64_t done,
                           uint64_t total)
{
    unsigned *calls = context;

    assert_true(step[0] != '\0' && (total == 0 || done <= total));
    ++*calls;
}

static void arguments_are_checked_and_progress_is_told(void **state)
{
    struct stele_restore_options options = {.size = sizeof options + 1};
    struct stele_restore_report report = {.size = 0};
    unsigned calls = 0;

    (void)state;
    write_units(2);
    backup();
    assert_int_equal(
        stele_restore("", archive.restored, NULL, NULL, &archive.error),
        STELE_INVALID);
    assert_int_equal(stele_restore(archive.archive, archive.restored, &options,
                                   NULL, &archive.error),
                     STELE_INVALID);
    assert_int_equal(stele_restore(archive.archive, archive.restored, NULL,
                                   &report, &archive.error),
                     STELE_INVALID);
    assert_false(files_exists(archive.restored));
    options = (struct stele_restore_options){.size = sizeof options,
                                             .until_lsn = UINT64_MAX,
                                             .progress = count_progress,
                                             .context = &calls};
    report.size = offsetof(struct stele_restore_report, time_ns);
    assert_int_equal(stele_restore(archive.archive, archive.restored, &options,
                                   &report, NULL),
                     STELE_OK);
    assert_int_equal(report.lsn, lsn_now());
    assert_true(calls > 0);
}

#define RESTORE_TEST(name)                                                     \
    cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        RESTORE_TEST(every_lsn_of_a_log_that_is_whole_restores),
        RESTORE_TEST(every_lsn_behind_a_snapshot_restores),
        RESTORE_TEST(every_lsn_restores_from_the_nearest_of_several_bases),
        RESTORE_TEST(a_group_is_cut_between_its_batches),
        RESTORE_TEST(an_lsn_that_was_never_given_is_the_one_before),
        RESTORE_TEST(an_empty_store_restores_to_an_empty_store),
        RESTORE_TEST(until_a_time_is_all_that_was_written_by_then),
        RESTORE_TEST(a_time_before_the_first_batch_is_not_there),
        RESTORE_TEST(a_time_after_the_end_is_the_end),
        RESTORE_TEST(an_lsn_and_a_time_are_too_much),
        RESTORE_TEST(it_has_a_uuid_of_its_own_and_lsns_far_above),
        RESTORE_TEST(it_opens_for_reading_at_once),
        RESTORE_TEST(it_survives_all_that_a_store_survives),
        RESTORE_TEST(it_can_be_backed_up_and_restored_in_turn),
        RESTORE_TEST(the_archive_is_only_read),
        RESTORE_TEST(an_empty_directory_is_taken),
        RESTORE_TEST(anything_else_at_the_place_is_left_alone),
        RESTORE_TEST(a_place_without_a_name_or_a_parent_is_refused),
        RESTORE_TEST(slashes_behind_the_name_are_no_part_of_it),
        RESTORE_TEST(what_a_killed_restore_left_is_removed),
        RESTORE_TEST(what_no_restore_left_is_not_removed),
        RESTORE_TEST(a_store_of_the_siblings_name_is_not_removed),
        RESTORE_TEST(another_restore_at_work_is_not_disturbed),
        RESTORE_TEST(a_restore_that_overtakes_keeps_what_it_made),
        RESTORE_TEST(a_restore_that_is_taken_for_a_leftover_says_so),
        RESTORE_TEST(what_is_no_archive_is_refused),
        RESTORE_TEST(a_flipped_bit_anywhere_never_makes_a_wrong_state),
        RESTORE_TEST(of_a_damaged_snapshot_an_older_base_is_used),
        RESTORE_TEST(without_a_sound_base_the_damage_is_the_reason),
        RESTORE_TEST(a_segment_that_is_missing_is_damage),
        RESTORE_TEST(a_restore_that_fails_once_anywhere_leaves_nothing),
        RESTORE_TEST(one_that_fails_from_some_call_on_is_done_by_the_next),
        RESTORE_TEST(nothing_gets_its_name_that_is_not_synced),
        RESTORE_TEST(the_new_snapshot_is_read_back_before_it_has_its_name),
        RESTORE_TEST(a_full_disk_leaves_nothing),
        RESTORE_TEST(a_full_disk_is_called_by_its_name),
        RESTORE_TEST(arguments_are_checked_and_progress_is_told),
    };

    io_fault_pretend_syncs();
    return cmocka_run_group_tests_name("engine/restore", tests, NULL, NULL);
}
