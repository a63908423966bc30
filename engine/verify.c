/*
 * engine/verify.c -- reading everything and checking it: stele_verify(), and
 * looking for a tag in the log.
 *
 * The log is read from its start to what the handle shows, every unit whole and
 * every operation well-formed; on the way the index's positions are compared
 * with the units they name. Then the index: every value's check, every table's
 * count and sum.
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
#include "engine/view.h"
#include "wal/reader.h"
#include "wal/record.h"

struct verify {
    struct stele *store;
    struct stele_view *view;
    stele_verify_finding *finding;
    void *context;
    struct stele_verify_report report;
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
    enum stele_status status = wal_segment_open(
        store->wal_dir, seq, &store->uuid, IO_OPEN_READ, &segment, error);

    verify->report.segments++;
    if (status == STELE_OK) {
        wal_segment_close(&segment);
        return STELE_OK;
    }
    if (status != STELE_CORRUPT && status != STELE_FOREIGN &&
        status != STELE_NOT_FOUND) {
        return status; /* EACCES, EMFILE, EIO are not damage. */
    }
    problem(verify, "%s", error->message);
    return STELE_OK;
}

/* Headers, lengths and names of all of them: those that ANCHOR names, which have
 * to be there, and what was prepared since. */
static enum stele_status verify_segments(struct verify *verify,
                                         const struct numbered_list *found,
                                         struct stele_error *error)
{
    struct stele *store = verify->store;
    enum stele_status status = STELE_OK;
    uint64_t last;
    uint64_t seq;

    mutex_lock(&store->anchor_mutex);
    seq = store->anchor.segment_oldest;
    last = store->anchor.segment_last;
    mutex_unlock(&store->anchor_mutex);
    for (; status == STELE_OK && seq <= last; seq++) {
        status = verify_segment(verify, seq, error);
    }
    for (size_t index = numbered_list_lower(found, last + 1);
         status == STELE_OK && index < found->count; index++) {
        status = verify_segment(verify, found->numbers[index], error);
    }
    return status;
}

/* Where reading the log can begin: retention may have taken its beginning. */
static enum stele_status find_log_start(struct verify *verify,
                                        struct wal_position *start_out,
                                        struct stele_error *error)
{
    struct stele *store = verify->store;
    struct bases bases;
    enum stele_status status = bases_read(store->snapshot_dir, store->wal_dir,
                                          &store->anchor, &bases, error);

    if (status != STELE_OK) {
        return status;
    }
    if (bases.log_readable) {
        *start_out = bases.log_start;
    } else {
        *start_out = *index_reader_applied(verify->view->base.index);
    }
    bases_free(&bases);
    return STELE_OK;
}

static enum stele_status verify_log(struct verify *verify,
                                    struct stele_error *error)
{
    struct stele *store = verify->store;
    struct wal_position start;
    struct wal_reader reader;
    enum stele_status status = find_log_start(verify, &start, error);

    if (status == STELE_OK) {
        status =
            wal_reader_open(&reader, store->wal_dir, &start,
                            store_segment_oldest(store), IO_OPEN_READ, error);
    }
    if (status != STELE_OK) {
        return status;
    }
    verify_positions(verify, &start);
    while (reader.previous.lsn < verify->view->lsn) {
        struct wal_reader_unit unit;
        bool whole;

        status = wal_reader_next(&reader, &unit, &whole, error);
        if (status != STELE_OK) {
            break;
        }
        if (!whole) {
            problem(verify,
                    "wal/%016" PRIx64 ".wal: offset %" PRIu64 ": unit %" PRIu64
                    " is not whole, but the log goes on to LSN %" PRIu64,
                    reader.segment.seq, reader.offset, reader.previous.unit + 1,
                    verify->view->lsn);
            break;
        }
        verify->report.units++;
        verify->report.log_bytes +=
            unit.position.end_offset - unit.position.start_offset;
        verify_records(verify, &unit);
        verify_positions(verify, &unit.position);
    }
    verify->report.lsn_last = reader.previous.lsn;
    if (status == STELE_OK) {
        status = verify_segments(verify, &reader.segments, error);
    }
    wal_reader_close(&reader);
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

static enum stele_status verify_index(struct verify *verify,
                                      struct stele_error *error)
{
    const struct bytes everything = {"\x01", 1};
    struct tally tally;
    struct index_cursor *cursor;
    struct index_entry entry;
    enum stele_status status =
        index_cursor_open(verify->view->base.index, &cursor, error);

    if (status != STELE_OK) {
        return status;
    }
    if (!verify->applied_seen || !verify->applying_seen) {
        problem(verify, "index: %s is beyond the end of the log",
                verify->applied_seen ? "applying" : "applied");
    }
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

enum stele_status stele_verify(struct stele *store,
                               stele_verify_finding *finding, void *context,
                               struct stele_verify_report *report,
                               struct stele_error *error)
{
    struct verify verify = {
        .store = store, .finding = finding, .context = context};
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
    if (status == STELE_OK) {
        status = stele_view_open(store, &verify.view, reason);
    }
    if (status == STELE_OK) {
        status = verify_log(&verify, reason);
        if (status == STELE_OK && verify.view->base.index != NULL) {
            status = verify_index(&verify, reason);
        }
        stele_view_close(verify.view);
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

/* ---- Tags ------------------------------------------------------------------------- */

static bool find_tag_in_unit(const struct wal_reader_unit *unit,
                             const uint8_t *tag, uint64_t lsn_from,
                             uint64_t *lsn_out)
{
    struct byte_reader in = byte_reader_init(unit->body, unit->unit.body_bytes);
    struct wal_record record;

    while (in.offset < in.size && wal_record_decode(&in, &record)) {
        if (record.lsn >= lsn_from &&
            (record.flags & WAL_RECORD_HAS_TAG) != 0 &&
            memcmp(record.tag, tag, STELE_TAG_BYTES) == 0) {
            *lsn_out = record.lsn;
            return true;
        }
    }
    return false;
}

enum stele_status stele_find_tag(struct stele *store,
                                 const uint8_t tag[STELE_TAG_BYTES],
                                 uint64_t lsn_from, uint64_t *lsn_out,
                                 struct stele_error *error)
{
    struct wal_reader reader;
    struct stele_view *view;
    enum stele_status status = stele_view_open(store, &view, error);
    bool found = false;

    if (status != STELE_OK) {
        return status;
    }
    status = retained_open_log(store, &reader, error);
    if (status == STELE_OK) {
        /* Only as far as the handle shows: what a poisoned handle wrote last is
         * for the next open to decide. */
        while (status == STELE_OK && !found &&
               reader.previous.lsn < view->lsn) {
            struct wal_reader_unit unit;

            status = wal_reader_next_whole(&reader, &unit,
                                           "later ones are shown", error);
            found = status == STELE_OK &&
                    find_tag_in_unit(&unit, tag, lsn_from, lsn_out);
        }
        wal_reader_close(&reader);
    }
    stele_view_close(view);
    if (status == STELE_OK && !found) {
        status = error_set(error, STELE_NOT_FOUND,
                           "no batch with this tag from LSN %" PRIu64 " on",
                           lsn_from);
    }
    return status;
}
