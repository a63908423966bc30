/*
 * tests/test_base_io.c -- base/io.h: what is repeated, what is not, and how a
 * failed call becomes a status and a message.
 *
 * The upper half runs over system calls that answer from a script; the last
 * tests over the kernel's.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "base/io.h"
#include "tests/lib/temp_dir.h"

/* ---- A kernel that answers from a script ------------------------------------ */

enum { ANSWERS_MAX = 8, DIR_FD = 3, FILE_FD = 4 };

static ssize_t answers[ANSWERS_MAX];
static size_t answer_count;
static size_t call_count; /* Of the call under test. */
static size_t close_count;
static size_t visit_count;
static uint64_t offsets[ANSWERS_MAX]; /* Of reads and writes, in order. */
static size_t lengths[ANSWERS_MAX];
static const char content[] = "0123456789";

static ssize_t answer(void)
{
    assert_true(call_count < answer_count);
    return answers[call_count++];
}

static int fake_open_dir(struct io *io, int parent_fd, const char *path)
{
    (void)io;
    (void)parent_fd;
    (void)path;
    return answer_count == 0 ? DIR_FD : (int)answer();
}

static int fake_path_call(struct io *io, int parent_fd, const char *path)
{
    (void)io;
    (void)parent_fd;
    (void)path;
    return (int)answer();
}

static int fake_open_file(struct io *io, int dir_fd, const char *name,
                          enum io_open_mode mode)
{
    (void)io;
    (void)dir_fd;
    (void)name;
    (void)mode;
    return answer_count == 0 ? FILE_FD : (int)answer();
}

static int fake_close(struct io *io, int fd)
{
    (void)io;
    (void)fd;
    close_count++;
    return -EINTR;
}

static int fake_fd_call(struct io *io, int fd)
{
    (void)io;
    (void)fd;
    return (int)answer();
}

static int fake_lock(struct io *io, int fd, uint64_t byte)
{
    (void)byte;
    return fake_fd_call(io, fd);
}

static int fake_list(struct io *io, int fd,
                     int (*visit)(void *context, const char *name),
                     void *context)
{
    int result = 0;

    (void)io;
    (void)fd;
    for (ssize_t left = answer(); left > 0 && result == 0; left--) {
        visit_count++;
        result = visit(context, "entry");
    }
    return result;
}

static int fake_rename(struct io *io, int from_fd, const char *from, int to_fd,
                       const char *to)
{
    (void)from;
    (void)to;
    (void)to_fd;
    return fake_fd_call(io, from_fd);
}

static int fake_info(struct io *io, int fd, const char *name,
                     struct io_file_info *info_out)
{
    (void)name;
    (void)info_out;
    return fake_fd_call(io, fd);
}

static ssize_t fake_read(struct io *io, int fd, void *target, size_t bytes,
                         uint64_t offset)
{
    ssize_t result;

    (void)io;
    (void)fd;
    offsets[call_count] = offset;
    lengths[call_count] = bytes;
    result = answer();
    if (result > 0) {
        memcpy(target, content + offset, (size_t)result);
    }
    return result;
}

static ssize_t fake_writev(struct io *io, int fd, const struct iovec *iov,
                           int iov_count, uint64_t offset)
{
    (void)io;
    (void)fd;
    offsets[call_count] = offset;
    lengths[call_count] = 0;
    for (int index = 0; index < iov_count; index++) {
        lengths[call_count] += iov[index].iov_len;
    }
    return answer();
}

static int fake_allocate(struct io *io, int fd, uint64_t bytes)
{
    (void)bytes;
    return fake_fd_call(io, fd);
}

static int fake_write_back(struct io *io, int fd, uint64_t offset,
                           uint64_t bytes)
{
    (void)offset;
    (void)bytes;
    return fake_fd_call(io, fd);
}

static int fake_random(struct io *io, void *target, size_t bytes)
{
    (void)io;
    (void)target;
    (void)bytes;
    return (int)answer();
}

static const struct io_calls fake_calls = {
    .open_dir = fake_open_dir,
    .make_dir = fake_path_call,
    .open_file = fake_open_file,
    .close = fake_close,
    .sync_dir = fake_fd_call,
    .list = fake_list,
    .rename = fake_rename,
    .unlink = fake_path_call,
    .rmdir = fake_path_call,
    .info = fake_info,
    .read = fake_read,
    .writev = fake_writev,
    .sync_data = fake_fd_call,
    .write_back = fake_write_back,
    .allocate = fake_allocate,
    .drop_cache = fake_fd_call,
    .lock = fake_lock,
    .lock_held = fake_lock,
    .random = fake_random,
};
static struct io fake = {.calls = &fake_calls};

/* ---- A small vocabulary -------------------------------------------------------- */

static struct io_dir *dir;   /* "data/wal" */
static struct io_file *file; /* "wal/1" */
static struct stele_error error;

/* The next calls return these, in this order. */
#define SCRIPT(...)                                                            \
    script((const ssize_t[]){__VA_ARGS__},                                     \
           sizeof((const ssize_t[]){__VA_ARGS__}) / sizeof(ssize_t))

static void script(const ssize_t *list, size_t count)
{
    assert_true(count <= ANSWERS_MAX);
    memcpy(answers, list, count * sizeof *list);
    answer_count = count;
    call_count = 0;
    visit_count = 0;
    error = (struct stele_error){0};
}

static int open_fakes(void **state)
{
    (void)state;
    answer_count = 0;
    close_count = 0;
    assert_int_equal(io_dir_open(&fake, "data/wal", &dir, &error), STELE_OK);
    assert_int_equal(io_file_open(dir, "1", IO_OPEN_READ_WRITE, &file, &error),
                     STELE_OK);
    return 0;
}

static int close_fakes(void **state)
{
    (void)state;
    io_file_close(file);
    io_dir_close(dir);
    return 0;
}

static enum stele_status write_two_runs(void)
{
    const struct iovec iov[] = {{.iov_base = (char[]){"abcd"}, .iov_len = 4},
                                {.iov_base = (char[]){"efgh"}, .iov_len = 4}};

    return io_file_writev(file, iov, 2, 4096, &error);
}

static void assert_failed(enum stele_status status, enum stele_status expected,
                          int sys_errno, const char *message)
{
    assert_int_equal(status, expected);
    assert_int_equal(error.status, expected);
    assert_int_equal(error.sys_errno, sys_errno);
    assert_string_equal(error.message, message);
}

/* ---- Reading --------------------------------------------------------------------- */

static void an_interrupted_read_is_repeated(void **state)
{
    char target[4];
    size_t read_bytes;

    (void)state;
    SCRIPT(-EINTR, -EINTR, 4);
    assert_int_equal(io_file_read(file, target, 4, 2, &read_bytes, &error),
                     STELE_OK);
    assert_int_equal(call_count, 3);
    assert_int_equal(offsets[2], 2);
    assert_int_equal(read_bytes, 4);
    assert_memory_equal(target, "2345", 4);
}

static void a_short_read_goes_on_where_it_stopped(void **state)
{
    char target[8];
    size_t read_bytes;

    (void)state;
    SCRIPT(3, -EINTR, 5);
    assert_int_equal(io_file_read(file, target, 8, 1, &read_bytes, &error),
                     STELE_OK);
    assert_int_equal(offsets[1], 4);
    assert_int_equal(lengths[1], 5);
    assert_int_equal(offsets[2], 4);
    assert_int_equal(read_bytes, 8);
    assert_memory_equal(target, "12345678", 8);
}

static void only_the_end_of_the_file_makes_a_read_short(void **state)
{
    char target[8];
    size_t read_bytes;

    (void)state;
    SCRIPT(3, 0);
    assert_int_equal(io_file_read(file, target, 8, 0, &read_bytes, &error),
                     STELE_OK);
    assert_int_equal(read_bytes, 3);
    assert_int_equal(call_count, 2);
}

static void a_file_that_ends_too_early_is_corrupt(void **state)
{
    char target[8];

    (void)state;
    SCRIPT(3, 0);
    assert_failed(io_file_read_exact(file, target, 8, 0, &error), STELE_CORRUPT,
                  0, "wal/1: offset 0: the file ends after 3 of 8 bytes");
}

/* Also where the kernel's word would mean something else for a name. */
static void a_failed_read_is_an_io_error_whatever_the_errno(void **state)
{
    static const int errnos[] = {EIO, ENOENT, ENOSPC, ENOMEM, EEXIST};
    char target[8];
    size_t read_bytes = 77;

    (void)state;
    for (size_t index = 0; index < sizeof errnos / sizeof *errnos; index++) {
        SCRIPT(3, -errnos[index]);
        assert_int_equal(io_file_read(file, target, 8, 1, &read_bytes, &error),
                         STELE_IO);
        assert_int_equal(error.sys_errno, errnos[index]);
        assert_int_equal(read_bytes, 77);
    }
    SCRIPT(3, -EIO);
    assert_failed(
        io_file_read_exact(file, target, 8, 1, &error), STELE_IO, EIO,
        "wal/1: offset 4: read 5 bytes: Input/output error (errno 5)");
}

/* ---- Writing ----------------------------------------------------------------------- */

static void an_interrupted_write_is_made_again_unchanged(void **state)
{
    (void)state;
    SCRIPT(-EINTR, 8);
    assert_int_equal(write_two_runs(), STELE_OK);
    assert_int_equal(call_count, 2);
    assert_int_equal(offsets[1], offsets[0]);
    assert_int_equal(lengths[1], lengths[0]);
}

/* What follows would be a second write: a unit is one. */
static void a_short_write_is_an_error_and_not_continued(void **state)
{
    (void)state;
    SCRIPT(5);
    assert_failed(write_two_runs(), STELE_IO, 0,
                  "wal/1: offset 4096: short write, 5 of 8 bytes");
    assert_int_equal(call_count, 1);
    SCRIPT(0);
    assert_int_equal(write_two_runs(), STELE_IO);
    assert_int_equal(call_count, 1);
}

static void a_write_refused_for_want_of_space_is_no_space(void **state)
{
    (void)state;
    SCRIPT(-ENOSPC);
    assert_failed(write_two_runs(), STELE_NO_SPACE, ENOSPC,
                  "wal/1: offset 4096: write 8 bytes: No space left on device "
                  "(errno 28)");
    SCRIPT(-EDQUOT);
    assert_failed(write_two_runs(), STELE_NO_SPACE, EDQUOT,
                  "wal/1: offset 4096: write 8 bytes: Disk quota exceeded "
                  "(errno 122)");
    assert_int_equal(call_count, 1);
}

static void any_other_failed_write_is_an_io_error(void **state)
{
    static const int errnos[] = {EIO, EFBIG, EROFS, ENOMEM, ENOENT, EBADF};

    (void)state;
    for (size_t index = 0; index < sizeof errnos / sizeof *errnos; index++) {
        SCRIPT(-errnos[index]);
        assert_int_equal(write_two_runs(), STELE_IO);
        assert_int_equal(error.sys_errno, errnos[index]);
        assert_int_equal(call_count, 1);
    }
}

/* ---- Syncing ------------------------------------------------------------------------- */

/* The kernel may have dropped the pages it could not write: a second call would
 * say that all is well. */
static void a_failed_sync_is_never_repeated(void **state)
{
    (void)state;
    SCRIPT(-EINTR, 0);
    assert_failed(io_file_sync(file, &error), STELE_IO, EINTR,
                  "wal/1: sync: Interrupted system call (errno 4)");
    assert_int_equal(call_count, 1);
    SCRIPT(-EIO, 0);
    assert_int_equal(io_file_sync(file, &error), STELE_IO);
    assert_int_equal(call_count, 1);
    SCRIPT(-EINTR, 0);
    assert_failed(io_dir_sync(dir, &error), STELE_IO, EINTR,
                  "data/wal: sync directory: Interrupted system call "
                  "(errno 4)");
    assert_int_equal(call_count, 1);
}

/* Delayed allocation: what was written before may be gone. */
static void a_sync_without_space_is_an_io_error(void **state)
{
    (void)state;
    SCRIPT(-ENOSPC);
    assert_int_equal(io_file_sync(file, &error), STELE_IO);
    assert_int_equal(error.sys_errno, ENOSPC);
    SCRIPT(-EDQUOT);
    assert_int_equal(io_file_sync(file, &error), STELE_IO);
    SCRIPT(-ENOSPC);
    assert_int_equal(io_dir_sync(dir, &error), STELE_IO);
    assert_int_equal(error.sys_errno, ENOSPC);
}

static void writing_back_fails_as_a_sync_does(void **state)
{
    (void)state;
    SCRIPT(0);
    assert_int_equal(io_file_write_back(file, 4096, 8, &error), STELE_OK);
    SCRIPT(-ENOSPC);
    assert_failed(io_file_write_back(file, 4096, 8, &error), STELE_IO, ENOSPC,
                  "wal/1: offset 4096: write back 8 bytes: No space left on "
                  "device (errno 28)");
    assert_int_equal(call_count, 1);
}

/* ---- Names ----------------------------------------------------------------------------- */

static void an_interrupted_open_is_repeated(void **state)
{
    struct io_file *other;

    (void)state;
    SCRIPT(-EINTR, -EINTR, FILE_FD);
    assert_int_equal(io_file_open(dir, "2", IO_OPEN_READ, &other, &error),
                     STELE_OK);
    assert_int_equal(call_count, 3);
    assert_string_equal(io_file_name(other), "wal/2");
    io_file_close(other);
}

static void an_interrupted_open_of_a_directory_is_repeated(void **state)
{
    struct io_dir *other;

    (void)state;
    SCRIPT(-EINTR, -EINTR, DIR_FD);
    assert_int_equal(io_dir_open_in(dir, "x", &other, &error), STELE_OK);
    assert_int_equal(call_count, 3);
    io_dir_close(other);
}

/* Every call on a name, failing with `sys_errno`: the statuses must agree. */
static enum stele_status status_of_names(int sys_errno)
{
    struct io_file_info info;
    struct io_file *no_file = NULL;
    struct io_dir *no_dir = NULL;
    enum stele_status status;

    SCRIPT(-sys_errno);
    status = io_file_open(dir, "2", IO_OPEN_READ, &no_file, &error);
    assert_int_equal(error.status, status);
    assert_int_equal(error.sys_errno, sys_errno);
    assert_null(no_file);
    SCRIPT(-sys_errno);
    assert_int_equal(io_dir_open(&fake, "x", &no_dir, &error), status);
    SCRIPT(-sys_errno);
    assert_int_equal(io_dir_open_in(dir, "x", &no_dir, &error), status);
    assert_null(no_dir);
    SCRIPT(-sys_errno);
    assert_int_equal(io_dir_create(&fake, "x", &error), status);
    SCRIPT(-sys_errno);
    assert_int_equal(io_dir_create_in(dir, "x", &error), status);
    SCRIPT(-sys_errno);
    assert_int_equal(io_info(dir, "x", &info, &error), status);
    SCRIPT(-sys_errno);
    assert_int_equal(io_unlink(dir, "x", &error), status);
    SCRIPT(-sys_errno);
    assert_int_equal(io_rmdir(dir, "x", &error), status);
    SCRIPT(-sys_errno);
    assert_int_equal(io_rename(dir, "x", dir, "y", &error), status);
    assert_int_equal(error.sys_errno, sys_errno);
    return status;
}

/* A directory that may not be read, or a full descriptor table, says nothing of
 * what exists. */
static void only_enoent_is_absence(void **state)
{
    static const int errnos[] = {EACCES, EPERM, EMFILE, ENFILE,
                                 EIO,    ELOOP, EROFS,  ENAMETOOLONG};

    (void)state;
    assert_int_equal(status_of_names(ENOENT), STELE_NOT_FOUND);
    for (size_t index = 0; index < sizeof errnos / sizeof *errnos; index++) {
        assert_int_equal(status_of_names(errnos[index]), STELE_IO);
    }
}

static void other_errnos_say_what_the_caller_should_do(void **state)
{
    (void)state;
    assert_int_equal(status_of_names(EEXIST), STELE_EXISTS);
    assert_int_equal(status_of_names(ENOTDIR), STELE_FOREIGN);
    assert_int_equal(status_of_names(ENOSPC), STELE_NO_SPACE);
    assert_int_equal(status_of_names(EDQUOT), STELE_NO_SPACE);
    assert_int_equal(status_of_names(ENOMEM), STELE_NO_MEMORY);
}

static void messages_name_the_file_or_the_directory(void **state)
{
    struct io_file *no_file;
    struct io_dir *no_dir;

    (void)state;
    SCRIPT(-EACCES);
    assert_failed(io_file_open(dir, "2", IO_OPEN_READ, &no_file, &error),
                  STELE_IO, EACCES,
                  "wal/2: open: Permission denied (errno 13)");
    SCRIPT(-ENOENT);
    assert_failed(io_dir_open(&fake, "data", &no_dir, &error), STELE_NOT_FOUND,
                  ENOENT,
                  "data: open directory: No such file or directory (errno 2)");
    SCRIPT(-EIO);
    assert_failed(io_rename(dir, "1.tmp", dir, "1.wal", &error), STELE_IO, EIO,
                  "1.tmp: rename to 1.wal: Input/output error (errno 5)");
    assert_string_equal(io_dir_path(dir), "data/wal");
    assert_ptr_equal(io_dir_io(dir), &fake);
}

/* ---- The rest ---------------------------------------------------------------------------- */

static enum stele_status refuse_entry(void *context, const char *name,
                                      struct stele_error *found)
{
    (void)context;
    return error_set(found, STELE_FOREIGN, "%s", name);
}

static enum stele_status count_entry(void *context, const char *name,
                                     struct stele_error *found)
{
    (void)name;
    (void)found;
    ++*(int *)context;
    return STELE_OK;
}

static void a_listing_ends_with_the_first_status_of_a_visit(void **state)
{
    int count = 0;

    (void)state;
    SCRIPT(3);
    assert_failed(io_dir_list(dir, refuse_entry, NULL, &error), STELE_FOREIGN,
                  0, "entry");
    assert_int_equal(visit_count, 1);
    SCRIPT(3);
    assert_int_equal(io_dir_list(dir, count_entry, &count, &error), STELE_OK);
    assert_int_equal(count, 3);
}

static void a_close_is_made_once_even_if_interrupted(void **state)
{
    struct io_file *other;
    const size_t before = close_count;

    (void)state;
    SCRIPT(FILE_FD);
    assert_int_equal(io_file_open(dir, "2", IO_OPEN_READ, &other, &error),
                     STELE_OK);
    io_file_close(other);
    assert_int_equal(close_count, before + 1);
    io_file_close(NULL);
    io_dir_close(NULL);
    assert_int_equal(close_count, before + 1);
}

static void a_lock_that_is_taken_is_locked(void **state)
{
    bool held = false;

    (void)state;
    SCRIPT(-EAGAIN);
    assert_int_equal(io_file_lock(file, 0, &error), STELE_LOCKED);
    SCRIPT(-EACCES);
    assert_int_equal(io_file_lock(file, 0, &error), STELE_LOCKED);
    SCRIPT(-ENOLCK);
    assert_int_equal(io_file_lock(file, 0, &error), STELE_IO);
    SCRIPT(0);
    assert_int_equal(io_file_lock(file, 0, &error), STELE_OK);
    SCRIPT(1);
    assert_int_equal(io_file_lock_held(file, 0, &held, &error), STELE_OK);
    assert_true(held);
    SCRIPT(0);
    assert_int_equal(io_file_lock_held(file, 0, &held, &error), STELE_OK);
    assert_false(held);
    SCRIPT(-EIO);
    assert_int_equal(io_file_lock_held(file, 0, &held, &error), STELE_IO);
}

static void an_interrupted_reservation_is_repeated(void **state)
{
    (void)state;
    SCRIPT(-EINTR, 0);
    assert_int_equal(io_file_allocate(file, 4096, &error), STELE_OK);
    assert_int_equal(call_count, 2);
    SCRIPT(-EOPNOTSUPP);
    assert_int_equal(io_file_allocate(file, 4096, &error), STELE_UNSUPPORTED);
    SCRIPT(-ENOSPC);
    assert_failed(io_file_allocate(file, 4096, &error), STELE_NO_SPACE, ENOSPC,
                  "wal/1: allocate 4096 bytes: No space left on device "
                  "(errno 28)");
}

static void interrupted_randomness_is_asked_for_again(void **state)
{
    uint8_t target[8];

    (void)state;
    SCRIPT(-EINTR, 0);
    assert_int_equal(io_random(&fake, target, sizeof target, &error), STELE_OK);
    assert_int_equal(call_count, 2);
    SCRIPT(-EIO);
    assert_int_equal(io_random(&fake, target, sizeof target, &error), STELE_IO);
}

static void nobody_has_to_ask_for_the_error(void **state)
{
    char target[1];

    (void)state;
    SCRIPT(-EIO);
    assert_int_equal(io_file_read_exact(file, target, 1, 0, NULL), STELE_IO);
    SCRIPT(0);
    assert_int_equal(io_file_read_exact(file, target, 1, 0, NULL),
                     STELE_CORRUPT);
    SCRIPT(-EIO);
    assert_int_equal(io_file_sync(file, NULL), STELE_IO);
}

/* ---- The kernel ----------------------------------------------------------------------------- */

static char *path;

static int open_kernel(void **state)
{
    (void)state;
    path = temp_dir_make();
    assert_int_equal(io_dir_open(io_posix(), path, &dir, &error), STELE_OK);
    return 0;
}

static int close_kernel(void **state)
{
    (void)state;
    io_dir_close(dir);
    temp_dir_remove(path);
    return 0;
}

static void a_file_is_written_synced_and_read_back(void **state)
{
    const struct iovec iov[] = {{.iov_base = (char[]){"abcd"}, .iov_len = 4},
                                {.iov_base = (char[]){"efgh"}, .iov_len = 4}};
    struct io_file_info info;
    char target[16];
    size_t read_bytes;

    (void)state;
    assert_int_equal(io_file_open(dir, "f", IO_OPEN_CREATE_NEW, &file, &error),
                     STELE_OK);
    assert_int_equal(io_file_writev(file, iov, 2, 2, &error), STELE_OK);
    assert_int_equal(io_file_write_back(file, 2, 8, &error), STELE_OK);
    assert_int_equal(io_file_sync(file, &error), STELE_OK);
    assert_int_equal(io_file_drop_cache(file, &error), STELE_OK);
    assert_int_equal(
        io_file_read(file, target, sizeof target, 0, &read_bytes, &error),
        STELE_OK);
    assert_int_equal(read_bytes, 10);
    assert_memory_equal(target, "\0\0abcdefgh", 10);
    assert_int_equal(io_file_info(file, &info, &error), STELE_OK);
    assert_int_equal(info.type, IO_TYPE_REGULAR);
    assert_int_equal(info.size_bytes, 10);
    assert_int_equal(info.owner_uid, getuid());
    assert_int_equal(info.link_count, 1);
    io_file_close(file);
    assert_int_equal(io_dir_sync(dir, &error), STELE_OK);
}

static void files_and_directories_are_the_owners_alone(void **state)
{
    const mode_t before = umask(0);
    struct stat found;
    char name[300];

    (void)state;
    assert_int_equal(io_file_open(dir, "f", IO_OPEN_CREATE, &file, &error),
                     STELE_OK);
    io_file_close(file);
    assert_int_equal(io_dir_create_in(dir, "d", &error), STELE_OK);
    umask(before);
    snprintf(name, sizeof name, "%s/f", path);
    assert_int_equal(stat(name, &found), 0);
    assert_int_equal(found.st_mode & 0777, 0600);
    snprintf(name, sizeof name, "%s/d", path);
    assert_int_equal(stat(name, &found), 0);
    assert_int_equal(found.st_mode & 0777, 0700);
}

static void what_must_be_new_may_not_exist_and_the_reverse(void **state)
{
    (void)state;
    assert_int_equal(io_file_open(dir, "f", IO_OPEN_READ, &file, &error),
                     STELE_NOT_FOUND);
    assert_int_equal(io_file_open(dir, "f", IO_OPEN_READ_WRITE, &file, &error),
                     STELE_NOT_FOUND);
    assert_int_equal(io_file_open(dir, "f", IO_OPEN_CREATE_NEW, &file, &error),
                     STELE_OK);
    io_file_close(file);
    assert_int_equal(io_file_open(dir, "f", IO_OPEN_CREATE_NEW, &file, &error),
                     STELE_EXISTS);
    assert_int_equal(io_dir_create_in(dir, "f", &error), STELE_EXISTS);
}

static void a_symbolic_link_is_not_followed(void **state)
{
    struct io_file_info info;
    char name[300];

    (void)state;
    assert_int_equal(io_file_open(dir, "f", IO_OPEN_CREATE, &file, &error),
                     STELE_OK);
    io_file_close(file);
    snprintf(name, sizeof name, "%s/link", path);
    assert_int_equal(symlink("f", name), 0);
    assert_int_equal(io_file_open(dir, "link", IO_OPEN_READ, &file, &error),
                     STELE_IO);
    assert_int_equal(error.sys_errno, ELOOP);
    assert_int_equal(io_info(dir, "link", &info, &error), STELE_OK);
    assert_int_equal(info.type, IO_TYPE_OTHER);
}

static void a_pipe_where_a_file_should_be_does_not_hang(void **state)
{
    struct io_file_info info;
    char name[300];

    (void)state;
    snprintf(name, sizeof name, "%s/pipe", path);
    assert_int_equal(mkfifo(name, 0600), 0);
    assert_int_equal(io_file_open(dir, "pipe", IO_OPEN_READ, &file, &error),
                     STELE_OK);
    assert_int_equal(io_file_info(file, &info, &error), STELE_OK);
    assert_int_equal(info.type, IO_TYPE_OTHER);
    io_file_close(file);
}

/* It belongs to the open file: closing another descriptor drops nothing. */
static void a_lock_keeps_out_a_second_opener_in_the_same_process(void **state)
{
    struct io_file *other;
    bool held;

    (void)state;
    assert_int_equal(io_file_open(dir, "LOCK", IO_OPEN_CREATE, &file, &error),
                     STELE_OK);
    assert_int_equal(io_file_lock(file, 0, &error), STELE_OK);
    for (int tries = 0; tries < 2; tries++) {
        assert_int_equal(
            io_file_open(dir, "LOCK", IO_OPEN_READ_WRITE, &other, &error),
            STELE_OK);
        assert_int_equal(io_file_lock(other, 0, &error), STELE_LOCKED);
        assert_int_equal(io_file_lock_held(other, 0, &held, &error), STELE_OK);
        assert_true(held);
        io_file_close(other);
    }
    assert_int_equal(io_file_lock_held(file, 0, &held, &error), STELE_OK);
    assert_false(held); /* By somebody else. */
    io_file_close(file);
    assert_int_equal(
        io_file_open(dir, "LOCK", IO_OPEN_READ_WRITE, &other, &error),
        STELE_OK);
    assert_int_equal(io_file_lock(other, 0, &error), STELE_OK);
    io_file_close(other);
}

static void a_listing_leaves_out_the_dots(void **state)
{
    int count = 0;

    (void)state;
    assert_int_equal(io_dir_list(dir, count_entry, &count, &error), STELE_OK);
    assert_int_equal(count, 0);
    assert_int_equal(io_dir_create_in(dir, "d", &error), STELE_OK);
    for (int tries = 1; tries <= 2; tries++) { /* From the start each time. */
        assert_int_equal(io_dir_list(dir, count_entry, &count, &error),
                         STELE_OK);
        assert_int_equal(count, tries);
    }
}

static void a_rename_replaces_and_an_unlink_removes(void **state)
{
    struct io_file_info before;
    struct io_file_info after;

    (void)state;
    assert_int_equal(io_file_open(dir, "a", IO_OPEN_CREATE, &file, &error),
                     STELE_OK);
    assert_int_equal(io_file_info(file, &before, &error), STELE_OK);
    io_file_close(file);
    assert_int_equal(io_file_open(dir, "b", IO_OPEN_CREATE, &file, &error),
                     STELE_OK);
    io_file_close(file);
    assert_int_equal(io_rename(dir, "a", dir, "b", &error), STELE_OK);
    assert_int_equal(io_info(dir, "a", &after, &error), STELE_NOT_FOUND);
    assert_int_equal(io_info(dir, "b", &after, &error), STELE_OK);
    assert_int_equal(after.inode, before.inode);
    assert_int_equal(io_unlink(dir, "b", &error), STELE_OK);
    assert_int_equal(io_unlink(dir, "b", &error), STELE_NOT_FOUND);
    assert_int_equal(io_rmdir(dir, "b", &error), STELE_NOT_FOUND);
}

static void the_clocks_run_and_the_process_is_described(void **state)
{
    const uint64_t first_ns = io_clock_monotonic_ns(io_posix());
    char text[200];
    char pid[32];

    (void)state;
    assert_true(io_clock_monotonic_ns(io_posix()) >= first_ns);
    assert_true(io_clock_wall_ns(io_posix()) >
                UINT64_C(1600000000) * 1000000000);
    io_describe_process(io_posix(), text, sizeof text);
    snprintf(pid, sizeof pid, "pid %ld on ", (long)getpid());
    assert_int_equal(strncmp(text, pid, strlen(pid)), 0);
}

#define FAKE_TEST(name)                                                        \
    cmocka_unit_test_setup_teardown(name, open_fakes, close_fakes)
#define KERNEL_TEST(name)                                                      \
    cmocka_unit_test_setup_teardown(name, open_kernel, close_kernel)

int main(void)
{
    const struct CMUnitTest tests[] = {
        FAKE_TEST(an_interrupted_read_is_repeated),
        FAKE_TEST(a_short_read_goes_on_where_it_stopped),
        FAKE_TEST(only_the_end_of_the_file_makes_a_read_short),
        FAKE_TEST(a_file_that_ends_too_early_is_corrupt),
        FAKE_TEST(a_failed_read_is_an_io_error_whatever_the_errno),
        FAKE_TEST(an_interrupted_write_is_made_again_unchanged),
        FAKE_TEST(a_short_write_is_an_error_and_not_continued),
        FAKE_TEST(a_write_refused_for_want_of_space_is_no_space),
        FAKE_TEST(any_other_failed_write_is_an_io_error),
        FAKE_TEST(a_failed_sync_is_never_repeated),
        FAKE_TEST(a_sync_without_space_is_an_io_error),
        FAKE_TEST(writing_back_fails_as_a_sync_does),
        FAKE_TEST(an_interrupted_open_is_repeated),
        FAKE_TEST(an_interrupted_open_of_a_directory_is_repeated),
        FAKE_TEST(only_enoent_is_absence),
        FAKE_TEST(other_errnos_say_what_the_caller_should_do),
        FAKE_TEST(messages_name_the_file_or_the_directory),
        FAKE_TEST(a_listing_ends_with_the_first_status_of_a_visit),
        FAKE_TEST(a_close_is_made_once_even_if_interrupted),
        FAKE_TEST(a_lock_that_is_taken_is_locked),
        FAKE_TEST(an_interrupted_reservation_is_repeated),
        FAKE_TEST(interrupted_randomness_is_asked_for_again),
        FAKE_TEST(nobody_has_to_ask_for_the_error),
        KERNEL_TEST(a_file_is_written_synced_and_read_back),
        KERNEL_TEST(files_and_directories_are_the_owners_alone),
        KERNEL_TEST(what_must_be_new_may_not_exist_and_the_reverse),
        KERNEL_TEST(a_symbolic_link_is_not_followed),
        KERNEL_TEST(a_pipe_where_a_file_should_be_does_not_hang),
        KERNEL_TEST(a_lock_keeps_out_a_second_opener_in_the_same_process),
        KERNEL_TEST(a_listing_leaves_out_the_dots),
        KERNEL_TEST(a_rename_replaces_and_an_unlink_removes),
        KERNEL_TEST(the_clocks_run_and_the_process_is_described),
    };

    return cmocka_run_group_tests_name("base/io", tests, NULL, NULL);
}
