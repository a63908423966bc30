/* tests/lib/model.c -- see tests/lib/model.h. */
#include "tests/lib/model.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/lib/random.h"

struct key {
    uint8_t *data;
    size_t size;
    struct model_version *versions; /* LSNs ascend. */
    size_t version_count;
    size_t version_capacity;
};

struct table {
    struct key *keys; /* Sorted; none is ever taken out. */
    size_t key_count;
    size_t key_capacity;
    uint64_t *lsns; /* Of the batches that touched it; ascending. */
    size_t lsn_count;
    size_t lsn_capacity;
};

struct model {
    struct table tables[MODEL_TABLES];
};

/* Room for one more element. */
static void *grow(void *array, size_t count, size_t *capacity, size_t bytes)
{
    if (count < *capacity) {
        return array;
    }
    *capacity = *capacity == 0 ? 16 : 2 * *capacity;
    array = realloc(array, *capacity * bytes);
    if (array == NULL) {
        perror("model");
        abort();
    }
    return array;
}

struct model *model_create(void)
{
    struct model *model = calloc(1, sizeof *model);

    if (model == NULL) {
        perror("model");
        abort();
    }
    return model;
}

void model_destroy(struct model *model)
{
    if (model == NULL) {
        return;
    }
    for (unsigned number = 0; number < MODEL_TABLES; number++) {
        struct table *table = &model->tables[number];

        for (size_t index = 0; index < table->key_count; index++) {
            free(table->keys[index].data);
            free(table->keys[index].versions);
        }
        free(table->keys);
        free(table->lsns);
    }
    free(model);
}

/* One name is a prefix of the next, and one leaves little room for keys. */
const char *model_table_name(unsigned table)
{
    static const char *const names[MODEL_TABLES + 1] = {
        "a",
        "a.b",
        ("table-of-the-longest-name-that-is-allowed-"
         "---------------------"),
        "unwritten",
    };

    return names[table];
}

size_t model_key_bytes_max(unsigned table)
{
    return STELE_TABLE_AND_KEY_BYTES_MAX - strlen(model_table_name(table));
}

/* ---- Bytes -------------------------------------------------------------------- */

int model_compare(const uint8_t *left, size_t left_size, const uint8_t *right,
                  size_t right_size)
{
    for (size_t index = 0; index < left_size && index < right_size; index++) {
        if (left[index] != right[index]) {
            return left[index] < right[index] ? -1 : 1;
        }
    }
    return (left_size > right_size) - (left_size < right_size);
}

static bool has_prefix(const struct key *key, const struct model_bytes *prefix)
{
    return key->size >= prefix->size &&
           memcmp(key->data, prefix->data, prefix->size) == 0;
}

const char *model_escape(const uint8_t *data, size_t size,
                         char text[MODEL_TEXT_BYTES])
{
    enum { SHOWN_MAX = 24, LINE_BYTES = 64 };
    const size_t shown = size <= SHOWN_MAX ? size : SHOWN_MAX;
    size_t used = 0;

    for (size_t index = 0; index < shown; index++) {
        used += (size_t)snprintf(
            text + used, MODEL_TEXT_BYTES - used,
            isgraph(data[index]) && data[index] != '\\' ? "%c" : "\\x%02x",
            data[index]);
    }
    if (shown < size) {
        snprintf(text + used, MODEL_TEXT_BYTES - used, "...(%zu bytes)", size);
    } else {
        text[used] = '\0';
    }
    return text;
}

void model_value_fill(uint64_t seed, uint8_t *data, size_t bytes)
{
    struct random_source random = {seed};

    for (size_t done = 0; done < bytes; done += sizeof(uint64_t)) {
        const uint64_t word = random_u64(&random);
        const size_t left = bytes - done;

        memcpy(data + done, &word, left < sizeof word ? left : sizeof word);
    }
}

bool model_value_is(uint64_t seed, size_t bytes, const void *data,
                    size_t data_bytes)
{
    struct random_source random = {seed};

    if (bytes != data_bytes) {
        return false;
    }
    for (size_t done = 0; done < bytes; done += sizeof(uint64_t)) {
        const uint64_t word = random_u64(&random);
        const size_t left = bytes - done;

        if (memcmp((const uint8_t *)data + done, &word,
                   left < sizeof word ? left : sizeof word) != 0) {
            return false;
        }
    }
    return true;
}

/* ---- Keys and versions ------------------------------------------------------------ */

/* The first key that is not below. */
static size_t lower(const struct table *table, const struct model_bytes *key)
{
    size_t low = 0;
    size_t high = table->key_count;

    while (low < high) {
        const size_t middle = low + (high - low) / 2;

        if (model_compare(table->keys[middle].data, table->keys[middle].size,
                          key->data, key->size) < 0) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

static struct key *find(const struct table *table,
                        const struct model_bytes *key)
{
    const size_t index = lower(table, key);

    if (index == table->key_count ||
        model_compare(table->keys[index].data, table->keys[index].size,
                      key->data, key->size) != 0) {
        return NULL;
    }
    return &table->keys[index];
}

static struct key *find_or_add(struct table *table,
                               const struct model_bytes *key)
{
    struct key *found = find(table, key);
    size_t index;

    if (found != NULL) {
        return found;
    }
    index = lower(table, key);
    table->keys = grow(table->keys, table->key_count, &table->key_capacity,
                       sizeof *table->keys);
    memmove(table->keys + index + 1, table->keys + index,
            (table->key_count - index) * sizeof *table->keys);
    table->key_count++;
    found = &table->keys[index];
    *found = (struct key){.data = malloc(key->size), .size = key->size};
    if (found->data == NULL) {
        perror("model");
        abort();
    }
    memcpy(found->data, key->data, key->size);
    return found;
}

/* The newest one up to `lsn`; a key that was not there yet: absent, LSN 0. */
static struct model_version version_at(const struct key *key, uint64_t lsn)
{
    size_t low = 0;
    size_t high = key->version_count;

    while (low < high) {
        const size_t middle = low + (high - low) / 2;

        if (key->versions[middle].lsn <= lsn) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low == 0 ? (struct model_version){.present = false}
                    : key->versions[low - 1];
}

static bool is_present(const struct key *key)
{
    return version_at(key, UINT64_MAX).present;
}

static void set_version(struct key *key, const struct model_version *version)
{
    if (key->version_count > 0 &&
        key->versions[key->version_count - 1].lsn == version->lsn) {
        /* An earlier operation of the batch: nobody ever sees it. */
        key->versions[key->version_count - 1] = *version;
        return;
    }
    key->versions = grow(key->versions, key->version_count,
                         &key->version_capacity, sizeof *key->versions);
    key->versions[key->version_count++] = *version;
}

/* ---- Batches -------------------------------------------------------------------------- */

static bool is_expectation(enum model_op_kind kind)
{
    return kind == MODEL_EXPECT_LSN || kind == MODEL_EXPECT_ABSENT ||
           kind == MODEL_EXPECT_PRESENT;
}

size_t model_failing_op(const struct model *model, const struct model_op *ops,
                        size_t count)
{
    for (size_t index = 0; index < count; index++) {
        const struct model_op *op = &ops[index];
        struct model_version version;
        bool present;

        if (!is_expectation(op->kind)) {
            continue;
        }
        present = model_get(model, op->table, &op->key, UINT64_MAX, &version);
        if (op->kind == MODEL_EXPECT_ABSENT ? present : !present) {
            return index;
        }
        if (op->kind == MODEL_EXPECT_LSN && version.lsn != op->lsn) {
            return index;
        }
    }
    return count;
}

static bool covers(const struct model_op *op, const struct key *key)
{
    if (op->kind == MODEL_CLEAR) {
        return true;
    }
    if (op->kind == MODEL_DELETE_PREFIX) {
        return has_prefix(key, &op->key);
    }
    return model_compare(key->data, key->size, op->key.data, op->key.size) >=
               0 &&
           (op->end.size == 0 || model_compare(key->data, key->size,
                                               op->end.data, op->end.size) < 0);
}

static enum stele_op_outcome apply_point(struct table *table,
                                         const struct model_op *op,
                                         uint64_t lsn)
{
    const bool put = op->kind == MODEL_PUT;
    struct key *key = find_or_add(table, &op->key);
    const bool was_present = is_present(key);

    set_version(key, &(struct model_version){.lsn = lsn,
                                             .value_seed = op->value_seed,
                                             .value_bytes = op->value_bytes,
                                             .present = put});
    if (put) {
        return was_present ? STELE_OP_REPLACED : STELE_OP_CREATED;
    }
    return was_present ? STELE_OP_DELETED : STELE_OP_ABSENT;
}

void model_apply(struct model *model, const struct model_op *ops, size_t count,
                 uint64_t lsn, enum stele_op_outcome *outcomes)
{
    for (size_t index = 0; index < count; index++) {
        const struct model_op *op = &ops[index];
        struct table *table = &model->tables[op->table];

        outcomes[index] = STELE_OP_DONE;
        if (is_expectation(op->kind)) {
            continue;
        }
        if (table->lsn_count == 0 || table->lsns[table->lsn_count - 1] < lsn) {
            table->lsns = grow(table->lsns, table->lsn_count,
                               &table->lsn_capacity, sizeof *table->lsns);
            table->lsns[table->lsn_count++] = lsn;
        }
        if (op->kind == MODEL_PUT || op->kind == MODEL_DELETE) {
            outcomes[index] = apply_point(table, op, lsn);
            continue;
        }
        for (size_t number = 0; number < table->key_count; number++) {
            struct key *key = &table->keys[number];

            if (covers(op, key) && is_present(key)) {
                set_version(key, &(struct model_version){.lsn = lsn});
            }
        }
    }
}

/* ---- The state at an LSN ------------------------------------------------------------------ */

bool model_get(const struct model *model, unsigned table,
               const struct model_bytes *key, uint64_t lsn,
               struct model_version *version_out)
{
    const struct key *found =
        table == MODEL_TABLES ? NULL : find(&model->tables[table], key);

    *version_out = found == NULL ? (struct model_version){.present = false}
                                 : version_at(found, lsn);
    return version_out->present;
}

bool model_pick_key(const struct model *model, unsigned table, uint64_t number,
                    struct model_bytes *key_out)
{
    const struct table *from = &model->tables[table];
    const struct key *key;

    if (from->key_count == 0) {
        return false;
    }
    key = &from->keys[number % from->key_count];
    key_out->size = key->size;
    memcpy(key_out->data, key->data, key->size);
    return true;
}

static void list_add(struct model_list *list, const struct key *key,
                     const struct model_version *version)
{
    list->entries = grow(list->entries, list->count, &list->capacity,
                         sizeof *list->entries);
    list->entries[list->count++] = (struct model_entry){
        .key = key->data, .key_bytes = key->size, .version = *version};
}

void model_list_present(const struct model *model, unsigned table,
                        const struct model_bytes *prefix, uint64_t lsn,
                        struct model_list *list)
{
    list->count = 0;
    if (table == MODEL_TABLES) {
        return;
    }
    for (size_t index = 0; index < model->tables[table].key_count; index++) {
        const struct key *key = &model->tables[table].keys[index];
        const struct model_version version = version_at(key, lsn);

        if (version.present && (prefix == NULL || has_prefix(key, prefix))) {
            list_add(list, key, &version);
        }
    }
}

void model_list_ever(const struct model *model, unsigned table, uint64_t lsn,
                     struct model_list *list)
{
    list->count = 0;
    if (table == MODEL_TABLES) {
        return;
    }
    for (size_t index = 0; index < model->tables[table].key_count; index++) {
        const struct key *key = &model->tables[table].keys[index];
        const struct model_version version = version_at(key, lsn);

        list_add(list, key, &version);
    }
}

void model_list_deinit(struct model_list *list)
{
    free(list->entries);
    *list = (struct model_list){0};
}

uint64_t model_table_lsn(const struct model *model, unsigned table,
                         uint64_t lsn)
{
    const struct table *of =
        table == MODEL_TABLES ? NULL : &model->tables[table];
    size_t low = 0;
    size_t high = of == NULL ? 0 : of->lsn_count;

    while (low < high) {
        const size_t middle = low + (high - low) / 2;

        if (of->lsns[middle] <= lsn) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low == 0 ? 0 : of->lsns[low - 1];
}
