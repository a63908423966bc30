/* wal/reader.c -- see wal/reader.h. */
#include "wal/reader.h"

#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"

enum { READER_WINDOW_BYTES = 256 << 10 };

/* Leave out blank segments at the end: nothing is in them, and no later segment
 * makes them a gap. The first one always counts. */
static enum stele_status drop_blank(struct wal_reader *reader,
                                    struct numbered_list *list,
                                    struct stele_error *error)
{
    reader->blank_first = 0;
    while (list->count > 1) {
        const uint64_t seq = list->numbers[list->count - 1];
        bool blank;
        const enum stele_status status =
            wal_segment_is_blank(reader->wal_dir, seq, &blank, error);

        if (status != STELE_OK || !blank) {
            return status;
        }
        reader->blank_first = seq;
        list->count--;
    }
    return STELE_OK;
}

static enum stele_status list_segments(struct wal_reader *reader,
                                       struct stele_error *error)
{
    struct numbered_list list;
    enum stele_status status =
        numbered_list_read(reader->wal_dir, WAL_SEGMENT_SUFFIX, &list, error);
    size_t leftover_count;

    if (status != STELE_OK) {
        return status;
    }
    /* Below the oldest needed one: leftovers of retention. */
    leftover_count = numbered_list_lower(&list, reader->segment_oldest);
    if (leftover_count > 0) {
        list.count -= leftover_count;
        memmove(list.numbers, list.numbers + leftover_count,
                list.count * sizeof *list.numbers);
    }
    status = drop_blank(reader, &list, error);
    if (status != STELE_OK) {
        numbered_list_free(&list);
        return status;
    }
    numbered_list_free(&reader->segments);
    reader->segments = list;
    return STELE_OK;
}

enum stele_status wal_reader_open(struct wal_reader *reader,
                                  struct io_dir *wal_dir,
                                  const struct wal_position *start,
                                  uint64_t segment_oldest,
                                  enum io_open_mode mode,
                                  struct stele_error *error)
{
    enum stele_status status;
    uint64_t seq;

    *reader = (struct wal_reader){
        .wal_dir = wal_dir,
        .uuid = start->uuid,
        .mode = mode,
        .segment_oldest = segment_oldest,
        .previous = *start,
    };
    status = list_segments(reader, error);
    if (status != STELE_OK) {
        goto out;
    }
    if (reader->segments.count == 0) {
        status =
            error_set(error, STELE_CORRUPT,
                      "wal: no segment from %016" PRIx64 " on", segment_oldest);
        goto out;
    }
    seq = start->unit == 0 ? reader->segments.numbers[0] : start->segment;
    reader->list_index = numbered_list_lower(&reader->segments, seq);
    if (reader->list_index == reader->segments.count ||
        reader->segments.numbers[reader->list_index] != seq) {
        status = error_set(error, STELE_CORRUPT,
                           "wal/%016" PRIx64 ".wal: missing, unit %" PRIu64
                           " is in it",
                           seq, start->unit);
        goto out;
    }
    status = wal_segment_open(wal_dir, seq, &reader->uuid, mode,
                              &reader->segment, error);
    reader->offset =
        start->unit == 0 ? WAL_SEGMENT_HEADER_BYTES : start->end_offset;
out:
    if (status != STELE_OK) {
        wal_reader_close(reader);
    }
    return status;
}

/* Make the bytes [offset, offset + bytes) of the segment available, if the
 * segment has them; the caller has bounded `bytes` by its end. */
static enum stele_status fetch(struct wal_reader *reader, uint64_t offset,
                               size_t bytes, const uint8_t **data_out,
                               struct stele_error *error)
{
    const uint64_t left = reader->segment.bytes - offset;
    enum stele_status status;
    size_t wanted;

    assert(offset <= reader->segment.bytes && bytes <= left);
    if (offset >= reader->window_offset &&
        offset - reader->window_offset <= reader->window_bytes &&
        bytes <=
            reader->window_bytes - (size_t)(offset - reader->window_offset)) {
        *data_out = reader->window + (offset - reader->window_offset);
        return STELE_OK;
    }
    wanted = bytes > READER_WINDOW_BYTES ? bytes : READER_WINDOW_BYTES;
    if (wanted > left) {
        wanted = (size_t)left;
    }
    if (wanted > reader->window_capacity) {
        uint8_t *grown = realloc(reader->window, wanted);

        if (grown == NULL) {
            return error_no_memory(error, "log reader");
        }
        reader->window = grown;
        reader->window_capacity = wanted;
    }
    reader->window_bytes = 0;
    status = io_file_read_exact(reader->segment.file, reader->window, wanted,
                                offset, error);
    if (status != STELE_OK) {
        return status;
    }
    reader->window_offset = offset;
    reader->window_bytes = wanted;
    *data_out = reader->window;
    return STELE_OK;
}

/* Is there a whole unit, the next one, at reader->offset? */
static enum stele_status try_here(struct wal_reader *reader,
                                  struct wal_reader_unit *found,
                                  bool *whole_out, struct stele_error *error)
{
    const struct wal_segment *segment = &reader->segment;
    const uint64_t offset = reader->offset;
    const uint64_t seed = wal_unit_seed(segment->salt, offset);
    const uint8_t *data;
    enum stele_status status;
    uint64_t lsn_last;

    *whole_out = false;
    if (offset >= segment->bytes ||
        segment->bytes - offset < WAL_UNIT_HEADER_BYTES) {
        return STELE_OK;
    }
    status = fetch(reader, offset, WAL_UNIT_HEADER_BYTES, &data, error);
    if (status != STELE_OK) {
        return status;
    }
    if (!wal_unit_decode_header(data, seed, segment->seq, offset,
                                segment->bytes, &found->unit)) {
        return STELE_OK;
    }
    status = fetch(reader, offset,
                   WAL_UNIT_HEADER_BYTES + (size_t)found->unit.body_bytes,
                   &data, error);
    if (status != STELE_OK) {
        return status;
    }
    found->header = data;
    found->body = data + WAL_UNIT_HEADER_BYTES;
    if (!wal_unit_is_whole(&found->unit, found->body, seed, &reader->previous,
                           &lsn_last)) {
        return STELE_OK;
    }
    found->position = (struct wal_position){
        .uuid = reader->uuid,
        .lsn = lsn_last,
        .unit = found->unit.number,
        .chain = found->unit.chain,
        .segment = segment->seq,
        .start_offset = offset,
        .end_offset = offset + wal_unit_padded_bytes(found->unit.body_bytes),
    };
    *whole_out = true;
    return STELE_OK;
}

/* Look at offset 4096 of each later segment. On success the reader stands in
 * that one, otherwise where it stood. */
static enum stele_status try_later(struct wal_reader *reader,
                                   struct wal_reader_unit *found,
                                   bool *whole_out, struct stele_error *error)
{
    const struct wal_segment here = reader->segment;
    const uint64_t offset = reader->offset;
    enum stele_status status = STELE_OK;

    *whole_out = false;
    for (size_t index = reader->list_index + 1; index < reader->segments.count;
         index++) {
        status = wal_segment_open(
            reader->wal_dir, reader->segments.numbers[index], &reader->uuid,
            reader->mode, &reader->segment, error);
        if (status != STELE_OK) {
            break;
        }
        reader->offset = WAL_SEGMENT_HEADER_BYTES;
        reader->window_bytes = 0;
        status = try_here(reader, found, whole_out, error);
        if (status == STELE_OK && *whole_out) {
            struct wal_segment left = here;

            wal_segment_close(&left);
            reader->list_index = index;
            return STELE_OK;
        }
        wal_segment_close(&reader->segment);
        if (status != STELE_OK) {
            break;
        }
    }
    reader->segment = here;
    reader->offset = offset;
    reader->window_bytes = 0;
    return status;
}

enum stele_status wal_reader_next(struct wal_reader *reader,
                                  struct wal_reader_unit *unit_out,
                                  bool *whole_out, struct stele_error *error)
{
    struct wal_reader_unit found;
    enum stele_status status = try_here(reader, &found, whole_out, error);

    if (status == STELE_OK && !*whole_out) {
        status = try_later(reader, &found, whole_out, error);
    }
    if (status == STELE_OK && *whole_out) {
        reader->previous = found.position;
        reader->offset = found.position.end_offset;
        *unit_out = found;
    }
    return status;
}

enum stele_status wal_reader_next_whole(struct wal_reader *reader,
                                        struct wal_reader_unit *unit_out,
                                        const char *reason,
                                        struct stele_error *error)
{
    bool whole;
    enum stele_status status = wal_reader_next(reader, unit_out, &whole, error);

    if (status == STELE_OK && !whole) {
        status = error_set(error, STELE_CORRUPT,
                           "wal/%016" PRIx64 ".wal: offset %" PRIu64
                           ": unit %" PRIu64 " is not whole, but %s",
                           reader->segment.seq, reader->offset,
                           reader->previous.unit + 1, reason);
    }
    return status;
}

enum stele_status wal_reader_refresh(struct wal_reader *reader,
                                     struct stele_error *error)
{
    const uint64_t seq = reader->segment.seq;
    enum stele_status status = list_segments(reader, error);

    if (status != STELE_OK) {
        return status;
    }
    reader->window_bytes = 0;
    reader->list_index = numbered_list_lower(&reader->segments, seq);
    if (reader->list_index == reader->segments.count ||
        reader->segments.numbers[reader->list_index] != seq) {
        return error_set(error, STELE_NOT_FOUND,
                         "wal/%016" PRIx64 ".wal: no longer needed", seq);
    }
    return STELE_OK;
}

/* Whether the unit that ends at `position` stands there, by its header, and what
 * that says. NOT_FOUND: there is no such segment. */
static enum stele_status read_unit_at(struct io_dir *wal_dir,
                                      const struct wal_position *position,
                                      bool *found_out, struct wal_unit *unit,
                                      struct stele_error *error)
{
    uint8_t header[WAL_UNIT_HEADER_BYTES];
    struct wal_segment segment;
    enum stele_status status =
        wal_segment_open(wal_dir, position->segment, &position->uuid,
                         IO_OPEN_READ, &segment, error);

    *found_out = false;
    if (status != STELE_OK) {
        return status;
    }
    if (position->start_offset < segment.bytes &&
        segment.bytes - position->start_offset >= sizeof header) {
        status = io_file_read_exact(segment.file, header, sizeof header,
                                    position->start_offset, error);
        if (status == STELE_OK) {
            *found_out =
                wal_unit_decode_header(
                    header, wal_unit_seed(segment.salt, position->start_offset),
                    segment.seq, position->start_offset, segment.bytes, unit) &&
                unit->number == position->unit &&
                memcmp(unit->chain.bytes, position->chain.bytes,
                       CHECKSUM128_BYTES) == 0 &&
                position->end_offset ==
                    position->start_offset +
                        wal_unit_padded_bytes(unit->body_bytes);
        }
    }
    wal_segment_close(&segment);
    return status;
}

enum stele_status wal_reader_check_position(struct io_dir *wal_dir,
                                            const struct wal_position *position,
                                            const struct wal_position *origin,
                                            uint64_t segment_oldest,
                                            bool *found_out,
                                            struct stele_error *error)
{
    struct wal_unit ignored;
    enum stele_status status;

    if (position->unit == 0) {
        *found_out = wal_position_equal(position, origin);
        return STELE_OK;
    }
    *found_out = false;
    if (position->segment < segment_oldest) {
        return STELE_OK;
    }
    status = read_unit_at(wal_dir, position, found_out, &ignored, error);
    return status == STELE_NOT_FOUND ? STELE_OK : status;
}

enum stele_status wal_reader_wall_ns(struct io_dir *wal_dir,
                                     const struct wal_position *position,
                                     uint64_t *wall_ns_out,
                                     struct stele_error *error)
{
    struct wal_unit unit;
    bool found;
    const enum stele_status status =
        read_unit_at(wal_dir, position, &found, &unit, error);

    if (status == STELE_OK && !found) {
        return error_set(error, STELE_CORRUPT,
                         "wal/%016" PRIx64 ".wal: offset %" PRIu64
                         ": unit %" PRIu64 " is not there as it was",
                         position->segment, position->start_offset,
                         position->unit);
    }
    if (status == STELE_OK) {
        *wall_ns_out = unit.wall_ns;
    }
    return status;
}

enum stele_status wal_reader_first_wall_ns(struct io_dir *wal_dir, uint64_t seq,
                                           const struct wal_uuid *uuid,
                                           bool *found_out,
                                           uint64_t *wall_ns_out,
                                           struct stele_error *error)
{
    const uint64_t offset = WAL_SEGMENT_HEADER_BYTES;
    uint8_t header[WAL_UNIT_HEADER_BYTES];
    struct wal_segment segment;
    struct wal_unit unit;
    enum stele_status status =
        wal_segment_open(wal_dir, seq, uuid, IO_OPEN_READ, &segment, error);

    *found_out = false;
    if (status == STELE_NOT_FOUND) {
        return STELE_OK;
    }
    if (status != STELE_OK) {
        return status;
    }
    status =
        io_file_read_exact(segment.file, header, sizeof header, offset, error);
    if (status == STELE_OK &&
        wal_unit_decode_header(header, wal_unit_seed(segment.salt, offset), seq,
                               offset, segment.bytes, &unit)) {
        *found_out = true;
        *wall_ns_out = unit.wall_ns;
    }
    wal_segment_close(&segment);
    return status;
}

void wal_reader_close(struct wal_reader *reader)
{
    wal_segment_close(&reader->segment);
    numbered_list_free(&reader->segments);
    free(reader->window);
    reader->window = NULL;
    reader->window_bytes = 0;
    reader->window_capacity = 0;
}
