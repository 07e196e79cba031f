/*
 * jit: names of code that was generated while a program ran.
 *
 * Two files have them. A perf map (/tmp/perf-PID.map: "START SIZE name" in hexadecimal, the rest of
 * the line is the name), appended to as code is made, later lines winning over earlier ones they
 * overlap; and a jitdump (jit-PID.dump: binary records with a time, so that code which replaced
 * other code at the same address is told apart by when the sample was taken). Both belong to one
 * process.
 *
 * Concept. A jit_names is fed with pieces of the file as it grows, in order and of any size, and
 * answers which name an address had. Perf map lines may be broken over pieces; one counts when its
 * end has come. A jitdump's code bytes and unwinding information are skipped, its debug info gives
 * lines. A file that became shorter is another file: begin anew with another jit_names.
 *
 * Overlaps. Code whose first byte is covered by newer code is gone; code that begins before newer
 * code ends where that begins. What a jitdump's code replaced is known for its own time as long as
 * it is among the latest 16,384.
 *
 * Limits. JIT_NAMES_MAX_BYTES per process (100 KB of it are for reading a jitdump): beyond it the
 * oldest names that were replaced go first, then new ones are refused and `refused` counts them,
 * until enough old ones were replaced. A line above JIT_LINE_MAX is cut. A name costs 24 to 40
 * bytes, and its text once however often it recurs: 8 MiB hold 110,000 names with 40 letters each,
 * 200,000 when they recur.
 *
 * Errors. A damaged line or record is counted in `damaged` and skipped; a jitdump whose header is
 * wrong is ERR_MALFORMED or ERR_UNSUPPORTED (version, machine, big-endian). A record shorter than
 * its own prefix hides where the next one is: ERR_MALFORMED too. After an error every further feed
 * fails and what was learned stays.
 *
 * What producers do. CPython leaves the jitdump's machine 0. V8 counts the addresses of its debug
 * info from an ELF header that is not there (64 bytes too high), those of baseline code ("^") are
 * offsets in the bytecode, and node 20 writes freed memory where names of files outside node itself
 * should be: the first is corrected, the others are left without lines and not counted. A producer
 * whose times are a processor's counter (header flag 1) is read as if it had none.
 *
 * Formats: Linux tools/perf/Documentation/jit-interface.txt and jitdump-specification.txt.
 */
#ifndef RUNTIME_GENERATED_JIT_H
#define RUNTIME_GENERATED_JIT_H

#include "base/err.h"
#include "base/str.h"

enum {
    JIT_NAMES_MAX_BYTES = 8 << 20,
    JIT_LINE_MAX = 4096,
};

struct jit_names;

struct jit_hit {
    struct str name;       /* as the runtime wrote it; borrowed until the next feed */
    struct str file;       /* jitdump's debug info; "" without */
    uint32_t line;
    uint64_t start, limit; /* runtime addresses */
};

/* Null only when memory ends. */
struct jit_names *jit_names_new(size_t max_bytes);
void jit_names_free(struct jit_names *names);

/* The next bytes of the process's perf map, or of its jitdump. False for a jitdump that is none. */
void jit_feed_map(struct jit_names *names, const void *ptr, size_t len);
bool jit_feed_dump(struct jit_names *names, const void *ptr, size_t len, struct err *err);

/* What was at `address` at `time_ns` (CLOCK_MONOTONIC; UINT64_MAX: now). Perf maps know no time. */
bool jit_lookup(struct jit_names *names, uint64_t address, uint64_t time_ns, struct jit_hit *out);

#endif
