#include "runtime/common/walk.h"

bool walk_read_exactly(struct memory_batch *memory, uint64_t address, void *out, size_t len)
{
    struct memory_piece piece = {address, out, (uint32_t)len, 0};
    return plausible(address) && address % 8 == 0 && memory_batch_read(memory, &piece, 1, NULL) && piece.got == len;
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
