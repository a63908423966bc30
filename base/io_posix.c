/*
 * base/io_posix.c -- the kernel behind base/io.h: one system call a function,
 * made once, its result or -errno handed up unchanged.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/vfs.h>
#include <time.h>
#include <unistd.h>

#include "base/io.h"

/* From linux/magic.h and the file systems' own sources, those that differ from
 * "overwrites in place". */
#define FS_MAGIC_BTRFS    UINT32_C(0x9123683e)
#define FS_MAGIC_ZFS      UINT32_C(0x2fc12fc1)
#define FS_MAGIC_BCACHEFS UINT32_C(0xca451a4e)
#define FS_MAGIC_TMPFS    UINT32_C(0x01021994)
#define FS_MAGIC_RAMFS    UINT32_C(0x858458f6)
#define FS_MAGIC_OVERLAY  UINT32_C(0x794c7630)
#define FS_MAGIC_FUSE     UINT32_C(0x65735546)
#define FS_MAGIC_NFS      UINT32_C(0x6969)
#define FS_MAGIC_SMB      UINT32_C(0x517b)
#define FS_MAGIC_CIFS     UINT32_C(0xff534d42)
#define FS_MAGIC_SMB2     UINT32_C(0xfe534d42)
#define FS_MAGIC_9P       UINT32_C(0x01021997)
#define FS_MAGIC_CEPH     UINT32_C(0x00c36400)

static int result_or_errno(int result)
{
    return result >= 0 ? result : -errno;
}

static int posix_open_dir(struct io *io, int parent_fd, const char *path)
{
    (void)io;
    return result_or_errno(openat(parent_fd < 0 ? AT_FDCWD : parent_fd, path,
                                  O_RDONLY | O_DIRECTORY | O_CLOEXEC));
}

static int posix_make_dir(struct io *io, int parent_fd, const char *path)
{
    (void)io;
    return result_or_errno(
        mkdirat(parent_fd < 0 ? AT_FDCWD : parent_fd, path, 0700));
}

static int posix_open_file(struct io *io, int dir_fd, const char *name,
                           enum io_open_mode mode)
{
    int flags = O_CLOEXEC | O_NOFOLLOW | O_NOCTTY;

    (void)io;
    switch (mode) {
    case IO_OPEN_READ:
        /* Not to hang on a FIFO that lies where a file should. */
        flags |= O_RDONLY | O_NONBLOCK;
        break;
    case IO_OPEN_READ_WRITE:
        flags |= O_RDWR | O_NONBLOCK;
        break;
    case IO_OPEN_CREATE:
        flags |= O_RDWR | O_CREAT | O_NONBLOCK;
        break;
    case IO_OPEN_CREATE_NEW:
        flags |= O_RDWR | O_CREAT | O_EXCL;
        break;
    }
    return result_or_errno(openat(dir_fd, name, flags, 0600));
}

static int posix_close(struct io *io, int fd)
{
    (void)io;
    return result_or_errno(close(fd));
}

static int posix_sync_dir(struct io *io, int fd)
{
    (void)io;
    return result_or_errno(fsync(fd));
}

static int posix_list(struct io *io, int fd,
                      int (*visit)(void *context, const char *name),
                      void *context)
{
    const struct dirent *entry;
    DIR *stream;
    int result = 0;
    int own_fd;

    (void)io;
    /* A descriptor of its own: fdopendir takes it over, with its position. */
    own_fd = openat(fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (own_fd < 0) {
        return -errno;
    }
    stream = fdopendir(own_fd);
    if (stream == NULL) {
        result = -errno;
        close(own_fd);
        return result;
    }
    while (result == 0) {
        errno = 0;
        entry = readdir(stream);
        if (entry == NULL) {
            result = -errno;
            break;
        }
        if (strcmp(entry->d_name, ".") == 0 ||
            strcmp(entry->d_name, "..") == 0) {
            continue;
        }
        result = visit(context, entry->d_name);
    }
    closedir(stream);
    return result;
}

static int posix_rename(struct io *io, int from_fd, const char *from, int to_fd,
                        const char *to)
{
    (void)io;
    return result_or_errno(renameat(from_fd, from, to_fd, to));
}

static int posix_unlink(struct io *io, int fd, const char *name)
{
    (void)io;
    return result_or_errno(unlinkat(fd, name, 0));
}

static int posix_rmdir(struct io *io, int fd, const char *name)
{
    (void)io;
    return result_or_errno(unlinkat(fd, name, AT_REMOVEDIR));
}

static int posix_info(struct io *io, int fd, const char *name,
                      struct io_file_info *info_out)
{
    struct statx found;

    (void)io;
    if (statx(fd, name == NULL ? "" : name,
              AT_SYMLINK_NOFOLLOW | (name == NULL ? AT_EMPTY_PATH : 0),
              STATX_BASIC_STATS | STATX_BTIME, &found) != 0) {
        return -errno;
    }
    *info_out = (struct io_file_info){
        .type = S_ISREG(found.stx_mode)   ? IO_TYPE_REGULAR
                : S_ISDIR(found.stx_mode) ? IO_TYPE_DIRECTORY
                                          : IO_TYPE_OTHER,
        .size_bytes = found.stx_size,
        .device = makedev(found.stx_dev_major, found.stx_dev_minor),
        .inode = found.stx_ino,
        .owner_uid = found.stx_uid,
        .link_count = found.stx_nlink,
    };
    if ((found.stx_mask & STATX_BTIME) != 0) {
        info_out->birth_time_ns =
            (uint64_t)found.stx_btime.tv_sec * 1000000000u +
            found.stx_btime.tv_nsec;
    }
    return 0;
}

static int posix_fs_kind(struct io *io, int fd, enum io_fs_kind *kind_out)
{
    struct statfs found;

    (void)io;
    if (fstatfs(fd, &found) != 0) {
        return -errno;
    }
    switch ((uint32_t)found.f_type) {
    case FS_MAGIC_BTRFS:
    case FS_MAGIC_ZFS:
    case FS_MAGIC_BCACHEFS:
        *kind_out = IO_FS_COPY_ON_WRITE;
        break;
    case FS_MAGIC_TMPFS:
    case FS_MAGIC_RAMFS:
        *kind_out = IO_FS_VOLATILE;
        break;
    case FS_MAGIC_OVERLAY:
    case FS_MAGIC_FUSE:
        *kind_out = IO_FS_LAYERED;
        break;
    case FS_MAGIC_NFS:
    case FS_MAGIC_SMB:
    case FS_MAGIC_CIFS:
    case FS_MAGIC_SMB2:
    case FS_MAGIC_9P:
    case FS_MAGIC_CEPH:
        *kind_out = IO_FS_NETWORK;
        break;
    default:
        *kind_out = IO_FS_OVERWRITE;
        break;
    }
    return 0;
}

static ssize_t posix_read(struct io *io, int fd, void *target, size_t bytes,
                          uint64_t offset)
{
    const ssize_t result = pread(fd, target, bytes, (off_t)offset);

    (void)io;
    return result >= 0 ? result : -errno;
}

static ssize_t posix_writev(struct io *io, int fd, const struct iovec *iov,
                            int iov_count, uint64_t offset)
{
    const ssize_t result = pwritev(fd, iov, iov_count, (off_t)offset);

    (void)io;
    return result >= 0 ? result : -errno;
}

static int posix_sync_data(struct io *io, int fd)
{
    (void)io;
    return result_or_errno(fdatasync(fd));
}

static int posix_write_back(struct io *io, int fd, uint64_t offset,
                            uint64_t bytes)
{
    int result = sync_file_range(fd, (off64_t)offset, (off64_t)bytes,
                                 SYNC_FILE_RANGE_WRITE);

    (void)io;
    if (result == 0 && offset > 0) {
        result = sync_file_range(fd, 0, (off64_t)offset,
                                 SYNC_FILE_RANGE_WAIT_BEFORE);
    }
    result = result_or_errno(result);
    return result == -ENOSYS ? 0 : result;
}

static int posix_allocate(struct io *io, int fd, uint64_t bytes)
{
    (void)io;
    /* Not posix_fallocate(), which falls back to writing a byte a block. */
    return result_or_errno(fallocate(fd, 0, 0, (off_t)bytes));
}

static int posix_truncate(struct io *io, int fd, uint64_t bytes)
{
    (void)io;
    return result_or_errno(ftruncate(fd, (off_t)bytes));
}

static int posix_drop_cache(struct io *io, int fd)
{
    (void)io;
    return -posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
}

static struct flock lock_of_byte(uint64_t byte)
{
    return (struct flock){.l_type = F_WRLCK,
                          .l_whence = SEEK_SET,
                          .l_start = (off_t)byte,
                          .l_len = 1};
}

static int posix_system_path(struct io *io, int fd, char *target, size_t bytes)
{
    (void)io;
    snprintf(target, bytes, "/proc/self/fd/%d", fd);
    return result_or_errno(access(target, F_OK)); /* /proc may not be there. */
}

static int posix_lock(struct io *io, int fd, uint64_t byte)
{
    struct flock lock = lock_of_byte(byte);

    (void)io;
    return result_or_errno(fcntl(fd, F_OFD_SETLK, &lock));
}

static int posix_lock_held(struct io *io, int fd, uint64_t byte)
{
    struct flock lock = lock_of_byte(byte);

    (void)io;
    if (fcntl(fd, F_OFD_GETLK, &lock) != 0) {
        return -errno;
    }
    return lock.l_type == F_UNLCK ? 0 : 1;
}

static uint64_t clock_ns(clockid_t clock)
{
    struct timespec now;

    if (clock_gettime(clock, &now) != 0) {
        return 0; /* Cannot fail for these clocks. */
    }
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static uint64_t posix_clock_wall_ns(struct io *io)
{
    (void)io;
    return clock_ns(CLOCK_REALTIME);
}

static uint64_t posix_clock_monotonic_ns(struct io *io)
{
    (void)io;
    return clock_ns(CLOCK_MONOTONIC);
}

static int posix_random(struct io *io, void *target, size_t bytes)
{
    const ssize_t result = getrandom(target, bytes, 0);

    (void)io;
    if (result < 0) {
        return -errno;
    }
    return (size_t)result == bytes ? 0 : -EINTR;
}

static void posix_describe_process(struct io *io, char *target, size_t bytes)
{
    char host[HOST_NAME_MAX + 1];

    (void)io;
    if (gethostname(host, sizeof host) != 0) {
        host[0] = '\0';
    }
    host[sizeof host - 1] = '\0';
    snprintf(target, bytes, "pid %ld on %s", (long)getpid(), host);
}

uint32_t io_effective_uid(void)
{
    return geteuid();
}

static const struct io_calls posix_calls = {
    .open_dir = posix_open_dir,
    .make_dir = posix_make_dir,
    .open_file = posix_open_file,
    .close = posix_close,
    .sync_dir = posix_sync_dir,
    .system_path = posix_system_path,
    .list = posix_list,
    .rename = posix_rename,
    .unlink = posix_unlink,
    .rmdir = posix_rmdir,
    .info = posix_info,
    .fs_kind = posix_fs_kind,
    .read = posix_read,
    .writev = posix_writev,
    .sync_data = posix_sync_data,
    .write_back = posix_write_back,
    .allocate = posix_allocate,
    .truncate = posix_truncate,
    .drop_cache = posix_drop_cache,
    .lock = posix_lock,
    .lock_held = posix_lock_held,
    .clock_wall_ns = posix_clock_wall_ns,
    .clock_monotonic_ns = posix_clock_monotonic_ns,
    .random = posix_random,
    .describe_process = posix_describe_process,
};

struct io *io_posix(void)
{
    static struct io io = {.calls = &posix_calls};

    return &io;
}
