/* tests/lib/store_dir.c -- see tests/lib/store_dir.h. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/lib/io_fault.h"
#include "tests/lib/store_dir.h"
#include "tests/lib/temp_dir.h"

void store_dir_make(struct store_dir *dir)
{
    *dir = (struct store_dir){.path = temp_dir_make()};
    stele_options_init(&dir->options);
    dir->options.segment_bytes = 1 << 20;
    dir->options.memtable_bytes = 1 << 20;
    dir->options.index_map_bytes = 64 << 20;
    store_tuning_init(&dir->tuning);
    dir->tuning.io = io_fault_io();
    dir->tuning.manual = true;
}

void store_dir_remove(struct store_dir *dir)
{
    io_fault_arm(NULL);
    store_dir_kill(dir);
    temp_dir_remove(dir->path);
}

enum stele_status store_dir_try_open(struct store_dir *dir,
                                     enum stele_open_mode mode)
{
    assert_null(dir->store);
    dir->error = (struct stele_error){0};
    dir->options.mode = mode;
    return store_open(dir->path, &dir->options, &dir->tuning, &dir->store,
                      &dir->error);
}

void store_dir_open(struct store_dir *dir)
{
    if (store_dir_try_open(dir, STELE_OPEN_CREATE) != STELE_OK) {
        fail_msg("%s", dir->error.message);
    }
}

void store_dir_close(struct store_dir *dir)
{
    struct stele *store = dir->store;

    dir->store = NULL;
    if (stele_close(store, &dir->error) != STELE_OK) {
        fail_msg("%s", dir->error.message);
    }
}

void store_dir_kill(struct store_dir *dir)
{
    if (dir->store != NULL) {
        store_abandon(dir->store);
        dir->store = NULL;
    }
}

enum stele_status store_dir_try_put(struct store_dir *dir, const char *key,
                                    const char *value)
{
    return stele_put(dir->store, "t", key, strlen(key), value, strlen(value),
                     NULL, &dir->error);
}

uint64_t store_dir_put(struct store_dir *dir, const char *key,
                       const char *value)
{
    uint64_t lsn;

    if (stele_put(dir->store, "t", key, strlen(key), value, strlen(value), &lsn,
                  &dir->error) != STELE_OK) {
        fail_msg("%s", dir->error.message);
    }
    return lsn;
}

void store_dir_put_relaxed(struct store_dir *dir, const char *key,
                           const char *value)
{
    struct stele_batch *batch;

    assert_int_equal(stele_batch_create(&batch, &dir->error), STELE_OK);
    assert_int_equal(stele_batch_put(batch, "t", key, strlen(key), value,
                                     strlen(value), &dir->error),
                     STELE_OK);
    assert_int_equal(
        stele_commit(dir->store, batch, STELE_RELAXED, NULL, &dir->error),
        STELE_OK);
    stele_batch_destroy(batch);
}

enum stele_status store_dir_try_put_bytes(struct store_dir *dir,
                                          const char *key, uint64_t bytes)
{
    uint8_t *value = malloc(bytes);
    enum stele_status status;

    assert_non_null(value);
    memset(value, 'v', bytes);
    status = stele_put(dir->store, "t", key, strlen(key), value, bytes, NULL,
                       &dir->error);
    free(value);
    return status;
}

enum stele_status store_dir_try_get(struct store_dir *dir, const char *key)
{
    struct stele_view *view;
    struct stele_value value;
    enum stele_status status;

    assert_int_equal(stele_view_open(dir->store, &view, &dir->error), STELE_OK);
    status = stele_view_get(view, "t", key, strlen(key), &value, &dir->error);
    stele_view_close(view);
    return status;
}

bool store_dir_has(struct store_dir *dir, const char *key, const char *value)
{
    struct stele_view *view;
    struct stele_value found;
    enum stele_status status;
    bool same;

    if (stele_view_open(dir->store, &view, &dir->error) != STELE_OK) {
        fail_msg("%s", dir->error.message);
    }
    status = stele_view_get(view, "t", key, strlen(key), &found, &dir->error);
    same = status == STELE_NOT_FOUND
               ? value == NULL
               : status == STELE_OK && value != NULL &&
                     found.bytes == strlen(value) &&
                     memcmp(found.data, value, found.bytes) == 0;
    stele_view_close(view);
    return same;
}

struct stele_stats store_dir_stats(struct store_dir *dir)
{
    struct stele_stats stats = {.size = sizeof stats};

    assert_int_equal(stele_stats(dir->store, &stats, &dir->error), STELE_OK);
    return stats;
}

void store_dir_path(const struct store_dir *dir, const char *name,
                    char path_out[FILES_PATH_BYTES])
{
    files_path(path_out, dir->path, name);
}

const char *store_dir_at(const struct store_dir *dir, const char *name)
{
    static char path[FILES_PATH_BYTES];

    store_dir_path(dir, name, path);
    return path;
}

void store_dir_current_segment(struct store_dir *dir,
                               char path_out[FILES_PATH_BYTES])
{
    char name[64];

    snprintf(name, sizeof name, "wal/%016" PRIx64 ".wal",
             store_dir_stats(dir).segment_current);
    store_dir_path(dir, name, path_out);
}

uint64_t store_dir_digest(const struct store_dir *dir)
{
    return files_tree_digest(dir->path, "lock.mdb");
}

const char *store_dir_name(const struct store_dir *dir)
{
    const char *slash = strrchr(dir->path, '/');

    return slash == NULL ? dir->path : slash + 1;
}

void store_dir_assert_error(const struct store_dir *dir, const char *format,
                            ...)
{
    char expected[STELE_ERROR_MESSAGE_BYTES];
    va_list args;

    va_start(args, format);
    vsnprintf(expected, sizeof expected, format, args);
    va_end(args);
    assert_string_equal(dir->error.message, expected);
}

void store_dir_assert_refused(struct store_dir *dir, enum stele_status status,
                              const char *format, ...)
{
    static const enum stele_open_mode modes[] = {
        STELE_OPEN_EXISTING, STELE_OPEN_READ_ONLY, STELE_OPEN_CREATE};
    const uint64_t digest = store_dir_digest(dir);
    char expected[STELE_ERROR_MESSAGE_BYTES];
    va_list args;

    va_start(args, format);
    vsnprintf(expected, sizeof expected, format, args);
    va_end(args);
    for (size_t index = 0; index < sizeof modes / sizeof *modes; index++) {
        const enum stele_status found = store_dir_try_open(dir, modes[index]);

        if (found == STELE_OK) {
            fail_msg("opened, in mode %d; expected \"%s\"", (int)modes[index],
                     expected);
        }
        store_dir_assert_error(dir, "open %s: %s", dir->path, expected);
        assert_int_equal(found, status);
        assert_int_equal(dir->error.status, status);
        assert_true(store_dir_digest(dir) == digest);
    }
}

void store_dir_assert_verifies(struct store_dir *dir)
{
    struct stele_verify_report report = {.size = sizeof report};

    if (stele_verify(dir->store, NULL, NULL, &report, &dir->error) !=
        STELE_OK) {
        fail_msg("%s", dir->error.message);
    }
    assert_int_equal(report.problems, 0);
}
