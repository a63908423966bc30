/*
 * tests/test_backup_live.c -- backups while somebody commits at full speed, snapshots
 * are taken and the log is let go: by a thread of this process through the same
 * handle, and by another process beside a handle that reads.
 *
 * Every archive, restored, is the state after exactly one batch of the writer, no
 * older than what was there when the backup began.
 */
#include <inttypes.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "snapshot/reader.h"
#include "tests/lib/child.h"
#include "tests/lib/files.h"
#include "tests/lib/history.h"
#include "tests/lib/profile.h"
#include "tests/lib/run.h"
#include "tests/lib/sanitized.h"
#include "tests/lib/temp_dir.h"
#include "wal/segment.h"

enum {
    SEGMENT_BYTES = 128 << 10,
    SNAPSHOT_LOG_BYTES = 512 << 10,
    RELAXED_EVERY = 5,
    ROUNDS_MIN = SANITIZED_CHOICE(8, 4),
    TRIMS_MIN = 4,      /* Times that the log's beginning has moved. */
    ANEW_EVERY = 3,     /* Rounds, into a new archive. */
    ROUNDS_MAX = 10000, /* It is trimmed as often as the disk allows. */
};

enum message_kind {
    SAID_OPEN,
    ASKED_TRIM, /* Write, and take snapshots, until the log was let go. */
    SAID_TRIMMED,
};

static char *area;
static char store_path[FILES_PATH_BYTES];
static char archive_path[FILES_PATH_BYTES];
static char restored_path[FILES_PATH_BYTES];
static struct stele_error error;

static int setup(void **state)
{
    (void)state;
    area = temp_dir_make();
    files_path(store_path, area, "store");
    files_path(archive_path, area, "archive");
    files_path(restored_path, area, "restored");
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    temp_dir_remove(area);
    return 0;
}

static void ok(enum stele_status status, const char *doing)
{
    run_expect_ok(status, &error, doing);
}

static void remove_all(const char *path)
{
    char *copy = strdup(path);

    if (copy == NULL) {
        run_fail("out of memory");
    }
    temp_dir_remove(copy);
}

/* ---- The writer ------------------------------------------------------------------- */

static struct stele *open_store(enum stele_open_mode mode)
{
    struct profile profile = profile_named("tiny");

    profile.tuning.segment_bytes = SEGMENT_BYTES;
    profile.tuning.snapshot_log_bytes = SNAPSHOT_LOG_BYTES;
    profile.tuning.snapshot_step_bytes = 16 << 10;
    return profile_open_ok(&profile, store_path, mode);
}

static void commit_batch(struct stele *store, struct stele_batch *batch,
                         uint64_t n)
{
    struct stele_error failure;

    history_fill(batch, 0, n);
    run_expect_ok(
        stele_commit(store, batch,
                     n % RELAXED_EVERY == 0 ? STELE_RELAXED : STELE_DURABLE,
                     NULL, &failure),
        &failure, "commit");
}

static int writer_main(const char *path)
{
    struct stele_batch *batch;
    struct stele *store;

    snprintf(store_path, sizeof store_path, "%s", path);
    store = open_store(STELE_OPEN_CREATE);
    ok(stele_batch_create(&batch, &error), "create a batch");
    parent_send(&(struct message){.kind = SAID_OPEN});
    for (uint64_t n = 1; !parent_has_spoken(); n++) {
        commit_batch(store, batch, n);
    }
    stele_batch_destroy(batch);
    ok(stele_close(store, &error), "close");
    return EXIT_SUCCESS;
}

static uint64_t snapshot_and_write(struct stele *store,
                                   struct stele_batch *batch, uint64_t n)
{
    ok(stele_snapshot(store, NULL, &error), "take a snapshot");
    for (unsigned index = 0; index < 2 * SEGMENT_BYTES / 4096; index++) {
        commit_batch(store, batch, ++n);
    }
    return n;
}

/* One that does nothing until it is asked. */
static int obedient_writer_main(const char *path)
{
    struct stele_batch *batch;
    struct message message;
    struct stele *store;
    uint64_t n = 0;

    snprintf(store_path, sizeof store_path, "%s", path);
    store = open_store(STELE_OPEN_CREATE);
    ok(stele_batch_create(&batch, &error), "create a batch");
    commit_batch(store, batch, ++n);
    n = snapshot_and_write(store, batch, n);
    n = snapshot_and_write(store, batch, n);
    parent_send(&(struct message){.kind = SAID_OPEN});
    while (parent_receive(&message)) {
        const uint64_t first = profile_stats(store).segment_first;

        n = snapshot_and_write(store, batch, n);
        n = snapshot_and_write(store, batch, n);
        n = snapshot_and_write(store, batch, n);
        if (profile_stats(store).segment_first <= first + 1) {
            run_fail("nothing was let go");
        }
        parent_send(&(struct message){.kind = SAID_TRIMMED});
    }
    stele_batch_destroy(batch);
    ok(stele_close(store, &error), "close");
    return EXIT_SUCCESS;
}

static atomic_bool stopping;

static void *writer_thread(void *context)
{
    struct stele *store = context;
    struct stele_batch *batch;
    struct stele_error failure;

    run_expect_ok(stele_batch_create(&batch, &failure), &failure,
                  "create a batch");
    for (uint64_t n = 1; !atomic_load(&stopping); n++) {
        commit_batch(store, batch, n);
    }
    stele_batch_destroy(batch);
    return NULL;
}

/* ---- Between looking and opening ---------------------------------------------------- */

static enum {
    NEVER,
    BEFORE_SNAPSHOT, /* Is opened. */
    AFTER_SNAPSHOT,
    BEFORE_SEGMENT,
} trim_at;
static const struct child *obedient_writer;

static void let_go(void)
{
    struct message message;

    trim_at = NEVER;
    child_send(obedient_writer, &(struct message){.kind = ASKED_TRIM});
    if (!child_receive(obedient_writer, &message)) {
        run_fail("the writer has ended");
    }
}

enum stele_status __real_snapshot_reader_open(
    struct io_dir *dir, uint64_t lsn, enum snapshot_name name,
    const uint8_t *uuid, struct snapshot_reader **reader_out,
    struct stele_error *why);
enum stele_status __wrap_snapshot_reader_open(
    struct io_dir *dir, uint64_t lsn, enum snapshot_name name,
    const uint8_t *uuid, struct snapshot_reader **reader_out,
    struct stele_error *why);

enum stele_status __wrap_snapshot_reader_open(
    struct io_dir *dir, uint64_t lsn, enum snapshot_name name,
    const uint8_t *uuid, struct snapshot_reader **reader_out,
    struct stele_error *why)
{
    if (trim_at == BEFORE_SNAPSHOT) {
        let_go();
    } else if (trim_at == AFTER_SNAPSHOT) {
        trim_at = BEFORE_SEGMENT;
    }
    return __real_snapshot_reader_open(dir, lsn, name, uuid, reader_out, why);
}

enum stele_status __real_wal_segment_open(struct io_dir *wal_dir, uint64_t seq,
                                          const struct wal_uuid *uuid,
                                          enum io_open_mode mode,
                                          struct wal_segment *segment_out,
                                          struct stele_error *why);
enum stele_status __wrap_wal_segment_open(struct io_dir *wal_dir, uint64_t seq,
                                          const struct wal_uuid *uuid,
                                          enum io_open_mode mode,
                                          struct wal_segment *segment_out,
                                          struct stele_error *why);

enum stele_status __wrap_wal_segment_open(struct io_dir *wal_dir, uint64_t seq,
                                          const struct wal_uuid *uuid,
                                          enum io_open_mode mode,
                                          struct wal_segment *segment_out,
                                          struct stele_error *why)
{
    if (trim_at == BEFORE_SEGMENT) {
        let_go();
    }
    return __real_wal_segment_open(wal_dir, seq, uuid, mode, segment_out, why);
}

/* ---- The one who backs up ------------------------------------------------------------ */

/* Restored, the archive is the state after one batch: the last one up to `lsn`. */
static uint64_t check_restored(uint64_t lsn)
{
    const struct stele_restore_options options = {.size = sizeof options,
                                                  .until_lsn = lsn};
    struct stele_restore_report report = {.size = sizeof report};
    const struct profile profile = profile_named("tiny");
    struct history_seen seen;
    struct stele_view *view;
    struct stele *store;

    ok(stele_restore(archive_path, restored_path, &options, &report, &error),
       "restore");
    store = profile_open_ok(&profile, restored_path, STELE_OPEN_EXISTING);
    ok(stele_view_open(store, &view, &error), "open a view");
    seen = history_check(view, 0);
    if (seen.lsn != report.lsn || report.lsn > lsn) {
        run_fail("restored up to LSN %" PRIu64 " is LSN %" PRIu64
                 ", and shows batch %" PRIu64 " with LSN %" PRIu64,
                 lsn, report.lsn, seen.n, seen.lsn);
    }
    stele_view_close(view);
    profile_verify_ok(store);
    ok(stele_close(store, &error), "close");
    remove_all(restored_path);
    return seen.lsn;
}

static uint64_t lsn_durable_now(struct stele *store)
{
    struct stele_view *view;
    uint64_t lsn;

    ok(stele_view_open(store, &view, &error), "open a view");
    lsn = stele_view_lsn(view);
    stele_view_close(view);
    return lsn;
}

static void back_up_while_it_lives(struct stele *store)
{
    struct random_source random = run_random(1);
    uint64_t first = profile_stats(store).segment_first;
    unsigned trims = 0;

    for (unsigned round = 1;
         round <= ROUNDS_MIN || (trims < TRIMS_MIN && round < ROUNDS_MAX);
         round++) {
        struct stele_backup_report report = {.size = sizeof report};
        const uint64_t before = lsn_durable_now(store);
        uint64_t first_now;

        ok(stele_backup(store, archive_path, &report, NULL, NULL, &error),
           "back up");
        if (report.lsn < before) {
            run_fail("LSN %" PRIu64 " was there, the backup ends at %" PRIu64,
                     before, report.lsn);
        }
        if (check_restored(report.lsn) != report.lsn) {
            run_fail("the archive's last LSN is not there");
        }
        if (report.lsn > report.snapshot_lsn) {
            check_restored(
                report.snapshot_lsn + 1 +
                random_below(&random, report.lsn - report.snapshot_lsn));
        }
        if (round % ANEW_EVERY == 0) {
            remove_all(archive_path);
        }
        first_now = profile_stats(store).segment_first;
        trims += first_now > first;
        first = first_now;
    }
    if (trims < TRIMS_MIN) {
        run_fail("the log was trimmed %u times only", trims);
    }
}

/* ---- Tests -------------------------------------------------------------------------------- */

static void the_handle_that_writes_is_backed_up_while_it_does(void **state)
{
    struct stele *store = open_store(STELE_OPEN_CREATE);
    pthread_t thread;

    (void)state;
    atomic_store(&stopping, false);
    assert_int_equal(pthread_create(&thread, NULL, writer_thread, store), 0);
    back_up_while_it_lives(store);
    atomic_store(&stopping, true);
    assert_int_equal(pthread_join(thread, NULL), 0);
    ok(stele_close(store, &error), "close");
}

static void a_reader_backs_up_beside_a_writer_in_another_process(void **state)
{
    const char *const arguments[] = {"writer", store_path, NULL};
    struct message message;
    struct child writer;
    struct stele *store;

    (void)state;
    writer = child_start(arguments);
    assert_true(child_receive(&writer, &message));
    store = open_store(STELE_OPEN_READ_ONLY);
    back_up_while_it_lives(store);
    child_dismiss(&writer);
    child_join(&writer);
    child_forget(&writer);
    ok(stele_close(store, &error), "close");
}

static void files_that_go_before_they_are_opened_are_looked_for_anew(
    void **state)
{
    const char *const arguments[] = {"obedient", store_path, NULL};
    struct stele_backup_report report = {.size = sizeof report};
    struct message message;
    struct child writer;
    struct stele *store;

    (void)state;
    writer = child_start(arguments);
    obedient_writer = &writer;
    assert_true(child_receive(&writer, &message));
    store = open_store(STELE_OPEN_READ_ONLY);
    for (unsigned round = 0; round < 2; round++) {
        const uint64_t before = lsn_durable_now(store);

        trim_at = round == 0 ? BEFORE_SNAPSHOT : AFTER_SNAPSHOT;
        ok(stele_backup(store, archive_path, &report, NULL, NULL, &error),
           "back up");
        assert_int_equal(trim_at, NEVER);
        assert_true(report.lsn > before); /* It has looked anew. */
        assert_int_equal(check_restored(report.lsn), report.lsn);
        remove_all(archive_path);
    }
    child_dismiss(&writer);
    child_join(&writer);
    child_forget(&writer);
    ok(stele_close(store, &error), "close");
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(
            the_handle_that_writes_is_backed_up_while_it_does, setup, teardown),
        cmocka_unit_test_setup_teardown(
            a_reader_backs_up_beside_a_writer_in_another_process, setup,
            teardown),
        cmocka_unit_test_setup_teardown(
            files_that_go_before_they_are_opened_are_looked_for_anew, setup,
            teardown),
    };

    if (argc == 3 && strcmp(argv[1], "writer") == 0) {
        return writer_main(argv[2]);
    }
    if (argc == 3 && strcmp(argv[1], "obedient") == 0) {
        return obedient_writer_main(argv[2]);
    }
    run_seed();
    return cmocka_run_group_tests_name("backups of a live store", tests, NULL,
                                       NULL);
}
