/* tools/bench/lmdb_env.c -- see tools/bench/lmdb_env.h. */
#include "tools/bench/lmdb_env.h"

#include <stdint.h>

#include "tools/must/must.h"

#define MAP_BYTES ((size_t)64 << 30)

void must_lmdb(int result)
{
    if (result != MDB_SUCCESS) {
        die("LMDB: %s", mdb_strerror(result));
    }
}

void lmdb_env_open(struct lmdb_env *lmdb, const char *directory)
{
    MDB_txn *transaction;

    must_lmdb(mdb_env_create(&lmdb->env));
    must_lmdb(mdb_env_set_mapsize(lmdb->env, MAP_BYTES));
    must_lmdb(mdb_env_open(lmdb->env, directory, MDB_NOTLS, 0600));
    /* The unnamed database is always there. */
    transaction = lmdb_env_begin(lmdb, MDB_RDONLY);
    must_lmdb(mdb_dbi_open(transaction, NULL, 0, &lmdb->items));
    lmdb_env_commit(transaction);
}

void lmdb_env_close(struct lmdb_env *lmdb)
{
    mdb_env_close(lmdb->env);
}

MDB_txn *lmdb_env_begin(const struct lmdb_env *lmdb, unsigned flags)
{
    MDB_txn *transaction;

    must_lmdb(mdb_txn_begin(lmdb->env, NULL, flags, &transaction));
    return transaction;
}

/* LMDB only reads what is passed in. */
static MDB_val val(const char *data, size_t bytes)
{
    return (MDB_val){.mv_size = bytes, .mv_data = (void *)(uintptr_t)data};
}

void lmdb_env_put(const struct lmdb_env *lmdb, MDB_txn *transaction,
                  const char *key, size_t key_bytes, const char *value,
                  size_t value_bytes)
{
    MDB_val key_val = val(key, key_bytes);
    MDB_val value_val = val(value, value_bytes);

    must_lmdb(mdb_put(transaction, lmdb->items, &key_val, &value_val, 0));
}

void lmdb_env_delete(const struct lmdb_env *lmdb, MDB_txn *transaction,
                     const char *key, size_t key_bytes)
{
    MDB_val key_val = val(key, key_bytes);

    must_lmdb(mdb_del(transaction, lmdb->items, &key_val, NULL));
}

void lmdb_env_commit(MDB_txn *transaction)
{
    must_lmdb(mdb_txn_commit(transaction));
}

size_t lmdb_env_count(const struct lmdb_env *lmdb)
{
    MDB_stat found;

    must_lmdb(mdb_env_stat(lmdb->env, &found));
    return found.ms_entries;
}
