/* What is remembered: of an address the functions that run there, and of which object that is told (its owner). Whether
 * an owner is still the same is asked again after some hundred stacks; what is not known, sooner. When there is no more
 * room all is forgotten at once, before a question, when nothing of what was told is in use. */
#include "runtime/v8/private.h"

enum {
    WORD = 8,
    PLACES_KEPT = 1 << 15,
    SCOPES_KEPT = 1 << 16,
    OWNERS_KEPT = 1 << 14,
    FUNCTIONS_KEPT = 1 << 15,
    SCRIPTS_KEPT = 1 << 13,
    ASK_UNKNOWN = 1 << 3, /* stacks later */
};

void v8_make_room(struct v8 *v)
{
    if (v->places.len < PLACES_KEPT && v->scopes.len < SCOPES_KEPT && v->owners.len < OWNERS_KEPT &&
        v->functions.len < FUNCTIONS_KEPT && v->scripts.len < SCRIPTS_KEPT &&
        v->texts.used_bytes < V8_TEXTS_MAX / 4 * 3 &&
        v->lines.used_bytes < V8_LINES_MAX / 4 * 3) {
        return;
    }
    map_clear(&v->place_of);
    map_clear(&v->owner_of);
    map_clear(&v->function_of);
    map_clear(&v->script_of);
    map_clear(&v->code_of_page);
    vec_clear(&v->places);
    vec_clear(&v->scopes);
    vec_clear(&v->owners);
    vec_clear(&v->functions);
    v8_forget_scripts(v);
    arena_clear(&v->texts);
    arena_clear(&v->lines);
}

/* Of the bytes by which an object is known; of a process that is gone what it was. */
static uint64_t check_of(const struct v8 *v, uint64_t object, uint64_t before)
{
    unsigned char bytes[V8_HEAD_BYTES];
    struct memory_piece piece = {object, bytes, sizeof bytes, 0};
    uint64_t check = 1;
    if (!memory_batch_read(v->memory, &piece, 1, NULL)) {
        return before;
    }
    for (size_t i = 0; i + WORD <= piece.got; i += WORD) {
        check = mix_u64(check, load_u64(bytes + i));
    }
    return check;
}

bool v8_is_same(struct v8 *v, struct v8_owner *owner)
{
    uint64_t before = owner->check;
    if (v8_is_due(v, owner->asked)) {
        owner->asked = v->stacks;
        owner->check = check_of(v, owner->at, before);
    }
    if (owner->check != before) {
        owner->code = (struct v8_code){0};
    }
    return owner->check == before;
}

uint32_t v8_owner(struct v8 *v, uint64_t object)
{
    const struct map_slot *slot = map_find(&v->owner_of, object);
    struct v8_owner *owner = slot != NULL ? &v->owners.at[slot->value] : vec_push(&v->owners);
    if (owner == NULL || (slot == NULL && !map_put(&v->owner_of, object, v->owners.len - 1))) {
        return 0;
    }
    *owner = (struct v8_owner){.at = object, .check = check_of(v, object, owner->check), .asked = v->stacks};
    return (uint32_t)(owner - v->owners.at) + 1;
}

static bool is_still_there(struct v8 *v, const struct v8_place *place)
{
    bool is_known = place->scope_count > 0 || place->is_interpreter || place->is_regexp;
    if (!is_known || place->owner == 0) {
        return v->stacks - place->asked < ASK_UNKNOWN;
    }
    if (place->is_interpreter && v8_is_due(v, place->asked)) {
        return false; /* its function may not have been there */
    }
    struct v8_owner *owner = &v->owners.at[place->owner - 1];
    (void)v8_is_same(v, owner);
    return owner->check == place->check;
}

struct v8_place *v8_kept_place(struct v8 *v, uint64_t address)
{
    const struct map_slot *slot = map_find(&v->place_of, address);
    struct v8_place *place = slot != NULL ? &v->places.at[slot->value] : NULL;
    return place != NULL && is_still_there(v, place) ? place : NULL;
}

const struct v8_place *v8_keep_place(struct v8 *v, uint64_t address, const struct v8_place *place)
{
    const struct map_slot *slot = map_find(&v->place_of, address);
    struct v8_place *kept = slot != NULL ? &v->places.at[slot->value] : vec_push(&v->places);
    if (kept == NULL || (slot == NULL && !map_put(&v->place_of, address, v->places.len - 1))) {
        return NULL;
    }
    *kept = *place;
    kept->asked = v->stacks;
    kept->check = kept->owner != 0 ? v->owners.at[kept->owner - 1].check : 0;
    return kept;
}
