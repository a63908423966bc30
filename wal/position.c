/* wal/position.c -- see wal/position.h. */
#include "wal/position.h"

#include <string.h>

#include "base/bytes.h"

enum { CHECKSUM_OFFSET = WAL_POSITION_BYTES - 8 };

struct wal_position wal_position_origin(const struct wal_uuid *uuid,
                                        uint64_t lsn)
{
    struct wal_position origin = {.uuid = *uuid, .lsn = lsn};
    uint8_t seed[WAL_UUID_BYTES + 8];
    struct byte_writer out = byte_writer_init(seed, sizeof seed);

    /* The chain begins with the store and the LSN its log begins behind, so
     * that the logs of two stores differ from the first unit on. */
    byte_writer_copy(&out, uuid->bytes, WAL_UUID_BYTES);
    byte_writer_u64(&out, origin.lsn);
    origin.chain = checksum128(seed, sizeof seed, 0);
    return origin;
}

bool wal_uuid_equal(const struct wal_uuid *left, const struct wal_uuid *right)
{
    return memcmp(left->bytes, right->bytes, WAL_UUID_BYTES) == 0;
}

/* Where the unit lies is not asked: its number and chain say which it is. */
bool wal_position_equal(const struct wal_position *left,
                        const struct wal_position *right)
{
    return wal_uuid_equal(&left->uuid, &right->uuid) &&
           left->lsn == right->lsn && left->unit == right->unit &&
           memcmp(left->chain.bytes, right->chain.bytes, CHECKSUM128_BYTES) ==
               0;
}

void wal_position_encode(const struct wal_position *position,
                         uint8_t target[WAL_POSITION_BYTES])
{
    struct byte_writer out = byte_writer_init(target, WAL_POSITION_BYTES);

    byte_writer_copy(&out, position->uuid.bytes, WAL_UUID_BYTES);
    byte_writer_u64(&out, position->lsn);
    byte_writer_u64(&out, position->unit);
    byte_writer_copy(&out, position->chain.bytes, CHECKSUM128_BYTES);
    byte_writer_u64(&out, position->segment);
    byte_writer_u64(&out, position->start_offset);
    byte_writer_u64(&out, position->end_offset);
    byte_writer_u64(&out, checksum64(target, CHECKSUM_OFFSET, 0));
}

bool wal_position_decode(const uint8_t source[WAL_POSITION_BYTES],
                         struct wal_position *position_out)
{
    struct byte_reader in = byte_reader_init(source, WAL_POSITION_BYTES);
    struct wal_position position;

    byte_reader_copy(&in, position.uuid.bytes, WAL_UUID_BYTES);
    position.lsn = byte_reader_u64(&in);
    position.unit = byte_reader_u64(&in);
    byte_reader_copy(&in, position.chain.bytes, CHECKSUM128_BYTES);
    position.segment = byte_reader_u64(&in);
    position.start_offset = byte_reader_u64(&in);
    position.end_offset = byte_reader_u64(&in);
    if (byte_reader_u64(&in) != checksum64(source, CHECKSUM_OFFSET, 0)) {
        return false;
    }
    *position_out = position;
    return true;
}
