/*
 * snapshot/map.h -- looking keys up in a snapshot: a base to read from without an
 * index.
 *
 * Opening reads the whole file once and verifies it, and keeps the first key and
 * the offset of each block (some 100 bytes for 64 KiB of file). A lookup reads one
 * block again, and verifies it again: the file may rot under us. It is not mapped
 * into memory, where a page that cannot be read, or a file that was cut, would
 * kill the process.
 *
 * Threads: a map is shared (it never changes); a cursor belongs to one thread at
 * a time.
 */
#ifndef SNAPSHOT_MAP_H
#define SNAPSHOT_MAP_H

#include "base/bytes.h"
#include "base/io.h"
#include "base/status.h"
#include "snapshot/format.h"
#include "snapshot/reader.h"

struct snapshot_map;
struct snapshot_cursor;

/* As snapshot_reader_open(). */
enum stele_status snapshot_map_open(struct io_dir *dir, uint64_t lsn,
                                    const uint8_t *uuid,
                                    struct snapshot_map **map_out,
                                    struct stele_error *error) STELE_MUST_CHECK;

const struct snapshot_info *snapshot_map_info(const struct snapshot_map *map);

/* Counted: the one who opens it holds one reference. */
void snapshot_map_ref(struct snapshot_map *map);
void snapshot_map_unref(struct snapshot_map *map); /* Accepts NULL. */

/* ---- A cursor, for lookups too ---------------------------------------------- */

/* Holds a reference of the map. */
enum stele_status snapshot_cursor_open(
    struct snapshot_map *map, struct snapshot_cursor **cursor_out,
    struct stele_error *error) STELE_MUST_CHECK;
void snapshot_cursor_close(struct snapshot_cursor *cursor); /* Accepts NULL. */

/* Entries are borrowed until the cursor's next call. NOT_FOUND: there is none;
 * CORRUPT: the block no longer verifies. */
/* The first entry >= key. */
enum stele_status snapshot_cursor_seek(
    struct snapshot_cursor *cursor, struct bytes key,
    struct snapshot_entry *entry_out,
    struct stele_error *error) STELE_MUST_CHECK;
/* The last entry < key. */
enum stele_status snapshot_cursor_seek_before(
    struct snapshot_cursor *cursor, struct bytes key,
    struct snapshot_entry *entry_out,
    struct stele_error *error) STELE_MUST_CHECK;
/* From where the last successful call stood. After NOT_FOUND: seek again
 * (INVALID if not). */
enum stele_status snapshot_cursor_next(
    struct snapshot_cursor *cursor, struct snapshot_entry *entry_out,
    struct stele_error *error) STELE_MUST_CHECK;
enum stele_status snapshot_cursor_prev(
    struct snapshot_cursor *cursor, struct snapshot_entry *entry_out,
    struct stele_error *error) STELE_MUST_CHECK;

#endif
