/* tests/sim/history.c -- see tests/sim/history.h. */
#include "tests/sim/history.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/batch.h"
#include "tests/sim/image.h"

/* ---- Memory ---------------------------------------------------------------------- */

enum { ARENA_BYTES = 256 << 10 };

struct sim_arena {
    struct sim_arena *next;
    size_t used;
    size_t bytes;
    _Alignas(16) uint8_t data[];
};

void *sim_history_allocate(struct sim_history *history, size_t bytes)
{
    struct sim_arena *arena = history->arena;
    void *taken;

    bytes = (bytes + 15) & ~(size_t)15;
    if (arena == NULL || bytes > arena->bytes - arena->used) {
        const size_t wanted = bytes > ARENA_BYTES ? bytes : ARENA_BYTES;

        arena = sim_allocate(sizeof *arena + wanted);
        arena->next = history->arena;
        arena->used = 0;
        arena->bytes = wanted;
        history->arena = arena;
    }
    taken = arena->data + arena->used;
    arena->used += bytes;
    return taken;
}

static struct sim_batch *extend(struct sim_history *history)
{
    if (history->count == history->capacity) {
        history->capacity = history->capacity * 2 + 64;
        history->batches = sim_reallocate(
            history->batches, history->capacity * sizeof *history->batches);
    }
    memset(&history->batches[history->count], 0, sizeof *history->batches);
    return &history->batches[history->count++];
}

void sim_history_init(struct sim_history *history)
{
    *history = (struct sim_history){0};
    (void)extend(history); /* Number 0: the empty state. */
}

void sim_history_deinit(struct sim_history *history)
{
    while (history->arena != NULL) {
        struct sim_arena *next = history->arena->next;

        free(history->arena);
        history->arena = next;
    }
    free(history->batches);
    *history = (struct sim_history){0};
}

void sim_history_truncate(struct sim_history *history, uint32_t count)
{
    assert(count >= 1 && count <= history->count);
    history->count = count;
}

/* ---- Names ------------------------------------------------------------------------ */

const char *sim_table_name(unsigned table)
{
    static const char *const names[SIM_TABLES] = {"a", "b"};

    return names[table];
}

const char *sim_key_name(unsigned key)
{
    static const char *const names[SIM_KEYS + 1] = {
        "k0", "k1", "k2", "k3", "k4", "k5", "k6", "k7", "k8"};

    return names[key];
}

/* ---- Making batches ------------------------------------------------------------------ */

/* Few sizes, so that records of the same size follow each other. */
static uint32_t random_value_bytes(struct random_source *random)
{
    switch (random_below(random, 12)) {
    case 0:
        return 0;
    case 1:
    case 2:
        return 3000; /* With its headers still one page. */
    case 3:
        return 5000; /* Two pages. */
    default:
        return 16;
    }
}

static void random_value(struct sim_history *history,
                         struct random_source *random, struct sim_batch_op *op)
{
    uint8_t *value;

    op->value_bytes = random_value_bytes(random);
    value = sim_history_allocate(history, op->value_bytes);
    for (uint32_t index = 0; index < op->value_bytes; index += 8) {
        const uint64_t word = random_u64(random);
        const uint32_t left = op->value_bytes - index;

        memcpy(value + index, &word, left < 8 ? left : 8);
    }
    op->value = value;
}

static void random_op(struct sim_history *history, struct random_source *random,
                      struct sim_batch_op *op)
{
    op->table = (uint8_t)random_below(random, SIM_TABLES);
    op->key = (uint8_t)random_below(random, SIM_KEYS);
    op->key_end = (uint8_t)(op->key + 1);
    switch (random_below(random, 16)) {
    case 0:
    case 1:
        op->change = SIM_DELETE;
        break;
    case 2:
        op->change = SIM_DELETE_RANGE;
        op->key_end =
            (uint8_t)(op->key + 1 +
                      random_below(random, (uint64_t)SIM_KEYS - op->key));
        break;
    case 3:
        op->change = random_one_in(random, 3) ? SIM_CLEAR : SIM_DELETE;
        break;
    default:
        op->change = SIM_PUT;
        random_value(history, random, op);
        break;
    }
}

static bool is_expectation(const struct sim_batch_op *op)
{
    return op->change == SIM_EXPECT_ABSENT || op->change == SIM_EXPECT_PRESENT;
}

static void apply_op(struct sim_contents *contents, uint32_t number,
                     uint32_t index, const struct sim_batch_op *op)
{
    struct sim_cell *row = &contents->cells[op->table * SIM_KEYS];
    const struct sim_cell absent = {0};

    switch (op->change) {
    case SIM_PUT:
        row[op->key] = (struct sim_cell){.batch = number, .op = index};
        break;
    case SIM_DELETE:
    case SIM_DELETE_RANGE:
        for (unsigned key = op->key; key < op->key_end; key++) {
            row[key] = absent;
        }
        break;
    case SIM_CLEAR:
        for (unsigned key = 0; key < SIM_KEYS; key++) {
            row[key] = absent;
        }
        break;
    case SIM_EXPECT_ABSENT:
    case SIM_EXPECT_PRESENT:
        break;
    }
}

void sim_history_settle(struct sim_history *history, uint32_t number)
{
    struct sim_batch *batch = &history->batches[number];
    const struct sim_contents *before =
        &history->batches[batch->previous].after;

    batch->after = *before;
    batch->refused = false;
    for (uint32_t index = 0; index < batch->op_count; index++) {
        const struct sim_batch_op *op = &batch->ops[index];
        const bool present =
            before->cells[op->table * SIM_KEYS + op->key].batch != 0;

        if (is_expectation(op) &&
            present != (op->change == SIM_EXPECT_PRESENT)) {
            batch->refused = true;
        }
        apply_op(&batch->after, number, index, op);
    }
    if (batch->refused) {
        batch->after = *before;
    }
}

uint32_t sim_history_add(struct sim_history *history, uint32_t previous,
                         uint64_t seed)
{
    struct random_source random = {.state = seed};
    const uint32_t number = history->count;
    struct sim_batch *batch = extend(history);

    batch->previous = previous;
    batch->op_count = 1;
    if (random_one_in(&random, 2)) {
        batch->op_count += (uint32_t)random_below(&random, SIM_OPS_MAX - 2);
    }
    for (uint32_t index = 0; index < batch->op_count; index++) {
        random_op(history, &random, &batch->ops[index]);
    }
    if (random_one_in(&random, 12)) {
        batch->ops[batch->op_count++] = (struct sim_batch_op){
            .change = random_one_in(&random, 2) ? SIM_EXPECT_ABSENT
                                                : SIM_EXPECT_PRESENT,
            .table = (uint8_t)random_below(&random, SIM_TABLES),
            .key = (uint8_t)random_below(&random, SIM_KEYS),
        };
    }
    sim_history_settle(history, number);
    return number;
}

/* ---- Finding ------------------------------------------------------------------------- */

uint32_t sim_history_find(const struct sim_history *history, uint64_t lsn,
                          uint32_t limit)
{
    if (lsn == 0) {
        return 0;
    }
    for (uint32_t number = limit; number > 1; number--) {
        if (history->batches[number - 1].lsn == lsn) {
            return number - 1;
        }
    }
    return UINT32_MAX;
}

bool sim_history_descends(const struct sim_history *history, uint32_t number,
                          uint32_t ancestor)
{
    while (number > ancestor) {
        number = history->batches[number].previous;
    }
    return number == ancestor;
}

/* ---- Between the history and the API --------------------------------------------------- */

static const char tag_text[8] = "sim.tag";

static void make_tag(uint32_t number, uint8_t tag[STELE_TAG_BYTES])
{
    memset(tag, 0, STELE_TAG_BYTES);
    memcpy(tag, tag_text, sizeof tag_text);
    memcpy(tag + 8, &number, sizeof number);
}

uint32_t sim_history_number(const uint8_t tag[STELE_TAG_BYTES])
{
    uint8_t expected[STELE_TAG_BYTES];
    uint32_t number;

    memcpy(&number, tag + 8, sizeof number);
    make_tag(number, expected);
    return memcmp(tag, expected, STELE_TAG_BYTES) == 0 ? number : UINT32_MAX;
}

static enum stele_status fill_op(struct stele_batch *batch,
                                 const struct sim_batch_op *op,
                                 struct stele_error *error)
{
    const char *table = sim_table_name(op->table);
    const char *key = sim_key_name(op->key);
    const char *end = sim_key_name(op->key_end);

    switch (op->change) {
    case SIM_PUT:
        return stele_batch_put(batch, table, key, strlen(key), op->value,
                               op->value_bytes, error);
    case SIM_DELETE:
        return stele_batch_delete(batch, table, key, strlen(key), error);
    case SIM_DELETE_RANGE:
        return stele_batch_delete_range(batch, table, key, strlen(key), end,
                                        strlen(end), error);
    case SIM_CLEAR:
        return stele_batch_clear_table(batch, table, error);
    case SIM_EXPECT_ABSENT:
        return stele_batch_expect_absent(batch, table, key, strlen(key), error);
    case SIM_EXPECT_PRESENT:
        return stele_batch_expect_present(batch, table, key, strlen(key),
                                          error);
    }
    abort();
}

enum stele_status sim_history_fill(struct sim_history *history, uint32_t number,
                                   struct stele_batch *batch,
                                   struct stele_error *error)
{
    struct sim_batch *wanted = &history->batches[number];
    enum stele_status status = STELE_OK;
    uint8_t tag[STELE_TAG_BYTES];
    struct bytes body;
    uint8_t *copy;

    make_tag(number, tag);
    stele_batch_set_tag(batch, tag);
    for (uint32_t index = 0; index < wanted->op_count && status == STELE_OK;
         index++) {
        status = fill_op(batch, &wanted->ops[index], error);
    }
    if (status == STELE_OK) {
        body = batch_body(batch);
        copy = sim_history_allocate(history, body.size);
        memcpy(copy, body.data, body.size);
        wanted->body = copy;
        wanted->body_bytes = body.size;
    }
    return status;
}

void sim_history_describe(const struct sim_history *history, uint32_t number,
                          char *target, size_t bytes)
{
    static const char *const words[] = {"put",           "delete",
                                        "delete from",   "clear",
                                        "expect absent", "expect present"};
    const struct sim_batch *batch = &history->batches[number];
    size_t used = 0;

    target[0] = '\0';
    for (uint32_t index = 0; index < batch->op_count && used + 1 < bytes;
         index++) {
        const struct sim_batch_op *op = &batch->ops[index];
        int written = snprintf(target + used, bytes - used, "%s%s %s",
                               index == 0 ? "" : ", ", words[op->change],
                               sim_table_name(op->table));

        used += written > 0 ? (size_t)written : 0;
        if (op->change != SIM_CLEAR && used + 1 < bytes) {
            written = snprintf(target + used, bytes - used, "/%s",
                               sim_key_name(op->key));
            used += written > 0 ? (size_t)written : 0;
        }
        if (op->change == SIM_PUT && used + 1 < bytes) {
            written = snprintf(target + used, bytes - used,
                               " %" PRIu32 " bytes", op->value_bytes);
            used += written > 0 ? (size_t)written : 0;
        }
        if (op->change == SIM_DELETE_RANGE && used + 1 < bytes) {
            written = snprintf(target + used, bytes - used, " to %s",
                               sim_key_name(op->key_end));
            used += written > 0 ? (size_t)written : 0;
        }
    }
}

/* ---- Comparing ------------------------------------------------------------------------- */

static bool entry_matches(const struct sim_history *history,
                          const struct sim_cell *cell, unsigned key,
                          const struct stele_entry *entry)
{
    const struct sim_batch *batch = &history->batches[cell->batch];
    const struct sim_batch_op *op = &batch->ops[cell->op];
    const char *name = sim_key_name(key);

    return entry->key_bytes == strlen(name) &&
           memcmp(entry->key, name, entry->key_bytes) == 0 &&
           entry->value.bytes == op->value_bytes &&
           (op->value_bytes == 0 ||
            memcmp(entry->value.data, op->value, op->value_bytes) == 0) &&
           (batch->lsn == 0 || entry->value.lsn == batch->lsn);
}

static bool table_matches(const struct sim_history *history, uint32_t number,
                          struct stele_view *view, unsigned table, char *text,
                          size_t bytes)
{
    const struct sim_cell *row =
        &history->batches[number].after.cells[table * SIM_KEYS];
    struct stele_cursor *cursor;
    struct stele_entry entry;
    struct stele_error error;
    enum stele_status status = stele_cursor_open(view, sim_table_name(table),
                                                 NULL, 0, &cursor, &error);
    bool good = true;

    if (status != STELE_OK) {
        snprintf(text, bytes, "cursor: %s", error.message);
        return false;
    }
    for (unsigned key = 0; key < SIM_KEYS && good; key++) {
        if (row[key].batch == 0) {
            continue;
        }
        status = stele_cursor_next(cursor, &entry, &error);
        good = status == STELE_OK &&
               entry_matches(history, &row[key], key, &entry);
        if (!good) {
            snprintf(text, bytes,
                     "%s/%s should be as batch %" PRIu32 " put it, found %.*s, "
                     "LSN %" PRIu64 " (%s)",
                     sim_table_name(table), sim_key_name(key), row[key].batch,
                     status == STELE_OK ? (int)entry.key_bytes : 0,
                     status == STELE_OK ? (const char *)entry.key : "",
                     status == STELE_OK ? entry.value.lsn : 0,
                     status == STELE_OK ? "other bytes, or another key"
                                        : error.message);
        }
    }
    if (good) {
        status = stele_cursor_next(cursor, &entry, &error);
        good = status == STELE_NOT_FOUND;
        if (!good) {
            snprintf(text, bytes, "%s/%.*s should not be there",
                     sim_table_name(table),
                     status == STELE_OK ? (int)entry.key_bytes : 0,
                     status == STELE_OK ? (const char *)entry.key : "");
        }
    }
    stele_cursor_close(cursor);
    return good;
}

bool sim_history_matches(const struct sim_history *history, uint32_t number,
                         struct stele_view *view, char *text, size_t bytes)
{
    for (unsigned table = 0; table < SIM_TABLES; table++) {
        if (!table_matches(history, number, view, table, text, bytes)) {
            return false;
        }
    }
    return true;
}
