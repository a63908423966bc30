/*
 * tests/test_wal_recovery.c -- wal/recovery.h: the table over all its inputs,
 * then each row on real files.
 *
 * Logs are built by the writer and damaged afterwards. Every run is checked to
 * have written nothing, and every refusal to have the text a person will read.
 *
 * Units are one page unless said otherwise: unit n stands at offset n * 4096.
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

#include "base/bytes.h"
#include "base/checksum.h"
#include "tests/lib/files.h"
#include "tests/lib/io_fault.h"
#include "tests/lib/wal_log.h"
#include "wal/reader.h"
#include "wal/recovery.h"
#include "wal/segment.h"
#include "wal/unit.h"

enum {
    PAGE = WAL_PAGE_BYTES,
    SECTOR = 512,
    SEGMENT_PAGES = WAL_LOG_SEGMENT_BYTES / PAGE, /* The header is one. */
    CLAIMS_MAX = 2,
    READS_MAX = 100,
    UNTOUCHED = 42, /* recovery->units where there must be no result. */
};

#define SEGMENT_1 "wal/0000000000000001.wal"
#define SEGMENT_2 "wal/0000000000000002.wal"

/* ---- A small vocabulary ------------------------------------------------------- */

static struct wal_log wal;
static struct wal_claim claims[CLAIMS_MAX];
static struct wal_recovery_input input;
static struct wal_recovery found;
static struct stele_error error;

static int make_log(void **state)
{
    (void)state;
    wal_log_create(&wal);
    memset(claims, 0, sizeof claims);
    input = (struct wal_recovery_input){
        .wal_dir = wal.dir,
        .anchor = &wal.anchor,
        .base = wal_position_origin(&wal.uuid, 0),
        .claims = claims,
    };
    return 0;
}

static int remove_log(void **state)
{
    (void)state;
    wal_log_destroy(&wal);
    return 0;
}

/* Durable units, one page each; the position of the last. */
static struct wal_position commit(uint64_t count)
{
    struct wal_position last = wal.end;

    for (uint64_t unit = 0; unit < count; unit++) {
        last = wal_log_commit(&wal, 1);
    }
    return last;
}

/* Units that were written and never synced. */
static struct wal_position append(uint64_t count)
{
    struct wal_position last = wal.end;

    for (uint64_t unit = 0; unit < count; unit++) {
        last = wal_log_append(&wal, 1);
    }
    return last;
}

static const char *path_of(uint64_t segment)
{
    static char path[FILES_PATH_BYTES];

    wal_log_segment_path(&wal, segment, path);
    return path;
}

static void zero_pages(uint64_t segment, uint64_t offset, uint64_t pages)
{
    files_fill_at(path_of(segment), offset, 0, (size_t)pages * PAGE);
}

/* In the header of the unit there: it does not verify any more. */
static void damage_header(uint64_t segment, uint64_t offset)
{
    files_flip_bit(path_of(segment), offset + 24, 0);
}

/* In its body: its header still verifies. */
static void damage_body(uint64_t segment, uint64_t offset)
{
    files_flip_bit(path_of(segment), offset + PAGE - 1, 0);
}

static void claim(const char *name, const struct wal_position *position)
{
    assert_true(input.claim_count < CLAIMS_MAX);
    claims[input.claim_count++] =
        (struct wal_claim){.name = name, .position = *position};
}

/* As if by another process; writes nothing. */
static enum stele_status run(void)
{
    const uint64_t before = files_tree_digest(wal.path, NULL);
    enum stele_status status;

    wal_log_stop(&wal);
    found = (struct wal_recovery){.units = UNTOUCHED};
    error = (struct stele_error){0};
    status = wal_recovery_run(&input, &found, &error);
    assert_true(files_tree_digest(wal.path, NULL) == before);
    if (status != STELE_OK) {
        assert_int_equal(error.status, status);
        assert_int_equal(found.units, UNTOUCHED);
    }
    return status;
}

static void assert_row(enum wal_row row, const struct wal_position *end)
{
    assert_int_equal(run(), STELE_OK);
    assert_true(found.base_found);
    assert_int_equal(found.row, row);
    assert_true(wal_position_equal(&found.end, end));
    assert_int_equal(found.end.segment, end->segment);
    assert_int_equal(found.end.start_offset, end->start_offset);
    assert_int_equal(found.end.end_offset, end->end_offset);
}

static void assert_refused(enum stele_status expected, const char *message)
{
    assert_int_equal(run(), expected);
    assert_string_equal(error.message, message);
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

/* ---- The table ------------------------------------------------------------------- */

static void exactly_one_row_decides_any_input(void **state)
{
    (void)state;
    for (unsigned bits = 0; bits < 16; bits++) {
        const struct wal_recovery_facts facts = {
            .refused = (bits & 1) != 0,
            .evidence = (bits & 2) != 0,
            .page_zero = (bits & 4) != 0,
            .rest_zero = (bits & 8) != 0,
        };
        /* Each row by its own words, none by the order they are tried in. */
        const bool e = facts.refused;
        const bool b = !facts.refused && facts.evidence && facts.page_zero;
        const bool d = !facts.refused && facts.evidence && !facts.page_zero;
        const bool a = !facts.refused && !facts.evidence && facts.rest_zero;
        const bool c = !facts.refused && !facts.evidence && !facts.rest_zero;
        const enum wal_row expected = e   ? WAL_ROW_E
                                      : b ? WAL_ROW_B
                                      : d ? WAL_ROW_D
                                      : a ? WAL_ROW_A
                                          : WAL_ROW_C;

        assert_int_equal(e + b + d + a + c, 1);
        assert_int_equal(wal_recovery_row(&facts), expected);
    }
}

/* ---- Row A: the log ends here ---------------------------------------------------- */

static void a_new_log_ends_at_its_start(void **state)
{
    const struct wal_position origin = wal_position_origin(&wal.uuid, 0);

    (void)state;
    assert_row(WAL_ROW_A, &origin);
    assert_int_equal(found.units, 0);
    assert_int_equal(found.next_segment, 1);
    assert_int_equal(found.next_offset, PAGE);
    assert_int_equal(found.segment_last, 1);
}

static void zeros_behind_the_last_unit_are_its_clean_end(void **state)
{
    const struct wal_position end = commit(3);

    (void)state;
    assert_row(WAL_ROW_A, &end);
    assert_int_equal(found.units, 3);
    assert_int_equal(found.records, 3);
    assert_int_equal(found.next_segment, 1);
    assert_int_equal(found.next_offset, 4 * PAGE);
    assert_int_equal(found.dropped_bytes, 0);
    assert_true(found.wall_ns_last > 0);
}

/* The last one proves all before it, and nobody proves the last one. */
static void a_unit_is_proven_by_a_later_one(void **state)
{
    struct wal_position last_but_one;
    struct wal_position end;

    (void)state;
    last_but_one = commit(2);
    end = commit(1);
    assert_row(WAL_ROW_A, &end);
    assert_int_equal(found.unit_proven, 2);
    assert_true(found.proven.unit <= 2);
    wal.anchor.durable = last_but_one;
    assert_row(WAL_ROW_A, &end);
    assert_int_equal(found.unit_proven, 2);
    wal.anchor.durable = end;
    assert_row(WAL_ROW_A, &end);
    assert_int_equal(found.unit_proven, 3);
}

static void a_log_goes_on_in_later_segments(void **state)
{
    struct wal_position end;

    (void)state;
    commit(2);
    wal_log_rotate(&wal);
    commit(2);
    wal_log_rotate(&wal);
    end = commit(1);
    assert_row(WAL_ROW_A, &end);
    assert_int_equal(found.units, 5);
    assert_int_equal(found.next_segment, 3);
    assert_int_equal(found.next_offset, 2 * PAGE);
}

static void a_prepared_segment_behind_the_end_is_normal(void **state)
{
    const struct wal_position end = commit(2);

    (void)state;
    wal_log_prepare(&wal);
    assert_row(WAL_ROW_A, &end);
    assert_int_equal(found.next_segment, 1);
    assert_int_equal(found.segment_last, 2);
}

/* A crash between its rename and the anchor that names it. */
static void a_segment_that_the_anchor_does_not_name_is_normal(void **state)
{
    const struct wal_position end = commit(2);

    (void)state;
    wal_log_prepare(&wal);
    wal.anchor.segment_last = 1;
    assert_row(WAL_ROW_A, &end);
    assert_int_equal(found.segment_last, 2);
}

static void a_segment_that_is_full_to_the_last_page_is_normal(void **state)
{
    const struct wal_position end = wal_log_commit(&wal, SEGMENT_PAGES - 1);

    (void)state;
    assert_int_equal(end.end_offset, WAL_LOG_SEGMENT_BYTES);
    assert_row(WAL_ROW_A, &end);
    assert_int_equal(found.next_offset, WAL_LOG_SEGMENT_BYTES);
}

static void what_lies_below_the_oldest_needed_segment_does_not_count(
    void **state)
{
    struct wal_position base;
    struct wal_position end;

    (void)state;
    commit(1);
    wal_log_rotate(&wal);
    base = commit(1);
    end = commit(1);
    wal.anchor.segment_oldest = 2;
    input.base = base;
    damage_header(1, PAGE);
    assert_row(WAL_ROW_A, &end);
    files_remove(path_of(1));
    assert_row(WAL_ROW_A, &end);
}

/* ---- Row C: a torn tail ------------------------------------------------------------ */

static void a_cut_last_unit_is_dropped(void **state)
{
    const struct wal_position end = commit(2);

    (void)state;
    wal_log_append(&wal, 3);
    for (uint64_t pages = 1; pages <= 2; pages++) {
        zero_pages(1, (6 - pages) * PAGE, 1);
        assert_row(WAL_ROW_C, &end);
        assert_int_equal(found.dropped_bytes, (3 - pages) * PAGE);
        assert_int_equal(found.next_segment, 1);
        assert_int_equal(found.next_offset, 3 * PAGE);
    }
    zero_pages(1, 3 * PAGE, 1); /* And the rest: it was never there. */
    assert_row(WAL_ROW_A, &end);
}

static void a_sector_missing_in_the_last_unit_is_a_torn_tail(void **state)
{
    const struct wal_position end = commit(2);

    (void)state;
    wal_log_append(&wal, 2);
    for (uint64_t sector = 0; sector < 2 * PAGE / SECTOR; sector++) {
        const uint64_t offset = 3 * PAGE + sector * SECTOR;
        uint8_t kept[SECTOR];

        files_read_at(path_of(1), offset, kept, sizeof kept);
        files_fill_at(path_of(1), offset, 0, sizeof kept);
        assert_row(WAL_ROW_C, &end);
        files_write_at(path_of(1), offset, kept, sizeof kept);
    }
}

/* Nothing became durable that would name it: it may as well be torn. */
static void a_damaged_last_unit_without_evidence_is_a_torn_tail(void **state)
{
    const struct wal_position end = commit(2);

    (void)state;
    commit(1);
    damage_body(1, 3 * PAGE);
    assert_row(WAL_ROW_C, &end);
    assert_int_equal(found.dropped_bytes, PAGE);
    damage_header(1, 3 * PAGE);
    assert_row(WAL_ROW_C, &end);
}

/* Disks reorder what was not synced: a whole unit behind a gap proves nothing. */
static void a_gap_followed_by_whole_unsynced_units_is_a_torn_tail(void **state)
{
    const struct wal_position end = commit(2);

    (void)state;
    append(3);
    zero_pages(1, 3 * PAGE, 1);
    assert_row(WAL_ROW_C, &end);
    assert_int_equal(found.dropped_bytes, 2 * PAGE);
    zero_pages(1, 4 * PAGE, 1);
    assert_row(WAL_ROW_C, &end);
    assert_int_equal(found.dropped_bytes, PAGE);
}

static void garbage_at_the_far_end_is_a_torn_tail_as_well(void **state)
{
    const struct wal_position end = commit(2);

    (void)state;
    wal_log_prepare(&wal);
    files_flip_bit(path_of(2), WAL_LOG_SEGMENT_BYTES - 1, 7);
    assert_row(WAL_ROW_C, &end);
    assert_int_equal(found.dropped_bytes, PAGE);
}

/* The units behind it are of the dropped history: they do not chain. */
static void a_dropped_tail_stays_dropped_when_the_log_goes_on(void **state)
{
    const struct wal_position end = commit(2);
    struct wal_position next;

    (void)state;
    append(3);
    damage_body(1, 3 * PAGE);
    assert_row(WAL_ROW_C, &end);
    wal_log_resume(&wal, &found);
    wal_log_rotate(&wal);
    next = commit(2);
    assert_int_equal(next.unit, 4);
    assert_int_equal(next.segment, 2);
    assert_row(WAL_ROW_A, &next);
    assert_int_equal(found.units, 4);
}

/* Crash, recover, write: a tail torn each time, five deep. */
static void torn_tails_do_not_add_up(void **state)
{
    struct wal_position end = commit(1);

    (void)state;
    for (int depth = 0; depth < 5; depth++) {
        append(2);
        damage_body(end.segment, end.end_offset);
        assert_row(WAL_ROW_C, &end);
        assert_int_equal(wal_recovery_harden(&input, &found, &error), STELE_OK);
        wal_log_resume(&wal, &found);
        wal_log_rotate(&wal);
        end = commit(1);
        wal_log_stop(&wal);
        assert_row(WAL_ROW_A, &end);
        wal_log_resume(&wal, &found);
    }
    assert_int_equal(end.unit, 6);
    assert_int_equal(end.segment, 6);
}

/* ---- Row D: damaged, but durable ---------------------------------------------------- */

static void a_damaged_unit_that_a_later_one_names_is_corrupt(void **state)
{
    (void)state;
    commit(3);
    damage_body(1, 2 * PAGE);
    assert_refused(
        STELE_CORRUPT,
        "recover: row D: " SEGMENT_1
        ": offset 8192: unit 2 is damaged, but the unit at " SEGMENT_1
        ", offset 12288, names unit 2");
    damage_header(1, 2 * PAGE);
    assert_refused(
        STELE_CORRUPT,
        "recover: row D: " SEGMENT_1
        ": offset 8192: unit 2 is damaged, but the unit at " SEGMENT_1
        ", offset 12288, names unit 2");
}

/* Its header is enough: it can be believed before the body is read. */
static void a_header_is_evidence_whatever_became_of_its_body(void **state)
{
    (void)state;
    commit(3);
    damage_body(1, 2 * PAGE);
    damage_body(1, 3 * PAGE);
    assert_refused(
        STELE_CORRUPT,
        "recover: row D: " SEGMENT_1
        ": offset 8192: unit 2 is damaged, but the unit at " SEGMENT_1
        ", offset 12288, names unit 2");
    damage_header(1, 3 * PAGE); /* Now nothing is. */
    assert_int_equal(run(), STELE_OK);
    assert_int_equal(found.row, WAL_ROW_C);
}

static void evidence_may_stand_in_a_later_segment(void **state)
{
    (void)state;
    commit(2);
    wal_log_rotate(&wal);
    commit(1);
    damage_body(1, 2 * PAGE);
    assert_refused(
        STELE_CORRUPT,
        "recover: row D: " SEGMENT_1
        ": offset 8192: unit 2 is damaged, but the unit at " SEGMENT_2
        ", offset 4096, names unit 2");
}

static void a_missing_page_inside_a_durable_unit_is_corrupt(void **state)
{
    (void)state;
    commit(1);
    wal_log_commit(&wal, 3);
    commit(1);
    zero_pages(1, 3 * PAGE, 1);
    assert_refused(
        STELE_CORRUPT,
        "recover: row D: " SEGMENT_1
        ": offset 8192: unit 2 is damaged, but the unit at " SEGMENT_1
        ", offset 20480, names unit 2");
}

static void a_damaged_unit_that_the_anchor_names_is_corrupt(void **state)
{
    (void)state;
    wal.anchor.durable = commit(3);
    damage_body(1, 3 * PAGE);
    assert_refused(STELE_CORRUPT,
                   "recover: row D: " SEGMENT_1
                   ": offset 12288: unit 3 is damaged, but ANCHOR names unit 3 "
                   "as durable");
}

static void another_unit_than_the_anchor_names_is_corrupt(void **state)
{
    (void)state;
    wal.anchor.durable = commit(2);
    commit(1);
    wal.anchor.durable.chain.bytes[0] ^= 1;
    assert_refused(STELE_CORRUPT, "recover: row D: " SEGMENT_1
                                  ": offset 8192: unit 2 is not the one that "
                                  "ANCHOR names");
}

/* Whatever is damaged, however: a durable unit is never given up silently. */
static void no_damage_to_a_durable_unit_is_ever_accepted(void **state)
{
    enum { DURABLE = 4, UNITS = 6, KINDS = 4 };

    (void)state;
    wal.anchor.durable = commit(DURABLE);
    append(UNITS - DURABLE);
    for (uint64_t unit = 1; unit <= UNITS; unit++) {
        for (int kind = 0; kind < KINDS; kind++) {
            const uint64_t offset = unit * PAGE;
            uint8_t kept[PAGE];

            files_read_at(path_of(1), offset, kept, sizeof kept);
            switch (kind) {
            case 0:
                damage_header(1, offset);
                break;
            case 1:
                damage_body(1, offset);
                break;
            case 2:
                zero_pages(1, offset, 1);
                break;
            default:
                files_fill_at(path_of(1), offset, 0xee, PAGE);
                break;
            }
            if (unit <= DURABLE) {
                assert_int_equal(run(), STELE_CORRUPT);
            } else {
                assert_int_equal(run(), STELE_OK);
                assert_int_equal(found.end.unit, unit - 1);
            }
            files_write_at(path_of(1), offset, kept, sizeof kept);
        }
    }
    assert_int_equal(run(), STELE_OK);
    assert_int_equal(found.end.unit, UNITS);
}

/* ---- Row B: lost --------------------------------------------------------------------------- */

static void a_zeroed_unit_that_a_later_one_names_is_lost(void **state)
{
    (void)state;
    commit(3);
    zero_pages(1, 2 * PAGE, 1);
    assert_refused(STELE_CORRUPT,
                   "recover: row B: " SEGMENT_1
                   ": offset 8192: unit 2 is lost, but the unit at " SEGMENT_1
                   ", offset 12288, names unit 2");
}

static void a_unit_that_only_the_anchor_names_is_lost(void **state)
{
    (void)state;
    wal.anchor.durable = commit(3);
    zero_pages(1, 3 * PAGE, 1);
    assert_refused(STELE_CORRUPT, "recover: row B: " SEGMENT_1
                                  ": offset 12288: unit 3 is lost, but ANCHOR "
                                  "names unit 3 as durable");
    zero_pages(1, 2 * PAGE, 1);
    assert_refused(STELE_CORRUPT, "recover: row B: " SEGMENT_1
                                  ": offset 8192: unit 2 is lost, but ANCHOR "
                                  "names unit 3 as durable");
}

static void a_clean_end_that_is_not_there_is_lost(void **state)
{
    (void)state;
    wal.anchor.durable = commit(3);
    wal.anchor.clean = true;
    zero_pages(1, 3 * PAGE, 1);
    assert_refused(STELE_CORRUPT, "recover: row B: " SEGMENT_1
                                  ": offset 12288: unit 3 is lost, but ANCHOR "
                                  "names unit 3 as durable");
}

static void a_unit_beyond_the_last_segment_is_lost(void **state)
{
    (void)state;
    wal_log_commit(&wal, SEGMENT_PAGES - 1);
    wal_log_rotate(&wal);
    wal.anchor.durable = commit(1);
    wal.anchor.segment_last = 1; /* Rolled back with the directory. */
    files_remove(path_of(2));
    assert_refused(STELE_CORRUPT,
                   "recover: row B: " SEGMENT_1
                   ": offset 1048576: unit 2 is lost, but ANCHOR "
                   "names unit 2 as durable");
}

static void behind_a_full_segment_the_place_is_the_start_of_the_next(
    void **state)
{
    (void)state;
    wal_log_commit(&wal, SEGMENT_PAGES - 1);
    wal_log_rotate(&wal);
    wal.anchor.durable = commit(1);
    zero_pages(2, PAGE, 1);
    assert_refused(STELE_CORRUPT, "recover: row B: " SEGMENT_2
                                  ": offset 4096: unit 2 is lost, but ANCHOR "
                                  "names unit 2 as durable");
    files_fill_at(path_of(2), PAGE, 0xee, 1);
    assert_refused(STELE_CORRUPT, "recover: row D: " SEGMENT_2
                                  ": offset 4096: unit 2 is damaged, but "
                                  "ANCHOR names unit 2 as durable");
}

static void an_index_beyond_the_end_is_evidence(void **state)
{
    struct wal_position beyond = commit(3);

    (void)state;
    claim("index applied", &beyond);
    beyond.unit = 9;
    claim("index applying", &beyond);
    assert_refused(STELE_CORRUPT,
                   "recover: row B: " SEGMENT_1
                   ": offset 16384: unit 4 is lost, but index applying is "
                   "unit 9");
    assert_false(claims[0].differs);
    damage_body(1, 3 * PAGE);
    assert_refused(STELE_CORRUPT,
                   "recover: row D: " SEGMENT_1
                   ": offset 12288: unit 3 is damaged, but index applied is "
                   "unit 3");
}

static void an_index_at_the_end_proves_it(void **state)
{
    const struct wal_position end = commit(3);

    (void)state;
    claim("index applied", &end);
    assert_row(WAL_ROW_A, &end);
    assert_int_equal(found.unit_proven, 3);
    assert_false(claims[0].differs);
}

/* Inside the log's range it is foreign, and proves nothing. */
static void an_index_of_another_history_is_told_apart(void **state)
{
    struct wal_position other = commit(2);
    const struct wal_position end = commit(1);

    (void)state;
    other.chain.bytes[0] ^= 1;
    claim("index applied", &end);
    claim("index applying", &other);
    assert_row(WAL_ROW_A, &end);
    assert_false(claims[0].differs);
    assert_true(claims[1].differs);
    claims[1].position.unit = 3; /* Where it would be evidence. */
    damage_body(1, 3 * PAGE);
    claims[0] = claims[1];
    input.claim_count = 1;
    assert_int_equal(run(), STELE_CORRUPT);
}

static void what_the_caller_knows_is_evidence(void **state)
{
    const struct wal_position end = commit(3);

    (void)state;
    input.min_expected_lsn = end.lsn;
    assert_row(WAL_ROW_A, &end);
    input.min_expected_lsn = end.lsn + 1;
    assert_refused(STELE_CORRUPT, "recover: row B: " SEGMENT_1
                                  ": offset 16384: unit 4 is lost, but the "
                                  "caller expects LSN 4");
    wal.anchor.durable = end;
    wal.anchor.clean = true; /* Then as well. */
    assert_int_equal(run(), STELE_CORRUPT);
}

/* ---- What only looks like evidence ------------------------------------------------------- */

/* The image of a unit in a value: sealed for its own place, and no other. */
static void the_image_of_a_unit_inside_a_value_is_no_evidence(void **state)
{
    struct wal_position end = commit(1);
    uint8_t image[PAGE];

    (void)state;
    wal_log_commit(&wal, 3);
    commit(1);
    files_read_at(path_of(1), 5 * PAGE, image, sizeof image);
    zero_pages(1, 5 * PAGE, 1);
    files_write_at(path_of(1), 3 * PAGE, image, sizeof image);
    damage_header(1, 2 * PAGE); /* So that the scan looks inside. */
    assert_row(WAL_ROW_C, &end);
    files_write_at(path_of(1), 5 * PAGE, image, sizeof image);
    assert_int_equal(run(), STELE_CORRUPT); /* In its own place it counts. */
}

static void a_segments_pages_are_no_evidence_in_another(void **state)
{
    struct wal_position end = commit(1);
    uint8_t image[PAGE];

    (void)state;
    commit(2);
    files_read_at(path_of(1), 3 * PAGE, image, sizeof image);
    zero_pages(1, 3 * PAGE, 1);
    damage_body(1, 2 * PAGE);
    wal_log_prepare(&wal);
    files_write_at(path_of(2), 3 * PAGE, image, sizeof image);
    assert_row(WAL_ROW_C, &end);
}

/* N's own header verifies: what it covers is its body, however torn. */
static void stale_units_inside_the_claimed_length_are_no_evidence(void **state)
{
    const struct wal_position first = commit(1);
    uint8_t stale[PAGE];

    (void)state;
    assert_int_equal(run(), STELE_OK); /* Where the log ends now. */
    wal_log_resume(&wal, &found);
    commit(2);
    files_read_at(path_of(1), 3 * PAGE, stale, sizeof stale);
    wal_log_stop(&wal);
    zero_pages(1, 2 * PAGE, 2);
    wal_log_resume(&wal, &found);
    wal_log_append(&wal, 3);
    files_write_at(path_of(1), 3 * PAGE, stale, sizeof stale);
    assert_row(WAL_ROW_C, &first);
    damage_header(1, 2 * PAGE); /* Now its length is not to be believed. */
    assert_refused(
        STELE_CORRUPT,
        "recover: row D: " SEGMENT_1
        ": offset 8192: unit 2 is damaged, but the unit at " SEGMENT_1
        ", offset 12288, names unit 2");
}

/* ---- Row E: no verdict is possible --------------------------------------------------------- */

static void a_missing_middle_segment_is_named(void **state)
{
    (void)state;
    commit(1);
    wal_log_rotate(&wal);
    commit(1);
    wal_log_rotate(&wal);
    commit(1);
    files_remove(path_of(2));
    assert_refused(STELE_CORRUPT, "recover: row E: " SEGMENT_2
                                  ": missing, segments 0000000000000001 to "
                                  "0000000000000003 are needed");
}

static void a_missing_last_segment_is_named(void **state)
{
    (void)state;
    commit(1);
    wal_log_rotate(&wal);
    commit(1);
    wal_log_stop(&wal);
    files_remove(path_of(2));
    assert_refused(STELE_CORRUPT, "recover: row E: " SEGMENT_2
                                  ": missing, segments 0000000000000001 to "
                                  "0000000000000002 are needed");
}

static void a_missing_first_segment_is_named(void **state)
{
    (void)state;
    commit(1);
    wal_log_rotate(&wal);
    commit(1);
    files_remove(path_of(1));
    assert_refused(STELE_CORRUPT, "recover: row E: " SEGMENT_1
                                  ": missing, segments 0000000000000001 to "
                                  "0000000000000002 are needed");
}

static void without_any_segment_nothing_is_decided(void **state)
{
    (void)state;
    commit(1);
    wal_log_stop(&wal);
    files_remove(path_of(1));
    assert_refused(STELE_CORRUPT,
                   "recover: row E: wal: no segment from 0000000000000001 on");
}

static void a_cut_segment_is_named(void **state)
{
    (void)state;
    commit(1);
    wal_log_rotate(&wal);
    commit(1);
    files_truncate(path_of(1), WAL_LOG_SEGMENT_BYTES - PAGE);
    assert_int_equal(run(), STELE_CORRUPT);
    assert_non_null(strstr(error.message, "recover: row E: "));
    assert_non_null(strstr(error.message,
                           "0000000000000001.wal: the file has 1044480 bytes, "
                           "expected 1048576"));
    files_truncate(path_of(1), 0);
    assert_int_equal(run(), STELE_CORRUPT);
}

static void a_segment_of_another_store_is_foreign(void **state)
{
    (void)state;
    commit(1);
    wal.anchor.uuid.bytes[0] ^= 1;
    input.base = wal_position_origin(&wal.anchor.uuid, 0);
    assert_int_equal(run(), STELE_FOREIGN);
    assert_non_null(strstr(error.message, "recover: row E: "));
    assert_non_null(strstr(error.message, "0000000000000001.wal: offset 16: "
                                          "belongs to another store"));
}

/* Behind the end as well: nobody knows what it was. */
static void a_damaged_header_of_a_later_segment_is_refused(void **state)
{
    (void)state;
    commit(1);
    wal_log_prepare(&wal);
    files_flip_bit(path_of(2), 20, 0);
    assert_int_equal(run(), STELE_CORRUPT);
    assert_non_null(strstr(error.message, "recover: row E: "));
}

/* "End of log" is what zeros say, never an error. */
static void no_read_that_fails_is_taken_for_the_end(void **state)
{
    uint64_t reads = 0;
    struct wal_position end;

    (void)state;
    commit(2);
    wal_log_rotate(&wal);
    commit(2);
    wal_log_rotate(&wal);
    append(1);
    end = commit(1);
    input.base = end; /* Then the base is read as well. */
    for (;; reads++) {
        enum stele_status status;

        assert_true(reads < READS_MAX);
        break_call(IO_FAULT_READ, reads, EIO);
        status = run();
        if (io_fault_count() == 0) {
            assert_int_equal(status, STELE_OK);
            break;
        }
        assert_int_equal(status, STELE_IO);
        assert_int_equal(error.sys_errno, EIO);
        assert_non_null(strstr(error.message, "recover: row E: "));
        assert_non_null(strstr(error.message, "Input/output error (errno 5)"));
    }
    assert_true(reads >= 4);
}

static void no_open_that_fails_is_taken_for_absence(void **state)
{
    static const int errnos[] = {EMFILE, ENFILE, EACCES};

    (void)state;
    commit(2);
    wal_log_rotate(&wal);
    commit(2);
    for (size_t index = 0; index < sizeof errnos / sizeof *errnos; index++) {
        for (uint64_t opens = 0; opens < 2; opens++) {
            break_call(IO_FAULT_OPEN, opens, errnos[index]);
            assert_int_equal(run(), STELE_IO);
            assert_int_equal(error.sys_errno, errnos[index]);
        }
    }
}

/* ---- The base --------------------------------------------------------------------------------- */

static void only_what_is_behind_the_base_is_read(void **state)
{
    const struct wal_position base = commit(2);
    const struct wal_position end = commit(2);

    (void)state;
    input.base = base;
    assert_row(WAL_ROW_A, &end);
    assert_int_equal(found.units, 2);
    damage_body(1, PAGE);
    assert_row(WAL_ROW_A, &end);
    input.base = wal_position_origin(&wal.uuid, 0);
    assert_int_equal(run(), STELE_CORRUPT);
}

static void a_base_that_is_not_in_the_log_is_said_to_be_missing(void **state)
{
    struct wal_position base = commit(2);

    (void)state;
    base.chain.bytes[0] ^= 1;
    input.base = base;
    assert_int_equal(run(), STELE_OK);
    assert_false(found.base_found);
    base.chain.bytes[0] ^= 1;
    base.segment = 7;
    input.base = base;
    assert_int_equal(run(), STELE_OK);
    assert_false(found.base_found);
}

/* ---- The accepted suffix ------------------------------------------------------------------------ */

static void hardening_writes_the_same_bytes_and_syncs_them(void **state)
{
    struct wal_position end;
    uint64_t digest;
    uint64_t syncs;

    (void)state;
    commit(2);
    end = append(3);
    assert_row(WAL_ROW_A, &end);
    assert_int_equal(found.unit_proven, 2);
    digest = files_tree_digest(wal.path, NULL);
    syncs = io_fault_syncs(".wal");
    assert_int_equal(wal_recovery_harden(&input, &found, &error), STELE_OK);
    assert_int_equal(io_fault_syncs(".wal"), syncs + 1);
    assert_true(files_tree_digest(wal.path, NULL) == digest);
    /* And did write: three units. */
    break_call(IO_FAULT_WRITE, 2, EIO);
    assert_int_equal(wal_recovery_harden(&input, &found, &error), STELE_IO);
    assert_int_equal(io_fault_count(), 1);
    break_call(IO_FAULT_WRITE, 3, EIO);
    assert_int_equal(wal_recovery_harden(&input, &found, &error), STELE_OK);
    assert_int_equal(io_fault_count(), 0);
}

static void a_suffix_in_a_later_segment_is_hardened_there(void **state)
{
    struct wal_position end;
    uint64_t digest;
    uint64_t syncs;

    (void)state;
    append(2);
    wal_log_rotate(&wal); /* Syncs them. */
    end = append(2);
    assert_row(WAL_ROW_A, &end);
    assert_int_equal(found.unit_proven, 2);
    digest = files_tree_digest(wal.path, NULL);
    syncs = io_fault_syncs(".wal");
    break_call(IO_FAULT_WRITE, 2, EIO); /* Two units, not three. */
    assert_int_equal(wal_recovery_harden(&input, &found, &error), STELE_OK);
    assert_int_equal(io_fault_count(), 0);
    assert_true(io_fault_syncs(".wal") > syncs);
    assert_true(files_tree_digest(wal.path, NULL) == digest);
}

static void what_is_proven_is_neither_written_nor_synced(void **state)
{
    const struct wal_position end = commit(3);
    uint64_t syncs;

    (void)state;
    wal.anchor.durable = end;
    assert_row(WAL_ROW_A, &end);
    syncs = io_fault_syncs(".wal");
    break_call(IO_FAULT_WRITE, 0, EIO);
    assert_int_equal(wal_recovery_harden(&input, &found, &error), STELE_OK);
    assert_int_equal(wal_recovery_settle(&input, &found, &error), STELE_OK);
    assert_int_equal(io_fault_count(), 0);
    assert_int_equal(io_fault_syncs(".wal"), syncs);
}

/* Whatever fails, the tail is shown to nobody. */
static void a_failed_hardening_says_so(void **state)
{
    const struct wal_position end = append(2);

    (void)state;
    assert_row(WAL_ROW_A, &end);
    break_call(IO_FAULT_SYNC, 0, EIO);
    assert_int_equal(wal_recovery_harden(&input, &found, &error), STELE_IO);
    assert_non_null(strstr(error.message, "recover: write the tail again: "));
    break_call(IO_FAULT_WRITE, 0, ENOSPC); /* Copy on write. */
    assert_int_equal(wal_recovery_harden(&input, &found, &error),
                     STELE_NO_SPACE);
    break_call(IO_FAULT_READ, 0, EIO);
    assert_int_equal(wal_recovery_harden(&input, &found, &error), STELE_IO);
    io_fault_arm(NULL);
    damage_body(1, PAGE); /* What was read first, and what then. */
    assert_int_equal(wal_recovery_harden(&input, &found, &error), STELE_BUSY);
    assert_string_equal(
        error.message,
        "recover: write the tail again: wal/0000000000000001.wal: offset 4096: "
        "unit 1 is not whole, but was when it was first read");
}

static void a_reader_settles_the_suffix_without_writing(void **state)
{
    struct wal_position end;
    uint64_t syncs;

    (void)state;
    commit(1);
    end = append(2);
    assert_row(WAL_ROW_A, &end);
    syncs = io_fault_syncs(".wal");
    break_call(IO_FAULT_WRITE, 0, EIO);
    assert_int_equal(wal_recovery_settle(&input, &found, &error), STELE_OK);
    assert_int_equal(io_fault_count(), 0);
    assert_int_equal(io_fault_syncs(".wal"), syncs + 1);
    assert_row(WAL_ROW_A, &end);
    break_call(IO_FAULT_SYNC, 0, EIO);
    assert_int_equal(wal_recovery_settle(&input, &found, &error), STELE_IO);
    assert_non_null(strstr(error.message, "recover: settle the tail: "));
}

#define LOG_TEST(name)                                                         \
    cmocka_unit_test_setup_teardown(name, make_log, remove_log)

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(exactly_one_row_decides_any_input),
        LOG_TEST(a_new_log_ends_at_its_start),
        LOG_TEST(zeros_behind_the_last_unit_are_its_clean_end),
        LOG_TEST(a_unit_is_proven_by_a_later_one),
        LOG_TEST(a_log_goes_on_in_later_segments),
        LOG_TEST(a_prepared_segment_behind_the_end_is_normal),
        LOG_TEST(a_segment_that_the_anchor_does_not_name_is_normal),
        LOG_TEST(a_segment_that_is_full_to_the_last_page_is_normal),
        LOG_TEST(what_lies_below_the_oldest_needed_segment_does_not_count),
        LOG_TEST(a_cut_last_unit_is_dropped),
        LOG_TEST(a_sector_missing_in_the_last_unit_is_a_torn_tail),
        LOG_TEST(a_damaged_last_unit_without_evidence_is_a_torn_tail),
        LOG_TEST(a_gap_followed_by_whole_unsynced_units_is_a_torn_tail),
        LOG_TEST(garbage_at_the_far_end_is_a_torn_tail_as_well),
        LOG_TEST(a_dropped_tail_stays_dropped_when_the_log_goes_on),
        LOG_TEST(torn_tails_do_not_add_up),
        LOG_TEST(a_damaged_unit_that_a_later_one_names_is_corrupt),
        LOG_TEST(a_header_is_evidence_whatever_became_of_its_body),
        LOG_TEST(evidence_may_stand_in_a_later_segment),
        LOG_TEST(a_missing_page_inside_a_durable_unit_is_corrupt),
        LOG_TEST(a_damaged_unit_that_the_anchor_names_is_corrupt),
        LOG_TEST(another_unit_than_the_anchor_names_is_corrupt),
        LOG_TEST(no_damage_to_a_durable_unit_is_ever_accepted),
        LOG_TEST(a_zeroed_unit_that_a_later_one_names_is_lost),
        LOG_TEST(a_unit_that_only_the_anchor_names_is_lost),
        LOG_TEST(a_clean_end_that_is_not_there_is_lost),
        LOG_TEST(a_unit_beyond_the_last_segment_is_lost),
        LOG_TEST(behind_a_full_segment_the_place_is_the_start_of_the_next),
        LOG_TEST(an_index_beyond_the_end_is_evidence),
        LOG_TEST(an_index_at_the_end_proves_it),
        LOG_TEST(an_index_of_another_history_is_told_apart),
        LOG_TEST(what_the_caller_knows_is_evidence),
        LOG_TEST(the_image_of_a_unit_inside_a_value_is_no_evidence),
        LOG_TEST(a_segments_pages_are_no_evidence_in_another),
        LOG_TEST(stale_units_inside_the_claimed_length_are_no_evidence),
        LOG_TEST(a_missing_middle_segment_is_named),
        LOG_TEST(a_missing_last_segment_is_named),
        LOG_TEST(a_missing_first_segment_is_named),
        LOG_TEST(without_any_segment_nothing_is_decided),
        LOG_TEST(a_cut_segment_is_named),
        LOG_TEST(a_segment_of_another_store_is_foreign),
        LOG_TEST(a_damaged_header_of_a_later_segment_is_refused),
        LOG_TEST(no_read_that_fails_is_taken_for_the_end),
        LOG_TEST(no_open_that_fails_is_taken_for_absence),
        LOG_TEST(only_what_is_behind_the_base_is_read),
        LOG_TEST(a_base_that_is_not_in_the_log_is_said_to_be_missing),
        LOG_TEST(hardening_writes_the_same_bytes_and_syncs_them),
        LOG_TEST(a_suffix_in_a_later_segment_is_hardened_there),
        LOG_TEST(what_is_proven_is_neither_written_nor_synced),
        LOG_TEST(a_failed_hardening_says_so),
        LOG_TEST(a_reader_settles_the_suffix_without_writing),
    };

    return cmocka_run_group_tests_name("wal/recovery", tests, NULL, NULL);
}
