/* engine/enter.h -- the first half of opening: whose directory is this? */
#ifndef ENGINE_ENTER_H
#define ENGINE_ENTER_H

#include "base/status.h"
#include "engine/store.h"

/* Open the directory (made first, if the mode says so), claim it in this
 * process, and see what kind of file system it is on. */
enum stele_status enter_directory(struct stele *store, const char *path,
                                  struct stele_error *error) STELE_MUST_CHECK;

/* Tell what the directory is; for writing, lock it, and make a store of it if
 * that was asked. LOCKED names the holder. */
enum stele_status enter_store(struct stele *store,
                              struct stele_error *error) STELE_MUST_CHECK;

/* Of a writer: say that it has taken possession. ANCHOR and the hint are of this
 * life from now on. */
enum stele_status enter_declare(struct stele *store,
                                struct stele_error *error) STELE_MUST_CHECK;

/* For a read-only handle: whether another process has the store open for
 * writing. */
enum stele_status enter_writer_alive(struct stele *store, bool *alive_out,
                                     struct stele_error *error)
    STELE_MUST_CHECK;

/* ... and has taken possession. */
enum stele_status enter_writer_declared(struct stele *store, bool *declared_out,
                                        struct stele_error *error)
    STELE_MUST_CHECK;

#endif
