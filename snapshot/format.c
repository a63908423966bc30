/* snapshot/format.c -- see snapshot/format.h. */
#include "snapshot/format.h"

#include <assert.h>
#include <string.h>

#include "base/bytes.h"

enum {
    MAGIC_BYTES = 8,
    HEADER_ZERO_BYTES = 16,
    HEADER_CHECKSUM_OFFSET = SNAPSHOT_HEADER_BYTES - 8,
    FOOTER_CHECKSUM_OFFSET = SNAPSHOT_FOOTER_BYTES - 8,
};

static const uint8_t header_magic[MAGIC_BYTES] = "STELSNAP";
static const uint8_t footer_magic[MAGIC_BYTES] = "STELSEND";

/* ---- Header --------------------------------------------------------------- */

void snapshot_header_encode(const uint8_t uuid[SNAPSHOT_UUID_BYTES],
                            uint64_t lsn, uint8_t target[SNAPSHOT_HEADER_BYTES])
{
    static const uint8_t zero[HEADER_ZERO_BYTES];
    struct byte_writer out = byte_writer_init(target, SNAPSHOT_HEADER_BYTES);

    byte_writer_copy(&out, header_magic, sizeof header_magic);
    byte_writer_u32(&out, SNAPSHOT_VERSION);
    byte_writer_u32(&out, SNAPSHOT_BLOCK_BYTES);
    byte_writer_copy(&out, uuid, SNAPSHOT_UUID_BYTES);
    byte_writer_u64(&out, lsn);
    byte_writer_copy(&out, zero, sizeof zero);
    assert(out.offset == HEADER_CHECKSUM_OFFSET);
    byte_writer_u64(&out, checksum64(target, HEADER_CHECKSUM_OFFSET, 0));
}

enum snapshot_verdict snapshot_header_decode(
    const uint8_t source[SNAPSHOT_HEADER_BYTES],
    struct snapshot_header *header_out)
{
    struct byte_reader in = byte_reader_init(source, SNAPSHOT_HEADER_BYTES);
    const uint8_t *magic = byte_reader_take(&in, MAGIC_BYTES);
    const uint32_t version = byte_reader_u32(&in);
    const uint32_t block_bytes = byte_reader_u32(&in);
    struct snapshot_header header;
    const uint8_t *zero;

    byte_reader_copy(&in, header.uuid, sizeof header.uuid);
    header.lsn = byte_reader_u64(&in);
    zero = byte_reader_take(&in, HEADER_ZERO_BYTES);
    header.checksum = byte_reader_u64(&in);
    assert(!in.failed);

    if (memcmp(magic, header_magic, sizeof header_magic) != 0 ||
        header.checksum != checksum64(source, HEADER_CHECKSUM_OFFSET, 0)) {
        return SNAPSHOT_INVALID;
    }
    if (version != SNAPSHOT_VERSION) {
        return SNAPSHOT_NEWER; /* The rest may mean anything. */
    }
    if (block_bytes != SNAPSHOT_BLOCK_BYTES ||
        !bytes_are_zero(zero, HEADER_ZERO_BYTES)) {
        return SNAPSHOT_INVALID;
    }
    *header_out = header;
    return SNAPSHOT_VALID;
}

/* ---- Footer --------------------------------------------------------------- */

void snapshot_footer_encode(const struct snapshot_info *info, uint64_t seed,
                            uint8_t target[SNAPSHOT_FOOTER_BYTES])
{
    struct byte_writer out = byte_writer_init(target, SNAPSHOT_FOOTER_BYTES);

    byte_writer_copy(&out, footer_magic, sizeof footer_magic);
    byte_writer_u64(&out, info->lsn);
    byte_writer_u64(&out, info->entries);
    byte_writer_u64(&out, info->blocks);
    byte_writer_u64(&out, info->totals.tables);
    byte_writer_u64(&out, info->totals.keys);
    byte_writer_u64(&out, info->totals.sum);
    byte_writer_copy(&out, info->position, sizeof info->position);
    byte_writer_copy(&out, info->digest.bytes, sizeof info->digest.bytes);
    assert(out.offset == FOOTER_CHECKSUM_OFFSET);
    byte_writer_u64(&out, checksum64(target, FOOTER_CHECKSUM_OFFSET, seed));
}

bool snapshot_footer_decode(const uint8_t source[SNAPSHOT_FOOTER_BYTES],
                            uint64_t seed, struct snapshot_info *info_out)
{
    struct byte_reader in = byte_reader_init(source, SNAPSHOT_FOOTER_BYTES);
    const uint8_t *magic = byte_reader_take(&in, MAGIC_BYTES);
    struct snapshot_info info = {0};
    uint64_t checksum;

    info.lsn = byte_reader_u64(&in);
    info.entries = byte_reader_u64(&in);
    info.blocks = byte_reader_u64(&in);
    info.totals.tables = byte_reader_u64(&in);
    info.totals.keys = byte_reader_u64(&in);
    info.totals.sum = byte_reader_u64(&in);
    byte_reader_copy(&in, info.position, sizeof info.position);
    byte_reader_copy(&in, info.digest.bytes, sizeof info.digest.bytes);
    checksum = byte_reader_u64(&in);
    assert(!in.failed);

    if (memcmp(magic, footer_magic, sizeof footer_magic) != 0 ||
        checksum != checksum64(source, FOOTER_CHECKSUM_OFFSET, seed)) {
        return false;
    }
    *info_out = info;
    return true;
}
