/* tests/sim/trial_acts.c -- the operations of tests/sim/trial.h. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "engine/checkpoint.h"
#include "engine/commit.h"
#include "engine/keepers.h"
#include "engine/restore.h"
#include "tests/sim/trial.h"

enum {
    STEP_OPS = 2,        /* Of one transaction: so that there are several. */
    IDLE_NS = 200000000, /* Longer than the idle of ANCHOR, and the window. */
    GROUP = 3,
};

/* ---- Before the operation ------------------------------------------------------- */

static void open_writer(struct sim_trial *trial)
{
    struct stele_error error;

    (void)sim_trial_must(trial, "open",
                         sim_trial_open(trial, STELE_OPEN_EXISTING, &error),
                         &error);
}

static void open_reader(struct sim_trial *trial)
{
    struct stele_error error;

    (void)sim_trial_must(trial, "reader: open",
                         sim_trial_open_reader(trial, &error), &error);
}

/* A handle with something in both memtable and index, and a relaxed commit. */
static void with_tail(struct sim_trial *trial)
{
    open_writer(trial);
    sim_trial_commit(trial, SIM_SHAPE_RANGES, STELE_DURABLE);
    sim_trial_commit(trial, SIM_SHAPE_PUT, STELE_RELAXED);
}

static void killed_with_tail(struct sim_trial *trial)
{
    with_tail(trial);
    sim_trial_kill(trial);
}

/* ---- Small faults of the preparation's own ------------------------------------------ */

struct refusal {
    enum sim_call call;
    const char *suffix;
    int result;
};

static int refuse(void *context, enum sim_call call, const char *name,
                  size_t bytes)
{
    const struct refusal *refusal = context;
    const char *end = strrchr(name, '.');

    if (call != refusal->call ||
        strcmp(end == NULL ? name : end, refusal->suffix) != 0) {
        return 0;
    }
    return refusal->result > 0 ? SIM_SHORT(bytes / 2) : refusal->result;
}

static void killed_with_torn_tail(struct sim_trial *trial)
{
    struct refusal torn = {SIM_CALL_WRITE, ".wal", 1};

    with_tail(trial);
    sim_disk_set_fault(trial->disk, refuse, &torn);
    sim_trial_commit(trial, SIM_SHAPE_LARGE, STELE_DURABLE);
    sim_disk_set_fault(trial->disk, NULL, NULL);
    if (!trial->unknown) {
        sim_trial_problem(trial, "nothing was torn");
    }
    trial->failure_count = 0;
    sim_trial_kill(trial);
}

/* Its next commit needs a new segment. */
static void opened_behind_torn_tail(struct sim_trial *trial)
{
    killed_with_torn_tail(trial);
    open_writer(trial);
    trial->unknown = false;
    sim_trial_mark(trial, SIM_MARK_OPENED, trial->head);
}

/* The segment is there, and ANCHOR does not name it. */
static void killed_with_unnamed_segment(struct sim_trial *trial)
{
    struct refusal full = {SIM_CALL_WRITE, "ANCHOR", -ENOSPC};
    struct stele_error error;

    with_tail(trial);
    sim_disk_set_fault(trial->disk, refuse, &full);
    if (store_prepare_segment(trial->store, &error) != STELE_NO_SPACE) {
        sim_trial_problem(trial, "the segment was named");
    }
    sim_disk_set_fault(trial->disk, NULL, NULL);
    sim_trial_kill(trial);
}

static void step_checkpoint(struct sim_trial *trial, uint32_t steps_max)
{
    struct checkpoint *checkpoint = NULL;
    struct stele_error error;
    bool froze = false;
    bool done = false;
    enum stele_status status = commit_freeze(trial->store, &froze, &error);

    if (sim_trial_note(trial, "freeze", status, &error) &&
        trial->store->frozen) {
        status = checkpoint_begin(trial->store, &checkpoint, &error);
        (void)sim_trial_note(trial, "checkpoint", status, &error);
    }
    for (uint32_t step = 0;
         step < steps_max && status == STELE_OK && checkpoint != NULL && !done;
         step++) {
        status = checkpoint_advance(trial->store, checkpoint, STEP_OPS, &done,
                                    &error);
        (void)sim_trial_note(trial, "checkpoint", status, &error);
    }
    checkpoint_destroy(checkpoint);
}

static void killed_in_checkpoint(struct sim_trial *trial)
{
    with_tail(trial);
    step_checkpoint(trial, 1);
    sim_trial_commit(trial, SIM_SHAPE_PUT, STELE_DURABLE);
    if (trial->store->applying.unit <= trial->store->applied.unit) {
        sim_trial_problem(trial, "no checkpoint is under way");
    }
    sim_trial_kill(trial);
}

/* ---- What lies in the directory ------------------------------------------------------- */

/* Another program's hand: the disk is changed while nobody runs. */
static void start_from(struct sim_trial *trial, struct sim_image *image)
{
    const enum io_fs_kind fs_kind = trial->setting.fs_kind;

    sim_disk_free(trial->disk);
    trial->disk = sim_disk_create(image, 1);
    sim_disk_set_fs_kind(trial->disk, fs_kind);
    /* What was known on the other disk. */
    sim_trial_mark(trial, SIM_MARK_ISSUE, trial->head);
    sim_trial_mark(trial, SIM_MARK_ACK, trial->durable);
    sim_trial_mark(trial, SIM_MARK_RELAXED, trial->head);
}

static void add_entry(struct sim_image *image, const char *dir,
                      const char *name, enum io_file_type type)
{
    const uint32_t inode = image->node_count + 1;

    sim_image_add(image, inode, type);
    if (type == IO_TYPE_REGULAR) {
        sim_image_write(image, inode, "left", 4, 0);
    }
    sim_image_link(image, sim_image_walk(image, dir), name, inode);
}

static struct sim_image *killed_image(struct sim_trial *trial)
{
    killed_with_tail(trial);
    return sim_image_copy(sim_disk_cache(trial->disk));
}

static void without_index(struct sim_trial *trial)
{
    struct sim_image *image = killed_image(trial);

    sim_image_unlink(image, sim_image_walk(image, SIM_STORE_PATH), "index");
    add_entry(image, SIM_STORE_PATH, "index.tmp", IO_TYPE_DIRECTORY);
    add_entry(image, SIM_STORE_PATH "/index.tmp", "data.mdb", IO_TYPE_REGULAR);
    start_from(trial, image);
}

/* What is not in the index is more than a memtable. */
static void without_index_of_much(struct sim_trial *trial)
{
    struct sim_image *image;

    open_writer(trial);
    for (int count = 0; count < 6; count++) {
        sim_trial_commit(trial, SIM_SHAPE_LARGE, STELE_DURABLE);
    }
    sim_trial_kill(trial);
    image = sim_image_copy(sim_disk_cache(trial->disk));
    sim_image_unlink(image, sim_image_walk(image, SIM_STORE_PATH), "index");
    start_from(trial, image);
}

static void with_foreign_index(struct sim_trial *trial)
{
    struct sim_image *image = killed_image(trial);

    add_entry(image, SIM_STORE_PATH "/index", "data.mdb", IO_TYPE_REGULAR);
    start_from(trial, image);
}

static void with_temporaries(struct sim_trial *trial)
{
    struct sim_image *image = killed_image(trial);

    add_entry(image, SIM_STORE_PATH "/wal", "0000000000000002.tmp",
              IO_TYPE_REGULAR);
    add_entry(image, SIM_STORE_PATH "/wal", "0000000000000009.tmp",
              IO_TYPE_REGULAR);
    start_from(trial, image);
}

static void with_half_a_store(struct sim_trial *trial)
{
    struct sim_image *image = sim_image_copy(sim_disk_cache(trial->disk));

    add_entry(image, "root", "store", IO_TYPE_DIRECTORY);
    add_entry(image, SIM_STORE_PATH, "LOCK", IO_TYPE_REGULAR);
    add_entry(image, SIM_STORE_PATH, "ANCHOR.tmp", IO_TYPE_REGULAR);
    add_entry(image, SIM_STORE_PATH, "wal", IO_TYPE_DIRECTORY);
    add_entry(image, SIM_STORE_PATH "/wal", "0000000000000001.tmp",
              IO_TYPE_REGULAR);
    start_from(trial, image);
}

/* ---- Opening ----------------------------------------------------------------------------- */

static void act_create(struct sim_trial *trial)
{
    struct stele_error error;

    trial->opened = sim_trial_note(
        trial, "open", sim_trial_open(trial, STELE_OPEN_CREATE, &error),
        &error);
}

static void act_open(struct sim_trial *trial)
{
    struct stele_error error;

    trial->opened = sim_trial_note(
        trial, "open", sim_trial_open(trial, STELE_OPEN_EXISTING, &error),
        &error);
}

static void act_open_reader(struct sim_trial *trial)
{
    struct stele_error error;

    (void)sim_trial_note(trial, "open for reading",
                         sim_trial_open_reader(trial, &error), &error);
}

static void with_writer_ahead(struct sim_trial *trial)
{
    with_tail(trial);
    sim_trial_commit(trial, SIM_SHAPE_PUT, STELE_DURABLE);
}

static void with_reader_behind(struct sim_trial *trial)
{
    open_writer(trial);
    open_reader(trial);
    sim_trial_commit(trial, SIM_SHAPE_RANGES, STELE_DURABLE);
    sim_trial_commit(trial, SIM_SHAPE_LARGE, STELE_DURABLE); /* Rotates. */
    step_checkpoint(trial, 1);
    sim_trial_commit(trial, SIM_SHAPE_PUT, STELE_DURABLE);
}

/* Its writer is gone, too. */
static void with_reader_alone(struct sim_trial *trial)
{
    with_reader_behind(trial);
    sim_trial_commit(trial, SIM_SHAPE_PUT, STELE_RELAXED);
    sim_trial_kill(trial);
}

static void act_catch_up(struct sim_trial *trial)
{
    struct stele_error error;
    struct stele_view *view;

    if (sim_trial_note(trial, "the reader's view",
                       stele_view_open(trial->reader, &view, &error), &error)) {
        stele_view_close(view);
    }
}

/* ---- Committing ------------------------------------------------------------------------------ */

static void act_commit(struct sim_trial *trial)
{
    sim_trial_commit(trial, SIM_SHAPE_PUT, STELE_DURABLE);
}

static void act_commit_ranges(struct sim_trial *trial)
{
    sim_trial_commit(trial, SIM_SHAPE_RANGES, STELE_DURABLE);
}

static void act_commit_expecting(struct sim_trial *trial)
{
    sim_trial_commit(trial, SIM_SHAPE_EXPECTS, STELE_DURABLE);
}

static void act_sync(struct sim_trial *trial)
{
    struct stele_error error;
    const uint32_t head = trial->head;

    sim_trial_commit(trial, SIM_SHAPE_PUT, STELE_RELAXED);
    if (sim_trial_note(trial, "sync", stele_sync(trial->store, &error),
                       &error)) {
        trial->durable = trial->head;
        sim_trial_mark(trial, SIM_MARK_ACK, trial->head);
    } else if (trial->head != head) {
        trial->unknown = true;
    }
}

static void answer(void *context, enum stele_status status,
                   const struct stele_error *error)
{
    struct sim_commit *commit = context;

    commit->answered = true;
    commit->status = status;
    if (status != STELE_OK) {
        commit->error = *error;
    }
}

/* Several committers share a unit: the last one leads the others. */
static void act_group(struct sim_trial *trial)
{
    static const enum sim_shape shapes[GROUP] = {
        SIM_SHAPE_PUT, SIM_SHAPE_RANGES, SIM_SHAPE_PUT};
    struct sim_commit commits[GROUP] = {0};
    uint32_t previous = trial->head;

    for (size_t index = 0; index < GROUP; index++) {
        struct sim_commit *commit = &commits[index];
        enum stele_status status = STELE_OK;

        commit->number = sim_trial_batch(trial, previous, shapes[index]);
        commit->durability = index == 0 ? STELE_RELAXED : STELE_DURABLE;
        if (!sim_commit_begin(trial, commit)) {
            continue;
        }
        if (index + 1 < GROUP) {
            status = stele_commit_async(trial->store, commit->batch,
                                        commit->durability, &commit->result,
                                        answer, commit, &commit->error);
            if (status != STELE_OK) {
                commit->answered = true;
                commit->status = status;
                continue;
            }
        } else {
            commit->status =
                stele_commit(trial->store, commit->batch, commit->durability,
                             &commit->result, &commit->error);
            commit->answered = true;
        }
        previous = commit->number;
    }
    /* Whoever never led: the queue is not empty when the last is not there. */
    if (!commits[GROUP - 1].answered) {
        struct stele_error error;

        (void)sim_trial_note(trial, "sync", stele_sync(trial->store, &error),
                             &error);
    }
    /* What is refused in their midst is no ancestor of those behind it. */
    for (size_t index = 0; index < GROUP; index++) {
        struct sim_commit *commit = &commits[index];

        if (commit->batch == NULL) {
            continue;
        }
        if (!commit->answered) {
            sim_trial_problem(trial, "batch %" PRIu32 " was never answered",
                              commit->number);
        }
        if (commit->status == STELE_OK) {
            trial->history.batches[commit->number].previous = trial->head;
            sim_history_settle(&trial->history, commit->number);
        }
        sim_commit_end(trial, commit);
    }
}

/* ---- Room ------------------------------------------------------------------------------------------ */

/* The next large batch does not fit any more. */
static void with_full_segment(struct sim_trial *trial)
{
    open_writer(trial);
    sim_trial_commit(trial, SIM_SHAPE_PUT, STELE_DURABLE);
    sim_trial_commit(trial, SIM_SHAPE_PUT, STELE_RELAXED);
}

static void act_commit_rotating(struct sim_trial *trial)
{
    const uint64_t before = wal_writer_stats(trial->store->writer).rotations;

    sim_trial_commit(trial, SIM_SHAPE_LARGE, STELE_DURABLE);
    if (trial->failure_count == 0 &&
        wal_writer_stats(trial->store->writer).rotations == before) {
        sim_trial_problem(trial, "there was no rotation");
    }
}

static void act_tend(struct sim_trial *trial)
{
    sim_disk_advance_clock(trial->disk, IDLE_NS);
    (void)keepers_tend_log(trial->store);
}

/* More than one memtable's worth, so that commits checkpoint. */
static void with_full_memtable(struct sim_trial *trial)
{
    open_writer(trial);
    for (int count = 0; count < 6; count++) {
        sim_trial_commit(trial, SIM_SHAPE_LARGE, STELE_DURABLE);
    }
}

static void act_commit_checkpointing(struct sim_trial *trial)
{
    const uint64_t before = atomic_load(&trial->store->stat_checkpoints);

    for (int count = 0; count < 5 && trial->failure_count == 0; count++) {
        sim_trial_commit(trial, SIM_SHAPE_LARGE, STELE_DURABLE);
    }
    if (trial->failure_count == 0 &&
        atomic_load(&trial->store->stat_checkpoints) == before) {
        sim_trial_problem(trial, "there was no checkpoint");
    }
}

/* ---- The index ---------------------------------------------------------------------------------------- */

static void act_step_checkpoint(struct sim_trial *trial)
{
    step_checkpoint(trial, UINT32_MAX);
}

static void act_checkpoint(struct sim_trial *trial)
{
    struct stele_error error;

    if (sim_trial_note(trial, "checkpoint",
                       stele_checkpoint(trial->store, &error), &error)) {
        struct stele_stats stats = {.size = sizeof stats};

        if (stele_stats(trial->store, &stats, &error) != STELE_OK ||
            stats.lsn_applied != stats.lsn_visible) {
            sim_trial_problem(trial,
                              "checkpoint said OK, but the index ends "
                              "at LSN %" PRIu64,
                              stats.lsn_applied);
        }
    }
}

static void act_idle(struct sim_trial *trial)
{
    sim_disk_advance_clock(trial->disk, IDLE_NS);
    (void)keepers_tend_log(trial->store);
    sim_disk_advance_clock(trial->disk, (uint64_t)IDLE_NS * 100);
    (void)keepers_tend_log(trial->store);
}

/* ---- Closing -------------------------------------------------------------------------------------------- */

static void act_close(struct sim_trial *trial)
{
    struct stele_error error;
    const bool checkpoints = !trial->store->options.skip_close_checkpoint;
    const enum stele_status status = stele_close(trial->store, &error);

    trial->store = NULL;
    if (sim_trial_note(trial, "close", status, &error)) {
        trial->closed_clean = checkpoints;
        trial->durable = trial->head;
        sim_trial_mark(trial, SIM_MARK_ACK, trial->head);
    }
}

static void with_tail_to_leave(struct sim_trial *trial)
{
    with_tail(trial);
    if (trial->store != NULL) {
        trial->store->options.skip_close_checkpoint = true;
    }
}

static void with_queue(struct sim_trial *trial)
{
    open_writer(trial);
    sim_trial_commit(trial, SIM_SHAPE_PUT, STELE_RELAXED);
    step_checkpoint(trial, 1);
    sim_trial_commit(trial, SIM_SHAPE_PUT, STELE_RELAXED);
}

/* ---- Reading -------------------------------------------------------------------------------------------- */

static void found_damage(void *context, const struct stele_error *problem)
{
    sim_trial_problem(context, "verify takes a failure for damage: %s",
                      problem->message);
}

static void act_verify(struct sim_trial *trial)
{
    struct stele_verify_report report = {.size = sizeof report};
    struct stele_error error;
    struct stele *store = trial->store != NULL ? trial->store : trial->reader;

    if (sim_trial_note(
            trial, "verify",
            stele_verify(store, found_damage, trial, &report, &error),
            &error) &&
        trial->store != NULL) {
        trial->durable = trial->head; /* It syncs. */
        sim_trial_mark(trial, SIM_MARK_ACK, trial->head);
    }
}

static void act_find_tag(struct sim_trial *trial)
{
    static const uint8_t nobodys[STELE_TAG_BYTES] = {1};
    struct stele_error error;
    uint64_t lsn;
    const enum stele_status status =
        stele_find_tag(trial->store, nobodys, 0, &lsn, &error);

    if (status != STELE_NOT_FOUND) {
        (void)sim_trial_note(trial, "find tag", status, &error);
    }
}

static void read_table(struct sim_trial *trial, struct stele_view *view,
                       const char *table)
{
    struct stele_cursor *cursor;
    struct stele_entry entry;
    struct stele_value value;
    struct stele_error error;
    uint64_t count = 0;
    uint64_t counted = 0;
    bool whole = true;
    enum stele_status status;

    whole = sim_trial_note(trial, "count",
                           stele_table_count(view, table, &counted, &error),
                           &error);
    if (sim_trial_note(trial, "table LSN",
                       stele_table_lsn(view, table, &count, &error), &error)) {
        count = 0;
    }
    status = stele_view_get(view, table, "k1", 2, &value, &error);
    if (status != STELE_NOT_FOUND) {
        (void)sim_trial_note(trial, "get", status, &error);
    }
    if (!sim_trial_note(
            trial, "cursor",
            stele_cursor_open(view, table, NULL, 0, &cursor, &error), &error)) {
        return;
    }
    count = 0;
    for (status = stele_cursor_last(cursor, &entry, &error); status == STELE_OK;
         count++) {
        status = stele_cursor_prev(cursor, &entry, &error);
    }
    if (status != STELE_NOT_FOUND) {
        whole = sim_trial_note(trial, "cursor", status, &error);
    }
    if (whole && count != counted) {
        sim_trial_problem(trial, "the cursor saw %" PRIu64 " keys of %" PRIu64,
                          count, counted);
    }
    stele_cursor_close(cursor);
}

static void act_read(struct sim_trial *trial)
{
    char name[STELE_TABLE_NAME_BYTES_MAX + 1];
    struct stele_error error;
    struct stele_view *view;
    enum stele_status status;

    if (!sim_trial_note(trial, "view",
                        stele_view_open(trial->store, &view, &error), &error)) {
        return;
    }
    status = stele_table_next(view, NULL, name, &error);
    (void)sim_trial_note(trial, "tables", status, &error);
    for (unsigned table = 0; table < SIM_TABLES; table++) {
        read_table(trial, view, sim_table_name(table));
    }
    stele_view_close(view);
}

static void with_all_layers(struct sim_trial *trial)
{
    with_tail(trial);
    step_checkpoint(trial, 0);
    sim_trial_commit(trial, SIM_SHAPE_RANGES, STELE_DURABLE);
    sim_trial_commit(trial, SIM_SHAPE_PUT, STELE_DURABLE);
}

/* ---- Snapshots ------------------------------------------------------------------------------------------ */

static void act_snapshot(struct sim_trial *trial)
{
    struct stele_error error;
    uint64_t lsn = 0;

    if (!sim_trial_note(trial, "snapshot",
                        stele_snapshot(trial->store, &lsn, &error), &error)) {
        return;
    }
    if (lsn != trial->history.batches[trial->head].lsn ||
        lsn != trial->store->anchor.snapshots[0]) {
        sim_trial_problem(trial, "a snapshot of LSN %" PRIu64, lsn);
    }
    sim_disk_mark(trial->disk, SIM_MARK_SNAPSHOT, lsn);
}

/* More than a segment of log, and a snapshot. */
static void commit_and_snapshot(struct sim_trial *trial)
{
    struct stele_error error;

    sim_trial_commit(trial, SIM_SHAPE_LARGE, STELE_DURABLE);
    sim_trial_commit(trial, SIM_SHAPE_LARGE, STELE_DURABLE);
    (void)sim_trial_must(trial, "snapshot",
                         stele_snapshot(trial->store, NULL, &error), &error);
}

/* The next one lets the log go. */
static void with_snapshot(struct sim_trial *trial)
{
    open_writer(trial);
    commit_and_snapshot(trial);
    sim_trial_commit(trial, SIM_SHAPE_LARGE, STELE_DURABLE);
    sim_trial_commit(trial, SIM_SHAPE_RANGES, STELE_RELAXED);
}

static void with_two_snapshots(struct sim_trial *trial)
{
    open_writer(trial);
    commit_and_snapshot(trial);
    commit_and_snapshot(trial);
    if (atomic_load(&trial->store->stat_segments_removed) == 0) {
        sim_trial_problem(trial, "nothing of the log was let go");
    }
    sim_trial_commit(trial, SIM_SHAPE_RANGES, STELE_DURABLE);
    sim_trial_commit(trial, SIM_SHAPE_PUT, STELE_DURABLE);
}

/* The log's beginning is gone, and so is the index. */
static void with_two_snapshots_alone(struct sim_trial *trial)
{
    struct sim_image *image;

    with_two_snapshots(trial);
    sim_trial_commit(trial, SIM_SHAPE_PUT, STELE_RELAXED);
    sim_trial_kill(trial);
    image = sim_image_copy(sim_disk_cache(trial->disk));
    sim_image_unlink(image, sim_image_walk(image, SIM_STORE_PATH), "index");
    start_from(trial, image);
}

/* Between the two snapshots, while the index has gone past it. */
static void act_past_view(struct sim_trial *trial)
{
    const uint32_t number = trial->head - 3;
    struct stele_error error;
    struct stele_view *view;

    if (!sim_trial_note(trial, "past view",
                        stele_view_open_at(trial->store,
                                           trial->history.batches[number].lsn,
                                           &view, &error),
                        &error)) {
        return;
    }
    for (unsigned table = 0; table < SIM_TABLES; table++) {
        read_table(trial, view, sim_table_name(table));
    }
    stele_view_close(view);
}

/* ---- Backups -------------------------------------------------------------------------------------------- */

static void act_backup(struct sim_trial *trial)
{
    struct stele_backup_report report = {.size = sizeof report};
    struct stele_error error;

    if (!sim_trial_note(trial, "backup",
                        stele_backup(trial->store, SIM_ARCHIVE_PATH, &report,
                                     NULL, NULL, &error),
                        &error)) {
        return;
    }
    if (report.lsn != trial->history.batches[trial->head].lsn) {
        sim_trial_problem(trial, "a backup of LSN %" PRIu64, report.lsn);
    }
    sim_disk_mark(trial->disk, SIM_MARK_BACKUP, report.lsn);
}

/* With a snapshot and a segment that it has not got, and one that has grown. */
static void with_backup(struct sim_trial *trial)
{
    with_two_snapshots(trial);
    act_backup(trial);
    sim_trial_commit(trial, SIM_SHAPE_PUT, STELE_DURABLE);
    commit_and_snapshot(trial);
    sim_trial_commit(trial, SIM_SHAPE_PUT, STELE_DURABLE);
}

static void with_archive(struct sim_trial *trial)
{
    with_backup(trial);
    act_backup(trial);
}

static void act_restore(struct sim_trial *trial)
{
    const uint64_t lsn = trial->history.batches[trial->head].lsn;
    struct stele_options ignored;
    struct store_tuning tuning;
    struct stele_error error;

    if (sim_image_walk(sim_disk_cache(trial->disk), SIM_RESTORED_PATH) != 0) {
        return; /* The name's own durability failed. */
    }
    sim_world_options(&trial->setting, sim_process_io(trial->process),
                      STELE_OPEN_CREATE, &ignored, &tuning);
    sim_disk_mark(trial->disk, SIM_MARK_RESTORE, lsn);
    if (sim_trial_note(trial, "restore",
                       restore_store(SIM_ARCHIVE_PATH, SIM_RESTORED_PATH, NULL,
                                     &tuning, NULL, &error),
                       &error)) {
        sim_disk_mark(trial->disk, SIM_MARK_RESTORED, lsn);
    }
}

/* ---- All of them ------------------------------------------------------------------------------------------ */

const struct sim_scenario sim_scenarios[] = {
    {"create", NULL, act_create, true, false},
    {"create over an unfinished creation", with_half_a_store, act_create, true,
     false},
    {"open after a clean close", NULL, act_open, false, false},
    {"open after a kill", killed_with_tail, act_open, false, false},
    {"open behind a torn tail", killed_with_torn_tail, act_open, false, false},
    {"open in the midst of a checkpoint", killed_in_checkpoint, act_open, false,
     false},
    {"open without an index", without_index, act_open, false, false},
    {"open without an index of much", without_index_of_much, act_open, false,
     false},
    {"open with a foreign index", with_foreign_index, act_open, false, false},
    {"open with an unnamed segment", killed_with_unnamed_segment, act_open,
     false, false},
    {"open with temporaries", with_temporaries, act_open, false, false},
    {"open for reading, nobody writes", killed_with_tail, act_open_reader,
     false, false},
    {"open for reading, torn tail", killed_with_torn_tail, act_open_reader,
     false, false},
    {"open for reading beside a writer", with_writer_ahead, act_open_reader,
     false, false},
    {"a reader catches up", with_reader_behind, act_catch_up, false, false},
    {"a reader outlives its writer", with_reader_alone, act_catch_up, false,
     false},
    {"durable commit", open_writer, act_commit, false, false},
    {"commit with ranges", with_tail, act_commit_ranges, false, false},
    {"commit with expectations", with_tail, act_commit_expecting, false, false},
    {"relaxed commit and sync", open_writer, act_sync, false, false},
    {"group", with_tail, act_group, false, false},
    {"commit that rotates", with_full_segment, act_commit_rotating, false,
     false},
    {"commit behind a torn tail", opened_behind_torn_tail, act_commit, false,
     false},
    {"prepare the next segment", with_full_segment, act_tend, false, false},
    {"commits that checkpoint", with_full_memtable, act_commit_checkpointing,
     false, false},
    {"checkpoint by steps", with_tail, act_step_checkpoint, false, false},
    {"checkpoint", with_all_layers, act_checkpoint, false, false},
    {"idle", with_tail, act_idle, false, false},
    {"close", with_tail, act_close, false, false},
    {"close in the midst of a checkpoint", with_queue, act_close, false, false},
    {"close without a checkpoint", with_tail_to_leave, act_close, false, false},
    {"verify", with_all_layers, act_verify, false, false},
    {"verify by a reader", with_reader_alone, act_verify, false, false},
    {"find a tag", with_all_layers, act_find_tag, false, false},
    {"read", with_all_layers, act_read, false, false},
    {"snapshot", with_all_layers, act_snapshot, false, false},
    {"snapshot that lets the log go", with_snapshot, act_snapshot, false,
     false},
    {"open without an index, from a snapshot", with_two_snapshots_alone,
     act_open, false, false},
    {"open for reading without an index, from a snapshot",
     with_two_snapshots_alone, act_open_reader, false, false},
    {"view of a past LSN", with_two_snapshots, act_past_view, false, false},
    {"backup", with_two_snapshots, act_backup, false, true},
    {"second backup", with_backup, act_backup, false, true},
    {"restore", with_archive, act_restore, false, true},
    {NULL, NULL, NULL, false, false},
};
