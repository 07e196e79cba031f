/*
 * profile: everything one window saw, in one unit.
 *
 * Concept. A sample is (thread, stack) with a weight in CPU nanoseconds and a count of samples.
 * Stacks are paths in one call tree that all processes of the window share: a node is (parent node,
 * frame), root first, and a sample points at its leaf. Frames, strings, modules, processes and
 * threads are interned: equal content, equal id. Ids are 32-bit, 0 means "none" (the empty string,
 * the root node), and stay valid until profile_clear.
 *
 * A native frame enters as an address (module, address in the module's own ELF address space) and
 * is named later, off the hot path: profile_name_frame. A frame that never was an address enters
 * with its name. After naming, every frame has a name: code without a symbol is "[file+0xoffset]".
 *
 * One address can be code of several functions, inlined into one another. Its frame then is the
 * innermost of them, and frame.caller leads outwards to the function that really exists there.
 * Whoever shows a node shows profile_expand of its frame.
 *
 * What was not seen is a sample too: its stack is a single frame of kind FRAME_ACCOUNT named
 * "[lost]", "[kernel, hidden]" … (enum account), so that per process
 *     sum of all samples = cpu_ns of the process (utime + stime of the window).
 * profile_account adds such a sample.
 *
 * Call order. profile_init; per sample profile_process, profile_thread, profile_module,
 * profile_frame, profile_child…, profile_add; fill `meta` and process.cpu_ns; hand the whole struct
 * over; naming; encoders read it (they never change it); profile_clear or profile_release.
 *
 * Ownership. One thread at a time owns a profile. Pointers into its arrays move on the next
 * insertion: keep ids. profile_text borrows until profile_clear.
 *
 * Limits. `max_bytes` bounds the memory. When it is reached (or memory ends) interning returns 0
 * and a sample's weight goes to "[lost]" of its process; `dropped` counts such samples.
 */
#ifndef PROFILE_PROFILE_H
#define PROFILE_PROFILE_H

#include "base/arena.h"
#include "base/err.h"
#include "base/intern.h"
#include "base/vec.h"

/* What kind of code a frame is. The order is part of the flame graph's format: append only. */
enum frame_kind {
    FRAME_NATIVE, /* C, C++, Rust … */
    FRAME_KERNEL,
    FRAME_GO,
    FRAME_JVM,
    FRAME_PYTHON,
    FRAME_RUBY,
    FRAME_PHP,
    FRAME_PERL,
    FRAME_JS,
    FRAME_ACCOUNT, /* "[lost]" and its like */
    FRAME_KIND_COUNT,
};

/* CPU time that is known to have been used but whose stack is not known. */
enum account {
    ACCOUNT_LOST,          /* "[lost]": ring overrun, throttling, our own limits */
    ACCOUNT_KERNEL_HIDDEN, /* "[kernel, hidden]": system time while only user code may be sampled */
    ACCOUNT_NATIVE_NO_PERF,/* "[native, no perf]": known from /proc only */
    ACCOUNT_UNREADABLE,    /* "[unreadable]": memory or maps could not be read */
    ACCOUNT_PARTIAL,       /* "[partial]": the sample was not proven to be of one moment */
    ACCOUNT_COUNT,
};

/* How a native stack ended. Only a complete one reached the thread's first function. */
enum stack_end {
    STACK_COMPLETE,
    STACK_TRUNCATED,  /* at the end of the memory that was sampled, or of the frames allowed */
    STACK_NO_RULE,    /* at code without unwind tables and without frame pointers */
    STACK_BAD_MEMORY, /* at memory that could not be read, or that contradicts itself */
    STACK_GUESSED,    /* some frames come from scanning the stack */
    STACK_END_COUNT,
};

/* Which rung of the ladder served a process (DESIGN 1.5). */
enum rung {
    RUNG_UNKNOWN,
    RUNG_PERF,       /* user and kernel stacks */
    RUNG_PERF_USER,  /* user stacks; kernel share accounted */
    RUNG_RUNTIME,    /* a runtime reader weighted by thread CPU time */
    RUNG_PROC,       /* /proc accounting */
};

enum { PROFILE_INLINES_MAX = 32 }; /* inlined functions shown at one address */

struct frame {
    uint64_t address;     /* in the module's ELF address space; kernel: as sampled; 0: none.
                             A caller's frame holds the return address - 1 */
    uint32_t module;
    uint32_t name;        /* for people, demangled; 0 until named */
    uint32_t system_name; /* as in the symbol table when it differs from name, else 0 */
    uint32_t file;        /* source file, 0 unknown */
    uint32_t line;        /* 0 unknown */
    uint32_t caller;      /* the frame this one is inlined into, 0: none. Such a frame has a name and
                             no address; chains end, and are at most PROFILE_INLINES_MAX long */
    uint8_t kind;         /* enum frame_kind */
};

/* A mapped file (or "[kernel]", "[vdso]"). Addresses are those of the first process seen. */
struct module {
    uint32_t path;
    uint32_t build_id;       /* lower-case hex text, 0 unknown */
    uint64_t start, limit;   /* runtime addresses of the executable mapping, [start, limit) */
    uint64_t file_offset;    /* of `start` in the file */
    uint64_t bias;           /* runtime address = ELF address + bias */
    uint64_t image;          /* key of the image in the symbol store, 0 none; part of the identity */
};

struct process {
    uint32_t pid;
    uint64_t start_ticks; /* field 22 of /proc/PID/stat; pid and this identify a process */
    uint32_t name;        /* comm of the main thread */
    uint32_t container;   /* container name or id, 0 none */
    uint32_t appid;       /* "appid: …" text, 0 none */
    uint32_t runtime;     /* "CPython 3.11.9", 0: native or unknown */
    uint32_t remedy;      /* what would let more be seen, 0 nothing */
    uint64_t cpu_ns;      /* utime + stime within the window, by the kernel's books */
    double weight;        /* of its samples against their nominal period; 0 is 1 */
    uint8_t rung;         /* enum rung */
};

struct thread {
    uint32_t process;
    uint32_t tid;
    uint32_t name;
};

struct node {
    uint32_t parent;
    uint32_t frame;
};

struct sample {
    uint32_t thread;
    uint32_t node;
    uint64_t cpu_ns;
    uint64_t count; /* how many samples were taken; 0 for accounting */
};

/* What people are told about the window. Strings are ids of the profile. */
struct profile_meta {
    uint64_t start_wall_ns, end_wall_ns;
    uint64_t period_ns;       /* CPU time one sample stands for: 1e9 / frequency */
    uint32_t frequency_hz;
    uint32_t service;         /* service name or command */
    uint32_t host;
    uint32_t mode;            /* in words: "perf, user and kernel" */
    uint32_t reason;          /* why something is missing, with its remedy; 0 nothing missing */
    uint64_t own_cpu_ns;      /* the profiler's own cost within the window */
    uint64_t own_rss_bytes;
    uint64_t lost_records;    /* perf records lost in the rings */
    uint64_t stack_ends[STACK_END_COUNT]; /* native stacks by how they ended; all 0: not unwound here */
    bool continuous;
};

struct profile {
    struct profile_meta meta;
    VEC(struct str) strings;
    VEC(struct module) modules;
    VEC(struct frame) frames;
    VEC(struct process) processes;
    VEC(struct thread) threads;
    VEC(struct node) nodes;
    VEC(struct sample) samples;
    struct intern string_ids, module_ids, frame_ids, process_ids, thread_ids, node_ids, sample_ids;
    struct arena text;
    size_t max_bytes;
    uint64_t dropped; /* samples whose stack did not fit */
};

bool profile_init(struct profile *p, size_t max_bytes, struct err *err);
void profile_release(struct profile *p);

/* Empties it for the next window and keeps the memory. */
void profile_clear(struct profile *p);

uint32_t profile_string(struct profile *p, struct str text);
uint32_t profile_cstring(struct profile *p, const char *text);
struct str profile_text(const struct profile *p, uint32_t string);

/* Identity: pid and start_ticks. The other fields are taken from the first call; later ones update
 * through p->processes.at[id]. */
uint32_t profile_process(struct profile *p, const struct process *process);

/* Identity: process, tid and name (a thread that renames itself is two rows). */
uint32_t profile_thread(struct profile *p, uint32_t process, uint32_t tid, uint32_t name);

/* Identity: path, image and build id. */
uint32_t profile_module(struct profile *p, const struct module *module);

/* Identity: kind, module and address when there is an address; else kind, name, file, line, module
 * and caller. */
uint32_t profile_frame(struct profile *p, const struct frame *frame);

/* Fills in a name found later; does not change the frame's identity. */
void profile_name_frame(struct profile *p, uint32_t frame, struct str name, struct str system_name);

/* Says what is known of the source behind an address: `inlined` functions innermost first, the
 * last one is the function that really exists there. Sets name, file and line of `frame` to the
 * first and hangs the others behind it as callers, frames of the same kind and module without an
 * address. Of more than PROFILE_INLINES_MAX those next to the last are left out; when the
 * profile has no room for the callers, the frame is named by the last alone. */
struct source_line {
    struct str name, system_name, file;
    uint32_t line;
};
void profile_name_inlined(struct profile *p, uint32_t frame, const struct source_line *inlined,
                          size_t count);

/* Says, once sampling has ended, that an address is code of another kind than it entered with. The
 * frame's identity changes with it: profile_frame with the first kind would make a new frame. */
void profile_set_kind(struct profile *p, uint32_t frame, enum frame_kind kind);

/* The functions that a frame stands for, innermost first: itself, then what it is inlined into.
 * Their number is at least 1. */
size_t profile_expand(const struct profile *p, uint32_t frame,
                      uint32_t out[static PROFILE_INLINES_MAX]);

/* The child of `parent` with this frame, made when new. parent 0 is the root. Frame 0 (did not fit)
 * gives 0. */
uint32_t profile_child(struct profile *p, uint32_t parent, uint32_t frame);

/* Adds a sample. Node 0 counts as dropped and goes to "[lost]". */
void profile_add(struct profile *p, uint32_t thread, uint32_t node, uint64_t cpu_ns,
                 uint64_t count);

/* Adds CPU time without a stack, on the given thread. */
void profile_account(struct profile *p, uint32_t thread, enum account account, uint64_t cpu_ns);

/* Notes that the samples of a process, nominal_ns in sum, stand for cpu_ns by the kernel's books;
 * profile_apply_weights then scales all noted ones in one pass. Accounting is not scaled. */
void profile_weigh(struct profile *p, uint32_t process, uint64_t nominal_ns, uint64_t cpu_ns);
void profile_apply_weights(struct profile *p);

/* "[lost]" …; static text. */
const char *account_name(enum account account);

/* The suffix that collapsed stacks carry per kind: "_[k]", "_[p]" … or "". */
const char *frame_kind_suffix(enum frame_kind kind);

/* "kernel", "native", "python" …: for summaries, tables and legends. */
const char *frame_kind_name(enum frame_kind kind);

/* "perf, user and kernel stacks" … */
const char *rung_name(enum rung rung);

/* Sums over all samples. */
struct profile_totals {
    uint64_t cpu_ns;                    /* everything, accounting included */
    uint64_t count;                     /* samples taken */
    uint64_t leaf_ns[FRAME_KIND_COUNT]; /* by the kind of the leaf frame */
    uint64_t account_ns[ACCOUNT_COUNT];
    uint64_t process_cpu_ns;            /* sum of process.cpu_ns */
};
struct profile_totals profile_sum(const struct profile *p);

#endif
