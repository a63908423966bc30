/* tools/utf8.h -- telling text from other bytes. */
#ifndef TOOLS_UTF8_H
#define TOOLS_UTF8_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/bytes.h"

/* Length of the UTF-8 sequence that `data` begins with; 0 if it begins with
 * none (overlong forms and surrogates are none). `bytes` is 1 or more. */
size_t utf8_sequence_bytes(const uint8_t *data, size_t bytes);

/* The same, but 0 for control characters too: C0, DEL, and C1. */
size_t utf8_printable_bytes(const uint8_t *data, size_t bytes);

bool utf8_is_valid(struct bytes text);

#endif
