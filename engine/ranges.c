/*
 * engine/ranges.c -- merging and searching sets of disjoint range fragments.
 *
 * The merge walks along the keys with a cursor in either set. What lies ahead
 * of a cursor is the rest of its fragment; each step emits the piece up to the
 * next bound of either set, from the only fragment there or the newer of the
 * two. A piece that continues the one before it extends that one instead.
 */
#include "engine/ranges.h"

#include <assert.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "base/error.h"

struct range_set {
    _Atomic uint64_t references;
    uint64_t bytes; /* Of this block. */
    size_t count;
    struct range_fragment fragments[];
};

/* ---- Sets ------------------------------------------------------------------ */

static uint64_t set_bytes(size_t fragment_count)
{
    return sizeof(struct range_set) +
           fragment_count * sizeof(struct range_fragment);
}

/* Empty, with room for `capacity` fragments. NULL: out of memory. */
static struct range_set *set_create(size_t capacity)
{
    struct range_set *set = malloc(set_bytes(capacity));

    if (set != NULL) {
        atomic_init(&set->references, 1);
        set->bytes = set_bytes(capacity);
        set->count = 0;
    }
    return set;
}

/* Give back the room that is not used. For a set that nobody else knows. */
static struct range_set *set_trim(struct range_set *set)
{
    const uint64_t bytes = set_bytes(set->count);
    struct range_set *trimmed = realloc(set, bytes);

    if (trimmed == NULL) {
        return set;
    }
    trimmed->bytes = bytes;
    return trimmed;
}

void range_set_ref(struct range_set *set)
{
    if (set != NULL) {
        atomic_fetch_add_explicit(&set->references, 1, memory_order_relaxed);
    }
}

void range_set_unref(struct range_set *set)
{
    uint64_t before;

    if (set == NULL) {
        return;
    }
    before =
        atomic_fetch_sub_explicit(&set->references, 1, memory_order_acq_rel);
    assert(before > 0);
    if (before == 1) {
        free(set);
    }
}

size_t range_set_count(const struct range_set *set)
{
    return set == NULL ? 0 : set->count;
}

const struct range_fragment *range_set_at(const struct range_set *set,
                                          size_t index)
{
    assert(index < range_set_count(set));
    return &set->fragments[index];
}

uint64_t range_set_bytes(const struct range_set *set)
{
    return set == NULL ? 0 : set->bytes;
}

size_t range_set_lower(const struct range_set *set, struct bytes key)
{
    size_t low = 0;
    size_t high = range_set_count(set);

    while (low < high) {
        const size_t middle = low + (high - low) / 2;

        if (bytes_compare(set->fragments[middle].end, key) <= 0) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

const struct range_fragment *range_set_find(const struct range_set *set,
                                            struct bytes key)
{
    const size_t index = range_set_lower(set, key);

    if (index == range_set_count(set) ||
        bytes_compare(set->fragments[index].first, key) > 0) {
        return NULL;
    }
    return &set->fragments[index];
}

/* ---- Merging --------------------------------------------------------------- */

struct merge_cursor {
    const struct range_fragment *fragment;
    const struct range_fragment *fragments_end; /* `fragment` here: done. */
    struct bytes first; /* Where what is left of the fragment begins. */
    size_t piece_count; /* Pieces of the fragment that are in the output. */
    bool hidden;        /* No piece of it ends at `first`. */
};

static void cursor_enter_fragment(struct merge_cursor *cursor)
{
    if (cursor->fragment < cursor->fragments_end) {
        cursor->first = cursor->fragment->first;
        cursor->piece_count = 0;
        cursor->hidden = true;
    }
}

static struct merge_cursor cursor_init(const struct range_set *set)
{
    struct merge_cursor cursor = {
        .fragment = set->fragments,
        .fragments_end = set->fragments + set->count,
    };

    cursor_enter_fragment(&cursor);
    return cursor;
}

static bool cursor_is_done(const struct merge_cursor *cursor)
{
    return cursor->fragment == cursor->fragments_end;
}

/* To `end`, which is at most the end of its fragment. */
static void cursor_advance(struct merge_cursor *cursor, struct bytes end)
{
    if (bytes_compare(end, cursor->fragment->end) < 0) {
        cursor->first = end;
    } else {
        cursor->fragment++;
        cursor_enter_fragment(cursor);
    }
}

static int version_compare(const struct range_fragment *left,
                           const struct range_fragment *right)
{
    if (left->lsn != right->lsn) {
        return left->lsn < right->lsn ? -1 : 1;
    }
    return (left->op_index > right->op_index) -
           (left->op_index < right->op_index);
}

static void set_append(struct range_set *set,
                       const struct range_fragment *piece)
{
    struct range_fragment *last =
        set->count == 0 ? NULL : &set->fragments[set->count - 1];

    if (last != NULL && version_compare(last, piece) == 0 &&
        bytes_compare(last->end, piece->first) == 0) {
        last->end = piece->end;
    } else {
        set->fragments[set->count++] = *piece;
    }
}

/* A piece of the cursor's fragment, from `first` on, is in the output. */
static void cursor_show(struct merge_cursor *cursor, uint64_t *splits)
{
    if (cursor->hidden) {
        cursor->hidden = false;
        cursor->piece_count++;
        if (cursor->piece_count == 2) {
            (*splits)++; /* The third piece is of the same fragment. */
        }
    }
}

/* Put the cursor's fragment, up to `end`, into the output. */
static void cursor_emit(struct merge_cursor *cursor, struct bytes end,
                        struct range_set *merged, uint64_t *splits)
{
    struct range_fragment piece = *cursor->fragment;

    piece.first = cursor->first;
    piece.end = end;
    set_append(merged, &piece);
    cursor_show(cursor, splits);
    cursor_advance(cursor, end);
}

/* `cursor` begins before `other` does, or alone. */
static void emit_before(struct merge_cursor *cursor,
                        const struct merge_cursor *other,
                        struct range_set *merged, uint64_t *splits)
{
    struct bytes end = cursor->fragment->end;

    if (!cursor_is_done(other) && bytes_compare(other->first, end) < 0) {
        end = other->first;
    }
    cursor_emit(cursor, end, merged, splits);
}

/* Both begin at the same key. */
static void emit_newer(struct merge_cursor *left, struct merge_cursor *right,
                       struct range_set *merged, uint64_t *splits)
{
    const int order = version_compare(left->fragment, right->fragment);
    struct merge_cursor *newer = order >= 0 ? left : right;
    struct merge_cursor *older = order >= 0 ? right : left;
    struct bytes end = newer->fragment->end;

    if (bytes_compare(older->fragment->end, end) < 0) {
        end = older->fragment->end;
    }
    if (order == 0) {
        cursor_show(older, splits); /* The same piece is both's. */
    } else {
        older->hidden = true;
    }
    cursor_emit(newer, end, merged, splits);
    cursor_advance(older, end);
}

static void merge_sweep(struct merge_cursor *left, struct merge_cursor *right,
                        struct range_set *merged, uint64_t *splits)
{
    while (!cursor_is_done(left) || !cursor_is_done(right)) {
        int order;

        if (cursor_is_done(left)) {
            order = 1;
        } else if (cursor_is_done(right)) {
            order = -1;
        } else {
            order = bytes_compare(left->first, right->first);
        }
        if (order < 0) {
            emit_before(left, right, merged, splits);
        } else if (order > 0) {
            emit_before(right, left, merged, splits);
        } else {
            emit_newer(left, right, merged, splits);
        }
    }
}

enum stele_status range_set_merge(struct range_set *left,
                                  struct range_set *right,
                                  struct range_set **merged_out,
                                  uint64_t *splits, struct stele_error *error)
{
    struct merge_cursor left_cursor;
    struct merge_cursor right_cursor;
    struct range_set *merged;

    /* Sets are immutable: nothing to merge, nothing to copy. */
    if (left == NULL || right == NULL) {
        *merged_out = left == NULL ? right : left;
        range_set_ref(*merged_out);
        return STELE_OK;
    }
    /* A piece ends at each of the 2 * (left + right) bounds but the first. */
    merged = set_create(2 * (left->count + right->count));
    if (merged == NULL) {
        return error_no_memory(error, "range deletes");
    }
    left_cursor = cursor_init(left);
    right_cursor = cursor_init(right);
    merge_sweep(&left_cursor, &right_cursor, merged, splits);
    *merged_out = set_trim(merged);
    return STELE_OK;
}

/* ---- Builder --------------------------------------------------------------- */

/*
 * A binary counter: level i holds the union of 2^i additions, or nothing.
 * Versions ascend, so all of a level's are newer than all of the next one's.
 */

void range_builder_init(struct range_builder *builder)
{
    *builder = (struct range_builder){.splits = 0};
}

void range_builder_clear(struct range_builder *builder)
{
    for (size_t level = 0; level < RANGE_BUILDER_LEVELS; level++) {
        range_set_unref(builder->levels[level]);
        builder->levels[level] = NULL;
    }
}

void range_builder_deinit(struct range_builder *builder)
{
    range_builder_clear(builder);
}

bool range_builder_is_empty(const struct range_builder *builder)
{
    for (size_t level = 0; level < RANGE_BUILDER_LEVELS; level++) {
        if (builder->levels[level] != NULL) {
            return false;
        }
    }
    return true;
}

enum stele_status range_builder_add(struct range_builder *builder,
                                    struct bytes first, struct bytes end,
                                    uint64_t lsn, uint32_t op_index,
                                    struct stele_error *error)
{
    struct range_set *carry = set_create(1);
    size_t level = 0;

    assert(first.size > 0 && bytes_compare(first, end) < 0);
    if (carry == NULL) {
        return error_no_memory(error, "range deletes");
    }
    carry->fragments[carry->count++] = (struct range_fragment){
        .first = first, .end = end, .lsn = lsn, .op_index = op_index};

    while (builder->levels[level] != NULL) {
        struct range_set *merged;
        const enum stele_status status = range_set_merge(
            builder->levels[level], carry, &merged, &builder->splits, error);

        range_set_unref(carry);
        if (status != STELE_OK) {
            return status;
        }
        range_set_unref(builder->levels[level]);
        builder->levels[level] = NULL;
        carry = merged;
        level++;
        assert(level < RANGE_BUILDER_LEVELS);
    }
    builder->levels[level] = carry;
    return STELE_OK;
}

const struct range_fragment *range_builder_find(
    const struct range_builder *builder, struct bytes key)
{
    for (size_t level = 0; level < RANGE_BUILDER_LEVELS; level++) {
        const struct range_fragment *fragment =
            range_set_find(builder->levels[level], key);

        if (fragment != NULL) {
            return fragment;
        }
    }
    return NULL;
}

enum stele_status range_builder_finish(struct range_builder *builder,
                                       struct range_set *base,
                                       struct range_set **set_out,
                                       struct stele_error *error)
{
    struct range_set *set = NULL;

    /* The small ones first, `base` as the last level. */
    for (size_t level = 0; level <= RANGE_BUILDER_LEVELS; level++) {
        struct range_set *larger =
            level < RANGE_BUILDER_LEVELS ? builder->levels[level] : base;
        struct range_set *merged;
        const enum stele_status status =
            range_set_merge(set, larger, &merged, &builder->splits, error);

        range_set_unref(set);
        if (status != STELE_OK) {
            return status;
        }
        set = merged;
    }
    *set_out = set;
    return STELE_OK;
}
