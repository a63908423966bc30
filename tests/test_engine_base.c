/*
 * tests/test_engine_base.c -- engine/base.h: an index and a snapshot of it are the
 * same base; what a base lends, and until when.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "engine/base.h"
#include "engine/limits.h"
#include "tests/lib/files.h"
#include "tests/lib/run.h"
#include "tests/lib/store_dir.h"
#include "tests/lib/store_snapshot.h"

enum {
    KEYS = 60,
    VALUE_BYTES = 5000, /* Some five blocks of a snapshot in all. */
    KEY_BYTES = 16,
};

static struct store_dir dir;
static struct base bases[2]; /* The index, and a snapshot of it. */
static struct stele_error error;

/* Keys 0, 2, 4, ... are there. */
static void full_key_of(unsigned key, struct full_key *full)
{
    char name[KEY_BYTES];

    snprintf(name, sizeof name, "k%04u", key);
    full_key_init(full, (struct bytes){"t", 1},
                  (struct bytes){name, strlen(name)});
}

static void open_snapshot(uint64_t lsn)
{
    struct io_dir *snapshot_dir;

    assert_int_equal(io_dir_open_in(dir.store->dir, STORE_SNAPSHOT_NAME,
                                    &snapshot_dir, &error),
                     STELE_OK);
    assert_int_equal(
        snapshot_map_open(snapshot_dir, lsn, NULL, &bases[1].snapshot, &error),
        STELE_OK);
    io_dir_close(snapshot_dir);
}

static int setup(void **state)
{
    (void)state;
    store_dir_make(&dir);
    store_dir_open(&dir);
    for (unsigned key = 0; key < KEYS; key += 2) {
        char name[KEY_BYTES];

        snprintf(name, sizeof name, "k%04u", key);
        assert_int_equal(
            store_dir_try_put_bytes(&dir, name, key == 0 ? 1 : VALUE_BYTES),
            STELE_OK);
    }
    memset(bases, 0, sizeof bases);
    open_snapshot(store_snapshot_take(dir.store));
    assert_int_equal(
        index_reader_acquire(dir.store->index, &bases[0].index, &error),
        STELE_OK);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    base_release(&bases[0]);
    base_release(&bases[1]);
    store_dir_remove(&dir);
    return 0;
}

/* ---- Lookups ----------------------------------------------------------------------- */

static void a_key_is_found_or_not_in_both(void **state)
{
    (void)state;
    for (unsigned key = 0; key <= KEYS; key++) {
        struct base_value found[2];
        struct full_key full;

        full_key_of(key, &full);
        for (int number = 0; number < 2; number++) {
            assert_int_equal(base_get(&bases[number], full_key_bytes(&full),
                                      &found[number], &error),
                             key % 2 == 0 && key < KEYS ? STELE_OK
                                                        : STELE_NOT_FOUND);
        }
        if (key % 2 == 0 && key < KEYS) {
            assert_true(found[0].lsn == found[1].lsn);
            assert_true(found[0].check == found[1].check);
            assert_int_equal(found[0].value.size, found[1].value.size);
            assert_memory_equal(found[0].value.data, found[1].value.data,
                                found[0].value.size);
        }
    }
}

/* Each is in another block than the one before. */
static void a_value_stays_until_the_base_is_released(void **state)
{
    struct base_value found[KEYS];
    uint8_t wanted[VALUE_BYTES];

    (void)state;
    memset(wanted, 'v', sizeof wanted);
    for (int number = 0; number < 2; number++) {
        for (unsigned key = 0; key < KEYS; key += 2) {
            struct full_key full;

            full_key_of(key * 38 % KEYS, &full);
            assert_int_equal(base_get(&bases[number], full_key_bytes(&full),
                                      &found[key], &error),
                             STELE_OK);
        }
        for (unsigned key = 0; key < KEYS; key += 2) {
            assert_memory_equal(found[key].value.data, wanted,
                                found[key].value.size);
        }
    }
}

static void what_is_not_borrowed_any_more_can_be_given_back(void **state)
{
    struct base *base = &bases[1];
    const struct base_kept *mark;
    struct base_value first;
    struct base_value second;
    struct full_key full;

    (void)state;
    full_key_of(2, &full);
    assert_int_equal(base_get(base, full_key_bytes(&full), &first, &error),
                     STELE_OK);
    mark = base->kept;
    assert_non_null(mark);
    full_key_of(4, &full);
    assert_int_equal(base_get(base, full_key_bytes(&full), &second, &error),
                     STELE_OK);
    assert_ptr_not_equal(base->kept, mark);
    base_keep_up_to(base, mark);
    assert_ptr_equal(base->kept, mark);
    assert_int_equal(((const char *)first.value.data)[VALUE_BYTES - 1], 'v');
    assert_int_equal(
        base_get(&bases[0], full_key_bytes(&full), &second, &error), STELE_OK);
    assert_null(bases[0].kept); /* An index lends its own pages. */
}

static void an_empty_base_has_nothing(void **state)
{
    struct base empty = {0};
    struct base_value found;

    (void)state;
    assert_true(base_is_empty(&empty));
    assert_false(base_is_empty(&bases[0]));
    assert_false(base_is_empty(&bases[1]));
    assert_int_equal(
        base_get(&empty, (struct bytes){"t\0k", 3}, &found, &error),
        STELE_NOT_FOUND);
    base_release(&empty);
    base_forsake(&empty);
}

static void a_snapshot_that_rots_is_corrupt_not_wrong(void **state)
{
    char path[FILES_PATH_BYTES];
    char expected[64];
    struct base_value found;
    struct full_key full;

    (void)state;
    store_snapshot_path(dir.path, snapshot_map_info(bases[1].snapshot)->lsn,
                        path);
    files_flip_bit(path, files_size(path) / 2, 0);
    for (unsigned key = 0; key < KEYS; key += 2) {
        enum stele_status status;

        full_key_of(key, &full);
        status = base_get(&bases[1], full_key_bytes(&full), &found, &error);
        if (status != STELE_OK) {
            assert_int_equal(status, STELE_CORRUPT);
            snprintf(expected, sizeof expected, "snapshot/%016" PRIx64 ".snap",
                     snapshot_map_info(bases[1].snapshot)->lsn);
            assert_non_null(strstr(error.message, strchr(expected, '/') + 1));
            return;
        }
    }
    fail_msg("no key was damaged");
}

static void an_entry_whose_check_fails_names_its_base(void **state)
{
    const struct base_entry entry = {.key = {"topics\0k", 8},
                                     .stored = {"0123456789abcdef", 16}};
    char expected[STELE_ERROR_MESSAGE_BYTES];
    struct base_value value;

    (void)state;
    assert_int_equal(base_entry_value(&bases[0], &entry, &value, &error),
                     STELE_CORRUPT);
    assert_string_equal(error.message,
                        "index: table \"topics\", key \"k\": check mismatch");
    assert_int_equal(base_entry_value(&bases[1], &entry, &value, &error),
                     STELE_CORRUPT);
    snprintf(expected, sizeof expected,
             "snapshot/%016" PRIx64
             ".snap: table \"topics\", key \"k\": check mismatch",
             snapshot_map_info(bases[1].snapshot)->lsn);
    assert_string_equal(error.message, expected);
}

/* ---- Cursors ------------------------------------------------------------------------- */

static struct base_cursor *cursors[2];

static void open_cursors(void)
{
    for (int number = 0; number < 2; number++) {
        assert_int_equal(
            base_cursor_open(&bases[number], &cursors[number], &error),
            STELE_OK);
    }
}

static void close_cursors(void)
{
    base_cursor_close(cursors[0]);
    base_cursor_close(cursors[1]);
    base_cursor_close(NULL);
}

/* Both say the same; the status. */
static enum stele_status same(const enum stele_status statuses[2],
                              const struct base_entry entries[2])
{
    assert_int_equal(statuses[0], statuses[1]);
    if (statuses[0] == STELE_OK) {
        assert_int_equal(bytes_compare(entries[0].key, entries[1].key), 0);
        assert_int_equal(bytes_compare(entries[0].stored, entries[1].stored),
                         0);
    }
    return statuses[0];
}

typedef enum stele_status seek_call(struct base_cursor *cursor,
                                    struct bytes key, struct base_entry *entry,
                                    struct stele_error *error_out);
typedef enum stele_status step_call(struct base_cursor *cursor,
                                    struct base_entry *entry,
                                    struct stele_error *error_out);

static enum stele_status seek_both(seek_call *call, struct bytes key)
{
    struct base_entry entries[2];
    enum stele_status statuses[2];

    for (int number = 0; number < 2; number++) {
        statuses[number] = call(cursors[number], key, &entries[number], &error);
    }
    return same(statuses, entries);
}

static enum stele_status step_both(step_call *call)
{
    struct base_entry entries[2];
    enum stele_status statuses[2];

    for (int number = 0; number < 2; number++) {
        statuses[number] = call(cursors[number], &entries[number], &error);
    }
    return same(statuses, entries);
}

static void both_walk_over_the_same_entries(void **state)
{
    unsigned count = 1;

    (void)state;
    open_cursors();
    assert_int_equal(seek_both(base_cursor_seek, (struct bytes){"\x01", 1}),
                     STELE_OK);
    while (step_both(base_cursor_next) == STELE_OK) {
        count++;
    }
    assert_int_equal(count, KEYS / 2 + 1); /* And the table's row. */
    assert_int_equal(
        seek_both(base_cursor_seek_before, (struct bytes){"\xff", 1}),
        STELE_OK);
    while (step_both(base_cursor_prev) == STELE_OK) {
        count--;
    }
    assert_int_equal(count, 1);
    close_cursors();
}

static void both_seek_alike_and_turn_round_alike(void **state)
{
    struct random_source numbers = run_random(1);

    (void)state;
    open_cursors();
    for (int round = 0; round < 2000; round++) {
        struct full_key full;

        full_key_of((unsigned)random_below(&numbers, KEYS + 2), &full);
        if (seek_both(random_one_in(&numbers, 2) ? base_cursor_seek
                                                 : base_cursor_seek_before,
                      full_key_bytes(&full)) != STELE_OK) {
            assert_int_equal(step_both(base_cursor_next), STELE_INVALID);
            continue;
        }
        while (!random_one_in(&numbers, 6) &&
               step_both(random_one_in(&numbers, 2)
                             ? base_cursor_next
                             : base_cursor_prev) == STELE_OK) {
        }
    }
    close_cursors();
}

#define BASE_TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        BASE_TEST(a_key_is_found_or_not_in_both),
        BASE_TEST(a_value_stays_until_the_base_is_released),
        BASE_TEST(what_is_not_borrowed_any_more_can_be_given_back),
        BASE_TEST(an_empty_base_has_nothing),
        BASE_TEST(a_snapshot_that_rots_is_corrupt_not_wrong),
        BASE_TEST(an_entry_whose_check_fails_names_its_base),
        BASE_TEST(both_walk_over_the_same_entries),
        BASE_TEST(both_seek_alike_and_turn_round_alike),
    };

    run_seed();
    return cmocka_run_group_tests_name("engine/base", tests, NULL, NULL);
}
