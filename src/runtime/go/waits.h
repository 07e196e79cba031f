/*
 * waits: how long goroutines have been waiting, and for what, from the text that a Go program prints of them.
 *
 * Concept. /debug/pprof/goroutine?debug=2 prints each goroutine as a panic would: a line with its number, what it waits
 * for and for how many minutes, then its frames. Of that a profile is made (pprof.h) with the values
 * waitduration/nanoseconds and goroutine/count. Goroutines of equal stack and state are one sample. It is the profile
 * that dd-trace-go calls goroutinewait, with a count.
 *
 * What a sample says:
 *   frames   function, file and line; the last one (the root) is where the goroutine was created ("created by"). Of
 *            a deep stack Go prints the inner and the outer part: between them stands a frame "[50 frames omitted]"
 *            ("[frames omitted]" at the end, before Go 1.21). Stacks of creators (GODEBUG=tracebackancestors) are left
 *            out. A goroutine that runs on another thread has no stack in the text: "[unreadable]"
 *   state    label: the runtime's words, such as "chan receive" or "sync.Mutex.Lock", unknown ones as they are;
 *            "(scan)", which says that the collector looks at it just now, is taken off
 *   lockedm  label "true": locked to its thread
 *   leaked   label "true": nothing can wake it any more
 *   goid     number, of unit "id": only of the GO_WAITS_NAMED goroutines that wait longest, each a sample of its own
 * Labels that programs set (Go 1.27 prints them of modules of its own version) and synctest's bubbles are read over.
 *
 * The runtime knows whole minutes, and counts them from the first garbage collection that met the goroutine waiting: a
 * program that collects no garbage has no wait times, and less than a minute is 0.
 *
 * The goroutine that prints the text is left out (told.own): that it runs is the question's doing. It is the one that
 * is "running" in runtime/pprof.writeGoroutineStacks.
 *
 * Damage. A block of the text that does not follow the grammar is counted and left out. Where the text ends within
 * a line, or has the runtime's maximum of 64 MiB, it was cut: its last block is not whole and is left out, too.
 *
 * Limits: 512 frames in a block (Go prints 100 and the creator), the text's maximum, the result 8 MB. Memory: that of
 * pprof.h, and for each different stack 4 bytes a frame and some 80 more, 16 MB in all: further ones are not added up,
 * each goroutine is a sample then.
 *
 * Format: Go source src/runtime/traceback.go (goroutineheader, traceback2, printcreatedby), Go 1.5 to 1.27.
 */
#ifndef RUNTIME_GO_WAITS_H
#define RUNTIME_GO_WAITS_H

#include "base/err.h"
#include "base/str.h"

enum {
    GO_WAITS_NAMED = 10,
    GO_WAITS_TEXT_MAX = 64 << 20,
};

struct go_waits_told {
    uint64_t goroutines; /* in the profile */
    uint64_t own;        /* left out: prints the text */
    uint64_t damaged;    /* blocks */
    bool cut;
};

/* Replaces out by the gzip'd profile. wall_ns: when the text was made. False: a text without a goroutine
 * (ERR_MALFORMED), or longer than the maximum; what was told is not written then. */
bool go_waits_read(struct str dump, uint64_t wall_ns, struct buf *out, struct go_waits_told *told, struct err *err);

#endif
