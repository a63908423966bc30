/* tests/lib/model_view.c -- see tests/lib/model_view.h. */
#include "tests/lib/model_view.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "tests/lib/model_ops.h"

/* Describe what differs. Always false. */
__attribute__((format(printf, 2, 3))) static bool differs(
    struct model_difference *difference, const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(difference->text, sizeof difference->text, format, arguments);
    va_end(arguments);
    return false;
}

/* "key a\x00 at LSN 7 with 12 bytes" */
static const char *describe(const uint8_t *key, size_t key_bytes, uint64_t lsn,
                            size_t value_bytes, char text[2 * MODEL_TEXT_BYTES])
{
    char escaped[MODEL_TEXT_BYTES];

    snprintf(text, 2 * MODEL_TEXT_BYTES,
             "key %s put at LSN %" PRIu64 " with %zu bytes",
             model_escape(key, key_bytes, escaped), lsn, value_bytes);
    return text;
}

static bool value_matches(const struct model_version *expected,
                          const struct stele_value *found)
{
    return expected->lsn == found->lsn &&
           model_value_is(expected->value_seed, expected->value_bytes,
                          found->data, found->bytes);
}

/* What a cursor call delivered against what it must; `expected` NULL: no
 * entry. */
static bool entry_matches(const char *what, unsigned table,
                          enum stele_status status,
                          const struct stele_entry *found,
                          const struct model_entry *expected,
                          const struct stele_error *error,
                          struct model_difference *difference)
{
    char expected_text[2 * MODEL_TEXT_BYTES] = "no key";
    char found_text[2 * MODEL_TEXT_BYTES];

    if (status == STELE_NOT_FOUND && expected == NULL) {
        return true;
    }
    if (status == STELE_OK && expected != NULL &&
        model_compare(found->key, found->key_bytes, expected->key,
                      expected->key_bytes) == 0 &&
        value_matches(&expected->version, &found->value)) {
        return true;
    }
    if (expected != NULL) {
        describe(expected->key, expected->key_bytes, expected->version.lsn,
                 expected->version.value_bytes, expected_text);
    }
    if (status == STELE_OK) {
        describe(found->key, found->key_bytes, found->value.lsn,
                 found->value.bytes, found_text);
    } else {
        snprintf(found_text, sizeof found_text, "%.250s", error->message);
    }
    return differs(difference, "table %s: %s: expected %s, found %s",
                   model_table_name(table), what, expected_text, found_text);
}

/* ---- Whole --------------------------------------------------------------------- */

static bool tables_match(const struct model *model, struct stele_view *view,
                         struct model_difference *difference)
{
    const uint64_t lsn = stele_view_lsn(view);
    char name[STELE_TABLE_NAME_BYTES_MAX + 1] = "";
    struct stele_error error;

    for (unsigned table = 0; table <= MODEL_TABLES; table++) {
        const char *expected = model_table_name(table);
        const uint64_t expected_lsn = model_table_lsn(model, table, lsn);
        enum stele_status status;
        uint64_t found_lsn;

        status = stele_table_lsn(view, expected, &found_lsn, &error);
        if (status != STELE_OK) {
            return differs(difference, "table %s: LSN: %s", expected,
                           error.message);
        }
        if (found_lsn != expected_lsn) {
            return differs(difference,
                           "table %s: expected LSN %" PRIu64 ", found %" PRIu64,
                           expected, expected_lsn, found_lsn);
        }
        if (expected_lsn == 0) {
            continue;
        }
        status =
            stele_table_next(view, name[0] == '\0' ? NULL : name, name, &error);
        if (status != STELE_OK || strcmp(name, expected) != 0) {
            return differs(difference, "list of tables: expected %s, found %s",
                           expected, status == STELE_OK ? name : error.message);
        }
    }
    if (stele_table_next(view, name[0] == '\0' ? NULL : name, name, &error) !=
        STELE_NOT_FOUND) {
        return differs(difference, "list of tables: a table too many");
    }
    return true;
}

/* Through all of `list` in one direction, to the end, and one further. */
static bool scan_matches(struct stele_cursor *cursor, unsigned table,
                         const struct model_list *list, const char *what,
                         bool forward, struct model_difference *difference)
{
    for (size_t done = 0; done < list->count + 2; done++) {
        const struct model_entry *expected =
            done >= list->count ? NULL
            : forward           ? &list->entries[done]
                                : &list->entries[list->count - 1 - done];
        struct stele_entry found;
        struct stele_error error;
        const enum stele_status status =
            forward ? stele_cursor_next(cursor, &found, &error)
                    : stele_cursor_prev(cursor, &found, &error);

        if (!entry_matches(what, table, status, &found, expected, &error,
                           difference)) {
            return false;
        }
    }
    return true;
}

/* Both ways through the keys with this prefix (of size 0: all). */
static bool scans_match(const struct model *model, struct stele_view *view,
                        unsigned table, const struct model_bytes *prefix,
                        struct model_difference *difference)
{
    struct model_list list = {0};
    struct stele_cursor *cursor;
    struct stele_entry entry;
    struct stele_error error;
    bool matches;

    if (stele_cursor_open(view, model_table_name(table), prefix->data,
                          prefix->size, &cursor, &error) != STELE_OK) {
        return differs(difference, "open a cursor: %s", error.message);
    }
    model_list_present(model, table, prefix, stele_view_lsn(view), &list);
    matches = scan_matches(cursor, table, &list, "forward", true, difference);
    if (matches && list.count > 0) {
        /* From behind the end back to before the start. */
        matches =
            scan_matches(cursor, table, &list, "backward", false, difference) &&
            entry_matches("last", table,
                          stele_cursor_last(cursor, &entry, &error), &entry,
                          &list.entries[list.count - 1], &error, difference) &&
            entry_matches("first", table,
                          stele_cursor_first(cursor, &entry, &error), &entry,
                          &list.entries[0], &error, difference);
    }
    stele_cursor_close(cursor);
    model_list_deinit(&list);
    return matches;
}

static bool count_matches(struct stele_view *view, unsigned table,
                          uint64_t expected,
                          struct model_difference *difference)
{
    struct stele_error error;
    uint64_t found;

    if (stele_table_count(view, model_table_name(table), &found, &error) !=
        STELE_OK) {
        return differs(difference, "table %s: count: %s",
                       model_table_name(table), error.message);
    }
    return found == expected ||
           differs(difference,
                   "table %s: expected %" PRIu64 " keys, counted %" PRIu64,
                   model_table_name(table), expected, found);
}

static bool get_matches(struct stele_view *view, unsigned table,
                        const uint8_t *key, size_t key_bytes,
                        const struct model_version *expected,
                        struct model_difference *difference)
{
    const struct model_entry entry = {key, key_bytes, *expected};
    struct stele_entry found = {.key = key, .key_bytes = key_bytes};
    struct stele_error error;
    const enum stele_status status = stele_view_get(
        view, model_table_name(table), key, key_bytes, &found.value, &error);

    if (status == STELE_NOT_FOUND && !expected->present) {
        return true;
    }
    return entry_matches("get", table, status, &found,
                         expected->present ? &entry : NULL, &error, difference);
}

static bool copy_matches(struct stele_view *view, unsigned table,
                         const struct model_bytes *key,
                         const struct model_version *expected,
                         struct model_difference *difference)
{
    static uint8_t buffer[4096];
    struct stele_value value = {.data = buffer};
    struct stele_error error;
    const enum stele_status status = stele_view_copy(
        view, model_table_name(table), key->data, key->size, buffer,
        sizeof buffer, &value.bytes, &value.lsn, &error);
    char escaped[MODEL_TEXT_BYTES];

    if (!expected->present ? status == STELE_NOT_FOUND
        : expected->value_bytes > sizeof buffer
            ? status == STELE_TOO_BIG && value.lsn == expected->lsn &&
                  value.bytes == expected->value_bytes
            : status == STELE_OK && value_matches(expected, &value)) {
        return true;
    }
    return differs(difference,
                   "table %s: copy of key %s: status %d; expected it %s at LSN "
                   "%" PRIu64,
                   model_table_name(table),
                   model_escape(key->data, key->size, escaped), (int)status,
                   expected->present ? "present" : "absent", expected->lsn);
}

/* Every key that the table ever had. */
static bool gets_match(const struct model *model, struct stele_view *view,
                       unsigned table, uint64_t *present_out,
                       struct model_difference *difference)
{
    struct model_list list = {0};
    bool matches = true;

    *present_out = 0;
    model_list_ever(model, table, stele_view_lsn(view), &list);
    for (size_t index = 0; index < list.count && matches; index++) {
        const struct model_entry *entry = &list.entries[index];

        *present_out += entry->version.present ? 1 : 0;
        matches = get_matches(view, table, entry->key, entry->key_bytes,
                              &entry->version, difference);
    }
    model_list_deinit(&list);
    return matches;
}

bool model_view_gets_match(const struct model *model, struct stele_view *view,
                           struct random_source *random, unsigned count,
                           struct model_difference *difference)
{
    for (; count > 0; count--) {
        const unsigned table = model_random_table(random);
        struct model_version version;
        struct model_bytes key;

        model_random_key(random, table, &key);
        model_get(model, table, &key, stele_view_lsn(view), &version);
        if (!get_matches(view, table, key.data, key.size, &version,
                         difference) ||
            !copy_matches(view, table, &key, &version, difference)) {
            return false;
        }
    }
    return true;
}

bool model_view_matches(const struct model *model, struct stele_view *view,
                        struct random_source *random,
                        struct model_difference *difference)
{
    if (!tables_match(model, view, difference)) {
        return false;
    }
    for (unsigned table = 0; table <= MODEL_TABLES; table++) {
        struct model_bytes prefix = {.size = 0};
        uint64_t present;

        if (!gets_match(model, view, table, &present, difference) ||
            !count_matches(view, table, present, difference) ||
            !scans_match(model, view, table, &prefix, difference)) {
            return false;
        }
        model_random_prefix(random, table, &prefix);
        if (!scans_match(model, view, table, &prefix, difference)) {
            return false;
        }
    }
    return model_view_gets_match(model, view, random, 20, difference);
}

/* ---- Walking ---------------------------------------------------------------------- */

enum stele_status model_walker_open(struct model_walker *walker,
                                    struct stele_view *view,
                                    struct random_source *random,
                                    struct stele_error *error)
{
    *walker = (struct model_walker){
        .view = view,
        .table = (unsigned)random_below(random, MODEL_TABLES),
    };
    if (random_one_in(random, 3)) {
        model_random_prefix(random, walker->table, &walker->prefix);
    }
    return stele_cursor_open(view, model_table_name(walker->table),
                             walker->prefix.data, walker->prefix.size,
                             &walker->cursor, error);
}

void model_walker_close(struct model_walker *walker)
{
    stele_cursor_close(walker->cursor);
    walker->cursor = NULL;
}

/* Where a cursor is that goes to `index`; list->count: behind the last. */
static void place_from_below(struct model_walker *walker,
                             const struct model_list *list, size_t index)
{
    walker->place = index < list->count ? MODEL_ON_ENTRY : MODEL_AT_END;
    walker->index = index;
}

/* ... to the one before `index`; 0: before the first. */
static void place_from_above(struct model_walker *walker, size_t index)
{
    walker->place = index > 0 ? MODEL_ON_ENTRY : MODEL_AT_START;
    walker->index = index - 1;
}

static void expect_next(struct model_walker *walker,
                        const struct model_list *list)
{
    if (walker->place == MODEL_ON_ENTRY) {
        place_from_below(walker, list, walker->index + 1);
    } else if (walker->place != MODEL_AT_END) {
        place_from_below(walker, list, 0);
    }
}

static void expect_prev(struct model_walker *walker,
                        const struct model_list *list)
{
    if (walker->place == MODEL_ON_ENTRY) {
        place_from_above(walker, walker->index);
    } else if (walker->place != MODEL_AT_START) {
        place_from_above(walker, list->count);
    }
}

static void expect_seek(struct model_walker *walker,
                        const struct model_list *list,
                        const struct model_bytes *key)
{
    size_t index = 0;

    while (index < list->count && model_compare(list->entries[index].key,
                                                list->entries[index].key_bytes,
                                                key->data, key->size) < 0) {
        index++;
    }
    place_from_below(walker, list, index);
}

static enum stele_status random_move(struct model_walker *walker,
                                     const struct model_list *list,
                                     struct random_source *random,
                                     struct stele_entry *found,
                                     const char **what_out,
                                     struct stele_error *error)
{
    const uint64_t choice = random_below(random, 100);
    struct model_bytes key;

    if (choice < 40) {
        *what_out = "next";
        expect_next(walker, list);
        return stele_cursor_next(walker->cursor, found, error);
    }
    if (choice < 80) {
        *what_out = "prev";
        expect_prev(walker, list);
        return stele_cursor_prev(walker->cursor, found, error);
    }
    if (choice < 95) {
        *what_out = "seek";
        model_random_key(random, walker->table, &key);
        expect_seek(walker, list, &key);
        return stele_cursor_seek(walker->cursor, key.data, key.size, found,
                                 error);
    }
    if (choice < 98) {
        *what_out = "first";
        place_from_below(walker, list, 0);
        return stele_cursor_first(walker->cursor, found, error);
    }
    *what_out = "last";
    place_from_above(walker, list->count);
    return stele_cursor_last(walker->cursor, found, error);
}

bool model_walker_walk(const struct model *model, struct model_walker *walker,
                       struct random_source *random, unsigned moves,
                       struct model_difference *difference)
{
    struct model_list list = {0};
    bool matches = true;

    model_list_present(model, walker->table, &walker->prefix,
                       stele_view_lsn(walker->view), &list);
    for (; moves > 0 && matches; moves--) {
        struct stele_entry found;
        struct stele_error error;
        const char *what;
        const enum stele_status status =
            random_move(walker, &list, random, &found, &what, &error);

        matches = entry_matches(what, walker->table, status, &found,
                                walker->place == MODEL_ON_ENTRY
                                    ? &list.entries[walker->index]
                                    : NULL,
                                &error, difference);
    }
    model_list_deinit(&list);
    return matches;
}
