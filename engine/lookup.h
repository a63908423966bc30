/*
 * engine/lookup.h -- what a key's newest visible version is: base + tail, for
 * one key. Point get, cursor, preconditions and outcomes all decide here.
 *
 * Versions compare by (LSN, op index). The rules, in order:
 *
 *   (1) the newest version of the key in the active memtable, else in the
 *       frozen one, is the candidate (everything in the active one is newer);
 *   (2) a candidate that a newer range fragment covers is deleted;
 *   (3) without a candidate, the base decides, unless a fragment with an LSN
 *       above the base value's covers the key: a base value is older than any
 *       tombstone above its LSN. (At the same LSN the base value survived its
 *       own batch: the checkpoint has applied it whole.)
 */
#ifndef ENGINE_LOOKUP_H
#define ENGINE_LOOKUP_H

#include <stdbool.h>
#include <stdint.h>

#include "base/bytes.h"
#include "base/status.h"
#include "engine/base.h"
#include "engine/state.h"

struct lookup_value {
    uint64_t lsn;
    struct bytes value; /* Borrowed from the memtable or the base. */
};

enum lookup_verdict {
    LOOKUP_PRESENT, /* *value_out is set. */
    LOOKUP_ABSENT,
    LOOKUP_BASE, /* Ask the base: present if its LSN is >= *base_lsn_min_out. */
};

/* Rules (1) and (2), given the candidate and the covering fragments; either may
 * be NULL. */
enum lookup_verdict lookup_decide(const struct memtable_version *candidate,
                                  const struct range_fragment *const *fragments,
                                  size_t fragment_count,
                                  struct lookup_value *value_out,
                                  uint64_t *base_lsn_min_out);

/*
 * Look `key` (a full key) up in `state` as of `lsn_max` and in the `base`
 * behind it (NULL: there is none). `pending` (may be NULL) holds range deletes
 * that are newer than the state's. OK, NOT_FOUND, CORRUPT.
 */
enum stele_status lookup_key(const struct state *state, uint64_t lsn_max,
                             struct range_builder *pending, struct base *base,
                             struct bytes key, struct lookup_value *value_out,
                             struct stele_error *error) STELE_MUST_CHECK;

#endif
