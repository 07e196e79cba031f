/* Asks the readers of a process about a place, in their order, and keeps what the first one that knows it tells: its
 * functions, as frames of the profile whose texts are kept by number, and how the unwinder goes on to the caller.
 * What a process has no reader for nobody is asked about. */
#include "capture/stacks/resolve.h"

enum { WITH_TIER_MAX = 1 << 12 }; /* bytes of a name; longer ones do not tell it */

static uint32_t with_tier(struct profile *p, struct str name, const char *tier)
{
    char text[WITH_TIER_MAX];
    struct str end = str_of(tier);
    if (name.len + end.len > sizeof text) {
        return profile_string(p, name);
    }
    memcpy(text, name.ptr, name.len);
    memcpy(text + name.len, end.ptr, end.len);
    return profile_string(p, (struct str){text, name.len + end.len});
}

/* A runtime tells the same texts again and again, from the same places; what such a place has is compared. */
static uint32_t string_of(struct resolve *r, struct str text)
{
    struct resolve_text *last = &r->last[(uintptr_t)text.ptr / sizeof(uint64_t) % RESOLVE_TEXTS];
    if (last->ptr == text.ptr && last->id < r->profile->strings.len &&
        str_eq(profile_text(r->profile, last->id), text)) {
        return last->id;
    }
    *last = (struct resolve_text){text.ptr, profile_string(r->profile, text)};
    return last->id;
}

static void keep_functions(struct resolve *r, uint32_t question, const struct code_lines *lines)
{
    if (lines->count == 0 || r->count == RESOLVE_MAX || r->function_count + lines->count > RESOLVE_MAX) {
        return;
    }
    r->at[r->count++] = (struct resolved){question, (uint32_t)r->function_count, (uint32_t)lines->count};
    for (size_t i = 0; i < lines->count; i++) {
        const struct source_line *line = &lines->line[i];
        uint32_t name = r->shows_tiers && line->tier != NULL ? with_tier(r->profile, line->name, line->tier)
                                                            : string_of(r, line->name);
        bool is_same = line->system_name.ptr == line->name.ptr && line->system_name.len == line->name.len;
        r->function[r->function_count++] =
            (struct frame){.name = name,
                           .system_name = is_same ? name : profile_string(r->profile, line->system_name),
                           .file = string_of(r, line->file),
                           .line = line->line,
                           .kind = lines->kind};
    }
}

static bool take_answer(const struct runtime_caller *caller, struct unwind_answer *out)
{
    static const enum unwind_way ways[] = {
        [RUNTIME_RULE_FRAME_POINTER] = UNWIND_BY_FRAME_POINTER,
        [RUNTIME_RULE_FRAME_SIZE] = UNWIND_BY_SIZE,
        [RUNTIME_RULE_CFA] = UNWIND_BY_CFA,
        [RUNTIME_RULE_LINK_REGISTER] = UNWIND_BY_LINK_REGISTER,
    };
    *out = (struct unwind_answer){ways[caller->rule], caller->value, caller->saved_fp};
    return caller->rule != RUNTIME_RULE_NONE;
}

/* Addresses of a process: a row with open_code resolves those of files, by what that gave and not by attach's state. */
static bool resolves(const struct reader *reader)
{
    return reader->runtime != NULL && reader->runtime->resolve != NULL && reader->runtime->open_code == NULL;
}

bool resolve_ask(struct resolve *r, const struct unwind_question *question, struct unwind_answer *out)
{
    const struct runtime_registers registers = {
        .ip = question->ip, .sp = question->sp, .fp = question->fp, .all = question->registers};
    const struct runtime_place at = {question->address, &registers, question->stack};
    for (const struct reader *reader = r->target->runtime.reader; reader != NULL; reader = reader->next) {
        r->answer.lines.count = 0; /* a row may tell of the caller alone: nothing of the last answer is its own */
        r->answer.caller = (struct runtime_caller){.rule = RUNTIME_RULE_NONE};
        if (resolves(reader) && reader->runtime->resolve(reader->state, &at, &r->answer)) {
            keep_functions(r, question->number, &r->answer.lines);
            return take_answer(&r->answer.caller, out);
        }
    }
    return false;
}

bool resolve_begin(struct resolve *r, const struct target *target, struct profile *p, bool shows_tiers)
{
    const struct reader *reader = target->runtime.reader;
    r->shows_tiers = shows_tiers;
    r->count = r->function_count = 0;
    r->target = target;
    r->profile = p;
    while (reader != NULL && !resolves(reader)) {
        reader = reader->next;
    }
    return reader != NULL;
}

const struct resolved *resolve_find(const struct resolve *r, uint32_t question)
{
    /* they are in order, and mostly one behind the other */
    size_t guess = r->count > 0 && question >= r->at[0].question ? question - r->at[0].question : 0;
    for (size_t low = 0, high = r->count; low < high;) {
        size_t middle = guess >= low && guess < high ? guess : low + (high - low) / 2;
        if (r->at[middle].question == question) {
            return &r->at[middle];
        }
        *(r->at[middle].question < question ? &low : &high) = middle + (r->at[middle].question < question);
    }
    return NULL;
}
