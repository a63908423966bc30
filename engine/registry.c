/* engine/registry.c -- see engine/registry.h. */
#include "engine/registry.h"

#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "base/error.h"

struct store_entry {
    uint64_t device;
    uint64_t inode;
    uint64_t process;
    struct io_file *lock_file; /* NULL: none, or inherited and given up. */
    struct store_entry *next;
};

/* With LMDB environments that a child may not close (engine/index_lmdb.c), the
 * only state of the library that is not in a handle. */
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static struct store_entry *entries;
static _Atomic uint64_t process_number = 1;
static uint64_t fork_count; /* By this process and those before it. */

/* ---- Forks -------------------------------------------------------------------- */

/* Held across the fork, so that the child finds the list whole. Never held for
 * longer than a walk over it. */
static void before_fork(void)
{
    pthread_mutex_lock(&mutex);
    fork_count++;
}

static void in_parent(void)
{
    pthread_mutex_unlock(&mutex);
}

static void in_child(void)
{
    atomic_fetch_add_explicit(&process_number, 1, memory_order_relaxed);
    for (struct store_entry *entry = entries; entry != NULL;
         entry = entry->next) {
        io_file_close(entry->lock_file); /* The parent still has it. */
        entry->lock_file = NULL;
    }
    pthread_mutex_unlock(&mutex);
}

static int watch_result;

/* When the library is loaded, not when it is first needed: handlers run before a
 * fork in the reverse order, and a program that opens stores under a lock which
 * it takes in a handler of its own must have taken it before we take ours. */
__attribute__((constructor)) static void watch_forks(void)
{
    /* In a child they run in the order in which they were registered: ours, which
     * frees, behind the allocator's, which it registers when it is first used. */
    void *volatile first = malloc(1);

    free(first);
    watch_result = pthread_atfork(before_fork, in_parent, in_child);
}

uint64_t registry_process(void)
{
    /* Relaxed: it changes only while the process has one thread. */
    return atomic_load_explicit(&process_number, memory_order_relaxed);
}

enum stele_status registry_check_process(uint64_t process,
                                         struct stele_error *error)
{
    if (process == registry_process()) {
        return STELE_OK;
    }
    return error_set(error, STELE_FORKED,
                     "the handle belongs to the process that forked this one: "
                     "only close it here, and open the store anew");
}

/* ---- Claims ------------------------------------------------------------------- */

enum stele_status registry_claim(uint64_t device, uint64_t inode,
                                 struct store_entry **entry_out,
                                 struct stele_error *error)
{
    struct store_entry *fresh = malloc(sizeof *fresh);
    const struct store_entry *entry;

    if (fresh == NULL || watch_result != 0) {
        free(fresh);
        return error_no_memory(error, "store registry");
    }
    *fresh = (struct store_entry){
        .device = device, .inode = inode, .process = registry_process()};
    pthread_mutex_lock(&mutex);
    for (entry = entries; entry != NULL; entry = entry->next) {
        if (entry->device == device && entry->inode == inode &&
            entry->process == fresh->process) {
            break;
        }
    }
    if (entry == NULL) {
        fresh->next = entries;
        entries = fresh;
    }
    pthread_mutex_unlock(&mutex);
    if (entry != NULL) {
        free(fresh);
        return error_set(error, STELE_LOCKED,
                         "this process has the store open already");
    }
    *entry_out = fresh;
    return STELE_OK;
}

static uint64_t forks_so_far(void)
{
    uint64_t count;

    pthread_mutex_lock(&mutex);
    count = fork_count;
    pthread_mutex_unlock(&mutex);
    return count;
}

enum stele_status registry_open_lock(struct store_entry *entry,
                                     struct io_dir *dir, const char *name,
                                     enum io_open_mode mode,
                                     struct io_file **file_out,
                                     struct stele_error *error)
{
    for (;;) {
        const uint64_t forks = forks_so_far();
        struct io_file *file;
        const enum stele_status status =
            io_file_open(dir, name, mode, &file, error);

        if (status != STELE_OK) {
            return status;
        }
        pthread_mutex_lock(&mutex);
        assert(entry->lock_file == NULL);
        if (fork_count == forks) {
            entry->lock_file = file;
        }
        pthread_mutex_unlock(&mutex);
        if (entry->lock_file == file) {
            *file_out = file;
            return STELE_OK;
        }
        io_file_close(file); /* A child has it, and does not know. */
    }
}

void registry_release(struct store_entry *entry)
{
    if (entry == NULL) {
        return;
    }
    pthread_mutex_lock(&mutex);
    io_file_close(entry->lock_file);
    for (struct store_entry **link = &entries; *link != NULL;
         link = &(*link)->next) {
        if (*link == entry) {
            *link = entry->next;
            break;
        }
    }
    pthread_mutex_unlock(&mutex);
    free(entry);
}
