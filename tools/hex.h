/* tools/hex.h -- bytes written as pairs of hexadecimal digits. */
#ifndef TOOLS_HEX_H
#define TOOLS_HEX_H

#include <stddef.h>

#include "base/status.h"

/*
 * Turn the digits in `text` into bytes, in place: the result is never longer
 * than what it is made from. INVALID for a character that is no digit or an odd
 * number of them; `text` is then of no use any more.
 */
enum stele_status hex_decode(char *text, size_t text_bytes, size_t *bytes_out,
                             struct stele_error *error) STELE_MUST_CHECK;

#endif
