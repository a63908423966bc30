/*
 * tools/demo/storm.c -- commit without pause until killed, and find out
 * afterwards whether the store kept every promise.
 *
 * A batch is named by (run, thread, batch). It puts as many keys as its name
 * says, run/thread/batch/i, each with the name as its value. Only when
 * stele_commit() has returned is the name written to the file of acks.
 */
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tools/demo/demo.h"

enum { NAME_BYTES = 48, KEYS_MAX = 40 };

static const char table[] = "storm";

struct batch_name {
    unsigned run;
    unsigned thread;
    uint64_t batch;
};

/* From 1 to KEYS_MAX. */
static unsigned key_count(const struct batch_name *name)
{
    return 1 + (unsigned)((name->batch * 7 + name->thread) % KEYS_MAX);
}

/* Keys of a batch stand side by side in key order. */
static void print_name(char text[NAME_BYTES], const struct batch_name *name)
{
    snprintf(text, NAME_BYTES, "%04u/%04u/%012" PRIu64, name->run, name->thread,
             name->batch);
}

/* ---- Commit ------------------------------------------------------------------- */

struct committer {
    struct stele *store;
    pthread_t thread;
    int acks_fd;
    struct batch_name name;
};

static void fill(struct stele_batch *batch, const struct batch_name *name)
{
    struct stele_error error = {0};
    char value[NAME_BYTES];

    stele_batch_clear(batch);
    print_name(value, name);
    for (unsigned i = 0; i < key_count(name); i++) {
        char key[NAME_BYTES + 8];
        const int key_bytes = snprintf(key, sizeof key, "%s/%02u", value, i);

        must(stele_batch_put(batch, table, key, (size_t)key_bytes, value,
                             strlen(value), &error),
             &error);
    }
}

static void *commit_forever(void *context)
{
    struct committer *committer = context;
    struct stele_error error = {0};
    struct stele_batch *batch;

    must(stele_batch_create(&batch, &error), &error);
    for (;; committer->name.batch++) {
        char line[NAME_BYTES + 8];
        int line_bytes;

        fill(batch, &committer->name);
        must(stele_commit(committer->store, batch, STELE_DURABLE, NULL, &error),
             &error);
        line_bytes = snprintf(line, sizeof line, "%u %u %" PRIu64 "\n",
                              committer->name.run, committer->name.thread,
                              committer->name.batch);
        /* One write: a line is there whole or, but for the last, not at all.
         * It is in the kernel, which the kill does not reach. */
        if (write(committer->acks_fd, line, (size_t)line_bytes) != line_bytes) {
            die("the acks cannot be written");
        }
    }
    return NULL;
}

void demo_storm(const char *store_path, const char *acks_path, unsigned run,
                unsigned thread_count)
{
    struct stele *store = demo_store_open(store_path);
    struct committer *committers =
        must_have(calloc(thread_count, sizeof committers[0]));
    const int acks_fd =
        open(acks_path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);

    if (acks_fd < 0) {
        die("%s: cannot be made", acks_path);
    }
    for (unsigned i = 0; i < thread_count; i++) {
        committers[i] = (struct committer){
            .store = store,
            .acks_fd = acks_fd,
            .name = {.run = run, .thread = i, .batch = 0},
        };
        if (pthread_create(&committers[i].thread, NULL, commit_forever,
                           &committers[i]) != 0) {
            die("thread %u cannot be started", i);
        }
    }
    for (;;) {
        pause();
    }
}

/* ---- Check -------------------------------------------------------------------- */

/* The keys of an acknowledged batch, one by one. */
static void check_acked(struct stele_view *view, const struct batch_name *name)
{
    struct stele_error error = {0};
    char expected[NAME_BYTES];

    print_name(expected, name);
    for (unsigned i = 0; i < key_count(name); i++) {
        char key[NAME_BYTES + 8];
        struct stele_value value;
        const int key_bytes = snprintf(key, sizeof key, "%s/%02u", expected, i);
        const enum stele_status status =
            stele_view_get(view, table, key, (size_t)key_bytes, &value, &error);

        if (status == STELE_NOT_FOUND) {
            die("LOST: batch %s was acknowledged, and key %s is not there",
                expected, key);
        }
        must(status, &error);
        if (value.bytes != strlen(expected) ||
            memcmp(value.data, expected, value.bytes) != 0) {
            die("WRONG: key %s has another value", key);
        }
    }
}

static uint64_t check_all_acked(struct stele_view *view, const char *acks_path)
{
    struct text_file acks = text_file_read(acks_path);
    /* A kill in the middle of write() may have cut the last line. */
    const size_t whole = acks.bytes > 0 && acks.data[acks.bytes - 1] == '\0'
                             ? acks.line_count
                             : acks.line_count - (acks.line_count > 0);

    for (size_t i = 0; i < whole; i++) {
        struct batch_name name;

        if (sscanf(acks.lines[i], "%u %u %" SCNu64, &name.run, &name.thread,
                   &name.batch) != 3) {
            die("%s: line %zu: not an ack", acks_path, i + 1);
        }
        check_acked(view, &name);
    }
    text_file_free(&acks);
    return whole;
}

struct walk {
    struct batch_name name;
    unsigned keys; /* Of it, so far. */
    uint64_t batches;
};

static void end_batch(struct walk *walk)
{
    if (walk->keys > 0 && walk->keys != key_count(&walk->name)) {
        die("TORN: of batch %u/%u/%" PRIu64 " %u of %u keys are there",
            walk->name.run, walk->name.thread, walk->name.batch, walk->keys,
            key_count(&walk->name));
    }
    walk->batches += walk->keys > 0;
    walk->keys = 0;
}

/* Whether acknowledged or not: no batch is there in part. */
static uint64_t check_all_whole(struct stele_view *view)
{
    struct stele_error error = {0};
    struct stele_cursor *cursor;
    struct stele_entry entry;
    struct walk walk = {.keys = 0};
    enum stele_status status;

    must(stele_cursor_open(view, table, NULL, 0, &cursor, &error), &error);
    while ((status = stele_cursor_next(cursor, &entry, &error)) == STELE_OK) {
        char key[NAME_BYTES + 8] = "";
        struct batch_name name;
        unsigned index;

        if (entry.key_bytes >= sizeof key) {
            die("a key of %zu bytes", entry.key_bytes);
        }
        memcpy(key, entry.key, entry.key_bytes);
        if (sscanf(key, "%u/%u/%" SCNu64 "/%u", &name.run, &name.thread,
                   &name.batch, &index) != 4) {
            die("%s: not a key of the storm", key);
        }
        if (index == 0) {
            end_batch(&walk);
            walk.name = name;
        }
        if (name.run != walk.name.run || name.thread != walk.name.thread ||
            name.batch != walk.name.batch || index != walk.keys) {
            die("TORN: key %s stands without those before it", key);
        }
        walk.keys++;
    }
    if (status != STELE_NOT_FOUND) {
        must(status, &error);
    }
    end_batch(&walk);
    stele_cursor_close(cursor);
    return walk.batches;
}

void demo_check(const char *store_path, const char *acks_path)
{
    struct stele *store = demo_store_open(store_path);
    struct stele_error error = {0};
    struct stele_view *view;
    uint64_t acked;
    uint64_t found;

    must(stele_view_open(store, &view, &error), &error);
    acked = check_all_acked(view, acks_path);
    found = check_all_whole(view);
    if (found < acked) {
        die("LOST: %" PRIu64 " batches acknowledged, %" PRIu64 " found", acked,
            found);
    }
    printf("%" PRIu64 " %" PRIu64 "\n", acked, found);
    stele_view_close(view);
    demo_store_close(store);
}
