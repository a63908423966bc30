/*
 * fuzz/replay.h -- a world as text, so that it can be looked at again.
 *
 *     seed 4711
 *     model O+E
 *     skip 0:3,0:7-11,1:2
 *
 * `skip` names steps that are left out, life:step or life:first-last, all from 0.
 */
#ifndef FUZZ_REPLAY_H
#define FUZZ_REPLAY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "tests/sim/explore.h"

enum { REPLAY_TEXT_BYTES = 1200 };

/* All of the text is a number. */
bool replay_parse_number(const char *text, uint64_t *number_out);

/* "O+E" of a plan. */
void replay_model_text(const struct sim_plan *plan, char *target, size_t bytes);

/* "0:3,0:7-11", "" if nothing is left out. Any plan's fits into
 * REPLAY_TEXT_BYTES. */
void replay_skip_text(const struct sim_plan *plan, char *target, size_t bytes);
/* Adds to what the plan leaves out. False: `text` is not such a list. */
bool replay_parse_skip(const char *text, struct sim_plan *plan);

/* False, and errno: it could not be written. */
bool replay_write(FILE *file, const struct sim_plan *plan);
/* False: it is not such a file; `problem` says why. */
bool replay_read(FILE *file, struct sim_plan *plan_out, char *problem,
                 size_t problem_bytes);

#endif
