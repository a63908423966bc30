/* tests/lib/generations.c -- see tests/lib/generations.h. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <string.h>

#include "base/numbered.h"
#include "snapshot/format.h"
#include "tests/lib/generations.h"

static unsigned now;

void generations_make(struct store_dir *dir)
{
    store_dir_make(dir);
    dir->tuning.segment_bytes = GENERATIONS_SEGMENT_BYTES;
    dir->tuning.snapshot_step_bytes = GENERATIONS_STEP_BYTES;
    dir->tuning.snapshot_retry_ms = 0;
    now = 0;
    store_dir_open(dir);
}

unsigned generations_now(void)
{
    return now;
}

const char *generations_key(unsigned key)
{
    static char name[16];

    snprintf(name, sizeof name, "%04u", key);
    return name;
}

const char *generations_value(unsigned key, unsigned generation)
{
    static char value[GENERATIONS_VALUE_BYTES + 1];
    const int bytes =
        snprintf(value, sizeof value, "key %u generation %u ", key, generation);

    memset(value + bytes, '.', GENERATIONS_VALUE_BYTES - (size_t)bytes);
    return value;
}

const char *generations_value_now(unsigned key)
{
    return generations_value(key, now);
}

void generations_write(struct store_dir *dir)
{
    now++;
    for (unsigned key = 0; key < GENERATIONS_KEYS; key++) {
        store_dir_put(dir, generations_key(key), generations_value_now(key));
    }
}

void generations_assert(struct store_dir *dir)
{
    for (unsigned key = 0; key < GENERATIONS_KEYS; key++) {
        assert_true(store_dir_has(dir, generations_key(key),
                                  generations_value_now(key)));
    }
}

uint64_t generations_snapshot(struct store_dir *dir)
{
    uint64_t lsn = 0;

    if (stele_snapshot(dir->store, &lsn, &dir->error) != STELE_OK) {
        fail_msg("%s", dir->error.message);
    }
    return lsn;
}

uint64_t generations_leave_two(struct store_dir *dir)
{
    uint64_t newest = 0;

    for (int round = 0; round < 3; round++) {
        generations_write(dir);
        newest = generations_snapshot(dir);
    }
    generations_write(dir);
    return newest;
}

const char *generations_snapshot_name(uint64_t lsn)
{
    static char name[NUMBERED_NAME_BYTES + 16];
    char number[NUMBERED_NAME_BYTES];

    numbered_name(lsn, SNAPSHOT_SUFFIX, number);
    snprintf(name, sizeof name, "snapshot/%s", number);
    return name;
}

void generations_reopen_without_index(struct store_dir *dir)
{
    store_dir_kill(dir);
    files_remove(store_dir_at(dir, "index/data.mdb"));
    store_dir_open(dir);
    assert_true(store_dir_stats(dir).index_rebuilt);
}
