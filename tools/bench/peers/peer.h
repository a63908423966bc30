/*
 * tools/bench/peers/peer.h -- a durable store, seen as stele-bench sees all of them.
 *
 * Every write is durable when it returns: it would survive a power cut. What is
 * written by one call is there as a whole or not at all. Failures die().
 *
 * To add one: write peer_<name>.c, declare it below, list it in CMakeLists.txt.
 */
#ifndef TOOLS_BENCH_PEERS_PEER_H
#define TOOLS_BENCH_PEERS_PEER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct peer_item {
    const char *key;
    size_t key_bytes;
    const char *value; /* Deletes do without. */
    size_t value_bytes;
};

struct peer {
    const char *name;
    /* Each write writes all there is anew, by one thread after the other. */
    bool rewrites_all;

    /* The store in `directory`, which exists; made if there is none. NULL: it cannot
     * be run here, as was said on stderr. */
    void *(*open)(const char *directory);
    void (*close)(void *db);

    /* What a thread passes to all below, which many call at once. Both NULL: the
     * threads need nothing of their own. */
    void *(*thread_begin)(void *db);
    void (*thread_end)(void *db, void *thread);

    void (*put)(void *db, void *thread, const struct peer_item *items,
                size_t count);
    /* The value does not matter. */
    void (*delete)(void *db, void *thread, const struct peer_item *items,
                   size_t count);
    /* All keys from <= key < to, without looking for what is there. NULL: there is
     * no such thing. */
    void (*delete_range)(void *db, void *thread, const char *from,
                         const char *to);
    /* Do what loading made due, which would hit what is measured next. NULL: nothing
     * is, or closing does it. */
    void (*settle)(void *db);
    /* How many items there are. Not for what is measured. */
    uint64_t (*count)(void *db, void *thread);
    /* How many memtables were filled and written out so far, by this handle. NULL:
     * unknown. */
    uint64_t (*memtables_filled)(void *db);
};

extern const struct peer peer_stele;
extern const struct peer peer_lmdb;
extern const struct peer peer_sqlite;
extern const struct peer peer_rocksdb;
extern const struct peer peer_leveldb;
extern const struct peer peer_wiredtiger;
extern const struct peer peer_berkeley;
extern const struct peer peer_redis;
extern const struct peer peer_json_file;

#endif
