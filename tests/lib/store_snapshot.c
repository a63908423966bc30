/* tests/lib/store_snapshot.c -- see tests/lib/store_snapshot.h. */
#include "tests/lib/store_snapshot.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>

#include "engine/base_value.h"
#include "engine/index.h"
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

static void count(const struct index_entry *entry,
                  struct snapshot_totals *totals)
{
    struct base_value value;

    if (!base_value_decode(entry->stored, &value)) {
        run_fail("an index entry without a value");
    }
    if (base_key_table_bytes(entry->key) + 1 == entry->key.size) {
        totals->tables++;
    } else {
        totals->keys++;
        totals->sum += value.check;
    }
}

static struct snapshot_totals copy_entries(struct index_reader *reader,
                                           struct snapshot_writer *writer)
{
    const struct bytes everything = {"\x01", 1};
    struct snapshot_totals totals = {0};
    struct index_cursor *cursor;
    struct index_entry entry;
    enum stele_status status;

    ok(index_cursor_open(reader, &cursor, &error), "read the index");
    status = index_cursor_seek(cursor, everything, &entry, &error);
    while (status == STELE_OK) {
        count(&entry, &totals);
        ok(snapshot_writer_add(writer, entry.key, entry.stored, &error),
           "add an entry");
        status = index_cursor_next(cursor, &entry, &error);
    }
    if (status != STELE_NOT_FOUND) {
        ok(status, "read the index");
    }
    index_cursor_close(cursor);
    return totals;
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
    uint8_t position[WAL_POSITION_BYTES];
    struct snapshot_writer *writer;
    struct snapshot_totals totals;
    struct index_reader *reader;
    struct snapshot_info info;
    struct io_dir *dir = open_dir(store);
    bool names_unknown;
    uint64_t lsn;

    ok(stele_checkpoint(store, &error), "checkpoint");
    ok(index_reader_acquire(store->index, &reader, &error), "read the index");
    lsn = index_reader_applied(reader)->lsn;
    wal_position_encode(index_reader_applied(reader), position);
    ok(snapshot_writer_create(dir, store->uuid.bytes, lsn, &writer, &error),
       "begin a snapshot");
    totals = copy_entries(reader, writer);
    ok(snapshot_writer_finish(writer, &totals, position, &info, &error),
       "finish a snapshot");
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
