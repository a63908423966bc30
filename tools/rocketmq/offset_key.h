/*
 * tools/rocketmq/offset_key.h -- keys of the table consumerOffsets.
 *
 *     topic@group            exactly one '@'
 *     topic@group@queueId    behind the last '@' a queue id, written as the
 *                            broker does: decimal, 32 bits, no leading zeros
 */
#ifndef TOOLS_ROCKETMQ_OFFSET_KEY_H
#define TOOLS_ROCKETMQ_OFFSET_KEY_H

#include <stdbool.h>

#include "base/bytes.h"

bool rocketmq_is_topic_at_group(struct bytes text);

/* Whether `text` is an integer in the one form it is printed in. */
bool rocketmq_is_queue_id(struct bytes text);
bool rocketmq_is_offset(struct bytes text); /* 64 bits. */

/* Take "topic@group@queueId" apart. Both parts borrow from `key`. */
bool rocketmq_split_offset_key(struct bytes key,
                               struct bytes *topic_at_group_out,
                               struct bytes *queue_id_out);

#endif
