/*
 * Any bytes as a file and as a process of CPython. Byte 0 tells which:
 *     0xff       the rest is an ELF file, which is recognised and asked about its code;
 *     0xfe, 0xfd a well-made file (3.9 for x86-64, 2.7 for AArch64), spoiled by what follows:
 *                records of a place (16 bits) and a word for it;
 *     otherwise  a well-made process of family (byte & 15), spoiled likewise, by records of
 *                a place (16 bits, times 2) and a word. 0x10: without symbols of data, 0x20:
 *                without PyCode_Type, 0x40: without a version, 0x80: its objects linked.
 * What is found must be of the process, and cost a bounded number of reads.
 */
#include "../unit/elf_dynamic.h"
#include "../unit/python_process.h"
#include "base/cursor.h"

#include <stdlib.h>

enum { READS_MAX = 40000 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* ---- file ---- */

/* Functions are 256 bytes long, or what the address says. */
static bool function_at(void *context, uint64_t address, uint64_t *start, uint64_t *limit)
{
    (void)context;
    *start = address & ~(uint64_t)0xff;
    *limit = *start + 0x100 + (address & 0x700);
    return (address & 0x800) == 0;
}

static void recognise(const uint8_t *data, size_t size)
{
    struct runtime_code code = {function_at, NULL};
    struct elf e;
    void *binary = NULL;
    struct err err = {0};
    if (!elf_open_bytes(&e, data, size, NULL)) {
        return;
    }
    enum runtime_answer answer = python_recognise(&e, STR("file"), &code, &binary, &err);
    if ((answer == RUNTIME_YES) != (binary != NULL) ||
        (answer == RUNTIME_UNSUPPORTED) != (err.kind != ERR_NONE)) {
        abort();
    }
    const struct python_binary *b = binary;
    for (size_t i = 0; b != NULL && i < b->ranges.count; i++) {
        const struct code_range *r = &b->ranges.at[i];
        if (r->start >= r->limit || (i > 0 && r->start < b->ranges.at[i - 1].limit) ||
            python_native_at(b, r->start) != r->native ||
            python_native_at(b, r->limit - 1) != r->native) {
            abort();
        }
    }
    python_forget(binary);
    elf_release(&e);
}

static const struct dynamic_symbol symbols[] = {
    {"PyCode_Type", 0x8500, 0x1a0, STT_OBJECT, 0},
    {"_PyRuntime", 0xa100, 0x290, STT_OBJECT, 0},
    {"PyFrame_GetCode", 0x4010, 0x10, STT_FUNC, 0},
    {"_PyEval_EvalFrameDefault", 0x4100, 0x100, STT_FUNC, 0},
    {"PyEval_EvalFrameEx", 0x4020, 0x10, STT_FUNC, 0},
    {"_PyObject_Vectorcall", 0x4030, 0x10, STT_FUNC, 0},
    {"PyDescr_NewMethod", 0x6000, 0x40, STT_FUNC, 0},
    {"PyCFunction_Type", 0x8800, 0x1a0, STT_OBJECT, 0},
    {"PyString_Type", 0x8500, 0x1a0, STT_OBJECT, 0},
    {"_PyThreadState_Current", 0xa100, 8, STT_OBJECT, 0},
    {"PyEval_EvalFrameEx", 0x4100, 0x100, STT_FUNC, 0},
};

static void recognise_spoiled(bool is_new, struct cursor c)
{
    static struct elf_dynamic_image file;
    dynamic_make(&file, is_new ? EM_X86_64 : EM_AARCH64, is_new ? DYNAMIC_GNU_HASH : DYNAMIC_HASH,
                 is_new ? symbols : symbols + 8, is_new ? 8 : 3, "libc.so.6");
    memcpy(file.bytes + 0x7000, "\0/3.9.18", 9);
    while (c.len >= 10) {
        uint16_t place = cursor_u16(&c);
        dynamic_put(&file, place < DYNAMIC_BYTES - 8 ? place : 0x4100, cursor_u64(&c), 8);
    }
    recognise(file.bytes, sizeof file.bytes);
}

/* ---- process ---- */

static void check(const struct python *python)
{
    const struct python_layout *l = &python->layout;
    if (l->thread.bytes > LAYOUT_THREAD_MAX || l->frame.bytes > LAYOUT_FRAME_MAX ||
        l->code.bytes > LAYOUT_CODE_MAX || python->interp < PROCESS_BASE ||
        python->interp >= PROCESS_BASE + PROCESS_BYTES || python->tid_in_pthread >= 1024 ||
        memchr(python->version_text, 0, sizeof python->version_text) == NULL) {
        abort();
    }
}

static void attach(unsigned kind, struct cursor c)
{
    static struct python_process p;
    struct python *python;
    struct err err = {0};
    process_make_shifted(&p, &families[(kind & 15) % FAMILIES], 3, kind & 0x80 ? 16 : 0);
    if ((kind & 0x10) != 0) {
        p.binary.runtime = p.binary.interp_head = p.binary.current = 0;
    }
    p.binary.code_type = kind & 0x20 ? 0 : p.binary.code_type;
    p.binary.version = kind & 0x40 ? 0 : p.binary.version;
    while (c.len >= 10) {
        uint64_t place = cursor_u16(&c) * 2U;
        put_word(&p, place < PROCESS_BYTES - 8 ? place : 0, cursor_u64(&c));
    }
    enum runtime_answer answer = process_attach(&p, &python, &err);
    if (p.reads > READS_MAX || (answer == RUNTIME_YES) != (python != NULL) ||
        (answer != RUNTIME_YES && err.text[0] == '\0')) {
        abort();
    }
    if (python != NULL) {
        check(python);
    }
    python_detach(python);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size > 0 && data[0] == 0xff) {
        recognise(data + 1, size - 1);
    } else if (size > 0 && (data[0] == 0xfe || data[0] == 0xfd)) {
        recognise_spoiled(data[0] == 0xfe, cursor_of(data + 1, size - 1));
    } else if (size > 0) {
        attach(data[0], cursor_of(data + 1, size - 1));
    }
    return 0;
}
