/* tools/rocketmq/to_batch.c -- see tools/rocketmq/to_batch.h. */
#include "tools/rocketmq/to_batch.h"

#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "tools/rocketmq/document.h"
#include "tools/rocketmq/offset_key.h"

/* Room for every key that is not too long anyway, and to see that one is. */
enum { KEY_TEXT_BYTES = 2 * STELE_TABLE_AND_KEY_BYTES_MAX };

struct converter {
    const struct rocketmq_file *file;
    struct stele_batch *batch;
    uint64_t entry_count;
};

/* Names in messages are cut: the message has 256 bytes for everything. */
#define NAME_FORMAT "\"%.80s\""

static enum stele_status check_object(const char *name, const json_t *value,
                                      struct stele_error *error)
{
    if (!json_is_object(value)) {
        return error_set(error, STELE_CORRUPT,
                         NAME_FORMAT ": is %s, not an object", name,
                         rocketmq_json_type(value));
    }
    return STELE_OK;
}

/* ---- Puts --------------------------------------------------------------- */

/* Members keep their order; integers are exact; reals have 17 digits, which
 * give the same number again. */
static enum stele_status put_json(struct converter *converter,
                                  const char *table, const char *key,
                                  const json_t *value,
                                  struct stele_error *error)
{
    const size_t flags =
        JSON_COMPACT | JSON_ENCODE_ANY | JSON_REAL_PRECISION(17);
    char *text = json_dumps(value, flags);
    enum stele_status status;

    if (text == NULL) {
        return error_no_memory(error, "a JSON value");
    }
    status = stele_batch_put(converter->batch, table, key, strlen(key), text,
                             strlen(text), error);
    free(text);
    return status;
}

static enum stele_status put_config(struct converter *converter,
                                    const char *name, const json_t *value,
                                    struct stele_error *error)
{
    const enum stele_status status = check_object(name, value, error);

    if (status != STELE_OK) {
        return status;
    }
    converter->entry_count += 1;
    return put_json(converter, converter->file->table, name, value, error);
}

static enum stele_status put_offset(struct converter *converter,
                                    const char *topic_at_group,
                                    const char *queue_id, const json_t *offset,
                                    struct stele_error *error)
{
    char key[KEY_TEXT_BYTES];
    char value[24];
    int value_bytes;
    int key_bytes;

    if (!rocketmq_is_queue_id((struct bytes){queue_id, strlen(queue_id)})) {
        return error_set(error, STELE_CORRUPT,
                         NAME_FORMAT " is not the number of a queue", queue_id);
    }
    if (!json_is_integer(offset)) {
        return error_set(error, STELE_CORRUPT,
                         NAME_FORMAT ": is %s, not an integer", queue_id,
                         rocketmq_json_type(offset));
    }
    key_bytes = snprintf(key, sizeof key, "%s@%s", topic_at_group, queue_id);
    if (key_bytes < 0 || (size_t)key_bytes >= sizeof key) {
        return error_set(error, STELE_TOO_BIG, "the name has %zu bytes",
                         strlen(topic_at_group));
    }
    value_bytes = snprintf(value, sizeof value, "%" JSON_INTEGER_FORMAT,
                           json_integer_value(offset));
    converter->entry_count += 1;
    return stele_batch_put(converter->batch, converter->file->table, key,
                           (size_t)key_bytes, value, (size_t)value_bytes,
                           error);
}

static enum stele_status put_queues(struct converter *converter,
                                    const char *topic_at_group, json_t *queues,
                                    struct stele_error *error)
{
    enum stele_status status = STELE_OK;

    if (json_object_size(queues) == 0) {
        converter->entry_count += 1;
        return put_json(converter, converter->file->table, topic_at_group,
                        queues, error);
    }
    for (void *at = json_object_iter(queues); at != NULL && status == STELE_OK;
         at = json_object_iter_next(queues, at)) {
        status = put_offset(converter, topic_at_group, json_object_iter_key(at),
                            json_object_iter_value(at), error);
    }
    return status;
}

static enum stele_status put_offsets(struct converter *converter,
                                     const char *name, json_t *queues,
                                     struct stele_error *error)
{
    enum stele_status status = check_object(name, queues, error);

    if (status != STELE_OK) {
        return status;
    }
    if (!rocketmq_is_topic_at_group((struct bytes){name, strlen(name)})) {
        return error_set(error, STELE_CORRUPT,
                         NAME_FORMAT " is not a topic@group", name);
    }
    status = put_queues(converter, name, queues, error);
    if (status != STELE_OK) {
        return error_wrap(error, status, NAME_FORMAT, name);
    }
    return STELE_OK;
}

/* ---- The file ----------------------------------------------------------- */

static enum stele_status put_entry(struct converter *converter,
                                   const char *name, json_t *value,
                                   struct stele_error *error)
{
    enum stele_status status;

    if (name[0] == '\0') {
        return error_set(error, STELE_CORRUPT, "an entry has an empty name");
    }
    switch (converter->file->kind) {
    case ROCKETMQ_CONFIGS:
        status = put_config(converter, name, value, error);
        /* The engine's refusals do not know whose key it was. */
        return status == STELE_TOO_BIG
                   ? error_wrap(error, status, NAME_FORMAT, name)
                   : status;
    case ROCKETMQ_OFFSETS:
        return put_offsets(converter, name, value, error);
    }
    return STELE_INVALID;
}

static enum stele_status put_table(struct converter *converter, json_t *table,
                                   struct stele_error *error)
{
    enum stele_status status =
        check_object(converter->file->member, table, error);

    if (status != STELE_OK) {
        return status;
    }
    for (void *at = json_object_iter(table); at != NULL && status == STELE_OK;
         at = json_object_iter_next(table, at)) {
        status = put_entry(converter, json_object_iter_key(at),
                           json_object_iter_value(at), error);
    }
    if (status != STELE_OK) {
        return error_wrap(error, status, "%s", converter->file->member);
    }
    return STELE_OK;
}

/* Members whose type is known; whatever else there is may be anything. */
static bool must_be_object(const char *member)
{
    return strcmp(member, "dataVersion") == 0 ||
           strcmp(member, "forbiddenTable") == 0 ||
           strcmp(member, "groupTopicMap") == 0;
}

static enum stele_status put_meta(struct converter *converter,
                                  const char *member, const json_t *value,
                                  struct stele_error *error)
{
    char key[KEY_TEXT_BYTES];
    int key_bytes;
    enum stele_status status;

    if (must_be_object(member)) {
        status = check_object(member, value, error);
        if (status != STELE_OK) {
            return status;
        }
    }
    key_bytes =
        snprintf(key, sizeof key, "%s/%s", converter->file->name, member);
    if (key_bytes < 0 || (size_t)key_bytes >= sizeof key) {
        return error_set(error, STELE_TOO_BIG,
                         NAME_FORMAT ": the name has %zu bytes", member,
                         strlen(member));
    }
    status = put_json(converter, ROCKETMQ_META_TABLE, key, value, error);
    if (status != STELE_OK) {
        return error_wrap(error, status, NAME_FORMAT, member);
    }
    return STELE_OK;
}

static enum stele_status put_members(struct converter *converter,
                                     json_t *object, struct stele_error *error)
{
    const char *table_member = converter->file->member;
    enum stele_status status = STELE_OK;

    if (json_object_get(object, table_member) == NULL) {
        return error_set(error, STELE_CORRUPT, "\"%s\" is missing",
                         table_member);
    }
    for (void *at = json_object_iter(object); at != NULL && status == STELE_OK;
         at = json_object_iter_next(object, at)) {
        const char *member = json_object_iter_key(at);
        json_t *value = json_object_iter_value(at);

        status = strcmp(member, table_member) == 0
                     ? put_table(converter, value, error)
                     : put_meta(converter, member, value, error);
    }
    return status;
}

static enum stele_status clear_file(const struct converter *converter,
                                    struct stele_error *error)
{
    char prefix[KEY_TEXT_BYTES];
    const int prefix_bytes =
        snprintf(prefix, sizeof prefix, "%s/", converter->file->name);
    const enum stele_status status = stele_batch_clear_table(
        converter->batch, converter->file->table, error);

    if (status != STELE_OK) {
        return status;
    }
    return stele_batch_delete_prefix(converter->batch, ROCKETMQ_META_TABLE,
                                     prefix, (size_t)prefix_bytes, error);
}

enum stele_status rocketmq_to_batch(const struct rocketmq_file *file,
                                    struct bytes text,
                                    struct stele_batch *batch,
                                    uint64_t *entry_count_out,
                                    struct stele_error *error)
{
    struct converter converter = {.file = file, .batch = batch};
    json_t *object = NULL;
    enum stele_status status = rocketmq_document_parse(text, &object, error);

    if (status != STELE_OK) {
        return status;
    }
    status = clear_file(&converter, error);
    if (status == STELE_OK) {
        status = put_members(&converter, object, error);
    }
    if (status == STELE_OK) {
        *entry_count_out = converter.entry_count;
    }
    json_decref(object);
    return status;
}
