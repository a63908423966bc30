/*
 * tests/test_engine_verify_snapshots.c -- stele_verify() on a store with snapshots,
 * and on one whose log no longer begins at its beginning.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "engine/base_value.h"
#include "engine/tally.h"
#include "engine/view.h"
#include "snapshot/writer.h"
#include "tests/lib/files.h"
#include "tests/lib/io_fault.h"
#include "tests/lib/store_dir.h"

enum {
    SEGMENT_BYTES = 64 << 10,
    BIG_VALUE_BYTES = 40 << 10, /* Two do not fit into a segment. */
    NAME_BYTES = 64,
    STORED_BYTES_MAX = 256,
    FINDINGS_MAX = 16,
};

/* ---- A small vocabulary ---------------------------------------------------------- */

static struct store_dir dir;
static struct stele_verify_report report;
static char findings[FINDINGS_MAX][STELE_ERROR_MESSAGE_BYTES];
static size_t finding_count;
static void (*at_a_finding)(void);

static int setup(void **state)
{
    (void)state;
    store_dir_make(&dir);
    dir.tuning.segment_bytes = SEGMENT_BYTES;
    at_a_finding = NULL;
    store_dir_open(&dir);
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

static void remember(void *context, const struct stele_error *problem)
{
    (void)context;
    assert_true(finding_count < FINDINGS_MAX);
    memcpy(findings[finding_count++], problem->message,
           sizeof problem->message);
    if (at_a_finding != NULL) {
        at_a_finding();
    }
}

static enum stele_status verify(void)
{
    report = (struct stele_verify_report){.size = sizeof report};
    finding_count = 0;
    return stele_verify(dir.store, remember, NULL, &report, &dir.error);
}

static void assert_sound(uint64_t snapshots)
{
    if (verify() != STELE_OK) {
        fail_msg("%s: %s", dir.error.message, findings[0]);
    }
    assert_int_equal(report.snapshots, snapshots);
}

/* The one finding, word for word. */
static void assert_finds(const char *format, ...)
    __attribute__((format(printf, 1, 2)));

static void assert_finds(const char *format, ...)
{
    char expected[STELE_ERROR_MESSAGE_BYTES];
    va_list args;

    va_start(args, format);
    vsnprintf(expected, sizeof expected, format, args);
    va_end(args);
    assert_int_equal(verify(), STELE_CORRUPT);
    assert_string_equal(findings[0], expected);
    assert_int_equal(report.problems, 1);
    assert_int_equal(finding_count, 1);
}

/* ---- Snapshots, sound and forged --------------------------------------------------- */

/* What is put into a snapshot in place of what the index holds. */
static struct forgery {
    const char *rotten; /* This key's value does not fit its check. */
    const char *absent; /* This key is left out. */
    uint64_t row_more;  /* Every row claims so many keys more. */
    uint64_t totals_more;
    bool elsewhere; /* Its position is not one of this log. */
    bool foreign;   /* It is another store's. */
    bool unnamed;   /* ANCHOR does not name it. */
} forged;

static bool is_key(struct bytes full, const char *key)
{
    return key != NULL && full.size == strlen(key) + 2 &&
           memcmp((const char *)full.data + 2, key, strlen(key)) == 0;
}

/* The stored bytes as the forgery has them. */
static struct bytes forge(struct bytes key, struct bytes stored,
                          uint8_t target[STORED_BYTES_MAX])
{
    struct base_value value;
    struct table_row row;

    assert_true(stored.size <= STORED_BYTES_MAX);
    memcpy(target, stored.data, stored.size);
    if (is_key(key, forged.rotten)) {
        target[stored.size - 1] ^= 1;
    }
    if (key.size == base_key_table_bytes(key) + 1 && forged.row_more > 0) {
        uint8_t *bytes = target + BASE_VALUE_HEADER_BYTES;

        assert_true(base_value_decode(stored, &value));
        assert_true(table_row_decode(value.value, &row));
        row.count += forged.row_more;
        table_row_encode(&row, bytes);
        base_value_encode_header(
            value.lsn,
            base_value_check(key, value.lsn,
                             (struct bytes){bytes, value.value.size}),
            target);
    }
    return (struct bytes){target, stored.size};
}

static void copy_entries(struct index_reader *reader,
                         struct snapshot_writer *writer,
                         struct snapshot_totals *totals_out)
{
    struct index_cursor *cursor;
    struct base_entry entry;
    struct tally tally;
    enum stele_status status;

    tally_init(&tally, "index", NULL, NULL);
    assert_int_equal(index_cursor_open(reader, &cursor, &dir.error), STELE_OK);
    for (status = index_cursor_seek(cursor, (struct bytes){"\x01", 1}, &entry,
                                    &dir.error);
         status == STELE_OK;
         status = index_cursor_next(cursor, &entry, &dir.error)) {
        uint8_t bytes[STORED_BYTES_MAX];

        assert_int_equal(tally_add(&tally, entry.key, entry.stored, NULL),
                         STELE_OK);
        if (!is_key(entry.key, forged.absent)) {
            assert_int_equal(
                snapshot_writer_add(writer, entry.key,
                                    forge(entry.key, entry.stored, bytes),
                                    &dir.error),
                STELE_OK);
        }
    }
    assert_int_equal(status, STELE_NOT_FOUND);
    assert_int_equal(tally_end(&tally, NULL), STELE_OK);
    index_cursor_close(cursor);
    *totals_out = tally.totals;
}

static void name_in_anchor(struct wal_anchor *anchor, const void *context)
{
    const uint64_t *lsn = context;

    anchor->snapshots[1] = anchor->snapshots[0];
    anchor->snapshots[0] = *lsn;
}

/* Everything into the index, and from there into a snapshot; its LSN. */
static uint64_t take_snapshot(const struct forgery *forgery)
{
    struct snapshot_writer *writer;
    struct index_reader *reader;
    struct snapshot_info info;
    struct snapshot_totals totals;
    struct wal_position position;
    struct io_dir *snapshot_dir;
    struct wal_uuid uuid = dir.store->uuid;
    uint8_t place[WAL_POSITION_BYTES];
    bool names_unknown;

    forged = *forgery;
    assert_int_equal(stele_checkpoint(dir.store, &dir.error), STELE_OK);
    assert_int_equal(io_dir_open_in(dir.store->dir, STORE_SNAPSHOT_NAME,
                                    &snapshot_dir, &dir.error),
                     STELE_OK);
    assert_int_equal(
        index_reader_acquire(dir.store->index, &reader, &dir.error), STELE_OK);
    position = *index_reader_applied(reader);
    uuid.bytes[0] ^= forged.foreign ? 1 : 0;
    assert_int_equal(snapshot_writer_create(snapshot_dir, uuid.bytes,
                                            position.lsn, &writer, &dir.error),
                     STELE_OK);
    copy_entries(reader, writer, &totals);
    totals.keys += forged.totals_more;
    index_reader_release(reader);
    position.chain.bytes[0] ^= forged.elsewhere ? 1 : 0;
    wal_position_encode(&position, place);
    assert_int_equal(
        snapshot_writer_finish(writer, &totals, place, &info, &dir.error),
        STELE_OK);
    assert_int_equal(
        snapshot_writer_publish(writer, &names_unknown, &dir.error), STELE_OK);
    snapshot_writer_destroy(writer);
    io_dir_close(snapshot_dir);
    if (!forged.unnamed) {
        assert_int_equal(store_write_anchor(dir.store, name_in_anchor,
                                            &position.lsn, &dir.error),
                         STELE_OK);
    }
    return position.lsn;
}

static uint64_t take_sound_snapshot(void)
{
    return take_snapshot(&(struct forgery){0});
}

static const char *name_of(uint64_t lsn)
{
    static char name[NAME_BYTES];

    snprintf(name, sizeof name, "snapshot/%016" PRIx64 ".snap", lsn);
    return name;
}

static void put_some(void)
{
    store_dir_put(&dir, "a", "value of a");
    store_dir_put(&dir, "b", "value of b");
    store_dir_put(&dir, "c", "value of c");
}

/* ---- Sound ---------------------------------------------------------------------------- */

static void every_snapshot_is_read_in_its_turn(void **state)
{
    uint64_t bytes;

    (void)state;
    assert_sound(0);
    put_some();
    bytes = files_size(at(name_of(take_sound_snapshot())));
    store_dir_put(&dir, "d", "value of d");
    bytes += files_size(at(name_of(take_sound_snapshot())));
    store_dir_put(&dir, "e", "in the log only");
    assert_sound(2);
    assert_int_equal(report.snapshot_bytes, bytes);
    assert_int_equal(report.records, 5);
    store_dir_close(&dir);
    assert_int_equal(store_dir_try_open(&dir, STELE_OPEN_READ_ONLY), STELE_OK);
    assert_sound(2);
    assert_int_equal(report.snapshot_bytes, bytes);
}

static void one_that_anchor_does_not_name_is_read_too(void **state)
{
    uint64_t lsn;

    (void)state;
    put_some();
    lsn = take_snapshot(&(struct forgery){.unnamed = true});
    assert_sound(1);
    files_flip_bit(at(name_of(lsn)), SNAPSHOT_HEADER_BYTES, 0);
    assert_int_equal(verify(), STELE_CORRUPT);
    files_remove(at(name_of(lsn)));
    assert_sound(0);
}

/* ---- Damaged ----------------------------------------------------------------------------- */

/* Header, block, entries, footer: whatever it hits. */
static void a_bit_flipped_anywhere_in_a_snapshot_is_found(void **state)
{
    const char *name;
    uint64_t bytes;

    (void)state;
    put_some();
    (void)take_sound_snapshot();
    store_dir_put(&dir, "d", "value of d");
    name = name_of(take_sound_snapshot());
    bytes = files_size(at(name));
    for (uint64_t offset = 0; offset < bytes; offset++) {
        files_flip_bit(at(name), offset, offset % 8);
        assert_int_equal(verify(), STELE_CORRUPT);
        assert_int_equal(report.problems, 1);
        assert_memory_equal(findings[0], name, strlen(name));
        assert_int_equal(report.snapshots, 2); /* The other one as well. */
        files_flip_bit(at(name), offset, offset % 8);
    }
    assert_sound(2);
    files_truncate(at(name), bytes - 1);
    assert_int_equal(verify(), STELE_CORRUPT);
}

/* A copy must not launder rot: under good checksums of blocks and file. */
static void a_rotten_value_in_a_resealed_block_is_found(void **state)
{
    uint64_t lsn;

    (void)state;
    put_some();
    lsn = take_snapshot(&(struct forgery){.rotten = "b"});
    assert_finds("%s: table \"t\", key \"b\": check mismatch", name_of(lsn));
}

static void a_row_that_claims_another_count_is_found(void **state)
{
    uint64_t lsn;

    (void)state;
    put_some();
    lsn = take_snapshot(&(struct forgery){.row_more = 2});
    assert_int_equal(verify(), STELE_CORRUPT);
    assert_int_equal(report.problems, 1);
    assert_memory_equal(findings[0], name_of(lsn), strlen(name_of(lsn)));
    assert_non_null(
        strstr(findings[0], "row of table \"t\": it says 5 keys, sum "));
}

static void a_key_that_was_left_out_is_found(void **state)
{
    (void)state;
    put_some();
    (void)take_snapshot(&(struct forgery){.absent = "b"});
    assert_int_equal(verify(), STELE_CORRUPT);
    assert_int_equal(report.problems, 1);
    assert_non_null(strstr(findings[0], "it says 3 keys, sum "));
    assert_non_null(strstr(findings[0], "; there are 2, sum "));
}

static void a_footer_with_other_totals_is_found(void **state)
{
    uint64_t lsn;

    (void)state;
    put_some();
    lsn = take_snapshot(&(struct forgery){.totals_more = 1});
    assert_int_equal(verify(), STELE_CORRUPT);
    assert_int_equal(report.problems, 1);
    assert_memory_equal(findings[0], name_of(lsn), strlen(name_of(lsn)));
    assert_non_null(
        strstr(findings[0], "its footer says 1 tables, 4 keys, sum "));
}

static void a_place_that_the_log_does_not_have_is_found(void **state)
{
    uint64_t lsn;

    (void)state;
    put_some();
    lsn = take_snapshot(&(struct forgery){.elsewhere = true});
    assert_finds("%s: the log does not have unit 3 as it was, in "
                 "wal/0000000000000001.wal, offset 12288",
                 name_of(lsn));
}

static void a_snapshot_of_another_store_is_found(void **state)
{
    uint64_t lsn;

    (void)state;
    put_some();
    lsn = take_snapshot(&(struct forgery){.foreign = true});
    assert_finds("%s: offset 16: belongs to another store", name_of(lsn));
}

static void one_that_anchor_names_must_be_there(void **state)
{
    uint64_t lsn;

    (void)state;
    put_some();
    lsn = take_sound_snapshot();
    files_remove(at(name_of(lsn)));
    assert_finds("%s: it is missing, but ANCHOR names it", name_of(lsn));
    assert_int_equal(report.snapshots, 0);
    store_dir_close(&dir);
    assert_int_equal(store_dir_try_open(&dir, STELE_OPEN_READ_ONLY), STELE_OK);
    assert_finds("%s: it is missing, but ANCHOR names it", name_of(lsn));
}

static void one_that_cannot_be_read_is_no_damage(void **state)
{
    struct io_fault fault = {
        .call = IO_FAULT_READ, .suffix = ".snap", .times = 1, .sys_errno = EIO};

    (void)state;
    put_some();
    (void)take_sound_snapshot();
    for (uint64_t calls = 0;; calls++) {
        fault.after_calls = calls;
        io_fault_arm(&fault);
        if (verify() == STELE_OK) {
            assert_int_equal(io_fault_count(), 0);
            assert_true(calls > 4);
            break;
        }
        assert_int_equal(io_fault_count(), 1);
        assert_int_equal(dir.error.status, STELE_IO);
        assert_int_equal(finding_count, 0);
    }
}

/* ---- Where the log begins ------------------------------------------------------------------ */

static void put_big(const char *key)
{
    assert_int_equal(store_dir_try_put_bytes(&dir, key, BIG_VALUE_BYTES),
                     STELE_OK);
}

static void move_oldest(struct wal_anchor *anchor, const void *context)
{
    const uint64_t *seq = context;

    anchor->segment_oldest = *seq;
}

/* As retention does it: ANCHOR first. */
static void cut_log_before(uint64_t seq)
{
    const uint64_t oldest = store_segment_oldest(dir.store);

    assert_int_equal(
        store_write_anchor(dir.store, move_oldest, &seq, &dir.error), STELE_OK);
    for (uint64_t gone = oldest; gone < seq; gone++) {
        char name[NAME_BYTES];

        snprintf(name, sizeof name, "wal/%016" PRIx64 ".wal", gone);
        files_remove(at(name));
    }
}

static void put_tagged(uint8_t first)
{
    const uint8_t tag[STELE_TAG_BYTES] = {first};
    struct stele_batch *batch;

    assert_int_equal(stele_batch_create(&batch, &dir.error), STELE_OK);
    assert_int_equal(stele_batch_put(batch, "t", "k", 1, "v", 1, &dir.error),
                     STELE_OK);
    stele_batch_set_tag(batch, tag);
    assert_int_equal(
        stele_commit(dir.store, batch, STELE_DURABLE, NULL, &dir.error),
        STELE_OK);
    stele_batch_destroy(batch);
}

static enum stele_status find_tag(uint8_t first, uint64_t *lsn_out)
{
    const uint8_t tag[STELE_TAG_BYTES] = {first};

    return stele_find_tag(dir.store, tag, 0, lsn_out, &dir.error);
}

/* In the first segment tag 1, in the second one a snapshot of small values, and
 * tag 2. */
static uint64_t fill_two_segments(void)
{
    uint64_t lsn;

    put_tagged(1);
    put_big("big");
    put_big("big");
    store_dir_put(&dir, "big", "small");
    assert_int_equal(store_dir_stats(&dir).segment_current, 2);
    lsn = take_sound_snapshot();
    put_tagged(2);
    return lsn;
}

static void a_log_that_goes_on_behind_a_snapshot_is_read_from_there(
    void **state)
{
    uint64_t lsn;

    (void)state;
    lsn = fill_two_segments();
    assert_sound(1);
    assert_int_equal(report.records, 5);
    cut_log_before(2);
    assert_sound(1);
    assert_int_equal(report.records, 1);
    assert_int_equal(report.lsn_last, lsn + 1);
    assert_int_equal(report.index_items, 2);
}

static void tags_are_looked_for_in_what_is_left_of_the_log(void **state)
{
    uint64_t snapshot_lsn;
    uint64_t lsn = 0;

    (void)state;
    snapshot_lsn = fill_two_segments();
    assert_int_equal(find_tag(1, &lsn), STELE_OK);
    assert_int_equal(lsn, 1);
    cut_log_before(2);
    assert_int_equal(find_tag(1, &lsn), STELE_NOT_FOUND);
    assert_int_equal(find_tag(2, &lsn), STELE_OK);
    assert_int_equal(lsn, snapshot_lsn + 1);
}

static void a_log_that_is_cut_without_a_snapshot_is_found(void **state)
{
    uint64_t lsn;

    (void)state;
    put_big("big");
    put_big("big");
    store_dir_put(&dir, "big", "small");
    assert_int_equal(stele_checkpoint(dir.store, &dir.error), STELE_OK);
    store_dir_put(&dir, "a", "behind the index");
    cut_log_before(2);
    assert_finds("the log begins with wal/0000000000000002.wal, and there is "
                 "no snapshot to go on from: no base but the index is left");
    assert_int_equal(report.records, 1); /* What is left is read. */
    assert_int_equal(find_tag(1, &lsn), STELE_CORRUPT);
}

/* What is behind it in the log cannot be read; snapshots and index can. */
static void damage_in_the_log_does_not_hide_other_damage(void **state)
{
    (void)state;
    put_big("big");
    put_big("big");
    store_dir_put(&dir, "big", "small");
    store_dir_put(&dir, "rotten", "this value rots");
    assert_int_equal(stele_checkpoint(dir.store, &dir.error), STELE_OK);
    files_flip_bit(at("wal/0000000000000002.wal"), 0, 0);
    files_flip_everywhere(at("index/data.mdb"), "this value rots", 15, 3);
    assert_int_equal(verify(), STELE_CORRUPT);
    assert_int_equal(report.problems, 2);
    assert_string_equal(findings[0], "wal/0000000000000002.wal: offset 0: not "
                                     "a valid segment header");
    assert_non_null(strstr(findings[1], "key \"rotten\""));
}

static void cut_it_further(void)
{
    at_a_finding = NULL;
    cut_log_before(3);
}

/* Retention goes on beside it, and is no damage. */
static void a_log_that_is_cut_while_it_is_read_is_read_again(void **state)
{
    (void)state;
    put_big("big");
    put_big("big");
    put_big("big");
    store_dir_put(&dir, "big", "small");
    assert_int_equal(store_dir_stats(&dir).segment_current, 3);
    assert_int_equal(stele_checkpoint(dir.store, &dir.error), STELE_OK);
    cut_log_before(2);
    at_a_finding = cut_it_further;
    assert_int_equal(verify(), STELE_CORRUPT);
    assert_int_equal(report.problems, 1);
    assert_int_equal(finding_count, 2); /* Once in each round. */
    assert_non_null(strstr(findings[0], "0000000000000002.wal"));
    assert_non_null(strstr(findings[1], "0000000000000003.wal"));
}

static void take_one(void)
{
    at_a_finding = NULL;
    assert_int_equal(stele_snapshot(dir.store, NULL, &dir.error), STELE_OK);
}

/* ANCHOR names it, and it is there; it was not when it was looked for. */
static void a_snapshot_that_is_taken_meanwhile_is_not_missing(void **state)
{
    (void)state;
    put_big("big");
    put_big("big");
    store_dir_put(&dir, "big", "small");
    assert_int_equal(stele_checkpoint(dir.store, &dir.error), STELE_OK);
    cut_log_before(2);
    at_a_finding = take_one;
    assert_finds("the log begins with wal/0000000000000002.wal, and there is "
                 "no snapshot to go on from: no base but the index is left");
    assert_sound(1);
}

#define STORE_TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        STORE_TEST(every_snapshot_is_read_in_its_turn),
        STORE_TEST(one_that_anchor_does_not_name_is_read_too),
        STORE_TEST(a_bit_flipped_anywhere_in_a_snapshot_is_found),
        STORE_TEST(a_rotten_value_in_a_resealed_block_is_found),
        STORE_TEST(a_row_that_claims_another_count_is_found),
        STORE_TEST(a_key_that_was_left_out_is_found),
        STORE_TEST(a_footer_with_other_totals_is_found),
        STORE_TEST(a_place_that_the_log_does_not_have_is_found),
        STORE_TEST(a_snapshot_of_another_store_is_found),
        STORE_TEST(one_that_anchor_names_must_be_there),
        STORE_TEST(one_that_cannot_be_read_is_no_damage),
        STORE_TEST(a_log_that_goes_on_behind_a_snapshot_is_read_from_there),
        STORE_TEST(tags_are_looked_for_in_what_is_left_of_the_log),
        STORE_TEST(a_log_that_is_cut_without_a_snapshot_is_found),
        STORE_TEST(damage_in_the_log_does_not_hide_other_damage),
        STORE_TEST(a_log_that_is_cut_while_it_is_read_is_read_again),
        STORE_TEST(a_snapshot_that_is_taken_meanwhile_is_not_missing),
    };

    return cmocka_run_group_tests_name("engine: verify, snapshots", tests, NULL,
                                       NULL);
}
