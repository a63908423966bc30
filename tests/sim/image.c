/* tests/sim/image.c -- see tests/sim/image.h. */
#include "tests/sim/image.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/checksum.h"
#include "tests/sim/map.h"

/* Volatile: compilers know that realloc() reads no variable of ours, but what a
 * test puts in its place does. */
static volatile bool allocating;

bool sim_is_allocating(void)
{
    return allocating;
}

void *sim_allocate(size_t bytes)
{
    return sim_reallocate(NULL, bytes);
}

void *sim_reallocate(void *old, size_t bytes)
{
    void *memory;

    allocating = true;
    memory = realloc(old, bytes == 0 ? 1 : bytes);
    allocating = false;
    if (memory == NULL) {
        fprintf(stderr, "simulation: out of memory (%zu bytes)\n", bytes);
        abort();
    }
    return memory;
}

/* ---- Nodes ------------------------------------------------------------------ */

static void page_unref(struct sim_page *page)
{
    if (page != NULL && --page->refs == 0) {
        free(page);
    }
}

static struct sim_node *node_create(enum io_file_type type)
{
    struct sim_node *node = sim_allocate(sizeof *node);

    *node = (struct sim_node){.refs = 1, .type = type};
    return node;
}

struct sim_node *sim_node_ref(struct sim_node *node)
{
    node->refs++;
    return node;
}

void sim_node_unref(struct sim_node *node)
{
    if (node == NULL || --node->refs > 0) {
        return;
    }
    for (uint32_t page = 0; page < node->page_count; page++) {
        page_unref(node->pages[page]);
    }
    free(node->pages);
    free(node->entries);
    sim_map_unref(node->map);
    free(node);
}

struct sim_node *sim_node_clone(const struct sim_node *node)
{
    struct sim_node *clone = node_create(node->type);

    clone->size_bytes = node->size_bytes;
    clone->page_count = node->page_count;
    if (node->page_count > 0) {
        clone->pages = sim_allocate(node->page_count * sizeof *clone->pages);
        for (uint32_t page = 0; page < node->page_count; page++) {
            clone->pages[page] = node->pages[page];
            if (clone->pages[page] != NULL) {
                clone->pages[page]->refs++;
            }
        }
    }
    clone->entry_count = node->entry_count;
    if (node->entry_count > 0) {
        clone->entries =
            sim_allocate(node->entry_count * sizeof *clone->entries);
        memcpy(clone->entries, node->entries,
               node->entry_count * sizeof *clone->entries);
    }
    clone->map = sim_map_ref(node->map);
    return clone;
}

/* ---- Images ------------------------------------------------------------------ */

struct sim_image *sim_image_create(void)
{
    struct sim_image *image = sim_allocate(sizeof *image);

    *image = (struct sim_image){0};
    sim_image_add(image, SIM_ROOT_INODE, IO_TYPE_DIRECTORY);
    return image;
}

struct sim_image *sim_image_copy(const struct sim_image *image)
{
    struct sim_image *copy = sim_allocate(sizeof *copy);

    copy->node_count = image->node_count;
    copy->nodes = sim_allocate(image->node_count * sizeof *copy->nodes);
    for (uint32_t inode = 0; inode < image->node_count; inode++) {
        copy->nodes[inode] = image->nodes[inode];
        if (copy->nodes[inode] != NULL) {
            copy->nodes[inode]->refs++;
        }
    }
    return copy;
}

void sim_image_free(struct sim_image *image)
{
    if (image == NULL) {
        return;
    }
    for (uint32_t inode = 0; inode < image->node_count; inode++) {
        sim_node_unref(image->nodes[inode]);
    }
    free(image->nodes);
    free(image);
}

const struct sim_node *sim_image_node(const struct sim_image *image,
                                      uint32_t inode)
{
    assert(inode < image->node_count && image->nodes[inode] != NULL);
    return image->nodes[inode];
}

/* To be changed: no other image shares it. */
static struct sim_node *own(struct sim_image *image, uint32_t inode)
{
    struct sim_node *node = image->nodes[inode];

    assert(inode < image->node_count && node != NULL);
    if (node->refs > 1) {
        image->nodes[inode] = sim_node_clone(node);
        sim_node_unref(node);
    }
    return image->nodes[inode];
}

static void make_place(struct sim_image *image, uint32_t inode)
{
    if (inode >= image->node_count) {
        const uint32_t count = inode + 8;

        image->nodes =
            sim_reallocate(image->nodes, count * sizeof *image->nodes);
        memset(image->nodes + image->node_count, 0,
               (count - image->node_count) * sizeof *image->nodes);
        image->node_count = count;
    }
}

void sim_image_set_node(struct sim_image *image, uint32_t inode,
                        struct sim_node *node)
{
    struct sim_node *before;

    make_place(image, inode);
    before = image->nodes[inode];
    image->nodes[inode] = sim_node_ref(node);
    sim_node_unref(before);
}

void sim_image_add(struct sim_image *image, uint32_t inode,
                   enum io_file_type type)
{
    make_place(image, inode);
    assert(image->nodes[inode] == NULL);
    image->nodes[inode] = node_create(type);
}

/* ---- Bytes ---------------------------------------------------------------------- */

size_t sim_node_read(const struct sim_node *node, void *target, size_t bytes,
                     uint64_t offset)
{
    uint8_t *to = target;
    size_t done = 0;

    if (offset >= node->size_bytes) {
        return 0;
    }
    if (bytes > node->size_bytes - offset) {
        bytes = (size_t)(node->size_bytes - offset);
    }
    while (done < bytes) {
        const uint64_t at = offset + done;
        const uint64_t page = at / SIM_PAGE_BYTES;
        const size_t in_page = (size_t)(at % SIM_PAGE_BYTES);
        size_t run = SIM_PAGE_BYTES - in_page;

        if (run > bytes - done) {
            run = bytes - done;
        }
        if (page < node->page_count && node->pages[page] != NULL) {
            memcpy(to + done, node->pages[page]->bytes + in_page, run);
        } else {
            memset(to + done, 0, run);
        }
        done += run;
    }
    return bytes;
}

static void grow_pages(struct sim_node *node, uint64_t bytes)
{
    const uint32_t count =
        (uint32_t)((bytes + SIM_PAGE_BYTES - 1) / SIM_PAGE_BYTES);

    if (count > node->page_count) {
        node->pages = sim_reallocate(node->pages, count * sizeof *node->pages);
        memset(node->pages + node->page_count, 0,
               (count - node->page_count) * sizeof *node->pages);
        node->page_count = count;
    }
}

static struct sim_page *own_page(struct sim_node *node, uint64_t index)
{
    struct sim_page *page = node->pages[index];

    if (page == NULL || page->refs > 1) {
        struct sim_page *fresh = sim_allocate(sizeof *fresh);

        if (page == NULL) {
            memset(fresh->bytes, 0, sizeof fresh->bytes);
        } else {
            memcpy(fresh->bytes, page->bytes, sizeof fresh->bytes);
        }
        fresh->refs = 1;
        page_unref(page);
        node->pages[index] = fresh;
    }
    return node->pages[index];
}

void sim_node_write(struct sim_node *node, const void *data, size_t bytes,
                    uint64_t offset)
{
    const uint8_t *from = data;
    size_t done = 0;

    grow_pages(node, offset + bytes);
    if (offset + bytes > node->size_bytes) {
        node->size_bytes = offset + bytes;
    }
    while (done < bytes) {
        const uint64_t at = offset + done;
        const uint64_t page = at / SIM_PAGE_BYTES;
        const size_t in_page = (size_t)(at % SIM_PAGE_BYTES);
        size_t run = SIM_PAGE_BYTES - in_page;

        if (run > bytes - done) {
            run = bytes - done;
        }
        if (from != NULL) {
            memcpy(own_page(node, page)->bytes + in_page, from + done, run);
        } else if (run == SIM_PAGE_BYTES) {
            page_unref(node->pages[page]);
            node->pages[page] = NULL;
        } else if (node->pages[page] != NULL) {
            memset(own_page(node, page)->bytes + in_page, 0, run);
        }
        done += run;
    }
}

void sim_node_resize(struct sim_node *node, uint64_t bytes)
{
    if (bytes < node->size_bytes) {
        const uint32_t keep =
            (uint32_t)((bytes + SIM_PAGE_BYTES - 1) / SIM_PAGE_BYTES);

        for (uint32_t page = keep; page < node->page_count; page++) {
            page_unref(node->pages[page]);
        }
        node->page_count = keep < node->page_count ? keep : node->page_count;
        if (bytes % SIM_PAGE_BYTES != 0 && node->page_count == keep &&
            node->pages[keep - 1] != NULL) {
            const size_t used = (size_t)(bytes % SIM_PAGE_BYTES);

            memset(own_page(node, keep - 1)->bytes + used, 0,
                   SIM_PAGE_BYTES - used);
        }
    }
    grow_pages(node, bytes);
    node->size_bytes = bytes;
}

size_t sim_image_read(const struct sim_image *image, uint32_t inode,
                      void *target, size_t bytes, uint64_t offset)
{
    return sim_node_read(sim_image_node(image, inode), target, bytes, offset);
}

void sim_image_write(struct sim_image *image, uint32_t inode, const void *data,
                     size_t bytes, uint64_t offset)
{
    sim_node_write(own(image, inode), data, bytes, offset);
}

void sim_image_resize(struct sim_image *image, uint32_t inode, uint64_t bytes)
{
    sim_node_resize(own(image, inode), bytes);
}

void sim_image_set_map(struct sim_image *image, uint32_t inode,
                       struct sim_map *map)
{
    struct sim_node *node = own(image, inode);
    struct sim_map *before = node->map;

    node->map = sim_map_ref(map);
    sim_map_unref(before);
}

/* ---- Names ------------------------------------------------------------------------ */

static uint32_t entry_index(const struct sim_node *dir, const char *name)
{
    uint32_t index = 0;

    assert(dir->type == IO_TYPE_DIRECTORY);
    while (index < dir->entry_count &&
           strcmp(dir->entries[index].name, name) != 0) {
        index++;
    }
    return index;
}

uint32_t sim_image_find(const struct sim_image *image, uint32_t dir,
                        const char *name)
{
    const struct sim_node *node = sim_image_node(image, dir);
    const uint32_t index = entry_index(node, name);

    return index < node->entry_count ? node->entries[index].inode : 0;
}

uint32_t sim_image_walk(const struct sim_image *image, const char *path)
{
    uint32_t inode = SIM_ROOT_INODE;

    while (inode != 0 && *path != '\0') {
        const size_t bytes = strcspn(path, "/");
        char name[SIM_NAME_BYTES];

        if (bytes >= sizeof name ||
            sim_image_node(image, inode)->type != IO_TYPE_DIRECTORY) {
            return 0;
        }
        memcpy(name, path, bytes);
        name[bytes] = '\0';
        if (bytes > 0) {
            inode = sim_image_find(image, inode, name);
        }
        path += bytes + (path[bytes] == '/' ? 1 : 0);
    }
    return inode;
}

void sim_image_link(struct sim_image *image, uint32_t dir, const char *name,
                    uint32_t inode)
{
    struct sim_node *node = own(image, dir);
    const uint32_t index = entry_index(node, name);

    if (index == node->entry_count) {
        node->entries = sim_reallocate(
            node->entries, (node->entry_count + 1) * sizeof *node->entries);
        node->entry_count++;
        snprintf(node->entries[index].name, SIM_NAME_BYTES, "%s", name);
    }
    node->entries[index].inode = inode;
}

void sim_image_unlink(struct sim_image *image, uint32_t dir, const char *name)
{
    struct sim_node *node = own(image, dir);
    const uint32_t index = entry_index(node, name);

    if (index < node->entry_count) {
        node->entries[index] = node->entries[--node->entry_count];
    }
}

/* ---- Digest -------------------------------------------------------------------------- */

static uint64_t digest_node(const struct sim_image *image, uint32_t inode,
                            uint64_t seed)
{
    const struct sim_node *node = sim_image_node(image, inode);
    uint64_t digest =
        checksum64(&node->size_bytes, sizeof node->size_bytes, seed);

    if (node->type != IO_TYPE_DIRECTORY) {
        for (uint32_t page = 0; page < node->page_count; page++) {
            const struct sim_page *bytes = node->pages[page];

            /* A page of zeros is one, however it is kept. */
            digest =
                bytes == NULL || bytes_are_zero(bytes->bytes, SIM_PAGE_BYTES)
                    ? digest * 31 + 1
                    : checksum64(bytes->bytes, SIM_PAGE_BYTES, digest);
        }
        return digest + sim_map_digest(node->map);
    }
    for (uint32_t index = 0; index < node->entry_count; index++) {
        const struct sim_entry *entry = &node->entries[index];

        /* A sum: the order of the entries is nobody's business. */
        digest +=
            digest_node(image, entry->inode,
                        checksum64(entry->name, strlen(entry->name), seed + 1));
    }
    return digest;
}

uint64_t sim_image_digest(const struct sim_image *image)
{
    return digest_node(image, SIM_ROOT_INODE, 0);
}
