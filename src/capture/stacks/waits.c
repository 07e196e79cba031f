/* waits: one struct waiter per thread of an interpreter, WAITERS_MAX at most. Its schedstat says whether it has run
 * since the last look; if so its stack is read again, and believed when schedstat is the same after the reading. The
 * time between two looks counts only if they are less than LONGEST_WAIT intervals apart. */
#include "capture/stacks/waits.h"
#include "base/time.h"
#include "capture/stacks/labels.h"
#include "capture/stacks/reasons.h"
#include "os/clock.h"
#include "target/stat.h"

#include <stdio.h>
#include <stdlib.h>

enum {
    TEXT_MAX = 4096,
    WAITERS_MAX = 8192,
    LONGEST_WAIT = 10, /* looks: a longer pause between two of them was not watched */
};

struct waiter {
    uint32_t pid, tid;
    uint64_t serial;          /* of the reader */
    uint64_t round;           /* it was seen in */
    uint64_t looked_ns;
    uint64_t cpu_ns, slices;  /* schedstat at the last look */
    uint32_t node, window;    /* where it waits, in the profile of `window`; 0: not known */
    uint32_t thread;          /* there, under its labels */
    _Alignas(16) unsigned char plan[RUNTIME_PLAN_MAX]; /* the runtime's */
};

bool waits_init(struct waits *w, struct stacks *stacks, struct readers *readers,
                struct targets *targets, struct err *err)
{
    *w = (struct waits){.stacks = stacks,
                        .readers = readers,
                        .targets = targets,
                        .every_ns = WAITS_MS * NS_PER_MS};
    w->stack = malloc(sizeof *w->stack);
    w->caught = malloc(sizeof *w->caught + RUNTIME_FRAMES_MAX * sizeof w->caught->frame[0]);
    buf_init(&w->text, TEXT_MAX);
    if (w->stack == NULL || w->caught == NULL) {
        waits_release(w);
        return err_set(err, ERR_MEMORY, 0, "no memory to look at waiting threads");
    }
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
    free(w->stack);
    free(w->caught);
    *w = (struct waits){0};
}

static bool read_text(struct waits *w, const struct waiter *t, const char *name)
{
    const struct world *world = w->targets->images->world;
    return world->text(world->context, t->pid, t->tid, name, &w->text, NULL);
}

/* ---- one thread ---- */

static bool read_times(struct waits *w, const struct waiter *t, struct proc_schedstat *out)
{
    return read_text(w, t, "schedstat") && schedstat_parse(buf_slice(&w->text), out, NULL);
}

static bool has_run(const struct waiter *t, const struct proc_schedstat *now)
{
    return now->slices != t->slices || now->cpu_ns != t->cpu_ns;
}

static bool is_asleep(struct waits *w, const struct waiter *t)
{
    struct proc_stat stat;
    return read_text(w, t, "stat") && stat_parse(buf_slice(&w->text), &stat, NULL) &&
           (stat.state == 'S' || stat.state == 'D');
}

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

/* Where it waits, now that it sleeps; 0 when it ran meanwhile, or runs nothing of the runtime. */
static uint32_t find_node(struct waits *w, struct profile *p, struct reader *reader,
                          struct waiter *t)
{
    char reason[REASON_MAX];
    struct proc_schedstat after;
    if (!is_asleep(w, t)) {
        return 0;
    }
    walk(w, reader, t, inner_tid(reader, t->tid));
    reason[0] = '\0';
    if ((w->stack->marks & RUNTIME_WAITS_LOCK) != 0) {
        snprintf(reason, sizeof reason, "[waits: GIL]");
    } else if (read_text(w, t, "syscall")) {
        (void)reason_of(t->pid, buf_slice(&w->text), reason);
    }
    if (w->stack->end != RUNTIME_COMPLETE || !read_times(w, t, &after) || has_run(t, &after)) {
        return 0;
    }
    uint32_t node = stacks_node(w->stacks, p, reader->target, w->caught);
    t->thread = labels_thread(p, targets_thread_id(w->targets, p, reader->target, t->tid), w->caught);
    struct frame frame = {.kind = FRAME_NATIVE,
                          .name = profile_cstring(p, reason[0] != '\0' ? reason : "[waits]")};
    return node == 0 ? 0 : profile_child(p, node, profile_frame(p, &frame));
}

static void look_at(struct waits *w, struct profile *p, struct reader *reader, struct waiter *t,
                    uint64_t now_ns)
{
    struct proc_schedstat times;
    uint64_t passed_ns = now_ns - t->looked_ns;
    if (!read_times(w, t, &times)) {
        return;
    }
    bool ran = has_run(t, &times);
    bool watched = t->looked_ns != 0 && passed_ns < LONGEST_WAIT * w->every_ns;
    uint64_t cpu_ns = times.cpu_ns - t->cpu_ns;
    t->looked_ns = now_ns;
    t->cpu_ns = times.cpu_ns;
    t->slices = times.slices;
    if (ran || t->node == 0 || t->window != w->targets->window) {
        t->node = find_node(w, p, reader, t);
        t->window = w->targets->window;
    }
    if (watched && t->node != 0 && cpu_ns < passed_ns) {
        profile_add_wait(p, t->thread, t->node, passed_ns - cpu_ns);
    }
}

/* ---- all threads ---- */

static struct waiter *waiter_of(struct waits *w, const struct reader *reader, uint32_t tid)
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
    if (t->serial != reader->serial) {
        *t = (struct waiter){.pid = reader->pid, .tid = tid, .serial = reader->serial};
    }
    t->round = w->round;
    return t;
}

uint32_t waits_node(struct waits *w, struct profile *p, struct reader *reader, uint32_t tid)
{
    struct proc_schedstat times;
    struct waiter *t = waiter_of(w, reader, tid);
    if (t == NULL || !read_times(w, t, &times)) {
        return 0;
    }
    t->cpu_ns = times.cpu_ns;
    t->slices = times.slices;
    return find_node(w, p, reader, t);
}

static void forget_ended(struct waits *w)
{
    for (size_t i = w->all.len; i-- > 0;) {
        struct waiter *t = w->all.at[i];
        if (t->round != w->round) {
            map_remove(&w->by_tid, map_find(&w->by_tid, t->tid));
            free(t);
            vec_swap_out(&w->all, i);
        }
    }
}

void waits_look(struct waits *w, struct profile *p, uint64_t now_ns)
{
    w->round++;
    for (size_t i = 0; i < w->readers->all.len; i++) {
        struct reader *reader = w->readers->all.at[i];
        if (reader->runtime == NULL || reader->target->ended ||
            !proc_list_threads(reader->pid, &w->tids, NULL)) {
            continue;
        }
        vec_each(&w->tids.ids, tid)
        {
            struct waiter *t = waiter_of(w, reader, *tid);
            if (t != NULL) {
                look_at(w, p, reader, t, clock_mono_ns());
            }
        }
    }
    forget_ended(w);
    w->every_ns = (w->all.len / WAITS_THREADS + 1) * WAITS_MS * NS_PER_MS;
    w->next_ns = now_ns + w->every_ns;
}
