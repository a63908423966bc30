/*
 * engine/open.c -- opening a store that is there.
 *
 * For writing, the happy path: open the index if it is provably ours; find the
 * end of the log and decide (wal/recovery.h). Up to the verdict nothing is
 * written. Then: sync the directories, heal ANCHOR, write the unproven suffix
 * again, declare the end not clean; rebuild the index if there is none; replay
 * the tail; start the keepers.
 *
 * A failure after the verdict may leave "not clean" behind, which only makes the
 * next open look closer.
 */
#include "engine/open.h"

#include <inttypes.h>
#include <string.h>

#include "base/error.h"
#include "base/numbered.h"
#include "engine/base_open.h"
#include "engine/commit.h"
#include "engine/enter.h"
#include "engine/follow.h"
#include "engine/keepers.h"
#include "engine/replay.h"
#include "engine/retention.h"
#include "engine/snapshots.h"
#include "engine/verdict.h"
#include "wal/segment.h"

enum { SETTLE_TRIES_MAX = 10 };

/* Numbers that only count up: below this they never come near their end, so that
 * nothing that adds to them can wrap, and no LSN is ever given twice. */
#define COUNTER_MAX (UINT64_MAX / 2)

static enum stele_status check_counter(const char *what, uint64_t value,
                                       struct stele_error *error)
{
    if (value <= COUNTER_MAX) {
        return STELE_OK;
    }
    return error_set(error, STELE_CORRUPT,
                     "row E: %s is %" PRIu64 ", expected at most %" PRIu64,
                     what, value, COUNTER_MAX);
}

/* What the checksum says was written, but no program of ours writes. */
static enum stele_status check_anchor(const struct wal_anchor *anchor,
                                      struct stele_error *error)
{
    const struct {
        const char *what;
        uint64_t value;
    } counters[] = {
        {"ANCHOR: offset 24: slot sequence", anchor->slot_sequence},
        {"ANCHOR: offset 72: incarnation", anchor->incarnation},
        {"ANCHOR: offset 80: LSN floor", anchor->lsn_floor},
        {"ANCHOR: offset 88: segment last", anchor->segment_last},
        {"ANCHOR: offset 136: index generation", anchor->index_generation},
        {"ANCHOR: offset 168: durable LSN", anchor->durable.lsn},
        {"ANCHOR: offset 168: durable unit", anchor->durable.unit},
    };
    enum stele_status status = STELE_OK;

    for (size_t index = 0;
         status == STELE_OK && index < sizeof counters / sizeof *counters;
         index++) {
        status =
            check_counter(counters[index].what, counters[index].value, error);
    }
    if (status == STELE_OK &&
        (anchor->segment_bytes < WAL_SEGMENT_BYTES_MIN ||
         anchor->segment_bytes > WAL_SEGMENT_BYTES_MAX ||
         anchor->segment_bytes % WAL_SEGMENT_HEADER_BYTES != 0)) {
        status = error_set(error, STELE_CORRUPT,
                           "row E: ANCHOR: offset 104: segments of %" PRIu64
                           " bytes, expected %" PRIu64 " to %" PRIu64
                           ", a multiple of %d",
                           anchor->segment_bytes, WAL_SEGMENT_BYTES_MIN,
                           WAL_SEGMENT_BYTES_MAX, WAL_SEGMENT_HEADER_BYTES);
    }
    return status;
}

/* The same of what recovery found: records carry checksums, not promises. */
static enum stele_status check_end(const struct wal_recovery *recovery,
                                   struct stele_error *error)
{
    enum stele_status status =
        check_counter("the log's last LSN", recovery->end.lsn, error);

    if (status == STELE_OK) {
        status =
            check_counter("the log's last unit", recovery->end.unit, error);
    }
    return status == STELE_OK ? check_counter("the log's last segment",
                                              recovery->segment_last, error)
                              : status;
}

enum stele_status open_anchor(struct stele *store, struct stele_error *error)
{
    enum stele_status status = wal_anchor_open(
        store->dir, store->read_only ? IO_OPEN_READ : IO_OPEN_READ_WRITE,
        &store->anchor_file, &store->anchor, error);

    if (status == STELE_OK) {
        store->uuid = store->anchor.uuid;
        store->segment_bytes = store->anchor.segment_bytes;
        status = check_anchor(&store->anchor, error);
    }
    if (status == STELE_OK) {
        status =
            io_dir_open_in(store->dir, STORE_WAL_NAME, &store->wal_dir, error);
        if (status == STELE_NOT_FOUND) {
            status = error_set(error, STELE_CORRUPT, "row E: wal/ is missing");
        }
    }
    if (status == STELE_OK) {
        status = io_dir_open_in(store->dir, STORE_SNAPSHOT_NAME,
                                &store->snapshot_dir, error);
        if (status == STELE_NOT_FOUND) {
            status = STELE_OK; /* Reading needs none. */
        }
    }
    return status;
}

/* ---- The verdict -------------------------------------------------------------------- */

static void drop_index(struct stele *store)
{
    index_close(store->index);
    store->index = NULL;
}

/* ---- The first writes ---------------------------------------------------------------- */

static enum stele_status sync_directories(struct stele *store,
                                          struct stele_error *error)
{
    /* A name that was seen is not a durable name: an earlier process may have
     * died between a rename and its directory sync. */
    enum stele_status status = io_dir_sync(store->wal_dir, error);

    if (status == STELE_OK) {
        status =
            store->snapshot_dir == NULL
                ? error_set(error, STELE_CORRUPT, "row E: snapshot/ is missing")
                : io_dir_sync(store->snapshot_dir, error);
    }
    return status == STELE_OK ? io_dir_sync(store->dir, error) : status;
}

struct possession {
    const struct stele *store;
    uint64_t snapshots[WAL_ANCHOR_SNAPSHOTS]; /* Those that still count. */
};

static void declare_open(struct wal_anchor *anchor, const void *context)
{
    const struct possession *possession = context;
    const struct stele *store = possession->store;

    memcpy(anchor->snapshots, possession->snapshots, sizeof anchor->snapshots);
    anchor->incarnation = store->incarnation;
    anchor->clean = false;
    anchor->lsn_floor = store->lsn_last;
    anchor->durable = store->recovery.end;
}

static enum stele_status take_possession(struct stele *store,
                                         const struct wal_recovery_input *input,
                                         struct stele_error *error)
{
    const struct wal_recovery *recovery = &store->recovery;
    struct possession possession = {.store = store};
    enum stele_status status = sync_directories(store, error);

    if (status == STELE_OK) {
        status = wal_anchor_heal(&store->anchor_file, &store->anchor, error);
    }
    if (status == STELE_OK &&
        recovery->segment_last > store->anchor.segment_last) {
        status = store_name_segment(store, recovery->segment_last, error);
    }
    if (status == STELE_OK) {
        status = wal_recovery_harden(input, recovery, error);
    }
    if (status == STELE_OK) {
        status = numbered_remove_temporaries(store->wal_dir, error);
    }
    if (status == STELE_OK) {
        status = snapshots_settle(store, possession.snapshots, error);
    }
    if (status != STELE_OK) {
        return status;
    }
    /* LSNs are never given twice: a relaxed commit that was lost may have shown
     * its LSN to somebody. */
    store->lsn_last = recovery->end.lsn > store->anchor.lsn_floor
                          ? recovery->end.lsn
                          : store->anchor.lsn_floor;
    store->lsn_last += store->anchor.clean ? 0 : STORE_LSN_SKIP;
    store->lsn_synced = store->lsn_last;
    store->incarnation = store->anchor.incarnation + 1;
    /* "Not clean", and where this incarnation's LSNs start, must be durable
     * before its first unit. */
    status = store_write_anchor(store, declare_open, &possession, error);
    if (status == STELE_OK) {
        /* What the hint says is from another life. */
        status = wal_hint_write(&store->anchor_file, store->incarnation,
                                &recovery->end, error);
        if (status == STELE_OK) {
            store->hint_unit = recovery->end.unit;
        } else if (status == STELE_NO_SPACE) {
            status = STELE_OK; /* Advice: the next commit writes it. */
        }
    }
    if (status == STELE_OK) {
        status = retention_remove_leftovers(store, error);
    }
    return status == STELE_OK ? enter_declare(store, error) : status;
}

/* Decide, and take possession of what was found. */
static enum stele_status settle_the_end(struct stele *store,
                                        struct verdict *verdict,
                                        struct stele_error *error)
{
    for (int tries = 1;; tries++) {
        enum stele_status status = verdict_reach(store, verdict, error);

        if (status == STELE_OK) {
            status = check_end(&store->recovery, error);
        }
        /* ---- The verdict is in: up to here only LOCK was written. ---- */
        if (status == STELE_OK) {
            status = take_possession(store, &verdict->input, error);
        }
        /* Something that was in the page cache only is gone meanwhile. */
        if (status != STELE_BUSY || tries == SETTLE_TRIES_MAX) {
            return status;
        }
    }
}

/* ---- The tail -------------------------------------------------------------------------- */

static enum stele_status replay_tail(struct stele *store,
                                     struct stele_error *error)
{
    struct replay replay = {0};
    struct wal_reader reader = {0};
    enum stele_status status =
        memtable_create(store->options.memtable_bytes, store->hash_seed,
                        &replay.memtable, error);

    if (status == STELE_OK) {
        status =
            wal_reader_open(&reader, store->wal_dir, &store->applied,
                            store->anchor.segment_oldest, IO_OPEN_READ, error);
    }
    while (status == STELE_OK &&
           reader.previous.unit < store->recovery.end.unit) {
        struct wal_reader_unit unit;

        status = wal_reader_next_whole(&reader, &unit,
                                       "was when recovery read it", error);
        if (status == STELE_OK) {
            status = replay_unit(&replay, &unit, error);
        }
    }
    wal_reader_close(&reader);
    if (status == STELE_OK) {
        status =
            state_publisher_init(&store->publisher, store->recovery.end.lsn,
                                 replay.memtable, replay.ranges, error);
        store->replayed_records = replay.records;
    }
    replay_deinit(&replay);
    memtable_unref(replay.memtable);
    return status;
}

/* The log never goes on in front of what it has dropped: a prepared segment may
 * lie between, because bytes that kept a writer from using it were lost in a later
 * crash; and a unit whose number an older segment has, too, is a contradiction
 * (wal/recovery.c). */
static uint64_t next_candidate(const struct wal_recovery *recovery)
{
    return (recovery->segment_remains > recovery->next_segment
                ? recovery->segment_remains
                : recovery->next_segment) +
           1;
}

enum stele_status open_for_writing(struct stele *store,
                                   struct stele_error *error)
{
    struct verdict verdict;
    enum stele_status status = base_find(store, error);

    if (status == STELE_OK) {
        status = settle_the_end(store, &verdict, error);
    }
    if (status == STELE_OK &&
        (verdict.index_is_foreign || store->options.rebuild_index)) {
        drop_index(store);
    }
    if (status == STELE_OK && store->index == NULL) {
        store->index_rebuilt = store->anchor.index_generation > 0;
        status = base_rebuild(store, error);
    }
    if (status == STELE_OK) {
        status = verdict_index_positions(store, &store->applied,
                                         &store->applying, error);
    }
    if (status == STELE_OK) {
        status = replay_tail(store, error);
    }
    if (status == STELE_OK) {
        status =
            wal_writer_create(store->wal_dir, &store->recovery, &store->uuid,
                              store->incarnation, &store->writer, error);
        store->candidate_first = next_candidate(&store->recovery);
        store->candidate_last = store->recovery.segment_last;
    }
    if (status == STELE_OK) {
        status = commit_queue_init(store, error);
    }
    if (status == STELE_OK) {
        atomic_store(&store->activity_ns, io_clock_monotonic_ns(store->io));
        if (!store->tuning.manual) {
            status = keepers_start(store, error);
        }
    }
    return status;
}

enum stele_status open_for_reading(struct stele *store,
                                   struct stele_error *error)
{
    const enum stele_status status = base_find(store, error);

    return status == STELE_OK ? follow_start(store, error) : status;
}
