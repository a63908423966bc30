/*
 * tests/test_sim_faults.c -- every operation, while the n-th system call of a
 * kind fails, for n = 1, 2, ... until one run meets no failure; once, and from
 * the n-th on for as long as the operation lasts.
 *
 * On the simulated machine (tests/sim/). What holds whatever the operation is
 * checked by tests/sim/trial.h; here is what the kind of failure says: which
 * statuses may come of it, whether the handle may still write, and what is never
 * asked again.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "tests/lib/suffix.h"
#include "tests/sim/trial.h"

enum {
    CALLS_MAX = 3000, /* More than any one operation makes of a kind. */
    STRUCK_NAMES = 8,
    LOST_NAMES = 8,
    INTERRUPTIONS = 3, /* "For ever", for a call that is repeated. */
};

/* Beside -errno: what a short write or read leaves out. */
enum short_call {
    ALL_BUT_A_BYTE = 1,
    ALL_BUT_A_SECTOR,
    ONE_BYTE,
    NOTHING,
};

static const struct kind {
    enum sim_call call;
    int result;
} kinds[] = {
    {SIM_CALL_WRITE, -EIO},
    {SIM_CALL_WRITE, -ENOSPC},
    {SIM_CALL_WRITE, -EDQUOT},
    {SIM_CALL_WRITE, -EINTR},
    {SIM_CALL_WRITE, ALL_BUT_A_BYTE},
    {SIM_CALL_WRITE, ALL_BUT_A_SECTOR},
    {SIM_CALL_WRITE, ONE_BYTE},
    {SIM_CALL_WRITE, NOTHING},
    {SIM_CALL_SYNC, -EIO},
    {SIM_CALL_SYNC, -ENOSPC},
    {SIM_CALL_SYNC, -EDQUOT},
    {SIM_CALL_SYNC, -EINTR},
    {SIM_CALL_SYNC, -EROFS},
    {SIM_CALL_SYNC_DIR, -EIO},
    {SIM_CALL_SYNC_DIR, -ENOSPC},
    {SIM_CALL_SYNC_DIR, -EDQUOT},
    {SIM_CALL_SYNC_DIR, -EINTR},
    {SIM_CALL_SYNC_DIR, -EROFS},
    {SIM_CALL_SYNC_DIR, -EINVAL},
    {SIM_CALL_OPEN_FILE, -EMFILE},
    {SIM_CALL_OPEN_FILE, -ENFILE},
    {SIM_CALL_OPEN_FILE, -EACCES},
    {SIM_CALL_OPEN_FILE, -ENOSPC},
    {SIM_CALL_OPEN_FILE, -EROFS},
    {SIM_CALL_OPEN_FILE, -EINTR},
    {SIM_CALL_OPEN_DIR, -EMFILE},
    {SIM_CALL_OPEN_DIR, -ENFILE},
    {SIM_CALL_OPEN_DIR, -EACCES},
    {SIM_CALL_OPEN_DIR, -EINTR},
    {SIM_CALL_MAKE_DIR, -EIO},
    {SIM_CALL_MAKE_DIR, -ENOSPC},
    {SIM_CALL_MAKE_DIR, -EROFS},
    {SIM_CALL_ALLOCATE, -EOPNOTSUPP},
    {SIM_CALL_ALLOCATE, -ENOSPC},
    {SIM_CALL_ALLOCATE, -EIO},
    {SIM_CALL_ALLOCATE, -EINTR},
    {SIM_CALL_TRUNCATE, -EIO},
    {SIM_CALL_TRUNCATE, -ENOSPC},
    {SIM_CALL_RENAME, -EIO},
    {SIM_CALL_RENAME, -ENOSPC},
    {SIM_CALL_UNLINK, -EIO},
    {SIM_CALL_UNLINK, -EROFS},
    {SIM_CALL_RMDIR, -EIO},
    {SIM_CALL_LIST, -EIO},
    {SIM_CALL_LIST, -EMFILE},
    {SIM_CALL_INFO, -EIO},
    {SIM_CALL_INFO, -EACCES},
    {SIM_CALL_READ, -EIO},
    {SIM_CALL_READ, -EINTR},
    {SIM_CALL_READ, ALL_BUT_A_BYTE},
    {SIM_CALL_READ, ALL_BUT_A_SECTOR},
    {SIM_CALL_READ, ONE_BYTE},
    {SIM_CALL_CLOSE, -EIO},
    {SIM_CALL_CLOSE, -EINTR},
    {SIM_CALL_WRITE_BACK, -EIO},
    {SIM_CALL_WRITE_BACK, -ENOSPC},
    {SIM_CALL_DROP_CACHE, -EIO},
    {SIM_CALL_LOCK, -EIO},
    {SIM_CALL_LOCK, -ENOLCK},
    {SIM_CALL_RANDOM, -EIO},
    {SIM_CALL_RANDOM, -ENOSYS},
    {SIM_CALL_INDEX_COMMIT, -EIO},
    {SIM_CALL_INDEX_COMMIT, -ENOSPC},
};

/* ---- Failing -------------------------------------------------------------------- */

/* What fails, and what it struck. */
struct fault {
    struct kind kind;
    uint32_t after; /* So many calls work. */
    uint32_t times;
    bool nothing_reserved; /* fallocate is not supported at all. */
    bool beside;           /* None of the store's files is written. */
    bool armed;
    uint32_t seen;
    uint32_t struck;
    char names[STRUCK_NAMES][SIM_NAME_BYTES];
    /* The handle may write no more. */
    bool poisons;
    /* Files whose sync failed: never again, by the same handle. */
    char lost[LOST_NAMES][SIM_NAME_BYTES];
    uint32_t lost_count;
    char repeated[SIM_NAME_BYTES]; /* One that was asked again; "": none. */
    bool index_lost;
    bool index_repeated;
};

static bool is_full(int result)
{
    return result == -ENOSPC || result == -EDQUOT;
}

static bool is_sync(enum sim_call call)
{
    return call == SIM_CALL_SYNC || call == SIM_CALL_WRITE_BACK ||
           call == SIM_CALL_SYNC_DIR;
}

/* In use, not a temporary that can be made anew. */
static bool is_in_use(const char *name)
{
    return ends_in(name, ".wal") || strcmp(name, "ANCHOR") == 0;
}

static bool poisons(enum sim_call call, int result, const char *name)
{
    switch ((int)call) {
    case SIM_CALL_WRITE:
        return is_in_use(name) && !is_full(result) && result != -EINTR;
    case SIM_CALL_SYNC:
        return is_in_use(name);
    case SIM_CALL_SYNC_DIR:
        return true;
    default:
        return false;
    }
}

static void watch(struct fault *fault, enum sim_call call, const char *name)
{
    if (call == SIM_CALL_UNLINK) {
        for (uint32_t index = 0; index < fault->lost_count; index++) {
            if (strcmp(fault->lost[index], name) == 0) {
                fault->lost[index][0] = '\0'; /* The next one is another. */
            }
        }
    }
    if (is_sync(call)) {
        for (uint32_t index = 0; index < fault->lost_count; index++) {
            if (strcmp(fault->lost[index], name) == 0) {
                snprintf(fault->repeated, SIM_NAME_BYTES, "%s", name);
            }
        }
    }
    if (call == SIM_CALL_INDEX_COMMIT && fault->index_lost) {
        fault->index_repeated = true;
    }
}

static void note_strike(struct fault *fault, const char *name)
{
    const struct kind *kind = &fault->kind;

    if (fault->struck < STRUCK_NAMES) {
        snprintf(fault->names[fault->struck], SIM_NAME_BYTES, "%s", name);
    }
    fault->struck++;
    fault->poisons =
        fault->poisons ||
        (!fault->beside && poisons(kind->call, kind->result, name));
    if (is_sync(kind->call) && fault->lost_count < LOST_NAMES) {
        snprintf(fault->lost[fault->lost_count++], SIM_NAME_BYTES, "%s", name);
    }
    if (kind->call == SIM_CALL_INDEX_COMMIT && !is_full(kind->result)) {
        fault->index_lost = true;
    }
}

static int strike(void *context, enum sim_call call, const char *name,
                  size_t bytes)
{
    struct fault *fault = context;
    const int result = fault->kind.result;
    /* A short call leaves at least this much, if it is to be one. */
    const size_t kept[] = {0, bytes - 1, bytes > 512 ? bytes - 512 : 1, 1, 0};

    watch(fault, call, name);
    if (fault->nothing_reserved && call == SIM_CALL_ALLOCATE) {
        return -EOPNOTSUPP;
    }
    if (!fault->armed || call != fault->kind.call ||
        fault->struck >= fault->times || (result > 0 && bytes < 2)) {
        return 0;
    }
    if (fault->seen++ < fault->after) {
        return 0;
    }
    note_strike(fault, name);
    return result > 0 ? SIM_SHORT(kept[result]) : result;
}

/* Done again, or of no consequence: nobody notices. */
static bool is_harmless(const struct kind *kind)
{
    switch ((int)kind->call) {
    case SIM_CALL_WRITE:
    case SIM_CALL_OPEN_FILE:
    case SIM_CALL_OPEN_DIR:
        return kind->result == -EINTR;
    case SIM_CALL_ALLOCATE:
        return kind->result == -EINTR || kind->result == -EOPNOTSUPP;
    case SIM_CALL_READ:
        return kind->result == -EINTR || kind->result > 0;
    case SIM_CALL_CLOSE:
        return true;
    default:
        return false;
    }
}

/* ---- Judging --------------------------------------------------------------------- */

static bool names_what_was_struck(const struct fault *fault,
                                  const char *message)
{
    for (uint32_t index = 0; index < fault->struck && index < STRUCK_NAMES;
         index++) {
        if (strstr(message, fault->names[index]) != NULL) {
            return true;
        }
    }
    return false;
}

/* No failure of a call is absence, damage or a mistake of the caller's. */
static bool is_sane(const struct fault *fault, enum stele_status status)
{
    switch ((int)status) {
    case STELE_IO:
        return !is_full(fault->kind.result) || is_sync(fault->kind.call) ||
               fault->kind.call == SIM_CALL_RENAME;
    case STELE_NO_SPACE:
        return is_full(fault->kind.result);
    case STELE_UNKNOWN:
    case STELE_POISONED:
        return fault->poisons;
    default:
        return false;
    }
}

static void judge(struct sim_trial *trial, const struct fault *fault)
{
    for (size_t index = 0; index < trial->failure_count; index++) {
        const struct sim_failure *failure = &trial->failures[index];
        const char *message = failure->error.message;

        if (fault->struck == 0 || is_harmless(&fault->kind) ||
            failure->error.status != failure->status || message[0] == '\0' ||
            !names_what_was_struck(fault, message) ||
            !is_sane(fault, failure->status)) {
            sim_trial_problem(trial, "%s: status %d (%d), \"%s\"",
                              failure->what, (int)failure->status,
                              (int)failure->error.status, message);
        }
    }
    if (trial->store != NULL) {
        struct stele_error error;
        const bool poisoned =
            store_check_writable(trial->store, &error) != STELE_OK;

        if (poisoned != fault->poisons) {
            sim_trial_problem(
                trial, "%s", poisoned ? error.message : "the handle writes on");
        }
    }
    trial->failure_count = 0;
}

/* What failed may not be asked again by this handle: a sync would say that all is
 * well. */
static void judge_repetition(struct sim_trial *trial, const struct fault *fault)
{
    if (fault->repeated[0] != '\0') {
        sim_trial_problem(trial, "%s: synced again after that had failed",
                          fault->repeated);
    }
    if (fault->index_repeated) {
        sim_trial_problem(trial, "the index was written again after a commit "
                                 "had failed");
    }
}

/* ---- Looping ----------------------------------------------------------------------- */

/* Over all tests: a kind that never strikes tests nothing. */
static uint64_t struck_by_kind[sizeof kinds / sizeof kinds[0]];

static struct {
    uint64_t runs;
    uint64_t struck;
    uint64_t loops; /* In which anything was. */
    uint64_t problems;
} tally;

/* One run; false: nothing was struck, or something is wrong. */
static bool run(struct sim_base *base, const struct sim_scenario *scenario,
                struct fault *fault)
{
    struct sim_trial trial;

    sim_trial_begin(&trial, base, scenario);
    sim_disk_set_fault(trial.disk, strike, fault);
    fault->armed = true;
    sim_trial_act(&trial);
    fault->armed = false;
    judge(&trial, fault);
    trial.unexamined = tally.runs % SIM_ONE_IN != 0;
    sim_trial_go_on(&trial, base);
    if (!scenario->beside) {
        judge_repetition(&trial, fault);
    }
    sim_disk_set_fault(trial.disk, NULL, NULL);
    sim_trial_end(&trial, base);
    tally.runs++;
    tally.struck += fault->struck > 0;
    if (trial.problem[0] != '\0') {
        print_error(
            "%s: %s %s (%d)%s, call %" PRIu32 ": %s\n", scenario->name,
            sim_call_name(fault->kind.call),
            fault->kind.result < 0 ? strerror(-fault->kind.result) : "short",
            fault->kind.result, fault->times == 1 ? "" : " and all that follow",
            fault->after + 1, trial.problem);
        tally.problems++;
        return false;
    }
    return fault->struck > 0;
}

static void fail_each_call(const struct sim_scenario *scenario,
                           const struct kind *kind, uint32_t times,
                           enum io_fs_kind fs_kind)
{
    char problem[SIM_PROBLEM_BYTES];
    struct sim_base base;
    bool struck = true;
    uint32_t after = 0;

    if (!sim_base_make(&base, scenario, fs_kind, problem)) {
        fail_msg("%s: %s", scenario->name, problem);
    }
    for (; struck; after++) {
        struct fault fault = {
            .kind = *kind,
            .after = after,
            .times = times,
            .beside = scenario->beside,
            .nothing_reserved = fs_kind == IO_FS_COPY_ON_WRITE &&
                                kind->call != SIM_CALL_ALLOCATE,
        };

        assert_true(after < CALLS_MAX);
        struck = run(&base, scenario, &fault);
    }
    tally.loops += after > 1;
    struck_by_kind[kind - kinds] += after - 1;
    sim_base_free(&base);
}

static uint32_t for_ever(const struct kind *kind)
{
    return kind->result == -EINTR && !is_sync(kind->call) ? INTERRUPTIONS
                                                          : UINT32_MAX;
}

/* Where it matters what kind of file system it is. */
static bool is_wanted(const struct kind *kind, enum io_fs_kind fs_kind)
{
    return fs_kind == IO_FS_OVERWRITE || kind->call == SIM_CALL_WRITE ||
           kind->call == SIM_CALL_ALLOCATE || kind->call == SIM_CALL_TRUNCATE;
}

static void fail_everything(enum io_fs_kind fs_kind)
{
    size_t pair = 0;

    memset(&tally, 0, sizeof tally);
    for (const struct sim_scenario *scenario = sim_scenarios;
         scenario->name != NULL; scenario++) {
        for (size_t index = 0; index < sizeof kinds / sizeof kinds[0];
             index++) {
            /* Under sanitizers a share of the pairs, another for each scenario. */
            if (!is_wanted(&kinds[index], fs_kind) ||
                pair++ % SIM_ONE_IN != 0) {
                continue;
            }
            fail_each_call(scenario, &kinds[index], 1, fs_kind);
            fail_each_call(scenario, &kinds[index], for_ever(&kinds[index]),
                           fs_kind);
        }
    }
    print_message("%" PRIu64 " runs, %" PRIu64 " with a failing call; %" PRIu64
                  " loops\n",
                  tally.runs, tally.struck, tally.loops);
    assert_int_equal(tally.problems, 0);
    assert_true(tally.struck > 1000 / SIM_ONE_IN);
}

static void any_call_may_fail_once_or_for_ever(void **state)
{
    (void)state;
    fail_everything(IO_FS_OVERWRITE);
}

static void the_same_where_every_write_allocates(void **state)
{
    (void)state;
    fail_everything(IO_FS_COPY_ON_WRITE);
}

static void every_kind_of_failure_struck_somewhere(void **state)
{
    (void)state;
    if (SIM_ONE_IN > 1) {
        skip(); /* Not all were tried. */
    }
    for (size_t index = 0; index < sizeof kinds / sizeof kinds[0]; index++) {
        if (struck_by_kind[index] == 0) {
            fail_msg("%s, %d", sim_call_name(kinds[index].call),
                     kinds[index].result);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(any_call_may_fail_once_or_for_ever),
        cmocka_unit_test(the_same_where_every_write_allocates),
        cmocka_unit_test(every_kind_of_failure_struck_somewhere),
    };

    return cmocka_run_group_tests_name("simulated faults", tests, NULL, NULL);
}
