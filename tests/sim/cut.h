/*
 * tests/sim/cut.h -- what a disk may hold after the power failed at some point of
 * a recording.
 *
 * A cutter walks over the recording of a machine (tests/sim/disk.h). At every
 * point it knows what is durable for certain and what is pending since, and
 * makes images of what could be found after a cut there:
 *
 *     | model     | data                        | sizes  | names    | a sync commits
 *     |-----------|-----------------------------|--------|----------|----------------
 *     | KILL      | all                         | latest | all      | -
 *     | ORDERED   | each sector any version     | any in | a prefix | file: its data and
 *     |           | since the last sync         | the    | in order | all earlier names;
 *     |           |                             | window |          | directory: all
 *     |           |                             |        |          | earlier names
 *     | OWN_NAME  | same                        | same   | any      | file: its data and own
 *     |           |                             |        | subset   | names; directory: its
 *     |           |                             |        |          | names
 *     | ANY_ORDER | same, and zeros or garbage  | same   | any      | file: its data;
 *     |           | where bytes were pending    |        | subset   | directory: its names
 *
 * ORDERED stands for ext4 and xfs, OWN_NAME for btrfs, ANY_ORDER for what POSIX
 * promises. In all of them a sync that failed means that what was pending never
 * arrives (SIM_OP_SYNC_LOST). An index file holds what its last transaction
 * committed, or the one in flight: LMDB's guarantee.
 */
#ifndef TESTS_SIM_CUT_H
#define TESTS_SIM_CUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tests/lib/random.h"
#include "tests/sim/disk.h"
#include "tests/sim/image.h"

enum sim_model {
    SIM_MODEL_KILL,
    SIM_MODEL_ORDERED,
    SIM_MODEL_OWN_NAME,
    SIM_MODEL_ANY_ORDER,
    SIM_MODELS,
};

/* "kill", "ordered", ... */
const char *sim_model_name(enum sim_model model);

/* ---- Choosing ----------------------------------------------------------------- */

enum sim_choice_kind {
    SIM_CHOOSE_OLDEST, /* Nothing pending arrived. */
    SIM_CHOOSE_NEWEST, /* All of it did. */
    SIM_CHOOSE_COIN,   /* Each sector, size and name for itself. */
    SIM_CHOOSE_MIXED,  /* Each file one of the three. */
    SIM_CHOOSE_EACH,   /* One after another, all there are. */
};

enum { SIM_DIGITS_MAX = 64 };

struct sim_choice {
    enum sim_choice_kind kind;
    struct random_source random; /* COIN, MIXED. */
    size_t grain_bytes;          /* Of a torn write: 512 or 4096. */
    /* EACH: an odometer. `digits_wanted` says how many choices the last image
     * had; more than SIM_DIGITS_MAX: it cannot be enumerated. */
    uint32_t digits[SIM_DIGITS_MAX];
    uint32_t limits[SIM_DIGITS_MAX];
    uint32_t digits_wanted;
};

/* A random one, weighted: a quarter each. */
void sim_choice_random(struct sim_choice *choice, uint64_t seed);
/* The first of all; and the next, false: that was the last. */
void sim_choice_each(struct sim_choice *choice, size_t grain_bytes);
bool sim_choice_next(struct sim_choice *choice);

/* ---- Cutting -------------------------------------------------------------------- */

struct sim_cutter;

/* Over `ops`, which start from `start`; both borrowed. */
struct sim_cutter *sim_cutter_create(const struct sim_image *start,
                                     const struct sim_op *ops, size_t op_count,
                                     enum sim_model model);
void sim_cutter_free(struct sim_cutter *cutter); /* Accepts NULL. */

/* Pass one more operation; NULL: there is none left. Borrowed. */
const struct sim_op *sim_cutter_step(struct sim_cutter *cutter);
/* How many were passed. */
size_t sim_cutter_place(const struct sim_cutter *cutter);

/* The disk after a cut here. The caller's. */
struct sim_image *sim_cutter_crash(const struct sim_cutter *cutter,
                                   struct sim_choice *choice);

#endif
