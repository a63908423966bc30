/*
 * engine/stele.h -- the public API of Stele: this header is the manual.
 *
 * Stele keeps a broker's configuration state: named tables of ordered
 * key-value pairs. A batch of operations of any size is one record in a
 * write-ahead log, made durable by one sync; reads see consistent states.
 *
 *     struct stele *store;
 *     struct stele_batch *batch;
 *
 *     stele_open("data", &options, &store, &error);
 *     stele_batch_create(&batch, &error);
 *     stele_batch_put(batch, "topics", "orders", 6, value, value_bytes, &error);
 *     stele_batch_delete_prefix(batch, "offsets", "old@", 4, &error);
 *     stele_commit(store, batch, STELE_DURABLE, &result, &error);
 *
 * CONVENTIONS, true of every function unless it says otherwise
 *
 * Status    Every function that can fail returns a status that must be
 *           checked. `error`, if not NULL, receives the reason in words. Out
 *           parameters (`..._out`) are set only on STELE_OK.
 * Limits    A table name is 1 to 63 bytes of [A-Za-z0-9._-], NUL-terminated. A
 *           key is any 1 or more bytes; name and key together at most 510. A
 *           value is 0 to `value_bytes_max` bytes. A batch has at most
 *           `batch_ops_max` operations, and its record fits into a segment less
 *           8 KiB. Over a limit: STELE_TOO_BIG (malformed: STELE_INVALID)
 *           before anything happens.
 * Threads   A store may be used by any number of threads at once. A batch, a
 *           view, and the cursors of one view belong to one thread at a time.
 *           No call is async-signal-safe.
 * Forks     A handle belongs to the process that opened it. In a child made by
 *           fork(), calls on an inherited store, view or cursor return
 *           STELE_FORKED; closing them works, in any order, touches nothing of
 *           the parent's, and gives back descriptors and most of the memory.
 *           (LMDB's part of the handle stays until the child ends or execs.)
 *           The parent alone keeps the lock. The child may open the store
 *           itself at any time, as any other process might. Batches are plain
 *           memory and work on.
 * Memory    What the caller passes is copied. What Stele returns by pointer is
 *           borrowed; each function says until when. Destructors accept NULL.
 * Order     Keys compare as unsigned bytes, a proper prefix first.
 * Time      Milliseconds in options, nanoseconds in statistics.
 * LSN       A log sequence number names one committed batch, and the state
 *           after it. 64 bits, increasing, with gaps (a restart skips ahead);
 *           never given twice. 0 is the empty state of a new store.
 */
#ifndef STELE_H
#define STELE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/status.h"

#ifdef __cplusplus
extern "C" {
#endif

#define STELE_VERSION_MAJOR 0
#define STELE_VERSION_MINOR 1
#define STELE_VERSION_PATCH 0

#define STELE_API __attribute__((visibility("default")))

enum {
    STELE_TABLE_NAME_BYTES_MAX = 63,
    STELE_TABLE_AND_KEY_BYTES_MAX = 510,
    STELE_TAG_BYTES = 16,
    STELE_UUID_BYTES = 16,
};

struct stele;
struct stele_batch;
struct stele_view;
struct stele_cursor;

/* "0.1.0". Static. */
STELE_API const char *stele_version(void);

/* "precondition failed" and the like, for a status without its error. Static. */
STELE_API const char *stele_status_text(enum stele_status status);

/* ---- Opening and closing ------------------------------------------------ */

enum stele_open_mode {
    STELE_OPEN_EXISTING,   /* Read and write; the store must exist. */
    STELE_OPEN_CREATE,     /* Read and write; made if there is none. */
    STELE_OPEN_CREATE_NEW, /* Read and write; must not exist yet. */
    STELE_OPEN_READ_ONLY,  /* Writes nothing but an LMDB reader slot, and that
                              only in an index/lock.mdb that is there. */
};

/* How far a long step has come: 0 .. `total` bytes or records (`total` 0: unknown).
 * `step` names it, "rebuilding the index" and the like, and is valid during the
 * call. Called now and then by the thread that works; must not call into the
 * store. */
typedef void stele_progress(void *context, const char *step, uint64_t done,
                            uint64_t total);

/* Always start from stele_options_init(): it sets `size`, which tells the
 * library which fields the caller's header had, and the defaults. */
struct stele_options {
    size_t size;
    enum stele_open_mode mode; /* STELE_OPEN_EXISTING */

    /* Of a new store only; an existing one keeps what it was made with. */
    uint64_t segment_bytes; /* 64 MiB; 1 MiB to 1 GiB, a multiple of 4096. */

    uint64_t memtable_bytes;  /* 24 MiB; at least 64 KiB. */
    uint64_t value_bytes_max; /* 1 MiB; at most 16 MiB. */
    uint64_t batch_ops_max;   /* 1,000,000; at most 16,777,216. */
    uint32_t views_max;       /* 1,024 open at once. */
    uint64_t index_map_bytes; /* 64 GiB of address space for LMDB. */

    /* How long a commit may wait for the checkpoint to make room before it is
     * refused with STELE_BUSY. 10,000. */
    uint32_t commit_wait_ms;
    /* How long a relaxed commit may stay unsynced. 100. */
    uint32_t relaxed_sync_ms;
    /* A checkpoint is taken after this long without a commit or sync. 5,000. */
    uint32_t idle_checkpoint_ms;
    /* A view older than this gives its resources back at its owner's next call,
     * which returns STELE_EXPIRED. 0: never. While it is set, stele_view_get()
     * is refused with STELE_INVALID: its value would outlive the call. */
    uint32_t view_age_max_ms;

    /* Keep at least so many bytes of the log, and everything younger than so many
     * milliseconds, beyond what is needed (see "Retention"). 0: no more. */
    uint64_t retain_log_bytes;
    uint64_t retain_log_ms;

    /* Refuse to open a store that ends before this LSN: what the caller knows
     * to have been acknowledged. 0: unknown. */
    uint64_t min_expected_lsn;

    /* Open on NFS, SMB or 9p, where neither locks nor syncs can be trusted. (On
     * tmpfs, overlay and FUSE a store opens, and stele_stats() has a warning.) */
    bool allow_unsafe_fs;
    /* Leave the memtable to the log at close instead of taking a checkpoint:
     * closing is quicker, the next open replays. */
    bool skip_close_checkpoint;
    /* Set the index aside and build it anew from snapshots and log, whatever its
     * state; for writing only. (What it says of the log's end is heard first.) */
    bool rebuild_index;
    /* Do not touch index/ at all: for a store whose index kills whoever reads it.
     * With STELE_OPEN_READ_ONLY: stand on a snapshot and the log. With
     * `rebuild_index`: do without what it says of the log's end. */
    bool ignore_index;
    uint8_t reserved[4]; /* Zero; so that no field hides in padding. */

    /* Told now and then, while opening has long work to do. NULL: nobody. */
    stele_progress *progress;
    void *progress_context;
};

/* The defaults, into the `size` bytes that the caller's header knows. */
STELE_API void stele_options_init_sized(struct stele_options *options,
                                        size_t size);

static inline void stele_options_init(struct stele_options *options)
{
    stele_options_init_sized(options, sizeof *options);
}

/*
 * Open the store in directory `path`. `options` NULL: the defaults.
 *
 * For writing there is one handle per store, in whatever process (else
 * STELE_LOCKED, naming the holder). Readers in other processes may come and go
 * meanwhile. One process holds at most one handle per store, of either kind.
 *
 * Opening recovers: a tail that was never acknowledged as durable is dropped
 * and counted in the statistics; damage in anything that was is STELE_CORRUPT,
 * naming the file, the offset and what was expected there, and nothing is
 * touched. A directory that is no store is STELE_FOREIGN, or STELE_NOT_FOUND if
 * it does not exist or is empty.
 *
 * LOCK must be left alone, also when nobody seems to have it: a writer that finds
 * it gone or replaced poisons its handle, because another may have come in.
 *
 * Takes time in proportion to the log since the last checkpoint, not to the
 * size of the state.
 */
STELE_API enum stele_status stele_open(
    const char *path, const struct stele_options *options,
    struct stele **store_out, struct stele_error *error) STELE_MUST_CHECK;

/*
 * Close the store and free the handle. With live views: STELE_BUSY, and nothing
 * is closed. Otherwise it lets asynchronous commits finish, syncs relaxed ones, takes a checkpoint (see skip_close_checkpoint), marks the
 * end as clean, and the handle is gone whatever the status: a failure says that
 * the last steps did not work, and the next open recovers. The caller sees to
 * it that no other thread is inside a call on this handle.
 */
STELE_API enum stele_status stele_close(
    struct stele *store, struct stele_error *error) STELE_MUST_CHECK;

/* ---- Batches -------------------------------------------------------------
 *
 * Operations apply in order, the later one wins; all of them or none. Adding an
 * operation encodes it at once: nothing is borrowed after the call. A failed
 * call leaves the batch as it was.
 */

STELE_API enum stele_status stele_batch_create(
    struct stele_batch **batch_out, struct stele_error *error) STELE_MUST_CHECK;

/* Not while a commit of it is under way. */
STELE_API void stele_batch_destroy(struct stele_batch *batch);

/* Forget the operations and the tag, keep the memory. */
STELE_API void stele_batch_clear(struct stele_batch *batch);

/* Operations so far (expectations included), and bytes of the log record. */
STELE_API uint64_t stele_batch_ops(const struct stele_batch *batch);
STELE_API uint64_t stele_batch_bytes(const struct stele_batch *batch);

STELE_API enum stele_status stele_batch_put(
    struct stele_batch *batch, const char *table, const void *key,
    size_t key_bytes, const void *value, size_t value_bytes,
    struct stele_error *error) STELE_MUST_CHECK;

/* Deleting what is not there is no error. */
STELE_API enum stele_status stele_batch_delete(
    struct stele_batch *batch, const char *table, const void *key,
    size_t key_bytes, struct stele_error *error) STELE_MUST_CHECK;

/* Delete all keys k with first <= k < end. `first` NULL: from the first key.
 * `end` NULL: to the last, inclusive. An empty range is STELE_INVALID. Costs the
 * same whatever lies in the range. */
STELE_API enum stele_status stele_batch_delete_range(
    struct stele_batch *batch, const char *table, const void *first,
    size_t first_bytes, const void *end, size_t end_bytes,
    struct stele_error *error) STELE_MUST_CHECK;

/* Delete all keys that begin with `prefix` (1 or more bytes). */
STELE_API enum stele_status stele_batch_delete_prefix(
    struct stele_batch *batch, const char *table, const void *prefix,
    size_t prefix_bytes, struct stele_error *error) STELE_MUST_CHECK;

/* Delete all keys of the table. Followed by puts: replace the table. */
STELE_API enum stele_status stele_batch_clear_table(
    struct stele_batch *batch, const char *table,
    struct stele_error *error) STELE_MUST_CHECK;

/*
 * Preconditions. All of a batch's are evaluated, in the commit, against the
 * state right before the batch, wherever they stand in it. If one fails,
 * nothing of the batch happens and the commit returns STELE_PRECONDITION.
 */
/* The key exists and was last put by the batch with this LSN. */
STELE_API enum stele_status stele_batch_expect_lsn(
    struct stele_batch *batch, const char *table, const void *key,
    size_t key_bytes, uint64_t lsn, struct stele_error *error) STELE_MUST_CHECK;
STELE_API enum stele_status stele_batch_expect_absent(
    struct stele_batch *batch, const char *table, const void *key,
    size_t key_bytes, struct stele_error *error) STELE_MUST_CHECK;
STELE_API enum stele_status stele_batch_expect_present(
    struct stele_batch *batch, const char *table, const void *key,
    size_t key_bytes, struct stele_error *error) STELE_MUST_CHECK;

/* A mark of the caller's own, kept in the log record. After STELE_UNKNOWN,
 * reopen and ask stele_find_tag(). */
STELE_API void stele_batch_set_tag(struct stele_batch *batch,
                                   const uint8_t tag[STELE_TAG_BYTES]);

/* ---- Committing ---------------------------------------------------------- */

enum stele_durability {
    /* Returns when the batch would survive a power cut. */
    STELE_DURABLE,
    /* Returns when the batch is in the log: it survives the death of the
     * process, and a power cut once the next durable commit, stele_sync() or
     * `relaxed_sync_ms` has passed. Until then only views in this process see
     * it. */
    STELE_RELAXED,
};

/* What one operation of a batch did, given the operations before it. */
enum stele_op_outcome {
    STELE_OP_DONE,     /* Range deletes, clears, expectations: always this. */
    STELE_OP_CREATED,  /* A put of a key that was not there. */
    STELE_OP_REPLACED, /* A put of a key that was. */
    STELE_OP_DELETED,  /* A delete of a key that was there. */
    STELE_OP_ABSENT,   /* A delete of a key that was not. */
};

struct stele_commit_result {
    uint64_t lsn; /* Out: of this batch. */
    /* In: NULL, or room for stele_batch_ops() outcomes, filled in the order of
     * the operations. Asking costs one lookup for every put and delete. */
    enum stele_op_outcome *outcomes;
    /* Out, after STELE_PRECONDITION: which operation failed, from 0. */
    uint64_t failed_op;
};

/*
 * Commit the batch, which stays the caller's and may be committed again, by one
 * thread at a time (else STELE_INVALID). An empty batch is STELE_INVALID. `result` may be NULL.
 *
 * STELE_OK        done, as durable as asked for.
 * STELE_UNKNOWN   a write or sync failed half way: whether the batch is durable
 *                 is decided by the next open. This handle takes no more
 *                 commits (STELE_POISONED); reads go on.
 * anything else   nothing happened. STELE_PRECONDITION: see above.
 *                 STELE_NO_SPACE: the disk is full; the store goes on by
 *                 itself when there is room. (The index's map can be full, too:
 *                 reopen with a larger index_map_bytes.) STELE_BUSY: the
 *                 checkpoint did not keep up within commit_wait_ms.
 *
 * Concurrent commits share a write and a sync (group commit, no timer).
 */
STELE_API enum stele_status stele_commit(
    struct stele *store, struct stele_batch *batch,
    enum stele_durability durability, struct stele_commit_result *result,
    struct stele_error *error) STELE_MUST_CHECK;

/*
 * The same without waiting. `done` is called exactly once if this returns
 * STELE_OK, and never otherwise, from whatever thread completed the group, with
 * what stele_commit() would have returned; `error` is valid during the call. It
 * must not block or call into the store. It may be called before this returns,
 * and callbacks may come in another order than the commits. Until then `batch`
 * and `result` must stay alive and untouched. When nobody commits synchronously
 * the store's own thread leads, beside its other work.
 */
typedef void stele_commit_done(void *context, enum stele_status status,
                               const struct stele_error *error);
STELE_API enum stele_status stele_commit_async(
    struct stele *store, struct stele_batch *batch,
    enum stele_durability durability, struct stele_commit_result *result,
    stele_commit_done *done, void *context,
    struct stele_error *error) STELE_MUST_CHECK;

/* One-operation durable batches. `lsn_out` may be NULL. */
STELE_API enum stele_status stele_put(
    struct stele *store, const char *table, const void *key, size_t key_bytes,
    const void *value, size_t value_bytes, uint64_t *lsn_out,
    struct stele_error *error) STELE_MUST_CHECK;
STELE_API enum stele_status stele_delete(
    struct stele *store, const char *table, const void *key, size_t key_bytes,
    uint64_t *lsn_out, struct stele_error *error) STELE_MUST_CHECK;

/* Make every commit that returned before this call durable. */
STELE_API enum stele_status stele_sync(
    struct stele *store, struct stele_error *error) STELE_MUST_CHECK;

/* Bring the index up to the LSN visible at the time of the call. Commits and
 * reads go on. Never needed for durability. */
STELE_API enum stele_status stele_checkpoint(
    struct stele *store, struct stele_error *error) STELE_MUST_CHECK;

/*
 * Take a snapshot of the state at the LSN visible at the time of the call, or a
 * later one, and return its LSN (`lsn_out` may be NULL): a checkpoint, then one file
 * in snapshot/, read back and verified before it counts. Afterwards what two
 * snapshots make superfluous is removed (see "Retention"). Commits and reads go on.
 * The store does this by itself when the log since the last one exceeds max(64 MiB,
 * that snapshot's size). Never needed for durability. STELE_OK with nothing done if
 * there is one of that LSN, or if nothing was ever committed (LSN 0).
 * STELE_NO_SPACE: given up, nothing is left of it and nothing was removed.
 * STELE_CORRUPT: a value in the index fails its check; no snapshot is made of that.
 */
STELE_API enum stele_status stele_snapshot(
    struct stele *store, uint64_t *lsn_out,
    struct stele_error *error) STELE_MUST_CHECK;

/* The LSN of the batch with this tag, looking from `lsn_from` on. NOT_FOUND: no
 * such batch is in the log. Reads the log: for after a crash, not for every
 * day. */
STELE_API enum stele_status stele_find_tag(
    struct stele *store, const uint8_t tag[STELE_TAG_BYTES], uint64_t lsn_from,
    uint64_t *lsn_out, struct stele_error *error) STELE_MUST_CHECK;

/* ---- Views: a consistent state to read ---------------------------------- */

/*
 * The state at the newest visible LSN, unchanging for as long as the view
 * lives. In a process with the store open read-only: everything that any
 * process was told is durable before this call.
 *
 * A view pins memory and index pages; close it soon. STELE_BUSY: `views_max`
 * are open, or other processes use up the index's reader slots.
 */
STELE_API enum stele_status stele_view_open(
    struct stele *store, struct stele_view **view_out,
    struct stele_error *error) STELE_MUST_CHECK;

/*
 * The state as it was at `lsn`: after the last batch at or below it. 0: before
 * the first. Exact for every LSN that the retained log reaches back to, back to
 * the first one as long as nothing of the log was removed.
 *
 * Made from the nearest snapshot (or the index, if it has not gone past that LSN)
 * and the log from there: takes time and, while the view lives, memory in
 * proportion to that part of the log, and reads the snapshot once as a whole. To
 * look a key up in a snapshot costs some 64 KiB of reading. Otherwise it is a view
 * like any other, and counts as one. Where it stands on a snapshot, what
 * stele_view_get() lends is a copy that lives as long as the view: to look many
 * keys up, stele_view_copy(), or a cursor. (So too in a reader that has no index.)
 *
 * STELE_NOT_FOUND: older than what is retained, or newer than what is durable
 * (what a relaxed commit has written but not synced); the message names that end.
 * STELE_CORRUPT: what it would have to be made from is damaged. STELE_BUSY: as
 * above.
 */
STELE_API enum stele_status stele_view_open_at(
    struct stele *store, uint64_t lsn, struct stele_view **view_out,
    struct stele_error *error) STELE_MUST_CHECK;

/* Cursors of it that are still open can only be closed from now on. */
STELE_API void stele_view_close(struct stele_view *view);

/* The LSN that it shows; of stele_view_open_at(), the one that was asked for. */
STELE_API uint64_t stele_view_lsn(const struct stele_view *view);

struct stele_value {
    const void *data;
    size_t bytes;
    uint64_t lsn; /* Of the batch that put it. */
};

/*
 * Look a key up. `value_out->data` is borrowed from the view. STELE_NOT_FOUND.
 *
 * STELE_CORRUPT if the stored value fails its check, here and wherever values are
 * read (cursors, counts, preconditions, outcomes): `error` names table and key,
 * and nothing of it is delivered. Reads of other keys go on, and so do commits. A
 * handle open for writing makes a note of it (`index_damaged` in the statistics),
 * in ANCHOR within a second or so: the next open for writing sets the index aside
 * and builds it anew from what is sound. So closing and reopening mends it. A
 * read-only handle only reports: open for writing with `rebuild_index`.
 */
STELE_API enum stele_status stele_view_get(
    struct stele_view *view, const char *table, const void *key,
    size_t key_bytes, struct stele_value *value_out,
    struct stele_error *error) STELE_MUST_CHECK;

/* The same into the caller's buffer. `value_bytes_out` is the whole length; if
 * it exceeds `buffer_bytes`, STELE_TOO_BIG, with value_bytes_out and lsn_out set
 * and the buffer untouched. `lsn_out` may be NULL. */
STELE_API enum stele_status stele_view_copy(
    struct stele_view *view, const char *table, const void *key,
    size_t key_bytes, void *buffer, size_t buffer_bytes,
    size_t *value_bytes_out, uint64_t *lsn_out,
    struct stele_error *error) STELE_MUST_CHECK;

/* ---- Cursors: a view in key order ---------------------------------------- */

/*
 * Over the keys of `table` that begin with `prefix` (NULL, 0: all). Starts
 * unpositioned. Belongs to the view and must be closed before it.
 */
STELE_API enum stele_status stele_cursor_open(
    struct stele_view *view, const char *table, const void *prefix,
    size_t prefix_bytes, struct stele_cursor **cursor_out,
    struct stele_error *error) STELE_MUST_CHECK;

STELE_API void stele_cursor_close(struct stele_cursor *cursor);

/* Both borrowed from the cursor until its next call. */
struct stele_entry {
    const void *key;
    size_t key_bytes;
    struct stele_value value;
};

/*
 * Each moves the cursor and fills `entry_out`; at either end they return
 * STELE_NOT_FOUND, after which next() stays at the end, prev() at the start,
 * and the opposite call returns to the last, or first, entry. next() on an
 * unpositioned cursor is first(), prev() is last().
 */
STELE_API enum stele_status stele_cursor_first(
    struct stele_cursor *cursor, struct stele_entry *entry_out,
    struct stele_error *error) STELE_MUST_CHECK;
STELE_API enum stele_status stele_cursor_last(
    struct stele_cursor *cursor, struct stele_entry *entry_out,
    struct stele_error *error) STELE_MUST_CHECK;
/* To the first key at or after `key`. */
STELE_API enum stele_status stele_cursor_seek(
    struct stele_cursor *cursor, const void *key, size_t key_bytes,
    struct stele_entry *entry_out, struct stele_error *error) STELE_MUST_CHECK;
STELE_API enum stele_status stele_cursor_next(
    struct stele_cursor *cursor, struct stele_entry *entry_out,
    struct stele_error *error) STELE_MUST_CHECK;
STELE_API enum stele_status stele_cursor_prev(
    struct stele_cursor *cursor, struct stele_entry *entry_out,
    struct stele_error *error) STELE_MUST_CHECK;

/* ---- Tables -------------------------------------------------------------- */

/* The first table whose name is greater than `after` (NULL: the first of all).
 * A table is listed from its first operation on, also when it is empty. */
STELE_API enum stele_status stele_table_next(
    struct stele_view *view, const char *after,
    char name_out[STELE_TABLE_NAME_BYTES_MAX + 1],
    struct stele_error *error) STELE_MUST_CHECK;

/* The exact number of keys; 0 for a table never written. Cheap after a
 * checkpoint; otherwise up to one pass over the table. */
STELE_API enum stele_status stele_table_count(
    struct stele_view *view, const char *table, uint64_t *count_out,
    struct stele_error *error) STELE_MUST_CHECK;

/* The LSN of the last batch with an operation on the table (the broker's data
 * version); expectations do not count. 0 for a table never written. */
STELE_API enum stele_status stele_table_lsn(
    struct stele_view *view, const char *table, uint64_t *lsn_out,
    struct stele_error *error) STELE_MUST_CHECK;

/* ---- Statistics ----------------------------------------------------------- */

struct stele_stats {
    size_t size; /* In: sizeof(struct stele_stats), as the caller knows it. */

    uint8_t uuid[STELE_UUID_BYTES];
    uint64_t incarnation;  /* Counts opens for writing. */
    uint64_t lsn_visible;  /* New views see this. */
    uint64_t lsn_durable;  /* <= lsn_visible */
    uint64_t lsn_applied;  /* The index holds everything up to here. */
    uint64_t lsn_applying; /* A checkpoint under way ends here. */

    uint64_t segment_bytes; /* Length of one. */
    uint64_t segment_first;
    uint64_t segment_last; /* Prepared ones included. */
    uint64_t segment_current;
    uint64_t log_bytes_since_checkpoint;

    uint64_t memtable_bytes; /* Active and frozen. */
    uint64_t memtable_keys;
    uint64_t range_fragments;
    uint64_t views_open;
    uint64_t view_age_max_ns; /* Of the oldest open view. */

    uint64_t units_written; /* Group commits by this handle. */
    uint64_t records_written;
    uint64_t log_bytes_written;
    uint64_t log_syncs;
    uint64_t rotations;
    uint64_t checkpoints;
    uint64_t checkpoint_transactions;
    uint64_t checkpoint_failures; /* Tried again later, unless the index itself
                                     failed: it is then built anew by the next
                                     open. */
    uint64_t groups_withdrawn;    /* Disk full: not applied. */
    uint64_t range_splits;        /* Fragments cut by a newer range delete. */

    /* What opening found. */
    char recovery_row;               /* 'A' (the log ended cleanly) or 'C'. */
    uint64_t recovery_dropped_bytes; /* Of a torn tail, never acknowledged. */
    uint64_t recovery_replayed_records;
    bool index_rebuilt;
    bool poisoned;
    /* A reader without a writer could not make the log's end durable (a failing
     * disk): it shows only what is proven. */
    bool tail_unproven;
    struct stele_error last_checkpoint_error; /* .status OK: the last worked. */

    /* What to know about the file system: that it is in memory, layered over
     * another, or a network's. Static; NULL: nothing. */
    const char *fs_warning;

    uint64_t snapshots_taken; /* By this handle. */
    uint64_t snapshot_failures;
    uint64_t snapshot_lsns[2]; /* Those that count, the newer first; 0: none. */
    /* Of the one under way: bytes of its file so far. 0: there is none. */
    uint64_t snapshot_bytes_done;
    uint64_t segments_removed;
    /* Why the last one failed, or what was found damaged of those before it, by
     * this open or since. .status OK: all is well. */
    struct stele_error last_snapshot_error;
    /* Damage was met in the index, by this handle or one before it; or a commit
     * of it failed. The next open for writing builds it anew. */
    bool index_damaged;
};

STELE_API enum stele_status stele_stats(
    struct stele *store, struct stele_stats *stats,
    struct stele_error *error) STELE_MUST_CHECK;

/* ---- Retention ------------------------------------------------------------
 *
 * The log is kept whole until there are two verified snapshots; then back to the
 * older one, to what is in the index, and to what options or holds keep. So the
 * index can always be built anew, also when the newest snapshot is damaged.
 */

/* Why a segment of the log is there. */
enum stele_kept {
    STELE_KEPT_CURRENT,   /* It is being written, or prepared for that. */
    STELE_KEPT_SNAPSHOTS, /* There are fewer than two snapshots. */
    STELE_KEPT_SNAPSHOT,  /* The log from the older of two, at `lsn`. */
    STELE_KEPT_INDEX,     /* The index holds no more than up to `lsn`. */
    STELE_KEPT_HELD,      /* The log from `lsn` on is held. */
    STELE_KEPT_BYTES,     /* retain_log_bytes */
    STELE_KEPT_TIME,      /* retain_log_ms */
    STELE_KEPT_FOR_NOW,   /* Nothing that this handle knows of needs it: it goes
                             with the next snapshot, or the writer's options or
                             holds keep it. */
};

struct stele_segment {
    uint64_t sequence;
    uint64_t bytes;
    enum stele_kept kept;
    uint64_t lsn; /* Of what it is kept for; 0: see `kept`. */
};

/* The first segment of a sequence number above `after` (0: the first of all).
 * NOT_FOUND: there is none. */
STELE_API enum stele_status stele_segment_next(
    struct stele *store, uint64_t after, struct stele_segment *segment_out,
    struct stele_error *error) STELE_MUST_CHECK;

/* A snapshot, as its file and ANCHOR say. */
struct stele_snapshot_info {
    uint64_t lsn;
    uint64_t bytes;
    uint64_t keys;
    uint64_t tables;
    bool counts; /* Verified when it was written, and named in ANCHOR. */
    bool usable; /* Header, footer and its place in the log are right. */
    struct stele_error why; /* .status OK if usable. */
};

/* The first snapshot of an LSN above `after`. NOT_FOUND: there is none. */
STELE_API enum stele_status stele_snapshot_next(
    struct stele *store, uint64_t after, struct stele_snapshot_info *info_out,
    struct stele_error *error) STELE_MUST_CHECK;

/* ---- Backup and restore ------------------------------------------------------
 *
 * An archive is a directory with the newest snapshot, the log from there on, and a
 * file ARCHIVE that vouches for both. A backup makes one or brings it up to date; a
 * restore makes a new store of it, as it was at its end or at any LSN or time in it.
 */

struct stele_backup_report {
    size_t size;  /* In: sizeof(struct stele_backup_report). */
    uint64_t lsn; /* The newest one in the archive. */
    uint64_t
        snapshot_lsn; /* Of the snapshot it is based on; 0: the log is whole. */
    uint64_t bytes_copied;  /* Written; runs of zeros are left out. */
    uint64_t bytes_present; /* That the archive had already. */
    uint64_t segments_copied;
    uint64_t units; /* Read back: group commits behind the snapshot. */
};

/*
 * Copy what is durable now into the directory `dest`, which is made if there is none
 * (its parent must exist), must be empty, or the archive of an earlier backup of this
 * store: then only what is new is copied, and the archive reaches back as far as it
 * did before. Nothing in it is ever deleted. `report` and `progress` may be NULL.
 *
 * The handle may be open for writing or for reading; commits and snapshots go on, in
 * whatever process. Every file needed is opened before any is copied: a descriptor
 * for each segment of the log behind the snapshot.
 *
 * When it returns STELE_OK all of it was read back from the disk and verified.
 * Whatever else happens, also a power cut: an archive that was there before is as
 * good as it was, and the next backup goes on.
 *
 * STELE_FOREIGN: `dest` is neither empty nor an archive, or that of another store, or
 * of this one with another history. STELE_INVALID: it lies inside the store.
 * STELE_LOCKED: another backup is writing to it. STELE_CORRUPT: its ARCHIVE is
 * damaged, and what is in it is left as it was; or the store's log is, or none of its
 * snapshots is sound.
 */
STELE_API enum stele_status stele_backup(
    struct stele *store, const char *dest, struct stele_backup_report *report,
    stele_progress *progress, void *context,
    struct stele_error *error) STELE_MUST_CHECK;

/* All zero but `size`: the whole archive. */
struct stele_restore_options {
    size_t size; /* In: sizeof(struct stele_restore_options). */
    /* Up to the last batch at or below this LSN. 0 or UINT64_MAX: all. */
    uint64_t until_lsn;
    /* Up to the last batch written at or before this time, in nanoseconds since
     * 1970, by the clock that the writer had. 0: all. Not both. */
    uint64_t until_time_ns;
    stele_progress *progress; /* May be NULL. */
    void *context;
};

struct stele_restore_report {
    size_t size;      /* In: sizeof(struct stele_restore_report). */
    uint64_t lsn;     /* Of the last batch in the new store. */
    uint64_t time_ns; /* When it was written; 0: unknown. */
    uint64_t keys;
    uint64_t tables;
    uint8_t uuid[STELE_UUID_BYTES]; /* Of the new store. */
};

/*
 * Make a new store in `path`, which must not exist or be an empty directory, with the
 * state that the archive has: at its end, or as `options` (may be NULL) say. It has a
 * uuid of its own, and its LSNs go on at least 2^20 above, so that nothing of it is
 * ever taken for the store that was backed up. It can be opened, backed up and
 * restored like any other. `report` may be NULL. The archive is only read.
 *
 * Made in `path`.restore-tmp and then renamed: after a failure, or a power cut, there
 * is no store at `path`, or (if only the last sync failed) a whole one. Takes memory
 * for one memtable, and for a while disk space for an index beside the snapshot.
 *
 * STELE_NOT_FOUND: the archive does not have that LSN or time: it is older or newer, or
 * in a gap between two backups; the message says what there is. STELE_CORRUPT: what
 * it would have to be made from is damaged. STELE_FOREIGN: `archive` is none, or of a
 * newer format. STELE_EXISTS: there is something at `path`, or at the sibling's.
 * STELE_LOCKED: another restore is making it.
 */
STELE_API enum stele_status stele_restore(
    const char *archive, const char *path,
    const struct stele_restore_options *options,
    struct stele_restore_report *report,
    struct stele_error *error) STELE_MUST_CHECK;

/* ---- Verification ---------------------------------------------------------- */

struct stele_verify_report {
    size_t size; /* In: sizeof(struct stele_verify_report). */
    uint64_t segments;
    uint64_t units;
    uint64_t records;
    uint64_t log_bytes;
    uint64_t lsn_last;
    uint64_t index_items;
    uint64_t index_tables;
    uint64_t problems; /* Findings reported; 0: everything verifies. */
    uint64_t snapshots;
    uint64_t snapshot_bytes;
};

/*
 * Check every checksum of the log, of the snapshots and of the index, the table
 * counts and sums, and that snapshots and index descend from this log. `finding` (may be NULL) is called
 * for each problem. Reads everything; reads and commits go on. STELE_CORRUPT if
 * there was a finding; the report is filled in then too.
 */
typedef void stele_verify_finding(void *context,
                                  const struct stele_error *problem);
STELE_API enum stele_status stele_verify(
    struct stele *store, stele_verify_finding *finding, void *context,
    struct stele_verify_report *report,
    struct stele_error *error) STELE_MUST_CHECK;

#ifdef __cplusplus
}
#endif

#endif
