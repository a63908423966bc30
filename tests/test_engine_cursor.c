/*
 * tests/test_engine_cursor.c -- cursors, counts and tables, through the public
 * API. What a cursor shows must not depend on where the keys are, so most tests
 * run with them in the memtable, in the index, and in both.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/stele.h"
#include "engine/store.h"
#include "tests/lib/temp_dir.h"

enum { MANY = 2000 };

enum placement { IN_MEMORY, IN_INDEX, IN_BOTH, PLACEMENT_COUNT };

/* ---- A small vocabulary --------------------------------------------------------------- */

static char *path;
static char table[] = "t"; /* The one under test. */
static struct stele *store;
static struct stele_view *view;
static struct stele_cursor *cursor;
static struct stele_entry entry;
static struct stele_error error;

/* Durability is not the question here: the disk is not waited for. */
static int no_sync(struct io *io, int fd)
{
    (void)io;
    (void)fd;
    return 0;
}

/* A clock that goes as the test wants, once views expire. */
static uint32_t view_age_max_ms; /* Of the next store. */
static uint64_t now_ns;

static uint64_t told_time(struct io *io)
{
    (void)io;
    return now_ns;
}

static void open_store(void)
{
    static struct io_calls calls;
    static struct io io = {.calls = &calls};
    struct stele_options options;
    struct store_tuning tuning;

    path = temp_dir_make();
    stele_options_init(&options);
    options.mode = STELE_OPEN_CREATE;
    options.segment_bytes = 1 << 20;
    options.index_map_bytes = 64 << 20;
    options.view_age_max_ms = view_age_max_ms;
    store_tuning_init(&tuning);
    tuning.manual = true;
    calls = *io_posix()->calls;
    calls.sync_data = no_sync;
    calls.sync_dir = no_sync;
    if (view_age_max_ms != 0) {
        calls.clock_monotonic_ns = told_time;
    }
    tuning.io = &io;
    assert_int_equal(store_open(path, &options, &tuning, &store, &error),
                     STELE_OK);
}

static void close_view(void)
{
    stele_cursor_close(cursor);
    cursor = NULL;
    stele_view_close(view);
    view = NULL;
}

static void close_store(void)
{
    close_view();
    assert_int_equal(stele_close(store, &error), STELE_OK);
    temp_dir_remove(path);
}

static int setup(void **state)
{
    (void)state;
    table[0] = 't';
    view_age_max_ms = 0;
    open_store();
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    close_store();
    return 0;
}

/* Another table, for the next placement. */
static void start_over(void)
{
    close_view();
    table[0]++;
}

static void put_in(const char *name, const char *key, const char *value)
{
    assert_int_equal(stele_put(store, name, key, strlen(key), value,
                               strlen(value), NULL, &error),
                     STELE_OK);
}

static void put(const char *key, const char *value)
{
    put_in(table, key, value);
}

static void remove_key(const char *key)
{
    assert_int_equal(stele_delete(store, table, key, strlen(key), NULL, &error),
                     STELE_OK);
}

/* NULL: the whole table. */
static void delete_prefix(const char *prefix)
{
    struct stele_batch *batch;

    assert_int_equal(stele_batch_create(&batch, &error), STELE_OK);
    assert_int_equal(prefix == NULL
                         ? stele_batch_clear_table(batch, table, &error)
                         : stele_batch_delete_prefix(batch, table, prefix,
                                                     strlen(prefix), &error),
                     STELE_OK);
    assert_int_equal(stele_commit(store, batch, STELE_DURABLE, NULL, &error),
                     STELE_OK);
    stele_batch_destroy(batch);
}

static void checkpoint(void)
{
    assert_int_equal(stele_checkpoint(store, &error), STELE_OK);
}

/* Put "k=k" for every k of the list, which NULL ends. */
static void load(enum placement placement, const char *const *keys)
{
    for (size_t index = 0; keys[index] != NULL; index++) {
        if (placement != IN_BOTH || index % 2 == 0) {
            put(keys[index], keys[index]);
        }
    }
    if (placement != IN_MEMORY) {
        checkpoint();
    }
    for (size_t index = 0; placement == IN_BOTH && keys[index] != NULL;
         index++) {
        if (index % 2 == 1) {
            put(keys[index], keys[index]);
        }
    }
}

/* A cursor on a new view. */
static void look(const char *name, const char *prefix)
{
    close_view();
    assert_int_equal(stele_view_open(store, &view, &error), STELE_OK);
    assert_int_equal(
        stele_cursor_open(view, name, prefix, strlen(prefix), &cursor, &error),
        STELE_OK);
}

/* What a call on the cursor showed: the key, or "-" at an end. */
static const char *shown(enum stele_status status)
{
    static char key[64];

    if (status == STELE_NOT_FOUND) {
        return "-";
    }
    assert_int_equal(status, STELE_OK);
    assert_true(entry.key_bytes < sizeof key);
    memcpy(key, entry.key, entry.key_bytes);
    key[entry.key_bytes] = '\0';
    return key;
}

static const char *first(void)
{
    return shown(stele_cursor_first(cursor, &entry, &error));
}

static const char *last(void)
{
    return shown(stele_cursor_last(cursor, &entry, &error));
}

static const char *next(void)
{
    return shown(stele_cursor_next(cursor, &entry, &error));
}

static const char *prev(void)
{
    return shown(stele_cursor_prev(cursor, &entry, &error));
}

static const char *seek(const char *key)
{
    return shown(stele_cursor_seek(cursor, key, strlen(key), &entry, &error));
}

/* All keys, forward and backward, joined by spaces. */
static void assert_shows(const char *name, const char *prefix,
                         const char *expected)
{
    char forward[1024] = "";
    char backward[1024] = "";

    look(name, prefix);
    for (const char *key = first(); strcmp(key, "-") != 0; key = next()) {
        strcat(strcat(forward, forward[0] == '\0' ? "" : " "), key);
    }
    assert_string_equal(forward, expected);
    for (const char *key = last(); strcmp(key, "-") != 0; key = prev()) {
        char joined[1024];

        snprintf(joined, sizeof joined, "%s%s%.1000s", key,
                 backward[0] == '\0' ? "" : " ", backward);
        memcpy(backward, joined, sizeof backward);
    }
    assert_string_equal(backward, expected);
}

static uint64_t count_of(const char *name)
{
    uint64_t count;

    close_view();
    assert_int_equal(stele_view_open(store, &view, &error), STELE_OK);
    assert_int_equal(stele_table_count(view, name, &count, &error), STELE_OK);
    return count;
}

static const char *const some_keys[] = {"b", "d", "f", "h", "k", NULL};

/* ---- Ends ---------------------------------------------------------------------------------- */

static void an_empty_table_has_no_entry_in_any_direction(void **state)
{
    static const char *const tables[] = {"never", "t"};

    (void)state;
    put("a", "1");
    remove_key("a");
    for (size_t index = 0; index < 4; index++) {
        look(tables[index % 2], "");
        assert_string_equal(first(), "-");
        assert_string_equal(last(), "-");
        assert_string_equal(next(), "-");
        assert_string_equal(prev(), "-");
        assert_string_equal(seek("a"), "-");
        close_view();
        checkpoint();
    }
}

static void keys_come_in_order_both_ways(void **state)
{
    (void)state;
    for (int placement = 0; placement < PLACEMENT_COUNT; placement++) {
        load((enum placement)placement, some_keys);
        assert_shows(table, "", "b d f h k");
        start_over();
    }
}

static void an_unpositioned_cursor_begins_at_either_end(void **state)
{
    (void)state;
    for (int placement = 0; placement < PLACEMENT_COUNT; placement++) {
        load((enum placement)placement, some_keys);
        look(table, "");
        assert_string_equal(next(), "b");
        look(table, "");
        assert_string_equal(prev(), "k");
        start_over();
    }
}

static void off_an_end_it_stays_and_the_opposite_call_comes_back(void **state)
{
    (void)state;
    for (int placement = 0; placement < PLACEMENT_COUNT; placement++) {
        load((enum placement)placement, some_keys);
        look(table, "");
        assert_string_equal(last(), "k");
        assert_string_equal(next(), "-");
        assert_string_equal(next(), "-");
        assert_string_equal(prev(), "k");
        assert_string_equal(prev(), "h");
        assert_string_equal(first(), "b");
        assert_string_equal(prev(), "-");
        assert_string_equal(prev(), "-");
        assert_string_equal(next(), "b");
        assert_string_equal(next(), "d");
        start_over();
    }
}

static void it_turns_round_on_every_entry(void **state)
{
    (void)state;
    for (int placement = 0; placement < PLACEMENT_COUNT; placement++) {
        load((enum placement)placement, some_keys);
        look(table, "");
        for (int index = 0; index < 4; index++) {
            (void)(index == 0 ? first() : next());
            assert_string_equal(next(), some_keys[index + 1]);
            assert_string_equal(prev(), some_keys[index]);
            assert_string_equal(next(), some_keys[index + 1]);
            assert_string_equal(prev(), some_keys[index]);
        }
        start_over();
    }
}

/* ---- Seeking -------------------------------------------------------------------------------- */

static void a_seek_goes_to_the_first_key_at_or_after(void **state)
{
    static const struct {
        const char *key;
        const char *expected;
        const char *before;
        const char *behind;
    } cases[] = {
        {"a", "b", "-", "d"}, {"b", "b", "-", "d"},     {"c", "d", "b", "f"},
        {"h", "h", "f", "k"}, {"h\x01", "k", "h", "-"}, {"k", "k", "h", "-"},
    };

    (void)state;
    for (int placement = 0; placement < PLACEMENT_COUNT; placement++) {
        load((enum placement)placement, some_keys);
        look(table, "");
        for (size_t index = 0; index < sizeof cases / sizeof *cases; index++) {
            assert_string_equal(seek(cases[index].key), cases[index].expected);
            assert_string_equal(prev(), cases[index].before);
            assert_string_equal(seek(cases[index].key), cases[index].expected);
            assert_string_equal(next(), cases[index].behind);
        }
        assert_string_equal(seek("z"), "-");
        assert_string_equal(next(), "-");
        assert_string_equal(prev(), "k");
        start_over();
    }
}

static void a_seek_of_an_impossible_key_is_refused(void **state)
{
    static const char key[512];

    (void)state;
    put("a", "1");
    look(table, "");
    assert_string_equal(first(), "a");
    assert_int_equal(stele_cursor_seek(cursor, key, 0, &entry, &error),
                     STELE_INVALID);
    assert_int_equal(stele_cursor_seek(cursor, NULL, 1, &entry, &error),
                     STELE_INVALID);
    assert_int_equal(stele_cursor_seek(cursor, key, 510, &entry, &error),
                     STELE_TOO_BIG);
    assert_string_equal(next(), "-"); /* It stood on "a" all the time. */
    assert_int_equal(stele_cursor_seek(cursor, key, 509, &entry, &error),
                     STELE_OK);
}

static void a_cursor_over_an_impossible_table_or_prefix_is_refused(void **state)
{
    static const char prefix[512];
    struct stele_cursor *none = NULL;

    (void)state;
    assert_int_equal(stele_view_open(store, &view, &error), STELE_OK);
    assert_int_equal(stele_cursor_open(view, "a b", NULL, 0, &none, &error),
                     STELE_INVALID);
    assert_int_equal(stele_cursor_open(view, NULL, NULL, 0, &none, &error),
                     STELE_INVALID);
    assert_int_equal(stele_cursor_open(view, "", "p", 1, &none, &error),
                     STELE_INVALID);
    assert_int_equal(stele_cursor_open(view, table, prefix, 510, &none, &error),
                     STELE_TOO_BIG);
    assert_int_equal(stele_cursor_open(view, table, NULL, 1, &none, &error),
                     STELE_INVALID);
    assert_null(none);
    stele_cursor_close(NULL);
}

/* ---- Bounds ----------------------------------------------------------------------------------- */

static const char *const prefixed_keys[] = {
    "a",  "ab",   "ab\x01",   "abc",      "ab\xff", "ab\xff\xff",
    "ac", "\xff", "\xff\x01", "\xff\xff", NULL};

static void a_prefix_bounds_the_cursor(void **state)
{
    (void)state;
    for (int placement = 0; placement < PLACEMENT_COUNT; placement++) {
        load((enum placement)placement, prefixed_keys);
        assert_shows(table, "ab", "ab ab\x01 abc ab\xff ab\xff\xff");
        assert_shows(table, "ab\xff", "ab\xff ab\xff\xff");
        assert_shows(table, "a", "a ab ab\x01 abc ab\xff ab\xff\xff ac");
        assert_shows(table, "\xff", "\xff \xff\x01 \xff\xff");
        assert_shows(table, "\xff\xff", "\xff\xff");
        assert_shows(table, "abd", "");
        assert_shows(table, "b", "");
        start_over();
    }
}

static void a_seek_outside_the_prefix_is_brought_inside(void **state)
{
    (void)state;
    for (int placement = 0; placement < PLACEMENT_COUNT; placement++) {
        load((enum placement)placement, prefixed_keys);
        look(table, "ab");
        assert_string_equal(seek("a"), "ab");
        assert_string_equal(prev(), "-");
        assert_string_equal(seek("ac"), "-");
        assert_string_equal(prev(), "ab\xff\xff");
        assert_string_equal(next(), "-");
        start_over();
    }
}

static void other_tables_are_not_shown(void **state)
{
    static const char *const tables[] = {"s", "t-", "t.", "tt", "u", "T"};

    (void)state;
    for (int round = 0; round < 2; round++) {
        for (size_t index = 0; index < sizeof tables / sizeof *tables;
             index++) {
            put_in(tables[index], "\x01", "other");
            put_in(tables[index], "m", "other");
            put_in(tables[index], "\xff\xff", "other");
        }
        put("m", "mine");
        assert_shows(table, "", "m");
        assert_shows(table, "\xff", "");
        assert_int_equal(count_of(table), 1);
        assert_int_equal(count_of("tt"), 3);
        close_view();
        checkpoint();
    }
}

/* ---- What is hidden ------------------------------------------------------------------------------ */

static void the_newest_value_is_shown_with_its_lsn(void **state)
{
    uint64_t lsn;

    (void)state;
    put("k", "old");
    checkpoint();
    assert_int_equal(stele_put(store, table, "k", 1, "new", 3, &lsn, &error),
                     STELE_OK);
    for (int round = 0; round < 2; round++) {
        look(table, "");
        assert_string_equal(first(), "k");
        assert_int_equal(entry.value.bytes, 3);
        assert_memory_equal(entry.value.data, "new", 3);
        assert_int_equal(entry.value.lsn, lsn);
        assert_string_equal(next(), "-");
        close_view();
        checkpoint();
    }
}

static void empty_values_and_zero_bytes_in_keys_are_shown(void **state)
{
    (void)state;
    assert_int_equal(stele_put(store, table, "a\0b", 3, NULL, 0, NULL, &error),
                     STELE_OK);
    assert_int_equal(stele_put(store, table, "\0", 1, "", 0, NULL, &error),
                     STELE_OK);
    for (int round = 0; round < 2; round++) {
        look(table, "");
        assert_int_equal(stele_cursor_first(cursor, &entry, &error), STELE_OK);
        assert_int_equal(entry.key_bytes, 1);
        assert_memory_equal(entry.key, "\0", 1);
        assert_int_equal(stele_cursor_next(cursor, &entry, &error), STELE_OK);
        assert_int_equal(entry.key_bytes, 3);
        assert_memory_equal(entry.key, "a\0b", 3);
        assert_int_equal(entry.value.bytes, 0);
        close_view();
        checkpoint();
    }
}

static void deleted_keys_are_skipped(void **state)
{
    (void)state;
    for (int placement = 0; placement < PLACEMENT_COUNT; placement++) {
        load((enum placement)placement, some_keys);
        remove_key("b");
        remove_key("f");
        remove_key("k");
        remove_key("nothing");
        assert_shows(table, "", "d h");
        assert_int_equal(count_of(table), 2);
        close_view();
        checkpoint();
        assert_shows(table, "", "d h");
        start_over();
    }
}

static void range_deleted_prefixes_are_skipped(void **state)
{
    static const char *const keys[] = {"a",  "a1", "a2", "b",  "b1", "b2",
                                       "bz", "c",  "c1", "d1", NULL};

    (void)state;
    for (int placement = 0; placement < PLACEMENT_COUNT; placement++) {
        load((enum placement)placement, keys);
        delete_prefix("b");
        assert_shows(table, "", "a a1 a2 c c1 d1");
        delete_prefix("d");
        assert_shows(table, "", "a a1 a2 c c1");
        delete_prefix("a");
        assert_shows(table, "", "c c1");
        assert_shows(table, "b", "");
        put("b1", "again"); /* Newer than the range over it. */
        assert_shows(table, "", "b1 c c1");
        look(table, "");
        assert_string_equal(seek("a1"), "b1");
        assert_string_equal(prev(), "-");
        assert_string_equal(next(), "b1");
        close_view();
        checkpoint();
        assert_shows(table, "", "b1 c c1");
        start_over();
    }
}

static void a_range_in_the_middle_of_a_batch_takes_only_what_is_before_it(
    void **state)
{
    struct stele_batch *batch;

    (void)state;
    put("a", "old");
    put("b", "old");
    checkpoint();
    assert_int_equal(stele_batch_create(&batch, &error), STELE_OK);
    assert_int_equal(stele_batch_put(batch, table, "c", 1, "1", 1, &error),
                     STELE_OK);
    assert_int_equal(stele_batch_clear_table(batch, table, &error), STELE_OK);
    assert_int_equal(stele_batch_put(batch, table, "b", 1, "2", 1, &error),
                     STELE_OK);
    assert_int_equal(stele_batch_put(batch, table, "d", 1, "3", 1, &error),
                     STELE_OK);
    assert_int_equal(stele_commit(store, batch, STELE_DURABLE, NULL, &error),
                     STELE_OK);
    stele_batch_destroy(batch);
    for (int round = 0; round < 2; round++) {
        assert_shows(table, "", "b d");
        assert_int_equal(count_of(table), 2);
        close_view();
        checkpoint();
    }
}

/* A long range is left at once, not walked. */
static void a_large_deleted_range_is_crossed_both_ways(void **state)
{
    (void)state;
    put("a", "1");
    put("z", "1");
    for (int round = 0; round < 2; round++) {
        struct stele_batch *batch;

        assert_int_equal(stele_batch_create(&batch, &error), STELE_OK);
        for (int index = 0; index < MANY; index++) {
            char key[16];

            snprintf(key, sizeof key, "m%06d", index);
            assert_int_equal(
                stele_batch_put(batch, table, key, strlen(key), "v", 1, &error),
                STELE_OK);
        }
        assert_int_equal(
            stele_commit(store, batch, STELE_DURABLE, NULL, &error), STELE_OK);
        stele_batch_destroy(batch);
        assert_int_equal(count_of(table), MANY + 2);
        close_view();
        if (round == 0) {
            checkpoint();
        }
        delete_prefix("m");
        look(table, "");
        assert_string_equal(first(), "a");
        assert_string_equal(next(), "z");
        assert_string_equal(prev(), "a");
        assert_string_equal(seek("m000007"), "z");
        assert_int_equal(count_of(table), 2);
    }
}

/* ---- Stability -------------------------------------------------------------------------------------- */

static void a_cursor_shows_its_view_whatever_is_committed_meanwhile(
    void **state)
{
    struct stele_view *later;
    uint64_t count;

    (void)state;
    for (int placement = 0; placement < PLACEMENT_COUNT; placement++) {
        load((enum placement)placement, some_keys);
        look(table, "");
        assert_string_equal(first(), "b");
        put("c", "later");
        put("d", "later");
        remove_key("f");
        delete_prefix("h");
        checkpoint();
        put("a", "later");
        delete_prefix(NULL);
        checkpoint();
        assert_string_equal(next(), "d");
        assert_memory_equal(entry.value.data, "d", 1);
        assert_string_equal(next(), "f");
        assert_string_equal(next(), "h");
        assert_string_equal(next(), "k");
        assert_string_equal(next(), "-");
        assert_string_equal(first(), "b");
        assert_int_equal(stele_table_count(view, table, &count, &error),
                         STELE_OK);
        assert_int_equal(count, 5);
        assert_int_equal(stele_view_open(store, &later, &error), STELE_OK);
        assert_int_equal(stele_table_count(later, table, &count, &error),
                         STELE_OK);
        assert_int_equal(count, 0);
        stele_view_close(later);
        start_over();
    }
}

/* ---- Counts ------------------------------------------------------------------------------------------- */

static void counts_are_exact_without_fragments(void **state)
{
    (void)state;
    assert_int_equal(count_of("never"), 0);
    for (int placement = 0; placement < PLACEMENT_COUNT; placement++) {
        load((enum placement)placement, some_keys);
        assert_int_equal(count_of(table), 5);
        put("b", "replaced");
        put("c", "new");
        assert_int_equal(count_of(table), 6);
        remove_key("c");
        remove_key("b");
        remove_key("absent");
        assert_int_equal(count_of(table), 4);
        put("b", "again");
        assert_int_equal(count_of(table), 5);
        close_view();
        checkpoint();
        assert_int_equal(count_of(table), 5);
        start_over();
    }
}

static void counts_are_exact_with_fragments(void **state)
{
    (void)state;
    for (int placement = 0; placement < PLACEMENT_COUNT; placement++) {
        load((enum placement)placement, prefixed_keys);
        delete_prefix("ab");
        assert_int_equal(count_of(table), 5);
        put("abc", "again");
        put("abx", "new");
        assert_int_equal(count_of(table), 7);
        delete_prefix("abc");
        assert_int_equal(count_of(table), 6);
        close_view();
        checkpoint();
        assert_int_equal(count_of(table), 6);
        delete_prefix(NULL);
        assert_int_equal(count_of(table), 0);
        put("k", "1");
        assert_int_equal(count_of(table), 1);
        close_view();
        checkpoint();
        assert_int_equal(count_of(table), 1);
        start_over();
    }
}

/* ---- Tables -------------------------------------------------------------------------------------------- */

static const char *table_after(const char *after)
{
    static char name[STELE_TABLE_NAME_BYTES_MAX + 1];
    enum stele_status status;

    if (view == NULL) {
        assert_int_equal(stele_view_open(store, &view, &error), STELE_OK);
    }
    status = stele_table_next(view, after, name, &error);
    if (status == STELE_NOT_FOUND) {
        return "-";
    }
    assert_int_equal(status, STELE_OK);
    return name;
}

static void tables_are_listed_in_order_from_their_first_operation_on(
    void **state)
{
    (void)state;
    assert_string_equal(table_after(NULL), "-");
    close_view();
    put_in("b", "k", "1");
    put_in("B", "k", "1");
    put_in("b-c", "k", "1");
    put_in("a.b", "k", "1");
    remove_key("never there"); /* In "t". */
    for (int round = 0; round < 3; round++) {
        assert_string_equal(table_after(NULL), "B");
        assert_string_equal(table_after("B"), "a.b");
        assert_string_equal(table_after("a.b"), "b");
        assert_string_equal(table_after("b"), "b-c");
        assert_string_equal(table_after("b-c"), "t");
        assert_string_equal(table_after("t"), "-");
        assert_string_equal(table_after("aa"), "b"); /* Not a table itself. */
        close_view();
        checkpoint();
        put_in("b", "k", "2");
    }
    assert_int_equal(stele_view_open(store, &view, &error), STELE_OK);
    assert_int_equal(stele_table_next(view, "no table", (char[64]){""}, &error),
                     STELE_INVALID);
}

static void a_table_has_the_lsn_of_its_last_change(void **state)
{
    uint64_t put_lsn;
    uint64_t lsn;

    (void)state;
    assert_int_equal(stele_put(store, table, "k", 1, "v", 1, &put_lsn, &error),
                     STELE_OK);
    put_in("other", "k", "v");
    for (int round = 0; round < 2; round++) {
        assert_int_equal(stele_view_open(store, &view, &error), STELE_OK);
        assert_int_equal(stele_table_lsn(view, table, &lsn, &error), STELE_OK);
        assert_int_equal(lsn, put_lsn);
        assert_int_equal(stele_table_lsn(view, "never", &lsn, &error),
                         STELE_OK);
        assert_int_equal(lsn, 0);
        close_view();
        checkpoint();
    }
    /* Also by what changes nothing; but not by an expectation. */
    assert_int_equal(stele_delete(store, table, "absent", 6, &put_lsn, &error),
                     STELE_OK);
    assert_int_equal(stele_view_open(store, &view, &error), STELE_OK);
    assert_int_equal(stele_table_lsn(view, table, &lsn, &error), STELE_OK);
    assert_int_equal(lsn, put_lsn);
}

/* ---- Cursors of a view that is gone -------------------------------------------------------- */

/* Also where there would be nothing to read: it must not pass for the whole. */
static void at_either_end_of_an_expired_view_it_says_so(void **state)
{
    enum { AGE_MAX_MS = 10, NS_PER_MS = 1000000 };

    (void)state;
    close_store();
    view_age_max_ms = AGE_MAX_MS;
    now_ns = NS_PER_MS;
    open_store();
    load(IN_BOTH, some_keys);
    for (int end = 0; end < 2; end++) {
        look(table, "");
        if (end == 0) {
            assert_string_equal(last(), "k");
            assert_string_equal(next(), "-");
            assert_string_equal(next(), "-");
        } else {
            assert_string_equal(first(), "b");
            assert_string_equal(prev(), "-");
            assert_string_equal(prev(), "-");
        }
        now_ns += AGE_MAX_MS * NS_PER_MS + 1;
        assert_int_equal(end == 0 ? stele_cursor_next(cursor, &entry, &error)
                                  : stele_cursor_prev(cursor, &entry, &error),
                         STELE_EXPIRED);
        assert_int_equal(end == 0 ? stele_cursor_prev(cursor, &entry, &error)
                                  : stele_cursor_next(cursor, &entry, &error),
                         STELE_EXPIRED);
        assert_int_equal(stele_cursor_first(cursor, &entry, &error),
                         STELE_EXPIRED);
    }
}

static void assert_only_to_be_closed(struct stele_cursor *orphan)
{
    assert_int_equal(stele_cursor_first(orphan, &entry, &error), STELE_INVALID);
    assert_string_equal(error.message, "the cursor's view is closed");
    assert_int_equal(stele_cursor_last(orphan, &entry, &error), STELE_INVALID);
    assert_int_equal(stele_cursor_next(orphan, &entry, &error), STELE_INVALID);
    assert_int_equal(stele_cursor_prev(orphan, &entry, &error), STELE_INVALID);
    assert_int_equal(stele_cursor_seek(orphan, "d", 1, &entry, &error),
                     STELE_INVALID);
}

static void after_its_view_a_cursor_can_only_be_closed(void **state)
{
    enum { UNPOSITIONED, ON_A_KEY, AT_THE_END, AT_THE_START, CURSORS };
    struct stele_cursor *cursors[CURSORS];

    (void)state;
    load(IN_BOTH, some_keys);
    assert_int_equal(stele_view_open(store, &view, &error), STELE_OK);
    for (size_t index = 0; index < CURSORS; index++) {
        assert_int_equal(
            stele_cursor_open(view, table, NULL, 0, &cursors[index], &error),
            STELE_OK);
    }
    assert_int_equal(
        stele_cursor_seek(cursors[ON_A_KEY], "d", 1, &entry, &error), STELE_OK);
    assert_int_equal(stele_cursor_last(cursors[AT_THE_END], &entry, &error),
                     STELE_OK);
    assert_int_equal(stele_cursor_next(cursors[AT_THE_END], &entry, &error),
                     STELE_NOT_FOUND);
    assert_int_equal(stele_cursor_first(cursors[AT_THE_START], &entry, &error),
                     STELE_OK);
    assert_int_equal(stele_cursor_prev(cursors[AT_THE_START], &entry, &error),
                     STELE_NOT_FOUND);
    close_view();
    for (int again = 0; again < 2; again++) {
        for (size_t index = 0; index < CURSORS; index++) {
            assert_only_to_be_closed(cursors[index]);
        }
        put("m", "m"); /* What they held is reused. */
        checkpoint();
    }
    stele_cursor_close(cursors[ON_A_KEY]);
    close_store();
    for (size_t index = 0; index < CURSORS; index++) {
        if (index != ON_A_KEY) {
            stele_cursor_close(cursors[index]);
        }
    }
    open_store();
}

/* ---- What no key can be in ------------------------------------------------------------------ */

static void a_range_below_the_lowest_key_is_empty(void **state)
{
    struct stele_batch *batch;

    (void)state;
    put("\x01", "1");
    assert_int_equal(stele_batch_create(&batch, &error), STELE_OK);
    assert_int_equal(
        stele_batch_delete_range(batch, table, NULL, 0, "\0", 1, &error),
        STELE_INVALID);
    assert_int_equal(stele_batch_ops(batch), 0);
    assert_int_equal(
        stele_batch_delete_range(batch, table, NULL, 0, "\0\0", 2, &error),
        STELE_OK);
    assert_int_equal(
        stele_batch_delete_range(batch, table, NULL, 0, "\x01", 1, &error),
        STELE_OK);
    assert_int_equal(stele_commit(store, batch, STELE_DURABLE, NULL, &error),
                     STELE_OK);
    stele_batch_destroy(batch);
    checkpoint();
    look(table, "");
    assert_string_equal(first(), "\x01");
}

#define STORE_TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        STORE_TEST(an_empty_table_has_no_entry_in_any_direction),
        STORE_TEST(keys_come_in_order_both_ways),
        STORE_TEST(an_unpositioned_cursor_begins_at_either_end),
        STORE_TEST(off_an_end_it_stays_and_the_opposite_call_comes_back),
        STORE_TEST(it_turns_round_on_every_entry),
        STORE_TEST(a_seek_goes_to_the_first_key_at_or_after),
        STORE_TEST(a_seek_of_an_impossible_key_is_refused),
        STORE_TEST(a_cursor_over_an_impossible_table_or_prefix_is_refused),
        STORE_TEST(a_prefix_bounds_the_cursor),
        STORE_TEST(a_seek_outside_the_prefix_is_brought_inside),
        STORE_TEST(other_tables_are_not_shown),
        STORE_TEST(the_newest_value_is_shown_with_its_lsn),
        STORE_TEST(empty_values_and_zero_bytes_in_keys_are_shown),
        STORE_TEST(deleted_keys_are_skipped),
        STORE_TEST(range_deleted_prefixes_are_skipped),
        STORE_TEST(
            a_range_in_the_middle_of_a_batch_takes_only_what_is_before_it),
        STORE_TEST(a_large_deleted_range_is_crossed_both_ways),
        STORE_TEST(a_cursor_shows_its_view_whatever_is_committed_meanwhile),
        STORE_TEST(counts_are_exact_without_fragments),
        STORE_TEST(counts_are_exact_with_fragments),
        STORE_TEST(tables_are_listed_in_order_from_their_first_operation_on),
        STORE_TEST(a_table_has_the_lsn_of_its_last_change),
        STORE_TEST(at_either_end_of_an_expired_view_it_says_so),
        STORE_TEST(after_its_view_a_cursor_can_only_be_closed),
        STORE_TEST(a_range_below_the_lowest_key_is_empty),
    };

    return cmocka_run_group_tests_name("engine/cursor", tests, NULL, NULL);
}
