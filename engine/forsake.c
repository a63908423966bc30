/* engine/forsake.c -- see engine/forsake.h. */
#include "engine/forsake.h"

#include <stdlib.h>

#include "engine/commit.h"
#include "engine/follow.h"
#include "engine/registry.h"
#include "engine/snapshots.h"

static void forsake_writing(struct stele *store)
{
    snapshots_forsake(store);
    index_forsake(store->index);
    if (commit_queue_forsake(store)) {
        wal_writer_forsake(store->writer);
        state_publisher_forsake(&store->publisher);
    }
    if (mutex_try_lock(&store->keeper_mutex)) {
        memtable_unref(store->spare);
    }
}

/* One thread at a time catches up, and replaces all that there is. */
static void forsake_reading(struct stele *store)
{
    if (mutex_try_lock(&store->follow.mutex)) {
        follow_drop_tail(store);
        index_forsake(store->index);
        state_publisher_forsake(&store->publisher);
    }
}

void store_forsake(struct stele *store)
{
    if (store->read_only) {
        forsake_reading(store);
    } else {
        forsake_writing(store);
    }
    wal_anchor_close(&store->anchor_file);
    io_dir_close(store->snapshot_dir);
    io_dir_close(store->wal_dir);
    io_dir_close(store->dir);
    registry_release(store->registry);
    free(store);
}
