/*
 * tools/bench/store.h -- what workloads do to a store besides what they measure.
 * Items are 40-byte keys with 200-byte values in the table "items".
 */
#ifndef TOOLS_BENCH_STORE_H
#define TOOLS_BENCH_STORE_H

#include <stdint.h>

#include "engine/stele.h"

enum { ITEM_KEY_BYTES = 40, ITEM_VALUE_BYTES = 200 };

extern const char item_table[];
#define ITEM_PREFIX "item/" /* Of every item's key. */
extern const char item_value[ITEM_VALUE_BYTES];

/* A new store in directory/store, with segments that hold the largest batch. */
struct stele *bench_store_create(const char *directory);
/* The same with segments of this length. */
struct stele *bench_store_create_sized(const char *directory,
                                       uint64_t segment_bytes);
/* The same one again. */
struct stele *bench_store_open(const char *directory);
void bench_store_close(struct stele *store);

/* A new store with items 0 to count - 1 in a directory of its own, parent/name,
 * closed. Returns that directory, to be freed. */
char *bench_store_load(const char *parent, const char *name, uint64_t count);

/* item/000...number */
void item_key(char key[ITEM_KEY_BYTES + 1], uint64_t number);
/* The keys of `count` different items below `range`, in random order, and their
 * numbers. */
void random_keys(char (*keys)[ITEM_KEY_BYTES + 1], uint64_t *numbers,
                 uint64_t count, uint64_t range, uint64_t *seed);

/* Add puts of the items with these numbers to a batch. */
void bench_batch_put_items(struct stele_batch *batch, const char *table,
                           const uint64_t *numbers, uint64_t count);

/* Put the items with these numbers (NULL: 0 to count - 1), durably in the end,
 * and bring the index up to date. */
void bench_store_put_items(struct stele *store, const uint64_t *numbers,
                           uint64_t count);

/* One durable commit each: of puts or deletes of the items with these numbers. */
void bench_store_commit_puts(struct stele *store, const uint64_t *numbers,
                             uint64_t count);
void bench_store_commit_deletes(struct stele *store, const uint64_t *numbers,
                                uint64_t count);

/* Items in it; batches that this handle committed. */
uint64_t bench_store_items(struct stele *store);
uint64_t bench_store_commits(struct stele *store);

/* Put other keys until the memtable is half full. */
void bench_store_half_fill(struct stele *store);

/* Put the items with these numbers, from numbers[*next] on (and from the first again
 * behind the last), until the memtable is so full; *next goes on. */
void bench_store_overwrite(struct stele *store, const uint64_t *numbers,
                           uint64_t count, uint64_t *next, uint64_t percent);

/* The memtable is empty then. */
/* A snapshot, which takes a checkpoint before: no such work becomes due by what was
 * written until now. */
void bench_store_settle(struct stele *store);

void bench_store_checkpoint(struct stele *store);

enum { BENCH_PATH_BYTES = 4096 };

/* Make parent/name. */
void bench_directory(const char *parent, const char *name,
                     char path_out[BENCH_PATH_BYTES]);
struct stele_stats bench_store_stats(struct stele *store);

/* A number below `range`. The seed is not 0. */
uint64_t random_number(uint64_t range, uint64_t *seed);

/* Put random ones of the items, 100 a batch, until this handle has written
 * `log_bytes` of log. */
void bench_store_write_at_random(struct stele *store, uint64_t items,
                                 uint64_t log_bytes,
                                 enum stele_durability durability,
                                 uint64_t *seed);

/* One durable put of the key, in microseconds. */
double bench_store_put_us(struct stele *store, const char *table,
                          const char *key);

/* One durable batch that deletes the items with these keys, filling it included,
 * in microseconds. `bytes_out`: of its record; may be NULL. */
double bench_store_delete_us(struct stele *store,
                             char (*keys)[ITEM_KEY_BYTES + 1], uint64_t count,
                             size_t *bytes_out);

/* There are so many items now, or die. */
void bench_store_must_hold(struct stele *store, uint64_t items);

/* Delete all items of the table by their prefix, durably. Returns how long it took. */
double bench_store_delete_all_us(struct stele *store, const char *table);

/* 0 to count - 1; to be freed. */
uint64_t *numbers_in_order(uint64_t count);
/* `count` different numbers below `range`, in random order. */
void random_numbers(uint64_t *numbers, uint64_t count, uint64_t range,
                    uint64_t *seed);

#endif
