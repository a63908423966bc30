/*
 * tests/sim/damage.h -- rot: what happens to a disk while nobody looks (model R).
 *
 * A flipped bit, a byte, a page zeroed, swapped or misdirected, a file cut short,
 * gone, older, or under another's name.
 */
#ifndef TESTS_SIM_DAMAGE_H
#define TESTS_SIM_DAMAGE_H

#include <stdbool.h>
#include <stdint.h>

#include "tests/sim/image.h"

/* Damage one thing in the store of `image`, chosen by the seed; `older` is an
 * earlier state of the same disk. `text` says what was done; "": nothing was found
 * to damage. *old_file_out: a whole file went back to what it was, with whatever it
 * proved. */
void sim_damage(struct sim_image *image, const struct sim_image *older,
                uint64_t seed, bool *old_file_out, char *text, size_t bytes);

#endif
