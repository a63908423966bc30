/*
 * engine/quarantine.h -- quarantine/: damaged or foreign files and indexes, set
 * aside as evidence. The engine puts things there and deletes nothing of it.
 */
#ifndef ENGINE_QUARANTINE_H
#define ENGINE_QUARANTINE_H

#include "base/io.h"
#include "base/status.h"
#include "engine/store.h"

/*
 * Move `name` out of `dir` (which is the store's directory, or one inside it) to
 * quarantine/`name`.NNNN, the first number that is free, durably when it returns:
 * whatever gets the name next, the evidence stays. NOT_FOUND: there is nothing of
 * that name.
 */
enum stele_status quarantine_move(struct stele *store, struct io_dir *dir,
                                  const char *name,
                                  struct stele_error *error) STELE_MUST_CHECK;

#endif
