/* engine/replay.c -- see engine/replay.h. */
#include "engine/replay.h"

#include <assert.h>
#include <inttypes.h>

#include "base/error.h"
#include "engine/apply.h"
#include "wal/record.h"

enum stele_status replay_unit(struct replay *replay,
                              const struct wal_reader_unit *unit,
                              struct stele_error *error)
{
    struct byte_reader in = byte_reader_init(unit->body, unit->unit.body_bytes);
    struct range_builder builder;
    const struct apply_target target = {.memtable = replay->memtable,
                                        .ranges = &builder};
    struct range_set *ranges = NULL;
    const uint64_t lsn_max =
        replay->lsn_max == 0 ? UINT64_MAX : replay->lsn_max;
    enum stele_status status = STELE_OK;
    uint64_t records = 0;

    range_builder_init(&builder);
    while (in.offset < in.size && status == STELE_OK) {
        struct wal_record record;
        /* The unit is whole, so its records decode. */
        const bool decoded = wal_record_decode(&in, &record);

        assert(decoded);
        (void)decoded;
        if (record.lsn > lsn_max) {
            break; /* They ascend. */
        }
        records++;
        status =
            apply_body(&target, (struct bytes){record.body, record.body_bytes},
                       record.lsn, NULL, NULL, error);
    }
    if (status == STELE_OK && !range_builder_is_empty(&builder)) {
        status = range_builder_finish(&builder, replay->ranges, &ranges, error);
        if (status == STELE_OK) {
            range_set_unref(replay->ranges);
            replay->ranges = ranges;
        }
    }
    range_builder_deinit(&builder);
    if (status != STELE_OK) {
        memtable_withdraw(replay->memtable);
        return error_wrap(
            error, status,
            "replay: wal/%016" PRIx64 ".wal: offset %" PRIu64 ": unit %" PRIu64,
            unit->unit.segment, unit->position.start_offset, unit->unit.number);
    }
    memtable_settle(replay->memtable);
    replay->records += records;
    return STELE_OK;
}

void replay_deinit(struct replay *replay)
{
    range_set_unref(replay->ranges);
    replay->ranges = NULL;
}
