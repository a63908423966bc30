/* tools/bench/must.h -- a benchmark that cannot go on says why and ends. */
#ifndef TOOLS_BENCH_MUST_H
#define TOOLS_BENCH_MUST_H

#include "engine/stele.h"

__attribute__((format(printf, 1, 2), noreturn)) void die(const char *format,
                                                         ...);

/* The status is STELE_OK, or die with the error. */
void must(enum stele_status status, const struct stele_error *error);

/* The pointer is not NULL. Returns it. */
void *must_have(void *pointer);

#endif
