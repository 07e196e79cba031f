/*
 * memory: profiles of a Go program that are read in its memory: what net/http/pprof would tell, of programs that serve
 * no such address.
 *
 * Concept. The Go runtime keeps its profiles in tables of its own: a bucket for each stack that has allocated or
 * waited, an array of all goroutines. They are read here while the program runs on, which neither knows nor waits, and
 * written as runtime/pprof does: same addresses, functions, lines, scaling and units. So whatever reads, merges or
 * compares the endpoint's files takes these.
 *
 * Call order. go_memory_open when a process is met; then any of the profiles, as often as wanted; go_memory_free. What
 * go_process leads to is borrowed until then. One thread per go_memory.
 *
 * Where the tables are is told by symbols, or, in a stripped program, by the instructions of functions that its
 * pclntab names (memory_find.c); what is found is believed when what it leads to makes sense.
 *
 * Differences from the endpoint, which stops the program for a moment, or all of it:
 *   heap         none; as there it is of the last completed collections. One that completes while buckets are read
 *                makes them be read again, three times at most.
 *   block, mutex none, but that events go on while buckets are read.
 *   goroutines   each is read at its own moment. One that runs has no stack that could be read: it is shown by the
 *                function it began with, called by no one, below a frame "[running]"; one that moved on
 *                three times while it was read likewise, below "[moved on]". So counts are right. There is none that
 *                serves the request, of course. Stacks are as deep as there: 128 frames, before Go 1.23 32.
 *   waits        the endpoint has no such profile: how long goroutines have been waiting, by stack and state. The
 *                runtime notes only when a collection meets a waiting goroutine first: no collection, no time.
 *   counts       as runtime.ReadMemStats has them, and of the moment; of a program that allocates meanwhile they miss,
 *                or count twice, what a processor allocates in some ten microseconds.
 *   cgo          frames of C are in no profile, as there without a symbolizer.
 *
 * Versions: Go 1.18 to 1.27, x86-64 and AArch64, 64 bits; others are ERR_UNSUPPORTED by name.
 *
 * Limits. GO_GOROUTINES_MAX goroutines, GO_BUCKETS_MAX buckets and 64 MiB of different stacks: beyond them a profile
 * fails with ERR_LIMIT. The memory taken is that of different stacks and of the profile, and some 2 MiB.
 *
 * Units: times are nanoseconds; wall time since 1970, monotonic as CLOCK_MONOTONIC.
 *
 * Facts from: Go source src/runtime/mprof.go, runtime2.go, traceback.go, symtab.go, and what is in src/runtime/pprof.
 */
#ifndef RUNTIME_GO_MEMORY_H
#define RUNTIME_GO_MEMORY_H

#include "base/iface.h"
#include "base/str.h"
#include "runtime/go/metrics.h"
#include "runtime/go/table/table.h"

enum {
    GO_GOROUTINES_MAX = 1 << 17, /* half a second to be read */
    GO_BUCKETS_MAX = 500000,
    GO_PROFILE_MAX_BYTES = 16 << 20, /* gzip'd */
};

struct go_memory;

/* An executable mapping of the process; the program's own first. */
struct go_mapping {
    uint64_t start, limit, file_offset;
    struct str path, build_id;
};

struct go_process {
    struct elf *elf;              /* the program's file */
    struct go_table *table;       /* of it */
    struct memory_batch *memory;
    uint64_t bias;                /* runtime address - ELF address */
    const char *version;          /* as go_version tells: "go 1.24.4" */
    const struct go_mapping *maps;
    size_t map_count;
    /* How fast the processor's counter runs (time stamp counter, CNTVCT), as far as the caller knows, else 0. Needed
     * for block and mutex profiles of programs that have not measured it themselves: those that sample contention or
     * all blocking, and were never asked for a profile. */
    uint64_t counter_hz;
};

/* Null with the reason in one sentence: ERR_UNSUPPORTED a version or processor not known, ERR_MALFORMED the tables
 * were not found or contradict themselves, otherwise memory could not be read. */
struct go_memory *go_memory_open(const struct go_process *process, struct err *why);
void go_memory_free(struct go_memory *m);

enum go_profile { GO_HEAP, GO_BLOCK, GO_MUTEX, GO_GOROUTINES, GO_WAITS };

/* What the process's settings are now. */
struct go_settings {
    uint64_t memory_rate; /* runtime.MemProfileRate: bytes for each sampled allocation; 0: none is sampled */
    uint64_t block_rate;  /* in ticks; 0: no event is sampled */
    uint64_t mutex_rate;  /* one of so many events is sampled; 0: none */
    bool has_memory_rate, has_block_rate, has_mutex_rate; /* false: not found */
    uint64_t collections; /* completed since the start (modulo 100 million); 0 also: not known */
};
bool go_memory_settings(struct go_memory *m, struct go_settings *out, struct err *why);

/* Why this profile of the process is empty, or is not what one would expect; null: no reason is known. Static text. */
const char *go_memory_remark(struct go_memory *m, enum go_profile profile);

/* Each replaces `out` by a gzip'd pprof file; `wall_ns` is its time. False: why, and `out` is empty. */

/* alloc_objects, alloc_space, inuse_objects, inuse_space; label `bytes`: the size of the objects. */
bool go_memory_heap(struct go_memory *m, uint64_t wall_ns, struct buf *out, struct err *why);

/* contentions, delay; `which` is GO_BLOCK or GO_MUTEX. */
bool go_memory_contention(struct go_memory *m, enum go_profile which, uint64_t wall_ns, struct buf *out,
                          struct err *why);

/* goroutine/count. *count: how many there were. */
bool go_memory_goroutines(struct go_memory *m, uint64_t wall_ns, struct buf *out, uint64_t *count, struct err *why);

/* waitduration/nanoseconds, goroutine/count; label `state`: "chan receive", "IO wait", "syscall", "running", … */
bool go_memory_waits(struct go_memory *m, uint64_t wall_ns, uint64_t mono_ns, struct buf *out, struct err *why);

/* What runtime.ReadMemStats tells, but the number of goroutines. False: why, and `out` is as it was. */
bool go_memory_counts(struct go_memory *m, struct go_memstats *out, struct err *why);

#endif
