/* engine/backup_dest.c -- see engine/backup_dest.h. */
#include "engine/backup_dest.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/numbered.h"
#include "base/path.h"
#include "engine/create.h"

/* ---- Where it is ------------------------------------------------------------- */

static bool is_same(const struct io_file_info *left,
                    const struct io_file_info *right)
{
    return left->device == right->device && left->inode == right->inode;
}

/* Whether `dir` is the store's directory, or below it. Closes `dir`. */
static enum stele_status check_outside(struct stele *store, struct io_dir *dir,
                                       struct stele_error *error)
{
    struct io_file_info inside;
    struct io_file_info info;
    enum stele_status status = io_dir_info(store->dir, &inside, error);

    if (status == STELE_OK) {
        status = io_dir_info(dir, &info, error);
    }
    while (status == STELE_OK) {
        struct io_file_info above = info;
        struct io_dir *parent;

        if (is_same(&info, &inside)) {
            status = error_set(error, STELE_INVALID,
                               "a backup cannot be kept inside the store");
            break;
        }
        status = io_dir_open_in(dir, "..", &parent, error);
        if (status != STELE_OK) {
            /* We may not look there, but the store's directory we did open. */
            status =
                error != NULL && error->sys_errno == EACCES ? STELE_OK : status;
            break;
        }
        io_dir_close(dir);
        dir = parent;
        status = io_dir_info(dir, &info, error);
        if (status == STELE_OK && is_same(&info, &above)) {
            break; /* The root. */
        }
    }
    io_dir_close(dir);
    return status;
}

/* The directory at `path`; if there is none, the one that it would be made in. */
static enum stele_status check_place(struct stele *store, const char *path,
                                     struct stele_error *error)
{
    struct io_dir *dir;
    enum stele_status status = io_dir_open(store->io, path, &dir, error);

    if (status == STELE_NOT_FOUND) {
        char *parent = path_parent(path);

        if (parent == NULL) {
            return error_no_memory(error, "path");
        }
        status = io_dir_open(store->io, parent, &dir, error);
        free(parent);
    }
    return status == STELE_OK ? check_outside(store, dir, error) : status;
}

/* ---- What it is ---------------------------------------------------------------- */

struct contents {
    bool archive;
    bool lock;
    bool other; /* Of an archive that was begun. */
    bool foreign;
    char what[IO_NAME_BYTES_MAX + 1];
};

static enum stele_status note_entry(void *context, const char *name,
                                    struct stele_error *error)
{
    struct contents *contents = context;

    (void)error;
    if (strcmp(name, ARCHIVE_NAME) == 0) {
        contents->archive = true;
    } else if (strcmp(name, ARCHIVE_LOCK_NAME) == 0) {
        contents->lock = true;
    } else {
        snprintf(contents->what, sizeof contents->what, "%s", name);
        contents->foreign =
            contents->foreign || (strcmp(name, STORE_WAL_NAME) != 0 &&
                                  strcmp(name, STORE_SNAPSHOT_NAME) != 0 &&
                                  strcmp(name, ARCHIVE_TEMPORARY_NAME) != 0);
        contents->other = true;
    }
    return STELE_OK;
}

/* Whether what is there, if anything, is an archive of this store, begun or whole. */
static enum stele_status check_contents(struct stele *store,
                                        struct backup_dest *dest,
                                        struct stele_error *error)
{
    struct contents contents = {0};
    enum stele_status status =
        io_dir_list(dest->dir, note_entry, &contents, error);

    if (status != STELE_OK) {
        return status;
    }
    if (!contents.archive) {
        return contents.foreign || (contents.other && !contents.lock)
                   ? error_set(error, STELE_FOREIGN,
                               "%s is not empty and no archive: it has no "
                               "ARCHIVE, but %.100s",
                               io_dir_path(dest->dir), contents.what)
                   : STELE_OK;
    }
    status = archive_read(dest->dir, &dest->earlier, error);
    if (status == STELE_OK &&
        !wal_uuid_equal(&dest->earlier.uuid, &store->uuid)) {
        return error_set(error, STELE_FOREIGN,
                         "%s is the archive of another store",
                         io_dir_path(dest->dir));
    }
    dest->has_earlier = status == STELE_OK;
    return status;
}

/* ---- Taking it --------------------------------------------------------------------- */

static enum stele_status lock(struct backup_dest *dest,
                              struct stele_error *error)
{
    enum stele_status status = io_file_open(dest->dir, ARCHIVE_LOCK_NAME,
                                            IO_OPEN_CREATE, &dest->lock, error);

    if (status == STELE_OK) {
        status = io_file_lock(dest->lock, 0, error);
    }
    if (status == STELE_LOCKED) {
        return error_set(error, STELE_LOCKED,
                         "another backup is being written to %s",
                         io_dir_path(dest->dir));
    }
    /* By this name an archive that was begun is known again: it must not be
     * missing where there is anything else. */
    return status == STELE_OK ? io_dir_sync(dest->dir, error) : status;
}

/* Make it, if need be, open it, and remove temporaries. */
static enum stele_status open_inside(struct io_dir *parent, const char *name,
                                     struct io_dir **dir_out,
                                     struct stele_error *error)
{
    enum stele_status status = io_dir_create_in(parent, name, error);

    if (status == STELE_OK || status == STELE_EXISTS) {
        status = io_dir_open_in(parent, name, dir_out, error);
    }
    return status == STELE_OK ? numbered_remove_temporaries(*dir_out, error)
                              : status;
}

static enum stele_status take(struct stele *store, struct backup_dest *dest,
                              struct stele_error *error)
{
    enum stele_status status = check_contents(store, dest, error);

    if (status == STELE_OK) {
        status = lock(dest, error);
    }
    if (status == STELE_OK) {
        /* Again, now that nobody else can be at it. */
        status = check_contents(store, dest, error);
    }
    if (status == STELE_OK) {
        status = open_inside(dest->dir, STORE_SNAPSHOT_NAME,
                             &dest->snapshot_dir, error);
    }
    if (status == STELE_OK) {
        status = open_inside(dest->dir, STORE_WAL_NAME, &dest->wal_dir, error);
    }
    return status;
}

enum stele_status backup_dest_open(struct stele *store, const char *path,
                                   struct backup_dest *dest_out,
                                   struct stele_error *error)
{
    struct backup_dest dest = {0};
    struct stele_error local;
    struct stele_error *reason = error == NULL ? &local : error;
    enum stele_status status = check_place(store, path, reason);

    if (status == STELE_OK) {
        status = create_directory(store->io, path, reason);
    }
    if (status == STELE_OK) {
        status = io_dir_open(store->io, path, &dest.dir, reason);
    }
    if (status == STELE_OK) {
        status = take(store, &dest, reason);
    }
    if (status == STELE_NOT_FOUND) {
        /* A parent, or what a link leads to; not a missing key. */
        reason->status = STELE_IO;
        status = STELE_IO;
    }
    if (status != STELE_OK) {
        backup_dest_close(&dest);
        return status;
    }
    *dest_out = dest;
    return STELE_OK;
}

void backup_dest_close(struct backup_dest *dest)
{
    io_dir_close(dest->wal_dir);
    io_dir_close(dest->snapshot_dir);
    io_file_close(dest->lock); /* Lets go of it. */
    io_dir_close(dest->dir);
    *dest = (struct backup_dest){0};
}
