/* base/bytes.c -- see base/bytes.h. */
#include "base/bytes.h"

#include <assert.h>

static uint8_t *byte_writer_reserve(struct byte_writer *out, size_t count)
{
    uint8_t *target = out->data + out->offset;

    assert(count <= out->size - out->offset);
    out->offset += count;
    return target;
}

void byte_writer_u16(struct byte_writer *out, uint16_t value)
{
    put_u16le(byte_writer_reserve(out, sizeof value), value);
}

void byte_writer_u32(struct byte_writer *out, uint32_t value)
{
    put_u32le(byte_writer_reserve(out, sizeof value), value);
}

void byte_writer_u64(struct byte_writer *out, uint64_t value)
{
    put_u64le(byte_writer_reserve(out, sizeof value), value);
}

void byte_writer_copy(struct byte_writer *out, const void *source, size_t count)
{
    uint8_t *target = byte_writer_reserve(out, count);

    if (count > 0) {
        memcpy(target, source, count);
    }
}

bool bytes_are_zero(const void *data, size_t size)
{
    const uint8_t *bytes = data;

    /* Equal to itself shifted by one, and the first is zero: all are. */
    return size == 0 ||
           (bytes[0] == 0 && memcmp(bytes, bytes + 1, size - 1) == 0);
}
