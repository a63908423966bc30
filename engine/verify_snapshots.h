/*
 * engine/verify_snapshots.h -- every snapshot of a store, read in full and checked:
 * the part of stele_verify() that is not about log and index.
 */
#ifndef ENGINE_VERIFY_SNAPSHOTS_H
#define ENGINE_VERIFY_SNAPSHOTS_H

#include "base/io.h"
#include "base/status.h"
#include "engine/bases.h"
#include "engine/stele.h"
#include "engine/store.h"

struct snapshots_to_verify {
    struct stele *store;
    struct io_dir *dir; /* NULL: there is none, and so no snapshot. */
    const struct wal_anchor *anchor; /* From before `bases` were read. */
    const struct bases *bases;
    stele_verify_finding *finding;
    void *context;
};

/*
 * What ANCHOR names must be there. Of each one that is there: every checksum, the
 * check of every value, each table's row against its keys, the footer's totals, and
 * its place in the log. Tells `finding` of damage, and counts into `report`. One that
 * retention removes meanwhile is left out. An I/O error is an error, not a finding.
 */
enum stele_status verify_snapshots(const struct snapshots_to_verify *what,
                                   struct stele_verify_report *report,
                                   struct stele_error *error) STELE_MUST_CHECK;

#endif
