/* tools/bench/remove_tree.c -- see tools/bench/remove_tree.h. */
#include "tools/bench/remove_tree.h"

#include <ftw.h>
#include <stdio.h>
#include <unistd.h>

static int remove_entry(const char *path, const struct stat *info, int type,
                        struct FTW *where)
{
    (void)info;
    (void)type;
    (void)where;
    (void)remove(path); /* The directory tells whether something is left. */
    return 0;
}

void remove_tree(const char *directory)
{
    (void)nftw(directory, remove_entry, 16, FTW_DEPTH | FTW_PHYS);
    if (access(directory, F_OK) == 0) {
        fprintf(stderr, "stele-bench: %s cannot be removed\n", directory);
    }
}
