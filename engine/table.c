/* engine/table.c -- stele_table_*: what there is to know of a table as a whole. */
#include <string.h>

#include "base/error.h"
#include "engine/base_value.h"
#include "engine/cursor.h"
#include "engine/limits.h"
#include "engine/lookup.h"
#include "engine/stele.h"
#include "engine/view.h"

static struct bytes name_bytes(const char *table)
{
    return (struct bytes){table, strlen(table)};
}

enum stele_status stele_table_next(
    struct stele_view *view, const char *after,
    char name_out[STELE_TABLE_NAME_BYTES_MAX + 1], struct stele_error *error)
{
    static const uint8_t above_reserved = 0x01;
    static const uint8_t above_all = 0xff;
    const struct bytes end = {&above_all, 1};
    struct bytes from = {&above_reserved, 1};
    struct stele_cursor *cursor = NULL;
    struct cursor_entry entry;
    struct full_key behind;
    enum stele_status status = view_check_process(view, error);

    if (status != STELE_OK) {
        return status;
    }
    if (after != NULL) {
        status = limit_check_table(after, error);
        if (status != STELE_OK) {
            return status;
        }
        full_key_table_end(&behind, name_bytes(after));
        from = full_key_bytes(&behind);
    }
    status = cursor_open(view, from, end, &cursor, error);
    if (status == STELE_OK) {
        status = cursor_seek(cursor, from, &entry, error);
    }
    if (status == STELE_OK) {
        /* A table's row sorts before its keys, so this is one. */
        const size_t bytes = base_key_table_bytes(entry.key);

        if (bytes == 0 || bytes + 1 != entry.key.size) {
            status = view_note(view, base_entry_damaged("base", entry.key,
                                                        "its table has no row",
                                                        error));
        } else {
            memcpy(name_out, entry.key.data, bytes);
            name_out[bytes] = '\0';
        }
    }
    stele_cursor_close(cursor);
    return status;
}

/* The table's row as the view sees it (its LSN) or as the base has it (count
 * and sum). */
enum stele_status stele_table_lsn(struct stele_view *view, const char *table,
                                  uint64_t *lsn_out, struct stele_error *error)
{
    struct lookup_value found;
    struct full_key row;
    enum stele_status status = view_check_process(view, error);

    if (status == STELE_OK) {
        status = limit_check_table(table, error);
    }
    if (status == STELE_OK) {
        status = view_check(view, error);
    }
    if (status != STELE_OK) {
        return status;
    }
    full_key_init(&row, name_bytes(table), (struct bytes){NULL, 0});
    status =
        view_note(view, lookup_key(view->state, view->lsn, NULL, &view->base,
                                   full_key_bytes(&row), &found, error));
    if (status == STELE_NOT_FOUND) {
        *lsn_out = 0;
        return STELE_OK;
    }
    if (status == STELE_OK) {
        *lsn_out = found.lsn;
    }
    return status;
}

static enum stele_status base_count(struct stele_view *view,
                                    const struct full_key *row,
                                    uint64_t *count_out,
                                    struct stele_error *error)
{
    struct base_value found;
    struct table_row decoded;
    enum stele_status status;

    *count_out = 0;
    status = base_get(&view->base, full_key_bytes(row), &found, error);
    if (status == STELE_NOT_FOUND) {
        return STELE_OK;
    }
    if (status == STELE_OK) {
        if (!table_row_decode(found.value, &decoded)) {
            return base_entry_damaged("base", full_key_bytes(row),
                                      "not as long as a row", error);
        }
        *count_out = decoded.count;
    }
    return status;
}

/* Whether a range fragment lies over keys of the table. */
static bool has_fragments(const struct stele_view *view,
                          const struct full_key *first,
                          const struct full_key *end)
{
    for (int index = 0; index < STATE_LAYERS; index++) {
        struct range_set *ranges = view->state->layers[index].ranges;
        const size_t lower = range_set_lower(ranges, full_key_bytes(first));

        if (lower < range_set_count(ranges) &&
            bytes_compare(range_set_at(ranges, lower)->first,
                          full_key_bytes(end)) < 0) {
            return true;
        }
    }
    return false;
}

/* What the keys of one memtable change in the base's count. A key of the frozen
 * one that is in the active one too is that one's business. */
static enum stele_status count_layer(struct stele_view *view, int layer,
                                     const struct full_key *first,
                                     const struct full_key *end,
                                     uint64_t *count, struct stele_error *error)
{
    const struct memtable *newer =
        layer == STATE_ACTIVE ? NULL
                              : view->state->layers[STATE_ACTIVE].memtable;
    struct memtable *memtable = view->state->layers[layer].memtable;
    struct memtable_order *order;
    struct memtable_iterator nodes;
    enum stele_status status;

    if (memtable == NULL) {
        return STELE_OK;
    }
    status = memtable_order_acquire(memtable, &order, error);
    if (status != STELE_OK) {
        return status;
    }
    memtable_iterator_init(&nodes, order);
    memtable_iterator_seek(&nodes, full_key_bytes(first));
    for (; nodes.node != NULL && bytes_compare(memtable_node_key(nodes.node),
                                               full_key_bytes(end)) < 0;
         memtable_iterator_next(&nodes)) {
        const struct bytes key = memtable_node_key(nodes.node);
        const struct memtable_version *version =
            memtable_node_find(nodes.node, view->lsn);
        struct base_value base;

        if (version == NULL ||
            (newer != NULL &&
             memtable_find(newer, key, memtable_hash(newer, key), view->lsn) !=
                 NULL)) {
            continue;
        }
        *count += version->kind == MEMTABLE_PUT ? 1 : 0;
        status = base_get(&view->base, key, &base, error);
        if (status == STELE_OK) {
            --*count;
        } else if (status != STELE_NOT_FOUND) {
            break;
        }
        status = STELE_OK;
    }
    memtable_order_release(order);
    return status;
}

static enum stele_status count_by_walking(struct stele_view *view,
                                          const struct full_key *first,
                                          const struct full_key *end,
                                          uint64_t *count_out,
                                          struct stele_error *error)
{
    struct stele_cursor *cursor;
    struct stele_entry entry;
    uint64_t count = 0;
    enum stele_status status = cursor_open(view, full_key_bytes(first),
                                           full_key_bytes(end), &cursor, error);

    if (status != STELE_OK) {
        return status;
    }
    while ((status = stele_cursor_next(cursor, &entry, error)) == STELE_OK) {
        count++;
    }
    stele_cursor_close(cursor);
    if (status != STELE_NOT_FOUND) {
        return status;
    }
    *count_out = count;
    return STELE_OK;
}

enum stele_status stele_table_count(struct stele_view *view, const char *table,
                                    uint64_t *count_out,
                                    struct stele_error *error)
{
    struct full_key row;
    struct full_key first;
    struct full_key end;
    uint64_t count;
    enum stele_status status = view_check_process(view, error);

    if (status == STELE_OK) {
        status = limit_check_table(table, error);
    }
    if (status == STELE_OK) {
        status = view_check(view, error);
    }
    if (status != STELE_OK) {
        return status;
    }
    full_key_init(&row, name_bytes(table), (struct bytes){NULL, 0});
    full_key_table_first(&first, name_bytes(table));
    full_key_table_end(&end, name_bytes(table));
    /* To look one key up in a snapshot costs a block of it. */
    if (has_fragments(view, &first, &end) || view->base.snapshot != NULL) {
        return count_by_walking(view, &first, &end, count_out, error);
    }
    status = base_count(view, &row, &count, error);
    for (int layer = 0; layer < STATE_LAYERS && status == STELE_OK; layer++) {
        status = count_layer(view, layer, &first, &end, &count, error);
    }
    status = view_note(view, status);
    if (status == STELE_OK) {
        *count_out = count;
    }
    return status;
}
