/* Analyses a range of machine code that has no unwind tables: surveys it for calls, branches and
 * function starts, then follows each function (explore.c) until the callees' behaviour is settled.
 * What an instruction means is the processor's file's matter. */
#include "unwind/analyse.h"

#include <string.h>

#include "unwind/explore.h"

enum {
    STEPS_PER_BYTE = 3, /* a text costs at most that many instructions for each byte, and */
    STEPS_MIN = 1024,   /* these for the repetitions of short ones */
    DISCOVERIES_MAX = 3,
    GAP_ROUNDS_MAX = 3,
};

struct analysis {
    struct text text;
    struct explorer *explorer;
    size_t max_functions;
};

static bool init(struct analysis *a, const struct code *code, uint64_t steps, size_t max_functions)
{
    *a = (struct analysis){.max_functions = max_functions};
    bool good = text_init(&a->text, code, steps);
    a->explorer = good ? explorer_new(&a->text) : NULL;
    return a->explorer != NULL;
}

static void release(struct analysis *a)
{
    explorer_free(a->explorer);
    text_release(&a->text);
}

static void survey_instruction(struct text *text, uint32_t at, const struct survey *survey)
{
    const struct code *code = &text->code;
    bool inside = text_holds(text, survey->target) && !survey->through_pointer;
    if (survey->plain) {
        text_note_plain(text, at, survey);
    }
    if (survey->refers != 0 && text_holds(text, survey->refers)) {
        text->marks[survey->refers - code->address] |= MARK_REFERRED;
    }
    if (!survey->has_target) {
        return;
    }
    if (survey->flow != FLOW_CALL && inside) {
        text->marks[survey->target - code->address] |=
            survey->flow == FLOW_BRANCH ? MARK_TARGET | MARK_INNER : MARK_TARGET;
    } else if (survey->flow == FLOW_CALL && !inside) {
        text_note_callee(text, survey->target);
    }
}

/* Reads the code from its start to its end. Where data stands in between that reads nonsense for
 * some bytes: the marks it leaves do no harm, and its notes are met by nobody. */
static void survey(struct text *text)
{
    const struct code *code = &text->code;
    struct survey survey;
    for (size_t at = 0; at < code->len; at += survey.len) {
        if (arch_survey(code->bytes + at, code->len - at, code->address + at, &survey)) {
            survey_instruction(text, (uint32_t)at, &survey);
        } else {
            survey.len = arch_code_alignment;
        }
    }
}

static bool is_over(const struct analysis *a)
{
    const struct text *text = &a->text;
    return text->failed || text->steps_left == 0 || text->functions.len >= a->max_functions;
}

static void drain(struct analysis *a)
{
    struct text *text = &a->text;
    for (size_t next = 0; next < text->queue.len && !is_over(a); next++) {
        uint32_t start = text->queue.at[next];
        if ((text->marks[start] & MARK_EXPLORED) == 0) {
            (void)explorer_run(a->explorer, start, &arch_entry_state, EVIDENCE_START);
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
    struct survey survey;
    while (at < code->len) {
        if (text->cells[at] != CELL_FREE || is_zero(code, at)) {
            at += arch_code_alignment;
        } else if (arch_survey(code->bytes + at, code->len - at, code->address + at, &survey) &&
                   survey.padding) {
            at += survey.len;
        } else {
            return at;
        }
    }
    return code->len;
}

/* The jump before `at` or after it belongs to the same function, as far as is known. */
static bool explore_like(struct analysis *a, uint32_t at, const struct indirect_jump *jump)
{
    struct text *text = &a->text;
    uint32_t from = jump->at < at ? jump->at : at, to = jump->at < at ? at : jump->at;
    if (to - from > FUNCTION_REACH || text_next_start(text, from, to) < to) {
        return false;
    }
    struct state state = text->jump_states.at[jump->state];
    return explorer_run(a->explorer, at, &state, EVIDENCE_JUMP);
}

/* What an indirect jump of the same function leads to has the state of that jump. */
static bool explore_as_target(struct analysis *a, uint32_t at)
{
    struct text *text = &a->text;
    size_t next = text_jumps_up_to(text, at);
    return (next > 0 && explore_like(a, at, &text->jumps.at[next - 1])) ||
           (next < text->jumps.len && explore_like(a, at, &text->jumps.at[next]));
}

static bool explore_as_start(struct analysis *a, uint32_t at, enum evidence evidence)
{
    return explorer_run(a->explorer, at, &arch_entry_state, evidence);
}

/* Known code ends before it: nothing runs into a loop that begins here. */
static bool stands_apart(const struct text *text, uint32_t at)
{
    uint32_t before = at;
    while (before > 0 && text->cells[before - 1] == CELL_FREE && at - before < FUNCTION_ALIGNMENT) {
        before--;
    }
    return at % FUNCTION_ALIGNMENT == 0 && before > 0 && text->cells[before - 1] != CELL_FREE;
}

static bool fill_gap(struct analysis *a, uint32_t at)
{
    const struct text *text = &a->text;
    bool may_start = (text->marks[at] & MARK_INNER) == 0 || stands_apart(text, at);
    bool looks = may_start && at % FUNCTION_ALIGNMENT == 0 &&
                 arch_looks_like_start(text->code.bytes + at, text->code.len - at);
    return (text->marks[at] & MARK_REFERRED && explore_as_start(a, at, EVIDENCE_HINT)) ||
           (looks && explore_as_start(a, at, EVIDENCE_NONE)) || explore_as_target(a, at) ||
           (may_start && !looks && explore_as_start(a, at, EVIDENCE_NONE));
}

/* Where to look next after a gap that nothing could be concluded about: where a branch leads to,
 * or after what ends its first block. */
static size_t behind_gap(const struct text *text, size_t at)
{
    const struct code *code = &text->code;
    struct survey survey;
    bool on = true;
    while (on) {
        if (!arch_survey(code->bytes + at, code->len - at, code->address + at, &survey)) {
            return at + arch_code_alignment;
        }
        at += survey.len;
        on = at < code->len && text->cells[at] == CELL_FREE &&
             (text->marks[at] & MARK_TARGET) == 0 &&
             survey.flow != FLOW_JUMP && survey.flow != FLOW_TRAP;
    }
    return at;
}

static void fill_gaps(struct analysis *a)
{
    const struct text *text = &a->text;
    for (size_t at = next_gap(text, 0); at < text->code.len && !is_over(a);
         at = next_gap(text, at)) {
        if (fill_gap(a, (uint32_t)at)) {
            drain(a);
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
    bool good = true;
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

static void explore_starts(struct analysis *a, bool discovering)
{
    struct text *text = &a->text;
    const uint64_t all = text->code.len;
    text_clear(text, discovering);
    for (uint32_t at = text_next_start(text, 0, all); at < all;
         at = text_next_start(text, at + 1, all)) {
        text_queue(text, at);
    }
    drain(a);
}

static void run(struct analysis *a, const uint64_t *starts, size_t count)
{
    struct text *text = &a->text;
    size_t before = SIZE_MAX;
    survey(text);
    for (size_t i = 0; i < count; i++) {
        if (text_holds(text, starts[i])) {
            text_mark(text, (uint32_t)(starts[i] - text->code.address), MARK_START);
        }
    }
    for (int i = 0; i < DISCOVERIES_MAX && (i == 0 || text->misled); i++) {
        explore_starts(a, true);
    }
    explore_starts(a, false);
    /* what one gap held may be what another one waits for */
    for (int i = 0; i < GAP_ROUNDS_MAX && before != text->functions.len; i++) {
        before = text->functions.len;
        fill_gaps(a);
    }
}

static bool finish(struct analysis *a, struct analysed *out)
{
    bool good = !a->text.failed && append_rows(&a->text, out);
    release(a);
    return good;
}

bool analyse_text(const struct code *code, const uint64_t *starts, size_t start_count,
                  size_t max_functions, struct analysed *out)
{
    struct analysis a;
    if (code->len > UINT32_MAX / 2) {
        return true;
    }
    if (!init(&a, code, STEPS_MIN + (uint64_t)code->len * STEPS_PER_BYTE, max_functions)) {
        release(&a);
        return false;
    }
    run(&a, starts, start_count);
    return finish(&a, out);
}

/* The cell of the instruction that holds the byte. */
static uint16_t cell_of(const struct text *text, uint64_t address)
{
    size_t at = (size_t)(address - text->code.address);
    while (at > 0 && text->cells[at] == CELL_INSIDE) {
        at--;
    }
    return text->cells[at];
}

struct unwind_rule analyse_by_sp(const struct code *code, uint64_t address)
{
    struct analysis a;
    struct unwind_rule rule = {.kind = RULE_NONE};
    bool fits = code->len <= UINT32_MAX / 2 && address - code->address < code->len;
    if (fits && init(&a, code, STEPS_MIN + (uint64_t)code->len * STEPS_PER_BYTE, code->len)) {
        a.text.by_sp = true;
        run(&a, &code->address, 1);
        uint16_t cell = a.text.failed ? (uint16_t)CELL_FREE : cell_of(&a.text, address);
        rule = cell < CELL_RULES ? rule : a.text.rules.at[cell - CELL_RULES];
    }
    if (fits) {
        release(&a);
    }
    return rule;
}
