/* The stacks of a profile by their identity. The table has numbers and no entries, so that it is small where it has to
 * be sparse, and so that an entry's number, by which a snapshot's bits and sums go, outlives its growth. A place is
 * chosen by the identity's upper bits: when the table doubles, what stood in order still does, and no row of taken
 * places gets longer. */
#include "runtime/go/delta/delta_stacks.h"

#include <stdlib.h>
#include <string.h>

enum { FIRST_BITS = 6, FIRST_STACKS = 32 };

void go_identities_release(struct go_identities *stacks)
{
    free(stacks->at);
    free(stacks->table);
    *stacks = (struct go_identities){0};
}

static size_t places(const struct go_identities *s)
{
    return s->bits == 0 ? 0 : (size_t)1 << s->bits;
}

size_t go_identities_bytes(const struct go_identities *stacks)
{
    return stacks->cap * sizeof *stacks->at + places(stacks) * sizeof *stacks->table;
}

/* The place where the identity is or would be; null: there is no table. */
static uint32_t *place_of(const struct go_identities *s, uint64_t identity, size_t *steps)
{
    size_t mask = places(s) - 1;
    *steps = 0;
    if (s->bits == 0) {
        return NULL;
    }
    size_t at = (size_t)(identity >> (64 - s->bits));
    while (s->table[at] != 0 && s->at[s->table[at] - 1].identity != identity) {
        at = (at + 1) & mask;
        ++*steps;
    }
    return &s->table[at];
}

/* The new table replaces the old one before it is filled: all it takes stands in the entries. */
static bool widen(struct go_identities *s, unsigned bits)
{
    uint32_t *table = calloc((size_t)1 << bits, sizeof *table);
    if (table == NULL) {
        return false;
    }
    free(s->table);
    s->table = table;
    s->bits = bits;
    for (size_t i = 0; i < s->count; i++) {
        size_t steps;
        *place_of(s, s->at[i].identity, &steps) = (uint32_t)i + 1;
    }
    return true;
}

static bool set_cap(struct go_identities *s, size_t cap)
{
    struct go_stack *at = realloc(s->at, cap * sizeof *at);
    if (at != NULL) {
        s->at = at;
        s->cap = cap;
    }
    return at != NULL;
}

bool go_identities_reserve(struct go_identities *stacks, size_t count)
{
    unsigned bits = stacks->bits > 0 ? stacks->bits : FIRST_BITS;
    count = count < GO_DELTA_STACKS_MAX ? count : GO_DELTA_STACKS_MAX;
    while (((size_t)1 << bits) / 5 * 4 < count) {
        bits++;
    }
    return (count <= stacks->cap || set_cap(stacks, count)) && (bits == stacks->bits || widen(stacks, bits));
}

uint32_t go_identities_find(const struct go_identities *stacks, uint64_t identity)
{
    size_t steps;
    const uint32_t *place = place_of(stacks, identity, &steps);
    return place == NULL || *place == 0 ? GO_STACK_NONE : *place - 1;
}

static bool has_room(struct go_identities *s)
{
    size_t cap = s->cap + s->cap / 8 + FIRST_STACKS;
    return (s->count < s->cap || set_cap(s, cap < GO_DELTA_STACKS_MAX ? cap : GO_DELTA_STACKS_MAX)) &&
           (s->count < places(s) / 5 * 4 || widen(s, s->bits > 0 ? s->bits + 1 : FIRST_BITS));
}

bool go_identities_add(struct go_identities *stacks, uint64_t identity, uint32_t *out)
{
    size_t steps;
    *out = go_identities_find(stacks, identity);
    stacks->is_full |= stacks->count == GO_DELTA_STACKS_MAX;
    if (*out != GO_STACK_NONE || stacks->is_full) {
        return true;
    }
    if (!has_room(stacks)) {
        return false;
    }
    uint32_t *place = place_of(stacks, identity, &steps);
    if (steps > GO_IDENTITIES_STEPS_MAX) {
        stacks->is_full = true;
        return true;
    }
    stacks->at[stacks->count] = (struct go_stack){.identity = identity};
    *out = (uint32_t)stacks->count;
    *place = (uint32_t)++stacks->count;
    return true;
}
