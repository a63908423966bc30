/* wal/unit.c -- see wal/unit.h. */
#include "wal/unit.h"

#include <assert.h>
#include <string.h>

enum {
    UNIT_CHECKSUM_OFFSET = 8,
    UNIT_FIELDS_OFFSET = 16, /* What checksum and chain cover starts here. */
    UNIT_CHAIN_OFFSET = 80,
    UNIT_ZERO_OFFSET = 96,
    UNIT_ZERO_BYTES = WAL_UNIT_HEADER_BYTES - UNIT_ZERO_OFFSET,
    UNIT_FIELDS_BYTES = UNIT_CHAIN_OFFSET - UNIT_FIELDS_OFFSET,
};

static const uint8_t unit_magic[8] = "STELUNIT";

uint64_t wal_unit_seed(uint64_t segment_salt, uint64_t offset)
{
    uint8_t place[16];

    put_u64le(place, segment_salt);
    put_u64le(place + 8, offset);
    return checksum64(place, sizeof place, 0);
}

uint64_t wal_unit_padded_bytes(uint64_t body_bytes)
{
    const uint64_t bytes = WAL_UNIT_HEADER_BYTES + body_bytes;

    return (bytes + WAL_PAGE_BYTES - 1) / WAL_PAGE_BYTES * WAL_PAGE_BYTES;
}

/* The bytes 16 .. 80 of the header. */
static void encode_fields(const struct wal_unit *unit,
                          uint8_t target[UNIT_FIELDS_BYTES])
{
    struct byte_writer out = byte_writer_init(target, UNIT_FIELDS_BYTES);

    byte_writer_u32(&out, WAL_UNIT_VERSION);
    byte_writer_u32(&out, unit->record_count);
    byte_writer_u64(&out, unit->number);
    byte_writer_u64(&out, unit->segment);
    byte_writer_u64(&out, unit->body_bytes);
    byte_writer_u64(&out, unit->lsn_first);
    byte_writer_u64(&out, unit->unit_durable);
    byte_writer_u64(&out, unit->incarnation);
    byte_writer_u64(&out, unit->wall_ns);
    assert(out.offset == UNIT_FIELDS_BYTES);
}

static struct checksum128 chain_fields(const struct checksum128 *previous,
                                       const struct wal_unit *unit,
                                       uint64_t seed)
{
    uint8_t input[CHECKSUM128_BYTES + UNIT_FIELDS_BYTES];

    memcpy(input, previous->bytes, CHECKSUM128_BYTES);
    encode_fields(unit, input + CHECKSUM128_BYTES);
    return checksum128(input, sizeof input, seed);
}

static struct checksum128 chain_record(const struct checksum128 *chain,
                                       const uint8_t *record_header,
                                       uint64_t seed)
{
    uint8_t input[CHECKSUM128_BYTES + WAL_RECORD_HEADER_BYTES];

    memcpy(input, chain->bytes, CHECKSUM128_BYTES);
    memcpy(input + CHECKSUM128_BYTES, record_header, WAL_RECORD_HEADER_BYTES);
    return checksum128(input, sizeof input, seed);
}

struct checksum128 wal_chain_next(const struct checksum128 *previous,
                                  const struct wal_unit *unit,
                                  const uint8_t *const *record_headers,
                                  uint64_t seed)
{
    struct checksum128 chain = chain_fields(previous, unit, seed);

    for (uint32_t index = 0; index < unit->record_count; index++) {
        chain = chain_record(&chain, record_headers[index], seed);
    }
    return chain;
}

void wal_unit_encode_header(const struct wal_unit *unit, uint64_t seed,
                            uint8_t target[WAL_UNIT_HEADER_BYTES])
{
    memcpy(target, unit_magic, sizeof unit_magic);
    encode_fields(unit, target + UNIT_FIELDS_OFFSET);
    memcpy(target + UNIT_CHAIN_OFFSET, unit->chain.bytes, CHECKSUM128_BYTES);
    memset(target + UNIT_ZERO_OFFSET, 0, UNIT_ZERO_BYTES);
    put_u64le(target + UNIT_CHECKSUM_OFFSET,
              checksum64(target + UNIT_FIELDS_OFFSET,
                         WAL_UNIT_HEADER_BYTES - UNIT_FIELDS_OFFSET, seed));
}

bool wal_unit_decode_header(const uint8_t source[WAL_UNIT_HEADER_BYTES],
                            uint64_t seed, uint64_t segment, uint64_t offset,
                            uint64_t segment_bytes, struct wal_unit *unit_out)
{
    struct byte_reader in = byte_reader_init(source, WAL_UNIT_HEADER_BYTES);
    struct wal_unit unit;
    const uint8_t *magic = byte_reader_take(&in, sizeof unit_magic);
    const uint64_t checksum = byte_reader_u64(&in);
    uint32_t version;

    if (memcmp(magic, unit_magic, sizeof unit_magic) != 0 ||
        checksum != checksum64(source + UNIT_FIELDS_OFFSET,
                               WAL_UNIT_HEADER_BYTES - UNIT_FIELDS_OFFSET,
                               seed)) {
        return false;
    }
    version = byte_reader_u32(&in);
    unit.record_count = byte_reader_u32(&in);
    unit.number = byte_reader_u64(&in);
    unit.segment = byte_reader_u64(&in);
    unit.body_bytes = byte_reader_u64(&in);
    unit.lsn_first = byte_reader_u64(&in);
    unit.unit_durable = byte_reader_u64(&in);
    unit.incarnation = byte_reader_u64(&in);
    unit.wall_ns = byte_reader_u64(&in);
    byte_reader_copy(&in, unit.chain.bytes, CHECKSUM128_BYTES);
    assert(!in.failed);
    if (version != WAL_UNIT_VERSION || unit.segment != segment) {
        return false;
    }
    /* Subtractions only: the length is a number from the disk. */
    if (offset > segment_bytes ||
        segment_bytes - offset < WAL_UNIT_HEADER_BYTES ||
        unit.body_bytes > segment_bytes - offset - WAL_UNIT_HEADER_BYTES) {
        return false;
    }
    *unit_out = unit;
    return true;
}

bool wal_unit_is_whole(const struct wal_unit *unit, const uint8_t *body,
                       uint64_t seed, const struct wal_position *previous,
                       uint64_t *lsn_last_out)
{
    struct byte_reader in = byte_reader_init(body, unit->body_bytes);
    struct checksum128 chain = chain_fields(&previous->chain, unit, seed);
    uint64_t lsn_last = previous->lsn;

    if (unit->number != previous->unit + 1 || unit->record_count == 0) {
        return false;
    }
    for (uint32_t index = 0; index < unit->record_count; index++) {
        const uint8_t *header = body + in.offset;
        struct wal_record record;

        if (!wal_record_decode(&in, &record) || record.lsn <= lsn_last ||
            (index == 0 && record.lsn != unit->lsn_first)) {
            return false;
        }
        chain = chain_record(&chain, header, seed);
        lsn_last = record.lsn;
    }
    if (in.offset != in.size ||
        memcmp(chain.bytes, unit->chain.bytes, CHECKSUM128_BYTES) != 0) {
        return false;
    }
    *lsn_last_out = lsn_last;
    return true;
}
