/*
 * find: what the files of attach share: one process while its interpreter is searched for.
 */
#ifndef RUNTIME_PYTHON_FIND_H
#define RUNTIME_PYTHON_FIND_H

#include "runtime/common/find.h"
#include "runtime/python/binary.h"

enum { PYTHON_FIND_THREADS_MAX = 64 }; /* checked closely */

struct found_thread {
    uint64_t address;
    uint64_t native;  /* gettid; 0: not known */
    uint64_t frame;   /* frame, cframe or current_frame */
};

struct python_find {
    struct find in;
    const struct python_binary *binary;
    struct python *python; /* being filled in */
    struct found_thread threads[PYTHON_FIND_THREADS_MAX];
    uint64_t pthreads[PYTHON_FIND_THREADS_MAX]; /* pthread_self of these */
    size_t thread_count; /* kept */
    size_t threads_seen;
    bool is_proven;      /* a frame led to a code object */
    struct err *err;     /* why it is refused; in.unread goes before that */
};

/* head.c: PY_VERSION_HEX from the text that Py_GetVersion gives; 0: there is none. */
uint32_t python_find_version(struct python_find *f);

/* members.c: is this a type object of the name? Its ob_type stands at `type_at`. */
bool python_is_type(struct python_find *f, uint64_t address, uint32_t name_at, const char *name);

/* members.c: holds the layout of code objects against PyCode_Type's own member table, and takes the
 * table's word where they differ. False when that cannot be. */
bool python_check_members(struct python_find *f);

#endif
