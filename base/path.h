/*
 * base/path.h -- a path's last name, and the path of the directory that it is in.
 *
 * Text only: what is there is not looked at.
 */
#ifndef BASE_PATH_H
#define BASE_PATH_H

/* "a/b/c" and "a/b/c/" have the parent "a/b"; "c" has "."; "/c" has "/". The
 * caller's, to free; NULL: out of memory. */
char *path_parent(const char *path);

/* "c" of each of these, "" of "/" and "". The caller's, to free; NULL: out of
 * memory. */
char *path_name(const char *path);

#endif
