/* tests/lib/run.c -- see tests/lib/run.h. */
#include "tests/lib/run.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define SEED_NAME "STELE_TEST_SEED"

static uint64_t seed_chosen;
static bool seed_is_chosen;

uint64_t run_setting(const char *name, uint64_t otherwise)
{
    const char *text = getenv(name);

    return text == NULL || text[0] == '\0' ? otherwise
                                           : strtoull(text, NULL, 0);
}

uint64_t run_seed(void)
{
    char text[32];

    if (seed_is_chosen) {
        return seed_chosen;
    }
    seed_is_chosen = true;
    if (getenv(SEED_NAME) != NULL) {
        seed_chosen = run_setting(SEED_NAME, 0);
        return seed_chosen;
    }
    seed_chosen = random_seed() & UINT32_MAX; /* Short enough to type again. */
    snprintf(text, sizeof text, "%" PRIu64, seed_chosen);
    setenv(SEED_NAME, text, 1);
    printf(SEED_NAME "=%s\n", text);
    fflush(stdout);
    return seed_chosen;
}

void run_fail(const char *format, ...)
{
    char text[2048];
    va_list args;

    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    fflush(stdout);
    /* One call, so that what two threads say does not mix. */
    fprintf(stderr, "FAILED (process %ld, " SEED_NAME "=%" PRIu64 "): %s\n",
            (long)getpid(), seed_chosen, text);
    abort();
}

void run_expect_ok(enum stele_status status, const struct stele_error *error,
                   const char *doing)
{
    if (status != STELE_OK) {
        run_fail("%s: status %d: %s", doing, (int)status,
                 error == NULL ? "" : error->message);
    }
}

struct random_source run_random(uint64_t stream)
{
    struct random_source streams = {.state = run_seed() ^ stream << 32};

    return (struct random_source){.state = random_u64(&streams)};
}
