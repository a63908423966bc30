/*
 * tools/child.h -- work in a process of its own, which may die of it.
 *
 * LMDB follows what it finds in its file, and damage inside its own pages can kill
 * whoever reads it. What is only to be looked at is looked at by a child, which
 * sends its answer through a pipe; its death is an answer, too.
 */
#ifndef TOOLS_CHILD_H
#define TOOLS_CHILD_H

#include <stddef.h>

enum child_end {
    CHILD_ANSWERED,    /* *answer is filled in. */
    CHILD_CRASHED,     /* Of a signal that only its own doing raises. */
    CHILD_KILLED,      /* Of another one: from outside. Nothing is known. */
    CHILD_SILENT,      /* It ended without an answer. */
    CHILD_NOT_STARTED, /* No process, or no pipe: `system_error`. */
};

struct child_outcome {
    enum child_end end;
    int signal;       /* CRASHED, KILLED. */
    int system_error; /* NOT_STARTED: an errno. */
};

/* Fills in the answer; what it prints to stdout is lost, what it says on stderr is
 * not. */
typedef void child_work(const void *context, void *answer);

/*
 * Do `work` in a child, and wait for it. The child does not outlive this process.
 * No thread but the caller's may run, and no store may be open: a child must open
 * its own. `answer_bytes` at most 4,096.
 */
struct child_outcome child_run(child_work *work, const void *context,
                               void *answer, size_t answer_bytes);

/* "signal 11, Segmentation fault", for a message. Borrowed until the next call. */
const char *child_signal_text(int signal_number);

/* For KILLED, SILENT and NOT_STARTED: say so. Returns EXIT_IO. */
int child_report(const struct child_outcome *outcome);

#endif
