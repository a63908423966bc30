/*
 * tools/bench/impact_clients.h -- whose latency is watched while a store has
 * work to do.
 *
 * A read is what a broker does: open a view, get a random key, close the view.
 * A commit is a durable put, to another table. Beside each stands one that does
 * not use the store: a binary search in an array as large as the items, and a
 * bare write and sync of 4 KiB.
 */
#ifndef TOOLS_BENCH_IMPACT_CLIENTS_H
#define TOOLS_BENCH_IMPACT_CLIENTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "engine/stele.h"

/* What they work on. */
struct impact_clients;

struct impact_client {
    const char *name;
    bool bare;      /* Only for comparison. */
    bool reads;     /* So quick that there are many samples. */
    uint64_t burst; /* Samples between two pauses. */
    void (*once)(struct impact_clients *clients);
};

enum { IMPACT_CLIENTS = 4 };
extern const struct impact_client impact_every_client[IMPACT_CLIENTS];

/* `store` has the items 0 to items - 1 and stays the caller's. */
struct impact_clients *impact_clients_create(struct stele *store,
                                             const char *directory,
                                             uint64_t items);
/* Choose the key for the next one. */
void impact_clients_choose(struct impact_clients *clients);
/* Read every item once: nothing is left to be mapped. */
void impact_clients_read_all(struct impact_clients *clients);
/* Dies if the store counts fewer commits than there were. */
void impact_clients_destroy(struct impact_clients *clients);

#endif
