/* engine/limits.c -- see engine/limits.h. */
#include "engine/limits.h"

#include <assert.h>
#include <string.h>

#include "base/error.h"

bool limit_table_name_is_valid(struct bytes name)
{
    const uint8_t *data = name.data;

    if (name.size < 1 || name.size > LIMIT_TABLE_NAME_BYTES_MAX) {
        return false;
    }
    for (size_t index = 0; index < name.size; index++) {
        const uint8_t byte = data[index];

        if (!((byte >= 'A' && byte <= 'Z') || (byte >= 'a' && byte <= 'z') ||
              (byte >= '0' && byte <= '9') || byte == '.' || byte == '_' ||
              byte == '-')) {
            return false;
        }
    }
    return true;
}

enum stele_status limit_check_table(const char *table,
                                    struct stele_error *error)
{
    size_t bytes;

    if (table == NULL || table[0] == '\0') {
        return error_set(error, STELE_INVALID, "the table name is empty");
    }
    bytes = strnlen(table, LIMIT_TABLE_NAME_BYTES_MAX + 1);
    if (bytes > LIMIT_TABLE_NAME_BYTES_MAX) {
        return error_set(error, STELE_TOO_BIG,
                         "the table name has more than %d bytes",
                         LIMIT_TABLE_NAME_BYTES_MAX);
    }
    if (!limit_table_name_is_valid((struct bytes){table, bytes})) {
        return error_set(error, STELE_INVALID,
                         "the table name has a byte outside [A-Za-z0-9._-]");
    }
    return STELE_OK;
}

enum stele_status limit_check_key(const char *table, const void *key,
                                  size_t key_bytes, const char *what,
                                  struct stele_error *error)
{
    const enum stele_status status = limit_check_table(table, error);

    if (status != STELE_OK) {
        return status;
    }
    if (key == NULL || key_bytes == 0) {
        return error_set(error, STELE_INVALID, "the %s is empty", what);
    }
    if (key_bytes > LIMIT_FULL_KEY_BYTES_MAX - 1 - strlen(table)) {
        return error_set(error, STELE_TOO_BIG,
                         "the %s has %zu bytes, in table %s at most %zu fit",
                         what, key_bytes, table,
                         LIMIT_FULL_KEY_BYTES_MAX - 1 - strlen(table));
    }
    return STELE_OK;
}

void full_key_init(struct full_key *full, struct bytes table, struct bytes key)
{
    assert(table.size >= 1 && table.size <= LIMIT_TABLE_NAME_BYTES_MAX);
    assert(key.size <= LIMIT_FULL_KEY_BYTES_MAX - 1 - table.size);
    memcpy(full->data, table.data, table.size);
    full->data[table.size] = 0;
    if (key.size > 0) {
        memcpy(full->data + table.size + 1, key.data, key.size);
    }
    full->size = table.size + 1 + key.size;
}

void full_key_table_first(struct full_key *full, struct bytes table)
{
    full_key_init(full, table, (struct bytes){"", 1}); /* The key 0x00. */
}

void full_key_table_end(struct full_key *full, struct bytes table)
{
    full_key_init(full, table, (struct bytes){NULL, 0});
    full->data[table.size] = 1; /* No table name has a byte this low. */
}

bool prefix_end(struct bytes prefix, uint8_t *end, size_t *end_bytes_out)
{
    const uint8_t *data = prefix.data;
    size_t size = prefix.size;

    while (size > 0 && data[size - 1] == 0xff) {
        size--;
    }
    if (size == 0) {
        return false;
    }
    memcpy(end, data, size);
    end[size - 1]++;
    *end_bytes_out = size;
    return true;
}
