/*
 * engine/registry.h -- what this process has open, and whether it still is the
 * process that opened it.
 *
 * At most one handle per store: LMDB must not be opened twice in one process,
 * because closing one environment would drop the other's POSIX locks on
 * lock.mdb. Directories are told apart by device and inode, whatever path led
 * there.
 *
 * After fork(), a handle is the parent's. The child only has its memory: no
 * keepers, no threads to unlock what they had locked, no reader slot of its own.
 * So every process has a number, which its handles, views and cursors keep, and
 * every call on one of an older process is refused before it touches anything.
 * (vfork and posix_spawn run none of this, and need not: exec closes everything.)
 *
 * The lock on LOCK belongs to the open file, which a child has as well. It is
 * given up there at once: otherwise the store would stay locked for as long as
 * the child lives, when the parent has long closed it or was killed.
 */
#ifndef ENGINE_REGISTRY_H
#define ENGINE_REGISTRY_H

#include <stdint.h>

#include "base/io.h"
#include "base/status.h"

struct store_entry;

/* The number of this process: one more than its parent's. Any thread. */
uint64_t registry_process(void);

/* OK if `process` is this process, else FORKED. Touches nothing else. */
enum stele_status registry_check_process(
    uint64_t process, struct stele_error *error) STELE_MUST_CHECK;

/* LOCKED: this process has the directory open already. A handle that was
 * inherited does not count. */
enum stele_status registry_claim(uint64_t device, uint64_t inode,
                                 struct store_entry **entry_out,
                                 struct stele_error *error) STELE_MUST_CHECK;

/* Open LOCK, the file `name`: closed with the claim, or in a child, also one that
 * is forked meanwhile. Borrowed. Once a claim. NOT_FOUND, as io_file_open(). */
enum stele_status registry_open_lock(
    struct store_entry *entry, struct io_dir *dir, const char *name,
    enum io_open_mode mode, struct io_file **file_out,
    struct stele_error *error) STELE_MUST_CHECK;

/* Give the lock, then the claim up. Accepts NULL. In a child, the claim that was
 * inherited. */
void registry_release(struct store_entry *entry);

#endif
