/* tests/lib/profile.c -- see tests/lib/profile.h. */
#include "tests/lib/profile.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "tests/lib/run.h"

struct profile profile_named(const char *name)
{
    struct profile profile = {.name = name};

    stele_options_init(&profile.options);
    store_tuning_init(&profile.tuning);
    if (strcmp(name, "tiny") == 0) {
        profile.options.segment_bytes = (uint64_t)1 << 20;
        profile.options.memtable_bytes = (uint64_t)64 << 10;
        profile.tuning.checkpoint_pages_max = 8;
        profile.tuning.checkpoint_pages_per_step = 32;
        profile.tuning.checkpoint_pause_ms = 1;
        profile.tuning.range_fragments_max = 64;
    } else if (strcmp(name, "default") != 0) {
        run_fail("there is no profile %s", name);
    }
    return profile;
}

enum stele_status profile_open(const struct profile *profile, const char *path,
                               enum stele_open_mode mode,
                               struct stele **store_out,
                               struct stele_error *error)
{
    struct stele_options options = profile->options;

    options.mode = mode;
    return store_open(path, &options, &profile->tuning, store_out, error);
}

struct stele *profile_open_ok(const struct profile *profile, const char *path,
                              enum stele_open_mode mode)
{
    struct stele_error error;
    struct stele *store = NULL;

    run_expect_ok(profile_open(profile, path, mode, &store, &error), &error,
                  path);
    return store;
}

static void print_finding(void *context, const struct stele_error *problem)
{
    (void)context;
    fprintf(stderr, "verify: %s\n", problem->message);
}

void profile_verify_ok(struct stele *store)
{
    struct stele_verify_report report = {.size = sizeof report};
    struct stele_error error;

    run_expect_ok(stele_verify(store, print_finding, NULL, &report, &error),
                  &error, "verify");
    if (report.problems != 0) {
        run_fail("verify: OK, but %" PRIu64 " problems", report.problems);
    }
}

struct stele_stats profile_stats(struct stele *store)
{
    struct stele_stats stats = {.size = sizeof stats};
    struct stele_error error;

    run_expect_ok(stele_stats(store, &stats, &error), &error, "statistics");
    return stats;
}
