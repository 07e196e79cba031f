/* A structure that leads to another one that leads back is known in any version and on any processor, without symbols:
 * pointers in the file's writable data are followed there and back, many at once. Everything read is checked before it
 * is followed. */
#include "runtime/common/find.h"

#include <stdlib.h>

enum {
    CANDIDATES = 256,  /* pointers followed at once */
    ACCEPTS_MAX = 256, /* that pass, and are checked closely */
};

/* A pointer that could be it, what stands at `forth` of what it leads to, and what stands at `back` of that. */
struct candidate {
    uint64_t at, first, second, back;
};

struct ring_scan {
    struct find *find;
    struct candidate all[CANDIDATES];
    struct memory_piece pieces[CANDIDATES];
    size_t count;
    uint32_t forth, back;
    bool (*accept)(void *context, uint64_t at);
    void *context;
    unsigned accepts;
};

/* A batch counts as one read, and what cannot be read as one each: the kernel is asked again behind it. */
static bool read_pieces(struct ring_scan *s)
{
    bool good = s->find->reads++ < FIND_READS_MAX &&
                memory_batch_read(s->find->process->memory, s->pieces, s->count, s->find->unread);
    for (size_t i = 0; good && i < s->count; i++) {
        s->find->reads += s->pieces[i].got < 8;
    }
    return good;
}

static bool follow_first(struct ring_scan *s)
{
    size_t kept = 0;
    for (size_t i = 0; i < s->count; i++) {
        struct candidate *c = &s->all[i];
        s->pieces[i] = (struct memory_piece){c->first + s->forth, &c->second, 8, 0};
    }
    bool good = read_pieces(s);
    for (size_t i = 0; good && i < s->count; i++) {
        if (s->pieces[i].got == 8 && find_is_data(s->find, s->all[i].second)) {
            s->all[kept++] = s->all[i];
        }
    }
    s->count = kept;
    return good;
}

static bool follow_second(struct ring_scan *s)
{
    for (size_t i = 0; i < s->count; i++) {
        struct candidate *c = &s->all[i];
        c->back = 0;
        s->pieces[i] = (struct memory_piece){c->second + s->back, &c->back, 8, 0};
    }
    return read_pieces(s);
}

/* Rings of two, of which a process has many, pass this as well: `accept` decides. */
static bool is_ring(struct ring_scan *s, const struct candidate *c)
{
    return c->back == c->first && s->accepts++ < ACCEPTS_MAX && s->accept(s->context, c->at);
}

static bool test_candidates(struct ring_scan *s)
{
    bool good = follow_first(s) && follow_second(s);
    for (size_t i = 0; good && i < s->count; i++) {
        if (is_ring(s, &s->all[i])) {
            return true;
        }
    }
    s->count = 0;
    return false;
}

static bool take_pointers(void *context, const struct find_piece *piece)
{
    struct ring_scan *s = context;
    for (size_t at = 0; at + 8 <= piece->len; at += 8) {
        uint64_t value = find_number(piece->bytes, (uint32_t)at, 8);
        if (!find_is_data(s->find, value)) {
            continue;
        }
        s->all[s->count++] = (struct candidate){.at = piece->address + at, .first = value};
        if (s->count == CANDIDATES && test_candidates(s)) {
            return true;
        }
    }
    return s->count > 0 && test_candidates(s);
}

bool find_ring(struct find *f, uint32_t forth, uint32_t back, bool (*accept)(void *context, uint64_t at), void *context)
{
    struct ring_scan *s = malloc(sizeof *s);
    bool found = false;
    if (s != NULL) {
        s->find = f;
        s->forth = forth;
        s->back = back;
        s->accept = accept;
        s->context = context;
        s->count = 0;
        s->accepts = 0;
        found = find_scan(f, 0, take_pointers, s);
    }
    free(s);
    return found;
}
