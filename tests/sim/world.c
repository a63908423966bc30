/* tests/sim/world.c -- see tests/sim/world.h. */
#include "tests/sim/world.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/numbered.h"
#include "engine/batch.h"
#include "engine/commit.h"
#include "engine/keepers.h"
#include "tests/lib/suffix.h"
#include "tests/sim/log.h"
#include "tests/sim/world_internal.h"
#include "wal/unit.h"

enum {
    GROUP_MAX = 4,
    LOOKS_AFTER_WITHDRAWAL = 6,
    IMAGE_VALUE_BYTES = 9000,
    CHECKPOINT_OPS = 3, /* Of one transaction: so that there are several. */
    VIEWS_MAX = 8,
    SNAPSHOT_STEP_BYTES = 4096,
    IDLE_NS = 200000000, /* Longer than the idle of ANCHOR, and the window. */
};

void sim_world_fail(struct sim_world *world, const char *format, ...)
{
    va_list args;

    if (world->problem[0] != '\0') {
        return;
    }
    va_start(args, format);
    vsnprintf(world->problem, sizeof world->problem, format, args);
    va_end(args);
}

void sim_world_mark(struct sim_world *world, enum sim_mark kind,
                    uint64_t number)
{
    sim_disk_mark(world->disk, kind, number);
}

/* ---- Faults ----------------------------------------------------------------------- */

static int strike(void *context, enum sim_call call, const char *name,
                  size_t bytes)
{
    struct sim_world *world = context;
    const int result = world->fault_result;

    if (world->garbling > 0 && call == SIM_CALL_WRITE &&
        ends_in(name, NUMBERED_TEMPORARY) && --world->garbling == 0) {
        return SIM_GARBLED;
    }
    if (result == 0 || call != world->fault_call ||
        !ends_in(name, world->fault_suffix)) {
        return 0;
    }
    if (world->fault_after > 0) {
        world->fault_after--;
        return 0;
    }
    if (result > 0 && bytes < 2) {
        return 0; /* Nothing to cut short. */
    }
    world->fault_result = 0;
    world->fault_struck = true;
    if (result > 0) {
        /* Short: by a byte, by a sector, to one byte, to nothing. */
        const size_t kept[] = {bytes - 1, bytes > 512 ? bytes - 512 : 1, 1, 0};

        world->unsure = true;
        return SIM_SHORT(kept[(size_t)result % 4]);
    }
    if (result != -ENOSPC && result != -EDQUOT) {
        world->unsure = true;
    }
    return result;
}

static void arm(struct sim_world *world, uint64_t seed)
{
    static const struct {
        enum sim_call call;
        int result; /* Above 0: a short write. */
    } faults[] = {
        {SIM_CALL_SYNC, -EIO},         {SIM_CALL_SYNC, -EIO},
        {SIM_CALL_SYNC, -EIO},         {SIM_CALL_WRITE, -EIO},
        {SIM_CALL_WRITE, -ENOSPC},     {SIM_CALL_WRITE, -EDQUOT},
        {SIM_CALL_WRITE, 4},           {SIM_CALL_WRITE, 1},
        {SIM_CALL_WRITE, 2},           {SIM_CALL_WRITE, 3},
        {SIM_CALL_ALLOCATE, -ENOSPC},  {SIM_CALL_SYNC_DIR, -EIO},
        {SIM_CALL_RENAME, -EIO},       {SIM_CALL_RENAME, -ENOSPC},
        {SIM_CALL_OPEN_FILE, -EMFILE}, {SIM_CALL_OPEN_FILE, -ENOSPC},
        {SIM_CALL_READ, -EIO},         {SIM_CALL_INDEX_COMMIT, -ENOSPC},
        {SIM_CALL_INDEX_COMMIT, -EIO},
    };
    static const char *const suffixes[] = {".wal",   ".wal",   ".wal",
                                           "ANCHOR", "ANCHOR", ""};
    struct random_source random = {.state = seed};
    struct random_source focus = {.state = world->setting.fault_focus +
                                           random_below(&random, 3)};
    const size_t pick =
        (size_t)random_below(world->setting.fault_focus == 0 ? &random : &focus,
                             sizeof faults / sizeof faults[0]);

    world->fault_call = faults[pick].call;
    world->fault_result = faults[pick].result;
    world->fault_suffix = "";
    if (world->fault_call == SIM_CALL_WRITE ||
        world->fault_call == SIM_CALL_SYNC) {
        /* Where it matters most. */
        world->fault_suffix = suffixes[random_below(
            &random, sizeof suffixes / sizeof suffixes[0])];
    }
    if (world->setting.snapshot_log_bytes != 0 &&
        ends_in(world->fault_suffix, "l") && random_one_in(&random, 2)) {
        world->fault_suffix = ".tmp"; /* Of a snapshot, mostly. */
    }
    world->fault_after = (uint32_t)random_below(
        &random, world->fault_call == SIM_CALL_READ ? 12 : 2);
}

/* Whether a fault explains the failure: one that was for want of space alone must
 * be reported as such. */
bool sim_world_excused(const struct sim_world *world, enum stele_status status)
{
    return world->unsure || (world->fault_struck && status == STELE_NO_SPACE);
}

/* Whatever failed, nothing is damaged or missing. */
static bool is_called_damage(enum stele_status status)
{
    return status == STELE_CORRUPT || status == STELE_FOREIGN ||
           status == STELE_NOT_FOUND;
}

/* ---- What a store shows --------------------------------------------------------------- */

/* Take in the LSN that the log gives a batch, if nobody was told. */
static void learn_lsn(void *context, const struct wal_record *record)
{
    struct sim_history *history = context;
    const uint32_t number = sim_history_number(record->tag);

    if (number < history->count && history->batches[number].lsn == 0) {
        history->batches[number].lsn = record->lsn;
    }
}

uint32_t sim_world_state_of(struct sim_history *history, struct stele *store,
                            uint64_t lsn, uint32_t limit, char *text,
                            size_t bytes)
{
    uint32_t number = sim_history_find(history, lsn, limit);
    struct wal_position start;
    struct stele_error error;

    if (number != UINT32_MAX) {
        return number;
    }
    if (sim_log_start(store, &start, &error) != STELE_OK ||
        sim_log_walk(store, &start, learn_lsn, history, &error) != STELE_OK) {
        snprintf(text, bytes, "reading the log: %s", error.message);
        return UINT32_MAX;
    }
    number = sim_history_find(history, lsn, limit);
    if (number == UINT32_MAX) {
        snprintf(text, bytes,
                 "it shows LSN %" PRIu64 ", which no batch of ours has", lsn);
    }
    return number;
}

/* Open a view, find out which state it shows, and compare. Returns the number, or
 * UINT32_MAX after a problem (or an excused failure). */
static uint32_t look(struct sim_world *world, struct stele *store,
                     const char *who)
{
    struct stele_error error;
    struct stele_view *view;
    char text[SIM_PROBLEM_BYTES / 2];
    uint32_t number;
    enum stele_status status = stele_view_open(store, &view, &error);

    if (status != STELE_OK) {
        if (!sim_world_excused(world, status)) {
            sim_world_fail(world, "%s: view: %s", who, error.message);
        }
        return UINT32_MAX;
    }
    number = sim_world_state_of(world->history, store, stele_view_lsn(view),
                                world->history->count, text, sizeof text);
    if (number == UINT32_MAX) {
        if (!world->unsure) {
            sim_world_fail(world, "%s: %s", who, text);
        }
    } else if (!sim_history_matches(world->history, number, view, text,
                                    sizeof text)) {
        sim_world_fail(world, "%s: in the state after batch %" PRIu32 ", %s",
                       who, number, text);
    }
    stele_view_close(view);
    return number;
}

/* ---- The process -------------------------------------------------------------------------- */

void sim_world_options(const struct sim_setting *setting, struct io *io,
                       enum stele_open_mode mode, struct stele_options *options,
                       struct store_tuning *tuning)
{
    stele_options_init(options);
    options->mode = mode;
    options->memtable_bytes = setting->memtable_bytes;
    options->views_max = VIEWS_MAX;
    store_tuning_init(tuning);
    tuning->io = io;
    tuning->manual = true;
    tuning->hash_seed = 1;
    tuning->segment_bytes = setting->segment_bytes;
    tuning->checkpoint_pages_max = 16;
    options->retain_log_bytes = setting->retain_log_bytes;
    options->retain_log_ms = setting->retain_log_ms;
    if (setting->snapshot_log_bytes != 0) {
        tuning->snapshot_log_bytes = setting->snapshot_log_bytes;
        tuning->snapshot_step_bytes = SNAPSHOT_STEP_BYTES;
    }
    if (setting->range_fragments_max != 0) {
        tuning->range_fragments_max = setting->range_fragments_max;
    }
}

struct sim_image *sim_world_first_image(void)
{
    struct sim_image *image = sim_image_create();

    sim_image_add(image, SIM_ROOT_INODE + 1, IO_TYPE_DIRECTORY);
    sim_image_link(image, SIM_ROOT_INODE, "root", SIM_ROOT_INODE + 1);
    return image;
}

void sim_world_end_reader(struct sim_world *world)
{
    struct stele_error error;

    if (world->reader != NULL &&
        stele_close(world->reader, &error) != STELE_OK) {
        sim_world_fail(world, "reader: close: %s", error.message);
    }
    world->reader = NULL;
    if (world->reader_process != NULL) {
        if (sim_process_open_count(world->reader_process) > 0) {
            sim_world_fail(world, "reader: %" PRIu32 " descriptors left open",
                           sim_process_open_count(world->reader_process));
        }
        sim_process_end(world->reader_process);
    }
    world->reader_process = NULL;
}

void sim_world_end_checkpoint(struct sim_world *world)
{
    checkpoint_destroy(world->checkpoint);
    world->checkpoint = NULL;
}

/* The process is gone, whatever it had done. */
void sim_world_end_process(struct sim_world *world)
{
    sim_world_end_checkpoint(world);
    if (world->store != NULL) {
        store_abandon(world->store);
        world->store = NULL;
    }
    if (world->process != NULL) {
        if (sim_process_open_count(world->process) > 0) {
            sim_world_fail(world, "%" PRIu32 " descriptors left open",
                           sim_process_open_count(world->process));
        }
        sim_process_end(world->process);
        world->process = NULL;
    }
    world->committing_durable = false;
    world->holding = false; /* It was the handle's. */
}

static enum stele_status try_open(struct sim_world *world,
                                  struct stele_error *error)
{
    struct stele_options options;
    struct store_tuning tuning;

    world->process = sim_process_start(world->disk);
    sim_world_options(&world->setting, sim_process_io(world->process),
                      world->created ? STELE_OPEN_EXISTING : STELE_OPEN_CREATE,
                      &options, &tuning);
    return store_open(SIM_STORE_PATH, &options, &tuning, &world->store, error);
}

static void mark_anchor(struct sim_world *world)
{
    if (world->store != NULL &&
        world->store->anchor.slot_sequence > world->anchor_sequence) {
        world->anchor_sequence = world->store->anchor.slot_sequence;
        sim_disk_mark(world->disk, SIM_MARK_ANCHOR, world->anchor_sequence);
    }
}

/* ANCHOR should name the last durable batch now, if no call failed. */
static void mark_named(struct sim_world *world)
{
    if (!world->fault_struck) {
        sim_world_mark(world, SIM_MARK_NAMED, world->durable);
    }
}

/* A new process opens the store: what it finds is true from now on. */
void sim_world_open(struct sim_world *world)
{
    struct stele_error error;
    enum stele_status status;
    bool had_unsure = world->unsure;
    uint32_t found;

    assert(world->store == NULL);
    world->unsure = false;
    world->fault_struck = false;
    status = try_open(world, &error);
    if (status != STELE_OK && world->fault_struck &&
        !is_called_damage(status)) {
        /* A fault while opening: refused, and the next try is a new one. */
        sim_world_end_process(world);
        world->fault_result = 0;
        had_unsure = had_unsure || world->unsure;
        world->unsure = false;
        status = try_open(world, &error);
    }
    if (status != STELE_OK) {
        sim_world_fail(world, "open: %s", error.message);
        sim_world_end_process(world);
        return;
    }
    world->created = true;
    found = look(world, world->store, "after opening");
    if (found == UINT32_MAX) {
        return;
    }
    if (!sim_history_descends(world->history, found, world->durable) ||
        (!had_unsure && found != world->head)) {
        sim_world_fail(world,
                       "opening found the state after batch %" PRIu32
                       ", but batch %" PRIu32 " was committed",
                       found, had_unsure ? world->durable : world->head);
        return;
    }
    world->head = found;
    world->durable = found;
    sim_world_mark(world, SIM_MARK_OPENED, found);
    mark_anchor(world);
    mark_named(world);
}

/* ---- Commits ---------------------------------------------------------------------------------- */

struct commit {
    uint32_t number;
    enum stele_durability durability;
    struct stele_batch *batch;
    struct stele_commit_result result;
    enum stele_status status;
    struct stele_error error;
    bool answered;
};

static void answer(void *context, enum stele_status status,
                   const struct stele_error *error)
{
    struct commit *commit = context;

    commit->answered = true;
    commit->status = status;
    if (error != NULL && status != STELE_OK) {
        commit->error = *error;
    }
}

/* A checkpoint of the script and one that a full memtable begins would meet: the
 * store begins it again. */
static void make_room(struct sim_world *world)
{
    struct stele_stats stats = {.size = sizeof stats};
    struct stele_error error;

    if (world->checkpoint != NULL &&
        (stele_stats(world->store, &stats, &error) != STELE_OK ||
         stats.memtable_bytes >= world->setting.memtable_bytes / 2 ||
         (world->setting.range_fragments_max != 0 &&
          stats.range_fragments >= world->setting.range_fragments_max))) {
        sim_world_end_checkpoint(world);
    }
}

static bool begin_commit(struct sim_world *world, struct commit *commit)
{
    struct stele_error error;

    commit->answered = false;
    if (stele_batch_create(&commit->batch, &error) != STELE_OK ||
        sim_history_fill(world->history, commit->number, commit->batch,
                         &error) != STELE_OK) {
        sim_world_fail(world, "batch: %s", error.message);
        return false;
    }
    sim_world_mark(world, SIM_MARK_ISSUE, commit->number);
    return true;
}

static void take_lsn(struct sim_world *world, const struct commit *commit)
{
    const uint64_t lsn = commit->result.lsn;

    if (lsn <= world->lsn_high) {
        sim_world_fail(world,
                       "batch %" PRIu32 " got LSN %" PRIu64 ", but %" PRIu64
                       " was given before",
                       commit->number, lsn, world->lsn_high);
    }
    world->lsn_high = lsn;
    world->history->batches[commit->number].lsn = lsn;
}

/* What the answer means. */
static void end_commit(struct sim_world *world, struct commit *commit)
{
    const bool refused = world->history->batches[commit->number].refused;

    stele_batch_destroy(commit->batch);
    if (commit->status == STELE_OK) {
        if (refused) {
            sim_world_fail(world,
                           "batch %" PRIu32
                           " was committed against its expectations",
                           commit->number);
            return;
        }
        take_lsn(world, commit);
        world->head = commit->number;
        if (commit->durability == STELE_DURABLE) {
            world->durable = commit->number;
            sim_world_mark(world, SIM_MARK_ACK, commit->number);
        } else {
            sim_world_mark(world, SIM_MARK_RELAXED, commit->number);
        }
        return;
    }
    if (!sim_world_excused(world, commit->status) &&
        !(commit->status == STELE_PRECONDITION && refused)) {
        sim_world_fail(world, "batch %" PRIu32 ": %s", commit->number,
                       commit->error.message);
        return;
    }
    if (commit->status == STELE_UNKNOWN) {
        return; /* The next open decides. */
    }
    sim_world_mark(world, SIM_MARK_REFUSED, commit->number);
    if (commit->status == STELE_NO_SPACE) {
        world->looks_due = LOOKS_AFTER_WITHDRAWAL;
    }
}

static void step_read(struct sim_world *world);

/* Nothing of what was withdrawn is to be seen, now or later. */
static void look_if_due(struct sim_world *world)
{
    if (world->looks_due > 0 && world->problem[0] == '\0') {
        world->looks_due--;
        step_read(world);
    }
}

static void commit_one(struct sim_world *world, uint32_t number,
                       enum stele_durability durability)
{
    struct commit commit = {.number = number, .durability = durability};

    make_room(world);
    if (!begin_commit(world, &commit)) {
        return;
    }
    world->committing_durable = durability == STELE_DURABLE;
    commit.status = stele_commit(world->store, commit.batch, durability,
                                 &commit.result, &commit.error);
    world->committing_durable = false;
    end_commit(world, &commit);
    look_if_due(world);
}

void sim_world_commit(struct sim_world *world, uint64_t seed,
                      enum stele_durability durability)
{
    const uint32_t number = sim_history_add(world->history, world->head, seed);

    commit_one(world, number, durability);
}

/* Several committers at once: all but the last ask asynchronously, so that the
 * last one leads them all as one group. It is synced if one of them asks for it:
 * most of the time. */
static void step_group(struct sim_world *world, uint64_t seed)
{
    struct random_source random = {.state = seed};
    const uint32_t count = 2 + (uint32_t)random_below(&random, GROUP_MAX - 1);
    struct commit commits[GROUP_MAX] = {0};
    struct stele_error error;
    uint32_t previous = world->head;

    make_room(world);
    for (uint32_t index = 0; index < count; index++) {
        struct commit *commit = &commits[index];
        enum stele_status status = STELE_OK;

        commit->number =
            sim_history_add(world->history, previous, random_u64(&random));
        if (!world->history->batches[commit->number].refused) {
            previous = commit->number;
        }
        commit->durability =
            random_one_in(&random, 2) ? STELE_DURABLE : STELE_RELAXED;
        if (!begin_commit(world, commit)) {
            return;
        }
        if (index + 1 < count) {
            status = stele_commit_async(world->store, commit->batch,
                                        commit->durability, &commit->result,
                                        answer, commit, &error);
        } else {
            commit->status =
                stele_commit(world->store, commit->batch, commit->durability,
                             &commit->result, &commit->error);
            commit->answered = true;
        }
        if (status != STELE_OK) {
            answer(commit, status, &error);
        }
    }
    for (uint32_t index = 0; index < count; index++) {
        if (!commits[index].answered) {
            sim_world_fail(world, "batch %" PRIu32 " was never answered",
                           commits[index].number);
            return;
        }
        if (commits[index].status == STELE_OK &&
            world->history->batches[commits[index].number].previous !=
                world->head) {
            /* One before it was refused, for want of space or descriptors. */
            world->history->batches[commits[index].number].previous =
                world->head;
            sim_history_settle(world->history, commits[index].number);
        }
        end_commit(world, &commits[index]);
    }
    look_if_due(world);
}

/* Put the image of a unit that would prove the very unit it stands in durable
 * where a page of the log begins: with everything right but the seed. */
static void craft_images(struct sim_world *world, uint8_t *value,
                         size_t value_offset, uint64_t salt)
{
    const struct wal_position end = wal_writer_written(world->store->writer);
    const uint64_t start =
        end.unit == 0 ? WAL_SEGMENT_HEADER_BYTES : end.end_offset;

    for (uint64_t page = 1; page <= 2; page++) {
        const uint64_t in_unit = page * WAL_PAGE_BYTES;
        const uint64_t place = start + in_unit;
        const struct wal_unit unit = {
            .number = end.unit + 2,
            .segment = end.unit == 0 ? 1 : end.segment,
            .body_bytes = 64,
            .lsn_first = end.lsn + 2,
            .unit_durable = end.unit + 1,
            .incarnation = world->store->incarnation,
            .record_count = 1,
        };

        if (in_unit < value_offset || in_unit + WAL_UNIT_HEADER_BYTES >
                                          value_offset + IMAGE_VALUE_BYTES) {
            continue;
        }
        wal_unit_encode_header(
            &unit, page == 1 ? wal_unit_seed(0, place) : wal_unit_seed(salt, 0),
            value + (in_unit - value_offset));
    }
}

static void step_image(struct sim_world *world, uint64_t seed)
{
    const struct wal_position end = wal_writer_written(world->store->writer);
    uint8_t *value = sim_history_allocate(world->history, IMAGE_VALUE_BYTES);
    struct wal_segment segment = {0};
    struct sim_batch *batch;
    struct stele_batch *draft;
    struct stele_error error;
    uint32_t number;

    number = sim_history_add(world->history, world->head, seed);
    memset(value, 'i', IMAGE_VALUE_BYTES);
    batch = &world->history->batches[number];
    batch->op_count = 1;
    batch->ops[0] = (struct sim_batch_op){
        .change = SIM_PUT, .value = value, .value_bytes = IMAGE_VALUE_BYTES};
    sim_history_settle(world->history, number);
    /* Once for the place of the value in its record. */
    if (stele_batch_create(&draft, &error) != STELE_OK ||
        sim_history_fill(world->history, number, draft, &error) != STELE_OK) {
        sim_world_fail(world, "batch: %s", error.message);
        return;
    }
    if (wal_segment_open(world->store->wal_dir, end.unit == 0 ? 1 : end.segment,
                         &world->store->uuid, IO_OPEN_READ, &segment,
                         &error) == STELE_OK) {
        craft_images(world, value,
                     WAL_UNIT_HEADER_BYTES + draft->bytes - IMAGE_VALUE_BYTES,
                     segment.salt);
    }
    wal_segment_close(&segment);
    stele_batch_destroy(draft);
    commit_one(world, number, STELE_DURABLE);
}

/* Another thread looks at the store in the moment before the log is synced. What
 * it sees of a durable commit must survive. */
static void look_into_commit(struct sim_world *world)
{
    struct stele_error error;
    struct stele_view *view;

    if (!world->committing_durable ||
        stele_view_open(world->store, &view, &error) != STELE_OK) {
        return;
    }
    if (stele_view_lsn(view) > world->history->batches[world->head].lsn &&
        !world->unsure) {
        sim_world_mark(world, SIM_MARK_EXPOSED, world->history->count - 1);
    }
    stele_view_close(view);
}

static void step_reader(struct sim_world *world);

static void before_sync(void *context, const char *name)
{
    struct sim_world *world = context;
    const char *dot = strrchr(name, '.');

    if (dot != NULL && strcmp(dot, ".wal") == 0) {
        look_into_commit(world);
    } else if (strcmp(name, "ANCHOR") == 0 && world->store == NULL &&
               world->created && world->reader_process == NULL &&
               world->fault_result == 0 && !world->unsure &&
               random_one_in(&world->random, 4)) {
        /* A reader comes while the writer is still opening. */
        step_reader(world);
        sim_world_end_reader(world);
    }
}

/* ---- The other steps ------------------------------------------------------------------------- */

static void step_sync(struct sim_world *world)
{
    struct stele_error error;
    const enum stele_status status = stele_sync(world->store, &error);

    if (status == STELE_OK) {
        world->durable = world->head;
        sim_world_mark(world, SIM_MARK_ACK, world->head);
    } else if (!sim_world_excused(world, status)) {
        sim_world_fail(world, "sync: %s", error.message);
    }
}

static void step_freeze(struct sim_world *world)
{
    struct stele_error error;
    enum stele_status status;
    bool froze = false;

    if (world->checkpoint != NULL) {
        return;
    }
    status = commit_freeze(world->store, &froze, &error);
    if (status == STELE_OK && world->store->frozen) {
        status = checkpoint_begin(world->store, &world->checkpoint, &error);
    }
    if (status != STELE_OK && !sim_world_excused(world, status)) {
        sim_world_fail(world, "freeze: %s", error.message);
    }
}

static void step_checkpoint(struct sim_world *world)
{
    struct stele_error error;
    enum stele_status status;
    bool done = false;

    if (world->checkpoint == NULL) {
        step_freeze(world);
    }
    if (world->checkpoint == NULL) {
        return;
    }
    status = checkpoint_advance(world->store, world->checkpoint, CHECKPOINT_OPS,
                                &done, &error);
    if (status != STELE_OK) {
        if (!sim_world_excused(world, status)) {
            sim_world_fail(world, "checkpoint: %s", error.message);
        }
        done = true;
    }
    if (done) {
        sim_world_end_checkpoint(world);
    }
}

static void step_drain(struct sim_world *world)
{
    struct stele_error error;
    enum stele_status status;

    sim_world_end_checkpoint(world);
    status = stele_checkpoint(world->store, &error);
    if (status != STELE_OK && !sim_world_excused(world, status)) {
        sim_world_fail(world, "checkpoint: %s", error.message);
    }
}

static void step_tend(struct sim_world *world)
{
    /* Else there is a sync to do, and the idle of ANCHOR begins behind it. */
    const bool idle = world->durable == world->head;
    struct stele_error error;

    sim_disk_advance_clock(world->disk, IDLE_NS);
    (void)keepers_tend_log(world->store);
    /* The window of relaxed commits is over. */
    if (!world->unsure &&
        store_check_writable(world->store, &error) == STELE_OK) {
        world->durable = world->head;
        sim_world_mark(world, SIM_MARK_ACK, world->head);
        if (idle) {
            mark_named(world);
        }
    }
}

static void step_read(struct sim_world *world)
{
    const uint32_t found = look(world, world->store, "view");

    if (found != UINT32_MAX && found != world->head && !world->unsure) {
        sim_world_fail(world,
                       "view: the state after batch %" PRIu32
                       ", but batch %" PRIu32 " was committed",
                       found, world->head);
    }
}

static void open_reader(struct sim_world *world)
{
    struct stele_options options;
    struct store_tuning tuning;
    struct stele_error error;
    enum stele_status status;

    world->reader_process = sim_process_start(world->disk);
    sim_world_options(&world->setting, sim_process_io(world->reader_process),
                      STELE_OPEN_READ_ONLY, &options, &tuning);
    status =
        store_open(SIM_STORE_PATH, &options, &tuning, &world->reader, &error);
    if (status != STELE_OK) {
        world->reader = NULL;
        if (!sim_world_excused(world, status) || is_called_damage(status)) {
            sim_world_fail(world, "reader: open: %s", error.message);
        }
        sim_world_end_reader(world);
    }
}

static void step_reader(struct sim_world *world)
{
    uint32_t found;

    if (world->reader == NULL) {
        open_reader(world);
    }
    if (world->reader == NULL) {
        return;
    }
    found = look(world, world->reader, "reader");
    if (found == UINT32_MAX) {
        return;
    }
    if (!sim_history_descends(world->history, found, world->durable)) {
        if (world->fault_struck) {
            return; /* Its sync failed, or the hint found no space. */
        }
        sim_world_fail(world,
                       "reader: the state after batch %" PRIu32
                       ", but batch %" PRIu32 " was acknowledged as durable",
                       found, world->durable);
        return;
    }
    sim_world_mark(world, SIM_MARK_EXPOSED, found);
}

static void step_kill(struct sim_world *world, uint64_t seed)
{
    struct random_source random = {.state = seed};

    sim_world_end_process(world);
    if (random_one_in(&random, 3) && world->created) {
        step_reader(world); /* While nobody writes. */
        if (random_one_in(&random, 2)) {
            sim_world_end_reader(world);
        }
    }
    sim_world_open(world);
}

static void step_reopen(struct sim_world *world)
{
    struct stele_error error;
    enum stele_status status;

    sim_world_end_checkpoint(world);
    status = stele_close(world->store, &error);
    world->store = NULL;
    if (status == STELE_OK) {
        world->durable = world->head;
        sim_world_mark(world, SIM_MARK_ACK, world->head);
        mark_named(world);
    } else if (!sim_world_excused(world, status)) {
        sim_world_fail(world, "close: %s", error.message);
    }
    sim_world_end_process(world);
    sim_world_open(world);
}

/* ---- The life ------------------------------------------------------------------------------------ */

static void run_step(struct sim_world *world, const struct sim_step *step)
{
    switch (step->kind) {
    case SIM_STEP_DURABLE:
        sim_world_commit(world, step->seed, STELE_DURABLE);
        break;
    case SIM_STEP_RELAXED:
        sim_world_commit(world, step->seed, STELE_RELAXED);
        break;
    case SIM_STEP_GROUP:
        step_group(world, step->seed);
        break;
    case SIM_STEP_IMAGE:
        step_image(world, step->seed);
        break;
    case SIM_STEP_SYNC:
        step_sync(world);
        break;
    case SIM_STEP_FREEZE:
        step_freeze(world);
        break;
    case SIM_STEP_CHECKPOINT:
        step_checkpoint(world);
        break;
    case SIM_STEP_DRAIN:
        step_drain(world);
        break;
    case SIM_STEP_TEND:
        step_tend(world);
        break;
    case SIM_STEP_READ:
        step_read(world);
        break;
    case SIM_STEP_READER:
        step_reader(world);
        break;
    case SIM_STEP_READER_END:
        sim_world_end_reader(world);
        break;
    case SIM_STEP_FAULT:
        arm(world, step->seed);
        break;
    case SIM_STEP_KILL:
        step_kill(world, step->seed);
        break;
    case SIM_STEP_REOPEN:
        step_reopen(world);
        break;
    case SIM_STEP_SNAPSHOT:
        sim_step_snapshot(world);
        break;
    case SIM_STEP_SNAPSHOT_STEP:
        sim_step_snapshot_step(world, step->seed);
        break;
    case SIM_STEP_LOSE_INDEX:
        sim_step_lose_index(world);
        break;
    case SIM_STEP_HOLD:
        sim_step_hold(world, step->seed);
        break;
    case SIM_STEP_PAST:
        sim_step_past(world, step->seed);
        break;
    case SIM_STEP_CLOCK:
        sim_step_clock(world, step->seed);
        break;
    case SIM_STEP_ROT_INDEX:
        sim_step_rot_index(world, step->seed);
        break;
    case SIM_STEP_ROT_SNAPSHOT:
        sim_step_rot_snapshot(world, step->seed);
        break;
    case SIM_STEP_BACKUP:
        sim_step_backup(world, step->seed);
        break;
    case SIM_STEP_RESTORE:
        sim_step_restore(world, step->seed);
        break;
    case SIM_STEP_KINDS:
        abort();
    }
}

void sim_world_init(struct sim_world *world, struct sim_image *image,
                    struct sim_history *history, uint32_t head, bool created,
                    uint64_t seed, const struct sim_setting *setting)
{
    *world = (struct sim_world){
        .setting = *setting,
        .disk = sim_disk_create(image, seed),
        .history = history,
        .head = head,
        .durable = head,
        .created = created,
        .random = {.state = seed},
    };
    sim_disk_set_fs_kind(world->disk, setting->fs_kind);
    sim_disk_set_fault(world->disk, strike, world);
    sim_disk_set_before_sync(world->disk, before_sync, world);
}

void sim_world_deinit(struct sim_world *world)
{
    world->fault_result = 0;
    sim_world_end_reader(world);
    sim_world_end_process(world);
    sim_disk_free(world->disk);
    world->disk = NULL;
}

void sim_world_run(struct sim_world *world, const struct sim_step *steps,
                   size_t step_count, const bool *skip)
{
    sim_world_open(world);
    for (size_t index = 0; index < step_count && world->problem[0] == '\0' &&
                           world->store != NULL;
         index++) {
        struct stele_error error;

        if (skip != NULL && skip[index]) {
            continue;
        }
        sim_world_mark(world, SIM_MARK_STEP, (uint32_t)index);
        run_step(world, &steps[index]);
        mark_anchor(world);
        /* A poisoned handle serves reads only; most of the time it is soon
         * replaced. */
        if (world->store != NULL && world->unsure &&
            store_check_writable(world->store, &error) != STELE_OK &&
            steps[index].seed % 3 != 0) {
            step_kill(world, steps[index].seed);
        }
    }
}
