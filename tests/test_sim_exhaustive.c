/*
 * tests/test_sim_exhaustive.c -- small worlds, and every disk that a crash could
 * leave of them.
 *
 * A world is a script of a few steps over segments of three pages of units. Its
 * recording is cut behind every operation, under each model of tests/sim/cut.h, and
 * every combination of what was not synced is examined: each page, size, name and
 * index on its own. In addition every unit is torn at every subset of its sectors,
 * over every combination of the pages before it; and ANY_ORDER's garbage, which
 * cannot be enumerated, is sampled.
 *
 * A combination that could not be enumerated fails the test. The same disk with the
 * same knowledge is examined once.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/checksum.h"
#include "tests/lib/sanitized.h"
#include "tests/sim/oracle.h"
#include "tests/sim/spell.h"

enum {
    SEGMENT_BYTES = 16 << 10,
    MEMTABLE_BYTES = 128 << 10,
    COMBINATIONS_MAX = 1 << 15, /* At one place; more: the script is too big. */
    UNIT_PAGES_MAX = 3,
    GARBAGE_CUTS = 3,                          /* Sampled at each place. */
    EXAMINED_ONE_IN = SANITIZED_CHOICE(1, 37), /* Of different disks. */
    DEEP_ONE_IN = 4,
};

static const struct sim_setting setting = {.segment_bytes = SEGMENT_BYTES,
                                           .memtable_bytes = MEMTABLE_BYTES,
                                           .fs_kind = IO_FS_OVERWRITE,
                                           .snapshot_log_bytes = SEGMENT_BYTES};

/* ---- What was examined already -------------------------------------------------- */

enum { SEEN_SLOTS = 1 << 21 };

static uint64_t *seen; /* Hashes; 0: free. */
static size_t seen_count;

static bool see(uint64_t hash)
{
    size_t slot = hash % SEEN_SLOTS;

    hash |= hash == 0;
    while (seen[slot] != 0 && seen[slot] != hash) {
        slot = (slot + 1) % SEEN_SLOTS;
    }
    if (seen[slot] == hash) {
        return false;
    }
    assert_true(++seen_count < SEEN_SLOTS / 2);
    seen[slot] = hash;
    return true;
}

static void forget_seen(void)
{
    memset(seen, 0, SEEN_SLOTS * sizeof *seen);
    seen_count = 0;
}

/* ---- Lives -------------------------------------------------------------------------- */

struct tally {
    uint64_t disks;    /* Enumerated. */
    uint64_t distinct; /* Examined. */
    uint64_t places;
    uint64_t lives;
    uint64_t torn;
    uint64_t relaxed_lost;
    uint64_t in_checkpoint;
    uint64_t combinations_max;
    uint32_t digits_max;
};

static struct tally tally;

/* A life, and where its cutters stand. */
struct life {
    const char *letters;
    struct sim_history history;
    struct sim_world world;
    struct sim_knowledge knowledge;
    bool *refused;
    enum sim_model model;
    const char *next; /* Script of a life after each disk; NULL: none. */
    bool next_at_end; /* ... of the last place only. */
};

static void live_on(struct life *before, const struct sim_image *image,
                    const struct sim_verdict *verdict);

static uint64_t key_of(const struct life *life, const struct sim_image *image)
{
    const struct sim_knowledge *knowledge = &life->knowledge;
    /* What it knows must be found again, and what is the index's file. */
    const uint64_t parts[] = {
        sim_image_digest(image),
        sim_image_walk(image, SIM_STORE_PATH "/index/data.mdb"),
        life->model == SIM_MODEL_KILL ? knowledge->relaxed : knowledge->must,
        life->model == SIM_MODEL_KILL,
        knowledge->issued,
        knowledge->lsn_high,
        knowledge->created,
        knowledge->anchor_sequence,
        knowledge->snapshot_lsn,
        knowledge->archived.acknowledged,
        knowledge->archived.lsns[0],
        knowledge->archived.restoring,
        knowledge->archived.restored,
    };

    return checksum64(parts, sizeof parts, (uint64_t)tally.lives);
}

static void examine(struct life *life, const struct sim_cutter *cutter,
                    const struct sim_image *image)
{
    struct sim_examination examination = {
        .setting = &setting,
        .history = &life->history,
        .knowledge = &life->knowledge,
        .refused = life->refused,
        .model = life->model,
        .archive = true,
        .seed = 1,
    };
    struct sim_verdict verdict;

    tally.disks++;
    if (!see(key_of(life, image))) {
        return;
    }
    if (tally.distinct++ % EXAMINED_ONE_IN != 0) {
        return;
    }
    examination.deep = tally.distinct / EXAMINED_ONE_IN % DEEP_ONE_IN == 0;
    sim_examine(&examination, image, &verdict);
    if (!verdict.good) {
        fail_msg("script %s, model %s, cut behind operation %zu: %s",
                 life->letters, sim_model_name(life->model),
                 sim_cutter_place(cutter), verdict.problem);
    }
    tally.torn += verdict.torn;
    tally.in_checkpoint += verdict.in_checkpoint;
    tally.relaxed_lost += verdict.found < life->knowledge.relaxed;
    if (life->next != NULL) {
        live_on(life, image, &verdict);
    }
}

/* One unit's write, and which of its sectors have anything in them. */
struct unit_write {
    const struct sim_op *op;
    uint64_t sectors[UNIT_PAGES_MAX * SIM_PAGE_BYTES / SIM_SECTOR_BYTES];
    unsigned sector_count;
};

/* The image, with every subset of the unit's sectors; none and all were among the
 * pages. */
static void examine_torn(struct life *life, const struct sim_cutter *cutter,
                         const struct sim_image *image,
                         const struct unit_write *write)
{
    for (unsigned subset = 1; subset + 1 < 1u << write->sector_count;
         subset++) {
        struct sim_image *torn = sim_image_copy(image);

        for (unsigned index = 0; index < write->sector_count; index++) {
            if ((subset >> index & 1) != 0) {
                const uint64_t at = write->sectors[index] * SIM_SECTOR_BYTES;
                const uint64_t left = write->op->bytes - at;

                sim_image_write(torn, write->op->inode, write->op->data + at,
                                left < SIM_SECTOR_BYTES ? (size_t)left
                                                        : SIM_SECTOR_BYTES,
                                write->op->offset + at);
            }
        }
        examine(life, cutter, torn);
        sim_image_free(torn);
    }
}

/* Everything that a cut here may leave; with `write`, the torn unit too. */
static void cut_here(struct life *life, const struct sim_cutter *cutter,
                     const struct unit_write *write)
{
    struct sim_choice choice;
    uint64_t product = 1;
    uint64_t images = 0;

    sim_choice_each(&choice, SIM_PAGE_BYTES);
    do {
        struct sim_image *image = sim_cutter_crash(cutter, &choice);

        if (images == 0) {
            assert_true(choice.digits_wanted <= SIM_DIGITS_MAX);
            for (uint32_t digit = 0; digit < choice.digits_wanted; digit++) {
                product *= choice.limits[digit];
                assert_true(product <= COMBINATIONS_MAX);
            }
        }
        images++;
        if (write == NULL) {
            examine(life, cutter, image);
        } else {
            examine_torn(life, cutter, image, write);
        }
        sim_image_free(image);
    } while (sim_choice_next(&choice));
    assert_int_equal(images, product); /* Nothing was left out. */
    if (product > tally.combinations_max) {
        tally.combinations_max = product;
    }
    if (choice.digits_wanted > tally.digits_max) {
        tally.digits_max = choice.digits_wanted;
    }
}

static void sample_garbage(struct life *life, const struct sim_cutter *cutter)
{
    for (uint64_t seed = 0; seed < GARBAGE_CUTS; seed++) {
        struct sim_choice choice = {
            .kind = SIM_CHOOSE_COIN,
            .random = {.state = sim_cutter_place(cutter) * 1000 + seed},
            .grain_bytes = seed % 2 == 0 ? SIM_SECTOR_BYTES : SIM_PAGE_BYTES,
        };
        struct sim_image *image = sim_cutter_crash(cutter, &choice);

        examine(life, cutter, image);
        sim_image_free(image);
    }
}

static bool is_unit(const struct sim_op *op, struct unit_write *write)
{
    if (op->kind != SIM_OP_WRITE || op->data == NULL ||
        op->bytes < sizeof "STELUNIT" ||
        memcmp(op->data, "STELUNIT", strlen("STELUNIT")) != 0) {
        return false;
    }
    assert_true(op->bytes <= sizeof write->sectors / sizeof write->sectors[0] *
                                 SIM_SECTOR_BYTES);
    write->op = op;
    write->sector_count = 0;
    for (uint64_t at = 0; at < op->bytes; at += SIM_SECTOR_BYTES) {
        static const uint8_t zeros[SIM_SECTOR_BYTES];
        const uint64_t left = op->bytes - at;

        if (memcmp(op->data + at, zeros,
                   left < SIM_SECTOR_BYTES ? (size_t)left : SIM_SECTOR_BYTES) !=
            0) {
            write->sectors[write->sector_count++] = at / SIM_SECTOR_BYTES;
        }
    }
    return true;
}

/* The same disk as before it, and nothing more is demanded of it. */
static bool is_mere_mark(const struct sim_op *op)
{
    return op->kind == SIM_OP_MARK && !sim_mark_demands(op);
}

static void cut_everywhere(struct life *life)
{
    size_t count;
    const struct sim_op *ops = sim_disk_ops(life->world.disk, &count);
    struct sim_cutter *cutter = sim_cutter_create(
        sim_disk_start(life->world.disk), ops, count, life->model);
    const char *next = life->next;

    for (size_t place = 0; place < count; place++) {
        struct unit_write write;

        life->next = life->next_at_end && place + 1 < count ? NULL : next;
        if (is_unit(&ops[place], &write) && life->model != SIM_MODEL_KILL) {
            cut_here(life, cutter, &write);
        }
        (void)sim_cutter_step(cutter);
        sim_knowledge_pass(&life->knowledge, &life->history, &ops[place],
                           life->refused);
        if (is_mere_mark(&ops[place]) ||
            sim_knowledge_grows(ops, count, place + 1)) {
            continue;
        }
        tally.places++;
        cut_here(life, cutter, NULL);
        if (life->model == SIM_MODEL_ANY_ORDER) {
            sample_garbage(life, cutter);
        }
    }
    life->next = next;
    sim_cutter_free(cutter);
}

/* Live through the script from `image` (taken over), and cut it under all models,
 * or under one. */
static void live(struct life *life, struct sim_image *image, uint64_t seed,
                 const struct sim_start *start, enum sim_model first,
                 enum sim_model last)
{
    struct sim_step steps[SIM_STEPS_MAX];
    const size_t count = sim_spell(life->letters, seed, steps);

    sim_world_init(&life->world, image, &life->history, start->head,
                   start->created, 1, &setting);
    life->world.lsn_high = start->lsn_high;
    life->world.anchor_sequence = start->anchor_sequence;
    life->world.rotten = start->rot;
    sim_world_run(&life->world, steps, count, NULL);
    if (life->world.problem[0] != '\0') {
        fail_msg("script %s: %s", life->letters, life->world.problem);
    }
    tally.lives++;
    life->refused = calloc(life->history.count + 1, sizeof(bool));
    assert_non_null(life->refused);
    for (life->model = first; life->model <= last; life->model++) {
        sim_knowledge_init(&life->knowledge, &life->history, start,
                           life->refused);
        cut_everywhere(life);
    }
    free(life->refused);
}

/* A life of its own, which knows nothing of what came after the cut. */
static void live_on(struct life *before, const struct sim_image *image,
                    const struct sim_verdict *verdict)
{
    struct life life = {.letters = before->next};
    const uint32_t count = before->knowledge.issued + 1;
    const struct sim_start start = sim_start_after(&before->knowledge, verdict);

    life.history = (struct sim_history){
        .batches = malloc(count * sizeof *before->history.batches),
        .count = count,
        .capacity = count,
    };
    assert_non_null(life.history.batches);
    memcpy(life.history.batches, before->history.batches,
           count * sizeof *before->history.batches);
    live(&life, sim_image_copy(image), 0, &start, before->model, before->model);
    sim_world_deinit(&life.world);
    sim_history_deinit(&life.history);
}

/* ---- Worlds --------------------------------------------------------------------------- */

struct expectation {
    uint64_t distinct_min;
    bool rotates;
    bool torn;
    bool in_checkpoint;
    bool sync_lost;
    uint64_t snapshots; /* At least. */
    bool trims;
};

static uint64_t count_lost_syncs(const struct sim_world *world)
{
    size_t count;
    const struct sim_op *ops = sim_disk_ops(world->disk, &count);
    uint64_t lost = 0;

    for (size_t index = 0; index < count; index++) {
        lost += ops[index].kind == SIM_OP_SYNC_LOST;
    }
    return lost;
}

static void enumerate(const char *letters, uint64_t seed, const char *next,
                      bool next_at_end, const struct expectation *expectation)
{
    const struct sim_start nothing = {0};
    struct life life = {
        .letters = letters, .next = next, .next_at_end = next_at_end};

    tally = (struct tally){0};
    forget_seen();
    sim_history_init(&life.history);
    live(&life, sim_world_first_image(), seed, &nothing, SIM_MODEL_KILL,
         SIM_MODEL_ANY_ORDER);
    print_message(
        "             %s%s%s: %llu disks (%llu different) at %llu "
        "places of %llu lives; at most %llu a place (%u choices); "
        "%llu torn, %llu lost relaxed commits, %llu in a "
        "checkpoint\n",
        letters, next == NULL ? "" : " + ", next == NULL ? "" : next,
        (unsigned long long)tally.disks, (unsigned long long)tally.distinct,
        (unsigned long long)tally.places, (unsigned long long)tally.lives,
        (unsigned long long)tally.combinations_max, tally.digits_max,
        (unsigned long long)tally.torn, (unsigned long long)tally.relaxed_lost,
        (unsigned long long)tally.in_checkpoint);
    /* Lives after a cut are fewer, too, when not all disks are examined. */
    assert_true(tally.distinct >= expectation->distinct_min ||
                (next != NULL && EXAMINED_ONE_IN > 1));
    assert_true(!expectation->torn || tally.torn > 0 || EXAMINED_ONE_IN > 1);
    assert_true(!expectation->in_checkpoint || tally.in_checkpoint > 0);
    assert_true(!expectation->sync_lost || count_lost_syncs(&life.world) > 0);
    assert_true(!expectation->rotates ||
                wal_writer_stats(life.world.store->writer).rotations > 0);
    assert_true(atomic_load(&life.world.store->stat_snapshots) >=
                expectation->snapshots);
    assert_true(!expectation->trims ||
                atomic_load(&life.world.store->stat_segments_removed) > 0);
    sim_world_deinit(&life.world);
    sim_history_deinit(&life.history);
}

static void creation_and_two_durable_commits(void **state)
{
    (void)state;
    enumerate("LD", 0, NULL, false,
              &(struct expectation){.distinct_min = 6000, .torn = true});
}

static void relaxed_commits_and_a_durable_one_over_a_rotation(void **state)
{
    (void)state;
    enumerate("RRRRD", 0, NULL, false,
              &(struct expectation){
                  .distinct_min = 3200, .torn = true, .rotates = true});
}

static void four_relaxed_commits_around_a_rotation(void **state)
{
    (void)state;
    enumerate("DRRRR", 0, NULL, false,
              &(struct expectation){
                  .distinct_min = 4300, .torn = true, .rotates = true});
}

static void a_unit_that_leaves_room_behind_it_at_a_rotation(void **state)
{
    (void)state;
    enumerate("LrLr", 0, NULL, false,
              &(struct expectation){
                  .distinct_min = 12000, .torn = true, .rotates = true});
}

static void a_group_between_relaxed_commits(void **state)
{
    (void)state;
    enumerate("rGr", 1, NULL, false,
              &(struct expectation){.distinct_min = 47000, .torn = true});
}

static void a_sync_of_relaxed_commits_and_a_named_end(void **state)
{
    (void)state;
    enumerate("rrSTr", 0, NULL, false,
              &(struct expectation){.distinct_min = 200, .torn = true});
}

static void a_kill_and_then_a_power_cut(void **state)
{
    (void)state;
    enumerate("DRKRD", 0, NULL, false,
              &(struct expectation){.distinct_min = 2000, .torn = true});
}

static void a_reader_between_relaxed_commits_and_a_kill(void **state)
{
    (void)state;
    enumerate("rVrKVr", 0, NULL, false,
              &(struct expectation){.distinct_min = 190, .torn = true});
}

static void a_checkpoint_in_transactions_between_relaxed_commits(void **state)
{
    (void)state;
    enumerate("MMFCrCrCr", 0, NULL, false,
              &(struct expectation){
                  .distinct_min = 380, .torn = true, .in_checkpoint = true});
}

static void a_clean_close_and_a_new_open(void **state)
{
    (void)state;
    enumerate("DrOrD", 0, NULL, false,
              &(struct expectation){.distinct_min = 330, .torn = true});
}

static void a_sync_that_fails_and_a_new_open(void **state)
{
    (void)state;
    enumerate("rErDrD", 2, NULL, false,
              &(struct expectation){
                  .distinct_min = 220, .torn = true, .sync_lost = true});
}

/* Every disk of a first life, cut again everywhere inside its recovery and the
 * first commit after it. */
static void a_second_power_cut_inside_recovery(void **state)
{
    (void)state;
    enumerate("R", 0, "D", false,
              &(struct expectation){.distinct_min = 70000, .torn = true});
}

/* A gap in three relaxed units; the life after it fills the segment and the next. */
static void a_life_after_every_torn_tail(void **state)
{
    (void)state;
    enumerate("Drrr", 0, "rrD", true,
              &(struct expectation){.distinct_min = 6500, .torn = true});
}

/* Its bytes, its name, ANCHOR: cut between any two of them. */
static void a_snapshot_between_two_commits(void **state)
{
    (void)state;
    enumerate("DPD", 0, NULL, false,
              &(struct expectation){.distinct_min = 250, .snapshots = 1});
}

static void a_snapshot_in_steps_between_relaxed_commits(void **state)
{
    (void)state;
    enumerate("MFCCCprprprprprp", 0, NULL, false,
              &(struct expectation){.distinct_min = 400, .snapshots = 1});
}

/* The second one lets the first segments go. */
static void two_snapshots_and_what_they_let_go(void **state)
{
    (void)state;
    enumerate("LLLPLLLPLP", 0, NULL, false,
              &(struct expectation){.distinct_min = 49000,
                                    .rotates = true,
                                    .snapshots = 3,
                                    .trims = true});
}

static void an_index_that_is_lost_and_built_from_a_snapshot(void **state)
{
    (void)state;
    enumerate("DPrXr", 0, NULL, false,
              &(struct expectation){.distinct_min = 350});
}

/* Cut inside the rebuild, and cut again inside the one that follows. */
static void a_second_power_cut_inside_a_rebuild(void **state)
{
    (void)state;
    enumerate("DPDX", 0, "D", true,
              &(struct expectation){.distinct_min = 1000});
}

/* The second one replaces what the first has copied of the log's last segment. */
static void two_backups_and_relaxed_commits(void **state)
{
    (void)state;
    enumerate("rBrrB", 0, NULL, false,
              &(struct expectation){.distinct_min = 580});
}

static void a_backup_of_a_snapshot_and_a_restore(void **state)
{
    (void)state;
    enumerate("DPrBU", 0, NULL, false,
              &(struct expectation){.distinct_min = 960, .snapshots = 1});
}

static int make_seen(void **state)
{
    (void)state;
    seen = calloc(SEEN_SLOTS, sizeof *seen);
    return seen == NULL ? -1 : 0;
}

static int free_seen(void **state)
{
    (void)state;
    free(seen);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(creation_and_two_durable_commits),
        cmocka_unit_test(relaxed_commits_and_a_durable_one_over_a_rotation),
        cmocka_unit_test(four_relaxed_commits_around_a_rotation),
        cmocka_unit_test(a_unit_that_leaves_room_behind_it_at_a_rotation),
        cmocka_unit_test(a_group_between_relaxed_commits),
        cmocka_unit_test(a_sync_of_relaxed_commits_and_a_named_end),
        cmocka_unit_test(a_kill_and_then_a_power_cut),
        cmocka_unit_test(a_reader_between_relaxed_commits_and_a_kill),
        cmocka_unit_test(a_checkpoint_in_transactions_between_relaxed_commits),
        cmocka_unit_test(a_clean_close_and_a_new_open),
        cmocka_unit_test(a_sync_that_fails_and_a_new_open),
        cmocka_unit_test(a_second_power_cut_inside_recovery),
        cmocka_unit_test(a_life_after_every_torn_tail),
        cmocka_unit_test(a_snapshot_between_two_commits),
        cmocka_unit_test(a_snapshot_in_steps_between_relaxed_commits),
        cmocka_unit_test(two_snapshots_and_what_they_let_go),
        cmocka_unit_test(an_index_that_is_lost_and_built_from_a_snapshot),
        cmocka_unit_test(a_second_power_cut_inside_a_rebuild),
        cmocka_unit_test(two_backups_and_relaxed_commits),
        cmocka_unit_test(a_backup_of_a_snapshot_and_a_restore),
    };

    return cmocka_run_group_tests_name("sim: exhaustive", tests, make_seen,
                                       free_seen);
}
