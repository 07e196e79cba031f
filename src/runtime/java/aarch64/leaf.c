/* How far the leaf's frame is made on AArch64. A small frame is sub sp; stp x29, x30, [sp, n], and ldp; add sp at its
 * end; a large one, a stub's and a native method's stp x29, x30, [sp, -16]!; (mov x29, sp); sub sp, and
 * ldp x29, x30, [sp], 16 at its end. Before ret compiled code asks whether there is a safepoint. */
#include "runtime/java/private.h"

enum {
    BEFORE = 256, /* instructions that are looked at: of a stub, back to where it begins … */
    NEAR = 12,    /* … of compiled code, to where its frame was made */
    AFTER = 8,
};

const bool java_return_is_in_register = true;

static bool is(uint32_t instruction, uint32_t mask, uint32_t value)
{
    return (instruction & mask) == value;
}

static bool pushes(uint32_t i) /* stp x29, x30, [sp, #-16]! */
{
    return i == 0xa9bf7bfd;
}

static bool pops(uint32_t i) /* ldp x29, x30, [sp], #16 */
{
    return i == 0xa8c17bfd;
}

static bool saves(uint32_t i) /* stp x29, x30, [sp, #n] */
{
    return is(i, 0xffc07fff, 0xa9007bfd);
}

static bool restores(uint32_t i) /* ldp x29, x30, [sp, #n] */
{
    return is(i, 0xffc07fff, 0xa9407bfd);
}

static bool subtracts(uint32_t i) /* sub sp, sp, #n; sub sp, sp, xn */
{
    return is(i, 0xff8003ff, 0xd10003ff) || is(i, 0xffe0ffff, 0xcb2063ff);
}

static bool adds(uint32_t i) /* add sp, sp, #n; add sp, sp, xn */
{
    return is(i, 0xff8003ff, 0x910003ff) || is(i, 0xffe0ffff, 0x8b2063ff);
}

static bool returns(uint32_t i)
{
    return i == 0xd65f03c0;
}

/* What asks for a safepoint: adrp x8; ldr x8, [x28, #n]; ldr wzr, [x8]; cmp sp, x8; b.cond; hints. */
static bool asks(uint32_t i)
{
    return is(i, 0x9f00001f, 0x90000008) || is(i, 0xffc003e0, 0xf9400380) || is(i, 0xffc003ff, 0xb940011f) ||
           i == 0xeb2863ff || is(i, 0xff000010, 0x54000000) || is(i, 0xfffff01f, 0xd503201f);
}

static bool is_leaving(const uint32_t *at)
{
    for (int i = 0; i < AFTER; i++) {
        if (!asks(at[i])) {
            return returns(at[i]);
        }
    }
    return false;
}

/* From here back to where the frame was begun, at most `count` instructions. */
static enum java_state entered(const uint32_t *at, uint32_t count, enum java_state unknown)
{
    bool subtracted = false, points = false; /* since then: sub sp; mov x29, sp */
    for (uint32_t i = 1; i <= count; i++) {
        uint32_t before = at[-(int32_t)i];
        if (pushes(before)) {
            return subtracted || points ? JAVA_WHOLE : JAVA_PUSHED;
        }
        if (saves(before)) {
            return JAVA_WHOLE;
        }
        if (returns(before)) {
            return JAVA_BARE; /* another's end */
        }
        if (i == 1 && subtracts(before) && saves(*at)) {
            return JAVA_SUBTRACTED;
        }
        subtracted |= subtracts(before);
        points |= before == 0x910003fd;
    }
    return unknown;
}

enum java_state java_state_at(const struct java *j, const struct java_place *place)
{
    uint32_t code[BEFORE + AFTER] = {0}, size = sizeof code[0];
    const uint32_t *at = code + BEFORE;
    bool is_stub = place->frame_bytes == 0;
    uint32_t before = place->code_offset / size;
    before = before > (is_stub ? BEFORE : NEAR) ? (is_stub ? BEFORE : NEAR) : before;
    if (!java_read(j, place->address - before * size, code + BEFORE - before, (before + AFTER) * size)) {
        return JAVA_WHOLE; /* a leaf whose code is gone: what most leaves are */
    }
    if (pops(*at)) {
        return JAVA_PUSHED;
    }
    if (adds(*at) && restores(at[-1])) {
        return JAVA_SUBTRACTED;
    }
    if (is_leaving(at)) {
        return JAVA_BARE;
    }
    if (place->code_offset < place->frame_complete) {
        return entered(at, before, JAVA_BARE);
    }
    return is_stub ? entered(at, before, JAVA_WHOLE) : JAVA_WHOLE;
}
