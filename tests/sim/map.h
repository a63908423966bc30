/*
 * tests/sim/map.h -- an ordered map as a value: what a simulated index holds.
 *
 * Sorted entries, shared between copies. A map that is shared is not changed:
 * copy it first. Running out of memory ends the process.
 */
#ifndef TESTS_SIM_MAP_H
#define TESTS_SIM_MAP_H

#include <stdbool.h>
#include <stdint.h>

#include "base/bytes.h"

struct sim_map;

struct sim_map *sim_map_create(void);
struct sim_map *sim_map_copy(const struct sim_map *map);
struct sim_map *sim_map_ref(struct sim_map *map); /* Accepts NULL. */
void sim_map_unref(struct sim_map *map);          /* Accepts NULL. */

uint32_t sim_map_count(const struct sim_map *map);
/* The first entry >= key, or the count. */
uint32_t sim_map_lower(const struct sim_map *map, struct bytes key);
/* Borrowed until the map goes. */
struct bytes sim_map_key(const struct sim_map *map, uint32_t index);
struct bytes sim_map_value(const struct sim_map *map, uint32_t index);
/* False: it has no such key. */
bool sim_map_get(const struct sim_map *map, struct bytes key,
                 struct bytes *value_out);

/* Of a map that nobody shares. */
void sim_map_put(struct sim_map *map, struct bytes key, struct bytes value);
void sim_map_remove(struct sim_map *map, uint32_t index);

uint64_t sim_map_digest(const struct sim_map *map); /* Of NULL: 0. */

#endif
