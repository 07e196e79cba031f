#include "runtime/python/private.h"
#include "test.h"

/* A process: 3 MiB of memory from BASE on, of which a reader gets copies, and what changes it
 * between two reads. */
enum { MEMORY_BYTES = 3 << 20, BASE = 0x10000, PAGE = 4096 };
enum { CODE = BASE + 0x100, FUNCTION = BASE + 0x400, FILE_NAME = BASE + 0x800, TABLE = BASE + 0xc00,
       CODE_TYPE = 0x7777000 };

struct target {
    struct python python;
    unsigned char *bytes;
    unsigned batches, pieces;
    bool is_gone;
    uint64_t read_bytes;
    uint64_t unmapped; /* address of a page that is not there, 0 none */
    unsigned change_at; /* before which batch */
    void (*change)(struct target *);
    struct memory_batch memory;
    void *names;
};

static void read_piece(struct target *t, struct memory_piece *piece)
{
    uint64_t limit = BASE + MEMORY_BYTES;
    if (t->unmapped != 0 && piece->address < t->unmapped + PAGE) {
        limit = piece->address < t->unmapped ? t->unmapped : 0;
    }
    if (piece->address >= BASE && piece->address < limit) {
        uint64_t there = limit - piece->address;
        piece->got = there < piece->len ? (uint32_t)there : piece->len;
        memcpy(piece->out, t->bytes + (piece->address - BASE), piece->got);
    }
    t->read_bytes += piece->got;
}

static bool read_batch(void *context, struct memory_piece *pieces, size_t count, struct err *err)
{
    struct target *t = context;
    t->batches++;
    t->pieces += (unsigned)count;
    if (t->change != NULL && t->batches == t->change_at) {
        t->change(t);
    }
    for (size_t i = 0; i < count; i++) {
        pieces[i].got = 0;
        if (!t->is_gone) {
            read_piece(t, &pieces[i]);
        }
    }
    return !t->is_gone || err_set(err, ERR_GONE, 0, "the process ended");
}

static void start(struct target *t, uint32_t version)
{
    *t = (struct target){.bytes = calloc(1, MEMORY_BYTES)};
    CHECK(python_layout_of(version, ELF_X86_64, false, false, &t->python.layout, NULL));
    t->python.code_type = CODE_TYPE;
    t->memory = (struct memory_batch){read_batch, t};
    t->names = python_open_names(&t->python);
    CHECK(t->names != NULL);
}

static void end(struct target *t)
{
    python_close_names(t->names);
    free(t->bytes);
}

static void put(struct target *t, uint64_t address, const void *bytes, size_t len)
{
    memcpy(t->bytes + (address - BASE), bytes, len);
}

static void put_word(struct target *t, uint64_t address, uint64_t value, size_t len)
{
    put(t, address, &value, len);
}

/* ASCII, compact: kind 1 in bits 2 to 4, 0x20, 0x40. */
static void put_text(struct target *t, uint64_t address, const char *text)
{
    put_word(t, address + 16, strlen(text), 8);
    put_word(t, address + 32, 0x64, 4);
    put(t, address + t->python.layout.object.str_ascii, text, strlen(text));
}

static void put_table(struct target *t, uint64_t address, const void *bytes, size_t len)
{
    put_word(t, address + 16, len, 8);
    put(t, address + t->python.layout.object.bytes_data, bytes, len);
}

static void put_code(struct target *t, uint64_t address, uint32_t first_line, uint64_t function,
                     uint64_t file, uint64_t table)
{
    const struct python_layout *layout = &t->python.layout;
    bool qualified = layout->code.qualname != LAYOUT_NONE;
    put_word(t, address + layout->object.type - 8, 2, 8); /* references */
    put_word(t, address + layout->object.type, CODE_TYPE, 8);
    put_word(t, address + layout->code.first_line, first_line, 4);
    put_word(t, address + (qualified ? layout->code.qualname : layout->code.name), function, 8);
    put_word(t, address + layout->code.file, file, 8);
    put_word(t, address + layout->code.lines, table, 8);
}

/* shop.Cart.total in 3.12: 2 bytes on line 10, then 4 on line 11. */
static void put_cart(struct target *t)
{
    put_text(t, FUNCTION, "Cart.total");
    put_text(t, FILE_NAME, "/srv/shop.py");
    put_table(t, TABLE, "\x80\x00\xd9\x04\x09", 5);
    put_code(t, CODE, 10, FUNCTION, FILE_NAME, TABLE);
}

static uint64_t check_of(struct target *t, uint64_t address)
{
    return python_fingerprint(&t->python.layout, t->bytes + (address - BASE));
}

static struct runtime_name name_at(struct target *t, struct runtime_frame frame)
{
    struct runtime_name name;
    memset(&name, 0xee, sizeof name);
    python_name_frames(t->names, &frame, 1, &t->memory, &name);
    return name;
}

static struct runtime_name name_of(struct target *t, uint64_t code, uint32_t position)
{
    return name_at(t, (struct runtime_frame){code, position, 0, check_of(t, code)});
}

static void qualified(void)
{
    struct target t;
    start(&t, PYTHON_VERSION(3, 12));
    put_cart(&t);
    struct runtime_name name = name_of(&t, CODE, 2);
    CHECK_STR(name.function, "Cart.total");
    CHECK_STR(name.file, "/srv/shop.py");
    CHECK_INT(name.line, 11);
    CHECK_INT(name.first_line, 10);
    CHECK(!name.may_change);
    CHECK_INT(name_of(&t, CODE, 0).line, 10);
    CHECK_INT(name_of(&t, CODE, 4).line, 11);
    CHECK_INT(name_of(&t, CODE, 6).line, 0);
    end(&t);
}

static void simple_names(void)
{
    struct target t;
    start(&t, PYTHON_VERSION(3, 8));
    put_text(&t, FUNCTION, "total");
    put_text(&t, FILE_NAME, "shop.py");
    put_table(&t, TABLE, "\x04\x02", 2);
    put_code(&t, CODE, 10, FUNCTION, FILE_NAME, TABLE);
    struct runtime_name name = name_of(&t, CODE, 4);
    CHECK_STR(name.function, "total");
    CHECK_STR(name.file, "shop.py");
    CHECK_INT(name.line, 12);
    end(&t);
}

static void byte_names(void)
{
    struct target t;
    start(&t, PYTHON_VERSION(2, 7));
    put_word(&t, FUNCTION + 16, 8, 8);
    put(&t, FUNCTION + 36, "<module>", 8);
    put_word(&t, FILE_NAME + 16, 4, 8);
    put(&t, FILE_NAME + 36, "a.py", 4);
    put_word(&t, TABLE + 16, 2, 8);
    put(&t, TABLE + 36, "\x06\xc8", 2);
    put_code(&t, CODE, 1, FUNCTION, FILE_NAME, TABLE);
    struct runtime_name name = name_of(&t, CODE, 6);
    CHECK_STR(name.function, "<module>");
    CHECK_STR(name.file, "a.py");
    CHECK_INT(name.line, 201);
    end(&t);
}

static void warm(void)
{
    struct target t;
    start(&t, PYTHON_VERSION(3, 12));
    put_cart(&t);
    name_of(&t, CODE, 2);
    CHECK_INT(t.batches, 2);
    CHECK_INT(t.pieces, 1 + 3 + 1);
    CHECK_INT(name_of(&t, CODE, 0).line, 10);
    CHECK_INT(t.batches, 2);
    /* without a fingerprint of the moment, one look */
    struct runtime_name name = name_at(&t, (struct runtime_frame){CODE, 2, 0, 0});
    CHECK_STR(name.function, "Cart.total");
    CHECK_INT(t.batches, 3);
    end(&t);
}

static void together(void)
{
    struct target t;
    struct runtime_frame frames[40];
    struct runtime_name names[40];
    start(&t, PYTHON_VERSION(3, 12));
    put_cart(&t);
    for (uint32_t i = 0; i < 40; i++) {
        uint64_t code = CODE + 0x1000 + i * 0x200, function = code + 0x100;
        char text[16];
        snprintf(text, sizeof text, "f%u", i % 20);
        put_text(&t, function, text);
        put_code(&t, code, i + 1, function, FILE_NAME, TABLE);
        /* each twice, in two frames of a recursion */
        frames[i] = (struct runtime_frame){code - i % 2 * 0x200, 0, 0, 0};
        frames[i].check = check_of(&t, frames[i].code);
    }
    python_name_frames(t.names, frames, 40, &t.memory, names);
    CHECK_INT(t.batches, 2);
    CHECK_INT(t.pieces, 20 * (1 + 3 + 1));
    CHECK_STR(names[0].function, "f0");
    CHECK_STR(names[39].function, "f18");
    CHECK_INT(names[39].first_line, 39);
    CHECK(names[0].file.ptr == names[39].file.ptr); /* kept once */
    end(&t);
}

static void many(void)
{
    enum { FRAMES = 1024 };
    struct target t;
    struct runtime_frame *frames = calloc(FRAMES, sizeof *frames);
    struct runtime_name *names = calloc(FRAMES, sizeof *names);
    start(&t, PYTHON_VERSION(3, 12));
    put_cart(&t);
    for (uint32_t i = 0; i < FRAMES; i++) {
        uint64_t code = CODE + 0x1000 + i * 0x200;
        put_code(&t, code, i + 1, FUNCTION, FILE_NAME, TABLE);
        frames[i] = (struct runtime_frame){code, 0, 0, check_of(&t, code)};
    }
    python_name_frames(t.names, frames, FRAMES, &t.memory, names);
    for (uint32_t i = 0; i < FRAMES; i++) {
        CHECK_STR(names[i].function, "Cart.total");
        CHECK_INT(names[i].first_line, i + 1);
    }
    python_name_frames(t.names, frames, FRAMES, &t.memory, names);
    CHECK_INT(t.batches, FRAMES / 32 * 2);
    end(&t);
    free(frames);
    free(names);
}

/* Another function's code object where Cart.total's was; its name and its file were there before.
 * */
static void replace(struct target *t)
{
    put_text(t, FUNCTION + 0x80, "other");
    put_code(t, CODE, 70, FUNCTION + 0x80, FILE_NAME, TABLE);
}

static void reused(void)
{
    struct target t;
    start(&t, PYTHON_VERSION(3, 12));
    put_cart(&t);
    uint64_t before = check_of(&t, CODE);
    CHECK_STR(name_of(&t, CODE, 2).function, "Cart.total");
    replace(&t);
    struct runtime_name name = name_of(&t, CODE, 2);
    CHECK_STR(name.function, "other");
    CHECK_INT(name.line, 71);
    name = name_at(&t, (struct runtime_frame){CODE, 2, 0, 0});
    CHECK_STR(name.function, "other");
    /* a frame of before, which is named late */
    name = name_at(&t, (struct runtime_frame){CODE, 2, 0, before});
    CHECK_STR(name.function, "Cart.total");
    CHECK_INT(name.line, 11);
    end(&t);
}

static void start_3_8(struct target *t)
{
    start(t, PYTHON_VERSION(3, 8));
    put_text(t, FUNCTION, "first");
    put_text(t, FILE_NAME, "a.py");
    put_table(t, TABLE, "\x04\x02", 2);
    put_code(t, CODE, 10, FUNCTION, FILE_NAME, TABLE);
}

static void again(void)
{
    struct target t;
    start_3_8(&t);
    for (int i = 0; i < 1 + 4 + 10; i++) {
        struct runtime_name name = name_of(&t, CODE, 4);
        CHECK_STR(name.function, "first");
        CHECK_INT(name.may_change, i < 4);
    }
    CHECK_INT(t.batches, (1 + 4) * 2);
    end(&t);

    /* twice in one call, with and without its fingerprint */
    start_3_8(&t);
    struct runtime_frame frames[] = {{CODE, 4, 0, check_of(&t, CODE)}, {CODE, 4, 0, 0}};
    struct runtime_name names[2];
    for (int i = 0; i < 1 + 4; i++) {
        python_name_frames(t.names, frames, 2, &t.memory, names);
    }
    CHECK(!name_of(&t, CODE, 4).may_change);
    end(&t);

    /* among many others, none in the place of another */
    start_3_8(&t);
    for (uint32_t i = 0; i < 200; i++) {
        uint64_t code = CODE + 0x1000 + i * 0x100;
        put_code(&t, code, 20, FUNCTION, FILE_NAME, TABLE);
        for (int k = 0; k < 1 + 4; k++) {
            CHECK_INT(name_of(&t, code, 4).may_change, k < 4);
        }
    }
    end(&t);

    /* in the place of another */
    start_3_8(&t);
    CHECK_STR(name_of(&t, CODE, 4).function, "first");
    put_code(&t, CODE, 20, FUNCTION, FILE_NAME, TABLE);
    for (int i = 0; i < 1 + 64; i++) {
        CHECK_INT(name_of(&t, CODE, 4).may_change, i < 64);
    }
    end(&t);
}

static void made(void)
{
    struct target t;
    start_3_8(&t);
    for (int i = 0; i < 1 + 4; i++) {
        CHECK_INT(name_of(&t, CODE, 4).may_change, i < 4);
    }
    for (uint32_t i = 0; i < 100; i++) { /* one after the other, at another place */
        put_code(&t, CODE + 0x1000, 100 + i, FUNCTION, FILE_NAME, TABLE);
        CHECK_INT(name_of(&t, CODE + 0x1000, 4).first_line, 100 + i);
    }
    for (uint32_t i = 0; i < 63; i++) {
        CHECK(name_of(&t, CODE, 4).may_change);
        put_code(&t, CODE + 0x1000, 200 + i, FUNCTION, FILE_NAME, TABLE);
        CHECK_INT(name_of(&t, CODE + 0x1000, 4).first_line, 200 + i);
    }
    CHECK(!name_of(&t, CODE, 4).may_change);
    /* and what is new has to be seen as often */
    put_code(&t, CODE + 0x2000, 7, FUNCTION, FILE_NAME, TABLE);
    for (int i = 0; i < 1 + 64; i++) {
        CHECK_INT(name_of(&t, CODE + 0x2000, 4).may_change, i < 64);
    }
    end(&t);
}

/* In 3.8: code at the place of other code, then code there that looks the same but for its texts.
 * */
static void alike(void)
{
    struct target t;
    start_3_8(&t);
    CHECK_STR(name_of(&t, CODE, 4).function, "first");
    put_code(&t, CODE, 20, FUNCTION, FILE_NAME, TABLE);
    CHECK_INT(name_of(&t, CODE, 4).first_line, 20);
    put_text(&t, FUNCTION, "other");
    CHECK_STR(name_of(&t, CODE, 4).function, "other");
    put_text(&t, FILE_NAME, "b.py");
    CHECK_STR(name_of(&t, CODE, 4).file, "b.py");
    put_table(&t, TABLE, "\x04\x05", 2);
    CHECK_INT(name_of(&t, CODE, 4).line, 25);
    CHECK_INT(t.batches, 5 * 2);
    /* once it has long been the same, it is believed */
    for (int i = 0; i < 64; i++) {
        CHECK_INT(name_of(&t, CODE, 4).line, 25);
    }
    CHECK_INT(t.batches, (5 + 64) * 2);
    CHECK_INT(name_of(&t, CODE, 4).line, 25);
    CHECK_INT(t.batches, (5 + 64) * 2);
    end(&t);
}

static void check_no_name(struct runtime_name name)
{
    CHECK_STR(name.function, "");
    CHECK_STR(name.file, "");
    CHECK_INT(name.line, 0);
    CHECK_INT(name.first_line, 0);
}

static void replaced_before(void)
{
    struct target t;
    start(&t, PYTHON_VERSION(3, 12));
    put_cart(&t);
    uint64_t before = check_of(&t, CODE);
    replace(&t);
    check_no_name(name_at(&t, (struct runtime_frame){CODE, 2, 0, before}));
    end(&t);
}

static void replaced_meanwhile(void)
{
    for (unsigned batch = 2; batch <= 3; batch++) {
        for (int checked = 0; checked < 2; checked++) {
            struct target t;
            char file[600];
            start(&t, PYTHON_VERSION(3, 12));
            put_cart(&t);
            memset(file, 'd', sizeof file);
            file[sizeof file - 1] = 0;
            put_text(&t, FILE_NAME, file); /* so that there is a third batch */
            t.change_at = batch;
            t.change = replace;
            uint64_t check = checked ? check_of(&t, CODE) : 0;
            check_no_name(name_at(&t, (struct runtime_frame){CODE, 2, 0, check}));
            CHECK_INT(t.batches, batch);
            CHECK_STR(name_of(&t, CODE, 2).function, "other"); /* nothing of it was kept */
            end(&t);
        }
    }
}

static void long_content(void)
{
    enum { TABLE_BYTES = 1 << 20, LONG = BASE + 0x10000 };
    static unsigned char table[TABLE_BYTES];
    struct target t;
    char file[600];
    start(&t, PYTHON_VERSION(3, 12));
    put_cart(&t);
    memset(file, 'd', sizeof file);
    file[sizeof file - 1] = 0;
    put_text(&t, FILE_NAME, file);
    for (size_t i = 0; i < sizeof table; i += 2) {
        memcpy(table + i, "\x80\x00", 2); /* 2 bytes of code on the same line */
    }
    memcpy(table + 1024 * 2, "\xe8\x06", 2); /* code 13: 3 lines further from byte 2048 on */
    put_table(&t, LONG, table, sizeof table);
    put_code(&t, CODE, 10, FUNCTION, FILE_NAME, LONG);
    struct runtime_name name = name_of(&t, CODE, 2048);
    CHECK_STR(name.function, "Cart.total");
    CHECK_STR(name.file, file);
    CHECK_INT(name.line, 13);
    CHECK_INT(t.batches, 3);
    for (uint32_t at = 0; at < 8192; at++) {
        CHECK_INT(name_of(&t, CODE, at).line, at < 2048 ? 10 : 13);
    }
    CHECK_INT(t.batches, 3);
    end(&t);
}

static void too_long_table(void)
{
    struct target t;
    start(&t, PYTHON_VERSION(3, 8)); /* where no table at all would mean the first line */
    put_cart(&t);
    put_text(&t, FUNCTION, "total");
    put_text(&t, FILE_NAME, "shop.py");
    for (int i = 0; i < 2; i++) {
        put_word(&t, TABLE + 16, i == 0 ? (1 << 20) + 1 : UINT64_MAX, 8);
        put_code(&t, CODE, 10 + (unsigned)i, FUNCTION, FILE_NAME, TABLE);
        struct runtime_name name = name_of(&t, CODE, 2);
        CHECK_STR(name.function, "total");
        CHECK_INT(name.line, 0);
        CHECK(t.read_bytes < 4096);
    }
    end(&t);
}

static void page_end(void)
{
    struct target t;
    start(&t, PYTHON_VERSION(3, 12));
    put_cart(&t);
    uint64_t file = BASE + 0x4000 - 60; /* its 15 bytes at 40 end 5 before the page's */
    put_text(&t, file, "/srv/at-end.py");
    put_code(&t, CODE, 10, FUNCTION, file, TABLE);
    t.unmapped = BASE + 0x4000;
    CHECK_STR(name_of(&t, CODE, 2).file, "/srv/at-end.py");
    CHECK_INT(t.batches, 2);
    end(&t);
}

static void no_file(void)
{
    struct target t;
    start(&t, PYTHON_VERSION(3, 12));
    put_cart(&t);
    put_code(&t, CODE, 10, FUNCTION, 0xdead0000, 0xdead1000);
    struct runtime_name name = name_of(&t, CODE, 2);
    CHECK_STR(name.function, "Cart.total");
    CHECK_STR(name.file, "");
    CHECK_INT(name.line, 0);
    CHECK_INT(name.first_line, 10);
    end(&t);
}

static void by_pointer(void)
{
    struct target t;
    uint64_t data = BASE + 0x5000;
    start(&t, PYTHON_VERSION(3, 12));
    put_cart(&t);
    put_word(&t, FUNCTION + 32, 0x44, 4); /* ASCII, not compact */
    put_word(&t, FUNCTION + 56, data, 8);
    put(&t, data, "Cart.empty", 10);
    CHECK_STR(name_of(&t, CODE, 2).function, "Cart.empty");
    put_code(&t, CODE, 11, FUNCTION, FILE_NAME, TABLE);
    put_word(&t, FUNCTION + 56, 0xdead0000, 8);
    check_no_name(name_of(&t, CODE, 2));
    end(&t);
}

static void no_code(void)
{
    struct target t;
    start(&t, PYTHON_VERSION(3, 12));
    put_cart(&t);
    put_word(&t, CODE + 8, CODE_TYPE + 0x100, 8);
    check_no_name(name_of(&t, CODE, 2));
    check_no_name(name_at(&t, (struct runtime_frame){0xdead0000, 0, 0, 0}));
    check_no_name(name_at(&t, (struct runtime_frame){UINT64_MAX, 0, 0, 1}));
    unsigned batches = t.batches;
    check_no_name(name_at(&t, (struct runtime_frame){0, 0, 0, 0}));
    check_no_name(name_at(&t, (struct runtime_frame){CODE, 0, RUNTIME_FRAME_SHIM, 0}));
    CHECK_INT(t.batches, batches);
    /* an interpreter whose PyCode_Type is not known */
    t.python.code_type = 0;
    CHECK_STR(name_of(&t, CODE, 2).function, "Cart.total");
    end(&t);
}

static void freed(void)
{
    struct target t;
    start(&t, PYTHON_VERSION(3, 12));
    put_cart(&t);
    put_word(&t, CODE, 0, 8);
    check_no_name(name_of(&t, CODE, 2));
    put_word(&t, CODE, 0x7f12345678, 8); /* a link of the allocator */
    check_no_name(name_of(&t, CODE, 2));
    put_word(&t, CODE, 0xffffffff, 8); /* immortal */
    CHECK_STR(name_of(&t, CODE, 2).function, "Cart.total");

    /* 3.14: flags in the uppermost 16 bits */
    put_code(&t, CODE, 11, FUNCTION, FILE_NAME, TABLE);
    t.python.layout.version = PYTHON_VERSION(3, 14);
    put_word(&t, CODE, 0x0000007f12345678, 8);
    check_no_name(name_of(&t, CODE, 2));
    put_word(&t, CODE, 0x0081000000000000, 8);
    check_no_name(name_of(&t, CODE, 2));
    put_word(&t, CODE, 0x0081000050000000, 8);
    CHECK_STR(name_of(&t, CODE, 2).function, "Cart.total");
    end(&t);
}

static void freed_alike(void)
{
    enum { OTHER = CODE + 0x1000, OTHER_TABLE = TABLE + 0x100 };
    struct target t;
    start(&t, PYTHON_VERSION(3, 8));
    put_text(&t, FUNCTION, "<module>");
    put_text(&t, FILE_NAME, "<string>");
    put_table(&t, TABLE, "\x04\x02", 2);
    put_table(&t, OTHER_TABLE, "\x04\x03", 2);
    put_code(&t, CODE, 1, FUNCTION, FILE_NAME, TABLE);
    put_code(&t, OTHER, 1, FUNCTION, FILE_NAME, TABLE);
    put_word(&t, OTHER, 0, 8);
    check_no_name(name_of(&t, OTHER, 4)); /* no such function was seen alive */
    CHECK_INT(name_of(&t, CODE, 4).line, 3);
    struct runtime_name name = name_of(&t, OTHER, 4);
    CHECK_STR(name.function, "<module>");
    CHECK_STR(name.file, "<string>");
    CHECK_INT(name.line, 3);
    check_no_name(name_at(&t, (struct runtime_frame){OTHER, 4, 0, 0})); /* it may never have run */
    put_code(&t, OTHER, 1, FUNCTION, FILE_NAME, OTHER_TABLE);
    put_word(&t, OTHER, 0, 8);
    name = name_of(&t, OTHER, 4);
    CHECK_STR(name.function, "<module>");
    CHECK_INT(name.line, 0);
    CHECK_INT(name.first_line, 1);
    put_code(&t, OTHER, 2, FUNCTION, FILE_NAME, TABLE);
    put_word(&t, OTHER, 0, 8);
    check_no_name(name_of(&t, OTHER, 4)); /* not that function */
    end(&t);
}

static void free_code(struct target *t)
{
    put_word(t, CODE, 0, 8);
}

static void freed_meanwhile(void)
{
    struct target t;
    start(&t, PYTHON_VERSION(3, 12));
    put_cart(&t);
    t.change_at = 2;
    t.change = free_code;
    check_no_name(name_of(&t, CODE, 2));
    CHECK_INT(t.batches, 2);
    /* or the other way round: the same fields, and something refers to them again */
    t.change_at = 4;
    t.change = put_cart;
    check_no_name(name_of(&t, CODE, 2));
    CHECK_INT(t.batches, 4);
    end(&t);
}

static void freed_without_gil(void)
{
    struct target t;
    start(&t, PYTHON_VERSION(3, 12));
    t.python.layout.free_threaded = true;
    t.python.layout.object.type = 24; /* thread 0, count of its own 12, of the others 16 */
    put_text(&t, FUNCTION, "Cart.total");
    put_text(&t, FILE_NAME, "/srv/shop.py");
    put_code(&t, CODE, 10, FUNCTION, FILE_NAME, TABLE);
    put_word(&t, CODE, 0x7f12345678, 8);
    put_word(&t, CODE + 12, 0, 4);
    put_word(&t, CODE + 16, 3, 8); /* merged, nobody left */
    check_no_name(name_of(&t, CODE, 2));
    put_word(&t, CODE + 16, 1 << 2 | 3, 8);
    CHECK_STR(name_of(&t, CODE, 2).function, "Cart.total");
    put_code(&t, CODE, 11, FUNCTION, FILE_NAME, TABLE);
    put_word(&t, CODE + 16, 0, 8);
    put_word(&t, CODE + 12, 1, 4);
    CHECK_STR(name_of(&t, CODE, 2).function, "Cart.total");
    end(&t);
}

static void gone(void)
{
    struct target t;
    start(&t, PYTHON_VERSION(3, 12));
    put_cart(&t);
    t.is_gone = true;
    check_no_name(name_of(&t, CODE, 2));
    end(&t);
}

static void unstarted(void)
{
    struct target t;
    start(&t, PYTHON_VERSION(3, 12));
    put_cart(&t);
    struct runtime_frame frame = {CODE, 2, RUNTIME_FRAME_UNSTARTED, check_of(&t, CODE)};
    CHECK_INT(name_at(&t, frame).line, 10);
    frame = (struct runtime_frame){CODE, UINT32_MAX, 0, check_of(&t, CODE)};
    CHECK_INT(name_at(&t, frame).line, 10);
    end(&t);
}

static void endless(void)
{
    enum { FUNCTIONS = 200000 };
    struct target t;
    char text[32];
    unsigned wrong = 0;
    start(&t, PYTHON_VERSION(3, 12));
    put_cart(&t);
    uint64_t first = check_of(&t, CODE);
    name_of(&t, CODE, 2);
    for (unsigned i = 0; i < FUNCTIONS; i++) {
        snprintf(text, sizeof text, "made_%u", i);
        put_text(&t, FUNCTION, text);
        put_code(&t, CODE, 100 + i, FUNCTION, FILE_NAME, TABLE);
        struct runtime_name name = name_of(&t, CODE, 2);
        wrong += !str_eq(name.function, str_of(text)) || name.line != 101 + i;
    }
    CHECK_INT(wrong, 0);
    CHECK_INT(t.batches, 2 + 2 * FUNCTIONS);
    /* the first one has been forgotten meanwhile, and is no more there to be read */
    check_no_name(name_at(&t, (struct runtime_frame){CODE, 2, 0, first}));
    end(&t);
}

static void forgotten(void)
{
    enum { FRAMES = 65536 }; /* one call for as many code objects as are kept */
    struct target t;
    struct runtime_frame *frames = calloc(FRAMES, sizeof *frames);
    struct runtime_name *names = calloc(FRAMES, sizeof *names);
    start(&t, PYTHON_VERSION(3, 12));
    put_cart(&t);
    CHECK_INT(name_of(&t, CODE, 2).line, 11);
    python_name_frames(t.names, frames, FRAMES, &t.memory, names);
    replace(&t);
    CHECK_INT(name_of(&t, CODE, 2).line, 71);
    end(&t);
    free(frames);
    free(names);
}

static void greedy(void)
{
    enum { FRAMES = 256, LONG = BASE + 0x80000, TABLE_BYTES = 1 << 20 };
    struct target t;
    struct runtime_frame frames[FRAMES];
    struct runtime_name names[FRAMES];
    start(&t, PYTHON_VERSION(3, 12));
    put_cart(&t);
    put_word(&t, LONG + 16, TABLE_BYTES, 8);
    for (uint32_t i = 0; i < FRAMES; i++) {
        uint64_t code = CODE + 0x1000 + i * 0x200;
        put_code(&t, code, i + 1, FUNCTION, FILE_NAME, LONG);
        frames[i] = (struct runtime_frame){code, 0, 0, check_of(&t, code)};
    }
    for (int call = 0; call < 3; call++) {
        t.read_bytes = 0;
        python_name_frames(t.names, frames, FRAMES, &t.memory, names);
        CHECK(t.read_bytes < 5 << 20);
        CHECK_STR(names[0].function, "Cart.total");
        CHECK_STR(names[FRAMES - 1].function, "Cart.total");
    }
    end(&t);
}

TESTS({"a frame has its function's qualified name, its file and its line", qualified},
      {"up to 3.10 functions have their name alone", simple_names},
      {"names of 2.7 are byte strings", byte_names},
      {"what is known is not read again", warm},
      {"code objects of a stack are read together, each once", together},
      {"a deep stack is read in parts", many},
      {"code at the address of other code has its own name, and the other keeps its", reused},
      {"up to 3.11 code is read again a few times", again},
      {"code in another's place is read again until it is sure", alike},
      {"where functions are made all the time nothing is believed soon", made},
      {"code that was replaced before it is read gives no name", replaced_before},
      {"code that is replaced while it is read gives no name", replaced_meanwhile},
      {"texts and tables beyond a window are read whole", long_content},
      {"a table that claims more than a mebibyte is not read", too_long_table},
      {"a name at the end of mapped memory is read", page_end},
      {"a function whose file cannot be read has a name", no_file},
      {"a name that is not compact is read by its pointer", by_pointer},
      {"what is no code object has no name", no_code},
      {"what has been freed has no name, though it looks the same", freed},
      {"what has been freed is named as a function that was seen alive", freed_alike},
      {"what is freed while it is read has no name", freed_meanwhile},
      {"without the GIL references are counted in two places", freed_without_gil},
      {"a process that ended gives no names", gone},
      {"a frame that has not begun is on its first line", unstarted},
      {"functions that are made for ever keep their names right", endless},
      {"with a code object its lines are forgotten", forgotten},
      {"tables that would take all memory are left out", greedy})
