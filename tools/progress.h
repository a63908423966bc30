/*
 * tools/progress.h -- one line on the terminal that says how far long work is.
 *
 * Only if stderr is a terminal; scripts and logs see nothing of it.
 */
#ifndef TOOLS_PROGRESS_H
#define TOOLS_PROGRESS_H

#include <stdint.h>

/* Show "<doing> <done> of <total>", at most a few times a second. */
void progress_count(const char *doing, uint64_t done, uint64_t total);

/* Show "<doing> <what>" at once. */
void progress_step(const char *doing, const char *what);

/* The same as progress_count(), for stele_options: a stele_progress. */
void progress_of_store(void *context, const char *step, uint64_t done,
                       uint64_t total);

/* Wipe the line. */
void progress_end(void);

#endif
