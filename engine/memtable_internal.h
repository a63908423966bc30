/*
 * engine/memtable_internal.h -- what memtable.c (the hash and its writer) and
 * memtable_order.c (sorted runs and iterators) share. For nobody else.
 */
#ifndef ENGINE_MEMTABLE_INTERNAL_H
#define ENGINE_MEMTABLE_INTERNAL_H

#include <pthread.h>
#include <stdalign.h>
#include <stddef.h>

#include "engine/memtable.h"

/* Everything but `head` is immutable once the node is linked. */
struct memtable_node {
    struct memtable_node *next;                  /* In its bucket; older. */
    const struct memtable_version *_Atomic head; /* NULL: all withdrawn. */
    uint32_t hash_high; /* Of the key: most other keys differ here. */
    uint32_t key_bytes;
    uint8_t key[];
};

/*
 * All nodes, in the order of their insertion. Blocks of doubling size never
 * move, so a reader may read the first `count` while the writer appends: count
 * is stored with release after the node and its block are in place.
 */
enum { NODE_LIST_FIRST_BLOCK = 1024, NODE_LIST_BLOCKS = 32 };
struct node_list {
    _Atomic uint64_t count;
    const struct memtable_node **blocks[NODE_LIST_BLOCKS];
};

/* Block b begins at node FIRST_BLOCK * (2^b - 1). */
static inline unsigned node_list_block(uint64_t index)
{
    const unsigned long long scaled = index / NODE_LIST_FIRST_BLOCK + 1;

    return 63u - (unsigned)__builtin_clzll(scaled);
}

static inline uint64_t node_list_block_begin(unsigned block)
{
    return NODE_LIST_FIRST_BLOCK * ((UINT64_C(1) << block) - 1);
}

static inline uint64_t node_list_block_count(unsigned block)
{
    return NODE_LIST_FIRST_BLOCK * (UINT64_C(1) << block);
}

/* Memory that is freed as a whole. */
struct arena_chunk;
struct arena {
    size_t chunk_bytes; /* Fixed at creation. */
    struct arena_chunk *chunks;
    uint8_t *free; /* Behind what was handed out of the current chunk. */
    size_t free_bytes;
};

/* In cache lines by who writes: an insertion must not take the line away from
 * readers that only want the buckets. */
enum { CACHE_LINE_BYTES = 64 };

struct memtable {
    /* Fixed at creation. */
    struct memtable_node *_Atomic *buckets;
    uint64_t bucket_mask;
    uint64_t hash_seed;

    /* The writer's. */
    alignas(CACHE_LINE_BYTES) struct arena arena;
    struct memtable_node **undo; /* One per version since the last settle. */
    size_t undo_count;
    size_t undo_capacity;
    struct node_list nodes; /* Appended to by the writer, read by anyone. */

    /* Anyone's. */
    alignas(CACHE_LINE_BYTES) _Atomic uint64_t references;
    _Atomic uint64_t bytes;
    pthread_mutex_t order_mutex;
    struct memtable_order *order; /* Guarded by it. NULL before the first. */
};

#endif
