/*
 * tests/lib/model.h -- what a store must hold, kept the simplest way.
 *
 * Per table a sorted array of keys, and per key every version it ever had, by
 * LSN: so the state at any LSN can be asked for, however long ago it was. A
 * range delete is spelled out key by key. Nothing here shares code with the
 * engine. Out of memory: it dies.
 */
#ifndef TESTS_LIB_MODEL_H
#define TESTS_LIB_MODEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "engine/stele.h"

enum {
    MODEL_TABLES = 3, /* Table number MODEL_TABLES is never written. */
    MODEL_KEY_BYTES_MAX = STELE_TABLE_AND_KEY_BYTES_MAX - 1,
    MODEL_TEXT_BYTES = 160,
};

/* A key, a bound or a prefix. */
struct model_bytes {
    size_t size;
    uint8_t data[MODEL_KEY_BYTES_MAX];
};

int model_compare(const uint8_t *left, size_t left_size, const uint8_t *right,
                  size_t right_size);

/* For people: printable bytes as they are, others as \xhh, long keys cut. */
const char *model_escape(const uint8_t *data, size_t size,
                         char text[MODEL_TEXT_BYTES]);

/* ---- Values: made from a number, so that none has to be kept ------------- */

void model_value_fill(uint64_t seed, uint8_t *data, size_t bytes);
bool model_value_is(uint64_t seed, size_t bytes, const void *data,
                    size_t data_bytes);

/* ---- Operations ------------------------------------------------------------ */

enum model_op_kind {
    MODEL_PUT,
    MODEL_DELETE,
    MODEL_DELETE_RANGE,  /* From `key` to `end`; of size 0: no such bound. */
    MODEL_DELETE_PREFIX, /* `key` */
    MODEL_CLEAR,
    MODEL_EXPECT_LSN,
    MODEL_EXPECT_ABSENT,
    MODEL_EXPECT_PRESENT,
};

struct model_op {
    enum model_op_kind kind;
    unsigned table;
    struct model_bytes key;
    struct model_bytes end;
    uint64_t value_seed;
    size_t value_bytes;
    uint64_t lsn; /* Expected. */
};

/* ---- The model --------------------------------------------------------------- */

struct model;

struct model *model_create(void);
void model_destroy(struct model *model);

/* MODEL_TABLES is allowed. In number order they are in name order too. */
const char *model_table_name(unsigned table);
size_t model_key_bytes_max(unsigned table);

/* The first expectation that does not hold now, or `count`. */
size_t model_failing_op(const struct model *model, const struct model_op *ops,
                        size_t count);

/* The batch happened at `lsn`, which is above all before. `outcomes` has room
 * for `count`. */
void model_apply(struct model *model, const struct model_op *ops, size_t count,
                 uint64_t lsn, enum stele_op_outcome *outcomes);

/* ---- The state at an LSN ------------------------------------------------------ */

struct model_version {
    uint64_t lsn;
    uint64_t value_seed;
    size_t value_bytes;
    bool present;
};

/* False: absent. UINT64_MAX: now. */
bool model_get(const struct model *model, unsigned table,
               const struct model_bytes *key, uint64_t lsn,
               struct model_version *version_out);

/* A key that the table has or had; false: there never was one. */
bool model_pick_key(const struct model *model, unsigned table, uint64_t number,
                    struct model_bytes *key_out);

struct model_entry {
    const uint8_t *key; /* The model's. */
    size_t key_bytes;
    struct model_version version;
};

/* The keys with this prefix (NULL: all) in order. The caller frees `entries`.
 * `absent_too`: every key that ever was, with its version there. */
struct model_list {
    struct model_entry *entries;
    size_t count;
    size_t capacity;
};

void model_list_present(const struct model *model, unsigned table,
                        const struct model_bytes *prefix, uint64_t lsn,
                        struct model_list *list);
void model_list_ever(const struct model *model, unsigned table, uint64_t lsn,
                     struct model_list *list);
void model_list_deinit(struct model_list *list);

/* Of the last batch up to `lsn` that touched the table; 0: none did. */
uint64_t model_table_lsn(const struct model *model, unsigned table,
                         uint64_t lsn);

#endif
