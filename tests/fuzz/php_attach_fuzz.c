/*
 * Any bytes as a file and as a process of PHP. Byte 0 tells which: 0xff, the rest is an ELF file, which is recognised
 * and asked about its code; 0xfe, a well-made one, spoiled by records of a place (16 bits) and a word; otherwise a
 * well-made process of family (byte & 7), for threads (byte & 8), spoiled likewise by places times 8. What is found
 * must be of the process, and cost a bounded number of reads.
 */
#include "../unit/elf_dynamic.h"
#include "../unit/php_process.h"
#include "base/cursor.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { READS_MAX = 4096 };

static void recognise(const uint8_t *data, size_t size)
{
    struct elf e;
    void *binary = NULL;
    struct err err = {0};
    if (!elf_open_bytes(&e, data, size, NULL)) {
        return;
    }
    enum runtime_answer answer = php_recognise(&e, STR("file"), NULL, &binary, &err);
    if ((answer == RUNTIME_YES) != (binary != NULL) || (answer == RUNTIME_UNSUPPORTED) != (err.kind != ERR_NONE)) {
        abort();
    }
    const struct php_binary *b = binary;
    for (size_t i = 0; b != NULL && i < b->ranges.count; i++) {
        const struct code_range *r = &b->ranges.at[i];
        if (r->start >= r->limit || (i > 0 && r->start < b->ranges.at[i - 1].limit) ||
            php_native_at(b, r->start) != php_native_at(b, r->limit - 1)) {
            abort();
        }
    }
    php_forget(binary);
    elf_release(&e);
}

static const struct dynamic_symbol symbols[] = {
    {"sapi_module", 0xa000, 8, STT_OBJECT, 0},
    {"zend_execute_ex", 0xa010, 8, STT_OBJECT, 0},
    {"executor_globals", 0xa100, 0x700, STT_OBJECT, 0},
    {"execute_ex", 0x4100, 0x100, STT_FUNC, 0},
    {"zend_execute", 0x4020, 0x20, STT_FUNC, 0},
};

static void recognise_spoiled(struct cursor c)
{
    static struct elf_dynamic_image file;
    dynamic_make(&file, EM_X86_64, DYNAMIC_GNU_HASH, symbols, sizeof symbols / sizeof symbols[0], "libc.so.6");
    memcpy(file.bytes + 0x7000, "X-Powered-By: PHP/8.2.36", 25);
    memcpy(file.bytes + 0x7040, "API20220829,NTS", 16);
    while (c.len >= 10) {
        uint16_t place = cursor_u16(&c);
        dynamic_put(&file, place < DYNAMIC_BYTES - 8 ? place : 0x7000, cursor_u64(&c), 8);
    }
    recognise(file.bytes, sizeof file.bytes);
}

static void attach_spoiled(uint8_t kind, struct cursor c)
{
    static struct php_process p;
    struct php *php;
    struct err err = {0};
    if (kind & 8) {
        php_make_threads(&p, &php_families[(kind & 7) % PHP_FAMILIES], 1 + (kind >> 4));
    } else {
        php_make(&p, &php_families[(kind & 7) % PHP_FAMILIES]);
    }
    while (c.len >= 10) {
        uint64_t place = (uint64_t)cursor_u16(&c) * 8;
        php_put(&p, place < PHP_BYTES - 8 ? place : AT_GLOBALS, cursor_u64(&c));
    }
    enum runtime_answer answer = php_process_attach(&p, &php, &err);
    if ((answer == RUNTIME_YES) != (php != NULL) || (answer != RUNTIME_YES && err.kind == ERR_NONE) ||
        p.reads > READS_MAX) {
        abort();
    }
    php_detach(php);
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
