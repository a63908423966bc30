/*
 * tests/lib/archive_dir.h -- an archive of a test's own, and stores restored from it,
 * in a temporary directory over tests/lib/io_fault.h.
 */
#ifndef TESTS_LIB_ARCHIVE_DIR_H
#define TESTS_LIB_ARCHIVE_DIR_H

#include <stdbool.h>
#include <stdint.h>

#include "engine/stele.h"
#include "engine/store.h"
#include "tests/lib/files.h"
#include "tests/lib/store_dir.h"

struct archive_dir {
    char *path;
    char archive[FILES_PATH_BYTES];  /* <path>/archive, not made yet. */
    char restored[FILES_PATH_BYTES]; /* <path>/restored, likewise. */
    char sibling[FILES_PATH_BYTES];  /* What it is called until it is whole. */
    struct stele_error error;
};

void archive_dir_make(struct archive_dir *dir);
void archive_dir_remove(struct archive_dir *dir);

/* "<archive>/<name>": borrowed until the next call. */
const char *archive_dir_at(const struct archive_dir *dir, const char *name);

/* ---- Backing up ---- */

enum stele_status archive_dir_try_backup(struct archive_dir *dir,
                                         struct stele *store,
                                         struct stele_backup_report *report);
/* Asserts that it works. */
struct stele_backup_report archive_dir_backup(struct archive_dir *dir,
                                              struct stele *store);

/* ---- Restoring ---- */

/* 0: all. */
enum stele_status archive_dir_try_restore(struct archive_dir *dir,
                                          uint64_t until_lsn,
                                          uint64_t until_time_ns,
                                          struct stele_restore_report *report);

/* The restored store, to be opened as any other; not made by opening. Only `path` is
 * the caller's to free. */
struct store_dir archive_dir_restored(const struct archive_dir *dir,
                                      const struct store_dir *like);

/* Remove what was restored, if anything was. */
void archive_dir_forget(struct archive_dir *dir);

/* Restore, open, verify, look at all of it, and remove it again: the digest of its
 * state (tests/lib/state_digest.h). Asserts that it works. */
uint64_t archive_dir_digest(struct archive_dir *dir,
                            const struct store_dir *like, uint64_t until_lsn);

#endif
