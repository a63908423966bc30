/*
 * tests/lib/history.h -- batches whose result can be told from their number.
 *
 * Batch n of an owner replaces what the owner has in two tables, in one of four
 * ways (point by point, by prefix, by range, by clearing the table), and leaves
 * a trace of itself in a third. The owner's whole state after batch n follows
 * from n alone: a state that belongs to no n is torn, has lost a batch, or has
 * something back that was deleted.
 *
 *     table "shared"     "<owner>/=" holds n; "<owner>/a" .. "<owner>/h": some
 *     table "own-<owner>"                     "a" .. "h": some
 *     table "trail"      "<owner>/<n mod 128>" holds n, for the last 128 batches,
 *                        less what every 32nd batch deletes by range: the next 8
 *
 * Owners do not touch each other's keys, so each may be committed by a thread of
 * its own. 0 is the empty state.
 */
#ifndef TESTS_LIB_HISTORY_H
#define TESTS_LIB_HISTORY_H

#include <stdint.h>

#include "engine/stele.h"

/* Clear the batch and fill it with batch n of the owner; n from 1. */
void history_fill(struct stele_batch *batch, uint32_t owner, uint64_t n);

struct history_seen {
    uint64_t n;
    uint64_t lsn; /* Of batch n; 0 for n = 0. */
};

/* Which state of the owner the view shows. Reads everything, forwards and
 * backwards and by point; fails the run, with what differs, unless it is exactly
 * the state after some n, with LSNs to match. */
struct history_seen history_check(struct stele_view *view, uint32_t owner);

#endif
