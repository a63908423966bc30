/* tests/lib/snapshot_file.c -- see tests/lib/snapshot_file.h. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/lib/io_fault.h"
#include "tests/lib/snapshot_file.h"
#include "tests/lib/temp_dir.h"

const uint8_t snapshot_file_uuid[SNAPSHOT_UUID_BYTES] = {
    0xa0, 0xa1, 0xa2, 0xa3, 0xa4, 0xa5, 0xa6, 0xa7,
    0xa8, 0xa9, 0xaa, 0xab, 0xac, 0xad, 0xae, 0xaf,
};
const struct snapshot_totals snapshot_file_totals = {
    .tables = 2,
    .keys = 3,
    .sum = UINT64_C(0x0102030405060708)};
const uint8_t snapshot_file_position[SNAPSHOT_POSITION_BYTES] = {
    0xc0, 0xc1, 0xc2, [SNAPSHOT_POSITION_BYTES - 1] = 0xcf};

/* ---- Entries -------------------------------------------------------------------- */

static struct bytes make_bytes(struct random_source *random, size_t size,
                               uint64_t letters)
{
    uint8_t *data = malloc(size + 1);

    assert_non_null(data);
    for (size_t index = 0; index < size; index++) {
        data[index] = (uint8_t)random_below(random, letters);
    }
    return (struct bytes){data, size};
}

static int compare_keys(const void *left, const void *right)
{
    return bytes_compare(((const struct snapshot_entry *)left)->key,
                         ((const struct snapshot_entry *)right)->key);
}

static void free_entry(const struct snapshot_entry *entry)
{
    free((void *)(uintptr_t)entry->key.data);
    free((void *)(uintptr_t)entry->stored.data);
}

static size_t random_stored_bytes(struct random_source *random,
                                  size_t key_bytes)
{
    /* With which the entry is just as large as a block. */
    const size_t border =
        SNAPSHOT_BLOCK_BYTES - SNAPSHOT_ENTRY_HEADER_BYTES - key_bytes;

    switch (random_below(random, 20)) {
    case 0:
        return border - 2 + (size_t)random_below(random, 5);
    case 1:
        return (size_t)random_below(random, 200000);
    case 2:
    case 3:
        return 0;
    case 4:
    case 5:
    case 6:
        return (size_t)random_below(random, 8000);
    default:
        return (size_t)random_below(random, 200);
    }
}

struct snapshot_pairs snapshot_pairs_random(struct random_source *random,
                                            size_t count_max)
{
    struct snapshot_pairs pairs = {
        .entries = calloc(count_max + 1, sizeof *pairs.entries)};
    size_t kept = 0;

    assert_non_null(pairs.entries);
    for (; pairs.count < count_max; pairs.count++) {
        const size_t key_bytes =
            1 + (size_t)random_below(random, random_one_in(random, 8)
                                                 ? SNAPSHOT_KEY_BYTES_MAX
                                                 : 12);

        pairs.entries[pairs.count] = (struct snapshot_entry){
            .key = make_bytes(random, key_bytes,
                              random_one_in(random, 2) ? 3 : 256),
            .stored =
                make_bytes(random, random_stored_bytes(random, key_bytes), 256),
        };
    }
    qsort(pairs.entries, pairs.count, sizeof *pairs.entries, compare_keys);
    for (size_t index = 0; index < pairs.count; index++) {
        if (kept > 0 && compare_keys(&pairs.entries[kept - 1],
                                     &pairs.entries[index]) == 0) {
            free_entry(&pairs.entries[index]);
        } else {
            pairs.entries[kept++] = pairs.entries[index];
        }
    }
    pairs.count = kept;
    return pairs;
}

struct snapshot_pairs snapshot_pairs_counted(size_t count, size_t stored_bytes)
{
    struct snapshot_pairs pairs = {
        .entries = calloc(count + 1, sizeof *pairs.entries), .count = count};

    assert_non_null(pairs.entries);
    for (size_t index = 0; index < count; index++) {
        char *key = malloc(32);
        uint8_t *stored = malloc(stored_bytes + 1);

        assert_non_null(key);
        assert_non_null(stored);
        snprintf(key, 32, "k%06zu", index);
        memset(stored, (int)index, stored_bytes);
        pairs.entries[index] = (struct snapshot_entry){
            .key = {key, strlen(key)}, .stored = {stored, stored_bytes}};
    }
    return pairs;
}

void snapshot_pairs_free(struct snapshot_pairs *pairs)
{
    for (size_t index = 0; index < pairs->count; index++) {
        free_entry(&pairs->entries[index]);
    }
    free(pairs->entries);
    *pairs = (struct snapshot_pairs){0};
}

/* ---- The file --------------------------------------------------------------------- */

void snapshot_file_setup(struct snapshot_file *file)
{
    struct stele_error error;

    *file = (struct snapshot_file){.dir_path = temp_dir_make()};
    files_path(file->path, file->dir_path, SNAPSHOT_FILE_NAME);
    files_path(file->temporary, file->dir_path, SNAPSHOT_FILE_TEMPORARY);
    io_fault_pretend_syncs(); /* The power stays on. */
    assert_int_equal(
        io_dir_open(io_fault_io(), file->dir_path, &file->dir, &error),
        STELE_OK);
}

void snapshot_file_teardown(struct snapshot_file *file)
{
    io_fault_arm(NULL);
    io_dir_close(file->dir);
    temp_dir_remove(file->dir_path);
}

void snapshot_file_make(struct snapshot_file *file,
                        const struct snapshot_pairs *pairs,
                        struct snapshot_info *info_out)
{
    struct snapshot_writer *writer;
    struct stele_error error;
    bool names_unknown;

    assert_int_equal(snapshot_writer_create(file->dir, snapshot_file_uuid,
                                            SNAPSHOT_FILE_LSN, &writer, &error),
                     STELE_OK);
    for (size_t index = 0; index < pairs->count; index++) {
        assert_int_equal(snapshot_writer_add(writer, pairs->entries[index].key,
                                             pairs->entries[index].stored,
                                             &error),
                         STELE_OK);
    }
    assert_int_equal(snapshot_writer_finish(writer, &snapshot_file_totals,
                                            snapshot_file_position, info_out,
                                            &error),
                     STELE_OK);
    assert_int_equal(snapshot_writer_publish(writer, &names_unknown, &error),
                     STELE_OK);
    assert_false(names_unknown);
    snapshot_writer_destroy(writer);
}

enum stele_status snapshot_file_scan(struct snapshot_file *file,
                                     struct stele_error *error)
{
    struct snapshot_reader *reader;
    struct snapshot_entry entry;
    enum stele_status status =
        snapshot_reader_open(file->dir, SNAPSHOT_FILE_LSN, SNAPSHOT_PUBLISHED,
                             snapshot_file_uuid, &reader, error);

    if (status != STELE_OK) {
        /* "No such file" is not "no more entries". */
        assert_int_not_equal(status, STELE_NOT_FOUND);
        return status;
    }
    do {
        status = snapshot_reader_next(reader, &entry, error);
    } while (status == STELE_OK);
    snapshot_reader_close(reader);
    return status;
}

void snapshot_file_assert(struct snapshot_file *file,
                          const struct snapshot_pairs *pairs)
{
    struct snapshot_reader *reader;
    struct snapshot_entry entry;
    struct stele_error error;

    assert_int_equal(snapshot_reader_open(file->dir, SNAPSHOT_FILE_LSN,
                                          SNAPSHOT_PUBLISHED,
                                          snapshot_file_uuid, &reader, &error),
                     STELE_OK);
    for (size_t index = 0; index < pairs->count; index++) {
        assert_int_equal(snapshot_reader_next(reader, &entry, &error),
                         STELE_OK);
        assert_true(bytes_compare(entry.key, pairs->entries[index].key) == 0);
        assert_true(bytes_compare(entry.stored, pairs->entries[index].stored) ==
                    0);
    }
    assert_int_equal(snapshot_reader_next(reader, &entry, &error),
                     STELE_NOT_FOUND);
    assert_true(snapshot_reader_bytes(reader) == files_size(file->path));
    snapshot_reader_close(reader);
}
