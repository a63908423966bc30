/*
 * tests/test_sim_memory.c -- every operation, while the n-th allocation of the
 * engine fails, for n = 1, 2, ... until one run meets no failure; once, and from
 * the n-th on for as long as the operation lasts.
 *
 * STELE_NO_MEMORY, nothing changed, nothing lost, and the handle goes on: the
 * rest is checked by tests/sim/trial.h, and leaks by running this under the
 * address sanitizer. The simulation's own allocations do not fail, but for the
 * handles of its index.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/sim/trial.h"

enum { ALLOCATIONS_MAX = 3000 }; /* More than any one operation makes. */

/* ---- Failing --------------------------------------------------------------------- */

static struct {
    bool armed;
    uint32_t after; /* So many work. */
    uint32_t times;
    uint32_t seen;
    uint32_t struck;
} shortage;

static bool strikes(void)
{
    if (!shortage.armed || sim_is_allocating() ||
        shortage.struck >= shortage.times || shortage.seen++ < shortage.after) {
        return false;
    }
    shortage.struck++;
    return true;
}

/* The linker puts these in the place of the C library's (--wrap). */
void *__real_malloc(size_t bytes);
void *__real_calloc(size_t count, size_t bytes);
void *__real_realloc(void *old, size_t bytes);
void *__real_aligned_alloc(size_t alignment, size_t bytes);
char *__real_strdup(const char *text);
void *__wrap_malloc(size_t bytes);
void *__wrap_calloc(size_t count, size_t bytes);
void *__wrap_realloc(void *old, size_t bytes);
void *__wrap_aligned_alloc(size_t alignment, size_t bytes);
char *__wrap_strdup(const char *text);

void *__wrap_malloc(size_t bytes)
{
    return strikes() ? NULL : __real_malloc(bytes);
}

void *__wrap_calloc(size_t count, size_t bytes)
{
    return strikes() ? NULL : __real_calloc(count, bytes);
}

void *__wrap_realloc(void *old, size_t bytes)
{
    return strikes() ? NULL : __real_realloc(old, bytes);
}

void *__wrap_aligned_alloc(size_t alignment, size_t bytes)
{
    return strikes() ? NULL : __real_aligned_alloc(alignment, bytes);
}

char *__wrap_strdup(const char *text)
{
    return strikes() ? NULL : __real_strdup(text);
}

/* ---- Judging ---------------------------------------------------------------------- */

static void judge(struct sim_trial *trial)
{
    struct stele_error error;

    for (size_t index = 0; index < trial->failure_count; index++) {
        const struct sim_failure *failure = &trial->failures[index];

        if (shortage.struck == 0 || failure->status != STELE_NO_MEMORY ||
            failure->error.status != STELE_NO_MEMORY ||
            strstr(failure->error.message, "memory") == NULL) {
            sim_trial_problem(trial, "%s: status %d, \"%s\"", failure->what,
                              (int)failure->status, failure->error.message);
        }
    }
    if (trial->store != NULL &&
        store_check_writable(trial->store, &error) != STELE_OK) {
        sim_trial_problem(trial, "%s", error.message);
    }
    if (trial->store != NULL && trial->store->index_dead) {
        sim_trial_problem(trial, "the index was given up");
    }
    trial->failure_count = 0;
}

/* ---- Looping ------------------------------------------------------------------------ */

static struct {
    uint64_t runs;
    uint64_t struck;
    uint64_t failed; /* Something was refused on account of it. */
    uint64_t problems;
} tally;

/* One run; false: nothing was struck, or something is wrong. */
static bool run(struct sim_base *base, const struct sim_scenario *scenario)
{
    struct sim_trial trial;

    sim_trial_begin(&trial, base, scenario);
    shortage.armed = true;
    sim_trial_act(&trial);
    shortage.armed = false;
    tally.runs++;
    tally.struck += shortage.struck > 0;
    tally.failed += trial.failure_count > 0;
    judge(&trial);
    trial.unexamined = tally.runs % SIM_ONE_IN != 0;
    sim_trial_go_on(&trial, base);
    sim_trial_end(&trial, base);
    if (trial.problem[0] != '\0') {
        print_error("%s: allocation %" PRIu32 "%s: %s\n", scenario->name,
                    shortage.after + 1,
                    shortage.times == 1 ? "" : " and all that follow",
                    trial.problem);
        tally.problems++;
        return false;
    }
    return shortage.struck > 0;
}

static void fail_each_allocation(const struct sim_scenario *scenario,
                                 uint32_t times)
{
    char problem[SIM_PROBLEM_BYTES];
    struct sim_base base;
    bool struck = true;

    if (!sim_base_make(&base, scenario, IO_FS_OVERWRITE, problem)) {
        fail_msg("%s: %s", scenario->name, problem);
    }
    for (uint32_t after = 0; struck; after++) {
        assert_true(after < ALLOCATIONS_MAX);
        memset(&shortage, 0, sizeof shortage);
        shortage.after = after;
        shortage.times = times;
        struck = run(&base, scenario);
    }
    sim_base_free(&base);
}

static void fail_everything(uint32_t times)
{
    memset(&tally, 0, sizeof tally);
    for (const struct sim_scenario *scenario = sim_scenarios;
         scenario->name != NULL; scenario++) {
        fail_each_allocation(scenario, times);
    }
    print_message("%" PRIu64 " runs, %" PRIu64
                  " without memory somewhere, %" PRIu64 " refused\n",
                  tally.runs, tally.struck, tally.failed);
    assert_int_equal(tally.problems, 0);
    assert_true(tally.failed > 100);
}

static void any_allocation_may_fail(void **state)
{
    (void)state;
    fail_everything(1);
}

static void memory_may_be_gone_until_the_operation_is_over(void **state)
{
    (void)state;
    fail_everything(UINT32_MAX);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(any_allocation_may_fail),
        cmocka_unit_test(memory_may_be_gone_until_the_operation_is_over),
    };

    return cmocka_run_group_tests_name("simulated shortage of memory", tests,
                                       NULL, NULL);
}
