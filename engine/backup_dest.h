/*
 * engine/backup_dest.h -- the directory that a backup goes to: made, or recognized
 * as an archive of this store, and locked.
 *
 * What is neither is not touched: a directory with anything in it but an archive, an
 * archive of another store or a damaged one, a place inside the store itself. An
 * archive that did not come to its end is known by ARCHIVE.lock, which is durable
 * before there is anything else.
 */
#ifndef ENGINE_BACKUP_DEST_H
#define ENGINE_BACKUP_DEST_H

#include <stdbool.h>

#include "base/io.h"
#include "base/status.h"
#include "engine/archive.h"
#include "engine/store.h"

struct backup_dest {
    struct io_dir *dir;
    struct io_dir *snapshot_dir;
    struct io_dir *wal_dir;
    struct io_file *lock;
    bool has_earlier;
    struct archive earlier; /* What the last backup vouches for. */
};

/* LOCKED: another backup is writing to it. FOREIGN, CORRUPT, INVALID: as above. */
enum stele_status backup_dest_open(struct stele *store, const char *path,
                                   struct backup_dest *dest_out,
                                   struct stele_error *error) STELE_MUST_CHECK;

/* Accepts a zeroed one. */
void backup_dest_close(struct backup_dest *dest);

#endif
