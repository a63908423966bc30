/* tests/lib/temp_dir.c -- see tests/lib/temp_dir.h. */
#include "tests/lib/temp_dir.h"

#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

char *temp_dir_make(void)
{
    const char *root = getenv("TMPDIR");
    char *path;

    if (root == NULL || root[0] == '\0') {
        root = "/tmp";
    }
    if (asprintf(&path, "%s/stele-test-XXXXXX", root) < 0 ||
        mkdtemp(path) == NULL) {
        perror("temp_dir_make");
        abort();
    }
    return path;
}

static int remove_entry(const char *path, const struct stat *info, int type,
                        struct FTW *where)
{
    (void)info;
    (void)type;
    (void)where;
    return remove(path);
}

void temp_dir_remove(char *path)
{
    if (nftw(path, remove_entry, 16, FTW_DEPTH | FTW_PHYS) != 0) {
        perror(path);
    }
    free(path);
}
