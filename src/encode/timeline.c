/* Parts of samples, sorted by row and then by time or, without moments, by their place in the call tree, which is
 * counted from the sizes of subtrees: a node's number is larger than its parent's. Then each row is gone through once
 * to have its parts follow each other. */
#include "encode/timeline.h"

#include <stdlib.h>

#define WITHOUT_MOMENT UINT64_MAX

/* The place of each node when the tree is walked from the root, callers first; null when memory ends. */
static uint32_t *tree_order(const struct profile *p)
{
    size_t count = p->nodes.len;
    uint32_t *size = calloc(count + 1, sizeof *size), *next = calloc(count + 1, sizeof *next);
    bool ok = size != NULL && next != NULL;
    for (size_t i = count; ok && i-- > 1;) {
        size[i]++;
        size[p->nodes.at[i].parent] += size[i];
    }
    for (size_t i = 1; ok && i < count; i++) {
        uint32_t *of_parent = &next[p->nodes.at[i].parent];
        next[i] = *of_parent + 1;
        *of_parent += size[i];
    }
    for (size_t i = 1; ok && i < count; i++) {
        next[i] -= size[i]; /* all of its children are behind it */
    }
    free(size);
    if (!ok) {
        free(next);
    }
    return ok ? next : NULL;
}

static bool add_part(struct timeline *t, struct timeline_part part)
{
    struct timeline_part *added = vec_push(&t->parts);
    if (added != NULL) {
        *added = part;
    }
    return added != NULL;
}

static bool add_parts(struct timeline *t, const struct profile *p, uint32_t sample, const uint32_t *order)
{
    const struct sample *s = &p->samples.at[sample];
    uint32_t plain = p->threads.at[s->thread].plain, step;
    struct timeline_part part = {.row = plain != 0 ? plain : s->thread, .sample = sample};
    struct moments_parts parts = moments_parts_of(&p->moments, sample, s->cpu_ns);
    bool ok = true, any = false;
    for (; ok && moments_part(&parts, &step, &part.ns); any = true) {
        part.at_ns = part.moment_ns = step * p->moments.step_ns;
        ok = add_part(t, part);
    }
    t->rows[part.row].cpu_ns += s->cpu_ns;
    if (any) {
        return ok;
    }
    part.at_ns = t->is_timed ? WITHOUT_MOMENT : order[s->node];
    part.ns = s->cpu_ns;
    return add_part(t, part);
}

static int by_weight(const void *left, const void *right)
{
    const struct timeline_row *a = left, *b = right;
    if (a->cpu_ns != b->cpu_ns) {
        return a->cpu_ns > b->cpu_ns ? -1 : 1;
    }
    return (a->thread > b->thread) - (a->thread < b->thread);
}

static int by_time(const void *left, const void *right)
{
    const struct timeline_part *a = left, *b = right;
    if (a->row != b->row) {
        return a->row > b->row ? 1 : -1;
    }
    if (a->at_ns != b->at_ns) {
        return a->at_ns > b->at_ns ? 1 : -1;
    }
    return (a->sample > b->sample) - (a->sample < b->sample);
}

/* Has the parts of a row follow each other: those with a moment, or those without. */
static void lay(struct timeline *t, const struct timeline_row *row, bool with_moment)
{
    uint64_t end = with_moment ? 0 : t->seen_ns;
    for (uint32_t i = row->first; i < row->first + row->count; i++) {
        struct timeline_part *part = &t->parts.at[i];
        if (with_moment != (t->is_timed && part->at_ns != WITHOUT_MOMENT)) {
            continue;
        }
        part->at_ns = with_moment && part->at_ns > end ? part->at_ns : end;
        part->moment_ns = with_moment ? part->moment_ns : part->at_ns;
        end = part->at_ns + part->ns;
    }
    t->end_ns = end > t->end_ns ? end : t->end_ns;
}

/* A part is within its step, whatever came before it. */
static void settle_moments(struct timeline *t, uint64_t step_ns)
{
    vec_each(&t->parts, part)
    {
        uint64_t last = part->moment_ns + step_ns - 1;
        part->moment_ns = !t->is_timed || part->at_ns < last ? part->at_ns : last;
    }
}

static void lay_all(struct timeline *t, const struct profile *p)
{
    if (t->parts.len > 0) {
        qsort(t->parts.at, t->parts.len, sizeof *t->parts.at, by_time);
    }
    for (size_t i = 0; i < p->threads.len; i++) {
        t->rows[i].thread = (uint32_t)i;
    }
    for (size_t i = t->parts.len; i-- > 0;) {
        struct timeline_row *row = &t->rows[t->parts.at[i].row];
        row->first = (uint32_t)i;
        row->count++;
    }
    for (size_t i = 0; i < p->threads.len; i++) {
        lay(t, &t->rows[i], true);
    }
    t->seen_ns = t->end_ns;
    for (size_t i = 0; i < p->threads.len; i++) {
        t->row_count += t->rows[i].count > 0;
        lay(t, &t->rows[i], false);
    }
    settle_moments(t, p->moments.step_ns);
    qsort(t->rows, p->threads.len, sizeof *t->rows, by_weight);
}

bool timeline_init(struct timeline *t, struct profile *p, struct err *err)
{
    uint32_t *order = tree_order(p);
    *t = (struct timeline){.rows = calloc(p->threads.len + 1, sizeof *t->rows), .is_timed = p->moments.list.len > 0};
    bool ok = order != NULL && t->rows != NULL;
    moments_sort(&p->moments);
    for (size_t i = 1; ok && i < p->samples.len; i++) {
        ok = add_parts(t, p, (uint32_t)i, order);
    }
    free(order);
    if (ok) {
        lay_all(t, p);
    }
    return ok || err_set(err, ERR_MEMORY, 0, "no memory to write %zu stacks", p->samples.len);
}

void timeline_release(struct timeline *t)
{
    vec_release(&t->parts);
    free(t->rows);
    t->rows = NULL;
}

bool timeline_climb(struct timeline_stack *stack, const struct profile *p, uint32_t node, struct err *err)
{
    uint32_t chain[PROFILE_INLINES_MAX];
    vec_clear(&stack->frames);
    for (uint32_t n = node; n != 0; n = p->nodes.at[n].parent) {
        size_t count = profile_expand(p, p->nodes.at[n].frame, chain);
        for (size_t i = 0; i < count; i++) {
            uint32_t *frame = vec_push(&stack->frames);
            if (frame == NULL) {
                return err_set(err, ERR_MEMORY, 0, "no memory for a stack of %zu frames", stack->frames.len);
            }
            *frame = chain[i];
        }
    }
    return true;
}

bool timeline_flush(struct buf *text, struct sink *out, struct err *err)
{
    if (text->failed) {
        return err_set(err, ERR_LIMIT, 0, "one stack or name is larger than %d bytes", TIMELINE_TEXT_MAX);
    }
    bool ok = sink_write(out, text->ptr, text->len, err);
    buf_clear(text);
    return ok;
}
