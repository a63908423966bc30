/* tools/bench/reopen.c -- see tools/bench/reopen.h. */
#include "tools/bench/reopen.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tools/bench/stats.h"
#include "tools/bench/store.h"
#include "tools/must/must.h"

enum { PATH_BYTES = 4096 };

/* In a child: one record a commit, of items that are there, and dead. */
static void commit_and_die(const char *directory, uint64_t records)
{
    struct stele *store = bench_store_open(directory);
    struct stele_error error = {0};
    struct stele_batch *batch;

    must(stele_batch_create(&batch, &error), &error);
    for (uint64_t i = 0; i < records; i++) {
        char key[ITEM_KEY_BYTES + 1];

        item_key(key, i % REOPEN_ITEMS_LEAST);
        stele_batch_clear(batch);
        must(stele_batch_put(batch, item_table, key, ITEM_KEY_BYTES, item_value,
                             ITEM_VALUE_BYTES, &error),
             &error);
        must(stele_commit(store, batch, STELE_RELAXED, NULL, &error), &error);
    }
    must(stele_sync(store, &error), &error);
    raise(SIGKILL);
}

void reopen_leave_tail(const char *directory, uint64_t records)
{
    const pid_t pid = fork();
    int outcome = 0;

    if (pid < 0) {
        die("fork: %s", strerror(errno));
    }
    if (pid == 0) {
        commit_and_die(directory, records);
        _exit(1);
    }
    if (waitpid(pid, &outcome, 0) != pid || !WIFSIGNALED(outcome) ||
        WTERMSIG(outcome) != SIGKILL) {
        die("the process to be killed ended by itself");
    }
}

double reopen_us(const char *directory, uint64_t replayed)
{
    struct stele_stats stats;
    const uint64_t start_ns = clock_ns();
    struct stele *store = bench_store_open(directory);
    const double us = (double)(clock_ns() - start_ns) / 1e3;

    stats = bench_store_stats(store);
    if (stats.recovery_replayed_records != replayed || stats.index_rebuilt) {
        die("an open replayed %llu records, not %llu",
            (unsigned long long)stats.recovery_replayed_records,
            (unsigned long long)replayed);
    }
    bench_store_close(store);
    return us;
}

void reopen_remove_index(const char *directory)
{
    static const char *const names[] = {"data.mdb", "lock.mdb", ""};

    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        char path[PATH_BYTES];

        snprintf(path, sizeof path, "%s/store/index/%s", directory, names[i]);
        if (remove(path) != 0) {
            die("%s: %s", path, strerror(errno));
        }
    }
}
