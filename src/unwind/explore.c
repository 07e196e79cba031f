/* Follows one function of machine code along all branches with what is known of its frame, until
 * nothing changes, and stores the resulting rules. Where two paths disagree, the value is unknown; a
 * function that cannot be right gets no rules. */
#include "unwind/explore.h"

#include <stdlib.h>
#include <string.h>

enum {
    GUESS_STEPS_MAX = 1 << 12, /* of what is only assumed to be a function */
    GUESS_COST = 8,            /* steps that a guess costs at least */
    RESTARTS_MAX = 64,
    LEADERS_MAX = 1 << 15, /* 200 bytes each; the largest interpreters have some 10,000 */
};

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
    uint32_t after; /* only reached from the call that ends here; 0: otherwise */
    bool queued;
};

struct offsets {
    uint32_t *at;
    size_t len, cap;
};

struct explorer {
    struct text *text;
    uint32_t start, next_start; /* of this function, and the next one */
    enum evidence evidence;
    bool assumed; /* no EVIDENCE_START */
    VEC(struct leader) leaders;
    struct offsets work;           /* numbers of leaders */
    VEC(struct seen) seen;         /* the instructions of all blocks */
    struct offsets called, tailed; /* what looks like a function from here */
    struct offsets labels;         /* what does not, though a symbol says so */
    struct offsets jumps;          /* after indirect jumps */
    VEC(struct state) jump_states; /* there */
    size_t steps_left;
    uint16_t rule;     /* of the last instruction seen */
    bool stale;        /* the state has changed since */
    bool strict;       /* see begins_another */
    bool no_end;       /* what looked like a thread's first function returns */
    bool restart;
    bool returns;      /* or leaves otherwise */
    bool confirmed;    /* something known agrees */
    bool contradicted; /* something known does not */
    bool broken;       /* a return does not find its frame */
    bool clash;        /* ways do not agree and cannot both be right */
    bool cut;          /* undecodable bytes, or too much */
};

struct explorer *explorer_new(struct text *text)
{
    struct explorer *w = calloc(1, sizeof *w);
    if (w != NULL) {
        w->text = text;
    }
    return w;
}

static void clear(struct explorer *w)
{
    vec_clear(&w->leaders);
    vec_clear(&w->work);
    vec_clear(&w->seen);
    vec_clear(&w->called);
    vec_clear(&w->tailed);
    vec_clear(&w->labels);
    vec_clear(&w->jumps);
    vec_clear(&w->jump_states);
    w->restart = w->returns = w->confirmed = w->contradicted = false;
    w->broken = w->clash = w->cut = false;
}

void explorer_free(struct explorer *w)
{
    if (w == NULL) {
        return;
    }
    vec_release(&w->leaders);
    vec_release(&w->work);
    vec_release(&w->seen);
    vec_release(&w->called);
    vec_release(&w->tailed);
    vec_release(&w->labels);
    vec_release(&w->jumps);
    vec_release(&w->jump_states);
    free(w);
}

static void note(struct explorer *w, struct offsets *list, uint32_t at)
{
    uint32_t *slot = vec_push(list);
    if (slot == NULL) {
        w->text->failed = true;
        return;
    }
    *slot = at;
}

static bool known_conflict(const struct state *a, const struct state *b)
{
    struct value left = a->reg[arch_sp_number], right = b->reg[arch_sp_number];
    return left.kind != VALUE_UNKNOWN && right.kind != VALUE_UNKNOWN && !value_equal(left, right);
}

static void queue_leader(struct explorer *w, uint32_t number)
{
    if (!w->leaders.at[number].queued) {
        w->leaders.at[number].queued = true;
        note(w, &w->work, number);
    }
}

static struct leader *leader_at(const struct explorer *w, uint32_t at)
{
    uint32_t number = w->text->notes[at];
    return number < w->leaders.len && w->leaders.at[number].at == at ? &w->leaders.at[number]
                                                                     : NULL;
}

static void add_leader(struct explorer *w, uint32_t at, const struct state *s, uint32_t after)
{
    struct leader *leader = w->leaders.len < LEADERS_MAX ? vec_push(&w->leaders) : NULL;
    if (leader == NULL) {
        w->text->failed = w->text->failed || w->leaders.len < LEADERS_MAX;
        w->cut = w->contradicted = true;
        return;
    }
    *leader = (struct leader){.state = *s, .at = at, .after = after};
    w->text->marks[at] |= at == w->start ? MARK_BEGUN : MARK_TARGET;
    w->text->notes[at] = (uint32_t)(w->leaders.len - 1);
    queue_leader(w, (uint32_t)(w->leaders.len - 1));
}

/* One more way into a leader. */
static void join(struct explorer *w, uint32_t at, const struct state *s, uint32_t after)
{
    struct leader *leader = leader_at(w, at);
    if (leader == NULL) {
        add_leader(w, at, s, after);
        return;
    }
    if (known_conflict(&leader->state, s)) {
        if (after != 0) {
            text_note_dead(w->text, after);
            return;
        }
        if (leader->after != 0) {
            text_note_dead(w->text, leader->after);
            w->restart = true;
            return;
        }
        w->clash = true;
        w->contradicted = true;
    }
    leader->after = after != 0 ? leader->after : 0;
    if (state_meet(&leader->state, s)) {
        queue_leader(w, (uint32_t)(leader - w->leaders.at));
    }
}

/* Whether the walk goes on into `at`, which it reaches with this state. */
static bool goes_on(struct explorer *w, uint32_t at, const struct state *s, uint32_t after)
{
    struct text *text = w->text;
    if (at != w->start && text_is_start(text, at)) {
        if (s->end) {
            return false; /* after the system call that ends a thread */
        }
        if (arch_is_entry_like(s)) {
            w->confirmed = w->confirmed || after == 0;
            w->returns = w->returns || after == 0;
            return false;
        }
        if (after != 0) {
            text_note_dead(w->text, after);
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
        struct unwind_rule rule = text_rule(text, s);
        if (memcmp(&rule, &text->rules.at[text->cells[at] - CELL_RULES], sizeof rule) == 0) {
            w->confirmed = w->confirmed || after == 0;
            w->returns = true;
            return false;
        }
        w->contradicted = true;
        w->clash = true;
        return !w->assumed && after == 0;
    }
    return true;
}

/* A jump out of the function with its frame gone. Jumps back out of what a jump table leads to are
 * none: they go to the rest of the same function. */
static bool is_tail_call(const struct explorer *w, uint32_t at, const struct state *s)
{
    bool out = at < w->start || at >= w->next_start;
    bool known = w->text->cells[at] >= CELL_RULES && !text_is_start(w->text, at);
    return out && arch_is_entry_like(s) && w->evidence != EVIDENCE_JUMP && !known;
}

static void leave_to(struct explorer *w, uint64_t target, const struct state *s)
{
    struct text *text = w->text;
    if (!text_holds(text, target)) {
        w->returns = true;
        return;
    }
    uint32_t at = (uint32_t)(target - text->code.address);
    if (is_tail_call(w, at, s)) {
        w->confirmed = w->confirmed || text_is_start(text, at);
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

/* Whether control comes back after the call. */
static bool comes_back(struct explorer *w, const struct step *step, uint32_t next)
{
    struct text *text = w->text;
    if (next >= text->code.len || text->marks[next] & MARK_DEAD) {
        return false;
    }
    if (step->has_target && (step->through_pointer || !text_holds(text, step->target))) {
        return text_callee_returns(text, step->target, next);
    }
    return !step->has_target ||
           (text->marks[step->target - text->code.address] & MARK_NO_RETURN) == 0;
}

static void note_jump(struct explorer *w, uint32_t after, const struct state *s)
{
    if (w->jumps.len + w->text->jumps.len >= TEXT_JUMPS_MAX) {
        return;
    }
    struct state *state = vec_push(&w->jump_states);
    if (state != NULL) {
        *state = *s;
    }
    w->text->failed = state == NULL || w->text->failed;
    note(w, &w->jumps, after);
}

/* Follows what the instruction at `at` does; true when the next one is reached by it. */
static bool follow(struct explorer *w, uint32_t at, struct state *s, const struct step *step)
{
    switch (step->flow) {
    case FLOW_CALL:
        if (step->has_target && !step->through_pointer && text_holds(w->text, step->target)) {
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
    case FLOW_INDIRECT: /* with a stack pointer from elsewhere it is longjmp's */
        w->returns = w->returns || s->reg[arch_sp_number].kind != VALUE_UNKNOWN;
        note_jump(w, at + step->len, s);
        return false;
    case FLOW_TRAP:
        w->confirmed = w->confirmed || s->signal;
        return false;
    default:
        return true;
    }
}

static void see(struct explorer *w, uint32_t number, uint32_t at, uint32_t len)
{
    struct seen *seen = vec_push(&w->seen);
    if (seen == NULL) {
        w->text->failed = true;
        return;
    }
    *seen = (struct seen){at, w->rule, (uint8_t)len};
    w->leaders.at[number].seen_count++;
}

/* A plain instruction: whether what is known about the frame may have become less. */
static bool step_by_note(const struct text *text, uint32_t at, struct state *s, struct step *step)
{
    uint32_t note = text->notes[at];
    bool less = false;
    *step = (struct step){.len = note >> PLAIN_REGISTERS, .flow = FLOW_NEXT};
    s->compared = 0;
    for (uint32_t left = note & ((1u << PLAIN_REGISTERS) - 1); left != 0; left &= left - 1) {
        struct value *value = &s->reg[__builtin_ctz(left)];
        less = less || value->kind != VALUE_UNKNOWN;
        *value = (struct value){0};
    }
    return less;
}

/* The rule that holds before the instruction at `at`. */
static void tell_rule(struct explorer *w, struct state *s)
{
    if (w->stale && !w->text->discovering) {
        struct unwind_rule rule = text_rule(w->text, s);
        w->rule = text_rule_number(w->text, &rule);
    }
    w->stale = false;
}

/* False: the walk cannot stand here. */
static bool step_in_block(struct explorer *w, uint32_t number, uint32_t at, struct state *s,
                          struct step *step)
{
    const struct code *code = &w->text->code;
    if (w->steps_left == 0) {
        return false;
    }
    w->steps_left--;
    if (text_has_note(w->text, at)) {
        tell_rule(w, s);
        w->stale = step_by_note(w->text, at, s, step);
    } else {
        arch_look_ahead(code->bytes + at, code->len - at, s);
        w->stale = true;
        tell_rule(w, s);
        if (!arch_step(code->bytes + at, code->len - at, code->address + at, s, step)) {
            return false;
        }
        w->stale = true;
    }
    if (!w->text->discovering) {
        see(w, number, at, step->len);
    }
    return true;
}

/* What stands where a function would may rely on a callee that was followed to its end. */
static bool is_doubtful(const struct explorer *w, const struct step *step)
{
    const struct text *text = w->text;
    bool inside = step->has_target && !step->through_pointer && text_holds(text, step->target);
    return !w->assumed || w->start % FUNCTION_ALIGNMENT != 0 || !inside ||
           (text->marks[step->target - text->code.address] & MARK_EXPLORED) == 0;
}

/* Padding after a call, and no branch leads to what it aligns: that is another function. A single
 * byte may also be what compilers that do not optimise leave there. Without padding only a walk
 * that has led to a contradiction otherwise takes an aligned address for a function. */
static bool begins_another(const struct explorer *w, uint32_t at, uint32_t after)
{
    const struct text *text = w->text;
    return after != 0 && at % FUNCTION_ALIGNMENT == 0 &&
           (text->marks[at] & MARK_TARGET) == 0 &&
           (at > after + arch_code_alignment || (w->strict && at > after) ||
            ((w->strict || at > after) &&
             arch_looks_like_start(text->code.bytes + at, text->code.len - at)));
}

/* An assumption is given up at the first contradiction. */
static bool is_refuted(const struct explorer *w)
{
    return w->assumed && w->contradicted;
}

static void walk_block(struct explorer *w, uint32_t number)
{
    struct text *text = w->text;
    struct state s = w->leaders.at[number].state;
    uint32_t at = w->leaders.at[number].at, after = w->leaders.at[number].after;
    bool first = true, on = true;
    w->leaders.at[number].queued = false;
    w->leaders.at[number].first_seen = (uint32_t)w->seen.len;
    w->leaders.at[number].seen_count = 0;
    w->stale = true;
    while (on && !w->restart && !text->failed && !is_refuted(w)) {
        struct step step;
        if (at >= text->code.len || (!first && !goes_on(w, at, &s, after))) {
            return;
        }
        if (begins_another(w, at, after)) {
            text_note_dead(w->text, after);
            return;
        }
        if (!first && text->marks[at] & (MARK_TARGET | MARK_BEGUN)) {
            join(w, at, &s, after);
            return;
        }
        if (!step_in_block(w, number, at, &s, &step)) {
            w->cut = w->contradicted = true;
            if (after != 0) {
                text_note_dead(w->text, after);
            }
            return;
        }
        on = follow(w, at, &s, &step);
        at += step.len;
        bool calls = step.flow == FLOW_CALL && is_doubtful(w, &step);
        after = calls ? at : step.padding ? after : 0;
        first = false;
    }
}

/* A symbol is no function's start when code runs or jumps to it out of a frame: a label, or the
 * part of a function that its compiler moved away. */
static void publish_labels(struct explorer *w)
{
    struct text *text = w->text;
    if (w->broken) {
        return; /* this walk itself was wrong somewhere */
    }
    vec_each(&w->labels, label) {
        text->misled = text->misled || (text->marks[*label] & MARK_START) != 0;
        text_unmark(text, *label, MARK_START | MARK_TAILED);
    }
}

static void publish_starts(struct explorer *w, const struct offsets *starts, enum mark mark)
{
    vec_each(starts, start) {
        text_mark(w->text, *start, mark);
        text_queue(w->text, *start);
    }
}

static void publish_jumps(struct explorer *w)
{
    for (size_t i = 0; i < w->jumps.len; i++) {
        text_add_jump(w->text, w->jumps.at[i], &w->jump_states.at[i]);
    }
}

static void publish_return(struct explorer *w)
{
    if (!w->returns && !w->cut && !w->clash && !w->assumed) {
        w->text->marks[w->start] |= MARK_NO_RETURN;
    } else {
        w->text->marks[w->start] &= (uint16_t)~MARK_NO_RETURN;
    }
}

static void publish(struct explorer *w)
{
    publish_labels(w);
    publish_starts(w, &w->called, MARK_CALLED);
    publish_starts(w, &w->tailed, MARK_TAILED);
    publish_jumps(w);
    publish_return(w);
    w->text->given_up += w->cut || w->clash || w->contradicted;
}

static void put_function(const struct explorer *w)
{
    vec_each(&w->leaders, leader) {
        for (uint32_t i = 0; i < leader->seen_count; i++) {
            const struct seen *seen = &w->seen.at[leader->first_seen + i];
            text_put(w->text, seen->at, seen->len, seen->rule);
        }
    }
}

static void explore(struct explorer *w, const struct state *state)
{
    for (int tries = 0; tries < RESTARTS_MAX; tries++) {
        struct state first = *state;
        first.no_end = w->no_end;
        clear(w);
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

static bool is_kept(const struct explorer *w)
{
    return !w->text->failed && (w->evidence == EVIDENCE_START || !w->contradicted) &&
           (w->evidence <= EVIDENCE_HINT || w->confirmed);
}

static void explore_within(struct explorer *w, const struct state *state, size_t most)
{
    uint64_t *left = &w->text->steps_left;
    size_t allowed = *left < most ? (size_t)*left : most;
    w->steps_left = allowed;
    explore(w, state);
    if (w->broken && !w->assumed) {
        w->strict = true;
        explore(w, state);
    }
    size_t used = allowed - w->steps_left;
    used += w->assumed ? GUESS_COST : 0;
    *left -= used < *left ? used : *left;
}

bool explorer_run(struct explorer *w, uint32_t start, const struct state *state,
                  enum evidence evidence)
{
    struct text *text = w->text;
    w->start = start;
    w->next_start = text_next_start(text, start + 1, (uint64_t)start + FUNCTION_REACH);
    w->evidence = evidence;
    w->assumed = evidence != EVIDENCE_START;
    w->no_end = w->strict = false;
    explore_within(w, state, w->assumed ? GUESS_STEPS_MAX : FUNCTION_STEPS_MAX);
    uint32_t *function = is_kept(w) ? vec_push(&text->functions) : NULL;
    if (function == NULL) {
        text->failed = text->failed || is_kept(w);
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
