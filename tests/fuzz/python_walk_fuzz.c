/*
 * Any memory as a CPython process whose threads are walked. A sound process is made first: one
 * thread with five frames. The input then changes it: one byte for the version, one for how the
 * walk is called, and steps of five bytes (what to do, where, which value), between which the
 * thread is walked; some take effect between two pieces of a batch, as in a running process.
 */
#include "runtime/python/private.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { MEMORY_BYTES = 1 << 19, TID = 42, STEP = 5, WALKS_MAX = 24, BATCHES_MAX = 99 };

#define MEMORY 0x7f0000000000ull
#define INTERP (MEMORY + 0x1000)
#define THREAD (MEMORY + 0x3000)
#define CFRAME (MEMORY + 0x4000)
#define CODE_TYPE (MEMORY + 0x5000)
#define CODES (MEMORY + 0x6000)
#define CHUNK (MEMORY + 0x8000)
#define TASK (MEMORY + 0xe000)
#define TASK_NAME (MEMORY + 0xe100)
#define STR_TYPE (MEMORY + 0x5400)
#define INT_TYPE (MEMORY + 0x5800)

struct world {
    unsigned char *bytes;
    struct python python;
    uint64_t plan[RUNTIME_PLAN_MAX / sizeof(uint64_t)];
    const uint8_t *steps;
    size_t left;
    bool moves; /* memory changes in the middle of a batch */
    unsigned batches;
};

static void put(struct world *w, uint64_t address, uint64_t value, size_t len)
{
    uint64_t offset = address - MEMORY;
    if (offset <= MEMORY_BYTES - len) {
        memcpy(w->bytes + offset, &value, len);
    }
}

/* A pointer into the memory, a small number, a large one, a pointer beside it. */
static uint64_t value_of(unsigned kind, uint64_t number)
{
    switch (kind & 3) {
    case 0:
        return MEMORY + number * 8;
    case 1:
        return number;
    case 2:
        return ~number;
    default:
        return MEMORY - 0x8000 + number;
    }
}

/* One step of the input; false when it was the end of a walk, or of the input. */
static bool step(struct world *w)
{
    if (w->left < STEP) {
        w->left = 0;
        return false;
    }
    const uint8_t *s = w->steps;
    uint64_t where = (uint64_t)(s[1] | s[2] << 8), number = (uint64_t)(s[3] | s[4] << 8);
    w->steps += STEP;
    w->left -= STEP;
    if (s[0] % 8 == 7) {
        return false;
    }
    put(w, MEMORY + where * 8 + (s[0] & 4), value_of(s[0] >> 4, number), s[0] & 8 ? 4 : 8);
    return true;
}

static bool read_batch(void *context, struct memory_piece *pieces, size_t count, struct err *err)
{
    struct world *w = context;
    (void)err;
    w->batches++;
    for (size_t i = 0; i < count; i++) {
        uint64_t offset = pieces[i].address - MEMORY;
        uint64_t there = offset < MEMORY_BYTES ? MEMORY_BYTES - offset : 0;
        pieces[i].got = (uint32_t)(there < pieces[i].len ? there : pieces[i].len);
        if (pieces[i].got != 0) {
            memcpy(pieces[i].out, w->bytes + offset, pieces[i].got);
        }
        if (w->moves && i % 3 == 1) {
            (void)step(w);
        }
    }
    return true;
}

/* ---- a sound process ---- */

static void set_layout(struct python_layout *l, unsigned choice)
{
    static const uint8_t minors[] = {5, 6, 7, 8, 9, 10, 11, 12};
    struct err err;
    bool old = choice % 9 == 8;
    uint32_t version = old ? PYTHON_VERSION(2, 7) : PYTHON_VERSION(3, minors[choice % 9]);
    if (!python_layout_of(version, ELF_X86_64, false, false, l, &err)) {
        abort();
    }
    if (choice % 9 == 7 && choice >= 64) { /* as 3.13 and later, with what these have */
        l->frames = PYTHON_FRAMES_CURRENT;
        l->thread.cframe_top = LAYOUT_NONE;
        l->thread.base_frame = choice & 64 ? 80 : LAYOUT_NONE;
        l->thread.holds_gil = 28;
        l->interp.code_generation = 1016;
        l->frame.tlbc_index = choice & 128 ? 64 : LAYOUT_NONE;
        l->code.tlbc = choice & 128 ? 144 : LAYOUT_NONE;
        python_layout_sizes(l);
    }
}

static void make_frames(struct world *w)
{
    const struct python_layout *l = &w->python.layout;
    uint64_t frame = 0;
    for (unsigned i = 0; i < 5; i++) {
        uint64_t code = CODES + i * 0x200, at = CHUNK + 32 + i * 0x180;
        put(w, code + l->object.type, CODE_TYPE, 8);
        put(w, code + l->object.size, 100, 8);
        put(w, at + l->frame.code, code, 8);
        put(w, at + l->frame.previous, frame, 8);
        put(w, at + l->frame.position,
            l->frames == PYTHON_FRAMES_HEAP ? 4 : code + l->code.bytecode + 4,
            l->frames == PYTHON_FRAMES_HEAP ? 4 : 8);
        frame = at;
    }
    put(w, (l->frames == PYTHON_FRAMES_CFRAME ? CFRAME + l->thread.cframe_top
                                              : THREAD + l->thread.frame),
        frame, 8);
    if (l->thread.chunk != LAYOUT_NONE) {
        put(w, CHUNK + 8, 0x4000, 8);
        put(w, THREAD + l->thread.chunk, CHUNK, 8);
        put(w, THREAD + l->thread.top, frame + 0x100, 8);
    }
}

/* The thread runs an asyncio task named "pay". */
static void make_task(struct world *w)
{
    const struct python_layout *l = &w->python.layout;
    w->python.str_type = STR_TYPE;
    w->python.int_type = INT_TYPE;
    w->python.task_fields = (uint64_t)872 << 32 | 136;
    put(w, THREAD + 872, TASK, 8);
    put(w, TASK + 136, TASK_NAME, 8);
    put(w, TASK_NAME + l->object.type, STR_TYPE, 8);
    put(w, TASK_NAME + l->object.str_length, 3, 8);
    put(w, TASK_NAME + l->object.str_state, 0x64, 4);
    put(w, TASK_NAME + l->object.str_ascii, 0x796170, 8);
}

static void make_process(struct world *w, unsigned choice)
{
    struct python *py = &w->python;
    struct python_layout *l = &py->layout;
    set_layout(l, choice);
    py->runtime = MEMORY;
    py->head = MEMORY + l->runtime.head;
    py->current = l->runtime.current != LAYOUT_NONE ? MEMORY + l->runtime.current : 0;
    py->interp = INTERP;
    py->code_type = CODE_TYPE;
    py->tid_in_pthread = 720;
    put(w, py->head, INTERP, 8);
    put(w, INTERP + l->interp.threads, THREAD, 8);
    put(w, THREAD + l->thread.interp, INTERP, 8);
    if (l->thread.native_thread_id != LAYOUT_NONE) {
        put(w, THREAD + l->thread.native_thread_id, TID, 8);
    } else {
        put(w, THREAD + l->thread.thread_id, THREAD + 0x400, 8);
        put(w, THREAD + 0x400 + 720, TID, 4);
    }
    if (l->frames == PYTHON_FRAMES_CFRAME) {
        put(w, THREAD + l->thread.frame, CFRAME, 8);
    }
    if (l->frames == PYTHON_FRAMES_CURRENT) {
        make_task(w);
    }
    make_frames(w);
}

/* ---- what always holds ---- */

static void check(const struct world *w, const struct runtime_stack *out)
{
    if (out->end >= RUNTIME_END_COUNT || out->count > RUNTIME_FRAMES_MAX ||
        w->batches > BATCHES_MAX || out->task_bytes > RUNTIME_TASK_MAX || out->reads != w->batches ||
        (out->end != RUNTIME_COMPLETE) != (out->count == 0)) {
        abort();
    }
    for (uint32_t i = 0; i < out->count; i++) {
        const struct runtime_frame *f = &out->frame[i];
        if ((f->flags & RUNTIME_FRAME_SHIM) != 0 ? i != 0 : f->code % 8 != 0 || f->code == 0) {
            abort();
        }
    }
    uint32_t ends = RUNTIME_FRAME_ENTRY | RUNTIME_FRAME_SHIM;
    if (out->count != 0 && (out->frame[out->count - 1].flags & ends) == 0) {
        abort();
    }
}

static void name_running(const struct world *w, struct memory_batch *memory)
{
    uint32_t tids[4];
    size_t count = python_running(&w->python, memory, tids, 4);
    for (size_t i = 0; i < count; i++) {
        if (count > 4 || tids[i] == 0 || (i > 0 && tids[i] == tids[0])) {
            abort();
        }
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct runtime_stack out;
    struct world *w = size >= 2 ? calloc(1, sizeof *w) : NULL;
    if (w == NULL) {
        return 0;
    }
    w->bytes = calloc(1, MEMORY_BYTES);
    make_process(w, data[0]);
    w->steps = data + 2;
    w->left = size - 2;
    for (unsigned i = 0; i < WALKS_MAX && (i < 2 || w->left != 0); i++) {
        struct memory_batch memory = {read_batch, w};
        while (i != 0 && step(w)) {
        }
        w->moves = (data[1] & 1) != 0 && i % 2 == 1;
        w->batches = 0;
        const struct runtime_thread thread = {.tid = TID, .proven_later = (data[1] & 2) != 0};
        python_walk(&w->python, w->plan, &thread, &memory, &out);
        check(w, &out);
        name_running(w, &memory);
    }
    free(w->bytes);
    free(w);
    return 0;
}
