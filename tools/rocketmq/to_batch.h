/*
 * tools/rocketmq/to_batch.h -- the text of a broker's file into operations.
 *
 * Touches no file and no store: what is read is untrusted, and can be fuzzed
 * here. tools/rocketmq/layout.h says what becomes what.
 */
#ifndef TOOLS_ROCKETMQ_TO_BATCH_H
#define TOOLS_ROCKETMQ_TO_BATCH_H

#include "base/bytes.h"
#include "engine/stele.h"
#include "tools/rocketmq/layout.h"

/*
 * Add to `batch`: clear what the store has of this file, put what `text` says.
 * CORRUPT if the text is not what the broker writes, TOO_BIG if a name does not
 * fit into a key; the message says where. After a failure the batch holds part
 * of the operations and must not be committed.
 */
enum stele_status rocketmq_to_batch(const struct rocketmq_file *file,
                                    struct bytes text,
                                    struct stele_batch *batch,
                                    uint64_t *entry_count_out,
                                    struct stele_error *error) STELE_MUST_CHECK;

#endif
