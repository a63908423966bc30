/*
 * tools/bench/peers/peer_wiredtiger.c -- WiredTiger with a log that each commit
 * syncs; a session and a cursor for each thread. A batch is one transaction, tried
 * again if it conflicts with another.
 */
#include <stdlib.h>
#include <string.h>
#include <wiredtiger.h>

#include "tools/bench/peers/peer.h"
#include "tools/must/must.h"

static const char table[] = "table:items";

struct session {
    WT_SESSION *handle;
    WT_CURSOR *cursor;
};

static void check(int result)
{
    if (result != 0) {
        die("wiredtiger: %s", wiredtiger_strerror(result));
    }
}

static void *wiredtiger_peer_open(const char *directory)
{
    WT_CONNECTION *connection;
    WT_SESSION *session;

    check(wiredtiger_open(directory, NULL,
                          "create,cache_size=512MB,session_max=200,"
                          "log=(enabled=true),checkpoint=(wait=60),"
                          "transaction_sync=(enabled=true,method=fsync)",
                          &connection));
    check(connection->open_session(connection, NULL, NULL, &session));
    check(session->create(session, table, "key_format=u,value_format=u"));
    check(session->close(session, NULL));
    return connection;
}

static void wiredtiger_peer_close(void *db)
{
    WT_CONNECTION *connection = db;

    check(connection->close(connection, NULL));
}

static WT_CURSOR *open_cursor(WT_SESSION *session)
{
    WT_CURSOR *cursor;

    check(session->open_cursor(session, table, NULL, NULL, &cursor));
    return cursor;
}

static void *wiredtiger_thread_begin(void *db)
{
    WT_CONNECTION *connection = db;
    struct session *session = must_have(calloc(1, sizeof *session));

    check(connection->open_session(connection, NULL, NULL, &session->handle));
    session->cursor = open_cursor(session->handle);
    return session;
}

static void wiredtiger_thread_end(void *db, void *thread)
{
    struct session *session = thread;

    (void)db;
    check(session->handle->close(session->handle, NULL));
    free(session);
}

static void set_key(WT_CURSOR *cursor, const char *key, size_t key_bytes)
{
    const WT_ITEM item = {.data = key, .size = key_bytes};

    cursor->set_key(cursor, &item);
}

static int put_one(WT_CURSOR *cursor, const struct peer_item *item)
{
    const WT_ITEM value = {.data = item->value, .size = item->value_bytes};

    set_key(cursor, item->key, item->key_bytes);
    cursor->set_value(cursor, &value);
    return cursor->insert(cursor);
}

static int delete_one(WT_CURSOR *cursor, const struct peer_item *item)
{
    set_key(cursor, item->key, item->key_bytes);
    return cursor->remove(cursor);
}

/* 0, or WT_ROLLBACK if it has to be tried again. */
static int try(struct session *session, const struct peer_item *items,
               size_t count,
               int (*apply)(WT_CURSOR *cursor, const struct peer_item *item))
{
    WT_SESSION *handle = session->handle;
    int result = handle->begin_transaction(handle, NULL);

    for (size_t i = 0; i < count && result == 0; i++) {
        result = apply(session->cursor, &items[i]);
    }
    if (result == 0) {
        return handle->commit_transaction(handle, NULL);
    }
    check(handle->rollback_transaction(handle, NULL));
    return result;
}

static void write_all(struct session *session, const struct peer_item *items,
                      size_t count,
                      int (*apply)(WT_CURSOR *cursor,
                                   const struct peer_item *item))
{
    int result;

    do {
        result = try(session, items, count, apply);
    } while (result == WT_ROLLBACK);
    check(result);
    check(session->cursor->reset(session->cursor));
}

static void wiredtiger_put(void *db, void *thread,
                           const struct peer_item *items, size_t count)
{
    (void)db;
    write_all(thread, items, count, put_one);
}

static void wiredtiger_delete(void *db, void *thread,
                              const struct peer_item *items, size_t count)
{
    (void)db;
    write_all(thread, items, count, delete_one);
}

static uint64_t wiredtiger_count(void *db, void *thread)
{
    WT_CURSOR *cursor = ((struct session *)thread)->cursor;
    uint64_t count = 0;
    int result;

    (void)db;
    check(cursor->reset(cursor));
    while ((result = cursor->next(cursor)) == 0) {
        count++;
    }
    if (result != WT_NOTFOUND) {
        check(result);
    }
    return count;
}

const struct peer peer_wiredtiger = {
    .name = "wiredtiger",
    .open = wiredtiger_peer_open,
    .close = wiredtiger_peer_close,
    .thread_begin = wiredtiger_thread_begin,
    .thread_end = wiredtiger_thread_end,
    .put = wiredtiger_put,
    .delete = wiredtiger_delete,
    .count = wiredtiger_count,
};
