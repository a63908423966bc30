/*
 * tests/sim/world_base.c -- steps of a life that are about bases: snapshots and
 * what they let go, past LSNs, an index that is lost, rot.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/numbered.h"
#include "engine/snapshots.h"
#include "snapshot/format.h"
#include "tests/sim/map.h"
#include "tests/sim/snapshot.h"
#include "tests/sim/world_internal.h"

enum {
    STEP_BYTES = 1, /* So that every phase of a snapshot is a step. */
    STEPS_MAX = 4,  /* ... and so many at a time, at most. */
    PAST_BATCHES = 10,
    DUE_SEGMENTS = 4, /* More than any snapshot here is worth. */
    NAME_BYTES = 32,
    SNAPSHOT_WRITES = 3, /* Header, a block, footer. */
    CLOCK_JUMP_MAX_MS = 3600 * 1000,
    NS_PER_MS = 1000000,
};

/* ---- Past LSNs ------------------------------------------------------------------ */

/* Whether what two verified snapshots leave of the log must reach back to it. */
static bool must_be_retained(const struct sim_world *world, uint64_t lsn)
{
    const struct wal_anchor *anchor = &world->store->anchor;

    return anchor->snapshots[1] == 0
               ? anchor->segment_oldest == WAL_SEGMENT_FIRST
               : lsn >= anchor->snapshots[1];
}

/* What may be said of an LSN that nothing obliges the store to have. */
static bool may_be_missing(const struct sim_world *world,
                           enum stele_status status)
{
    return status == STELE_NOT_FOUND ||
           (status == STELE_CORRUPT && world->damaged);
}

static void check_past(struct sim_world *world, struct stele *store,
                       uint32_t number, const char *who, bool retained)
{
    const uint64_t lsn = world->history->batches[number].lsn;
    char text[SIM_PROBLEM_BYTES / 2];
    struct stele_error error;
    struct stele_view *view;
    const enum stele_status status =
        stele_view_open_at(store, lsn, &view, &error);

    if (status == STELE_OK) {
        if (!sim_history_matches(world->history, number, view, text,
                                 sizeof text)) {
            sim_world_fail(world, "%s: at the LSN of batch %" PRIu32 ", %s",
                           who, number, text);
        }
        stele_view_close(view);
    } else if ((retained || !may_be_missing(world, status)) && !world->rotten &&
               !sim_world_excused(world, status)) {
        sim_world_fail(world, "%s: at the LSN of batch %" PRIu32 ": %s", who,
                       number, error.message);
    }
}

uint32_t sim_pick_past(const struct sim_world *world, uint64_t seed)
{
    struct random_source random = {.state = seed};
    uint32_t number = world->durable;

    for (uint64_t back = random_below(&random, PAST_BATCHES);
         back > 0 && number != 0; back--) {
        number = world->history->batches[number].previous;
    }
    while (number != 0 && world->history->batches[number].lsn == 0) {
        number = world->history->batches[number].previous;
    }
    return number;
}

void sim_step_past(struct sim_world *world, uint64_t seed)
{
    const uint32_t number = sim_pick_past(world, seed);
    const uint64_t lsn = world->history->batches[number].lsn;

    check_past(world, world->store, number, "past view",
               must_be_retained(world, lsn));
    if (world->reader != NULL) {
        check_past(world, world->reader, number, "reader: past view", false);
    }
}

static void check_held(struct sim_world *world)
{
    if (world->holding) {
        check_past(world, world->store, world->held, "held", true);
    }
}

void sim_step_hold(struct sim_world *world, uint64_t seed)
{
    const uint32_t number = sim_pick_past(world, seed);
    const uint64_t lsn = world->history->batches[number].lsn;
    struct stele_error error;
    enum stele_status status;

    if (world->holding) {
        check_held(world);
        retention_release(world->store, &world->hold);
        world->holding = false;
        return;
    }
    if (world->rotten || (world->damaged && !must_be_retained(world, lsn))) {
        return; /* It might stand on what is damaged. */
    }
    status = retention_hold(world->store, lsn, &world->hold, &error);
    if (status == STELE_OK) {
        world->holding = true;
        world->held = number;
        check_held(world);
    } else if (!sim_world_excused(world, status) &&
               (status != STELE_NOT_FOUND || must_be_retained(world, lsn)) &&
               !world->rotten) {
        sim_world_fail(world, "hold at batch %" PRIu32 ": %s", number,
                       error.message);
    }
}

void sim_step_clock(struct sim_world *world, uint64_t seed)
{
    struct random_source random = {.state = seed};
    const int64_t ms = (int64_t)random_below(&random, CLOCK_JUMP_MAX_MS);

    sim_disk_jump_wall_clock(
        world->disk, (random_one_in(&random, 2) ? ms : -ms) * NS_PER_MS);
}

/* ---- Snapshots ------------------------------------------------------------------- */

/* Most of the time one is due when the log has grown by more than any of ours. */
static void check_due(struct sim_world *world)
{
    struct stele *store = world->store;
    const uint64_t last =
        store->snapshot_last.unit == 0 ? 1 : store->snapshot_last.segment;

    if (!store->index_dead && store->snapshot_retry_ns == 0 &&
        store->snapshot_last_bytes <= store->segment_bytes &&
        store->applied.unit > 0 &&
        store->applied.segment >= last + DUE_SEGMENTS &&
        !snapshots_due(store)) {
        sim_world_fail(world,
                       "no snapshot is due, segment %" PRIu64
                       " and the last at %" PRIu64,
                       store->applied.segment, last);
    }
}

static void check_contents(struct sim_world *world, uint64_t lsn)
{
    const uint32_t number =
        sim_history_find(world->history, lsn, world->history->count);
    char text[SIM_PROBLEM_BYTES / 2];

    world->fault_result = 0; /* Ours are not the calls that are to fail. */
    if (number == UINT32_MAX) {
        sim_world_fail(
            world, "a snapshot of LSN %" PRIu64 ", which no batch of ours has",
            lsn);
    } else if (!sim_snapshot_matches(world->history, number, world->store, lsn,
                                     text, sizeof text)) {
        sim_world_fail(world, "%s", text);
    }
}

/* A new one counts. */
static void taken(struct sim_world *world)
{
    const struct wal_anchor *anchor = &world->store->anchor;
    const uint64_t lsn = world->store->snapshot_last.lsn;

    if (anchor->snapshots[0] != lsn || anchor->snapshots[1] >= lsn) {
        sim_world_fail(world,
                       "a snapshot of LSN %" PRIu64 " was taken, but ANCHOR "
                       "names %" PRIu64 " and %" PRIu64,
                       lsn, anchor->snapshots[0], anchor->snapshots[1]);
    }
    world->rotten = false;
    sim_world_mark(world, SIM_MARK_SNAPSHOT, lsn);
    check_contents(world, lsn);
    check_held(world);
}

void sim_step_snapshot(struct sim_world *world)
{
    const uint64_t before = atomic_load(&world->store->stat_snapshots);
    const uint64_t wanted = world->history->batches[world->head].lsn;
    struct stele_error error;
    enum stele_status status;
    uint64_t lsn = 0;

    check_due(world);
    sim_world_end_checkpoint(world);
    status = stele_snapshot(world->store, &lsn, &error);
    if (status != STELE_OK) {
        if (!sim_world_excused(world, status)) {
            sim_world_fail(world, "snapshot: %s", error.message);
        }
        return;
    }
    if (lsn != wanted && wanted != 0) {
        sim_world_fail(world,
                       "a snapshot of LSN %" PRIu64 ", but batch %" PRIu32
                       " has %" PRIu64,
                       lsn, world->head, wanted);
    }
    if (snapshots_due(world->store)) {
        sim_world_fail(world, "right behind a snapshot another one is due");
    }
    if (atomic_load(&world->store->stat_snapshots) > before) {
        taken(world);
    }
}

void sim_step_snapshot_step(struct sim_world *world, uint64_t seed)
{
    const uint64_t before = atomic_load(&world->store->stat_snapshots);
    struct random_source random = {.state = seed};
    uint64_t steps = random_below(&random, STEPS_MAX);
    struct stele_error error;
    enum stele_status status = STELE_OK;

    check_due(world);
    if (world->store->snapshot_run == NULL) {
        status = snapshots_begin(world->store, &error);
    } else {
        steps++;
    }
    while (status == STELE_OK && world->store->snapshot_run != NULL &&
           steps > 0) {
        status = snapshots_advance(world->store, STEP_BYTES, &error);
        steps--;
    }
    if (status != STELE_OK) {
        if (!sim_world_excused(world, status)) {
            sim_world_fail(world, "step of a snapshot: %s", error.message);
        }
        return;
    }
    if (atomic_load(&world->store->stat_snapshots) > before) {
        taken(world);
    }
}

/* ---- Losing the index -------------------------------------------------------------- */

/* In a process of its own, without faults: the name goes elsewhere, durably. That
 * is one operation, and a cut leaves an index or none. */
static enum stele_status move_index_away(struct sim_world *world, struct io *io,
                                         struct stele_error *error)
{
    char name[NAME_BYTES];
    struct io_dir *root = NULL;
    struct io_dir *dir = NULL;
    enum stele_status status = io_dir_open(io, "root", &root, error);

    snprintf(name, sizeof name, "lost.%04" PRIu32, world->indexes_lost++);
    if (status == STELE_OK) {
        status = io_dir_open(io, SIM_STORE_PATH, &dir, error);
    }
    if (status == STELE_OK) {
        status = io_rename(dir, STORE_INDEX_NAME, root, name, error);
    }
    if (status == STELE_OK) {
        status = io_dir_sync(root, error);
    }
    if (status == STELE_OK) {
        status = io_dir_sync(dir, error);
    }
    io_dir_close(dir);
    io_dir_close(root);
    return status;
}

void sim_step_lose_index(struct sim_world *world)
{
    struct sim_process *process;
    struct stele_error error;
    enum stele_status status;

    sim_world_end_process(world);
    world->fault_result = 0;
    process = sim_process_start(world->disk);
    status = move_index_away(world, sim_process_io(process), &error);
    sim_process_end(process);
    if (status != STELE_OK && status != STELE_NOT_FOUND) {
        sim_world_fail(world, "moving the index away: %s", error.message);
    }
    sim_world_open(world);
    if (world->store != NULL && !world->store->index_rebuilt) {
        sim_world_fail(world, "the index was lost, but not built again");
    }
}

/* ---- Rot ------------------------------------------------------------------------------ */

/* A key of the state, and what is stored for it; false: the state is empty. */
static bool pick_cell(const struct sim_world *world,
                      struct random_source *random, unsigned *table_out,
                      unsigned *key_out)
{
    const struct sim_contents *contents =
        &world->history->batches[world->head].after;
    const unsigned first = (unsigned)random_below(random, SIM_CELLS);

    for (unsigned step = 0; step < SIM_CELLS; step++) {
        const unsigned cell = (first + step) % SIM_CELLS;

        if (contents->cells[cell].batch != 0) {
            *table_out = cell / SIM_KEYS;
            *key_out = cell % SIM_KEYS;
            return true;
        }
    }
    return false;
}

/* One bit of what the index holds for the key: of its value, or of what stands in
 * front of it. False: it holds nothing. */
static bool rot_entry(struct sim_world *world, struct bytes key,
                      struct random_source *random)
{
    const struct sim_image *cache = sim_disk_cache(world->disk);
    const uint32_t inode =
        sim_image_walk(cache, SIM_STORE_PATH "/index/data.mdb");
    struct sim_map *map;
    struct bytes stored;
    uint8_t *changed;

    if (inode == 0 || sim_image_node(cache, inode)->map == NULL) {
        return false;
    }
    map = sim_map_copy(sim_image_node(cache, inode)->map);
    if (!sim_map_get(map, key, &stored)) {
        sim_map_unref(map);
        return false;
    }
    changed = sim_allocate(stored.size);
    memcpy(changed, stored.data, stored.size);
    changed[random_below(random, stored.size)] ^=
        (uint8_t)(1u << random_below(random, 8));
    sim_map_put(map, key, (struct bytes){changed, stored.size});
    free(changed);
    sim_disk_rot_map(world->disk, inode, map);
    sim_map_unref(map);
    return true;
}

static void check_rot_is_found(struct sim_world *world, unsigned table,
                               unsigned key)
{
    struct stele_view *view;
    struct stele_value value;
    struct stele_error error;
    enum stele_status status = stele_view_open(world->store, &view, &error);

    if (status == STELE_OK) {
        status = stele_view_get(view, sim_table_name(table), sim_key_name(key),
                                strlen(sim_key_name(key)), &value, &error);
        stele_view_close(view);
        if (status != STELE_CORRUPT) {
            sim_world_fail(world, "rot in the index: a get of it says %d",
                           (int)status);
        }
    }
    status = stele_snapshot(world->store, NULL, &error);
    if (status != STELE_CORRUPT && !sim_world_excused(world, status)) {
        sim_world_fail(world, "rot in the index: a snapshot of it says %d",
                       (int)status);
    }
}

/* The rot is gone with the index: nothing of it may come back by a snapshot. */
void sim_step_rot_index(struct sim_world *world, uint64_t seed)
{
    struct random_source random = {.state = seed};
    struct stele_error error;
    uint8_t bytes[NAME_BYTES];
    unsigned table;
    unsigned key;
    size_t name_bytes;

    sim_world_end_checkpoint(world);
    sim_world_commit(world, seed, STELE_DURABLE);
    world->fault_result = 0;
    if (world->unsure || world->problem[0] != '\0' ||
        stele_checkpoint(world->store, &error) != STELE_OK ||
        !pick_cell(world, &random, &table, &key)) {
        return;
    }
    snapshots_abort(world->store);
    if (world->store->snapshot_last.lsn >= world->store->applied.lsn) {
        return; /* It is safe already. */
    }
    sim_world_end_reader(world);
    name_bytes =
        (size_t)snprintf((char *)bytes, sizeof bytes, "%s%c%s",
                         sim_table_name(table), '\0', sim_key_name(key));
    if (rot_entry(world, (struct bytes){bytes, name_bytes}, &random)) {
        sim_world_mark(world, SIM_MARK_INDEX_ROT, 0);
        check_rot_is_found(world, table, key);
        sim_step_lose_index(world);
    }
}

static enum stele_status change_byte(struct io *io, const char *name,
                                     struct random_source *random,
                                     struct stele_error *error)
{
    struct io_file *file = NULL;
    struct io_dir *dir = NULL;
    struct io_file_info info;
    uint8_t byte = 0;
    uint64_t offset = 0;
    enum stele_status status =
        io_dir_open(io, SIM_STORE_PATH "/snapshot", &dir, error);

    if (status == STELE_OK) {
        status = io_file_open(dir, name, IO_OPEN_READ_WRITE, &file, error);
    }
    if (status == STELE_OK) {
        status = io_file_info(file, &info, error);
    }
    if (status == STELE_OK) {
        size_t read_bytes;

        offset = random_below(random, info.size_bytes);
        status = io_file_read(file, &byte, 1, offset, &read_bytes, error);
    }
    if (status == STELE_OK) {
        byte ^= (uint8_t)(1u << random_below(random, 8));
        status = io_file_write(file, &byte, 1, offset, error);
    }
    if (status == STELE_OK) {
        status = io_file_sync(file, error);
    }
    io_file_close(file);
    io_dir_close(dir);
    return status;
}

/* A bit of a snapshot is another by the time it reaches the disk, and nobody says
 * so: it must not count. */
static void garble_snapshot(struct sim_world *world,
                            struct random_source *random)
{
    struct stele_error error;
    enum stele_status status;

    sim_world_end_checkpoint(world);
    sim_world_commit(world, random_u64(random), STELE_DURABLE);
    world->fault_result = 0;
    if (world->unsure || world->problem[0] != '\0' ||
        stele_checkpoint(world->store, &error) != STELE_OK) {
        return;
    }
    snapshots_abort(world->store);
    if (world->store->snapshot_last.lsn >= world->store->applied.lsn) {
        return; /* There is nothing to take. */
    }
    world->garbling = 1 + (uint32_t)random_below(random, SNAPSHOT_WRITES);
    status = stele_snapshot(world->store, NULL, &error);
    if (world->garbling == 0 && status != STELE_CORRUPT) {
        sim_world_fail(world, "a snapshot that was garbled says %d",
                       (int)status);
    }
    if (world->garbling > 0 && status == STELE_OK) {
        taken(world); /* It had fewer writes. */
    }
    world->garbling = 0;
}

/* One that ANCHOR names rots on the disk. The next snapshot must not let the log go
 * on the strength of it. */
void sim_step_rot_snapshot(struct sim_world *world, uint64_t seed)
{
    struct random_source random = {.state = seed};
    const struct wal_anchor *anchor = &world->store->anchor;
    const uint64_t lsn =
        anchor
            ->snapshots[anchor->snapshots[1] != 0 && random_one_in(&random, 4)];
    char name[NUMBERED_NAME_BYTES];
    struct sim_process *process;
    struct stele_error error;
    enum stele_status status;

    if (world->rotten || world->unsure) {
        return;
    }
    if (lsn == 0 || random_one_in(&random, 3)) {
        garble_snapshot(world, &random);
        return;
    }
    snapshots_abort(world->store); /* It may have looked at it already. */
    if (world->holding && world->hold.lsn == lsn) {
        retention_release(world->store, &world->hold);
        world->holding = false;
    }
    /* Before the fact, so that no cut lies between. */
    sim_world_mark(world, SIM_MARK_ROT, lsn);
    world->rotten = true;
    world->damaged = true;
    numbered_name(lsn, SNAPSHOT_SUFFIX, name);
    world->fault_result = 0;
    process = sim_process_start(world->disk);
    status = change_byte(sim_process_io(process), name, &random, &error);
    sim_process_end(process);
    if (status != STELE_OK) {
        sim_world_fail(world, "rot in a snapshot: %s", error.message);
        return;
    }
    sim_world_commit(world, random_u64(&random), STELE_DURABLE);
    sim_step_snapshot(world);
    anchor = &world->store->anchor;
    if (!world->rotten &&
        (anchor->snapshots[0] == lsn || anchor->snapshots[1] == lsn)) {
        sim_world_fail(world,
                       "ANCHOR names the snapshot of LSN %" PRIu64
                       ", which is damaged",
                       lsn);
    }
}
