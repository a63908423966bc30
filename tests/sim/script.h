/*
 * tests/sim/script.h -- what happens to a store in one life, made from a seed.
 *
 * Every step has a seed of its own, so that leaving one out leaves the others as
 * they are: that is how a failing script is made shorter.
 */
#ifndef TESTS_SIM_SCRIPT_H
#define TESTS_SIM_SCRIPT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum sim_step_kind {
    SIM_STEP_DURABLE,    /* A durable commit. */
    SIM_STEP_RELAXED,    /* A relaxed one. */
    SIM_STEP_GROUP,      /* Several committers share a unit. */
    SIM_STEP_IMAGE,      /* A value that contains the image of a unit. */
    SIM_STEP_SYNC,       /* stele_sync() */
    SIM_STEP_FREEZE,     /* A checkpoint begins ... */
    SIM_STEP_CHECKPOINT, /* ... goes on by a transaction ... */
    SIM_STEP_DRAIN,      /* ... or until everything is in the index. */
    SIM_STEP_TEND,       /* The log keeper looks around, after a while. */
    SIM_STEP_READ,       /* A view of the store's own process. */
    SIM_STEP_READER,     /* Another process looks: opens, or looks again. */
    SIM_STEP_READER_END, /* ... and ends. */
    SIM_STEP_FAULT,      /* A call to come will fail. */
    SIM_STEP_KILL,       /* The process dies, a new one opens the same cache. */
    SIM_STEP_REOPEN,     /* A clean close, and open. */
    /* In worlds with snapshots: tests/sim/world_base.c. */
    SIM_STEP_SNAPSHOT,      /* stele_snapshot() */
    SIM_STEP_SNAPSHOT_STEP, /* One begins, or goes on by a step. */
    SIM_STEP_LOSE_INDEX,    /* The process dies, and the index is gone. */
    SIM_STEP_HOLD,          /* A past LSN is held; or let go of again. */
    SIM_STEP_PAST,          /* A view of a past LSN. */
    SIM_STEP_CLOCK,         /* The wall clock jumps. */
    SIM_STEP_ROT_INDEX,     /* A value in the index rots, and is found. */
    SIM_STEP_ROT_SNAPSHOT,  /* A snapshot rots, and another is taken. */
    /* The same: tests/sim/world_archive.c. */
    SIM_STEP_BACKUP,  /* stele_backup(), by the writer or a reader. */
    SIM_STEP_RESTORE, /* A store is restored, in a process of its own. */
    SIM_STEP_KINDS,
};

struct sim_step {
    enum sim_step_kind kind;
    uint64_t seed;
};

enum { SIM_STEPS_MAX = 48 };

/* How much of what there is. Worlds differ: each leaves some kinds of step out and
 * has more of others (swarm testing, Groce et al. 2012), so that what needs many of
 * one kind is met too. */
struct sim_profile {
    uint32_t steps;
    bool faults;
    bool snapshots;
    uint64_t swarm; /* What this world has more and less of. */
};

size_t sim_script_make(const struct sim_profile *profile, uint64_t seed,
                       struct sim_step steps[SIM_STEPS_MAX]);

/* "durable commit". Static. */
const char *sim_step_name(enum sim_step_kind kind);

#endif
