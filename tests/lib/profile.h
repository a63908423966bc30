/*
 * tests/lib/profile.h -- the sets of options a test is run with.
 *
 * "default" is what stele_open() takes. "tiny" has everything happen all the
 * time: segments of 1 MiB, a memtable of 64 KiB, 8 dirty pages in a checkpoint
 * transaction.
 */
#ifndef TESTS_LIB_PROFILE_H
#define TESTS_LIB_PROFILE_H

#include "engine/stele.h"
#include "engine/store.h"

struct profile {
    const char *name;
    struct stele_options options;
    struct store_tuning tuning;
};

/* "default" or "tiny"; any other name fails the run. */
struct profile profile_named(const char *name);

/* store_open() with the profile in this mode. */
enum stele_status profile_open(const struct profile *profile, const char *path,
                               enum stele_open_mode mode,
                               struct stele **store_out,
                               struct stele_error *error) STELE_MUST_CHECK;

/* The same; fails the run if it fails. */
struct stele *profile_open_ok(const struct profile *profile, const char *path,
                              enum stele_open_mode mode);

/* Fails the run, with the findings, unless stele_verify() finds nothing. */
void profile_verify_ok(struct stele *store);

/* Fails the run if it fails. */
struct stele_stats profile_stats(struct stele *store);

#endif
