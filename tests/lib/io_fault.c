/* tests/lib/io_fault.c -- see tests/lib/io_fault.h. */
#include "tests/lib/io_fault.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/lib/suffix.h"

enum { FD_MAX = 65536, NAME_BYTES = 64, SYNC_KINDS = 8 };

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static struct io_fault armed;
static uint64_t struck;
static uint64_t made[IO_FAULT_CALLS];
static bool pretending;
static char names[FD_MAX][NAME_BYTES];
static struct {
    char suffix[NAME_BYTES];
    uint64_t count;
} syncs[SYNC_KINDS];
static struct io_calls calls;
static struct io io = {.calls = &calls};

static bool is_armed_for(enum io_fault_call call)
{
    if (armed.call == IO_FAULT_ANY) {
        return call != IO_FAULT_CREATE; /* It is an OPEN as well. */
    }
    if (armed.call == IO_FAULT_FULL) {
        return call == IO_FAULT_CREATE || call == IO_FAULT_MAKE_DIR ||
               call == IO_FAULT_ALLOCATE || call == IO_FAULT_GROW;
    }
    return armed.call == call;
}

/* Whether the armed fault strikes this call now. */
static bool strikes(enum io_fault_call call, const char *name, int *errno_out)
{
    bool hit = false;

    pthread_mutex_lock(&mutex);
    made[call]++;
    if (is_armed_for(call) && armed.times != 0 &&
        (armed.suffix == NULL || ends_in(name, armed.suffix))) {
        if (armed.after_calls > 0) {
            armed.after_calls--;
        } else {
            hit = true;
            struck++;
            *errno_out = armed.sys_errno;
            if (armed.times > 0) {
                armed.times--;
            }
        }
    }
    pthread_mutex_unlock(&mutex);
    return hit;
}

static void name_of(int fd, char name[NAME_BYTES])
{
    pthread_mutex_lock(&mutex);
    snprintf(name, NAME_BYTES, "%s", fd >= 0 && fd < FD_MAX ? names[fd] : "");
    pthread_mutex_unlock(&mutex);
}

static void note_name(int fd, const char *name)
{
    const char *slash = strrchr(name, '/');

    if (fd >= 0 && fd < FD_MAX) {
        pthread_mutex_lock(&mutex);
        snprintf(names[fd], NAME_BYTES, "%s", slash == NULL ? name : slash + 1);
        pthread_mutex_unlock(&mutex);
    }
}

static int fault_open_dir(struct io *self, int parent_fd, const char *path)
{
    int sys_errno;
    int fd;

    (void)self;
    if (strikes(IO_FAULT_OPEN_DIR, path, &sys_errno)) {
        return -sys_errno;
    }
    fd = io_posix()->calls->open_dir(io_posix(), parent_fd, path);
    note_name(fd, path);
    return fd;
}

static int fault_make_dir(struct io *self, int parent_fd, const char *path)
{
    struct io_file_info info;
    int sys_errno;

    (void)self;
    /* What is there already needs no blocks, and the kernel says so first. */
    if (io_posix()->calls->info(io_posix(),
                                parent_fd < 0 ? AT_FDCWD : parent_fd, path,
                                &info) == -ENOENT &&
        strikes(IO_FAULT_MAKE_DIR, path, &sys_errno)) {
        return -sys_errno;
    }
    return io_posix()->calls->make_dir(io_posix(), parent_fd, path);
}

static int fault_list(struct io *self, int fd,
                      int (*visit)(void *context, const char *name),
                      void *context)
{
    char name[NAME_BYTES];
    int sys_errno;

    (void)self;
    name_of(fd, name);
    return strikes(IO_FAULT_LIST, name, &sys_errno)
               ? -sys_errno
               : io_posix()->calls->list(io_posix(), fd, visit, context);
}

static int fault_info(struct io *self, int fd, const char *name,
                      struct io_file_info *info_out)
{
    char own[NAME_BYTES];
    int sys_errno;

    (void)self;
    name_of(fd, own);
    return strikes(IO_FAULT_INFO, name == NULL ? own : name, &sys_errno)
               ? -sys_errno
               : io_posix()->calls->info(io_posix(), fd, name, info_out);
}

static int fault_unlink(struct io *self, int fd, const char *name)
{
    int sys_errno;

    (void)self;
    return strikes(IO_FAULT_UNLINK, name, &sys_errno)
               ? -sys_errno
               : io_posix()->calls->unlink(io_posix(), fd, name);
}

static int fault_truncate(struct io *self, int fd, uint64_t bytes)
{
    char name[NAME_BYTES];
    int sys_errno;

    (void)self;
    name_of(fd, name);
    return strikes(IO_FAULT_GROW, name, &sys_errno)
               ? -sys_errno
               : io_posix()->calls->truncate(io_posix(), fd, bytes);
}

static int fault_lock(struct io *self, int fd, uint64_t byte)
{
    char name[NAME_BYTES];
    int sys_errno;

    (void)self;
    name_of(fd, name);
    return strikes(IO_FAULT_LOCK, name, &sys_errno)
               ? -sys_errno
               : io_posix()->calls->lock(io_posix(), fd, byte);
}

static int fault_random(struct io *self, void *target, size_t bytes)
{
    int sys_errno;

    (void)self;
    return strikes(IO_FAULT_RANDOM, "", &sys_errno)
               ? -sys_errno
               : io_posix()->calls->random(io_posix(), target, bytes);
}

static int fault_open_file(struct io *self, int dir_fd, const char *name,
                           enum io_open_mode mode)
{
    struct io_file_info info;
    int sys_errno;
    int fd;

    (void)self;
    if (strikes(IO_FAULT_OPEN, name, &sys_errno)) {
        return -sys_errno;
    }
    if ((mode == IO_OPEN_CREATE || mode == IO_OPEN_CREATE_NEW) &&
        io_posix()->calls->info(io_posix(), dir_fd, name, &info) == -ENOENT &&
        strikes(IO_FAULT_CREATE, name, &sys_errno)) {
        return -sys_errno;
    }
    fd = io_posix()->calls->open_file(io_posix(), dir_fd, name, mode);
    note_name(fd, name);
    return fd;
}

static ssize_t fault_read(struct io *self, int fd, void *target, size_t bytes,
                          uint64_t offset)
{
    char name[NAME_BYTES];
    int sys_errno;

    (void)self;
    name_of(fd, name);
    if (strikes(IO_FAULT_READ, name, &sys_errno)) {
        if (sys_errno != 0) {
            return -sys_errno;
        }
        bytes /= 2;
    }
    return io_posix()->calls->read(io_posix(), fd, target, bytes, offset);
}

static ssize_t fault_writev(struct io *self, int fd, const struct iovec *iov,
                            int iov_count, uint64_t offset)
{
    char name[NAME_BYTES];
    int sys_errno;

    (void)self;
    name_of(fd, name);
    if (strikes(IO_FAULT_WRITE, name, &sys_errno)) {
        if (sys_errno != 0) {
            return -sys_errno;
        }
        /* Short: the first run, or half of it. */
        return io_posix()->calls->writev(
            io_posix(), fd,
            &(struct iovec){.iov_base = iov[0].iov_base,
                            .iov_len = iov_count > 1 ? iov[0].iov_len
                                                     : iov[0].iov_len / 2},
            1, offset);
    }
    return io_posix()->calls->writev(io_posix(), fd, iov, iov_count, offset);
}

static void count_sync(const char *name)
{
    const char *dot = strrchr(name, '.');
    const char *suffix = dot == NULL ? name : dot;

    pthread_mutex_lock(&mutex);
    for (size_t index = 0; index < SYNC_KINDS; index++) {
        if (syncs[index].count == 0) {
            snprintf(syncs[index].suffix, NAME_BYTES, "%s", suffix);
        }
        if (strcmp(syncs[index].suffix, suffix) == 0) {
            syncs[index].count++;
            break;
        }
    }
    pthread_mutex_unlock(&mutex);
}

static int fault_sync_data(struct io *self, int fd)
{
    char name[NAME_BYTES];
    int sys_errno;

    (void)self;
    name_of(fd, name);
    count_sync(name);
    if (strikes(IO_FAULT_SYNC, name, &sys_errno)) {
        return -sys_errno;
    }
    return pretending ? 0 : io_posix()->calls->sync_data(io_posix(), fd);
}

static int fault_write_back(struct io *self, int fd, uint64_t offset,
                            uint64_t bytes)
{
    char name[NAME_BYTES];
    int sys_errno;

    (void)self;
    name_of(fd, name);
    if (strikes(IO_FAULT_WRITE_BACK, name, &sys_errno)) {
        return -sys_errno;
    }
    return pretending
               ? 0
               : io_posix()->calls->write_back(io_posix(), fd, offset, bytes);
}

static int fault_sync_dir(struct io *self, int fd)
{
    int sys_errno;

    (void)self;
    if (strikes(IO_FAULT_SYNC_DIR, "", &sys_errno)) {
        return -sys_errno;
    }
    return pretending ? 0 : io_posix()->calls->sync_dir(io_posix(), fd);
}

static int fault_allocate(struct io *self, int fd, uint64_t bytes)
{
    char name[NAME_BYTES];
    int sys_errno;

    (void)self;
    name_of(fd, name);
    if (strikes(IO_FAULT_ALLOCATE, name, &sys_errno)) {
        return -sys_errno;
    }
    return io_posix()->calls->allocate(io_posix(), fd, bytes);
}

static int fault_rename(struct io *self, int from_fd, const char *from,
                        int to_fd, const char *to)
{
    int sys_errno;

    (void)self;
    if (strikes(IO_FAULT_RENAME, to, &sys_errno)) {
        return -sys_errno;
    }
    return io_posix()->calls->rename(io_posix(), from_fd, from, to_fd, to);
}

static void fill_calls(void)
{
    calls = *io_posix()->calls;
    calls.open_file = fault_open_file;
    calls.read = fault_read;
    calls.writev = fault_writev;
    calls.sync_data = fault_sync_data;
    calls.write_back = fault_write_back;
    calls.sync_dir = fault_sync_dir;
    calls.allocate = fault_allocate;
    calls.rename = fault_rename;
    calls.open_dir = fault_open_dir;
    calls.make_dir = fault_make_dir;
    calls.list = fault_list;
    calls.info = fault_info;
    calls.unlink = fault_unlink;
    calls.truncate = fault_truncate;
    calls.lock = fault_lock;
    calls.random = fault_random;
}

struct io *io_fault_io(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;

    pthread_once(&once, fill_calls);
    return &io;
}

void io_fault_arm(const struct io_fault *fault)
{
    pthread_mutex_lock(&mutex);
    armed = fault == NULL ? (struct io_fault){0} : *fault;
    struck = 0;
    pthread_mutex_unlock(&mutex);
}

uint64_t io_fault_count(void)
{
    uint64_t count;

    pthread_mutex_lock(&mutex);
    count = struck;
    pthread_mutex_unlock(&mutex);
    return count;
}

void io_fault_pretend_syncs(void)
{
    pretending = true;
}

uint64_t io_fault_calls(enum io_fault_call call)
{
    uint64_t count;

    pthread_mutex_lock(&mutex);
    count = made[call];
    pthread_mutex_unlock(&mutex);
    return count;
}

uint64_t io_fault_syncs(const char *suffix)
{
    uint64_t count = 0;

    pthread_mutex_lock(&mutex);
    for (size_t index = 0; index < SYNC_KINDS; index++) {
        if (strcmp(syncs[index].suffix, suffix) == 0) {
            count = syncs[index].count;
        }
    }
    pthread_mutex_unlock(&mutex);
    return count;
}
