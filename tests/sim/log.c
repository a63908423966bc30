/* tests/sim/log.c -- see tests/sim/log.h. */
#include "tests/sim/log.h"

#include <stdlib.h>

#include "base/error.h"
#include "engine/retained.h"

enum stele_status sim_log_start(struct stele *store,
                                struct wal_position *start_out,
                                struct stele_error *error)
{
    struct retained retained;
    enum stele_status status = retained_read(store, &retained, error);

    if (status != STELE_OK) {
        return status;
    }
    if (retained.bases.log_readable) {
        *start_out = retained.bases.log_start;
    } else {
        status = error_set(error, STELE_CORRUPT,
                           "nothing says where the log can be read from");
    }
    retained_free(&retained);
    return status;
}

static void visit_records(const struct wal_reader_unit *unit,
                          sim_log_visit *visit, void *context)
{
    struct byte_reader in = byte_reader_init(unit->body, unit->unit.body_bytes);

    while (in.offset < in.size) {
        struct wal_record record;

        if (!wal_record_decode(&in, &record)) {
            abort(); /* The unit is whole. */
        }
        visit(context, &record);
    }
}

enum stele_status sim_log_walk(struct stele *store,
                               const struct wal_position *start,
                               sim_log_visit *visit, void *context,
                               struct stele_error *error)
{
    struct wal_reader reader;
    enum stele_status status =
        wal_reader_open(&reader, store->wal_dir, start,
                        store->anchor.segment_oldest, IO_OPEN_READ, error);
    bool whole = status == STELE_OK;

    while (whole) {
        struct wal_reader_unit unit;

        status = wal_reader_next(&reader, &unit, &whole, error);
        whole = whole && status == STELE_OK;
        if (whole) {
            visit_records(&unit, visit, context);
        }
    }
    wal_reader_close(&reader);
    return status;
}
