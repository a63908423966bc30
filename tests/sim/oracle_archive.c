/* tests/sim/oracle_archive.c -- the oracle's rules about the archive and what is
 * restored from it; see tests/sim/oracle.h. */
#include <inttypes.h>
#include <string.h>

#include "engine/archive.h"
#include "engine/restore.h"
#include "tests/sim/oracle_internal.h"

#define AGAIN_PATH "root/again" /* Where "restored" is taken. */

enum {
    PAST_BATCHES = 12,
    /* Other bytes than the machine gave that the store was made on. */
    SEED_OF_RESTORES = 1000003,
};

void sim_archived_note(struct sim_archived *archived, uint64_t lsn)
{
    archived->acknowledged = true;
    if (lsn != archived->lsns[0]) {
        memmove(archived->lsns + 1, archived->lsns,
                sizeof archived->lsns - sizeof archived->lsns[0]);
        archived->lsns[0] = lsn;
    }
}

/* ---- The new store ------------------------------------------------------------------ */

static void check_origin(struct sim_scene *scene, const struct stele *parent,
                         uint64_t lsn, const char *when)
{
    const struct wal_anchor *anchor = &scene->store->anchor;

    if (wal_uuid_equal(&anchor->uuid, &parent->uuid)) {
        sim_scene_fail(scene, "%s: it has the uuid of the other store", when);
    }
    if (!wal_uuid_equal(&anchor->parent_uuid, &parent->uuid) ||
        anchor->parent_lsn != lsn) {
        sim_scene_fail(scene, "%s: its parent is another, or LSN %" PRIu64,
                       when, anchor->parent_lsn);
    }
}

/* `image` (taken over) has at `path` a store of exactly the state of that LSN. */
static void check_new_store(struct sim_scene *scene, struct sim_image *image,
                            const char *path, uint64_t lsn, const char *when)
{
    const uint32_t number = sim_scene_number_at(scene, lsn);
    struct sim_scene other = {
        .examination = scene->examination,
        .verdict = scene->verdict,
        .path = path,
        .disk = sim_disk_create(image, scene->examination->seed),
    };
    struct stele_error error;

    sim_disk_set_fs_kind(other.disk, scene->examination->setting->fs_kind);
    if (sim_scene_open(&other, STELE_OPEN_EXISTING, &error) != STELE_OK) {
        sim_scene_fail(&other, "%s: open: %s", when, error.message);
    } else {
        const uint32_t found = sim_scene_look(&other, when);

        if (found != number || number == UINT32_MAX) {
            sim_scene_fail(&other,
                           "%s: the state after batch %" PRIu32 ", not %" PRIu32
                           " (LSN %" PRIu64 ")",
                           when, found, number, lsn);
        }
        check_origin(&other, scene->store, lsn, when);
        if (other.verdict->good) {
            sim_check_goes_on(&other, number, lsn + STORE_LSN_SKIP);
        }
    }
    sim_scene_end_process(&other);
    sim_disk_free(other.disk);
}

/* ---- Restoring ---------------------------------------------------------------------- */

/* What a power cut would leave right now. */
static struct sim_image *after_cut(const struct sim_scene *scene,
                                   const struct sim_disk *disk)
{
    struct sim_choice choice = {.kind = SIM_CHOOSE_OLDEST,
                                .grain_bytes = SIM_SECTOR_BYTES};
    size_t count;
    const struct sim_op *ops = sim_disk_ops(disk, &count);
    struct sim_cutter *cutter = sim_cutter_create(
        sim_disk_start(disk), ops, count, scene->examination->model);
    struct sim_image *image;

    while (sim_cutter_step(cutter) != NULL) {
    }
    image = sim_cutter_crash(cutter, &choice);
    sim_cutter_free(cutter);
    return image;
}

struct restored {
    enum stele_status status;
    struct stele_error error;
    uint64_t lsn;
    struct sim_image *image; /* After a cut; NULL: it failed. */
};

static void restore(struct sim_scene *scene, const struct sim_image *image,
                    const char *path, uint64_t until_lsn,
                    struct restored *restored_out)
{
    const struct stele_restore_options options = {.size = sizeof options,
                                                  .until_lsn = until_lsn};
    struct stele_restore_report report = {.size = sizeof report};
    struct sim_disk *disk = sim_disk_create(
        sim_image_copy(image), scene->examination->seed + SEED_OF_RESTORES);
    struct sim_process *process = sim_process_start(disk);
    struct restored restored = {.image = NULL};
    struct stele_options ignored;
    struct store_tuning tuning;

    sim_disk_set_fs_kind(disk, scene->examination->setting->fs_kind);
    sim_world_options(scene->examination->setting, sim_process_io(process),
                      STELE_OPEN_CREATE, &ignored, &tuning);
    restored.status = restore_store(SIM_ARCHIVE_PATH, path, &options, &tuning,
                                    &report, &restored.error);
    if (restored.status == STELE_OK) {
        restored.lsn = report.lsn;
        restored.image = after_cut(scene, disk);
    }
    if (sim_process_open_count(process) > 0) {
        sim_scene_fail(scene, "restore: %" PRIu32 " descriptors left open",
                       sim_process_open_count(process));
    }
    sim_process_end(process);
    sim_disk_free(disk);
    *restored_out = restored;
}

/* Up to an LSN that some batch has: that state, or it is not there. */
static void check_until(struct sim_scene *scene, const struct sim_image *image,
                        const char *path, uint64_t lsn, bool must)
{
    struct restored restored;

    restore(scene, image, path, lsn, &restored);
    if (restored.status == STELE_OK) {
        check_new_store(scene, restored.image, path, lsn,
                        must ? "restored as an earlier backup"
                             : "restored at a past LSN");
    } else if (must || restored.status != STELE_NOT_FOUND) {
        sim_scene_fail(scene, "restore of LSN %" PRIu64 ": %s", lsn,
                       restored.error.message);
    }
}

/* All of it. */
static void check_newest(struct sim_scene *scene, const struct sim_image *image,
                         const char *path, uint32_t number)
{
    const struct sim_archived *archived =
        &scene->examination->knowledge->archived;
    struct restored restored;
    uint32_t found;

    restore(scene, image, path, 0, &restored);
    if (restored.status != STELE_OK) {
        sim_scene_fail(scene, "restore: %s", restored.error.message);
        return;
    }
    scene->verdict->archive = true;
    found = sim_scene_number_at(scene, restored.lsn);
    if (restored.lsn < archived->lsns[0]) {
        sim_scene_fail(scene,
                       "restored: LSN %" PRIu64 ", but a backup of %" PRIu64
                       " was acknowledged",
                       restored.lsn, archived->lsns[0]);
    }
    if (found != UINT32_MAX &&
        !sim_history_descends(scene->examination->history, number, found)) {
        sim_scene_fail(scene,
                       "restored: the state after batch %" PRIu32
                       ", which the store does not have",
                       found);
    }
    check_new_store(scene, restored.image, path, restored.lsn, "restored");
}

/* ---- The archive -------------------------------------------------------------------- */

/* One of those that led to `number`; 0: its LSN is not known. */
static uint64_t pick_past(const struct sim_scene *scene, uint32_t number,
                          struct random_source *random)
{
    const struct sim_history *history = scene->examination->history;

    for (uint64_t back = random_below(random, PAST_BATCHES);
         back > 0 && number != 0; back--) {
        number = history->batches[number].previous;
    }
    return history->batches[number].lsn;
}

static void check_pasts(struct sim_scene *scene, const struct sim_image *image,
                        const char *path, uint32_t number)
{
    const struct sim_examination *examination = scene->examination;
    struct random_source random = {.state = examination->seed};
    const uint64_t acknowledged =
        examination->knowledge->archived
            .lsns[random_below(&random, SIM_BACKUPS_KNOWN)];
    const uint64_t past = pick_past(scene, number, &random);

    /* LSN 0, which the empty state has, would ask for all. */
    if (acknowledged != 0) {
        check_until(scene, image, path, acknowledged, true);
    }
    if (past != 0 && scene->verdict->good) {
        check_until(scene, image, path, past, false);
    }
}

/* Rule (13). */
static void check_left(struct sim_scene *scene, const struct sim_image *image)
{
    const struct sim_archived *archived =
        &scene->examination->knowledge->archived;
    const bool is_there = sim_image_walk(image, SIM_RESTORED_PATH) != 0;

    if (is_there && !archived->restoring) {
        sim_scene_fail(scene, "%s is there, but nobody restored it",
                       SIM_RESTORED_PATH);
    } else if (is_there) {
        check_new_store(scene, sim_image_copy(image), SIM_RESTORED_PATH,
                        archived->restored_lsn, "what a restore left");
    } else if (archived->restored) {
        sim_scene_fail(scene, "what was restored is gone");
    }
}

void sim_check_archive(struct sim_scene *scene, const struct sim_image *image,
                       uint32_t number)
{
    const bool is_there =
        sim_image_walk(image, SIM_ARCHIVE_PATH "/" ARCHIVE_NAME) != 0;
    /* Over the remains of one that was cut, if there are any. */
    const char *path = sim_image_walk(image, SIM_RESTORED_PATH) == 0
                           ? SIM_RESTORED_PATH
                           : AGAIN_PATH;
    struct restored restored;

    check_left(scene, image);
    if (is_there && scene->verdict->good) {
        check_newest(scene, image, path, number);
    }
    if (is_there && scene->verdict->good) {
        check_pasts(scene, image, path, number);
    }
    if (!is_there && scene->examination->knowledge->archived.acknowledged) {
        sim_scene_fail(scene, "the archive is gone");
    } else if (!is_there && sim_image_walk(image, SIM_ARCHIVE_PATH) != 0) {
        restore(scene, image, path, 0, &restored);
        if (restored.status != STELE_FOREIGN) {
            sim_scene_fail(scene, "restore of what is no archive says %d",
                           (int)restored.status);
            sim_image_free(restored.image);
        }
    }
}
