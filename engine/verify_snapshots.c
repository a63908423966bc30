/* engine/verify_snapshots.c -- see engine/verify_snapshots.h. */
#include "engine/verify_snapshots.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/error.h"
#include "base/numbered.h"
#include "engine/tally.h"
#include "snapshot/reader.h"

enum { NAME_BYTES = sizeof STORE_SNAPSHOT_NAME + NUMBERED_NAME_BYTES };

static void name_snapshot(uint64_t lsn, char name_out[NAME_BYTES])
{
    char name[NUMBERED_NAME_BYTES];

    numbered_name(lsn, SNAPSHOT_SUFFIX, name);
    snprintf(name_out, NAME_BYTES, "%s/%s", STORE_SNAPSHOT_NAME, name);
}

static void tell(const struct snapshots_to_verify *what,
                 const struct stele_error *problem)
{
    what->finding(what->context, problem);
}

/* Damage, of this file alone? It is told, then, and the others are looked at. */
static enum stele_status sort_out(const struct snapshots_to_verify *what,
                                  const struct stele_error *failure,
                                  struct stele_error *error)
{
    if (failure->status == STELE_CORRUPT || failure->status == STELE_FOREIGN) {
        tell(what, failure);
        return STELE_OK;
    }
    if (error != NULL) {
        *error = *failure;
    }
    return failure->status;
}

/* ---- One that is not there --------------------------------------------------- */

static bool names(const struct wal_anchor *anchor, uint64_t lsn)
{
    for (size_t index = 0; index < WAL_ANCHOR_SNAPSHOTS; index++) {
        if (anchor->snapshots[index] == lsn) {
            return true;
        }
    }
    return false;
}

/* Unless retention has just removed it: that is in ANCHOR before the file goes. */
static enum stele_status missing(const struct snapshots_to_verify *what,
                                 uint64_t lsn, struct stele_error *error)
{
    struct stele_error problem;
    struct wal_anchor anchor;
    char name[NAME_BYTES];
    enum stele_status status = store_read_anchor(what->store, &anchor, error);

    if (status == STELE_OK && names(&anchor, lsn)) {
        name_snapshot(lsn, name);
        error_set(&problem, STELE_CORRUPT,
                  "%s: it is missing, but ANCHOR names it", name);
        tell(what, &problem);
    }
    return status;
}

static bool is_listed(const struct bases *bases, uint64_t lsn)
{
    for (size_t index = 0; index < bases->count; index++) {
        if (bases->items[index].kind == BASE_SNAPSHOT &&
            bases->items[index].lsn == lsn) {
            return true;
        }
    }
    return false;
}

/* One that ANCHOR names only by now was taken after the others were listed. */
static enum stele_status verify_named(const struct snapshots_to_verify *what,
                                      struct stele_error *error)
{
    enum stele_status status = STELE_OK;

    for (size_t index = 0; status == STELE_OK && index < WAL_ANCHOR_SNAPSHOTS;
         index++) {
        const uint64_t lsn = what->anchor->snapshots[index];

        if (lsn != 0 && !is_listed(what->bases, lsn)) {
            status = missing(what, lsn, error);
        }
    }
    return status;
}

/* ---- One that is there --------------------------------------------------------- */

/* To its end, or to the first block that does not verify. */
static enum stele_status read_through(const struct snapshots_to_verify *what,
                                      struct snapshot_reader *reader,
                                      const char *name,
                                      struct stele_error *error)
{
    struct snapshot_entry entry;
    struct stele_error failure;
    struct tally tally;
    enum stele_status status;
    bool sound = true;

    tally_init(&tally, name, what->finding, what->context);
    while ((status = snapshot_reader_next(reader, &entry, &failure)) ==
           STELE_OK) {
        sound = tally_add(&tally, entry.key, entry.stored, NULL) == STELE_OK &&
                sound;
    }
    if (status != STELE_NOT_FOUND) {
        return sort_out(what, &failure, error);
    }
    sound = tally_end(&tally, NULL) == STELE_OK && sound;
    if (sound && /* Else the totals say nothing new. */
        tally_check_totals(&tally, &snapshot_reader_info(reader)->totals,
                           &failure) != STELE_OK) {
        tell(what, &failure);
    }
    return STELE_OK;
}

static enum stele_status verify_one(const struct snapshots_to_verify *what,
                                    const struct base_item *item,
                                    struct stele_verify_report *report,
                                    struct stele_error *error)
{
    struct snapshot_reader *reader;
    struct stele_error failure;
    char name[NAME_BYTES];
    enum stele_status status;

    if (item->unreadable) {
        return sort_out(what, &item->why, error);
    }
    status = snapshot_reader_open(what->dir, item->lsn, SNAPSHOT_PUBLISHED,
                                  what->store->uuid.bytes, &reader, &failure);
    if (status == STELE_NOT_FOUND) {
        return missing(what, item->lsn, error);
    }
    report->snapshots++;
    if (status != STELE_OK) {
        return sort_out(what, &failure, error);
    }
    report->snapshot_bytes += snapshot_reader_info(reader)->file_bytes;
    if (item->why.status == STELE_CORRUPT && !item->stands &&
        !item->undecided) {
        tell(what, &item->why); /* Its place in the log. */
    }
    name_snapshot(item->lsn, name);
    status = read_through(what, reader, name, error);
    snapshot_reader_close(reader);
    return status;
}

enum stele_status verify_snapshots(const struct snapshots_to_verify *what,
                                   struct stele_verify_report *report,
                                   struct stele_error *error)
{
    enum stele_status status = verify_named(what, error);

    for (size_t index = 0; status == STELE_OK && index < what->bases->count;
         index++) {
        const struct base_item *item = &what->bases->items[index];

        /* Leftovers of retention are no part of the store. */
        if (item->kind == BASE_SNAPSHOT && (item->counts || !item->trimmed)) {
            status = verify_one(what, item, report, error);
        }
    }
    return status;
}
