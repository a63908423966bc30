/* tests/lib/random.c -- see tests/lib/random.h. */
#include "tests/lib/random.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/random.h>

/* splitmix64 */
uint64_t random_u64(struct random_source *random)
{
    uint64_t z = random->state += UINT64_C(0x9e3779b97f4a7c15);

    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return z ^ z >> 31;
}

uint64_t random_below(struct random_source *random, uint64_t limit)
{
    return random_u64(random) % limit;
}

bool random_one_in(struct random_source *random, uint64_t times)
{
    return random_below(random, times) == 0;
}

uint64_t random_seed(void)
{
    uint64_t seed;

    if (getrandom(&seed, sizeof seed, 0) != sizeof seed) {
        perror("random_seed");
        abort();
    }
    return seed;
}
