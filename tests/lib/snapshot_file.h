/*
 * tests/lib/snapshot_file.h -- a snapshot of a test's own, in a temporary directory
 * over tests/lib/io_fault.h, and entries to put into it.
 *
 * Whatever goes wrong while building is an assertion of cmocka's.
 */
#ifndef TESTS_LIB_SNAPSHOT_FILE_H
#define TESTS_LIB_SNAPSHOT_FILE_H

#include <stddef.h>
#include <stdint.h>

#include "base/io.h"
#include "snapshot/format.h"
#include "snapshot/reader.h"
#include "snapshot/writer.h"
#include "tests/lib/files.h"
#include "tests/lib/random.h"

enum { SNAPSHOT_FILE_LSN = 0x1a2b };
#define SNAPSHOT_FILE_NAME      "0000000000001a2b.snap"
#define SNAPSHOT_FILE_TEMPORARY "0000000000001a2b.tmp"

extern const uint8_t snapshot_file_uuid[SNAPSHOT_UUID_BYTES];
extern const struct snapshot_totals snapshot_file_totals;
extern const uint8_t snapshot_file_position[SNAPSHOT_POSITION_BYTES];

/* ---- Entries -------------------------------------------------------------------- */

/* In key order; they own their bytes. */
struct snapshot_pairs {
    struct snapshot_entry *entries;
    size_t count;
};

/* Up to so many, of all sizes that are worth a test but for huge ones. */
struct snapshot_pairs snapshot_pairs_random(struct random_source *random,
                                            size_t count_max);
/* "k000000", "k000001" ..., with `stored_bytes` each. */
struct snapshot_pairs snapshot_pairs_counted(size_t count, size_t stored_bytes);
void snapshot_pairs_free(struct snapshot_pairs *pairs);

/* ---- The file --------------------------------------------------------------------- */

struct snapshot_file {
    char *dir_path;
    struct io_dir *dir;
    char path[FILES_PATH_BYTES];      /* Of the published snapshot ... */
    char temporary[FILES_PATH_BYTES]; /* ... and the temporary. */
};

/* The directory; there is no file yet. */
void snapshot_file_setup(struct snapshot_file *file);
void snapshot_file_teardown(struct snapshot_file *file);

/* Write these, up to publishing. */
void snapshot_file_make(struct snapshot_file *file,
                        const struct snapshot_pairs *pairs,
                        struct snapshot_info *info_out);

/* Read the published one to its end; what that says: NOT_FOUND if all is well. */
enum stele_status snapshot_file_scan(struct snapshot_file *file,
                                     struct stele_error *error);

/* It is read as exactly these. */
void snapshot_file_assert(struct snapshot_file *file,
                          const struct snapshot_pairs *pairs);

#endif
