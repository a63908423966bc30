/* tests/lib/store_snapshot.c -- see tests/lib/store_snapshot.h. */
#include "tests/lib/store_snapshot.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>

#include "engine/index.h"
#include "engine/snapshot_copy.h"
#include "engine/store.h"
#include "snapshot/writer.h"
#include "tests/lib/run.h"

static struct stele_error error;

static void ok(enum stele_status status, const char *doing)
{
    run_expect_ok(status, &error, doing);
}

static struct io_dir *open_dir(struct stele *store)
{
    struct io_dir *dir;

    ok(io_dir_open_in(store->dir, STORE_SNAPSHOT_NAME, &dir, &error),
       "open snapshot/");
    return dir;
}

static void name_snapshot(struct wal_anchor *anchor, const void *context)
{
    const uint64_t *lsn = context;

    if (anchor->snapshots[0] != *lsn) {
        anchor->snapshots[1] = anchor->snapshots[0];
        anchor->snapshots[0] = *lsn;
    }
}

uint64_t store_snapshot_take(struct stele *store)
{
    struct snapshot_copy copy = {0};
    struct snapshot_writer *writer;
    struct index_reader *reader;
    struct snapshot_info info;
    struct io_dir *dir = open_dir(store);
    bool names_unknown;
    bool done = false;
    uint64_t lsn;

    ok(stele_checkpoint(store, &error), "checkpoint");
    ok(index_reader_acquire(store->index, &reader, &error), "read the index");
    lsn = index_reader_applied(reader)->lsn;
    ok(snapshot_writer_create(dir, store->uuid.bytes, lsn, &writer, &error),
       "begin a snapshot");
    ok(snapshot_copy_open(&copy, reader, writer, &error), "read the index");
    while (!done) {
        ok(snapshot_copy_advance(&copy, UINT64_MAX, &done, &error),
           "copy the index");
    }
    ok(snapshot_copy_finish(&copy, index_reader_applied(reader), &info, &error),
       "finish a snapshot");
    snapshot_copy_close(&copy);
    ok(snapshot_writer_publish(writer, &names_unknown, &error),
       "publish a snapshot");
    snapshot_writer_destroy(writer);
    index_reader_release(reader);
    io_dir_close(dir);
    ok(store_write_anchor(store, name_snapshot, &lsn, &error),
       "name a snapshot");
    return lsn;
}

static void move_up(struct wal_anchor *anchor, const void *context)
{
    const uint64_t *oldest = context;

    anchor->segment_oldest = *oldest;
}

uint64_t store_snapshot_trim(struct stele *store, uint64_t lsn)
{
    const uint64_t first = store_segment_oldest(store);
    struct io_dir *dir = open_dir(store);
    struct wal_position position;
    struct snapshot_info info;

    ok(snapshot_read_info(dir, lsn, store->uuid.bytes, &info, &error),
       "read a snapshot's footer");
    io_dir_close(dir);
    if (!wal_position_decode(info.position, &position) ||
        position.segment < first) {
        run_fail("a snapshot of a log that is gone");
    }
    ok(store_write_anchor(store, move_up, &position.segment, &error),
       "move the oldest segment up");
    for (uint64_t seq = first; seq < position.segment; seq++) {
        char name[32];

        snprintf(name, sizeof name, "%016" PRIx64 ".wal", seq);
        ok(io_unlink(store->wal_dir, name, &error), "remove a segment");
    }
    return position.segment - first;
}

void store_snapshot_path(const char *dir, uint64_t lsn,
                         char path_out[FILES_PATH_BYTES])
{
    snprintf(path_out, FILES_PATH_BYTES, "%s/snapshot/%016" PRIx64 ".snap", dir,
             lsn);
}
