/*
 * engine/checkpoint.h -- the frozen memtable into the index, in key order, in
 * several transactions.
 *
 * Each transaction carries applied = a and applying = c with the data; only the
 * last one sets applied = c. While applying > applied the index is a base only
 * for LSNs >= c: some of its keys are as of c already. A crash in between costs
 * nothing: the log from a on is replayed, and the checkpoint done again (it is
 * idempotent: each key goes to its newest version, whatever stands there). c is
 * the end of a unit that is durable: the index never holds what the log could
 * lose.
 *
 * A transaction is cut by an estimate of the pages it dirties (they are heap,
 * and LMDB fails at 128 Ki of them), and, when paced, by the number of
 * operations, so that commits do not queue behind its syncs.
 */
#ifndef ENGINE_CHECKPOINT_H
#define ENGINE_CHECKPOINT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/status.h"
#include "engine/index.h"
#include "engine/state.h"
#include "wal/position.h"

struct stele;
struct checkpoint;

/* Of `layer`, which holds the records after `applied` up to `end`. The layer
 * must live as long as the checkpoint. Nothing is written yet. */
enum stele_status checkpoint_create(struct index *index,
                                    const struct state_layer *layer,
                                    const struct wal_position *applied,
                                    const struct wal_position *end,
                                    uint64_t pages_max,
                                    struct checkpoint **checkpoint_out,
                                    struct stele_error *error) STELE_MUST_CHECK;
void checkpoint_destroy(struct checkpoint *checkpoint); /* Accepts NULL. */

/* From the next step on: dirty pages of a transaction, about. */
void checkpoint_limit_pages(struct checkpoint *checkpoint, uint64_t pages_max);

/*
 * One transaction of at most `ops_max` operations. *done_out: it was the last.
 * NO_SPACE, NO_MEMORY: nothing changed, the step may be tried again. Anything
 * else: this index must not be written again.
 */
enum stele_status checkpoint_step(struct checkpoint *checkpoint,
                                  uint64_t ops_max, bool *done_out,
                                  struct stele_error *error) STELE_MUST_CHECK;

/* ---- Of a store's frozen memtable ------------------------------------------ */

/* Whoever drains calls begin, steps and end; one thread at a time: the base
 * keeper, or a caller when there is none. */
enum stele_status checkpoint_begin(struct stele *store,
                                   struct checkpoint **checkpoint_out,
                                   struct stele_error *error) STELE_MUST_CHECK;
/* A step, with the bookkeeping; after the last one the frozen memtable is gone
 * and whoever waits for it is told. */
enum stele_status checkpoint_advance(
    struct stele *store, struct checkpoint *checkpoint, uint64_t ops_max,
    bool *done_out, struct stele_error *error) STELE_MUST_CHECK;

/* Drain the frozen memtable, if there is one, without pauses. */
enum stele_status checkpoint_run(struct stele *store,
                                 struct stele_error *error) STELE_MUST_CHECK;

#endif
