/* Which functions a stack's frames run: their first bytes, read in each sample, for a function's memory may be
 * another's by the next one. They tell where the instruction is that a frame is at, and the fingerprint by which the
 * function is known again when it is named. */
#include "runtime/php/walk.h"

enum {
    ROUNDS_MAX = RUNTIME_FRAMES_MAX / WALK_HEADS + 2,
};

static void ask_head(struct walk *w, uint64_t address)
{
    struct walk_head *h = &w->head[w->head_count++];
    memset(h->bytes, 0, sizeof h->bytes);
    h->address = address;
    h->piece = php_stack_ask(w, address, h->bytes, PHP_FUNCTION_BYTES);
}

void php_stack_ask_functions(struct walk *w)
{
    w->head_count = 0;
    for (uint32_t i = 0; i < w->plan->head_count; i++) {
        ask_head(w, w->plan->head[i]);
    }
}

void php_stack_take_functions(struct walk *w)
{
    for (uint32_t i = 0; i < w->head_count; i++) {
        struct walk_head *h = &w->head[i];
        /* an internal function may be the last thing before what is not mapped */
        h->is_there = h->piece != 0 && w->piece[h->piece - 1].got >= PHP_FUNCTION_LEAST;
        h->function = php_function_of(&w->php->layout, h->bytes);
        h->is_there = h->is_there && h->function.kind != 0;
    }
}

static const struct walk_head *head_of(const struct walk *w, uint64_t address)
{
    for (uint32_t i = 0; i < w->head_count; i++) {
        if (w->head[i].address == address) {
            return &w->head[i];
        }
    }
    return NULL;
}

/* What a function without a name is called by; its line is to be read. */
static void fill_nameless(struct walk *w, uint32_t at, const struct php_function *f)
{
    struct runtime_frame *frame = &w->out->frame[at];
    bool known = frame->position < PHP_NO_LINE;
    uint64_t address = known ? f->opcodes + (uint64_t)frame->position * OPLINE_BYTES + OPLINE_LINE : 0;
    w->line[w->line_count++] = (struct walk_line){.address = address, .text = f->filename, .frame = at};
    if (f->nameless == NAMELESS_EVAL || (f->nameless == NAMELESS_FILE && at + 1 < w->out->count)) {
        w->plan->short_lived = SHORT_LIVED; /* so are texts of their names */
    }
    frame->position = PHP_NO_LINE;
    frame->code = f->filename >> 3 | (uint64_t)f->first_line << NAMELESS_ADDRESS_BITS;
    frame->check = PHP_NAMELESS | (uint64_t)f->nameless << NAMELESS_KIND_AT | f->scope >> 3;
}

/* The interpreter's loop keeps frame and instruction in registers, and writes the latter down where it may fail or call
 * something. They hold both, unless C code that was called since has put something else there. */
static uint64_t opline_of_leaf(const struct walk *w, const struct runtime_frame *frame, const struct php_function *f)
{
    const struct runtime_registers *r = w->registers;
    bool good = w->php->keeps_in_registers && !w->twice && r != NULL && r->kept[0] == w->leaf &&
                f->kind == PHP_USER && php_position(f, r->kept[1]) != PHP_NO_LINE;
    return good ? r->kept[1] : frame->check;
}

/* What is left out: frames that a fiber begins with, which are nobody's function. */
static void fill(struct walk *w, uint32_t at, const struct php_function *f)
{
    struct runtime_frame *frame = &w->out->frame[at];
    uint64_t opline = at == 0 ? opline_of_leaf(w, frame, f) : frame->check;
    bool is_top = (frame->position & INFO_TOP) != 0;
    frame->position = f->kind == PHP_USER ? php_position(f, opline) : PHP_NO_CODE;
    frame->flags &= ~(uint32_t)WALK_UNCHECKED;
    frame->flags |= f->kind == PHP_USER && is_top ? RUNTIME_FRAME_ENTRY : 0;
    frame->flags |= f->kind == PHP_INTERNAL && f->name == 0 ? WALK_DROPPED : 0;
    frame->check = f->check;
    if (w->php->serves && !f->lasts) { /* gone when the request is over */
        w->plan->short_lived = (uint32_t)most(w->plan->short_lived, PASSING);
    }
    if (f->nameless != NAMELESS_NOT) {
        fill_nameless(w, at, f);
    }
}

static void take_line(struct walk *w, const struct walk_line *line, const unsigned char *text)
{
    struct runtime_frame *frame = &w->out->frame[line->frame];
    uint64_t len = load_u64(text + 16);
    uint32_t got = line->text_piece != 0 ? w->piece[line->text_piece - 1].got : 0;
    frame->position = php_stack_got(w, line->piece) && line->line < PHP_NO_LINE ? line->line : PHP_NO_LINE;
    if (got >= 24 && got - 24 >= least(len, PHP_TEXT_BYTES)) {
        frame->check |= php_text_check(len, (const char *)text + 24);
    }
}

/* Each text once: recursive ones have the same file. */
static void ask_line(struct walk *w, uint32_t number, unsigned char *texts)
{
    struct walk_line *line = &w->line[number];
    line->piece = php_stack_ask(w, line->address, &line->line, 4);
    line->slot = 0;
    while (w->line[line->slot].text != line->text) {
        line->slot++;
    }
    unsigned char *to = texts + (size_t)line->slot * WALK_TEXT;
    bool has_text = line->slot < number;
    line->text_piece = has_text ? w->line[line->slot].text_piece : php_stack_ask(w, line->text, to, WALK_TEXT);
}

/* Of all that have been met since the last time. The window has been walked: its memory is free. */
static bool read_lines(struct walk *w)
{
    unsigned char *texts = w->window.bytes[0];
    uint32_t count = w->line_count;
    w->pieces = w->line_count = 0;
    memset(texts, 0, (size_t)count * WALK_TEXT);
    for (uint32_t i = 0; i < count; i++) {
        ask_line(w, i, texts);
    }
    if (count > 0 && !php_stack_read(w)) {
        return false;
    }
    for (uint32_t i = 0; i < count; i++) {
        take_line(w, &w->line[i], texts + (size_t)w->line[i].slot * WALK_TEXT);
    }
    return true;
}

/* Whose functions to ask for first next time. */
static void remember_head(struct php_plan *plan, uint64_t address)
{
    bool known = plan->head_count == PLAN_HEADS;
    for (uint32_t i = 0; !known && i < plan->head_count; i++) {
        known = plan->head[i] == address;
    }
    if (!known) {
        plan->head[plan->head_count++] = address;
    }
}

/* Fills in what is known, and asks for others; how many were asked for, -1: a frame runs what is no function. */
static int fill_and_ask(struct walk *w)
{
    struct runtime_stack *out = w->out;
    int asked = 0;
    for (uint32_t i = 0; i < out->count; i++) {
        struct runtime_frame *frame = &out->frame[i];
        const struct walk_head *head = (frame->flags & WALK_UNCHECKED) != 0 ? head_of(w, frame->code) : NULL;
        if (head != NULL && (!head->is_there || (w->line_count == WALK_LINES && !read_lines(w)))) {
            return -1;
        }
        if (head != NULL) {
            remember_head(w->plan, head->address);
            fill(w, i, &head->function);
        }
    }
    w->pieces = w->head_count = 0;
    for (uint32_t i = 0; i < out->count && w->head_count < WALK_HEADS; i++) {
        if ((out->frame[i].flags & WALK_UNCHECKED) != 0 && head_of(w, out->frame[i].code) == NULL) {
            ask_head(w, out->frame[i].code);
            asked++;
        }
    }
    return asked;
}

/* Puts together what remains. */
static void close_frames(struct runtime_stack *out)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < out->count; i++) {
        const struct runtime_frame frame = out->frame[i];
        bool is_dropped = (frame.flags & WALK_DROPPED) != 0;
        out->frame[kept] = frame;
        if (is_dropped && kept > 0) {
            out->frame[kept - 1].flags |= frame.flags & RUNTIME_FRAME_CUT;
        }
        kept += !is_dropped;
    }
    out->count = kept;
}

static void remember_lone(struct walk *w)
{
    w->plan->lone_count = 0;
    for (uint32_t i = 0; i < w->lone_count; i++) {
        if (w->lone[i].was_met) {
            w->plan->lone[w->plan->lone_count++] = w->lone[i].address;
        }
    }
}

enum runtime_end php_stack_functions(struct walk *w)
{
    w->plan->head_count = 0;
    for (int round = 0; round < ROUNDS_MAX; round++) {
        int asked = fill_and_ask(w);
        if (asked == 0) {
            if (!read_lines(w)) {
                return w->unreadable ? RUNTIME_UNREADABLE : RUNTIME_TORN;
            }
            close_frames(w->out);
            remember_lone(w);
            if (w->out->count > 0) {
                w->out->frame[w->out->count - 1].flags |= RUNTIME_FRAME_ENTRY;
            }
            return w->out->count > 0 ? RUNTIME_COMPLETE : RUNTIME_EMPTY;
        }
        if (asked < 0 || !php_stack_read(w)) {
            return w->unreadable ? RUNTIME_UNREADABLE : RUNTIME_TORN;
        }
        php_stack_take_functions(w);
    }
    return RUNTIME_TORN;
}
