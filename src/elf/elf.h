/*
 * elf: what a profiler asks of an ELF file: identity, load addresses, function symbols, sections,
 * relocations.
 *
 * Concept. The bytes come through a `struct memory_reader` whose addresses are offsets in the file
 * (os/ reads with pread, tests from an array); nothing is mapped, so a file that is cut short while
 * it is read gives an error and never SIGBUS. elf_open reads and checks the headers into this
 * struct; symbols and names are read on demand in pieces of a few KiB and never kept. All counts
 * are bounded, so a hostile file costs bounded time and memory.
 *
 * Addresses here are the file's own (p_vaddr, st_value). runtime address = ELF address + bias, and
 * elf_bias finds the bias of a mapping.
 *
 * Call order. elf_open or elf_open_bytes; any of the others; elf_release. A struct elf must not
 * move between elf_open_bytes and elf_release. The reader is borrowed until elf_release, its owner
 * closes what is behind it.
 *
 * What is accepted: little-endian ET_EXEC and ET_DYN for x86-64, AArch64 and i386 (also x32). What
 * is refused is named: ERR_UNSUPPORTED for another machine, type or byte order, ERR_MALFORMED for
 * no ELF or contradictory headers, ERR_LIMIT beyond the maxima below. A section table that is
 * missing, cut off or too long is treated as absent; .dynsym is then found by PT_DYNAMIC.
 *
 * Not over libelf's elf_begin: it takes 200 bytes for each section that a file claims before
 * anything can be asked (a sparse file of 4 KiB on disk makes it take 800 MB), reads tables whole
 * and keeps every piece it read until the end. libdw, for debug information, runs in a
 * process of its own: symbol/dwarf.h.
 *
 * Formats: System V gABI chapters 4 and 5, x86-64 and AArch64 psABI, elf(5). ".note.gnu.build-id":
 * note type 3, owner "GNU". DT_GNU_HASH: the layout ld and lld write. Compressed sections
 * are debug information: libdw unpacks them, and unwind/frames.h the one that is for unwinding.
 */
#ifndef ELF_ELF_H
#define ELF_ELF_H

#include "base/err.h"
#include "base/iface.h"
#include "base/vec.h"

enum {
    ELF_LOADS_MAX = 64,           /* PT_LOAD segments; real files have 2 to 12 */
    ELF_PROGRAM_HEADERS_MAX = 512,
    ELF_SECTIONS_MAX = 4096,      /* 40 bytes each here; real files have 20 to 100 */
    ELF_SYMBOLS_MAX = 32 << 20,   /* of one table; the largest browsers have 3 million */
    ELF_UNTYPED_REACH = 16 << 10, /* bytes; hand-written functions are shorter */
    ELF_NOTES_MAX_BYTES = 64 * 1024,
    ELF_BUILD_ID_MAX = 64,        /* SHA-1 is 20 bytes, others 8 to 32 */
    ELF_NAME_MAX = 4096,          /* longer symbol names are cut */
    ELF_WINDOW_BYTES = 4096,      /* of names kept at hand; one name at least */
    ELF_RELOCATIONS_MAX = 1 << 20, /* of one section; 24 MiB of file, the largest browsers' */
};

enum elf_machine { ELF_X86_64, ELF_AARCH64, ELF_I386 };

struct elf_load { /* a PT_LOAD segment */
    uint64_t offset, file_bytes;
    uint64_t address, memory_bytes;
    uint8_t prot; /* read 1, write 2, execute 4: the values of mmap(2), not those of p_flags */
};

struct elf_section {
    uint64_t address, offset, bytes;
    uint32_t name; /* offset in the section names */
    uint32_t type, link;
    bool executable, compressed;
};

struct elf_range {
    uint64_t address, offset, bytes; /* bytes 0: there is none */
};

/* Which symbol table a symbol and its name belong to. */
enum elf_table { ELF_SYMTAB, ELF_DYNSYM, ELF_TABLE_COUNT };

struct elf_symbol_table {
    uint64_t offset, count;              /* of the symbols; count 0: there is none */
    uint64_t names_offset, names_bytes;  /* of its string table */
};

struct elf {
    struct memory_reader file;
    enum elf_machine machine;
    bool is_32bit;
    bool is_pie;                      /* ET_DYN: the bias is not 0 */
    uint64_t entry;
    struct elf_load loads[ELF_LOADS_MAX];
    uint32_t load_count;
    uint64_t text_start, text_limit;  /* from the first to the last executable PT_LOAD's end */
    struct elf_range eh_frame_hdr;    /* PT_GNU_EH_FRAME */
    struct elf_range dynamic;         /* PT_DYNAMIC */
    unsigned char build_id[ELF_BUILD_ID_MAX];
    uint32_t build_id_bytes;          /* 0: it has none */
    VEC(struct elf_section) sections; /* [0] is the null section; empty when there is no table */
    uint32_t section_names;           /* index of the section with the sections' names */
    struct elf_symbol_table tables[ELF_TABLE_COUNT];
    char *window;                     /* the last piece of names that was read */
    uint64_t window_offset;
    size_t window_bytes;
    uint32_t window_reads;
    struct str bytes;                 /* of elf_open_bytes */
};

bool elf_open(struct elf *e, const struct memory_reader *file, struct err *err);

/* The same for its sections only, also of a relocatable file: what compilers and dwz put debug
 * information in beside programs. */
bool elf_open_sections(struct elf *e, const struct memory_reader *file, struct err *err);

/* The same on bytes in memory, which stay borrowed: the vdso, an unpacked .gnu_debugdata. */
bool elf_open_bytes(struct elf *e, const void *ptr, size_t len, struct err *err);
void elf_release(struct elf *e);

/* Bytes of the file at `offset`; false beyond its end. */
static inline bool elf_read(const struct elf *e, uint64_t offset, void *out, size_t len,
                            struct err *err)
{
    return e->file.read(e->file.context, offset, out, len, err);
}

/* The section of this name, or null. */
const struct elf_section *elf_section(struct elf *e, const char *name);

/* Linked by the Go tool chain, whose compiler keeps frame pointers and writes no .eh_frame. */
bool elf_is_go(struct elf *e);

/* Its name, borrowed until the next call with this struct elf. */
bool elf_section_name(struct elf *e, const struct elf_section *section, struct str *out);

/* Appends the section's contents to `out`, whose maximum bounds them (ERR_LIMIT). A section without bytes in this file
 * (.bss, all code of a debug file) and a compressed one are ERR_UNSUPPORTED. `out` is as it was when this fails. */
bool elf_section_read(const struct elf *e, const struct elf_section *section, struct buf *out, struct err *err);

/* The bias of an executable mapping: map_start - (p_vaddr + (map_file_offset - p_offset)) for the
 * PT_LOAD that holds the offset, executable ones first because neighbours share a page of the file.
 * False when no segment holds it: then the file is not the one that was mapped. `page_size` is the
 * target's (bytes). */
bool elf_bias(const struct elf *e, uint64_t map_start, uint64_t map_file_offset,
              uint64_t page_size, uint64_t *bias);

/* Where the bytes of an ELF address stand in the file; false for .bss and for no segment. */
bool elf_offset_of(const struct elf *e, uint64_t address, uint64_t *offset);

enum elf_binding { ELF_LOCAL, ELF_WEAK, ELF_GLOBAL }; /* in rising order of preference */

struct elf_symbol {
    uint64_t address;
    uint64_t size;  /* bytes; 0: unknown */
    uint64_t limit; /* end of its section (or of the text without sections): bounds size 0. Of a STT_NOTYPE, which may
                       be a mark before code without symbols, at most ELF_UNTYPED_REACH away */
    uint32_t name;  /* for elf_name */
    uint8_t table;  /* enum elf_table */
    uint8_t binding; /* enum elf_binding */
};

/*
 * Calls `each` for every symbol that can be code, in the order of the table: STT_FUNC,
 * STT_GNU_IFUNC, and STT_NOTYPE in an executable section (assembler), defined, within the text, and
 * not one of the marks "$x", "$d", ".L…" (to tell, names of STT_NOTYPE are read; in a file that
 * scatters them over the disk only the first 200,000). `each` ends the walk by returning false. A
 * table that reaches beyond the end of the file gives the reader's error; no table is no error.
 */
bool elf_each_function(struct elf *e, enum elf_table table,
                       bool (*each)(void *context, const struct elf_symbol *symbol), void *context,
                       struct err *err);

/* The defined dynamic symbol of this name, of any type, by the file's own hash table: a dozen small
 * reads whatever the file's size. False when there is none, or no hash table. */
bool elf_find_dynamic(struct elf *e, const char *name, struct elf_symbol *out);

/* The same in any table, .symtab among them, by reading all of its names (the first 16 MiB: some
 * 0.3 ms per MiB) and, when the name is among them, the symbols. */
bool elf_find_symbol(struct elf *e, enum elf_table table, const char *name,
                     struct elf_symbol *out);

/* Does the file ask for a library whose name begins so (DT_NEEDED)? */
bool elf_needs(struct elf *e, const char *prefix);

/* The name as it stands in the table, without "@VERSION", at most ELF_NAME_MAX bytes. Borrowed
 * until the next call with this struct elf; false when it cannot be read or is empty. */
bool elf_name(struct elf *e, enum elf_table table, uint32_t name, struct str *out);

/* The same for symbol number `index` of the table. */
bool elf_name_of(struct elf *e, enum elf_table table, uint32_t index, struct str *out);

enum elf_relocation_kind {
    ELF_RELOCATION_OTHER,
    ELF_RELOCATION_FUNCTION, /* the slot gets a symbol's address: JUMP_SLOT, GLOB_DAT */
    ELF_RELOCATION_RESOLVED, /* the slot gets what the function at `addend` returns: IRELATIVE */
};

struct elf_relocation {
    uint64_t slot; /* the address that is written to */
    uint64_t addend;
    uint32_t symbol; /* its number in .dynsym; 0: none */
    uint32_t index;  /* in this section */
    enum elf_relocation_kind kind;
};

/* Calls `each` for the first ELF_RELOCATIONS_MAX relocations of a section of type SHT_RELA or
 * SHT_REL (which has no addends: they are 0 here), until it returns false. Those that DT_RELACOUNT
 * marks as RELATIVE are skipped. A section of another type has none. */
bool elf_each_relocation(struct elf *e, const struct elf_section *section,
                         bool (*each)(void *context, const struct elf_relocation *relocation),
                         void *context, struct err *err);

/* The build id in lower-case hexadecimal; "" without one. */
void elf_build_id_text(const struct elf *e, char out[static 2 * ELF_BUILD_ID_MAX + 1]);

#endif
