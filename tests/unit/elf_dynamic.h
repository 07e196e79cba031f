/*
 * elf_dynamic: shared objects with dynamic symbols and their hash tables, for tests of what is
 * found by name.
 *
 *     dynamic_make(&d, EM_X86_64, DYNAMIC_GNU_HASH, symbols, count, "libc.so.6");
 *
 * One segment of code, file and addresses 0 to 0x8000, of which 0x4000 to 0x8000 is free for a
 * test's bytes; one of data, 0x8000 to 0xa000, free from 0x8400 on, with .bss up to 0x10000. No
 * sections. The hash tables have one bucket, so that its chain holds every symbol in the order
 * given.
 */
#ifndef ELF_DYNAMIC_H
#define ELF_DYNAMIC_H

#include <elf.h>
#include <stdint.h>
#include <string.h>

enum {
    DYNAMIC_BYTES = 0xa000,
    DYNAMIC_SYMBOLS = 0x200,
    DYNAMIC_NAMES = 0x1000,
    DYNAMIC_HASH_TABLE = 0x2000,
    DYNAMIC_TEXT = 0x4000,
    DYNAMIC_DATA = 0x8400,
    DYNAMIC_BSS = 0xa000,
    DYNAMIC_LIMIT = 0x10000,
};

enum dynamic_hash { DYNAMIC_GNU_HASH, DYNAMIC_HASH };

struct dynamic_symbol {
    const char *name;
    uint64_t address, size;
    unsigned type;
    int is_undefined;
};

struct elf_dynamic_image {
    unsigned char bytes[DYNAMIC_BYTES];
    size_t names_len;
};

static inline void dynamic_put(struct elf_dynamic_image *d, size_t at, uint64_t value, size_t width)
{
    for (size_t i = 0; i < width; i++) {
        d->bytes[at + i] = (unsigned char)(value >> 8 * i);
    }
}

static inline uint32_t dynamic_name(struct elf_dynamic_image *d, const char *name)
{
    size_t at = d->names_len;
    memcpy(d->bytes + DYNAMIC_NAMES + at, name, strlen(name) + 1);
    d->names_len += strlen(name) + 1;
    return (uint32_t)at;
}

static inline void dynamic_headers(struct elf_dynamic_image *d, unsigned machine)
{
    Elf64_Ehdr e = {
        .e_ident = {0x7f, 'E', 'L', 'F', ELFCLASS64, ELFDATA2LSB, EV_CURRENT},
        .e_type = ET_DYN, .e_machine = (uint16_t)machine, .e_version = EV_CURRENT,
        .e_phoff = sizeof(Elf64_Ehdr), .e_ehsize = sizeof(Elf64_Ehdr),
        .e_phentsize = sizeof(Elf64_Phdr), .e_phnum = 3,
    };
    Elf64_Phdr p[3] = {
        {.p_type = PT_LOAD, .p_flags = PF_R | PF_X, .p_filesz = 0x8000, .p_memsz = 0x8000},
        {.p_type = PT_LOAD, .p_flags = PF_R | PF_W, .p_offset = 0x8000, .p_vaddr = 0x8000,
         .p_filesz = DYNAMIC_BYTES - 0x8000, .p_memsz = DYNAMIC_LIMIT - 0x8000},
        {.p_type = PT_DYNAMIC, .p_offset = 0x8000, .p_vaddr = 0x8000, .p_filesz = 0x400,
         .p_memsz = 0x400},
    };
    memcpy(d->bytes, &e, sizeof e);
    memcpy(d->bytes + sizeof e, p, sizeof p);
}

static inline uint32_t dynamic_gnu_hash(const char *name)
{
    uint32_t h = 5381;
    for (; *name != '\0'; name++) {
        h = (h << 5) + h + (unsigned char)*name;
    }
    return h;
}

/* One bucket; a Bloom filter that lets everything pass. */
static inline void dynamic_hash_table(struct elf_dynamic_image *d, enum dynamic_hash kind,
                                      const struct dynamic_symbol *symbols, size_t count)
{
    size_t at = DYNAMIC_HASH_TABLE;
    if (kind == DYNAMIC_HASH) {
        dynamic_put(d, at, 1, 4);
        dynamic_put(d, at + 4, count + 1, 4);
        dynamic_put(d, at + 8, count > 0, 4);
        for (size_t i = 1; i <= count; i++) {
            dynamic_put(d, at + 12 + i * 4, i < count ? i + 1 : 0, 4);
        }
        return;
    }
    dynamic_put(d, at, 1, 4);
    dynamic_put(d, at + 4, 1, 4);
    dynamic_put(d, at + 8, 1, 4);
    dynamic_put(d, at + 12, 6, 4);
    dynamic_put(d, at + 16, UINT64_MAX, 8);
    dynamic_put(d, at + 24, count > 0, 4);
    for (size_t i = 0; i < count; i++) {
        uint32_t hash = dynamic_gnu_hash(symbols[i].name);
        dynamic_put(d, at + 28 + i * 4, (hash & ~1U) | (i + 1 == count), 4);
    }
}

static inline void dynamic_make(struct elf_dynamic_image *d, unsigned machine,
                                enum dynamic_hash kind, const struct dynamic_symbol *symbols,
                                size_t count, const char *needed)
{
    *d = (struct elf_dynamic_image){.names_len = 1};
    dynamic_headers(d, machine);
    for (size_t i = 0; i < count; i++) {
        Elf64_Sym s = {.st_name = dynamic_name(d, symbols[i].name),
                       .st_info = (unsigned char)(STB_GLOBAL << 4 | symbols[i].type),
                       .st_shndx = symbols[i].is_undefined ? SHN_UNDEF : 1,
                       .st_value = symbols[i].address, .st_size = symbols[i].size};
        memcpy(d->bytes + DYNAMIC_SYMBOLS + (i + 1) * sizeof s, &s, sizeof s);
    }
    uint32_t library = dynamic_name(d, needed);
    dynamic_hash_table(d, kind, symbols, count);
    Elf64_Dyn dynamic[] = {{DT_NEEDED, {library}}, {DT_SYMTAB, {DYNAMIC_SYMBOLS}},
                           {DT_STRTAB, {DYNAMIC_NAMES}}, {DT_STRSZ, {d->names_len}},
                           {kind == DYNAMIC_HASH ? DT_HASH : DT_GNU_HASH, {DYNAMIC_HASH_TABLE}},
                           {DT_NULL, {0}}};
    memcpy(d->bytes + 0x8000, dynamic, sizeof dynamic);
}

#endif
