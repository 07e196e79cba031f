/* src/symbol/inlines and dwarf: functions and lines from hand-made and from real DWARF, read in a real sandbox; and
 * what a hostile one may send. */
#include "symbol/inlines.h"

#include <fcntl.h>
#include <link.h>
#include <sys/mman.h>
#include <unistd.h>
#include <zlib.h>

#include "base/time.h"
#include "dwarf_image.h"
#include "elf/elf.h"
#include "os/clock.h"
#include "os/proc.h"
#include "os/sandbox.h"

enum { ADDRESSES_MAX = 32, BUDGET_S = 20 };

/* What was asked of one file, and the answers: "name(linkage) file:line < …", innermost first; "" when nothing is
 * known. */
static struct {
    struct symbol_files files;
    size_t count;
    uint64_t addresses[ADDRESSES_MAX];
    char text[ADDRESSES_MAX][4096];
    unsigned late;
    enum inlines_end end;
    struct err err;
} asked;

static const uint64_t usual[] = {0,      0xfff,  0x1000, 0x1010, 0x1020, 0x102f, 0x1030, 0x1044, 0x1048,
                                 0x1050, 0x1100, 0x1140, 0x1808, 0x180f, 0x1810, UINT64_MAX};

static void write_text(const struct source_line *lines, size_t count, char *text)
{
    size_t len = 0;
    text[0] = '\0';
    for (size_t i = 0; i < count && len < sizeof asked.text[0] - 600; i++) {
        const struct source_line *l = &lines[i];
        len += (size_t)snprintf(text + len, 600, "%s%.*s", i > 0 ? " < " : "", (int)l->name.len, l->name.ptr);
        if (l->system_name.len > 0) {
            len += (size_t)snprintf(text + len, 600, "(%.*s)", (int)l->system_name.len, l->system_name.ptr);
        }
        len += (size_t)snprintf(text + len, 600, " %.*s:%u", (int)l->file.len, l->file.ptr, l->line);
    }
}

static bool ask_open(const struct sandbox *sandbox, const struct debug_source *debug, uint64_t budget_ns)
{
    struct clock clock = clock_system();
    const struct inlines_request request = {&asked.files, debug, 1, sandbox, &clock, asked.addresses, asked.count,
                                            clock_mono_ns() + budget_ns, budget_ns};
    struct inlines *in = inlines_start(&request, &asked.err);
    asked.late = 0;
    for (size_t i = 0; in != NULL && i < asked.count; i++) {
        bool late;
        struct source_line lines[PROFILE_INLINES_MAX];
        size_t count = inlines_lookup(in, asked.addresses[i], lines, &late);
        asked.late += late;
        write_text(lines, count, asked.text[i]);
    }
    if (in != NULL) {
        asked.end = inlines_end(in, &asked.err);
    }
    return in != NULL;
}

static void use(const uint64_t *addresses, size_t count)
{
    asked.count = count;
    memcpy(asked.addresses, addresses, count * sizeof *addresses);
}

/* False: the file has no DWARF. */
static bool ask_with(const void *ptr, size_t len, const struct debug_source *debug)
{
    struct sandbox sandbox = sandbox_system(128 << 20);
    asked.files = (struct symbol_files){0};
    asked.err = (struct err){0};
    use(usual, sizeof usual / sizeof usual[0]);
    bool good = elf_open_bytes(&asked.files.elf[FILE_MAIN], ptr, len, NULL);
    if (good) {
        asked.files.has[FILE_MAIN] = true;
        good = ask_open(&sandbox, debug, BUDGET_S * NS_PER_S);
        elf_release(&asked.files.elf[FILE_MAIN]);
    }
    return good;
}

static bool ask(const void *ptr, size_t len)
{
    return ask_with(ptr, len, NULL);
}

static const char *at(uint64_t address)
{
    size_t i = 0;
    while (i < asked.count && asked.addresses[i] != address) {
        i++;
    }
    return i < asked.count ? asked.text[i] : "not asked";
}

static void check_chains(void)
{
    CHECK_TEXT(at(0x1000), "outer /src/a.c:10");
    CHECK_TEXT(at(0x1010), "middle /inc/b.h:30 < outer /src/a.c:20");
    static const char leaf[] =
        "leaf(_Z4leafv) /inc/b.h:40 < middle /inc/b.h:7 < outer /src/a.c:20";
    CHECK_TEXT(at(0x1020), leaf);
    CHECK_TEXT(at(0x102f), leaf);
    CHECK_TEXT(at(0x1030), "middle /inc/b.h:31 < outer /src/a.c:20");
    CHECK_TEXT(at(0x1044),
               "leaf(_Z4leafv) /inc/b.h:31 < middle /src/a.c:8 < outer /src/a.c:20");
    CHECK_TEXT(at(0x1048), "middle /inc/b.h:31 < outer /src/a.c:20");
    CHECK_TEXT(at(0x1050), "outer /src/a.c:21");
    CHECK_TEXT(at(0x1100), "plain /src/a.c:50");
    CHECK_TEXT(at(0x180f), "outer /src/a.c:99"); /* the cold part */
    CHECK_TEXT(at(0x1810), "");
    CHECK_TEXT(at(0x1140), "");
    CHECK_TEXT(at(0xfff), "");
    CHECK_TEXT(at(0), "");
    CHECK_TEXT(at(UINT64_MAX), "");
}

static void chains_of(unsigned version)
{
    struct dwarf_image image;
    dwarf_image_init(&image);
    dwarf_image_fill(&image, version);
    dwarf_image_make(&image);
    CHECK(ask(image.file.ptr, image.file.len));
    CHECK_INT(asked.end, INLINES_DONE);
    CHECK_INT(asked.late, 0);
    check_chains();
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
    CHECK(ask(image.file.ptr, image.file.len));
    CHECK_INT(asked.end, INLINES_DONE);
    CHECK_INT(asked.late, 0);
    check_chains();
    dwarf_image_release(&image);
}

/* Zeros: their entries are the ends of lists. */
static void a_bomb_is_not_unpacked(void)
{
    enum { BOMB_BYTES = (128 << 20) + (16 << 20) };
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
        CHECK(ask(image.file.ptr, image.file.len));
        CHECK_TEXT(at(0x1000), "");
    }
    dwarf_image_release(&image);
}

static void without_dwarf(void)
{
    struct dwarf_image image;
    dwarf_image_init(&image);
    dwarf_image_make(&image);
    CHECK(!ask(image.file.ptr, image.file.len));
    CHECK_INT(asked.err.kind, ERR_UNSUPPORTED);
    CHECK_TEXT(asked.err.text, "the file has no DWARF");
    dwarf_image_release(&image);
}

/* ---- the alternate file ---- */

static char opened[2][128];
static unsigned opens;

/* The context is a buffer with the contents of whatever is asked for. */
static bool open_shared(void *context, uint64_t image, const char *path, struct memory_reader *out, void **handle)
{
    const struct buf *bytes = context;
    int fd = memfd_create("shared", MFD_CLOEXEC);
    CHECK(image == 1 && write(fd, bytes->ptr, bytes->len) == (ssize_t)bytes->len);
    snprintf(opened[opens++ % 2], sizeof opened[0], "%s", path);
    *out = proc_file_reader(fd);
    *handle = (void *)(intptr_t)fd;
    return true;
}

static void close_shared(void *context, void *handle)
{
    (void)context;
    close((int)(intptr_t)handle);
}

static struct str no_path(void *context, uint64_t image)
{
    (void)context;
    return image == 1 ? STR("/bin/x") : STR("");
}

static void shared_names(void)
{
    struct dwarf_image image, shared;
    dwarf_image_init(&image);
    dwarf_image_init(&shared);
    dwarf_image_fill_shared(&image, &shared);
    dwarf_image_make(&image);
    dwarf_image_make(&shared);
    const struct debug_source debug = {
        .open = open_shared, .close = close_shared, .path = no_path, .context = &shared.file};
    CHECK(ask_with(image.file.ptr, image.file.len, &debug)); /* it has no build id at all */
    CHECK_TEXT(opened[0], "/usr/lib/debug/.build-id/de/adbeef.debug");
    CHECK_TEXT(opened[1], "/usr/lib/debug/.dwz/x.debug");
    CHECK_INT(opens, 2);
    CHECK_TEXT(at(0x1010), " :0"); /* the function exists, its name is elsewhere */
    dwarf_image_identify(&shared);
    char *id = memmem(shared.file.ptr, shared.file.len, "\xde\xad\xbe\xef", 4);
    id[3] = (char)0xee;
    CHECK(ask_with(image.file.ptr, image.file.len, &debug));
    CHECK_TEXT(at(0x1010), " :0");
    id[3] = (char)0xef;
    for (int relocatable = 0; relocatable < 2; relocatable++) {
        if (relocatable) {
            dwarf_image_unload(&shared);
        }
        CHECK(ask_with(image.file.ptr, image.file.len, &debug));
        CHECK_TEXT(at(0x1010), "far_name(_Z3fari12) :0");
        CHECK_INT(asked.end, INLINES_DONE);
    }
    buf_clear(&shared.file); /* no file with debug sections: the child does not get it */
    buf_text(&shared.file, "root:x:0:0:root:/root:/bin/sh");
    CHECK(ask_with(image.file.ptr, image.file.len, &debug));
    CHECK_TEXT(at(0x1010), " :0");
    dwarf_image_release(&image);
    dwarf_image_release(&shared);
}

/* ---- damage ---- */

/* Whatever a bit says, there is an end, and texts that are ones. A crash of libdw is one end. */
static void survive(struct str bytes)
{
    if (ask(bytes.ptr, bytes.len)) {
        CHECK(asked.end == INLINES_DONE || asked.end == INLINES_FAILED);
    }
}

static void damage_is_survived(void)
{
    enum { STEP = 61 };
    for (unsigned version = 4; version <= 5; version++) {
        struct dwarf_image image;
        dwarf_image_init(&image);
        dwarf_image_fill(&image, version);
        dwarf_image_make(&image);
        struct buf *file = &image.file;
        for (size_t i = version; i < file->len; i += STEP) {
            char kept = file->ptr[i];
            file->ptr[i] = (char)(i % 2 ? 0xff : kept ^ 1 << i % 8);
            survive(buf_slice(file));
            file->ptr[i] = kept;
            survive(str_sub(buf_slice(file), 0, i));
        }
        dwarf_image_release(&image);
    }
}

/* ---- a hostile child ---- */

struct script {
    struct str bytes;
    size_t at, gives;
};

static struct script script;

static void *play(void *context, void (*run)(void *argument, const struct sandbox_port *port), void *argument,
                  struct err *err)
{
    (void)run;
    (void)argument;
    (void)err;
    return context;
}

/* A few bytes at a time. */
static ptrdiff_t play_read(void *child, void *to, size_t max, uint64_t deadline_ns)
{
    struct script *s = child;
    size_t len = s->bytes.len - s->at < 7 ? s->bytes.len - s->at : 7;
    (void)deadline_ns;
    CHECK(max >= len);
    memcpy(to, s->bytes.ptr + s->at, len);
    s->at += len;
    return (ptrdiff_t)len;
}

static bool play_give(void *child, const struct memory_reader *file)
{
    struct script *s = child;
    s->gives += file == NULL;
    return true;
}

static enum sandbox_end play_end(void *child)
{
    (void)child;
    return SANDBOX_DONE;
}

static enum inlines_end say(const char *ptr, size_t len)
{
    struct dwarf_image image;
    const struct sandbox sandbox = {play, play_read, play_give, play_end, &script};
    dwarf_image_init(&image);
    dwarf_image_fill(&image, 4);
    dwarf_image_make(&image);
    script = (struct script){.bytes = {ptr, len}};
    use(usual, 2);
    asked.files = (struct symbol_files){.has[FILE_MAIN] = true};
    CHECK(elf_open_bytes(&asked.files.elf[FILE_MAIN], image.file.ptr, image.file.len, NULL));
    CHECK(ask_open(&sandbox, NULL, NS_PER_S));
    elf_release(&asked.files.elf[FILE_MAIN]);
    dwarf_image_release(&image);
    return asked.end;
}

#define SAY(text) say(text, sizeof text - 1)
#define FIRST "\6\0\0\0A\0\0\0\0\0"
#define SECOND "\x12\0\0\0A\1\0\0\0\1\5\0\0\0\1\0\0\0\1\0ab"

static void what_a_child_may_send(void)
{
    CHECK_INT(SAY(FIRST SECOND), INLINES_DONE);
    CHECK_TEXT(asked.text[1], "a b:5");
    CHECK_INT(SAY("\3\0\0\0O/x" FIRST SECOND), INLINES_DONE);
    CHECK_INT(script.gives, 1);
    CHECK_INT(SAY(FIRST), INLINES_FAILED);
    CHECK_TEXT(asked.err.text, "the reader of its debug information ended early");
    static const struct {
        const char *bytes;
        size_t len;
    } wrong[] = {
#define WRONG(text) {text, sizeof text - 1}
        WRONG(SECOND),                                             /* out of order */
        WRONG(FIRST FIRST),
        WRONG("\xff\xff\xff\xff"),                                 /* too long */
        WRONG("\0\0\0\0"),
        WRONG("\1\0\0\0X"),                                        /* no such message */
        WRONG("\6\0\0\0A\0\0\0\0\xff"),                           /* more lines than fit */
        WRONG("\6\0\0\0A\0\0\0\0\1"),                              /* lines that are not there */
        WRONG("\7\0\0\0A\0\0\0\0\0x"),                             /* more than was said */
        WRONG("\x12\0\0\0A\0\0\0\0\1\5\0\0\0\1\0\0\0\1\0a\0"), /* a text with a NUL */
        WRONG("\x12\0\0\0A\0\0\0\0\1\5\0\0\0\xff\xff\0\0\1\0ab"),
        WRONG("\2\0\0\0Ox"), /* not absolute */
        WRONG("\1\0\0\0O"),
        WRONG("\3\0\0\0O/\0"),
    };
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        CHECK_INT(say(wrong[i].bytes, wrong[i].len), INLINES_FAILED);
        CHECK_TEXT(asked.err.text, "the reader of its debug information sent a malformed answer");
        CHECK_TEXT(asked.text[1], "");
        CHECK_INT(asked.late, 2 - (wrong[i].bytes[4] == 'A' && i == 1));
    }
}

static void deadlines(void)
{
    struct sandbox sandbox = sandbox_system(128 << 20);
    struct dwarf_image image;
    dwarf_image_init(&image);
    dwarf_image_fill(&image, 4);
    dwarf_image_make(&image);
    asked.files = (struct symbol_files){.has[FILE_MAIN] = true};
    CHECK(elf_open_bytes(&asked.files.elf[FILE_MAIN], image.file.ptr, image.file.len, NULL));
    use(usual, 3);
    CHECK(ask_open(&sandbox, NULL, 0)); /* a budget without time */
    CHECK_INT(asked.late, 3);
    CHECK_INT(asked.end, INLINES_FAILED);
    CHECK_TEXT(asked.err.text, "the reader of its debug information did not answer in time");
    elf_release(&asked.files.elf[FILE_MAIN]);
    dwarf_image_release(&image);
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
    (void)ask(image.file.ptr, image.file.len); /* libdw goes round until its stack ends, or not */
    CHECK(asked.end == INLINES_DONE || asked.end == INLINES_FAILED);
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

static int own_base(struct dl_phdr_info *info, size_t size, void *out)
{
    (void)size;
    *(uint64_t *)out = info->dlpi_addr; /* the first is the program itself */
    return 1;
}

static void a_compilers_own(void)
{
    int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
    struct memory_reader file = proc_file_reader(fd);
    struct sandbox sandbox = sandbox_system(128 << 20);
    uint64_t base = 0;
    asked.files = (struct symbol_files){0};
    outer_function();
    dl_iterate_phdr(own_base, &base);
    use(&(uint64_t){(uint64_t)(uintptr_t)spot - base - 1}, 1); /* within the call */
    asked.files.has[FILE_MAIN] = elf_open(&asked.files.elf[FILE_MAIN], &file, NULL);
    CHECK(ask_open(&sandbox, NULL, BUDGET_S * NS_PER_S));
    char expected[4096], folder[512] = "";
    sscanf(asked.text[0], "leaf_function %511[^:]", folder); /* the paths are absolute ones */
    CHECK(folder[0] == '/' && str_ends(str_of(folder), str_of(__FILE__)));
    snprintf(expected, sizeof expected, "leaf_function %s:%d < middle_function %s:%d < outer_function %s:%d", folder,
             LEAF_LINE, folder, MIDDLE_LINE, folder, OUTER_LINE);
    CHECK_TEXT(asked.text[0], expected);
    elf_release(&asked.files.elf[FILE_MAIN]);
    close(fd);
}

TESTS({"DWARF 4 gives chains, files and lines", version_4},
      {"DWARF 5 gives chains, files and lines", version_5},
      {"packed sections are unpacked", packed_sections},
      {"a section that unpacks to too much is as if it were not there", a_bomb_is_not_unpacked},
      {"a file without DWARF is refused by name", without_dwarf},
      {"names that dwz moved are found in the alternate file, if it is the right one",
       shared_names},
      {"a child that does not answer in time costs its file", deadlines},
      {"what a child sends is checked", what_a_child_may_send},
      {"cuts and flipped bits are survived", damage_is_survived},
      {"loops of references end", loops_end},
      {"this program's own chain is as its compiler inlined it", a_compilers_own})
