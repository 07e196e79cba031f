/*
 * A process of V8, made here: two functions of one script, `outer` and `inner`; code of `outer`, into which `inner` is
 * inlined; baseline code of `outer`; a frame of the interpreter. What objects look like is as in V8 12. For v8_test.c
 * and v8_fuzz.c.
 */
#ifndef TESTS_V8_PROCESS_H
#define TESTS_V8_PROCESS_H

#include "runtime/v8/private.h"

#include <string.h>

extern const struct runtime runtime_v8;

#define AT(offset) (UINT64_C(0x7f0000000000) + (offset))

enum {
    V8_BYTES = 0x10000,
    /* instance types */
    IS_TWO_BYTE = 32, IS_STRING = 40, IS_CONS = 41, IS_EXTERNAL = 42, IS_SLICED = 43, IS_THIN = 45,
    IS_SCRIPT = 167, IS_ARRAY = 174, IS_BYTES = 186, IS_BYTECODE = 205, IS_CODE = 206, IS_STREAM = 255, IS_MAP = 264,
    IS_SCOPE = 272, IS_SHARED = 274, IS_FUNCTION = 2066,
    AT_MAPS = 0x0100, /* 0x40 for each */
    AT_SOURCE = 0x1000, AT_NAMES = 0x1300, AT_SCRIPT = 0x1400, AT_SCRIPT_NAME = 0x1500,
    AT_SCOPES = 0x2000, AT_SHARED = 0x2400, AT_CLOSURES = 0x2800, /* 0x100 for each: outer, inner */
    AT_BYTECODE = 0x3000, AT_BYTECODE_POSITIONS = 0x3100,
    AT_STREAM = 0x5000, AT_STREAM_CODE = AT_STREAM + 0x20, AT_CODE = 0x3200, AT_CODE_POSITIONS = 0x3300,
    AT_DEOPTIMIZATION = 0x3400, AT_LITERALS = 0x3500, AT_INLININGS = 0x3600,
    AT_BASELINE = 0x6000, AT_BASELINE_CODE = AT_BASELINE + 0x20, AT_BASELINE_OBJECT = 0x3700,
    AT_BASELINE_OFFSETS = 0x3800,
    AT_REGEXP = 0x7000, AT_REGEXP_OBJECT = 0x3900,
    AT_BUILTINS = 0xf000, /* the binary's own code */
};

struct v8_process {
    unsigned char bytes[V8_BYTES];
    struct v8_layout layout;
    uint32_t maps;
    unsigned reads;
    bool is_gone;
    struct memory_batch memory;
};

static void v8_put(struct v8_process *p, uint32_t at, uint64_t value, size_t bytes)
{
    memcpy(p->bytes + at, &value, bytes);
}

static uint64_t v8_tag(uint32_t at)
{
    return AT(at) + 1;
}

static uint64_t v8_number(int32_t value)
{
    return (uint64_t)(uint32_t)value << 32;
}

/* An object's map, which is one of its own. */
static void v8_is(struct v8_process *p, uint32_t at, uint16_t type)
{
    uint32_t map = AT_MAPS + 0x40 * p->maps++;
    v8_put(p, map, v8_tag(0), 8); /* the map of maps, at the beginning */
    v8_put(p, map + 12, type, 2);
    v8_put(p, at, v8_tag(map), 8);
}

static void v8_string(struct v8_process *p, uint32_t at, const char *text)
{
    v8_is(p, at, IS_STRING);
    v8_put(p, at + 12, strlen(text), 4);
    memcpy(p->bytes + at + 16, text, strlen(text));
}

static void v8_bytes(struct v8_process *p, uint32_t at, const void *bytes, size_t len)
{
    v8_is(p, at, IS_BYTES);
    v8_put(p, at + 8, v8_number((int32_t)len), 8);
    memcpy(p->bytes + at + 16, bytes, len);
}

static void v8_array(struct v8_process *p, uint32_t at, int32_t count)
{
    v8_is(p, at, IS_ARRAY);
    v8_put(p, at + 8, v8_number(count), 8);
}

/* Function number `which`, whose text is from start to end; it has one local. */
static void v8_make_function(struct v8_process *p, uint32_t which, const char *name, int32_t start, int32_t end)
{
    uint32_t scope = AT_SCOPES + 0x100 * which, shared = AT_SHARED + 0x100 * which, text = AT_NAMES + 0x40 * which;
    const uint64_t slots[] = {0,
                              0,
                              v8_number(1),
                              v8_tag(text),
                              v8_number(7),
                              v8_tag(text),
                              v8_number(-1),
                              v8_number(start),
                              v8_number(end),
                              v8_tag(scope)};
    v8_string(p, text, name);
    v8_is(p, scope, IS_SCOPE);
    memcpy(p->bytes + scope + 8, slots, sizeof slots);
    v8_is(p, shared, IS_SHARED);
    v8_put(p, shared + 8, v8_tag(AT_BYTECODE), 8);
    v8_put(p, shared + 16, v8_tag(scope), 8);
    v8_put(p, shared + 32, v8_tag(AT_SCRIPT), 8);
    v8_is(p, AT_CLOSURES + 0x100 * which, IS_FUNCTION);
    v8_put(p, AT_CLOSURES + 0x100 * which + 32, v8_tag(shared), 8);
}

static void v8_make_code(struct v8_process *p, uint32_t stream, uint32_t object, uint32_t kind,
                         uint64_t deoptimization, uint64_t positions)
{
    v8_is(p, stream, IS_STREAM);
    v8_put(p, stream + 8, v8_tag(object), 8);
    v8_is(p, object, IS_CODE);
    v8_put(p, object + 8, deoptimization, 8);
    v8_put(p, object + 16, positions, 8);
    v8_put(p, object + 32, v8_tag(stream), 8);
    v8_put(p, object + 40, AT(stream + 0x20), 8);
    v8_put(p, object + 48, kind, 4);
    v8_put(p, object + 52, 0x100, 4);
}

/* Steps of both, as they are written: {offset, position}, less than 64 each. */
#define STEP(offset, position) (offset) << 1, (position) << 1

/* Where instructions are of the script, of outer on line 2 and of inner on line 3; positions are doubled, + 2. */
static void v8_make_tables(struct v8_process *p)
{
    static const unsigned char bytecode[] = {STEP(0, 42), STEP(4, 4)}; /* 20 and 22 */
    /* of code: outer at 20; from 0x40 on inner at 45, inlined; from 0x80 on outer at 22 again */
    static const unsigned char code[] = {STEP(0, 42), 0x80, 0x01, 0xe4, 0x80, 0x80, 0x80, 0x10,
                                         0x80,        0x01, 0xdb, 0x80, 0x80, 0x80, 0x10};
    static const unsigned char offsets[] = {0x10, 0x20, 0x20, 0x20}; /* before, and of three instructions */
    v8_bytes(p, AT_BYTECODE_POSITIONS, bytecode, sizeof bytecode);
    v8_bytes(p, AT_CODE_POSITIONS, code, sizeof code);
    v8_bytes(p, AT_BASELINE_OFFSETS, offsets, sizeof offsets);
}

static bool v8_read_process(void *context, struct memory_piece *pieces, size_t count, struct err *err)
{
    struct v8_process *p = context;
    (void)err;
    p->reads++;
    for (size_t i = 0; i < count; i++) {
        uint64_t at = pieces[i].address - AT(0);
        uint64_t there = at < V8_BYTES && !p->is_gone ? V8_BYTES - at : 0;
        pieces[i].got = there < pieces[i].len ? (uint32_t)there : pieces[i].len;
        if (pieces[i].got > 0) {
            memcpy(pieces[i].out, p->bytes + at, pieces[i].got);
        }
    }
    return !p->is_gone;
}

static void v8_make_layout(struct v8_layout *l)
{
    static const struct {
        uint8_t which;
        int32_t value;
    } values[] = {
        {V8_FRAME_CONTEXT, -8}, {V8_FRAME_FUNCTION, -16}, {V8_FRAME_BYTECODE, -32}, {V8_FRAME_OFFSET, -40},
        {V8_MAP_TYPE, 12}, {V8_FUNCTION_SHARED, 32}, {V8_SHARED_NAME, 16}, {V8_SHARED_SCRIPT, 32},
        {V8_SCRIPT_NAME, 16}, {V8_SCRIPT_SOURCE, 8}, {V8_STRING_LENGTH, 12}, {V8_STRING_ONE_BYTE, 16},
        {V8_STRING_CONS_FIRST, 16}, {V8_STRING_CONS_SECOND, 24}, {V8_STRING_PARENT, 16},
        {V8_STRING_OFFSET, 24}, {V8_STRING_ACTUAL, 16}, {V8_STRING_RESOURCE, 16}, {V8_BYTECODE_POSITIONS, 24},
        {V8_CODE_SIZE, 52}, {V8_CODE_FLAGS, 48}, {V8_CODE_DEOPTIMIZATION, 8}, {V8_CODE_POSITIONS, 16},
        {V8_SCOPE_SLOTS, 8}, {V8_SCOPE_PARAMETERS, 1}, {V8_SCOPE_LOCALS, 2}, {V8_SCOPE_FIRST, 3},
        {V8_LOCALS_IN_TABLE, 75}, {V8_BYTECODE_DATA, 64}, {V8_ARRAY_REGISTER, 12}, {V8_CODE_KIND_MASK, 15},
        {V8_CODE_REGEXP, 3}, {V8_POSITION_OTHERS, 1}, {V8_DEOPT_LITERALS, 2}, {V8_DEOPT_SHARED, 6},
        {V8_DEOPT_INLININGS, 7}, {V8_NOT_STRING, 0xff80}, {V8_TYPE_MAP, IS_MAP}, {V8_TYPE_SHARED, IS_SHARED},
        {V8_TYPE_SCOPE, IS_SCOPE}, {V8_TYPE_SCRIPT, IS_SCRIPT}, {V8_TYPE_BYTECODE, IS_BYTECODE},
        {V8_TYPE_CODE, IS_CODE},
    };
    *l = (struct v8_layout){.version = {12, 4, 254, 21}, .version_at = 0x20, .bytecodes = 8};
    for (size_t i = 0; i < sizeof values / sizeof values[0]; i++) {
        l->at[values[i].which] = values[i].value;
    }
    memset(l->bytecode_bytes, 2, sizeof l->bytecode_bytes); /* two bytes each, four with wide operands */
    memset(l->bytecode_bytes + 8, 3, 8);
}

static void v8_make(struct v8_process *p)
{
    static const char source[] = "// a script\nfunction outer() { inner(); }\nfunction inner() {}\n";
    *p = (struct v8_process){.memory = {v8_read_process, p}};
    v8_make_layout(&p->layout);
    v8_put(p, 0, v8_tag(0), 8);
    v8_put(p, 12, IS_MAP, 2);
    v8_put(p, 0x20, 12, 4);
    v8_string(p, AT_SOURCE, source);
    v8_string(p, AT_SCRIPT_NAME, "file:///srv/a%20b.js");
    v8_is(p, AT_SCRIPT, IS_SCRIPT);
    v8_put(p, AT_SCRIPT + 8, v8_tag(AT_SOURCE), 8);
    v8_put(p, AT_SCRIPT + 16, v8_tag(AT_SCRIPT_NAME), 8);
    v8_make_function(p, 0, "outer", 26, 41);
    v8_make_function(p, 1, "inner", 56, 61);
    v8_make_tables(p);
    v8_is(p, AT_BYTECODE, IS_BYTECODE);
    v8_put(p, AT_BYTECODE + 8, v8_number(7), 8);
    v8_put(p, AT_BYTECODE + 24, v8_tag(AT_BYTECODE_POSITIONS), 8);
    memcpy(p->bytes + AT_BYTECODE + 64, "\x05\0\x00\x05\0\0\x05", 7); /* one, a wide one, one */
    v8_array(p, AT_DEOPTIMIZATION, 8);
    v8_put(p, AT_DEOPTIMIZATION + 16 + 8 * 2, v8_tag(AT_LITERALS), 8);
    v8_put(p, AT_DEOPTIMIZATION + 16 + 8 * 6, v8_tag(AT_SHARED), 8);
    v8_put(p, AT_DEOPTIMIZATION + 16 + 8 * 7, v8_tag(AT_INLININGS), 8);
    v8_array(p, AT_LITERALS, 1);
    v8_put(p, AT_LITERALS + 16, v8_tag(AT_SHARED + 0x100), 8);
    static const uint64_t inlining[] = {2 * (22 + 1), 0}; /* called at 22, of outer itself */
    v8_bytes(p, AT_INLININGS, inlining, sizeof inlining);
    v8_make_code(p, AT_STREAM, AT_CODE, 12, v8_tag(AT_DEOPTIMIZATION), v8_tag(AT_CODE_POSITIONS));
    v8_make_code(p, AT_BASELINE, AT_BASELINE_OBJECT, 10, v8_tag(AT_BYTECODE), v8_tag(AT_BASELINE_OFFSETS));
    v8_make_code(p, AT_REGEXP, AT_REGEXP_OBJECT, 3, 0, 0);
}

static enum runtime_answer v8_attach(struct v8_process *p, void **state, struct err *why)
{
    static const struct runtime_map maps[] = {{AT(AT_BUILTINS), AT(AT_BUILTINS + 0x1000), 0, 5, true, false}};
    const struct runtime_process process = {
        .pid = 1, .memory = &p->memory, .bias = AT(0), .maps = maps, .map_count = 1};
    *state = NULL;
    return runtime_v8.attach(&p->layout, &process, state, why);
}

#endif
