/* tools/bench/store.c -- see tools/bench/store.h. */
#include "tools/bench/store.h"

#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "tools/bench/stats.h"
#include "tools/must/must.h"

enum {
    SEGMENT_BYTES = 64 * 1024 * 1024,
    LOAD_BATCH_ITEMS = 10000,
    FILL_BATCH_ITEMS = 100,
};

const char item_table[] = "items";
const char item_value[ITEM_VALUE_BYTES] =
    "{\"attributes\":{},\"order\":false,\"perm\":6,\"readQueueNums\":8,"
    "\"topicFilterType\":\"SINGLE_TAG\",\"topicName\":\"item\","
    "\"topicSysFlag\":0,\"writeQueueNums\":8}";

static struct stele *open_in(const char *directory, enum stele_open_mode mode,
                             uint64_t segment_bytes)
{
    struct stele_options options;
    struct stele_error error = {0};
    struct stele *store;
    char path[4096];

    stele_options_init(&options);
    options.mode = mode;
    options.segment_bytes = segment_bytes;
    /* The rounds say when: none in the middle of a measurement. */
    options.idle_checkpoint_ms = 3600 * 1000;
    snprintf(path, sizeof path, "%s/store", directory);
    must(stele_open(path, &options, &store, &error), &error);
    return store;
}

struct stele *bench_store_create(const char *directory)
{
    return bench_store_create_sized(directory, SEGMENT_BYTES);
}

struct stele *bench_store_create_sized(const char *directory,
                                       uint64_t segment_bytes)
{
    return open_in(directory, STELE_OPEN_CREATE_NEW, segment_bytes);
}

struct stele *bench_store_open(const char *directory)
{
    /* The length that it was made with stays. */
    return open_in(directory, STELE_OPEN_EXISTING, SEGMENT_BYTES);
}

void bench_store_close(struct stele *store)
{
    struct stele_error error = {0};

    must(stele_close(store, &error), &error);
}

char *bench_store_load(const char *parent, const char *name, uint64_t count)
{
    char directory[BENCH_PATH_BYTES];
    struct stele *store;

    bench_directory(parent, name, directory);
    store = bench_store_create(directory);
    bench_store_put_items(store, NULL, count);
    bench_store_settle(store);
    bench_store_close(store);
    return must_have(strdup(directory));
}

void item_key(char key[ITEM_KEY_BYTES + 1], uint64_t number)
{
    snprintf(key, ITEM_KEY_BYTES + 1, ITEM_PREFIX "%035" PRIu64, number);
}

static void put_item(struct stele_batch *batch, const char *table,
                     uint64_t number)
{
    struct stele_error error = {0};
    char key[ITEM_KEY_BYTES + 1];

    item_key(key, number);
    must(stele_batch_put(batch, table, key, ITEM_KEY_BYTES, item_value,
                         ITEM_VALUE_BYTES, &error),
         &error);
}

void bench_batch_put_items(struct stele_batch *batch, const char *table,
                           const uint64_t *numbers, uint64_t count)
{
    for (uint64_t i = 0; i < count; i++) {
        put_item(batch, table, numbers[i]);
    }
}

void random_keys(char (*keys)[ITEM_KEY_BYTES + 1], uint64_t *numbers,
                 uint64_t count, uint64_t range, uint64_t *seed)
{
    random_numbers(numbers, count, range, seed);
    for (uint64_t i = 0; i < count; i++) {
        item_key(keys[i], numbers[i]);
    }
}

static void put_items(struct stele *store, struct stele_batch *batch,
                      const char *table, const uint64_t *numbers,
                      uint64_t first, uint64_t count,
                      enum stele_durability durability)
{
    struct stele_error error = {0};

    stele_batch_clear(batch);
    for (uint64_t i = first; i < first + count; i++) {
        put_item(batch, table, numbers == NULL ? i : numbers[i]);
    }
    must(stele_commit(store, batch, durability, NULL, &error), &error);
}

void bench_store_put_items(struct stele *store, const uint64_t *numbers,
                           uint64_t count)
{
    struct stele_error error = {0};
    struct stele_batch *batch;

    must(stele_batch_create(&batch, &error), &error);
    for (uint64_t first = 0; first < count; first += LOAD_BATCH_ITEMS) {
        const uint64_t left = count - first;

        put_items(store, batch, item_table, numbers, first,
                  left < LOAD_BATCH_ITEMS ? left : LOAD_BATCH_ITEMS,
                  STELE_RELAXED);
    }
    stele_batch_destroy(batch);
    must(stele_sync(store, &error), &error);
    bench_store_checkpoint(store);
}

void bench_store_commit_puts(struct stele *store, const uint64_t *numbers,
                             uint64_t count)
{
    struct stele_error error = {0};
    struct stele_batch *batch;

    must(stele_batch_create(&batch, &error), &error);
    put_items(store, batch, item_table, numbers, 0, count, STELE_DURABLE);
    stele_batch_destroy(batch);
}

void bench_store_commit_deletes(struct stele *store, const uint64_t *numbers,
                                uint64_t count)
{
    char(*keys)[ITEM_KEY_BYTES + 1] = must_have(malloc(count * sizeof keys[0]));

    for (uint64_t i = 0; i < count; i++) {
        item_key(keys[i], numbers[i]);
    }
    (void)bench_store_delete_us(store, keys, count, NULL);
    free(keys);
}

double bench_store_delete_all_us(struct stele *store, const char *table)
{
    struct stele_error error = {0};
    const uint64_t start_ns = clock_ns();
    struct stele_batch *batch;

    must(stele_batch_create(&batch, &error), &error);
    must(stele_batch_delete_prefix(batch, table, ITEM_PREFIX,
                                   sizeof ITEM_PREFIX - 1, &error),
         &error);
    must(stele_commit(store, batch, STELE_DURABLE, NULL, &error), &error);
    stele_batch_destroy(batch);
    return (double)(clock_ns() - start_ns) / 1e3;
}

uint64_t bench_store_items(struct stele *store)
{
    struct stele_error error = {0};
    struct stele_view *view;
    uint64_t count;

    must(stele_view_open(store, &view, &error), &error);
    must(stele_table_count(view, item_table, &count, &error), &error);
    stele_view_close(view);
    return count;
}

struct stele_stats bench_store_stats(struct stele *store)
{
    struct stele_stats stats = {.size = sizeof stats};
    struct stele_error error = {0};

    must(stele_stats(store, &stats, &error), &error);
    return stats;
}

uint64_t bench_store_commits(struct stele *store)
{
    return bench_store_stats(store).records_written;
}

static bool is_below(struct stele *store, uint64_t percent)
{
    struct stele_options options;

    stele_options_init(&options);
    return bench_store_stats(store).memtable_bytes <
           options.memtable_bytes / 100 * percent;
}

/* Number *next is numbers[*next], and the first again behind the last; NULL: itself. */
static void fill(struct stele *store, const char *table,
                 const uint64_t *numbers, uint64_t count, uint64_t *next,
                 uint64_t percent)
{
    struct stele_error error = {0};
    struct stele_batch *batch;

    must(stele_batch_create(&batch, &error), &error);
    while (is_below(store, percent)) {
        stele_batch_clear(batch);
        for (uint64_t i = 0; i < FILL_BATCH_ITEMS; i++, ++*next) {
            put_item(batch, table,
                     numbers == NULL ? *next : numbers[*next % count]);
        }
        must(stele_commit(store, batch, STELE_RELAXED, NULL, &error), &error);
    }
    stele_batch_destroy(batch);
    must(stele_sync(store, &error), &error);
}

void bench_store_half_fill(struct stele *store)
{
    uint64_t next = 0;

    fill(store, "others", NULL, 0, &next, 50);
}

void bench_store_overwrite(struct stele *store, const uint64_t *numbers,
                           uint64_t count, uint64_t *next, uint64_t percent)
{
    fill(store, item_table, numbers, count, next, percent);
}

void bench_store_checkpoint(struct stele *store)
{
    struct stele_error error = {0};

    must(stele_checkpoint(store, &error), &error);
}

void bench_store_settle(struct stele *store)
{
    struct stele_error error = {0};

    must(stele_snapshot(store, NULL, &error), &error);
}

void bench_directory(const char *parent, const char *name,
                     char path_out[BENCH_PATH_BYTES])
{
    if (snprintf(path_out, BENCH_PATH_BYTES, "%s/%s", parent, name) >=
            BENCH_PATH_BYTES ||
        mkdir(path_out, 0700) != 0) {
        die("%s/%s: %s", parent, name, strerror(errno));
    }
}

double bench_store_put_us(struct stele *store, const char *table,
                          const char *key)
{
    struct stele_error error = {0};
    const uint64_t start_ns = clock_ns();

    must(stele_put(store, table, key, strlen(key), item_value, ITEM_VALUE_BYTES,
                   NULL, &error),
         &error);
    return (double)(clock_ns() - start_ns) / 1e3;
}

double bench_store_delete_us(struct stele *store,
                             char (*keys)[ITEM_KEY_BYTES + 1], uint64_t count,
                             size_t *bytes_out)
{
    struct stele_error error = {0};
    const uint64_t start_ns = clock_ns();
    struct stele_batch *batch;
    double us;

    must(stele_batch_create(&batch, &error), &error);
    for (uint64_t i = 0; i < count; i++) {
        must(stele_batch_delete(batch, item_table, keys[i], ITEM_KEY_BYTES,
                                &error),
             &error);
    }
    must(stele_commit(store, batch, STELE_DURABLE, NULL, &error), &error);
    us = (double)(clock_ns() - start_ns) / 1e3;
    if (bytes_out != NULL) {
        *bytes_out = (size_t)stele_batch_bytes(batch);
    }
    stele_batch_destroy(batch);
    return us;
}

void bench_store_must_hold(struct stele *store, uint64_t items)
{
    const uint64_t count = bench_store_items(store);

    if (count != items) {
        die("%" PRIu64 " items in the table, not %" PRIu64, count, items);
    }
}

/* xorshift64* */
static uint64_t next_random(uint64_t *seed)
{
    *seed ^= *seed >> 12;
    *seed ^= *seed << 25;
    *seed ^= *seed >> 27;
    return *seed * UINT64_C(2685821657736338717);
}

uint64_t random_number(uint64_t range, uint64_t *seed)
{
    return next_random(seed) % range;
}

void bench_store_write_at_random(struct stele *store, uint64_t items,
                                 uint64_t log_bytes,
                                 enum stele_durability durability,
                                 uint64_t *seed)
{
    struct stele_error error = {0};
    struct stele_batch *batch;

    must(stele_batch_create(&batch, &error), &error);
    while (bench_store_stats(store).log_bytes_written < log_bytes) {
        stele_batch_clear(batch);
        for (uint64_t i = 0; i < FILL_BATCH_ITEMS; i++) {
            put_item(batch, item_table, random_number(items, seed));
        }
        must(stele_commit(store, batch, durability, NULL, &error), &error);
    }
    stele_batch_destroy(batch);
}

uint64_t *numbers_in_order(uint64_t count)
{
    uint64_t *numbers = must_have(malloc(count * sizeof numbers[0]));

    for (uint64_t i = 0; i < count; i++) {
        numbers[i] = i;
    }
    return numbers;
}

void random_numbers(uint64_t *numbers, uint64_t count, uint64_t range,
                    uint64_t *seed)
{
    bool *taken;

    if (count > range) {
        die("%" PRIu64 " different numbers below %" PRIu64, count, range);
    }
    /* Few of many touch little of it: the caches stay the measurement's. */
    taken = must_have(calloc(range, sizeof taken[0]));
    for (uint64_t i = 0; i < count;) {
        const uint64_t number = random_number(range, seed);

        if (!taken[number]) {
            taken[number] = true;
            numbers[i++] = number;
        }
    }
    free(taken);
}
