/*
 * engine/cursor.h -- the one merging cursor: memtables, range fragments and base
 * in key order, as of a view's LSN.
 *
 * It walks full keys (`table, 0x00, key`) inside bounds. stele_cursor_*,
 * counting, and whatever else reads a state in order go through it.
 */
#ifndef ENGINE_CURSOR_H
#define ENGINE_CURSOR_H

#include <stdbool.h>

#include "base/bytes.h"
#include "base/status.h"
#include "engine/limits.h"
#include "engine/lookup.h"
#include "engine/view.h"

/* Of the full keys first <= k < end; both are copied. Table rows inside the
 * bounds are shown like any key. */
enum stele_status cursor_open(struct stele_view *view, struct bytes first,
                              struct bytes end,
                              struct stele_cursor **cursor_out,
                              struct stele_error *error) STELE_MUST_CHECK;

/* The view goes: its open cursors let go of everything, and can only be closed
 * from now on. */
void cursor_orphan_all(struct stele_view *view);

struct cursor_entry {
    struct bytes key; /* A full key. Both borrowed until the next call. */
    struct lookup_value found;
};

/* To the first visible key >= `key`; the last one < `key`. NOT_FOUND: none
 * inside the bounds. */
enum stele_status cursor_seek(struct stele_cursor *cursor, struct bytes key,
                              struct cursor_entry *entry_out,
                              struct stele_error *error) STELE_MUST_CHECK;
enum stele_status cursor_seek_before(
    struct stele_cursor *cursor, struct bytes key,
    struct cursor_entry *entry_out, struct stele_error *error) STELE_MUST_CHECK;

#endif
