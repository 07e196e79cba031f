/*
 * delta_stacks: what was last seen of each stack of a profile: its identity and the values that grow.
 *
 * Concept. Entries stand in an array in the order in which they were first met, 24 bytes each, and keep their number;
 * a table of numbers, at most 4/5 full, finds them by identity. None is ever taken out: a Go program does not forget a
 * stack either. The memory: 24 bytes per stack and an eighth more when it grows, and 5 to 10 in the table.
 *
 * Identities are 64 bits of a hash and taken for equal where these are. With n stacks the odds that any two of them
 * ever are confused are n² / 2⁶⁵: 1 in 15,000 million for 50,000, 1 in 900 million for the most that are kept; the
 * outcome would be one stack's values counted to another's.
 *
 * Limits. GO_DELTA_STACKS_MAX entries. The identities are the profiled program's, which may choose them so that they
 * collide: when a search for a free place goes over GO_IDENTITIES_STEPS_MAX places (by chance, some 100, 500 at worst),
 * the table counts as full for good, so what is kept stays found and what is not is never kept later.
 */
#ifndef RUNTIME_GO_DELTA_STACKS_H
#define RUNTIME_GO_DELTA_STACKS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    GO_DELTA_STACKS_MAX = 200 * 1000,
    GO_DELTA_GROWING_MAX = 2, /* sample types whose values grow: objects and bytes, or contentions and their delay */
    GO_IDENTITIES_STEPS_MAX = 2000,
};

#define GO_STACK_NONE UINT32_MAX

struct go_stack {
    uint64_t identity;
    uint64_t previous[GO_DELTA_GROWING_MAX]; /* sums; as int64_t they may be negative */
};

struct go_identities {
    struct go_stack *at;
    size_t count, cap;
    uint32_t *table; /* number + 1; 0: free */
    unsigned bits;   /* the table has 1 << bits places; 0: there is none */
    bool is_full;
};

void go_identities_release(struct go_identities *stacks);
size_t go_identities_bytes(const struct go_identities *stacks);

/* Room for so many in all, exactly: for who knows how many will come. False: no memory. */
bool go_identities_reserve(struct go_identities *stacks, size_t count);

/* The number of the stack, or GO_STACK_NONE. */
uint32_t go_identities_find(const struct go_identities *stacks, uint64_t identity);

/* The same, a new one with zeros if there is none yet; GO_STACK_NONE when they are full. False: no memory. */
bool go_identities_add(struct go_identities *stacks, uint64_t identity, uint32_t *out);

#endif
