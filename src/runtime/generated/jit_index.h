/*
 * jit_index: which code lay where, and in a jitdump also when.
 *
 * What lies there now are ranges that do not overlap, in blocks sorted by address: an addition moves
 * one block's rest, so it costs the same for code made in any order. Where new code overlaps old
 * code, the new wins: old code whose first byte it covers is gone, since nobody can enter it any
 * more; old code that begins before it ends where the new begins (runtimes round sizes up).
 *
 * What is gone is kept with its times when they are known, the latest JIT_PAST_MAX of them, for
 * samples that are named later than they were taken.
 *
 * Memory: 24 bytes per range (blocks are at least about half full, full when code is made in the
 * order of addresses), and the texts. When max_bytes are used up, the older half of what is gone is
 * forgotten, blocks are joined and unused texts given back; when that does not help, additions are
 * refused until enough was replaced.
 */
#ifndef RUNTIME_GENERATED_JIT_INDEX_H
#define RUNTIME_GENERATED_JIT_INDEX_H

#include "runtime/generated/jit_text.h"

enum { JIT_PAST_MAX = 16384 };

struct jit_code {
    uint64_t start;
    uint64_t birth_ns; /* 0: was there from ever */
    uint32_t bytes;
    uint32_t text;
};

struct jit_past {
    struct jit_code code;
    uint64_t death_ns;
};

struct jit_block;

struct jit_index {
    size_t max_bytes;
    VEC(struct jit_block *) blocks; /* none is empty */
    VEC(struct jit_past) past;      /* in the order of their deaths */
    struct jit_texts texts;
    uint64_t names, replaced, refused;
    uint64_t next_reclaim; /* not before so many were replaced */
};

void jit_index_release(struct jit_index *index);
size_t jit_index_bytes(const struct jit_index *index);

/* New code; its `text` is not looked at, its range is not empty and does not wrap. */
void jit_index_add(struct jit_index *index, struct jit_code code, struct str name,
                   struct str lines);

/* The code that starts at `from` lies at `to` from `time_ns` on. False when there is none. */
bool jit_index_move(struct jit_index *index, uint64_t from, uint64_t to, uint64_t time_ns);

/* What was at `address` at `time_ns`, or null. Valid until the next change. */
const struct jit_code *jit_index_find(const struct jit_index *index, uint64_t address,
                                      uint64_t time_ns);

#endif
