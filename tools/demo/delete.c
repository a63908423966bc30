/* tools/demo/delete.c -- topics and their offsets, deleted in Stele's way. */
#include <stdio.h>
#include <string.h>

#include "tools/demo/demo.h"

enum { WARM_UP_KEYS = 20000 };

static void add_topic(struct stele_batch *batch, const char *topic)
{
    struct stele_error error = {0};
    char prefix[1024];

    /* The keys of its offsets are topic@group@queue. */
    snprintf(prefix, sizeof prefix, "%s@", topic);
    must(stele_batch_delete(batch, "topics", topic, strlen(topic), &error),
         &error);
    must(stele_batch_delete_prefix(batch, "consumerOffsets", prefix,
                                   strlen(prefix), &error),
         &error);
}

/* Neither way is to be charged for the first use of a new process's memory, a
 * page fault each 4 KiB: measured is a process that has been at work. */
static void warm_up(struct stele *store)
{
    struct stele_error error = {0};
    struct stele_batch *batch;

    must(stele_batch_create(&batch, &error), &error);
    for (int i = 0; i < WARM_UP_KEYS; i++) {
        char key[32];
        const int key_bytes = snprintf(key, sizeof key, "warm-up/%d", i);

        must(stele_batch_put(batch, "warm-up", key, (size_t)key_bytes, key,
                             (size_t)key_bytes, &error),
             &error);
    }
    must(stele_commit(store, batch, STELE_DURABLE, NULL, &error), &error);
    stele_batch_destroy(batch);
}

void demo_delete(const char *store_path, const char *delete_file, size_t first,
                 size_t count, size_t per_batch)
{
    struct text_file names = text_file_read(delete_file);
    struct stele *store = demo_store_open(store_path);
    struct stele_error error = {0};
    struct stele_batch *batch;
    uint64_t begin_ns;

    if (first > names.line_count || count > names.line_count - first ||
        per_batch == 0) {
        die("%s: not %zu topics", delete_file, first + count);
    }
    warm_up(store);
    begin_ns = mark_begin();
    must(stele_batch_create(&batch, &error), &error);
    for (size_t i = 0; i < count; i++) {
        add_topic(batch, names.lines[first + i]);
        if ((i + 1) % per_batch == 0 || i + 1 == count) {
            must(stele_commit(store, batch, STELE_DURABLE, NULL, &error),
                 &error);
            stele_batch_clear(batch);
        }
    }
    printf("%llu\n", (unsigned long long)mark_end(begin_ns));
    stele_batch_destroy(batch);
    demo_store_close(store);
    text_file_free(&names);
}
