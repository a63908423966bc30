/*
 * tests/test_wal_writer.c -- wal/writer.h: one write a unit, one sync, and what
 * a failure leaves.
 *
 * What must not be done with a failed writer is asserted there, so it is tried
 * in a child process that is expected to die of it.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/lib/files.h"
#include "tests/lib/io_fault.h"
#include "tests/lib/wal_log.h"
#include "wal/reader.h"
#include "wal/segment.h"
#include "wal/unit.h"
#include "wal/writer.h"

enum {
    PAGE = WAL_PAGE_BYTES,
    SEGMENT_PAGES = WAL_LOG_SEGMENT_BYTES / PAGE,
};

/* ---- A small vocabulary ---------------------------------------------------------- */

static struct wal_log wal;
static struct stele_error error;

static int make_log(void **state)
{
    (void)state;
    wal_log_create(&wal);
    error = (struct stele_error){0};
    return 0;
}

static int remove_log(void **state)
{
    (void)state;
    wal_log_destroy(&wal);
    return 0;
}

static void break_call(enum io_fault_call call, uint64_t after_calls,
                       int sys_errno)
{
    const struct io_fault fault = {.call = call,
                                   .after_calls = after_calls,
                                   .times = 1,
                                   .sys_errno = sys_errno};

    io_fault_arm(&fault);
}

static enum stele_status sync_log(void)
{
    return wal_writer_sync(wal.writer, &error);
}

/* Syncs of segments so far. */
static uint64_t syncs(void)
{
    return io_fault_syncs(".wal");
}

static uint64_t units_readable(struct wal_reader_unit *last_out)
{
    const struct wal_position origin = wal_position_origin(&wal.uuid, 0);
    struct wal_reader reader;
    uint64_t count = 0;
    bool whole = true;

    assert_int_equal(
        wal_reader_open(&reader, wal.dir, &origin, 1, IO_OPEN_READ, &error),
        STELE_OK);
    while (whole) {
        assert_int_equal(wal_reader_next(&reader, last_out, &whole, &error),
                         STELE_OK);
        count += whole ? 1 : 0;
    }
    wal_reader_close(&reader);
    return count;
}

/* Whether `attempt` is stopped by an assertion. */
static bool is_asserted_against(void (*attempt)(void))
{
    const pid_t child = fork();
    int state;

    assert_true(child >= 0);
    if (child == 0) {
        signal(SIGABRT, SIG_DFL);
        assert_non_null(freopen("/dev/null", "w", stderr));
        attempt();
        _exit(0);
    }
    assert_int_equal(waitpid(child, &state, 0), child);
    return WIFSIGNALED(state) && WTERMSIG(state) == SIGABRT;
}

static void try_to_append(void)
{
    (void)wal_log_try_append(&wal, 1, &error);
}

static void try_to_sync(void)
{
    if (wal_writer_sync(wal.writer, &error) != STELE_OK) {
        _exit(1);
    }
}

static void try_to_rotate(void)
{
    if (wal_writer_rotate(wal.writer, &error) != STELE_OK) {
        _exit(1);
    }
}

static void assert_finished(void)
{
    assert_true(is_asserted_against(try_to_append));
    assert_true(is_asserted_against(try_to_sync));
    assert_true(is_asserted_against(try_to_rotate));
}

/* ---- Appending --------------------------------------------------------------------- */

static void units_stand_one_behind_the_other(void **state)
{
    const struct wal_position first = wal_log_append(&wal, 1);
    const struct wal_position second = wal_log_append(&wal, 3);

    (void)state;
    assert_int_equal(first.unit, 1);
    assert_int_equal(first.segment, 1);
    assert_int_equal(first.start_offset, PAGE);
    assert_int_equal(first.end_offset, 2 * PAGE);
    assert_int_equal(second.unit, 2);
    assert_int_equal(second.start_offset, 2 * PAGE);
    assert_int_equal(second.end_offset, 5 * PAGE);
    assert_int_equal(wal_writer_written(wal.writer).unit, 2);
    assert_int_equal(wal_writer_durable(wal.writer).unit, 0);
    assert_int_equal(wal_writer_stats(wal.writer).units, 2);
    assert_int_equal(wal_writer_stats(wal.writer).bytes, 4 * PAGE);
}

static void a_unit_says_what_was_durable_when_it_was_written(void **state)
{
    static const uint64_t expected[] = {0, 0, 2, 2};
    struct wal_reader_unit unit;

    (void)state;
    for (uint64_t index = 0; index < 4; index++) {
        wal_log_append(&wal, 1);
        if (index == 1) {
            assert_int_equal(sync_log(), STELE_OK);
        }
        assert_int_equal(units_readable(&unit), index + 1);
        assert_int_equal(unit.unit.unit_durable, expected[index]);
        assert_int_equal(unit.unit.incarnation, WAL_LOG_INCARNATION);
    }
}

/* A batch of any number of records is one write. */
static void a_group_of_the_most_records_is_one_write(void **state)
{
    static uint8_t records[WAL_UNIT_RECORDS_MAX][WAL_RECORD_HEADER_BYTES + 1];
    static uint8_t *pointers[WAL_UNIT_RECORDS_MAX];
    static size_t sizes[WAL_UNIT_RECORDS_MAX];
    struct wal_reader_unit unit;

    (void)state;
    for (uint64_t index = 0; index < WAL_UNIT_RECORDS_MAX; index++) {
        const struct wal_record record = {
            .lsn = index + 1,
            .op_count = 1,
            .body_bytes = 1,
            .body_checksum = wal_record_body_checksum("x", 1),
        };

        wal_record_encode_header(&record, records[index]);
        records[index][WAL_RECORD_HEADER_BYTES] = 'x';
        pointers[index] = records[index];
        sizes[index] = sizeof records[index];
    }
    break_call(IO_FAULT_WRITE, 1, EIO); /* A second write would fail. */
    assert_int_equal(wal_writer_append(wal.writer, pointers, sizes,
                                       WAL_UNIT_RECORDS_MAX, 1,
                                       WAL_UNIT_RECORDS_MAX, &error),
                     STELE_OK);
    assert_int_equal(io_fault_count(), 0);
    io_fault_arm(NULL);
    assert_int_equal(units_readable(&unit), 1);
    assert_int_equal(unit.unit.record_count, WAL_UNIT_RECORDS_MAX);
    assert_int_equal(unit.position.lsn, WAL_UNIT_RECORDS_MAX);
    wal.end = unit.position;
    wal_log_append(&wal, 1);
    assert_int_equal(units_readable(&unit), 2);
}

static void the_wall_clock_of_units_never_goes_back(void **state)
{
    const uint64_t far_ns = UINT64_MAX / 2;
    struct wal_recovery ended = {.row = WAL_ROW_A,
                                 .next_segment = 1,
                                 .next_offset = PAGE,
                                 .wall_ns_last = far_ns};
    struct wal_reader_unit unit;

    (void)state;
    wal_log_stop(&wal);
    ended.end = wal.end;
    wal_log_resume(&wal, &ended);
    wal_log_append(&wal, 1);
    assert_int_equal(units_readable(&unit), 1);
    assert_true(unit.unit.wall_ns == far_ns);
}

/* ---- Room ------------------------------------------------------------------------------ */

static void a_unit_may_fill_the_segment_to_its_end(void **state)
{
    const uint64_t most = WAL_LOG_SEGMENT_BYTES - PAGE - WAL_UNIT_HEADER_BYTES;

    (void)state;
    assert_true(wal_writer_has_room(wal.writer, most));
    assert_false(wal_writer_has_room(wal.writer, most + 1));
    wal_log_append(&wal, SEGMENT_PAGES - 1);
    assert_int_equal(wal.end.end_offset, WAL_LOG_SEGMENT_BYTES);
    assert_false(wal_writer_has_room(wal.writer, 0));
}

static void room_shrinks_by_whole_pages(void **state)
{
    const uint64_t left = WAL_LOG_SEGMENT_BYTES - 3 * PAGE;

    (void)state;
    wal_log_append(&wal, 2);
    assert_true(wal_writer_has_room(wal.writer, left - WAL_UNIT_HEADER_BYTES));
    assert_false(
        wal_writer_has_room(wal.writer, left - WAL_UNIT_HEADER_BYTES + 1));
}

static void half_full_is_when_the_next_segment_is_due(void **state)
{
    (void)state;
    assert_false(wal_writer_half_full(wal.writer));
    wal_log_append(&wal, SEGMENT_PAGES / 2 - 2);
    assert_false(wal_writer_half_full(wal.writer));
    wal_log_append(&wal, 1);
    assert_true(wal_writer_half_full(wal.writer));
    wal_log_rotate(&wal);
    assert_false(wal_writer_half_full(wal.writer));
}

/* ---- Syncing ----------------------------------------------------------------------------- */

static void one_sync_makes_everything_written_durable(void **state)
{
    uint64_t before;

    (void)state;
    wal_log_append(&wal, 1);
    wal_log_append(&wal, 1);
    before = syncs();
    assert_int_equal(sync_log(), STELE_OK);
    assert_int_equal(syncs(), before + 1);
    assert_int_equal(wal_writer_durable(wal.writer).unit, 2);
    assert_int_equal(wal_writer_stats(wal.writer).syncs, 1);
}

static void a_sync_with_nothing_to_do_makes_no_system_call(void **state)
{
    uint64_t before;

    (void)state;
    before = syncs();
    assert_int_equal(sync_log(), STELE_OK);
    wal_log_commit(&wal, 1);
    assert_int_equal(syncs(), before + 1);
    assert_int_equal(sync_log(), STELE_OK);
    assert_int_equal(syncs(), before + 1);
}

/* ---- Rolling over ------------------------------------------------------------------------- */

static void prepared_segments_are_used_in_order(void **state)
{
    (void)state;
    assert_int_equal(wal_writer_prepared_count(wal.writer), 0);
    for (size_t count = 1; count <= 5; count++) {
        wal_log_prepare(&wal);
        assert_int_equal(wal_writer_prepared_count(wal.writer), count);
    }
    for (uint64_t seq = 2; seq <= 6; seq++) {
        assert_int_equal(wal_writer_rotate(wal.writer, &error), STELE_OK);
        assert_int_equal(wal_writer_stats(wal.writer).segment_current, seq);
        assert_int_equal(wal_log_append(&wal, 1).segment, seq);
    }
    assert_int_equal(wal_writer_prepared_count(wal.writer), 0);
    assert_int_equal(wal_writer_stats(wal.writer).rotations, 5);
}

/* A unit in the next segment that is durable before one in this one would leave
 * a gap that looks like a loss. */
static void rotation_syncs_the_predecessor_if_units_are_pending(void **state)
{
    uint64_t before;

    (void)state;
    wal_log_append(&wal, 1);
    wal_log_append(&wal, 1);
    wal_log_prepare(&wal);
    before = syncs();
    assert_int_equal(wal_writer_rotate(wal.writer, &error), STELE_OK);
    assert_int_equal(syncs(), before + 1);
    assert_int_equal(wal_writer_durable(wal.writer).unit, 2);
}

static void rotation_syncs_nothing_if_all_is_durable(void **state)
{
    uint64_t before;

    (void)state;
    wal_log_commit(&wal, 1);
    wal_log_prepare(&wal);
    wal_log_prepare(&wal);
    before = syncs();
    assert_int_equal(wal_writer_rotate(wal.writer, &error), STELE_OK);
    assert_int_equal(wal_writer_rotate(wal.writer, &error), STELE_OK);
    assert_int_equal(syncs(), before);
}

static void rotation_without_a_prepared_segment_is_a_bug(void **state)
{
    (void)state;
    assert_true(is_asserted_against(try_to_rotate));
}

/* ---- Failures --------------------------------------------------------------------------------- */

/* On a copy-on-write file system: nothing was written, nothing has changed. */
static void without_space_the_writer_stays_usable(void **state)
{
    const struct wal_position before = wal_log_commit(&wal, 1);
    struct wal_position after;
    struct wal_reader_unit unit;

    (void)state;
    for (int tries = 0; tries < 3; tries++) {
        break_call(IO_FAULT_WRITE, 0, tries == 1 ? EDQUOT : ENOSPC);
        assert_int_equal(wal_log_try_append(&wal, 2, &error), STELE_NO_SPACE);
        assert_non_null(strstr(error.message, "append unit 2: "));
        assert_int_equal(wal_writer_written(wal.writer).unit, 1);
    }
    after = wal_log_commit(&wal, 1);
    assert_int_equal(after.unit, 2);
    assert_int_equal(after.start_offset, before.end_offset);
    assert_int_equal(units_readable(&unit), 2);
}

/* Part of the unit may be there: whatever followed could not be reached. */
static void after_a_failed_write_the_writer_is_finished(void **state)
{
    static const int errnos[] = {EIO, 0 /* Short. */, EROFS, EFBIG};

    (void)state;
    for (size_t index = 0; index < sizeof errnos / sizeof *errnos; index++) {
        struct wal_recovery ended = {.row = WAL_ROW_C};

        wal_log_prepare(&wal);
        break_call(IO_FAULT_WRITE, 0, errnos[index]);
        assert_int_equal(wal_log_try_append(&wal, 2, &error), STELE_IO);
        io_fault_arm(NULL);
        assert_non_null(strstr(error.message, "append unit 1: "));
        assert_int_equal(wal_writer_written(wal.writer).unit, 0);
        assert_finished();
        wal_log_stop(&wal);
        ended.next_segment = wal.anchor.segment_last;
        ended.end = wal.end;
        wal_log_resume(&wal, &ended);
        wal_log_rotate(&wal);
    }
}

static void after_a_failed_sync_the_writer_is_finished(void **state)
{
    (void)state;
    wal_log_prepare(&wal);
    wal_log_append(&wal, 1);
    break_call(IO_FAULT_SYNC, 0, ENOSPC);
    assert_int_equal(sync_log(), STELE_IO);
    io_fault_arm(NULL);
    assert_non_null(strstr(error.message, "sync unit 1: "));
    assert_int_equal(wal_writer_durable(wal.writer).unit, 0);
    assert_finished();
}

static void after_a_failed_sync_in_a_rotation_as_well(void **state)
{
    (void)state;
    wal_log_prepare(&wal);
    wal_log_append(&wal, 1);
    break_call(IO_FAULT_SYNC, 0, EIO);
    assert_int_equal(wal_writer_rotate(wal.writer, &error), STELE_IO);
    io_fault_arm(NULL);
    assert_int_equal(wal_writer_stats(wal.writer).rotations, 0);
    assert_int_equal(wal_writer_durable(wal.writer).unit, 0);
    assert_finished();
}

/* ---- Going on -------------------------------------------------------------------------------------- */

static void a_writer_goes_on_at_a_clean_end(void **state)
{
    struct wal_recovery ended = {.row = WAL_ROW_A, .next_segment = 1};
    struct wal_position next;
    struct wal_reader_unit unit;

    (void)state;
    ended.end = wal_log_commit(&wal, 2);
    ended.next_offset = ended.end.end_offset;
    wal_log_stop(&wal);
    wal_log_resume(&wal, &ended);
    assert_int_equal(wal_writer_durable(wal.writer).unit, 1);
    next = wal_log_commit(&wal, 1);
    assert_int_equal(next.segment, 1);
    assert_int_equal(next.start_offset, ended.end.end_offset);
    assert_int_equal(units_readable(&unit), 2);
    assert_int_equal(unit.unit.unit_durable, 1);
}

static void nothing_is_ever_appended_behind_a_torn_tail(void **state)
{
    struct wal_recovery torn = {.row = WAL_ROW_C, .next_segment = 1};
    struct wal_reader_unit unit;
    char path[FILES_PATH_BYTES];
    uint64_t size;
    uint8_t *before;
    uint8_t *after;

    (void)state;
    torn.end = wal_log_commit(&wal, 1);
    torn.next_offset = torn.end.end_offset;
    wal_log_append(&wal, 2);
    wal_log_stop(&wal);
    wal_log_segment_path(&wal, 1, path);
    files_flip_bit(path, torn.next_offset + 200, 0);
    before = files_read(path, &size);

    wal_log_resume(&wal, &torn);
    assert_false(wal_writer_has_room(wal.writer, 0));
    assert_true(wal_writer_half_full(wal.writer)); /* The next one is due. */
    assert_true(is_asserted_against(try_to_append));
    wal_log_rotate(&wal);
    wal_log_commit(&wal, 1);
    assert_int_equal(wal.end.unit, 2);
    assert_int_equal(wal.end.segment, 2);
    assert_int_equal(wal.end.start_offset, PAGE);
    assert_int_equal(units_readable(&unit), 2);

    after = files_read(path, &size);
    assert_memory_equal(before, after, size);
    free(before);
    free(after);
}

static void a_writer_without_its_segment_is_not_made(void **state)
{
    struct wal_recovery ended = {.row = WAL_ROW_A, .next_segment = 9};
    struct wal_writer *writer = NULL;

    (void)state;
    ended.end = wal.end;
    assert_int_equal(
        wal_writer_create(wal.dir, &ended, &wal.uuid, 1, &writer, &error),
        STELE_NOT_FOUND);
    assert_null(writer);
    wal_writer_destroy(NULL);
}

#define LOG_TEST(name)                                                         \
    cmocka_unit_test_setup_teardown(name, make_log, remove_log)

int main(void)
{
    const struct CMUnitTest tests[] = {
        LOG_TEST(units_stand_one_behind_the_other),
        LOG_TEST(a_unit_says_what_was_durable_when_it_was_written),
        LOG_TEST(a_group_of_the_most_records_is_one_write),
        LOG_TEST(the_wall_clock_of_units_never_goes_back),
        LOG_TEST(a_unit_may_fill_the_segment_to_its_end),
        LOG_TEST(room_shrinks_by_whole_pages),
        LOG_TEST(half_full_is_when_the_next_segment_is_due),
        LOG_TEST(one_sync_makes_everything_written_durable),
        LOG_TEST(a_sync_with_nothing_to_do_makes_no_system_call),
        LOG_TEST(prepared_segments_are_used_in_order),
        LOG_TEST(rotation_syncs_the_predecessor_if_units_are_pending),
        LOG_TEST(rotation_syncs_nothing_if_all_is_durable),
        LOG_TEST(rotation_without_a_prepared_segment_is_a_bug),
        LOG_TEST(without_space_the_writer_stays_usable),
        LOG_TEST(after_a_failed_write_the_writer_is_finished),
        LOG_TEST(after_a_failed_sync_the_writer_is_finished),
        LOG_TEST(after_a_failed_sync_in_a_rotation_as_well),
        LOG_TEST(a_writer_goes_on_at_a_clean_end),
        LOG_TEST(nothing_is_ever_appended_behind_a_torn_tail),
        LOG_TEST(a_writer_without_its_segment_is_not_made),
    };

    return cmocka_run_group_tests_name("wal/writer", tests, NULL, NULL);
}
