/*
 * tools/demo/demo.h -- stele-demo: what tools/demo.sh needs a program for.
 *
 * Every part prints one line of numbers for the script. What it measures it
 * puts between two marks, access("/stele-mark/begin") and ".../end", which the
 * preloaded sync counter answers (tests/preload/sync_counter.c), so that syncs
 * and bytes are counted from outside.
 */
#ifndef TOOLS_DEMO_DEMO_H
#define TOOLS_DEMO_DEMO_H

#include <stddef.h>
#include <stdint.h>

#include "engine/stele.h"
#include "tools/must/must.h"

/* Begin and end a measurement; `end` gives its nanoseconds. */
uint64_t mark_begin(void);
uint64_t mark_end(uint64_t begin_ns);

/* A text file in memory, NUL-terminated, and its lines, without newlines. */
struct text_file {
    char *data;
    size_t bytes;
    char **lines;
    size_t line_count;
};

struct text_file text_file_read(const char *path);
void text_file_free(struct text_file *file);

struct stele *demo_store_open(const char *path);
void demo_store_close(struct stele *store);

/* The parts; `count` is of the topics in the file, from the first. */

/* Delete topics as a broker does that keeps them in a JSON file: take them out
 * of its table in memory, `per_persist` at a time, and persist each time. */
void demo_broker(const char *config_dir, const char *delete_file, size_t count,
                 size_t per_persist);

/* Delete topics and all their consumer offsets, `per_batch` in a batch. */
void demo_delete(const char *store_path, const char *delete_file, size_t first,
                 size_t count, size_t per_batch);

/* Commit batches by `thread_count` threads until the process is killed. Each is
 * named in the file once it has been acknowledged: "run thread batch". */
void demo_storm(const char *store_path, const char *acks_path, unsigned run,
                unsigned thread_count);

/* Every batch named in the file is in the store, and every batch in the store
 * is whole; otherwise die. */
void demo_check(const char *store_path, const char *acks_path);

#endif
