/* What stripped programs have no symbols for is searched for in their writable data. */
#include "runtime/python/find.h"

#include <stdlib.h>

enum {
    PIECE_BYTES = 64 * 1024,
    SCAN_MAX_BYTES = 16 << 20,
    CANDIDATES = 256, /* pointers followed at once */
    ACCEPTS_MAX = 256, /* that pass, and are checked closely */
    VERSION_BYTES = 32,
    PROT_WRITE = 2,
};

/* ---- pieces ---- */

/* .bss is the end of the file's writable mapping and the nameless memory right behind it. */
static bool is_bss(const struct runtime_process *process, size_t index)
{
    const struct runtime_map *map = &process->maps[index];
    const struct runtime_map *before = index > 0 ? map - 1 : NULL;
    return (map->prot & PROT_WRITE) != 0 && map->anonymous && before != NULL &&
           before->limit == map->start && before->of_binary;
}

static bool is_data(const struct runtime_process *process, size_t index)
{
    const struct runtime_map *map = &process->maps[index];
    return (map->prot & PROT_WRITE) != 0 && map->of_binary;
}

static bool scan_map(struct find *f, const struct runtime_map *map, size_t overlap,
                     unsigned char *buffer, uint64_t *left,
                     bool (*each)(void *, const struct find_piece *), void *context)
{
    uint64_t at = map->start;
    while (at < map->limit && *left >= PIECE_BYTES) {
        uint64_t len = map->limit - at < PIECE_BYTES ? map->limit - at : PIECE_BYTES;
        struct memory_piece read = {.address = at, .out = buffer, .len = (uint32_t)len};
        if (!memory_batch_read(f->process->memory, &read, 1, f->unread)) {
            return false;
        }
        struct find_piece piece = {buffer, read.got, at};
        *left -= PIECE_BYTES;
        if (each(context, &piece)) {
            return true;
        }
        if (read.got < len || len < PIECE_BYTES) {
            return false;
        }
        at += len - overlap;
    }
    return false;
}

bool find_scan(struct find *f, size_t overlap,
               bool (*each)(void *context, const struct find_piece *piece), void *context)
{
    unsigned char *buffer = malloc(PIECE_BYTES);
    uint64_t left = SCAN_MAX_BYTES;
    bool found = false;
    for (unsigned pass = 0; pass < 2; pass++) { /* .bss is smaller, and mostly what is wanted */
        for (size_t i = 0; buffer != NULL && !found && i < f->process->map_count; i++) {
            found = (pass == 0 ? is_bss(f->process, i) : is_data(f->process, i)) &&
                    scan_map(f, &f->process->maps[i], overlap, buffer, &left, each, context);
        }
    }
    free(buffer);
    return found;
}

/* ---- the first interpreter ---- */

/* A pointer that could be it, what stands where an interpreter has its first thread, and where that
 * thread has its interpreter. */
struct candidate {
    uint64_t at, interp, thread, back;
};

struct head_scan {
    struct find *find;
    struct candidate all[CANDIDATES];
    struct memory_piece pieces[CANDIDATES];
    size_t count;
    bool (*accept)(struct find *f, uint64_t head);
    unsigned accepts;
};

static bool read_pieces(struct head_scan *s)
{
    return memory_batch_read(s->find->process->memory, s->pieces, s->count, s->find->unread);
}

static bool follow_interpreters(struct head_scan *s)
{
    uint32_t offset = s->find->python->layout.interp.threads;
    size_t kept = 0;
    for (size_t i = 0; i < s->count; i++) {
        struct candidate *c = &s->all[i];
        s->pieces[i] = (struct memory_piece){c->interp + offset, &c->thread, 8, 0};
    }
    bool good = read_pieces(s);
    for (size_t i = 0; good && i < s->count; i++) {
        if (s->pieces[i].got == 8 && find_is_data(s->find, s->all[i].thread)) {
            s->all[kept++] = s->all[i];
        }
    }
    s->count = kept;
    return good;
}

static bool follow_threads(struct head_scan *s)
{
    uint32_t offset = s->find->python->layout.thread.interp;
    for (size_t i = 0; i < s->count; i++) {
        struct candidate *c = &s->all[i];
        c->back = 0;
        s->pieces[i] = (struct memory_piece){c->thread + offset, &c->back, 8, 0};
    }
    return read_pieces(s);
}

/* Rings of two, of which a process has many, pass this as well: `accept` decides. */
static bool is_head(struct head_scan *s, const struct candidate *c)
{
    return c->back == c->interp && s->accepts++ < ACCEPTS_MAX && s->accept(s->find, c->at);
}

static bool test_candidates(struct head_scan *s)
{
    bool good = follow_interpreters(s) && follow_threads(s);
    for (size_t i = 0; good && i < s->count; i++) {
        if (is_head(s, &s->all[i])) {
            return true;
        }
    }
    s->count = 0;
    return false;
}

static bool take_pointers(void *context, const struct find_piece *piece)
{
    struct head_scan *s = context;
    for (size_t at = 0; at + 8 <= piece->len; at += 8) {
        uint64_t value = find_number(piece->bytes, (uint32_t)at, 8);
        if (!find_is_data(s->find, value)) {
            continue;
        }
        s->all[s->count++] = (struct candidate){.at = piece->address + at, .interp = value};
        if (s->count == CANDIDATES && test_candidates(s)) {
            return true;
        }
    }
    return s->count > 0 && test_candidates(s);
}

bool find_head_by_scan(struct find *f, bool (*accept)(struct find *f, uint64_t head))
{
    struct head_scan *s = malloc(sizeof *s);
    bool found = false;
    if (s != NULL) {
        s->find = f;
        s->accept = accept;
        s->count = 0;
        s->accepts = 0;
        found = find_scan(f, 0, take_pointers, s);
    }
    free(s);
    return found;
}

/* ---- the version ---- */

static bool take_version(void *context, const struct find_piece *piece)
{
    uint32_t *version = context;
    for (size_t at = 0; at + VERSION_BYTES <= piece->len; at++) {
        struct str text = {(const char *)piece->bytes + at, VERSION_BYTES};
        size_t len;
        if (text.ptr[1] != '.' || (at > 0 && text.ptr[-1] != '\0')) {
            continue;
        }
        *version = python_version_of(text, &len);
        if (*version != 0 && str_starts(str_sub(text, len, text.len), STR(" ("))) {
            return true; /* "3.9.18 (main, Jan  2 2024, 03:04:05) \n[GCC 12.2.0]" */
        }
    }
    return false;
}

uint32_t find_version_text(struct find *f)
{
    uint32_t version = 0;
    return find_scan(f, VERSION_BYTES, take_version, &version) ? version : 0;
}
