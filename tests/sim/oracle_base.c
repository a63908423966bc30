/* tests/sim/oracle_base.c -- the oracle's rules about ANCHOR, snapshots and what
 * retention leaves; see tests/sim/oracle.h. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "snapshot/format.h"
#include "tests/lib/suffix.h"
#include "tests/sim/oracle_internal.h"
#include "tests/sim/snapshot.h"
#include "wal/segment.h"

/* ---- ANCHOR ---------------------------------------------------------------------- */

/* As an open would take it; zeroed: there is no valid slot. */
static struct wal_anchor newest_anchor(const struct sim_image *image)
{
    const uint32_t inode = sim_image_walk(image, SIM_STORE_PATH "/ANCHOR");
    struct wal_anchor newest = {0};

    for (uint64_t slot = 0; slot < 2 && inode != 0; slot++) {
        uint8_t page[WAL_ANCHOR_SLOT_BYTES] = {0};
        struct wal_anchor anchor;

        (void)sim_image_read(image, inode, page, sizeof page,
                             slot * WAL_ANCHOR_SLOT_BYTES);
        if (wal_anchor_decode(page, &anchor) == WAL_ANCHOR_VALID &&
            anchor.slot_sequence > newest.slot_sequence) {
            newest = anchor;
        }
    }
    return newest;
}

void sim_check_anchor(struct sim_scene *scene, const struct sim_image *image)
{
    const struct sim_knowledge *knowledge = scene->examination->knowledge;
    const struct wal_anchor anchor = newest_anchor(image);

    if (anchor.slot_sequence < knowledge->anchor_sequence) {
        sim_scene_fail(scene,
                       "ANCHOR: the newest slot has sequence %" PRIu64
                       ", but %" PRIu64 " was written durably",
                       anchor.slot_sequence, knowledge->anchor_sequence);
    }
    /* Where calls fail, one that could not be read when the store was opened does
     * not count any more. */
    if (anchor.snapshots[0] < knowledge->snapshot_lsn &&
        scene->examination->index_sound) {
        sim_scene_fail(scene,
                       "ANCHOR: the newest snapshot is of LSN %" PRIu64
                       ", but one of %" PRIu64 " was taken",
                       anchor.snapshots[0], knowledge->snapshot_lsn);
    }
}

uint64_t sim_anchor_proves(const struct sim_image *image)
{
    const struct wal_anchor anchor = newest_anchor(image);

    return anchor.durable.lsn > anchor.snapshots[0] ? anchor.durable.lsn
                                                    : anchor.snapshots[0];
}

/* ---- Safe twice ----------------------------------------------------------------------- */

static bool is_set_aside(const struct sim_scene *scene, const char *name)
{
    const struct sim_image *cache = sim_disk_cache(scene->disk);
    const uint32_t dir = sim_image_walk(cache, SIM_STORE_PATH "/quarantine");
    const struct sim_node *node;

    if (dir == 0) {
        return false;
    }
    node = sim_image_node(cache, dir);
    for (uint32_t index = 0; index < node->entry_count; index++) {
        if (strncmp(node->entries[index].name, name, strlen(name)) == 0) {
            return true;
        }
    }
    return false;
}

/* The damaged snapshot is kept as evidence, and does not count any more. */
static void check_set_aside(struct sim_scene *scene, const char *when,
                            const char *name)
{
    const uint64_t lsn = strtoull(name, NULL, 16);

    if (!is_set_aside(scene, name)) {
        sim_scene_fail(scene, "%s: %s is not in quarantine/", when, name);
    }
    if (scene->store->anchor.snapshots[0] == lsn ||
        scene->store->anchor.snapshots[1] == lsn ||
        scene->store->snapshot_last.lsn == lsn) {
        sim_scene_fail(scene, "%s: %s counts", when, name);
    }
}

/* Another process, which may not build an index: it stands on a snapshot. */
static void check_reads(struct sim_scene *scene, uint32_t number,
                        const char *when)
{
    struct stele_error error;

    if (sim_scene_open(scene, STELE_OPEN_READ_ONLY, &error) != STELE_OK) {
        sim_scene_fail(scene, "%s: reader: %s", when, error.message);
    } else {
        const uint32_t shown = sim_scene_look(scene, when);

        if (shown != number) {
            sim_scene_fail(scene,
                           "%s: a reader shows the state after batch %" PRIu32
                           ", not %" PRIu32,
                           when, shown, number);
        }
    }
    sim_scene_end_process(scene);
}

/* It opens in this state; `damaged` (NULL: nothing) is set aside. */
static void check_opens(struct sim_scene *scene, struct sim_image *image,
                        uint32_t number, const char *when, const char *damaged)
{
    struct sim_scene other = {
        .examination = scene->examination,
        .verdict = scene->verdict,
        .path = SIM_STORE_PATH,
        .disk = sim_disk_create(image, scene->examination->seed),
    };
    struct stele_error error;

    sim_disk_set_fs_kind(other.disk, scene->examination->setting->fs_kind);
    check_reads(&other, number, when);
    if (sim_scene_open(&other, STELE_OPEN_EXISTING, &error) != STELE_OK) {
        sim_scene_fail(&other, "%s: open: %s", when, error.message);
    } else {
        const uint32_t found = sim_scene_look(&other, when);

        if (found != number) {
            sim_scene_fail(
                &other, "%s: the state after batch %" PRIu32 ", not %" PRIu32,
                when, found, number);
        }
        if (damaged != NULL) {
            check_set_aside(&other, when, damaged);
        }
    }
    sim_scene_end_process(&other);
    sim_disk_free(other.disk);
}

static struct sim_image *without_index(const struct sim_image *image)
{
    struct sim_image *copy = sim_image_copy(image);

    sim_image_unlink(copy, sim_image_walk(copy, SIM_STORE_PATH), "index");
    return copy;
}

/* A bit of it changes, or it is cut short. */
static void damage(struct sim_image *image, uint32_t inode, uint64_t seed)
{
    struct random_source random = {.state = seed};
    const uint64_t size = sim_image_node(image, inode)->size_bytes;
    const uint64_t offset = size == 0 ? 0 : random_below(&random, size);
    uint8_t byte = 0;

    if (random_one_in(&random, 3)) {
        sim_image_resize(image, inode, offset);
        return;
    }
    (void)sim_image_read(image, inode, &byte, 1, offset);
    byte ^= (uint8_t)(1u << random_below(&random, 8));
    sim_image_write(image, inode, &byte, 1, offset);
}

/* The newest file that has a snapshot's name, whether ANCHOR names it or not yet:
 * what an open without an index builds on. 0: none. */
static uint32_t newest_snapshot(const struct sim_image *image,
                                const char **name_out)
{
    const uint32_t dir = sim_image_walk(image, SIM_STORE_PATH "/snapshot");
    const struct sim_node *node = sim_image_node(image, dir);
    uint32_t newest = 0;
    uint64_t lsn_newest = 0;

    for (uint32_t index = 0; index < node->entry_count; index++) {
        const struct sim_entry *entry = &node->entries[index];
        const uint64_t lsn = strtoull(entry->name, NULL, 16);

        if (ends_in(entry->name, SNAPSHOT_SUFFIX) && lsn > lsn_newest) {
            lsn_newest = lsn;
            newest = entry->inode;
            *name_out = entry->name;
        }
    }
    return newest;
}

void sim_check_safe_twice(struct sim_scene *scene,
                          const struct sim_image *image, uint32_t number)
{
    const char *name = NULL;
    const uint32_t inode = newest_snapshot(image, &name);
    struct sim_image *copy;

    check_opens(scene, without_index(image), number, "without an index", NULL);
    if (inode != 0) {
        copy = without_index(image);
        damage(copy, inode, scene->examination->seed);
        check_opens(scene, copy, number,
                    "without an index, the newest snapshot damaged", name);
    }
}

/* ---- Snapshots ---------------------------------------------------------------------- */

static void check_snapshot(struct sim_scene *scene, uint64_t lsn)
{
    const uint32_t number = sim_scene_number_at(scene, lsn);
    char text[SIM_PROBLEM_BYTES / 2];

    if (number == UINT32_MAX) {
        sim_scene_fail(
            scene, "a snapshot of LSN %" PRIu64 ", which no batch of ours has",
            lsn);
    } else if (!sim_snapshot_matches(scene->examination->history, number,
                                     scene->store, lsn, text, sizeof text)) {
        sim_scene_fail(scene, "%s", text);
    }
}

void sim_check_snapshots(struct sim_scene *scene, const struct sim_image *image)
{
    const struct wal_anchor anchor = newest_anchor(image);

    for (size_t index = 0; index < WAL_ANCHOR_SNAPSHOTS; index++) {
        const uint64_t lsn = anchor.snapshots[index];

        if (scene->store->anchor.snapshots[index] != lsn) {
            sim_scene_fail(scene,
                           "ANCHOR named the snapshot of LSN %" PRIu64
                           ", and after opening %" PRIu64,
                           lsn, scene->store->anchor.snapshots[index]);
        }
        if (lsn != 0) {
            check_snapshot(scene, lsn);
        }
    }
}

/* ---- The log --------------------------------------------------------------------------- */

void sim_check_retained(struct sim_scene *scene)
{
    const struct sim_image *cache = sim_disk_cache(scene->disk);
    const uint32_t dir = sim_image_walk(cache, SIM_STORE_PATH "/wal");
    const struct sim_node *node = sim_image_node(cache, dir);

    for (uint32_t index = 0; index < node->entry_count; index++) {
        const char *name = node->entries[index].name;

        if (ends_in(name, WAL_SEGMENT_SUFFIX) &&
            strtoull(name, NULL, 16) < scene->store->anchor.segment_oldest) {
            sim_scene_fail(scene, "wal/%s was left behind", name);
        }
    }
}
