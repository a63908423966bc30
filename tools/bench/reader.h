/*
 * tools/bench/reader.h -- how the items of a store are read: the same work for Stele
 * and for a bare LMDB.
 *
 * Reading an item is to have its bytes: its value is copied out (of a scan, the key
 * as well). With `touch_only`, nothing but its last byte is looked at, as if whoever
 * reads it did not want it.
 */
#ifndef TOOLS_BENCH_READER_H
#define TOOLS_BENCH_READER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A key of ITEM_KEY_BYTES each, one behind the other. */
struct reader_keys {
    const char *keys;
    uint64_t count;
};

struct reader {
    /* A consistent view; used by one thread. */
    void *(*open)(void *source);
    /* Every key must be there. */
    void (*get)(void *view, const struct reader_keys *keys, bool touch_only);
    /* All items in order. Returns how many. */
    uint64_t (*scan)(void *view, bool touch_only);
    void (*close)(void *view);
};

/* `source` is a struct stele. */
extern const struct reader stele_reader;

/* What is done with the bytes of an item. */
void reader_take(const void *key, size_t key_bytes, const void *value,
                 size_t value_bytes, bool touch_only);

/* How many items a second `threads` threads get, each a part of `keys`; or
 * scan, each all of it. `scans`: NULL keys. In millions. */
double reader_run(const struct reader *reader, void *source, size_t threads,
                  const struct reader_keys *keys, bool touch_only);

#endif
