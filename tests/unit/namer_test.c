/* src/symbol/namer: Go tables, DWARF, generated code and places; names by symbol are in
 * symbol_test.c. */
#include "symbol/namer.h"

#include <sys/mman.h>
#include <unistd.h>

#include "base/time.h"
#include "capture/code.h"
#include "dwarf_image.h"
#include "inlined_frame.h"
#include "os/clock.h"
#include "os/proc.h"
#include "os/sandbox.h"
#include "test.h"

enum { KEY_PROGRAM = 10, KEY_JIT, KEY_GONE };

struct bench {
    struct dwarf_image image, shared;
    struct jit_names *names;
    struct symbol_source source;
    struct debug_source debug;
    struct clock clock;
    struct sandbox sandbox;
    unsigned opens, closes, debug_opens, debug_closes;
    struct namer namer;
    struct profile p;
    uint32_t program, generated;
};

/* The bytes as an open file, since a process of its own reads some of them. */
static int file_of(const struct buf *bytes)
{
    int fd = memfd_create("image", MFD_CLOEXEC);
    CHECK(fd >= 0 && write(fd, bytes->ptr, bytes->len) == (ssize_t)bytes->len);
    return fd;
}

static bool open_image(void *context, uint64_t key, struct symbol_image *out, struct err *err)
{
    struct bench *b = context;
    if (key == KEY_GONE) {
        return err_set(err, ERR_GONE, 0, "the file is gone");
    }
    b->opens++;
    int fd = file_of(&b->image.file);
    *out = (struct symbol_image){.kind = key == KEY_JIT ? SYMBOL_IMAGE_GENERATED : SYMBOL_IMAGE_ELF,
                                 .file = proc_file_reader(fd),
                                 .handle = (void *)(intptr_t)fd};
    code_of_generated(runtimes, key == KEY_JIT ? b->names : NULL, &out->code);
    return true;
}

static void close_image(void *context, struct symbol_image *image)
{
    code_source_close(&image->code);
    close((int)(intptr_t)image->handle);
    ((struct bench *)context)->closes++;
}

/* The only debug file is the alternate one, in our own root. */
static bool open_debug(void *context, uint64_t image, const char *path, struct memory_reader *out,
                       void **handle)
{
    struct bench *b = context;
    CHECK_INT(image, KEY_PROGRAM);
    if (strcmp(path, "/usr/lib/debug/.build-id/de/adbeef.debug") != 0) {
        return false;
    }
    b->debug_opens++;
    int fd = file_of(&b->shared.file);
    *out = proc_file_reader(fd);
    *handle = (void *)(intptr_t)fd;
    return true;
}

static void close_debug(void *context, void *handle)
{
    close((int)(intptr_t)handle);
    ((struct bench *)context)->debug_closes++;
}

static struct str debug_path(void *context, uint64_t image)
{
    (void)context;
    (void)image;
    return STR("/usr/bin/app");
}

/* Unwind tables know one function, 0x1900 … 0x1a00. */
static bool find_function(void *context, uint64_t image, uint64_t address, uint64_t *start,
                          uint64_t *limit)
{
    (void)context;
    *start = 0x1900;
    *limit = 0x1a00;
    return image == KEY_PROGRAM && address >= *start && address < *limit;
}

static uint32_t add_module(struct profile *p, const char *path, uint64_t key)
{
    struct module m = {.path = profile_cstring(p, path), .image = key};
    return profile_module(p, &m);
}

static struct bench *set_up(unsigned version)
{
    struct bench *b = calloc(1, sizeof *b);
    dwarf_image_init(&b->image);
    dwarf_image_init(&b->shared);
    if (version > 0) {
        dwarf_image_fill(&b->image, version);
    }
    b->source = (struct symbol_source){.open = open_image, .close = close_image, .context = b};
    b->debug = (struct debug_source){
        .open = open_debug, .close = close_debug, .path = debug_path, .context = b};
    b->clock = clock_system();
    b->sandbox = sandbox_system(128 << 20);
    namer_init(&b->namer, &b->source, 1 << 20);
    b->namer.clock = &b->clock;
    b->namer.inlines = true;
    b->namer.sandbox = &b->sandbox;
    b->namer.inlines_budget_ns = 20 * NS_PER_S;
    CHECK(profile_init(&b->p, 1 << 20, NULL));
    b->program = add_module(&b->p, "/usr/bin/app", KEY_PROGRAM);
    b->generated = add_module(&b->p, "[anon]", KEY_JIT);
    return b;
}

static void tear_down(struct bench *b)
{
    CHECK_INT(b->opens, b->closes);
    CHECK_INT(b->debug_opens, b->debug_closes);
    namer_release(&b->namer);
    profile_release(&b->p);
    jit_names_free(b->names);
    dwarf_image_release(&b->image);
    dwarf_image_release(&b->shared);
    free(b);
}

static uint32_t add_frame(struct bench *b, uint32_t module, uint64_t address)
{
    struct frame f = {.address = address, .module = module};
    return profile_frame(&b->p, &f);
}

#define NAME(frame) profile_text(&b->p, b->p.frames.at[frame].name)
#define SYSTEM_NAME(frame) profile_text(&b->p, b->p.frames.at[frame].system_name)
#define FILE_OF(frame) profile_text(&b->p, b->p.frames.at[frame].file)

/* ---- DWARF ---- */

static void inlined_functions_are_named(void)
{
    struct bench *b = set_up(4);
    dwarf_image_symbol(&b->image, "_Z5outeri", 0x1000, 0x100);
    dwarf_image_make(&b->image);
    uint32_t leaf = add_frame(b, b->program, 0x1024), outer = add_frame(b, b->program, 0x1050);
    uint32_t plain = add_frame(b, b->program, 0x1110);
    CHECK(namer_run(&b->namer, &b->p, NULL));
    /* the last one by its symbol, the others by DWARF; _Z4leafv is readable as "leaf" */
    CHECK_TEXT(inlined_text(&b->p, leaf), "leaf:40@/inc/b.h < middle:7@/inc/b.h < "
                                          "outer:20@/src/a.c");
    CHECK_STR(SYSTEM_NAME(leaf), "_Z4leafv");
    CHECK_STR(SYSTEM_NAME(outer), "_Z5outeri");
    CHECK_TEXT(inlined_text(&b->p, outer), "outer:21@/src/a.c");
    CHECK_TEXT(inlined_text(&b->p, plain), "plain:50@/src/a.c"); /* no symbol: DWARF's name */
    tear_down(b);
}

static void without_the_option_dwarf_is_not_read(void)
{
    for (int with_clock = 0; with_clock < 2; with_clock++) {
        struct bench *b = set_up(5);
        dwarf_image_symbol(&b->image, "outer_symbol", 0x1000, 0x100);
        dwarf_image_make(&b->image);
        b->namer.inlines = with_clock == 0;
        b->namer.clock = with_clock ? &b->clock : NULL;
        uint32_t leaf = add_frame(b, b->program, 0x1024);
        uint32_t plain = add_frame(b, b->program, 0x1110);
        CHECK(namer_run(&b->namer, &b->p, NULL));
        CHECK_TEXT(inlined_text(&b->p, leaf), "outer_symbol:0@");
        CHECK_TEXT(inlined_text(&b->p, plain), "[app]:0@");
        tear_down(b);
    }
}

static void when_time_is_over_there_still_are_symbols(void)
{
    struct bench *b = set_up(5);
    dwarf_image_symbol(&b->image, "outer_symbol", 0x1000, 0x100);
    dwarf_image_make(&b->image);
    b->namer.inlines_budget_ns = 0;
    uint32_t first = add_frame(b, b->program, 0x1010), second = add_frame(b, b->program, 0x1024);
    CHECK(namer_run(&b->namer, &b->p, NULL));
    CHECK_TEXT(inlined_text(&b->p, first), "outer_symbol:0@");
    CHECK_TEXT(inlined_text(&b->p, second), "outer_symbol:0@");
    /* the budget is each run's own */
    b->namer.inlines_budget_ns = 20 * NS_PER_S;
    profile_clear(&b->p);
    uint32_t module = add_module(&b->p, "/usr/bin/app", KEY_PROGRAM);
    uint32_t again = add_frame(b, module, 0x1010);
    CHECK(namer_run(&b->namer, &b->p, NULL));
    CHECK_TEXT(inlined_text(&b->p, again), "middle:30@/inc/b.h < outer_symbol:20@/src/a.c");
    tear_down(b);
}

static void crash(void *argument, const struct sandbox_port *port)
{
    (void)argument;
    (void)port;
    _exit(77);
}

static unsigned starts;

static void *start_crash(void *context, void (*run)(void *argument, const struct sandbox_port *port), void *argument,
                         struct err *err)
{
    (void)run;
    starts++;
    return sandbox_system(128 << 20).start(context, crash, argument, err);
}

static void *start_nothing(void *context, void (*run)(void *argument, const struct sandbox_port *port),
                           void *argument, struct err *err)
{
    (void)context;
    (void)run;
    (void)argument;
    starts++;
    err_set(err, ERR_LIMIT, 0, "no process");
    return NULL;
}

/* Symbols remain, it is told once, and nobody tries again. */
static void without_a_reader_there_still_are_symbols(void)
{
    static const char *const why[] = {"the reader of its debug information crashed", "no process"};
    for (int refused = 0; refused < 2; refused++) {
        struct bench *b = set_up(4);
        struct namer_problem problem;
        dwarf_image_symbol(&b->image, "outer_symbol", 0x1000, 0x100);
        dwarf_image_make(&b->image);
        b->sandbox.start = refused ? start_nothing : start_crash;
        starts = 0;
        for (int run = 0; run < 2; run++) {
            uint32_t module = add_module(&b->p, "/usr/bin/app", KEY_PROGRAM);
            uint32_t leaf = add_frame(b, module, 0x1024), outer = add_frame(b, module, 0x1050);
            CHECK(namer_run(&b->namer, &b->p, NULL));
            CHECK_TEXT(inlined_text(&b->p, leaf), "outer_symbol:0@");
            CHECK_TEXT(inlined_text(&b->p, outer), "outer_symbol:0@");
            CHECK(namer_next_problem(&b->namer, &problem) == (run == 0));
            CHECK(problem.is_of_lines && problem.has_symbols);
            CHECK_TEXT(problem.why, why[refused]);
            CHECK_INT(starts, 1);
            profile_clear(&b->p);
        }
        tear_down(b);
    }
}

static void names_that_dwz_moved_are_found(void)
{
    struct bench *b = set_up(0);
    dwarf_image_fill_shared(&b->image, &b->shared);
    dwarf_image_make(&b->image);
    dwarf_image_identify(&b->shared);
    b->namer.debug = &b->debug;
    uint32_t f = add_frame(b, b->program, 0x1010);
    CHECK(namer_run(&b->namer, &b->p, NULL));
    CHECK_STR(NAME(f), "far");
    CHECK_STR(SYSTEM_NAME(f), "_Z3fari12");
    CHECK_INT(b->debug_opens, 1);
    tear_down(b);
}

static void a_profile_without_room_says_so(void)
{
    for (size_t budget = 600; budget < 3000; budget += 50) {
        struct bench *b = set_up(5);
        struct err err = {0};
        dwarf_image_make(&b->image);
        profile_release(&b->p);
        CHECK(profile_init(&b->p, budget, NULL));
        uint32_t module = add_module(&b->p, "/usr/bin/app", KEY_PROGRAM);
        uint32_t f = add_frame(b, module, 0x1024);
        bool good = namer_run(&b->namer, &b->p, &err);
        CHECK(f == 0 || good == (NAME(f).len > 0));
        CHECK(good || err.kind == ERR_LIMIT);
        tear_down(b);
    }
}

/* ---- places ---- */

static void all_of_a_function_without_a_symbol_is_one_name(void)
{
    struct bench *b = set_up(0);
    dwarf_image_make(&b->image);
    uint32_t gone = add_module(&b->p, "/lib/gone.so", KEY_GONE);
    uint32_t in[] = {add_frame(b, b->program, 0x1900), add_frame(b, b->program, 0x19ff),
                     add_frame(b, b->program, 0x1a00), add_frame(b, gone, 0x1910),
                     add_frame(b, 0, 0x1910)};
    b->source.function = find_function;
    CHECK(namer_run(&b->namer, &b->p, NULL));
    CHECK_STR(NAME(in[0]), "[app+0x1900]");
    CHECK_STR(NAME(in[1]), "[app+0x1900]");
    CHECK_STR(NAME(in[2]), "[app]");
    CHECK_STR(NAME(in[3]), "[gone.so]");
    CHECK_STR(NAME(in[4]), "[unknown]");
    struct namer_problem problem = {0};
    CHECK(namer_next_problem(&b->namer, &problem));
    CHECK_INT(problem.image, KEY_PROGRAM);
    CHECK_TEXT(problem.why, "the file has no function symbols");
    CHECK(namer_next_problem(&b->namer, &problem));
    CHECK_INT(problem.image, KEY_GONE);
    CHECK_TEXT(problem.why, "the file is gone");
    CHECK(!problem.has_symbols);
    CHECK(!namer_next_problem(&b->namer, &problem)); /* each once */
    tear_down(b);
}

static void a_symbol_without_a_size_ends_where_another_function_begins(void)
{
    struct bench *b = set_up(0);
    dwarf_image_symbol(&b->image, "label", 0x1800, 0);
    dwarf_image_symbol(&b->image, "within", 0x1980, 0);
    dwarf_image_make(&b->image);
    b->source.function = find_function;
    uint32_t in[] = {add_frame(b, b->program, 0x1810), add_frame(b, b->program, 0x1910),
                     add_frame(b, b->program, 0x1990), add_frame(b, b->program, 0x1a10)};
    CHECK(namer_run(&b->namer, &b->p, NULL));
    CHECK_STR(NAME(in[0]), "label");
    CHECK_STR(NAME(in[1]), "[app+0x1900]");
    CHECK_STR(NAME(in[2]), "within");
    CHECK_STR(NAME(in[3]), "within");
    tear_down(b);
}

static void what_is_at_hand_opens_no_file(void)
{
    struct bench *b = set_up(0);
    dwarf_image_symbol(&b->image, "outer", 0x1000, 0x100);
    dwarf_image_symbol(&b->image, "other", 0x1100, 0x100);
    dwarf_image_make(&b->image);
    b->namer.inlines = false;
    static const uint64_t addresses[] = {0x1010, 0x1020, 0x1110};
    static const unsigned opens[] = {1, 1, 2}; /* only a name not met yet is read */
    for (int run = 0; run < 3; run++) {
        uint32_t module = add_module(&b->p, "/usr/bin/app", KEY_PROGRAM);
        uint32_t f = add_frame(b, module, addresses[run]);
        CHECK(namer_run(&b->namer, &b->p, NULL));
        CHECK_STR(NAME(f), run < 2 ? "outer" : "other");
        CHECK_INT(b->opens, opens[run]);
        profile_clear(&b->p);
    }
    tear_down(b);
}

static void what_dwarf_told_is_kept(void)
{
    struct bench *b = set_up(4);
    dwarf_image_symbol(&b->image, "outer_symbol", 0x1000, 0x100);
    dwarf_image_make(&b->image);
    for (int run = 0; run < 3; run++) {
        uint32_t module = add_module(&b->p, "/usr/bin/app", KEY_PROGRAM);
        uint32_t leaf = add_frame(b, module, 0x1024), nothing = add_frame(b, module, 0x1f00);
        CHECK(namer_run(&b->namer, &b->p, NULL));
        CHECK_TEXT(inlined_text(&b->p, leaf), "leaf:40@/inc/b.h < middle:7@/inc/b.h < "
                                              "outer_symbol:20@/src/a.c");
        CHECK_STR(SYSTEM_NAME(leaf), "_Z4leafv");
        CHECK_STR(NAME(nothing), "[app]");
        CHECK_INT(b->opens, 1); /* it is known of both, also that there is nothing */
        profile_clear(&b->p);
    }
    uint32_t module = add_module(&b->p, "/usr/bin/app", KEY_PROGRAM);
    (void)add_frame(b, module, 0x1025);
    CHECK(namer_run(&b->namer, &b->p, NULL));
    CHECK_INT(b->opens, 2);
    tear_down(b);
}

/* 5,000 addresses of 100 images in room for a few hundred: kept right, or not at all. */
static void what_is_kept_stays_within_its_room(void)
{
    enum { MAX_BYTES = 32 * 1024 };
    struct kept_lines k;
    struct source_line out[PROFILE_INLINES_MAX];
    char name[32], file[32];
    size_t count, found = 0;
    kept_lines_init(&k, MAX_BYTES);
    for (uint64_t i = 0; i < 5000; i++) {
        snprintf(name, sizeof name, "function_%d", (int)(i % 700));
        snprintf(file, sizeof file, "/src/%d.c", (int)(i % 30));
        struct source_line lines[2] = {
            {.name = str_of(name), .file = str_of(file), .line = (uint32_t)i},
            {.name = STR("main"), .system_name = str_of(name)}};
        kept_lines_add(&k, i % 100, i / 100, lines, i % 3);
        CHECK(kept_lines_bytes(&k) <= 2 * MAX_BYTES); /* the growth of arrays is let pass */
        uint64_t earlier = i - i % 7;
        if (kept_lines_find(&k, earlier % 100, earlier / 100, out, &count)) {
            CHECK_INT(count, earlier % 3);
            CHECK(count == 0 || out[0].line == earlier);
            CHECK(count < 2 || str_eq(out[1].name, STR("main")));
            found++;
        }
    }
    CHECK(found > 4000);
    CHECK(!kept_lines_find(&k, 0, 0, out, &count));
    kept_lines_release(&k);
}

/* ---- generated code ---- */

static void generated_code_is_named_by_its_runtime(void)
{
    static const char map[] = "7f0000001000 100 JS:*handle file:///srv/app.js:12:5\n"
                              "7f0000001100 100 py::Server.run:/srv/app.py\n"
                              "7f0000001200 100 Builtin:ArrayMap\n"
                              "7f0000001300 100 JS:~handle file:///srv/app.js:12:5\n";
    struct bench *b = set_up(0);
    b->names = jit_names_new(JIT_NAMES_MAX_BYTES);
    jit_feed_map(b->names, map, sizeof map - 1);
    uint32_t f[6];
    for (uint64_t i = 0; i < 6; i++) {
        f[i] = add_frame(b, b->generated, 0x7f0000001010 + i * 0x100);
    }
    CHECK(namer_run(&b->namer, &b->p, NULL));
    CHECK_STR(NAME(f[0]), "handle /srv/app.js:12");
    CHECK_STR(FILE_OF(f[0]), "/srv/app.js");
    CHECK_INT(b->p.frames.at[f[0]].line, 12);
    CHECK_INT(b->p.frames.at[f[0]].kind, FRAME_JS);
    CHECK_STR(NAME(f[1]), "Server.run (/srv/app.py)");
    CHECK_INT(b->p.frames.at[f[1]].kind, FRAME_PYTHON);
    CHECK_STR(NAME(f[2]), "Builtin:ArrayMap");
    CHECK_INT(b->p.frames.at[f[2]].kind, FRAME_NATIVE);
    CHECK_INT(b->p.frames.at[f[3]].name, b->p.frames.at[f[0]].name); /* however compiled */
    CHECK_STR(NAME(f[4]), "[anon]");
    CHECK(!namer_next_problem(&b->namer, &(struct namer_problem){0}));
    tear_down(b);
}

static void generated_code_without_names_is_one_frame(void)
{
    struct bench *b = set_up(0);
    uint32_t f = add_frame(b, b->generated, 0x7f0000001010);
    CHECK(namer_run(&b->namer, &b->p, NULL));
    CHECK_STR(NAME(f), "[anon]");
    tear_down(b);
}

static void check_generated(const char *raw, const char *name, enum frame_kind kind,
                            const char *file, uint32_t line)
{
    struct buf out;
    buf_init(&out, 1000);
    struct runtime_named g;
    CHECK(code_read_name(runtimes, str_of(raw), &out, &g));
    CHECK_TEXT(buf_cstr(&out), name);
    CHECK_INT(g.kind, kind);
    CHECK_STR(g.file, file);
    CHECK_INT(g.line, line);
    buf_release(&out);
}

static void each_runtimes_manner_of_names_is_read(void)
{
    check_generated("LazyCompile:*f /a/b.js:7", "f /a/b.js:7", FRAME_JS, "/a/b.js", 7);
    check_generated("LazyCompile:~f b.js:7", "f b.js:7", FRAME_JS, "b.js", 7);
    check_generated("JS:^get size file:///a b/c.js:7:9", "get size /a b/c.js:7", FRAME_JS,
                    "/a b/c.js", 7);
    check_generated("JS:~ node:internal/main:1:1", "(anonymous) node:internal/main:1", FRAME_JS,
                    "node:internal/main", 1);
    check_generated("JS:+f", "f", FRAME_JS, "", 0);
    check_generated("JS:*'f /a.js:1:2", "f /a.js:1", FRAME_JS, "/a.js", 1);
    check_generated("JS:o*f /a.js:1:2", "f /a.js:1", FRAME_JS, "/a.js", 1);
    check_generated("JS:on /a.js:1:2", "on /a.js:1", FRAME_JS, "/a.js", 1);
    check_generated("JS:", "(anonymous)", FRAME_JS, "", 0);
    check_generated("Function:~g /x.js:1:2", "g /x.js:1", FRAME_JS, "/x.js", 1);
    check_generated("Eval:~ /x.js:99999999999", "(anonymous) /x.js:99999999999", FRAME_JS,
                    "/x.js:99999999999", 0);
    check_generated("py::<module>:/a:b.py", "<module> (/a:b.py)", FRAME_PYTHON, "/a:b.py", 0);
    check_generated("py::f", "f", FRAME_PYTHON, "", 0);
    check_generated("py::", "[unknown]", FRAME_PYTHON, "", 0);
    check_generated("RegExp:a(b|c)+d", "RegExp:a(b|c)+d", FRAME_NATIVE, "", 0);
    check_generated("void Foo.Bar::Baz(int)", "void Foo.Bar::Baz(int)", FRAME_NATIVE, "", 0);
    check_generated("", "", FRAME_NATIVE, "", 0);
}

TESTS({"inlined functions are named by DWARF, the real one by its symbol",
       inlined_functions_are_named},
      {"without the option DWARF is not read", without_the_option_dwarf_is_not_read},
      {"when time is over there still are symbols", when_time_is_over_there_still_are_symbols},
      {"without a reader of debug information there still are symbols", without_a_reader_there_still_are_symbols},
      {"names that dwz moved are found", names_that_dwz_moved_are_found},
      {"a profile without room says so, and never half", a_profile_without_room_says_so},
      {"all of a function without a symbol is one name",
       all_of_a_function_without_a_symbol_is_one_name},
      {"a symbol without a size ends where another function begins",
       a_symbol_without_a_size_ends_where_another_function_begins},
      {"what is at hand opens no file", what_is_at_hand_opens_no_file},
      {"what DWARF told is kept, also that it told nothing", what_dwarf_told_is_kept},
      {"what is kept stays within its room", what_is_kept_stays_within_its_room},
      {"generated code is named by its runtime", generated_code_is_named_by_its_runtime},
      {"generated code without names is one frame", generated_code_without_names_is_one_frame},
      {"each runtime's manner of names is read", each_runtimes_manner_of_names_is_read})
