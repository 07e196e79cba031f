/*
 * elf_image: hand-made ELF files for tests.
 *
 * elf_image_make writes a 64-bit x86-64 shared object: a read-only segment (address 0, offset 0),
 * an executable one (address 0x2000 … 0x3000, offset 0x1000), a note segment with the build id de
 * ad be ef, and these sections:
 *     [1] .text at 0x2000, 0x800 bytes   [2] .asm at 0x2800, 0x800 bytes   [3] .data, not executable
 *     [4] .symtab   [5] .strtab   [6] .shstrtab
 * Only headers and tables have bytes; tests spoil single ones at the offsets named below.
 */
#ifndef ELF_IMAGE_H
#define ELF_IMAGE_H

#include <elf.h>
#include <stdint.h>
#include <string.h>

enum {
    IMAGE_PHDRS = 0x40,
    IMAGE_PHDR_COUNT = 3,
    IMAGE_NOTE = 0x100,
    IMAGE_SHDRS = 0x140,
    IMAGE_SECTION_COUNT = 7,
    IMAGE_SECTION_NAMES = 0x380,
    IMAGE_SYMBOLS = 0x400,
    IMAGE_MAX = 16384,
};

struct elf_image {
    unsigned char bytes[IMAGE_MAX];
    size_t len;
};

struct image_symbol {
    const char *name;
    uint64_t address, size;
    unsigned bind, type, section;
};

static const char image_section_names[] = "\0.text\0.asm\0.data\0.symtab\0.strtab\0.shstrtab";

static void image_section(struct elf_image *image, unsigned index, Elf64_Shdr header)
{
    memcpy(image->bytes + IMAGE_SHDRS + index * sizeof header, &header, sizeof header);
}

static void image_headers(struct elf_image *image)
{
    Elf64_Ehdr e = {
        .e_ident = {0x7f, 'E', 'L', 'F', ELFCLASS64, ELFDATA2LSB, EV_CURRENT},
        .e_type = ET_DYN, .e_machine = EM_X86_64, .e_version = EV_CURRENT, .e_entry = 0x2000,
        .e_phoff = IMAGE_PHDRS, .e_shoff = IMAGE_SHDRS, .e_ehsize = sizeof(Elf64_Ehdr),
        .e_phentsize = sizeof(Elf64_Phdr), .e_phnum = IMAGE_PHDR_COUNT,
        .e_shentsize = sizeof(Elf64_Shdr), .e_shnum = IMAGE_SECTION_COUNT, .e_shstrndx = 6,
    };
    Elf64_Phdr p[IMAGE_PHDR_COUNT] = {
        {.p_type = PT_LOAD, .p_flags = PF_R, .p_filesz = 0x1000, .p_memsz = 0x1000,
         .p_align = 4096},
        {.p_type = PT_LOAD, .p_flags = PF_R | PF_X, .p_offset = 0x1000, .p_vaddr = 0x2000,
         .p_filesz = 0x1000, .p_memsz = 0x1000, .p_align = 4096},
        {.p_type = PT_NOTE, .p_flags = PF_R, .p_offset = IMAGE_NOTE, .p_vaddr = IMAGE_NOTE,
         .p_filesz = 40, .p_memsz = 40, .p_align = 4},
    };
    /* two notes: a version of the ABI, then the build id */
    static const unsigned char notes[40] =
        "\x04\0\0\0\x04\0\0\0\x01\0\0\0" "GNU\0" "\0\0\0\0"
        "\x04\0\0\0\x04\0\0\0\x03\0\0\0" "GNU\0" "\xde\xad\xbe\xef";
    memcpy(image->bytes, &e, sizeof e);
    memcpy(image->bytes + IMAGE_PHDRS, p, sizeof p);
    memcpy(image->bytes + IMAGE_NOTE, notes, sizeof notes);
    memcpy(image->bytes + IMAGE_SECTION_NAMES, image_section_names, sizeof image_section_names);
}

static void elf_image_make(struct elf_image *image, const struct image_symbol *symbols,
                           size_t count)
{
    memset(image, 0, sizeof *image);
    image_headers(image);
    size_t names_at = IMAGE_SYMBOLS + (count + 1) * sizeof(Elf64_Sym), names_len = 1;
    for (size_t i = 0; i < count; i++) {
        Elf64_Sym s = {.st_name = (uint32_t)names_len,
                       .st_info = (unsigned char)(symbols[i].bind << 4 | symbols[i].type),
                       .st_shndx = (uint16_t)symbols[i].section,
                       .st_value = symbols[i].address,
                       .st_size = symbols[i].size};
        memcpy(image->bytes + IMAGE_SYMBOLS + (i + 1) * sizeof s, &s, sizeof s);
        strcpy((char *)image->bytes + names_at + names_len, symbols[i].name);
        names_len += strlen(symbols[i].name) + 1;
    }
    image->len = names_at + names_len;
    image_section(image, 1, (Elf64_Shdr){.sh_name = 1, .sh_type = SHT_PROGBITS,
                  .sh_flags = SHF_ALLOC | SHF_EXECINSTR, .sh_addr = 0x2000, .sh_offset = 0x1000,
                  .sh_size = 0x800});
    image_section(image, 2, (Elf64_Shdr){.sh_name = 7, .sh_type = SHT_PROGBITS,
                  .sh_flags = SHF_ALLOC | SHF_EXECINSTR, .sh_addr = 0x2800, .sh_offset = 0x1800,
                  .sh_size = 0x800});
    image_section(image, 3, (Elf64_Shdr){.sh_name = 12, .sh_type = SHT_PROGBITS,
                  .sh_flags = SHF_ALLOC, .sh_addr = 0x2000, .sh_offset = 0x1000,
                  .sh_size = 0x1000});
    image_section(image, 4, (Elf64_Shdr){.sh_name = 18, .sh_type = SHT_SYMTAB, .sh_link = 5,
                  .sh_offset = IMAGE_SYMBOLS, .sh_size = (count + 1) * sizeof(Elf64_Sym),
                  .sh_entsize = sizeof(Elf64_Sym)});
    image_section(image, 5, (Elf64_Shdr){.sh_name = 26, .sh_type = SHT_STRTAB,
                  .sh_offset = names_at, .sh_size = names_len});
    image_section(image, 6, (Elf64_Shdr){.sh_name = 34, .sh_type = SHT_STRTAB,
                  .sh_offset = IMAGE_SECTION_NAMES, .sh_size = sizeof image_section_names});
}

/* The byte of a field, to be spoiled by a test. */
#define IMAGE_HEADER(image, field) ((image)->bytes + offsetof(Elf64_Ehdr, field))
#define IMAGE_SEGMENT(image, index, field)                                                         \
    ((image)->bytes + IMAGE_PHDRS + (index) * sizeof(Elf64_Phdr) + offsetof(Elf64_Phdr, field))
#define IMAGE_SECTION(image, index, field)                                                         \
    ((image)->bytes + IMAGE_SHDRS + (index) * sizeof(Elf64_Shdr) + offsetof(Elf64_Shdr, field))

static inline void image_put(unsigned char *at, uint64_t value, size_t bytes)
{
    memcpy(at, &value, bytes);
}

#endif
