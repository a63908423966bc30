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

enum {
    PENDING_CAPACITY_MIN = 64,
    PENDING_SCANNED_MAX = 16, /* So few, a lookup goes through one by one. */
};

void range_builder_init(struct range_builder *builder)
{
    *builder = (struct range_builder){.splits = 0};
}

void range_builder_clear(struct range_builder *builder)
{
    while (builder->level_count > 0) {
        range_set_unref(builder->levels[--builder->level_count]);
    }
    builder->pending_count = 0;
}

void range_builder_deinit(struct range_builder *builder)
{
    range_builder_clear(builder);
    free(builder->pending);
    builder->pending = NULL;
    builder->pending_capacity = 0;
}

bool range_builder_is_empty(const struct range_builder *builder)
{
    return builder->pending_count == 0 && builder->level_count == 0;
}

enum stele_status range_builder_add(struct range_builder *builder,
                                    struct bytes first, struct bytes end,
                                    uint64_t lsn, uint32_t op_index,
                                    struct stele_error *error)
{
    assert(first.size > 0 && bytes_compare(first, end) < 0);
    if (builder->pending_count == builder->pending_capacity) {
        const size_t capacity = builder->pending_capacity == 0
                                    ? PENDING_CAPACITY_MIN
                                    : builder->pending_capacity * 2;
        struct range_fragment *grown =
            realloc(builder->pending, capacity * sizeof *grown);

        if (grown == NULL) {
            return error_no_memory(error, "range deletes");
        }
        builder->pending = grown;
        builder->pending_capacity = capacity;
    }
    builder->pending[builder->pending_count++] = (struct range_fragment){
        .first = first, .end = end, .lsn = lsn, .op_index = op_index};
    return STELE_OK;
}

/* What sorting compares: 8 bytes behind what all bounds have in common, as one
 * number, and only if they are equal the bounds themselves. */
struct sort_entry {
    uint64_t prefix;
    const struct range_fragment *fragment;
};

static size_t common_bytes(const struct range_fragment *fragments, size_t count)
{
    const uint8_t *model = fragments[0].first.data;
    size_t common = fragments[0].first.size;

    for (size_t index = 1; index < count; index++) {
        const struct bytes first = fragments[index].first;
        const uint8_t *data = first.data;
        size_t same = 0;

        while (same < common && same < first.size &&
               data[same] == model[same]) {
            same++;
        }
        common = same;
    }
    return common;
}

static uint64_t prefix_behind(struct bytes key, size_t skipped)
{
    const uint8_t *data = key.data;
    uint64_t prefix = 0;

    for (size_t index = skipped; index < skipped + sizeof prefix; index++) {
        prefix = prefix << 8 | (index < key.size ? data[index] : 0);
    }
    return prefix;
}

static int sort_compare(const void *left, const void *right)
{
    const struct sort_entry *a = left;
    const struct sort_entry *b = right;

    if (a->prefix != b->prefix) {
        return a->prefix < b->prefix ? -1 : 1;
    }
    return bytes_compare(a->fragment->first, b->fragment->first);
}

/* The pending fragments as one set, if none of them overlap: the usual case, a
 * prefix each. *set_out NULL: some do. */
static enum stele_status sort_disjoint(const struct range_fragment *pending,
                                       size_t count, struct range_set **set_out,
                                       struct stele_error *error)
{
    struct sort_entry *entries = malloc(count * sizeof *entries);
    struct range_set *set = set_create(count);
    const size_t common = common_bytes(pending, count);
    bool disjoint = true;

    *set_out = NULL;
    if (entries == NULL || set == NULL) {
        free(entries);
        range_set_unref(set);
        return error_no_memory(error, "range deletes");
    }
    for (size_t index = 0; index < count; index++) {
        entries[index] = (struct sort_entry){
            .prefix = prefix_behind(pending[index].first, common),
            .fragment = &pending[index]};
    }
    qsort(entries, count, sizeof *entries, sort_compare);
    for (size_t index = 0; index < count && disjoint; index++) {
        const struct range_fragment *fragment = entries[index].fragment;

        disjoint = index == 0 || bytes_compare(entries[index - 1].fragment->end,
                                               fragment->first) <= 0;
        set_append(set, fragment);
    }
    free(entries);
    if (disjoint) {
        *set_out = set;
    } else {
        range_set_unref(set);
    }
    return STELE_OK;
}

/* Half and half, the newer over the older. */
static enum stele_status merge_halves(const struct range_fragment *pending,
                                      size_t count, struct range_set **set_out,
                                      uint64_t *splits,
                                      struct stele_error *error);

static enum stele_status set_of(const struct range_fragment *pending,
                                size_t count, struct range_set **set_out,
                                uint64_t *splits, struct stele_error *error)
{
    const enum stele_status status =
        sort_disjoint(pending, count, set_out, error);

    if (status != STELE_OK || *set_out != NULL) {
        return status;
    }
    return merge_halves(pending, count, set_out, splits, error);
}

static enum stele_status merge_halves(const struct range_fragment *pending,
                                      size_t count, struct range_set **set_out,
                                      uint64_t *splits,
                                      struct stele_error *error)
{
    const size_t half = count / 2;
    struct range_set *older = NULL;
    struct range_set *newer = NULL;
    enum stele_status status = set_of(pending, half, &older, splits, error);

    assert(count >= 2); /* One alone overlaps nothing. */
    if (status == STELE_OK) {
        status = set_of(pending + half, count - half, &newer, splits, error);
    }
    if (status == STELE_OK) {
        status = range_set_merge(older, newer, set_out, splits, error);
    }
    range_set_unref(older);
    range_set_unref(newer);
    return status;
}

/* Turn what is pending into a set, and merge it with those that are not much
 * larger. NO_MEMORY: nothing changed. */
static enum stele_status fold(struct range_builder *builder,
                              struct stele_error *error)
{
    struct range_set *carry = NULL;
    size_t level_count = builder->level_count;
    enum stele_status status;

    if (builder->pending_count == 0) {
        return STELE_OK;
    }
    status = set_of(builder->pending, builder->pending_count, &carry,
                    &builder->splits, error);
    while (status == STELE_OK && level_count > 0 &&
           builder->levels[level_count - 1]->count < 2 * carry->count) {
        struct range_set *merged;

        status = range_set_merge(builder->levels[level_count - 1], carry,
                                 &merged, &builder->splits, error);
        if (status == STELE_OK) {
            range_set_unref(carry);
            carry = merged;
            level_count--;
        }
    }
    if (status != STELE_OK) {
        range_set_unref(carry);
        return status;
    }
    while (builder->level_count > level_count) {
        range_set_unref(builder->levels[--builder->level_count]);
    }
    /* Each is at least twice as large as the next: there is always room. */
    assert(builder->level_count < RANGE_BUILDER_LEVELS);
    builder->levels[builder->level_count++] = carry;
    builder->pending_count = 0;
    return STELE_OK;
}

const struct range_fragment *range_builder_find(struct range_builder *builder,
                                                struct bytes key)
{
    if (builder->pending_count > PENDING_SCANNED_MAX &&
        fold(builder, NULL) != STELE_OK) {
        /* No memory to sort them: the scan below finds the same. */
        assert(builder->pending_count > 0);
    }
    for (size_t index = builder->pending_count; index > 0; index--) {
        const struct range_fragment *fragment = &builder->pending[index - 1];

        if (bytes_compare(fragment->first, key) <= 0 &&
            bytes_compare(key, fragment->end) < 0) {
            return fragment;
        }
    }
    for (size_t level = builder->level_count; level > 0; level--) {
        const struct range_fragment *fragment =
            range_set_find(builder->levels[level - 1], key);

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
    enum stele_status status = fold(builder, error);

    if (status != STELE_OK) {
        return status;
    }
    /* The small ones first, `base` as the last level. */
    for (size_t level = builder->level_count + 1; level > 0; level--) {
        struct range_set *larger =
            level > 1 ? builder->levels[level - 2] : base;
        struct range_set *merged;

        status = range_set_merge(set, larger, &merged, &builder->splits, error);
        range_set_unref(set);
        if (status != STELE_OK) {
            return status;
        }
        set = merged;
    }
    *set_out = set;
    return STELE_OK;
}
