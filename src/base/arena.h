/*
 * arena: memory of one lifetime, given back all at once.
 *
 * Allocation is a pointer bump; nothing is freed singly. arena_clear keeps the chunks, so an arena
 * that is emptied every window stops allocating once it has seen its largest window. Born
 * with its maximum: an allocation beyond it returns null, which the caller counts as a loss.
 */
#ifndef BASE_ARENA_H
#define BASE_ARENA_H

#include "base/str.h"

struct arena_chunk;

struct arena {
    struct arena_chunk *chunks; /* newest first */
    struct arena_chunk *spare;  /* kept by arena_clear */
    size_t used_bytes;          /* over all chunks */
    size_t max_bytes;
};

void arena_init(struct arena *arena, size_t max_bytes);
void arena_release(struct arena *arena);
void arena_clear(struct arena *arena);

/* Zeroed, aligned to 8. */
void *arena_alloc(struct arena *arena, size_t bytes);

/* A copy with a NUL after it; {null, 0} when full. */
struct str arena_copy(struct arena *arena, struct str text);

#endif
