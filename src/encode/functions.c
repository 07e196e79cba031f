#include "encode/functions.h"

#include <stdlib.h>

static uint64_t hash_function(const struct function *f)
{
    return hash_u64(((uint64_t)f->name << 32 | f->file) ^
                    hash_u64((uint64_t)f->system_name << 8 | f->kind));
}

static uint64_t function_hash(const void *owner, uint32_t id)
{
    return hash_function(&((const struct functions *)owner)->list.at[id]);
}

static bool function_same(const void *owner, uint32_t id, const void *key)
{
    const struct function *a = &((const struct functions *)owner)->list.at[id], *b = key;
    return a->name == b->name && a->system_name == b->system_name && a->file == b->file &&
           a->kind == b->kind;
}

static const struct intern_owner ops = {function_hash, function_same};

/* The function's place, or 0 when memory ends. */
static uint32_t place_of(struct functions *f, const struct function *function)
{
    uint64_t hash = hash_function(function);
    uint32_t id = intern_find(&f->ids, &ops, f, hash, function);
    if (id != 0) {
        return id;
    }
    struct function *added = vec_push(&f->list);
    if (added == NULL) {
        return 0;
    }
    *added = *function;
    id = (uint32_t)(f->list.len - 1);
    return intern_add(&f->ids, &ops, f, hash, id) ? id : 0;
}

bool functions_init(struct functions *f, const struct profile *p, struct err *err)
{
    *f = (struct functions){0};
    f->of_frame = calloc(p->frames.len, sizeof *f->of_frame);
    bool ok = f->of_frame != NULL && vec_push(&f->list) != NULL;
    for (size_t i = 1; ok && i < p->frames.len; i++) {
        const struct frame *frame = &p->frames.at[i];
        struct function key = {frame->name, frame->system_name, frame->file, frame->first_line,
                               frame->kind};
        f->of_frame[i] = place_of(f, &key);
        ok = f->of_frame[i] != 0;
    }
    if (!ok) {
        functions_release(f);
        return err_set(err, ERR_MEMORY, 0, "no memory for a table of %zu frames", p->frames.len);
    }
    return true;
}

void functions_release(struct functions *f)
{
    vec_release(&f->list);
    intern_release(&f->ids);
    free(f->of_frame);
    f->of_frame = NULL;
}
