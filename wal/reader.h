/*
 * wal/reader.h -- the log, unit by unit, from a position on.
 *
 * Unit N is at the end of N-1, or at offset 4096 of the first later segment
 * where it is whole (wal/unit.h). Anything else there is skipped: a torn tail
 * that was dropped, a segment that was retired, the unused end of one.
 *
 * The reader decides nothing: where no whole unit follows it says so, and
 * wal/recovery.h says what that means. Reads through the page cache, so it may
 * follow a log that another process writes.
 *
 * Threads: one at a time.
 */
#ifndef WAL_READER_H
#define WAL_READER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/io.h"
#include "base/numbered.h"
#include "base/status.h"
#include "wal/position.h"
#include "wal/segment.h"
#include "wal/unit.h"

struct wal_reader {
    struct io_dir *wal_dir; /* Borrowed. */
    struct wal_uuid uuid;
    enum io_open_mode mode;
    uint64_t segment_oldest;
    struct numbered_list segments; /* From segment_oldest on ... */
    uint64_t blank_first; /* ... up to the blank ones at the end; 0: none. */
    size_t list_index;    /* Of `segment`. */
    struct wal_segment segment;   /* Where the next unit may be ... */
    uint64_t offset;              /* ... and the place in it. */
    struct wal_position previous; /* Of the last unit returned. */
    uint8_t *window; /* Bytes of `segment` from window_offset on. */
    size_t window_capacity;
    size_t window_bytes;
    uint64_t window_offset;
};

struct wal_reader_unit {
    struct wal_unit unit;
    struct wal_position position; /* Right behind the unit. */
    const uint8_t *header; /* As on disk; borrowed until the next call. */
    const uint8_t *body;   /* Right behind `header`. */
};

/*
 * Start behind `start` (the origin: at the oldest segment). CORRUPT: the
 * segment of `start` is not there, or there is none at all. `mode`: for reading,
 * or for writing the same bytes again (recovery). The reader copies what it is
 * given except the directory.
 */
enum stele_status wal_reader_open(struct wal_reader *reader,
                                  struct io_dir *wal_dir,
                                  const struct wal_position *start,
                                  uint64_t segment_oldest,
                                  enum io_open_mode mode,
                                  struct stele_error *error) STELE_MUST_CHECK;

/* *whole_out false: no whole unit follows here, now. */
enum stele_status wal_reader_next(struct wal_reader *reader,
                                  struct wal_reader_unit *unit_out,
                                  bool *whole_out,
                                  struct stele_error *error) STELE_MUST_CHECK;

/* The same where a whole unit must follow; else CORRUPT, "unit N is not whole,
 * but <reason>". */
enum stele_status wal_reader_next_whole(
    struct wal_reader *reader, struct wal_reader_unit *unit_out,
    const char *reason, struct stele_error *error) STELE_MUST_CHECK;

/* Forget what was read ahead and look again which segments there are: the log
 * may have grown. */
enum stele_status wal_reader_refresh(
    struct wal_reader *reader, struct stele_error *error) STELE_MUST_CHECK;

/* Whether the unit that ends at `position` stands there, by its header; of unit 0,
 * whether it is `origin`, where the log begins. */
enum stele_status wal_reader_check_position(
    struct io_dir *wal_dir, const struct wal_position *position,
    const struct wal_position *origin, uint64_t segment_oldest, bool *found_out,
    struct stele_error *error) STELE_MUST_CHECK;

/* When the unit that ends at `position` was written (its wall time). CORRUPT: it does
 * not stand there. Not for unit 0. */
enum stele_status wal_reader_wall_ns(
    struct io_dir *wal_dir, const struct wal_position *position,
    uint64_t *wall_ns_out, struct stele_error *error) STELE_MUST_CHECK;

/* When the first unit of segment `seq` was written (its wall time); *found_out
 * false: there is no such segment, or no unit at its start. */
enum stele_status wal_reader_first_wall_ns(
    struct io_dir *wal_dir, uint64_t seq, const struct wal_uuid *uuid,
    bool *found_out, uint64_t *wall_ns_out,
    struct stele_error *error) STELE_MUST_CHECK;

/* Accepts one that is closed or zeroed. */
void wal_reader_close(struct wal_reader *reader);

#endif
