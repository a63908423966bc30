/* tools/lines.c -- see tools/lines.h. */
#include "tools/lines.h"

#include <string.h>

struct lines lines_init(char *text, size_t text_bytes)
{
    return (struct lines){.rest = text, .rest_bytes = text_bytes};
}

bool lines_next(struct lines *lines, struct line *line_out)
{
    const char *newline;

    if (lines->rest_bytes == 0) {
        return false;
    }
    newline = memchr(lines->rest, '\n', lines->rest_bytes);
    line_out->data = lines->rest;
    line_out->bytes =
        newline == NULL ? lines->rest_bytes : (size_t)(newline - lines->rest);
    lines->rest += line_out->bytes;
    lines->rest_bytes -= line_out->bytes;
    if (newline != NULL) {
        lines->rest += 1;
        lines->rest_bytes -= 1;
    }
    lines->number += 1;
    return true;
}

uint64_t lines_count(const struct lines *lines)
{
    struct lines walk = *lines;
    struct line line;
    uint64_t count = 0;

    while (lines_next(&walk, &line)) {
        count += 1;
    }
    return count;
}
