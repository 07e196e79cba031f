/*
 * Any bytes as a file and as a process of Perl. Byte 0 tells which: 0xff, the rest is an ELF file, which is
 * recognised and asked about its code; 0xfe, a well-made one, spoiled by records of a place (16 bits) and a word;
 * otherwise a well-made process of family (byte & 15), spoiled likewise by places times 8.
 * What is found must be of the process, and cost a bounded number of reads.
 */
#include "../unit/elf_dynamic.h"
#include "../unit/perl_process.h"
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
    enum runtime_answer answer = perl_recognise(&e, STR("file"), &code, &binary, &err);
    if ((answer == RUNTIME_YES) != (binary != NULL) || (answer == RUNTIME_UNSUPPORTED) != (err.kind != ERR_NONE)) {
        abort();
    }
    const struct perl_binary *b = binary;
    for (size_t i = 0; b != NULL && i < b->ranges.count; i++) {
        const struct code_range *r = &b->ranges.at[i];
        if (r->start >= r->limit || (i > 0 && r->start < b->ranges.at[i - 1].limit) ||
            perl_native_at(b, r->start) != perl_native_at(b, r->limit - 1)) {
            abort();
        }
    }
    perl_forget(binary);
    void *ops = perl_open_code(&e, NULL);
    for (uint64_t at = 0x4000; ops != NULL && at < 0x5000; at += 0x40) {
        struct runtime_place place = {.address = at};
        struct runtime_resolved found;
        if (perl_resolve(ops, &place, &found) && found.lines.count != 1) {
            abort();
        }
    }
    perl_ops_close(ops);
    elf_release(&e);
}

static const struct dynamic_symbol symbols[] = {
    {"PL_revision", 0x7000, 1, STT_OBJECT, 0},
    {"PL_version", 0x7001, 1, STT_OBJECT, 0},
    {"PL_subversion", 0x7002, 1, STT_OBJECT, 0},
    {"PL_curinterp", 0xa100, 8, STT_OBJECT, 0},
    {"PL_op_name", 0x9000, 0x20, STT_OBJECT, 0},
    {"PL_ppaddr", 0x9100, 0x20, STT_OBJECT, 0},
    {"Perl_runops_standard", 0x4000, 0x20, STT_FUNC, 0},
    {"Perl_call_sv", 0x4020, 0x20, STT_FUNC, 0},
};

/* Two operations, which both jump to the same function. */
static void make_operations(struct elf_dynamic_image *file)
{
    static const char *const names[] = {"entertry", "entereval", "entersub"};
    for (uint64_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        memcpy(file->bytes + 0x7100 + 0x20 * i, names[i], strlen(names[i]) + 1);
        dynamic_put(file, 0x9000 + 8 * i, 0x7100 + 0x20 * i, 8);
        dynamic_put(file, 0x9100 + 8 * i, 0x4100 + 0x100 * i, 8);
        dynamic_put(file, 0x4100 + 0x100 * i, 0xe9, 1);
        dynamic_put(file, 0x4101 + 0x100 * i, 0x4400 - (0x4105 + 0x100 * i), 4);
    }
}

static void recognise_spoiled(struct cursor c)
{
    static struct elf_dynamic_image file;
    dynamic_make(&file, EM_X86_64, DYNAMIC_GNU_HASH, symbols, sizeof symbols / sizeof symbols[0], "libc.so.6");
    memcpy(file.bytes + 0x7000, "\5\44\0", 3);
    make_operations(&file);
    while (c.len >= 10) {
        uint16_t place = cursor_u16(&c);
        dynamic_put(&file, place < DYNAMIC_BYTES - 8 ? place : 0x4100, cursor_u64(&c), 8);
    }
    recognise(file.bytes, sizeof file.bytes);
}

static void attach_spoiled(uint8_t kind, struct cursor c)
{
    static struct perl_process p;
    struct perl *perl;
    struct err err = {0};
    perl_make(&p, &perl_families[(kind & 15) % PERL_FAMILIES]);
    while (c.len >= 10) {
        uint64_t place = (uint64_t)cursor_u16(&c) * 8;
        perl_put(&p, place < PERL_BYTES - 8 ? place : AT_INFO, cursor_u64(&c));
    }
    enum runtime_answer answer = perl_process_attach(&p, &perl, &err);
    if ((answer == RUNTIME_YES) != (perl != NULL) || (answer != RUNTIME_YES && err.kind == ERR_NONE) ||
        p.reads > READS_MAX) {
        abort();
    }
    if (perl != NULL) {
        struct buf text;
        buf_init(&text, 64);
        perl_describe(perl, &text);
        buf_release(&text);
    }
    perl_detach(perl);
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
