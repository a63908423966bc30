/*
 * tools/exit_code.h -- what the program tells the shell.
 *
 * Scripts branch on these, so they are part of the interface: `stele --help`
 * lists them, and a value never changes its meaning. They travel as int, which
 * is what main() returns.
 */
#ifndef TOOLS_EXIT_CODE_H
#define TOOLS_EXIT_CODE_H

#include "base/status.h"

enum exit_code {
    EXIT_DONE = 0,
    EXIT_NEGATIVE = 1, /* Not found, exists already, precondition failed; of
                          diff: there are differences. */
    EXIT_USAGE = 2,    /* Wrong arguments, over a limit, malformed input. */
    EXIT_DAMAGED = 3,  /* Damage was found; nothing was changed. */
    EXIT_IO = 4,       /* The system failed: disk, memory; or the outcome of
                          the commit is unknown. */
    EXIT_LOCKED = 5,   /* Another process holds the store. */
    EXIT_FOREIGN = 6,  /* Not a store, or of a newer format. */
};

int exit_code_of(enum stele_status status);

#endif
