/*
 * tools/cmd_diff.c -- stele diff: what changed from one LSN to another.
 *
 * Two views in one handle, and a cursor in each: both stand on their next key, and
 * the smaller one is told of. Memory: the two views.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "engine/stele.h"
#include "tools/commands.h"
#include "tools/key_argument.h"
#include "tools/options.h"
#include "tools/output.h"
#include "tools/report.h"
#include "tools/store.h"

struct diff_request {
    const char *table; /* NULL: all. */
    char *prefix_text;
    struct bytes prefix;
    bool values;
    struct output_mode mode;
    bool found; /* A difference. */
};

/* ---- Printing ------------------------------------------------------------------- */

/* NULL: there is none on that side. */
struct difference {
    const char *table;
    const struct stele_entry *before;
    const struct stele_entry *after;
};

static struct bytes key_of(const struct stele_entry *entry)
{
    return (struct bytes){entry->key, entry->key_bytes};
}

static struct bytes value_of(const struct stele_entry *entry)
{
    return (struct bytes){entry->value.data, entry->value.bytes};
}

static struct bytes difference_key(const struct difference *difference)
{
    return key_of(difference->before != NULL ? difference->before
                                             : difference->after);
}

static void print_text(const struct diff_request *request,
                       const struct difference *difference)
{
    const struct stele_entry *sides[] = {difference->before, difference->after};

    printf("%c %s\t",
           difference->before == NULL  ? '+'
           : difference->after == NULL ? '-'
                                       : '~',
           difference->table);
    output_bytes(stdout, &request->mode, difference_key(difference));
    for (size_t side = 0; request->values && side < 2; side++) {
        if (sides[side] != NULL) {
            putchar('\t');
            output_bytes(stdout, &request->mode, value_of(sides[side]));
        }
    }
    putchar('\n');
}

static void print_json(const struct diff_request *request,
                       const struct difference *difference)
{
    static const char *const value_names[] = {"old", "new"};
    static const char *const lsn_names[] = {"old_lsn", "lsn"};
    const struct stele_entry *sides[] = {difference->before, difference->after};

    printf("{\"change\":\"%s\",\"table\":\"%s\",",
           difference->before == NULL  ? "added"
           : difference->after == NULL ? "deleted"
                                       : "changed",
           difference->table);
    output_json_bytes(stdout, &request->mode, "key",
                      difference_key(difference));
    for (size_t side = 0; side < 2; side++) {
        if (sides[side] == NULL) {
            continue;
        }
        if (request->values) {
            putchar(',');
            output_json_bytes(stdout, &request->mode, value_names[side],
                              value_of(sides[side]));
        }
        printf(",\"%s\":%" PRIu64, lsn_names[side], sides[side]->value.lsn);
    }
    printf("}\n");
}

static void tell(struct diff_request *request,
                 const struct difference *difference)
{
    request->found = true;
    (request->mode.json ? print_json : print_text)(request, difference);
}

/* ---- One table ------------------------------------------------------------------- */

struct side {
    struct stele_cursor *cursor;
    struct stele_entry entry;
    bool ended; /* There is no entry. */
};

static enum stele_status side_next(struct side *side, struct stele_error *error)
{
    const enum stele_status status =
        stele_cursor_next(side->cursor, &side->entry, error);

    side->ended = status == STELE_NOT_FOUND;
    return side->ended ? STELE_OK : status;
}

static enum stele_status side_open(struct side *side, struct stele_view *view,
                                   const struct diff_request *request,
                                   const char *table, struct stele_error *error)
{
    const enum stele_status status =
        stele_cursor_open(view, table, request->prefix.data,
                          request->prefix.size, &side->cursor, error);

    return status == STELE_OK ? side_next(side, error) : status;
}

/* < 0: the key on the left comes first, or is the only one. */
static int compare_sides(const struct side *left, const struct side *right)
{
    if (left->ended || right->ended) {
        return right->ended ? -1 : 1;
    }
    return bytes_compare(key_of(&left->entry), key_of(&right->entry));
}

/* The next key of either, and on. */
static enum stele_status step(struct diff_request *request, const char *table,
                              struct side *left, struct side *right,
                              struct stele_error *error)
{
    const int order = compare_sides(left, right);
    const struct difference difference = {
        .table = table,
        .before = order <= 0 ? &left->entry : NULL,
        .after = order >= 0 ? &right->entry : NULL,
    };
    enum stele_status status = STELE_OK;

    if (order != 0 ||
        bytes_compare(value_of(&left->entry), value_of(&right->entry)) != 0) {
        tell(request, &difference);
    }
    if (order <= 0) {
        status = side_next(left, error);
    }
    if (status == STELE_OK && order >= 0) {
        status = side_next(right, error);
    }
    return status;
}

static enum stele_status diff_table(struct diff_request *request,
                                    const char *table,
                                    struct stele_view *const views[2],
                                    struct stele_error *error)
{
    struct side sides[2] = {0};
    enum stele_status status =
        side_open(&sides[0], views[0], request, table, error);

    if (status == STELE_OK) {
        status = side_open(&sides[1], views[1], request, table, error);
    }
    while (status == STELE_OK && !(sides[0].ended && sides[1].ended)) {
        status = step(request, table, &sides[0], &sides[1], error);
    }
    stele_cursor_close(sides[0].cursor);
    stele_cursor_close(sides[1].cursor);
    return status;
}

/* ---- All tables -------------------------------------------------------------------- */

/* The first table behind `after` (NULL: the first) in either view; "" behind the
 * last one. */
static enum stele_status next_table(
    struct stele_view *const views[2], const char *after,
    char name_out[STELE_TABLE_NAME_BYTES_MAX + 1], struct stele_error *error)
{
    name_out[0] = '\0';
    for (size_t side = 0; side < 2; side++) {
        char name[STELE_TABLE_NAME_BYTES_MAX + 1];
        const enum stele_status status =
            stele_table_next(views[side], after, name, error);

        if (status != STELE_OK && status != STELE_NOT_FOUND) {
            return status;
        }
        if (status == STELE_OK &&
            (name_out[0] == '\0' || strcmp(name, name_out) < 0)) {
            memcpy(name_out, name, sizeof name);
        }
    }
    return STELE_OK;
}

static enum stele_status diff_tables(struct diff_request *request,
                                     struct stele_view *const views[2],
                                     struct stele_error *error)
{
    char after[STELE_TABLE_NAME_BYTES_MAX + 1];
    char name[STELE_TABLE_NAME_BYTES_MAX + 1];
    enum stele_status status = next_table(views, NULL, name, error);

    while (status == STELE_OK && name[0] != '\0') {
        status = diff_table(request, name, views, error);
        if (status == STELE_OK) {
            memcpy(after, name, sizeof after);
            status = next_table(views, after, name, error);
        }
    }
    return status;
}

/* 1 says that there are differences: an LSN that cannot be shown is an argument
 * that makes no sense. */
static int report_failure(enum stele_status status,
                          const struct stele_error *error)
{
    const int code = report_error(status, error);

    return code == EXIT_NEGATIVE ? EXIT_USAGE : code;
}

static int diff(struct stele *store, const uint64_t lsns[2],
                struct diff_request *request)
{
    struct stele_view *views[2] = {NULL, NULL};
    struct stele_error error = {0};
    enum stele_status status =
        stele_view_open_at(store, lsns[0], &views[0], &error);

    if (status == STELE_OK) {
        status = stele_view_open_at(store, lsns[1], &views[1], &error);
    }
    if (status == STELE_OK) {
        status = request->table == NULL
                     ? diff_tables(request, views, &error)
                     : diff_table(request, request->table, views, &error);
    }
    stele_view_close(views[0]);
    stele_view_close(views[1]);
    if (status != STELE_OK) {
        return report_failure(status, &error);
    }
    return request->found ? EXIT_NEGATIVE : EXIT_DONE;
}

int cmd_diff(int argc, char **argv)
{
    struct diff_request request = {0};
    const struct option_spec specs[] = {
        {"prefix", OPTION_TEXT, .text = &request.prefix_text},
        {"values", OPTION_FLAG, .flag = &request.values},
        {"hex", OPTION_FLAG, .flag = &request.mode.hex},
        {"json", OPTION_FLAG, .flag = &request.mode.json},
    };
    struct arguments arguments;
    struct stele *store = NULL;
    struct stele_error error = {0};
    uint64_t lsns[2];
    int code;

    code = options_parse(argc, argv, specs, sizeof specs / sizeof specs[0], 3,
                         4, &arguments);
    if (code == EXIT_DONE) {
        code = options_parse_lsn("LSN1", arguments.items[1], &lsns[0]);
    }
    if (code == EXIT_DONE) {
        code = options_parse_lsn("LSN2", arguments.items[2], &lsns[1]);
    }
    if (code != EXIT_DONE) {
        return code;
    }
    request.table = arguments.count == 4 ? arguments.items[3] : NULL;
    /* No prefix and an empty one are the same: every key begins with it. */
    if (request.prefix_text != NULL && request.prefix_text[0] != '\0') {
        const enum stele_status status = key_argument(
            request.prefix_text, &request.mode, &request.prefix, &error);

        if (status != STELE_OK) {
            return report_error(status, &error);
        }
    }
    code = store_open_reading(arguments.items[0], &store);
    return code == EXIT_DONE ? store_close(store, diff(store, lsns, &request))
                             : code;
}
