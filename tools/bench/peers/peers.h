/*
 * tools/bench/peers/peers.h -- the peers whose libraries were there to build with.
 */
#ifndef TOOLS_BENCH_PEERS_PEERS_H
#define TOOLS_BENCH_PEERS_PEERS_H

#include "tools/bench/peers/peer.h"

enum { PEERS_MAX = 16 };

/* Stele first; NULL behind the last. */
extern const struct peer *const peers[];

#endif
