/* tools/input.c -- see tools/input.h. */
#include "tools/input.h"

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"

enum { INPUT_FIRST_BYTES = 64 * 1024 };

const char *input_name(const char *path)
{
    return strcmp(path, "-") == 0 ? "standard input" : path;
}

void input_free(struct input *input)
{
    free(input->data);
    *input = (struct input){0};
}

static enum stele_status grow(char **data, size_t *capacity,
                              struct stele_error *error)
{
    const size_t wanted = *capacity == 0 ? INPUT_FIRST_BYTES : *capacity * 2;
    char *grown;

    if (wanted < *capacity) {
        return error_no_memory(error, "the input");
    }
    grown = realloc(*data, wanted);
    if (grown == NULL) {
        return error_no_memory(error, "the input");
    }
    *data = grown;
    *capacity = wanted;
    return STELE_OK;
}

static enum stele_status read_all(FILE *file, struct input *input_out,
                                  struct stele_error *error)
{
    enum stele_status status = STELE_OK;
    char *data = NULL;
    size_t capacity = 0;
    size_t bytes = 0;

    while (status == STELE_OK && !feof(file)) {
        if (bytes == capacity) {
            status = grow(&data, &capacity, error);
            if (status != STELE_OK) {
                break;
            }
        }
        errno = 0;
        bytes += fread(data + bytes, 1, capacity - bytes, file);
        if (ferror(file)) {
            status = error_set_errno(error, STELE_IO, errno, "read");
        }
    }
    if (status != STELE_OK) {
        free(data);
        return status;
    }
    if (bytes == 0) {
        free(data);
        data = NULL;
    }
    *input_out = (struct input){.data = data, .bytes = bytes};
    return STELE_OK;
}

enum stele_status input_read(const char *path, struct input *input_out,
                             struct stele_error *error)
{
    const bool is_stdin = strcmp(path, "-") == 0;
    FILE *file = is_stdin ? stdin : fopen(path, "rbe");
    enum stele_status status;

    if (file == NULL) {
        return error_set_errno(error,
                               errno == ENOENT ? STELE_NOT_FOUND : STELE_IO,
                               errno, "%s: open", path);
    }
    status = read_all(file, input_out, error);
    if (!is_stdin) {
        fclose(file); /* Opened for reading: nothing can be lost. */
    }
    if (status != STELE_OK) {
        return error_wrap(error, status, "%s", input_name(path));
    }
    return STELE_OK;
}
