/*
 * What the files that read a Go process's memory share: where its tables are, what the versions do differently, and
 * the way from addresses to locations of a profile.
 *
 * memory_peek.c reads, memory_layout.c has the rows of versions, memory_code.c reads addresses off instructions,
 * memory_find.c finds the tables, memory.c opens and tells the settings, counts.c what is counted of all the heap.
 * buckets.c walks what is counted by stack (buckets.h), unwind.c the stack of a goroutine, goroutines.c all goroutines
 * (goroutines.h), label_set.c what one is labelled with (label_set.h); places.c turns return addresses into locations.
 */
#ifndef RUNTIME_GO_MEMORY_PRIVATE_H
#define RUNTIME_GO_MEMORY_PRIVATE_H

#include "base/arena.h"
#include "base/map.h"
#include "base/vec.h"
#include "runtime/go/memory/memory.h"
#include "runtime/go/pprof.h"

enum {
    GO_DEPTH_MAX = 1024,       /* runtime.maxProfStackDepth */
    GO_HEADS_MAX = 16,         /* words that may lead to buckets */
    GO_REASONS_MAX = 64,       /* Go 1.27 has 48 */
    GO_REASON_MAX_BYTES = 48,
    GO_G_BYTES = 384,          /* read of a g */
    GO_PLACES_MAX = 1 << 20,   /* different addresses in one profile */
};

/* Offsets in bytes. What is not here is the same in all versions (memory_layout.c). */
struct go_layout {
    uint8_t first_minor, last_minor; /* Go 1.first to 1.last */
    uint16_t lr, syscall_sp, syscall_pc, status, goid, waitsince, waitreason, startpc, labels; /* of g */
    uint16_t procid, curg;    /* of m */
    uint8_t wrapper;          /* funcID of wrappers that the compiler makes */
    uint8_t depth;            /* frames in a profile's stack */
    uint8_t ticks;            /* in runtime.ticks: ticks a second */
    uint16_t heap_stats, pauses; /* of mstats: what is counted of the heap; the sum of pauses, and what follows */
    uint8_t sizes;            /* words of heapStatsDelta that are sums of bytes, before what counts objects */
    uint8_t cache, tiny;      /* of p: its mcache; of that: small allocations within objects, before its spans */
    uint8_t span_objects, span_base; /* of mspan: objects in it; how many are counted in heapStats already */
    bool counts_bytes;        /* memRecordCycle has bytes besides objects */
    bool cycle_has_flag;      /* the number of the heap profile's cycle stands at bit 1 */
    bool hides_internal;      /* "internal/runtime/" is hidden above allocations as "runtime." is */
    bool lists_labels;        /* a goroutine's labels are a list, earlier a map */
};

enum { /* of g and gobuf, in all versions */
    GO_G_STACK_LO = 0, GO_G_STACK_HI = 8, GO_G_M = 48, GO_G_SP = 56, GO_G_PC = 64,
};

/* Null: none. `version`: "go 1.24.4". */
const struct go_layout *go_layout_of(const char *version);

struct go_memory {
    struct go_process process;
    const struct go_layout *layout;
    bool keeps_lr;               /* calls leave the return address in a register: AArch64 */
    uint64_t heads[GO_HEADS_MAX]; /* addresses of words that may lead to buckets; which ones is told by these */
    size_t head_count;
    uint64_t goroutines;         /* address of the slice runtime.allgs */
    uint64_t memory_rate, block_rate, mutex_rate, cycle, ticks; /* addresses; 0: not found */
    uint64_t counts, processors; /* likewise of runtime.memstats, and of the slice runtime.allp */
    char reasons[GO_REASONS_MAX][GO_REASON_MAX_BYTES]; /* texts of why a goroutine waits */
    size_t reason_count;
    struct err unread;           /* why memory could not be read at all, once it could not */
};

/* memory_peek.c: exactly `len` bytes of the process, or false. */
bool go_peek(struct go_memory *m, uint64_t address, void *out, size_t len);
bool go_peek_word(struct go_memory *m, uint64_t address, uint64_t *out);

/* `why` of a profile that cannot be told because memory could not be read: always false. */
bool go_unread(const struct go_memory *m, struct err *why, const char *what);

/* memory_code.c: the addresses of data that a function's instructions name, in their order. x86-64: operands relative
 * to RIP; AArch64: ADRP and what is added to its register. */
struct go_operand {
    uint64_t address; /* ELF address */
    uint8_t bytes;    /* that are loaded or stored; 0: its address is taken */
    bool stores_zero; /* the constant 0 is stored there */
    bool compares;    /* with the constant 0 */
    bool after_rate;  /* 512 Ki is loaded shortly before */
};
enum { GO_OPERANDS_MAX = 256, GO_CODE_MAX_BYTES = 16 << 10 };
size_t go_operands(enum elf_machine machine, const unsigned char *code, size_t len, uint64_t address,
                   struct go_operand out[static GO_OPERANDS_MAX]);

/* memory_find.c */
bool go_memory_find(struct go_memory *m, struct err *why);

/* counts.c: has runtime.memstats its place there, and the slice of processors? */
bool go_are_counts(struct go_memory *m, uint64_t address);
bool go_are_processors(struct go_memory *m, uint64_t slice);

/* buckets.c: the type of the bucket at this address (1 memory, 2 block, 3 mutex); 0: it is none. */
enum go_bucket_type { GO_BUCKET_MEMORY = 1, GO_BUCKET_BLOCK, GO_BUCKET_MUTEX };
unsigned go_bucket_type(struct go_memory *m, uint64_t address);

/* goroutine_kind.c: how many goroutines a slice holds; 0: what it holds is none. */
uint64_t go_count_goroutines(struct go_memory *m, uint64_t slice);

/*
 * unwind.c: physical frames of a goroutine that does not run, as addresses - innermost first - that places take: return
 * addresses.
 */
struct go_point { /* what is known of one address in the code */
    struct go_step step;
    uint64_t shown; /* the address to be told; 0: a wrapper, which is left out */
    uint32_t calls; /* functions it stands for */
    bool is_code;   /* else the walk ends before it */
    bool injected;  /* called by the runtime at any instruction: its caller was about to run this address */
    bool panics;    /* wrappers that call it are told */
    bool switches;  /* cgocallback: writes SP, but its frame is there on both stacks */
};

struct go_unwinder {
    struct go_memory *m;
    struct map known;           /* address and how it came about -> index + 1 in points */
    VEC(struct go_point) points;
};
void go_unwinder_release(struct go_unwinder *u);

struct go_stack {
    uint64_t pc, sp, lr, limit; /* where the walk begins; `limit`: the stack's end */
    bool in_syscall;
    const unsigned char *bytes; /* of the stack, from `start` on */
    uint64_t start;
    size_t len;
    /* Makes more bytes available that begin at `address`; false: the goroutine has moved on. */
    bool (*more)(void *context, struct go_stack *stack, uint64_t address);
    void *context;
    uint64_t pcs[GO_DEPTH_MAX];
    size_t count;
};
/* False: the stack could not be followed, because the goroutine runs. */
bool go_unwind(struct go_unwinder *u, struct go_stack *stack);

/*
 * places.c: locations. A list is of return addresses, innermost first. It may hold marks of inlined calls behind the
 * address of the innermost one, as the runtime lists stacks, or not.
 */
struct go_place {
    uint64_t id;        /* 0: it is not shown */
    uint32_t marks, mark_count; /* in go_places.marks: those that may follow in a list */
    bool is_code;       /* a Go function holds it */
};

struct go_places {
    struct go_memory *m;
    struct go_pprof *pprof;
    struct map known;       /* address -> index in places */
    VEC(struct go_place) places;
    VEC(uint64_t) marks;
    struct map runtime;     /* address -> is it in a function of the runtime? */
    bool failed;            /* no memory */
};

bool go_places_open(struct go_places *p, struct go_memory *m, const struct go_pprof_kind *kind, uint64_t wall_ns);
void go_places_release(struct go_places *p);

/* At most GO_DEPTH_MAX. */
size_t go_places_of(struct go_places *p, const uint64_t *pcs, size_t count, uint64_t out[static GO_DEPTH_MAX]);

/* Is the call before this address in a Go function? */
bool go_places_is_code(struct go_places *p, uint64_t pc);

/* How many at the list's start are the runtime's own; 0 when all are. */
size_t go_places_hidden(struct go_places *p, const uint64_t *pcs, size_t count);

bool go_places_finish(struct go_places *p, struct buf *out, struct err *why);

#endif
