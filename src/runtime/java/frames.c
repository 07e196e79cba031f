/* How to go on from a frame of the JVM to its caller, and what is remembered of addresses. Compiled code and most
 * stubs have a frame of a known size; the leaf may be entering or leaving it, which its instructions tell. The
 * interpreter keeps its frames by frame pointer, with what its caller's stack pointer was beside it. */
#include "runtime/java/private.h"

enum {
    WORD = 8,
    PLACES_KEPT = 1 << 14,
    SCOPES_KEPT = 1 << 16,
    ASK_AGAIN = 1 << 8, /* stacks later */
    BEFORE = 8,
    AFTER = 24, /* bytes of code that are looked at */
};

/* What has been done of a frame at the leaf's instruction. */
enum frame_state { FRAME_BARE, FRAME_PUSHED, FRAME_SUBTRACTED, FRAME_WHOLE };

static bool begins(const unsigned char *code, const char *bytes, size_t len)
{
    return memcmp(code, bytes, len) == 0;
}

/* Has the frame been taken down, but for the return? Before returning, compiled code asks whether there is a
 * safepoint: by a load from a page (8), from the thread's page (11), or by comparing the stack pointer (17). */
static bool is_leaving(const unsigned char *at)
{
    enum { RET = 0xc3, COMPARE = 7, ABOVE = 6, LOAD = 7, TEST = 3, TEST_OLD = 6 };
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

static enum frame_state state_at(const unsigned char *code, bool entering)
{
    enum { PUSH_RBP = 0x55, POP_RBP = 0x5d };
    const unsigned char *at = code + BEFORE;
    if (at[-1] == PUSH_RBP || (at[-4] == PUSH_RBP && begins(at - 3, "\x48\x8b\xec", 3))) {
        return entering ? FRAME_PUSHED : FRAME_WHOLE;
    }
    if (entering) {
        bool subtracted = begins(at - 7, "\x48\x81\xec", 3) || begins(at - 4, "\x48\x83\xec", 3);
        bool saves = begins(at, "\x48\x89\x6c\x24", 4) || begins(at, "\x48\x89\xac\x24", 4); /* mov [rsp + n], rbp */
        return !subtracted ? FRAME_BARE : saves ? FRAME_SUBTRACTED : FRAME_WHOLE;
    }
    return *at == POP_RBP ? FRAME_PUSHED : is_leaving(at) ? FRAME_BARE : FRAME_WHOLE;
}

static enum frame_state state_of(const struct java *j, const struct java_place *place)
{
    unsigned char code[BEFORE + AFTER] = {0};
    struct memory_piece piece = {place->address - BEFORE, code, sizeof code, 0};
    if (!place->exact || !memory_batch_read(j->memory, &piece, 1, NULL) || piece.got < sizeof code) {
        return FRAME_WHOLE; /* a leaf whose code is gone: what most leaves are */
    }
    return state_at(code, place->code_offset < place->frame_complete ||
                              (place->code_offset < BEFORE && code[BEFORE] == 0x55));
}

static bool by_size(uint32_t bytes, uint32_t saved_fp, struct runtime_caller *out)
{
    *out = (struct runtime_caller){RUNTIME_RULE_FRAME_SIZE, bytes, saved_fp};
    return true;
}

static bool by_frame_pointer(uint64_t sp, struct runtime_caller *out)
{
    *out = (struct runtime_caller){RUNTIME_RULE_FRAME_POINTER, sp, 0};
    return true;
}

bool java_caller(struct java *j, const struct java_place *place, struct runtime_caller *out)
{
    enum frame_state state = place->kind == JAVA_CHUNK && place->exact ? FRAME_BARE : state_of(j, place);
    switch (state) {
    case FRAME_BARE: return by_size(0, 0, out);
    case FRAME_PUSHED: return by_size(WORD, 2 * WORD, out);
    case FRAME_SUBTRACTED: return by_size(place->frame_bytes - WORD, 0, out);
    case FRAME_WHOLE: break;
    }
    if (place->frame_bytes < 2 * WORD || place->kind == JAVA_ENTRY) {
        return by_frame_pointer(0, out);
    }
    return by_size(place->frame_bytes - WORD, 2 * WORD, out);
}

bool java_is_interpreter(const struct java *j, uint64_t address)
{
    return address >= j->interpreter && address < j->interpreter_limit;
}

static void forget_places(struct java *j)
{
    map_clear(&j->place_of);
    vec_clear(&j->places);
    vec_clear(&j->scopes);
}

static bool find(struct java *j, uint64_t ip, bool exact, struct java_place *out)
{
    struct java_blob blob;
    if (!java_find_blob(j, exact ? ip : ip - 1, &blob)) {
        return false;
    }
    *out = (struct java_place){.address = ip,
                               .exact = exact,
                               .kind = (uint8_t)blob.kind,
                               .blob = blob.at,
                               .deopt = blob.deopt,
                               .compile_id = blob.compile_id,
                               .frame_bytes = blob.frame_bytes,
                               .orig_pc = blob.orig_pc,
                               .code_offset = (uint32_t)(ip - blob.code),
                               .frame_complete = blob.frame_complete,
                               .asked = j->stacks,
                               .scopes = (uint32_t)j->scopes.len};
    memcpy(out->name, blob.name, sizeof out->name);
    if (ip == j->call_stub_return) {
        out->kind = JAVA_ENTRY;
        memcpy(out->name, "call_stub", sizeof "call_stub");
    }
    if (out->kind == JAVA_COMPILED) {
        java_find_scopes(j, &blob, ip);
        out->scope_count = (uint32_t)j->scopes.len - out->scopes;
    }
    return true;
}

const struct java_place *java_place(struct java *j, uint64_t ip, bool exact)
{
    uint64_t key = ip << 1 | exact;
    const struct map_slot *slot = map_find(&j->place_of, key);
    struct java_place *kept = slot != NULL ? &j->places.at[slot->value] : NULL, now;
    if (kept != NULL && j->stacks - kept->asked < ASK_AGAIN) {
        return kept->kind != JAVA_NOT_CODE ? kept : NULL;
    }
    if (kept == NULL && (j->places.len >= PLACES_KEPT || j->scopes.len >= SCOPES_KEPT)) {
        forget_places(j);
    }
    size_t scopes = j->scopes.len;
    if (!find(j, ip, exact, &now)) {
        now = (struct java_place){.address = ip, .kind = JAVA_NOT_CODE, .asked = j->stacks};
    }
    if (kept != NULL && kept->blob == now.blob && kept->compile_id == now.compile_id) { /* as it was */
        j->scopes.len = scopes;
        kept->asked = j->stacks;
        return kept->kind != JAVA_NOT_CODE ? kept : NULL;
    }
    if (kept == NULL) {
        kept = vec_push(&j->places);
        if (kept == NULL || !map_put(&j->place_of, key, j->places.len - 1)) {
            return NULL;
        }
    }
    *kept = now;
    return kept->kind != JAVA_NOT_CODE ? kept : NULL;
}
