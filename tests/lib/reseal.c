/* tests/lib/reseal.c -- see tests/lib/reseal.h. */
#include "tests/lib/reseal.h"

#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/checksum.h"
#include "snapshot/format.h"
#include "tests/lib/files.h"
#include "wal/anchor.h"
#include "wal/record.h"
#include "wal/unit.h"

enum {
    ANCHOR_CHECKSUM = 8,
    ANCHOR_FIELDS = 16,
    ANCHOR_DURABLE = 168,
    SEGMENT_CHECKSUM = 56,
    SEGMENT_UUID = 16,
    SEGMENT_SALT = 48,
    SEGMENT_FIELDS_END = 64,
    UNIT_CHAIN = 80,
    SNAPSHOT_CHECKSUM = 56,
    SNAPSHOT_BLOCK_CHECKSUM = 8,
    SNAPSHOT_FOOTER_DIGEST = 136,
    SNAPSHOT_FOOTER_CHECKSUM = 152,
    RECORD_CHECKSUM = 48,
};

/* ---- ANCHOR -------------------------------------------------------------------- */

static void change_slots(const char *path, size_t offset, const uint8_t *data,
                         size_t bytes)
{
    for (uint64_t slot = 0; slot < 2; slot++) {
        uint8_t page[WAL_ANCHOR_SLOT_BYTES];

        files_read_at(path, slot * sizeof page, page, sizeof page);
        memcpy(page + offset, data, bytes);
        put_u64le(page + ANCHOR_CHECKSUM,
                  checksum64(page + ANCHOR_FIELDS,
                             WAL_ANCHOR_USED_BYTES - ANCHOR_FIELDS, 0));
        files_write_at(path, slot * sizeof page, page, sizeof page);
    }
}

void reseal_anchor_u64(const char *path, size_t offset, uint64_t value)
{
    uint8_t bytes[8];

    put_u64le(bytes, value);
    change_slots(path, offset, bytes, sizeof bytes);
}

void reseal_anchor_durable(const char *path,
                           const struct wal_position *position)
{
    uint8_t bytes[WAL_POSITION_BYTES];

    wal_position_encode(position, bytes);
    change_slots(path, ANCHOR_DURABLE, bytes, sizeof bytes);
}

/* ---- Segments ------------------------------------------------------------------- */

void reseal_segment_u64(const char *path, size_t offset, uint64_t value)
{
    uint8_t header[SEGMENT_FIELDS_END];

    files_read_at(path, 0, header, sizeof header);
    put_u64le(header + offset, value);
    put_u64le(header + SEGMENT_CHECKSUM,
              checksum64(header, SEGMENT_CHECKSUM, 0));
    files_write_at(path, 0, header, sizeof header);
}

/* ---- Units ------------------------------------------------------------------------ */

void reseal_unit_begin(struct reseal_unit *unit, const char *path,
                       uint64_t offset, uint64_t previous_offset)
{
    uint8_t segment[SEGMENT_FIELDS_END];
    uint8_t header[WAL_UNIT_HEADER_BYTES];
    struct wal_uuid uuid;

    files_read_at(path, 0, segment, sizeof segment);
    files_read_at(path, offset, header, sizeof header);
    *unit = (struct reseal_unit){
        .path = path,
        .offset = offset,
        .seed = wal_unit_seed(get_u64le(segment + SEGMENT_SALT), offset),
        .size = WAL_UNIT_HEADER_BYTES +
                (size_t)get_u64le(header + RESEAL_UNIT_BODY_BYTES),
    };
    unit->bytes = malloc(unit->size);
    if (unit->bytes == NULL) {
        abort();
    }
    files_read_at(path, offset, unit->bytes, unit->size);
    if (previous_offset == 0) {
        memcpy(uuid.bytes, segment + SEGMENT_UUID, WAL_UUID_BYTES);
        unit->previous = wal_position_origin(&uuid, 0).chain;
    } else {
        files_read_at(path, previous_offset + UNIT_CHAIN, unit->previous.bytes,
                      CHECKSUM128_BYTES);
    }
}

void reseal_unit_end(struct reseal_unit *unit)
{
    uint8_t *record = unit->bytes + RESEAL_RECORD;
    const uint8_t *const headers[] = {record};
    struct wal_unit fields = {
        .record_count = 1,
        .number = get_u64le(unit->bytes + 24),
        .segment = get_u64le(unit->bytes + 32),
        .body_bytes = get_u64le(unit->bytes + RESEAL_UNIT_BODY_BYTES),
        .lsn_first = get_u64le(unit->bytes + 48),
        .unit_durable = get_u64le(unit->bytes + 56),
        .incarnation = get_u64le(unit->bytes + 64),
        .wall_ns = get_u64le(unit->bytes + 72),
    };

    put_u64le(record + RECORD_CHECKSUM,
              wal_record_body_checksum(record + WAL_RECORD_HEADER_BYTES,
                                       unit->size - RESEAL_OPS));
    fields.chain =
        wal_chain_next(&unit->previous, &fields, headers, unit->seed);
    wal_unit_encode_header(&fields, unit->seed, unit->bytes);
    files_write_at(unit->path, unit->offset, unit->bytes, unit->size);
    free(unit->bytes);
    unit->bytes = NULL;
}

/* ---- Snapshots ---------------------------------------------------------------------- */

void reseal_snapshot_header(uint8_t *file)
{
    put_u64le(file + SNAPSHOT_CHECKSUM, checksum64(file, SNAPSHOT_CHECKSUM, 0));
}

void reseal_snapshot_block(uint8_t *file, size_t file_bytes, size_t offset)
{
    const size_t room = file_bytes - offset - SNAPSHOT_BLOCK_HEADER_BYTES;
    const size_t claimed = get_u32le(file + offset);

    put_u64le(file + offset + SNAPSHOT_BLOCK_CHECKSUM,
              checksum64_pair(file + offset, SNAPSHOT_BLOCK_CHECKSUM,
                              file + offset + SNAPSHOT_BLOCK_HEADER_BYTES,
                              claimed < room ? claimed : room,
                              get_u64le(file + SNAPSHOT_CHECKSUM) + offset));
}

void reseal_snapshot_footer(uint8_t *file, size_t file_bytes)
{
    uint8_t *footer = file + file_bytes - SNAPSHOT_FOOTER_BYTES;
    const struct checksum128 digest =
        checksum128(file, file_bytes - SNAPSHOT_FOOTER_BYTES, 0);

    memcpy(footer + SNAPSHOT_FOOTER_DIGEST, digest.bytes, sizeof digest.bytes);
    put_u64le(footer + SNAPSHOT_FOOTER_CHECKSUM,
              checksum64(footer, SNAPSHOT_FOOTER_CHECKSUM,
                         get_u64le(file + SNAPSHOT_CHECKSUM)));
}
