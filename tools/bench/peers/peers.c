/* tools/bench/peers/peers.c -- see tools/bench/peers/peers.h. */
#include "tools/bench/peers/peers.h"

#include <assert.h>

/* STELE_BENCH_PEERS comes from CMakeLists.txt: &peer_stele, &peer_lmdb, ... */
const struct peer *const peers[] = {STELE_BENCH_PEERS, NULL};

static_assert(sizeof peers / sizeof peers[0] <= PEERS_MAX + 1, "PEERS_MAX");
