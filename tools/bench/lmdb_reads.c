/* tools/bench/lmdb_reads.c -- see tools/bench/lmdb_reads.h. */
#include "tools/bench/lmdb_reads.h"

#include <errno.h>
#include <lmdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "engine/base_value.h"
#include "tools/bench/store.h"
#include "tools/must/must.h"

enum {
    TABLE_BYTES = 6, /* "items" and a zero. */
    FULL_KEY_BYTES = TABLE_BYTES + ITEM_KEY_BYTES,
    STORED_BYTES = BASE_VALUE_HEADER_BYTES + ITEM_VALUE_BYTES,
    ITEMS_PER_TRANSACTION = 100000,
};
#define MAP_BYTES ((size_t)16 << 30)

struct lmdb_reads {
    MDB_env *env;
    MDB_dbi dbi;
};

static void check(int result, const char *what)
{
    if (result != 0) {
        die("bare LMDB: %s: %s", what, mdb_strerror(result));
    }
}

static void put_items(struct lmdb_reads *lmdb, uint64_t first, uint64_t count)
{
    char key[FULL_KEY_BYTES + 1];
    char stored[STORED_BYTES] = {0};
    MDB_txn *txn;

    memcpy(key, item_table, TABLE_BYTES);
    memcpy(stored + BASE_VALUE_HEADER_BYTES, item_value, ITEM_VALUE_BYTES);
    check(mdb_txn_begin(lmdb->env, NULL, 0, &txn), "begin");
    for (uint64_t i = first; i < first + count; i++) {
        MDB_val key_val = {FULL_KEY_BYTES, key};
        MDB_val stored_val = {sizeof stored, stored};

        item_key(key + TABLE_BYTES, i);
        check(mdb_put(txn, lmdb->dbi, &key_val, &stored_val, 0), "put");
    }
    check(mdb_txn_commit(txn), "commit");
}

struct lmdb_reads *lmdb_reads_create(const char *directory, uint64_t count)
{
    struct lmdb_reads *lmdb = must_have(calloc(1, sizeof *lmdb));
    char path[4096];
    MDB_txn *txn;

    snprintf(path, sizeof path, "%s/lmdb", directory);
    if (mkdir(path, 0700) != 0) {
        die("%s: %s", path, strerror(errno));
    }
    check(mdb_env_create(&lmdb->env), "create");
    check(mdb_env_set_mapsize(lmdb->env, MAP_BYTES), "map size");
    check(mdb_env_open(lmdb->env, path, MDB_NOTLS, 0600), "open");
    check(mdb_txn_begin(lmdb->env, NULL, 0, &txn), "begin");
    check(mdb_dbi_open(txn, NULL, 0, &lmdb->dbi), "database");
    check(mdb_txn_commit(txn), "commit");
    for (uint64_t first = 0; first < count; first += ITEMS_PER_TRANSACTION) {
        const uint64_t left = count - first;

        put_items(lmdb, first,
                  left < ITEMS_PER_TRANSACTION ? left : ITEMS_PER_TRANSACTION);
    }
    return lmdb;
}

void lmdb_reads_destroy(struct lmdb_reads *lmdb)
{
    mdb_env_close(lmdb->env);
    free(lmdb);
}

struct lmdb_view {
    MDB_txn *txn;
    MDB_dbi dbi;
};

static void *open_view(void *source)
{
    const struct lmdb_reads *lmdb = source;
    struct lmdb_view *view = must_have(calloc(1, sizeof *view));

    check(mdb_txn_begin(lmdb->env, NULL, MDB_RDONLY, &view->txn), "begin");
    view->dbi = lmdb->dbi;
    return view;
}

static void take(MDB_val key, MDB_val stored, bool touch_only)
{
    reader_take((const char *)key.mv_data + TABLE_BYTES,
                key.mv_size - TABLE_BYTES,
                (const char *)stored.mv_data + BASE_VALUE_HEADER_BYTES,
                stored.mv_size - BASE_VALUE_HEADER_BYTES, touch_only);
}

static void get(void *context, const struct reader_keys *keys, bool touch_only)
{
    const struct lmdb_view *view = context;
    char key[FULL_KEY_BYTES];

    memcpy(key, item_table, TABLE_BYTES);
    for (uint64_t i = 0; i < keys->count; i++) {
        MDB_val key_val = {FULL_KEY_BYTES, key};
        MDB_val stored;

        memcpy(key + TABLE_BYTES, keys->keys + i * ITEM_KEY_BYTES,
               ITEM_KEY_BYTES);
        check(mdb_get(view->txn, view->dbi, &key_val, &stored), "get");
        take(key_val, stored, touch_only);
    }
}

static uint64_t scan(void *context, bool touch_only)
{
    const struct lmdb_view *view = context;
    MDB_cursor *cursor;
    MDB_val key;
    MDB_val stored;
    uint64_t count = 0;

    check(mdb_cursor_open(view->txn, view->dbi, &cursor), "cursor");
    while (mdb_cursor_get(cursor, &key, &stored, MDB_NEXT) == 0) {
        take(key, stored, touch_only);
        count++;
    }
    mdb_cursor_close(cursor);
    return count;
}

static void close_view(void *context)
{
    struct lmdb_view *view = context;

    mdb_txn_abort(view->txn);
    free(view);
}

const struct reader lmdb_reader = {
    .open = open_view,
    .get = get,
    .scan = scan,
    .close = close_view,
};
