/*
 * The asyncio task that a thread runs, and its name: a str, or for a task that nobody named a number,
 * which asyncio shows as "Task-7" (Modules/_asynciomodule.c). Read in the order name, pointer to it,
 * running task: a task that still runs is alive, and so was its name.
 */
#include "runtime/python/walk.h"

enum {
    DIGIT_BITS = 30,     /* of an int, Include/cpython/longintrepr.h: a word with sign and number of */
    DIGIT_COUNT_AT = 3,  /* digits, then these */
    SIGN = 3,
    DIGITS_MAX = 2,
    DECIMAL_MAX = 20,
    REPLACEMENT = 0xfffd,
    TASK_BYTES = 59,
};

void walk_begin_task(struct walk *w)
{
    uint64_t fields = __atomic_load_n(&w->python->task_fields, __ATOMIC_ACQUIRE);
    w->task.at = (uint32_t)(fields >> 32);
    w->task.name_at = (uint32_t)fields;
    w->task.piece = w->task.got = 0;
}

void walk_ask_task(struct walk *w)
{
    const struct python_plan *plan = w->plan;
    w->task.piece = 0;
    if (w->task.at == 0) {
        return;
    }
    if (plan->task != 0) {
        w->task.piece = walk_ask(w, plan->task_name, w->task.name, sizeof w->task.name);
        walk_ask_word(w, WORD_TASK_NAME, plan->task + w->task.name_at, 8);
    }
    walk_ask_word(w, WORD_TASK, plan->thread + w->task.at, 8);
}

void walk_take_task(struct walk *w)
{
    w->task.got = w->task.piece != 0 ? w->piece[w->task.piece - 1].got : 0;
}

/* ---- a name that was not predicted ---- */

/* Freed memory is soon the next task's: then the first batch has it. */
static bool read_pointer(struct walk *w, uint64_t task, uint64_t *name)
{
    *name = w->word[WORD_TASK_NAME];
    if (task == w->plan->task && plausible(*name)) {
        return true;
    }
    w->pieces = 0;
    w->word[WORD_TASK_NAME] = 0;
    walk_ask_word(w, WORD_TASK_NAME, task + w->task.name_at, 8);
    bool good = walk_read(w);
    *name = w->word[WORD_TASK_NAME];
    return good && plausible(*name);
}

static bool fetch_name(struct walk *w, uint64_t task)
{
    uint64_t name;
    if (!read_pointer(w, task, &name)) {
        return false;
    }
    w->pieces = 0;
    w->word[WORD_TASK] = w->word[WORD_TASK_NAME] = 0;
    uint32_t piece = walk_ask(w, name, w->task.name, sizeof w->task.name);
    walk_ask_word(w, WORD_TASK_NAME, task + w->task.name_at, 8);
    walk_ask_word(w, WORD_TASK, w->plan->thread + w->task.at, 8);
    if (!walk_read(w) || w->word[WORD_TASK] != task || w->word[WORD_TASK_NAME] != name) {
        return false;
    }
    w->task.got = w->piece[piece - 1].got;
    w->plan->task = task;
    w->plan->task_name = name;
    return true;
}

/* ---- its name ---- */

static void put_byte(struct runtime_stack *out, uint32_t byte)
{
    out->task[out->task_bytes++] = (char)byte;
}

/* False: there is no room for it. */
static bool put_character(struct runtime_stack *out, uint32_t c)
{
    uint32_t more = c < 0x80 ? 0 : c < 0x800 ? 1 : c < 0x10000 ? 2 : 3;
    static const unsigned char first[] = {0, 0xc0, 0xe0, 0xf0};
    if (out->task_bytes + more >= TASK_BYTES) {
        return false;
    }
    put_byte(out, first[more] | c >> 6 * more);
    while (more-- > 0) {
        put_byte(out, 0x80 | (c >> 6 * more & 0x3f));
    }
    return true;
}

static uint32_t character(const unsigned char *at, uint32_t width)
{
    uint32_t c = 0;
    memcpy(&c, at, width);
    return c < ' ' ? ' ' : c > 0x10ffff || (c >= 0xd800 && c < 0xe000) ? REPLACEMENT : c;
}

/* As much of it as was read. */
static void take_str(const struct python_layout *l, const unsigned char *name, uint32_t got, struct runtime_stack *out)
{
    struct python_text text;
    if (!python_text_find(l, name, got, &text) || text.pointer != 0) {
        return;
    }
    uint32_t limit = least(text.offset + text.bytes, got);
    for (uint32_t at = text.offset; at + text.width <= limit; at += text.width) {
        if (!put_character(out, character(name + at, text.width))) {
            return;
        }
    }
}

static void put_number(struct runtime_stack *out, uint64_t number)
{
    char digits[DECIMAL_MAX];
    uint32_t count = 0;
    do {
        digits[count++] = (char)('0' + number % 10);
        number /= 10;
    } while (number != 0);
    while (count > 0) {
        put_byte(out, (unsigned char)digits[--count]);
    }
}

static void take_int(const struct python_layout *l, const unsigned char *name, uint32_t got, struct runtime_stack *out)
{
    const unsigned char *at = name + l->object.size;
    if (got < l->object.size + 8 + 4 * DIGITS_MAX) {
        return;
    }
    uint64_t tag = load_u64(at), count = tag >> DIGIT_COUNT_AT;
    if ((tag & SIGN) != 0 || count == 0 || count > DIGITS_MAX) {
        return;
    }
    uint64_t number = load_u32(at + 8);
    number |= count == DIGITS_MAX ? (uint64_t)load_u32(at + 12) << DIGIT_BITS : 0;
    for (const char *c = "Task-"; *c != '\0'; c++) {
        put_byte(out, (unsigned char)*c);
    }
    put_number(out, number);
}

void python_take_task_name(const struct python *python, const unsigned char *name, uint32_t got,
                           struct runtime_stack *out)
{
    const struct python_layout *l = &python->layout;
    uint64_t type = got >= l->object.type + 8 ? load_u64(name + l->object.type) : 0;
    if (type != 0 && type == python->str_type) {
        take_str(l, name, got, out);
    } else if (type != 0 && type == python->int_type) {
        take_int(l, name, got, out);
    }
}

void walk_name_task(struct walk *w)
{
    struct python_plan *plan = w->plan;
    uint64_t task = w->task.at != 0 ? w->word[WORD_TASK] : 0;
    if (task == 0) {
        return; /* it may run the plan's again in a moment */
    }
    bool predicted = task == plan->task && w->word[WORD_TASK_NAME] == plan->task_name &&
                     w->task.got != 0;
    if (predicted || fetch_name(w, task)) {
        python_take_task_name(w->python, w->task.name, w->task.got, w->out);
    } else {
        plan->task = 0;
    }
}
