/* Builds the call tree that people read: one node per function name instead of per address, below
 * processes and threads or containers. Used by the flame graph, collapsed stacks and speedscope. No
 * recursion; linear in the profile's size. */
#include "profile/fold.h"

#include <stdio.h>
#include <stdlib.h>

/*
 * How. Interning a node per frame of every stack costs a hash look-up, that is a cache miss, per
 * frame. Instead the profile's own tree is walked once per top node: the nodes its samples touch
 * are marked and chained under their parents; then, parent by parent, the children of all profile nodes
 * that became one fold node are dealt out by name. Which child of this parent has the name is
 * remembered beside the name, so the working set is the names, not the nodes. Every (top, profile
 * node) is visited once however many samples pass through it.
 *
 * Where frames stand for several functions, the walk is over a copy of the tree in which each of
 * them is a node; that equal ones stand in it more than once does not matter to the dealing out.
 */

enum { UNUSED = UINT32_MAX };

/* A distinct (name, kind), and the child made for it under the parent that is being filled. */
struct key {
    uint32_t name;
    uint32_t kind;
    uint32_t parent;
    uint32_t child;
};

struct builder {
    struct fold *fold;
    struct profile *profile;
    bool keeps_places;
    VEC(struct key) keys; /* element 0 unused */
    uint32_t *key_of;     /* per frame of the profile */
    uint32_t *top_of;     /* per thread: its fold node, or UNUSED */
    uint32_t *sample_next;/* per sample: another sample of the same top node, 0 none */
    uint32_t *rank;       /* per string: its place in byte order */
    const struct node *nodes; /* the profile's, or those of `expanded` */
    size_t node_count;
    VEC(struct node) expanded;
    uint32_t *leaf_of; /* per node of the profile: its innermost expanded one; null: itself */
    /* Per node. `first` is UNUSED when no sample of this top touches the node, then
     * its first touched child, and once that list is dealt out, the node's fold node. `next` is the
     * next touched sibling, and once dealt out, the next profile node of the same fold node. */
    uint32_t *first, *next;
};

static void builder_release(struct builder *b)
{
    vec_release(&b->keys);
    free(b->key_of);
    free(b->top_of);
    free(b->sample_next);
    free(b->rank);
    vec_release(&b->expanded);
    free(b->leaf_of);
    free(b->first);
    free(b->next);
}

static uint32_t *unused_array(size_t count)
{
    uint32_t *array = malloc(count * sizeof *array);
    if (array != NULL) {
        memset(array, 0xff, count * sizeof *array);
    }
    return array;
}

static bool has_inlined(const struct profile *p)
{
    for (size_t i = 1; i < p->frames.len; i++) {
        if (p->frames.at[i].caller != 0) {
            return true;
        }
    }
    return false;
}

static bool expand_node(struct builder *b, size_t node)
{
    uint32_t chain[PROFILE_INLINES_MAX];
    const struct node *n = &b->profile->nodes.at[node];
    uint32_t above = b->leaf_of[n->parent];
    for (size_t i = profile_expand(b->profile, n->frame, chain); i-- > 0;) {
        struct node *made = vec_push(&b->expanded);
        if (made == NULL) {
            return false;
        }
        *made = (struct node){above, chain[i]};
        above = (uint32_t)(b->expanded.len - 1);
    }
    b->leaf_of[node] = above;
    return true;
}

/* A parent always comes before its children. */
static bool find_nodes(struct builder *b)
{
    const struct profile *p = b->profile;
    b->nodes = p->nodes.at;
    b->node_count = p->nodes.len;
    if (!has_inlined(p)) {
        return true;
    }
    b->leaf_of = calloc(p->nodes.len, sizeof *b->leaf_of);
    bool ok = b->leaf_of != NULL && vec_push(&b->expanded) != NULL;
    for (size_t i = 1; ok && i < p->nodes.len; i++) {
        ok = expand_node(b, i);
    }
    b->nodes = b->expanded.at;
    b->node_count = b->expanded.len;
    return ok;
}

static uint32_t leaf_node(const struct builder *b, const struct sample *s)
{
    return b->leaf_of != NULL ? b->leaf_of[s->node] : s->node;
}

static bool builder_init(struct builder *b, struct fold *fold, struct profile *p)
{
    *b = (struct builder){.fold = fold, .profile = p};
    if (!find_nodes(b)) {
        return false;
    }
    b->key_of = calloc(p->frames.len, sizeof *b->key_of);
    b->top_of = unused_array(p->threads.len);
    b->sample_next = calloc(p->samples.len, sizeof *b->sample_next);
    b->first = unused_array(b->node_count);
    b->next = calloc(b->node_count, sizeof *b->next);
    return b->key_of != NULL && b->top_of != NULL && b->sample_next != NULL && b->first != NULL &&
           b->next != NULL && vec_push(&b->keys) != NULL && vec_push(&fold->nodes) != NULL;
}

/* Keys of the frames. */

static uint64_t hash_key(const struct key *key)
{
    return hash_u64((uint64_t)key->kind << 32 | key->name);
}

static uint64_t key_hash(const void *owner, uint32_t id)
{
    return hash_key(&((const struct builder *)owner)->keys.at[id]);
}

static bool key_same(const void *owner, uint32_t id, const void *wanted)
{
    const struct key *a = &((const struct builder *)owner)->keys.at[id], *b = wanted;
    return a->name == b->name && a->kind == b->kind;
}

static uint32_t key_id(struct builder *b, struct intern *ids, struct key key)
{
    static const struct intern_owner ops = {key_hash, key_same};
    uint32_t id = intern_find(ids, &ops, b, hash_key(&key), &key);
    if (id != 0) {
        return id;
    }
    struct key *added = vec_push(&b->keys);
    if (added == NULL) {
        return 0;
    }
    *added = key;
    id = (uint32_t)(b->keys.len - 1);
    return intern_add(ids, &ops, b, hash_key(&key), id) ? id : 0;
}

/* Without its line; as it is where the profile has no room for that. */
static uint32_t name_of(struct profile *p, const struct frame *f)
{
    uint32_t unused;
    struct str name = profile_text(p, f->name);
    bool may_have = languages[f->kind].form == NAME_WITH_FILE;
    struct str line = may_have ? language_line_in(name, &unused) : STR("");
    if (line.len == 0) {
        return f->name;
    }
    struct buf text;
    buf_init(&text, name.len);
    buf_str(&text, str_sub(name, 0, (size_t)(line.ptr - name.ptr)));
    buf_str(&text, str_sub(name, (size_t)(line.ptr - name.ptr) + line.len, name.len));
    uint32_t id = text.failed ? 0 : profile_string(p, buf_slice(&text));
    buf_release(&text);
    return id != 0 ? id : f->name;
}

static bool find_keys(struct builder *b)
{
    struct intern ids = {0};
    uint32_t *names = b->fold->name_of = calloc(b->profile->frames.len, sizeof *names);
    bool ok = names != NULL;
    for (size_t i = 1; ok && i < b->profile->frames.len; i++) {
        const struct frame *f = &b->profile->frames.at[i];
        names[i] = name_of(b->profile, f);
        b->key_of[i] = key_id(b, &ids, (struct key){names[i], f->kind, UNUSED, 0});
        ok = b->key_of[i] != 0;
    }
    intern_release(&ids);
    return ok;
}

/* The levels above the stacks. They are few, so siblings are found through one small table. */

static uint64_t hash_top(const struct fold_node *n)
{
    return hash_u64(((uint64_t)n->parent << 32 | n->name) * 31 + n->kind);
}

static uint64_t top_hash(const void *owner, uint32_t id)
{
    return hash_top(&((const struct fold *)owner)->nodes.at[id]);
}

static bool top_same(const void *owner, uint32_t id, const void *wanted)
{
    const struct fold_node *a = &((const struct fold *)owner)->nodes.at[id], *b = wanted;
    return a->parent == b->parent && a->name == b->name && a->kind == b->kind;
}

/* 0 when memory ends. */
static uint32_t top_node(struct builder *b, struct intern *ids, struct fold_node wanted)
{
    static const struct intern_owner ops = {top_hash, top_same};
    uint32_t id = intern_find(ids, &ops, b->fold, hash_top(&wanted), &wanted);
    if (id != 0) {
        return id;
    }
    struct fold_node *node = vec_push(&b->fold->nodes);
    if (node == NULL) {
        return 0;
    }
    *node = wanted;
    id = (uint32_t)(b->fold->nodes.len - 1);
    return intern_add(ids, &ops, b->fold, hash_top(&wanted), id) ? id : 0;
}

static void add_part(char *label, size_t *len, size_t max, struct str text)
{
    text = str_sub(text, 0, max);
    if (text.len > 0) {
        memcpy(label + *len, text.ptr, text.len);
        *len += text.len;
    }
}

/* What tells processes of one name apart: the pid, or else the container. */
static uint32_t process_label(struct builder *b, const struct process *process)
{
    enum { NAME_MAX_BYTES = 64, CONTAINER_MAX_BYTES = 128 };
    char label[NAME_MAX_BYTES + CONTAINER_MAX_BYTES + 3];
    size_t len = 0;
    if (process->pid == 0 && process->container == 0) {
        return process->name;
    }
    add_part(label, &len, NAME_MAX_BYTES, profile_text(b->profile, process->name));
    if (process->pid != 0) {
        len += (size_t)snprintf(label + len, sizeof label - len, " (pid %u)", process->pid);
    } else {
        add_part(label, &len, 2, STR(" ("));
        add_part(label, &len, CONTAINER_MAX_BYTES, profile_text(b->profile, process->container));
        add_part(label, &len, 1, STR(")"));
    }
    uint32_t id = profile_string(b->profile, (struct str){label, len});
    return id != 0 ? id : process->name; /* the profile is full */
}

static uint32_t top_by_process(struct builder *b, struct intern *ids, const struct thread *thread)
{
    struct process process = b->profile->processes.at[thread->process];
    uint32_t node = top_node(
        b, ids,
        (struct fold_node){.name = process_label(b, &process), .kind = FOLD_KIND_PROCESS});
    if (node == 0 || thread->name == process.name) {
        return node;
    }
    return top_node(b, ids,
                    (struct fold_node){
                        .parent = node, .name = thread->name, .kind = FOLD_KIND_THREAD});
}

static uint32_t top_by_comm(struct builder *b, struct intern *ids, const struct thread *thread)
{
    uint32_t above = 0, container = b->profile->processes.at[thread->process].container;
    if (container != 0) {
        above = top_node(b, ids,
                         (struct fold_node){.name = container, .kind = FOLD_KIND_CONTAINER});
        if (above == 0) {
            return 0;
        }
    }
    return top_node(b, ids,
                    (struct fold_node){
                        .parent = above, .name = thread->name, .kind = FOLD_KIND_THREAD});
}

/* Makes the top nodes and chains the samples below them: head in next_sibling, which only
 * link_children gives its meaning. */
static bool make_tops(struct builder *b, enum fold_top top)
{
    struct intern ids = {0};
    bool ok = true;
    for (size_t i = 1; ok && i < b->profile->samples.len; i++) {
        uint32_t id = b->profile->samples.at[i].thread;
        struct thread thread = b->profile->threads.at[id];
        if (top == FOLD_TOGETHER) {
            b->top_of[id] = 0;
        } else if (b->top_of[id] == UNUSED) {
            uint32_t node = top == FOLD_BY_COMM ? top_by_comm(b, &ids, &thread)
                                                : top_by_process(b, &ids, &thread);
            ok = node != 0;
            b->top_of[id] = node;
            if (ok && top == FOLD_BY_PROCESS) {
                uint32_t parent = b->fold->nodes.at[node].parent;
                b->fold->nodes.at[parent != 0 ? parent : node].process = thread.process;
            }
        }
        struct fold_node *node = &b->fold->nodes.at[b->top_of[id]];
        b->sample_next[i] = node->next_sibling;
        node->next_sibling = (uint32_t)i;
    }
    intern_release(&ids);
    return ok;
}

/* Marks a stack from its leaf up to the first node another sample of this top has marked. */
static void mark(struct builder *b, uint32_t n)
{
    bool fresh = b->first[n] == UNUSED;
    if (fresh) {
        b->first[n] = 0;
    }
    while (fresh) { /* the root is always marked */
        uint32_t parent = b->nodes[n].parent;
        fresh = b->first[parent] == UNUSED;
        if (fresh) {
            b->first[parent] = 0;
        }
        b->next[n] = b->first[parent];
        b->first[parent] = n;
        n = parent;
    }
}

static void unmark(struct builder *b, uint32_t n)
{
    while (n != 0 && b->first[n] != UNUSED) {
        b->first[n] = UNUSED;
        n = b->nodes[n].parent;
    }
}

/* Deals the touched children of node n out to children of fold node f. New ones go on the
 * list of nodes to fill, linked by next_sibling; their profile nodes hang on first_child. */
static bool deal(struct builder *b, uint32_t f, uint32_t n, uint32_t *todo)
{
    for (uint32_t c = b->first[n], following; c != 0; c = following) {
        following = b->next[c];
        struct key *key = &b->keys.at[b->key_of[b->nodes[c].frame]];
        if (key->parent != f) {
            struct fold_node *made = vec_push(&b->fold->nodes);
            if (made == NULL) {
                return false;
            }
            key->parent = f;
            key->child = (uint32_t)(b->fold->nodes.len - 1);
            *made = (struct fold_node){.parent = f, .name = key->name,
                                       .kind = (uint8_t)key->kind, .next_sibling = *todo};
            *todo = key->child;
        }
        struct fold_node *child = &b->fold->nodes.at[key->child];
        b->next[c] = child->first_child;
        child->first_child = c;
    }
    b->first[n] = f;
    return true;
}

static bool fill(struct builder *b, uint32_t top)
{
    uint32_t todo = 0;
    bool ok = deal(b, top, 0, &todo);
    while (ok && todo != 0) {
        uint32_t f = todo;
        todo = b->fold->nodes.at[f].next_sibling;
        for (uint32_t n = b->fold->nodes.at[f].first_child, following; ok && n != 0;
             n = following) {
            following = b->next[n];
            ok = deal(b, f, n, &todo);
        }
    }
    return ok;
}

static bool fold_top(struct builder *b, uint32_t top)
{
    const struct sample *samples = b->profile->samples.at;
    uint32_t head = b->fold->nodes.at[top].next_sibling;
    b->first[0] = 0;
    for (uint32_t s = head; s != 0; s = b->sample_next[s]) {
        mark(b, leaf_node(b, &samples[s]));
    }
    if (!fill(b, top)) {
        return false;
    }
    for (uint32_t s = head; s != 0; s = b->sample_next[s]) {
        uint32_t node = b->first[leaf_node(b, &samples[s])];
        b->fold->nodes.at[node].self_ns += samples[s].cpu_ns;
        struct fold_place *place = b->keeps_places ? vec_push(&b->fold->places) : NULL;
        if (place != NULL) {
            *place = (struct fold_place){node, s};
        } else if (b->keeps_places) {
            return false;
        }
    }
    for (uint32_t s = head; s != 0; s = b->sample_next[s]) {
        unmark(b, leaf_node(b, &samples[s]));
    }
    return true;
}

static void sum_totals(struct fold *fold)
{
    vec_each(&fold->nodes, n)
    {
        n->total_ns = n->self_ns;
    }
    for (size_t i = fold->nodes.len; i-- > 1;) {
        fold->nodes.at[fold->nodes.at[i].parent].total_ns += fold->nodes.at[i].total_ns;
    }
}

/* The byte order of the names, computed once, so that siblings compare by number. */

struct named {
    struct str text;
    uint32_t id;
};

static int by_text(const void *left, const void *right)
{
    return str_compare(((const struct named *)left)->text, ((const struct named *)right)->text);
}

static bool rank_names(struct builder *b)
{
    VEC(struct named) names = {0};
    bool ok = (b->rank = calloc(b->profile->strings.len, sizeof *b->rank)) != NULL;
    for (size_t i = 1; ok && i < b->fold->nodes.len; i++) {
        uint32_t name = b->fold->nodes.at[i].name;
        if (b->rank[name] == 0) {
            struct named *added = vec_push(&names);
            ok = added != NULL;
            if (ok) {
                *added = (struct named){profile_text(b->profile, name), name};
                b->rank[name] = 1;
            }
        }
    }
    if (ok && names.len > 0) {
        qsort(names.at, names.len, sizeof *names.at, by_text);
    }
    for (size_t i = 0; ok && i < names.len; i++) {
        b->rank[names.at[i].id] = (uint32_t)(i + 1);
    }
    vec_release(&names);
    return ok;
}

/* Sorting one list of siblings in place: a merge sort over links needs no memory. */

static bool comes_first(const struct builder *b, uint32_t left, uint32_t right)
{
    const struct fold_node *l = &b->fold->nodes.at[left], *r = &b->fold->nodes.at[right];
    if (l->total_ns != r->total_ns) {
        return l->total_ns > r->total_ns;
    }
    return b->rank[l->name] != b->rank[r->name] ? b->rank[l->name] < b->rank[r->name]
                                                : l->kind < r->kind;
}

static uint32_t merge(struct builder *b, uint32_t left, uint32_t right)
{
    uint32_t head = 0, *tail = &head;
    while (left != 0 && right != 0) {
        uint32_t *from = comes_first(b, right, left) ? &right : &left;
        *tail = *from;
        tail = &b->fold->nodes.at[*from].next_sibling;
        *from = *tail;
    }
    *tail = left != 0 ? left : right;
    return head;
}

static uint32_t sort_siblings(struct builder *b, uint32_t head)
{
    uint32_t runs[32] = {0}; /* runs[i] is empty or a sorted list of 2^i nodes */
    while (head != 0) {
        uint32_t list = head;
        size_t i = 0;
        head = b->fold->nodes.at[list].next_sibling;
        b->fold->nodes.at[list].next_sibling = 0;
        for (; runs[i] != 0; i++) {
            list = merge(b, runs[i], list);
            runs[i] = 0;
        }
        runs[i] = list;
    }
    for (size_t i = 0; i < 32; i++) {
        head = merge(b, runs[i], head);
    }
    return head;
}

static void link_children(struct builder *b)
{
    struct fold_node *at = b->fold->nodes.at;
    vec_each(&b->fold->nodes, n)
    {
        n->first_child = n->next_sibling = 0;
    }
    for (size_t i = b->fold->nodes.len; i-- > 1;) {
        at[i].next_sibling = at[at[i].parent].first_child;
        at[at[i].parent].first_child = (uint32_t)i;
    }
    vec_each(&b->fold->nodes, n)
    {
        if (n->first_child != 0 && at[n->first_child].next_sibling != 0) {
            n->first_child = sort_siblings(b, n->first_child);
        }
    }
}

static int by_node(const void *left, const void *right)
{
    const struct fold_place *a = left, *b = right;
    int order = (a->node > b->node) - (a->node < b->node);
    return order != 0 ? order : (a->sample > b->sample) - (a->sample < b->sample);
}

static void sort_places(struct fold *fold)
{
    if (fold->places.len > 0) {
        qsort(fold->places.at, fold->places.len, sizeof *fold->places.at, by_node);
    }
}

static bool build(struct builder *b, enum fold_top top)
{
    b->keeps_places = top == FOLD_BY_PROCESS && b->profile->moments.list.len > 0;
    if (!find_keys(b) || !make_tops(b, top)) {
        return false;
    }
    size_t tops = b->fold->nodes.len;
    for (size_t i = top == FOLD_TOGETHER ? 0 : 1; i < tops; i++) {
        if (!fold_top(b, (uint32_t)i)) {
            return false;
        }
    }
    if (!rank_names(b)) {
        return false;
    }
    sort_places(b->fold);
    sum_totals(b->fold);
    link_children(b);
    return true;
}

bool fold_build(struct fold *fold, struct profile *p, enum fold_top top, struct err *err)
{
    struct fold made = {0};
    struct builder b;
    bool ok = builder_init(&b, &made, p) && build(&b, top);
    builder_release(&b);
    if (!ok) {
        fold_release(&made);
        return err_set(err, ERR_MEMORY, 0, "no memory for the tree of %zu samples", p->samples.len);
    }
    *fold = made;
    return true;
}

void fold_release(struct fold *fold)
{
    vec_release(&fold->nodes);
    vec_release(&fold->places);
    free(fold->name_of);
    fold->name_of = NULL;
}
