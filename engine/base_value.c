/* engine/base_value.c -- see engine/base_value.h. */
#include "engine/base_value.h"

#include "base/checksum.h"

uint32_t base_value_check(struct bytes key, uint64_t lsn, struct bytes value)
{
    return (uint32_t)checksum64_pair(key.data, key.size, value.data, value.size,
                                     lsn);
}

void base_value_encode_header(uint64_t lsn, uint32_t check,
                              uint8_t target[BASE_VALUE_HEADER_BYTES])
{
    put_u64le(target + 0, lsn);
    put_u32le(target + 8, check);
}

bool base_value_decode(struct bytes stored, struct base_value *value_out)
{
    struct byte_reader in = byte_reader_init(stored.data, stored.size);
    struct base_value value;

    value.lsn = byte_reader_u64(&in);
    value.check = byte_reader_u32(&in);
    if (in.failed) {
        return false;
    }
    value.value.size = stored.size - in.offset;
    value.value.data = byte_reader_take(&in, value.value.size);
    *value_out = value;
    return true;
}

bool base_value_verify(struct bytes key, const struct base_value *value)
{
    return base_value_check(key, value->lsn, value->value) == value->check;
}

void table_row_encode(const struct table_row *row,
                      uint8_t target[BASE_VALUE_TABLE_ROW_BYTES])
{
    put_u64le(target + 0, row->count);
    put_u64le(target + 8, row->sum);
}

bool table_row_decode(struct bytes stored, struct table_row *row_out)
{
    const uint8_t *source = stored.data;

    if (stored.size != BASE_VALUE_TABLE_ROW_BYTES) {
        return false;
    }
    row_out->count = get_u64le(source + 0);
    row_out->sum = get_u64le(source + 8);
    return true;
}

size_t base_key_table_bytes(struct bytes key)
{
    const size_t longest = BASE_TABLE_NAME_BYTES_MAX + 1;
    const uint8_t *start = key.data;
    const uint8_t *zero;

    if (key.size == 0) {
        return 0;
    }
    zero = memchr(start, 0, key.size < longest ? key.size : longest);
    return zero == NULL ? 0 : (size_t)(zero - start);
}
