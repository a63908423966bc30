/*
 * tools/bench/peers/peer_lmdb.c -- LMDB with full syncs, which are its default. A
 * batch is one write transaction.
 */
#include <lmdb.h>
#include <stdlib.h>

#include "tools/bench/peers/peer.h"
#include "tools/must/must.h"

#define MAP_BYTES ((size_t)4 << 30)

struct lmdb {
    MDB_env *env;
    MDB_dbi table;
};

static void check(int result)
{
    if (result != MDB_SUCCESS) {
        die("lmdb: %s", mdb_strerror(result));
    }
}

static MDB_txn *begin(const struct lmdb *lmdb, unsigned flags)
{
    MDB_txn *transaction;

    check(mdb_txn_begin(lmdb->env, NULL, flags, &transaction));
    return transaction;
}

/* LMDB only reads what is passed in. */
static MDB_val val(const char *data, size_t bytes)
{
    return (MDB_val){.mv_size = bytes, .mv_data = (void *)(uintptr_t)data};
}

static void *lmdb_open(const char *directory)
{
    struct lmdb *lmdb = must_have(calloc(1, sizeof *lmdb));
    MDB_txn *transaction;

    check(mdb_env_create(&lmdb->env));
    check(mdb_env_set_mapsize(lmdb->env, MAP_BYTES));
    check(mdb_env_open(lmdb->env, directory, 0, 0600));
    transaction = begin(lmdb, 0);
    check(mdb_dbi_open(transaction, NULL, 0, &lmdb->table));
    check(mdb_txn_commit(transaction));
    return lmdb;
}

static void lmdb_close(void *db)
{
    struct lmdb *lmdb = db;

    mdb_env_close(lmdb->env);
    free(lmdb);
}

static void lmdb_put(void *db, void *thread, const struct peer_item *items,
                     size_t count)
{
    struct lmdb *lmdb = db;
    MDB_txn *transaction = begin(lmdb, 0);

    (void)thread;
    for (size_t i = 0; i < count; i++) {
        MDB_val key = val(items[i].key, items[i].key_bytes);
        MDB_val value = val(items[i].value, items[i].value_bytes);

        check(mdb_put(transaction, lmdb->table, &key, &value, 0));
    }
    check(mdb_txn_commit(transaction));
}

static void lmdb_delete(void *db, void *thread, const struct peer_item *items,
                        size_t count)
{
    struct lmdb *lmdb = db;
    MDB_txn *transaction = begin(lmdb, 0);

    (void)thread;
    for (size_t i = 0; i < count; i++) {
        MDB_val key = val(items[i].key, items[i].key_bytes);

        check(mdb_del(transaction, lmdb->table, &key, NULL));
    }
    check(mdb_txn_commit(transaction));
}

static uint64_t lmdb_count(void *db, void *thread)
{
    const struct lmdb *lmdb = db;
    MDB_txn *transaction = begin(lmdb, MDB_RDONLY);
    MDB_stat stat;

    (void)thread;
    check(mdb_stat(transaction, lmdb->table, &stat));
    mdb_txn_abort(transaction);
    return stat.ms_entries;
}

const struct peer peer_lmdb = {
    .name = "lmdb",
    .open = lmdb_open,
    .close = lmdb_close,
    .put = lmdb_put,
    .delete = lmdb_delete,
    .count = lmdb_count,
};
