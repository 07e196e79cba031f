/*
 * private: what the files of this folder share.
 */
#ifndef RUNTIME_PYTHON_PRIVATE_H
#define RUNTIME_PYTHON_PRIVATE_H

#include "base/str.h"
#include "runtime/common/ranges.h"
#include "runtime/common/walk.h"
#include "runtime/python/layout.h"
#include "runtime/python/python.h"

enum {
    PYTHON_RANGES_MAX = 1024, /* of interpreter code that is told apart */
    PYTHON_INTERPRETERS_MAX = 256,
    PYTHON_THREADS_MAX = 8192,
    PYTHON_VERSION_TEXT = 32, /* bytes of "3.13.0rc1" */
};

/* What a file tells. Addresses are the file's own; 0: not known. */
struct python_binary {
    uint32_t version;          /* PY_VERSION_HEX, as far as the file tells; 0: only memory will */
    uint64_t runtime;          /* _PyRuntime (3.7 on) */
    uint64_t runtime_bytes;
    uint64_t interp_head;      /* up to 3.6 */
    uint64_t current;          /* _PyThreadState_Current, up to 3.6 */
    uint64_t py_version;       /* Py_Version, 3.11 on */
    uint64_t code_type;        /* PyCode_Type */
    uint64_t str_type, int_type; /* PyUnicode_Type, PyLong_Type */
    bool musl;                 /* linked against musl */
    bool debug;                /* built with Py_DEBUG */
    enum elf_machine machine;
    struct code_ranges ranges; /* loop and plumbing */
};

/* One process; constant once attach has returned. Addresses are runtime addresses. */
struct python {
    struct python_layout layout;
    char version_text[PYTHON_VERSION_TEXT]; /* "3.11.9", "2.7.18", "3.13.0t" */
    bool debug;                /* built with Py_DEBUG */
    uint32_t pid;
    uint64_t runtime;          /* _PyRuntime; 0 up to 3.6 */
    uint64_t head;             /* address of the pointer to the first interpreter */
    uint64_t current;          /* address of the pointer to the GIL's holder; 0: none */
    uint64_t interp;           /* the main interpreter */
    uint64_t code_type;        /* PyCode_Type; 0: not known, there are no type checks */
    uint64_t str_type, int_type; /* PyUnicode_Type, PyLong_Type; 0: not known */
    uint64_t task_fields;      /* where a thread's asyncio task and a task's name are (task.c); 0: not known.
                                * Filled late: to be loaded and stored atomically */
    uint64_t task_links;       /* four offsets more, of 16 bits, for tasks.c; stored before task_fields */
    uint32_t tid_in_pthread;   /* without native_thread_id: where libc's thread structure holds the tid */
};

/* layout.c: PY_VERSION_HEX down to the minor version; as text, "3.11" when no more is known. */
uint32_t python_minor(uint32_t version);
void python_version_text(uint32_t version, char out[static PYTHON_VERSION_TEXT]);

/* layout.c: the error for a version that is not known; returns false. */
bool python_refuse(uint32_t version, struct err *err);

/* layout.c: a layout of a version, every field LAYOUT_NONE; then, once the fields are there, the masks of
 * str objects and the numbers of bytes to read (false: more than a layout may hold). */
void python_layout_start(struct python_layout *layout, uint32_t version, bool free_threaded);
void python_layout_kinds(struct python_layout *layout);
bool python_layout_sizes(struct python_layout *layout);

/* offsets.c: do these first bytes of _PyRuntime begin with the mark of _Py_DebugOffsets? */
bool python_tells_layout(const void *runtime, size_t len);

enum runtime_answer python_recognise(struct elf *elf, struct str path,
                                     const struct runtime_code *code, void **binary,
                                     struct err *why);
void python_forget(void *binary);
enum runtime_native python_native_at(const void *binary, uint64_t elf_address);

enum runtime_answer python_attach(const void *binary, const struct runtime_process *process,
                                  void **state, struct err *why);
void python_detach(void *state);
void python_describe(const void *state, struct buf *out);

/* task.c: learns where tasks are from asyncio's own list, if `elf` is the file that has it. */
void python_extend(void *state, struct elf *elf);

void python_walk(const void *state, void *plan, const struct runtime_thread *thread,
                 struct memory_batch *memory, struct runtime_stack *out);

/* tasks.c, and what task_links has in its 16 bits. */
enum python_task_link { TASK_AWAITED_BY, TASK_CORO, TASK_NODE, TASK_HEAD /* in a thread's state */ };
size_t python_tasks(const void *state, struct memory_batch *memory,
                    void (*each)(void *context, const struct runtime_task *task), void *context);

/* walk_task.c: the name in the first bytes of the object that names a task, into out->task. */
void python_take_task_name(const struct python *python, const unsigned char *name, uint32_t got,
                           struct runtime_stack *out);

/* locks.c */
size_t python_locks(const void *state, const void *plan, struct memory_batch *memory, uint64_t *futexes, size_t most);

/* running.c */
size_t python_running(const void *state, struct memory_batch *memory, uint32_t *tids, size_t most);

/* generated.c: names in perf maps. */
bool python_read_name(struct str raw, struct buf *out, struct runtime_named *named);

/* What runtime_frame.check holds: a hash of a code object's first layout.code.bytes bytes, over the
 * fields that tell one function from another (first line, flags, file, names, table of lines). Never 0. */
uint64_t python_fingerprint(const struct python_layout *layout, const unsigned char *code);

void *python_open_names(const void *state);
void python_close_names(void *names);
bool python_name_thread(void *names, uint32_t tid, struct memory_batch *memory, struct buf *out);

/* thread_name.c: what the module threading calls a thread. `known` is what was found so far, zero at first. */
struct python_threads {
    uint64_t active;  /* the dict by pthread_self; 0: not found */
    uint64_t modules; /* how many there were when it was looked for last */
};
bool python_thread_name(const struct python *python, struct python_threads *known, uint32_t tid,
                        struct memory_batch *memory, struct buf *out);

/* running.c: the number of the thread whose state these bytes are, as its own PID namespace has it; 0: unreadable. */
uint32_t python_tid_of(const struct python *python, struct memory_batch *memory, const unsigned char *state);

void python_name_frames(void *names, const struct runtime_frame *frames, size_t count,
                        struct memory_batch *memory, struct runtime_name *out);

/* The line of the instruction at `offset` bytes (-1, -2: before the first); 0 when the table says that
 * there is none, or is damaged. */
uint32_t python_line(enum python_lines format, uint32_t first_line, const unsigned char *table,
                     size_t len, int64_t offset);

/* Where the characters of a str are (in 2.7: of a byte string), as far as RUNTIME_NAME_MAX of them. */
struct python_text {
    uint64_t pointer; /* their address; 0: they are in the object itself, */
    uint32_t offset;  /* from here on */
    uint32_t bytes;   /* of them to read */
    uint8_t width;    /* bytes of a character: 1 (ASCII or Latin-1), 2 or 4 */
    bool is_bytes;    /* of any encoding */
};

/* Finds them by the first `len` bytes of the object. False: it is no str that can be read. */
bool python_text_find(const struct python_layout *layout, const unsigned char *head, size_t len,
                      struct python_text *out);

/* Appends them as UTF-8, at most RUNTIME_NAME_MAX bytes. Lone surrogates become U+FFFD; bytes that are not
 * UTF-8 are taken for Latin-1. `data` is text->bytes long. */
void python_text_add(const struct python_text *text, const unsigned char *data, struct buf *out);

#endif
