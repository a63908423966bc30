/*
 * engine/ops.h -- operations as bytes: the body of a record (wal/record.h).
 *
 *     TABLE           01  u8 name bytes   name
 *     PUT             02  u16 key bytes   u32 value bytes   key   value
 *     DELETE          03  u16 key bytes   key
 *     DELETE RANGE    04  u16 first bytes u16 end bytes     first end
 *     EXPECT LSN      05  u16 key bytes   u64 lsn           key
 *     EXPECT ABSENT   06  u16 key bytes   key
 *     EXPECT PRESENT  07  u16 key bytes   key
 *
 * little-endian. TABLE selects the table of what follows; every body starts with
 * one, so that one intact record can be understood alone. In a range, 0 first
 * bytes: from the table's first key; 0 end bytes: to its last, inclusive.
 * Operations are numbered from 0, TABLE not counted: the op index.
 *
 * The bytes are portable and applying them is deterministic: nothing in them
 * depends on this process, its clock or its memory layout.
 */
#ifndef ENGINE_OPS_H
#define ENGINE_OPS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/bytes.h"

enum op_kind {
    OP_TABLE = 1,
    OP_PUT = 2,
    OP_DELETE = 3,
    OP_DELETE_RANGE = 4,
    OP_EXPECT_LSN = 5,
    OP_EXPECT_ABSENT = 6,
    OP_EXPECT_PRESENT = 7,
};

struct op {
    enum op_kind kind; /* Never OP_TABLE: the reader takes those in. */
    uint32_t index;
    struct bytes table;
    struct bytes key;   /* Of a range: its first key; size 0: from the start. */
    struct bytes end;   /* Of a range; size 0: to the end. */
    struct bytes value; /* Of a put. */
    uint64_t lsn;       /* Of EXPECT LSN. */
};

/* True for the operations that do not change anything. */
static inline bool op_is_expectation(enum op_kind kind)
{
    return kind >= OP_EXPECT_LSN;
}

struct ops_reader {
    struct byte_reader in;
    struct bytes table;
    uint32_t op_count;
};

enum ops_verdict {
    OPS_OP,  /* *op_out is the next operation; it borrows from the body. */
    OPS_END, /* The body ends here, between two operations. */
    OPS_BAD, /* Not a body: malformed, or over a limit (engine/limits.h). */
};

static inline struct ops_reader ops_reader_init(const void *body, size_t bytes)
{
    return (struct ops_reader){.in = byte_reader_init(body, bytes)};
}

/* `body` may be arbitrary bytes: this is the trust boundary. */
enum ops_verdict ops_next(struct ops_reader *reader, struct op *op_out);

/* Bytes that an operation will take, and writing it. `target` has room. */
size_t ops_table_bytes(struct bytes table);
size_t ops_bytes(const struct op *op);
void ops_encode_table(struct bytes table, uint8_t *target);
void ops_encode(const struct op *op, uint8_t *target);

#endif
