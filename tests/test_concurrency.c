/*
 * tests/test_concurrency.c -- everything at once, on one store.
 *
 * Eight committers, four readers, a thread that checkpoints, syncs and reads the
 * statistics, the keepers, and a second process that reads. What the committers
 * do keeps four invariants, which hold in every view whatever LSN it is of:
 *
 *     even      the keys "<committer>/0" .. "/7" have one and the same value:
 *               the number of the committer's last batch, or all are absent;
 *     bank      the balances of the accounts sum up to the same total: batches
 *               move money, each under the condition that both accounts are as
 *               the mover has read them;
 *     queue     the keys of "<committer>/" are the numbers from the first to the
 *               last that table "queue-ends" names, without a gap: batches append
 *               at the end and delete ranges at the front;
 *     replaced  the table holds the eight keys of one batch: each clears it.
 *
 * STELE_TEST_SECONDS: how long each set of options is kept busy.
 */
#include <inttypes.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/park.h"
#include "engine/index.h"
#include "tests/lib/child.h"
#include "tests/lib/profile.h"
#include "tests/lib/run.h"
#include "tests/lib/temp_dir.h"

enum {
    COMMITTERS = 8,
    READERS = 4,
    SECONDS_DEFAULT = 2,
    EVEN_KEYS = 8,
    ACCOUNTS = 6, /* Fewer than committers: they get into each other's way. */
    BALANCE = 1000,
    REPLACED_KEYS = 8,
    QUEUE_LENGTH = 24,
    VIEWS_HELD = 3,
    KEY_BYTES = 32,
    PAD_BYTES = 200,
    READER_STREAMS = 100, /* Their random numbers are numbered from here on. */
    BURST = 4,            /* Asynchronous commits under way at once. */
};

/* ---- Dawdling -------------------------------------------------------------------
 *
 * A view is made of a state and an index reader, taken one after the other; what
 * happens in between is what goes wrong. So this program is linked with
 * --wrap=index_reader_acquire, and now and then a reader takes a while before and
 * after: long enough for a checkpoint to end.
 */

enum { DAWDLE_EVERY = 8, DAWDLE_US_MAX = 3000 };

static _Thread_local struct random_source *dawdle_random; /* NULL: never. */

enum stele_status __real_index_reader_acquire(struct index *index,
                                              struct index_reader **reader_out,
                                              struct stele_error *error);
enum stele_status __wrap_index_reader_acquire(struct index *index,
                                              struct index_reader **reader_out,
                                              struct stele_error *error);

static void dawdle(void)
{
    if (dawdle_random != NULL && random_one_in(dawdle_random, DAWDLE_EVERY)) {
        usleep((useconds_t)random_below(dawdle_random, DAWDLE_US_MAX));
    }
}

enum stele_status __wrap_index_reader_acquire(struct index *index,
                                              struct index_reader **reader_out,
                                              struct stele_error *error)
{
    enum stele_status status;

    dawdle();
    status = __real_index_reader_acquire(index, reader_out, error);
    dawdle();
    return status;
}

/* ---- One committer ------------------------------------------------------------ */

struct stress {
    struct stele *store;
    _Atomic bool stop;
    _Atomic uint64_t commits;
    _Atomic uint64_t conflicts;
    _Atomic uint64_t busy;
    _Atomic uint64_t readers;
    _Atomic uint64_t views;
};

struct committer {
    struct stress *stress;
    uint32_t number;
    struct random_source random;
    struct stele_batch *batches[BURST]; /* All but a burst use the first. */
    uint64_t lsn;                       /* Of the last commit. */
    /* What the last commit that was not refused left. */
    uint64_t even;
    uint64_t queue_first;
    uint64_t queue_end; /* Behind the last. */
};

static void put_text(struct stele_batch *batch, const char *table,
                     const char *key, const char *value)
{
    struct stele_error error;

    run_expect_ok(stele_batch_put(batch, table, key, strlen(key), value,
                                  strlen(value), &error),
                  &error, "put");
}

static void put_number(struct stele_batch *batch, const char *table,
                       const char *key, uint64_t number)
{
    char value[KEY_BYTES];

    snprintf(value, sizeof value, "%" PRIu64, number);
    put_text(batch, table, key, value);
}

static void queue_key(char key[KEY_BYTES], uint32_t committer, uint64_t number)
{
    snprintf(key, KEY_BYTES, "%" PRIu32 "/%010" PRIu64, committer, number);
}

static _Atomic uint32_t promises_gate; /* Where all wait for theirs. */

/* What an asynchronous commit will tell. */
struct promise {
    _Atomic uint32_t kept;
    enum stele_status status;
    struct stele_error error;
    struct stele_commit_result result;
};

static void keep(void *context, enum stele_status status,
                 const struct stele_error *error)
{
    struct promise *promise = context;

    promise->status = status;
    if (status != STELE_OK) {
        promise->error = *error;
    }
    atomic_store(&promise->kept, 1);
    park_open(&promises_gate, 1);
}

static enum stele_durability choose_durability(struct committer *committer)
{
    return random_one_in(&committer->random, 2) ? STELE_RELAXED : STELE_DURABLE;
}

static void begin_commit(struct committer *committer, struct stele_batch *batch,
                         struct promise *promise)
{
    struct stele_error error;

    *promise = (struct promise){0};
    run_expect_ok(stele_commit_async(committer->stress->store, batch,
                                     choose_durability(committer),
                                     &promise->result, keep, promise, &error),
                  &error, "commit asynchronously");
}

static enum stele_status end_commit(struct promise *promise,
                                    struct stele_error *error)
{
    park_while(&promise->kept, 0, &promises_gate, 1);
    *error = promise->error;
    return promise->status;
}

/* False: refused, and nothing happened. */
static bool note_outcome(struct committer *committer, enum stele_status status,
                         uint64_t lsn, const struct stele_error *error)
{
    struct stress *stress = committer->stress;

    if (status == STELE_PRECONDITION) {
        atomic_fetch_add(&stress->conflicts, 1);
        return false;
    }
    if (status == STELE_BUSY) {
        atomic_fetch_add(&stress->busy, 1);
        return false;
    }
    run_expect_ok(status, error, "commit");
    if (lsn <= committer->lsn) {
        run_fail("committer %" PRIu32 " was given LSN %" PRIu64
                 " after %" PRIu64,
                 committer->number, lsn, committer->lsn);
    }
    committer->lsn = lsn;
    atomic_fetch_add(&stress->commits, 1);
    return true;
}

/* Commit the first batch, in one of the ways there are. */
static bool commit(struct committer *committer)
{
    struct stele_commit_result result = {0};
    struct stele_error error;
    enum stele_status status;

    if (random_one_in(&committer->random, 4)) {
        struct promise promise;

        begin_commit(committer, committer->batches[0], &promise);
        status = end_commit(&promise, &error);
        result = promise.result;
    } else {
        status = stele_commit(committer->stress->store, committer->batches[0],
                              choose_durability(committer), &result, &error);
    }
    return note_outcome(committer, status, result.lsn, &error);
}

/* ---- What it commits --------------------------------------------------------------- */

static void fill_even(struct committer *committer, struct stele_batch *batch,
                      uint64_t number)
{
    const bool absent = random_one_in(&committer->random, 8);
    struct stele_error error;
    char value[PAD_BYTES];
    char key[KEY_BYTES];

    /* The number, and something to fill the memtable with. */
    snprintf(value, sizeof value, "%" PRIu64 " %0*d", number,
             (int)random_below(&committer->random, PAD_BYTES - 40) + 1, 0);
    stele_batch_clear(batch);
    snprintf(key, sizeof key, "%" PRIu32 "/", committer->number);
    run_expect_ok(
        stele_batch_delete_prefix(batch, "even", key, strlen(key), &error),
        &error, "delete prefix");
    for (int index = 0; index < EVEN_KEYS && !absent; index++) {
        snprintf(key, sizeof key, "%" PRIu32 "/%d", committer->number, index);
        put_text(batch, "even", key, value);
    }
}

static void commit_even(struct committer *committer)
{
    fill_even(committer, committer->batches[0], committer->even + 1);
    if (commit(committer)) {
        committer->even++;
    }
}

/* Several at once: they are committed in this order. */
static void commit_even_burst(struct committer *committer)
{
    const uint64_t before = committer->even;
    struct promise promises[BURST];

    for (uint64_t index = 0; index < BURST; index++) {
        fill_even(committer, committer->batches[index], before + 1 + index);
        begin_commit(committer, committer->batches[index], &promises[index]);
    }
    for (uint64_t index = 0; index < BURST; index++) {
        struct stele_error error;
        const enum stele_status status = end_commit(&promises[index], &error);

        if (note_outcome(committer, status, promises[index].result.lsn,
                         &error)) {
            committer->even = before + 1 + index;
        }
    }
}

static void commit_queue(struct committer *committer)
{
    const uint64_t count = random_below(&committer->random, 6) + 1;
    const uint64_t end = committer->queue_end + count;
    uint64_t first = committer->queue_first;
    struct stele_error error;
    char value[2 * KEY_BYTES];
    char from[KEY_BYTES];
    char to[KEY_BYTES];

    stele_batch_clear(committer->batches[0]);
    for (uint64_t number = committer->queue_end; number < end; number++) {
        queue_key(from, committer->number, number);
        put_number(committer->batches[0], "queue", from, number);
    }
    if (end - first > QUEUE_LENGTH) {
        /* Now and then all of it, what this batch has put included. */
        first = random_one_in(&committer->random, 16)
                    ? end
                    : end - random_below(&committer->random, QUEUE_LENGTH) - 1;
        queue_key(from, committer->number, committer->queue_first);
        queue_key(to, committer->number, first);
        run_expect_ok(stele_batch_delete_range(committer->batches[0], "queue",
                                               from, strlen(from), to,
                                               strlen(to), &error),
                      &error, "delete range");
    }
    snprintf(from, sizeof from, "%" PRIu32, committer->number);
    snprintf(value, sizeof value, "%" PRIu64 " %" PRIu64, first, end);
    put_text(committer->batches[0], "queue-ends", from, value);
    if (commit(committer)) {
        committer->queue_first = first;
        committer->queue_end = end;
    }
}

static void commit_replacement(struct committer *committer)
{
    const uint64_t value = random_u64(&committer->random);
    struct stele_error error;
    char key[KEY_BYTES];

    stele_batch_clear(committer->batches[0]);
    run_expect_ok(
        stele_batch_clear_table(committer->batches[0], "replaced", &error),
        &error, "clear table");
    for (int index = 0; index < REPLACED_KEYS; index++) {
        /* Other keys than another committer's. */
        snprintf(key, sizeof key, "%" PRIu32 "/%d", committer->number, index);
        put_number(committer->batches[0], "replaced", key, value);
    }
    (void)commit(committer);
}

static void account_key(char key[KEY_BYTES], uint64_t account)
{
    snprintf(key, KEY_BYTES, "account %" PRIu64, account);
}

static uint64_t number_of(const struct stele_value *value)
{
    char text[KEY_BYTES] = "";

    memcpy(text, value->data,
           value->bytes < sizeof text - 1 ? value->bytes : sizeof text - 1);
    return strtoull(text, NULL, 10);
}

/* Add to the batch what makes `change` out of an account as the view has it. */
static void change_account(struct committer *committer, struct stele_view *view,
                           uint64_t account, int64_t change)
{
    struct stele_value value;
    struct stele_error error;
    char key[KEY_BYTES];

    account_key(key, account);
    run_expect_ok(
        stele_view_get(view, "bank", key, strlen(key), &value, &error), &error,
        key);
    run_expect_ok(stele_batch_expect_lsn(committer->batches[0], "bank", key,
                                         strlen(key), value.lsn, &error),
                  &error, "expect LSN");
    put_number(committer->batches[0], "bank", key,
               number_of(&value) + (uint64_t)change);
}

static void commit_transfer(struct committer *committer)
{
    const uint64_t from = random_below(&committer->random, ACCOUNTS);
    const uint64_t to =
        (from + 1 + random_below(&committer->random, ACCOUNTS - 1)) % ACCOUNTS;
    const int64_t amount = (int64_t)random_below(&committer->random, 10);
    struct stele_view *view;
    struct stele_error error;

    stele_batch_clear(committer->batches[0]);
    run_expect_ok(stele_view_open(committer->stress->store, &view, &error),
                  &error, "open view");
    /* Balances wrap around; so does their sum. */
    change_account(committer, view, from, -amount);
    change_account(committer, view, to, amount);
    stele_view_close(view);
    (void)commit(committer);
}

static void *commit_without_pause(void *context)
{
    struct committer *committer = context;

    while (!atomic_load(&committer->stress->stop)) {
        switch (random_below(&committer->random, 8)) {
        case 0:
            commit_replacement(committer);
            break;
        case 1:
        case 2:
            commit_transfer(committer);
            break;
        case 3:
            commit_even(committer);
            break;
        case 4:
            commit_even_burst(committer);
            break;
        default:
            commit_queue(committer);
            break;
        }
    }
    return NULL;
}

static void open_accounts(struct stele *store)
{
    struct stele_batch *batch;
    struct stele_error error;
    char key[KEY_BYTES];

    run_expect_ok(stele_batch_create(&batch, &error), &error, "create batch");
    for (uint64_t account = 0; account < ACCOUNTS; account++) {
        account_key(key, account);
        put_number(batch, "bank", key, BALANCE);
    }
    run_expect_ok(stele_commit(store, batch, STELE_DURABLE, NULL, &error),
                  &error, "open accounts");
    stele_batch_destroy(batch);
}

/* ---- The invariants ---------------------------------------------------------------- */

/* What a table, or the part of it below a prefix, holds. */
struct content {
    uint64_t count;
    uint64_t sum;  /* Of the values, as numbers. */
    uint64_t hash; /* Of everything, LSNs included, in key order. */
    uint64_t value_min;
    uint64_t value_max;
    uint64_t lsn_max;
};

static uint64_t hash_bytes(uint64_t hash, const void *data, size_t bytes)
{
    const unsigned char *byte = data;

    for (size_t index = 0; index < bytes; index++) {
        hash = (hash ^ byte[index]) * UINT64_C(0x100000001b3);
    }
    return hash;
}

static uint64_t hash_entry(const struct stele_entry *entry)
{
    uint64_t hash = UINT64_C(0xcbf29ce484222325);

    hash = hash_bytes(hash, entry->key, entry->key_bytes);
    hash = hash_bytes(hash, entry->value.data, entry->value.bytes);
    return hash_bytes(hash, &entry->value.lsn, sizeof entry->value.lsn);
}

enum { HASH_STEP = 31 };

static void add_entry(struct content *content, const struct stele_entry *entry)
{
    const uint64_t number = number_of(&entry->value);

    content->count++;
    content->sum += number;
    content->hash = content->hash * HASH_STEP + hash_entry(entry);
    content->value_min =
        number < content->value_min ? number : content->value_min;
    content->value_max =
        number > content->value_max ? number : content->value_max;
    content->lsn_max = entry->value.lsn > content->lsn_max ? entry->value.lsn
                                                           : content->lsn_max;
}

/* The hash, from the last entry to the first. */
static uint64_t hash_backwards(struct stele_cursor *cursor)
{
    struct stele_entry entry;
    struct stele_error error;
    enum stele_status status = stele_cursor_last(cursor, &entry, &error);
    uint64_t power = 1;
    uint64_t hash = 0;

    for (; status == STELE_OK;
         status = stele_cursor_prev(cursor, &entry, &error)) {
        hash += hash_entry(&entry) * power;
        power *= HASH_STEP;
    }
    if (status != STELE_NOT_FOUND) {
        run_expect_ok(status, &error, "read backwards");
    }
    return hash;
}

static struct content read_table(struct stele_view *view, const char *table,
                                 const char *prefix)
{
    struct content content = {.value_min = UINT64_MAX};
    struct stele_cursor *cursor;
    struct stele_entry entry;
    struct stele_error error;
    enum stele_status status;
    uint64_t backwards;

    run_expect_ok(
        stele_cursor_open(view, table, prefix, strlen(prefix), &cursor, &error),
        &error, "open cursor");
    for (status = stele_cursor_first(cursor, &entry, &error);
         status == STELE_OK;
         status = stele_cursor_next(cursor, &entry, &error)) {
        add_entry(&content, &entry);
    }
    if (status != STELE_NOT_FOUND) {
        run_expect_ok(status, &error, "read forwards");
    }
    backwards = hash_backwards(cursor);
    stele_cursor_close(cursor);
    if (backwards != content.hash) {
        run_fail("LSN %" PRIu64 ", table %s, prefix \"%s\": the %" PRIu64
                 " entries read forwards have hash %" PRIx64
                 ", backwards %" PRIx64,
                 stele_view_lsn(view), table, prefix, content.count,
                 content.hash, backwards);
    }
    if (content.lsn_max > stele_view_lsn(view)) {
        run_fail("LSN %" PRIu64 ", table %s: an entry has LSN %" PRIu64,
                 stele_view_lsn(view), table, content.lsn_max);
    }
    return content;
}

static void check_even(struct stele_view *view, uint32_t committer)
{
    char prefix[KEY_BYTES];
    struct content content;

    snprintf(prefix, sizeof prefix, "%" PRIu32 "/", committer);
    content = read_table(view, "even", prefix);
    if (content.count != 0 && (content.count != EVEN_KEYS ||
                               content.value_min != content.value_max)) {
        run_fail("LSN %" PRIu64 ", even, committer %" PRIu32 ": %" PRIu64
                 " of %d keys, of batches %" PRIu64 " to %" PRIu64,
                 stele_view_lsn(view), committer, content.count, EVEN_KEYS,
                 content.value_min, content.value_max);
    }
}

static void check_bank(struct stele_view *view)
{
    const struct content content = read_table(view, "bank", "");

    if (content.count != ACCOUNTS || content.sum != ACCOUNTS * BALANCE) {
        run_fail("LSN %" PRIu64 ", bank: %" PRIu64 " accounts hold %" PRIu64
                 ", not %d and %d",
                 stele_view_lsn(view), content.count, content.sum, ACCOUNTS,
                 ACCOUNTS * BALANCE);
    }
}

static void check_queue(struct stele_view *view, uint32_t committer)
{
    char prefix[KEY_BYTES];
    char text[2 * KEY_BYTES] = "";
    struct content content;
    struct stele_error error;
    enum stele_status status;
    uint64_t first = 0;
    uint64_t end = 0;
    size_t bytes;

    snprintf(prefix, sizeof prefix, "%" PRIu32 "/", committer);
    content = read_table(view, "queue", prefix);
    status = stele_view_copy(view, "queue-ends", prefix, strlen(prefix) - 1,
                             text, sizeof text - 1, &bytes, NULL, &error);
    if (status != STELE_NOT_FOUND) {
        run_expect_ok(status, &error, "read the queue's ends");
        if (sscanf(text, "%" SCNu64 " %" SCNu64, &first, &end) != 2) {
            run_fail("queue-ends hold \"%s\"", text);
        }
    }
    if (content.count != end - first ||
        (content.count > 0 &&
         (content.value_min != first || content.value_max != end - 1))) {
        run_fail("LSN %" PRIu64 ", queue, committer %" PRIu32 ": %" PRIu64
                 " entries, %" PRIu64 " to %" PRIu64 ", not from %" PRIu64
                 " to before %" PRIu64,
                 stele_view_lsn(view), committer, content.count,
                 content.value_min, content.value_max, first, end);
    }
}

static void check_replaced(struct stele_view *view)
{
    const struct content content = read_table(view, "replaced", "");

    if (content.count != 0 && (content.count != REPLACED_KEYS ||
                               content.value_min != content.value_max)) {
        run_fail("LSN %" PRIu64 ", replaced: %" PRIu64
                 " of %d keys, with %" PRIu64 " to %" PRIu64,
                 stele_view_lsn(view), content.count, REPLACED_KEYS,
                 content.value_min, content.value_max);
    }
}

static void check_counts(struct stele_view *view, const char *table,
                         uint64_t counted)
{
    struct stele_error error;
    uint64_t count;
    uint64_t lsn;

    run_expect_ok(stele_table_count(view, table, &count, &error), &error,
                  "count");
    run_expect_ok(stele_table_lsn(view, table, &lsn, &error), &error,
                  "table LSN");
    if (count != counted || lsn > stele_view_lsn(view)) {
        run_fail("LSN %" PRIu64 ", table %s: its count is %" PRIu64
                 " and its LSN %" PRIu64 ", but %" PRIu64 " keys are there",
                 stele_view_lsn(view), table, count, lsn, counted);
    }
}

/* Everything in the view, as one number. */
static uint64_t fingerprint(struct stele_view *view)
{
    static const char *const tables[] = {"even", "bank", "queue", "queue-ends",
                                         "replaced"};
    uint64_t hash = 0;

    for (size_t index = 0; index < sizeof tables / sizeof tables[0]; index++) {
        const struct content content = read_table(view, tables[index], "");

        check_counts(view, tables[index], content.count);
        hash = hash * HASH_STEP + content.hash;
    }
    return hash;
}

static void check_invariants(struct stele_view *view)
{
    for (uint32_t committer = 0; committer < COMMITTERS; committer++) {
        check_even(view, committer);
        check_queue(view, committer);
    }
    check_bank(view);
    check_replaced(view);
}

/* ---- Readers -------------------------------------------------------------------------- */

/* A few views, each held while newer ones come. */
struct held_views {
    struct {
        struct stele_view *view;
        uint64_t fingerprint;
    } views[VIEWS_HELD];
    size_t next;
    uint64_t lsn; /* Of the newest. */
};

/* The oldest view must show what it showed at first. */
static void let_go(struct held_views *held, size_t index)
{
    struct stele_view *view = held->views[index].view;
    uint64_t now;

    if (view == NULL) {
        return;
    }
    now = fingerprint(view);
    if (now != held->views[index].fingerprint) {
        run_fail("LSN %" PRIu64 ": the view has changed while it was held: "
                 "fingerprint %" PRIx64 ", was %" PRIx64,
                 stele_view_lsn(view), now, held->views[index].fingerprint);
    }
    stele_view_close(view);
    held->views[index].view = NULL;
}

static void hold_a_view(struct held_views *held, struct stele *store)
{
    const size_t index = held->next++ % VIEWS_HELD;
    struct stele_view *view;
    struct stele_error error;

    let_go(held, index);
    run_expect_ok(stele_view_open(store, &view, &error), &error, "open view");
    if (stele_view_lsn(view) < held->lsn) {
        run_fail("a view has LSN %" PRIu64 ", an earlier one %" PRIu64,
                 stele_view_lsn(view), held->lsn);
    }
    held->lsn = stele_view_lsn(view);
    check_invariants(view);
    held->views[index].view = view;
    held->views[index].fingerprint = fingerprint(view);
}

static void let_all_go(struct held_views *held)
{
    for (size_t index = 0; index < VIEWS_HELD; index++) {
        let_go(held, index);
    }
}

static void *read_without_pause(void *context)
{
    struct stress *stress = context;
    struct random_source random =
        run_random(READER_STREAMS + atomic_fetch_add(&stress->readers, 1));
    struct held_views held = {0};

    dawdle_random = &random;
    while (!atomic_load(&stress->stop)) {
        hold_a_view(&held, stress->store);
        atomic_fetch_add(&stress->views, 1);
    }
    let_all_go(&held);
    return NULL;
}

/* The second process: opens the store anew now and then, until dismissed. */
static int reader_main(const char *path, const char *profile_name)
{
    enum { VIEWS_PER_HANDLE = 8 };
    const struct profile profile = profile_named(profile_name);
    struct random_source random = run_random(COMMITTERS + 1);
    struct held_views held = {0};
    struct stele_error error;
    uint64_t views = 0;

    dawdle_random = &random;
    while (!parent_has_spoken()) {
        struct stele *store =
            profile_open_ok(&profile, path, STELE_OPEN_READ_ONLY);

        for (int index = 0; index < VIEWS_PER_HANDLE; index++, views++) {
            hold_a_view(&held, store);
        }
        let_all_go(&held);
        run_expect_ok(stele_close(store, &error), &error, "close");
    }
    parent_send(&(struct message){.n = views, .lsn = held.lsn});
    return EXIT_SUCCESS;
}

/* ---- Housekeeping -------------------------------------------------------------------- */

static void expect_order(const char *left_name, uint64_t left,
                         const char *right_name, uint64_t right)
{
    if (left > right) {
        run_fail("%s is %" PRIu64 ", above %s, %" PRIu64, left_name, left,
                 right_name, right);
    }
}

/* Do one of the things that an owner does to an open store. */
static void keep_house_once(struct stele *store, struct random_source *random)
{
    const struct stele_stats before = profile_stats(store);
    struct stele_stats after;
    struct stele_error error;

    switch (random_below(random, 8)) {
    case 0:
        run_expect_ok(stele_checkpoint(store, &error), &error, "checkpoint");
        after = profile_stats(store);
        expect_order("visible before the checkpoint", before.lsn_visible,
                     "applied", after.lsn_applied);
        break;
    case 1:
    case 2:
        run_expect_ok(stele_sync(store, &error), &error, "sync");
        after = profile_stats(store);
        expect_order("visible before the sync", before.lsn_visible, "durable",
                     after.lsn_durable);
        break;
    default:
        after = profile_stats(store);
        break;
    }
    expect_order("visible", before.lsn_visible, "visible later",
                 after.lsn_visible);
    expect_order("durable", before.lsn_durable, "durable later",
                 after.lsn_durable);
    expect_order("applied", before.lsn_applied, "applied later",
                 after.lsn_applied);
    expect_order("applying", before.lsn_applying, "applying later",
                 after.lsn_applying);
    expect_order("applying", before.lsn_applying, "durable later",
                 after.lsn_durable);
    if (after.poisoned || after.checkpoint_failures > 0) {
        run_fail("poisoned: %d, failed checkpoints: %" PRIu64 ": %s",
                 (int)after.poisoned, after.checkpoint_failures,
                 after.last_checkpoint_error.message);
    }
}

/* ---- Everything at once ------------------------------------------------------------------- */

static void start_thread(pthread_t *thread, void *(*main)(void *),
                         void *context)
{
    if (pthread_create(thread, NULL, main, context) != 0) {
        run_fail("create a thread");
    }
}

static void start_committers(struct stress *stress,
                             struct committer committers[COMMITTERS],
                             pthread_t threads[COMMITTERS])
{
    struct stele_error error;

    for (uint32_t number = 0; number < COMMITTERS; number++) {
        struct committer *committer = &committers[number];

        *committer = (struct committer){
            .stress = stress, .number = number, .random = run_random(number)};
        for (int index = 0; index < BURST; index++) {
            run_expect_ok(
                stele_batch_create(&committer->batches[index], &error), &error,
                "create batch");
        }
        start_thread(&threads[number], commit_without_pause, committer);
    }
}

static void join_committers(struct committer committers[COMMITTERS],
                            pthread_t threads[COMMITTERS])
{
    for (uint32_t number = 0; number < COMMITTERS; number++) {
        pthread_join(threads[number], NULL);
        for (int index = 0; index < BURST; index++) {
            stele_batch_destroy(committers[number].batches[index]);
        }
    }
}

/* What the committers were told is what is there. */
static void check_outcomes(struct stele_view *view,
                           const struct committer committers[COMMITTERS])
{
    for (uint32_t number = 0; number < COMMITTERS; number++) {
        const struct committer *committer = &committers[number];
        char expected[2 * KEY_BYTES];
        char found[2 * KEY_BYTES] = "";
        char key[KEY_BYTES];
        struct content even;
        struct stele_error error;
        size_t bytes;

        snprintf(key, sizeof key, "%" PRIu32 "/", number);
        even = read_table(view, "even", key);
        if (even.count > 0 && even.value_min != committer->even) {
            run_fail("even, committer %" PRIu32 ": batch %" PRIu64
                     ", the last that was not refused is %" PRIu64,
                     number, even.value_min, committer->even);
        }
        if (committer->queue_end == 0) {
            continue;
        }
        run_expect_ok(stele_view_copy(view, "queue-ends", key, strlen(key) - 1,
                                      found, sizeof found - 1, &bytes, NULL,
                                      &error),
                      &error, "read the queue's ends");
        snprintf(expected, sizeof expected, "%" PRIu64 " %" PRIu64,
                 committer->queue_first, committer->queue_end);
        if (strcmp(expected, found) != 0) {
            run_fail("queue, committer %" PRIu32 ": \"%s\", not \"%s\"", number,
                     found, expected);
        }
    }
}

static void check_everything(struct stele *store,
                             const struct committer committers[COMMITTERS])
{
    struct stele_view *view;
    struct stele_error error;

    run_expect_ok(stele_view_open(store, &view, &error), &error, "open view");
    check_invariants(view);
    (void)fingerprint(view);
    check_outcomes(view, committers);
    stele_view_close(view);
    profile_verify_ok(store);
}

static void close_is_refused_with_a_live_view(struct stele *store)
{
    struct stele_view *view;
    struct stele_error error = {0};
    enum stele_status status;

    run_expect_ok(stele_view_open(store, &view, &error), &error, "open view");
    status = stele_close(store, &error);
    if (status != STELE_BUSY) {
        run_fail("close with a live view: status %d: %s", (int)status,
                 error.message);
    }
    check_invariants(view); /* Nothing was closed. */
    stele_view_close(view);
    /* Room first: the store may be one that does not wait for it. */
    run_expect_ok(stele_checkpoint(store, &error), &error,
                  "checkpoint after the refused close");
    run_expect_ok(stele_put(store, "after", "k", 1, "v", 1, NULL, &error),
                  &error, "put after the refused close");
}

/* Close, and look again: through the index alone. */
static void check_after_reopening(const struct profile *profile,
                                  const char *path, struct stele *store,
                                  const struct committer committers[COMMITTERS])
{
    struct stele_error error;

    close_is_refused_with_a_live_view(store);
    run_expect_ok(stele_close(store, &error), &error, "close");
    store = profile_open_ok(profile, path, STELE_OPEN_READ_ONLY);
    check_everything(store, committers);
    run_expect_ok(stele_close(store, &error), &error, "close again");
}

static void keep_everything_busy(const char *profile_name)
{
    const uint64_t seconds = run_setting("STELE_TEST_SECONDS", SECONDS_DEFAULT);
    const struct profile profile = profile_named(profile_name);
    struct random_source random = run_random(COMMITTERS);
    struct committer committers[COMMITTERS];
    pthread_t committer_threads[COMMITTERS];
    pthread_t reader_threads[READERS];
    char *path = temp_dir_make();
    struct stress stress = {
        .store = profile_open_ok(&profile, path, STELE_OPEN_CREATE)};
    struct message read_elsewhere;
    struct stele_stats stats;
    struct child reader;
    uint64_t end_us;

    open_accounts(stress.store);
    reader =
        child_start((const char *const[]){"reader", path, profile.name, NULL});
    start_committers(&stress, committers, committer_threads);
    for (int index = 0; index < READERS; index++) {
        start_thread(&reader_threads[index], read_without_pause, &stress);
    }
    end_us = clock_us() + seconds * 1000000u;
    while (clock_us() < end_us) {
        keep_house_once(stress.store, &random);
    }
    child_dismiss(&reader);
    if (!child_receive(&reader, &read_elsewhere)) {
        run_fail("the reader ended by itself");
    }
    child_join(&reader);
    child_forget(&reader);
    atomic_store(&stress.stop, true);
    join_committers(committers, committer_threads);
    for (int index = 0; index < READERS; index++) {
        pthread_join(reader_threads[index], NULL);
    }
    stats = profile_stats(stress.store);
    check_everything(stress.store, committers);
    check_after_reopening(&profile, path, stress.store, committers);
    printf("%s: %" PRIu64 " commits, %" PRIu64 " conflicts, %" PRIu64
           " busy; %" PRIu64 " views here, %" PRIu64
           " in the other process; %" PRIu64 " units, %" PRIu64
           " rotations, %" PRIu64 " checkpoints in %" PRIu64
           " transactions, %" PRIu64 " range splits\n",
           profile_name, atomic_load(&stress.commits),
           atomic_load(&stress.conflicts), atomic_load(&stress.busy),
           atomic_load(&stress.views), read_elsewhere.n, stats.units_written,
           stats.rotations, stats.checkpoints, stats.checkpoint_transactions,
           stats.range_splits);
    assert_true(atomic_load(&stress.conflicts) > 0);
    assert_true(read_elsewhere.n > 0);
    assert_true(stats.checkpoints > 0);
    temp_dir_remove(path);
}

static void every_view_is_consistent_while_everything_goes_on(void **state)
{
    (void)state;
    keep_everything_busy("default");
}

static void also_with_checkpoints_and_rotations_all_the_time(void **state)
{
    (void)state;
    keep_everything_busy("tiny");
}

/* Refused for want of room: nothing of the batch is there, and it may be tried
 * again. */
static void a_commit_that_may_not_wait_is_refused_whole(void **state)
{
    enum { BUSY_ENOUGH = 20, COMMITS_ENOUGH = 500, PATIENCE_US = 60000000 };

    (void)state;
    for (uint32_t commit_wait_ms = 0; commit_wait_ms <= 1; commit_wait_ms++) {
        struct profile profile = profile_named("tiny");
        struct committer committers[COMMITTERS];
        pthread_t threads[COMMITTERS];
        char *path = temp_dir_make();
        const uint64_t end_us = clock_us() + PATIENCE_US;
        struct held_views held = {0};
        struct stress stress = {0};

        profile.options.commit_wait_ms = commit_wait_ms;
        stress.store = profile_open_ok(&profile, path, STELE_OPEN_CREATE);
        open_accounts(stress.store);
        start_committers(&stress, committers, threads);
        while (atomic_load(&stress.busy) < BUSY_ENOUGH ||
               atomic_load(&stress.commits) < COMMITS_ENOUGH) {
            hold_a_view(&held, stress.store);
            if (clock_us() > end_us) {
                run_fail("in %d s there were %" PRIu64 " commits and %" PRIu64
                         " refusals",
                         PATIENCE_US / 1000000, atomic_load(&stress.commits),
                         atomic_load(&stress.busy));
            }
        }
        let_all_go(&held);
        atomic_store(&stress.stop, true);
        join_committers(committers, threads);
        check_everything(stress.store, committers);
        check_after_reopening(&profile, path, stress.store, committers);
        printf("commit_wait_ms %" PRIu32 ": %" PRIu64 " commits, %" PRIu64
               " busy\n",
               commit_wait_ms, atomic_load(&stress.commits),
               atomic_load(&stress.busy));
        temp_dir_remove(path);
    }
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_view_is_consistent_while_everything_goes_on),
        cmocka_unit_test(also_with_checkpoints_and_rotations_all_the_time),
        cmocka_unit_test(a_commit_that_may_not_wait_is_refused_whole),
    };

    run_seed();
    if (argc == 4 && strcmp(argv[1], "reader") == 0) {
        return reader_main(argv[2], argv[3]);
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
