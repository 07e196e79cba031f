/*
 * frame_image: hand-made ELF files with call frame information, for tests.
 *
 * frame_image_begin starts a 64-bit shared object of this processor; frame_image_code adds bytes to
 * its text at IMAGE_TEXT; frame_image_cie and frame_image_fde write into .eh_frame (or, with
 * IMAGE_DEBUG, into .debug_frame) one after the other; frame_image_end writes the headers and
 * says in its flags how the CFI can be found. FDE addresses are written pcrel|sdata4 in .eh_frame.
 *
 *     struct frame_image *image = frame_image_begin(0);
 *     uint64_t cie = frame_image_cie(image, "zR", program, sizeof program);
 *     frame_image_fde(image, cie, IMAGE_TEXT + 0x10, 0x20, program, sizeof program);
 *     frame_image_end(image, IMAGE_HEADER | IMAGE_SECTIONS);
 */
#ifndef FRAME_IMAGE_H
#define FRAME_IMAGE_H

#include <elf.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#if defined __aarch64__
#define IMAGE_MACHINE EM_AARCH64
#else
#define IMAGE_MACHINE EM_X86_64
#endif

/* The text: two and a half pages of a table, unless the including file wants another. */
#ifndef FRAME_IMAGE_TEXT
#define FRAME_IMAGE_TEXT 0x10000
#define FRAME_IMAGE_TEXT_BYTES 0x28000
#endif

enum {
    IMAGE_TEXT = FRAME_IMAGE_TEXT, /* its ELF address */
    IMAGE_TEXT_BYTES = FRAME_IMAGE_TEXT_BYTES,
    IMAGE_TEXT_OFFSET = 0x1000,
    IMAGE_HEADER_OFFSET = IMAGE_TEXT_OFFSET + IMAGE_TEXT_BYTES,
    IMAGE_HEADER_MAX = 0x4000,
    IMAGE_CFI_OFFSET = IMAGE_HEADER_OFFSET + IMAGE_HEADER_MAX,
    IMAGE_CFI_MAX = 0x20000,
    IMAGE_DATA_BIAS = 0x100000, /* ELF address - file offset of everything but the text */
    IMAGE_FDES_MAX = 640,
    IMAGE_SHDRS = 0x200,
    IMAGE_NAMES = 0x400,
    IMAGE_SYMBOLS = 0x500,
    IMAGE_SYMBOLS_MAX = 64,
    IMAGE_STRINGS = 0xc00,

    IMAGE_DEBUG = 1,    /* frame_image_begin: .debug_frame */
    IMAGE_HEADER = 2,   /* frame_image_end: PT_GNU_EH_FRAME with the sorted table */
    IMAGE_SECTIONS = 4, /* section headers */
    IMAGE_ZLIB = 8,     /* .debug_frame's bytes were replaced by a compressed section's */
    IMAGE_ZDEBUG = 16,  /* they were replaced by a .zdebug_frame's */
    IMAGE_GO = 32,      /* a section .gopclntab */
    IMAGE_ENTRY = 64,   /* the program begins 0x1000 into its text */
};

struct frame_image {
    unsigned char bytes[IMAGE_CFI_OFFSET + IMAGE_CFI_MAX];
    size_t len;
    unsigned flags;
    size_t cfi_len;
    uint64_t fde_start[IMAGE_FDES_MAX], fde_at[IMAGE_FDES_MAX];
    size_t fde_count, in_table; /* of them, in .eh_frame_hdr (all unless a test lowers it) */
    size_t symbol_count, string_len;
};

static inline struct frame_image *frame_image_begin(unsigned flags)
{
    struct frame_image *image = calloc(1, sizeof *image);
    image->flags = flags;
    image->string_len = 1;
    memset(image->bytes + IMAGE_TEXT_OFFSET, 0xcc, IMAGE_TEXT_BYTES);
    return image;
}

static inline void frame_image_code(struct frame_image *image, uint64_t address, const void *code,
                                    size_t len)
{
    memcpy(image->bytes + IMAGE_TEXT_OFFSET + (address - IMAGE_TEXT), code, len);
}

static inline void frame_put(struct frame_image *image, const void *bytes, size_t len)
{
    memcpy(image->bytes + IMAGE_CFI_OFFSET + image->cfi_len, bytes, len);
    image->cfi_len += len;
}

static inline void frame_put_u32(struct frame_image *image, uint32_t value)
{
    frame_put(image, &value, sizeof value);
}

/* Pads with DW_CFA_nop and writes the length of the entry that began at `at`. */
static inline void frame_entry_end(struct frame_image *image, uint64_t at)
{
    while (image->cfi_len % 4 != 0) {
        frame_put(image, "", 1);
    }
    uint32_t len = (uint32_t)(image->cfi_len - at - 4);
    memcpy(image->bytes + IMAGE_CFI_OFFSET + at, &len, sizeof len);
}

/* Code alignment 1, data alignment -8. `augmentation` is "", or "z" and letters of which R has its
 * byte. Returns its place in the section. */
static inline uint64_t frame_image_cie(struct frame_image *image, const char *augmentation,
                                       const void *program, size_t len)
{
    uint64_t at = image->cfi_len;
    frame_put_u32(image, 0);
    frame_put_u32(image, image->flags & IMAGE_DEBUG ? 0xffffffff : 0);
    frame_put(image, "\x01", 1);
    frame_put(image, augmentation, strlen(augmentation) + 1);
    frame_put(image, IMAGE_MACHINE == EM_X86_64 ? "\x01\x78\x10" : "\x01\x78\x1e", 3);
    if (augmentation[0] == 'z') {
        frame_put(image, "\x01\x1b", 2);
    }
    frame_put(image, program, len);
    frame_entry_end(image, at);
    return at;
}

static inline uint64_t frame_image_fde(struct frame_image *image, uint64_t cie, uint64_t start,
                                       uint64_t bytes, const void *program, size_t len)
{
    uint64_t at = image->cfi_len;
    frame_put_u32(image, 0);
    if (image->flags & IMAGE_DEBUG) {
        frame_put_u32(image, (uint32_t)cie);
        frame_put(image, &start, 8);
        frame_put(image, &bytes, 8);
    } else {
        frame_put_u32(image, (uint32_t)(image->cfi_len - cie));
        frame_put_u32(image, (uint32_t)(start - (IMAGE_DATA_BIAS + IMAGE_CFI_OFFSET +
                                                 image->cfi_len)));
        frame_put_u32(image, (uint32_t)bytes);
        frame_put(image, "", 1); /* augmentation data: none */
    }
    frame_put(image, program, len);
    frame_entry_end(image, at);
    image->fde_start[image->fde_count] = start;
    image->fde_at[image->fde_count++] = at;
    image->in_table = image->fde_count;
    return at;
}

static inline void frame_image_symbol(struct frame_image *image, const char *name,
                                      uint64_t address, uint64_t size)
{
    Elf64_Sym s = {.st_name = (uint32_t)image->string_len, .st_info = STT_FUNC | STB_GLOBAL << 4,
                   .st_shndx = 1, .st_value = address, .st_size = size};
    strcpy((char *)image->bytes + IMAGE_STRINGS + image->string_len, name);
    image->string_len += strlen(name) + 1;
    memcpy(image->bytes + IMAGE_SYMBOLS + ++image->symbol_count * sizeof s, &s, sizeof s);
}

/* version 1; pcrel|sdata4, udata4, datarel|sdata4; the FDEs must have been added in order */
static inline size_t frame_image_header(struct frame_image *image)
{
    unsigned char *p = image->bytes + IMAGE_HEADER_OFFSET;
    int32_t to_cfi = IMAGE_CFI_OFFSET - IMAGE_HEADER_OFFSET - 4;
    uint32_t count = (uint32_t)image->in_table;
    memcpy(p, "\x01\x1b\x03\x3b", 4);
    memcpy(p + 4, &to_cfi, 4);
    memcpy(p + 8, &count, 4);
    for (size_t i = 0; i < count; i++) {
        int64_t base = IMAGE_DATA_BIAS + IMAGE_HEADER_OFFSET;
        int32_t pair[2] = {
            (int32_t)((int64_t)image->fde_start[i] - base),
            (int32_t)(IMAGE_DATA_BIAS + IMAGE_CFI_OFFSET + (int64_t)image->fde_at[i] - base)};
        memcpy(p + 12 + 8 * i, pair, 8);
    }
    return 12 + 8 * count;
}

static inline void frame_image_sections(struct frame_image *image, unsigned flags)
{
    static const char names[] = "\0.text\0.shstrtab\0.eh_frame\0.debug_frame\0.zdebug_frame\0"
                                ".symtab\0.strtab\0.gopclntab";
    bool debug = image->flags & IMAGE_DEBUG;
    uint32_t cfi_name = !debug ? 17 : flags & IMAGE_ZDEBUG ? 40 : 27;
    Elf64_Shdr s[7] = {
        [1] = {.sh_name = 1, .sh_type = SHT_PROGBITS, .sh_flags = SHF_ALLOC | SHF_EXECINSTR,
               .sh_addr = IMAGE_TEXT, .sh_offset = IMAGE_TEXT_OFFSET, .sh_size = IMAGE_TEXT_BYTES},
        [2] = {.sh_name = 7, .sh_type = SHT_STRTAB, .sh_offset = IMAGE_NAMES,
               .sh_size = sizeof names},
        [3] = {.sh_name = cfi_name, .sh_type = SHT_PROGBITS,
               .sh_flags = flags & IMAGE_ZLIB ? SHF_COMPRESSED : 0,
               .sh_addr = debug ? 0 : IMAGE_DATA_BIAS + IMAGE_CFI_OFFSET,
               .sh_offset = IMAGE_CFI_OFFSET, .sh_size = image->cfi_len},
        [4] = {.sh_name = 54, .sh_type = SHT_SYMTAB, .sh_link = 5, .sh_offset = IMAGE_SYMBOLS,
               .sh_size = (image->symbol_count + 1) * sizeof(Elf64_Sym)},
        [5] = {.sh_name = 62, .sh_type = SHT_STRTAB, .sh_offset = IMAGE_STRINGS,
               .sh_size = image->string_len},
        [6] = {.sh_name = flags & IMAGE_GO ? 70 : 0, .sh_type = SHT_PROGBITS},
    };
    memcpy(image->bytes + IMAGE_NAMES, names, sizeof names);
    memcpy(image->bytes + IMAGE_SHDRS, s, sizeof s);
}

static inline void frame_image_end(struct frame_image *image, unsigned flags)
{
    bool sections = flags & IMAGE_SECTIONS;
    Elf64_Ehdr e = {
        .e_ident = {0x7f, 'E', 'L', 'F', ELFCLASS64, ELFDATA2LSB, EV_CURRENT},
        .e_type = ET_DYN, .e_machine = IMAGE_MACHINE, .e_version = EV_CURRENT, .e_phoff = 64,
        .e_entry = flags & IMAGE_ENTRY ? IMAGE_TEXT + 0x1000 : 0,
        .e_shoff = sections ? IMAGE_SHDRS : 0, .e_ehsize = sizeof e,
        .e_phentsize = sizeof(Elf64_Phdr), .e_phnum = flags & IMAGE_HEADER ? 3 : 2,
        .e_shentsize = sizeof(Elf64_Shdr), .e_shnum = sections ? 7 : 0, .e_shstrndx = 2,
    };
    image->len = IMAGE_CFI_OFFSET + image->cfi_len;
    Elf64_Phdr p[3] = {
        {.p_type = PT_LOAD, .p_flags = PF_R | PF_X, .p_offset = IMAGE_TEXT_OFFSET,
         .p_vaddr = IMAGE_TEXT, .p_filesz = IMAGE_TEXT_BYTES, .p_memsz = IMAGE_TEXT_BYTES},
        {.p_type = PT_LOAD, .p_flags = PF_R, .p_offset = IMAGE_HEADER_OFFSET,
         .p_vaddr = IMAGE_DATA_BIAS + IMAGE_HEADER_OFFSET,
         .p_filesz = image->len - IMAGE_HEADER_OFFSET,
         .p_memsz = image->len - IMAGE_HEADER_OFFSET},
        {.p_type = PT_GNU_EH_FRAME, .p_flags = PF_R, .p_offset = IMAGE_HEADER_OFFSET,
         .p_vaddr = IMAGE_DATA_BIAS + IMAGE_HEADER_OFFSET},
    };
    p[2].p_filesz = p[2].p_memsz = frame_image_header(image);
    if (sections) {
        frame_image_sections(image, flags);
    }
    memcpy(image->bytes, &e, sizeof e);
    memcpy(image->bytes + 64, p, sizeof p);
}

#endif
