/* tools/rocketmq/document.c -- see tools/rocketmq/document.h. */
#include "tools/rocketmq/document.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "tools/rocketmq/integer_keys.h"

/* Jansson counts positions in int; the mended text may be twice as long. */
enum { DOCUMENT_BYTES_MAX = 1000 * 1000 * 1000 };

const char *rocketmq_json_type(const json_t *value)
{
    switch (json_typeof(value)) {
    case JSON_OBJECT:
        return "an object";
    case JSON_ARRAY:
        return "an array";
    case JSON_STRING:
        return "a string";
    case JSON_INTEGER:
        return "an integer";
    case JSON_REAL:
        return "a real number";
    case JSON_TRUE:
        return "true";
    case JSON_FALSE:
        return "false";
    case JSON_NULL:
        return "null";
    }
    return "unknown";
}

static bool consists_of(struct bytes text, const char *set, size_t set_bytes)
{
    const char *data = text.data;

    for (size_t i = 0; i < text.size; i++) {
        if (memchr(set, data[i], set_bytes) == NULL) {
            return false;
        }
    }
    return true;
}

/* What a parser would call a syntax error at the first byte deserves its own
 * words: these are the marks that crashes leave. */
static enum stele_status check_substance(struct bytes text,
                                         struct stele_error *error)
{
    if (text.size == 0) {
        return error_set(error, STELE_CORRUPT, "the file is empty (0 bytes)");
    }
    if (consists_of(text, "\0", 1)) {
        return error_set(error, STELE_CORRUPT, "all of its %zu bytes are NUL",
                         text.size);
    }
    if (consists_of(text, " \t\r\n", 4)) {
        return error_set(error, STELE_CORRUPT,
                         "nothing but white space (%zu bytes)", text.size);
    }
    if (text.size > DOCUMENT_BYTES_MAX) {
        return error_set(error, STELE_TOO_BIG, "%zu bytes, at most %d",
                         text.size, DOCUMENT_BYTES_MAX);
    }
    return STELE_OK;
}

static enum stele_status syntax_error(struct bytes text, const char *quoted,
                                      size_t quoted_bytes,
                                      const json_error_t *problem,
                                      struct stele_error *error)
{
    const size_t position =
        problem->position < 0 ? 0 : (size_t)problem->position;
    const size_t end = integer_keys_origin(
        text, quoted, position < quoted_bytes ? position : quoted_bytes);
    const char *data = text.data;
    size_t line = 1;
    size_t column = 1;

    if (json_error_code(problem) == json_error_out_of_memory) {
        return error_no_memory(error, "a JSON document");
    }
    for (size_t i = 0; i + 1 < end; i++) {
        column = data[i] == '\n' ? 1 : column + 1;
        line += data[i] == '\n' ? 1 : 0;
    }
    return error_set(error, STELE_CORRUPT, "line %zu, column %zu: %s", line,
                     column, problem->text);
}

static enum stele_status parse_mended(struct bytes text, const char *quoted,
                                      size_t quoted_bytes, json_t **object_out,
                                      struct stele_error *error)
{
    const size_t flags =
        JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL | JSON_DECODE_ANY;
    json_error_t problem;
    json_t *value = json_loadb(quoted, quoted_bytes, flags, &problem);

    if (value == NULL) {
        return syntax_error(text, quoted, quoted_bytes, &problem, error);
    }
    if (!json_is_object(value)) {
        error_set(error, STELE_CORRUPT, "the top level is %s, not an object",
                  rocketmq_json_type(value));
        json_decref(value);
        return STELE_CORRUPT;
    }
    *object_out = value;
    return STELE_OK;
}

enum stele_status rocketmq_document_parse(struct bytes text,
                                          json_t **object_out,
                                          struct stele_error *error)
{
    size_t quoted_bytes;
    char *quoted;
    enum stele_status status = check_substance(text, error);

    if (status != STELE_OK) {
        return status;
    }
    quoted_bytes = integer_keys_quote(text, NULL);
    quoted = malloc(quoted_bytes);
    if (quoted == NULL) {
        return error_no_memory(error, "a JSON document");
    }
    integer_keys_quote(text, quoted);
    status = parse_mended(text, quoted, quoted_bytes, object_out, error);
    free(quoted);
    return status;
}
