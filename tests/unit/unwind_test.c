/*
 * The stack walker: stacks as literals over hand-made images, and this process's own stacks.
 */
#include "frame_image.h"
#include "test.h"
#include "unwind/unwind.h"

#include <execinfo.h>
#include <fcntl.h>
#include <link.h>
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

#define BYTES(text) text, sizeof(text) - 1
#define COUNT(list) (sizeof(list) / sizeof(list)[0])

#if defined __aarch64__
enum { IP = 32, SP = 31, FP = 29, OTHER = 19 };
#else
enum { IP = 16, SP = 7, FP = 6, OTHER = 3 };
#endif

/*
 * A world for literal stacks: one image mapped at BIAS + its addresses, a range of generated code
 * without tables, and memory of which the dump is the beginning.
 */
#define BIAS UINT64_C(0x550000000000)
#define JIT UINT64_C(0x7f0000000000)
#define STACK UINT64_C(0x7ffc00001000)

enum { JIT_BYTES = 0x1000, STACK_WORDS = 1024 };

struct world {
    struct frame_image *image;
    struct elf elf;
    struct unwind_table *table;
    struct unwinder unwinder;
    struct unwind_result result;
    uint64_t words[STACK_WORDS]; /* of the stack, at STACK */
    unsigned char jit[JIT_BYTES];
    size_t dumped;               /* of these bytes, how many the sample has */
    size_t readable;             /* of them, how many memory has; 0: no memory but the dump */
    unsigned finds, reads;
    bool frame_pointers;
    uint64_t lr; /* AArch64 */
    const uint64_t *chain; /* the kernel's */
    size_t chain_len;
    const struct unwind_answer *answer; /* a runtime's, about all that is asked; null: there is none */
    unsigned asked, with_registers;
};

static bool answer(void *context, const struct unwind_question *question, struct unwind_answer *out)
{
    struct world *w = context;
    CHECK_INT(question->number, ++w->asked);
    CHECK(question->registers == NULL || question->registers[SP] == question->sp);
    w->with_registers += question->registers != NULL;
    *out = *w->answer;
    return true;
}

static bool find_place(void *context, uint64_t address, struct unwind_place *out)
{
    struct world *w = context;
    w->finds++;
    *out = (struct unwind_place){.image = 2, .start = JIT, .limit = JIT + JIT_BYTES,
                                 .frame_pointers = true};
    if (address >= JIT && address < JIT + JIT_BYTES) {
        return true;
    }
    *out = (struct unwind_place){.start = BIAS + IMAGE_TEXT,
                                 .limit = BIAS + IMAGE_TEXT + IMAGE_TEXT_BYTES,
                                 .bias = BIAS, .image = 1, .table = w->table,
                                 .frame_pointers = w->frame_pointers};
    return address >= out->start && address < out->limit;
}

static bool read_memory(void *context, uint64_t address, void *out, size_t len, struct err *err)
{
    struct world *w = context;
    w->reads++;
    if (address >= JIT && address + len <= JIT + JIT_BYTES) {
        memcpy(out, w->jit + (address - JIT), len);
        return true;
    }
    if (address < STACK || address - STACK > w->readable ||
        len > w->readable - (address - STACK)) {
        return err_set(err, ERR_GONE, 0, "not mapped");
    }
    memcpy(out, (char *)w->words + (address - STACK), len);
    return true;
}

/* Functions at +0x100, +0x200 … of 0x100 bytes each, in the order of `programs`. The text is nops
 * with a call before each of the usual return addresses (+0x20 within a function). */
static void world_open(struct world *w, const char *const *programs, const size_t *lens,
                       size_t count, unsigned flags)
{
    *w = (struct world){.image = frame_image_begin(0)};
    memset(w->image->bytes + IMAGE_TEXT_OFFSET, 0x90, IMAGE_TEXT_BYTES);
#if defined __aarch64__
    uint64_t cie = frame_image_cie(w->image, "zR", BYTES("\x0c\x1f\x00"));
#else
    uint64_t cie = frame_image_cie(w->image, "zR", BYTES("\x0c\x07\x08\x90\x01"));
#endif
    for (size_t i = 0; i < count; i++) {
        uint64_t start = IMAGE_TEXT + 0x100 * (i + 1);
        frame_image_fde(w->image, cie, start, 0x100, programs[i], lens[i]);
    }
    for (unsigned i = 0; i < 16; i++) {
#if defined __aarch64__
        frame_image_code(w->image, IMAGE_TEXT + 0x100 * i + 0x1c, "\x00\x00\x00\x94", 4);
#else
        frame_image_code(w->image, IMAGE_TEXT + 0x100 * i + 0x1b, "\xe8\0\0\0\0", 5);
#endif
    }
    frame_image_end(w->image, flags | IMAGE_HEADER | IMAGE_SECTIONS);
    CHECK(elf_open_bytes(&w->elf, w->image->bytes, w->image->len, NULL));
    w->table = unwind_table_new(&w->elf, 1 << 20);
    unwind_table_no_analysis(w->table);
    CHECK(unwinder_init(&w->unwinder, UNWIND_HYBRID, NULL));
    w->dumped = sizeof w->words;
}

static void world_close(struct world *w)
{
    unwinder_release(&w->unwinder);
    unwind_table_free(w->table);
    elf_release(&w->elf);
    free(w->image);
}

/* Unwinds from an ip with SP at word `sp` of the stack. */
static const struct unwind_result *walk(struct world *w, uint64_t ip, size_t sp, uint64_t fp,
                                        size_t max)
{
    struct unwind_registers r = {.known = 1ull << IP | 1ull << SP | 1ull << FP};
    struct memory_reader memory = {read_memory, w};
    struct unwind_space space = {.id = 7,
                                 .find = find_place,
                                 .resolve = w->answer != NULL ? answer : NULL,
                                 .code = &memory,
                                 .context = w};
    struct unwind_stack stack = {.base = STACK + sp * 8,
                                 .copy = (unsigned char *)w->words + sp * 8,
                                 .len = w->dumped - sp * 8,
                                 .beyond = w->readable > 0 ? &memory : NULL,
                                 .chain = w->chain,
                                 .chain_len = w->chain_len};
    r.at[IP] = ip;
    r.at[SP] = stack.base;
    r.at[FP] = fp;
#if defined __aarch64__
    r.at[30] = w->lr;
    r.known |= 1 << 30;
#endif
    unwind(&w->unwinder, &r, &stack, &space, max, &w->result);
    return &w->result;
}

/* The return address behind the call in function `n`. */
#define RA(n) (BIAS + IMAGE_TEXT + 0x100 * (uint64_t)(n) + 0x20)

/* "1+21! 2+1f 3+1f: complete": function, offset, and marks: ! exact, f by frame pointer,
 * a analysed, ? guessed, > continued. Functions of generated code are "jit". */
static const char *stack_text(const struct unwind_result *r)
{
    static char text[2000];
    static const char *const ends[] = {"complete", "truncated", "no rule", "bad memory", "guessed"};
    size_t len = 0;
    for (size_t i = 0; i < r->count && len < 1500; i++) {
        const struct unwind_frame *f = &r->frame[i];
        uint64_t at = f->elf_address - IMAGE_TEXT;
        if (f->image == 1) {
            len += (size_t)sprintf(text + len, "%llx+%llx", (unsigned long long)at >> 8,
                                   (unsigned long long)at & 0xff);
        } else {
            len += (size_t)sprintf(text + len, f->image == 2 ? "jit" : "nowhere");
        }
        static const struct {
            uint8_t flag;
            char mark;
        } marks[] = {{FRAME_EXACT, '!'}, {FRAME_BY_FP, 'f'}, {FRAME_ANALYSED, 'a'},
                     {FRAME_GUESSED, '?'}, {FRAME_CONTINUED, '>'}};
        for (size_t m = 0; m < COUNT(marks); m++) {
            text[len] = marks[m].mark;
            len += (f->flags & marks[m].flag) != 0;
        }
        text[len++] = ' ';
    }
    text[len > 0 ? len - 1 : 0] = 0;
    sprintf(text + strlen(text), ": %s", ends[r->end]);
    return text;
}

#define WALK(w, ip, sp, fp) stack_text(walk(w, ip, sp, fp, UNWIND_FRAMES_MAX))

#if !defined __aarch64__
/*
 * x86-64. Function 1 has a frame of 32 bytes, 2 saves rbp in a frame of 24 and uses it as the base,
 * 3 is the outermost, 4 interrupts, 5 loses rbp, 6 needs it, 7 needs rbx, 8 realigns its stack.
 */
static const char *const programs[] = {
    "\x0e\x20",                 /* 1: CFA = rsp + 32 */
    "\x86\x02\x0c\x06\x10",     /* 2: rbp at CFA - 16, CFA = rbp + 16 */
    "\x07\x10",                 /* 3: the return address is undefined */
    "\x0e\x10",                 /* 4: CFA = rsp + 16 */
    "\x0e\x10\x07\x06",         /* 5: CFA = rsp + 16, rbp lost */
    "\x0c\x06\x10",             /* 6: CFA = rbp + 16 */
    "\x0c\x03\x10",             /* 7: CFA = rbx + 16 */
    "\x0f\x03\x76\x78\x06\x10\x06\x02\x76\x00", /* 8: CFA = *(rbp - 8), rbp at *(rbp) */
    "\x0e\x08",                 /* 9: as after a call */
    "\x0e\xc0\xb8\x02\x86\x88\x27\x90\x87\x27", /* a: CFA = rsp + 40000, rbp at rsp, RA behind */
    "\x0e\x18\x83\x02",         /* b: CFA = rsp + 24, rbx at CFA - 16 */
    "\x0f\x05\x77\x78\x06\x23\x08", /* c: CFA = *(rsp - 8) + 8 */
    "\x41\x0e\x10\x86\x02\x43\x0d\x06", /* d: push %rbp, mov %rsp,%rbp, and from then on CFA = rbp + 16 */
};
static const size_t lens[] = {2, 5, 2, 2, 4, 3, 3, 10, 2, 10, 4, 7, 8};

static void open_usual(struct world *w)
{
    world_open(w, programs, lens, COUNT(programs), 0);
}

static void frames_by_rules(void)
{
    struct world w;
    open_usual(&w);
    w.words[3] = RA(2);              /* 1's frame: words 0 … 3 */
    w.words[6] = 0x1234;             /* 2's: rbp = address of word 6, rbp of the caller */
    w.words[7] = RA(4);
    w.words[9] = RA(3);              /* 4's: words 8, 9 */
    CHECK_TEXT(WALK(&w, RA(1), 0, STACK + 48), "1+20! 2+1f 4+1f 3+1f: complete");
    CHECK_INT(w.result.frame[1].address, RA(2) - 1);
    CHECK_INT(w.result.frame[1].image, 1);
    /* from the cache the second time: nothing is looked for */
    unsigned finds = w.finds;
    CHECK_TEXT(WALK(&w, RA(1), 0, STACK + 48), "1+20! 2+1f 4+1f 3+1f: complete");
    CHECK_INT(w.finds, finds);
    CHECK_INT(w.unwinder.counters.hits, 4);
    CHECK_INT(w.unwinder.counters.frames, 8);
    CHECK_INT(w.unwinder.counters.stacks[STACK_COMPLETE], 2);
    world_close(&w);
}

static void ends(void)
{
    struct world w;
    open_usual(&w);
    w.words[3] = 0; /* musl and Go push 0 for a first function's caller */
    CHECK_TEXT(WALK(&w, RA(1), 0, 0), "1+20!: complete");
    w.words[3] = 0x1000; /* outside of all code */
    CHECK_TEXT(WALK(&w, RA(1), 0, 0), "1+20!: bad memory");
    w.words[3] = RA(1);
    for (unsigned i = 0; i < STACK_WORDS / 4; i++) {
        w.words[4 * i + 3] = RA(1);
    }
    w.words[STACK_WORDS - 4 + 3] = 0;             /* a first function */
    CHECK(walk(&w, RA(1), 0, 0, 8)->count <= 8);  /* deeper than is kept */
    CHECK(w.result.count > 6);
    CHECK_INT(w.result.joint, 6);                 /* the leaf-most six are there … */
    CHECK_INT(w.result.end, STACK_COMPLETE);      /* … and the walk went on to the end */
    w.words[STACK_WORDS - 4 + 3] = RA(1);
    CHECK_INT(walk(&w, RA(1), 0, 0, UNWIND_FRAMES_MAX)->count, STACK_WORDS / 4 + 1);
    CHECK_INT(w.result.end, STACK_TRUNCATED); /* at the end of the dump */
    /* a leaf that is nowhere, with nothing to go by */
    memset(w.words, 0, sizeof w.words);
    CHECK_TEXT(WALK(&w, 0x10, 0, 1), "nowhere!: no rule");
    CHECK_INT(w.result.frame[0].image, 0);
    world_close(&w);
}

static void lost_frame_pointer(void)
{
    struct world w;
    open_usual(&w);
    /* 5 does not keep rbp: 9 between does not mind, 6 cannot go on. (Nothing here looks called.) */
    w.words[1] = RA(9);
    w.words[2] = BIAS + IMAGE_TEXT + 0x640;
    CHECK_TEXT(WALK(&w, RA(5), 0, STACK + 64), "5+20! 9+1f 6+3f: no rule");
    /* with rbp kept, it can: 4 … 6, and CFA = rbp + 16 */
    w.words[1] = RA(6);
    w.words[9] = RA(3);
    CHECK_TEXT(WALK(&w, RA(4), 0, STACK + 64), "4+20! 6+1f 3+1f: complete");
    world_close(&w);
}

/* What /proc tells of a thread that sleeps in function 1. */
static const char *walk_of_sleeper(struct world *w)
{
    struct memory_reader memory = {read_memory, w};
    const struct unwind_space space = {.id = 7, .find = find_place, .code = &memory, .context = w};
    const struct unwind_stack stack = {.base = STACK, .copy = (unsigned char *)w->words, .len = w->dumped};
    const struct unwind_registers r = unwind_registers_at(RA(1), STACK);
    unwind(&w->unwinder, &r, &stack, &space, UNWIND_FRAMES_MAX, &w->result);
    return stack_text(&w->result);
}

static void unknown_frame_pointer(void)
{
    struct world w;
    open_usual(&w);
    static const char code[] = "\x55"             /* push %rbp */
                               "\x48\x89\xe5"     /* mov %rsp,%rbp */
                               "\x48\x83\xec\x10" /* sub $0x10,%rsp */
                               "\x90\x90\x90\x90\x90\x90\x90\x90\x90\x90\x90\x90\x90\x90\x90\x90\x90\x90\x90"
                               "\xe8\0\x10\0\0"   /* call, outside */
                               "\xc9\xc3";        /* leave, ret */
    frame_image_code(w.image, IMAGE_TEXT + 0xd00, code, sizeof code - 1);
    w.words[3] = RA(0xd);         /* 1's frame: words 0 … 3 */
    w.words[5] = RA(9);           /* d's: a word of an earlier call … */
    w.words[6] = STACK + 10 * 8;  /* … rbp as d found it … */
    w.words[7] = RA(2);           /* … and who called it: words 4 … 7 by the code, although its CFI wants rbp */
    w.words[11] = RA(3);          /* 2's, by that rbp */
    CHECK_TEXT(walk_of_sleeper(&w), "1+20! d+1f 2+1fa 3+1f: complete");
    CHECK_TEXT(walk_of_sleeper(&w), "1+20! d+1f 2+1fa 3+1f: complete"); /* from the cache */
    /* where rbp is known the CFI has it */
    w.words[9] = RA(2);
    w.words[8] = STACK + 12 * 8;
    w.words[13] = RA(3);
    CHECK_TEXT(WALK(&w, RA(1), 0, STACK + 8 * 8), "1+20! d+1f 2+1f 3+1f: complete");
    world_close(&w);
}

/* alloca: no code tells SP, and a guess is marked as one. */
static void unknown_frame_pointer_and_size(void)
{
    struct world w;
    open_usual(&w);
    static const char code[] = "\x55"             /* push %rbp */
                               "\x48\x89\xe5"     /* mov %rsp,%rbp */
                               "\x48\x29\xc4"     /* sub %rax,%rsp */
                               "\x90\x90\x90\x90\x90\x90\x90\x90\x90\x90\x90\x90\x90\x90\x90\x90\x90\x90"
                               "\x90\x90"
                               "\xe8\0\x10\0\0"   /* call, outside */
                               "\xc9\xc3";        /* leave, ret */
    frame_image_code(w.image, IMAGE_TEXT + 0xd00, code, sizeof code - 1);
    w.words[3] = RA(0xd);
    w.words[7] = RA(2);
    (void)walk_of_sleeper(&w);
    CHECK_INT(w.result.end, STACK_GUESSED);
    world_close(&w);
}

static void other_registers(void)
{
    struct world w;
    open_usual(&w);
    w.words[4] = 0x1111;
    w.words[5] = RA(3);
    /* 7 at the leaf, with rbx in the sample */
    struct unwind_registers r = {.known = 0x10088};
    struct unwind_space space = {.id = 1, .find = find_place, .context = &w};
    struct unwind_stack stack = {.base = STACK, .copy = (unsigned char *)w.words, .len = 512};
    r.at[IP] = RA(7);
    r.at[SP] = STACK;
    r.at[OTHER] = STACK + 32;
    unwind(&w.unwinder, &r, &stack, &space, 100, &w.result);
    CHECK_TEXT(stack_text(&w.result), "7+20! 3+1f: complete");
    /* in a caller it is believed when it leads behind a call: nobody changed rbx between */
    w.words[1] = RA(7);
    r.at[IP] = RA(4);
    unwind(&w.unwinder, &r, &stack, &space, 100, &w.result);
    CHECK_TEXT(stack_text(&w.result), "4+20! 7+1f 3+1f: complete");
    w.words[5] = RA(3) + 1; /* not behind a call: the scan then finds nothing either */
    w.words[1] = BIAS + IMAGE_TEXT + 0x740;
    unwind(&w.unwinder, &r, &stack, &space, 100, &w.result);
    CHECK_TEXT(stack_text(&w.result), "4+20! 7+3f: no rule");
    r.known |= 1 << FP; /* and a zero in rbp proves nothing in code that has a rule */
    unwind(&w.unwinder, &r, &stack, &space, 100, &w.result);
    CHECK_TEXT(stack_text(&w.result), "4+20! 7+3f: no rule");
    world_close(&w);
}

/* The dynamic linker's resolver counts from rbx, which what it calls has saved and overwritten. */
static void saved_registers(void)
{
    struct world w;
    open_usual(&w);
    struct unwind_registers r = {.known = 0x10088};
    struct unwind_space space = {.id = 1, .find = find_place, .context = &w};
    struct unwind_stack stack = {.base = STACK, .copy = (unsigned char *)w.words, .len = 512};
    w.words[3] = RA(11);             /* 1: words 0 … 3 */
    w.words[5] = STACK + 8 * 12;     /* 11: words 4 … 6, rbx in 5 */
    w.words[6] = RA(4);
    w.words[8] = RA(7);              /* 4: words 7, 8; 7's CFA = rbx + 16 */
    w.words[13] = RA(3);
    r.at[IP] = RA(1);
    r.at[SP] = STACK;
    r.at[OTHER] = 0x4141;
    unwind(&w.unwinder, &r, &stack, &space, 100, &w.result);
    CHECK_TEXT(stack_text(&w.result), "1+20! b+1f 4+1f 7+1f 3+1f: complete");
    w.words[5] = 0x4141;
    w.words[13] = 0;
    unwind(&w.unwinder, &r, &stack, &space, 100, &w.result);
    CHECK_TEXT(stack_text(&w.result), "1+20! b+1f 4+1f 7+1f: no rule");
    world_close(&w);
}

static void realigned(void)
{
    struct world w;
    open_usual(&w);
    w.words[3] = RA(8);             /* 1's caller is 8, whose rbp is word 10 */
    w.words[9] = STACK + 8 * 20;    /* *(rbp - 8): the CFA */
    w.words[10] = STACK + 8 * 30;   /* *(rbp): the caller's rbp */
    w.words[19] = RA(6);            /* 6 goes by it: CFA = word 32 */
    w.words[31] = RA(3);
    CHECK_TEXT(WALK(&w, RA(1), 0, STACK + 80), "1+20! 8+1f 6+1f 3+1f: complete");
    world_close(&w);
}

static void below_sp(void)
{
    struct world w;
    open_usual(&w);
    w.words[2] = STACK + 8 * 10; /* points up, but to no return address */
    w.words[10] = 1234;
    w.words[5] = STACK + 8 * 20; /* the copy that was left behind */
    w.words[20] = RA(3);
    CHECK_TEXT(WALK(&w, RA(12), 0, 0), "c+20! 3+1fa: complete");
    w.words[5] = 0;
    w.words[20] = 0;
    CHECK_TEXT(WALK(&w, RA(12), 0, 0), "c+20!: no rule");
    world_close(&w);
}

static void large_frame(void)
{
    struct world w;
    open_usual(&w);
    w.words[0] = STACK + 40000 + 64;
    w.words[1] = RA(6); /* which needs the rbp at rsp: word 0 */
    CHECK_TEXT(WALK(&w, RA(10), 0, 0), "a+20! 6+1f: truncated");
    w.words[1] = RA(3);
    CHECK_TEXT(WALK(&w, RA(10), 0, 0), "a+20! 3+1f: complete");
    world_close(&w);
}

static void contradictions(void)
{
    struct world w;
    open_usual(&w);
    w.words[11] = RA(3);
    CHECK_TEXT(WALK(&w, RA(6), 4, STACK + 8), "6+20!: bad memory"); /* CFA below SP */
    CHECK_TEXT(WALK(&w, RA(6), 4, STACK + 16), "6+20!: bad memory"); /* CFA at SP */
    const uint64_t ra = RA(3);
    memcpy((char *)w.words + 81 + 8, &ra, sizeof ra);
    CHECK_TEXT(WALK(&w, RA(6), 4, STACK + 81), "6+20!: bad memory"); /* not aligned */
    w.words[11] = RA(3);
    CHECK_TEXT(WALK(&w, RA(6), 4, STACK + (65 << 20)), "6+20!: bad memory"); /* too far */
    CHECK_TEXT(WALK(&w, RA(6), 4, UINT64_MAX), "6+20!: bad memory"); /* once overflowed elsewhere */
    CHECK_TEXT(WALK(&w, RA(6), 4, STACK + 80), "6+20! 3+1f: complete");
    world_close(&w);
}

static void beyond_the_dump(void)
{
    struct world w;
    open_usual(&w);
    w.words[3] = RA(4);
    w.words[5] = RA(4);
    w.words[1021] = 0;
    for (unsigned i = 7; i < 601; i += 2) {
        w.words[i] = RA(4);
    }
    w.words[601] = RA(3);
    w.dumped = 48; /* up to word 5 */
    CHECK_TEXT(WALK(&w, RA(1), 0, 0), "1+20! 4+1f 4+1f: truncated");
    w.readable = sizeof w.words;
    CHECK_INT(walk(&w, RA(1), 0, 0, UNWIND_FRAMES_MAX)->end, STACK_COMPLETE);
    CHECK_INT(w.result.count, 301);
    CHECK_INT(w.result.frame[2].flags, 0);
    CHECK_INT(w.result.frame[3].flags, FRAME_CONTINUED);
    CHECK_INT(w.unwinder.counters.continued, 298);
    /* one comparison of the end, one of the last return address, two pages */
    unsigned reads = w.reads;
    (void)walk(&w, RA(1), 0, 0, UNWIND_FRAMES_MAX);
    CHECK_INT(w.reads - reads, 4);
    world_close(&w);
}

static void changed_since(void)
{
    struct world w;
    unsigned char dump[48];
    open_usual(&w);
    w.words[3] = RA(4);
    w.words[5] = RA(4);
    w.words[7] = RA(3);
    memcpy(dump, w.words, sizeof dump);
    struct memory_reader memory = {read_memory, &w};
    struct unwind_space space = {.id = 1, .find = find_place, .code = &memory, .context = &w};
    struct unwind_stack stack = {.base = STACK, .copy = dump, .len = sizeof dump,
                                 .beyond = &memory};
    struct unwind_registers r = {.known = 0x10080};
    r.at[IP] = RA(1);
    r.at[SP] = STACK;
    w.readable = sizeof w.words;
    unwind(&w.unwinder, &r, &stack, &space, 100, &w.result);
    CHECK_TEXT(stack_text(&w.result), "1+20! 4+1f 4+1f 3+1f>: complete");
    w.words[5] = RA(9); /* the thread has returned and called something else since */
    unwind(&w.unwinder, &r, &stack, &space, 100, &w.result);
    CHECK_TEXT(stack_text(&w.result), "1+20! 4+1f 4+1f: truncated");
    w.words[5] = RA(4);
    w.words[7] = 0x4141; /* nonsense in memory that is newer is no contradiction of the sample */
    unwind(&w.unwinder, &r, &stack, &space, 100, &w.result);
    CHECK_TEXT(stack_text(&w.result), "1+20! 4+1f 4+1f: truncated");
    world_close(&w);
}

static void generated_code(void)
{
    struct world w;
    open_usual(&w);
    /* push rbp; mov rbp,rsp; sub rsp,32; … */
    memcpy(w.jit + 0x10, "\x55\x48\x89\xe5\x48\x83\xec\x20\x90\x90", 10);
    /* C (1) called by generated code, called by generated code, called by C (2: base rbp) */
    w.words[3] = JIT + 0x80;
    w.words[8] = STACK + 8 * 12; /* rbp of the generated frame is word 8 */
    w.words[9] = JIT + 0x90;
    w.words[12] = STACK + 8 * 20;
    w.words[13] = RA(2);
    w.words[20] = 0;
    w.words[21] = RA(3);
    CHECK_TEXT(WALK(&w, RA(1), 0, STACK + 64), "1+20! jit jitf 2+1ff 3+1f: complete");
    /* at its first instructions, the frame pointer is still the caller's */
    w.words[0] = JIT + 0x80;
    CHECK_TEXT(WALK(&w, JIT + 0x10, 0, STACK + 64), "jit! jita jitf 2+1ff 3+1f: complete");
    w.words[0] = STACK + 64;
    w.words[1] = JIT + 0x80;
    CHECK_TEXT(WALK(&w, JIT + 0x11, 0, STACK + 64), "jit! jita jitf 2+1ff 3+1f: complete");
    CHECK_TEXT(WALK(&w, JIT + 0x18, 4, STACK + 64), "jit! jitf 2+1ff 3+1f: complete");
    /* the chain's end is a zero frame pointer */
    w.words[8] = 0;
    w.words[9] = JIT + 0x90;
    CHECK_TEXT(WALK(&w, JIT + 0x18, 4, STACK + 64), "jit! jitf: complete");
    /* a leaf outside of all mappings is generated code that nobody has told of yet */
    w.words[8] = STACK + 8 * 12;
    CHECK_TEXT(WALK(&w, JIT + 0x5000, 4, STACK + 64), "nowhere! jitf 2+1ff 3+1f: complete");
    /* a wild frame pointer ends it too, honestly (and nothing is left to guess) */
    w.words[8] = 0x4141414141414141;
    w.words[13] = w.words[21] = 0;
    CHECK_TEXT(WALK(&w, JIT + 0x18, 4, STACK + 64), "jit! jitf: no rule");
    world_close(&w);
}

/* Where a runtime knows of its code how to go on; below its frame a leaf may have pushed some words more. */
static void by_a_runtime(void)
{
    static const struct unwind_answer size = {.way = UNWIND_BY_SIZE, .value = 16},
                                      cfa = {.way = UNWIND_BY_CFA, .value = STACK + 8 * 8};
    struct world w;
    open_usual(&w);
    w.answer = &size;
    w.words[2] = JIT + 0x80;
    w.words[5] = RA(3);
    CHECK_TEXT(WALK(&w, JIT + 0x10, 0, STACK + 8 * 40), "jit! jit 3+1f: complete");
    CHECK(w.asked == 2 && w.with_registers == 1); /* those of the leaf */
    for (size_t pushed = 1; pushed <= 5; pushed++) {
        memset(w.words, 0, sizeof w.words);
        w.asked = 0;
        w.words[2 + pushed] = RA(3);
        const char *text = WALK(&w, JIT + 0x10, 0, STACK + 8 * 40);
        CHECK_TEXT(text, pushed <= 4 ? "jit! 3+1f: complete" : "jit!: complete"); /* by the frame pointer, to 0 */
    }
    /* a caller has pushed nothing */
    w.asked = 0;
    w.words[2] = JIT + 0x80;
    w.words[6] = RA(3);
    CHECK_TEXT(WALK(&w, JIT + 0x10, 0, STACK + 8 * 40), "jit! jit: complete");
    w.answer = &cfa;
    w.asked = 0;
    w.words[7] = RA(3);
    CHECK_TEXT(WALK(&w, JIT + 0x10, 0, STACK + 8 * 40), "jit! 3+1f: complete");
    world_close(&w);
}

/* CPython's, which keep no frame pointer: what rbp holds is somebody else's. */
static void trampolines(void)
{
    static const uint64_t of_others[] = {0, 1, STACK + 8 * 20};
    struct world w;
    open_usual(&w);
    memcpy(w.jit + 0x100, "\x48\x83\xec\x08\xff\xd1\x48\x83\xc4\x08\xc3", 11);
    w.words[3] = JIT + 0x106;
    w.words[4] = RA(2); /* left behind by an earlier call */
    w.words[5] = RA(4);
    w.words[7] = RA(3);
    w.words[21] = RA(2);
    for (size_t i = 0; i < COUNT(of_others); i++) {
        CHECK_TEXT(WALK(&w, RA(1), 0, of_others[i]), "1+20! jit 4+1fa 3+1f: complete");
    }
    world_close(&w);
}

static void guesses(void)
{
    struct world w;
    open_usual(&w);
    /* code without rules or frame pointer: the first word that is behind a call is taken */
    w.words[2] = BIAS + IMAGE_TEXT + 0x440; /* code, but nothing is called there */
    w.words[5] = RA(4);
    w.words[7] = RA(3);
    CHECK_TEXT(WALK(&w, BIAS + IMAGE_TEXT + 0x2000, 0, 1), "20+0! 4+1f? 3+1f: guessed");
    CHECK(w.result.at_start);
    CHECK_INT(w.result.reach, 7 * 8);
    w.words[7] = 0; /* the end of a stack, or a wrong turn's */
    CHECK_TEXT(WALK(&w, BIAS + IMAGE_TEXT + 0x2000, 0, 1), "20+0! 4+1f?: guessed");
    CHECK(!w.result.at_start);
    w.words[7] = RA(3);
    CHECK_INT(w.unwinder.counters.guessed, 2);
    CHECK_INT(w.unwinder.counters.stacks[STACK_GUESSED], 2);
    w.words[5] = 0;
    w.words[7] = 0;
    CHECK_TEXT(WALK(&w, BIAS + IMAGE_TEXT + 0x2000, 0, 1), "20+0!: no rule");
    /* a zero frame pointer is the end, if nothing above says otherwise: the code may use rbp for
     * something else */
    CHECK_TEXT(WALK(&w, BIAS + IMAGE_TEXT + 0x2000, 0, 0), "20+0!: complete");
    w.words[5] = RA(3);
    CHECK_TEXT(WALK(&w, BIAS + IMAGE_TEXT + 0x2000, 0, 0), "20+0! 3+1f?: guessed");
    /* not asked for: neither guesses nor frame pointers */
    unwinder_release(&w.unwinder);
    CHECK(unwinder_init(&w.unwinder, UNWIND_CFI_ONLY, NULL));
    w.words[5] = RA(4);
    w.words[7] = RA(3);
    CHECK_TEXT(WALK(&w, BIAS + IMAGE_TEXT + 0x2000, 0, STACK + 32), "20+0!: no rule");
    world_close(&w);
}

static void signal_frame(void)
{
    struct world w;
    open_usual(&w);
    /* musl's trampoline has no CFI: mov $15,%rax; syscall. Below it, an ucontext */
    frame_image_code(w.image, IMAGE_TEXT + 0x3000, "\x48\xc7\xc0\x0f\0\0\0\x0f\x05", 9);
    w.words[3] = BIAS + IMAGE_TEXT + 0x3000; /* the handler, 1, returns to it */
    uint64_t *registers = &w.words[4 + 5];
    registers[10] = STACK + 8 * 60;          /* rbp */
    registers[15] = STACK + 8 * 50;          /* rsp */
    registers[16] = BIAS + IMAGE_TEXT + 0x600; /* rip: function 6's first instruction, exactly */
    registers[11] = STACK + 8 * 70;          /* rbx */
    w.words[61] = RA(7);                     /* which needs rbx, as it was then */
    w.words[71] = RA(3);
    CHECK_TEXT(WALK(&w, RA(1), 0, 0), "1+20! 30+0! 6+0! 7+1f 3+1f: complete");
    /* the handler ran on another stack: memory below the dump is read */
    registers[15] = STACK + 8 * 2;
    registers[10] = STACK + 8 * 4;
    registers[16] = RA(4);
    w.words[100 + 3] = w.words[3];
    memcpy(&w.words[104], &w.words[4], 30 * 8);
    w.words[3] = RA(3);
    CHECK_TEXT(WALK(&w, RA(1), 100, 0), "1+20! 30+0! 4+20!: truncated");
    w.readable = sizeof w.words;
    CHECK_TEXT(WALK(&w, RA(1), 100, 0), "1+20! 30+0! 4+20! 3+1f>: complete");
    world_close(&w);
}

static void first_code(void)
{
    struct world w;
    open_usual(&w);
    /* xor %rbp,%rbp; mov %rsp,%rdi; lea 0(%rip),%rsi; and $-16,%rsp; call */
    frame_image_code(w.image, IMAGE_TEXT + 0x4000,
                     "\x48\x31\xed\x48\x89\xe7\x48\x8d\x35\0\0\0\0\x48\x83\xe4\xf0\xe8\0\0\0\0",
                     22);
    w.words[3] = BIAS + IMAGE_TEXT + 0x4000 + 22;
    CHECK_TEXT(WALK(&w, RA(1), 0, 0x77), "1+20! 40+15: complete");
    /* the dynamic linker has it the other way round: and $-16,%rsp; …; xor %ebp,%ebp; call */
    frame_image_code(w.image, IMAGE_TEXT + 0x6000,
                     "\x48\x83\xe4\xf0\x49\x8d\x55\x08\x31\xed\xe8\0\0\0\0", 15);
    w.words[3] = BIAS + IMAGE_TEXT + 0x600f;
    CHECK_TEXT(WALK(&w, RA(1), 0, 0x77), "1+20! 60+e: complete");
    /* clone: xor %ebp,%ebp; pop %rdi; call *%r9 */
    frame_image_code(w.image, IMAGE_TEXT + 0x5000, "\x31\xed\x5f\x41\xff\xd1", 6);
    w.words[3] = BIAS + IMAGE_TEXT + 0x5006;
    CHECK_TEXT(WALK(&w, RA(1), 0, 0x77), "1+20! 50+5: complete");
    world_close(&w);
}

/* What makecontext lets the first function return to: nobody has called it. */
static void coroutines(void)
{
    struct world w;
    open_usual(&w);
    /* mov %rbx,%rsp; mov (%rsp),%rdi; test %rdi,%rdi; with branch tracking, and as it was before */
    frame_image_code(w.image, IMAGE_TEXT + 0x5000, "\x48\x89\xdc\x48\x8b\x3c\x24\x48\x85\xff", 10);
    frame_image_code(w.image, IMAGE_TEXT + 0x5100, "\xf3\x0f\x1e\xfa\x48\x89\xdc\x48\x8b\x3c\x24\x48\x85\xff", 14);
    frame_image_code(w.image, IMAGE_TEXT + 0x5200, "\x48\x89\xdc\x5f\x48\x85\xff", 7);
    w.words[4] = RA(3); /* the next context's, which is of no concern */
    w.words[3] = BIAS + IMAGE_TEXT + 0x5000;
    CHECK_TEXT(WALK(&w, RA(1), 0, 0x77), "1+20! 50+0!: complete");
    w.words[3] = BIAS + IMAGE_TEXT + 0x5100;
    CHECK_TEXT(WALK(&w, RA(1), 0, 0x77), "1+20! 51+0!: complete");
    w.words[3] = BIAS + IMAGE_TEXT + 0x5200;
    CHECK_TEXT(WALK(&w, RA(1), 0, 0x77), "1+20! 52+0!: complete");
    w.dumped = 16; /* beyond the copy as well */
    w.readable = sizeof w.words;
    CHECK_TEXT(WALK(&w, RA(1), 0, 0x77), "1+20! 52+0!>: complete");
    world_close(&w);
}

static void go_stacks(void)
{
    struct world w;
    world_open(&w, programs, lens, COUNT(programs), IMAGE_GO);
    w.frame_pointers = true;
    /* The leaf goes by CFI, which does not mention rbp; callers go by rbp. Here 9 is a leaf without
     * a frame, so that rbp is its caller's; and the chain leads to another, lower stack. */
    w.words[200] = RA(1);
    w.words[210] = STACK + 8 * 20; /* rbp of the frame above: on the goroutine's stack */
    w.words[211] = RA(4);
    w.words[20] = 0;
    w.words[21] = RA(5);
    w.readable = sizeof w.words;
    CHECK_TEXT(WALK(&w, RA(9), 200, STACK + 8 * 210), "9+20! 1+1f 4+1ff 5+1ff>: complete");
    CHECK_INT(w.result.reach, 11 * 8); /* a larger copy would not have the other stack */
    /* a leaf with its frame set up: rbp is its own */
    w.words[202] = STACK + 8 * 210; /* the record, at CFA - 16 */
    w.words[203] = RA(4);
    CHECK_TEXT(WALK(&w, RA(1), 200, STACK + 8 * 202), "1+20! 4+1f 4+1ff 5+1ff>: complete");
    /* without the memory of the other stack */
    w.readable = 0;
    CHECK_TEXT(WALK(&w, RA(9), 200, STACK + 8 * 210), "9+20! 1+1f 4+1ff: truncated");
    world_close(&w);
}

/* Function 9 is one like duffzero: around its call rbp is 16 below 1's rsp, and what stands there by now is of another
 * call. */
static void go_record_below(void)
{
    struct world w;
    world_open(&w, programs, lens, COUNT(programs), IMAGE_GO);
    w.frame_pointers = true;
    w.words[199] = STACK + 8 * 220;
    w.words[200] = RA(1);          /* 1's frame: words 201 … 204 */
    w.words[203] = STACK + 8 * 210;
    w.words[204] = RA(4);
    w.words[210] = 0;
    w.words[211] = RA(3);
    w.readable = sizeof w.words;
    CHECK_TEXT(WALK(&w, RA(9), 200, STACK + 8 * 199), "9+20! 1+1f 4+1fa 3+1ff: complete");
    /* just before the call */
    CHECK_TEXT(WALK(&w, RA(1), 201, STACK + 8 * 199), "1+20! 4+1f 3+1ff: complete");
    world_close(&w);
}

static bool is_first(void *context, uint64_t address, uint32_t *bytes)
{
    *bytes = UNWIND_OUTERMOST;
    return (address - IMAGE_TEXT) >> 8 == (uintptr_t)context;
}

static void no_release(void *context)
{
    (void)context;
}

/* C code started the thread: rbp is of nothing that is on its stack. */
static void go_first_function(void)
{
    struct world w;
    world_open(&w, programs, lens, COUNT(programs), IMAGE_GO);
    w.frame_pointers = true;
    w.words[200] = RA(1);
    w.words[210] = BIAS + IMAGE_TEXT;
    w.words[211] = RA(4);
    w.readable = sizeof w.words;
    CHECK_TEXT(WALK(&w, RA(9), 200, STACK + 8 * 210), "9+20! 1+1f 4+1ff: bad memory");
    unwind_table_take_depths(w.table, (struct unwind_depths){is_first, no_release, (void *)4});
    unwinder_release(&w.unwinder);
    CHECK(unwinder_init(&w.unwinder, UNWIND_HYBRID, NULL));
    CHECK_TEXT(WALK(&w, RA(9), 200, STACK + 8 * 210), "9+20! 1+1f 4+1ff: complete");
    CHECK(w.result.at_start);
    world_close(&w);
}

/* rbp is not known: the first caller goes by CFI, and has saved it. */
static void go_sleepers(void)
{
    struct world w;
    world_open(&w, programs, lens, COUNT(programs), IMAGE_GO);
    w.frame_pointers = true;
    w.words[3] = RA(1);            /* the leaf is 1: words 0 … 3 */
    w.words[6] = STACK + 8 * 20;   /* as 1's caller, also 1, has it at CFA - 16: words 4 … 7 */
    w.words[7] = RA(4);
    w.words[20] = 0;
    w.words[21] = RA(5);
    w.readable = sizeof w.words;
    CHECK_TEXT(walk_of_sleeper(&w), "1+20! 1+1f 4+1fa 5+1ff: complete");
    world_close(&w);
}

/* What the kernel found at the sample; by now the goroutine's stack holds other calls. */
static void go_stacks_by_the_kernels_chain(void)
{
    struct world w;
    world_open(&w, programs, lens, COUNT(programs), IMAGE_GO);
    w.frame_pointers = true;
    w.words[200] = RA(1);
    w.words[210] = STACK + 8 * 20;
    w.words[211] = RA(4);
    w.words[20] = 0;
    w.words[21] = RA(6);
    w.readable = sizeof w.words;
    const uint64_t chain[] = {RA(9), RA(4), RA(5), BIAS + IMAGE_TEXT + 0x4001}; /* which is no call's */
    w.chain = chain;
    w.chain_len = COUNT(chain);
    CHECK_TEXT(WALK(&w, RA(9), 200, STACK + 8 * 210), "9+20! 1+1f 4+1ff 5+1ff 40+0f: complete");
    CHECK_INT(w.result.reach, 11 * 8); /* of the copy */
    w.chain_len = COUNT(chain) - 1; /* the kernel had no room for more */
    CHECK_TEXT(WALK(&w, RA(9), 200, STACK + 8 * 210), "9+20! 1+1f 4+1ff 5+1ff: truncated");
    CHECK_INT(w.result.reach, 11 * 8);
    w.words[210] = STACK + 8 * 5000; /* the goroutine's stack is above the thread's own */
    CHECK_TEXT(WALK(&w, RA(9), 200, STACK + 8 * 210), "9+20! 1+1f 4+1ff 5+1ff: truncated");
    CHECK_INT(w.result.reach, 11 * 8);
    w.words[210] = STACK + 8 * 1100; /* its own, beyond the copy */
    CHECK_TEXT(WALK(&w, RA(9), 200, STACK + 8 * 210), "9+20! 1+1f 4+1ff 5+1ff: truncated");
    CHECK_INT(w.result.reach, w.dumped - 200 * 8);
    w.words[210] = STACK + 8 * 20;
    w.chain_len = 1; /* it does not have this frame */
    CHECK_TEXT(WALK(&w, RA(9), 200, STACK + 8 * 210), "9+20! 1+1f 4+1ff 6+1ff>: complete");
    world_close(&w);
}
#else
/*
 * AArch64. Function 1 is a leaf that keeps its return address in LR, 2 has a frame of 32 bytes with
 * the record {x29, x30} at its lower end, 3 is the outermost, 4 as Go has it: 48 bytes, LR at their lower end, and
 * x29 a word below them.
 */
static const char *const programs[] = {
    "\0",
    "\x0e\x20\x9d\x04\x9e\x03",
    "\x07\x1e",
    "\x0e\x30\x9e\x06",
};
static const size_t lens[] = {1, 6, 2, 4};

static void open_usual(struct world *w)
{
    world_open(w, programs, lens, COUNT(programs), 0);
}

static void link_register(void)
{
    struct world w;
    open_usual(&w);
    w.lr = RA(2);
    w.words[0] = STACK + 8 * 40;
    w.words[1] = RA(3);
    CHECK_TEXT(WALK(&w, RA(1), 0, STACK), "1+20! 2+1f 3+1f: complete"); /* CFA at SP, once */
    w.words[1] = RA(3) | UINT64_C(0x00a5) << 48; /* signed */
    CHECK_TEXT(WALK(&w, RA(1), 0, STACK), "1+20! 2+1f 3+1f: complete");
    /* a caller has called: LR is not its return address; the frame pointer is of the next frame */
    w.words[1] = RA(1);
    w.words[40] = STACK + 8 * 50;
    w.words[41] = RA(3);
    CHECK_TEXT(WALK(&w, RA(1), 0, STACK), "1+20! 2+1f 1+1f 3+1ff: complete");
    w.words[0] = 1;
    w.words[41] = 0;
    CHECK_TEXT(WALK(&w, RA(1), 0, STACK), "1+20! 2+1f 1+1f: no rule");
    world_close(&w);
}

static void frame_records(void)
{
    struct world w;
    open_usual(&w);
    /* generated code, of whose frame only the record is known: SP is not known above it, so that 2
     * is left by its record too, though its rule counts from SP */
    w.words[4] = STACK + 8 * 10;
    w.words[5] = RA(2);
    w.words[10] = 0;
    w.words[11] = RA(3);
    CHECK_TEXT(WALK(&w, JIT + 0x80, 0, STACK + 32), "jit! 2+1ff 3+1ff: complete");
    world_close(&w);
}

/* The saved x29 of the leaf-most frame stands below SP, where the copy has nothing. */
static void go_frames(void)
{
    struct world w;
    world_open(&w, programs, lens, COUNT(programs), IMAGE_GO);
    w.frame_pointers = true;
    w.words[99] = STACK + 8 * 300; /* not copied */
    w.words[100] = RA(2);          /* 4: words 100 … 105 */
    w.words[105] = STACK + 8 * 111;
    w.words[106] = RA(2);
    w.words[111] = 0;
    w.words[112] = RA(4);
    w.lr = RA(4);
    CHECK_TEXT(WALK(&w, RA(1), 100, STACK + 8 * 99), "1+20! 4+1f 2+1fa 2+1ff 4+1ff: complete");
    CHECK_TEXT(WALK(&w, RA(4), 100, STACK + 8 * 99), "4+20! 2+1f 2+1ff 4+1ff: complete");
    w.words[100] = 0; /* the goroutine's first function */
    CHECK_TEXT(WALK(&w, RA(4), 100, STACK + 8 * 99), "4+20!: complete");
    world_close(&w);
}
#endif

/*
 * This process.
 */
enum { LOADED_MAX = 64 };

struct loaded {
    uint64_t start, limit, bias;
    struct elf elf;
    struct unwind_table *table;
    int fd;
};

struct self {
    struct loaded loaded[LOADED_MAX];
    size_t count;
    struct unwinder unwinder;
    struct unwind_result result;
    void *expected[256];
    int expected_count;
    size_t dump_max;
    bool use_beyond;
};

static bool read_fd(void *context, uint64_t address, void *out, size_t len, struct err *err)
{
    return pread((int)(intptr_t)context, out, len, (off_t)address) == (ssize_t)len ||
           err_set(err, ERR_IO, 0, "short read");
}

/* Through a pipe: the kernel tells what is mapped, and the sanitizer does not mind what lies
 * between variables. */
static bool read_self(void *context, uint64_t address, void *out, size_t len, struct err *err)
{
    int ends[2];
    (void)context;
    CHECK(pipe(ends) == 0);
    bool good = syscall(SYS_write, ends[1], address, len) == (ssize_t)len &&
                read(ends[0], out, len) == (ssize_t)len;
    close(ends[0]);
    close(ends[1]);
    return good || err_set(err, ERR_GONE, 0, "not mapped");
}

/* The vdso has no file, but all of it stands in memory. */
static int add_module(struct dl_phdr_info *info, size_t size, void *context)
{
    struct self *s = context;
    struct loaded *m = &s->loaded[s->count];
    (void)size;
    for (int i = 0; i < info->dlpi_phnum && s->count < LOADED_MAX; i++) {
        const ElfW(Phdr) *p = &info->dlpi_phdr[i];
        if (p->p_type != PT_LOAD || (p->p_flags & PF_X) == 0) {
            continue;
        }
        m->fd = open(info->dlpi_name[0] == 0 ? "/proc/self/exe" : info->dlpi_name, O_RDONLY);
        struct memory_reader file = {read_fd, (void *)(intptr_t)m->fd};
        if (m->fd < 0 ? !elf_open_bytes(&m->elf, (void *)info->dlpi_addr, p->p_memsz, NULL)
                      : !elf_open(&m->elf, &file, NULL)) {
            continue;
        }
        m->table = unwind_table_new(&m->elf, 4 << 20);
        m->bias = info->dlpi_addr;
        m->start = info->dlpi_addr + p->p_vaddr;
        m->limit = m->start + p->p_memsz;
        s->count++;
        break;
    }
    return 0;
}

/* Executable memory that is no file's: an emulator's trampoline. */
static bool find_other(uint64_t address, struct unwind_place *out)
{
    FILE *maps = fopen("/proc/self/maps", "r");
    char line[1000], prot[5];
    unsigned long start, limit;
    bool found = false;
    while (maps != NULL && !found && fgets(line, sizeof line, maps) != NULL) {
        found = sscanf(line, "%lx-%lx %4s", &start, &limit, prot) == 3 && prot[2] == 'x' &&
                address >= start && address < limit && strchr(line, '/') == NULL;
    }
    if (found) {
        *out = (struct unwind_place){.start = start, .limit = limit, .image = LOADED_MAX + 1};
    }
    if (maps != NULL) {
        fclose(maps);
    }
    return found;
}

static bool find_module(void *context, uint64_t address, struct unwind_place *out)
{
    struct self *s = context;
    for (size_t i = 0; i < s->count; i++) {
        struct loaded *m = &s->loaded[i];
        if (address >= m->start && address < m->limit) {
            *out = (struct unwind_place){.start = m->start, .limit = m->limit, .bias = m->bias,
                                         .image = i + 1, .table = m->table};
            return true;
        }
    }
    return find_other(address, out);
}

static void self_open(struct self *s)
{
    s->dump_max = 65528;
    dl_iterate_phdr(add_module, s);
    CHECK(unwinder_init(&s->unwinder, UNWIND_HYBRID, NULL));
}

static void self_close(struct self *s)
{
    for (size_t i = 0; i < s->count; i++) {
        unwind_table_free(s->loaded[i].table);
        elf_release(&s->loaded[i].elf);
        if (s->loaded[i].fd >= 0) {
            close(s->loaded[i].fd);
        }
    }
    unwinder_release(&s->unwinder);
    free(s);
}

static void registers_of(struct unwind_registers *r, const ucontext_t *u)
{
    *r = (struct unwind_registers){.known = 0};
#if defined __aarch64__
    memcpy(r->at, u->uc_mcontext.regs, 31 * 8);
    r->at[31] = u->uc_mcontext.sp;
    r->at[32] = u->uc_mcontext.pc;
    r->known = (UINT64_C(1) << 33) - 1;
#else
    static const int order[] = {REG_RAX, REG_RDX, REG_RCX, REG_RBX, REG_RSI, REG_RDI,
                                REG_RBP, REG_RSP, REG_R8,  REG_R9,  REG_R10, REG_R11,
                                REG_R12, REG_R13, REG_R14, REG_R15, REG_RIP};
    for (size_t i = 0; i < COUNT(order); i++) {
        r->at[i] = (uint64_t)u->uc_mcontext.gregs[order[i]];
    }
    r->known = (1 << 17) - 1;
#endif
}

static size_t copy_stack(uint64_t from, unsigned char *to, size_t max)
{
    size_t len = 0;
    while (len < max) { /* page by page up to what is mapped */
        size_t piece = 4096 - (from + len) % 4096;
        piece = piece < max - len ? piece : max - len;
        if (!read_self(NULL, from + len, to + len, piece, NULL)) {
            break;
        }
        len += piece;
    }
    return len;
}

/* Unwinds the caller and has libgcc do the same. */
static __attribute__((noinline)) void capture(struct self *s)
{
    static unsigned char dump[65536];
    struct unwind_registers r;
    ucontext_t here;
    getcontext(&here);
    registers_of(&r, &here);
    s->expected_count = backtrace(s->expected, COUNT(s->expected));
    struct memory_reader memory = {read_self, NULL};
    struct unwind_space space = {.id = 1, .find = find_module, .code = &memory, .context = s};
    struct unwind_stack stack = {.base = r.at[SP], .copy = dump,
                                 .beyond = s->use_beyond ? &memory : NULL};
    stack.len = copy_stack(stack.base, dump, s->dump_max);
    unwind(&s->unwinder, &r, &stack, &space, UNWIND_FRAMES_MAX, &s->result);
}

/* The same callers as libgcc found, up to the first function. Its list begins in capture too, or
 * with the sanitizer's own frame below. */
static void check_same(const struct self *s)
{
    size_t count = s->result.count, below = (size_t)s->expected_count - count;
    CHECK_INT(s->result.end, STACK_COMPLETE);
    CHECK(below <= 1);
    for (size_t i = 1; i < count && below <= 1; i++) {
        bool exact = s->result.frame[i].flags & FRAME_EXACT;
        CHECK_INT(s->result.frame[i].address + !exact, (uintptr_t)s->expected[i + below]);
    }
}

/* Frames of different sizes, without frame pointers. */
static __attribute__((noinline, optimize("O2", "omit-frame-pointer"))) int recurse(struct self *s,
                                                                                   int depth)
{
    volatile char room[64];
    room[0] = (char)depth;
    if (depth == 0) {
        capture(s);
    } else if (depth % 2 == 0) {
        char *more = __builtin_alloca((size_t)depth * 16);
        __asm__ volatile("" : : "r"(more) : "memory");
        (void)recurse(s, depth - 1);
    } else {
        (void)recurse(s, depth - 1);
    }
    return room[0];
}

static void own_stack(void)
{
    struct self *s = calloc(1, sizeof *s);
    self_open(s);
    (void)recurse(s, 20);
    check_same(s);
    CHECK(s->result.count > 22);
    CHECK_INT(s->unwinder.counters.by_fp, 0);
    uint64_t hits = s->unwinder.counters.hits;
    (void)recurse(s, 20);
    check_same(s);
    /* all but the frames whose callers differ: the cache serves */
    CHECK(s->unwinder.counters.hits - hits >= 20);
    self_close(s);
}

static void own_deep_stack(void)
{
    struct self *s = calloc(1, sizeof *s);
    self_open(s);
    s->dump_max = 1024;
    (void)recurse(s, 20);
    CHECK_INT(s->result.end, STACK_TRUNCATED);
    CHECK(s->result.count < 22);
    s->use_beyond = true;
    (void)recurse(s, 20);
    check_same(s);
    CHECK(s->unwinder.counters.continued > 5);
    self_close(s);
}

static struct self *the_self; /* for callbacks without a context */

static int compare(const void *a, const void *b)
{
    if (the_self != NULL && the_self->expected_count == 0) {
        (void)recurse(the_self, 3);
    }
    return *(const int *)a - *(const int *)b;
}

static void through_a_library(void)
{
    struct self *s = calloc(1, sizeof *s);
    int numbers[] = {3, 1, 2};
    self_open(s);
    the_self = s;
    qsort(numbers, COUNT(numbers), sizeof numbers[0], compare);
    the_self = NULL;
    check_same(s);
    self_close(s);
}

static void *in_thread(void *context)
{
    (void)recurse(context, 5);
    return NULL;
}

static void of_a_thread(void)
{
    struct self *s = calloc(1, sizeof *s);
    pthread_t thread;
    self_open(s);
    CHECK_INT(pthread_create(&thread, NULL, in_thread, s), 0);
    pthread_join(thread, NULL);
    check_same(s); /* to the undefined return address of clone */
    self_close(s);
}

static ucontext_t outside, inside;

static void in_context(void)
{
    (void)recurse(the_self, 5);
}

static void in_a_coroutine(void)
{
    struct self *s = calloc(1, sizeof *s);
    static char room[65536];
    self_open(s);
    the_self = s;
    getcontext(&inside);
    inside.uc_stack.ss_sp = room;
    inside.uc_stack.ss_size = sizeof room;
    inside.uc_link = &outside;
    makecontext(&inside, in_context, 0);
    CHECK_INT(swapcontext(&outside, &inside), 0);
    the_self = NULL;
    CHECK_INT(s->result.end, STACK_COMPLETE);
    CHECK_INT(s->result.count, 9); /* capture, 6 of recurse, in_context, and what it returns to */
    CHECK(s->result.frame[8].flags & FRAME_EXACT);
    self_close(s);
}

static void on_signal(int number)
{
    (void)number;
    (void)recurse(the_self, 3);
}

static __attribute__((noinline)) void raise_in(int depth)
{
    volatile char room[32];
    room[0] = (char)depth;
    if (depth > 0) {
        raise_in(depth - 1);
    } else {
        raise(SIGUSR1);
    }
    room[1] = room[0];
}

static void in_a_handler(void)
{
    struct self *s = calloc(1, sizeof *s);
    static char room[65536];
    stack_t other = {.ss_sp = room, .ss_size = sizeof room}, before;
    struct sigaction action = {.sa_handler = on_signal};
    self_open(s);
    the_self = s;
    for (int alternate = 0; alternate < 2; alternate++) {
        action.sa_flags = alternate ? SA_ONSTACK : 0;
        s->use_beyond = alternate;
        s->dump_max = alternate ? 4096 : 65528;
        sigaltstack(&other, &before);
        sigaction(SIGUSR1, &action, NULL);
        raise_in(4);
        sigaltstack(&before, NULL);
        check_same(s);
    }
    the_self = NULL;
    self_close(s);
}

static void perf_registers(void)
{
    uint64_t values[64], mask = unwind_perf_mask();
    struct unwind_registers r;
    for (unsigned i = 0; i < 64; i++) {
        values[i] = 100 + i;
    }
    CHECK(unwind_registers_of_perf(&r, mask, values));
#if defined __aarch64__
    CHECK_INT(mask, 0x1ffffffff);
    CHECK(r.at[SP] == 131 && r.at[IP] == 132 && r.at[FP] == 129 && r.known == 0x1ffffffff);
    CHECK_INT(unwind_code_address(UINT64_C(0x00aa800012345678)), 0x800012345678);
    CHECK(!unwind_registers_of_perf(&r, UINT64_C(1) << 32, values));
#else
    /* AX BX CX DX SI DI BP SP IP, then R8–R15; segment registers are refused by the kernel */
    CHECK_INT(mask, 0xff01ff);
    CHECK(r.at[0] == 100 && r.at[3] == 101 && r.at[2] == 102 && r.at[1] == 103);
    CHECK(r.at[4] == 104 && r.at[5] == 105 && r.at[FP] == 106 && r.at[SP] == 107 &&
          r.at[IP] == 108);
    CHECK(r.at[8] == 109 && r.at[15] == 116 && r.known == 0x1ffff);
    CHECK(unwind_registers_of_perf(&r, 0x1c0, values)); /* BP SP IP only */
    CHECK(r.at[FP] == 100 && r.at[SP] == 101 && r.at[IP] == 102);
    CHECK(!unwind_registers_of_perf(&r, 0xc0, values)); /* no IP */
    CHECK(!unwind_registers_of_perf(&r, 0x140, values));
    CHECK_INT(unwind_code_address(UINT64_C(0x7fffdeadbeef)), 0x7fffdeadbeef);
#endif
}

static struct interrupted {
    uint64_t frame, sp, values[64];
    struct unwind_registers registers;
    ucontext_t context;
    bool all_wrong_refused;
} told;

/* The registers with which the kernel began it are its arguments, and SP at the frame they point into. */
static void at_handler(int number, siginfo_t *info, void *context)
{
    struct unwind_registers r = {.known = UINT64_MAX};
    uint64_t uc = (uintptr_t)context, sp = (uintptr_t)info, mask = unwind_perf_mask();
#if defined __aarch64__
    enum { FIRST = 0, SECOND = 1, THIRD = 2 };
#else
    enum { FIRST = 5, SECOND = 4, THIRD = 1 };
    sp = uc - 8;
#endif
    r.at[FIRST] = (uint64_t)number;
    r.at[SECOND] = (uintptr_t)info;
    r.at[THIRD] = uc;
    r.at[SP] = sp;
    told.frame = unwind_signal_frame(&r);
    told.all_wrong_refused = true;
    for (unsigned i = 0; i < 4; i++) {
        struct unwind_registers wrong = r;
        wrong.at[(unsigned[]){FIRST, SECOND, THIRD, SP}[i]] += i == 0 ? 64 : 8;
        told.all_wrong_refused &= unwind_signal_frame(&wrong) == 0;
    }
    r.at[FIRST] = 0;
    told.all_wrong_refused &= unwind_signal_frame(&r) == 0;
    told.sp = sp;
    told.context = *(ucontext_t *)context;
    if (told.frame != 0) {
        unwind_interrupted((const unsigned char *)(uintptr_t)told.frame, mask, told.values);
        (void)unwind_registers_of_perf(&told.registers, mask, told.values);
    }
}

static void interrupted_registers(void)
{
    static char room[65536];
    stack_t other = {.ss_sp = room, .ss_size = sizeof room}, before;
    struct sigaction action = {.sa_sigaction = at_handler, .sa_flags = SA_SIGINFO | SA_ONSTACK};
    sigaltstack(&other, &before);
    sigaction(SIGUSR1, &action, NULL);
    raise(SIGUSR1);
    sigaltstack(&before, NULL);
    CHECK(told.frame != 0 && told.all_wrong_refused);
#if defined __aarch64__
    CHECK(unwind_sp(&told.registers) == told.context.uc_mcontext.sp);
    CHECK(unwind_ip(&told.registers) == told.context.uc_mcontext.pc);
    CHECK(told.registers.at[19] == told.context.uc_mcontext.regs[19]);
    CHECK_INT(told.registers.known, 0x1ffffffff);
#else
    CHECK(unwind_sp(&told.registers) == (uint64_t)told.context.uc_mcontext.gregs[REG_RSP]);
    CHECK(unwind_ip(&told.registers) == (uint64_t)told.context.uc_mcontext.gregs[REG_RIP]);
    CHECK(told.registers.at[15] == (uint64_t)told.context.uc_mcontext.gregs[REG_R15]);
    CHECK_INT(told.registers.known, 0x1ffff);
#endif
    CHECK(unwind_sp(&told.registers) - told.sp > sizeof room || told.sp - unwind_sp(&told.registers) > sizeof room);
}

TESTS({"perf's registers get their DWARF numbers", perf_registers},
      {"what a signal has just interrupted is in its frame, to which the handler's first registers lead",
       interrupted_registers},
#if !defined __aarch64__
      {"frames follow their rules, from the cache the second time", frames_by_rules},
      {"a stack's end is named", ends},
      {"a lost frame pointer is not used", lost_frame_pointer},
      {"who does not know the frame pointer has the frame from its code, and once a callee saved it from CFI",
       unknown_frame_pointer},
      {"and guesses where the size of the frame is known only when it runs", unknown_frame_pointer_and_size},
      {"rules that need other registers work where these are known", other_registers},
      {"a register that a callee has saved is found again", saved_registers},
      {"a realigned stack is followed", realigned},
      {"a CFA that stands below SP is found by what it is, or not at all", below_sp},
      {"a frame of more than 32 KiB is followed by its lower end", large_frame},
      {"a frame that is not above its callee is refused", contradictions},
      {"what lies beyond the dump is read, a page at a time", beyond_the_dump},
      {"memory that has changed since the sample is not believed", changed_since},
      {"generated code is walked by frame pointer, and C below and above it by rules",
       generated_code},
      {"a runtime's code is walked as it says, and over what its leaf has pushed", by_a_runtime},
      {"generated code without a frame pointer is left by its way to a return", trampolines},
      {"without rule and frame pointer a frame is guessed and marked", guesses},
      {"a signal frame gives all registers back, from another stack too", signal_frame},
      {"first functions without CFI end a stack", first_code},
      {"Go's frame pointers lead across its stacks", go_stacks},
      {"and where the copy ends, the kernel's chain does", go_stacks_by_the_kernels_chain},
      {"a Go thread that sleeps goes by CFI until a frame pointer was saved", go_sleepers},
      {"Go's record below SP, which is made for a function without a frame", go_record_below},
      {"Go's first function on a thread of C code", go_first_function},
      {"a coroutine of makecontext ends with its first function", coroutines},
#else
      {"a leaf's return address is in LR, a caller's is not", link_register},
      {"a frame record does not tell SP", frame_records},
      {"Go's frames are followed where their record is not copied", go_frames},
#endif
      {"this stack is the one libgcc sees", own_stack},
      {"a stack deeper than the dump is continued in memory", own_deep_stack},
      {"a library's callback is unwound through the library", through_a_library},
      {"a thread's stack ends at clone", of_a_thread},
      {"a coroutine's ends where it began", in_a_coroutine},
      {"a handler's stack reaches what it interrupted, on an alternate stack too", in_a_handler})
