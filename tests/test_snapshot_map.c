/*
 * tests/test_snapshot_map.c -- snapshot/map.h: every way to look for a key, against
 * a sorted array, and what happens when the file changes underneath.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "snapshot/map.h"
#include "tests/lib/io_fault.h"
#include "tests/lib/reseal.h"
#include "tests/lib/run.h"
#include "tests/lib/snapshot_file.h"

enum {
    RANDOM_SNAPSHOTS = 12,
    RANDOM_MOVES = 3000,
    RANDOM_ENTRIES = 400,
    FIRST_BLOCK = SNAPSHOT_HEADER_BYTES,
};

/* ---- A small vocabulary ---------------------------------------------------------- */

static struct snapshot_file file;
static struct snapshot_pairs pairs;
static struct snapshot_info info;
static struct snapshot_map *map;
static struct snapshot_cursor *cursor;
static struct snapshot_entry entry;
static struct stele_error error;

static int setup(void **state)
{
    (void)state;
    snapshot_file_setup(&file);
    map = NULL;
    cursor = NULL;
    return 0;
}

static void close_all(void)
{
    snapshot_cursor_close(cursor);
    snapshot_map_unref(map);
    cursor = NULL;
    map = NULL;
    snapshot_pairs_free(&pairs);
}

static int teardown(void **state)
{
    (void)state;
    close_all();
    snapshot_file_teardown(&file);
    return 0;
}

static enum stele_status open_map(void)
{
    return snapshot_map_open(file.dir, SNAPSHOT_FILE_LSN, snapshot_file_uuid,
                             &map, &error);
}

/* A snapshot of these, which are then ours, with a cursor. */
static void open_over(struct snapshot_pairs made)
{
    pairs = made;
    snapshot_file_make(&file, &pairs, &info);
    assert_int_equal(open_map(), STELE_OK);
    assert_int_equal(snapshot_cursor_open(map, &cursor, &error), STELE_OK);
}

static enum stele_status seek(struct bytes key)
{
    return snapshot_cursor_seek(cursor, key, &entry, &error);
}

static enum stele_status seek_before(struct bytes key)
{
    return snapshot_cursor_seek_before(cursor, key, &entry, &error);
}

static enum stele_status next(void)
{
    return snapshot_cursor_next(cursor, &entry, &error);
}

static enum stele_status prev(void)
{
    return snapshot_cursor_prev(cursor, &entry, &error);
}

static struct bytes key_of(size_t index)
{
    return pairs.entries[index].key;
}

static void assert_entry(size_t index)
{
    assert_true(index < pairs.count);
    assert_true(bytes_compare(entry.key, key_of(index)) == 0);
    assert_true(bytes_compare(entry.stored, pairs.entries[index].stored) == 0);
}

/* How many keys of the array are below. */
static size_t keys_below(struct bytes key)
{
    size_t count = 0;

    while (count < pairs.count && bytes_compare(key_of(count), key) < 0) {
        count++;
    }
    return count;
}

static void read_fails(uint64_t after_calls, int sys_errno)
{
    const struct io_fault fault = {.call = IO_FAULT_READ,
                                   .after_calls = after_calls,
                                   .times = 1,
                                   .sys_errno = sys_errno};

    io_fault_arm(&fault);
}

/* ---- Looking -------------------------------------------------------------------------- */

static void an_empty_snapshot_has_nothing_anywhere(void **state)
{
    const struct bytes key = {"k", 1};

    (void)state;
    open_over(snapshot_pairs_counted(0, 0));
    assert_int_equal(snapshot_map_info(map)->blocks, 0);
    assert_int_equal(seek((struct bytes){NULL, 0}), STELE_NOT_FOUND);
    assert_int_equal(seek(key), STELE_NOT_FOUND);
    assert_int_equal(seek_before(key), STELE_NOT_FOUND);
}

static void a_walk_from_either_end_meets_every_entry(void **state)
{
    struct random_source random = run_random(1);
    uint8_t above[SNAPSHOT_KEY_BYTES_MAX + 1];

    (void)state;
    memset(above, 0xff, sizeof above);
    open_over(snapshot_pairs_random(&random, RANDOM_ENTRIES));
    assert_true(snapshot_map_info(map)->blocks > 10);
    assert_int_equal(seek((struct bytes){NULL, 0}), STELE_OK);
    for (size_t index = 0; index < pairs.count; index++) {
        assert_entry(index);
        assert_int_equal(next(),
                         index + 1 < pairs.count ? STELE_OK : STELE_NOT_FOUND);
    }
    assert_int_equal(seek_before((struct bytes){above, sizeof above}),
                     STELE_OK);
    for (size_t index = pairs.count; index-- > 0;) {
        assert_entry(index);
        assert_int_equal(prev(), index > 0 ? STELE_OK : STELE_NOT_FOUND);
    }
}

static void every_key_and_its_neighbourhood_is_found(void **state)
{
    struct random_source random = run_random(2);

    (void)state;
    open_over(snapshot_pairs_random(&random, RANDOM_ENTRIES));
    for (size_t index = 0; index < pairs.count; index++) {
        uint8_t above[SNAPSHOT_KEY_BYTES_MAX + 1];
        const struct bytes key = key_of(index);
        const struct bytes right_behind = {above, key.size + 1};

        memcpy(above, key.data, key.size);
        above[key.size] = 0;
        assert_int_equal(seek(key), STELE_OK);
        assert_entry(index);
        assert_int_equal(seek_before(right_behind), STELE_OK);
        assert_entry(index);
        assert_int_equal(seek_before(key),
                         index > 0 ? STELE_OK : STELE_NOT_FOUND);
        if (index > 0) {
            assert_entry(index - 1);
        }
        if (keys_below(right_behind) < pairs.count) {
            assert_int_equal(seek(right_behind), STELE_OK);
            assert_entry(index + 1);
        } else {
            assert_int_equal(seek(right_behind), STELE_NOT_FOUND);
        }
    }
}

/* One random move, and the same in the array. SIZE_MAX: on no entry. */
static size_t move(struct random_source *random, size_t at)
{
    uint8_t data[4];
    struct bytes key = {data, 0};
    size_t expected = SIZE_MAX;
    enum stele_status status;

    if (random_one_in(random, 2) && pairs.count > 0) {
        key = key_of((size_t)random_below(random, pairs.count));
    } else {
        key.size = (size_t)random_below(random, sizeof data + 1);
        for (size_t index = 0; index < key.size; index++) {
            data[index] = (uint8_t)random_u64(random);
        }
    }
    switch (random_below(random, 8)) {
    case 0:
        expected = keys_below(key);
        status = seek(key);
        break;
    case 1:
        expected = keys_below(key) - 1; /* SIZE_MAX: none. */
        status = seek_before(key);
        break;
    case 2:
    case 3:
    case 4:
        expected = at == SIZE_MAX ? at : at + 1;
        status = next();
        break;
    default:
        expected = at == SIZE_MAX ? at : at - 1;
        status = prev();
        break;
    }
    if (status == STELE_INVALID) {
        assert_true(at == SIZE_MAX);
        return at;
    }
    if (expected >= pairs.count) {
        assert_int_equal(status, STELE_NOT_FOUND);
        return SIZE_MAX;
    }
    assert_int_equal(status, STELE_OK);
    assert_entry(expected);
    return expected;
}

static void random_moves_are_those_of_a_sorted_array(void **state)
{
    struct random_source random = run_random(3);

    (void)state;
    for (unsigned round = 0; round < RANDOM_SNAPSHOTS; round++) {
        const size_t count_max = (size_t)random_below(
            &random, random_one_in(&random, 3) ? 4 : RANDOM_ENTRIES);
        size_t at = SIZE_MAX;

        open_over(snapshot_pairs_random(&random, count_max));
        for (unsigned moves = 0; moves < RANDOM_MOVES; moves++) {
            at = move(&random, at);
        }
        close_all();
    }
}

static void behind_the_end_a_cursor_must_be_led_back(void **state)
{
    (void)state;
    open_over(snapshot_pairs_counted(2, 5));
    assert_int_equal(next(), STELE_INVALID); /* Nowhere yet. */
    assert_int_equal(prev(), STELE_INVALID);
    assert_int_equal(seek(key_of(1)), STELE_OK);
    assert_int_equal(next(), STELE_NOT_FOUND);
    assert_int_equal(next(), STELE_INVALID);
    assert_int_equal(prev(), STELE_INVALID);
    assert_int_equal(seek(key_of(0)), STELE_OK);
    assert_int_equal(prev(), STELE_NOT_FOUND);
    assert_int_equal(next(), STELE_INVALID);
}

/* ---- Memory and lifetime ----------------------------------------------------------------- */

static void the_file_may_lose_its_name(void **state)
{
    (void)state;
    open_over(snapshot_pairs_counted(3000, 100));
    files_remove(file.path);
    assert_int_equal(seek(key_of(2999)), STELE_OK);
    assert_entry(2999);
    assert_int_equal(open_map(), STELE_NOT_FOUND);
}

static void a_cursor_keeps_its_map(void **state)
{
    (void)state;
    open_over(snapshot_pairs_counted(3000, 100));
    snapshot_map_ref(map);
    snapshot_map_unref(map);
    snapshot_map_unref(map);
    map = NULL;
    assert_int_equal(seek(key_of(1500)), STELE_OK);
    assert_entry(1500);
}

static void a_block_is_read_once_while_the_cursor_is_in_it(void **state)
{
    uint64_t reads;

    (void)state;
    open_over(snapshot_pairs_counted(3000, 100));
    assert_int_equal(seek(key_of(0)), STELE_OK);
    reads = io_fault_calls(IO_FAULT_READ);
    assert_int_equal(next(), STELE_OK);
    assert_int_equal(prev(), STELE_OK);
    assert_int_equal(seek(key_of(100)), STELE_OK);
    assert_true(io_fault_calls(IO_FAULT_READ) == reads);
    assert_int_equal(seek(key_of(2999)), STELE_OK);
    assert_true(io_fault_calls(IO_FAULT_READ) > reads);
}

/* ---- Damage ---------------------------------------------------------------------------------- */

static void a_damaged_file_has_no_map(void **state)
{
    (void)state;
    pairs = snapshot_pairs_counted(3000, 100);
    snapshot_file_make(&file, &pairs, &info);
    files_flip_bit(file.path, info.file_bytes / 2, 3);
    assert_int_equal(open_map(), STELE_CORRUPT);
    files_flip_bit(file.path, info.file_bytes / 2, 3);
    read_fails(5, EIO);
    assert_int_equal(open_map(), STELE_IO);
    assert_int_equal(open_map(), STELE_OK);
}

static void a_block_that_rots_later_is_noticed_when_it_is_entered(void **state)
{
    (void)state;
    open_over(snapshot_pairs_counted(3000, 100));
    assert_int_equal(seek(key_of(0)), STELE_OK);
    files_flip_bit(file.path, FIRST_BLOCK + 1000, 0);
    assert_int_equal(next(), STELE_OK); /* It is in memory. */
    assert_int_equal(seek(key_of(2999)), STELE_OK);
    assert_int_equal(seek(key_of(1)), STELE_CORRUPT);
    assert_non_null(strstr(error.message, SNAPSHOT_FILE_NAME
                           ": offset 64: the checksum of the block does not "
                           "match"));
    files_flip_bit(file.path, FIRST_BLOCK + 1000, 0);
    assert_int_equal(seek(key_of(1)), STELE_OK);
    assert_entry(1);
}

static void a_block_that_is_replaced_by_a_good_one_is_noticed(void **state)
{
    uint8_t *bytes;
    size_t size;

    (void)state;
    open_over(snapshot_pairs_counted(3000, 100));
    bytes = files_read(file.path, &size);
    bytes[FIRST_BLOCK + 1000]++;
    reseal_snapshot_block(bytes, size, FIRST_BLOCK);
    files_write_at(file.path, 0, bytes, size);
    free(bytes);
    assert_int_equal(seek(key_of(0)), STELE_CORRUPT);
    assert_non_null(
        strstr(error.message, "another one than when the file was"));
}

static void a_file_that_is_cut_is_noticed(void **state)
{
    (void)state;
    open_over(snapshot_pairs_counted(3000, 100));
    files_truncate(file.path, info.file_bytes / 2);
    assert_int_equal(seek(key_of(2999)), STELE_CORRUPT);
    assert_int_equal(seek(key_of(0)), STELE_OK);
}

static void a_cursor_stays_where_it_is_when_a_read_fails(void **state)
{
    size_t last = 0;

    (void)state;
    open_over(snapshot_pairs_counted(3000, 100));
    assert_int_equal(seek(key_of(0)), STELE_OK);
    /* To the end of the first block. */
    for (const uint64_t reads = io_fault_calls(IO_FAULT_READ);
         io_fault_calls(IO_FAULT_READ) == reads; last++) {
        assert_int_equal(next(), STELE_OK);
    }
    last--;
    assert_int_equal(prev(), STELE_OK);
    assert_entry(last);
    for (uint64_t after = 0; after < 2; after++) {
        read_fails(after, EIO);
        assert_int_equal(next(), STELE_IO);
        assert_int_equal(next(), STELE_OK);
        assert_entry(last + 1);
        read_fails(after, EIO);
        assert_int_equal(prev(), STELE_IO);
        assert_int_equal(prev(), STELE_OK);
        assert_entry(last);
        read_fails(after, EIO);
        assert_int_equal(seek(key_of(2999)), STELE_IO);
        assert_int_equal(prev(), STELE_OK);
        assert_entry(last - 1);
        assert_int_equal(next(), STELE_OK);
    }
    /* One that came, and was another one than it should be. */
    assert_int_equal(seek(key_of(1)), STELE_OK);
    files_flip_bit(file.path, info.file_bytes - SNAPSHOT_FOOTER_BYTES - 1, 0);
    assert_int_equal(seek(key_of(2999)), STELE_CORRUPT);
    assert_int_equal(next(), STELE_OK);
    assert_entry(2);
}

#define MAP_TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        MAP_TEST(an_empty_snapshot_has_nothing_anywhere),
        MAP_TEST(a_walk_from_either_end_meets_every_entry),
        MAP_TEST(every_key_and_its_neighbourhood_is_found),
        MAP_TEST(random_moves_are_those_of_a_sorted_array),
        MAP_TEST(behind_the_end_a_cursor_must_be_led_back),
        MAP_TEST(the_file_may_lose_its_name),
        MAP_TEST(a_cursor_keeps_its_map),
        MAP_TEST(a_block_is_read_once_while_the_cursor_is_in_it),
        MAP_TEST(a_damaged_file_has_no_map),
        MAP_TEST(a_block_that_rots_later_is_noticed_when_it_is_entered),
        MAP_TEST(a_block_that_is_replaced_by_a_good_one_is_noticed),
        MAP_TEST(a_file_that_is_cut_is_noticed),
        MAP_TEST(a_cursor_stays_where_it_is_when_a_read_fails),
    };

    run_seed();
    return cmocka_run_group_tests_name("snapshot/map", tests, NULL, NULL);
}
