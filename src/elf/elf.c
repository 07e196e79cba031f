/*
 * elf: opens a file: its header, its segments and sections, checked against each other and against limits
 * before anything is believed. Sections are a convenience; segments are what the kernel maps.
 */
#include "elf/elf.h"

#include <elf.h>
#include <stdlib.h>

#include "base/cursor.h"
#include "elf/private.h"

enum { HEADERS_PER_READ = 32 };

struct elf_header {
    uint64_t program_headers, section_headers; /* offsets */
    uint32_t program_header_count, section_count;
    uint32_t section_names;
    bool sections_only; /* asked for */
};

/* A number of the file's word size. */
static uint64_t word(struct cursor *c, bool is_32bit)
{
    return is_32bit ? cursor_u32(c) : cursor_u64(c);
}

static bool read_ident(struct elf *e, const unsigned char ident[static EI_NIDENT], struct err *err)
{
    if (memcmp(ident, ELFMAG, SELFMAG) != 0) {
        return err_set(err, ERR_MALFORMED, 0, "not an ELF file");
    }
    if (ident[EI_CLASS] != ELFCLASS32 && ident[EI_CLASS] != ELFCLASS64) {
        return err_set(err, ERR_MALFORMED, 0, "unknown ELF class %u", ident[EI_CLASS]);
    }
    if (ident[EI_DATA] != ELFDATA2LSB) {
        return err_set(err, ERR_UNSUPPORTED, 0, "ELF byte order is %u; only little-endian (1) is supported",
                       ident[EI_DATA]);
    }
    e->is_32bit = ident[EI_CLASS] == ELFCLASS32;
    return true;
}

static bool set_machine(struct elf *e, unsigned type, unsigned machine, bool sections_only,
                        struct err *err)
{
    if (type != ET_EXEC && type != ET_DYN && !(sections_only && type == ET_REL)) {
        return err_set(err, ERR_UNSUPPORTED, 0, "ELF type is %u; only executables and shared objects are supported",
                       type);
    }
    e->is_pie = type == ET_DYN;
    switch (machine) {
    case EM_X86_64:
        e->machine = ELF_X86_64;
        return true;
    case EM_AARCH64:
        e->machine = ELF_AARCH64;
        return true;
    case EM_386:
        e->machine = ELF_I386;
        return true;
    default:
        return err_set(err, ERR_UNSUPPORTED, 0,
                       "ELF machine is %u; supported are x86-64 (62), AArch64 (183) and i386 (3)",
                       machine);
    }
}

/* The headers' sizes are fixed by the class; a file that says otherwise is of no known format. */
static bool check_entry_sizes(const struct elf *e, const struct elf_header *h, unsigned program,
                              unsigned section, struct err *err)
{
    size_t want_program = e->is_32bit ? sizeof(Elf32_Phdr) : sizeof(Elf64_Phdr);
    size_t want_section = e->is_32bit ? sizeof(Elf32_Shdr) : sizeof(Elf64_Shdr);
    if (!h->sections_only && (h->program_header_count == 0 || program != want_program)) {
        return err_set(err, ERR_MALFORMED, 0, "ELF header claims %u program headers of %u bytes",
                       h->program_header_count, program);
    }
    if (h->program_header_count > ELF_PROGRAM_HEADERS_MAX) {
        return err_set(err, ERR_LIMIT, 0, "ELF file has %u program headers; at most %d are read",
                       h->program_header_count, ELF_PROGRAM_HEADERS_MAX);
    }
    return section == want_section || h->section_count == 0 ||
           err_set(err, ERR_MALFORMED, 0, "ELF header claims section headers of %u bytes", section);
}

static bool read_header(struct elf *e, struct elf_header *h, struct err *err)
{
    unsigned char bytes[sizeof(Elf64_Ehdr)];
    if (!elf_read(e, 0, bytes, sizeof(Elf32_Ehdr), err) || !read_ident(e, bytes, err) ||
        (!e->is_32bit && !elf_read(e, 0, bytes, sizeof bytes, err))) {
        return false;
    }
    struct cursor c = cursor_of(bytes, sizeof bytes);
    cursor_skip(&c, EI_NIDENT);
    unsigned type = cursor_u16(&c), machine = cursor_u16(&c);
    cursor_skip(&c, 4);
    e->entry = word(&c, e->is_32bit);
    h->program_headers = word(&c, e->is_32bit);
    h->section_headers = word(&c, e->is_32bit);
    cursor_skip(&c, 6);
    unsigned program_header_bytes = cursor_u16(&c);
    h->program_header_count = cursor_u16(&c);
    unsigned section_header_bytes = cursor_u16(&c);
    h->section_count = cursor_u16(&c);
    h->section_names = cursor_u16(&c);
    return set_machine(e, type, machine, h->sections_only, err) &&
           check_entry_sizes(e, h, program_header_bytes, section_header_bytes, err);
}

struct program_header {
    uint32_t type, flags;
    uint64_t offset, address, file_bytes, memory_bytes;
};

static struct program_header take_program_header(struct cursor *c, bool is_32bit)
{
    struct program_header p = {.type = cursor_u32(c)};
    if (!is_32bit) {
        p.flags = cursor_u32(c);
    }
    p.offset = word(c, is_32bit);
    p.address = word(c, is_32bit);
    (void)word(c, is_32bit); /* p_paddr */
    p.file_bytes = word(c, is_32bit);
    p.memory_bytes = word(c, is_32bit);
    if (is_32bit) {
        p.flags = cursor_u32(c);
    }
    (void)word(c, is_32bit); /* p_align: notes are padded to 4 whatever it says, see note.c */
    return p;
}

static bool wraps(uint64_t start, uint64_t bytes)
{
    return bytes > UINT64_MAX - start;
}

static bool add_load(struct elf *e, const struct program_header *p, struct err *err)
{
    if (wraps(p->address, p->memory_bytes) || wraps(p->offset, p->file_bytes) ||
        p->file_bytes > p->memory_bytes) {
        return err_set(err, ERR_MALFORMED, 0, "ELF segment at %#llx has impossible sizes",
                       (unsigned long long)p->address);
    }
    if (e->load_count == ELF_LOADS_MAX) {
        return err_set(err, ERR_LIMIT, 0, "ELF file has more than %d PT_LOAD segments", ELF_LOADS_MAX);
    }
    e->loads[e->load_count++] = (struct elf_load){
        .offset = p->offset,
        .file_bytes = p->file_bytes,
        .address = p->address,
        .memory_bytes = p->memory_bytes,
        .prot = (uint8_t)((p->flags & PF_R ? 1 : 0) | (p->flags & PF_W ? 2 : 0) |
                          (p->flags & PF_X ? ELF_PROT_EXEC : 0)),
    };
    if ((p->flags & PF_X) != 0 && p->memory_bytes > 0) {
        uint64_t limit = p->address + p->memory_bytes;
        e->text_start = p->address < e->text_start ? p->address : e->text_start;
        e->text_limit = limit > e->text_limit ? limit : e->text_limit;
    }
    return true;
}

static bool take_segment(struct elf *e, const struct program_header *p, struct err *err)
{
    struct elf_range range = {p->address, p->offset, p->file_bytes};
    switch (p->type) {
    case PT_LOAD:
        return add_load(e, p, err);
    case PT_NOTE:
        elf_take_note(e, p->offset, p->file_bytes);
        return true;
    case PT_DYNAMIC:
        e->dynamic = range;
        return true;
    case PT_GNU_EH_FRAME:
        e->eh_frame_hdr = range;
        return true;
    default:
        return true;
    }
}

/* Calls `take` with each entry of a table of headers, which is read in pieces. */
static bool each_header(struct elf *e, uint64_t offset, uint32_t count, size_t bytes,
                        bool (*take)(struct elf *e, struct cursor *c, struct err *err),
                        struct err *err)
{
    unsigned char chunk[HEADERS_PER_READ * sizeof(Elf64_Shdr)];
    for (uint32_t done = 0, now; done < count; done += now) {
        now = count - done < HEADERS_PER_READ ? count - done : HEADERS_PER_READ;
        if (!elf_read(e, offset + done * bytes, chunk, now * bytes, err)) {
            return false;
        }
        for (uint32_t i = 0; i < now; i++) {
            struct cursor c = cursor_of(chunk + i * bytes, bytes);
            if (!take(e, &c, err)) {
                return false;
            }
        }
    }
    return true;
}

static bool take_segment_header(struct elf *e, struct cursor *c, struct err *err)
{
    struct program_header p = take_program_header(c, e->is_32bit);
    return take_segment(e, &p, err);
}

static bool read_segments(struct elf *e, const struct elf_header *h, struct err *err)
{
    size_t each = e->is_32bit ? sizeof(Elf32_Phdr) : sizeof(Elf64_Phdr);
    if (wraps(h->program_headers, h->program_header_count * each)) {
        return err_set(err, ERR_MALFORMED, 0, "ELF program headers lie beyond the end of the file");
    }
    e->text_start = UINT64_MAX;
    if (!each_header(e, h->program_headers, h->program_header_count, each, take_segment_header,
                     err)) {
        return false;
    }
    if (e->text_start > e->text_limit) {
        e->text_start = e->text_limit = 0; /* a file of data only */
    }
    return true;
}

static struct elf_section take_section(struct cursor *c, bool is_32bit)
{
    struct elf_section s = {.name = cursor_u32(c), .type = cursor_u32(c)};
    uint64_t flags = word(c, is_32bit);
    s.executable = (flags & SHF_EXECINSTR) != 0;
    s.compressed = (flags & SHF_COMPRESSED) != 0;
    s.address = word(c, is_32bit);
    s.offset = word(c, is_32bit);
    s.bytes = word(c, is_32bit);
    s.link = cursor_u32(c);
    return s;
}

static bool section_makes_sense(const struct elf_section *s)
{
    return !wraps(s->address, s->bytes) && !wraps(s->offset, s->bytes);
}

static bool take_section_header(struct elf *e, struct cursor *c, struct err *err)
{
    struct elf_section s = take_section(c, e->is_32bit);
    struct elf_section *stored = vec_push(&e->sections);
    if (stored == NULL) {
        return err_set(err, ERR_MEMORY, 0, "no memory for ELF sections");
    }
    if (section_makes_sense(&s)) {
        *stored = s; /* else a null section, so that indices stay right */
    }
    return true;
}

/* Sections are a convenience: programs run without, so any fault means that there are none. */
static void read_sections(struct elf *e, const struct elf_header *h)
{
    size_t each = e->is_32bit ? sizeof(Elf32_Shdr) : sizeof(Elf64_Shdr);
    if (h->section_headers == 0 || h->section_count > ELF_SECTIONS_MAX ||
        wraps(h->section_headers, h->section_count * each) ||
        !each_header(e, h->section_headers, h->section_count, each, take_section_header, NULL)) {
        vec_release(&e->sections);
    }
    e->section_names = h->section_names;
}

bool elf_open(struct elf *e, const struct memory_reader *file, struct err *err)
{
    struct elf_header h = {0};
    *e = (struct elf){.file = *file};
    if (!read_header(e, &h, err) || !read_segments(e, &h, err)) {
        return false;
    }
    read_sections(e, &h);
    if (e->build_id_bytes == 0) {
        elf_take_note_sections(e);
    }
    elf_find_tables(e);
    return true;
}

bool elf_open_sections(struct elf *e, const struct memory_reader *file, struct err *err)
{
    struct elf_header h = {.sections_only = true};
    *e = (struct elf){.file = *file};
    if (!read_header(e, &h, err)) {
        return false;
    }
    read_sections(e, &h);
    return true;
}

static bool read_bytes(void *context, uint64_t address, void *out, size_t len, struct err *err)
{
    const struct str *bytes = context;
    if (address > bytes->len || len > bytes->len - address) {
        return err_set(err, ERR_MALFORMED, 0, "%zu bytes at %#llx are beyond the end at %#zx", len,
                       (unsigned long long)address, bytes->len);
    }
    memcpy(out, bytes->ptr + address, len);
    return true;
}

bool elf_open_bytes(struct elf *e, const void *ptr, size_t len, struct err *err)
{
    /* elf_open resets *e, so the slice is set once after it and once for its own reads. */
    struct str bytes = {ptr, len};
    struct memory_reader reader = {read_bytes, &bytes};
    if (!elf_open(e, &reader, err)) {
        return false;
    }
    e->bytes = bytes;
    e->file.context = &e->bytes;
    return true;
}

void elf_release(struct elf *e)
{
    vec_release(&e->sections);
    free(e->window);
    e->window = NULL;
    e->window_bytes = 0;
}

bool elf_section_name(struct elf *e, const struct elf_section *section, struct str *out)
{
    if (e->section_names >= e->sections.len) {
        return false;
    }
    const struct elf_section *names = &e->sections.at[e->section_names];
    return section->name < names->bytes &&
           elf_text(e, names->offset, names->bytes, section->name, out);
}

bool elf_is_go(struct elf *e)
{
    return elf_section(e, ".gopclntab") != NULL || elf_section(e, ".note.go.buildid") != NULL ||
           elf_section(e, ".data.rel.ro.gopclntab") != NULL;
}

const struct elf_section *elf_section(struct elf *e, const char *name)
{
    vec_each(&e->sections, s) {
        struct str text;
        if (s->type != SHT_NULL && elf_section_name(e, s, &text) && str_eq(text, str_of(name))) {
            return s;
        }
    }
    return NULL;
}
