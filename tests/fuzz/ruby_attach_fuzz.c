/*
 * Any bytes as a file and as a process of Ruby. Byte 0 tells which: 0xff, the rest is an ELF file, which is
 * recognised and asked about its code; 0xfe, a well-made one, spoiled by records of a place (16 bits) and a word;
 * otherwise a well-made process of family (byte & 15), with bit 4 without symbols, spoiled likewise by places times
 * 8. What is found must be of the process, and cost a bounded number of reads.
 */
#include "../unit/elf_dynamic.h"
#include "../unit/ruby_process.h"
#include "base/cursor.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { READS_MAX = 60000 };

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
    enum runtime_answer answer = ruby_recognise(&e, STR("file"), &code, &binary, &err);
    if ((answer == RUNTIME_YES) != (binary != NULL) || (answer == RUNTIME_UNSUPPORTED) != (err.kind != ERR_NONE)) {
        abort();
    }
    const struct ruby_binary *b = binary;
    for (size_t i = 0; b != NULL && i < b->ranges.count; i++) {
        const struct code_range *r = &b->ranges.at[i];
        if (r->start >= r->limit || (i > 0 && r->start < b->ranges.at[i - 1].limit) ||
            ruby_native_at(b, r->start) != ruby_native_at(b, r->limit - 1)) {
            abort();
        }
    }
    ruby_forget(binary);
    elf_release(&e);
}

static const struct dynamic_symbol symbols[] = {
    {"ruby_version", 0x7000, 8, STT_OBJECT, 0},
    {"ruby_run_node", 0x4000, 0x20, STT_FUNC, 0},
    {"rb_yield", 0x4020, 0x20, STT_FUNC, 0},
    {"rb_vm_exec", 0x4100, 0x100, STT_FUNC, 0},
    {"ruby_current_vm_ptr", 0xa100, 8, STT_OBJECT, 0},
};

static void recognise_spoiled(struct cursor c)
{
    static struct elf_dynamic_image file;
    dynamic_make(&file, EM_X86_64, DYNAMIC_GNU_HASH, symbols, sizeof symbols / sizeof symbols[0], "libc.so.6");
    memcpy(file.bytes + 0x7000, "3.4.5", 6);
    while (c.len >= 10) {
        uint16_t place = cursor_u16(&c);
        dynamic_put(&file, place < DYNAMIC_BYTES - 8 ? place : 0x4100, cursor_u64(&c), 8);
    }
    recognise(file.bytes, sizeof file.bytes);
}

static void attach_spoiled(uint8_t kind, struct cursor c)
{
    static struct ruby_process p;
    struct ruby *ruby;
    struct err err = {0};
    ruby_make(&p, &ruby_families[(kind & 15) % RUBY_FAMILIES], (kind & 16) == 0);
    while (c.len >= 10) {
        uint64_t place = (uint64_t)cursor_u16(&c) * 8;
        ruby_put(&p, place < RUBY_BYTES - 8 ? place : AT_VM, cursor_u64(&c));
    }
    enum runtime_answer answer = ruby_process_attach(&p, &ruby, &err);
    if ((answer == RUNTIME_YES) != (ruby != NULL) || (answer != RUNTIME_YES && err.kind == ERR_NONE) ||
        p.reads > READS_MAX) {
        abort();
    }
    if (ruby != NULL) {
        struct buf text;
        buf_init(&text, 64);
        ruby_describe(ruby, &text);
        buf_release(&text);
    }
    ruby_detach(ruby);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 1) {
        return 0;
    }
    struct cursor rest = cursor_of(data + 1, size - 1);
    if (data[0] == 0xff) {
        recognise(data + 1, size - 1);
    } else if (data[0] == 0xfe) {
        recognise_spoiled(rest);
    } else {
        attach_spoiled(data[0], rest);
    }
    return 0;
}
