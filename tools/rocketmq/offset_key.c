/* tools/rocketmq/offset_key.c -- see tools/rocketmq/offset_key.h. */
#include "tools/rocketmq/offset_key.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { INTEGER_TEXT_BYTES = 24 }; /* "-9223372036854775808" and its NUL. */

bool rocketmq_is_topic_at_group(struct bytes text)
{
    const char *data = text.data;
    size_t count = 0;

    for (size_t i = 0; i < text.size; i++) {
        count += data[i] == '@' ? 1 : 0;
    }
    return count == 1;
}

/* Printing what was parsed gives the text again: then nothing is lost, and no
 * two texts stand for the same number. */
static bool is_integer(struct bytes text, int64_t min, int64_t max)
{
    char parsed[INTEGER_TEXT_BYTES];
    char printed[INTEGER_TEXT_BYTES];
    int64_t number;

    if (text.size == 0 || text.size >= sizeof parsed) {
        return false;
    }
    memcpy(parsed, text.data, text.size);
    parsed[text.size] = '\0';
    errno = 0;
    number = strtoll(parsed, NULL, 10);
    if (errno != 0 || number < min || number > max) {
        return false;
    }
    snprintf(printed, sizeof printed, "%" PRId64, number);
    return strlen(printed) == text.size &&
           memcmp(printed, text.data, text.size) == 0;
}

bool rocketmq_is_queue_id(struct bytes text)
{
    return is_integer(text, INT32_MIN, INT32_MAX);
}

bool rocketmq_is_offset(struct bytes text)
{
    return is_integer(text, INT64_MIN, INT64_MAX);
}

bool rocketmq_split_offset_key(struct bytes key,
                               struct bytes *topic_at_group_out,
                               struct bytes *queue_id_out)
{
    const char *data = key.data;
    const char *at = key.size == 0 ? NULL : memrchr(data, '@', key.size);
    struct bytes topic_at_group;
    struct bytes queue_id;

    if (at == NULL) {
        return false;
    }
    topic_at_group = (struct bytes){data, (size_t)(at - data)};
    queue_id = (struct bytes){at + 1, key.size - topic_at_group.size - 1};
    if (!rocketmq_is_topic_at_group(topic_at_group) ||
        !rocketmq_is_queue_id(queue_id)) {
        return false;
    }
    *topic_at_group_out = topic_at_group;
    *queue_id_out = queue_id;
    return true;
}
