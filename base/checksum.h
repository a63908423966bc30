/*
 * base/checksum.h -- the checksums of every format (XXH3), and the hash of
 * keys. The only door to xxHash.
 */
#ifndef BASE_CHECKSUM_H
#define BASE_CHECKSUM_H

#include <stddef.h>
#include <stdint.h>

enum { CHECKSUM128_BYTES = 16 };

/* The 128-bit digest in canonical (big-endian, as xxHash defines) bytes. */
struct checksum128 {
    uint8_t bytes[CHECKSUM128_BYTES];
};

uint64_t checksum64(const void *data, size_t data_bytes, uint64_t seed);

struct checksum128 checksum128(const void *data, size_t data_bytes,
                               uint64_t seed);

/* XXH3-64 of `second`, seeded with the XXH3-64 of `first`: covers both runs
 * and the border between them, without joining them in memory. */
uint64_t checksum64_pair(const void *first, size_t first_bytes,
                         const void *second, size_t second_bytes,
                         uint64_t seed);

/* checksum128() (seed 0) of bytes that come in pieces. */
struct checksum_stream;

/* NULL: out of memory. */
struct checksum_stream *checksum_stream_create(void);
void checksum_stream_update(struct checksum_stream *stream, const void *data,
                            size_t data_bytes);
/* Of everything so far; more may follow. */
struct checksum128 checksum_stream_digest(const struct checksum_stream *stream);
void checksum_stream_free(struct checksum_stream *stream); /* Accepts NULL. */

#endif
