/*
 * engine/base_value.h -- what the base (index, snapshot) stores for a key.
 *
 *      0      8       12
 *     +------+-------+---------...---+
 *     | lsn  | check | value         |
 *     | u64  | u32   | n bytes       |
 *     +------+-------+---------...---+
 *
 * lsn is that of the batch that put the value. check is the low half of an XXH3
 * of key, lsn and value; it is computed once, at commit, verified by every get,
 * and copied, never recomputed, by checkpoint and snapshot: LMDB's pages carry
 * no checksums, and a copy must not launder their rot.
 *
 * Keys are `table, 0x00, key` everywhere below the API. `table, 0x00` alone is
 * the table's row: it sorts right before the table's keys, and its value is
 *
 *      0       8
 *     +-------+--------+
 *     | count | sum    |   in the base; empty in the memtable
 *     | u64   | u64    |
 *     +-------+--------+
 *
 * count and sum (modulo 2^64) are of the table's keys and their checks, as they
 * stand in the base; lsn is the last batch with an operation on the table.
 */
#ifndef ENGINE_BASE_VALUE_H
#define ENGINE_BASE_VALUE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/bytes.h"
#include "base/status.h"

enum {
    BASE_VALUE_HEADER_BYTES = 12,
    BASE_VALUE_TABLE_ROW_BYTES = 16,
    BASE_KEY_BYTES_MAX = 511,
    BASE_TABLE_NAME_BYTES_MAX = 63,
};

struct base_value {
    uint64_t lsn;
    uint32_t check;
    struct bytes value; /* Borrowed. */
};

/* An entry of the base, as a cursor shows it. */
struct base_entry {
    struct bytes key;    /* Borrowed. */
    struct bytes stored; /* The base value's bytes, not yet verified. */
};

struct table_row {
    uint64_t count;
    uint64_t sum;
};

uint32_t base_value_check(struct bytes key, uint64_t lsn, struct bytes value);

void base_value_encode_header(uint64_t lsn, uint32_t check,
                              uint8_t target[BASE_VALUE_HEADER_BYTES]);

/* False if `stored` is too short to be one. Does not verify the check. */
bool base_value_decode(struct bytes stored, struct base_value *value_out);

/* True if the check holds for `key`. */
bool base_value_verify(struct bytes key, const struct base_value *value);

/*
 * Both, of what is stored for `key` in `where` ("index", or a file's name). The
 * one message for a value that cannot be trusted names table and key, cut if
 * they are long; bytes that are not printable turn it into hex digits:
 *
 *     index: table "topics", key "orders": check mismatch
 *     index: table "topics", key 00ff: shorter than its header
 *     index: row of table "topics": check mismatch
 */
enum stele_status base_value_read(const char *where, struct bytes key,
                                  struct bytes stored,
                                  struct base_value *value_out,
                                  struct stele_error *error) STELE_MUST_CHECK;

/* That message, for other damage of the entry `key`; CORRUPT. */
enum stele_status base_entry_damaged(const char *where, struct bytes key,
                                     const char *damage,
                                     struct stele_error *error);

void table_row_encode(const struct table_row *row,
                      uint8_t target[BASE_VALUE_TABLE_ROW_BYTES]);
bool table_row_decode(struct bytes stored, struct table_row *row_out);

/* The bytes of the table name in `key`, 0 if it has none: a key begins with 1
 * to 63 bytes that are not zero, then a zero. */
size_t base_key_table_bytes(struct bytes key);

#endif
