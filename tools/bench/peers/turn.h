/*
 * tools/bench/peers/turn.h -- one peer, opened, and what is done to it besides what
 * is measured.
 */
#ifndef TOOLS_BENCH_PEERS_TURN_H
#define TOOLS_BENCH_PEERS_TURN_H

#include "tools/bench/peers/peer.h"
#include "tools/bench/store.h"

/* Items in memory, ready to be put or deleted. */
struct turn_items {
    struct peer_item *items;
    char (*keys)[ITEM_KEY_BYTES + 1];
};

struct turn_items turn_items_create(uint64_t count_max);
/* From now on the first `count` are those with these numbers; NULL: `first` and up. */
void turn_items_name(struct turn_items *items, const uint64_t *numbers,
                     uint64_t first, uint64_t count);
void turn_items_destroy(struct turn_items *items);

struct turn {
    const struct peer *peer;
    void *db;
    void *thread; /* The calling thread's. */
};

/* The peer's store in `directory`, which is made if there is none. False: it cannot
 * be run here. */
bool turn_open(struct turn *turn, const struct peer *peer,
               const char *directory);
void turn_close(struct turn *turn);

/* Put the first `count` of the items, in batches that all peers are fine with. */
void turn_put(const struct turn *turn, const struct turn_items *items,
              uint64_t count);
/* Put the items 0 to `count` - 1 of a new store; renames `items`. */
void turn_load(const struct turn *turn, struct turn_items *items,
               uint64_t count);
/* Dies if there are not `expected` items in it. */
void turn_must_hold(const struct turn *turn, uint64_t expected);

#endif
