/* Is the newest context filled in (walk.h)? Its index is raised first, so that a thread that stands where a sub is
 * called may have there what an earlier call has left. What is sure is the interpreter's pad: the variables of the sub
 * that runs, which is changed last. */
#include "runtime/perl/walk.h"

enum { PADS_ARRAY = 8, DEPTH_MAX = 1 << 24 };

static bool word_at(struct walk *w, uint64_t address, uint64_t *out)
{
    w->pieces = 0;
    uint32_t piece = calls_ask(w, address, out, 8);
    return piece != 0 && calls_read(w) && calls_got(w, piece);
}

/* The pad of a sub's innermost call; 0: not known. */
static uint64_t pad_of(struct walk *w, uint64_t cv)
{
    unsigned char body[CV_BYTES];
    uint64_t at = *calls_body(w, cv), array, pad;
    if (at == 0 && !word_at(w, cv, &at)) {
        return 0;
    }
    w->pieces = 0;
    uint32_t piece = calls_ask(w, at + CV_AT, body, sizeof body);
    if (piece == 0 || !calls_read(w) || !calls_got(w, piece)) {
        return 0;
    }
    uint32_t depth = load_u32(body + (CV_DEPTH - CV_AT));
    return depth < DEPTH_MAX && word_at(w, load_u64(body + (CV_PADS - CV_AT)) + PADS_ARRAY, &array) &&
                   word_at(w, array + 8 * (uint64_t)depth, &pad)
               ? pad
               : 0;
}

bool calls_is_unfilled(struct walk *w, const unsigned char *context)
{
    const struct runtime_registers *r = w->registers;
    if (w->twice || r == NULL || r->ip < w->perl->entersub || r->ip >= w->perl->entersub_limit ||
        (context[CONTEXT_TYPE] & CONTEXT_TYPE_MASK) != TYPE_SUB) {
        return false;
    }
    if (load_u64(context + w->layout->prevcomppad) == w->words[0].pad) {
        return true; /* it is new, or what was there */
    }
    return pad_of(w, load_u64(context + w->layout->cv)) != w->words[0].pad;
}
