/* tests/lib/random.h -- random numbers that a seed gives back. */
#ifndef TESTS_LIB_RANDOM_H
#define TESTS_LIB_RANDOM_H

#include <stdbool.h>
#include <stdint.h>

struct random_source {
    uint64_t state; /* The seed, to begin with: any number. */
};

uint64_t random_u64(struct random_source *random);

/* 0 to limit - 1; `limit` is not 0. */
uint64_t random_below(struct random_source *random, uint64_t limit);

/* True once in so many times. */
bool random_one_in(struct random_source *random, uint64_t times);

/* A seed that nobody chose. Dies if there is none to be had. */
uint64_t random_seed(void);

#endif
