/* Any bytes as an ELF file with DWARF: look-ups end, and what they tell is text. */
#include "symbol/inlines.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { LOOKS_MAX = 200, ADDRESSES = 24 };

/* A clock that ends every look-up after so many looks at it. */
static uint64_t look(void *context)
{
    return ++*(uint64_t *)context;
}

static size_t sum_of(struct str text)
{
    size_t sum = 0;
    for (size_t i = 0; i < text.len; i++) {
        sum += (unsigned char)text.ptr[i]; /* reads every byte */
    }
    return sum;
}

static void look_up(struct inlines *in, uint64_t address)
{
    struct source_line lines[PROFILE_INLINES_MAX];
    uint64_t looks = 0;
    struct clock clock = {look, look, &looks};
    size_t count = inlines_lookup(in, address, LOOKS_MAX, &clock, lines, PROFILE_INLINES_MAX);
    if (count > PROFILE_INLINES_MAX || looks > LOOKS_MAX + 1) {
        abort();
    }
    for (size_t i = 0; i < count; i++) {
        if (sum_of(lines[i].name) + sum_of(lines[i].system_name) + sum_of(lines[i].file) ==
            SIZE_MAX) {
            abort();
        }
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct symbol_files files = {0};
    struct err err;
    if (!elf_open_bytes(&files.elf[FILE_MAIN], data, size, &err)) {
        return 0;
    }
    files.has[FILE_MAIN] = true;
    struct inlines *in = inlines_open(&files, &err);
    if (in != NULL) {
        const struct elf *elf = &files.elf[FILE_MAIN];
        uint64_t step = (elf->text_limit - elf->text_start) / ADDRESSES + 1;
        for (uint64_t i = 0; i < ADDRESSES; i++) {
            look_up(in, elf->text_start + i * step);
        }
        if (inlines_bytes(in) > 2 * (size_t)INLINES_MAX_BYTES) {
            abort();
        }
        inlines_release(in);
    }
    elf_release(&files.elf[FILE_MAIN]);
    return 0;
}
