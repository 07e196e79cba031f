/*
 * layout: where the fields of PHP's structures are, in one version.
 *
 * All offsets are bytes in the structure named. LAYOUT_NONE: this version has no such field.
 */
#ifndef RUNTIME_PHP_LAYOUT_H
#define RUNTIME_PHP_LAYOUT_H

#include "base/err.h"

#include <stdbool.h>
#include <stdint.h>

#define PHP_VERSION(major, minor, patch) ((uint32_t)(major) << 16 | (uint32_t)(minor) << 8 | (uint32_t)(patch))

struct php_layout {
    uint32_t stack;   /* in executor_globals: where PHP_ROOT_BYTES begin, */
    uint32_t current; /* and in these the frame that runs; behind ROOT_PAGE_SIZE, where that is told */
    /* in a user's function */
    uint32_t opcodes; /* pointer to its instructions */
    uint32_t last;    /* u32: how many */
    uint32_t filename;
    uint32_t line;    /* u32: the first */
    uint32_t closure_bit, named_bit; /* among its flags: of a closure; of one that is made of a function with a name */
    uint32_t generator;   /* in a generator's object: GENERATOR_BYTES begin */
};

/* What executor_globals tells of the stack: where free memory begins, where the page ends, the page; from 7.3 on the
 * size of pages; the frame that runs. */
enum { ROOT_TOP = 0, ROOT_LIMIT = 8, ROOT_PAGE = 16, ROOT_PAGE_SIZE = 24, PHP_ROOT_BYTES = 40 };

/* A frame (execute_data), in all versions. */
enum {
    FRAME_OPLINE = 0, FRAME_FUNCTION = 24, FRAME_THIS = 32, FRAME_INFO = 40, FRAME_PREVIOUS = 48, PHP_FRAME_BYTES = 56,
    INFO_KIND = 15, INFO_OBJECT = 8, /* of FRAME_THIS */
    INFO_TOP = 1 << 17,              /* C code called the interpreter for it */
    INFO_GENERATOR = 1 << 24,        /* it lies on the heap */
};

/* What a generator's object tells, in all versions: its frame, and the generator that it yields from. The frame that
 * stands for generators between the innermost one and the caller of the outermost lies in the latter's object. */
enum { GENERATOR_FRAME = 0, GENERATOR_INNER = 96, GENERATOR_BYTES = 104, GENERATOR_OBJECT_MAX = 256 };

/* A function, in all versions. */
enum {
    FUNCTION_KIND = 0, FUNCTION_NAME = 8, FUNCTION_SCOPE = 16, PHP_FUNCTION_LEAST = 24,
    PHP_FUNCTION_BYTES = 184, /* up to the first line of any version */
    PHP_INTERNAL = 1, PHP_USER = 2, PHP_EVAL = 4, /* its kind */
};

/* What sapi_globals tells of the request, in all versions: pointers to texts that end with 0, or 0. The URL of most
 * servers has no query. */
enum {
    REQUEST_METHOD = 8, REQUEST_QUERY = 16, REQUEST_SCRIPT = 40, REQUEST_URL = 48,
    REQUEST_AT = REQUEST_METHOD, PHP_REQUEST_BYTES = 48,
};

/* An instruction, in all versions. */
enum { OPLINE_BYTES = 32, OPLINE_LINE = 24 };

/* The row of a version; false, with its name in `err`, when there is none. */
bool php_layout_of(uint32_t version, struct php_layout *out, struct err *err);

#endif
