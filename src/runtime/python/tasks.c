/*
 * asyncio's tasks that wait, of every thread, from 3.14 on: each thread's state has a ring of them. A task's coroutine
 * has its frame within itself, and while it awaits another one that is the last value on the frame's stack (3.15: the
 * last but one), and so on inwards.
 *
 * The program runs on meanwhile. A ring is gathered at once, each link against its back link, so that it ends where it
 * began; each task is then read twice, and left out and counted when that is not the same. A task that runs is none
 * that waits: its stack is its thread's.
 *
 * Source: Modules/_asynciomodule.c, Objects/genobject.c, Include/internal/pycore_frame.h (enum _framestate), tags
 * v3.14.0, v3.15.0. Lists of threads that ended are not read: no loop runs their tasks.
 */
#include "base/vec.h"
#include "runtime/python/walk.h"

#include <stdlib.h>

enum {
    STATES_FROM_3_14 = 3, /* what was -3, -2, -1 there is from 3.15 on … */
    STATE_CREATED = 0,
    STATE_SUSPENDED = 1,
    STATE_AWAITS = 2,
    TRIES = 4,
    TYPES = 16,
    TYPE_NAME = 24, /* bytes */
    TASK_READ = 512,
    GENERATOR_READ = 256,
    BYTECODE_MAX = 1 << 26,
    READS_MAX = 500000, /* some 20 for a task; half a second */
};

enum kind { KIND_GENERATOR, KIND_WRAPS = 3, KIND_OTHER = 6 };

/* Those that have a frame, and those that have one of these. */
static const char type_names[KIND_OTHER][TYPE_NAME] = {
    "coroutine",         "generator",             "async_generator",
    "coroutine_wrapper", "async_generator_asend", "async_generator_athrow",
};

struct tasks {
    const struct python *python;
    const struct python_layout *l;
    struct memory_batch *memory;
    uint16_t link[4];       /* by enum python_task_link */
    uint32_t name_at, running_at;
    VEC(uint64_t) found;    /* of one thread */
    size_t left;            /* that may be found */
    size_t reads;
    uint64_t type[TYPES];   /* last ones met, */
    uint8_t kind[TYPES];    /* and what they are */
    struct runtime_task read[2];
};

/* As much as there is: what is smaller than that may end with the memory. */
static uint32_t peek(struct tasks *t, uint64_t address, void *out, uint32_t len)
{
    struct memory_piece piece = {address, out, len, 0};
    bool may = plausible(address) && t->reads++ < READS_MAX;
    return may && memory_batch_read(t->memory, &piece, 1, NULL) ? piece.got : 0;
}

static bool fetch(struct tasks *t, uint64_t address, void *out, uint32_t len)
{
    return address % 8 == 0 && peek(t, address, out, len) == len;
}

/* ---- an await chain ---- */

static enum kind kind_of(struct tasks *t, uint64_t type)
{
    size_t place = (type >> 4) % TYPES;
    if (type == 0 || t->type[place] == type) {
        return type == 0 ? KIND_OTHER : t->kind[place];
    }
    uint64_t at;
    char text[TYPE_NAME] = "";
    if (fetch(t, type + t->l->object.type + 16, &at, sizeof at)) {
        (void)peek(t, at, text, sizeof text - 1);
    }
    uint8_t kind = 0;
    while (kind < KIND_OTHER && strcmp(text, type_names[kind]) != 0) {
        kind++;
    }
    kind = kind < KIND_WRAPS ? KIND_GENERATOR : kind < KIND_OTHER ? KIND_WRAPS : KIND_OTHER;
    t->type[place] = type;
    return t->kind[place] = kind;
}

static void take_frame(const struct tasks *t, const unsigned char *at, struct runtime_frame *out)
{
    uint64_t code = load_u64(at + t->l->frame.code) & ~(uint64_t)3;
    uint64_t offset = load_u64(at + t->l->frame.position) - code - t->l->code.bytecode;
    *out = (struct runtime_frame){.code = code, .position = offset < BYTECODE_MAX ? (uint32_t)offset : UINT32_MAX};
}

/* What the coroutine awaits; 0: nothing that has a frame. */
static uint64_t awaited(struct tasks *t, const unsigned char *coroutine)
{
    bool is_last = python_minor(t->l->version) < PYTHON_VERSION(3, 15);
    uint64_t top = load_u64(coroutine + t->l->generator.frame + t->l->frame.top), object;
    return fetch(t, top - (is_last ? 8 : 16), &object, sizeof object) ? object & ~(uint64_t)3 : 0;
}

static int state_of(const struct tasks *t, const unsigned char *coroutine)
{
    int state = (signed char)coroutine[t->l->generator.state];
    return state + (python_minor(t->l->version) < PYTHON_VERSION(3, 15) ? STATES_FROM_3_14 : 0);
}

static void turn(struct runtime_stack *stack)
{
    for (uint32_t i = 0; i < stack->count / 2; i++) {
        struct runtime_frame frame = stack->frame[i];
        stack->frame[i] = stack->frame[stack->count - 1 - i];
        stack->frame[stack->count - 1 - i] = frame;
    }
}

/* False: the outermost runs, or ended, or one cannot be read. */
static bool read_chain(struct tasks *t, uint64_t object, struct runtime_stack *out)
{
    unsigned char bytes[GENERATOR_READ];
    for (unsigned steps = 0; steps < RUNTIME_FRAMES_MAX && object != 0; steps++) {
        uint32_t got = peek(t, object, bytes, t->l->generator.bytes);
        if (got < t->l->object.type + 16) {
            return false;
        }
        enum kind kind = kind_of(t, load_u64(bytes + t->l->object.type));
        int state = kind == KIND_GENERATOR ? state_of(t, bytes) : STATE_SUSPENDED;
        if (state < STATE_CREATED || state > STATE_AWAITS || (kind == KIND_GENERATOR && got < t->l->generator.bytes)) {
            return false;
        }
        if (kind == KIND_GENERATOR) {
            take_frame(t, bytes + t->l->generator.frame, &out->frame[out->count++]);
        }
        object = kind == KIND_WRAPS      ? load_u64(bytes + t->l->object.type + 8)
                 : state == STATE_AWAITS ? awaited(t, bytes)
                                         : 0;
    }
    turn(out);
    return true;
}

/* ---- one task ---- */

static bool read_task(struct tasks *t, uint64_t task, struct runtime_task *out)
{
    unsigned char bytes[TASK_READ] = {0}, name[WALK_TASK_NAME];
    out->stack.count = out->stack.task_bytes = 0;
    (void)peek(t, task, bytes, sizeof bytes);
    if (load_u64(bytes + t->link[TASK_NODE]) == 0) {
        return false;
    }
    out->id = task;
    out->awaited_by = t->link[TASK_AWAITED_BY] != 0 ? load_u64(bytes + t->link[TASK_AWAITED_BY]) : 0;
    uint32_t got = peek(t, load_u64(bytes + t->name_at), name, sizeof name);
    python_take_task_name(t->python, name, got, &out->stack);
    return read_chain(t, load_u64(bytes + t->link[TASK_CORO]), &out->stack);
}

static bool is_same(const struct runtime_task *a, const struct runtime_task *b)
{
    return a->awaited_by == b->awaited_by && a->stack.count == b->stack.count &&
           a->stack.task_bytes == b->stack.task_bytes &&
           memcmp(a->stack.task, b->stack.task, a->stack.task_bytes) == 0 &&
           memcmp(a->stack.frame, b->stack.frame, a->stack.count * sizeof a->stack.frame[0]) == 0;
}

/* ---- a thread's ring ---- */

static bool gather(struct tasks *t, uint64_t head)
{
    uint64_t link[2], at = head, before = 0;
    vec_clear(&t->found);
    do {
        uint64_t *task = at == head || t->found.len == t->left ? NULL : vec_push(&t->found);
        if (!fetch(t, at, link, sizeof link) || (at != head && link[1] != before)) {
            return false;
        }
        if (task != NULL) {
            *task = at - t->link[TASK_NODE];
        }
        if (at != head && task == NULL) {
            break;
        }
        before = at;
        at = link[0];
    } while (at != head);
    return true;
}

static size_t read_thread(struct tasks *t, uint64_t state, uint32_t tid,
                          void (*each)(void *context, const struct runtime_task *task), void *context)
{
    size_t torn = 0;
    uint64_t running = 0;
    for (int i = 0; i < TRIES && !gather(t, state + t->link[TASK_HEAD]); i++) {
    }
    vec_each(&t->found, task)
    {
        bool first = read_task(t, *task, &t->read[0]), again = read_task(t, *task, &t->read[1]);
        if (first && again && is_same(&t->read[0], &t->read[1])) {
            t->read[0].tid = tid;
            each(context, &t->read[0]);
        } else if (!fetch(t, state + t->running_at, &running, sizeof running) || running != *task) {
            torn++;
        }
    }
    t->left -= t->found.len;
    return torn;
}

/* ---- all of them ---- */

static bool prepare(struct tasks *t, const struct python *python)
{
    uint64_t fields = __atomic_load_n(&python->task_fields, __ATOMIC_ACQUIRE);
    uint64_t links = __atomic_load_n(&python->task_links, __ATOMIC_RELAXED);
    t->python = python;
    t->l = &python->layout;
    t->running_at = (uint32_t)(fields >> 32);
    t->name_at = (uint32_t)fields;
    t->left = RUNTIME_TASKS_MAX;
    bool fits = fields != 0 && links != 0 && has(t->l->generator.bytes) && t->name_at + 8 <= TASK_READ &&
                t->l->object.type + 16 <= t->l->generator.bytes;
    for (int i = 0; i < 4; i++) {
        t->link[i] = (uint16_t)(links >> 16 * i);
        fits = fits && (i == TASK_HEAD || t->link[i] + 8 <= TASK_READ);
    }
    return fits;
}

size_t python_tasks(const void *state, struct memory_batch *memory,
                    void (*each)(void *context, const struct runtime_task *task), void *context)
{
    struct tasks *t = calloc(1, sizeof *t);
    size_t torn = 0, threads = 0;
    uint64_t interp = 0, thread = 0;
    unsigned char bytes[WALK_THREAD_MAX];
    if (t == NULL || !prepare(t, state)) {
        free(t);
        return 0;
    }
    t->memory = memory;
    (void)fetch(t, t->python->head, &interp, sizeof interp);
    for (int i = 0; i < PYTHON_INTERPRETERS_MAX && interp != 0; i++) {
        if (!fetch(t, interp + t->l->interp.threads, &thread, sizeof thread)) {
            break;
        }
        while (thread != 0 && threads++ < PYTHON_THREADS_MAX && fetch(t, thread, bytes, t->l->thread.bytes)) {
            torn += read_thread(t, thread, python_tid_of(t->python, memory, bytes), each, context);
            thread = load_u64(bytes + t->l->thread.next);
        }
        interp = fetch(t, interp + t->l->interp.next, &interp, sizeof interp) ? interp : 0;
    }
    vec_release(&t->found);
    free(t);
    return torn;
}
