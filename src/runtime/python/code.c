/* Reads code objects from a process's memory in batches, each twice where it may be changing: what describes the
 * function, and which of its parts names.c needs. What was freed meanwhile is recognised by its fingerprint
 * and its count of references. */
#include "runtime/python/code.h"

/* Pieces of one batch, and where each one's `got` is wanted. */
struct batch {
    struct memory_piece piece[CODES_MAX * (CODE_PARTS + 1)];
    size_t count;
};

static void ask(struct batch *batch, uint64_t address, void *out, size_t len)
{
    batch->piece[batch->count++] = (struct memory_piece){address, out, (uint32_t)len, 0};
}

static void read_batch(struct codes *codes, struct batch *batch)
{
    /* when nothing can be read, nothing was got, and that is told by the pieces */
    if (batch->count > 0) {
        (void)memory_batch_read(codes->memory, batch->piece, batch->count, NULL);
    }
}

static uint64_t word_at(const unsigned char *bytes, uint32_t at, size_t len)
{
    uint64_t value = 0;
    if (at <= LAYOUT_CODE_MAX - len) { /* not LAYOUT_NONE */
        memcpy(&value, bytes + at, len);
    }
    return value;
}

/* What was freed may look unchanged for long, but for its count of references: that is 0, or part
 * of an allocator's link to other free memory (those are addresses beyond 4 GiB). */
static bool is_referred_to(const struct python_layout *layout, const unsigned char *head)
{
    uint32_t type = layout->object.type;
    uint64_t count = word_at(head, type - 8, 8);
    if (layout->free_threaded) { /* the owner's count; that of others, with two bits of state */
        return word_at(head, type - 12, 4) != 0 || (int64_t)count >> 2 > 0;
    }
    if (layout->version >= PYTHON_VERSION(3, 14)) { /* 32 bits, 16 of overflow, 16 of flags */
        return (uint32_t)count != 0 && (uint16_t)(count >> 32) == 0;
    }
    return count != 0 && count <= UINT32_MAX;
}

/* Whether it is the code object asked for; notes when it has been freed. */
static bool is_it(const struct codes *codes, struct code_read *code, const unsigned char *head,
                  uint64_t check)
{
    const struct python *python = codes->python;
    uint64_t type = word_at(head, python->layout.object.type, 8);
    code->freed |= !is_referred_to(&python->layout, head);
    return (python->code_type == 0 || type == python->code_type) &&
           (code->check != 0 || !code->freed) && (check == 0 || check == code->found);
}

void python_codes_heads(struct codes *codes)
{
    const struct python_layout *layout = &codes->python->layout;
    struct batch batch = {.count = 0};
    for (size_t i = 0; i < codes->count; i++) {
        struct code_read *code = &codes->at[i];
        memset(code->head, 0, sizeof code->head);
        ask(&batch, code->address, code->head, layout->code.bytes);
    }
    read_batch(codes, &batch);
    for (size_t i = 0; i < codes->count; i++) {
        struct code_read *code = &codes->at[i];
        code->found = python_fingerprint(layout, code->head);
        code->freed = false;
        code->alive = batch.piece[i].got == layout->code.bytes &&
                      is_it(codes, code, code->head, code->check);
        int32_t first_line = (int32_t)word_at(code->head, layout->code.first_line, 4);
        code->first_line = first_line > 0 ? (uint32_t)first_line : 0;
    }
}

static bool is_wanted(const struct code_read *code)
{
    return code->alive && code->known == 0;
}

static void find_parts(const struct python_layout *layout, struct code_read *code)
{
    bool is_qualified = layout->code.qualname != LAYOUT_NONE;
    const uint32_t at[CODE_PARTS] = {
        [CODE_FUNCTION] = is_qualified ? layout->code.qualname : layout->code.name,
        [CODE_FILE] = layout->code.file,
        [CODE_TABLE] = layout->code.lines,
    };
    for (size_t i = 0; i < CODE_PARTS; i++) {
        struct code_part_read *part = &code->part[i];
        part->object = word_at(code->head, at[i], 8);
        part->data = NULL;
        part->got = 0;
        memset(part->window, 0, sizeof part->window);
    }
}

/* The code objects of the batch once more: those that are not what they were are dropped. */
struct second_read {
    unsigned char head[CODES_MAX][LAYOUT_CODE_MAX];
    struct code_read *code[CODES_MAX];
    size_t first, count; /* pieces of the batch */
};

static void ask_again(const struct codes *codes, struct batch *batch, struct second_read *again,
                      struct code_read *code)
{
    unsigned char *head = again->head[again->count];
    memset(head, 0, LAYOUT_CODE_MAX);
    again->first = again->count == 0 ? batch->count : again->first;
    again->code[again->count++] = code;
    ask(batch, code->address, head, codes->python->layout.code.bytes);
}

static void drop_changed(const struct codes *codes, const struct batch *batch,
                         const struct second_read *again)
{
    const struct python_layout *layout = &codes->python->layout;
    for (size_t i = 0; i < again->count; i++) {
        struct code_read *code = again->code[i];
        code->alive = batch->piece[again->first + i].got == layout->code.bytes &&
                      is_it(codes, code, again->head[i],
                            python_fingerprint(layout, again->head[i]));
    }
}

static bool find_table(const struct python_layout *layout, struct code_part_read *part)
{
    uint64_t bytes = word_at(part->window, layout->object.size, 8);
    part->text = (struct python_text){.offset = layout->object.bytes_data, .width = 1};
    part->text.bytes = (uint32_t)bytes;
    return part->got >= part->text.offset && bytes <= CODE_TABLE_MAX;
}

/* Whether the content is in the window; if not, where it is has been found out, or it is no such
 * object. */
static bool find_content(const struct python_layout *layout, enum code_part which,
                         struct code_part_read *part)
{
    bool ok = which == CODE_TABLE
                  ? find_table(layout, part)
                  : python_text_find(layout, part->window, part->got, &part->text);
    if (!ok) {
        part->object = 0;
        return false;
    }
    if (part->text.pointer == 0 && part->text.offset <= part->got &&
        part->text.bytes <= part->got - part->text.offset) {
        part->data = part->window + part->text.offset;
    }
    return part->data != NULL;
}

static void read_windows(struct codes *codes)
{
    struct batch batch = {.count = 0};
    struct second_read again = {.count = 0};
    for (size_t i = 0; i < codes->count; i++) {
        struct code_read *code = &codes->at[i];
        for (size_t k = 0; is_wanted(code) && k < CODE_PARTS; k++) {
            ask(&batch, code->part[k].object, code->part[k].window, CODE_WINDOW);
        }
    }
    for (size_t i = 0; i < codes->count; i++) {
        if (is_wanted(&codes->at[i])) {
            ask_again(codes, &batch, &again, &codes->at[i]);
        }
    }
    read_batch(codes, &batch);
    for (size_t i = 0; i < again.count * CODE_PARTS; i++) {
        again.code[i / CODE_PARTS]->part[i % CODE_PARTS].got = batch.piece[i].got;
    }
    drop_changed(codes, &batch, &again);
}

/* Asks for content that no window holds; whether there was any. */
static bool ask_long(struct codes *codes, struct batch *batch, struct code_read *code)
{
    size_t before = batch->count;
    for (size_t k = 0; k < CODE_PARTS; k++) {
        struct code_part_read *part = &code->part[k];
        if (find_content(&codes->python->layout, (enum code_part)k, part) || part->object == 0) {
            continue;
        }
        uint64_t address = part->text.pointer != 0 ? part->text.pointer
                                                   : part->object + part->text.offset;
        unsigned char *room = arena_alloc(&codes->long_data, part->text.bytes);
        if (room != NULL) {
            ask(batch, address, room, part->text.bytes);
            part->data = room;
        }
    }
    return batch->count > before;
}

/* What came short is no content. */
static void forget_short(const struct batch *batch, struct code_read *code)
{
    for (size_t k = 0; k < CODE_PARTS; k++) {
        for (size_t i = 0; i < batch->count; i++) {
            const struct memory_piece *piece = &batch->piece[i];
            if (piece->out == code->part[k].data && piece->got != piece->len) {
                code->part[k].data = NULL;
            }
        }
    }
}

static void read_long(struct codes *codes)
{
    struct batch batch = {.count = 0};
    struct second_read again = {.count = 0};
    struct code_read *longer[CODES_MAX];
    size_t count = 0;
    for (size_t i = 0; i < codes->count; i++) {
        if (is_wanted(&codes->at[i]) && ask_long(codes, &batch, &codes->at[i])) {
            longer[count++] = &codes->at[i];
        }
    }
    for (size_t i = 0; i < count; i++) {
        ask_again(codes, &batch, &again, longer[i]);
    }
    read_batch(codes, &batch);
    for (size_t i = 0; i < count; i++) {
        forget_short(&batch, longer[i]);
    }
    drop_changed(codes, &batch, &again);
}

void python_codes_bodies(struct codes *codes)
{
    for (size_t i = 0; i < codes->count; i++) {
        if (is_wanted(&codes->at[i])) {
            find_parts(&codes->python->layout, &codes->at[i]);
        }
    }
    read_windows(codes);
    read_long(codes);
}
