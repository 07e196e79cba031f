/* Ruby's own objects, read one by one when something is named for the first time: strings, arrays, classes, and the
 * numbers that stand for names (ID). Each object's tag is checked before its fields are believed, and what is read
 * of a length that an object tells is bounded. */
#include "runtime/ruby/private.h"

#include "base/utf8.h"

enum {
    LONG_TEXT = 1 << 20,
    SYMBOL_IDS = 16,   /* ids, in ruby_global_symbols */
    IDS_A_BLOCK = 512,
    OPERATORS_BITS = 4, /* of other numbers: what kind of name it is */
    ID_MAX = 1 << 28,
    STRING_HEAD = 40,
    EMBEDDED_OLD_MAX = 24,
};

/* ---- strings and arrays ---- */

/* Bytes may begin anywhere: constants share their ends. */
static bool add_bytes(struct memory_batch *memory, uint64_t address, uint64_t len, struct buf *out)
{
    char bytes[RUNTIME_NAME_MAX];
    struct memory_piece piece = {address, bytes, len < sizeof bytes ? (uint32_t)len : sizeof bytes, 0};
    if (len > LONG_TEXT || (len > 0 && (!plausible(address) || !memory_batch_read(memory, &piece, 1, NULL) ||
                                        piece.got != piece.len))) {
        return false;
    }
    utf8_add(out, (struct str){bytes, piece.len});
    return true;
}

bool ruby_add_string(const struct ruby_layout *l, struct memory_batch *memory, uint64_t string, struct buf *out)
{
    unsigned char head[STRING_HEAD];
    if (!walk_read_exactly(memory, string, head, sizeof head) || !ruby_is(load_u64(head), RUBY_STRING)) {
        return false;
    }
    if ((load_u64(head) & RUBY_EMBEDDED) != 0) { /* of strings, the bit says that it is not */
        return add_bytes(memory, load_u64(head + 24), load_u64(head + 16), out);
    }
    if (l->new_strings) {
        return add_bytes(memory, string + 24, load_u64(head + 16), out);
    }
    uint64_t len = load_u64(head) >> 14 & 0x1f;
    return len < EMBEDDED_OLD_MAX && add_bytes(memory, string + 16, len, out);
}

bool ruby_element(struct memory_batch *memory, uint64_t array, uint64_t index, uint64_t *out)
{
    uint64_t head[5];
    if (!walk_read_exactly(memory, array, head, sizeof head) || !ruby_is(head[0], RUBY_ARRAY)) {
        return false;
    }
    if ((head[0] & RUBY_EMBEDDED) != 0) {
        return index < (head[0] >> 15 & 0x7f) && walk_read_exactly(memory, array + 16 + 8 * index, out, 8);
    }
    return index < head[2] && walk_read_exactly(memory, head[4] + 8 * index, out, 8);
}

bool ruby_id_string(const struct ruby_layout *l, uint64_t symbols, struct memory_batch *memory, uint64_t id,
                    uint64_t *string)
{
    uint64_t serial = id <= l->last_operator ? id : id >> OPERATORS_BITS, ids, block;
    return symbols != 0 && serial < ID_MAX && walk_read_exactly(memory, symbols + SYMBOL_IDS, &ids, 8) &&
           ruby_element(memory, ids, serial / IDS_A_BLOCK, &block) &&
           ruby_element(memory, block, 2 * (serial % IDS_A_BLOCK), string);
}

/* ---- classes ---- */

static bool is_class(uint64_t flags)
{
    return ruby_is(flags, RUBY_CLASS) || ruby_is(flags, RUBY_MODULE);
}

void ruby_add_class(const struct ruby_layout *l, struct memory_batch *memory, uint64_t owner, struct buf *out)
{
    uint64_t flags, path;
    const char *between = "#";
    if (l->class_path == LAYOUT_NONE || !walk_read_exactly(memory, owner, &flags, 8) || !is_class(flags)) {
        return;
    }
    if (ruby_is(flags, RUBY_CLASS) && (flags >> l->singleton_bit & 1) != 0) {
        between = ".";
        if (!walk_read_exactly(memory, owner + l->attached, &owner, 8) ||
            !walk_read_exactly(memory, owner, &flags, 8) || !is_class(flags)) {
            return; /* a method of one object */
        }
    }
    if (walk_read_exactly(memory, owner + l->class_path, &path, 8) && ruby_add_string(l, memory, path, out)) {
        buf_text(out, between);
    }
}
