/*
 * tests/sim/image.h -- a small file system as a value: inodes, names, bytes.
 *
 * Copying an image costs a pointer an inode; what is written afterwards is
 * copied then. So thousands of crash states can be made from one recording.
 *
 * Nothing here knows what is durable: tests/sim/cut.h does. Running out of memory
 * ends the process. One thread at a time.
 */
#ifndef TESTS_SIM_IMAGE_H
#define TESTS_SIM_IMAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/io.h"

struct sim_map; /* tests/sim/index_sim.c: what an index file holds. */

enum {
    SIM_PAGE_BYTES = 4096,
    SIM_SECTOR_BYTES = 512,
    SIM_NAME_BYTES = 32,
    SIM_ROOT_INODE = 1,
};

struct sim_page {
    uint32_t refs;
    uint8_t bytes[SIM_PAGE_BYTES];
};

struct sim_entry {
    uint32_t inode;
    char name[SIM_NAME_BYTES];
};

/* A file or a directory; shared between images until it is written. */
struct sim_node {
    uint32_t refs;
    enum io_file_type type;
    uint64_t size_bytes;
    struct sim_page **pages; /* NULL: zeros. */
    uint32_t page_count;
    struct sim_entry *entries;
    uint32_t entry_count;
    struct sim_map *map; /* Of an index file; else NULL. */
};

struct sim_image {
    struct sim_node **nodes; /* By inode; NULL: there is none. */
    uint32_t node_count;
};

/* malloc() and friends that end the process instead of failing. */
void *sim_allocate(size_t bytes);
void *sim_reallocate(void *old, size_t bytes);
/* Inside one of them: for who makes allocations of the engine's fail. */
bool sim_is_allocating(void);

/* With an empty root directory. */
struct sim_image *sim_image_create(void);
struct sim_image *sim_image_copy(const struct sim_image *image);
void sim_image_free(struct sim_image *image); /* Accepts NULL. */

/* Node counts: for who keeps a node beyond its image. */
struct sim_node *sim_node_ref(struct sim_node *node);
void sim_node_unref(struct sim_node *node); /* Accepts NULL. */

const struct sim_node *sim_image_node(const struct sim_image *image,
                                      uint32_t inode);
/* Put `node` (a new reference) in the place of inode's. */
void sim_image_set_node(struct sim_image *image, uint32_t inode,
                        struct sim_node *node);
/* A new, empty file or directory under a number that is free. */
void sim_image_add(struct sim_image *image, uint32_t inode,
                   enum io_file_type type);

/* ---- Bytes ---------------------------------------------------------------- */

/* Returns how many there were. */
size_t sim_image_read(const struct sim_image *image, uint32_t inode,
                      void *target, size_t bytes, uint64_t offset);
/* `data` NULL: zeros. Grows the file if need be. */
void sim_image_write(struct sim_image *image, uint32_t inode, const void *data,
                     size_t bytes, uint64_t offset);
void sim_image_resize(struct sim_image *image, uint32_t inode, uint64_t bytes);
/* Takes a new reference. */
void sim_image_set_map(struct sim_image *image, uint32_t inode,
                       struct sim_map *map);

/* The same on a node that nobody shares. */
void sim_node_write(struct sim_node *node, const void *data, size_t bytes,
                    uint64_t offset);
void sim_node_resize(struct sim_node *node, uint64_t bytes);
size_t sim_node_read(const struct sim_node *node, void *target, size_t bytes,
                     uint64_t offset);
struct sim_node *sim_node_clone(const struct sim_node *node);

/* ---- Names ---------------------------------------------------------------- */

/* 0: there is none. */
uint32_t sim_image_find(const struct sim_image *image, uint32_t dir,
                        const char *name);
/* "store/wal/x", from the root; 0: there is none. */
uint32_t sim_image_walk(const struct sim_image *image, const char *path);
/* Replaces what has the name. */
void sim_image_link(struct sim_image *image, uint32_t dir, const char *name,
                    uint32_t inode);
/* Without effect if there is none. */
void sim_image_unlink(struct sim_image *image, uint32_t dir, const char *name);

/* A number that any difference between two images changes: names and bytes. */
uint64_t sim_image_digest(const struct sim_image *image);

#endif
