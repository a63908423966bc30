/*
 * tools/bench/peers/peer_leveldb.c -- LevelDB, syncing its log at each write. A batch
 * is one WriteBatch. Its memtable is as large as RocksDB's: with its own default of
 * 4 MiB it would stop for compactions in the middle of a batch's repeats.
 */
#include <leveldb/c.h>
#include <stdlib.h>

#include "tools/bench/peers/peer.h"
#include "tools/must/must.h"

enum { MEMTABLE_BYTES = 64 * 1024 * 1024 };

struct leveldb {
    leveldb_t *handle;
    leveldb_options_t *options;
    leveldb_writeoptions_t *durable;
};

static void check(const char *error)
{
    if (error != NULL) {
        die("leveldb: %s", error);
    }
}

static void *leveldb_peer_open(const char *directory)
{
    struct leveldb *leveldb = must_have(calloc(1, sizeof *leveldb));
    char *error = NULL;

    leveldb->options = leveldb_options_create();
    leveldb_options_set_create_if_missing(leveldb->options, 1);
    leveldb_options_set_write_buffer_size(leveldb->options, MEMTABLE_BYTES);
    leveldb->durable = leveldb_writeoptions_create();
    leveldb_writeoptions_set_sync(leveldb->durable, 1);
    leveldb->handle = leveldb_open(leveldb->options, directory, &error);
    check(error);
    return leveldb;
}

static void leveldb_peer_close(void *db)
{
    struct leveldb *leveldb = db;

    leveldb_close(leveldb->handle);
    leveldb_writeoptions_destroy(leveldb->durable);
    leveldb_options_destroy(leveldb->options);
    free(leveldb);
}

static void commit(const struct leveldb *leveldb, leveldb_writebatch_t *batch)
{
    char *error = NULL;

    leveldb_write(leveldb->handle, leveldb->durable, batch, &error);
    check(error);
    leveldb_writebatch_destroy(batch);
}

static void leveldb_peer_put(void *db, void *thread,
                             const struct peer_item *items, size_t count)
{
    leveldb_writebatch_t *batch = leveldb_writebatch_create();

    (void)thread;
    for (size_t i = 0; i < count; i++) {
        leveldb_writebatch_put(batch, items[i].key, items[i].key_bytes,
                               items[i].value, items[i].value_bytes);
    }
    commit(db, batch);
}

static void leveldb_peer_delete(void *db, void *thread,
                                const struct peer_item *items, size_t count)
{
    leveldb_writebatch_t *batch = leveldb_writebatch_create();

    (void)thread;
    for (size_t i = 0; i < count; i++) {
        leveldb_writebatch_delete(batch, items[i].key, items[i].key_bytes);
    }
    commit(db, batch);
}

static void leveldb_peer_settle(void *db)
{
    leveldb_compact_range(((struct leveldb *)db)->handle, NULL, 0, NULL, 0);
}

static uint64_t leveldb_peer_count(void *db, void *thread)
{
    const struct leveldb *leveldb = db;
    leveldb_readoptions_t *options = leveldb_readoptions_create();
    leveldb_iterator_t *iterator =
        leveldb_create_iterator(leveldb->handle, options);
    char *error = NULL;
    uint64_t count = 0;

    (void)thread;
    for (leveldb_iter_seek_to_first(iterator); leveldb_iter_valid(iterator);
         leveldb_iter_next(iterator)) {
        count++;
    }
    leveldb_iter_get_error(iterator, &error);
    check(error);
    leveldb_iter_destroy(iterator);
    leveldb_readoptions_destroy(options);
    return count;
}

const struct peer peer_leveldb = {
    .name = "leveldb",
    .open = leveldb_peer_open,
    .close = leveldb_peer_close,
    .put = leveldb_peer_put,
    .delete = leveldb_peer_delete,
    .settle = leveldb_peer_settle,
    .count = leveldb_peer_count,
};
