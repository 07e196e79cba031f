#include "capture/live/dump_tasks.h"

#include <stdlib.h>

struct taking {
    struct dump_found *found;
    const struct dump_process *process;
    struct profile *p;
    struct stacks *stacks;
    const struct reader *reader;
    struct target *target;
    struct caught *caught;
};

static uint32_t place_of(const struct taking *t, uint32_t inner)
{
    const struct dump_thread *threads = t->found->threads.at + t->process->first;
    uint32_t place = 0;
    for (size_t i = 0; i < t->process->count; i++) {
        place = threads[i].inner == inner ? (uint32_t)i + 1 : place;
    }
    return place;
}

static void take(void *context, const struct runtime_task *task)
{
    struct taking *t = context;
    const struct runtime_stack *stack = &task->stack;
    struct dump_task *to = vec_push(&t->found->tasks);
    if (to == NULL) {
        return;
    }
    *to = (struct dump_task){.id = task->id, .awaited_by = task->awaited_by, .thread = place_of(t, task->tid)};
    size_t len = stack->task_bytes < sizeof to->name ? stack->task_bytes : sizeof to->name - 1;
    memcpy(to->name, stack->task, len);
    *t->caught = (struct caught){
        .frame_count = stack->count, .serial = t->reader->serial, .pid = t->target->pid, .end = RUNTIME_COMPLETE};
    memcpy(t->caught->frame, stack->frame, stack->count * sizeof stack->frame[0]);
    to->node = stack->count == 0 ? 0 : stacks_node(t->stacks, t->p, t->target, t->caught);
}

void dump_tasks_find(struct dump_found *found, struct dump_process *process, struct profile *p, struct stacks *stacks,
                     struct target *target)
{
    struct taking t = {found, process, p, stacks, target == NULL ? NULL : target->runtime.reader, target, NULL};
    process->first_task = found->tasks.len;
    t.caught = malloc(sizeof *t.caught + RUNTIME_FRAMES_MAX * sizeof t.caught->frame[0]);
    for (; t.caught != NULL && t.reader != NULL; t.reader = t.reader->next) {
        const struct runtime *runtime = t.reader->runtime;
        if (runtime != NULL && runtime->tasks != NULL) {
            struct remote_caller caller = {.remote = &t.reader->remote};
            struct memory_batch memory = remote_batch(&caller);
            process->tasks_changed += runtime->tasks(t.reader->state, &memory, take, &t);
        }
    }
    process->tasks = found->tasks.len - process->first_task;
    free(t.caught);
}

const struct dump_task *dump_tasks_awaits(const struct dump_found *found, const struct dump_process *process,
                                          const struct dump_task *task)
{
    const struct dump_task *tasks = found->tasks.at + process->first_task;
    for (size_t i = 0; task->awaited_by != 0 && i < process->tasks; i++) {
        if (tasks[i].id == task->awaited_by) {
            return &tasks[i];
        }
    }
    return NULL;
}

bool dump_tasks_alike(const struct dump_task *a, const struct dump_task *b)
{
    return a->node == b->node && a->thread == b->thread && a->awaited_by == b->awaited_by;
}

size_t dump_tasks_show(struct dump_task *first, size_t count)
{
    size_t alike = 0;
    for (size_t i = 0; !first->is_shown && i < count; i++) {
        if (dump_tasks_alike(first, &first[i])) {
            alike++;
            first[i].is_shown = i > 0 || first[i].is_shown;
        }
    }
    return alike;
}
