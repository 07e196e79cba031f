/*
 * layout: where the fields of CPython's structures are, in one build of one version.
 *
 * All offsets are bytes in the structure named. LAYOUT_NONE: this version has no such field.
 */
#ifndef RUNTIME_PYTHON_LAYOUT_H
#define RUNTIME_PYTHON_LAYOUT_H

#include "base/err.h"
#include "base/iface.h"
#include "elf/elf.h"

#include <stdint.h>

/* No layout asks for more bytes than this; real ones have 312, 80, 144. */
enum {
    LAYOUT_THREAD_MAX = 512,
    LAYOUT_FRAME_MAX = 160,
    LAYOUT_CODE_MAX = 256,
};

#define PYTHON_VERSION(major, minor) ((uint32_t)(major) << 24 | (uint32_t)(minor) << 16)

enum python_frames {
    PYTHON_FRAMES_HEAP,    /* up to 3.10: frame objects, tstate.frame */
    PYTHON_FRAMES_CFRAME,  /* 3.11, 3.12: tstate.cframe, whose current_frame is the top */
    PYTHON_FRAMES_CURRENT, /* 3.13 on: tstate.current_frame */
};

enum python_lines {
    PYTHON_LNOTAB_UNSIGNED, /* 2.7, 3.5 */
    PYTHON_LNOTAB,          /* 3.6 to 3.9 */
    PYTHON_LINETABLE,       /* 3.10 */
    PYTHON_LOCATIONS,       /* 3.11 on */
};

struct python_layout {
    uint32_t version;   /* PY_VERSION_HEX; the last byte is 0 where only the minor version is known */
    bool free_threaded;
    uint8_t frames;     /* enum python_frames */
    uint8_t lines;      /* enum python_lines */

    struct {
        uint32_t head;      /* first interpreter, in _PyRuntime (3.7 on) or at `interp_head` itself: 0 */
        uint32_t current;   /* tstate that holds the GIL, in _PyRuntime (3.7 to 3.11), else NONE */
        uint32_t finalizing;
    } runtime;
    struct {
        uint32_t bytes;     /* to read for all of these */
        uint32_t next, threads, id;
        uint32_t modules;   /* sys.modules; NONE from 3.14 on, and no part of `bytes` */
        uint32_t collecting; /* int: the garbage collector runs; NONE below 3.9 */
        uint32_t gil;       /* pointer to the GIL's state, 3.12 on; holder and locked lie in it */
        uint32_t gil_holder, gil_locked;
        uint32_t code_generation, tlbc_generation; /* u64, u32: 3.14 on */
    } interp;
    struct {
        uint32_t bytes;
        uint32_t next, interp;
        uint32_t frame;     /* frame, cframe or current_frame: `frames` tells which */
        uint32_t cframe_top; /* in _PyCFrame: the top frame, 3.11 and 3.12 */
        uint32_t thread_id; /* pthread_self */
        uint32_t native_thread_id; /* 3.11 on */
        uint32_t chunk, top; /* datastack_chunk, datastack_top: 3.11 on */
        uint32_t status;    /* u32 bits, 3.12 on */
        uint32_t holds_gil; /* int, 3.14 on */
        uint32_t gil_requested; /* int, 3.15 on */
        uint32_t base_frame; /* 3.15 on: where the chain of frames ends */
    } thread;
    struct {
        uint32_t bytes;     /* to read of a frame for all of these */
        uint32_t previous;  /* f_back */
        uint32_t code;      /* f_code, f_executable */
        uint32_t position;  /* f_lasti (int), prev_instr or instr_ptr (pointer) */
        uint32_t owner;     /* char: 3.11 on */
        uint32_t is_entry;  /* char: 3.11 */
        uint32_t tlbc_index; /* free-threaded 3.14 on */
        uint32_t locals;    /* localsplus */
        uint32_t top;       /* pointer past the values on its stack; NONE below 3.14 */
    } frame;
    struct {
        uint32_t bytes;     /* to read of a code object for all of these but its bytecode */
        uint32_t argcount, flags, first_line;
        uint32_t file, name, qualname;
        uint32_t lines;     /* co_lnotab, co_linetable */
        uint32_t bytecode;  /* co_code_adaptive: the bytecode itself (3.11 on); co_code: a bytes object */
        uint32_t version;   /* co_version, 3.12 on */
        uint32_t tlbc;      /* free-threaded 3.14 on */
    } code;
    struct {
        uint32_t bytes;     /* of a generator or coroutine, with its frame; NONE below 3.14 */
        uint32_t state;     /* gi_frame_state, a byte */
        uint32_t frame;     /* gi_iframe */
    } generator;
    struct {
        uint32_t type, size; /* ob_type, ob_size */
        uint32_t bytes_data; /* ob_sval */
        uint32_t str_length, str_state;
        uint32_t str_ascii;  /* data of compact ASCII */
        uint32_t str_compact; /* data of other compact */
        uint32_t str_pointer; /* pointer to the data of others */
        uint32_t kind_mask, compact_bit, ascii_bit; /* in the state word */
        uint8_t kind_shift;
    } object;
    struct {
        uint32_t basicsize, members; /* tp_basicsize, tp_members */
    } type;
};

/* The row of a version (PY_VERSION_HEX) before 3.13; false, with its name in `err`, when there is none.
 * `trace_refs`: builds whose objects are linked and so begin 16 bytes later: up to 3.7 those with
 * Py_DEBUG. */
bool python_layout_of(uint32_t version, enum elf_machine machine, bool musl, bool trace_refs,
                      struct python_layout *out, struct err *err);

/* The layout that a process tells itself: the first `len` bytes of its _PyRuntime, 3.13 on. Every
 * offset is checked against the size of its structure. */
bool python_layout_read(const void *runtime, size_t len, struct python_layout *out, struct err *err);

#endif
