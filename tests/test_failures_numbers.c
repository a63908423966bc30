/*
 * tests/test_failures_numbers.c -- what became of other systems when a number or
 * a length passed 2^31, 2^32 or 2^64.
 *
 * Each test stands for a line of public reports, which its comment names. Numbers
 * are taken close by sealing what is on disk again (tests/lib/reseal.h), lengths
 * by sparse files.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/bytes.h"
#include "tests/lib/files.h"
#include "tests/lib/io_fault.h"
#include "tests/lib/letters.h"
#include "tests/lib/reseal.h"
#include "tests/lib/store_dir.h"
#include "wal/anchor.h"
#include "wal/position.h"

enum {
    PAGE = 4096,
    MORE_THAN_IS_LEFT = 54 << 10, /* In a segment with a unit in it. */
    ANCHOR_LSN_FLOOR = 80,        /* Offsets in a slot (wal/anchor.h). */
    ANCHOR_SEGMENT_LAST = 88,
    ANCHOR_SEGMENT_OLDEST = 96,
    SEGMENT_SEQ = 32, /* In a segment's header (wal/segment.h). */
    UNIT_NUMBER = 24, /* In a unit's (wal/unit.h). */
    UNIT_LSN_FIRST = 48,
    RECORD_LSN = 8, /* In a record's (wal/record.h). */
};

#define SPARSE_BYTES ((uint64_t)5 << 30)

/* ---- A small vocabulary ------------------------------------------------------- */

static struct store_dir dir;

static int setup(void **state)
{
    (void)state;
    letters_make(&dir);
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

/* ---- Numbers ----------------------------------------------------------------------------------- */

/* aeron PR959, TDengine PR5269, redpanda's int32, ravendb PR8702: 2^31 and 2^32. */
static void lsns_pass_2_31_and_2_32(void **state)
{
    static const uint64_t floors[] = {
        (UINT64_C(1) << 31) - 3, (UINT64_C(1) << 32) - 3,
        (UINT64_C(1) << 53) - 3, (UINT64_C(1) << 62) - 3};

    (void)state;
    for (size_t index = 0; index < sizeof floors / sizeof *floors; index++) {
        struct stele_batch *batch;
        uint64_t lsn = floors[index];
        char key[16];

        letters_make_anew(&dir);
        letters_begin(&dir);
        store_dir_close(&dir);
        reseal_anchor_u64(at("ANCHOR"), ANCHOR_LSN_FLOOR, lsn);
        store_dir_open(&dir);
        for (int count = 0; count < 6; count++) {
            snprintf(key, sizeof key, "k%d", count);
            assert_int_equal(store_dir_put(&dir, key, key), ++lsn);
            if (count == 2) {
                assert_int_equal(stele_checkpoint(dir.store, &dir.error),
                                 STELE_OK);
            }
        }
        store_dir_kill(&dir);
        store_dir_open(&dir);
        store_dir_assert_verifies(&dir);
        assert_int_equal(store_dir_stats(&dir).lsn_durable, lsn);
        assert_int_equal(store_dir_put(&dir, "next", "1"),
                         lsn + STORE_LSN_SKIP + 1);
        assert_int_equal(stele_batch_create(&batch, &dir.error), STELE_OK);
        for (int count = 0; count < 6; count++) {
            snprintf(key, sizeof key, "k%d", count);
            assert_int_equal(
                stele_batch_expect_lsn(batch, "t", key, 2,
                                       floors[index] + (uint64_t)count + 1,
                                       &dir.error),
                STELE_OK);
        }
        assert_int_equal(
            stele_commit(dir.store, batch, STELE_DURABLE, NULL, &dir.error),
            STELE_OK);
        stele_batch_destroy(batch);
        store_dir_close(&dir);
        store_dir_open(&dir);
        letters_assert(&dir, 2);
        store_dir_assert_verifies(&dir);
    }
}

/* No LSN is ever given twice, not even where there are no more. */
static void lsns_never_wrap(void **state)
{
    static const uint64_t floors[] = {UINT64_MAX, UINT64_MAX - 1,
                                      UINT64_MAX - STORE_LSN_SKIP,
                                      UINT64_C(1) << 63};

    (void)state;
    letters_leave_acknowledged(&dir);
    for (size_t index = 0; index < sizeof floors / sizeof *floors; index++) {
        struct reseal_unit unit;
        struct wal_position origin;

        reseal_anchor_u64(at("ANCHOR"), ANCHOR_LSN_FLOOR, floors[index]);
        store_dir_assert_refused(
            &dir, STELE_CORRUPT,
            "row E: ANCHOR: offset 80: LSN floor is %" PRIu64
            ", expected at most 9223372036854775807",
            floors[index]);
        letters_restore(&dir);
        /* The same in the last record. */
        reseal_unit_begin(&unit, at(SEGMENT_1), LETTERS_UNIT_3, LETTERS_UNIT_2);
        put_u64le(unit.bytes + UNIT_LSN_FIRST, floors[index]);
        put_u64le(unit.bytes + RESEAL_RECORD + RECORD_LSN, floors[index]);
        reseal_unit_end(&unit);
        files_read_at(at("ANCHOR"), 32, origin.uuid.bytes, WAL_UUID_BYTES);
        origin = wal_position_origin(&origin.uuid, 0);
        reseal_anchor_durable(at("ANCHOR"), &origin);
        assert_int_equal(store_dir_try_open(&dir, STELE_OPEN_EXISTING),
                         STELE_CORRUPT);
        store_dir_assert_error(&dir,
                               "open %s: row E: the log's last LSN is %" PRIu64
                               ", expected at most 9223372036854775807",
                               dir.path, floors[index]);
        letters_restore(&dir);
    }
    letters_assert_opens(&dir, 3, 'A');
}

static void is_about_the_start(void *context, const struct stele_error *problem)
{
    (void)context;
    assert_non_null(strstr(problem->message, "the log begins with wal/"));
}

/* A log that begins with another segment than the first one looks cut. */
static void assert_verifies_but_for_its_start(void)
{
    struct stele_verify_report report = {.size = sizeof report};

    assert_int_equal(
        stele_verify(dir.store, is_about_the_start, NULL, &report, &dir.error),
        STELE_CORRUPT);
    assert_int_equal(report.problems, 1);
    assert_int_equal(report.records, 6);
}

static void segments_are_numbered_past_2_31_and_2_32(void **state)
{
    static const uint64_t seqs[] = {INT32_MAX, UINT32_MAX};

    (void)state;
    for (size_t index = 0; index < 2; index++) {
        char name[64];
        char renamed[FILES_PATH_BYTES];

        letters_make_anew(&dir);
        store_dir_open(&dir);
        store_dir_close(&dir);
        snprintf(name, sizeof name, "wal/%016" PRIx64 ".wal", seqs[index]);
        store_dir_path(&dir, name, renamed);
        files_rename(at(SEGMENT_1), renamed);
        reseal_segment_u64(renamed, SEGMENT_SEQ, seqs[index]);
        reseal_anchor_u64(at("ANCHOR"), ANCHOR_SEGMENT_LAST, seqs[index]);
        reseal_anchor_u64(at("ANCHOR"), ANCHOR_SEGMENT_OLDEST, seqs[index]);
        store_dir_open(&dir);
        letters_put(&dir, 'a');
        letters_put(&dir, 'b');
        for (uint64_t more = 1; more <= 3; more++) {
            assert_int_equal(
                store_dir_try_put_bytes(&dir, "big", MORE_THAN_IS_LEFT),
                STELE_OK);
            assert_int_equal(store_dir_stats(&dir).segment_current,
                             seqs[index] + more);
        }
        letters_put(&dir, 'c');
        store_dir_kill(&dir);
        store_dir_open(&dir);
        letters_assert(&dir, 3);
        assert_verifies_but_for_its_start();
        assert_int_equal(store_dir_stats(&dir).segment_first, seqs[index]);
    }
}

/* Replace these bytes wherever they stand. */
static void replace_everywhere(const char *file, const uint8_t *old,
                               const uint8_t *fresh, size_t bytes)
{
    unsigned count = 0;

    for (uint64_t offset = files_find(file, old, bytes); offset != UINT64_MAX;
         offset = files_find(file, old, bytes)) {
        files_write_at(file, offset, fresh, bytes);
        count++;
    }
    assert_true(count > 0);
}

static void units_are_numbered_past_2_31_and_2_32(void **state)
{
    static const uint64_t numbers[] = {INT32_MAX - 1, UINT32_MAX - 1};

    (void)state;
    for (size_t index = 0; index < 2; index++) {
        uint8_t old[WAL_POSITION_BYTES];
        uint8_t fresh[WAL_POSITION_BYTES];
        struct wal_position position;
        struct reseal_unit unit;

        letters_make_anew(&dir);
        store_dir_open(&dir);
        letters_put(&dir, 'a');
        position = wal_writer_durable(dir.store->writer);
        assert_int_equal(stele_checkpoint(dir.store, &dir.error), STELE_OK);
        store_dir_close(&dir);
        /* The unit that log, index and ANCHOR agree on gets another number. */
        wal_position_encode(&position, old);
        reseal_unit_begin(&unit, at(SEGMENT_1), LETTERS_UNIT_1, 0);
        put_u64le(unit.bytes + UNIT_NUMBER, numbers[index]);
        reseal_unit_end(&unit);
        position.unit = numbers[index];
        files_read_at(at(SEGMENT_1), LETTERS_UNIT_1 + 80, position.chain.bytes,
                      CHECKSUM128_BYTES);
        wal_position_encode(&position, fresh);
        replace_everywhere(at("index/data.mdb"), old, fresh, sizeof old);
        reseal_anchor_durable(at("ANCHOR"), &position);

        store_dir_open(&dir);
        assert_false(store_dir_stats(&dir).index_rebuilt);
        letters_put(&dir, 'b');
        letters_put(&dir, 'c');
        assert_int_equal(stele_checkpoint(dir.store, &dir.error), STELE_OK);
        letters_put_relaxed(&dir, 'd');
        assert_int_equal(wal_writer_written(dir.store->writer).unit,
                         numbers[index] + 3);
        store_dir_kill(&dir);
        store_dir_open(&dir);
        letters_assert(&dir, 4);
        assert_false(store_dir_stats(&dir).index_rebuilt);
    }
}

/* ---- Sizes ----------------------------------------------------------------------------------------- */

static void files_longer_than_4_gib_are_what_they_are(void **state)
{
    static const enum stele_open_mode modes[] = {STELE_OPEN_EXISTING,
                                                 STELE_OPEN_READ_ONLY};
    size_t bytes;
    uint8_t *anchor;

    (void)state;
    letters_begin(&dir);
    assert_int_equal(stele_checkpoint(dir.store, &dir.error), STELE_OK);
    store_dir_close(&dir);
    files_truncate(at("index/data.mdb"), SPARSE_BYTES);
    files_truncate(at("LOCK"), SPARSE_BYTES);
    files_write(at("wal/0000000000000009.tmp"), "", 0);
    files_truncate(at("wal/0000000000000009.tmp"), SPARSE_BYTES);
    for (int again = 0; again < 2; again++) {
        store_dir_open(&dir);
        assert_false(store_dir_stats(&dir).index_rebuilt);
        letters_assert(&dir, 2);
        letters_put(&dir, 'b');
        assert_int_equal(stele_checkpoint(dir.store, &dir.error), STELE_OK);
        store_dir_assert_verifies(&dir);
        store_dir_kill(&dir);
    }
    assert_false(files_exists(at("wal/0000000000000009.tmp")));
    files_truncate(at(SEGMENT_1), SPARSE_BYTES);
    for (size_t mode = 0; mode < 2; mode++) {
        assert_int_equal(store_dir_try_open(&dir, modes[mode]), STELE_CORRUPT);
        store_dir_assert_error(
            &dir,
            "open %s: recover: row E: " SEGMENT_1
            ": the file has 5368709120 bytes, expected 65536",
            dir.path);
    }
    files_truncate(at(SEGMENT_1), LETTERS_SEGMENT_BYTES);
    anchor = files_read(at("ANCHOR"), &bytes);
    files_truncate(at("ANCHOR"), SPARSE_BYTES);
    for (size_t mode = 0; mode < 2; mode++) {
        assert_int_equal(store_dir_try_open(&dir, modes[mode]), STELE_CORRUPT);
        store_dir_assert_error(
            &dir,
            "open %s: %s/ANCHOR: the file has 5368709120 bytes, "
            "expected a regular one of 12288",
            dir.path, store_dir_name(&dir));
    }
    files_write(at("ANCHOR"), anchor, bytes);
    free(anchor);
    store_dir_open(&dir);
    letters_assert(&dir, 2);
}

/* A file system that takes no space: blocks are not reserved, only promised. */
static struct io_calls sparse_calls;
static struct io sparse_io = {.calls = &sparse_calls};

static int sparse_kind(struct io *self, int fd, enum io_fs_kind *kind_out)
{
    (void)self;
    (void)fd;
    *kind_out = IO_FS_COPY_ON_WRITE;
    return 0;
}

static int sparse_allocate(struct io *self, int fd, uint64_t bytes)
{
    (void)self;
    return io_posix()->calls->truncate(io_posix(), fd, bytes);
}

/* Holes are not read through the page cache: there are gibibytes of them. */
static ssize_t sparse_read(struct io *self, int fd, void *target, size_t bytes,
                           uint64_t offset)
{
    const off_t data = lseek(fd, (off_t)offset, SEEK_DATA);
    const bool hole = data < 0 || (uint64_t)data >= offset + bytes;
    struct io_file_info info;

    (void)self;
    if (hole && io_posix()->calls->info(io_posix(), fd, NULL, &info) == 0 &&
        offset + bytes <= info.size_bytes) {
        memset(target, 0, bytes);
        return (ssize_t)bytes;
    }
    return io_posix()->calls->read(io_posix(), fd, target, bytes, offset);
}

enum { GIB_SEGMENTS = 5 };

static void a_log_longer_than_4_gib_is_read(void **state)
{
    (void)state;
    sparse_calls = *io_fault_io()->calls;
    sparse_calls.fs_kind = sparse_kind;
    sparse_calls.allocate = sparse_allocate;
    sparse_calls.read = sparse_read;
    dir.tuning.io = &sparse_io;
    dir.tuning.segment_bytes = WAL_SEGMENT_BYTES_MAX;
    for (int segment = 1; segment <= GIB_SEGMENTS; segment++) {
        char key[32];
        char file[FILES_PATH_BYTES];
        uint64_t end;

        store_dir_open(&dir);
        snprintf(key, sizeof key, "k%d", segment);
        store_dir_put(&dir, key, key);
        assert_int_equal(store_dir_stats(&dir).segment_current, segment);
        end = wal_writer_durable(dir.store->writer).end_offset;
        store_dir_put_relaxed(&dir, "torn", letters_value('t'));
        store_dir_current_segment(&dir, file);
        store_dir_kill(&dir);
        files_fill_at(file, end, 0, PAGE / 2);
        /* Also at the far end. */
        files_fill_at(file, WAL_SEGMENT_BYTES_MAX - 1, 1, 1);
    }
    store_dir_open(&dir);
    for (int segment = 1; segment <= GIB_SEGMENTS; segment++) {
        char key[32];

        snprintf(key, sizeof key, "k%d", segment);
        assert_true(store_dir_has(&dir, key, key));
    }
    assert_true(store_dir_has(&dir, "torn", NULL));
    store_dir_assert_verifies(&dir);
}

#define STORE_TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        STORE_TEST(lsns_pass_2_31_and_2_32),
        STORE_TEST(lsns_never_wrap),
        STORE_TEST(segments_are_numbered_past_2_31_and_2_32),
        STORE_TEST(units_are_numbered_past_2_31_and_2_32),
        STORE_TEST(files_longer_than_4_gib_are_what_they_are),
        STORE_TEST(a_log_longer_than_4_gib_is_read),
    };

    io_fault_pretend_syncs();
    return cmocka_run_group_tests_name("failures: numbers", tests, NULL, NULL);
}
