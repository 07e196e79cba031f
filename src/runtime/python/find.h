/*
 * find: what the files of attach share: one process while its interpreter is looked for.
 */
#ifndef RUNTIME_PYTHON_FIND_H
#define RUNTIME_PYTHON_FIND_H

#include "runtime/python/binary.h"

enum {
    FIND_THREADS_MAX = 64,  /* checked closely */
    FIND_READS_MAX = 32768, /* of one attach: 8192 threads checked three times, some 30 ms */
};

struct found_thread {
    uint64_t address;
    uint64_t pthread; /* pthread_self */
    uint64_t native;  /* gettid; 0: not known */
    uint64_t frame;   /* frame, cframe or current_frame */
};

struct find {
    const struct python_binary *binary;
    const struct runtime_process *process;
    struct python *python; /* being filled in */
    struct found_thread threads[FIND_THREADS_MAX];
    size_t thread_count; /* kept */
    size_t threads_seen;
    unsigned reads;
    bool is_proven;      /* a frame led to a code object */
    struct err *err;     /* why it is refused */
    struct err *unread;  /* why memory could not be read at all; goes before that */
};

/* find.c: exactly `len` bytes of the process; false when they are not all there, or too much was
 * read. */
bool find_read(struct find *f, uint64_t address, void *out, size_t len);
bool find_word(struct find *f, uint64_t address, uint64_t *out);

/* A number of at most 8 bytes, little-endian, in bytes that were read. */
uint64_t find_number(const unsigned char *bytes, uint32_t at, size_t width);

/* find.c: does the NUL-terminated text at `address` equal `text` (at most 30 bytes)? */
bool find_is_text(struct find *f, uint64_t address, const char *text);

/* find.c: is the aligned address in memory that can be read and written? */
bool find_is_data(struct find *f, uint64_t address);

/* find.c: is it a thread of the process, as its own PID namespace numbers them? */
bool find_is_tid(struct find *f, uint64_t tid);

/* scan.c: calls `each` with pieces of the file's writable data in this process, at multiples of 8,
 * until it returns true; false when it never does. Pieces overlap by `overlap` bytes. */
struct find_piece {
    const unsigned char *bytes;
    size_t len;
    uint64_t address;
};
bool find_scan(struct find *f, size_t overlap,
               bool (*each)(void *context, const struct find_piece *piece), void *context);

/* scan.c: shows `accept` the places of pointers that could be the one to the first interpreter, by
 * what they lead to, until it returns true. */
bool find_head_by_scan(struct find *f, bool (*accept)(struct find *f, uint64_t head));

/* scan.c: PY_VERSION_HEX from the text that Py_GetVersion gives; 0: there is none. */
uint32_t find_version_text(struct find *f);

/* members.c: is this a type object of the name? Its ob_type stands at `type_at`. */
bool find_is_type(struct find *f, uint64_t address, uint32_t name_at, const char *name);

/* members.c: holds the layout of code objects against PyCode_Type's own member table, and takes the
 * table's word where they differ. False when that cannot be. */
bool find_check_members(struct find *f);

/* pthread.c: where libc's thread structure has the thread's number. */
bool find_tid_in_pthread(struct find *f);

#endif
