/*
 * tests/test_sim_machine.c -- the simulated machine itself: what a cut may leave,
 * by the table of tests/sim/cut.h, and what a process sees.
 *
 * An outcome is written as the names in "d/" and "e/" with a letter a sector:
 * "d/f[Ao.]" is a file of three sectors, one full of 'A', one of 'o', one of
 * zeros; '?' is anything else; "-" are empty directories.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/io.h"
#include "tests/sim/cut.h"
#include "tests/sim/map.h"

enum {
    SECTOR = SIM_SECTOR_BYTES,
    PAGE = SIM_PAGE_BYTES,
    OUTCOMES_MAX = 1024,
    OUTCOME_BYTES = 160,
    RANDOM_CUTS = 3000,
};

static const enum sim_model power_cuts[] = {
    SIM_MODEL_ORDERED, SIM_MODEL_OWN_NAME, SIM_MODEL_ANY_ORDER};
enum { POWER_CUTS = 3 };

/* ---- A small vocabulary ------------------------------------------------------ */

static struct sim_disk *disk;
static struct sim_process *process;
static struct io_dir *dirs[2]; /* "d", "e" */
static struct stele_error error;

static int fails; /* -errno of the next sync, or index commit. */

static int fail_once(void *context, enum sim_call call, const char *name,
                     size_t bytes)
{
    const int result = fails;

    (void)context;
    (void)name;
    (void)bytes;
    if (call != SIM_CALL_SYNC && call != SIM_CALL_INDEX_COMMIT) {
        return 0;
    }
    fails = 0;
    return result;
}

/* A machine whose directories hold what `image` says, all of it durable. */
static void start_from(struct sim_image *image)
{
    disk = sim_disk_create(image, 1);
    sim_disk_set_fault(disk, fail_once, NULL);
    process = sim_process_start(disk);
    assert_int_equal(
        io_dir_open(sim_process_io(process), "d", &dirs[0], &error), STELE_OK);
    assert_int_equal(
        io_dir_open(sim_process_io(process), "e", &dirs[1], &error), STELE_OK);
}

static void stop(void)
{
    io_dir_close(dirs[0]);
    io_dir_close(dirs[1]);
    sim_process_end(process);
    sim_disk_free(disk);
}

static int setup(void **state)
{
    struct sim_image *image = sim_image_create();

    (void)state;
    fails = 0;
    for (uint32_t index = 0; index < 2; index++) {
        sim_image_add(image, SIM_ROOT_INODE + 1 + index, IO_TYPE_DIRECTORY);
        sim_image_link(image, SIM_ROOT_INODE, index == 0 ? "d" : "e",
                       SIM_ROOT_INODE + 1 + index);
    }
    start_from(image);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    stop();
    return 0;
}

/* "d/f" */
static struct io_dir *dir_of(const char *path)
{
    return dirs[path[0] == 'd' ? 0 : 1];
}

static struct io_file *open_file(const char *path)
{
    struct io_file *file;

    assert_int_equal(
        io_file_open(dir_of(path), path + 2, IO_OPEN_CREATE, &file, &error),
        STELE_OK);
    return file;
}

static void create(const char *path)
{
    io_file_close(open_file(path));
}

/* A letter a sector, in one write from `sector` on. */
static void write_at(const char *path, uint64_t sector, const char *letters)
{
    struct io_file *file = open_file(path);
    const size_t count = strlen(letters);
    uint8_t *bytes = malloc(count * SECTOR);

    assert_non_null(bytes);
    for (size_t index = 0; index < count; index++) {
        memset(bytes + index * SECTOR,
               letters[index] == '.' ? 0 : letters[index], SECTOR);
    }
    assert_int_equal(
        io_file_write(file, bytes, count * SECTOR, sector * SECTOR, &error),
        STELE_OK);
    free(bytes);
    io_file_close(file);
}

static void sync_file(const char *path)
{
    struct io_file *file = open_file(path);

    assert_int_equal(io_file_sync(file, &error), STELE_OK);
    io_file_close(file);
}

static void sync_file_fails(const char *path)
{
    struct io_file *file = open_file(path);

    fails = -EIO;
    assert_int_equal(io_file_sync(file, &error), STELE_IO);
    io_file_close(file);
}

static void drop_cache(const char *path)
{
    struct io_file *file = open_file(path);

    assert_int_equal(io_file_drop_cache(file, &error), STELE_OK);
    io_file_close(file);
}

static void sync_dir(const char *name)
{
    assert_int_equal(io_dir_sync(dir_of(name), &error), STELE_OK);
}

static void rename_file(const char *from, const char *to)
{
    assert_int_equal(
        io_rename(dir_of(from), from + 2, dir_of(to), to + 2, &error),
        STELE_OK);
}

static void unlink_file(const char *path)
{
    assert_int_equal(io_unlink(dir_of(path), path + 2, &error), STELE_OK);
}

/* Files with these letters, durable, as where the recording starts. */
static void durable(const char *path, const char *letters)
{
    struct sim_image *image;

    write_at(path, 0, letters);
    image = sim_image_copy(sim_disk_cache(disk));
    stop();
    start_from(image);
}

/* ---- Outcomes ------------------------------------------------------------------ */

static char letter_of(const struct sim_node *node, uint64_t offset)
{
    uint8_t bytes[SECTOR];
    const size_t count = sim_node_read(node, bytes, SECTOR, offset);

    for (size_t index = 1; index < count; index++) {
        if (bytes[index] != bytes[0]) {
            return '?';
        }
    }
    if (bytes[0] == 0) {
        return '.';
    }
    return bytes[0] > ' ' && bytes[0] < 127 ? (char)bytes[0] : '?';
}

static int by_text(const void *left, const void *right)
{
    return strcmp(left, right);
}

static void append(char *text, const char *more)
{
    assert_true(strlen(text) + strlen(more) < OUTCOME_BYTES);
    strcat(text, more);
}

static void describe(const struct sim_image *image, char text[OUTCOME_BYTES])
{
    char files[16][OUTCOME_BYTES];
    size_t count = 0;

    for (uint32_t dir = 0; dir < 2; dir++) {
        const struct sim_node *names =
            sim_image_node(image, SIM_ROOT_INODE + 1 + dir);

        for (uint32_t index = 0; index < names->entry_count; index++) {
            const struct sim_node *node =
                sim_image_node(image, names->entries[index].inode);
            char *file = files[count++];

            snprintf(file, OUTCOME_BYTES, "%c/%s[", dir == 0 ? 'd' : 'e',
                     names->entries[index].name);
            for (uint64_t at = 0; at < node->size_bytes; at += SECTOR) {
                const char letter[2] = {letter_of(node, at), '\0'};

                append(file, letter);
            }
            append(file, "]");
        }
    }
    qsort(files, count, OUTCOME_BYTES, by_text);
    strcpy(text, count == 0 ? "-" : "");
    for (size_t index = 0; index < count; index++) {
        append(text, index == 0 ? "" : ",");
        append(text, files[index]);
    }
}

/* A set of outcomes, and how often one came. */
struct outcomes {
    char texts[OUTCOMES_MAX][OUTCOME_BYTES];
    size_t count;
    size_t images;
};

static struct outcomes outcomes;

static void note(const struct sim_image *image)
{
    char text[OUTCOME_BYTES];
    size_t index = 0;

    describe(image, text);
    outcomes.images++;
    while (index < outcomes.count && strcmp(outcomes.texts[index], text) != 0) {
        index++;
    }
    if (index == outcomes.count) {
        assert_true(outcomes.count < OUTCOMES_MAX);
        strcpy(outcomes.texts[outcomes.count++], text);
    }
}

static struct sim_cutter *cutter_at_end(enum sim_model model)
{
    size_t count;
    const struct sim_op *ops = sim_disk_ops(disk, &count);
    struct sim_cutter *cutter =
        sim_cutter_create(sim_disk_start(disk), ops, count, model);

    while (sim_cutter_step(cutter) != NULL) {
    }
    return cutter;
}

static void crash_each(const struct sim_cutter *cutter, size_t grain)
{
    struct sim_choice choice;

    outcomes.count = 0;
    outcomes.images = 0;
    sim_choice_each(&choice, grain);
    do {
        struct sim_image *image = sim_cutter_crash(cutter, &choice);

        assert_true(choice.digits_wanted <= SIM_DIGITS_MAX);
        note(image);
        sim_image_free(image);
    } while (sim_choice_next(&choice));
}

/* What a cut now may leave, each of them once. */
static void assert_leaves(enum sim_model model, const char *expected)
{
    struct sim_cutter *cutter = cutter_at_end(model);
    char wanted[OUTCOMES_MAX];
    size_t count = 0;

    crash_each(cutter, SECTOR);
    sim_cutter_free(cutter);
    snprintf(wanted, sizeof wanted, "%s", expected);
    for (char *text = strtok(wanted, " "); text != NULL;
         text = strtok(NULL, " "), count++) {
        size_t index = 0;

        while (index < outcomes.count &&
               strcmp(outcomes.texts[index], text) != 0) {
            index++;
        }
        if (index == outcomes.count) {
            fail_msg("%s: %s does not come", sim_model_name(model), text);
        }
    }
    if (outcomes.count != count) {
        for (size_t index = 0; index < outcomes.count; index++) {
            print_message("%s\n", outcomes.texts[index]);
        }
        fail_msg("%s: %zu outcomes, not %zu", sim_model_name(model),
                 outcomes.count, count);
    }
}

static void assert_every_cut_leaves(const char *expected)
{
    for (size_t index = 0; index < POWER_CUTS; index++) {
        assert_leaves(power_cuts[index], expected);
    }
}

/* A random cut now; the caller's. */
static struct sim_image *crash_as(enum sim_model model,
                                  enum sim_choice_kind kind, uint64_t seed)
{
    struct sim_cutter *cutter = cutter_at_end(model);
    struct sim_choice choice = {
        .kind = kind, .grain_bytes = SECTOR, .random = {.state = seed}};
    struct sim_image *image = sim_cutter_crash(cutter, &choice);

    sim_cutter_free(cutter);
    return image;
}

static void crash_randomly(enum sim_model model)
{
    outcomes.count = 0;
    outcomes.images = 0;
    for (uint64_t seed = 1; seed <= RANDOM_CUTS; seed++) {
        struct sim_image *image = crash_as(model, SIM_CHOOSE_COIN, seed);

        note(image);
        sim_image_free(image);
    }
}

static bool has_outcome(const char *text)
{
    for (size_t index = 0; index < outcomes.count; index++) {
        if (strcmp(outcomes.texts[index], text) == 0) {
            return true;
        }
    }
    return false;
}

/* ---- Names ---------------------------------------------------------------------- */

static void unsynced_names_are_a_prefix_or_any_subset(void **state)
{
    (void)state;
    create("d/f");
    create("d/g");
    assert_leaves(SIM_MODEL_ORDERED, "- d/f[] d/f[],d/g[]");
    assert_leaves(SIM_MODEL_OWN_NAME, "- d/f[] d/g[] d/f[],d/g[]");
    assert_leaves(SIM_MODEL_ANY_ORDER, "- d/f[] d/g[] d/f[],d/g[]");
}

static void a_later_name_may_be_there_without_an_earlier_unlink(void **state)
{
    (void)state;
    durable("d/f", "o");
    unlink_file("d/f");
    create("d/g");
    assert_leaves(SIM_MODEL_ORDERED, "d/f[o] - d/g[]");
    assert_leaves(SIM_MODEL_OWN_NAME, "d/f[o] - d/g[] d/f[o],d/g[]");
    assert_leaves(SIM_MODEL_ANY_ORDER, "d/f[o] - d/g[] d/f[o],d/g[]");
}

static void a_rename_is_whole_and_replaces(void **state)
{
    (void)state;
    durable("d/f", "o");
    durable("d/t", "A");
    rename_file("d/t", "d/f");
    assert_every_cut_leaves("d/f[o],d/t[A] d/f[A]");
}

static void either_directorys_sync_commits_a_rename_between_them(void **state)
{
    static const char *const names[] = {"d", "e"};

    for (size_t index = 0; index < 2; index++) {
        durable("d/f", "o");
        rename_file("d/f", "e/f");
        sync_dir(names[index]);
        assert_every_cut_leaves("e/f[o]");
        teardown(state);
        setup(state);
    }
}

static void a_directorys_sync_commits_its_names_and_in_order_all_earlier(
    void **state)
{
    (void)state;
    create("e/g");
    create("d/f");
    sync_dir("d");
    create("d/h");
    assert_leaves(SIM_MODEL_ORDERED, "d/f[],e/g[] d/f[],d/h[],e/g[]");
    assert_leaves(SIM_MODEL_OWN_NAME,
                  "d/f[] d/f[],e/g[] d/f[],d/h[] d/f[],d/h[],e/g[]");
    assert_leaves(SIM_MODEL_ANY_ORDER,
                  "d/f[] d/f[],e/g[] d/f[],d/h[] d/f[],d/h[],e/g[]");
}

static void a_directorys_sync_commits_no_data(void **state)
{
    (void)state;
    write_at("d/f", 0, "A");
    sync_dir("d");
    assert_every_cut_leaves("d/f[] d/f[.] d/f[A]");
}

/* ---- What a file's sync commits -------------------------------------------------- */

static void a_files_sync_commits_its_data_and_names_by_the_model(void **state)
{
    (void)state;
    create("d/g");
    write_at("d/f", 0, "A");
    sync_file("d/f");
    assert_leaves(SIM_MODEL_ORDERED, "d/f[A],d/g[]");
    assert_leaves(SIM_MODEL_OWN_NAME, "d/f[A] d/f[A],d/g[]");
    assert_leaves(SIM_MODEL_ANY_ORDER, "- d/f[A] d/g[] d/f[A],d/g[]");
}

static void a_files_sync_commits_no_other_files_data(void **state)
{
    (void)state;
    durable("d/f", "o");
    durable("d/g", "o");
    write_at("d/g", 0, "B");
    write_at("d/f", 0, "A");
    sync_file("d/f");
    assert_every_cut_leaves("d/f[A],d/g[o] d/f[A],d/g[B]");
}

static void what_is_written_after_a_sync_is_pending_again(void **state)
{
    (void)state;
    durable("d/f", "o");
    write_at("d/f", 0, "A");
    sync_file("d/f");
    write_at("d/f", 0, "B");
    assert_every_cut_leaves("d/f[A] d/f[B]");
}

/* ---- Data and sizes ---------------------------------------------------------------- */

static void each_sector_of_a_write_arrives_by_itself(void **state)
{
    (void)state;
    durable("d/f", "oo");
    write_at("d/f", 0, "AB");
    assert_every_cut_leaves("d/f[oo] d/f[Ao] d/f[oB] d/f[AB]");
}

static void a_sector_written_twice_has_three_versions(void **state)
{
    (void)state;
    durable("d/f", "o");
    write_at("d/f", 0, "A");
    write_at("d/f", 0, "B");
    assert_every_cut_leaves("d/f[o] d/f[A] d/f[B]");
}

/* The later write may be there where the earlier one is not. */
static void a_gap_may_be_followed_by_a_later_write(void **state)
{
    (void)state;
    durable("d/f", "...");
    write_at("d/f", 0, "A");
    write_at("d/f", 1, "B");
    write_at("d/f", 2, "C");
    assert_every_cut_leaves("d/f[...] d/f[A..] d/f[.B.] d/f[..C] d/f[AB.] "
                            "d/f[A.C] d/f[.BC] d/f[ABC]");
}

static void a_size_arrives_independently_of_the_data(void **state)
{
    (void)state;
    durable("d/f", "o");
    write_at("d/f", 1, "A");
    write_at("d/f", 2, "B");
    assert_every_cut_leaves("d/f[o] d/f[o.] d/f[oA] d/f[o..] d/f[oA.] d/f[o.B] "
                            "d/f[oAB]");
}

static void a_grain_of_a_page_tears_between_pages_only(void **state)
{
    struct sim_cutter *cutter;

    (void)state;
    durable("d/f", "oooooooooooooooo");
    write_at("d/f", 0, "AAAAAAAABBBBBBBB");
    cutter = cutter_at_end(SIM_MODEL_ORDERED);
    crash_each(cutter, PAGE);
    sim_cutter_free(cutter);
    assert_int_equal(outcomes.count, 4);
    assert_true(has_outcome("d/f[AAAAAAAAoooooooo]"));
    assert_true(has_outcome("d/f[ooooooooBBBBBBBB]"));
}

/* A power cut does not move what was durable. */
static void durable_bytes_and_names_stay(void **state)
{
    (void)state;
    durable("d/f", "oo");
    write_at("d/f", 1, "A");
    write_at("d/g", 0, "B");
    for (size_t index = 0; index < POWER_CUTS; index++) {
        crash_randomly(power_cuts[index]);
        for (size_t found = 0; found < outcomes.count; found++) {
            assert_int_equal(
                strncmp(outcomes.texts[found], "d/f[o", strlen("d/f[o")), 0);
        }
    }
}

/* ---- Zeros and garbage --------------------------------------------------------------- */

static void only_any_order_leaves_zeros_or_garbage(void **state)
{
    (void)state;
    durable("d/f", "o");
    write_at("d/f", 0, "A");
    crash_randomly(SIM_MODEL_ORDERED);
    assert_int_equal(outcomes.count, 2);
    crash_randomly(SIM_MODEL_OWN_NAME);
    assert_int_equal(outcomes.count, 2);
    crash_randomly(SIM_MODEL_ANY_ORDER);
    assert_int_equal(outcomes.count, 4);
    assert_true(has_outcome("d/f[.]"));
    assert_true(has_outcome("d/f[?]"));
}

/* The drive does not touch what it was not told to change. */
static void nothing_is_spoiled_where_pending_bytes_are_the_durable_ones(
    void **state)
{
    (void)state;
    durable("d/f", "oo");
    write_at("d/f", 0, "oA");
    crash_randomly(SIM_MODEL_ANY_ORDER);
    assert_int_equal(outcomes.count, 4);
    for (size_t index = 0; index < outcomes.count; index++) {
        assert_int_equal(outcomes.texts[index][4], 'o');
    }
}

/* ---- A sync that fails ------------------------------------------------------------------ */

static char seen(const char *path)
{
    struct io_file *file = open_file(path);
    uint8_t bytes[SECTOR];

    assert_int_equal(io_file_read_exact(file, bytes, SECTOR, 0, &error),
                     STELE_OK);
    io_file_close(file);
    return (char)bytes[0];
}

static void what_a_failed_sync_lost_never_arrives_but_stays_readable(
    void **state)
{
    (void)state;
    durable("d/f", "oo");
    write_at("d/f", 0, "A");
    sync_file_fails("d/f");
    assert_every_cut_leaves("d/f[oo]");
    assert_int_equal(seen("d/f"), 'A');
    sync_file("d/f"); /* It says that all is well. */
    assert_every_cut_leaves("d/f[oo]");
    assert_int_equal(seen("d/f"), 'A');
    write_at("d/f", 1, "B"); /* And later data does arrive: behind a hole. */
    sync_file("d/f");
    assert_every_cut_leaves("d/f[oB]");
    assert_leaves(SIM_MODEL_KILL, "d/f[AB]");
}

static void the_same_bytes_written_again_do_arrive(void **state)
{
    (void)state;
    durable("d/f", "o");
    write_at("d/f", 0, "A");
    sync_file_fails("d/f");
    write_at("d/f", 0, "A");
    assert_every_cut_leaves("d/f[o] d/f[A]");
    sync_file("d/f");
    assert_every_cut_leaves("d/f[A]");
}

static void without_the_cache_the_old_bytes_are_read(void **state)
{
    (void)state;
    durable("d/f", "oo");
    write_at("d/f", 0, "A");
    sync_file_fails("d/f");
    write_at("d/f", 1, "B");
    sync_file("d/f");
    drop_cache("d/f");
    assert_int_equal(seen("d/f"), 'o');
    assert_leaves(SIM_MODEL_KILL, "d/f[oB]");
    assert_every_cut_leaves("d/f[oB]");
}

static void dropping_the_cache_keeps_what_is_merely_pending(void **state)
{
    (void)state;
    durable("d/f", "o");
    write_at("d/f", 0, "A");
    drop_cache("d/f");
    assert_int_equal(seen("d/f"), 'A');
}

/* A size that was asked for may have come before the sync failed. */
static void a_failed_sync_may_leave_the_size(void **state)
{
    struct io_file *file;

    (void)state;
    durable("d/f", "o");
    file = open_file("d/f");
    assert_int_equal(io_file_grow(file, 2 * SECTOR, &error), STELE_OK);
    io_file_close(file);
    write_at("d/f", 1, "A");
    sync_file_fails("d/f");
    assert_every_cut_leaves("d/f[o] d/f[o.]");
}

/* ---- Kill, and the index --------------------------------------------------------------- */

static void a_kill_keeps_everything(void **state)
{
    (void)state;
    durable("d/f", "oo");
    write_at("d/f", 0, "A");
    write_at("d/f", 0, "B");
    create("d/g");
    rename_file("d/g", "e/g");
    assert_leaves(SIM_MODEL_KILL, "d/f[Bo],e/g[]");
}

static uint32_t index_inode(void)
{
    create("d/index");
    return sim_image_walk(sim_disk_cache(disk), "d/index");
}

/* Commit a map with one entry more. */
static int commit_map(uint32_t inode, const char *key)
{
    const struct sim_map *before =
        sim_image_node(sim_disk_cache(disk), inode)->map;
    struct sim_map *map =
        before == NULL ? sim_map_create() : sim_map_copy(before);
    int result;

    sim_map_put(map, (struct bytes){key, strlen(key)}, (struct bytes){"v", 1});
    result = sim_disk_commit_map(disk, inode, map);
    sim_map_unref(map);
    return result;
}

/* How many entries it may have after a cut behind `skip` operations from the
 * end: a bit for each number. */
static unsigned index_sizes(enum sim_model model, uint32_t inode, size_t skip)
{
    size_t count;
    const struct sim_op *ops = sim_disk_ops(disk, &count);
    struct sim_cutter *cutter =
        sim_cutter_create(sim_disk_start(disk), ops, count - skip, model);
    struct sim_choice choice;
    unsigned sizes = 0;

    while (sim_cutter_step(cutter) != NULL) {
    }
    sim_choice_each(&choice, SECTOR);
    do {
        struct sim_image *image = sim_cutter_crash(cutter, &choice);
        const struct sim_map *map = sim_image_node(image, inode)->map;

        sizes |= 1u << (map == NULL ? 0 : sim_map_count(map));
        sim_image_free(image);
    } while (sim_choice_next(&choice));
    sim_cutter_free(cutter);
    return sizes;
}

static void an_index_is_as_last_committed_or_as_in_flight(void **state)
{
    const uint32_t inode = index_inode();

    (void)state;
    assert_int_equal(commit_map(inode, "a"), 0);
    assert_int_equal(commit_map(inode, "b"), 0);
    for (unsigned model = 0; model < SIM_MODELS; model++) {
        assert_int_equal(index_sizes(model, inode, 0), 1u << 2);
        assert_int_equal(index_sizes(model, inode, 1), 1u << 1 | 1u << 2);
        assert_int_equal(index_sizes(model, inode, 2), 1u << 1);
    }
}

static void an_index_commit_that_failed_may_yet_be_there(void **state)
{
    const uint32_t inode = index_inode();

    (void)state;
    assert_int_equal(commit_map(inode, "a"), 0);
    fails = -EIO;
    assert_int_equal(commit_map(inode, "b"), -EIO);
    for (unsigned model = 0; model < SIM_MODELS; model++) {
        assert_int_equal(index_sizes(model, inode, 0), 1u << 1 | 1u << 2);
    }
    assert_int_equal(
        sim_map_count(sim_image_node(sim_disk_cache(disk), inode)->map), 1);
}

/* ---- Processes -------------------------------------------------------------------------- */

static void a_lock_belongs_to_its_process_and_goes_with_it(void **state)
{
    struct sim_process *other = sim_process_start(disk);
    struct io_dir *dir;
    struct io_file *mine;
    struct io_file *its;
    struct io_file *again;
    bool held;

    (void)state;
    assert_int_equal(io_dir_open(sim_process_io(other), "d", &dir, &error),
                     STELE_OK);
    its = NULL;
    assert_int_equal(io_file_open(dir, "LOCK", IO_OPEN_CREATE, &its, &error),
                     STELE_OK);
    mine = open_file("d/LOCK");
    again = open_file("d/LOCK");
    assert_int_equal(io_file_lock(its, 0, &error), STELE_OK);
    assert_int_equal(io_file_lock(mine, 0, &error), STELE_LOCKED);
    assert_int_equal(io_file_lock_held(mine, 0, &held, &error), STELE_OK);
    assert_true(held);
    assert_int_equal(io_file_lock_held(its, 0, &held, &error), STELE_OK);
    assert_false(held);     /* By somebody else, that is. */
    sim_process_end(other); /* Killed: nobody closed anything. */
    assert_int_equal(io_file_lock(mine, 0, &error), STELE_OK);
    assert_int_equal(io_file_lock(again, 0, &error), STELE_LOCKED);
    io_file_close(mine);
    assert_int_equal(io_file_lock(again, 0, &error), STELE_OK);
    io_file_close(again);
    free(its); /* The dead process's memory. */
    free(dir);
}

static void the_number_of_open_descriptors_is_known(void **state)
{
    const uint32_t before = sim_process_open_count(process);
    struct io_file *file = open_file("d/f");

    (void)state;
    assert_int_equal(sim_process_open_count(process), before + 1);
    io_file_close(file);
    assert_int_equal(sim_process_open_count(process), before);
}

/* ---- Images and choices ------------------------------------------------------------------- */

static void writing_to_a_copy_does_not_change_the_original(void **state)
{
    struct sim_image *copy;
    uint64_t digest;
    uint32_t inode;

    (void)state;
    durable("d/f", "oo");
    inode = sim_image_walk(sim_disk_cache(disk), "d/f");
    digest = sim_image_digest(sim_disk_cache(disk));
    copy = sim_image_copy(sim_disk_cache(disk));
    assert_true(sim_image_digest(copy) == digest);
    sim_image_write(copy, inode, "x", 1, SECTOR);
    sim_image_resize(copy, inode, 3 * SECTOR);
    sim_image_link(copy, SIM_ROOT_INODE + 1, "g", inode);
    assert_true(sim_image_digest(copy) != digest);
    assert_true(sim_image_digest(sim_disk_cache(disk)) == digest);
    sim_image_free(copy);
}

/* And what a process writes does not change what the recording started from. */
static void the_start_of_a_recording_stays_as_it_was(void **state)
{
    uint64_t digest;

    (void)state;
    durable("d/f", "o");
    digest = sim_image_digest(sim_disk_start(disk));
    write_at("d/f", 0, "A");
    sync_file("d/f");
    unlink_file("d/f");
    assert_true(sim_image_digest(sim_disk_start(disk)) == digest);
}

static void cut_images_do_not_share_what_is_written_to_them(void **state)
{
    struct sim_image *left;
    struct sim_image *right;
    uint64_t digest;

    (void)state;
    durable("d/f", "o");
    write_at("d/f", 0, "A");
    left = crash_as(SIM_MODEL_ORDERED, SIM_CHOOSE_NEWEST, 1);
    right = crash_as(SIM_MODEL_ORDERED, SIM_CHOOSE_NEWEST, 1);
    digest = sim_image_digest(right);
    sim_image_write(left, sim_image_walk(left, "d/f"), "x", 1, 0);
    assert_true(sim_image_digest(right) == digest);
    assert_leaves(SIM_MODEL_KILL, "d/f[A]");
    sim_image_free(left);
    sim_image_free(right);
}

static void the_odometer_visits_each_combination_exactly_once(void **state)
{
    struct sim_cutter *cutter;

    (void)state;
    durable("d/f", "ooo");
    write_at("d/f", 0, "ABC"); /* Sectors of 2, 3 and 4 versions, ... */
    write_at("d/f", 1, "DE");
    write_at("d/f", 2, "F");
    create("d/g"); /* ... and two names. */
    create("d/h");
    cutter = cutter_at_end(SIM_MODEL_OWN_NAME);
    crash_each(cutter, SECTOR);
    sim_cutter_free(cutter);
    assert_int_equal(outcomes.images, 2 * 3 * 4 * 2 * 2);
    assert_int_equal(outcomes.count, outcomes.images);
}

static void too_many_choices_are_told(void **state)
{
    char letters[SIM_DIGITS_MAX + 2];
    struct sim_cutter *cutter;
    struct sim_choice choice;

    (void)state;
    memset(letters, 'o', sizeof letters);
    letters[SIM_DIGITS_MAX + 1] = '\0';
    durable("d/f", letters);
    memset(letters, 'A', SIM_DIGITS_MAX + 1);
    write_at("d/f", 0, letters);
    cutter = cutter_at_end(SIM_MODEL_ORDERED);
    sim_choice_each(&choice, SECTOR);
    sim_image_free(sim_cutter_crash(cutter, &choice));
    assert_int_equal(choice.digits_wanted, SIM_DIGITS_MAX + 1);
    sim_cutter_free(cutter);
}

static void the_oldest_is_what_was_synced_and_the_newest_what_was_done(
    void **state)
{
    (void)state;
    durable("d/f", "o");
    write_at("d/f", 0, "AB");
    create("d/g");
    for (size_t index = 0; index < POWER_CUTS; index++) {
        struct sim_image *oldest =
            crash_as(power_cuts[index], SIM_CHOOSE_OLDEST, 1);
        struct sim_image *newest =
            crash_as(power_cuts[index], SIM_CHOOSE_NEWEST, 1);

        assert_true(sim_image_digest(oldest) ==
                    sim_image_digest(sim_disk_start(disk)));
        assert_true(sim_image_digest(newest) ==
                    sim_image_digest(sim_disk_cache(disk)));
        sim_image_free(oldest);
        sim_image_free(newest);
    }
}

static void a_seed_gives_the_same_disk_again(void **state)
{
    uint64_t different = 0;
    uint64_t last = 0;

    (void)state;
    durable("d/f", "oooo");
    write_at("d/f", 0, "ABCD");
    for (uint64_t seed = 1; seed <= 20; seed++) {
        struct sim_image *left =
            crash_as(SIM_MODEL_ANY_ORDER, SIM_CHOOSE_COIN, seed);
        struct sim_image *right =
            crash_as(SIM_MODEL_ANY_ORDER, SIM_CHOOSE_COIN, seed);

        assert_true(sim_image_digest(left) == sim_image_digest(right));
        different += sim_image_digest(left) != last;
        last = sim_image_digest(left);
        sim_image_free(left);
        sim_image_free(right);
    }
    assert_true(different > 10);
}

#define MACHINE_TEST(name)                                                     \
    cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        MACHINE_TEST(unsynced_names_are_a_prefix_or_any_subset),
        MACHINE_TEST(a_later_name_may_be_there_without_an_earlier_unlink),
        MACHINE_TEST(a_rename_is_whole_and_replaces),
        MACHINE_TEST(either_directorys_sync_commits_a_rename_between_them),
        MACHINE_TEST(
            a_directorys_sync_commits_its_names_and_in_order_all_earlier),
        MACHINE_TEST(a_directorys_sync_commits_no_data),
        MACHINE_TEST(a_files_sync_commits_its_data_and_names_by_the_model),
        MACHINE_TEST(a_files_sync_commits_no_other_files_data),
        MACHINE_TEST(what_is_written_after_a_sync_is_pending_again),
        MACHINE_TEST(each_sector_of_a_write_arrives_by_itself),
        MACHINE_TEST(a_sector_written_twice_has_three_versions),
        MACHINE_TEST(a_gap_may_be_followed_by_a_later_write),
        MACHINE_TEST(a_size_arrives_independently_of_the_data),
        MACHINE_TEST(a_grain_of_a_page_tears_between_pages_only),
        MACHINE_TEST(durable_bytes_and_names_stay),
        MACHINE_TEST(only_any_order_leaves_zeros_or_garbage),
        MACHINE_TEST(
            nothing_is_spoiled_where_pending_bytes_are_the_durable_ones),
        MACHINE_TEST(what_a_failed_sync_lost_never_arrives_but_stays_readable),
        MACHINE_TEST(the_same_bytes_written_again_do_arrive),
        MACHINE_TEST(without_the_cache_the_old_bytes_are_read),
        MACHINE_TEST(dropping_the_cache_keeps_what_is_merely_pending),
        MACHINE_TEST(a_failed_sync_may_leave_the_size),
        MACHINE_TEST(a_kill_keeps_everything),
        MACHINE_TEST(an_index_is_as_last_committed_or_as_in_flight),
        MACHINE_TEST(an_index_commit_that_failed_may_yet_be_there),
        MACHINE_TEST(a_lock_belongs_to_its_process_and_goes_with_it),
        MACHINE_TEST(the_number_of_open_descriptors_is_known),
        MACHINE_TEST(writing_to_a_copy_does_not_change_the_original),
        MACHINE_TEST(the_start_of_a_recording_stays_as_it_was),
        MACHINE_TEST(cut_images_do_not_share_what_is_written_to_them),
        MACHINE_TEST(the_odometer_visits_each_combination_exactly_once),
        MACHINE_TEST(too_many_choices_are_told),
        MACHINE_TEST(
            the_oldest_is_what_was_synced_and_the_newest_what_was_done),
        MACHINE_TEST(a_seed_gives_the_same_disk_again),
    };

    return cmocka_run_group_tests_name("sim: machine", tests, NULL, NULL);
}
