/* wal/record.c -- see wal/record.h. */
#include "wal/record.h"

#include <string.h>

#include "base/checksum.h"

uint64_t wal_record_body_checksum(const void *body, size_t body_bytes)
{
    return checksum64(body, body_bytes, 0);
}

void wal_record_encode_header(const struct wal_record *record,
                              uint8_t target[WAL_RECORD_HEADER_BYTES])
{
    struct byte_writer out = byte_writer_init(target, WAL_RECORD_HEADER_BYTES);

    byte_writer_u32(&out, record->body_bytes);
    byte_writer_u32(&out, record->op_count);
    byte_writer_u64(&out, record->lsn);
    byte_writer_u32(&out, record->flags);
    byte_writer_u32(&out, 0);
    byte_writer_u64(&out, record->term);
    byte_writer_copy(&out, record->tag, sizeof record->tag);
    byte_writer_u64(&out, record->body_checksum);
    assert(out.offset == WAL_RECORD_HEADER_BYTES);
}

bool wal_record_decode(struct byte_reader *in, struct wal_record *record_out)
{
    struct wal_record record;
    uint32_t zero;

    record.body_bytes = byte_reader_u32(in);
    record.op_count = byte_reader_u32(in);
    record.lsn = byte_reader_u64(in);
    record.flags = byte_reader_u32(in);
    zero = byte_reader_u32(in);
    record.term = byte_reader_u64(in);
    byte_reader_copy(in, record.tag, sizeof record.tag);
    record.body_checksum = byte_reader_u64(in);
    record.body = byte_reader_take(in, record.body_bytes);
    if (in->failed) {
        return false;
    }
    if (zero != 0 || (record.flags & ~(uint32_t)WAL_RECORD_HAS_TAG) != 0) {
        return false;
    }
    if (record.body_checksum !=
        wal_record_body_checksum(record.body, record.body_bytes)) {
        return false;
    }
    *record_out = record;
    return true;
}
