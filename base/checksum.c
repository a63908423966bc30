/* base/checksum.c -- the only file that includes xxhash.h. */
#include "base/checksum.h"

#include <assert.h>
#include <stdalign.h>
#include <stdlib.h>
#include <string.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

uint64_t checksum64(const void *data, size_t data_bytes, uint64_t seed)
{
    return XXH3_64bits_withSeed(data, data_bytes, seed);
}

static struct checksum128 canonical128(XXH128_hash_t hash)
{
    struct checksum128 result;
    XXH128_canonical_t canonical;

    XXH128_canonicalFromHash(&canonical, hash);
    memcpy(result.bytes, canonical.digest, sizeof result.bytes);
    return result;
}

struct checksum128 checksum128(const void *data, size_t data_bytes,
                               uint64_t seed)
{
    return canonical128(XXH3_128bits_withSeed(data, data_bytes, seed));
}

/* The second digest is seeded with the first: both runs and their border are
 * covered (the lengths are part of XXH3). */
uint64_t checksum64_pair(const void *first, size_t first_bytes,
                         const void *second, size_t second_bytes, uint64_t seed)
{
    const uint64_t inner = XXH3_64bits_withSeed(first, first_bytes, seed);

    return XXH3_64bits_withSeed(second, second_bytes, inner);
}

/* ---- Of bytes that come in pieces ---------------------------------------------- */

struct checksum_stream {
    XXH3_state_t state; /* Wants its own alignment: not malloc's. */
};

struct checksum_stream *checksum_stream_create(void)
{
    struct checksum_stream *stream =
        aligned_alloc(alignof(struct checksum_stream), sizeof *stream);

    if (stream != NULL) {
        const XXH_errorcode result = XXH3_128bits_reset(&stream->state);

        assert(result == XXH_OK);
    }
    return stream;
}

void checksum_stream_update(struct checksum_stream *stream, const void *data,
                            size_t data_bytes)
{
    /* Fails only for a NULL of some length. */
    const XXH_errorcode result =
        XXH3_128bits_update(&stream->state, data, data_bytes);

    assert(result == XXH_OK);
}

struct checksum128 checksum_stream_digest(const struct checksum_stream *stream)
{
    return canonical128(XXH3_128bits_digest(&stream->state));
}

void checksum_stream_free(struct checksum_stream *stream)
{
    free(stream);
}
