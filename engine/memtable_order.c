/*
 * engine/memtable_order.c -- sorted runs of nodes, made when somebody asks.
 *
 * To acquire an order, under the mutex of the readers: if nodes were appended
 * since the current order was made, sort those into a new run, merge it with
 * the last runs as long as they are less than twice its size, and make the
 * result the current order. Runs and orders are immutable and counted, so an
 * order in use is not disturbed. If memory runs out, the current order stays.
 *
 * Invariant: each run of an order is at least twice as long as the next. So
 * there are at most log2(nodes) + 1, and a node is copied by about as many
 * merges, however often orders are acquired.
 */
#include "engine/memtable_internal.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"

struct memtable_run {
    _Atomic uint64_t references;
    uint64_t count;
    const struct memtable_node *nodes[]; /* Ascending keys. */
};

struct memtable_order {
    _Atomic uint64_t references;
    uint64_t node_count; /* Covers this many of the first nodes in the list. */
    uint32_t run_count;
    struct memtable_run *runs[MEMTABLE_RUNS_MAX]; /* The longest first. */
};

static int node_compare(const struct memtable_node *left,
                        const struct memtable_node *right)
{
    return bytes_compare(memtable_node_key(left), memtable_node_key(right));
}

/* ---- Sorting --------------------------------------------------------------- */

/*
 * Most comparisons should not visit the nodes, which are all over the memory.
 * So each entry carries the 8 bytes of its key that follow what all keys have
 * in common ("table, 0x00" is the least of it), as a number in key order. What
 * still ties is sorted again by what follows there.
 */
enum { WINDOW_BYTES = 8 };

struct sort_entry {
    uint64_t window;
    const struct memtable_node *node;
};

/* The key's bytes from `depth` on, zeroes behind its end. */
static uint64_t key_window(const struct memtable_node *node, size_t depth)
{
    uint64_t window = 0;

    for (size_t i = depth; i < depth + WINDOW_BYTES; i++) {
        window = window << 8 | (i < node->key_bytes ? node->key[i] : 0);
    }
    return window;
}

/* Keys that tie and end within the window differ in nothing but the zeroes at
 * their end, and all of them are prefixes of those that go on behind it: the
 * shorter one is first. */
static int compare_entries(const void *left, const void *right)
{
    const struct sort_entry *l = left;
    const struct sort_entry *r = right;

    if (l->window != r->window) {
        return l->window < r->window ? -1 : 1;
    }
    return (l->node->key_bytes > r->node->key_bytes) -
           (l->node->key_bytes < r->node->key_bytes);
}

/* How many bytes all the keys share, knowing that they share `depth`. */
static size_t shared_bytes(const struct sort_entry *entries, size_t count,
                           size_t depth)
{
    const struct memtable_node *first = entries[0].node;
    size_t shared = first->key_bytes;

    for (size_t i = 1; i < count && shared > depth; i++) {
        const struct memtable_node *node = entries[i].node;
        size_t same = depth;

        while (same < shared && same < node->key_bytes &&
               node->key[same] == first->key[same]) {
            same++;
        }
        shared = same;
    }
    return shared;
}

/* The keys are distinct and share their first `depth` bytes. Each recursion
 * goes WINDOW_BYTES deeper into the keys. */
static void sort_entries(struct sort_entry *entries, size_t count, size_t depth)
{
    size_t ties_end;

    if (count < 2) {
        return;
    }
    depth = shared_bytes(entries, count, depth);
    for (size_t i = 0; i < count; i++) {
        entries[i].window = key_window(entries[i].node, depth);
    }
    qsort(entries, count, sizeof *entries, compare_entries);

    for (size_t i = 0; i < count; i = ties_end) {
        size_t ties = i;

        ties_end = i + 1;
        while (ties_end < count &&
               entries[ties_end].window == entries[i].window) {
            ties_end++;
        }
        /* Those that end within the window are in their place. */
        while (ties < ties_end &&
               entries[ties].node->key_bytes <= depth + WINDOW_BYTES) {
            ties++;
        }
        sort_entries(entries + ties, ties_end - ties, depth + WINDOW_BYTES);
    }
}

/* ---- Runs ------------------------------------------------------------------ */

static uint64_t run_bytes(const struct memtable_run *run)
{
    return sizeof *run + run->count * sizeof run->nodes[0];
}

static struct memtable_run *run_create(uint64_t count)
{
    struct memtable_run *run =
        malloc(sizeof *run + count * sizeof run->nodes[0]);

    if (run != NULL) {
        atomic_init(&run->references, 1);
        run->count = count;
    }
    return run;
}

static void run_ref(struct memtable_run *run)
{
    atomic_fetch_add_explicit(&run->references, 1, memory_order_relaxed);
}

static void run_unref(struct memtable_run *run)
{
    const uint64_t before =
        atomic_fetch_sub_explicit(&run->references, 1, memory_order_acq_rel);

    assert(before > 0);
    if (before == 1) {
        free(run);
    }
}

/* The nodes from `begin` to before `end` of the list, sorted. NULL: out of
 * memory. */
static struct memtable_run *run_sort(const struct node_list *list,
                                     uint64_t begin, uint64_t end)
{
    const uint64_t count = end - begin;
    struct memtable_run *run = run_create(count);
    struct sort_entry *entries = malloc(count * sizeof *entries);

    if (run == NULL || entries == NULL) {
        free(entries);
        free(run);
        return NULL;
    }
    for (uint64_t i = 0; i < count; i++) {
        const unsigned block = node_list_block(begin + i);
        const uint64_t offset = begin + i - node_list_block_begin(block);

        entries[i].node = list->blocks[block][offset];
    }
    sort_entries(entries, count, 0);
    for (uint64_t i = 0; i < count; i++) {
        run->nodes[i] = entries[i].node;
    }
    free(entries);
    return run;
}

/* NULL: out of memory. */
static struct memtable_run *run_merge(const struct memtable_run *left,
                                      const struct memtable_run *right)
{
    struct memtable_run *merged = run_create(left->count + right->count);
    uint64_t l = 0;
    uint64_t r = 0;

    if (merged == NULL) {
        return NULL;
    }
    for (uint64_t i = 0; i < merged->count; i++) {
        const bool from_left =
            r == right->count ||
            (l < left->count &&
             node_compare(left->nodes[l], right->nodes[r]) < 0);

        merged->nodes[i] = from_left ? left->nodes[l++] : right->nodes[r++];
    }
    return merged;
}

/* The number of its nodes with keys < key. */
static uint64_t run_lower(const struct memtable_run *run, struct bytes key)
{
    uint64_t low = 0;
    uint64_t high = run->count;

    while (low < high) {
        const uint64_t middle = low + (high - low) / 2;

        if (bytes_compare(memtable_node_key(run->nodes[middle]), key) < 0) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

/* ---- Orders ---------------------------------------------------------------- */

static uint64_t order_bytes(const struct memtable_order *order)
{
    uint64_t bytes = sizeof *order;

    for (uint32_t run = 0; run < order->run_count; run++) {
        bytes += run_bytes(order->runs[run]);
    }
    return bytes;
}

/* With the runs of `base`, which may be NULL. NULL: out of memory. */
static struct memtable_order *order_create(const struct memtable_order *base)
{
    struct memtable_order *order = calloc(1, sizeof *order);

    if (order == NULL) {
        return NULL;
    }
    atomic_init(&order->references, 1);
    if (base != NULL) {
        order->node_count = base->node_count;
        order->run_count = base->run_count;
        for (uint32_t run = 0; run < base->run_count; run++) {
            order->runs[run] = base->runs[run];
            run_ref(order->runs[run]);
        }
    }
    return order;
}

/* Takes over the caller's reference to `run`. False: out of memory. */
static bool order_push(struct memtable_order *order, struct memtable_run *run)
{
    while (order->run_count > 0 &&
           order->runs[order->run_count - 1]->count < 2 * run->count) {
        struct memtable_run *last = order->runs[order->run_count - 1];
        struct memtable_run *merged = run_merge(last, run);

        run_unref(run);
        if (merged == NULL) {
            return false;
        }
        run_unref(last);
        order->run_count--;
        run = merged;
    }
    assert(order->run_count < MEMTABLE_RUNS_MAX);
    order->runs[order->run_count++] = run;
    return true;
}

/* A new order of the first `node_count` nodes. NULL: out of memory. */
static struct memtable_order *order_extend(const struct memtable_order *base,
                                           const struct node_list *list,
                                           uint64_t node_count)
{
    struct memtable_order *order = order_create(base);
    struct memtable_run *run;

    if (order == NULL) {
        return NULL;
    }
    assert(order->node_count <= node_count);
    if (order->node_count < node_count) {
        run = run_sort(list, order->node_count, node_count);
        if (run == NULL || !order_push(order, run)) {
            memtable_order_release(order);
            return NULL;
        }
        order->node_count = node_count;
    }
    return order;
}

/* Make `order` the current one. Runs that only older orders hold are no longer
 * counted: those orders may outlive the memtable. */
static void order_replace(struct memtable *memtable,
                          struct memtable_order *order)
{
    atomic_fetch_add_explicit(&memtable->bytes, order_bytes(order),
                              memory_order_relaxed);
    if (memtable->order != NULL) {
        atomic_fetch_sub_explicit(&memtable->bytes,
                                  order_bytes(memtable->order),
                                  memory_order_relaxed);
    }
    memtable_order_release(memtable->order);
    memtable->order = order;
}

enum stele_status memtable_order_acquire(struct memtable *memtable,
                                         struct memtable_order **order_out,
                                         struct stele_error *error)
{
    enum stele_status status = STELE_OK;
    uint64_t node_count;

    pthread_mutex_lock(&memtable->order_mutex);
    /* Read under the mutex: it is never below what the current order has. */
    node_count = memtable_node_count(memtable);
    if (memtable->order == NULL || memtable->order->node_count < node_count) {
        struct memtable_order *order =
            order_extend(memtable->order, &memtable->nodes, node_count);

        if (order == NULL) {
            status = error_no_memory(error, "order of the memtable");
            goto out;
        }
        order_replace(memtable, order);
    }
    atomic_fetch_add_explicit(&memtable->order->references, 1,
                              memory_order_relaxed);
    *order_out = memtable->order;
out:
    pthread_mutex_unlock(&memtable->order_mutex);
    return status;
}

void memtable_order_release(struct memtable_order *order)
{
    uint64_t before;

    if (order == NULL) {
        return;
    }
    before =
        atomic_fetch_sub_explicit(&order->references, 1, memory_order_acq_rel);
    assert(before > 0);
    if (before > 1) {
        return;
    }
    for (uint32_t run = 0; run < order->run_count; run++) {
        run_unref(order->runs[run]);
    }
    free(order);
}

uint64_t memtable_order_count(const struct memtable_order *order)
{
    return order->node_count;
}

/* ---- Iterators ------------------------------------------------------------- */

/*
 * Invariant, while on a node: index[r] is the number of nodes in run r that are
 * before it. So the node is runs[run]->nodes[index[run]], the next one is the
 * least of those at the indexes (its own advanced by one), the previous one is
 * the greatest of those right before the indexes. A key is in exactly one run,
 * so nothing ever ties and a change of direction needs no preparation.
 */

void memtable_iterator_init(struct memtable_iterator *iterator,
                            const struct memtable_order *order)
{
    memset(iterator, 0, sizeof *iterator);
    iterator->order = order;
}

/* In key order, nodes and versions lie anywhere in memory: a scan asks for those of a
 * few steps on, the node first, and its version once the node is there. */
enum { NODES_AHEAD = 8, VERSIONS_AHEAD = 4, VERSION_LINES_AHEAD = 4 };

static void prefetch_from(const struct memtable_run *run, uint64_t index)
{
    if (index + NODES_AHEAD < run->count) {
        const char *node = (const char *)run->nodes[index + NODES_AHEAD];

        __builtin_prefetch(node);
        __builtin_prefetch(node + CACHE_LINE_BYTES);
    }
    if (index + VERSIONS_AHEAD < run->count) {
        const char *version = (const char *)atomic_load_explicit(
            &run->nodes[index + VERSIONS_AHEAD]->head, memory_order_relaxed);

        /* None: all were withdrawn. */
        for (int line = 0; version != NULL && line < VERSION_LINES_AHEAD;
             line++) {
            __builtin_prefetch(version + line * CACHE_LINE_BYTES);
        }
    }
}

static void move_to_least_at(struct memtable_iterator *iterator)
{
    const struct memtable_order *order = iterator->order;

    iterator->node = NULL;
    for (uint32_t run = 0; run < order->run_count; run++) {
        const uint64_t index = iterator->index[run];
        const struct memtable_node *node;

        if (index == order->runs[run]->count) {
            continue;
        }
        node = order->runs[run]->nodes[index];
        if (iterator->node == NULL || node_compare(node, iterator->node) < 0) {
            iterator->node = node;
            iterator->run = run;
        }
    }
}

static void move_to_greatest_before(struct memtable_iterator *iterator)
{
    const struct memtable_order *order = iterator->order;

    iterator->node = NULL;
    for (uint32_t run = 0; run < order->run_count; run++) {
        const uint64_t index = iterator->index[run];
        const struct memtable_node *node;

        if (index == 0) {
            continue;
        }
        node = order->runs[run]->nodes[index - 1];
        if (iterator->node == NULL || node_compare(node, iterator->node) > 0) {
            iterator->node = node;
            iterator->run = run;
        }
    }
    if (iterator->node != NULL) {
        iterator->index[iterator->run]--;
    }
}

static void set_indexes(struct memtable_iterator *iterator, struct bytes key)
{
    for (uint32_t run = 0; run < iterator->order->run_count; run++) {
        iterator->index[run] = run_lower(iterator->order->runs[run], key);
    }
}

void memtable_iterator_seek(struct memtable_iterator *iterator,
                            struct bytes key)
{
    set_indexes(iterator, key);
    move_to_least_at(iterator);
}

void memtable_iterator_seek_before(struct memtable_iterator *iterator,
                                   struct bytes key)
{
    set_indexes(iterator, key);
    move_to_greatest_before(iterator);
}

void memtable_iterator_next(struct memtable_iterator *iterator)
{
    if (iterator->node != NULL) {
        iterator->index[iterator->run]++;
        prefetch_from(iterator->order->runs[iterator->run],
                      iterator->index[iterator->run]);
        move_to_least_at(iterator);
    }
}

void memtable_iterator_prev(struct memtable_iterator *iterator)
{
    if (iterator->node != NULL) {
        move_to_greatest_before(iterator);
    }
}
