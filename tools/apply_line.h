/*
 * tools/apply_line.h -- one line of `stele apply` into one operation.
 *
 *     {"op":"put","table":T,"key":K,"value":V}
 *     {"op":"delete","table":T,"key":K}
 *     {"op":"delete_prefix","table":T,"key":P}
 *     {"op":"clear","table":T}
 *
 * "key_hex" and "value_hex" may stand for "key" and "value". Strict: no other
 * member, none twice, none that the operation does not take, nothing behind the
 * object. Touches no file and no store.
 */
#ifndef TOOLS_APPLY_LINE_H
#define TOOLS_APPLY_LINE_H

#include <stddef.h>
#include <stdint.h>

#include "engine/stele.h"

/* Add the operation to `batch`, which a failure leaves as it was. INVALID says
 * what is wrong with the line; TOO_BIG, which limit it exceeds. */
enum stele_status apply_line(struct stele_batch *batch, const char *line,
                             size_t line_bytes, uint64_t value_bytes_max,
                             struct stele_error *error) STELE_MUST_CHECK;

#endif
