/*
 * tools/bench/peers/peer_berkeley.c -- Berkeley DB 5.3, a transactional B-tree whose
 * log each commit syncs. A batch is one transaction, tried again if it was chosen to
 * end a deadlock. Nothing takes checkpoints but closing.
 */
/* db.h has the types of BSD that strict C leaves out. */
#include <sys/types.h>

#include <db.h>
#include <stdlib.h>

#include "tools/bench/peers/peer.h"
#include "tools/must/must.h"

enum {
    CACHE_BYTES = 256 * 1024 * 1024,
    LOG_BUFFER_BYTES = 16 * 1024 * 1024,
    LOG_FILE_BYTES = 64 * 1024 * 1024,
    LOCKS = 200000, /* A batch may lock every page of the table. */
    TRANSACTIONS = 1000,
};

struct berkeley {
    DB_ENV *env;
    DB *table;
};

static void check(int result)
{
    if (result != 0) {
        die("berkeley: %s", db_strerror(result));
    }
}

static DB_ENV *open_env(const char *directory)
{
    DB_ENV *env;

    check(db_env_create(&env, 0));
    check(env->set_cachesize(env, 0, CACHE_BYTES, 1));
    check(env->set_lg_bsize(env, LOG_BUFFER_BYTES));
    check(env->set_lg_max(env, LOG_FILE_BYTES));
    check(env->set_lk_max_locks(env, LOCKS));
    check(env->set_lk_max_objects(env, LOCKS));
    check(env->set_lk_max_lockers(env, LOCKS));
    check(env->set_tx_max(env, TRANSACTIONS));
    check(env->set_lk_detect(env, DB_LOCK_DEFAULT));
    check(env->log_set_config(env, DB_LOG_AUTO_REMOVE, 1));
    check(env->open(env, directory,
                    DB_CREATE | DB_INIT_MPOOL | DB_INIT_TXN | DB_INIT_LOG |
                        DB_INIT_LOCK | DB_THREAD | DB_RECOVER | DB_PRIVATE,
                    0600));
    return env;
}

static void *berkeley_open(const char *directory)
{
    struct berkeley *berkeley = must_have(calloc(1, sizeof *berkeley));
    DB *table;

    berkeley->env = open_env(directory);
    check(db_create(&table, berkeley->env, 0));
    check(table->open(table, NULL, "items.db", NULL, DB_BTREE,
                      DB_CREATE | DB_AUTO_COMMIT | DB_THREAD, 0600));
    berkeley->table = table;
    return berkeley;
}

static void berkeley_close(void *db)
{
    struct berkeley *berkeley = db;

    check(berkeley->table->close(berkeley->table, 0));
    check(berkeley->env->txn_checkpoint(berkeley->env, 0, 0, 0));
    check(berkeley->env->close(berkeley->env, 0));
    free(berkeley);
}

/* Berkeley DB only reads what is passed in. */
static DBT dbt(const char *data, size_t bytes)
{
    return (DBT){.data = (void *)(uintptr_t)data, .size = (u_int32_t)bytes};
}

static int put_one(DB *table, DB_TXN *transaction, const struct peer_item *item)
{
    DBT key = dbt(item->key, item->key_bytes);
    DBT value = dbt(item->value, item->value_bytes);

    return table->put(table, transaction, &key, &value, 0);
}

static int delete_one(DB *table, DB_TXN *transaction,
                      const struct peer_item *item)
{
    DBT key = dbt(item->key, item->key_bytes);

    return table->del(table, transaction, &key, 0);
}

/* 0, or DB_LOCK_DEADLOCK if it has to be tried again. */
static int try(const struct berkeley *berkeley, const struct peer_item *items,
               size_t count,
               int (*apply)(DB *table, DB_TXN *transaction,
                            const struct peer_item *item))
{
    DB_TXN *transaction;
    int result = 0;

    check(berkeley->env->txn_begin(berkeley->env, NULL, &transaction,
                                   DB_TXN_SYNC));
    for (size_t i = 0; i < count && result == 0; i++) {
        result = apply(berkeley->table, transaction, &items[i]);
    }
    if (result == 0) {
        return transaction->commit(transaction, DB_TXN_SYNC);
    }
    check(transaction->abort(transaction));
    return result;
}

static void write_all(const struct berkeley *berkeley,
                      const struct peer_item *items, size_t count,
                      int (*apply)(DB *table, DB_TXN *transaction,
                                   const struct peer_item *item))
{
    int result;

    do {
        result = try(berkeley, items, count, apply);
    } while (result == DB_LOCK_DEADLOCK);
    check(result);
}

static void berkeley_put(void *db, void *thread, const struct peer_item *items,
                         size_t count)
{
    (void)thread;
    write_all(db, items, count, put_one);
}

static void berkeley_delete(void *db, void *thread,
                            const struct peer_item *items, size_t count)
{
    (void)thread;
    write_all(db, items, count, delete_one);
}

static uint64_t berkeley_count(void *db, void *thread)
{
    struct berkeley *berkeley = db;
    DB_BTREE_STAT *stat;
    uint64_t count;

    (void)thread;
    check(berkeley->table->stat(berkeley->table, NULL, &stat, 0));
    count = stat->bt_ndata;
    free(stat);
    return count;
}

const struct peer peer_berkeley = {
    .name = "berkeley",
    .open = berkeley_open,
    .close = berkeley_close,
    .put = berkeley_put,
    .delete = berkeley_delete,
    .count = berkeley_count,
};
