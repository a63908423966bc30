/*
 * tools/bench/peers/peer_stele.c -- Stele with its default options. A batch is
 * encoded within the call, as those of the others are.
 */
#include <string.h>

#include "engine/stele.h"
#include "tools/bench/peers/peer.h"
#include "tools/must/must.h"

static const char table[] = "items";

static void *stele_peer_open(const char *directory)
{
    struct stele_options options;
    struct stele_error error = {0};
    struct stele *store;

    stele_options_init(&options);
    options.mode = STELE_OPEN_CREATE;
    must(stele_open(directory, &options, &store, &error), &error);
    return store;
}

static void stele_peer_close(void *db)
{
    struct stele_error error = {0};

    must(stele_close(db, &error), &error);
}

static struct stele_batch *new_batch(void)
{
    struct stele_error error = {0};
    struct stele_batch *batch;

    must(stele_batch_create(&batch, &error), &error);
    return batch;
}

static void commit(struct stele *store, struct stele_batch *batch)
{
    struct stele_error error = {0};

    must(stele_commit(store, batch, STELE_DURABLE, NULL, &error), &error);
    stele_batch_destroy(batch);
}

static void stele_peer_put(void *db, void *thread,
                           const struct peer_item *items, size_t count)
{
    struct stele_batch *batch = new_batch();
    struct stele_error error = {0};

    (void)thread;
    for (size_t i = 0; i < count; i++) {
        must(stele_batch_put(batch, table, items[i].key, items[i].key_bytes,
                             items[i].value, items[i].value_bytes, &error),
             &error);
    }
    commit(db, batch);
}

static void stele_peer_delete(void *db, void *thread,
                              const struct peer_item *items, size_t count)
{
    struct stele_batch *batch = new_batch();
    struct stele_error error = {0};

    (void)thread;
    for (size_t i = 0; i < count; i++) {
        must(stele_batch_delete(batch, table, items[i].key, items[i].key_bytes,
                                &error),
             &error);
    }
    commit(db, batch);
}

static void stele_peer_delete_range(void *db, void *thread, const char *from,
                                    const char *to)
{
    struct stele_batch *batch = new_batch();
    struct stele_error error = {0};

    (void)thread;
    must(stele_batch_delete_range(batch, table, from, strlen(from), to,
                                  strlen(to), &error),
         &error);
    commit(db, batch);
}

static void stele_peer_settle(void *db)
{
    struct stele_error error = {0};

    must(stele_snapshot(db, NULL, &error), &error);
}

static uint64_t stele_peer_count(void *db, void *thread)
{
    struct stele_error error = {0};
    struct stele_view *view;
    uint64_t count;

    (void)thread;
    must(stele_view_open(db, &view, &error), &error);
    must(stele_table_count(view, table, &count, &error), &error);
    stele_view_close(view);
    return count;
}

/* While commits go on, a checkpoint begins when a memtable is full. */
static uint64_t stele_peer_memtables_filled(void *db)
{
    struct stele_stats found = {.size = sizeof found};
    struct stele_error error = {0};

    must(stele_stats(db, &found, &error), &error);
    return found.checkpoints;
}

const struct peer peer_stele = {
    .name = "stele",
    .open = stele_peer_open,
    .close = stele_peer_close,
    .put = stele_peer_put,
    .delete = stele_peer_delete,
    .delete_range = stele_peer_delete_range,
    .settle = stele_peer_settle,
    .count = stele_peer_count,
    .memtables_filled = stele_peer_memtables_filled,
};
