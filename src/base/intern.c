#include "base/intern.h"
#include "base/str.h"

#include <stdlib.h>

enum { INTERN_FIRST_CAP = 64 };

static uint64_t text_hash(const void *owner, uint32_t id)
{
    return str_hash((*(struct str *const *)owner)[id]);
}

static bool text_same(const void *owner, uint32_t id, const void *key)
{
    return str_eq((*(struct str *const *)owner)[id], *(const struct str *)key);
}

const struct intern_owner intern_texts = {text_hash, text_same};

void intern_release(struct intern *table)
{
    free(table->slot);
    *table = (struct intern){0};
}

void intern_clear(struct intern *table)
{
    if (table->cap > 0) {
        memset(table->slot, 0, table->cap * sizeof *table->slot);
    }
    table->len = 0;
}

uint32_t intern_find(const struct intern *table, const struct intern_owner *ops, const void *owner,
                     uint64_t hash, const void *key)
{
    if (table->cap == 0) {
        return 0;
    }
    size_t mask = table->cap - 1;
    for (size_t at = hash & mask; table->slot[at] != 0; at = (at + 1) & mask) {
        if (ops->same(owner, table->slot[at], key)) {
            return table->slot[at];
        }
    }
    return 0;
}

static void place(struct intern *table, uint64_t hash, uint32_t id)
{
    size_t mask = table->cap - 1;
    size_t at = hash & mask;
    while (table->slot[at] != 0) {
        at = (at + 1) & mask;
    }
    table->slot[at] = id;
    table->len++;
}

static bool grow(struct intern *table, const struct intern_owner *ops, const void *owner)
{
    struct intern grown = {.cap = table->cap == 0 ? INTERN_FIRST_CAP : table->cap * 2};
    grown.slot = calloc(grown.cap, sizeof *grown.slot);
    if (grown.slot == NULL) {
        return false;
    }
    for (size_t i = 0; i < table->cap; i++) {
        if (table->slot[i] != 0) {
            place(&grown, ops->hash_of(owner, table->slot[i]), table->slot[i]);
        }
    }
    free(table->slot);
    *table = grown;
    return true;
}

bool intern_add(struct intern *table, const struct intern_owner *ops, const void *owner,
                uint64_t hash, uint32_t id)
{
    if (table->len + 1 > table->cap / 4 * 3 && !grow(table, ops, owner)) {
        return false;
    }
    place(table, hash, id);
    return true;
}
