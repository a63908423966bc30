/* fuzz/replay.c -- see fuzz/replay.h. */
#include "fuzz/replay.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "fuzz/campaign.h"

void replay_model_text(const struct sim_plan *plan, char *target, size_t bytes)
{
    snprintf(target, bytes, "%c%s%s%s", "KOFA"[plan->model],
             plan -> faults ? "+E" : "", plan->damage ? "+R" : "",
             plan->snapshots ? "+S" : "");
}

void replay_skip_text(const struct sim_plan *plan, char *target, size_t bytes)
{
    size_t used = 0;

    target[0] = '\0';
    for (unsigned depth = 0; depth < SIM_DEPTH_MAX; depth++) {
        for (unsigned step = 0; step < SIM_STEPS_MAX; step++) {
            const unsigned first = step;

            if (!plan->skip[depth][step]) {
                continue;
            }
            while (step + 1 < SIM_STEPS_MAX && plan->skip[depth][step + 1]) {
                step++;
            }
            used += (size_t)snprintf(target + used, bytes - used, "%s%u:%u",
                                     used == 0 ? "" : ",", depth, first);
            if (step > first) {
                used +=
                    (size_t)snprintf(target + used, bytes - used, "-%u", step);
            }
        }
    }
}

static bool parse_below(const char **text, unsigned limit, unsigned *number_out)
{
    char *end;
    const unsigned long number = strtoul(*text, &end, 10);

    if (end == *text || **text < '0' || **text > '9' || number >= limit) {
        return false;
    }
    *text = end;
    *number_out = (unsigned)number;
    return true;
}

bool replay_parse_skip(const char *text, struct sim_plan *plan)
{
    for (;;) {
        unsigned depth;
        unsigned first;
        unsigned last;

        if (!parse_below(&text, SIM_DEPTH_MAX, &depth) || *text++ != ':' ||
            !parse_below(&text, SIM_STEPS_MAX, &first)) {
            return false;
        }
        last = first;
        if (*text == '-') {
            text++;
            if (!parse_below(&text, SIM_STEPS_MAX, &last) || last < first) {
                return false;
            }
        }
        for (unsigned step = first; step <= last; step++) {
            plan->skip[depth][step] = true;
        }
        if (*text == '\0') {
            return true;
        }
        if (*text++ != ',') {
            return false;
        }
    }
}

bool replay_write(FILE *file, const struct sim_plan *plan)
{
    char model[16];
    char skip[REPLAY_TEXT_BYTES];

    replay_model_text(plan, model, sizeof model);
    replay_skip_text(plan, skip, sizeof skip);
    return fprintf(file, "seed %" PRIu64 "\nmodel %s\n", plan->seed, model) >
               0 &&
           (skip[0] == '\0' || fprintf(file, "skip %s\n", skip) > 0);
}

bool replay_parse_number(const char *text, uint64_t *number_out)
{
    char *end;

    errno = 0;
    *number_out = strtoull(text, &end, 0);
    return errno == 0 && end != text && *end == '\0' && *text != '-';
}

bool replay_read(FILE *file, struct sim_plan *plan_out, char *problem,
                 size_t problem_bytes)
{
    struct campaign_model model = {0};
    char skip[REPLAY_TEXT_BYTES] = "";
    char line[REPLAY_TEXT_BYTES];
    uint64_t seed = 0;
    unsigned number = 0;
    bool seeded = false;

    errno = 0;
    while (fgets(line, sizeof line, file) != NULL) {
        bool good = false;

        number++;
        line[strcspn(line, "\n")] = '\0';
        if (strncmp(line, "seed ", 5) == 0) {
            good = seeded = replay_parse_number(line + 5, &seed);
        } else if (strncmp(line, "model ", 6) == 0) {
            good = campaign_parse_model(line + 6, &model);
        } else if (strncmp(line, "skip ", 5) == 0) {
            snprintf(skip, sizeof skip, "%s", line + 5);
            good = true;
        } else {
            good = line[0] == '\0' || line[0] == '#';
        }
        if (!good) {
            snprintf(problem, problem_bytes, "line %u: \"%.60s\"", number,
                     line);
            return false;
        }
    }
    if (ferror(file) || !seeded) {
        snprintf(problem, problem_bytes, "%s",
                 ferror(file) ? strerror(errno) : "no line \"seed N\"");
        return false;
    }
    campaign_plan(&model, seed, plan_out);
    if (skip[0] != '\0' && !replay_parse_skip(skip, plan_out)) {
        snprintf(problem, problem_bytes, "skip \"%.60s\"", skip);
        return false;
    }
    return true;
}
