/* tools/bench/bytes_job.c -- see tools/bench/bytes_job.h. */
#include "tools/bench/bytes_job.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>

#include "tools/bench/remove_tree.h"
#include "tools/bench/store.h"
#include "tools/bench/subject.h"
#include "tools/must/must.h"

#define MIB ((uint64_t)1 << 20)

enum {
    LOAD_BATCH_ITEMS = 2000, /* Fits into a small segment. */
    /* What one item of a batch is in the log, at most, and some. */
    ITEM_LOG_BYTES = 384,
    SEED = 1,
    ARGUMENTS = 6,
};

const char bytes_job_verb[] = "--bytes-job";

const struct bytes_job_size bytes_job_sizes[BYTES_JOB_SIZES] = {
    {"1", 1, 100},         {"10", 10, 100},         {"1000", 1000, 10},
    {"100000", 100000, 1}, {"1000000", 1000000, 1}, {"prefix", 0, 1},
};

static void must_be(const char *what, uint64_t found, uint64_t expected)
{
    if (found != expected) {
        die("%" PRIu64 " %s, not %" PRIu64, found, what, expected);
    }
}

/* ---- Stele beside LMDB ------------------------------------------------------ */

enum kind { LOAD, PUT, DELETE, DELETE_PREFIX, KINDS };

static const char *const kind_names[KINDS] = {"load", "put", "delete",
                                              "delete_prefix"};

/* Settled and closed in the end, so that no snapshot becomes due, and no segment is
 * being prepared, behind "begin". (What snapshots cost in the long run is at most a
 * byte for each byte of log, and the amplification has it.) */
static void load(const struct subject *subject, const struct bytes_job *job)
{
    void *store = subject->create(job->directory);
    uint64_t *numbers = numbers_in_order(job->items);

    for (uint64_t first = 0; first < job->items; first += LOAD_BATCH_ITEMS) {
        const uint64_t left = job->items - first;

        subject->put(store, numbers + first,
                     left < LOAD_BATCH_ITEMS ? left : LOAD_BATCH_ITEMS);
    }
    free(numbers);
    if (subject->settle != NULL) {
        subject->settle(store);
    }
    subject->close(store);
}

static void commit_one(const struct subject *subject, enum kind kind,
                       void *store, const uint64_t *numbers, uint64_t count)
{
    switch (kind) {
    case LOAD:
    case PUT:
        subject->put(store, numbers, count);
        return;
    case DELETE:
        subject->remove(store, numbers, count);
        return;
    case DELETE_PREFIX:
        subject->delete_all(store);
        return;
    case KINDS:
        break;
    }
    die("no such work");
}

static void must_be_left(const struct subject *subject, enum kind kind,
                         void *store, const struct bytes_job *job)
{
    const uint64_t touched = job->batch_items * job->commits;
    const bool deleted = kind == DELETE || kind == DELETE_PREFIX;

    must_be("items left", subject->items(store),
            deleted ? job->items - touched : job->items);
}

static void compare(const struct bytes_job *job, enum kind kind)
{
    const struct subject *subject = subject_named(job->whom);
    uint64_t *numbers = numbers_in_order(job->items);
    uint64_t seed = SEED;
    uint64_t before;
    void *store;

    assert(job->batch_items * job->commits <= job->items);
    if (kind != LOAD) {
        random_numbers(numbers, job->batch_items * job->commits, job->items,
                       &seed);
        load(subject, job);
    }
    counted_mark("begin");
    store = (kind == LOAD ? subject->create : subject->open)(job->directory);
    before = subject->commits(store);
    for (uint64_t i = 0; i < job->commits; i++) {
        commit_one(subject, kind, store, numbers + i * job->batch_items,
                   job->batch_items);
    }
    must_be("commits", subject->commits(store) - before, job->commits);
    must_be_left(subject, kind, store, job);
    subject->close(store);
    counted_mark("end");
    free(numbers);
}

/* ---- Stele alone ------------------------------------------------------------ */

static uint64_t puts_of(const struct bytes_job_size *size,
                        const struct bytes_job *job)
{
    return size->puts < job->items ? size->puts : job->items;
}

static uint64_t commits_of(const struct bytes_job_size *size,
                           const struct bytes_job *job)
{
    return size->commits < job->commits ? size->commits : job->commits;
}

static void commit_size(struct stele *store, const struct bytes_job *job,
                        const struct bytes_job_size *size,
                        const uint64_t *numbers)
{
    for (uint64_t i = 0; i < commits_of(size, job); i++) {
        counted_mark("before");
        if (size->puts == 0) {
            (void)bench_store_delete_all_us(store, item_table);
        } else {
            bench_store_commit_puts(store, numbers, puts_of(size, job));
        }
        counted_mark(size->name);
    }
}

/* In segments that hold the largest batch. */
static void commit_sizes(const struct bytes_job *job)
{
    const uint64_t segment_bytes =
        (job->items * ITEM_LOG_BYTES / MIB + 1) * MIB;
    uint64_t *numbers = numbers_in_order(job->items);
    uint64_t commits = 0;
    struct stele *store;

    counted_mark("begin");
    store = bench_store_create_sized(job->directory, segment_bytes);
    for (size_t i = 0; i < BYTES_JOB_SIZES; i++) {
        const struct bytes_job_size *size = &bytes_job_sizes[i];

        commit_size(store, job, size, numbers);
        must_be("items", bench_store_items(store), puts_of(size, job));
        commits += commits_of(size, job);
        bench_store_checkpoint(store);
    }
    must_be("commits", bench_store_commits(store), commits);
    bench_store_close(store);
    counted_mark("end");
    free(numbers);
}

enum order { IN_ORDER, AT_RANDOM };

static void put_all(struct stele *store, const struct bytes_job *job,
                    const uint64_t *numbers)
{
    assert(job->items % job->batch_items == 0);
    for (uint64_t i = 0; i < job->items; i += job->batch_items) {
        bench_store_commit_puts(store, numbers + i, job->batch_items);
    }
}

/* All that is done with the store between an open and a close. */
static void put_passes(struct stele *store, const struct bytes_job *job,
                       uint64_t passes, enum order order)
{
    uint64_t *numbers = numbers_in_order(job->items);
    uint64_t seed = SEED;

    for (uint64_t pass = 0; pass < passes; pass++) {
        if (order == AT_RANDOM) {
            random_numbers(numbers, job->items, job->items, &seed);
        }
        put_all(store, job, numbers);
    }
    must_be("commits", bench_store_commits(store),
            passes * job->items / job->batch_items);
    must_be("items", bench_store_items(store), job->items);
    bench_store_close(store);
    free(numbers);
}

static void overwrite(const struct bytes_job *job)
{
    counted_mark("begin");
    put_passes(bench_store_create(job->directory), job, 1, IN_ORDER);
    counted_mark("load");
    put_passes(bench_store_open(job->directory), job, job->commits, IN_ORDER);
    counted_mark("in_order");
    put_passes(bench_store_open(job->directory), job, job->commits, AT_RANDOM);
    counted_mark("at_random");
}

/* ---- To the child and in it ------------------------------------------------- */

void bytes_job_count(const struct bytes_job *job, struct counted *counted_out)
{
    char items[32];
    char batch_items[32];
    char commits[32];
    const char *const arguments[] = {
        bytes_job_verb, job->work,   job->whom, job->directory,
        items,          batch_items, commits,   NULL,
    };

    snprintf(items, sizeof items, "%" PRIu64, job->items);
    snprintf(batch_items, sizeof batch_items, "%" PRIu64, job->batch_items);
    snprintf(commits, sizeof commits, "%" PRIu64, job->commits);
    if (mkdir(job->directory, 0700) != 0) {
        die("%s: %s", job->directory, strerror(errno));
    }
    counted_run(arguments, job->directory, counted_out);
    remove_tree(job->directory);
}

static void work(const struct bytes_job *job)
{
    if (strcmp(job->work, "sizes") == 0) {
        commit_sizes(job);
        return;
    }
    if (strcmp(job->work, "overwrite") == 0) {
        overwrite(job);
        return;
    }
    for (enum kind kind = LOAD; kind < KINDS; kind++) {
        if (strcmp(job->work, kind_names[kind]) == 0) {
            compare(job, kind);
            return;
        }
    }
    die("%s: no such work", job->work);
}

int bytes_job_main(int argument_count, char **arguments)
{
    if (argument_count != ARGUMENTS) {
        die("%s is not for you", bytes_job_verb);
    }
    /* What it does is for its parent alone. */
    if (prctl(PR_SET_PDEATHSIG, SIGKILL) != 0) {
        die("prctl: %s", strerror(errno));
    }
    work(&(struct bytes_job){
        .work = arguments[0],
        .whom = arguments[1],
        .directory = arguments[2],
        .items = strtoull(arguments[3], NULL, 10),
        .batch_items = strtoull(arguments[4], NULL, 10),
        .commits = strtoull(arguments[5], NULL, 10),
    });
    return 0;
}
