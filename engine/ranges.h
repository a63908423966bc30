/*
 * engine/ranges.h -- range deletes as disjoint fragments.
 *
 * A range set is an immutable sorted array of fragments [first, end) that do
 * not overlap, each with the newest version (LSN, op index) that deletes it.
 * Readers bisect; a view keeps the set it was opened with. The commit leader
 * collects a group's range deletes in a builder and replaces the set once a
 * unit. Older versions of a piece are forgotten: whoever could need them holds
 * an older set. Point versions and range versions compare by (LSN, op index).
 *
 * Bounds are full keys (`table, 0x00, key`), borrowed from the memtable's arena,
 * never empty, first < end.
 */
#ifndef ENGINE_RANGES_H
#define ENGINE_RANGES_H

#include <stddef.h>
#include <stdint.h>

#include "base/bytes.h"
#include "base/status.h"

struct range_fragment {
    struct bytes first; /* Inclusive. */
    struct bytes end;   /* Exclusive. */
    uint64_t lsn;
    uint32_t op_index;
};

struct range_set; /* NULL stands for the empty set, everywhere. */

void range_set_ref(struct range_set *set);   /* Accepts NULL. */
void range_set_unref(struct range_set *set); /* The last one frees. */

size_t range_set_count(const struct range_set *set);
const struct range_fragment *range_set_at(const struct range_set *set,
                                          size_t index);
uint64_t range_set_bytes(const struct range_set *set);

/* The index of the first fragment whose end is > key: the one that covers key
 * or else the next one behind it; range_set_count() if there is none. */
size_t range_set_lower(const struct range_set *set, struct bytes key);

/* The fragment that covers key, or NULL. */
const struct range_fragment *range_set_find(const struct range_set *set,
                                            struct bytes key);

/*
 * The union, the newer version winning where they overlap. Neighbours that
 * touch and have the same version become one. O(left + right). `splits` is
 * increased by how many fragments of either set were cut in two or more pieces
 * by one of the other. A reference to a new set, or NULL if both are empty.
 */
enum stele_status range_set_merge(struct range_set *left,
                                  struct range_set *right,
                                  struct range_set **merged_out,
                                  uint64_t *splits,
                                  struct stele_error *error) STELE_MUST_CHECK;

/*
 * One group's range deletes, queryable while it grows. Additions wait in an
 * array; a lookup, or the end, sorts them into a set, and sets merge as they
 * grow geometrically: n additions cost O(n log n) altogether, a lookup
 * O(log^2 n). The memory of the array stays with the builder.
 */
enum { RANGE_BUILDER_LEVELS = 64 };
struct range_builder {
    struct range_fragment *pending; /* The newest, in the order of addition. */
    size_t pending_count;
    size_t pending_capacity;
    struct range_set *levels[RANGE_BUILDER_LEVELS]; /* [0] is the oldest. */
    size_t level_count;
    uint64_t splits;
};

void range_builder_init(struct range_builder *builder);
void range_builder_deinit(struct range_builder *builder);

/* Versions ascend from call to call. The bounds are borrowed. NO_MEMORY: nothing
 * changed. */
enum stele_status range_builder_add(struct range_builder *builder,
                                    struct bytes first, struct bytes end,
                                    uint64_t lsn, uint32_t op_index,
                                    struct stele_error *error) STELE_MUST_CHECK;

/* The newest fragment that covers key, or NULL. Valid until the next call. */
const struct range_fragment *range_builder_find(struct range_builder *builder,
                                                struct bytes key);

bool range_builder_is_empty(const struct range_builder *builder);

/* `base` with everything in the builder laid over it; the builder still holds
 * the same. A reference to a new set. */
enum stele_status range_builder_finish(
    struct range_builder *builder, struct range_set *base,
    struct range_set **set_out, struct stele_error *error) STELE_MUST_CHECK;

/* Forget everything but the count of splits, and the array's memory. */
void range_builder_clear(struct range_builder *builder);

#endif
