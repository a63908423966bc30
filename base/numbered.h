/*
 * base/numbered.h -- files that are named by a number: 16 lower-case hex digits
 * and a suffix (".wal", ".snap").
 *
 * While one is being made it has the suffix ".tmp". Names are parsed strictly,
 * the whole of them; of everything else in the directory nothing is assumed.
 */
#ifndef BASE_NUMBERED_H
#define BASE_NUMBERED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/io.h"
#include "base/status.h"

enum {
    NUMBERED_DIGITS = 16,
    NUMBERED_SUFFIX_BYTES_MAX = 5,
    NUMBERED_NAME_BYTES = NUMBERED_DIGITS + NUMBERED_SUFFIX_BYTES_MAX + 1,
};

#define NUMBERED_TEMPORARY ".tmp"

/* `suffix` is one of the caller's, or NUMBERED_TEMPORARY. */
void numbered_name(uint64_t number, const char *suffix,
                   char name_out[NUMBERED_NAME_BYTES]);
/* Strict: the whole name, exact length, lower case. */
bool numbered_parse(const char *name, const char *suffix, uint64_t *number_out);

struct numbered_list {
    uint64_t *numbers; /* Ascending. */
    size_t count;
    bool temporaries; /* There are .tmp files. */
};

/* The files with this suffix. */
enum stele_status numbered_list_read(
    struct io_dir *dir, const char *suffix, struct numbered_list *list_out,
    struct stele_error *error) STELE_MUST_CHECK;
void numbered_list_free(struct numbered_list *list); /* Accepts a zeroed one. */

/* The index of the first one >= `number`, or count. */
size_t numbered_list_lower(const struct numbered_list *list, uint64_t number);

/* Unlink the .tmp files that an earlier process left. */
enum stele_status numbered_remove_temporaries(
    struct io_dir *dir, struct stele_error *error) STELE_MUST_CHECK;

#endif
