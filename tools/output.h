/*
 * tools/output.h -- printing keys and values, which may be any bytes.
 *
 * As text, escapes are those of a JSON string without its quotes: \\ \b \f \n
 * \r \t, and \u00XX for the other control characters. A quote stands for
 * itself, so that values that are JSON stay readable. A byte that belongs to no
 * UTF-8 sequence is \xXX; JSON has no such escape, so nothing is ambiguous.
 *
 * In JSON, bytes that are UTF-8 are a string under their own name, others a hex
 * string under that name with "_hex" behind it.
 */
#ifndef TOOLS_OUTPUT_H
#define TOOLS_OUTPUT_H

#include <stdbool.h>
#include <stdio.h>

#include "base/bytes.h"

/* How the user wants it; the targets of --json and --hex. */
struct output_mode {
    bool json;
    bool hex;
};

/* Escaped, or hex digits. */
void output_bytes(FILE *out, const struct output_mode *mode, struct bytes data);

/* "name":"text" or "name_hex":"digits". */
void output_json_bytes(FILE *out, const struct output_mode *mode,
                       const char *name, struct bytes data);

/* "text", quotes included. `text` must be UTF-8. */
void output_json_string(FILE *out, struct bytes text);

void output_hex(FILE *out, struct bytes data);

struct output_number {
    const char *name;
    uint64_t value;
};

/* A line each, or the members of a JSON object without its braces. */
void output_numbers(FILE *out, const struct output_mode *mode,
                    const struct output_number *numbers, size_t count);

#endif
