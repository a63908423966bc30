/* engine/apply.c -- see engine/apply.h. */
#include "engine/apply.h"

#include <assert.h>
#include <inttypes.h>
#include <string.h>

#include "base/error.h"
#include "engine/base_value.h"
#include "engine/limits.h"
#include "engine/ops.h"

static enum stele_status find(const struct apply_lookup *lookup,
                              struct bytes key, struct lookup_value *value_out,
                              struct stele_error *error)
{
    return lookup_key(lookup->state, UINT64_MAX, lookup->pending, lookup->base,
                      key, value_out, error);
}

enum stele_status apply_expectations(const struct apply_lookup *lookup,
                                     struct bytes body, uint64_t *failed_op_out,
                                     struct stele_error *error)
{
    struct ops_reader reader = ops_reader_init(body.data, body.size);
    struct op op;

    while (ops_next(&reader, &op) == OPS_OP) {
        struct lookup_value found = {0};
        struct full_key key;
        enum stele_status status;
        bool present;
        bool holds;

        if (!op_is_expectation(op.kind)) {
            continue;
        }
        full_key_init(&key, op.table, op.key);
        status = find(lookup, full_key_bytes(&key), &found, error);
        if (status != STELE_OK && status != STELE_NOT_FOUND) {
            return status;
        }
        present = status == STELE_OK;
        holds = op.kind == OP_EXPECT_ABSENT    ? !present
                : op.kind == OP_EXPECT_PRESENT ? present
                                               : present && found.lsn == op.lsn;
        if (!holds) {
            *failed_op_out = op.index;
            return error_set(error, STELE_PRECONDITION,
                             "operation %" PRIu32 ": a key of table %.*s is %s",
                             op.index, (int)op.table.size,
                             (const char *)op.table.data,
                             !present                      ? "absent"
                             : op.kind == OP_EXPECT_ABSENT ? "present"
                                                           : "at another LSN");
        }
    }
    return STELE_OK;
}

/* The table changed at this LSN: a version of its row. */
static enum stele_status touch_table(const struct apply_target *target,
                                     struct bytes table, uint64_t lsn,
                                     uint32_t op_index,
                                     struct stele_error *error)
{
    const struct memtable_version *newest;
    struct full_key row;
    struct bytes key;
    uint64_t hash;

    full_key_init(&row, table, (struct bytes){NULL, 0});
    key = full_key_bytes(&row);
    hash = memtable_hash(target->memtable, key);
    newest = memtable_find(target->memtable, key, hash, UINT64_MAX);
    if (newest != NULL && newest->lsn == lsn) {
        return STELE_OK; /* By an earlier operation of the batch. */
    }
    return memtable_insert(target->memtable, key, hash, lsn, op_index,
                           MEMTABLE_TOUCH, (struct bytes){NULL, 0}, 0, error);
}

static enum stele_status copy_bound(const struct apply_target *target,
                                    const struct full_key *bound,
                                    struct bytes *copy_out,
                                    struct stele_error *error)
{
    void *copy = memtable_allocate(target->memtable, bound->size);

    if (copy == NULL) {
        return error_no_memory(error, "range delete");
    }
    memcpy(copy, bound->data, bound->size);
    *copy_out = (struct bytes){copy, bound->size};
    return STELE_OK;
}

static enum stele_status apply_range(const struct apply_target *target,
                                     const struct op *op, uint64_t lsn,
                                     struct stele_error *error)
{
    struct full_key first;
    struct full_key end;
    struct bytes first_copy;
    struct bytes end_copy;
    enum stele_status status;

    if (op->key.size == 0) {
        full_key_table_first(&first, op->table);
    } else {
        full_key_init(&first, op->table, op->key);
    }
    if (op->end.size == 0) {
        full_key_table_end(&end, op->table);
    } else {
        full_key_init(&end, op->table, op->end);
    }
    if (bytes_compare(full_key_bytes(&first), full_key_bytes(&end)) >= 0) {
        return STELE_OK; /* From the start to the smallest key: nothing. */
    }
    status = copy_bound(target, &first, &first_copy, error);
    if (status == STELE_OK) {
        status = copy_bound(target, &end, &end_copy, error);
    }
    if (status == STELE_OK) {
        status = range_builder_add(target->ranges, first_copy, end_copy, lsn,
                                   op->index, error);
    }
    return status;
}

static enum stele_status apply_point(const struct apply_target *target,
                                     const struct op *op, uint64_t key_hash,
                                     uint64_t lsn,
                                     const struct apply_lookup *lookup,
                                     enum stele_op_outcome *outcome,
                                     struct stele_error *error)
{
    const bool put = op->kind == OP_PUT;
    struct lookup_value before;
    enum stele_status status;
    struct full_key full;
    struct bytes key;

    full_key_init(&full, op->table, op->key);
    key = full_key_bytes(&full);
    if (outcome != NULL) {
        status = find(lookup, key, &before, error);
        if (status != STELE_OK && status != STELE_NOT_FOUND) {
            return status;
        }
        *outcome = status == STELE_OK
                       ? (put ? STELE_OP_REPLACED : STELE_OP_DELETED)
                       : (put ? STELE_OP_CREATED : STELE_OP_ABSENT);
    }
    return memtable_insert(target->memtable, key, key_hash, lsn, op->index,
                           put ? MEMTABLE_PUT : MEMTABLE_DELETE, op->value,
                           put ? base_value_check(key, lsn, op->value) : 0,
                           error);
}

/* ---- Looking ahead ---------------------------------------------------------- */

/* How many operations ahead of its use a bucket, and a node, are asked for. */
enum { BUCKET_DISTANCE = 8, NODE_DISTANCE = 4 };

struct lookahead {
    struct ops_reader reader;
    uint64_t index;                   /* Of the next operation it will see. */
    uint64_t hashes[BUCKET_DISTANCE]; /* By op index, modulo. */
};

/* See the operations up to `index`, and ask for what they will touch. Their
 * hashes stay until so many more have been seen. */
static void look_ahead(struct lookahead *ahead, const struct memtable *memtable,
                       uint64_t index)
{
    struct full_key full;
    struct op op;

    while (ahead->index <= index && ops_next(&ahead->reader, &op) == OPS_OP) {
        full_key_init(&full, op.table, op.key);
        ahead->hashes[ahead->index % BUCKET_DISTANCE] =
            memtable_hash(memtable, full_key_bytes(&full));
        memtable_prefetch_bucket(memtable,
                                 ahead->hashes[ahead->index % BUCKET_DISTANCE]);
        ahead->index++;
    }
    if (ahead->index > NODE_DISTANCE) {
        memtable_prefetch_node(
            memtable,
            ahead->hashes[(ahead->index - NODE_DISTANCE) % BUCKET_DISTANCE]);
    }
}

enum stele_status apply_body(const struct apply_target *target,
                             struct bytes body, uint64_t lsn,
                             const struct apply_lookup *lookup,
                             enum stele_op_outcome *outcomes,
                             struct stele_error *error)
{
    struct ops_reader reader = ops_reader_init(body.data, body.size);
    struct lookahead ahead = {.reader = reader};
    struct bytes touched = {NULL, 0};

    assert(outcomes == NULL || lookup != NULL);
    for (;;) {
        enum stele_status status = STELE_OK;
        struct op op;

        switch (ops_next(&reader, &op)) {
        case OPS_END:
            return STELE_OK;
        case OPS_BAD:
            return error_set(error, STELE_CORRUPT,
                             "record with LSN %" PRIu64 ": operation %" PRIu32
                             " is malformed",
                             lsn, reader.op_count);
        case OPS_OP:
            break;
        }
        look_ahead(&ahead, target->memtable, op.index + BUCKET_DISTANCE - 1);
        if (outcomes != NULL) {
            outcomes[op.index] = STELE_OP_DONE;
        }
        if (op_is_expectation(op.kind)) {
            continue; /* Held when the batch was committed. */
        }
        if (touched.data != op.table.data) {
            status = touch_table(target, op.table, lsn, op.index, error);
            touched = op.table;
        }
        if (status == STELE_OK) {
            status =
                op.kind == OP_DELETE_RANGE
                    ? apply_range(target, &op, lsn, error)
                    : apply_point(
                          target, &op, ahead.hashes[op.index % BUCKET_DISTANCE],
                          lsn, lookup,
                          outcomes == NULL ? NULL : &outcomes[op.index], error);
        }
        if (status != STELE_OK) {
            return status;
        }
    }
}
