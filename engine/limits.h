/*
 * engine/limits.h -- the hard limits, and checking arguments against them.
 *
 * The stores' own limits (value_bytes_max, batch_ops_max) are lower and checked
 * at commit; these bound what the formats can express, on both sides: nothing
 * is written that reading would refuse.
 */
#ifndef ENGINE_LIMITS_H
#define ENGINE_LIMITS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/bytes.h"
#include "base/status.h"

enum {
    LIMIT_TABLE_NAME_BYTES_MAX = 63,
    LIMIT_FULL_KEY_BYTES_MAX = 511, /* table, 0x00, key: LMDB's limit. */
    LIMIT_VALUE_BYTES_MAX = 16 << 20,
    LIMIT_BATCH_OPS_MAX = 1 << 24,
};

/* 1 to 63 of [A-Za-z0-9._-]. */
bool limit_table_name_is_valid(struct bytes name);

/* The same with a message. `table` may be NULL (INVALID). */
enum stele_status limit_check_table(const char *table,
                                    struct stele_error *error) STELE_MUST_CHECK;

/* A key (or a bound, or a prefix: `what`) of this table, 1 or more bytes. */
enum stele_status limit_check_key(const char *table, const void *key,
                                  size_t key_bytes, const char *what,
                                  struct stele_error *error) STELE_MUST_CHECK;

/*
 * `table, 0x00, key` in the caller's memory. A key of 0 bytes makes the table's
 * row; full_key_table_first() is where its keys start, full_key_table_end() is
 * above all of them.
 */
struct full_key {
    size_t size;
    uint8_t data[LIMIT_FULL_KEY_BYTES_MAX + 1];
};

void full_key_init(struct full_key *full, struct bytes table, struct bytes key);
void full_key_table_first(struct full_key *full, struct bytes table);
void full_key_table_end(struct full_key *full, struct bytes table);

static inline struct bytes full_key_bytes(const struct full_key *full)
{
    return (struct bytes){full->data, full->size};
}

/* The smallest key above all keys that begin with `prefix`. False: there is
 * none (it is all 0xff). `end` has room for prefix.size bytes. */
bool prefix_end(struct bytes prefix, uint8_t *end, size_t *end_bytes_out);

#endif
