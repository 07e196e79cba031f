#include "runtime/common/walk.h"

bool walk_read_exactly(struct memory_batch *memory, uint64_t address, void *out, size_t len)
{
    struct memory_piece piece = {address, out, (uint32_t)len, 0};
    return plausible(address) && address % 8 == 0 && memory_batch_read(memory, &piece, 1, NULL) && piece.got == len;
}

struct runtime_frame *walk_place(struct runtime_stack *out, uint32_t n)
{
    return &out->frame[n < WALK_KEEP_LEAF ? n : WALK_KEEP_LEAF + (n - WALK_KEEP_LEAF) % WALK_KEEP_ROOT];
}

static void reverse(struct runtime_frame *frames, uint32_t count)
{
    for (uint32_t i = 0; i < count / 2; i++) {
        struct runtime_frame kept = frames[i];
        frames[i] = frames[count - 1 - i];
        frames[count - 1 - i] = kept;
    }
}

/* The root-most part was written round and round. */
void walk_keep(struct runtime_stack *out, uint32_t n)
{
    out->count = (uint32_t)least(n, RUNTIME_FRAMES_MAX);
    if (n > RUNTIME_FRAMES_MAX) {
        uint32_t first = (n - WALK_KEEP_LEAF) % WALK_KEEP_ROOT;
        struct runtime_frame *ring = &out->frame[WALK_KEEP_LEAF];
        reverse(ring, first);
        reverse(ring + first, WALK_KEEP_ROOT - first);
        reverse(ring, WALK_KEEP_ROOT);
        out->frame[WALK_KEEP_LEAF - 1].flags |= RUNTIME_FRAME_CUT;
    }
}

void walk_end(const struct walk_ending *ending, struct runtime_stack *out)
{
    uint8_t collects = RUNTIME_IN_GC | RUNTIME_HOLDS_LOCK;
    out->end = (uint8_t)ending->end;
    out->marks |= ending->short_lived ? RUNTIME_SHORT_LIVED : 0;
    out->count = ending->end == RUNTIME_COMPLETE ? out->count : 0;
    out->reads = (uint8_t)ending->batches;
    if (out->count > 0 && ending->is_part) {
        out->frame[0].flags |= RUNTIME_FRAME_PART;
    } else if (out->count > 0 && (out->marks & collects) == collects) {
        out->frame[0].flags |= RUNTIME_FRAME_COLLECTS;
    }
}
