/*
 * fuzz/campaign.h -- worlds one after another, until there were enough.
 */
#ifndef FUZZ_CAMPAIGN_H
#define FUZZ_CAMPAIGN_H

#include <stdbool.h>
#include <stdint.h>

#include "tests/sim/explore.h"

/* Which worlds: what is left open follows from each seed. */
struct campaign_model {
    bool fixed;     /* `model` alone, or each seed's own. */
    bool faults;    /* "+E": in every world. */
    bool damage;    /* "+R" */
    bool snapshots; /* "+S" */
    enum sim_model model;
};

/* "K", "O+E", "any-order+R+S", ... False: unknown. */
bool campaign_parse_model(const char *text, struct campaign_model *model_out);

/* The plan of one world. */
void campaign_plan(const struct campaign_model *model, uint64_t seed,
                   struct sim_plan *plan_out);

struct campaign {
    struct campaign_model model;
    uint64_t seed;       /* Of the first world; the next has the next one. */
    double seconds_max;  /* 0: no limit. */
    uint64_t states_max; /* 0: no limit. */
    bool progress;       /* Say on stderr how far it is. */
};

struct campaign_result {
    struct sim_tally tally;
    double seconds;
    bool violated;
    struct sim_plan plan; /* Of the world with the violation. */
    struct sim_violation violation;
};

/* Until a limit is reached, or something is wrong. */
void campaign_run(const struct campaign *campaign,
                  struct campaign_result *result);

/* One world. */
void campaign_replay(const struct sim_plan *plan,
                     struct campaign_result *result);

double campaign_clock_s(void); /* Monotonic. */

#endif
