/*
 * Threads of CPython in a memory made here: a stretch of MEMORY_BYTES at MEMORY, everything else is
 * not mapped. The layouts are the product's up to 3.12; 3.14 is written out below.
 */
#include "runtime/python/private.h"
#include "test.h"

enum {
    MEMORY_BYTES = 1 << 20,
    TID = 4242,
    CO_OPTIMIZED = 1, /* a function's code */
};

#define MEMORY 0x7f0000000000ull
#define RUNTIME (MEMORY + 0x0000) /* _PyRuntime */
#define INTERP (MEMORY + 0x1000)
#define THREAD (MEMORY + 0x3000)
#define OTHER_THREAD (MEMORY + 0x3800)
#define CFRAME (MEMORY + 0x4000)
#define CODE_TYPE (MEMORY + 0x5000)
#define CODES (MEMORY + 0x6000)   /* 0x200 apart */
#define HEAP (MEMORY + 0x10000)   /* frame objects, generators */
#define C_STACK (MEMORY + 0x20000) /* shims */
#define CHUNK (MEMORY + 0x30000)
#define CHUNK_BYTES 0x4000
#define OWNER_GENERATOR 1
#define OWNER_SHIM 3

static unsigned char memory_bytes[MEMORY_BYTES];
static struct python python;
static uint64_t plan[RUNTIME_PLAN_MAX / sizeof(uint64_t)];
static struct runtime_stack stack;
static unsigned batches, pieces_read;
static bool gone;
static void (*at_piece)(unsigned piece); /* what the target does meanwhile */

/* ---- memory ---- */

static unsigned char *at(uint64_t address)
{
    return memory_bytes + (address - MEMORY);
}

static void put64(uint64_t address, uint64_t value)
{
    memcpy(at(address), &value, sizeof value);
}

static void put32(uint64_t address, uint32_t value)
{
    memcpy(at(address), &value, sizeof value);
}

static bool read_batch(void *context, struct memory_piece *pieces, size_t count, struct err *err)
{
    (void)context;
    batches++;
    for (size_t i = 0; i < count; i++) {
        struct memory_piece *p = &pieces[i];
        uint64_t offset = p->address - MEMORY;
        uint64_t there = offset < MEMORY_BYTES ? MEMORY_BYTES - offset : 0;
        p->got = gone ? 0 : (uint32_t)(there < p->len ? there : p->len);
        if (at_piece != NULL) {
            at_piece(pieces_read);
        }
        pieces_read++;
        memcpy(p->out, memory_bytes + (p->got != 0 ? offset : 0), p->got);
    }
    return !gone || err_set(err, ERR_GONE, 0, "gone");
}

static void walk_as(const struct runtime_thread *thread)
{
    struct memory_batch memory = {read_batch, NULL};
    batches = pieces_read = 0;
    memset(&stack, 0xee, sizeof stack);
    python_walk(&python, plan, thread, &memory, &stack);
    CHECK_INT(stack.reads, batches);
}

static void walk(bool proven)
{
    const struct runtime_thread thread = {.tid = TID, .proven_later = proven};
    walk_as(&thread);
}

/* As catchers do where the thread may run on. */
static void walk_parts(void)
{
    const struct runtime_thread thread = {.tid = TID, .takes_parts = true};
    walk_as(&thread);
}

/* ---- layouts ---- */

/* python.md's columns: _Py_DebugOffsets of 3.14.10, and what is not told there. */
static void layout_3_14(struct python_layout *l)
{
    memset(l, 0xff, sizeof *l);
    l->version = 0x030e0af0;
    l->free_threaded = false;
    l->frames = PYTHON_FRAMES_CURRENT;
    l->lines = PYTHON_LOCATIONS;
    l->runtime.head = 808;
    l->interp.next = 7272;
    l->interp.threads = 7344;
    l->interp.collecting = 7600;
    l->interp.code_generation = 7992;
    l->thread.bytes = 312;
    l->thread.next = 8;
    l->thread.interp = 16;
    l->thread.frame = 72;
    l->thread.thread_id = 152;
    l->thread.native_thread_id = 160;
    l->thread.chunk = 232;
    l->thread.top = 240;
    l->thread.status = 32;
    l->thread.holds_gil = 36;
    l->frame.bytes = 80;
    l->frame.code = 0;
    l->frame.previous = 8;
    l->frame.position = 56;
    l->frame.owner = 74;
    l->frame.locals = 80;
    l->code.bytes = 144;
    l->code.flags = 48;
    l->code.first_line = 68;
    l->code.version = 92;
    l->code.file = 112;
    l->code.name = 120;
    l->code.qualname = 128;
    l->code.lines = 136;
    l->code.bytecode = 208;
    l->object.type = 8;
    l->object.size = 16;
}

static void layout_3_15(struct python_layout *l)
{
    layout_3_14(l);
    l->version = 0x030f02f0;
    l->thread.bytes = 336;
    l->thread.base_frame = 80;
    l->thread.native_thread_id = 184;
    l->thread.gil_requested = 40;
}

/* One interpreter and one thread, which runs nothing. */
static void start(uint32_t version)
{
    struct err err;
    memset(memory_bytes, 0, sizeof memory_bytes);
    memset(plan, 0, sizeof plan);
    memset(&python, 0, sizeof python);
    gone = false;
    at_piece = NULL;
    struct python_layout *l = &python.layout;
    if (version >= PYTHON_VERSION(3, 15)) {
        layout_3_15(l);
    } else if (version >= PYTHON_VERSION(3, 14)) {
        layout_3_14(l);
    } else {
        CHECK(python_layout_of(version, ELF_X86_64, false, false, l, &err));
    }
    python.runtime = version < PYTHON_VERSION(3, 7) ? 0 : RUNTIME;
    python.head = RUNTIME + l->runtime.head;
    python.current = l->runtime.current != LAYOUT_NONE ? RUNTIME + l->runtime.current : 0;
    python.interp = INTERP;
    python.code_type = CODE_TYPE;
    python.tid_in_pthread = 720;
    put64(python.head, INTERP);
    put64(INTERP + l->interp.threads, THREAD);
}

static void make_thread(uint64_t thread, uint32_t tid)
{
    const struct python_layout *l = &python.layout;
    put64(thread + l->thread.interp, INTERP);
    if (l->thread.native_thread_id != LAYOUT_NONE) {
        put64(thread + l->thread.native_thread_id, tid);
    } else {
        put64(thread + l->thread.thread_id, thread + 0x400);
        put32(thread + 0x400 + python.tid_in_pthread, tid);
    }
    if (l->thread.chunk != LAYOUT_NONE) {
        put64(thread + l->thread.chunk, CHUNK);
        put64(thread + l->thread.top, CHUNK + 24);
        put64(CHUNK + 8, CHUNK_BYTES);
    }
    if (l->frames == PYTHON_FRAMES_CFRAME) {
        put64(thread + l->thread.frame, CFRAME);
    }
}

static void set_top_frame(uint64_t frame)
{
    const struct python_layout *l = &python.layout;
    bool by_cframe = l->frames == PYTHON_FRAMES_CFRAME;
    put64(by_cframe ? CFRAME + l->thread.cframe_top : THREAD + l->thread.frame, frame);
}

/* The n-th function: 100 units of bytecode, its first line is n. */
static uint64_t make_code(unsigned n)
{
    const struct python_layout *l = &python.layout;
    uint64_t code = CODES + n * 0x200ull;
    put64(code + l->object.type, CODE_TYPE);
    put64(code + l->object.size, 100);
    put32(code + l->code.first_line, n);
    put32(code + l->code.flags, CO_OPTIMIZED);
    put64(code + l->code.name, 0x1000 + n);
    return code;
}

/* `instruction`: bytes from the start of the bytecode, or f_lasti. */
static void make_frame(uint64_t frame, uint64_t previous, uint64_t code, int instruction)
{
    const struct python_layout *l = &python.layout;
    memset(at(frame), 0, l->frame.bytes);
    put64(frame + l->frame.code, code);
    put64(frame + l->frame.previous, previous);
    if (l->frames == PYTHON_FRAMES_HEAP) {
        put32(frame + l->frame.position, (uint32_t)instruction);
    } else {
        put64(frame + l->frame.position, code + l->code.bytecode + (uint64_t)(int64_t)instruction);
    }
}

static void set_owner(uint64_t frame, unsigned char owner)
{
    *at(frame + python.layout.frame.owner) = owner;
}

static void make_shim(uint64_t frame, uint64_t previous)
{
    make_frame(frame, previous, 0, 0);
    set_owner(frame, OWNER_SHIM);
}

/* `count` frames of functions 1, 2 … on the data stack, the first the root, 104 bytes apart. */
static void make_stack(unsigned count)
{
    const struct python_layout *l = &python.layout;
    uint64_t frame = CHUNK + 32, previous = 0;
    for (unsigned i = 1; i <= count; i++, frame += 104) {
        make_frame(frame, previous, make_code(i), 10);
        previous = frame;
    }
    put64(THREAD + l->thread.top, frame);
    set_top_frame(previous);
}

static uint64_t stack_frame(unsigned n)
{
    return CHUNK + 32 + (n - 1) * 104ull;
}

static void start_stack(uint32_t version, unsigned count)
{
    start(version);
    make_thread(THREAD, TID);
    make_stack(count);
}

/* First lines and marks of the stack in `stack`, as text: "3 2 1e" is two calls below an entry. */
static const char *text(void)
{
    static char out[256];
    size_t len = 0;
    out[0] = '\0';
    for (uint32_t i = 0; i < stack.count && len < sizeof out - 16; i++) {
        const struct runtime_frame *f = &stack.frame[i];
        len += (size_t)snprintf(out + len, sizeof out - len, "%s", i == 0 ? "" : " ");
        if (f->flags & RUNTIME_FRAME_SHIM) {
            len += (size_t)snprintf(out + len, sizeof out - len, "shim");
            continue;
        }
        len += (size_t)snprintf(out + len, sizeof out - len, "%u%s%s%s%s%s",
                                (unsigned)((f->code - CODES) / 0x200),
                                f->flags & RUNTIME_FRAME_ENTRY ? "e" : "",
                                f->flags & RUNTIME_FRAME_UNSTARTED ? "u" : "",
                                f->flags & RUNTIME_FRAME_COLLECTS ? "c" : "",
                                f->flags & RUNTIME_FRAME_CUT ? "x" : "",
                                f->flags & RUNTIME_FRAME_PART ? "p" : "");
    }
    return out;
}

/* ---- frames ---- */

static void heap_frames(void)
{
    start(PYTHON_VERSION(3, 8));
    make_thread(THREAD, TID);
    make_frame(HEAP, 0, make_code(1), 8);
    make_frame(HEAP + 0x1000, HEAP, make_code(2), 6);
    make_frame(HEAP + 0x400, HEAP + 0x1000, make_code(3), -1);
    set_top_frame(HEAP + 0x400);
    walk(true);
    CHECK_INT(stack.end, RUNTIME_COMPLETE);
    CHECK_TEXT(text(), "3eu 2e 1e");
    CHECK_INT(stack.frame[0].position, UINT32_MAX);
    CHECK_INT(stack.frame[1].position, 6);
}

/* 3.10 counts f_lasti in units of two bytes. */
static void units_3_10(void)
{
    start(PYTHON_VERSION(3, 10));
    make_thread(THREAD, TID);
    make_frame(HEAP, 0, make_code(1), 8);
    set_top_frame(HEAP);
    walk(true);
    CHECK_INT(stack.frame[0].position, 16);
}

static void entries_3_11(void)
{
    start_stack(PYTHON_VERSION(3, 11), 3);
    *at(stack_frame(2) + python.layout.frame.is_entry) = 1;
    put64(stack_frame(3) + python.layout.frame.position,
          make_code(3) + python.layout.code.bytecode - 2);
    walk(true);
    CHECK_INT(stack.end, RUNTIME_COMPLETE);
    CHECK_TEXT(text(), "3u 2e 1e");
    CHECK_INT(stack.frame[1].position, 10);
}

/* From the leaf: shim, 2, 3 (a generator's frame), shim, 1, shim. */
static void shims(void)
{
    start_stack(PYTHON_VERSION(3, 12), 2);
    make_shim(C_STACK, 0);
    put64(stack_frame(1) + python.layout.frame.previous, C_STACK);
    make_shim(C_STACK + 0x800, stack_frame(1));
    make_frame(HEAP, C_STACK + 0x800, make_code(3), 4);
    set_owner(HEAP, OWNER_GENERATOR);
    put64(stack_frame(2) + python.layout.frame.previous, HEAP);
    make_shim(C_STACK + 0x1000, stack_frame(2));
    set_top_frame(C_STACK + 0x1000);
    walk(false);
    CHECK_INT(stack.end, RUNTIME_COMPLETE);
    CHECK_TEXT(text(), "shim 2 3e 1e");
    walk(false);
    CHECK_TEXT(text(), "shim 2 3e 1e");
    CHECK_INT(batches, 1);
}

/* The reference in a frame carries tags; 3.15's chain ends at the thread's base frame. */
static void tags_and_base(void)
{
    start_stack(PYTHON_VERSION(3, 15), 2);
    make_shim(C_STACK, 0);
    put64(THREAD + python.layout.thread.base_frame, C_STACK);
    put64(stack_frame(1) + python.layout.frame.previous, C_STACK);
    put64(stack_frame(2) + python.layout.frame.code, make_code(2) | 1);
    walk(true);
    CHECK_INT(stack.end, RUNTIME_COMPLETE);
    CHECK_TEXT(text(), "2 1e");
    set_top_frame(C_STACK);
    walk(true);
    CHECK_INT(stack.end, RUNTIME_EMPTY);
    CHECK_INT(stack.count, 0);
}

/* Free-threaded 3.14: a thread may run a copy of a function's bytecode, its third here. */
static void own_copy(void)
{
    start(PYTHON_VERSION(3, 14));
    python.layout.free_threaded = true;
    python.layout.frame.tlbc_index = 76;
    python.layout.code.tlbc = 144;
    python.layout.code.bytes = 152;
    make_thread(THREAD, TID);
    make_stack(1);
    uint64_t list = HEAP, copy = HEAP + 0x800;
    put64(list, 4);
    put64(list + 8 + 3 * 8, copy);
    put64(make_code(1) + 144, list);
    put64(stack_frame(1) + 56, copy + 12);
    put32(stack_frame(1) + 76, 3);
    walk(true);
    CHECK_INT(stack.end, RUNTIME_COMPLETE);
    CHECK_INT(stack.frame[0].position, 12);
    walk(true);
    CHECK_INT(stack.frame[0].position, 12);
    CHECK_INT(batches, 1);
}

static void runs_nothing(void)
{
    start_stack(PYTHON_VERSION(3, 11), 1);
    set_top_frame(0);
    walk(true);
    CHECK_INT(stack.end, RUNTIME_EMPTY);
    start_stack(PYTHON_VERSION(3, 11), 1);
    put64(RUNTIME + python.layout.runtime.finalizing, THREAD);
    walk(true);
    CHECK_INT(stack.end, RUNTIME_EMPTY);
    CHECK_INT(stack.count, 0);
}

/* ---- deep ---- */

static const uint64_t older_chunks[] = {0x90000, 0x50000, 0xb0000, 0x70000};

/* 3000 frames of one function over as many chunks as they need, which are no neighbours. */
static void make_deep(unsigned count)
{
    const struct python_layout *l = &python.layout;
    uint64_t chunk = CHUNK, frame = CHUNK + 32, previous = 0;
    unsigned made = 0, chunks = 0;
    for (unsigned i = 1; i <= count; i++, frame += 104) {
        if (frame + 104 > chunk + CHUNK_BYTES) {
            uint64_t next = MEMORY + older_chunks[chunks % 4] + chunks / 4 * 0x5000ull;
            put64(next, chunk);
            put64(next + 8, CHUNK_BYTES);
            chunk = next;
            chunks++;
            frame = chunk + 24;
        }
        make_frame(frame, previous, make_code(i == 1 ? 1 : i == count ? 3 : 2), 10);
        previous = frame;
        made++;
    }
    put64(THREAD + l->thread.chunk, chunk);
    put64(THREAD + l->thread.top, frame);
    set_top_frame(previous);
}

static void deep(void)
{
    for (int proven = 0; proven < 2; proven++) {
        start_stack(PYTHON_VERSION(3, 14), 0);
        make_deep(3000);
        walk(proven);
        CHECK_INT(stack.end, RUNTIME_COMPLETE);
        CHECK_INT(stack.count, RUNTIME_FRAMES_MAX);
        CHECK_INT((stack.frame[0].code - CODES) / 0x200, 3);
        CHECK_INT((stack.frame[RUNTIME_FRAMES_MAX - 1].code - CODES) / 0x200, 1);
        CHECK_INT(stack.frame[RUNTIME_FRAMES_MAX - 1].flags, RUNTIME_FRAME_ENTRY);
        /* three quarters from the leaf, then the cut */
        CHECK_INT(stack.frame[767].flags, RUNTIME_FRAME_CUT);
        CHECK_INT(stack.frame[766].flags, 0);
        CHECK_INT(stack.frame[768].flags, 0);
        CHECK(batches <= (proven ? 48 : 96));
    }
}

/* 1025 frames, each with a position of its own: 768 from the leaf, 256 from the root are kept. */
static void kept_in_order(void)
{
    start_stack(PYTHON_VERSION(3, 14), 0);
    make_deep(1025);
    uint64_t frame = 0;
    memcpy(&frame, at(THREAD + python.layout.thread.frame), 8);
    for (unsigned i = 0; i < 1025; i++) {
        uint64_t code;
        memcpy(&code, at(frame + python.layout.frame.code), 8);
        put64(code + python.layout.object.size, 4000);
        put64(frame + python.layout.frame.position, code + python.layout.code.bytecode + 2 * i);
        memcpy(&frame, at(frame + python.layout.frame.previous), 8);
    }
    walk(true);
    CHECK_INT(stack.frame[0].position, 0);
    CHECK_INT(stack.frame[767].position, 2 * 767);
    CHECK_INT(stack.frame[768].position, 2 * 769); /* one is left out */
    CHECK_INT(stack.frame[1023].position, 2 * 1024);
}

/* Heap frames as recursion makes them: mostly side by side, with a hole now and then. */
static void deep_on_heap(void)
{
    start(PYTHON_VERSION(3, 8));
    make_thread(THREAD, TID);
    uint64_t frame = HEAP, previous = 0;
    for (unsigned i = 0; i < 1200; i++) {
        make_frame(frame, previous, make_code(2), 10);
        previous = frame;
        frame += i % 7 == 0 ? 736 : 480;
    }
    set_top_frame(previous);
    walk(true);
    CHECK_INT(stack.end, RUNTIME_COMPLETE);
    CHECK_INT(stack.count, RUNTIME_FRAMES_MAX);
    CHECK_INT(stack.frame[767].flags, RUNTIME_FRAME_ENTRY | RUNTIME_FRAME_CUT);
    CHECK_INT(stack.frame[1023].flags, RUNTIME_FRAME_ENTRY);
    CHECK(batches < 70);
}

/* ---- the plan ---- */

static void one_batch(uint32_t version, bool proven)
{
    start_stack(version, 30);
    walk(proven);
    walk(proven);
    CHECK_INT(stack.count, 30);
    CHECK_INT(batches, 1);
    make_stack(31); /* one call more */
    walk(proven);
    CHECK_INT(stack.count, 31);
    CHECK(batches <= 2);
}

static void warm(void)
{
    one_batch(PYTHON_VERSION(3, 11), true);
    one_batch(PYTHON_VERSION(3, 11), false);
    one_batch(PYTHON_VERSION(3, 14), true);
    one_batch(PYTHON_VERSION(3, 14), false);
}

static void moved_cframe(void)
{
    start_stack(PYTHON_VERSION(3, 11), 2);
    walk(true);
    put64(THREAD + python.layout.thread.frame, CFRAME + 0x100);
    put64(CFRAME + 0x100 + python.layout.thread.cframe_top, stack_frame(1));
    walk(true);
    CHECK_TEXT(text(), "1e");
    CHECK_INT(batches, 2);
}

/* Frame objects: a chain that is as it was costs one batch, a new leaf one more. */
static void warm_heap(void)
{
    start(PYTHON_VERSION(3, 9));
    make_thread(THREAD, TID);
    for (unsigned i = 0; i < 30; i++) {
        make_frame(HEAP + i * 0x400, i == 0 ? 0 : HEAP + (i - 1) * 0x400, make_code(i + 1), 4);
    }
    set_top_frame(HEAP + 29 * 0x400);
    walk(false);
    walk(false);
    CHECK_INT(stack.count, 30);
    CHECK_INT(batches, 1);
    make_frame(HEAP + 0x9000, HEAP + 20 * 0x400, make_code(40), 4);
    set_top_frame(HEAP + 0x9000);
    walk(false);
    CHECK_INT(stack.count, 22);
    CHECK_INT(stack.retries, 0);
    CHECK(batches <= 3); /* its frame, its code object */
}

/* 30 frame objects in no order on three pages: their pieces are the pages (two frames lie on two) and
 * 9 others. Read twice, the leaf-most 12 are on all three pages. */
static void pages_of_heap(void)
{
    start(PYTHON_VERSION(3, 8));
    make_thread(THREAD, TID);
    for (unsigned i = 0; i < 30; i++) {
        uint64_t previous = i == 0 ? 0 : HEAP + (i - 1) * 7 % 30 * 0x180;
        make_frame(HEAP + i * 7 % 30 * 0x180, previous, make_code(i + 1), 2 * (int)i);
    }
    set_top_frame(HEAP + 29 * 7 % 30 * 0x180);
    for (int i = 0; i < 4; i++) {
        walk(i % 2 == 1);
        CHECK_INT(stack.end, RUNTIME_COMPLETE);
        CHECK_INT(stack.count, 30);
        CHECK_INT(stack.retries, 0);
        for (unsigned n = 0; n < 30; n++) {
            CHECK_INT(stack.frame[n].position, 2 * (29 - n));
            CHECK(stack.frame[n].code == CODES + (30 - n) * 0x200ull);
        }
        if (i >= 2) {
            CHECK_INT(batches, 1);
            CHECK(pieces_read <= (i % 2 == 1 ? 14 : 20));
        }
    }
}

/* ---- threads ---- */

static void second_thread(void)
{
    start_stack(PYTHON_VERSION(3, 11), 2);
    make_thread(OTHER_THREAD, 7);
    put64(INTERP + python.layout.interp.threads, OTHER_THREAD);
    put64(OTHER_THREAD + python.layout.thread.next, THREAD);
    walk(true);
    CHECK_TEXT(text(), "2 1e");
}

static void pthread_ids(void)
{
    start(PYTHON_VERSION(3, 7));
    make_thread(THREAD, TID);
    make_thread(OTHER_THREAD, 7);
    put64(INTERP + python.layout.interp.threads, OTHER_THREAD);
    put64(OTHER_THREAD + python.layout.thread.next, THREAD);
    make_frame(HEAP, 0, make_code(1), 0);
    set_top_frame(HEAP);
    walk(true);
    CHECK_TEXT(text(), "1e");
    put32(THREAD + 0x400 + python.tid_in_pthread, 8); /* the state is another thread's now */
    walk(true);
    CHECK_INT(stack.end, RUNTIME_NO_THREAD);
}

static void unknown_thread(void)
{
    start_stack(PYTHON_VERSION(3, 11), 2);
    put64(THREAD + python.layout.thread.native_thread_id, 7);
    walk(true);
    CHECK_INT(stack.end, RUNTIME_NO_THREAD);
    for (int i = 0; i < 50; i++) {
        walk(true);
        CHECK_INT(stack.end, RUNTIME_NO_THREAD);
        CHECK_INT(batches, 1);
    }
    make_thread(OTHER_THREAD, TID);
    put64(CFRAME + python.layout.thread.cframe_top, stack_frame(1));
    put64(INTERP + python.layout.interp.threads, OTHER_THREAD);
    put64(OTHER_THREAD + python.layout.thread.next, THREAD);
    walk(true);
    CHECK_INT(stack.end, RUNTIME_COMPLETE);
    CHECK_TEXT(text(), "1e");
}

/* Threads that C made get a new state for each call into Python; the old one's memory stays as it
 * was. */
static void newer_state(void)
{
    start_stack(PYTHON_VERSION(3, 14), 2);
    walk(true);
    make_thread(OTHER_THREAD, TID);
    put64(OTHER_THREAD + python.layout.thread.frame, HEAP);
    make_frame(HEAP, 0, make_code(9), 4);
    set_top_frame(0);
    put64(INTERP + python.layout.interp.threads, OTHER_THREAD);
    walk(true);
    CHECK_INT(stack.end, RUNTIME_COMPLETE);
    CHECK_TEXT(text(), "9e");
}

/* Up to 3.11 a thread that is being started has its parent's id until it runs. */
static void starting_state(void)
{
    for (int minor = 10; minor <= 11; minor++) {
        start(PYTHON_VERSION(3, minor));
        make_thread(THREAD, TID);
        make_frame(minor == 10 ? HEAP : CHUNK + 32, 0, make_code(1), 4);
        set_top_frame(minor == 10 ? HEAP : CHUNK + 32);
        make_thread(OTHER_THREAD, TID);
        if (minor == 11) { /* its own first _PyCFrame, in the state */
            put64(OTHER_THREAD + python.layout.thread.frame, OTHER_THREAD + 344);
        }
        put64(OTHER_THREAD + python.layout.thread.next, THREAD);
        put64(INTERP + python.layout.interp.threads, OTHER_THREAD);
        walk(true);
        CHECK_INT(stack.end, RUNTIME_COMPLETE);
        CHECK_TEXT(text(), "1e");
    }
}

/* A list that bites its tail, and a great many threads: neither is followed without end. */
static void endless_threads(void)
{
    start_stack(PYTHON_VERSION(3, 11), 2);
    put64(THREAD + python.layout.thread.native_thread_id, 7);
    put64(THREAD + python.layout.thread.next, THREAD);
    for (int i = 0; i < 250; i++) {
        walk(true);
        CHECK(batches <= 45);
    }
    CHECK_INT(stack.end, RUNTIME_NO_THREAD);
    CHECK_INT(batches, 1);
}

/* Two interpreters, and the thread has a state in both: the one whose status says active runs. */
static void active_state(void)
{
    uint64_t second = MEMORY + 0xf0000;
    start_stack(PYTHON_VERSION(3, 12), 1);
    put64(INTERP + python.layout.interp.next, second);
    put64(second + python.layout.interp.threads, OTHER_THREAD);
    make_thread(OTHER_THREAD, TID);
    put64(OTHER_THREAD + python.layout.thread.interp, second);
    put64(OTHER_THREAD + python.layout.thread.frame, CFRAME + 0x100);
    put64(CFRAME + 0x100 + python.layout.thread.cframe_top, HEAP);
    make_frame(HEAP, 0, make_code(9), 4);
    put32(OTHER_THREAD + python.layout.thread.status, 0x10);
    walk(true);
    CHECK_TEXT(text(), "9e");
    put32(OTHER_THREAD + python.layout.thread.status, 0);
    put32(THREAD + python.layout.thread.status, 0x10);
    walk(true);
    CHECK_TEXT(text(), "1e");
}

/* ---- marks ---- */

static void lock_and_collector(void)
{
    start_stack(PYTHON_VERSION(3, 11), 1);
    put64(RUNTIME + python.layout.runtime.current, THREAD);
    put32(INTERP + python.layout.interp.collecting, 1);
    walk(true);
    CHECK_INT(stack.marks, RUNTIME_HOLDS_LOCK | RUNTIME_IN_GC);
    CHECK_TEXT(text(), "1ec");
    put64(RUNTIME + python.layout.runtime.current, OTHER_THREAD);
    walk(true);
    CHECK_INT(stack.marks, RUNTIME_IN_GC);
    CHECK_TEXT(text(), "1e");
}

/* 3.12: the last holder holds it only while it is locked. */
static void lock_3_12(void)
{
    start_stack(PYTHON_VERSION(3, 12), 1);
    put64(INTERP + python.layout.interp.gil, HEAP);
    put64(HEAP + 8, THREAD);
    put32(HEAP + 16, 1);
    walk(true);
    CHECK_INT(stack.marks, RUNTIME_HOLDS_LOCK);
    put32(HEAP + 16, 0);
    walk(true);
    CHECK_INT(stack.marks, 0);
}

static void lock_3_15(void)
{
    start_stack(PYTHON_VERSION(3, 15), 1);
    put32(THREAD + python.layout.thread.gil_requested, 1);
    walk(true);
    CHECK_INT(stack.marks, RUNTIME_WAITS_LOCK);
    put32(THREAD + python.layout.thread.gil_requested, 0);
    put32(THREAD + python.layout.thread.holds_gil, 1);
    walk(true);
    CHECK_INT(stack.marks, RUNTIME_HOLDS_LOCK);
}

static uint64_t state_of(unsigned n)
{
    return MEMORY + 0x80000 + n * 0x1000ull;
}

/* Threads 100, 101 …, the first of which began last. */
static void make_threads(unsigned count)
{
    for (unsigned i = 0; i < count; i++) {
        make_thread(state_of(i), 100 + i);
        put64(state_of(i) + python.layout.thread.next, i + 1 < count ? state_of(i + 1) : 0);
    }
    put64(INTERP + python.layout.interp.threads, state_of(0));
}

static size_t running(uint32_t *tids, size_t most)
{
    struct memory_batch memory = {read_batch, NULL};
    batches = pieces_read = 0;
    size_t count = python_running(&python, &memory, tids, most);
    CHECK(count <= most && batches <= 4 + 2 * 7);
    return count;
}

/* 3.8 knows a thread by libc's number, 3.11 by its own, 3.12 has the lock elsewhere. */
static void who_runs(void)
{
    static const uint32_t versions[] = {PYTHON_VERSION(3, 8), PYTHON_VERSION(3, 11), PYTHON_VERSION(3, 12)};
    for (unsigned i = 0; i < 3; i++) {
        uint32_t tids[4] = {0};
        start(versions[i]);
        make_threads(9);
        CHECK_INT(running(tids, 4), 4);
        CHECK(tids[0] == 100 && tids[1] == 101 && tids[2] == 102 && tids[3] == 103);
        if (python.current != 0) {
            put64(python.current, state_of(8));
        } else {
            put64(INTERP + python.layout.interp.gil, HEAP);
            put64(HEAP + 8, state_of(8));
            put32(HEAP + 16, 1);
        }
        CHECK_INT(running(tids, 4), 4);
        CHECK(tids[0] == 108 && tids[1] == 100 && tids[2] == 101 && tids[3] == 102);
        CHECK_INT(running(tids, 1), 1);
        CHECK_INT(tids[0], 108);
        CHECK_INT(running(tids, 0), 0);
    }
}

static void who_runs_of_any_memory(void)
{
    uint32_t tids[8];
    start(PYTHON_VERSION(3, 12));
    make_threads(1);
    put64(state_of(0) + python.layout.thread.next, state_of(0)); /* a ring */
    CHECK_INT(running(tids, 8), 1);
    put64(INTERP + python.layout.interp.gil, 5); /* no address */
    CHECK_INT(running(tids, 8), 1);
    put64(state_of(0) + python.layout.thread.interp, HEAP); /* it became something else */
    CHECK_INT(running(tids, 8), 0);
    gone = true;
    CHECK_INT(running(tids, 8), 0);
}

/* Of several interpreters each has its number, the first one too; a single one tells none. */
static void numbered(void)
{
    uint64_t second = MEMORY + 0xf0000;
    start_stack(PYTHON_VERSION(3, 12), 1);
    walk(true);
    CHECK_INT(stack.interpreter, 0);
    put64(second + python.layout.interp.next, INTERP);
    put64(second + python.layout.interp.id, 7);
    put64(python.head, second);
    put32(THREAD + python.layout.thread.status, 0x10);
    walk(true);
    CHECK_INT(stack.interpreter, 1);
    make_thread(OTHER_THREAD, TID);
    put64(second + python.layout.interp.threads, OTHER_THREAD);
    put64(OTHER_THREAD + python.layout.thread.interp, second);
    put32(OTHER_THREAD + python.layout.thread.status, 0x10);
    put32(THREAD + python.layout.thread.status, 0);
    walk(true);
    CHECK_INT(stack.end, RUNTIME_COMPLETE);
    CHECK_INT(stack.interpreter, 8);
    CHECK(batches <= 5); /* once: the search */
    walk(true);
    CHECK_INT(batches, 1);
}

/* ---- tasks ---- */

#define STR_TYPE (MEMORY + 0x5800)
#define INT_TYPE (MEMORY + 0x5c00)
#define TASK (HEAP + 0x1000)
#define OTHER_TASK (HEAP + 0x1200)
#define NAME (HEAP + 0x1800)
#define OTHER_NAME (HEAP + 0x1a00)
#define RUNNING_AT 872 /* 3.14.10 */
#define NAME_AT 136

static void start_tasks(void)
{
    start_stack(PYTHON_VERSION(3, 14), 3);
    python.layout.object.str_state = 32;
    python.layout.object.str_length = 16;
    python.layout.object.str_ascii = 40;
    python.layout.object.str_compact = python.layout.object.str_pointer = 56;
    python_layout_kinds(&python.layout);
    python.str_type = STR_TYPE;
    python.int_type = INT_TYPE;
    python.task_fields = (uint64_t)RUNNING_AT << 32 | NAME_AT;
}

/* Compact, of ASCII or of `width` bytes each. */
static void make_name(uint64_t name, const void *characters, unsigned count, unsigned width)
{
    bool ascii = width == 1;
    memset(at(name), 0, 0x100);
    put64(name + 8, STR_TYPE);
    put64(name + 16, count);
    put32(name + 32, width << 2 | 0x20 | (ascii ? 0x40 : 0));
    memcpy(at(name + (ascii ? 40 : 56)), characters, (size_t)count * width);
}

static void run_task(uint64_t task, uint64_t name)
{
    put64(task + NAME_AT, name);
    put64(THREAD + RUNNING_AT, task);
}

static const char *task_text(void)
{
    static char out[RUNTIME_TASK_MAX + 1];
    CHECK(stack.task_bytes <= RUNTIME_TASK_MAX);
    snprintf(out, sizeof out, "%.*s", stack.task_bytes, stack.task);
    return out;
}

static void named_task(void)
{
    for (int proven = 0; proven < 2; proven++) {
        start_tasks();
        walk(proven);
        CHECK_TEXT(task_text(), "");
        unsigned without = (walk(proven), batches);
        make_name(NAME, "pay", 3, 1);
        run_task(TASK, NAME);
        walk(proven);
        CHECK_TEXT(task_text(), "pay");
        CHECK_INT(batches, without + 2);
        for (int i = 0; i < 3; i++) {
            walk(proven);
            CHECK_TEXT(task_text(), "pay");
            CHECK_INT(batches, 1); /* as long as it runs, it costs none */
        }
        put64(THREAD + RUNNING_AT, 0); /* the loop itself */
        walk(proven);
        CHECK_TEXT(task_text(), "");
        CHECK_INT(batches, 1);
        run_task(TASK, NAME);
        walk(proven);
        CHECK_TEXT(task_text(), "pay");
        CHECK_INT(batches, 1);
    }
}

/* Where a task was another one is now, or the same was given another name. */
static void renamed_task(void)
{
    start_tasks();
    make_name(NAME, "pay", 3, 1);
    make_name(OTHER_NAME, "ship", 4, 1);
    run_task(TASK, NAME);
    walk(true);
    run_task(TASK, OTHER_NAME);
    walk(true);
    CHECK_TEXT(task_text(), "ship");
    CHECK_INT(batches, 2);
    run_task(OTHER_TASK, NAME);
    walk(true);
    CHECK_TEXT(task_text(), "pay");
}

static void unnamed_task(void)
{
    start_tasks();
    put64(NAME + 8, INT_TYPE);
    put64(NAME + 16, 1 << 3); /* one digit, positive */
    put32(NAME + 24, 7);
    run_task(TASK, NAME);
    walk(true);
    CHECK_TEXT(task_text(), "Task-7");
    put64(NAME + 16, 2 << 3);
    put32(NAME + 28, 1);
    walk(true);
    CHECK_TEXT(task_text(), "Task-1073741831"); /* 2^30 + 7 */
    put64(NAME + 16, 3 << 3);
    walk(true);
    CHECK_TEXT(task_text(), "");
}

static void wide_names(void)
{
    uint16_t wide[80];
    start_tasks();
    make_name(NAME, (const uint16_t[]){0x4efb, 0xd800, 'x'}, 3, 2);
    run_task(TASK, NAME);
    walk(true);
    CHECK_TEXT(task_text(), "\xe4\xbb\xbb\xef\xbf\xbdx");
    make_name(NAME, (const uint32_t[]){0x1f600, 0x10ffff + 1}, 2, 4);
    walk(true);
    CHECK_TEXT(task_text(), "\xf0\x9f\x98\x80\xef\xbf\xbd");
    for (unsigned i = 0; i < 80; i++) {
        wide[i] = 0x4efb;
    }
    make_name(NAME, wide, 80, 2);
    walk(true);
    CHECK_INT(stack.task_bytes, 57); /* 19 of 3 bytes: as many as there is room for, none cut through */
}

/* Lengths that cannot be, and what is no str at all. */
static void hostile_names(void)
{
    start_tasks();
    make_name(NAME, "abc", 3, 1);
    put64(NAME + 16, UINT64_MAX);
    run_task(TASK, NAME);
    walk(true);
    CHECK_TEXT(task_text(), "");
    make_name(NAME, "abc", 3, 1);
    put64(NAME + 8, CODE_TYPE);
    walk(true);
    CHECK_TEXT(task_text(), "");
    run_task(TASK, 5);
    walk(true);
    CHECK_TEXT(task_text(), "");
    run_task(TASK, MEMORY + MEMORY_BYTES - 12); /* cut off before its type is whole */
    walk(true);
    CHECK_TEXT(task_text(), "");
    put64(THREAD + RUNNING_AT, 0x7fffffff0000); /* not mapped */
    walk(true);
    CHECK_INT(stack.end, RUNTIME_COMPLETE);
    CHECK_TEXT(task_text(), "");
}

static unsigned last_piece;

static void end_task(unsigned piece)
{
    if (piece == last_piece) {
        put64(THREAD + RUNNING_AT, 0);
        make_name(NAME, "else", 4, 1);
    }
}

/* A task that ends while its name is read, in whatever piece: it has its own name or none. */
static void ending_task(void)
{
    for (last_piece = 0; last_piece < 20; last_piece++) {
        start_tasks();
        make_name(NAME, "pay", 3, 1);
        run_task(TASK, NAME);
        at_piece = end_task;
        walk(false);
        CHECK(strcmp(task_text(), "pay") == 0 || strcmp(task_text(), "") == 0);
    }
}

/* The code of a module, a class or exec is freed once it has run: said when it is met, and for 64 stacks. */
static void short_lived(void)
{
    static const uint32_t versions[] = {PYTHON_VERSION(3, 8), PYTHON_VERSION(3, 14)};
    for (int i = 0; i < 2; i++) {
        start(versions[i]);
        make_thread(THREAD, TID);
        make_frame(HEAP, 0, make_code(1), 4);
        make_frame(HEAP + 0x400, HEAP, make_code(2), 4);
        set_top_frame(HEAP);
        walk(true);
        CHECK_INT(stack.marks & RUNTIME_SHORT_LIVED, 0);
        put32(make_code(2) + python.layout.code.flags, 0);
        set_top_frame(HEAP + 0x400);
        walk(i == 0);
        CHECK_INT(stack.end, RUNTIME_COMPLETE);
        CHECK_INT(stack.marks & RUNTIME_SHORT_LIVED, RUNTIME_SHORT_LIVED);
        for (unsigned n = 1; n < 64; n++) {
            walk(i == 0);
            CHECK_INT(stack.marks & RUNTIME_SHORT_LIVED, RUNTIME_SHORT_LIVED);
        }
        walk(i == 0);
        CHECK_INT(stack.marks & RUNTIME_SHORT_LIVED, 0);
    }
}

/* ---- code objects ---- */

static void fingerprints(void)
{
    start_stack(PYTHON_VERSION(3, 11), 1);
    unsigned char *code = at(make_code(1));
    uint64_t before = python_fingerprint(&python.layout, code);
    CHECK(before != 0);
    walk(true);
    CHECK(stack.frame[0].check == before);
    /* argcount is not in it, the table of lines is */
    code[python.layout.code.argcount]++;
    CHECK(python_fingerprint(&python.layout, code) == before);
    code[python.layout.code.lines]++;
    CHECK(python_fingerprint(&python.layout, code) != before);
}

/* The address is used again for another function: what the walk gives is the new one's. */
static void used_again(uint32_t version, unsigned depth)
{
    start_stack(version, 30);
    walk(true);
    walk(true);
    uint64_t code = make_code(30 - depth);
    put32(code + python.layout.code.first_line, 777);
    if (python.layout.interp.code_generation != LAYOUT_NONE) {
        put64(INTERP + python.layout.interp.code_generation, 1);
    }
    uint64_t now = python_fingerprint(&python.layout, at(code));
    for (int i = 0; i < 16 && stack.frame[depth].check != now; i++) {
        walk(true);
    }
    CHECK(stack.frame[depth].check == now);
}

static void used_again_everywhere(void)
{
    used_again(PYTHON_VERSION(3, 11), 0);
    used_again(PYTHON_VERSION(3, 11), 20);
    used_again(PYTHON_VERSION(3, 14), 0);
    used_again(PYTHON_VERSION(3, 14), 20);
}

/* From 3.14 on the very next sample has it, at any depth. */
static void counted(void)
{
    start_stack(PYTHON_VERSION(3, 14), 30);
    for (int i = 0; i < 100; i++) {
        walk(true);
    }
    CHECK_INT(batches, 1);
    uint64_t code = make_code(5);
    put32(code + python.layout.code.first_line, 777);
    put64(INTERP + python.layout.interp.code_generation, 1);
    walk(true);
    CHECK(stack.frame[25].check == python_fingerprint(&python.layout, at(code)));
}

/* Up to 3.13 a fingerprint is trusted for 32 samples at most without being read again. */
static void trusted(void)
{
    start_stack(PYTHON_VERSION(3, 11), 3);
    walk(true);
    set_top_frame(stack_frame(2));
    for (int i = 0; i < 40; i++) {
        walk(true);
    }
    uint64_t code = make_code(3);
    put32(code + python.layout.code.first_line, 777);
    set_top_frame(stack_frame(3));
    walk(true);
    CHECK(stack.frame[0].check == python_fingerprint(&python.layout, at(code)));
}

/* An address was seen to be used again: from then on every code object is read in every sample. */
static void churning(void)
{
    start_stack(PYTHON_VERSION(3, 11), 30);
    walk(true);
    walk(true);
    put32(make_code(30) + python.layout.code.first_line, 777);
    walk(true);
    for (unsigned i = 1; i < 30; i++) {
        put32(make_code(i) + python.layout.code.first_line, 777);
        walk(true);
        uint64_t now = python_fingerprint(&python.layout, at(CODES + i * 0x200));
        CHECK(stack.frame[30 - i].check == now);
        put32(make_code(i) + python.layout.code.first_line, 778);
    }
}

static void no_code(void)
{
    start_stack(PYTHON_VERSION(3, 11), 2);
    put64(make_code(1) + python.layout.object.type, CODE_TYPE + 8);
    walk(true);
    CHECK_INT(stack.end, RUNTIME_TORN);
    CHECK_INT(stack.count, 0);
    make_stack(2);
    put64(stack_frame(2) + python.layout.frame.position, make_code(2) + 184 + 200);
    walk(true); /* behind its 100 units */
    CHECK_INT(stack.end, RUNTIME_TORN);
    memset(plan, 0, sizeof plan);
    walk(true);
    CHECK_INT(stack.end, RUNTIME_TORN);
}

/* ---- torn ---- */

/* The thread goes on: of the functions 1 2 3 the last two are replaced by 5 6, again and again. */
static unsigned swap_at[8], swap_count;

static void swap(unsigned piece)
{
    for (unsigned i = 0; i < swap_count; i++) {
        if (swap_at[i] == piece) {
            bool fives = at(stack_frame(2))[python.layout.frame.code + 1] ==
                         (unsigned char)(make_code(5) >> 8);
            make_frame(stack_frame(2), stack_frame(1), make_code(fives ? 2 : 5), 4);
            make_frame(stack_frame(3), stack_frame(2), make_code(fives ? 3 : 6), 4);
        }
    }
}

static void torn_once(void)
{
    start_stack(PYTHON_VERSION(3, 14), 3);
    walk(false);
    walk(false);
    CHECK_INT(batches, 1);
    unsigned pieces = pieces_read;
    /* wherever in the batch it happens: one of the two stacks, never a mixture */
    for (unsigned i = 0; i <= pieces; i++) {
        make_stack(3);
        swap_at[0] = i;
        swap_count = 1;
        at_piece = swap;
        walk(false);
        CHECK_INT(stack.end, RUNTIME_COMPLETE);
        CHECK(strcmp(text(), "3 2 1e") == 0 || strcmp(text(), "6 5 1e") == 0);
        CHECK(stack.retries <= 1);
    }
}

/* Only the top moves, from function 3 to 2: what lies below is the same in both. */
static void pop(unsigned piece)
{
    if (piece == swap_at[0]) {
        set_top_frame(stack_frame(2));
    }
}

static void torn_top(void)
{
    unsigned retries = 0;
    start_stack(PYTHON_VERSION(3, 11), 3);
    walk(false);
    walk(false);
    unsigned pieces = pieces_read;
    for (unsigned i = 0; i <= pieces; i++) {
        make_stack(3);
        swap_at[0] = i;
        at_piece = pop;
        walk(false);
        CHECK(strcmp(text(), "3 2 1e") == 0 || strcmp(text(), "2 1e") == 0);
        retries += stack.retries;
    }
    CHECK(retries >= 2); /* at both copies of the frames, at least */
}

/* At every other piece: the two copies of the window are two pieces apart. */
static void swap_always(unsigned piece)
{
    swap_at[0] = piece & ~1u;
    swap_count = 1;
    swap(piece);
}

/* ---- parts ---- */

static void parts_of_a_change(void)
{
    unsigned parts = 0;
    start_stack(PYTHON_VERSION(3, 14), 3);
    walk_parts();
    walk_parts();
    CHECK_INT(batches, 1);
    CHECK_TEXT(text(), "3 2 1e"); /* it stood */
    unsigned pieces = pieces_read;
    make_code(5), make_code(6);
    for (unsigned i = 0; i <= pieces; i++) {
        make_stack(3);
        swap_at[0] = i;
        swap_count = 1;
        at_piece = swap;
        walk_parts();
        CHECK_INT(stack.end, RUNTIME_COMPLETE);
        CHECK_INT(stack.retries, 0);
        CHECK(strcmp(text(), "3 2 1e") == 0 || strcmp(text(), "6 5 1e") == 0 || strcmp(text(), "1ep") == 0);
        parts += strcmp(text(), "1ep") == 0;
    }
    CHECK(parts >= 1 && parts <= 3); /* between the copies of the frames */
}

/* The frame that was popped is still in memory, and the same in both copies: but no top leads to it any more. */
static void parts_of_a_return(void)
{
    unsigned parts = 0;
    start_stack(PYTHON_VERSION(3, 11), 3);
    walk_parts();
    walk_parts();
    unsigned pieces = pieces_read;
    for (unsigned i = 0; i <= pieces; i++) {
        make_stack(3);
        swap_at[0] = i;
        at_piece = pop;
        walk_parts();
        CHECK(strcmp(text(), "3 2 1e") == 0 || strcmp(text(), "2 1e") == 0 || strcmp(text(), "2 1ep") == 0 ||
              strcmp(text(), "2p 1e") == 0);
        parts += strcmp(text(), "2p 1e") == 0;
        CHECK_INT(stack.retries, 0);
    }
    CHECK(parts >= 1);
}

static void parts_of_heap_frames(void)
{
    start(PYTHON_VERSION(3, 8));
    make_thread(THREAD, TID);
    make_frame(HEAP, 0, make_code(1), 8);
    make_frame(HEAP + 0x1000, HEAP, make_code(2), 6);
    make_frame(HEAP + 0x400, HEAP + 0x1000, make_code(3), 6);
    set_top_frame(HEAP + 0x400);
    walk_parts();
    walk_parts();
    CHECK_INT(batches, 1);
    CHECK_TEXT(text(), "3e 2e 1e");
}

/* The leaf is replaced; between it and its caller stands what an interpreter loop that was entered has instead of a
 * frame: nobody's function. */
static void replace_leaf(unsigned piece)
{
    if (piece == swap_at[0]) {
        put64(stack_frame(2) + python.layout.frame.code, make_code(5));
        put64(stack_frame(2) + python.layout.frame.position, make_code(5) + python.layout.code.bytecode + 4);
    }
}

static void parts_end_at_a_function(void)
{
    unsigned parts = 0;
    for (unsigned i = 0; i < 24; i++) {
        start_stack(PYTHON_VERSION(3, 12), 2);
        make_shim(C_STACK, 0);
        put64(stack_frame(1) + python.layout.frame.previous, C_STACK);
        make_shim(C_STACK + 0x800, stack_frame(1));
        put64(stack_frame(2) + python.layout.frame.previous, C_STACK + 0x800);
        make_code(5);
        walk_parts();
        walk_parts();
        CHECK_TEXT(text(), "2e 1e");
        swap_at[0] = i;
        at_piece = replace_leaf;
        walk_parts();
        CHECK(strcmp(text(), "2e 1e") == 0 || strcmp(text(), "5e 1e") == 0 || strcmp(text(), "1ep") == 0);
        parts += strcmp(text(), "1ep") == 0;
    }
    CHECK(parts >= 1);
}

/* One call for both copies, and no other: who samples may not choose its moments. */
static void parts_of_what_always_changes(void)
{
    start_stack(PYTHON_VERSION(3, 14), 3);
    walk_parts();
    make_code(5), make_code(6);
    at_piece = swap_always;
    walk_parts();
    CHECK_INT(stack.end, RUNTIME_COMPLETE);
    CHECK_INT(stack.retries, 0);
    CHECK(stack.count == 1 || stack.count == 3);
}

/* The leaf's function and the generator below it change together, their addresses do not. */
static void swap_generator(unsigned piece)
{
    if (piece == swap_at[0]) {
        make_frame(stack_frame(2), HEAP, make_code(5), 4);
        make_frame(HEAP, stack_frame(1), make_code(6), 4);
        set_owner(HEAP, OWNER_GENERATOR);
    }
}

/* The first sample of a thread reads the generator in a batch of its own. */
static void torn_between_batches(void)
{
    for (unsigned i = 0; i < 60; i++) {
        start_stack(PYTHON_VERSION(3, 14), 2);
        make_frame(HEAP, stack_frame(1), make_code(3), 4);
        set_owner(HEAP, OWNER_GENERATOR);
        put64(stack_frame(2) + python.layout.frame.previous, HEAP);
        make_code(5);
        make_code(6);
        swap_at[0] = i;
        at_piece = swap_generator;
        walk(false);
        CHECK_INT(stack.end, RUNTIME_COMPLETE);
        CHECK(strcmp(text(), "2 3 1e") == 0 || strcmp(text(), "5 6 1e") == 0);
    }
}

static void torn_always(void)
{
    start_stack(PYTHON_VERSION(3, 14), 3);
    at_piece = swap_always;
    walk(false);
    CHECK_INT(stack.end, RUNTIME_TORN);
    CHECK_INT(stack.retries, 4);
    CHECK_INT(stack.count, 0);
}

static void contradictions(void)
{
    start_stack(PYTHON_VERSION(3, 11), 3);
    put64(stack_frame(2) + python.layout.frame.previous, stack_frame(2)); /* to itself */
    walk(true);
    CHECK_INT(stack.end, RUNTIME_TORN);
    CHECK_INT(stack.retries, 0);
    make_stack(5);
    put64(stack_frame(3) + python.layout.frame.previous, stack_frame(5)); /* upwards */
    put64(stack_frame(5) + python.layout.frame.previous, 0);
    set_top_frame(stack_frame(3));
    walk(true);
    CHECK_INT(stack.end, RUNTIME_TORN);
    make_stack(3);
    put64(stack_frame(2) + python.layout.frame.previous, MEMORY - 0x1000); /* nowhere */
    walk(true);
    CHECK_INT(stack.end, RUNTIME_TORN);
    make_stack(3);
    set_owner(stack_frame(2), 9);
    walk(true);
    CHECK_INT(stack.end, RUNTIME_TORN);
}

/* Just popped: the leaf lies at the top of the stack. Its bytes are whole only while the thread
 * stands still. */
static void popped(void)
{
    start_stack(PYTHON_VERSION(3, 11), 3);
    put64(THREAD + python.layout.thread.top, stack_frame(3));
    walk(true);
    CHECK_INT(stack.end, RUNTIME_COMPLETE);
    CHECK_TEXT(text(), "3 2 1e");
    walk(false);
    CHECK_INT(stack.end, RUNTIME_TORN);
}

static void ring(void)
{
    start(PYTHON_VERSION(3, 8));
    make_thread(THREAD, TID);
    for (unsigned i = 0; i < 5; i++) {
        make_frame(HEAP + i * 0x400, HEAP + (i + 1) % 5 * 0x400, make_code(1), 4);
    }
    set_top_frame(HEAP);
    walk(true);
    CHECK_INT(stack.end, RUNTIME_TORN);
    CHECK(batches < 10);
}

static void ended(void)
{
    start_stack(PYTHON_VERSION(3, 11), 3);
    walk(true);
    gone = true;
    walk(true);
    CHECK_INT(stack.end, RUNTIME_UNREADABLE);
    CHECK_INT(stack.count, 0);
}

TESTS({"frame objects are read leaf first, each an entry", heap_frames},
      {"3.10 counts positions in units", units_3_10},
      {"3.11 marks entries itself", entries_3_11},
      {"a shim makes its caller's last frame an entry and shows only as the leaf", shims},
      {"tags are taken off, and 3.15's chain ends at the base frame", tags_and_base},
      {"a position in a thread's own copy of bytecode is found", own_copy},
      {"a thread without frames, or of an ending interpreter, is empty", runs_nothing},
      {"3000 frames over many chunks keep both ends", deep},
      {"the kept root part is in order", kept_in_order},
      {"a deep chain of frame objects is read in windows", deep_on_heap},
      {"a warm sample takes one batch", warm},
      {"a cframe that moved costs one more batch", moved_cframe},
      {"a chain of frame objects as it was takes one batch", warm_heap},
      {"frame objects of one page are one piece, in whatever order they lie", pages_of_heap},
      {"the thread is found behind others", second_thread},
      {"up to 3.10 the thread is found by libc's tid, and lost with it", pthread_ids},
      {"an unknown thread costs one batch until there is a new one", unknown_thread},
      {"a thread's newer state takes the older one's place", newer_state},
      {"a state that is being started is not its parent's", starting_state},
      {"an endless list of threads is not followed without end", endless_threads},
      {"of a thread's states the active one is read", active_state},
      {"the lock's holder and the collector are marked", lock_and_collector},
      {"3.12: the last holder counts while it is locked", lock_3_12},
      {"3.15 says who waits for the lock", lock_3_15},
      {"who may run is named: the lock's holder, then those that began last", who_runs},
      {"lists of threads that lead nowhere name nobody twice", who_runs_of_any_memory},
      {"of several interpreters the one that runs is told", numbered},
      {"a task's name costs two batches once, then none", named_task},
      {"another task, or another name, is read anew", renamed_task},
      {"a task that nobody named has its number", unnamed_task},
      {"names of any characters are UTF-8 and cut between them", wide_names},
      {"what is no name gives none", hostile_names},
      {"a task that ends while it is read has its own name or none", ending_task},
      {"code that is freed once it has run is said to be new", short_lived},
      {"fingerprints tell functions apart", fingerprints},
      {"an address used again gets the new fingerprint soon", used_again_everywhere},
      {"from 3.14 on it gets it at once", counted},
      {"a fingerprint that was not read for long is not trusted", trusted},
      {"where addresses are used again, all are read in every sample", churning},
      {"what is no code object, or behind its end, is torn", no_code},
      {"a stack that changes once is read again, never mixed", torn_once},
      {"a top that moves while the frames are read is noticed", torn_top},
      {"a stack that changes between two batches is read again", torn_between_batches},
      {"a stack that always changes is torn", torn_always},
      {"of a stack that changes the part that stood is told, in one batch", parts_of_a_change},
      {"a frame that was returned from is no part of it", parts_of_a_return},
      {"frames on the heap that stand are whole", parts_of_heap_frames},
      {"a part ends at a function", parts_end_at_a_function},
      {"a stack that always changes is not read again for its parts", parts_of_what_always_changes},
      {"a contradiction is torn, and not read again when proven", contradictions},
      {"a frame that was just popped counts only when proven", popped},
      {"a ring of frames is torn", ring},
      {"a process that ended is unreadable", ended})
