/*
 * python_process: a process that runs CPython, as far as its structures go, in an array.
 *
 *     process_make(&p, &families[3], 2);
 *     process_attach(&p, &state, &err);
 *
 * Every structure stands at a place of its own (enum place), ELF address 0 is PROCESS_BASE. Fields
 * are put where the headers of the family's version have them: literals, not the product's tables.
 */
#ifndef PYTHON_PROCESS_H
#define PYTHON_PROCESS_H

#include "python_offsets.h"
#include "runtime/python/private.h"

#include <string.h>

#define PROCESS_BASE 0x700000000000ULL

enum { PROCESS_BYTES = 0x20000, PROCESS_THREADS_MAX = 8, PROCESS_PID = 4711, ABSENT = -1 };

enum place {
    PLACE_TEXTS = 0x200,
    PLACE_CODE_TYPE = 0x800,
    PLACE_MEMBERS = 0xa00,
    PLACE_RUNTIME = 0x1000,  /* in the file's data */
    PLACE_BSS = 0x4000,
    PLACE_HEAD = 0x4010,     /* interp_head */
    PLACE_CURRENT = 0x4020,  /* _PyThreadState_Current */
    PLACE_VERSION = 0x4100,  /* what Py_GetVersion gives */
    PLACE_HEAP = 0x8000,
    PLACE_INTERP = 0x9000,
    PLACE_THREAD = 0xc000,   /* 0x400 each */
    PLACE_FRAME = 0xe000,    /* 0x100 each */
    PLACE_CFRAME = 0xea00,   /* 0x10 each */
    PLACE_CODE = 0xf000,
    PLACE_PTHREAD = 0x10000, /* 0x1000 each */
};

struct family {
    uint32_t version;
    const uint64_t *offsets; /* 3.13 on */
    size_t offsets_count;
    int head, current;       /* in _PyRuntime; ABSENT: symbols of their own */
    int threads;             /* PyInterpreterState */
    int next, interp, frame, id, native; /* PyThreadState */
    int f_code, f_previous;
    int cframe_top;
    int argcount, flags, first_line, file, name, qualname, lines; /* PyCodeObject */
    const char *lines_name;
    int basic_size;
};

static const struct family families[] = {
    {0x020712f0, NULL, 0, ABSENT, ABSENT, 8, 0, 8, 16, 144, ABSENT, 32, 24, ABSENT,
     16, 28, 96, 80, 88, ABSENT, 104, "co_lnotab", 128},
    {0x03060ff0, NULL, 0, ABSENT, ABSENT, 8, 8, 16, 24, 152, ABSENT, 32, 24, ABSENT,
     16, 32, 36, 96, 104, ABSENT, 112, "co_lnotab", 144},
    {0x030812f0, NULL, 0, 32, 1368, 8, 8, 16, 24, 176, ABSENT, 32, 24, ABSENT,
     16, 36, 40, 104, 112, ABSENT, 120, "co_lnotab", 176},
    {0x030a0df0, NULL, 0, 32, 568, 8, 8, 16, 24, 176, ABSENT, 32, 24, ABSENT,
     16, 36, 40, 104, 112, ABSENT, 120, "co_linetable", 176},
    {0x030b07f0, NULL, 0, 40, 576, 16, 8, 16, 56, 152, 160, 32, 48, 8,
     56, 48, 72, 112, 120, 128, 136, "co_linetable", 184},
    {0x030c01f0, NULL, 0, 40, ABSENT, 72, 8, 16, 56, 136, 144, 0, 8, 0,
     52, 48, 68, 112, 120, 128, 136, "co_linetable", 192},
    {0x030d05f0, offsets_3_13, sizeof offsets_3_13 / 8, 632, ABSENT, 7344, 8, 16, 72, 152, 160, 0,
     8, ABSENT, 52, 48, 68, 112, 120, 128, 136, "co_linetable", 200},
};
enum { PY_2_7, PY_3_6, PY_3_8, PY_3_10, PY_3_11, PY_3_12, PY_3_13, FAMILIES };

struct python_process {
    unsigned char bytes[PROCESS_BYTES];
    const struct family *family;
    struct python_binary binary;
    uint32_t tids[PROCESS_THREADS_MAX];
    size_t threads;
    struct runtime_map maps[3];
    unsigned shift;   /* of objects: 16 where they are linked */
    unsigned reads;
    size_t bytes_read;
    bool denied;
};

static inline uint64_t at(uint64_t place)
{
    return PROCESS_BASE + place;
}

static inline void put(struct python_process *p, uint64_t place, uint64_t value, size_t width)
{
    for (size_t i = 0; i < width; i++) {
        p->bytes[place + i] = (unsigned char)(value >> 8 * i);
    }
}

static inline void put_word(struct python_process *p, uint64_t place, uint64_t value)
{
    put(p, place, value, 8);
}

static inline uint64_t place_thread(size_t i)
{
    return PLACE_THREAD + i * 0x400;
}

/* Reads like the kernel: up to the first byte that is not there. */
static inline bool process_read(void *context, struct memory_piece *pieces, size_t count,
                                struct err *err)
{
    struct python_process *p = context;
    if (p->denied) {
        return err_set(err, ERR_DENIED, 1, "not allowed");
    }
    p->reads++;
    for (size_t i = 0; i < count; i++) {
        uint64_t from = pieces[i].address - PROCESS_BASE;
        uint64_t have = from < PROCESS_BYTES ? PROCESS_BYTES - from : 0;
        pieces[i].got = (uint32_t)(pieces[i].len < have ? pieces[i].len : have);
        if (pieces[i].got > 0) {
            memcpy(pieces[i].out, p->bytes + from, pieces[i].got);
        }
        p->bytes_read += pieces[i].got;
    }
    return true;
}

static inline void put_member(struct python_process *p, unsigned index, const char *name,
                              int offset)
{
    uint64_t record = PLACE_MEMBERS + index * 40, text = PLACE_TEXTS + 0x40 + index * 0x20;
    strcpy((char *)p->bytes + text, name);
    put_word(p, record, at(text));
    put_word(p, record + 16, (uint64_t)offset + p->shift);
}

static inline void put_code_type(struct python_process *p)
{
    const struct family *f = p->family;
    uint64_t type = PLACE_CODE_TYPE + p->shift;
    const struct {
        const char *name;
        int offset;
    } members[] = {{"co_argcount", f->argcount}, {"co_flags", f->flags}, {"co_nlocals", 20},
                   {"co_firstlineno", f->first_line}, {"co_filename", f->file},
                   {"co_name", f->name}, {f->lines_name, f->lines}, {"co_qualname", f->qualname}};
    strcpy((char *)p->bytes + PLACE_TEXTS, "code");
    put_word(p, type + 24, at(PLACE_TEXTS));   /* tp_name */
    put_word(p, type + 32, (uint64_t)f->basic_size + p->shift);
    put_word(p, type + 240, at(PLACE_MEMBERS));
    for (unsigned i = 0; i < 8 - (f->qualname == ABSENT); i++) {
        put_member(p, i, members[i].name, members[i].offset);
    }
    put_word(p, PLACE_CODE + 8 + p->shift, at(PLACE_CODE_TYPE));
}

static inline void put_thread(struct python_process *p, size_t i)
{
    const struct family *f = p->family;
    uint64_t thread = place_thread(i);
    uint64_t frame = PLACE_FRAME + i * 0x100, cframe = PLACE_CFRAME + i * 16;
    bool is_last = i + 1 == p->threads;
    unsigned frame_shift = f->cframe_top == ABSENT && f->offsets == NULL ? p->shift : 0;
    put_word(p, thread + (uint64_t)f->next, is_last ? 0 : at(place_thread(i + 1)));
    put_word(p, thread + (uint64_t)f->interp, at(PLACE_INTERP));
    put_word(p, thread + (uint64_t)f->id, at(PLACE_PTHREAD + i * 0x1000));
    put_word(p, frame + (uint64_t)f->f_code + frame_shift, at(PLACE_CODE));
    put_word(p, frame + (uint64_t)f->f_previous + frame_shift, 0);
    put_word(p, thread + (uint64_t)f->frame, f->cframe_top == ABSENT ? at(frame) : at(cframe));
    if (f->cframe_top != ABSENT) {
        put_word(p, cframe + (uint64_t)f->cframe_top, at(frame));
    }
    p->tids[i] = PROCESS_PID + (uint32_t)i;
    put(p, PLACE_PTHREAD + i * 0x1000 + 720, p->tids[i], 4); /* glibc's struct pthread on x86-64 */
    if (f->native != ABSENT) {
        put_word(p, thread + (uint64_t)f->native, p->tids[i]);
    }
}

static inline void put_interpreter(struct python_process *p)
{
    const struct family *f = p->family;
    uint64_t head = f->head == ABSENT ? PLACE_HEAD : PLACE_RUNTIME + (uint64_t)f->head;
    for (size_t i = 0; i < f->offsets_count; i++) {
        put_word(p, PLACE_RUNTIME + i * 8, f->offsets[i]);
    }
    put_word(p, head, at(PLACE_INTERP));
    put_word(p, head + (f->head == ABSENT ? 24 : 8), at(PLACE_INTERP)); /* the main interpreter */
    put_word(p, PLACE_INTERP + (uint64_t)f->threads, at(place_thread(0)));
    put_word(p, f->current == ABSENT ? PLACE_CURRENT : PLACE_RUNTIME + (uint64_t)f->current,
             f->offsets == NULL && f->version < 0x030c0000 ? at(place_thread(0)) : 0);
}

static inline void process_make_shifted(struct python_process *p, const struct family *f,
                                        size_t threads, unsigned shift)
{
    memset(p, 0, sizeof *p);
    p->family = f;
    p->threads = threads;
    p->shift = shift;
    p->binary = (struct python_binary){.version = f->version, .machine = ELF_X86_64,
                                       .code_type = PLACE_CODE_TYPE};
    if (f->head == ABSENT) {
        p->binary.interp_head = PLACE_HEAD;
        p->binary.current = PLACE_CURRENT;
    } else {
        p->binary.runtime = PLACE_RUNTIME;
    }
    p->maps[0] = (struct runtime_map){at(0), at(PLACE_BSS), 0x5000, 3, true, false};
    p->maps[1] = (struct runtime_map){at(PLACE_BSS), at(PLACE_HEAP), 0, 3, false, true};
    p->maps[2] = (struct runtime_map){at(PLACE_HEAP), at(PROCESS_BYTES), 0, 3, false, true};
    put_code_type(p);
    put_interpreter(p);
    for (size_t i = 0; i < threads; i++) {
        put_thread(p, i);
    }
}

static inline void process_make(struct python_process *p, const struct family *f, size_t threads)
{
    process_make_shifted(p, f, threads, 0);
}

static inline enum runtime_answer process_attach(struct python_process *p, struct python **state,
                                                 struct err *err)
{
    struct memory_batch memory = {process_read, p};
    struct runtime_process process = {.pid = PROCESS_PID, .bias = PROCESS_BASE, .memory = &memory,
                                      .maps = p->maps, .map_count = 3, .tids = p->tids,
                                      .tid_count = p->threads};
    void *found = NULL;
    p->reads = 0;
    p->bytes_read = 0;
    enum runtime_answer answer = python_attach(&p->binary, &process, &found, err);
    *state = found;
    return answer;
}

#endif
