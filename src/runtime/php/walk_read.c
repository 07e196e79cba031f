/* What a walk holds of the target's memory (walk.h): the batch in hand, and frames that were read. */
#include "runtime/php/walk.h"

uint32_t php_stack_ask(struct walk *w, uint64_t address, void *out, uint32_t len)
{
    if (!plausible(address) || len == 0 || w->pieces == WALK_PIECES) {
        return 0;
    }
    w->piece[w->pieces] = (struct memory_piece){address, out, len, 0};
    return ++w->pieces;
}

bool php_stack_read(struct walk *w)
{
    if (w->batches == WALK_BATCHES_MAX) {
        return false;
    }
    w->batches++;
    w->unreadable = !memory_batch_read(w->memory, w->piece, w->pieces, NULL);
    return !w->unreadable;
}

bool php_stack_got(const struct walk *w, uint32_t piece)
{
    return piece != 0 && w->piece[piece - 1].got == w->piece[piece - 1].len;
}

struct walk_lone *php_stack_lone(struct walk *w, unsigned copy, uint64_t address)
{
    for (uint32_t i = 0; i < w->lone_count; i++) {
        if (w->lone[i].address == address && w->lone[i].is_there[copy]) {
            return &w->lone[i];
        }
    }
    return NULL;
}

const unsigned char *php_stack_frame(struct walk *w, unsigned copy, uint64_t address)
{
    const struct walk_window *v = &w->window;
    if (address % 8 != 0) {
        return NULL;
    }
    if (address >= v->low && address < v->limit && v->limit - address >= PHP_FRAME_BYTES && v->is_there[copy]) {
        return v->bytes[copy] + (address - v->low);
    }
    const struct walk_lone *lone = php_stack_lone(w, copy, address);
    return lone != NULL ? lone->bytes[copy] : NULL;
}
