/*
 * engine/tally.h -- what a base holds, counted as its entries go by in key order,
 * and compared with what the rows of its tables claim.
 *
 * Every value's check is verified; a table's count and sum of checks must be those
 * in its row. The same for an index, a snapshot that is read, and one that is
 * written.
 */
#ifndef ENGINE_TALLY_H
#define ENGINE_TALLY_H

#include <stdbool.h>
#include <stdint.h>

#include "base/bytes.h"
#include "base/status.h"
#include "engine/base_value.h"
#include "engine/stele.h"
#include "snapshot/format.h"

struct tally {
    const char *where; /* Borrowed. Begins every message. */
    stele_verify_finding *finding;
    void *context;
    struct snapshot_totals
        totals; /* So far; of the checks as they are stored. */
    /* The table that is passing by: its row's key; no bytes: none yet. */
    uint8_t row_key[BASE_TABLE_NAME_BYTES_MAX + 1];
    size_t row_key_bytes;
    bool row_is_sound; /* Or nothing is compared with it. */
    struct table_row claimed;
    struct table_row counted;
};

/* `finding` (may be NULL) is told all that is wrong. */
void tally_init(struct tally *tally, const char *where,
                stele_verify_finding *finding, void *context);

/* The next entry. CORRUPT: it, or the table that ends before it, is damaged; the
 * message is of the first thing wrong. The tally goes on all the same. */
enum stele_status tally_add(struct tally *tally, struct bytes key,
                            struct bytes stored,
                            struct stele_error *error) STELE_MUST_CHECK;

/* That was the last one. CORRUPT: the last table is damaged. */
enum stele_status tally_end(struct tally *tally,
                            struct stele_error *error) STELE_MUST_CHECK;

/* After the end, and nothing was found: are these the totals? CORRUPT, with both. */
enum stele_status tally_check_totals(
    const struct tally *tally, const struct snapshot_totals *claimed,
    struct stele_error *error) STELE_MUST_CHECK;

#endif
