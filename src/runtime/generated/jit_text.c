/* Texts of generated code (a name, and lines where there are some), each kept once: one growing piece of memory with
 * a hash table over it. A text is named by its place there; what no code uses any more is reclaimed when
 * room is needed. */
#include "runtime/generated/jit_text.h"

#include <stdlib.h>

/* A text as it lies in memory: a head of two bytes, the name, and when there are lines their number
 * of bytes (four) and they. Texts lie one behind the other, so they can be walked over. */
enum {
    HEAD_MARK = 1 << 15,
    HEAD_LINES = 1 << 14,
    HEAD_NAME = HEAD_LINES - 1,
    HEAD_BYTES = 2,
    FIRST_PLACE = 1, /* 0 is none */
    SMALLEST_CAP = 1024,
};

struct text {
    struct str name, lines;
};

void jit_texts_release(struct jit_texts *t)
{
    free(t->ptr);
    intern_release(&t->ids);
    vec_release(&t->moves);
    *t = (struct jit_texts){0};
}

size_t jit_texts_bytes(const struct jit_texts *t)
{
    return t->cap + t->ids.cap * sizeof *t->ids.slot + t->moves.cap * sizeof *t->moves.at;
}

static uint16_t head_of(const struct jit_texts *t, uint32_t place)
{
    uint16_t head;
    memcpy(&head, t->ptr + place, sizeof head);
    return head;
}

static void set_head(struct jit_texts *t, size_t place, uint16_t head)
{
    memcpy(t->ptr + place, &head, sizeof head);
}

struct str jit_text_name(const struct jit_texts *t, uint32_t place)
{
    return (struct str){t->ptr + place + HEAD_BYTES, head_of(t, place) & HEAD_NAME};
}

struct str jit_text_lines(const struct jit_texts *t, uint32_t place)
{
    struct str name = jit_text_name(t, place);
    uint32_t len;
    if ((head_of(t, place) & HEAD_LINES) == 0) {
        return STR("");
    }
    memcpy(&len, name.ptr + name.len, sizeof len);
    return (struct str){name.ptr + name.len + sizeof len, len};
}

static struct text text_at(const struct jit_texts *t, uint32_t place)
{
    return (struct text){jit_text_name(t, place), jit_text_lines(t, place)};
}

static size_t bytes_of(const struct text *text)
{
    return HEAD_BYTES + text->name.len +
           (text->lines.len > 0 ? sizeof(uint32_t) + text->lines.len : 0);
}

static uint64_t hash_of(const struct text *text)
{
    return str_hash(text->name) ^ (text->lines.len > 0 ? str_hash(text->lines) : 0);
}

static uint64_t hash_at(const void *owner, uint32_t place)
{
    struct text text = text_at(owner, place);
    return hash_of(&text);
}

static bool same_text(const void *owner, uint32_t place, const void *key)
{
    struct text text = text_at(owner, place);
    const struct text *wanted = key;
    return str_eq(text.name, wanted->name) && str_eq(text.lines, wanted->lines);
}

static const struct intern_owner text_ops = {hash_at, same_text};

/* By a quarter when there is room for that, else by what is needed. */
static bool grow(struct jit_texts *t, size_t needed, size_t room)
{
    size_t wanted = t->cap + t->cap / 4;
    wanted = wanted < SMALLEST_CAP ? SMALLEST_CAP : wanted;
    wanted = wanted < t->cap + room ? wanted : t->cap + room;
    wanted = wanted < needed ? needed : wanted;
    char *grown = wanted - t->cap > room || wanted > UINT32_MAX ? NULL : realloc(t->ptr, wanted);
    if (grown == NULL) {
        return false;
    }
    t->ptr = grown;
    t->cap = wanted;
    return true;
}

static bool make_room(struct jit_texts *t, size_t bytes, size_t room)
{
    size_t before = t->cap, table = t->ids.cap * sizeof *t->ids.slot;
    if (t->len == 0) {
        bytes += FIRST_PLACE;
    }
    if (t->len + bytes > t->cap && !grow(t, t->len + bytes, room)) {
        return false;
    }
    /* The table doubles when it is three quarters full. */
    return t->ids.len + 1 <= t->ids.cap / 4 * 3 || table <= room - (t->cap - before);
}

static void append(struct jit_texts *t, const void *ptr, size_t len)
{
    if (len > 0) {
        memcpy(t->ptr + t->len, ptr, len);
        t->len += len;
    }
}

uint32_t jit_text_add(struct jit_texts *t, struct str name, struct str lines, size_t room)
{
    struct text text = {name, lines};
    uint64_t hash = hash_of(&text);
    uint32_t place = intern_find(&t->ids, &text_ops, t, hash, &text), len = (uint32_t)lines.len;
    if (place != 0) {
        return place;
    }
    if (!make_room(t, bytes_of(&text), room)) {
        return 0;
    }
    t->len = t->len == 0 ? FIRST_PLACE : t->len;
    place = (uint32_t)t->len;
    set_head(t, place, (uint16_t)(name.len | (len > 0 ? HEAD_LINES : 0)));
    t->len += HEAD_BYTES;
    append(t, name.ptr, name.len);
    append(t, &len, len > 0 ? sizeof len : 0);
    append(t, lines.ptr, lines.len);
    if (!intern_add(&t->ids, &text_ops, t, hash, place)) {
        t->len = place;
        return 0;
    }
    return place;
}

void jit_text_mark(struct jit_texts *t, uint32_t place)
{
    set_head(t, place, head_of(t, place) | HEAD_MARK);
}

/* The place behind this one. */
static uint32_t next_place(const struct jit_texts *t, uint32_t place)
{
    struct text text = text_at(t, place);
    return place + (uint32_t)bytes_of(&text);
}

static bool list_moves(struct jit_texts *t)
{
    uint32_t to = FIRST_PLACE;
    for (uint32_t place = FIRST_PLACE; place < t->len; place = next_place(t, place)) {
        if ((head_of(t, place) & HEAD_MARK) != 0) {
            struct jit_text_move *move = vec_push(&t->moves);
            if (move == NULL) {
                return false;
            }
            *move = (struct jit_text_move){place, to};
            to += next_place(t, place) - place;
        }
    }
    return true;
}

static void clear_marks(struct jit_texts *t)
{
    for (uint32_t place = FIRST_PLACE; place < t->len; place = next_place(t, place)) {
        set_head(t, place, head_of(t, place) & ~HEAD_MARK & UINT16_MAX);
    }
}

/* What a name that comes next wants is kept; the rest is given back, for others to use. */
static void give_back_slack(struct jit_texts *t)
{
    size_t wanted = t->len + t->len / 8 + SMALLEST_CAP;
    char *shrunk = wanted < t->cap ? realloc(t->ptr, wanted) : NULL;
    if (shrunk != NULL) {
        t->ptr = shrunk;
        t->cap = wanted;
    }
}

bool jit_texts_sweep(struct jit_texts *t)
{
    if (!list_moves(t)) {
        vec_release(&t->moves);
        clear_marks(t);
        return false;
    }
    size_t len = FIRST_PLACE;
    vec_each(&t->moves, move) {
        size_t bytes = next_place(t, move->from) - move->from;
        memmove(t->ptr + move->to, t->ptr + move->from, bytes);
        len = move->to + bytes;
    }
    t->len = t->len == 0 ? 0 : len;
    clear_marks(t);
    give_back_slack(t);
    intern_clear(&t->ids); /* its slots suffice: there are not more texts than before */
    for (uint32_t place = FIRST_PLACE; place < t->len; place = next_place(t, place)) {
        (void)intern_add(&t->ids, &text_ops, t, hash_at(t, place), place);
    }
    return true;
}

uint32_t jit_text_moved(const struct jit_texts *t, uint32_t place)
{
    size_t low = 0, high = t->moves.len;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (t->moves.at[middle].from < place) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return t->moves.at[low].to;
}

void jit_texts_settle(struct jit_texts *t)
{
    vec_release(&t->moves);
}
