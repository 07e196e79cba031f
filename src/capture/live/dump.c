/* dump: the row of a run that looks at each thread until it was seen once, and then ends the run. A thread that does
 * not run is found by waits.h; of one that runs the best sample of the window is its stack. What each waits for, and
 * who holds it, is found at the end, when nobody moves any more but those who run. */
#include "capture/live/dump.h"
#include "base/time.h"
#include "capture/live/dump_circle.h"
#include "capture/live/dump_locks.h"
#include "capture/live/dump_tasks.h"
#include "os/access.h"
#include "os/clock.h"
#include "target/stat.h"
#include "target/status.h"

#include <stdio.h>
#include <stdlib.h>

enum {
    EVERY_MS = 10,
    TRIES = 4, /* among many threads a runtime's reader finds one by several walks, … */
    TRIES_THREADS = 32, /* … one more for so many */
    TRIES_MOST = 250,
};

/* How good a stack of a sample is; from RANK_WHOLE on no better one is waited for. */
enum rank { RANK_NONE, RANK_MARKED, RANK_NATIVE, RANK_RUNTIME_MARKED, RANK_RUNTIME };

struct dump {
    struct shared *shared;
    struct targets *targets;
    struct dump_request *request;
    const struct collecting *collecting;
    struct waits waits;
    struct dump_found found;
    struct pid_list tids; /* scratch */
    struct buf text;      /* scratch */
    uint64_t next_ns, end_ns;
    size_t tries; /* of each thread */
};

struct dump *dump_new(struct shared *shared, struct stacks *stacks, struct readers *readers, struct targets *targets,
                      struct dump_request *request)
{
    struct dump *d = calloc(1, sizeof *d);
    if (d == NULL || !waits_init(&d->waits, stacks, readers, targets, NULL)) {
        free(d);
        return NULL;
    }
    d->shared = shared;
    d->targets = targets;
    d->request = request;
    buf_init(&d->text, 4096);
    return d;
}

void dump_await(struct dump *d, const struct collecting *collecting)
{
    d->collecting = collecting;
}

static void release(void *state)
{
    struct dump *d = state;
    waits_release(&d->waits);
    vec_release(&d->found.processes);
    vec_release(&d->found.threads);
    vec_release(&d->found.tasks);
    vec_release(&d->tids.ids);
    buf_release(&d->text);
    free(d);
}

/* ---- who there is ---- */

static bool read_text(struct dump *d, uint32_t pid, uint32_t tid, const char *name)
{
    const struct world *world = d->targets->images->world;
    return world->text(world->context, pid, tid, name, &d->text, NULL);
}

static uint32_t inner_tid(struct dump *d, uint32_t pid, uint32_t tid)
{
    struct proc_status status;
    bool good = read_text(d, pid, tid, "status") && status_parse(buf_slice(&d->text), &status, NULL);
    return good && status.ns_pid != 0 ? status.ns_pid : tid;
}

static void read_command(struct dump *d, struct dump_process *process)
{
    if (!read_text(d, process->pid, 0, "cmdline")) {
        return;
    }
    struct str line = buf_slice(&d->text);
    size_t len = line.len < sizeof process->command ? line.len : sizeof process->command - 1;
    while (len > 0 && line.ptr[len - 1] == '\0') {
        len--;
    }
    for (size_t i = 0; i < len; i++) {
        process->command[i] = line.ptr[i] == '\0' ? ' ' : line.ptr[i];
    }
}

static void list_process(struct dump *d, struct target *target)
{
    struct dump_process *process = vec_push(&d->found.processes);
    if (process == NULL || !proc_list_threads(target->pid, &d->tids, NULL)) {
        d->found.processes.len -= process != NULL;
        return;
    }
    *process = (struct dump_process){.pid = target->pid, .first = d->found.threads.len};
    read_command(d, process);
    vec_each(&d->tids.ids, tid)
    {
        struct dump_thread *t = d->found.threads.len < DUMP_THREADS_MAX ? vec_push(&d->found.threads) : NULL;
        if (t != NULL) {
            *t = (struct dump_thread){.pid = target->pid, .tid = *tid, .inner = inner_tid(d, target->pid, *tid)};
            process->count++;
        }
    }
}

static void setup(void *state)
{
    struct dump *d = state;
    d->found.wall_ns = clock_wall_ns();
    vec_each(&d->targets->all, target)
    {
        list_process(d, *target);
    }
    size_t count = d->found.threads.len, tries = TRIES + count / TRIES_THREADS;
    d->tries = tries < TRIES_MOST ? tries : (size_t)TRIES_MOST;
    d->end_ns = clock_mono_ns() + (DUMP_MS + DUMP_THREAD_MS * count) * NS_PER_MS;
}

/* ---- threads that run ---- */

static bool is_mark(struct str name)
{
    return str_eq(name, STR("[~]")) || str_eq(name, STR("[partial]")) || str_ends(name, STR("torn]"));
}

static enum rank rank_of(const struct profile *p, uint32_t node)
{
    bool marked = false, of_runtime = false;
    for (; node != 0; node = p->nodes.at[node].parent) {
        const struct frame *frame = &p->frames.at[p->nodes.at[node].frame];
        if (frame->kind == FRAME_ACCOUNT) {
            return RANK_NONE;
        }
        of_runtime |= frame->kind != FRAME_NATIVE && frame->kind != FRAME_KERNEL;
        marked |= frame->address == 0 && is_mark(profile_text(p, frame->name));
    }
    return of_runtime ? (marked ? RANK_RUNTIME_MARKED : RANK_RUNTIME) : marked ? RANK_MARKED : RANK_NATIVE;
}

static bool is_of(const struct profile *p, const struct sample *sample, const struct dump_thread *t)
{
    const struct thread *thread = &p->threads.at[sample->thread];
    return thread->tid == t->tid && p->processes.at[thread->process].pid == t->pid;
}

static enum rank take_sample(const struct profile *p, struct dump_thread *t)
{
    enum rank best = RANK_NONE;
    vec_each(&p->samples, sample)
    {
        enum rank rank = sample->node != 0 && is_of(p, sample, t) ? rank_of(p, sample->node) : RANK_NONE;
        if (rank > RANK_NONE && rank >= best) {
            best = rank;
            t->node = sample->node;
            t->thread = sample->thread;
        }
    }
    return best;
}

/* ---- looks ---- */

static bool is_walked(const struct target *target)
{
    const struct reader *reader = target->runtime.reader;
    while (reader != NULL &&
           (reader->runtime == NULL || reader->runtime->walk == NULL || reader->runtime->only_labels)) {
        reader = reader->next;
    }
    return reader != NULL;
}

static void look(struct dump *d, struct target *target, struct dump_thread *t)
{
    struct waits_found found;
    struct profile *p = d->shared->window.profile;
    waits_find(&d->waits, p, target, t->tid, &found);
    t->state = found.state;
    t->node = found.node;
    t->thread = found.thread;
    memcpy(t->locks, found.locks, sizeof t->locks);
    t->is_seen = found.node != 0 || found.state == 0 || found.state == 'Z' || found.state == 'X';
    if (found.node != 0 && t->tries < d->tries && is_walked(target) && rank_of(p, found.node) < RANK_RUNTIME_MARKED) {
        t->tries++;
        t->is_seen = false;
    }
    if (found.node != 0) {
        locks_note(t, found.place);
    } else if (found.state == 'R') {
        t->is_seen = take_sample(p, t) >= (is_walked(target) ? RANK_RUNTIME : RANK_NATIVE);
    }
}

static bool look_all(struct dump *d)
{
    bool all = true;
    vec_each(&d->found.threads, t)
    {
        struct target *target = t->is_seen ? NULL : targets_find(d->targets, t->pid);
        if (target != NULL) {
            look(d, target, t);
            all = all && t->is_seen;
        }
    }
    return all || d->waits.refusal.kind == ERR_DENIED;
}

static void round_of(void *state, uint64_t now_ns)
{
    struct dump *d = state;
    if (now_ns >= d->next_ns) {
        d->next_ns = now_ns + EVERY_MS * NS_PER_MS;
        bool done = look_all(d) && !collecting_begins(d->collecting);
        d->shared->finishing |= done || now_ns >= d->end_ns;
    }
}

static uint64_t due_ns(const void *state)
{
    const struct dump *d = state;
    return d->next_ns;
}

/* ---- the end ---- */

static const char remedy_stops[] =
    "running native code is not read without perf events; --brief-stops reads it, and holds each thread for some "
    "40 microseconds";

static void explain(struct dump *d, struct dump_process *process)
{
    char why[ACCESS_TEXT_MAX];
    bool runs = false;
    for (size_t i = process->first; i < process->first + process->count; i++) {
        runs |= d->found.threads.at[i].node == 0 && d->found.threads.at[i].state == 'R';
    }
    if (d->waits.refusal.kind == ERR_DENIED && d->waits.refusal.pid == process->pid) {
        access_refusal(process->pid, ACCESS_MEMORY, why);
        snprintf(process->why, sizeof process->why, "where threads stand may not be read: %s", why);
    } else if (runs && !d->shared->perf_on && !d->shared->stops) {
        snprintf(process->why, sizeof process->why, "%s", remedy_stops);
    } else if (runs && d->shared->stops_refused[0] != '\0') {
        snprintf(process->why, sizeof process->why, "%s", d->shared->stops_refused);
    }
}

/* Before its holder was known it might have been anything. */
static void name_locks(struct dump_thread *threads, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        struct dump_thread *t = &threads[i];
        if (t->holder != 0 && strncmp(t->wait, "lock or", 7) == 0) {
            snprintf(t->wait, sizeof t->wait, "lock 0x%llx", (unsigned long long)t->futex);
        }
    }
}

static void window_end(void *state)
{
    struct dump *d = state;
    struct profile *p = d->shared->window.profile;
    if (d->found.mode != NULL) { /* a second window is empty */
        return;
    }
    d->found.mode = d->shared->perf_on ? "perf" : d->shared->stops ? "brief stops" : "no perf";
    vec_each(&d->found.threads, t)
    {
        struct target *target = targets_find(d->targets, t->pid);
        if (target != NULL && t->node == 0 && t->state != 0) {
            (void)take_sample(p, t);
        }
        if (target != NULL && t->thread == 0) {
            t->thread = targets_thread_id(d->targets, p, target, t->tid);
        }
    }
    vec_each(&d->found.processes, process)
    {
        struct dump_thread *threads = d->found.threads.at + process->first;
        struct target *target = targets_find(d->targets, process->pid);
        process->process = target == NULL ? 0 : targets_process_id(d->targets, p, target);
        locks_find_holders(d->targets->images->world, p, threads, process->count);
        name_locks(threads, process->count);
        d->found.circles += circles_find(threads, process->count, d->found.circles);
        dump_tasks_find(&d->found, process, p, d->waits.sleeping.stacks, target);
        explain(d, process);
    }
}

static void take(void *context, const struct profile *p)
{
    struct dump *d = context;
    struct dump_request *request = d->request;
    if (d->found.mode == NULL || p->threads.len == 0) {
        return;
    }
    if (request->form.json) {
        dump_json(&d->found, p, &request->out);
    } else {
        dump_text(&d->found, p, &request->form, &request->out);
    }
    vec_each(&d->found.threads, t)
    {
        request->any_stack |= t->node != 0;
    }
}

static bool end(void *context)
{
    (void)context;
    return false; /* no files */
}

struct whole_run_viewer dump_viewer(struct dump *d)
{
    return (struct whole_run_viewer){take, end, d};
}

const struct concern dump_concern = {
    .name = "dump",
    .while_suspended = true,
    .setup = setup,
    .round = round_of,
    .window_end = window_end,
    .due_ns = due_ns,
    .release = release,
};
