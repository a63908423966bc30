/*
 * tools/bench/names.h -- different names, in the order in which they came: the rows and
 * columns of a table, the lines of a picture.
 */
#ifndef TOOLS_BENCH_NAMES_H
#define TOOLS_BENCH_NAMES_H

#include <stddef.h>

#include "tools/bench/stats.h"

enum { NAMES_MAX = 128 };

/* Zero-initialize the count. */
struct names {
    char names[NAMES_MAX][SERIES_NAME_BYTES];
    size_t count;
};

/* Unless it is there. Dies if there are too many. */
void names_add(struct names *names, const char *name);

#endif
