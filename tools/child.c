/* tools/child.c -- see tools/child.h. */
#include "tools/child.h"

#include <assert.h>
#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tools/exit_code.h"
#include "tools/report.h"

enum { ANSWER_BYTES_MAX = PIPE_BUF };

/* The child: does not return. */
static void work_and_answer(child_work *work, const void *context,
                            int to_parent, size_t answer_bytes, pid_t parent)
{
    uint8_t answer[ANSWER_BYTES_MAX] = {0};
    ssize_t written;

    /* Whatever ends the parent, the work is for nobody then. */
    if (prctl(PR_SET_PDEATHSIG, SIGKILL) != 0 || getppid() != parent) {
        _exit(EXIT_IO);
    }
    work(context, answer);
    do {
        /* Up to PIPE_BUF bytes go whole or not at all. */
        written = write(to_parent, answer, answer_bytes);
    } while (written < 0 && errno == EINTR);
    /* Not exit(): what stdout held at the fork is the parent's to write. */
    _exit(written == (ssize_t)answer_bytes ? EXIT_DONE : EXIT_IO);
}

/* True if all of it came. */
static bool read_answer(int from_child, void *answer, size_t answer_bytes)
{
    size_t read_bytes = 0;

    while (read_bytes < answer_bytes) {
        const ssize_t count = read(from_child, (uint8_t *)answer + read_bytes,
                                   answer_bytes - read_bytes);

        if (count > 0) {
            read_bytes += (size_t)count;
        } else if (count == 0 || errno != EINTR) {
            return false;
        }
    }
    return true;
}

/* Does a process get this one by what it does itself? */
static bool is_a_crash(int signal_number)
{
    return signal_number == SIGSEGV || signal_number == SIGBUS ||
           signal_number == SIGABRT || signal_number == SIGFPE ||
           signal_number == SIGILL || signal_number == SIGTRAP;
}

static struct child_outcome wait_for(pid_t child, bool answered)
{
    int status = 0;
    pid_t ended;

    do {
        ended = waitpid(child, &status, 0);
    } while (ended < 0 && errno == EINTR);
    if (ended == child && WIFSIGNALED(status)) {
        return (struct child_outcome){
            .end = is_a_crash(WTERMSIG(status)) ? CHILD_CRASHED : CHILD_KILLED,
            .signal = WTERMSIG(status)};
    }
    return (struct child_outcome){.end =
                                      answered ? CHILD_ANSWERED : CHILD_SILENT};
}

static struct child_outcome not_started(int system_error)
{
    return (struct child_outcome){.end = CHILD_NOT_STARTED,
                                  .system_error = system_error};
}

struct child_outcome child_run(child_work *work, const void *context,
                               void *answer, size_t answer_bytes)
{
    const pid_t parent = getpid();
    bool answered;
    int ends[2];
    pid_t child;

    assert(answer_bytes > 0 && answer_bytes <= ANSWER_BYTES_MAX);
    if (pipe(ends) != 0) {
        return not_started(errno);
    }
    child = fork();
    if (child < 0) {
        const int system_error = errno;

        (void)close(ends[0]);
        (void)close(ends[1]);
        return not_started(system_error);
    }
    if (child == 0) {
        (void)close(ends[0]);
        work_and_answer(work, context, ends[1], answer_bytes, parent);
    }
    (void)close(ends[1]);
    answered = read_answer(ends[0], answer, answer_bytes);
    (void)close(ends[0]);
    return wait_for(child, answered);
}

const char *child_signal_text(int signal_number)
{
    static char text[64];

    snprintf(text, sizeof text, "signal %d, %s", signal_number,
             strsignal(signal_number));
    return text;
}

int child_report(const struct child_outcome *outcome)
{
    switch (outcome->end) {
    case CHILD_NOT_STARTED:
        report_problem("start a process to look: %s (errno %d)",
                       strerror(outcome->system_error), outcome->system_error);
        break;
    case CHILD_KILLED:
    case CHILD_CRASHED:
        report_problem("the process that looked was killed (%s): nothing is "
                       "known",
                       child_signal_text(outcome->signal));
        break;
    case CHILD_SILENT:
    case CHILD_ANSWERED:
        report_problem("the process that looked ended without an answer");
        break;
    }
    return EXIT_IO;
}
