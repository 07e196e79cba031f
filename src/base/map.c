/* A hash table of 64-bit keys and values: open addressing, linear probing, at most 3/4 full. Removal
 * moves later entries back instead of leaving tombstones, so a table that changes all the time does
 * not slow down. */
#include "base/map.h"
#include "base/str.h"

#include <stdlib.h>
#include <string.h>

enum { MAP_FIRST_CAP = 16 };

void map_release(struct map *map)
{
    free(map->slot);
    *map = (struct map){0};
}

void map_clear(struct map *map)
{
    if (map->cap > 0) {
        memset(map->slot, 0, map->cap * sizeof *map->slot);
    }
    map->len = 0;
}

static size_t home_of(const struct map *map, uint64_t key)
{
    return hash_u64(key) & (map->cap - 1);
}

static struct map_slot *seek(const struct map *map, size_t at, uint64_t key)
{
    for (; map->slot[at].used; at = (at + 1) & (map->cap - 1)) {
        if (map->slot[at].key == key) {
            return &map->slot[at];
        }
    }
    return NULL;
}

struct map_slot *map_find(const struct map *map, uint64_t key)
{
    return map->cap == 0 ? NULL : seek(map, home_of(map, key), key);
}

struct map_slot *map_next(const struct map *map, const struct map_slot *after)
{
    return seek(map, ((size_t)(after - map->slot) + 1) & (map->cap - 1), after->key);
}

static void place(struct map *map, uint64_t key, uint64_t value)
{
    size_t at = home_of(map, key);
    while (map->slot[at].used) {
        at = (at + 1) & (map->cap - 1);
    }
    map->slot[at] = (struct map_slot){key, value, true};
    map->len++;
}

static bool make_room(struct map *map)
{
    if (map->cap > 0 && map->len + 1 <= map->cap / 4 * 3) {
        return true;
    }
    struct map grown = {.cap = map->cap == 0 ? MAP_FIRST_CAP : map->cap * 2};
    grown.slot = calloc(grown.cap, sizeof *grown.slot);
    if (grown.slot == NULL) {
        return false;
    }
    map_each(map, s)
    {
        place(&grown, s->key, s->value);
    }
    free(map->slot);
    *map = grown;
    return true;
}

bool map_add(struct map *map, uint64_t key, uint64_t value)
{
    if (!make_room(map)) {
        return false;
    }
    place(map, key, value);
    return true;
}

bool map_put(struct map *map, uint64_t key, uint64_t value)
{
    struct map_slot *found = map_find(map, key);
    if (found != NULL) {
        found->value = value;
        return true;
    }
    return map_add(map, key, value);
}

void map_remove(struct map *map, struct map_slot *slot)
{
    size_t mask = map->cap - 1;
    size_t hole = (size_t)(slot - map->slot);
    for (size_t at = (hole + 1) & mask; map->slot[at].used; at = (at + 1) & mask) {
        /* an entry may fill the hole only if its home does not lie between hole and entry */
        size_t home = home_of(map, map->slot[at].key);
        if (((at - home) & mask) >= ((at - hole) & mask)) {
            map->slot[hole] = map->slot[at];
            hole = at;
        }
    }
    map->slot[hole] = (struct map_slot){0};
    map->len--;
}
