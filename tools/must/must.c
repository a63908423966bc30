/* tools/must/must.c -- see tools/must/must.h. */
#include "tools/must/must.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

void die(const char *format, ...)
{
    va_list arguments;

    fprintf(stderr, "%s: ", program_invocation_short_name);
    va_start(arguments, format);
    vfprintf(stderr, format, arguments);
    va_end(arguments);
    fputc('\n', stderr);
    exit(2);
}

void must(enum stele_status status, const struct stele_error *error)
{
    if (status != STELE_OK) {
        die("%s: %s", stele_status_text(status), error->message);
    }
}

void *must_have(void *pointer)
{
    if (pointer == NULL) {
        die("out of memory");
    }
    return pointer;
}
