/* Keeps DWARF's answers: an answer is a run of lines, and a line names its texts by number, each text once. Only an
 * addition forgets, and then everything at once, so a lookup's texts are valid until the next addition. An answer that
 * finds no room is taken back whole. */
#include "symbol/kept_lines.h"


void kept_lines_init(struct kept_lines *k, size_t max_bytes)
{
    *k = (struct kept_lines){.max_bytes = max_bytes};
    arena_init(&k->arena, max_bytes);
}

void kept_lines_release(struct kept_lines *k)
{
    vec_release(&k->texts);
    intern_release(&k->text_ids);
    arena_release(&k->arena);
    vec_release(&k->lines);
    vec_release(&k->answers);
    map_release(&k->ids);
}

size_t kept_lines_bytes(const struct kept_lines *k)
{
    return k->texts.cap * sizeof *k->texts.at + k->text_ids.cap * sizeof *k->text_ids.slot +
           k->arena.used_bytes + k->lines.cap * sizeof *k->lines.at +
           k->answers.cap * sizeof *k->answers.at + k->ids.cap * sizeof *k->ids.slot;
}

static uint64_t key_of(uint64_t image, uint64_t address)
{
    return hash_u64(image * 0x9e3779b97f4a7c15u ^ address);
}

static const struct kept_answer *find(const struct kept_lines *k, uint64_t image, uint64_t address)
{
    for (struct map_slot *slot = map_find(&k->ids, key_of(image, address)); slot != NULL;
         slot = map_next(&k->ids, slot)) {
        const struct kept_answer *answer = &k->answers.at[slot->value];
        if (answer->image == image && answer->address == address) {
            return answer;
        }
    }
    return NULL;
}

bool kept_lines_find(const struct kept_lines *k, uint64_t image, uint64_t address,
                     struct source_line out[static PROFILE_INLINES_MAX], size_t *count)
{
    const struct kept_answer *answer = find(k, image, address);
    if (answer == NULL) {
        return false;
    }
    for (uint32_t i = 0; i < answer->count; i++) {
        const struct kept_line *l = &k->lines.at[answer->first + i];
        out[i] = (struct source_line){.name = k->texts.at[l->name],
                                      .system_name = k->texts.at[l->system_name],
                                      .file = k->texts.at[l->file],
                                      .line = l->line};
    }
    *count = answer->count;
    return true;
}

/* The text's number; 0 and *fits false when there is no room. */
static uint32_t keep_text(struct kept_lines *k, struct str text, bool *fits)
{
    uint64_t hash = str_hash(text);
    uint32_t id = text.len == 0 ? 0 : intern_find(&k->text_ids, &intern_texts, &k->texts.at, hash, &text);
    if (text.len == 0 || id != 0) {
        return id;
    }
    struct str copy = arena_copy(&k->arena, text);
    struct str *added = copy.ptr == NULL ? NULL : vec_push(&k->texts);
    if (added != NULL) {
        *added = copy;
        id = (uint32_t)(k->texts.len - 1);
        *fits &= intern_add(&k->text_ids, &intern_texts, &k->texts.at, hash, id);
    }
    *fits &= added != NULL;
    return id;
}

static void forget_all(struct kept_lines *k)
{
    vec_clear(&k->texts);
    intern_clear(&k->text_ids);
    arena_clear(&k->arena);
    vec_clear(&k->lines);
    vec_clear(&k->answers);
    map_clear(&k->ids);
}

/* Text 0. */
static bool has_empty_text(struct kept_lines *k)
{
    struct str *empty = k->texts.len > 0 ? k->texts.at : vec_push(&k->texts);
    if (empty != NULL) {
        *empty = STR("");
    }
    return empty != NULL;
}

void kept_lines_add(struct kept_lines *k, uint64_t image, uint64_t address,
                    const struct source_line *lines, size_t count)
{
    if (kept_lines_bytes(k) > k->max_bytes) {
        forget_all(k);
    }
    bool fits = has_empty_text(k);
    struct kept_answer answer = {image, address, (uint32_t)k->lines.len, (uint32_t)count};
    for (size_t i = 0; fits && i < count; i++) {
        struct kept_line line = {.name = keep_text(k, lines[i].name, &fits),
                                 .system_name = keep_text(k, lines[i].system_name, &fits),
                                 .file = keep_text(k, lines[i].file, &fits),
                                 .line = lines[i].line};
        struct kept_line *added = vec_push(&k->lines);
        fits &= added != NULL;
        if (added != NULL) {
            *added = line;
        }
    }
    struct kept_answer *added = fits ? vec_push(&k->answers) : NULL;
    if (added == NULL || !map_add(&k->ids, key_of(image, address), k->answers.len - 1)) {
        k->answers.len -= added != NULL;
        k->lines.len = answer.first;
        return;
    }
    *added = answer;
}
