/* tools/input.h -- a whole file, or all of stdin, in memory. */
#ifndef TOOLS_INPUT_H
#define TOOLS_INPUT_H

#include <stddef.h>

#include "base/status.h"

/* `data` is the owner's to change, and NULL when there are no bytes. */
struct input {
    char *data;
    size_t bytes;
};

/*
 * Read the file at `path`, or stdin if it is "-". NOT_FOUND if there is no such
 * file, IO if it cannot be read, NO_MEMORY if it does not fit.
 */
enum stele_status input_read(const char *path, struct input *input_out,
                             struct stele_error *error) STELE_MUST_CHECK;

/* Accepts an input that was zeroed instead of read. */
void input_free(struct input *input);

/* How messages call it: the path, or "standard input". */
const char *input_name(const char *path);

#endif
