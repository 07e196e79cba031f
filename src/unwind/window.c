#include "unwind/window.h"

#include <stdlib.h>

void window_init(struct window *w, const struct memory_reader *file, uint64_t limit, size_t ahead)
{
    *w = (struct window){.file = file, .limit = limit, .ahead = ahead};
}

void window_release(struct window *w)
{
    free(w->bytes);
    *w = (struct window){0};
}

static bool holds(const struct window *w, uint64_t offset, size_t len)
{
    return offset >= w->offset && offset - w->offset <= w->len &&
           w->len - (size_t)(offset - w->offset) >= len;
}

static bool move(struct window *w, uint64_t offset, size_t len)
{
    w->offset = offset;
    w->len = 0;
    if (len > w->room) {
        free(w->bytes);
        w->bytes = malloc(len);
        w->room = w->bytes == NULL ? 0 : len;
    }
    if (w->room < len || !w->file->read(w->file->context, offset, w->bytes, len, NULL)) {
        return false;
    }
    w->len = len;
    return true;
}

const unsigned char *window_at(struct window *w, uint64_t offset, size_t len)
{
    if (!holds(w, offset, len)) {
        if (len > WINDOW_BYTES || offset > w->limit || len > w->limit - offset) {
            return NULL;
        }
        uint64_t left = w->limit - offset;
        size_t ahead = len > w->ahead ? len : w->ahead;
        ahead = left < ahead ? (size_t)left : ahead;
        /* a file that was cut has less than its headers say */
        if (!move(w, offset, ahead) && !move(w, offset, len)) {
            return NULL;
        }
    }
    return w->bytes + (offset - w->offset);
}

const unsigned char *window_some(struct window *w, uint64_t offset, size_t len, size_t *have)
{
    uint64_t left = offset < w->limit ? w->limit - offset : 0;
    *have = left < len ? (size_t)left : len;
    return *have == 0 ? NULL : window_at(w, offset, *have);
}
