/*
 * tests/lib/store_snapshot.h -- a snapshot of an open store, and a log without its
 * beginning, made by hand.
 *
 * Any failure ends the run (tests/lib/run.h): child processes use this too.
 */
#ifndef TESTS_LIB_STORE_SNAPSHOT_H
#define TESTS_LIB_STORE_SNAPSHOT_H

#include <stdint.h>

#include "engine/stele.h"
#include "tests/lib/files.h"

/* Checkpoint, write what the index then holds, and name it in ANCHOR as the newest
 * of two. Its LSN. */
uint64_t store_snapshot_take(struct stele *store);

/* Move ANCHOR's oldest segment up to the one that the snapshot at `lsn` needs, and
 * remove those before it. Their number. */
uint64_t store_snapshot_trim(struct stele *store, uint64_t lsn);

/* "<dir>/snapshot/<lsn>.snap" */
void store_snapshot_path(const char *dir, uint64_t lsn,
                         char path_out[FILES_PATH_BYTES]);

#endif
