/* tools/bench/memory.c -- see tools/bench/memory.h. */
#include "tools/bench/memory.h"

#include <errno.h>
#include <malloc.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "tools/must/must.h"

static struct {
    pthread_t thread;
    _Atomic bool stopping;
    uint64_t first;
    uint64_t most;
} watch;

/* RssAnon of /proc/self/status, in bytes. */
static uint64_t anonymous_bytes(void)
{
    FILE *file = fopen("/proc/self/status", "r");
    unsigned long long kib = 0;
    char line[256];

    if (file == NULL) {
        die("/proc/self/status: %s", strerror(errno));
    }
    while (fgets(line, sizeof line, file) != NULL &&
           sscanf(line, "RssAnon: %llu kB", &kib) != 1) {
    }
    fclose(file);
    return (uint64_t)kib << 10;
}

static void look(void)
{
    const uint64_t now = anonymous_bytes();

    if (now > watch.most) {
        watch.most = now;
    }
}

static void *watch_main(void *unused)
{
    const struct timespec pause = {.tv_nsec = 300000};

    (void)unused;
    while (!atomic_load(&watch.stopping)) {
        look();
        (void)nanosleep(&pause, NULL);
    }
    return NULL;
}

void memory_watch(void)
{
    malloc_trim(0); /* What was freed before is not there to be used again. */
    watch.first = anonymous_bytes();
    watch.most = watch.first;
    atomic_store(&watch.stopping, false);
    if (pthread_create(&watch.thread, NULL, watch_main, NULL) != 0) {
        die("pthread_create");
    }
}

uint64_t memory_most(void)
{
    atomic_store(&watch.stopping, true);
    pthread_join(watch.thread, NULL);
    look();
    return watch.most - watch.first;
}
