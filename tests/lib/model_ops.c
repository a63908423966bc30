/* tests/lib/model_ops.c -- see tests/lib/model_ops.h. */
#include "tests/lib/model_ops.h"

#include <string.h>

/* ---- Keys --------------------------------------------------------------------- */

static uint8_t random_byte(struct random_source *random, unsigned table)
{
    static const uint8_t few[] = {0x00, 0x01, 'a', 'b', 0xfe, 0xff};
    static const uint8_t more[] = {0x00, 0x01, 0x02, 'a',  'b',  'c',
                                   'd',  0x7f, 0x80, 0xfd, 0xfe, 0xff};

    return table == 0 ? few[random_below(random, sizeof few)]
                      : more[random_below(random, sizeof more)];
}

/* One of a dozen: they share long prefixes, with each other and with short
 * keys. */
static void long_key(struct random_source *random, unsigned table,
                     struct model_bytes *key)
{
    static const uint8_t fillers[] = {0x00, 'a', 0xff};
    const size_t max = model_key_bytes_max(table);
    const size_t sizes[] = {40, 250, max - 1, max};

    key->size = sizes[random_below(random, 4)];
    memset(key->data, fillers[random_below(random, sizeof fillers)], key->size);
}

void model_random_key(struct random_source *random, unsigned table,
                      struct model_bytes *key_out)
{
    if (random_one_in(random, 24)) {
        long_key(random, table, key_out);
        return;
    }
    key_out->size = 1 + (size_t)random_below(random, 3);
    for (size_t index = 0; index < key_out->size; index++) {
        key_out->data[index] = random_byte(random, table);
    }
}

void model_random_prefix(struct random_source *random, unsigned table,
                         struct model_bytes *prefix_out)
{
    prefix_out->size = (size_t)random_below(random, 3);
    for (size_t index = 0; index < prefix_out->size; index++) {
        prefix_out->data[index] = random_byte(random, table);
    }
}

unsigned model_random_table(struct random_source *random)
{
    return (unsigned)random_below(random, MODEL_TABLES);
}

static int compare(const struct model_bytes *left,
                   const struct model_bytes *right)
{
    return model_compare(left->data, left->size, right->data, right->size);
}

/* ---- Operations ------------------------------------------------------------------ */

static size_t random_value_bytes(struct random_source *random)
{
    enum {
        VALUE_BYTES_MANY = 300,
        VALUE_BYTES_LARGE = 5000,
        VALUE_BYTES_HUGE = 100 << 10
    };

    if (random_one_in(random, 600)) {
        return VALUE_BYTES_HUGE;
    }
    if (random_one_in(random, 80)) {
        return VALUE_BYTES_LARGE;
    }
    return random_one_in(random, 8)
               ? 0
               : (size_t)random_below(random, VALUE_BYTES_MANY + 1);
}

/* A batch under construction. */
struct draft {
    const struct model *model;
    struct random_source *random;
    struct model_op *ops;
    size_t count;
};

static struct model_op *add(struct draft *draft, enum model_op_kind kind,
                            unsigned table)
{
    struct model_op *op = &draft->ops[draft->count++];

    op->kind = kind;
    op->table = table;
    op->key.size = 0;
    op->end.size = 0;
    return op;
}

/* A table, and a key of it: often the last operation's, so that the order
 * within the batch matters. */
static unsigned choose_key(struct draft *draft, struct model_bytes *key)
{
    struct random_source *random = draft->random;
    unsigned table = model_random_table(random);

    if (draft->count > 0 && random_below(random, 100) < 40) {
        const struct model_op *last = &draft->ops[draft->count - 1];

        table = last->table;
        if (last->key.size > 0 && random_below(random, 100) < 70) {
            *key = last->key;
            return table;
        }
    }
    if (random_one_in(random, 2) ||
        !model_pick_key(draft->model, table, random_u64(random), key)) {
        model_random_key(random, table, key);
    }
    return table;
}

static void add_put(struct draft *draft)
{
    struct model_bytes key;
    const unsigned table = choose_key(draft, &key);
    struct model_op *op = add(draft, MODEL_PUT, table);

    op->key = key;
    op->value_seed = random_u64(draft->random);
    op->value_bytes = random_value_bytes(draft->random);
}

static void add_delete(struct draft *draft)
{
    struct model_bytes key;
    const unsigned table = choose_key(draft, &key);

    add(draft, MODEL_DELETE, table)->key = key;
}

/* Up to a little behind its first key: the key alone, or all that begin with
 * it. */
static void set_near_end(struct draft *draft, struct model_op *op)
{
    op->end = op->key;
    if (op->key.size < model_key_bytes_max(op->table) &&
        random_one_in(draft->random, 3)) {
        op->end.data[op->end.size++] = 0x00;
        return;
    }
    while (op->end.size > 0 && op->end.data[op->end.size - 1] == 0xff) {
        op->end.size--; /* To nothing: up to the table's end. */
    }
    if (op->end.size > 0) {
        op->end.data[op->end.size - 1]++;
    }
}

static void add_range(struct draft *draft)
{
    struct random_source *random = draft->random;
    struct model_bytes key;
    const unsigned table = choose_key(draft, &key);
    struct model_op *op = add(draft, MODEL_DELETE_RANGE, table);

    op->key = key;
    if (random_below(random, 100) < 70) {
        set_near_end(draft, op);
        return;
    }
    model_random_key(random, table, &op->end);
    if (compare(&op->end, &op->key) < 0) {
        op->key = op->end;
        op->end = key;
    }
    if (random_one_in(random, 12) || compare(&op->key, &op->end) == 0) {
        op->end.size = 0;
    } else if (random_one_in(random, 12)) {
        op->key.size = 0;
    }
}

static void add_prefix(struct draft *draft)
{
    struct model_bytes key;
    const unsigned table = choose_key(draft, &key);
    struct model_op *op = add(draft, MODEL_DELETE_PREFIX, table);

    op->key = key;
    op->key.size = 1 + (size_t)random_below(draft->random, key.size);
}

static void add_expectation(struct draft *draft)
{
    const bool right = !random_one_in(draft->random, 6);
    struct model_bytes key;
    const unsigned table = choose_key(draft, &key);
    struct model_version version;
    const bool present =
        model_get(draft->model, table, &key, UINT64_MAX, &version);
    struct model_op *op = add(draft, MODEL_EXPECT_LSN, table);

    op->key = key;
    op->lsn = version.lsn;
    if (random_one_in(draft->random, 2)) {
        op->kind =
            present == right ? MODEL_EXPECT_PRESENT : MODEL_EXPECT_ABSENT;
    } else if (right && !present) {
        op->kind = MODEL_EXPECT_ABSENT;
    } else if (!right && present) {
        op->lsn += random_one_in(draft->random, 2) ? 1 : UINT64_MAX;
    }
}

static void add_any(struct draft *draft)
{
    const uint64_t choice = random_below(draft->random, 1000);

    if (choice < 560) {
        add_put(draft);
    } else if (choice < 700) {
        add_delete(draft);
    } else if (choice < 840) {
        add_range(draft);
    } else if (choice < 900) {
        add_prefix(draft);
    } else if (choice < 904) {
        add(draft, MODEL_CLEAR, model_random_table(draft->random));
    } else {
        add_expectation(draft);
    }
}

/* ---- Batches ------------------------------------------------------------------------- */

enum model_batch_kind model_random_batch_kind(struct random_source *random)
{
    const uint64_t choice = random_below(random, 1000);

    return choice < 10   ? MODEL_BATCH_BULK
           : choice < 22 ? MODEL_BATCH_REPLACE
           : choice < 60 ? MODEL_BATCH_RANGES
                         : MODEL_BATCH_SMALL;
}

static void make_bulk(struct draft *draft)
{
    const size_t count =
        100 + (size_t)random_below(draft->random, MODEL_BATCH_OPS_MAX - 100);

    while (draft->count < count) {
        if (random_one_in(draft->random, 10)) {
            add_delete(draft);
        } else {
            add_put(draft);
        }
    }
}

static void make_replace(struct draft *draft)
{
    const unsigned table = model_random_table(draft->random);
    const uint64_t puts = random_below(draft->random, 60);

    if (random_one_in(draft->random, 2)) {
        add_put(draft); /* Which the clear may take away again. */
    }
    add(draft, MODEL_CLEAR, table);
    for (uint64_t index = 0; index < puts; index++) {
        struct model_op *op = add(draft, MODEL_PUT, table);

        model_random_key(draft->random, table, &op->key);
        op->value_seed = random_u64(draft->random);
        op->value_bytes = random_value_bytes(draft->random);
    }
}

static void make_ranges(struct draft *draft)
{
    const uint64_t count = 4 + random_below(draft->random, 13);

    for (uint64_t index = 0; index < count; index++) {
        if (random_one_in(draft->random, 4)) {
            add_put(draft);
        } else {
            add_range(draft);
        }
    }
}

size_t model_random_ops(const struct model *model, struct random_source *random,
                        enum model_batch_kind kind, struct model_op *ops)
{
    struct draft draft = {.model = model, .random = random, .ops = ops};

    switch (kind) {
    case MODEL_BATCH_BULK:
        make_bulk(&draft);
        break;
    case MODEL_BATCH_REPLACE:
        make_replace(&draft);
        break;
    case MODEL_BATCH_RANGES:
        make_ranges(&draft);
        break;
    case MODEL_BATCH_SMALL:
        for (uint64_t count = 1 + random_below(random, 8); count > 0; count--) {
            add_any(&draft);
        }
        break;
    }
    return draft.count;
}

/* ---- For the store --------------------------------------------------------------------- */

static const uint8_t *bound(const struct model_bytes *bytes)
{
    return bytes->size == 0 ? NULL : bytes->data;
}

static enum stele_status add_op(const struct model_op *op,
                                struct stele_batch *batch,
                                struct stele_error *error)
{
    static uint8_t value[100 << 10];
    const char *table = model_table_name(op->table);
    const uint8_t *key = op->key.data;
    const size_t key_bytes = op->key.size;

    switch (op->kind) {
    case MODEL_PUT:
        model_value_fill(op->value_seed, value, op->value_bytes);
        return stele_batch_put(batch, table, key, key_bytes, value,
                               op->value_bytes, error);
    case MODEL_DELETE:
        return stele_batch_delete(batch, table, key, key_bytes, error);
    case MODEL_DELETE_RANGE:
        return stele_batch_delete_range(batch, table, bound(&op->key),
                                        key_bytes, bound(&op->end),
                                        op->end.size, error);
    case MODEL_DELETE_PREFIX:
        return stele_batch_delete_prefix(batch, table, key, key_bytes, error);
    case MODEL_CLEAR:
        return stele_batch_clear_table(batch, table, error);
    case MODEL_EXPECT_LSN:
        return stele_batch_expect_lsn(batch, table, key, key_bytes, op->lsn,
                                      error);
    case MODEL_EXPECT_ABSENT:
        return stele_batch_expect_absent(batch, table, key, key_bytes, error);
    case MODEL_EXPECT_PRESENT:
        return stele_batch_expect_present(batch, table, key, key_bytes, error);
    }
    return STELE_INVALID;
}

enum stele_status model_ops_add(const struct model_op *ops, size_t count,
                                struct stele_batch *batch,
                                struct stele_error *error)
{
    enum stele_status status = STELE_OK;

    for (size_t index = 0; index < count && status == STELE_OK; index++) {
        status = add_op(&ops[index], batch, error);
    }
    return status;
}
