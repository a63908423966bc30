/* tools/rocketmq/integer_keys.c -- see tools/rocketmq/integer_keys.h. */
#include "tools/rocketmq/integer_keys.h"

#include <stdbool.h>

/* Reads `text` and writes the mended form; one pass, no recursion. */
struct mender {
    const char *text;
    size_t bytes;
    size_t offset;
    char *target; /* May be NULL. */
    size_t written;
    char before; /* The last character that is no white space. */
};

static bool is_digit(char character)
{
    return character >= '0' && character <= '9';
}

static bool is_space(char character)
{
    return character == ' ' || character == '\t' || character == '\n' ||
           character == '\r';
}

static void put(struct mender *mender, char character)
{
    if (mender->target != NULL) {
        mender->target[mender->written] = character;
    }
    mender->written += 1;
}

static void copy(struct mender *mender, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        const char character = mender->text[mender->offset + i];

        put(mender, character);
        mender->before = is_space(character) ? mender->before : character;
    }
    mender->offset += count;
}

/* Length of the string that begins here, quotes included; it may lack its end.
 */
static size_t string_bytes(const struct mender *mender)
{
    size_t end = mender->offset + 1;

    while (end < mender->bytes && mender->text[end] != '"') {
        end += mender->text[end] == '\\' ? 2 : 1;
    }
    return (end < mender->bytes ? end + 1 : mender->bytes) - mender->offset;
}

/* Length of the integer that begins here, sign included; 0 if none does. */
static size_t integer_bytes(const struct mender *mender)
{
    const size_t first =
        mender->offset + (mender->text[mender->offset] == '-' ? 1u : 0u);
    size_t end = first;

    while (end < mender->bytes && is_digit(mender->text[end])) {
        end += 1;
    }
    return end == first ? 0 : end - mender->offset;
}

static bool is_key(const struct mender *mender, size_t integer)
{
    size_t after = mender->offset + integer;

    if (mender->before != '{' && mender->before != ',') {
        return false;
    }
    while (after < mender->bytes && is_space(mender->text[after])) {
        after += 1;
    }
    return after < mender->bytes && mender->text[after] == ':';
}

size_t integer_keys_quote(struct bytes text, char *target)
{
    struct mender mender = {
        .text = text.data,
        .bytes = text.size,
        .target = target,
    };

    while (mender.offset < mender.bytes) {
        const size_t integer = integer_bytes(&mender);

        if (mender.text[mender.offset] == '"') {
            copy(&mender, string_bytes(&mender));
        } else if (integer == 0) {
            copy(&mender, 1);
        } else if (is_key(&mender, integer)) {
            put(&mender, '"');
            copy(&mender, integer);
            put(&mender, '"');
        } else {
            copy(&mender, integer);
        }
    }
    return mender.written;
}

size_t integer_keys_origin(struct bytes text, const char *quoted,
                           size_t quoted_offset)
{
    const char *original = text.data;
    size_t offset = 0;

    /* A quote that was put in stands where the text has a digit, a sign, white
     * space, or a colon: so where the two differ. */
    for (size_t i = 0; i < quoted_offset && offset < text.size; i++) {
        offset += quoted[i] == original[offset] ? 1 : 0;
    }
    return offset;
}
