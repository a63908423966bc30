/* tools/bench/peers/turn.c -- see tools/bench/peers/turn.h. */
#include "tools/bench/peers/turn.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "tools/must/must.h"

enum { BATCH_ITEMS = 10000 };

/* ---- Items ------------------------------------------------------------------------ */

struct turn_items turn_items_create(uint64_t count_max)
{
    struct turn_items items;

    items.items = must_have(calloc(count_max, sizeof items.items[0]));
    items.keys = must_have(calloc(count_max, sizeof items.keys[0]));
    for (uint64_t i = 0; i < count_max; i++) {
        items.items[i] = (struct peer_item){
            .key = items.keys[i],
            .key_bytes = ITEM_KEY_BYTES,
            .value = item_value,
            .value_bytes = ITEM_VALUE_BYTES,
        };
    }
    return items;
}

void turn_items_name(struct turn_items *items, const uint64_t *numbers,
                     uint64_t first, uint64_t count)
{
    for (uint64_t i = 0; i < count; i++) {
        item_key(items->keys[i], numbers == NULL ? first + i : numbers[i]);
    }
}

void turn_items_destroy(struct turn_items *items)
{
    free(items->items);
    free(items->keys);
}

/* ---- The peer ----------------------------------------------------------------------- */

bool turn_open(struct turn *turn, const struct peer *peer,
               const char *directory)
{
    if (mkdir(directory, 0700) != 0 && errno != EEXIST) {
        die("%s: %s", directory, strerror(errno));
    }
    *turn = (struct turn){.peer = peer, .db = peer->open(directory)};
    if (turn->db == NULL) {
        return false;
    }
    if (peer->thread_begin != NULL) {
        turn->thread = peer->thread_begin(turn->db);
    }
    return true;
}

void turn_close(struct turn *turn)
{
    if (turn->peer->thread_end != NULL) {
        turn->peer->thread_end(turn->db, turn->thread);
    }
    turn->peer->close(turn->db);
    turn->db = NULL;
}

static uint64_t batch_of(const struct turn *turn, uint64_t left)
{
    return turn->peer->rewrites_all || left < BATCH_ITEMS ? left : BATCH_ITEMS;
}

void turn_put(const struct turn *turn, const struct turn_items *items,
              uint64_t count)
{
    uint64_t batch;

    for (uint64_t first = 0; first < count; first += batch) {
        batch = batch_of(turn, count - first);
        turn->peer->put(turn->db, turn->thread, items->items + first, batch);
    }
}

void turn_load(const struct turn *turn, struct turn_items *items,
               uint64_t count)
{
    uint64_t batch;

    for (uint64_t first = 0; first < count; first += batch) {
        batch = batch_of(turn, count - first);
        turn_items_name(items, NULL, first, batch);
        turn->peer->put(turn->db, turn->thread, items->items, batch);
    }
    turn_must_hold(turn, count);
}

void turn_must_hold(const struct turn *turn, uint64_t expected)
{
    const uint64_t count = turn->peer->count(turn->db, turn->thread);

    if (count != expected) {
        die("%s has %" PRIu64 " items, not %" PRIu64, turn->peer->name, count,
            expected);
    }
}
