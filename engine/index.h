/*
 * engine/index.h -- the base: an ordered map on disk that is, after any crash,
 * exactly what one of its transactions committed.
 *
 * index_lmdb.c keeps it in LMDB, the only file that knows LMDB. Every
 * transaction is an ordinary fully synced one (no MDB_NOSYNC, MDB_WRITEMAP,
 * MDB_NOLOCK with writers), so LMDB's own guarantee holds at every instant.
 *
 * One database holds everything in key order:
 *
 *     0x00 "applied"    position up to which every record is in the index
 *     0x00 "applying"   position at which the checkpoint under way will end
 *     0x00 "identity"   which index this is
 *     table 0x00        the table's row          (engine/base_value.h)
 *     table 0x00 key    a key's base value
 *
 * The positions are the 80 bytes of wal/position.h. The identity is
 *
 *      0       8         12     16     32           40         48
 *     +-------+---------+------+------+------------+----------+
 *     | magic | version | zero | uuid | generation | checksum |
 *     | 8     | u32     | u32  | 16   | u64        | u64      |
 *     +-------+---------+------+------+------------+----------+
 *
 * magic is "STELEIDX"; checksum is XXH3-64 of everything before it, and in
 * every version the last 8 bytes.
 *
 * While applying > applied, some keys are already as of `applying`: the index
 * is then a base only for LSNs >= applying. Nothing read from here is trusted
 * before its check is verified: damage is STELE_CORRUPT, never a crash, except
 * inside LMDB's own page structure, which LMDB does not check.
 *
 * Threads: readers are for one thread at a time, any number of them in
 * parallel; at most one writer, begun and ended in the same thread.
 */
#ifndef ENGINE_INDEX_H
#define ENGINE_INDEX_H

#include <stdbool.h>
#include <stdint.h>

#include "base/bytes.h"
#include "base/io.h"
#include "base/status.h"
#include "engine/base_value.h"
#include "wal/position.h"

struct index;
struct index_reader;
struct index_cursor;
struct index_writer;

enum { INDEX_FORMAT_VERSION = 1 };

struct index_options {
    uint64_t map_bytes; /* Address space; halved until mmap succeeds. */
    uint32_t readers_max;
    bool read_only; /* No write transactions; a reader slot is still taken. */
    bool no_lock;   /* With read_only, and only while no writer is alive. */
};

struct index_identity {
    struct wal_uuid uuid;
    uint64_t generation; /* Counts rebuilds of this store's index. */
};

/*
 * Make an empty index in the existing, empty directory `dir`, with applied =
 * applying = `base`, and close it again, everything synced (the names in `dir`
 * included). EXISTS: there is a data.mdb.
 */
enum stele_status index_create(struct io_dir *dir,
                               const struct index_options *options,
                               const struct index_identity *identity,
                               const struct wal_position *base,
                               struct stele_error *error) STELE_MUST_CHECK;

/* Open what index_create() made. LMDB is given a path of the directory, and
 * everything else goes through `dir`. NOT_FOUND: no data.mdb in it.
 * FOREIGN: not an index, or a newer format.
 * CORRUPT: shorter than its meta page claims, or no valid identity. Stale
 * reader slots of dead processes are cleared. */
enum stele_status index_open(struct io_dir *dir,
                             const struct index_options *options,
                             struct index **index_out,
                             struct stele_error *error) STELE_MUST_CHECK;

/* Accepts NULL. All readers released, no writer. */
void index_close(struct index *index);

/* In a child of the process that opened it: give up what can be given up without
 * touching what is shared with the parent. LMDB's environment, with its mapping
 * and descriptors, stays until the process ends or execs. Accepts NULL. */
void index_forsake(struct index *index);

/* No reader and no writer is out: it may be closed. */
bool index_is_idle(struct index *index);

const struct index_identity *index_identity(const struct index *index);

/* Clear reader slots of processes that died. */
enum stele_status index_reader_check(
    struct index *index, struct stele_error *error) STELE_MUST_CHECK;

/* ---- Reading ------------------------------------------------------------- */

/* A consistent read transaction, from a pool. BUSY: readers_max are in use. */
enum stele_status index_reader_acquire(
    struct index *index, struct index_reader **reader_out,
    struct stele_error *error) STELE_MUST_CHECK;

/* Back to the pool; accepts NULL. Everything borrowed from it is gone. */
void index_reader_release(struct index_reader *reader);

/* In a child of the process that acquired it: forget it, and leave its slot, the
 * parent's, alone. Accepts NULL; the index may be forsaken already. */
void index_reader_forsake(struct index_reader *reader);

/* The positions of this transaction; read when it was acquired. Borrowed. */
const struct wal_position *index_reader_applied(const struct index_reader *r);
const struct wal_position *index_reader_applying(const struct index_reader *r);

/* Borrowed until the reader is released. NOT_FOUND; CORRUPT if the stored bytes
 * fail their check. For table rows too (value = the 16 bytes of the row).
 * INVALID, here and below: `key` is empty, longer than 511 or begins with 0. */
enum stele_status index_reader_get(struct index_reader *reader,
                                   struct bytes key,
                                   struct base_value *value_out,
                                   struct stele_error *error) STELE_MUST_CHECK;

/* LMDB's own count of all entries, the three reserved ones included. */
enum stele_status index_reader_entry_count(
    struct index_reader *reader, uint64_t *count_out,
    struct stele_error *error) STELE_MUST_CHECK;

/* ---- A reader's cursor --------------------------------------------------- */

/* The cursor must be closed before its reader is released. What it shows is borrowed
 * until then. It never shows the reserved 0x00 keys; table rows it does. */
enum stele_status index_cursor_open(struct index_reader *reader,
                                    struct index_cursor **cursor_out,
                                    struct stele_error *error) STELE_MUST_CHECK;
void index_cursor_close(struct index_cursor *cursor);

/* To the first entry >= key; NOT_FOUND: there is none. */
enum stele_status index_cursor_seek(struct index_cursor *cursor,
                                    struct bytes key,
                                    struct base_entry *entry_out,
                                    struct stele_error *error) STELE_MUST_CHECK;
/* To the last entry < key. */
enum stele_status index_cursor_seek_before(
    struct index_cursor *cursor, struct bytes key, struct base_entry *entry_out,
    struct stele_error *error) STELE_MUST_CHECK;
/* From where the last successful call stood. After NOT_FOUND: seek again
 * (INVALID if not). */
enum stele_status index_cursor_next(struct index_cursor *cursor,
                                    struct base_entry *entry_out,
                                    struct stele_error *error) STELE_MUST_CHECK;
enum stele_status index_cursor_prev(struct index_cursor *cursor,
                                    struct base_entry *entry_out,
                                    struct stele_error *error) STELE_MUST_CHECK;

/* ---- Writing: one transaction of a checkpoint ----------------------------- */

/* After LMDB failed a call on a writer (NO_SPACE above all), its other calls
 * return the same status; abort or commit (which then only aborts) ends it. */

enum stele_status index_writer_begin(
    struct index *index, struct index_writer **writer_out,
    struct stele_error *error) STELE_MUST_CHECK;

/* Borrowed until the next call on this writer. The check is verified. */
enum stele_status index_writer_get(struct index_writer *writer,
                                   struct bytes key,
                                   struct base_value *value_out,
                                   struct stele_error *error) STELE_MUST_CHECK;

enum stele_status index_writer_put(struct index_writer *writer,
                                   struct bytes key,
                                   const struct base_value *value,
                                   struct stele_error *error) STELE_MUST_CHECK;

/* Bulk loading: `key` is above every key there is; `stored` are the bytes of a base
 * value, verified by the caller. */
enum stele_status index_writer_append(
    struct index_writer *writer, struct bytes key, struct bytes stored,
    struct stele_error *error) STELE_MUST_CHECK;

/* Leaf and overflow pages that gets, puts and deletes have changed so far: an estimate,
 * as LMDB does not tell, by where neighbouring entries lie. Sweeps are not in it. */
uint64_t index_writer_pages(const struct index_writer *writer);

/* Deleting what is not there is OK. */
enum stele_status index_writer_delete(
    struct index_writer *writer, struct bytes key,
    struct stele_error *error) STELE_MUST_CHECK;

/*
 * Visit entries first <= key < end in key order, and delete those for which
 * `visit` sets *delete_out; at most `visits_max` entries. `*more_out`: the limit
 * came first, and `next_key`/`*next_key_bytes_out` is the first entry not
 * visited. `visit` must not call the writer. Entries are verified (CORRUPT).
 */
typedef void index_visit(void *context, struct bytes key,
                         const struct base_value *value, bool *delete_out);
enum stele_status index_writer_sweep(
    struct index_writer *writer, struct bytes first, struct bytes end,
    uint64_t visits_max, index_visit *visit, void *context, bool *more_out,
    uint8_t next_key[511], size_t *next_key_bytes_out,
    struct stele_error *error) STELE_MUST_CHECK;

/*
 * Commit with these positions, durable when it returns OK. The writer is gone
 * whatever happens. NO_SPACE (ENOSPC, EDQUOT, map or transaction full): the
 * index is as before and may be written again. Any other failure: IO, and this
 * index must not be written again.
 */
enum stele_status index_writer_commit(
    struct index_writer *writer, const struct wal_position *applied,
    const struct wal_position *applying,
    struct stele_error *error) STELE_MUST_CHECK;

/* Accepts NULL. */
void index_writer_abort(struct index_writer *writer);

#endif
