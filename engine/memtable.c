/*
 * engine/memtable.c -- the arena, the hash and the undo list.
 *
 * An insertion: find the key's node in its bucket; reserve a place in the undo
 * list and, for a new key, in the node list; take memory for the version (and
 * the node) from the arena; fill it in; publish it. Only the middle steps can
 * fail, and what they leave behind is spare capacity. The publishing stores
 * are: a new node's place in the list and in its bucket, a known node's head.
 *
 * Nothing is unlinked or freed before the memtable goes, so readers need no
 * protection but the acquire that pairs with those stores.
 */
#include "engine/memtable_internal.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/checksum.h"
#include "base/error.h"

enum {
    BUCKET_COUNT_MIN = 1024,
    BYTES_PER_BUCKET = 64, /* A small node with a small version is larger. */
    UNDO_CAPACITY_MIN = 64,
    PAGE_BYTES = 4096,
};

/* ---- Arena ----------------------------------------------------------------- */

enum {
    ARENA_ALIGN_BYTES = 8,
    /* A chunk is this part of the target, within bounds: what is reserved but
     * not used yet must not make a small memtable look full. */
    ARENA_CHUNKS_PER_TARGET = 64,
    ARENA_CHUNK_BYTES_MIN = 1024,
    ARENA_CHUNK_BYTES_MAX = 64 * 1024,
    /* A request larger than this part of a chunk gets one of its own: at most
     * so much is wasted when the current chunk is abandoned. */
    ARENA_SHARES_PER_CHUNK = 8,
};

struct arena_chunk {
    struct arena_chunk *next;
    alignas(ARENA_ALIGN_BYTES) uint8_t data[];
};

static_assert(alignof(struct memtable_node) <= ARENA_ALIGN_BYTES,
              "the arena aligns nodes");
static_assert(alignof(struct memtable_version) <= ARENA_ALIGN_BYTES,
              "the arena aligns versions");

static size_t aligned(size_t bytes)
{
    return (bytes + ARENA_ALIGN_BYTES - 1) & ~(size_t)(ARENA_ALIGN_BYTES - 1);
}

static void count_bytes(struct memtable *memtable, uint64_t bytes)
{
    atomic_fetch_add_explicit(&memtable->bytes, bytes, memory_order_relaxed);
}

static struct arena_chunk *arena_add_chunk(struct memtable *memtable,
                                           size_t data_bytes)
{
    struct arena *arena = &memtable->arena;
    struct arena_chunk *chunk = malloc(sizeof *chunk + data_bytes);

    if (chunk != NULL) {
        chunk->next = arena->chunks;
        arena->chunks = chunk;
        count_bytes(memtable, sizeof *chunk + data_bytes);
    }
    return chunk;
}

static void *arena_allocate(struct memtable *memtable, size_t bytes)
{
    struct arena *arena = &memtable->arena;
    struct arena_chunk *chunk;
    uint8_t *taken;

    if (bytes > SIZE_MAX - sizeof *chunk - ARENA_ALIGN_BYTES) {
        return NULL;
    }
    bytes = aligned(bytes);
    if (bytes > arena->free_bytes) {
        if (bytes > arena->chunk_bytes / ARENA_SHARES_PER_CHUNK) {
            chunk = arena_add_chunk(memtable, bytes);
            return chunk == NULL ? NULL : chunk->data;
        }
        chunk = arena_add_chunk(memtable, arena->chunk_bytes);
        if (chunk == NULL) {
            return NULL;
        }
        arena->free = chunk->data;
        arena->free_bytes = arena->chunk_bytes;
    }
    taken = arena->free;
    arena->free += bytes;
    arena->free_bytes -= bytes;
    return taken;
}

static size_t arena_chunk_bytes_for(uint64_t bytes_target)
{
    const uint64_t bytes = bytes_target / ARENA_CHUNKS_PER_TARGET;

    if (bytes < ARENA_CHUNK_BYTES_MIN) {
        return ARENA_CHUNK_BYTES_MIN;
    }
    return bytes > ARENA_CHUNK_BYTES_MAX ? ARENA_CHUNK_BYTES_MAX
                                         : aligned((size_t)bytes);
}

static void arena_free(struct arena *arena)
{
    while (arena->chunks != NULL) {
        struct arena_chunk *chunk = arena->chunks;

        arena->chunks = chunk->next;
        free(chunk);
    }
}

void *memtable_allocate(struct memtable *memtable, size_t bytes)
{
    /* NULL means out of memory, so even nothing has an address. */
    return arena_allocate(memtable, bytes > 0 ? bytes : 1);
}

/* ---- Life ------------------------------------------------------------------ */

static uint64_t bucket_count_for(uint64_t bytes_target)
{
    uint64_t count = BUCKET_COUNT_MIN;

    while (count < bytes_target / BYTES_PER_BUCKET) {
        count *= 2;
    }
    return count;
}

/* Have memory behind all of it now: else readers and the leader would pay for a page
 * fault wherever they look first. */
static void touch_pages(void *memory, size_t bytes)
{
    volatile uint8_t *page = memory;

    for (size_t offset = 0; offset < bytes; offset += PAGE_BYTES) {
        page[offset] = 0;
    }
}

static void memtable_destroy(struct memtable *memtable)
{
    memtable_order_release(memtable->order);
    pthread_mutex_destroy(&memtable->order_mutex);
    for (unsigned block = 0; block < NODE_LIST_BLOCKS; block++) {
        free(memtable->nodes.blocks[block]);
    }
    free(memtable->undo);
    arena_free(&memtable->arena);
    free(memtable->buckets);
    free(memtable);
}

enum stele_status memtable_create(uint64_t bytes_target, uint64_t hash_seed,
                                  struct memtable **memtable_out,
                                  struct stele_error *error)
{
    const uint64_t bucket_count = bucket_count_for(bytes_target);
    struct memtable *memtable =
        aligned_alloc(CACHE_LINE_BYTES, sizeof *memtable);

    if (memtable == NULL) {
        return error_no_memory(error, "memtable");
    }
    memset(memtable, 0, sizeof *memtable);
    memtable->bucket_mask = bucket_count - 1;
    memtable->hash_seed = hash_seed;
    memtable->arena.chunk_bytes = arena_chunk_bytes_for(bytes_target);
    memtable->buckets = calloc(bucket_count, sizeof *memtable->buckets);
    if (memtable->buckets != NULL) {
        touch_pages(memtable->buckets,
                    bucket_count * sizeof *memtable->buckets);
    }
    if (memtable->buckets == NULL ||
        pthread_mutex_init(&memtable->order_mutex, NULL) != 0) {
        free(memtable->buckets);
        free(memtable);
        return error_no_memory(error, "memtable");
    }
    atomic_init(&memtable->references, 1);
    atomic_init(&memtable->bytes,
                sizeof *memtable + bucket_count * sizeof *memtable->buckets);
    *memtable_out = memtable;
    return STELE_OK;
}

void memtable_ref(struct memtable *memtable)
{
    const uint64_t before = atomic_fetch_add_explicit(&memtable->references, 1,
                                                      memory_order_relaxed);

    assert(before > 0);
}

void memtable_unref(struct memtable *memtable)
{
    uint64_t before;

    if (memtable == NULL) {
        return;
    }
    before = atomic_fetch_sub_explicit(&memtable->references, 1,
                                       memory_order_acq_rel);
    assert(before > 0);
    if (before == 1) {
        memtable_destroy(memtable);
    }
}

bool memtable_is_still(struct memtable *memtable)
{
    if (pthread_mutex_trylock(&memtable->order_mutex) != 0) {
        return false;
    }
    pthread_mutex_unlock(&memtable->order_mutex);
    return true;
}

uint64_t memtable_bytes(const struct memtable *memtable)
{
    return atomic_load_explicit(&memtable->bytes, memory_order_relaxed);
}

uint64_t memtable_node_count(const struct memtable *memtable)
{
    return atomic_load_explicit(&memtable->nodes.count, memory_order_acquire);
}

/* ---- Lookup ---------------------------------------------------------------- */

uint64_t memtable_hash(const struct memtable *memtable, struct bytes key)
{
    return checksum64(key.data, key.size, memtable->hash_seed);
}

static struct memtable_node *_Atomic *bucket_of(const struct memtable *memtable,
                                                uint64_t key_hash)
{
    return &memtable->buckets[key_hash & memtable->bucket_mask];
}

static struct memtable_node *node_find(const struct memtable *memtable,
                                       struct bytes key, uint64_t key_hash)
{
    const uint32_t hash_high = (uint32_t)(key_hash >> 32);
    struct memtable_node *node = atomic_load_explicit(
        bucket_of(memtable, key_hash), memory_order_acquire);

    while (node != NULL) {
        if (node->hash_high == hash_high && node->key_bytes == key.size &&
            memcmp(node->key, key.data, key.size) == 0) {
            return node;
        }
        node = node->next;
    }
    return NULL;
}

void memtable_prefetch_bucket(const struct memtable *memtable,
                              uint64_t key_hash)
{
    __builtin_prefetch(bucket_of(memtable, key_hash), 1);
}

void memtable_prefetch_node(const struct memtable *memtable, uint64_t key_hash)
{
    __builtin_prefetch(atomic_load_explicit(bucket_of(memtable, key_hash),
                                            memory_order_acquire));
}

struct bytes memtable_node_key(const struct memtable_node *node)
{
    return (struct bytes){.data = node->key, .size = node->key_bytes};
}

const struct memtable_version *memtable_node_find(
    const struct memtable_node *node, uint64_t lsn_max)
{
    const struct memtable_version *version =
        atomic_load_explicit(&node->head, memory_order_acquire);

    while (version != NULL && version->lsn > lsn_max) {
        version = version->older;
    }
    return version;
}

const struct memtable_version *memtable_find(const struct memtable *memtable,
                                             struct bytes key,
                                             uint64_t key_hash,
                                             uint64_t lsn_max)
{
    const struct memtable_node *node = node_find(memtable, key, key_hash);

    return node == NULL ? NULL : memtable_node_find(node, lsn_max);
}

/* ---- Insertion ------------------------------------------------------------- */

/* Room for one more node. */
static bool node_list_reserve(struct memtable *memtable)
{
    struct node_list *list = &memtable->nodes;
    const uint64_t count =
        atomic_load_explicit(&list->count, memory_order_relaxed);
    const unsigned block = node_list_block(count);
    const uint64_t block_bytes =
        node_list_block_count(block) * sizeof *list->blocks[block];

    assert(block < NODE_LIST_BLOCKS);
    if (list->blocks[block] != NULL) {
        return true;
    }
    list->blocks[block] = malloc(block_bytes);
    if (list->blocks[block] == NULL) {
        return false;
    }
    count_bytes(memtable, block_bytes);
    return true;
}

static void node_list_append(struct node_list *list,
                             const struct memtable_node *node)
{
    const uint64_t count =
        atomic_load_explicit(&list->count, memory_order_relaxed);
    const unsigned block = node_list_block(count);

    list->blocks[block][count - node_list_block_begin(block)] = node;
    atomic_store_explicit(&list->count, count + 1, memory_order_release);
}

/* Room for one more version to be withdrawn. */
static bool undo_reserve(struct memtable *memtable)
{
    const size_t capacity = memtable->undo_capacity == 0
                                ? UNDO_CAPACITY_MIN
                                : memtable->undo_capacity * 2;
    struct memtable_node **grown;

    if (memtable->undo_count < memtable->undo_capacity) {
        return true;
    }
    grown = realloc(memtable->undo, capacity * sizeof *grown);
    if (grown == NULL) {
        return false;
    }
    count_bytes(memtable, (capacity - memtable->undo_capacity) * sizeof *grown);
    memtable->undo = grown;
    memtable->undo_capacity = capacity;
    return true;
}

static void node_publish(struct memtable *memtable, struct memtable_node *node,
                         struct bytes key, uint64_t key_hash,
                         const struct memtable_version *version)
{
    struct memtable_node *_Atomic *bucket = bucket_of(memtable, key_hash);

    node->next = atomic_load_explicit(bucket, memory_order_relaxed);
    node->hash_high = (uint32_t)(key_hash >> 32);
    node->key_bytes = (uint32_t)key.size;
    memcpy(node->key, key.data, key.size);
    atomic_init(&node->head, version);
    node_list_append(&memtable->nodes, node);
    atomic_store_explicit(bucket, node, memory_order_release);
}

static bool is_newer(const struct memtable_version *older, uint64_t lsn,
                     uint32_t op_index)
{
    return older == NULL || older->lsn < lsn ||
           (older->lsn == lsn && older->op_index < op_index);
}

enum stele_status memtable_insert(struct memtable *memtable, struct bytes key,
                                  uint64_t key_hash, uint64_t lsn,
                                  uint32_t op_index, enum memtable_kind kind,
                                  struct bytes value, uint32_t check,
                                  struct stele_error *error)
{
    struct memtable_node *node = node_find(memtable, key, key_hash);
    const struct memtable_version *older = NULL;
    struct memtable_version *version;
    size_t node_bytes = 0;
    uint8_t *memory;

    assert(key.size > 0 && key.size <= UINT32_MAX);
    assert(value.size <= UINT32_MAX);
    if (node == NULL) {
        node_bytes = aligned(sizeof *node + key.size);
    } else {
        older = atomic_load_explicit(&node->head, memory_order_relaxed);
        assert(is_newer(older, lsn, op_index));
    }
    if (!undo_reserve(memtable) ||
        (node == NULL && !node_list_reserve(memtable))) {
        return error_no_memory(error, "memtable");
    }
    memory =
        arena_allocate(memtable, node_bytes + sizeof *version + value.size);
    if (memory == NULL) {
        return error_no_memory(error, "memtable");
    }

    version = (void *)(memory + node_bytes);
    version->older = older;
    version->lsn = lsn;
    version->op_index = op_index;
    version->check = check;
    version->value_bytes = (uint32_t)value.size;
    version->kind = kind;
    if (value.size > 0) {
        memcpy(version->value, value.data, value.size);
    }
    if (node == NULL) {
        node = (void *)memory;
        node_publish(memtable, node, key, key_hash, version);
    } else {
        atomic_store_explicit(&node->head, version, memory_order_release);
    }
    memtable->undo[memtable->undo_count++] = node;
    return STELE_OK;
}

void memtable_settle(struct memtable *memtable)
{
    memtable->undo_count = 0;
}

void memtable_withdraw(struct memtable *memtable)
{
    while (memtable->undo_count > 0) {
        struct memtable_node *node = memtable->undo[--memtable->undo_count];
        const struct memtable_version *version =
            atomic_load_explicit(&node->head, memory_order_relaxed);

        /* Each entry stands for one version that is still on its node. */
        assert(version != NULL);
        atomic_store_explicit(&node->head, version->older,
                              memory_order_release);
    }
}
