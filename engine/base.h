/*
 * engine/base.h -- the base of a view: the index, a snapshot, or nothing.
 *
 *     state at LSN n  =  a base that is complete at some LSN a <= n
 *                        + the log records a+1 .. n
 *
 * Mostly the base is the index. A view of a past LSN, and a reader whose store has
 * no usable index, stand on a snapshot instead. Whoever reads a state goes through
 * here and does not ask which it is.
 *
 * Threads: one at a time, like the view that it belongs to.
 */
#ifndef ENGINE_BASE_H
#define ENGINE_BASE_H

#include "base/bytes.h"
#include "base/status.h"
#include "engine/base_value.h"
#include "engine/index.h"
#include "snapshot/map.h"

struct base_cursor;
struct base_kept;

struct base {
    struct index_reader *index; /* At most one of them is set; neither: ... */
    struct snapshot_map *snapshot;  /* ... the base is empty. A reference. */
    struct snapshot_cursor *cursor; /* For lookups in the snapshot. */
    struct base_kept *kept;         /* Values that were lent from it. */
};

/* Give back all it holds: the index reader, or the snapshot. */
void base_release(struct base *base);
/* In a child of the process that made it. */
void base_forsake(struct base *base);

bool base_is_empty(const struct base *base);

/* Borrowed until the base is released (a snapshot's values are copied for that).
 * NOT_FOUND, of an empty base always; CORRUPT. */
enum stele_status base_get(struct base *base, struct bytes key,
                           struct base_value *value_out,
                           struct stele_error *error) STELE_MUST_CHECK;

/* Free the copies that were made since base->kept was `mark`: of values that
 * nobody borrows any more. */
void base_keep_up_to(struct base *base, const struct base_kept *mark);

/* ---- A cursor --------------------------------------------------------------- */

/* What an entry holds. CORRUPT: it fails its check. */
enum stele_status base_entry_value(const struct base *base,
                                   const struct base_entry *entry,
                                   struct base_value *value_out,
                                   struct stele_error *error) STELE_MUST_CHECK;

/* As the index's (engine/index.h), but what it shows is borrowed until its next call;
 * the base is not empty. A `key` must not be one that the cursor lent. Closed before the
 * base is released. */
enum stele_status base_cursor_open(struct base *base,
                                   struct base_cursor **cursor_out,
                                   struct stele_error *error) STELE_MUST_CHECK;
void base_cursor_close(struct base_cursor *cursor); /* Accepts NULL. */
enum stele_status base_cursor_seek(struct base_cursor *cursor, struct bytes key,
                                   struct base_entry *entry_out,
                                   struct stele_error *error) STELE_MUST_CHECK;
enum stele_status base_cursor_seek_before(
    struct base_cursor *cursor, struct bytes key, struct base_entry *entry_out,
    struct stele_error *error) STELE_MUST_CHECK;
enum stele_status base_cursor_next(struct base_cursor *cursor,
                                   struct base_entry *entry_out,
                                   struct stele_error *error) STELE_MUST_CHECK;
enum stele_status base_cursor_prev(struct base_cursor *cursor,
                                   struct base_entry *entry_out,
                                   struct stele_error *error) STELE_MUST_CHECK;

#endif
