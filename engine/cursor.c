/*
 * engine/cursor.c -- see engine/cursor.h.
 *
 * Each source (two memtables, the base) stands on its first key at or after the
 * cursor's, or, going backward, on its last one before it. A step takes the
 * smallest (largest) key of them and asks engine/lookup.h whether it is visible;
 * if not, every source on that key steps on. Turning round seeks anew.
 *
 * Under a range fragment the base is not walked but left at once: a base value
 * there that is not older than the fragment came from a checkpoint of this very
 * memtable, so the memtable has the key as well.
 */
#include "engine/cursor.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "engine/registry.h"

enum direction { FORWARD, BACKWARD };

enum place { UNPOSITIONED, ON_ENTRY, AT_START, AT_END };

struct layer_source {
    struct memtable_order *order; /* NULL: no such layer. */
    struct memtable_iterator nodes;
    struct range_set *ranges; /* The state's. */
    size_t fragment;          /* Where the last search ended. */
};

struct stele_cursor {
    struct stele_view *view;   /* NULL: closed before this cursor. */
    uint64_t process;          /* The view's. */
    struct stele_cursor *next; /* In the view's list. */
    struct full_key first;
    struct full_key end;
    size_t strip_bytes; /* Of a full key, for the API. */
    struct layer_source layers[STATE_LAYERS];
    struct base_cursor *base; /* NULL: the base is empty. */
    bool base_valid;
    bool base_alone; /* No layer has anything more, nor ranges. */
    struct base_entry base_entry;
    enum place place;
    enum direction direction;
    struct bytes current;      /* ON_ENTRY; borrowed from a source there. */
    unsigned on_current;       /* The sources that stand on it, as a set. */
    struct full_key turned_at; /* `current`, while the sources turn round. */
    bool released;             /* The view has expired. */
};

static void release_sources(struct stele_cursor *cursor)
{
    if (cursor->released) {
        return;
    }
    base_cursor_close(cursor->base);
    cursor->base = NULL;
    for (int index = 0; index < STATE_LAYERS; index++) {
        memtable_order_release(cursor->layers[index].order);
        cursor->layers[index].order = NULL;
    }
    for (struct stele_cursor **link = &cursor->view->cursors; *link != NULL;
         link = &(*link)->next) {
        if (*link == cursor) {
            *link = cursor->next;
            break;
        }
    }
    cursor->released = true;
}

void cursor_orphan_all(struct stele_view *view)
{
    while (view->cursors != NULL) {
        struct stele_cursor *cursor = view->cursors;

        release_sources(cursor);
        cursor->view = NULL;
    }
}

enum stele_status cursor_open(struct stele_view *view, struct bytes first,
                              struct bytes end,
                              struct stele_cursor **cursor_out,
                              struct stele_error *error)
{
    enum stele_status status = view_check(view, error);
    struct stele_cursor *cursor;

    if (status != STELE_OK) {
        return status;
    }
    cursor = calloc(1, sizeof *cursor);
    if (cursor == NULL) {
        return error_no_memory(error, "cursor");
    }
    assert(first.size <= sizeof cursor->first.data &&
           end.size <= sizeof cursor->end.data);
    cursor->view = view;
    cursor->process = view->process;
    cursor->next = view->cursors;
    view->cursors = cursor;
    memcpy(cursor->first.data, first.data, first.size);
    cursor->first.size = first.size;
    memcpy(cursor->end.data, end.data, end.size);
    cursor->end.size = end.size;
    for (int index = 0; index < STATE_LAYERS && status == STELE_OK; index++) {
        const struct state_layer *layer = &view->state->layers[index];
        struct layer_source *source = &cursor->layers[index];

        if (layer->memtable == NULL) {
            continue;
        }
        source->ranges = layer->ranges;
        status = memtable_order_acquire(layer->memtable, &source->order, error);
        if (status == STELE_OK) {
            memtable_iterator_init(&source->nodes, source->order);
        }
    }
    if (status == STELE_OK && !base_is_empty(&view->base)) {
        status = base_cursor_open(&view->base, &cursor->base, error);
    }
    if (status != STELE_OK) {
        stele_cursor_close(cursor);
        return status;
    }
    *cursor_out = cursor;
    return STELE_OK;
}

void stele_cursor_close(struct stele_cursor *cursor)
{
    if (cursor == NULL) {
        return;
    }
    release_sources(cursor);
    free(cursor);
}

/* ---- Moving the sources --------------------------------------------------------- */

/* What a call of the base's cursor returned becomes base_valid. */
static enum stele_status note_base(struct stele_cursor *cursor,
                                   enum stele_status status)
{
    cursor->base_valid = status == STELE_OK;
    return status == STELE_NOT_FOUND ? STELE_OK : status;
}

static enum stele_status seek_base(struct stele_cursor *cursor,
                                   struct bytes key, struct stele_error *error)
{
    return note_base(
        cursor,
        cursor->direction == FORWARD
            ? base_cursor_seek(cursor->base, key, &cursor->base_entry, error)
            : base_cursor_seek_before(cursor->base, key, &cursor->base_entry,
                                      error));
}

/* The sources, as bits of a set: the layers by their index, and the base. */
enum { BASE_BIT = 1u << STATE_LAYERS };

/* In the cursor's direction. As after a checkpoint: what the base has is visible. */
static bool is_base_alone(const struct stele_cursor *cursor)
{
    for (int index = 0; index < STATE_LAYERS; index++) {
        const struct layer_source *source = &cursor->layers[index];

        if (source->order != NULL && (source->nodes.node != NULL ||
                                      range_set_count(source->ranges) > 0)) {
            return false;
        }
    }
    return true;
}

/* All sources to their first key >= `key`, or their last one < `key`. */
static enum stele_status seek_sources(struct stele_cursor *cursor,
                                      enum direction direction,
                                      struct bytes key,
                                      struct stele_error *error)
{
    cursor->direction = direction;
    for (int index = 0; index < STATE_LAYERS; index++) {
        struct layer_source *source = &cursor->layers[index];

        if (source->order == NULL) {
            continue;
        }
        if (direction == FORWARD) {
            memtable_iterator_seek(&source->nodes, key);
        } else {
            memtable_iterator_seek_before(&source->nodes, key);
        }
    }
    cursor->base_alone = is_base_alone(cursor);
    return cursor->base == NULL ? STELE_OK : seek_base(cursor, key, error);
}

/* These sources, which stand on a key, go one further. */
static enum stele_status step_sources(struct stele_cursor *cursor,
                                      unsigned sources,
                                      struct stele_error *error)
{
    for (int index = 0; index < STATE_LAYERS; index++) {
        struct layer_source *source = &cursor->layers[index];

        if ((sources & (1u << index)) == 0) {
            continue;
        }
        if (cursor->direction == FORWARD) {
            memtable_iterator_next(&source->nodes);
        } else {
            memtable_iterator_prev(&source->nodes);
        }
    }
    if ((sources & ~(unsigned)BASE_BIT) != 0) {
        cursor->base_alone = is_base_alone(cursor);
    }
    if ((sources & BASE_BIT) == 0) {
        return STELE_OK;
    }
    return note_base(
        cursor,
        cursor->direction == FORWARD
            ? base_cursor_next(cursor->base, &cursor->base_entry, error)
            : base_cursor_prev(cursor->base, &cursor->base_entry, error));
}

/* ---- What is visible ------------------------------------------------------------- */

/* The fragment that covers `key`, or NULL. Neighbouring keys mostly lie in the
 * same fragment, or in the same gap. */
static const struct range_fragment *covering(struct layer_source *source,
                                             struct bytes key)
{
    const size_t count = range_set_count(source->ranges);
    const size_t hint = source->fragment;
    const struct range_fragment *fragment;

    if (count == 0) {
        return NULL;
    }
    if (hint > count ||
        (hint < count &&
         bytes_compare(range_set_at(source->ranges, hint)->end, key) <= 0) ||
        (hint > 0 &&
         bytes_compare(range_set_at(source->ranges, hint - 1)->end, key) > 0)) {
        source->fragment = range_set_lower(source->ranges, key);
    }
    if (source->fragment == count) {
        return NULL;
    }
    fragment = range_set_at(source->ranges, source->fragment);
    return bytes_compare(fragment->first, key) <= 0 ? fragment : NULL;
}

/* The nearest key of all sources in the cursor's direction, and the set of those that
 * stand on it; empty: there is none. Every key is compared once: what a scan takes is
 * mostly this. */
static unsigned nearest_key(const struct stele_cursor *cursor,
                            struct bytes *key_out)
{
    unsigned sources = 0;

    if (cursor->base_valid) {
        *key_out = cursor->base_entry.key;
        sources = BASE_BIT;
    }
    for (int index = 0; index < STATE_LAYERS; index++) {
        const struct layer_source *source = &cursor->layers[index];
        struct bytes key;
        int order;

        if (source->order == NULL || source->nodes.node == NULL) {
            continue;
        }
        key = memtable_node_key(source->nodes.node);
        order = sources == 0 ? 0 : bytes_compare(key, *key_out);
        if (order == 0) {
            sources |= 1u << index;
            *key_out = key;
        } else if (cursor->direction == FORWARD ? order < 0 : order > 0) {
            sources = 1u << index;
            *key_out = key;
        }
    }
    return sources;
}

/* What the base has on the key on which it stands. */
static enum stele_status base_value_of(struct stele_cursor *cursor,
                                       struct lookup_value *value_out,
                                       struct stele_error *error)
{
    struct base_value base;
    const enum stele_status status = base_entry_value(
        &cursor->view->base, &cursor->base_entry, &base, error);

    if (status == STELE_OK) {
        value_out->lsn = base.lsn;
        value_out->value = base.value;
    }
    return status;
}

/* Is `key`, on which `sources` stand, visible? NOT_FOUND: no. `skip_out`: a
 * fragment that hides the base's entry there, or NULL. */
static enum stele_status resolve(struct stele_cursor *cursor, struct bytes key,
                                 unsigned sources,
                                 struct lookup_value *value_out,
                                 const struct range_fragment **skip_out,
                                 struct stele_error *error)
{
    const struct range_fragment *fragments[STATE_LAYERS] = {NULL};
    const struct memtable_version *candidate = NULL;
    uint64_t base_lsn_min = 0;
    enum stele_status status;

    *skip_out = NULL;
    if (cursor->base_alone) {
        return base_value_of(cursor, value_out, error);
    }
    for (int index = 0; index < STATE_LAYERS; index++) {
        struct layer_source *source = &cursor->layers[index];

        if (source->order == NULL) {
            continue;
        }
        fragments[index] = covering(source, key);
        if (candidate == NULL && (sources & (1u << index)) != 0) {
            candidate =
                memtable_node_find(source->nodes.node, cursor->view->lsn);
        }
    }
    switch (lookup_decide(candidate, fragments, STATE_LAYERS, value_out,
                          &base_lsn_min)) {
    case LOOKUP_PRESENT:
        return STELE_OK;
    case LOOKUP_ABSENT:
        return STELE_NOT_FOUND;
    case LOOKUP_BASE:
        break;
    }
    if ((sources & BASE_BIT) == 0) {
        return STELE_NOT_FOUND;
    }
    status = base_value_of(cursor, value_out, error);
    if (status == STELE_OK && value_out->lsn < base_lsn_min) {
        /* The newest of the two that cover the key. */
        *skip_out = fragments[STATE_ACTIVE] != NULL ? fragments[STATE_ACTIVE]
                                                    : fragments[STATE_FROZEN];
        return STELE_NOT_FOUND;
    }
    return status;
}

static bool in_bounds(const struct stele_cursor *cursor, struct bytes key)
{
    return cursor->direction == FORWARD
               ? bytes_compare(key, full_key_bytes(&cursor->end)) < 0
               : bytes_compare(key, full_key_bytes(&cursor->first)) >= 0;
}

/* From where the sources stand to the nearest visible key. */
static enum stele_status find_visible(struct stele_cursor *cursor,
                                      struct cursor_entry *entry_out,
                                      struct stele_error *error)
{
    struct bytes key;
    unsigned sources;

    while ((sources = nearest_key(cursor, &key)) != 0 &&
           in_bounds(cursor, key)) {
        const struct range_fragment *skip;
        enum stele_status status =
            resolve(cursor, key, sources, &entry_out->found, &skip, error);

        if (status == STELE_OK) {
            cursor->place = ON_ENTRY;
            cursor->current = key;
            cursor->on_current = sources;
            entry_out->key = key;
            return STELE_OK;
        }
        if (status != STELE_NOT_FOUND) {
            return status;
        }
        status = step_sources(cursor, sources, error);
        if (status == STELE_OK && skip != NULL && cursor->base_valid) {
            status = seek_base(
                cursor, cursor->direction == FORWARD ? skip->end : skip->first,
                error);
        }
        if (status != STELE_OK) {
            cursor->place = UNPOSITIONED; /* Not all of them have moved. */
            return status;
        }
    }
    cursor->place = cursor->direction == FORWARD ? AT_END : AT_START;
    return error_set(error, STELE_NOT_FOUND, "no further key");
}

static enum stele_status check(struct stele_cursor *cursor,
                               struct stele_error *error)
{
    enum stele_status status = registry_check_process(cursor->process, error);

    if (status != STELE_OK) {
        return status;
    }
    if (cursor->view == NULL) {
        return error_set(error, STELE_INVALID, "the cursor's view is closed");
    }
    status = view_check(cursor->view, error);
    if (status == STELE_EXPIRED) {
        release_sources(cursor);
    }
    return status;
}

/* Seek, then find. A bound outside the cursor's is brought inside. */
static enum stele_status seek(struct stele_cursor *cursor,
                              enum direction direction, struct bytes key,
                              struct cursor_entry *entry_out,
                              struct stele_error *error)
{
    const struct bytes first = full_key_bytes(&cursor->first);
    const struct bytes end = full_key_bytes(&cursor->end);
    enum stele_status status = check(cursor, error);

    if (bytes_compare(key, first) < 0) {
        key = first;
    } else if (bytes_compare(key, end) > 0) {
        key = end;
    }
    cursor->place = UNPOSITIONED;
    if (status == STELE_OK) {
        status = seek_sources(cursor, direction, key, error);
    }
    if (status == STELE_OK) {
        status = find_visible(cursor, entry_out, error);
    }
    return status == STELE_CORRUPT ? view_note(cursor->view, status) : status;
}

enum stele_status cursor_seek(struct stele_cursor *cursor, struct bytes key,
                              struct cursor_entry *entry_out,
                              struct stele_error *error)
{
    return seek(cursor, FORWARD, key, entry_out, error);
}

enum stele_status cursor_seek_before(struct stele_cursor *cursor,
                                     struct bytes key,
                                     struct cursor_entry *entry_out,
                                     struct stele_error *error)
{
    return seek(cursor, BACKWARD, key, entry_out, error);
}

/* Which sources stand on `key`, after a turn: forward, perhaps all; backward, none. */
static unsigned standing_on(const struct stele_cursor *cursor, struct bytes key)
{
    struct bytes nearest;
    const unsigned sources = nearest_key(cursor, &nearest);

    return sources != 0 && bytes_compare(nearest, key) == 0 ? sources : 0;
}

/* One entry on from the current one. */
static enum stele_status step(struct stele_cursor *cursor,
                              enum direction direction,
                              struct cursor_entry *entry_out,
                              struct stele_error *error)
{
    enum stele_status status = check(cursor, error);

    if (status == STELE_OK && cursor->direction != direction) {
        /* Its source moves away from it. */
        memcpy(cursor->turned_at.data, cursor->current.data,
               cursor->current.size);
        cursor->turned_at.size = cursor->current.size;
        cursor->current = full_key_bytes(&cursor->turned_at);
        status = seek_sources(cursor, direction, cursor->current, error);
        if (status == STELE_OK) {
            cursor->on_current = standing_on(cursor, cursor->current);
        }
    }
    if (status == STELE_OK) {
        status = step_sources(cursor, cursor->on_current, error);
        /* They have left it: if the next key turns out damaged, it is met again. */
        cursor->on_current = 0;
    }
    if (status == STELE_OK) {
        status = find_visible(cursor, entry_out, error);
    } else {
        cursor->place = UNPOSITIONED;
    }
    return status == STELE_CORRUPT ? view_note(cursor->view, status) : status;
}

static enum stele_status move(struct stele_cursor *cursor,
                              enum direction direction,
                              struct cursor_entry *entry_out,
                              struct stele_error *error)
{
    const enum place stuck = direction == FORWARD ? AT_END : AT_START;

    if (cursor->place == ON_ENTRY) {
        return step(cursor, direction, entry_out, error);
    }
    if (cursor->place == stuck) {
        const enum stele_status status = check(cursor, error);

        return status == STELE_OK
                   ? error_set(error, STELE_NOT_FOUND, "no further key")
                   : status;
    }
    return direction == FORWARD
               ? cursor_seek(cursor, full_key_bytes(&cursor->first), entry_out,
                             error)
               : cursor_seek_before(cursor, full_key_bytes(&cursor->end),
                                    entry_out, error);
}

/* ---- The API ---------------------------------------------------------------------- */

enum stele_status stele_cursor_open(struct stele_view *view, const char *table,
                                    const void *prefix, size_t prefix_bytes,
                                    struct stele_cursor **cursor_out,
                                    struct stele_error *error)
{
    const struct bytes name = {table, table == NULL ? 0 : strlen(table)};
    uint8_t end_key[LIMIT_FULL_KEY_BYTES_MAX];
    struct bytes end_bytes = {end_key, 0};
    struct full_key first;
    struct full_key end;
    enum stele_status status = view_check_process(view, error);

    if (status == STELE_OK) {
        status =
            prefix_bytes == 0
                ? limit_check_table(table, error)
                : limit_check_key(table, prefix, prefix_bytes, "prefix", error);
    }
    if (status != STELE_OK) {
        return status;
    }
    full_key_table_first(&first, name);
    full_key_table_end(&end, name);
    if (prefix_bytes > 0) {
        const struct bytes bound = {prefix, prefix_bytes};

        full_key_init(&first, name, bound);
        if (prefix_end(bound, end_key, &end_bytes.size)) {
            full_key_init(&end, name, end_bytes);
        }
    }
    status = cursor_open(view, full_key_bytes(&first), full_key_bytes(&end),
                         cursor_out, error);
    if (status == STELE_OK) {
        (*cursor_out)->strip_bytes = name.size + 1;
    }
    return status;
}

/* As the caller knows it: without the table. */
static enum stele_status deliver(const struct stele_cursor *cursor,
                                 enum stele_status status,
                                 const struct cursor_entry *entry,
                                 struct stele_entry *entry_out)
{
    if (status == STELE_OK) {
        *entry_out = (struct stele_entry){
            .key = (const uint8_t *)entry->key.data + cursor->strip_bytes,
            .key_bytes = entry->key.size - cursor->strip_bytes,
            .value = {.data = entry->found.value.data,
                      .bytes = entry->found.value.size,
                      .lsn = entry->found.lsn},
        };
    }
    return status;
}

enum stele_status stele_cursor_first(struct stele_cursor *cursor,
                                     struct stele_entry *entry_out,
                                     struct stele_error *error)
{
    struct cursor_entry entry;

    return deliver(
        cursor,
        cursor_seek(cursor, full_key_bytes(&cursor->first), &entry, error),
        &entry, entry_out);
}

enum stele_status stele_cursor_last(struct stele_cursor *cursor,
                                    struct stele_entry *entry_out,
                                    struct stele_error *error)
{
    struct cursor_entry entry;

    return deliver(
        cursor,
        cursor_seek_before(cursor, full_key_bytes(&cursor->end), &entry, error),
        &entry, entry_out);
}

enum stele_status stele_cursor_seek(struct stele_cursor *cursor,
                                    const void *key, size_t key_bytes,
                                    struct stele_entry *entry_out,
                                    struct stele_error *error)
{
    struct cursor_entry entry;
    struct full_key full = cursor->first; /* The table's name is in it. */
    const enum stele_status status =
        registry_check_process(cursor->process, error);

    if (status != STELE_OK) {
        return status;
    }
    if (key == NULL || key_bytes == 0) {
        return error_set(error, STELE_INVALID, "the key is empty");
    }
    if (key_bytes > LIMIT_FULL_KEY_BYTES_MAX - cursor->strip_bytes) {
        return error_set(error, STELE_TOO_BIG,
                         "the key has %zu bytes, at most %zu fit", key_bytes,
                         LIMIT_FULL_KEY_BYTES_MAX - cursor->strip_bytes);
    }
    memcpy(full.data + cursor->strip_bytes, key, key_bytes);
    full.size = cursor->strip_bytes + key_bytes;
    return deliver(cursor,
                   cursor_seek(cursor, full_key_bytes(&full), &entry, error),
                   &entry, entry_out);
}

enum stele_status stele_cursor_next(struct stele_cursor *cursor,
                                    struct stele_entry *entry_out,
                                    struct stele_error *error)
{
    struct cursor_entry entry;

    return deliver(cursor, move(cursor, FORWARD, &entry, error), &entry,
                   entry_out);
}

enum stele_status stele_cursor_prev(struct stele_cursor *cursor,
                                    struct stele_entry *entry_out,
                                    struct stele_error *error)
{
    struct cursor_entry entry;

    return deliver(cursor, move(cursor, BACKWARD, &entry, error), &entry,
                   entry_out);
}
