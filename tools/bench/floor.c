/* tools/bench/floor.c -- see tools/bench/floor.h. */
#include "tools/bench/floor.h"

#include <fcntl.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/mutex.h"
#include "base/park.h"
#include "tools/must/must.h"

enum {
    PAGE_BYTES = 4096,
    FILE_BYTES = 64 * 1024 * 1024,
    PREPARE_BYTES = 1024 * 1024, /* Of one write. */
};

/* ---- One writer --------------------------------------------------------------- */

struct floor_file {
    int fd;
    off_t offset;
    unsigned char *data; /* FILE_BYTES of something. */
};

struct floor_file *floor_file_create(const char *directory)
{
    struct floor_file *file = must_have(calloc(1, sizeof *file));
    char *zeros = must_have(calloc(1, PREPARE_BYTES));
    char path[4096];

    snprintf(path, sizeof path, "%s/floor", directory);
    file->fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (file->fd < 0) {
        die("%s: cannot be made", path);
    }
    for (off_t offset = 0; offset < FILE_BYTES; offset += PREPARE_BYTES) {
        if (pwrite(file->fd, zeros, PREPARE_BYTES, offset) != PREPARE_BYTES) {
            die("%s: cannot be filled", path);
        }
    }
    if (fsync(file->fd) != 0) {
        die("%s: cannot be synced", path);
    }
    free(zeros);
    file->data = must_have(malloc(FILE_BYTES));
    memset(file->data, 0xa5, FILE_BYTES);
    return file;
}

void floor_file_write(struct floor_file *file, size_t bytes)
{
    const size_t padded = (bytes + PAGE_BYTES - 1) / PAGE_BYTES * PAGE_BYTES;

    if (padded > FILE_BYTES) {
        die("%zu bytes are more than the floor file has", bytes);
    }
    if ((size_t)file->offset + padded > FILE_BYTES) {
        file->offset = 0;
    }
    if (pwrite(file->fd, file->data, padded, file->offset) != (ssize_t)padded) {
        die("the floor file cannot be written");
    }
    file->offset += (off_t)padded;
}

void floor_file_append(struct floor_file *file, size_t bytes)
{
    floor_file_write(file, bytes);
    if (fdatasync(file->fd) != 0) {
        die("the floor file cannot be synced");
    }
}

void floor_file_destroy(struct floor_file *file)
{
    close(file->fd);
    free(file->data);
    free(file);
}

/* ---- Many writers ------------------------------------------------------------- */

/* For the group that is written, and for the next. */
enum { GATES = 2 };

/* The first in line is called to lead, everybody once the group is on the disk. */
enum { WAKE_FIRST = 1, WAKE_GROUP = 2 };

enum waiter_state { WAITER_WAITS, WAITER_LEADS, WAITER_IS_DONE };

struct waiter {
    struct waiter *next;
    _Atomic uint32_t state;
    uint32_t gate; /* Of the group that it will be in. */
    size_t bytes;
};

struct floor_log {
    struct floor_file *file;
    struct mutex mutex;
    struct waiter *first; /* The queue; its head leads or will. */
    struct waiter **end;
    bool led;
    _Atomic uint32_t gates[GATES];
    uint32_t gate;
};

struct floor_log *floor_log_create(const char *directory)
{
    struct floor_log *log = must_have(calloc(1, sizeof *log));

    log->file = floor_file_create(directory);
    mutex_init(&log->mutex);
    log->end = &log->first;
    return log;
}

/* Write and sync for all that wait now; leave the lead to the next in line. */
static void lead(struct floor_log *log, struct waiter *self)
{
    struct waiter *waiter;
    struct waiter *heir;
    _Atomic uint32_t *gate;
    size_t bytes = 0;

    mutex_lock(&log->mutex);
    waiter = log->first;
    log->first = NULL;
    log->end = &log->first;
    gate = &log->gates[log->gate];
    log->gate = (log->gate + 1) % GATES;
    mutex_unlock(&log->mutex);

    for (const struct waiter *one = waiter; one != NULL; one = one->next) {
        bytes += one->bytes;
    }
    floor_file_append(log->file, bytes);

    mutex_lock(&log->mutex);
    heir = log->first;
    log->led = heir != NULL;
    mutex_unlock(&log->mutex);
    if (heir != NULL) {
        _Atomic uint32_t *heirs = &log->gates[heir->gate];

        atomic_store(&heir->state, WAITER_LEADS);
        park_open(heirs, WAKE_FIRST);
    }
    while (waiter != NULL) {
        struct waiter *next = waiter->next; /* Gone once it is released. */

        if (waiter != self) {
            atomic_store(&waiter->state, WAITER_IS_DONE);
        }
        waiter = next;
    }
    park_open(gate, WAKE_FIRST | WAKE_GROUP);
}

void floor_log_commit(struct floor_log *log, size_t bytes)
{
    struct waiter self = {.bytes = bytes};
    uint32_t reasons;
    bool leads;

    mutex_lock(&log->mutex);
    reasons = log->first == NULL ? WAKE_FIRST | WAKE_GROUP : WAKE_GROUP;
    self.gate = log->gate;
    *log->end = &self;
    log->end = &self.next;
    leads = !log->led;
    log->led = true;
    mutex_unlock(&log->mutex);

    if (!leads) {
        park_while(&self.state, WAITER_WAITS, &log->gates[self.gate], reasons);
        leads = atomic_load(&self.state) == WAITER_LEADS;
    }
    if (leads) {
        lead(log, &self);
    }
}

void floor_log_destroy(struct floor_log *log)
{
    mutex_deinit(&log->mutex);
    floor_file_destroy(log->file);
    free(log);
}
