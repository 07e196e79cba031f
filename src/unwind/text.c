/* The notes of an analysis about a range of code: marks per byte (starts, targets, calls that do not
 * return), rules per instruction, the list of functions still to be followed, and indirect
 * jumps. Memory is bounded by the code's size. */
#include "unwind/text.h"

#include <stdlib.h>
#include <string.h>

enum { WORD_BITS = 64, RULES_MAX = UINT16_MAX - CELL_RULES };

bool text_init(struct text *text, const struct code *code, uint64_t steps)
{
    *text = (struct text){.code = *code, .steps_left = steps};
    text->marks = calloc(code->len + 1, sizeof *text->marks);
    text->cells = calloc(code->len + 1, sizeof *text->cells);
    text->notes = calloc(code->len + 1, sizeof *text->notes);
    text->starts = calloc(code->len / WORD_BITS + 1, sizeof *text->starts);
    struct unwind_rule *none = vec_push(&text->rules); /* zeroed: RULE_NONE */
    return text->marks != NULL && text->cells != NULL && text->notes != NULL &&
           text->starts != NULL && none != NULL;
}

void text_release(struct text *text)
{
    free(text->marks);
    free(text->cells);
    free(text->notes);
    free(text->starts);
    vec_release(&text->rules);
    map_release(&text->rule_index);
    vec_release(&text->queue);
    vec_release(&text->functions);
    vec_release(&text->jumps);
    vec_release(&text->jump_states);
    map_release(&text->callee_at);
    map_release(&text->callees);
}

void text_clear(struct text *text, bool discovering)
{
    unsigned forget = MARK_QUEUED | MARK_EXPLORED | (discovering ? MARK_TAILED | MARK_DEAD : 0);
    for (uint32_t at = 0; at < text->code.len; at++) {
        if ((text->marks[at] & forget) != 0) {
            text_unmark(text, at, forget);
        }
    }
    memset(text->cells, 0, text->code.len * sizeof *text->cells);
    vec_clear(&text->queue);
    vec_clear(&text->functions);
    vec_clear(&text->jumps);
    vec_clear(&text->jump_states);
    text->given_up = 0;
    text->discovering = discovering;
    text->misled = false;
}

void text_mark(struct text *text, uint32_t at, enum mark mark)
{
    text->marks[at] |= (uint16_t)mark;
    if ((mark & START_MARKS) != 0) {
        text->starts[at / WORD_BITS] |= (uint64_t)1 << at % WORD_BITS;
    }
}

void text_unmark(struct text *text, uint32_t at, unsigned marks)
{
    text->marks[at] &= (uint16_t)~marks;
    if ((text->marks[at] & START_MARKS) == 0) {
        text->starts[at / WORD_BITS] &= ~((uint64_t)1 << at % WORD_BITS);
    }
}

bool text_is_start(const struct text *text, uint32_t at)
{
    return (text->starts[at / WORD_BITS] >> at % WORD_BITS & 1) != 0;
}

uint32_t text_next_start(const struct text *text, uint32_t at, uint64_t limit)
{
    uint32_t end = (uint32_t)(limit < text->code.len ? limit : text->code.len);
    uint32_t word = at / WORD_BITS;
    if (at >= end) {
        return end;
    }
    uint64_t bits = text->starts[word] >> at % WORD_BITS << at % WORD_BITS;
    while (bits == 0) {
        if (++word > (end - 1) / WORD_BITS) {
            return end;
        }
        bits = text->starts[word];
    }
    uint32_t start = word * WORD_BITS + (uint32_t)__builtin_ctzll(bits);
    return start < end ? start : end;
}

void text_queue(struct text *text, uint32_t start)
{
    if (text->marks[start] & MARK_QUEUED) {
        return;
    }
    text->marks[start] |= MARK_QUEUED;
    uint32_t *slot = vec_push(&text->queue);
    if (slot == NULL) {
        text->failed = true;
        return;
    }
    *slot = start;
}

void text_note_plain(struct text *text, uint32_t at, const struct survey *survey)
{
    text->notes[at] = survey->len << PLAIN_REGISTERS | survey->forgets;
}

struct callee {
    uint32_t sites, dead;
};

static struct callee callee_of(const struct text *text, uint64_t address)
{
    const struct map_slot *slot = map_find(&text->callees, address);
    uint64_t packed = slot == NULL ? 0 : slot->value;
    return (struct callee){(uint32_t)packed, (uint32_t)(packed >> 32)};
}

static void put_callee(struct text *text, uint64_t address, struct callee callee)
{
    uint64_t packed = (uint64_t)callee.dead << 32 | callee.sites;
    text->failed = !map_put(&text->callees, address, packed) || text->failed;
}

/* A single call may have been misread; of a function that never returns, many show it. */
static bool never_returns(struct callee callee)
{
    return callee.dead >= 2 && callee.dead >= callee.sites / 8;
}

void text_note_callee(struct text *text, uint64_t address)
{
    struct callee callee = callee_of(text, address);
    if (callee.sites > 0 || text->callees.len < TEXT_CALLEES_MAX) {
        callee.sites++;
        put_callee(text, address, callee);
    }
}

void text_note_dead(struct text *text, uint32_t after)
{
    const struct map_slot *slot = map_find(&text->callee_at, after);
    if (slot != NULL && (text->marks[after] & MARK_VOTED) == 0) {
        struct callee callee = callee_of(text, slot->value);
        callee.dead++;
        put_callee(text, slot->value, callee);
    }
    text->marks[after] |= MARK_DEAD | MARK_VOTED;
}

bool text_callee_returns(struct text *text, uint64_t address, uint32_t after)
{
    if (text->callee_at.len < TEXT_CALLEES_MAX) {
        text->failed = !map_put(&text->callee_at, after, address) || text->failed;
    }
    return !never_returns(callee_of(text, address));
}

static uint64_t hash_of(const struct unwind_rule *rule)
{
    uint64_t words[2];
    _Static_assert(sizeof words == sizeof *rule, "a rule without padding");
    memcpy(words, rule, sizeof words);
    return (words[0] * 0x9e3779b97f4a7c15u) ^ (words[1] * 0xc2b2ae3d27d4eb4fu);
}

static bool find_rule(struct text *text, const struct unwind_rule *rule, uint64_t hash)
{
    for (const struct map_slot *slot = map_find(&text->rule_index, hash); slot != NULL;
         slot = map_next(&text->rule_index, slot)) {
        if (memcmp(rule, &text->rules.at[slot->value], sizeof *rule) == 0) {
            text->last_rule = (uint16_t)slot->value;
            return true;
        }
    }
    return false;
}

uint16_t text_rule_number(struct text *text, const struct unwind_rule *rule)
{
    if (memcmp(rule, &text->rules.at[text->last_rule], sizeof *rule) == 0) {
        return text->last_rule;
    }
    uint64_t hash = hash_of(rule);
    if (find_rule(text, rule, hash)) {
        return text->last_rule;
    }
    if (text->rules.len >= RULES_MAX) {
        return 0;
    }
    struct unwind_rule *stored = vec_push(&text->rules);
    if (stored == NULL || !map_add(&text->rule_index, hash, text->rules.len - 1)) {
        text->failed = true;
        return 0;
    }
    *stored = *rule;
    text->last_rule = (uint16_t)(text->rules.len - 1);
    return text->last_rule;
}

/* What two functions agree on that share code: often all but where the frame pointer is. */
static uint16_t common_rule(struct text *text, uint16_t one, uint16_t another)
{
    struct unwind_rule rule = text->rules.at[one], other = text->rules.at[another];
    rule.fp_place = other.fp_place = FP_UNKNOWN;
    rule.fp = other.fp = 0;
    return rule.kind == RULE_CFA && memcmp(&rule, &other, sizeof rule) == 0 ? text_rule_number(text, &rule) : 0;
}

void text_put(struct text *text, uint32_t at, uint32_t len, uint16_t rule)
{
    uint16_t before = text->cells[at], cell = (uint16_t)(rule + CELL_RULES);
    if (before >= CELL_RULES && before != cell) {
        cell = (uint16_t)(CELL_RULES + common_rule(text, (uint16_t)(before - CELL_RULES), rule));
    }
    text->cells[at] = cell;
    for (uint32_t inside = at + 1; inside < at + len; inside++) {
        if (text->cells[inside] == CELL_FREE) {
            text->cells[inside] = CELL_INSIDE;
        }
    }
}

size_t text_jumps_up_to(const struct text *text, uint32_t at)
{
    size_t low = 0, high = text->jumps.len;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (text->jumps.at[middle].at <= at) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

void text_add_jump(struct text *text, uint32_t after, const struct state *state)
{
    if (text->jumps.len >= TEXT_JUMPS_MAX) {
        return;
    }
    size_t place = text_jumps_up_to(text, after);
    struct state *stored = vec_push(&text->jump_states);
    if (stored == NULL || vec_push(&text->jumps) == NULL) {
        text->failed = true;
        return;
    }
    *stored = *state;
    struct indirect_jump *jump = &text->jumps.at[place];
    memmove(jump + 1, jump, (text->jumps.len - 1 - place) * sizeof *jump);
    *jump = (struct indirect_jump){after, (uint32_t)(text->jump_states.len - 1)};
}
