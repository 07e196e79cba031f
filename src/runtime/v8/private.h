/*
 * v8 (private): JavaScript functions of a process that runs V8 (Node.js), read from outside.
 *
 * Concept. V8 keeps a frame pointer in all of its frames, and in a frame of JavaScript the function that runs. How its
 * objects look is told by constants that its binary exports for debuggers (v8dbg_...); what they do not tell is known
 * by version. The unwinder finds the frames; here an address is told as functions:
 *
 *     layout.c     constants of a binary
 *     heap.c       objects and strings
 *     scripts.c    scripts, and which line and column a position in one is
 *     functions.c  functions: name, script, first line
 *     code.c       which code object an address is in, of which kind
 *     positions.c  tables in code and bytecode: which position an instruction is of, and what was inlined there
 *     places.c     what is remembered of addresses
 *     v8.c         the row
 *     names.c      what V8 calls generated code in perf maps and jitdumps
 *
 * V8's garbage collector moves objects. Bytecode and code, by which all is remembered, seldom move; whether they are
 * still the same is asked again now and then, and a function that is not where the frame has it is not told.
 *
 * Sources: V8's gen-postmortem-metadata.py, frame-constants.h, objects, code-kind.h, source-position-table.cc,
 * deoptimization-data.h of 6.8 to 14.6, by their facts, each checked in the memory of running programs.
 */
#ifndef RUNTIME_V8_PRIVATE_H
#define RUNTIME_V8_PRIVATE_H

#include "runtime/v8/source_map.h"
#include "base/arena.h"
#include "base/map.h"
#include "base/vec.h"
#include "runtime/common/walk.h"

enum {
    V8_TEXTS_MAX = 4 << 20, /* bytes of names */
    V8_LINES_MAX = 4 << 20, /* bytes of where lines of scripts end */
    V8_NAME_MAX = 1024,     /* bytes of a function's or script's name */
    V8_HEAD_BYTES = 64,     /* of an object, at once */
    V8_MAP_BYTES = 16,      /* of its map */
    V8_INLINED_MAX = 64,
    V8_PAGE_BYTES = 4096,
    V8_ASK_AGAIN = 1 << 8,  /* stacks later */
    V8_NO_FUNCTION = UINT32_MAX,
    V8_OWN_MAX = 16,
    V8_BYTECODES_MAX = 256, V8_SCALES = 3,
};

/* Constants: the name behind "v8dbg_", and other names that versions have given the same; then what it is where it has
 * none. */
#define V8_CONSTANTS(ROW)                                                                                              \
    /* slots of a frame, from its frame pointer */                                                                     \
    ROW(FRAME_CONTEXT, -8, "off_fp_context")                                                                           \
    ROW(FRAME_FUNCTION, -16, "off_fp_function")                                                                        \
    ROW(FRAME_BYTECODE, LAYOUT_NONE, "off_fp_bytecode_array")                                                          \
    ROW(FRAME_OFFSET, LAYOUT_NONE, "off_fp_bytecode_offset")                                                           \
    /* fields of objects, in their first bytes */                                                                      \
    ROW(MAP_TYPE, LAYOUT_NONE, "class_Map__instance_type__uint16_t")                                                   \
    ROW(FUNCTION_SHARED, LAYOUT_NONE, "class_JSFunction__shared__SharedFunctionInfo")                                  \
    ROW(SHARED_NAME, LAYOUT_NONE, "class_SharedFunctionInfo__name_or_scope_info__Object",                              \
        "class_SharedFunctionInfo__name_or_scope_info__Tagged_Object_",                                                \
        "class_SharedFunctionInfo__name_or_scope_info__Tagged_NameOrScopeInfoT_")                                      \
    ROW(SHARED_SCRIPT, LAYOUT_NONE, "class_SharedFunctionInfo__script_or_debug_info__HeapObject",                      \
        "class_SharedFunctionInfo__script_or_debug_info__Object", "class_SharedFunctionInfo__script__Object",          \
        "class_SharedFunctionInfo__script__Tagged_HeapObject_")                                                        \
    ROW(SCRIPT_NAME, LAYOUT_NONE, "class_Script__name__Object")                                                        \
    ROW(SCRIPT_SOURCE, 8, "class_Script__source__Object")                                                              \
    ROW(STRING_LENGTH, LAYOUT_NONE, "class_String__length__int32_t", "class_String__length__SMI")                      \
    ROW(STRING_ONE_BYTE, LAYOUT_NONE, "class_SeqOneByteString__chars__char")                                           \
    ROW(STRING_CONS_FIRST, LAYOUT_NONE, "class_ConsString__first__String")                                             \
    ROW(STRING_CONS_SECOND, LAYOUT_NONE, "class_ConsString__second__String")                                           \
    ROW(STRING_PARENT, LAYOUT_NONE, "class_SlicedString__parent__String")                                              \
    ROW(STRING_OFFSET, LAYOUT_NONE, "class_SlicedString__offset__SMI")                                                 \
    ROW(STRING_ACTUAL, LAYOUT_NONE, "class_ThinString__actual__String")                                                \
    ROW(STRING_RESOURCE, LAYOUT_NONE, "class_ExternalString__resource__Object")                                        \
    ROW(BYTECODE_POSITIONS, LAYOUT_NONE, "class_BytecodeArray__source_position_table__Object")                         \
    ROW(CODE_SIZE, LAYOUT_NONE, "class_Code__instruction_size__int")                                                   \
    ROW(CODE_FLAGS, LAYOUT_NONE, "class_Code__flags__uint32_t")                                                        \
    ROW(CODE_DEOPTIMIZATION, LAYOUT_NONE, "class_Code__deoptimization_data__FixedArray")                               \
    ROW(CODE_POSITIONS, LAYOUT_NONE, "class_Code__source_position_table__ByteArray")                                   \
    /* of a ScopeInfo: where its slots begin, and which has what */                                                    \
    ROW(SCOPE_SLOTS, LAYOUT_NONE)                                                                                      \
    ROW(SCOPE_PARAMETERS, 1, "scopeinfo_idx_nparams")                                                                  \
    ROW(SCOPE_ON_STACK, 0, "scopeinfo_idx_nstacklocals") /* 0: they are not told, nor parameters' names */             \
    ROW(SCOPE_LOCALS, LAYOUT_NONE, "scopeinfo_idx_ncontextlocals")                                                     \
    ROW(SCOPE_FIRST, LAYOUT_NONE, "scopeinfo_idx_first_vars")                                                          \
    ROW(LOCALS_IN_TABLE, LAYOUT_NONE) /* from so many on their names are in a table of its own */                      \
    /* others */                                                                                                       \
    ROW(BYTECODE_DATA, LAYOUT_NONE, "class_BytecodeArray__data__uintptr_t")                                            \
    ROW(FRAME_WASM, 0, "frametype_WasmFrame", "frametype_WasmCompiledFrame") /* marker of WebAssembly's; 0: unknown */ \
    ROW(ARRAY_REGISTER, 0, "InterpreterBytecodeArrayRegister") /* 0: not known */                                      \
    ROW(CODE_HEADER, 0, "class_Code__instruction_start__uintptr_t") /* 0: instructions are elsewhere */                \
    ROW(CODE_KIND_MASK, LAYOUT_NONE)                                                                                   \
    ROW(CODE_REGEXP, LAYOUT_NONE)                                                                                      \
    ROW(POSITION_MARKS, LAYOUT_NONE) /* bits before a step of the offset, which has no sign then; 0: it has one */     \
    ROW(POSITION_OTHERS, LAYOUT_NONE) /* bits before the offset in the script */                                       \
    ROW(DEOPT_LITERALS, 2, "DeoptimizationDataLiteralArrayIndex")                                                      \
    ROW(DEOPT_SHARED, 6, "DeoptimizationDataSharedFunctionInfoIndex",                                                  \
        "DeoptimizationDataWrappedSharedFunctionInfoIndex")                                                            \
    ROW(DEOPT_INLININGS, LAYOUT_NONE, "DeoptimizationDataInliningPositionsIndex")                                      \
    ROW(TAGGED_SIZE, 8, "TaggedSize")                                                                                  \
    ROW(NOT_STRING, LAYOUT_NONE, "IsNotStringMask")                                                                    \
    ROW(TYPE_MAP, LAYOUT_NONE, "type_Map__MAP_TYPE")                                                                   \
    ROW(TYPE_SHARED, LAYOUT_NONE, "type_SharedFunctionInfo__SHARED_FUNCTION_INFO_TYPE")                                \
    ROW(TYPE_SCOPE, LAYOUT_NONE, "type_ScopeInfo__SCOPE_INFO_TYPE")                                                    \
    ROW(TYPE_SCRIPT, LAYOUT_NONE, "type_Script__SCRIPT_TYPE")                                                          \
    ROW(TYPE_BYTECODE, LAYOUT_NONE, "type_BytecodeArray__BYTECODE_ARRAY_TYPE")                                         \
    ROW(TYPE_CODE, LAYOUT_NONE, "type_Code__CODE_TYPE")

#define V8_NUMBER(id, ...) V8_##id,
enum v8_constant { V8_CONSTANTS(V8_NUMBER) V8_CONSTANT_COUNT };
#undef V8_NUMBER

struct v8_layout {
    int32_t at[V8_CONSTANT_COUNT];
    int32_t version[4];  /* 11, 3, 244, 8 */
    uint64_t version_at; /* where the first of them stands */
    bool is_stripped;    /* where its builtin functions begin is not known */
    uint32_t bytecodes;  /* how many there are; 0: their lengths are not known */
    unsigned char bytecode_bytes[V8_SCALES * V8_BYTECODES_MAX];
};

struct v8_script {
    struct str name;      /* a path, or what V8 calls it */
    uint64_t name_at, source; /* the objects: another script has others */
    bool has_lines;       /* they were counted */
    uint32_t *line_end;   /* positions behind the ends of lines */
    uint32_t line_count;
    bool has_map;         /* it was looked for */
    struct source_map *map; /* null: there is none */
};

struct v8_function {
    struct str name, file; /* name: with its place */
    uint64_t shared;       /* address of the SharedFunctionInfo */
    uint64_t name_at, script_at; /* what it had when it was read */
    uint32_t script;       /* number + 1 in scripts; 0: none */
    uint32_t asked;        /* when it was so */
};

/* What is said at a place: functions, innermost first. */
struct v8_scope {
    uint32_t function; /* number in functions */
    uint32_t line;
};

/* A code object. */
struct v8_code {
    uint64_t start, limit;            /* of its instructions; 0: it is none */
    uint64_t deoptimization, positions; /* words; of baseline code its bytecode, and offsets in that */
    uint64_t literals, inlinings;     /* of optimised code: functions, and where they were inlined; 0 */
    uint32_t literal_count, inlining_count;
    uint32_t function; /* of optimised code: the outermost; else V8_NO_FUNCTION */
    bool is_regexp;
};

/* An object with instructions that places are in. */
struct v8_owner {
    uint64_t at, check; /* its address, and what its first bytes were */
    uint32_t asked;     /* when they were so */
    struct v8_code code;
};

struct v8_place {
    uint64_t check; /* its owner's then */
    uint32_t owner; /* number + 1 in owners; 0: nothing is known here */
    uint32_t scopes, scope_count; /* in struct v8's */
    uint32_t asked;
    bool is_interpreter; /* the frame tells what runs */
    bool is_regexp;
};

struct v8_range {
    uint64_t start, limit;
};

struct v8 {
    struct memory_batch *memory; /* the reader's; for as long as it is attached */
    const struct v8_layout *layout;
    uint32_t stacks; /* told since it was attached, about: by them age is counted */
    uint64_t sp;     /* of the last question: the next stack's is mostly below */
    uint64_t leaf_array, leaf_offset; /* of the last question: what a handler of an instruction has in registers; 0 */
    struct v8_range own[V8_OWN_MAX]; /* code of the binary, copies of its builtin functions included */
    size_t own_count;
    struct map place_of, owner_of, function_of, script_of; /* an address -> its number */
    struct map code_of_page; /* an address / V8_PAGE_BYTES -> the number of the code that was found there last */
    VEC(struct v8_place) places;
    VEC(struct v8_scope) scopes;
    VEC(struct v8_owner) owners;
    VEC(struct v8_function) functions;
    VEC(struct v8_script) scripts;
    struct arena texts, lines;
    bool (*file)(void *context, const char *path, struct buf *out); /* null: no source maps are wanted */
    void *files;
    size_t map_bytes; /* that source maps take */
};

/* ---- layout.c ---- */

bool v8_read_layout(struct elf *elf, struct v8_layout *out, struct err *why);
/* What a constant may be: a field is within what is read of an object at once, or of a frame. */
bool v8_is_sound(size_t which, int32_t value);

/* ---- heap.c ---- */

static inline int32_t v8_at(const struct v8 *v, enum v8_constant which)
{
    return v->layout->at[which];
}

static inline bool v8_read(const struct v8 *v, uint64_t address, void *out, uint32_t len)
{
    struct memory_piece piece = {address, out, len, 0};
    return plausible(address) && memory_batch_read(v->memory, &piece, 1, NULL) && piece.got == len;
}

/* A word that is an object: its address; 0: it is none (a small number). Weak ones count, too. */
static inline uint64_t v8_object(uint64_t word)
{
    return (word & 1) != 0 ? word & ~(uint64_t)3 : 0;
}

/* A word that is a small number. */
static inline bool v8_small(uint64_t word, int32_t *out)
{
    *out = (int32_t)(word >> 32);
    return (word & UINT32_MAX) == 0;
}

/* An object's first bytes and its instance type; what a field has of them. */
struct v8_head {
    uint64_t at;
    unsigned char bytes[V8_HEAD_BYTES];
    uint16_t type;
};

bool v8_read_head(const struct v8 *v, uint64_t word, struct v8_head *out);
static inline uint64_t v8_field(const struct v8_head *h, int32_t offset)
{
    return offset >= 0 && offset <= V8_HEAD_BYTES - 8 ? load_u64(h->bytes + offset) : 0;
}

bool v8_is_string(const struct v8 *v, const struct v8_head *head);
/* Appends the string as UTF-8, as much of it as `out` takes. False: it is none, or cannot be read. */
bool v8_read_string(const struct v8 *v, uint64_t word, struct buf *out);

/* A string's characters where they stand in one piece; false: they do not. */
struct v8_chars {
    uint64_t at;
    uint32_t len;
    bool is_one_byte;
};
bool v8_find_chars(const struct v8 *v, uint64_t word, struct v8_chars *out);

/* ---- scripts.c ---- */

/* Its number + 1; 0: it is none. */
uint32_t v8_script(struct v8 *v, uint64_t word);
/* Of a URL its path, with what is escaped in it as it is. */
void v8_tidy_url(struct buf *name);
/* Both from 1 on; false: the script's text cannot be read. */
bool v8_line_at(struct v8 *v, uint32_t script, uint32_t position, uint32_t *line, uint32_t *column);
/* By the script's source map; false: there is none, or it does not tell. */
bool v8_original(struct v8 *v, uint32_t script, uint32_t line, uint32_t column, struct source_place *out);
/* Forgets all scripts. */
void v8_forget_scripts(struct v8 *v);

/* ---- functions.c ---- */

/* By its SharedFunctionInfo; its number, or V8_NO_FUNCTION. */
uint32_t v8_function(struct v8 *v, uint64_t shared);
/* "name file:line", and ":column" where the line does not tell which function it is; a line of 0 is not known. */
void v8_put_name(struct buf *out, struct str name, struct str file, uint32_t line, uint32_t column);
/* The SharedFunctionInfo of a JSFunction; 0: it is none, or cannot be read. */
uint64_t v8_shared_of(const struct v8 *v, uint64_t closure);

/* ---- positions.c ---- */

struct v8_position {
    int32_t offset;  /* in the script; -1: unknown */
    int32_t inlined; /* which inlined function it is of; -1: of none */
};

/* From its lowest bit on: whether it is of another table (not in the oldest versions), the offset in the script + 1,
 * and from bit 31 on which inlined function it is of + 1. */
struct v8_position v8_position_of(const struct v8 *v, uint64_t bits);

/* The last one at or before the offset. False: there is none, or no table. */
bool v8_position_at(const struct v8 *v, uint64_t table, uint64_t offset, struct v8_position *out);

/* Of baseline code: the offset of the bytecode that its instruction at `offset` is of. */
bool v8_bytecode_offset(const struct v8 *v, uint64_t table, const struct v8_head *array, uint64_t offset,
                        uint64_t *out);

/* ---- code.c ---- */

/* What a frame of JavaScript has, as it stands there; 0: nothing. Of a leaf it may be another's still. */
struct v8_frame {
    uint64_t closure, array; /* the function and its bytecode */
    bool exact;              /* of a leaf */
};

/* Puts what stands at an address of code, or at an offset of the frame's bytecode, into *place, its functions behind
 * v->scopes. False: nothing is known. */
bool v8_find_code(struct v8 *v, uint64_t address, const struct v8_frame *frame, struct v8_place *place);
bool v8_find_bytecode(struct v8 *v, const struct v8_frame *frame, uint64_t offset, struct v8_place *place);

/* Is it a function of a program, not one of V8's own? */
bool v8_is_of_program(const struct v8 *v, uint64_t closure);

/* ---- places.c ---- */

static inline bool v8_is_due(const struct v8 *v, uint32_t asked)
{
    return v->stacks - asked >= V8_ASK_AGAIN;
}

void v8_make_room(struct v8 *v);
/* Of an object its number + 1 in owners, as it is now; 0: no memory. */
uint32_t v8_owner(struct v8 *v, uint64_t object);
/* Is it still the object that it was? */
bool v8_is_same(struct v8 *v, struct v8_owner *owner);
/* What is remembered of an address, or null: it is to be asked for. Valid until another place is kept. */
struct v8_place *v8_kept_place(struct v8 *v, uint64_t address);
const struct v8_place *v8_keep_place(struct v8 *v, uint64_t address, const struct v8_place *place);

/* ---- names.c ---- */

bool v8_read_name(struct str raw, struct buf *out, struct runtime_named *named);

#endif
