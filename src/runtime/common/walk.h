/*
 * walk: what the walk verbs of all rows share: fields that a version may not have, reads that are whole or nothing, and
 * how a walk ends.
 */
#ifndef RUNTIME_COMMON_WALK_H
#define RUNTIME_COMMON_WALK_H

#include "runtime/common/load.h"
#include "runtime/runtime.h"

/* An offset: this version has no such field, or it is not known. */
#define LAYOUT_NONE UINT32_MAX

static inline bool has(uint32_t offset)
{
    return offset != LAYOUT_NONE;
}

static inline uint64_t least(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

static inline uint64_t most(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

/* Exactly `len` bytes of a structure, which begins at a multiple of 8; or false. */
bool walk_read_exactly(struct memory_batch *memory, uint64_t address, void *out, size_t len);

/* Of a deep stack the leaf-most and the root-most frames are kept. Where number `n` of it goes, leaf first; and, when
 * all `n` are there, puts them in order and counts them. */
enum { WALK_KEEP_LEAF = RUNTIME_FRAMES_MAX / 4 * 3, WALK_KEEP_ROOT = RUNTIME_FRAMES_MAX - WALK_KEEP_LEAF };
struct runtime_frame *walk_place(struct runtime_stack *out, uint32_t n);
void walk_keep(struct runtime_stack *out, uint32_t n);

/* Ends a walk whose frames are in `out`, with its marks: none are left of one that failed; the outermost of a part
 * calls what is not known; of a whole stack the leaf is where the garbage collector runs. */
struct walk_ending {
    enum runtime_end end;
    uint32_t batches;
    bool is_part, short_lived;
};
void walk_end(const struct walk_ending *ending, struct runtime_stack *out);

#endif
