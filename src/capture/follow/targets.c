/* targets: the table of processes and threads. Who is in it, under which pid and name, who is set aside because it
 * ended, and who is dropped. What records say, mappings and the ids in a profile are the other files'
 * (targets_private.h). */
#include "capture/follow/applications.h"
#include "capture/follow/targets_private.h"
#include "base/time.h"
#include "os/clock.h"
#include "os/proc.h"
#include "target/stat.h"

#include <stdlib.h>

enum {
    TOLD_MAX_BYTES = 1 << 20, /* of names of threads; half of it at the end of a window, and they are asked for anew */
    PROC_TEXT_MAX = 32 * 1024 * 1024, /* maps of a process with 65,530 mappings is about 6 MB */
    GENERATIONS_MAX = 64,
    START_LATE_NS = 100000, /* the two clocks are not read at one moment */
};

/* Replaces t->text by a text of /proc. */
bool targets_text(struct targets *t, uint32_t pid, uint32_t tid, const char *name)
{
    const struct world *world = t->images->world;
    return world->text(world->context, pid, tid, name, &t->text, NULL);
}

void targets_init(struct targets *t, struct images *images, bool container_names)
{
    *t = (struct targets){.images = images, .window = 1, .container_names = container_names};
    buf_init(&t->text, PROC_TEXT_MAX);
    buf_init(&t->path, PROC_TEXT_MAX);
    arena_init(&t->told, TOLD_MAX_BYTES);
}

static void free_target(struct target *target)
{
    vec_release(&target->maps);
    applications_forget(target);
    free(target);
}

void targets_release(struct targets *t)
{
    targets_recall(t);
    vec_each(&t->all, target)
    {
        free_target(*target);
    }
    vec_release(&t->all);
    vec_release(&t->aside);
    vec_release(&t->threads);
    map_release(&t->by_pid);
    map_release(&t->gone);
    map_release(&t->by_tid);
    buf_release(&t->text);
    buf_release(&t->path);
    arena_release(&t->told);
}

static struct target *target_of(const struct map_slot *slot)
{
    return (struct target *)(uintptr_t)slot->value;
}

static void drop_target(struct targets *t, struct target *target)
{
    struct map_slot *slot = map_find(&t->by_pid, target->pid);
    if (slot != NULL && target_of(slot) == target) {
        map_remove(&t->by_pid, slot);
    }
    t->unmapped++;
    free_target(target);
}

void targets_drop_thread(struct targets *t, size_t index)
{
    struct map_slot *slot = map_find(&t->by_tid, t->threads.at[index].tid);
    if (slot != NULL && slot->value == index) {
        map_remove(&t->by_tid, slot);
    }
    vec_swap_out(&t->threads, index);
    if (index < t->threads.len) {
        slot = map_find(&t->by_tid, t->threads.at[index].tid);
        if (slot != NULL && slot->value == t->threads.len) {
            slot->value = index;
        }
    }
}

/* Their order stays: the times of parents are read before their children's. */
void targets_set_aside(struct targets *t)
{
    size_t kept = 0;
    for (size_t i = 0; i < t->all.len; i++) {
        struct target *target = t->all.at[i];
        struct target **place = target->ended ? vec_push(&t->aside) : NULL;
        if (place != NULL) {
            *place = target;
        } else {
            t->all.at[kept++] = target;
        }
    }
    t->all.len = kept;
}

void targets_recall(struct targets *t)
{
    for (; t->aside.len > 0; t->aside.len--) {
        struct target **place = vec_push(&t->all);
        if (place == NULL) {
            return; /* they are freed with the window */
        }
        *place = t->aside.at[t->aside.len - 1];
    }
}

/* What stood before a process that was dropped. */
static uint64_t ancestry_of(const struct target *target)
{
    return (uint64_t)target->forked_by << 32 | target->parent_pid;
}

/* The nearest one that is left: chains of dropped ones are followed. */
static uint32_t before_gone(const struct map *gone, uint32_t pid, unsigned shift)
{
    const struct map_slot *slot = map_find(gone, pid);
    for (unsigned i = 0; slot != NULL && i < GENERATIONS_MAX; i++) {
        pid = (uint32_t)(slot->value >> shift);
        slot = map_find(gone, pid);
    }
    return pid;
}

void targets_drop(struct targets *t, bool (*is_done)(void *context, struct target *target),
                  void *context)
{
    map_clear(&t->gone);
    for (size_t i = 0; i < t->aside.len;) {
        struct target *target = t->aside.at[i];
        if (!is_done(context, target)) {
            i++;
            continue;
        }
        if (targets_find(t, target->pid) == target) { /* else its pid is another's now */
            (void)map_put(&t->gone, target->pid, ancestry_of(target));
        }
        drop_target(t, target);
        vec_swap_out(&t->aside, i);
    }
    for (size_t i = 0; t->gone.len > 0 && i < t->all.len; i++) {
        struct target *target = t->all.at[i];
        target->forked_by = before_gone(&t->gone, target->forked_by, 32);
        target->parent_pid = before_gone(&t->gone, target->parent_pid, 0);
    }
}

static bool is_any(void *context, struct target *target)
{
    (void)context;
    (void)target;
    return true;
}

/* No record tells of the end of a thread whose time is read from /proc. */
static bool has_left(struct targets *t, const struct target_thread *thread)
{
    const struct target *target = targets_find(t, thread->pid);
    if (target == NULL) {
        return true;
    }
    bool polled = target->capture_mode == CAPTURE_PROC || target->capture_mode == CAPTURE_RUNTIME;
    return polled && thread->window != t->window && !proc_thread_exists(thread->pid, thread->tid);
}

void targets_set_mode(struct targets *t, struct target *target, enum capture_mode mode)
{
    target->capture_mode = (uint8_t)mode;
    t->any_on_proc = t->any_on_proc || mode == CAPTURE_PROC || mode == CAPTURE_RUNTIME;
}

/* Names of threads that have ended are among them. */
static void forget_told(struct targets *t)
{
    arena_clear(&t->told);
    vec_each(&t->threads, thread)
    {
        thread->told = STR("");
        thread->asked = 0;
    }
}

void targets_end_window(struct targets *t)
{
    targets_set_aside(t);
    targets_drop(t, is_any, NULL);
    vec_each(&t->all, slot)
    {
        struct target *target = *slot;
        target->account.sampled_ns = target->account.attributed_ns = target->account.since_read_ns = 0;
        target->account.settled_ns = target->account.renamed_ns = 0;
        target->filter.excluded_ns = target->bursts.samples = 0;
        target->threads_shown = 0;
    }
    for (size_t i = 0; i < t->threads.len;) {
        if (has_left(t, &t->threads.at[i])) {
            targets_drop_thread(t, i);
        } else {
            i++;
        }
    }
    if (t->told.used_bytes > TOLD_MAX_BYTES / 2) {
        forget_told(t);
    }
    t->window++;
}

struct target *targets_find(struct targets *t, uint32_t pid)
{
    struct map_slot *slot = map_find(&t->by_pid, pid);
    return slot == NULL ? NULL : target_of(slot);
}

/* The kernel notes the start just before it writes the record. Its clock goes on while the machine sleeps, and the
 * records' does not. */
bool targets_may_be(const struct target *target, uint64_t start_ticks)
{
    if (target->start_ticks != 0 || target->began_ns == 0) {
        return target->start_ticks == 0 || target->start_ticks == start_ticks;
    }
    uint64_t boot_ns = clock_boot_ns(), mono_ns = clock_mono_ns();
    uint64_t ahead_ns = boot_ns > mono_ns ? boot_ns - mono_ns : 0;
    return start_ticks <= (target->began_ns + ahead_ns + START_LATE_NS) / proc_tick_ns();
}

/* A pid that is younger than the process it started is another's now. */
struct target *targets_source(struct targets *t, const struct target *target)
{
    struct target *source = target->forked_by == 0 ? NULL : targets_find(t, target->forked_by);
    return source == NULL || source->began_ns > target->began_ns ? NULL : source;
}

void targets_set_name(char name[static COMM_MAX], struct str text)
{
    size_t len = text.len < COMM_MAX - 1 ? text.len : COMM_MAX - 1;
    if (len > 0) {
        memcpy(name, text.ptr, len);
    }
    name[len] = '\0';
}

/* Its pid may have been another's, whose first thread had the same id. */
static void forget_first_thread(struct targets *t, uint32_t pid)
{
    struct map_slot *slot = map_find(&t->by_tid, pid);
    if (slot != NULL && t->threads.at[slot->value].pid == pid) {
        t->threads.at[slot->value] = (struct target_thread){.tid = pid, .pid = pid};
    }
}

static struct target *make_target(struct targets *t, uint32_t pid)
{
    struct target *target = calloc(1, sizeof *target);
    struct target **place = target == NULL ? NULL : vec_push(&t->all);
    if (place == NULL || !map_put(&t->by_pid, pid, (uintptr_t)target)) {
        t->all.len -= place != NULL;
        free(target);
        return NULL;
    }
    *place = target;
    forget_first_thread(t, pid);
    target->pid = pid;
    target->space = ++t->spaces;
    target->tree = ++t->trees;
    target->copy.bytes = t->stack_bytes;
    target->reread.wait_ns = MAPS_WAIT_FIRST_MS * NS_PER_MS;
    return target;
}

void targets_name_from_proc(struct targets *t, struct target *target)
{
    struct str name = {NULL, 0};
    if (targets_text(t, target->pid, 0, "comm")) {
        name = str_trim(buf_slice(&t->text));
    }
    if (name.len > 0) { /* a zombie may have none any more */
        targets_set_name(target->name, name);
    }
    if (target->name[0] == '\0') {
        targets_set_name(target->name, STR("[unknown]"));
    }
}

struct target *targets_get(struct targets *t, uint32_t pid)
{
    struct target *target = targets_find(t, pid);
    if (target == NULL) {
        target = make_target(t, pid);
        if (target != NULL) {
            targets_name_from_proc(t, target);
        }
    }
    return target;
}

struct target_thread *targets_find_thread(struct targets *t, uint32_t tid)
{
    struct map_slot *slot = map_find(&t->by_tid, tid);
    return slot == NULL ? NULL : &t->threads.at[slot->value];
}

struct target_thread *targets_thread(struct targets *t, uint32_t pid, uint32_t tid)
{
    struct target_thread *thread = targets_find_thread(t, tid);
    if (thread != NULL && thread->pid == pid) {
        return thread;
    }
    if (thread == NULL) {
        thread = vec_push(&t->threads);
        if (thread == NULL || !map_put(&t->by_tid, tid, t->threads.len - 1)) {
            t->threads.len -= thread != NULL;
            return NULL;
        }
    }
    *thread = (struct target_thread){.tid = tid, .pid = pid};
    return thread;
}

/* Its last thread has ended: only what accounting needs is kept. */
void targets_end(struct targets *t, struct target *target)
{
    target->ended = true;
    t->unmapped++;
    vec_release(&target->maps);
}

/* The next owner of a pid may have threads of the same ids, and has one at least. */
static void forget_threads(struct targets *t, uint32_t pid)
{
    vec_each(&t->threads, thread)
    {
        if (thread->pid == pid) {
            *thread = (struct target_thread){.tid = thread->tid, .pid = pid};
        }
    }
}

/* A pid that comes again is another process: the old one's samples of this window keep their rows
 * in the profile, which are told apart by the start time. */
struct target *targets_fresh(struct targets *t, uint32_t pid)
{
    struct target *old = targets_find(t, pid);
    uint32_t owner = old == NULL ? 0 : old->owner + 1;
    if (old != NULL) {
        targets_end(t, old);
        map_remove(&t->by_pid, map_find(&t->by_pid, pid));
        forget_threads(t, pid);
    }
    struct target *target = make_target(t, pid);
    if (target != NULL) {
        target->owner = owner;
    }
    return target;
}

struct target *targets_begin(struct targets *t, uint32_t pid)
{
    struct target *target = targets_find(t, pid);
    if (target == NULL || !target->ended) {
        return targets_get(t, pid);
    }
    target = targets_fresh(t, pid);
    if (target != NULL) {
        targets_name_from_proc(t, target);
    }
    return target;
}

void targets_rename(struct targets *t, struct target *target)
{
    char before[COMM_MAX];
    memcpy(before, target->name, COMM_MAX);
    targets_name_from_proc(t, target);
    struct target_thread *thread = targets_find_thread(t, target->pid);
    if (strcmp(before, target->name) != 0 && thread != NULL && thread->pid == target->pid) {
        thread->named = false;
        thread->window = target->window = 0;
    }
}

void targets_learn_start(struct targets *t, struct target *target)
{
    struct proc_stat stat;
    if (target->start_ticks == 0 && targets_text(t, target->pid, 0, "stat") &&
        stat_parse(buf_slice(&t->text), &stat, NULL) && targets_may_be(target, stat.start_ticks)) {
        target->start_ticks = stat.start_ticks;
    }
    if (target->start_ticks == 0) {
        /* gone already: the time of its fork tells it from another owner of the pid */
        target->start_ticks = target->began_ns / proc_tick_ns();
    }
}
