#include "symbol/words.h"

#include <stdlib.h>

#include "base/cursor.h"

enum {
    WORDS_MAX = 255, /* of one name; the last one takes the rest */
};

void words_init(struct words *w, size_t max_bytes)
{
    *w = (struct words){.max_bytes = max_bytes};
    buf_init(&w->text, max_bytes);
    buf_init(&w->names, max_bytes);
}

void words_release(struct words *w)
{
    buf_release(&w->text);
    buf_release(&w->names);
    vec_release(&w->starts);
    intern_release(&w->ids);
}

static void give_back_slack(struct buf *buf)
{
    char *shrunk = buf->len == 0 ? NULL : realloc(buf->ptr, buf->len + 1);
    if (shrunk != NULL) {
        buf->ptr = shrunk;
        buf->cap = buf->len + 1;
    }
}

void words_finish(struct words *w)
{
    intern_release(&w->ids);
    give_back_slack(&w->text);
    give_back_slack(&w->names);
}

size_t words_bytes(const struct words *w)
{
    return w->text.cap + w->names.cap + w->starts.cap * sizeof *w->starts.at +
           w->ids.cap * sizeof *w->ids.slot;
}

static struct str word_at(const struct words *w, uint32_t id)
{
    uint32_t start = w->starts.at[id];
    return str_sub(buf_slice(&w->text), start, w->starts.at[id + 1] - start);
}

static uint64_t hash_of_word(const void *owner, uint32_t id)
{
    return str_hash(word_at(owner, id));
}

static bool same_word(const void *owner, uint32_t id, const void *key)
{
    return str_eq(word_at(owner, id), *(const struct str *)key);
}

static const struct intern_owner word_ops = {hash_of_word, same_word};

static bool push_start(struct words *w)
{
    uint32_t *start = vec_push(&w->starts);
    if (start != NULL) {
        *start = (uint32_t)w->text.len;
    }
    return start != NULL;
}

/* The number of a word, from 1; 0 when there is no room. */
static uint32_t id_of(struct words *w, struct str word)
{
    uint64_t hash = str_hash(word);
    uint32_t id = intern_find(&w->ids, &word_ops, w, hash, &word);
    if (id != 0) {
        return id;
    }
    while (w->starts.len < 2) { /* the empty word 0 */
        if (!push_start(w)) {
            return 0;
        }
    }
    id = (uint32_t)w->starts.len - 1;
    buf_str(&w->text, word);
    return !w->text.failed && push_start(w) && intern_add(&w->ids, &word_ops, w, hash, id) ? id : 0;
}

static bool is_separator(char byte)
{
    return byte == '_' || byte == ' ';
}

/* Separators and what follows up to the next: they begin a word rather than end it, so that the
 * words within a name are those at its end. */
static size_t word_len(struct str rest)
{
    size_t len = 0;
    while (len < rest.len && is_separator(rest.ptr[len])) {
        len++;
    }
    while (len < rest.len && !is_separator(rest.ptr[len])) {
        len++;
    }
    return len;
}

static void add_number(struct buf *out, uint32_t number)
{
    for (; number >= 0x80; number >>= 7) {
        buf_byte(out, (char)(0x80 | (number & 0x7f)));
    }
    buf_byte(out, (char)number);
}

bool words_add(struct words *w, struct str name, uint32_t *place)
{
    size_t start = w->names.len;
    unsigned count = 0;
    buf_byte(&w->names, 0);
    while (name.len > 0) {
        size_t len = count == WORDS_MAX - 1 ? name.len : word_len(name);
        uint32_t id = id_of(w, str_sub(name, 0, len));
        if (id == 0) {
            return false;
        }
        add_number(&w->names, id);
        name = str_sub(name, len, name.len);
        count++;
    }
    if (w->names.failed || start > UINT32_MAX || words_bytes(w) > w->max_bytes) {
        return false;
    }
    w->names.ptr[start] = (char)count;
    *place = (uint32_t)start;
    return true;
}

void words_get(const struct words *w, uint32_t place, struct buf *out)
{
    struct cursor c = cursor_of(w->names.ptr + place, w->names.len - place);
    for (unsigned count = cursor_u8(&c); count > 0; count--) {
        buf_str(out, word_at(w, (uint32_t)cursor_uleb(&c)));
    }
}
