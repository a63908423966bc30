/* tests/sim/explore.c -- see tests/sim/explore.h. */
#include "tests/sim/explore.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/sim/damage.h"
#include "tests/sim/oracle.h"
#include "tests/sim/world.h"

enum {
    SEGMENT_BYTES = 32 << 10,
    MEMTABLE_BYTES = 64 << 10,
    FRAGMENTS_FEW = 3,
    RETAIN_MS_MAX = 300,
    DEEP_ONE_IN = 16,
    ARCHIVE_ONE_IN = 8,
    NEST_ONE_IN = 24,
    DAMAGE_ONE_IN = 12,
    DAMAGES = 4, /* Of one disk. */
    OPS_SHOWN_BEFORE = 24,
    OPS_SHOWN_AFTER = 3,
    SHRINK_TRIES_MAX = 3, /* With parts of one size. */
};

void sim_plan_init(struct sim_plan *plan, uint64_t seed)
{
    /* The laxer the file system, the more there is to find. */
    static const enum sim_model models[] = {
        SIM_MODEL_KILL,      SIM_MODEL_ORDERED,   SIM_MODEL_ORDERED,
        SIM_MODEL_OWN_NAME,  SIM_MODEL_OWN_NAME,  SIM_MODEL_ANY_ORDER,
        SIM_MODEL_ANY_ORDER, SIM_MODEL_ANY_ORDER,
    };
    struct random_source random = {.state = seed ^ 0x5bd1e995};

    *plan = (struct sim_plan){
        .seed = seed,
        .model = models[random_below(&random, sizeof models / sizeof *models)],
        .faults = random_one_in(&random, 2),
        .damage = random_one_in(&random, 3),
        .copy_on_write = random_one_in(&random, 6),
        .memtable_small = random_one_in(&random, 2),
        .steps = 12 + (uint32_t)random_below(&random, SIM_STEPS_MAX - 12),
        .states_max = 300,
    };
    plan->snapshots = seed % 3 == 0;
}

/* One exploration. */
struct exploration {
    const struct sim_plan *plan;
    struct sim_tally *tally;
    struct sim_violation *violation;
    struct sim_setting setting;
    struct sim_history history;
};

/* A life: where it starts, and what became of it. */
struct life {
    struct exploration *exploration;
    uint32_t depth;
    struct sim_world world;
    struct sim_step steps[SIM_STEPS_MAX];
    size_t step_count;
    enum sim_step_kind step_kind; /* Of the one that is cut; KINDS: none. */
    struct sim_knowledge knowledge;
    bool *refused; /* By number. */
    struct random_source random;
};

/* ---- Violations ---------------------------------------------------------------------- */

__attribute__((format(printf, 3, 4))) static void append(char *target,
                                                         size_t bytes,
                                                         const char *format,
                                                         ...)
{
    const size_t used = strlen(target);
    va_list args;

    va_start(args, format);
    vsnprintf(target + used, bytes - used, format, args);
    va_end(args);
}

static void append_mark(char *text, const struct life *life,
                        const struct sim_op *op)
{
    static const char *const words[] = {
        [SIM_MARK_ISSUE] = "issue",        [SIM_MARK_ACK] = "ack",
        [SIM_MARK_RELAXED] = "relaxed",    [SIM_MARK_REFUSED] = "refused",
        [SIM_MARK_EXPOSED] = "exposed",    [SIM_MARK_OPENED] = "opened",
        [SIM_MARK_NAMED] = "ANCHOR names",
    };
    const struct sim_history *history = &life->exploration->history;
    char described[200] = "";

    if (op->mark == SIM_MARK_STEP) {
        append(text, SIM_VIOLATION_BYTES, "== step %" PRIu64 ": %s\n",
               op->value, sim_step_name(life->steps[op->value].kind));
        return;
    }
    if (op->mark == SIM_MARK_ANCHOR) {
        append(text, SIM_VIOLATION_BYTES,
               "-- ANCHOR is durable with sequence %" PRIu64 "\n", op->value);
        return;
    }
    if (op->mark == SIM_MARK_INDEX_ROT) {
        append(text, SIM_VIOLATION_BYTES, "-- the index is damaged\n");
        return;
    }
    if (op->mark == SIM_MARK_SNAPSHOT || op->mark == SIM_MARK_ROT) {
        append(text, SIM_VIOLATION_BYTES, "-- snapshot of LSN %" PRIu64 " %s\n",
               op->value, op->mark == SIM_MARK_ROT ? "is damaged" : "is named");
        return;
    }
    if (op->mark == SIM_MARK_BACKUP || op->mark == SIM_MARK_RESTORE ||
        op->mark == SIM_MARK_RESTORED) {
        append(text, SIM_VIOLATION_BYTES, "-- LSN %" PRIu64 " %s\n", op->value,
               op->mark == SIM_MARK_BACKUP    ? "is in the archive"
               : op->mark == SIM_MARK_RESTORE ? "is being restored"
                                              : "is restored");
        return;
    }
    if (op->mark == SIM_MARK_ISSUE && op->value < history->count) {
        sim_history_describe(history, (uint32_t)op->value, described,
                             sizeof described);
    }
    append(text, SIM_VIOLATION_BYTES, "-- %s batch %" PRIu64 "%s%s\n",
           words[op->mark], op->value, described[0] == '\0' ? "" : ": ",
           described);
}

static void append_op(char *text, const struct life *life,
                      const struct sim_op *op)
{
    switch (op->kind) {
    case SIM_OP_CREATE:
        append(text, SIM_VIOLATION_BYTES, "create inode %" PRIu32 "\n",
               op->inode);
        break;
    case SIM_OP_LINK:
        append(text, SIM_VIOLATION_BYTES, "link %s -> inode %" PRIu32 "\n",
               op->name, op->inode);
        break;
    case SIM_OP_RENAME:
        append(text, SIM_VIOLATION_BYTES,
               "rename %s to %s (inode %" PRIu32 ")\n", op->from_name, op->name,
               op->inode);
        break;
    case SIM_OP_UNLINK:
        append(text, SIM_VIOLATION_BYTES, "unlink %s\n", op->name);
        break;
    case SIM_OP_WRITE:
        append(text, SIM_VIOLATION_BYTES,
               "write inode %" PRIu32 ", offset %" PRIu64 ", %zu bytes%s\n",
               op->inode, op->offset, op->bytes,
               op->data == NULL ? " of zero" : "");
        break;
    case SIM_OP_RESIZE:
        append(text, SIM_VIOLATION_BYTES,
               "resize inode %" PRIu32 " to %" PRIu64 "\n", op->inode,
               op->offset);
        break;
    case SIM_OP_SYNC:
        append(text, SIM_VIOLATION_BYTES, "sync inode %" PRIu32 "\n",
               op->inode);
        break;
    case SIM_OP_SYNC_DIR:
        append(text, SIM_VIOLATION_BYTES, "sync directory, inode %" PRIu32 "\n",
               op->inode);
        break;
    case SIM_OP_SYNC_LOST:
        append(text, SIM_VIOLATION_BYTES,
               "sync of inode %" PRIu32 " FAILS, what was pending is lost\n",
               op->inode);
        break;
    case SIM_OP_REREAD:
        append(text, SIM_VIOLATION_BYTES,
               "inode %" PRIu32 " is read from the disk again\n", op->inode);
        break;
    case SIM_OP_MAP_BEGIN:
        append(text, SIM_VIOLATION_BYTES, "index commit begins\n");
        break;
    case SIM_OP_MAP_END:
        append(text, SIM_VIOLATION_BYTES, "index commit is durable\n");
        break;
    case SIM_OP_MARK:
        append_mark(text, life, op);
        break;
    }
}

static void note_violation(struct life *life, size_t cut, const char *problem)
{
    struct sim_violation *violation = life->exploration->violation;
    size_t count;
    const struct sim_op *ops = sim_disk_ops(life->world.disk, &count);
    const size_t middle = cut == 0 ? count : cut;
    size_t index = middle > OPS_SHOWN_BEFORE ? middle - OPS_SHOWN_BEFORE : 0;

    violation->seed = life->exploration->plan->seed;
    violation->model = life->exploration->plan->model;
    violation->depth = life->depth;
    violation->cut = cut;
    snprintf(
        violation->text, sizeof violation->text,
        "%s\nmodel %s, life %" PRIu32 ", cut behind operation %zu of %zu:\n",
        problem, sim_model_name(violation->model), life->depth + 1, cut, count);
    for (; index < count && index < middle + OPS_SHOWN_AFTER; index++) {
        if (cut != 0 && index == cut) {
            append(violation->text, sizeof violation->text,
                   "   ######## the power fails here ########\n");
        }
        append(violation->text, sizeof violation->text, "%6zu  ", index);
        append_op(violation->text, life, &ops[index]);
    }
}

/* ---- Disks ---------------------------------------------------------------------------- */

static bool live(struct exploration *exploration, struct sim_image *image,
                 const struct sim_start *start, uint32_t depth, uint64_t seed);

/* The batches that the life after this cut knows nothing of, put by. */
struct put_by {
    struct sim_batch *batches;
    uint32_t from;
    uint32_t count;
};

static struct put_by put_future_by(struct sim_history *history, uint32_t from)
{
    struct put_by by = {.from = from, .count = history->count - from};

    by.batches = sim_allocate(by.count * sizeof *by.batches);
    memcpy(by.batches, history->batches + from, by.count * sizeof *by.batches);
    sim_history_truncate(history, from);
    return by;
}

static void take_future_back(struct sim_history *history, struct put_by *by)
{
    while (history->count < by->from + by->count) {
        (void)sim_history_add(history, 0, 0); /* Only for the room. */
    }
    sim_history_truncate(history, by->from + by->count);
    memcpy(history->batches + by->from, by->batches,
           by->count * sizeof *by->batches);
    free(by->batches);
}

static bool live_on(struct life *life, const struct sim_image *image,
                    const struct sim_verdict *verdict)
{
    struct exploration *exploration = life->exploration;
    struct put_by by =
        put_future_by(&exploration->history, life->knowledge.issued + 1);
    const struct sim_start start = sim_start_after(&life->knowledge, verdict);
    const bool good = live(exploration, sim_image_copy(image), &start,
                           life->depth + 1, random_u64(&life->random));

    take_future_back(&exploration->history, &by);
    return good;
}

static struct sim_examination examination_of(struct life *life)
{
    return (struct sim_examination){
        .setting = &life->exploration->setting,
        .history = &life->exploration->history,
        .knowledge = &life->knowledge,
        .refused = life->refused,
        .model = life->exploration->plan->model,
        .index_sound = !life->exploration->plan->faults,
        .seed = random_u64(&life->random),
    };
}

/* At least this must be found, if it opens. */
static uint32_t lossless_state(const struct sim_proof *proof,
                               enum sim_loss loss)
{
    switch (loss) {
    case SIM_LOSS_REFUSES_NOTHING:
    case SIM_LOSS_NONE:
        return proof->found;
    case SIM_LOSS_UNPROVEN:
        return proof->proven;
    case SIM_LOSS_INDEX:
        return proof->without_index;
    case SIM_LOSS_OLD:
        return proof->outside_log;
    }
    abort();
}

static bool damage(struct life *life, const struct sim_image *image, size_t cut)
{
    const struct sim_examination examination = examination_of(life);
    struct sim_proof proof;

    if (life->knowledge.rot || !sim_prove(&examination, image, &proof)) {
        return true; /* Damaged already; or others judge why it did not open. */
    }
    for (unsigned index = 0; index < DAMAGES; index++) {
        struct sim_image *damaged = sim_image_copy(image);
        struct sim_verdict verdict;
        char text[200];
        enum sim_loss loss;

        sim_damage(damaged, sim_disk_start(life->world.disk),
                   random_u64(&life->random), &loss, text, sizeof text);
        if (text[0] != '\0') {
            sim_examine_damaged(&examination, damaged,
                                lossless_state(&proof, loss), proof.found,
                                &verdict);
            life->exploration->tally->states++;
            life->exploration->tally->damaged++;
            if (verdict.good && !verdict.created &&
                loss == SIM_LOSS_REFUSES_NOTHING && examination.index_sound) {
                verdict.good = false;
                snprintf(verdict.problem, sizeof verdict.problem,
                         "refused, though there is another base");
            }
            if (!verdict.good) {
                char problem[SIM_PROBLEM_BYTES + 300];

                snprintf(problem, sizeof problem, "%s (damage: %s)",
                         verdict.problem, text);
                note_violation(life, cut, problem);
                sim_image_free(damaged);
                return false;
            }
        }
        sim_image_free(damaged);
    }
    return true;
}

static void count_state(struct life *life, const struct sim_verdict *verdict)
{
    struct sim_tally *tally = life->exploration->tally;

    tally->states++;
    tally->torn += verdict->torn;
    tally->checkpoints_cut += verdict->in_checkpoint;
    if (verdict->found < life->knowledge.relaxed) {
        tally->relaxed_lost++;
    }
}

static uint32_t archive_one_in(const struct life *life)
{
    const bool at_it = life->step_kind == SIM_STEP_BACKUP ||
                       life->step_kind == SIM_STEP_RESTORE;

    return at_it ? 1 : ARCHIVE_ONE_IN;
}

/* Make one disk of a cut here, and examine it. */
static bool examine_one(struct life *life, const struct sim_cutter *cutter)
{
    struct sim_examination examination = examination_of(life);
    struct sim_choice choice;
    struct sim_image *image;
    struct sim_verdict verdict;
    const size_t cut = sim_cutter_place(cutter);
    bool good;

    sim_choice_random(&choice, random_u64(&life->random));
    examination.deep = random_one_in(&life->random, DEEP_ONE_IN);
    examination.deep_torn = random_one_in(&life->random, 2);
    examination.archive = life->exploration->plan->snapshots &&
                          random_one_in(&life->random, archive_one_in(life));
    image = sim_cutter_crash(cutter, &choice);
    sim_examine(&examination, image, &verdict);
    count_state(life, &verdict);
    life->exploration->tally->deep += verdict.deep;
    life->exploration->tally->archives += verdict.archive;
    good = verdict.good;
    if (!good) {
        note_violation(life, cut, verdict.problem);
    }
    if (good && verdict.created && life->depth + 1 < SIM_DEPTH_MAX &&
        random_one_in(&life->random, NEST_ONE_IN)) {
        good = live_on(life, image, &verdict);
    }
    if (good && verdict.created && life->exploration->plan->damage &&
        random_one_in(&life->random, DAMAGE_ONE_IN)) {
        good = damage(life, image, cut);
    }
    sim_image_free(image);
    return good;
}

/* ---- Lives -------------------------------------------------------------------------------- */

static bool cut_all_over(struct life *life)
{
    struct exploration *exploration = life->exploration;
    const uint32_t budget = exploration->plan->states_max >> (2 * life->depth);
    size_t count;
    const struct sim_op *ops = sim_disk_ops(life->world.disk, &count);
    struct sim_cutter *cutter = sim_cutter_create(
        sim_disk_start(life->world.disk), ops, count, exploration->plan->model);
    const struct sim_op *op;
    bool good = true;

    while (good && (op = sim_cutter_step(cutter)) != NULL) {
        const size_t place = sim_cutter_place(cutter);

        sim_knowledge_pass(&life->knowledge, &exploration->history, op,
                           life->refused);
        if (op->kind == SIM_OP_MARK && op->mark == SIM_MARK_STEP) {
            life->step_kind = life->steps[op->value].kind;
        }
        if (sim_knowledge_grows(ops, count, place)) {
            continue;
        }
        /* So many states at this place that the budget is spread evenly. */
        for (uint64_t share =
                 budget * (place + 1) / count - budget * place / count;
             good && share > 0; share--) {
            good = examine_one(life, cutter);
        }
    }
    sim_cutter_free(cutter);
    return good;
}

static bool live(struct exploration *exploration, struct sim_image *image,
                 const struct sim_start *start, uint32_t depth, uint64_t seed)
{
    struct life *life = sim_allocate(sizeof *life);
    const struct sim_plan *plan = exploration->plan;
    const struct sim_profile profile = {
        .steps = depth == 0 ? plan->steps : plan->steps / 3 + 2,
        .faults = plan->faults,
        .snapshots = plan->snapshots,
        .swarm = plan->seed,
    };
    bool good = true;

    *life = (struct life){
        .exploration = exploration,
        .depth = depth,
        .step_kind = SIM_STEP_KINDS,
        .random = {.state = seed},
    };
    life->step_count =
        sim_script_make(&profile, random_u64(&life->random), life->steps);
    sim_world_init(&life->world, image, &exploration->history, start->head,
                   start->created, random_u64(&life->random),
                   &exploration->setting);
    life->world.lsn_high = start->lsn_high;
    life->world.anchor_sequence = start->anchor_sequence;
    life->world.rotten = start->rot;
    life->world.damaged = start->damaged;
    sim_world_run(&life->world, life->steps, life->step_count,
                  plan->skip[depth]);
    exploration->tally->lives++;
    if (life->world.store != NULL) {
        exploration->tally->rotations +=
            wal_writer_stats(life->world.store->writer).rotations;
        exploration->tally->snapshots +=
            atomic_load(&life->world.store->stat_snapshots);
        exploration->tally->trimmed +=
            atomic_load(&life->world.store->stat_segments_removed);
    }
    if (life->world.problem[0] != '\0') {
        note_violation(life, 0, life->world.problem);
        good = false;
    }
    life->refused =
        sim_allocate((exploration->history.count + 1) * sizeof(bool));
    sim_knowledge_init(&life->knowledge, &exploration->history, start,
                       life->refused);
    good = good && cut_all_over(life);
    free(life->refused);
    sim_world_deinit(&life->world);
    free(life);
    return good;
}

/* How soon a snapshot is due, and what stays beyond what is needed. */
static void set_retention(struct sim_setting *setting, uint64_t seed)
{
    struct random_source random = {.state = seed ^ 0x9e3779b9};

    setting->snapshot_log_bytes = SEGMENT_BYTES;
    if (random_one_in(&random, 4)) {
        setting->retain_log_bytes =
            SEGMENT_BYTES * (1 + random_below(&random, 4));
    }
    if (random_one_in(&random, 3)) {
        setting->retain_log_ms = 1 + random_below(&random, RETAIN_MS_MAX);
    }
}

bool sim_explore(const struct sim_plan *plan, struct sim_tally *tally,
                 struct sim_violation *violation)
{
    struct exploration exploration = {
        .plan = plan,
        .tally = tally,
        .violation = violation,
        .setting = {.segment_bytes = SEGMENT_BYTES,
                    .memtable_bytes = MEMTABLE_BYTES,
                    .range_fragments_max =
                        plan->memtable_small ? FRAGMENTS_FEW : 0,
                    .fault_focus = plan->seed,
                    .fs_kind = plan->copy_on_write ? IO_FS_COPY_ON_WRITE
                                                   : IO_FS_OVERWRITE},
    };
    const struct sim_start nothing = {0};
    bool good;

    if (plan->snapshots) {
        set_retention(&exploration.setting, plan->seed);
    }
    sim_history_init(&exploration.history);
    good = live(&exploration, sim_world_first_image(), &nothing, 0, plan->seed);
    sim_history_deinit(&exploration.history);
    tally->worlds++;
    return good;
}

/* ---- Shrinking -------------------------------------------------------------------------------- */

/* Whether there is still a violation without these steps; then it stays so. */
static bool leave_out(struct sim_plan *plan, uint32_t depth, size_t first,
                      size_t count, struct sim_violation *violation)
{
    struct sim_tally ignored = {0};
    struct sim_violation found;
    struct sim_plan shorter = *plan;

    memset(&shorter.skip[depth][first], true, count * sizeof(bool));
    if (memcmp(shorter.skip, plan->skip, sizeof shorter.skip) == 0 ||
        sim_explore(&shorter, &ignored, &found)) {
        return false;
    }
    *plan = shorter;
    *violation = found;
    return true;
}

void sim_shrink(struct sim_plan *plan, struct sim_violation *violation)
{
    /* Whole lives first, from the last one, then ever smaller parts. Which disks
     * are made depends on all steps: what failed may do a second time. */
    for (size_t count = SIM_STEPS_MAX; count > 0; count /= 2) {
        bool shorter = true;

        for (int tries = 0; shorter && tries < SHRINK_TRIES_MAX; tries++) {
            shorter = false;
            for (uint32_t depth = SIM_DEPTH_MAX; depth > 0; depth--) {
                for (size_t end = SIM_STEPS_MAX; end >= count; end -= count) {
                    shorter |= leave_out(plan, depth - 1, end - count, count,
                                         violation);
                }
            }
        }
    }
}
