/* tests/lib/wal_log.c -- see tests/lib/wal_log.h. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "base/numbered.h"
#include "tests/lib/io_fault.h"
#include "tests/lib/temp_dir.h"
#include "tests/lib/wal_log.h"
#include "wal/record.h"
#include "wal/segment.h"
#include "wal/unit.h"

struct wal_uuid wal_log_uuid(void)
{
    struct wal_uuid uuid;

    for (uint8_t index = 0; index < WAL_UUID_BYTES; index++) {
        uuid.bytes[index] = (uint8_t)(0xa0 + index);
    }
    return uuid;
}

static struct wal_segment make_segment(struct wal_log *log)
{
    struct wal_segment segment;
    struct stele_error error;
    bool names_unknown;

    assert_int_equal(wal_segment_prepare(log->dir, log->anchor.segment_last + 1,
                                         &log->uuid, WAL_LOG_SEGMENT_BYTES,
                                         IO_FS_OVERWRITE, &segment,
                                         &names_unknown, &error),
                     STELE_OK);
    log->anchor.segment_last++;
    return segment;
}

void wal_log_create(struct wal_log *log)
{
    struct stele_error error;
    struct wal_segment first;

    *log = (struct wal_log){.path = temp_dir_make(), .uuid = wal_log_uuid()};
    log->end = wal_position_origin(&log->uuid, 0);
    log->anchor = (struct wal_anchor){
        .format_min = WAL_ANCHOR_VERSION,
        .uuid = log->uuid,
        .segment_oldest = 1,
        .segment_bytes = WAL_LOG_SEGMENT_BYTES,
        .durable = log->end,
    };
    assert_int_equal(io_dir_open(io_fault_io(), log->path, &log->dir, &error),
                     STELE_OK);
    first = make_segment(log);
    wal_segment_close(&first);
    wal_log_resume(log, &(struct wal_recovery){.row = WAL_ROW_A,
                                               .end = log->end,
                                               .next_segment = 1,
                                               .next_offset = WAL_PAGE_BYTES});
}

void wal_log_destroy(struct wal_log *log)
{
    io_fault_arm(NULL);
    wal_log_stop(log);
    io_dir_close(log->dir);
    temp_dir_remove(log->path);
}

void wal_log_stop(struct wal_log *log)
{
    wal_writer_destroy(log->writer);
    log->writer = NULL;
}

void wal_log_resume(struct wal_log *log, const struct wal_recovery *recovery)
{
    struct stele_error error;

    assert_null(log->writer);
    assert_int_equal(wal_writer_create(log->dir, recovery, &log->uuid,
                                       WAL_LOG_INCARNATION, &log->writer,
                                       &error),
                     STELE_OK);
    log->end = recovery->end;
}

void wal_log_prepare(struct wal_log *log)
{
    const struct wal_segment segment = make_segment(log);
    struct stele_error error;

    assert_int_equal(wal_writer_add_prepared(log->writer, &segment, &error),
                     STELE_OK);
}

void wal_log_rotate(struct wal_log *log)
{
    struct stele_error error;

    wal_log_prepare(log);
    assert_int_equal(wal_writer_rotate(log->writer, &error), STELE_OK);
}

enum stele_status wal_log_try_append(struct wal_log *log, uint64_t pages,
                                     struct stele_error *error)
{
    const size_t record_bytes =
        (size_t)pages * WAL_PAGE_BYTES - WAL_UNIT_HEADER_BYTES;
    struct wal_record record = {
        .lsn = log->end.lsn + 1,
        .op_count = 1,
        .body_bytes = (uint32_t)(record_bytes - WAL_RECORD_HEADER_BYTES),
    };
    uint8_t *data = malloc(record_bytes);
    enum stele_status status;

    assert_non_null(data);
    memset(data + WAL_RECORD_HEADER_BYTES, (int)(record.lsn % 255 + 1),
           record.body_bytes);
    record.body_checksum = wal_record_body_checksum(
        data + WAL_RECORD_HEADER_BYTES, record.body_bytes);
    wal_record_encode_header(&record, data);
    status = wal_writer_append(log->writer, &data, &record_bytes, 1, record.lsn,
                               record.lsn, error);
    free(data);
    return status;
}

struct wal_position wal_log_append(struct wal_log *log, uint64_t pages)
{
    struct stele_error error;

    assert_int_equal(wal_log_try_append(log, pages, &error), STELE_OK);
    log->end = wal_writer_written(log->writer);
    return log->end;
}

struct wal_position wal_log_commit(struct wal_log *log, uint64_t pages)
{
    const struct wal_position position = wal_log_append(log, pages);
    struct stele_error error;

    assert_int_equal(wal_writer_sync(log->writer, &error), STELE_OK);
    return position;
}

void wal_log_segment_path(const struct wal_log *log, uint64_t seq,
                          char path_out[FILES_PATH_BYTES])
{
    char name[NUMBERED_NAME_BYTES];

    numbered_name(seq, WAL_SEGMENT_SUFFIX, name);
    files_path(path_out, log->path, name);
}
