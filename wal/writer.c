/*
 * wal/writer.c -- see wal/writer.h.
 *
 * Append, the happy path: fill in the unit's header, chain it to the previous
 * unit, one pwritev of header, records and padding. Then sync, once a group.
 */
#include "wal/writer.h"

#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/mutex.h"
#include "wal/unit.h"

struct wal_writer {
    struct io *io;
    struct wal_uuid uuid;
    uint64_t incarnation;

    /* Of the role. */
    struct wal_segment segment; /* No file: retired or not there yet. */
    uint64_t offset;            /* Of the next unit. */
    uint64_t wall_ns_last;
    bool failed;

    /* Under `mutex`: also read by others. */
    struct mutex mutex;
    struct wal_position written;
    struct wal_position durable;
    struct wal_writer_stats stats;
    bool end_is_torn; /* Row C, and nothing appended since. */
    uint64_t offset_published;
    uint64_t segment_bytes_published; /* 0: none current. */
    struct wal_segment *prepared;     /* Ascending. */
    size_t prepared_count;
    size_t prepared_capacity;
};

static const uint8_t zero_page[WAL_PAGE_BYTES];

static void publish_place(struct wal_writer *writer)
{
    writer->offset_published = writer->offset;
    writer->segment_bytes_published =
        writer->segment.file == NULL ? 0 : writer->segment.bytes;
    writer->stats.segment_current = writer->segment.seq;
}

enum stele_status wal_writer_create(struct io_dir *wal_dir,
                                    const struct wal_recovery *recovery,
                                    const struct wal_uuid *uuid,
                                    uint64_t incarnation,
                                    struct wal_writer **writer_out,
                                    struct stele_error *error)
{
    struct wal_writer *writer = calloc(1, sizeof *writer);
    enum stele_status status;

    if (writer == NULL) {
        return error_no_memory(error, "log writer");
    }
    writer->io = io_dir_io(wal_dir);
    writer->uuid = *uuid;
    writer->incarnation = incarnation;
    writer->written = recovery->end;
    writer->durable = recovery->end; /* Hardened. */
    writer->wall_ns_last = recovery->wall_ns_last;
    writer->end_is_torn = recovery->row == WAL_ROW_C;
    mutex_init(&writer->mutex);
    /* Row C: bytes that are not a unit follow. Never append behind them. */
    if (recovery->row == WAL_ROW_A) {
        status = wal_segment_open(wal_dir, recovery->next_segment, uuid,
                                  IO_OPEN_READ_WRITE, &writer->segment, error);
        if (status != STELE_OK) {
            wal_writer_destroy(writer);
            return status;
        }
        writer->offset = recovery->next_offset;
    } else {
        writer->segment.seq = recovery->next_segment;
    }
    publish_place(writer);
    *writer_out = writer;
    return STELE_OK;
}

static void close_segments(struct wal_writer *writer)
{
    wal_segment_close(&writer->segment);
    for (size_t index = 0; index < writer->prepared_count; index++) {
        wal_segment_close(&writer->prepared[index]);
    }
    free(writer->prepared);
}

void wal_writer_destroy(struct wal_writer *writer)
{
    if (writer == NULL) {
        return;
    }
    close_segments(writer);
    mutex_deinit(&writer->mutex);
    free(writer);
}

void wal_writer_forsake(struct wal_writer *writer)
{
    if (writer != NULL && mutex_try_lock(&writer->mutex)) {
        close_segments(writer);
        free(writer);
    }
}

bool wal_writer_has_room(const struct wal_writer *writer, uint64_t body_bytes)
{
    return writer->segment.file != NULL &&
           writer->offset <= writer->segment.bytes &&
           wal_unit_padded_bytes(body_bytes) <=
               writer->segment.bytes - writer->offset;
}

enum stele_status wal_writer_add_prepared(struct wal_writer *writer,
                                          const struct wal_segment *segment,
                                          struct stele_error *error)
{
    enum stele_status status = STELE_OK;

    mutex_lock(&writer->mutex);
    if (writer->prepared_count == writer->prepared_capacity) {
        const size_t capacity = writer->prepared_capacity * 2 + 2;
        struct wal_segment *grown =
            realloc(writer->prepared, capacity * sizeof *grown);

        if (grown == NULL) {
            status = error_no_memory(error, "prepared segments");
            goto out;
        }
        writer->prepared = grown;
        writer->prepared_capacity = capacity;
    }
    assert(segment->seq > writer->segment.seq);
    assert(writer->prepared_count == 0 ||
           segment->seq > writer->prepared[writer->prepared_count - 1].seq);
    writer->prepared[writer->prepared_count++] = *segment;
out:
    mutex_unlock(&writer->mutex);
    return status;
}

size_t wal_writer_prepared_count(struct wal_writer *writer)
{
    size_t count;

    mutex_lock(&writer->mutex);
    count = writer->prepared_count;
    mutex_unlock(&writer->mutex);
    return count;
}

bool wal_writer_end_is_torn(struct wal_writer *writer)
{
    bool torn;

    mutex_lock(&writer->mutex);
    torn = writer->end_is_torn;
    mutex_unlock(&writer->mutex);
    return torn;
}

bool wal_writer_half_full(struct wal_writer *writer)
{
    bool half_full;

    mutex_lock(&writer->mutex);
    half_full = writer->offset_published >= writer->segment_bytes_published / 2;
    mutex_unlock(&writer->mutex);
    return half_full;
}

enum stele_status wal_writer_rotate(struct wal_writer *writer,
                                    struct stele_error *error)
{
    assert(!writer->failed);
    /* A unit in the next segment that is durable before one in this segment
     * would leave a gap that looks like a loss. */
    if (writer->written.unit > writer->durable.unit) {
        const enum stele_status status = wal_writer_sync(writer, error);

        if (status != STELE_OK) {
            return status;
        }
    }
    mutex_lock(&writer->mutex);
    assert(writer->prepared_count > 0);
    wal_segment_close(&writer->segment);
    writer->segment = writer->prepared[0];
    writer->offset = WAL_SEGMENT_HEADER_BYTES;
    writer->prepared_count--;
    memmove(writer->prepared, writer->prepared + 1,
            writer->prepared_count * sizeof *writer->prepared);
    writer->stats.rotations++;
    publish_place(writer);
    mutex_unlock(&writer->mutex);
    return STELE_OK;
}

/* Header, records, padding. Returns the number of iovec entries. */
static size_t gather(uint8_t *header, uint8_t *const *records,
                     const size_t *record_bytes, uint32_t record_count,
                     uint64_t body_bytes, struct iovec *iov)
{
    const uint64_t padding_bytes =
        wal_unit_padded_bytes(body_bytes) - WAL_UNIT_HEADER_BYTES - body_bytes;
    size_t count = 0;

    iov[count++] =
        (struct iovec){.iov_base = header, .iov_len = WAL_UNIT_HEADER_BYTES};
    for (uint32_t index = 0; index < record_count; index++) {
        iov[count++] = (struct iovec){.iov_base = records[index],
                                      .iov_len = record_bytes[index]};
    }
    if (padding_bytes > 0) {
        iov[count++] = (struct iovec){.iov_base = (void *)(uintptr_t)zero_page,
                                      .iov_len = (size_t)padding_bytes};
    }
    return count;
}

enum stele_status wal_writer_append(struct wal_writer *writer,
                                    uint8_t *const *records,
                                    const size_t *record_bytes,
                                    uint32_t record_count, uint64_t lsn_first,
                                    uint64_t lsn_last,
                                    struct stele_error *error)
{
    const uint64_t seed = wal_unit_seed(writer->segment.salt, writer->offset);
    const uint64_t wall_ns = io_clock_wall_ns(writer->io);
    struct iovec iov[WAL_UNIT_RECORDS_MAX + 2];
    uint8_t header[WAL_UNIT_HEADER_BYTES];
    struct wal_unit unit = {
        .number = writer->written.unit + 1,
        .segment = writer->segment.seq,
        .lsn_first = lsn_first,
        .unit_durable = writer->durable.unit,
        .incarnation = writer->incarnation,
        .wall_ns =
            wall_ns > writer->wall_ns_last ? wall_ns : writer->wall_ns_last,
        .record_count = record_count,
    };
    enum stele_status status;
    size_t iov_count;

    assert(!writer->failed);
    assert(record_count >= 1 && record_count <= WAL_UNIT_RECORDS_MAX);
    assert(lsn_first > writer->written.lsn && lsn_last >= lsn_first);
    for (uint32_t index = 0; index < record_count; index++) {
        unit.body_bytes += record_bytes[index];
    }
    assert(wal_writer_has_room(writer, unit.body_bytes));

    unit.chain = wal_chain_next(&writer->written.chain, &unit,
                                (const uint8_t *const *)records, seed);
    wal_unit_encode_header(&unit, seed, header);
    iov_count = gather(header, records, record_bytes, record_count,
                       unit.body_bytes, iov);
    status = io_file_writev(writer->segment.file, iov, iov_count,
                            writer->offset, error);
    if (status != STELE_OK) {
        /* NO_SPACE: not a byte was written, the place is still free. Anything
         * else may have left part of a unit there. */
        writer->failed = status != STELE_NO_SPACE;
        return error_wrap(error, status, "append unit %" PRIu64, unit.number);
    }
    mutex_lock(&writer->mutex);
    writer->written = (struct wal_position){
        .uuid = writer->uuid,
        .lsn = lsn_last,
        .unit = unit.number,
        .chain = unit.chain,
        .segment = unit.segment,
        .start_offset = writer->offset,
        .end_offset = writer->offset + wal_unit_padded_bytes(unit.body_bytes),
    };
    writer->offset = writer->written.end_offset;
    writer->wall_ns_last = unit.wall_ns;
    writer->end_is_torn = false;
    writer->stats.units++;
    writer->stats.bytes +=
        writer->written.end_offset - writer->written.start_offset;
    publish_place(writer);
    mutex_unlock(&writer->mutex);
    return STELE_OK;
}

enum stele_status wal_writer_sync(struct wal_writer *writer,
                                  struct stele_error *error)
{
    enum stele_status status;

    assert(!writer->failed);
    if (writer->durable.unit == writer->written.unit) {
        return STELE_OK;
    }
    /* Without it a power cut loses every unit since the last sync: this is the
     * one sync of a durable commit. */
    status = io_file_sync(writer->segment.file, error);
    if (status != STELE_OK) {
        writer->failed = true;
        return error_wrap(error, status, "sync unit %" PRIu64,
                          writer->written.unit);
    }
    mutex_lock(&writer->mutex);
    writer->durable = writer->written;
    writer->stats.syncs++;
    mutex_unlock(&writer->mutex);
    return STELE_OK;
}

struct wal_position wal_writer_written(struct wal_writer *writer)
{
    struct wal_position position;

    mutex_lock(&writer->mutex);
    position = writer->written;
    mutex_unlock(&writer->mutex);
    return position;
}

struct wal_position wal_writer_durable(struct wal_writer *writer)
{
    struct wal_position position;

    mutex_lock(&writer->mutex);
    position = writer->durable;
    mutex_unlock(&writer->mutex);
    return position;
}

struct wal_writer_stats wal_writer_stats(struct wal_writer *writer)
{
    struct wal_writer_stats stats;

    mutex_lock(&writer->mutex);
    stats = writer->stats;
    mutex_unlock(&writer->mutex);
    return stats;
}
