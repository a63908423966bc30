/*
 * tests/sim/snapshot.h -- a snapshot's file, compared with the state that it should
 * be.
 */
#ifndef TESTS_SIM_SNAPSHOT_H
#define TESTS_SIM_SNAPSHOT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "engine/store.h"
#include "tests/sim/history.h"

/* Whether snapshot/<lsn>.snap of `store` verifies to its end and holds every key of
 * the state after batch `number`, no other, and rows that count them. False: `text`
 * says what is wrong. */
bool sim_snapshot_matches(const struct sim_history *history, uint32_t number,
                          const struct stele *store, uint64_t lsn, char *text,
                          size_t bytes);

#endif
