/*
 * tests/lib/io_fault.h -- the kernel's file system with faults on command.
 *
 * Wraps io_posix(). A fault is armed for one kind of call on files whose name
 * ends in a given suffix, after so many calls, once or for ever.
 */
#ifndef TESTS_LIB_IO_FAULT_H
#define TESTS_LIB_IO_FAULT_H

#include <stdint.h>

#include "base/io.h"

enum io_fault_call {
    IO_FAULT_NONE,
    IO_FAULT_OPEN,
    IO_FAULT_READ,
    IO_FAULT_WRITE,
    IO_FAULT_SYNC,
    IO_FAULT_WRITE_BACK,
    IO_FAULT_SYNC_DIR,
    IO_FAULT_ALLOCATE,
    IO_FAULT_RENAME,
    IO_FAULT_OPEN_DIR,
    IO_FAULT_MAKE_DIR,
    IO_FAULT_LIST, /* Named after the directory. */
    IO_FAULT_INFO, /* Of a directory itself: as LIST. */
    IO_FAULT_UNLINK,
    IO_FAULT_GROW,
    IO_FAULT_LOCK,
    IO_FAULT_RANDOM, /* Without a name. */
    IO_FAULT_CREATE, /* An OPEN that makes the file. */
    IO_FAULT_ANY,    /* Whichever of these comes. */
    IO_FAULT_FULL,   /* What needs blocks: CREATE, MAKE_DIR, ALLOCATE, GROW. */
    IO_FAULT_CALLS,
};

enum { IO_FAULT_FOREVER = -1 };

struct io_fault {
    enum io_fault_call call;
    const char *suffix;   /* Of the name; NULL: any. Not for SYNC_DIR. */
    uint64_t after_calls; /* So many succeed first. */
    int times;            /* How often it fails; IO_FAULT_FOREVER. */
    int sys_errno;        /* 0 with WRITE and READ: half of the bytes only. */
};

/* The wrapper; one for the whole process. */
struct io *io_fault_io(void);

/* Arm (replaces what was armed) or, with NULL, disarm. Any thread. */
void io_fault_arm(const struct io_fault *fault);

/* How often the armed fault has struck. */
uint64_t io_fault_count(void);

/* From now on syncs are counted, and may fail, but are not made: for tests that
 * open a store thousands of times and in which the power stays on. */
void io_fault_pretend_syncs(void);

/* Calls of this kind since the process started. */
uint64_t io_fault_calls(enum io_fault_call call);

/* Calls of SYNC on files with this suffix since the process started. */
uint64_t io_fault_syncs(const char *suffix);

#endif
