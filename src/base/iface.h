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

/* Several pieces of another process's memory at once. They are read in the order given, with as few
 * system calls as can be, so a piece that stands both first and last brackets what lies between. Each
 * piece's `got` says how many of its bytes could be read; the others are not written. */
struct memory_piece {
    uint64_t address;
    void *out;
    uint32_t len;
    uint32_t got;
};

/* False when nothing can be read at all: the process ended or refuses (`err` says which, and
 * every `got` is 0). A piece that is not mapped is no failure. */
struct memory_batch {
    bool (*read)(void *context, struct memory_piece *pieces, size_t count, struct err *err);
    void *context;
};

static inline bool memory_batch_read(struct memory_batch *memory, struct memory_piece *pieces,
                                     size_t count, struct err *err)
{
    return memory->read(memory->context, pieces, count, err);
}

/* A connection. Calls wait until something moved or the deadline (monotonic) passed; a deadline is
 * ERR_NETWORK with ETIMEDOUT, a connection cut by the other side ERR_NETWORK with its errno. */
struct stream {
    /* Bytes read, at least one; 0: the other side ended in order; -1: err. */
    ptrdiff_t (*read)(void *context, void *to, size_t len, uint64_t deadline_ns, struct err *err);
    /* Bytes taken, at least one; -1: err. */
    ptrdiff_t (*write)(void *context, const void *from, size_t len, uint64_t deadline_ns,
                       struct err *err);
    /* Is there something to read, or an end, now? Does not wait: a server may respond
     * before it has read everything. */
    bool (*readable)(void *context);
    /* Ends it and frees the context. */
    void (*close)(void *context);
    void *context;
    unsigned char peer[16]; /* of a dialer: the address that was reached, IPv4 or IPv6 */
    size_t peer_len;        /* 0: none is known */
    /* Says that nothing more will be written; what comes can still be read. Null: it cannot be said. */
    void (*end)(void *context);
};

/* Writes all of it. */
bool stream_write(const struct stream *stream, struct str bytes, uint64_t deadline_ns, struct err *err);

/* Where connections come from. `host` is a name, an address (IPv6 without brackets), or the path of a Unix
 * socket, absolute or, for an abstract one, with a leading "@"; port 0 says that it is a path. A dial that
 * fails names what was tried: the name, or the address and port. */
struct dialer {
    bool (*dial)(void *context, struct str host, uint16_t port, uint64_t deadline_ns,
                 struct stream *out, struct err *err);
    void *context;
};

/*
 * A process of its own for code that cannot be trusted with foreign bytes. It has a copy of this
 * process's memory and may compute; the only way out is the connection to its parent, which treats
 * what it reads there as hostile. os/sandbox.h says what it is denied.
 */
struct sandbox_port { /* what the child has */
    bool (*write)(void *context, const void *ptr, size_t len);
    /* Waits for the next file that the parent gives and maps it, for reading. False: it was refused. */
    bool (*take)(void *context, void **ptr, size_t *len);
    void (*no_memory)(void) __attribute__((noreturn));
    void *context;
};

enum sandbox_end {
    SANDBOX_DONE,      /* `run` returned */
    SANDBOX_STOPPED,   /* the parent ended it before */
    SANDBOX_CRASHED,
    SANDBOX_FILE_LOST, /* what it had mapped became shorter, or its disk failed */
    SANDBOX_NO_MEMORY, /* it ended itself for want of memory */
    SANDBOX_DENIED,    /* the system has no filter of system calls for it: nothing was run */
};

struct sandbox {
    /* Runs `run` in a child; null: there can be none (err). */
    void *(*start)(void *context, void (*run)(void *argument, const struct sandbox_port *port),
                   void *argument, struct err *err);
    /* Bytes read, at least one; 0: the child has closed its end; -1: the deadline (monotonic) has passed. */
    ptrdiff_t (*read)(void *child, void *to, size_t max, uint64_t deadline_ns);
    /* Gives it a file, or a refusal: with null, or where the reader is not that of a file. False: it
     * does not take it. */
    bool (*give)(void *child, const struct memory_reader *file);
    /* Ends the child, if it has not ended, and frees the handle. */
    enum sandbox_end (*end)(void *child);
    void *context;
};

/*
 * Another process, for who speaks with it as its runtime's own tools do: its texts, files below its root, sockets that
 * it listens at, one signal. Everything is done as its user, but for a connection by TCP. Paths are its own and
 * absolute, but where it says else; what one of its users may have put there leads nowhere else than below its root.
 */
struct process_port {
    uint32_t pid;       /* here, … */
    uint32_t inner_pid; /* … as the process itself knows it */
    /* Replaces `out` by /proc/PID/NAME. */
    bool (*text)(void *context, const char *name, struct buf *out, struct err *err);
    /* The names in a folder. */
    bool (*list)(void *context, const char *folder, void (*each)(void *to, const char *name), void *to);
    /* Opens a regular file to be read, and lets go of it. What is open stays readable when its name is gone. */
    bool (*open)(void *context, const char *path, int *file);
    bool (*read)(void *context, int file, struct buf *out, struct err *err); /* replaces `out` by all of it */
    void (*close)(void *context, int file);
    /* Makes a file that is its user's; a relative path is below its working directory. */
    bool (*make)(void *context, const char *path, struct str bytes, struct err *err);
    void (*remove)(void *context, const char *path);
    /* False: it has no handler for the signal, and gets none; or may not be sent one. */
    bool (*signal)(void *context, int number, struct err *err);
    /* Is there a socket at this path? */
    bool (*listens)(void *context, const char *path);
    /* Writes to such a socket and reads to the end of the answer. */
    bool (*ask)(void *context, const char *path, struct str request, struct buf *answer, uint64_t timeout_ms,
                struct err *err);
    void (*pause)(void *context, uint64_t ms);
    uint64_t (*now_ns)(void *context); /* monotonic */
    /* Is a socket its own, by the number that net/tcp tells? */
    bool (*owns)(void *context, uint64_t inode);
    /* Has it our network namespace? Else it cannot be dialed. */
    bool (*shares_network)(void *context);
    /* Connects to a port of the loopback interface. */
    bool (*dial)(void *context, uint16_t port, bool is_v6, uint64_t deadline_ns, struct stream *out, struct err *err);
    /* Was one of its children started with this variable in its environment? */
    bool (*has_child_with)(void *context, const char *variable);
    /* The file that it runs. What is read of its memory, where `probe` is mapped, is of a process that runs on. Both
     * are the port's. */
    bool (*program)(void *context, struct memory_reader *out, struct err *err);
    bool (*memory)(void *context, uint64_t probe, struct memory_batch *out, struct err *err);
    uint64_t (*wall_ns)(void *context);
    /* The processor's counter, that runs at the same pace for all. */
    uint64_t (*cycles)(void *context);
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
