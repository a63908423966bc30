/* tools/progress.c -- see tools/progress.h. */
#include "tools/progress.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <unistd.h>

#include "base/io.h"

static const uint64_t PROGRESS_INTERVAL_NS = 250u * 1000u * 1000u;

static bool progress_shown;
static uint64_t progress_last_ns;

static bool on_terminal(void)
{
    static enum { UNASKED, NO, YES } answer;

    if (answer == UNASKED) {
        answer = isatty(STDERR_FILENO) == 1 ? YES : NO;
    }
    return answer == YES;
}

static void show(const char *doing, uint64_t done, uint64_t total)
{
    uint64_t now_ns;

    if (!on_terminal()) {
        return;
    }
    now_ns = io_clock_monotonic_ns(io_posix());
    if (now_ns - progress_last_ns < PROGRESS_INTERVAL_NS) {
        return;
    }
    progress_last_ns = now_ns;
    fprintf(stderr, "\r\033[K%s %" PRIu64, doing, done);
    if (total > 0) {
        fprintf(stderr, " of %" PRIu64, total);
    }
    progress_shown = true;
}

void progress_count(const char *doing, uint64_t done, uint64_t total)
{
    /* The clock is asked only now and then: this is called for every item. */
    if (done % 1024 == 0) {
        show(doing, done, total);
    }
}

void progress_of_store(void *context, const char *step, uint64_t done,
                       uint64_t total)
{
    (void)context;
    show(step, done, total);
}

void progress_step(const char *doing, const char *what)
{
    if (on_terminal()) {
        fprintf(stderr, "\r\033[K%s %s", doing, what);
        progress_shown = true;
    }
}

void progress_end(void)
{
    if (progress_shown) {
        fputs("\r\033[K", stderr);
        progress_shown = false;
    }
}
