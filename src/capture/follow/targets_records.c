/* targets_records: what perf's records say of processes: FORK, COMM, EXIT and MMAP2, in the order of their time. A
 * child is what its parent is (name, mappings, capture mode, whether it is excluded) until it calls exec, which makes
 * all of that new. */
#include "capture/follow/applications.h"
#include "capture/follow/targets_private.h"
#include "base/time.h"

#include <string.h>

enum { AGAIN_MS = 10 }; /* in which no id is given to another: two records of one start are this close */

static void inherit_maps(struct target *child, struct target *parent)
{
    vec_clear(&child->maps);
    vec_each(&parent->maps, mapping)
    {
        struct mapping *copy = vec_push(&child->maps);
        if (copy != NULL) {
            *copy = *mapping;
        }
    }
    child->reread.has_all = parent->reread.has_all;
    child->generated = IMAGE_NONE; /* what it generates from now on is its own */
}

/* It is what its parent is, until it calls exec. */
static void inherit_answer(const struct targets *t, struct target *child,
                           const struct target *parent)
{
    child->filter.evaluated = parent->filter.evaluated;
    child->filter.excluded = parent->filter.excluded;
    child->filter.of_age_ns = t->min_duration_ns > 0 ? child->began_ns + t->min_duration_ns : 0;
    child->filter.skipped = targets_is_excluded(child, child->began_ns);
}

/* Where a process's events are opened anew, there are two of each for a moment, and both tell of what begins then. */
static bool is_told_again(uint64_t began_ns, uint64_t time_ns)
{
    return began_ns != 0 && time_ns - began_ns < AGAIN_MS * NS_PER_MS;
}

static bool process_is_told_again(struct targets *t, uint32_t pid, uint32_t parent_pid, uint64_t time_ns)
{
    const struct target *known = targets_find(t, pid);
    return known != NULL && known->alive > 0 && known->forked_by == parent_pid &&
           is_told_again(known->began_ns, time_ns);
}

static void note_child_began(struct target *parent, uint64_t time_ns)
{
    parent->account.waited.begun++;
    if (parent->account.waited.children++ == 0) {
        parent->account.waited.since_ns = time_ns;
    }
}

static void note_child_ended(struct target *parent, uint64_t time_ns)
{
    struct target_waited *waited = &parent->account.waited;
    if (!parent->ended && waited->children > 0 && --waited->children == 0 && time_ns > waited->since_ns) {
        waited->ns += time_ns - waited->since_ns;
    }
}

void targets_fork(struct targets *t, uint32_t pid, uint32_t tid, uint32_t parent_pid,
                  uint32_t parent_tid, uint64_t time_ns)
{
    struct target_thread *parent_thread = targets_find_thread(t, parent_tid);
    char name[COMM_MAX] = "";
    if (parent_thread != NULL && parent_thread->named) {
        memcpy(name, parent_thread->name, COMM_MAX);
    }
    if (pid != parent_pid) {
        if (process_is_told_again(t, pid, parent_pid, time_ns)) {
            return;
        }
        struct target *parent = targets_find(t, parent_pid);
        struct target *child = targets_fresh(t, pid);
        if (child == NULL) {
            return;
        }
        child->began_ns = time_ns;
        child->alive = 1;
        child->parent_pid = child->forked_by = parent_pid;
        if (parent != NULL) {
            note_child_began(parent, time_ns);
            memcpy(child->name, name[0] != '\0' ? name : parent->name, COMM_MAX);
            child->capture_mode = parent->capture_mode;
            child->tree = parent->tree;
            child->copy.bytes = parent->copy.bytes; /* with the events it inherited */
            child->runtime.caught = parent->runtime.caught;
            child->runtime.deep = parent->runtime.deep;
            child->runtime.gaps = parent->runtime.gaps;
            inherit_maps(child, parent);
            applications_inherit(child, parent);
            inherit_answer(t, child, parent);
        } else {
            targets_name_from_proc(t, child);
        }
        memcpy(name, child->name, COMM_MAX);
    }
    struct target *target = targets_find(t, pid);
    struct target_thread *thread = targets_thread(t, pid, tid);
    bool again = thread != NULL && is_told_again(thread->born_ns, time_ns);
    if (thread != NULL) {
        *thread = (struct target_thread){.tid = tid, .pid = pid, .born_ns = time_ns};
        thread->named = name[0] != '\0';
        memcpy(thread->name, name, COMM_MAX);
    }
    if (target != NULL && !again) {
        target->threads_seen++;
        target->alive += target->alive > 0 && pid == parent_pid;
    }
}

void targets_comm(struct targets *t, uint32_t pid, uint32_t tid, struct str name, bool exec)
{
    struct target *target = targets_get(t, pid);
    struct target_thread *thread = targets_thread(t, pid, tid);
    if (target == NULL || thread == NULL) {
        return;
    }
    targets_set_name(thread->name, name);
    thread->named = true;
    thread->window = 0;    /* a renamed thread is a new row */
    if (pid == tid || exec) {
        targets_set_name(target->name, name);
        target->window = 0;
    }
    if (exec) {
        vec_clear(&target->maps);
        applications_forget(target);
        t->unmapped++;
        target->space = target->program = ++t->spaces;
        target->generated = IMAGE_NONE;
        target->reread.has_all = true; /* every later mapping has its record */
        target->alive = target->alive > 0; /* exec ends all other threads */
    }
}

void targets_exit(struct targets *t, uint32_t pid, uint32_t tid, uint64_t time_ns)
{
    struct target_thread *thread = targets_find_thread(t, tid);
    bool known = thread != NULL && thread->pid == pid;
    bool counted = known && (thread->born_ns != 0 || tid == pid); /* else this is told again, or its start was not */
    if (known) {
        targets_drop_thread(t, (size_t)(thread - t->threads.at)); /* no sample comes after its end */
    }
    struct target *target = targets_find(t, pid);
    if (target == NULL) {
        return;
    }
    target->ended_ns = time_ns; /* the last thread's counts */
    target->threads_ended++;
    if (counted && target->alive > 0 && --target->alive == 0) {
        targets_end(t, target);
        struct target *parent = targets_find(t, target->forked_by);
        if (parent != NULL) {
            note_child_ended(parent, time_ns);
        }
    }
}

static void take_mapping(struct targets *t, const struct record *record)
{
    struct target *target = targets_get(t, record->pid);
    if (target != NULL && record->as.mmap.executable) {
        targets_map(t, target,
                    &(struct mapped_file){record->as.mmap.start,
                                          record->as.mmap.start + record->as.mmap.bytes,
                                          record->as.mmap.file_offset, record->as.mmap.inode,
                                          record->as.mmap.major, record->as.mmap.minor,
                                          record->as.mmap.path, 0});
    }
}

void targets_take(struct targets *t, const struct record *record)
{
    switch (record->kind) {
    case RECORD_MMAP:
        take_mapping(t, record);
        break;
    case RECORD_COMM:
        targets_comm(t, record->pid, record->tid, record->as.comm.name, record->as.comm.exec);
        break;
    case RECORD_FORK:
        targets_fork(t, record->pid, record->tid, record->as.fork.parent_pid,
                     record->as.fork.parent_tid, record->time_ns);
        break;
    case RECORD_EXIT:
        targets_exit(t, record->pid, record->tid, record->time_ns);
        break;
    default:
        break;
    }
}
