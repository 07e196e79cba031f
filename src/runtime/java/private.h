/*
 * java: HotSpot's stacks, from a sample's registers and stack.
 *
 *     layout.c    where fields are, by the tables that every HotSpot has for debuggers (VMStructs)
 *     code.c      the code heaps: which blob an address is in, and what kind of code that is
 *     scopes.c    which functions compiled code is at an address, inlined ones included
 *     methods.c   names, files and lines of methods
 *     frames.c    how to go on to the caller; the processor's leaf.c: from a leaf
 *     java.c      the row
 *     attach.c    asking the JVM what its own tools may ask it
 *     recording.c its own recorder
 *
 * Nothing is fixed but what no table tells: the interpreter's frames, the compressed numbers and the line tables. All
 * is read from the process as it is when it is asked: the sample's own stack is the copy's, metadata is of now.
 *
 * Sources: OpenJDK's vmStructs.cpp, codeBlob.hpp, nmethod.hpp, pcDesc.hpp, debugInfo.hpp, constMethod.hpp,
 * frame_x86.hpp, frame_aarch64.hpp and vm_version of 8 to 25, by their facts.
 */
#ifndef RUNTIME_JAVA_PRIVATE_H
#define RUNTIME_JAVA_PRIVATE_H

#include "base/arena.h"
#include "base/map.h"
#include "base/vec.h"
#include "runtime/common/walk.h"

enum {
    JAVA_HEAPS_MAX = 16,
    JAVA_NAME_MAX = 1024,  /* bytes of a class's or method's name */
    JAVA_SCOPES_MAX = 64,
    JAVA_STUB_BYTES = 40, /* of a stub's name and its end */
    JAVA_TEXTS_MAX = 8 << 20, /* bytes of names and lines */
    JAVA_BLOB_BYTES = 512, JAVA_METHOD_BYTES = 128, JAVA_SYMBOL_BYTES = 16, /* of a structure, at once */
    JAVA_ZERO_LESS_SINCE = 20, /* version from which on no byte of a compressed number is 0 */
};

/* Fields: an offset in their structure, LAYOUT_NONE where the version has none. */
#define JAVA_FIELDS(FIELD)                                              \
    FIELD(CODEHEAP_MEMORY, "CodeHeap", "_memory")                       \
    FIELD(CODEHEAP_SEGMAP, "CodeHeap", "_segmap")                       \
    FIELD(CODEHEAP_LOG2, "CodeHeap", "_log2_segment_size")              \
    FIELD(SPACE_LOW, "VirtualSpace", "_low")                            \
    FIELD(SPACE_HIGH, "VirtualSpace", "_high")                          \
    FIELD(ARRAY_LEN, "GrowableArrayBase", "_len")                       \
    FIELD(ARRAY_LEN_OLD, "GenericGrowableArray", "_len")                \
    FIELD(ARRAY_DATA, "GrowableArray<int>", "_data")                    \
    FIELD(BLOB_NAME, "CodeBlob", "_name")                               \
    FIELD(BLOB_SIZE, "CodeBlob", "_size")                               \
    FIELD(BLOB_FRAME_SIZE, "CodeBlob", "_frame_size")                   \
    FIELD(BLOB_FRAME_COMPLETE, "CodeBlob", "_frame_complete_offset")    \
    FIELD(BLOB_CODE_BEGIN, "CodeBlob", "_code_begin")                   \
    FIELD(BLOB_CODE_END, "CodeBlob", "_code_end")                       \
    FIELD(BLOB_CODE_OFFSET, "CodeBlob", "_code_offset")                 \
    FIELD(BLOB_DATA_OFFSET, "CodeBlob", "_data_offset")                 \
    FIELD(BLOB_RELOCATION_SIZE, "CodeBlob", "_relocation_size")         \
    FIELD(BLOB_MUTABLE, "CodeBlob", "_mutable_data")                    \
    FIELD(NM_METHOD, "nmethod", "_method")                              \
    FIELD(NM_METHOD_OLD, "CompiledMethod", "_method")                   \
    FIELD(NM_SCOPES_BEGIN_OLD, "CompiledMethod", "_scopes_data_begin")  \
    FIELD(NM_SCOPES_BEGIN_8, "nmethod", "_scopes_data_begin")           \
    FIELD(NM_SCOPES_OFFSET, "nmethod", "_scopes_data_offset")           \
    FIELD(NM_PCS_OFFSET, "nmethod", "_scopes_pcs_offset")               \
    FIELD(NM_DEPENDENCIES, "nmethod", "_dependencies_offset")           \
    FIELD(NM_METADATA, "nmethod", "_metadata_offset")                   \
    FIELD(NM_IMMUTABLE, "nmethod", "_immutable_data")                   \
    FIELD(NM_IMMUTABLE_SIZE, "nmethod", "_immutable_data_size")         \
    FIELD(NM_COMPILE_ID, "nmethod", "_compile_id")                      \
    FIELD(NM_TIER, "nmethod", "_comp_level")                            \
    FIELD(NM_ORIG_PC, "nmethod", "_orig_pc_offset")                     \
    FIELD(NM_DEOPT_OLD, "CompiledMethod", "_deopt_handler_begin")       \
    FIELD(NM_DEOPT_8, "nmethod", "_deoptimize_offset")                  \
    FIELD(NM_DEOPT, "nmethod", "_deopt_handler_offset")                 \
    FIELD(NM_DEOPT_ENTRY, "nmethod", "_deopt_handler_entry_offset")     \
    FIELD(METHOD_CONST, "Method", "_constMethod")                       \
    FIELD(CONST_POOL, "ConstMethod", "_constants")                      \
    FIELD(CONST_FLAGS, "ConstMethod", "_flags")                         \
    FIELD(CONST_FLAGS_21, "ConstMethod", "_flags._flags")               \
    FIELD(CONST_CODE_SIZE, "ConstMethod", "_code_size")                 \
    FIELD(CONST_NAME, "ConstMethod", "_name_index")                     \
    FIELD(POOL_HOLDER, "ConstantPool", "_pool_holder")                  \
    FIELD(POOL_FILE, "ConstantPool", "_source_file_name_index")         \
    FIELD(CLASS_FILE, "InstanceKlass", "_source_file_name_index")       \
    FIELD(KLASS_NAME, "Klass", "_name")                                 \
    FIELD(SYMBOL_LENGTH, "Symbol", "_length")                           \
    FIELD(SYMBOL_LENGTH_HIGH, "Symbol", "_length_and_refcount")         \
    FIELD(SYMBOL_BODY, "Symbol", "_body")                               \
    FIELD(STUBS_BUFFER, "StubQueue", "_stub_buffer")                    \
    FIELD(STUBS_LIMIT, "StubQueue", "_buffer_limit")

/* Variables: an address in the process; 0: there is none. */
#define JAVA_STATICS(STATIC)                                            \
    STATIC(HEAPS, "CodeCache", "_heaps")                                \
    STATIC(HEAP_8, "CodeCache", "_heap")                                \
    STATIC(CALL_STUB_RETURN, "StubRoutines", "_call_stub_return_address") \
    STATIC(STUB_QUEUE, "AbstractInterpreter", "_code")                 \
    STATIC(MAJOR, "Abstract_VM_Version", "_vm_major_version")           \
    STATIC(MINOR, "Abstract_VM_Version", "_vm_minor_version")           \
    STATIC(SECURITY, "Abstract_VM_Version", "_vm_security_version")     \
    STATIC(VERSION_8, "JDK_Version", "_current")

/* Sizes of structures. */
#define JAVA_SIZES(SIZE)            \
    SIZE(HEAP_BLOCK, "HeapBlock")   \
    SIZE(CONST_METHOD, "ConstMethod") \
    SIZE(CONSTANT_POOL, "ConstantPool")

#define JAVA_NUMBER(id, ...) JAVA_##id,
enum java_field { JAVA_FIELDS(JAVA_NUMBER) JAVA_FIELD_COUNT };
enum java_static { JAVA_STATICS(JAVA_NUMBER) JAVA_STATIC_COUNT };
#define JAVA_SIZE_NUMBER(id, ...) JAVA_SIZE_##id,
enum java_size { JAVA_SIZES(JAVA_SIZE_NUMBER) JAVA_SIZE_COUNT };
#undef JAVA_NUMBER
#undef JAVA_SIZE_NUMBER

struct java_layout {
    uint32_t field[JAVA_FIELD_COUNT];
    uint64_t variable[JAVA_STATIC_COUNT];
    uint32_t size[JAVA_SIZE_COUNT];
    uint32_t version[3]; /* 17, 0, 15 */
};

/* The tables' exported variables, as addresses of the file. */
struct java_tables {
    uint64_t structs, types;
    uint64_t type_name, field_name, is_static, offset, address, stride;
    uint64_t size_name, size_size, size_stride;
};

struct java_heap {
    uint64_t low, high; /* of the code that it has now */
    uint64_t segments;  /* a byte for each */
    uint32_t log2;
};

enum java_kind {
    JAVA_NOT_CODE,
    JAVA_COMPILED,    /* of a method, or a wrapper of a native one */
    JAVA_INTERPRETER,
    JAVA_ENTRY,       /* what C++ calls Java by */
    JAVA_CHUNK,       /* calls through tables: no frame */
    JAVA_STUB,        /* with a frame of a known size, or 0 */
};

struct java_blob {
    uint64_t at, code, limit;
    enum java_kind kind;
    uint32_t frame_bytes;    /* return address and saved frame pointer included; 0: unknown, or none */
    uint32_t frame_complete; /* offset in the code from which on the frame is whole */
    uint32_t compile_id, tier; /* which compiler's, of several levels; 0: not told */
    uint64_t method, deopt;
    uint32_t orig_pc;
    uint64_t pcs, pcs_limit, scopes, metadata;
    char name[JAVA_STUB_BYTES];           /* of a stub */
};

struct java_scope {
    uint64_t method; /* 0: unknown */
    int32_t bci;
    uint32_t line;
    uint64_t of; /* the method's code that this is a line of; 0: not asked for yet */
};

/* What is known of one address in compiled code or a stub. */
struct java_place {
    uint64_t address;
    uint32_t frame_bytes, orig_pc;
    uint64_t blob, deopt;
    uint32_t compile_id, asked; /* when it was found to be so */
    uint32_t scopes, scope_count; /* in struct java's; innermost first */
    uint32_t code_offset, frame_complete;
    uint8_t kind, tier;
    bool exact;
    char name[JAVA_STUB_BYTES];
};

struct java_method {
    struct str name, file;
    const unsigned char *lines; /* compressed */
    uint32_t line_bytes;
    uint64_t bytecode, const_method; /* addresses */
    uint32_t code_size, asked;
    bool zero_less; /* the version's numbers have no byte of 0 */
};

struct java {
    struct memory_batch *memory; /* the reader's; for as long as it is attached */
    struct java_layout layout;
    struct java_heap heap[JAVA_HEAPS_MAX];
    size_t heap_count;
    uint64_t interpreter, interpreter_limit, call_stub_return;
    uint32_t stacks; /* told since it was attached, about: by them age is counted */
    uint64_t sp;     /* of the last question: the next stack's is mostly below */
    struct map place_of;  /* an address (and whether exactly that) -> its number */
    struct map method_of;
    VEC(struct java_place) places;
    VEC(struct java_scope) scopes;
    VEC(struct java_method) methods;
    struct arena texts;
    char stub[JAVA_STUB_BYTES]; /* the name that was told last */
};

/* ---- layout.c ---- */

bool java_find_tables(struct elf *elf, struct java_tables *out);
bool java_read_layout(const struct java_tables *tables, const struct runtime_process *process, struct java_layout *out,
                      struct err *why);

/* ---- reading ---- */

static inline bool java_read(const struct java *j, uint64_t address, void *out, uint32_t len)
{
    struct memory_piece piece = {address, out, len, 0};
    return plausible(address) && memory_batch_read(j->memory, &piece, 1, NULL) && piece.got == len;
}

static inline bool java_word(const struct java *j, uint64_t address, uint64_t *out)
{
    return java_read(j, address, out, sizeof *out);
}

static inline uint64_t java_field_u64(const struct java *j, const unsigned char *of, enum java_field field)
{
    return has(j->layout.field[field]) ? load_u64(of + j->layout.field[field]) : 0;
}

static inline uint32_t java_field_u32(const struct java *j, const unsigned char *of, enum java_field field)
{
    return has(j->layout.field[field]) ? load_u32(of + j->layout.field[field]) : 0;
}

static inline uint32_t java_field_u16(const struct java *j, const unsigned char *of, enum java_field field)
{
    uint16_t value = 0;
    if (has(j->layout.field[field])) {
        memcpy(&value, of + j->layout.field[field], sizeof value);
    }
    return value;
}

/* ---- code.c ---- */

bool java_read_heaps(struct java *j);
/* False: not in the code heaps, or not in code. */
bool java_find_blob(struct java *j, uint64_t address, struct java_blob *out);

/* ---- scopes.c ---- */

/* The functions at a place of compiled code, innermost first, appended to j->scopes. */
void java_find_scopes(struct java *j, const struct java_blob *blob, uint64_t address);

/* ---- methods.c ---- */

/* Before a question: when there is no more room for methods all are forgotten, so that texts last to the next one. */
void java_forget_methods(struct java *j);

/* Null: this is no method, or there is no memory. Valid until the next call. */
const struct java_method *java_method(struct java *j, uint64_t method);
uint32_t java_line(const struct java_method *method, int32_t bci);

/* ---- frames.c ---- */

/* Null: not in the JVM's code, or nothing is known of it. Valid until the next call. `exact`: of a leaf. */
const struct java_place *java_place(struct java *j, uint64_t address, bool exact);
bool java_is_interpreter(const struct java *j, uint64_t address);
/* How to go on from it, whose frame pointer is `fp`. */
void java_caller(struct java *j, const struct java_place *place, uint64_t fp, struct runtime_caller *out);
/* From a leaf that has made nothing of its frame but `bytes` of room, or that has nothing else left of it. */
void java_as_called(uint32_t bytes, struct runtime_caller *out);

/* ---- x86_64/leaf.c, aarch64/leaf.c ---- */

/* What has been made of the leaf's frame. */
enum java_state {
    JAVA_BARE,       /* nothing: it is as it was called, or about to return */
    JAVA_PUSHED,     /* the caller's frame pointer and the return address are on top of the stack */
    JAVA_SUBTRACTED, /* room, with nothing in it that is needed */
    JAVA_WHOLE,
};

extern const bool java_return_is_in_register; /* of what is called; else it is on the stack */
enum java_state java_state_at(const struct java *j, const struct java_place *place);

/* The verb collect, by the JVM's recorder (recording.c). ERR_UNSUPPORTED without EAGAIN: it answers, and has none that
 * could be used. */
struct recording;
/* `running`: so many threads are in Java now. */
struct recording *java_record(const struct runtime_target *target, unsigned running, struct err *why);
bool java_read_recording(struct recording *r, bool whole, const struct runtime_sink *sink, struct err *why);
void java_stop_recording(struct recording *r, const struct runtime_sink *sink);

/* The verb itself (collect.c): by the recorder, and where there is none by dumps. */
/* Does it meet every thread that runs, however many do? */
bool java_meets_all(const struct recording *recording);
void *java_collect(const struct runtime_target *target, struct err *why);
bool java_collect_tick(void *collection, uint64_t since_ns);
bool java_collect_poll(void *collection, bool whole, const struct runtime_sink *sink, struct err *why);
void java_collect_stop(void *collection, const struct runtime_sink *sink);

#endif
