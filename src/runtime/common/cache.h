/*
 * cache: what was read of a process's functions, by their address and the walk's check.
 *
 * A row that names frames embeds struct function_cache in its naming state. Each function is read once, soon after
 * its first walk, while it still exists. Entries and bytes are bounded: when there is no more room all is forgotten at
 * once, at the start of a call of name_frames (cache_begin), so that texts last until the next one.
 */
#ifndef RUNTIME_COMMON_CACHE_H
#define RUNTIME_COMMON_CACHE_H

#include "base/arena.h"
#include "base/intern.h"
#include "base/str.h"
#include "base/vec.h"

#include <stdint.h>

struct function {
    uint64_t code, check; /* the key, with */
    uint32_t kind;        /* for rows that tell several kinds of frames apart */
    uint32_t first_line;
    struct str name, file;
    const void *more;     /* the row's own, in the cache's memory (cache.arena); null: nothing */
};

struct function_cache {
    VEC(struct function) all; /* element 0 is unused */
    struct intern ids;
    struct arena arena;
};

/* False: no memory; nothing need be released then. */
bool cache_open(struct function_cache *f);
void cache_release(struct function_cache *f);

/* Before so many frames are named: makes room. */
void cache_begin(struct function_cache *f, size_t frames);

/* By code, check and kind of `key`; null: not there. Valid until the next cache_add. */
const struct function *cache_find(const struct function_cache *f, const struct function *key);
/* Null: no memory. */
const struct function *cache_add(struct function_cache *f, const struct function *function);

/* A text that lasts as long as the cache; "" without memory, or when `text` failed. */
struct str cache_text(struct function_cache *f, const struct buf *text);

#endif
