/*
 * What a stripped CPython has no symbols for, in its writable data: the pointer to its first interpreter,
 * known by what it leads to (an interpreter leads to a thread, and that back to it), and the text of
 * its version. Everything read is checked before it is followed.
 */
#include "runtime/python/find.h"

#include <stdlib.h>

enum {
    CANDIDATES = 256, /* pointers followed at once */
    ACCEPTS_MAX = 256, /* that pass, and are checked closely */
    VERSION_BYTES = 32,
};

/* ---- the first interpreter ---- */

/* A pointer that could be it, what stands where an interpreter has its first thread, and where that
 * thread has its interpreter. */
struct candidate {
    uint64_t at, interp, thread, back;
};

struct head_scan {
    struct python_find *find;
    struct candidate all[CANDIDATES];
    struct memory_piece pieces[CANDIDATES];
    size_t count;
    bool (*accept)(struct python_find *f, uint64_t head);
    unsigned accepts;
};

static bool read_pieces(struct head_scan *s)
{
    return memory_batch_read(s->find->in.process->memory, s->pieces, s->count, s->find->in.unread);
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
        if (s->pieces[i].got == 8 && find_is_data(&s->find->in, s->all[i].thread)) {
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
        if (!find_is_data(&s->find->in, value)) {
            continue;
        }
        s->all[s->count++] = (struct candidate){.at = piece->address + at, .interp = value};
        if (s->count == CANDIDATES && test_candidates(s)) {
            return true;
        }
    }
    return s->count > 0 && test_candidates(s);
}

bool python_find_head(struct python_find *f, bool (*accept)(struct python_find *f, uint64_t head))
{
    struct head_scan *s = malloc(sizeof *s);
    bool found = false;
    if (s != NULL) {
        s->find = f;
        s->accept = accept;
        s->count = 0;
        s->accepts = 0;
        found = find_scan(&f->in, 0, take_pointers, s);
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

uint32_t python_find_version(struct python_find *f)
{
    uint32_t version = 0;
    return find_scan(&f->in, VERSION_BYTES, take_version, &version) ? version : 0;
}
