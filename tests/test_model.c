/*
 * tests/test_model.c -- a store and a model live the same random life.
 *
 * One run draws operations from a seed: batches of every kind (durable, relaxed,
 * asynchronous, refused, withdrawn), views that are held open meanwhile and
 * compared with the model's state at their LSN, views of the past, checkpoints whole
 * and in pieces, snapshots and what they let go, full disks, and ends of every kind,
 * some of which lose the index; then the reopened store must verify and equal the
 * model. Without keepers the same seed gives the same run, to the
 * operation.
 *
 * From the environment:
 *
 *     STELE_TEST_SEED     what to draw from; random if not given. Printed.
 *     STELE_TEST_OPS      how many operations: 3,000.
 *     STELE_TEST_OPTIONS  "default", or "tiny": everything so small that it
 *                         overflows all the time, and the run fails if it did
 *                         not overflow often enough.
 *     STELE_TEST_KEEPERS  1: with the store's own threads, not in manual mode.
 *
 * A failure prints the operation's number, what differed, and the command that
 * plays it again.
 *
 * Can it fail? It has been seen red with each of these in the engine: the
 * operation's index left out where a point meets a range of its batch, in a
 * lookup or in a checkpoint, on either side; fragments skipped by the checkpoint,
 * or lost or kept at a freeze; the older of two fragments winning; a withdrawn
 * group's versions or LSN kept, or the group published; `base.lsn <
 * base_lsn_min` left out; the cursor skipping to the wrong end of a fragment, or
 * one key too far, or not seeking where it turns; `applied` = c in the first
 * transaction of a checkpoint, or `applying` only in the last; durable commits
 * not synced. Not with `<=` for that `<`: a base value as new as a fragment has
 * its key in the fragment's memtable, so nobody asks. Whoever changes one of
 * those places does well to see it red again.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mutex.h"
#include "engine/checkpoint.h"
#include "engine/commit.h"
#include "engine/state.h"
#include "engine/stele.h"
#include "engine/store.h"
#include "tests/lib/files.h"
#include "tests/lib/io_fault.h"
#include "tests/lib/model.h"
#include "tests/lib/model_ops.h"
#include "tests/lib/model_view.h"
#include "tests/lib/random.h"
#include "tests/lib/temp_dir.h"

enum {
    OPS_DEFAULT = 3000,
    VIEWS_HELD_MAX = 6,
    SUBMISSIONS_MAX = 4,
    ASYNC_BATCH_BYTES_MAX = 100 << 10, /* All of them fit into one group. */
    TAGS_MAX = 16,
};

static const char *program;

/* ---- What a run is made of -------------------------------------------------- */

struct settings {
    uint64_t seed;
    uint64_t ops;
    bool tiny;
    bool keepers;
};

struct counters {
    uint64_t commits;
    uint64_t refused; /* By an expectation. */
    uint64_t withdrawn;
    uint64_t no_segment; /* Refused, as no segment could be made. */
    uint64_t views;
    uint64_t compared; /* Views, whole. */
    uint64_t rotations;
    uint64_t checkpoints;
    uint64_t long_checkpoints; /* Of three transactions or more. */
    uint64_t range_splits;
    uint64_t opens;
    uint64_t opens_amid_checkpoint; /* Found applying > applied. */
    uint64_t snapshots;
    uint64_t removed; /* Segments that they let go. */
    uint64_t rebuilt; /* Indexes that were lost. */
    uint64_t pasts;   /* Views of the past, compared whole. */
};

/* One batch on its way into the store. */
struct submission {
    struct run *run;
    struct stele_batch *batch;
    struct model_op *ops;
    size_t op_count;
    enum stele_durability durability;
    struct stele_commit_result result;
    enum stele_op_outcome outcomes[MODEL_BATCH_OPS_MAX];
    bool tagged;
    uint8_t tag[STELE_TAG_BYTES];
    /* Under the run's mutex while it is asynchronous: */
    bool done;
    enum stele_status status;
    struct stele_error error;
};

struct held_view {
    struct stele_view *view; /* NULL: a free place. */
    struct model_walker walker;
};

struct known_tag {
    uint8_t tag[STELE_TAG_BYTES];
    uint64_t lsn; /* 0: its batch did not happen. */
};

/* A checkpoint that we take ourselves, step by step. */
struct drain {
    struct checkpoint *checkpoint; /* NULL: none under way. */
    struct state *state;           /* Keeps the memtable it reads. */
    uint64_t transactions;
};

struct run {
    struct settings settings;
    struct random_source random;
    struct counters counters;
    uint64_t op;     /* The one under way. */
    uint64_t digest; /* Of all that happened. */
    char *directory;
    struct stele *store;
    bool skip_close_checkpoint;
    struct model *model;
    uint64_t lsn_last;      /* Of the newest batch. */
    bool lsn_is_contiguous; /* This handle has committed already. */
    uint64_t lsn_next_min;
    struct submission submissions[SUBMISSIONS_MAX];
    struct mutex done_mutex;
    struct condition all_done;
    struct held_view held[VIEWS_HELD_MAX];
    struct known_tag tags[TAGS_MAX];
    uint64_t tag_count;
    bool allocation_fails;
    struct drain drain;
    /* Of this handle's statistics, as of the last look: */
    uint64_t seen_checkpoints;
    uint64_t seen_transactions;
};

/* Say what differed and how to see it again. Does not return. */
__attribute__((format(printf, 2, 3))) _Noreturn static void differs(
    const struct run *run, const char *format, ...)
{
    const struct settings *settings = &run->settings;
    char text[MODEL_DIFFERENCE_BYTES + 200];
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    print_error("seed %" PRIu64 ", operation %" PRIu64 " (LSN %" PRIu64
                "): %s\nThe store is left in %s. Again:\n"
                "STELE_TEST_SEED=%" PRIu64 " STELE_TEST_OPS=%" PRIu64
                " STELE_TEST_OPTIONS=%s STELE_TEST_KEEPERS=%d %s\n",
                settings->seed, run->op, run->lsn_last, text, run->directory,
                settings->seed, settings->ops,
                settings->tiny ? "tiny" : "default", settings->keepers ? 1 : 0,
                program);
    fail();
    abort();
}

static void must(const struct run *run, enum stele_status status,
                 const struct stele_error *error, const char *what)
{
    if (status != STELE_OK) {
        differs(run, "%s: %s: %s", what, stele_status_text(status),
                error->message);
    }
}

static void note(struct run *run, uint64_t happened)
{
    struct random_source mixer = {run->digest ^ happened};

    run->digest = random_u64(&mixer);
}

/* ---- Checkpoints, seen from outside ------------------------------------------ */

static void drain_drop(struct run *run)
{
    struct drain *drain = &run->drain;

    if (drain->checkpoint == NULL) {
        return;
    }
    checkpoint_destroy(drain->checkpoint);
    state_release(drain->state);
    *drain = (struct drain){0};
}

static struct stele_stats stats_of(const struct run *run)
{
    struct stele_stats stats = {.size = sizeof stats};
    struct stele_error error;

    must(run, stele_stats(run->store, &stats, &error), &error, "statistics");
    return stats;
}

/* Count the checkpoints that the store took by itself since the last look. Of
 * two or more at a time only what is certain. */
static void notice_checkpoints(struct run *run)
{
    const uint64_t checkpoints = atomic_load(&run->store->stat_checkpoints);
    const uint64_t transactions =
        atomic_load(&run->store->stat_checkpoint_transactions);
    const uint64_t more = checkpoints - run->seen_checkpoints;

    if (more == 0) {
        return;
    }
    run->counters.checkpoints += more;
    if (transactions - run->seen_transactions > 2 * more) {
        run->counters.long_checkpoints++;
    }
    run->seen_checkpoints = checkpoints;
    run->seen_transactions = transactions;
    /* It took the frozen memtable that ours was about. */
    drain_drop(run);
}

static bool is_frozen(struct run *run)
{
    bool frozen;

    mutex_lock(&run->store->keeper_mutex);
    frozen = run->store->frozen;
    mutex_unlock(&run->store->keeper_mutex);
    return frozen;
}

/* Freeze if nothing is frozen; false: there is nothing to freeze. */
static bool freeze(struct run *run)
{
    struct stele_error error;
    bool froze;

    must(run, commit_freeze(run->store, &froze, &error), &error, "freeze");
    return is_frozen(run);
}

/* In manual mode only. */
static void drain_begin(struct run *run)
{
    struct stele_error error;

    run->drain.state = state_acquire(&run->store->publisher);
    must(run, checkpoint_begin(run->store, &run->drain.checkpoint, &error),
         &error, "begin a checkpoint");
}

/* One transaction; true: it was the last. */
static bool drain_advance(struct run *run, uint64_t ops_max)
{
    struct drain *drain = &run->drain;
    struct stele_error error;
    bool done;

    must(run,
         checkpoint_advance(run->store, drain->checkpoint, ops_max, &done,
                            &error),
         &error, "a step of a checkpoint");
    drain->transactions++;
    run->seen_transactions =
        atomic_load(&run->store->stat_checkpoint_transactions);
    if (done) {
        run->seen_checkpoints = atomic_load(&run->store->stat_checkpoints);
        run->counters.checkpoints++;
        run->counters.long_checkpoints += drain->transactions >= 3 ? 1 : 0;
        drain_drop(run);
    }
    return done;
}

static void step_drain(struct run *run)
{
    const bool whole_budget = random_one_in(&run->random, 2);
    const uint64_t ops_max =
        whole_budget ? UINT64_MAX : 1 + random_below(&run->random, 40);

    if (run->drain.checkpoint != NULL) {
        drain_advance(run, ops_max);
    } else if (!freeze(run) || run->settings.keepers) {
        return;
    } else {
        drain_begin(run);
    }
}

static void step_checkpoint(struct run *run)
{
    struct stele_error error;
    struct stele_stats stats;

    must(run, stele_checkpoint(run->store, &error), &error, "checkpoint");
    notice_checkpoints(run);
    stats = stats_of(run);
    if (stats.lsn_applied != run->lsn_last) {
        differs(run, "a checkpoint left the index at LSN %" PRIu64,
                stats.lsn_applied);
    }
}

/* ---- Views --------------------------------------------------------------------- */

/* A view of now. */
static struct stele_view *open_view(struct run *run)
{
    struct stele_view *view;
    struct stele_error error;

    must(run, stele_view_open(run->store, &view, &error), &error,
         "open a view");
    if (stele_view_lsn(view) != run->lsn_last) {
        differs(run, "a new view is at LSN %" PRIu64, stele_view_lsn(view));
    }
    run->counters.views++;
    return view;
}

static void compare_whole(struct run *run, struct stele_view *view)
{
    struct model_difference difference;

    run->counters.compared++;
    if (!model_view_matches(run->model, view, &run->random, &difference)) {
        differs(run, "view at LSN %" PRIu64 ": %s", stele_view_lsn(view),
                difference.text);
    }
}

static void compare_now(struct run *run)
{
    struct stele_view *view = open_view(run);

    compare_whole(run, view);
    stele_view_close(view);
}

static void compare_gets(struct run *run, struct stele_view *view)
{
    struct model_difference difference;

    if (!model_view_gets_match(run->model, view, &run->random, 8,
                               &difference)) {
        differs(run, "view at LSN %" PRIu64 ": %s", stele_view_lsn(view),
                difference.text);
    }
}

static void walk(struct run *run, struct model_walker *walker)
{
    struct model_difference difference;

    if (!model_walker_walk(run->model, walker, &run->random,
                           1 + (unsigned)random_below(&run->random, 40),
                           &difference)) {
        differs(run, "cursor of the view at LSN %" PRIu64 ": %s",
                stele_view_lsn(walker->view), difference.text);
    }
}

static void close_held(struct held_view *held)
{
    model_walker_close(&held->walker);
    stele_view_close(held->view);
    held->view = NULL;
}

static struct held_view *pick_held(struct run *run)
{
    return &run->held[random_below(&run->random, VIEWS_HELD_MAX)];
}

static void step_hold_view(struct run *run)
{
    struct held_view *held = pick_held(run);

    if (held->view == NULL) {
        held->view = open_view(run);
    }
}

static void step_check_view(struct run *run)
{
    struct held_view *held = pick_held(run);
    const uint64_t choice = random_below(&run->random, 10);
    struct stele_error error;

    if (held->view == NULL) {
        return;
    }
    if (choice < 3) {
        compare_whole(run, held->view);
    } else if (choice < 5) {
        compare_gets(run, held->view);
    } else {
        if (held->walker.cursor == NULL) {
            must(run,
                 model_walker_open(&held->walker, held->view, &run->random,
                                   &error),
                 &error, "open a cursor");
        }
        walk(run, &held->walker);
        if (random_one_in(&run->random, 8)) {
            model_walker_close(&held->walker);
        }
    }
}

static void step_drop_view(struct run *run)
{
    struct held_view *held = pick_held(run);

    if (held->view != NULL) {
        if (random_one_in(&run->random, 2)) {
            compare_whole(run, held->view);
        }
        close_held(held);
    }
}

static void step_look_now(struct run *run)
{
    struct stele_view *view = open_view(run);

    if (random_one_in(&run->random, 4)) {
        compare_whole(run, view);
    } else {
        compare_gets(run, view);
    }
    stele_view_close(view);
}

/* ---- Tags ------------------------------------------------------------------------- */

/* `lsn` 0: the batch did not happen. */
static void remember_tag(struct run *run, const struct submission *submission,
                         uint64_t lsn)
{
    struct known_tag *known = &run->tags[run->tag_count++ % TAGS_MAX];

    memcpy(known->tag, submission->tag, sizeof known->tag);
    known->lsn = lsn;
}

/* The oldest LSN that can be looked at: 0 while nothing was removed. */
static uint64_t oldest_lsn(struct run *run)
{
    struct stele_snapshot_info info = {0};
    struct stele_error error;

    if (stats_of(run).segment_first == 1) {
        return 0;
    }
    must(run, stele_snapshot_next(run->store, 0, &info, &error), &error,
         "the oldest snapshot");
    return info.lsn;
}

static void step_find_tag(struct run *run)
{
    const struct known_tag *known =
        &run->tags[random_below(&run->random, TAGS_MAX)];
    const uint64_t froms[] = {0, known->lsn, known->lsn + 1};
    const uint64_t from = froms[random_below(&run->random, 3)];
    struct stele_error error;
    enum stele_status status;
    uint64_t lsn = 0;

    if (run->tag_count < TAGS_MAX) {
        return;
    }
    status = stele_find_tag(run->store, known->tag, from, &lsn, &error);
    if (known->lsn > oldest_lsn(run) && from <= known->lsn
            ? status != STELE_OK || lsn != known->lsn
            : status != STELE_NOT_FOUND) {
        differs(run,
                "tag of LSN %" PRIu64 ", looked for from LSN %" PRIu64
                ": %s, LSN %" PRIu64,
                known->lsn, from, stele_status_text(status), lsn);
    }
}

/* ---- Snapshots and the past --------------------------------------------------------- */

static void step_snapshot(struct run *run)
{
    struct stele_error error;
    uint64_t lsn;

    must(run, stele_snapshot(run->store, &lsn, &error), &error, "snapshot");
    notice_checkpoints(run);
    if (lsn != run->lsn_last) {
        differs(run, "a snapshot is of LSN %" PRIu64, lsn);
    }
    run->counters.snapshots++;
}

/* Of a recent batch, between two, or of any time. */
static uint64_t draw_lsn(struct run *run)
{
    const struct known_tag *known =
        &run->tags[random_below(&run->random, TAGS_MAX)];
    const uint64_t back = random_below(&run->random, 200);

    switch (random_below(&run->random, 4)) {
    case 0:
        return random_below(&run->random, run->lsn_last + 1);
    case 1:
        return run->lsn_last > back ? run->lsn_last - back : 0;
    default:
        return known->lsn;
    }
}

static void step_look_back(struct run *run)
{
    const uint64_t oldest = oldest_lsn(run);
    const uint64_t lsn = draw_lsn(run);
    struct stele_view *view;
    struct stele_error error;
    enum stele_status status;

    /* What is not durable is no past. */
    must(run, stele_sync(run->store, &error), &error, "sync");
    status = stele_view_open_at(run->store, lsn, &view, &error);
    if (status == STELE_NOT_FOUND && lsn < oldest) {
        return;
    }
    must(run, status, &error, "open a view of the past");
    if (lsn < oldest) {
        differs(run, "LSN %" PRIu64 " is older than what is retained", lsn);
    }
    compare_whole(run, view);
    run->counters.pasts++;
    stele_view_close(view);
}

/* ---- Commits ------------------------------------------------------------------------ */

/* A tag of its own for the next commit of this batch. One that has a tag gets
 * another: it cannot lose it. */
static void set_tag(struct run *run, struct submission *submission)
{
    submission->tagged = submission->tagged || random_one_in(&run->random, 3);
    if (submission->tagged) {
        for (size_t done = 0; done < STELE_TAG_BYTES; done += 8) {
            const uint64_t word = random_u64(&run->random);

            memcpy(submission->tag + done, &word, sizeof word);
        }
        stele_batch_set_tag(submission->batch, submission->tag);
    }
}

static void clear(struct submission *submission)
{
    stele_batch_clear(submission->batch);
    submission->tagged = false;
}

/* A new batch; `bytes_max` 0: of whatever size. */
static void draft(struct run *run, struct submission *submission,
                  uint64_t bytes_max)
{
    struct stele_error error;

    do {
        const enum model_batch_kind kind =
            model_random_batch_kind(&run->random);

        submission->op_count =
            model_random_ops(run->model, &run->random, kind, submission->ops);
        clear(submission);
        must(run,
             model_ops_add(submission->ops, submission->op_count,
                           submission->batch, &error),
             &error, "fill a batch");
    } while (stele_batch_bytes(submission->batch) >
             (bytes_max == 0 ? (uint64_t)1000 << 10 : bytes_max));
    set_tag(run, submission);
}

/* A batch that expects something of a key that the batch before, in the same
 * group perhaps, may have written. */
static void draft_behind(struct run *run, struct submission *submission,
                         const struct submission *before)
{
    const struct model_op *written =
        &before->ops[random_below(&run->random, before->op_count)];
    struct stele_error error;

    if (written->kind != MODEL_PUT && written->kind != MODEL_DELETE) {
        return;
    }
    submission->ops[0] = *written;
    submission->ops[0].kind = random_one_in(&run->random, 2)
                                  ? MODEL_EXPECT_PRESENT
                                  : MODEL_EXPECT_ABSENT;
    submission->ops[1] = *written;
    submission->op_count = 2;
    clear(submission);
    must(run,
         model_ops_add(submission->ops, submission->op_count, submission->batch,
                       &error),
         &error, "fill a batch");
    set_tag(run, submission);
}

static void reset(struct run *run, struct submission *submission)
{
    submission->durability =
        random_below(&run->random, 100) < 65 ? STELE_RELAXED : STELE_DURABLE;
    submission->result = (struct stele_commit_result){
        .outcomes =
            random_one_in(&run->random, 2) ? submission->outcomes : NULL,
    };
    submission->done = false;
}

/* Any thread. */
static void on_done(void *context, enum stele_status status,
                    const struct stele_error *error)
{
    struct submission *submission = context;
    struct run *run = submission->run;

    mutex_lock(&run->done_mutex);
    submission->done = true;
    submission->status = status;
    if (status != STELE_OK) {
        submission->error = *error;
    }
    condition_broadcast(&run->all_done);
    mutex_unlock(&run->done_mutex);
}

static void wait_for(struct run *run, const struct submission *submission)
{
    mutex_lock(&run->done_mutex);
    while (!submission->done) {
        condition_wait(&run->all_done, &run->done_mutex);
    }
    mutex_unlock(&run->done_mutex);
}

/* All of them at once, in order, asynchronous but for the last; or that too,
 * with a sync behind. */
static void submit(struct run *run, size_t count)
{
    struct submission *last = &run->submissions[count - 1];
    const bool sync = count > 1 && random_one_in(&run->random, 4);
    struct stele_error error;

    for (size_t index = 0; index < count; index++) {
        struct submission *submission = &run->submissions[index];

        reset(run, submission);
        if (submission != last || sync) {
            must(run,
                 stele_commit_async(run->store, submission->batch,
                                    submission->durability, &submission->result,
                                    on_done, submission, &error),
                 &error, "submit");
        }
    }
    if (sync) {
        must(run, stele_sync(run->store, &error), &error, "sync");
    } else {
        last->status = stele_commit(run->store, last->batch, last->durability,
                                    &last->result, &last->error);
        last->done = true;
    }
    for (size_t index = 0; index < count; index++) {
        wait_for(run, &run->submissions[index]);
    }
}

/* It was acknowledged: so it happened, at this LSN, and did this. */
static void settle_done(struct run *run, struct submission *submission)
{
    enum stele_op_outcome expected[MODEL_BATCH_OPS_MAX];
    const uint64_t lsn = submission->result.lsn;
    const size_t failing =
        model_failing_op(run->model, submission->ops, submission->op_count);

    if (failing < submission->op_count) {
        differs(run, "a batch was applied though its operation %zu fails",
                failing);
    }
    if (run->lsn_is_contiguous ? lsn != run->lsn_last + 1
                               : lsn < run->lsn_next_min) {
        differs(run, "a batch got LSN %" PRIu64 ", expected %s%" PRIu64, lsn,
                run->lsn_is_contiguous ? "" : "at least ",
                run->lsn_is_contiguous ? run->lsn_last + 1 : run->lsn_next_min);
    }
    model_apply(run->model, submission->ops, submission->op_count, lsn,
                expected);
    for (size_t index = 0;
         submission->result.outcomes != NULL && index < submission->op_count;
         index++) {
        if (submission->outcomes[index] != expected[index]) {
            char escaped[MODEL_TEXT_BYTES];
            const struct model_op *op = &submission->ops[index];

            differs(run,
                    "table %s: key %s: operation %zu of %zu: expected outcome "
                    "%d, found %d",
                    model_table_name(op->table),
                    model_escape(op->key.data, op->key.size, escaped), index,
                    submission->op_count, (int)expected[index],
                    (int)submission->outcomes[index]);
        }
    }
    if (submission->durability == STELE_DURABLE &&
        stats_of(run).lsn_durable < lsn) {
        differs(run, "LSN %" PRIu64 " was acknowledged, but is not durable",
                lsn);
    }
    run->lsn_last = lsn;
    run->lsn_is_contiguous = true;
    run->counters.commits++;
    if (submission->tagged) {
        remember_tag(run, submission, lsn);
    }
}

static void settle_refused(struct run *run, const struct submission *submission)
{
    const size_t failing =
        model_failing_op(run->model, submission->ops, submission->op_count);

    if (failing != submission->result.failed_op) {
        differs(run,
                "operation %" PRIu64 " of %zu is said to fail, expected %zu",
                submission->result.failed_op, submission->op_count, failing);
    }
    run->counters.refused++;
    if (submission->tagged) {
        remember_tag(run, submission, 0);
    }
}

/* Compare what was said of each with what the model says. `struck`: the disk
 * was full. */
static void settle(struct run *run, size_t count, bool struck)
{
    for (size_t index = 0; index < count; index++) {
        struct submission *submission = &run->submissions[index];
        const enum stele_status status = submission->status;

        note(run, (uint64_t)status);
        note(run, submission->result.lsn);
        if (status == STELE_OK && !(struck && !run->settings.keepers)) {
            settle_done(run, submission);
        } else if (status == STELE_PRECONDITION) {
            settle_refused(run, submission);
        } else if (status != STELE_NO_SPACE || !struck) {
            differs(run, "commit %zu of %zu%s: %s: %s", index + 1, count,
                    struck ? " on a full disk" : "", stele_status_text(status),
                    status == STELE_OK ? "" : submission->error.message);
        } else if (submission->tagged) {
            remember_tag(run, submission, 0);
        }
    }
}

/* Submit, and settle. True: nothing happened, as the disk was full. */
static bool commit(struct run *run, size_t count)
{
    const uint64_t struck_before = io_fault_count();
    bool struck;

    submit(run, count);
    notice_checkpoints(run);
    struck = io_fault_count() > struck_before;
    settle(run, count, struck);
    return struck;
}

/* The same batches, which a commit leaves whole, whatever came of it. */
static void commit_again(struct run *run, size_t count)
{
    for (size_t index = 0; index < count; index++) {
        set_tag(run, &run->submissions[index]);
    }
    commit(run, count);
}

/* The log's next write finds the disk full. */
static void commit_on_full_disk(struct run *run, size_t count)
{
    static const struct io_fault full = {.call = IO_FAULT_WRITE,
                                         .suffix = ".wal",
                                         .times = 1,
                                         .sys_errno = ENOSPC};
    bool withdrawn;

    io_fault_arm(&full);
    withdrawn = commit(run, count);
    io_fault_arm(NULL);
    if (!withdrawn) {
        return; /* All were refused: there was nothing to write. */
    }
    run->counters.withdrawn++;
    if (random_one_in(&run->random, 4)) {
        compare_now(run);
    }
    if (random_one_in(&run->random, 2)) {
        commit_again(run, count);
    }
}

/* From now on no segment can be made; until somebody needed one. */
static void fail_allocations(struct run *run)
{
    static const struct io_fault full = {.call = IO_FAULT_ALLOCATE,
                                         .suffix = ".tmp",
                                         .times = IO_FAULT_FOREVER,
                                         .sys_errno = ENOSPC};

    io_fault_arm(&full);
    run->allocation_fails = true;
}

static void let_allocations_work(struct run *run)
{
    io_fault_arm(NULL);
    run->allocation_fails = false;
}

static void step_commit(struct run *run)
{
    const size_t count =
        random_one_in(&run->random, 10)
            ? 2 + (size_t)random_below(&run->random, SUBMISSIONS_MAX - 1)
            : 1;

    for (size_t index = 0; index < count; index++) {
        struct submission *submission = &run->submissions[index];

        draft(run, submission, count == 1 ? 0 : ASYNC_BATCH_BYTES_MAX);
        if (index > 0 && random_one_in(&run->random, 3)) {
            draft_behind(run, submission, submission - 1);
        }
    }
    if (run->allocation_fails) {
        if (commit(run, count)) {
            run->counters.no_segment++;
            if (random_one_in(&run->random, 2)) {
                let_allocations_work(run);
            }
        }
    } else if (random_one_in(&run->random, count == 1 ? 250 : 40) &&
               (count == 1 || !run->settings.keepers)) {
        commit_on_full_disk(run, count);
    } else {
        if (random_one_in(&run->random, 500)) {
            fail_allocations(run);
        }
        if (!commit(run, count) && random_one_in(&run->random, 25)) {
            commit_again(run, count);
        }
    }
}

static void step_sync(struct run *run)
{
    struct stele_error error;
    struct stele_stats stats;

    must(run, stele_sync(run->store, &error), &error, "sync");
    stats = stats_of(run);
    if (stats.lsn_durable != run->lsn_last ||
        stats.lsn_visible != run->lsn_last) {
        differs(run, "after a sync LSN %" PRIu64 " is durable",
                stats.lsn_durable);
    }
}

/* ---- The end of a handle, and the next ------------------------------------------------ */

static void on_finding(void *context, const struct stele_error *problem)
{
    (void)context;
    print_error("verify: %s\n", problem->message);
}

static void verify(struct run *run)
{
    struct stele_verify_report report = {.size = sizeof report};
    struct stele_error error;

    must(run, stele_verify(run->store, on_finding, NULL, &report, &error),
         &error, "verify");
    if (report.lsn_last != run->lsn_last) {
        differs(run, "verify: the log ends at LSN %" PRIu64, report.lsn_last);
    }
}

static void open_store(struct run *run)
{
    const struct settings *settings = &run->settings;
    struct stele_options options;
    struct store_tuning tuning;
    struct stele_error error;

    stele_options_init(&options);
    options.mode = STELE_OPEN_CREATE;
    options.segment_bytes = (uint64_t)4 << 20;
    options.commit_wait_ms = 3600000; /* A slow machine is no failure. */
    run->skip_close_checkpoint = random_one_in(&run->random, 2);
    options.skip_close_checkpoint = run->skip_close_checkpoint;
    options.min_expected_lsn = run->lsn_last;
    store_tuning_init(&tuning);
    tuning.io = io_fault_io();
    tuning.manual = !settings->keepers;
    tuning.hash_seed = random_u64(&run->random) | 1;
    if (settings->tiny) {
        options.segment_bytes = (uint64_t)1 << 20;
        options.memtable_bytes = (uint64_t)64 << 10;
        tuning.checkpoint_pages_max = 8;
        tuning.range_fragments_max = 48;
    }
    must(run,
         store_open(run->directory, &options, &tuning, &run->store, &error),
         &error, "open");
    run->lsn_is_contiguous = false;
    run->seen_checkpoints = 0;
    run->seen_transactions = 0;
    run->counters.opens++;
}

/* What this handle counted goes with it. */
static void gather_stats(struct run *run)
{
    const struct stele_stats stats = stats_of(run);

    run->counters.rotations += stats.rotations;
    run->counters.range_splits += stats.range_splits;
    run->counters.removed += stats.segments_removed;
    if (stats.poisoned) {
        differs(run, "the store is poisoned");
    }
    notice_checkpoints(run);
}

/* A few transactions into a checkpoint, if there is anything to put into the
 * index. The LSN it was to end at, or 0. */
static uint64_t stop_amid_checkpoint(struct run *run)
{
    if (run->settings.keepers || !freeze(run)) {
        return 0;
    }
    if (run->drain.checkpoint == NULL) {
        drain_begin(run);
    }
    for (uint64_t steps = 1 + random_below(&run->random, 4); steps > 0;
         steps--) {
        if (drain_advance(run, 1 + random_below(&run->random, 6))) {
            return 0; /* It was nearly done. */
        }
    }
    return run->store->frozen_end.lsn;
}

static void close_store(struct run *run)
{
    struct stele_error error;

    gather_stats(run);
    drain_drop(run);
    must(run, stele_close(run->store, &error), &error, "close");
    run->lsn_next_min = run->lsn_last + 1;
}

static void abandon_store(struct run *run)
{
    gather_stats(run);
    drain_drop(run);
    store_abandon(run->store);
    run->lsn_next_min = run->lsn_last + 1 + STORE_LSN_SKIP;
}

static void drop_all_views(struct run *run)
{
    for (size_t index = 0; index < VIEWS_HELD_MAX; index++) {
        close_held(&run->held[index]);
    }
}

static bool holds_views(const struct run *run)
{
    for (size_t index = 0; index < VIEWS_HELD_MAX; index++) {
        if (run->held[index].view != NULL) {
            return true;
        }
    }
    return false;
}

/* What the next handle must find, whatever the end of the last one. */
static void check_opened(struct run *run, bool checkpointed,
                         uint64_t applying_lsn, bool index_lost)
{
    const struct stele_stats stats = stats_of(run);

    note(run, stats.lsn_applied);
    note(run, stats.lsn_applying);
    run->counters.opens_amid_checkpoint +=
        stats.lsn_applying > stats.lsn_applied ? 1 : 0;
    if (stats.lsn_visible != run->lsn_last || stats.recovery_row != 'A' ||
        stats.recovery_dropped_bytes != 0 ||
        stats.index_rebuilt != index_lost) {
        differs(run,
                "opening found LSN %" PRIu64 ", row %c, dropped %" PRIu64
                " bytes, %s",
                stats.lsn_visible, stats.recovery_row,
                stats.recovery_dropped_bytes,
                stats.index_rebuilt ? "and rebuilt the index"
                                    : "and kept the index");
    }
    if (checkpointed && (stats.lsn_applied != run->lsn_last ||
                         stats.recovery_replayed_records != 0)) {
        differs(run, "close left the index at LSN %" PRIu64, stats.lsn_applied);
    }
    if (applying_lsn != 0 && (stats.lsn_applying != applying_lsn ||
                              stats.lsn_applied >= applying_lsn)) {
        differs(run,
                "the checkpoint up to LSN %" PRIu64
                " was cut short, but the index is at %" PRIu64
                ", on its way to %" PRIu64,
                applying_lsn, stats.lsn_applied, stats.lsn_applying);
    }
    verify(run);
    compare_now(run);
}

static void lose_index(const struct run *run)
{
    char path[FILES_PATH_BYTES];

    files_path(path, run->directory, "index/data.mdb");
    files_remove(path);
}

static void step_reopen(struct run *run)
{
    const uint64_t choice = random_below(&run->random, 100);
    const bool lost = random_one_in(&run->random, 4);
    uint64_t applying_lsn = 0;
    bool checkpointed = false;
    struct stele_error error;

    if (holds_views(run) && stele_close(run->store, &error) != STELE_BUSY) {
        differs(run, "close with views open is not refused");
    }
    drop_all_views(run);
    let_allocations_work(run);
    if (choice < 40) {
        checkpointed = !run->skip_close_checkpoint;
        close_store(run);
    } else {
        if (choice < 80) {
            applying_lsn = stop_amid_checkpoint(run);
        }
        abandon_store(run);
    }
    if (lost) {
        lose_index(run);
        run->counters.rebuilt++;
        applying_lsn = 0;
        checkpointed = false;
    }
    open_store(run);
    check_opened(run, checkpointed, applying_lsn, lost);
}

/* ---- A life --------------------------------------------------------------------------- */

/* One of these, so many times in a thousand. */
static const struct {
    unsigned weight;
    void (*run)(struct run *run);
} steps[] = {
    {710, step_commit},   {90, step_check_view}, {70, step_drain},
    {40, step_hold_view}, {35, step_drop_view},  {20, step_look_now},
    {12, step_sync},      {8, step_checkpoint},  {4, step_reopen},
    {3, step_find_tag},   {4, step_snapshot},    {4, step_look_back},
};

static void step(struct run *run)
{
    uint64_t choice = random_below(&run->random, 1000);
    size_t index = 0;

    while (choice >= steps[index].weight) {
        choice -= steps[index].weight;
        index++;
    }
    steps[index].run(run);
}

static void run_init(struct run *run, const struct settings *settings)
{
    struct stele_error error;

    *run = (struct run){
        .settings = *settings,
        .random = {settings->seed},
        .directory = temp_dir_make(),
        .model = model_create(),
        .lsn_next_min = 1,
    };
    mutex_init(&run->done_mutex);
    condition_init(&run->all_done);
    for (size_t index = 0; index < SUBMISSIONS_MAX; index++) {
        struct submission *submission = &run->submissions[index];

        submission->run = run;
        submission->ops = calloc(MODEL_BATCH_OPS_MAX, sizeof *submission->ops);
        assert_non_null(submission->ops);
        must(run, stele_batch_create(&submission->batch, &error), &error,
             "create a batch");
    }
}

static void run_deinit(struct run *run)
{
    for (size_t index = 0; index < SUBMISSIONS_MAX; index++) {
        stele_batch_destroy(run->submissions[index].batch);
        free(run->submissions[index].ops);
    }
    condition_deinit(&run->all_done);
    mutex_deinit(&run->done_mutex);
    model_destroy(run->model);
    temp_dir_remove(run->directory);
}

static void print_counters(const struct run *run)
{
    const struct counters *counters = &run->counters;

    print_message("%" PRIu64 " commits, %" PRIu64 " refused, %" PRIu64
                  " groups withdrawn, %" PRIu64 " without a segment\n",
                  counters->commits, counters->refused, counters->withdrawn,
                  counters->no_segment);
    print_message("%" PRIu64 " views, %" PRIu64 " compared whole; %" PRIu64
                  " range fragments split; %" PRIu64 " rotations\n",
                  counters->views, counters->compared, counters->range_splits,
                  counters->rotations);
    print_message("%" PRIu64 " checkpoints, %" PRIu64
                  " of 3 transactions or more; %" PRIu64 " opens, %" PRIu64
                  " with applying > applied\n",
                  counters->checkpoints, counters->long_checkpoints,
                  counters->opens, counters->opens_amid_checkpoint);
    print_message("%" PRIu64 " snapshots, %" PRIu64
                  " segments removed; %" PRIu64 " indexes lost; %" PRIu64
                  " views of the past\n",
                  counters->snapshots, counters->removed, counters->rebuilt,
                  counters->pasts);
    print_message("digest %016" PRIx64 "\n", run->digest);
}

/* So many in 100,000 operations. */
static void at_least(const struct run *run, const char *what, uint64_t count,
                     uint64_t count_min)
{
    const uint64_t scaled = count_min * run->settings.ops / 100000;

    if (count < scaled) {
        differs(run, "only %" PRIu64 " %s, at least %" PRIu64 " expected",
                count, what, scaled);
    }
}

static void check_counters(const struct run *run)
{
    const struct counters *counters = &run->counters;

    at_least(run, "rotations", counters->rotations, 100);
    at_least(run, "checkpoints of 3 transactions or more",
             counters->long_checkpoints, 100);
    at_least(run, "opens with applying > applied",
             counters->opens_amid_checkpoint, 20);
    at_least(run, "snapshots", counters->snapshots, 200);
    at_least(run, "segments removed", counters->removed, 100);
    at_least(run, "indexes lost", counters->rebuilt, 40);
    at_least(run, "views of the past", counters->pasts, 60);
    at_least(run, "groups withdrawn", counters->withdrawn, 50);
    at_least(run, "range fragments split", counters->range_splits, 1000);
}

static void live(const struct settings *settings)
{
    static struct run run;

    print_message("STELE_TEST_SEED=%" PRIu64 " STELE_TEST_OPS=%" PRIu64
                  " STELE_TEST_OPTIONS=%s STELE_TEST_KEEPERS=%d\n",
                  settings->seed, settings->ops,
                  settings->tiny ? "tiny" : "default",
                  settings->keepers ? 1 : 0);
    run_init(&run, settings);
    open_store(&run);
    for (run.op = 1; run.op <= settings->ops; run.op++) {
        step(&run);
    }
    drop_all_views(&run);
    let_allocations_work(&run);
    close_store(&run);
    open_store(&run);
    check_opened(&run, false, 0, false);
    close_store(&run);
    print_counters(&run);
    if (settings->tiny && !settings->keepers) {
        check_counters(&run);
    }
    run_deinit(&run);
}

/* ---- Tests ------------------------------------------------------------------------------ */

static struct settings settings_from_environment(void)
{
    const char *seed = getenv("STELE_TEST_SEED");
    const char *ops = getenv("STELE_TEST_OPS");
    const char *options = getenv("STELE_TEST_OPTIONS");
    const char *keepers = getenv("STELE_TEST_KEEPERS");

    return (struct settings){
        .seed = seed == NULL ? random_seed() : strtoull(seed, NULL, 0),
        .ops = ops == NULL ? OPS_DEFAULT : strtoull(ops, NULL, 0),
        .tiny = options != NULL && strcmp(options, "tiny") == 0,
        .keepers = keepers != NULL && strcmp(keepers, "1") == 0,
    };
}

static void a_store_does_what_the_model_does(void **state)
{
    const struct settings settings = settings_from_environment();

    (void)state;
    live(&settings);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_store_does_what_the_model_does),
    };

    (void)argc;
    program = argv[0];
    return cmocka_run_group_tests(tests, NULL, NULL);
}
