/*
 * tools/bench/peers/peer_lmdb.c -- LMDB with full syncs, which are its default. A
 * batch is one write transaction.
 */
#include <stdlib.h>

#include "tools/bench/lmdb_env.h"
#include "tools/bench/peers/peer.h"
#include "tools/must/must.h"

static void *lmdb_open(const char *directory)
{
    struct lmdb_env *lmdb = must_have(calloc(1, sizeof *lmdb));

    lmdb_env_open(lmdb, directory);
    return lmdb;
}

static void lmdb_close(void *db)
{
    lmdb_env_close(db);
    free(db);
}

static void lmdb_put(void *db, void *thread, const struct peer_item *items,
                     size_t count)
{
    MDB_txn *transaction = lmdb_env_begin(db, 0);

    (void)thread;
    for (size_t i = 0; i < count; i++) {
        lmdb_env_put(db, transaction, items[i].key, items[i].key_bytes,
                     items[i].value, items[i].value_bytes);
    }
    lmdb_env_commit(transaction);
}

static void lmdb_delete(void *db, void *thread, const struct peer_item *items,
                        size_t count)
{
    MDB_txn *transaction = lmdb_env_begin(db, 0);

    (void)thread;
    for (size_t i = 0; i < count; i++) {
        lmdb_env_delete(db, transaction, items[i].key, items[i].key_bytes);
    }
    lmdb_env_commit(transaction);
}

static uint64_t lmdb_count(void *db, void *thread)
{
    (void)thread;
    return lmdb_env_count(db);
}

const struct peer peer_lmdb = {
    .name = "lmdb",
    .open = lmdb_open,
    .close = lmdb_close,
    .put = lmdb_put,
    .delete = lmdb_delete,
    .count = lmdb_count,
};
