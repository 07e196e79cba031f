/* The frames of a profile as functions, each once, for formats that keep a table of them; and which
 * frames the samples, waits and events of a profile need at all: a profile that was made to fit has
 * frames that nothing leads to. */
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

bool functions_init(struct functions *f, const struct profile *p, const uint8_t *used, struct err *err)
{
    *f = (struct functions){0};
    f->of_frame = calloc(p->frames.len, sizeof *f->of_frame);
    bool ok = f->of_frame != NULL && vec_push(&f->list) != NULL;
    for (size_t i = 1; ok && i < p->frames.len; i++) {
        const struct frame *frame = &p->frames.at[i];
        if (used != NULL && used[i] == 0) {
            continue;
        }
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

/* Marks a node's frame and those above it, up to a node that is marked. */
static void use_stack(const struct profile *p, uint32_t node, bool *met, uint8_t *used)
{
    for (uint32_t n = node; n != 0 && !met[n]; n = p->nodes.at[n].parent) {
        uint32_t frame = p->nodes.at[n].frame;
        met[n] = true;
        used[frame] |= FRAME_OF_NODE;
        for (uint32_t f = p->frames.at[frame].caller; f != 0 && used[f] < FRAME_OF_CALLER;
             f = p->frames.at[f].caller) {
            used[f] |= FRAME_OF_CALLER;
        }
    }
}

uint8_t *frames_used(const struct profile *p)
{
    uint8_t *used = calloc(p->frames.len + 1, sizeof *used);
    bool *met = calloc(p->nodes.len + 1, sizeof *met);
    for (size_t i = 1; used != NULL && met != NULL && i < p->samples.len; i++) {
        use_stack(p, p->samples.at[i].node, met, used);
    }
    for (size_t i = 0; used != NULL && met != NULL && i < p->waits.len; i++) {
        use_stack(p, p->waits.at[i].node, met, used);
    }
    for (size_t i = 0; used != NULL && met != NULL && i < p->occurrences.len; i++) {
        use_stack(p, p->occurrences.at[i].node, met, used);
    }
    if (met == NULL) {
        free(used);
        used = NULL;
    }
    free(met);
    return used;
}
