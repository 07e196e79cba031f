/*
 * unwind: from the registers and stack of one moment to the addresses of all callers.
 *
 * Concept. Pure: registers, a copy of the stack's top, a reader for the rest of memory and a
 * function that tells what is mapped where go in; frames and a verdict come out. Per frame the
 * unwinder finds the rule of the instruction (rule cache, then the image's table), computes CFA,
 * return address and frame pointer, checks them, and goes on until an end that it knows:
 *
 *     CFI first; where an image has no rule for the address, the frame pointer; where that is
 *     impossible (it does not point above SP into the stack, or not to a call), a scan of the stack
 *     for something that was called, whose frames are marked FRAME_GUESSED and whose stack's
 *     verdict is STACK_GUESSED. Go's callers go by frame pointer alone.
 *
 * Known ends: CFI says that the return address is undefined (_start, clone); the return address is
 * 0; the frame pointer is 0 in code that keeps frame pointers; the code is an entry sequence
 * (arch.h). Anything else that stops the walk is no complete stack, and its verdict says why.
 *
 * Checks per step: the CFA lies above the previous SP (equal is allowed for one leaf that keeps its
 * return address in a register), is aligned, at most 64 MiB away unless a signal frame lies between
 * or Go changes stacks; the return address is in executable code. After a frame pointer, a
 * register that no rule follows (rbx, r10, rax: hand-written assembler) or memory of after the
 * sample it must be after a call, too. Of a stack of more than max_frames the leaf-most three quarters
 * are kept and the root-most frames, up to a quarter; at most UNWIND_WALK_MAX are followed.
 *
 * Callers are looked up with return address - 1, so that the frame is the call instruction's; a
 * frame that a signal interrupted is looked up exactly.
 *
 * Memory. The copy [base, base + len) is what the kernel copied at the sample; what lies above is
 * read through `beyond`, if there is one: those frames are old and stable as long as the thread has
 * not returned to them, which is verified once per sample by comparing the copy's last bytes and
 * its outermost return address with the memory as it is then. Frames found that way are marked
 * FRAME_CONTINUED. Without it, when the bytes differ, or where such memory leads nowhere, the stack
 * is STACK_TRUNCATED. It is read in whole pages (4 KiB), each once.
 *
 * A handler's alternate stack and Go's system stack hold the copied part while the rest is elsewhere: what
 * they interrupted needs `beyond` at once, because their bytes stay as they are when left. Go's callers
 * outside the copy are therefore taken from the kernel's chain of frame pointers, where it has them.
 *
 * The rule cache is direct-mapped over (space, address) and remembers the place found as well, so a
 * hit costs neither a search of mappings nor of rows. `space` is any number that names an address
 * space and changes with its mappings (a generation); 0 is never used.
 *
 * Call order. unwinder_init; unwind per sample; unwinder_release. One thread. Memory is taken by
 * unwinder_init (256 KiB) and by the tables, none per sample.
 */
#ifndef UNWIND_UNWIND_H
#define UNWIND_UNWIND_H

#include "base/iface.h"
#include "profile/profile.h"
#include "unwind/table.h"

enum {
    UNWIND_REGISTERS = 33, /* DWARF numbers: x86-64 0–16 (16 is IP), AArch64 0–32 (32 is PC) */
    UNWIND_FRAMES_MAX = 4096, /* 63 KiB of the smallest frames */
    UNWIND_WALK_MAX = 65536,
    UNWIND_SIGNAL_BYTES = 576, /* of a signal's frame: all of its general registers */
};

struct unwind_registers {
    uint64_t at[UNWIND_REGISTERS];
    uint64_t known; /* bit per register */
};

/* Puts the registers of a perf sample, values in the order of the mask's bits, into DWARF order.
 * False when IP or SP is missing. */
bool unwind_registers_of_perf(struct unwind_registers *out, uint64_t mask, const uint64_t *values);

/* Where the kernel has just set up a signal's handler, of which no instruction has run: the address of what it keeps of
 * the code that the signal interrupted, UNWIND_SIGNAL_BYTES; 0: they are not such registers. */
uint64_t unwind_signal_frame(const struct unwind_registers *registers);

/* The registers of the interrupted code in place of the handler's, as unwind_registers_of_perf takes them. */
void unwind_interrupted(const unsigned char frame[static UNWIND_SIGNAL_BYTES], uint64_t mask, uint64_t *values);

/* Of a thread of which only these are known: one that sleeps in a system call. */
struct unwind_registers unwind_registers_at(uint64_t ip, uint64_t sp);

uint64_t unwind_ip(const struct unwind_registers *registers);
uint64_t unwind_sp(const struct unwind_registers *registers);
uint64_t unwind_fp(const struct unwind_registers *registers);
/* Two that calls preserve, in which interpreters keep where they are: x86-64 r14 and r15, AArch64 x27 and x28. */
uint64_t unwind_kept(const struct unwind_registers *registers, unsigned which);

/* The PERF_REG_* mask to sample with on this processor. */
uint64_t unwind_perf_mask(void);

/* Strips what the hardware keeps in the upper bits of a code address (AArch64 pointer
 * authentication); the address itself on x86-64. */
uint64_t unwind_code_address(uint64_t address);

/* What is mapped at an address. */
struct unwind_place {
    uint64_t start, limit;      /* of the executable mapping */
    uint64_t bias;              /* runtime address - ELF address */
    uint64_t image;             /* the caller's name for it; handed back in the frame */
    struct unwind_table *table; /* null: no tables (generated code, unreadable file) */
    bool unreadable;            /* nor may its code be read from the process */
    bool frame_pointers;        /* its code keeps frame pointers (Go, V8): tried before guesses, and
                                 * prologues are recognised by analyse_leaf */
};

/* A frame whose code has no certain rule: generated or interpreted code, of which some runtime may know. */
struct unwind_question {
    uint32_t number;  /* of the stack's, from 1 on: the frame's `question` */
    uint64_t address; /* as in struct unwind_frame */
    uint64_t ip, sp, fp;
    const struct memory_reader *stack; /* at the sample: whole words at multiples of 8 */
    const uint64_t *registers; /* of a leaf, or of what a signal interrupted: all, by DWARF number; null: a caller's */
};

/* How to go on from it. */
enum unwind_way {
    UNWIND_BY_FRAME_POINTER, /* as the processor's convention has it; the caller's SP is `value` where that is not 0 */
    UNWIND_BY_SIZE,          /* the return address stands `value` bytes above SP, and the caller's SP is behind it */
    UNWIND_BY_CFA,           /* the caller's SP is `value`; the return address stands right below it */
    UNWIND_BY_LINK_REGISTER, /* of a leaf: it has the return address, and the caller's SP is `value` bytes above SP */
};
struct unwind_answer {
    enum unwind_way way;
    uint64_t value;
    uint32_t saved_fp; /* not by frame pointer: it was saved so many bytes below the caller's SP; 0: unchanged */
};

struct unwind_space {
    uint64_t id; /* for the cache: names the space and the state of its mappings */
    /* The executable mapping that holds `address`; false: there is none. */
    bool (*find)(void *context, uint64_t address, struct unwind_place *out);
    /* Null, or asked before frame pointers, analysis and guesses about code without a rule of its own; false: not
     * known, they are tried. Asked once for each such frame, from the leaf on. */
    bool (*resolve)(void *context, const struct unwind_question *question, struct unwind_answer *out);
    /* Code bytes, for analyse_leaf and for recognising calls; null when unavailable. */
    struct memory_reader *code;
    void *context;
};

struct unwind_stack {
    uint64_t base;              /* address of copy[0]: the sampled SP */
    const unsigned char *copy;
    size_t len;
    struct memory_reader *beyond; /* null: only the copy */
    const uint64_t *chain;      /* what the kernel found by frame pointers at the sample, leaf first */
    size_t chain_len;           /* 0: it was not asked for */
};

enum unwind_frame_flag {
    FRAME_BY_FP = 1,     /* found by frame pointer, not by a rule of its image */
    FRAME_ANALYSED = 2,  /* the rule was concluded from code, or the CFA from the frame */
    FRAME_GUESSED = 4,   /* found by scanning */
    FRAME_CONTINUED = 8, /* found in memory read after the sample */
    FRAME_EXACT = 16,    /* address is that of the instruction itself: the leaf, what a signal
                          * interrupted, and the trampoline that returns from it */
};

struct unwind_frame {
    uint64_t address;     /* runtime address, for look-up: return address - 1 for callers */
    uint64_t elf_address; /* the same in its image */
    uint64_t image;       /* unwind_place.image; 0: mapped nowhere (a leaf only) */
    uint8_t flags;        /* how *this* frame was found */
    uint32_t question;    /* that was asked about it; 0: none */
};

struct unwind_result {
    struct unwind_frame frame[UNWIND_FRAMES_MAX]; /* leaf first */
    size_t count;
    size_t joint;    /* after frame joint - 1 frames are missing; 0: all are here */
    size_t reach;    /* bytes of the copy, from its start, with the frames; its length if a larger one has more */
    enum stack_end end;
    bool at_start;   /* the last frame is a first function. After a guess only a rule that says so is believed: a zero
                      * in the place of a return address or frame pointer is as likely a wrong turn's */
};

struct unwind_counters { /* since unwinder_init */
    uint64_t stacks[STACK_END_COUNT];
    uint64_t frames, hits; /* frames stepped over; of those, from the rule cache */
    uint64_t by_fp, analysed, guessed, continued;
};

enum unwind_method { UNWIND_HYBRID, UNWIND_CFI_ONLY };

struct unwind_slot;

struct unwinder {
    struct unwind_slot *cache;
    enum unwind_method method; /* UNWIND_CFI_ONLY: no frame pointers outside JIT code, no guesses */
    struct unwind_counters counters;
};

bool unwinder_init(struct unwinder *u, enum unwind_method method, struct err *err);
void unwinder_release(struct unwinder *u);

/* Fills `out`; never fails: a leaf without anything known is a stack of one frame. */
void unwind(struct unwinder *u, const struct unwind_registers *registers,
            const struct unwind_stack *stack, const struct unwind_space *space, size_t max_frames,
            struct unwind_result *out);

#endif
