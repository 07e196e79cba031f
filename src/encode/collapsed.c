/* A profile as collapsed stacks. Heads and frames are spelled once, and nodes that are spelled alike
 * become one tree, whose walk gives every line its place; lines are sorted by these places, and each
 * gets what is still owed of the running total. */
#include "encode/collapsed.h"
#include "encode/encode.h"

#include <stdlib.h>

/* Spelled texts, each once, and their place in byte order. */
struct texts {
    VEC(struct str) list; /* element 0 is unused */
    struct intern ids;
    struct arena arena;
    uint32_t *rank; /* by text, filled when all are known */
};

/* The call tree by spelling, shared by all threads: two frames that are written alike are one. */
struct spelled_node {
    uint32_t parent, text;
    uint32_t child, sibling; /* in byte order; 0 none */
    uint32_t rank;           /* place among all stacks in byte order */
};

struct line {
    uint32_t head, node; /* text before the frames; spelled node */
    uint32_t head_rank, node_rank;
    uint64_t cpu_ns;
};

struct writer {
    struct profile *p;
    const struct encode_rules *rules; /* null: none */
    struct texts texts;
    struct buf spelling, with_line;
    uint32_t *head_of_thread, *text_of_frame, *spelled_of_node, *index_of_process;
    VEC(struct spelled_node) tree; /* element 0 is the root */
    struct intern tree_ids;
    VEC(struct line) lines;
    VEC(uint32_t) path;
};

static uint64_t node_hash(const void *owner, uint32_t id)
{
    const struct spelled_node *n = &((const struct writer *)owner)->tree.at[id];
    return hash_u64((uint64_t)n->parent << 32 | n->text);
}

static bool node_same(const void *owner, uint32_t id, const void *key)
{
    const struct spelled_node *a = &((const struct writer *)owner)->tree.at[id], *b = key;
    return a->parent == b->parent && a->text == b->text;
}

static const struct intern_owner node_ops = {node_hash, node_same};

/* The text in w->spelling as an id; 0 when memory ends. */
static uint32_t spelled_text(struct writer *w)
{
    struct texts *texts = &w->texts;
    struct str text = buf_slice(&w->spelling);
    uint64_t hash = str_hash(text);
    uint32_t id = intern_find(&texts->ids, &intern_texts, &texts->list.at, hash, &text);
    if (id != 0 || w->spelling.failed) {
        return w->spelling.failed ? 0 : id;
    }
    struct str copy = arena_copy(&texts->arena, text);
    struct str *added = copy.ptr == NULL ? NULL : vec_push(&texts->list);
    if (added == NULL) {
        return 0;
    }
    *added = copy;
    id = (uint32_t)(texts->list.len - 1);
    return intern_add(&texts->ids, &intern_texts, &texts->list.at, hash, id) ? id : 0;
}

/* index;container;comm[;appid] */
static uint32_t spell_head(struct writer *w, const struct thread *thread)
{
    const struct process *process = &w->p->processes.at[thread->process];
    struct buf *out = &w->spelling;
    buf_clear(out);
    buf_printf(out, "%u;", w->index_of_process[thread->process]);
    if (process->container != 0) {
        collapsed_field(out, profile_text(w->p, process->container));
    }
    buf_byte(out, ';');
    collapsed_field(out, profile_text(w->p, thread->name != 0 ? thread->name : process->name));
    if (process->appid != 0) {
        struct str appid = profile_text(w->p, process->appid);
        buf_text(out, str_starts(appid, STR("appid: ")) ? ";" : ";appid: ");
        collapsed_field(out, appid);
    }
    return spelled_text(w);
}

static void spell_frame(struct writer *w, const struct frame *f)
{
    struct str name = profile_text(w->p, f->name);
    bool has_line = w->rules != NULL && w->rules->lines && f->line != 0 && str_ends(name, STR(")")) &&
                    languages[f->kind].form == NAME_WITH_FILE;
    buf_clear(&w->spelling);
    if (has_line) {
        buf_clear(&w->with_line);
        buf_str(&w->with_line, name);
        buf_printf(&w->with_line, ":%u", f->line);
        name = buf_slice(&w->with_line);
    }
    collapsed_frame(&w->spelling, name, (enum frame_kind)f->kind);
}

static bool spell_all(struct writer *w)
{
    for (size_t i = 0; i < w->p->threads.len; i++) {
        w->head_of_thread[i] = spell_head(w, &w->p->threads.at[i]);
        if (w->head_of_thread[i] == 0) {
            return false;
        }
    }
    for (size_t i = 1; i < w->p->frames.len; i++) {
        spell_frame(w, &w->p->frames.at[i]);
        w->text_of_frame[i] = spelled_text(w);
        if (w->text_of_frame[i] == 0) {
            return false;
        }
    }
    return true;
}

static uint32_t spelled_child(struct writer *w, uint32_t parent, uint32_t text)
{
    struct spelled_node key = {.parent = parent, .text = text};
    uint64_t hash = hash_u64((uint64_t)parent << 32 | text);
    uint32_t id = intern_find(&w->tree_ids, &node_ops, w, hash, &key);
    if (id != 0) {
        return id;
    }
    struct spelled_node *added = vec_push(&w->tree);
    if (added == NULL) {
        return 0;
    }
    *added = key;
    id = (uint32_t)(w->tree.len - 1);
    return intern_add(&w->tree_ids, &node_ops, w, hash, id) ? id : 0;
}

/* The spelled node of a frame below `parent`, through what it is inlined into. */
static uint32_t spelled_frame(struct writer *w, uint32_t parent, uint32_t frame)
{
    uint32_t chain[PROFILE_INLINES_MAX], at = parent;
    for (size_t i = profile_expand(w->p, frame, chain); i-- > 0;) {
        at = spelled_child(w, at, w->text_of_frame[chain[i]]);
        if (at == 0) {
            return 0;
        }
    }
    return at;
}

/* A parent always comes before its children. */
static bool build_tree(struct writer *w)
{
    if (vec_push(&w->tree) == NULL) {
        return false;
    }
    for (size_t i = 1; i < w->p->nodes.len; i++) {
        const struct node *n = &w->p->nodes.at[i];
        w->spelled_of_node[i] = spelled_frame(w, w->spelled_of_node[n->parent], n->frame);
        if (w->spelled_of_node[i] == 0) {
            return false;
        }
    }
    return true;
}

struct ranked_text {
    struct str text;
    uint32_t id;
};

static int by_text(const void *left, const void *right)
{
    return str_compare(((const struct ranked_text *)left)->text,
                       ((const struct ranked_text *)right)->text);
}

static bool rank_texts(struct texts *texts)
{
    size_t count = texts->list.len;
    struct ranked_text *order = calloc(count, sizeof *order);
    texts->rank = calloc(count, sizeof *texts->rank);
    if (order == NULL || texts->rank == NULL) {
        free(order);
        return false;
    }
    for (size_t i = 1; i < count; i++) {
        order[i] = (struct ranked_text){texts->list.at[i], (uint32_t)i};
    }
    qsort(order + 1, count - 1, sizeof *order, by_text);
    for (size_t i = 1; i < count; i++) {
        texts->rank[order[i].id] = (uint32_t)i;
    }
    free(order);
    return true;
}

/* Nodes by the rank of their text, from the last one on, each before the siblings that it has so far. No parent has
 * two children of one text. */
static bool link_children(struct writer *w)
{
    size_t ranks = w->texts.list.len, count = w->tree.len;
    uint32_t *first = calloc(ranks, sizeof *first), *next = calloc(count, sizeof *next);
    bool ok = first != NULL && next != NULL;
    for (size_t i = 1; ok && i < count; i++) {
        uint32_t *head = &first[w->texts.rank[w->tree.at[i].text]];
        next[i] = *head;
        *head = (uint32_t)i;
    }
    for (size_t rank = ranks; ok && rank-- > 1;) {
        for (uint32_t id = first[rank]; id != 0; id = next[id]) {
            struct spelled_node *parent = &w->tree.at[w->tree.at[id].parent];
            w->tree.at[id].sibling = parent->child;
            parent->child = id;
        }
    }
    free(first);
    free(next);
    return ok;
}

/* Numbers the nodes in the order in which a walk from the root meets them. */
static void rank_nodes(struct writer *w)
{
    uint32_t at = 0, rank = 0;
    for (;;) {
        struct spelled_node *n = &w->tree.at[at];
        n->rank = rank++;
        if (n->child != 0) {
            at = n->child;
            continue;
        }
        while (at != 0 && w->tree.at[at].sibling == 0) {
            at = w->tree.at[at].parent;
        }
        if (at == 0) {
            return;
        }
        at = w->tree.at[at].sibling;
    }
}

static int by_rank(const void *left, const void *right)
{
    const struct line *a = left, *b = right;
    if (a->head_rank != b->head_rank) {
        return a->head_rank < b->head_rank ? -1 : 1;
    }
    return (a->node_rank > b->node_rank) - (a->node_rank < b->node_rank);
}

static bool collect_lines(struct writer *w)
{
    for (size_t i = 1; i < w->p->samples.len; i++) {
        const struct sample *s = &w->p->samples.at[i];
        struct line *line = vec_push(&w->lines);
        if (line == NULL) {
            return false;
        }
        uint32_t head = w->head_of_thread[s->thread], node = w->spelled_of_node[s->node];
        *line = (struct line){head, node, w->texts.rank[head], w->tree.at[node].rank, s->cpu_ns};
    }
    if (w->lines.len > 0) {
        qsort(w->lines.at, w->lines.len, sizeof *w->lines.at, by_rank);
    }
    return true;
}

static bool prepare(struct writer *w)
{
    struct profile *p = w->p;
    arena_init(&w->texts.arena, SIZE_MAX / 2); /* bounded by the profile's own texts */
    buf_init(&w->spelling, COLLAPSED_LINE_MAX);
    buf_init(&w->with_line, COLLAPSED_LINE_MAX);
    w->head_of_thread = calloc(p->threads.len, sizeof(uint32_t));
    w->text_of_frame = calloc(p->frames.len, sizeof(uint32_t));
    w->spelled_of_node = calloc(p->nodes.len, sizeof(uint32_t));
    w->index_of_process = calloc(p->processes.len, sizeof(uint32_t));
    return w->head_of_thread != NULL && w->text_of_frame != NULL && w->spelled_of_node != NULL &&
           w->index_of_process != NULL && vec_push(&w->texts.list) != NULL;
}

static void release(struct writer *w)
{
    vec_release(&w->texts.list);
    intern_release(&w->texts.ids);
    arena_release(&w->texts.arena);
    free(w->texts.rank);
    buf_release(&w->spelling);
    buf_release(&w->with_line);
    free(w->head_of_thread);
    free(w->text_of_frame);
    free(w->spelled_of_node);
    free(w->index_of_process);
    vec_release(&w->tree);
    intern_release(&w->tree_ids);
    vec_release(&w->lines);
    vec_release(&w->path);
}

static bool write_header(struct writer *w, struct sink *out, struct err *err)
{
    struct buf header;
    buf_init(&header, COLLAPSED_LINE_MAX);
    collapsed_header(&header, w->p, w->rules != NULL ? w->rules->header : STR(""), w->index_of_process);
    bool ok = !header.failed && sink_write(out, header.ptr, header.len, err);
    if (header.failed) {
        err_set(err, ERR_LIMIT, 0, "the header is larger than %d bytes", COLLAPSED_LINE_MAX);
    }
    buf_release(&header);
    return ok;
}

/* The texts from the root to `node`, into w->path leaf first. */
static bool climb(struct writer *w, uint32_t node)
{
    vec_clear(&w->path);
    for (; node != 0; node = w->tree.at[node].parent) {
        uint32_t *step = vec_push(&w->path);
        if (step == NULL) {
            return false;
        }
        *step = w->tree.at[node].text;
    }
    return true;
}

static bool write_line(struct writer *w, const struct line *line, uint64_t count, struct sink *out,
                       struct err *err)
{
    static const struct str cut = STR(";[truncated]");
    enum { COUNT_ROOM = 64 }; /* for `cut`, a blank and the count */
    struct buf *text = &w->spelling;
    if (!climb(w, line->node)) {
        return err_set(err, ERR_MEMORY, 0, "no memory for a stack of %zu frames", w->path.len);
    }
    buf_clear(text);
    buf_byte(text, '\n');
    buf_str(text, w->texts.list.at[line->head]);
    for (size_t i = w->path.len; i-- > 0;) {
        struct str frame = w->texts.list.at[w->path.at[i]];
        if (frame.len + COUNT_ROOM > COLLAPSED_LINE_MAX - text->len) {
            buf_str(text, cut);
            break;
        }
        buf_byte(text, ';');
        buf_str(text, frame);
    }
    buf_printf(text, " %llu", (unsigned long long)count);
    if (text->failed) {
        return err_set(err, ERR_MEMORY, 0, "no memory for a line of %zu bytes", text->len);
    }
    return sink_write(out, text->ptr, text->len, err);
}

static bool same_line(const struct line *a, const struct line *b)
{
    return a->head == b->head && a->node == b->node;
}

static bool write_lines(struct writer *w, struct sink *out, struct err *err)
{
    uint64_t period = collapsed_period(w->p), sum_ns = 0, written = 0;
    for (size_t i = 0; i < w->lines.len; i++) {
        const struct line *line = &w->lines.at[i];
        sum_ns += line->cpu_ns;
        if (i + 1 < w->lines.len && same_line(line, line + 1)) {
            continue;
        }
        uint64_t due = sum_ns / period + (sum_ns % period >= period - period / 2);
        if (due > written && !write_line(w, line, due - written, out, err)) {
            return false;
        }
        written = due;
    }
    return true;
}

bool collapsed_write(struct profile *p, const struct encode_rules *rules, struct sink *out, struct err *err)
{
    struct writer w = {.p = p, .rules = rules};
    bool ok = prepare(&w);
    if (!ok) {
        err_set(err, ERR_MEMORY, 0, "no memory to write %zu stacks", p->samples.len);
    }
    ok = ok && write_header(&w, out, err);
    if (ok) {
        ok = spell_all(&w) && build_tree(&w) && rank_texts(&w.texts) && link_children(&w);
        if (ok) {
            rank_nodes(&w);
            ok = collect_lines(&w);
        }
        if (!ok) {
            err_set(err, ERR_MEMORY, 0, "no memory to write %zu stacks", p->samples.len);
        }
    }
    ok = ok && write_lines(&w, out, err);
    release(&w);
    return ok;
}

const struct encoder encoder_col = {
    .name = "col",
    .extension = ".col",
    .extensions = ".collapsed .folded",
    .mime = "text/plain; charset=utf-8",
    .description = "collapsed stacks, as gProfiler writes them",
    .link = "last_profile.col",
    .by_default = true,
    .is_read = true,
    .is_cpu_alone = true,
    .apart = FIT_BY_THREAD,
    .write = collapsed_write,
};
