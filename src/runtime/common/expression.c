/* An expression becomes steps, as K. Thompson described it in 1968: one that takes a byte of some set, one that goes on
 * in two ways, and the two that ask where the text begins and ends. All ways are walked at once, byte by byte. Where
 * steps go on is told from where they stand, so that what is complete can be moved to put a step in front of it. */
#include "runtime/common/expression.h"

#include <string.h>

enum { STEP_BYTE, STEP_WAYS, STEP_BEGIN, STEP_END, STEP_DONE };

struct parser {
    struct expression *e;
    const char *rest;
    int depth;
    const char *why; /* null: good so far */
};

static void parse_ways(struct parser *p);

/* ---- into steps ---- */

static void fail(struct parser *p, const char *why)
{
    p->why = p->why == NULL ? why : p->why;
}

/* Before the steps from `at` on. */
static struct expression_step *insert(struct parser *p, int at, int kind, int a, int b)
{
    struct expression *e = p->e;
    if (e->count >= EXPRESSION_STEPS_MAX - 1) {
        fail(p, "it is too long");
        return &e->at[e->count];
    }
    memmove(&e->at[at + 1], &e->at[at], (size_t)(e->count - at) * sizeof e->at[0]);
    e->count++;
    e->at[at] = (struct expression_step){.kind = (uint8_t)kind, .a = (int16_t)a, .b = (int16_t)b};
    return &e->at[at];
}

static struct expression_step *append(struct parser *p, int kind)
{
    return insert(p, p->e->count, kind, 1, 1);
}

static void take(struct expression_step *step, unsigned char from, unsigned char to)
{
    for (unsigned byte = from; byte <= to; byte++) {
        step->bytes[byte / 32] |= UINT32_C(1) << byte % 32;
    }
}

static void invert(struct expression_step *step)
{
    for (size_t i = 0; i < sizeof step->bytes / sizeof step->bytes[0]; i++) {
        step->bytes[i] = ~step->bytes[i];
    }
}

/* What stands behind a backslash. */
static void take_escaped(struct expression_step *step, char letter)
{
    if (letter == 'd' || letter == 'w') {
        take(step, '0', '9');
    }
    if (letter == 'w') {
        take(step, 'a', 'z');
        take(step, 'A', 'Z');
        take(step, '_', '_');
    }
    if (letter == 's') {
        take(step, '\t', '\r');
        take(step, ' ', ' ');
    }
    if (letter != 'd' && letter != 'w' && letter != 's') {
        take(step, (unsigned char)letter, (unsigned char)letter);
    }
}

/* Behind the bracket. */
static void parse_set(struct parser *p)
{
    struct expression_step *step = append(p, STEP_BYTE);
    bool is_inverse = *p->rest == '^';
    p->rest += is_inverse;
    for (bool first = true; *p->rest != '\0' && (first || *p->rest != ']'); first = false) {
        char from = *p->rest++;
        if (from == '\\' && *p->rest != '\0') {
            take_escaped(step, *p->rest++);
            continue;
        }
        bool is_range = p->rest[0] == '-' && p->rest[1] != ']' && p->rest[1] != '\0';
        char to = is_range ? p->rest[1] : from;
        p->rest += is_range ? 2 : 0;
        if ((unsigned char)to < (unsigned char)from) {
            fail(p, "a range ends before it begins");
            return;
        }
        take(step, (unsigned char)from, (unsigned char)to);
    }
    if (*p->rest != ']') {
        fail(p, "a bracket is not closed");
        return;
    }
    p->rest++;
    if (is_inverse) {
        invert(step);
    }
}

static void parse_group(struct parser *p)
{
    p->rest += strncmp(p->rest, "?:", 2) == 0 ? 2 : 0;
    if (++p->depth > EXPRESSION_DEPTH_MAX) {
        fail(p, "too many parentheses");
        return;
    }
    parse_ways(p);
    p->depth--;
    if (*p->rest != ')') {
        fail(p, "a parenthesis is not closed");
        return;
    }
    p->rest++;
}

static void parse_one(struct parser *p)
{
    char byte = *p->rest++;
    if (byte == '(') {
        parse_group(p);
    } else if (byte == '[') {
        parse_set(p);
    } else if (byte == '^' || byte == '$') {
        append(p, byte == '^' ? STEP_BEGIN : STEP_END);
    } else if (byte == '.') {
        invert(append(p, STEP_BYTE));
    } else if (byte == '*' || byte == '+' || byte == '?') {
        fail(p, "there is nothing to repeat");
    } else if (byte == '{') {
        fail(p, "braces are not known here; \\{ is one in the text");
    } else if (byte == '\\' && *p->rest == '\0') {
        fail(p, "it ends in a backslash");
    } else if (byte == '\\') {
        take_escaped(append(p, STEP_BYTE), *p->rest++);
    } else {
        take(append(p, STEP_BYTE), (unsigned char)byte, (unsigned char)byte);
    }
}

/* What was just parsed begins at `at`. */
static void repeat(struct parser *p, int at, char how)
{
    int len = p->e->count - at;
    if (how == '+') {
        insert(p, p->e->count, STEP_WAYS, -len, 1);
    } else {
        insert(p, at, STEP_WAYS, 1, len + 1 + (how == '*'));
    }
    if (how == '*') {
        insert(p, p->e->count, STEP_WAYS, -len - 1, -len - 1);
    }
}

static bool ends(const struct parser *p)
{
    return p->why != NULL || *p->rest == '\0' || *p->rest == '|' || (*p->rest == ')' && p->depth > 0);
}

static void parse_ways(struct parser *p)
{
    int at = p->e->count;
    while (!ends(p)) {
        int one = p->e->count;
        parse_one(p);
        while (p->why == NULL && *p->rest != '\0' && strchr("*+?", *p->rest) != NULL) {
            repeat(p, one, *p->rest++);
        }
    }
    if (p->why == NULL && *p->rest == '|') {
        p->rest++;
        int len = p->e->count - at;
        insert(p, at, STEP_WAYS, 1, len + 2);
        int jump = p->e->count;
        insert(p, jump, STEP_WAYS, 1, 1);
        parse_ways(p);
        p->e->at[jump].a = p->e->at[jump].b = (int16_t)(p->e->count - jump);
    }
}

bool expression_parse(struct expression *e, const char *text, struct err *err)
{
    struct parser p = {.e = e, .rest = text};
    memset(e, 0, sizeof *e);
    parse_ways(&p);
    append(&p, STEP_DONE);
    return p.why == NULL || err_set(err, ERR_USAGE, 0, "\"%s\" is no expression that is known here: %s", text, p.why);
}

/* ---- along a text ---- */

struct walk {
    const struct expression *e;
    bool is_at[EXPRESSION_STEPS_MAX];
    int waiting[EXPRESSION_STEPS_MAX];
    int count;
    bool done;
};

static void reach(struct walk *w, int step)
{
    if (step >= 0 && step < w->e->count && !w->is_at[step]) {
        w->is_at[step] = true;
        w->waiting[w->count++] = step;
    }
}

/* All steps that can be reached without a byte; each is visited once. */
static void spread(struct walk *w, bool begins, bool is_end)
{
    for (int i = 0; i < w->count; i++) {
        int at = w->waiting[i];
        const struct expression_step *step = &w->e->at[at];
        w->done = w->done || step->kind == STEP_DONE;
        if (step->kind == STEP_WAYS) {
            reach(w, at + step->a);
            reach(w, at + step->b);
        } else if ((step->kind == STEP_BEGIN && begins) || (step->kind == STEP_END && is_end)) {
            reach(w, at + 1);
        }
    }
}

bool expression_finds(const struct expression *e, struct str text)
{
    struct walk now = {.e = e};
    for (size_t i = 0;; i++) {
        reach(&now, 0);
        spread(&now, i == 0, i == text.len);
        if (now.done || i == text.len) {
            return now.done;
        }
        struct walk next = {.e = e};
        unsigned char byte = (unsigned char)text.ptr[i];
        for (int k = 0; k < now.count; k++) {
            const struct expression_step *step = &e->at[now.waiting[k]];
            if (step->kind == STEP_BYTE && (step->bytes[byte / 32] >> byte % 32 & 1) != 0) {
                reach(&next, now.waiting[k] + 1);
            }
        }
        now = next;
    }
}
