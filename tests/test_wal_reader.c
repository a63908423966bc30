/*
 * tests/test_wal_reader.c -- wal/reader.h: where the next unit may be, and what
 * is never taken for it.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/lib/files.h"
#include "tests/lib/io_fault.h"
#include "tests/lib/wal_log.h"
#include "wal/reader.h"
#include "wal/segment.h"

enum {
    PAGE = WAL_PAGE_BYTES,
    SECTOR = 512,
    SEGMENT_PAGES = WAL_LOG_SEGMENT_BYTES / PAGE,
    READS_MAX = 100,
};

/* ---- A small vocabulary --------------------------------------------------------- */

static struct wal_log wal;
static struct wal_reader reader;
static struct wal_reader_unit unit;
static struct stele_error error;

static int make_log(void **state)
{
    (void)state;
    wal_log_create(&wal);
    reader = (struct wal_reader){0};
    return 0;
}

static int remove_log(void **state)
{
    (void)state;
    wal_reader_close(&reader);
    wal_log_destroy(&wal);
    return 0;
}

static struct wal_position origin(void)
{
    return wal_position_origin(&wal.uuid, 0);
}

static const char *path_of(uint64_t segment)
{
    static char path[FILES_PATH_BYTES];

    wal_log_segment_path(&wal, segment, path);
    return path;
}

static enum stele_status open_behind(struct wal_position start)
{
    wal_reader_close(&reader);
    return wal_reader_open(&reader, wal.dir, &start, 1, IO_OPEN_READ, &error);
}

/* Whether a whole unit follows; it is then `unit`. */
static bool next(void)
{
    bool whole;

    assert_int_equal(wal_reader_next(&reader, &unit, &whole, &error), STELE_OK);
    return whole;
}

/* Units from the start on, until none follows. */
static uint64_t readable(void)
{
    uint64_t count = 0;

    assert_int_equal(open_behind(origin()), STELE_OK);
    while (next()) {
        count++;
        assert_int_equal(unit.unit.number, count);
    }
    return count;
}

static enum stele_status check_position(const struct wal_position *position,
                                        uint64_t segment_oldest, bool *found)
{
    const struct wal_position start = origin();

    return wal_reader_check_position(wal.dir, position, &start, segment_oldest,
                                     found, &error);
}

static bool stands(struct wal_position position)
{
    bool found;

    assert_int_equal(check_position(&position, 1, &found), STELE_OK);
    return found;
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

/* ---- What is read ------------------------------------------------------------------ */

static void units_are_read_back_over_rotations(void **state)
{
    struct wal_position written[6];

    (void)state;
    for (uint64_t index = 0; index < 6; index++) {
        if (index == 3 || index == 5) {
            wal_log_rotate(&wal);
        }
        written[index] = wal_log_commit(&wal, index + 1);
    }
    assert_int_equal(open_behind(origin()), STELE_OK);
    for (uint64_t index = 0; index < 6; index++) {
        assert_true(next());
        assert_true(wal_position_equal(&unit.position, &written[index]));
        assert_int_equal(unit.position.segment, written[index].segment);
        assert_int_equal(unit.position.start_offset,
                         written[index].start_offset);
        assert_int_equal(unit.position.end_offset, written[index].end_offset);
        assert_int_equal(unit.unit.incarnation, WAL_LOG_INCARNATION);
        assert_int_equal(unit.unit.unit_durable, index);
    }
    assert_false(next());
    assert_false(next());
}

static void header_and_body_are_the_bytes_on_disk(void **state)
{
    const struct wal_position position = wal_log_commit(&wal, 2);
    uint8_t bytes[2 * PAGE];

    (void)state;
    files_read_at(path_of(1), position.start_offset, bytes, sizeof bytes);
    assert_int_equal(open_behind(origin()), STELE_OK);
    assert_true(next());
    assert_ptr_equal(unit.body, unit.header + WAL_UNIT_HEADER_BYTES);
    assert_memory_equal(unit.header, bytes,
                        WAL_UNIT_HEADER_BYTES + unit.unit.body_bytes);
}

/* Larger than what is read ahead, and across its border. */
static void units_of_any_size_are_read(void **state)
{
    (void)state;
    wal_log_commit(&wal, 60);
    wal_log_commit(&wal, 10);
    wal_log_commit(&wal, 150);
    wal_log_commit(&wal, 1);
    wal_log_commit(&wal, SEGMENT_PAGES - 1 - 60 - 10 - 150 - 1);
    assert_int_equal(wal.end.end_offset, WAL_LOG_SEGMENT_BYTES);
    assert_int_equal(readable(), 5);
}

static void reading_starts_behind_any_unit(void **state)
{
    struct wal_position written[4];

    (void)state;
    for (uint64_t index = 0; index < 4; index++) {
        if (index == 2) {
            wal_log_rotate(&wal);
        }
        written[index] = wal_log_commit(&wal, 1);
    }
    for (uint64_t index = 0; index < 3; index++) {
        assert_int_equal(open_behind(written[index]), STELE_OK);
        assert_true(next());
        assert_int_equal(unit.unit.number, index + 2);
    }
    assert_int_equal(open_behind(written[3]), STELE_OK);
    assert_false(next());
}

/* Garbage in the tail of the first, garbage at the start of the second. */
static void retired_segments_are_skipped(void **state)
{
    struct wal_recovery torn = {.row = WAL_ROW_C, .next_segment = 1};

    (void)state;
    wal_log_commit(&wal, 1);
    torn.end = wal_log_commit(&wal, 1);
    wal_log_prepare(&wal);
    wal_log_stop(&wal);
    files_fill_at(path_of(1), torn.end.end_offset, 0xee, 3 * PAGE);
    files_fill_at(path_of(2), PAGE, 0xee, PAGE);
    wal_log_resume(&wal, &torn);
    wal_log_rotate(&wal); /* To the third. */
    wal_log_commit(&wal, 1);
    wal_log_commit(&wal, 1);
    assert_int_equal(wal.end.segment, 3);
    assert_int_equal(readable(), 4);
}

static void the_unused_end_of_a_segment_is_skipped(void **state)
{
    (void)state;
    wal_log_commit(&wal, 1);
    wal_log_rotate(&wal);
    wal_log_rotate(&wal); /* Nothing in the second. */
    wal_log_commit(&wal, 1);
    assert_int_equal(wal.end.segment, 3);
    assert_int_equal(readable(), 2);
}

static void leftovers_below_the_oldest_segment_are_not_looked_at(void **state)
{
    struct wal_position base;
    const struct wal_position start = origin();

    (void)state;
    wal_log_commit(&wal, 1);
    wal_log_rotate(&wal);
    base = wal_log_commit(&wal, 1);
    wal_log_commit(&wal, 1);
    files_fill_at(path_of(1), 0, 0xee, PAGE);
    assert_int_equal(
        wal_reader_open(&reader, wal.dir, &base, 2, IO_OPEN_READ, &error),
        STELE_OK);
    assert_true(next());
    assert_false(next());
    wal_reader_close(&reader);
    assert_int_equal(
        wal_reader_open(&reader, wal.dir, &start, 2, IO_OPEN_READ, &error),
        STELE_OK);
    assert_false(next()); /* The second starts with unit 2. */
}

/* ---- What is not taken --------------------------------------------------------------- */

static void a_whole_unit_behind_a_gap_is_not_taken(void **state)
{
    (void)state;
    for (int index = 0; index < 4; index++) {
        wal_log_commit(&wal, 1);
    }
    files_fill_at(path_of(1), 2 * PAGE, 0, PAGE);
    assert_int_equal(readable(), 1);
    assert_int_equal(reader.offset, 2 * PAGE);
}

static void a_whole_unit_in_a_later_segment_behind_a_gap_is_not_taken(
    void **state)
{
    (void)state;
    wal_log_commit(&wal, 1);
    wal_log_commit(&wal, 1);
    wal_log_rotate(&wal);
    wal_log_commit(&wal, 1);
    files_flip_bit(path_of(1), 3 * PAGE - 1, 0);
    assert_int_equal(readable(), 1);
    assert_int_equal(reader.segment.seq, 1); /* It stays where it stood. */
    assert_int_equal(reader.offset, 2 * PAGE);
}

/* A power cut in the middle of the write, at any byte. */
static void no_proper_prefix_of_the_last_unit_is_whole(void **state)
{
    uint8_t whole[PAGE];

    (void)state;
    wal_log_commit(&wal, 1);
    wal_log_commit(&wal, 1);
    files_read_at(path_of(1), 2 * PAGE, whole, sizeof whole);
    files_fill_at(path_of(1), 2 * PAGE, 0, PAGE);
    assert_int_equal(open_behind(origin()), STELE_OK);
    assert_true(next());
    for (size_t kept = 0; kept < PAGE; kept++) {
        files_write_at(path_of(1), 2 * PAGE, whole, kept);
        reader.window_bytes = 0; /* Read again. */
        assert_false(next());
    }
    files_write_at(path_of(1), 2 * PAGE, whole, PAGE);
    reader.window_bytes = 0;
    assert_true(next());
}

static void no_sector_of_the_last_unit_may_be_missing(void **state)
{
    const struct wal_position last = wal_log_commit(&wal, 3);

    (void)state;
    for (uint64_t sector = 0; sector < 3 * PAGE / SECTOR; sector++) {
        const uint64_t offset = last.start_offset + sector * SECTOR;
        uint8_t kept[SECTOR];

        files_read_at(path_of(1), offset, kept, sizeof kept);
        files_fill_at(path_of(1), offset, 0, sizeof kept);
        assert_int_equal(readable(), 0);
        files_write_at(path_of(1), offset, kept, sizeof kept);
    }
    assert_int_equal(readable(), 1);
}

/* The same unit number, but behind a unit that was dropped. */
static void a_unit_of_a_dropped_history_is_not_taken(void **state)
{
    struct wal_recovery dropped = {.row = WAL_ROW_C, .next_segment = 1};

    (void)state;
    dropped.end = wal_log_commit(&wal, 1);
    wal_log_commit(&wal, 1); /* Will be torn. */
    wal_log_rotate(&wal);
    wal_log_commit(&wal, 1); /* Unit 3 of the old history, in segment 2. */
    wal_log_stop(&wal);
    files_flip_bit(path_of(1), 2 * PAGE + 200, 0);
    wal_log_resume(&wal, &dropped);
    wal_log_rotate(&wal);    /* Segment 3. */
    wal_log_commit(&wal, 1); /* Unit 2 of the new one ... */
    assert_int_equal(wal.end.segment, 3);
    wal_log_commit(&wal, 1); /* ... and its unit 3. */
    assert_int_equal(readable(), 3);
    assert_int_equal(unit.position.segment, 3);
}

/* Whole, of the right number, in the right place: only the chain tells. */
static void a_unit_that_follows_another_history_is_not_taken(void **state)
{
    struct wal_recovery nothing = {
        .row = WAL_ROW_A, .next_segment = 1, .next_offset = PAGE};

    (void)state;
    wal_log_commit(&wal, 1);
    wal_log_rotate(&wal);
    wal_log_commit(&wal, 1); /* Unit 2, at the start of segment 2. */
    assert_int_equal(readable(), 2);
    wal_log_stop(&wal);
    files_fill_at(path_of(1), PAGE, 0, PAGE);
    nothing.end = origin();
    wal_log_resume(&wal, &nothing);
    wal_log_commit(&wal, 1); /* Another unit 1. */
    assert_int_equal(readable(), 1);
}

/* ---- Growth ----------------------------------------------------------------------------- */

static void after_a_refresh_growth_is_seen(void **state)
{
    (void)state;
    wal_log_commit(&wal, 1);
    assert_int_equal(readable(), 1);
    wal_log_commit(&wal, 1);
    assert_int_equal(wal_reader_refresh(&reader, &error), STELE_OK);
    assert_true(next());
    assert_int_equal(unit.unit.number, 2);
    wal_log_rotate(&wal);
    wal_log_commit(&wal, 1);
    assert_int_equal(wal_reader_refresh(&reader, &error), STELE_OK);
    assert_true(next());
    assert_int_equal(unit.position.segment, 2);
    assert_false(next());
}

static void a_segment_that_has_gone_is_said_to_be_gone(void **state)
{
    (void)state;
    wal_log_commit(&wal, 1);
    wal_log_rotate(&wal);
    wal_log_commit(&wal, 1);
    assert_int_equal(open_behind(origin()), STELE_OK);
    files_remove(path_of(1));
    assert_int_equal(wal_reader_refresh(&reader, &error), STELE_NOT_FOUND);
    assert_string_equal(error.message,
                        "wal/0000000000000001.wal: no longer needed");
}

/* ---- Failures ------------------------------------------------------------------------------ */

static void a_start_that_is_not_there_is_corrupt(void **state)
{
    const struct wal_position start = wal_log_commit(&wal, 1);

    (void)state;
    wal_log_rotate(&wal);
    files_remove(path_of(1));
    assert_int_equal(open_behind(start), STELE_CORRUPT);
    assert_string_equal(error.message, "wal/0000000000000001.wal: missing, "
                                       "unit 1 is in it");
    files_remove(path_of(2));
    assert_int_equal(open_behind(origin()), STELE_CORRUPT);
    assert_string_equal(error.message,
                        "wal: no segment from 0000000000000001 on");
}

/* The n-th read fails, for n = 1, 2, ...: an error each time, never an end. */
static void no_read_that_fails_is_the_end_of_the_log(void **state)
{
    uint64_t reads = 0;

    (void)state;
    wal_log_commit(&wal, 1);
    wal_log_rotate(&wal);
    wal_log_commit(&wal, 100);
    for (;; reads++) {
        enum stele_status status;
        uint64_t count = 0;
        bool whole = true;

        assert_true(reads < READS_MAX);
        break_call(IO_FAULT_READ, reads, EIO);
        status = open_behind(origin());
        while (status == STELE_OK && whole) {
            status = wal_reader_next(&reader, &unit, &whole, &error);
            count += status == STELE_OK && whole ? 1 : 0;
        }
        if (io_fault_count() == 0) {
            assert_int_equal(status, STELE_OK);
            assert_int_equal(count, 2);
            break;
        }
        assert_int_equal(status, STELE_IO);
        assert_int_equal(error.sys_errno, EIO);
    }
    assert_true(reads >= 4);
}

static void after_a_failed_read_the_same_unit_is_next(void **state)
{
    bool whole;

    (void)state;
    wal_log_commit(&wal, 1);
    wal_log_rotate(&wal);
    wal_log_commit(&wal, 1);
    assert_int_equal(open_behind(origin()), STELE_OK);
    assert_true(next());
    for (uint64_t calls = 0; calls < 2; calls++) { /* Header, then unit. */
        break_call(IO_FAULT_READ, calls, EIO);
        assert_int_equal(wal_reader_next(&reader, &unit, &whole, &error),
                         STELE_IO);
    }
    break_call(IO_FAULT_OPEN, 0, EMFILE);
    assert_int_equal(wal_reader_next(&reader, &unit, &whole, &error), STELE_IO);
    assert_true(next());
    assert_int_equal(unit.unit.number, 2);
}

/* ---- Positions ---------------------------------------------------------------------------------- */

static void the_position_of_every_unit_stands(void **state)
{
    (void)state;
    assert_true(stands(origin()));
    assert_true(stands(wal_log_commit(&wal, 1)));
    assert_true(stands(wal_log_commit(&wal, 3)));
    wal_log_rotate(&wal);
    assert_true(stands(wal_log_append(&wal, 1)));
}

static void a_position_stands_by_number_chain_and_place(void **state)
{
    const struct wal_position position = wal_log_commit(&wal, 1);
    struct wal_position other;

    (void)state;
    wal_log_commit(&wal, 1);
    other = position;
    other.unit++;
    assert_false(stands(other));
    other = position;
    other.chain.bytes[15] ^= 1;
    assert_false(stands(other));
    other = position;
    other.start_offset += PAGE;
    assert_false(stands(other));
    other = position;
    other.end_offset += PAGE;
    assert_false(stands(other));
    other = position;
    other.segment = 9;
    assert_false(stands(other));
    other = position;
    other.start_offset = UINT64_MAX - 10;
    assert_false(stands(other));
    other = origin();
    other.chain.bytes[0] ^= 1;
    assert_false(stands(other));
}

static void a_position_below_the_oldest_segment_does_not_stand(void **state)
{
    const struct wal_position position = wal_log_commit(&wal, 1);
    bool found = true;

    (void)state;
    assert_int_equal(check_position(&position, 2, &found), STELE_OK);
    assert_false(found);
}

static void an_error_is_no_answer(void **state)
{
    const struct wal_position position = wal_log_commit(&wal, 1);
    bool found;

    (void)state;
    for (uint64_t calls = 0; calls < 2; calls++) {
        break_call(IO_FAULT_READ, calls, EIO);
        assert_int_equal(check_position(&position, 1, &found), STELE_IO);
    }
    break_call(IO_FAULT_OPEN, 0, EACCES);
    assert_int_equal(check_position(&position, 1, &found), STELE_IO);
}

#define LOG_TEST(name)                                                         \
    cmocka_unit_test_setup_teardown(name, make_log, remove_log)

int main(void)
{
    const struct CMUnitTest tests[] = {
        LOG_TEST(units_are_read_back_over_rotations),
        LOG_TEST(header_and_body_are_the_bytes_on_disk),
        LOG_TEST(units_of_any_size_are_read),
        LOG_TEST(reading_starts_behind_any_unit),
        LOG_TEST(retired_segments_are_skipped),
        LOG_TEST(the_unused_end_of_a_segment_is_skipped),
        LOG_TEST(leftovers_below_the_oldest_segment_are_not_looked_at),
        LOG_TEST(a_whole_unit_behind_a_gap_is_not_taken),
        LOG_TEST(a_whole_unit_in_a_later_segment_behind_a_gap_is_not_taken),
        LOG_TEST(no_proper_prefix_of_the_last_unit_is_whole),
        LOG_TEST(no_sector_of_the_last_unit_may_be_missing),
        LOG_TEST(a_unit_of_a_dropped_history_is_not_taken),
        LOG_TEST(a_unit_that_follows_another_history_is_not_taken),
        LOG_TEST(after_a_refresh_growth_is_seen),
        LOG_TEST(a_segment_that_has_gone_is_said_to_be_gone),
        LOG_TEST(a_start_that_is_not_there_is_corrupt),
        LOG_TEST(no_read_that_fails_is_the_end_of_the_log),
        LOG_TEST(after_a_failed_read_the_same_unit_is_next),
        LOG_TEST(the_position_of_every_unit_stands),
        LOG_TEST(a_position_stands_by_number_chain_and_place),
        LOG_TEST(a_position_below_the_oldest_segment_does_not_stand),
        LOG_TEST(an_error_is_no_answer),
    };

    return cmocka_run_group_tests_name("wal/reader", tests, NULL, NULL);
}
