/* tests/sim/damage.c -- see tests/sim/damage.h. */
#include "tests/sim/damage.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "snapshot/format.h"
#include "tests/lib/random.h"
#include "tests/lib/suffix.h"
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

/* What is to be damaged, and what is said of it. */
struct damage {
    struct sim_image *image;
    struct random_source *random;
    const struct target *target;
    const struct target *other; /* May be the same. */
    enum sim_loss loss;
    char *text;
    size_t bytes;
};

static bool has_pages(const struct sim_image *image,
                      const struct target *target)
{
    const struct sim_node *node = sim_image_node(image, target->inode);

    /* LMDB's pages are not simulated. */
    return node->map == NULL && node->size_bytes >= SIM_PAGE_BYTES;
}

static void cut_short(struct damage *damage)
{
    const uint32_t inode = damage->target->inode;

    sim_image_resize(
        damage->image, inode,
        random_below(damage->random,
                     sim_image_node(damage->image, inode)->size_bytes));
    snprintf(damage->text, damage->bytes, "%s is cut to %" PRIu64 " bytes",
             damage->target->name,
             sim_image_node(damage->image, inode)->size_bytes);
}

static void zero_run(struct damage *damage, uint64_t offset, size_t bytes)
{
    sim_image_write(damage->image, damage->target->inode, NULL, bytes, offset);
    snprintf(damage->text, damage->bytes,
             "%s: %zu bytes at offset %" PRIu64 " are zero",
             damage->target->name, bytes, offset);
}

/* A page written over another place; SWAP: and that one over the first. */
enum misdirection { MISDIRECT, SWAP };

static void misdirect(struct damage *damage, uint64_t page,
                      enum misdirection misdirection)
{
    const uint32_t from = damage->target->inode;
    const uint32_t to = damage->other->inode;
    uint8_t kept[SIM_PAGE_BYTES] = {0};
    uint64_t place;

    if (!has_pages(damage->image, damage->other)) {
        return;
    }
    place = random_page(sim_image_node(damage->image, to), damage->random);
    (void)sim_image_read(damage->image, to, kept, sizeof kept,
                         place * SIM_PAGE_BYTES);
    move_page(damage->image, from, page, to, place);
    if (misdirection == SWAP) {
        sim_image_write(damage->image, from, kept, sizeof kept,
                        page * SIM_PAGE_BYTES);
    }
    snprintf(damage->text, damage->bytes,
             "%s: page %" PRIu64 " was %s page %" PRIu64 " of %s",
             damage->target->name, page,
             misdirection == SWAP ? "swapped with" : "written over", place,
             damage->other->name);
}

/* One byte becomes another: `mask` is what changes in it. */
static void change_byte(struct damage *damage, uint64_t page, uint8_t mask)
{
    const uint32_t inode = damage->target->inode;
    const uint64_t unit_page =
        random_unit_page(sim_image_node(damage->image, inode), damage->random);
    /* A unit's first bytes are its headers: more often than not there. */
    const uint64_t offset =
        (random_one_in(damage->random, 2) ? unit_page : page) * SIM_PAGE_BYTES +
        random_below(damage->random,
                     random_one_in(damage->random, 2) ? 256 : SIM_PAGE_BYTES);
    uint8_t byte = 0;

    (void)sim_image_read(damage->image, inode, &byte, 1, offset);
    byte ^= mask;
    sim_image_write(damage->image, inode, &byte, 1, offset);
    snprintf(damage->text, damage->bytes,
             "%s: offset %" PRIu64 " is changed by %02x", damage->target->name,
             offset, mask);
}

/* A file is gone, older, or under another's name. */
static void damage_file(struct damage *damage, const struct sim_image *older)
{
    const struct target *target = damage->target;
    const struct target *other = damage->other;

    switch (random_below(damage->random, 3)) {
    case 0:
        sim_image_unlink(damage->image, target->dir, target->name);
        snprintf(damage->text, damage->bytes, "%s is gone", target->name);
        break;
    case 1:
        if (make_older(damage->image, older, target)) {
            damage->loss = SIM_LOSS_OLD;
            snprintf(damage->text, damage->bytes, "%s is as it was earlier",
                     target->name);
        }
        break;
    default:
        if (other->inode != target->inode && other->dir == target->dir) {
            swap_names(damage->image, target, other);
            snprintf(damage->text, damage->bytes,
                     "%s and %s have each other's bytes", target->name,
                     other->name);
        }
        break;
    }
}

/* ---- Snapshots ----------------------------------------------------------------- */

static void change_snapshot_byte(struct damage *damage)
{
    const uint32_t inode = damage->target->inode;
    const uint64_t offset = random_below(
        damage->random, sim_image_node(damage->image, inode)->size_bytes);
    uint8_t byte = 0;

    (void)sim_image_read(damage->image, inode, &byte, 1, offset);
    byte ^= (uint8_t)(1 + random_below(damage->random, 255));
    sim_image_write(damage->image, inode, &byte, 1, offset);
    snprintf(damage->text, damage->bytes, "%s: offset %" PRIu64 " is changed",
             damage->target->name, offset);
}

/* What a whole snapshot says of itself; false: it is none. */
static bool read_snapshot(const struct damage *damage,
                          struct snapshot_header *header_out,
                          struct snapshot_info *info_out)
{
    const uint32_t inode = damage->target->inode;
    const uint64_t size = sim_image_node(damage->image, inode)->size_bytes;
    uint8_t header[SNAPSHOT_HEADER_BYTES];
    uint8_t footer[SNAPSHOT_FOOTER_BYTES];

    if (size < sizeof header + sizeof footer) {
        return false;
    }
    (void)sim_image_read(damage->image, inode, header, sizeof header, 0);
    (void)sim_image_read(damage->image, inode, footer, sizeof footer,
                         size - sizeof footer);
    return snapshot_header_decode(header, header_out) == SNAPSHOT_VALID &&
           snapshot_footer_decode(footer, header_out->checksum, info_out);
}

enum forgery { FORGE_FOREIGN, FORGE_EMPTY };

/* A whole one of the same LSN and position without entries: of another store, or of
 * this one, with nothing wrong but that its totals are of more than is in it. */
static void forge(struct damage *damage, enum forgery forgery)
{
    const uint8_t foreign[SNAPSHOT_UUID_BYTES] = "another store's";
    const uint32_t inode = damage->target->inode;
    uint8_t bytes[SNAPSHOT_HEADER_BYTES + SNAPSHOT_FOOTER_BYTES];
    struct snapshot_header header;
    struct snapshot_info info;

    if (!read_snapshot(damage, &header, &info) || info.totals.keys == 0) {
        return;
    }
    snapshot_header_encode(forgery == FORGE_FOREIGN ? foreign : header.uuid,
                           header.lsn, bytes);
    if (snapshot_header_decode(bytes, &header) != SNAPSHOT_VALID) {
        return;
    }
    info.entries = 0;
    info.blocks = 0;
    info.digest = checksum128(bytes, SNAPSHOT_HEADER_BYTES, 0);
    snapshot_footer_encode(&info, header.checksum,
                           bytes + SNAPSHOT_HEADER_BYTES);
    sim_image_resize(damage->image, inode, 0);
    sim_image_write(damage->image, inode, bytes, sizeof bytes, 0);
    snprintf(damage->text, damage->bytes, "%s is %s", damage->target->name,
             forgery == FORGE_FOREIGN ? "another store's" : "empty");
}

/* Another one's bytes under this one's name; SWAP: and the other way round. */
static void misname(struct damage *damage, enum misdirection misdirection)
{
    const struct target *target = damage->target;
    const struct target *other = damage->other;

    if (other->dir != target->dir || other->inode == target->inode) {
        return;
    }
    if (misdirection == SWAP) {
        swap_names(damage->image, target, other);
    } else {
        sim_image_set_node(damage->image, target->inode,
                           damage->image->nodes[other->inode]);
    }
    snprintf(damage->text, damage->bytes, "%s has %s's bytes%s", target->name,
             other->name, misdirection == SWAP ? ", and the reverse" : "");
}

static void damage_snapshot(struct damage *damage,
                            const struct sim_image *older)
{
    const struct target *target = damage->target;

    /* The index is a base, and so is the other one. */
    damage->loss = SIM_LOSS_REFUSES_NOTHING;
    switch (random_below(damage->random, 9)) {
    case 0:
        sim_image_unlink(damage->image, target->dir, target->name);
        snprintf(damage->text, damage->bytes, "%s is gone", target->name);
        break;
    case 1:
        cut_short(damage);
        break;
    case 2:
        damage->loss = SIM_LOSS_NONE; /* Two files: perhaps all bases. */
        misname(damage, SWAP);
        break;
    case 3:
        misname(damage, MISDIRECT);
        break;
    case 4:
        forge(damage, FORGE_FOREIGN);
        break;
    case 5:
        forge(damage, FORGE_EMPTY);
        break;
    case 6:
        if (make_older(damage->image, older, target)) {
            snprintf(damage->text, damage->bytes, "%s is as it was earlier",
                     target->name);
        }
        break;
    default:
        change_snapshot_byte(damage);
        break;
    }
}

/* ---- All of them ---------------------------------------------------------------- */

/* Something inside a file. */
static void damage_bytes(struct damage *damage)
{
    const uint64_t page = random_page(
        sim_image_node(damage->image, damage->target->inode), damage->random);
    const uint64_t kind = random_below(damage->random, 10);

    if (kind == 0) {
        cut_short(damage);
        return;
    }
    damage->loss = SIM_LOSS_UNPROVEN;
    switch (kind) {
    case 1:
        zero_run(damage, page * SIM_PAGE_BYTES, SIM_PAGE_BYTES);
        break;
    case 2:
        zero_run(damage,
                 page * SIM_PAGE_BYTES +
                     random_below(damage->random,
                                  SIM_PAGE_BYTES / SIM_SECTOR_BYTES) *
                         SIM_SECTOR_BYTES,
                 SIM_SECTOR_BYTES);
        break;
    case 3:
        misdirect(damage, page, MISDIRECT);
        break;
    case 4:
        damage->other = damage->target; /* Two files: no single fault. */
        damage->loss = SIM_LOSS_OLD;
        misdirect(damage, page, SWAP);
        break;
    case 5:
        change_byte(damage, page,
                    (uint8_t)(1 + random_below(damage->random, 255)));
        break;
    default:
        change_byte(damage, page,
                    (uint8_t)(1u << random_below(damage->random, 8)));
        break;
    }
}

/* Where there are snapshots, that is one thing more that may happen. */
static void lose_index(struct damage *damage)
{
    const uint32_t dir = sim_image_walk(damage->image, SIM_STORE_PATH);
    const uint32_t snapshots =
        sim_image_walk(damage->image, SIM_STORE_PATH "/snapshot");
    const size_t used = strlen(damage->text);

    if (snapshots == 0 ||
        sim_image_node(damage->image, snapshots)->entry_count == 0 ||
        strncmp(damage->text, "data.mdb", strlen("data.mdb")) == 0 ||
        sim_image_find(damage->image, dir, "index") == 0) {
        return;
    }
    sim_image_unlink(damage->image, dir, "index");
    if (damage->loss == SIM_LOSS_UNPROVEN || damage->loss == SIM_LOSS_OLD) {
        damage->loss = SIM_LOSS_INDEX;
    }
    snprintf(damage->text + used, damage->bytes - used,
             ", and the index is gone");
}

void sim_damage(struct sim_image *image, const struct sim_image *older,
                uint64_t seed, enum sim_loss *loss_out, char *text,
                size_t bytes)
{
    struct random_source random = {.state = seed};
    struct targets targets = {.count = 0};
    struct damage damage = {.image = image,
                            .random = &random,
                            .loss = SIM_LOSS_NONE,
                            .text = text,
                            .bytes = bytes};

    text[0] = '\0';
    *loss_out = SIM_LOSS_NONE;
    collect(image, SIM_STORE_PATH, &targets);
    collect(image, SIM_STORE_PATH "/wal", &targets);
    collect(image, SIM_STORE_PATH "/index", &targets);
    collect(image, SIM_STORE_PATH "/snapshot", &targets);
    if (targets.count == 0) {
        return;
    }
    damage.target = &targets.files[random_below(&random, targets.count)];
    if (strstr(damage.target->name, ".wal") == NULL) {
        /* The log has most to lose. */
        damage.target = &targets.files[random_below(&random, targets.count)];
    }
    damage.other = &targets.files[random_below(&random, targets.count)];
    if (ends_in(damage.target->name, SNAPSHOT_SUFFIX)) {
        damage_snapshot(&damage, older);
    } else if (random_one_in(&random, 4)) {
        damage_file(&damage, older);
    } else if (has_pages(image, damage.target)) {
        damage_bytes(&damage);
    }
    if (text[0] != '\0' && random_one_in(&random, 3)) {
        lose_index(&damage);
    }
    *loss_out = damage.loss;
}
