/*
 * tests/test_failures_lengths.c -- lengths and limits that stopped other systems,
 * or that one side of them took and the other refused.
 *
 * Each test stands for a line of public reports, which its comment names. A lie
 * is sealed again (tests/lib/reseal.h), so that it is really believed.
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
#include "tests/lib/reseal.h"
#include "tests/lib/store_dir.h"

enum { SCAN_CHUNK_BYTES = 1 << 20 };

/* ---- A small vocabulary ------------------------------------------------------ */

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

/* ---- Lengths that lie ----------------------------------------------------------------- */

/* The allocations of the engine (tests/CMakeLists.txt). */
void *__real_malloc(size_t bytes);
void *__real_calloc(size_t count, size_t bytes);
void *__real_realloc(void *old, size_t bytes);
void *__wrap_malloc(size_t bytes);
void *__wrap_calloc(size_t count, size_t bytes);
void *__wrap_realloc(void *old, size_t bytes);

static size_t largest_allocation;
static uint64_t allocations_left = UINT64_MAX; /* Then one fails. */

/* Whether there is memory for this one. */
static bool allocation_works(size_t bytes)
{
    if (bytes > largest_allocation) {
        largest_allocation = bytes;
    }
    return allocations_left == UINT64_MAX || allocations_left-- != 0;
}

void *__wrap_malloc(size_t bytes)
{
    return allocation_works(bytes) ? __real_malloc(bytes) : NULL;
}

void *__wrap_calloc(size_t count, size_t bytes)
{
    return allocation_works(count * bytes) ? __real_calloc(count, bytes) : NULL;
}

void *__wrap_realloc(void *old, size_t bytes)
{
    return allocation_works(bytes) ? __real_realloc(old, bytes) : NULL;
}

/* A length of this many bits that is not the right one. */
static const uint64_t lies[] = {0,
                                1,
                                55,
                                LETTERS_VALUE_BYTES - 1,
                                LETTERS_SEGMENT_BYTES,
                                INT32_MAX,
                                UINT64_C(1) << 31,
                                UINT32_MAX,
                                UINT64_C(1) << 32,
                                UINT64_C(13000000000000000),
                                INT64_MAX,
                                UINT64_C(1) << 63,
                                UINT64_MAX - 8191,
                                UINT64_MAX - 4096,
                                UINT64_MAX - 127,
                                UINT64_MAX};

enum { LIES = sizeof lies / sizeof *lies };

/* Opening takes what an honest store takes, and a chunk to scan with. */
static void assert_allocations_bounded(size_t honest)
{
    if (largest_allocation > honest + SCAN_CHUNK_BYTES) {
        fail_msg("%zu bytes at once, %zu without the lie", largest_allocation,
                 honest);
    }
    largest_allocation = 0;
}

static size_t measure_honest_open(void)
{
    size_t honest;

    largest_allocation = 0;
    store_dir_open(&dir);
    store_dir_assert_verifies(&dir);
    store_dir_kill(&dir);
    honest = largest_allocation;
    largest_allocation = 0;
    letters_restore(&dir);
    return honest;
}

static void lie_in_unit(uint64_t offset, uint64_t previous, size_t field,
                        size_t width, uint64_t value)
{
    struct reseal_unit unit;

    reseal_unit_begin(&unit, at(SEGMENT_1), offset, previous);
    for (size_t byte = 0; byte < width; byte++) {
        unit.bytes[field + byte] = (uint8_t)(value >> 8 * byte);
    }
    reseal_unit_end(&unit);
}

/* etcd#14098: a length field said 1.3e16, and was believed. */
static void lengths_of_a_unit_or_record_are_bounded_before_any_allocation(
    void **state)
{
    static const struct {
        size_t field;
        size_t width;
    } fields[] = {{RESEAL_UNIT_BODY_BYTES, 8},
                  {RESEAL_RECORD + RESEAL_RECORD_BODY_BYTES, 4}};
    size_t honest;

    (void)state;
    letters_leave_in_flight(&dir, "b");
    honest = measure_honest_open();
    for (size_t field = 0; field < 2; field++) {
        for (size_t lie = 0; lie < LIES; lie++) {
            letters_restore(&dir);
            lie_in_unit(LETTERS_UNIT_2, LETTERS_UNIT_1, fields[field].field,
                        fields[field].width, lies[lie]);
            letters_assert_opens(&dir, 1, 'C');
            assert_allocations_bounded(honest);
        }
    }
}

/* The same in what was acknowledged. */
static void a_lying_length_in_an_acknowledged_unit_is_damage(void **state)
{
    size_t honest;

    (void)state;
    letters_leave_acknowledged(&dir);
    honest = measure_honest_open();
    for (size_t lie = 0; lie < LIES; lie++) {
        letters_restore(&dir);
        lie_in_unit(LETTERS_UNIT_2, LETTERS_UNIT_1, RESEAL_UNIT_BODY_BYTES, 8,
                    lies[lie]);
        store_dir_assert_refused(&dir, STELE_CORRUPT,
                                 "recover: row D: " SEGMENT_1
                                 ": offset 8192: unit 2 is damaged, "
                                 "but ANCHOR names unit 3 as durable");
        assert_allocations_bounded(honest);
    }
}

/* Where the lengths of the operations stand: TABLE "t", then PUT. */
static const struct {
    size_t field;
    size_t width;
    uint64_t honest;
} op_lengths[] = {{RESEAL_OPS + 1, 1, 1}, /* Of the table's name. */
                  {RESEAL_OPS + 4, 2, 1}, /* Of the key. */
                  {RESEAL_OPS + 6, 4, LETTERS_VALUE_BYTES}, /* Of the value. */
                  {RESEAL_OPS + 4, 6, 1 | (uint64_t)LETTERS_VALUE_BYTES << 16}};

/* A batch that every checksum calls intact, but no writer of ours wrote. */
static void lengths_inside_a_whole_record_are_bounded_too(void **state)
{
    size_t honest;

    (void)state;
    letters_leave_acknowledged(&dir);
    honest = measure_honest_open();
    for (size_t op = 0; op < sizeof op_lengths / sizeof *op_lengths; op++) {
        for (size_t lie = 0; lie < LIES; lie++) {
            const uint64_t mask = (UINT64_C(1) << 8 * op_lengths[op].width) - 1;
            struct wal_position end;

            if ((lies[lie] & mask) == op_lengths[op].honest) {
                continue;
            }
            letters_restore(&dir);
            /* The last, and ANCHOR no longer tells it from another. */
            lie_in_unit(LETTERS_UNIT_3, LETTERS_UNIT_2, op_lengths[op].field,
                        op_lengths[op].width, lies[lie]);
            files_read_at(at("ANCHOR"), 32, end.uuid.bytes, WAL_UUID_BYTES);
            end = wal_position_origin(&end.uuid, 0);
            reseal_anchor_durable(at("ANCHOR"), &end);
            dir.error = (struct stele_error){0};
            assert_int_equal(store_dir_try_open(&dir, STELE_OPEN_EXISTING),
                             STELE_CORRUPT);
            store_dir_assert_error(
                &dir,
                "open %s: replay: " SEGMENT_1 ": offset 12288: unit 3: record "
                "with LSN 3: operation %d is malformed",
                dir.path, strstr(dir.error.message, "operation 1") ? 1 : 0);
            assert_allocations_bounded(honest);
        }
    }
}

static void lengths_of_segments_are_bounded_too(void **state)
{
    size_t honest;

    (void)state;
    letters_leave_acknowledged(&dir);
    honest = measure_honest_open();
    for (size_t lie = 0; lie < LIES; lie++) {
        if (lies[lie] == LETTERS_SEGMENT_BYTES) {
            continue;
        }
        reseal_segment_u64(at(SEGMENT_1), 40, lies[lie]);
        store_dir_assert_refused(
            &dir, STELE_CORRUPT,
            "recover: row E: " SEGMENT_1
            ": the file has 65536 bytes, expected %" PRIu64,
            lies[lie]);
        letters_restore(&dir);
        reseal_anchor_u64(at("ANCHOR"), 104, lies[lie]);
        store_dir_assert_refused(
            &dir, STELE_CORRUPT,
            "row E: ANCHOR: offset 104: segments of %" PRIu64
            " bytes, expected 16384 to 1073741824, a multiple of 4096",
            lies[lie]);
        letters_restore(&dir);
        assert_allocations_bounded(honest);
    }
    letters_assert_opens(&dir, 3, 'A');
}

/* ANCHOR promises a room that the prepared segment does not have. */
static void a_segment_of_another_length_is_not_written_to(void **state)
{
    (void)state;
    store_dir_open(&dir);
    letters_put(&dir, 'a');
    assert_int_equal(store_dir_try_put_bytes(&dir, "fill", 52 << 10), STELE_OK);
    assert_int_equal(store_prepare_segment(dir.store, &dir.error), STELE_OK);
    store_dir_close(&dir);
    reseal_anchor_u64(at("ANCHOR"), 104, 2 * LETTERS_SEGMENT_BYTES);
    store_dir_open(&dir);
    assert_int_equal(store_dir_try_put_bytes(&dir, "big", 100 << 10), STELE_OK);
    assert_int_equal(store_dir_stats(&dir).segment_current, 3);
    store_dir_kill(&dir);
    store_dir_open(&dir);
    letters_assert(&dir, 1);
    assert_int_equal(store_dir_try_get(&dir, "big"), STELE_OK);
    store_dir_assert_verifies(&dir);
}

/* ---- No memory -------------------------------------------------------------------- */

enum { ALLOCATIONS_MAX = 2000 };

/* bbolt PR725: a failed open left things behind. Here the n-th allocation fails,
 * for n = 1, 2, ...; what is left of the memory, the address sanitizer sees. */
static void an_open_without_memory_leaves_nothing_behind(void **state)
{
    static const enum stele_open_mode modes[] = {STELE_OPEN_READ_ONLY,
                                                 STELE_OPEN_EXISTING};
    size_t descriptors;

    (void)state;
    letters_leave_in_flight(&dir, "bc");
    descriptors = files_count("/proc/self/fd", "");
    for (size_t mode = 0; mode < 2; mode++) {
        enum stele_status status = STELE_NO_MEMORY;

        for (uint64_t count = 0; status != STELE_OK; count++) {
            assert_true(count < ALLOCATIONS_MAX);
            allocations_left = count;
            status = store_dir_try_open(&dir, modes[mode]);
            allocations_left = UINT64_MAX;
            if (status == STELE_OK && store_dir_stats(&dir).tail_unproven) {
                store_dir_kill(&dir); /* A reader that shows less says so. */
                status = STELE_NO_MEMORY;
            }
            assert_true(status == STELE_OK || status == STELE_NO_MEMORY);
            if (status != STELE_OK) {
                assert_int_equal(files_count("/proc/self/fd", ""), descriptors);
            }
        }
        letters_assert(&dir, 3);
        assert_false(store_dir_stats(&dir).index_rebuilt);
        store_dir_kill(&dir);
    }
}

/* ---- Limits -------------------------------------------------------------------------- */

enum {
    LARGE_SEGMENT_BYTES = 32 << 20,
    VALUE_LIMIT = 16 << 20,
    OPS_LIMIT = 1000
};

/* Letters of a table's name, a key, a value. */
static char *bytes_of(size_t bytes)
{
    char *text = malloc(bytes + 1);

    assert_non_null(text);
    memset(text, 'x', bytes);
    text[bytes] = '\0';
    return text;
}

/* Commit a put of such sizes, or fail to, with the message. */
static enum stele_status put_sized(size_t table_bytes, size_t key_bytes,
                                   size_t value_bytes)
{
    char *table = bytes_of(table_bytes);
    char *key = bytes_of(key_bytes);
    char *value = bytes_of(value_bytes);
    const enum stele_status status = stele_put(
        dir.store, table, key, key_bytes, value, value_bytes, NULL, &dir.error);

    free(table);
    free(key);
    free(value);
    return status;
}

static void assert_sized_there(size_t table_bytes, size_t key_bytes,
                               size_t value_bytes)
{
    char *table = bytes_of(table_bytes);
    char *key = bytes_of(key_bytes);
    char *value = bytes_of(value_bytes);
    struct stele_view *view;
    struct stele_value found;

    assert_int_equal(stele_view_open(dir.store, &view, &dir.error), STELE_OK);
    if (stele_view_get(view, table, key, key_bytes, &found, &dir.error) !=
        STELE_OK) {
        fail_msg("%zu, %zu, %zu: %s", table_bytes, key_bytes, value_bytes,
                 dir.error.message);
    }
    assert_int_equal(found.bytes, value_bytes);
    assert_memory_equal(found.data, value, value_bytes);
    stele_view_close(view);
    free(table);
    free(key);
    free(value);
}

/* From the log, and then from the index alone. */
static void reopen(int from)
{
    store_dir_kill(&dir);
    store_dir_open(&dir);
    if (from == 1) {
        assert_int_equal(stele_checkpoint(dir.store, &dir.error), STELE_OK);
        store_dir_kill(&dir);
        store_dir_open(&dir);
        assert_int_equal(store_dir_stats(&dir).recovery_replayed_records, 0);
    }
    store_dir_assert_verifies(&dir);
}

/* etcd#14025: the writer accepted what the reader refused. */
static void what_is_written_at_a_limit_is_read_and_one_more_is_not_written(
    void **state)
{
    static const struct {
        size_t table;
        size_t key;
        size_t value;
    } sizes[] = {{63, 447, 0}, {1, 509, 1}, {63, 1, 1}, {2, 2, VALUE_LIMIT}};

    (void)state;
    dir.tuning.segment_bytes = LARGE_SEGMENT_BYTES;
    dir.options.value_bytes_max = VALUE_LIMIT;
    dir.options.index_map_bytes = 256 << 20;
    store_dir_open(&dir);
    for (size_t index = 0; index < sizeof sizes / sizeof *sizes; index++) {
        if (put_sized(sizes[index].table, sizes[index].key,
                      sizes[index].value) != STELE_OK) {
            fail_msg("%s", dir.error.message);
        }
    }
    assert_int_equal(put_sized(64, 1, 1), STELE_TOO_BIG);
    store_dir_assert_error(&dir, "the table name has more than 63 bytes");
    assert_int_equal(put_sized(63, 448, 1), STELE_TOO_BIG);
    assert_int_equal(put_sized(1, 510, 1), STELE_TOO_BIG);
    store_dir_assert_error(&dir,
                           "the key has 510 bytes, in table x at most 509 fit");
    assert_int_equal(put_sized(1, 1, VALUE_LIMIT + 1), STELE_TOO_BIG);
    store_dir_assert_error(
        &dir, "the value has 16777217 bytes, at most 16777216 are possible");
    for (int from = 0; from < 2; from++) {
        reopen(from);
        for (size_t index = 0; index < sizeof sizes / sizeof *sizes; index++) {
            assert_sized_there(sizes[index].table, sizes[index].key,
                               sizes[index].value);
        }
        /* Not a byte of what was refused is there. */
        assert_int_equal(store_dir_stats(&dir).lsn_visible, 4);
    }
    /* An option bounds what is written from now on, not what is there. */
    store_dir_kill(&dir);
    dir.options.value_bytes_max = 1;
    store_dir_open(&dir);
    assert_sized_there(2, 2, VALUE_LIMIT);
    assert_int_equal(put_sized(1, 1, 2), STELE_TOO_BIG);
    store_dir_assert_error(
        &dir, "commit: a value has 2 bytes, at most 1 are allowed");
}

/* So many puts, the last one's value as long as to make the record `bytes`. */
static enum stele_status commit_sized(uint32_t ops, uint64_t bytes)
{
    struct stele_batch *batch;
    enum stele_status status;

    assert_int_equal(stele_batch_create(&batch, &dir.error), STELE_OK);
    for (uint32_t op = 0; op < ops; op++) {
        char *value = NULL;
        uint64_t value_bytes = 0;

        if (op == ops - 1 && bytes > 0) { /* Kind, lengths and key: 11. */
            value_bytes = bytes - stele_batch_bytes(batch) - 11 -
                          (ops == 1 ? 3 : 0); /* The table's name. */
            value = bytes_of(value_bytes);
        }
        assert_int_equal(stele_batch_put(batch, "t", &op, sizeof op,
                                         value == NULL ? "" : value,
                                         value_bytes, &dir.error),
                         STELE_OK);
        free(value);
    }
    if (bytes > 0) {
        assert_int_equal(stele_batch_bytes(batch), bytes);
    }
    status = stele_commit(dir.store, batch, STELE_DURABLE, NULL, &dir.error);
    stele_batch_destroy(batch);
    return status;
}

static void a_batch_at_a_limit_is_read_and_one_more_is_not_written(void **state)
{
    const uint64_t bytes_max = LETTERS_SEGMENT_BYTES - 8192;

    (void)state;
    dir.options.batch_ops_max = OPS_LIMIT;
    store_dir_open(&dir);
    assert_int_equal(commit_sized(OPS_LIMIT, 0), STELE_OK);
    assert_int_equal(commit_sized(OPS_LIMIT + 1, 0), STELE_TOO_BIG);
    store_dir_assert_error(
        &dir,
        "commit: the batch has 1001 operations, at most 1000 are allowed");
    assert_int_equal(commit_sized(1, bytes_max), STELE_OK);
    assert_int_equal(commit_sized(2, bytes_max), STELE_OK);
    assert_int_equal(commit_sized(1, bytes_max + 1), STELE_TOO_BIG);
    store_dir_assert_error(&dir,
                           "commit: the record has 57345 bytes, at most 57344 "
                           "fit into a segment");
    for (int from = 0; from < 2; from++) {
        struct stele_view *view;
        uint64_t count;

        reopen(from);
        assert_int_equal(store_dir_stats(&dir).lsn_visible, 3);
        assert_int_equal(stele_view_open(dir.store, &view, &dir.error),
                         STELE_OK);
        assert_int_equal(stele_table_count(view, "t", &count, &dir.error),
                         STELE_OK);
        assert_int_equal(count, OPS_LIMIT);
        stele_view_close(view);
    }
}

#define STORE_TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        STORE_TEST(
            lengths_of_a_unit_or_record_are_bounded_before_any_allocation),
        STORE_TEST(a_lying_length_in_an_acknowledged_unit_is_damage),
        STORE_TEST(lengths_inside_a_whole_record_are_bounded_too),
        STORE_TEST(lengths_of_segments_are_bounded_too),
        STORE_TEST(a_segment_of_another_length_is_not_written_to),
        STORE_TEST(an_open_without_memory_leaves_nothing_behind),
        STORE_TEST(
            what_is_written_at_a_limit_is_read_and_one_more_is_not_written),
        STORE_TEST(a_batch_at_a_limit_is_read_and_one_more_is_not_written),
    };

    io_fault_pretend_syncs();
    return cmocka_run_group_tests_name("failures: lengths", tests, NULL, NULL);
}
