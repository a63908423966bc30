/* engine/ops.c -- see engine/ops.h. */
#include "engine/ops.h"

#include <assert.h>
#include <string.h>

#include "engine/limits.h"

static struct bytes take(struct byte_reader *in, size_t size)
{
    return (struct bytes){byte_reader_take(in, size), size};
}

static bool take_table(struct ops_reader *reader)
{
    const uint8_t size = byte_reader_u8(&reader->in);
    const struct bytes name = take(&reader->in, size);

    if (reader->in.failed || !limit_table_name_is_valid(name)) {
        return false;
    }
    reader->table = name;
    return true;
}

/* A key, or a bound that may be absent. */
static bool key_fits(const struct ops_reader *reader, struct bytes key)
{
    return key.size <= LIMIT_FULL_KEY_BYTES_MAX - 1 - reader->table.size;
}

static bool take_op(struct ops_reader *reader, uint8_t kind, struct op *op)
{
    struct byte_reader *in = &reader->in;
    uint16_t key_bytes;
    uint16_t end_bytes = 0;
    uint32_t value_bytes = 0;

    if (reader->table.size == 0) {
        return false; /* No TABLE yet. */
    }
    key_bytes = byte_reader_u16(in);
    switch (kind) {
    case OP_PUT:
        value_bytes = byte_reader_u32(in);
        break;
    case OP_DELETE_RANGE:
        end_bytes = byte_reader_u16(in);
        break;
    case OP_EXPECT_LSN:
        op->lsn = byte_reader_u64(in);
        break;
    case OP_DELETE:
    case OP_EXPECT_ABSENT:
    case OP_EXPECT_PRESENT:
        break;
    default:
        return false;
    }
    op->kind = (enum op_kind)kind;
    op->key = take(in, key_bytes);
    op->end = take(in, end_bytes);
    op->value = take(in, value_bytes);
    if (in->failed || !key_fits(reader, op->key) ||
        !key_fits(reader, op->end) || value_bytes > LIMIT_VALUE_BYTES_MAX) {
        return false;
    }
    if (kind != OP_DELETE_RANGE) {
        return key_bytes > 0;
    }
    return end_bytes == 0 || bytes_compare(op->key, op->end) < 0;
}

enum ops_verdict ops_next(struct ops_reader *reader, struct op *op_out)
{
    struct op op = {0};

    while (reader->in.offset < reader->in.size) {
        const uint8_t kind = byte_reader_u8(&reader->in);

        if (kind == OP_TABLE) {
            if (!take_table(reader)) {
                return OPS_BAD;
            }
            continue;
        }
        if (reader->op_count >= LIMIT_BATCH_OPS_MAX ||
            !take_op(reader, kind, &op)) {
            return OPS_BAD;
        }
        op.index = reader->op_count++;
        op.table = reader->table;
        *op_out = op;
        return OPS_OP;
    }
    return OPS_END;
}

size_t ops_table_bytes(struct bytes table)
{
    return 2 + table.size;
}

size_t ops_bytes(const struct op *op)
{
    const size_t common = 3 + op->key.size;

    switch (op->kind) {
    case OP_PUT:
        return common + 4 + op->value.size;
    case OP_DELETE_RANGE:
        return common + 2 + op->end.size;
    case OP_EXPECT_LSN:
        return common + 8;
    case OP_DELETE:
    case OP_EXPECT_ABSENT:
    case OP_EXPECT_PRESENT:
        return common;
    case OP_TABLE:
        break;
    }
    assert(op->kind != OP_TABLE); /* ops_table_bytes() is for tables. */
    return 0;
}

void ops_encode_table(struct bytes table, uint8_t *target)
{
    target[0] = OP_TABLE;
    target[1] = (uint8_t)table.size;
    memcpy(target + 2, table.data, table.size);
}

void ops_encode(const struct op *op, uint8_t *target)
{
    struct byte_writer out = byte_writer_init(target, ops_bytes(op));
    const uint8_t kind = (uint8_t)op->kind;

    byte_writer_copy(&out, &kind, 1);
    byte_writer_u16(&out, (uint16_t)op->key.size);
    if (op->kind == OP_PUT) {
        byte_writer_u32(&out, (uint32_t)op->value.size);
    } else if (op->kind == OP_DELETE_RANGE) {
        byte_writer_u16(&out, (uint16_t)op->end.size);
    } else if (op->kind == OP_EXPECT_LSN) {
        byte_writer_u64(&out, op->lsn);
    }
    byte_writer_copy(&out, op->key.data, op->key.size);
    byte_writer_copy(&out, op->end.data, op->end.size);
    byte_writer_copy(&out, op->value.data, op->value.size);
    assert(out.offset == out.size);
}
