/* The stack above the end of the stack copy, read after the sample. */
#include "unwind/walk.h"

enum { VERIFIED_BYTES = 64 }; /* of the copy's end */

static bool is_unchanged(const struct unwind_stack *s, uint64_t from, size_t len)
{
    unsigned char now[VERIFIED_BYTES];
    return s->beyond->read(s->beyond->context, s->base + from, now, len, NULL) &&
           memcmp(now, s->copy + from, len) == 0;
}

/* The copy is of the past; what lies above it is read now. If the thread had returned that far in
 * the meantime, the copy's end would hardly be the same, nor its outermost return address. (Stale
 * bytes of a stack that was left altogether are; there the steps' own checks have to do.) */
static bool is_verified(struct walk *w)
{
    const struct unwind_stack *s = w->stack;
    size_t len = s->len < VERIFIED_BYTES ? s->len : VERIFIED_BYTES;
    if (!w->verified) {
        w->verified = true;
        w->differs = (len > 0 && !is_unchanged(s, s->len - len, len)) ||
                     (w->last_ra != 0 && !is_unchanged(s, w->last_ra - s->base, WORD));
    }
    return !w->differs;
}

static bool load_chunk(struct walk *w, uint64_t start)
{
    const struct unwind_stack *s = w->stack;
    if (w->chunk_address == start) {
        return true;
    }
    w->chunk_address = 1;
    if (!s->beyond->read(s->beyond->context, start, w->chunk, CHUNK_BYTES, NULL)) {
        return false;
    }
    w->chunk_address = start;
    return true;
}

bool stack_load_beyond(struct walk *w, uint64_t address, uint64_t *out)
{
    const struct unwind_stack *s = w->stack;
    uint64_t start = address - address % CHUNK_BYTES;
    w->why = STACK_BAD_MEMORY;
    if ((address < s->base - BELOW_SP && !w->switched) || address - start > CHUNK_BYTES - WORD) {
        return false;
    }
    if (s->beyond == NULL || !is_verified(w)) {
        w->why = STACK_TRUNCATED;
        return false;
    }
    if (!load_chunk(w, start)) {
        return false;
    }
    w->continued = true;
    memcpy(out, w->chunk + (address - start), WORD);
    return true;
}
