/* engine/find_tag.c -- stele_find_tag(): looking for a batch in the log. */
#include <inttypes.h>
#include <string.h>

#include "base/error.h"
#include "engine/retained.h"
#include "engine/store.h"
#include "engine/view.h"
#include "wal/reader.h"
#include "wal/record.h"

static bool find_tag_in_unit(const struct wal_reader_unit *unit,
                             const uint8_t *tag, uint64_t lsn_from,
                             uint64_t *lsn_out)
{
    struct byte_reader in = byte_reader_init(unit->body, unit->unit.body_bytes);
    struct wal_record record;

    while (in.offset < in.size && wal_record_decode(&in, &record)) {
        if (record.lsn >= lsn_from &&
            (record.flags & WAL_RECORD_HAS_TAG) != 0 &&
            memcmp(record.tag, tag, STELE_TAG_BYTES) == 0) {
            *lsn_out = record.lsn;
            return true;
        }
    }
    return false;
}

enum stele_status stele_find_tag(struct stele *store,
                                 const uint8_t tag[STELE_TAG_BYTES],
                                 uint64_t lsn_from, uint64_t *lsn_out,
                                 struct stele_error *error)
{
    struct wal_reader reader;
    struct stele_view *view;
    enum stele_status status = stele_view_open(store, &view, error);
    bool found = false;

    if (status != STELE_OK) {
        return status;
    }
    status = retained_open_log(store, &reader, error);
    if (status == STELE_OK) {
        /* Only as far as the handle shows: what a poisoned handle wrote last is
         * for the next open to decide. */
        while (status == STELE_OK && !found &&
               reader.previous.lsn < view->lsn) {
            struct wal_reader_unit unit;

            status = wal_reader_next_whole(&reader, &unit,
                                           "later ones are shown", error);
            found = status == STELE_OK &&
                    find_tag_in_unit(&unit, tag, lsn_from, lsn_out);
        }
        wal_reader_close(&reader);
    }
    stele_view_close(view);
    if (status == STELE_OK && !found) {
        status = error_set(error, STELE_NOT_FOUND,
                           "no batch with this tag from LSN %" PRIu64 " on",
                           lsn_from);
    }
    return status;
}
