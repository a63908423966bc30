/* tests/sim/damage.c -- see tests/sim/damage.h. */
#include "tests/sim/damage.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "tests/lib/random.h"
#include "tests/sim/world.h"

enum { FILES_MAX = 64 };

/* A file that opening reads. */
struct target {
    uint32_t dir;
    uint32_t inode;
    char name[SIM_NAME_BYTES];
};

struct targets {
    struct target files[FILES_MAX];
    uint32_t count;
};

static void collect(const struct sim_image *image, const char *path,
                    struct targets *targets)
{
    const uint32_t dir = sim_image_walk(image, path);
    const struct sim_node *node;

    if (dir == 0) {
        return;
    }
    node = sim_image_node(image, dir);
    for (uint32_t index = 0;
         index < node->entry_count && targets->count < FILES_MAX; index++) {
        const struct sim_entry *entry = &node->entries[index];
        struct target *target = &targets->files[targets->count];

        if (sim_image_node(image, entry->inode)->type != IO_TYPE_REGULAR) {
            continue;
        }
        target->dir = dir;
        target->inode = entry->inode;
        memcpy(target->name, entry->name, SIM_NAME_BYTES);
        targets->count++;
    }
}

/* Mostly where there is something; the zeros behind it now and then. */
static uint64_t random_page(const struct sim_node *node,
                            struct random_source *random)
{
    const uint64_t pages = node->size_bytes / SIM_PAGE_BYTES;
    uint64_t page = random_below(random, pages);

    for (unsigned tries = 0; tries < 4; tries++) {
        if (node->pages[page] != NULL) {
            break;
        }
        page = random_below(random, pages);
    }
    return page;
}

/* A page that a unit begins on, if one is found soon: its header, and the records'
 * behind it, have most to say. */
static uint64_t random_unit_page(const struct sim_node *node,
                                 struct random_source *random)
{
    uint64_t page = 0;

    for (unsigned tries = 0; tries < 8; tries++) {
        page = random_page(node, random);
        if (node->pages[page] != NULL &&
            memcmp(node->pages[page]->bytes, "STELUNIT", 8) == 0) {
            break;
        }
    }
    return page;
}

static void move_page(struct sim_image *image, uint32_t from_inode,
                      uint64_t from, uint32_t to_inode, uint64_t to)
{
    uint8_t bytes[SIM_PAGE_BYTES] = {0};

    (void)sim_image_read(image, from_inode, bytes, sizeof bytes,
                         from * SIM_PAGE_BYTES);
    sim_image_write(image, to_inode, bytes, sizeof bytes, to * SIM_PAGE_BYTES);
}

static void swap_names(struct sim_image *image, const struct target *left,
                       const struct target *right)
{
    sim_image_link(image, left->dir, left->name, right->inode);
    sim_image_link(image, right->dir, right->name, left->inode);
}

/* The same file as it was at an earlier time; false: it has not changed. */
static bool make_older(struct sim_image *image, const struct sim_image *older,
                       const struct target *target)
{
    if (target->inode >= older->node_count ||
        older->nodes[target->inode] == NULL ||
        older->nodes[target->inode] == image->nodes[target->inode]) {
        return false;
    }
    sim_image_set_node(image, target->inode, older->nodes[target->inode]);
    return true;
}

void sim_damage(struct sim_image *image, const struct sim_image *older,
                uint64_t seed, enum sim_loss *loss_out, char *text,
                size_t bytes)
{
    struct random_source random = {.state = seed};
    struct targets targets = {.count = 0};
    const struct target *target;
    const struct target *other;
    const struct sim_node *node;
    uint64_t page;
    uint64_t other_page;
    uint64_t kind;
    uint8_t byte;

    text[0] = '\0';
    *loss_out = SIM_LOSS_NONE;
    collect(image, SIM_STORE_PATH, &targets);
    collect(image, SIM_STORE_PATH "/wal", &targets);
    collect(image, SIM_STORE_PATH "/index", &targets);
    if (targets.count == 0) {
        return;
    }
    target = &targets.files[random_below(&random, targets.count)];
    if (strstr(target->name, ".wal") == NULL) {
        /* The log has most to lose. */
        target = &targets.files[random_below(&random, targets.count)];
    }
    other = &targets.files[random_below(&random, targets.count)];
    node = sim_image_node(image, target->inode);
    switch (random_below(&random, 12)) {
    case 0:
        sim_image_unlink(image, target->dir, target->name);
        snprintf(text, bytes, "%s is gone", target->name);
        return;
    case 1:
        if (make_older(image, older, target)) {
            *loss_out = SIM_LOSS_OLD;
            snprintf(text, bytes, "%s is as it was earlier", target->name);
        }
        return;
    case 2:
        if (other->inode != target->inode && other->dir == target->dir) {
            swap_names(image, target, other);
            snprintf(text, bytes, "%s and %s have each other's bytes",
                     target->name, other->name);
        }
        return;
    default:
        break;
    }
    if (node->map != NULL || node->size_bytes < SIM_PAGE_BYTES) {
        return; /* An index: LMDB's pages are not simulated. */
    }
    page = random_page(node, &random);
    kind = random_below(&random, 8);
    if (kind > 0) {
        *loss_out = SIM_LOSS_UNPROVEN;
    }
    switch (kind) {
    case 0:
        sim_image_resize(image, target->inode,
                         random_below(&random, node->size_bytes));
        snprintf(text, bytes, "%s is cut to %" PRIu64 " bytes", target->name,
                 sim_image_node(image, target->inode)->size_bytes);
        return;
    case 1:
        sim_image_write(image, target->inode, NULL, SIM_PAGE_BYTES,
                        page * SIM_PAGE_BYTES);
        snprintf(text, bytes, "%s: page %" PRIu64 " is zero", target->name,
                 page);
        return;
    case 2:
        node = sim_image_node(image, other->inode);
        if (node->map != NULL || node->size_bytes < SIM_PAGE_BYTES) {
            return;
        }
        other_page = random_page(node, &random);
        move_page(image, target->inode, page, other->inode, other_page);
        snprintf(text, bytes,
                 "%s: page %" PRIu64 " was written over page %" PRIu64 " of %s",
                 target->name, page, other_page, other->name);
        return;
    case 3: {
        const uint64_t sector =
            random_below(&random, SIM_PAGE_BYTES / SIM_SECTOR_BYTES);

        sim_image_write(image, target->inode, NULL, SIM_SECTOR_BYTES,
                        page * SIM_PAGE_BYTES + sector * SIM_SECTOR_BYTES);
        snprintf(text, bytes,
                 "%s: page %" PRIu64 ", sector %" PRIu64 " is zero",
                 target->name, page, sector);
        return;
    }
    default: {
        /* The first bytes of a page are a header's more often than not. */
        const uint64_t offset =
            (random_one_in(&random, 2) ? random_unit_page(node, &random)
                                       : page) *
                SIM_PAGE_BYTES +
            random_below(&random,
                         random_one_in(&random, 2) ? 256 : SIM_PAGE_BYTES);
        const unsigned bit = (unsigned)random_below(&random, 8);

        byte = 0;
        (void)sim_image_read(image, target->inode, &byte, 1, offset);
        byte = (uint8_t)(byte ^ 1u << bit);
        sim_image_write(image, target->inode, &byte, 1, offset);
        snprintf(text, bytes, "%s: offset %" PRIu64 ", bit %u is flipped",
                 target->name, offset, bit);
        return;
    }
    }
}
