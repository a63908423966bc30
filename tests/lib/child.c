/* tests/lib/child.c -- see tests/lib/child.h. */
#include "tests/lib/child.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "tests/lib/run.h"

enum { PIPE_BYTES = 1 << 20 }; /* Room for what is said while we look away. */

_Static_assert(sizeof(struct message) <= PIPE_BUF, "one write, whole or not");

uint64_t clock_us(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000u + (uint64_t)now.tv_nsec / 1000u;
}

static bool receive(int fd, struct message *message_out)
{
    for (;;) {
        const ssize_t bytes = read(fd, message_out, sizeof *message_out);

        if (bytes == (ssize_t)sizeof *message_out) {
            return true;
        }
        if (bytes == 0) {
            return false;
        }
        if (bytes > 0 || errno != EINTR) {
            run_fail("read a message: %zd bytes: %s", bytes, strerror(errno));
        }
    }
}

static void send_message(int fd, const struct message *message)
{
    const ssize_t bytes = write(fd, message, sizeof *message);

    if (bytes != (ssize_t)sizeof *message) {
        run_fail("write a message: %zd bytes: %s", bytes, strerror(errno));
    }
}

struct child child_start(const char *const *arguments)
{
    char *argv[CHILD_ARGUMENTS_MAX + 2];
    char self[PATH_MAX];
    const ssize_t self_bytes =
        readlink("/proc/self/exe", self, sizeof self - 1);
    posix_spawn_file_actions_t actions;
    struct child child;
    size_t count = 0;
    int to[2];
    int from[2];
    int failure;

    if (self_bytes < 0 || pipe2(to, O_CLOEXEC) != 0 ||
        pipe2(from, O_CLOEXEC) != 0) {
        run_fail("start a child: %s", strerror(errno));
    }
    self[self_bytes] = '\0';
    (void)fcntl(from[1], F_SETPIPE_SZ, PIPE_BYTES); /* Or the usual size. */
    argv[0] = self;
    for (; arguments[count] != NULL && count < CHILD_ARGUMENTS_MAX; count++) {
        argv[count + 1] = strdup(arguments[count]);
    }
    argv[count + 1] = NULL;
    signal(SIGPIPE, SIG_IGN); /* A dead child is an error to report, no more. */
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, to[0], STDIN_FILENO);
    posix_spawn_file_actions_adddup2(&actions, from[1], STDOUT_FILENO);
    failure = posix_spawn(&child.pid, self, &actions, NULL, argv, environ);
    posix_spawn_file_actions_destroy(&actions);
    if (failure != 0) {
        run_fail("start a child: %s", strerror(failure));
    }
    for (size_t index = 1; index <= count; index++) {
        free(argv[index]);
    }
    close(to[0]);
    close(from[1]);
    child.to_fd = to[1];
    child.from_fd = from[0];
    return child;
}

bool child_receive(const struct child *child, struct message *message_out)
{
    return receive(child->from_fd, message_out);
}

static bool is_readable(int fd, uint64_t wait_us)
{
    struct pollfd poll_fd = {.fd = fd, .events = POLLIN};
    const struct timespec wait = {
        .tv_sec = (time_t)(wait_us / 1000000u),
        .tv_nsec = (long)(wait_us % 1000000u) * 1000,
    };

    return ppoll(&poll_fd, 1, &wait, NULL) > 0;
}

bool child_receive_within(const struct child *child, uint64_t wait_us,
                          struct message *message_out)
{
    return is_readable(child->from_fd, wait_us) &&
           receive(child->from_fd, message_out);
}

void child_send(const struct child *child, const struct message *message)
{
    send_message(child->to_fd, message);
}

static int wait_for(const struct child *child)
{
    int outcome = 0;

    while (waitpid(child->pid, &outcome, 0) < 0) {
        if (errno != EINTR) {
            run_fail("wait for process %ld: %s", (long)child->pid,
                     strerror(errno));
        }
    }
    return outcome;
}

void child_kill(struct child *child)
{
    int outcome;

    kill(child->pid, SIGKILL);
    outcome = wait_for(child);
    if (!WIFSIGNALED(outcome) || WTERMSIG(outcome) != SIGKILL) {
        run_fail("process %ld ended by itself before it was killed: wait "
                 "status %#x",
                 (long)child->pid, (unsigned)outcome);
    }
}

void child_dismiss(struct child *child)
{
    close(child->to_fd);
    child->to_fd = -1;
}

void child_join(struct child *child)
{
    const int outcome = wait_for(child);

    if (!WIFEXITED(outcome) || WEXITSTATUS(outcome) != 0) {
        run_fail("process %ld failed: wait status %#x", (long)child->pid,
                 (unsigned)outcome);
    }
}

void child_forget(struct child *child)
{
    if (child->to_fd >= 0) {
        close(child->to_fd);
    }
    close(child->from_fd);
}

bool parent_receive(struct message *message_out)
{
    return receive(STDIN_FILENO, message_out);
}

bool parent_has_spoken(void)
{
    return is_readable(STDIN_FILENO, 0);
}

void parent_send(const struct message *message)
{
    send_message(STDOUT_FILENO, message);
}
