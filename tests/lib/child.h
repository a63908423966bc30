/*
 * tests/lib/child.h -- another process of the same test program.
 *
 * Started by fork and exec of this binary with a mode as its first argument, so
 * that it begins without threads, handles or locks of ours. It speaks in
 * messages of one fixed size over its standard input and output; each is one
 * write(2) below PIPE_BUF, so a killed process leaves whole ones behind.
 */
#ifndef TESTS_LIB_CHILD_H
#define TESTS_LIB_CHILD_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct child {
    pid_t pid;
    int to_fd;
    int from_fd;
};

/* What the fields mean is between the two. */
struct message {
    uint32_t kind;
    uint32_t owner;
    uint64_t n;
    uint64_t lsn;
    uint64_t more;
};

enum { CHILD_ARGUMENTS_MAX = 8 };

/* Start it with these arguments, NULL-terminated. Fails the run if it cannot. */
struct child child_start(const char *const *arguments);

/* ---- In the parent ---- */

/* The next message; false at the end of what it will ever say. */
bool child_receive(const struct child *child, struct message *message_out);

/* The next message if one comes within `wait_us`; false: none, or the end. */
bool child_receive_within(const struct child *child, uint64_t wait_us,
                          struct message *message_out);

void child_send(const struct child *child, const struct message *message);

/* kill -9; what it said before can still be received. Fails the run if it had
 * ended by itself. */
void child_kill(struct child *child);

/* Tell it to end, by closing its input. */
void child_dismiss(struct child *child);

/* Wait until it has ended by itself. Fails the run unless it exits with 0.
 * Receive what it says first, lest it wait for room in the pipe. */
void child_join(struct child *child);

/* Give the pipes back, after either. */
void child_forget(struct child *child);

/* ---- In the child ---- */

/* False: the parent has closed our input, or is gone. */
bool parent_receive(struct message *message_out);
/* The same without waiting: a message, or the end, is there. */
bool parent_has_spoken(void);
void parent_send(const struct message *message);

/* Microseconds on the monotonic clock. */
uint64_t clock_us(void);

#endif
