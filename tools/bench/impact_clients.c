/* tools/bench/impact_clients.c -- see tools/bench/impact_clients.h. */
#include "tools/bench/impact_clients.h"

#include <stdlib.h>
#include <string.h>

#include "tools/bench/floor.h"
#include "tools/bench/store.h"
#include "tools/must/must.h"

enum {
    BURST_READS = 256,
    /* The committer's keys are the last digits of items': so few that the store
     * does not grow. */
    COMMIT_KEY_BYTES = 3,
    BARE_COMMIT_BYTES = 4096,
};

struct bare_item {
    char key[ITEM_KEY_BYTES + 1];
    char value[ITEM_VALUE_BYTES];
};

struct impact_clients {
    struct stele *store;
    struct floor_file *floor;
    struct bare_item *bare_items; /* Sorted. */
    uint64_t items;
    uint64_t seed;
    char key[ITEM_KEY_BYTES + 1]; /* Of the next one. */
    uint64_t commits;
};

static void read_once(struct impact_clients *clients)
{
    struct stele_error error = {0};
    struct stele_view *view;
    struct stele_value value;

    must(stele_view_open(clients->store, &view, &error), &error);
    must(stele_view_get(view, item_table, clients->key, ITEM_KEY_BYTES, &value,
                        &error),
         &error);
    if (value.bytes != ITEM_VALUE_BYTES) {
        die("%s: not the value that was put", clients->key);
    }
    stele_view_close(view);
}

static int compare_key(const void *key, const void *item)
{
    return memcmp(key, ((const struct bare_item *)item)->key, ITEM_KEY_BYTES);
}

static void search_once(struct impact_clients *clients)
{
    const struct bare_item *item =
        bsearch(clients->key, clients->bare_items, clients->items,
                sizeof clients->bare_items[0], compare_key);

    if (item == NULL || item->value[0] != item_value[0]) {
        die("%s: not in the array", clients->key);
    }
}

static void commit_once(struct impact_clients *clients)
{
    struct stele_error error = {0};

    must(stele_put(clients->store, "others",
                   clients->key + ITEM_KEY_BYTES - COMMIT_KEY_BYTES,
                   COMMIT_KEY_BYTES, item_value, ITEM_VALUE_BYTES, NULL,
                   &error),
         &error);
    clients->commits++;
}

static void write_once(struct impact_clients *clients)
{
    floor_file_append(clients->floor, BARE_COMMIT_BYTES);
}

const struct impact_client impact_every_client[IMPACT_CLIENTS] = {
    {"reader", false, true, BURST_READS, read_once},
    {"bare_reader", true, true, BURST_READS, search_once},
    {"committer", false, false, 1, commit_once},
    {"floor", true, false, 1, write_once},
};

static struct bare_item *make_bare_items(uint64_t count)
{
    struct bare_item *items = must_have(malloc(count * sizeof items[0]));

    for (uint64_t i = 0; i < count; i++) {
        item_key(items[i].key, i);
        memcpy(items[i].value, item_value, ITEM_VALUE_BYTES);
    }
    return items;
}

struct impact_clients *impact_clients_create(struct stele *store,
                                             const char *directory,
                                             uint64_t items)
{
    struct impact_clients *clients = must_have(calloc(1, sizeof *clients));

    clients->store = store;
    clients->floor = floor_file_create(directory);
    clients->bare_items = make_bare_items(items);
    clients->items = items;
    clients->seed = 3;
    return clients;
}

void impact_clients_choose(struct impact_clients *clients)
{
    item_key(clients->key, random_number(clients->items, &clients->seed));
}

void impact_clients_read_all(struct impact_clients *clients)
{
    for (uint64_t i = 0; i < clients->items; i++) {
        item_key(clients->key, i);
        read_once(clients);
    }
}

void impact_clients_destroy(struct impact_clients *clients)
{
    if (bench_store_stats(clients->store).records_written < clients->commits) {
        die("not as many records as commits");
    }
    floor_file_destroy(clients->floor);
    free(clients->bare_items);
    free(clients);
}
