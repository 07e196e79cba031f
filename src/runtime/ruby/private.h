/*
 * private: what the files of this folder share.
 */
#ifndef RUNTIME_RUBY_PRIVATE_H
#define RUNTIME_RUBY_PRIVATE_H

#include "base/str.h"
#include "runtime/common/ranges.h"
#include "runtime/common/walk.h"
#include "runtime/ruby/layout.h"
#include "runtime/ruby/ruby.h"

enum {
    RUBY_VERSION_TEXT = 16, /* bytes of "3.1.2" */
    RUBY_RACTORS_MAX = 1024,
    RUBY_THREADS_MAX = 8192,
    RUBY_EMBEDDED = 1 << 13, /* flag: of an array; of a string that its bytes are not in it */
};

/* What runtime_frame.position holds for a C function; else the low bits of pc / 8. */
#define RUBY_C_FUNCTION UINT32_MAX

/* What a file tells. Addresses are the file's own; 0: not known. */
struct ruby_binary {
    uint32_t version;
    uint64_t vm;      /* the pointer to the virtual machine */
    uint64_t symbols; /* ruby_global_symbols */
    bool musl;
    enum elf_machine machine;
    struct code_ranges ranges;
};

/* One process; constant once attach has returned. Addresses are runtime addresses. */
struct ruby {
    struct ruby_layout layout;
    uint32_t version;
    uint64_t vm;
    uint64_t symbols;  /* 0: C functions have no names */
    uint64_t gc_flags; /* 0: not known */
    uint32_t tid_in_pthread; /* where libc's thread structure holds the tid */
};

void ruby_version_text(uint32_t version, char out[static RUBY_VERSION_TEXT]);

enum runtime_answer ruby_recognise(struct elf *elf, struct str path, const struct runtime_code *code, void **binary,
                                   struct err *why);
void ruby_forget(void *binary);

/* loop.c; the first fills binary->ranges. */
void ruby_find_ranges(struct elf *elf, const struct runtime_code *code, struct ruby_binary *binary);
enum runtime_native ruby_native_at(const void *binary, uint64_t elf_address);

enum runtime_answer ruby_attach(const void *binary, const struct runtime_process *process, void **state,
                                struct err *why);
void ruby_detach(void *state);
void ruby_describe(const void *state, struct buf *out);

void ruby_walk(const void *state, void *plan, const struct runtime_thread *thread, struct memory_batch *memory,
               struct runtime_stack *out);
size_t ruby_running(const void *state, struct memory_batch *memory, uint32_t *tids, size_t most);

/* Fingerprints, never 0: of an instruction sequence's body, its address and its first RUBY_BODY_HEAD bytes; of a
 * method, its RUBY_METHOD_BYTES bytes from RUBY_METHOD_AT on. */
enum { RUBY_BODY_HEAD = 96, RUBY_METHOD_AT = 8, RUBY_METHOD_BYTES = 32 };
uint32_t ruby_body_check(uint64_t address, const unsigned char *head);
uint32_t ruby_method_check(const unsigned char *bytes);

/* What runtime_frame.check holds: of a C function its method's fingerprint, else the fingerprint's low bits below the
 * address of what says which method the frame is of (0: nothing does). RUBY_OF_BLOCK is added to that of a method that
 * was made of a block: each call by a Method has another one, which is freed once it has run, so that it proves nothing
 * of the block. */
enum { RUBY_CHECK_BITS = 16, RUBY_OF_BLOCK = 1 };
static inline uint64_t ruby_frame_check(uint64_t method, uint32_t check)
{
    return method << RUBY_CHECK_BITS | (check & ((1U << RUBY_CHECK_BITS) - 1));
}

void *ruby_open_names(const void *state);
void ruby_close_names(void *names);
void ruby_name_frames(void *names, const struct runtime_frame *frames, size_t count, struct memory_batch *memory,
                      struct runtime_name *out);

/* ---- object.c ---- */

enum ruby_type { RUBY_CLASS = 2, RUBY_MODULE = 3, RUBY_STRING = 5, RUBY_ARRAY = 7, RUBY_IMEMO = 0x1a };
enum ruby_imemo { IMEMO_SVAR = 2, IMEMO_METHOD = 6, IMEMO_ISEQ = 7 };
static inline bool ruby_is(uint64_t flags, enum ruby_type type)
{
    return (flags & 0x1f) == type;
}
static inline bool ruby_is_imemo(const struct ruby_layout *l, uint64_t flags, enum ruby_imemo kind)
{
    return ruby_is(flags, RUBY_IMEMO) && (flags >> 12 & l->imemo_mask) == (uint64_t)kind;
}

/* Where the execution context of a thread is, whose structure these bytes are; and how much of it is looked at. */
static inline uint64_t ruby_ec_of(const struct ruby_layout *l, uint64_t address, const unsigned char *thread)
{
    return has(l->ec_thread) ? load_u64(thread + l->thread.ec) : address + l->thread.ec;
}
static inline uint32_t ruby_ec_bytes(const struct ruby_layout *l)
{
    return has(l->ec_thread) ? l->ec_thread + 8 : 24;
}
/* Does it lead back to the thread? */
static inline bool ruby_is_ec_of(const struct ruby_layout *l, const unsigned char *ec, uint64_t thread)
{
    return !has(l->ec_thread) || load_u64(ec + l->ec_thread) == thread;
}

/* Appends a string's bytes as UTF-8, at most RUNTIME_NAME_MAX of them. False: it is none. */
bool ruby_add_string(const struct ruby_layout *l, struct memory_batch *memory, uint64_t string, struct buf *out);
/* An array's element. */
bool ruby_element(struct memory_batch *memory, uint64_t array, uint64_t index, uint64_t *out);
/* The string that a number of a name (ID) stands for. */
bool ruby_id_string(const struct ruby_layout *l, uint64_t symbols, struct memory_batch *memory, uint64_t id,
                    uint64_t *string);
/* Appends "Class#" or "Class." of the class that owns a method; nothing when it has no name. */
void ruby_add_class(const struct ruby_layout *l, struct memory_batch *memory, uint64_t owner, struct buf *out);

/* ---- lines.c ---- */

struct ruby_lines {
    const unsigned char *entries; /* count * entry_bytes */
    uint32_t count, entry_bytes;
    bool by_position;             /* entries begin with their position: there is no index */
    const unsigned char *index;   /* which positions have entries */
    size_t index_bytes;
};
/* The line at a position; 0: none, or the table is damaged. */
uint32_t ruby_line(const struct ruby_lines *lines, uint32_t position);
/* Bytes of the index of so many positions. */
size_t ruby_index_bytes(uint32_t positions);

#endif
