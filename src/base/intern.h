/*
 * intern: from the content of a thing to its index in an array somebody else owns.
 *
 * The table holds only 32-bit ids, so it costs about 6 bytes per entry; the owner supplies the hash
 * of a stored id and the comparison with a key that is not stored yet. Id 0 means "none" and is
 * never stored: owners keep element 0 of their arrays as the empty or root element.
 */
#ifndef BASE_INTERN_H
#define BASE_INTERN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct intern_owner {
    uint64_t (*hash_of)(const void *owner, uint32_t id);
    bool (*same)(const void *owner, uint32_t id, const void *key);
};

struct intern {
    uint32_t *slot;
    size_t cap; /* a power of two, or 0 */
    size_t len;
};

/* Texts by number. The owner is the address of the array's pointer (&texts.at of a VEC(struct str)), the key a struct
 * str. */
extern const struct intern_owner intern_texts;

void intern_release(struct intern *table);

/* Forgets all ids and keeps the memory. */
void intern_clear(struct intern *table);

/* The id whose content equals `key`, or 0. */
uint32_t intern_find(const struct intern *table, const struct intern_owner *ops, const void *owner,
                     uint64_t hash, const void *key);

/* Stores an id that intern_find did not find. False when memory ends. */
bool intern_add(struct intern *table, const struct intern_owner *ops, const void *owner,
                uint64_t hash, uint32_t id);

#endif
