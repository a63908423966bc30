/*
 * engine/registry.h -- at most one handle per store in a process.
 *
 * LMDB must not be opened twice in one process: closing one environment would
 * drop the other's POSIX locks on lock.mdb. Directories are told apart by device
 * and inode, whatever path led there.
 */
#ifndef ENGINE_REGISTRY_H
#define ENGINE_REGISTRY_H

#include <stdint.h>

#include "base/status.h"

struct store_entry;

/* LOCKED: this process has the directory open already. */
enum stele_status registry_claim(uint64_t device, uint64_t inode,
                                 struct store_entry **entry_out,
                                 struct stele_error *error) STELE_MUST_CHECK;
void registry_release(struct store_entry *entry); /* Accepts NULL. */

#endif
