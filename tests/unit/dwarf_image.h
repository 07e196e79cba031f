/*
 * dwarf_image: hand-made ELF files with DWARF for tests.
 *
 * A test appends bytes to the sections, then dwarf_image_make puts them into a 64-bit x86-64 shared
 * object whose code is [0x1000, 0x2000). dwarf_image_fill writes one compile unit with this code:
 *
 *     outer   0x1000 … 0x1100, /src/a.c        and 0x1800 … 0x1810, its cold part
 *       middle  0x1010 … 0x1050, inlined at /src/a.c:20
 *         (a block 0x1020 … 0x1030)
 *           leaf  0x1020 … 0x1030, linkage name _Z4leafv, inlined at /inc/b.h:7
 *         leaf  0x1044 … 0x1048, behind the block, inlined at /src/a.c:8
 *     plain   0x1100 … 0x1140
 *
 *     lines   0x1000 a.c:10   0x1010 b.h:30   0x1020 b.h:40   0x1030 b.h:31   0x1050 a.c:21
 *             0x1100 a.c:50 … 0x1140          0x1800 a.c:99 … 0x1810
 *
 * in the ways of DWARF 4 (addresses and texts in place, .debug_ranges) or 5 (all by index).
 */
#ifndef DWARF_IMAGE_H
#define DWARF_IMAGE_H

#include <dwarf.h>
#include <elf.h>
#include <stdarg.h>

#include "base/str.h"
#include "test.h"

enum {
    PART_INFO, PART_ABBREV, PART_STR, PART_LINE, PART_LINE_STR, PART_RANGES, PART_RNGLISTS,
    PART_ADDR, PART_STR_OFFSETS, PART_ALT, PART_SYMBOLS, PART_NAMES, PART_COUNT,
    IMAGE_MAX_BYTES = 1 << 20,
};

struct dwarf_image {
    struct buf part[PART_COUNT];
    struct buf file;
};

static const char *const dwarf_part_names[PART_COUNT] = {
    ".debug_info", ".debug_abbrev", ".debug_str", ".debug_line", ".debug_line_str",
    ".debug_ranges", ".debug_rnglists", ".debug_addr", ".debug_str_offsets", ".gnu_debugaltlink",
    ".symtab", ".strtab",
};

static void dwarf_image_init(struct dwarf_image *image)
{
    for (int i = 0; i < PART_COUNT; i++) {
        buf_init(&image->part[i], IMAGE_MAX_BYTES);
    }
    buf_init(&image->file, 2 * IMAGE_MAX_BYTES);
}

static void dwarf_image_release(struct dwarf_image *image)
{
    for (int i = 0; i < PART_COUNT; i++) {
        buf_release(&image->part[i]);
    }
    buf_release(&image->file);
}

static void put(struct buf *out, uint64_t value, size_t bytes)
{
    buf_add(out, &value, bytes);
}

static void put_uleb(struct buf *out, uint64_t value)
{
    for (; value >= 0x80; value >>= 7) {
        buf_byte(out, (char)(value | 0x80));
    }
    buf_byte(out, (char)value);
}

static void put_text(struct buf *out, const char *text)
{
    buf_add(out, text, strlen(text) + 1);
}

/* Numbers below 0x80 as single bytes, ended by -1. */
static void put_bytes(struct buf *out, ...)
{
    va_list args;
    va_start(args, out);
    for (int byte; (byte = va_arg(args, int)) >= 0;) {
        buf_byte(out, (char)byte);
    }
    va_end(args);
}

/* An abbreviation: its pairs of attribute and form are ended by 0. */
static void put_abbreviation(struct buf *out, unsigned code, unsigned tag, bool children, ...)
{
    va_list args;
    va_start(args, children);
    put_uleb(out, code);
    put_uleb(out, tag);
    buf_byte(out, children);
    for (unsigned name; (name = va_arg(args, unsigned)) != 0;) {
        unsigned form = va_arg(args, unsigned);
        put_uleb(out, name);
        put_uleb(out, form);
        if (form == DW_FORM_implicit_const) {
            put_uleb(out, va_arg(args, unsigned));
        }
    }
    va_end(args);
    put_bytes(out, 0, 0, -1);
}

/* Writes `bytes` at `at`: lengths and references are known later than what is before them. */
static void patch(struct buf *out, size_t at, uint64_t value, size_t bytes)
{
    memcpy(out->ptr + at, &value, bytes);
}

/* ---- the line table ---- */

static void put_line_program(struct buf *out)
{
    static const struct {
        unsigned address, line, file; /* line 0: the end of a sequence */
    } rows[] = {{0x1000, 10, 1}, {0x1010, 30, 2}, {0x1020, 40, 2}, {0x1030, 31, 2},
                {0x1050, 21, 1}, {0x1100, 50, 1}, {0x1140, 0, 1}, {0x1800, 99, 1},
                {0x1810, 0, 1}};
    unsigned line = 1;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        put_bytes(out, 0, 9, DW_LNE_set_address, -1);
        put(out, rows[i].address, 8);
        if (rows[i].line == 0) {
            put_bytes(out, 0, 1, DW_LNE_end_sequence, -1);
            line = 1;
            continue;
        }
        put_bytes(out, DW_LNS_set_file, (int)rows[i].file, DW_LNS_advance_line, -1);
        int delta = (int)rows[i].line - (int)line; /* fits 14 bits: a SLEB128 of two bytes */
        put_bytes(out, (delta & 0x7f) | 0x80, (delta >> 7) & 0x7f, DW_LNS_copy, -1);
        line = rows[i].line;
    }
}

static void put_lines(struct dwarf_image *image, unsigned version)
{
    struct buf *out = &image->part[PART_LINE];
    size_t start = out->len;
    put(out, 0, 4);
    put(out, version, 2);
    if (version >= 5) {
        put_bytes(out, 8, 0, -1);
    }
    size_t header = out->len;
    put(out, 0, 4);
    /* minimum instruction, operations, is_stmt, line base -5, line range 14, opcode base 13 */
    put_bytes(out, 1, 1, 1, 0xfb, 14, 13, 0, 1, 1, 1, 1, 0, 0, 0, 1, 0, 0, 1, -1);
    if (version < 5) {
        put_text(out, "/inc"); /* directory 1 */
        put_text(out, "");
        put_text(out, "a.c"); /* file 1, in the compilation's directory */
        put_bytes(out, 0, 0, 0, -1);
        put_text(out, "b.h");
        put_bytes(out, 1, 0, 0, 0, -1);
    } else {
        put_bytes(out, 1, DW_LNCT_path, DW_FORM_line_strp, 2, -1);
        put(out, 0, 4); /* /src */
        put(out, 5, 4); /* /inc */
        put_bytes(out, 2, DW_LNCT_path, DW_FORM_string, DW_LNCT_directory_index, DW_FORM_udata, 3,
                  -1);
        put_text(out, "a.c"); /* file 0, again as file 1 */
        put_bytes(out, 0, -1);
        put_text(out, "a.c");
        put_bytes(out, 0, -1);
        put_text(out, "b.h");
        put_bytes(out, 1, -1);
        put_text(&image->part[PART_LINE_STR], "/src");
        put_text(&image->part[PART_LINE_STR], "/inc");
    }
    patch(out, header, out->len - header - 4, 4);
    put_line_program(out);
    patch(out, start, out->len - start - 4, 4);
}

/* ---- version 4 ---- */

enum { ABBREV_UNIT = 1, ABBREV_FUNCTION, ABBREV_COLD, ABBREV_INLINED, ABBREV_BLOCK, ABBREV_NAMES,
       ABBREV_NAME, ABBREV_TYPE, ABBREV_MEMBER };

static void put_abbreviations_4(struct buf *out)
{
    put_abbreviation(out, ABBREV_UNIT, DW_TAG_compile_unit, true, DW_AT_name, DW_FORM_string,
                     DW_AT_comp_dir, DW_FORM_string, DW_AT_stmt_list, DW_FORM_sec_offset,
                     DW_AT_low_pc, DW_FORM_addr, DW_AT_ranges, DW_FORM_sec_offset, 0);
    put_abbreviation(out, ABBREV_FUNCTION, DW_TAG_subprogram, false, DW_AT_name, DW_FORM_string,
                     DW_AT_low_pc, DW_FORM_addr, DW_AT_high_pc, DW_FORM_data4, 0);
    put_abbreviation(out, ABBREV_COLD, DW_TAG_subprogram, true, DW_AT_name, DW_FORM_string,
                     DW_AT_ranges, DW_FORM_sec_offset, DW_AT_sibling, DW_FORM_ref4, 0);
    put_abbreviation(out, ABBREV_INLINED, DW_TAG_inlined_subroutine, true, DW_AT_abstract_origin,
                     DW_FORM_ref4, DW_AT_low_pc, DW_FORM_addr, DW_AT_high_pc, DW_FORM_data4,
                     DW_AT_call_file, DW_FORM_data1, DW_AT_call_line, DW_FORM_data1, 0);
    put_abbreviation(out, ABBREV_BLOCK, DW_TAG_lexical_block, true, DW_AT_ranges,
                     DW_FORM_sec_offset, 0);
    put_abbreviation(out, ABBREV_NAMES, DW_TAG_subprogram, false, DW_AT_name, DW_FORM_string,
                     DW_AT_linkage_name, DW_FORM_string, 0);
    put_abbreviation(out, ABBREV_NAME, DW_TAG_subprogram, false, DW_AT_name, DW_FORM_string, 0);
    put_abbreviation(out, ABBREV_TYPE, DW_TAG_structure_type, true, DW_AT_name, DW_FORM_string, 0);
    put_abbreviation(out, ABBREV_MEMBER, DW_TAG_member, false, DW_AT_decl_line, DW_FORM_data1, 0);
    buf_byte(out, 0);
}

static void put_ranges_4(struct buf *out)
{
    static const uint64_t ranges[] = {
        0x1000, 0x1140, 0x1800, 0x1810, 0, 0, /* 0: of the unit */
        0x1000, 0x1100, UINT64_MAX, 0x1800, 0, 0x10, 0, 0, /* 48: outer, the second by a base */
        0x1020, 0x1030, 0, 0, /* 112: the block */
    };
    buf_add(out, ranges, sizeof ranges);
}

static void put_unit_4(struct dwarf_image *image)
{
    struct buf *out = &image->part[PART_INFO];
    size_t start = out->len;
    put(out, 0, 4);
    put(out, 4, 2);
    put(out, 0, 4);
    buf_byte(out, 8);
    buf_byte(out, ABBREV_UNIT);
    put_text(out, "a.c");
    put_text(out, "/src");
    put(out, 0, 4);
    put(out, 0, 8);
    put(out, 0, 4);
    buf_byte(out, ABBREV_TYPE); /* passed over */
    put_text(out, "type");
    put_bytes(out, ABBREV_MEMBER, 1, ABBREV_MEMBER, 2, 0, -1);
    buf_byte(out, ABBREV_COLD);
    put_text(out, "outer");
    put(out, 48, 4);
    size_t sibling = out->len;
    put(out, 0, 4);
    buf_byte(out, ABBREV_TYPE); /* within a function */
    put_text(out, "local");
    put_bytes(out, ABBREV_MEMBER, 1, 0, -1);
    buf_byte(out, ABBREV_INLINED);
    size_t middle = out->len;
    put(out, 0, 4);
    put(out, 0x1010, 8);
    put(out, 0x40, 4);
    put_bytes(out, 1, 20, -1);
    buf_byte(out, ABBREV_BLOCK);
    put(out, 112, 4);
    buf_byte(out, ABBREV_INLINED);
    size_t leaf = out->len;
    put(out, 0, 4);
    put(out, 0x1020, 8);
    put(out, 0x10, 4);
    put_bytes(out, 2, 7, -1);
    put_bytes(out, 0, 0, ABBREV_INLINED, -1); /* the ends of leaf and the block */
    size_t second = out->len;
    put(out, 0, 4);
    put(out, 0x1044, 8);
    put(out, 4, 4);
    put_bytes(out, 1, 8, -1);
    put_bytes(out, 0, 0, 0, -1); /* the ends of leaf, middle and outer */
    patch(out, sibling, out->len - start, 4);
    buf_byte(out, ABBREV_FUNCTION);
    put_text(out, "plain");
    put(out, 0x1100, 8);
    put(out, 0x40, 4);
    patch(out, leaf, out->len - start, 4);
    patch(out, second, out->len - start, 4);
    buf_byte(out, ABBREV_NAMES);
    put_text(out, "leaf");
    put_text(out, "_Z4leafv");
    patch(out, middle, out->len - start, 4);
    buf_byte(out, ABBREV_NAME);
    put_text(out, "middle");
    buf_byte(out, 0);
    patch(out, start, out->len - start - 4, 4);
}

/* ---- version 5 ---- */

static void put_abbreviations_5(struct buf *out)
{
    put_abbreviation(out, ABBREV_UNIT, DW_TAG_compile_unit, true, DW_AT_name, DW_FORM_strx1,
                     DW_AT_str_offsets_base, DW_FORM_sec_offset, DW_AT_comp_dir, DW_FORM_line_strp,
                     DW_AT_stmt_list, DW_FORM_sec_offset, DW_AT_low_pc, DW_FORM_addrx,
                     DW_AT_ranges, DW_FORM_rnglistx, DW_AT_addr_base, DW_FORM_sec_offset,
                     DW_AT_rnglists_base, DW_FORM_sec_offset, 0);
    put_abbreviation(out, ABBREV_FUNCTION, DW_TAG_subprogram, false, DW_AT_name, DW_FORM_strx1,
                     DW_AT_low_pc, DW_FORM_addrx, DW_AT_high_pc, DW_FORM_udata, 0);
    put_abbreviation(out, ABBREV_COLD, DW_TAG_subprogram, true, DW_AT_name, DW_FORM_strx1,
                     DW_AT_ranges, DW_FORM_rnglistx, 0);
    put_abbreviation(out, ABBREV_INLINED, DW_TAG_inlined_subroutine, true, DW_AT_abstract_origin,
                     DW_FORM_ref_udata, DW_AT_low_pc, DW_FORM_addrx1, DW_AT_high_pc,
                     DW_FORM_data1, DW_AT_call_file, DW_FORM_implicit_const, 1, DW_AT_call_line,
                     DW_FORM_udata, 0);
    put_abbreviation(out, ABBREV_BLOCK, DW_TAG_lexical_block, true, 0);
    put_abbreviation(out, ABBREV_NAMES, DW_TAG_subprogram, false, DW_AT_name, DW_FORM_strx1,
                     DW_AT_linkage_name, DW_FORM_strp, DW_AT_inline, DW_FORM_indirect, 0);
    put_abbreviation(out, ABBREV_NAME, DW_TAG_subprogram, false, DW_AT_name, DW_FORM_strx1,
                     DW_AT_external, DW_FORM_flag_present, 0);
    put_abbreviation(out, ABBREV_TYPE, DW_TAG_inlined_subroutine, true, DW_AT_abstract_origin,
                     DW_FORM_ref_addr, DW_AT_low_pc, DW_FORM_addrx1, DW_AT_high_pc, DW_FORM_data1,
                     DW_AT_call_file, DW_FORM_data1, DW_AT_call_line, DW_FORM_udata, 0);
    buf_byte(out, 0);
}

static void put_texts_5(struct dwarf_image *image)
{
    static const char *const texts[] = {"a.c", "outer", "plain", "leaf", "middle", "_Z4leafv"};
    struct buf *offsets = &image->part[PART_STR_OFFSETS];
    put(offsets, 4 + 6 * 4, 4);
    put(offsets, 5, 2);
    put(offsets, 0, 2);
    for (unsigned i = 0; i < 6; i++) {
        put(offsets, image->part[PART_STR].len, 4);
        put_text(&image->part[PART_STR], texts[i]);
    }
}

static void put_addresses_5(struct dwarf_image *image)
{
    static const uint64_t addresses[] = {0x1000, 0x1100, 0x1010, 0x1020, 0x1800, 0x1044};
    struct buf *out = &image->part[PART_ADDR], *lists = &image->part[PART_RNGLISTS];
    put(out, 4 + sizeof addresses, 4);
    put(out, 5, 2);
    put_bytes(out, 8, 0, -1);
    buf_add(out, addresses, sizeof addresses);
    put(lists, 0, 4);
    put(lists, 5, 2);
    put_bytes(lists, 8, 0, -1);
    put(lists, 2, 4);
    put(lists, 8, 4); /* list 0 is behind the two offsets */
    put(lists, 8 + 15, 4); /* list 1 behind list 0, which follows */
    put_bytes(lists, DW_RLE_startx_length, 0, 0xc0, 0x02, DW_RLE_start_length, -1);
    put(lists, 0x1800, 8);
    put_bytes(lists, 0x10, DW_RLE_end_of_list, -1);
    put_bytes(lists, DW_RLE_offset_pair, 0, 0x80, 0x02, DW_RLE_base_addressx, 4,
              DW_RLE_offset_pair, 0, 0x10, DW_RLE_end_of_list, -1);
    patch(lists, 0, lists->len - 4, 4);
}

static void put_unit_5(struct dwarf_image *image)
{
    struct buf *out = &image->part[PART_INFO];
    size_t start = out->len;
    put(out, 0, 4);
    put(out, 5, 2);
    put_bytes(out, DW_UT_compile, 8, -1);
    put(out, 0, 4);
    put_bytes(out, ABBREV_UNIT, 0, -1);
    put(out, 8, 4); /* str_offsets_base */
    put(out, 0, 4); /* comp_dir */
    put(out, 0, 4); /* stmt_list */
    put_bytes(out, 0, 0, -1);
    put(out, 8, 4);  /* addr_base */
    put(out, 12, 4); /* rnglists_base */
    put_bytes(out, ABBREV_COLD, 1, 1, -1);
    put_bytes(out, ABBREV_INLINED, -1);
    size_t middle = out->len;
    put_bytes(out, 0, 2, 0x40, 20, ABBREV_BLOCK, ABBREV_TYPE, -1);
    size_t leaf = out->len;
    put(out, 0, 4);
    put_bytes(out, 3, 0x10, 2, 7, 0, 0, ABBREV_INLINED, -1);
    size_t second = out->len;
    put_bytes(out, 0, 5, 4, 8, 0, 0, 0, -1);
    put_bytes(out, ABBREV_FUNCTION, 2, 1, 0x40, -1);
    patch(out, leaf, out->len, 4); /* from the section's start */
    patch(out, second, out->len - start, 1);
    put_bytes(out, ABBREV_NAMES, 3, -1);
    put(out, 4 + 6 + 6 + 5 + 7, 4);
    put_bytes(out, DW_FORM_data1, 3, -1);
    patch(out, middle, out->len - start, 1);
    put_bytes(out, ABBREV_NAME, 4, 0, -1);
    patch(out, start, out->len - start - 4, 4);
}

/* ---- the whole ---- */

static void dwarf_image_fill(struct dwarf_image *image, unsigned version)
{
    if (version >= 5) {
        put_abbreviations_5(&image->part[PART_ABBREV]);
        put_texts_5(image);
        put_addresses_5(image);
        put_unit_5(image);
    } else {
        put_abbreviations_4(&image->part[PART_ABBREV]);
        put_ranges_4(&image->part[PART_RANGES]);
        put_unit_4(image);
    }
    put_lines(image, version);
}

/* A global function in .symtab. */
__attribute__((unused)) static void dwarf_image_symbol(struct dwarf_image *image, const char *name,
                                                       uint64_t address, uint64_t size)
{
    struct buf *symbols = &image->part[PART_SYMBOLS], *names = &image->part[PART_NAMES];
    Elf64_Sym none = {0};
    if (symbols->len == 0) {
        buf_add(symbols, &none, sizeof none);
        put_text(names, "");
    }
    Elf64_Sym symbol = {.st_name = (uint32_t)names->len, .st_shndx = 1, .st_value = address,
                        .st_info = STB_GLOBAL << 4 | STT_FUNC, .st_size = size};
    buf_add(symbols, &symbol, sizeof symbol);
    put_text(names, name);
}

/* A file whose function at 0x1010 … 0x1020 has its names in another one, as dwz leaves them. */
__attribute__((unused)) static void dwarf_image_fill_shared(struct dwarf_image *image,
                                                            struct dwarf_image *shared)
{
    struct buf *abbrev = &image->part[PART_ABBREV], *info = &image->part[PART_INFO];
    put_abbreviation(abbrev, 1, DW_TAG_compile_unit, true, DW_AT_low_pc, DW_FORM_addr,
                     DW_AT_high_pc, DW_FORM_data4, 0);
    put_abbreviation(abbrev, 2, DW_TAG_subprogram, false, DW_AT_name, DW_FORM_GNU_strp_alt,
                     DW_AT_specification, DW_FORM_GNU_ref_alt, DW_AT_low_pc, DW_FORM_addr,
                     DW_AT_high_pc, DW_FORM_data4, 0);
    buf_byte(abbrev, 0);
    put(info, 7 + 1 + 12 + 1 + 4 + 4 + 12 + 1, 4);
    put(info, 4, 2);
    put(info, 0, 4);
    put_bytes(info, 8, 1, -1);
    put(info, 0x1000, 8);
    put(info, 0x100, 4);
    buf_byte(info, 2);
    put(info, 2, 4);
    put(info, 11 + 1, 4); /* the entry behind the header and the unit's own */
    put(info, 0x1010, 8);
    put(info, 0x10, 4);
    buf_byte(info, 0);
    put_text(&image->part[PART_ALT], "/usr/lib/debug/.dwz/x.debug");
    put(&image->part[PART_ALT], 0xefbeadde, 4); /* its build id */

    put_text(&shared->part[PART_STR], "? far_name");
    abbrev = &shared->part[PART_ABBREV];
    info = &shared->part[PART_INFO];
    put_abbreviation(abbrev, 1, DW_TAG_partial_unit, true, 0);
    put_abbreviation(abbrev, 2, DW_TAG_subprogram, false, DW_AT_linkage_name, DW_FORM_string, 0);
    buf_byte(abbrev, 0);
    put(info, 7 + 1 + 1 + 10 + 1, 4);
    put(info, 4, 2);
    put(info, 0, 4);
    put_bytes(info, 8, 1, 2, -1);
    put_text(info, "_Z3fari12");
    buf_byte(info, 0);
}

static Elf64_Shdr *section_header(struct dwarf_image *image, int part)
{
    Elf64_Ehdr *e = (void *)image->file.ptr;
    return (Elf64_Shdr *)(void *)(image->file.ptr + e->e_shoff) + part + 1;
}

static void dwarf_image_make(struct dwarf_image *image)
{
    Elf64_Ehdr e = {
        .e_ident = {0x7f, 'E', 'L', 'F', ELFCLASS64, ELFDATA2LSB, EV_CURRENT},
        .e_type = ET_DYN, .e_machine = EM_X86_64, .e_version = EV_CURRENT,
        .e_phoff = sizeof e, .e_ehsize = sizeof e, .e_phentsize = sizeof(Elf64_Phdr),
        .e_phnum = 1, .e_shentsize = sizeof(Elf64_Shdr), .e_shnum = PART_COUNT + 2,
        .e_shstrndx = PART_COUNT + 1,
    };
    Elf64_Phdr code = {.p_type = PT_LOAD, .p_flags = PF_R | PF_X, .p_vaddr = 0x1000,
                       .p_memsz = 0x1000, .p_align = 4096};
    Elf64_Shdr sections[PART_COUNT + 2] = {{0}};
    struct buf *out = &image->file, names;
    buf_clear(out);
    buf_init(&names, 4096);
    buf_byte(&names, 0);
    buf_add(out, &e, sizeof e);
    buf_add(out, &code, sizeof code);
    for (int i = 0; i <= PART_COUNT; i++) {
        sections[i + 1] = (Elf64_Shdr){.sh_name = (uint32_t)names.len, .sh_type = SHT_PROGBITS,
                                       .sh_offset = out->len};
        put_text(&names, i < PART_COUNT ? dwarf_part_names[i] : ".shstrtab");
        struct buf *from = i < PART_COUNT ? &image->part[i] : &names;
        sections[i + 1].sh_size = from->len;
        sections[i + 1].sh_type = from->len == 0       ? SHT_NULL
                                  : i == PART_SYMBOLS ? SHT_SYMTAB
                                  : i >= PART_NAMES   ? SHT_STRTAB
                                                      : SHT_PROGBITS;
        sections[i + 1].sh_link = i == PART_SYMBOLS ? PART_NAMES + 1 : 0;
        sections[i + 1].sh_entsize = i == PART_SYMBOLS ? sizeof(Elf64_Sym) : 0;
        buf_add(out, from->ptr, from->len);
    }
    while (out->len % 8 != 0) {
        buf_byte(out, 0);
    }
    e.e_shoff = out->len;
    buf_add(out, sections, sizeof sections);
    memcpy(out->ptr, &e, sizeof e);
    buf_release(&names);
    CHECK(!out->failed);
}

/* Gives a made file the build id de ad be ef: a note takes the place of its alternate link. */
__attribute__((unused)) static void dwarf_image_identify(struct dwarf_image *image)
{
    struct buf *note = &image->part[PART_ALT];
    buf_clear(note);
    buf_add(note, "\x04\0\0\0\x04\0\0\0\x03\0\0\0GNU\0\xde\xad\xbe\xef", 20);
    dwarf_image_make(image);
    section_header(image, PART_ALT)->sh_type = SHT_NOTE;
}

/* Makes it what dwz writes: a relocatable file without segments. */
__attribute__((unused)) static void dwarf_image_unload(struct dwarf_image *image)
{
    Elf64_Ehdr *e = (void *)image->file.ptr;
    e->e_type = ET_REL;
    e->e_phoff = e->e_phnum = 0;
}

#endif
