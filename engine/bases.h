/*
 * engine/bases.h -- what a state can be built from besides the index: the
 * snapshots, and the empty state while the log is whole.
 *
 * A snapshot is a base if header and footer verify, it is of this store, and the
 * unit that its position names stands in the log. (That all of it verifies shows
 * when it is read.) Of one that is none, `why` says so; nothing is touched here.
 *
 * A snapshot counts if ANCHOR names it: it was read back and verified, and its
 * name and ANCHOR were durable, before anything was deleted on the strength of it.
 */
#ifndef ENGINE_BASES_H
#define ENGINE_BASES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/io.h"
#include "base/status.h"
#include "snapshot/format.h"
#include "wal/anchor.h"
#include "wal/position.h"

enum base_kind {
    BASE_ORIGIN,   /* The empty state, before the log's first unit. */
    BASE_SNAPSHOT, /* snapshot/<lsn>.snap */
};

struct base_item {
    enum base_kind kind;
    uint64_t lsn;                 /* Of the state; of its file. */
    struct wal_position position; /* Where the log goes on. */
    bool stands;                  /* It is a base. */
    bool claims;     /* Its position is readable and this store's: evidence. */
    bool counts;     /* ANCHOR names it. */
    bool trimmed;    /* What follows it in the log was removed: a leftover. */
    bool unreadable; /* An I/O error, not damage. */
    bool
        undecided; /* The log at its place cannot be read: not its own fault. */
    struct snapshot_info
        info;               /* Of a snapshot whose header and footer verify. */
    struct stele_error why; /* Unless it stands. */
};

struct bases {
    struct base_item *items; /* By LSN, the oldest first. */
    size_t count;
    bool log_whole; /* No segment was ever removed. */
    /* Where reading the log can begin: the origin, or the oldest base. */
    bool log_readable;
    struct wal_position log_start;
};

/* Whether this failure to read a snapshot is that file's own fault: damage, or an
 * error of the medium. The next older one may do. */
bool bases_is_damage(const struct stele_error *failure);
/* What to call it if no other one does: IO or CORRUPT. */
enum stele_status bases_status(const struct stele_error *why);

/* `snapshot_dir` NULL: there is none. EACCES, EMFILE and the like are errors; a
 * damaged or unreadable file is an item that does not stand. */
enum stele_status bases_read(struct io_dir *snapshot_dir,
                             struct io_dir *wal_dir,
                             const struct wal_anchor *anchor,
                             struct bases *bases_out,
                             struct stele_error *error) STELE_MUST_CHECK;
void bases_free(struct bases *bases); /* Accepts a zeroed one. */

/* The newest one that stands, of an LSN up to `lsn_max`; NULL: none. */
struct base_item *bases_newest(const struct bases *bases, uint64_t lsn_max);
/* It turned out to be none (bases_is_damage()): it no longer stands. */
void bases_rule_out(struct base_item *item, const struct stele_error *why);
/* The oldest one that stands; NULL: none. */
const struct base_item *bases_oldest(const struct bases *bases);

/* Why none of them stands: of one that could only not be read (STELE_IO), else of
 * the newest; NULL: there is none at all. Borrowed. */
const struct stele_error *bases_why_none(const struct bases *bases);

#endif
