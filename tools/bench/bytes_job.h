/*
 * tools/bench/bytes_job.h -- what the workload "bytes" has counted: commits to a
 * store in a process that does nothing else.
 */
#ifndef TOOLS_BENCH_BYTES_JOB_H
#define TOOLS_BENCH_BYTES_JOB_H

#include <stdint.h>

#include "tools/bench/counted.h"

struct bytes_job {
    const char *work;
    const char *whom;      /* "stele" or "lmdb". */
    const char *directory; /* Made for it, and removed. */
    uint64_t items;
    uint64_t batch_items;
    uint64_t commits;
};

/*
 * The works. Each checks that it was really done.
 *
 * "load", "put", "delete", "delete_prefix": `commits` of `batch_items` items
 * each: put into an empty store in order; or, of the `items` in it, at random
 * and none twice, put again or deleted; or all of them deleted by their prefix
 * in one. Between the marks "begin" and "end": open, commits, checkpoint, close.
 *
 * "sizes", of Stele: what bytes_job_sizes says, but each with no more than `items`
 * puts and `commits` times. Mark "begin", then "before" and the size's name around
 * each commit, "end" when it is closed.
 *
 * "overwrite", of Stele: mark "begin"; `items` into an empty store, in order, mark
 * "load"; all of them again `commits` times in order, mark "in_order"; as many times
 * each in another random order, mark "at_random". The store is closed before each
 * mark. All commits are of `batch_items`; segments have the default length.
 */
enum { BYTES_JOB_SIZES = 6 };

struct bytes_job_size {
    const char *name;
    uint64_t puts; /* 0: a delete of all items by their prefix. */
    uint64_t commits;
};

extern const struct bytes_job_size bytes_job_sizes[BYTES_JOB_SIZES];

/* Do it in a child and hand back what was counted. */
void bytes_job_count(const struct bytes_job *job, struct counted *counted_out);

/* In the child: its first argument, and what to do with the others. */
extern const char bytes_job_verb[];
int bytes_job_main(int argument_count, char **arguments);

#endif
