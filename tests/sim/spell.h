/*
 * tests/sim/spell.h -- scripts that are written by hand: a letter a step.
 *
 *     D  durable: a small put        R  relaxed: most of a page
 *     M  durable: four small puts    r  relaxed: a small put
 *     L  durable: two pages          G  a group
 *     S  sync                        F  a checkpoint begins
 *     T  the log keeper looks        C  a checkpoint's transaction
 *     V  a reader elsewhere          E  a call to come will fail
 *     K  kill, and open again        O  close, and open again
 *     P  a snapshot                  p  a step of one
 *     X  the index is lost
 *     B  a backup                    U  a restore
 */
#ifndef TESTS_SIM_SPELL_H
#define TESTS_SIM_SPELL_H

#include <stddef.h>
#include <stdint.h>

#include "tests/sim/script.h"

/* At most SIM_STEPS_MAX letters. `chosen` is the seed of G and E, which is found
 * by trying. Returns how many steps. */
size_t sim_spell(const char *letters, uint64_t chosen,
                 struct sim_step steps[SIM_STEPS_MAX]);

#endif
