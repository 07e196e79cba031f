/* Names frames: what a function's structures say of it, its file and its lines; read once and kept (common/cache.h).
 * Its fingerprint must be the walk's, for meanwhile another function may stand where it stood.
 * Blocks, rescues and code given as text go by the name of the method that they are in. */
#include "runtime/ruby/private.h"

#include "base/str.h"
#include "runtime/common/cache.h"

#include <stdlib.h>

enum {
    POSITIONS_MAX = 1 << 22,
    LINES_MAX_BYTES = 1 << 20,

    /* but for body.shift; what stands behind the file is 8 bytes further on with body.old_place */
    BODY_SIZE = 4, BODY_ENCODED = 8, BODY_FILE = 64, BODY_BASE_LABEL = 72, BODY_FIRST_LINE = 88,
    BODY_LABELS = 16, /* base label, label */
    KIND_EVAL = 6,
    EVALS_MAX = 8,    /* in each other */
    ISEQ_BODY = 16,
    METHOD_DEFINITION = 16, METHOD_ID = 24, METHOD_OWNER = 32, METHOD_BYTES = 40, SVAR_METHOD = 8,
    DEFINITION_KIND = 15, DEFINITION_ISEQ = 0, DEFINITION_C = 1, DEFINITION_BLOCK = 4,
};

enum function_kind { OF_INSTRUCTIONS, OF_C };

/* Of instructions. */
struct code {
    uint64_t encoded; /* address of its instructions */
    uint32_t positions;
    struct ruby_lines lines;
};

struct names {
    const struct ruby *ruby;
    struct function_cache cache;
};

/* One function while it is read. */
struct reading {
    struct names *names;
    const struct ruby_layout *layout;
    struct memory_batch *memory;
    struct function *out;
    struct code code;
    unsigned char body[RUBY_BODY_BYTES];
    uint64_t iseq, method, owner;
    bool of_block;
    struct buf text, part;
};

static bool text_of(struct reading *r, uint64_t string, struct buf *out)
{
    buf_clear(out);
    return ruby_add_string(r->layout, r->memory, string, out);
}

/* ---- methods ---- */

/* The method that an environment's first word leads to: itself, or by a holder of special variables. False: none. */
static bool read_method(struct reading *r, uint64_t address, unsigned char method[METHOD_BYTES])
{
    for (int hop = 0; hop < 2; hop++) {
        if (!walk_read_exactly(r->memory, address, method, METHOD_BYTES)) {
            return false;
        }
        uint64_t flags = load_u64(method);
        if (!ruby_is_imemo(r->layout, flags, IMEMO_SVAR)) {
            return ruby_is_imemo(r->layout, flags, IMEMO_METHOD);
        }
        address = load_u64(method + SVAR_METHOD);
    }
    return false;
}

/* Does a method's definition fit what the frame runs? 1: it leads to its instructions, or to those that its block is
 * in; 0: it has none, or could not be read; -1: to others: a frame that was just being put where another had been. */
static int defines(struct reading *r, const unsigned char *method)
{
    uint64_t definition[2];
    if (!walk_read_exactly(r->memory, load_u64(method + METHOD_DEFINITION), definition, sizeof definition)) {
        return 0;
    }
    uint64_t kind = definition[0] & DEFINITION_KIND;
    if (r->of_block) {
        return kind == DEFINITION_BLOCK ? 1 : -1;
    }
    return kind != DEFINITION_ISEQ ? (kind == DEFINITION_C ? -1 : 0)
           : definition[1] == r->iseq || definition[1] == load_u64(r->body + r->layout->body.local) ? 1
                                                                                                    : -1;
}

/* False: the frame contradicts itself. Of a method made of a block that is only one that was freed: it has no owner. */
static bool find_owner(struct reading *r)
{
    unsigned char method[METHOD_BYTES];
    if (r->method == 0 || !read_method(r, r->method, method)) {
        return true;
    }
    int fits = defines(r, method);
    r->owner = fits >= 0 ? load_u64(method + METHOD_OWNER) : 0;
    return fits >= 0 || r->of_block;
}

static bool name_c(struct reading *r)
{
    unsigned char method[METHOD_BYTES];
    uint64_t id, string;
    uint32_t check = (uint32_t)r->out->check;
    /* the walk's fingerprint is of what the environment leads to, be it the holder */
    if (!walk_read_exactly(r->memory, r->out->code, method, METHOD_BYTES) ||
        (check != 0 && check != ruby_method_check(method + RUBY_METHOD_AT)) ||
        !read_method(r, r->out->code, method)) {
        return false;
    }
    id = load_u64(method + METHOD_ID);
    if (r->layout->original_id != LAYOUT_NONE) {
        (void)walk_read_exactly(r->memory, load_u64(method + METHOD_DEFINITION) + r->layout->original_id, &id, 8);
    }
    ruby_add_class(r->layout, r->memory, load_u64(method + METHOD_OWNER), &r->text);
    if (ruby_id_string(r->layout, r->names->ruby->symbols, r->memory, id, &string) && text_of(r, string, &r->part)) {
        buf_str(&r->text, buf_slice(&r->part));
    } else {
        buf_clear(&r->text);
        buf_text(&r->text, "<cfunc>");
    }
    return true;
}

/* ---- instruction sequences ---- */

static size_t behind_file(const struct ruby_layout *l, size_t field)
{
    return field + l->body.shift + (l->body.old_place ? 8 : 0);
}

/* Code given as text goes by the name of what gave it, which 3.4 does not say of it any more. */
static void read_labels(struct reading *r, unsigned char labels[BODY_LABELS])
{
    unsigned char body[RUBY_BODY_BYTES];
    uint64_t head[3];
    size_t len = r->layout->body.local;
    memcpy(body, r->body, len);
    for (int i = 0; i < EVALS_MAX && load_u32(body) == KIND_EVAL; i++) {
        uint64_t parent = load_u64(body + len - 8);
        if (!walk_read_exactly(r->memory, parent, head, sizeof head) ||
            !ruby_is_imemo(r->layout, head[0], IMEMO_ISEQ) || !walk_read_exactly(r->memory, head[2], body, len)) {
            break;
        }
    }
    memcpy(labels, body + behind_file(r->layout, BODY_BASE_LABEL), BODY_LABELS);
}

/* <main>, <class:A> are no methods; <=> is one. */
static bool is_method(struct str name)
{
    return name.len > 0 && (name.ptr[0] != '<' || name.len == 1 || name.ptr[1] < 'a' || name.ptr[1] > 'z');
}

/* "block in name" is "block in Class#name": the label ends with the method's own name. */
static bool name_iseq(struct reading *r)
{
    unsigned char labels[BODY_LABELS];
    struct buf base;
    read_labels(r, labels);
    if (!text_of(r, load_u64(labels + 8), &r->part)) {
        return false;
    }
    buf_init(&base, RUNTIME_NAME_MAX);
    struct str label = buf_slice(&r->part), name = label;
    if (text_of(r, load_u64(labels), &base) && str_ends(label, buf_slice(&base))) {
        name = str_sub(label, label.len - base.len, label.len);
        buf_str(&r->text, str_sub(label, 0, label.len - base.len));
        if (is_method(name) && r->owner != 0) {
            ruby_add_class(r->layout, r->memory, r->owner, &r->text);
        }
    }
    buf_str(&r->text, name);
    buf_release(&base);
    return true;
}

/* A path, or an array of it and of where it really is, which may be nil; up to 2.4 that stands beside it. */
static void read_file(struct reading *r)
{
    const unsigned char *file = r->body + r->layout->body.shift + BODY_FILE;
    uint64_t at = load_u64(file), path;
    bool found = (r->layout->body.old_place && text_of(r, load_u64(file + 8), &r->part)) || text_of(r, at, &r->part) ||
                 (ruby_element(r->memory, at, 1, &path) && text_of(r, path, &r->part)) ||
                 (ruby_element(r->memory, at, 0, &path) && text_of(r, path, &r->part));
    r->out->file = found ? cache_text(&r->names->cache, &r->part) : STR("");
}

static const unsigned char *keep_bytes(struct reading *r, uint64_t address, size_t len)
{
    unsigned char *bytes = len > 0 && len <= LINES_MAX_BYTES ? arena_alloc(&r->names->cache.arena, len) : NULL;
    struct memory_piece piece = {address, bytes, (uint32_t)len, 0};
    bool read = bytes != NULL && plausible(address) && memory_batch_read(r->memory, &piece, 1, NULL);
    return read && piece.got == len ? bytes : NULL;
}

static void read_lines(struct reading *r)
{
    const struct ruby_layout *l = r->layout;
    struct ruby_lines *lines = &r->code.lines;
    uint32_t count = load_u32(r->body + l->body.line_count);
    r->code.positions = load_u32(r->body + l->body.shift + BODY_SIZE);
    r->code.encoded = load_u64(r->body + l->body.shift + BODY_ENCODED);
    if (r->code.positions > POSITIONS_MAX || count > r->code.positions) {
        return;
    }
    *lines = (struct ruby_lines){.entry_bytes = l->body.line_bytes, .by_position = l->body.line_index == LAYOUT_NONE};
    lines->entries = keep_bytes(r, load_u64(r->body + l->body.lines), (size_t)count * l->body.line_bytes);
    lines->count = lines->entries != NULL ? count : 0;
    if (!lines->by_position && count > 1) {
        size_t len = ruby_index_bytes(r->code.positions);
        lines->index = keep_bytes(r, load_u64(r->body + l->body.line_index), len);
        lines->index_bytes = lines->index != NULL ? len : 0;
    }
}

static bool read_iseq(struct reading *r)
{
    uint64_t head[3];
    uint32_t mask = (1U << RUBY_CHECK_BITS) - 1, check = (uint32_t)r->out->check & mask;
    size_t len = r->layout->body.line_index == LAYOUT_NONE ? RUBY_BODY_BYTES : RUBY_BODY_BYTES - 16;
    if (!walk_read_exactly(r->memory, r->iseq, head, sizeof head) || !ruby_is_imemo(r->layout, head[0], IMEMO_ISEQ) ||
        !walk_read_exactly(r->memory, head[2], r->body, len) ||
        (check != 0 && (ruby_body_check(head[2], r->body) & mask) != check)) {
        return false;
    }
    uint64_t first_line = load_u64(r->body + behind_file(r->layout, BODY_FIRST_LINE));
    r->out->first_line = (uint32_t)first_line >> (r->layout->tagged_line ? 1 : 0);
    r->out->first_line += r->out->first_line == 0; /* a file's own */
    if (!find_owner(r) || !name_iseq(r)) {
        return false;
    }
    read_file(r);
    read_lines(r);
    return true;
}

/* ---- the cache ---- */

static const struct function *read_function(struct names *n, const struct function *key, struct memory_batch *memory)
{
    struct function function = *key;
    struct reading r = {.names = n, .layout = &n->ruby->layout, .memory = memory, .out = &function};
    const struct function *added = NULL;
    buf_init(&r.text, RUNTIME_NAME_MAX);
    buf_init(&r.part, RUNTIME_NAME_MAX);
    r.iseq = key->code;
    r.method = key->check >> RUBY_CHECK_BITS & ~(uint64_t)7;
    r.of_block = (key->check >> RUBY_CHECK_BITS & RUBY_OF_BLOCK) != 0;
    if (key->kind == OF_C ? name_c(&r) : read_iseq(&r)) {
        function.name = cache_text(&n->cache, &r.text);
        struct code *code = arena_alloc(&n->cache.arena, sizeof *code);
        function.more = code;
        if (code != NULL && function.name.len > 0) {
            *code = r.code;
            added = cache_add(&n->cache, &function);
        }
    }
    buf_release(&r.text);
    buf_release(&r.part);
    return added;
}

/* Each invocation that has matched a pattern has a holder of special variables of its own, which leads to the method:
 * what is read once for the method is another's name as well. Null: not this way. */
static const struct function *find_by_method(struct names *n, const struct function *key, struct memory_batch *memory)
{
    uint64_t holder[2];
    struct function by = *key;
    uint64_t address = key->check >> RUBY_CHECK_BITS & ~(uint64_t)7;
    if (key->kind == OF_C || !walk_read_exactly(memory, address, holder, sizeof holder) ||
        !ruby_is_imemo(&n->ruby->layout, holder[0], IMEMO_SVAR)) {
        return NULL;
    }
    uint64_t of_block = key->check >> RUBY_CHECK_BITS & RUBY_OF_BLOCK;
    by.check = ruby_frame_check(holder[SVAR_METHOD / 8] | of_block, (uint32_t)key->check);
    const struct function *found = cache_find(&n->cache, &by);
    found = found != NULL ? found : read_function(n, &by, memory);
    if (found == NULL) {
        return NULL;
    }
    by = *found;
    by.check = key->check;
    return cache_add(&n->cache, &by);
}

/* The saved pc is behind the instruction that runs. */
static uint32_t line_of(const struct function *f, uint32_t pc)
{
    const struct code *code = f->more;
    uint32_t position = pc - (uint32_t)(code->encoded >> 3);
    position -= position > 0;
    return pc == 0 ? f->first_line : position < code->positions ? ruby_line(&code->lines, position) : 0;
}

/* A block that is a method now is read without its method first: many of these are gone before they are asked for, and
 * then the class they were of is not told. */
static const struct function *find_function(struct names *n, struct function *key, struct memory_batch *memory)
{
    bool of_block = key->kind != OF_C && (key->check >> RUBY_CHECK_BITS & RUBY_OF_BLOCK) != 0;
    struct function any = *key;
    any.check = ruby_frame_check(RUBY_OF_BLOCK, (uint32_t)key->check);
    if (of_block && cache_find(&n->cache, &any) == NULL) {
        (void)read_function(n, &any, memory);
    }
    if (of_block && !has(n->ruby->layout.class_path)) {
        return cache_find(&n->cache, &any);
    }
    const struct function *f = cache_find(&n->cache, key);
    f = f != NULL ? f : find_by_method(n, key, memory);
    f = f != NULL ? f : read_function(n, key, memory);
    return f != NULL || !of_block ? f : cache_find(&n->cache, &any);
}

static void name_frame(struct names *n, const struct runtime_frame *frame, struct memory_batch *memory,
                       struct runtime_name *out)
{
    bool is_c = frame->position == RUBY_C_FUNCTION;
    struct function key = {.code = frame->code, .check = frame->check, .kind = is_c ? OF_C : OF_INSTRUCTIONS};
    const struct function *f = find_function(n, &key, memory);
    *out = (struct runtime_name){.function = STR(""), .file = STR("")};
    if (f != NULL) {
        *out = (struct runtime_name){.function = f->name, .file = f->file, .first_line = f->first_line};
        out->line = is_c ? 0 : line_of(f, frame->position);
    }
}

void ruby_name_frames(void *names, const struct runtime_frame *frames, size_t count, struct memory_batch *memory,
                      struct runtime_name *out)
{
    struct names *n = names;
    cache_begin(&n->cache, count);
    for (size_t i = 0; i < count; i++) {
        name_frame(n, &frames[i], memory, &out[i]);
    }
}

void *ruby_open_names(const void *state)
{
    struct names *n = calloc(1, sizeof *n);
    if (n == NULL || !cache_open(&n->cache)) {
        free(n);
        return NULL;
    }
    n->ruby = state;
    return n;
}

void ruby_close_names(void *names)
{
    struct names *n = names;
    if (n == NULL) {
        return;
    }
    cache_release(&n->cache);
    free(n);
}
