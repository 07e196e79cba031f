/* Names frames: what a function says of its name, its class and its file; read once and kept (common/cache.h). Its
 * fingerprint must be the walk's, for meanwhile another function may stand where it stood. A line is kept by itself,
 * when a frame at its instruction was met. */
#include "runtime/php/private.h"

#include "base/str.h"
#include "runtime/common/cache.h"

#include <stdlib.h>

enum {
    STRING_KIND = 4, KIND_MASK = 15, KIND_STRING = 6, STRING_LEN = 16, STRING_BYTES = 24, CLASS_NAME = 8,
    OF_FUNCTION = 0, OF_LINE = 1, /* kinds of what is kept: the function; from here on a line of it */
};

struct names {
    const struct php *php;
    struct function_cache cache;
};

/* One function while it is read. */
struct reading {
    struct names *names;
    struct memory_batch *memory;
    struct function *out;
    struct php_function function;
    struct buf text;
};

/* Appends a string's bytes up to the first NUL (behind it stands what tells classes without a name apart), at most
 * RUNTIME_NAME_MAX of them. False: it is none. */
static bool add_string(struct reading *r, uint64_t string)
{
    unsigned char head[STRING_BYTES];
    char text[RUNTIME_NAME_MAX];
    if (!walk_read_exactly(r->memory, string, head, sizeof head)) {
        return false;
    }
    /* freed memory begins with a pointer to other such memory */
    if ((load_u32(head + STRING_KIND) & KIND_MASK) != KIND_STRING) {
        return false;
    }
    uint64_t len = least(load_u64(head + STRING_LEN), sizeof text);
    struct memory_piece piece = {string + STRING_BYTES, text, (uint32_t)len, 0};
    if (len == 0 || !memory_batch_read(r->memory, &piece, 1, NULL) || piece.got != len) {
        return false;
    }
    buf_str(&r->text, str_sub((struct str){text, len}, 0, str_find((struct str){text, len}, '\0')));
    return true;
}

static bool read_function(struct reading *r)
{
    unsigned char bytes[PHP_FUNCTION_BYTES] = {0};
    struct memory_piece piece = {r->out->code, bytes, sizeof bytes, 0};
    if (!memory_batch_read(r->memory, &piece, 1, NULL) || piece.got < PHP_FUNCTION_LEAST) {
        return false;
    }
    r->function = php_function_of(&r->names->php->layout, bytes);
    return r->function.kind != 0 && r->function.check == r->out->check;
}

/* 8.4 and later write down where a closure stands, "{closure:Class::method():7}"; before, its namespace. */
static void shorten_closure(struct reading *r, size_t from)
{
    struct str name = buf_slice(&r->text);
    name = str_sub(name, from, name.len);
    if (str_starts(name, STR("{closure:"))) {
        r->text.len = from;
        buf_text(&r->text, "{closure}");
    }
}

/* False: it is gone, and so is the function, though its memory may still be what it was. */
static bool add_class(struct reading *r, uint64_t class)
{
    uint64_t name;
    if (class == 0) {
        return true;
    }
    if (!walk_read_exactly(r->memory, class + CLASS_NAME, &name, sizeof name) || !add_string(r, name)) {
        return false;
    }
    buf_text(&r->text, "::");
    return true;
}

static bool read_name(struct reading *r)
{
    const struct php_function *f = &r->function;
    if (f->name == 0) {
        buf_text(&r->text, "<main>"); /* with addresses that no frame can hold */
        return true;
    }
    if (!add_class(r, f->scope)) {
        return false;
    }
    size_t from = r->text.len;
    bool good = add_string(r, f->name);
    shorten_closure(r, from);
    return good;
}

/* Memory of code that was given as text is freed once it has run, and is often the next one's. */
static bool is_short_lived(const struct function *f)
{
    return str_ends(f->file, STR("eval()'d code"));
}

/* False: it cannot be named. */
static bool read_all(struct reading *r)
{
    if (!read_function(r) || !read_name(r)) {
        return false;
    }
    r->out->name = cache_text(&r->names->cache, &r->text);
    r->out->first_line = r->function.first_line;
    buf_clear(&r->text);
    if (r->function.kind == PHP_USER) {
        if (!add_string(r, r->function.filename)) {
            return false;
        }
        r->out->file = cache_text(&r->names->cache, &r->text);
    }
    struct reading again = *r;
    return r->out->name.len > 0 && read_function(&again); /* it stood meanwhile */
}

/* ---- the cache ---- */

static bool find_function(struct names *n, const struct runtime_frame *frame, struct memory_batch *memory,
                          struct function *out)
{
    *out = (struct function){.code = frame->code, .check = frame->check, .kind = OF_FUNCTION, .name = STR(""),
                             .file = STR("")};
    const struct function *known = cache_find(&n->cache, out);
    if (known != NULL) {
        *out = *known;
        return true;
    }
    struct reading r = {.names = n, .memory = memory, .out = out};
    buf_init(&r.text, RUNTIME_NAME_MAX * 2 + 2);
    bool good = read_all(&r);
    buf_release(&r.text);
    if (good && !is_short_lived(out)) {
        (void)cache_add(&n->cache, out);
    }
    return good;
}

/* 0: not known. */
static uint32_t find_line(struct names *n, const struct runtime_frame *frame, struct memory_batch *memory, bool keeps)
{
    unsigned char line[8];
    struct function function = {.code = frame->code, .check = frame->check, .kind = OF_LINE + frame->position};
    if (frame->position >= PHP_NO_LINE) {
        return 0;
    }
    const struct function *known = cache_find(&n->cache, &function);
    if (known != NULL) {
        return known->first_line;
    }
    struct reading r = {.names = n, .memory = memory, .out = &function};
    if (!read_function(&r) ||
        !walk_read_exactly(memory, r.function.opcodes + (uint64_t)frame->position * OPLINE_BYTES + OPLINE_LINE, line,
                           sizeof line) ||
        !read_function(&r)) {
        return 0;
    }
    function.first_line = load_u32(line);
    if (keeps) {
        (void)cache_add(&n->cache, &function);
    }
    return function.first_line;
}

static bool read_nameless(struct reading *r, const struct runtime_frame *frame)
{
    unsigned kind = frame->check >> NAMELESS_KIND_AT & 3;
    if (!add_string(r, (frame->code & NAMELESS_ADDRESS) << 3)) {
        return false;
    }
    struct str file = buf_slice(&r->text);
    uint64_t mask = ((uint64_t)1 << NAMELESS_KIND_AT) - 1 - NAMELESS_ADDRESS;
    if (php_text_check(file.len, file.ptr) != (frame->check & mask)) {
        return false;
    }
    r->out->file = cache_text(&r->names->cache, &r->text);
    buf_clear(&r->text);
    if (kind == NAMELESS_CLOSURE && !add_class(r, (frame->check & NAMELESS_ADDRESS) << 3)) {
        return false;
    }
    buf_text(&r->text, kind == NAMELESS_CLOSURE ? "{closure}" : kind == NAMELESS_EVAL ? "<eval>" : "<main>");
    r->out->name = cache_text(&r->names->cache, &r->text);
    r->out->first_line = (uint32_t)(frame->code >> NAMELESS_ADDRESS_BITS);
    r->out->first_line += r->out->first_line == 0; /* a file's own */
    return true;
}

/* Read anew for each stack, because by the next request the texts may be others; what is gone already is known again by
 * the fingerprint of its file's name, place and line. False: it cannot be named. */
static bool find_nameless(struct names *n, const struct runtime_frame *frame, struct memory_batch *memory,
                          struct function *out)
{
    *out = (struct function){.code = frame->code, .check = frame->check, .kind = OF_FUNCTION, .name = STR(""),
                             .file = STR("")};
    const struct function *known = cache_find(&n->cache, out);
    struct reading r = {.names = n, .memory = memory, .out = out};
    buf_init(&r.text, RUNTIME_NAME_MAX * 2 + 2);
    bool good = read_nameless(&r, frame);
    buf_release(&r.text);
    if (!good && known != NULL) {
        *out = *known;
        return true;
    }
    if (good && known == NULL && !is_short_lived(out)) {
        (void)cache_add(&n->cache, out);
    }
    return good;
}

static void name_nameless(struct names *n, const struct runtime_frame *frame, struct memory_batch *memory,
                          struct runtime_name *out)
{
    struct function f;
    if (find_nameless(n, frame, memory, &f)) {
        *out = (struct runtime_name){.function = f.name, .file = f.file, .first_line = f.first_line,
                                     .may_change = true};
        out->line = frame->position < PHP_NO_LINE ? frame->position : f.first_line;
    }
}

static void name_frame(struct names *n, const struct runtime_frame *frame, struct memory_batch *memory,
                       struct runtime_name *out)
{
    struct function f;
    /* what is gone may be back with the next request, which has the same place for it */
    *out = (struct runtime_name){.function = STR(""), .file = STR(""), .may_change = true};
    if ((frame->check & PHP_NAMELESS) != 0) {
        name_nameless(n, frame, memory, out);
    } else if (find_function(n, frame, memory, &f)) {
        bool short_lived = is_short_lived(&f);
        *out = (struct runtime_name){.function = f.name, .file = f.file, .first_line = f.first_line,
                                     .may_change = short_lived};
        out->line = find_line(n, frame, memory, !short_lived);
        out->line = out->line == 0 && frame->position == PHP_NO_LINE ? f.first_line : out->line;
    }
}

void php_name_frames(void *names, const struct runtime_frame *frames, size_t count, struct memory_batch *memory,
                     struct runtime_name *out)
{
    struct names *n = names;
    cache_begin(&n->cache, count);
    for (size_t i = 0; i < count; i++) {
        name_frame(n, &frames[i], memory, &out[i]);
    }
}

void *php_open_names(const void *state)
{
    struct names *n = calloc(1, sizeof *n);
    if (n == NULL || !cache_open(&n->cache)) {
        free(n);
        return NULL;
    }
    n->php = state;
    return n;
}

void php_close_names(void *names)
{
    struct names *n = names;
    if (n == NULL) {
        return;
    }
    cache_release(&n->cache);
    free(n);
}
