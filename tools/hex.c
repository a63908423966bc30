/* tools/hex.c -- see tools/hex.h. */
#include "tools/hex.h"

#include <string.h>

#include "base/error.h"

/* -1: not a digit. */
static int digit_value(char digit)
{
    static const char digits[] = "0123456789abcdef";
    const char lower =
        digit >= 'A' && digit <= 'F' ? (char)(digit - 'A' + 'a') : digit;
    const char *found;

    if (lower == '\0') {
        return -1;
    }
    found = strchr(digits, lower);
    return found == NULL ? -1 : (int)(found - digits);
}

enum stele_status hex_decode(char *text, size_t text_bytes, size_t *bytes_out,
                             struct stele_error *error)
{
    if (text_bytes % 2 != 0) {
        return error_set(error, STELE_INVALID,
                         "hex: %zu digits, an odd number of them", text_bytes);
    }
    for (size_t i = 0; i < text_bytes / 2; i++) {
        const int high = digit_value(text[2 * i]);
        const int low = digit_value(text[2 * i + 1]);

        if (high < 0 || low < 0) {
            return error_set(error, STELE_INVALID,
                             "hex: no digit at position %zu",
                             2 * i + (high < 0 ? 1 : 2));
        }
        text[i] = (char)(high << 4 | low);
    }
    *bytes_out = text_bytes / 2;
    return STELE_OK;
}
