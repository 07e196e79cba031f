/* Memory of one lifetime: blocks are cut from chunks of 64 KiB by moving a pointer and are released
 * all together. A cleared arena keeps its chunks, so a window that repeats allocates nothing. An
 * allocation that would pass the arena's maximum fails. */
#include "base/arena.h"

#include <stdlib.h>

enum { CHUNK_BYTES = 64 * 1024 - 64 };

struct arena_chunk {
    struct arena_chunk *next;
    size_t len;
    size_t cap;
    _Alignas(8) char bytes[];
};

void arena_init(struct arena *arena, size_t max_bytes)
{
    *arena = (struct arena){.max_bytes = max_bytes};
}

static void free_chunks(struct arena_chunk *chunk)
{
    while (chunk != NULL) {
        struct arena_chunk *next = chunk->next;
        free(chunk);
        chunk = next;
    }
}

void arena_release(struct arena *arena)
{
    free_chunks(arena->chunks);
    free_chunks(arena->spare);
    arena_init(arena, arena->max_bytes);
}

void arena_clear(struct arena *arena)
{
    while (arena->chunks != NULL) {
        struct arena_chunk *chunk = arena->chunks;
        arena->chunks = chunk->next;
        chunk->next = arena->spare;
        arena->spare = chunk;
    }
    arena->used_bytes = 0;
}

static struct arena_chunk *spare_for(struct arena *arena, size_t bytes)
{
    for (struct arena_chunk **at = &arena->spare; *at != NULL; at = &(*at)->next) {
        if (bytes <= (*at)->cap) {
            struct arena_chunk *chunk = *at;
            *at = chunk->next;
            return chunk;
        }
    }
    size_t cap = bytes > CHUNK_BYTES ? bytes : CHUNK_BYTES;
    struct arena_chunk *chunk = malloc(sizeof *chunk + cap);
    if (chunk != NULL) {
        chunk->cap = cap;
    }
    return chunk;
}

static struct arena_chunk *chunk_for(struct arena *arena, size_t bytes)
{
    struct arena_chunk *top = arena->chunks;
    if (top != NULL && bytes <= top->cap - top->len) {
        return top;
    }
    struct arena_chunk *chunk = spare_for(arena, bytes);
    if (chunk != NULL) {
        chunk->len = 0;
        chunk->next = top;
        arena->chunks = chunk;
    }
    return chunk;
}

void *arena_alloc(struct arena *arena, size_t bytes)
{
    if (bytes > arena->max_bytes) {
        return NULL;
    }
    bytes = (bytes + 7) & ~(size_t)7;
    if (bytes > arena->max_bytes - arena->used_bytes) {
        return NULL;
    }
    struct arena_chunk *chunk = chunk_for(arena, bytes);
    if (chunk == NULL) {
        return NULL;
    }
    void *out = chunk->bytes + chunk->len;
    chunk->len += bytes;
    arena->used_bytes += bytes;
    return memset(out, 0, bytes);
}

struct str arena_copy(struct arena *arena, struct str text)
{
    char *copy = arena_alloc(arena, text.len + 1);
    if (copy == NULL) {
        return (struct str){NULL, 0};
    }
    if (text.len > 0) {
        memcpy(copy, text.ptr, text.len);
    }
    return (struct str){copy, text.len};
}
