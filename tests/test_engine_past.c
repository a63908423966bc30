/*
 * tests/test_engine_past.c -- stele_view_open_at(): the state at every LSN of a
 * history, on every kind of base, against an array of states.
 *
 * A history is of random batches over a few keys in two tables: puts, deletes,
 * range deletes, clears, several batches in one unit. What is said of a moment is
 * all that a view can be asked.
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
#include <sys/wait.h>
#include <unistd.h>

#include "engine/checkpoint.h"
#include "engine/commit.h"
#include "engine/view.h"
#include "tests/lib/files.h"
#include "tests/lib/io_fault.h"
#include "tests/lib/run.h"
#include "tests/lib/store_dir.h"
#include "tests/lib/store_snapshot.h"

enum {
    TABLES = 2,
    KEYS = 12,
    OPS_MAX = 4,
    GROUP_MAX = 4,
    MOMENTS_MAX = 600,
    SEGMENT_BYTES = 256 << 10,
    VALUE_BYTES_MAX = 20000, /* A state fills several blocks. */
};

static const char *const table_names[TABLES] = {"t", "u"};

/* ---- What should be there ---------------------------------------------------------- */

struct cell {
    uint64_t lsn;    /* Of the batch that put it; 0: absent. */
    uint32_t serial; /* Which value. */
};

struct moment {
    uint64_t lsn;
    uint64_t table_lsns[TABLES];
    struct cell cells[TABLES][KEYS];
};

static struct moment moments[MOMENTS_MAX]; /* By LSN; the first is nothing. */
static size_t moment_count;
static uint32_t value_serial;
static struct random_source random_numbers;
static struct store_dir dir;

static const struct moment *moment_at(uint64_t lsn)
{
    const struct moment *found = &moments[0];

    for (size_t index = 0; index < moment_count; index++) {
        if (moments[index].lsn <= lsn) {
            found = &moments[index];
        }
    }
    return found;
}

static uint64_t newest_lsn(void)
{
    return moments[moment_count - 1].lsn;
}

/* "v<serial>", mostly; some are long. */
static size_t value_of(uint32_t serial, char value[VALUE_BYTES_MAX])
{
    const size_t bytes = serial % 2 == 0 ? 100 + serial * 37 % 19000 : 8;

    memset(value, 'v', bytes);
    snprintf(value, 8, "v%06" PRIu32, serial % 1000000);
    return bytes;
}

/* ---- Making history ------------------------------------------------------------------ */

enum kind { PUT, DELETE, DELETE_RANGE, CLEAR, KINDS };

struct change {
    enum kind kind;
    unsigned table;
    unsigned first; /* The key; of a range, keys first <= k < end. */
    unsigned end;
    uint32_t serial;
};

struct submission {
    struct change changes[OPS_MAX];
    size_t count;
    struct stele_batch *batch;
    struct stele_commit_result result;
};

static char key_letter(unsigned key)
{
    return (char)('a' + key);
}

static struct change random_change(void)
{
    struct change change = {
        .kind = random_one_in(&random_numbers, 12)  ? CLEAR
                : random_one_in(&random_numbers, 6) ? DELETE_RANGE
                : random_one_in(&random_numbers, 4) ? DELETE
                                                    : PUT,
        .table = (unsigned)random_below(&random_numbers, TABLES),
        .first = (unsigned)random_below(&random_numbers, KEYS),
        .serial = ++value_serial,
    };

    change.end = change.first + 1 +
                 (unsigned)random_below(&random_numbers, KEYS - change.first);
    return change;
}

static enum stele_status add(struct stele_batch *batch,
                             const struct change *change)
{
    const char *table = table_names[change->table];
    const char first = key_letter(change->first);
    const char end = key_letter(change->end);
    char value[VALUE_BYTES_MAX];

    switch (change->kind) {
    case PUT:
        return stele_batch_put(batch, table, &first, 1, value,
                               value_of(change->serial, value), &dir.error);
    case DELETE:
        return stele_batch_delete(batch, table, &first, 1, &dir.error);
    case DELETE_RANGE:
        return stele_batch_delete_range(batch, table, &first, 1, &end, 1,
                                        &dir.error);
    case CLEAR:
    case KINDS:
        break;
    }
    return stele_batch_clear_table(batch, table, &dir.error);
}

static struct submission random_submission(void)
{
    struct submission made = {
        .count = 1 + (size_t)random_below(&random_numbers, OPS_MAX)};

    assert_int_equal(stele_batch_create(&made.batch, &dir.error), STELE_OK);
    for (size_t index = 0; index < made.count; index++) {
        made.changes[index] = random_change();
        assert_int_equal(add(made.batch, &made.changes[index]), STELE_OK);
    }
    return made;
}

static void happen(const struct change *change, struct moment *moment)
{
    struct cell *cells = moment->cells[change->table];

    moment->table_lsns[change->table] = moment->lsn;
    switch (change->kind) {
    case PUT:
        cells[change->first] = (struct cell){moment->lsn, change->serial};
        break;
    case DELETE:
        cells[change->first] = (struct cell){0};
        break;
    case DELETE_RANGE:
        for (unsigned key = change->first; key < change->end; key++) {
            cells[key] = (struct cell){0};
        }
        break;
    case CLEAR:
    case KINDS:
        memset(cells, 0, sizeof moment->cells[0]);
        break;
    }
}

static void note(const struct submission *submission)
{
    struct moment next = moments[moment_count - 1];

    assert_true(moment_count < MOMENTS_MAX);
    assert_true(submission->result.lsn > next.lsn);
    next.lsn = submission->result.lsn;
    for (size_t index = 0; index < submission->count; index++) {
        happen(&submission->changes[index], &next);
    }
    moments[moment_count++] = next;
}

static void ignore(void *context, enum stele_status status,
                   const struct stele_error *error)
{
    (void)context;
    (void)error;
    assert_int_equal(status, STELE_OK);
}

/* So many batches in one unit: the last one leads for all. */
static void commit_unit(size_t count)
{
    struct submission submissions[GROUP_MAX];

    for (size_t index = 0; index < count; index++) {
        struct submission *submission = &submissions[index];

        *submission = random_submission();
        if (index + 1 < count) {
            assert_int_equal(stele_commit_async(
                                 dir.store, submission->batch, STELE_DURABLE,
                                 &submission->result, ignore, NULL, &dir.error),
                             STELE_OK);
        } else {
            assert_int_equal(stele_commit(dir.store, submission->batch,
                                          STELE_DURABLE, &submission->result,
                                          &dir.error),
                             STELE_OK);
        }
    }
    for (size_t index = 0; index < count; index++) {
        note(&submissions[index]);
        stele_batch_destroy(submissions[index].batch);
    }
}

static void live(size_t unit_count)
{
    for (size_t unit = 0; unit < unit_count; unit++) {
        commit_unit(
            random_one_in(&random_numbers, 3)
                ? 2 + (size_t)random_below(&random_numbers, GROUP_MAX - 1)
                : 1);
    }
}

/* So that there is log that can be removed. */
static void live_into_another_segment(void)
{
    do {
        live(20);
    } while (store_dir_stats(&dir).segment_current == 1);
}

static uint64_t take_snapshot(void)
{
    const uint64_t lsn = store_snapshot_take(dir.store);

    assert_int_equal(lsn, newest_lsn());
    return lsn;
}

static void checkpoint(void)
{
    assert_int_equal(stele_checkpoint(dir.store, &dir.error), STELE_OK);
}

static int setup(void **state)
{
    (void)state;
    store_dir_make(&dir);
    dir.tuning.segment_bytes = SEGMENT_BYTES;
    dir.options.skip_close_checkpoint = true;
    store_dir_open(&dir);
    memset(moments, 0, sizeof moments);
    moment_count = 1;
    random_numbers = run_random(0);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    store_dir_remove(&dir);
    return 0;
}

/* ---- Asking --------------------------------------------------------------------------- */

static struct stele_view *open_at(uint64_t lsn)
{
    struct stele_view *view;

    if (stele_view_open_at(dir.store, lsn, &view, &dir.error) != STELE_OK) {
        fail_msg("LSN %" PRIu64 ": %s", lsn, dir.error.message);
    }
    assert_true(stele_view_lsn(view) == lsn);
    return view;
}

static void assert_refused(uint64_t lsn, enum stele_status status,
                           const char *format, uint64_t first, uint64_t second)
{
    char expected[STELE_ERROR_MESSAGE_BYTES];
    struct stele_view *view;
    const uint64_t views_before = store_dir_stats(&dir).views_open;

    assert_int_equal(stele_view_open_at(dir.store, lsn, &view, &dir.error),
                     status);
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
    snprintf(expected, sizeof expected, format, first, second);
#pragma GCC diagnostic pop
    assert_string_equal(dir.error.message, expected);
    assert_int_equal(store_dir_stats(&dir).views_open, views_before);
}

static void assert_value(const struct cell *cell,
                         const struct stele_value *value)
{
    char wanted[VALUE_BYTES_MAX];
    const size_t bytes = value_of(cell->serial, wanted);

    assert_true(cell->lsn != 0);
    assert_true(value->lsn == cell->lsn);
    assert_int_equal(value->bytes, bytes);
    assert_memory_equal(value->data, wanted, bytes);
}

/* Every key by itself; a value that was lent stays while others are looked up. */
static void assert_gets(struct stele_view *view, unsigned table,
                        const struct cell *cells)
{
    struct stele_value values[KEYS];

    for (unsigned key = 0; key < KEYS; key++) {
        const char letter = key_letter(key);

        assert_int_equal(stele_view_get(view, table_names[table], &letter, 1,
                                        &values[key], &dir.error),
                         cells[key].lsn == 0 ? STELE_NOT_FOUND : STELE_OK);
    }
    for (unsigned key = 0; key < KEYS; key++) {
        if (cells[key].lsn != 0) {
            assert_value(&cells[key], &values[key]);
        }
    }
}

/* In order, back again, and to and fro. */
static void assert_walks(struct stele_view *view, unsigned table,
                         const struct cell *cells)
{
    struct stele_cursor *cursor;
    struct stele_entry entry;
    int previous = -1;

    assert_int_equal(stele_cursor_open(view, table_names[table], NULL, 0,
                                       &cursor, &dir.error),
                     STELE_OK);
    for (int key = 0; key < KEYS; key++) {
        if (cells[key].lsn == 0) {
            continue;
        }
        assert_int_equal(stele_cursor_next(cursor, &entry, &dir.error),
                         STELE_OK);
        assert_int_equal(*(const char *)entry.key, key_letter((unsigned)key));
        assert_value(&cells[key], &entry.value);
        if (previous >= 0) {
            assert_int_equal(stele_cursor_prev(cursor, &entry, &dir.error),
                             STELE_OK);
            assert_value(&cells[previous], &entry.value);
            assert_int_equal(stele_cursor_next(cursor, &entry, &dir.error),
                             STELE_OK);
            assert_value(&cells[key], &entry.value);
        }
        previous = key;
    }
    assert_int_equal(stele_cursor_next(cursor, &entry, &dir.error),
                     STELE_NOT_FOUND);
    for (int key = KEYS - 1; key >= 0; key--) {
        if (cells[key].lsn != 0) {
            assert_int_equal(stele_cursor_prev(cursor, &entry, &dir.error),
                             STELE_OK);
            assert_value(&cells[key], &entry.value);
        }
    }
    assert_int_equal(stele_cursor_prev(cursor, &entry, &dir.error),
                     STELE_NOT_FOUND);
    stele_cursor_close(cursor);
}

static void assert_tables(struct stele_view *view, const struct moment *moment)
{
    char name[STELE_TABLE_NAME_BYTES_MAX + 1];
    const char *after = NULL;

    for (unsigned table = 0; table < TABLES; table++) {
        uint64_t present = 0;
        uint64_t count;
        uint64_t lsn;

        for (unsigned key = 0; key < KEYS; key++) {
            present += moment->cells[table][key].lsn != 0 ? 1 : 0;
        }
        assert_int_equal(
            stele_table_count(view, table_names[table], &count, &dir.error),
            STELE_OK);
        assert_true(count == present);
        assert_int_equal(
            stele_table_lsn(view, table_names[table], &lsn, &dir.error),
            STELE_OK);
        assert_true(lsn == moment->table_lsns[table]);
        if (lsn != 0) {
            assert_int_equal(stele_table_next(view, after, name, &dir.error),
                             STELE_OK);
            assert_string_equal(name, table_names[table]);
            after = table_names[table];
        }
    }
    assert_int_equal(stele_table_next(view, after, name, &dir.error),
                     STELE_NOT_FOUND);
}

static void assert_shows(struct stele_view *view, const struct moment *moment)
{
    for (unsigned table = 0; table < TABLES; table++) {
        assert_gets(view, table, moment->cells[table]);
        assert_walks(view, table, moment->cells[table]);
    }
    assert_tables(view, moment);
}

enum standing { ON_NOTHING, ON_INDEX, ON_SNAPSHOT };

static enum standing standing_of(const struct stele_view *view)
{
    return view->base.index != NULL      ? ON_INDEX
           : view->base.snapshot != NULL ? ON_SNAPSHOT
                                         : ON_NOTHING;
}

/* The view at `lsn` shows that moment, from this kind of base. */
static void assert_at(uint64_t lsn, enum standing standing)
{
    struct stele_view *view = open_at(lsn);

    assert_int_equal(standing_of(view), standing);
    assert_shows(view, moment_at(lsn));
    stele_view_close(view);
}

static void assert_all(uint64_t first, uint64_t last, enum standing standing)
{
    for (uint64_t lsn = first; lsn <= last; lsn++) {
        assert_at(lsn, standing);
    }
}

/* One bit of an entry: it shows only when the entries are read. */
static void damage(uint64_t snapshot_lsn)
{
    char path[FILES_PATH_BYTES];

    store_snapshot_path(dir.path, snapshot_lsn, path);
    files_flip_bit(path, SNAPSHOT_HEADER_BYTES + SNAPSHOT_BLOCK_HEADER_BYTES,
                   3);
}

/* One bit of the footer: it is no base at all. */
static void damage_position(uint64_t snapshot_lsn)
{
    char path[FILES_PATH_BYTES];

    store_snapshot_path(dir.path, snapshot_lsn, path);
    files_flip_bit(path, files_size(path) - SNAPSHOT_FOOTER_BYTES + 60, 0);
}

/* ---- Every LSN ------------------------------------------------------------------------ */

static void every_lsn_is_shown_on_an_index_that_is_behind(void **state)
{
    (void)state;
    live(60);
    assert_all(0, newest_lsn(), ON_INDEX);
}

static void every_lsn_is_shown_on_nothing_while_the_log_is_whole(void **state)
{
    (void)state;
    live_into_another_segment();
    checkpoint();
    live(5);
    assert_all(0, store_dir_stats(&dir).lsn_applied - 1, ON_NOTHING);
    assert_all(store_dir_stats(&dir).lsn_applied, newest_lsn(), ON_INDEX);
}

static void every_lsn_is_shown_on_the_newest_snapshot_below_it(void **state)
{
    uint64_t snapshots[3];

    (void)state;
    for (size_t number = 0; number < 3; number++) {
        live(25);
        snapshots[number] = take_snapshot();
    }
    live(10);
    checkpoint();
    assert_all(0, snapshots[0] - 1, ON_NOTHING);
    for (uint64_t lsn = snapshots[0]; lsn < newest_lsn(); lsn++) {
        struct stele_view *view = open_at(lsn);

        assert_int_equal(standing_of(view), ON_SNAPSHOT);
        assert_true(snapshot_map_info(view->base.snapshot)->lsn ==
                    (lsn < snapshots[1]   ? snapshots[0]
                     : lsn < snapshots[2] ? snapshots[1]
                                          : snapshots[2]));
        assert_shows(view, moment_at(lsn));
        stele_view_close(view);
    }
    assert_at(newest_lsn(), ON_INDEX);
}

/* Some of its keys are as of the checkpoint's end already. */
static void an_index_in_the_middle_of_a_checkpoint_is_no_base_below_its_end(
    void **state)
{
    struct checkpoint *under_way;
    uint64_t end;
    bool froze;
    bool done;

    (void)state;
    live(10);
    checkpoint();
    live(20);
    end = newest_lsn();
    assert_int_equal(commit_freeze(dir.store, &froze, &dir.error), STELE_OK);
    assert_true(froze);
    assert_int_equal(checkpoint_begin(dir.store, &under_way, &dir.error),
                     STELE_OK);
    assert_int_equal(
        checkpoint_advance(dir.store, under_way, 5, &done, &dir.error),
        STELE_OK);
    assert_false(done);
    live(3);
    assert_all(0, end - 1, ON_NOTHING);
    assert_all(end, newest_lsn(), ON_INDEX);
    assert_int_equal(
        checkpoint_advance(dir.store, under_way, UINT64_MAX, &done, &dir.error),
        STELE_OK);
    checkpoint_destroy(under_way);
}

/* The restart skips 2^20 of them. */
static void an_lsn_between_two_batches_shows_the_one_before(void **state)
{
    uint64_t before;

    (void)state;
    live(10);
    store_dir_kill(&dir);
    store_dir_open(&dir);
    before = newest_lsn();
    live(1);
    assert_true(newest_lsn() > before + 1000);
    assert_at(before + 1, ON_INDEX);
    assert_at(moments[moment_count - 1].lsn - 1, ON_INDEX);
    take_snapshot();
    live(2);
    checkpoint();
    assert_at(before + 1000, ON_NOTHING);
}

static void a_log_without_its_beginning_is_shown_from_its_oldest_snapshot(
    void **state)
{
    uint64_t oldest;

    (void)state;
    live_into_another_segment();
    oldest = take_snapshot();
    live(30);
    take_snapshot();
    live(10);
    checkpoint();
    assert_true(store_snapshot_trim(dir.store, oldest) > 0);
    assert_all(oldest, newest_lsn() - 1, ON_SNAPSHOT);
    assert_refused(oldest - 1, STELE_NOT_FOUND,
                   "LSN %" PRIu64 " is older than what is retained: the oldest "
                   "base is at LSN %" PRIu64,
                   oldest - 1, oldest);
    assert_refused(0, STELE_NOT_FOUND,
                   "LSN %" PRIu64 " is older than what is retained: the oldest "
                   "base is at LSN %" PRIu64,
                   0, oldest);
}

static void a_tag_is_looked_for_from_where_the_log_begins(void **state)
{
    const uint8_t tag[STELE_TAG_BYTES] = "an end, a start";
    struct submission tagged;
    uint64_t oldest;
    uint64_t lsn;

    (void)state;
    live_into_another_segment();
    oldest = take_snapshot();
    tagged = random_submission();
    stele_batch_set_tag(tagged.batch, tag);
    assert_int_equal(stele_commit(dir.store, tagged.batch, STELE_DURABLE,
                                  &tagged.result, &dir.error),
                     STELE_OK);
    note(&tagged);
    stele_batch_destroy(tagged.batch);
    assert_true(store_snapshot_trim(dir.store, oldest) > 0);
    assert_int_equal(stele_find_tag(dir.store, tag, 0, &lsn, &dir.error),
                     STELE_OK);
    assert_true(lsn == tagged.result.lsn);
    damage_position(oldest);
    assert_int_equal(stele_find_tag(dir.store, tag, 0, &lsn, &dir.error),
                     STELE_CORRUPT);
    store_dir_assert_error(&dir,
                           "the log begins with wal/%016" PRIx64
                           ".wal, and there is no snapshot to go on from",
                           store_segment_oldest(dir.store));
}

/* ---- What cannot be shown ------------------------------------------------------------------ */

static void an_lsn_that_is_not_there_yet_is_refused(void **state)
{
    (void)state;
    live(3);
    assert_refused(newest_lsn() + 1, STELE_NOT_FOUND,
                   "LSN %" PRIu64
                   " is not there yet: the newest durable one is %" PRIu64,
                   newest_lsn() + 1, newest_lsn());
}

static void what_is_not_synced_yet_is_no_past(void **state)
{
    const uint64_t durable = 0;

    (void)state;
    store_dir_put_relaxed(&dir, "a", "1");
    assert_true(store_dir_stats(&dir).lsn_visible == 1);
    assert_refused(1, STELE_NOT_FOUND,
                   "LSN %" PRIu64
                   " is not there yet: the newest durable one is %" PRIu64,
                   1, durable);
    assert_int_equal(stele_sync(dir.store, &dir.error), STELE_OK);
    stele_view_close(open_at(1));
}

static void behind_a_damaged_snapshot_the_one_before_it_is_the_base(
    void **state)
{
    uint64_t older;
    uint64_t newer;

    (void)state;
    live(20);
    older = take_snapshot();
    live(20);
    newer = take_snapshot();
    live(5);
    checkpoint();
    damage(newer);
    assert_all(older, newest_lsn() - 1, ON_SNAPSHOT);
    damage(older);
    assert_all(0, newest_lsn() - 1, ON_NOTHING);
}

static void if_damage_leaves_no_base_that_is_said(void **state)
{
    char expected[STELE_ERROR_MESSAGE_BYTES];
    struct stele_view *view;
    uint64_t lsn;

    (void)state;
    live_into_another_segment();
    lsn = take_snapshot();
    live(5);
    checkpoint();
    assert_true(store_snapshot_trim(dir.store, lsn) > 0);
    damage(lsn);
    assert_int_equal(stele_view_open_at(dir.store, lsn, &view, &dir.error),
                     STELE_CORRUPT);
    snprintf(expected, sizeof expected, "snapshot/%016" PRIx64 ".snap: ", lsn);
    assert_memory_equal(dir.error.message, expected, strlen(expected));
    assert_at(newest_lsn(), ON_INDEX);
}

/* ANCHOR names the newest two. */
static void also_of_a_snapshot_that_nothing_depends_on(void **state)
{
    struct stele_view *view;
    uint64_t lsn;

    (void)state;
    live_into_another_segment();
    lsn = take_snapshot();
    assert_true(store_snapshot_trim(dir.store, lsn) > 0);
    for (int number = 0; number < 2; number++) {
        live(2);
        take_snapshot();
    }
    damage(lsn);
    assert_int_equal(stele_view_open_at(dir.store, lsn, &view, &dir.error),
                     STELE_CORRUPT);
    assert_non_null(strstr(dir.error.message, ".snap: "));
    assert_refused(lsn - 1, STELE_NOT_FOUND,
                   "LSN %" PRIu64 " is older than what is retained: the oldest "
                   "base is at LSN %" PRIu64,
                   lsn - 1, lsn);
}

static void an_unreadable_log_is_not_papered_over(void **state)
{
    struct stele_view *view;

    (void)state;
    live(10);
    checkpoint();
    files_flip_bit(store_dir_at(&dir, "wal/0000000000000001.wal"), 2 * 4096,
                   77);
    assert_at(0, ON_NOTHING);
    assert_int_equal(
        stele_view_open_at(dir.store, newest_lsn() - 1, &view, &dir.error),
        STELE_CORRUPT);
    assert_at(newest_lsn(), ON_INDEX);
}

/* ---- A view like any other --------------------------------------------------------------------- */

static void it_stays_as_it_is_while_the_store_goes_on(void **state)
{
    struct stele_view *views[3];
    uint64_t lsns[3];

    (void)state;
    live_into_another_segment();
    lsns[0] = take_snapshot();
    live(10);
    checkpoint();
    lsns[1] = lsns[0] + 5;
    lsns[2] = newest_lsn() / 3;
    for (size_t index = 0; index < 3; index++) {
        views[index] = open_at(lsns[index]);
    }
    for (int round = 0; round < 4; round++) {
        live(10);
        checkpoint();
    }
    take_snapshot();
    assert_true(store_snapshot_trim(dir.store, newest_lsn()) > 0);
    for (size_t index = 0; index < 3; index++) {
        assert_shows(views[index], moment_at(lsns[index]));
        stele_view_close(views[index]);
    }
}

static void it_counts_as_one_of_views_max(void **state)
{
    struct stele_view *view;
    struct stele_view *second;

    (void)state;
    live(2);
    store_dir_close(&dir);
    dir.options.views_max = 1;
    store_dir_open(&dir);
    view = open_at(1);
    assert_int_equal(stele_view_open_at(dir.store, 1, &second, &dir.error),
                     STELE_BUSY);
    assert_int_equal(stele_close(dir.store, &dir.error), STELE_BUSY);
    stele_view_close(view);
    stele_view_close(open_at(2));
}

/* The same file system; and a clock, and what another thread does while the
 * snapshots are looked at. */
static struct io_calls calls;
static struct io io = {.calls = &calls};
static void (*meanwhile)(void);

static int open_and_let_others_run(struct io *unused, int dir_fd,
                                   const char *name, enum io_open_mode mode)
{
    void (*const other)(void) = meanwhile;

    if (other != NULL && strstr(name, ".snap") != NULL) {
        meanwhile = NULL;
        other();
    }
    return io_fault_io()->calls->open_file(unused, dir_fd, name, mode);
}

static void reopen_on_our_own_io(void)
{
    store_dir_close(&dir);
    calls = *io_fault_io()->calls;
    calls.open_file = open_and_let_others_run;
    dir.tuning.io = &io;
    store_dir_open(&dir);
}

static void snapshot_and_trim(void)
{
    assert_true(store_snapshot_trim(dir.store, take_snapshot()) > 0);
}

/* Where the index was when it was looked at there is no log any more. */
static void what_retention_takes_meanwhile_is_looked_for_anew(void **state)
{
    (void)state;
    live(10);
    take_snapshot();
    live(30);
    live_into_another_segment();
    reopen_on_our_own_io();
    meanwhile = snapshot_and_trim;
    assert_at(newest_lsn(), ON_INDEX);
    assert_null(meanwhile);
}

static uint64_t now_ns;
static uint64_t fake_clock(struct io *unused)
{
    (void)unused;
    return now_ns;
}

static void it_expires_like_any_other(void **state)
{
    struct stele_view *view;
    uint64_t count;

    (void)state;
    live(30);
    take_snapshot();
    live(3);
    checkpoint();
    dir.options.view_age_max_ms = 10;
    reopen_on_our_own_io();
    calls.clock_monotonic_ns = fake_clock;
    view = open_at(newest_lsn() - 1);
    assert_int_equal(stele_table_count(view, "t", &count, &dir.error),
                     STELE_OK);
    now_ns += 10 * 1000000 + 1;
    assert_int_equal(stele_table_count(view, "t", &count, &dir.error),
                     STELE_EXPIRED);
    assert_null(view->state);
    assert_true(base_is_empty(&view->base));
    stele_view_close(view);
}

static void a_copied_value_is_not_kept(void **state)
{
    struct stele_view *view;
    struct cell found = {0};
    char letter = 0;
    char buffer[VALUE_BYTES_MAX];
    struct stele_value lent;
    size_t bytes;
    uint64_t lsn;

    (void)state;
    while (found.lsn == 0) {
        live(10);
        for (unsigned key = 0; key < KEYS; key++) {
            if (moments[moment_count - 1].cells[0][key].lsn != 0) {
                found = moments[moment_count - 1].cells[0][key];
                letter = key_letter(key);
            }
        }
    }
    lsn = take_snapshot();
    live(1);
    checkpoint();
    view = open_at(lsn);
    assert_int_equal(standing_of(view), ON_SNAPSHOT);
    assert_int_equal(stele_view_get(view, "t", &letter, 1, &lent, &dir.error),
                     STELE_OK);
    for (int round = 0; round < 10; round++) {
        const struct base_kept *kept = view->base.kept;

        assert_int_equal(stele_view_copy(view, "t", &letter, 1, buffer,
                                         sizeof buffer, &bytes, NULL,
                                         &dir.error),
                         STELE_OK);
        assert_ptr_equal(view->base.kept, kept);
    }
    assert_value(&found, &lent);
    stele_view_close(view);
}

/* In a child: it can only be closed; what it held was its own. */
static void after_a_fork_it_can_only_be_closed(void **state)
{
    struct stele_view *view;
    struct stele_value value;
    int status = -1;
    pid_t pid;

    (void)state;
    live(30);
    take_snapshot();
    live(5);
    checkpoint();
    view = open_at(newest_lsn() - 1);
    assert_shows(view, moment_at(newest_lsn() - 1));
    pid = fork();
    if (pid == 0) {
        const bool forked =
            stele_view_get(view, "t", "a", 1, &value, NULL) == STELE_FORKED &&
            stele_view_open_at(dir.store, 1, &view, NULL) == STELE_FORKED;

        stele_view_close(view);
        _exit(forked && stele_close(dir.store, NULL) == STELE_OK ? 0 : 1);
    }
    assert_true(pid > 0);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
    assert_shows(view, moment_at(newest_lsn() - 1));
    stele_view_close(view);
}

static void a_failed_call_leaves_nothing_behind(void **state)
{
    uint64_t lsn;
    int tries = 0;

    (void)state;
    live(30);
    lsn = take_snapshot();
    live(5);
    checkpoint();
    for (;;) {
        const struct io_fault fault = {.call = IO_FAULT_ANY,
                                       .after_calls = (uint64_t)tries,
                                       .times = 1,
                                       .sys_errno = EMFILE};
        uint64_t struck;
        struct stele_view *view;
        enum stele_status status;

        io_fault_arm(&fault);
        status = stele_view_open_at(dir.store, lsn + 1, &view, &dir.error);
        struck = io_fault_count();
        io_fault_arm(NULL);
        if (status == STELE_OK) {
            assert_shows(view, moment_at(lsn + 1));
            stele_view_close(view);
        }
        if (struck == 0) {
            break;
        }
        assert_int_equal(status, STELE_IO);
        assert_int_equal(store_dir_stats(&dir).views_open, 0);
        tries++;
    }
    assert_true(tries > 10);
}

/* ---- Handles that only read ---------------------------------------------------------------------- */

static void become_a_reader(void)
{
    store_dir_close(&dir);
    assert_int_equal(store_dir_try_open(&dir, STELE_OPEN_READ_ONLY), STELE_OK);
}

static void a_reader_shows_every_lsn_too(void **state)
{
    uint64_t lsn;

    (void)state;
    live(30);
    lsn = take_snapshot();
    live(20);
    checkpoint();
    live(5);
    become_a_reader();
    assert_all(0, lsn - 1, ON_NOTHING);
    assert_all(lsn, store_dir_stats(&dir).lsn_applied - 1, ON_SNAPSHOT);
    assert_all(store_dir_stats(&dir).lsn_applied, newest_lsn(), ON_INDEX);
    assert_refused(newest_lsn() + 1, STELE_NOT_FOUND,
                   "LSN %" PRIu64
                   " is not there yet: the newest durable one is %" PRIu64,
                   newest_lsn() + 1, newest_lsn());
}

static void assert_now(enum standing standing)
{
    struct stele_view *view;

    if (stele_view_open(dir.store, &view, &dir.error) != STELE_OK) {
        fail_msg("%s", dir.error.message);
    }
    assert_true(stele_view_lsn(view) == newest_lsn());
    assert_int_equal(standing_of(view), standing);
    assert_shows(view, &moments[moment_count - 1]);
    stele_view_close(view);
}

static void a_reader_without_an_index_stands_on_the_newest_snapshot(
    void **state)
{
    uint64_t older;
    uint64_t newer;

    (void)state;
    live(20);
    older = take_snapshot();
    live(20);
    newer = take_snapshot();
    live(20);
    store_dir_close(&dir);
    files_remove(store_dir_at(&dir, "index/data.mdb"));
    assert_int_equal(store_dir_try_open(&dir, STELE_OPEN_READ_ONLY), STELE_OK);
    assert_now(ON_SNAPSHOT);
    assert_all(newer, newest_lsn(), ON_SNAPSHOT);
    store_dir_kill(&dir);

    damage(newer);
    assert_int_equal(store_dir_try_open(&dir, STELE_OPEN_READ_ONLY), STELE_OK);
    assert_now(ON_SNAPSHOT);
    store_dir_kill(&dir);

    damage(older);
    assert_int_equal(store_dir_try_open(&dir, STELE_OPEN_READ_ONLY), STELE_OK);
    assert_now(ON_NOTHING);
}

/* No writer, no index, no beginning: the verdict stands on the same snapshot. */
static void also_of_a_log_without_its_beginning(void **state)
{
    uint64_t older;
    uint64_t newer;

    (void)state;
    live_into_another_segment();
    older = take_snapshot();
    live(20);
    newer = take_snapshot();
    live(10);
    assert_true(store_snapshot_trim(dir.store, older) > 0);
    store_dir_close(&dir);
    files_remove(store_dir_at(&dir, "index/data.mdb"));
    assert_int_equal(store_dir_try_open(&dir, STELE_OPEN_READ_ONLY), STELE_OK);
    assert_now(ON_SNAPSHOT);
    assert_all(older, newest_lsn(), ON_SNAPSHOT);
    assert_refused(older - 1, STELE_NOT_FOUND,
                   "LSN %" PRIu64 " is older than what is retained: the oldest "
                   "base is at LSN %" PRIu64,
                   older - 1, older);
    store_dir_kill(&dir);
    store_dir_open(&dir); /* Rebuilt from it. */
    assert_now(ON_INDEX);
    assert_all(older, newer - 1, ON_SNAPSHOT);
    assert_all(newer, newest_lsn(), ON_INDEX);
}

#define PAST_TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        PAST_TEST(every_lsn_is_shown_on_an_index_that_is_behind),
        PAST_TEST(every_lsn_is_shown_on_nothing_while_the_log_is_whole),
        PAST_TEST(every_lsn_is_shown_on_the_newest_snapshot_below_it),
        PAST_TEST(
            an_index_in_the_middle_of_a_checkpoint_is_no_base_below_its_end),
        PAST_TEST(an_lsn_between_two_batches_shows_the_one_before),
        PAST_TEST(
            a_log_without_its_beginning_is_shown_from_its_oldest_snapshot),
        PAST_TEST(a_tag_is_looked_for_from_where_the_log_begins),
        PAST_TEST(an_lsn_that_is_not_there_yet_is_refused),
        PAST_TEST(what_is_not_synced_yet_is_no_past),
        PAST_TEST(behind_a_damaged_snapshot_the_one_before_it_is_the_base),
        PAST_TEST(if_damage_leaves_no_base_that_is_said),
        PAST_TEST(also_of_a_snapshot_that_nothing_depends_on),
        PAST_TEST(an_unreadable_log_is_not_papered_over),
        PAST_TEST(it_stays_as_it_is_while_the_store_goes_on),
        PAST_TEST(what_retention_takes_meanwhile_is_looked_for_anew),
        PAST_TEST(it_counts_as_one_of_views_max),
        PAST_TEST(it_expires_like_any_other),
        PAST_TEST(a_copied_value_is_not_kept),
        PAST_TEST(after_a_fork_it_can_only_be_closed),
        PAST_TEST(a_failed_call_leaves_nothing_behind),
        PAST_TEST(a_reader_shows_every_lsn_too),
        PAST_TEST(a_reader_without_an_index_stands_on_the_newest_snapshot),
        PAST_TEST(also_of_a_log_without_its_beginning),
    };

    run_seed();
    return cmocka_run_group_tests_name("engine/past", tests, NULL, NULL);
}
