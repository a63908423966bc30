/* tools/rocketmq/layout.c -- see tools/rocketmq/layout.h. */
#include "tools/rocketmq/layout.h"

const struct rocketmq_file rocketmq_files[ROCKETMQ_FILE_COUNT] = {
    {"topics.json", "topicConfigTable", "topics", "topics", ROCKETMQ_CONFIGS},
    {"subscriptionGroup.json", "subscriptionGroupTable", "subscriptionGroups",
     "groups", ROCKETMQ_CONFIGS},
    {"consumerOffset.json", "offsetTable", "consumerOffsets", "offsets",
     ROCKETMQ_OFFSETS},
};
