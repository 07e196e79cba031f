/*
 * catch_buffer: how a catcher hands over what it caught: one thread writes, one reads, no lock.
 *
 * Entries are contiguous and aligned to 8: a header, the ring's record (a multiple of 8), struct caught
 * (one too). What does not fit before the buffer's end begins anew at its start. An entry is opened with
 * the most that it may need, written in place, and closed with what it took; only then is it seen. What
 * an open entry has not been closed with never was.
 */
#ifndef CAPTURE_CATCH_BUFFER_H
#define CAPTURE_CATCH_BUFFER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct caught;

struct catch_buffer {
    unsigned char *bytes;
    size_t size;         /* a power of two */
    uint64_t head;       /* written so far; the writer's, atomic */
    uint64_t tail;       /* read so far; the reader's, atomic */
    uint64_t opened;     /* where the open entry begins */
};

bool catch_buffer_init(struct catch_buffer *b, size_t size);
void catch_buffer_release(struct catch_buffer *b);

/* The writer: room for an entry of at least `least` bytes and at most `most`; null when there is none. */
void *catch_buffer_open(struct catch_buffer *b, size_t least, size_t most, size_t *room);

/* The writer: bytes that are unused now, contiguous or not. */
size_t catch_buffer_unused(const struct catch_buffer *b);

/* Lengths of the record and, behind it, struct caught (0: there is none). */
void catch_buffer_close(struct catch_buffer *b, size_t record_bytes, size_t caught_bytes);

/* The reader: hands out what was closed until now. `record` is null when its length is 0. */
void catch_buffer_drain(struct catch_buffer *b,
                        void (*each)(void *context, const void *record, size_t len,
                                     const struct caught *caught),
                        void *context);

#endif
