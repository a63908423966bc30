/*
 * engine/damage.h -- damage that is met in the index while the store is open.
 *
 * Whoever reads the index notes it: one atomic store, no lock and no I/O in a
 * thread that reads. The base keeper then has it written into ANCHOR, and the
 * next open for writing sets this index aside and builds it anew from what is
 * sound. Until then it stays in use: every value in it is verified when it is
 * read. A handle that only reads tells its statistics, nobody else.
 */
#ifndef ENGINE_DAMAGE_H
#define ENGINE_DAMAGE_H

#include <stdatomic.h>
#include <stdbool.h>

#include "base/status.h"
#include "engine/store.h"

/* Notes it if `status`, which reading the index came to, is damage. Returns
 * `status`. From any thread. */
static inline enum stele_status damage_note(struct stele *store,
                                            enum stele_status status)
{
    if (status == STELE_CORRUPT) {
        atomic_store(&store->index_damaged, true);
    }
    return status;
}

/* Have it in ANCHOR, also that a commit of the index failed, if that is due. What
 * fails is tried again by the next call. For writers: the base keeper, now and
 * then; without one, and at close, whoever takes checkpoints. Takes anchor_mutex
 * and keeper_mutex. */
void damage_tend(struct stele *store);

/* The statistics: by this handle, or by one before it. */
bool damage_is_known(struct stele *store);

#endif
