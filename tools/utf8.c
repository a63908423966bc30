/* tools/utf8.c -- see tools/utf8.h. Table 3-7 of the Unicode standard. */
#include "tools/utf8.h"

static bool is_between(uint8_t byte, uint8_t low, uint8_t high)
{
    return byte >= low && byte <= high;
}

static bool is_continuation(uint8_t byte)
{
    return is_between(byte, 0x80, 0xbf);
}

/* The second byte's range depends on the first: that is what rules out overlong
 * forms, surrogates, and what lies above U+10FFFF. */
static bool is_second(uint8_t first, uint8_t second)
{
    switch (first) {
    case 0xe0:
        return is_between(second, 0xa0, 0xbf);
    case 0xed:
        return is_between(second, 0x80, 0x9f);
    case 0xf0:
        return is_between(second, 0x90, 0xbf);
    case 0xf4:
        return is_between(second, 0x80, 0x8f);
    default:
        return is_continuation(second);
    }
}

static size_t claimed_bytes(uint8_t first)
{
    if (first <= 0x7f) {
        return 1;
    }
    if (is_between(first, 0xc2, 0xdf)) {
        return 2;
    }
    if (is_between(first, 0xe0, 0xef)) {
        return 3;
    }
    return is_between(first, 0xf0, 0xf4) ? 4 : 0;
}

size_t utf8_sequence_bytes(const uint8_t *data, size_t bytes)
{
    const size_t claimed = claimed_bytes(data[0]);

    if (claimed == 0 || claimed > bytes) {
        return 0;
    }
    if (claimed > 1 && !is_second(data[0], data[1])) {
        return 0;
    }
    for (size_t i = 2; i < claimed; i++) {
        if (!is_continuation(data[i])) {
            return 0;
        }
    }
    return claimed;
}

size_t utf8_printable_bytes(const uint8_t *data, size_t bytes)
{
    const size_t sequence = utf8_sequence_bytes(data, bytes);

    if (sequence == 1 && (data[0] < 0x20 || data[0] == 0x7f)) {
        return 0;
    }
    if (sequence == 2 && data[0] == 0xc2 && data[1] < 0xa0) {
        return 0;
    }
    return sequence;
}

bool utf8_is_valid(struct bytes text)
{
    const uint8_t *data = text.data;
    size_t offset = 0;

    while (offset < text.size) {
        const size_t sequence =
            utf8_sequence_bytes(data + offset, text.size - offset);

        if (sequence == 0) {
            return false;
        }
        offset += sequence;
    }
    return true;
}
