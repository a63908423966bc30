/* tools/apply_line.c -- see tools/apply_line.h. */
#include "tools/apply_line.h"

#include <inttypes.h>
#include <jansson.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/error.h"
#include "tools/hex.h"

/* A member that may be given as text or in hex. */
struct apply_field {
    const char *name;
    bool given;
    struct bytes data; /* Borrowed from the object, or from `decoded`. */
    char *decoded;     /* Owned. */
};

struct apply_members {
    const char *op; /* Borrowed from the object, like `table`. */
    const char *table;
    struct apply_field key;
    struct apply_field value;
};

enum apply_op_kind {
    APPLY_PUT,
    APPLY_DELETE,
    APPLY_DELETE_PREFIX,
    APPLY_CLEAR,
};

struct apply_op {
    const char *name;
    enum apply_op_kind kind;
    bool takes_key;
    bool takes_value;
};

static const struct apply_op apply_ops[] = {
    {"put", APPLY_PUT, true, true},
    {"delete", APPLY_DELETE, true, false},
    {"delete_prefix", APPLY_DELETE_PREFIX, true, false},
    {"clear", APPLY_CLEAR, false, false},
};

/* ---- Members ----------------------------------------------------------- */

static enum stele_status expect_string(const char *name, const json_t *value,
                                       struct stele_error *error)
{
    if (!json_is_string(value)) {
        return error_set(error, STELE_INVALID, "\"%s\" is not a string", name);
    }
    return STELE_OK;
}

/* A string that is used as a C string: a NUL inside would cut it short, and
 * "topics\u0000x" would clear topics. */
static enum stele_status take_name(const char *name, const json_t *value,
                                   const char **text_out,
                                   struct stele_error *error)
{
    const enum stele_status status = expect_string(name, value, error);

    if (status != STELE_OK) {
        return status;
    }
    if (strlen(json_string_value(value)) != json_string_length(value)) {
        return error_set(error, STELE_INVALID, "\"%s\" contains a NUL", name);
    }
    *text_out = json_string_value(value);
    return STELE_OK;
}

static enum stele_status decode_hex(struct apply_field *field,
                                    const json_t *value,
                                    struct stele_error *error)
{
    const size_t digits = json_string_length(value);

    field->decoded = malloc(digits + 1);
    if (field->decoded == NULL) {
        return error_no_memory(error, field->name);
    }
    memcpy(field->decoded, json_string_value(value), digits);
    field->data.data = field->decoded;
    return hex_decode(field->decoded, digits, &field->data.size, error);
}

static enum stele_status take_field(struct apply_field *field, const char *name,
                                    const json_t *value,
                                    struct stele_error *error)
{
    enum stele_status status = expect_string(name, value, error);

    if (status != STELE_OK) {
        return status;
    }
    if (field->given) {
        return error_set(error, STELE_INVALID,
                         "\"%s\" and \"%s_hex\" exclude each other",
                         field->name, field->name);
    }
    field->given = true;
    if (strcmp(name, field->name) == 0) {
        field->data.data = json_string_value(value);
        field->data.size = json_string_length(value);
        return STELE_OK;
    }
    status = decode_hex(field, value, error);
    if (status != STELE_OK) {
        return error_wrap(error, status, "\"%s\"", name);
    }
    return STELE_OK;
}

static enum stele_status take_member(struct apply_members *members,
                                     const char *name, const json_t *value,
                                     struct stele_error *error)
{
    if (strcmp(name, "op") == 0) {
        return take_name(name, value, &members->op, error);
    }
    if (strcmp(name, "table") == 0) {
        return take_name(name, value, &members->table, error);
    }
    if (strcmp(name, "key") == 0 || strcmp(name, "key_hex") == 0) {
        return take_field(&members->key, name, value, error);
    }
    if (strcmp(name, "value") == 0 || strcmp(name, "value_hex") == 0) {
        return take_field(&members->value, name, value, error);
    }
    return error_set(error, STELE_INVALID, "\"%.60s\" is not a member here",
                     name);
}

static enum stele_status take_members(struct apply_members *members,
                                      json_t *object, struct stele_error *error)
{
    for (void *at = json_object_iter(object); at != NULL;
         at = json_object_iter_next(object, at)) {
        const enum stele_status status =
            take_member(members, json_object_iter_key(at),
                        json_object_iter_value(at), error);

        if (status != STELE_OK) {
            return status;
        }
    }
    return STELE_OK;
}

/* ---- The operation ------------------------------------------------------ */

static const struct apply_op *find_op(const char *name)
{
    for (size_t i = 0; i < sizeof apply_ops / sizeof apply_ops[0]; i++) {
        if (strcmp(apply_ops[i].name, name) == 0) {
            return &apply_ops[i];
        }
    }
    return NULL;
}

static enum stele_status check_field(const struct apply_op *op,
                                     const struct apply_field *field,
                                     bool is_taken, struct stele_error *error)
{
    if (field->given == is_taken) {
        return STELE_OK;
    }
    return error_set(error, STELE_INVALID,
                     is_taken ? "%s needs \"%s\"" : "%s takes no \"%s\"",
                     op->name, field->name);
}

static enum stele_status check_members(const struct apply_members *members,
                                       const struct apply_op **op_out,
                                       struct stele_error *error)
{
    const struct apply_op *op;
    enum stele_status status;

    if (members->op == NULL || members->table == NULL) {
        return error_set(error, STELE_INVALID, "\"%s\" is missing",
                         members->op == NULL ? "op" : "table");
    }
    op = find_op(members->op);
    if (op == NULL) {
        return error_set(error, STELE_INVALID, "\"%.60s\" is not an op",
                         members->op);
    }
    status = check_field(op, &members->key, op->takes_key, error);
    if (status == STELE_OK) {
        status = check_field(op, &members->value, op->takes_value, error);
    }
    if (status == STELE_OK) {
        *op_out = op;
    }
    return status;
}

static enum stele_status add_op(struct stele_batch *batch,
                                const struct apply_op *op,
                                const struct apply_members *members,
                                struct stele_error *error)
{
    const char *table = members->table;
    const struct bytes key = members->key.data;
    const struct bytes value = members->value.data;

    switch (op->kind) {
    case APPLY_PUT:
        return stele_batch_put(batch, table, key.data, key.size, value.data,
                               value.size, error);
    case APPLY_DELETE:
        return stele_batch_delete(batch, table, key.data, key.size, error);
    case APPLY_DELETE_PREFIX:
        return stele_batch_delete_prefix(batch, table, key.data, key.size,
                                         error);
    case APPLY_CLEAR:
        return stele_batch_clear_table(batch, table, error);
    }
    return error_set(error, STELE_INVALID, "%s: unknown", op->name);
}

static enum stele_status apply_object(struct stele_batch *batch, json_t *object,
                                      uint64_t value_bytes_max,
                                      struct stele_error *error)
{
    struct apply_members members = {
        .key = {.name = "key"},
        .value = {.name = "value"},
    };
    const struct apply_op *op = NULL;
    enum stele_status status = take_members(&members, object, error);

    if (status == STELE_OK) {
        status = check_members(&members, &op, error);
    }
    if (status == STELE_OK && members.value.data.size > value_bytes_max) {
        status = error_set(error, STELE_TOO_BIG,
                           "the value has %zu bytes, at most %" PRIu64,
                           members.value.data.size, value_bytes_max);
    }
    if (status == STELE_OK) {
        status = add_op(batch, op, &members, error);
    }
    free(members.key.decoded);
    free(members.value.decoded);
    return status;
}

enum stele_status apply_line(struct stele_batch *batch, const char *line,
                             size_t line_bytes, uint64_t value_bytes_max,
                             struct stele_error *error)
{
    const size_t flags =
        JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL | JSON_DECODE_ANY;
    json_error_t problem;
    json_t *object = json_loadb(line, line_bytes, flags, &problem);
    enum stele_status status;

    if (object == NULL) {
        if (json_error_code(&problem) == json_error_out_of_memory) {
            return error_no_memory(error, "a JSON object");
        }
        return error_set(error, STELE_INVALID, "column %d: %s", problem.column,
                         problem.text);
    }
    if (json_is_object(object)) {
        status = apply_object(batch, object, value_bytes_max, error);
    } else {
        status = error_set(error, STELE_INVALID, "not an object");
    }
    json_decref(object);
    return status;
}
