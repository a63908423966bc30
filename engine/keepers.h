/*
 * engine/keepers.h -- the two threads of a store open for writing.
 *
 *     log keeper    prepares segments; syncs relaxed units within
 *                   relaxed_sync_ms; writes ANCHOR after a short idle, and
 *                   freezes the memtable after a long one; leads when only
 *                   asynchronous commits are queued.
 *     base keeper   checkpoints; takes snapshots, removes what they make
 *                   superfluous; looks for reader slots of dead processes; has
 *                   damage of the index noted in ANCHOR, within a second. It
 *                   never takes the log role, whose holder may wait for it.
 *
 * All signals are blocked in both.
 */
#ifndef ENGINE_KEEPERS_H
#define ENGINE_KEEPERS_H

#include "base/status.h"
#include "engine/store.h"

enum stele_status keepers_start(struct stele *store,
                                struct stele_error *error) STELE_MUST_CHECK;

/* What the log keeper does when it looks around: sync relaxed units, prepare a
 * segment, write ANCHOR, freeze, as far as each is due. Returns when to look
 * again, in ns; 0: when told. In manual mode, for whoever plays the keeper. */
uint64_t keepers_tend_log(struct stele *store);

/* There is work for the log keeper: it will look, also if it is just about to
 * wait. Under keeper_mutex. */
void keepers_kick_log(struct stele *store);

/* Both have returned: nothing happens by itself any more. A checkpoint under
 * way is left where it is, between two transactions; a snapshot is given up. */
void keepers_stop(struct stele *store);

#endif
