/* tests/lib/temp_dir.h -- a directory of a test's own, gone afterwards. */
#ifndef TESTS_LIB_TEMP_DIR_H
#define TESTS_LIB_TEMP_DIR_H

/* Under $TMPDIR or /tmp. Dies if it cannot be made. The path is malloc'ed. */
char *temp_dir_make(void);

/* Remove it with everything in it, and free the path. */
void temp_dir_remove(char *path);

#endif
