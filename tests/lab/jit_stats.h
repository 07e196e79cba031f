/* jit_stats: what a reader of generated code's names has counted, and what memory it holds. */
#ifndef JIT_STATS_H
#define JIT_STATS_H

#include "runtime/generated/jit_private.h"

struct jit_stats {
    uint64_t names;    /* of code that is there now */
    uint64_t replaced; /* of code that is gone */
    uint64_t refused, damaged;
    size_t bytes;
};

static inline struct jit_stats jit_names_stats(const struct jit_names *names)
{
    const struct jit_index *index = &names->index;
    return (struct jit_stats){
        .names = index->names,
        .replaced = index->replaced,
        .refused = index->refused,
        .damaged = names->damaged,
        .bytes = sizeof *names + names->dump.held.cap + names->dump.lines.bytes.cap + jit_index_bytes(index),
    };
}

#endif
