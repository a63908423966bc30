/*
 * engine/base_open.h -- deciding whether the index may be the base, and making a
 * new one when not.
 *
 * LMDB crashes on garbage, so a file that is not provably ours is never handed
 * to it: index/data.mdb must be the very file that ANCHOR names (inode and birth
 * time: a copy is another file), a regular one of the store's owner (or our own)
 * without a second name, and as long as its meta page
 * claims (engine/index_file.h). Then its uuid, generation and positions must check
 * against the log. Otherwise it is set aside in quarantine/ and built anew, from the
 * newest snapshot and the log: the index is expendable.
 */
#ifndef ENGINE_BASE_OPEN_H
#define ENGINE_BASE_OPEN_H

#include <stdbool.h>

#include "base/io.h"
#include "base/status.h"
#include "engine/store.h"

/*
 * Open index/ if it is provably ours. *usable_out false: it is missing, foreign,
 * suspect or damaged; `*why` (may be NULL) then says so in words.
 */
enum stele_status base_open(struct stele *store, bool *usable_out,
                            struct stele_error *why,
                            struct stele_error *error) STELE_MUST_CHECK;

/* The first step of opening: base_open(), unless the options say that index/ is
 * not to be touched. store->index is NULL without a usable one. */
enum stele_status base_find(struct stele *store,
                            struct stele_error *error) STELE_MUST_CHECK;

/*
 * Build index.tmp/ from the newest sound base that can be read and the log, up to less
 * than a memtable before its end (engine/rebuild.h); move index/, if there is one, into
 * quarantine/; name the new one in ANCHOR, make it index/ and open it. Killed on the way,
 * it starts over; if it cannot be built, index/ is left as it was.
 */
enum stele_status base_rebuild(struct stele *store,
                               struct stele_error *error) STELE_MUST_CHECK;

#endif
