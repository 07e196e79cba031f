/*
 * runtime: programs that keep stacks of their own, read from outside.
 *
 * Concept. An interpreter (CPython, Ruby, PHP, Perl …) knows its functions by structures in its own
 * memory. A runtime here is one row of the registry (runtimes.c): how such a program is recognised,
 * and how its stacks are read without stopping it, writing to it or running anything in it.
 *
 * Three lifetimes:
 *   binary   what can be told from one ELF file, once per file: is it this runtime, which version,
 *            where are its tables, which of its code is the interpreter's loop;
 *   process  where these tables are in one process; found once, checked against the process's memory
 *            before anything is believed, and constant from then on;
 *   sample   one thread's stack at one moment.
 *
 * Three answers to every question of the first two: no (another program), yes, and "yes but": it is
 * this runtime, and cannot be read because … (one sentence with the remedy). A version that is not
 * known is refused by name, never read with the nearest layout.
 *
 * Verbs. A row offers those that fit how its programs keep their stacks; each group may be null.
 *
 *   walk      reads a thread's frames from memory (recognise, attach, walk, running, name_frames). What it reads is
 *             woven into the native stack in the place of frames of the interpreter's loop (native_at). A process may
 *             have several runtimes, also two of one row: each is attached to and walked by itself.
 *   resolve   tells what an address is that native tools cannot: its functions, inlined ones included, and how to go
 *             on to the caller. Of a file (open_code; Go) the publisher asks it for names, before symbols. Of a process
 *             (attach; a JVM) the unwinder asks it where it has no rules of its own, before it gives up, and
 *             the frame gets these names at once. Where generated code is described in files (perf maps,
 *             jitdumps: generated/jit.h), read_name tells what such a name means. release tells what a program was
 *             built with.
 *   collect   a profile that the runtime makes itself (JFR, inspector, pprof), or moments of it: start, poll, tick,
 *             stop. The row speaks with the process (struct process_port) and hands over what the runtime wrote, or
 *             makes it of what the runtime has counted in its memory.
 *
 * Threads. recognise, attach, resolve of a process, name_frames, name_thread and the releases belong to the sampler;
 * open_code, read_name and resolve of a file to the publisher; collect to a thread of its own, for it waits. walk and
 * running run in catchers, one per CPU, at the same time, while the sampled thread waits: they take their time from
 * the target. So walk allocates nothing, takes no lock, reads memory in one batch when its prediction holds and in one
 * or two more when not, and touches nothing but its arguments: `state` is constant, but for what extend
 * adds in one atomic store; a plan is one catcher's memory about one thread, zero at first,
 * aligned to 16 bytes, RUNTIME_PLAN_MAX bytes at most.
 *
 * Everything read is hostile: lengths, counts and links are bounded; a stack that contradicts itself is
 * RUNTIME_TORN, never a guess.
 */
#ifndef RUNTIME_RUNTIME_H
#define RUNTIME_RUNTIME_H

#include "base/iface.h"
#include "elf/elf.h"
#include "profile/code_lines.h"

#define RUNTIME_OUTERMOST UINT32_MAX

enum {
    RUNTIME_FRAMES_MAX = 1024,  /* kept of a stack: the leaf-most three quarters and the root-most */
    RUNTIME_WALK_MAX = 65536,   /* followed */
    RUNTIME_PLAN_MAX = 4096,    /* bytes that one catcher keeps about one thread */
    RUNTIME_NAME_MAX = 4096,    /* bytes of a function's or file's name; longer ones are cut */
    RUNTIME_TASK_MAX = 251,     /* of what a thread works on */
};

enum runtime_answer { RUNTIME_NO, RUNTIME_YES, RUNTIME_UNSUPPORTED };

/* What a runtime may ask about a file's code beyond its ELF headers and symbols. */
struct runtime_code {
    /* The range of the function that unwind tables know at an ELF address (an FDE's); false: none. */
    bool (*function_at)(void *context, uint64_t address, uint64_t *start, uint64_t *limit);
    void *context;
};

/* A line of /proc/PID/maps. */
struct runtime_map {
    uint64_t start, limit;
    uint64_t file_offset;
    uint8_t prot;  /* read 1, write 2, execute 4 */
    bool of_binary; /* it maps the recognised file */
    bool anonymous;
};

struct runtime_process {
    uint32_t pid;
    uint64_t bias;               /* runtime address - ELF address of the recognised file */
    struct elf *elf;             /* that file */
    struct memory_batch *memory;    /* a row without walk may keep it until it is detached */
    const struct runtime_map *maps; /* by start */
    size_t map_count;
    const uint32_t *tids;        /* threads at this moment, as the target's own PID namespace numbers
                                  * them: that is what its memory holds */
    size_t tid_count;
    bool shows_urls;             /* of the requests that it serves; they may hold what is private */
    /* Replaces `out` by a file below its root, up to its maximum; false: there is none. Null: no files are wanted. Both
     * stay until it is detached. */
    bool (*file)(void *context, const char *path, struct buf *out);
    void *files;
};

/* What a native frame inside the recognised file is to this runtime. */
enum runtime_native {
    RUNTIME_NATIVE_PLAIN,
    RUNTIME_NATIVE_LOOP,     /* the interpreter's loop: stands for frames of the runtime */
    RUNTIME_NATIVE_PLUMBING, /* how the interpreter calls itself; of no use to a reader */
    RUNTIME_NATIVE_ENTERS,   /* what calls the loop: stands for it where the loop is not what it has called, but
                              * generated code, or nothing yet */
    RUNTIME_NATIVE_GOES_ON,  /* calls the loop for frames that the loop further to the root has begun: the one that it
                              * calls stands for none of its own */
};

enum runtime_frame_flag {
    RUNTIME_FRAME_ENTRY = 1,   /* the outermost of those that one native frame of the loop runs */
    RUNTIME_FRAME_UNSTARTED = 2, /* pushed, but has not executed an instruction */
    RUNTIME_FRAME_CUT = 4,     /* frames towards the root are omitted here: stack deeper than
                                * RUNTIME_FRAMES_MAX */
    RUNTIME_FRAME_COLLECTS = 8, /* its garbage collector runs on top of this frame */
    RUNTIME_FRAME_PART = 32,    /* what it called is not known: the thread ran on while it was read, and only from here
                                 * to the root it stood */
    RUNTIME_FRAME_SHIM = 16,    /* no function: one native frame of the loop that is just being entered or
                                 * left has this instead of frames */
};

struct runtime_frame {
    uint64_t code;     /* address of what describes the function */
    uint32_t position; /* in its code, in the runtime's unit */
    uint32_t flags;
    uint64_t check;    /* fingerprint of *code at the moment of the walk; 0: not taken */
};

enum runtime_end {
    RUNTIME_COMPLETE,   /* down to the thread's first frame */
    RUNTIME_EMPTY,      /* the runtime knows this thread, and it runs nothing */
    RUNTIME_NO_THREAD,  /* the runtime does not know this thread */
    RUNTIME_TORN,       /* contradicts itself: the thread ran on while it was read */
    RUNTIME_UNREADABLE, /* memory could not be read */
    RUNTIME_END_COUNT,
};

enum runtime_mark {
    RUNTIME_HOLDS_LOCK = 1,  /* holds the interpreter's lock (GIL) */
    RUNTIME_WAITS_LOCK = 2,  /* waits for it */
    RUNTIME_IN_GC = 4,
    RUNTIME_SHORT_LIVED = 8, /* a function was met not long ago whose code is freed once it has run: the
                              * stack should be named at once */
    RUNTIME_OF_REQUEST = 16, /* it serves a request: `task` has its method, its script and its URL, each of which may be
                              * empty and ends with 0 */
    RUNTIME_HAS_LABELS = 32, /* `task` has what the program has labelled its work with: key, 0, value, 0, … */
    RUNTIME_SAME_TASK = 64,  /* the sample's registers name the task, too: it is of that moment, proven or not */
};

struct runtime_stack {
    struct runtime_frame frame[RUNTIME_FRAMES_MAX]; /* leaf first */
    uint32_t count;
    uint8_t end;    /* enum runtime_end */
    uint8_t marks;  /* bits of enum runtime_mark */
    uint8_t reads;  /* batches it took */
    uint8_t retries; /* of them, because a stack was torn */
    uint8_t task_bytes;
    char task[RUNTIME_TASK_MAX]; /* what the thread's event loop calls the task that it runs, or of a request: UTF-8 */
    uint32_t interpreter; /* number + 1 of the one that it runs, where its process has several; else 0 */
};

/* A task of an event loop that waits. */
struct runtime_task {
    uint64_t id, awaited_by;    /* numbers of tasks; awaited_by 0: nobody, or it is not known */
    uint32_t tid;               /* thread of its loop, as the target's own PID namespace numbers it */
    struct runtime_stack stack; /* of its awaits, leaf first; its name is stack.task */
};
enum { RUNTIME_TASKS_MAX = 10000 };

/* What a frame is called. Texts are the naming state's until its next name_frames: intern them at once. */
struct runtime_name {
    struct str function; /* qualified where the version knows: "Class.method" */
    struct str file;
    uint32_t line;       /* being executed; 0 unknown */
    uint32_t first_line; /* of the function */
    bool may_change;     /* another function may come to look the same: ask again for each stack */
};

/* ---- walk ---- */

/* Of a sample, as the processor had them. */
struct runtime_registers {
    uint64_t ip, sp, fp;
    uint64_t kept[2]; /* that calls preserve: x86-64 r14 and r15, AArch64 x27 and x28; 0: not known */
    const uint64_t *all; /* of a leaf that is resolved, by DWARF number; null: not known */
};

/* The thread that is walked. */
struct runtime_thread {
    uint32_t tid; /* as the target's own PID namespace numbers it */
    /* At the sample; null: not known (no perf, or the row does not want them). */
    const struct runtime_registers *registers;
    uint64_t thread_pointer; /* its pthread_self; 0: not known */
    bool proven_later;       /* the caller proves that the thread stood still: nothing need be read twice */
    bool takes_parts;        /* else: of a thread that ran on the part of the stack that stood (RUNTIME_FRAME_PART) is
                              * wanted, rather than a whole one of a moment later */
};

/* ---- resolve ---- */

/* How to go on from a frame to its caller. Addresses are of the process. */
enum runtime_rule {
    RUNTIME_RULE_NONE,          /* not known: names only */
    RUNTIME_RULE_FRAME_POINTER, /* the frame pointer leads to the caller's, and the return address behind it; the
                                 * caller's SP is `value`, or right behind that where it is 0 */
    RUNTIME_RULE_FRAME_SIZE,    /* `value` bytes above SP stands the return address; SP is behind it then */
    RUNTIME_RULE_CFA,           /* the caller's SP is `value`; the return address stands right below it */
    RUNTIME_RULE_LINK_REGISTER, /* AArch64, of a leaf: the return address is in that register, the frame pointer is the
                                 * caller's, and its SP `value` bytes above SP */
};

struct runtime_caller {
    enum runtime_rule rule;
    uint64_t value;
    /* With FRAME_SIZE and CFA: the caller's frame pointer was saved so many bytes below its SP; 0: it is unchanged. */
    uint32_t saved_fp;
};

/* What resolve is asked about. */
struct runtime_place {
    uint64_t address; /* of the file for open_code, else of the process; a caller's is its return address - 1 */
    const struct runtime_registers *registers; /* of the frame; null: only names are asked for */
    const struct memory_reader *stack;         /* words of it, at multiples of 8, as they were then; null: the same */
};

struct runtime_resolved {
    struct code_lines lines;
    struct runtime_caller caller;
};

/* What a name in a perf map or jitdump means. */
struct runtime_named {
    enum frame_kind kind;
    struct str file; /* part of the raw name; "" unknown */
    uint32_t line;
};

/* ---- collect ---- */

/* What a profile of the runtime's own is to hold. */
enum runtime_wanted {
    RUNTIME_WANTS_CPU = 1,   /* stacks of what runs; each thread's CPU time is shared out among them */
    RUNTIME_WANTS_ALLOC = 2, /* where memory is allocated */
    RUNTIME_WANTS_LOCK = 4,  /* where threads wait for locks of the program's */
    RUNTIME_WANTS_LIGHT = 8, /* the stacks of light threads of its own, now, and nothing else */
};

struct runtime_target {
    const struct process_port *port; /* stays until stop */
    uint64_t frequency_hz;           /* of the session */
    unsigned wanted;
    unsigned processors;             /* that we may run on; 0: not known */
    unsigned peers;                  /* how many processes of this runtime are asked, with this one */
    const void **turn;               /* null, or who may do now what one process of a runtime may do at a time */
    bool by_moments;                 /* not by its recorder: by its threads' stacks, asked for again and again */
    bool connects;                   /* it may be asked at an address where it listens, … */
    bool records_cpu;                /* … for CPU time, too: nobody else there has its only recorder, … */
    bool traces;                     /* … or for execution traces: likewise */
    const char *addresses;           /* these, commas between; null: they are found */
    bool is_new;                     /* it began with the run: what it has counted so far is the first window's */
};

/* Takes a file that the runtime wrote, in a format that encode reads (a flight recording), or what has been written of
 * it so far; what it has of it already it does not take twice. Or moments (encode/moments_read.h), each handed over
 * once; `type` is null then. Or a profile of another type, as it is to be published (profile/runtime_profile.h). The
 * bytes are the sink's then, and the buffer is empty. */
struct runtime_sink {
    void (*file)(void *context, const char *type, struct buf *bytes);
    void *context;
};

/* poll hands over what there is (`whole`: what is still being written, too), and is false with the reason when the
 * profile is over; true with one: what is missing of it. stop ends it, hands over what is left, and frees. tick has a
 * moment told, which stands for the time since the last; false: there are none to be told (any more), or poll has
 * something to tell. It may be null. */
struct runtime_collect {
    const char *price;    /* for people: what is asked for, and what that costs the process */
    const char *carriers; /* how threads are called that run light ones of the runtime's own; null: there are none */
    const char *opt_in;   /* null, or only with this option, "--nodejs-mode inspector": it is spoken with by TCP */
    bool is_aside;        /* it tells what no stacks do: it is asked whatever other ways there are */
    uint64_t needs_bytes; /* that its container must have left, where nobody asked for it; 0: it takes little */
    unsigned tick_ms;     /* how often a tick is wanted, … */
    unsigned tick_part;   /* … and for which part of the time at most: a 50th; 0: all of it */
    bool (*may_start)(const struct process_port *port, struct err *why); /* as far as is seen without asking it */
    void *(*start)(const struct runtime_target *target, struct err *why); /* null: not here, or not now (EAGAIN). What
                                                                            * its stacks are not is told in `why` then,
                                                                            * also where there is something */
    bool (*tick)(void *collection, uint64_t since_ns);
    bool (*poll)(void *collection, bool whole, const struct runtime_sink *sink, struct err *why);
    void (*stop)(void *collection, const struct runtime_sink *sink);
};

/* ---- a row ---- */

struct runtime {
    const char *name;     /* "python": in options and messages */
    const char *versions; /* that it reads, "2.7 and 3.5 to 3.15": as its refusals say; null: it has none */
    enum frame_kind kind;
    const char *extension; /* how the name of another file begins that tells more of a process that has
                            * it mapped; null: there is none */

    /* binary */
    enum runtime_answer (*recognise)(struct elf *elf, struct str path, const struct runtime_code *code,
                                     void **binary, struct err *why);
    void (*forget)(void *binary);
    /* Is there anything to walk in such a program? Null: yes. */
    bool (*is_walked)(const void *binary);
    enum runtime_native (*native_at)(const void *binary, uint64_t elf_address);

    /* process */
    enum runtime_answer (*attach)(const void *binary, const struct runtime_process *process,
                                  void **state, struct err *why);
    void (*detach)(void *state);
    /* The process has the extension mapped: it may come long after attach, while catchers walk. */
    void (*extend)(void *state, struct elf *extension);
    void (*describe)(const void *state, struct buf *out); /* "CPython 3.11.9" */

    /* sample: in a catcher */
    void (*walk)(const void *state, void *plan, const struct runtime_thread *thread,
                 struct memory_batch *memory, struct runtime_stack *out);
    /* Of a thread that has just been walked and sleeps: the futexes of locks that its code holds, or waits for, by what
     * it has on its stack, though such a lock notes no owner. Where each that waits has a futex of its own, it is the
     * lock's address, and a pointer to that stands before the futex. How many, at most `most`. May be null. */
    size_t (*locks)(const void *state, const void *plan, struct memory_batch *memory, uint64_t *futexes, size_t most);
    /* Shows `each` the tasks that wait, RUNTIME_TASKS_MAX at most; how many changed while they were read and are left
     * out. May be null. */
    size_t (*tasks)(const void *state, struct memory_batch *memory,
                    void (*each)(void *context, const struct runtime_task *task), void *context);
    bool wants_registers; /* walk uses thread->registers */
    bool only_labels;     /* walk gives no frames, but the labels of what runs: RUNTIME_EMPTY. Others tell its stack */
    /* Threads that may be running now, by the runtime's own lists: who holds its lock first, then those that
     * began last. So threads are met that end before anybody lists them. Returns how many, at most `most`, as
     * the target's own PID namespace numbers them. May be null. */
    size_t (*running)(const void *state, struct memory_batch *memory, uint32_t *tids, size_t most);

    /* names: in the sampler, soon after the walk. Null: no memory. `state` must outlive them. */
    void *(*open_names)(const void *state);
    void (*close_names)(void *names);
    /* Several frames at once, so that what is unknown is read in a few batches; a frame that cannot be
     * named (its code is gone, or has become other code since `check` was taken) has an empty name. */
    void (*name_frames)(void *names, const struct runtime_frame *frames, size_t count,
                        struct memory_batch *memory, struct runtime_name *out);

    /* What the program itself calls a thread whose name for the system says nothing, appended to `out`. False: nothing,
     * or not yet. May be null. */
    bool (*name_thread)(void *names, uint32_t tid, struct memory_batch *memory, struct buf *out);

    /* resolve: `code` is what open_code gave; of a row without it, attach's state. Texts are borrowed until the next
     * question. */
    void *(*open_code)(struct elf *elf, struct err *why); /* null: no such code in the file; `elf` is borrowed */
    void (*close_code)(void *code);
    bool (*resolve)(void *code, const struct runtime_place *at, struct runtime_resolved *out);
    /* By how many bytes a function of the file has moved SP when it stands before this instruction. The return address
     * stands right above them; on AArch64 at SP, or in its register if there are none. RUNTIME_OUTERMOST: nobody called
     * the function. May be null. */
    bool (*depth)(void *code, uint64_t address, uint32_t *bytes);
    /* Appends the name for people of `raw` to `out`. False: it is not of this runtime. */
    bool (*read_name)(struct str raw, struct buf *out, struct runtime_named *named);
    /* Appends what the file of a program was built with, "go 1.24.4". False: by nothing that is known. May be null. */
    bool (*release)(struct elf *elf, struct buf *out);

    const struct runtime_collect *collect; /* null: no */
};

/* All of them; ends with null. Where several claim a file or a name, the first one has it. */
extern const struct runtime *const runtimes[];

#endif
