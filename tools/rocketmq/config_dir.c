/*
 * tools/rocketmq/config_dir.c -- see tools/rocketmq/config_dir.h.
 *
 * Writing: 1. make the directory, if need be, and its name durable; 2. refuse
 * what must not be replaced; 3. write every file under a temporary name and
 * sync it; 4. rename them; 5. sync the directory. A failure before 4 leaves no
 * trace but a new directory; temporaries of a process that was killed are
 * removed by the next that writes the same file.
 */
#include "tools/rocketmq/config_dir.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "base/io.h"

/* One system call takes at most 2 GiB; this also keeps a signal waiting less.
 */
enum { WRITE_BYTES_MAX = 16 * 1024 * 1024 };

/* ---- Reading ------------------------------------------------------------- */

/* "path/name" + "suffix"; NULL without memory. The caller frees it. */
static char *path_of(const char *path, const char *name, const char *suffix)
{
    char *whole = NULL;

    return asprintf(&whole, "%s/%s%s", path, name, suffix) < 0 ? NULL : whole;
}

static bool has_backup(const char *path, const char *name)
{
    char *backup = path_of(path, name, ".bak");
    const bool is_there = backup != NULL && access(backup, F_OK) == 0;

    free(backup);
    return is_there;
}

enum stele_status config_dir_mention_backup(const char *path, const char *name,
                                            enum stele_status status,
                                            struct stele_error *error)
{
    const size_t used = strlen(error->message);

    if (has_backup(path, name)) {
        snprintf(error->message + used, sizeof error->message - used,
                 " (there is a %s.bak, which is not read: if it is right, copy "
                 "it over %s)",
                 name, name);
    }
    return status;
}

enum stele_status config_dir_read(const char *path, const char *name,
                                  struct input *input_out,
                                  struct stele_error *error)
{
    char *whole = path_of(path, name, "");
    enum stele_status status;

    if (whole == NULL) {
        return error_no_memory(error, "a file name");
    }
    status = input_read(whole, input_out, error);
    free(whole);
    if (status == STELE_NOT_FOUND && has_backup(path, name)) {
        error_set(error, STELE_CORRUPT, "%s/%s: no such file", path, name);
        return config_dir_mention_backup(path, name, STELE_CORRUPT, error);
    }
    return status;
}

/* ---- Writing ------------------------------------------------------------- */

static void temporary_name(const char *name, char temporary[IO_NAME_BYTES_MAX])
{
    snprintf(temporary, IO_NAME_BYTES_MAX, "%s.tmp", name);
}

/* The directory that holds the name of `path`: without syncing it, a power cut
 * could lose the new directory with all that was synced into it. */
static enum stele_status sync_parent(const char *path,
                                     struct stele_error *error)
{
    struct io_dir *parent = NULL;
    char *parent_path = path_of(path, "..", "");
    enum stele_status status;

    if (parent_path == NULL) {
        return error_no_memory(error, "a file name");
    }
    status = io_dir_open(io_posix(), parent_path, &parent, error);
    free(parent_path);
    if (status == STELE_OK) {
        status = io_dir_sync(parent, error);
    }
    io_dir_close(parent);
    return status;
}

static enum stele_status open_or_create(const char *path,
                                        struct io_dir **dir_out,
                                        struct stele_error *error)
{
    enum stele_status status = io_dir_create(io_posix(), path, error);

    if (status == STELE_OK) {
        status = sync_parent(path, error);
    } else if (status == STELE_EXISTS) {
        status = STELE_OK;
    } else if (status == STELE_NOT_FOUND) {
        status = STELE_IO; /* The parent: not what NOT_FOUND says here. */
    }
    return status == STELE_OK ? io_dir_open(io_posix(), path, dir_out, error)
                              : status;
}

static enum stele_status refuse_existing(struct io_dir *dir,
                                         const struct bytes texts[],
                                         struct stele_error *error)
{
    for (size_t i = 0; i < ROCKETMQ_FILE_COUNT; i++) {
        struct io_file_info info;
        enum stele_status status;

        if (texts[i].data == NULL) {
            continue;
        }
        status = io_info(dir, rocketmq_files[i].name, &info, error);
        if (status == STELE_OK) {
            return error_set(error, STELE_EXISTS,
                             "%s/%s: exists (--force replaces it)",
                             io_dir_path(dir), rocketmq_files[i].name);
        }
        if (status != STELE_NOT_FOUND) {
            return status;
        }
    }
    return STELE_OK;
}

static enum stele_status write_all(struct io_file *file, struct bytes text,
                                   struct stele_error *error)
{
    const char *data = text.data;
    size_t offset = 0;

    while (offset < text.size) {
        const size_t left = text.size - offset;
        const size_t bytes = left < WRITE_BYTES_MAX ? left : WRITE_BYTES_MAX;
        const enum stele_status status =
            io_file_write(file, data + offset, bytes, offset, error);

        if (status != STELE_OK) {
            return status;
        }
        offset += bytes;
    }
    /* Before the rename: else a power cut could leave the new name with none of
     * the bytes, which is the broker's own old accident. */
    return io_file_sync(file, error);
}

static enum stele_status write_temporary(struct io_dir *dir, const char *name,
                                         struct bytes text,
                                         struct stele_error *error)
{
    char temporary[IO_NAME_BYTES_MAX];
    struct io_file *file = NULL;
    enum stele_status status;

    temporary_name(name, temporary);
    status = io_unlink(dir, temporary, error);
    if (status != STELE_OK && status != STELE_NOT_FOUND) {
        return status;
    }
    status = io_file_open(dir, temporary, IO_OPEN_CREATE_NEW, &file, error);
    if (status == STELE_OK) {
        status = write_all(file, text, error);
    }
    io_file_close(file);
    return status;
}

static void remove_temporaries(struct io_dir *dir, const struct bytes texts[])
{
    for (size_t i = 0; i < ROCKETMQ_FILE_COUNT; i++) {
        char temporary[IO_NAME_BYTES_MAX];
        enum stele_status ignored = STELE_OK;

        if (texts[i].data != NULL) {
            temporary_name(rocketmq_files[i].name, temporary);
            ignored = io_unlink(dir, temporary, NULL);
        }
        (void)ignored; /* The failure that led here is the one to report. */
    }
}

static enum stele_status write_temporaries(struct io_dir *dir,
                                           const struct bytes texts[],
                                           struct stele_error *error)
{
    enum stele_status status = STELE_OK;

    for (size_t i = 0; i < ROCKETMQ_FILE_COUNT && status == STELE_OK; i++) {
        if (texts[i].data != NULL) {
            status =
                write_temporary(dir, rocketmq_files[i].name, texts[i], error);
        }
    }
    return status;
}

static enum stele_status rename_temporaries(struct io_dir *dir,
                                            const struct bytes texts[],
                                            struct stele_error *error)
{
    enum stele_status status = STELE_OK;

    for (size_t i = 0; i < ROCKETMQ_FILE_COUNT && status == STELE_OK; i++) {
        char temporary[IO_NAME_BYTES_MAX];

        if (texts[i].data != NULL) {
            temporary_name(rocketmq_files[i].name, temporary);
            status =
                io_rename(dir, temporary, dir, rocketmq_files[i].name, error);
        }
    }
    return status;
}

enum stele_status config_dir_write(const char *path, const struct bytes texts[],
                                   enum config_dir_existing existing,
                                   struct stele_error *error)
{
    struct io_dir *dir = NULL;
    enum stele_status status = open_or_create(path, &dir, error);

    if (status == STELE_OK && existing == CONFIG_DIR_REFUSE_EXISTING) {
        status = refuse_existing(dir, texts, error);
    }
    if (status != STELE_OK) {
        io_dir_close(dir);
        return status;
    }
    status = write_temporaries(dir, texts, error);
    if (status == STELE_OK) {
        status = rename_temporaries(dir, texts, error);
    }
    if (status == STELE_OK) {
        status = io_dir_sync(dir, error); /* Or the old files may come back. */
    } else {
        remove_temporaries(dir, texts);
    }
    io_dir_close(dir);
    return status;
}
