/* tools/time_argument.h -- a moment, as users write it. */
#ifndef TOOLS_TIME_ARGUMENT_H
#define TOOLS_TIME_ARGUMENT_H

#include <stdint.h>

/*
 * "2026-11-30T14:30:00Z" or "@1796049000", either with a fraction of a second of up to
 * nine digits, into nanoseconds since 1970. Says what is wrong with it, as of the
 * option `name`, and returns EXIT_USAGE; or returns EXIT_DONE.
 */
int time_argument(const char *name, const char *text, uint64_t *time_ns_out);

#endif
