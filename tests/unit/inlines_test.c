/* src/symbol/inlines and dwarf_*: functions and lines from hand-made and from real DWARF. */
#include "symbol/inlines.h"

#include <fcntl.h>
#include <link.h>
#include <unistd.h>
#include <zlib.h>

#include "dwarf_image.h"
#include "elf/elf.h"

/* Time that stands still, or passes by a millisecond whenever somebody looks. */
struct watch {
    uint64_t now_ns, tick_ns;
    unsigned looks;
};

static uint64_t look(void *context)
{
    struct watch *watch = context;
    watch->looks++;
    return watch->now_ns += watch->tick_ns;
}

static struct symbol_files files;

static struct inlines *open_bytes(const void *ptr, size_t len)
{
    files = (struct symbol_files){0};
    files.has[FILE_MAIN] = elf_open_bytes(&files.elf[FILE_MAIN], ptr, len, NULL);
    return files.has[FILE_MAIN] ? inlines_open(&files, NULL) : NULL;
}

static void close_bytes(struct inlines *in)
{
    inlines_release(in);
    if (files.has[FILE_MAIN]) {
        elf_release(&files.elf[FILE_MAIN]);
    }
}

/* "name(linkage) file:line < …", innermost first; "" when nothing is known. */
static const char *at_until(struct inlines *in, uint64_t address, struct watch *watch,
                            uint64_t deadline_ns, size_t max)
{
    static char text[16384];
    struct source_line lines[PROFILE_INLINES_MAX];
    struct clock clock = {look, look, watch};
    size_t len = 0;
    size_t count = inlines_lookup(in, address, deadline_ns, &clock, lines, max);
    text[0] = '\0';
    for (size_t i = 0; i < count && len < sizeof text - 600; i++) {
        const struct source_line *l = &lines[i];
        len += (size_t)snprintf(text + len, 600, "%s%.*s", i > 0 ? " < " : "",
                                (int)l->name.len, l->name.len ? l->name.ptr : "");
        if (l->system_name.len > 0) {
            len += (size_t)snprintf(text + len, 600, "(%.*s)", (int)l->system_name.len,
                                    l->system_name.ptr);
        }
        len += (size_t)snprintf(text + len, 600, " %.*s:%u", (int)l->file.len,
                                l->file.len ? l->file.ptr : "", l->line);
    }
    return text;
}

static const char *at(struct inlines *in, uint64_t address)
{
    struct watch watch = {0};
    return at_until(in, address, &watch, 1, PROFILE_INLINES_MAX);
}

static void check_chains(struct inlines *in)
{
    CHECK_TEXT(at(in, 0x1000), "outer /src/a.c:10");
    CHECK_TEXT(at(in, 0x1010), "middle /inc/b.h:30 < outer /src/a.c:20");
    static const char leaf[] =
        "leaf(_Z4leafv) /inc/b.h:40 < middle /inc/b.h:7 < outer /src/a.c:20";
    CHECK_TEXT(at(in, 0x1020), leaf);
    CHECK_TEXT(at(in, 0x102f), leaf);
    CHECK_TEXT(at(in, 0x1030), "middle /inc/b.h:31 < outer /src/a.c:20");
    CHECK_TEXT(at(in, 0x1044),
               "leaf(_Z4leafv) /inc/b.h:31 < middle /src/a.c:8 < outer /src/a.c:20");
    CHECK_TEXT(at(in, 0x1048), "middle /inc/b.h:31 < outer /src/a.c:20");
    CHECK_TEXT(at(in, 0x1050), "outer /src/a.c:21");
    CHECK_TEXT(at(in, 0x1100), "plain /src/a.c:50");
    CHECK_TEXT(at(in, 0x180f), "outer /src/a.c:99"); /* the cold part */
    CHECK_TEXT(at(in, 0x1810), "");
    CHECK_TEXT(at(in, 0x1140), "");
    CHECK_TEXT(at(in, 0xfff), "");
    CHECK_TEXT(at(in, 0), "");
    CHECK_TEXT(at(in, UINT64_MAX), "");
}

static void chains_of(unsigned version)
{
    struct dwarf_image image;
    dwarf_image_init(&image);
    dwarf_image_fill(&image, version);
    dwarf_image_make(&image);
    struct inlines *in = open_bytes(image.file.ptr, image.file.len);
    CHECK(in != NULL);
    if (in != NULL) {
        check_chains(in);
        check_chains(in); /* what is remembered is the same */
        CHECK_INT(inlines_late(in), 0);
    }
    close_bytes(in);
    dwarf_image_release(&image);
}

static void version_4(void)
{
    chains_of(4);
}

static void version_5(void)
{
    chains_of(5);
}

/* ---- how sections may be stored ---- */

/* Packs a part as SHF_COMPRESSED has it; the flag is set in the file afterwards. */
static void pack(struct buf *part)
{
    uLongf len = compressBound(part->len);
    unsigned char *packed = malloc(len);
    CHECK(compress(packed, &len, (const unsigned char *)part->ptr, part->len) == Z_OK);
    Elf64_Chdr header = {.ch_type = ELFCOMPRESS_ZLIB, .ch_size = part->len, .ch_addralign = 1};
    buf_clear(part);
    buf_add(part, &header, sizeof header);
    buf_add(part, packed, len);
    free(packed);
}

static void packed_sections(void)
{
    struct dwarf_image image;
    dwarf_image_init(&image);
    dwarf_image_fill(&image, 5);
    for (int i = 0; i < PART_COUNT; i++) {
        if (image.part[i].len > 0) {
            pack(&image.part[i]);
        }
    }
    dwarf_image_make(&image);
    for (int i = 0; i < PART_COUNT; i++) {
        section_header(&image, i)->sh_flags = image.part[i].len > 0 ? SHF_COMPRESSED : 0;
    }
    struct inlines *in = open_bytes(image.file.ptr, image.file.len);
    CHECK(in != NULL);
    if (in != NULL) {
        check_chains(in);
    }
    close_bytes(in);
    dwarf_image_release(&image);
}

/* 80 MB of zeros: their entries are the ends of lists. */
static void a_bomb_is_not_unpacked(void)
{
    enum { BOMB_BYTES = 80 << 20 };
    struct dwarf_image image;
    dwarf_image_init(&image);
    dwarf_image_fill(&image, 4);
    struct buf *info = &image.part[PART_INFO], zeros;
    buf_init(&zeros, BOMB_BYTES);
    CHECK(buf_room(&zeros, BOMB_BYTES) != NULL);
    memset(zeros.ptr, 0, BOMB_BYTES);
    memcpy(zeros.ptr, info->ptr, info->len);
    zeros.len = BOMB_BYTES;
    pack(&zeros);
    buf_clear(info);
    buf_str(info, buf_slice(&zeros));
    buf_release(&zeros);
    for (int i = 0; i < 2; i++) {
        if (i == 1) { /* or it only says so */
            patch(info, offsetof(Elf64_Chdr, ch_size), UINT64_C(1) << 40, 8);
        }
        dwarf_image_make(&image);
        section_header(&image, PART_INFO)->sh_flags = SHF_COMPRESSED;
        struct inlines *in = open_bytes(image.file.ptr, image.file.len);
        CHECK(in != NULL);
        if (in != NULL) {
            CHECK_TEXT(at(in, 0x1000), "");
            CHECK(inlines_bytes(in) < 1 << 20);
        }
        close_bytes(in);
    }
    dwarf_image_release(&image);
}

static void without_dwarf(void)
{
    struct dwarf_image image;
    struct err err = {0};
    dwarf_image_init(&image);
    dwarf_image_make(&image);
    CHECK(open_bytes(image.file.ptr, image.file.len) == NULL);
    CHECK(inlines_open(&files, &err) == NULL && err.kind == ERR_UNSUPPORTED);
    CHECK_TEXT(err.text, "the file has no DWARF");
    close_bytes(NULL);
    dwarf_image_release(&image);
}

/* ---- the alternate file ---- */

static bool read_str(void *context, uint64_t address, void *out, size_t len, struct err *err)
{
    const struct buf *bytes = context;
    if (address > bytes->len || len > bytes->len - address) {
        return err_set(err, ERR_IO, 0, "beyond the end");
    }
    memcpy(out, bytes->ptr + address, len);
    return true;
}

static void shared_names(void)
{
    struct dwarf_image image, shared;
    struct err err = {0};
    dwarf_image_init(&image);
    dwarf_image_init(&shared);
    dwarf_image_fill_shared(&image, &shared);
    dwarf_image_make(&image);
    dwarf_image_make(&shared);
    struct memory_reader reader = {read_str, &shared.file};
    struct inlines *in = open_bytes(image.file.ptr, image.file.len);
    CHECK(in != NULL);
    if (in != NULL) {
        CHECK_TEXT(inlines_alternate_path(in, 0), "/usr/lib/debug/.dwz/x.debug");
        CHECK_TEXT(inlines_alternate_path(in, 1), "/usr/lib/debug/.build-id/de/adbeef.debug");
        CHECK_TEXT(inlines_alternate_path(in, 2), "");
        CHECK(!inlines_alternate(in, &reader, &err)); /* it has no build id at all */
        CHECK(strstr(err.text, "another build id") != NULL);
        CHECK_TEXT(at(in, 0x1010), " :0"); /* the function exists, its name is elsewhere */
    }
    close_bytes(in);
    dwarf_image_identify(&shared);
    char *id = memmem(shared.file.ptr, shared.file.len, "\xde\xad\xbe\xef", 4);
    id[3] = (char)0xee;
    in = open_bytes(image.file.ptr, image.file.len);
    CHECK(in != NULL && !inlines_alternate(in, &reader, &err));
    close_bytes(in);
    id[3] = (char)0xef;
    for (int relocatable = 0; relocatable < 2; relocatable++) {
        if (relocatable) {
            dwarf_image_unload(&shared);
        }
        in = open_bytes(image.file.ptr, image.file.len);
        CHECK(in != NULL);
        if (in != NULL) {
            CHECK(inlines_alternate(in, &reader, &err));
            CHECK_TEXT(at(in, 0x1010), "far_name(_Z3fari12) :0");
        }
        close_bytes(in);
    }
    dwarf_image_release(&image);
    dwarf_image_release(&shared);
}

/* ---- time and damage ---- */

static void deadlines(void)
{
    struct dwarf_image image;
    dwarf_image_init(&image);
    dwarf_image_fill(&image, 4);
    size_t one = image.part[PART_INFO].len;
    for (int i = 0; i < 3000; i++) { /* units with nothing in them */
        struct buf *info = &image.part[PART_INFO];
        put(info, 14, 4);
        put(info, 4, 2);
        put(info, 0, 4);
        put_bytes(info, 8, ABBREV_NAME, 'x', 0, 0, 0, 0, 0, -1);
    }
    CHECK(image.part[PART_INFO].len > one);
    dwarf_image_make(&image);
    struct inlines *in = open_bytes(image.file.ptr, image.file.len);
    CHECK(in != NULL);
    if (in != NULL) {
        struct watch late = {.now_ns = 100};
        CHECK_TEXT(at_until(in, 0x1000, &late, 50, 32), "");
        CHECK_INT(inlines_late(in), 1);
        /* two looks at the clock are not enough to list 3,000 units … */
        struct watch ticking = {.tick_ns = 1};
        CHECK_TEXT(at_until(in, 0x1000, &ticking, 2, 32), "");
        CHECK_INT(inlines_late(in), 2);
        CHECK_INT(ticking.looks, 2);
        /* … but the next look-ups go on where it ended */
        const char *found = "";
        unsigned tries = 0;
        for (; found[0] == '\0' && tries < 100; tries++) {
            ticking = (struct watch){.tick_ns = 1};
            found = at_until(in, 0x1000, &ticking, 2, 32);
        }
        CHECK_TEXT(found, "outer /src/a.c:10");
        CHECK(tries > 5 && tries < 100);
    }
    close_bytes(in);
    dwarf_image_release(&image);
}

static void a_short_answer_ends_with_the_function(void)
{
    struct dwarf_image image;
    struct watch watch = {0};
    dwarf_image_init(&image);
    dwarf_image_fill(&image, 5);
    dwarf_image_make(&image);
    struct inlines *in = open_bytes(image.file.ptr, image.file.len);
    CHECK(in != NULL);
    if (in != NULL) {
        CHECK_TEXT(at_until(in, 0x1020, &watch, 1, 2),
                   "leaf(_Z4leafv) /inc/b.h:40 < outer /src/a.c:20");
        CHECK_TEXT(at_until(in, 0x1020, &watch, 1, 1), "outer /src/a.c:20");
        CHECK_TEXT(at_until(in, 0x1020, &watch, 1, 0), "");
    }
    close_bytes(in);
    dwarf_image_release(&image);
}

/* Whatever a bit says, look-ups end, with an answer or none. The addresses are those that
 * differ. */
static void survive(struct str bytes)
{
    static const uint64_t addresses[] = {0x1000, 0x1018, 0x1024, 0x1110, 0x1808};
    struct inlines *in = open_bytes(bytes.ptr, bytes.len);
    for (size_t i = 0; in != NULL && i < sizeof addresses / sizeof addresses[0]; i++) {
        struct watch watch = {.tick_ns = 1};
        (void)at_until(in, addresses[i], &watch, 1000, PROFILE_INLINES_MAX);
        CHECK_INT(inlines_late(in), 0); /* a million steps are far more than this file needs */
    }
    close_bytes(in);
}

static void every_damage_is_survived(void)
{
    for (unsigned version = 4; version <= 5; version++) {
        struct dwarf_image image;
        dwarf_image_init(&image);
        dwarf_image_fill(&image, version);
        dwarf_image_make(&image);
        struct buf *file = &image.file;
        for (size_t i = 0; i < file->len; i++) {
            file->ptr[i] = (char)(file->ptr[i] ^ 1 << i % 8);
            survive(buf_slice(file));
            file->ptr[i] = (char)(file->ptr[i] ^ 1 << i % 8);
            char kept = file->ptr[i];
            file->ptr[i] = (char)0xff;
            survive(buf_slice(file));
            file->ptr[i] = kept;
        }
        for (size_t len = 0; len < file->len; len += 3) {
            survive(str_sub(buf_slice(file), 0, len));
        }
        dwarf_image_release(&image);
    }
}

/* An entry that is its own origin, children without end, a unit of 2^32 bytes. */
static void loops_end(void)
{
    struct dwarf_image image;
    dwarf_image_init(&image);
    dwarf_image_fill(&image, 4);
    struct buf *info = &image.part[PART_INFO], *abbrev = &image.part[PART_ABBREV];
    buf_clear(abbrev);
    put_abbreviation(abbrev, 1, DW_TAG_compile_unit, true, DW_AT_low_pc, DW_FORM_addr,
                     DW_AT_high_pc, DW_FORM_data4, 0);
    put_abbreviation(abbrev, 2, DW_TAG_subprogram, true, DW_AT_abstract_origin, DW_FORM_ref4,
                     DW_AT_low_pc, DW_FORM_addr, DW_AT_high_pc, DW_FORM_data4, DW_AT_sibling,
                     DW_FORM_ref4, 0);
    put_abbreviation(abbrev, 3, DW_TAG_inlined_subroutine, true, DW_AT_abstract_origin,
                     DW_FORM_ref1, DW_AT_low_pc, DW_FORM_addr, DW_AT_high_pc, DW_FORM_data4, 0);
    buf_byte(abbrev, 0);
    buf_clear(info);
    put(info, 0, 4);
    put(info, 4, 2);
    put(info, 0, 4);
    put_bytes(info, 8, 1, -1);
    put(info, 0x1000, 8);
    put(info, 0x100, 4);
    size_t self = info->len;
    buf_byte(info, 2);
    put(info, self, 4);
    put(info, 0x1000, 8);
    put(info, 0x100, 4);
    put(info, self, 4); /* the sibling is itself */
    for (int i = 0; i < 1000; i++) {
        put_bytes(info, 3, (int)self, -1);
        put(info, 0x1000, 8);
        put(info, 0x100, 4);
    }
    patch(info, 0, info->len - 4, 4);
    dwarf_image_make(&image);
    struct inlines *in = open_bytes(image.file.ptr, image.file.len);
    CHECK(in != NULL);
    if (in != NULL) {
        CHECK_TEXT(at(in, 0x1000), " :0"); /* inlined functions without a name are left out */
    }
    close_bytes(in);
    dwarf_image_release(&image);
}

/* ---- this program's own DWARF ---- */

static volatile int sink_of_calls;
static void *spot;

__attribute__((noinline)) static void mark_spot(void)
{
    spot = __builtin_return_address(0);
    sink_of_calls++;
}

enum { LEAF_LINE = __LINE__ + 3, MIDDLE_LINE = __LINE__ + 8, OUTER_LINE = __LINE__ + 13 };
static inline __attribute__((always_inline)) void leaf_function(void)
{
    mark_spot();
    sink_of_calls++;
}
static inline __attribute__((always_inline)) void middle_function(void)
{
    leaf_function();
    sink_of_calls++;
}
__attribute__((noinline)) static void outer_function(void)
{
    middle_function();
    sink_of_calls++;
}

static bool read_fd(void *context, uint64_t address, void *out, size_t len, struct err *err)
{
    return pread(*(int *)context, out, len, (off_t)address) == (ssize_t)len ||
           err_set(err, ERR_IO, 0, "short read");
}

static int own_base(struct dl_phdr_info *info, size_t size, void *out)
{
    (void)size;
    *(uint64_t *)out = info->dlpi_addr; /* the first is the program itself */
    return 1;
}

static void a_compilers_own(void)
{
    int fd = open("/proc/self/exe", O_RDONLY);
    struct memory_reader file = {read_fd, &fd};
    uint64_t base = 0;
    files = (struct symbol_files){0};
    outer_function();
    dl_iterate_phdr(own_base, &base);
    uint64_t address = (uint64_t)(uintptr_t)spot - base - 1; /* within the call */
    files.has[FILE_MAIN] = elf_open(&files.elf[FILE_MAIN], &file, NULL);
    struct inlines *in = inlines_open(&files, NULL);
    CHECK(in != NULL);
    if (in != NULL) {
        char expected[512];
        struct source_line lines[PROFILE_INLINES_MAX];
        CHECK_INT(inlines_lookup(in, address, 0, NULL, lines, PROFILE_INLINES_MAX), 3);
        int length = (int)lines[0].file.len;
        CHECK(str_ends(lines[0].file, STR("tests/unit/inlines_test.c")));
        snprintf(expected, sizeof expected,
                 "leaf_function %.*s:%d < middle_function %.*s:%d < outer_function %.*s:%d", length,
                 lines[0].file.ptr, LEAF_LINE, length, lines[0].file.ptr, MIDDLE_LINE, length,
                 lines[0].file.ptr, OUTER_LINE);
        CHECK_TEXT(at(in, address), expected);
        CHECK(inlines_bytes(in) < INLINES_MAX_BYTES);
    }
    close_bytes(in);
    close(fd);
}

TESTS({"DWARF 4 gives chains, files and lines", version_4},
      {"DWARF 5 gives chains, files and lines", version_5},
      {"packed sections are unpacked", packed_sections},
      {"a section that unpacks to too much is as if it were not there", a_bomb_is_not_unpacked},
      {"a file without DWARF is refused by name", without_dwarf},
      {"names that dwz moved are found in the alternate file, if it is the right one",
       shared_names},
      {"a deadline ends a look-up, and the next goes on", deadlines},
      {"a short answer ends with the function that exists", a_short_answer_ends_with_the_function},
      {"every cut and every flipped bit is survived in bounded time", every_damage_is_survived},
      {"loops of references end", loops_end},
      {"this program's own chain is as its compiler inlined it", a_compilers_own})
