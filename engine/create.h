/* engine/create.h -- making a new store, and telling what a directory is. */
#ifndef ENGINE_CREATE_H
#define ENGINE_CREATE_H

#include <stdbool.h>

#include "base/io.h"
#include "base/status.h"
#include "engine/stele.h"
#include "wal/anchor.h"

/* Make the directory `path` unless it is there, its name durable. */
enum stele_status create_directory(struct io *io, const char *path,
                                   struct stele_error *error) STELE_MUST_CHECK;

enum directory_kind {
    DIRECTORY_STORE,      /* It has an ANCHOR. */
    DIRECTORY_EMPTY,      /* Nothing, or only LOCK. */
    DIRECTORY_UNFINISHED, /* A creation that did not come to its end. */
    DIRECTORY_DAMAGED,    /* Units in the log, but no ANCHOR. */
    DIRECTORY_FOREIGN,    /* Anything else: not ours, not touched. */
};

/* Writes nothing. `what_out` names what made it foreign or damaged. */
enum stele_status create_classify(struct io_dir *dir,
                                  enum directory_kind *kind_out,
                                  char what_out[IO_NAME_BYTES_MAX + 1],
                                  struct stele_error *error) STELE_MUST_CHECK;

/*
 * Make a store in an empty directory, or over an unfinished creation; the
 * caller holds LOCK. wal/ and snapshot/, the first segment, and last ANCHOR:
 * until its name is durable there is no store.
 */
enum stele_status create_store(struct io_dir *dir, uint64_t segment_bytes,
                               struct stele_error *error) STELE_MUST_CHECK;

/* Its parts, for a store that is to begin with a state: the ANCHOR of an empty
 * store with a uuid of its own; and all of the store but ANCHOR. */
enum stele_status create_anchor(struct io *io, uint64_t segment_bytes,
                                struct wal_anchor *anchor_out,
                                struct stele_error *error) STELE_MUST_CHECK;
enum stele_status create_layout(struct io_dir *dir,
                                const struct wal_anchor *anchor,
                                struct stele_error *error) STELE_MUST_CHECK;

#endif
