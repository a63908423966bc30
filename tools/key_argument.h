/* tools/key_argument.h -- keys, prefixes and values as the user gives them. */
#ifndef TOOLS_KEY_ARGUMENT_H
#define TOOLS_KEY_ARGUMENT_H

#include "base/bytes.h"
#include "base/status.h"
#include "tools/output.h"

/*
 * The bytes that `text` stands for: itself, or with --hex what its digits say,
 * decoded in place. The result borrows from `text`.
 */
enum stele_status key_argument(char *text, const struct output_mode *mode,
                               struct bytes *key_out,
                               struct stele_error *error) STELE_MUST_CHECK;

/* The same for a text that is not NUL-terminated. */
enum stele_status key_argument_bytes(
    char *text, size_t text_bytes, const struct output_mode *mode,
    struct bytes *key_out, struct stele_error *error) STELE_MUST_CHECK;

#endif
