/* tools/rocketmq/from_view.c -- see tools/rocketmq/from_view.h. */
#include "tools/rocketmq/from_view.h"

#include <assert.h>
#include <jansson.h>
#include <string.h>

#include "base/bytes.h"
#include "base/error.h"
#include "tools/output.h"
#include "tools/rocketmq/offset_key.h"
#include "tools/utf8.h"

struct exporter {
    const struct rocketmq_file *file;
    const struct rocketmq_text_style *style;
    struct stele_view *view;
    FILE *out;
    uint64_t entry_count;

    /* Of the object that is being written: */
    bool is_first;
    /* Of the offsets: whose queues are being written; size 0: nobody's. */
    char owner[STELE_TABLE_AND_KEY_BYTES_MAX];
    size_t owner_bytes;
};

typedef enum stele_status visit_entry(struct exporter *exporter,
                                      const struct stele_entry *entry,
                                      struct stele_error *error);

static enum stele_status visit_table(struct exporter *exporter,
                                     const char *table, struct bytes prefix,
                                     visit_entry *visit,
                                     struct stele_error *error)
{
    struct stele_cursor *cursor = NULL;
    struct stele_entry entry;
    enum stele_status status = stele_cursor_open(
        exporter->view, table, prefix.data, prefix.size, &cursor, error);

    while (status == STELE_OK) {
        status = stele_cursor_next(cursor, &entry, error);
        if (status == STELE_NOT_FOUND) {
            status = STELE_OK;
            break;
        }
        if (status == STELE_OK) {
            status = visit(exporter, &entry, error);
        }
    }
    stele_cursor_close(cursor);
    return status;
}

/* ---- Checks -------------------------------------------------------------- */

static struct bytes key_of(const struct stele_entry *entry)
{
    return (struct bytes){entry->key, entry->key_bytes};
}

static struct bytes value_of(const struct stele_entry *entry)
{
    return (struct bytes){entry->value.data, entry->value.bytes};
}

static enum stele_status refuse(const char *table, struct bytes key,
                                const char *reason, struct stele_error *error)
{
    const int shown_bytes = key.size < 80 ? (int)key.size : 80;

    return error_set(error, STELE_CORRUPT, "table %s, key \"%.*s\": %s", table,
                     shown_bytes, (const char *)key.data, reason);
}

enum json_expectation { ANY_JSON, JSON_OBJECT_ONLY };

static bool is_json(struct bytes text, enum json_expectation expectation)
{
    const size_t flags =
        JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL | JSON_DECODE_ANY;
    json_error_t problem;
    json_t *value = json_loadb(text.data, text.size, flags, &problem);
    const bool is_right =
        value != NULL && (expectation == ANY_JSON || json_is_object(value));

    json_decref(value);
    return is_right;
}

/* ---- Writing ------------------------------------------------------------- */

static void write_bytes(const struct exporter *exporter, struct bytes text)
{
    fwrite(text.data, 1, text.size, exporter->out);
}

/* What stands before a member: nothing, or a comma; then a line of its own. */
static void begin_member(struct exporter *exporter)
{
    fputs(exporter->is_first ? "\n" : ",\n", exporter->out);
    exporter->is_first = false;
}

static void write_name(const struct exporter *exporter, struct bytes name)
{
    output_json_string(exporter->out, name);
    putc(':', exporter->out);
}

static enum stele_status write_config(struct exporter *exporter,
                                      const struct stele_entry *entry,
                                      struct stele_error *error)
{
    const char *table = exporter->file->table;

    if (!utf8_is_valid(key_of(entry))) {
        return refuse(table, key_of(entry), "not UTF-8", error);
    }
    if (!is_json(value_of(entry), JSON_OBJECT_ONLY)) {
        return refuse(table, key_of(entry), "the value is not a JSON object",
                      error);
    }
    begin_member(exporter);
    write_name(exporter, key_of(entry));
    write_bytes(exporter, value_of(entry));
    exporter->entry_count += 1;
    return STELE_OK;
}

/* ---- Offsets: the keys of one topic@group become one object -------------- */

static void end_owner(struct exporter *exporter)
{
    if (exporter->owner_bytes > 0) {
        putc('}', exporter->out);
        exporter->owner_bytes = 0;
    }
}

/* Write what stands before a queue id of `owner`. */
static void continue_owner(struct exporter *exporter, struct bytes owner)
{
    const struct bytes current = {exporter->owner, exporter->owner_bytes};

    if (bytes_compare(current, owner) == 0) {
        putc(',', exporter->out);
        return;
    }
    assert(owner.size <= sizeof exporter->owner);
    end_owner(exporter);
    begin_member(exporter);
    write_name(exporter, owner);
    putc('{', exporter->out);
    memcpy(exporter->owner, owner.data, owner.size);
    exporter->owner_bytes = owner.size;
}

/* Whether there are entries "topic@group@..." besides "topic@group" itself. */
static enum stele_status find_queues(const struct exporter *exporter,
                                     struct bytes topic_at_group,
                                     bool *found_out, struct stele_error *error)
{
    char prefix[STELE_TABLE_AND_KEY_BYTES_MAX + 1];
    struct stele_cursor *cursor = NULL;
    struct stele_entry entry;
    enum stele_status status;

    assert(topic_at_group.size < sizeof prefix);
    memcpy(prefix, topic_at_group.data, topic_at_group.size);
    prefix[topic_at_group.size] = '@';
    status = stele_cursor_open(exporter->view, exporter->file->table, prefix,
                               topic_at_group.size + 1, &cursor, error);
    if (status != STELE_OK) {
        return status;
    }
    status = stele_cursor_first(cursor, &entry, error);
    stele_cursor_close(cursor);
    if (status != STELE_OK && status != STELE_NOT_FOUND) {
        return status;
    }
    *found_out = status == STELE_OK;
    return STELE_OK;
}

static enum stele_status write_without_queues(struct exporter *exporter,
                                              struct bytes topic_at_group,
                                              struct stele_error *error)
{
    bool has_queues = false;
    const enum stele_status status =
        find_queues(exporter, topic_at_group, &has_queues, error);

    if (status != STELE_OK || has_queues) {
        return status; /* It has got queues since: they speak for it. */
    }
    end_owner(exporter);
    begin_member(exporter);
    write_name(exporter, topic_at_group);
    fputs("{}", exporter->out);
    exporter->entry_count += 1;
    return STELE_OK;
}

static enum stele_status write_offset(struct exporter *exporter,
                                      const struct stele_entry *entry,
                                      struct stele_error *error)
{
    const char *table = exporter->file->table;
    const bool is_quoted = !exporter->style->fastjson_keys;
    const struct bytes value = value_of(entry);
    struct bytes owner;
    struct bytes queue_id;

    if (!utf8_is_valid(key_of(entry))) {
        return refuse(table, key_of(entry), "not UTF-8", error);
    }
    if (rocketmq_is_topic_at_group(key_of(entry)) && value.size == 2 &&
        memcmp(value.data, "{}", 2) == 0) {
        return write_without_queues(exporter, key_of(entry), error);
    }
    if (!rocketmq_split_offset_key(key_of(entry), &owner, &queue_id)) {
        return refuse(table, key_of(entry), "not a topic@group@queueId", error);
    }
    if (!rocketmq_is_offset(value)) {
        return refuse(table, key_of(entry), "the value is not an offset",
                      error);
    }
    continue_owner(exporter, owner);
    fputs(is_quoted ? "\"" : "", exporter->out);
    write_bytes(exporter, queue_id);
    fputs(is_quoted ? "\":" : ":", exporter->out);
    write_bytes(exporter, value);
    exporter->entry_count += 1;
    return STELE_OK;
}

/* ---- The file ------------------------------------------------------------ */

static enum stele_status write_table(struct exporter *exporter,
                                     struct stele_error *error)
{
    const char *member = exporter->file->member;
    enum stele_status status = STELE_INVALID;

    begin_member(exporter);
    write_name(exporter, (struct bytes){member, strlen(member)});
    putc('{', exporter->out);
    exporter->is_first = true;
    switch (exporter->file->kind) {
    case ROCKETMQ_CONFIGS:
        status = visit_table(exporter, exporter->file->table, (struct bytes){0},
                             write_config, error);
        break;
    case ROCKETMQ_OFFSETS:
        status = visit_table(exporter, exporter->file->table, (struct bytes){0},
                             write_offset, error);
        end_owner(exporter);
        break;
    }
    fputs("\n}", exporter->out);
    exporter->is_first = false;
    return status;
}

static enum stele_status write_meta(struct exporter *exporter,
                                    const struct stele_entry *entry,
                                    struct stele_error *error)
{
    const char *table_member = exporter->file->member;
    const size_t prefix_bytes = strlen(exporter->file->name) + 1;
    const struct bytes key = key_of(entry);
    const struct bytes member = {(const char *)key.data + prefix_bytes,
                                 key.size - prefix_bytes};

    if (!utf8_is_valid(member)) {
        return refuse(ROCKETMQ_META_TABLE, key, "not UTF-8", error);
    }
    if (bytes_compare(
            member, (struct bytes){table_member, strlen(table_member)}) == 0) {
        return refuse(ROCKETMQ_META_TABLE, key, "that is the table's own name",
                      error);
    }
    if (!is_json(value_of(entry), ANY_JSON)) {
        return refuse(ROCKETMQ_META_TABLE, key, "the value is not JSON", error);
    }
    begin_member(exporter);
    write_name(exporter, member);
    write_bytes(exporter, value_of(entry));
    return STELE_OK;
}

static enum stele_status write_metas(struct exporter *exporter,
                                     struct stele_error *error)
{
    char prefix[STELE_TABLE_AND_KEY_BYTES_MAX];
    const int prefix_bytes =
        snprintf(prefix, sizeof prefix, "%s/", exporter->file->name);

    return visit_table(exporter, ROCKETMQ_META_TABLE,
                       (struct bytes){prefix, (size_t)prefix_bytes}, write_meta,
                       error);
}

enum stele_status rocketmq_from_view(const struct rocketmq_file *file,
                                     struct stele_view *view,
                                     const struct rocketmq_text_style *style,
                                     FILE *out, uint64_t *entry_count_out,
                                     struct stele_error *error)
{
    struct exporter exporter = {
        .file = file,
        .style = style,
        .view = view,
        .out = out,
        .is_first = true,
    };
    uint64_t lsn = 0;
    enum stele_status status = stele_table_lsn(view, file->table, &lsn, error);

    if (status == STELE_OK && lsn == 0) {
        return error_set(error, STELE_NOT_FOUND, "table %s was never written",
                         file->table);
    }
    if (status != STELE_OK) {
        return status;
    }
    putc('{', out);
    status = write_metas(&exporter, error);
    if (status == STELE_OK) {
        status = write_table(&exporter, error);
    }
    if (status != STELE_OK) {
        return error_wrap(error, status, "%s", file->name);
    }
    fputs("\n}\n", out);
    *entry_count_out = exporter.entry_count;
    return STELE_OK;
}
