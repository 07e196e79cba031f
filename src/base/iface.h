/*
 * iface: the interfaces through which the pure folders meet the system.
 *
 * os/ implements them, capture/ hands them in, tests replace them by arrays in memory. Each is a
 * table of functions with a context; the caller borrows it for the length of the call.
 */
#ifndef BASE_IFACE_H
#define BASE_IFACE_H

#include "base/err.h"
#include "base/str.h"

/* Where encoders write: in order, everything or false. An encoder stops at the first failure. */
struct sink {
    bool (*write)(void *context, const void *ptr, size_t len, struct err *err);
    void *context;
};

static inline bool sink_write(struct sink *sink, const void *ptr, size_t len, struct err *err)
{
    return len == 0 || sink->write(sink->context, ptr, len, err);
}

/* A sink that appends to a buffer; fails with ERR_LIMIT at the buffer's maximum. */
struct sink sink_of_buf(struct buf *buf);

/* Reads another process's memory: exactly `len` bytes at `address`, or false. */
struct memory_reader {
    bool (*read)(void *context, uint64_t address, void *out, size_t len, struct err *err);
    void *context;
};

/* Time. Wall time is nanoseconds since 1970 UTC; monotonic time has no epoch and the same clock as
 * perf samples (CLOCK_MONOTONIC). Never mixed: names say which. */
struct clock {
    uint64_t (*mono_ns)(void *context);
    uint64_t (*wall_ns)(void *context);
    void *context;
};

#endif
