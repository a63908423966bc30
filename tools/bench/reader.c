/* tools/bench/reader.c -- see tools/bench/reader.h. */
#include "tools/bench/reader.h"

#include <pthread.h>
#include <string.h>

#include "tools/bench/stats.h"
#include "tools/bench/store.h"
#include "tools/must/must.h"

enum { THREADS_MAX = 8, ENTRY_BYTES_MAX = ITEM_KEY_BYTES + ITEM_VALUE_BYTES };

/* ---- What is done with an item ------------------------------------------------- */

/* Keeps the compiler from leaving a copy out that nobody reads. */
static void use(const void *data)
{
    __asm__ volatile("" : : "r"(data) : "memory");
}

void reader_take(const void *key, size_t key_bytes, const void *value,
                 size_t value_bytes, bool touch_only)
{
    char copy[ENTRY_BYTES_MAX];

    if (key_bytes != ITEM_KEY_BYTES || value_bytes != ITEM_VALUE_BYTES) {
        die("an item of %zu and %zu bytes", key_bytes, value_bytes);
    }
    if (touch_only) {
        copy[0] = ((const char *)value)[value_bytes - 1];
    } else {
        memcpy(copy, key, ITEM_KEY_BYTES);
        memcpy(copy + ITEM_KEY_BYTES, value, ITEM_VALUE_BYTES);
    }
    use(copy);
}

/* ---- Stele ---------------------------------------------------------------------- */

static void *open_view(void *source)
{
    struct stele_error error = {0};
    struct stele_view *view;

    must(stele_view_open(source, &view, &error), &error);
    return view;
}

static void get(void *view, const struct reader_keys *keys, bool touch_only)
{
    struct stele_error error = {0};

    for (uint64_t i = 0; i < keys->count; i++) {
        const char *key = keys->keys + i * ITEM_KEY_BYTES;
        struct stele_value value;

        must(stele_view_get(view, item_table, key, ITEM_KEY_BYTES, &value,
                            &error),
             &error);
        reader_take(key, ITEM_KEY_BYTES, value.data, value.bytes, touch_only);
    }
}

static uint64_t scan(void *view, bool touch_only)
{
    struct stele_error error = {0};
    struct stele_cursor *cursor;
    struct stele_entry entry;
    enum stele_status status;
    uint64_t count = 0;

    must(stele_cursor_open(view, item_table, NULL, 0, &cursor, &error), &error);
    while ((status = stele_cursor_next(cursor, &entry, &error)) == STELE_OK) {
        reader_take(entry.key, entry.key_bytes, entry.value.data,
                    entry.value.bytes, touch_only);
        count++;
    }
    if (status != STELE_NOT_FOUND) {
        must(status, &error);
    }
    stele_cursor_close(cursor);
    return count;
}

static void close_view(void *view)
{
    stele_view_close(view);
}

const struct reader stele_reader = {
    .open = open_view,
    .get = get,
    .scan = scan,
    .close = close_view,
};

/* ---- Threads ---------------------------------------------------------------------- */

struct run {
    pthread_t thread;
    const struct reader *reader;
    void *view;
    struct reader_keys keys; /* NULL: scan. */
    bool touch_only;
    uint64_t count; /* Items read. */
};

static void *run_main(void *context)
{
    struct run *run = context;

    if (run->keys.keys == NULL) {
        run->count = run->reader->scan(run->view, run->touch_only);
    } else {
        run->reader->get(run->view, &run->keys, run->touch_only);
        run->count = run->keys.count;
    }
    return NULL;
}

/* The part of the keys that is one thread's. */
static struct reader_keys part(const struct reader_keys *keys, size_t index,
                               size_t threads)
{
    const uint64_t each = keys->count / threads;

    return (struct reader_keys){
        .keys = keys->keys + index * each * ITEM_KEY_BYTES,
        .count = each,
    };
}

double reader_run(const struct reader *reader, void *source, size_t threads,
                  const struct reader_keys *keys, bool touch_only)
{
    struct run runs[THREADS_MAX];
    uint64_t start_ns;
    uint64_t count = 0;
    double seconds;

    for (size_t i = 0; i < threads; i++) {
        runs[i] = (struct run){
            .reader = reader,
            .view = reader->open(source),
            .touch_only = touch_only,
        };
        if (keys != NULL) {
            runs[i].keys = part(keys, i, threads);
        }
    }
    start_ns = clock_ns();
    for (size_t i = 1; i < threads; i++) {
        if (pthread_create(&runs[i].thread, NULL, run_main, &runs[i]) != 0) {
            die("thread %zu cannot be started", i);
        }
    }
    (void)run_main(&runs[0]);
    for (size_t i = 1; i < threads; i++) {
        pthread_join(runs[i].thread, NULL);
    }
    seconds = (double)(clock_ns() - start_ns) / 1e9;
    for (size_t i = 0; i < threads; i++) {
        count += runs[i].count;
        reader->close(runs[i].view);
    }
    return (double)count / seconds / 1e6;
}
