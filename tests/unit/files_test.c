/* The files beside an image, and the symbols and names they add to it. */
#include "elf_build.h"
#include "symbol/private.h"
#include "symbol/symbols.h"
#include "test.h"

#include <zlib.h>

#define COUNT(list) (sizeof(list) / sizeof(list)[0])

/* ---- files in memory ---- */

struct memory_file {
    const unsigned char *ptr;
    size_t len;
};

static bool read_memory(void *context, uint64_t offset, void *out, size_t len, struct err *err)
{
    const struct memory_file *file = context;
    if (offset > file->len || len > file->len - offset) {
        return err_set(err, ERR_IO, 0, "end of the file");
    }
    memcpy(out, file->ptr + offset, len);
    return true;
}

/* A root with some files; every path that is asked for is written down. */
static struct disk {
    const char *mapped; /* where the image is */
    struct {
        const char *path;
        struct memory_file file;
    } files[4];
    char asked[1000];
    int opens, closes;
} disk;

static bool disk_open(void *context, uint64_t image, const char *path, struct memory_reader *out,
                      void **handle)
{
    struct disk *d = context;
    CHECK_INT(image, 77);
    size_t len = strlen(d->asked);
    snprintf(d->asked + len, sizeof d->asked - len, "%s ", path);
    for (size_t i = 0; i < COUNT(d->files); i++) {
        if (d->files[i].path != NULL && strcmp(d->files[i].path, path) == 0) {
            *out = (struct memory_reader){read_memory, &d->files[i].file};
            *handle = &d->files[i];
            d->opens++;
            return true;
        }
    }
    return false;
}

static void disk_close(void *context, void *handle)
{
    struct disk *d = context;
    CHECK(handle != NULL);
    d->closes++;
}

static struct str disk_path(void *context, uint64_t image)
{
    (void)image;
    return str_of(((struct disk *)context)->mapped);
}

static const struct debug_source source = {
    .open = disk_open, .close = disk_close, .path = disk_path, .context = &disk};

/* ---- images ---- */

static struct elf_build image, debug, other;

/* The stripped image: `exported` is in .dynsym; the id, when not 0, is its build id. */
static void make_image(unsigned char id)
{
    static const struct build_symbol exported = {"exported", 0x2000, 0x10, STT_FUNC, 1};
    build_start(&image, EM_X86_64);
    build_text(&image);
    build_symbols(&image, SHT_DYNSYM, &exported, 1);
    if (id != 0) {
        build_id(&image, id);
    }
}

/* Ends the image with a .gnu_debuglink: the name, zeros up to a multiple of 4, the CRC. */
static void end_image(const char *link, uint32_t crc)
{
    unsigned char section[300] = {0};
    size_t len = (strlen(link) + 4) / 4 * 4;
    memcpy(section, link, strlen(link));
    memcpy(section + len, &crc, 4);
    if (link[0] != '\0') {
        build_section(&image, (struct build_row){".gnu_debuglink", SHT_PROGBITS, 0, 0, section,
                      len + 4, 0});
    }
    build_end(&image);
}

/* A debug file: code without contents, and a symbol the image lacks. */
static void make_debug(struct elf_build *b, unsigned char id, unsigned machine)
{
    static const struct build_symbol symbols[] = {
        {"exported", 0x2000, 0x10, STT_FUNC, 1},
        {"hidden", 0x3000, 0x10, STT_FUNC, 1},
    };
    build_start(b, machine);
    build_text(b);
    build_symbols(b, SHT_SYMTAB, symbols, 2);
    if (id != 0) {
        build_id(b, id);
    }
    build_end(b);
}

static uint32_t crc_of(const struct elf_build *b)
{
    return (uint32_t)crc32(0, b->bytes, (unsigned)b->len);
}

static void put_file(unsigned index, const char *path, const struct elf_build *b)
{
    disk.files[index].path = path;
    disk.files[index].file = (struct memory_file){b->bytes, b->len};
}

static void new_disk(const char *mapped)
{
    disk = (struct disk){.mapped = mapped};
}

/* ---- what is asked of them ---- */

struct used {
    struct memory_file main;
    struct memory_reader reader;
    struct symbol_files files;
    struct symbols symbols;
};

static void open_all(struct used *u)
{
    u->main = (struct memory_file){image.bytes, image.len};
    u->reader = (struct memory_reader){read_memory, &u->main};
    CHECK(symbol_files_open(&u->files, &u->reader, 77, &source, NULL));
}

static void load_all(struct used *u)
{
    open_all(u);
    symbols_init(&u->symbols, 1 << 20);
    CHECK(symbols_load_files(&u->symbols, &u->files, NULL));
}

static void close_all(struct used *u)
{
    symbol_files_release(&u->files);
    CHECK_INT(disk.opens, disk.closes);
}

static void drop_all(struct used *u)
{
    symbols_release(&u->symbols);
    close_all(u);
}

/* "name+offset" of an address, "(none)" without a symbol, "(unread)" when its name is not there. */
static const char *at(struct used *u, uint64_t address)
{
    static char text[200];
    struct symbol_hit hit;
    struct buf name;
    buf_init(&name, 100);
    if (!symbols_find(&u->symbols, address, &hit)) {
        snprintf(text, sizeof text, "(none)");
    } else if (!symbols_name(&u->symbols, &u->files, &hit, &name)) {
        snprintf(text, sizeof text, "(unread)");
    } else {
        snprintf(text, sizeof text, "%s+%llx", buf_cstr(&name),
                 (unsigned long long)(address - hit.start));
    }
    buf_release(&name);
    return text;
}

/* ---- debug files ---- */

static void by_build_id(void)
{
    struct used u;
    make_image(0xab);
    end_image("", 0);
    make_debug(&debug, 0xab, EM_X86_64);
    new_disk("/usr/bin/app");
    put_file(0, "/usr/lib/debug/.build-id/ab/ababab.debug", &debug);
    load_all(&u);
    CHECK(u.files.has[FILE_DEBUG] && u.files.problem[0] == '\0');
    CHECK_TEXT(at(&u, 0x3004), "hidden+4");
    CHECK_TEXT(at(&u, 0x2004), "exported+4");
    CHECK_INT(u.symbols.table.len, 2); /* .dynsym adds nothing */
    drop_all(&u);
    CHECK_TEXT(disk.asked, "/usr/lib/debug/.build-id/ab/ababab.debug ");
}


#define BESIDE "/opt/app/bin/app.debug"
#define IN_FOLDER "/opt/app/bin/.debug/app.debug"
#define CENTRAL "/usr/lib/debug/opt/app/bin/app.debug"

static void by_link(void)
{
    static const struct {
        const char *path, *asked;
    } rows[] = {{BESIDE, BESIDE " "},
                {IN_FOLDER, BESIDE " " IN_FOLDER " "},
                {CENTRAL, BESIDE " " IN_FOLDER " " CENTRAL " "}};
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct used u;
        make_debug(&debug, 0, EM_X86_64);
        make_image(0);
        end_image("app.debug", crc_of(&debug));
        new_disk("/opt/app/bin/app");
        put_file(0, rows[i].path, &debug);
        load_all(&u);
        CHECK_TEXT(at(&u, 0x3004), "hidden+4");
        drop_all(&u);
        CHECK_TEXT(disk.asked, rows[i].asked);
    }
}

static void no_links(void)
{
    static const char *const links[] = {"../../etc/app.debug", "..", "app"};
    for (size_t i = 0; i < COUNT(links); i++) {
        struct used u;
        make_image(0);
        end_image(links[i], 0);
        new_disk("/bin/app");
        open_all(&u);
        close_all(&u);
        /* a name may be the image's own, elsewhere; one with a slash could lead anywhere */
        CHECK_TEXT(disk.asked, i == 2 ? "/bin/.debug/app /usr/lib/debug/bin/app " : "");
    }
    struct used u;
    make_image(0);
    end_image("app.debug", 0);
    for (int i = 0; i < 2; i++) {
        new_disk(i == 0 ? "[vdso]" : "relative/app"); /* nobody knows in which folder */
        open_all(&u);
        close_all(&u);
        CHECK_TEXT(disk.asked, "");
    }
}

/* Opens the image with `debug` where its link says, and gives what `problem` says. */
static const char *problem_with(uint32_t crc)
{
    static char text[ERR_TEXT_MAX];
    struct used u;
    end_image("app.debug", crc);
    new_disk("/opt/app/bin/app");
    put_file(0, BESIDE, &debug);
    open_all(&u);
    CHECK(!u.files.has[FILE_DEBUG] && u.files.has[FILE_MAIN]);
    snprintf(text, sizeof text, "%s", u.files.problem);
    close_all(&u);
    CHECK_INT(disk.opens, 1);
    return text;
}

static void refused(void)
{
    make_image(0xab);
    make_debug(&debug, 0xac, EM_X86_64);
    CHECK_TEXT(problem_with(crc_of(&debug)), "debug file " BESIDE " has another build id");
    make_image(0);
    make_debug(&debug, 0, EM_X86_64);
    CHECK_TEXT(problem_with(crc_of(&debug) ^ 1), "debug file " BESIDE " has another checksum");
    make_image(0);
    make_debug(&debug, 0, EM_AARCH64);
    CHECK_TEXT(problem_with(crc_of(&debug)), "debug file " BESIDE " is for other addresses");
    make_image(0);
    make_debug(&debug, 0, EM_X86_64);
    debug.bytes[sizeof(Elf64_Ehdr) + offsetof(Elf64_Phdr, p_vaddr)] = 8;
    CHECK_TEXT(problem_with(crc_of(&debug)), "debug file " BESIDE " is for other addresses");
    make_image(0);
    make_debug(&debug, 0, EM_X86_64);
    debug.bytes[0] = 'X';
    CHECK_TEXT(problem_with(crc_of(&debug)), "debug file " BESIDE ": not an ELF file");
    make_image(0);
    build_start(&debug, EM_X86_64);
    build_end(&debug);
    CHECK_TEXT(problem_with(crc_of(&debug)), ""); /* not stale, but of no use */
}

static void next_place(void)
{
    struct used u;
    make_image(0xab);
    make_debug(&debug, 0xab, EM_X86_64);
    make_debug(&other, 0xac, EM_X86_64);
    end_image("app.debug", 0);
    new_disk("/opt/app/bin/app");
    put_file(0, "/usr/lib/debug/.build-id/ab/ababab.debug", &other);
    put_file(1, BESIDE, &debug);
    open_all(&u);
    CHECK(u.files.has[FILE_DEBUG]); /* equal build ids: the checksum is not needed */
    CHECK_TEXT(u.files.problem, "");
    close_all(&u);
    CHECK_INT(disk.opens, 2);
    put_file(1, BESIDE, &other);
    open_all(&u);
    CHECK_TEXT(u.files.problem, /* of the first */
               "debug file /usr/lib/debug/.build-id/ab/ababab.debug has another build id");
    close_all(&u);
}

static void one_build_id(void)
{
    /* the link's checksum decides when only one of the two files has an id; without a link nothing
     * does */
    struct used u;
    make_image(0xab);
    make_debug(&debug, 0, EM_X86_64);
    end_image("app.debug", crc_of(&debug));
    new_disk("/opt/app/bin/app");
    put_file(0, "/usr/lib/debug/.build-id/ab/ababab.debug", &debug);
    open_all(&u);
    CHECK_TEXT(u.files.problem,
               "debug file /usr/lib/debug/.build-id/ab/ababab.debug has no build id");
    close_all(&u);
    put_file(1, BESIDE, &debug);
    open_all(&u);
    CHECK(u.files.has[FILE_DEBUG]);
    close_all(&u);
}

static void complete(void)
{
    static const struct build_symbol own = {"own", 0x3000, 0x10, STT_FUNC, 1};
    struct used u;
    make_image(0xab);
    build_symbols(&image, SHT_SYMTAB, &own, 1);
    build_section(&image, (struct build_row){.name = ".debug_info", .type = SHT_PROGBITS});
    end_image("app.debug", 0);
    new_disk("/opt/app/bin/app");
    load_all(&u);
    CHECK_TEXT(at(&u, 0x3004), "own+4");
    drop_all(&u);
    CHECK_TEXT(disk.asked, "");
}

static void larger_table(void)
{
    /* stripped of local symbols only: the debug file's table is better; with as many it is not
     * needed */
    static const struct build_symbol own[] = {{"own", 0x2000, 0x10, STT_FUNC, 1},
                                              {"own_too", 0x3000, 0x10, STT_FUNC, 1}};
    for (size_t count = 1; count <= 2; count++) {
        struct used u;
        make_image(0xab);
        build_symbols(&image, SHT_SYMTAB, own, count);
        make_debug(&debug, 0xab, EM_X86_64);
        end_image("app.debug", 0);
        new_disk("/opt/app/bin/app");
        put_file(0, BESIDE, &debug);
        load_all(&u);
        CHECK_TEXT(at(&u, 0x3000), count == 1 ? "hidden+0" : "own_too+0");
        drop_all(&u);
    }
}

/* Moves .symtab, section 2, to where it reaches beyond the end of the file. */
static void cut_symtab(struct elf_build *b)
{
    size_t at = b->len - (b->count - 2) * sizeof(Elf64_Shdr);
    Elf64_Shdr header;
    memcpy(&header, b->bytes + at, sizeof header);
    CHECK_INT(header.sh_type, SHT_SYMTAB);
    header.sh_offset = b->len - 8;
    memcpy(b->bytes + at, &header, sizeof header);
}

static void damaged_debug_table(void)
{
    struct used u;
    make_image(0xab);
    make_debug(&debug, 0xab, EM_X86_64);
    end_image("app.debug", 0);
    cut_symtab(&debug);
    new_disk("/opt/app/bin/app");
    put_file(0, BESIDE, &debug);
    load_all(&u);
    CHECK_TEXT(at(&u, 0x2004), "exported+4");
    CHECK_TEXT(at(&u, 0x3004), "(none)");
    CHECK_TEXT(u.files.problem, "debug file: end of the file");
    drop_all(&u);
}

static void opened_anew(void)
{
    /* the table stays, the files are closed and opened again for the names */
    struct used u;
    make_image(0xab);
    make_debug(&debug, 0xab, EM_X86_64);
    end_image("app.debug", 0);
    new_disk("/opt/app/bin/app");
    put_file(0, BESIDE, &debug);
    load_all(&u);
    close_all(&u);
    open_all(&u);
    CHECK_TEXT(at(&u, 0x3004), "hidden+4");
    close_all(&u);
    /* gone: only what is in the image itself has a name */
    put_file(0, NULL, &debug);
    open_all(&u);
    CHECK_TEXT(at(&u, 0x3004), "(unread)");
    close_all(&u);
    /* replaced by one of the same build id, with other offsets of names */
    static const struct build_symbol moved[] = {{"a", 0x4000, 0x10, STT_FUNC, 1},
                                                {"exported", 0x2000, 0x10, STT_FUNC, 1},
                                                {"hidden", 0x3000, 0x10, STT_FUNC, 1}};
    build_start(&other, EM_X86_64);
    build_symbols(&other, SHT_SYMTAB, moved, 3);
    build_id(&other, 0xab);
    build_end(&other);
    put_file(0, BESIDE, &other);
    open_all(&u);
    CHECK(u.files.has[FILE_DEBUG]);
    CHECK_TEXT(at(&u, 0x3004), "(unread)");
    drop_all(&u);
}

static void image_alone(void)
{
    struct memory_file main = {image.bytes, 0};
    struct memory_reader reader = {read_memory, &main};
    struct symbol_files files;
    struct err err = {0};
    make_image(0xab);
    end_image("app.debug", 0);
    CHECK(!symbol_files_open(&files, &reader, 77, &source, &err));
    CHECK_INT(err.kind, ERR_IO);
    main.len = image.len;
    CHECK(symbol_files_open(&files, &reader, 77, NULL, NULL)); /* nobody opens others */
    CHECK(files.has[FILE_MAIN] && !files.has[FILE_DEBUG]);
    CHECK(symbol_files_elf(&files, FILE_DEBUG) == NULL);
    CHECK(symbol_files_elf(&files, FILE_MAIN) == &files.elf[FILE_MAIN]);
    CHECK_INT(symbol_files_symtab(&files, false), FILE_COUNT);
    symbol_files_release(&files);
}

/* ---- the packed symbols ---- */

static void put_crc(unsigned char *xz, size_t from, size_t to)
{
    uint32_t crc = (uint32_t)crc32(0, xz + from, (unsigned)(to - from));
    memcpy(xz + to, &crc, 4);
}

static size_t put_number(unsigned char *xz, size_t at, size_t number)
{
    for (; number > 0x7f; number >>= 7) {
        xz[at++] = (unsigned char)(number | 0x80);
    }
    xz[at++] = (unsigned char)number;
    return at;
}

/*
 * An .xz stream that holds the bytes as they are (at most 65,536 of them). The .xz file format,
 * 1.2.1: header with check CRC-32; one block with the LZMA2 filter and a dictionary of 4 KiB; one
 * chunk that is not compressed (1, length - 1, bytes), 0; the index; the footer.
 */
static size_t store_xz(const struct elf_build *b, unsigned char *xz)
{
    size_t at = 12, block = at;
    memcpy(xz, "\xfd" "7zXZ\0\0\1", 8);
    put_crc(xz, 6, 8);
    memcpy(xz + at, "\2\0\x21\1\0\0\0\0", 8); /* (2 + 1) * 4 bytes with the CRC */
    put_crc(xz, at, at + 8);
    at += 12;
    xz[at++] = 1;
    xz[at++] = (unsigned char)((b->len - 1) >> 8);
    xz[at++] = (unsigned char)(b->len - 1);
    memcpy(xz + at, b->bytes, b->len);
    at += b->len;
    xz[at++] = 0;
    size_t unpadded = at - block + 4;
    while (at % 4 != 0) {
        xz[at++] = 0;
    }
    uint32_t check = crc_of(b);
    memcpy(xz + at, &check, 4);
    at += 4;
    size_t index = at;
    xz[at++] = 0;
    xz[at++] = 1;
    at = put_number(xz, put_number(xz, at, unpadded), b->len);
    while (at % 4 != 0) {
        xz[at++] = 0;
    }
    put_crc(xz, index, at);
    at += 4;
    uint32_t index_size = (uint32_t)(at - index) / 4 - 1;
    memcpy(xz + at + 4, &index_size, 4);
    memcpy(xz + at + 8, "\0\1YZ", 4);
    uint32_t crc = (uint32_t)crc32(0, xz + at + 4, 6);
    memcpy(xz + at, &crc, 4);
    return at + 12;
}

static unsigned char packed[BUILD_MAX_BYTES];

/* The image with a .gnu_debugdata of these bytes. */
static void end_packed(const void *ptr, size_t len)
{
    build_section(&image, (struct build_row){".gnu_debugdata", SHT_PROGBITS, 0, 0, ptr, len, 0});
    build_end(&image);
    new_disk("/usr/bin/app");
}

static void packed_symbols(void)
{
    struct used u;
    make_image(0);
    make_debug(&debug, 0, EM_X86_64);
    end_packed(packed, store_xz(&debug, packed));
    open_all(&u);
    CHECK(!u.files.has[FILE_PACKED]); /* nobody asked yet */
    symbols_init(&u.symbols, 1 << 20);
    CHECK(symbols_load_files(&u.symbols, &u.files, NULL));
    CHECK(u.files.has[FILE_PACKED]);
    CHECK_TEXT(at(&u, 0x2004), "exported+4");
    CHECK_TEXT(at(&u, 0x3004), "hidden+4");
    /* opened again, it is unpacked for the first name that is in it */
    close_all(&u);
    open_all(&u);
    CHECK_TEXT(at(&u, 0x3004), "hidden+4");
    CHECK(u.files.has[FILE_PACKED]);
    drop_all(&u);
}

/* An ELF with the function "squeezed" at 0x4000, 16 bytes; packed by "xz -6 --check=crc64". */
static const unsigned char squeezed[] = {
    0xfd, 0x37, 0x7a, 0x58, 0x5a, 0x00, 0x00, 0x04, 0xe6, 0xd6, 0xb4, 0x46, 0x02, 0x00, 0x21, 0x01,
    0x16, 0x00, 0x00, 0x00, 0x74, 0x2f, 0xe5, 0xa3, 0xe0, 0x02, 0x17, 0x00, 0x7b, 0x5d, 0x00, 0x3f,
    0x91, 0x45, 0x84, 0x68, 0x3d, 0x89, 0xa6, 0xda, 0x8a, 0xe1, 0x83, 0x32, 0x4e, 0xf1, 0xed, 0xef,
    0x67, 0x18, 0x3c, 0x79, 0x06, 0x2e, 0x52, 0x32, 0x19, 0x2f, 0xa9, 0x83, 0xc9, 0xc6, 0xa3, 0xfe,
    0xd5, 0x3c, 0x73, 0xfc, 0xad, 0x07, 0x88, 0x43, 0x76, 0x8f, 0x6e, 0x09, 0x7a, 0x0c, 0x1b, 0x2b,
    0x03, 0x96, 0xff, 0xe4, 0x7d, 0x0b, 0x9d, 0xd1, 0x1a, 0x50, 0x81, 0xec, 0xf7, 0x3e, 0x19, 0xf3,
    0xea, 0x89, 0xfc, 0x0d, 0x9c, 0x83, 0xe0, 0xba, 0x0a, 0x38, 0xb2, 0x39, 0x51, 0x11, 0x1e, 0x0d,
    0x36, 0x49, 0xd6, 0xfb, 0x54, 0x87, 0x1c, 0x58, 0x5b, 0x32, 0xe9, 0x47, 0x5c, 0xcd, 0x81, 0xb1,
    0x50, 0xd1, 0x2a, 0xa4, 0x04, 0x56, 0x58, 0xe4, 0x19, 0x78, 0xf7, 0x3e, 0xad, 0xa8, 0x69, 0xaa,
    0xb8, 0xbc, 0xd7, 0xa6, 0xe3, 0xd9, 0xc8, 0x15, 0xf8, 0x00, 0x00, 0x00, 0x80, 0x1f, 0xed, 0x39,
    0xa2, 0x13, 0x8f, 0x38, 0x00, 0x01, 0x97, 0x01, 0x98, 0x04, 0x00, 0x00, 0x01, 0xba, 0xab, 0x81,
    0xb1, 0xc4, 0x67, 0xfb, 0x02, 0x00, 0x00, 0x00, 0x00, 0x04, 0x59, 0x5a,
};

static void compressed_symbols(void)
{
    struct used u;
    make_image(0);
    end_packed(squeezed, sizeof squeezed);
    load_all(&u);
    CHECK_TEXT(at(&u, 0x4008), "squeezed+8");
    CHECK_TEXT(at(&u, 0x2000), "exported+0");
    drop_all(&u);
}

static void packed_not_needed(void)
{
    struct used u;
    make_image(0xab);
    make_debug(&debug, 0xab, EM_X86_64);
    end_packed("not even xz", 11);
    put_file(0, "/usr/lib/debug/.build-id/ab/ababab.debug", &debug);
    load_all(&u);
    CHECK_TEXT(at(&u, 0x3004), "hidden+4");
    CHECK_TEXT(u.files.problem, "");
    drop_all(&u);
}

/* What `problem` says after the image with this .gnu_debugdata was loaded, by .dynsym alone. */
static const char *packed_problem(const void *ptr, size_t len)
{
    static char text[ERR_TEXT_MAX];
    struct used u;
    make_image(0);
    end_packed(ptr, len);
    load_all(&u);
    CHECK_TEXT(at(&u, 0x2004), "exported+4");
    CHECK_TEXT(at(&u, 0x3004), "(none)");
    snprintf(text, sizeof text, "%s", u.files.problem);
    drop_all(&u);
    return text;
}

static void packed_behind_damaged(void)
{
    struct used u;
    make_image(0xab);
    make_debug(&debug, 0xab, EM_X86_64);
    end_packed(packed, store_xz(&debug, packed));
    cut_symtab(&debug);
    put_file(0, "/usr/lib/debug/.build-id/ab/ababab.debug", &debug);
    load_all(&u);
    CHECK_TEXT(at(&u, 0x3004), "hidden+4");
    CHECK_TEXT(u.files.problem, "debug file: end of the file");
    drop_all(&u);
}

static void damaged_packing(void)
{
    static const char damaged[] = ".gnu_debugdata: the packed symbols are damaged";
    make_debug(&debug, 0, EM_X86_64);
    size_t len = store_xz(&debug, packed);
    CHECK_TEXT(packed_problem("no stream at all", 16), damaged);
    CHECK_TEXT(packed_problem(packed, len - 13), damaged); /* cut off in front of the footer */
    CHECK_TEXT(packed_problem(packed, 0), damaged);
    packed[100] ^= 1; /* the check sum at the end of the block tells */
    CHECK_TEXT(packed_problem(packed, len), damaged);
    packed[100] ^= 1;
    packed[12 + 4] = 40; /* a dictionary of 4 GiB */
    put_crc(packed, 12, 20);
    CHECK_TEXT(packed_problem(packed, len),
               ".gnu_debugdata: needs too much memory to be unpacked; raise --max-memory");
    packed[12 + 2] = 3; /* the filter "delta" */
    put_crc(packed, 12, 20);
    CHECK_TEXT(packed_problem(packed, len),
               ".gnu_debugdata: packed with a filter other than LZMA2");
    build_start(&debug, EM_X86_64);
    debug.bytes[0] = 'X';
    CHECK_TEXT(packed_problem(packed, store_xz(&debug, packed)), ".gnu_debugdata: not an ELF file");
    make_debug(&debug, 0, EM_X86_64);
    debug.bytes[sizeof(Elf64_Ehdr) + offsetof(Elf64_Phdr, p_vaddr)] = 8;
    CHECK_TEXT(packed_problem(packed, store_xz(&debug, packed)),
               ".gnu_debugdata is for other addresses");
    make_debug(&debug, 0, EM_X86_64);
    cut_symtab(&debug);
    const char *cut = packed_problem(packed, store_xz(&debug, packed));
    CHECK(strncmp(cut, ".gnu_debugdata: 72 bytes at ", 28) == 0); /* three symbols of 24 */
}

static void unpacking_is_bounded(void)
{
    struct elf e;
    struct err err = {0};
    struct buf out;
    make_debug(&debug, 0, EM_X86_64);
    make_image(0);
    end_packed(packed, store_xz(&debug, packed));
    CHECK(elf_open_bytes(&e, image.bytes, image.len, NULL));
    const struct elf_section *section = elf_section(&e, ".gnu_debugdata");
    buf_init(&out, debug.len - 1);
    CHECK(!unpack_xz(&e, section, FILES_XZ_MAX_BYTES, &out, &err) && err.kind == ERR_LIMIT);
    buf_release(&out);
    buf_init(&out, debug.len + 1);
    CHECK(unpack_xz(&e, section, FILES_XZ_MAX_BYTES, &out, NULL) && out.len == debug.len);
    buf_release(&out);
    CHECK(!unpack_xz(&e, section, 1024, &out, &err) && err.kind == ERR_LIMIT); /* its memory */
    buf_release(&out);
    elf_release(&e);
}

/* ---- names of linkage stubs ---- */

/* .plt at 0x2800: three lazy stubs behind the first; slots 0x4008, 0x4010, 0x4018 */
static const unsigned char stubs[] =
    "\xff\x35\xf2\x17\0\0" "\xff\x25\xf4\x17\0\0" "\x0f\x1f\x40\0"
    "\xff\x25\xf2\x17\0\0" "\x68\0\0\0\0" "\xe9\xe0\xff\xff\xff"
    "\xff\x25\xea\x17\0\0" "\x68\x01\0\0\0" "\xe9\xd0\xff\xff\xff"
    "\xff\x25\xe2\x17\0\0" "\x68\x02\0\0\0" "\xe9\xc0\xff\xff\xff";

/* The first calls symbol 1, the second what `hidden` at 0x3000 chooses, the third what a function
 * without a name does. */
static void add_stubs(void)
{
    static const Elf64_Rela slots[] = {
        {0x4008, ELF64_R_INFO(1, R_X86_64_JUMP_SLOT), 0},
        {0x4010, ELF64_R_INFO(0, R_X86_64_IRELATIVE), 0x3000},
        {0x4018, ELF64_R_INFO(0, R_X86_64_IRELATIVE), 0x3008},
    };
    build_section(&image, (struct build_row){".plt", SHT_PROGBITS, SHF_ALLOC | SHF_EXECINSTR,
                  0x2800, stubs, sizeof stubs - 1, 0});
    build_section(&image, (struct build_row){".rela.plt", SHT_RELA, SHF_ALLOC, 0, slots,
                  sizeof slots, 2});
}

static void stub_names(void)
{
    struct used u;
    make_image(0xab);
    add_stubs();
    end_image("app.debug", 0);
    make_debug(&debug, 0xab, EM_X86_64);
    new_disk("/opt/app/bin/app");
    put_file(0, BESIDE, &debug);
    load_all(&u);
    CHECK_TEXT(at(&u, 0x2800), "[plt]+0");
    CHECK_TEXT(at(&u, 0x2810), "exported@plt+0");
    CHECK_TEXT(at(&u, 0x281f), "exported@plt+f");
    CHECK_TEXT(at(&u, 0x2826), "hidden@plt+6");
    CHECK_TEXT(at(&u, 0x2830), "[plt]+0");
    CHECK_TEXT(at(&u, 0x2840), "(none)");
    CHECK_INT(u.symbols.table.len, 6);
    CHECK_INT(symbols_bytes(&u.symbols), 6 * 12);
    drop_all(&u);
}

static void stubs_come_last(void)
{
    /* a table that names a stub itself is right about it, even by a label of assembler */
    static const struct build_symbol own[] = {{"my_stub", 0x2810, 0, STT_NOTYPE, 1}};
    struct used u;
    make_image(0);
    build_symbols(&image, SHT_SYMTAB, own, 1);
    add_stubs();
    end_image("", 0);
    new_disk("/opt/app/bin/app");
    load_all(&u);
    CHECK_TEXT(at(&u, 0x2814), "my_stub+4");
    CHECK_TEXT(at(&u, 0x2824), "[plt]+4"); /* nobody knows `hidden` here */
    drop_all(&u);
    /* no room for them is no failure */
    open_all(&u);
    symbols_init(&u.symbols, 3 * sizeof(struct symbol));
    CHECK(symbols_load_files(&u.symbols, &u.files, NULL));
    CHECK_INT(u.symbols.table.len, 3);
    CHECK_TEXT(at(&u, 0x2814), "my_stub+4");
    CHECK_TEXT(at(&u, 0x2004), "exported+4");
    drop_all(&u);
}

TESTS({"a debug file is found by build id", by_build_id},
      {"a debug file is found by .gnu_debuglink, beside the image first", by_link},
      {"a link with a slash or without a folder is none", no_links},
      {"a debug file of another build, checksum or address is refused, and it is said", refused},
      {"behind a stale debug file the right one is found", next_place},
      {"with one build id of two the checksum decides", one_build_id},
      {"an image that has everything looks for nothing", complete},
      {"of two symbol tables the larger one is used", larger_table},
      {"a debug file whose symbols cannot be read is passed over", damaged_debug_table},
      {"names are read again later only from the same debug file", opened_anew},
      {"an image without others stands alone", image_alone},
      {"symbols packed in the image are unpacked when they are asked for", packed_symbols},
      {"compressed symbols are unpacked", compressed_symbols},
      {"packed symbols are left alone beside a debug file", packed_not_needed},
      {"packed symbols take the place of damaged ones", packed_behind_damaged},
      {"damaged packing leaves .dynsym, and it is said", damaged_packing},
      {"unpacking ends at its maxima", unpacking_is_bounded},
      {"stubs are named after what they call, in 12 bytes each", stub_names},
      {"stubs give way to symbols and to the memory limit", stubs_come_last},)
