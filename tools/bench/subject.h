/*
 * tools/bench/subject.h -- Stele and a bare LMDB, done the same things to.
 */
#ifndef TOOLS_BENCH_SUBJECT_H
#define TOOLS_BENCH_SUBJECT_H

#include <stdint.h>

/* Whose store it is. Each put or delete is one durable commit of the items with
 * these numbers. */
struct subject {
    const char *name;
    void *(*create)(const char *directory);
    void *(*open)(const char *directory);
    void (*put)(void *store, const uint64_t *numbers, uint64_t count);
    void (*remove)(void *store, const uint64_t *numbers, uint64_t count);
    void (*delete_all)(void *store); /* By their prefix. */
    uint64_t (*items)(void *store);
    uint64_t (*commits)(void *store); /* By this handle, or since ever. */
    /* Nothing is due any more that is not the next commits'. NULL: it never is. */
    void (*settle)(void *store);
    void (*close)(void *store); /* What the commits owe is written before. */
};

/* "stele" or "lmdb". Dies if it is neither. */
const struct subject *subject_named(const char *name);

#endif
