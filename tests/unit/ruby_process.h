/*
 * ruby_process: a process that runs Ruby, as far as its structures go, in an array: threads whose stacks are
 * <main> > Shop#sell (a method, `method`) > each (a C function) > block in Shop#sell, leaf last.
 *
 * Every structure stands at a place of its own, ELF address 0 is RUBY_BASE. Fields are put where the headers of the
 * family's version have them: literals, not the product's table.
 */
#ifndef RUBY_PROCESS_H
#define RUBY_PROCESS_H

#include "runtime/ruby/private.h"

#define RUBY_BASE 0x700000000000ULL

enum {
    RUBY_BYTES = 0x60000, RUBY_THREADS = 4, RUBY_TID = 4711, RUBY_ABSENT = -1,
    AT_DATA = 0x1000, AT_VM_POINTER = 0x1010, AT_SYMBOLS = 0x1200,
    AT_HEAP = 0x2000, AT_VM = 0x2000, AT_RACTOR = 0x3000, AT_OBJSPACE = 0x3800,
    AT_THREAD = 0x4000,   /* 0x400 each */
    AT_NATIVE = 0x5000,   /* 0x100 each */
    AT_EC = 0x6000,       /* 0x100 each */
    AT_ISEQ = 0x8000,     /* 0x1000 each: itself, body, code, lines, index */
    AT_METHOD = 0xc000,   /* 0x100 each: itself, definition */
    AT_CLASS = 0xd000,    /* 0x200 each */
    AT_STRING = 0xe000,   /* 0x80 each */
    AT_IDS = 0x10000, AT_ID_BLOCK = 0x10100, AT_ID_LIST = 0x10200,
    AT_PTHREAD = 0x18000, /* 0x800 each */
    AT_STACK = 0x20000, STACK_BYTES = 0x8000,
    ISEQ_MAIN = 0, ISEQ_SELL = 1, ISEQ_BLOCK = 2, EACH_ID = 3000,
};

struct ruby_family {
    uint32_t version;
    int main_thread, threads, ractors, running;          /* rb_vm_t */
    int node, ractor_threads, ractor_running;            /* rb_ractor_t */
    int vm, ec, native, pthread, back;                   /* rb_thread_t; rb_native_thread; thread_ptr */
    int frame_bytes;
    int local, lines, count, index, entry;               /* rb_iseq_constant_body */
    int tagged, long_strings, last_operator, path;
    int objspace, gc_flags;                              /* rb_vm_t; rb_objspace_t */
    int ep, flags;        /* in a frame; flags 0: an environment has them */
    int shift, old_place; /* up to 2.4, in a body */
};

static const struct ruby_family ruby_families[] = {
    {RUBY_VERSION(2, 5, 3), 280, 312, RUBY_ABSENT, RUBY_ABSENT, 0, 0, 0, 24, 32, RUBY_ABSENT, 72, 72, 48,
     144, 112, 200, RUBY_ABSENT, 12, 1, 0, 166, RUBY_ABSENT, RUBY_ABSENT, 0},
    {RUBY_VERSION(2, 6, 10), 192, 312, RUBY_ABSENT, RUBY_ABSENT, 0, 0, 0, 24, 32, RUBY_ABSENT, 72, 56, 56,
     176, 120, 136, 144, 8, 1, 0, 164, RUBY_ABSENT, RUBY_ABSENT, 0},
    {RUBY_VERSION(2, 7, 8), 192, 312, RUBY_ABSENT, 8, 0, 0, 0, 24, 32, RUBY_ABSENT, 72, 56, 56,
     176, 120, 136, 144, 8, 1, 0, 168, RUBY_ABSENT, 1152, 16},
    {RUBY_VERSION(3, 0, 7), 40, RUBY_ABSENT, 8, RUBY_ABSENT, 568, 304, 336, 32, 40, RUBY_ABSENT, 80, 56, 56,
     176, 120, 136, 144, 8, 1, 0, 168, RUBY_ABSENT, RUBY_ABSENT, 0},
    {RUBY_VERSION(3, 1, 9), 40, RUBY_ABSENT, 8, RUBY_ABSENT, 568, 304, 336, 32, 40, RUBY_ABSENT, 80, 48, 64,
     176, 120, 136, 144, 12, 1, 0, 169, RUBY_ABSENT, 1104, 16},
    {RUBY_VERSION(3, 2, 11), 40, RUBY_ABSENT, 8, RUBY_ABSENT, 568, 304, 336, 32, 48, 40, 8, 48, 64,
     168, 112, 128, 136, 12, 0, 1, 169, RUBY_ABSENT, 1128, 16},
    {RUBY_VERSION(3, 3, 0), 40, RUBY_ABSENT, 8, RUBY_ABSENT, 432, 256, 328, 32, 48, 40, 16, 48, 56,
     168, 112, 128, 136, 12, 0, 1, 169, 152, 1304, 16},
    {RUBY_VERSION(3, 4, 99), 40, RUBY_ABSENT, 8, RUBY_ABSENT, 432, 256, 328, 32, 48, 40, 16, 48, 56,
     168, 112, 128, 136, 12, 0, 1, 170, 152, 1296, 20},
    {RUBY_VERSION(4, 0, 5), 40, RUBY_ABSENT, 8, RUBY_ABSENT, 360, 184, 256, 32, 48, 40, 16, 48, 56,
     176, 112, 128, 136, 12, 0, 1, 171, 152, 1248, 28},
    {RUBY_VERSION(4, 0, 6), 40, RUBY_ABSENT, 8, RUBY_ABSENT, 368, 184, 256, 32, 48, 40, 16, 48, 56,
     176, 112, 128, 136, 12, 0, 1, 171, 152, 1256, 28},
    {RUBY_VERSION(2, 3, 4), 280, 296, RUBY_ABSENT, RUBY_ABSENT, 0, 0, 0, 24, 32, RUBY_ABSENT, 144, RUBY_ABSENT, 64,
     144, 112, 200, RUBY_ABSENT, 8, 1, 0, 168, RUBY_ABSENT, RUBY_ABSENT, 0, 40, 24, 8, 8},
    {RUBY_VERSION(2, 3, 8), 280, 312, RUBY_ABSENT, RUBY_ABSENT, 0, 0, 0, 24, 32, RUBY_ABSENT, 144, RUBY_ABSENT, 64,
     144, 112, 200, RUBY_ABSENT, 8, 1, 0, 168, RUBY_ABSENT, RUBY_ABSENT, 0, 40, 24, 8, 8},
    {RUBY_VERSION(2, 4, 1), 280, 296, RUBY_ABSENT, RUBY_ABSENT, 0, 0, 0, 24, 32, RUBY_ABSENT, 136, RUBY_ABSENT, 48,
     136, 104, 192, RUBY_ABSENT, 8, 1, 0, 168, RUBY_ABSENT, RUBY_ABSENT, 0, 32, 0, 0, 8},
    {RUBY_VERSION(2, 4, 10), 280, 312, RUBY_ABSENT, RUBY_ABSENT, 0, 0, 0, 24, 32, RUBY_ABSENT, 136, RUBY_ABSENT, 48,
     136, 104, 192, RUBY_ABSENT, 8, 1, 0, 168, RUBY_ABSENT, RUBY_ABSENT, 0, 32, 0, 0, 8},
};
enum { RUBY_FAMILIES = sizeof ruby_families / sizeof ruby_families[0] };

struct ruby_process {
    unsigned char bytes[RUBY_BYTES];
    const struct ruby_family *family;
    struct ruby_binary binary;
    struct runtime_map maps[2];
    uint32_t tids[RUBY_THREADS];
    uint64_t cfp[RUBY_THREADS]; /* of its leaf */
    unsigned reads, pieces;
    bool gone;
    void (*at_piece)(struct ruby_process *p, unsigned piece); /* what the target does meanwhile */
};

static inline void ruby_put(struct ruby_process *p, uint64_t at, uint64_t value)
{
    memcpy(p->bytes + at, &value, sizeof value);
}

static inline uint64_t ruby_there(uint64_t at)
{
    return RUBY_BASE + at;
}

static inline bool ruby_process_read(void *context, struct memory_piece *pieces, size_t count, struct err *err)
{
    struct ruby_process *p = context;
    (void)err;
    p->reads++;
    for (size_t i = 0; i < count; i++) {
        uint64_t offset = pieces[i].address - RUBY_BASE;
        uint64_t there = !p->gone && offset < RUBY_BYTES ? RUBY_BYTES - offset : 0;
        pieces[i].got = (uint32_t)(there < pieces[i].len ? there : pieces[i].len);
        if (pieces[i].got > 0) {
            memcpy(pieces[i].out, p->bytes + offset, pieces[i].got);
        }
        if (p->at_piece != NULL) {
            p->at_piece(p, p->pieces++);
        }
    }
    return !p->gone;
}

static inline uint64_t ruby_string_at(struct ruby_process *p, unsigned number, const char *text)
{
    uint64_t at = AT_STRING + 0x80 * number, len = strlen(text);
    bool is_long = p->family->long_strings;
    ruby_put(p, at, 5 | (is_long ? 0 : len << 14));
    if (is_long) {
        ruby_put(p, at + 16, len);
    }
    memcpy(p->bytes + at + (is_long ? 24 : 16), text, len);
    return ruby_there(at);
}

static inline uint64_t ruby_iseq_at(struct ruby_process *p, unsigned number, unsigned base, unsigned label,
                                    unsigned line)
{
    const struct ruby_family *f = p->family;
    uint64_t at = AT_ISEQ + 0x1000 * number, body = at + 0x100;
    ruby_put(p, at, 0x1a | 7 << 12);
    ruby_put(p, at + 16, ruby_there(body));
    uint64_t shift = (uint64_t)f->shift, labels = body + 72 + shift + (uint64_t)f->old_place;
    uint32_t size = 100;
    ruby_put(p, body, number == ISEQ_BLOCK ? 2 : number == ISEQ_SELL ? 1 : 7);
    memcpy(p->bytes + body + shift + 4, &size, sizeof size);
    ruby_put(p, body + shift + 8, ruby_there(at + 0x400));
    ruby_put(p, body + shift + 64, ruby_there(AT_STRING)); /* the file */
    ruby_put(p, labels, ruby_there(AT_STRING + 0x80 * base));
    ruby_put(p, labels + 8, ruby_there(AT_STRING + 0x80 * label));
    ruby_put(p, labels + 16, f->tagged ? (uint64_t)line << 1 | 1 : line);
    ruby_put(p, body + (uint64_t)f->local, ruby_there(AT_ISEQ + 0x1000 * (number == ISEQ_BLOCK ? ISEQ_SELL : number)));
    ruby_put(p, body + (uint64_t)f->lines, ruby_there(at + 0x800));
    ruby_put(p, body + (uint64_t)f->count, 2);
    /* positions 0 to 9 are on the line after the first, the others two further on */
    for (unsigned i = 0; i < 2; i++) {
        uint32_t entry[3] = {line + 1 + 2 * i, 0, 0};
        if (f->index == RUBY_ABSENT) {
            entry[0] = 10 * i;
            entry[1] = line + 1 + 2 * i;
        }
        memcpy(p->bytes + at + 0x800 + i * (unsigned)f->entry, entry, (size_t)f->entry);
    }
    if (f->index != RUBY_ABSENT) {
        ruby_put(p, body + (uint64_t)f->index, ruby_there(at + 0xa00));
        for (unsigned i = 0; i < 54; i++) {
            uint64_t word = load_u64(p->bytes + at + 0xa00 + i / 9 * 8);
            ruby_put(p, at + 0xa00 + i / 9 * 8, word | (i < 10 ? 1ULL : 2ULL) << (7 * (i % 9)));
        }
        ruby_put(p, at + 0xa00 + 48, 2); /* nothing changes later: zero words */
    }
    return ruby_there(at);
}

static inline uint64_t ruby_method_at(struct ruby_process *p, unsigned number, uint64_t iseq, unsigned class)
{
    uint64_t at = AT_METHOD + 0x100 * number;
    ruby_put(p, at, 0x1a | 6 << 12);
    ruby_put(p, at + 16, ruby_there(at + 0x80));
    ruby_put(p, at + 24, (uint64_t)EACH_ID << 4 | 1);
    ruby_put(p, at + 32, ruby_there(AT_CLASS + 0x200 * class));
    ruby_put(p, at + 0x80, iseq != 0 ? 0 : 1);
    ruby_put(p, at + 0x88, iseq);
    ruby_put(p, at + 0x80 + 32, (uint64_t)EACH_ID << 4 | 1);
    return ruby_there(at);
}

static inline uint64_t ruby_ep_at(const struct ruby_family *f)
{
    return f->ep != 0 ? (uint64_t)f->ep : 32;
}

/* Up to 2.4 it stands in the thread. */
static inline uint64_t ruby_ec_at(const struct ruby_process *p, unsigned thread)
{
    return p->family->back == RUBY_ABSENT ? AT_THREAD + 0x400 * thread + (uint64_t)p->family->ec
                                          : AT_EC + 0x100 * thread;
}

/* Flags of 2.5 as 2.3 (of a frame) and 2.4 have them: method, block, C function, main, the stack's end. */
static inline uint64_t ruby_old_flags(const struct ruby_family *f, uint64_t flags)
{
    static const uint64_t kinds[][3] = {{0x1111, 0x11, 0x1111}, {0x2222, 0x21, 0x2222}, {0x5555, 0x61, 0x5555},
                                        {0x7777, 0x91, 0x8888}, {0x7999, 0x41, 0xbbbb}};
    for (unsigned i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        if (flags >> 16 == kinds[i][0]) {
            return f->flags != 0 ? kinds[i][1] | (flags & 0x20) << 4 | (flags & 0x40) << 4
                                 : kinds[i][2] << 16 | (flags & 0xffff);
        }
    }
    return 0;
}

/* One frame further to the leaf; its environment stands in the values. */
static inline void ruby_push(struct ruby_process *p, unsigned thread, uint64_t iseq, uint32_t position, uint64_t flags,
                             uint64_t method, uint64_t outer)
{
    uint64_t stack = AT_STACK + (uint64_t)STACK_BYTES * thread;
    p->cfp[thread] -= (uint64_t)p->family->frame_bytes;
    uint64_t at = p->cfp[thread], ep = stack + 0x40 + 8 * (stack + STACK_BYTES - at) / 8;
    ruby_put(p, at, iseq != 0 ? iseq + 0x400 + 8 * (position + 1) : 0);
    ruby_put(p, at + 8, ruby_there(ep + 24));
    ruby_put(p, at + 16, iseq);
    ruby_put(p, at + ruby_ep_at(p->family), ruby_there(ep));
    bool in_frame = p->family->flags != 0;
    flags = p->family->old_place != 0 ? ruby_old_flags(p->family, flags) : flags;
    ruby_put(p, ep - 16, in_frame ? 0 : method);
    ruby_put(p, ep - 8, in_frame ? method : outer);
    ruby_put(p, ep, !in_frame ? flags : outer != 0 ? outer : 3);
    if (in_frame) {
        ruby_put(p, at + (uint64_t)p->family->flags, flags);
    }
    ruby_put(p, ruby_ec_at(p, thread) + 16, ruby_there(at));
}

static inline uint64_t ruby_ep(const struct ruby_process *p, unsigned thread, unsigned back)
{
    return load_u64(p->bytes + p->cfp[thread] + back * (unsigned)p->family->frame_bytes + ruby_ep_at(p->family));
}

static inline void ruby_make_thread(struct ruby_process *p, unsigned n, uint64_t head)
{
    const struct ruby_family *f = p->family;
    uint64_t at = AT_THREAD + 0x400 * n, ec = ruby_ec_at(p, n), native = AT_NATIVE + 0x100 * n;
    uint64_t pthread = AT_PTHREAD + 0x800 * n, stack = AT_STACK + (uint64_t)STACK_BYTES * n;
    ruby_put(p, at, n + 1 < RUBY_THREADS ? ruby_there(at + 0x400) : head);
    ruby_put(p, at + 8, n > 0 ? ruby_there(at - 0x400) : head);
    ruby_put(p, at + (uint64_t)f->vm, ruby_there(AT_VM));
    if (f->native != RUBY_ABSENT) {
        ruby_put(p, at + (uint64_t)f->native, ruby_there(native));
    }
    ruby_put(p, (f->native != RUBY_ABSENT ? native : at) + (uint64_t)f->pthread, ruby_there(pthread));
    p->tids[n] = RUBY_TID + n;
    memcpy(p->bytes + pthread + 720, &p->tids[n], 4);
    ruby_put(p, ec, ruby_there(stack));
    ruby_put(p, ec + 8, STACK_BYTES / 8);
    if (f->back != RUBY_ABSENT) {
        ruby_put(p, at + (uint64_t)f->ec, ruby_there(ec));
        ruby_put(p, ec + (uint64_t)f->back, ruby_there(at));
    }
    p->cfp[n] = stack + STACK_BYTES;
    ruby_push(p, n, 0, 0, 0x799900a3, 0, 0);
    ruby_push(p, n, ruby_there(AT_ISEQ), 20, 0x77770023, 0, 0);
    ruby_push(p, n, ruby_there(AT_ISEQ + 0x1000), 5, 0x11110003, ruby_there(AT_METHOD), 0);
    ruby_push(p, n, 0, 0, 0x55550083, ruby_there(AT_METHOD + 0x100), 0);
    ruby_push(p, n, ruby_there(AT_ISEQ + 0x2000), 9, 0x22220021, 0, ruby_ep(p, n, 1) | 1);
}

static inline void ruby_make_names(struct ruby_process *p)
{
    const struct ruby_family *f = p->family;
    static const char *const texts[] = {"shop.rb", "<main>", "sell", "block in sell", "each", "+", "Shop", "Array"};
    for (unsigned i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        (void)ruby_string_at(p, i, texts[i]);
    }
    (void)ruby_iseq_at(p, ISEQ_MAIN, 1, 1, 0);
    (void)ruby_method_at(p, 0, ruby_iseq_at(p, ISEQ_SELL, 2, 2, 10), 0);
    (void)ruby_method_at(p, 1, 0, 1);
    (void)ruby_iseq_at(p, ISEQ_BLOCK, 2, 3, 11);
    for (unsigned i = 0; i < 2; i++) {
        ruby_put(p, AT_CLASS + 0x200 * i, 2);
        if (f->path != RUBY_ABSENT) {
            ruby_put(p, AT_CLASS + 0x200 * i + (uint64_t)f->path, ruby_there(AT_STRING + 0x80 * (6 + i)));
        }
    }
    ruby_put(p, AT_SYMBOLS, 4000);
    ruby_put(p, AT_SYMBOLS + 16, ruby_there(AT_IDS));
    ruby_put(p, AT_IDS, 7);
    ruby_put(p, AT_IDS + 16, 8);
    ruby_put(p, AT_IDS + 32, ruby_there(AT_ID_LIST));
    ruby_put(p, AT_ID_LIST, ruby_there(AT_ID_BLOCK));
    ruby_put(p, AT_ID_LIST + 8 * (EACH_ID / 512), ruby_there(AT_ID_BLOCK));
    ruby_put(p, AT_ID_BLOCK, 7);
    ruby_put(p, AT_ID_BLOCK + 16, 1024);
    ruby_put(p, AT_ID_BLOCK + 32, ruby_there(AT_ID_LIST + 0x400));
    ruby_put(p, AT_ID_LIST + 0x400 + 16 * '+', ruby_there(AT_STRING + 0x80 * 5));
    ruby_put(p, AT_ID_LIST + 0x400 + 16 * (EACH_ID % 512), ruby_there(AT_STRING + 0x80 * 4));
}

static inline void ruby_make(struct ruby_process *p, const struct ruby_family *f, bool has_symbols)
{
    *p = (struct ruby_process){.family = f};
    p->binary = (struct ruby_binary){.version = f->version, .machine = ELF_X86_64};
    p->binary.vm = has_symbols ? AT_VM_POINTER : 0;
    p->binary.symbols = has_symbols ? AT_SYMBOLS : 0;
    p->maps[0] = (struct runtime_map){RUBY_BASE + AT_DATA, RUBY_BASE + AT_HEAP, 0, 3, true, false};
    p->maps[1] = (struct runtime_map){RUBY_BASE + AT_HEAP, RUBY_BASE + RUBY_BYTES, 0, 3, false, false};
    uint64_t head = ruby_there(f->ractors != RUBY_ABSENT ? AT_RACTOR + (uint64_t)f->ractor_threads
                                                         : AT_VM + (uint64_t)f->threads);
    ruby_put(p, AT_VM_POINTER, ruby_there(AT_VM));
    ruby_put(p, AT_VM + (uint64_t)f->main_thread, ruby_there(AT_THREAD));
    if (f->objspace != RUBY_ABSENT) {
        ruby_put(p, AT_VM + (uint64_t)f->objspace, ruby_there(AT_OBJSPACE));
    }
    if (f->ractors != RUBY_ABSENT) {
        uint64_t list = ruby_there(AT_VM + (uint64_t)f->ractors), node = ruby_there(AT_RACTOR + (uint64_t)f->node);
        ruby_put(p, AT_VM + (uint64_t)f->ractors, node);
        ruby_put(p, AT_VM + (uint64_t)f->ractors + 8, node);
        ruby_put(p, AT_RACTOR + (uint64_t)f->node, list);
        ruby_put(p, AT_RACTOR + (uint64_t)f->node + 8, list);
        ruby_put(p, AT_RACTOR + (uint64_t)f->ractor_running, ruby_there(AT_THREAD));
    } else if (f->running != RUBY_ABSENT) {
        ruby_put(p, AT_VM + (uint64_t)f->running, ruby_there(AT_THREAD));
    }
    ruby_put(p, head - RUBY_BASE, ruby_there(AT_THREAD));
    ruby_put(p, head - RUBY_BASE + 8, ruby_there(AT_THREAD + 0x400 * (RUBY_THREADS - 1)));
    ruby_make_names(p);
    for (unsigned n = 0; n < RUBY_THREADS; n++) {
        ruby_make_thread(p, n, head);
    }
}

static inline enum runtime_answer ruby_process_attach(struct ruby_process *p, struct ruby **state, struct err *err)
{
    struct memory_batch memory = {ruby_process_read, p};
    struct runtime_process process = {.pid = RUBY_TID, .bias = RUBY_BASE, .memory = &memory, .maps = p->maps,
                                      .map_count = 2, .tids = p->tids, .tid_count = RUBY_THREADS};
    void *found = NULL;
    enum runtime_answer answer = ruby_attach(&p->binary, &process, &found, err);
    *state = found;
    return answer;
}

#endif
