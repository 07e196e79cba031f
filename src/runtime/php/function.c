/* What a function's first bytes say of it. */
#include "runtime/php/private.h"

enum {
    COUNT_MAX = 1 << 24,
    FUNCTION_FLAGS = 4, FLAG_IMMUTABLE = 1 << 7,
};

static uint64_t fingerprint(const struct php_function *f, const unsigned char *bytes)
{
    uint64_t hash = mix_u64(f->kind, f->name);
    hash = mix_u64(hash, f->scope);
    hash = mix_u64(hash, f->filename);
    hash = mix_u64(hash, f->opcodes);
    hash = mix_u64(hash, (uint64_t)f->first_line << 32 | f->count);
    /* of an internal function where its arguments are told of and what runs it */
    hash = f->kind == PHP_INTERNAL ? mix_u64(hash, load_u64(bytes + 40)) : hash;
    hash &= ~PHP_NAMELESS;
    return hash != 0 ? hash : 1;
}

static enum php_nameless nameless_of(const struct php_layout *l, const struct php_function *f,
                                     const unsigned char *bytes)
{
    uint32_t flags = load_u32(bytes + FUNCTION_FLAGS);
    bool is_closure = (flags >> l->closure_bit & 1) != 0 && (flags >> l->named_bit & 1) == 0;
    bool fits = f->first_line < NAMELESS_LINES_MAX && ((f->filename >> 3 | f->scope >> 3) & ~NAMELESS_ADDRESS) == 0;
    if (f->kind != PHP_USER || !fits) {
        return NAMELESS_NOT;
    }
    return f->name != 0 ? (is_closure ? NAMELESS_CLOSURE : NAMELESS_NOT)
           : bytes[FUNCTION_KIND] == PHP_EVAL ? NAMELESS_EVAL
                                              : NAMELESS_FILE;
}

struct php_function php_function_of(const struct php_layout *l, const unsigned char bytes[PHP_FUNCTION_BYTES])
{
    struct php_function f = {.kind = bytes[FUNCTION_KIND] == PHP_EVAL ? PHP_USER : bytes[FUNCTION_KIND]};
    f.name = load_u64(bytes + FUNCTION_NAME);
    f.scope = load_u64(bytes + FUNCTION_SCOPE);
    if (f.kind == PHP_USER) {
        f.filename = load_u64(bytes + l->filename);
        f.opcodes = load_u64(bytes + l->opcodes);
        f.first_line = load_u32(bytes + l->line);
        f.count = load_u32(bytes + l->last);
    }
    bool good = (f.kind == PHP_USER && plausible(f.opcodes) && plausible(f.filename) && f.count < COUNT_MAX) ||
                f.kind == PHP_INTERNAL;
    if (!good || (f.name != 0 && (!plausible(f.name) || f.name % 8 != 0))) {
        f.kind = 0;
        return f;
    }
    f.lasts = f.kind == PHP_INTERNAL || (load_u32(bytes + FUNCTION_FLAGS) & FLAG_IMMUTABLE) != 0;
    f.check = fingerprint(&f, bytes);
    f.nameless = nameless_of(l, &f, bytes);
    return f;
}

uint64_t php_text_check(uint64_t len, const char *text)
{
    enum { BITS = NAMELESS_KIND_AT - NAMELESS_ADDRESS_BITS };
    uint64_t hash = mix_u64(len, str_hash((struct str){text, (size_t)least(len, PHP_TEXT_BYTES)}));
    return (hash & ((1U << BITS) - 1)) << NAMELESS_ADDRESS_BITS;
}

uint32_t php_position(const struct php_function *f, uint64_t opline)
{
    uint64_t at = opline - f->opcodes;
    return opline >= f->opcodes && at % OPLINE_BYTES == 0 && at / OPLINE_BYTES < f->count
               ? (uint32_t)(at / OPLINE_BYTES)
               : PHP_NO_LINE;
}
