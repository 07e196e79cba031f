/*
 * Any bytes as call frame information, and any stack walked with it.
 *
 * The input is cut into pieces, each behind its length (u16): .eh_frame_hdr, the CFI section, code,
 * stack; its first byte chooses how the section is found. The image around them is hand-made.
 */
#define FRAME_IMAGE_TEXT 0x1f000 /* a little on either side of a page's end */
#define FRAME_IMAGE_TEXT_BYTES 0x2000

#include "../unit/frame_image.h"
#include "base/cursor.h"
#include "unwind/unwind.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum {
    CHOOSE_HEADER = 1,
    CHOOSE_SECTIONS = 2,
    CHOOSE_DEBUG = 4,
    CHOOSE_ZLIB = 8,
    CHOOSE_ZDEBUG = 16,
    CHOOSE_GO = 32,
    CHOOSE_FP = 64,
    CHOOSE_SMALL = 128, /* little memory, and an analysis of the code */
    MAPPED_AT = 0x400000,
    STACK_AT = 0x7000000,
};

struct walked {
    struct unwind_table *table;
    struct cursor stack;
    bool frame_pointers;
};

static bool find_place(void *context, uint64_t address, struct unwind_place *out)
{
    struct walked *w = context;
    *out = (struct unwind_place){.start = MAPPED_AT + IMAGE_TEXT,
                                 .limit = MAPPED_AT + IMAGE_TEXT + IMAGE_TEXT_BYTES,
                                 .bias = MAPPED_AT, .image = 1, .table = w->table,
                                 .frame_pointers = w->frame_pointers};
    return address >= out->start && address < out->limit;
}

static bool read_stack(void *context, uint64_t address, void *out, size_t len, struct err *err)
{
    /* the whole stack, repeated for a page or two */
    const struct walked *w = context;
    if (w->stack.len == 0 || address < STACK_AT || address - STACK_AT > 8192) {
        return err_set(err, ERR_GONE, 0, "not mapped");
    }
    for (size_t i = 0; i < len; i++) {
        ((unsigned char *)out)[i] = w->stack.ptr[(address - STACK_AT + i) % w->stack.len];
    }
    return true;
}

static struct cursor take_piece(struct cursor *c, size_t max)
{
    size_t len = cursor_u16(c);
    len = len < max ? len : max;
    len = len < c->len ? len : c->len;
    return cursor_of(cursor_take(c, len), len);
}

static void check_result(const struct unwind_result *r)
{
    if (r->count == 0 || r->count > UNWIND_FRAMES_MAX || r->end >= STACK_END_COUNT) {
        abort();
    }
    for (size_t i = 1; i < r->count; i++) {
        if (r->frame[i].image != 1) {
            abort(); /* only a leaf may be nowhere */
        }
    }
}

static void walk(struct walked *w, struct unwinder *u, struct cursor c, bool beyond)
{
    static struct unwind_result result;
    struct memory_reader memory = {read_stack, w};
    struct unwind_space space = {.id = 1, .find = find_place, .context = w};
    struct unwind_stack stack = {.base = STACK_AT, .copy = w->stack.ptr, .len = w->stack.len,
                                 .beyond = beyond ? &memory : NULL};
    struct unwind_registers r = {.known = UINT64_MAX >> 31};
    uint16_t ip = cursor_u16(&c);
    for (int i = 0; i < UNWIND_REGISTERS; i++) {
        r.at[i] = STACK_AT + cursor_u16(&c);
    }
    r.at[16] = r.at[32] = MAPPED_AT + IMAGE_TEXT + ip; /* either processor's */
    r.at[7] = r.at[31] = STACK_AT;
    unwind(u, &r, &stack, &space, UNWIND_FRAMES_MAX, &result);
    check_result(&result);
}

static void look_up(struct unwind_table *table)
{
    bool analysed;
    uint64_t start, limit;
    for (uint64_t at = IMAGE_TEXT - 16; at < IMAGE_TEXT + IMAGE_TEXT_BYTES + 16; at += 13) {
        if (unwind_table_rule(table, at, &analysed).kind > RULE_END) {
            abort();
        }
    }
    if (unwind_table_function(table, IMAGE_TEXT + 0x123, &start, &limit) &&
        (start > IMAGE_TEXT + 0x123 || limit <= IMAGE_TEXT + 0x123)) {
        abort();
    }
}

static struct frame_image *image_of(struct cursor *c, uint8_t choice)
{
    struct frame_image *image = frame_image_begin(choice & CHOOSE_DEBUG ? IMAGE_DEBUG : 0);
    struct cursor header = take_piece(c, IMAGE_HEADER_MAX), cfi = take_piece(c, IMAGE_CFI_MAX);
    struct cursor code = take_piece(c, IMAGE_TEXT_BYTES);
    if (cfi.len > 0) {
        frame_put(image, cfi.ptr, cfi.len);
    }
    if (code.len > 0) {
        frame_image_code(image, IMAGE_TEXT, code.ptr, code.len);
    }
    image->in_table = header.len / 8 < IMAGE_FDES_MAX ? header.len / 8 : IMAGE_FDES_MAX;
    frame_image_end(image, (choice & CHOOSE_HEADER ? IMAGE_HEADER : 0) |
                               (choice & CHOOSE_SECTIONS ? IMAGE_SECTIONS : 0) |
                               (choice & CHOOSE_ZLIB ? IMAGE_ZLIB : 0) |
                               (choice & CHOOSE_ZDEBUG ? IMAGE_ZDEBUG : 0) |
                               (choice & CHOOSE_GO ? IMAGE_GO : 0));
    if (header.len > 0) {
        memcpy(image->bytes + IMAGE_HEADER_OFFSET, header.ptr, header.len);
    }
    return image;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct cursor c = cursor_of(data, size);
    uint8_t choice = cursor_u8(&c);
    struct frame_image *image = image_of(&c, choice);
    struct elf e;
    struct unwinder u;
    if (!elf_open_bytes(&e, image->bytes, image->len, NULL) ||
        !unwinder_init(&u, UNWIND_HYBRID, NULL)) {
        abort();
    }
    struct walked w = {.table = unwind_table_new(&e, choice & CHOOSE_SMALL ? 4096 : 1 << 20),
                       .stack = take_piece(&c, 8192), .frame_pointers = choice & CHOOSE_FP};
    if ((choice & CHOOSE_SMALL) == 0) {
        unwind_table_no_analysis(w.table); /* which has a target of its own */
    }
    walk(&w, &u, c, false);
    walk(&w, &u, c, true);
    look_up(w.table);
    unwinder_release(&u);
    unwind_table_free(w.table);
    elf_release(&e);
    free(image);
    return 0;
}
