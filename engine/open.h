/* engine/open.h -- the second half of opening: what is in the store? */
#ifndef ENGINE_OPEN_H
#define ENGINE_OPEN_H

#include "base/status.h"
#include "engine/store.h"

/* Read ANCHOR, open wal/. */
enum stele_status open_anchor(struct stele *store,
                              struct stele_error *error) STELE_MUST_CHECK;

/* Recover, take possession, replay, and start the keepers. */
enum stele_status open_for_writing(struct stele *store,
                                   struct stele_error *error) STELE_MUST_CHECK;

/* Show what is there, writing nothing. */
enum stele_status open_for_reading(struct stele *store,
                                   struct stele_error *error) STELE_MUST_CHECK;

#endif
