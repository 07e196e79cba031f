/* Function tables, and the names that a profile gets from them. */
#include "elf_build.h"
#include "elf_image.h"
#include "symbol/namer.h"
#include "test.h"

#include <fcntl.h>
#include <unistd.h>

static struct elf_image image;

/* Which symbol the table of `symbols` has at an address: "name+offset", or "(none)". */
static const char *at(struct symbols *s, struct symbol_files *files, uint64_t address)
{
    static char text[200];
    struct symbol_hit hit;
    struct buf name;
    buf_init(&name, 100);
    bool found = symbols_find(s, address, &hit) && symbols_name(s, files, &hit, &name);
    snprintf(text, sizeof text, found ? "%s+%llx" : "(none)", buf_cstr(&name),
             (unsigned long long)(address - hit.start));
    buf_release(&name);
    return text;
}

struct loaded {
    struct symbol_files files; /* the main one alone */
    struct symbols symbols;
};

static void open_file(struct loaded *l, const void *bytes, size_t len)
{
    l->files = (struct symbol_files){0};
    l->files.has[FILE_MAIN] = elf_open_bytes(&l->files.elf[FILE_MAIN], bytes, len, NULL);
    CHECK(l->files.has[FILE_MAIN]);
}

static void load(struct loaded *l, const struct image_symbol *symbols, size_t count)
{
    elf_image_make(&image, symbols, count);
    symbols_init(&l->symbols, 1 << 20);
    open_file(l, image.bytes, image.len);
    CHECK(symbols_load_files(&l->symbols, &l->files, NULL));
}

static void unload(struct loaded *l)
{
    symbols_release(&l->symbols);
    symbol_files_release(&l->files);
}

#define AT(address) at(&l.symbols, &l.files, address)
#define COUNT(list) (sizeof(list) / sizeof(list)[0])

static void ranges(void)
{
    static const struct image_symbol list[] = {
        {"second", 0x2100, 0x10, STB_LOCAL, STT_FUNC, 1},
        {"first", 0x2010, 0x10, STB_GLOBAL, STT_FUNC, 1},
        {"last", 0x2ff0, 0x10, STB_GLOBAL, STT_FUNC, 2},
    };
    struct loaded l;
    load(&l, list, COUNT(list));
    CHECK_TEXT(AT(0x200f), "(none)");
    CHECK_TEXT(AT(0x2010), "first+0");
    CHECK_TEXT(AT(0x201f), "first+f");
    CHECK_TEXT(AT(0x2020), "(none)"); /* a hole between sized functions is no function */
    CHECK_TEXT(AT(0x2100), "second+0");
    CHECK_TEXT(AT(0x2fff), "last+f");
    CHECK_TEXT(AT(0x3000), "(none)");
    CHECK_TEXT(AT(0), "(none)");
    CHECK_TEXT(AT(UINT64_MAX), "(none)");
    unload(&l);
}

static void sizeless(void)
{
    static const struct image_symbol list[] = {
        {"asm_one", 0x2000, 0, STB_LOCAL, STT_NOTYPE, 1},
        {"asm_two", 0x2100, 0, STB_GLOBAL, STT_FUNC, 1},
        {"sized", 0x2200, 0x40, STB_LOCAL, STT_FUNC, 1},
        {"label_within", 0x2210, 0, STB_GLOBAL, STT_NOTYPE, 1},
        {"label_at_start", 0x2200, 0, STB_GLOBAL, STT_NOTYPE, 1},
        {"asm_three", 0x2700, 0, STB_LOCAL, STT_NOTYPE, 1},
        {"other_section", 0x2900, 0, STB_LOCAL, STT_NOTYPE, 2},
    };
    struct loaded l;
    load(&l, list, COUNT(list));
    CHECK_TEXT(AT(0x20ff), "asm_one+ff");
    CHECK_TEXT(AT(0x21ff), "asm_two+ff");
    CHECK_TEXT(AT(0x2200), "sized+0");
    CHECK_TEXT(AT(0x2238), "sized+38");
    CHECK_TEXT(AT(0x2240), "(none)");
    CHECK_TEXT(AT(0x27ff), "asm_three+ff");
    CHECK_TEXT(AT(0x2800), "(none)"); /* ends with its section */
    CHECK_TEXT(AT(0x2fff), "other_section+6ff");
    CHECK_INT(l.symbols.table.len, 5);
    unload(&l);
}

/* A mark before code without symbols, as assembler files have them, names no more than a function's length of it. */
static void untyped(void)
{
    static struct elf_build build;
    static const struct build_symbol list[] = {{"mark", 0x1100, 0, STT_NOTYPE, 1}, {"typed", 0x6000, 0, STT_FUNC, 1}};
    struct loaded l;
    build_start(&build, EM_X86_64);
    build_text(&build);
    build_symbols(&build, SHT_SYMTAB, list, COUNT(list));
    build_end(&build);
    symbols_init(&l.symbols, 1 << 20);
    open_file(&l, build.bytes, build.len);
    CHECK(symbols_load_files(&l.symbols, &l.files, NULL));
    CHECK_TEXT(AT(0x1100 + ELF_UNTYPED_REACH - 1), "mark+3fff");
    CHECK_TEXT(AT(0x1100 + ELF_UNTYPED_REACH), "(none)");
    CHECK_TEXT(AT(0x8fff), "typed+2fff");
    unload(&l);
}

static void nested(void)
{
    static const struct image_symbol list[] = {
        {"outer", 0x2000, 0x100, STB_GLOBAL, STT_FUNC, 1},
        {"inner", 0x2040, 0x20, STB_LOCAL, STT_FUNC, 1},
        {"innermost", 0x2044, 4, STB_LOCAL, STT_FUNC, 1},
        {"after", 0x2100, 8, STB_LOCAL, STT_FUNC, 1},
    };
    struct loaded l;
    load(&l, list, COUNT(list));
    CHECK_TEXT(AT(0x2043), "inner+3");
    CHECK_TEXT(AT(0x2045), "innermost+1");
    CHECK_TEXT(AT(0x2048), "inner+8");
    CHECK_TEXT(AT(0x2060), "outer+60");
    CHECK_TEXT(AT(0x20ff), "outer+ff");
    CHECK_TEXT(AT(0x2108), "(none)");
    unload(&l);
}

static void aliases(void)
{
    static const struct image_symbol list[] = {
        {"local", 0x2000, 8, STB_LOCAL, STT_FUNC, 1},
        {"weak", 0x2000, 8, STB_WEAK, STT_FUNC, 1},
        {"global", 0x2000, 8, STB_GLOBAL, STT_FUNC, 1},
        {"sizeless_global", 0x2010, 0, STB_GLOBAL, STT_FUNC, 1},
        {"sized_local", 0x2010, 8, STB_LOCAL, STT_FUNC, 1},
        {"__libc_malloc", 0x2020, 8, STB_GLOBAL, STT_FUNC, 1},
        {"_malloc", 0x2020, 8, STB_GLOBAL, STT_FUNC, 1},
        {"malloc_with_longer_name", 0x2020, 8, STB_GLOBAL, STT_FUNC, 1},
        {"malloc@@V2", 0x2020, 8, STB_GLOBAL, STT_FUNC, 1},
        {"nalloc", 0x2020, 8, STB_GLOBAL, STT_FUNC, 1},
    };
    struct loaded l;
    load(&l, list, COUNT(list));
    CHECK_TEXT(AT(0x2004), "global+4");
    CHECK_TEXT(AT(0x2014), "sized_local+4");
    CHECK_TEXT(AT(0x2024), "malloc+4");
    unload(&l);
}

static void dynamic_adds(void)
{
    static const struct image_symbol list[] = {
        {"in_symtab", 0x2000, 8, STB_GLOBAL, STT_FUNC, 1},
        {"only_here", 0x2010, 8, STB_GLOBAL, STT_FUNC, 1},
    };
    struct loaded l;
    elf_image_make(&image, list, 2);
    /* the section of data becomes a .dynsym: the same table, but only from its second symbol on */
    memcpy(IMAGE_SECTION(&image, 3, sh_name), IMAGE_SECTION(&image, 4, sh_name),
           sizeof(Elf64_Shdr));
    image_put(IMAGE_SECTION(&image, 3, sh_type), SHT_DYNSYM, 4);
    image_put(IMAGE_SECTION(&image, 4, sh_size), 2 * sizeof(Elf64_Sym), 8);
    symbols_init(&l.symbols, 1 << 20);
    open_file(&l, image.bytes, image.len);
    CHECK(symbols_load_files(&l.symbols, &l.files, NULL));
    CHECK_INT(l.symbols.table.len, 2);
    CHECK_TEXT(AT(0x2004), "in_symtab+4");
    CHECK_TEXT(AT(0x2014), "only_here+4");
    unload(&l);
}

static void refusals(void)
{
    struct loaded l;
    struct err err = {0};
    static const struct image_symbol data = {"data", 0x2000, 8, STB_GLOBAL, STT_OBJECT, 3};
    static const struct image_symbol three[] = {{"a", 0x2000, 8, STB_GLOBAL, STT_FUNC, 1},
                                                {"b", 0x2010, 8, STB_GLOBAL, STT_FUNC, 1},
                                                {"c", 0x2020, 8, STB_GLOBAL, STT_FUNC, 1}};
    elf_image_make(&image, &data, 1);
    symbols_init(&l.symbols, 1 << 20);
    open_file(&l, image.bytes, image.len);
    CHECK(!symbols_load_files(&l.symbols, &l.files, &err) && err.kind == ERR_UNSUPPORTED);
    symbol_files_release(&l.files);
    elf_image_make(&image, three, 3);
    symbols_init(&l.symbols, 2 * sizeof(struct symbol));
    open_file(&l, image.bytes, image.len);
    CHECK(!symbols_load_files(&l.symbols, &l.files, &err) && err.kind == ERR_LIMIT);
    CHECK_INT(symbols_bytes(&l.symbols), 0);
    CHECK_TEXT(AT(0x2000), "(none)");
    symbol_files_release(&l.files);
    image_put(IMAGE_SEGMENT(&image, 1, p_memsz), UINT64_C(5) << 30, 8);
    open_file(&l, image.bytes, image.len);
    CHECK(!symbols_load_files(&l.symbols, &l.files, &err) && err.kind == ERR_LIMIT);
    unload(&l);
}

/* A table of which a tenth fits: every wanted address, and every other of which the table says that it knows, has the
 * symbol that the whole table has there. */
static void few_of_many(void)
{
    enum { MANY = 250, WANTED = 12 };
    static struct image_symbol many[MANY];
    static char names[MANY][8];
    uint64_t seed = 1, known = 0;
    for (int round = 0; round < 40; round++) {
        for (size_t i = 0; i < MANY; i++) {
            seed = seed * 6364136223846793005u + 1442695040888963407u;
            snprintf(names[i], sizeof names[i], "f%zu", i);
            uint64_t at = 0x2000 + i * 16 + (seed >> 33) % 16, kind = seed >> 60;
            many[i] = (struct image_symbol){names[i], at, kind < 4 ? 0 : kind < 14 ? 1 + (seed >> 40) % 24 : 300,
                                            STB_LOCAL, kind % 2 ? STT_FUNC : STT_NOTYPE, at < 0x2800 ? 1 : 2};
            if (i > 0 && (seed >> 50) % 4 == 0) { /* an alias */
                many[i] = many[i - 1];
                many[i].name = names[i];
                many[i].bind = (seed >> 55) % 2;
            }
        }
        struct loaded l, all;
        uint64_t wanted[WANTED];
        load(&all, many, MANY);
        for (size_t i = 0; i < WANTED; i++) {
            wanted[i] = 0x1ff8 + i * 0x158 + (uint64_t)round * 8;
        }
        wanted[5] = wanted[4]; /* frames may share an address */
        symbols_init(&l.symbols, 60 * sizeof(struct symbol));
        open_file(&l, image.bytes, image.len);
        symbols_want(&l.symbols, wanted, WANTED);
        CHECK(symbols_load_files(&l.symbols, &l.files, NULL) && l.symbols.is_few && !all.symbols.is_few);
        for (size_t i = 0; i < WANTED; i++) {
            CHECK(symbols_knows(&l.symbols, wanted[i]) == (wanted[i] >= 0x2000));
        }
        for (uint64_t address = 0x1ff0; address < 0x3010; address++) {
            char expected[200];
            snprintf(expected, sizeof expected, "%s", at(&all.symbols, &all.files, address));
            bool knows = symbols_knows(&l.symbols, address);
            CHECK_TEXT(AT(address), knows ? expected : "(none)");
            known += knows;
        }
        unload(&l);
        unload(&all);
    }
    CHECK(known > 40 * 100);
}

static bool read_fd(void *context, uint64_t address, void *out, size_t len, struct err *err)
{
    return pread((int)(intptr_t)context, out, len, (off_t)address) == (ssize_t)len ||
           err_set(err, ERR_IO, 0, "short read");
}

static void c_library(void)
{
    int fd = open("/lib/x86_64-linux-gnu/libc.so.6", O_RDONLY);
    fd = fd >= 0 ? fd : open("/lib/aarch64-linux-gnu/libc.so.6", O_RDONLY);
    if (fd < 0) {
        SKIP("no C library where Debian has it");
    }
    struct memory_reader file = {read_fd, (void *)(intptr_t)fd};
    struct loaded l;
    symbols_init(&l.symbols, 1 << 20);
    CHECK(symbol_files_open(&l.files, &file, 0, NULL, NULL) && symbols_load_files(&l.symbols, &l.files, NULL));
    CHECK(l.symbols.table.len > 1000);
    CHECK(symbols_bytes(&l.symbols) <= 12 * l.symbols.table.len);
    uint64_t before = 0;
    vec_each(&l.symbols.table, s) {
        CHECK(s->start >= before);
        before = s->start;
    }
    unload(&l);
    close(fd);
}

/* ---- the namer ---- */

/* Image 1 is an ELF in memory, 2 the kernel's text, 3 cannot be opened, 4 is no ELF. */
struct fake_source {
    unsigned opens, closes;
    bool broken; /* nothing opens any more */
    struct str elf;
    const char *kernel;
    size_t kernel_at;
};

static bool read_elf(void *context, uint64_t address, void *out, size_t len, struct err *err)
{
    const struct fake_source *fake = context;
    if (address > fake->elf.len || len > fake->elf.len - address) {
        return err_set(err, ERR_IO, 0, "end of the file");
    }
    memcpy(out, fake->elf.ptr + address, len);
    return true;
}

static bool read_kernel(void *context, void *out, size_t max, size_t *len, struct err *err)
{
    struct fake_source *fake = context;
    (void)err;
    *len = strlen(fake->kernel + fake->kernel_at);
    *len = *len < max ? *len : max;
    *len = *len < 10 ? *len : 10;
    memcpy(out, fake->kernel + fake->kernel_at, *len);
    fake->kernel_at += *len;
    return true;
}

static bool fake_open(void *context, uint64_t key, struct symbol_image *out, struct err *err)
{
    struct fake_source *fake = context;
    if (fake->broken || key == 3) {
        return err_set(err, ERR_GONE, 0, "the file is gone");
    }
    fake->opens++;
    fake->kernel_at = 0;
    *out = (struct symbol_image){
        .kind = key == 2 ? SYMBOL_IMAGE_KALLSYMS : SYMBOL_IMAGE_ELF,
        .file = {read_elf, fake},
        .text = read_kernel,
        .text_context = fake,
    };
    fake->elf = key == 4 ? STR("#!/bin/sh\n------------------------------------------------------")
                         : (struct str){(const char *)image.bytes, image.len};
    return true;
}

static void fake_close(void *context, struct symbol_image *source)
{
    (void)source;
    ((struct fake_source *)context)->closes++;
}

static uint32_t add_module(struct profile *p, const char *path, uint64_t key)
{
    struct module m = {.path = profile_cstring(p, path), .image = key};
    return profile_module(p, &m);
}

static uint32_t add_frame(struct profile *p, uint32_t module, uint64_t address,
                          enum frame_kind kind)
{
    struct frame f = {.address = address, .module = module, .kind = (uint8_t)kind};
    return profile_frame(p, &f);
}

#define NAME(frame) profile_text(&p, p.frames.at[frame].name)
#define SYSTEM_NAME(frame) profile_text(&p, p.frames.at[frame].system_name)

static const struct image_symbol program[] = {
    {"main", 0x2000, 0x100, STB_GLOBAL, STT_FUNC, 1},
    {"_ZN3foo3barEi.part.0", 0x2100, 0x100, STB_LOCAL, STT_FUNC, 1},
};

static void names_of_a_profile(void)
{
    struct fake_source fake = {.kernel = "ffffffff81000000 T do_syscall_64\n"};
    struct symbol_source source = {.open = fake_open, .close = fake_close, .context = &fake};
    struct namer n;
    struct profile p;
    elf_image_make(&image, program, COUNT(program));
    namer_init(&n, &source, 1 << 20);
    CHECK(profile_init(&p, 1 << 20, NULL));
    for (int run = 0; run < 2; run++) {
        uint32_t app = add_module(&p, "/usr/bin/app", 1), kernel = add_module(&p, "[kernel]", 2);
        uint32_t gone = add_module(&p, "/tmp/x/gone.so", 3);
        uint32_t script = add_module(&p, "/bin/script", 4);
        uint32_t anon = add_module(&p, "//anon", 0);
        uint32_t f[] = {
            add_frame(&p, app, 0x2010, FRAME_NATIVE), add_frame(&p, app, 0x20ff, FRAME_NATIVE),
            add_frame(&p, app, 0x2100, FRAME_NATIVE), add_frame(&p, app, 0x2abc, FRAME_NATIVE),
            add_frame(&p, kernel, 0xffffffff81000010, FRAME_KERNEL),
            add_frame(&p, gone, 0x1234, FRAME_NATIVE), add_frame(&p, script, 0x40, FRAME_NATIVE),
            add_frame(&p, anon, 0x7f0000001000, FRAME_NATIVE), add_frame(&p, 0, 0x55, FRAME_NATIVE),
            add_frame(&p, 0, 0xffffffff81000011, FRAME_KERNEL)};
        struct frame python = {.name = profile_cstring(&p, "f (a.py)"), .kind = FRAME_PYTHON};
        uint32_t named = profile_frame(&p, &python);
        CHECK(namer_run(&n, &p, NULL));
        CHECK_STR(NAME(f[0]), "main");
        CHECK_STR(SYSTEM_NAME(f[0]), "");
        CHECK_STR(NAME(f[1]), "main");
        CHECK_STR(NAME(f[2]), "foo::bar");
        CHECK_STR(SYSTEM_NAME(f[2]), "_ZN3foo3barEi.part.0");
        CHECK_STR(NAME(f[3]), "[app]");
        CHECK_STR(NAME(f[4]), "do_syscall_64");
        CHECK_STR(NAME(f[5]), "[gone.so]");
        CHECK_STR(NAME(f[6]), "[script]");
        CHECK_STR(NAME(f[7]), "[anon]");
        CHECK_STR(NAME(f[8]), "[unknown]");
        CHECK_STR(NAME(f[9]), "[kernel]");
        CHECK_STR(NAME(named), "f (a.py)");
        CHECK_STR(profile_text(&p, p.modules.at[app].build_id), "deadbeef");
        CHECK_INT(p.modules.at[gone].build_id, 0);
        struct namer_problem problem;
        int told = 0;
        for (; namer_next_problem(&n, &problem); told++) {
            CHECK(problem.image == 3 || problem.image == 4);
            CHECK_TEXT(problem.why, problem.image == 3 ? "the file is gone" : "not an ELF file");
            CHECK(!problem.has_symbols);
        }
        CHECK_INT(told, run == 0 ? 2 : 0);
        profile_clear(&p);
    }
    CHECK_INT(fake.opens, fake.closes);
    CHECK_INT(fake.opens, 3); /* each once: the second run had its table */
    profile_release(&p);
    namer_release(&n);
}

static void hidden_kernel(void)
{
    struct fake_source fake = {.kernel = "0000000000000000 T do_syscall_64\n"};
    struct symbol_source source = {.open = fake_open, .close = fake_close, .context = &fake};
    struct namer n;
    struct profile p;
    namer_init(&n, &source, 1 << 20);
    CHECK(profile_init(&p, 1 << 20, NULL));
    uint32_t kernel = add_module(&p, "[kernel]", 2);
    uint32_t a = add_frame(&p, kernel, 0xffffffff81000010, FRAME_KERNEL);
    uint32_t b = add_frame(&p, kernel, 0xffffffff81000020, FRAME_KERNEL);
    CHECK(namer_run(&n, &p, NULL));
    CHECK_STR(NAME(a), "[kernel]");
    CHECK_INT(p.frames.at[a].name, p.frames.at[b].name);
    struct namer_problem problem = {0};
    CHECK(namer_next_problem(&n, &problem));
    CHECK_INT(problem.image, 2);
    CHECK(strstr(problem.why, "kptr_restrict") != NULL);
    profile_release(&p);
    namer_release(&n);
}

/* The first run loads what it asks for, the first that asks for more all there is. */
static void kernel_by_need(void)
{
    struct fake_source fake = {.kernel = "ffffffff81000000 T first\nffffffff81000100 t second\n"
                                         "ffffffff81000200 T third\n"};
    struct symbol_source source = {.open = fake_open, .close = fake_close, .context = &fake};
    struct namer n;
    struct profile p;
    namer_init(&n, &source, 1 << 20);
    CHECK(profile_init(&p, 1 << 20, NULL));
    static const struct {
        uint64_t address;
        const char *name;
        int opens; /* so far */
    } runs[] = {{0xffffffff81000110, "second", 1}, {0xffffffff81000120, "second", 1},
                {0xffffffff81000010, "first", 2},  {0xffffffff81000210, "third", 3},
                {0xffffffff80000000, "[kernel]", 3}};
    for (size_t i = 0; i < COUNT(runs); i++) {
        uint32_t kernel = add_module(&p, "[kernel]", 2);
        uint32_t frame = add_frame(&p, kernel, runs[i].address, FRAME_KERNEL);
        CHECK(namer_run(&n, &p, NULL));
        CHECK_STR(NAME(frame), runs[i].name);
        CHECK_INT(fake.opens, runs[i].opens);
        profile_clear(&p);
    }
    CHECK_INT(fake.closes, fake.opens);
    CHECK_INT(fake.kernel_at, 0); /* opened, and not read again */
    namer_release(&n);

    /* an address that no function has is not looked for twice */
    namer_init(&n, &source, 1 << 20);
    fake.opens = 0;
    uint32_t kernel = add_module(&p, "[kernel]", 2);
    uint32_t nowhere = add_frame(&p, kernel, 0xffffffff80000000, FRAME_KERNEL);
    uint32_t known = add_frame(&p, kernel, 0xffffffff81000210, FRAME_KERNEL);
    CHECK(namer_run(&n, &p, NULL));
    CHECK_STR(NAME(nowhere), "[kernel]");
    CHECK_STR(NAME(known), "third");
    CHECK_INT(fake.opens, 1);

    /* the rest cannot be had: what is known stays */
    profile_clear(&p);
    fake.kernel = "0000000000000000 T first\n";
    kernel = add_module(&p, "[kernel]", 2);
    uint32_t fresh = add_frame(&p, kernel, 0xffffffff81000010, FRAME_KERNEL);
    known = add_frame(&p, kernel, 0xffffffff81000220, FRAME_KERNEL);
    struct namer_problem problem = {0};
    CHECK(!namer_next_problem(&n, &problem));
    CHECK(namer_run(&n, &p, NULL));
    CHECK_STR(NAME(fresh), "[kernel]");
    CHECK_STR(NAME(known), "third");
    CHECK(namer_next_problem(&n, &problem) && strstr(problem.why, "kptr_restrict") != NULL);
    profile_release(&p);
    namer_release(&n);
}

static void file_lost_later(void)
{
    struct fake_source fake = {0};
    struct symbol_source source = {.open = fake_open, .close = fake_close, .context = &fake};
    struct namer n;
    struct profile p;
    elf_image_make(&image, program, COUNT(program));
    namer_init(&n, &source, 1 << 20);
    CHECK(profile_init(&p, 1 << 20, NULL));
    uint32_t app = add_module(&p, "/usr/bin/app", 1);
    (void)add_frame(&p, app, 0x2010, FRAME_NATIVE);
    CHECK(namer_run(&n, &p, NULL));
    profile_clear(&p);
    fake.broken = true;
    app = add_module(&p, "/usr/bin/app", 1);
    uint32_t known = add_frame(&p, app, 0x2020, FRAME_NATIVE);
    uint32_t fresh = add_frame(&p, app, 0x2110, FRAME_NATIVE);
    CHECK(namer_run(&n, &p, NULL));
    CHECK_STR(NAME(known), "main");
    CHECK_STR(NAME(fresh), "[app]");
    profile_release(&p);
    namer_release(&n);
}

/* Every image key below 1000 is the same file here; each has its own table. */
static bool open_many(void *context, uint64_t key, struct symbol_image *out, struct err *err)
{
    return fake_open(context, key == 0 ? 3 : 1, out, err);
}

static void bounded_memory(void)
{
    static struct image_symbol many[200];
    static char names[200][12];
    for (size_t i = 0; i < COUNT(many); i++) {
        snprintf(names[i], sizeof names[i], "f%zu", i);
        many[i] = (struct image_symbol){names[i], 0x2000 + i * 16, 16, STB_GLOBAL, STT_FUNC, 1};
    }
    struct fake_source fake = {0};
    struct symbol_source source = {.open = open_many, .close = fake_close, .context = &fake};
    struct namer n;
    struct profile p;
    const size_t max_bytes = 64 * 1024;
    elf_image_make(&image, many, COUNT(many));
    namer_init(&n, &source, max_bytes);
    CHECK(profile_init(&p, 8 << 20, NULL));
    for (uint64_t key = 10; key < 110; key++) {
        char path[40];
        snprintf(path, sizeof path, "/lib/%d.so", (int)key);
        uint32_t module = add_module(&p, path, key);
        for (size_t i = 0; i < COUNT(many); i++) {
            (void)add_frame(&p, module, 0x2008 + i * 16, FRAME_NATIVE);
        }
    }
    CHECK(namer_run(&n, &p, NULL));
    CHECK(n.images.len * COUNT(many) * sizeof(struct symbol) <= max_bytes);
    CHECK(n.name_text.cap <= max_bytes);
    for (size_t i = 1; i < p.frames.len; i++) {
        CHECK_STR(NAME(i), names[(p.frames.at[i].address - 0x2000) / 16]);
    }
    profile_release(&p);
    namer_release(&n);
}

/* Functions of 4 bytes, not all of which have room. */
static void too_large_a_table(void)
{
    static struct image_symbol many[490];
    static char names[490][5];
    for (size_t i = 0; i < COUNT(many); i++) {
        snprintf(names[i], sizeof names[i], "f%d", (int)(i % 1000));
        many[i] = (struct image_symbol){names[i], 0x2000 + i * 4, 4, STB_GLOBAL, STT_FUNC, 1};
    }
    struct fake_source fake = {0};
    struct symbol_source source = {.open = fake_open, .close = fake_close, .context = &fake};
    struct namer n;
    struct profile p;
    elf_image_make(&image, many, COUNT(many));
    namer_init(&n, &source, 7000);
    CHECK(profile_init(&p, 1 << 20, NULL));
    /* a run may ask for more than the one before, for what it knows, or when the file has gone */
    static const size_t asked[][3] = {{3, 50, 200}, {3, 50, 51}, {51, 3, 50}, {7, 8, 9}};
    for (size_t run = 0; run < COUNT(asked); run++) {
        uint32_t app = add_module(&p, "/usr/bin/app", 1), f[3];
        for (size_t i = 0; i < 3; i++) {
            f[i] = add_frame(&p, app, 0x2000 + asked[run][i] * 4 + run, FRAME_NATIVE);
        }
        uint32_t nowhere = add_frame(&p, app, 0x2fff, FRAME_NATIVE);
        fake.broken = run == 3;
        CHECK(namer_run(&n, &p, NULL));
        for (size_t i = 0; i < 3; i++) {
            CHECK_STR(NAME(f[i]), run == 3 ? "[app]" : names[asked[run][i]]);
        }
        CHECK_STR(NAME(nowhere), "[app]");
        profile_clear(&p);
    }
    CHECK_INT(fake.opens, fake.closes);
    profile_release(&p);
    namer_release(&n);
}

static void full_profile(void)
{
    struct fake_source fake = {0};
    struct symbol_source source = {.open = fake_open, .close = fake_close, .context = &fake};
    struct namer n;
    struct profile p;
    struct err err = {0};
    namer_init(&n, &source, 1 << 20);
    CHECK(profile_init(&p, 4096, NULL));
    while (add_frame(&p, 0, 0x1000 + p.frames.len, FRAME_NATIVE) != 0) {
    }
    CHECK(!namer_run(&n, &p, &err) && err.kind == ERR_LIMIT);
    profile_release(&p);
    namer_release(&n);
}

TESTS({"an address is within a function or in none", ranges},
      {"a symbol without size reaches to the next, never into or out of another's place", sizeless},
      {"a mark without a size does not name all of the assembler code behind it", untyped},
      {"within nested functions the inner one wins", nested},
      {"of several names of one function the most telling wins", aliases},
      {"dynamic symbols add what the full table lacks", dynamic_adds},
      {"tables that are empty or too large are refused with the reason", refusals},
      {"of a table that does not fit the wanted addresses have their functions", few_of_many},
      {"the C library takes 12 bytes per function and is in order", c_library},
      {"every frame gets a name: its symbol, or its place", names_of_a_profile},
      {"a kernel that hides its symbols is one frame, with the reason", hidden_kernel},
      {"a second run gets the rest of the kernel, a third finds it there", kernel_by_need},
      {"a file lost later leaves the names already made", file_lost_later},
      {"many images stay within the memory they are given", bounded_memory},
      {"a table that does not fit leaves no frame without its name, in any window", too_large_a_table},
      {"a profile without room says so", full_profile})
