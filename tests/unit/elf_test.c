/* ELF files: hand-made ones, spoiled ones, this program and the C library. */
#include "elf/elf.h"
#include "elf_build.h"
#include "elf_dynamic.h"
#include "elf_image.h"
#include "test.h"

#include <fcntl.h>
#include <link.h>
#include <sys/auxv.h>
#include <unistd.h>

static const struct image_symbol sample[] = {
    {"main", 0x2010, 0x20, STB_GLOBAL, STT_FUNC, 1},
    {"helper", 0x2030, 0x10, STB_LOCAL, STT_FUNC, 1},
    {"memcpy@@GLIBC_2.14", 0x2040, 0x10, STB_WEAK, STT_GNU_IFUNC, 1},
    {"asm_entry", 0x2800, 0, STB_LOCAL, STT_NOTYPE, 2},
    {"$x", 0x2000, 0, STB_LOCAL, STT_NOTYPE, 1},
    {"$d.7", 0x2100, 0, STB_LOCAL, STT_NOTYPE, 1},
    {".Ltmp3", 0x2120, 0, STB_LOCAL, STT_NOTYPE, 1},
    {"imported", 0, 0, STB_GLOBAL, STT_FUNC, SHN_UNDEF},
    {"a_variable", 0x2200, 8, STB_GLOBAL, STT_OBJECT, 3},
    {"a_label_in_data", 0x2200, 0, STB_LOCAL, STT_NOTYPE, 3},
    {"below_the_text", 0x100, 4, STB_GLOBAL, STT_FUNC, 1},
    {"behind_the_text", 0x3000, 4, STB_GLOBAL, STT_FUNC, 1},
    {"huge", 0x2ff0, UINT64_MAX, STB_GLOBAL, STT_FUNC, 2},
};

static struct elf_image image;

static void make_sample(void)
{
    elf_image_make(&image, sample, sizeof sample / sizeof sample[0]);
}

struct seen {
    struct elf *elf;
    char text[2000]; /* "name address size; …" */
    unsigned count;
};

static bool note_symbol(void *context, const struct elf_symbol *s)
{
    struct seen *seen = context;
    struct str name = STR("?");
    elf_name(seen->elf, s->table, s->name, &name);
    size_t len = strlen(seen->text);
    snprintf(seen->text + len, sizeof seen->text - len, "%.*s %llx %llx %d; ", (int)name.len,
             name.ptr, (unsigned long long)s->address, (unsigned long long)s->size, s->binding);
    seen->count++;
    return true;
}

static void functions_of_a_table(void)
{
    struct elf e;
    make_sample();
    CHECK(elf_open_bytes(&e, image.bytes, image.len, NULL));
    struct seen seen = {.elf = &e};
    CHECK(elf_each_function(&e, ELF_SYMTAB, note_symbol, &seen, NULL));
    CHECK_TEXT(seen.text, "main 2010 20 2; helper 2030 10 0; memcpy 2040 10 1; asm_entry 2800 0 0; "
                          "huge 2ff0 10 2; ");
    CHECK(elf_each_function(&e, ELF_DYNSYM, note_symbol, &seen, NULL));
    CHECK_INT(seen.count, 5);
    elf_release(&e);
}

static void headers(void)
{
    struct elf e;
    char id[2 * ELF_BUILD_ID_MAX + 1];
    make_sample();
    CHECK(elf_open_bytes(&e, image.bytes, image.len, NULL));
    CHECK(e.machine == ELF_X86_64 && e.is_pie && !e.is_32bit && e.entry == 0x2000);
    CHECK_INT(e.load_count, 2);
    CHECK(e.text_start == 0x2000 && e.text_limit == 0x3000);
    elf_build_id_text(&e, id);
    CHECK_TEXT(id, "deadbeef");
    const struct elf_section *text = elf_section(&e, ".text");
    CHECK(text != NULL && text->address == 0x2000 && text->executable);
    CHECK(elf_section(&e, ".tex") == NULL && elf_section(&e, ".bss") == NULL);
    uint64_t offset;
    CHECK(elf_offset_of(&e, 0x2fff, &offset) && offset == 0x1fff);
    CHECK(!elf_offset_of(&e, 0x3000, &offset) && !elf_offset_of(&e, 0x1000, &offset));
    elf_release(&e);
}

static void build_id_by_section(void)
{
    struct elf e;
    make_sample();
    image_put(IMAGE_SEGMENT(&image, 2, p_type), PT_NULL, 4);
    image_put(IMAGE_SECTION(&image, 3, sh_type), SHT_NOTE, 4);
    image_put(IMAGE_SECTION(&image, 3, sh_offset), IMAGE_NOTE, 8);
    image_put(IMAGE_SECTION(&image, 3, sh_size), 40, 8);
    CHECK(elf_open_bytes(&e, image.bytes, image.len, NULL));
    CHECK_INT(e.build_id_bytes, 4);
    elf_release(&e);
}

static void bias_of_mappings(void)
{
    struct elf e;
    uint64_t bias = 7;
    make_sample();
    CHECK(elf_open_bytes(&e, image.bytes, image.len, NULL));
    /* the executable segment: offset 0x1000 is address 0x2000 */
    CHECK(elf_bias(&e, 0x7f0000002000, 0x1000, 4096, &bias) && bias == 0x7f0000000000);
    /* split by mprotect: its second half */
    CHECK(elf_bias(&e, 0x7f0000002800, 0x1800, 4096, &bias) && bias == 0x7f0000000000);
    /* only the first segment holds offset 0 */
    CHECK(elf_bias(&e, 0x7f0000000000, 0, 4096, &bias) && bias == 0x7f0000000000);
    bias = 7;
    CHECK(!elf_bias(&e, 0x7f0000000000, 0x2000, 4096, &bias) && bias == 7);
    elf_release(&e);
    /* segments that share a page of the file: the executable one begins within it */
    image_put(IMAGE_SEGMENT(&image, 1, p_offset), 0xe80, 8);
    image_put(IMAGE_SEGMENT(&image, 1, p_vaddr), 0x1e80, 8);
    CHECK(elf_open_bytes(&e, image.bytes, image.len, NULL));
    CHECK(elf_bias(&e, 0x555555001000, 0, 4096, &bias) && bias == 0x555555000000);
    elf_release(&e);
}

static void refused(const char *what, enum err_kind kind)
{
    struct elf e;
    struct err err = {0};
    bool opened = elf_open_bytes(&e, image.bytes, image.len, &err);
    if (opened || err.kind != kind || err.text[0] == '\0') {
        printf("# %s: opened %d, kind %d, '%s'\n", what, opened, err.kind, err.text);
        test_failures++;
    }
    if (opened) {
        elf_release(&e);
    }
    make_sample();
}

static void refused_by_name(void)
{
    make_sample();
    image.bytes[0] = 'X';
    refused("no magic", ERR_MALFORMED);
    image.bytes[EI_CLASS] = 3;
    refused("class 3", ERR_MALFORMED);
    image.bytes[EI_DATA] = ELFDATA2MSB;
    refused("big endian", ERR_UNSUPPORTED);
    image_put(IMAGE_HEADER(&image, e_machine), EM_PPC64, 2);
    refused("PowerPC", ERR_UNSUPPORTED);
    image_put(IMAGE_HEADER(&image, e_type), ET_CORE, 2);
    refused("a core dump", ERR_UNSUPPORTED);
    image_put(IMAGE_HEADER(&image, e_phnum), 0, 2);
    refused("no program headers", ERR_MALFORMED);
    image_put(IMAGE_HEADER(&image, e_phnum), 0xffff, 2);
    refused("65,535 program headers", ERR_LIMIT);
    image_put(IMAGE_HEADER(&image, e_phentsize), 32, 2);
    refused("program headers of another size", ERR_MALFORMED);
    image_put(IMAGE_HEADER(&image, e_shentsize), 1, 2);
    refused("section headers of another size", ERR_MALFORMED);
    image_put(IMAGE_HEADER(&image, e_phoff), UINT64_MAX - 8, 8);
    refused("program headers that wrap around", ERR_MALFORMED);
    image_put(IMAGE_HEADER(&image, e_phoff), 1 << 20, 8);
    refused("program headers behind the end", ERR_MALFORMED);
    image_put(IMAGE_SEGMENT(&image, 1, p_vaddr), UINT64_MAX - 8, 8);
    refused("a segment that wraps around", ERR_MALFORMED);
    image_put(IMAGE_SEGMENT(&image, 1, p_filesz), 0x2000, 8);
    refused("a segment with more in the file than in memory", ERR_MALFORMED);
    image.len = 20;
    refused("cut in the identification", ERR_MALFORMED);
    image.len = 60;
    refused("cut in the header", ERR_MALFORMED);
    image.len = IMAGE_PHDRS + 60;
    refused("cut in the program headers", ERR_MALFORMED);
}

static void sections_are_optional(void)
{
    struct elf e;
    make_sample();
    image_put(IMAGE_HEADER(&image, e_shoff), 1 << 20, 8);
    CHECK(elf_open_bytes(&e, image.bytes, image.len, NULL));
    CHECK_INT(e.sections.len, 0);
    CHECK_INT(e.tables[ELF_SYMTAB].count, 0);
    CHECK(elf_section(&e, ".text") == NULL);
    elf_release(&e);
    make_sample();
    image_put(IMAGE_HEADER(&image, e_shnum), 0xfeff, 2);
    CHECK(elf_open_bytes(&e, image.bytes, image.len, NULL));
    CHECK_INT(e.sections.len, 0);
    elf_release(&e);
    make_sample();
    image_put(IMAGE_HEADER(&image, e_shstrndx), 0xffff, 2);
    CHECK(elf_open_bytes(&e, image.bytes, image.len, NULL));
    CHECK(elf_section(&e, ".text") == NULL);
    elf_release(&e);
}

/* Opens, walks and names whatever is there; only the absence of a crash is checked by callers. */
static unsigned use_all(const void *bytes, size_t len)
{
    struct elf e;
    if (!elf_open_bytes(&e, bytes, len, NULL)) {
        return 0;
    }
    static struct seen seen;
    seen = (struct seen){.elf = &e};
    for (int t = 0; t < ELF_TABLE_COUNT; t++) {
        (void)elf_each_function(&e, (enum elf_table)t, note_symbol, &seen, NULL);
    }
    (void)elf_section(&e, ".none");
    elf_release(&e);
    return seen.count;
}

static void hostile_tables(void)
{
    make_sample();
    image_put(IMAGE_SECTION(&image, 4, sh_size), UINT64_MAX, 8);
    CHECK_INT(use_all(image.bytes, image.len), 0); /* wraps: no such section */
    make_sample();
    image_put(IMAGE_SECTION(&image, 4, sh_size), UINT32_MAX, 8);
    CHECK_INT(use_all(image.bytes, image.len), 0); /* more symbols than any file has */
    make_sample();
    image_put(IMAGE_SECTION(&image, 4, sh_size), 24 * 600, 8);
    CHECK_INT(use_all(image.bytes, image.len), 0); /* reaches behind the file's end */
    make_sample();
    image_put(IMAGE_SECTION(&image, 4, sh_link), 99, 4);
    CHECK_INT(use_all(image.bytes, image.len), 0);
    make_sample();
    image_put(IMAGE_SECTION(&image, 5, sh_size), 3, 8); /* names end within the first one */
    CHECK_INT(use_all(image.bytes, image.len), 4);
    make_sample();
    image_put(IMAGE_SECTION(&image, 5, sh_offset), 1 << 20, 8);
    CHECK_INT(use_all(image.bytes, image.len), 4); /* functions stay, names and labels go */
}

static void every_cut(void)
{
    make_sample();
    for (size_t len = 0; len <= image.len; len++) {
        unsigned char *exact = malloc(len == 0 ? 1 : len); /* AddressSanitizer sees its end */
        memcpy(exact, image.bytes, len);
        (void)use_all(exact, len);
        free(exact);
    }
    CHECK_INT(use_all(image.bytes, image.len), 5);
}

static void every_byte_spoiled(void)
{
    make_sample();
    for (size_t at = 0; at < image.len; at++) {
        static const unsigned char values[] = {0, 1, 0x7f, 0x80, 0xff};
        unsigned char was = image.bytes[at];
        for (size_t v = 0; v < sizeof values; v++) {
            image.bytes[at] = values[v];
            (void)use_all(image.bytes, image.len);
        }
        image.bytes[at] = was;
    }
    CHECK_INT(use_all(image.bytes, image.len), 5);
}

static void long_names(void)
{
    static char name[6000];
    memset(name, 'n', sizeof name - 1);
    struct image_symbol symbols[] = {{name, 0x2000, 8, STB_GLOBAL, STT_FUNC, 1},
                                     {"after", 0x2008, 8, STB_GLOBAL, STT_FUNC, 1}};
    elf_image_make(&image, symbols, 2);
    struct elf e;
    struct str got;
    CHECK(elf_open_bytes(&e, image.bytes, image.len, NULL));
    CHECK(elf_name(&e, ELF_SYMTAB, 1, &got) && got.len == ELF_NAME_MAX);
    CHECK(elf_name(&e, ELF_SYMTAB, 1 + sizeof name, &got));
    CHECK_STR(got, "after");
    CHECK(!elf_name(&e, ELF_SYMTAB, 0, &got)); /* empty */
    CHECK(!elf_name(&e, ELF_SYMTAB, 1 << 20, &got));
    elf_release(&e);
}

static void i386(void)
{
    /* header, one PT_LOAD RX (address 0x8048000, offset 0), .text, .symtab of one symbol, .strtab */
    static unsigned char b[600];
    Elf32_Ehdr h = {.e_ident = {0x7f, 'E', 'L', 'F', ELFCLASS32, ELFDATA2LSB, EV_CURRENT},
                    .e_type = ET_EXEC, .e_machine = EM_386, .e_phoff = 52, .e_shoff = 100,
                    .e_phentsize = sizeof(Elf32_Phdr), .e_phnum = 1,
                    .e_shentsize = sizeof(Elf32_Shdr), .e_shnum = 4};
    Elf32_Phdr p = {.p_type = PT_LOAD, .p_vaddr = 0x8048000, .p_filesz = 0x1000, .p_memsz = 0x1000,
                    .p_flags = PF_R | PF_X};
    Elf32_Shdr s[4] = {{0},
                       {.sh_type = SHT_PROGBITS, .sh_flags = SHF_EXECINSTR, .sh_addr = 0x8048000,
                        .sh_size = 0x1000},
                       {.sh_type = SHT_SYMTAB, .sh_offset = 300, .sh_size = 32, .sh_link = 3},
                       {.sh_type = SHT_STRTAB, .sh_offset = 400, .sh_size = 6}};
    Elf32_Sym y = {.st_name = 1, .st_value = 0x8048100, .st_size = 4,
                   .st_info = STB_GLOBAL << 4 | STT_FUNC, .st_shndx = 1};
    memcpy(b, &h, sizeof h);
    memcpy(b + 52, &p, sizeof p);
    memcpy(b + 100, s, sizeof s);
    memcpy(b + 316, &y, sizeof y);
    memcpy(b + 401, "main", 5);
    struct elf e;
    CHECK(elf_open_bytes(&e, b, sizeof b, NULL));
    CHECK(e.machine == ELF_I386 && e.is_32bit && !e.is_pie && e.text_start == 0x8048000);
    struct seen seen = {.elf = &e};
    CHECK(elf_each_function(&e, ELF_SYMTAB, note_symbol, &seen, NULL));
    CHECK_TEXT(seen.text, "main 8048100 4 2; ");
    elf_release(&e);
}

/* ---- sections ---- */

static struct elf_build built;

/* What elf_section_read gives for ".it", or the kind of its error: "4 cut". */
static const char *content_of(size_t max_bytes)
{
    static char text[200];
    struct elf e;
    struct err err = {0};
    struct buf out;
    buf_init(&out, max_bytes);
    buf_text(&out, "> ");
    CHECK(elf_open_bytes(&e, built.bytes, built.len, NULL));
    const struct elf_section *section = elf_section(&e, ".it");
    if (section == NULL) {
        snprintf(text, sizeof text, "no section");
    } else if (elf_section_read(&e, section, &out, &err)) {
        snprintf(text, sizeof text, "%s", buf_cstr(&out));
    } else {
        CHECK_STR(buf_slice(&out), "> "); /* nothing is appended by a failure */
        CHECK(err.text[0] != '\0' && !out.failed);
        snprintf(text, sizeof text, "error %d", err.kind);
    }
    elf_release(&e);
    buf_release(&out);
    return text;
}

static const char *content(const char *name, uint32_t type, uint64_t flags, const void *ptr,
                           size_t len)
{
    build_start(&built, EM_X86_64);
    build_section(&built, (struct build_row){name, type, flags, 0, ptr, len, 0});
    build_end(&built);
    return content_of(100);
}

static void contents(void)
{
    CHECK_TEXT(content(".it", SHT_PROGBITS, 0, "as it is", 8), "> as it is");
    CHECK_TEXT(content(".it", SHT_PROGBITS, 0, "", 0), "> ");
}

static void refused_contents(void)
{
    char text[20];
    snprintf(text, sizeof text, "error %d", ERR_UNSUPPORTED);
    CHECK_TEXT(content(".it", SHT_NOBITS, 0, NULL, 8), text);
    CHECK_TEXT(content(".it", SHT_PROGBITS, SHF_COMPRESSED, "packed", 6), text);
    snprintf(text, sizeof text, "error %d", ERR_MALFORMED);
    /* the section claims 7 bytes more than the file has */
    (void)content(".it", SHT_PROGBITS, 0, "12345678", 8);
    image_put(built.bytes + built.len - 2 * sizeof(Elf64_Shdr) + offsetof(Elf64_Shdr, sh_offset),
              built.len - 1, 8);
    CHECK_TEXT(content_of(100), text);
}

static void too_much_content(void)
{
    char text[20];
    snprintf(text, sizeof text, "error %d", ERR_LIMIT);
    (void)content(".it", SHT_PROGBITS, 0, "eight by", 8);
    CHECK_TEXT(content_of(2 + 7), text);
    CHECK_TEXT(content_of(2 + 8), "> eight by");
}

static void section_names(void)
{
    struct elf e;
    make_sample();
    /* the first section has a name that stands behind the others' */
    image_put(IMAGE_SECTION(&image, 1, sh_name), 26, 4);
    image_put(IMAGE_SECTION(&image, 5, sh_name), 1, 4);
    CHECK(elf_open_bytes(&e, image.bytes, image.len, NULL));
    uint32_t before = e.window_reads;
    CHECK(elf_section(&e, ".strtab") == &e.sections.at[1]);
    CHECK(elf_section(&e, ".text") == &e.sections.at[5]);
    CHECK(elf_section(&e, ".none") == NULL);
    CHECK_INT(e.window_reads - before, 1);
    elf_release(&e);
}

/* ---- relocations ---- */

static bool note_relocation(void *context, const struct elf_relocation *r)
{
    char *text = context;
    size_t len = strlen(text);
    snprintf(text + len, 500 - len, "%u: %llx %u %llx %d; ", r->index, (unsigned long long)r->slot,
             r->symbol, (unsigned long long)r->addend, r->kind);
    return r->slot != 0x99;
}

static const char *relocations(const char *name)
{
    static char text[500];
    struct elf e;
    text[0] = '\0';
    CHECK(elf_open_bytes(&e, built.bytes, built.len, NULL));
    const struct elf_section *section = elf_section(&e, name);
    CHECK(section != NULL && elf_each_relocation(&e, section, note_relocation, text, NULL));
    elf_release(&e);
    return text;
}

static void relocation_tables(void)
{
    static const Elf64_Rela with[] = {{0x10, ELF64_R_INFO(3, R_X86_64_GLOB_DAT), 0},
                                      {0x18, ELF64_R_INFO(0, R_X86_64_IRELATIVE), 0x1234},
                                      {0x20, ELF64_R_INFO(4, R_X86_64_64), 1},
                                      {0x99, ELF64_R_INFO(5, R_X86_64_JUMP_SLOT), 0},
                                      {0x28, 0, 0}};
    static const Elf64_Rel without[] = {{0x30, ELF64_R_INFO(6, R_X86_64_JUMP_SLOT)}};
    build_start(&built, EM_X86_64);
    build_section(&built, (struct build_row){".rela", SHT_RELA, 0, 0, with, sizeof with, 0});
    build_section(&built, (struct build_row){".rel", SHT_REL, 0, 0, without, sizeof without, 0});
    build_section(&built, (struct build_row){".no", SHT_PROGBITS, 0, 0, with, sizeof with, 0});
    build_end(&built);
    CHECK_TEXT(relocations(".rela"), "0: 10 3 0 1; 1: 18 0 1234 2; 2: 20 4 1 0; 3: 99 5 0 1; ");
    CHECK_TEXT(relocations(".rel"), "0: 30 6 0 1; ");
    CHECK_TEXT(relocations(".no"), "");
}

static void relative_relocations(void)
{
    /* PT_DYNAMIC says: relocations at 0x400, of which the first two are RELATIVE */
    static const Elf64_Dyn dynamic[] = {{DT_RELA, {0x400}}, {DT_RELACOUNT, {2}}, {DT_NULL, {0}}};
    static const Elf64_Rela rela[] = {{0x10, R_X86_64_RELATIVE, 7},
                                      {0x18, R_X86_64_RELATIVE, 8},
                                      {0x20, ELF64_R_INFO(3, R_X86_64_GLOB_DAT), 0}};
    build_start(&built, EM_X86_64);
    build_section(&built, (struct build_row){".dynamic", SHT_DYNAMIC, 0, 0, dynamic,
                  sizeof dynamic, 0});
    build_section(&built, (struct build_row){".rela.dyn", SHT_RELA, 0, 0x400, rela, sizeof rela,
                  0});
    build_section(&built, (struct build_row){".rela.plt", SHT_RELA, 0, 0x500, rela, sizeof rela,
                  0});
    build_end(&built);
    Elf64_Phdr p = {.p_type = PT_DYNAMIC, .p_offset = built.sections[1].sh_offset,
                    .p_filesz = sizeof dynamic, .p_memsz = sizeof dynamic};
    memcpy(built.bytes + sizeof(Elf64_Ehdr), &p, sizeof p);
    CHECK_TEXT(relocations(".rela.dyn"), "2: 20 3 0 1; ");
    CHECK_TEXT(relocations(".rela.plt"), "0: 10 0 7 0; 1: 18 0 8 0; 2: 20 3 0 1; ");
}

static void names_by_number(void)
{
    struct elf e;
    struct str name;
    make_sample();
    CHECK(elf_open_bytes(&e, image.bytes, image.len, NULL));
    CHECK(elf_name_of(&e, ELF_SYMTAB, 3, &name));
    CHECK_STR(name, "memcpy");
    CHECK(!elf_name_of(&e, ELF_SYMTAB, 0, &name)); /* the null symbol */
    CHECK(!elf_name_of(&e, ELF_DYNSYM, 1, &name));
    elf_release(&e);
    image_put(IMAGE_SECTION(&image, 4, sh_size), 3 * sizeof(Elf64_Sym), 8);
    CHECK(elf_open_bytes(&e, image.bytes, image.len, NULL));
    CHECK(elf_name_of(&e, ELF_SYMTAB, 2, &name));
    CHECK(!elf_name_of(&e, ELF_SYMTAB, 3, &name)); /* behind the last now */
    elf_release(&e);
}

/* ---- by name ---- */

static struct elf_dynamic_image shared;

static const struct dynamic_symbol shared_symbols[] = {
    {"first", 0x4000, 0x20, STT_FUNC, 0},
    {"a_table", 0x8400, 0x100, STT_OBJECT, 0},
    {"in_bss", 0xa010, UINT64_MAX, STT_OBJECT, 0}, /* a size that reaches beyond its segment */
    {"imported", 0, 0, STT_FUNC, 1},
    {"nowhere", 0x20000, 8, STT_OBJECT, 0},
    {"last", 0x4020, 0, STT_FUNC, 0},
};

static void make_shared(enum dynamic_hash kind)
{
    dynamic_make(&shared, EM_X86_64, kind, shared_symbols,
                 sizeof shared_symbols / sizeof shared_symbols[0], "libwanted.so.6");
}

static void found_by_hash(void)
{
    struct elf e;
    struct elf_symbol s;
    for (enum dynamic_hash kind = DYNAMIC_GNU_HASH; kind <= DYNAMIC_HASH; kind++) {
        make_shared(kind);
        CHECK(elf_open_bytes(&e, shared.bytes, sizeof shared.bytes, NULL));
        CHECK(elf_find_dynamic(&e, "first", &s) && s.address == 0x4000 && s.size == 0x20);
        CHECK(elf_find_dynamic(&e, "a_table", &s) && s.address == 0x8400 && s.limit == 0x10000);
        CHECK(elf_find_dynamic(&e, "in_bss", &s) && s.size == 0x5ff0);
        CHECK(elf_find_dynamic(&e, "last", &s) && s.address == 0x4020);
        CHECK(!elf_find_dynamic(&e, "imported", &s));
        CHECK(!elf_find_dynamic(&e, "nowhere", &s));
        CHECK(!elf_find_dynamic(&e, "firs", &s) && !elf_find_dynamic(&e, "", &s));
        CHECK(elf_needs(&e, "libwanted.so") && !elf_needs(&e, "libc"));
        elf_release(&e);
    }
    make_shared(DYNAMIC_GNU_HASH);
    dynamic_put(&shared, DYNAMIC_HASH_TABLE + 16, 0, 8); /* a filter that knows no name */
    CHECK(elf_open_bytes(&e, shared.bytes, sizeof shared.bytes, NULL));
    CHECK(!elf_find_dynamic(&e, "first", &s));
    elf_release(&e);
}

static unsigned reads;

static bool count_reads(void *context, uint64_t address, void *out, size_t len, struct err *err)
{
    (void)context;
    reads++;
    if (address > sizeof shared.bytes || len > sizeof shared.bytes - address) {
        return err_set(err, ERR_MALFORMED, 0, "beyond the end");
    }
    memcpy(out, shared.bytes + address, len);
    return true;
}

static void endless_chains(void)
{
    struct memory_reader file = {count_reads, NULL};
    struct elf e;
    struct elf_symbol s;
    make_shared(DYNAMIC_HASH);
    for (uint32_t i = 0; i < 6; i++) { /* every symbol is followed by the first */
        dynamic_put(&shared, DYNAMIC_HASH_TABLE + 16 + i * 4, 1, 4);
    }
    CHECK(elf_open(&e, &file, NULL));
    reads = 0;
    CHECK(!elf_find_dynamic(&e, "absent", &s));
    CHECK(reads < 20000);
    elf_release(&e);
    make_shared(DYNAMIC_GNU_HASH);
    /* no end, and all of this hash */
    for (uint32_t at = DYNAMIC_HASH_TABLE + 28; at < 0x8000; at += 4) {
        dynamic_put(&shared, at, dynamic_gnu_hash("absent") & ~1U, 4);
    }
    CHECK(elf_open(&e, &file, NULL));
    reads = 0;
    CHECK(!elf_find_dynamic(&e, "absent", &s));
    CHECK(reads < 2 * 4096 + 100); /* the file has 6,137 such words */
    elf_release(&e);
}

static void spoiled_hash_tables(void)
{
    struct elf e;
    struct elf_symbol s;
    for (size_t at = DYNAMIC_HASH_TABLE; at < DYNAMIC_HASH_TABLE + 64; at++) {
        for (enum dynamic_hash kind = DYNAMIC_GNU_HASH; kind <= DYNAMIC_HASH; kind++) {
            make_shared(kind);
            shared.bytes[at] ^= 0xff;
            CHECK(elf_open_bytes(&e, shared.bytes, sizeof shared.bytes, NULL));
            if (elf_find_dynamic(&e, "first", &s)) {
                CHECK_INT(s.address, 0x4000); /* found rightly or not at all */
            }
            elf_release(&e);
        }
    }
}

static void found_by_name(void)
{
    struct elf e;
    struct elf_symbol s;
    make_sample();
    CHECK(elf_open_bytes(&e, image.bytes, image.len, NULL));
    CHECK(elf_find_symbol(&e, ELF_SYMTAB, "a_variable", &s) && s.address == 0x2200);
    CHECK(elf_find_symbol(&e, ELF_SYMTAB, "helper", &s) && s.address == 0x2030);
    CHECK(s.binding == ELF_LOCAL && s.size == 0x10);
    CHECK(!elf_find_symbol(&e, ELF_SYMTAB, "variable", &s)); /* ends a name, names no symbol */
    CHECK(!elf_find_symbol(&e, ELF_SYMTAB, "imported", &s));
    CHECK(!elf_find_symbol(&e, ELF_DYNSYM, "helper", &s));
    CHECK(!elf_find_dynamic(&e, "helper", &s) && !elf_needs(&e, ""));
    elf_release(&e);
}

/* ---- real files ---- */

static bool read_fd(void *context, uint64_t address, void *out, size_t len, struct err *err)
{
    return pread(*(int *)context, out, len, (off_t)address) == (ssize_t)len ||
           err_set(err, ERR_IO, 0, "short read");
}

struct wanted {
    struct elf *elf;
    const char *name;
    uint64_t address;
};

static bool want_symbol(void *context, const struct elf_symbol *s)
{
    struct wanted *w = context;
    struct str name;
    if (elf_name(w->elf, s->table, s->name, &name) && str_eq(name, str_of(w->name))) {
        w->address = s->address;
    }
    return w->address == 0;
}

static int own_base(struct dl_phdr_info *info, size_t size, void *out)
{
    (void)size;
    *(uint64_t *)out = info->dlpi_addr; /* the first is the program itself */
    return 1;
}

static void own_program(void)
{
    int fd = open("/proc/self/exe", O_RDONLY);
    struct memory_reader file = {read_fd, &fd};
    struct elf e;
    uint64_t base = 0;
    dl_iterate_phdr(own_base, &base);
    CHECK(fd >= 0 && elf_open(&e, &file, NULL));
    struct wanted w = {&e, "own_program", 0};
    CHECK(elf_each_function(&e, ELF_SYMTAB, want_symbol, &w, NULL));
    CHECK(w.address + base == (uint64_t)(uintptr_t)&own_program);
    CHECK(w.address >= e.text_start && w.address < e.text_limit && e.eh_frame_hdr.bytes > 0);
    struct elf_symbol found;
    CHECK(elf_find_symbol(&e, ELF_SYMTAB, "reads", &found));
    CHECK(found.address + base == (uint64_t)(uintptr_t)&reads);
    elf_release(&e);
    close(fd);
}

static void c_library_without_sections(void)
{
    int fd = open("/lib/x86_64-linux-gnu/libc.so.6", O_RDONLY);
    fd = fd >= 0 ? fd : open("/lib/aarch64-linux-gnu/libc.so.6", O_RDONLY);
    if (fd < 0) {
        SKIP("no C library where Debian has it");
    }
    struct memory_reader file = {read_fd, &fd};
    struct elf e, bare;
    CHECK(elf_open(&e, &file, NULL) && e.build_id_bytes == 20);
    size_t len = (size_t)lseek(fd, 0, SEEK_END);
    unsigned char *bytes = malloc(len);
    CHECK(pread(fd, bytes, len, 0) == (ssize_t)len);
    memset(bytes + offsetof(Elf64_Ehdr, e_shoff), 0, 8);
    CHECK(elf_open_bytes(&bare, bytes, len, NULL) && bare.sections.len == 0);
    CHECK(bare.tables[ELF_DYNSYM].count > 1000);
    CHECK_INT(bare.tables[ELF_DYNSYM].count, e.tables[ELF_DYNSYM].count);
    CHECK_INT(bare.tables[ELF_DYNSYM].names_bytes, e.tables[ELF_DYNSYM].names_bytes);
    struct wanted w = {&bare, "qsort", 0};
    struct elf_symbol found;
    CHECK(elf_each_function(&bare, ELF_DYNSYM, want_symbol, &w, NULL) && w.address != 0);
    CHECK(elf_find_dynamic(&bare, "qsort", &found) && found.address == w.address);
    CHECK(elf_find_dynamic(&e, "stdout", &found) && !elf_find_dynamic(&e, "no_such_name", &found));
    CHECK(elf_needs(&e, "ld-linux"));
    free(bytes);
    elf_release(&e);
    elf_release(&bare);
    close(fd);
}

static void own_vdso(void)
{
    const void *vdso = (const void *)(uintptr_t)getauxval(AT_SYSINFO_EHDR);
    if (vdso == NULL) {
        SKIP("this machine has no vdso");
    }
    struct elf e;
    CHECK(elf_open_bytes(&e, vdso, 2 * 4096, NULL));
    struct wanted w = {&e, "__vdso_clock_gettime", 0};
    if (e.machine == ELF_AARCH64) {
        w.name = "__kernel_clock_gettime";
    }
    CHECK(elf_each_function(&e, ELF_DYNSYM, want_symbol, &w, NULL) && w.address != 0);
    elf_release(&e);
}

TESTS({"functions are those that can be code, without versions and marks", functions_of_a_table},
      {"headers give machine, segments, build id and sections", headers},
      {"a build id is found by section when no segment holds it", build_id_by_section},
      {"the bias of a mapping follows from the segment that holds its offset", bias_of_mappings},
      {"what is no program for this profiler is refused with its reason", refused_by_name},
      {"a section table that is cut, too long or nameless is as none", sections_are_optional},
      {"hostile tables cost nothing and find nothing", hostile_tables},
      {"a file cut at any byte is read up to there", every_cut},
      {"a file spoiled at any byte never crashes", every_byte_spoiled},
      {"names above the maximum are cut", long_names},
      {"a 32-bit program is read too", i386},
      {"the contents of a section are read", contents},
      {"contents that are missing, packed or cut off are refused", refused_contents},
      {"contents beyond the maximum are refused by their claim", too_much_content},
      {"the names of sections are read from the file once", section_names},
      {"relocations are read with and without addends, until told to stop", relocation_tables},
      {"relocations known to name no symbol are passed over", relative_relocations},
      {"a symbol's name is found by its number", names_by_number},
      {"the test program finds its own function where it runs", own_program},
      {"the C library has the same dynamic symbols without its section table",
       c_library_without_sections},
      {"a dynamic symbol is found by either hash table", found_by_hash},
      {"a chain without an end is left", endless_chains},
      {"a spoiled hash table finds rightly or not at all", spoiled_hash_tables},
      {"any symbol is found by its whole name", found_by_name},
      {"the vdso's functions are found in memory", own_vdso})
