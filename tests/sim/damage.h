/*
 * tests/sim/damage.h -- rot: what happens to a disk while nobody looks (model R).
 *
 * A flipped bit, a byte, a page zeroed, swapped or misdirected, a file cut short,
 * gone, older, or under another's name.
 */
#ifndef TESTS_SIM_DAMAGE_H
#define TESTS_SIM_DAMAGE_H

#include <stdint.h>

#include "tests/sim/image.h"

/* What may be lost by it, if it is not refused. */
enum sim_loss {
    SIM_LOSS_REFUSES_NOTHING, /* Nothing, and it opens: there is more than one
                                 base. */
    SIM_LOSS_NONE,     /* Nothing: a file that is gone, short or another. */
    SIM_LOSS_UNPROVEN, /* What nothing else on the disk proves durable. */
    SIM_LOSS_INDEX,    /* What neither ANCHOR nor a snapshot proves: that, and
                          the index is gone. */
    SIM_LOSS_OLD,      /* What nothing outside the log proves: a whole file went
                          back to what it was, or two places changed at once,
                          with whatever they proved. */
};

/* Damage one thing in the store of `image`, chosen by the seed; `older` is an
 * earlier state of the same disk. `text` says what was done; "": nothing was found
 * to damage. */
void sim_damage(struct sim_image *image, const struct sim_image *older,
                uint64_t seed, enum sim_loss *loss_out, char *text,
                size_t bytes);

#endif
