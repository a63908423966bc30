/*
 * tests/test_failures_opening.c -- what stopped other systems at the start, or
 * made them lose something there: tails, gaps, lengths, and reads that fail.
 *
 * Each test stands for a line of public reports, which its comment names. The
 * whole store on a real file system, with what a crash or a hand can do to its
 * files. (Access, names and handles: tests/test_failures_access.c.)
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

#include "base/bytes.h"
#include "tests/lib/files.h"
#include "tests/lib/io_fault.h"
#include "tests/lib/letters.h"
#include "tests/lib/random.h"
#include "tests/lib/reseal.h"
#include "tests/lib/store_dir.h"

enum {
    PAGE = 4096,
    SECTOR = 512,
    SECTORS = PAGE / SECTOR,
    DEPTH = 4,
    SHUFFLES = 200,
    SCANS = 300,
    SCAN_READS_MAX = 100, /* Of an open, whatever lies in 64 KiB. */
};

/* ---- A small vocabulary ------------------------------------------------------ */

static struct store_dir dir;
static struct random_source random_numbers;

static int setup(void **state)
{
    (void)state;
    letters_make(&dir);
    random_numbers = (struct random_source){.state = 1};
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    store_dir_remove(&dir);
    return 0;
}

static const char *at(const char *name)
{
    return store_dir_at(&dir, name);
}

/* ---- The end of the log --------------------------------------------------------- */

/* etcd#3065, rocketmq#6096, #7729, vernemq#1550: a cut last record stopped the
 * start. */
static void a_cut_last_record_is_dropped_and_the_store_opens(void **state)
{
    (void)state;
    letters_leave_in_flight(&dir, "b");
    for (unsigned kept = 0; kept < PAGE; kept += kept % SECTOR < 2 ? 1 : 510) {
        letters_restore(&dir);
        files_fill_at(at(SEGMENT_1), LETTERS_UNIT_2 + kept, 0, PAGE - kept);
        /* Behind the value there are only zeros: nothing is cut there. */
        if (kept >= 128 + 56 + LETTERS_VALUE_BYTES + 16) {
            letters_assert_opens(&dir, 2, 'A');
            continue;
        }
        store_dir_open(&dir);
        assert_int_equal(store_dir_stats(&dir).recovery_dropped_bytes,
                         kept == 0 ? 0 : PAGE);
        store_dir_kill(&dir);
        letters_assert_opens(&dir, 1, kept == 0 ? 'A' : 'C');
    }
}

/* etcd#5230, redis#5177, mosquitto#2639: zero sectors in, or zeros after, the
 * last record. */
static void zeros_in_or_behind_the_last_record_are_an_end_not_garbage(
    void **state)
{
    (void)state;
    letters_leave_in_flight(&dir, "b");
    for (unsigned sector = 0; sector < SECTORS; sector++) {
        letters_restore(&dir);
        files_fill_at(at(SEGMENT_1), LETTERS_UNIT_2 + (uint64_t)sector * SECTOR,
                      0, SECTOR);
        letters_assert_opens(&dir, 1, 'C');
    }
    letters_restore(&dir);
    files_fill_at(at(SEGMENT_1), LETTERS_UNIT_2, 0, PAGE); /* All of it. */
    letters_assert_opens(&dir, 1, 'A');
    letters_restore(
        &dir); /* Zeros up to the end of the segment, as prepared. */
    letters_assert_opens(&dir, 2, 'A');
}

/* The same zeros in what was acknowledged, and the table says: refused. */
static void zeros_in_an_acknowledged_record_are_damage(void **state)
{
    (void)state;
    letters_leave_acknowledged(&dir);
    for (unsigned sector = 0; sector < SECTORS; sector++) {
        files_fill_at(at(SEGMENT_1), LETTERS_UNIT_3 + (uint64_t)sector * SECTOR,
                      0, SECTOR);
        store_dir_assert_refused(&dir, STELE_CORRUPT,
                                 "recover: row D: " SEGMENT_1
                                 ": offset 12288: unit 3 is damaged, "
                                 "but ANCHOR names unit 3 as durable");
        letters_restore(&dir);
    }
    files_fill_at(at(SEGMENT_1), LETTERS_UNIT_3, 0, PAGE);
    store_dir_assert_refused(&dir, STELE_CORRUPT,
                             "recover: row B: " SEGMENT_1
                             ": offset 12288: unit 3 is lost, "
                             "but ANCHOR names unit 3 as durable");
    letters_restore(&dir);
    letters_assert_opens(&dir, 3, 'A');
}

/* Of the write in flight these sectors reached the disk. */
static void keep_sectors(uint64_t offset, uint64_t subset, unsigned sectors)
{
    for (unsigned sector = 0; sector < sectors; sector++) {
        if ((subset >> sector & 1) == 0) {
            files_fill_at(at(SEGMENT_1), offset + (uint64_t)sector * SECTOR, 0,
                          SECTOR);
        }
    }
}

/* etcd#6378: sectors of the write in flight reached the disk out of order. */
static void any_sectors_of_the_write_in_flight_are_a_torn_tail(void **state)
{
    const unsigned all = (1u << SECTORS) - 1;

    (void)state;
    letters_leave_in_flight(&dir, "b");
    for (unsigned subset = 0; subset <= all; subset++) {
        letters_restore(&dir);
        keep_sectors(LETTERS_UNIT_2, subset, SECTORS);
        letters_assert_opens(&dir, subset == all ? 2 : 1,
                             subset == all || subset == 0 ? 'A' : 'C');
    }
}

/* The same with several units in flight: whole ones behind a gap are no log. */
static void any_sectors_of_several_writes_in_flight_are_a_torn_tail(
    void **state)
{
    const uint64_t whole = (1u << SECTORS) - 1;

    (void)state;
    letters_leave_in_flight(&dir, "bcd");
    for (int shuffle = 0; shuffle < SHUFFLES; shuffle++) {
        uint64_t subset = random_below(&random_numbers, 1 << 3 * SECTORS);
        unsigned letters = 1;

        /* Units that are whole are the interesting ones. */
        for (unsigned unit = 0; unit < 3; unit++) {
            if (random_one_in(&random_numbers, 2)) {
                subset |= whole << unit * SECTORS;
            }
        }
        letters_restore(&dir);
        keep_sectors(LETTERS_UNIT_2, subset, 3 * SECTORS);
        while (letters < 4 &&
               (subset >> (letters - 1) * SECTORS & whole) == whole) {
            letters++;
        }
        letters_assert_opens(
            &dir, letters,
            subset >> (letters - 1) * SECTORS == 0 || letters == 4 ? 'A' : 'C');
    }
}

/* How a tail can be damaged; it stands at `offset` and is not the last page. */
static void damage_tail(int kind, const char *segment, uint64_t offset)
{
    switch (kind) {
    case 0: /* Rotten. */
        files_flip_bit(segment, offset + PAGE / 2, 0);
        break;
    case 1: /* Cut. */
        files_fill_at(segment, offset + PAGE / 2, 0, PAGE / 2);
        break;
    case 2: /* Its header missing. */
        files_fill_at(segment, offset, 0, SECTOR);
        break;
    default: /* Garbage, and more of it behind. */
        files_fill_at(segment, offset, 0xa5, PAGE + SECTOR);
        break;
    }
}

/* etcd#6515, leveldb#1287, rocksdb-js#748, prometheus tsdb PR451: what was
 * appended after a damaged tail could not be read later. */
static void what_follows_a_damaged_tail_is_read_after_every_crash(void **state)
{
    (void)state;
    for (int kind = 0; kind < 4; kind++) {
        for (int depth = 0; depth <= DEPTH; depth++) {
            char key[32];
            char segment[FILES_PATH_BYTES];
            uint64_t tail;

            store_dir_open(&dir);
            assert_int_equal(store_dir_stats(&dir).recovery_row,
                             depth == 0 ? 'A' : 'C');
            for (int before = 0; before < depth; before++) {
                snprintf(key, sizeof key, "kept %d", before);
                assert_true(store_dir_has(&dir, key, key));
                snprintf(key, sizeof key, "torn %d", before);
                assert_true(store_dir_has(&dir, key, NULL));
            }
            store_dir_assert_verifies(&dir);
            snprintf(key, sizeof key, "kept %d", depth);
            store_dir_put(&dir, key, key);
            if (depth == 2) { /* In between, some of it goes to the index. */
                assert_int_equal(stele_checkpoint(dir.store, &dir.error),
                                 STELE_OK);
            }
            tail = wal_writer_durable(dir.store->writer).end_offset;
            snprintf(key, sizeof key, "torn %d", depth);
            store_dir_put_relaxed(&dir, key, letters_value('t'));
            store_dir_current_segment(&dir, segment);
            store_dir_kill(&dir);
            damage_tail(kind, segment, tail);
        }
        store_dir_remove(&dir);
        setup(NULL);
    }
}

/* ---- Gaps ----------------------------------------------------------------------------------- */

enum { MIDDLE_SEGMENTS = 5 };

/* Five segments with acknowledged units in each. Closed. */
static void leave_segments(void)
{
    store_dir_open(&dir);
    for (int segment = 0; segment < MIDDLE_SEGMENTS; segment++) {
        char key[16];

        snprintf(key, sizeof key, "k%d", segment);
        assert_int_equal(store_dir_try_put_bytes(&dir, key, 40 << 10),
                         STELE_OK);
    }
    assert_int_equal(store_dir_stats(&dir).segment_current, MIDDLE_SEGMENTS);
    store_dir_close(&dir);
}

static const char *segment_name(int seq)
{
    static char name[64];

    snprintf(name, sizeof name, "wal/%016x.wal", (unsigned)seq);
    return name;
}

/* rocksdb PR7701, #12467, #10080, ZooKeeper's FileTxnLog: a truncated or missing
 * middle file was skipped silently. */
static void a_missing_segment_is_refused_naming_the_gap(void **state)
{
    char aside[FILES_PATH_BYTES];

    (void)state;
    leave_segments();
    store_dir_path(&dir, "wal/aside", aside);
    for (int seq = 1; seq <= MIDDLE_SEGMENTS; seq++) {
        files_rename(at(segment_name(seq)), aside);
        store_dir_assert_refused(
            &dir, STELE_CORRUPT,
            "recover: row E: %s: missing, segments 0000000000000001 to "
            "0000000000000005 are needed",
            segment_name(seq));
        files_rename(aside, at(segment_name(seq)));
    }
    store_dir_open(&dir);
    assert_int_equal(store_dir_try_get(&dir, "k4"), STELE_OK);
}

static void a_truncated_segment_is_refused_naming_it(void **state)
{
    static const uint64_t lengths[] = {LETTERS_SEGMENT_BYTES - 1,
                                       LETTERS_SEGMENT_BYTES / 2,
                                       PAGE + 1,
                                       PAGE,
                                       100,
                                       1,
                                       0};

    (void)state;
    leave_segments();
    for (int seq = 1; seq <= MIDDLE_SEGMENTS; seq++) {
        size_t bytes;
        uint8_t *whole = files_read(at(segment_name(seq)), &bytes);

        for (size_t index = 0; index < sizeof lengths / sizeof *lengths;
             index++) {
            char problem[128];

            files_truncate(at(segment_name(seq)), lengths[index]);
            if (lengths[index] <= PAGE && seq == MIDDLE_SEGMENTS) {
                snprintf(problem, sizeof problem,
                         "empty, segments 0000000000000001 to "
                         "0000000000000005 are needed");
            } else if (lengths[index] < PAGE) {
                snprintf(problem, sizeof problem,
                         "offset 0: the file ends after %" PRIu64
                         " of 4096 bytes",
                         lengths[index]);
            } else {
                snprintf(problem, sizeof problem,
                         "the file has %" PRIu64 " bytes, expected 65536",
                         lengths[index]);
            }
            store_dir_assert_refused(&dir, STELE_CORRUPT,
                                     "recover: row E: %s: %s",
                                     segment_name(seq), problem);
        }
        files_write(at(segment_name(seq)), whole, bytes);
        free(whole);
    }
    store_dir_open(&dir);
    assert_int_equal(store_dir_try_get(&dir, "k0"), STELE_OK);
    store_dir_assert_verifies(&dir);
}

/* foundationdb#9747, pebble#36, nats#7549: damaged acknowledged data was cut off
 * silently. */
static void damage_to_acknowledged_data_is_refused_in_every_sector(void **state)
{
    (void)state;
    letters_leave_acknowledged(&dir);
    for (uint64_t offset = LETTERS_UNIT_1; offset < LETTERS_UNIT_3 + PAGE;
         offset += SECTOR) {
        const uint64_t unit = offset / PAGE;

        files_flip_bit(at(SEGMENT_1), offset + 17, 3);
        store_dir_assert_refused(&dir, STELE_CORRUPT,
                                 "recover: row D: " SEGMENT_1
                                 ": offset %" PRIu64 ": unit %" PRIu64
                                 " is damaged, but ANCHOR names unit 3 as "
                                 "durable",
                                 unit * PAGE, unit);
        files_flip_bit(at(SEGMENT_1), offset + 17, 3);
    }
    letters_assert_opens(&dir, 3, 'A');
}

static void expect_finding(void *context, const struct stele_error *problem)
{
    unsigned *findings = context;

    ++*findings;
    assert_string_equal(problem->message,
                        SEGMENT_1 ": offset 8192: unit 2 is not whole, but the "
                                  "log goes on to LSN 3");
}

static void verify_names_what_is_damaged_under_an_open_store(void **state)
{
    struct stele_verify_report report = {.size = sizeof report};
    unsigned findings = 0;

    (void)state;
    letters_leave_acknowledged(&dir);
    store_dir_open(&dir);
    files_flip_bit(at(SEGMENT_1), LETTERS_UNIT_2 + 1000, 0);
    assert_int_equal(
        stele_verify(dir.store, expect_finding, &findings, &report, &dir.error),
        STELE_CORRUPT);
    store_dir_assert_error(&dir, "verify: 1 findings");
    assert_int_equal(findings, 1);
    assert_int_equal(report.problems, 1);
    assert_int_equal(report.units, 1); /* What can still be read. */
    letters_assert(&dir, 3);           /* From memory. */
}

/* ---- Reads that fail ------------------------------------------------------------------------- */

static void break_read(const char *suffix, uint64_t after_calls, int times,
                       int sys_errno)
{
    const struct io_fault fault = {.call = IO_FAULT_READ,
                                   .suffix = suffix,
                                   .after_calls = after_calls,
                                   .times = times,
                                   .sys_errno = sys_errno};

    io_fault_arm(&fault);
}

/* The message says where, and ends with the errno in words. */
static void assert_io_error(const char *ending)
{
    const char *message = dir.error.message;

    assert_int_equal(dir.error.sys_errno, EIO);
    assert_non_null(strstr(message, ": offset "));
    assert_string_equal(message + strlen(message) - strlen(ending), ending);
}

/* rocksdb#6288, leveldb#1285: EIO was taken for the end of the log. */
static void a_read_that_fails_is_never_the_end_of_the_log(void **state)
{
    static const enum stele_open_mode modes[] = {STELE_OPEN_EXISTING,
                                                 STELE_OPEN_READ_ONLY};

    (void)state;
    letters_leave_in_flight(&dir, "bc");
    for (size_t mode = 0; mode < 2; mode++) {
        bool failed = true;

        for (uint64_t calls = 0; failed; calls++) {
            const uint64_t digest = files_tree_digest(at("wal"), NULL);
            enum stele_status status;

            letters_restore(&dir);
            break_read(NULL, calls, 1, EIO);
            status = store_dir_try_open(&dir, modes[mode]);
            failed = io_fault_count() > 0;
            io_fault_arm(NULL);
            if (status == STELE_OK && failed) {
                /* A reader could not settle the end: it says that there may be
                 * more than it shows. */
                assert_int_equal(modes[mode], STELE_OPEN_READ_ONLY);
                assert_true(store_dir_stats(&dir).tail_unproven);
                store_dir_kill(&dir);
            } else if (failed) {
                assert_int_equal(status, STELE_IO);
                assert_io_error(": Input/output error (errno 5)");
            }
            assert_true(files_tree_digest(at("wal"), NULL) == digest);
        }
        letters_assert(&dir, 3);
        store_dir_kill(&dir);
    }
    break_read(".wal", 1, 1, EIO);
    assert_int_equal(store_dir_try_open(&dir, STELE_OPEN_EXISTING), STELE_IO);
    store_dir_assert_error(&dir,
                           "open %s: recover: row E: " SEGMENT_1
                           ": offset 4096: read 61440 bytes: Input/output "
                           "error (errno 5)",
                           dir.path);
    io_fault_arm(NULL);
    letters_assert_opens(&dir, 3, 'A');
}

/* ... and so was a short read. One is completed; a file that ends before its
 * length does is refused. */
static void a_short_read_is_never_the_end_of_the_log(void **state)
{
    bool struck = true;

    (void)state;
    letters_leave_in_flight(&dir, "bc");
    for (uint64_t calls = 0; struck; calls++) {
        letters_restore(&dir);
        break_read(NULL, calls, 1, 0);
        store_dir_open(&dir);
        struck = io_fault_count() > 0;
        io_fault_arm(NULL);
        letters_assert(&dir, 3);
        store_dir_kill(&dir);
    }
    letters_restore(&dir);
    break_read(".wal", 0, IO_FAULT_FOREVER, 0);
    store_dir_assert_refused(&dir, STELE_CORRUPT,
                             "recover: row E: " SEGMENT_1
                             ": offset 0: the file ends after 4095 of 4096 "
                             "bytes");
    io_fault_arm(NULL);
    letters_assert_opens(&dir, 3, 'A');
}

/* What a log of garbage may look like, with headers that verify in it. */
static void fill_with_garbage(uint64_t from)
{
    uint8_t bytes[LETTERS_SEGMENT_BYTES];

    for (size_t byte = 0; byte < sizeof bytes; byte += 8) {
        put_u64le(bytes + byte, random_u64(&random_numbers));
    }
    for (uint64_t page = (from + PAGE - 1) / PAGE * PAGE;
         page < LETTERS_SEGMENT_BYTES; page += PAGE) {
        if (random_one_in(&random_numbers, 2)) {
            memcpy(bytes + page, letters_kept()->segment + LETTERS_UNIT_1,
                   PAGE);
        } else if (random_one_in(&random_numbers, 4)) {
            memset(bytes + page, 0, PAGE);
        }
    }
    files_write_at(at(SEGMENT_1), from, bytes + from,
                   LETTERS_SEGMENT_BYTES - (size_t)from);
}

/* rocksdb#13333: an endless loop on a corrupt log. */
static void every_scan_of_a_garbled_log_makes_progress(void **state)
{
    (void)state;
    letters_leave_in_flight(&dir, "bc");
    for (int scan = 0; scan < SCANS; scan++) {
        const uint64_t garbled = random_below(&random_numbers, 3);
        const uint64_t reads = io_fault_calls(IO_FAULT_READ);
        const uint64_t from =
            LETTERS_UNIT_2 + garbled * PAGE +
            (garbled < 2 ? random_below(&random_numbers, LETTERS_VALUE_BYTES)
                         : 0);

        letters_restore(&dir);
        fill_with_garbage(from);
        assert_int_equal(store_dir_try_open(&dir, scan % 2 == 0
                                                      ? STELE_OPEN_EXISTING
                                                      : STELE_OPEN_READ_ONLY),
                         STELE_OK);
        letters_assert(&dir, 1 + (unsigned)garbled);
        store_dir_kill(&dir);
        assert_in_range(io_fault_calls(IO_FAULT_READ) - reads, 1,
                        SCAN_READS_MAX);
    }
}

/* ---- The last segment --------------------------------------------------------------------------- */

/* What a crash can leave behind the last segment in use. */
static void leave_last_segment(int kind)
{
    static const uint8_t zeros[LETTERS_SEGMENT_BYTES];

    switch (kind) {
    case 0:
        files_write(at(SEGMENT_2), zeros, 0);
        break;
    case 1:
        files_write(at(SEGMENT_2), zeros, 100);
        break;
    case 2:
        files_write(at(SEGMENT_2), zeros, sizeof zeros);
        break;
    case 3: /* A header, and no more. */
        files_write(at(SEGMENT_2), letters_kept()->segment, PAGE);
        reseal_segment_u64(at(SEGMENT_2), 32, 2);
        break;
    default: /* A header and zeros: as prepared. */
        files_write(at(SEGMENT_2), zeros, sizeof zeros);
        files_write_at(at(SEGMENT_2), 0, letters_kept()->segment, PAGE);
        reseal_segment_u64(at(SEGMENT_2), 32, 2);
        break;
    }
}

/* ra#170, logcabin#191, ModelarDB-RS#387, ZK PR2141: an empty, all-zero or
 * header-only last segment stopped the start. */
static void an_empty_zero_or_header_only_last_segment_is_normal(void **state)
{
    static const enum stele_open_mode modes[] = {STELE_OPEN_READ_ONLY,
                                                 STELE_OPEN_EXISTING};

    (void)state;
    letters_leave_in_flight(&dir, "b");
    for (int kind = 0; kind < 5; kind++) {
        letters_restore(&dir);
        leave_last_segment(kind);
        for (size_t mode = 0; mode < 2; mode++) {
            if (store_dir_try_open(&dir, modes[mode]) != STELE_OK) {
                fail_msg("kind %d: %s", kind, dir.error.message);
            }
            letters_assert(&dir, 2);
            store_dir_assert_verifies(&dir);
            store_dir_kill(&dir);
        }
        store_dir_open(&dir); /* It gets the name, or is used as it is. */
        assert_int_equal(store_dir_try_put_bytes(&dir, "big", 54 << 10),
                         STELE_OK);
        assert_int_equal(store_dir_stats(&dir).segment_current, 2);
        store_dir_kill(&dir);
        store_dir_open(&dir);
        letters_assert(&dir, 2);
        assert_int_equal(store_dir_try_get(&dir, "big"), STELE_OK);
        store_dir_assert_verifies(&dir);
        store_dir_kill(&dir);
    }
}

/* But not if it was in use: ANCHOR names every segment before its first unit. */
static void an_empty_segment_that_was_named_is_missing(void **state)
{
    (void)state;
    leave_segments();
    files_truncate(at(segment_name(MIDDLE_SEGMENTS)), 0);
    store_dir_assert_refused(
        &dir, STELE_CORRUPT,
        "recover: row E: wal/0000000000000005.wal: empty, segments "
        "0000000000000001 to 0000000000000005 are needed");
}

/* ---- Two crashes ------------------------------------------------------------------------------------ */

/* memgraph PR4528, postgres 2020-12-30: two crashes, and the log of the first was
 * applied over that of the second. */
static void a_unit_that_was_dropped_is_not_taken_when_it_comes_back(
    void **state)
{
    (void)state;
    letters_leave_in_flight(&dir, "b"); /* Incarnation 1 wrote unit 2, ... */
    files_flip_bit(at(SEGMENT_1), LETTERS_UNIT_2 + 1000, 0);
    store_dir_open(
        &dir); /* ... incarnation 2 dropped it and wrote another, ... */
    letters_put(&dir, 'c');
    store_dir_kill(&dir); /* ... of which ANCHOR knows nothing yet. */
    files_write_at(at(SEGMENT_1), LETTERS_UNIT_2,
                   letters_kept()->segment + LETTERS_UNIT_2, PAGE);
    store_dir_assert_refused(
        &dir, STELE_CORRUPT,
        "recover: row E: " SEGMENT_2 ": offset 4096: unit 2 of incarnation 2, "
        "but an earlier segment has a unit of this number");

    files_flip_bit(at(SEGMENT_1), LETTERS_UNIT_2 + 1000,
                   0); /* Torn, as it was. */
    store_dir_open(&dir);
    assert_true(store_dir_has(&dir, "a", letters_value('a')));
    assert_true(store_dir_has(&dir, "b", NULL));
    assert_true(store_dir_has(&dir, "c", letters_value('c')));
    letters_put(&dir, 'd');
    store_dir_close(&dir); /* Now it does. */
    files_write_at(at(SEGMENT_1), LETTERS_UNIT_2,
                   letters_kept()->segment + LETTERS_UNIT_2, PAGE);
    store_dir_assert_refused(
        &dir, STELE_CORRUPT,
        "recover: row E: " SEGMENT_2 ": offset 4096: unit 2 of incarnation 2, "
        "but an earlier segment has a unit of this number");
}

/* A unit of the first life where the second one has its own: not its chain. */
static void a_unit_of_another_life_does_not_fit_the_chain(void **state)
{
    uint8_t stale[PAGE];

    (void)state;
    letters_leave_in_flight(&dir, "bc");
    memcpy(stale, letters_kept()->segment + LETTERS_UNIT_3, PAGE);
    files_fill_at(at(SEGMENT_1), LETTERS_UNIT_2, 0, 2 * PAGE); /* Both lost. */
    store_dir_open(&dir);
    letters_put(&dir,
                'b'); /* Unit 2 again: same bytes, another LSN and life. */
    store_dir_kill(&dir);
    files_write_at(at(SEGMENT_1), LETTERS_UNIT_3, stale, PAGE);
    letters_assert_opens(&dir, 2, 'C');
}

#define STORE_TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        STORE_TEST(a_cut_last_record_is_dropped_and_the_store_opens),
        STORE_TEST(zeros_in_or_behind_the_last_record_are_an_end_not_garbage),
        STORE_TEST(zeros_in_an_acknowledged_record_are_damage),
        STORE_TEST(any_sectors_of_the_write_in_flight_are_a_torn_tail),
        STORE_TEST(any_sectors_of_several_writes_in_flight_are_a_torn_tail),
        STORE_TEST(what_follows_a_damaged_tail_is_read_after_every_crash),
        STORE_TEST(a_missing_segment_is_refused_naming_the_gap),
        STORE_TEST(a_truncated_segment_is_refused_naming_it),
        STORE_TEST(damage_to_acknowledged_data_is_refused_in_every_sector),
        STORE_TEST(verify_names_what_is_damaged_under_an_open_store),
        STORE_TEST(a_read_that_fails_is_never_the_end_of_the_log),
        STORE_TEST(a_short_read_is_never_the_end_of_the_log),
        STORE_TEST(every_scan_of_a_garbled_log_makes_progress),
        STORE_TEST(an_empty_zero_or_header_only_last_segment_is_normal),
        STORE_TEST(an_empty_segment_that_was_named_is_missing),
        STORE_TEST(a_unit_that_was_dropped_is_not_taken_when_it_comes_back),
        STORE_TEST(a_unit_of_another_life_does_not_fit_the_chain),
    };

    io_fault_pretend_syncs();
    return cmocka_run_group_tests_name("failures: opening", tests, NULL, NULL);
}
