/* Names frames: what a sub's structures say of it, its file and its first line; read once and kept (common/cache.h).
 * Its fingerprint must be the walk's, for meanwhile another sub may stand where it stood. Evals, required files and the
 * main program are named by what they are; the walk has told where their files' names stand. */
#include "runtime/perl/private.h"

#include "base/str.h"
#include "runtime/common/cache.h"

#include <stdlib.h>

enum {
    TEXT_FIRST = 128, /* bytes that are read of a text at first */
    IS_NAMED = 0x8000, /* of a sub: it has a name instead of a glob */
    GV_NAME = 32, GV_STASH = 40, GV_BYTES = 48,
    GLOB_EFFECTIVE = 56,
    AUX_COUNT = 28, AUX_BYTES = 32,
    KEY_LENGTH = 4, KEY_TEXT = 8, IS_UTF8 = 1,
    LINES_MAX = 1 << 24,
};

struct names {
    const struct perl *perl;
    struct function_cache cache;
};

struct reading {
    struct names *names;
    struct memory_batch *memory;
    struct buf text;
};

/* At any address, unlike walk_read_exactly; how many bytes there are. */
static uint32_t read_some(struct reading *r, uint64_t address, void *out, uint32_t len)
{
    struct memory_piece piece = {address, out, len, 0};
    return plausible(address) && memory_batch_read(r->memory, &piece, 1, NULL) ? piece.got : 0;
}

static bool is_text(struct str text)
{
    for (size_t i = 0; i < text.len; i++) {
        if ((unsigned char)text.ptr[i] < ' ' || text.ptr[i] == 127) {
            return false;
        }
    }
    return text.len > 0;
}

/* Appends a text that ends with a NUL. */
static bool add_c_text(struct reading *r, uint64_t address)
{
    char text[RUNTIME_NAME_MAX];
    for (uint32_t len = TEXT_FIRST; len <= sizeof text; len = len < sizeof text ? (uint32_t)sizeof text : len + 1) {
        uint32_t got = read_some(r, address, text, len);
        const char *end = got > 0 ? memchr(text, 0, got) : NULL;
        if (end != NULL) {
            struct str found = {text, (size_t)(end - text)};
            buf_str(&r->text, found);
            return is_text(found);
        }
    }
    return false;
}

/* Keys have Latin-1, unless they are marked as UTF-8. */
static void add_latin_1(struct buf *out, const char *text, uint32_t len)
{
    for (uint32_t i = 0; i < len; i++) {
        unsigned char c = (unsigned char)text[i];
        char two[2] = {(char)(0xc0 | c >> 6), (char)(0x80 | (c & 0x3f))};
        buf_str(out, c < 0x80 ? (struct str){&text[i], 1} : (struct str){two, 2});
    }
}

/* Appends a shared key's text, but for its first `skip` bytes. A NUL and a byte of flags stand behind it. */
static bool add_key(struct reading *r, uint64_t key, uint32_t skip)
{
    char text[RUNTIME_NAME_MAX + 2];
    unsigned char head[KEY_TEXT];
    if (key % 8 != 0 || read_some(r, key, head, sizeof head) != sizeof head) {
        return false;
    }
    uint32_t len = load_u32(head + KEY_LENGTH);
    if (len <= skip || len > RUNTIME_NAME_MAX || read_some(r, key + KEY_TEXT, text, len + 2) != len + 2) {
        return false;
    }
    if ((text[len + 1] & IS_UTF8) != 0) {
        buf_str(&r->text, (struct str){text + skip, len - skip});
    } else {
        add_latin_1(&r->text, text + skip, len - skip);
    }
    return is_text((struct str){text + skip, len - skip});
}

/* ---- packages and globs ---- */

/* Where a hash has what only packages have; 0: nowhere. */
static uint64_t aux_of(struct reading *r, const unsigned char *hash)
{
    uint64_t body = load_u64(hash + SV_BODY), last;
    if (r->names->perl->layout.aux_in_body) {
        return body + 32;
    }
    return walk_read_exactly(r->memory, body + HASH_MAX, &last, sizeof last) && last < 1U << 24
               ? load_u64(hash + SV_UNION) + 8 * (last + 1)
               : 0;
}

static bool add_package(struct reading *r, uint64_t stash)
{
    unsigned char hash[SV_BYTES], aux[AUX_BYTES];
    uint64_t key;
    if (!walk_read_exactly(r->memory, stash, hash, sizeof hash) || !perl_is(load_u32(hash + SV_FLAGS), PERL_HV) ||
        !walk_read_exactly(r->memory, aux_of(r, hash), aux, sizeof aux)) {
        return false;
    }
    int32_t count = (int32_t)load_u32(aux + AUX_COUNT);
    key = load_u64(aux);
    if (count != 0 && !walk_read_exactly(r->memory, key + (count < 0 ? 8 : 0), &key, sizeof key)) {
        return false;
    }
    return add_key(r, key, 0);
}

static bool read_glob(struct reading *r, uint64_t gv, unsigned char sv[SV_BYTES], unsigned char body[GV_BYTES])
{
    return walk_read_exactly(r->memory, gv, sv, SV_BYTES) && perl_is(load_u32(sv + SV_FLAGS), PERL_GV) &&
           walk_read_exactly(r->memory, load_u64(sv + SV_BODY), body, GV_BYTES);
}

/* "Package::name": by the glob that the sub was first known by, if the one that it has leads to it. */
static bool add_glob(struct reading *r, uint64_t gv)
{
    unsigned char sv[SV_BYTES], body[GV_BYTES], other[SV_BYTES], other_body[GV_BYTES];
    uint64_t effective;
    if (!read_glob(r, gv, sv, body)) {
        return false;
    }
    if (walk_read_exactly(r->memory, load_u64(sv + SV_UNION) + GLOB_EFFECTIVE, &effective, sizeof effective) &&
        effective != gv && read_glob(r, effective, other, other_body)) {
        memcpy(body, other_body, sizeof body);
    }
    if (add_package(r, load_u64(body + GV_STASH))) {
        buf_text(&r->text, "::");
    } else {
        buf_clear(&r->text);
    }
    return add_key(r, load_u64(body + GV_NAME), 0);
}

/* ---- files ---- */

/* Texts that are given to eval are numbered: of all at one place the number is left out. */
static void unnumber(struct buf *text)
{
    struct str all = buf_slice(text);
    if (str_starts(all, STR("(eval ")) && str_ends(all, STR(")"))) {
        buf_clear(text);
        buf_text(text, "(eval)");
    }
}

/* A file's name by what a cop has: where it stands, or without threads the glob that has it after "_<". */
static bool add_file(struct reading *r, uint64_t at)
{
    unsigned char sv[SV_BYTES], body[GV_BYTES];
    buf_clear(&r->text);
    bool good = r->names->perl->threaded
                    ? add_c_text(r, at)
                    : read_glob(r, at, sv, body) && add_key(r, load_u64(body + GV_NAME), 2);
    unnumber(&r->text);
    return good;
}

static struct str file_of(struct reading *r, uint64_t at)
{
    return add_file(r, at) ? cache_text(&r->names->cache, &r->text) : STR("");
}

/* ---- subs ---- */

/* A sub begins with the cop of its first statement; its file is known without. */
static void read_start(struct reading *r, const unsigned char *body, struct function *out)
{
    unsigned char cop[COP_BYTES];
    uint64_t op = load_u64(body + (CV_START - CV_AT));
    out->first_line = 0;
    if (read_some(r, op + COP_AT, cop, sizeof cop) == sizeof cop && load_u32(cop + (COP_LINE - COP_AT)) < LINES_MAX) {
        out->file = file_of(r, load_u64(cop + (COP_FILE - COP_AT)));
        out->first_line = out->file.len > 0 ? load_u32(cop + (COP_LINE - COP_AT)) : 0;
    }
    buf_clear(&r->text);
    if (out->file.len == 0 && add_c_text(r, load_u64(body + (CV_FILE - CV_AT)))) {
        unnumber(&r->text);
        out->file = cache_text(&r->names->cache, &r->text);
    }
}

static bool name_sub(struct reading *r, const unsigned char *body)
{
    uint64_t name = load_u64(body + (CV_GV - CV_AT));
    buf_clear(&r->text);
    if ((load_u32(body + (CV_FLAGS - CV_AT)) & IS_NAMED) == 0) {
        return add_glob(r, name);
    }
    if (add_package(r, load_u64(body + (CV_STASH - CV_AT)))) {
        buf_text(&r->text, "::");
    } else {
        buf_clear(&r->text);
    }
    return add_key(r, name, 0);
}

/* Is it still the one that the walk met? */
static bool read_body(struct reading *r, uint64_t at, uint64_t check, unsigned char body[CV_BYTES])
{
    unsigned char cv[SV_BYTES];
    return walk_read_exactly(r->memory, at, cv, sizeof cv) &&
           walk_read_exactly(r->memory, load_u64(cv + SV_BODY) + CV_AT, body, CV_BYTES) &&
           perl_cv_check(at, load_u64(cv + SV_BODY), body) == check;
}

/* What was read of it is believed if it is there still. */
static bool read_sub(struct reading *r, uint64_t at, struct function *out)
{
    unsigned char body[CV_BYTES], again[CV_BYTES];
    if (!read_body(r, at, out->check, body) || !name_sub(r, body)) {
        return false;
    }
    out->name = cache_text(&r->names->cache, &r->text);
    read_start(r, body, out);
    return out->name.len > 0 && read_body(r, at, out->check, again);
}

/* Does the file's name still stand where the walk met it? */
static bool file_stands(struct reading *r, uint64_t at, uint64_t check)
{
    unsigned char bytes[PERL_FILE_BYTES];
    uint32_t wanted = (uint32_t)(check >> PERL_FILE_SHIFT) & PERL_FILE_MASK;
    return wanted == 0 ||
           perl_file_check(bytes, read_some(r, at, bytes, sizeof bytes), r->names->perl->threaded) == wanted;
}

static const char *kind_name(uint32_t kind)
{
    static const char *const texts[] = {
        [PERL_SUB] = "", [PERL_EVAL] = "(eval)", [PERL_REQUIRE] = "(require)", [PERL_MAIN] = "<main>"};
    return kind <= PERL_MAIN ? texts[kind] : "";
}

static bool read_other(struct reading *r, struct function *out)
{
    out->name = str_of(kind_name(out->kind));
    out->file = file_of(r, out->code);
    out->first_line = out->kind == PERL_EVAL ? (uint32_t)out->check : 1;
    return out->name.len > 0 && file_stands(r, out->code, out->check);
}

/* ---- the cache ---- */

static const struct function *read_function(struct names *n, const struct function *key, uint64_t code,
                                            struct memory_batch *memory)
{
    struct function function = *key;
    struct reading r = {.names = n, .memory = memory};
    buf_init(&r.text, RUNTIME_NAME_MAX);
    bool good = key->kind == PERL_SUB ? read_sub(&r, code, &function) : read_other(&r, &function);
    buf_release(&r.text);
    return good ? cache_add(&n->cache, &function) : NULL;
}

static bool is_closure(const struct runtime_frame *frame)
{
    return frame->check >> PERL_KIND_SHIFT == PERL_SUB && (frame->check & PERL_CLONED) != 0;
}

void perl_name_frames(void *names, const struct runtime_frame *frames, size_t count, struct memory_batch *memory,
                      struct runtime_name *out)
{
    struct names *n = names;
    cache_begin(&n->cache, count);
    for (size_t i = 0; i < count; i++) {
        const struct function key = {.code = is_closure(&frames[i]) ? 0 : frames[i].code, .check = frames[i].check,
                                     .kind = (uint32_t)(frames[i].check >> PERL_KIND_SHIFT)};
        bool is_shim = (frames[i].flags & RUNTIME_FRAME_SHIM) != 0;
        const struct function *f = is_shim ? NULL : cache_find(&n->cache, &key);
        f = f != NULL || is_shim ? f : read_function(n, &key, frames[i].code, memory);
        /* what it is is known also where its file's name is gone */
        out[i] = (struct runtime_name){.function = str_of(is_shim ? "" : kind_name(key.kind)), .file = STR(""),
                                       .may_change = !is_shim};
        if (f != NULL) {
            out[i] = (struct runtime_name){.function = f->name, .file = f->file, .first_line = f->first_line,
                                           .line = frames[i].position};
        }
    }
}

void *perl_open_names(const void *state)
{
    struct names *n = calloc(1, sizeof *n);
    if (n == NULL || !cache_open(&n->cache)) {
        free(n);
        return NULL;
    }
    n->perl = state;
    return n;
}

void perl_close_names(void *names)
{
    struct names *n = names;
    if (n == NULL) {
        return;
    }
    cache_release(&n->cache);
    free(n);
}
