/* Linkage stubs: which function each of them calls. */
#include "elf_build.h"
#include "symbol/plt.h"
#include "test.h"

static struct elf_build image;
static char text[1000];

/* What the stubs are: "ADDRESS+BYTES NAME; ", the name "-" without a symbol, "@ADDRESS" of the
 * resolver. */
static const char *stubs(void)
{
    struct elf e;
    struct plt plt;
    text[0] = '\0';
    CHECK(elf_open_bytes(&e, image.bytes, image.len, NULL));
    CHECK(plt_read(&plt, &e, NULL));
    vec_each(&plt.stubs, s) {
        struct str name = STR("-");
        char resolver[20] = "";
        if (s->resolver != 0) {
            snprintf(resolver, sizeof resolver, "@%llx", (unsigned long long)s->resolver);
            name = str_of(resolver);
        } else if (s->symbol != 0 && !elf_name_of(&e, ELF_DYNSYM, s->symbol, &name)) {
            name = STR("unreadable");
        }
        size_t len = strlen(text);
        snprintf(text + len, sizeof text - len, "%llx+%u %.*s; ", (unsigned long long)s->address,
                 s->bytes, (int)name.len, name.ptr);
    }
    plt_release(&plt);
    elf_release(&e);
    return text;
}

/* Symbols 1, 2, 3 of every image here; section 1 is .text. */
static const struct build_symbol imports[] = {
    {"read", 0, 0, STT_FUNC, SHN_UNDEF},
    {"write@V1", 0, 0, STT_FUNC, SHN_UNDEF},
    {"close", 0, 0, STT_FUNC, SHN_UNDEF},
};

static void start(unsigned machine)
{
    build_start(&image, machine);
    build_text(&image);
    build_symbols(&image, SHT_DYNSYM, imports, 3);
}

static void add_code(const char *name, uint64_t address, const void *code, size_t len)
{
    build_section(&image, (struct build_row){name, SHT_PROGBITS, SHF_ALLOC | SHF_EXECINSTR, address,
                  code, len, 0});
}

#define CODE(name, address, bytes) add_code(name, address, bytes, sizeof(bytes) - 1)

static void add_rela(const char *name, const Elf64_Rela *at, size_t count)
{
    build_section(&image, (struct build_row){name, SHT_RELA, SHF_ALLOC, 0x400, at,
                  count * sizeof *at, 2});
}

#define RELA(name, list) add_rela(name, list, sizeof(list) / sizeof(list)[0])
#define SLOT(slot, symbol) {slot, ELF64_R_INFO(symbol, R_X86_64_JUMP_SLOT), 0}

/* .plt at 0x2000: 0x200a + 0x1ff6 = 0x4000 the library's own slot; 0x2016 + 0x1ff2 = 0x4008,
 * 0x2026 + 0x1fea = 0x4010 */
#define LAZY                                                                                       \
    "\xff\x35\xf2\x1f\0\0" "\xff\x25\xf4\x1f\0\0" "\x0f\x1f\x40\0"                                 \
    "\xff\x25\xf2\x1f\0\0" "\x68\0\0\0\0" "\xe9\xe0\xff\xff\xff"                                   \
    "\xff\x25\xea\x1f\0\0" "\x68\x01\0\0\0" "\xe9\xd0\xff\xff\xff"

static void lazy(void)
{
    static const Elf64_Rela slots[] = {SLOT(0x4008, 1), SLOT(0x4010, 2)};
    start(EM_X86_64);
    CODE(".plt", 0x2000, LAZY);
    RELA(".rela.plt", slots);
    build_end(&image);
    CHECK_TEXT(stubs(), "2000+16 -; 2010+16 read; 2020+16 write; ");
}

static void any_order(void)
{
    /* lld sorts neither by slot nor by symbol; the numbers pushed then are not counted from 0 */
    static const Elf64_Rela slots[] = {SLOT(0x5000, 3), SLOT(0x4010, 1), SLOT(0x4008, 2)};
    start(EM_X86_64);
    CODE(".plt", 0x2000, LAZY);
    RELA(".rela.plt", slots);
    build_end(&image);
    CHECK_TEXT(stubs(), "2000+16 -; 2010+16 write; 2020+16 read; ");
}

static void second_table(void)
{
    /* with -z ibt: .plt only pushes the relocation's number, .plt.sec jumps behind endbr64:
     * *0x200b + 0x1ffd = 0x4008 (as bnd jmp, which has f2 in front), *0x201a + 0x1ff6 = 0x4010 */
    static const Elf64_Rela slots[] = {SLOT(0x4008, 3), SLOT(0x4010, 1)};
    start(EM_X86_64);
    CODE(".plt", 0x1800, "\xff\x35\xf2\x1f\0\0" "\xf2\xff\x25\xf4\x1f\0\0" "\x0f\x1f\0"
                         "\xf3\x0f\x1e\xfa" "\x68\0\0\0\0" "\xf2\xe9\xe1\xff\xff\xff" "\x90"
                         "\xf3\x0f\x1e\xfa" "\x68\x01\0\0\0" "\xf2\xe9\xd1\xff\xff\xff" "\x90");
    CODE(".plt.sec", 0x2000, "\xf3\x0f\x1e\xfa" "\xf2\xff\x25\xfd\x1f\0\0" "\x0f\x1f\x44\0\0"
                             "\xf3\x0f\x1e\xfa" "\xff\x25\xf6\x1f\0\0" "\x66\x0f\x1f\x44\0\0");
    RELA(".rela.plt", slots);
    build_end(&image);
    CHECK_TEXT(stubs(),
               "1800+16 -; 1810+16 close; 1820+16 read; 2000+16 close; 2010+16 read; ");
}

static void by_slot_of_data(void)
{
    /* .plt.got: 8 bytes each, 0x2006 + 0x1fea = 0x3ff0 and 0x200e + 0x1fea = 0x3ff8, whose
     * relocations are among all others; the first is of a variable's address */
    static const Elf64_Rela slots[] = {{0x3ff8, ELF64_R_INFO(1, R_X86_64_64), 0},
                                       {0x3ff8, ELF64_R_INFO(2, R_X86_64_GLOB_DAT), 0},
                                       {0x3ff0, ELF64_R_INFO(3, R_X86_64_GLOB_DAT), 0}};
    start(EM_X86_64);
    CODE(".plt.got", 0x2000, "\xff\x25\xea\x1f\0\0\x66\x90" "\xff\x25\xea\x1f\0\0\x66\x90");
    RELA(".rela.dyn", slots);
    build_end(&image);
    CHECK_TEXT(stubs(), "2000+8 close; 2008+8 write; ");
}

static void of_mold(void)
{
    /* the first is 32 bytes: endbr64, push %r11, push, jmp; then endbr64, mov $1, %r11d, and jmp
     * *0x2030 + 0x1fd8 = 0x4008 */
    static const Elf64_Rela slots[] = {SLOT(0x4010, 1), SLOT(0x4008, 2)};
    start(EM_X86_64);
    CODE(".plt", 0x2000, "\xf3\x0f\x1e\xfa" "\x41\x53" "\xff\x35\xec\x1f\0\0" "\xff\x25\xee\x1f\0\0"
                         "\xcc\xcc\xcc\xcc\xcc\xcc\xcc\xcc\xcc\xcc\xcc\xcc\xcc\xcc"
                         "\xf3\x0f\x1e\xfa" "\x41\xbb\x01\0\0\0" "\xff\x25\xd8\x1f\0\0");
    RELA(".rela.plt", slots);
    build_end(&image);
    CHECK_TEXT(stubs(), "2000+32 -; 2020+16 write; ");
}

static void resolved(void)
{
    /* both slots get what a function returns: 0x1500 does for the first */
    static const Elf64_Rela slots[] = {{0x4008, ELF64_R_INFO(0, R_X86_64_IRELATIVE), 0x1500},
                                       {0x4010, ELF64_R_INFO(0, R_X86_64_IRELATIVE), 0}};
    start(EM_X86_64);
    CODE(".plt", 0x2000, LAZY);
    RELA(".rela.plt", slots);
    build_end(&image);
    CHECK_TEXT(stubs(), "2000+16 -; 2010+16 @1500; 2020+16 -; ");
}

/* at 0x2000: stp x16, x30, [sp, #-16]!; adrp x16, 0x4000; ldr x17, [x16, #0xff8]; add; br; 3 nop */
#define ARM_FIRST                                                                                  \
    "\xf0\x7b\xbf\xa9" "\x10\0\0\xd0" "\x11\xfe\x47\xf9" "\x10\xe2\x3f\x91" "\x20\x02\x1f\xd6"     \
    "\x1f\x20\x03\xd5" "\x1f\x20\x03\xd5" "\x1f\x20\x03\xd5"

static void aarch64(void)
{
    /* adrp x16, 3 pages on: 0x5000; ldr x17, [x16] and [x16, #8]; the last adrp one page back */
    static const Elf64_Rela slots[] = {{0x5000, ELF64_R_INFO(2, R_AARCH64_JUMP_SLOT), 0},
                                       {0x5008, ELF64_R_INFO(1, R_AARCH64_JUMP_SLOT), 0},
                                       {0x1010, ELF64_R_INFO(3, R_AARCH64_GLOB_DAT), 0},
                                       {0x1018, ELF64_R_INFO(0, 1032), 0x1700}};
    start(EM_AARCH64);
    CODE(".plt", 0x2000, ARM_FIRST
         "\x10\0\0\xf0" "\x11\x02\x40\xf9" "\x10\x02\0\x91" "\x20\x02\x1f\xd6"
         "\x10\0\0\xf0" "\x11\x06\x40\xf9" "\x10\x22\0\x91" "\x20\x02\x1f\xd6"
         "\xf0\xff\xff\xf0" "\x11\x0a\x40\xf9" "\x10\x42\0\x91" "\x20\x02\x1f\xd6"
         "\xf0\xff\xff\xf0" "\x11\x0e\x40\xf9" "\x10\x62\0\x91" "\x20\x02\x1f\xd6"
         /* of thread-local data: stp x2, x3, [sp, #-16]!; adrp x2; adrp x3; ldr x2, [x2, #0xfe0] */
         "\xe2\x0f\xbf\xa9" "\x82\x0b\0\xd0" "\x83\x0b\0\xd0" "\x42\xf0\x47\xf9");
    RELA(".rela.plt", slots);
    build_end(&image);
    CHECK_TEXT(stubs(), "2000+32 -; 2020+16 write; 2030+16 read; 2040+16 close; 2050+16 @1700; "
                        "2060+16 -; ");
}

static void aarch64_hardened(void)
{
    /* 24 bytes each: bti c in front; autia1716 (d503219f) before the branch */
    static const Elf64_Rela slots[] = {{0x5000, ELF64_R_INFO(2, R_AARCH64_JUMP_SLOT), 0},
                                       {0x5008, ELF64_R_INFO(1, R_AARCH64_JUMP_SLOT), 0}};
    start(EM_AARCH64);
    CODE(".plt", 0x2000, "\x5f\x24\x03\xd5" "\xf0\x7b\xbf\xa9" "\x10\0\0\xd0" "\x11\xfe\x47\xf9"
         "\x10\xe2\x3f\x91" "\x20\x02\x1f\xd6" "\x1f\x20\x03\xd5" "\x1f\x20\x03\xd5"
         "\x5f\x24\x03\xd5" "\x10\0\0\xf0" "\x11\x02\x40\xf9" "\x10\x02\0\x91" "\x20\x02\x1f\xd6"
         "\x1f\x20\x03\xd5"
         "\x5f\x24\x03\xd5" "\x10\0\0\xf0" "\x11\x06\x40\xf9" "\x10\x22\0\x91" "\x9f\x21\x03\xd5"
         "\x20\x02\x1f\xd6");
    RELA(".rela.plt", slots);
    build_end(&image);
    CHECK_TEXT(stubs(), "2000+32 -; 2020+24 write; 2038+24 read; ");
}

static void none(void)
{
    static const Elf64_Rela slots[] = {SLOT(0x4008, 1)};
    start(EM_X86_64);
    CODE(".text.plt", 0x2000, LAZY); /* no linkage table by its name */
    RELA(".rela.plt", slots);
    build_end(&image);
    CHECK_TEXT(stubs(), "");
    start(EM_X86_64);
    CODE(".plt", 0x2000, "\x90\x90\x90\x90\x90\x90\x90\x90\x90\x90\x90\x90\x90\x90\x90\x90"
                         "\xff\x25\xf2\x1f\0"); /* no stubs, and one that is cut off */
    RELA(".rela.plt", slots);
    build_end(&image);
    CHECK_TEXT(stubs(), "");
    start(EM_X86_64);
    CODE(".plt", 0x2000, "\xf3\x0f\x1e\xfa" "\x68\0\0"); /* a push that is cut off */
    RELA(".rela.plt", slots);
    build_end(&image);
    CHECK_TEXT(stubs(), "");
    start(EM_X86_64);
    build_section(&image, (struct build_row){.name = ".plt", .type = SHT_NOBITS,
                  .flags = SHF_EXECINSTR, .address = 0x2000, .len = 48}); /* of a debug file */
    build_end(&image);
    CHECK_TEXT(stubs(), "");
    start(EM_X86_64);
    CODE(".plt", 0x2000, LAZY);
    RELA(".rela.plt", slots);
    build_end(&image);
    memset(image.bytes + offsetof(Elf64_Ehdr, e_shoff), 0, 8); /* no sections */
    CHECK_TEXT(stubs(), "");
}

static void at_the_end(void)
{
    /* what follows a stub for more than the longest one has is no part of it */
    static const Elf64_Rela slots[] = {SLOT(0x4008, 1)};
    static unsigned char code[100] = "\xff\x25\x02\x20\0"; /* 0x2006 + 0x2002 */
    start(EM_X86_64);
    add_code(".plt", 0x2000, code, sizeof code);
    RELA(".rela.plt", slots);
    build_end(&image);
    CHECK_TEXT(stubs(), "2000+32 read; ");
}

static void spoiled(void)
{
    static const Elf64_Rela slots[] = {SLOT(0x4008, 1), SLOT(0x4010, 2)};
    static const unsigned char values[] = {0, 1, 0x7f, 0x80, 0xff};
    start(EM_X86_64);
    CODE(".plt", 0x2000, LAZY);
    RELA(".rela.plt", slots);
    build_end(&image);
    for (size_t at = 0; at < image.len; at++) {
        unsigned char was = image.bytes[at];
        for (size_t v = 0; v < sizeof values; v++) {
            struct elf e;
            struct plt plt;
            image.bytes[at] = values[v];
            if (elf_open_bytes(&e, image.bytes, image.len, NULL)) {
                if (plt_read(&plt, &e, NULL)) {
                    plt_release(&plt);
                }
                elf_release(&e);
            }
        }
        image.bytes[at] = was;
    }
    CHECK_TEXT(stubs(), "2000+16 -; 2010+16 read; 2020+16 write; ");
}

static void many_of_one_slot(void)
{
    /* 4,096 stubs of one slot, one of a slot without relocation, for which all are read, and 2,700
     * relocations of the first: the stubs get the first one's symbol. The others cost nothing (else
     * it would be 11 million steps). */
    static unsigned char code[4097 * 8];
    static Elf64_Rela slots[2700];
    for (size_t i = 0; i < 4097; i++) {
        int32_t distance = (i < 4096 ? 0x9000 : 0x9008) - (int32_t)(0x1000 + i * 8 + 6);
        memcpy(code + i * 8, "\xff\x25", 2);
        memcpy(code + i * 8 + 2, &distance, 4);
    }
    for (size_t i = 0; i < 2700; i++) {
        slots[i] = (Elf64_Rela)SLOT(0x9000, i == 0 ? 3 : 1);
    }
    struct elf e;
    struct plt plt;
    start(EM_X86_64);
    add_code(".plt", 0x1000, code, sizeof code);
    RELA(".rela.plt", slots);
    build_end(&image);
    CHECK(elf_open_bytes(&e, image.bytes, image.len, NULL) && plt_read(&plt, &e, NULL));
    CHECK_INT(plt.stubs.len, 4097);
    for (size_t i = 0; i < plt.stubs.len; i++) {
        CHECK_INT(plt.stubs.at[i].symbol, i < 4096 ? 3 : 0);
    }
    plt_release(&plt);
    elf_release(&e);
}

TESTS({"a lazy stub is named by the slot it jumps through", lazy},
      {"the order of relocations does not matter", any_order},
      {"stubs behind endbr64 are named in both of their tables", second_table},
      {"stubs of addresses that data needs too are found among all relocations", by_slot_of_data},
      {"mold's stubs are known", of_mold},
      {"a slot that a function decides upon leads to that function", resolved},
      {"AArch64 stubs are named by their slots", aarch64},
      {"AArch64 stubs with landing pads and signed pointers are as others", aarch64_hardened},
      {"what is no linkage table has no stubs", none},
      {"the last stub ends where it must", at_the_end},
      {"a file spoiled at any byte never crashes", spoiled},
      {"many stubs and relocations of one slot are no cost", many_of_one_slot})
