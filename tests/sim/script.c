/* tests/sim/script.c -- see tests/sim/script.h. */
#include "tests/sim/script.h"

#include "tests/lib/random.h"

/* How often each kind comes, before a world's swarm changes that. */
static const uint8_t weights[SIM_STEP_KINDS] = {
    [SIM_STEP_DURABLE] = 22,       [SIM_STEP_RELAXED] = 26,
    [SIM_STEP_GROUP] = 8,          [SIM_STEP_IMAGE] = 2,
    [SIM_STEP_SYNC] = 3,           [SIM_STEP_FREEZE] = 7,
    [SIM_STEP_CHECKPOINT] = 9,     [SIM_STEP_DRAIN] = 2,
    [SIM_STEP_TEND] = 6,           [SIM_STEP_READ] = 3,
    [SIM_STEP_READER] = 6,         [SIM_STEP_READER_END] = 1,
    [SIM_STEP_FAULT] = 0,          [SIM_STEP_KILL] = 4,
    [SIM_STEP_REOPEN] = 2,         [SIM_STEP_SNAPSHOT] = 7,
    [SIM_STEP_SNAPSHOT_STEP] = 24, [SIM_STEP_LOSE_INDEX] = 2,
    [SIM_STEP_HOLD] = 8,           [SIM_STEP_PAST] = 4,
    [SIM_STEP_CLOCK] = 4,          [SIM_STEP_ROT_INDEX] = 1,
    [SIM_STEP_ROT_SNAPSHOT] = 2,   [SIM_STEP_BACKUP] = 5,
    [SIM_STEP_RESTORE] = 2,
};

enum { FAULT_WEIGHT = 16 };

/* The weights of one world. */
static void swarm_weights(const struct sim_profile *profile,
                          uint32_t mine[SIM_STEP_KINDS])
{
    static const uint8_t factors[] = {0, 1, 1, 4};
    struct random_source random = {.state = profile->swarm};

    for (unsigned kind = 0; kind < SIM_STEP_KINDS; kind++) {
        mine[kind] =
            weights[kind] * (uint32_t)factors[random_below(
                                &random, sizeof factors / sizeof *factors)];
    }
    if (mine[SIM_STEP_DURABLE] + mine[SIM_STEP_RELAXED] == 0) {
        mine[SIM_STEP_DURABLE] = weights[SIM_STEP_DURABLE];
        mine[SIM_STEP_RELAXED] = weights[SIM_STEP_RELAXED];
    }
    mine[SIM_STEP_FAULT] = profile->faults ? FAULT_WEIGHT : 0;
    for (unsigned kind = SIM_STEP_SNAPSHOT; kind < SIM_STEP_KINDS; kind++) {
        mine[kind] = profile->snapshots ? mine[kind] : 0;
    }
    if (profile->snapshots && mine[SIM_STEP_SNAPSHOT] == 0) {
        mine[SIM_STEP_SNAPSHOT_STEP] += weights[SIM_STEP_SNAPSHOT_STEP];
    }
}

static enum sim_step_kind random_kind(const uint32_t mine[SIM_STEP_KINDS],
                                      struct random_source *random)
{
    uint64_t total = 0;
    uint64_t pick;

    for (unsigned kind = 0; kind < SIM_STEP_KINDS; kind++) {
        total += mine[kind];
    }
    pick = random_below(random, total);
    for (unsigned kind = 0; kind < SIM_STEP_KINDS; kind++) {
        if (pick < mine[kind]) {
            return (enum sim_step_kind)kind;
        }
        pick -= mine[kind];
    }
    return SIM_STEP_DURABLE; /* Not reached. */
}

size_t sim_script_make(const struct sim_profile *profile, uint64_t seed,
                       struct sim_step steps[SIM_STEPS_MAX])
{
    struct random_source random = {.state = seed};
    uint32_t mine[SIM_STEP_KINDS];
    size_t count =
        profile->steps < SIM_STEPS_MAX ? profile->steps : SIM_STEPS_MAX;

    swarm_weights(profile, mine);
    for (size_t index = 0; index < count; index++) {
        steps[index].seed = random_u64(&random);
        steps[index].kind = random_kind(mine, &random);
        /* Gaps need relaxed commits that follow each other. */
        if (index > 0 && steps[index - 1].kind == SIM_STEP_RELAXED &&
            random_one_in(&random, 2)) {
            steps[index].kind = SIM_STEP_RELAXED;
        }
        /* An index that is applying is no state. */
        if (profile->snapshots && index > 0 &&
            steps[index - 1].kind == SIM_STEP_CHECKPOINT &&
            random_one_in(&random, 3)) {
            steps[index].kind = SIM_STEP_SNAPSHOT_STEP;
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
        "snapshot",
        "step of a snapshot",
        "the index is lost",
        "a past LSN is held, or let go of",
        "view of a past LSN",
        "the wall clock jumps",
        "rot in the index",
        "rot in a snapshot",
        "backup",
        "restore",
    };

    return names[kind];
}
