/* engine/quarantine.c -- see engine/quarantine.h. */
#include "engine/quarantine.h"

#include <stdio.h>

#include "base/error.h"

enum { NUMBER_MAX = 9999 };

/* quarantine/, made if it is not there. */
static enum stele_status open_quarantine(struct stele *store,
                                         struct io_dir **dir_out,
                                         struct stele_error *error)
{
    enum stele_status status =
        io_dir_create_in(store->dir, STORE_QUARANTINE_NAME, error);

    if (status == STELE_OK || status == STELE_EXISTS) {
        status =
            io_dir_open_in(store->dir, STORE_QUARANTINE_NAME, dir_out, error);
    }
    return status;
}

static enum stele_status free_name(struct io_dir *quarantine, const char *name,
                                   char target[IO_NAME_BYTES_MAX + 1],
                                   struct stele_error *error)
{
    for (int number = 1; number <= NUMBER_MAX; number++) {
        struct io_file_info ignored;
        enum stele_status status;

        snprintf(target, IO_NAME_BYTES_MAX + 1, "%s.%04d", name, number);
        status = io_info(quarantine, target, &ignored, error);
        if (status != STELE_OK) {
            return status == STELE_NOT_FOUND ? STELE_OK : status;
        }
    }
    return error_set(error, STELE_IO,
                     "quarantine/ holds %d of that name already", NUMBER_MAX);
}

enum stele_status quarantine_move(struct stele *store, struct io_dir *dir,
                                  const char *name, struct stele_error *error)
{
    char target[IO_NAME_BYTES_MAX + 1];
    struct io_dir *quarantine = NULL;
    struct io_file_info ignored;
    enum stele_status status = io_info(dir, name, &ignored, error);

    if (status == STELE_OK) {
        status = open_quarantine(store, &quarantine, error);
    }
    if (status == STELE_OK) {
        status = free_name(quarantine, name, target, error);
    }
    if (status == STELE_OK) {
        status = io_rename(dir, name, quarantine, target, error);
    }
    if (status == STELE_OK) {
        status = io_dir_sync(quarantine, error);
    }
    if (status == STELE_OK && dir != store->dir) {
        status = io_dir_sync(dir, error);
    }
    if (status == STELE_OK) {
        /* The name of quarantine/ itself. */
        status = io_dir_sync(store->dir, error);
    }
    io_dir_close(quarantine);
    return status == STELE_OK || status == STELE_NOT_FOUND
               ? status
               : error_wrap(error, status, "set %s aside", name);
}
