/*
 * jit_text: the texts of generated code, each kept once.
 *
 * A text is a name and, opaque here, the lines of its code. Runtimes announce the same function
 * again and again (new tiers, code that the collector moved), so equal texts share a place: a map
 * of 102,000 lines that node wrote had 2,500 names. Places are numbers, never 0.
 *
 * Unused texts are given back all at once: jit_text_mark every place in use, jit_texts_sweep, ask
 * jit_text_moved for each place, jit_texts_settle. Borrowed texts end with the next add or sweep.
 */
#ifndef RUNTIME_GENERATED_JIT_TEXT_H
#define RUNTIME_GENERATED_JIT_TEXT_H

#include "base/intern.h"
#include "base/str.h"
#include "base/vec.h"

struct jit_text_move {
    uint32_t from, to;
};

struct jit_texts {
    char *ptr;
    size_t len, cap;
    struct intern ids;
    VEC(struct jit_text_move) moves; /* between sweep and settle, ascending */
};

void jit_texts_release(struct jit_texts *t);
size_t jit_texts_bytes(const struct jit_texts *t);

/* Keeps a text; allocates at most `room` bytes more. 0 when that is not enough. A name has at
 * most 16,383 bytes. */
uint32_t jit_text_add(struct jit_texts *t, struct str name, struct str lines, size_t room);

struct str jit_text_name(const struct jit_texts *t, uint32_t place);
struct str jit_text_lines(const struct jit_texts *t, uint32_t place);

void jit_text_mark(struct jit_texts *t, uint32_t place);
bool jit_texts_sweep(struct jit_texts *t); /* false when memory ends: nothing has moved */
uint32_t jit_text_moved(const struct jit_texts *t, uint32_t place);
void jit_texts_settle(struct jit_texts *t);

#endif
