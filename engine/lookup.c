/* engine/lookup.c -- see engine/lookup.h. */
#include "engine/lookup.h"

#include "base/error.h"

enum lookup_verdict lookup_decide(const struct memtable_version *candidate,
                                  const struct range_fragment *const *fragments,
                                  size_t fragment_count,
                                  struct lookup_value *value_out,
                                  uint64_t *base_lsn_min_out)
{
    const struct range_fragment *newest = NULL;

    for (size_t index = 0; index < fragment_count; index++) {
        const struct range_fragment *fragment = fragments[index];

        if (fragment != NULL &&
            (newest == NULL || fragment->lsn > newest->lsn ||
             (fragment->lsn == newest->lsn &&
              fragment->op_index > newest->op_index))) {
            newest = fragment;
        }
    }
    if (candidate == NULL) {
        *base_lsn_min_out = newest == NULL ? 0 : newest->lsn;
        return LOOKUP_BASE;
    }
    if (candidate->kind == MEMTABLE_DELETE) {
        return LOOKUP_ABSENT;
    }
    if (newest != NULL && (newest->lsn > candidate->lsn ||
                           (newest->lsn == candidate->lsn &&
                            newest->op_index > candidate->op_index))) {
        return LOOKUP_ABSENT;
    }
    value_out->lsn = candidate->lsn;
    value_out->value = (struct bytes){candidate->value, candidate->value_bytes};
    return LOOKUP_PRESENT;
}

enum stele_status lookup_key(const struct state *state, uint64_t lsn_max,
                             struct range_builder *pending, struct base *base,
                             struct bytes key, struct lookup_value *value_out,
                             struct stele_error *error)
{
    const struct range_fragment *fragments[STATE_LAYERS + 1] = {NULL};
    const struct memtable_version *candidate = NULL;
    struct base_value found;
    uint64_t base_lsn_min = 0;
    enum stele_status status;
    bool hashed = false;
    uint64_t hash = 0;

    for (int index = 0; index < STATE_LAYERS; index++) {
        const struct state_layer *layer = &state->layers[index];

        if (layer->memtable == NULL) {
            continue;
        }
        /* An empty one, as after a checkpoint, is not even looked into: its
         * buckets would come from far. */
        if (candidate == NULL && memtable_node_count(layer->memtable) > 0) {
            if (!hashed) {
                /* One hash serves all: they share the store's seed. */
                hash = memtable_hash(layer->memtable, key);
                hashed = true;
            }
            candidate = memtable_find(layer->memtable, key, hash, lsn_max);
        }
        fragments[index] = range_set_find(layer->ranges, key);
    }
    if (pending != NULL) {
        fragments[STATE_LAYERS] = range_builder_find(pending, key);
    }
    switch (lookup_decide(candidate, fragments, STATE_LAYERS + 1, value_out,
                          &base_lsn_min)) {
    case LOOKUP_PRESENT:
        return STELE_OK;
    case LOOKUP_ABSENT:
        return STELE_NOT_FOUND;
    case LOOKUP_BASE:
        break;
    }
    if (base == NULL) {
        return STELE_NOT_FOUND;
    }
    status = base_get(base, key, &found, error);
    if (status != STELE_OK) {
        return status;
    }
    if (found.lsn < base_lsn_min) {
        return STELE_NOT_FOUND; /* Rule (3). */
    }
    value_out->lsn = found.lsn;
    value_out->value = found.value;
    return STELE_OK;
}
