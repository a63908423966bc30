/*
 * tests/lib/store_dir.h -- a store of a test's own, driven by hand.
 *
 * In a temporary directory, over tests/lib/io_fault.h, with small files and
 * without keeper threads: nothing happens by itself. Keys and values are
 * strings in the table "t".
 */
#ifndef TESTS_LIB_STORE_DIR_H
#define TESTS_LIB_STORE_DIR_H

#include <stdbool.h>
#include <stdint.h>

#include "engine/stele.h"
#include "engine/store.h"
#include "tests/lib/files.h"

struct store_dir {
    char *path;
    struct stele_options options; /* Of the next open. */
    struct store_tuning tuning;
    struct stele *store; /* NULL: not open. */
    struct stele_error error;
};

/* The directory, empty. */
void store_dir_make(struct store_dir *dir);
/* Kills the store if it is open. */
void store_dir_remove(struct store_dir *dir);

enum stele_status store_dir_try_open(struct store_dir *dir,
                                     enum stele_open_mode mode);
/* These assert that it works. */
void store_dir_open(struct store_dir *dir); /* Made if there is none. */
void store_dir_close(struct store_dir *dir);
/* As if the process had been killed. */
void store_dir_kill(struct store_dir *dir);

enum stele_status store_dir_try_put(struct store_dir *dir, const char *key,
                                    const char *value);
uint64_t store_dir_put(struct store_dir *dir, const char *key,
                       const char *value);
/* In the log, not synced. */
void store_dir_put_relaxed(struct store_dir *dir, const char *key,
                           const char *value);
/* A value of so many bytes 'v'. */
enum stele_status store_dir_try_put_bytes(struct store_dir *dir,
                                          const char *key, uint64_t bytes);

/* Look it up in a new view: is it this value? NULL: is it absent? */
bool store_dir_has(struct store_dir *dir, const char *key, const char *value);
enum stele_status store_dir_try_get(struct store_dir *dir, const char *key);

struct stele_stats store_dir_stats(struct store_dir *dir);

/* "<dir>/<name>": borrowed until the next call. */
const char *store_dir_at(const struct store_dir *dir, const char *name);

/* "<dir>/<name>"; the newest segment with a unit in it. */
void store_dir_path(const struct store_dir *dir, const char *name,
                    char path_out[FILES_PATH_BYTES]);
void store_dir_current_segment(struct store_dir *dir,
                               char path_out[FILES_PATH_BYTES]);

/* The last error, word for word. */
void store_dir_assert_error(const struct store_dir *dir, const char *format,
                            ...) __attribute__((format(printf, 2, 3)));
/* Opening is refused, for writing and for reading, again and again, with "open
 * <path>: " and exactly this message; nothing is touched. */
void store_dir_assert_refused(struct store_dir *dir, enum stele_status status,
                              const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* What messages call the directory. */
const char *store_dir_name(const struct store_dir *dir);

void store_dir_assert_verifies(struct store_dir *dir);

/* A number that changes with any byte that a store must not touch when it is
 * refused: everything but LMDB's table of readers. */
uint64_t store_dir_digest(const struct store_dir *dir);

#endif
