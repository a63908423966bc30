/*
 * engine/follow.h -- a handle that only reads, beside a writer in another
 * process or without one.
 *
 * With a writer alive (it holds LOCK) the handle shows max(hint, durable slot,
 * the index's applying): everything acknowledged. Without one it runs recovery
 * itself; what is not proven durable is synced, dropped from the cache and read
 * again before it is shown, so that a power cut cannot take it back.
 */
#ifndef ENGINE_FOLLOW_H
#define ENGINE_FOLLOW_H

#include "base/status.h"
#include "engine/store.h"

/* Bring a freshly opened read-only handle to the first state it shows. */
enum stele_status follow_start(struct stele *store,
                               struct stele_error *error) STELE_MUST_CHECK;

/* Show everything that was durable before this call. */
enum stele_status follow_catch_up(struct stele *store,
                                  struct stele_error *error) STELE_MUST_CHECK;

void follow_stop(struct stele *store);

#endif
