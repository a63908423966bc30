/* fuzz/campaign.c -- see fuzz/campaign.h. */
#include "fuzz/campaign.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

double campaign_clock_s(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

/* "K" or "kill". */
static bool parse_base(const char *text, size_t bytes,
                       enum sim_model *model_out)
{
    static const char letters[] = "KOFA";

    for (unsigned model = 0; model < SIM_MODELS; model++) {
        const char *name = sim_model_name((enum sim_model)model);

        if ((bytes == 1 && text[0] == letters[model]) ||
            (strlen(name) == bytes && strncmp(text, name, bytes) == 0)) {
            *model_out = (enum sim_model)model;
            return true;
        }
    }
    return false;
}

bool campaign_parse_model(const char *text, struct campaign_model *model_out)
{
    struct campaign_model model = {.fixed = true};
    size_t bytes = strcspn(text, "+");

    if (!parse_base(text, bytes, &model.model)) {
        return false;
    }
    for (text += bytes; *text != '\0'; text += 2) {
        if (strncmp(text, "+E", 2) == 0) {
            model.faults = true;
        } else if (strncmp(text, "+R", 2) == 0) {
            model.damage = true;
        } else if (strncmp(text, "+S", 2) == 0) {
            model.snapshots = true;
        } else {
            return false;
        }
    }
    *model_out = model;
    return true;
}

void campaign_plan(const struct campaign_model *model, uint64_t seed,
                   struct sim_plan *plan_out)
{
    sim_plan_init(plan_out, seed);
    if (model->fixed) {
        plan_out->model = model->model;
        plan_out->faults = model->faults;
        plan_out->damage = model->damage;
        plan_out->snapshots = model->snapshots;
    }
}

static void say_progress(const struct campaign *campaign,
                         const struct campaign_result *result, double now_s,
                         double *said_s)
{
    if (campaign->progress && now_s - *said_s >= 0.5) {
        fprintf(stderr, "\r%" PRIu64 " states, %.0f s ", result->tally.states,
                result->seconds);
        *said_s = now_s;
    }
}

void campaign_run(const struct campaign *campaign,
                  struct campaign_result *result)
{
    const double started_s = campaign_clock_s();
    double said_s = started_s;
    uint64_t seed = campaign->seed;

    *result = (struct campaign_result){.violated = false};
    do {
        double now_s;

        campaign_plan(&campaign->model, seed++, &result->plan);
        result->violated =
            !sim_explore(&result->plan, &result->tally, &result->violation);
        now_s = campaign_clock_s();
        result->seconds = now_s - started_s;
        say_progress(campaign, result, now_s, &said_s);
    } while (!result->violated &&
             (campaign->seconds_max == 0 ||
              result->seconds < campaign->seconds_max) &&
             (campaign->states_max == 0 ||
              result->tally.states < campaign->states_max));
    if (campaign->progress) {
        fprintf(stderr, "\r                                \r");
    }
}

void campaign_replay(const struct sim_plan *plan,
                     struct campaign_result *result)
{
    const double started_s = campaign_clock_s();

    *result = (struct campaign_result){.plan = *plan};
    result->violated = !sim_explore(plan, &result->tally, &result->violation);
    result->seconds = campaign_clock_s() - started_s;
}
