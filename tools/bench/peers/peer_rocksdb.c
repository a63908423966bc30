/*
 * tools/bench/peers/peer_rocksdb.c -- RocksDB with its default options, syncing its
 * log at each write. A batch is one WriteBatch.
 */
#include <rocksdb/c.h>
#include <stdlib.h>
#include <string.h>

#include "tools/bench/peers/peer.h"
#include "tools/must/must.h"

struct rocksdb {
    rocksdb_t *handle;
    rocksdb_options_t *options;
    rocksdb_writeoptions_t *durable;
};

static void check(const char *error)
{
    if (error != NULL) {
        die("rocksdb: %s", error);
    }
}

static void *rocksdb_peer_open(const char *directory)
{
    struct rocksdb *rocksdb = must_have(calloc(1, sizeof *rocksdb));
    char *error = NULL;

    rocksdb->options = rocksdb_options_create();
    rocksdb_options_set_create_if_missing(rocksdb->options, 1);
    rocksdb->durable = rocksdb_writeoptions_create();
    rocksdb_writeoptions_set_sync(rocksdb->durable, 1);
    rocksdb->handle = rocksdb_open(rocksdb->options, directory, &error);
    check(error);
    return rocksdb;
}

static void rocksdb_peer_close(void *db)
{
    struct rocksdb *rocksdb = db;

    rocksdb_close(rocksdb->handle);
    rocksdb_writeoptions_destroy(rocksdb->durable);
    rocksdb_options_destroy(rocksdb->options);
    free(rocksdb);
}

static void commit(const struct rocksdb *rocksdb, rocksdb_writebatch_t *batch)
{
    char *error = NULL;

    rocksdb_write(rocksdb->handle, rocksdb->durable, batch, &error);
    check(error);
    rocksdb_writebatch_destroy(batch);
}

static void rocksdb_peer_put(void *db, void *thread,
                             const struct peer_item *items, size_t count)
{
    rocksdb_writebatch_t *batch = rocksdb_writebatch_create();

    (void)thread;
    for (size_t i = 0; i < count; i++) {
        rocksdb_writebatch_put(batch, items[i].key, items[i].key_bytes,
                               items[i].value, items[i].value_bytes);
    }
    commit(db, batch);
}

static void rocksdb_peer_delete(void *db, void *thread,
                                const struct peer_item *items, size_t count)
{
    rocksdb_writebatch_t *batch = rocksdb_writebatch_create();

    (void)thread;
    for (size_t i = 0; i < count; i++) {
        rocksdb_writebatch_delete(batch, items[i].key, items[i].key_bytes);
    }
    commit(db, batch);
}

static void rocksdb_peer_delete_range(void *db, void *thread, const char *from,
                                      const char *to)
{
    rocksdb_writebatch_t *batch = rocksdb_writebatch_create();

    (void)thread;
    rocksdb_writebatch_delete_range(batch, from, strlen(from), to, strlen(to));
    commit(db, batch);
}

static void rocksdb_peer_settle(void *db)
{
    rocksdb_compact_range(((struct rocksdb *)db)->handle, NULL, 0, NULL, 0);
}

static uint64_t rocksdb_peer_count(void *db, void *thread)
{
    const struct rocksdb *rocksdb = db;
    rocksdb_readoptions_t *options = rocksdb_readoptions_create();
    rocksdb_iterator_t *iterator =
        rocksdb_create_iterator(rocksdb->handle, options);
    char *error = NULL;
    uint64_t count = 0;

    (void)thread;
    for (rocksdb_iter_seek_to_first(iterator); rocksdb_iter_valid(iterator);
         rocksdb_iter_next(iterator)) {
        count++;
    }
    rocksdb_iter_get_error(iterator, &error);
    check(error);
    rocksdb_iter_destroy(iterator);
    rocksdb_readoptions_destroy(options);
    return count;
}

const struct peer peer_rocksdb = {
    .name = "rocksdb",
    .open = rocksdb_peer_open,
    .close = rocksdb_peer_close,
    .put = rocksdb_peer_put,
    .delete = rocksdb_peer_delete,
    .delete_range = rocksdb_peer_delete_range,
    .settle = rocksdb_peer_settle,
    .count = rocksdb_peer_count,
};
