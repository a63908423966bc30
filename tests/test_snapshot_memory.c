/*
 * tests/test_snapshot_memory.c -- snapshot/ while the n-th allocation fails, for
 * n = 1, 2, ... until none does; and how much memory it takes when all work.
 *
 * Leaks are found by running this under the address sanitizer.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <malloc.h>
#include <stdlib.h>
#include <string.h>

#include "snapshot/map.h"
#include "tests/lib/snapshot_file.h"

enum {
    ALLOCATIONS_MAX = 200, /* More than any of these makes. */
    LARGE_BYTES = 4 << 20,
    /* A block, offsets of its entries, and what is small. */
    MEMORY_BYTES_MAX = 2 * SNAPSHOT_BLOCK_BYTES + (64 << 10),
};

/* ---- Allocations (tests/CMakeLists.txt) ------------------------------------------ */

void *__real_malloc(size_t bytes);
void *__real_calloc(size_t count, size_t bytes);
void *__real_realloc(void *old, size_t bytes);
void *__real_aligned_alloc(size_t alignment, size_t bytes);
void __real_free(void *old);
void *__wrap_malloc(size_t bytes);
void *__wrap_calloc(size_t count, size_t bytes);
void *__wrap_realloc(void *old, size_t bytes);
void *__wrap_aligned_alloc(size_t alignment, size_t bytes);
void __wrap_free(void *old);

static uint64_t allocations_left = UINT64_MAX; /* Then one fails. */
static bool struck;
static size_t held_bytes;
static size_t held_bytes_most;

static bool allocation_fails(void)
{
    if (allocations_left == UINT64_MAX || allocations_left-- != 0) {
        return false;
    }
    struck = true;
    return true;
}

static void *taken(void *memory)
{
    held_bytes += malloc_usable_size(memory);
    if (held_bytes > held_bytes_most) {
        held_bytes_most = held_bytes;
    }
    return memory;
}

void *__wrap_malloc(size_t bytes)
{
    return allocation_fails() ? NULL : taken(__real_malloc(bytes));
}

void *__wrap_calloc(size_t count, size_t bytes)
{
    return allocation_fails() ? NULL : taken(__real_calloc(count, bytes));
}

void *__wrap_realloc(void *old, size_t bytes)
{
    if (allocation_fails()) {
        return NULL;
    }
    held_bytes -= malloc_usable_size(old);
    return taken(__real_realloc(old, bytes));
}

void *__wrap_aligned_alloc(size_t alignment, size_t bytes)
{
    return allocation_fails() ? NULL
                              : taken(__real_aligned_alloc(alignment, bytes));
}

void __wrap_free(void *old)
{
    held_bytes -= malloc_usable_size(old);
    __real_free(old);
}

/* ---- A small vocabulary ------------------------------------------------------------ */

static struct snapshot_file file;
static struct snapshot_pairs pairs;
static struct stele_error error;

static int setup(void **state)
{
    (void)state;
    snapshot_file_setup(&file);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    snapshot_pairs_free(&pairs);
    snapshot_file_teardown(&file);
    return 0;
}

/* Small entries, a large one, small ones. */
static void prepare_pairs(size_t count)
{
    pairs = snapshot_pairs_counted(count, 100);
    pairs.entries[count / 2].stored.data = realloc(
        (void *)(uintptr_t)pairs.entries[count / 2].stored.data, LARGE_BYTES);
    assert_non_null(pairs.entries[count / 2].stored.data);
    memset((void *)(uintptr_t)pairs.entries[count / 2].stored.data, 0,
           LARGE_BYTES);
    pairs.entries[count / 2].stored.size = LARGE_BYTES;
}

static enum stele_status write_it(void)
{
    struct snapshot_writer *writer = NULL;
    struct snapshot_info info;
    bool names_unknown;
    enum stele_status status = snapshot_writer_create(
        file.dir, snapshot_file_uuid, SNAPSHOT_FILE_LSN, &writer, &error);

    for (size_t index = 0; status == STELE_OK && index < pairs.count; index++) {
        status = snapshot_writer_add(writer, pairs.entries[index].key,
                                     pairs.entries[index].stored, &error);
    }
    if (status == STELE_OK) {
        status = snapshot_writer_finish(writer, &snapshot_file_totals,
                                        snapshot_file_position, &info, &error);
    }
    if (status == STELE_OK) {
        status = snapshot_writer_publish(writer, &names_unknown, &error);
    }
    snapshot_writer_destroy(writer);
    return status;
}

static enum stele_status read_it(void)
{
    const enum stele_status status = snapshot_file_scan(&file, &error);

    return status == STELE_NOT_FOUND ? STELE_OK : status;
}

static enum stele_status look_it_up(void)
{
    struct snapshot_map *map = NULL;
    struct snapshot_cursor *cursor = NULL;
    struct snapshot_entry entry;
    enum stele_status status =
        snapshot_map_open(file.dir, SNAPSHOT_FILE_LSN, NULL, &map, &error);

    if (status == STELE_OK) {
        status = snapshot_cursor_open(map, &cursor, &error);
    }
    for (size_t index = 0; status == STELE_OK && index < pairs.count;
         index += 97) {
        status = snapshot_cursor_seek(cursor, pairs.entries[index].key, &entry,
                                      &error);
    }
    snapshot_cursor_close(cursor);
    snapshot_map_unref(map);
    return status;
}

/* How often it failed before it did not. */
static unsigned starve(enum stele_status (*step)(void))
{
    for (unsigned after = 0; after < ALLOCATIONS_MAX; after++) {
        enum stele_status status;

        struck = false;
        allocations_left = after;
        status = step();
        allocations_left = UINT64_MAX;
        if (!struck) {
            assert_int_equal(status, STELE_OK);
            return after;
        }
        assert_int_equal(status, STELE_NO_MEMORY);
        assert_non_null(strstr(error.message, "memory"));
        assert_int_equal(files_count(file.dir_path, ".tmp"), 0);
    }
    fail();
    return 0;
}

/* What it takes at most, beyond what is there already. */
static size_t memory_of(enum stele_status (*step)(void))
{
    const size_t before = held_bytes;

    held_bytes_most = held_bytes;
    assert_int_equal(step(), STELE_OK);
    assert_int_equal(held_bytes, before);
    return held_bytes_most - before;
}

/* ---- Tests --------------------------------------------------------------------------- */

static void whatever_finds_no_memory_says_so(void **state)
{
    (void)state;
    prepare_pairs(2000);
    assert_true(starve(write_it) >= 5);
    assert_true(starve(read_it) >= 6);
    assert_true(starve(look_it_up) >= 10);
    snapshot_file_assert(&file, &pairs);
}

static void memory_is_one_block_however_long_the_file(void **state)
{
    (void)state;
    pairs = snapshot_pairs_counted(100000, 100);
    assert_true(memory_of(write_it) < MEMORY_BYTES_MAX);
    assert_true(files_size(file.path) > 10 << 20);
    assert_true(memory_of(read_it) < MEMORY_BYTES_MAX);
    /* And the first keys: of 173 blocks, little. */
    assert_true(memory_of(look_it_up) < MEMORY_BYTES_MAX);
}

static void a_large_entry_is_the_larger_block(void **state)
{
    (void)state;
    prepare_pairs(2000);
    assert_true(memory_of(write_it) < LARGE_BYTES + MEMORY_BYTES_MAX);
    assert_true(memory_of(read_it) < LARGE_BYTES + MEMORY_BYTES_MAX);
}

static void a_large_entry_gives_its_memory_back(void **state)
{
    struct snapshot_reader *reader;
    struct snapshot_entry entry;
    size_t before;

    (void)state;
    prepare_pairs(10);
    assert_int_equal(write_it(), STELE_OK);
    before = held_bytes;
    assert_int_equal(snapshot_reader_open(file.dir, SNAPSHOT_FILE_LSN,
                                          SNAPSHOT_PUBLISHED, NULL, &reader,
                                          &error),
                     STELE_OK);
    for (size_t index = 0; index <= 6; index++) {
        assert_int_equal(snapshot_reader_next(reader, &entry, &error),
                         STELE_OK);
        assert_int_equal(held_bytes - before > LARGE_BYTES, index == 5);
    }
    snapshot_reader_close(reader);
}

/* Lengths are compared with what is there before memory is taken for them. */
static void a_length_that_lies_takes_no_memory(void **state)
{
    static const uint8_t lie[8] = {0, 0, 0, 1, 1, 0, 0, 0}; /* 16 MiB in 1. */

    size_t before;

    (void)state;
    pairs = snapshot_pairs_counted(3, 100);
    assert_int_equal(write_it(), STELE_OK);
    files_write_at(file.path, SNAPSHOT_HEADER_BYTES, lie, sizeof lie);
    before = held_bytes;
    held_bytes_most = held_bytes;
    assert_int_equal(snapshot_file_scan(&file, &error), STELE_CORRUPT);
    assert_true(held_bytes_most - before < SNAPSHOT_BLOCK_BYTES);
}

#define MEMORY_TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        MEMORY_TEST(whatever_finds_no_memory_says_so),
        MEMORY_TEST(memory_is_one_block_however_long_the_file),
        MEMORY_TEST(a_large_entry_is_the_larger_block),
        MEMORY_TEST(a_large_entry_gives_its_memory_back),
        MEMORY_TEST(a_length_that_lies_takes_no_memory),
    };

    return cmocka_run_group_tests_name("snapshot memory", tests, NULL, NULL);
}
