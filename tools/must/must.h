/* tools/must/must.h -- a program that cannot go on says why and ends: for the
 * benchmark and the demo, which have nobody to report to. */
#ifndef TOOLS_MUST_MUST_H
#define TOOLS_MUST_MUST_H

#include "engine/stele.h"

__attribute__((format(printf, 1, 2), noreturn)) void die(const char *format,
                                                         ...);

/* The status is STELE_OK, or die with the error. */
void must(enum stele_status status, const struct stele_error *error);

/* The pointer is not NULL. Returns it. */
void *must_have(void *pointer);

#endif
