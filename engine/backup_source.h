/*
 * engine/backup_source.h -- what a backup copies: a base and the log from there to
 * one LSN, every file of it open, so that no retention can take one away.
 */
#ifndef ENGINE_BACKUP_SOURCE_H
#define ENGINE_BACKUP_SOURCE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/status.h"
#include "engine/archive.h"
#include "engine/store.h"
#include "snapshot/reader.h"
#include "wal/segment.h"

struct backup_source {
    struct wal_anchor anchor;
    struct wal_position end;  /* The newest unit that is durable and visible. */
    struct wal_position base; /* The newest base up to it. */
    struct wal_position
        start;      /* Where the log to copy begins: at or below base. */
    bool continues; /* Where the archive's log ended; it gets no gap. */
    struct snapshot_reader *snapshot; /* Of the base; NULL: the log is whole. */
    struct wal_segment *segments;     /* From that of start to that of end. */
    size_t segment_count;
};

/*
 * Find and open it. `earlier` (may be NULL) is what the archive holds already; of a
 * base above `base_lsn_max` it is known that it is damaged. FOREIGN: the archive's
 * end is not in this store's log. CORRUPT: no base is left. Files that are gone when
 * they are opened are looked for anew, unless nothing has moved meanwhile.
 */
enum stele_status backup_source_open(
    struct stele *store, const struct archive *earlier, uint64_t base_lsn_max,
    struct backup_source *source_out,
    struct stele_error *error) STELE_MUST_CHECK;

/* Accepts a zeroed one. */
void backup_source_close(struct backup_source *source);

/* Bytes of a segment that are copied: behind the end there are none. */
uint64_t backup_source_used_bytes(const struct backup_source *source,
                                  const struct wal_segment *segment);

#endif
