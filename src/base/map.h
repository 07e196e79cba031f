/*
 * map: a hash table from a 64-bit key to a 64-bit value.
 *
 * Open addressing with linear probing, at most 3/4 full, no order. Key 0 is allowed. Removal
 * moves later entries back, so there are no tombstones and look-ups stay short. Interning tables
 * store an index as the value and compare the full object themselves: map_next continues among
 * entries of equal key, because a key may be stored several times with map_add.
 */
#ifndef BASE_MAP_H
#define BASE_MAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct map_slot {
    uint64_t key;
    uint64_t value;
    bool used;
};

struct map {
    struct map_slot *slot;
    size_t cap; /* a power of two, or 0 */
    size_t len;
};

void map_release(struct map *map);
void map_clear(struct map *map);

/* The slot of the first entry with this key, or null. Valid until the next change of the map. */
struct map_slot *map_find(const struct map *map, uint64_t key);

/* The next entry with the same key after `after`, or null. */
struct map_slot *map_next(const struct map *map, const struct map_slot *after);

/* Replaces the value of the first entry with this key, or adds one. False when memory ends. */
bool map_put(struct map *map, uint64_t key, uint64_t value);

/* Adds one more entry even if the key is there. False when memory ends. */
bool map_add(struct map *map, uint64_t key, uint64_t value);

void map_remove(struct map *map, struct map_slot *slot);

#define map_each(map, s)                                                                           \
    for (struct map_slot *s = (map)->slot; s != NULL && s != (map)->slot + (map)->cap; s++)        \
        if (s->used)

#endif
