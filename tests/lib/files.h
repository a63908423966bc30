/*
 * tests/lib/files.h -- bytes of files, behind the back of the code under test.
 *
 * Everything dies with a message if the file system does not do as it is told:
 * in a test that is never the question.
 */
#ifndef TESTS_LIB_FILES_H
#define TESTS_LIB_FILES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { FILES_PATH_BYTES = 512 };

/* "<dir>/<name>". */
void files_path(char path_out[FILES_PATH_BYTES], const char *dir,
                const char *name);

/* The whole file, malloc'ed. */
uint8_t *files_read(const char *path, size_t *bytes_out);
/* Make or replace it. */
void files_write(const char *path, const void *data, size_t bytes);

void files_read_at(const char *path, uint64_t offset, void *target,
                   size_t bytes);
void files_write_at(const char *path, uint64_t offset, const void *data,
                    size_t bytes);
void files_fill_at(const char *path, uint64_t offset, int byte, size_t bytes);
/* Change one bit: number `bit` counted from `offset`. */
void files_flip_bit(const char *path, uint64_t offset, uint64_t bit);

/* Change bit number `bit` of `data` wherever that stands in the file, but at least
 * once: LMDB keeps old pages. */
void files_flip_everywhere(const char *path, const void *data, size_t bytes,
                           uint64_t bit);

/* Where `data` first is in the file; UINT64_MAX: nowhere. */
uint64_t files_find(const char *path, const void *data, size_t bytes);

void files_truncate(const char *path, uint64_t bytes);
void files_remove(const char *path);
void files_rename(const char *from, const char *to);
void files_copy(const char *from, const char *to);
bool files_exists(const char *path);
uint64_t files_size(const char *path);

/* A number that changes with any name, length or byte below `dir`, but for
 * files named `except` (may be NULL). */
uint64_t files_tree_digest(const char *dir, const char *except);

/* Entries in a directory whose name ends in `suffix`, dots left out. */
size_t files_count(const char *dir, const char *suffix);

#endif
