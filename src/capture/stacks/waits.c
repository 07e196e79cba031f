/* waits: one struct waiter per thread, WAITERS_MAX at most. Its schedstat says whether it has run since the last look,
 * and what is to be taken off the time between; if it has run its stack is read again, and believed when schedstat is
 * the same after the reading. Time without a place is owed, and goes to the place that is found next. */
#include "capture/stacks/waits.h"
#include "base/random.h"
#include "base/time.h"
#include "capture/stacks/labels.h"
#include "capture/stacks/reasons.h"
#include "os/clock.h"
#include "target/stat.h"

#include <stdio.h>
#include <stdlib.h>

enum {
    TEXT_MAX = 4096,
    LAG_NS = 10000000, /* that schedstat may lag behind a thread that runs: it moves with the scheduler's tick */
};

struct waiter {
    uint32_t pid, tid;
    uint64_t serial;             /* of the reader that `plan` is of */
    uint64_t found_by;           /* its process's first reader when `node` was found; 0: it had none */
    uint64_t round;              /* it was seen in */
    uint64_t looked_ns;          /* 0: not yet */
    struct proc_schedstat times; /* at the last look */
    int64_t owed_ns;             /* off the CPU since its place was known; below 0: what schedstat told late */
    uint32_t node, window;       /* where it waits, in the profile of `window`; 0: not known */
    uint32_t thread;             /* there, under its labels */
    _Alignas(16) unsigned char plan[RUNTIME_PLAN_MAX]; /* the runtime's */
};

bool waits_init(struct waits *w, struct stacks *stacks, struct readers *readers,
                struct targets *targets, struct err *err)
{
    *w = (struct waits){.readers = readers,
                        .targets = targets,
                        .every_ns = WAITS_MS * NS_PER_MS,
                        .stretch = 1,
                        .seed = clock_mono_ns() | 1};
    w->stack = malloc(sizeof *w->stack);
    w->caught = malloc(sizeof *w->caught + RUNTIME_FRAMES_MAX * sizeof w->caught->frame[0]);
    buf_init(&w->text, TEXT_MAX);
    if (w->stack == NULL || w->caught == NULL || !sleeping_init(&w->sleeping, stacks, NULL)) {
        waits_release(w);
        return err_set(err, ERR_MEMORY, 0, "no memory to look at waiting threads");
    }
    sleeping_allow(&w->sleeping, WAITS_READS, WAITS_READS);
    return true;
}

void waits_release(struct waits *w)
{
    vec_each(&w->all, waiter)
    {
        free(*waiter);
    }
    vec_release(&w->all);
    vec_release(&w->tids.ids);
    map_release(&w->by_tid);
    buf_release(&w->text);
    sleeping_release(&w->sleeping);
    free(w->stack);
    free(w->caught);
    *w = (struct waits){0};
}

/* ---- what the kernel tells of a thread ---- */

static bool read_text(struct waits *w, const struct waiter *t, const char *name, struct err *err)
{
    const struct world *world = w->targets->images->world;
    return world->text(world->context, t->pid, t->tid, name, &w->text, err);
}

static bool read_times(struct waits *w, const struct waiter *t, struct proc_schedstat *out)
{
    return read_text(w, t, "schedstat", NULL) && schedstat_parse(buf_slice(&w->text), out, NULL);
}

static bool has_run(const struct waiter *t, const struct proc_schedstat *now)
{
    return now->slices != t->times.slices || now->cpu_ns != t->times.cpu_ns;
}

static bool read_stat(struct waits *w, const struct waiter *t, struct proc_stat *out)
{
    return read_text(w, t, "stat", NULL) && stat_parse(buf_slice(&w->text), out, NULL);
}

static bool is_asleep(struct waits *w, const struct waiter *t)
{
    struct proc_stat stat;
    return read_stat(w, t, &stat) && (stat.state == 'S' || stat.state == 'D');
}

static void note(struct waits *w, const struct waiter *t, const char *file, enum err_kind kind)
{
    w->refusal = (struct waits_refusal){.kind = kind, .pid = t->pid, .file = file};
}

/* The thread is there, but not this file of it: a kernel without it, or none of Linux at all. */
static void note_missing(struct waits *w, const struct waiter *t, const char *file)
{
    struct proc_stat stat;
    if (read_stat(w, t, &stat)) {
        note(w, t, file, ERR_UNSUPPORTED);
    }
}

static void note_uncounted(struct waits *w, const struct waiter *t)
{
    if (is_asleep(w, t)) {
        note(w, t, "schedstat", ERR_UNSUPPORTED);
    }
}

/* Where it stands, into the text. */
static bool read_place(struct waits *w, const struct waiter *t)
{
    struct err err = {0};
    bool good = read_text(w, t, "syscall", &err);
    if (!good && err.kind == ERR_DENIED) {
        note(w, t, "syscall", ERR_DENIED);
    } else if (!good) {
        note_missing(w, t, "syscall");
    }
    return good;
}

/* ---- the stack of one thread ---- */

static void walk(struct waits *w, const struct reader *reader, struct waiter *t, uint32_t inner)
{
    struct remote_caller caller = {.remote = &reader->remote};
    struct memory_batch memory = remote_batch(&caller);
    w->stack->count = w->stack->interpreter = 0;
    w->stack->task_bytes = 0;
    w->stack->end = RUNTIME_UNREADABLE;
    const struct runtime_thread thread = {.tid = inner};
    reader->runtime->walk(reader->state, t->plan, &thread, &memory, w->stack);
    *w->caught = (struct caught){.frame_count = w->stack->count,
                                 .serial = reader->serial,
                                 .pid = t->pid,
                                 .tid = t->tid,
                                 .end = w->stack->end,
                                 .marks = w->stack->marks,
                                 .interpreter = w->stack->interpreter,
                                 .task_bytes = w->stack->task_bytes};
    memcpy(w->caught->task, w->stack->task, w->stack->task_bytes);
    memcpy(w->caught->frame, w->stack->frame, w->stack->count * sizeof w->stack->frame[0]);
}

static uint32_t inner_tid(const struct reader *reader, uint32_t tid)
{
    vec_each(&reader->tids.list, pair)
    {
        if (pair->tid == tid) {
            return pair->inner;
        }
    }
    return tid;
}

/* Null: it runs nothing of this runtime. */
static const struct caught *walk_one(struct waits *w, const struct reader *reader, struct waiter *t)
{
    if (reader->runtime == NULL || reader->runtime->walk == NULL || reader->runtime->only_labels) {
        return NULL;
    }
    if (t->serial != reader->serial) {
        memset(t->plan, 0, sizeof t->plan);
        t->serial = reader->serial;
    }
    walk(w, reader, t, inner_tid(reader, t->tid));
    return w->stack->end == RUNTIME_COMPLETE ? w->caught : NULL;
}

/* Of the first of the process's runtimes that it runs. */
static const struct caught *walk_any(struct waits *w, const struct target *target, struct waiter *t)
{
    const struct caught *caught = NULL;
    const struct reader *reader = w->readers == NULL ? NULL : target->runtime.reader;
    for (; reader != NULL && caught == NULL; reader = reader->next) {
        caught = walk_one(w, reader, t);
    }
    return caught;
}

static bool waits_for_lock(const struct caught *caught)
{
    return caught != NULL && (caught->marks & RUNTIME_WAITS_LOCK) != 0;
}

/* The runtime's stack alone, below what it waits for, as the text tells if it is of a place. */
static uint32_t runtime_node(struct waits *w, struct profile *p, struct target *target, const struct caught *caught,
                             bool has_place)
{
    char reason[REASON_MAX] = "";
    if (waits_for_lock(caught)) {
        snprintf(reason, sizeof reason, "[waits: GIL]");
    } else if (has_place) {
        (void)reason_of(caught->pid, buf_slice(&w->text), reason);
    }
    uint32_t node = stacks_node(w->sleeping.stacks, p, target, caught);
    struct frame frame = {.kind = FRAME_NATIVE,
                          .name = profile_cstring(p, reason[0] != '\0' ? reason : "[waits]")};
    return node == 0 ? 0 : profile_child(p, node, profile_frame(p, &frame));
}

static uint32_t node_of(struct waits *w, struct profile *p, struct target *target, const struct waiter *t,
                        const struct caught *caught)
{
    if (!read_place(w, t)) {
        return caught == NULL ? 0 : runtime_node(w, p, target, caught, false);
    }
    const struct sleeping_thread at = {.target = target,
                                       .tid = t->tid,
                                       .place = buf_slice(&w->text),
                                       .reason = waits_for_lock(caught) ? "[waits: GIL]" : NULL,
                                       .caught = caught};
    return sleeping_node(&w->sleeping, p, &at);
}

/* Where it waits, now that it sleeps; 0 when it ran meanwhile, or no more may be read now. */
static uint32_t find_node(struct waits *w, struct profile *p, struct target *target, struct waiter *t)
{
    struct proc_schedstat after;
    if (w->places == 0 || !is_asleep(w, t)) {
        return 0;
    }
    w->places--;
    const struct caught *caught = walk_any(w, target, t);
    uint32_t node = node_of(w, p, target, t, caught);
    if (node == 0 || !read_times(w, t, &after) || has_run(t, &after)) {
        return 0;
    }
    sleeping_keep(&w->sleeping);
    w->any_stack = true;
    t->thread = labels_thread(p, targets_thread_id(w->targets, p, target, t->tid), caught);
    return node;
}

/* ---- the time of one thread ---- */

/* A thread that has another's id, or became another program's first, begins anew. */
static bool goes_on(const struct waiter *t, const struct proc_schedstat *now)
{
    return t->looked_ns != 0 && now->cpu_ns >= t->times.cpu_ns && now->wait_ns >= t->times.wait_ns &&
           now->slices >= t->times.slices;
}

static void add_owed(struct waiter *t, struct profile *p, uint32_t thread, uint32_t node)
{
    profile_add_wait(p, thread, node, (uint64_t)t->owed_ns);
    t->owed_ns = 0;
}

static uint64_t first_reader(const struct target *target)
{
    return target->runtime.reader == NULL ? 0 : target->runtime.reader->serial;
}

/* What was read before its runtime was found has the interpreter's own functions in the place of the program's. */
static bool is_placed(const struct waits *w, const struct target *target, const struct waiter *t)
{
    return t->node != 0 && t->window == w->targets->window && t->found_by == first_reader(target);
}

static void look_at(struct waits *w, struct profile *p, struct target *target, struct waiter *t)
{
    struct proc_schedstat times;
    uint64_t now_ns = clock_mono_ns();
    if (!read_times(w, t, &times)) {
        note_missing(w, t, "schedstat");
        return;
    }
    if (times.slices == 0) { /* it is just being made; or who sleeps has run, and the kernel does not count */
        note_uncounted(w, t);
        return;
    }
    bool known = goes_on(t, &times), ran = !known || has_run(t, &times);
    if (known) {
        t->owed_ns += (int64_t)(now_ns - t->looked_ns) - (int64_t)(times.cpu_ns - t->times.cpu_ns) -
                      (int64_t)(times.wait_ns - t->times.wait_ns);
    } else {
        t->owed_ns = 0;
    }
    t->looked_ns = now_ns;
    t->times = times;
    if (ran || !is_placed(w, target, t)) {
        t->node = find_node(w, p, target, t);
        t->window = w->targets->window;
        t->found_by = first_reader(target);
    }
    if (t->node != 0 && t->owed_ns > 0) {
        add_owed(t, p, t->thread, t->node);
    }
}

/* Nobody has seen where. */
static void settle(struct waits *w, struct profile *p, struct waiter *t)
{
    struct target *target = t->owed_ns > LAG_NS ? targets_find(w->targets, t->pid) : NULL;
    if (target != NULL) {
        struct frame frame = {.kind = FRAME_NATIVE, .name = profile_cstring(p, "[off-CPU]")};
        add_owed(t, p, targets_thread_id(w->targets, p, target, t->tid), profile_child(p, 0, profile_frame(p, &frame)));
    }
}

/* ---- all threads ---- */

static struct waiter *waiter_of(struct waits *w, uint32_t pid, uint32_t tid)
{
    const struct map_slot *slot = map_find(&w->by_tid, tid);
    struct waiter *t = slot == NULL ? NULL : (struct waiter *)(uintptr_t)slot->value;
    if (t == NULL) {
        t = w->all.len < WAITERS_MAX ? calloc(1, sizeof *t) : NULL;
        struct waiter **place = t == NULL ? NULL : vec_push(&w->all);
        if (place == NULL || !map_put(&w->by_tid, tid, (uint64_t)(uintptr_t)t)) {
            w->all.len -= place != NULL;
            free(t);
            return NULL;
        }
        *place = t;
    }
    if (t->pid != pid) {
        *t = (struct waiter){.pid = pid, .tid = tid};
    }
    t->round = w->round;
    return t;
}

uint32_t waits_node(struct waits *w, struct profile *p, struct reader *reader, uint32_t tid)
{
    struct proc_schedstat after;
    struct waiter *t = waiter_of(w, reader->pid, tid);
    if (t == NULL || !read_times(w, t, &t->times) || !is_asleep(w, t)) {
        return 0;
    }
    const struct caught *caught = walk_one(w, reader, t);
    if (caught == NULL) {
        return 0;
    }
    uint32_t node = runtime_node(w, p, reader->target, caught, read_text(w, t, "syscall", NULL));
    return read_times(w, t, &after) && !has_run(t, &after) ? node : 0;
}

static void find_locks(const struct target *target, const struct waiter *t, struct waits_found *out)
{
    const struct reader *reader = target->runtime.reader;
    while (reader != NULL && reader->serial != t->serial) {
        reader = reader->next;
    }
    if (reader != NULL && reader->runtime->locks != NULL) {
        struct remote_caller caller = {.remote = &reader->remote};
        struct memory_batch memory = remote_batch(&caller);
        (void)reader->runtime->locks(reader->state, t->plan, &memory, out->locks, WAITS_LOCKS);
    }
}

void waits_find(struct waits *w, struct profile *p, struct target *target, uint32_t tid, struct waits_found *out)
{
    struct proc_schedstat after;
    struct proc_stat stat;
    struct waiter *t = waiter_of(w, target->pid, tid);
    *out = (struct waits_found){0};
    if (t == NULL || !read_times(w, t, &t->times) || !read_stat(w, t, &stat)) {
        return;
    }
    out->state = stat.state;
    if (strchr("SDTtIP", stat.state) == NULL) {
        return;
    }
    const struct caught *caught = walk_any(w, target, t);
    if (caught != NULL) {
        find_locks(target, t, out);
    }
    sleeping_allow(&w->sleeping, 1, WAITS_READS);
    uint32_t node = node_of(w, p, target, t, caught);
    struct str place = buf_slice(&w->text);
    bool is_call = node != 0 && place.len > 0 && place.len < sizeof out->place && read_text(w, t, "syscall", NULL);
    if (is_call) {
        snprintf(out->place, sizeof out->place, "%s", buf_cstr(&w->text));
    }
    if (read_times(w, t, &after) && !has_run(t, &after)) {
        sleeping_keep(&w->sleeping);
        out->node = node;
        out->thread = labels_thread(p, targets_thread_id(w->targets, p, target, tid), caught);
    }
}

static void forget_ended(struct waits *w, struct profile *p)
{
    for (size_t i = w->all.len; i-- > 0;) {
        struct waiter *t = w->all.at[i];
        if (t->round != w->round) {
            settle(w, p, t);
            map_remove(&w->by_tid, map_find(&w->by_tid, t->tid));
            free(t);
            vec_swap_out(&w->all, i);
        }
    }
}

static size_t by_lot(struct waits *w, size_t count)
{
    return count == 0 ? 0 : (size_t)(random_next_ns(0, UINT32_MAX, &w->seed) % count);
}

/* Most processes of a machine have one thread, and listing costs more than looking at it. */
static bool list_threads(struct waits *w, uint32_t pid)
{
    if (proc_count_threads(pid) != 1) {
        return proc_list_threads(pid, &w->tids, NULL);
    }
    vec_clear(&w->tids.ids);
    uint32_t *only = vec_push(&w->tids.ids);
    if (only != NULL) {
        *only = pid;
    }
    return only != NULL;
}

static void look_into(struct waits *w, struct profile *p, struct target *target, uint64_t now_ns)
{
    if (target->ended || targets_is_excluded(target, now_ns) || !list_threads(w, target->pid)) {
        return;
    }
    size_t count = w->tids.ids.len, first = by_lot(w, count);
    for (size_t i = 0; i < count; i++) {
        struct waiter *t = waiter_of(w, target->pid, w->tids.ids.at[(first + i) % count]);
        w->is_full = w->is_full || t == NULL;
        if (t != NULL) {
            look_at(w, p, target, t);
        }
    }
}

void waits_look(struct waits *w, struct profile *p, uint64_t now_ns)
{
    size_t count = w->targets->all.len, first = by_lot(w, count);
    unsigned reads = (unsigned)(WAITS_READS * w->every_ns / NS_PER_S);
    w->round++;
    w->places = (unsigned)(WAITS_PLACES * w->every_ns / NS_PER_S);
    sleeping_allow(&w->sleeping, reads, reads > WAITS_READS ? reads : (unsigned)WAITS_READS);
    for (size_t i = 0; i < count; i++) { /* who is first has the places; chance says who */
        look_into(w, p, w->targets->all.at[(first + i) % count], now_ns);
    }
    forget_ended(w, p);
    w->every_ns = (w->all.len / WAITS_THREADS + 1) * WAITS_MS * NS_PER_MS * w->stretch;
    w->next_ns = random_next_ns(now_ns, w->every_ns, &w->seed);
}

void waits_end_window(struct waits *w, struct profile *p, uint64_t now_ns)
{
    waits_look(w, p, now_ns);
    vec_each(&w->all, waiter)
    {
        settle(w, p, *waiter);
    }
    sleeping_end_window(&w->sleeping);
}
