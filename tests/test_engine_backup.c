/*
 * tests/test_engine_backup.c -- backups, on real files: what is copied, what is not,
 * what is refused, and what a failure or damage leaves.
 *
 * That an archive is good is shown by restoring it and comparing states.
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
#include "tests/lib/archive_dir.h"
#include "tests/lib/io_fault.h"
#include "tests/lib/state_digest.h"
#include "tests/lib/store_dir.h"
#include "tests/lib/store_snapshot.h"

enum {
    SEGMENT_BYTES = 64 << 10,
    SEGMENT_UNITS = 15, /* A page each; the header is one, too. */
    VALUE_BYTES = 3000,
};

static struct store_dir dir;
static struct archive_dir archive;
static unsigned writes; /* So far. */

static int setup(void **state)
{
    (void)state;
    store_dir_make(&dir);
    dir.tuning.segment_bytes = SEGMENT_BYTES;
    dir.tuning.snapshot_retry_ms = 0;
    archive_dir_make(&archive);
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

/* ---- Vocabulary -------------------------------------------------------------------- */

/* So many commits, each a page of log, to a few keys in turn. */
static void write_pages(unsigned count)
{
    for (unsigned index = 0; index < count; index++) {
        char value[VALUE_BYTES + 1];
        char key[16];
        const int bytes = snprintf(value, sizeof value, "write %u ", writes);

        memset(value + bytes, '.', VALUE_BYTES - (size_t)bytes);
        value[VALUE_BYTES] = '\0';
        snprintf(key, sizeof key, "%02u", writes % 20);
        store_dir_put(&dir, key, value);
        writes++;
    }
}

static void write_segments(unsigned count)
{
    write_pages(count * SEGMENT_UNITS);
}

static uint64_t snapshot(void)
{
    uint64_t lsn = 0;

    if (stele_snapshot(dir.store, &lsn, &dir.error) != STELE_OK) {
        fail_msg("%s", dir.error.message);
    }
    return lsn;
}

/* Two snapshots let the log go up to the older one. */
static void trim(void)
{
    snapshot();
    write_segments(2);
    snapshot();
    write_segments(1);
    assert_true(store_dir_stats(&dir).segment_first > 1);
}

static struct stele_backup_report backup(void)
{
    return archive_dir_backup(&archive, dir.store);
}

static enum stele_status try_backup(void)
{
    struct stele_backup_report ignored;

    return archive_dir_try_backup(&archive, dir.store, &ignored);
}

static uint64_t lsn_now(void)
{
    return store_dir_stats(&dir).lsn_visible;
}

static uint64_t restored_digest(uint64_t lsn)
{
    return archive_dir_digest(&archive, &dir, lsn);
}

/* The archive is of what the store shows now. */
static void assert_archived(void)
{
    assert_true(restored_digest(0) == state_digest_now(dir.store));
}

static const char *segment_name(uint64_t seq)
{
    static char name[32];

    snprintf(name, sizeof name, "wal/%016" PRIx64 ".wal", seq);
    return name;
}

static const char *snapshot_name(uint64_t lsn)
{
    static char name[40];

    snprintf(name, sizeof name, "snapshot/%016" PRIx64 ".snap", lsn);
    return name;
}

static const char *at(const char *name)
{
    return archive_dir_at(&archive, name);
}

static uint64_t inode_of(const char *path)
{
    struct stat found;

    assert_int_equal(stat(path, &found), 0);
    return (uint64_t)found.st_ino;
}

static uint64_t archive_digest(void)
{
    return files_tree_digest(archive.archive, NULL);
}

static void assert_error(const char *text)
{
    if (strstr(archive.error.message, text) == NULL) {
        fail_msg("\"%s\" does not say \"%s\"", archive.error.message, text);
    }
}

/* Refused like this, with not a byte changed there. */
static void assert_refused(enum stele_status status, const char *text)
{
    const uint64_t digest = archive_digest();

    assert_int_equal(try_backup(), status);
    assert_error(text);
    assert_true(archive_digest() == digest);
}

static void make_archive_directory(void)
{
    assert_int_equal(mkdir(archive.archive, 0700), 0);
}

/* ---- What an archive holds ------------------------------------------------------------ */

static void without_a_snapshot_the_archive_is_the_whole_log(void **state)
{
    struct stele_backup_report report;

    (void)state;
    write_segments(2);
    report = backup();
    assert_int_equal(report.lsn, lsn_now());
    assert_int_equal(report.snapshot_lsn, 0);
    assert_int_equal(report.segments_copied, 2);
    assert_int_equal(report.units, 2 * SEGMENT_UNITS);
    assert_int_equal(report.bytes_copied, 2 * SEGMENT_BYTES);
    assert_int_equal(report.bytes_present, 0);
    assert_int_equal(files_count(at("snapshot"), ""), 0);
    assert_int_equal(files_count(at("wal"), ""), 2);
    assert_archived();
}

static void it_is_the_newest_snapshot_and_the_log_behind_it(void **state)
{
    struct stele_backup_report report;
    uint64_t newest;

    (void)state;
    write_segments(2);
    snapshot();
    write_segments(2);
    newest = snapshot();
    write_pages(SEGMENT_UNITS + 3);
    report = backup();
    assert_int_equal(report.snapshot_lsn, newest);
    assert_int_equal(report.segments_copied, 3);
    assert_int_equal(report.units, SEGMENT_UNITS + 3);
    assert_int_equal(files_count(at("snapshot"), ""), 1);
    assert_int_equal(files_count(at("wal"), ""), 3);
    assert_int_equal(files_count(archive.archive, ""), 4);
    assert_archived();
}

static void behind_its_end_the_last_segment_is_zeros(void **state)
{
    uint64_t used;
    uint8_t *bytes;
    size_t size;

    (void)state;
    write_pages(3);
    used = backup().bytes_copied;
    assert_int_equal(used, 4 * 4096);
    bytes = files_read(at(segment_name(1)), &size);
    assert_int_equal(size, SEGMENT_BYTES);
    assert_int_not_equal(bytes[used - 4096], 0);
    for (size_t offset = used; offset < size; offset++) {
        assert_int_equal(bytes[offset], 0);
    }
    free(bytes);
}

static void an_empty_store_has_an_archive(void **state)
{
    (void)state;
    assert_int_equal(backup().lsn, 0);
    assert_archived();
    write_pages(1);
    assert_int_equal(backup().lsn, lsn_now());
    assert_archived();
}

static void relaxed_commits_are_made_durable_and_are_in_it(void **state)
{
    (void)state;
    write_pages(1);
    store_dir_put_relaxed(&dir, "relaxed", "1");
    assert_true(store_dir_stats(&dir).lsn_durable < lsn_now());
    assert_int_equal(backup().lsn, lsn_now());
    assert_int_equal(store_dir_stats(&dir).lsn_durable, lsn_now());
    assert_archived();
}

static void a_handle_for_reading_backs_up_what_it_shows(void **state)
{
    (void)state;
    write_segments(1);
    snapshot();
    write_pages(5);
    store_dir_kill(&dir);
    assert_int_equal(store_dir_try_open(&dir, STELE_OPEN_READ_ONLY), STELE_OK);
    assert_int_equal(backup().lsn, lsn_now());
    assert_archived();
}

static void a_poisoned_handle_backs_up_what_was_durable(void **state)
{
    const struct io_fault fault = {
        .call = IO_FAULT_SYNC, .suffix = ".wal", .times = 1, .sys_errno = EIO};
    uint64_t lsn;

    (void)state;
    write_pages(3);
    lsn = lsn_now();
    io_fault_arm(&fault);
    assert_int_equal(store_dir_try_put(&dir, "k", "v"), STELE_UNKNOWN);
    assert_int_equal(backup().lsn, lsn);
    assert_archived();
}

static void a_directory_that_is_empty_will_do(void **state)
{
    (void)state;
    make_archive_directory();
    write_pages(1);
    backup();
    assert_archived();
}

/* ---- Again into the same archive --------------------------------------------------------- */

static void a_second_backup_copies_only_what_is_new(void **state)
{
    struct stele_backup_report report;
    uint64_t inodes[3];
    uint64_t lsn;

    (void)state;
    write_segments(1);
    lsn = snapshot();
    write_pages(2 * SEGMENT_UNITS + 3);
    backup();
    for (uint64_t seq = 1; seq <= 2; seq++) {
        inodes[seq] = inode_of(at(segment_name(seq)));
    }
    inodes[0] = inode_of(at(snapshot_name(lsn)));
    write_segments(1);
    report = backup();
    assert_int_equal(report.segments_copied, 2);
    assert_int_equal(report.bytes_copied, SEGMENT_BYTES + 4 * 4096);
    assert_int_equal(report.bytes_present,
                     3 * SEGMENT_BYTES + files_size(at(snapshot_name(lsn))));
    for (uint64_t seq = 1; seq <= 2; seq++) {
        assert_int_equal(inode_of(at(segment_name(seq))), inodes[seq]);
    }
    assert_int_equal(inode_of(at(snapshot_name(lsn))), inodes[0]);
    assert_archived();
}

static void with_nothing_new_nothing_is_copied(void **state)
{
    struct stele_backup_report report;
    uint64_t digest;

    (void)state;
    write_segments(1);
    snapshot();
    write_pages(3);
    backup();
    digest = archive_digest();
    report = backup();
    assert_int_equal(report.bytes_copied, 0);
    assert_int_equal(report.segments_copied, 0);
    assert_int_equal(report.lsn, lsn_now());
    assert_true(archive_digest() == digest);
    assert_archived();
}

static void what_the_store_lets_go_stays_in_the_archive(void **state)
{
    uint64_t digest;
    uint64_t lsn;

    (void)state;
    write_segments(1);
    snapshot();
    write_pages(7);
    lsn = lsn_now();
    digest = state_digest_now(dir.store);
    backup();
    trim();
    backup();
    assert_archived();
    assert_true(restored_digest(lsn) == digest);
}

/* The log between two snapshots is copied, too, as long as the store has it: so the
 * archive has every state from the first backup on. */
static void an_archive_that_is_kept_up_to_date_has_no_gap(void **state)
{
    uint64_t digests[200];
    uint64_t first;

    (void)state;
    write_pages(1);
    first = lsn_now();
    backup();
    for (unsigned round = 0; round < 6; round++) {
        for (unsigned page = 0; page < SEGMENT_UNITS + 7; page++) {
            digests[lsn_now() - first] = state_digest_now(dir.store);
            write_pages(1);
        }
        snapshot();
        backup();
    }
    assert_true(store_dir_stats(&dir).segment_first > 2);
    for (uint64_t lsn = first; lsn < lsn_now(); lsn += 5) {
        assert_true(restored_digest(lsn) == digests[lsn - first]);
    }
}

static void what_was_let_go_in_between_is_a_gap(void **state)
{
    struct stele_restore_report report;
    uint64_t digest;
    uint64_t lsn;

    (void)state;
    write_segments(1);
    write_pages(4);
    lsn = lsn_now();
    digest = state_digest_now(dir.store);
    backup();
    trim();
    trim();
    backup();
    assert_archived();
    assert_true(restored_digest(lsn) == digest);
    assert_int_equal(archive_dir_try_restore(&archive, lsn + 1, 0, &report),
                     STELE_NOT_FOUND);
    assert_error("is in a gap of the archive: behind LSN 19 it goes on with "
                 "LSN ");
    assert_false(files_exists(archive.restored));
}

/* A backup that was killed has copied a snapshot, and not the log behind it, which
 * the store let go before the next one. */
static void a_snapshot_whose_log_never_came_is_no_damage(void **state)
{
    struct stele_restore_report report;
    uint64_t lsn;

    (void)state;
    write_segments(1);
    write_pages(4);
    lsn = snapshot();
    backup();
    files_remove(at(ARCHIVE_NAME));
    files_remove(at("wal/0000000000000002.wal"));
    assert_int_equal(files_count(at("wal"), ""), 0);
    trim();
    trim();
    backup();
    assert_archived();
    assert_int_equal(archive_dir_try_restore(&archive, lsn + 1, 0, &report),
                     STELE_NOT_FOUND);
    assert_error("is older than the archive, which has LSN ");
}

static void a_backup_goes_on_after_one_that_was_killed(void **state)
{
    (void)state;
    write_segments(1);
    backup();
    files_remove(at(ARCHIVE_NAME));
    files_write(at("wal/0000000000000007.tmp"), "rest", 4);
    files_write(at("snapshot/0000000000000007.tmp"), "rest", 4);
    files_write(at(ARCHIVE_TEMPORARY_NAME), "rest", 4);
    backup();
    assert_archived();
    assert_int_equal(files_count(at("wal"), ".tmp"), 0);
    assert_int_equal(files_count(at("snapshot"), ".tmp"), 0);
    assert_false(files_exists(at(ARCHIVE_TEMPORARY_NAME)));
}

/* ---- What is refused ------------------------------------------------------------------------ */

static void a_directory_with_something_else_in_it_is_refused(void **state)
{
    (void)state;
    write_pages(1);
    make_archive_directory();
    files_write(at("letter"), "dear", 4);
    assert_refused(
        STELE_FOREIGN,
        "is not empty and no archive: it has no ARCHIVE, but letter");
    assert_int_equal(files_count(archive.archive, ""), 1);
}

/* It might be what is left of a store, and we would write into its log. */
static void a_log_that_no_backup_has_begun_is_refused(void **state)
{
    (void)state;
    write_pages(1);
    make_archive_directory();
    assert_int_equal(mkdir(at("wal"), 0700), 0);
    assert_refused(STELE_FOREIGN, "it has no ARCHIVE, but wal");
}

static void the_archive_of_another_store_is_refused(void **state)
{
    struct store_dir other;

    (void)state;
    store_dir_make(&other);
    store_dir_open(&other);
    store_dir_put(&other, "k", "v");
    archive_dir_backup(&archive, other.store);
    assert_refused(STELE_FOREIGN, "is the archive of another store");
    store_dir_remove(&other);
}

static void a_damaged_list_is_refused(void **state)
{
    (void)state;
    write_pages(3);
    backup();
    files_flip_bit(at(ARCHIVE_NAME), 100, 3);
    assert_refused(STELE_CORRUPT, "ARCHIVE: offset 0: not the list of an "
                                  "archive, or damaged");
}

static void a_place_inside_the_store_is_refused(void **state)
{
    static const char *const inside[] = {
        "", "/", "/wal", "/archive", "/wal/archive", "/quarantine/../x"};
    struct stele_backup_report report = {.size = sizeof report};
    char link_path[FILES_PATH_BYTES];
    uint64_t digest;

    (void)state;
    write_pages(1);
    assert_int_equal(mkdir(store_dir_at(&dir, "quarantine"), 0700), 0);
    digest = store_dir_digest(&dir);
    for (size_t index = 0; index < sizeof inside / sizeof *inside; index++) {
        char path[FILES_PATH_BYTES];

        snprintf(path, sizeof path, "%.400s%s", dir.path, inside[index]);
        assert_int_equal(
            stele_backup(dir.store, path, &report, NULL, NULL, &archive.error),
            STELE_INVALID);
        assert_error("a backup cannot be kept inside the store");
    }
    files_path(link_path, archive.path, "link");
    assert_int_equal(symlink(store_dir_at(&dir, "snapshot"), link_path), 0);
    assert_int_equal(
        stele_backup(dir.store, link_path, &report, NULL, NULL, &archive.error),
        STELE_INVALID);
    assert_true(store_dir_digest(&dir) == digest);
}

static void a_directory_whose_parent_is_missing_is_an_error(void **state)
{
    struct stele_backup_report report = {.size = sizeof report};

    (void)state;
    assert_int_equal(stele_backup(dir.store, at("deep/down"), &report, NULL,
                                  NULL, &archive.error),
                     STELE_IO);
    assert_false(files_exists(archive.archive));
}

static void another_backup_at_work_is_not_disturbed(void **state)
{
    struct io_file *lock;
    struct io_dir *other;

    (void)state;
    write_pages(1);
    backup();
    write_pages(1);
    assert_int_equal(
        io_dir_open(io_posix(), archive.archive, &other, &archive.error),
        STELE_OK);
    assert_int_equal(io_file_open(other, ARCHIVE_LOCK_NAME, IO_OPEN_READ_WRITE,
                                  &lock, &archive.error),
                     STELE_OK);
    assert_int_equal(io_file_lock(lock, 0, &archive.error), STELE_OK);
    assert_refused(STELE_LOCKED, "another backup is being written to");
    io_file_close(lock);
    io_dir_close(other);
    backup();
    assert_archived();
}

/* The store's directory as it is now, of three pages more, is kept aside, and put
 * back later. */
static void keep_store(char aside_out[FILES_PATH_BYTES])
{
    char command[3 * FILES_PATH_BYTES];

    files_path(aside_out, archive.path, "aside");
    assert_int_equal(mkdir(aside_out, 0700), 0);
    write_pages(3);
    store_dir_close(&dir);
    snprintf(command, sizeof command, "cp -a %.400s/. %.400s", dir.path,
             aside_out);
    assert_int_equal(system(command), 0);
    store_dir_open(&dir);
}

static void put_store_back(const char *aside)
{
    char command[3 * FILES_PATH_BYTES];

    store_dir_kill(&dir);
    snprintf(command, sizeof command, "rm -rf %.400s && cp -a %.400s %.400s",
             dir.path, aside, dir.path);
    assert_int_equal(system(command), 0);
    store_dir_open(&dir);
}

static void a_store_that_was_put_back_does_not_overwrite_its_future(
    void **state)
{
    char aside[FILES_PATH_BYTES];
    uint64_t future;

    (void)state;
    keep_store(aside);
    write_pages(3);
    backup();
    future = state_digest_now(dir.store);
    put_store_back(aside);
    assert_refused(STELE_FOREIGN, "it was put back to an earlier state");
    write_pages(4);
    assert_refused(STELE_FOREIGN, "it is of another history");
    assert_true(restored_digest(0) == future);
}

/* A commit of a segment of its own. */
static void write_large(unsigned count)
{
    enum { LARGE_BYTES = 50000 };
    static char value[LARGE_BYTES + 1];

    memset(value, '.', LARGE_BYTES);
    for (unsigned index = 0; index < count; index++) {
        store_dir_put(&dir, "large", value);
    }
}

/* Nor if its log no longer reaches back to where the archive's ends. */
static void a_store_that_was_put_back_and_trimmed_is_refused(void **state)
{
    char aside[FILES_PATH_BYTES];
    uint64_t future;

    (void)state;
    keep_store(aside);
    write_segments(2);
    backup();
    future = state_digest_now(dir.store);
    put_store_back(aside);
    write_large(4);
    snapshot();
    write_large(4);
    snapshot();
    write_large(4);
    assert_true(store_dir_stats(&dir).segment_first > 3);
    assert_refused(STELE_FOREIGN, "it was put back to an earlier state");
    assert_true(restored_digest(0) == future);
}

/* ---- Damage ------------------------------------------------------------------------------------ */

static void of_a_damaged_snapshot_the_next_older_one_is_taken(void **state)
{
    struct stele_backup_report report;
    char path[FILES_PATH_BYTES];
    uint64_t older;
    uint64_t newest;
    uint64_t digest;

    (void)state;
    write_segments(1);
    older = snapshot();
    write_segments(1);
    newest = snapshot();
    write_pages(3);
    digest = state_digest_now(dir.store);
    store_snapshot_path(dir.path, newest, path);
    files_flip_bit(path, 1000, 3);
    report = backup();
    assert_int_equal(report.snapshot_lsn, older);
    assert_int_equal(report.units, SEGMENT_UNITS + 3);
    assert_false(files_exists(at(snapshot_name(newest))));
    assert_int_equal(files_count(at("snapshot"), ""), 1);
    assert_true(restored_digest(0) == digest);
    /* And if its header says so already. */
    files_flip_bit(path, 40, 3);
    assert_int_equal(backup().snapshot_lsn, older);
}

static void without_a_sound_base_there_is_no_backup(void **state)
{
    char path[FILES_PATH_BYTES];

    (void)state;
    write_segments(2);
    trim();
    backup();
    for (size_t index = 0; index < 2; index++) {
        store_snapshot_path(dir.path,
                            store_dir_stats(&dir).snapshot_lsns[index], path);
        files_flip_bit(path, 1000, 3);
    }
    files_remove(at(ARCHIVE_NAME));
    files_remove(at(snapshot_name(store_dir_stats(&dir).snapshot_lsns[0])));
    assert_int_equal(try_backup(), STELE_CORRUPT);
    assert_error("no base is left");
    assert_false(files_exists(at(ARCHIVE_NAME)));
}

static void a_damaged_log_makes_no_archive(void **state)
{
    (void)state;
    write_segments(1);
    write_pages(3);
    files_flip_bit(store_dir_at(&dir, segment_name(1)), 3 * 4096 + 1000, 3);
    assert_int_equal(try_backup(), STELE_CORRUPT);
    assert_error("the store's log: wal/0000000000000001.wal: offset "
                 "12288: unit 3 is not whole, but it is in the store");
    assert_false(files_exists(at(ARCHIVE_NAME)));
}

/* A log that rots in the store is no copy any more of what the archive has. */
static void what_has_rotted_in_the_store_replaces_nothing_sound(void **state)
{
    uint64_t digest;
    uint64_t lsn;

    (void)state;
    write_segments(1);
    write_pages(6);
    backup();
    lsn = lsn_now();
    digest = state_digest_now(dir.store);
    files_flip_bit(store_dir_at(&dir, segment_name(2)), 3 * 4096 + 1000, 3);
    write_pages(2);
    backup(); /* What is new verifies, and the archive has the rest. */
    assert_true(restored_digest(lsn) == digest);
    assert_archived();
    /* It has the rest no more: then what it still has stays. */
    files_flip_bit(at(segment_name(1)), 5 * 4096 + 1000, 3);
    write_pages(2);
    assert_int_equal(try_backup(), STELE_CORRUPT);
    assert_error("the store's log: wal/0000000000000002.wal: offset "
                 "12288: unit ");
    files_flip_bit(at(segment_name(1)), 5 * 4096 + 1000, 3);
    assert_true(restored_digest(lsn) == digest);
}

/* Also in front of what a backup reads: the snapshot is behind it. */
static void rot_in_front_of_the_base_replaces_nothing_sound(void **state)
{
    uint64_t digest;
    uint64_t lsn;

    (void)state;
    write_pages(6);
    backup();
    lsn = lsn_now();
    digest = state_digest_now(dir.store);
    files_flip_bit(store_dir_at(&dir, segment_name(1)), 3 * 4096 + 1000, 3);
    write_pages(2);
    snapshot();
    write_pages(2);
    backup();
    assert_true(restored_digest(lsn) == digest);
    assert_archived();
}

static void what_has_rotted_in_the_archive_is_copied_again(void **state)
{
    struct stele_backup_report report;
    uint64_t lsn;

    (void)state;
    write_segments(1);
    lsn = snapshot();
    write_segments(2);
    backup();
    files_flip_bit(at(segment_name(2)), 3 * 4096 + 1000, 3);
    write_pages(2);
    report = backup();
    assert_true(report.segments_copied >= 3);
    assert_archived();
    files_flip_bit(at(snapshot_name(lsn)), 1000, 3);
    backup();
    assert_archived();
}

/* A disk that writes a page of the log otherwise than it was told. */
static struct io_calls garbling_calls;
static struct io garbling_io = {.calls = &garbling_calls};

static int sync_and_garble(struct io *io, int fd)
{
    const int result = io_posix()->calls->sync_data(io, fd);
    const char *path = at("wal/0000000000000001.tmp");

    if (files_exists(path)) {
        files_flip_bit(path, 3 * 4096 + 1000, 3);
    }
    return result;
}

static void what_does_not_arrive_replaces_nothing_sound(void **state)
{
    struct io *io = dir.tuning.io;
    uint64_t digest;
    uint64_t lsn;

    (void)state;
    write_pages(6);
    backup();
    lsn = lsn_now();
    digest = state_digest_now(dir.store);
    store_dir_close(&dir);
    garbling_calls = *io_posix()->calls;
    garbling_calls.sync_data = sync_and_garble;
    dir.tuning.io = &garbling_io;
    store_dir_open(&dir);
    write_pages(2);
    assert_int_equal(try_backup(), STELE_IO);
    assert_error("0000000000000001.tmp: offset 0: read back: other bytes");
    store_dir_close(&dir);
    dir.tuning.io = io;
    store_dir_open(&dir);
    assert_true(restored_digest(lsn) == digest);
    backup();
    assert_archived();
}

/* ---- Failures ------------------------------------------------------------------------------------ */

enum { LOOK_EVERY = 8 };

/* From the call with this number on, a backup's calls all fail. False: it makes no
 * more than that. */
static bool fail_from(enum io_fault_call call, uint64_t number, int sys_errno)
{
    const struct io_fault fault = {.call = call,
                                   .after_calls = number,
                                   .times = IO_FAULT_FOREVER,
                                   .sys_errno = sys_errno};
    enum stele_status status;
    uint64_t strikes;

    io_fault_arm(&fault);
    strikes = io_fault_count();
    status = try_backup();
    strikes = io_fault_count() - strikes;
    io_fault_arm(NULL);
    assert_false(store_dir_stats(&dir).poisoned);
    if (strikes == 0) {
        assert_int_equal(status, STELE_OK);
    }
    return strikes > 0;
}

/* At every call, one after the other, into the same archive: what spoils it stays
 * spoiled, so it is enough to look now and then. */
static void fail_at_every_call(enum io_fault_call call, int sys_errno,
                               uint64_t lsn_before, uint64_t digest_before)
{
    bool struck = true;

    for (uint64_t number = 0; struck; number++) {
        struck = fail_from(call, number, sys_errno);
        if (number % LOOK_EVERY != 0 && struck) {
            continue;
        }
        assert_true(restored_digest(lsn_before) == digest_before);
        restored_digest(0); /* It verifies. */
        backup();
        assert_archived();
        write_pages(1); /* So that there is something to copy. */
    }
}

static void prepare_failures(void)
{
    write_segments(1);
    snapshot();
    write_pages(3);
}

static void a_first_backup_that_fails_anywhere_is_done_by_the_next(void **state)
{
    bool struck = true;

    (void)state;
    prepare_failures();
    for (uint64_t number = 0; struck; number++) {
        struck = fail_from(IO_FAULT_ANY, number, EIO);
        backup();
        if (number % LOOK_EVERY == 0 || !struck) {
            assert_archived();
        }
        archive_dir_remove(&archive); /* The next one begins anew. */
        archive_dir_make(&archive);
    }
}

static void a_later_backup_that_fails_anywhere_spoils_nothing(void **state)
{
    uint64_t digest;
    uint64_t lsn;

    (void)state;
    prepare_failures();
    backup();
    lsn = lsn_now();
    digest = state_digest_now(dir.store);
    write_segments(1);
    snapshot();
    fail_at_every_call(IO_FAULT_ANY, EIO, lsn, digest);
}

static void a_full_disk_spoils_nothing(void **state)
{
    uint64_t digest;
    uint64_t lsn;

    (void)state;
    prepare_failures();
    backup();
    lsn = lsn_now();
    digest = state_digest_now(dir.store);
    write_segments(1);
    snapshot();
    fail_at_every_call(IO_FAULT_WRITE, ENOSPC, lsn, digest);
    fail_at_every_call(IO_FAULT_FULL, ENOSPC, lsn, digest);
}

/* Each name as well as each file, before ARCHIVE vouches for them; ARCHIVE too. */
static void nothing_is_vouched_for_that_is_not_synced(void **state)
{
    uint64_t file_syncs;
    uint64_t dir_syncs;
    uint64_t copied;

    (void)state;
    prepare_failures();
    write_segments(1);
    file_syncs = io_fault_syncs(".tmp");
    dir_syncs = io_fault_calls(IO_FAULT_SYNC_DIR);
    copied = backup().segments_copied;
    assert_int_equal(io_fault_syncs(".tmp") - file_syncs, copied + 2);
    /* The parent and ARCHIVE.lock; snapshot/ twice, wal/, the archive; ARCHIVE. */
    assert_int_equal(io_fault_calls(IO_FAULT_SYNC_DIR) - dir_syncs, 7);
}

static void a_sync_that_fails_is_a_backup_that_fails(void **state)
{
    static const enum io_fault_call syncs[] = {IO_FAULT_SYNC,
                                               IO_FAULT_SYNC_DIR};

    (void)state;
    prepare_failures();
    for (size_t index = 0; index < sizeof syncs / sizeof *syncs; index++) {
        for (uint64_t number = 0;; number++) {
            const struct io_fault fault = {.call = syncs[index],
                                           .after_calls = number,
                                           .times = 1,
                                           .sys_errno = EIO};
            enum stele_status status;

            write_pages(1);
            io_fault_arm(&fault);
            status = try_backup();
            if (io_fault_count() == 0) {
                assert_int_equal(status, STELE_OK);
                assert_true(number >= 3);
                break;
            }
            assert_int_equal(status, STELE_IO);
        }
        io_fault_arm(NULL);
    }
    assert_archived();
}

static void a_full_disk_is_called_by_its_name(void **state)
{
    const struct io_fault fault = {.call = IO_FAULT_WRITE,
                                   .suffix = ".tmp",
                                   .times = 1,
                                   .sys_errno = ENOSPC};

    (void)state;
    write_pages(3);
    io_fault_arm(&fault);
    assert_int_equal(try_backup(), STELE_NO_SPACE);
    assert_int_equal(files_count(at("wal"), ""), 0);
}

/* ---- Arguments ------------------------------------------------------------------------------------ */

static void count_progress(void *context, const char *step, uint64_t done,
                           uint64_t total)
{
    unsigned *calls = context;

    assert_true(done <= total);
    assert_true(strcmp(step, "copying") == 0 ||
                strcmp(step, "reading back") == 0);
    ++*calls;
}

static void progress_is_told(void **state)
{
    unsigned calls = 0;

    (void)state;
    write_segments(40);
    assert_int_equal(stele_backup(dir.store, archive.archive, NULL,
                                  count_progress, &calls, &archive.error),
                     STELE_OK);
    assert_true(calls >= 4);
}

static void arguments_are_checked(void **state)
{
    struct stele_backup_report report = {.size = sizeof report + 1};

    (void)state;
    assert_int_equal(
        stele_backup(dir.store, "", NULL, NULL, NULL, &archive.error),
        STELE_INVALID);
    assert_int_equal(
        stele_backup(dir.store, NULL, NULL, NULL, NULL, &archive.error),
        STELE_INVALID);
    assert_int_equal(stele_backup(dir.store, archive.archive, &report, NULL,
                                  NULL, &archive.error),
                     STELE_INVALID);
    assert_false(files_exists(archive.archive));
    report.size = offsetof(struct stele_backup_report, bytes_copied);
    report.bytes_copied = 42;
    write_pages(1);
    assert_int_equal(
        stele_backup(dir.store, archive.archive, &report, NULL, NULL, NULL),
        STELE_OK);
    assert_int_equal(report.lsn, lsn_now());
    assert_int_equal(report.bytes_copied, 42); /* It did not know that one. */
}

#define BACKUP_TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        BACKUP_TEST(without_a_snapshot_the_archive_is_the_whole_log),
        BACKUP_TEST(it_is_the_newest_snapshot_and_the_log_behind_it),
        BACKUP_TEST(behind_its_end_the_last_segment_is_zeros),
        BACKUP_TEST(an_empty_store_has_an_archive),
        BACKUP_TEST(relaxed_commits_are_made_durable_and_are_in_it),
        BACKUP_TEST(a_handle_for_reading_backs_up_what_it_shows),
        BACKUP_TEST(a_poisoned_handle_backs_up_what_was_durable),
        BACKUP_TEST(a_directory_that_is_empty_will_do),
        BACKUP_TEST(a_second_backup_copies_only_what_is_new),
        BACKUP_TEST(with_nothing_new_nothing_is_copied),
        BACKUP_TEST(what_the_store_lets_go_stays_in_the_archive),
        BACKUP_TEST(an_archive_that_is_kept_up_to_date_has_no_gap),
        BACKUP_TEST(what_was_let_go_in_between_is_a_gap),
        BACKUP_TEST(a_snapshot_whose_log_never_came_is_no_damage),
        BACKUP_TEST(a_backup_goes_on_after_one_that_was_killed),
        BACKUP_TEST(a_directory_with_something_else_in_it_is_refused),
        BACKUP_TEST(a_log_that_no_backup_has_begun_is_refused),
        BACKUP_TEST(the_archive_of_another_store_is_refused),
        BACKUP_TEST(a_damaged_list_is_refused),
        BACKUP_TEST(a_place_inside_the_store_is_refused),
        BACKUP_TEST(a_directory_whose_parent_is_missing_is_an_error),
        BACKUP_TEST(another_backup_at_work_is_not_disturbed),
        BACKUP_TEST(a_store_that_was_put_back_does_not_overwrite_its_future),
        BACKUP_TEST(a_store_that_was_put_back_and_trimmed_is_refused),
        BACKUP_TEST(of_a_damaged_snapshot_the_next_older_one_is_taken),
        BACKUP_TEST(without_a_sound_base_there_is_no_backup),
        BACKUP_TEST(a_damaged_log_makes_no_archive),
        BACKUP_TEST(what_has_rotted_in_the_store_replaces_nothing_sound),
        BACKUP_TEST(rot_in_front_of_the_base_replaces_nothing_sound),
        BACKUP_TEST(what_has_rotted_in_the_archive_is_copied_again),
        BACKUP_TEST(what_does_not_arrive_replaces_nothing_sound),
        BACKUP_TEST(a_first_backup_that_fails_anywhere_is_done_by_the_next),
        BACKUP_TEST(a_later_backup_that_fails_anywhere_spoils_nothing),
        BACKUP_TEST(a_full_disk_spoils_nothing),
        BACKUP_TEST(nothing_is_vouched_for_that_is_not_synced),
        BACKUP_TEST(a_sync_that_fails_is_a_backup_that_fails),
        BACKUP_TEST(a_full_disk_is_called_by_its_name),
        BACKUP_TEST(progress_is_told),
        BACKUP_TEST(arguments_are_checked),
    };

    io_fault_pretend_syncs();
    return cmocka_run_group_tests_name("engine/backup", tests, NULL, NULL);
}
