/*
 * tests/sim/world_internal.h -- what world.c shares with world_base.c, which has the
 * steps about snapshots, retention and rebuilding, and with world_archive.c, which
 * has those about backups.
 */
#ifndef TESTS_SIM_WORLD_INTERNAL_H
#define TESTS_SIM_WORLD_INTERNAL_H

#include "tests/sim/world.h"

void sim_world_mark(struct sim_world *world, enum sim_mark kind,
                    uint64_t number);

/* Whether a fault explains the failure: one that was for want of space alone must
 * be reported as such. */
bool sim_world_excused(const struct sim_world *world, enum stele_status status);

/* A new process opens the store: what it finds is true from now on. */
void sim_world_open(struct sim_world *world);
/* The process is gone, whatever it had done. */
void sim_world_end_process(struct sim_world *world);
void sim_world_end_reader(struct sim_world *world);
void sim_world_end_checkpoint(struct sim_world *world);

/* A batch made from the seed. */
void sim_world_commit(struct sim_world *world, uint64_t seed,
                      enum stele_durability durability);

/* ---- Steps: world_base.c ------------------------------------------------------ */

void sim_step_snapshot(struct sim_world *world);
void sim_step_snapshot_step(struct sim_world *world, uint64_t seed);
void sim_step_lose_index(struct sim_world *world);
void sim_step_hold(struct sim_world *world, uint64_t seed);
void sim_step_past(struct sim_world *world, uint64_t seed);
void sim_step_clock(struct sim_world *world, uint64_t seed);
void sim_step_rot_index(struct sim_world *world, uint64_t seed);
void sim_step_rot_snapshot(struct sim_world *world, uint64_t seed);
/* One of those that led to the last durable state, whose LSN is known. */
uint32_t sim_pick_past(const struct sim_world *world, uint64_t seed);

/* ---- Steps: world_archive.c --------------------------------------------------- */

void sim_step_backup(struct sim_world *world, uint64_t seed);
void sim_step_restore(struct sim_world *world, uint64_t seed);

#endif
