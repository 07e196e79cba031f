/* What the files of jit share among themselves. */
#ifndef RUNTIME_GENERATED_JIT_PRIVATE_H
#define RUNTIME_GENERATED_JIT_PRIVATE_H

#include "base/cursor.h"
#include "runtime/generated/jit.h"
#include "runtime/generated/jit_index.h"

/* A line of the perf map that the pieces have not yet ended. */
struct jit_map {
    char line[JIT_LINE_MAX];
    size_t len;
};

/* Of one debug info that is looked at, and of what is kept of it: node's largest have 6 KB. */
enum { JIT_DEBUG_MAX_BYTES = 32 << 10 };

/* jit_lines.c: the lines of one code, as its text keeps them. */

struct jit_lines {
    struct buf bytes;
    uint64_t offset, line; /* of the last entry */
};

void jit_lines_clear(struct jit_lines *lines);

/* One more: from `offset` of the code on. Null for the file of the entry before. */
void jit_lines_add(struct jit_lines *lines, uint64_t offset, uint32_t line,
                   const struct str *file);

/* The entry nearest below an offset. */
bool jit_lines_find(struct str bytes, uint64_t offset, uint32_t *line, struct str *file);

enum jit_dump_part { JIT_DUMP_HEADER, JIT_DUMP_PREFIX, JIT_DUMP_BODY, JIT_DUMP_BROKEN };

struct jit_dump {
    enum jit_dump_part part;
    size_t wanted;      /* bytes of the part that are looked at */
    uint64_t skip;      /* bytes that are not, before the next part */
    struct buf held;    /* of the part, when pieces divide it */
    uint32_t record;    /* the kind of the record whose body comes, */
    uint64_t time_ns;   /* its time, 0 unless that is CLOCK_MONOTONIC, */
    uint64_t body_bytes;
    bool dated;
    struct jit_lines lines; /* of the code that the next load announces */
    uint64_t lines_of;      /* where that code starts */
    uint64_t line_bias;     /* see take_debug_info */
};

/* What the two buffers of a jit_dump may grow to: buffers grow by halves. */
enum { JIT_DUMP_MAX_BYTES = 2 * (JIT_DEBUG_MAX_BYTES / 2 * 3 + 64) };

struct jit_names {
    struct jit_index index;
    struct jit_map map;
    struct jit_dump dump;
    uint64_t damaged;
};

/* jit_dump.c */
void jit_dump_init(struct jit_dump *dump);
void jit_dump_release(struct jit_dump *dump);

#endif
