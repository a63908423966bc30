/* engine/base.c -- see engine/base.h. */
#include "engine/base.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"

struct base_kept {
    struct base_kept *older;
    uint8_t value[];
};

void base_keep_up_to(struct base *base, const struct base_kept *mark)
{
    while (base->kept != mark) {
        struct base_kept *kept = base->kept;

        base->kept = kept->older;
        free(kept);
    }
}

static void release_snapshot(struct base *base)
{
    base_keep_up_to(base, NULL);
    snapshot_cursor_close(base->cursor);
    snapshot_map_unref(base->snapshot);
}

void base_release(struct base *base)
{
    index_reader_release(base->index);
    release_snapshot(base);
    *base = (struct base){0};
}

void base_forsake(struct base *base)
{
    index_reader_forsake(base->index);
    release_snapshot(base); /* Memory, and descriptors of the child's own. */
    *base = (struct base){0};
}

bool base_is_empty(const struct base *base)
{
    return base->index == NULL && base->snapshot == NULL;
}

/* ---- Values ------------------------------------------------------------------- */

enum stele_status base_entry_value(const struct base *base,
                                   const struct base_entry *entry,
                                   struct base_value *value_out,
                                   struct stele_error *error)
{
    char snapshot[48];

    if (base_value_decode(entry->stored, value_out) &&
        base_value_verify(entry->key, value_out)) {
        return STELE_OK;
    }
    snprintf(snapshot, sizeof snapshot, "snapshot/%016" PRIx64 ".snap",
             base->index != NULL ? 0 : snapshot_map_info(base->snapshot)->lsn);
    return base_value_read(base->index != NULL ? "index" : snapshot, entry->key,
                           entry->stored, value_out, error);
}

/* The value outlives the block that it was read from. */
static enum stele_status keep(struct base *base, struct base_value *value,
                              struct stele_error *error)
{
    struct base_kept *kept = malloc(sizeof *kept + value->value.size);

    if (kept == NULL) {
        return error_no_memory(error, "a snapshot's value");
    }
    if (value->value.size > 0) {
        memcpy(kept->value, value->value.data, value->value.size);
    }
    value->value.data = kept->value;
    kept->older = base->kept;
    base->kept = kept;
    return STELE_OK;
}

static enum stele_status get_from_snapshot(struct base *base, struct bytes key,
                                           struct base_value *value_out,
                                           struct stele_error *error)
{
    struct snapshot_entry found;
    struct base_value value;
    enum stele_status status = STELE_OK;

    if (base->cursor == NULL) {
        status = snapshot_cursor_open(base->snapshot, &base->cursor, error);
    }
    if (status == STELE_OK) {
        status = snapshot_cursor_seek(base->cursor, key, &found, error);
    }
    if (status != STELE_OK) {
        return status;
    }
    if (bytes_compare(found.key, key) != 0) {
        return error_set(error, STELE_NOT_FOUND, "no such key");
    }
    status = base_entry_value(
        base,
        &(const struct base_entry){.key = found.key, .stored = found.stored},
        &value, error);
    if (status == STELE_OK) {
        status = keep(base, &value, error);
    }
    if (status == STELE_OK) {
        *value_out = value;
    }
    return status;
}

enum stele_status base_get(struct base *base, struct bytes key,
                           struct base_value *value_out,
                           struct stele_error *error)
{
    if (base->index != NULL) {
        return index_reader_get(base->index, key, value_out, error);
    }
    if (base->snapshot != NULL) {
        return get_from_snapshot(base, key, value_out, error);
    }
    return error_set(error, STELE_NOT_FOUND, "no such key");
}

/* ---- The cursor ----------------------------------------------------------------- */

struct base_cursor {
    struct index_cursor *index; /* One of them. */
    struct snapshot_cursor *snapshot;
};

enum stele_status base_cursor_open(struct base *base,
                                   struct base_cursor **cursor_out,
                                   struct stele_error *error)
{
    struct base_cursor *cursor = calloc(1, sizeof *cursor);
    enum stele_status status;

    assert(!base_is_empty(base));
    if (cursor == NULL) {
        return error_no_memory(error, "cursor");
    }
    status =
        base->index != NULL
            ? index_cursor_open(base->index, &cursor->index, error)
            : snapshot_cursor_open(base->snapshot, &cursor->snapshot, error);
    if (status != STELE_OK) {
        free(cursor);
        return status;
    }
    *cursor_out = cursor;
    return STELE_OK;
}

void base_cursor_close(struct base_cursor *cursor)
{
    if (cursor == NULL) {
        return;
    }
    index_cursor_close(cursor->index);
    snapshot_cursor_close(cursor->snapshot);
    free(cursor);
}

static enum stele_status of_snapshot(enum stele_status status,
                                     const struct snapshot_entry *entry,
                                     struct base_entry *entry_out)
{
    if (status == STELE_OK) {
        entry_out->key = entry->key;
        entry_out->stored = entry->stored;
    }
    return status;
}

enum stele_status base_cursor_seek(struct base_cursor *cursor, struct bytes key,
                                   struct base_entry *entry_out,
                                   struct stele_error *error)
{
    struct snapshot_entry in_snapshot;

    if (cursor->index != NULL) {
        return index_cursor_seek(cursor->index, key, entry_out, error);
    }
    return of_snapshot(
        snapshot_cursor_seek(cursor->snapshot, key, &in_snapshot, error),
        &in_snapshot, entry_out);
}

enum stele_status base_cursor_seek_before(struct base_cursor *cursor,
                                          struct bytes key,
                                          struct base_entry *entry_out,
                                          struct stele_error *error)
{
    struct snapshot_entry in_snapshot;

    if (cursor->index != NULL) {
        return index_cursor_seek_before(cursor->index, key, entry_out, error);
    }
    return of_snapshot(
        snapshot_cursor_seek_before(cursor->snapshot, key, &in_snapshot, error),
        &in_snapshot, entry_out);
}

enum stele_status base_cursor_next(struct base_cursor *cursor,
                                   struct base_entry *entry_out,
                                   struct stele_error *error)
{
    struct snapshot_entry in_snapshot;

    if (cursor->index != NULL) {
        return index_cursor_next(cursor->index, entry_out, error);
    }
    return of_snapshot(
        snapshot_cursor_next(cursor->snapshot, &in_snapshot, error),
        &in_snapshot, entry_out);
}

enum stele_status base_cursor_prev(struct base_cursor *cursor,
                                   struct base_entry *entry_out,
                                   struct stele_error *error)
{
    struct snapshot_entry in_snapshot;

    if (cursor->index != NULL) {
        return index_cursor_prev(cursor->index, entry_out, error);
    }
    return of_snapshot(
        snapshot_cursor_prev(cursor->snapshot, &in_snapshot, error),
        &in_snapshot, entry_out);
}
