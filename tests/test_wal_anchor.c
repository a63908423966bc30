/*
 * tests/test_wal_anchor.c -- wal/anchor.h: two slots that alternate, so that one
 * is valid whatever happens to a write, and a hint that is never evidence.
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
#include "tests/lib/temp_dir.h"
#include "tests/lib/wal_log.h"
#include "wal/anchor.h"

enum {
    CHECKSUM_OFFSET = 8,
    FIELDS_OFFSET = 16,
    VERSION_OFFSET = 16,
    FORMAT_MIN_OFFSET = 20,
    POSITION_OFFSET = 168,
    HINT_OFFSET = 2 * WAL_ANCHOR_SLOT_BYTES,
};

static const uint8_t golden_start[168] = {
    'S',  'T',  'E',  'L',  'A',  'N',  'C',  'H',  /* magic */
    0xf9, 0x82, 0xb5, 0x1e, 0x9e, 0x4e, 0xf3, 0x26, /* checksum */
    0x01, 0x00, 0x00, 0x00,                         /* version */
    0x01, 0x00, 0x00, 0x00,                         /* format min */
    0x05, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, /* slot sequence */
    0xa0, 0xa1, 0xa2, 0xa3, 0xa4, 0xa5, 0xa6, 0xa7, /* uuid */
    0xa8, 0xa9, 0xaa, 0xab, 0xac, 0xad, 0xae, 0xaf, /**/
    0xc0, 0xc1, 0xc2, 0xc3, 0xc4, 0xc5, 0xc6, 0xc7, /* parent uuid */
    0xc8, 0xc9, 0xca, 0xcb, 0xcc, 0xcd, 0xce, 0xcf, /**/
    0x06, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, /* parent lsn */
    0x07, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, /* incarnation */
    0x08, 0x07, 0x06, 0x05, 0x04, 0x03, 0x02, 0x01, /* lsn floor */
    0x09, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, /* segment last */
    0x02, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, /* segment oldest */
    0x00, 0x00, 0x10, 0x00, 0x00, 0x00, 0x00, 0x00, /* segment bytes */
    0x03, 0x00, 0x00, 0x00,                         /* clean, suspect */
    0x00, 0x00, 0x00, 0x00,                         /**/
    0x0b, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, /* snapshots */
    0x0a, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, /**/
    0x0c, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, /* index generation */
    0x0d, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, /* index inode */
    0x0e, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, /* index birth */
    0x0f, 0x00, 0x00, 0x00,                         /* index format */
    0x00, 0x00, 0x00, 0x00,                         /**/
};

/* ---- A small vocabulary ---------------------------------------------------------- */

static char *dir_path;
static struct io_dir *dir;
static char path[FILES_PATH_BYTES];
static struct wal_anchor anchor; /* As last written. */
static struct wal_anchor_file file;
static struct stele_error error;

static struct wal_anchor example(void)
{
    struct wal_anchor made = {
        .format_min = WAL_ANCHOR_VERSION,
        .slot_sequence = 5,
        .uuid = wal_log_uuid(),
        .parent_lsn = 6,
        .incarnation = 7,
        .lsn_floor = UINT64_C(0x0102030405060708),
        .segment_last = 9,
        .segment_oldest = 2,
        .segment_bytes = 1 << 20,
        .clean = true,
        .index_suspect = true,
        .snapshots = {11, 10},
        .index_generation = 12,
        .index_inode = 13,
        .index_birth_ns = 14,
        .index_format = 15,
    };

    for (uint8_t index = 0; index < WAL_UUID_BYTES; index++) {
        made.parent_uuid.bytes[index] = (uint8_t)(0xc0 + index);
    }
    made.durable = wal_position_origin(&made.uuid, 0);
    made.durable.unit = 3;
    made.durable.lsn = 30;
    return made;
}

static int make_anchor(void **state)
{
    (void)state;
    dir_path = temp_dir_make();
    files_path(path, dir_path, WAL_ANCHOR_NAME);
    anchor = example();
    file = (struct wal_anchor_file){0};
    assert_int_equal(io_dir_open(io_fault_io(), dir_path, &dir, &error),
                     STELE_OK);
    assert_int_equal(wal_anchor_create(dir, &anchor, &error), STELE_OK);
    return 0;
}

static int remove_anchor(void **state)
{
    (void)state;
    io_fault_arm(NULL);
    wal_anchor_close(&file);
    io_dir_close(dir);
    temp_dir_remove(dir_path);
    return 0;
}

static enum stele_status open_into(struct wal_anchor *found)
{
    wal_anchor_close(&file);
    return wal_anchor_open(dir, IO_OPEN_READ_WRITE, &file, found, &error);
}

/* Open; it must be valid. */
static struct wal_anchor reopened(void)
{
    struct wal_anchor found;

    assert_int_equal(open_into(&found), STELE_OK);
    return found;
}

/* Write the anchor with another floor. */
static void write_floor(uint64_t lsn_floor)
{
    anchor.lsn_floor = lsn_floor;
    assert_int_equal(wal_anchor_write(&file, &anchor, &error), STELE_OK);
}

static void damage_slot(unsigned slot)
{
    files_flip_bit(path, (uint64_t)slot * WAL_ANCHOR_SLOT_BYTES + 100, 3);
}

/* Change a field of a slot and make its checksum hold again. */
static void rewrite_slot(unsigned slot, uint64_t offset, const void *data,
                         size_t bytes)
{
    uint8_t page[WAL_ANCHOR_USED_BYTES];
    const uint64_t start = (uint64_t)slot * WAL_ANCHOR_SLOT_BYTES;

    files_read_at(path, start, page, sizeof page);
    memcpy(page + offset, data, bytes);
    put_u64le(page + CHECKSUM_OFFSET,
              checksum64(page + FIELDS_OFFSET, sizeof page - FIELDS_OFFSET, 0));
    files_write_at(path, start, page, sizeof page);
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

static struct wal_position position_of(uint64_t unit)
{
    struct wal_position position = wal_position_origin(&anchor.uuid, 0);

    position.unit = unit;
    position.lsn = unit * 10;
    return position;
}

/* ---- Bytes -------------------------------------------------------------------------- */

static void a_slot_is_encoded_as_the_golden_bytes(void **state)
{
    const struct wal_anchor made = example();
    uint8_t position[WAL_POSITION_BYTES];
    uint8_t page[WAL_ANCHOR_SLOT_BYTES];
    const size_t end = POSITION_OFFSET + WAL_POSITION_BYTES;

    (void)state;
    memset(page, 0xee, sizeof page);
    wal_anchor_encode(&made, page);
    assert_memory_equal(page, golden_start, sizeof golden_start);
    wal_position_encode(&made.durable, position);
    assert_memory_equal(page + POSITION_OFFSET, position, sizeof position);
    assert_true(bytes_are_zero(page + end, sizeof page - end));
}

static void a_slot_is_decoded_to_every_field(void **state)
{
    const struct wal_anchor made = example();
    struct wal_anchor found;
    uint8_t page[WAL_ANCHOR_SLOT_BYTES];
    uint8_t again[WAL_ANCHOR_SLOT_BYTES];

    (void)state;
    wal_anchor_encode(&made, page);
    assert_int_equal(wal_anchor_decode(page, &found), WAL_ANCHOR_VALID);
    wal_anchor_encode(&found, again);
    assert_memory_equal(page, again, sizeof page);
    assert_true(found.clean);
    assert_true(found.index_suspect);
    assert_int_equal(found.durable.unit, 3);
}

static void no_single_bit_flip_of_a_slot_is_valid(void **state)
{
    const struct wal_anchor made = example();
    uint8_t page[WAL_ANCHOR_SLOT_BYTES];

    (void)state;
    wal_anchor_encode(&made, page);
    for (size_t bit = 0; bit < (size_t)WAL_ANCHOR_USED_BYTES * 8; bit++) {
        struct wal_anchor found = {.incarnation = 42};

        page[bit / 8] ^= (uint8_t)(1u << (bit % 8));
        assert_int_equal(wal_anchor_decode(page, &found), WAL_ANCHOR_INVALID);
        assert_int_equal(found.incarnation, 42);
        page[bit / 8] ^= (uint8_t)(1u << (bit % 8));
    }
}

static void an_empty_page_is_no_slot(void **state)
{
    const uint8_t page[WAL_ANCHOR_SLOT_BYTES] = {0};
    struct wal_anchor found;

    (void)state;
    assert_int_equal(wal_anchor_decode(page, &found), WAL_ANCHOR_INVALID);
}

/* ---- The file ------------------------------------------------------------------------- */

static void a_new_anchor_has_two_valid_slots_and_no_hint(void **state)
{
    struct wal_position position;
    uint64_t incarnation;
    bool valid = true;

    (void)state;
    assert_int_equal(files_size(path), WAL_ANCHOR_BYTES);
    assert_int_equal(files_count(dir_path, ""), 1);
    assert_int_equal(reopened().slot_sequence, 5);
    assert_true(file.slot_valid[0]);
    assert_true(file.slot_valid[1]);
    assert_int_equal(
        wal_hint_read(&file, &valid, &incarnation, &position, &error),
        STELE_OK);
    assert_false(valid);
}

static void writes_alternate_and_the_newer_slot_counts(void **state)
{
    (void)state;
    (void)reopened();
    for (uint64_t floor = 100; floor < 106; floor++) {
        const unsigned before = file.newest;

        write_floor(floor);
        assert_int_equal(file.newest, 1 - before);
        assert_int_equal(anchor.slot_sequence, floor - 100 + 6);
        assert_int_equal(reopened().lsn_floor, floor);
    }
}

static void every_write_of_a_slot_is_synced(void **state)
{
    uint64_t before;

    (void)state;
    (void)reopened();
    before = io_fault_syncs(WAL_ANCHOR_NAME);
    write_floor(100);
    assert_int_equal(io_fault_syncs(WAL_ANCHOR_NAME), before + 1);
}

/* A power cut during a write leaves any part of it behind. */
static void whatever_is_left_of_a_write_the_slot_before_counts(void **state)
{
    uint8_t before[WAL_ANCHOR_BYTES];
    uint8_t after[WAL_ANCHOR_BYTES];
    size_t start;

    (void)state;
    (void)reopened();
    write_floor(100);
    write_floor(101);
    files_read_at(path, 0, before, sizeof before);
    write_floor(102);
    files_read_at(path, 0, after, sizeof after);
    start = (size_t)file.newest * WAL_ANCHOR_SLOT_BYTES;
    for (size_t kept = 0; kept <= WAL_ANCHOR_USED_BYTES; kept += 8) {
        uint8_t torn[WAL_ANCHOR_BYTES];
        uint64_t floor;

        memcpy(torn, before, sizeof torn);
        memcpy(torn + start, after + start, kept);
        files_write_at(path, 0, torn, sizeof torn);
        floor = reopened().lsn_floor;
        assert_int_equal(floor,
                         memcmp(torn, after, sizeof torn) == 0 ? 102 : 101);
        assert_true(file.slot_valid[0] || file.slot_valid[1]);
    }
}

static void one_damaged_slot_leaves_the_other(void **state)
{
    (void)state;
    for (unsigned slot = 0; slot < 2; slot++) {
        (void)reopened();
        write_floor(200);
        write_floor(201);
        damage_slot(slot);
        assert_int_equal(
            reopened().lsn_floor,
            slot == (anchor.slot_sequence % 2 == 0 ? 1u : 0u) ? 200 : 201);
        assert_false(file.slot_valid[slot]);
        assert_true(file.slot_valid[1 - slot]);
        assert_int_equal(file.newest, 1 - slot);
        damage_slot(slot); /* As it was. */
        anchor = reopened();
    }
}

static void without_a_valid_slot_it_is_corrupt(void **state)
{
    struct wal_anchor found;

    (void)state;
    damage_slot(0);
    damage_slot(1);
    assert_int_equal(open_into(&found), STELE_CORRUPT);
    assert_non_null(strstr(
        error.message, "ANCHOR: offsets 0 and 4096: neither slot is valid"));
    assert_null(file.file);
}

static void a_short_file_is_corrupt_and_a_missing_one_not_found(void **state)
{
    struct wal_anchor found;

    (void)state;
    files_truncate(path, WAL_ANCHOR_SLOT_BYTES);
    assert_int_equal(open_into(&found), STELE_CORRUPT);
    files_truncate(path, 0);
    assert_int_equal(open_into(&found), STELE_CORRUPT);
    files_remove(path);
    assert_int_equal(open_into(&found), STELE_NOT_FOUND);
}

static void an_error_while_reading_is_never_absence(void **state)
{
    struct wal_anchor found;

    (void)state;
    break_call(IO_FAULT_OPEN, 0, EACCES);
    assert_int_equal(open_into(&found), STELE_IO);
    for (uint64_t calls = 0; calls < 2; calls++) { /* A slot each. */
        break_call(IO_FAULT_READ, calls, EIO);
        assert_int_equal(open_into(&found), STELE_IO);
        assert_int_equal(error.sys_errno, EIO);
    }
    assert_int_equal(open_into(&found), STELE_OK);
}

/* Not "the other slot is valid": what the newer program knew counts. */
static void one_slot_of_a_newer_format_is_enough_to_refuse(void **state)
{
    const uint8_t newer[4] = {2, 0, 0, 0};
    const uint8_t known[4] = {1, 0, 0, 0};
    struct wal_anchor found;

    (void)state;
    for (unsigned slot = 0; slot < 2; slot++) {
        rewrite_slot(slot, VERSION_OFFSET, newer, sizeof newer);
        assert_int_equal(open_into(&found), STELE_FOREIGN);
        assert_non_null(strstr(error.message,
                               "ANCHOR: written by a newer program, this one "
                               "knows format 1"));
        rewrite_slot(slot, VERSION_OFFSET, known, sizeof known);
        rewrite_slot(slot, FORMAT_MIN_OFFSET, newer, sizeof newer);
        assert_int_equal(open_into(&found), STELE_FOREIGN);
        rewrite_slot(slot, FORMAT_MIN_OFFSET, known, sizeof known);
    }
    assert_int_equal(open_into(&found), STELE_OK);
}

/* ---- Healing ----------------------------------------------------------------------------- */

static void healing_makes_both_slots_valid_and_durable(void **state)
{
    (void)state;
    for (unsigned slot = 0; slot < 2; slot++) {
        uint64_t before;

        anchor = reopened();
        damage_slot(slot);
        anchor = reopened();
        before = io_fault_syncs(WAL_ANCHOR_NAME);
        assert_int_equal(wal_anchor_heal(&file, &anchor, &error), STELE_OK);
        assert_int_equal(io_fault_syncs(WAL_ANCHOR_NAME), before + 2);
        assert_true(file.slot_valid[0]);
        assert_true(file.slot_valid[1]);
        assert_int_equal(reopened().slot_sequence, anchor.slot_sequence);
        assert_true(file.slot_valid[0]);
        assert_true(file.slot_valid[1]);
    }
}

/* After a failed sync the page cache may show what the disk does not have. */
static void healing_rewrites_the_newest_slot_in_place(void **state)
{
    uint8_t before[WAL_ANCHOR_BYTES];
    uint8_t after[WAL_ANCHOR_BYTES];
    uint64_t syncs;

    (void)state;
    anchor = reopened();
    write_floor(300);
    anchor = reopened();
    files_read_at(path, 0, before, sizeof before);
    syncs = io_fault_syncs(WAL_ANCHOR_NAME);
    assert_int_equal(wal_anchor_heal(&file, &anchor, &error), STELE_OK);
    assert_int_equal(io_fault_syncs(WAL_ANCHOR_NAME), syncs + 1);
    files_read_at(path, 0, after, sizeof after);
    assert_memory_equal(before, after, sizeof before);
}

static void a_failed_heal_leaves_what_was_valid(void **state)
{
    (void)state;
    for (uint64_t calls = 0; calls < 2; calls++) {
        anchor = reopened();
        damage_slot(1 - file.newest);
        anchor = reopened();
        break_call(IO_FAULT_SYNC, calls, EIO);
        assert_int_equal(wal_anchor_heal(&file, &anchor, &error), STELE_IO);
        assert_non_null(strstr(error.message, "anchor: "));
        assert_int_equal(reopened().slot_sequence, anchor.slot_sequence);
    }
}

/* ---- Failing writes --------------------------------------------------------------------------- */

static void a_write_without_space_changes_nothing(void **state)
{
    const struct wal_anchor before = reopened();

    (void)state;
    anchor = before;
    break_call(IO_FAULT_WRITE, 0, ENOSPC);
    anchor.lsn_floor = 400;
    assert_int_equal(wal_anchor_write(&file, &anchor, &error), STELE_NO_SPACE);
    assert_int_equal(anchor.slot_sequence, before.slot_sequence);
    assert_int_equal(reopened().lsn_floor, before.lsn_floor);
    write_floor(400);
    assert_int_equal(reopened().lsn_floor, 400);
}

static void a_failed_write_or_sync_does_not_count(void **state)
{
    static const struct {
        enum io_fault_call call;
        int sys_errno;
    } cases[] = {{IO_FAULT_WRITE, EIO},
                 {IO_FAULT_WRITE, 0},
                 {IO_FAULT_SYNC, EIO},
                 {IO_FAULT_SYNC, ENOSPC}};

    (void)state;
    for (size_t index = 0; index < sizeof cases / sizeof *cases; index++) {
        unsigned newest;

        anchor = reopened();
        newest = file.newest;
        break_call(cases[index].call, 0, cases[index].sys_errno);
        anchor.lsn_floor++;
        assert_int_equal(wal_anchor_write(&file, &anchor, &error), STELE_IO);
        assert_int_equal(file.newest, newest);
        assert_int_equal(io_fault_count(), 1);
    }
    (void)reopened(); /* One of the slots. */
}

/* The n-th call fails, for n = 1, 2, ... until there is an anchor: until then
 * there is no store. */
static void a_failed_creation_leaves_no_anchor(void **state)
{
    static const enum io_fault_call calls[] = {IO_FAULT_OPEN, IO_FAULT_WRITE,
                                               IO_FAULT_SYNC, IO_FAULT_RENAME};

    (void)state;
    files_remove(path);
    for (size_t index = 0; index < sizeof calls / sizeof *calls; index++) {
        break_call(calls[index], 0, EIO);
        assert_int_equal(wal_anchor_create(dir, &anchor, &error), STELE_IO);
        assert_non_null(strstr(error.message, "create anchor: "));
        assert_int_equal(io_fault_count(), 1);
        assert_false(files_exists(path));
    }
    break_call(IO_FAULT_SYNC_DIR, 0, EIO);
    assert_int_equal(wal_anchor_create(dir, &anchor, &error), STELE_IO);
    /* Over what a failed try left. */
    assert_int_equal(wal_anchor_create(dir, &anchor, &error), STELE_OK);
    assert_int_equal(reopened().slot_sequence, 5);
    assert_int_equal(files_count(dir_path, ""), 1);
}

/* ---- The hint ------------------------------------------------------------------------------------ */

static void a_hint_is_read_back_as_it_was_written(void **state)
{
    const struct wal_position written = position_of(77);
    struct wal_position position;
    uint64_t incarnation;
    uint64_t before;
    bool valid;

    (void)state;
    (void)reopened();
    before = io_fault_syncs(WAL_ANCHOR_NAME);
    assert_int_equal(wal_hint_write(&file, 9, &written, &error), STELE_OK);
    assert_int_equal(io_fault_syncs(WAL_ANCHOR_NAME), before);
    assert_int_equal(
        wal_hint_read(&file, &valid, &incarnation, &position, &error),
        STELE_OK);
    assert_true(valid);
    assert_int_equal(incarnation, 9);
    assert_true(wal_position_equal(&position, &written));
    assert_int_equal(reopened().slot_sequence,
                     5); /* The slots are as before. */
}

static void a_hint_is_one_small_write_of_golden_bytes(void **state)
{
    static const uint8_t golden[24] = {
        'S',  'T',  'E',  'L',  'H',  'I',  'N',  'T',  /* magic */
        0x29, 0x5e, 0x5f, 0xef, 0xea, 0x0b, 0x1e, 0x55, /* checksum */
        0x09, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, /* incarnation */
    };
    const struct wal_position written = position_of(77);
    uint8_t encoded[WAL_POSITION_BYTES];
    uint8_t page[WAL_ANCHOR_SLOT_BYTES];

    (void)state;
    (void)reopened();
    assert_int_equal(wal_hint_write(&file, 9, &written, &error), STELE_OK);
    files_read_at(path, HINT_OFFSET, page, sizeof page);
    assert_memory_equal(page, golden, sizeof golden);
    wal_position_encode(&written, encoded);
    assert_memory_equal(page + sizeof golden, encoded, sizeof encoded);
    assert_true(
        bytes_are_zero(page + WAL_HINT_BYTES, sizeof page - WAL_HINT_BYTES));
}

static void a_torn_hint_is_none(void **state)
{
    const struct wal_position first = position_of(77);
    const struct wal_position second = position_of(78);
    uint8_t before[WAL_HINT_BYTES];
    uint8_t after[WAL_HINT_BYTES];

    (void)state;
    (void)reopened();
    assert_int_equal(wal_hint_write(&file, 9, &first, &error), STELE_OK);
    files_read_at(path, HINT_OFFSET, before, sizeof before);
    assert_int_equal(wal_hint_write(&file, 9, &second, &error), STELE_OK);
    files_read_at(path, HINT_OFFSET, after, sizeof after);
    for (size_t kept = 0; kept <= WAL_HINT_BYTES; kept++) {
        uint8_t torn[WAL_HINT_BYTES];
        struct wal_position position;
        uint64_t incarnation = 42;
        bool valid;

        memcpy(torn, before, sizeof torn);
        memcpy(torn, after, kept);
        files_write_at(path, HINT_OFFSET, torn, sizeof torn);
        assert_int_equal(
            wal_hint_read(&file, &valid, &incarnation, &position, &error),
            STELE_OK);
        if (memcmp(torn, before, sizeof torn) == 0) {
            assert_true(valid);
            assert_int_equal(position.unit, 77);
        } else if (memcmp(torn, after, sizeof torn) == 0) {
            assert_true(valid);
            assert_int_equal(position.unit, 78);
        } else {
            assert_false(valid);
            assert_int_equal(incarnation, 42);
        }
    }
}

static void an_unreadable_hint_is_an_error(void **state)
{
    const struct wal_position written = position_of(77);
    struct wal_position position;
    uint64_t incarnation;
    bool valid;

    (void)state;
    (void)reopened();
    break_call(IO_FAULT_READ, 0, EIO);
    assert_int_equal(
        wal_hint_read(&file, &valid, &incarnation, &position, &error),
        STELE_IO);
    break_call(IO_FAULT_WRITE, 0, ENOSPC);
    assert_int_equal(wal_hint_write(&file, 9, &written, &error),
                     STELE_NO_SPACE);
}

#define FILE_TEST(name)                                                        \
    cmocka_unit_test_setup_teardown(name, make_anchor, remove_anchor)

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_slot_is_encoded_as_the_golden_bytes),
        cmocka_unit_test(a_slot_is_decoded_to_every_field),
        cmocka_unit_test(no_single_bit_flip_of_a_slot_is_valid),
        cmocka_unit_test(an_empty_page_is_no_slot),
        FILE_TEST(a_new_anchor_has_two_valid_slots_and_no_hint),
        FILE_TEST(writes_alternate_and_the_newer_slot_counts),
        FILE_TEST(every_write_of_a_slot_is_synced),
        FILE_TEST(whatever_is_left_of_a_write_the_slot_before_counts),
        FILE_TEST(one_damaged_slot_leaves_the_other),
        FILE_TEST(without_a_valid_slot_it_is_corrupt),
        FILE_TEST(a_short_file_is_corrupt_and_a_missing_one_not_found),
        FILE_TEST(an_error_while_reading_is_never_absence),
        FILE_TEST(one_slot_of_a_newer_format_is_enough_to_refuse),
        FILE_TEST(healing_makes_both_slots_valid_and_durable),
        FILE_TEST(healing_rewrites_the_newest_slot_in_place),
        FILE_TEST(a_failed_heal_leaves_what_was_valid),
        FILE_TEST(a_write_without_space_changes_nothing),
        FILE_TEST(a_failed_write_or_sync_does_not_count),
        FILE_TEST(a_failed_creation_leaves_no_anchor),
        FILE_TEST(a_hint_is_read_back_as_it_was_written),
        FILE_TEST(a_hint_is_one_small_write_of_golden_bytes),
        FILE_TEST(a_torn_hint_is_none),
        FILE_TEST(an_unreadable_hint_is_an_error),
    };

    return cmocka_run_group_tests_name("wal/anchor", tests, NULL, NULL);
}
