#include "capture/stacks/resolve.h"

static void keep_functions(struct resolve *r, uint64_t address, const struct code_lines *lines)
{
    if (r->count == RESOLVE_MAX || r->function_count + lines->count > RESOLVE_MAX) {
        return;
    }
    r->at[r->count++] = (struct resolved){address, r->function_count, lines->count};
    for (size_t i = 0; i < lines->count; i++) {
        const struct source_line *line = &lines->line[i];
        r->function[r->function_count++] =
            (struct frame){.name = profile_string(r->profile, line->name),
                           .system_name = profile_string(r->profile, line->system_name),
                           .file = profile_string(r->profile, line->file),
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
    };
    *out = (struct unwind_answer){ways[caller->rule], caller->value, caller->saved_fp};
    return caller->rule != RUNTIME_RULE_NONE;
}

bool resolve_ask(struct resolve *r, const struct unwind_question *question, struct unwind_answer *out)
{
    const struct runtime_registers registers = {.ip = question->ip, .sp = question->sp, .fp = question->fp};
    const struct runtime_place at = {question->address, &registers, r->memory};
    for (const struct reader *reader = r->target->runtime.reader; reader != NULL; reader = reader->next) {
        r->answer.lines.count = 0; /* a row may tell of the caller alone: nothing of the last answer is its own */
        r->answer.caller = (struct runtime_caller){.rule = RUNTIME_RULE_NONE};
        if (reader->runtime != NULL && reader->runtime->resolve != NULL &&
            reader->runtime->resolve(reader->state, &at, &r->answer)) {
            keep_functions(r, question->address, &r->answer.lines);
            return take_answer(&r->answer.caller, out);
        }
    }
    return false;
}

bool resolve_begin(struct resolve *r, const struct target *target, struct profile *p,
                   const struct memory_reader *memory)
{
    const struct reader *reader = target->runtime.reader;
    r->count = r->function_count = 0;
    r->target = target;
    r->profile = p;
    r->memory = memory;
    while (reader != NULL && (reader->runtime == NULL || reader->runtime->resolve == NULL)) {
        reader = reader->next;
    }
    return reader != NULL;
}

const struct resolved *resolve_find(const struct resolve *r, uint64_t address)
{
    for (size_t i = 0; i < r->count; i++) {
        if (r->at[i].address == address && r->at[i].count > 0) {
            return &r->at[i];
        }
    }
    return NULL;
}
