/*
 * tests/lib/wal_log.h -- a log of a test's own: wal/ in a temporary directory,
 * built with wal/writer.h over tests/lib/io_fault.h.
 *
 * Units hold one record each, of bytes that nobody looks into. Whatever goes
 * wrong while building is an assertion of cmocka's.
 */
#ifndef TESTS_LIB_WAL_LOG_H
#define TESTS_LIB_WAL_LOG_H

#include <stddef.h>
#include <stdint.h>

#include "base/io.h"
#include "tests/lib/files.h"
#include "wal/anchor.h"
#include "wal/position.h"
#include "wal/recovery.h"
#include "wal/writer.h"

enum {
    WAL_LOG_SEGMENT_BYTES = 1 << 20,
    WAL_LOG_INCARNATION = 3,
};

struct wal_log {
    char *path; /* Of wal/. */
    struct io_dir *dir;
    struct wal_uuid uuid;
    struct wal_anchor anchor; /* Names every segment; nothing as durable. */
    struct wal_writer *writer;
    struct wal_position end; /* Of the last unit appended. */
};

/* With segment 1 and a writer at its start. */
void wal_log_create(struct wal_log *log);
void wal_log_destroy(struct wal_log *log);

/* The uuid of every log made here. */
struct wal_uuid wal_log_uuid(void);

/* Append one unit of `pages` pages, without and with a sync; where it is. */
struct wal_position wal_log_append(struct wal_log *log, uint64_t pages);
struct wal_position wal_log_commit(struct wal_log *log, uint64_t pages);
/* The status of an append that is expected to fail. */
enum stele_status wal_log_try_append(struct wal_log *log, uint64_t pages,
                                     struct stele_error *error);

/* Make the next segment and give it to the writer; go to it. */
void wal_log_prepare(struct wal_log *log);
void wal_log_rotate(struct wal_log *log);

/* Let go of the writer, as a killed process would. */
void wal_log_stop(struct wal_log *log);
/* A writer that goes on where recovery found the end. */
void wal_log_resume(struct wal_log *log, const struct wal_recovery *recovery);

/* The path of a segment. */
void wal_log_segment_path(const struct wal_log *log, uint64_t seq,
                          char path_out[FILES_PATH_BYTES]);

#endif
