/*
 * base/bytes.h -- little-endian integers and bounds-checked byte cursors.
 *
 * Every byte that reaches or leaves a file passes through here. No struct is
 * ever copied to or from disk: padding and byte order stay out of the formats.
 */
#ifndef BASE_BYTES_H
#define BASE_BYTES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* A borrowed run of bytes. `data` may be NULL only when size is 0. */
struct bytes {
    const void *data;
    size_t size;
};

/* memcmp order, a proper prefix first: the order of keys everywhere. */
static inline int bytes_compare(struct bytes left, struct bytes right)
{
    const size_t shared = left.size < right.size ? left.size : right.size;
    const int order = shared == 0 ? 0 : memcmp(left.data, right.data, shared);

    if (order != 0) {
        return order;
    }
    return (left.size > right.size) - (left.size < right.size);
}

static inline void put_u16le(uint8_t *target, uint16_t value)
{
    target[0] = (uint8_t)(value >> 0);
    target[1] = (uint8_t)(value >> 8);
}

static inline void put_u32le(uint8_t *target, uint32_t value)
{
    target[0] = (uint8_t)(value >> 0);
    target[1] = (uint8_t)(value >> 8);
    target[2] = (uint8_t)(value >> 16);
    target[3] = (uint8_t)(value >> 24);
}

static inline void put_u64le(uint8_t *target, uint64_t value)
{
    put_u32le(target + 0, (uint32_t)(value >> 0));
    put_u32le(target + 4, (uint32_t)(value >> 32));
}

static inline uint16_t get_u16le(const uint8_t *source)
{
    return (uint16_t)(source[0] << 0 | source[1] << 8);
}

static inline uint32_t get_u32le(const uint8_t *source)
{
    return (uint32_t)source[0] << 0 | (uint32_t)source[1] << 8 |
           (uint32_t)source[2] << 16 | (uint32_t)source[3] << 24;
}

static inline uint64_t get_u64le(const uint8_t *source)
{
    return (uint64_t)get_u32le(source + 0) << 0 |
           (uint64_t)get_u32le(source + 4) << 32;
}

/*
 * A cursor over bytes of unknown quality. The first read that does not fit sets
 * `failed`; from then on reads return zeroes and the position stays put. A
 * decoder therefore reads its fields in format order and checks once.
 * (After s2n-tls's stuffer.)
 *
 * Invariant: offset <= size.
 */
struct byte_reader {
    const uint8_t *data; /* Borrowed. */
    size_t size;
    size_t offset;
    bool failed;
};

static inline struct byte_reader byte_reader_init(const void *data, size_t size)
{
    return (struct byte_reader){.data = data, .size = size};
}

/* Borrow the next `count` bytes, or return NULL if fewer remain. */
static inline const uint8_t *byte_reader_take(struct byte_reader *in,
                                              size_t count)
{
    const uint8_t *taken;

    /* "offset + count > size" could wrap: `count` may come from the disk. */
    if (in->failed || count > in->size - in->offset) {
        in->failed = true;
        return NULL;
    }
    taken = in->data + in->offset;
    in->offset += count;
    return taken;
}

static inline uint8_t byte_reader_u8(struct byte_reader *in)
{
    const uint8_t *taken = byte_reader_take(in, sizeof(uint8_t));

    return taken == NULL ? 0 : taken[0];
}

static inline uint16_t byte_reader_u16(struct byte_reader *in)
{
    const uint8_t *taken = byte_reader_take(in, sizeof(uint16_t));

    return taken == NULL ? 0 : get_u16le(taken);
}

static inline uint32_t byte_reader_u32(struct byte_reader *in)
{
    const uint8_t *taken = byte_reader_take(in, sizeof(uint32_t));

    return taken == NULL ? 0 : get_u32le(taken);
}

static inline uint64_t byte_reader_u64(struct byte_reader *in)
{
    const uint8_t *taken = byte_reader_take(in, sizeof(uint64_t));

    return taken == NULL ? 0 : get_u64le(taken);
}

/* Copy the next `count` bytes to `target`; zeroes if fewer remain. */
static inline void byte_reader_copy(struct byte_reader *in, void *target,
                                    size_t count)
{
    const uint8_t *taken = byte_reader_take(in, count);

    if (taken == NULL) {
        memset(target, 0, count);
    } else {
        memcpy(target, taken, count);
    }
}

/*
 * The writing counterpart, over a buffer whose size the caller chose from the
 * format: running out of it is our bug, so it is asserted, not reported.
 */
struct byte_writer {
    uint8_t *data; /* Borrowed. */
    size_t size;
    size_t offset;
};

static inline struct byte_writer byte_writer_init(void *data, size_t size)
{
    return (struct byte_writer){.data = data, .size = size};
}

void byte_writer_u16(struct byte_writer *out, uint16_t value);
void byte_writer_u32(struct byte_writer *out, uint32_t value);
void byte_writer_u64(struct byte_writer *out, uint64_t value);
void byte_writer_copy(struct byte_writer *out, const void *source,
                      size_t count);

/* True if all `size` bytes are zero. */
bool bytes_are_zero(const void *data, size_t size);

#endif
