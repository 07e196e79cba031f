/* How to go on from a frame of the JVM to its caller, and what is remembered of addresses. Compiled code and most
 * stubs have a frame of a known size; the leaf may be entering or leaving it, which its instructions tell. The
 * interpreter keeps its frames by frame pointer, with what its caller's stack pointer was beside it. */
#include "runtime/java/private.h"

enum {
    WORD = 8,
    PLACES_KEPT = 1 << 14,
    SCOPES_KEPT = 1 << 16,
    ASK_AGAIN = 1 << 8, /* stacks later */
};

static void by_size(uint32_t bytes, uint32_t saved_fp, struct runtime_caller *out)
{
    *out = (struct runtime_caller){RUNTIME_RULE_FRAME_SIZE, bytes, saved_fp};
}

void java_as_called(uint32_t bytes, struct runtime_caller *out)
{
    enum runtime_rule rule = java_return_is_in_register ? RUNTIME_RULE_LINK_REGISTER : RUNTIME_RULE_FRAME_SIZE;
    uint32_t above = !java_return_is_in_register && bytes > 0 ? bytes - WORD : bytes;
    *out = (struct runtime_caller){rule, above, 0};
}

void java_caller(struct java *j, const struct java_place *place, uint64_t fp, struct runtime_caller *out)
{
    enum java_state state = !place->exact               ? JAVA_WHOLE
                            : place->kind == JAVA_CHUNK ? JAVA_BARE
                                                        : java_state_at(j, place);
    switch (state) {
    case JAVA_BARE: java_as_called(0, out); return;
    case JAVA_PUSHED: by_size(WORD, 2 * WORD, out); return;
    case JAVA_SUBTRACTED: java_as_called(place->frame_bytes, out); return;
    case JAVA_WHOLE: break;
    }
    if (place->frame_bytes < 2 * WORD || place->kind == JAVA_ENTRY) {
        /* it was pushed first, so that the caller's SP is beside */
        *out = (struct runtime_caller){RUNTIME_RULE_FRAME_POINTER, fp + 2 * WORD, 0};
    } else {
        by_size(place->frame_bytes - WORD, 2 * WORD, out);
    }
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
                               .tier = (uint8_t)blob.tier,
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
        java_find_scopes(j, &blob, exact ? ip + 1 : ip); /* a place stands at the end of its instructions */
        out->scope_count = (uint32_t)j->scopes.len - out->scopes;
    }
    return true;
}

/* Its number is no other compiled method's; of what else lies there all is asked. */
static bool is_still_there(const struct java *j, const struct java_place *kept)
{
    uint32_t id;
    return kept->kind == JAVA_COMPILED && has(j->layout.field[JAVA_NM_COMPILE_ID]) &&
           java_read(j, kept->blob + j->layout.field[JAVA_NM_COMPILE_ID], &id, sizeof id) && id == kept->compile_id;
}

const struct java_place *java_place(struct java *j, uint64_t ip, bool exact)
{
    uint64_t key = ip << 1 | exact;
    const struct map_slot *slot = map_find(&j->place_of, key);
    struct java_place *kept = slot != NULL ? &j->places.at[slot->value] : NULL, now;
    if (kept != NULL && j->stacks - kept->asked < ASK_AGAIN) {
        return kept->kind != JAVA_NOT_CODE ? kept : NULL;
    }
    if (kept != NULL && is_still_there(j, kept)) {
        kept->asked = j->stacks;
        return kept;
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
