/*
 * private: what the files of this folder share.
 */
#ifndef RUNTIME_PHP_PRIVATE_H
#define RUNTIME_PHP_PRIVATE_H

#include "base/str.h"
#include "runtime/common/ranges.h"
#include "runtime/common/walk.h"
#include "runtime/php/layout.h"
#include "runtime/php/php.h"

enum {
    PHP_VERSION_TEXT = 16, /* bytes of "8.2.29" */
    PHP_PAGE = 256 << 10,  /* the VM stack's pages, but for larger ones of frames that need it */
    PHP_FIBER_PAGE = 16 << 10, /* a fiber's */
    PHP_PAGE_HEAD = 32,    /* before the first frame */
};

/* What runtime_frame.position holds for an internal function, and where the instruction is not known; else its
 * number. */
#define PHP_NO_CODE UINT32_MAX
#define PHP_NO_LINE (UINT32_MAX - 1)

/* Some functions' memory is freed as soon as they are no longer used, mostly before the frame is named: a closure's
 * lies in an object, a file's own code is used once. Neither has a name of its own; so its frame has, in the place of
 * the function and its fingerprint, what else it is called by, which lasts longer: code is the file's name and the
 * first line; check is PHP_NAMELESS, which kind it is, a fingerprint of the file's name, whose memory may soon be
 * another text's, and the class; position is the line. */
#define PHP_NAMELESS (1ULL << 63)
enum php_nameless { NAMELESS_NOT, NAMELESS_CLOSURE, NAMELESS_FILE, NAMELESS_EVAL };
enum { NAMELESS_KIND_AT = 60, NAMELESS_ADDRESS_BITS = 45, NAMELESS_LINES_MAX = 1 << (64 - NAMELESS_ADDRESS_BITS) };
#define NAMELESS_ADDRESS (((uint64_t)1 << NAMELESS_ADDRESS_BITS) - 1)

/* What a file tells. Addresses are the file's own. */
struct php_binary {
    uint32_t version;
    uint64_t globals; /* executor_globals; 0: each thread has its own, */
    uint64_t id, offset; /* of which these variables tell the place */
    uint64_t request; /* sapi_globals, or the variable that tells their offset; 0: not told */
    uint64_t sapi; /* sapi_module, whose first word leads to the name of what runs scripts */
    bool keeps_in_registers; /* its loop keeps the frame and the instruction in two that calls preserve */
    struct code_ranges ranges;
};

/* Where threads have their globals, in builds for threads: a table of lists of entries, by pthread_self. An entry's
 * first word leads to pointers to globals, the one at `slot` to the executor's, which are `offset` behind the entry. */
struct php_threads {
    uint64_t table;
    uint32_t size; /* 0: not such a build */
    uint32_t slot, tid_in_pthread;
    uint64_t offset;
};
enum {
    THREADS_SIZE_MAX = 4096, THREADS_LIST_MAX = 32,
    ENTRY_STORAGE = 0, ENTRY_PTHREAD = 16, ENTRY_NEXT = 24, ENTRY_BYTES = 32,
};

/* One process; constant once attach has returned. */
struct php {
    struct php_layout layout;
    uint32_t version;
    uint32_t tid;   /* of the only thread that runs PHP, */
    uint64_t root;  /* with its PHP_ROOT_BYTES; in builds for threads: of one of them */
    struct php_threads threads;
    uint64_t request; /* where PHP_REQUEST_BYTES are, or how far behind a thread's entry; 0: not known */
    bool keeps_in_registers;
    bool serves; /* scripts come and go */
    bool shows_urls;
};

void php_version_text(uint32_t version, char out[static PHP_VERSION_TEXT]);

enum runtime_answer php_recognise(struct elf *elf, struct str path, const struct runtime_code *code, void **binary,
                                  struct err *why);
void php_forget(void *binary);
enum runtime_native php_native_at(const void *binary, uint64_t elf_address);

enum runtime_answer php_attach(const void *binary, const struct runtime_process *process, void **state,
                               struct err *why);
void php_detach(void *state);
void php_describe(const void *state, struct buf *out);

void php_walk(const void *state, void *plan, const struct runtime_thread *thread, struct memory_batch *memory,
              struct runtime_stack *out);

/* What a function's first bytes, zeros behind those that could not be read, say of it. */
struct php_function {
    unsigned kind; /* PHP_USER for what was given as text, too; 0: these are no function's */
    uint64_t name, scope;    /* 0: it has none */
    uint64_t filename, opcodes; /* 0: an internal function */
    uint32_t first_line, count; /* of instructions */
    uint64_t check;          /* fingerprint, never 0, without PHP_NAMELESS */
    bool lasts;              /* internal, or kept by OPcache: not freed at the end of a request */
    enum php_nameless nameless; /* and a frame can hold what it is called by */
};
/* The fingerprint of a file's name, in its place in a frame's check; of its first PHP_TEXT_BYTES. */
enum { PHP_TEXT_BYTES = 232 };
uint64_t php_text_check(uint64_t len, const char *text);
struct php_function php_function_of(const struct php_layout *l, const unsigned char bytes[PHP_FUNCTION_BYTES]);
/* The number of the instruction at `opline` in its function; PHP_NO_LINE: it is another's. */
uint32_t php_position(const struct php_function *f, uint64_t opline);

void *php_open_names(const void *state);
void php_close_names(void *names);
void php_name_frames(void *names, const struct runtime_frame *frames, size_t count, struct memory_batch *memory,
                     struct runtime_name *out);

#endif
