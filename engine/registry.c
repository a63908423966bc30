/* engine/registry.c -- see engine/registry.h. */
#include "engine/registry.h"

#include <pthread.h>
#include <stdlib.h>

#include "base/error.h"

struct store_entry {
    uint64_t device;
    uint64_t inode;
    struct store_entry *next;
};

/* The only state of the library that is not in a handle. */
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static struct store_entry *entries;

enum stele_status registry_claim(uint64_t device, uint64_t inode,
                                 struct store_entry **entry_out,
                                 struct stele_error *error)
{
    struct store_entry *fresh = malloc(sizeof *fresh);
    const struct store_entry *entry;

    if (fresh == NULL) {
        return error_no_memory(error, "store registry");
    }
    *fresh = (struct store_entry){.device = device, .inode = inode};
    pthread_mutex_lock(&mutex);
    for (entry = entries; entry != NULL; entry = entry->next) {
        if (entry->device == device && entry->inode == inode) {
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

void registry_release(struct store_entry *entry)
{
    if (entry == NULL) {
        return;
    }
    pthread_mutex_lock(&mutex);
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
