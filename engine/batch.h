/*
 * engine/batch.h -- a batch is its record: operations are encoded as they are
 * added, behind room for the record's header (wal/record.h), so that the commit
 * leader fills in the LSN and hands the buffer to the log as it is.
 */
#ifndef ENGINE_BATCH_H
#define ENGINE_BATCH_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "engine/stele.h"
#include "wal/record.h"

struct stele_batch {
    uint8_t *data; /* Record header, then the operations. */
    size_t bytes;  /* Of both. */
    size_t capacity;
    uint32_t op_count;
    uint32_t expectation_count;
    size_t value_bytes_max; /* Of the values in it. */
    size_t table_offset;    /* In `data`, of the last table's name; 0: none. */
    size_t table_bytes;
    bool has_tag;
    uint8_t tag[STELE_TAG_BYTES];
    uint64_t body_checksum;  /* Of batch_seal(). */
    _Atomic bool committing; /* A commit of it is under way. */
};

/* Compute what can be computed before the LSN is known. In the caller's
 * thread. */
void batch_seal(struct stele_batch *batch);

/* Complete the record: `data` is then as it goes to the log. */
void batch_set_lsn(struct stele_batch *batch, uint64_t lsn);

static inline struct bytes batch_body(const struct stele_batch *batch)
{
    return (struct bytes){batch->data + WAL_RECORD_HEADER_BYTES,
                          batch->bytes - WAL_RECORD_HEADER_BYTES};
}

#endif
