/*
 * tests/test_directory_size.c -- a store under random writes does not grow: its size
 * stays within the formula of DESIGN.md, at every moment.
 *
 * Step by step: the test plays the base keeper, and looks at the directory after
 * every few commits.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <ftw.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "engine/snapshots.h"
#include "tests/lib/io_fault.h"
#include "tests/lib/random.h"
#include "tests/lib/store_dir.h"

enum {
    TRIGGER_BYTES = 1 << 20, /* Of log make a snapshot due. */
    SEGMENT_BYTES = 256 << 10,
    MEMTABLE_BYTES = 256 << 10,
    VALUE_BYTES = 3000,
    KEYS = 500,
    UNIT_BYTES = 4096, /* Of log, a commit. */
    TRIGGERS = 10,
    STEP_BYTES = 16 << 10,
};

static uint64_t directory_bytes;

static int add_file(const char *path, const struct stat *info, int type,
                    struct FTW *where)
{
    (void)path;
    (void)where;
    directory_bytes += type == FTW_F ? (uint64_t)info->st_size : 0;
    return 0;
}

static uint64_t size_of(const char *path)
{
    directory_bytes = 0;
    assert_int_equal(nftw(path, add_file, 16, FTW_PHYS), 0);
    return directory_bytes;
}

/* What there may be, given the index and the newest snapshot (DESIGN.md). */
static uint64_t allowed(const struct store_dir *dir)
{
    const uint64_t index = size_of(store_dir_at(dir, "index"));
    const uint64_t snapshot = dir->store->snapshot_last_bytes;
    const uint64_t trigger =
        snapshot > TRIGGER_BYTES ? snapshot : TRIGGER_BYTES;
    /* Log that one memtable holds, and of what is committed while a snapshot
     * is written and read back, twice. */
    const uint64_t memtable = MEMTABLE_BYTES / VALUE_BYTES * UNIT_BYTES;
    const uint64_t meanwhile = (4 * snapshot / STEP_BYTES + 10) * UNIT_BYTES;

    return index + 3 * snapshot + 2 * trigger + 4 * memtable + meanwhile +
           3 * SEGMENT_BYTES + (64 << 10);
}

/* What the base keeper does between two commits. */
static void play_the_keeper(struct store_dir *dir)
{
    if (dir->store->snapshot_run == NULL && snapshots_due(dir->store)) {
        assert_int_equal(snapshots_begin(dir->store, &dir->error), STELE_OK);
    }
    if (dir->store->snapshot_run != NULL) {
        assert_int_equal(snapshots_advance(dir->store, STEP_BYTES, &dir->error),
                         STELE_OK);
    }
}

static void under_random_writes_the_directory_stays_within_its_formula(
    void **state)
{
    struct random_source random = {.state = 7};
    struct store_dir dir;
    uint64_t snapshot_now = 0;
    uint64_t most = 0;

    (void)state;
    io_fault_pretend_syncs();
    store_dir_make(&dir);
    dir.options.memtable_bytes = MEMTABLE_BYTES;
    dir.tuning.segment_bytes = SEGMENT_BYTES;
    dir.tuning.snapshot_log_bytes = TRIGGER_BYTES;
    store_dir_open(&dir);
    for (uint64_t commits = 0;
         commits * UNIT_BYTES < (uint64_t)TRIGGERS * 2 * TRIGGER_BYTES;
         commits++) {
        char key[16];

        snprintf(key, sizeof key, "%u", (unsigned)random_below(&random, KEYS));
        assert_int_equal(store_dir_try_put_bytes(&dir, key, VALUE_BYTES),
                         STELE_OK);
        play_the_keeper(&dir);
        if (commits % 16 == 0 && dir.store->snapshot_last_bytes > 0) {
            const uint64_t bytes = size_of(dir.path);

            snapshot_now = dir.store->snapshot_last_bytes;
            most = bytes > most ? bytes : most;
            if (bytes > allowed(&dir)) {
                fail_msg("%llu bytes after %llu commits, %llu allowed",
                         (unsigned long long)bytes, (unsigned long long)commits,
                         (unsigned long long)allowed(&dir));
            }
        }
    }
    assert_true(store_dir_stats(&dir).snapshots_taken >= TRIGGERS / 2);
    assert_true(store_dir_stats(&dir).segments_removed > 0);
    /* The formula is no excuse for anything: it is within a small factor. */
    assert_true(most * 3 > allowed(&dir));
    assert_true(snapshot_now > 0);
    store_dir_remove(&dir);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(
            under_random_writes_the_directory_stays_within_its_formula),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
