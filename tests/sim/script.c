/* tests/sim/script.c -- see tests/sim/script.h. */
#include "tests/sim/script.h"

#include "tests/lib/random.h"

/* How often each kind comes, in a hundred-odd. */
static const uint8_t weights[SIM_STEP_KINDS] = {
    [SIM_STEP_DURABLE] = 22,   [SIM_STEP_RELAXED] = 26,
    [SIM_STEP_GROUP] = 8,      [SIM_STEP_IMAGE] = 2,
    [SIM_STEP_SYNC] = 3,       [SIM_STEP_FREEZE] = 7,
    [SIM_STEP_CHECKPOINT] = 9, [SIM_STEP_DRAIN] = 2,
    [SIM_STEP_TEND] = 6,       [SIM_STEP_READ] = 3,
    [SIM_STEP_READER] = 6,     [SIM_STEP_READER_END] = 1,
    [SIM_STEP_FAULT] = 0,      [SIM_STEP_KILL] = 4,
    [SIM_STEP_REOPEN] = 2,
};

enum { FAULT_WEIGHT = 12 };

static enum sim_step_kind random_kind(const struct sim_profile *profile,
                                      struct random_source *random)
{
    uint64_t total = profile->faults ? FAULT_WEIGHT : 0;
    uint64_t pick;

    for (unsigned kind = 0; kind < SIM_STEP_KINDS; kind++) {
        total += weights[kind];
    }
    pick = random_below(random, total);
    for (unsigned kind = 0; kind < SIM_STEP_KINDS; kind++) {
        if (pick < weights[kind]) {
            return (enum sim_step_kind)kind;
        }
        pick -= weights[kind];
    }
    return SIM_STEP_FAULT;
}

size_t sim_script_make(const struct sim_profile *profile, uint64_t seed,
                       struct sim_step steps[SIM_STEPS_MAX])
{
    struct random_source random = {.state = seed};
    size_t count =
        profile->steps < SIM_STEPS_MAX ? profile->steps : SIM_STEPS_MAX;

    for (size_t index = 0; index < count; index++) {
        steps[index].seed = random_u64(&random);
        steps[index].kind = random_kind(profile, &random);
        /* Gaps need relaxed commits that follow each other. */
        if (index > 0 && steps[index - 1].kind == SIM_STEP_RELAXED &&
            random_one_in(&random, 2)) {
            steps[index].kind = SIM_STEP_RELAXED;
        }
    }
    return count;
}

const char *sim_step_name(enum sim_step_kind kind)
{
    static const char *const names[SIM_STEP_KINDS] = {
        "durable commit",
        "relaxed commit",
        "group",
        "value with the image of a unit",
        "sync",
        "freeze",
        "checkpoint transaction",
        "checkpoint to the end",
        "log keeper",
        "view",
        "reader in another process",
        "reader ends",
        "fault armed",
        "kill and open again",
        "close and open again",
    };

    return names[kind];
}
