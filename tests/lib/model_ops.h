/*
 * tests/lib/model_ops.h -- random batches that meet the interesting cases.
 *
 * Keys come from so few that they collide all the time; the operations of one
 * batch like to fall on each other's keys and ranges; expectations mostly hold.
 */
#ifndef TESTS_LIB_MODEL_OPS_H
#define TESTS_LIB_MODEL_OPS_H

#include <stddef.h>

#include "engine/stele.h"
#include "tests/lib/model.h"
#include "tests/lib/random.h"

enum { MODEL_BATCH_OPS_MAX = 500 };

/* How a batch is made up. */
enum model_batch_kind {
    MODEL_BATCH_SMALL,   /* 1 to 8 of everything. */
    MODEL_BATCH_BULK,    /* Hundreds, mostly puts. */
    MODEL_BATCH_REPLACE, /* A table cleared and filled again. */
    MODEL_BATCH_RANGES,  /* Range deletes, nested and overlapping. */
};

enum model_batch_kind model_random_batch_kind(struct random_source *random);

/* Fill `ops` (room for MODEL_BATCH_OPS_MAX); how many there are. */
size_t model_random_ops(const struct model *model, struct random_source *random,
                        enum model_batch_kind kind, struct model_op *ops);

/* Add the operations to the store's own batch. */
enum stele_status model_ops_add(const struct model_op *ops, size_t count,
                                struct stele_batch *batch,
                                struct stele_error *error) STELE_MUST_CHECK;

unsigned model_random_table(struct random_source *random);

/* `table` may be MODEL_TABLES. A prefix is short, and may be empty. */
void model_random_key(struct random_source *random, unsigned table,
                      struct model_bytes *key_out);
void model_random_prefix(struct random_source *random, unsigned table,
                         struct model_bytes *prefix_out);

#endif
