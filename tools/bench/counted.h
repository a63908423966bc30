/*
 * tools/bench/counted.h -- a job in a process of its own, whose writes and syncs
 * are counted from outside: by tests/preload/sync_counter.c, which is loaded
 * into it and stands between it and the C library.
 */
#ifndef TOOLS_BENCH_COUNTED_H
#define TOOLS_BENCH_COUNTED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What kind of file it is: as Stele names them, so LMDB's are all "other". Pipes
 * and the like are left out. */
enum counted_class {
    COUNTED_LOG,
    COUNTED_PREPARED, /* A segment of the log that is not yet in use. */
    COUNTED_ANCHOR,
    COUNTED_INDEX,
    COUNTED_DIRECTORY,
    COUNTED_OTHER, /* Stele's snapshots, and the text in LOCK. */
    COUNTED_CLASSES,
};

extern const char *const counted_class_names[COUNTED_CLASSES];

/* Since the job began, or between two marks. */
struct counts {
    uint64_t syncs[COUNTED_CLASSES];
    uint64_t bytes[COUNTED_CLASSES]; /* Written. */
};

struct counts counts_between(const struct counts *begin,
                             const struct counts *end);
uint64_t counts_syncs(const struct counts *counts);
uint64_t counts_bytes(const struct counts *counts);

struct counted_mark {
    char name[32];
    struct counts counts;
};

/* In the order in which they were made. */
struct counted {
    struct counted_mark *marks;
    size_t count;
};

/* Is there a counter beside this program? Sanitizer builds have none. */
bool counted_is_possible(void);

/* Run this program with `arguments`, NULL behind the last, and wait for it. Dies
 * if it fails. `directory` is for the counter's file. */
void counted_run(const char *const *arguments, const char *directory,
                 struct counted *counted_out);
void counted_free(struct counted *counted);

/* The first mark of that name. Dies if there is none. */
const struct counts *counted_at(const struct counted *counted,
                                const char *name);

/* In the job: note the counts under this name. Dies if nobody counts. */
void counted_mark(const char *name);

#endif
