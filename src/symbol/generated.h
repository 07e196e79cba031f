/*
 * generated: what a runtime calls the code it generates, as people call the function.
 *
 * Perf maps and jitdumps hold names in each runtime's own manner:
 *
 *     V8        JS:*handle file:///srv/app.js:12:5    kind, how far it was compiled (~ ^ + *),
 *               LazyCompile:~handle /srv/app.js:12    name, place; "Function:", "Script:", "Eval:"
 *                                                     and "InterpretedFunction:" are the like
 *     CPython   py::Server.handle:/srv/app.py         trampolines of -X perf
 *
 * They become "handle /srv/app.js:12" of kind FRAME_JS and "Server.handle (/srv/app.py)" of kind
 * FRAME_PYTHON, with their source file and line apart. How far V8 had compiled a function is left
 * out: the same function is the same frame. What V8 calls "Builtin:", "BytecodeHandler:", "RegExp:"
 * …, and all names of other runtimes, stay as they are and are FRAME_NATIVE.
 */
#ifndef SYMBOL_GENERATED_H
#define SYMBOL_GENERATED_H

#include "profile/profile.h"

struct generated {
    enum frame_kind kind;
    struct str file; /* part of the raw name; "" unknown */
    uint32_t line;
};

/* Appends the name for people of `raw` to `out`. */
struct generated generated_name(struct str raw, struct buf *out);

#endif
