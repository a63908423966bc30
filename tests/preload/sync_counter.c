/*
 * tests/preload/sync_counter.c -- counts, from outside, what a program makes
 * durable and how much it writes, told apart by file.
 *
 *     LD_PRELOAD=libstele_sync_counter.so STELE_SYNC_COUNT=counts.jsonl program
 *
 * Appends one JSON object a line to the named file: the totals since the program
 * started, {"mark":"exit",...}, when it ends; and the same under NAME at each
 * call of access("/stele-mark/NAME", F_OK), so that a program can bracket what
 * it wants to know. Each class of files has an object of its own; its "syncs"
 * is the sum of all that makes data durable. Without the variable everything
 * passes through.
 *
 * A call is counted when it begins and under the name its descriptor has at
 * that time (/proc/self/fd): a sync that somebody has waited for is always in
 * the totals. Counted are calls through the C library's dynamic symbols, which
 * is how Stele and LMDB write; not raw system calls, io_uring, stdio, mmap
 * stores, copy_file_range. A write through an O_DSYNC or O_SYNC descriptor, or
 * with RWF_DSYNC, is a sync as well: LMDB writes its meta page so.
 *
 * Threads: any. After fork the child counts from zero.
 */
#include <dlfcn.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include "tests/lib/suffix.h"

#define EXPORT __attribute__((visibility("default")))

/* ---- What is counted ------------------------------------------------------- */

enum file_class {
    CLASS_LOG,         /* wal/<name>.wal */
    CLASS_LOG_PREPARE, /* wal/<name>.tmp: a segment not yet in use. */
    CLASS_ANCHOR,      /* ANCHOR, ANCHOR.tmp */
    CLASS_INDEX,       /* index/<name>, index.tmp/<name> */
    CLASS_DIRECTORY,
    CLASS_OTHER,  /* Any other regular file. */
    CLASS_STREAM, /* Pipes, sockets, devices. */
    CLASS_COUNT,
};

static const char *const class_names[CLASS_COUNT] = {
    "log", "log_prepare", "anchor", "index", "directory", "other", "stream",
};

enum counter {
    /* The first five make data durable; their sum is reported as "syncs". */
    COUNT_FSYNC,
    COUNT_FDATASYNC,
    COUNT_MSYNC,  /* MS_SYNC only; not told apart by file: "other". */
    COUNT_SYNCFS, /* sync() is in "other". */
    COUNT_DSYNC_WRITES,
    COUNT_SYNC_FILE_RANGE, /* Flushes no disk's cache and no metadata. */
    COUNT_WRITES,
    COUNT_BYTES,
    COUNT_COUNT,
};

static const char *const counter_names[COUNT_COUNT] = {
    "fsync",        "fdatasync",       "msync",  "syncfs",
    "dsync_writes", "sync_file_range", "writes", "bytes",
};

static _Atomic uint64_t counts[CLASS_COUNT][COUNT_COUNT];

static void count(enum file_class file, enum counter counter, uint64_t by)
{
    atomic_fetch_add(&counts[file][counter], by);
}

/* ---- Which file ------------------------------------------------------------ */

/* `path` is absolute; it is cut into the last two names. */
static enum file_class classify_path(char *path)
{
    char *name = strrchr(path, '/');
    const char *parent;

    *name++ = '\0';
    parent = strrchr(path, '/');
    parent = parent == NULL ? path : parent + 1;
    if (strcmp(parent, "wal") == 0 && ends_in(name, ".wal")) {
        return CLASS_LOG;
    }
    if (strcmp(parent, "wal") == 0 && ends_in(name, ".tmp")) {
        return CLASS_LOG_PREPARE;
    }
    if (strcmp(parent, "index") == 0 || strcmp(parent, "index.tmp") == 0) {
        return CLASS_INDEX;
    }
    if (strcmp(name, "ANCHOR") == 0 || strcmp(name, "ANCHOR.tmp") == 0) {
        return CLASS_ANCHOR;
    }
    return CLASS_OTHER;
}

static enum file_class classify(int fd)
{
    static const char deleted[] = " (deleted)";
    char link[64];
    char path[PATH_MAX];
    struct stat info;
    ssize_t path_bytes;

    if (fstat(fd, &info) != 0) {
        return CLASS_OTHER; /* The call itself will fail. */
    }
    if (S_ISDIR(info.st_mode)) {
        return CLASS_DIRECTORY;
    }
    if (!S_ISREG(info.st_mode)) {
        return CLASS_STREAM;
    }
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    path_bytes = readlink(link, path, sizeof path - 1);
    if (path_bytes <= 0 || path[0] != '/') {
        return CLASS_OTHER; /* A memfd, or no /proc. */
    }
    path[path_bytes] = '\0';
    if (ends_in(path, deleted)) {
        path[(size_t)path_bytes - (sizeof deleted - 1)] = '\0';
    }
    return classify_path(path);
}

/* ---- Reports --------------------------------------------------------------- */

static const char *report_path; /* NULL: none wanted. Set before main(). */

struct text {
    char data[4096];
    size_t size;
};

__attribute__((format(printf, 2, 3))) static void text_add(struct text *text,
                                                           const char *format,
                                                           ...)
{
    const size_t room = sizeof text->data - text->size;
    va_list arguments;
    int added;

    va_start(arguments, format);
    added = vsnprintf(text->data + text->size, room, format, arguments);
    va_end(arguments);
    if (added < 0 || (size_t)added >= room) {
        abort(); /* 63 numbers and a short name fit. */
    }
    text->size += (size_t)added;
}

/* One write of one line, by a raw system call: it is not counted itself. */
static void append_line(const struct text *text)
{
    const int fd =
        (int)syscall(SYS_openat, AT_FDCWD, report_path,
                     O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);

    if (fd < 0 ||
        syscall(SYS_write, fd, text->data, text->size) != (long)text->size) {
        abort(); /* A count that is lost must not look like none. */
    }
    (void)syscall(SYS_close, fd);
}

/* All that makes data durable. */
static uint64_t syncs_of(size_t file)
{
    uint64_t syncs = 0;

    for (size_t counter = COUNT_FSYNC; counter <= COUNT_DSYNC_WRITES;
         counter++) {
        syncs += atomic_load(&counts[file][counter]);
    }
    return syncs;
}

static void report(const char *mark)
{
    struct text text = {.size = 0};

    if (report_path == NULL) {
        return;
    }
    text_add(&text, "{\"mark\":\"%.100s\",\"pid\":%ld", mark, (long)getpid());
    for (size_t file = 0; file < CLASS_COUNT; file++) {
        text_add(&text, ",\"%s\":{\"syncs\":%" PRIu64, class_names[file],
                 syncs_of(file));
        for (size_t counter = 0; counter < COUNT_COUNT; counter++) {
            text_add(&text, ",\"%s\":%" PRIu64, counter_names[counter],
                     atomic_load(&counts[file][counter]));
        }
        text_add(&text, "}");
    }
    text_add(&text, "}\n");
    append_line(&text);
}

static void forget_counts(void)
{
    for (size_t file = 0; file < CLASS_COUNT; file++) {
        for (size_t counter = 0; counter < COUNT_COUNT; counter++) {
            atomic_store(&counts[file][counter], 0);
        }
    }
}

__attribute__((constructor)) static void start(void)
{
    const char *path = getenv("STELE_SYNC_COUNT");

    if (path != NULL && path[0] != '\0') {
        report_path = strdup(path);
    }
    if (pthread_atfork(NULL, NULL, forget_counts) != 0) {
        abort();
    }
}

__attribute__((destructor)) static void finish(void)
{
    report("exit");
}

/* ---- The calls ---------------------------------------------------------------
 *
 * Every wrapper finds the function it stands before on its first call. Two
 * threads may both look; they find the same.
 */

typedef void any_function(void);

static any_function *next_function(any_function *_Atomic *cache,
                                   const char *name)
{
    any_function *function = atomic_load_explicit(cache, memory_order_relaxed);

    if (function == NULL) {
        void *found = dlsym(RTLD_NEXT, name);

        if (found == NULL) {
            abort();
        }
        memcpy(&function, &found, sizeof function);
        atomic_store_explicit(cache, function, memory_order_relaxed);
    }
    return function;
}

/* Declares `next`, with the type of `name`. */
#define NEXT(name)                                                             \
    static any_function *_Atomic cache;                                        \
    __typeof__(name) *const next =                                             \
        (__typeof__(name) *)next_function(&cache, #name)

EXPORT int fsync(int fd)
{
    NEXT(fsync);
    count(classify(fd), COUNT_FSYNC, 1);
    return next(fd);
}

EXPORT int fdatasync(int fd)
{
    NEXT(fdatasync);
    count(classify(fd), COUNT_FDATASYNC, 1);
    return next(fd);
}

EXPORT int sync_file_range(int fd, off64_t offset, off64_t bytes,
                           unsigned int flags)
{
    NEXT(sync_file_range);
    count(classify(fd), COUNT_SYNC_FILE_RANGE, 1);
    return next(fd, offset, bytes, flags);
}

EXPORT int msync(void *address, size_t bytes, int flags)
{
    NEXT(msync);
    if ((flags & MS_SYNC) != 0) {
        count(CLASS_OTHER, COUNT_MSYNC, 1);
    }
    return next(address, bytes, flags);
}

EXPORT int syncfs(int fd)
{
    NEXT(syncfs);
    count(classify(fd), COUNT_SYNCFS, 1);
    return next(fd);
}

EXPORT void sync(void)
{
    NEXT(sync);
    count(CLASS_OTHER, COUNT_SYNCFS, 1);
    next();
}

/* Before a write: its file, and whether it is a sync too. `flags` are RWF_*. */
static enum file_class count_write(int fd, int flags)
{
    const enum file_class file = classify(fd);
    const int status = fcntl(fd, F_GETFL);

    count(file, COUNT_WRITES, 1);
    /* O_SYNC contains the bit of O_DSYNC. */
    if ((flags & (RWF_DSYNC | RWF_SYNC)) != 0 ||
        (status != -1 && (status & O_DSYNC) != 0)) {
        count(file, COUNT_DSYNC_WRITES, 1);
    }
    return file;
}

/* After it. */
static ssize_t count_bytes(enum file_class file, ssize_t written)
{
    if (written > 0) {
        count(file, COUNT_BYTES, (uint64_t)written);
    }
    return written;
}

EXPORT ssize_t write(int fd, const void *data, size_t bytes)
{
    NEXT(write);
    const enum file_class file = count_write(fd, 0);
    return count_bytes(file, next(fd, data, bytes));
}

EXPORT ssize_t pwrite(int fd, const void *data, size_t bytes, off_t offset)
{
    NEXT(pwrite);
    const enum file_class file = count_write(fd, 0);
    return count_bytes(file, next(fd, data, bytes, offset));
}

EXPORT ssize_t pwrite64(int fd, const void *data, size_t bytes, off64_t offset)
{
    NEXT(pwrite64);
    const enum file_class file = count_write(fd, 0);
    return count_bytes(file, next(fd, data, bytes, offset));
}

EXPORT ssize_t writev(int fd, const struct iovec *parts, int part_count)
{
    NEXT(writev);
    const enum file_class file = count_write(fd, 0);
    return count_bytes(file, next(fd, parts, part_count));
}

EXPORT ssize_t pwritev(int fd, const struct iovec *parts, int part_count,
                       off_t offset)
{
    NEXT(pwritev);
    const enum file_class file = count_write(fd, 0);
    return count_bytes(file, next(fd, parts, part_count, offset));
}

EXPORT ssize_t pwritev64(int fd, const struct iovec *parts, int part_count,
                         off64_t offset)
{
    NEXT(pwritev64);
    const enum file_class file = count_write(fd, 0);
    return count_bytes(file, next(fd, parts, part_count, offset));
}

EXPORT ssize_t pwritev2(int fd, const struct iovec *parts, int part_count,
                        off_t offset, int flags)
{
    NEXT(pwritev2);
    const enum file_class file = count_write(fd, flags);
    return count_bytes(file, next(fd, parts, part_count, offset, flags));
}

EXPORT ssize_t pwritev64v2(int fd, const struct iovec *parts, int part_count,
                           off64_t offset, int flags)
{
    NEXT(pwritev64v2);
    const enum file_class file = count_write(fd, flags);
    return count_bytes(file, next(fd, parts, part_count, offset, flags));
}

EXPORT int access(const char *path, int mode)
{
    static const char marks[] = "/stele-mark/";
    NEXT(access);

    if (strncmp(path, marks, sizeof marks - 1) == 0) {
        report(path + sizeof marks - 1);
        return 0;
    }
    return next(path, mode);
}
