/*
 * A stripped Go program that never was, and its memory: a pclntab, the few functions whose instructions name the
 * runtime's tables, buckets, goroutines. For tests and for the fuzz target, which spoils the memory.
 *
 * The file: headers, table, text; the second segment is data. It is loaded go_bias higher. Function number n is at
 * GO_TEXT_AT + n * GO_CODE_BYTES; all of its body has the stack pointer where go_functions says.
 */
#ifndef GO_PROCESS_H
#define GO_PROCESS_H

#include <elf.h>
#include <stdio.h>
#include <stdlib.h>

#include "runtime/go/memory/memory_private.h"

enum {
    GO_TABLE_AT = 0x200,
    GO_TEXT_AT = 0x2000,
    GO_CODE_BYTES = 0x100,
    GO_DATA_AT = 0x8000,      /* ELF address; file offset 0x6000 */
    GO_DATA_FILE_AT = 0x6000,
    GO_FILE_BYTES = 0x6800,
    GO_DATA_BYTES = 0x3000,
    GO_HEAP_BYTES = 0x20000,
    /* Variables, behind the data's start. */
    GO_MBUCKETS = 0x900, GO_XBUCKETS = 0x908, GO_BBUCKETS = 0x910, GO_BUCKHASH = 0x918, GO_ALLGS = 0x920,
    GO_ALLGPTR = 0x940, GO_RATE = 0x948, GO_BLOCK_RATE = 0x950, GO_MUTEX_RATE = 0x958, GO_CYCLE = 0x960,
    GO_TICKS = 0x970, GO_ALLP = 0x980, GO_REASONS = 0x100, GO_TEXTS = 0x500, GO_MEMSTATS = 0x1000,
    /* In the heap. */
    GO_GS = 0x1000, GO_G_STEP = 0x200, GO_STACKS = 0x4000, GO_STACK_BYTES = 0x400, GO_CHAIN = 0x10000,
    GO_P = 0x1c000, GO_CACHE = 0x1c100, GO_SPAN = 0x1d000, GO_NO_SPAN = 0x1d100,
};

static const uint64_t go_bias = 0x7000000000, go_heap = 0xc000000000;

struct go_made {
    unsigned char file[GO_FILE_BYTES], data[GO_DATA_BYTES], heap[GO_HEAP_BYTES];
    unsigned machine;
    uint64_t goroutines, bucket_at; /* made; where the next bucket goes, in the heap */
    uint64_t heads[4];              /* by type */
    unsigned reads;                 /* pieces that were read */
    void (*moves)(struct go_made *made, uint64_t address, size_t len); /* called for each piece; may be null */
    bool is_gone;
    struct elf elf;
    struct go_table *table;
    struct memory_batch memory;
    struct go_memory *m;
};

enum go_function_number {
    MAIN_MAIN, MAIN_WAIT, MAIN_WRAPPER, MAIN_DEEP, RUNTIME_MAIN, RUNTIME_GOPARK, RUNTIME_GOEXIT, RUNTIME_GOGO,
    RUNTIME_ASYNC, RUNTIME_SWEEP, RUNTIME_FINALIZERS, RUNTIME_MALLOC, RUNTIME_SYSCALL,
    CODE_STKBUCKET, CODE_ALLGADD, CODE_SWEPT, CODE_BLOCK, CODE_SEMACQUIRE, CODE_SCHEDINIT, CODE_TICKS,
    CODE_REFILL, CODE_PROCRESIZE, GO_FUNCTIONS,
};

static const struct {
    const char *name;
    unsigned char delta, id, flags; /* of the whole body; id 23: a wrapper */
} go_functions[GO_FUNCTIONS] = {
    {"main.main", 24, 0, 0}, {"main.wait", 40, 0, 0}, {"main.(*T).wrapper", 8, 23, 0}, {"main.deep", 120, 0, 0},
    {"runtime.main", 56, 17, 0}, {"runtime.gopark", 16, 0, 0}, {"runtime.goexit", 0, 8, 1},
    {"runtime.gogo", 0, 9, 2}, {"runtime.asyncPreempt", 32, 3, 0}, {"runtime.bgsweep", 16, 0, 0},
    {"runtime.runFinalizers", 16, 18, 0}, {"runtime.mallocgc", 64, 0, 0}, {"syscall.Syscall6", 24, 0, 0},
    {"runtime.stkbucket", 0, 0, 0}, {"runtime.allgadd", 0, 0, 0}, {"runtime.mProf_PostSweep", 0, 0, 0},
    {"runtime.blockevent", 0, 0, 0}, {"runtime.semacquire1", 0, 0, 0}, {"runtime.schedinit", 0, 0, 0},
    {"runtime.ticksPerSecond", 0, 0, 0}, {"runtime.(*mcache).refill", 0, 0, 0}, {"runtime.procresize", 0, 0, 0},
};

static inline void go_put(unsigned char *at, uint64_t value, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++) {
        at[i] = (unsigned char)(value >> 8 * i);
    }
}

/* An address behind a call in the function. */
static inline uint64_t go_pc(enum go_function_number function)
{
    return go_bias + GO_TEXT_AT + (uint64_t)function * GO_CODE_BYTES + 0x41;
}

/* ---- the file ---- */

static void go_put_header(struct go_made *g)
{
    Elf64_Ehdr header = {.e_type = ET_DYN, .e_machine = (Elf64_Half)g->machine, .e_version = EV_CURRENT,
                         .e_phoff = sizeof header, .e_ehsize = sizeof header, .e_phentsize = sizeof(Elf64_Phdr),
                         .e_phnum = 2, .e_entry = GO_TEXT_AT};
    memcpy(header.e_ident, ELFMAG, SELFMAG);
    header.e_ident[EI_CLASS] = ELFCLASS64;
    header.e_ident[EI_DATA] = ELFDATA2LSB;
    header.e_ident[EI_VERSION] = EV_CURRENT;
    const Elf64_Phdr segments[] = {
        {.p_type = PT_LOAD, .p_flags = PF_R | PF_X, .p_filesz = GO_DATA_FILE_AT, .p_memsz = GO_DATA_FILE_AT},
        {.p_type = PT_LOAD, .p_flags = PF_R | PF_W, .p_offset = GO_DATA_FILE_AT, .p_vaddr = GO_DATA_AT,
         .p_filesz = GO_FILE_BYTES - GO_DATA_FILE_AT, .p_memsz = GO_DATA_BYTES},
    };
    memcpy(g->file, &header, sizeof header);
    memcpy(g->file + sizeof header, segments, sizeof segments);
}

/* The table of Go 1.20 and later: header, names, streams, list, functions. */
static void go_put_table(struct go_made *g)
{
    unsigned char *table = g->file + GO_TABLE_AT;
    size_t names = 0x60, at = names, streams = 0x400, list = 0x500, functions = (GO_FUNCTIONS + 1) * 8, stream = 1;
    const uint64_t parts[] = {names, streams - 8, streams - 4, streams, list};
    go_put(table, 0xfffffff1, 4);
    unsigned quantum = g->machine == EM_AARCH64 ? 4 : 1;
    table[6] = (unsigned char)quantum;
    table[7] = 8;
    go_put(table + 8, GO_FUNCTIONS, 8);
    go_put(table + 24, GO_TEXT_AT, 8);
    for (size_t i = 0; i < 5; i++) {
        go_put(table + 32 + 8 * i, parts[i], 8);
    }
    for (size_t i = 0; i < GO_FUNCTIONS; i++) {
        unsigned char *record = table + list + functions;
        go_put(table + list + 8 * i, i * GO_CODE_BYTES, 4);
        go_put(table + list + 8 * i + 4, functions, 4);
        go_put(record, i * GO_CODE_BYTES, 4);
        go_put(record + 4, at - names, 4);
        go_put(record + 16, stream, 4);
        go_put(record + 40, go_functions[i].id | go_functions[i].flags << 8, 4);
        strcpy((char *)table + at, go_functions[i].name);
        at += strlen(go_functions[i].name) + 1;
        unsigned change = 2u * (go_functions[i].delta + 1u); /* from -1, zigzag */
        unsigned char *s = table + streams + stream;
        *s++ = (unsigned char)(change | 0x80);
        *s++ = (unsigned char)(change >> 7);
        *s++ = (GO_CODE_BYTES / quantum & 0x7f) | 0x80; /* for so many instructions */
        *s++ = (unsigned char)(GO_CODE_BYTES / quantum >> 7);
        stream += 5; /* and the end */
        functions += 44;
    }
    go_put(table + list + 8 * GO_FUNCTIONS, GO_FUNCTIONS * GO_CODE_BYTES, 4);
}

struct go_instruction {
    enum go_function_number function;
    unsigned short variable;
    unsigned char bytes[3], len, constant; /* x86-64: in front of and behind the offset */
    char form;                             /* AArch64: a(dd), l(oad), s(tore 0) */
};

static const struct go_instruction go_instructions[] = {
    {CODE_STKBUCKET, GO_BUCKHASH, {0x48, 0x8b, 0x05}, 3, 0, 'l'},
    {CODE_STKBUCKET, GO_MBUCKETS, {0x48, 0x8d, 0x0d}, 3, 0, 'a'},
    {CODE_STKBUCKET, GO_XBUCKETS, {0x4c, 0x8d, 0x15}, 3, 0, 'a'},
    {CODE_STKBUCKET, GO_BBUCKETS, {0x48, 0x8d, 0x0d}, 3, 0, 'a'},
    {CODE_ALLGADD, GO_ALLGPTR, {0x48, 0x39, 0x1d}, 3, 0, 'l'},
    {CODE_ALLGADD, GO_ALLGS, {0x48, 0x8b, 0x1d}, 3, 0, 'l'},
    {CODE_SWEPT, GO_CYCLE, {0x8b, 0x0d}, 2, 0, 'a'},
    {CODE_BLOCK, GO_BLOCK_RATE, {0x48, 0x8b, 0x15}, 3, 0, 'l'},
    {CODE_SEMACQUIRE, GO_BLOCK_RATE, {0x48, 0x83, 0x3d}, 3, 1, 'l'},
    {CODE_SEMACQUIRE, GO_MUTEX_RATE, {0x48, 0x83, 0x3d}, 3, 1, 'l'},
    {CODE_SCHEDINIT, GO_RATE, {0x48, 0xc7, 0x05}, 3, 4, 's'},
    {CODE_TICKS, GO_TICKS, {0x48, 0x8b, 0x05}, 3, 0, 'a'},
    {CODE_REFILL, GO_BUCKHASH, {0x48, 0x8d, 0x0d}, 3, 0, 'a'},
    {CODE_REFILL, GO_MEMSTATS, {0x48, 0x8d, 0x0d}, 3, 0, 'a'},
    {CODE_PROCRESIZE, GO_ALLGS, {0x48, 0x8b, 0x1d}, 3, 0, 'l'},
    {CODE_PROCRESIZE, GO_ALLP, {0x48, 0x8b, 0x1d}, 3, 0, 'l'},
};

static void go_put_code(struct go_made *g)
{
    size_t used[GO_FUNCTIONS] = {0};
    for (size_t i = 0; i < sizeof go_instructions / sizeof go_instructions[0]; i++) {
        const struct go_instruction *in = &go_instructions[i];
        uint64_t address = GO_TEXT_AT + (uint64_t)in->function * GO_CODE_BYTES + used[in->function];
        unsigned char *code = g->file + address;
        uint64_t variable = GO_DATA_AT + in->variable;
        if (g->machine == EM_X86_64) {
            size_t len = in->len + 4U + in->constant;
            memcpy(code, in->bytes, in->len);
            go_put(code + in->len, variable - address - len, 4);
            used[in->function] += len + 1;
            continue;
        }
        uint64_t pages = (variable >> 12) - (address >> 12);
        unsigned offset = variable & 0xfff;
        go_put(code, 0x90000000 | (pages & 3) << 29 | (pages >> 2 & 0x7ffff) << 5 | 27, 4);
        uint32_t second = in->form == 'a'   ? 0x91000000 | offset << 10
                          : in->form == 's' ? 0xf9000000 | offset / 8 << 10 | 31
                                            : 0xf9400000 | offset / 8 << 10;
        go_put(code + 4, second | 27 << 5, 4);
        used[in->function] += 8;
    }
}

/* ---- the memory ---- */

static void go_put_reasons(struct go_made *g)
{
    static const char *const texts[] = {"", "GC assist marking", "IO wait", "chan receive", "finalizer wait", "sleep"};
    size_t at = GO_TEXTS;
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        go_put(g->data + GO_REASONS + 16 * i, i == 0 ? 0 : go_bias + GO_DATA_AT + at, 8);
        go_put(g->data + GO_REASONS + 16 * i + 8, strlen(texts[i]), 8);
        memcpy(g->data + at, texts[i], strlen(texts[i]));
        at += strlen(texts[i]);
    }
}

enum { GO_REASON_CHAN = 3, GO_REASON_FINALIZER, GO_REASON_SLEEP };

/* A bucket in front of the others of its type; its record's words. */
static inline uint64_t go_add_bucket(struct go_made *g, unsigned type, uint64_t size, const uint64_t *pcs, size_t count,
                              const uint64_t *record, size_t words)
{
    static const unsigned short heads[] = {0, GO_MBUCKETS, GO_BBUCKETS, GO_XBUCKETS};
    unsigned char *at = g->heap + g->bucket_at;
    uint64_t address = go_heap + g->bucket_at;
    go_put(at + 8, g->heads[type], 8);
    go_put(at + 16, type, 8);
    go_put(at + 32, size, 8);
    go_put(at + 40, count, 8);
    for (size_t i = 0; i < count + words; i++) {
        go_put(at + 48 + 8 * i, i < count ? pcs[i] : record[i - count], 8);
    }
    g->bucket_at += 48 + 8 * count + (type == 1 ? 128 : 16);
    g->heads[type] = address;
    go_put(g->data + heads[type], address, 8);
    return address;
}

static inline unsigned char *go_g(struct go_made *g, uint64_t index)
{
    return g->heap + GO_GS + index * GO_G_STEP;
}

/* A goroutine of Go 1.26 that waits with this stack: the frames of `functions` from the innermost on. */
static inline uint64_t go_add_goroutine(struct go_made *g, unsigned status, unsigned reason,
                                        enum go_function_number first, const enum go_function_number *functions,
                                        size_t count)
{
    uint64_t index = g->goroutines++, low = GO_STACKS + index * GO_STACK_BYTES, sp = low + 0x40;
    unsigned char *at = go_g(g, index);
    bool lr = g->machine == EM_AARCH64;
    go_put(at, go_heap + low, 8);
    go_put(at + 8, go_heap + low + GO_STACK_BYTES, 8);
    go_put(at + 56, go_heap + sp, 8);
    go_put(at + 64, count > 0 ? go_pc(functions[0]) : 0, 8);
    go_put(at + 144, status, 4);
    go_put(at + 152, index + 1, 8);
    at[176] = (unsigned char)reason;
    go_put(at + 304, go_bias + GO_TEXT_AT + (uint64_t)first * GO_CODE_BYTES, 8);
    for (size_t i = 0; i + 1 < count; i++) {
        size_t delta = go_functions[functions[i]].delta;
        go_put(g->heap + sp + (lr ? 0 : delta), go_pc(functions[i + 1]), 8);
        sp += delta + (lr ? 0 : 8);
    }
    go_put(g->heap + 0x100 + 8 * index, go_heap + GO_GS + index * GO_G_STEP, 8);
    go_put(g->data + GO_ALLGS, go_heap + 0x100, 8);
    go_put(g->data + GO_ALLGS + 8, g->goroutines, 8);
    go_put(g->data + GO_ALLGS + 16, g->goroutines, 8);
    go_put(g->data + GO_ALLGPTR, go_heap + 0x100, 8);
    return index;
}

/* A word of one of the three differences of what is counted of the heap: Go 1.26. */
static inline unsigned char *go_count(struct go_made *g, size_t ring, size_t word)
{
    return g->data + GO_MEMSTATS + 8 * (146 * ring + word);
}

enum { /* words: behind them the classes, of which the first three are of 8, 16 and 24 bytes */
    GO_COMMITTED = 0, GO_IN_HEAP = 2, GO_TINY = 5, GO_LARGE = 6, GO_LARGES = 7, GO_SMALLS = 8, GO_FREED = 76,
    GO_FREES = 77, GO_SMALL_FREES = 78,
};

static void go_put_counts(struct go_made *g)
{
    go_put(go_count(g, 0, GO_COMMITTED), 0x400000, 8);
    go_put(go_count(g, 0, GO_IN_HEAP), 0x40000, 8);
    go_put(go_count(g, 0, GO_SMALLS + 2), 100, 8);
    go_put(go_count(g, 0, GO_SMALL_FREES + 2), 10, 8);
    go_put(go_count(g, 1, GO_IN_HEAP), (uint64_t)-0x20000, 8); /* given back since */
    go_put(go_count(g, 1, GO_LARGE), 100000, 8);
    go_put(go_count(g, 1, GO_LARGES), 2, 8);
    go_put(go_count(g, 1, GO_FREED), 40000, 8);
    go_put(go_count(g, 1, GO_FREES), 1, 8);
    go_put(go_count(g, 1, GO_TINY), 7, 8);
    go_put(g->data + GO_MEMSTATS + 3504, 1, 4);
    go_put(g->data + GO_MEMSTATS + 3576, 1500, 8);
    go_put(g->data + GO_MEMSTATS + 3584, 700, 8);
    go_put(g->data + GO_MEMSTATS + 3592, 800, 8);
    go_put(g->data + GO_MEMSTATS + 7680, 2, 4);
    go_put(g->data + GO_ALLP, go_heap + GO_P, 8);
    go_put(g->data + GO_ALLP + 8, 2, 8);
    go_put(g->heap + GO_P, go_heap + GO_P + 0x10, 8);
    go_put(g->heap + GO_P + 8, go_heap + GO_P + 0x90, 8); /* has no cache yet */
    go_put(g->heap + GO_P + 0x10 + 56, go_heap + GO_CACHE, 8);
    go_put(g->heap + GO_P + 0x90, 1, 4);
    go_put(g->heap + GO_CACHE + 40, 3, 8);
    for (size_t i = 0; i < 136; i++) {
        go_put(g->heap + GO_CACHE + 48 + 8 * i, go_heap + (i == 4 ? GO_SPAN : GO_NO_SPAN), 8);
    }
    go_put(g->heap + GO_SPAN + 96, 12, 2);
    go_put(g->heap + GO_SPAN + 102, 4, 2);
}

static bool go_made_read(void *context, struct memory_piece *pieces, size_t count, struct err *err)
{
    struct go_made *g = context;
    for (size_t i = 0; i < count; i++) {
        const struct { uint64_t start; const unsigned char *bytes; size_t len; } parts[] = {
            {go_bias + GO_DATA_AT, g->data, sizeof g->data}, {go_heap, g->heap, sizeof g->heap}};
        pieces[i].got = 0;
        if (g->is_gone) {
            continue;
        }
        if (g->moves != NULL) {
            g->moves(g, pieces[i].address, pieces[i].len);
        }
        for (size_t j = 0; j < 2; j++) {
            uint64_t skip = pieces[i].address - parts[j].start;
            if (skip < parts[j].len) {
                size_t len = parts[j].len - (size_t)skip;
                pieces[i].got = (uint32_t)(len < pieces[i].len ? len : pieces[i].len);
                memcpy(pieces[i].out, parts[j].bytes + skip, pieces[i].got);
            }
        }
        g->reads++;
    }
    return !g->is_gone || err_set(err, ERR_GONE, 0, "process 7 ended");
}

static struct go_made *go_make(unsigned machine)
{
    struct go_made *g = calloc(1, sizeof *g);
    g->machine = machine;
    g->bucket_at = GO_CHAIN;
    go_put_header(g);
    go_put_table(g);
    go_put_code(g);
    go_put_reasons(g);
    go_put_counts(g);
    go_put(g->data + GO_BUCKHASH, go_heap + 0x1f000, 8);
    go_put(g->data + GO_RATE, 1, 8);
    go_put(g->data + GO_BLOCK_RATE, 7, 8);
    go_put(g->data + GO_MUTEX_RATE, 5, 8);
    go_put(g->data + GO_CYCLE, 4 << 1, 4);
    go_put(g->data + GO_TICKS, 2000000000, 8);
    g->memory = (struct memory_batch){go_made_read, g};
    return g;
}

/* False: there is no table in the file, which no test wants. */
static bool go_make_ready(struct go_made *g)
{
    struct err err = {0};
    if (!elf_open_bytes(&g->elf, g->file, sizeof g->file, &err) || (g->table = go_table_open(&g->elf, &err)) == NULL) {
        printf("# %s\n", err.text);
        return false;
    }
    return true;
}

static inline bool go_make_open(struct go_made *g, const char *version, struct err *err)
{
    struct go_process process = {.elf = &g->elf, .table = g->table, .memory = &g->memory, .bias = go_bias,
                                 .version = version};
    g->m = go_memory_open(&process, err);
    return g->m != NULL;
}

static void go_make_release(struct go_made *g)
{
    go_memory_free(g->m);
    go_table_release(g->table);
    elf_release(&g->elf);
    free(g);
}

#endif
