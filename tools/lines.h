/*
 * tools/lines.h -- the lines of a text in memory.
 *
 * A line ends before its \n, and nothing else is taken off it. The last one may
 * lack its \n; behind a final \n there is no further line.
 */
#ifndef TOOLS_LINES_H
#define TOOLS_LINES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct lines {
    char *rest; /* Borrowed. */
    size_t rest_bytes;
    uint64_t number; /* Of the line last returned, from 1. */
};

struct line {
    char *data; /* Borrowed; not NUL-terminated. */
    size_t bytes;
};

struct lines lines_init(char *text, size_t text_bytes);

/* False at the end. */
bool lines_next(struct lines *lines, struct line *line_out);

/* How many there are still to come. */
uint64_t lines_count(const struct lines *lines);

#endif
