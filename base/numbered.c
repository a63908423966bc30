/* base/numbered.c -- see base/numbered.h. */
#include "base/numbered.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"

/* ---- Names ---------------------------------------------------------------- */

void numbered_name(uint64_t number, const char *suffix,
                   char name_out[NUMBERED_NAME_BYTES])
{
    assert(strlen(suffix) <= NUMBERED_SUFFIX_BYTES_MAX);
    snprintf(name_out, NUMBERED_NAME_BYTES, "%016" PRIx64 "%s", number, suffix);
}

bool numbered_parse(const char *name, const char *suffix, uint64_t *number_out)
{
    uint64_t number = 0;

    for (size_t index = 0; index < NUMBERED_DIGITS; index++) {
        const char digit = name[index];

        if (digit >= '0' && digit <= '9') {
            number = number << 4 | (uint64_t)(digit - '0');
        } else if (digit >= 'a' && digit <= 'f') {
            number = number << 4 | (uint64_t)(digit - 'a' + 10);
        } else {
            return false; /* The end of a shorter name as well. */
        }
    }
    if (strcmp(name + NUMBERED_DIGITS, suffix) != 0) {
        return false;
    }
    *number_out = number;
    return true;
}

static bool is_temporary(const char *name)
{
    uint64_t ignored;

    return numbered_parse(name, NUMBERED_TEMPORARY, &ignored);
}

/* ---- Listing -------------------------------------------------------------- */

struct listing {
    const char *suffix;
    struct numbered_list list;
};

static enum stele_status list_visit(void *context, const char *name,
                                    struct stele_error *error)
{
    struct listing *listing = context;
    struct numbered_list *list = &listing->list;
    uint64_t *grown;
    uint64_t number;

    if (is_temporary(name)) {
        list->temporaries = true;
    }
    if (!numbered_parse(name, listing->suffix, &number)) {
        return STELE_OK;
    }
    /* Grow at powers of two. */
    if ((list->count & (list->count - 1)) == 0) {
        const size_t capacity = list->count == 0 ? 1 : list->count * 2;

        grown = realloc(list->numbers, capacity * sizeof *grown);
        if (grown == NULL) {
            return error_no_memory(error, "list of files");
        }
        list->numbers = grown;
    }
    list->numbers[list->count++] = number;
    return STELE_OK;
}

static int compare_numbers(const void *left, const void *right)
{
    const uint64_t a = *(const uint64_t *)left;
    const uint64_t b = *(const uint64_t *)right;

    return (a > b) - (a < b);
}

enum stele_status numbered_list_read(struct io_dir *dir, const char *suffix,
                                     struct numbered_list *list_out,
                                     struct stele_error *error)
{
    struct listing listing = {.suffix = suffix};
    const enum stele_status status =
        io_dir_list(dir, list_visit, &listing, error);

    if (status != STELE_OK) {
        numbered_list_free(&listing.list);
        return status;
    }
    if (listing.list.count > 0) {
        qsort(listing.list.numbers, listing.list.count,
              sizeof *listing.list.numbers, compare_numbers);
    }
    *list_out = listing.list;
    return STELE_OK;
}

void numbered_list_free(struct numbered_list *list)
{
    free(list->numbers);
    *list = (struct numbered_list){0};
}

size_t numbered_list_lower(const struct numbered_list *list, uint64_t number)
{
    size_t index = 0;

    while (index < list->count && list->numbers[index] < number) {
        index++;
    }
    return index;
}

static enum stele_status remove_temporary(void *context, const char *name,
                                          struct stele_error *error)
{
    struct io_dir *dir = context;

    return is_temporary(name) ? io_unlink(dir, name, error) : STELE_OK;
}

enum stele_status numbered_remove_temporaries(struct io_dir *dir,
                                              struct stele_error *error)
{
    return io_dir_list(dir, remove_temporary, dir, error);
}
