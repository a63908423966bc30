/*
 * engine/forsake.h -- closing, in a child, the handle that it inherited.
 *
 * The child has the memory as it was at the moment of the fork, and none of the
 * threads that may have been changing it: their mutexes stay locked for ever,
 * and what they guard may be half done. And it shares with the parent what is
 * not memory: file offsets (unused here), LMDB's table of readers, locks.
 *
 * So nothing is written, synced, unlocked or waited for. Descriptors are closed,
 * and memory is freed that no thread was in the midst of changing; the rest
 * stays where it is. LMDB's environment stays in any case: mdb_env_close() would
 * clear the parent's reader slots in the shared table.
 */
#ifndef ENGINE_FORSAKE_H
#define ENGINE_FORSAKE_H

#include "engine/store.h"

/* Views and cursors may still be open, and can be closed afterwards. */
void store_forsake(struct stele *store);

#endif
