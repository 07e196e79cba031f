#include "unwind/explore.h"

#include <stdlib.h>
#include <string.h>

enum { WORD_BITS = 64, START_MARKS = MARK_START | MARK_CALLED | MARK_TAILED };

/* An instruction and the number of its rule. */
struct seen {
    uint32_t at;
    uint16_t rule;
    uint8_t len;
};

/* Where ways meet: the state that all of them agree on. */
struct leader {
    struct state state;
    uint32_t at;
    uint32_t first_seen, seen_count; /* its block, as far as it was followed the last time */
    uint32_t behind;  /* only reached from the call that ends here; 0: otherwise */
    bool queued;
};

struct offsets {
    uint32_t *at;
    size_t len, cap;
};

struct walk {
    struct text *text;
    uint32_t start, next_start; /* of this function, and the next one */
    bool assumed;
    enum evidence evidence;
    VEC(struct leader) leaders;
    VEC(struct seen) seen; /* the instructions of all blocks and their rules */
    VEC(uint32_t) work;
    struct offsets called, tailed; /* what looks like a function from here */
    struct offsets labels;         /* what does not, though a symbol says so */
    struct offsets jumps;          /* behind indirect jumps */
    VEC(struct state) jump_states; /* there */
    size_t steps_left;
    uint16_t rule;     /* of the last instruction seen */
    bool stale;        /* the state has changed since */
    bool strict;       /* see begins_another */
    bool restart;
    bool no_end;       /* what looked like a thread's first function returns */
    bool returns;      /* or leaves otherwise */
    bool confirmed;    /* something known agrees */
    bool contradicted; /* something known does not */
    bool broken;       /* a return that does not find its frame */
    bool clash;        /* ways that do not agree and cannot both be right */
    bool cut;          /* undecodable bytes, or too much */
};

static void walk_clear(struct walk *w)
{
    vec_clear(&w->leaders);
    vec_clear(&w->work);
    vec_clear(&w->called);
    vec_clear(&w->tailed);
    vec_clear(&w->labels);
    vec_clear(&w->jumps);
    vec_clear(&w->jump_states);
    vec_clear(&w->seen);
    w->restart = w->returns = w->confirmed = w->contradicted = false;
    w->broken = w->clash = w->cut = false;
}

static void walk_release(struct walk *w)
{
    vec_release(&w->leaders);
    vec_release(&w->work);
    vec_release(&w->called);
    vec_release(&w->tailed);
    vec_release(&w->labels);
    vec_release(&w->jumps);
    vec_release(&w->jump_states);
    vec_release(&w->seen);
}

bool text_init(struct text *text, const struct code *code, uint64_t steps)
{
    *text = (struct text){.code = *code, .steps_left = steps};
    text->marks = calloc(code->len + 1, sizeof *text->marks);
    text->cells = calloc(code->len + 1, sizeof *text->cells);
    struct unwind_rule *none = vec_push(&text->rules); /* zeroed: RULE_NONE */
    text->starts = calloc(code->len / WORD_BITS + 1, sizeof *text->starts);
    text->notes = calloc(code->len + 1, sizeof *text->notes);
    text->walk = calloc(1, sizeof *text->walk);
    return text->marks != NULL && text->cells != NULL && text->starts != NULL && text->notes != NULL &&
           text->walk != NULL && none != NULL;
}

void text_release(struct text *text)
{
    if (text->walk != NULL) {
        walk_release(text->walk);
    }
    free(text->walk);
    free(text->notes);
    free(text->starts);
    free(text->marks);
    free(text->cells);
    vec_release(&text->rules);
    map_release(&text->rule_index);
    vec_release(&text->queue);
    vec_release(&text->functions);
    vec_release(&text->jumps);
    vec_release(&text->jump_states);
    map_release(&text->callee_at);
    map_release(&text->callees);
}

static bool is_start(const struct text *text, uint32_t at)
{
    return (text->starts[at / WORD_BITS] >> at % WORD_BITS & 1) != 0;
}

uint32_t text_next_start(const struct text *text, uint32_t at)
{
    uint32_t len = (uint32_t)text->code.len, word = at / WORD_BITS;
    uint64_t bits = at < len ? text->starts[word] >> at % WORD_BITS << at % WORD_BITS : 0;
    while (bits == 0) {
        if (++word > len / WORD_BITS) {
            return len;
        }
        bits = text->starts[word];
    }
    return word * WORD_BITS + (uint32_t)__builtin_ctzll(bits);
}

void text_mark(struct text *text, uint32_t at, uint16_t marks)
{
    text->marks[at] |= marks;
    if (marks & START_MARKS) {
        text->starts[at / WORD_BITS] |= (uint64_t)1 << at % WORD_BITS;
    }
}

static void unmark(struct text *text, uint32_t at, uint16_t marks)
{
    text->marks[at] &= (uint16_t)~marks;
    if ((text->marks[at] & START_MARKS) == 0) {
        text->starts[at / WORD_BITS] &= ~((uint64_t)1 << at % WORD_BITS);
    }
}

void text_clear(struct text *text, bool discovering)
{
    text->discovering = discovering;
    memset(text->cells, 0, text->code.len * sizeof *text->cells);
    for (uint32_t i = 0; i < text->code.len; i++) {
        uint16_t mark = text->marks[i];
        text->marks[i] = (uint16_t)(mark & ~(MARK_TRIED | MARK_EXPLORED));
        if (discovering && mark & (MARK_TAILED | MARK_DEAD)) {
            unmark(text, i, MARK_TAILED | MARK_DEAD);
            text->marks[i] |= mark & MARK_TAILED ? MARK_WAS_TAILED : 0;
        }
    }
    vec_clear(&text->queue);
    vec_clear(&text->functions);
    vec_clear(&text->jumps);
    vec_clear(&text->jump_states);
    text->given_up = 0;
    text->again = false;
}

void text_queue(struct text *text, uint32_t start)
{
    if (text->marks[start] & MARK_TRIED) {
        return;
    }
    text->marks[start] |= MARK_TRIED;
    uint32_t *slot = vec_push(&text->queue);
    if (slot == NULL) {
        text->failed = true;
        return;
    }
    *slot = start;
}

void text_note_plain(struct text *text, uint32_t at, const struct glance *glance)
{
    text->notes[at] = glance->len << PLAIN_REGISTERS | glance->forgets;
}

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

void text_note_callee(struct text *text, uint64_t address)
{
    struct callee callee = callee_of(text, address);
    callee.sites++;
    put_callee(text, address, callee);
}

/* A single call may have been misread; of a function that never returns, many show it. */
static bool never_returns(struct callee callee)
{
    return callee.dead >= 2 && callee.dead >= callee.sites / 8;
}

static uint64_t hash_of(const struct unwind_rule *rule)
{
    uint64_t words[2];
    _Static_assert(sizeof words == sizeof *rule, "a rule without padding");
    memcpy(words, rule, sizeof words);
    return (words[0] * 0x9e3779b97f4a7c15u) ^ (words[1] * 0xc2b2ae3d27d4eb4fu);
}

/* The number of a rule; 0, which is RULE_NONE, when there is no room for another one. */
static uint16_t intern(struct text *text, const struct unwind_rule *rule)
{
    if (memcmp(rule, &text->rules.at[text->last_rule], sizeof *rule) == 0) {
        return text->last_rule;
    }
    uint64_t hash = hash_of(rule);
    for (const struct map_slot *slot = map_find(&text->rule_index, hash); slot != NULL;
         slot = map_next(&text->rule_index, slot)) {
        if (memcmp(rule, &text->rules.at[slot->value], sizeof *rule) == 0) {
            text->last_rule = (uint16_t)slot->value;
            return text->last_rule;
        }
    }
    if (text->rules.len >= RULES_MAX - CELL_RULES) {
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

static bool in_text(const struct text *text, uint64_t address)
{
    return address - text->code.address < text->code.len;
}

static bool known_conflict(const struct state *a, const struct state *b)
{
    struct value left = a->reg[arch_sp_number], right = b->reg[arch_sp_number];
    return left.kind != VALUE_UNKNOWN && right.kind != VALUE_UNKNOWN && !value_equal(left, right);
}

static void call_does_not_return(struct walk *w, uint32_t behind)
{
    struct text *text = w->text;
    const struct map_slot *slot = map_find(&text->callee_at, behind);
    if (slot != NULL && (text->marks[behind] & MARK_VOTED) == 0) {
        struct callee callee = callee_of(text, slot->value);
        bool before = never_returns(callee);
        callee.dead++;
        put_callee(text, slot->value, callee);
        text->again = text->again || before != never_returns(callee);
    }
    text->marks[behind] |= MARK_DEAD | MARK_VOTED;
}

static void queue_leader(struct walk *w, uint32_t number)
{
    if (w->leaders.at[number].queued) {
        return;
    }
    uint32_t *slot = vec_push(&w->work);
    if (slot == NULL) {
        w->text->failed = true;
        return;
    }
    *slot = number;
    w->leaders.at[number].queued = true;
}

static struct leader *leader_at(const struct walk *w, uint32_t at)
{
    uint32_t number = w->text->notes[at];
    return number < w->leaders.len && w->leaders.at[number].at == at ? &w->leaders.at[number]
                                                                     : NULL;
}

static void add_leader(struct walk *w, uint32_t at, const struct state *s, uint32_t behind)
{
    struct leader *leader = vec_push(&w->leaders);
    if (leader == NULL) {
        w->text->failed = true;
        return;
    }
    *leader = (struct leader){.state = *s, .at = at, .behind = behind};
    w->text->marks[at] |= MARK_TARGET;
    w->text->notes[at] = (uint32_t)(w->leaders.len - 1);
    queue_leader(w, (uint32_t)(w->leaders.len - 1));
}

/* One more way into a leader. */
static void join(struct walk *w, uint32_t at, const struct state *s, uint32_t behind)
{
    struct leader *leader = leader_at(w, at);
    if (leader == NULL) {
        add_leader(w, at, s, behind);
        return;
    }
    if (known_conflict(&leader->state, s)) {
        if (behind != 0) {
            call_does_not_return(w, behind);
            return;
        }
        if (leader->behind != 0) {
            call_does_not_return(w, leader->behind);
            w->restart = true;
            return;
        }
        w->clash = true;
        w->contradicted = true;
    }
    leader->behind = behind != 0 ? leader->behind : 0;
    if (state_meet(&leader->state, s)) {
        queue_leader(w, (uint32_t)(leader - w->leaders.at));
    }
}

static void note(struct walk *w, struct offsets *list, uint32_t at)
{
    uint32_t *slot = vec_push(list);
    if (slot == NULL) {
        w->text->failed = true;
        return;
    }
    *slot = at;
}

/* Whether the walk goes on into `at`, which it reaches with this state. */
static bool goes_on(struct walk *w, uint32_t at, const struct state *s, uint32_t behind)
{
    struct text *text = w->text;
    if (at != w->start && is_start(text, at)) {
        if (s->end) {
            return false; /* behind the system call that ends a thread */
        }
        if (arch_is_entry_like(s)) {
            w->confirmed = w->confirmed || behind == 0;
            w->returns = w->returns || behind == 0;
            return false;
        }
        if (behind != 0) {
            call_does_not_return(w, behind);
            return false;
        }
        if (text->marks[at] & MARK_CALLED || !text->discovering) {
            w->contradicted = true;
            w->clash = true;
            return false;
        }
        note(w, &w->labels, at);
    }
    if (text->cells[at] >= CELL_RULES) {
        struct unwind_rule rule = arch_rule(s);
        if (memcmp(&rule, &text->rules.at[text->cells[at] - CELL_RULES], sizeof rule) == 0) {
            w->confirmed = w->confirmed || behind == 0;
            w->returns = true;
            return false;
        }
        w->contradicted = true;
        w->clash = true;
        return !w->assumed && behind == 0;
    }
    return true;
}

/* A jump out of the function with its frame gone. Jumps back out of what a jump table leads to are
 * none: they go to the rest of the same function. */
static bool is_tail_call(const struct walk *w, uint32_t at, const struct state *s)
{
    bool out = at < w->start || at >= w->next_start;
    bool known = w->text->cells[at] >= CELL_RULES && !is_start(w->text, at);
    return out && arch_is_entry_like(s) && w->evidence != EVIDENCE_JUMP && !known;
}

static void leave_to(struct walk *w, uint64_t target, const struct state *s)
{
    struct text *text = w->text;
    if (!in_text(text, target)) {
        w->returns = true;
        return;
    }
    uint32_t at = (uint32_t)(target - text->code.address);
    if (is_tail_call(w, at, s)) {
        w->confirmed = w->confirmed || is_start(text, at);
        w->returns = true;
        note(w, &w->tailed, at);
        return;
    }
    if (!goes_on(w, at, s, 0)) {
        return;
    }
    if ((text->marks[at] & MARK_TARGET) == 0) {
        text->marks[at] |= MARK_TARGET;
        w->restart = true; /* a block that runs across it ends here from now on */
    }
    join(w, at, s, 0);
}

/* Whether control comes back behind the call. */
static bool comes_back(struct walk *w, const struct step *step, uint32_t next)
{
    struct text *text = w->text;
    if (next >= text->code.len || text->marks[next] & MARK_DEAD) {
        return false;
    }
    if (step->has_target && (step->through_pointer || !in_text(text, step->target))) {
        text->failed = !map_put(&text->callee_at, next, step->target) || text->failed;
        return !never_returns(callee_of(text, step->target));
    }
    if (step->has_target) {
        uint16_t *mark = &text->marks[step->target - text->code.address];
        if (*mark & MARK_NO_RETURN) {
            return false;
        }
        *mark |= MARK_RELIED;
    }
    return true;
}

static void note_jump(struct walk *w, uint32_t behind, const struct state *s)
{
    if (w->jumps.len + w->text->jumps.len >= TEXT_JUMPS_MAX) {
        return;
    }
    struct state *state = vec_push(&w->jump_states);
    if (state != NULL) {
        *state = *s;
    }
    w->text->failed = state == NULL || w->text->failed;
    note(w, &w->jumps, behind);
}

/* Follows what the instruction at `at` does; true when the next one is reached by it. */
static bool follow(struct walk *w, uint32_t at, struct state *s, const struct step *step)
{
    switch (step->flow) {
    case FLOW_CALL:
        if (step->has_target && !step->through_pointer && in_text(w->text, step->target)) {
            note(w, &w->called, (uint32_t)(step->target - w->text->code.address));
        }
        return comes_back(w, step, at + step->len);
    case FLOW_JUMP:
        leave_to(w, step->target, s);
        return false;
    case FLOW_BRANCH:
        leave_to(w, step->target, s);
        if (step->sp_equals != 0) {
            s->reg[arch_sp_number] = s->reg[step->sp_equals - 1];
        }
        return true;
    case FLOW_RETURN:
        w->returns = true;
        if (s->end) {
            w->no_end = w->restart = true;
            return false;
        }
        w->contradicted = w->contradicted || step->broken;
        w->broken = w->broken || step->broken;
        w->confirmed = w->confirmed || arch_is_entry_like(s);
        return false;
    case FLOW_INDIRECT:
        w->returns = true;
        note_jump(w, at + step->len, s);
        return false;
    case FLOW_TRAP:
        w->confirmed = w->confirmed || s->signal;
        return false;
    default:
        return true;
    }
}

static bool take_step(const struct text *text, uint32_t at, struct state *s, struct step *step)
{
    return arch_step(text->code.bytes + at, text->code.len - at, text->code.address + at, s, step);
}

static void look_ahead(const struct text *text, uint32_t at, struct state *s)
{
    arch_look_ahead(text->code.bytes + at, text->code.len - at, s);
}

static void see(struct walk *w, uint32_t number, uint32_t at, uint32_t len)
{
    struct seen *seen = vec_push(&w->seen);
    if (seen == NULL) {
        w->text->failed = true;
        return;
    }
    *seen = (struct seen){at, w->rule, (uint8_t)len};
    w->leaders.at[number].seen_count++;
}

/* A plain instruction by its note: true when that was possible. */
static bool step_by_note(const struct walk *w, uint32_t at, struct state *s, struct step *step,
                         bool *changes)
{
    const struct text *text = w->text;
    uint32_t note = text->notes[at];
    if (note == 0 || text->marks[at] & MARK_TARGET) {
        return false;
    }
    *step = (struct step){.len = note >> PLAIN_REGISTERS, .flow = FLOW_NEXT};
    *changes = false;
    s->compared = 0;
    for (uint32_t left = note & ((1u << PLAIN_REGISTERS) - 1); left != 0; left &= left - 1) {
        struct value *value = &s->reg[__builtin_ctz(left)];
        *changes = *changes || value->kind != VALUE_UNKNOWN;
        *value = (struct value){0};
    }
    return true;
}

/* False: the walk cannot stand here. */
static bool step_in_block(struct walk *w, uint32_t number, uint32_t at, struct state *s,
                          struct step *step)
{
    bool changes = true;
    if (!w->text->discovering && w->stale) {
        struct unwind_rule rule = arch_rule(s);
        w->rule = intern(w->text, &rule);
    }
    if (w->steps_left == 0 ||
        (!step_by_note(w, at, s, step, &changes) && !take_step(w->text, at, s, step))) {
        w->cut = true;
        w->contradicted = true;
        return false;
    }
    w->steps_left--;
    w->stale = changes;
    if (!w->text->discovering) {
        see(w, number, at, step->len);
    }
    return true;
}

/* Padding behind a call, and no branch leads to what it aligns: that is another function. A single
 * byte may also be what compilers that do not optimise leave there. Without padding only a walk that
 * has led to a contradiction otherwise takes an aligned address for a function. */
static bool begins_another(const struct walk *w, uint32_t at, uint32_t behind)
{
    const struct text *text = w->text;
    return behind != 0 && at % FUNCTION_ALIGNMENT == 0 &&
           (text->marks[at] & MARK_TARGET) == 0 &&
           (at > behind + arch_code_alignment || (w->strict && at > behind) ||
            ((w->strict || at > behind) &&
             arch_looks_like_start(text->code.bytes + at, text->code.len - at)));
}

/* An assumption is given up at the first contradiction. */
static bool is_refuted(const struct walk *w)
{
    return w->assumed && w->contradicted;
}

static void walk_block(struct walk *w, uint32_t number)
{
    struct text *text = w->text;
    struct state s = w->leaders.at[number].state;
    uint32_t at = w->leaders.at[number].at, behind = w->leaders.at[number].behind;
    bool first = true, on = true;
    look_ahead(text, at, &s);
    w->leaders.at[number].queued = false;
    w->leaders.at[number].first_seen = (uint32_t)w->seen.len;
    w->leaders.at[number].seen_count = 0;
    w->stale = true;
    while (on && !w->restart && !text->failed && !is_refuted(w)) {
        struct step step;
        if (at >= text->code.len || (!first && !goes_on(w, at, &s, behind))) {
            return;
        }
        if (begins_another(w, at, behind)) {
            call_does_not_return(w, behind);
            return;
        }
        if (!first && text->marks[at] & MARK_TARGET) {
            join(w, at, &s, behind);
            return;
        }
        if (!step_in_block(w, number, at, &s, &step)) {
            if (behind != 0) {
                call_does_not_return(w, behind);
            }
            return;
        }
        on = follow(w, at, &s, &step);
        at += step.len;
        behind = step.flow == FLOW_CALL ? at : step.padding ? behind : 0;
        first = false;
    }
}

static void put(struct text *text, const struct seen *seen)
{
    uint16_t cell = (uint16_t)(seen->rule + CELL_RULES);
    if (text->cells[seen->at] >= CELL_RULES && text->cells[seen->at] != cell) {
        cell = CELL_RULES; /* two functions share the code and do not agree: RULE_NONE */
    }
    text->cells[seen->at] = cell;
    for (uint32_t at = seen->at + 1; at < seen->at + seen->len; at++) {
        text->cells[at] = text->cells[at] == CELL_FREE ? CELL_INSIDE : text->cells[at];
    }
}

/* A symbol is no function's start when code runs or jumps to it out of a frame: a label, or the part
 * of a function that its compiler moved away. */
static void publish_labels(struct walk *w)
{
    struct text *text = w->text;
    if (w->broken) {
        return; /* this walk itself was wrong somewhere */
    }
    vec_each(&w->labels, label) {
        text->again = text->again || (text->marks[*label] & (MARK_START | MARK_TAILED)) != 0;
        unmark(text, *label, MARK_START | MARK_TAILED);
    }
}

static void publish_starts(struct walk *w, const struct offsets *starts, enum mark mark)
{
    vec_each(starts, start) {
        if (!is_start(w->text, *start) && (w->text->marks[*start] & MARK_WAS_TAILED) == 0) {
            w->text->again = true; /* whoever ran across it has to stop there */
        }
        text_mark(w->text, *start, (uint16_t)mark);
        text_queue(w->text, *start);
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

static void publish_jump(struct text *text, uint32_t at, const struct state *state)
{
    struct state *stored = vec_push(&text->jump_states);
    size_t place = text_jumps_up_to(text, at);
    if (stored == NULL || vec_push(&text->jumps) == NULL) {
        text->failed = true;
        return;
    }
    *stored = *state;
    struct indirect_jump *jump = &text->jumps.at[place];
    memmove(jump + 1, jump, (text->jumps.len - 1 - place) * sizeof *jump);
    *jump = (struct indirect_jump){at, (uint32_t)(text->jump_states.len - 1)};
}

static void publish_jumps(struct walk *w)
{
    for (size_t i = 0; i < w->jumps.len; i++) {
        publish_jump(w->text, w->jumps.at[i], &w->jump_states.at[i]);
    }
}

static void publish_return(struct walk *w)
{
    struct text *text = w->text;
    bool never = !w->returns && !w->cut && !w->clash && !w->assumed;
    uint16_t *mark = &text->marks[w->start];
    if (never && (*mark & MARK_NO_RETURN) == 0) {
        text->again = text->again || (*mark & MARK_RELIED) != 0;
        *mark |= MARK_NO_RETURN;
    } else if (!never && (*mark & MARK_NO_RETURN) != 0) {
        text->again = true;
        *mark &= (uint16_t)~MARK_NO_RETURN;
    }
}

static void publish(struct walk *w)
{
    publish_labels(w);
    publish_starts(w, &w->called, MARK_CALLED);
    publish_starts(w, &w->tailed, MARK_TAILED);
    publish_jumps(w);
    publish_return(w);
    w->text->given_up += w->cut || w->clash || w->contradicted;
}

static void put_function(const struct walk *w)
{
    vec_each(&w->leaders, leader) {
        for (uint32_t i = 0; i < leader->seen_count; i++) {
            put(w->text, &w->seen.at[leader->first_seen + i]);
        }
    }
}

static void explore(struct walk *w, const struct state *state)
{
    for (int tries = 0; tries < FUNCTION_RESTARTS_MAX; tries++) {
        walk_clear(w);
        struct state first = *state;
        first.no_end = w->no_end;
        add_leader(w, w->start, &first, 0);
        while (w->work.len > 0 && !w->restart && !w->text->failed && !is_refuted(w)) {
            walk_block(w, w->work.at[--w->work.len]);
        }
        if (!w->restart) {
            return;
        }
    }
    w->cut = w->contradicted = true;
}

bool text_explore(struct text *text, uint32_t start, const struct state *state,
                  enum evidence evidence)
{
    struct walk *w = text->walk;
    size_t most = evidence == EVIDENCE_START ? FUNCTION_STEPS_MAX : GUESS_STEPS_MAX;
    size_t allowed = text->steps_left < most ? (size_t)text->steps_left : most;
    w->text = text;
    w->start = start;
    w->next_start = text_next_start(text, start + 1);
    w->evidence = evidence;
    w->assumed = evidence != EVIDENCE_START;
    w->no_end = w->strict = false;
    w->steps_left = allowed;
    explore(w, state);
    if (w->broken && !w->assumed) {
        w->strict = true;
        explore(w, state);
    }
    text->steps_left -= allowed - w->steps_left;
    bool good = !text->failed && (evidence == EVIDENCE_START || !w->contradicted) &&
                (evidence <= EVIDENCE_HINT || w->confirmed);
    uint32_t *function = good ? vec_push(&text->functions) : NULL;
    if (function == NULL) {
        text->failed = text->failed || good;
        return false;
    }
    *function = start;
    text->marks[start] |= MARK_EXPLORED;
    if (!text->discovering && !w->broken) { /* nobody can say which part of it went wrong */
        put_function(w);
    }
    publish(w);
    return !text->failed;
}
