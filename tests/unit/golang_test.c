/* The Go symbol table: functions, lines and inlined calls of hand-made tables of every version. */
#include "elf_image.h"
#include "runtime/go/go.h"
#include "runtime/go/table/private.h"
#include "test.h"

/*
 * The program. main.outer at 0x2000 … 0x2040 calls main.middle, inlined at 0x2010 … 0x2020, which
 * calls main.leaf, inlined at 0x2014 … 0x2018. runtime.gogo, which sets SP, follows to 0x2050 and
 * runtime.goexit to 0x2060. The table stands at 0x800, file offset and ELF address alike.
 */
enum {
    TEXT = 0x2000,
    TABLE = 0x800,
    TREE = 0xd00,       /* outer's inlined calls, 64 bytes behind what funcdata count from */
    MODULE = 0xe00,
    RELOCATIONS = 0x600,
    DYNAMIC = 0x7a0,
    IMAGE_BYTES = 0x1000,
    EXTRA_NAME = sizeof image_section_names,
};

enum version { GO_1_9, GO_1_12, GO_1_13, GO_1_16, GO_1_18, GO_1_20, VERSIONS };

static const char *const version_names[] = {"1.9", "1.12", "1.13", "1.16", "1.18", "1.20"};

static struct elf_image image;

struct made { /* where things are in the image, for tests that spoil them */
    enum version version;
    unsigned quantum; /* instructions are multiples of so many bytes */
    size_t names, units, files, streams, list, records;
    size_t outer;      /* its record */
    size_t file, line, index; /* outer's streams */
    size_t at;         /* where the next part goes */
};

static void put(size_t at, uint64_t value, size_t bytes)
{
    image_put(image.bytes + at, value, bytes);
}

static size_t put_text(struct made *m, const char *text)
{
    size_t at = m->at;
    strcpy((char *)image.bytes + at, text);
    m->at += strlen(text) + 1;
    return at;
}

static void put_varint(struct made *m, uint32_t value)
{
    for (; value >= 0x80; value >>= 7) {
        image.bytes[m->at++] = (unsigned char)(value | 0x80);
    }
    image.bytes[m->at++] = (unsigned char)value;
}

struct run {
    int value;
    unsigned bytes;
};

/* A stream of runs: each a zigzag change from the last value, at first -1, and a length. */
static size_t put_stream(struct made *m, const struct run *runs)
{
    size_t at = m->at;
    int last = -1;
    for (; runs->bytes > 0; runs++) {
        int change = runs->value - last;
        put_varint(m, change < 0 ? ((uint32_t)-change << 1) - 1 : (uint32_t)change << 1);
        put_varint(m, runs->bytes / m->quantum);
        last = runs->value;
    }
    image.bytes[m->at++] = 0;
    return at;
}

static bool relative(const struct made *m)
{
    return m->version >= GO_1_18;
}

static bool has_parts(const struct made *m)
{
    return m->version >= GO_1_16;
}

struct record {
    unsigned start; /* behind TEXT */
    size_t name, sp, file, line, index;
    unsigned flags;
};

/* runtime._func of each version: see src/runtime/runtime2.go of the Go release. */
static void put_record(struct made *m, const struct record *r, unsigned number)
{
    static const struct { unsigned pcdata, funcdata; } tree[VERSIONS] = {
        {1, 2}, {1, 2}, {2, 4}, {2, 3}, {2, 3}, {2, 3}};
    size_t width = relative(m) ? 4 : 8, streams = has_parts(m) ? m->streams : TABLE;
    size_t names = has_parts(m) ? m->names : TABLE, records = has_parts(m) ? m->list : TABLE;
    unsigned pcdata = r->index ? tree[m->version].pcdata + 1 : 0;
    unsigned funcdata = r->index ? tree[m->version].funcdata + 1 : 0;
    m->at = (m->at + 7) / 8 * 8;
    put(m->list + 2 * number * width, relative(m) ? r->start : TEXT + r->start, width);
    put(m->list + (2 * number + 1) * width, m->at - records, width);
    put(m->at, relative(m) ? r->start : TEXT + r->start, width);
    m->at += width;
    const uint64_t words[] = {r->name - names, 0, 0, r->sp ? r->sp - streams : 0,
                              r->file ? r->file - streams : 0, r->line ? r->line - streams : 0,
                              pcdata};
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++, m->at += 4) {
        put(m->at, words[i], 4);
    }
    m->at += has_parts(m) ? 4 : 0;           /* the unit: 0 */
    m->at += m->version >= GO_1_20 ? 4 : 0;  /* the first line */
    put(m->at, m->version == GO_1_9 ? funcdata : r->flags << 8 | funcdata << 24, 4);
    m->at += 4;
    for (unsigned i = 0; i < pcdata; i++, m->at += 4) {
        put(m->at, i + 1 == pcdata ? r->index - streams : 0, 4);
    }
    m->at = relative(m) ? m->at : (m->at + 7) / 8 * 8;
    for (unsigned i = 0; i < funcdata; i++, m->at += width) {
        bool last = i + 1 == funcdata;
        put(m->at, relative(m) ? (last ? 64 : UINT32_MAX) : (last ? TREE : 0), width);
    }
}

static void put_functions(struct made *m, const size_t names[3])
{
    static const struct run sp[] = {{0, 4}, {24, 0x38}, {0, 4}, {0, 0}}, leaf[] = {{0, 16}, {0, 0}};
    static const struct run line[] = {{9, 8},  {11, 8},   {20, 4}, {30, 4},
                                      {21, 8}, {12, 0x20}, {0, 0}};
    static const struct run index[] = {{-1, 0x10}, {0, 4}, {1, 4}, {0, 8}, {-1, 0x20}, {0, 0}};
    int first = has_parts(m) ? 0 : 1; /* file numbers counted from 1 */
    const struct run file[] = {{first, 0x14}, {first + 1, 4}, {first, 0x28}, {0, 0}};
    struct record outer = {0, names[0], put_stream(m, sp), m->file = put_stream(m, file),
                           m->line = put_stream(m, line), m->index = put_stream(m, index), 0};
    struct record gogo = {0x40, names[1], put_stream(m, leaf), 0, 0, 0, 2};
    struct record goexit = {0x50, names[2], put_stream(m, leaf), 0, 0, 0, 1};
    size_t width = relative(m) ? 4 : 8;
    m->at = (m->at + 7) / 8 * 8;
    if (has_parts(m)) {
        m->list = m->at;
    }
    m->at = m->list + 7 * width + (has_parts(m) ? 0 : 4);
    if (!has_parts(m)) {
        put(m->at - 4, m->units - TABLE, 4);
        m->at = m->index + 64;
    }
    m->records = m->outer = (m->at + 7) / 8 * 8;
    put_record(m, &outer, 0);
    put_record(m, &gogo, 1);
    put_record(m, &goexit, 2);
    put(m->list + 6 * width, relative(m) ? 0x60 : TEXT + 0x60, width);
}

static void put_call(struct made *m, unsigned number, size_t name, unsigned parent_pc, int line)
{
    static const unsigned char bytes[VERSIONS] = {16, 20, 20, 20, 20, 16};
    size_t at = TREE + number * bytes[m->version];
    size_t offset = name - (has_parts(m) ? m->names : TABLE);
    if (m->version == GO_1_20) {
        put(at + 4, offset, 4);
        put(at + 8, parent_pc, 4);
        put(at + 12, 1, 4);
        return;
    }
    put(at, (uint64_t)((int64_t)number - 1), m->version == GO_1_9 ? 4 : 2);
    put(at + 4, has_parts(m) ? 0 : 1, 4);
    put(at + 8, (unsigned)line, 4);
    put(at + 12, offset, 4);
    if (m->version != GO_1_9) {
        put(at + 16, parent_pc, 4);
    }
}

static void put_header(struct made *m)
{
    static const uint32_t magic[VERSIONS] = {0xfffffffb, 0xfffffffb, 0xfffffffb,
                                             0xfffffffa, 0xfffffff0, 0xfffffff1};
    const size_t parts[] = {m->names, m->units, m->files, m->streams, m->list};
    put(TABLE, magic[m->version], 4);
    put(TABLE + 6, m->quantum, 1);
    put(TABLE + 7, 8, 1); /* bytes of a pointer */
    put(TABLE + 8, 3, 8);
    size_t at = TABLE + 24 + (relative(m) ? 8 : 0); /* behind the file count and the text's start */
    for (size_t i = 0; has_parts(m) && i < 5; i++) {
        put(at + 8 * i, parts[i] - TABLE, 8);
    }
}

/* runtime.moduledata since Go 1.18, the words that are looked at. */
static void put_module(struct made *m)
{
    static const struct { unsigned word; uint64_t value; } words[] = {
        {0, TABLE}, {2, 100}, {3, 100}, {20, TEXT}, {21, TEXT + 0x60}, {22, TEXT}};
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
        put(MODULE + 8 * words[i].word, words[i].value, 8);
    }
    put(MODULE + 8, m->names, 8);
    put(MODULE + 8 * (m->version == GO_1_18 ? 38 : 40), TREE - 64, 8);
}

/* The section [3] gets another name: behind the names that are there. */
static void name_section(const char *name)
{
    strcpy((char *)image.bytes + IMAGE_SECTION_NAMES + EXTRA_NAME, name);
    put(IMAGE_SHDRS + 6 * sizeof(Elf64_Shdr) + offsetof(Elf64_Shdr, sh_size), EXTRA_NAME + 32, 8);
    put(IMAGE_SHDRS + 3 * sizeof(Elf64_Shdr) + offsetof(Elf64_Shdr, sh_name), EXTRA_NAME, 4);
}

static struct made make_for(enum version version, unsigned machine)
{
    struct made m = {.version = version, .at = TABLE + 0x50};
    m.quantum = machine == EM_AARCH64 ? 4 : 1;
    elf_image_make(&image, NULL, 0);
    image_put(IMAGE_HEADER(&image, e_machine), machine, 2);
    image.len = IMAGE_BYTES;
    m.list = TABLE + 16;
    if (!has_parts(&m)) {
        m.at = TABLE + 0x60; /* behind the list */
    }
    m.names = m.at;
    const size_t names[] = {put_text(&m, "main.outer"), put_text(&m, "runtime.gogo"),
                            put_text(&m, "runtime.goexit")};
    size_t middle = put_text(&m, "main.middle"), leaf = put_text(&m, "main.leaf");
    size_t main_file = put_text(&m, "/src/main.go"), leaf_file = put_text(&m, "/src/leaf.go");
    m.files = main_file;
    m.units = m.at = (m.at + 3) / 4 * 4;
    m.at += 12;
    if (has_parts(&m)) {
        put(m.units, 0, 4);
        put(m.units + 4, leaf_file - main_file, 4);
    } else {
        put(m.units, 3, 4);
        put(m.units + 4, main_file - TABLE, 4);
        put(m.units + 8, leaf_file - TABLE, 4);
    }
    m.streams = m.at++;
    put_functions(&m, names);
    put_call(&m, 0, middle, 0x08, 11);
    put_call(&m, 1, leaf, 0x10, 20);
    put_header(&m);
    if (relative(&m)) {
        put_module(&m);
    }
    name_section(".gopclntab");
    put(IMAGE_SHDRS + 3 * sizeof(Elf64_Shdr) + offsetof(Elf64_Shdr, sh_addr), TABLE, 8);
    put(IMAGE_SHDRS + 3 * sizeof(Elf64_Shdr) + offsetof(Elf64_Shdr, sh_offset), TABLE, 8);
    put(IMAGE_SHDRS + 3 * sizeof(Elf64_Shdr) + offsetof(Elf64_Shdr, sh_size), TREE - TABLE, 8);
    return m;
}

static struct made make(enum version version)
{
    return make_for(version, EM_X86_64);
}

static struct elf elf;
static struct go_table *table;
static struct err err;

static bool open_table(void)
{
    CHECK(elf_open_bytes(&elf, image.bytes, image.len, NULL));
    table = go_table_open(&elf, &err);
    return table != NULL;
}

static void close_table(void)
{
    go_table_release(table);
    table = NULL;
    elf_release(&elf);
}

/* The frames at an address, innermost first: "name file:line < name file:line". */
static const char *at(uint64_t address)
{
    static char text[32 * 5000];
    struct go_frames frames;
    size_t len = 0;
    if (!go_table_lookup(table, address, &frames)) {
        return "(none)";
    }
    for (size_t i = 0; i < frames.count; i++) {
        const struct go_frame *f = &frames.at[i];
        len += (size_t)sprintf(text + len, "%s%.*s %.*s:%u", i ? " < " : "", (int)f->name.len,
                               f->name.ptr, (int)f->file.len, f->file.ptr, f->line);
    }
    return text;
}

static const char in_outer[] = "main.outer /src/main.go:9";
static const char in_middle[] = "main.middle /src/main.go:20 < main.outer /src/main.go:11";
static const char in_leaf[] =
    "main.leaf /src/leaf.go:30 < main.middle /src/main.go:20 < main.outer /src/main.go:11";

static void every_version(void)
{
    for (enum version v = 0; v < VERSIONS; v++) {
        (void)make(v);
        if (!open_table()) {
            printf("# Go %s: %s\n", version_names[v], err.text);
            CHECK(false);
            continue;
        }
        CHECK_TEXT(at(0x2000), in_outer);
        CHECK_TEXT(at(0x200f), "main.outer /src/main.go:11");
        CHECK_TEXT(at(0x2010), in_middle);
        CHECK_TEXT(at(0x2014), in_leaf);
        CHECK_TEXT(at(0x2017), in_leaf);
        CHECK_TEXT(at(0x2018), "main.middle /src/main.go:21 < main.outer /src/main.go:11");
        CHECK_TEXT(at(0x2020), "main.outer /src/main.go:12");
        CHECK_TEXT(at(0x205f), "runtime.goexit :0");
        CHECK_INT(table->damaged, 0);
        close_table();
    }
}

static void other_machine(void)
{
    for (enum version v = 0; v < VERSIONS; v++) {
        (void)make_for(v, EM_AARCH64);
        CHECK(open_table());
        CHECK_TEXT(at(0x2010), in_middle);
        CHECK_TEXT(at(0x2014), in_leaf);
        close_table();
        put(TABLE + 6, 1, 1); /* the instructions of another machine */
        CHECK(!open_table() && err.kind == ERR_MALFORMED);
        close_table();
    }
}

static void unknown_files(void)
{
    struct made m = make(GO_1_13);
    CHECK_INT(image.bytes[m.file], 4); /* from -1 to 1, the first number, in zigzag */
    image.bytes[m.file] = 2;           /* number 0 is how many there are */
    CHECK(open_table());
    CHECK_TEXT(at(0x2000), "main.outer :9");
    close_table();
    image.bytes[m.file] = 8; /* there are two */
    CHECK(open_table());
    CHECK_TEXT(at(0x2000), "main.outer :9");
    close_table();
    m = make(GO_1_16);
    put(m.units, UINT32_MAX, 4); /* the linker dropped the file */
    CHECK(open_table());
    CHECK_TEXT(at(0x2000), "main.outer :9");
    CHECK_INT(table->damaged, 0);
    close_table();
}

static void outside(void)
{
    struct go_frames frames;
    for (enum version v = 0; v < VERSIONS; v++) {
        (void)make(v);
        CHECK(open_table());
        CHECK_TEXT(at(0x1fff), "(none)");
        CHECK_TEXT(at(0x2060), "(none)");
        CHECK_TEXT(at(0), "(none)");
        CHECK_TEXT(at(UINT64_MAX), "(none)");
        CHECK(go_table_lookup(table, 0x2045, &frames));
        CHECK_INT(frames.start, 0x2040);
        CHECK_INT(frames.limit, 0x2050);
        CHECK_INT(table->damaged, 0);
        close_table();
    }
}

static void no_sections(void)
{
    for (enum version v = 0; v < VERSIONS; v++) {
        (void)make(v);
        image_put(IMAGE_HEADER(&image, e_shoff), 0, 8);
        put(TABLE - 64, 0xfffffff1, 4); /* the number alone is no table */
        put(TABLE - 60, 0x08010000, 4);
        CHECK(open_table());
        CHECK_TEXT(at(0x2014), in_leaf);
        close_table();
        /* with sections that are all of a C program the image is not searched */
        (void)make(v);
        name_section(".data");
        CHECK(!open_table() && err.kind == ERR_GONE);
        close_table();
        name_section(".go.buildinfo");
        CHECK(open_table());
        close_table();
    }
}

/* What the linker left is in a section of its own, at TABLE here. */
static void release_is(const char *head, uint8_t flags, const char *text, size_t bytes, const char *expected)
{
    struct buf out;
    buf_init(&out, 100);
    (void)make(GO_1_20);
    name_section(".go.buildinfo");
    memset(image.bytes + TABLE, 0, 64);
    memcpy(image.bytes + TABLE, head, strlen(head));
    image.bytes[TABLE + 14] = 8;
    image.bytes[TABLE + 15] = flags;
    image.bytes[TABLE + 32] = (unsigned char)strlen(text);
    memcpy(image.bytes + TABLE + 33, text, strlen(text));
    put(IMAGE_SHDRS + 3 * sizeof(Elf64_Shdr) + offsetof(Elf64_Shdr, sh_size), bytes, 8);
    CHECK(elf_open_bytes(&elf, image.bytes, image.len, &err));
    CHECK(runtime_go.release(&elf, &out) == (expected[0] != '\0'));
    CHECK_TEXT(buf_cstr(&out), expected);
    elf_release(&elf);
    buf_release(&out);
}

static void a_release(void)
{
    static const char head[] = "\xff Go buildinf:";
    release_is(head, 2, "go1.26.8", 64, "go 1.26.8");
    release_is(head, 2, "go1.25rc1 X:nogreenteagc", 64, "go 1.25rc1");
    release_is(head, 2, "go1.26.8", 41, "go 1.26.8");
    release_is(head, 2, "go1.26.8", 40, ""); /* cut */
    release_is(head, 2, "go1.26.8", 32, "");
    release_is(head, 0, "go1.17.13", 64, ""); /* by pointers */
    release_is(head, 2, "devel go1.27", 64, "");
    release_is(head, 2, "go", 64, "");
    release_is("\xff Go builtinf:", 2, "go1.26.8", 64, "");
    (void)make(GO_1_20);
    CHECK(elf_open_bytes(&elf, image.bytes, image.len, &err));
    CHECK(!runtime_go.release(&elf, NULL)); /* without the section */
    elf_release(&elf);
}

static void no_module(void)
{
    (void)make(GO_1_20);
    image_put(IMAGE_HEADER(&image, e_entry), TEXT + 0x51, 8);
    put(MODULE + 8 * 20, TEXT + 4, 8); /* the first function's start, which is elsewhere */
    CHECK(!open_table() && err.kind == ERR_UNSUPPORTED);
    close_table();
    put(MODULE + 8 * 20, TEXT, 8);
    put(MODULE + 16, 99, 8); /* a length that is not the capacity: other data */
    CHECK(!open_table() && err.kind == ERR_UNSUPPORTED);
    close_table();
    put(TABLE + 24, TEXT, 8); /* as until Go 1.25 */
    CHECK(open_table());
    CHECK_TEXT(at(0x2014), "main.outer /src/leaf.go:30");
    close_table();
    put(TABLE + 24, 0, 8);
    image_put(IMAGE_HEADER(&image, e_entry), TEXT + 0x50, 8); /* where a function starts */
    CHECK(open_table());
    CHECK_TEXT(at(0x2055), "runtime.goexit :0");
    close_table();
}

static void later_module(void)
{
    (void)make(GO_1_20);
    put(MODULE + 8 * 40, TABLE, 8); /* points into the image, but to no tree */
    put(MODULE + 8 * 42, TREE - 64, 8);
    CHECK(open_table());
    CHECK_TEXT(at(0x2014), in_leaf);
    close_table();
}

/* Moves the pointer at `address` into relocation `number`, as lld writes it. */
static void relocate(unsigned number, size_t address)
{
    uint64_t value;
    memcpy(&value, image.bytes + address, 8);
    put(address, 0, 8);
    put(RELOCATIONS + 24 * number, address, 8);
    put(RELOCATIONS + 24 * number + 8, 8, 8); /* R_X86_64_RELATIVE */
    put(RELOCATIONS + 24 * number + 16, value, 8);
}

static void has_relocations(unsigned count)
{
    put(DYNAMIC, DT_RELA, 8);
    put(DYNAMIC + 8, RELOCATIONS, 8);
    put(DYNAMIC + 16, DT_RELASZ, 8);
    put(DYNAMIC + 24, 24 * (count + 6), 8); /* behind them six of another kind, at address 0 */
    put(DYNAMIC + 32, DT_NULL, 8);
    image_put(IMAGE_SEGMENT(&image, 2, p_type), PT_DYNAMIC, 4);
    image_put(IMAGE_SEGMENT(&image, 2, p_offset), DYNAMIC, 8);
    image_put(IMAGE_SEGMENT(&image, 2, p_filesz), 48, 8);
}

static void relocated(void)
{
    static const unsigned words[] = {0, 1, 20, 22, 40};
    (void)make(GO_1_20);
    for (unsigned i = 0; i < 5; i++) {
        relocate(i, MODULE + 8 * words[i]);
    }
    has_relocations(5);
    CHECK(open_table());
    CHECK_TEXT(at(0x2014), in_leaf);
    close_table();

    struct made m = make(GO_1_13);
    for (unsigned i = 0; i < 4; i++) {
        relocate(i, m.list + 16 * i);
    }
    put(m.outer, 0, 8); /* the record's copy of the address, not looked at */
    relocate(4, m.outer + 40 + 16 + 32); /* behind 3 pcdata, padded, the fifth funcdata */
    has_relocations(5);
    CHECK(open_table());
    CHECK_TEXT(at(0x2014), in_leaf);
    CHECK_TEXT(at(0x2055), "runtime.goexit :0");
    put(RELOCATIONS + 24, m.list + 17, 8);
    CHECK_TEXT(at(0x2014), in_leaf); /* from what is at hand */
    close_table();
    CHECK(open_table());
    CHECK_TEXT(at(0x2014), "(none)");
    CHECK(table->damaged > 0);
    close_table();
}

static void own_caller(void)
{
    (void)make(GO_1_20);
    put(TREE + 16 + 8, 0x14, 4); /* leaf is called from where leaf is */
    CHECK(open_table());
    CHECK_TEXT(at(0x2014), "main.leaf /src/leaf.go:30 < main.outer :0");
    CHECK_TEXT(at(0x2010), in_middle);
    CHECK_INT(table->damaged, 0); /* Go's own linker writes such trees */
    close_table();
}

/* A tree of calls in each other, 40 deep: of them 31 and the function are shown. */
static void deep(void)
{
    enum { DEEP_TREE = 0x440, FIRST = 0x10, DEPTH = 40 };
    struct go_frames frames;
    struct made m = make(GO_1_20);
    m.at = 0xc80; /* within the table, behind all */
    put(m.outer + 44 + 8, m.at - m.streams, 4);
    put_varint(&m, 0); /* -1, up to the first call */
    put_varint(&m, FIRST);
    for (unsigned i = 0; i < DEPTH; i++) {
        put_varint(&m, 2); /* one more, for one byte */
        put_varint(&m, 1);
        put(DEEP_TREE + 16 * i + 4, 0, 4);
        put(DEEP_TREE + 16 * i + 8, FIRST + i - 1, 4);
        put(DEEP_TREE + 16 * i + 12, 1, 4);
    }
    put(MODULE + 8 * 40, DEEP_TREE - 64, 8);
    CHECK(open_table());
    CHECK(go_table_lookup(table, 0x2000 + FIRST + 30, &frames));
    CHECK_INT(frames.count, 32);
    CHECK_INT(frames.at[31].line, 11); /* the 31st call is in the function at byte 15 */
    CHECK(go_table_lookup(table, 0x2000 + FIRST + DEPTH - 1, &frames));
    CHECK_INT(frames.count, 32);
    CHECK_STR(frames.at[31].name, "main.outer");
    CHECK_INT(table->damaged, 0);
    close_table();
}

static void damage(void)
{
    struct made m = make(GO_1_20);
    put(TREE + 4, 0x7fffffff, 4); /* a name beyond the table */
    put(TREE + 16 + 4, 0x7fffffff, 4);
    CHECK(open_table()); /* trees that make no sense are left alone */
    CHECK_TEXT(at(0x2014), "main.outer /src/leaf.go:30");
    close_table();

    m = make(GO_1_20);
    put(m.index, 0x0280, 2); /* the stream of indices is now a number that does not end */
    memset(image.bytes + m.index, 0x80, 8);
    CHECK(open_table());
    CHECK_TEXT(at(0x2014), "main.outer /src/leaf.go:30");
    CHECK_INT(table->damaged, 1);
    close_table();

    m = make(GO_1_20);
    put(m.list + 4, 0x7fffffff, 4); /* the first function's record is beyond the table */
    CHECK(!open_table() && err.kind == ERR_MALFORMED);
    close_table();
    m = make(GO_1_20);
    put(m.list + 12, 0x7fffffff, 4); /* the second one's */
    CHECK(open_table());
    CHECK_TEXT(at(0x2014), in_leaf);
    CHECK_TEXT(at(0x2044), "(none)");
    CHECK_INT(table->damaged, 1);
    close_table();
}

static void refusals(void)
{
    (void)make(GO_1_20);
    put(TABLE, 0xfffffff2, 4);
    CHECK(!open_table() && err.kind == ERR_UNSUPPORTED);
    CHECK(strstr(err.text, "0xfffffff2") != NULL);
    close_table();
    put(TABLE, 0xfffffff1, 4);
    put(TABLE + 8, UINT64_C(1) << 40, 8);
    CHECK(!open_table() && err.kind == ERR_MALFORMED);
    close_table();
    put(TABLE + 8, 0, 8);
    CHECK(!open_table() && err.kind == ERR_MALFORMED);
    close_table();
    put(TABLE + 8, 3, 8);
    put(TABLE + 7, 4, 1); /* pointers of another size than the image's */
    CHECK(!open_table() && err.kind == ERR_MALFORMED);
    close_table();
    (void)make(GO_1_20);
    put(IMAGE_SHDRS + 3 * sizeof(Elf64_Shdr) + offsetof(Elf64_Shdr, sh_type), SHT_NOBITS, 4);
    CHECK(!open_table() && err.kind == ERR_GONE); /* the debug file of a Go program */
    close_table();
}

/* Every cut and many wrong bytes: an answer or none, under the sanitizers. */
static void spoilt(void)
{
    for (enum version v = 0; v < VERSIONS; v++) {
        (void)make(v);
        static struct elf_image good;
        good = image;
        for (size_t i = TABLE; i < IMAGE_BYTES; i++) {
            static const unsigned char values[] = {0, 1, 0x7f, 0x80, 0xff};
            image = good;
            image.bytes[i] = values[i % sizeof values];
            if (open_table()) {
                (void)at(0x2014);
                (void)at(0x2044);
            }
            close_table();
            image = good;
            image.len = i;
            if (open_table()) {
                (void)at(0x2014);
            }
            close_table();
        }
    }
}

static void long_name(void)
{
    static char text[9000];
    struct made m = make(GO_1_20);
    struct go_frames frames;
    /* the table becomes larger than the image's first segment: the second one holds the names */
    image_put(IMAGE_SEGMENT(&image, 0, p_filesz), 0x4000, 8);
    image_put(IMAGE_SEGMENT(&image, 0, p_memsz), 0x4000, 8);
    put(IMAGE_SHDRS + 3 * sizeof(Elf64_Shdr) + offsetof(Elf64_Shdr, sh_size), 0x4000 - TABLE, 8);
    image.len = 0x4000;
    memset(text, 'n', sizeof text - 1);
    memcpy(image.bytes + 0x1000, text, sizeof text);
    put(m.outer + 4, 0x1000 - m.names, 4);
    CHECK(open_table());
    CHECK(go_table_lookup(table, 0x2000, &frames));
    CHECK_INT(frames.at[0].name.len, 4096);
    close_table();
}

static void stacks(void)
{
    for (enum version v = GO_1_18; v <= GO_1_20; v++) {
        struct go_step step;
        (void)make(v);
        CHECK(open_table());
        CHECK(go_table_step(table, 0x2000, &step) && step.delta == 0 && step.has_frames && step.start == 0x2000);
        CHECK(go_table_step(table, 0x2010, &step) && step.delta == 24 && step.flags == 0);
        CHECK(go_table_step(table, 0x203c, &step) && step.delta == 0);
        CHECK(go_table_step(table, 0x2044, &step) && step.flags == GO_STEP_WRITES_SP);
        CHECK(go_table_step(table, 0x2054, &step) && step.flags == GO_STEP_TOP && step.start == 0x2050);
        CHECK(!go_table_step(table, 0x2060, &step) && !go_table_step(table, 0x1fff, &step));
        close_table();
    }
    struct go_step step;
    (void)make(GO_1_16);
    CHECK(open_table());
    CHECK(!go_table_step(table, 0x2000, &step));
    close_table();
}

static void by_name(void)
{
    struct made m = make(GO_1_20);
    put(m.outer + 36, 7, 4); /* the first line */
    put(m.outer + 40, 22, 1);
    CHECK(open_table());
    struct go_code codes[] = {
        {"runtime.goexit", 0, 0}, {"runtime.go", 1, 1}, {"main.outer", 0, 0}, {"runtime.gogo", 0, 0}};
    go_table_find(table, codes, 4);
    CHECK(codes[0].start == 0x2050 && codes[0].limit == 0x2060);
    CHECK(codes[1].limit == 0 && codes[2].limit == 0); /* only the runtime's are looked for */
    CHECK(codes[3].start == 0x2040 && codes[3].limit == 0x2050);
    struct go_frames frames;
    CHECK(go_table_lookup(table, 0x2014, &frames));
    CHECK(frames.at[2].start_line == 7 && frames.at[2].id == 22 && frames.at[2].at == 0x2008);
    CHECK(frames.at[0].start_line == 1 && frames.at[0].at == 0x2014 && frames.at[1].at == 0x2010);
    close_table();
}

TESTS({"an address gives the calls inlined there, innermost first, in every version's table",
       every_version},
      {"instructions of four bytes count in fours", other_machine},
      {"the release that built it is told", a_release},
      {"a file that the table does not name is no file", unknown_files},
      {"addresses before the first and behind the last function are no function", outside},
      {"a table without sections is found by its first bytes", no_sections},
      {"without module data there are functions and lines, if the text's start is known",
       no_module},
      {"module data of another layout is taken where its trees make sense", later_module},
      {"pointers that only relocations hold are followed", relocated},
      {"a call that names itself as caller ends the chain", own_caller},
      {"a deep chain ends with the function that exists", deep},
      {"damage is a miss and counted", damage},
      {"what is no table of a known version is refused with its reason", refusals},
      {"a spoilt or cut table gives an answer or none", spoilt},
      {"a long name is cut", long_name},
      {"how far functions move the stack pointer is told, and where stacks end", stacks},
      {"the runtime's functions are found by name, with what frames are told from", by_name})
