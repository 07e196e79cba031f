/* Any bytes as an ELF file: opened, its functions tabled, looked up and named. */
#include "symbol/symbols.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void look_up(struct symbols *s, struct elf *e, uint64_t address)
{
    struct symbol_hit hit;
    struct buf name;
    buf_init(&name, 2 * ELF_NAME_MAX);
    if (symbols_find(s, address, &hit)) {
        if (address < hit.start || address - hit.start >= hit.size) {
            abort();
        }
        (void)symbols_name(s, e, &hit, &name);
    }
    buf_release(&name);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct elf e;
    struct err err;
    struct symbols s;
    uint64_t value;
    char id[2 * ELF_BUILD_ID_MAX + 1];
    if (!elf_open_bytes(&e, data, size, &err)) {
        return 0;
    }
    symbols_init(&s, 1 << 20);
    elf_build_id_text(&e, id);
    (void)elf_section(&e, ".gnu_debugdata");
    (void)elf_bias(&e, 0x7f0000000000, 0x1000, 4096, &value);
    (void)elf_offset_of(&e, e.entry, &value);
    if (symbols_load_elf(&s, &e, &err)) {
        look_up(&s, &e, e.entry);
        for (size_t i = 0; i < s.table.len && i < 100; i++) {
            look_up(&s, &e, s.base + s.table.at[i].start);
            look_up(&s, &e, s.base + s.table.at[i].start + (s.table.at[i].size & 0xffff));
        }
    } else if (symbols_bytes(&s) != 0) {
        abort();
    }
    symbols_release(&s);
    elf_release(&e);
    return 0;
}
