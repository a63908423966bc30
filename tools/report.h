/*
 * tools/report.h -- what the program says on stderr.
 *
 *     stele: get: no such key
 *
 * Messages quote names from files and arguments, so bytes that a terminal would
 * act on are written as \xNN.
 */
#ifndef TOOLS_REPORT_H
#define TOOLS_REPORT_H

#include "base/status.h"
#include "tools/exit_code.h"

/* The verb that stands in front of every message from now on. Borrowed. */
void report_set_verb(const char *verb);

/* "stele: <verb>: <message>". */
void report_problem(const char *format, ...)
    __attribute__((format(printf, 1, 2)));

/* The same for something that does not change the outcome. */
void report_note(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* A wrong argument: adds where to read on. Returns EXIT_USAGE. */
int report_usage(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* A failed call: `error` is what it filled in. Returns the exit code. */
int report_error(enum stele_status status, const struct stele_error *error);

#endif
