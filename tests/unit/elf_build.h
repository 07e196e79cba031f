/*
 * elf_build: ELF files put together section by section, for tests of what is in sections.
 *
 *     build_start(&b, EM_X86_64);
 *     build_section(&b, (struct build_row){".plt", SHT_PROGBITS, SHF_EXECINSTR, 0x1020, code, 16});
 *     build_end(&b);
 *
 * A 64-bit shared object with one executable segment, address 0x1000 to 0x9000, and the sections of
 * the rows, number 1 first, each at a multiple of 8 in the file. (elf_image.h has one fixed file
 * whose headers tests spoil.)
 */
#ifndef ELF_BUILD_H
#define ELF_BUILD_H

#include <elf.h>
#include <stdint.h>
#include <string.h>

enum { BUILD_MAX_BYTES = 128 * 1024, BUILD_SECTIONS_MAX = 16, BUILD_NAMES_MAX = 512 };

struct elf_build {
    unsigned char bytes[BUILD_MAX_BYTES];
    size_t len;
    Elf64_Shdr sections[BUILD_SECTIONS_MAX];
    unsigned count;
    char names[BUILD_NAMES_MAX]; /* of the sections */
    size_t names_len;
};

struct build_row {
    const char *name;
    uint32_t type;
    uint64_t flags, address;
    const void *ptr;
    size_t len;
    uint32_t link;
};

static inline void build_start(struct elf_build *b, unsigned machine)
{
    *b = (struct elf_build){.len = sizeof(Elf64_Ehdr) + sizeof(Elf64_Phdr), .count = 1,
                            .names_len = 1};
    Elf64_Ehdr e = {
        .e_ident = {0x7f, 'E', 'L', 'F', ELFCLASS64, ELFDATA2LSB, EV_CURRENT},
        .e_type = ET_DYN, .e_machine = (uint16_t)machine, .e_version = EV_CURRENT,
        .e_phoff = sizeof(Elf64_Ehdr), .e_ehsize = sizeof(Elf64_Ehdr),
        .e_phentsize = sizeof(Elf64_Phdr), .e_phnum = 1, .e_shentsize = sizeof(Elf64_Shdr),
    };
    Elf64_Phdr p = {.p_type = PT_LOAD, .p_flags = PF_R | PF_X, .p_vaddr = 0x1000,
                    .p_memsz = 0x8000};
    memcpy(b->bytes, &e, sizeof e);
    memcpy(b->bytes + sizeof e, &p, sizeof p);
}

/* The number of the section. Code without bytes (SHT_NOBITS) takes `len` of memory only. */
static inline unsigned build_section(struct elf_build *b, struct build_row row)
{
    Elf64_Shdr *s = &b->sections[b->count];
    b->len = (b->len + 7) & ~(size_t)7;
    *s = (Elf64_Shdr){.sh_name = (uint32_t)b->names_len, .sh_type = row.type, .sh_flags = row.flags,
                      .sh_addr = row.address, .sh_offset = b->len, .sh_size = row.len,
                      .sh_link = row.link};
    memcpy(b->names + b->names_len, row.name, strlen(row.name) + 1);
    b->names_len += strlen(row.name) + 1;
    if (row.type != SHT_NOBITS && row.len > 0) {
        memcpy(b->bytes + b->len, row.ptr, row.len);
        b->len += row.len;
    }
    return b->count++;
}

static inline void build_end(struct elf_build *b)
{
    Elf64_Ehdr e;
    unsigned names = build_section(b, (struct build_row){.name = ".shstrtab", .type = SHT_STRTAB});
    memcpy(b->bytes + b->len, b->names, b->names_len);
    b->sections[names].sh_size = b->names_len;
    b->len = (b->len + b->names_len + 7) & ~(size_t)7;
    memcpy(&e, b->bytes, sizeof e);
    e.e_shoff = b->len;
    e.e_shnum = (uint16_t)b->count;
    e.e_shstrndx = (uint16_t)names;
    memcpy(b->bytes, &e, sizeof e);
    memcpy(b->bytes + b->len, b->sections, b->count * sizeof b->sections[0]);
    b->len += b->count * sizeof b->sections[0];
}

/* .text as one section of code without bytes, 0x1000 to 0x9000: number 1 when it comes first. */
static inline unsigned build_text(struct elf_build *b)
{
    return build_section(b, (struct build_row){.name = ".text", .type = SHT_NOBITS,
                         .flags = SHF_ALLOC | SHF_EXECINSTR, .address = 0x1000, .len = 0x8000});
}

struct build_symbol {
    const char *name;
    uint64_t address, size;
    unsigned type, section;
};

/* A symbol table, SHT_SYMTAB or SHT_DYNSYM, of global symbols, with its names: two sections. */
static inline void build_symbols(struct elf_build *b, uint32_t type,
                                 const struct build_symbol *symbols, size_t count)
{
    Elf64_Sym table[64] = {{0}};
    char names[1024] = "";
    size_t names_len = 1;
    for (size_t i = 0; i < count; i++) {
        table[i + 1] = (Elf64_Sym){.st_name = (uint32_t)names_len,
                                   .st_info = (unsigned char)(STB_GLOBAL << 4 | symbols[i].type),
                                   .st_shndx = (uint16_t)symbols[i].section,
                                   .st_value = symbols[i].address, .st_size = symbols[i].size};
        strcpy(names + names_len, symbols[i].name);
        names_len += strlen(symbols[i].name) + 1;
    }
    build_section(b, (struct build_row){type == SHT_SYMTAB ? ".symtab" : ".dynsym", type, 0, 0,
                  table, (count + 1) * sizeof table[0], b->count + 1});
    build_section(b, (struct build_row){type == SHT_SYMTAB ? ".strtab" : ".dynstr", SHT_STRTAB, 0,
                  0, names, names_len, 0});
}

/* A build id of 4 equal bytes. */
static inline void build_id(struct elf_build *b, unsigned char byte)
{
    unsigned char note[20] = "\x04\0\0\0\x04\0\0\0\x03\0\0\0" "GNU";
    memset(note + 16, byte, 4);
    build_section(b, (struct build_row){".note.gnu.build-id", SHT_NOTE, SHF_ALLOC, 0, note,
                  sizeof note, 0});
}

#endif
