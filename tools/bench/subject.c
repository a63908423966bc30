/* tools/bench/subject.c -- see tools/bench/subject.h. */
#include "tools/bench/subject.h"

#include <string.h>

#include "tools/bench/bare_lmdb.h"
#include "tools/bench/store.h"
#include "tools/must/must.h"

/* A segment is written with zeros before it is used, so in the long run each byte
 * of log costs one byte of zeros. Segments well below what a job commits count
 * that as it is; of the default's 64 MiB most jobs would pay for none. */
#define COMPARED_SEGMENT_BYTES ((uint64_t)1 << 20)

static void *stele_create(const char *directory)
{
    return bench_store_create_sized(directory, COMPARED_SEGMENT_BYTES);
}

static void *stele_reopen(const char *directory)
{
    return bench_store_open(directory);
}

static void stele_put_items(void *store, const uint64_t *numbers,
                            uint64_t count)
{
    bench_store_commit_puts(store, numbers, count);
}

static void stele_delete_items(void *store, const uint64_t *numbers,
                               uint64_t count)
{
    bench_store_commit_deletes(store, numbers, count);
}

static void stele_delete_all(void *store)
{
    (void)bench_store_delete_all_us(store, item_table);
}

static uint64_t stele_items(void *store)
{
    return bench_store_items(store);
}

static uint64_t stele_commits(void *store)
{
    return bench_store_commits(store);
}

static void stele_settle(void *store)
{
    bench_store_settle(store);
}

static void stele_finish(void *store)
{
    bench_store_checkpoint(store);
    bench_store_close(store);
}

static void *lmdb_open(const char *directory)
{
    return bare_lmdb_open(directory);
}

static void lmdb_put(void *store, const uint64_t *numbers, uint64_t count)
{
    bare_lmdb_put(store, numbers, count);
}

static void lmdb_delete(void *store, const uint64_t *numbers, uint64_t count)
{
    bare_lmdb_delete(store, numbers, count);
}

static void lmdb_delete_all(void *store)
{
    bare_lmdb_delete_prefix(store);
}

static uint64_t lmdb_items(void *store)
{
    return bare_lmdb_count(store);
}

static uint64_t lmdb_commits(void *store)
{
    return bare_lmdb_commits(store);
}

static void lmdb_close(void *store)
{
    bare_lmdb_close(store);
}

static const struct subject subjects[] = {
    {"stele", stele_create, stele_reopen, stele_put_items, stele_delete_items,
     stele_delete_all, stele_items, stele_commits, stele_settle, stele_finish},
    {"lmdb", lmdb_open, lmdb_open, lmdb_put, lmdb_delete, lmdb_delete_all,
     lmdb_items, lmdb_commits, NULL, lmdb_close},
};

const struct subject *subject_named(const char *name)
{
    for (size_t i = 0; i < sizeof subjects / sizeof subjects[0]; i++) {
        if (strcmp(subjects[i].name, name) == 0) {
            return &subjects[i];
        }
    }
    die("%s: nobody of that name", name);
}
