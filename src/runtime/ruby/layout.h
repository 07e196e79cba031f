/*
 * layout: where the fields of Ruby's structures are, in one version.
 *
 * All offsets are bytes in the structure named. LAYOUT_NONE: this version has no such field, or it is not known to be
 * there.
 */
#ifndef RUNTIME_RUBY_LAYOUT_H
#define RUNTIME_RUBY_LAYOUT_H

#include "base/err.h"
#include "elf/elf.h"

#include <stdint.h>

#define RUBY_VERSION(major, minor, teeny) ((uint32_t)(major) << 16 | (uint32_t)(minor) << 8 | (uint32_t)(teeny))

/* No layout asks for more bytes than this. */
enum {
    RUBY_THREAD_BYTES = 152, RUBY_EC_BYTES = 80, RUBY_BODY_BYTES = 208, RUBY_FRAME_BYTES = 64, RUBY_LINE_BYTES = 12,
};

struct ruby_layout {
    struct {
        uint32_t main_thread;
        uint32_t threads;   /* list of threads, up to 2.7 */
        uint32_t ractors;   /* list of ractors, 3.0 on */
        uint32_t running;   /* who holds the lock, up to 2.7 */
        uint32_t objspace;  /* pointer to the garbage collector's state */
        uint32_t gc_flags;  /* u32, in that */
    } vm;
    struct {
        uint32_t node;      /* its links in the list of ractors */
        uint32_t threads;
        uint32_t running;   /* who holds the ractor's lock */
    } ractor;
    struct {                /* its links in the list of threads come first */
        uint32_t vm;
        uint32_t ec;        /* pointer to the execution context; up to 2.4 it stands here itself */
        uint32_t native;    /* pointer to what describes the system's thread, 3.2 on */
        uint32_t pthread;   /* pthread_self: in that, or in the thread itself */
    } thread;
    uint32_t ec_thread;     /* in an execution context: pointer back to the thread, 2.5 on */
    uint32_t frame_bytes;   /* of a control frame */
    uint32_t frame_ep;      /* in it: pointer to its environment */
    uint32_t frame_flags;   /* what an environment holds from 2.4 on */
    uint32_t old_kinds;     /* 1: kinds of frames have other numbers, up to 2.4 */
    uint32_t imemo_mask;    /* of the bits that tell what an internal object is */
    struct {                /* what an instruction sequence's `body` points to */
        uint32_t shift;     /* all that follows the kind is so much further on */
        uint32_t old_place; /* 1: where it is real is a field of its own behind the path, up to 2.4 */
        uint32_t local;     /* instruction sequence of the method that a block is in */
        uint32_t lines, line_count, line_index;
        uint32_t line_bytes; /* of an entry */
    } body;
    uint32_t tagged_line;   /* 1: the first line is a tagged integer */
    uint32_t new_strings;   /* 1: a string's length and bytes always stand in the same places */
    uint32_t original_id;   /* in a method's definition */
    uint32_t last_operator; /* tLAST_OP_ID */
    uint32_t class_path;    /* in a class */
    uint32_t singleton_bit, attached; /* the bit among a class's flags; what it is the class of */
};

/* The row of a version; false, with its name in `err`, when there is none. On AArch64 places depend on libc, too. */
bool ruby_layout_of(uint32_t version, enum elf_machine machine, bool musl, struct ruby_layout *out, struct err *err);

#endif
