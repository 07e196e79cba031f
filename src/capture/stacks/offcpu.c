/* offcpu: one struct sleeper per thread, SLEEPERS_MAX at most. A wait is counted when it ends, or the window does, at
 * the stack that was read during it. Waits without such a stack are summed; when the window or the thread ends, their
 * time is shared out among the stacks of the thread's short waits, if looks met HITS_LEAST of these. */
#include "capture/stacks/offcpu.h"
#include "base/time.h"
#include "os/clock.h"
#include "target/stat.h"

#include <stdlib.h>

enum {
    TEXT_MAX = 4096,
    SLEEPERS_MAX = 65536,
    LOOKS_MOST = 50,      /* threads per look */
    LISTED_MOST = 32,     /* processes whose threads are listed, per look */
    SHORT_MS = 2 * OFFCPU_MS, /* such a wait may be over before it is looked at */
    HITS_MAX = 8,         /* stacks of short waits, of one thread in one window */
    HITS_LEAST = 4,       /* that make an estimate */
    DEPTH_MAX = 8192,
    LOOKS_PER_S = 1000 / OFFCPU_MS,
};

/* A stack that a look found in a short wait, and how often. */
struct hit {
    uint32_t node, count;
};

struct sleeper {
    uint32_t pid, tid;
    bool out;
    uint64_t since_ns;              /* it left its CPU; or the window began */
    uint64_t read_ns, read_until_ns; /* when its stack was read */
    uint32_t node;                  /* that was found then, in the profile of `window`; 0: none */
    uint32_t window;
    uint64_t unread_ns;             /* of this window's waits */
    struct hit hit[HITS_MAX];       /* likewise */
    size_t hit_count;
};

bool offcpu_init(struct offcpu *o, struct stacks *stacks, struct readers *readers,
                 struct targets *targets, uint64_t now_ns, struct err *err)
{
    *o = (struct offcpu){.targets = targets,
                         .first_ns = now_ns};
    buf_init(&o->text, TEXT_MAX);
    bool good = sleeping_init(&o->sleeping, stacks, err);
    o->reads_runtimes = good && readers != NULL;
    if (o->reads_runtimes && !waits_init(&o->waits, stacks, readers, targets, err)) {
        good = o->reads_runtimes = false;
    }
    if (!good) {
        offcpu_release(o);
    }
    return good;
}

void offcpu_release(struct offcpu *o)
{
    vec_each(&o->all, sleeper)
    {
        free(*sleeper);
    }
    vec_release(&o->all);
    vec_release(&o->tids.ids);
    map_release(&o->by_tid);
    map_release(&o->listed);
    buf_release(&o->text);
    sleeping_release(&o->sleeping);
    if (o->reads_runtimes) {
        waits_release(&o->waits);
    }
    *o = (struct offcpu){0};
}

/* ---- time ---- */

static uint32_t unread_node(struct profile *p)
{
    struct frame frame = {.kind = FRAME_NATIVE, .name = profile_cstring(p, "[off-CPU]")};
    return profile_child(p, 0, profile_frame(p, &frame));
}

/* The same stack, below another root. */
static uint32_t moved(struct profile *p, uint32_t root, uint32_t node)
{
    uint32_t frames[DEPTH_MAX];
    size_t depth = 0;
    for (; node != 0 && depth < DEPTH_MAX; node = p->nodes.at[node].parent) {
        frames[depth++] = p->nodes.at[node].frame;
    }
    while (depth > 0 && root != 0) {
        root = profile_child(p, root, frames[--depth]);
    }
    return root;
}

static void note_hit(struct sleeper *t)
{
    for (size_t i = 0; i < t->hit_count; i++) {
        if (t->hit[i].node == t->node) {
            t->hit[i].count++;
            return;
        }
    }
    if (t->hit_count < HITS_MAX) {
        t->hit[t->hit_count++] = (struct hit){t->node, 1};
    }
}

/* The time of waits that nobody saw, among the stacks of those that were seen as short. */
static void share_out(struct offcpu *o, struct profile *p, struct sleeper *t)
{
    struct target *target = t->unread_ns == 0 ? NULL : targets_find(o->targets, t->pid);
    uint32_t hits = 0, unread = target == NULL ? 0 : unread_node(p);
    for (size_t i = 0; i < t->hit_count; i++) {
        hits += t->hit[i].count;
    }
    uint64_t left_ns = target == NULL ? 0 : t->unread_ns;
    for (size_t i = 0; left_ns > 0 && hits >= HITS_LEAST && i < t->hit_count; i++) {
        uint64_t share_ns = t->unread_ns / hits * t->hit[i].count;
        profile_add_wait(p, targets_thread_id(o->targets, p, target, t->tid),
                         moved(p, unread, t->hit[i].node), share_ns);
        left_ns -= share_ns;
    }
    if (left_ns > 0) {
        profile_add_wait(p, targets_thread_id(o->targets, p, target, t->tid), unread, left_ns);
    }
    t->unread_ns = t->hit_count = 0;
}

static bool was_read(const struct offcpu *o, const struct sleeper *t, uint64_t until_ns)
{
    return t->node != 0 && t->window == o->targets->window && t->read_ns >= t->since_ns &&
           t->read_until_ns <= until_ns;
}

/* Counts a wait that ends, or is looked at for the window's sake. */
static void count(struct offcpu *o, struct profile *p, struct sleeper *t, uint64_t until_ns)
{
    struct target *target = targets_find(o->targets, t->pid);
    if (target == NULL || until_ns <= t->since_ns || targets_is_excluded(target, until_ns)) {
        return;
    }
    uint64_t wait_ns = until_ns - t->since_ns;
    if (!was_read(o, t, until_ns)) {
        t->unread_ns += wait_ns;
        return;
    }
    if (wait_ns < SHORT_MS * NS_PER_MS) {
        note_hit(t);
    }
    profile_add_wait(p, targets_thread_id(o->targets, p, target, t->tid), t->node, wait_ns);
}

/* ---- threads ---- */

static struct sleeper *find(const struct offcpu *o, uint32_t tid)
{
    const struct map_slot *slot = map_find(&o->by_tid, tid);
    return slot == NULL ? NULL : o->all.at[slot->value];
}

static struct sleeper *get(struct offcpu *o, uint32_t pid, uint32_t tid)
{
    struct sleeper *t = find(o, tid);
    if (t != NULL) {
        if (t->pid != pid) { /* its id was given to another */
            *t = (struct sleeper){.pid = pid, .tid = tid};
        }
        return t;
    }
    t = o->all.len < SLEEPERS_MAX ? calloc(1, sizeof *t) : NULL;
    struct sleeper **place = t == NULL ? NULL : vec_push(&o->all);
    if (place == NULL || !map_put(&o->by_tid, tid, o->all.len - 1)) {
        o->all.len -= place != NULL;
        free(t);
        return NULL;
    }
    *t = (struct sleeper){.pid = pid, .tid = tid};
    *place = t;
    return t;
}

static void forget(struct offcpu *o, struct profile *p, uint32_t tid)
{
    struct map_slot *slot = map_find(&o->by_tid, tid);
    if (slot == NULL) {
        return;
    }
    share_out(o, p, o->all.at[slot->value]);
    size_t at = (size_t)slot->value;
    free(o->all.at[at]);
    map_remove(&o->by_tid, slot);
    vec_swap_out(&o->all, at);
    if (at < o->all.len) { /* the last one stands there now */
        (void)map_put(&o->by_tid, o->all.at[at]->tid, at);
    }
}

void offcpu_exit(struct offcpu *o, struct profile *p, uint32_t pid, uint32_t tid)
{
    struct map_slot *slot = pid == tid ? map_find(&o->listed, pid) : NULL;
    if (slot != NULL) {
        map_remove(&o->listed, slot);
    }
    forget(o, p, tid);
}

/* ---- records ---- */

void offcpu_switch(struct offcpu *o, struct profile *p, const struct record *record)
{
    struct sleeper *t = get(o, record->pid, record->tid);
    if (t == NULL) {
        return;
    }
    if (!record->as.sched.out && t->out) {
        count(o, p, t, record->time_ns);
    }
    t->out = record->as.sched.out && !record->as.sched.preempt;
    t->since_ns = record->time_ns;
}

void offcpu_lost(struct offcpu *o, struct profile *p)
{
    while (o->all.len > 0) {
        forget(o, p, o->all.at[o->all.len - 1]->tid);
    }
    map_clear(&o->listed); /* those that sleep are found by their state, from now on */
    o->first_ns = clock_mono_ns();
    o->listed_all = false;
}

void offcpu_settle(struct offcpu *o, struct profile *p)
{
    vec_each(&o->all, slot)
    {
        share_out(o, p, *slot);
    }
}

/* Of processes that ended, or whose end was among the records that were lost. */
static void forget_ended(struct offcpu *o, struct profile *p)
{
    for (size_t i = o->all.len; i-- > 0;) {
        const struct target *target = targets_find(o->targets, o->all.at[i]->pid);
        if (target == NULL || target->ended) {
            forget(o, p, o->all.at[i]->tid);
        }
    }
}

void offcpu_end_window(struct offcpu *o, struct profile *p, uint64_t now_ns)
{
    vec_each(&o->all, slot)
    {
        struct sleeper *t = *slot;
        if (t->out) {
            count(o, p, t, now_ns);
            t->since_ns = now_ns;
        }
    }
    offcpu_settle(o, p);
    forget_ended(o, p);
    sleeping_end_window(&o->sleeping);
}

/* ---- those that slept before ---- */

static bool read_text(struct offcpu *o, uint32_t pid, uint32_t tid, const char *name)
{
    const struct world *world = o->targets->images->world;
    struct err err = {0};
    bool good = world->text(world->context, pid, tid, name, &o->text, &err);
    o->denied = o->denied || err.kind == ERR_DENIED;
    return good;
}

static bool is_asleep(struct offcpu *o, uint32_t pid, uint32_t tid)
{
    struct proc_stat stat;
    return read_text(o, pid, tid, "stat") && stat_parse(buf_slice(&o->text), &stat, NULL) &&
           (stat.state == 'S' || stat.state == 'D');
}

/* One that is asleep and of which no record ever told has been asleep since it was followed. */
static void list_threads(struct offcpu *o, const struct target *target, uint64_t since_ns)
{
    if (!proc_list_threads(target->pid, &o->tids, NULL)) {
        return;
    }
    vec_each(&o->tids.ids, tid)
    {
        if (find(o, *tid) != NULL || !is_asleep(o, target->pid, *tid)) {
            continue;
        }
        struct sleeper *t = get(o, target->pid, *tid);
        if (t != NULL) {
            t->out = true;
            t->since_ns = since_ns;
        }
    }
}

static void list_new(struct offcpu *o, uint64_t now_ns)
{
    uint64_t since_ns = o->listed_all ? now_ns : o->first_ns;
    unsigned left = LISTED_MOST;
    for (size_t i = 0; i < o->targets->all.len && left > 0; i++) {
        const struct target *target = o->targets->all.at[i];
        bool on_perf = target->capture_mode == CAPTURE_PERF || target->capture_mode == CAPTURE_PERF_USER;
        if (!on_perf || target->ended || map_find(&o->listed, target->pid) != NULL) {
            continue;
        }
        left--;
        (void)map_put(&o->listed, target->pid, 1);
        if (target->began_ns == 0) { /* else records tell of it from its beginning */
            list_threads(o, target, since_ns);
        }
    }
    o->listed_all = o->listed_all || left > 0;
}

/* ---- where ---- */

static uint32_t runtime_node(struct offcpu *o, struct profile *p, const struct target *target,
                             const struct sleeper *t)
{
    struct reader *reader = target->runtime.reader;
    return o->reads_runtimes && reader != NULL && reader->runtime != NULL
               ? waits_node(&o->waits, p, reader, t->tid)
               : 0;
}

static void look_at(struct offcpu *o, struct profile *p, struct target *target, struct sleeper *t)
{
    uint64_t began_ns = clock_mono_ns();
    uint32_t node = runtime_node(o, p, target, t);
    if (node == 0 && read_text(o, t->pid, t->tid, "syscall")) {
        const struct sleeping_thread at = {.target = target, .tid = t->tid, .place = buf_slice(&o->text)};
        node = sleeping_node(&o->sleeping, p, &at);
        sleeping_keep(&o->sleeping); /* if it ran meanwhile, a record will tell, and the node is not this wait's */
    }
    t->node = node;
    t->window = o->targets->window;
    t->read_ns = began_ns;
    t->read_until_ns = clock_mono_ns();
}

static bool wants_look(const struct offcpu *o, const struct sleeper *t, uint64_t now_ns)
{
    return t->out && !was_read(o, t, now_ns);
}

void offcpu_look(struct offcpu *o, struct profile *p, uint64_t now_ns)
{
    list_new(o, now_ns);
    sleeping_allow(&o->sleeping, OFFCPU_READS / LOOKS_PER_S, OFFCPU_READS);
    unsigned left = LOOKS_MOST;
    size_t count_of_all = o->all.len;
    for (size_t i = 0; i < count_of_all && left > 0; i++) {
        struct sleeper *t = o->all.at[o->cursor++ % count_of_all];
        struct target *target =
            wants_look(o, t, now_ns) ? targets_find(o->targets, t->pid) : NULL;
        if (target != NULL && !target->ended) {
            left--;
            look_at(o, p, target, t);
        }
    }
    o->next_ns = now_ns + OFFCPU_MS * NS_PER_MS;
}
