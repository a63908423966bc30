/* base/path.c -- see base/path.h. */
#include "base/path.h"

#include <stdlib.h>
#include <string.h>

/* Where the last name ends: slashes behind it are not part of it. */
static size_t name_end(const char *path)
{
    size_t end = strlen(path);

    while (end > 1 && path[end - 1] == '/') {
        end--;
    }
    return end;
}

static size_t name_start(const char *path)
{
    size_t start = name_end(path);

    while (start > 0 && path[start - 1] != '/') {
        start--;
    }
    return start;
}

char *path_parent(const char *path)
{
    size_t size = name_start(path);

    while (size > 1 && path[size - 1] == '/') {
        size--;
    }
    return size == 0 ? strdup(".") : strndup(path, size);
}

char *path_name(const char *path)
{
    const size_t start = name_start(path);
    const size_t end = name_end(path);

    return end <= start ? strdup("") : strndup(path + start, end - start);
}
