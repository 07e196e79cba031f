/* Methods: their class's name and their own, their file, and which line an instruction is of. They are read once;
 * whether the address is still the same method's is asked again now and then, for classes can be unloaded and
 * redefined. */
#include "runtime/java/private.h"

#include "profile/language.h"

enum {
    METHODS_KEPT = 1 << 14,
    TEXTS_KEPT = JAVA_TEXTS_MAX / 4 * 3, /* one question's fit into the rest */
    ASK_AGAIN = 1 << 10,                 /* stacks later */
    LINES_MAX = 2048,                    /* bytes of a line table; of a longer one the first lines */
    HAS_LINES = 1,                       /* a flag of ConstMethod */
};

struct symbol {
    char text[JAVA_NAME_MAX];
    size_t len;
};

static bool read_symbol(const struct java *j, uint64_t at, struct symbol *out)
{
    const uint32_t *f = j->layout.field;
    unsigned char head[JAVA_SYMBOL_BYTES];
    uint32_t high = f[JAVA_SYMBOL_LENGTH_HIGH], low = f[JAVA_SYMBOL_LENGTH];
    if ((!has(low) && !has(high)) || (has(low) && low > JAVA_SYMBOL_BYTES - 4) ||
        (has(high) && high > JAVA_SYMBOL_BYTES - 4) || !java_read(j, at & ~(uint64_t)1, head, sizeof head)) {
        return false;
    }
    uint32_t len = has(high) ? load_u32(head + high) >> 16 : load_u32(head + low) & 0xffff;
    out->len = len < sizeof out->text ? len : sizeof out->text;
    return out->len > 0 && java_read(j, (at & ~(uint64_t)1) + f[JAVA_SYMBOL_BODY], out->text, (uint32_t)out->len);
}

static bool read_pool_symbol(const struct java *j, uint64_t pool, uint32_t index, struct symbol *out)
{
    uint64_t at;
    return index != 0 &&
           java_word(j, pool + j->layout.size[JAVA_SIZE_CONSTANT_POOL] + (uint64_t)index * sizeof at, &at) &&
           read_symbol(j, at, out);
}

static struct str full_name(struct java *j, const struct symbol *class, const struct symbol *name)
{
    char text[2 * JAVA_NAME_MAX + 1];
    size_t len = language_class_without_address((struct str){class->text, class->len}).len;
    memcpy(text, class->text, len);
    text[len++] = '.';
    memcpy(text + len, name->text, name->len);
    return arena_copy(&j->texts, (struct str){text, len + name->len});
}

static bool take_number(const unsigned char **at, const unsigned char *limit, uint32_t less, int32_t *out)
{
    uint32_t value = 0;
    for (unsigned i = 0; i < 5 && *at < limit; i++) {
        unsigned char byte = *(*at)++;
        value += (uint32_t)(byte - less) << 6 * i;
        if (byte < 192 || i == 4) {
            *out = (int32_t)(value >> 1 ^ -(value & 1));
            return true;
        }
    }
    return false;
}

/* A line table: an entry is a byte of both steps, or 0xff and two numbers; 0 ends it. */
struct lines {
    const unsigned char *at, *limit;
    uint32_t less;
    int32_t bci, line;
};

static bool next_line(struct lines *l)
{
    enum { LONG = 0xff, LINE_BITS = 3 };
    int32_t more, lines;
    unsigned char byte = l->at < l->limit ? *l->at++ : 0;
    if (byte == 0) {
        return false;
    }
    if (byte != LONG) {
        more = byte >> LINE_BITS;
        lines = byte & ((1 << LINE_BITS) - 1);
    } else if (!take_number(&l->at, l->limit, l->less, &more) || !take_number(&l->at, l->limit, l->less, &lines)) {
        return false;
    }
    l->bci = (int32_t)((uint32_t)l->bci + (uint32_t)more);
    l->line = (int32_t)((uint32_t)l->line + (uint32_t)lines);
    return true;
}

static void read_lines(struct java *j, uint64_t at, struct java_method *m)
{
    unsigned char bytes[LINES_MAX];
    struct memory_piece piece = {at, bytes, sizeof bytes, 0};
    if (!memory_batch_read(j->memory, &piece, 1, NULL) || piece.got == 0) {
        return;
    }
    struct lines all = {bytes, bytes + piece.got, m->zero_less, 0, 0};
    while (next_line(&all)) {
    }
    uint32_t len = (uint32_t)(all.at - bytes);
    unsigned char *kept = arena_alloc(&j->texts, len);
    if (kept != NULL) {
        memcpy(kept, bytes, len);
        m->lines = kept;
        m->line_bytes = len;
    }
}

static bool read_method(struct java *j, uint64_t const_method, struct java_method *m)
{
    const uint32_t *f = j->layout.field;
    unsigned char head[JAVA_METHOD_BYTES], pool_head[JAVA_METHOD_BYTES];
    struct symbol class, name, file;
    uint64_t class_name;
    uint32_t size = j->layout.size[JAVA_SIZE_CONST_METHOD];
    if (size > JAVA_METHOD_BYTES || j->layout.size[JAVA_SIZE_CONSTANT_POOL] > JAVA_METHOD_BYTES ||
        !java_read(j, const_method, head, sizeof head)) {
        return false;
    }
    uint64_t pool = java_field_u64(j, head, JAVA_CONST_POOL);
    if (!java_read(j, pool, pool_head, sizeof pool_head)) {
        return false;
    }
    uint64_t holder = java_field_u64(j, pool_head, JAVA_POOL_HOLDER);
    if (!read_pool_symbol(j, pool, java_field_u16(j, head, JAVA_CONST_NAME), &name) ||
        !java_word(j, holder + f[JAVA_KLASS_NAME], &class_name) || !read_symbol(j, class_name, &class)) {
        return false;
    }
    uint32_t index = java_field_u16(j, pool_head, JAVA_POOL_FILE);
    uint16_t of_class = 0;
    if (has(f[JAVA_CLASS_FILE]) && java_read(j, holder + f[JAVA_CLASS_FILE], &of_class, sizeof of_class)) {
        index = of_class;
    }
    m->name = full_name(j, &class, &name);
    m->file = read_pool_symbol(j, pool, index, &file) ? arena_copy(&j->texts, (struct str){file.text, file.len})
                                                      : (struct str){0};
    m->code_size = java_field_u16(j, head, JAVA_CONST_CODE_SIZE);
    m->bytecode = const_method + size;
    m->const_method = const_method;
    m->zero_less = j->layout.version[0] >= JAVA_ZERO_LESS_SINCE;
    uint32_t flags = java_field_u16(j, head, has(f[JAVA_CONST_FLAGS_21]) ? JAVA_CONST_FLAGS_21 : JAVA_CONST_FLAGS);
    if ((flags & HAS_LINES) != 0) {
        read_lines(j, m->bytecode + m->code_size, m);
    }
    return m->name.ptr != NULL;
}

void java_forget_methods(struct java *j)
{
    if (j->methods.len < METHODS_KEPT && j->texts.used_bytes < TEXTS_KEPT) {
        return;
    }
    map_clear(&j->method_of);
    vec_clear(&j->methods);
    arena_clear(&j->texts);
}

static struct java_method *kept_method(struct java *j, uint64_t method)
{
    const struct map_slot *slot = map_find(&j->method_of, method);
    return slot != NULL ? &j->methods.at[slot->value] : NULL;
}

const struct java_method *java_method(struct java *j, uint64_t method)
{
    struct java_method *m = kept_method(j, method);
    uint64_t const_method;
    if (m != NULL && j->stacks - m->asked < ASK_AGAIN) {
        return m->name.len > 0 ? m : NULL;
    }
    if (!java_word(j, method + j->layout.field[JAVA_METHOD_CONST], &const_method) || !plausible(const_method)) {
        return NULL;
    }
    if (m == NULL) {
        m = vec_push(&j->methods);
        if (m == NULL || !map_put(&j->method_of, method, j->methods.len - 1)) {
            return NULL;
        }
    }
    struct java_method now = {.asked = j->stacks};
    if (m->const_method != const_method || m->name.len == 0) {
        if (!read_method(j, const_method, &now)) {
            now = (struct java_method){.asked = j->stacks};
        }
        *m = now;
    }
    m->asked = j->stacks;
    return m->name.len > 0 ? m : NULL;
}

uint32_t java_line(const struct java_method *m, int32_t bci)
{
    if (m->lines == NULL) {
        return 0;
    }
    struct lines at = {m->lines, m->lines + m->line_bytes, m->zero_less, 0, 0};
    int32_t best = 0, best_at = -1;
    while (bci >= 0 && next_line(&at)) {
        if (at.bci <= bci && at.bci >= best_at) {
            best_at = at.bci;
            best = at.line;
        }
    }
    return best > 0 ? (uint32_t)best : 0;
}
