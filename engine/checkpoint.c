/*
 * engine/checkpoint.c -- see engine/checkpoint.h.
 *
 * One step, the happy path: begin a transaction; walk the memtable's keys and
 * its range fragments together in key order; delete what fragments cover in the
 * base, put or delete each key's newest version; keep the table's count and sum
 * right; commit with the positions. Where the step was cut, the next one goes
 * on.
 *
 * What can fail: disk or map full (the transaction is gone, the step is rewound
 * and may be repeated), a damaged value in the index, a failed commit (the index
 * is not written again and is rebuilt at the next open). Runs in the base
 * keeper; in manual mode and at close in the caller.
 */
#include "engine/checkpoint.h"

#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "engine/base_value.h"
#include "engine/commit.h"
#include "engine/damage.h"
#include "engine/keepers.h"
#include "engine/store.h"

enum {
    /* Entries of a sweep that cost a transaction as much as a dirty page does: pages that
     * are emptied are not written. */
    SWEPT_PER_PAGE = 256,
};

/* Where the walk stands: a value, so that a failed step can be rewound. */
struct walk {
    struct memtable_iterator nodes;
    size_t fragment;   /* The next one, or the one we are in. */
    size_t from_bytes; /* Where to go on in it; 0: at its start. */
    uint8_t from[BASE_KEY_BYTES_MAX];
};

/* The row of the table the walk is in. */
struct row_cursor {
    size_t key_bytes; /* 0: none. */
    uint8_t key[BASE_TABLE_NAME_BYTES_MAX + 1];
    uint64_t lsn;
    struct table_row row;
};

struct checkpoint {
    struct index *index;
    struct state_layer layer;
    struct memtable_order *order;
    struct wal_position applied;
    struct wal_position end;
    uint64_t pages_max;
    struct walk walk;
    struct row_cursor row;
    struct index_writer *writer; /* During a step. */
    struct state *next;          /* To publish at the end, of a store's. */
};

enum stele_status checkpoint_create(struct index *index,
                                    const struct state_layer *layer,
                                    const struct wal_position *applied,
                                    const struct wal_position *end,
                                    uint64_t pages_max,
                                    struct checkpoint **checkpoint_out,
                                    struct stele_error *error)
{
    struct checkpoint *checkpoint = calloc(1, sizeof *checkpoint);
    enum stele_status status;

    if (checkpoint == NULL) {
        return error_no_memory(error, "checkpoint");
    }
    assert(end->unit >= applied->unit);
    checkpoint->index = index;
    checkpoint->layer = *layer;
    checkpoint->applied = *applied;
    checkpoint->end = *end;
    checkpoint->pages_max = pages_max;
    status = memtable_order_acquire(layer->memtable, &checkpoint->order, error);
    if (status != STELE_OK) {
        free(checkpoint);
        return status;
    }
    memtable_iterator_init(&checkpoint->walk.nodes, checkpoint->order);
    memtable_iterator_seek(&checkpoint->walk.nodes, (struct bytes){"", 0});
    *checkpoint_out = checkpoint;
    return STELE_OK;
}

void checkpoint_limit_pages(struct checkpoint *checkpoint, uint64_t pages_max)
{
    checkpoint->pages_max = pages_max;
}

void checkpoint_destroy(struct checkpoint *checkpoint)
{
    if (checkpoint == NULL) {
        return;
    }
    assert(checkpoint->writer == NULL);
    memtable_order_release(checkpoint->order);
    state_discard(checkpoint->next);
    free(checkpoint);
}

/* ---- Table rows -------------------------------------------------------------- */

/* Write the row we hold, if any. */
static enum stele_status row_flush(struct checkpoint *checkpoint,
                                   struct stele_error *error)
{
    struct row_cursor *row = &checkpoint->row;
    const struct bytes key = {row->key, row->key_bytes};
    uint8_t encoded[BASE_VALUE_TABLE_ROW_BYTES];
    struct base_value value = {.lsn = row->lsn,
                               .value = {encoded, sizeof encoded}};

    if (row->key_bytes == 0) {
        return STELE_OK;
    }
    table_row_encode(&row->row, encoded);
    value.check = base_value_check(key, value.lsn, value.value);
    row->key_bytes = 0;
    return index_writer_put(checkpoint->writer, key, &value, error);
}

/* Hold the row of the table that `key` belongs to. */
static enum stele_status row_hold(struct checkpoint *checkpoint,
                                  struct bytes key, struct stele_error *error)
{
    struct row_cursor *row = &checkpoint->row;
    const size_t row_bytes = base_key_table_bytes(key) + 1;
    struct base_value found;
    enum stele_status status;

    assert(row_bytes >= 2 && row_bytes <= sizeof row->key);
    if (row->key_bytes == row_bytes &&
        memcmp(row->key, key.data, row_bytes) == 0) {
        return STELE_OK;
    }
    status = row_flush(checkpoint, error);
    if (status != STELE_OK) {
        return status;
    }
    memcpy(row->key, key.data, row_bytes);
    row->key_bytes = row_bytes;
    row->lsn = 0;
    row->row = (struct table_row){0};
    status = index_writer_get(
        checkpoint->writer, (struct bytes){row->key, row_bytes}, &found, error);
    if (status == STELE_NOT_FOUND) {
        return STELE_OK;
    }
    if (status != STELE_OK) {
        return status;
    }
    row->lsn = found.lsn;
    if (!table_row_decode(found.value, &row->row)) {
        return base_entry_damaged("index", (struct bytes){row->key, row_bytes},
                                  "not as long as a row", error);
    }
    return STELE_OK;
}

/* ---- Keys and fragments ------------------------------------------------------- */

/* Bring one key to its newest version. */
static enum stele_status apply_node(struct checkpoint *checkpoint,
                                    const struct memtable_node *node,
                                    struct stele_error *error)
{
    const struct bytes key = memtable_node_key(node);
    const struct memtable_version *version =
        memtable_node_find(node, checkpoint->end.lsn);
    const struct range_fragment *fragment;
    struct row_cursor *row = &checkpoint->row;
    struct base_value before;
    struct base_value after;
    enum stele_status status;
    bool present;

    if (version == NULL) {
        return STELE_OK; /* A withdrawn group was its only one. */
    }
    status = row_hold(checkpoint, key, error);
    if (status != STELE_OK) {
        return status;
    }
    if (version->kind == MEMTABLE_TOUCH) {
        row->lsn = version->lsn;
        return STELE_OK;
    }
    fragment = range_set_find(checkpoint->layer.ranges, key);
    present = version->kind == MEMTABLE_PUT &&
              (fragment == NULL || fragment->lsn < version->lsn ||
               (fragment->lsn == version->lsn &&
                fragment->op_index < version->op_index));
    status = index_writer_get(checkpoint->writer, key, &before, error);
    if (status == STELE_OK) {
        row->row.count--;
        row->row.sum -= before.check;
    } else if (status != STELE_NOT_FOUND) {
        return status;
    } else if (!present) {
        return STELE_OK;
    }
    if (!present) {
        return index_writer_delete(checkpoint->writer, key, error);
    }
    /* The check is copied, not made anew: see engine/base_value.h. */
    after = (struct base_value){
        .lsn = version->lsn,
        .check = version->check,
        .value = {version->value, version->value_bytes},
    };
    row->row.count++;
    row->row.sum += after.check;
    return index_writer_put(checkpoint->writer, key, &after, error);
}

struct sweep {
    struct row_cursor *row;
    uint64_t lsn; /* Of the fragment. */
    uint64_t visits;
};

static void sweep_visit(void *context, struct bytes key,
                        const struct base_value *value, bool *delete_out)
{
    struct sweep *sweep = context;

    (void)key;
    sweep->visits++;
    /* A base value is older than any tombstone above its LSN. */
    *delete_out = value->lsn < sweep->lsn;
    if (*delete_out) {
        sweep->row->row.count--;
        sweep->row->row.sum -= value->check;
    }
}

/* Delete what the current fragment covers in the base, up to the next node or
 * the fragment's end, or as far as the budget goes. */
static enum stele_status apply_fragment(struct checkpoint *checkpoint,
                                        struct bytes from, uint64_t pages_left,
                                        uint64_t *pages,
                                        struct stele_error *error)
{
    struct walk *walk = &checkpoint->walk;
    const struct range_fragment *fragment =
        range_set_at(checkpoint->layer.ranges, walk->fragment);
    struct sweep sweep = {.row = &checkpoint->row, .lsn = fragment->lsn};
    struct bytes bound = fragment->end;
    uint8_t next_key[BASE_KEY_BYTES_MAX];
    size_t next_key_bytes = 0;
    enum stele_status status;
    bool more;

    if (walk->nodes.node != NULL &&
        bytes_compare(memtable_node_key(walk->nodes.node), bound) < 0) {
        bound = memtable_node_key(walk->nodes.node);
    }
    status = row_hold(checkpoint, fragment->first, error);
    if (status == STELE_OK) {
        status = index_writer_sweep(
            checkpoint->writer, from, bound, pages_left * SWEPT_PER_PAGE,
            sweep_visit, &sweep, &more, next_key, &next_key_bytes, error);
    }
    if (status != STELE_OK) {
        return status;
    }
    *pages += sweep.visits / SWEPT_PER_PAGE + 1;
    if (more) {
        memcpy(walk->from, next_key, next_key_bytes);
        walk->from_bytes = next_key_bytes;
    } else if (bytes_compare(bound, fragment->end) == 0) {
        walk->fragment++;
        walk->from_bytes = 0;
    } else {
        memcpy(walk->from, bound.data, bound.size);
        walk->from_bytes = bound.size;
    }
    return STELE_OK;
}

/* The walk, until the budget is used up or everything is done. */
static enum stele_status fill_transaction(struct checkpoint *checkpoint,
                                          uint64_t ops_max, bool *done_out,
                                          struct stele_error *error)
{
    struct walk *walk = &checkpoint->walk;
    uint64_t pages_swept = 0;

    for (uint64_t ops = 0; ops < ops_max; ops++) {
        const uint64_t pages =
            pages_swept + index_writer_pages(checkpoint->writer);
        const struct memtable_node *node = walk->nodes.node;
        const bool in_range =
            walk->fragment < range_set_count(checkpoint->layer.ranges);
        struct bytes from = {walk->from, walk->from_bytes};
        enum stele_status status;

        if (node == NULL && !in_range) {
            *done_out = true;
            return STELE_OK;
        }
        if (pages >= checkpoint->pages_max) {
            break;
        }
        if (in_range && walk->from_bytes == 0) {
            from =
                range_set_at(checkpoint->layer.ranges, walk->fragment)->first;
        }
        if (in_range && (node == NULL ||
                         bytes_compare(from, memtable_node_key(node)) < 0)) {
            status =
                apply_fragment(checkpoint, from, checkpoint->pages_max - pages,
                               &pages_swept, error);
        } else {
            status = apply_node(checkpoint, node, error);
            memtable_iterator_next(&walk->nodes);
        }
        if (status != STELE_OK) {
            return status;
        }
    }
    *done_out = false;
    return STELE_OK;
}

enum stele_status checkpoint_step(struct checkpoint *checkpoint,
                                  uint64_t ops_max, bool *done_out,
                                  struct stele_error *error)
{
    const struct walk start = checkpoint->walk;
    enum stele_status status =
        index_writer_begin(checkpoint->index, &checkpoint->writer, error);
    bool done = false;

    checkpoint->row.key_bytes = 0;
    if (status == STELE_OK) {
        status = fill_transaction(checkpoint, ops_max, &done, error);
    }
    if (status == STELE_OK) {
        status = row_flush(checkpoint, error);
    }
    if (status == STELE_OK) {
        struct index_writer *writer = checkpoint->writer;

        checkpoint->writer = NULL;
        status = index_writer_commit(
            writer, done ? &checkpoint->end : &checkpoint->applied,
            &checkpoint->end, error);
    }
    index_writer_abort(checkpoint->writer);
    checkpoint->writer = NULL;
    if (status != STELE_OK) {
        checkpoint->walk = start;
        return error_wrap(error, status, "checkpoint");
    }
    *done_out = done;
    return STELE_OK;
}

/* ---- Of a store's frozen memtable ------------------------------------------------ */

/* Tell those who wait for it. */
static void tell_failure(struct stele *store, const struct stele_error *error)
{
    atomic_fetch_add(&store->stat_checkpoint_failures, 1);
    mutex_lock(&store->keeper_mutex);
    store->checkpoint_error = *error;
    condition_broadcast(&store->base_progress);
    mutex_unlock(&store->keeper_mutex);
}

static enum stele_status begin(struct stele *store,
                               struct checkpoint **checkpoint_out,
                               struct stele_error *error)
{
    struct wal_position applied;
    struct wal_position end;
    struct state *current;
    struct state *next;
    enum stele_status status = store_check_lock(store, error);

    if (status != STELE_OK) {
        return status;
    }
    current = state_acquire(&store->publisher);
    next = state_allocate();
    mutex_lock(&store->keeper_mutex);
    assert(store->frozen);
    applied = store->applied;
    end = store->frozen_end;
    mutex_unlock(&store->keeper_mutex);
    /* The frozen layer stays in the current state, which holds it, until this
     * checkpoint takes it out. */
    status = next == NULL
                 ? error_no_memory(error, "state")
                 : checkpoint_create(store->index,
                                     &current->layers[STATE_FROZEN], &applied,
                                     &end, store->tuning.checkpoint_pages_max,
                                     checkpoint_out, error);
    if (status == STELE_OK) {
        (*checkpoint_out)->next = next;
        next = NULL;
    }
    state_discard(next);
    state_release(current);
    return status;
}

enum stele_status checkpoint_begin(struct stele *store,
                                   struct checkpoint **checkpoint_out,
                                   struct stele_error *error)
{
    struct stele_error failure;
    const enum stele_status status = begin(store, checkpoint_out, &failure);

    if (status != STELE_OK) {
        tell_failure(store, &failure);
        if (error != NULL) {
            *error = failure;
        }
    }
    return status;
}

/* The frozen memtable is in the index, durably: nobody needs it any more but
 * views that have it already. */
static void finish(struct stele *store, struct checkpoint *checkpoint)
{
    state_publish_drained(&store->publisher, checkpoint->next);
    checkpoint->next = NULL;
    atomic_fetch_add(&store->stat_checkpoints, 1);
    mutex_lock(&store->keeper_mutex);
    store->frozen = false;
    store->applied = checkpoint->end;
    store->log_bytes_applied = store->frozen_log_bytes;
    store->checkpoint_error = (struct stele_error){0};
    condition_broadcast(&store->base_progress);
    /* What was committed meanwhile could not be frozen, however long ago. */
    keepers_kick_log(store);
    mutex_unlock(&store->keeper_mutex);
}

/* If the index may not be written again, tell the next open, too. */
static void note_failure(struct stele *store, const struct stele_error *error)
{
    const bool dead = error->status != STELE_NO_SPACE &&
                      error->status != STELE_NO_MEMORY &&
                      error->status != STELE_BUSY;

    mutex_lock(&store->keeper_mutex);
    store->index_dead = store->index_dead || dead;
    mutex_unlock(&store->keeper_mutex);
    tell_failure(store, error);
    damage_tend(store);
}

enum stele_status checkpoint_advance(struct stele *store,
                                     struct checkpoint *checkpoint,
                                     uint64_t ops_max, bool *done_out,
                                     struct stele_error *error)
{
    enum stele_status status = store_check_writable(store, error);
    struct stele_error failure = {0};
    bool done = false;

    if (status != STELE_OK) {
        return status;
    }
    status = checkpoint_step(checkpoint, ops_max, &done, &failure);
    if (status != STELE_OK) {
        failure.status = status;
        note_failure(store, &failure);
        if (error != NULL) {
            *error = failure;
        }
        return status;
    }
    atomic_fetch_add(&store->stat_checkpoint_transactions, 1);
    mutex_lock(&store->keeper_mutex);
    store->applying = checkpoint->end;
    store->checkpoint_error = (struct stele_error){0}; /* It works again. */
    mutex_unlock(&store->keeper_mutex);
    if (done) {
        finish(store, checkpoint);
    }
    *done_out = done;
    return STELE_OK;
}

enum stele_status checkpoint_run(struct stele *store, struct stele_error *error)
{
    struct checkpoint *checkpoint;
    enum stele_status status;
    bool needed;
    bool done = false;

    mutex_lock(&store->keeper_mutex);
    needed = store->frozen;
    if (needed && store->index_dead) {
        status = store->checkpoint_error.status;
        if (error != NULL) {
            *error = store->checkpoint_error;
        }
        mutex_unlock(&store->keeper_mutex);
        return status;
    }
    mutex_unlock(&store->keeper_mutex);
    if (!needed) {
        return STELE_OK;
    }
    status = checkpoint_begin(store, &checkpoint, error);
    if (status != STELE_OK) {
        return status;
    }
    while (status == STELE_OK && !done) {
        status =
            checkpoint_advance(store, checkpoint, UINT64_MAX, &done, error);
    }
    checkpoint_destroy(checkpoint);
    return status;
}

/* ---- The API ------------------------------------------------------------------- */

enum { WAIT_SLICE_NS = 100000000 }; /* Poison makes no noise: look again. */

/* Wait until the frozen memtable is drained, or draining it failed since there
 * had been `failures_before` failures. */
static enum stele_status wait_drained(struct stele *store,
                                      uint64_t failures_before,
                                      struct stele_error *error)
{
    enum stele_status status = STELE_OK;

    mutex_lock(&store->keeper_mutex);
    store->checkpoint_hurry++;
    condition_broadcast(&store->base_work);
    while (store->frozen && status == STELE_OK) {
        status = store_check_writable(store, error);
        if (status == STELE_OK && store->checkpoint_error.status != STELE_OK &&
            (store->index_dead ||
             atomic_load(&store->stat_checkpoint_failures) > failures_before)) {
            status = store->checkpoint_error.status;
            if (error != NULL) {
                *error = store->checkpoint_error;
            }
        }
        if (status == STELE_OK) {
            condition_wait_for(&store->base_progress, &store->keeper_mutex,
                               WAIT_SLICE_NS);
        }
    }
    store->checkpoint_hurry--;
    mutex_unlock(&store->keeper_mutex);
    return status;
}

enum stele_status stele_checkpoint(struct stele *store,
                                   struct stele_error *error)
{
    const enum stele_status ours = store_check_process(store, error);
    uint64_t failures_before;
    struct wal_position target;

    if (ours != STELE_OK) {
        return ours;
    }
    if (store->read_only) {
        return error_set(error, STELE_READ_ONLY,
                         "checkpoint: the store is open for reading only");
    }
    damage_tend(store);
    failures_before = atomic_load(&store->stat_checkpoint_failures);
    target = wal_writer_written(store->writer);
    for (;;) {
        enum stele_status status;
        bool applied;
        bool froze;

        mutex_lock(&store->keeper_mutex);
        applied = store->applied.unit >= target.unit;
        mutex_unlock(&store->keeper_mutex);
        if (applied) {
            return STELE_OK;
        }
        status = commit_freeze(store, &froze, error);
        if (status == STELE_OK) {
            status = store->tuning.manual
                         ? checkpoint_run(store, error)
                         : wait_drained(store, failures_before, error);
        }
        if (status != STELE_OK) {
            return status;
        }
    }
}
