/*
 * base/error.h -- filling in struct stele_error.
 *
 * The function that detects a failure fills the message; callers on the way up
 * prefix what they were doing, so that the user reads, outermost first:
 *
 *     open: wal/0000000000000001.wal: offset 4096: checksum mismatch
 *
 * Everything here accepts error == NULL: a caller may not care.
 */
#ifndef BASE_ERROR_H
#define BASE_ERROR_H

#include "base/status.h"

/* Record a failure and return `status`, so that a caller can `return` it. */
enum stele_status error_set(struct stele_error *error, enum stele_status status,
                            const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* The same for a failed system call: appends ": <strerror> (errno <n>)". */
enum stele_status error_set_errno(struct stele_error *error,
                                  enum stele_status status, int sys_errno,
                                  const char *format, ...)
    __attribute__((format(printf, 4, 5)));

/* Put "<context>: " in front of the message already recorded, and return its
 * status. */
enum stele_status error_wrap(struct stele_error *error,
                             enum stele_status status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* The one message for a failed allocation. */
enum stele_status error_no_memory(struct stele_error *error, const char *what);

#endif
