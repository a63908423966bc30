/* base/error.c -- see base/error.h. */
#include "base/error.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum stele_status error_set(struct stele_error *error, enum stele_status status,
                            const char *format, ...)
{
    va_list args;

    assert(status != STELE_OK);
    if (error == NULL) {
        return status;
    }
    error->status = status;
    error->sys_errno = 0;
    va_start(args, format);
    vsnprintf(error->message, sizeof error->message, format, args);
    va_end(args);
    return status;
}

enum stele_status error_set_errno(struct stele_error *error,
                                  enum stele_status status, int sys_errno,
                                  const char *format, ...)
{
    char reason[96];
    va_list args;
    size_t used;

    assert(status != STELE_OK);
    if (error == NULL) {
        return status;
    }
    error->status = status;
    error->sys_errno = sys_errno;
    va_start(args, format);
    vsnprintf(error->message, sizeof error->message, format, args);
    va_end(args);
    used = strlen(error->message);
    /* GNU's: returns the text, which need not be in the buffer. */
    snprintf(error->message + used, sizeof error->message - used,
             ": %s (errno %d)", strerror_r(sys_errno, reason, sizeof reason),
             sys_errno);
    return status;
}

enum stele_status error_wrap(struct stele_error *error,
                             enum stele_status status, const char *format, ...)
{
    char inner[STELE_ERROR_MESSAGE_BYTES];
    va_list args;
    size_t used;

    assert(status != STELE_OK);
    if (error == NULL) {
        return status;
    }
    memcpy(inner, error->message, sizeof inner);
    inner[sizeof inner - 1] = '\0';
    va_start(args, format);
    vsnprintf(error->message, sizeof error->message, format, args);
    va_end(args);
    used = strlen(error->message);
    snprintf(error->message + used, sizeof error->message - used, ": %s",
             inner);
    return status;
}

enum stele_status error_no_memory(struct stele_error *error, const char *what)
{
    return error_set(error, STELE_NO_MEMORY, "out of memory: %s", what);
}
