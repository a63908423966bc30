/*
 * engine/memtable.h -- committed records that are not yet in the index, in
 * memory, every version of them.
 *
 * A fixed-size hash of keys (XXH3, random seed) whose nodes carry the key's
 * versions, newest first, in an arena that is freed as a whole. One writer (the
 * commit leader) inserts; any number of readers look up without a lock.
 *
 * Order is made lazily: a new node is also appended to an array; whoever needs
 * order sorts the part that is not sorted yet into an immutable run, under a
 * mutex that the writer never takes, and runs merge geometrically. A key is in
 * exactly one run. So a commit pays for a hash insertion and a scan pays for
 * order, once. (Measured against a skip list: 10,000 random deletes into a full
 * one cost 13 to 16 ms, here 0.6 ms.)
 *
 * Versions are inserted under LSNs that no reader can see yet. If the group is
 * withdrawn (disk full), memtable_withdraw() pops them; their nodes stay, with
 * fewer or no versions, and a later put of the key reuses them. Readers skip
 * nodes without a visible version.
 *
 * Memory order: a node is linked, and a version becomes its node's head, with
 * release; readers load both with acquire. What a reader meets above its own
 * LSN it skips, whether the group was published or withdrawn meanwhile: arena
 * memory lives as long as the memtable.
 */
#ifndef ENGINE_MEMTABLE_H
#define ENGINE_MEMTABLE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/bytes.h"
#include "base/status.h"

struct memtable;
struct memtable_node;
struct memtable_order;

enum memtable_kind {
    MEMTABLE_PUT,
    MEMTABLE_DELETE,
    MEMTABLE_TOUCH, /* Of a table's row: the table changed at this LSN. */
};

/* Immutable once linked. Lives as long as its memtable. */
struct memtable_version {
    const struct memtable_version *older; /* NULL: the oldest. */
    uint64_t lsn;
    uint32_t op_index; /* Within the batch: the later operation wins. */
    uint32_t check;    /* Of a PUT: engine/base_value.h. */
    uint32_t value_bytes;
    enum memtable_kind kind;
    uint8_t value[];
};

/* ---- Life ------------------------------------------------------------------ */

/* `bytes_target` sizes the hash (it never grows; nothing is refused when more
 * is inserted). One reference. */
enum stele_status memtable_create(uint64_t bytes_target, uint64_t hash_seed,
                                  struct memtable **memtable_out,
                                  struct stele_error *error) STELE_MUST_CHECK;
void memtable_ref(struct memtable *memtable);
/* Accepts NULL; the last one frees. */
void memtable_unref(struct memtable *memtable);

/* Whether no thread is making an order of it. For a child of the process that
 * made it, where such a thread would never end. */
bool memtable_is_still(struct memtable *memtable);

/* ---- The writer: one thread at a time -------------------------------------- */

/* The hash of a key, to be computed once and used with every memtable that has
 * the same seed. */
uint64_t memtable_hash(const struct memtable *memtable, struct bytes key);

/*
 * Bring what an operation on this key will touch into the cache: the bucket, and
 * some operations later the node that it leads to. A large batch on a full
 * memtable waits for memory at every step otherwise. Changes nothing.
 */
void memtable_prefetch_bucket(const struct memtable *memtable,
                              uint64_t key_hash);
void memtable_prefetch_node(const struct memtable *memtable, uint64_t key_hash);

/* Insert a version, newer than all of the key's others (asserted: (lsn,
 * op_index) ascends). Key and value are copied. NO_MEMORY: nothing changed. */
enum stele_status memtable_insert(struct memtable *memtable, struct bytes key,
                                  uint64_t key_hash, uint64_t lsn,
                                  uint32_t op_index, enum memtable_kind kind,
                                  struct bytes value, uint32_t check,
                                  struct stele_error *error) STELE_MUST_CHECK;

/* Everything inserted since the last settle (or creation) stays. */
void memtable_settle(struct memtable *memtable);
/* ... or goes: the newest first, each node's head back to what it was. */
void memtable_withdraw(struct memtable *memtable);

/* Bytes in this memtable's arena: for what lives as long as it does (the bounds
 * of range fragments). NULL: out of memory. */
void *memtable_allocate(struct memtable *memtable, size_t bytes);

/* ---- Any thread -------------------------------------------------------------- */

/* The newest version with lsn <= lsn_max, or NULL. */
const struct memtable_version *memtable_find(const struct memtable *memtable,
                                             struct bytes key,
                                             uint64_t key_hash,
                                             uint64_t lsn_max);

/* Memory held: arena, hash, node array, runs. */
uint64_t memtable_bytes(const struct memtable *memtable);
uint64_t memtable_node_count(const struct memtable *memtable);

struct bytes memtable_node_key(const struct memtable_node *node);
const struct memtable_version *memtable_node_find(
    const struct memtable_node *node, uint64_t lsn_max);

/* ---- Order -------------------------------------------------------------------- */

/* All nodes that were in the memtable before the call, in key order; later ones
 * are not. A reference, to be released; keeps the runs, not the memtable. */
enum stele_status memtable_order_acquire(
    struct memtable *memtable, struct memtable_order **order_out,
    struct stele_error *error) STELE_MUST_CHECK;
void memtable_order_release(struct memtable_order *order); /* Accepts NULL. */

/* Nodes in it. */
uint64_t memtable_order_count(const struct memtable_order *order);

/*
 * A position in an order: on a node, or off either end. In the caller's memory;
 * valid while the order is held. Moves in both directions.
 */
enum { MEMTABLE_RUNS_MAX = 40 };
struct memtable_iterator {
    const struct memtable_order *order;
    const struct memtable_node *node; /* NULL: off an end. */
    uint32_t run;                     /* Of `node`. */
    uint64_t index[MEMTABLE_RUNS_MAX];
};

void memtable_iterator_init(struct memtable_iterator *iterator,
                            const struct memtable_order *order);
/* To the first node >= key; the last node < key. */
void memtable_iterator_seek(struct memtable_iterator *iterator,
                            struct bytes key);
void memtable_iterator_seek_before(struct memtable_iterator *iterator,
                                   struct bytes key);
/* From a node. Off an end: stays there. */
void memtable_iterator_next(struct memtable_iterator *iterator);
void memtable_iterator_prev(struct memtable_iterator *iterator);

#endif
