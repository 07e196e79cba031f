/* How far the leaf's frame is made on x86-64. Code begins with push rbp; sub rsp, or sub rsp; mov [rsp + n], rbp, and
 * ends with add rsp; pop rbp; a question whether there is a safepoint; ret. */
#include "runtime/java/private.h"

enum {
    BEFORE = 8,
    AFTER = 24, /* bytes of code that are looked at */
    PUSH_RBP = 0x55,
    POP_RBP = 0x5d,
    RET = 0xc3,
};

const bool java_return_is_in_register = false;

static bool begins(const unsigned char *code, const char *bytes, size_t len)
{
    return memcmp(code, bytes, len) == 0;
}

/* Has the frame been taken down, but for the return? Before returning, compiled code asks whether there is a
 * safepoint: by a load from a page (8), from the thread's page (11), or by comparing the stack pointer (17). */
static bool is_leaving(const unsigned char *at)
{
    enum { COMPARE = 7, ABOVE = 6, LOAD = 7, TEST = 3, TEST_OLD = 6 };
    if (begins(at, "\x49\x3b\xa7", 3) && begins(at + COMPARE, "\x0f\x87", 2)) { /* cmp rsp, [r15 + n]; ja */
        at += COMPARE;
    }
    if (begins(at, "\x0f\x87", 2)) {
        at += ABOVE;
    } else if (begins(at, "\x4d\x8b\x97", 3) &&
               begins(at + LOAD, "\x41\x85\x02", 3)) { /* mov r10, [r15 + n]; test [r10], eax */
        at += LOAD + TEST;
    } else if (begins(at, "\x41\x85\x02", 3)) {
        at += TEST;
    } else if (begins(at, "\x85\x05", 2)) { /* test eax, [rip + n] */
        at += TEST_OLD;
    }
    return *at == RET;
}

enum java_state java_state_at(const struct java *j, const struct java_place *place)
{
    unsigned char code[BEFORE + AFTER] = {0};
    const unsigned char *at = code + BEFORE;
    if (!java_read(j, place->address - BEFORE, code, sizeof code)) {
        return JAVA_WHOLE; /* a leaf whose code is gone: what most leaves are */
    }
    bool entering = place->code_offset < place->frame_complete || (place->code_offset < BEFORE && *at == PUSH_RBP);
    if (at[-1] == PUSH_RBP || (at[-4] == PUSH_RBP && begins(at - 3, "\x48\x8b\xec", 3))) {
        return entering ? JAVA_PUSHED : JAVA_WHOLE;
    }
    if (entering) {
        bool subtracted = begins(at - 7, "\x48\x81\xec", 3) || begins(at - 4, "\x48\x83\xec", 3);
        bool saves = begins(at, "\x48\x89\x6c\x24", 4) || begins(at, "\x48\x89\xac\x24", 4); /* mov [rsp + n], rbp */
        return !subtracted ? JAVA_BARE : saves ? JAVA_SUBTRACTED : JAVA_WHOLE;
    }
    return *at == POP_RBP ? JAVA_PUSHED : is_leaving(at) ? JAVA_BARE : JAVA_WHOLE;
}
