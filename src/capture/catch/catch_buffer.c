#include "capture/catch/catch_buffer.h"

#include <stdlib.h>

struct entry {
    uint32_t bytes; /* this header included */
    uint32_t record_bytes;
};

enum { FILLING = UINT32_MAX }; /* as record_bytes: nothing is here up to the buffer's end */

bool catch_buffer_init(struct catch_buffer *b, size_t size)
{
    *b = (struct catch_buffer){.bytes = calloc(1, size), .size = size};
    return b->bytes != NULL;
}

void catch_buffer_release(struct catch_buffer *b)
{
    free(b->bytes);
    *b = (struct catch_buffer){0};
}

static struct entry *entry_at(const struct catch_buffer *b, uint64_t at)
{
    return (struct entry *)(void *)(b->bytes + (at & (b->size - 1)));
}

static size_t before_end(const struct catch_buffer *b, uint64_t at)
{
    return b->size - (size_t)(at & (b->size - 1));
}

size_t catch_buffer_unused(const struct catch_buffer *b)
{
    return b->size - (size_t)(b->head - __atomic_load_n(&b->tail, __ATOMIC_ACQUIRE));
}

void *catch_buffer_open(struct catch_buffer *b, size_t least, size_t most, size_t *room)
{
    size_t unused = catch_buffer_unused(b), to_end = before_end(b, b->head);
    size_t here = unused < to_end ? unused : to_end, anew = unused - here;
    bool wraps = here < sizeof(struct entry) + most && anew > here;
    size_t got = wraps ? anew : here;
    if (b->bytes == NULL || got < sizeof(struct entry) + least) {
        return NULL;
    }
    b->opened = b->head;
    if (wraps) { /* positions are multiples of 8, so a header always fits before the end */
        *entry_at(b, b->head) = (struct entry){(uint32_t)to_end, FILLING};
        b->opened += to_end;
    }
    got -= sizeof(struct entry);
    *room = got < most ? got : most;
    return entry_at(b, b->opened) + 1;
}

void catch_buffer_close(struct catch_buffer *b, size_t record_bytes, size_t caught_bytes)
{
    struct entry *entry = entry_at(b, b->opened);
    entry->bytes = (uint32_t)(sizeof *entry + record_bytes + caught_bytes);
    entry->record_bytes = (uint32_t)record_bytes;
    __atomic_store_n(&b->head, b->opened + entry->bytes, __ATOMIC_RELEASE);
}

static void hand_out(const struct entry *entry,
                     void (*each)(void *context, const void *record, size_t len,
                                  const struct caught *caught),
                     void *context)
{
    const unsigned char *record = (const unsigned char *)(entry + 1);
    size_t len = entry->record_bytes;
    bool has_caught = entry->bytes > sizeof *entry + len;
    each(context, len > 0 ? record : NULL, len,
         has_caught ? (const struct caught *)(const void *)(record + len) : NULL);
}

void catch_buffer_drain(struct catch_buffer *b,
                        void (*each)(void *context, const void *record, size_t len,
                                     const struct caught *caught),
                        void *context)
{
    uint64_t head = __atomic_load_n(&b->head, __ATOMIC_ACQUIRE), tail = b->tail;
    while (tail != head) {
        const struct entry *entry = entry_at(b, tail);
        if (entry->record_bytes != (uint32_t)FILLING) {
            hand_out(entry, each, context);
        }
        tail += entry->bytes;
        __atomic_store_n(&b->tail, tail, __ATOMIC_RELEASE);
    }
}
