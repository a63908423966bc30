/* tests/sim/map.c -- see tests/sim/map.h. */
#include "tests/sim/map.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/checksum.h"
#include "tests/sim/image.h"

struct entry {
    uint32_t refs;
    uint32_t key_bytes;
    uint32_t value_bytes;
    uint8_t data[]; /* The key, then the value. */
};

struct sim_map {
    uint32_t refs;
    uint32_t count;
    uint32_t capacity;
    struct entry **entries;
};

struct sim_map *sim_map_create(void)
{
    struct sim_map *map = sim_allocate(sizeof *map);

    *map = (struct sim_map){.refs = 1};
    return map;
}

struct sim_map *sim_map_copy(const struct sim_map *map)
{
    struct sim_map *copy = sim_map_create();

    copy->count = map->count;
    copy->capacity = map->count + 8;
    copy->entries = sim_allocate(copy->capacity * sizeof(struct entry *));
    for (uint32_t index = 0; index < map->count; index++) {
        copy->entries[index] = map->entries[index];
        copy->entries[index]->refs++;
    }
    return copy;
}

struct sim_map *sim_map_ref(struct sim_map *map)
{
    if (map != NULL) {
        map->refs++;
    }
    return map;
}

static void entry_unref(struct entry *entry)
{
    if (--entry->refs == 0) {
        free(entry);
    }
}

void sim_map_unref(struct sim_map *map)
{
    if (map == NULL || --map->refs > 0) {
        return;
    }
    for (uint32_t index = 0; index < map->count; index++) {
        entry_unref(map->entries[index]);
    }
    free(map->entries);
    free(map);
}

uint32_t sim_map_count(const struct sim_map *map)
{
    return map->count;
}

struct bytes sim_map_key(const struct sim_map *map, uint32_t index)
{
    const struct entry *entry = map->entries[index];

    assert(index < map->count);
    return (struct bytes){entry->data, entry->key_bytes};
}

struct bytes sim_map_value(const struct sim_map *map, uint32_t index)
{
    const struct entry *entry = map->entries[index];

    assert(index < map->count);
    return (struct bytes){entry->data + entry->key_bytes, entry->value_bytes};
}

uint32_t sim_map_lower(const struct sim_map *map, struct bytes key)
{
    uint32_t low = 0;
    uint32_t high = map->count;

    while (low < high) {
        const uint32_t middle = low + (high - low) / 2;

        if (bytes_compare(sim_map_key(map, middle), key) < 0) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

bool sim_map_get(const struct sim_map *map, struct bytes key,
                 struct bytes *value_out)
{
    const uint32_t index = sim_map_lower(map, key);

    if (index == map->count ||
        bytes_compare(sim_map_key(map, index), key) != 0) {
        return false;
    }
    *value_out = sim_map_value(map, index);
    return true;
}

void sim_map_put(struct sim_map *map, struct bytes key, struct bytes value)
{
    const uint32_t index = sim_map_lower(map, key);
    struct entry *entry = sim_allocate(sizeof *entry + key.size + value.size);

    assert(map->refs == 1);
    entry->refs = 1;
    entry->key_bytes = (uint32_t)key.size;
    entry->value_bytes = (uint32_t)value.size;
    memcpy(entry->data, key.data, key.size);
    if (value.size > 0) {
        memcpy(entry->data + key.size, value.data, value.size);
    }
    if (index < map->count &&
        bytes_compare(sim_map_key(map, index), key) == 0) {
        entry_unref(map->entries[index]);
        map->entries[index] = entry;
        return;
    }
    if (map->count == map->capacity) {
        map->capacity = map->capacity * 2 + 8;
        map->entries = sim_reallocate(map->entries,
                                      map->capacity * sizeof(struct entry *));
    }
    memmove(map->entries + index + 1, map->entries + index,
            (map->count - index) * sizeof(struct entry *));
    map->entries[index] = entry;
    map->count++;
}

void sim_map_remove(struct sim_map *map, uint32_t index)
{
    assert(map->refs == 1 && index < map->count);
    entry_unref(map->entries[index]);
    map->count--;
    memmove(map->entries + index, map->entries + index + 1,
            (map->count - index) * sizeof(struct entry *));
}

uint64_t sim_map_digest(const struct sim_map *map)
{
    uint64_t digest = 0;

    for (uint32_t index = 0; map != NULL && index < map->count; index++) {
        const struct entry *entry = map->entries[index];

        digest = checksum64(entry->data,
                            (size_t)entry->key_bytes + entry->value_bytes,
                            digest + entry->key_bytes);
    }
    return digest;
}
