/* tests/sim/trial.c -- see tests/sim/trial.h. */
#include "tests/sim/trial.h"

#include <assert.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/sim/cut.h"
#include "tests/sim/oracle.h"

enum {
    SEGMENT_BYTES = 32 << 10, /* A header and seven pages. */
    MEMTABLE_BYTES = 64 << 10,
    SEED = 1,
    TRIAL_SEED = 2, /* Another uuid than that of the store. */
    LARGE_VALUE_BYTES = 3500,
    SMALL_VALUE_BYTES = 16,
};

/* ---- Noting ------------------------------------------------------------------ */

void sim_trial_problem(struct sim_trial *trial, const char *format, ...)
{
    va_list args;

    if (trial->problem[0] != '\0') {
        return;
    }
    va_start(args, format);
    vsnprintf(trial->problem, sizeof trial->problem, format, args);
    va_end(args);
}

bool sim_trial_note(struct sim_trial *trial, const char *what,
                    enum stele_status status, const struct stele_error *error)
{
    if (status == STELE_OK) {
        return true;
    }
    if (trial->failure_count == SIM_FAILURES_MAX) {
        sim_trial_problem(trial, "too many failures, the last: %s: %s", what,
                          error->message);
        return false;
    }
    trial->failures[trial->failure_count++] =
        (struct sim_failure){.what = what, .status = status, .error = *error};
    return false;
}

bool sim_trial_must(struct sim_trial *trial, const char *what,
                    enum stele_status status, const struct stele_error *error)
{
    if (status != STELE_OK) {
        sim_trial_problem(trial, "nothing fails any more, but %s: %s", what,
                          error->message);
    }
    return status == STELE_OK;
}

void sim_trial_mark(struct sim_trial *trial, enum sim_mark mark,
                    uint32_t number)
{
    sim_disk_mark(trial->disk, mark, number);
}

/* ---- Batches ------------------------------------------------------------------- */

static struct sim_batch_op put(struct sim_trial *trial, unsigned table,
                               unsigned key, uint32_t value_bytes,
                               uint32_t number)
{
    uint8_t *value = sim_history_allocate(&trial->history, value_bytes);

    memset(value, 'a' + (int)(number % 26), value_bytes);
    return (struct sim_batch_op){.change = SIM_PUT,
                                 .table = (uint8_t)table,
                                 .key = (uint8_t)key,
                                 .value_bytes = value_bytes,
                                 .value = value};
}

uint32_t sim_trial_batch(struct sim_trial *trial, uint32_t previous,
                         enum sim_shape shape)
{
    const uint32_t number = sim_history_add(&trial->history, previous, SEED);
    struct sim_batch *batch = &trial->history.batches[number];

    batch->op_count = 0;
    switch (shape) {
    case SIM_SHAPE_PUT:
        batch->ops[batch->op_count++] =
            put(trial, 0, number % SIM_KEYS, SMALL_VALUE_BYTES, number);
        break;
    case SIM_SHAPE_LARGE:
        for (unsigned key = 0; key < 5; key++) {
            batch->ops[batch->op_count++] =
                put(trial, 1, key, LARGE_VALUE_BYTES, number);
        }
        break;
    case SIM_SHAPE_RANGES:
        batch->ops[batch->op_count++] =
            (struct sim_batch_op){.change = SIM_CLEAR, .table = 1};
        batch->ops[batch->op_count++] = put(trial, 1, 2, 5, number);
        batch->ops[batch->op_count++] = (struct sim_batch_op){
            .change = SIM_DELETE_RANGE, .key = 2, .key_end = 5};
        batch->ops[batch->op_count++] = put(trial, 0, 3, 0, number);
        batch->ops[batch->op_count++] = (struct sim_batch_op){
            .change = SIM_DELETE, .table = 0, .key = 6, .key_end = 7};
        break;
    case SIM_SHAPE_EXPECTS: {
        const struct sim_contents *before =
            &trial->history.batches[previous].after;

        for (unsigned key = 0; key < 3; key++) {
            batch->ops[batch->op_count++] = (struct sim_batch_op){
                .change = before->cells[key].batch != 0 ? SIM_EXPECT_PRESENT
                                                        : SIM_EXPECT_ABSENT,
                .key = (uint8_t)key};
        }
        batch->ops[batch->op_count++] =
            put(trial, 0, 1, SMALL_VALUE_BYTES, number);
        break;
    }
    }
    sim_history_settle(&trial->history, number);
    assert(!batch->refused);
    return number;
}

bool sim_commit_begin(struct sim_trial *trial, struct sim_commit *commit)
{
    enum stele_status status;

    commit->answered = false;
    commit->result = (struct stele_commit_result){.outcomes = commit->outcomes};
    sim_trial_mark(trial, SIM_MARK_ISSUE, commit->number);
    status = stele_batch_create(&commit->batch, &commit->error);
    if (status == STELE_OK) {
        status = sim_history_fill(&trial->history, commit->number,
                                  commit->batch, &commit->error);
        if (status != STELE_OK) {
            stele_batch_destroy(commit->batch);
        }
    }
    if (!sim_trial_note(trial, "batch", status, &commit->error)) {
        commit->batch = NULL;
        sim_trial_mark(trial, SIM_MARK_REFUSED, commit->number);
        return false;
    }
    return true;
}

void sim_commit_end(struct sim_trial *trial, struct sim_commit *commit)
{
    stele_batch_destroy(commit->batch);
    commit->batch = NULL;
    if (sim_trial_note(trial, "commit", commit->status, &commit->error)) {
        trial->history.batches[commit->number].lsn = commit->result.lsn;
        trial->head = commit->number;
        if (commit->durability == STELE_DURABLE) {
            trial->durable = commit->number;
            sim_trial_mark(trial, SIM_MARK_ACK, commit->number);
        } else {
            sim_trial_mark(trial, SIM_MARK_RELAXED, commit->number);
        }
    } else if (commit->status == STELE_UNKNOWN) {
        trial->unknown = true;
    } else {
        sim_trial_mark(trial, SIM_MARK_REFUSED, commit->number);
    }
}

void sim_trial_commit(struct sim_trial *trial, enum sim_shape shape,
                      enum stele_durability durability)
{
    struct sim_commit commit = {
        .number = sim_trial_batch(trial, trial->head, shape),
        .durability = durability,
    };

    if (sim_commit_begin(trial, &commit)) {
        commit.status = stele_commit(trial->store, commit.batch, durability,
                                     &commit.result, &commit.error);
        sim_commit_end(trial, &commit);
    }
}

/* ---- Handles ---------------------------------------------------------------------- */

enum stele_status sim_trial_open(struct sim_trial *trial,
                                 enum stele_open_mode mode,
                                 struct stele_error *error)
{
    struct stele_options options;
    struct store_tuning tuning;

    if (trial->process == NULL) {
        trial->process = sim_process_start(trial->disk);
    }
    sim_world_options(&trial->setting, sim_process_io(trial->process), mode,
                      &options, &tuning);
    return store_open(SIM_STORE_PATH, &options, &tuning, &trial->store, error);
}

enum stele_status sim_trial_open_reader(struct sim_trial *trial,
                                        struct stele_error *error)
{
    struct stele_options options;
    struct store_tuning tuning;

    if (trial->reader_process == NULL) {
        trial->reader_process = sim_process_start(trial->disk);
    }
    sim_world_options(&trial->setting, sim_process_io(trial->reader_process),
                      STELE_OPEN_READ_ONLY, &options, &tuning);
    return store_open(SIM_STORE_PATH, &options, &tuning, &trial->reader, error);
}

/* Nothing of a handle that is gone may be left. */
static void check_descriptors(struct sim_trial *trial,
                              const struct sim_process *process,
                              const char *when)
{
    if (process != NULL && sim_process_open_count(process) > 0) {
        sim_trial_problem(trial, "%s: %" PRIu32 " descriptors left open", when,
                          sim_process_open_count(process));
    }
}

static void end_process(struct sim_trial *trial, struct sim_process **process,
                        struct stele **store)
{
    if (*store != NULL) {
        store_abandon(*store);
        *store = NULL;
    }
    check_descriptors(trial, *process, "killed");
    if (*process != NULL) {
        sim_process_end(*process);
        *process = NULL;
    }
}

void sim_trial_kill(struct sim_trial *trial)
{
    end_process(trial, &trial->process, &trial->store);
}

uint32_t sim_trial_look(struct sim_trial *trial, struct stele *store,
                        const char *who)
{
    char text[SIM_PROBLEM_BYTES / 2];
    struct stele_error error;
    struct stele_view *view;
    uint32_t number;

    if (!sim_trial_must(trial, who, stele_view_open(store, &view, &error),
                        &error)) {
        return UINT32_MAX;
    }
    number = sim_world_state_of(&trial->history, store, stele_view_lsn(view),
                                trial->history.count, text, sizeof text);
    if (number == UINT32_MAX) {
        sim_trial_problem(trial, "%s: %s", who, text);
    } else if (!sim_history_matches(&trial->history, number, view, text,
                                    sizeof text)) {
        sim_trial_problem(trial, "%s: in the state after batch %" PRIu32 ", %s",
                          who, number, text);
    }
    stele_view_close(view);
    return number;
}

/* ---- The base ---------------------------------------------------------------------- */

bool sim_base_make(struct sim_base *base, const struct sim_scenario *scenario,
                   enum io_fs_kind fs_kind, char problem[SIM_PROBLEM_BYTES])
{
    struct sim_trial trial = {.setting = {.segment_bytes = SEGMENT_BYTES,
                                          .memtable_bytes = MEMTABLE_BYTES,
                                          .fs_kind = fs_kind}};
    struct stele_error error;

    sim_history_init(&trial.history);
    trial.disk = sim_disk_create(sim_world_first_image(), SEED);
    sim_disk_set_fs_kind(trial.disk, fs_kind);
    if (!scenario->from_nothing &&
        sim_trial_must(&trial, "open",
                       sim_trial_open(&trial, STELE_OPEN_CREATE, &error),
                       &error)) {
        sim_trial_commit(&trial, SIM_SHAPE_PUT, STELE_DURABLE);
        sim_trial_commit(&trial, SIM_SHAPE_RANGES, STELE_DURABLE);
        (void)sim_trial_must(&trial, "checkpoint",
                             stele_checkpoint(trial.store, &error), &error);
        sim_trial_commit(&trial, SIM_SHAPE_EXPECTS, STELE_DURABLE);
        (void)sim_trial_must(&trial, "close", stele_close(trial.store, &error),
                             &error);
        trial.store = NULL;
    }
    if (trial.failure_count > 0) {
        sim_trial_problem(&trial, "%s: %s", trial.failures[0].what,
                          trial.failures[0].error.message);
    }
    sim_trial_kill(&trial);
    *base = (struct sim_base){
        .setting = trial.setting,
        .history = trial.history,
        .image = sim_image_copy(sim_disk_cache(trial.disk)),
        .head = trial.head,
    };
    sim_disk_free(trial.disk);
    snprintf(problem, SIM_PROBLEM_BYTES, "%s", trial.problem);
    return problem[0] == '\0';
}

void sim_base_free(struct sim_base *base)
{
    sim_history_deinit(&base->history);
    sim_image_free(base->image);
}

/* ---- The trial ---------------------------------------------------------------------- */

void sim_trial_begin(struct sim_trial *trial, struct sim_base *base,
                     const struct sim_scenario *scenario)
{
    *trial = (struct sim_trial){
        .setting = base->setting,
        .scenario = scenario,
        .history = base->history,
        .disk = sim_disk_create(sim_image_copy(base->image), TRIAL_SEED),
        .head = base->head,
        .durable = base->head,
        .created = !scenario->from_nothing,
    };
    sim_disk_set_fs_kind(trial->disk, trial->setting.fs_kind);
    if (scenario->ready != NULL) {
        scenario->ready(trial);
    }
    if (trial->process == NULL) {
        trial->process = sim_process_start(trial->disk);
    }
    if (trial->failure_count > 0) {
        sim_trial_problem(trial, "before anything failed: %s: %s",
                          trial->failures[0].what,
                          trial->failures[0].error.message);
    }
}

void sim_trial_act(struct sim_trial *trial)
{
    trial->scenario->act(trial);
}

/* What the disk would be after a kill, or a power cut, by the oracle. */
static void examine(struct sim_trial *trial, struct sim_base *base,
                    enum sim_model model, enum sim_choice_kind kind)
{
    struct sim_choice choice = {.kind = kind,
                                .random = {.state = SEED},
                                .grain_bytes = SIM_SECTOR_BYTES};
    const struct sim_start start = {
        .head = base->head,
        .created = !trial->scenario->from_nothing,
        .lsn_high = base->history.batches[base->head].lsn,
    };
    struct sim_knowledge knowledge;
    struct sim_verdict verdict;
    size_t op_count;
    const struct sim_op *ops = sim_disk_ops(trial->disk, &op_count);
    const struct sim_op *op;
    bool *refused = sim_allocate((trial->history.count + 1) * sizeof *refused);
    struct sim_cutter *cutter =
        sim_cutter_create(sim_disk_start(trial->disk), ops, op_count, model);
    const struct sim_examination examination = {
        .setting = &trial->setting,
        .history = &trial->history,
        .knowledge = &knowledge,
        .refused = refused,
        .model = model,
        .deep = true,
        .archive = true,
        .seed = SEED,
    };
    struct sim_image *image;

    sim_knowledge_init(&knowledge, &trial->history, &start, refused);
    while ((op = sim_cutter_step(cutter)) != NULL) {
        sim_knowledge_pass(&knowledge, &trial->history, op, refused);
    }
    image = sim_cutter_crash(cutter, &choice);
    sim_examine(&examination, image, &verdict);
    if (!verdict.good) {
        sim_trial_problem(trial, "cut (model %s): %s", sim_model_name(model),
                          verdict.problem);
    }
    sim_image_free(image);
    sim_cutter_free(cutter);
    free(refused);
}

/* Whether a sync failed, and what it had to write may never arrive. */
static bool sync_was_lost(const struct sim_trial *trial)
{
    size_t count;
    const struct sim_op *ops = sim_disk_ops(trial->disk, &count);

    for (size_t index = 0; index < count; index++) {
        if (ops[index].kind == SIM_OP_SYNC_LOST) {
            return true;
        }
    }
    return false;
}

/* A state that an open may find. */
static bool may_be_found(const struct sim_trial *trial, uint32_t number)
{
    if (number == trial->head) {
        return true;
    }
    if (trial->unknown &&
        sim_history_descends(&trial->history, number, trial->head)) {
        return true;
    }
    return sync_was_lost(trial) &&
           sim_history_descends(&trial->history, number, trial->durable);
}

static void found_by_open(struct sim_trial *trial, uint32_t number)
{
    trial->head = number;
    trial->durable = number;
    trial->unknown = false;
    sim_trial_mark(trial, SIM_MARK_OPENED, number);
}

/* What the act's handle shows, now that nothing fails. */
static void settle(struct sim_trial *trial)
{
    uint32_t found;

    if (trial->store != NULL) {
        found = sim_trial_look(trial, trial->store, "the handle");
        if (found != UINT32_MAX && found != trial->head &&
            !(trial->opened && may_be_found(trial, found))) {
            sim_trial_problem(trial,
                              "the handle shows the state after batch %" PRIu32
                              ", not %" PRIu32,
                              found, trial->head);
        }
        if (trial->opened && found != UINT32_MAX) {
            found_by_open(trial, found);
        }
    }
    if (trial->reader != NULL) {
        found = sim_trial_look(trial, trial->reader, "the reader");
        if (found == UINT32_MAX) {
            return;
        }
        /* What it could not prove durable it does not show, and says so. */
        if (!may_be_found(trial, found) &&
            !(trial->reader->follow.unproven &&
              sim_history_descends(&trial->history, found, trial->durable))) {
            sim_trial_problem(trial,
                              "the reader shows the state after batch %" PRIu32
                              ", not %" PRIu32,
                              found, trial->head);
        }
        sim_trial_mark(trial, SIM_MARK_EXPOSED, found);
    }
}

/* Another process looks, beside the handle: it shows all that was acknowledged
 * (unless there was no writing the hint), and what it shows must survive. */
static void look_from_beside(struct sim_trial *trial)
{
    const struct wal_position durable =
        wal_writer_durable(trial->store->writer);
    struct stele_error error;
    uint32_t found;

    if (!sim_trial_must(trial, "opening for reading beside it",
                        sim_trial_open_reader(trial, &error), &error)) {
        return;
    }
    found = sim_trial_look(trial, trial->reader, "a reader beside it");
    if (found != UINT32_MAX) {
        if (trial->store->hint_unit == durable.unit &&
            !sim_history_descends(&trial->history, found, trial->durable)) {
            sim_trial_problem(trial,
                              "a reader beside it shows the state after batch "
                              "%" PRIu32 ", but %" PRIu32 " is acknowledged",
                              found, trial->durable);
        }
        sim_trial_mark(trial, SIM_MARK_EXPOSED, found);
    }
    (void)sim_trial_must(trial, "closing the reader beside it",
                         stele_close(trial->reader, &error), &error);
    trial->reader = NULL;
}

/* The handle goes on by itself, unless it said that it would not. */
static void go_on(struct sim_trial *trial)
{
    const size_t failures_before = trial->failure_count;
    const uint32_t head_before = trial->head;
    struct stele_error error;
    const bool poisoned =
        store_check_writable(trial->store, &error) != STELE_OK;
    const struct sim_failure *failure;

    sim_trial_commit(trial, SIM_SHAPE_RANGES, STELE_DURABLE);
    failure = trial->failure_count > failures_before
                  ? &trial->failures[trial->failure_count - 1]
                  : NULL;
    trial->failure_count = failures_before;
    if (poisoned && (failure == NULL || failure->status != STELE_POISONED)) {
        sim_trial_problem(trial, "a poisoned handle's next commit: %s",
                          failure == NULL ? "OK" : failure->error.message);
    }
    /* An index that failed takes no more checkpoints until the next open; there
     * may be no room without. */
    if (!poisoned && failure != NULL && !trial->store->index_dead) {
        sim_trial_problem(trial,
                          "nothing fails any more, but the next commit: %s",
                          failure->error.message);
    }
    if (poisoned && trial->head != head_before) {
        sim_trial_problem(trial, "a poisoned handle has changed its state");
    }
    if (sim_trial_look(trial, trial->store, "the handle, later") !=
        trial->head) {
        sim_trial_problem(trial,
                          "the handle, later: not the state of batch "
                          "%" PRIu32,
                          trial->head);
    }
}

static void close_handles(struct sim_trial *trial)
{
    struct stele_error error;

    if (trial->reader != NULL) {
        (void)sim_trial_must(trial, "closing the reader",
                             stele_close(trial->reader, &error), &error);
        trial->reader = NULL;
    }
    if (trial->store != NULL) {
        const bool excused =
            store_check_writable(trial->store, &error) != STELE_OK ||
            trial->store->index_dead;
        const enum stele_status status = stele_close(trial->store, &error);

        trial->store = NULL;
        if (!excused) {
            (void)sim_trial_must(trial, "close", status, &error);
        }
        if (status == STELE_OK && excused) {
            sim_trial_problem(trial, "a handle that cannot write was closed "
                                     "as if it had");
        }
    }
    check_descriptors(trial, trial->process, "closed");
    check_descriptors(trial, trial->reader_process, "the reader is closed");
}

/* The same process again: no lock, no claim is left. */
static void reopen(struct sim_trial *trial)
{
    struct stele_error error;
    uint32_t found;

    if (!sim_trial_must(trial, "opening again",
                        sim_trial_open(trial,
                                       trial->created ? STELE_OPEN_EXISTING
                                                      : STELE_OPEN_CREATE,
                                       &error),
                        &error)) {
        return;
    }
    if (trial->closed_clean &&
        (trial->store->replayed_records > 0 || trial->store->index_rebuilt ||
         trial->store->recovery.row != WAL_ROW_A)) {
        sim_trial_problem(trial, "close said OK, but the next open had to "
                                 "recover");
    }
    found = sim_trial_look(trial, trial->store, "opened again");
    if (found == UINT32_MAX) {
        return;
    }
    if (!may_be_found(trial, found)) {
        sim_trial_problem(trial,
                          "opened again: the state after batch %" PRIu32
                          ", not %" PRIu32,
                          found, trial->head);
        return;
    }
    found_by_open(trial, found);
    go_on(trial);
    close_handles(trial);
}

/* Over whatever the failure has left. */
static void act_again(struct sim_trial *trial, struct sim_base *base)
{
    trial->scenario->act(trial);
    if (trial->failure_count > 0) {
        sim_trial_problem(trial, "nothing fails any more, but %s: %s",
                          trial->failures[0].what,
                          trial->failures[0].error.message);
    }
    if (trial->problem[0] == '\0' && !trial->unexamined) {
        examine(trial, base, SIM_MODEL_ANY_ORDER, SIM_CHOOSE_OLDEST);
    }
}

void sim_trial_go_on(struct sim_trial *trial, struct sim_base *base)
{
    if (trial->opened && trial->store != NULL) {
        trial->created = true;
    }
    settle(trial);
    if (trial->store != NULL && trial->reader == NULL) {
        look_from_beside(trial);
    }
    if (trial->problem[0] == '\0' && !trial->unexamined) {
        examine(trial, base, SIM_MODEL_KILL, SIM_CHOOSE_NEWEST);
        examine(trial, base, SIM_MODEL_ANY_ORDER, SIM_CHOOSE_OLDEST);
    }
    if (trial->scenario->beside && trial->problem[0] == '\0') {
        act_again(trial, base);
    }
    if (trial->store != NULL && trial->problem[0] == '\0') {
        go_on(trial);
    }
    close_handles(trial);
}

/* The reader's process, too: it has no claim on the directory left. */
static void reopen_reader(struct sim_trial *trial)
{
    struct stele_error error;

    if (trial->reader_process == NULL || !trial->created) {
        return;
    }
    if (sim_trial_must(trial, "opening for reading again",
                       sim_trial_open_reader(trial, &error), &error)) {
        settle(trial);
        close_handles(trial);
    }
}

void sim_trial_end(struct sim_trial *trial, struct sim_base *base)
{
    if (trial->problem[0] == '\0') {
        reopen_reader(trial);
    }
    if (trial->problem[0] == '\0') {
        reopen(trial);
    }
    end_process(trial, &trial->reader_process, &trial->reader);
    sim_trial_kill(trial);
    sim_disk_free(trial->disk);
    /* What the history has grown by goes; the arena stays. */
    base->history = trial->history;
    sim_history_truncate(&base->history, base->head + 1);
}
