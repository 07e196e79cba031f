/*
 * code: code objects of another process, read together and believed only when they held still.
 *
 * A code object never changes, but its memory may become another object's while it is read. So each
 * is read once more behind everything it points to: alive and with the same fingerprint before and
 * after, it lived all the while, and with it its names and its table of lines, which it owns.
 *
 * One that ran a moment ago (its fingerprint was taken then) may be freed by now and still look the
 * same. What it points to is then read too, but may be anything.
 *
 * python_codes_heads reads the code objects, python_codes_bodies what those point to that are not
 * `known` by then: together three batches at most, the third for texts and tables that do not fit a
 * window.
 */
#ifndef RUNTIME_PYTHON_CODE_H
#define RUNTIME_PYTHON_CODE_H

#include "base/arena.h"
#include "runtime/python/private.h"

enum {
    CODES_MAX = 32,           /* read together */
    CODE_WINDOW = 256,        /* of what it points to: enough for nearly all */
    CODE_TABLE_MAX = 1 << 20, /* longer tables of lines are taken for none */
};

enum code_part { CODE_FUNCTION, CODE_FILE, CODE_TABLE, CODE_PARTS };

struct code_part_read {
    uint64_t object;           /* its address */
    unsigned char window[CODE_WINDOW];
    uint32_t got;              /* of the window */
    struct python_text text;   /* where in it the content is */
    const unsigned char *data; /* the content; null: could not be read */
};

struct code_read {
    uint64_t address;
    uint64_t check; /* the fingerprint it must have; 0: any */
    uint64_t found; /* the one it has */
    bool alive;     /* is there, and has not changed so far */
    bool freed;     /* but nothing refers to it any more */
    uint32_t known; /* for the caller: not 0 when its body need not be read */
    bool is_alike;  /* for the caller: `known` is another one of the same function */
    uint32_t first_line;
    struct code_part_read part[CODE_PARTS];
    unsigned char head[LAYOUT_CODE_MAX];
};

struct codes {
    const struct python *python;
    struct memory_batch *memory;
    struct code_read at[CODES_MAX];
    size_t count;
    struct arena long_data; /* of content beyond the windows; its maximum is the caller's */
};

void python_codes_heads(struct codes *codes);
void python_codes_bodies(struct codes *codes);

#endif
