/*
 * tests/test_commit_gates.c -- who waits for a group is woken, whichever group it comes
 * into.
 *
 * Most batches are so large that a group has room for one of them: committers are left
 * over, again and again, and lead without having been the first at their gate. Small ones
 * and asynchronous ones queue up between them. Each must return, with an LSN of its own;
 * one that is forgotten hangs, and the test's timeout tells.
 */
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "engine/stele.h"
#include "tests/lib/run.h"
#include "tests/lib/temp_dir.h"

enum {
    COMMITTERS = 24,
    COMMITS = 15,
    LARGE_BYTES = 600 * 1024, /* Two of them are more than a group of 1 MiB. */
    ASYNC_EVERY = 5,
};

static struct stele *store;
static _Atomic uint64_t told; /* Asynchronous commits that are done. */
static char value[LARGE_BYTES];

struct committer {
    pthread_t thread;
    unsigned number;
    uint64_t lsns[COMMITS];
};

static void on_done(void *context, enum stele_status status,
                    const struct stele_error *error)
{
    (void)context;
    run_expect_ok(status, error, "asynchronous commit");
    atomic_fetch_add(&told, 1);
}

static struct stele_batch *batch_of(const struct committer *self,
                                    unsigned commit)
{
    const bool large = (self->number + commit) % 4 != 0;
    struct stele_error error;
    struct stele_batch *batch;

    run_expect_ok(stele_batch_create(&batch, &error), &error, "batch");
    run_expect_ok(stele_batch_put(batch, "t", &self->number,
                                  sizeof self->number, value,
                                  large ? LARGE_BYTES : 1, &error),
                  &error, "put");
    return batch;
}

static void *commit_main(void *context)
{
    struct committer *self = context;
    struct stele_batch *pending[COMMITS] = {NULL};

    for (unsigned commit = 0; commit < COMMITS; commit++) {
        struct stele_batch *batch = batch_of(self, commit);
        struct stele_commit_result result = {0};
        struct stele_error error;

        if (commit % ASYNC_EVERY == 0) {
            run_expect_ok(stele_commit_async(store, batch, STELE_DURABLE, NULL,
                                             on_done, NULL, &error),
                          &error, "commit");
            pending[commit] = batch;
            continue;
        }
        run_expect_ok(
            stele_commit(store, batch, STELE_DURABLE, &result, &error), &error,
            "commit");
        self->lsns[commit] = result.lsn;
        stele_batch_destroy(batch);
    }
    while (atomic_load(&told) < COMMITTERS * (COMMITS / ASYNC_EVERY)) {
        sched_yield();
    }
    for (unsigned commit = 0; commit < COMMITS; commit++) {
        stele_batch_destroy(pending[commit]);
    }
    return NULL;
}

static int compare(const void *left, const void *right)
{
    const uint64_t a = *(const uint64_t *)left;
    const uint64_t b = *(const uint64_t *)right;

    return (a > b) - (a < b);
}

static void everybody_left_over_is_woken(void **state)
{
    static struct committer committers[COMMITTERS];
    static uint64_t lsns[COMMITTERS * COMMITS];
    struct stele_options options;
    struct stele_error error;
    char *path = temp_dir_make();
    size_t count = 0;

    (void)state;
    stele_options_init(&options);
    options.mode = STELE_OPEN_CREATE;
    run_expect_ok(stele_open(path, &options, &store, &error), &error, "open");
    for (unsigned i = 0; i < COMMITTERS; i++) {
        committers[i].number = i;
        assert_int_equal(pthread_create(&committers[i].thread, NULL,
                                        commit_main, &committers[i]),
                         0);
    }
    for (unsigned i = 0; i < COMMITTERS; i++) {
        assert_int_equal(pthread_join(committers[i].thread, NULL), 0);
        for (unsigned commit = 0; commit < COMMITS; commit++) {
            if (commit % ASYNC_EVERY != 0) {
                lsns[count++] = committers[i].lsns[commit];
            }
        }
    }
    qsort(lsns, count, sizeof lsns[0], compare);
    for (size_t i = 0; i < count; i++) {
        assert_true(lsns[i] > (i == 0 ? 0 : lsns[i - 1]));
    }
    run_expect_ok(stele_close(store, &error), &error, "close");
    temp_dir_remove(path);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(everybody_left_over_is_woken),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
