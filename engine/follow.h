/*
 * engine/follow.h -- a handle that only reads, beside a writer in another
 * process or without one.
 *
 * With a writer that has taken possession (it holds the second byte of LOCK) the
 * handle shows max(hint, durable slot, the index's applying): everything
 * acknowledged, unless the hint found no space. Otherwise it reaches the verdict
 * itself; what is not proven durable is synced, dropped from the cache and read
 * again before it is shown, so that a power cut cannot take it back. Whatever it
 * found counts only if nobody wrote meanwhile: else it looks again.
 */
#ifndef ENGINE_FOLLOW_H
#define ENGINE_FOLLOW_H

#include "base/status.h"
#include "engine/base.h"
#include "engine/store.h"

/* Bring a freshly opened read-only handle to the first state it shows. */
enum stele_status follow_start(struct stele *store,
                               struct stele_error *error) STELE_MUST_CHECK;

/* Show everything that was durable before this call, and pin it: a state and,
 * if there is an index, a reader that may be at or behind it, or ahead (the
 * caller tries again). */
enum stele_status follow_pin(struct stele *store, struct state **state_out,
                             struct base *base_out,
                             struct stele_error *error) STELE_MUST_CHECK;

/* Forget what was read of the log. */
void follow_drop_tail(struct stele *store);

void follow_stop(struct stele *store);

#endif
