/*
 * engine/verify.c -- reading everything and checking it: stele_verify().
 *
 * The log is read from its start to what the handle shows, every unit whole and
 * every operation well-formed; on the way the index's positions are compared
 * with the units they name. Then the snapshots (engine/verify_snapshots.h) and the
 * index: every value's check, every table's count and sum.
 *
 * Retention may move the log's start up meanwhile. What then is not found is no
 * damage: everything is read once more.
 */
#include <assert.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/numbered.h"
#include "engine/base_value.h"
#include "engine/bases.h"
#include "engine/ops.h"
#include "engine/retained.h"
#include "engine/store.h"
#include "engine/tally.h"
#include "engine/verify_snapshots.h"
#include "engine/view.h"
#include "wal/reader.h"
#include "wal/record.h"

enum { VERIFY_TRIES_MAX = 10 };

struct verify {
    struct stele *store;
    struct stele_view *view;
    struct wal_anchor anchor;    /* As it was at first. */
    struct io_dir *snapshot_dir; /* NULL: it is missing. */
    struct bases bases;
    stele_verify_finding *finding;
    void *context;
    struct stele_verify_report report;
    uint64_t unit_first; /* Of the log, as far as it is read. */
    bool log_read;       /* To its end: what was not seen is not in it. */
    bool applied_seen;
    bool applying_seen;
};

/* A stele_verify_finding. */
static void tell(void *context, const struct stele_error *problem)
{
    struct verify *verify = context;

    verify->report.problems++;
    if (verify->finding != NULL) {
        verify->finding(verify->context, problem);
    }
}

__attribute__((format(printf, 2, 3))) static void problem(struct verify *verify,
                                                          const char *format,
                                                          ...)
{
    char text[STELE_ERROR_MESSAGE_BYTES];
    struct stele_error error;
    va_list args;

    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    error_set(&error, STELE_CORRUPT, "%s", text);
    tell(verify, &error);
}

/* BUSY if retention has moved the log's start up since; else OK. */
static enum stele_status check_start(struct verify *verify,
                                     struct stele_error *error)
{
    struct wal_anchor now;
    const enum stele_status status =
        store_read_anchor(verify->store, &now, error);

    if (status == STELE_OK &&
        now.segment_oldest > verify->anchor.segment_oldest) {
        return error_set(error, STELE_BUSY,
                         "the log was cut at its start while it was read");
    }
    return status;
}

/* ---- The log ------------------------------------------------------------------ */

static void verify_records(struct verify *verify,
                           const struct wal_reader_unit *unit)
{
    struct byte_reader in = byte_reader_init(unit->body, unit->unit.body_bytes);

    while (in.offset < in.size) {
        struct wal_record record;
        struct ops_reader ops;
        enum ops_verdict verdict;
        struct op op;

        if (!wal_record_decode(&in, &record)) {
            return; /* The unit is whole: cannot happen. */
        }
        verify->report.records++;
        ops = ops_reader_init(record.body, record.body_bytes);
        do {
            verdict = ops_next(&ops, &op);
        } while (verdict == OPS_OP);
        if (verdict == OPS_BAD || ops.op_count != record.op_count) {
            problem(verify,
                    "wal/%016" PRIx64 ".wal: offset %" PRIu64
                    ": record with LSN %" PRIu64 ": operation %" PRIu32
                    " of %" PRIu32 " is malformed",
                    unit->unit.segment, unit->position.start_offset, record.lsn,
                    ops.op_count, record.op_count);
        }
    }
}

/* Does the position that the index names stand in the log? */
static void verify_position(struct verify *verify, const char *name,
                            const struct wal_position *claimed,
                            const struct wal_position *found, bool *seen)
{
    if (claimed->unit != found->unit) {
        return;
    }
    *seen = true;
    if (!wal_position_equal(claimed, found)) {
        problem(verify,
                "index: %s is unit %" PRIu64 " with LSN %" PRIu64
                ", which the log does not have: a foreign index",
                name, claimed->unit, claimed->lsn);
    }
}

static void verify_positions(struct verify *verify,
                             const struct wal_position *found)
{
    if (verify->view->base.index == NULL) {
        return;
    }
    verify_position(verify, "applied",
                    index_reader_applied(verify->view->base.index), found,
                    &verify->applied_seen);
    verify_position(verify, "applying",
                    index_reader_applying(verify->view->base.index), found,
                    &verify->applying_seen);
}

static enum stele_status verify_segment(struct verify *verify, uint64_t seq,
                                        struct stele_error *error)
{
    struct stele *store = verify->store;
    struct wal_segment segment;
    struct stele_error failure;
    enum stele_status status = wal_segment_open(
        store->wal_dir, seq, &store->uuid, IO_OPEN_READ, &segment, &failure);

    verify->report.segments++;
    if (status == STELE_OK) {
        wal_segment_close(&segment);
        return STELE_OK;
    }
    if (status != STELE_CORRUPT && status != STELE_FOREIGN &&
        status != STELE_NOT_FOUND) {
        *error = failure;
        return status; /* EACCES, EMFILE, EIO are not damage. */
    }
    status = check_start(verify, error);
    if (status == STELE_OK) {
        problem(verify, "%s", failure.message);
    }
    return status;
}

/* Headers, lengths and names of all of them: those that ANCHOR names, which have
 * to be there, and what was prepared since. */
static enum stele_status verify_segments(struct verify *verify,
                                         const struct numbered_list *found,
                                         struct stele_error *error)
{
    const uint64_t last = verify->anchor.segment_last;
    uint64_t seq = verify->anchor.segment_oldest;
    enum stele_status status = STELE_OK;

    for (; status == STELE_OK && seq <= last; seq++) {
        status = verify_segment(verify, seq, error);
    }
    for (size_t index = numbered_list_lower(found, last + 1);
         status == STELE_OK && index < found->count; index++) {
        status = verify_segment(verify, found->numbers[index], error);
    }
    return status;
}

static enum stele_status verify_units(struct verify *verify,
                                      struct wal_reader *reader,
                                      struct stele_error *error)
{
    while (reader->previous.lsn < verify->view->lsn) {
        struct wal_reader_unit unit;
        bool whole;
        enum stele_status status =
            wal_reader_next(reader, &unit, &whole, error);

        if (status == STELE_OK && !whole) {
            status = check_start(verify, error);
        }
        if (status != STELE_OK) {
            return status;
        }
        if (!whole) {
            problem(verify,
                    "wal/%016" PRIx64 ".wal: offset %" PRIu64 ": unit %" PRIu64
                    " is not whole, but the log goes on to LSN %" PRIu64,
                    reader->segment.seq, reader->offset,
                    reader->previous.unit + 1, verify->view->lsn);
            return STELE_OK;
        }
        verify->report.units++;
        verify->report.log_bytes +=
            unit.position.end_offset - unit.position.start_offset;
        verify_records(verify, &unit);
        verify_positions(verify, &unit.position);
    }
    verify->log_read = true;
    return STELE_OK;
}

/* Where its units begin. Without any base they are of no use, but what is left of
 * them is read all the same, if the index knows a place to start. */
static bool find_log_start(struct verify *verify,
                           struct wal_position *start_out)
{
    if (verify->bases.log_readable) {
        *start_out = verify->bases.log_start;
        return true;
    }
    problem(verify,
            "the log begins with wal/%016" PRIx64 ".wal, and there is no "
            "snapshot to go on from: no base but the index is left",
            verify->anchor.segment_oldest);
    if (verify->view->base.index == NULL) {
        return false;
    }
    *start_out = *index_reader_applied(verify->view->base.index);
    return true;
}

static enum stele_status verify_log(struct verify *verify,
                                    struct stele_error *error)
{
    struct wal_reader reader;
    struct stele_error failure;
    struct wal_position start;
    enum stele_status status;

    if (!find_log_start(verify, &start)) {
        return STELE_OK;
    }
    status =
        wal_reader_open(&reader, verify->store->wal_dir, &start,
                        verify->anchor.segment_oldest, IO_OPEN_READ, &failure);
    if (status == STELE_OK) {
        verify->unit_first = start.unit;
        verify_positions(verify, &start);
        status = verify_units(verify, &reader, &failure);
        verify->report.lsn_last = reader.previous.lsn;
        if (status == STELE_OK) {
            status = verify_segments(verify, &reader.segments, &failure);
        }
        wal_reader_close(&reader);
    }
    if (status == STELE_CORRUPT || status == STELE_FOREIGN) {
        /* Of a segment's header. What does not depend on it is read all the same. */
        status = check_start(verify, error);
        if (status == STELE_OK) {
            tell(verify, &failure);
        }
        return status;
    }
    if (status != STELE_OK) {
        *error = failure;
    }
    return status;
}

/* ---- The index ------------------------------------------------------------------- */

/* The pages above the entries carry no check: a walk may pass an entry that a
 * lookup, led elsewhere by a damaged branch, does not find. */
static void verify_lookup(struct verify *verify, struct bytes key)
{
    struct base_value ignored;
    struct stele_error lost;

    if (index_reader_get(verify->view->base.index, key, &ignored, NULL) ==
        STELE_NOT_FOUND) {
        base_entry_damaged("index", key,
                           "it is there, but is not found when looked up",
                           &lost);
        tell(verify, &lost);
    }
}

/* A position that was not met is behind the log's end; or before its start, where
 * nothing is left to compare it with. */
static void verify_ends(struct verify *verify)
{
    const struct wal_position *applied =
        index_reader_applied(verify->view->base.index);
    const struct wal_position *applying =
        index_reader_applying(verify->view->base.index);

    if (!verify->log_read) {
        return;
    }
    if (!verify->applied_seen && applied->unit >= verify->unit_first) {
        problem(verify, "index: applied is beyond the end of the log");
    } else if (!verify->applying_seen && applying->unit >= verify->unit_first) {
        problem(verify, "index: applying is beyond the end of the log");
    }
}

static enum stele_status verify_index(struct verify *verify,
                                      struct stele_error *error)
{
    const struct bytes everything = {"\x01", 1};
    struct tally tally;
    struct index_cursor *cursor;
    struct base_entry entry;
    enum stele_status status =
        index_cursor_open(verify->view->base.index, &cursor, error);

    if (status != STELE_OK) {
        return status;
    }
    verify_ends(verify);
    tally_init(&tally, "index", tell, verify);
    status = index_cursor_seek(cursor, everything, &entry, error);
    while (status == STELE_OK) {
        if (tally_add(&tally, entry.key, entry.stored, NULL) == STELE_OK) {
            verify_lookup(verify, entry.key);
        }
        status = index_cursor_next(cursor, &entry, error);
    }
    index_cursor_close(cursor);
    if (status != STELE_NOT_FOUND) {
        return status;
    }
    status = tally_end(&tally, NULL); /* Told of already. */
    verify->report.index_items = tally.totals.keys;
    verify->report.index_tables = tally.totals.tables;
    return status == STELE_CORRUPT ? STELE_OK : status;
}

/* ---- All of it ------------------------------------------------------------------ */

static enum stele_status find_bases(struct verify *verify,
                                    struct stele_error *error)
{
    struct stele *store = verify->store;
    enum stele_status status = store_read_anchor(store, &verify->anchor, error);

    if (status == STELE_OK) {
        status = io_dir_open_in(store->dir, STORE_SNAPSHOT_NAME,
                                &verify->snapshot_dir, error);
    }
    if (status == STELE_NOT_FOUND) {
        problem(verify, "snapshot/ is missing");
        status = STELE_OK;
    }
    return status == STELE_OK
               ? bases_read(verify->snapshot_dir, store->wal_dir,
                            &verify->anchor, &verify->bases, error)
               : status;
}

static enum stele_status verify_everything(struct verify *verify,
                                           struct stele_error *error)
{
    enum stele_status status = find_bases(verify, error);

    if (status == STELE_OK) {
        status = verify_log(verify, error);
    }
    if (status == STELE_OK) {
        const struct snapshots_to_verify what = {
            .store = verify->store,
            .dir = verify->snapshot_dir,
            .anchor = &verify->anchor,
            .bases = &verify->bases,
            .finding = tell,
            .context = verify,
        };

        status = verify_snapshots(&what, &verify->report, error);
    }
    if (status == STELE_OK && verify->view->base.index != NULL) {
        status = verify_index(verify, error);
    }
    bases_free(&verify->bases);
    io_dir_close(verify->snapshot_dir);
    return status;
}

enum stele_status stele_verify(struct stele *store,
                               stele_verify_finding *finding, void *context,
                               struct stele_verify_report *report,
                               struct stele_error *error)
{
    struct verify verify = {0};
    struct stele_error local;
    struct stele_error *reason = error == NULL ? &local : error;
    enum stele_status status = store_check_process(store, error);

    if (status != STELE_OK) {
        return status;
    }
    if (report->size == 0 || report->size > sizeof *report) {
        return error_set(error, STELE_INVALID,
                         "a report of %zu bytes: set size to sizeof",
                         report->size);
    }
    /* Relaxed commits that are not synced yet are no part of what must hold. */
    status = store->read_only ? STELE_OK : stele_sync(store, reason);
    if (status == STELE_POISONED) {
        status = STELE_OK; /* Reads go on. */
    }
    for (int tries = 1; status == STELE_OK; tries++) {
        verify = (struct verify){
            .store = store, .finding = finding, .context = context};
        status = stele_view_open(store, &verify.view, reason);
        if (status != STELE_OK) {
            break;
        }
        status = verify_everything(&verify, reason);
        stele_view_close(verify.view);
        if (status != STELE_BUSY || tries == VERIFY_TRIES_MAX) {
            break;
        }
        status = STELE_OK;
    }
    if (status != STELE_OK) {
        return error_wrap(reason, status, "verify");
    }
    verify.report.size = report->size;
    memcpy(report, &verify.report, report->size);
    if (verify.report.problems > 0) {
        return error_set(error, STELE_CORRUPT, "verify: %" PRIu64 " findings",
                         verify.report.problems);
    }
    return STELE_OK;
}
