/*
 * wal/recovery.c -- see wal/recovery.h for the table whose rows are cited here.
 *
 * The happy path: check that no segment is missing; check that the base stands
 * in the log; read whole units until there is none (N); scan from N to the end
 * of the last segment for bytes and for evidence; decide.
 */
#include "wal/recovery.h"

#include <assert.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/error.h"
#include "base/numbered.h"
#include "wal/reader.h"
#include "wal/segment.h"
#include "wal/unit.h"

enum { SCAN_CHUNK_BYTES = 256 << 10 }; /* Stays in the cache. */

enum wal_row wal_recovery_row(const struct wal_recovery_facts *facts)
{
    if (facts->refused) {
        return WAL_ROW_E;
    }
    if (facts->evidence) {
        return facts->page_zero ? WAL_ROW_B : WAL_ROW_D;
    }
    return facts->rest_zero ? WAL_ROW_A : WAL_ROW_C;
}

/* What is known about N while the rows are decided. */
struct search {
    struct wal_recovery_facts facts;
    uint64_t n;
    uint64_t segment; /* The place of N. */
    uint64_t offset;
    uint64_t segment_first; /* Where the scan begins. */
    uint64_t segment_remains;
    char evidence[96]; /* In words; the first that was found. */
};

__attribute__((format(printf, 2, 3))) static void note_evidence(
    struct search *search, const char *format, ...)
{
    va_list args;

    if (search->facts.evidence) {
        return;
    }
    search->facts.evidence = true;
    va_start(args, format);
    vsnprintf(search->evidence, sizeof search->evidence, format, args);
    va_end(args);
}

/* Row E: every segment from the oldest needed to the last named one exists. */
static enum stele_status check_no_gap(const struct wal_reader *reader,
                                      const struct wal_anchor *anchor,
                                      struct stele_error *error)
{
    const struct numbered_list *list = &reader->segments;
    size_t index = 0;

    for (uint64_t seq = anchor->segment_oldest; seq <= anchor->segment_last;
         seq++, index++) {
        if (index >= list->count || list->numbers[index] != seq) {
            return error_set(error, STELE_CORRUPT,
                             "wal/%016" PRIx64 ".wal: %s, segments %016" PRIx64
                             " to %016" PRIx64 " are needed",
                             seq,
                             seq == reader->blank_first ? "empty" : "missing",
                             anchor->segment_oldest, anchor->segment_last);
        }
    }
    return STELE_OK;
}

/* Compare the claims about this unit with what stands in the log. */
static void check_claims(const struct wal_recovery_input *input,
                         const struct wal_position *found)
{
    for (size_t index = 0; index < input->claim_count; index++) {
        struct wal_claim *claim = &input->claims[index];

        if (claim->position.unit == found->unit &&
            !wal_position_equal(&claim->position, found)) {
            claim->differs = true;
        }
    }
}

/* Read whole units until there is none. */
static enum stele_status read_units(const struct wal_recovery_input *input,
                                    struct wal_reader *reader,
                                    struct wal_recovery *recovery,
                                    struct stele_error *error)
{
    struct wal_position latest = input->base;

    recovery->proven = input->base;
    recovery->unit_proven = input->base.unit;
    recovery->end = input->base;
    check_claims(input, &input->base);
    for (;;) {
        struct wal_reader_unit found;
        enum stele_status status;
        bool whole;

        status = wal_reader_next(reader, &found, &whole, error);
        if (status != STELE_OK || !whole) {
            return status;
        }
        recovery->end = found.position;
        recovery->units++;
        recovery->records += found.unit.record_count;
        recovery->wall_ns_last = found.unit.wall_ns;
        if (found.unit.unit_durable > recovery->unit_proven) {
            recovery->unit_proven = found.unit.unit_durable;
        }
        if (latest.unit <= recovery->unit_proven) {
            recovery->proven = latest;
            latest = found.position;
        }
        check_claims(input, &found.position);
        if (input->anchor->durable.unit == found.position.unit &&
            !wal_position_equal(&input->anchor->durable, &found.position)) {
            recovery->row = WAL_ROW_D;
            return error_set(error, STELE_CORRUPT,
                             "wal/%016" PRIx64 ".wal: offset %" PRIu64
                             ": unit %" PRIu64
                             " is not the one that ANCHOR names",
                             found.position.segment,
                             found.position.start_offset, found.position.unit);
        }
    }
}

/* Not of this log: neither is anything else that it says. */
static bool source_differs(const struct wal_recovery_input *input,
                           unsigned source)
{
    for (size_t index = 0; index < input->claim_count; index++) {
        if (input->claims[index].source == source &&
            input->claims[index].differs) {
            return true;
        }
    }
    return false;
}

static void take_claims_as_evidence(const struct wal_recovery_input *input,
                                    struct wal_recovery *recovery,
                                    struct search *search)
{
    const struct wal_anchor *anchor = input->anchor;

    if (anchor->durable.unit >= search->n) {
        note_evidence(search, "ANCHOR names unit %" PRIu64 " as durable",
                      anchor->durable.unit);
    } else if (anchor->durable.unit > recovery->unit_proven) {
        recovery->unit_proven = anchor->durable.unit;
    }
    if (input->min_expected_lsn > recovery->end.lsn) {
        note_evidence(search, "the caller expects LSN %" PRIu64,
                      input->min_expected_lsn);
    }
    for (size_t index = 0; index < input->claim_count; index++) {
        const struct wal_claim *claim = &input->claims[index];

        if (source_differs(input, claim->source)) {
            continue;
        }
        if (claim->position.unit >= search->n) {
            note_evidence(search, "%s is unit %" PRIu64, claim->name,
                          claim->position.unit);
        } else if (claim->position.unit > recovery->unit_proven) {
            recovery->unit_proven = claim->position.unit;
        }
    }
}

/* A later segment has a unit of a number that was found before: the log once went
 * on there from an earlier place, and what was found since had been dropped. */
static enum stele_status contradiction(const struct wal_segment *segment,
                                       uint64_t place,
                                       const struct wal_unit *unit,
                                       struct stele_error *error)
{
    return error_set(error, STELE_CORRUPT,
                     "wal/%016" PRIx64 ".wal: offset %" PRIu64 ": unit %" PRIu64
                     " of incarnation %" PRIu64
                     ", but an earlier segment has a unit of this number",
                     segment->seq, place, unit->number, unit->incarnation);
}

/* Look at the pages of one segment from `offset` on: are they zero, is there a
 * unit header from `evidence_offset` on that proves N durable? */
static enum stele_status scan_segment(const struct wal_segment *segment,
                                      uint64_t offset, uint64_t evidence_offset,
                                      uint8_t *chunk, struct search *search,
                                      uint64_t *dropped_bytes,
                                      struct stele_error *error)
{
    while (offset < segment->bytes) {
        const uint64_t left = segment->bytes - offset;
        const size_t bytes =
            left < SCAN_CHUNK_BYTES ? (size_t)left : SCAN_CHUNK_BYTES;
        enum stele_status status =
            io_file_read_exact(segment->file, chunk, bytes, offset, error);

        if (status != STELE_OK) {
            return status;
        }
        if (bytes_are_zero(chunk, bytes)) {
            offset += bytes;
            continue;
        }
        for (size_t page = 0; page < bytes; page += WAL_PAGE_BYTES) {
            const uint64_t place = offset + page;
            struct wal_unit unit = {0};
            bool header;

            if (bytes_are_zero(chunk + page, WAL_PAGE_BYTES)) {
                continue;
            }
            header = wal_unit_decode_header(
                chunk + page, wal_unit_seed(segment->salt, place), segment->seq,
                place, segment->bytes, &unit);
            if (place == WAL_SEGMENT_HEADER_BYTES &&
                segment->seq != search->segment_first &&
                (search->facts.rest_zero ||
                 (header && unit.number == search->n))) {
                /* The writer had rotated: N was written here. */
                search->segment = segment->seq;
                search->offset = place;
            }
            if (header && segment->seq != search->segment_first &&
                unit.number < search->n) {
                return contradiction(segment, place, &unit, error);
            }
            search->facts.rest_zero = false;
            search->segment_remains = segment->seq;
            *dropped_bytes += WAL_PAGE_BYTES;
            if (segment->seq == search->segment && place == search->offset) {
                search->facts.page_zero = false;
            }
            if (header && place >= evidence_offset &&
                unit.unit_durable >= search->n) {
                note_evidence(search,
                              "the unit at wal/%016" PRIx64
                              ".wal, offset %" PRIu64 ", names unit %" PRIu64,
                              segment->seq, place, unit.unit_durable);
            }
        }
        offset += bytes;
    }
    return STELE_OK;
}

/* Where the scan for evidence in the segment of N starts: behind N's claimed
 * end, if its header verifies. */
static enum stele_status claimed_end(const struct wal_segment *segment,
                                     uint64_t offset, uint64_t *end_out,
                                     struct stele_error *error)
{
    uint8_t header[WAL_UNIT_HEADER_BYTES];
    struct wal_unit unit;
    enum stele_status status;

    *end_out = offset;
    if (offset >= segment->bytes) {
        return STELE_OK;
    }
    status =
        io_file_read_exact(segment->file, header, sizeof header, offset, error);
    if (status == STELE_OK &&
        wal_unit_decode_header(header, wal_unit_seed(segment->salt, offset),
                               segment->seq, offset, segment->bytes, &unit)) {
        *end_out = offset + wal_unit_padded_bytes(unit.body_bytes);
    }
    return status;
}

/* From N to the end of the last existing segment. */
static enum stele_status scan_rest(struct wal_reader *reader,
                                   struct search *search,
                                   uint64_t *dropped_bytes,
                                   struct stele_error *error)
{
    uint8_t *chunk = malloc(SCAN_CHUNK_BYTES);
    uint64_t evidence_offset;
    enum stele_status status;

    if (chunk == NULL) {
        return error_no_memory(error, "log scan");
    }
    status =
        claimed_end(&reader->segment, reader->offset, &evidence_offset, error);
    if (status == STELE_OK) {
        status = scan_segment(&reader->segment, reader->offset, evidence_offset,
                              chunk, search, dropped_bytes, error);
    }
    for (size_t index = reader->list_index + 1;
         status == STELE_OK && index < reader->segments.count; index++) {
        struct wal_segment segment;

        status =
            wal_segment_open(reader->wal_dir, reader->segments.numbers[index],
                             &reader->uuid, IO_OPEN_READ, &segment, error);
        if (status != STELE_OK) {
            break;
        }
        status = scan_segment(&segment, WAL_SEGMENT_HEADER_BYTES,
                              WAL_SEGMENT_HEADER_BYTES, chunk, search,
                              dropped_bytes, error);
        wal_segment_close(&segment);
    }
    free(chunk);
    return status;
}

/* N's place, unless the scan finds it in a later segment: behind the last unit,
 * or, if that segment is full, at the start of the next. */
static void place_of_n(const struct wal_reader *reader, struct search *search)
{
    search->segment = reader->segment.seq;
    search->segment_first = reader->segment.seq;
    search->offset = reader->offset;
    if (reader->offset >= reader->segment.bytes &&
        reader->list_index + 1 < reader->segments.count) {
        search->segment = reader->segments.numbers[reader->list_index + 1];
        search->offset = WAL_SEGMENT_HEADER_BYTES;
    }
}

static enum stele_status refuse(const struct search *search, enum wal_row row,
                                struct stele_error *error)
{
    return error_set(error, STELE_CORRUPT,
                     "wal/%016" PRIx64 ".wal: offset %" PRIu64 ": unit %" PRIu64
                     " is %s, but %s",
                     search->segment, search->offset, search->n,
                     row == WAL_ROW_B ? "lost" : "damaged", search->evidence);
}

static enum stele_status run(const struct wal_recovery_input *input,
                             struct wal_reader *reader,
                             struct wal_recovery *recovery,
                             struct stele_error *error)
{
    struct search search = {.facts = {.page_zero = true, .rest_zero = true}};
    enum stele_status status = check_no_gap(reader, input->anchor, error);

    if (status == STELE_OK) {
        status = read_units(input, reader, recovery, error);
    }
    if (status != STELE_OK) {
        return status;
    }
    search.n = recovery->end.unit + 1;
    place_of_n(reader, &search);
    take_claims_as_evidence(input, recovery, &search);
    recovery->segment_last =
        reader->segments.numbers[reader->segments.count - 1];
    /* A clean end that is where it was left: nothing was written since, and
     * nothing there could be evidence. Opening then reads no zeros. */
    if (search.facts.evidence || !input->anchor->clean ||
        !wal_position_equal(&input->anchor->durable, &recovery->end)) {
        status = scan_rest(reader, &search, &recovery->dropped_bytes, error);
        if (status != STELE_OK) {
            return status;
        }
    }
    recovery->segment_remains = search.segment_remains;
    recovery->row = wal_recovery_row(&search.facts);
    recovery->next_segment = reader->segment.seq;
    recovery->next_offset = reader->offset;
    switch (recovery->row) {
    case WAL_ROW_A:
    case WAL_ROW_C:
        return STELE_OK;
    case WAL_ROW_B:
    case WAL_ROW_D:
    case WAL_ROW_E: /* Returned above, where it was found. */
        break;
    }
    return refuse(&search, recovery->row, error);
}

enum stele_status wal_recovery_run(const struct wal_recovery_input *input,
                                   struct wal_recovery *recovery_out,
                                   struct stele_error *error)
{
    const struct wal_position origin = wal_anchor_origin(input->anchor);
    struct wal_recovery recovery = {0};
    struct wal_reader reader = {0};
    enum stele_status status;

    for (size_t index = 0; index < input->claim_count; index++) {
        input->claims[index].differs = false;
    }
    status = wal_reader_check_position(input->wal_dir, &input->base, &origin,
                                       input->anchor->segment_oldest,
                                       &recovery.base_found, error);
    if (status == STELE_OK && recovery.base_found) {
        status =
            wal_reader_open(&reader, input->wal_dir, &input->base,
                            input->anchor->segment_oldest, IO_OPEN_READ, error);
        if (status == STELE_OK) {
            status = run(input, &reader, &recovery, error);
        }
    }
    wal_reader_close(&reader);
    if (status != STELE_OK) {
        /* What failed before a row was found is row E. */
        return error_wrap(error, status, "recover: row %c",
                          recovery.row == 0 ? WAL_ROW_E : recovery.row);
    }
    *recovery_out = recovery;
    return STELE_OK;
}

/* ---- The accepted suffix ----------------------------------------------------- */

enum settle_mode { SETTLE_SYNC, SETTLE_SYNC_AND_DROP_CACHE };

/* Sync every segment that has a unit of the suffix. */
static enum stele_status settle(const struct wal_recovery_input *input,
                                const struct wal_recovery *recovery,
                                enum settle_mode mode,
                                struct stele_error *error)
{
    struct numbered_list list = {0};
    enum stele_status status =
        numbered_list_read(input->wal_dir, WAL_SEGMENT_SUFFIX, &list, error);
    size_t index = numbered_list_lower(&list, recovery->proven.segment);

    for (; status == STELE_OK && index < list.count &&
           list.numbers[index] <= recovery->end.segment;
         index++) {
        struct wal_segment segment;

        status = wal_segment_open(input->wal_dir, list.numbers[index],
                                  &input->anchor->uuid, IO_OPEN_READ, &segment,
                                  error);
        if (status != STELE_OK) {
            break;
        }
        status = io_file_sync(segment.file, error);
        if (status == STELE_OK && mode == SETTLE_SYNC_AND_DROP_CACHE) {
            status = io_file_drop_cache(segment.file, error);
        }
        wal_segment_close(&segment);
    }
    numbered_list_free(&list);
    return status;
}

/* Write the units after unit_proven where they are. */
static enum stele_status rewrite(const struct wal_recovery_input *input,
                                 const struct wal_recovery *recovery,
                                 struct stele_error *error)
{
    struct wal_reader reader;
    enum stele_status status = wal_reader_open(
        &reader, input->wal_dir, &recovery->proven,
        input->anchor->segment_oldest, IO_OPEN_READ_WRITE, error);

    if (status != STELE_OK) {
        return status;
    }
    while (reader.previous.unit < recovery->end.unit) {
        struct wal_reader_unit found;
        bool whole;

        status = wal_reader_next(&reader, &found, &whole, error);
        if (status == STELE_OK && !whole) {
            status = error_set(
                error, STELE_BUSY,
                "wal/%016" PRIx64 ".wal: offset %" PRIu64 ": unit %" PRIu64
                " is not whole, but was when it was first read",
                reader.segment.seq, reader.offset, reader.previous.unit + 1);
        }
        if (status == STELE_OK && found.unit.number > recovery->unit_proven) {
            status = io_file_write(reader.segment.file, found.header,
                                   WAL_UNIT_HEADER_BYTES +
                                       (size_t)found.unit.body_bytes,
                                   found.position.start_offset, error);
        }
        if (status != STELE_OK) {
            break;
        }
    }
    wal_reader_close(&reader);
    return status;
}

enum stele_status wal_recovery_harden(const struct wal_recovery_input *input,
                                      const struct wal_recovery *recovery,
                                      struct stele_error *error)
{
    enum stele_status status;

    if (recovery->end.unit <= recovery->unit_proven) {
        return STELE_OK;
    }
    status = rewrite(input, recovery, error);
    if (status == STELE_OK) {
        /* Before the suffix is shown, or built upon. */
        status = settle(input, recovery, SETTLE_SYNC, error);
    }
    return status == STELE_OK
               ? STELE_OK
               : error_wrap(error, status, "recover: write the tail again");
}

enum stele_status wal_recovery_settle(const struct wal_recovery_input *input,
                                      const struct wal_recovery *recovery,
                                      struct stele_error *error)
{
    enum stele_status status;

    if (recovery->end.unit <= recovery->unit_proven) {
        return STELE_OK;
    }
    status = settle(input, recovery, SETTLE_SYNC_AND_DROP_CACHE, error);
    return status == STELE_OK
               ? STELE_OK
               : error_wrap(error, status, "recover: settle the tail");
}
