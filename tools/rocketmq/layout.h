/*
 * tools/rocketmq/layout.h -- how a broker's files lie in the store.
 *
 *     topics.json             { "topicConfigTable": { topic: {...} } }
 *     subscriptionGroup.json  { "subscriptionGroupTable": { group: {...} } }
 *     consumerOffset.json     { "offsetTable": { topic@group: { queueId:
 *                               offset } } }
 *     each with a dataVersion, and perhaps other members
 *
 *     table               key                  value
 *     topics              topic                JSON object
 *     subscriptionGroups  group                JSON object
 *     consumerOffsets     topic@group@queueId  decimal offset
 *                         topic@group          {} (imported without queues)
 *     rocketmq.meta       file/member          JSON: every other member
 *
 * Neither a topic nor a group contains '@', so all keys of one "topic@group"
 * lie side by side behind "topic@group@", and no two entries share a key.
 */
#ifndef TOOLS_ROCKETMQ_LAYOUT_H
#define TOOLS_ROCKETMQ_LAYOUT_H

#include <stddef.h>

#define ROCKETMQ_META_TABLE "rocketmq.meta"

enum { ROCKETMQ_FILE_COUNT = 3 };

enum rocketmq_kind {
    ROCKETMQ_CONFIGS, /* Name to object: one key each. */
    ROCKETMQ_OFFSETS, /* topic@group to queue to offset: a key per queue. */
};

struct rocketmq_file {
    const char *name;   /* In the broker's config directory. */
    const char *member; /* The one that holds the table. */
    const char *table;  /* In the store. */
    const char *noun;   /* What an entry of the table is called. */
    enum rocketmq_kind kind;
};

extern const struct rocketmq_file rocketmq_files[ROCKETMQ_FILE_COUNT];

#endif
