/*
 * tools/bench/lmdb_env.h -- an LMDB environment with one database, and what the
 * bare LMDB and the peer do with it. Whatever LMDB refuses ends the program.
 */
#ifndef TOOLS_BENCH_LMDB_ENV_H
#define TOOLS_BENCH_LMDB_ENV_H

#include <lmdb.h>
#include <stddef.h>

struct lmdb_env {
    MDB_env *env;
    MDB_dbi items; /* The unnamed database. */
};

void must_lmdb(int result);

/* The directory must exist. MDB_NOTLS; full syncs, which are LMDB's default. */
void lmdb_env_open(struct lmdb_env *lmdb, const char *directory);
void lmdb_env_close(struct lmdb_env *lmdb);

/* `flags`: 0 or MDB_RDONLY. */
MDB_txn *lmdb_env_begin(const struct lmdb_env *lmdb, unsigned flags);
void lmdb_env_put(const struct lmdb_env *lmdb, MDB_txn *transaction,
                  const char *key, size_t key_bytes, const char *value,
                  size_t value_bytes);
/* The key must be there. */
void lmdb_env_delete(const struct lmdb_env *lmdb, MDB_txn *transaction,
                     const char *key, size_t key_bytes);
void lmdb_env_commit(MDB_txn *transaction);

size_t lmdb_env_count(const struct lmdb_env *lmdb);

#endif
