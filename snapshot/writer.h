/*
 * snapshot/writer.h -- writing a snapshot, in steps, under a temporary name.
 *
 *     snapshot_writer_create    <lsn>.tmp
 *     snapshot_writer_add       entries in key order; blocks are written
 *     snapshot_writer_pace      between entries: what was written goes to the disk
 *                               early, so that the last sync is a short one
 *     snapshot_writer_finish    footer, sync, cache dropped
 *     (the caller reads it back: snapshot/reader.h)
 *     snapshot_writer_publish   rename to <lsn>.snap, directory sync
 *
 * Until it is published nobody takes it for a snapshot. Destroying a writer whose
 * snapshot is not published unlinks the temporary; after a crash the next open
 * does. Threads: one at a time.
 */
#ifndef SNAPSHOT_WRITER_H
#define SNAPSHOT_WRITER_H

#include <stdbool.h>
#include <stdint.h>

#include "base/bytes.h"
#include "base/io.h"
#include "base/status.h"
#include "snapshot/format.h"

struct snapshot_writer;

/* `dir` is borrowed. A temporary of that name is replaced. */
enum stele_status snapshot_writer_create(
    struct io_dir *dir, const uint8_t uuid[SNAPSHOT_UUID_BYTES], uint64_t lsn,
    struct snapshot_writer **writer_out,
    struct stele_error *error) STELE_MUST_CHECK;

/* Both are copied. INVALID: the key is not above the one before it, or a length is
 * out of bounds. */
enum stele_status snapshot_writer_add(
    struct snapshot_writer *writer, struct bytes key, struct bytes stored,
    struct stele_error *error) STELE_MUST_CHECK;

/* Bytes written to the file so far. */
uint64_t snapshot_writer_bytes(const struct snapshot_writer *writer);

/* Once 256 KiB were written since the last time: have the disk write them. A sync of
 * all at the end would hold up the disk, and with it the commits; one a step would
 * have the file system commit its journal, and hold them up, too. */
enum stele_status snapshot_writer_pace(
    struct snapshot_writer *writer, struct stele_error *error) STELE_MUST_CHECK;

enum stele_status snapshot_writer_finish(
    struct snapshot_writer *writer, const struct snapshot_totals *totals,
    const uint8_t position[SNAPSHOT_POSITION_BYTES],
    struct snapshot_info *info_out, struct stele_error *error) STELE_MUST_CHECK;

/* After finish. Replaces a file of that name. *names_unknown_out: the directory
 * sync failed; what is durable in `dir` is unknown, write no more. */
enum stele_status snapshot_writer_publish(
    struct snapshot_writer *writer, bool *names_unknown_out,
    struct stele_error *error) STELE_MUST_CHECK;

/* Accepts NULL. */
void snapshot_writer_destroy(struct snapshot_writer *writer);

/* In a child of the process that made it: close the file, touch no name. Accepts
 * NULL. */
void snapshot_writer_forsake(struct snapshot_writer *writer);

#endif
