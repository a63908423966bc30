/*
 * tests/sim/oracle_internal.h -- what oracle.c shares with oracle_base.c, which has
 * the rules about ANCHOR, snapshots and retention, and with oracle_archive.c, which
 * has those about backups.
 */
#ifndef TESTS_SIM_ORACLE_INTERNAL_H
#define TESTS_SIM_ORACLE_INTERNAL_H

#include "tests/sim/oracle.h"

/* A machine that starts from the disk, and the store on it. */
struct sim_scene {
    const struct sim_examination *examination;
    struct sim_verdict *verdict;
    const char *path; /* Of the store. */
    struct sim_disk *disk;
    struct sim_process *process;
    struct stele *store;
};

/* Only the first counts. */
__attribute__((format(printf, 2, 3))) void sim_scene_fail(
    struct sim_scene *scene, const char *format, ...);

enum stele_status sim_scene_open(struct sim_scene *scene,
                                 enum stele_open_mode mode,
                                 struct stele_error *error);
void sim_scene_end_process(struct sim_scene *scene);
/* Rules (1) and (2). Returns the number of the state, UINT32_MAX: none. */
uint32_t sim_scene_look(struct sim_scene *scene, const char *when);
uint32_t sim_scene_number_at(const struct sim_scene *scene, uint64_t lsn);
/* Rule (6): the state is that of `number`; LSNs up to `lsn_high` were given. */
void sim_check_goes_on(struct sim_scene *scene, uint32_t number,
                       uint64_t lsn_high);

/* ---- oracle_base.c -------------------------------------------------------------- */

/* `image` is what the scene began with, before anything was opened. */

/* Rules (8) and (11). */
void sim_check_anchor(struct sim_scene *scene, const struct sim_image *image);
/* The newest LSN that ANCHOR names, as the end of the log or as a snapshot. */
uint64_t sim_anchor_proves(const struct sim_image *image);
/* Rule (9): `number` is the state that was found. */
void sim_check_safe_twice(struct sim_scene *scene,
                          const struct sim_image *image, uint32_t number);
/* Rule (10), in two parts. */
void sim_check_snapshots(struct sim_scene *scene,
                         const struct sim_image *image);
void sim_check_retained(struct sim_scene *scene);

/* ---- oracle_archive.c ----------------------------------------------------------- */

void sim_archived_note(struct sim_archived *archived, uint64_t lsn);
/* Rules (12) and (13), of the archive on `image`, while its store is open and in the
 * state of `number`. */
void sim_check_archive(struct sim_scene *scene, const struct sim_image *image,
                       uint32_t number);

#endif
