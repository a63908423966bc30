/*
 * base/status.h -- the outcome of an operation, one enum for all layers.
 *
 * A status answers "what should the caller do?", not "where did it happen?";
 * the where goes into struct stele_error. Public: installed beside stele.h.
 */
#ifndef STELE_STATUS_H
#define STELE_STATUS_H

/* The values are part of the ABI: new ones are only ever appended. */
enum stele_status {
    STELE_OK = 0,
    STELE_NOT_FOUND = 1, /* No such key, table, entry, file; end of a cursor. */
    STELE_CORRUPT = 2,   /* Stored bytes are damaged or lost: do not go on. */
    STELE_IO = 3,        /* The file system failed; error.sys_errno says how. */
    STELE_NO_MEMORY = 4, /* Allocation failed; nothing changed. */
    STELE_TOO_BIG = 5,   /* An argument exceeds a documented limit. */
    STELE_INVALID = 6, /* An argument is malformed, or the call is misplaced. */
    STELE_NO_SPACE = 7, /* Disk full; nothing changed; try again later. */
    STELE_BUSY = 8,   /* Not now (backpressure, live views); nothing changed. */
    STELE_LOCKED = 9, /* Another handle or process holds the store. */
    STELE_FOREIGN = 10, /* Not a store, another store's file, newer format. */
    STELE_PRECONDITION = 11, /* An expectation failed; nothing changed. */
    STELE_UNKNOWN = 12,      /* The commit may or may not be durable: reopen. */
    STELE_POISONED = 13,     /* An earlier write failed; not applied; reopen. */
    STELE_READ_ONLY = 14,    /* The handle was opened for reading. */
    STELE_EXPIRED = 15,      /* The view outlived view_age_max_ms. */
    STELE_FORKED = 16,       /* The handle belongs to the parent process. */
    STELE_EXISTS = 17,       /* What was to be created is there already. */
    STELE_UNSUPPORTED = 18,  /* This file system or build cannot do that. */
};

enum { STELE_ERROR_MESSAGE_BYTES = 256 };

/*
 * Why it failed, for people: file, offset, and what was expected there. The
 * caller allocates it; a call that succeeds leaves it alone. Wherever the API
 * takes one, NULL is allowed.
 */
struct stele_error {
    enum stele_status status;
    int sys_errno; /* errno of the failed system call, or 0. */
    char message[STELE_ERROR_MESSAGE_BYTES]; /* NUL-terminated. */
};

/* A status that is dropped is a bug, so the compiler rejects it. */
#define STELE_MUST_CHECK __attribute__((warn_unused_result))

#endif
