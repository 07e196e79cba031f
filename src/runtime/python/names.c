/* Names frames: a cache from code objects (address and fingerprint) to function, file and line, filled in batches
 * by code.c and text.c, bounded in bytes. The sampler calls it soon after a walk, while the code objects
 * still exist. */
#include "base/map.h"
#include "runtime/python/code.h"

#include <stdlib.h>

/*
 * Names are kept by code object and fingerprint: programs that make functions all the time (exec,
 * lambdas, notebooks) put new ones where old ones were, and frames of both may be asked for. When
 * there is no more room everything is forgotten at once, at the start of a call, so texts that were
 * handed out live until then.
 *
 * Up to 3.11 a new code object can have the fingerprint of the one whose place it took, because its
 * names took the places of the other's too. So code is read again a few times before it is
 * believed, and many times in another's place or where that happens often: such a program makes
 * functions all the time. From 3.12 on code objects are numbered, and no two have the same
 * fingerprint.
 *
 * Code that has been freed since it ran points to freed texts, which may be anything by now. They
 * are believed when together with its first line they are a function that was seen alive: programs
 * that call eval all the time make "<module>" of "<string>" over and over.
 */
enum {
    CODES_KEPT_MAX = 65536,
    TEXT_BYTES_MAX = 8 << 20,   /* of names, files and tables of lines */
    START_OVER_BYTES = 6 << 20, /* what is beyond is for the call that is under way */
    LONG_BYTES_MAX = 4 << 20,   /* read in one call beyond the windows */
    LINES_KEPT = 512,
    DOUBTS = 4,                 /* how often code is read again */
    DOUBTS_MANY = 64,
    OFTEN_LEAST = 64,           /* code objects seen before it can be often … */
    OFTEN = 16,                 /* … that one in so many is in another's place */
};

struct code {
    uint64_t address, check;
    struct str function, file;
    const unsigned char *table;
    uint32_t table_len;
    uint32_t first_line;
    uint32_t doubts; /* while there are any, it is read again before it is believed */
};

/* A line that was looked up before: tables are read from their start, and can be long. */
struct kept_line {
    uint32_t code, position, line;
};

struct names {
    const struct python *python;
    VEC(struct code) codes; /* element 0 is unused */
    VEC(struct str) texts;  /* likewise */
    struct intern code_ids, function_ids, text_ids;
    struct map places; /* addresses of code objects; the values mean nothing */
    size_t replaced;   /* code objects in another's place */
    bool makes_code;   /* that has happened often */
    struct arena arena;
    struct kept_line lines[LINES_KEPT];
    struct python_threads threads;
};

static uint64_t hash_code(uint64_t address, uint64_t check)
{
    return hash_u64(address ^ hash_u64(check));
}

static uint64_t code_hash(const void *owner, uint32_t id)
{
    const struct code *code = &((const struct names *)owner)->codes.at[id];
    return hash_code(code->address, code->check);
}

static bool code_same(const void *owner, uint32_t id, const void *key)
{
    const struct code *a = &((const struct names *)owner)->codes.at[id], *b = key;
    return a->address == b->address && a->check == b->check;
}

/* Texts are kept once each, so their addresses tell them apart. */
static uint64_t hash_function(const struct code *code)
{
    return hash_u64((uintptr_t)code->function.ptr ^
                    hash_u64((uintptr_t)code->file.ptr ^ hash_u64(code->first_line)));
}

static uint64_t function_hash(const void *owner, uint32_t id)
{
    return hash_function(&((const struct names *)owner)->codes.at[id]);
}

static bool function_same(const void *owner, uint32_t id, const void *key)
{
    const struct code *a = &((const struct names *)owner)->codes.at[id], *b = key;
    return a->function.ptr == b->function.ptr && a->file.ptr == b->file.ptr &&
           a->first_line == b->first_line;
}

static const struct intern_owner code_ops = {code_hash, code_same};
static const struct intern_owner function_ops = {function_hash, function_same};

static uint32_t find_code(const struct names *n, uint64_t address, uint64_t check)
{
    struct code key = {.address = address, .check = check};
    return intern_find(&n->code_ids, &code_ops, n, hash_code(address, check), &key);
}

/* As find_code, but 0 for one that has to be read again. */
static uint32_t find_sure(const struct names *n, uint64_t address, uint64_t check)
{
    uint32_t id = find_code(n, address, check);
    return n->codes.at[id].doubts == 0 ? id : 0;
}

/* The text as it is kept; empty when there is no room. */
static struct str keep_text(struct names *n, struct str text)
{
    uint64_t hash = str_hash(text);
    uint32_t id = intern_find(&n->text_ids, &intern_texts, &n->texts.at, hash, &text);
    if (id != 0) {
        return n->texts.at[id];
    }
    struct str copy = arena_copy(&n->arena, text);
    struct str *added = copy.ptr == NULL ? NULL : vec_push(&n->texts);
    if (added == NULL) {
        return STR("");
    }
    *added = copy;
    /* without room in the table it is there all the same, and the next one of its kind again */
    (void)intern_add(&n->text_ids, &intern_texts, &n->texts.at, hash, (uint32_t)(n->texts.len - 1));
    return copy;
}

static struct str keep_part(struct names *n, const struct code_part_read *part, struct buf *text)
{
    if (part->data == NULL) {
        return STR("");
    }
    buf_clear(text);
    python_text_add(&part->text, part->data, text);
    return text->failed ? STR("") : keep_text(n, buf_slice(text));
}

static struct str table_of(const struct code_read *read)
{
    const struct code_part_read *part = &read->part[CODE_TABLE];
    return (struct str){(const char *)part->data, part->data == NULL ? 0 : part->text.bytes};
}

static void keep_table(struct names *n, const struct code_read *read, struct code *code)
{
    struct str table = table_of(read);
    struct str copy = table.ptr == NULL ? table : arena_copy(&n->arena, table);
    code->table = (const unsigned char *)copy.ptr;
    code->table_len = (uint32_t)copy.len;
}

static bool is_same(const struct code *kept, const struct code *code, struct str table)
{
    struct str kept_table = {(const char *)kept->table, kept->table_len};
    return str_eq(kept->function, code->function) && str_eq(kept->file, code->file) &&
           str_eq(kept_table, table);
}

static void forget_lines(struct names *n, uint32_t id)
{
    for (size_t i = 0; i < LINES_KEPT; i++) {
        n->lines[i].code = n->lines[i].code == id ? 0 : n->lines[i].code;
    }
}

static bool is_numbered(const struct names *n)
{
    return n->python->layout.code.version != LAYOUT_NONE;
}

static void doubt_all(struct names *n)
{
    for (size_t i = 1; !n->makes_code && i < n->codes.len; i++) {
        n->codes.at[i].doubts = DOUBTS_MANY;
    }
    n->makes_code = true;
}

/* How often the code object just added has to be read again. */
static uint32_t doubts_of(struct names *n, uint64_t address)
{
    if (is_numbered(n)) {
        return 0;
    }
    bool is_replaced = map_find(&n->places, address) != NULL;
    n->replaced += is_replaced;
    (void)map_put(&n->places, address, 0); /* without room none is found there later */
    if (n->codes.len > OFTEN_LEAST && n->replaced > n->codes.len / OFTEN) {
        doubt_all(n);
    }
    return is_replaced || n->makes_code ? DOUBTS_MANY : DOUBTS;
}

static uint32_t add_code(struct names *n, const struct code *code)
{
    struct code *added = vec_push(&n->codes);
    if (added == NULL) {
        return 0;
    }
    *added = *code;
    uint32_t id = (uint32_t)(n->codes.len - 1);
    added->doubts = 0;
    /* without room in the table it is read again next time */
    (void)intern_add(&n->code_ids, &code_ops, n, hash_code(code->address, code->check), id);
    uint64_t hash = hash_function(code);
    if (intern_find(&n->function_ids, &function_ops, n, hash, code) == 0) {
        (void)intern_add(&n->function_ids, &function_ops, n, hash, id);
    }
    n->codes.at[id].doubts = doubts_of(n, code->address);
    return id;
}

/* The place of a code object whose body was read; 0 when it has no name or there is no room. */
static uint32_t keep_code(struct names *n, const struct code_read *read, struct buf *text)
{
    struct code code = {.address = read->address, .check = read->found};
    code.first_line = read->first_line;
    code.function = keep_part(n, &read->part[CODE_FUNCTION], text);
    code.file = keep_part(n, &read->part[CODE_FILE], text);
    uint32_t id = find_code(n, code.address, code.check);
    if (code.function.len == 0) {
        return 0;
    }
    if (id != 0 && is_same(&n->codes.at[id], &code, table_of(read))) {
        n->codes.at[id].doubts -= n->codes.at[id].doubts > 0;
        return id;
    }
    keep_table(n, read, &code);
    if (id == 0) {
        return add_code(n, &code);
    }
    code.doubts = DOUBTS_MANY;
    n->codes.at[id] = code;
    forget_lines(n, id);
    return id;
}

/* The text if it is one of those kept, else empty. */
static struct str find_text(const struct names *n, const struct code_part_read *part,
                            struct buf *text)
{
    buf_clear(text);
    if (part->data != NULL) {
        python_text_add(&part->text, part->data, text);
    }
    struct str key = buf_slice(text);
    uint32_t id = intern_find(&n->text_ids, &intern_texts, &n->texts.at, str_hash(key), &key);
    return id == 0 ? STR("") : n->texts.at[id];
}

/* Code that was seen alive and is the same function. */
static uint32_t find_function(const struct names *n, const struct code_read *read,
                              struct buf *text)
{
    struct code key = {.first_line = read->first_line};
    key.function = find_text(n, &read->part[CODE_FUNCTION], text);
    key.file = find_text(n, &read->part[CODE_FILE], text);
    return intern_find(&n->function_ids, &function_ops, n, hash_function(&key), &key);
}

static void keep_codes(struct names *n, struct codes *codes)
{
    struct buf text;
    buf_init(&text, RUNTIME_NAME_MAX);
    for (size_t i = 0; i < codes->count; i++) {
        struct code_read *read = &codes->at[i];
        if (read->alive && read->known == 0) {
            read->is_alike = read->freed;
            read->known = read->freed ? find_function(n, read, &text) : keep_code(n, read, &text);
        }
    }
    buf_release(&text);
}

static uint32_t decode_line(const struct names *n, const struct code *code, uint32_t position)
{
    enum python_lines format = (enum python_lines)n->python->layout.lines;
    return code->table == NULL
               ? 0
               : python_line(format, code->first_line, code->table, code->table_len,
                             (int32_t)position);
}

static uint32_t line_of(struct names *n, uint32_t id, uint32_t position)
{
    uint64_t place = hash_u64((uint64_t)id << 32 | position) % LINES_KEPT;
    struct kept_line *kept = &n->lines[place];
    if (kept->code != id || kept->position != position) {
        *kept = (struct kept_line){id, position, decode_line(n, &n->codes.at[id], position)};
    }
    return kept->line;
}

static void name_frame(struct names *n, uint32_t id, const struct runtime_frame *frame,
                       struct runtime_name *out)
{
    const struct code *code = &n->codes.at[id];
    bool unstarted = (frame->flags & RUNTIME_FRAME_UNSTARTED) != 0;
    out->function = code->function;
    out->file = code->file;
    out->first_line = code->first_line;
    out->may_change = code->doubts > 0;
    out->line = unstarted ? code->first_line : line_of(n, id, frame->position);
}

static void want(struct codes *codes, const struct runtime_frame *frame)
{
    for (size_t i = 0; i < codes->count; i++) {
        if (codes->at[i].address == frame->code && codes->at[i].check == frame->check) {
            return;
        }
    }
    struct code_read *code = &codes->at[codes->count++];
    code->address = frame->code;
    code->check = frame->check;
    code->known = 0;
    code->is_alike = false;
}

static bool is_named(const struct runtime_name *name)
{
    return name->function.len > 0;
}

/* Whether lines may be taken from what is known: eval may have been given another text. */
static bool has_table_of(const struct names *n, const struct code_read *read)
{
    const struct code *code = &n->codes.at[read->known];
    struct str table = {(const char *)code->table, code->table_len};
    return !read->is_alike || str_eq(table, table_of(read));
}

static void name_read(struct names *n, const struct codes *codes,
                      const struct runtime_frame *frame, struct runtime_name *out)
{
    for (size_t i = 0; i < codes->count; i++) {
        const struct code_read *code = &codes->at[i];
        if (code->address != frame->code || code->check != frame->check) {
            continue;
        }
        if (code->alive && code->known != 0) {
            name_frame(n, code->known, frame, out);
            out->line = has_table_of(n, code) ? out->line : 0;
        }
        return;
    }
}

static bool is_unknown(const struct runtime_frame *frame, const struct runtime_name *name)
{
    return !is_named(name) && frame->code != 0 && (frame->flags & RUNTIME_FRAME_SHIM) == 0;
}

/* Reads the first code objects of those frames that have no name yet, and names these frames. How
 * many frames have been dealt with. */
static size_t read_some(struct names *n, struct codes *codes, const struct runtime_frame *frames,
                        size_t count, struct runtime_name *out)
{
    size_t end = 0;
    codes->count = 0;
    for (; end < count && codes->count < CODES_MAX; end++) {
        if (is_unknown(&frames[end], &out[end])) {
            want(codes, &frames[end]);
        }
    }
    python_codes_heads(codes);
    for (size_t i = 0; i < codes->count; i++) {
        struct code_read *code = &codes->at[i];
        code->known = code->alive ? find_sure(n, code->address, code->found) : 0;
    }
    python_codes_bodies(codes);
    keep_codes(n, codes);
    for (size_t i = 0; i < end; i++) {
        if (is_unknown(&frames[i], &out[i])) {
            name_read(n, codes, &frames[i], &out[i]);
        }
    }
    return end;
}

static void read_unknown(struct names *n, const struct runtime_frame *frames, size_t count,
                         struct memory_batch *memory, struct runtime_name *out)
{
    struct codes *codes = malloc(sizeof *codes);
    if (codes == NULL) {
        return;
    }
    codes->python = n->python;
    codes->memory = memory;
    arena_init(&codes->long_data, LONG_BYTES_MAX);
    for (size_t at = 0; at < count;) {
        at += read_some(n, codes, frames + at, count - at, out + at);
    }
    arena_release(&codes->long_data);
    free(codes);
}

static void start_over(struct names *n)
{
    n->codes.len = n->texts.len = 1;
    intern_clear(&n->code_ids);
    intern_clear(&n->function_ids);
    intern_clear(&n->text_ids);
    map_clear(&n->places);
    n->replaced = 0;
    arena_clear(&n->arena);
    memset(n->lines, 0, sizeof n->lines);
}

void python_name_frames(void *names, const struct runtime_frame *frames, size_t count,
                        struct memory_batch *memory, struct runtime_name *out)
{
    struct names *n = names;
    bool all_named = true;
    if (n->codes.len + count > CODES_KEPT_MAX || n->arena.used_bytes > START_OVER_BYTES) {
        start_over(n);
    }
    for (size_t i = 0; i < count; i++) {
        out[i] = (struct runtime_name){.function = STR(""), .file = STR("")};
        /* no code has fingerprint 0: without one only a look at the code object tells which it is
         * */
        uint32_t id = find_sure(n, frames[i].code, frames[i].check);
        if (id != 0) {
            name_frame(n, id, &frames[i], &out[i]);
        }
        all_named = all_named && !is_unknown(&frames[i], &out[i]);
    }
    if (!all_named) {
        read_unknown(n, frames, count, memory, out);
    }
}

bool python_name_thread(void *names, uint32_t tid, struct memory_batch *memory, struct buf *out)
{
    struct names *n = names;
    return python_thread_name(n->python, &n->threads, tid, memory, out);
}

void *python_open_names(const void *state)
{
    const struct python *python = state;
    struct names *n = calloc(1, sizeof *n);
    if (n == NULL) {
        return NULL;
    }
    n->python = python;
    arena_init(&n->arena, TEXT_BYTES_MAX);
    if (vec_push(&n->codes) == NULL || vec_push(&n->texts) == NULL) {
        python_close_names(n);
        return NULL;
    }
    return n;
}

void python_close_names(void *names)
{
    struct names *n = names;
    if (n == NULL) {
        return;
    }
    vec_release(&n->codes);
    vec_release(&n->texts);
    intern_release(&n->code_ids);
    intern_release(&n->function_ids);
    intern_release(&n->text_ids);
    map_release(&n->places);
    arena_release(&n->arena);
    free(n);
}
