/* engine/status.c -- version, statuses in words, statistics. */
#include <string.h>

#include "base/error.h"
#include "engine/damage.h"
#include "engine/store.h"
#include "engine/view.h"

#define TEXT_OF(value)  TEXT_OF_(value)
#define TEXT_OF_(value) #value

const char *stele_version(void)
{
    return TEXT_OF(STELE_VERSION_MAJOR) "." TEXT_OF(
        STELE_VERSION_MINOR) "." TEXT_OF(STELE_VERSION_PATCH);
}

const char *stele_status_text(enum stele_status status)
{
    switch (status) {
    case STELE_OK:
        return "done";
    case STELE_NOT_FOUND:
        return "not found";
    case STELE_CORRUPT:
        return "damaged";
    case STELE_IO:
        return "I/O error";
    case STELE_NO_MEMORY:
        return "out of memory";
    case STELE_TOO_BIG:
        return "over a limit";
    case STELE_INVALID:
        return "invalid argument";
    case STELE_NO_SPACE:
        return "disk full";
    case STELE_BUSY:
        return "busy";
    case STELE_LOCKED:
        return "locked";
    case STELE_FOREIGN:
        return "foreign, or of a newer format";
    case STELE_PRECONDITION:
        return "precondition failed";
    case STELE_UNKNOWN:
        return "outcome unknown";
    case STELE_POISONED:
        return "writing has stopped";
    case STELE_READ_ONLY:
        return "read only";
    case STELE_EXPIRED:
        return "expired";
    case STELE_FORKED:
        return "handle of the parent process";
    case STELE_EXISTS:
        return "exists already";
    case STELE_UNSUPPORTED:
        return "not supported";
    }
    return "unknown status";
}

static void read_memory_stats(struct stele *store, struct stele_stats *stats)
{
    struct state *current = state_acquire(&store->publisher);

    stats->lsn_visible = current->lsn;
    for (int index = 0; index < STATE_LAYERS; index++) {
        const struct state_layer *layer = &current->layers[index];

        if (layer->memtable == NULL) {
            continue;
        }
        stats->memtable_bytes +=
            memtable_bytes(layer->memtable) + range_set_bytes(layer->ranges);
        stats->memtable_keys += memtable_node_count(layer->memtable);
        stats->range_fragments += range_set_count(layer->ranges);
    }
    state_release(current);
}

static void read_view_stats(struct stele *store, struct stele_stats *stats)
{
    uint64_t now_ns;

    mutex_lock(&store->views_mutex);
    /* Under the mutex: no view in the list was opened later. */
    now_ns = io_clock_monotonic_ns(store->io);
    stats->views_open = store->views_open;
    for (const struct stele_view *view = store->views; view != NULL;
         view = view->next) {
        if (now_ns - view->opened_ns > stats->view_age_max_ns) {
            stats->view_age_max_ns = now_ns - view->opened_ns;
        }
    }
    mutex_unlock(&store->views_mutex);
}

static void read_keeper_stats(struct stele *store, struct stele_stats *stats)
{
    mutex_lock(&store->keeper_mutex);
    stats->lsn_applied = store->applied.lsn;
    stats->lsn_applying = store->applying.lsn;
    stats->last_checkpoint_error = store->checkpoint_error;
    stats->last_snapshot_error = store->snapshot_error;
    mutex_unlock(&store->keeper_mutex);
    stats->checkpoints = atomic_load(&store->stat_checkpoints);
    stats->checkpoint_transactions =
        atomic_load(&store->stat_checkpoint_transactions);
    stats->checkpoint_failures = atomic_load(&store->stat_checkpoint_failures);
    stats->snapshots_taken = atomic_load(&store->stat_snapshots);
    stats->snapshot_failures = atomic_load(&store->stat_snapshot_failures);
    stats->snapshot_bytes_done = atomic_load(&store->stat_snapshot_bytes_done);
    stats->segments_removed = atomic_load(&store->stat_segments_removed);
    stats->groups_withdrawn = atomic_load(&store->stat_groups_withdrawn);
    stats->range_splits = atomic_load(&store->stat_range_splits);
    stats->records_written = atomic_load(&store->stat_records);
    stats->poisoned = atomic_load(&store->poisoned);
}

static void read_writer_stats(struct stele *store, struct stele_stats *stats)
{
    const struct wal_writer_stats writer = wal_writer_stats(store->writer);
    const struct wal_position durable = wal_writer_durable(store->writer);

    /* The sync comes before the publish, and this look after both. */
    stats->lsn_durable =
        durable.lsn < stats->lsn_visible ? durable.lsn : stats->lsn_visible;
    stats->segment_current = writer.segment_current;
    stats->units_written = writer.units;
    stats->log_bytes_written = writer.bytes;
    stats->log_syncs = writer.syncs;
    stats->rotations = writer.rotations;
    mutex_lock(&store->keeper_mutex);
    stats->log_bytes_since_checkpoint =
        writer.bytes > store->log_bytes_applied
            ? writer.bytes - store->log_bytes_applied
            : 0;
    mutex_unlock(&store->keeper_mutex);
}

/* Of a handle that only reads: what it shows, and where the index is. Under its
 * mutex. */
static void read_follower_stats(struct stele *store, struct stele_stats *stats)
{
    struct index_reader *reader;
    struct stele_error ignored;

    stats->lsn_durable = stats->lsn_visible; /* It shows nothing else. */
    stats->segment_current = store->follow.shown.segment;
    stats->tail_unproven = store->follow.unproven;
    if (store->index != NULL &&
        index_reader_acquire(store->index, &reader, &ignored) == STELE_OK) {
        stats->lsn_applied = index_reader_applied(reader)->lsn;
        stats->lsn_applying = index_reader_applying(reader)->lsn;
        index_reader_release(reader);
    }
}

/* What recovery found: at open, or, of a reader, whenever it looks. */
static void read_recovery_stats(const struct stele *store,
                                struct stele_stats *stats)
{
    stats->recovery_row = (char)store->recovery.row;
    stats->recovery_dropped_bytes = store->recovery.dropped_bytes;
    stats->recovery_replayed_records = store->replayed_records;
}

static const char *fs_warning(enum io_fs_kind kind)
{
    switch (kind) {
    case IO_FS_OVERWRITE:
    case IO_FS_COPY_ON_WRITE:
        return NULL;
    case IO_FS_VOLATILE:
        return "the store is on a file system in memory: nothing of it "
               "outlives the machine";
    case IO_FS_LAYERED:
        return "the store is on a layered file system (overlay, FUSE): it is "
               "only as durable as what lies below";
    case IO_FS_NETWORK:
        return "the store is on a network file system: neither locks nor "
               "syncs can be trusted";
    }
    return NULL;
}

enum stele_status stele_stats(struct stele *store, struct stele_stats *stats,
                              struct stele_error *error)
{
    struct stele_stats found = {0};
    const enum stele_status status = store_check_process(store, error);

    if (status != STELE_OK) {
        return status;
    }
    if (stats->size == 0 || stats->size > sizeof found) {
        return error_set(error, STELE_INVALID,
                         "statistics of %zu bytes: set size to sizeof",
                         stats->size);
    }
    read_memory_stats(store, &found);
    read_keeper_stats(store, &found);
    read_view_stats(store, &found);
    if (store->read_only) {
        mutex_lock(&store->follow.mutex);
        read_follower_stats(store, &found);
        read_recovery_stats(store, &found);
        mutex_unlock(&store->follow.mutex);
    } else {
        read_writer_stats(store, &found);
        read_recovery_stats(store, &found);
    }
    memcpy(found.uuid, store->uuid.bytes, sizeof found.uuid);
    mutex_lock(&store->anchor_mutex);
    found.incarnation = store->anchor.incarnation;
    found.segment_first = store->anchor.segment_oldest;
    found.segment_last = store->anchor.segment_last;
    memcpy(found.snapshot_lsns, store->anchor.snapshots,
           sizeof found.snapshot_lsns);
    mutex_unlock(&store->anchor_mutex);
    found.segment_bytes = store->segment_bytes;
    found.index_rebuilt = store->index_rebuilt;
    found.index_damaged = damage_is_known(store);
    found.fs_warning = fs_warning(store->fs_kind);
    found.size = stats->size;
    memcpy(stats, &found, stats->size);
    return STELE_OK;
}
