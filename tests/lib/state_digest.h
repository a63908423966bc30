/*
 * tests/lib/state_digest.h -- a number that tells one state from another: every table,
 * key, value and LSN in it.
 */
#ifndef TESTS_LIB_STATE_DIGEST_H
#define TESTS_LIB_STATE_DIGEST_H

#include <stdint.h>

#include "engine/stele.h"

/* Of a view. Any failure ends the run (tests/lib/run.h). */
uint64_t state_digest(struct stele_view *view);

/* Of what the store shows now, and as it was at that LSN. */
uint64_t state_digest_now(struct stele *store);
uint64_t state_digest_at(struct stele *store, uint64_t lsn);

#endif
