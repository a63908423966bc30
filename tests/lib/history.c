/* tests/lib/history.c -- see tests/lib/history.h. */
#include "tests/lib/history.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "tests/lib/run.h"

enum {
    SLOTS = 8,
    TRAIL_SLOTS = 128,
    TRAIL_CUT_EVERY = 32,
    TRAIL_CUT = 8,
    KEY_BYTES_MAX = 32,
    VALUE_BYTES_MAX = 8192,
    ENTRIES_MAX = TRAIL_SLOTS,
};

#define SHARED_TABLE "shared"
#define TRAIL_TABLE  "trail"

static uint64_t scramble(uint64_t number)
{
    struct random_source random = {.state = number};

    return random_u64(&random);
}

/* ---- The state after batch n -------------------------------------------------- */

/* Of the owner's keys in "shared" and "trail". */
static void owner_prefix(char prefix[KEY_BYTES_MAX], uint32_t owner)
{
    snprintf(prefix, KEY_BYTES_MAX, "%" PRIu32 "/", owner);
}

static void own_table_name(char name[KEY_BYTES_MAX], uint32_t owner)
{
    snprintf(name, KEY_BYTES_MAX, "own-%" PRIu32, owner);
}

static bool slot_present(uint32_t owner, uint64_t n, int table, int slot)
{
    const uint64_t bits = scramble(n * 64 + owner);

    return (bits >> (table * SLOTS + slot) & 1) != 0;
}

/* Mostly short, now and then more than fits into one page of the index. */
static size_t slot_value(char value[VALUE_BYTES_MAX], uint32_t owner,
                         uint64_t n, int table, int slot)
{
    const uint64_t bits = scramble(scramble(n * 64 + owner) +
                                   (uint64_t)(table * SLOTS + slot) + 1);
    const size_t pad =
        bits % 32 == 0 ? 2000 + (bits >> 8) % 4000 : (bits >> 8) % 120;
    const int head =
        snprintf(value, VALUE_BYTES_MAX, "n %" PRIu64 " of %" PRIu32 " %d/%d ",
                 n, owner, table, slot);

    memset(value + head, 'a' + (int)(bits >> 40) % 26, pad);
    return (size_t)head + pad;
}

/* The batch that last wrote this trail slot at n, or 0: none, or cut since. */
static uint64_t trail_content(uint64_t n, uint64_t slot)
{
    const uint64_t behind =
        (n % TRAIL_SLOTS + TRAIL_SLOTS - slot) % TRAIL_SLOTS;
    const uint64_t cut = n - n % TRAIL_CUT_EVERY;

    if (behind >= n) {
        return 0;
    }
    if (cut > 0 && n - behind + TRAIL_SLOTS - cut <= TRAIL_CUT) {
        return 0;
    }
    return n - behind;
}

struct entry {
    char key[KEY_BYTES_MAX];
    size_t value_bytes;
    char value[VALUE_BYTES_MAX];
    uint64_t n; /* The batch that put it. */
};

/* The next entry after the first *at positions of this part of the state. */
static bool next_shared(uint32_t owner, uint64_t n, int *at,
                        struct entry *entry)
{
    for (; *at <= SLOTS; ++*at) {
        const int slot = *at - 1;

        entry->n = n;
        if (slot < 0 && n > 0) {
            snprintf(entry->key, sizeof entry->key, "%" PRIu32 "/=", owner);
            entry->value_bytes = (size_t)snprintf(
                entry->value, sizeof entry->value, "%" PRIu64, n);
            ++*at;
            return true;
        }
        if (slot >= 0 && n > 0 && slot_present(owner, n, 0, slot)) {
            snprintf(entry->key, sizeof entry->key, "%" PRIu32 "/%c", owner,
                     'a' + slot);
            entry->value_bytes = slot_value(entry->value, owner, n, 0, slot);
            ++*at;
            return true;
        }
    }
    return false;
}

static bool next_own(uint32_t owner, uint64_t n, int *at, struct entry *entry)
{
    for (; *at < SLOTS; ++*at) {
        if (n > 0 && slot_present(owner, n, 1, *at)) {
            snprintf(entry->key, sizeof entry->key, "%c", 'a' + *at);
            entry->value_bytes = slot_value(entry->value, owner, n, 1, *at);
            entry->n = n;
            ++*at;
            return true;
        }
    }
    return false;
}

static void trail_key(char key[KEY_BYTES_MAX], uint32_t owner, uint64_t slot)
{
    snprintf(key, KEY_BYTES_MAX, "%" PRIu32 "/%03" PRIu64, owner, slot);
}

static bool next_trail(uint32_t owner, uint64_t n, int *at, struct entry *entry)
{
    for (; *at < TRAIL_SLOTS; ++*at) {
        const uint64_t written = trail_content(n, (uint64_t)*at);

        if (written > 0) {
            trail_key(entry->key, owner, (uint64_t)*at);
            entry->value_bytes = (size_t)snprintf(
                entry->value, sizeof entry->value, "%" PRIu64, written);
            entry->n = written;
            ++*at;
            return true;
        }
    }
    return false;
}

/* ---- Writing it ------------------------------------------------------------------ */

static void put(struct stele_batch *batch, const char *table, const char *key,
                const void *value, size_t value_bytes)
{
    struct stele_error error;

    run_expect_ok(stele_batch_put(batch, table, key, strlen(key), value,
                                  value_bytes, &error),
                  &error, "put");
}

static void delete_key(struct stele_batch *batch, const char *table,
                       const char *key)
{
    struct stele_error error;

    run_expect_ok(stele_batch_delete(batch, table, key, strlen(key), &error),
                  &error, "delete");
}

static void delete_range(struct stele_batch *batch, const char *table,
                         const char *first, const char *end)
{
    struct stele_error error;

    run_expect_ok(stele_batch_delete_range(batch, table, first, strlen(first),
                                           end, strlen(end), &error),
                  &error, "delete range");
}

enum way { WAY_POINTS, WAY_PREFIX, WAY_RANGE, WAY_PUT_FIRST, WAYS };

/* Take away what earlier batches may have left. */
static void clear_slots(struct stele_batch *batch, enum way way, uint32_t owner,
                        const char *own_table)
{
    char prefix[KEY_BYTES_MAX];
    char first[KEY_BYTES_MAX];
    char end[KEY_BYTES_MAX];
    struct stele_error error;

    if (way == WAY_PUT_FIRST) {
        /* What a later operation of the same batch deletes never was. */
        put(batch, own_table, "d", "gone", 4);
        put(batch, own_table, "zz", "gone", 4);
        snprintf(first, sizeof first, "%" PRIu32 "/e", owner);
        put(batch, SHARED_TABLE, first, "gone", 4);
    }
    switch (way) {
    case WAY_POINTS:
    case WAYS:
        for (int slot = 0; slot < SLOTS; slot++) {
            snprintf(first, sizeof first, "%" PRIu32 "/%c", owner, 'a' + slot);
            delete_key(batch, SHARED_TABLE, first);
            delete_key(batch, own_table, first + strlen(first) - 1);
        }
        break;
    case WAY_PREFIX:
        owner_prefix(prefix, owner);
        run_expect_ok(stele_batch_delete_prefix(batch, SHARED_TABLE, prefix,
                                                strlen(prefix), &error),
                      &error, "delete prefix");
        run_expect_ok(stele_batch_clear_table(batch, own_table, &error), &error,
                      "clear table");
        break;
    case WAY_PUT_FIRST:
    case WAY_RANGE:
        snprintf(first, sizeof first, "%" PRIu32 "/a", owner);
        snprintf(end, sizeof end, "%" PRIu32 "/i", owner);
        delete_range(batch, SHARED_TABLE, first, end);
        delete_range(batch, own_table, "a", "zzz");
        break;
    }
}

void history_fill(struct stele_batch *batch, uint32_t owner, uint64_t n)
{
    static _Thread_local struct entry entry;
    char own_table[KEY_BYTES_MAX];
    char first[KEY_BYTES_MAX];
    char end[KEY_BYTES_MAX];
    int at = 0;

    own_table_name(own_table, owner);
    stele_batch_clear(batch);
    clear_slots(batch, (enum way)(scramble(n) % WAYS), owner, own_table);
    while (next_shared(owner, n, &at, &entry)) {
        put(batch, SHARED_TABLE, entry.key, entry.value, entry.value_bytes);
    }
    at = 0;
    while (next_own(owner, n, &at, &entry)) {
        put(batch, own_table, entry.key, entry.value, entry.value_bytes);
    }
    if (n % TRAIL_CUT_EVERY == 0) {
        trail_key(first, owner, n % TRAIL_SLOTS + 1);
        trail_key(end, owner, n % TRAIL_SLOTS + TRAIL_CUT + 1);
        delete_range(batch, TRAIL_TABLE, first, end);
    }
    trail_key(first, owner, n % TRAIL_SLOTS);
    snprintf(end, sizeof end, "%" PRIu64, n);
    put(batch, TRAIL_TABLE, first, end, strlen(end));
}

/* ---- Checking it -------------------------------------------------------------------- */

/* One part of the state while it is compared. */
struct part {
    struct stele_view *view;
    uint32_t owner;
    const char *table;
    uint64_t n;
    uint64_t lsn;                  /* Of batch n. */
    uint64_t lsns[ENTRIES_MAX];    /* Of the entries, in their order. */
    uint64_t written[ENTRIES_MAX]; /* The batches that put them. */
    int count;
};

__attribute__((format(printf, 2, 3), noreturn)) static void differs(
    const struct part *part, const char *format, ...)
{
    char text[512];
    va_list args;

    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    run_fail("owner %" PRIu32 ", LSN %" PRIu64 ": the state should be that of "
             "batch %" PRIu64 ", but table %s: %s",
             part->owner, stele_view_lsn(part->view), part->n, part->table,
             text);
}

static void compare_value(const struct part *part, const struct entry *expected,
                          const struct stele_value *found)
{
    if (found->bytes != expected->value_bytes ||
        memcmp(found->data, expected->value, found->bytes) != 0) {
        differs(part,
                "%s has LSN %" PRIu64 " and %zu bytes \"%.40s\", not the %zu "
                "bytes \"%.40s\"",
                expected->key, found->lsn, found->bytes,
                found->bytes == 0 ? "" : (const char *)found->data,
                expected->value_bytes, expected->value);
    }
    if (expected->n == part->n && found->lsn != part->lsn) {
        differs(part, "%s has LSN %" PRIu64 ", the batch that put it %" PRIu64,
                expected->key, found->lsn, part->lsn);
    }
}

static void compare_entry(struct part *part, const struct entry *expected,
                          const struct stele_entry *found)
{
    struct stele_value value;
    struct stele_error error;

    if (found->key_bytes != strlen(expected->key) ||
        memcmp(found->key, expected->key, found->key_bytes) != 0) {
        differs(part, "found %.*s, not %s", (int)found->key_bytes,
                (const char *)found->key, expected->key);
    }
    compare_value(part, expected, &found->value);
    run_expect_ok(stele_view_get(part->view, part->table, expected->key,
                                 strlen(expected->key), &value, &error),
                  &error, expected->key);
    compare_value(part, expected, &value);
    part->lsns[part->count] = found->value.lsn;
    part->written[part->count] = expected->n;
    part->count++;
}

typedef bool next_entry(uint32_t owner, uint64_t n, int *at,
                        struct entry *entry);

/* The other way round, the entries must be the same. */
static void compare_backwards(struct part *part, struct stele_cursor *cursor)
{
    struct stele_entry found;
    struct stele_error error;
    enum stele_status status = stele_cursor_last(cursor, &found, &error);
    int left = part->count;

    for (; status == STELE_OK && left > 0; left--) {
        if (found.value.lsn != part->lsns[left - 1]) {
            differs(part,
                    "backwards, entry %d is %.*s with LSN %" PRIu64
                    ", not %" PRIu64,
                    left - 1, (int)found.key_bytes, (const char *)found.key,
                    found.value.lsn, part->lsns[left - 1]);
        }
        status = stele_cursor_prev(cursor, &found, &error);
    }
    if (status != STELE_NOT_FOUND || left > 0) {
        differs(part,
                "backwards, %d of %d entries are left and the status is "
                "%d",
                left, part->count, (int)status);
    }
}

static void compare(struct part *part, const char *table, const char *prefix,
                    next_entry *next)
{
    static _Thread_local struct entry expected;
    struct stele_cursor *cursor;
    struct stele_entry found;
    struct stele_error error;
    enum stele_status status;
    int at = 0;

    part->table = table;
    part->count = 0;
    run_expect_ok(stele_cursor_open(part->view, table, prefix, strlen(prefix),
                                    &cursor, &error),
                  &error, "open cursor");
    status = stele_cursor_first(cursor, &found, &error);
    while (next(part->owner, part->n, &at, &expected)) {
        if (status != STELE_OK) {
            differs(part, "%s is missing (status %d: %s)", expected.key,
                    (int)status, error.message);
        }
        compare_entry(part, &expected, &found);
        status = stele_cursor_next(cursor, &found, &error);
    }
    if (status == STELE_OK) {
        differs(part, "%.*s with LSN %" PRIu64 " should not be there",
                (int)found.key_bytes, (const char *)found.key, found.value.lsn);
    }
    if (status != STELE_NOT_FOUND) {
        run_expect_ok(status, &error, "read cursor");
    }
    compare_backwards(part, cursor);
    stele_cursor_close(cursor);
}

/* A later batch has a higher LSN. */
static void compare_trail_order(const struct part *part)
{
    for (int left = 0; left < part->count; left++) {
        for (int right = 0; right < part->count; right++) {
            if (part->written[left] < part->written[right] &&
                part->lsns[left] >= part->lsns[right]) {
                differs(part,
                        "batch %" PRIu64 " has LSN %" PRIu64
                        ", the later batch %" PRIu64 " LSN %" PRIu64,
                        part->written[left], part->lsns[left],
                        part->written[right], part->lsns[right]);
            }
        }
    }
}

static void read_marker(struct part *part)
{
    char key[KEY_BYTES_MAX];
    char text[KEY_BYTES_MAX] = "";
    size_t bytes;
    struct stele_error error;
    enum stele_status status;

    snprintf(key, sizeof key, "%" PRIu32 "/=", part->owner);
    status = stele_view_copy(part->view, SHARED_TABLE, key, strlen(key), text,
                             sizeof text - 1, &bytes, &part->lsn, &error);
    if (status == STELE_NOT_FOUND) {
        return;
    }
    run_expect_ok(status, &error, key);
    if (sscanf(text, "%" SCNu64, &part->n) != 1 || part->n == 0) {
        run_fail("%s holds \"%s\", which is no batch", key, text);
    }
}

struct history_seen history_check(struct stele_view *view, uint32_t owner)
{
    struct part part = {.view = view, .owner = owner};
    char own_table[KEY_BYTES_MAX];
    char prefix[KEY_BYTES_MAX];

    read_marker(&part);
    if (part.lsn > stele_view_lsn(view)) {
        run_fail("owner %" PRIu32 ": batch %" PRIu64 " has LSN %" PRIu64
                 ", above the view's %" PRIu64,
                 owner, part.n, part.lsn, stele_view_lsn(view));
    }
    own_table_name(own_table, owner);
    owner_prefix(prefix, owner);
    compare(&part, SHARED_TABLE, prefix, next_shared);
    compare(&part, own_table, "", next_own);
    compare(&part, TRAIL_TABLE, prefix, next_trail);
    compare_trail_order(&part);
    return (struct history_seen){.n = part.n, .lsn = part.lsn};
}
