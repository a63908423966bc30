/* tools/bench/names.c -- see tools/bench/names.h. */
#include "tools/bench/names.h"

#include <stdio.h>
#include <string.h>

#include "tools/must/must.h"

void names_add(struct names *names, const char *name)
{
    for (size_t i = 0; i < names->count; i++) {
        if (strcmp(names->names[i], name) == 0) {
            return;
        }
    }
    if (names->count == NAMES_MAX) {
        die("more than %d different names", NAMES_MAX);
    }
    snprintf(names->names[names->count++], SERIES_NAME_BYTES, "%s", name);
}
