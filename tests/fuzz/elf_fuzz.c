/* Any bytes as an ELF file: opened, its functions tabled, looked up and named. */
#include "symbol/symbols.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { FEW_BYTES = 10 * sizeof(struct symbol) };

static void look_up(struct symbols *s, struct symbol_files *files, uint64_t address)
{
    struct symbol_hit hit;
    struct buf name;
    buf_init(&name, 2 * ELF_NAME_MAX);
    if (symbols_find(s, address, &hit)) {
        if (address < hit.start || address - hit.start >= hit.size) {
            abort();
        }
        (void)symbols_name(s, files, &hit, &name);
    }
    buf_release(&name);
}

/* The same of a table that has no room but for what two addresses need. */
static void look_up_few(struct symbol_files *files)
{
    struct symbols s;
    const struct elf *e = &files->elf[FILE_MAIN];
    const uint64_t wanted[] = {e->text_start, e->entry > e->text_start ? e->entry : e->text_start};
    symbols_init(&s, FEW_BYTES);
    symbols_want(&s, wanted, 2);
    if (symbols_load_files(&s, files, NULL)) {
        look_up(&s, files, wanted[0]);
        look_up(&s, files, wanted[1]);
    } else if (symbols_bytes(&s) != 0) {
        abort();
    }
    symbols_release(&s);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct symbol_files files = {0};
    struct elf *e = &files.elf[FILE_MAIN];
    struct err err;
    struct symbols s;
    uint64_t value;
    char id[2 * ELF_BUILD_ID_MAX + 1];
    if (!elf_open_bytes(e, data, size, &err)) {
        return 0;
    }
    files.has[FILE_MAIN] = true;
    buf_init(&files.packed, FILES_PACKED_MAX_BYTES);
    symbols_init(&s, 1 << 20);
    elf_build_id_text(e, id);
    (void)elf_section(e, ".gnu_debugdata");
    (void)elf_bias(e, 0x7f0000000000, 0x1000, 4096, &value);
    (void)elf_offset_of(e, e->entry, &value);
    if (symbols_load_files(&s, &files, &err)) {
        look_up(&s, &files, e->entry);
        for (size_t i = 0; i < s.table.len && i < 100; i++) {
            look_up(&s, &files, s.base + s.table.at[i].start);
            look_up(&s, &files, s.base + s.table.at[i].start + (s.table.at[i].size & 0xffff));
        }
    } else if (symbols_bytes(&s) != 0) {
        abort();
    }
    symbols_release(&s);
    look_up_few(&files);
    symbol_files_release(&files);
    return 0;
}
