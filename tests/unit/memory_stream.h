/* A server in memory: what it says, in pieces of any size, and what was written to it. */
#ifndef MEMORY_STREAM_H
#define MEMORY_STREAM_H

#include "base/iface.h"

#include <errno.h>
#include <stdlib.h>

struct memory_stream {
    struct str says;
    size_t said;
    size_t repeats_from; /* with `endless`: where it begins again */
    bool endless;
    size_t step;        /* bytes per read; 0: all that is asked for */
    int ends_with;      /* errno once all was said; 0: an end in order */
    size_t speaks_at;   /* it can be read from once so many bytes were written; 0: only when waited for */
    size_t speaks_until; /* and until so much was said; 0: for good */
    size_t takes;       /* bytes per write; 0: all */
    bool speaks_stuck;  /* or once a write was refused */
    size_t stuck_at;    /* with so many bytes written, writes fail ... */
    int stuck_with;     /* ... with this errno; 0: they do not */
    uint64_t *mono_ns;  /* a clock that goes on ... */
    uint64_t tick_ns;   /* ... by this with every read */
    size_t reads, writes, bytes_read;
    struct buf heard;
    bool closed, was_stuck;
};

static void memory_init(struct memory_stream *m, const char *says)
{
    *m = (struct memory_stream){.says = str_of(says)};
    buf_init(&m->heard, 64 << 20);
}

static inline ptrdiff_t memory_read(void *context, void *to, size_t len, uint64_t deadline_ns,
                                    struct err *err)
{
    struct memory_stream *m = context;
    (void)deadline_ns;
    m->reads++;
    if (m->stuck_with == EAGAIN) {
        m->stuck_with = 0; /* which says: read first */
    }
    if (m->mono_ns != NULL) {
        *m->mono_ns += m->tick_ns;
    }
    if (m->endless && m->said == m->says.len) {
        m->said = m->repeats_from;
    }
    if (m->said == m->says.len) {
        return m->ends_with == 0 ? 0
                                 : err_set(err, ERR_NETWORK, m->ends_with, "%s",
                                           m->ends_with == ETIMEDOUT ? "silence" : "cut") - 1;
    }
    struct str part = str_sub(m->says, m->said, m->step != 0 && m->step < len ? m->step : len);
    memcpy(to, part.ptr, part.len);
    m->said += part.len;
    m->bytes_read += part.len;
    return (ptrdiff_t)part.len;
}

static inline ptrdiff_t memory_write(void *context, const void *from, size_t len,
                                     uint64_t deadline_ns, struct err *err)
{
    struct memory_stream *m = context;
    m->writes++;
    if (m->stuck_with != 0) {
        size_t room = m->stuck_at - m->heard.len;
        if (room == 0) {
            m->was_stuck = true;
            if (m->stuck_with == ETIMEDOUT && m->mono_ns != NULL) {
                *m->mono_ns = deadline_ns;
            }
            return err_set(err, ERR_NETWORK, m->stuck_with, "stuck") - 1;
        }
        len = len < room ? len : room;
    }
    len = m->takes != 0 && m->takes < len ? m->takes : len;
    buf_add(&m->heard, from, len);
    return (ptrdiff_t)len;
}

static inline bool memory_readable(void *context)
{
    struct memory_stream *m = context;
    bool has_more = m->speaks_until == 0 || m->said < m->speaks_until;
    bool may = m->speaks_stuck ? m->was_stuck : m->speaks_at != 0 && m->heard.len >= m->speaks_at;
    return may && has_more;
}

static inline void memory_close(void *context)
{
    struct memory_stream *m = context;
    m->closed = true;
}

static inline struct stream memory_stream_of(struct memory_stream *m)
{
    return (struct stream){memory_read, memory_write, memory_readable, memory_close, m};
}

static inline void memory_release(struct memory_stream *m)
{
    buf_release(&m->heard);
}

#endif
