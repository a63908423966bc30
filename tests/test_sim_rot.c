/*
 * tests/test_sim_rot.c -- one flipped bit in any byte of any file that opening
 * reads is refused, or provably harmless; so is a file that is cut short, gone,
 * doubled, swapped, older or another store's.
 *
 * What must become of a byte is told by what stands there:
 *
 *     a slot of ANCHOR          harmless: the other slot is valid
 *     the hint, LOCK            harmless: advice, text
 *     a segment's header        refused
 *     a unit, proven durable    refused
 *     a unit, not proven        dropped with all behind it, and reported as torn
 *     behind a header or unit   harmless: no checksum covers the zeros up to the
 *                               next page, and nothing reads them
 *     a tail of zeros           harmless: reported as torn, or not looked at
 *     a torn tail, retired      harmless: it is not part of the log
 *     a snapshot                harmless: the index is a base, and without it the
 *                               older snapshot; set aside when it is noticed
 *
 * What lies before the base (the index's position) opening does not read; there
 * stele_verify() must find it.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/numbered.h"
#include "snapshot/format.h"
#include "tests/lib/sanitized.h"
#include "tests/sim/oracle.h"
#include "tests/sim/spell.h"
#include "wal/reader.h"
#include "wal/segment.h"

enum {
    SEGMENT_BYTES = 16 << 10,
    SEGMENT_USED_BYTES = 64, /* Of its header page. */
    MEMTABLE_BYTES = 128 << 10,
    SECTOR = SIM_SECTOR_BYTES,
    PAGE = SIM_PAGE_BYTES,
    UNITS_MAX = 32,
    MESSAGE_BYTES = 300,
    BYTES_STRIDE = SANITIZED_CHOICE(1, 31), /* Of what means something. */
    FILES_STRIDE = SANITIZED_CHOICE(1, 7),  /* Of truncations and slots. */
    ZEROS_STRIDE = 13,  /* Among zeros every byte is like the others. */
    GOES_ON_ONE_IN = 97 /* Is the next commit taken, and found again? */
};

static const struct sim_setting setting = {.segment_bytes = SEGMENT_BYTES,
                                           .memtable_bytes = MEMTABLE_BYTES,
                                           .fs_kind = IO_FS_OVERWRITE};

/* ---- Subjects: disks to damage ------------------------------------------------ */

struct unit_fact {
    uint64_t number;
    uint64_t segment;
    uint64_t offset;
    uint64_t used_bytes;   /* Header and body. */
    uint64_t padded_bytes; /* Up to the next unit. */
    uint32_t batch;        /* The state after it. */
};

struct subject {
    struct sim_history history;
    struct sim_image *image;
    uint32_t found;           /* The state that opening shows. */
    struct wal_position base; /* Opening reads from here on. */
    uint64_t applying;        /* Unit; above the base's: in a checkpoint. */
    uint64_t proven;          /* Unit. */
    struct wal_anchor anchor;
    uint64_t evidence_outside; /* Unit that ANCHOR or the index names. */
    uint64_t segment_last;     /* That exists. */
    struct unit_fact units[UNITS_MAX];
    size_t unit_count;
};

enum ending {
    END_KILLED,
    END_CLOSED,                    /* Everything is in the index. */
    END_CLOSED_WITHOUT_CHECKPOINT, /* Nothing is that was not before. */
};

/* A process and the store that it has open, on a disk of its own. */
struct scene {
    struct sim_disk *disk;
    struct sim_process *process;
    struct stele *store; /* NULL: refused. */
    enum stele_status status;
    struct stele_error error;
};

static void open_scene(struct scene *scene, const struct sim_image *image,
                       enum stele_open_mode mode)
{
    struct stele_options options;
    struct store_tuning tuning;

    *scene = (struct scene){.disk = sim_disk_create(sim_image_copy(image), 1)};
    scene->process = sim_process_start(scene->disk);
    sim_world_options(&setting, sim_process_io(scene->process), mode, &options,
                      &tuning);
    options.skip_close_checkpoint = true;
    scene->status = store_open(SIM_STORE_PATH, &options, &tuning, &scene->store,
                               &scene->error);
}

static void end_scene(struct scene *scene)
{
    if (scene->store != NULL) {
        store_abandon(scene->store);
    }
    assert_int_equal(sim_process_open_count(scene->process), 0);
    sim_process_end(scene->process);
    sim_disk_free(scene->disk);
}

static uint32_t state_of(struct sim_history *history, struct stele *store)
{
    struct stele_view *view;
    struct stele_error error;
    char text[MESSAGE_BYTES];
    uint32_t number;

    if (stele_view_open(store, &view, &error) != STELE_OK) {
        return UINT32_MAX;
    }
    number = sim_world_state_of(history, store, stele_view_lsn(view),
                                history->count, text, sizeof text);
    if (number != UINT32_MAX &&
        !sim_history_matches(history, number, view, text, sizeof text)) {
        number = UINT32_MAX;
    }
    stele_view_close(view);
    return number;
}

/* One more life on the subject's disk. */
static void live(struct subject *subject, const char *letters,
                 enum ending ending)
{
    struct sim_step steps[SIM_STEPS_MAX];
    const size_t count = sim_spell(letters, 0, steps);
    struct sim_world world;
    struct stele_error error;
    const bool created = subject->image != NULL;

    sim_world_init(&world, created ? subject->image : sim_world_first_image(),
                   &subject->history, subject->found, created, 1, &setting);
    sim_world_run(&world, steps, count, NULL);
    if (ending != END_KILLED && world.problem[0] == '\0') {
        world.store->options.skip_close_checkpoint =
            ending == END_CLOSED_WITHOUT_CHECKPOINT;
        assert_int_equal(stele_close(world.store, &error), STELE_OK);
        world.store = NULL;
    }
    if (world.problem[0] != '\0') {
        fail_msg("script %s: %s", letters, world.problem);
    }
    subject->found = world.head;
    subject->image = sim_image_copy(sim_disk_cache(world.disk));
    sim_world_deinit(&world);
}

static uint32_t last_batch(const struct wal_reader_unit *unit)
{
    struct byte_reader in = byte_reader_init(unit->body, unit->unit.body_bytes);
    uint32_t number = 0;

    while (in.offset < in.size) {
        struct wal_record record;

        assert_true(wal_record_decode(&in, &record));
        number = sim_history_number(record.tag);
    }
    return number;
}

static void learn_units(struct subject *subject, const struct stele *store)
{
    const struct wal_position origin = wal_position_origin(&store->uuid, 0);
    struct wal_reader reader;
    struct stele_error error;
    bool whole = true;

    subject->unit_count = 0;
    assert_int_equal(wal_reader_open(&reader, store->wal_dir, &origin, 1,
                                     IO_OPEN_READ, &error),
                     STELE_OK);
    for (;;) {
        struct wal_reader_unit unit;

        assert_int_equal(wal_reader_next(&reader, &unit, &whole, &error),
                         STELE_OK);
        if (!whole) {
            break;
        }
        assert_true(subject->unit_count < UNITS_MAX);
        subject->units[subject->unit_count++] = (struct unit_fact){
            .number = unit.unit.number,
            .segment = unit.position.segment,
            .offset = unit.position.start_offset,
            .used_bytes = WAL_UNIT_HEADER_BYTES + unit.unit.body_bytes,
            .padded_bytes =
                unit.position.end_offset - unit.position.start_offset,
            .batch = last_batch(&unit),
        };
    }
    wal_reader_close(&reader);
}

static void learn_anchor(struct subject *subject)
{
    struct sim_disk *disk = sim_disk_create(sim_image_copy(subject->image), 1);
    struct sim_process *process = sim_process_start(disk);
    struct wal_anchor_file file;
    struct stele_error error;
    struct io_dir *dir;

    assert_int_equal(
        io_dir_open(sim_process_io(process), SIM_STORE_PATH, &dir, &error),
        STELE_OK);
    assert_int_equal(
        wal_anchor_open(dir, IO_OPEN_READ, &file, &subject->anchor, &error),
        STELE_OK);
    assert_true(file.slot_valid[0] && file.slot_valid[1]);
    wal_anchor_close(&file);
    io_dir_close(dir);
    sim_process_end(process);
    sim_disk_free(disk);
}

static void learn(struct subject *subject)
{
    struct scene scene;

    learn_anchor(subject);
    open_scene(&scene, subject->image, STELE_OPEN_EXISTING);
    assert_int_equal(scene.status, STELE_OK);
    assert_int_equal(state_of(&subject->history, scene.store), subject->found);
    assert_false(scene.store->index_rebuilt);
    assert_int_equal(scene.store->recovery.row, WAL_ROW_A);
    subject->base = scene.store->applied;
    subject->applying = scene.store->applying.unit;
    subject->proven = scene.store->recovery.unit_proven;
    subject->segment_last = scene.store->recovery.segment_last;
    subject->evidence_outside = subject->anchor.durable.unit > subject->applying
                                    ? subject->anchor.durable.unit
                                    : subject->applying;
    learn_units(subject, scene.store);
    end_scene(&scene);
}

static uint32_t segment_inode(const struct sim_image *image, uint64_t seq)
{
    char path[64];

    snprintf(path, sizeof path, SIM_STORE_PATH "/wal/%016" PRIx64 ".wal", seq);
    return sim_image_walk(image, path);
}

/* A first segment whose tail was torn, and a life behind it: in other segments,
 * with a checkpoint first if `letters` has one. */
static void make_subject(struct subject *subject, const char *letters,
                         enum ending ending)
{
    *subject = (struct subject){.image = NULL};
    sim_history_init(&subject->history);
    live(subject, "DR", END_KILLED);
    sim_image_write(subject->image, segment_inode(subject->image, 1), NULL,
                    2 * SECTOR, 2 * PAGE + SECTOR);
    subject->found = 1;
    live(subject, letters, ending);
    learn(subject);
}

static void free_subject(struct subject *subject)
{
    sim_image_free(subject->image);
    sim_history_deinit(&subject->history);
}

/* ---- What became of a damaged disk --------------------------------------------- */

enum outcome { REFUSED, SAME, TORN, WRONG };

struct finding {
    enum outcome outcome;
    uint32_t found;    /* SAME, TORN, WRONG: the state. */
    char row;          /* SAME, TORN */
    uint64_t dropped;  /* Bytes. */
    bool rebuilt;      /* The index. */
    bool verify_finds; /* stele_verify() finds something. */
    char message[MESSAGE_BYTES];
};

static uint64_t digest_but_lock(const struct sim_image *image)
{
    struct sim_image *copy = sim_image_copy(image);
    uint64_t digest;

    /* The text in LOCK says who looked. */
    sim_image_unlink(copy, sim_image_walk(copy, SIM_STORE_PATH), "LOCK");
    digest = sim_image_digest(copy);
    sim_image_free(copy);
    return digest;
}

static bool is_refusal_of_damage(enum stele_status status)
{
    return status == STELE_CORRUPT || status == STELE_FOREIGN;
}

static bool verify_finds(struct stele *store)
{
    struct stele_verify_report report = {.size = sizeof report};
    struct stele_error error;
    const enum stele_status status =
        stele_verify(store, NULL, NULL, &report, &error);

    return status != STELE_OK;
}

static struct finding inspect(struct subject *subject,
                              const struct sim_image *image,
                              enum stele_open_mode mode)
{
    struct finding finding = {.outcome = WRONG};
    struct scene scene;

    open_scene(&scene, image, mode);
    if (scene.status != STELE_OK) {
        const uint64_t before = mode == STELE_OPEN_READ_ONLY
                                    ? sim_image_digest(image)
                                    : digest_but_lock(image);
        const uint64_t after =
            mode == STELE_OPEN_READ_ONLY
                ? sim_image_digest(sim_disk_cache(scene.disk))
                : digest_but_lock(sim_disk_cache(scene.disk));

        snprintf(finding.message, sizeof finding.message, "%s",
                 scene.error.message);
        if (is_refusal_of_damage(scene.status) && before == after) {
            finding.outcome = REFUSED;
        }
    } else {
        finding.found = state_of(&subject->history, scene.store);
        finding.row = (char)scene.store->recovery.row;
        finding.dropped = scene.store->recovery.dropped_bytes;
        finding.rebuilt = scene.store->index_rebuilt;
        if (finding.found == subject->found) {
            finding.outcome = SAME;
            finding.verify_finds = verify_finds(scene.store);
        } else if (finding.found < subject->found && finding.row == 'C' &&
                   finding.dropped > 0) {
            finding.outcome = TORN;
        }
        snprintf(finding.message, sizeof finding.message,
                 "opened in state %" PRIu32 " of %" PRIu32 ", row %c",
                 finding.found, subject->found, finding.row);
    }
    end_scene(&scene);
    return finding;
}

/* A commit, a kill, and a look. */
static void assert_goes_on(struct subject *subject,
                           const struct sim_image *image, uint32_t found)
{
    struct subject after = {.image = sim_image_copy(image), .found = found};
    struct scene scene;
    const uint32_t count = subject->history.count;

    after.history = subject->history; /* Borrowed, and cut back again. */
    live(&after, "D", END_KILLED);
    open_scene(&scene, after.image, STELE_OPEN_EXISTING);
    assert_int_equal(scene.status, STELE_OK);
    assert_int_equal(state_of(&after.history, scene.store), after.found);
    end_scene(&scene);
    sim_image_free(after.image);
    subject->history = after.history;
    sim_history_truncate(&subject->history, count);
}

/* ---- What must become of it ------------------------------------------------------ */

enum place {
    PLACE_ANCHOR,
    PLACE_LOCK,
    PLACE_SEGMENT_HEADER,
    PLACE_SEGMENT_PADDING,
    PLACE_UNIT,
    PLACE_UNIT_PADDING,
    PLACE_TAIL, /* Zeros, or what was torn. */
    PLACES,
};

static const char *const place_names[PLACES] = {
    "ANCHOR", "LOCK",          "segment header", "behind a segment's header",
    "unit",   "behind a unit", "tail",
};

struct spot {
    enum place place;
    uint64_t segment; /* 0: not in one. */
    uint64_t offset;
    const struct unit_fact *unit;
};

static struct spot spot_in_segment(const struct subject *subject,
                                   uint64_t segment, uint64_t offset)
{
    struct spot spot = {
        .place = PLACE_TAIL, .segment = segment, .offset = offset};

    if (offset < SEGMENT_USED_BYTES) {
        spot.place = PLACE_SEGMENT_HEADER;
    } else if (offset < PAGE) {
        spot.place = PLACE_SEGMENT_PADDING;
    }
    for (size_t index = 0; index < subject->unit_count; index++) {
        const struct unit_fact *unit = &subject->units[index];

        if (unit->segment == segment && offset >= unit->offset &&
            offset - unit->offset < unit->padded_bytes) {
            spot.unit = unit;
            spot.place = offset - unit->offset < unit->used_bytes
                             ? PLACE_UNIT
                             : PLACE_UNIT_PADDING;
        }
    }
    return spot;
}

/* Whether opening reads this segment. */
static bool is_read(const struct subject *subject, uint64_t segment)
{
    return subject->base.unit == 0 || segment >= subject->base.segment;
}

static uint64_t counts[PLACES][WRONG];
static uint64_t count_verified[PLACES]; /* Of SAME: verify finds it. */
static uint64_t count_reported;         /* Harmless, and reported as torn. */

static const char *judge(const struct subject *subject, const struct spot *spot,
                         const struct finding *finding)
{
    const struct unit_fact *unit = spot->unit;

    switch (spot->place) {
    case PLACE_ANCHOR:
    case PLACE_LOCK:
    case PLACE_SEGMENT_PADDING:
    case PLACE_UNIT_PADDING:
        return finding->outcome == SAME && !finding->verify_finds &&
                       finding->row == 'A'
                   ? NULL
                   : "it should not matter";
    case PLACE_TAIL:
        if (finding->row == 'C' && finding->dropped == 0) {
            return "a torn tail of no bytes";
        }
        return finding->outcome == SAME && !finding->verify_finds
                   ? NULL
                   : "it should not matter";
    case PLACE_SEGMENT_HEADER:
        if (!is_read(subject, spot->segment)) {
            return finding->outcome == SAME && finding->verify_finds
                       ? NULL
                       : "verify should find it";
        }
        return finding->outcome == REFUSED ? NULL : "it should be refused";
    case PLACE_UNIT:
        if (unit->number <= subject->base.unit) {
            return finding->outcome == REFUSED ||
                           (finding->outcome == SAME && finding->verify_finds)
                       ? NULL
                       : "it should be refused, or verify find it";
        }
        if (unit->number <= subject->proven) {
            return finding->outcome == REFUSED ? NULL : "it should be refused";
        }
        return finding->outcome == TORN && finding->found == unit[-1].batch
                   ? NULL
                   : "it should be dropped and reported";
    case PLACES:
        break;
    }
    abort();
}

static void flip(struct subject *subject, uint32_t inode,
                 const struct spot *spot, unsigned bit)
{
    struct sim_image *image = sim_image_copy(subject->image);
    struct finding finding;
    struct finding shown;
    const char *complaint;
    uint8_t byte = 0;

    (void)sim_image_read(image, inode, &byte, 1, spot->offset);
    byte = (uint8_t)(byte ^ 1u << bit);
    sim_image_write(image, inode, &byte, 1, spot->offset);
    finding = inspect(subject, image, STELE_OPEN_EXISTING);
    complaint = judge(subject, spot, &finding);
    if (complaint != NULL) {
        fail_msg("%s, segment %" PRIu64 ", offset %" PRIu64
                 ", bit %u: %s; but: %s (verify finds %s)",
                 place_names[spot->place], spot->segment, spot->offset, bit,
                 complaint, finding.message,
                 finding.verify_finds ? "it" : "nothing");
    }
    shown = inspect(subject, image, STELE_OPEN_READ_ONLY);
    if (shown.outcome != finding.outcome || shown.found != finding.found) {
        fail_msg("%s, segment %" PRIu64 ", offset %" PRIu64
                 ", bit %u: %s; but for a reader: %s",
                 place_names[spot->place], spot->segment, spot->offset, bit,
                 finding.message, shown.message);
    }
    counts[spot->place][finding.outcome]++;
    count_verified[spot->place] += finding.verify_finds;
    count_reported += finding.outcome == SAME && finding.row == 'C';
    if (finding.outcome != REFUSED && finding.verify_finds == false &&
        spot->offset % GOES_ON_ONE_IN == 0) {
        assert_goes_on(subject, image, finding.found);
    }
    sim_image_free(image);
}

static bool is_zero_at(const struct sim_image *image, uint32_t inode,
                       uint64_t offset)
{
    uint8_t byte = 0;

    (void)sim_image_read(image, inode, &byte, 1, offset);
    return byte == 0;
}

static bool is_meaningful(const struct spot *spot)
{
    return spot->place == PLACE_UNIT || spot->place == PLACE_SEGMENT_HEADER ||
           (spot->place == PLACE_ANCHOR &&
            spot->offset % WAL_ANCHOR_SLOT_BYTES < WAL_ANCHOR_USED_BYTES);
}

/* Every byte of what means something; of zeros that do not, every 13th, unless
 * STELE_TEST_ROT_ALL is set. With a sanitizer fewer of both. */
static void flip_file(struct subject *subject, uint32_t inode, uint64_t segment,
                      enum place place)
{
    const uint64_t bytes = sim_image_node(subject->image, inode)->size_bytes;
    const uint64_t stride =
        getenv("STELE_TEST_ROT_ALL") == NULL ? ZEROS_STRIDE : 1;

    for (uint64_t offset = 0; offset < bytes; offset++) {
        struct spot spot = {.place = place, .offset = offset};

        if (segment != 0) {
            spot = spot_in_segment(subject, segment, offset);
        }
        if (offset % (uint64_t)BYTES_STRIDE != 0) {
            continue;
        }
        if (!is_meaningful(&spot) && offset % stride != 0 &&
            is_zero_at(subject->image, inode, offset)) {
            continue;
        }
        flip(subject, inode, &spot, (unsigned)(offset % 8));
    }
}

static void flip_every_byte(struct subject *subject)
{
    memset(counts, 0, sizeof counts);
    memset(count_verified, 0, sizeof count_verified);
    count_reported = 0;
    flip_file(subject, sim_image_walk(subject->image, SIM_STORE_PATH "/ANCHOR"),
              0, PLACE_ANCHOR);
    flip_file(subject, sim_image_walk(subject->image, SIM_STORE_PATH "/LOCK"),
              0, PLACE_LOCK);
    for (uint64_t seq = 1; seq <= subject->segment_last; seq++) {
        flip_file(subject, segment_inode(subject->image, seq), seq, PLACE_TAIL);
    }
    print_message("             %zu units in %" PRIu64
                  " segments, proven up to %" PRIu64 ", base %" PRIu64 ":\n",
                  subject->unit_count, subject->segment_last, subject->proven,
                  subject->base.unit);
    for (unsigned place = 0; place < PLACES; place++) {
        print_message(
            "             %6" PRIu64 " refused %6" PRIu64 " harmless %6" PRIu64
            " left to verify %6" PRIu64 " torn   %s\n",
            counts[place][REFUSED], counts[place][SAME] - count_verified[place],
            count_verified[place], counts[place][TORN], place_names[place]);
    }
    print_message("             %6" PRIu64 " harmless ones were reported as a "
                  "torn tail\n",
                  count_reported);
    /* Nothing was left out. */
    assert_true(counts[PLACE_ANCHOR][SAME] >
                3 * WAL_ANCHOR_USED_BYTES / BYTES_STRIDE);
    assert_true(counts[PLACE_UNIT][REFUSED] + counts[PLACE_UNIT][SAME] >
                3000 / BYTES_STRIDE);
    assert_true(counts[PLACE_UNIT_PADDING][SAME] > 100 / BYTES_STRIDE);
    assert_true(counts[PLACE_TAIL][SAME] > 100 / BYTES_STRIDE);
}

static void check_flips(const char *letters, enum ending ending,
                        uint64_t unproven_units)
{
    struct subject subject;

    make_subject(&subject, letters, ending);
    assert_int_equal(subject.units[subject.unit_count - 1].number -
                         subject.proven,
                     unproven_units);
    flip_every_byte(&subject);
    assert_true((counts[PLACE_UNIT][TORN] > 0) == (unproven_units > 0));
    assert_true((subject.applying > subject.base.unit) ==
                (strchr(letters, 'C') != NULL));
    free_subject(&subject);
}

static void a_flipped_bit_after_a_kill_drops_the_last_unit_at_most(void **state)
{
    (void)state;
    check_flips("DRRD", END_KILLED, 1);
}

static void a_flipped_bit_after_idle_is_refused(void **state)
{
    (void)state;
    check_flips("DRRDT", END_KILLED, 0);
}

static void a_flipped_bit_after_a_close_is_refused(void **state)
{
    (void)state;
    check_flips("DRRDTr", END_CLOSED_WITHOUT_CHECKPOINT, 0);
}

static void a_flipped_bit_before_the_base_is_found_by_verify(void **state)
{
    (void)state;
    check_flips("DRRDr", END_CLOSED, 0);
}

static void a_flipped_bit_behind_relaxed_commits_drops_those(void **state)
{
    (void)state;
    check_flips("DRDrRr", END_KILLED, 3);
}

static void a_flipped_bit_in_a_checkpoint_is_refused(void **state)
{
    (void)state;
    check_flips("DMRMFCr", END_KILLED, 1);
}

/* ---- Whole files -------------------------------------------------------------------- */

struct file_change {
    struct subject *subject;
    struct sim_image *image; /* Damaged. */
    char what[100];
};

__attribute__((format(printf, 3, 4))) static struct file_change change(
    struct subject *subject, struct sim_image *image, const char *format, ...)
{
    struct file_change made = {.subject = subject, .image = image};
    va_list args;

    va_start(args, format);
    vsnprintf(made.what, sizeof made.what, format, args);
    va_end(args);
    return made;
}

/* Consumes the image. */
static void assert_becomes(struct file_change made, enum outcome writer,
                           enum outcome reader, bool verify)
{
    const struct finding finding =
        inspect(made.subject, made.image, STELE_OPEN_EXISTING);
    const struct finding shown =
        inspect(made.subject, made.image, STELE_OPEN_READ_ONLY);

    if (finding.outcome != writer || finding.verify_finds != verify) {
        fail_msg("%s: %s (verify finds %s)", made.what, finding.message,
                 finding.verify_finds ? "it" : "nothing");
    }
    if (shown.outcome != reader) {
        fail_msg("%s: for a reader: %s", made.what, shown.message);
    }
    if (writer == SAME && !verify) {
        assert_goes_on(made.subject, made.image, finding.found);
    }
    sim_image_free(made.image);
}

static void assert_refused(struct file_change made)
{
    assert_becomes(made, REFUSED, REFUSED, false);
}

static void assert_harmless(struct file_change made)
{
    assert_becomes(made, SAME, SAME, false);
}

/* A segment is not what it was: refused if opening reads it. */
static void assert_segment_noticed(struct file_change made, uint64_t segment)
{
    if (is_read(made.subject, segment)) {
        assert_refused(made);
    } else {
        assert_becomes(made, SAME, SAME, true);
    }
}

static struct sim_image *copy_of(const struct subject *subject)
{
    return sim_image_copy(subject->image);
}

static void cut_to(struct subject *subject, uint64_t segment, uint64_t bytes)
{
    struct sim_image *image = copy_of(subject);

    sim_image_resize(image, segment_inode(image, segment), bytes);
    assert_segment_noticed(change(subject, image,
                                  "segment %" PRIu64 " of %" PRIu64 " bytes",
                                  segment, bytes),
                           segment);
}

static void check_truncations(struct subject *subject)
{
    for (uint64_t seq = 1; seq <= subject->segment_last; seq++) {
        cut_to(subject, seq, 0);
        for (uint64_t at = SECTOR; at <= SEGMENT_BYTES;
             at += (uint64_t)FILES_STRIDE * SECTOR) {
            cut_to(subject, seq, at - 1);
            if (at < SEGMENT_BYTES) {
                cut_to(subject, seq, at);
            }
            cut_to(subject, seq, at + 1);
        }
    }
    for (uint64_t at = 0; at <= WAL_ANCHOR_BYTES;
         at += (uint64_t)FILES_STRIDE * SECTOR) {
        const uint64_t sizes[] = {at == 0 ? 1 : at - 1, at, at + 1};

        for (size_t index = 0; index < 3; index++) {
            struct sim_image *image = copy_of(subject);

            if (sizes[index] == WAL_ANCHOR_BYTES) {
                sim_image_free(image);
                continue;
            }
            sim_image_resize(image,
                             sim_image_walk(image, SIM_STORE_PATH "/ANCHOR"),
                             sizes[index]);
            assert_refused(change(subject, image, "ANCHOR of %" PRIu64 " bytes",
                                  sizes[index]));
        }
    }
    for (uint64_t bytes = 0; bytes < 200; bytes += 50) {
        struct sim_image *image = copy_of(subject);

        sim_image_resize(image, sim_image_walk(image, SIM_STORE_PATH "/LOCK"),
                         bytes);
        assert_harmless(change(subject, image, "LOCK cut short"));
    }
}

static struct sim_image *without(const struct subject *subject, const char *dir,
                                 const char *name)
{
    struct sim_image *image = copy_of(subject);

    assert_int_not_equal(
        sim_image_find(image, sim_image_walk(image, dir), name), 0);
    sim_image_unlink(image, sim_image_walk(image, dir), name);
    return image;
}

static void check_removals(struct subject *subject)
{
    const char *wal = SIM_STORE_PATH "/wal";
    struct finding finding;
    struct sim_image *image;

    for (uint64_t seq = 1; seq <= subject->segment_last; seq++) {
        char name[NUMBERED_NAME_BYTES];

        numbered_name(seq, WAL_SEGMENT_SUFFIX, name);
        image = without(subject, wal, name);
        if (seq <= subject->anchor.segment_last) {
            assert_refused(change(subject, image, "%s is gone", name));
        } else {
            assert_harmless(change(subject, image, "%s is gone", name));
        }
    }
    assert_refused(change(subject, without(subject, SIM_STORE_PATH, "ANCHOR"),
                          "ANCHOR is gone"));
    assert_refused(change(subject, without(subject, SIM_STORE_PATH, "wal"),
                          "wal/ is gone"));
    /* A reader has no use for it. */
    assert_becomes(change(subject, without(subject, SIM_STORE_PATH, "snapshot"),
                          "snapshot/ is gone"),
                   REFUSED, SAME, false);
    assert_harmless(change(subject, without(subject, SIM_STORE_PATH, "LOCK"),
                           "LOCK is gone"));
    image = without(subject, SIM_STORE_PATH "/index", "data.mdb");
    finding = inspect(subject, image, STELE_OPEN_EXISTING);
    assert_true(finding.rebuilt);
    assert_harmless(change(subject, image, "data.mdb is gone"));
    image = without(subject, SIM_STORE_PATH, "index");
    finding = inspect(subject, image, STELE_OPEN_EXISTING);
    assert_true(finding.rebuilt);
    assert_harmless(change(subject, image, "index/ is gone"));
}

/* The same bytes under one more name. */
static void check_duplicates(struct subject *subject)
{
    for (uint64_t seq = 1; seq <= subject->segment_last; seq++) {
        const uint64_t places[] = {subject->segment_last + 1, 0};

        for (size_t index = 0; index < 2; index++) {
            struct sim_image *image = copy_of(subject);
            const uint32_t from = segment_inode(image, seq);
            const uint32_t copy = image->node_count + 1;
            char name[NUMBERED_NAME_BYTES];
            struct file_change made;

            numbered_name(places[index], WAL_SEGMENT_SUFFIX, name);
            sim_image_add(image, copy, IO_TYPE_REGULAR);
            sim_image_set_node(image, copy, image->nodes[from]);
            sim_image_link(image, sim_image_walk(image, SIM_STORE_PATH "/wal"),
                           name, copy);
            made = change(subject, image, "segment %" PRIu64 " is also %s", seq,
                          name);
            if (places[index] == 0) {
                /* Below the oldest: a leftover that nobody looks at. */
                assert_harmless(made);
            } else {
                assert_refused(made);
            }
        }
    }
}

static void check_swaps(struct subject *subject)
{
    for (uint64_t left = 1; left < subject->segment_last; left++) {
        for (uint64_t right = left + 1; right <= subject->segment_last;
             right++) {
            struct sim_image *image = copy_of(subject);
            const uint32_t left_inode = segment_inode(image, left);
            const uint32_t right_inode = segment_inode(image, right);
            struct sim_node *kept = sim_node_ref(image->nodes[left_inode]);

            sim_image_set_node(image, left_inode, image->nodes[right_inode]);
            sim_image_set_node(image, right_inode, kept);
            sim_node_unref(kept);
            assert_segment_noticed(change(subject, image,
                                          "segments %" PRIu64 " and %" PRIu64
                                          " are swapped",
                                          left, right),
                                   right);
        }
    }
}

/* A file of `other` in the place of ours. */
static struct sim_image *with_file_of(const struct subject *subject,
                                      const struct sim_image *other,
                                      const char *path)
{
    struct sim_image *image = copy_of(subject);
    const uint32_t theirs = sim_image_walk(other, path);

    assert_int_not_equal(theirs, 0);
    sim_image_set_node(image, sim_image_walk(image, path),
                       other->nodes[theirs]);
    return image;
}

static void segment_path(uint64_t seq, char path[64])
{
    snprintf(path, 64, SIM_STORE_PATH "/wal/%016" PRIx64 ".wal", seq);
}

/* Another store of the same shape: other randomness, so another uuid. */
static void check_foreign_files(struct subject *subject, const char *letters)
{
    struct sim_world world;
    struct sim_history history;
    struct sim_step steps[SIM_STEPS_MAX];
    const size_t count = sim_spell(letters, 0, steps);
    const struct sim_image *other;
    char path[64];

    sim_history_init(&history);
    sim_world_init(&world, sim_world_first_image(), &history, 0, false, 77,
                   &setting);
    sim_world_run(&world, steps, count, NULL);
    assert_string_equal(world.problem, "");
    other = sim_disk_cache(world.disk);
    for (uint64_t seq = 1;
         seq <= subject->segment_last && segment_inode(other, seq) != 0;
         seq++) {
        segment_path(seq, path);
        assert_segment_noticed(
            change(subject, with_file_of(subject, other, path),
                   "segment %" PRIu64 " is another store's", seq),
            seq);
    }
    assert_refused(
        change(subject, with_file_of(subject, other, SIM_STORE_PATH "/ANCHOR"),
               "ANCHOR is another store's"));
    sim_world_deinit(&world);
    sim_history_deinit(&history);
}

static size_t units_in(const struct subject *subject, uint64_t segment)
{
    size_t count = 0;

    for (size_t index = 0; index < subject->unit_count; index++) {
        count += subject->units[index].segment == segment;
    }
    return count;
}

/* Files as they were some steps earlier. `letters` is how the subject came to be,
 * without its last steps. */
static void check_older_files(struct subject *subject, const char *letters)
{
    struct subject older;
    char path[64];

    make_subject(&older, letters, END_KILLED);
    assert_true(older.unit_count < subject->unit_count);
    /* Less suspicious, but not wrong. */
    assert_harmless(change(
        subject, with_file_of(subject, older.image, SIM_STORE_PATH "/ANCHOR"),
        "ANCHOR is older"));
    for (uint64_t seq = 1; seq <= older.segment_last; seq++) {
        const uint64_t last = older.units[older.unit_count - 1].number;
        struct file_change made;

        segment_path(seq, path);
        made = change(subject, with_file_of(subject, older.image, path),
                      "segment %" PRIu64 " is older", seq);
        if (units_in(&older, seq) == units_in(subject, seq)) {
            assert_harmless(made); /* Nothing came since. */
        } else if (last < subject->evidence_outside ||
                   subject->units[subject->unit_count - 1].segment > seq) {
            assert_segment_noticed(made, seq);
        } else {
            /* Nothing outside of it tells: as if it had never been written. */
            const struct finding finding =
                inspect(subject, made.image, STELE_OPEN_EXISTING);

            assert_int_not_equal(finding.outcome, REFUSED);
            assert_int_equal(finding.found, older.found);
            sim_image_free(made.image);
        }
    }
    free_subject(&older);
}

static void check_both_slots(struct subject *subject)
{
    for (uint64_t offset = 0; offset < WAL_ANCHOR_USED_BYTES;
         offset += (uint64_t)FILES_STRIDE) {
        struct sim_image *image = copy_of(subject);
        const uint32_t inode = sim_image_walk(image, SIM_STORE_PATH "/ANCHOR");

        for (uint64_t slot = 0; slot < 2; slot++) {
            const uint64_t at = slot * WAL_ANCHOR_SLOT_BYTES + offset;
            uint8_t byte = 0;

            (void)sim_image_read(image, inode, &byte, 1, at);
            byte = (uint8_t)(byte ^ 1u << (offset % 8));
            sim_image_write(image, inode, &byte, 1, at);
        }
        assert_refused(
            change(subject, image, "both slots, offset %" PRIu64, offset));
    }
}

static void check_files(const char *letters, enum ending ending,
                        const char *earlier)
{
    struct subject subject;

    make_subject(&subject, letters, ending);
    check_truncations(&subject);
    check_removals(&subject);
    check_duplicates(&subject);
    check_swaps(&subject);
    check_foreign_files(&subject, letters);
    check_older_files(&subject, earlier);
    check_both_slots(&subject);
    free_subject(&subject);
}

static void damaged_files_after_a_kill(void **state)
{
    (void)state;
    check_files("DRRDr", END_KILLED, "DRRD");
}

static void damaged_files_after_idle(void **state)
{
    (void)state;
    check_files("DRRDT", END_KILLED, "DRR");
}

static void damaged_files_after_a_close(void **state)
{
    (void)state;
    check_files("DRRDTr", END_CLOSED_WITHOUT_CHECKPOINT, "DR");
}

static void damaged_files_after_a_close_with_a_checkpoint(void **state)
{
    (void)state;
    check_files("DRRDr", END_CLOSED, "DRR");
}

static void damaged_files_in_a_checkpoint(void **state)
{
    (void)state;
    check_files("DMRMFCr", END_KILLED, "DMRM");
}

/* ---- Snapshots ----------------------------------------------------------------------- */

enum { SNAPSHOT_STRIDE = SANITIZED_CHOICE(1, 31) };

static uint32_t snapshot_inode(const struct sim_image *image, uint64_t lsn)
{
    char path[64];

    snprintf(path, sizeof path, SIM_STORE_PATH "/snapshot/%016" PRIx64 ".snap",
             lsn);
    return sim_image_walk(image, path);
}

/* Two snapshots, and something behind them that is proven durable. */
static void make_subject_with_snapshots(struct subject *subject)
{
    *subject = (struct subject){.image = NULL};
    sim_history_init(&subject->history);
    live(subject, "DrPDMPDrDT", END_KILLED);
    learn(subject);
    assert_int_not_equal(subject->anchor.snapshots[1], 0);
}

static bool is_set_aside(const struct sim_image *image)
{
    return sim_image_walk(image, SIM_STORE_PATH "/quarantine") != 0;
}

/* Opens it, and says whether something was set aside. */
static bool opens_the_same(struct subject *subject,
                           const struct sim_image *image, uint64_t offset)
{
    struct scene scene;
    bool set_aside;

    open_scene(&scene, image, STELE_OPEN_EXISTING);
    if (scene.status != STELE_OK ||
        state_of(&subject->history, scene.store) != subject->found) {
        fail_msg("offset %" PRIu64 ": %s", offset,
                 scene.status == STELE_OK ? "another state"
                                          : scene.error.message);
    }
    set_aside = is_set_aside(sim_disk_cache(scene.disk));
    end_scene(&scene);
    open_scene(&scene, image, STELE_OPEN_READ_ONLY);
    if (scene.status != STELE_OK ||
        state_of(&subject->history, scene.store) != subject->found) {
        fail_msg("offset %" PRIu64 ", a reader: %s", offset,
                 scene.status == STELE_OK ? "another state"
                                          : scene.error.message);
    }
    end_scene(&scene);
    return set_aside;
}

/* Opening looks at header and footer; at the rest when the index is gone. Noticed or
 * not, the state is the same. */
static void flip_snapshot(struct subject *subject, uint64_t lsn,
                          bool *noticed_out, bool *noticed_without_index_out,
                          uint64_t offset)
{
    struct sim_image *image = copy_of(subject);
    const uint32_t inode = snapshot_inode(image, lsn);
    uint8_t byte = 0;

    (void)sim_image_read(image, inode, &byte, 1, offset);
    byte = (uint8_t)(byte ^ 1u << (offset % 8));
    sim_image_write(image, inode, &byte, 1, offset);
    *noticed_out = opens_the_same(subject, image, offset);
    sim_image_unlink(image, sim_image_walk(image, SIM_STORE_PATH), "index");
    *noticed_without_index_out = opens_the_same(subject, image, offset);
    sim_image_free(image);
}

static void a_flipped_bit_in_a_snapshot_changes_nothing(void **state)
{
    struct subject subject;
    uint64_t noticed = 0;
    uint64_t bytes;

    (void)state;
    make_subject_with_snapshots(&subject);
    for (size_t index = 0; index < WAL_ANCHOR_SNAPSHOTS; index++) {
        const uint64_t lsn = subject.anchor.snapshots[index];

        bytes =
            sim_image_node(subject.image, snapshot_inode(subject.image, lsn))
                ->size_bytes;
        assert_true(bytes > SNAPSHOT_HEADER_BYTES + SNAPSHOT_FOOTER_BYTES);
        for (uint64_t offset = 0; offset < bytes; offset += SNAPSHOT_STRIDE) {
            const bool is_end = offset < SNAPSHOT_HEADER_BYTES ||
                                offset >= bytes - SNAPSHOT_FOOTER_BYTES;
            bool with_index;
            bool without_index;

            flip_snapshot(&subject, lsn, &with_index, &without_index, offset);
            assert_int_equal(with_index, is_end);
            /* The older one is not read if the newer will do. */
            assert_int_equal(without_index, is_end || index == 0);
            noticed += without_index;
        }
    }
    print_message("             %" PRIu64 " were noticed\n", noticed);
    free_subject(&subject);
}

/* One that is cut, at every length, and one that is gone. */
static void a_cut_snapshot_changes_nothing(void **state)
{
    struct subject subject;
    uint64_t lsn;

    (void)state;
    make_subject_with_snapshots(&subject);
    lsn = subject.anchor.snapshots[0];
    for (uint64_t left =
             sim_image_node(subject.image, snapshot_inode(subject.image, lsn))
                 ->size_bytes;
         left > 0; left = left > SNAPSHOT_STRIDE ? left - SNAPSHOT_STRIDE : 0) {
        struct sim_image *image = copy_of(&subject);

        sim_image_resize(image, snapshot_inode(image, lsn), left - 1);
        assert_true(opens_the_same(&subject, image, left - 1));
        sim_image_unlink(image, sim_image_walk(image, SIM_STORE_PATH), "index");
        assert_true(opens_the_same(&subject, image, left - 1));
        sim_image_free(image);
    }
    free_subject(&subject);
}

/* Without an index, and both of them damaged: the log is whole here, and does. */
static void both_snapshots_damaged_leave_a_log_that_is_whole(void **state)
{
    struct subject subject;
    struct sim_image *image;

    (void)state;
    make_subject_with_snapshots(&subject);
    image = copy_of(&subject);
    for (size_t index = 0; index < WAL_ANCHOR_SNAPSHOTS; index++) {
        sim_image_resize(image,
                         snapshot_inode(image, subject.anchor.snapshots[index]),
                         SNAPSHOT_HEADER_BYTES);
    }
    sim_image_unlink(image, sim_image_walk(image, SIM_STORE_PATH), "index");
    assert_true(opens_the_same(&subject, image, SNAPSHOT_HEADER_BYTES));
    sim_image_free(image);
    free_subject(&subject);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(
            a_flipped_bit_after_a_kill_drops_the_last_unit_at_most),
        cmocka_unit_test(a_flipped_bit_after_idle_is_refused),
        cmocka_unit_test(a_flipped_bit_after_a_close_is_refused),
        cmocka_unit_test(a_flipped_bit_before_the_base_is_found_by_verify),
        cmocka_unit_test(a_flipped_bit_behind_relaxed_commits_drops_those),
        cmocka_unit_test(a_flipped_bit_in_a_checkpoint_is_refused),
        cmocka_unit_test(damaged_files_after_a_kill),
        cmocka_unit_test(damaged_files_after_idle),
        cmocka_unit_test(damaged_files_after_a_close),
        cmocka_unit_test(damaged_files_after_a_close_with_a_checkpoint),
        cmocka_unit_test(damaged_files_in_a_checkpoint),
        cmocka_unit_test(a_flipped_bit_in_a_snapshot_changes_nothing),
        cmocka_unit_test(a_cut_snapshot_changes_nothing),
        cmocka_unit_test(both_snapshots_damaged_leave_a_log_that_is_whole),
    };

    return cmocka_run_group_tests_name("sim: rot", tests, NULL, NULL);
}
