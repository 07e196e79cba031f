/* Each kind is an array by number, and a table of numbers that finds what is in it: that takes some 20 bytes for an
 * address, where a map from addresses to numbers takes twice that. The keys of both kinds of locations are in one
 * array, so that all locations are numbered together. */
#include "runtime/go/pprof_ids.h"

#include <stdlib.h>

enum {
    TEXTS_MAX_BYTES = 16 << 20,
    IDS_MAX = 1 << 22, /* of each kind: 60 MB of texts, 12 of locations; a large program's profile has 20,000 */
};

static uint64_t names_hash(struct go_function_names names)
{
    return hash_u64((uint64_t)names.name << 32 | names.file);
}

static uint64_t function_hash(const void *owner, uint32_t id)
{
    return names_hash(((const struct go_pprof_ids *)owner)->functions.at[id]);
}

static bool function_same(const void *owner, uint32_t id, const void *key)
{
    const struct go_function_names *own = &((const struct go_pprof_ids *)owner)->functions.at[id], *other = key;
    return own->name == other->name && own->file == other->file;
}

static uint64_t key_hash(const void *owner, uint32_t id)
{
    return hash_u64(((const struct go_pprof_ids *)owner)->keys.at[id]);
}

static bool key_same(const void *owner, uint32_t id, const void *key)
{
    return ((const struct go_pprof_ids *)owner)->keys.at[id] == *(const uint64_t *)key;
}

static const struct intern_owner function_owner = {function_hash, function_same};
static const struct intern_owner key_owner = {key_hash, key_same};

bool go_ids_init(struct go_pprof_ids *ids)
{
    *ids = (struct go_pprof_ids){0};
    arena_init(&ids->chars, TEXTS_MAX_BYTES);
    struct str *empty = vec_push(&ids->texts);
    if (empty == NULL || vec_push(&ids->functions) == NULL || vec_push(&ids->keys) == NULL) {
        return false;
    }
    *empty = STR("");
    return true;
}

void go_ids_release(struct go_pprof_ids *ids)
{
    arena_release(&ids->chars);
    vec_release(&ids->texts);
    vec_release(&ids->functions);
    vec_release(&ids->keys);
    intern_release(&ids->text_ids);
    intern_release(&ids->function_ids);
    intern_release(&ids->by_address);
    intern_release(&ids->by_name);
}

uint32_t go_ids_text(struct go_pprof_ids *ids, struct str text)
{
    uint64_t hash = str_hash(text);
    uint32_t id = text.len > 0 ? intern_find(&ids->text_ids, &intern_texts, &ids->texts.at, hash, &text) : 0;
    if (id != 0 || text.len == 0 || ids->failed) {
        return id;
    }
    struct str copy = arena_copy(&ids->chars, text);
    struct str *at = copy.ptr != NULL && ids->texts.len < IDS_MAX ? vec_push(&ids->texts) : NULL;
    if (at == NULL) {
        ids->failed = true;
        return 0;
    }
    *at = copy;
    id = (uint32_t)(ids->texts.len - 1);
    ids->failed = !intern_add(&ids->text_ids, &intern_texts, &ids->texts.at, hash, id);
    return id;
}

uint32_t go_ids_function(struct go_pprof_ids *ids, struct go_function_names names, bool *is_new)
{
    uint64_t hash = names_hash(names);
    uint32_t id = intern_find(&ids->function_ids, &function_owner, ids, hash, &names);
    *is_new = false;
    if (id != 0 || ids->failed) {
        return id;
    }
    struct go_function_names *at = ids->functions.len < IDS_MAX ? vec_push(&ids->functions) : NULL;
    if (at == NULL) {
        ids->failed = true;
        return 0;
    }
    *at = names;
    *is_new = true;
    id = (uint32_t)(ids->functions.len - 1);
    ids->failed = !intern_add(&ids->function_ids, &function_owner, ids, hash, id);
    return id;
}

uint32_t go_ids_find(const struct go_pprof_ids *ids, const struct intern *among, uint64_t key)
{
    return intern_find(among, &key_owner, ids, hash_u64(key), &key);
}

uint32_t go_ids_new(struct go_pprof_ids *ids, struct intern *among, uint64_t key)
{
    uint64_t *at = ids->keys.len < IDS_MAX ? vec_push(&ids->keys) : NULL;
    if (at == NULL) {
        ids->failed = true;
        return 0;
    }
    *at = key;
    uint32_t id = (uint32_t)(ids->keys.len - 1);
    ids->failed |= among != NULL && !intern_add(among, &key_owner, ids, hash_u64(key), id);
    return id;
}

size_t go_ids_bytes(const struct go_pprof_ids *ids)
{
    size_t slots = ids->text_ids.cap + ids->function_ids.cap + ids->by_address.cap + ids->by_name.cap;
    return ids->chars.used_bytes + slots * sizeof(uint32_t) + ids->texts.cap * sizeof *ids->texts.at +
           ids->functions.cap * sizeof *ids->functions.at + ids->keys.cap * sizeof *ids->keys.at;
}
