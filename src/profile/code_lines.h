/*
 * code_lines: what stands at an address of code that brings its own names: functions and lines.
 *
 * Between who knows such code (runtimes: a table in a file, generated code, a process's own structures) and who
 * names frames (symbol's namer, capture): neither knows the other. Texts are borrowed until the next question.
 */
#ifndef PROFILE_CODE_LINES_H
#define PROFILE_CODE_LINES_H

#include "profile/profile.h"

struct code_lines {
    struct source_line line[PROFILE_INLINES_MAX]; /* inlined functions innermost first; the last one really exists */
    size_t count;
    uint8_t kind; /* enum frame_kind: what these frames become */
};

struct code_source {
    /* False: nothing is known of this address. For a caller pass the return address - 1. */
    bool (*find)(void *context, uint64_t address, struct code_lines *out); /* null: there is no such source */
    void (*close)(void *context); /* may be null */
    void *context;
};

static inline bool code_source_find(const struct code_source *s, uint64_t address, struct code_lines *out)
{
    return s->find != NULL && s->find(s->context, address, out) && out->count > 0;
}

static inline void code_source_close(struct code_source *s)
{
    if (s->close != NULL) {
        s->close(s->context);
    }
    *s = (struct code_source){0};
}

#endif
