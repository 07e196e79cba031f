/* The dump as people read it: a heading, deadlocks, then threads, those of one stack in one block; who runs first, then
 * who holds what others wait for, deadlocks, and the rest. On a terminal stacks are cut in their middle, and blocks at
 * the screen's end, so that it is one screen; the last line says what gives the rest. */
#include "base/time.h"
#include "base/utf8.h"
#include "capture/live/dump.h"
#include "capture/live/dump_frames.h"
#include "capture/live/dump_light.h"
#include "capture/live/dump_tasks.h"

#include <stdlib.h>

enum {
    FRAMES_SHOWN = 16, /* of a stack on a screen, … */
    FRAMES_LEAST = 3,
    NAMES_SHOWN = 6,   /* threads of a block */
    HEADING_ROWS = 4,
    BLOCK_ROWS = 2,    /* of each beside its frames */
};

enum class {
    CLASS_RUNS,
    CLASS_HOLDS,
    CLASS_DEADLOCK,
    CLASS_DISK,
    CLASS_STOPPED,
    CLASS_WAITS,
    CLASS_NATIVE,
    CLASS_UNKNOWN,
};

struct block {
    const struct dump_thread *first;
    size_t count;   /* of its threads */
    uint8_t class;
    bool same_wait; /* all wait for the very same */
};

struct text {
    const struct dump_found *found;
    const struct profile *p;
    const struct dump_form *form;
    struct buf *out;
    const struct dump_process *process;
    const struct dump_thread *threads; /* of it */
    VEC(struct block) blocks;
    VEC(uint32_t) block_of; /* by thread */
    struct dump_frames frames;
    size_t frames_most, rows_left;
    size_t native; /* frames left out of the stack at hand, */
    size_t hidden; /* and blocks that did not fit */
};

static struct str label(const struct text *t, const struct dump_thread *thread, enum profile_label which)
{
    return thread->thread == 0 ? STR("") : profile_text(t->p, t->p->threads.at[thread->thread].label[which]);
}

static struct str name_of(const struct text *t, const struct dump_thread *thread)
{
    return thread->thread == 0 ? STR("") : profile_text(t->p, t->p->threads.at[thread->thread].name);
}

/* What foreign programs call things may hold anything. */
static void add_name(struct buf *out, struct str name)
{
    while (name.len > 0) {
        uint32_t c = utf8_take(&name);
        utf8_put(out, c < 0x20 || (c >= 0x7f && c < 0xa0) || (c >= 0x2028 && c <= 0x202e) ? '?' : c);
    }
}

static void end_line(struct text *t)
{
    buf_byte(t->out, '\n');
    t->rows_left -= t->rows_left > 0;
}

/* ---- blocks ---- */

static bool is_waited_for(const struct text *t, const struct dump_thread *thread)
{
    uint32_t place = (uint32_t)(thread - t->threads) + 1;
    for (size_t i = 0; i < t->process->count; i++) {
        if (t->threads[i].holder == place) {
            return true;
        }
    }
    return false;
}

/* Threads of the program come before those that its runtime has for itself. */
static bool has_runtime(const struct profile *p, uint32_t node)
{
    for (; node != 0; node = p->nodes.at[node].parent) {
        uint8_t kind = p->frames.at[p->nodes.at[node].frame].kind;
        if (kind != FRAME_NATIVE && kind != FRAME_KERNEL) {
            return true;
        }
    }
    return false;
}

static uint8_t class_of(const struct text *t, const struct dump_thread *thread)
{
    if (thread->circle != 0) {
        return CLASS_DEADLOCK;
    }
    if (thread->state == 'R') {
        return CLASS_RUNS;
    }
    if (is_waited_for(t, thread) || str_eq(label(t, thread, PROFILE_LABEL_GIL), STR("held"))) {
        return CLASS_HOLDS;
    }
    return thread->state == 'D'                          ? CLASS_DISK
           : thread->state == 'T' || thread->state == 't' ? CLASS_STOPPED
           : thread->node == 0                            ? CLASS_UNKNOWN
           : thread->tid == thread->pid || has_runtime(t->p, thread->node) ? CLASS_WAITS
                                                                           : CLASS_NATIVE;
}

static bool fits(const struct text *t, const struct block *block, const struct dump_thread *thread, uint8_t class)
{
    const struct dump_thread *a = block->first;
    return block->class == class && a->node == thread->node && a->state == thread->state && a->circle == 0 &&
           thread->circle == 0 && a->holder == thread->holder && class != CLASS_HOLDS &&
           str_eq(label(t, a, PROFILE_LABEL_TASK), label(t, thread, PROFILE_LABEL_TASK));
}

static void put_into_block(struct text *t, const struct dump_thread *thread)
{
    uint8_t class = class_of(t, thread);
    uint32_t *of = vec_push(&t->block_of);
    size_t i = 0;
    while (i < t->blocks.len && !fits(t, &t->blocks.at[i], thread, class)) {
        i++;
    }
    struct block *block = i < t->blocks.len ? &t->blocks.at[i] : vec_push(&t->blocks);
    if (block == NULL || of == NULL) {
        return;
    }
    if (block->count++ == 0) {
        *block = (struct block){thread, 1, class, true};
    }
    block->same_wait = block->same_wait && strcmp(block->first->wait, thread->wait) == 0;
    *of = (uint32_t)i;
}

/* ---- lines ---- */

static void add_thread(struct text *t, const struct dump_thread *thread)
{
    struct str name = name_of(t, thread);
    buf_printf(t->out, "%u", thread->tid);
    if (name.len > 0) {
        buf_text(t->out, " (");
        add_name(t->out, name);
        buf_byte(t->out, ')');
    }
}

static void add_wait(struct text *t, const struct block *block)
{
    const struct dump_thread *thread = block->first;
    struct str wait = str_of(thread->wait);
    buf_text(t->out, dump_state(thread->state));
    if (wait.len > 0) {
        buf_text(t->out, ", waits: ");
        add_name(t->out, block->same_wait ? wait : str_trim(str_sub(wait, 0, strcspn(thread->wait, "0,"))));
    }
    if (thread->holder != 0) {
        buf_text(t->out, strcmp(thread->wait, "end of a thread") == 0 ? ": " : ", held by ");
        add_thread(t, &t->threads[thread->holder - 1]);
    }
    if (str_eq(label(t, thread, PROFILE_LABEL_GIL), STR("held"))) {
        buf_text(t->out, ", holds the GIL");
    }
    struct str task = label(t, thread, PROFILE_LABEL_TASK);
    if (task.len > 0) {
        buf_text(t->out, ", task ");
        add_name(t->out, task);
    }
}

static void add_block_head(struct text *t, const struct block *block, uint32_t number)
{
    size_t most = t->form->rows == 0 ? block->count : NAMES_SHOWN, shown = 0;
    if (block->count > 1) {
        buf_printf(t->out, "%zu threads, ", block->count);
    } else {
        buf_text(t->out, "Thread ");
        add_thread(t, block->first);
        buf_text(t->out, ": ");
    }
    add_wait(t, block);
    for (size_t i = 0; block->count > 1 && i < t->block_of.len; i++) {
        if (t->block_of.at[i] == number && shown++ < most) {
            buf_text(t->out, shown == 1 ? ": " : ", ");
            add_thread(t, &t->threads[i]);
        }
    }
    if (shown > most) {
        buf_printf(t->out, " and %zu more", shown - most);
    }
    end_line(t);
}

static void add_frame(struct text *t, const struct dump_frame *frame)
{
    buf_text(t->out, "    ");
    add_name(t->out, frame->function);
    struct str place = frame->file.len > 0 ? frame->file : frame->module;
    if (place.len > 0 && (frame->file.len > 0 || frame->kind == FRAME_NATIVE)) {
        buf_text(t->out, " (");
        add_name(t->out, place);
        if (frame->file.len > 0 && frame->line != 0) {
            buf_printf(t->out, ":%u", frame->line);
        }
        buf_byte(t->out, ')');
    }
    end_line(t);
}

/* The root is of less interest than where it stands. */
static void add_frames(struct text *t)
{
    size_t count = t->frames.all.len, most = t->frames_most;
    size_t below = most / 3, above = most - below;
    for (size_t i = 0; i < count; i++) {
        if (count > most + 1 && i == above) {
            buf_printf(t->out, "    ... %zu more", count - most);
            end_line(t);
            i = count - below;
        }
        if (i < count) {
            add_frame(t, &t->frames.all.at[i]);
        }
    }
    if (t->native > 0) {
        buf_printf(t->out, "    ... and %zu native", t->native);
        end_line(t);
    }
}

/* Where there is one screen, a runtime's functions tell more than what runs them. */
static void hide_native(struct text *t)
{
    size_t kept = 0;
    vec_each(&t->frames.all, frame)
    {
        if (frame->kind != FRAME_NATIVE && frame->kind != FRAME_KERNEL) {
            t->frames.all.at[kept++] = *frame;
        }
    }
    t->native = kept > 0 ? t->frames.all.len - kept : 0;
    t->frames.all.len -= t->native;
}

/* False: there is no room for it on the screen. */
static bool begin_block(struct text *t, uint32_t node)
{
    dump_frames(t->p, node, &t->frames);
    t->native = 0;
    if (t->form->rows != 0) {
        hide_native(t);
    }
    size_t rows = t->frames.all.len < t->frames_most ? t->frames.all.len : t->frames_most;
    if (t->form->rows != 0 && rows + BLOCK_ROWS + 1 > t->rows_left) {
        t->hidden++;
        return false;
    }
    end_line(t);
    return true;
}

static void add_block(struct text *t, const struct block *block)
{
    if (!begin_block(t, block->first->node)) {
        return;
    }
    add_block_head(t, block, (uint32_t)(block - t->blocks.at));
    add_frames(t);
    if (t->frames.all.len == 0) {
        buf_text(t->out, "    [no stack]");
        end_line(t);
    }
}

/* ---- light threads ---- */

/* As Go's own dump: without the runtime's functions that no program can call, where others are left. */
static void hide_runtime(struct dump_frames *frames)
{
    size_t kept = 0;
    vec_each(&frames->all, frame)
    {
        struct str name = frame->function;
        bool is_hidden = str_starts(name, STR("runtime.")) && name.len > 8 && name.ptr[8] >= 'a' && name.ptr[8] <= 'z';
        if (!is_hidden) {
            frames->all.at[kept++] = *frame;
        }
    }
    frames->all.len = kept > 0 ? kept : frames->all.len;
}

static void add_light(struct text *t, const struct profile *p, const struct dump_light *light)
{
    uint64_t seconds = light->waited_ns / light->count / NS_PER_S;
    dump_frames(p, light->node, &t->frames);
    hide_runtime(&t->frames);
    t->native = 0;
    size_t rows = t->frames.all.len < t->frames_most ? t->frames.all.len : t->frames_most;
    if (t->form->rows != 0 && rows + BLOCK_ROWS + 1 > t->rows_left) {
        t->hidden++;
        return;
    }
    end_line(t);
    buf_printf(t->out, "%llu goroutine%s, ", (unsigned long long)light->count, light->count == 1 ? "" : "s");
    add_name(t->out, light->state);
    if (seconds > 0) {
        buf_printf(t->out, ", for %llu s", (unsigned long long)seconds);
    }
    end_line(t);
    add_frames(t);
}

static void add_lights(struct text *t)
{
    struct dump_lights lights;
    if (dump_lights_read(&lights, &t->p->of_runtimes, t->process->pid)) {
        vec_each(&lights.all, light)
        {
            add_light(t, &lights.profile, light);
        }
    }
    dump_lights_release(&lights);
}

/* ---- tasks ---- */

static void add_task_head(struct text *t, const struct dump_task *first, size_t count)
{
    const struct dump_task *by = dump_tasks_awaits(t->found, t->process, first);
    size_t most = t->form->rows == 0 ? count : NAMES_SHOWN, shown = 0;
    if (count > 1) {
        buf_printf(t->out, "%zu tasks, wait", count);
    } else {
        buf_text(t->out, "Task ");
        add_name(t->out, str_of(first->name));
        buf_text(t->out, ": waits");
    }
    if (by != NULL) {
        buf_text(t->out, ", awaited by ");
        add_name(t->out, str_of(by->name));
    }
    if (first->thread != 0) {
        buf_text(t->out, ", thread ");
        add_thread(t, &t->threads[first->thread - 1]);
    }
    for (const struct dump_task *at = first; count > 1 && shown < count && shown < most; at++) {
        if (dump_tasks_alike(first, at)) {
            buf_text(t->out, shown++ == 0 ? ": " : ", ");
            add_name(t->out, str_of(at->name));
        }
    }
    if (count > 1 && shown < count) {
        buf_printf(t->out, " and %zu more", count - shown);
    }
    end_line(t);
}

static void add_tasks(struct text *t)
{
    struct dump_task *tasks = t->found->tasks.at + t->process->first_task, *end = tasks + t->process->tasks;
    for (struct dump_task *first = tasks; first < end; first++) {
        size_t count = dump_tasks_show(first, (size_t)(end - first));
        if (count > 0 && begin_block(t, first->node)) {
            add_task_head(t, first, count);
            add_frames(t);
        }
    }
    if (t->process->tasks_changed > 0) {
        buf_printf(t->out, "\n%zu tasks changed while they were read, and are left out\n", t->process->tasks_changed);
    }
    if (t->process->tasks + t->process->tasks_changed >= RUNTIME_TASKS_MAX) {
        buf_printf(t->out, "\nNo more than %u tasks are read\n", RUNTIME_TASKS_MAX);
    }
}

/* ---- a process ---- */

static void add_heading(struct text *t)
{
    const struct dump_process *process = t->process;
    char when[TIME_TEXT_MAX];
    struct str runtime = profile_text(t->p, t->p->processes.at[process->process].runtime);
    size_t len = strlen(process->command);
    buf_printf(t->out, "Process %u: ", process->pid);
    add_name(t->out, (struct str){process->command, len < 100 || t->form->rows == 0 ? len : 100});
    end_line(t);
    time_rfc3339(t->found->wall_ns, when);
    if (runtime.len > 0) {
        add_name(t->out, runtime);
        buf_text(t->out, ", ");
    }
    buf_printf(t->out, "%zu thread%s, %s, %s", process->count, process->count == 1 ? "" : "s", when, t->found->mode);
    end_line(t);
    struct str why = str_of(process->why);
    why = why.len > 0 ? why : profile_text(t->p, t->p->processes.at[process->process].remedy);
    if (why.len > 0) {
        buf_text(t->out, "Stacks are missing: ");
        add_name(t->out, why);
        end_line(t);
    }
}

static void add_deadlock(struct text *t, uint32_t number)
{
    const struct dump_thread *first = NULL;
    size_t count = 0;
    for (size_t i = 0; i < t->process->count; i++) {
        if (t->threads[i].circle == number) {
            first = first == NULL ? &t->threads[i] : first;
            count++;
        }
    }
    if (first == NULL) {
        return;
    }
    end_line(t);
    buf_printf(t->out, "Deadlock of %zu threads, each waits for what the next one holds: ", count);
    const struct dump_thread *at = first;
    for (size_t i = 0; i <= count; i++) {
        buf_text(t->out, i == 0 ? "" : " -> ");
        add_thread(t, at);
        at = &t->threads[at->holder - 1];
    }
    end_line(t);
}

static void choose_frames(struct text *t)
{
    size_t rows = t->form->rows;
    t->frames_most = SIZE_MAX - 1;
    if (rows == 0 || t->form->all_frames) {
        return;
    }
    size_t blocks = t->blocks.len > 0 ? t->blocks.len : 1;
    size_t room = rows > HEADING_ROWS ? (rows - HEADING_ROWS) / blocks : 0;
    size_t most = room > BLOCK_ROWS + FRAMES_LEAST + 1 ? room - BLOCK_ROWS - 1 : FRAMES_LEAST;
    t->frames_most = most < FRAMES_SHOWN ? most : FRAMES_SHOWN;
}

static void add_process(struct text *t)
{
    vec_clear(&t->blocks);
    vec_clear(&t->block_of);
    for (size_t i = 0; i < t->process->count; i++) {
        put_into_block(t, &t->threads[i]);
    }
    choose_frames(t);
    t->rows_left = t->form->rows > 1 ? t->form->rows - 1 : 1;
    t->hidden = 0;
    add_heading(t);
    for (uint32_t number = 1; number <= t->found->circles; number++) {
        add_deadlock(t, number);
    }
    add_lights(t);
    for (uint8_t class = 0; class <= CLASS_UNKNOWN; class++) {
        vec_each(&t->blocks, block)
        {
            if (block->class == class) {
                add_block(t, block);
            }
        }
    }
    add_tasks(t);
    if (t->hidden > 0) {
        buf_printf(t->out, "... %zu more stacks; --all-frames shows everything\n", t->hidden);
    }
}

void dump_text(const struct dump_found *found, const struct profile *p, const struct dump_form *form, struct buf *out)
{
    struct dump_form used = *form;
    used.rows = form->all_frames ? 0 : form->rows;
    struct text t = {.found = found, .p = p, .form = &used, .out = out};
    vec_each(&found->processes, process)
    {
        t.process = process;
        t.threads = found->threads.at + process->first;
        buf_text(out, out->len > 0 ? "\n" : "");
        add_process(&t);
    }
    vec_release(&t.blocks);
    vec_release(&t.block_of);
    vec_release(&t.frames.all);
}
