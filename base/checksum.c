/* base/checksum.c -- the only file that includes xxhash.h. */
#include "base/checksum.h"

#include <string.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

uint64_t checksum64(const void *data, size_t data_bytes, uint64_t seed)
{
    return XXH3_64bits_withSeed(data, data_bytes, seed);
}

struct checksum128 checksum128(const void *data, size_t data_bytes,
                               uint64_t seed)
{
    struct checksum128 result;
    XXH128_canonical_t canonical;

    XXH128_canonicalFromHash(&canonical,
                             XXH3_128bits_withSeed(data, data_bytes, seed));
    memcpy(result.bytes, canonical.digest, sizeof result.bytes);
    return result;
}

/* The second digest is seeded with the first: both runs and their border are
 * covered (the lengths are part of XXH3). */
uint64_t checksum64_pair(const void *first, size_t first_bytes,
                         const void *second, size_t second_bytes, uint64_t seed)
{
    const uint64_t inner = XXH3_64bits_withSeed(first, first_bytes, seed);

    return XXH3_64bits_withSeed(second, second_bytes, inner);
}
