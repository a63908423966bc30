/* engine/batch.c -- see engine/batch.h, and engine/stele.h for the contracts. */
#include "engine/batch.h"

#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "engine/limits.h"
#include "engine/ops.h"
#include "wal/segment.h"

enum { BATCH_CAPACITY_FIRST = 512 };

enum stele_status stele_batch_create(struct stele_batch **batch_out,
                                     struct stele_error *error)
{
    struct stele_batch *batch = calloc(1, sizeof *batch);

    if (batch == NULL) {
        return error_no_memory(error, "batch");
    }
    batch->data = malloc(BATCH_CAPACITY_FIRST);
    if (batch->data == NULL) {
        free(batch);
        return error_no_memory(error, "batch");
    }
    batch->capacity = BATCH_CAPACITY_FIRST;
    stele_batch_clear(batch);
    *batch_out = batch;
    return STELE_OK;
}

void stele_batch_destroy(struct stele_batch *batch)
{
    if (batch == NULL) {
        return;
    }
    free(batch->data);
    free(batch);
}

void stele_batch_clear(struct stele_batch *batch)
{
    batch->bytes = WAL_RECORD_HEADER_BYTES;
    batch->op_count = 0;
    batch->expectation_count = 0;
    batch->value_bytes_max = 0;
    batch->table_offset = 0;
    batch->table_bytes = 0;
    batch->has_tag = false;
}

uint64_t stele_batch_ops(const struct stele_batch *batch)
{
    return batch->op_count;
}

uint64_t stele_batch_bytes(const struct stele_batch *batch)
{
    return batch->bytes;
}

void stele_batch_set_tag(struct stele_batch *batch,
                         const uint8_t tag[STELE_TAG_BYTES])
{
    memcpy(batch->tag, tag, STELE_TAG_BYTES);
    batch->has_tag = true;
}

static enum stele_status reserve(struct stele_batch *batch, size_t bytes,
                                 struct stele_error *error)
{
    size_t capacity = batch->capacity;
    uint8_t *grown;

    if (bytes > WAL_SEGMENT_BYTES_MAX - batch->bytes) {
        return error_set(error, STELE_TOO_BIG,
                         "the batch would have more than %" PRIu64 " bytes",
                         WAL_SEGMENT_BYTES_MAX);
    }
    while (capacity < batch->bytes + bytes) {
        capacity *= 2;
    }
    if (capacity == batch->capacity) {
        return STELE_OK;
    }
    grown = realloc(batch->data, capacity);
    if (grown == NULL) {
        return error_no_memory(error, "batch");
    }
    batch->data = grown;
    batch->capacity = capacity;
    return STELE_OK;
}

/* Append an operation on `table`, selecting the table first if it is another
 * than the last operation's. The arguments have been checked. */
static enum stele_status add(struct stele_batch *batch, const char *table,
                             const struct op *op, struct stele_error *error)
{
    const struct bytes name = {table, strlen(table)};
    const bool same_table =
        batch->table_offset != 0 && batch->table_bytes == name.size &&
        memcmp(batch->data + batch->table_offset, name.data, name.size) == 0;
    const size_t table_op_bytes = same_table ? 0 : ops_table_bytes(name);
    const size_t op_bytes = ops_bytes(op);
    enum stele_status status;

    if (batch->op_count == LIMIT_BATCH_OPS_MAX) {
        return error_set(error, STELE_TOO_BIG,
                         "the batch has %d operations, the most there can be",
                         LIMIT_BATCH_OPS_MAX);
    }
    status = reserve(batch, table_op_bytes + op_bytes, error);
    if (status != STELE_OK) {
        return status;
    }
    if (!same_table) {
        ops_encode_table(name, batch->data + batch->bytes);
        batch->table_offset = batch->bytes + table_op_bytes - name.size;
        batch->table_bytes = name.size;
        batch->bytes += table_op_bytes;
    }
    ops_encode(op, batch->data + batch->bytes);
    batch->bytes += op_bytes;
    batch->op_count++;
    if (op_is_expectation(op->kind)) {
        batch->expectation_count++;
    }
    if (op->value.size > batch->value_bytes_max) {
        batch->value_bytes_max = op->value.size;
    }
    return STELE_OK;
}

/* An operation on one key. */
static enum stele_status add_keyed(struct stele_batch *batch, const char *table,
                                   const void *key, size_t key_bytes,
                                   struct op op, struct stele_error *error)
{
    const enum stele_status status =
        limit_check_key(table, key, key_bytes, "key", error);

    if (status != STELE_OK) {
        return status;
    }
    op.key = (struct bytes){key, key_bytes};
    return add(batch, table, &op, error);
}

enum stele_status stele_batch_put(struct stele_batch *batch, const char *table,
                                  const void *key, size_t key_bytes,
                                  const void *value, size_t value_bytes,
                                  struct stele_error *error)
{
    if (value == NULL && value_bytes > 0) {
        return error_set(error, STELE_INVALID, "the value is NULL");
    }
    if (value_bytes > LIMIT_VALUE_BYTES_MAX) {
        return error_set(error, STELE_TOO_BIG,
                         "the value has %zu bytes, at most %d are possible",
                         value_bytes, LIMIT_VALUE_BYTES_MAX);
    }
    return add_keyed(batch, table, key, key_bytes,
                     (struct op){.kind = OP_PUT, .value = {value, value_bytes}},
                     error);
}

enum stele_status stele_batch_delete(struct stele_batch *batch,
                                     const char *table, const void *key,
                                     size_t key_bytes,
                                     struct stele_error *error)
{
    return add_keyed(batch, table, key, key_bytes,
                     (struct op){.kind = OP_DELETE}, error);
}

enum stele_status stele_batch_delete_range(struct stele_batch *batch,
                                           const char *table, const void *first,
                                           size_t first_bytes, const void *end,
                                           size_t end_bytes,
                                           struct stele_error *error)
{
    struct op op = {.kind = OP_DELETE_RANGE};
    enum stele_status status = limit_check_table(table, error);

    if (status == STELE_OK && first != NULL) {
        op.key = (struct bytes){first, first_bytes};
        status = limit_check_key(table, first, first_bytes, "first key", error);
    }
    if (status == STELE_OK && end != NULL) {
        op.end = (struct bytes){end, end_bytes};
        status = limit_check_key(table, end, end_bytes, "end key", error);
    }
    if (status != STELE_OK) {
        return status;
    }
    /* The smallest key there is is a single zero byte. */
    if (op.end.size > 0 &&
        (bytes_compare(op.key, op.end) >= 0 ||
         (op.key.size == 0 &&
          bytes_compare(op.end, (struct bytes){"", 1}) == 0))) {
        return error_set(error, STELE_INVALID,
                         "the range is empty: its end is not above its start");
    }
    return add(batch, table, &op, error);
}

enum stele_status stele_batch_delete_prefix(struct stele_batch *batch,
                                            const char *table,
                                            const void *prefix,
                                            size_t prefix_bytes,
                                            struct stele_error *error)
{
    struct op op = {.kind = OP_DELETE_RANGE};
    uint8_t end[LIMIT_FULL_KEY_BYTES_MAX];
    enum stele_status status =
        limit_check_key(table, prefix, prefix_bytes, "prefix", error);

    if (status != STELE_OK) {
        return status;
    }
    op.key = (struct bytes){prefix, prefix_bytes};
    op.end.data = end;
    if (!prefix_end(op.key, end, &op.end.size)) {
        op.end = (struct bytes){NULL, 0}; /* Nothing sorts above it. */
    }
    return add(batch, table, &op, error);
}

enum stele_status stele_batch_clear_table(struct stele_batch *batch,
                                          const char *table,
                                          struct stele_error *error)
{
    return stele_batch_delete_range(batch, table, NULL, 0, NULL, 0, error);
}

enum stele_status stele_batch_expect_lsn(struct stele_batch *batch,
                                         const char *table, const void *key,
                                         size_t key_bytes, uint64_t lsn,
                                         struct stele_error *error)
{
    return add_keyed(batch, table, key, key_bytes,
                     (struct op){.kind = OP_EXPECT_LSN, .lsn = lsn}, error);
}

enum stele_status stele_batch_expect_absent(struct stele_batch *batch,
                                            const char *table, const void *key,
                                            size_t key_bytes,
                                            struct stele_error *error)
{
    return add_keyed(batch, table, key, key_bytes,
                     (struct op){.kind = OP_EXPECT_ABSENT}, error);
}

enum stele_status stele_batch_expect_present(struct stele_batch *batch,
                                             const char *table, const void *key,
                                             size_t key_bytes,
                                             struct stele_error *error)
{
    return add_keyed(batch, table, key, key_bytes,
                     (struct op){.kind = OP_EXPECT_PRESENT}, error);
}

void batch_seal(struct stele_batch *batch)
{
    const struct bytes body = batch_body(batch);

    batch->body_checksum = wal_record_body_checksum(body.data, body.size);
}

void batch_set_lsn(struct stele_batch *batch, uint64_t lsn)
{
    struct wal_record record = {
        .lsn = lsn,
        .body_checksum = batch->body_checksum,
        .op_count = batch->op_count,
        .flags = batch->has_tag ? (uint32_t)WAL_RECORD_HAS_TAG : 0,
        .body_bytes = (uint32_t)batch_body(batch).size,
    };

    if (batch->has_tag) {
        memcpy(record.tag, batch->tag, sizeof record.tag);
    }
    wal_record_encode_header(&record, batch->data);
}
