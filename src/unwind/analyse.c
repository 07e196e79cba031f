#include "unwind/analyse.h"

#include <stdlib.h>
#include <string.h>

#include "unwind/explore.h"

enum {
    STEPS_PER_BYTE = 4,  /* a text costs at most that many instructions for each byte */
    FUNCTION_MAX = 64 * 1024, /* bytes of one function */
    DISCOVERIES_MAX = 3,
    GAP_ROUNDS_MAX = 3,
};

static bool in_code(const struct code *code, uint64_t address)
{
    return address - code->address < code->len;
}

static void survey_instruction(struct text *text, uint32_t at, const struct glance *glance)
{
    const struct code *code = &text->code;
    bool inside = in_code(code, glance->target) && !glance->through_pointer;
    if (glance->plain) {
        text_note_plain(text, at, glance);
    }
    if (glance->refers != 0 && in_code(code, glance->refers)) {
        text->marks[glance->refers - code->address] |= MARK_REFERRED;
    }
    if (!glance->has_target) {
        return;
    }
    if (glance->flow != FLOW_CALL && inside) {
        text->marks[glance->target - code->address] |= MARK_TARGET;
    } else if (glance->flow == FLOW_CALL && !inside) {
        text_note_callee(text, glance->target);
    }
}

/* Reads the code from its start to its end. Where data stands in between that reads nonsense for some
 * bytes: the marks it leaves do no harm, and its notes are met by nobody. */
static void survey(struct text *text)
{
    const struct code *code = &text->code;
    struct glance glance;
    for (size_t at = 0; at < code->len; at += glance.len) {
        if (arch_glance(code->bytes + at, code->len - at, code->address + at, &glance)) {
            survey_instruction(text, (uint32_t)at, &glance);
        } else {
            glance.len = arch_code_alignment;
        }
    }
}

static void drain(struct text *text, size_t max_functions)
{
    for (size_t next = 0; next < text->queue.len && text->functions.len < max_functions; next++) {
        if (text->failed || text->steps_left == 0) {
            return;
        }
        uint32_t start = text->queue.at[next];
        if ((text->marks[start] & MARK_EXPLORED) == 0) {
            (void)text_explore(text, start, &arch_entry_state, EVIDENCE_START);
        }
    }
    vec_clear(&text->queue);
}

static bool is_zero(const struct code *code, size_t at)
{
    for (size_t i = 0; i < arch_code_alignment; i++) {
        if (at + i >= code->len || code->bytes[at + i] != 0) {
            return false;
        }
    }
    return true;
}

/* The first offset from `at` on that is free and no padding; the text's length without one. */
static size_t next_gap(const struct text *text, size_t at)
{
    const struct code *code = &text->code;
    struct glance glance;
    while (at < code->len) {
        if (text->cells[at] != CELL_FREE || is_zero(code, at)) {
            at += arch_code_alignment;
        } else if (arch_glance(code->bytes + at, code->len - at, code->address + at, &glance) &&
                   glance.padding) {
            at += glance.len;
        } else {
            return at;
        }
    }
    return code->len;
}

static bool start_between(const struct text *text, uint32_t from, uint32_t to)
{
    return text_next_start(text, from) < to;
}

/* What an indirect jump of the same function leads to has the state of that jump. */
static bool explore_as_target(struct text *text, uint32_t at)
{
    size_t next = text_jumps_up_to(text, at);
    const struct indirect_jump *jump = text->jumps.at;
    if (next > 0 && !start_between(text, jump[next - 1].at, at)) {
        struct state before = text->jump_states.at[jump[next - 1].state];
        if (text_explore(text, at, &before, EVIDENCE_JUMP)) {
            return true;
        }
    }
    if (next < text->jumps.len && !start_between(text, at, jump[next].at)) {
        struct state behind = text->jump_states.at[jump[next].state];
        return text_explore(text, at, &behind, EVIDENCE_JUMP);
    }
    return false;
}

static bool fill_gap(struct text *text, uint32_t at)
{
    const unsigned char *bytes = text->code.bytes + at;
    if (text->marks[at] & MARK_REFERRED &&
        text_explore(text, at, &arch_entry_state, EVIDENCE_HINT)) {
        return true;
    }
    bool start_first =
        at % FUNCTION_ALIGNMENT == 0 && arch_looks_like_start(bytes, text->code.len - at);
    return (start_first && text_explore(text, at, &arch_entry_state, EVIDENCE_NONE)) ||
           explore_as_target(text, at) ||
           (!start_first && text_explore(text, at, &arch_entry_state, EVIDENCE_NONE));
}

/* Where to look next behind a gap that nothing could be concluded about: where a branch leads to, or
 * behind what ends its first block. */
static size_t behind_gap(const struct text *text, size_t at)
{
    const struct code *code = &text->code;
    struct glance glance;
    do {
        if (!arch_glance(code->bytes + at, code->len - at, code->address + at, &glance)) {
            return at + arch_code_alignment;
        }
        at += glance.len;
    } while (at < code->len && text->cells[at] == CELL_FREE && (glance.flow == FLOW_NEXT || glance.flow == FLOW_BRANCH) &&
             (text->marks[at] & MARK_TARGET) == 0);
    return at;
}

static void fill_gaps(struct text *text, size_t max_functions)
{
    for (size_t at = next_gap(text, 0); at < text->code.len; at = next_gap(text, at)) {
        if (text->failed || text->steps_left == 0 || text->functions.len >= max_functions) {
            return;
        }
        if (fill_gap(text, (uint32_t)at)) {
            drain(text, max_functions);
        } else {
            at = behind_gap(text, at);
        }
    }
}

static bool append(struct analysed *out, uint64_t address, const struct unwind_rule *rule)
{
    if (out->rows.len > 0 &&
        memcmp(&out->rows.at[out->rows.len - 1].rule, rule, sizeof *rule) == 0) {
        return true;
    }
    struct analysed_row *row = vec_push(&out->rows);
    if (row != NULL) {
        *row = (struct analysed_row){address, *rule};
    }
    return row != NULL;
}

/* Padding between two instructions of one rule belongs to neither: rows end where code ends. */
static bool append_rows(const struct text *text, struct analysed *out)
{
    static const struct unwind_rule none = {.kind = RULE_NONE};
    bool good = append(out, text->code.address, &none);
    for (size_t at = 0; good && at < text->code.len; at++) {
        uint16_t cell = text->cells[at];
        if (cell != CELL_INSIDE) {
            good = append(out, text->code.address + at,
                          cell == CELL_FREE ? &none : &text->rules.at[cell - CELL_RULES]);
        }
    }
    good = good && append(out, text->code.address + text->code.len, &none);
    out->functions += text->functions.len;
    out->given_up += text->given_up;
    return good;
}

static void explore_starts(struct text *text, bool discovering, size_t max_functions)
{
    text_clear(text, discovering);
    for (uint32_t at = text_next_start(text, 0); at < text->code.len;
         at = text_next_start(text, at + 1)) {
        text_queue(text, at);
    }
    drain(text, max_functions);
}

static void run(struct text *text, const uint64_t *starts, size_t count, size_t max_functions)
{
    for (size_t i = 0; i < count; i++) {
        if (starts[i] - text->code.address < text->code.len) {
            text_mark(text, (uint32_t)(starts[i] - text->code.address), MARK_START);
        }
    }
    for (int i = 0; i < DISCOVERIES_MAX && (i == 0 || text->again); i++) {
        explore_starts(text, true, max_functions);
    }
    explore_starts(text, false, max_functions);
    size_t before;
    int rounds = 0;
    do { /* what one gap held may be what another one waits for */
        before = text->functions.len;
        fill_gaps(text, max_functions);
    } while (text->functions.len > before && ++rounds < GAP_ROUNDS_MAX);
}

static bool finish(struct text *text, struct analysed *out)
{
    bool good = !text->failed && append_rows(text, out);
    text_release(text);
    return good;
}

bool analyse_text(const struct code *code, const uint64_t *starts, size_t start_count,
                  size_t max_functions, struct analysed *out)
{
    struct text text;
    if (code->len > UINT32_MAX / 2) {
        return true;
    }
    if (!text_init(&text, code, (uint64_t)code->len * STEPS_PER_BYTE)) {
        text_release(&text);
        return false;
    }
    survey(&text);
    run(&text, starts, start_count, max_functions);
    return finish(&text, out);
}

bool analyse_function(const struct code *code, uint64_t start, uint64_t limit,
                      struct analysed *out)
{
    uint64_t offset = start - code->address;
    if (offset >= code->len || limit <= start) {
        return true;
    }
    size_t len = limit - start < code->len - offset ? limit - start : code->len - offset;
    struct code window = {start, code->bytes + offset, len < FUNCTION_MAX ? len : FUNCTION_MAX};
    struct text text;
    if (!text_init(&text, &window, FUNCTION_STEPS_MAX)) {
        text_release(&text);
        return false;
    }
    survey(&text);
    text_mark(&text, 0, MARK_START);
    (void)text_explore(&text, 0, &arch_entry_state, EVIDENCE_START);
    return finish(&text, out);
}
