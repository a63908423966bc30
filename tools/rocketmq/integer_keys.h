/*
 * tools/rocketmq/integer_keys.h -- {0:1024} into {"0":1024}.
 *
 * The broker's JSON writer leaves integer keys of maps without quotes, which is
 * not JSON. Only that is mended: an integer outside strings, behind '{' or ',',
 * with a ':' after it. Whatever else is wrong with the text stays wrong.
 */
#ifndef TOOLS_ROCKETMQ_INTEGER_KEYS_H
#define TOOLS_ROCKETMQ_INTEGER_KEYS_H

#include <stddef.h>

#include "base/bytes.h"

/* Write the mended text to `target` unless that is NULL, and return its length:
 * at most twice that of `text`. */
size_t integer_keys_quote(struct bytes text, char *target);

/* Where in `text` the byte at `quoted_offset` of its mended form came from. */
size_t integer_keys_origin(struct bytes text, const char *quoted,
                           size_t quoted_offset);

#endif
