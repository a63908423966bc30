/* tools/bench/bare_lmdb.c -- see tools/bench/bare_lmdb.h. */
#include "tools/bench/bare_lmdb.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "tools/bench/lmdb_env.h"
#include "tools/bench/store.h"
#include "tools/must/must.h"

enum {
    DIRECTORY_BYTES = 4096,
    TABLE_BYTES = sizeof "items", /* The 0x00 is what stands between. */
    KEY_BYTES = TABLE_BYTES + ITEM_KEY_BYTES,
};

struct bare_lmdb {
    struct lmdb_env env;
};

struct bare_lmdb *bare_lmdb_open(const char *directory)
{
    struct bare_lmdb *lmdb = must_have(calloc(1, sizeof *lmdb));
    char path[DIRECTORY_BYTES + 16];

    snprintf(path, sizeof path, "%s/lmdb", directory);
    if (mkdir(path, 0700) != 0 && errno != EEXIST) {
        die("%s: %s", path, strerror(errno));
    }
    lmdb_env_open(&lmdb->env, path);
    return lmdb;
}

/* `buffer` holds it. */
static const char *key_of(char buffer[KEY_BYTES + 1], uint64_t number)
{
    memcpy(buffer, item_table, TABLE_BYTES);
    item_key(buffer + TABLE_BYTES, number);
    return buffer;
}

void bare_lmdb_put(struct bare_lmdb *lmdb, const uint64_t *numbers,
                   uint64_t count)
{
    MDB_txn *transaction = lmdb_env_begin(&lmdb->env, 0);

    for (uint64_t i = 0; i < count; i++) {
        char key[KEY_BYTES + 1];

        lmdb_env_put(&lmdb->env, transaction, key_of(key, numbers[i]),
                     KEY_BYTES, item_value, ITEM_VALUE_BYTES);
    }
    lmdb_env_commit(transaction);
}

void bare_lmdb_delete(struct bare_lmdb *lmdb, const uint64_t *numbers,
                      uint64_t count)
{
    MDB_txn *transaction = lmdb_env_begin(&lmdb->env, 0);

    for (uint64_t i = 0; i < count; i++) {
        char key[KEY_BYTES + 1];

        lmdb_env_delete(&lmdb->env, transaction, key_of(key, numbers[i]),
                        KEY_BYTES);
    }
    lmdb_env_commit(transaction);
}

void bare_lmdb_delete_prefix(struct bare_lmdb *lmdb)
{
    const size_t prefix_bytes = TABLE_BYTES + sizeof ITEM_PREFIX - 1;
    MDB_txn *transaction = lmdb_env_begin(&lmdb->env, 0);
    char first[KEY_BYTES + 1];
    const char *prefix = key_of(first, 0);
    MDB_val key = {.mv_size = prefix_bytes, .mv_data = first};
    MDB_cursor *cursor;
    MDB_val value;
    int result;

    must_lmdb(mdb_cursor_open(transaction, lmdb->env.items, &cursor));
    result = mdb_cursor_get(cursor, &key, &value, MDB_SET_RANGE);
    while (result == MDB_SUCCESS && key.mv_size >= prefix_bytes &&
           memcmp(key.mv_data, prefix, prefix_bytes) == 0) {
        must_lmdb(mdb_cursor_del(cursor, 0));
        result = mdb_cursor_get(cursor, &key, &value, MDB_NEXT);
    }
    if (result != MDB_NOTFOUND) {
        must_lmdb(result);
    }
    mdb_cursor_close(cursor);
    lmdb_env_commit(transaction);
}

uint64_t bare_lmdb_count(struct bare_lmdb *lmdb)
{
    return lmdb_env_count(&lmdb->env);
}

uint64_t bare_lmdb_commits(struct bare_lmdb *lmdb)
{
    MDB_envinfo found;

    must_lmdb(mdb_env_info(lmdb->env.env, &found));
    return found.me_last_txnid;
}

void bare_lmdb_close(struct bare_lmdb *lmdb)
{
    lmdb_env_close(&lmdb->env);
    free(lmdb);
}

/* ---- Reading ------------------------------------------------------------------ */

struct lmdb_view {
    MDB_txn *txn;
    MDB_dbi dbi;
};

static void *open_view(void *source)
{
    const struct bare_lmdb *lmdb = source;
    struct lmdb_view *view = must_have(calloc(1, sizeof *view));

    view->txn = lmdb_env_begin(&lmdb->env, MDB_RDONLY);
    view->dbi = lmdb->env.items;
    return view;
}

static void take(MDB_val key, MDB_val stored, bool touch_only)
{
    reader_take((const char *)key.mv_data + TABLE_BYTES,
                key.mv_size - TABLE_BYTES, stored.mv_data, stored.mv_size,
                touch_only);
}

static void get(void *context, const struct reader_keys *keys, bool touch_only)
{
    const struct lmdb_view *view = context;
    char key[KEY_BYTES];

    memcpy(key, item_table, TABLE_BYTES);
    for (uint64_t i = 0; i < keys->count; i++) {
        MDB_val key_val = {KEY_BYTES, key};
        MDB_val stored;

        memcpy(key + TABLE_BYTES, keys->keys + i * ITEM_KEY_BYTES,
               ITEM_KEY_BYTES);
        must_lmdb(mdb_get(view->txn, view->dbi, &key_val, &stored));
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
    int result;

    must_lmdb(mdb_cursor_open(view->txn, view->dbi, &cursor));
    result = mdb_cursor_get(cursor, &key, &stored, MDB_NEXT);
    while (result == MDB_SUCCESS) {
        take(key, stored, touch_only);
        count++;
        result = mdb_cursor_get(cursor, &key, &stored, MDB_NEXT);
    }
    if (result != MDB_NOTFOUND) {
        must_lmdb(result);
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

const struct reader bare_lmdb_reader = {
    .open = open_view,
    .get = get,
    .scan = scan,
    .close = close_view,
};
