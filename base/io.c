/*
 * base/io.c -- the policy half of base/io.h: what is repeated, what is not, and
 * how a failed call becomes a status and a message.
 */
#include "base/io.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"

struct io_dir {
    struct io *io;
    int fd;
    char path[]; /* As opened; for messages. */
};

struct io_file {
    struct io *io;
    int fd;
    char name[]; /* "<last directory>/<name>", for messages. */
};

/* What a failed call means to the caller. Only ENOENT is absence: a directory
 * that may not be read or a full descriptor table says nothing of what exists. */
static enum stele_status status_of_errno(int sys_errno)
{
    switch (sys_errno) {
    case ENOENT:
        return STELE_NOT_FOUND;
    case EEXIST:
        return STELE_EXISTS;
    case ENOSPC:
    case EDQUOT:
    case EFBIG: /* A limit on the size of files. */
        return STELE_NO_SPACE;
    case ENOMEM:
        return STELE_NO_MEMORY;
    case EOPNOTSUPP:
        return STELE_UNSUPPORTED;
    case ENOTDIR:
        return STELE_FOREIGN; /* Something else has the name. */
    default:
        return STELE_IO;
    }
}

static enum stele_status fail(struct stele_error *error, int negative_errno,
                              const char *what, const char *name)
{
    assert(negative_errno < 0);
    return error_set_errno(error, status_of_errno(-negative_errno),
                           -negative_errno, "%s: %s", name, what);
}

/* ---- Directories ------------------------------------------------------- */

static enum stele_status dir_wrap(struct io *io, int fd, const char *parent,
                                  const char *path, struct io_dir **dir_out,
                                  struct stele_error *error)
{
    const size_t path_bytes =
        (parent == NULL ? 0 : strlen(parent) + 1) + strlen(path) + 1;
    struct io_dir *dir = malloc(sizeof *dir + path_bytes);

    if (dir == NULL) {
        (void)io->calls->close(io, fd);
        return error_no_memory(error, path);
    }
    dir->io = io;
    dir->fd = fd;
    snprintf(dir->path, path_bytes, "%s%s%s", parent == NULL ? "" : parent,
             parent == NULL ? "" : "/", path);
    *dir_out = dir;
    return STELE_OK;
}

static int open_dir_call(struct io *io, int parent_fd_or_minus_1,
                         const char *path)
{
    int fd;

    do {
        fd = io->calls->open_dir(io, parent_fd_or_minus_1, path);
    } while (fd == -EINTR);
    return fd;
}

enum stele_status io_dir_open(struct io *io, const char *path,
                              struct io_dir **dir_out,
                              struct stele_error *error)
{
    const int fd = open_dir_call(io, -1, path);

    if (fd < 0) {
        return fail(error, fd, "open directory", path);
    }
    return dir_wrap(io, fd, NULL, path, dir_out, error);
}

enum stele_status io_dir_open_in(struct io_dir *parent, const char *name,
                                 struct io_dir **dir_out,
                                 struct stele_error *error)
{
    const int fd = open_dir_call(parent->io, parent->fd, name);

    if (fd < 0) {
        return fail(error, fd, "open directory", name);
    }
    return dir_wrap(parent->io, fd, parent->path, name, dir_out, error);
}

enum stele_status io_dir_create(struct io *io, const char *path,
                                struct stele_error *error)
{
    const int result = io->calls->make_dir(io, -1, path);

    return result < 0 ? fail(error, result, "make directory", path) : STELE_OK;
}

enum stele_status io_dir_create_in(struct io_dir *parent, const char *name,
                                   struct stele_error *error)
{
    const int result =
        parent->io->calls->make_dir(parent->io, parent->fd, name);

    return result < 0 ? fail(error, result, "make directory", name) : STELE_OK;
}

enum stele_status io_dir_sync(struct io_dir *dir, struct stele_error *error)
{
    const int result = dir->io->calls->sync_dir(dir->io, dir->fd);

    if (result < 0) {
        /* Never "no space" or "not found": what is durable is unknown now. */
        return error_set_errno(error, STELE_IO, -result, "%s: sync directory",
                               dir->path);
    }
    return STELE_OK;
}

struct list_context {
    io_dir_visit *visit;
    void *context;
    struct stele_error *error;
    enum stele_status status;
};

static int list_entry(void *context, const char *name)
{
    struct list_context *list = context;

    list->status = list->visit(list->context, name, list->error);
    return list->status == STELE_OK ? 0 : 1;
}

enum stele_status io_dir_list(struct io_dir *dir, io_dir_visit *visit,
                              void *context, struct stele_error *error)
{
    struct list_context list = {
        .visit = visit, .context = context, .error = error};
    const int result =
        dir->io->calls->list(dir->io, dir->fd, list_entry, &list);

    if (result < 0) {
        return fail(error, result, "list directory", dir->path);
    }
    return list.status;
}

enum stele_status io_dir_fs_kind(struct io_dir *dir, enum io_fs_kind *kind_out,
                                 struct stele_error *error)
{
    const int result = dir->io->calls->fs_kind(dir->io, dir->fd, kind_out);

    return result < 0 ? fail(error, result, "statfs", dir->path) : STELE_OK;
}

enum stele_status io_dir_info(struct io_dir *dir, struct io_file_info *info_out,
                              struct stele_error *error)
{
    const int result = dir->io->calls->info(dir->io, dir->fd, NULL, info_out);

    return result < 0 ? fail(error, result, "stat", dir->path) : STELE_OK;
}

char *io_dir_system_path(const struct io_dir *dir)
{
    const struct io_calls *calls = dir->io->calls;
    char path[64];

    if (calls->system_path == NULL ||
        calls->system_path(dir->io, dir->fd, path, sizeof path) < 0) {
        return strdup(dir->path);
    }
    return strdup(path);
}

const char *io_dir_path(const struct io_dir *dir)
{
    return dir->path;
}

struct io *io_dir_io(const struct io_dir *dir)
{
    return dir->io;
}

void io_dir_close(struct io_dir *dir)
{
    if (dir == NULL) {
        return;
    }
    (void)dir->io->calls->close(dir->io, dir->fd);
    free(dir);
}

/* ---- Names -------------------------------------------------------------- */

enum stele_status io_rename(struct io_dir *from_dir, const char *from,
                            struct io_dir *to_dir, const char *to,
                            struct stele_error *error)
{
    const int result = from_dir->io->calls->rename(from_dir->io, from_dir->fd,
                                                   from, to_dir->fd, to);

    if (result < 0) {
        return error_set_errno(error, status_of_errno(-result), -result,
                               "%s: rename to %s", from, to);
    }
    return STELE_OK;
}

enum stele_status io_unlink(struct io_dir *dir, const char *name,
                            struct stele_error *error)
{
    const int result = dir->io->calls->unlink(dir->io, dir->fd, name);

    return result < 0 ? fail(error, result, "unlink", name) : STELE_OK;
}

enum stele_status io_rmdir(struct io_dir *dir, const char *name,
                           struct stele_error *error)
{
    const int result = dir->io->calls->rmdir(dir->io, dir->fd, name);

    return result < 0 ? fail(error, result, "remove directory", name)
                      : STELE_OK;
}

static enum stele_status unlink_entry(void *context, const char *name,
                                      struct stele_error *error)
{
    return io_unlink(context, name, error);
}

enum stele_status io_remove_dir(struct io_dir *dir, const char *name,
                                struct stele_error *error)
{
    struct io_dir *inside;
    enum stele_status status = io_dir_open_in(dir, name, &inside, error);

    if (status == STELE_OK) {
        status = io_dir_list(inside, unlink_entry, inside, error);
        io_dir_close(inside);
    }
    if (status == STELE_OK) {
        status = io_rmdir(dir, name, error);
    }
    return status == STELE_NOT_FOUND ? STELE_OK : status;
}

enum stele_status io_info(struct io_dir *dir, const char *name,
                          struct io_file_info *info_out,
                          struct stele_error *error)
{
    const int result = dir->io->calls->info(dir->io, dir->fd, name, info_out);

    return result < 0 ? fail(error, result, "stat", name) : STELE_OK;
}

/* ---- Files -------------------------------------------------------------- */

enum stele_status io_file_open(struct io_dir *dir, const char *name,
                               enum io_open_mode mode,
                               struct io_file **file_out,
                               struct stele_error *error)
{
    const char *slash = strrchr(dir->path, '/');
    const char *last = slash == NULL ? dir->path : slash + 1;
    const size_t name_bytes = strlen(last) + strlen(name) + 2;
    struct io_file *file = malloc(sizeof *file + name_bytes);

    if (file == NULL) {
        return error_no_memory(error, name);
    }
    snprintf(file->name, name_bytes, "%s/%s", last, name);
    file->io = dir->io;
    do {
        file->fd = dir->io->calls->open_file(dir->io, dir->fd, name, mode);
    } while (file->fd == -EINTR);
    if (file->fd < 0) {
        const enum stele_status status =
            fail(error, file->fd, "open", file->name);

        free(file);
        return status;
    }
    *file_out = file;
    return STELE_OK;
}

enum stele_status io_file_read(struct io_file *file, void *target, size_t bytes,
                               uint64_t offset, size_t *read_bytes_out,
                               struct stele_error *error)
{
    size_t done = 0;

    while (done < bytes) {
        const ssize_t result =
            file->io->calls->read(file->io, file->fd, (uint8_t *)target + done,
                                  bytes - done, offset + done);

        if (result == -EINTR) {
            continue;
        }
        if (result < 0) {
            return error_set_errno(error, STELE_IO, (int)-result,
                                   "%s: offset %" PRIu64 ": read %zu bytes",
                                   file->name, offset + done, bytes - done);
        }
        if (result == 0) {
            break;
        }
        done += (size_t)result;
    }
    *read_bytes_out = done;
    return STELE_OK;
}

enum stele_status io_file_read_exact(struct io_file *file, void *target,
                                     size_t bytes, uint64_t offset,
                                     struct stele_error *error)
{
    size_t read_bytes;
    enum stele_status status =
        io_file_read(file, target, bytes, offset, &read_bytes, error);

    if (status != STELE_OK) {
        return status;
    }
    if (read_bytes != bytes) {
        return error_set(error, STELE_CORRUPT,
                         "%s: offset %" PRIu64
                         ": the file ends after %zu of %zu bytes",
                         file->name, offset, read_bytes, bytes);
    }
    return STELE_OK;
}

enum stele_status io_file_writev(struct io_file *file, const struct iovec *iov,
                                 size_t iov_count, uint64_t offset,
                                 struct stele_error *error)
{
    size_t bytes = 0;
    ssize_t result;

    assert(iov_count >= 1 && iov_count <= IO_IOV_COUNT_MAX);
    for (size_t index = 0; index < iov_count; index++) {
        bytes += iov[index].iov_len;
    }
    do {
        /* EINTR means that nothing was written: the same call again. */
        result = file->io->calls->writev(file->io, file->fd, iov,
                                         (int)iov_count, offset);
    } while (result == -EINTR);
    if (result == -ENOSPC || result == -EDQUOT) {
        return error_set_errno(error, STELE_NO_SPACE, (int)-result,
                               "%s: offset %" PRIu64 ": write %zu bytes",
                               file->name, offset, bytes);
    }
    if (result < 0) {
        return error_set_errno(error, STELE_IO, (int)-result,
                               "%s: offset %" PRIu64 ": write %zu bytes",
                               file->name, offset, bytes);
    }
    if ((size_t)result != bytes) {
        return error_set(error, STELE_IO,
                         "%s: offset %" PRIu64
                         ": short write, %zd of %zu bytes",
                         file->name, offset, result, bytes);
    }
    return STELE_OK;
}

enum stele_status io_file_write(struct io_file *file, const void *data,
                                size_t bytes, uint64_t offset,
                                struct stele_error *error)
{
    const struct iovec iov = {.iov_base = (void *)(uintptr_t)data,
                              .iov_len = bytes};

    return io_file_writev(file, &iov, 1, offset, error);
}

enum stele_status io_file_sync(struct io_file *file, struct stele_error *error)
{
    const int result = file->io->calls->sync_data(file->io, file->fd);

    if (result < 0) {
        /* Whatever the errno, ENOSPC included: pages may be gone. */
        return error_set_errno(error, STELE_IO, -result, "%s: sync",
                               file->name);
    }
    return STELE_OK;
}

enum stele_status io_file_write_back(struct io_file *file, uint64_t offset,
                                     uint64_t bytes, struct stele_error *error)
{
    const int result =
        file->io->calls->write_back(file->io, file->fd, offset, bytes);

    if (result < 0) {
        return error_set_errno(error, STELE_IO, -result,
                               "%s: offset %" PRIu64 ": write back %" PRIu64
                               " bytes",
                               file->name, offset, bytes);
    }
    return STELE_OK;
}

enum stele_status io_file_allocate(struct io_file *file, uint64_t bytes,
                                   struct stele_error *error)
{
    int result;

    do {
        result = file->io->calls->allocate(file->io, file->fd, bytes);
    } while (result == -EINTR);
    if (result < 0) {
        return error_set_errno(error, status_of_errno(-result), -result,
                               "%s: allocate %" PRIu64 " bytes", file->name,
                               bytes);
    }
    return STELE_OK;
}

enum stele_status io_file_grow(struct io_file *file, uint64_t bytes,
                               struct stele_error *error)
{
    int result;

    do {
        result = file->io->calls->truncate(file->io, file->fd, bytes);
    } while (result == -EINTR);
    if (result < 0) {
        return error_set_errno(error, status_of_errno(-result), -result,
                               "%s: grow to %" PRIu64 " bytes", file->name,
                               bytes);
    }
    return STELE_OK;
}

enum stele_status io_file_drop_cache(struct io_file *file,
                                     struct stele_error *error)
{
    const int result = file->io->calls->drop_cache(file->io, file->fd);

    return result < 0 ? fail(error, result, "drop cache", file->name)
                      : STELE_OK;
}

enum stele_status io_file_info(struct io_file *file,
                               struct io_file_info *info_out,
                               struct stele_error *error)
{
    const int result =
        file->io->calls->info(file->io, file->fd, NULL, info_out);

    return result < 0 ? fail(error, result, "stat", file->name) : STELE_OK;
}

enum stele_status io_file_lock(struct io_file *file, uint64_t byte,
                               struct stele_error *error)
{
    const int result = file->io->calls->lock(file->io, file->fd, byte);

    if (result == -EAGAIN || result == -EACCES) {
        return error_set_errno(error, STELE_LOCKED, -result, "%s: lock",
                               file->name);
    }
    return result < 0 ? fail(error, result, "lock", file->name) : STELE_OK;
}

enum stele_status io_file_lock_held(struct io_file *file, uint64_t byte,
                                    bool *held_out, struct stele_error *error)
{
    const int result = file->io->calls->lock_held(file->io, file->fd, byte);

    if (result < 0) {
        return fail(error, result, "query lock", file->name);
    }
    *held_out = result == 1;
    return STELE_OK;
}

const char *io_file_name(const struct io_file *file)
{
    return file->name;
}

void io_file_close(struct io_file *file)
{
    if (file == NULL) {
        return;
    }
    /* Never repeated: the descriptor is gone even after EINTR. Nothing is
     * lost: what had to be durable was synced and checked before. */
    (void)file->io->calls->close(file->io, file->fd);
    free(file);
}

/* ---- Clock and randomness ----------------------------------------------- */

uint64_t io_clock_wall_ns(struct io *io)
{
    return io->calls->clock_wall_ns(io);
}

uint64_t io_clock_monotonic_ns(struct io *io)
{
    return io->calls->clock_monotonic_ns(io);
}

void io_describe_process(struct io *io, char *target, size_t bytes)
{
    io->calls->describe_process(io, target, bytes);
}

enum stele_status io_random(struct io *io, void *target, size_t bytes,
                            struct stele_error *error)
{
    int result;

    do {
        result = io->calls->random(io, target, bytes);
    } while (result == -EINTR);
    return result < 0 ? fail(error, result, "read randomness", "getrandom")
                      : STELE_OK;
}
