/*
 * engine/apply.h -- the bytes of a batch, applied to memory at a given LSN.
 *
 * The one path: the commit leader, replay at open, and a reader that follows
 * another process's log all come through here.
 */
#ifndef ENGINE_APPLY_H
#define ENGINE_APPLY_H

#include <stdint.h>

#include "base/bytes.h"
#include "base/status.h"
#include "engine/base.h"
#include "engine/lookup.h"
#include "engine/ranges.h"
#include "engine/state.h"
#include "engine/stele.h"

struct apply_target {
    struct memtable *memtable;
    struct range_builder *ranges;
};

/* What preconditions and outcomes are evaluated against: everything before this
 * operation, published or not. */
struct apply_lookup {
    const struct state *state;
    struct range_builder *pending; /* The target's. */
    struct base *base;             /* NULL: none. */
};

/*
 * Evaluate all expectations of `body` against the state before the batch.
 * PRECONDITION: *failed_op_out is the first that does not hold, and the message
 * names table and key. `body` is known to be well-formed.
 */
enum stele_status apply_expectations(
    const struct apply_lookup *lookup, struct bytes body,
    uint64_t *failed_op_out, struct stele_error *error) STELE_MUST_CHECK;

/*
 * Insert the operations of `body` as LSN `lsn`. `outcomes`, if not NULL, gets
 * one entry for each operation, looked up with `lookup`. CORRUPT: not a body.
 * After any failure the target holds part of the batch: withdraw.
 */
enum stele_status apply_body(const struct apply_target *target,
                             struct bytes body, uint64_t lsn,
                             const struct apply_lookup *lookup,
                             enum stele_op_outcome *outcomes,
                             struct stele_error *error) STELE_MUST_CHECK;

#endif
