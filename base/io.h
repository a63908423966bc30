/*
 * base/io.h -- the only door to the file system, the clock and randomness.
 *
 * Upper half: what the engine calls. Results and messages are made here, once
 * (base/io.c): short reads are completed, an interrupted call that did nothing
 * is repeated, and a failure names the file and the offset. Never repeated: a
 * sync that failed (the kernel may have dropped the pages it could not write,
 * and a second fsync would say 0), and a close.
 *
 * Lower half: `struct io_calls`, the system calls themselves as a table.
 * base/io_posix.c fills it with the kernel's; tests put a simulated file
 * system or a fault injector there.
 *
 * Threads: a file or directory handle may be used by several threads at once;
 * closing is the owner's business.
 */
#ifndef BASE_IO_H
#define BASE_IO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <sys/uio.h>

#include "base/status.h"

struct io;
struct io_dir;
struct io_file;

enum { IO_NAME_BYTES_MAX = 255, IO_IOV_COUNT_MAX = 1024 };

enum io_open_mode {
    IO_OPEN_READ,       /* Exists; for reading. */
    IO_OPEN_READ_WRITE, /* Exists; for both. */
    IO_OPEN_CREATE,     /* For both; made, empty, mode 0600, if absent. */
    IO_OPEN_CREATE_NEW, /* For both; must not exist. */
};

enum io_file_type { IO_TYPE_REGULAR, IO_TYPE_DIRECTORY, IO_TYPE_OTHER };

struct io_file_info {
    enum io_file_type type;
    uint64_t size_bytes;
    uint64_t device;
    uint64_t inode;
    uint64_t birth_time_ns; /* 0 where the file system keeps none. */
    uint32_t owner_uid;
    uint64_t link_count;
};

enum io_fs_kind {
    IO_FS_OVERWRITE,     /* Overwriting allocated blocks changes no metadata. */
    IO_FS_COPY_ON_WRITE, /* Every write allocates (btrfs, zfs, bcachefs). */
    IO_FS_VOLATILE,      /* tmpfs, ramfs: nothing outlives the machine. */
    IO_FS_LAYERED,       /* overlay, FUSE: as good as what lies below. */
    IO_FS_NETWORK,       /* NFS, SMB, 9p: locks and syncs cannot be trusted. */
};

/* ---- Directories ------------------------------------------------------- */

/* Open the directory at `path`. NOT_FOUND only for ENOENT. */
enum stele_status io_dir_open(struct io *io, const char *path,
                              struct io_dir **dir_out,
                              struct stele_error *error) STELE_MUST_CHECK;

/* Open `name` inside `parent`. */
enum stele_status io_dir_open_in(struct io_dir *parent, const char *name,
                                 struct io_dir **dir_out,
                                 struct stele_error *error) STELE_MUST_CHECK;

/* Make a directory (mode 0700). EXISTS if there is anything of that name. The
 * name is durable only after io_dir_sync() of the parent. */
enum stele_status io_dir_create(struct io *io, const char *path,
                                struct stele_error *error) STELE_MUST_CHECK;
enum stele_status io_dir_create_in(struct io_dir *parent, const char *name,
                                   struct stele_error *error) STELE_MUST_CHECK;

/* Make all creations, renames and removals so far in `dir` durable. */
enum stele_status io_dir_sync(struct io_dir *dir,
                              struct stele_error *error) STELE_MUST_CHECK;

/* Call `visit` once per entry, "." and ".." left out, in no order. A status
 * other than OK from `visit` ends the walk and is returned. */
typedef enum stele_status io_dir_visit(void *context, const char *name,
                                       struct stele_error *error);
enum stele_status io_dir_list(struct io_dir *dir, io_dir_visit *visit,
                              void *context,
                              struct stele_error *error) STELE_MUST_CHECK;

enum stele_status io_dir_fs_kind(struct io_dir *dir, enum io_fs_kind *kind_out,
                                 struct stele_error *error) STELE_MUST_CHECK;

/* Of the directory itself (device and inode identify a store). */
enum stele_status io_dir_info(struct io_dir *dir, struct io_file_info *info_out,
                              struct stele_error *error) STELE_MUST_CHECK;

/* As it was opened; for messages. Borrowed. */
const char *io_dir_path(const struct io_dir *dir);

/* A path that leads to this very directory, also when the one it was opened by
 * leads elsewhere by now (it was renamed, or the process went to another working
 * directory): for LMDB, which wants one. Good while the handle is open. The
 * caller's, to free; NULL: out of memory. */
char *io_dir_system_path(const struct io_dir *dir);

/* The implementation a directory came from. */
struct io *io_dir_io(const struct io_dir *dir);

/* Accepts NULL. */
void io_dir_close(struct io_dir *dir);

/* ---- Names in a directory ---------------------------------------------- */

/* Replaces `to`. Durable only after io_dir_sync() of both directories. */
enum stele_status io_rename(struct io_dir *from_dir, const char *from,
                            struct io_dir *to_dir, const char *to,
                            struct stele_error *error) STELE_MUST_CHECK;

enum stele_status io_unlink(struct io_dir *dir, const char *name,
                            struct stele_error *error) STELE_MUST_CHECK;

/* Remove an empty directory. */
enum stele_status io_rmdir(struct io_dir *dir, const char *name,
                           struct stele_error *error) STELE_MUST_CHECK;

/* Remove a directory and the files in it, if there is one of that name. */
enum stele_status io_remove_dir(struct io_dir *dir, const char *name,
                                struct stele_error *error) STELE_MUST_CHECK;

/* What `name` is, following no link. NOT_FOUND only for ENOENT. */
enum stele_status io_info(struct io_dir *dir, const char *name,
                          struct io_file_info *info_out,
                          struct stele_error *error) STELE_MUST_CHECK;

/* ---- Files -------------------------------------------------------------- */

/* Open `name`; never through a symbolic link, always close-on-exec. */
enum stele_status io_file_open(struct io_dir *dir, const char *name,
                               enum io_open_mode mode,
                               struct io_file **file_out,
                               struct stele_error *error) STELE_MUST_CHECK;

/* Read up to `bytes` at `offset`; fewer only at the end of the file. */
enum stele_status io_file_read(struct io_file *file, void *target, size_t bytes,
                               uint64_t offset, size_t *read_bytes_out,
                               struct stele_error *error) STELE_MUST_CHECK;

/* Read exactly `bytes`; a shorter file is CORRUPT, naming both lengths. */
enum stele_status io_file_read_exact(
    struct io_file *file, void *target, size_t bytes, uint64_t offset,
    struct stele_error *error) STELE_MUST_CHECK;

/*
 * Write all of `iov` (1 to IO_IOV_COUNT_MAX runs) at `offset` with one system
 * call. NO_SPACE is returned only if the kernel refused with ENOSPC or EDQUOT
 * and wrote nothing: the file is as it was. Any other failure, a short write
 * included, is IO: part of the bytes may be there. A short write is not
 * continued.
 */
enum stele_status io_file_writev(struct io_file *file, const struct iovec *iov,
                                 size_t iov_count, uint64_t offset,
                                 struct stele_error *error) STELE_MUST_CHECK;
enum stele_status io_file_write(struct io_file *file, const void *data,
                                size_t bytes, uint64_t offset,
                                struct stele_error *error) STELE_MUST_CHECK;

/* Return OK only when every byte written before the call would survive a power
 * cut (fdatasync). After a failure nobody knows what is on the disk, and asking
 * again will not tell: see the top of this file. */
enum stele_status io_file_sync(struct io_file *file,
                               struct stele_error *error) STELE_MUST_CHECK;

/*
 * Have the disk begin to write these bytes, and wait until it has written what lies
 * before them, so that little is under way at any time: a later sync of all of them
 * at once would hold up every other file's sync for as long as it takes. No promise:
 * what was written is durable after io_file_sync() only (neither the disk's cache nor
 * the file system's metadata is flushed: sync_file_range). After a failure the same
 * holds as after a failed sync. Does nothing where the system has no such call.
 */
enum stele_status io_file_write_back(struct io_file *file, uint64_t offset,
                                     uint64_t bytes, struct stele_error *error)
    STELE_MUST_CHECK;

/* Reserve blocks for the first `bytes` bytes and set the size. UNSUPPORTED
 * where the file system cannot. */
enum stele_status io_file_allocate(struct io_file *file, uint64_t bytes,
                                   struct stele_error *error) STELE_MUST_CHECK;

/* Set the size, which must not be smaller than it is; what is added reads as
 * zeros and takes no space yet. */
enum stele_status io_file_grow(struct io_file *file, uint64_t bytes,
                               struct stele_error *error) STELE_MUST_CHECK;

/* Forget cached clean pages, so that the next read asks the disk. */
enum stele_status io_file_drop_cache(
    struct io_file *file, struct stele_error *error) STELE_MUST_CHECK;

enum stele_status io_file_info(struct io_file *file,
                               struct io_file_info *info_out,
                               struct stele_error *error) STELE_MUST_CHECK;

/* An exclusive lock on one byte of the file (which need not be there), that
 * belongs to this open file, not to the process (an OFD lock: closing another
 * descriptor of the same file drops nothing). LOCKED if somebody else has it. */
enum stele_status io_file_lock(struct io_file *file, uint64_t byte,
                               struct stele_error *error) STELE_MUST_CHECK;

/* Whether somebody else holds that byte's lock now. */
enum stele_status io_file_lock_held(struct io_file *file, uint64_t byte,
                                    bool *held_out,
                                    struct stele_error *error) STELE_MUST_CHECK;

/* "directory path/name", for messages. Borrowed. */
const char *io_file_name(const struct io_file *file);

/* Accepts NULL. Does not sync. */
void io_file_close(struct io_file *file);

/* ---- The process, clock and randomness ---------------------------------- */

/* Whose files this process makes. */
uint32_t io_effective_uid(void);

uint64_t io_clock_wall_ns(struct io *io);      /* Since 1970; may jump. */
uint64_t io_clock_monotonic_ns(struct io *io); /* Never goes back. */
/* "pid 4711 on host", for the text in a lock file. */
void io_describe_process(struct io *io, char *target, size_t bytes);
enum stele_status io_random(struct io *io, void *target, size_t bytes,
                            struct stele_error *error) STELE_MUST_CHECK;

/* ---- For implementers --------------------------------------------------- */

/*
 * The system calls. Each returns its result (>= 0), or -errno. Descriptors are
 * the implementation's own numbers. Every call is made once: policy (EINTR,
 * short reads, messages) is base/io.c's.
 */
struct io_calls {
    int (*open_dir)(struct io *io, int parent_fd_or_minus_1, const char *path);
    int (*make_dir)(struct io *io, int parent_fd_or_minus_1, const char *path);
    int (*open_file)(struct io *io, int dir_fd, const char *name,
                     enum io_open_mode mode);
    int (*close)(struct io *io, int fd);
    /* fsync of a directory. */
    int (*sync_dir)(struct io *io, int fd);
    /* Write a path of the directory itself; NULL, or a failure: there is none but
     * the one it was opened by. */
    int (*system_path)(struct io *io, int fd, char *target, size_t bytes);
    int (*list)(struct io *io, int fd,
                int (*visit)(void *context, const char *name), void *context);
    int (*rename)(struct io *io, int from_fd, const char *from, int to_fd,
                  const char *to);
    int (*unlink)(struct io *io, int fd, const char *name);
    int (*rmdir)(struct io *io, int fd, const char *name);
    /* `name` NULL: of the descriptor itself. */
    int (*info)(struct io *io, int fd, const char *name,
                struct io_file_info *info_out);
    int (*fs_kind)(struct io *io, int fd, enum io_fs_kind *kind_out);
    ssize_t (*read)(struct io *io, int fd, void *target, size_t bytes,
                    uint64_t offset);
    ssize_t (*writev)(struct io *io, int fd, const struct iovec *iov,
                      int iov_count, uint64_t offset);
    int (*sync_data)(struct io *io, int fd);
    int (*write_back)(struct io *io, int fd, uint64_t offset, uint64_t bytes);
    int (*allocate)(struct io *io, int fd, uint64_t bytes);
    int (*truncate)(struct io *io, int fd, uint64_t bytes);
    int (*drop_cache)(struct io *io, int fd);
    int (*lock)(struct io *io, int fd, uint64_t byte);
    /* 1: held by somebody else. */
    int (*lock_held)(struct io *io, int fd, uint64_t byte);
    uint64_t (*clock_wall_ns)(struct io *io);
    uint64_t (*clock_monotonic_ns)(struct io *io);
    int (*random)(struct io *io, void *target, size_t bytes);
    void (*describe_process)(struct io *io, char *target, size_t bytes);
};

/* An implementation embeds this as its first member. */
struct io {
    const struct io_calls *calls;
};

/* The kernel's. Stateless; never freed. */
struct io *io_posix(void);

#endif
