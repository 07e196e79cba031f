/* An address with functions inlined at it, shared by the tests of the profile and its encoders. */
#ifndef INLINED_FRAME_H
#define INLINED_FRAME_H

#include <stdarg.h>
#include <stdio.h>

#include "sample_profile.h"

/* A frame at `address`, named by (name, line) pairs innermost first, ended by NULL;
 * "/src/NAME.c" is the source file of each. */
__attribute__((unused)) static uint32_t inlined_frame(struct profile *p, uint32_t module,
                                                      uint64_t address, ...)
{
    struct source_line lines[2 * PROFILE_INLINES_MAX];
    char files[2 * PROFILE_INLINES_MAX][32];
    struct frame frame = {.module = module, .address = address};
    uint32_t id = profile_frame(p, &frame);
    size_t count = 0;
    va_list args;
    va_start(args, address);
    for (const char *name; (name = va_arg(args, const char *)) != NULL; count++) {
        snprintf(files[count], sizeof files[count], "/src/%s.c", name);
        lines[count] = (struct source_line){.name = str_of(name), .system_name = str_of(name),
                                            .file = str_of(files[count]),
                                            .line = (uint32_t)va_arg(args, int)};
    }
    va_end(args);
    if (id != 0) {
        profile_name_inlined(p, id, lines, count);
    }
    return id;
}

/* "innermost:line@file < caller:line@file …" of a frame. */
__attribute__((unused)) static const char *inlined_text(const struct profile *p, uint32_t frame)
{
    static char text[8192];
    uint32_t chain[PROFILE_INLINES_MAX];
    size_t len = 0, count = profile_expand(p, frame, chain);
    for (size_t i = 0; i < count; i++) {
        const struct frame *f = &p->frames.at[chain[i]];
        struct str name = profile_text(p, f->name), file = profile_text(p, f->file);
        len += (size_t)snprintf(text + len, sizeof text - len, "%s%.*s:%u@%.*s",
                                i > 0 ? " < " : "", (int)name.len, name.ptr, f->line,
                                (int)file.len, file.ptr);
    }
    return text;
}

#endif
