/*
 * private: what the files of this folder share.
 */
#ifndef RUNTIME_PERL_PRIVATE_H
#define RUNTIME_PERL_PRIVATE_H

#include "base/str.h"
#include "runtime/common/ranges.h"
#include "runtime/common/walk.h"
#include "runtime/perl/perl.h"

#define PERL_VERSION(minor, patch) ((uint32_t)(minor) << 8 | (uint32_t)(patch))

enum {
    PERL_VERSION_TEXT = 16, /* bytes of "5.36.0" */
    PERL_CONTEXT_BYTES = 104, /* the largest */
    PERL_INFO_BYTES = 48,   /* of a stackinfo */
    PERL_INFOS_MAX = 64,    /* arrays of contexts behind each other */
    PERL_CONTEXTS_MAX = 1 << 24, /* those in the middle of so many are not looked at */
    PERL_INTERPRETER_BYTES = 4096, /* at least the part in which the place that is compiled lies */
};

/* Offsets that differ between versions (layout.c). */
struct perl_layout {
    uint32_t curcop, curstackinfo, comppad, modglobal; /* of an interpreter */
    uint32_t info_type;
    uint32_t context_bytes, cv, prevcomppad, eval_name;
    bool aux_in_body;         /* of a hash: where its name is */
};

/* What all versions have. */
enum {
    INFO_CONTEXTS = 8, INFO_PREV = 16, INFO_INDEX = 32, INFO_MAX = 36,
    CONTEXT_TYPE = 0, /* in its low bits, */ CONTEXT_TYPE_MASK = 15,
    TYPE_NULL = 0, TYPE_SUB = 9, TYPE_FORMAT = 10, TYPE_EVAL = 11, TYPE_DEFER = 13,
    CONTEXT_COP = 16, CONTEXT_RETURN = 48,
    COP_AT = 32, COP_LINE = 36, COP_FILE = 48, COP_BYTES = 24, /* what is read of it: from COP_AT on */
    HASH_MAX = 24,
    SV_BODY = 0, SV_FLAGS = 12, SV_UNION = 16, SV_BYTES = 24,
    CV_AT = 32, CV_STASH = 32, CV_START = 40, CV_ROOT = 48, CV_GV = 56, CV_FILE = 64, CV_PADS = 72, CV_FLAGS = 92,
    CV_DEPTH = 96, CV_CLONED = 0x40, CV_BYTES = 72, /* what is read of its body: from CV_AT on */
};

enum perl_type { PERL_GV = 9, PERL_HV = 12, PERL_CV = 13, PERL_FORMAT = 14 };
static inline bool perl_is(uint32_t flags, enum perl_type type)
{
    return (flags & 0xff) == (uint32_t)type;
}

/* What a file tells. Addresses are the file's own; 0: not known. */
struct perl_binary {
    uint32_t version;
    uint64_t interpreter;           /* the pointer to it; or, of a build without threads, */
    uint64_t curcop, curstackinfo, comppad, compiling; /* variables */
    bool threads;                   /* built with threads: files' names are texts, not globs */
    uint64_t entersub, entersub_limit; /* the function that pushes a sub's context */
    struct code_ranges ranges;
    bool has_names_only;            /* it is stripped: what is in no range has no name */
};

/* Where an interpreter has what is read of it. */
struct perl_interpreter {
    uint64_t at; /* 0: in variables of the program */
    uint64_t curcop, curstackinfo, comppad;
    uint64_t compiling, compiling_limit; /* where the place that is compiled lies */
};

/* One process; constant once attach has returned. Addresses are runtime addresses. */
struct perl {
    struct perl_layout layout;
    uint32_t version;
    bool threaded;                  /* built with threads */
    uint32_t tid;                   /* of the thread that began the process, */
    struct perl_interpreter main;   /* and what it runs */
    uint64_t interpreter;           /* the first one; 0: there can be one only */
    uint64_t entersub, entersub_limit;
};

/* What runtime_frame holds: of a sub `code` is its CV and `check` its fingerprint; else `code` is the address of a
 * file's name, and `check` has the first line in its low half, a fingerprint of the name (0: not taken) and in its
 * highest byte what it is. `position` is a line. */
enum perl_kind { PERL_SUB, PERL_EVAL, PERL_REQUIRE, PERL_MAIN };
enum { PERL_KIND_SHIFT = 56, PERL_FILE_SHIFT = 32, PERL_FILE_MASK = (1 << 24) - 1, PERL_FILE_BYTES = 64 };
static inline uint64_t perl_check(enum perl_kind kind, uint64_t low)
{
    return (uint64_t)kind << PERL_KIND_SHIFT | (low & 0xffffffff);
}

/* Never 0. Of the first bytes, PERL_FILE_BYTES at most, of where a file's name stands: a text, or without threads a
 * glob. */
uint32_t perl_file_check(const unsigned char *bytes, uint32_t len, bool is_text);

/* What `check` is of a CV with this body, whose bytes from CV_AT on these are. All closures that one piece of code
 * makes have the same: they are one function, whichever of them still exists when it is named. */
#define PERL_CLONED ((uint64_t)1 << 32)
uint64_t perl_cv_check(uint64_t cv, uint64_t body, const unsigned char *bytes);

void perl_version_text(uint32_t version, char out[static PERL_VERSION_TEXT]);
bool perl_layout_of(uint32_t version, struct perl_layout *out, struct err *err);

enum runtime_answer perl_recognise(struct elf *elf, struct str path, const struct runtime_code *code, void **binary,
                                   struct err *why);
void perl_forget(void *binary);

/* ops.c: the functions of operations. Null: no memory; an operation that is not known: 0. */
struct perl_ops;
struct perl_ops *perl_ops_open(struct elf *elf);
void perl_ops_close(void *ops);
uint64_t perl_ops_find(const struct perl_ops *ops, const char *name);
/* The operation of this number; false: there are no more. */
bool perl_ops_at(const struct perl_ops *ops, size_t number, uint64_t *start, const char **name);
void *perl_open_code(struct elf *elf, struct err *why);
bool perl_resolve(void *code, const struct runtime_place *at, struct runtime_resolved *out);

/* loop.c: fills in where code is. */
void perl_find_code(struct elf *elf, const struct runtime_code *code, struct perl_binary *binary);
enum runtime_native perl_native_at(const void *binary, uint64_t elf_address);

enum runtime_answer perl_attach(const void *binary, const struct runtime_process *process, void **state,
                                struct err *why);
void perl_detach(void *state);
void perl_describe(const void *state, struct buf *out);

/* thread.c: the interpreter of a thread of the module threads. */
struct perl_thread {
    uint32_t tid, missed, steps;
    uint64_t resume;             /* where the search goes on */
    uint64_t interpreter, interpreter_at, tid_at; /* 0: not found; where that stands, and the thread's number */
};
struct perl_interpreter perl_interpreter_at(const struct perl_layout *l, uint64_t at);
bool perl_find_thread(const struct perl *perl, struct memory_batch *memory, struct perl_thread *t);

void perl_walk(const void *state, void *plan, const struct runtime_thread *thread, struct memory_batch *memory,
               struct runtime_stack *out);

void *perl_open_names(const void *state);
void perl_close_names(void *names);
void perl_name_frames(void *names, const struct runtime_frame *frames, size_t count, struct memory_batch *memory,
                      struct runtime_name *out);

#endif
