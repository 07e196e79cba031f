/* targets_ids: the rows of processes, threads and modules in the running profile, made at the first use in a window and
 * remembered for the rest of it. A thread is called as the system calls it, or as its process's runtime does where the
 * system knows the program's name only. */
#include "capture/follow/applications.h"
#include "capture/follow/targets_private.h"
#include "target/cgroup.h"

static void name_thread(struct targets *t, struct target_thread *thread, const struct target *target)
{
    if (thread->named) {
        return;
    }
    thread->named = true;
    targets_set_name(thread->name, str_of(target->name));
    if (thread->tid != thread->pid &&
        targets_text(t, thread->pid, thread->tid, "comm")) {
        targets_set_name(thread->name, str_trim(buf_slice(&t->text)));
    }
}

/* Only a thread that the system calls like its program: a name of its own is what others show, too. */
static bool may_be_told(const struct targets *t, const struct target *target, const struct target_thread *thread)
{
    return thread->tid != thread->pid && t->namer.name != NULL && strcmp(thread->name, target->name) == 0;
}

/* True when it was just told how the runtime calls it. */
static bool ask_runtime(struct targets *t, struct target *target, struct target_thread *thread)
{
    if (thread->told.len > 0 || thread->asked >= TARGET_NAME_TRIES || target->runtime.reader == NULL ||
        !may_be_told(t, target, thread)) {
        return false;
    }
    buf_clear(&t->text);
    if (t->namer.name(t->namer.context, target, thread, &t->text)) {
        thread->told = arena_copy(&t->told, buf_slice(&t->text));
    }
    return thread->told.len > 0;
}

static uint32_t shown_name(struct targets *t, struct profile *p, const struct target *target,
                           const struct target_thread *thread)
{
    return thread->told.len > 0 && may_be_told(t, target, thread) ? profile_string(p, thread->told)
                                                                   : profile_cstring(p, thread->name);
}

static uint32_t container_of(struct targets *t, struct profile *p, uint32_t pid)
{
    char id[CONTAINER_ID_MAX];
    if (!t->container_names || !targets_text(t, pid, 0, "cgroup") ||
        !cgroup_container_id(buf_slice(&t->text), id)) {
        return 0;
    }
    return profile_cstring(p, id);
}

uint32_t targets_process_id(struct targets *t, struct profile *p, struct target *target)
{
    if (target->window == t->window) {
        return target->process;
    }
    bool needed = profile_need(p, true); /* samples that have no room of their own have it here */
    targets_learn_start(t, target);
    struct process process = {
        .pid = target->pid,
        .start_ticks = target->start_ticks,
        .owner = target->owner,
        .name = profile_cstring(p, target->name),
        .container = container_of(t, p, target->pid),
        .appid = profile_string(p, str_of(applications_of(t, target))),
        .capture_mode = target->capture_mode,
    };
    target->process = profile_process(p, &process);
    target->window = t->window;
    (void)profile_need(p, needed);
    if (target->process != 0) {
        p->processes.at[target->process].name = process.name; /* an exec renames it */
        p->processes.at[target->process].appid = process.appid;
    }
    return target->process;
}

uint32_t targets_thread_id(struct targets *t, struct profile *p, struct target *target,
                           uint32_t tid)
{
    struct target_thread *thread = targets_thread(t, target->pid, tid);
    if (thread == NULL) {
        return 0;
    }
    bool is_new = thread->window != t->window;
    if (is_new) {
        name_thread(t, thread, target);
    }
    if (ask_runtime(t, target, thread) || is_new) {
        bool needed = profile_need(p, true);
        uint32_t process = targets_process_id(t, p, target);
        thread->thread = profile_thread(p, process, tid, shown_name(t, p, target, thread));
        (void)profile_need(p, needed);
        thread->window = t->window;
        target->threads_shown += is_new;
    }
    return thread->thread;
}

uint32_t targets_module_id(struct targets *t, struct profile *p, struct mapping *mapping)
{
    if (mapping->window != t->window) {
        bool needed = profile_need(p, true);
        images_need(t->images, mapping->image, t->window);
        struct module module = {
            .path = profile_string(p, images_path(t->images, mapping->image)),
            .start = mapping->start,
            .limit = mapping->limit,
            .file_offset = mapping->file_offset,
            .bias = mapping->bias,
            .image = mapping->image,
        };
        mapping->module = profile_module(p, &module);
        (void)profile_need(p, needed);
        mapping->window = t->window;
    }
    return mapping->module;
}
