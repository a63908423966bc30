/* tests/sim/oracle.c -- see tests/sim/oracle.h. */
#include "tests/sim/oracle.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/batch.h"
#include "tests/sim/log.h"
#include "tests/sim/oracle_internal.h"
#include "wal/record.h"

/* Of what was asked for so far, all that does not lead to `head` never was. */
static void refuse_branches(const struct sim_knowledge *knowledge,
                            const struct sim_history *history, uint32_t head,
                            bool *refused)
{
    uint32_t next = head;

    for (uint32_t number = knowledge->issued; number > 0; number--) {
        if (number != next) {
            refused[number] = true;
        } else {
            next = history->batches[number].previous;
        }
    }
}

void sim_knowledge_init(struct sim_knowledge *knowledge,
                        const struct sim_history *history,
                        const struct sim_start *start, bool *refused)
{
    *knowledge = (struct sim_knowledge){
        .must = start->head,
        .relaxed = start->head,
        .issued = start->head,
        .lsn_high = start->lsn_high,
        .anchor_sequence = start->anchor_sequence,
        .snapshot_lsn = start->snapshot_lsn,
        .created = start->created,
        .rot = start->rot,
        .damaged = start->damaged,
        .archived = start->archived,
    };
    memset(refused, 0, (history->count + 1) * sizeof *refused);
    refuse_branches(knowledge, history, start->head, refused);
}

static void told(struct sim_knowledge *knowledge,
                 const struct sim_history *history, uint32_t number)
{
    const uint64_t lsn = history->batches[number].lsn;

    if (lsn > knowledge->lsn_high) {
        knowledge->lsn_high = lsn;
    }
}

void sim_knowledge_pass(struct sim_knowledge *knowledge,
                        const struct sim_history *history,
                        const struct sim_op *op, bool *refused)
{
    const uint32_t number = (uint32_t)op->value;

    if (op->kind == SIM_OP_SYNC_LOST) {
        knowledge->relaxed = knowledge->must; /* What was not synced may go. */
    }
    if (op->kind != SIM_OP_MARK) {
        return;
    }
    switch ((enum sim_mark)op->mark) {
    case SIM_MARK_ISSUE:
        /* What lies between was asked for in a life that ended in a cut. */
        for (uint32_t other = knowledge->issued + 1; other < number; other++) {
            refused[other] = true;
        }
        knowledge->issued = number;
        break;
    case SIM_MARK_ACK:
    case SIM_MARK_EXPOSED:
        told(knowledge, history, number);
        knowledge->must = number > knowledge->must ? number : knowledge->must;
        if (knowledge->must > knowledge->relaxed) {
            knowledge->relaxed = knowledge->must;
        }
        break;
    case SIM_MARK_RELAXED:
        told(knowledge, history, number);
        knowledge->relaxed = number;
        break;
    case SIM_MARK_REFUSED:
        refused[number] = true;
        break;
    case SIM_MARK_OPENED:
        told(knowledge, history, number);
        refuse_branches(knowledge, history, number, refused);
        knowledge->must = number;
        knowledge->relaxed = number;
        knowledge->created = true;
        break;
    case SIM_MARK_NAMED:
        knowledge->named = number;
        break;
    case SIM_MARK_STEP:
        break;
    case SIM_MARK_ANCHOR:
        knowledge->anchor_sequence = op->value;
        break;
    case SIM_MARK_SNAPSHOT:
        knowledge->snapshot_lsn = op->value;
        knowledge->rot = false;
        break;
    case SIM_MARK_ROT:
        knowledge->snapshot_lsn = 0;
        knowledge->rot = true;
        knowledge->damaged = true;
        break;
    case SIM_MARK_INDEX_ROT:
        knowledge->damaged = true;
        break;
    case SIM_MARK_BACKUP:
        sim_archived_note(&knowledge->archived, op->value);
        break;
    case SIM_MARK_RESTORE:
        knowledge->archived.restoring = true;
        knowledge->archived.restored_lsn = op->value;
        break;
    case SIM_MARK_RESTORED:
        knowledge->archived.restored = true;
        break;
    }
}

struct sim_start sim_start_after(const struct sim_knowledge *knowledge,
                                 const struct sim_verdict *verdict)
{
    return (struct sim_start){
        .head = verdict->found,
        .created = verdict->created,
        .lsn_high = knowledge->lsn_high,
        .anchor_sequence = knowledge->anchor_sequence,
        .snapshot_lsn = knowledge->snapshot_lsn,
        .rot = knowledge->rot,
        .damaged = knowledge->damaged,
        .archived = knowledge->archived,
    };
}

bool sim_mark_demands(const struct sim_op *op)
{
    return op->kind == SIM_OP_MARK && op->mark != SIM_MARK_STEP &&
           op->mark != SIM_MARK_ISSUE && op->mark != SIM_MARK_RESTORE;
}

bool sim_knowledge_grows(const struct sim_op *ops, size_t count, size_t place)
{
    return place < count && sim_mark_demands(&ops[place]);
}

/* ---- One disk ---------------------------------------------------------------------- */

void sim_scene_fail(struct sim_scene *scene, const char *format, ...)
{
    va_list args;

    if (!scene->verdict->good) {
        return;
    }
    scene->verdict->good = false;
    va_start(args, format);
    vsnprintf(scene->verdict->problem, sizeof scene->verdict->problem, format,
              args);
    va_end(args);
}

enum stele_status sim_scene_open(struct sim_scene *scene,
                                 enum stele_open_mode mode,
                                 struct stele_error *error)
{
    struct stele_options options;
    struct store_tuning tuning;

    scene->process = sim_process_start(scene->disk);
    sim_world_options(scene->examination->setting,
                      sim_process_io(scene->process), mode, &options, &tuning);
    return store_open(scene->path, &options, &tuning, &scene->store, error);
}

void sim_scene_end_process(struct sim_scene *scene)
{
    if (scene->store != NULL) {
        store_abandon(scene->store);
        scene->store = NULL;
    }
    if (sim_process_open_count(scene->process) > 0) {
        sim_scene_fail(scene, "%" PRIu32 " descriptors left open",
                       sim_process_open_count(scene->process));
    }
    sim_process_end(scene->process);
    scene->process = NULL;
}

/* Rules (1) and (2). Returns the number of the state, UINT32_MAX: none. */
uint32_t sim_scene_look(struct sim_scene *scene, const char *when)
{
    const struct sim_examination *examination = scene->examination;
    struct stele_view *view;
    struct stele_error error;
    char text[SIM_PROBLEM_BYTES / 2];
    uint32_t number;

    if (stele_view_open(scene->store, &view, &error) != STELE_OK) {
        sim_scene_fail(scene, "%s: view: %s", when, error.message);
        return UINT32_MAX;
    }
    number = sim_world_state_of(
        examination->history, scene->store, stele_view_lsn(view),
        examination->knowledge->issued + 1, text, sizeof text);
    if (number == UINT32_MAX) {
        sim_scene_fail(scene, "%s: %s", when, text);
    } else if (!sim_history_matches(examination->history, number, view, text,
                                    sizeof text)) {
        sim_scene_fail(scene, "%s: in the state after batch %" PRIu32 ", %s",
                       when, number, text);
    }
    stele_view_close(view);
    return number;
}

static void check_number(struct sim_scene *scene, const char *when,
                         uint32_t number)
{
    const struct sim_examination *examination = scene->examination;
    const struct sim_knowledge *knowledge = examination->knowledge;
    const bool killed = examination->model == SIM_MODEL_KILL;
    const uint32_t must = killed ? knowledge->relaxed : knowledge->must;

    if (number == UINT32_MAX) {
        return;
    }
    if (examination->refused[number]) {
        sim_scene_fail(scene,
                       "%s: batch %" PRIu32 " is there, but it was refused",
                       when, number);
    }
    if (!sim_history_descends(examination->history, number, must)) {
        sim_scene_fail(
            scene,
            "%s: the state after batch %" PRIu32 ", but batch %" PRIu32 " %s",
            when, number, must,
            killed ? "had returned" : "was acknowledged, read or found");
    }
}

/* Rule (2), the rest, and (3). */
static void check_count(struct sim_scene *scene, uint32_t number)
{
    const struct sim_contents *contents =
        &scene->examination->history->batches[number].after;
    struct stele_error error;
    struct stele_view *view;

    if (stele_view_open(scene->store, &view, &error) != STELE_OK) {
        sim_scene_fail(scene, "view: %s", error.message);
        return;
    }
    for (unsigned table = 0; table < SIM_TABLES; table++) {
        uint64_t wanted = 0;
        uint64_t count = 0;

        for (unsigned key = 0; key < SIM_KEYS; key++) {
            wanted += contents->cells[table * SIM_KEYS + key].batch != 0;
        }
        if (stele_table_count(view, sim_table_name(table), &count, &error) !=
            STELE_OK) {
            sim_scene_fail(scene, "count: %s", error.message);
        } else if (count != wanted) {
            sim_scene_fail(scene,
                           "table %s has %" PRIu64
                           " keys by its count, not %" PRIu64,
                           sim_table_name(table), count, wanted);
        }
    }
    stele_view_close(view);
}

/* The batches that lead to `number`, the first one first. */
static uint32_t *chain_of(const struct sim_history *history, uint32_t number,
                          uint32_t *count_out)
{
    uint32_t *chain = sim_allocate(history->count * sizeof *chain);
    uint32_t count = 0;

    for (; number != 0; number = history->batches[number].previous) {
        chain[count++] = number;
    }
    for (uint32_t index = 0; index < count / 2; index++) {
        const uint32_t other = chain[count - 1 - index];

        chain[count - 1 - index] = chain[index];
        chain[index] = other;
    }
    *count_out = count;
    return chain;
}

uint32_t sim_scene_number_at(const struct sim_scene *scene, uint64_t lsn)
{
    return sim_history_find(scene->examination->history, lsn,
                            scene->examination->knowledge->issued + 1);
}

static void check_record(struct sim_scene *scene, uint32_t expected,
                         const struct wal_record *record)
{
    const struct sim_batch *batch =
        &scene->examination->history->batches[expected];
    const uint32_t number = sim_history_number(record->tag);

    if (number != expected) {
        sim_scene_fail(scene,
                       "the log has batch %" PRIu32 " where batch %" PRIu32
                       " belongs",
                       number, expected);
    } else if (record->body_bytes != batch->body_bytes ||
               memcmp(record->body, batch->body, batch->body_bytes) != 0) {
        sim_scene_fail(scene,
                       "the log's record of batch %" PRIu32 " has other bytes",
                       number);
    } else if (batch->lsn != 0 && batch->lsn != record->lsn) {
        sim_scene_fail(scene,
                       "the log gives batch %" PRIu32 " LSN %" PRIu64
                       ", not %" PRIu64,
                       number, record->lsn, batch->lsn);
    }
}

/* A walk over the log, beside the chain that it should be. */
struct log_check {
    struct sim_scene *scene;
    const uint32_t *chain;
    uint32_t count;
    uint32_t place;
};

static void check_next_record(void *context, const struct wal_record *record)
{
    struct log_check *check = context;

    if (check->place < check->count) {
        check_record(check->scene, check->chain[check->place], record);
    }
    check->place++;
}

/* The records behind `start` are those of the chain that leads to `number`. */
static void check_log(struct sim_scene *scene, const struct wal_position *start,
                      uint32_t number)
{
    const uint32_t before = sim_scene_number_at(scene, start->lsn);
    struct log_check check = {.scene = scene};
    struct stele_error error;
    uint32_t *chain =
        chain_of(scene->examination->history, number, &check.count);

    check.chain = chain;
    while (before != 0 && check.place < check.count &&
           chain[check.place] <= before) {
        check.place++;
    }
    if (sim_log_walk(scene->store, start, check_next_record, &check, &error) !=
        STELE_OK) {
        sim_scene_fail(scene, "reading the log: %s", error.message);
    } else if (check.place != check.count) {
        sim_scene_fail(scene, "the log has %" PRIu32 " records, not %" PRIu32,
                       check.place, check.count);
    }
    free(chain);
}

/* All that verify may find is a snapshot that was damaged on purpose. */
static void note_finding(void *context, const struct stele_error *problem)
{
    struct sim_scene *scene = context;

    if (!scene->examination->knowledge->damaged ||
        strncmp(problem->message, "snapshot/", 9) != 0) {
        sim_scene_fail(scene, "verify: %s", problem->message);
    }
}

static void check_verify(struct sim_scene *scene)
{
    struct stele_verify_report report = {.size = sizeof report};
    struct stele_error error;
    const enum stele_status status =
        stele_verify(scene->store, note_finding, scene, &report, &error);

    if (status != STELE_OK && status != STELE_CORRUPT) {
        sim_scene_fail(scene, "verify: %s", error.message);
    }
}

/* ---- Rules (4) to (7) -------------------------------------------------------------------- */

static void check_reader(struct sim_scene *scene, uint32_t *shown_out)
{
    const uint64_t before = sim_image_digest(sim_disk_cache(scene->disk));
    struct stele_error error;

    *shown_out = 0;
    if (sim_scene_open(scene, STELE_OPEN_READ_ONLY, &error) != STELE_OK) {
        sim_scene_fail(scene, "reader: %s", error.message);
    } else {
        const uint32_t shown = sim_scene_look(scene, "reader");

        check_number(scene, "reader", shown);
        *shown_out = shown == UINT32_MAX ? 0 : shown;
        if (stele_close(scene->store, &error) != STELE_OK) {
            sim_scene_fail(scene, "reader: close: %s", error.message);
        }
        scene->store = NULL;
    }
    sim_scene_end_process(scene);
    if (sim_image_digest(sim_disk_cache(scene->disk)) != before) {
        sim_scene_fail(scene, "reader: it changed the directory");
    }
}

static uint32_t count_names(const struct sim_scene *scene, const char *path)
{
    const struct sim_image *cache = sim_disk_cache(scene->disk);
    const uint32_t inode = sim_image_walk(cache, path);

    return inode == 0 ? 0 : sim_image_node(cache, inode)->entry_count;
}

static void check_names(struct sim_scene *scene, const char *path)
{
    const struct sim_image *cache = sim_disk_cache(scene->disk);
    const uint32_t inode = sim_image_walk(cache, path);
    const struct sim_node *node;

    if (inode == 0) {
        sim_scene_fail(scene, "%s is missing", path);
        return;
    }
    node = sim_image_node(cache, inode);
    for (uint32_t index = 0; index < node->entry_count; index++) {
        if (strstr(node->entries[index].name, ".tmp") != NULL) {
            sim_scene_fail(scene, "%s/%s was left behind", path,
                           node->entries[index].name);
        }
    }
}

/* Rule (5). */
static void check_again(struct sim_scene *scene, uint32_t number)
{
    const uint32_t segments = count_names(scene, SIM_STORE_PATH "/wal");
    struct stele_error error;
    enum stele_status status = stele_close(scene->store, &error);

    scene->store = NULL;
    if (status != STELE_OK) {
        sim_scene_fail(scene, "close: %s", error.message);
    }
    sim_scene_end_process(scene);
    if (sim_scene_open(scene, STELE_OPEN_EXISTING, &error) != STELE_OK) {
        sim_scene_fail(scene, "opening it again: %s", error.message);
        return;
    }
    if (sim_scene_look(scene, "opened again") != number) {
        sim_scene_fail(
            scene, "opened again: not the state after batch %" PRIu32, number);
    }
    if (count_names(scene, SIM_STORE_PATH "/wal") > segments) {
        sim_scene_fail(scene, "opened again: the log has more files");
    }
    if (scene->store->index_rebuilt) {
        sim_scene_fail(scene, "opened again: the index was built again");
    }
}

void sim_check_goes_on(struct sim_scene *scene, uint32_t number,
                       uint64_t lsn_high)
{
    const struct sim_examination *examination = scene->examination;
    struct sim_history *history = examination->history;
    const uint32_t count_before = history->count;
    const uint32_t next =
        sim_history_add(history, number, examination->seed | 1);
    struct stele_commit_result result = {0};
    struct stele_batch *batch;
    struct stele_error error;
    enum stele_status status = stele_batch_create(&batch, &error);

    if (status == STELE_OK) {
        status = sim_history_fill(history, next, batch, &error);
    }
    if (status == STELE_OK) {
        status =
            stele_commit(scene->store, batch, STELE_DURABLE, &result, &error);
    }
    stele_batch_destroy(batch);
    if (history->batches[next].refused) {
        if (status != STELE_PRECONDITION) {
            sim_scene_fail(scene,
                           "the next batch went against its expectations");
        }
    } else if (status != STELE_OK) {
        sim_scene_fail(scene, "the next batch: %s", error.message);
    } else {
        history->batches[next].lsn = result.lsn;
        if (result.lsn <= lsn_high) {
            sim_scene_fail(scene,
                           "the next batch got LSN %" PRIu64 ", but %" PRIu64
                           " was given before",
                           result.lsn, lsn_high);
        }
        sim_scene_end_process(scene);
        if (sim_scene_open(scene, STELE_OPEN_EXISTING, &error) != STELE_OK) {
            sim_scene_fail(scene, "opening after the next batch: %s",
                           error.message);
        } else {
            struct stele_view *view;
            char text[SIM_PROBLEM_BYTES / 2] = "";

            if (stele_view_open(scene->store, &view, &error) != STELE_OK) {
                sim_scene_fail(scene, "view after the next batch: %s",
                               error.message);
            } else {
                if (stele_view_lsn(view) != result.lsn) {
                    sim_scene_fail(scene,
                                   "the next batch did not survive a kill");
                } else if (!sim_history_matches(history, next, view, text,
                                                sizeof text)) {
                    sim_scene_fail(scene, "after the next batch: %s", text);
                }
                stele_view_close(view);
            }
        }
    }
    sim_history_truncate(history, count_before);
}

/* ---- Examining ------------------------------------------------------------------------------- */

static void begin_scene(struct sim_scene *scene,
                        const struct sim_examination *examination,
                        const struct sim_image *image,
                        struct sim_verdict *verdict)
{
    *verdict = (struct sim_verdict){.good = true};
    *scene = (struct sim_scene){
        .examination = examination,
        .verdict = verdict,
        .path = SIM_STORE_PATH,
        .disk = sim_disk_create(sim_image_copy(image), examination->seed),
    };
    sim_disk_set_fs_kind(scene->disk, examination->setting->fs_kind);
}

static void examine_deep(struct sim_scene *scene, const struct sim_image *image,
                         uint32_t number)
{
    const struct sim_knowledge *knowledge = scene->examination->knowledge;
    struct wal_position start;
    struct stele_error error;

    check_count(scene, number);
    if (sim_log_start(scene->store, &start, &error) != STELE_OK) {
        sim_scene_fail(scene, "reading the log: %s", error.message);
    } else {
        check_log(scene, &start, number);
    }
    check_verify(scene);
    check_names(scene, SIM_STORE_PATH);
    check_names(scene, SIM_STORE_PATH "/wal");
    check_names(scene, SIM_STORE_PATH "/snapshot");
    if (scene->examination->index_sound && !knowledge->damaged &&
        count_names(scene, SIM_STORE_PATH "/quarantine") > 0) {
        sim_scene_fail(scene, "an index or a snapshot was set aside");
    }
    sim_check_retained(scene);
    if (!knowledge->rot) {
        sim_check_snapshots(scene, image);
        sim_check_safe_twice(scene, image, number);
    }
    check_again(scene, number);
    if (scene->store != NULL) {
        sim_check_goes_on(scene, number, knowledge->lsn_high);
    }
}

/* No store yet: that is what it must say, and creating it must work. */
static void examine_uncreated(struct sim_scene *scene)
{
    struct stele_error error;
    uint32_t number;

    sim_scene_end_process(scene);
    if (sim_scene_open(scene, STELE_OPEN_CREATE, &error) != STELE_OK) {
        sim_scene_fail(scene, "creating what was not finished: %s",
                       error.message);
        return;
    }
    number = sim_scene_look(scene, "created");
    if (number != 0) {
        sim_scene_fail(scene, "created: not empty");
    }
}

void sim_examine(const struct sim_examination *examination,
                 const struct sim_image *image, struct sim_verdict *verdict)
{
    struct stele_error error;
    struct sim_scene scene;
    enum stele_status status;
    uint32_t shown = 0;

    begin_scene(&scene, examination, image, verdict);
    sim_check_anchor(&scene, image);
    if (examination->deep && examination->knowledge->created) {
        check_reader(&scene, &shown);
    }
    status = sim_scene_open(&scene, STELE_OPEN_EXISTING, &error);
    if (status == STELE_NOT_FOUND && !examination->knowledge->created) {
        examine_uncreated(&scene);
    } else if (status != STELE_OK) {
        sim_scene_fail(&scene, "open: %s", error.message);
    } else {
        verdict->created = true;
        verdict->torn = scene.store->recovery.row == WAL_ROW_C;
        verdict->in_checkpoint =
            scene.store->applying.unit > scene.store->applied.unit;
        verdict->found = sim_scene_look(&scene, "opened");
        check_number(&scene, "opened", verdict->found);
        if (verdict->good && !sim_history_descends(examination->history,
                                                   verdict->found, shown)) {
            sim_scene_fail(&scene,
                           "opened: the state after batch %" PRIu32
                           ", but a reader had shown batch %" PRIu32,
                           verdict->found, shown);
        }
        if (verdict->good && examination->archive) {
            sim_check_archive(&scene, image, verdict->found);
        }
        verdict->deep =
            examination->deep || (examination->deep_torn && verdict->torn);
        if (verdict->good && verdict->deep) {
            examine_deep(&scene, image, verdict->found);
        }
    }
    sim_scene_end_process(&scene);
    sim_disk_free(scene.disk);
}

/* ---- Damage ------------------------------------------------------------------------------------ */

bool sim_prove(const struct sim_examination *examination,
               const struct sim_image *image, struct sim_proof *proof_out)
{
    const struct sim_knowledge *knowledge = examination->knowledge;
    struct sim_verdict verdict;
    struct stele_error error;
    struct sim_scene scene;
    uint64_t without_index;
    uint64_t outside_log;
    bool opened;

    begin_scene(&scene, examination, image, &verdict);
    without_index = sim_anchor_proves(image);
    opened = sim_scene_open(&scene, STELE_OPEN_EXISTING, &error) == STELE_OK;
    if (opened) {
        outside_log = without_index;
        if (!scene.store->index_rebuilt &&
            scene.store->applied.lsn > outside_log) {
            outside_log = scene.store->applied.lsn;
        }
        *proof_out = (struct sim_proof){
            .found = sim_scene_look(&scene, "undamaged"),
            .proven =
                sim_scene_number_at(&scene, scene.store->recovery.proven.lsn),
            .outside_log = sim_scene_number_at(&scene, outside_log),
            .without_index = sim_scene_number_at(&scene, without_index),
        };
        opened = proof_out->found != UINT32_MAX &&
                 proof_out->proven != UINT32_MAX &&
                 proof_out->outside_log != UINT32_MAX &&
                 proof_out->without_index != UINT32_MAX;
        /* Not by the engine's word alone. */
        if (opened && proof_out->without_index > proof_out->proven) {
            proof_out->proven = proof_out->without_index;
        }
        if (opened && knowledge->named > proof_out->proven) {
            proof_out->proven = knowledge->named;
        }
    }
    sim_scene_end_process(&scene);
    sim_disk_free(scene.disk);
    return opened;
}

static bool is_refusal(enum stele_status status)
{
    return status == STELE_CORRUPT || status == STELE_FOREIGN ||
           status == STELE_NOT_FOUND;
}

void sim_examine_damaged(const struct sim_examination *examination,
                         const struct sim_image *image, uint32_t proven,
                         uint32_t found_before, struct sim_verdict *verdict)
{
    const uint64_t before = sim_image_digest(image);
    struct stele_error error;
    struct sim_scene scene;
    enum stele_status status;
    const uint32_t lock = sim_image_walk(image, SIM_STORE_PATH "/LOCK");

    begin_scene(&scene, examination, image, verdict);
    status = sim_scene_open(&scene, STELE_OPEN_EXISTING, &error);
    if (status != STELE_OK) {
        if (!is_refusal(status)) {
            sim_scene_fail(&scene, "refused, but not as damaged: %s",
                           error.message);
        }
        /* But for the text in LOCK. */
        if (lock != 0) {
            struct sim_image *left = sim_image_copy(sim_disk_cache(scene.disk));

            sim_image_set_node(left, lock, image->nodes[lock]);
            if (sim_image_digest(left) != before) {
                sim_scene_fail(&scene,
                               "refused, but the directory has changed: %s",
                               error.message);
            }
            sim_image_free(left);
        }
    } else {
        verdict->created = true;
        verdict->found = sim_scene_look(&scene, "damaged");
        if (verdict->good && !sim_history_descends(examination->history,
                                                   verdict->found, proven)) {
            sim_scene_fail(
                &scene,
                "damaged, but opened in the state after batch %" PRIu32
                ", though batch %" PRIu32 " is proven",
                verdict->found, proven);
        }
        if (verdict->good && verdict->found != found_before &&
            !sim_history_descends(examination->history, found_before,
                                  verdict->found)) {
            sim_scene_fail(&scene,
                           "damaged: the state after batch %" PRIu32
                           ", which never came before batch %" PRIu32,
                           verdict->found, found_before);
        }
        if (verdict->good) {
            /* What opening has read; what lies before is verify's to find. */
            check_log(&scene, &scene.store->applied, verdict->found);
        }
    }
    sim_scene_end_process(&scene);
    sim_disk_free(scene.disk);
}
