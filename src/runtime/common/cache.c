#include "runtime/common/cache.h"
#include "runtime/common/load.h"

enum {
    FUNCTIONS_MAX = 65536,
    BYTES_MAX = 8 << 20,
    START_OVER_BYTES = 6 << 20,
    NAMES_EACH = 2, /* entries that a frame may add: a row may know a function by two keys */
};

static uint64_t hash_of(const struct function *f)
{
    return mix_u64(mix_u64(f->kind, f->code), f->check);
}

static uint64_t function_hash(const void *owner, uint32_t id)
{
    return hash_of(&((const struct function_cache *)owner)->all.at[id]);
}

static bool function_same(const void *owner, uint32_t id, const void *key)
{
    const struct function *a = &((const struct function_cache *)owner)->all.at[id], *b = key;
    return a->code == b->code && a->check == b->check && a->kind == b->kind;
}

static const struct intern_owner ops = {function_hash, function_same};

bool cache_open(struct function_cache *f)
{
    *f = (struct function_cache){0};
    arena_init(&f->arena, BYTES_MAX);
    return vec_push(&f->all) != NULL;
}

void cache_release(struct function_cache *f)
{
    vec_release(&f->all);
    intern_release(&f->ids);
    arena_release(&f->arena);
}

void cache_begin(struct function_cache *f, size_t frames)
{
    if (f->all.len + NAMES_EACH * frames > FUNCTIONS_MAX || f->arena.used_bytes > START_OVER_BYTES) {
        f->all.len = 1;
        intern_clear(&f->ids);
        arena_clear(&f->arena);
    }
}

const struct function *cache_find(const struct function_cache *f, const struct function *key)
{
    uint32_t id = intern_find(&f->ids, &ops, f, hash_of(key), key);
    return id != 0 ? &f->all.at[id] : NULL;
}

const struct function *cache_add(struct function_cache *f, const struct function *function)
{
    struct function *added = vec_push(&f->all);
    if (added == NULL) {
        return NULL;
    }
    *added = *function;
    (void)intern_add(&f->ids, &ops, f, hash_of(added), (uint32_t)(f->all.len - 1)); /* else: read again next time */
    return added;
}

struct str cache_text(struct function_cache *f, const struct buf *text)
{
    struct str copy = text->failed ? STR("") : arena_copy(&f->arena, buf_slice(text));
    return copy.ptr != NULL ? copy : STR("");
}
