/*
 * tools/bench/impact_background.h -- what readers and committers are
 * disturbed by: a thread that commits a large durable batch, takes a checkpoint
 * and takes a snapshot, again and again, and notes when it did each. Filling
 * the batch is not counted.
 */
#ifndef TOOLS_BENCH_IMPACT_BACKGROUND_H
#define TOOLS_BENCH_IMPACT_BACKGROUND_H

#include <stddef.h>
#include <stdint.h>

#include "engine/stele.h"

enum impact_kind {
    IMPACT_BATCH,
    IMPACT_CHECKPOINT,
    IMPACT_SNAPSHOT,
    IMPACT_KINDS
};

struct impact_background;

/* Of `batch_items` of the items below `items`, in random order. The seed is not
 * 0. */
struct impact_background *impact_background_start(struct stele *store,
                                                  uint64_t items,
                                                  uint64_t batch_items,
                                                  uint64_t seed);
/* How often all three were done so far. */
uint64_t impact_background_cycles(const struct impact_background *background);
/* Join the thread, when it has ended its cycle. Dies unless the store counts as
 * many checkpoints and snapshots. */
void impact_background_stop(struct impact_background *background);

/* Once it is stopped: how much work of this kind (IMPACT_KINDS: any) was under
 * way at some time from `begin_ns` to `end_ns`. */
size_t impact_background_count(const struct impact_background *background,
                               enum impact_kind kind, uint64_t begin_ns,
                               uint64_t end_ns);
void impact_background_destroy(struct impact_background *background);

#endif
