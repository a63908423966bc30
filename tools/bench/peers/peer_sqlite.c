/*
 * tools/bench/peers/peer_sqlite.c -- SQLite with a write-ahead log that each commit
 * syncs; a connection and prepared statements for each thread. A batch is one
 * transaction.
 *
 * Writers queue at a mutex: waiting for each other in SQLite they would sleep, in the
 * end for 100 ms at a time, and with 64 threads hardly one would ever write.
 */
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mutex.h"
#include "tools/bench/peers/peer.h"
#include "tools/must/must.h"

enum { BUSY_TIMEOUT_MS = 60000, PATH_BYTES = 4096 };

enum statement {
    BEGIN,
    COMMIT,
    PUT,
    DELETE,
    COUNT,
    STATEMENTS,
};

static const char *const statement_texts[STATEMENTS] = {
    [BEGIN] = "BEGIN IMMEDIATE",
    [COMMIT] = "COMMIT",
    [PUT] = "INSERT OR REPLACE INTO items VALUES (?, ?)",
    [DELETE] = "DELETE FROM items WHERE key = ?",
    [COUNT] = "SELECT count(*) FROM items",
};

struct connection {
    sqlite3 *sqlite;
    sqlite3_stmt *statements[STATEMENTS];
};

struct sqlite_store {
    char path[PATH_BYTES];
    struct mutex writer;
    sqlite3 *first; /* Stays open: closing the last one checkpoints. */
};

static void check(sqlite3 *sqlite, int result)
{
    if (result != SQLITE_OK) {
        die("sqlite: %s", sqlite3_errmsg(sqlite));
    }
}

/* The cache holds the largest transaction: nothing is written before its commit. */
static sqlite3 *connect(const char *path)
{
    sqlite3 *sqlite;
    const int result = sqlite3_open(path, &sqlite);

    check(sqlite, result);
    check(sqlite, sqlite3_busy_timeout(sqlite, BUSY_TIMEOUT_MS));
    check(sqlite, sqlite3_exec(sqlite,
                               "PRAGMA journal_mode = WAL;"
                               "PRAGMA synchronous = FULL;"
                               "PRAGMA cache_size = -65536;",
                               NULL, NULL, NULL));
    return sqlite;
}

static void *sqlite_open(const char *directory)
{
    struct sqlite_store *store = must_have(calloc(1, sizeof *store));

    snprintf(store->path, sizeof store->path, "%s/db", directory);
    mutex_init(&store->writer);
    store->first = connect(store->path);
    check(store->first, sqlite3_exec(store->first,
                                     "CREATE TABLE IF NOT EXISTS items"
                                     "(key BLOB PRIMARY KEY, value BLOB)"
                                     "WITHOUT ROWID",
                                     NULL, NULL, NULL));
    return store;
}

static void sqlite_close(void *db)
{
    struct sqlite_store *store = db;

    check(store->first, sqlite3_close(store->first));
    mutex_deinit(&store->writer);
    free(store);
}

static void *sqlite_thread_begin(void *db)
{
    const struct sqlite_store *store = db;
    struct connection *connection = must_have(calloc(1, sizeof *connection));

    connection->sqlite = connect(store->path);
    for (size_t i = 0; i < STATEMENTS; i++) {
        check(connection->sqlite,
              sqlite3_prepare_v2(connection->sqlite, statement_texts[i], -1,
                                 &connection->statements[i], NULL));
    }
    return connection;
}

static void sqlite_thread_end(void *db, void *thread)
{
    struct connection *connection = thread;

    (void)db;
    for (size_t i = 0; i < STATEMENTS; i++) {
        sqlite3_finalize(connection->statements[i]);
    }
    check(connection->sqlite, sqlite3_close(connection->sqlite));
    free(connection);
}

static void bind(struct connection *connection, enum statement statement,
                 int index, const char *data, size_t bytes)
{
    check(connection->sqlite,
          sqlite3_bind_blob(connection->statements[statement], index, data,
                            (int)bytes, SQLITE_STATIC));
}

static void run(struct connection *connection, enum statement statement)
{
    sqlite3_stmt *prepared = connection->statements[statement];

    if (sqlite3_step(prepared) != SQLITE_DONE) {
        die("sqlite: %s", sqlite3_errmsg(connection->sqlite));
    }
    check(connection->sqlite, sqlite3_reset(prepared));
}

static void begin(struct sqlite_store *store, struct connection *connection)
{
    mutex_lock(&store->writer);
    run(connection, BEGIN);
}

static void commit(struct sqlite_store *store, struct connection *connection)
{
    run(connection, COMMIT);
    mutex_unlock(&store->writer);
}

static void sqlite_put(void *db, void *thread, const struct peer_item *items,
                       size_t count)
{
    begin(db, thread);
    for (size_t i = 0; i < count; i++) {
        bind(thread, PUT, 1, items[i].key, items[i].key_bytes);
        bind(thread, PUT, 2, items[i].value, items[i].value_bytes);
        run(thread, PUT);
    }
    commit(db, thread);
}

static void sqlite_delete(void *db, void *thread, const struct peer_item *items,
                          size_t count)
{
    begin(db, thread);
    for (size_t i = 0; i < count; i++) {
        bind(thread, DELETE, 1, items[i].key, items[i].key_bytes);
        run(thread, DELETE);
    }
    commit(db, thread);
}

static uint64_t sqlite_count(void *db, void *thread)
{
    struct connection *connection = thread;
    sqlite3_stmt *prepared = connection->statements[COUNT];
    uint64_t count;

    (void)db;
    if (sqlite3_step(prepared) != SQLITE_ROW) {
        die("sqlite: %s", sqlite3_errmsg(connection->sqlite));
    }
    count = (uint64_t)sqlite3_column_int64(prepared, 0);
    check(connection->sqlite, sqlite3_reset(prepared));
    return count;
}

const struct peer peer_sqlite = {
    .name = "sqlite",
    .open = sqlite_open,
    .close = sqlite_close,
    .thread_begin = sqlite_thread_begin,
    .thread_end = sqlite_thread_end,
    .put = sqlite_put,
    .delete = sqlite_delete,
    .count = sqlite_count,
};
