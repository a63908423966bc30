/*
 * tests/sim/world_archive.c -- steps of a life that are about backups: into the
 * archive beside the store, and a store restored from it, once.
 */
#include <inttypes.h>

#include "engine/archive.h"
#include "engine/restore.h"
#include "tests/sim/world_internal.h"

/* ---- Backup --------------------------------------------------------------------- */

/* What is in the archive is durable in the store, too. */
static void backed_up(struct sim_world *world, const struct stele *store,
                      uint64_t lsn)
{
    const uint32_t number =
        sim_history_find(world->history, lsn, world->history->count);

    if (number == UINT32_MAX) {
        sim_world_fail(
            world, "a backup of LSN %" PRIu64 ", which no batch of ours has",
            lsn);
        return;
    }
    if (store == world->store && !world->unsure && number != world->head) {
        sim_world_fail(world,
                       "a backup of the state after batch %" PRIu32
                       ", but batch %" PRIu32 " was committed",
                       number, world->head);
    }
    if (sim_history_descends(world->history, number, world->durable)) {
        world->durable = number;
    }
    sim_world_mark(world, SIM_MARK_EXPOSED, number);
    sim_world_mark(world, SIM_MARK_BACKUP, lsn);
}

void sim_step_backup(struct sim_world *world, uint64_t seed)
{
    struct random_source random = {.state = seed};
    struct stele *store = world->reader != NULL && random_one_in(&random, 2)
                              ? world->reader
                              : world->store;
    struct stele_backup_report report = {.size = sizeof report};
    struct stele_error error;
    const enum stele_status status =
        stele_backup(store, SIM_ARCHIVE_PATH, &report, NULL, NULL, &error);

    if (status == STELE_OK) {
        backed_up(world, store, report.lsn);
    } else if (!sim_world_excused(world, status)) {
        sim_world_fail(world, "%s: %s",
                       store == world->reader ? "reader" : "writer",
                       error.message);
    }
}

/* ---- Restore -------------------------------------------------------------------- */

/* Where the archive ends; NOT_FOUND: there is none. */
static enum stele_status read_end(struct io *io, uint64_t *lsn_out,
                                  struct stele_error *error)
{
    struct archive archive;
    struct io_dir *dir;
    enum stele_status status = io_dir_open(io, SIM_ARCHIVE_PATH, &dir, error);

    if (status == STELE_OK) {
        status = archive_read(dir, &archive, error);
        io_dir_close(dir);
    }
    if (status == STELE_OK) {
        *lsn_out = archive.end.lsn;
    }
    return status;
}

static void restore(struct sim_world *world, struct io *io, uint64_t until_lsn)
{
    const struct stele_restore_options options = {.size = sizeof options,
                                                  .until_lsn = until_lsn};
    struct stele_options ignored;
    struct store_tuning tuning;
    struct stele_error error;
    enum stele_status status;
    uint64_t lsn = 0;

    sim_world_options(&world->setting, io, STELE_OPEN_CREATE, &ignored,
                      &tuning);
    status = read_end(io, &lsn, &error);
    if (status == STELE_NOT_FOUND) {
        return;
    }
    lsn = until_lsn != 0 ? until_lsn : lsn;
    if (status == STELE_OK) {
        sim_world_mark(world, SIM_MARK_RESTORE, lsn);
        status = restore_store(SIM_ARCHIVE_PATH, SIM_RESTORED_PATH, &options,
                               &tuning, NULL, &error);
    }
    if (status == STELE_OK) {
        sim_world_mark(world, SIM_MARK_RESTORED, lsn);
    } else if (!sim_world_excused(world, status) &&
               (status != STELE_NOT_FOUND || until_lsn == 0)) {
        sim_world_fail(world, "restore of LSN %" PRIu64 ": %s", lsn,
                       error.message);
    }
}

void sim_step_restore(struct sim_world *world, uint64_t seed)
{
    struct random_source random = {.state = seed};
    const uint32_t number = sim_pick_past(world, random_u64(&random));
    struct sim_process *process;

    if (sim_image_walk(sim_disk_cache(world->disk), SIM_RESTORED_PATH) != 0) {
        return;
    }
    process = sim_process_start(world->disk);
    restore(world, sim_process_io(process),
            random_one_in(&random, 2) ? world->history->batches[number].lsn
                                      : 0);
    if (sim_process_open_count(process) > 0) {
        sim_world_fail(world, "restore: %" PRIu32 " descriptors left open",
                       sim_process_open_count(process));
    }
    sim_process_end(process);
}
