/*
 * engine/past.h -- the state at a past LSN: the nearest base at or below it, and
 * the log from there, in a memtable of its own.
 *
 * Exact for every LSN that the retained log reaches: the state after the last
 * batch at or below it. Reads only. Costs the log between base and LSN, in time and
 * in memory, while the view lives.
 */
#ifndef ENGINE_PAST_H
#define ENGINE_PAST_H

#include "base/status.h"
#include "engine/base.h"
#include "engine/state.h"
#include "engine/store.h"

/* The state of a view at `lsn`, and its base. NOT_FOUND: older than what is
 * retained, or newer than what is durable; the message names that end. CORRUPT:
 * what it would have to be built from is damaged. Both are the caller's to
 * release: state_destroy(), base_release(). */
enum stele_status past_pin(struct stele *store, uint64_t lsn,
                           struct state **state_out, struct base *base_out,
                           struct stele_error *error) STELE_MUST_CHECK;

#endif
