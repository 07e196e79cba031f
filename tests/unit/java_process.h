/*
 * A process of HotSpot, made here: its tables, one code heap with a compiled method (B, into which A is inlined) and
 * a stub, the interpreter's code, and two methods. Offsets are those of 17 where they matter. For java_test.c and
 * java_fuzz.c.
 */
#ifndef TESTS_JAVA_PROCESS_H
#define TESTS_JAVA_PROCESS_H

#include "runtime/java/private.h"

#include <string.h>

extern const struct runtime runtime_java;

#define AT(offset) (UINT64_C(0x7f0000000000) + (offset))

enum {
    JAVA_BYTES = 0x10000,
    AT_VALUES = 0x0010,  /* the exported variables */
    AT_ENTRIES = 0x0100, /* 48 bytes each */
    AT_TYPES = 0x1400,   /* 16 bytes each */
    AT_TEXTS = 0x1500,   /* 32 bytes each */
    AT_STATICS = 0x3000,
    AT_METHODS =
        0x4000, /* 0x800 for each: method, ConstMethod + 0x100, pool + 0x200, class + 0x300, symbols + 0x400 */
    AT_HEAPS = 0x5000,
    AT_QUEUE = 0x5800,
    AT_SEGMENTS = 0x6000,
    AT_HEAP = 0x8000,
    AT_NMETHOD = AT_HEAP + 16,
    AT_CODE = AT_NMETHOD + 0x180,
    AT_SCOPES = AT_NMETHOD + 0x300,
    AT_STUB = AT_HEAP + 0x400 + 16,
    AT_STUB_CODE = AT_STUB + 0x80,
    AT_HEAP_END = 0xc000,
    AT_INTERPRETER = 0xe000,
    INTERPRETER_BYTES = 0x1000,
};

struct java_process {
    unsigned char bytes[JAVA_BYTES];
    uint32_t texts, entries;
    unsigned reads;
    struct memory_batch memory;
};

static void java_put(struct java_process *p, uint32_t at, uint64_t value, size_t bytes)
{
    memcpy(p->bytes + at, &value, bytes);
}

static uint64_t java_text(struct java_process *p, const char *text)
{
    uint32_t at = AT_TEXTS + 32 * p->texts++;
    memcpy(p->bytes + at, text, strlen(text) + 1);
    return AT(at);
}

static void java_entry(struct java_process *p, const char *type, const char *field, uint64_t offset, uint64_t address)
{
    uint32_t at = AT_ENTRIES + 48 * p->entries++;
    java_put(p, at, java_text(p, type), 8);
    java_put(p, at + 8, java_text(p, field), 8);
    java_put(p, at + 24, address != 0, 4);
    java_put(p, at + 32, offset, 8);
    java_put(p, at + 40, address, 8);
}

static void java_symbol(struct java_process *p, uint32_t at, const char *text)
{
    java_put(p, at + 4, strlen(text), 2);
    memcpy(p->bytes + at + 6, text, strlen(text));
}

/* Class `class`, method `name`, of the file `file`; line 10 from the first instruction on, 12 from the fifth. */
static void java_make_method(struct java_process *p, uint32_t at, const char *class, const char *name,
                             const char *file)
{
    static const unsigned char lines[] = {0xff, 0, 20, 4 << 3 | 2, 0}; /* a long one: by 0 and 10 */
    java_put(p, at + 8, AT(at + 0x100), 8);
    java_put(p, at + 0x100 + 8, AT(at + 0x200), 8); /* constants */
    java_put(p, at + 0x100 + 28, 1, 2);             /* has lines */
    java_put(p, at + 0x100 + 32, 16, 2);            /* bytes of code */
    java_put(p, at + 0x100 + 34, 1, 2);             /* its name's place in the pool */
    memcpy(p->bytes + at + 0x100 + 48 + 16, lines, sizeof lines);
    java_put(p, at + 0x200 + 24, AT(at + 0x300), 8); /* the class */
    java_put(p, at + 0x200 + 54, 2, 2);              /* the file's name */
    java_put(p, at + 0x200 + 72 + 8, AT(at + 0x400), 8);
    java_put(p, at + 0x200 + 72 + 16, AT(at + 0x500), 8);
    java_put(p, at + 0x300 + 24, AT(at + 0x600), 8);
    java_symbol(p, at + 0x400, name);
    java_symbol(p, at + 0x500, file);
    java_symbol(p, at + 0x600, class);
}

static void java_make_blob(struct java_process *p, uint32_t at, const char *name, uint32_t code, uint32_t bytes,
                           uint32_t words)
{
    java_put(p, at + 96, java_text(p, name), 8);
    java_put(p, at + 12, code + bytes - at, 4);
    java_put(p, at + 20, 16, 4); /* the frame is whole from there on */
    java_put(p, at + 28, words, 4);
    java_put(p, at + 32, AT(code), 8);
    java_put(p, at + 40, AT(code + bytes), 8);
}

/* B from the start on; from 0x40 to 0x80 A, inlined into B. */
static void java_make_compiled(struct java_process *p)
{
    static const unsigned char scopes[] = {0, 0, 1, 3, /* B at 2 */ 0, 1, 2 /* A at 1, called by that */, 0};
    static const int32_t places[][2] = {{-1, 0}, {0x40, 1}, {0x80, 4}, {0x100, 1}};
    java_make_blob(p, AT_NMETHOD, "nmethod", AT_CODE, 0x100, 6);
    java_put(p, AT_NMETHOD + 12, 0x3f0, 4);
    java_put(p, AT_NMETHOD + 112, AT(AT_METHODS + 0x800), 8);
    java_put(p, AT_NMETHOD + 120, AT(AT_SCOPES), 8);
    java_put(p, AT_NMETHOD + 128, AT(AT_CODE + 0xf0), 8); /* undoes it */
    java_put(p, AT_NMETHOD + 300, 8, 4);                  /* where the place before is kept in its frame */
    java_put(p, AT_NMETHOD + 260, 0x2c0, 4);
    java_put(p, AT_NMETHOD + 268, 0x340, 4);
    java_put(p, AT_NMETHOD + 272, 0x340 + sizeof places / sizeof places[0] * 16, 4);
    java_put(p, AT_NMETHOD + 304, 7, 4);
    java_put(p, AT_NMETHOD + 0x2c0, AT(AT_METHODS + 0x800), 8); /* 1: B */
    java_put(p, AT_NMETHOD + 0x2c8, AT(AT_METHODS), 8);         /* 2: A */
    memcpy(p->bytes + AT_SCOPES, scopes, sizeof scopes);
    p->bytes[AT_SCOPES + 4] = 1;
    p->bytes[AT_SCOPES + 5] = 2;
    p->bytes[AT_SCOPES + 6] = 2;
    for (uint32_t i = 0; i < sizeof places / sizeof places[0]; i++) {
        java_put(p, AT_NMETHOD + 0x340 + 16 * i, (uint32_t)places[i][0], 4);
        java_put(p, AT_NMETHOD + 0x340 + 16 * i + 4, (uint32_t)places[i][1], 4);
    }
}

static void java_make_tables(struct java_process *p)
{
    static const struct {
        const char *type, *field;
        uint32_t offset;
    } fields[] = {
        {"CodeHeap", "_memory", 8},
        {"CodeHeap", "_segmap", 120},
        {"CodeHeap", "_log2_segment_size", 256},
        {"VirtualSpace", "_low", 16},
        {"VirtualSpace", "_high", 24},
        {"GrowableArrayBase", "_len", 0},
        {"GrowableArray<int>", "_data", 8},
        {"CodeBlob", "_name", 96},
        {"CodeBlob", "_size", 12},
        {"CodeBlob", "_frame_size", 28},
        {"CodeBlob", "_frame_complete_offset", 20},
        {"CodeBlob", "_code_begin", 32},
        {"CodeBlob", "_code_end", 40},
        {"CompiledMethod", "_method", 112},
        {"CompiledMethod", "_scopes_data_begin", 120},
        {"nmethod", "_scopes_pcs_offset", 268},
        {"nmethod", "_dependencies_offset", 272},
        {"nmethod", "_metadata_offset", 260},
        {"nmethod", "_compile_id", 304},
        {"nmethod", "_orig_pc_offset", 300},
        {"CompiledMethod", "_deopt_handler_begin", 128},
        {"Method", "_constMethod", 8},
        {"ConstMethod", "_constants", 8},
        {"ConstMethod", "_flags", 28},
        {"ConstMethod", "_code_size", 32},
        {"ConstMethod", "_name_index", 34},
        {"ConstantPool", "_pool_holder", 24},

        {"ConstantPool", "_source_file_name_index", 54},
        {"Klass", "_name", 24},
        {"Symbol", "_length", 4},
        {"Symbol", "_body", 6},
        {"StubQueue", "_stub_buffer", 8},
        {"StubQueue", "_buffer_limit", 16},
    };
    static const struct {
        const char *name;
        uint32_t bytes;
    } sizes[] = {{"HeapBlock", 16}, {"ConstMethod", 48}, {"ConstantPool", 72}};
    for (size_t i = 0; i < sizeof fields / sizeof fields[0]; i++) {
        java_entry(p, fields[i].type, fields[i].field, fields[i].offset, 0);
    }
    static const char *const statics[][2] = {{"CodeCache", "_heaps"},
                                             {"AbstractInterpreter", "_code"},
                                             {"StubRoutines", "_call_stub_return_address"},
                                             {"Abstract_VM_Version", "_vm_major_version"},
                                             {"Abstract_VM_Version", "_vm_minor_version"},
                                             {"Abstract_VM_Version", "_vm_security_version"}};
    static const uint64_t values[] = {AT(AT_HEAPS), AT(AT_QUEUE), AT(AT_STUB_CODE + 0x20), 17, 0, 15};
    for (uint32_t i = 0; i < sizeof values / sizeof values[0]; i++) {
        java_entry(p, statics[i][0], statics[i][1], 0, AT(AT_STATICS + 8 * i));
        java_put(p, AT_STATICS + 8 * i, values[i], 8);
    }
    for (uint32_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        java_put(p, AT_TYPES + 16 * i, java_text(p, sizes[i].name), 8);
        java_put(p, AT_TYPES + 16 * i + 8, sizes[i].bytes, 8);
    }
    const struct java_tables t = {.structs = AT(AT_ENTRIES),
                                  .types = AT(AT_TYPES),
                                  .type_name = 0,
                                  .field_name = 8,
                                  .is_static = 24,
                                  .offset = 32,
                                  .address = 40,
                                  .stride = 48,
                                  .size_name = 0,
                                  .size_size = 8,
                                  .size_stride = 16};
    memcpy(p->bytes + AT_VALUES, &t, sizeof t);
}

static bool java_read_process(void *context, struct memory_piece *pieces, size_t count, struct err *err)
{
    struct java_process *p = context;
    (void)err;
    p->reads++;
    for (size_t i = 0; i < count; i++) {
        uint64_t at = pieces[i].address - AT(0);
        uint64_t there = at < JAVA_BYTES ? JAVA_BYTES - at : 0;
        pieces[i].got = there < pieces[i].len ? (uint32_t)there : pieces[i].len;
        if (pieces[i].got > 0) {
            memcpy(pieces[i].out, p->bytes + at, pieces[i].got);
        }
    }
    return true;
}

static void java_make(struct java_process *p)
{
    *p = (struct java_process){.memory = {java_read_process, p}};
    java_make_tables(p);
    java_put(p, AT_HEAPS, 1, 4);
    java_put(p, AT_HEAPS + 8, AT(AT_HEAPS + 0x20), 8);
    java_put(p, AT_HEAPS + 0x20, AT(AT_HEAPS + 0x100), 8);
    java_put(p, AT_HEAPS + 0x100 + 8 + 16, AT(AT_HEAP), 8);
    java_put(p, AT_HEAPS + 0x100 + 8 + 24, AT(AT_HEAP_END), 8);
    java_put(p, AT_HEAPS + 0x100 + 120 + 16, AT(AT_SEGMENTS), 8);
    java_put(p, AT_HEAPS + 0x100 + 256, 7, 4);
    java_put(p, AT_QUEUE + 8, AT(AT_INTERPRETER), 8);
    java_put(p, AT_QUEUE + 16, INTERPRETER_BYTES, 4);
    memset(p->bytes + AT_SEGMENTS, 0xff, (AT_HEAP_END - AT_HEAP) / 128);
    for (unsigned char i = 0; i < 8; i++) { /* two blobs of 1 KiB */
        p->bytes[AT_SEGMENTS + i] = p->bytes[AT_SEGMENTS + 8 + i] = i;
    }
    java_make_method(p, AT_METHODS, "shop/A", "inner", "A.java");
    java_make_method(p, AT_METHODS + 0x800, "shop/B$$Lambda$3+0x00007f12", "outer", "B.java");
    java_make_compiled(p);
    java_make_blob(p, AT_STUB, "StubRoutines (1)", AT_STUB_CODE, 0x100, 0);
}

static enum runtime_answer java_attach(struct java_process *p, void **state, struct err *why)
{
    struct java_tables at;
    uint64_t *word = (uint64_t *)&at;
    for (size_t i = 0; i < sizeof at / sizeof *word; i++) {
        word[i] = AT(AT_VALUES) + 8 * i;
    }
    const struct runtime_process process = {.pid = 1, .memory = &p->memory};
    *state = NULL;
    return runtime_java.attach(&at, &process, state, why);
}

#endif
