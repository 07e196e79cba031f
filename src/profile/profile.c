/* Everything that one window saw: interned strings, modules, frames, processes and threads, the call
 * tree, and samples with their weights. Bounded by max_bytes; what does not fit is counted as lost,
 * so totals stay right. */
#include "profile/profile.h"


enum { NEED_SHARE = 8, MOMENTS_SHARE = 8 };

static uint64_t mix(uint64_t a, uint64_t b)
{
    return hash_u64(a * 0x9e3779b97f4a7c15u + b);
}

/* One pair of functions per interned kind: the hash of a stored element and its comparison with a
 * key of the same struct. */

static uint64_t string_hash(const void *owner, uint32_t id)
{
    return str_hash(((const struct profile *)owner)->strings.at[id]);
}

static bool string_same(const void *owner, uint32_t id, const void *key)
{
    return str_eq(((const struct profile *)owner)->strings.at[id], *(const struct str *)key);
}

static uint64_t hash_module(const struct module *m)
{
    return mix(mix(m->path, m->build_id), m->image);
}

static uint64_t module_hash(const void *owner, uint32_t id)
{
    return hash_module(&((const struct profile *)owner)->modules.at[id]);
}

static bool module_same(const void *owner, uint32_t id, const void *key)
{
    const struct module *a = &((const struct profile *)owner)->modules.at[id], *b = key;
    return a->path == b->path && a->build_id == b->build_id && a->image == b->image;
}

static uint64_t hash_frame(const struct frame *f)
{
    if (f->address != 0) {
        return mix(mix(f->address, f->module), f->kind);
    }
    uint64_t source = mix(mix(mix(f->name, f->file), f->line), f->kind + 1000u);
    return f->module == 0 && f->caller == 0 ? source : mix(source, mix(f->module, f->caller));
}

static uint64_t frame_hash(const void *owner, uint32_t id)
{
    return hash_frame(&((const struct profile *)owner)->frames.at[id]);
}

static bool frame_same(const void *owner, uint32_t id, const void *key)
{
    const struct frame *a = &((const struct profile *)owner)->frames.at[id], *b = key;
    if (a->kind != b->kind || a->address != b->address) {
        return false;
    }
    return a->module == b->module &&
           (a->address != 0 || (a->name == b->name && a->file == b->file && a->line == b->line &&
                                a->caller == b->caller));
}

static uint64_t hash_process(const struct process *t)
{
    return mix(mix(t->pid, t->start_ticks), t->owner);
}

static uint64_t process_hash(const void *owner, uint32_t id)
{
    return hash_process(&((const struct profile *)owner)->processes.at[id]);
}

static bool process_same(const void *owner, uint32_t id, const void *key)
{
    const struct process *a = &((const struct profile *)owner)->processes.at[id], *b = key;
    return a->pid == b->pid && a->start_ticks == b->start_ticks && a->owner == b->owner;
}

static uint64_t hash_thread(const struct thread *t)
{
    uint64_t hash = mix(mix(t->process, t->tid), t->name);
    for (unsigned i = 0; t->plain != 0 && i < PROFILE_LABELS; i++) {
        hash = mix(hash, t->label[i]);
    }
    return hash;
}

static uint64_t thread_hash(const void *owner, uint32_t id)
{
    return hash_thread(&((const struct profile *)owner)->threads.at[id]);
}

static bool thread_same(const void *owner, uint32_t id, const void *key)
{
    const struct thread *a = &((const struct profile *)owner)->threads.at[id], *b = key;
    return a->process == b->process && a->tid == b->tid && a->name == b->name &&
           memcmp(a->label, b->label, sizeof a->label) == 0;
}

static uint64_t hash_node(const struct node *n)
{
    return mix(n->parent, n->frame);
}

static uint64_t node_hash(const void *owner, uint32_t id)
{
    return hash_node(&((const struct profile *)owner)->nodes.at[id]);
}

static bool node_same(const void *owner, uint32_t id, const void *key)
{
    const struct node *a = &((const struct profile *)owner)->nodes.at[id], *b = key;
    return a->parent == b->parent && a->frame == b->frame;
}

static uint64_t hash_sample(const struct sample *s)
{
    return mix(s->thread, s->node);
}

static uint64_t sample_hash(const void *owner, uint32_t id)
{
    return hash_sample(&((const struct profile *)owner)->samples.at[id]);
}

static bool sample_same(const void *owner, uint32_t id, const void *key)
{
    const struct sample *a = &((const struct profile *)owner)->samples.at[id], *b = key;
    return a->thread == b->thread && a->node == b->node;
}

static const struct intern_owner string_ops = {string_hash, string_same};
static const struct intern_owner module_ops = {module_hash, module_same};
static const struct intern_owner frame_ops = {frame_hash, frame_same};
static const struct intern_owner process_ops = {process_hash, process_same};
static const struct intern_owner thread_ops = {thread_hash, thread_same};
static const struct intern_owner node_ops = {node_hash, node_same};
static const struct intern_owner sample_ops = {sample_hash, sample_same};

/* Array elements in use plus text. Tables of ids add about a quarter on top. */
size_t profile_bytes(const struct profile *p)
{
    return p->text.used_bytes + p->strings.len * sizeof *p->strings.at +
           p->modules.len * sizeof *p->modules.at + p->frames.len * sizeof *p->frames.at +
           p->processes.len * sizeof *p->processes.at + p->threads.len * sizeof *p->threads.at +
           p->nodes.len * sizeof *p->nodes.at +
           p->samples.len * sizeof *p->samples.at +
           p->moments.list.len * sizeof *p->moments.list.at + p->waits.len * sizeof *p->waits.at +
           p->occurrences.len * sizeof *p->occurrences.at;
}

static bool has_room(const struct profile *p)
{
    return profile_bytes(p) < p->limit_bytes + (p->in_need ? p->max_bytes / NEED_SHARE : 0);
}

void profile_limit(struct profile *p, size_t bytes)
{
    p->limit_bytes = bytes < p->max_bytes ? bytes : p->max_bytes;
}

bool profile_need(struct profile *p, bool in_need)
{
    bool before = p->in_need;
    p->in_need = in_need;
    return before;
}

/* Finds `key` in an interned array or appends it; the element's id, or 0 when it does not fit. */
#define INTERN(p, array, ids, ops, hash, key)                                                      \
    INTERN_IF(has_room(p), p, array, ids, ops, hash, key)

#define INTERN_IF(room, p, array, ids, ops, hash, key)                                             \
    ({                                                                                             \
        uint32_t id_ = intern_find(&(p)->ids, &(ops), (p), (hash), (key));                         \
        if (id_ == 0 && (room)) {                                                                  \
            __typeof__((p)->array.at) new_ = vec_push(&(p)->array);                                \
            if (new_ != NULL) {                                                                    \
                *new_ = *(key);                                                                    \
                id_ = (uint32_t)((p)->array.len - 1);                                              \
                if (!intern_add(&(p)->ids, &(ops), (p), (hash), id_)) {                            \
                    (p)->array.len--;                                                              \
                    id_ = 0;                                                                       \
                }                                                                                  \
            }                                                                                      \
        }                                                                                          \
        id_;                                                                                       \
    })

/* Element 0 of every array: the empty string, the root, "none". */
static bool push_zeros(struct profile *p)
{
    if (vec_push(&p->strings) == NULL || vec_push(&p->modules) == NULL ||
        vec_push(&p->frames) == NULL || vec_push(&p->processes) == NULL ||
        vec_push(&p->threads) == NULL || vec_push(&p->nodes) == NULL ||
        vec_push(&p->samples) == NULL) {
        return false;
    }
    p->strings.at[0] = STR("");
    return true;
}

bool profile_init(struct profile *p, size_t max_bytes, struct err *err)
{
    *p = (struct profile){.max_bytes = max_bytes, .limit_bytes = max_bytes};
    arena_init(&p->text, max_bytes + max_bytes / NEED_SHARE);
    if (!push_zeros(p)) {
        profile_release(p);
        return err_set(err, ERR_MEMORY, 0, "no memory for a profile");
    }
    return true;
}

static void release_ids(struct profile *p)
{
    map_release(&p->wait_ids);
    map_release(&p->label_texts.ids);
    intern_release(&p->string_ids);
    intern_release(&p->module_ids);
    intern_release(&p->frame_ids);
    intern_release(&p->process_ids);
    intern_release(&p->thread_ids);
    intern_release(&p->node_ids);
    intern_release(&p->sample_ids);
}

void profile_release(struct profile *p)
{
    vec_release(&p->strings);
    vec_release(&p->modules);
    vec_release(&p->frames);
    vec_release(&p->processes);
    vec_release(&p->threads);
    vec_release(&p->nodes);
    vec_release(&p->samples);
    vec_release(&p->moments.list);
    vec_release(&p->waits);
    vec_release(&p->event_types);
    vec_release(&p->occurrences);
    for (unsigned i = 0; i < PROFILE_EVENTS_MAX; i++) {
        map_release(&p->occurrence_ids[i]);
    }
    runtime_profiles_release(&p->of_runtimes);
    release_ids(p);
    arena_release(&p->text);
}

void profile_clear(struct profile *p)
{
    /* element 0 of each array stays as it is */
    p->strings.len = p->modules.len = p->frames.len = p->processes.len = 1;
    p->threads.len = p->nodes.len = p->samples.len = 1;
    moments_begin(&p->moments, 0, 0);
    vec_clear(&p->waits);
    p->watches_waits = false;
    map_clear(&p->wait_ids);
    vec_clear(&p->event_types);
    vec_clear(&p->occurrences);
    for (unsigned i = 0; i < PROFILE_EVENTS_MAX; i++) {
        map_clear(&p->occurrence_ids[i]);
    }
    map_clear(&p->label_texts.ids);
    memset(p->label_texts.count, 0, sizeof p->label_texts.count);
    intern_clear(&p->string_ids);
    intern_clear(&p->module_ids);
    intern_clear(&p->frame_ids);
    intern_clear(&p->process_ids);
    intern_clear(&p->thread_ids);
    intern_clear(&p->node_ids);
    intern_clear(&p->sample_ids);
    arena_clear(&p->text);
    p->meta = (struct profile_meta){0};
    runtime_profiles_clear(&p->of_runtimes);
    p->dropped = p->collapsed = 0;
    p->limit_bytes = p->max_bytes;
    p->in_need = false;
}

void profile_shrink(struct profile *p)
{
    vec_shrink(&p->strings);
    vec_shrink(&p->modules);
    vec_shrink(&p->frames);
    vec_shrink(&p->processes);
    vec_shrink(&p->threads);
    vec_shrink(&p->nodes);
    vec_shrink(&p->samples);
    vec_shrink(&p->moments.list);
    vec_shrink(&p->waits);
    vec_shrink(&p->occurrences);
    release_ids(p);
    arena_release(&p->text);
}

uint32_t profile_find_string(const struct profile *p, struct str text)
{
    return text.len == 0 ? 0 : intern_find(&p->string_ids, &string_ops, p, str_hash(text), &text);
}

uint32_t profile_string(struct profile *p, struct str text)
{
    if (text.len == 0) {
        return 0;
    }
    uint64_t hash = str_hash(text);
    uint32_t id = intern_find(&p->string_ids, &string_ops, p, hash, &text);
    if (id != 0 || !has_room(p)) {
        return id;
    }
    struct str copy = arena_copy(&p->text, text);
    return copy.ptr == NULL ? 0 : INTERN(p, strings, string_ids, string_ops, hash, &copy);
}

uint32_t profile_cstring(struct profile *p, const char *text)
{
    return profile_string(p, str_of(text));
}

struct str profile_text(const struct profile *p, uint32_t string)
{
    return p->strings.at[string];
}

uint32_t profile_process(struct profile *p, const struct process *process)
{
    return INTERN(p, processes, process_ids, process_ops, hash_process(process), process);
}

uint32_t profile_thread(struct profile *p, uint32_t process, uint32_t tid, uint32_t name)
{
    struct thread key = {.process = process, .tid = tid, .name = name};
    return INTERN(p, threads, thread_ids, thread_ops, hash_thread(&key), &key);
}

bool profile_next_pair(struct str *rest, struct str *key, struct str *value)
{
    bool any = rest->len > 0;
    *key = str_cut(rest, '\0');
    *value = str_cut(rest, '\0');
    return any;
}

/* With each key and value. */
static uint32_t own_labels(struct profile *p, struct str text)
{
    struct str key, value;
    bool fits = true;
    for (struct str rest = text; fits && profile_next_pair(&rest, &key, &value);) {
        fits = (key.len == 0 || profile_string(p, key) != 0) && (value.len == 0 || profile_string(p, value) != 0);
    }
    return fits ? profile_string(p, text) : 0;
}

/* A server may make a task, with a name of its own, for each request: all but the first texts are one. 0: no
 * room. */
static uint32_t label_text(struct profile *p, enum profile_label label, struct str text)
{
    uint32_t id = profile_find_string(p, text);
    if (id != 0 && map_find(&p->label_texts.ids, (uint64_t)(label + 1) << 32 | id) != NULL) {
        return id;
    }
    bool is_own = label == PROFILE_LABEL_OWN;
    if (p->label_texts.count[label] == (is_own ? PROFILE_LABEL_OWN_VALUES : PROFILE_LABEL_VALUES)) {
        return is_own ? own_labels(p, STR("labels\0(other)\0")) : profile_cstring(p, "(other)");
    }
    id = is_own ? own_labels(p, text) : profile_string(p, text);
    if (id == 0 || !map_put(&p->label_texts.ids, (uint64_t)(label + 1) << 32 | id, 1)) {
        return 0;
    }
    p->label_texts.count[label]++;
    return id;
}

uint32_t profile_labelled(struct profile *p, uint32_t thread,
                          const struct str labels[static PROFILE_LABELS])
{
    struct thread key = p->threads.at[thread];
    bool any = false;
    for (unsigned i = 0; thread != 0 && i < PROFILE_LABELS; i++) {
        key.label[i] = labels[i].len == 0 ? 0 : label_text(p, (enum profile_label)i, labels[i]);
        any |= key.label[i] != 0;
    }
    if (!any) {
        return thread;
    }
    key.plain = thread;
    uint32_t id = INTERN(p, threads, thread_ids, thread_ops, hash_thread(&key), &key);
    return id != 0 ? id : thread;
}

const char *profile_label_name(enum profile_label label)
{
    static const char *const names[PROFILE_LABELS_NAMED] = {
        [PROFILE_LABEL_GIL] = "gil",
        [PROFILE_LABEL_TASK] = "asyncio task",
        [PROFILE_LABEL_INTERPRETER] = "interpreter",
        [PROFILE_LABEL_METHOD] = "http method",
        [PROFILE_LABEL_SCRIPT] = "script",
        [PROFILE_LABEL_URL] = "http url",
    };
    return names[label];
}

size_t profile_thread_count(const struct profile *p)
{
    size_t count = 0;
    for (size_t i = 1; i < p->threads.len; i++) {
        count += p->threads.at[i].plain == 0;
    }
    return count;
}

uint32_t profile_module(struct profile *p, const struct module *module)
{
    return INTERN(p, modules, module_ids, module_ops, hash_module(module), module);
}

uint32_t profile_frame(struct profile *p, const struct frame *frame)
{
    return INTERN(p, frames, frame_ids, frame_ops, hash_frame(frame), frame);
}

void profile_name_frame(struct profile *p, uint32_t frame, struct str name, struct str system_name)
{
    struct frame *f = &p->frames.at[frame];
    f->name = profile_string(p, name);
    f->system_name = str_eq(name, system_name) ? 0 : profile_string(p, system_name);
}

static void name_line(struct profile *p, uint32_t frame, const struct source_line *line,
                      uint32_t caller)
{
    profile_name_frame(p, frame, line->name, line->system_name);
    struct frame *f = &p->frames.at[frame];
    f->file = profile_string(p, line->file);
    f->line = line->line;
    f->caller = caller;
}

/* A function that others are inlined into at the address of `frame`; 0 when it does not fit. */
static uint32_t caller_frame(struct profile *p, uint32_t frame, const struct source_line *line,
                             uint32_t caller)
{
    struct frame f = {.module = p->frames.at[frame].module,
                      .kind = p->frames.at[frame].kind,
                      .name = profile_string(p, line->name),
                      .file = profile_string(p, line->file),
                      .line = line->line,
                      .caller = caller};
    if (!str_eq(line->name, line->system_name)) {
        f.system_name = profile_string(p, line->system_name);
    }
    return f.name == 0 ? 0 : profile_frame(p, &f);
}

void profile_name_inlined(struct profile *p, uint32_t frame, const struct source_line *inlined,
                          size_t count)
{
    if (count == 0) {
        return;
    }
    const struct source_line *last = &inlined[count - 1];
    size_t shown = count < PROFILE_INLINES_MAX ? count : PROFILE_INLINES_MAX;
    uint32_t caller = 0;
    for (size_t i = shown; i-- > 1;) {
        caller = caller_frame(p, frame, i == shown - 1 ? last : &inlined[i], caller);
        if (caller == 0) {
            name_line(p, frame, last, 0);
            return;
        }
    }
    name_line(p, frame, &inlined[0], caller);
    if (p->frames.at[frame].name == 0) {
        name_line(p, frame, last, 0);
    }
}

void profile_set_kind(struct profile *p, uint32_t frame, enum frame_kind kind)
{
    p->frames.at[frame].kind = (uint8_t)kind;
}

size_t profile_expand(const struct profile *p, uint32_t frame,
                      uint32_t out[static PROFILE_INLINES_MAX])
{
    size_t count = 0;
    do {
        out[count++] = frame;
        frame = p->frames.at[frame].caller;
    } while (frame != 0 && count < PROFILE_INLINES_MAX);
    return count;
}

uint32_t profile_child(struct profile *p, uint32_t parent, uint32_t frame)
{
    if (frame == 0) {
        return 0;
    }
    struct node key = {parent, frame};
    return INTERN(p, nodes, node_ids, node_ops, hash_node(&key), &key);
}

/* Its id; 0: there is no room. */
static uint32_t add_sample(struct profile *p, bool room, uint32_t thread, uint32_t node,
                           uint64_t cpu_ns, uint64_t count)
{
    struct sample key = {.thread = thread, .node = node};
    uint64_t hash = hash_sample(&key);
    uint32_t id = INTERN_IF(room, p, samples, sample_ids, sample_ops, hash, &key);
    if (id != 0) {
        p->samples.at[id].cpu_ns += cpu_ns;
        p->samples.at[id].count += count;
    } else {
        p->dropped += count;
        if (!room) {
            profile_account(p, thread, ACCOUNT_LOST, cpu_ns);
        }
    }
    return id;
}

void profile_add_wait(struct profile *p, uint32_t thread, uint32_t node, uint64_t wait_ns)
{
    uint64_t key = (uint64_t)thread << 32 | node;
    const struct map_slot *slot = map_find(&p->wait_ids, key);
    if (slot != NULL) {
        p->waits.at[slot->value].wait_ns += wait_ns;
        return;
    }
    if (node == 0 || wait_ns == 0 || !has_room(p) || !map_put(&p->wait_ids, key, p->waits.len)) {
        return;
    }
    struct wait *wait = vec_push(&p->waits);
    if (wait == NULL) {
        map_remove(&p->wait_ids, map_find(&p->wait_ids, key));
        return;
    }
    *wait = (struct wait){thread, node, wait_ns};
}

uint32_t profile_add(struct profile *p, uint32_t thread, uint32_t node, uint64_t cpu_ns, uint64_t count)
{
    if (node == 0) {
        p->dropped += count;
        profile_account(p, thread, ACCOUNT_LOST, cpu_ns);
        return 0;
    }
    return add_sample(p, has_room(p), thread, node, cpu_ns, count);
}

void profile_add_at(struct profile *p, uint32_t thread, uint32_t node, uint64_t cpu_ns, uint64_t count,
                    uint64_t time_ns)
{
    uint32_t id = profile_add(p, thread, node, cpu_ns, count);
    if (id != 0) {
        moments_add(&p->moments, id, time_ns, cpu_ns);
    }
}

void profile_keep_moments(struct profile *p, uint64_t origin_ns)
{
    moments_begin(&p->moments, origin_ns, p->max_bytes / MOMENTS_SHARE / sizeof *p->moments.list.at);
}

/* What is lost must be reported even when the budget is used up: the account's name is static text, and
 * its frame, node and samples (at most ACCOUNT_COUNT per thread) may exceed the budget. */
static uint32_t account_node(struct profile *p, enum account account)
{
    struct str name = str_of(account_name(account));
    struct frame frame = {.kind = FRAME_ACCOUNT};
    frame.name = INTERN_IF(true, p, strings, string_ids, string_ops, str_hash(name), &name);
    uint64_t hash = hash_frame(&frame);
    struct node node = {.frame = INTERN_IF(true, p, frames, frame_ids, frame_ops, hash, &frame)};
    if (frame.name == 0 || node.frame == 0) {
        return 0;
    }
    return INTERN_IF(true, p, nodes, node_ids, node_ops, hash_node(&node), &node);
}

void profile_account(struct profile *p, uint32_t thread, enum account account, uint64_t cpu_ns)
{
    uint32_t node = cpu_ns == 0 ? 0 : account_node(p, account);
    if (node != 0) {
        (void)add_sample(p, true, thread, node, cpu_ns, 0);
    }
}

uint32_t profile_event_type(struct profile *p, const char *name, const char *unit)
{
    struct event_type *type =
        p->event_types.len < PROFILE_EVENTS_MAX ? vec_push(&p->event_types) : NULL;
    if (type == NULL) {
        return PROFILE_EVENTS_MAX;
    }
    *type = (struct event_type){profile_cstring(p, name), profile_cstring(p, unit)};
    return (uint32_t)(p->event_types.len - 1);
}

static bool add_occurrence(struct profile *p, bool room, const struct occurrence *o)
{
    uint64_t key = (uint64_t)o->thread << 32 | o->node;
    struct map *ids = &p->occurrence_ids[o->event];
    const struct map_slot *slot = map_find(ids, key);
    if (slot != NULL) {
        p->occurrences.at[slot->value].amount += o->amount;
        return true;
    }
    if (!room || o->node == 0 || !map_put(ids, key, p->occurrences.len)) {
        return false;
    }
    struct occurrence *place = vec_push(&p->occurrences);
    if (place == NULL) {
        map_remove(ids, map_find(ids, key));
        return false;
    }
    *place = *o;
    return true;
}

void profile_add_event(struct profile *p, uint32_t event, uint32_t thread, uint32_t node,
                       uint64_t amount)
{
    struct occurrence o = {thread, node, event, amount};
    if (event >= p->event_types.len || amount == 0 || add_occurrence(p, has_room(p), &o)) {
        return;
    }
    o.node = account_node(p, ACCOUNT_LOST);
    (void)add_occurrence(p, true, &o);
}

void profile_weigh(struct profile *p, uint32_t process, uint64_t nominal_ns, uint64_t cpu_ns)
{
    if (process != 0 && nominal_ns > 0) {
        p->processes.at[process].weight = (double)cpu_ns / (double)nominal_ns;
    }
}

static struct process *process_of(const struct profile *p, const struct sample *s)
{
    return &p->processes.at[p->threads.at[s->thread].process];
}

static void scale(struct sample *s, double weight)
{
    if (weight > 0 && s->count > 0) {
        s->cpu_ns = (uint64_t)((double)s->cpu_ns * weight + 0.5);
    }
}

void profile_settle(struct profile *p, uint32_t process, uint64_t nominal_ns, uint64_t cpu_ns)
{
    struct process *of = &p->processes.at[process];
    for (size_t i = of->settled; process != 0 && nominal_ns > 0 && i < p->samples.len; i++) {
        if (process_of(p, &p->samples.at[i]) == of) {
            scale(&p->samples.at[i], (double)cpu_ns / (double)nominal_ns);
        }
    }
    of->settled = process != 0 ? (uint32_t)p->samples.len : 0;
}

void profile_forget_samples(struct profile *p, uint32_t process)
{
    for (size_t i = p->processes.at[process].settled; i < p->samples.len; i++) {
        struct sample *s = &p->samples.at[i];
        if (s->count > 0 && p->threads.at[s->thread].process == process) {
            s->cpu_ns = s->count = 0;
        }
    }
    vec_each(&p->moments.list, moment)
    {
        bool is_of_it = p->threads.at[p->samples.at[moment->sample].thread].process == process;
        moment->weight = is_of_it && moment->sample >= p->processes.at[process].settled ? 0 : moment->weight;
    }
}

void profile_take_unseen(struct profile *p, uint32_t process,
                         void (*take)(void *context, uint32_t thread, uint64_t cpu_ns, bool is_system),
                         void *context)
{
    uint32_t native = account_node(p, ACCOUNT_NATIVE_NO_PERF), kernel = account_node(p, ACCOUNT_KERNEL_HIDDEN);
    for (size_t i = 1, count = p->samples.len; i < count; i++) {
        const struct sample s = p->samples.at[i];
        bool is_unseen = s.node != 0 && (s.node == native || s.node == kernel);
        if (is_unseen && s.cpu_ns > 0 && p->threads.at[s.thread].process == process) {
            p->samples.at[i].cpu_ns = 0;
            take(context, s.thread, s.cpu_ns, s.node == kernel);
        }
    }
}

void profile_apply_weights(struct profile *p)
{
    for (size_t i = 1; i < p->samples.len; i++) {
        struct sample *s = &p->samples.at[i];
        const struct process *process = process_of(p, s);
        scale(s, i < process->settled ? 0 : process->weight);
    }
    for (size_t i = 1; i < p->processes.len; i++) {
        p->processes.at[i].weight = 0;
    }
}

bool profile_stretch(struct profile *p, uint32_t thread, uint64_t cpu_ns)
{
    uint64_t sum_ns = 0, left_ns = cpu_ns;
    struct sample *last = NULL;
    for (size_t i = 1; i < p->samples.len; i++) {
        struct sample *s = &p->samples.at[i];
        if (s->thread == thread && s->count > 0) {
            sum_ns += s->cpu_ns;
            last = s;
        }
    }
    for (size_t i = 1; i < p->samples.len && sum_ns > 0; i++) {
        struct sample *s = &p->samples.at[i];
        if (s->thread == thread && s->count > 0) {
            uint64_t part_ns = (uint64_t)((double)cpu_ns * (double)s->cpu_ns / (double)sum_ns);
            part_ns = s == last || part_ns > left_ns ? left_ns : part_ns;
            s->cpu_ns += part_ns;
            left_ns -= part_ns;
        }
    }
    return sum_ns > 0;
}

const char *account_name(enum account account)
{
    static const char *const names[ACCOUNT_COUNT] = {
        [ACCOUNT_LOST] = "[lost]",
        [ACCOUNT_KERNEL_HIDDEN] = "[kernel, hidden]",
        [ACCOUNT_NATIVE_NO_PERF] = "[native, no perf]",
        [ACCOUNT_UNREADABLE] = "[unreadable]",
        [ACCOUNT_PARTIAL] = "[partial]",
        [ACCOUNT_NO_SAMPLES] = "[no runtime samples]",
    };
    return names[account];
}

const char *capture_mode_name(enum capture_mode mode)
{
    static const char *const names[] = {
        [CAPTURE_UNKNOWN] = "not seen",
        [CAPTURE_PERF] = "perf",
        [CAPTURE_PERF_USER] = "perf, user only",
        [CAPTURE_RUNTIME] = "runtime reader",
        [CAPTURE_PROC] = "/proc only",
    };
    return names[mode];
}

static enum account account_of(const struct profile *p, uint32_t name)
{
    struct str text = profile_text(p, name);
    for (unsigned a = 0; a < ACCOUNT_COUNT; a++) {
        if (str_eq(text, str_of(account_name((enum account)a)))) {
            return (enum account)a;
        }
    }
    return ACCOUNT_LOST;
}

struct profile_totals profile_sum(const struct profile *p)
{
    struct profile_totals sum = {0};
    for (size_t i = 1; i < p->samples.len; i++) {
        const struct sample *s = &p->samples.at[i];
        const struct frame *leaf = &p->frames.at[p->nodes.at[s->node].frame];
        sum.cpu_ns += s->cpu_ns;
        sum.count += s->count;
        sum.leaf_ns[leaf->kind] += s->cpu_ns;
        if (leaf->kind == FRAME_ACCOUNT) {
            sum.account_ns[account_of(p, leaf->name)] += s->cpu_ns;
        }
    }
    for (size_t i = 1; i < p->processes.len; i++) {
        sum.process_cpu_ns += p->processes.at[i].cpu_ns;
    }
    return sum;
}
