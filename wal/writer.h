/*
 * wal/writer.h -- appending units, syncing them, and rolling over.
 *
 * One role writes and syncs the log, held by one thread at a time (the commit
 * leader; engine/commit.h): two threads syncing one file can share one error,
 * and one of them would get 0 and acknowledge. What a sync proves is the last
 * unit written before it began.
 *
 * After anything but OK and NO_SPACE from append, sync or rotate, what is on the
 * disk is unknown: the caller poisons the store, and this writer asserts that it
 * is not used again.
 *
 * Threads: append, sync, rotate and has_room for the holder of the role;
 * add_prepared and the getters for any thread.
 */
#ifndef WAL_WRITER_H
#define WAL_WRITER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/io.h"
#include "base/status.h"
#include "wal/position.h"
#include "wal/recovery.h"
#include "wal/segment.h"

struct wal_writer;

/*
 * Go on at the end that recovery found (hardened, row A or C), in incarnation
 * `incarnation`. A segment with a torn tail is retired: nothing is ever written
 * behind bytes that are not a unit.
 */
enum stele_status wal_writer_create(struct io_dir *wal_dir,
                                    const struct wal_recovery *recovery,
                                    const struct wal_uuid *uuid,
                                    uint64_t incarnation,
                                    struct wal_writer **writer_out,
                                    struct stele_error *error) STELE_MUST_CHECK;

/* Does not sync. Accepts NULL. */
void wal_writer_destroy(struct wal_writer *writer);

/* In a child of the process that made it: close the files, unless a thread was in
 * the midst of changing which there are. Nobody held the role. */
void wal_writer_forsake(struct wal_writer *writer);

/* Whether a unit with this body fits behind the last one. */
bool wal_writer_has_room(const struct wal_writer *writer, uint64_t body_bytes);

/* Whether a torn tail that recovery found (row C) still lies behind the last unit:
 * nothing was appended since, be there a new segment already or not. Such an end
 * must not be declared clean: the next open has to find the tail again. */
bool wal_writer_end_is_torn(struct wal_writer *writer);

/* A segment that is complete, durable, named in ANCHOR and unused; above all
 * that were given before. Takes it over. NO_MEMORY: the caller keeps it. */
enum stele_status wal_writer_add_prepared(
    struct wal_writer *writer, const struct wal_segment *segment,
    struct stele_error *error) STELE_MUST_CHECK;
size_t wal_writer_prepared_count(struct wal_writer *writer);

/* Whether the current segment is half full, so that the next one is due. */
bool wal_writer_half_full(struct wal_writer *writer);

/* Go to the next prepared segment (there is one). Syncs the current one first
 * if a unit in it is not synced: the only second sync a commit can have. */
enum stele_status wal_writer_rotate(struct wal_writer *writer,
                                    struct stele_error *error) STELE_MUST_CHECK;

/*
 * Write one unit of `record_count` (1 .. WAL_UNIT_RECORDS_MAX) records with one
 * write. records[i] is a record as it will stand on disk, header and body,
 * record_bytes[i] long; LSNs ascend from lsn_first to lsn_last. There is room.
 *
 * NO_SPACE: nothing was written and nothing changed (a copy-on-write file system
 * only). OK: written, not synced.
 */
enum stele_status wal_writer_append(struct wal_writer *writer,
                                    uint8_t *const *records,
                                    const size_t *record_bytes,
                                    uint32_t record_count, uint64_t lsn_first,
                                    uint64_t lsn_last,
                                    struct stele_error *error) STELE_MUST_CHECK;

/* Make everything appended so far durable. Nothing to do: no system call. */
enum stele_status wal_writer_sync(struct wal_writer *writer,
                                  struct stele_error *error) STELE_MUST_CHECK;

/* Of the last unit appended, and of the last one synced. */
struct wal_position wal_writer_written(struct wal_writer *writer);
struct wal_position wal_writer_durable(struct wal_writer *writer);

struct wal_writer_stats {
    uint64_t segment_current;
    uint64_t units;
    uint64_t bytes;
    uint64_t syncs;
    uint64_t rotations;
};
struct wal_writer_stats wal_writer_stats(struct wal_writer *writer);

#endif
