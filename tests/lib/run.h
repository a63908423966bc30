/*
 * tests/lib/run.h -- a run of a random test: its seed, and how it fails.
 *
 * The seed comes from STELE_TEST_SEED, or is new; child processes inherit it.
 * Any thread of any process of the run may fail it: cmocka's assertions are for
 * its main thread only.
 */
#ifndef TESTS_LIB_RUN_H
#define TESTS_LIB_RUN_H

#include <stdint.h>

#include "base/status.h"
#include "tests/lib/random.h"

/* Of this run; the first call chooses it, puts it into the environment, and
 * prints it. Call it before starting threads. */
uint64_t run_seed(void);

/* A number from the environment, as STELE_TEST_KILLS=200; else `otherwise`. */
uint64_t run_setting(const char *name, uint64_t otherwise);

/* Print the seed and what differed, and abort. The test's directory stays. */
__attribute__((format(printf, 1, 2), noreturn)) void run_fail(
    const char *format, ...);

/* Fail unless `status` is OK. */
void run_expect_ok(enum stele_status status, const struct stele_error *error,
                   const char *doing);

/* Random numbers of this run; `stream` tells its users apart. */
struct random_source run_random(uint64_t stream);

#endif
