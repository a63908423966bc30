/* tests/sim/cut.c -- see tests/sim/cut.h. */
#include "tests/sim/cut.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

struct sim_cutter {
    const struct sim_op *ops;
    size_t op_count;
    size_t place;
    enum sim_model model;
    struct sim_image *durable;
    size_t *pending; /* Indexes of operations that no sync has committed. */
    size_t pending_count;
    size_t pending_capacity;
};

const char *sim_model_name(enum sim_model model)
{
    static const char *const names[SIM_MODELS] = {"kill", "ordered", "own-name",
                                                  "any-order"};

    return names[model];
}

/* ---- Choosing ------------------------------------------------------------------- */

void sim_choice_random(struct sim_choice *choice, uint64_t seed)
{
    static const enum sim_choice_kind kinds[] = {
        SIM_CHOOSE_OLDEST, SIM_CHOOSE_NEWEST, SIM_CHOOSE_COIN,
        SIM_CHOOSE_MIXED};

    choice->random.state = seed;
    choice->digits_wanted = 0;
    choice->kind = kinds[random_below(&choice->random, 4)];
    choice->grain_bytes =
        random_one_in(&choice->random, 2) ? SIM_SECTOR_BYTES : SIM_PAGE_BYTES;
}

void sim_choice_each(struct sim_choice *choice, size_t grain_bytes)
{
    *choice = (struct sim_choice){.kind = SIM_CHOOSE_EACH,
                                  .grain_bytes = grain_bytes};
}

bool sim_choice_next(struct sim_choice *choice)
{
    const uint32_t count = choice->digits_wanted < SIM_DIGITS_MAX
                               ? choice->digits_wanted
                               : SIM_DIGITS_MAX;

    assert(choice->kind == SIM_CHOOSE_EACH);
    for (uint32_t digit = 0; digit < count; digit++) {
        if (++choice->digits[digit] < choice->limits[digit]) {
            return true;
        }
        choice->digits[digit] = 0;
    }
    return false;
}

/* 0 (the oldest) to count - 1 (the newest). */
static uint32_t choose(struct sim_choice *choice, enum sim_choice_kind kind,
                       uint32_t count)
{
    uint32_t digit;

    switch (kind) {
    case SIM_CHOOSE_OLDEST:
        return 0;
    case SIM_CHOOSE_NEWEST:
        return count - 1;
    case SIM_CHOOSE_COIN:
        return (uint32_t)random_below(&choice->random, count);
    case SIM_CHOOSE_EACH:
        if (count == 1) {
            return 0;
        }
        digit = choice->digits_wanted++;
        if (digit >= SIM_DIGITS_MAX) {
            return 0;
        }
        choice->limits[digit] = count;
        return choice->digits[digit];
    case SIM_CHOOSE_MIXED:
        break;
    }
    abort();
}

/* How to choose within one file, or among the names. */
static enum sim_choice_kind kind_within(struct sim_choice *choice)
{
    static const enum sim_choice_kind kinds[] = {
        SIM_CHOOSE_OLDEST, SIM_CHOOSE_NEWEST, SIM_CHOOSE_COIN};

    return choice->kind == SIM_CHOOSE_MIXED
               ? kinds[random_below(&choice->random, 3)]
               : choice->kind;
}

/* ---- Walking --------------------------------------------------------------------- */

struct sim_cutter *sim_cutter_create(const struct sim_image *start,
                                     const struct sim_op *ops, size_t op_count,
                                     enum sim_model model)
{
    struct sim_cutter *cutter = sim_allocate(sizeof *cutter);

    *cutter = (struct sim_cutter){
        .ops = ops,
        .op_count = op_count,
        .model = model,
        .durable = sim_image_copy(start),
    };
    return cutter;
}

void sim_cutter_free(struct sim_cutter *cutter)
{
    if (cutter != NULL) {
        sim_image_free(cutter->durable);
        free(cutter->pending);
        free(cutter);
    }
}

size_t sim_cutter_place(const struct sim_cutter *cutter)
{
    return cutter->place;
}

static bool is_data(const struct sim_op *op)
{
    return op->kind == SIM_OP_WRITE || op->kind == SIM_OP_RESIZE;
}

static bool is_name(const struct sim_op *op)
{
    return op->kind == SIM_OP_LINK || op->kind == SIM_OP_RENAME ||
           op->kind == SIM_OP_UNLINK;
}

static void apply_name(struct sim_image *image, const struct sim_op *op)
{
    if (op->kind == SIM_OP_RENAME) {
        sim_image_unlink(image, op->from_dir, op->from_name);
    }
    if (op->kind == SIM_OP_UNLINK) {
        sim_image_unlink(image, op->dir, op->name);
    } else {
        sim_image_link(image, op->dir, op->name, op->inode);
    }
}

static void apply_data(struct sim_image *image, const struct sim_op *op)
{
    if (op->kind == SIM_OP_WRITE) {
        sim_image_write(image, op->inode, op->data, op->bytes, op->offset);
    } else {
        sim_image_resize(image, op->inode, op->offset);
    }
}

/* Whether a sync of `synced` commits this pending operation. */
static bool commits(enum sim_model model, const struct sim_op *sync,
                    const struct sim_op *op)
{
    if (sync->kind == SIM_OP_SYNC && is_data(op)) {
        return op->inode == sync->inode;
    }
    if (!is_name(op)) {
        return false;
    }
    switch (model) {
    case SIM_MODEL_KILL:
    case SIM_MODEL_ORDERED:
        return true; /* Pending names are all earlier. */
    case SIM_MODEL_OWN_NAME:
        if (sync->kind == SIM_OP_SYNC) {
            return op->inode == sync->inode;
        }
        break;
    case SIM_MODEL_ANY_ORDER:
        if (sync->kind == SIM_OP_SYNC) {
            return false;
        }
        break;
    case SIM_MODELS:
        abort();
    }
    return op->dir == sync->inode ||
           (op->kind == SIM_OP_RENAME && op->from_dir == sync->inode);
}

static void commit(struct sim_cutter *cutter, const struct sim_op *sync)
{
    size_t kept = 0;

    for (size_t index = 0; index < cutter->pending_count; index++) {
        const struct sim_op *op = &cutter->ops[cutter->pending[index]];

        if (!commits(cutter->model, sync, op)) {
            cutter->pending[kept++] = cutter->pending[index];
        } else if (is_name(op)) {
            apply_name(cutter->durable, op);
        } else {
            apply_data(cutter->durable, op);
        }
    }
    cutter->pending_count = kept;
}

/* What was pending of this file never comes; its size may have. */
static void lose(struct sim_cutter *cutter, uint32_t inode)
{
    size_t kept = 0;

    for (size_t index = 0; index < cutter->pending_count; index++) {
        const struct sim_op *op = &cutter->ops[cutter->pending[index]];

        if (op->kind != SIM_OP_WRITE || op->inode != inode) {
            cutter->pending[kept++] = cutter->pending[index];
        }
    }
    cutter->pending_count = kept;
}

static void end_transaction(struct sim_cutter *cutter, uint32_t inode)
{
    size_t kept = 0;

    for (size_t index = 0; index < cutter->pending_count; index++) {
        const struct sim_op *op = &cutter->ops[cutter->pending[index]];

        if (op->kind != SIM_OP_MAP_BEGIN || op->inode != inode) {
            cutter->pending[kept++] = cutter->pending[index];
            continue;
        }
        sim_image_set_map(cutter->durable, inode, op->map);
    }
    cutter->pending_count = kept;
}

static void hold(struct sim_cutter *cutter, size_t index)
{
    if (cutter->pending_count == cutter->pending_capacity) {
        cutter->pending_capacity = cutter->pending_capacity * 2 + 32;
        cutter->pending =
            sim_reallocate(cutter->pending,
                           cutter->pending_capacity * sizeof *cutter->pending);
    }
    cutter->pending[cutter->pending_count++] = index;
}

/* What waits for a sync, and what a sync does. */
static void step_towards_disk(struct sim_cutter *cutter,
                              const struct sim_op *op)
{
    if (is_name(op) || is_data(op)) {
        hold(cutter, cutter->place);
    } else if (op->kind == SIM_OP_SYNC_LOST) {
        lose(cutter, op->inode);
    } else if (op->kind != SIM_OP_REREAD) {
        commit(cutter, op);
    }
}

/* KILL: what the cache shows. Only an index can be in the midst of something. */
static void follow_cache(struct sim_cutter *cutter, const struct sim_op *op)
{
    if (is_name(op)) {
        apply_name(cutter->durable, op);
    } else if (is_data(op)) {
        apply_data(cutter->durable, op);
    } else if (op->kind == SIM_OP_REREAD) {
        sim_image_set_node(cutter->durable, op->inode, op->node);
    }
}

const struct sim_op *sim_cutter_step(struct sim_cutter *cutter)
{
    const struct sim_op *op;

    if (cutter->place == cutter->op_count) {
        return NULL;
    }
    op = &cutter->ops[cutter->place];
    switch (op->kind) {
    case SIM_OP_CREATE:
        sim_image_add(cutter->durable, op->inode, op->type);
        break;
    case SIM_OP_MAP_BEGIN:
        hold(cutter, cutter->place);
        break;
    case SIM_OP_LINK:
    case SIM_OP_RENAME:
    case SIM_OP_UNLINK:
    case SIM_OP_WRITE:
    case SIM_OP_RESIZE:
    case SIM_OP_REREAD:
    case SIM_OP_SYNC:
    case SIM_OP_SYNC_DIR:
    case SIM_OP_SYNC_LOST:
        if (cutter->model == SIM_MODEL_KILL) {
            follow_cache(cutter, op);
        } else {
            step_towards_disk(cutter, op);
        }
        break;
    case SIM_OP_MAP_END:
        end_transaction(cutter, op->inode);
        break;
    case SIM_OP_MARK:
        break;
    }
    cutter->place++;
    return op;
}

/* ---- One file after the cut --------------------------------------------------------- */

enum { SECTORS_MAX = 4096 }; /* Pending at once in one file: 2 MiB. */

/* A file with pending operations: which versions of its sectors there are. */
struct tearing {
    const struct sim_cutter *cutter;
    struct sim_choice *choice;
    enum sim_choice_kind kind;
    struct sim_image *image;
    uint32_t inode;
    size_t grain;
    uint64_t sectors[SECTORS_MAX];
    uint16_t versions[SECTORS_MAX]; /* Pending ones. */
    uint16_t chosen[SECTORS_MAX];   /* 0: the durable one. */
    size_t sector_count;
};

static size_t sector_find(struct tearing *tearing, uint64_t sector)
{
    /* Writes mostly go forward: look from the end. */
    for (size_t index = tearing->sector_count; index > 0; index--) {
        if (tearing->sectors[index - 1] == sector) {
            return index - 1;
        }
    }
    assert(tearing->sector_count < SECTORS_MAX);
    tearing->sectors[tearing->sector_count] = sector;
    tearing->versions[tearing->sector_count] = 0;
    return tearing->sector_count++;
}

/* The next pending write of the file from *index on; NULL: none. The zeros that a
 * new file begins with are left out: every version of them is the same. */
static const struct sim_op *next_write(const struct tearing *tearing,
                                       size_t *index, bool *blank)
{
    const struct sim_cutter *cutter = tearing->cutter;

    while (*index < cutter->pending_count) {
        const struct sim_op *op = &cutter->ops[cutter->pending[(*index)++]];

        if (op->kind == SIM_OP_WRITE && op->inode == tearing->inode) {
            *blank = *blank && op->data == NULL;
            if (!*blank) {
                return op;
            }
        }
    }
    return NULL;
}

static bool is_blank(const struct tearing *tearing)
{
    return sim_image_node(tearing->image, tearing->inode)->page_count == 0;
}

static void count_versions(struct tearing *tearing)
{
    bool blank = is_blank(tearing);
    size_t index = 0;
    const struct sim_op *op;

    while ((op = next_write(tearing, &index, &blank)) != NULL) {
        for (uint64_t sector = op->offset / tearing->grain;
             sector <= (op->offset + op->bytes - 1) / tearing->grain;
             sector++) {
            tearing->versions[sector_find(tearing, sector)]++;
        }
    }
}

static void choose_versions(struct tearing *tearing)
{
    for (size_t index = 0; index < tearing->sector_count; index++) {
        tearing->chosen[index] =
            (uint16_t)choose(tearing->choice, tearing->kind,
                             (uint32_t)tearing->versions[index] + 1);
        tearing->versions[index] = 0; /* Counted again below. */
    }
}

/* The part of the write that falls into the sector. */
static void write_part(struct sim_node *node, const struct sim_op *op,
                       uint64_t sector, size_t grain)
{
    uint64_t first = sector * grain;
    uint64_t end = first + grain;

    if (first < op->offset) {
        first = op->offset;
    }
    if (end > op->offset + op->bytes) {
        end = op->offset + op->bytes;
    }
    sim_node_write(node,
                   op->data == NULL ? NULL : op->data + (first - op->offset),
                   (size_t)(end - first), first);
}

static void scribble(struct tearing *tearing, struct sim_node *node,
                     uint64_t sector)
{
    uint8_t bytes[SIM_PAGE_BYTES];

    for (size_t index = 0; index < tearing->grain; index++) {
        bytes[index] = (uint8_t)random_u64(&tearing->choice->random);
    }
    sim_node_write(node, bytes, tearing->grain, sector * tearing->grain);
}

/* Whether the sector is now another than the durable one. */
static bool differs(const struct tearing *tearing, const struct sim_node *node,
                    uint64_t sector)
{
    uint8_t durable[SIM_PAGE_BYTES] = {0};
    uint8_t now[SIM_PAGE_BYTES] = {0};

    (void)sim_image_read(tearing->image, tearing->inode, durable,
                         tearing->grain, sector * tearing->grain);
    (void)sim_node_read(node, now, tearing->grain, sector * tearing->grain);
    return memcmp(durable, now, tearing->grain) != 0;
}

/* ANY_ORDER: where pending bytes differ from the durable ones there may also be
 * zeros, or garbage. */
static void spoil(struct tearing *tearing, struct sim_node *node)
{
    if (tearing->cutter->model != SIM_MODEL_ANY_ORDER ||
        tearing->kind != SIM_CHOOSE_COIN) {
        return;
    }
    for (size_t index = 0; index < tearing->sector_count; index++) {
        if (!differs(tearing, node, tearing->sectors[index])) {
            continue;
        }
        switch (random_below(&tearing->choice->random, 8)) {
        case 0:
            sim_node_write(node, NULL, tearing->grain,
                           tearing->sectors[index] * tearing->grain);
            break;
        case 1:
            scribble(tearing, node, tearing->sectors[index]);
            break;
        default:
            break;
        }
    }
}

/* One of the sizes that the file had since it was last synced. */
static uint64_t choose_size(struct tearing *tearing)
{
    const struct sim_cutter *cutter = tearing->cutter;
    uint64_t size = sim_image_node(tearing->image, tearing->inode)->size_bytes;
    uint64_t sizes[64];
    uint32_t count = 0;

    sizes[count++] = size;
    for (size_t index = 0; index < cutter->pending_count; index++) {
        const struct sim_op *op = &cutter->ops[cutter->pending[index]];

        if (!is_data(op) || op->inode != tearing->inode) {
            continue;
        }
        if (op->kind == SIM_OP_RESIZE) {
            size = op->offset;
        } else if (op->offset + op->bytes > size) {
            size = op->offset + op->bytes;
        }
        if (size != sizes[count - 1]) {
            assert(count < 64);
            sizes[count++] = size;
        }
    }
    return sizes[choose(tearing->choice, tearing->kind, count)];
}

static void tear_file(const struct sim_cutter *cutter,
                      struct sim_choice *choice, struct sim_image *image,
                      uint32_t inode)
{
    static _Thread_local struct tearing tearing;
    const struct sim_op *op;
    struct sim_node *node;
    uint64_t size;
    size_t next = 0;
    bool blank;

    tearing.cutter = cutter;
    tearing.choice = choice;
    tearing.kind = kind_within(choice);
    tearing.image = image;
    tearing.inode = inode;
    tearing.grain = choice->grain_bytes;
    tearing.sector_count = 0;
    if (tearing.kind == SIM_CHOOSE_OLDEST) {
        return;
    }
    count_versions(&tearing);
    size = choose_size(&tearing);
    choose_versions(&tearing);

    blank = is_blank(&tearing);
    node = sim_node_clone(sim_image_node(image, inode));
    while ((op = next_write(&tearing, &next, &blank)) != NULL) {
        for (uint64_t sector = op->offset / tearing.grain;
             sector <= (op->offset + op->bytes - 1) / tearing.grain; sector++) {
            const size_t found = sector_find(&tearing, sector);

            if (++tearing.versions[found] <= tearing.chosen[found]) {
                write_part(node, op, sector, tearing.grain);
            }
        }
    }
    spoil(&tearing, node);
    sim_node_resize(node, size);
    sim_image_set_node(image, inode, node);
    sim_node_unref(node);
}

/* ---- The disk after the cut --------------------------------------------------------- */

static void crash_names(const struct sim_cutter *cutter,
                        struct sim_choice *choice, struct sim_image *image)
{
    const bool prefix = cutter->model == SIM_MODEL_ORDERED;
    const enum sim_choice_kind kind = kind_within(choice);
    uint32_t count = 0;
    uint32_t kept;

    for (size_t index = 0; index < cutter->pending_count; index++) {
        count += is_name(&cutter->ops[cutter->pending[index]]);
    }
    kept = prefix ? choose(choice, kind, count + 1) : count;
    for (size_t index = 0; index < cutter->pending_count && kept > 0; index++) {
        const struct sim_op *op = &cutter->ops[cutter->pending[index]];

        if (!is_name(op)) {
            continue;
        }
        kept--;
        if (prefix || choose(choice, kind, 2) == 1) {
            apply_name(image, op);
        }
    }
}

static bool is_first_of_its_file(const struct sim_cutter *cutter, size_t place)
{
    const struct sim_op *op = &cutter->ops[cutter->pending[place]];

    for (size_t index = 0; index < place; index++) {
        const struct sim_op *other = &cutter->ops[cutter->pending[index]];

        if (is_data(other) && other->inode == op->inode) {
            return false;
        }
    }
    return true;
}

struct sim_image *sim_cutter_crash(const struct sim_cutter *cutter,
                                   struct sim_choice *choice)
{
    struct sim_image *image = sim_image_copy(cutter->durable);

    choice->digits_wanted = 0;
    if (cutter->model != SIM_MODEL_KILL) {
        crash_names(cutter, choice, image);
        for (size_t index = 0; index < cutter->pending_count; index++) {
            const struct sim_op *op = &cutter->ops[cutter->pending[index]];

            if (is_data(op) && is_first_of_its_file(cutter, index)) {
                tear_file(cutter, choice, image, op->inode);
            }
        }
    }
    for (size_t index = 0; index < cutter->pending_count; index++) {
        const struct sim_op *op = &cutter->ops[cutter->pending[index]];

        if (op->kind == SIM_OP_MAP_BEGIN &&
            choose(choice, kind_within(choice), 2) == 1) {
            sim_image_set_map(image, op->inode, op->map);
        }
    }
    return image;
}
