/* The kernel's symbols, as text in pieces. */
#include "symbol/symbols.h"
#include "test.h"

#define COUNT(list) (sizeof(list) / sizeof(list)[0])

static const char usual[] = "0000000000000000 A fixed_percpu_data\n"
                            "ffffffff81000000 T _text\n"
                            "ffffffff81000000 T _stext\n"
                            "ffffffff81000100 t __pfx_do_one_initcall\n"
                            "ffffffff81000110 T do_one_initcall\n"
                            "ffffffff81000200 t __do_sys_read\n"
                            "ffffffff81000200 t do_sys_read\n"
                            "ffffffff81000200 T __x64_sys_read\n"
                            "ffffffff81000300 W weak_one\n"
                            "ffffffff81000300 T strong_one\n"
                            "ffffffff82000000 D a_variable\n"
                            "ffffffffc0000000 t nf_hook\t[nf_tables]\n"
                            "ffffffffc0000100 t bpf_prog_6deef7357e7b4530_x\t[bpf]\n";

/* Loads the text in pieces of `step` bytes. */
static bool load(struct symbols *s, const char *text, size_t step, size_t max_bytes,
                 struct err *err)
{
    struct kallsyms k;
    symbols_init(s, max_bytes);
    kallsyms_init(&k, s);
    size_t len = strlen(text);
    for (size_t at = 0; at < len; at += step) {
        if (!kallsyms_feed(&k, text + at, len - at < step ? len - at : step, err)) {
            break;
        }
    }
    return kallsyms_finish(&k, err);
}

static const char *name_at(const struct symbols *s, uint64_t address)
{
    static struct buf out;
    struct symbol_hit hit;
    static char text[2048];
    buf_init(&out, sizeof text - 1);
    bool found = symbols_find(s, address, &hit) && symbols_name(s, NULL, &hit, &out);
    snprintf(text, sizeof text, "%s", found ? buf_cstr(&out) : "(none)");
    buf_release(&out);
    return text;
}

static void names(void)
{
    struct symbols s;
    for (size_t step = 1; step < sizeof usual + 5; step = step * 2 + 1) {
        CHECK(load(&s, usual, step, 1 << 20, NULL));
        CHECK_INT(s.table.len, 6);
        CHECK_TEXT(name_at(&s, 0xffffffff81000000), "_text");
        CHECK_TEXT(name_at(&s, 0xffffffff8100010f), "_text"); /* padding is of what is before */
        CHECK_TEXT(name_at(&s, 0xffffffff81000110), "do_one_initcall");
        CHECK_TEXT(name_at(&s, 0xffffffff810001ff), "do_one_initcall");
        CHECK_TEXT(name_at(&s, 0xffffffff81000210), "__x64_sys_read");
        CHECK_TEXT(name_at(&s, 0xffffffff81000300), "strong_one");
        CHECK_TEXT(name_at(&s, 0xffffffffc00000ff), "nf_hook [nf_tables]");
        CHECK_TEXT(name_at(&s, 0xffffffffc0000100), "bpf_prog_6deef7357e7b4530_x [bpf]");
        CHECK_TEXT(name_at(&s, 0xffffffff80ffffff), "(none)");
        CHECK_TEXT(name_at(&s, 0x1000), "(none)");
        symbols_release(&s);
    }
}

static void hidden(void)
{
    struct symbols s;
    struct err err = {0};
    CHECK(!load(&s, "0000000000000000 T _text\n0000000000000000 t do_x\n", 7, 1 << 20, &err));
    CHECK_INT(err.kind, ERR_DENIED);
    CHECK(strstr(err.text, "kptr_restrict") != NULL);
    CHECK_INT(symbols_bytes(&s), 0);
    CHECK(!load(&s, "", 1, 1 << 20, &err));
    CHECK_INT(err.kind, ERR_UNSUPPORTED);
    CHECK(!load(&s, "ffffffff82000000 D data_only\n", 1, 1 << 20, &err));
    CHECK_INT(err.kind, ERR_UNSUPPORTED);
    symbols_release(&s);
}

static void last_line_without_end(void)
{
    struct symbols s;
    CHECK(load(&s, "ffffffff81000000 T a\nffffffff81000010 T b", 100, 1 << 20, NULL));
    CHECK_TEXT(name_at(&s, 0xffffffff81000010), "b");
    symbols_release(&s);
}

static void malformed(void)
{
    static char text[4000] = "nonsense\n\n \nffffffff81000000\nffffffff81000000 T\n"
                             "ffffffff81000000 T \n"
                             "x T y\nffffffff81000000 TT y\n11111111111111111 T y\n";
    size_t len = strlen(text);
    memset(text + len, 'l', 2000); /* a line longer than any */
    memcpy(text + len, "ffffffff81000000 T ", 19);
    strcpy(text + len + 2000, "\nffffffff81000000 T good\n");
    for (size_t step = 1; step < 5000; step = step * 3 + 1) {
        struct symbols s;
        CHECK(load(&s, text, step, 1 << 20, NULL));
        CHECK_INT(s.table.len, 1);
        CHECK_TEXT(name_at(&s, 0xffffffff81000000), "good");
        symbols_release(&s);
    }
}

static void other_machines(void)
{
    struct symbols s; /* arm64: modules stand below the kernel */
    CHECK(load(&s,
               "ffff800080010000 T _stext\n"
               "ffff800080010100 t $x\n"
               "ffff80007a000000 t mod_fn\t[m]\n"
               "ffff000000000000 t too_far\n",
               100, 1 << 20, NULL));
    CHECK_TEXT(name_at(&s, 0xffff80007a000004), "mod_fn [m]");
    CHECK_TEXT(name_at(&s, 0xffff800080010004), "_stext");
    CHECK_TEXT(name_at(&s, 0xffff800080010104), "_stext");
    CHECK_TEXT(name_at(&s, 0xffff000000000000), "(none)");
    symbols_release(&s);
}

static void bounded(void)
{
    struct symbols s;
    struct err err = {0};
    CHECK(!load(&s, usual, 50, 60, &err));
    CHECK_INT(err.kind, ERR_LIMIT);
    CHECK_INT(symbols_bytes(&s), 0);
    symbols_release(&s);
}

/* The same with only these functions; *read tells how much of the text was wanted. */
static bool load_few(struct symbols *s, const char *text, size_t step, const uint64_t *address,
                     size_t count, size_t *read, struct err *err)
{
    struct kallsyms k;
    symbols_init(s, 1 << 20);
    kallsyms_init(&k, s);
    CHECK(kallsyms_only(&k, address, count));
    size_t len = strlen(text);
    for (*read = 0; *read < len && !k.few.over; *read += step) {
        CHECK(kallsyms_feed(&k, text + *read, len - *read < step ? len - *read : step, err));
    }
    return kallsyms_finish(&k, err);
}

static void few(void)
{
    static const uint64_t address[] = {
        0x1000,             0xffffffff80ffffff, 0xffffffff81000000, 0xffffffff8100010f,
        0xffffffff81000110, 0xffffffff81000210, 0xffffffff81000210, 0xffffffff810002ff,
        0xffffffff81000300, 0xffffffffbfffffff, 0xffffffffc00000ff, 0xffffffffc0000100};
    struct symbols all, s;
    size_t read;
    CHECK(load(&all, usual, 1000, 1 << 20, NULL));
    for (size_t step = 1; step < sizeof usual + 5; step = step * 2 + 1) {
        for (unsigned chosen = 1; chosen < 1u << COUNT(address); chosen = chosen * 5 / 4 + 1) {
            uint64_t wanted[COUNT(address)];
            size_t count = 0;
            for (size_t i = 0; i < COUNT(address); i++) {
                if ((chosen >> i & 1) != 0) {
                    wanted[count++] = address[i];
                }
            }
            CHECK(load_few(&s, usual, step, wanted, count, &read, NULL));
            CHECK(s.table.len <= count);
            for (size_t i = 0; i < count; i++) {
                char name[100];
                snprintf(name, sizeof name, "%s", name_at(&all, wanted[i]));
                CHECK_TEXT(name_at(&s, wanted[i]), name);
            }
            symbols_release(&s);
        }
    }
    symbols_release(&all);
}

static void few_end_early(void)
{
    static const uint64_t first = 0xffffffff81000005, below = 0xffff80007a000004, none = 0x1000;
    struct symbols s;
    struct err err = {0};
    size_t read;
    CHECK(load_few(&s, usual, 1, &first, 1, &read, NULL));
    CHECK(read < 200);
    CHECK_TEXT(name_at(&s, 0xffffffff81000200), "(none)"); /* it was not asked for */
    symbols_release(&s);
    /* what stands below the first line may come later */
    static const char modules_below[] = "ffff800080010000 T _stext\nffff80007a000000 t mod_fn\t[m]\n"
                                        "ffff80007a000100 t mod_other\t[m]\nffff800080020000 t b\n";
    CHECK(load_few(&s, modules_below, 1, &below, 1, &read, NULL));
    CHECK_TEXT(name_at(&s, below), "mod_fn [m]");
    CHECK_TEXT(name_at(&s, 0xffff80007a000100), "(none)");
    symbols_release(&s);
    CHECK(load_few(&s, usual, 1, &none, 1, &read, NULL)); /* no error: the kernel tells its functions */
    CHECK_INT(s.table.len, 0);
    CHECK_INT(read, sizeof usual - 1);
    symbols_release(&s);
    CHECK(!load_few(&s, "0000000000000000 T _text\n", 7, &first, 1, &read, &err));
    CHECK_INT(err.kind, ERR_DENIED);
    symbols_release(&s);
}

static void too_many_are_all(void)
{
    static uint64_t address[KALLSYMS_FEW_MAX + 1];
    struct symbols s;
    struct kallsyms k;
    symbols_init(&s, 1 << 20);
    kallsyms_init(&k, &s);
    CHECK(!kallsyms_only(&k, address, COUNT(address)));
    CHECK(kallsyms_feed(&k, usual, sizeof usual - 1, NULL));
    CHECK(kallsyms_finish(&k, NULL));
    CHECK_INT(s.table.len, 6);
    symbols_release(&s);
}

static bool load_own(struct symbols *s, const uint64_t *address, size_t count, struct err *err)
{
    static char chunk[65536];
    FILE *file = fopen("/proc/kallsyms", "r");
    struct kallsyms k;
    symbols_init(s, 16 << 20);
    kallsyms_init(&k, s);
    CHECK(address == NULL || kallsyms_only(&k, address, count));
    size_t len;
    while (file != NULL && (len = fread(chunk, 1, sizeof chunk, file)) > 0) {
        CHECK(kallsyms_feed(&k, chunk, len, err));
    }
    if (file != NULL) {
        fclose(file);
    }
    return kallsyms_finish(&k, err);
}

static void own_kernel(void)
{
    struct symbols s, some;
    struct err err = {0};
    if (!load_own(&s, NULL, 0, &err)) {
        CHECK(err.kind == ERR_DENIED || err.kind == ERR_UNSUPPORTED);
        symbols_release(&s);
        SKIP("this kernel hides its symbols");
    }
    CHECK(s.table.len > 5000);
    CHECK(symbols_bytes(&s) <= 28 * s.table.len);
    uint64_t address[500];
    for (size_t i = 0; i < COUNT(address); i++) {
        const struct symbol *symbol = &s.table.at[i * (s.table.len - 1) / (COUNT(address) - 1)];
        address[i] = s.base + symbol->start + i % 3;
    }
    CHECK(load_own(&some, address, COUNT(address), NULL));
    CHECK(symbols_bytes(&some) < 64 * COUNT(address));
    for (size_t i = 0; i < COUNT(address); i++) {
        struct symbol_hit one, other;
        char name[1000];
        CHECK(symbols_find(&s, address[i], &one) == symbols_find(&some, address[i], &other));
        CHECK_INT(one.start, other.start);
        CHECK_INT(one.size, other.size);
        snprintf(name, sizeof name, "%s", name_at(&s, address[i]));
        CHECK_TEXT(name_at(&some, address[i]), name);
    }
    symbols_release(&s);
    symbols_release(&some);
}

TESTS({"functions of kernel and modules are found however the text is cut", names},
      {"hidden addresses are told from an empty table", hidden},
      {"a last line without its end counts", last_line_without_end},
      {"lines that are no symbol are skipped", malformed},
      {"modules below the kernel are found, marks are not", other_machines},
      {"a table that does not fit is given up whole", bounded},
      {"a few functions are the same as among all", few},
      {"no more is read for a few than they need", few_end_early},
      {"too many to be few are all", too_many_are_all},
      {"this machine's kernel is read, all of it and a few functions", own_kernel})
