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
 * is named later, off the hot path: profile_name_inlined. A frame that never was an address enters
 * with its name. After naming, every frame has a name: code without a symbol is its place (symbol/namer.h).
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
 * When samples were taken is kept beside them where somebody wants to know it (moments.h).
 *
 * Call order. profile_init; per sample profile_process, profile_thread, profile_module,
 * profile_frame, profile_child…, profile_add; fill `meta` and process.cpu_ns; hand the whole struct
 * over; naming; encoders read it (they never change it); profile_clear or profile_release.
 *
 * Ownership. One thread at a time owns a profile. Pointers into its arrays move on the next
 * insertion: keep ids. profile_text borrows until profile_clear.
 *
 * Limits. `max_bytes` bounds the memory. When it is reached (or memory ends) interning returns 0
 * and a sample's weight goes to "[lost]" of its process; `dropped` counts such samples. profile_limit
 * lowers the bound for a while; what stands for many (a leaf in the place of all stacks that lead to it,
 * a process) may take an eighth more, between profile_need(p, true) and profile_need(p, false).
 */
#ifndef PROFILE_PROFILE_H
#define PROFILE_PROFILE_H

#include "base/arena.h"
#include "base/err.h"
#include "base/intern.h"
#include "base/map.h"
#include "base/vec.h"
#include "profile/language.h"
#include "profile/moments.h"
#include "profile/runtime_profile.h"

/* CPU time that is known to have been used but whose stack is not known. */
enum account {
    ACCOUNT_LOST,          /* "[lost]": too short for a sample, ring overrun, throttling, our limits */
    ACCOUNT_KERNEL_HIDDEN, /* "[kernel, hidden]": system time while only user code may be sampled */
    ACCOUNT_NATIVE_NO_PERF,/* "[native, no perf]": known from /proc only */
    ACCOUNT_UNREADABLE,    /* "[unreadable]": without perf, memory of a runtime's stack could not be read */
    ACCOUNT_PARTIAL,       /* "[partial]": without perf, a runtime's stack was of several moments */
    ACCOUNT_NO_SAMPLES,    /* "[no runtime samples]": of a thread that its runtime's own recorder has not met */
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

/* What became of the samples of processes whose runtime is read (capture/catch/catch.h). */
enum runtime_share {
    SHARE_PROVEN,      /* read at the sample's moment: exact */
    SHARE_LATE,        /* read later than the proof allows */
    SHARE_ELSEWHERE,   /* the thread, or the reader, was on another CPU */
    SHARE_RAN_ON,      /* the thread was not stopped for the whole read */
    SHARE_UNPROVABLE,  /* the kernel tells nothing that could prove it */
    SHARE_UNREAD,      /* not read: several samples at once, reading was given up */
    SHARE_TORN,        /* contradicted itself, or could not be read */
    SHARE_COUNT,
};

/* Of the samples that were read and are not proven: the same was read twice. */
enum runtime_consistent {
    CONSISTENT_WHOLE,
    CONSISTENT_PART,   /* from the root up to a frame, above which it ran on */
    CONSISTENT_COUNT,
};

/* How the stacks of both kinds were joined (weave.h). */
enum woven_share { WOVEN_EXACT, WOVEN_ONE_MORE, WOVEN_UNMERGED, WOVEN_APART, WOVEN_COUNT };

/* How a process is profiled: the best mode that it allowed. */
enum capture_mode {
    CAPTURE_UNKNOWN,
    CAPTURE_PERF,       /* user and kernel stacks */
    CAPTURE_PERF_USER,  /* user stacks; kernel share accounted */
    CAPTURE_RUNTIME,    /* a runtime reader weighted by thread CPU time, or brief stops */
    CAPTURE_PROC,       /* /proc accounting */
};

enum { PROFILE_INLINES_MAX = 32 }; /* inlined functions shown at one address */

/* What a runtime reports of a thread at a sample besides its stack: texts, shown by pprof only. */
enum profile_label {
    PROFILE_LABEL_GIL,         /* "held", "waiting" */
    PROFILE_LABEL_TASK,        /* the asyncio task that it ran */
    PROFILE_LABEL_INTERPRETER, /* which one of several that its process has */
    PROFILE_LABEL_METHOD,      /* of the request that it served, */
    PROFILE_LABEL_SCRIPT,      /* the script of that, */
    PROFILE_LABEL_URL,         /* and the URL, where that was asked for */
    PROFILE_LABELS_NAMED,
    PROFILE_LABEL_OWN = PROFILE_LABELS_NAMED, /* the program's own labels, in one text: profile_next_pair */
    PROFILE_LABELS,
};
enum {
    PROFILE_LABEL_VALUES = 128,      /* of one label in a window; what comes later is "(other)" */
    PROFILE_LABEL_OWN_VALUES = 8192, /* a trace may have an id of its own for each request */
};

struct frame {
    uint64_t address;     /* in the module's ELF address space; kernel: as sampled; 0: none.
                             A caller's frame holds the return address - 1 */
    uint32_t module;
    uint32_t name;        /* for people, demangled; 0 until named. A runtime's: "func (file:first line)",
                             so that files and graphs tell functions of one name apart */
    uint32_t system_name; /* as in the symbol table when it differs from name, else 0; a runtime's:
                             "func" alone */
    uint32_t file;        /* source file, 0 unknown */
    uint32_t line;        /* being executed; 0 unknown */
    uint32_t first_line;  /* of the function; 0 unknown. No part of the identity */
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
    uint64_t start_ticks; /* field 22 of /proc/PID/stat; pid and this identify a process, … */
    uint32_t owner;       /* … or, where one pid has several owners within a tick, this as well */
    uint32_t name;        /* comm of the main thread */
    uint32_t container;   /* container name or id, 0 none */
    uint32_t appid;       /* "appid: …" text, 0 none */
    uint32_t runtime;     /* "CPython 3.11.9", 0: native or unknown */
    uint32_t entry;       /* what it was begun as: four lines (target/entry.h), 0: not known */
    uint32_t remedy;      /* what would let more be seen, 0 nothing */
    uint64_t cpu_ns;      /* utime + stime within the window, by the kernel's accounting */
    double weight;        /* of its samples against their nominal period; 0 is 1. Of those before … */
    uint32_t settled;     /* … this one it is no more */
    uint8_t capture_mode; /* enum capture_mode */
};

/* A thread under other labels is a row of its own. */
struct thread {
    uint32_t process;
    uint32_t tid;
    uint32_t name;
    uint32_t plain;                 /* the same thread without labels; 0: it is this row */
    uint32_t label[PROFILE_LABELS]; /* 0: none */
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

/* Time that a thread spent waiting with this stack: no CPU time, and in no sum with it. Only views of wall
 * time show it. */
struct wait {
    uint32_t thread;
    uint32_t node;
    uint64_t wait_ns;
};

enum { PROFILE_EVENTS_MAX = 32 };

/* Something else than CPU time that was sampled, such as page faults. */
struct event_type {
    uint32_t name, unit; /* "page-faults", "count" */
};

/* How often that happened at this stack: in no sum with CPU time. Of pprof and the flame graph it is a sample type of
 * its own. */
struct occurrence {
    uint32_t thread;
    uint32_t node;
    uint32_t event; /* its place in event_types */
    uint64_t amount;
};

/* What had become of the run's earlier windows when this one ended: accepted by back ends (of these, `fresh` since
 * the window before), waiting, never to arrive; and the attempts that failed. */
struct profile_uploads {
    bool any; /* windows are uploaded at all */
    uint64_t sent, fresh, waiting, dropped, failures;
    uint64_t cpu_ns; /* of the threads that send, since they began */
};

/* The machine that a profile was made on, and the profiler there. Empty texts and zeros: unknown. */
struct profile_machine {
    struct str private_ip, mac_address;
    struct str os_name, os_release, kernel_release, kernel_version, hardware_type;
    struct str libc_type, libc_version, run_mode, deployment_type;
    unsigned processors;
    uint64_t memory_bytes;
    uint32_t pid;
    uint64_t spawn_wall_ns, boot_ns; /* when the profiler began, and how long the machine was up then */
};

/* What another program told of it, objects of JSON in one line; empty: nothing. */
struct profile_external {
    struct str fixed;        /* of all of it */
    struct str applications; /* pid -> object */
};

/* How busy the container that the profiler runs in was, or else the machine: means of the window. */
struct profile_usage {
    bool any; /* it was read, and both are known */
    double cpu_percent, memory_percent; /* of what there is, 0 … 100 */
};

/* What is reported about the window. Strings are ids of the profile. */
/* Threads that were held by brief stops (--brief-stops). */
struct profile_stops {
    uint64_t count;
    uint64_t broken_calls;      /* system calls of these threads that returned EINTR */
    uint32_t median_ns, long_ns; /* of their times; 99 of 100 are not longer than long_ns */
};

struct profile_meta {
    uint64_t start_wall_ns, end_wall_ns;
    uint64_t period_ns;       /* CPU time one sample stands for: 1e9 / frequency */
    uint32_t frequency_hz;
    uint32_t service;         /* service name or command */
    uint32_t host;
    uint32_t mode;            /* in words: "perf, user and kernel" */
    uint32_t value, unit;     /* of the weights when they are not CPU time (encode/value.h); 0, 0: they are */
    uint32_t reason;          /* why something is missing, with its remedy; 0 nothing missing */
    uint64_t own_cpu_ns;      /* the profiler's own cost within the window */
    uint64_t own_rss_bytes;
    uint64_t own_rss_peak_bytes; /* since it began */
    double mean_hz;           /* what was sampled at, over the window; 0 unknown: frequency_hz */
    uint32_t budget;          /* what was done without to stay within the profiler's budget, 0 nothing */
    uint64_t lost_records;    /* perf records lost in the rings */
    uint64_t stack_ends[STACK_END_COUNT]; /* native stacks by how they ended; all 0: not unwound here */
    uint64_t shares[SHARE_COUNT]; /* samples of threads with a runtime's stack */
    uint64_t consistent[CONSISTENT_COUNT]; /* of these */
    uint64_t woven[WOVEN_COUNT];  /* of these, with native stacks */
    struct profile_stops stops;
    uint64_t excluded;        /* processes that the run was not to be about */
    uint64_t unsampled;       /* processes that have no events for want of descriptors */
    struct profile_uploads uploads;
    struct profile_usage usage;
    const struct profile_machine *machine; /* not the profile's, but of who writes it; null: unknown */
    const struct profile_external *external; /* likewise */
    bool continuous;
    uint64_t window;          /* of the run: 1, 2 …; 0: not known, or of several */
};

/* What labels have been so far. */
struct profile_label_texts {
    struct map ids; /* label and text -> 1 */
    uint32_t count[PROFILE_LABELS];
};

struct profile {
    struct profile_meta meta;
    struct runtime_profiles of_runtimes; /* of the same window */
    VEC(struct str) strings;
    VEC(struct module) modules;
    VEC(struct frame) frames;
    VEC(struct process) processes;
    VEC(struct thread) threads;
    VEC(struct node) nodes;
    VEC(struct sample) samples;
    VEC(struct wait) waits; /* from 0; empty unless waiting threads are profiled */
    struct moments moments; /* of samples; none are kept before profile_keep_moments */
    bool watches_waits;     /* they are, though perhaps none waits: views of wall time are wanted */
    struct map wait_ids;
    VEC(struct event_type) event_types;    /* from 0; empty unless other events are sampled */
    VEC(struct occurrence) occurrences;    /* from 0 */
    struct map occurrence_ids[PROFILE_EVENTS_MAX];
    struct profile_label_texts label_texts;
    struct intern string_ids, module_ids, frame_ids, process_ids, thread_ids, node_ids, sample_ids;
    struct arena text;
    size_t max_bytes;
    size_t limit_bytes; /* <= max_bytes */
    bool in_need;
    uint64_t dropped; /* samples whose stack did not fit */
    uint64_t collapsed; /* samples whose stack is its leaf alone, below "[budget]" */
};

bool profile_init(struct profile *p, size_t max_bytes, struct err *err);
void profile_release(struct profile *p);

/* Empties it for the next window and keeps the memory. */
void profile_clear(struct profile *p);

/* Gives back what an empty profile (after profile_clear) keeps. */
void profile_shrink(struct profile *p);

/* Memory in use, as it counts against the bound. */
size_t profile_bytes(const struct profile *p);

/* At most max_bytes; what is there stays. */
void profile_limit(struct profile *p, size_t bytes);

/* Returns what held before. */
bool profile_need(struct profile *p, bool in_need);

uint32_t profile_string(struct profile *p, struct str text);
uint32_t profile_cstring(struct profile *p, const char *text);
struct str profile_text(const struct profile *p, uint32_t string);

/* Identity: pid, start_ticks and owner. The other fields are taken from the first call; later ones update
 * through p->processes.at[id]. */
uint32_t profile_process(struct profile *p, const struct process *process);

/* Identity: process, tid and name (a thread that renames itself is two rows). */
uint32_t profile_thread(struct profile *p, uint32_t process, uint32_t tid, uint32_t name);

/* The thread (a row without labels) under these; an empty text is no label. The thread itself when none is,
 * or when there is no room for another row. */
uint32_t profile_labelled(struct profile *p, uint32_t thread,
                          const struct str labels[static PROFILE_LABELS]);

/* "gil" …: as pprof calls it; of PROFILE_LABELS_NAMED. */
const char *profile_label_name(enum profile_label label);

/* The next label of PROFILE_LABEL_OWN's text, which is "key NUL value NUL" for each, taken off `rest`; false: none.
 * Both are strings of the profile that holds the label. */
bool profile_next_pair(struct str *rest, struct str *key, struct str *value);

/* The string's id; 0: the profile has no such. */
uint32_t profile_find_string(const struct profile *p, struct str text);

/* How many threads there are, whatever their labels. */
size_t profile_thread_count(const struct profile *p);

/* Identity: path, image and build id. */
uint32_t profile_module(struct profile *p, const struct module *module);

/* Identity: kind, module and address when there is an address; else kind, name, file, line, module
 * and caller. */
uint32_t profile_frame(struct profile *p, const struct frame *frame);

/* Fills in a name found later; does not change the frame's identity. */
void profile_name_frame(struct profile *p, uint32_t frame, struct str name, struct str system_name);

/* Sets what is known of the source behind an address: `inlined` functions innermost first, the
 * last one is the function that really exists there. Sets name, file and line of `frame` to the
 * first and hangs the others after it as callers, frames of the same kind and module without an
 * address. Of more than PROFILE_INLINES_MAX those next to the last are dropped; when the
 * profile has no room for the callers, the frame is named by the last alone. */
struct source_line {
    struct str name, system_name, file;
    uint32_t line;
    const char *tier; /* what made its code, as an ending of its name: "_[i]"; null: nobody tells */
};
void profile_name_inlined(struct profile *p, uint32_t frame, const struct source_line *inlined,
                          size_t count);

/* Sets, once sampling has ended, another kind for an address than it entered with. The
 * frame's identity changes with it: profile_frame with the first kind would make a new frame. */
void profile_set_kind(struct profile *p, uint32_t frame, enum frame_kind kind);

/* The functions that a frame stands for, innermost first: itself, then what it is inlined into.
 * Their number is at least 1. */
size_t profile_expand(const struct profile *p, uint32_t frame,
                      uint32_t out[static PROFILE_INLINES_MAX]);

/* The child of `parent` with this frame, made when new. parent 0 is the root. Frame 0 (did not fit)
 * gives 0. */
uint32_t profile_child(struct profile *p, uint32_t parent, uint32_t frame);

/* Adds a sample. Node 0 counts as dropped and goes to "[lost]". Its place in samples; 0: it did not fit. */
uint32_t profile_add(struct profile *p, uint32_t thread, uint32_t node, uint64_t cpu_ns,
                     uint64_t count);

/* The same, taken at this time (moments.h). */
void profile_add_at(struct profile *p, uint32_t thread, uint32_t node, uint64_t cpu_ns, uint64_t count,
                    uint64_t time_ns);

/* From here on when samples are taken is kept, in steps that begin at origin_ns; at most an eighth of max_bytes goes
 * to that, and counts against the bound. Until profile_clear. */
void profile_keep_moments(struct profile *p, uint64_t origin_ns);

/* Adds time spent waiting. What does not fit is dropped: it is part of no sum. */
void profile_add_wait(struct profile *p, uint32_t thread, uint32_t node, uint64_t wait_ns);

/* Declares a sample type of the window; its place, or PROFILE_EVENTS_MAX when there are as many. */
uint32_t profile_event_type(struct profile *p, const char *name, const char *unit);

/* Adds what happened at a stack. Node 0, and what does not fit, stand as "[lost]". */
void profile_add_event(struct profile *p, uint32_t event, uint32_t thread, uint32_t node,
                       uint64_t amount);

/* Adds CPU time without a stack, on the given thread. */
void profile_account(struct profile *p, uint32_t thread, enum account account, uint64_t cpu_ns);

/* The samples that a process has so far stand for nothing; what was accounted for it stays. Only before the first
 * profile_apply_weights. */
void profile_forget_samples(struct profile *p, uint32_t process);

/* Takes the time of a process that is known without a stack and without perf ("[native, no perf]", "[kernel, hidden]")
 * out of the profile, thread by thread, for somebody who knows stacks of it: to be added again. */
void profile_take_unseen(struct profile *p, uint32_t process,
                         void (*take)(void *context, uint32_t thread, uint64_t cpu_ns, bool is_system),
                         void *context);

/* Notes that the samples of a process, nominal_ns in sum, stand for cpu_ns of CPU time as the kernel
 * counted it; profile_apply_weights then scales all noted ones in one pass. Accounting is not scaled. */
void profile_weigh(struct profile *p, uint32_t process, uint64_t nominal_ns, uint64_t cpu_ns);
void profile_apply_weights(struct profile *p);

/* The same at once, for the samples that it has so far: nothing changes them any more. */
void profile_settle(struct profile *p, uint32_t process, uint64_t nominal_ns, uint64_t cpu_ns);

/* Adds time to the samples that a thread has so far, in their proportion: they stand for it, too. False: none. */
bool profile_stretch(struct profile *p, uint32_t thread, uint64_t cpu_ns);

/* "[lost]" …; static text. */
const char *account_name(enum account account);

/* "perf, user and kernel stacks" … */
const char *capture_mode_name(enum capture_mode mode);

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
