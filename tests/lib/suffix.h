/* tests/lib/suffix.h -- telling files by how their names end. */
#ifndef TESTS_LIB_SUFFIX_H
#define TESTS_LIB_SUFFIX_H

#include <stdbool.h>
#include <string.h>

static inline bool ends_in(const char *name, const char *suffix)
{
    const size_t name_size = strlen(name);
    const size_t suffix_size = strlen(suffix);

    return suffix_size <= name_size &&
           strcmp(name + name_size - suffix_size, suffix) == 0;
}

#endif
