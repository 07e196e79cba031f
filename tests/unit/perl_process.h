/*
 * perl_process: a process that runs Perl, as far as its structures go, in an array: the main program, in it Shop::sell,
 * in it an eval's block with a loop, and on an array of contexts of its own a sort's block that calls main::by.
 *
 * Every structure stands at a place of its own, ELF address 0 is PERL_BASE. Fields are put where the headers of the
 * family's version have them: literals, not the product's table.
 */
#ifndef PERL_PROCESS_H
#define PERL_PROCESS_H

#include "runtime/perl/private.h"

#define PERL_BASE 0x700000000000ULL

enum {
    PERL_BYTES = 0x90000, PERL_TID = 4711,
    AT_DATA = 0x1000, AT_POINTER = 0x1010, AT_VARIABLES = 0x1100,
    AT_HEAP = 0x2000, AT_INTERPRETER = 0x2000,
    AT_INFO = 0x4000,     /* 0x40 each */
    AT_COP = 0x5000,      /* 0x40 each */
    AT_CV = 0x6000,       /* 0x200 each: itself, body, pads */
    AT_GV = 0x7000,       /* 0x200 each: itself, body, gp */
    AT_STASH = 0x8000,    /* 0x400 each: itself, body, array */
    AT_KEY = 0x9000,      /* 0x40 each */
    AT_TEXT = 0xa000,
    AT_GLOBALS = 0xb000,  /* the hash for modules: itself, body, buckets, an entry, its key, its value */
    AT_POOL = 0xb400,     /* 0x80 each: threads */
    AT_PTHREAD = 0xc000,  /* 0x400 each */
    AT_OTHER = 0xe000,    /* the other thread's interpreter */
    PERL_OTHER_TID = 4712,
    AT_CONTEXTS = 0x10000, CONTEXTS_BYTES = 0x28000, /* each */
    AT_ELSEWHERE = AT_CONTEXTS + 2 * CONTEXTS_BYTES,
    COP_MAIN = 0, COP_SELL = 1, COP_EVAL = 2, COP_BLOCK = 3, COP_BY = 4, COP_START = 5, /* two */
    CV_SELL = 0, CV_BY = 1,
    KIND_NULL = 0, KIND_BLOCK = 2, KIND_SUB = 9 | 0x20, KIND_EVAL = 11 | 0x40,
};

struct perl_family {
    uint32_t version;
    bool threads;
    uint64_t curcop, curstackinfo, type, context, cv, aux;
};

/* Where there are no threads the first two are addresses. `aux`: 0, behind the array. */
static const struct perl_family perl_families[] = {
    {PERL_VERSION(28, 3), true, 0xe0, 0xf0, 0x28, 0x60, 0x40, 0},
    {PERL_VERSION(30, 0), true, 0xe0, 0xf0, 0x28, 0x60, 0x40, 0},
    {PERL_VERSION(32, 1), true, 0xe0, 0xf0, 0x2c, 0x68, 0x48, 0},
    {PERL_VERSION(34, 1), true, 0xd0, 0xe0, 0x2c, 0x68, 0x48, 0},
    {PERL_VERSION(36, 0), true, 0xd0, 0xe0, 0x2c, 0x68, 0x48, 0x20},
    {PERL_VERSION(38, 2), true, 0xd0, 0xe0, 0x2c, 0x68, 0x48, 0x20},
    {PERL_VERSION(40, 1), true, 0xd0, 0xe0, 0x2c, 0x68, 0x48, 0x20},
    {PERL_VERSION(42, 3), true, 0xd0, 0xe0, 0x2c, 0x68, 0x48, 0x20},
    {PERL_VERSION(36, 0), false, AT_VARIABLES, AT_VARIABLES + 8, 0x2c, 0x68, 0x48, 0x20},
};
enum { PERL_FAMILIES = sizeof perl_families / sizeof perl_families[0] };

struct perl_process {
    unsigned char bytes[PERL_BYTES];
    const struct perl_family *family;
    struct perl_binary binary;
    struct runtime_map maps[2];
    uint32_t tid, tids[2];
    int32_t index[2]; /* of the newest contexts */
    unsigned reads, pieces;
    bool gone;
    void (*at_piece)(struct perl_process *p, unsigned piece); /* what the target does meanwhile */
};

static inline void perl_put(struct perl_process *p, uint64_t at, uint64_t value)
{
    memcpy(p->bytes + at, &value, sizeof value);
}

static inline void perl_put32(struct perl_process *p, uint64_t at, uint32_t value)
{
    memcpy(p->bytes + at, &value, sizeof value);
}

static inline uint64_t perl_there(uint64_t at)
{
    return PERL_BASE + at;
}

static inline bool perl_process_read(void *context, struct memory_piece *pieces, size_t count, struct err *err)
{
    struct perl_process *p = context;
    (void)err;
    p->reads++;
    for (size_t i = 0; i < count; i++) {
        uint64_t offset = pieces[i].address - PERL_BASE;
        uint64_t there = !p->gone && offset < PERL_BYTES ? PERL_BYTES - offset : 0;
        pieces[i].got = (uint32_t)(there < pieces[i].len ? there : pieces[i].len);
        if (pieces[i].got > 0) {
            memcpy(pieces[i].out, p->bytes + offset, pieces[i].got);
        }
        p->pieces++;
        if (p->at_piece != NULL) {
            p->at_piece(p, p->pieces - 1);
        }
    }
    return !p->gone;
}

static inline void perl_cop_at(struct perl_process *p, unsigned number, uint32_t line)
{
    uint64_t at = AT_COP + 0x40 * number;
    perl_put32(p, at + 36, line);
    perl_put(p, at + 48, perl_there(p->family->threads ? AT_TEXT : AT_GV + 2 * 0x200));
}

static inline uint64_t perl_key_at(struct perl_process *p, unsigned number, const char *text)
{
    uint64_t at = AT_KEY + 0x40 * number;
    perl_put32(p, at + 4, (uint32_t)strlen(text));
    memcpy(p->bytes + at + 8, text, strlen(text) + 1);
    return perl_there(at);
}

static inline void perl_glob_at(struct perl_process *p, unsigned number, uint64_t key, unsigned stash)
{
    uint64_t at = AT_GV + 0x200 * number;
    perl_put(p, at, perl_there(at + 0x40));
    perl_put32(p, at + 12, 9);
    perl_put(p, at + 16, perl_there(at + 0x100));
    perl_put(p, at + 0x40 + 32, key);
    perl_put(p, at + 0x40 + 40, perl_there(AT_STASH + 0x400 * stash));
    perl_put(p, at + 0x100 + 56, perl_there(at)); /* egv */
}

static inline void perl_stash_at(struct perl_process *p, unsigned number, uint64_t key)
{
    uint64_t at = AT_STASH + 0x400 * number, aux = at + 0x40 + p->family->aux;
    perl_put(p, at, perl_there(at + 0x40));
    perl_put32(p, at + 12, 12);
    perl_put(p, at + 16, perl_there(at + 0x100));
    perl_put(p, at + 0x40 + 24, 7);
    perl_put(p, p->family->aux != 0 ? aux : at + 0x100 + 8 * 8, key);
}

static inline void perl_sub_at(struct perl_process *p, unsigned number, bool has_key)
{
    uint64_t at = AT_CV + 0x200 * number, body = at + 0x40;
    perl_put(p, at, perl_there(body));
    perl_put32(p, at + 12, 13);
    perl_put(p, body + 32, perl_there(AT_STASH + 0x400 * number));
    perl_put(p, body + 40, perl_there(AT_COP + 0x40 * (COP_START + number)));
    perl_put(p, body + 56, perl_there(has_key ? AT_KEY + 0x40 * 2 : AT_GV + 0x200 * number));
    perl_put(p, body + 64, perl_there(AT_TEXT));
    perl_put(p, body + 72, perl_there(at + 0x100)); /* pads */
    perl_put32(p, body + 92, has_key ? 0x8000 : 0);
    perl_put32(p, body + 96, 1);
    perl_put(p, at + 0x100 + 8, perl_there(at + 0x140));
    perl_put(p, at + 0x140 + 8, perl_there(at + 0x180));
}

static inline uint64_t perl_context(const struct perl_process *p, unsigned array, int32_t index)
{
    return AT_CONTEXTS + (uint64_t)CONTEXTS_BYTES * array + (uint64_t)index * p->family->context;
}

/* One context further to the leaf. */
static inline void perl_push(struct perl_process *p, unsigned array, uint32_t kind, unsigned cop, unsigned cv,
                             uint64_t returns)
{
    uint64_t at = perl_context(p, array, ++p->index[array]);
    p->bytes[at] = (unsigned char)kind;
    perl_put(p, at + 16, perl_there(AT_COP + 0x40 * cop));
    perl_put(p, at + 48, returns);
    if ((kind & 15) == 9) {
        perl_put(p, at + p->family->cv, perl_there(AT_CV + 0x200 * cv));
    }
    perl_put32(p, AT_INFO + 0x40 * array + 32, (uint32_t)p->index[array]);
}

static inline void perl_make_calls(struct perl_process *p)
{
    for (unsigned i = 0; i < 2; i++) {
        uint64_t at = AT_INFO + 0x40 * i;
        p->index[i] = -1;
        perl_put(p, at + 8, perl_there(AT_CONTEXTS + CONTEXTS_BYTES * i));
        perl_put(p, at + 16, i == 0 ? 0 : perl_there(AT_INFO));
        perl_put(p, at + 24, i == 0 ? perl_there(AT_INFO + 0x40) : 0);
        perl_put32(p, at + 36, 1400);
        perl_put32(p, at + p->family->type, i == 0 ? 1 : 3);
    }
    perl_push(p, 0, KIND_BLOCK, COP_MAIN, 0, 0);
    perl_push(p, 0, KIND_SUB, COP_MAIN, CV_SELL, perl_there(AT_COP));
    perl_push(p, 0, KIND_EVAL, COP_SELL, 0, perl_there(AT_COP));
    perl_push(p, 0, KIND_BLOCK, COP_EVAL, 0, 0);
    perl_push(p, 1, KIND_NULL, COP_EVAL, 0, 0);
    perl_push(p, 1, KIND_SUB, COP_EVAL, CV_BY, perl_there(AT_COP));
}

static inline void perl_make(struct perl_process *p, const struct perl_family *f)
{
    uint64_t base = f->threads ? AT_INTERPRETER : 0;
    *p = (struct perl_process){.family = f, .tid = PERL_TID};
    p->binary = (struct perl_binary){.version = f->version, .interpreter = f->threads ? AT_POINTER : 0,
                                      .threads = f->threads};
    if (!f->threads) {
        p->binary.curcop = f->curcop;
        p->binary.curstackinfo = f->curstackinfo;
    }
    p->maps[0] = (struct runtime_map){PERL_BASE + AT_DATA, PERL_BASE + AT_HEAP, 0, 3, true, false};
    p->maps[1] = (struct runtime_map){PERL_BASE + AT_HEAP, PERL_BASE + PERL_BYTES, 0, 3, false, false};
    perl_put(p, AT_POINTER, perl_there(AT_INTERPRETER));
    perl_put(p, base + f->curcop, perl_there(AT_COP + 0x40 * COP_BY));
    perl_put(p, base + f->curstackinfo, perl_there(AT_INFO + 0x40));
    memcpy(p->bytes + AT_TEXT, "shop.pl", 8);
    static const uint32_t lines[] = {3, 11, 12, 13, 21, 10, 20};
    for (unsigned i = 0; i < sizeof lines / sizeof lines[0]; i++) {
        perl_cop_at(p, i, lines[i]);
    }
    perl_stash_at(p, CV_SELL, perl_key_at(p, 0, "Shop"));
    perl_stash_at(p, CV_BY, perl_key_at(p, 1, "main"));
    perl_glob_at(p, 0, perl_key_at(p, 3, "sell"), 0);
    perl_glob_at(p, 2, perl_key_at(p, 4, "_<shop.pl"), 1);
    (void)perl_key_at(p, 2, "b\xffy"); /* Latin-1 */
    perl_sub_at(p, CV_SELL, false);
    perl_sub_at(p, CV_BY, true);
    perl_make_calls(p);
}

/* The module threads is there: the first interpreter's thread, and another one that runs Shop::sell. */
static inline void perl_add_thread(struct perl_process *p, uint64_t modglobal)
{
    uint64_t at = AT_GLOBALS, info = AT_INFO + 0x80, contexts = AT_ELSEWHERE;
    perl_put(p, AT_INTERPRETER + modglobal, perl_there(at));
    perl_put(p, at, perl_there(at + 0x40));
    perl_put32(p, at + 12, 12);
    perl_put(p, at + 16, perl_there(at + 0x80));
    perl_put(p, at + 0x40 + 24, 7);
    perl_put(p, at + 0x80 + 8 * 3, perl_there(at + 0x100));
    perl_put(p, at + 0x100 + 8, perl_there(at + 0x140));
    perl_put(p, at + 0x100 + 16, perl_there(at + 0x180));
    memcpy(p->bytes + at + 0x148, "threads::_pool2.40", 19);
    perl_put(p, at + 0x180, perl_there(at + 0x190 - 32));
    perl_put(p, at + 0x190, perl_there(AT_POOL));
    for (unsigned i = 0; i < 2; i++) {
        uint64_t thread = AT_POOL + 0x80 * i, next = perl_there(AT_POOL + 0x80 * (1 - i));
        perl_put(p, thread, next);
        perl_put(p, thread + 8, next);
        perl_put(p, thread + 16, perl_there(i == 0 ? AT_INTERPRETER : AT_OTHER));
        perl_put(p, thread + 104, perl_there(AT_PTHREAD + 0x400 * i));
        perl_put32(p, AT_PTHREAD + 0x400 * i + 720, i == 0 ? PERL_TID : PERL_OTHER_TID);
    }
    perl_put(p, AT_OTHER + p->family->curcop, perl_there(AT_COP + 0x40 * COP_SELL));
    perl_put(p, AT_OTHER + p->family->curstackinfo, perl_there(info));
    perl_put(p, info + 8, perl_there(contexts));
    perl_put32(p, info + 32, 1);
    perl_put32(p, info + 36, 20);
    perl_put32(p, info + p->family->type, 1);
    p->bytes[contexts] = KIND_EVAL;
    perl_put(p, contexts + 16, perl_there(AT_COP));
    memcpy(p->bytes + contexts + p->family->context, p->bytes + perl_context(p, 0, 1), p->family->context);
    perl_put(p, contexts + p->family->context + 48, 0);
}

static inline enum runtime_answer perl_process_attach(struct perl_process *p, struct perl **state, struct err *err)
{
    struct memory_batch memory = {perl_process_read, p};
    struct runtime_process process = {.pid = PERL_TID, .bias = PERL_BASE, .memory = &memory, .maps = p->maps,
                                      .map_count = 2, .tids = &p->tid, .tid_count = 1};
    void *found = NULL;
    enum runtime_answer answer = perl_attach(&p->binary, &process, &found, err);
    *state = found;
    return answer;
}

#endif
