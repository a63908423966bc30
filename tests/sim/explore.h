/*
 * tests/sim/explore.h -- lives, cuts, lives after cuts: crash states by the
 * thousand, from one seed.
 *
 * A world: a store is made and lives through a script (tests/sim/script.h). Then
 * the recording is cut at places all over it, several ways each, and every disk
 * is examined (tests/sim/oracle.h). Some of them live on from there, and are cut
 * again, also inside their recovery, three deep. Some are damaged.
 *
 * Everything follows from the seed: a violation is found again by it.
 */
#ifndef TESTS_SIM_EXPLORE_H
#define TESTS_SIM_EXPLORE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tests/sim/cut.h"
#include "tests/sim/script.h"

enum { SIM_DEPTH_MAX = 3, SIM_VIOLATION_BYTES = 6000 };

struct sim_plan {
    uint64_t seed;
    enum sim_model model;
    bool faults;         /* E: calls fail, syncs lose what was pending. */
    bool damage;         /* R: rot. */
    bool snapshots;      /* S: and retention, past LSNs, lost indexes. */
    bool copy_on_write;  /* What the file system says it is. */
    bool memtable_small; /* A few range deletes fill it. */
    uint32_t steps;      /* Of a script. */
    uint32_t states_max; /* Of the first life; less in those after a cut. */
    bool skip[SIM_DEPTH_MAX][SIM_STEPS_MAX]; /* Steps left out, by depth. */
};

/* What `seed` makes of the settings that the caller leaves open. */
void sim_plan_init(struct sim_plan *plan, uint64_t seed);

struct sim_tally {
    uint64_t states; /* Disks that were opened and examined. */
    uint64_t deep;   /* ... with all the rules. */
    uint64_t damaged;
    uint64_t lives;
    uint64_t worlds;
    /* That the workload is what it should be. */
    uint64_t rotations;
    uint64_t snapshots;       /* Taken by the last process of each life. */
    uint64_t trimmed;         /* Segments removed by it. */
    uint64_t checkpoints_cut; /* States with applying > applied. */
    uint64_t relaxed_lost;    /* States that lost relaxed commits. */
    uint64_t torn;            /* States that recovery called torn (row C). */
    uint64_t archives;        /* Stores restored from those on the disks. */
};

struct sim_violation {
    uint64_t seed;
    enum sim_model model;
    uint32_t depth;
    size_t cut; /* Place in the recording; 0: while it lived. */
    char text[SIM_VIOLATION_BYTES]; /* The problem, and what lies around it. */
};

/* False: a violation. The tally is added to. */
bool sim_explore(const struct sim_plan *plan, struct sim_tally *tally,
                 struct sim_violation *violation);

/* Leave out steps as long as there is still a violation. */
void sim_shrink(struct sim_plan *plan, struct sim_violation *violation);

#endif
