/* engine/base_value.c -- see engine/base_value.h. */
#include "engine/base_value.h"

#include <stdio.h>

#include "base/checksum.h"
#include "base/error.h"

enum {
    TEXT_SOURCE_BYTES_MAX = 64, /* Of a table or key, in a message. */
    TEXT_BYTES = 2 * TEXT_SOURCE_BYTES_MAX + sizeof "...",
};

uint32_t base_value_check(struct bytes key, uint64_t lsn, struct bytes value)
{
    return (uint32_t)checksum64_pair(key.data, key.size, value.data, value.size,
                                     lsn);
}

void base_value_encode_header(uint64_t lsn, uint32_t check,
                              uint8_t target[BASE_VALUE_HEADER_BYTES])
{
    put_u64le(target + 0, lsn);
    put_u32le(target + 8, check);
}

bool base_value_decode(struct bytes stored, struct base_value *value_out)
{
    const uint8_t *source = stored.data;

    if (stored.size < BASE_VALUE_HEADER_BYTES) {
        return false;
    }
    value_out->lsn = get_u64le(source + 0);
    value_out->check = get_u32le(source + 8);
    value_out->value.data = source + BASE_VALUE_HEADER_BYTES;
    value_out->value.size = stored.size - BASE_VALUE_HEADER_BYTES;
    return true;
}

bool base_value_verify(struct bytes key, const struct base_value *value)
{
    return base_value_check(key, value->lsn, value->value) == value->check;
}

/* ---- In words -------------------------------------------------------------- */

static bool is_printable(struct bytes bytes)
{
    const uint8_t *source = bytes.data;

    for (size_t index = 0; index < bytes.size; index++) {
        if (source[index] < ' ' || source[index] > '~') {
            return false;
        }
    }
    return true;
}

/* In quotes if all of it is printable, else in hex digits; a long one is cut. */
static void describe(struct bytes bytes, char text[TEXT_BYTES])
{
    const bool quoted = is_printable(bytes);
    const size_t shown_max =
        quoted ? TEXT_SOURCE_BYTES_MAX : TEXT_SOURCE_BYTES_MAX / 2;
    const size_t shown = bytes.size < shown_max ? bytes.size : shown_max;
    const char *cut = shown < bytes.size ? "..." : "";
    const uint8_t *source = bytes.data;
    size_t used = 0;

    if (quoted) {
        snprintf(text, TEXT_BYTES, "\"%.*s\"%s", (int)shown,
                 (const char *)bytes.data, cut);
        return;
    }
    for (size_t index = 0; index < shown; index++) {
        used += (size_t)snprintf(text + used, TEXT_BYTES - used, "%02x",
                                 source[index]);
    }
    snprintf(text + used, TEXT_BYTES - used, "%s", cut);
}

enum stele_status base_entry_damaged(const char *where, struct bytes key,
                                     const char *damage,
                                     struct stele_error *error)
{
    const size_t name_bytes = base_key_table_bytes(key);
    const size_t prefix_bytes = name_bytes == 0 ? 0 : name_bytes + 1;
    char table_text[TEXT_BYTES];
    char key_text[TEXT_BYTES];

    describe((struct bytes){key.data, name_bytes}, table_text);
    describe((struct bytes){(const uint8_t *)key.data + prefix_bytes,
                            key.size - prefix_bytes},
             key_text);
    if (name_bytes == 0) {
        return error_set(error, STELE_CORRUPT, "%s: key %s without a table: %s",
                         where, key_text, damage);
    }
    if (key.size == prefix_bytes) {
        return error_set(error, STELE_CORRUPT, "%s: row of table %s: %s", where,
                         table_text, damage);
    }
    return error_set(error, STELE_CORRUPT, "%s: table %s, key %s: %s", where,
                     table_text, key_text, damage);
}

enum stele_status base_value_read(const char *where, struct bytes key,
                                  struct bytes stored,
                                  struct base_value *value_out,
                                  struct stele_error *error)
{
    struct base_value value;

    if (!base_value_decode(stored, &value)) {
        return base_entry_damaged(where, key, "shorter than its header", error);
    }
    if (!base_value_verify(key, &value)) {
        return base_entry_damaged(where, key, "check mismatch", error);
    }
    *value_out = value;
    return STELE_OK;
}

void table_row_encode(const struct table_row *row,
                      uint8_t target[BASE_VALUE_TABLE_ROW_BYTES])
{
    put_u64le(target + 0, row->count);
    put_u64le(target + 8, row->sum);
}

bool table_row_decode(struct bytes stored, struct table_row *row_out)
{
    const uint8_t *source = stored.data;

    if (stored.size != BASE_VALUE_TABLE_ROW_BYTES) {
        return false;
    }
    row_out->count = get_u64le(source + 0);
    row_out->sum = get_u64le(source + 8);
    return true;
}

size_t base_key_table_bytes(struct bytes key)
{
    const size_t longest = BASE_TABLE_NAME_BYTES_MAX + 1;
    const uint8_t *start = key.data;
    const uint8_t *zero;

    if (key.size == 0) {
        return 0;
    }
    zero = memchr(start, 0, key.size < longest ? key.size : longest);
    return zero == NULL ? 0 : (size_t)(zero - start);
}
