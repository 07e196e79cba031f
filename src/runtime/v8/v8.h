/*
 * v8: JavaScript in node and others, by the names that V8 writes of the code it generates.
 *
 *     JS:*handle file:///srv/app.js:12:5    kind, how far it was compiled (~ ^ + *),
 *     LazyCompile:~handle /srv/app.js:12    name, place; "Function:", "Script:", "Eval:"
 *                                           and "InterpretedFunction:" are the like
 *
 * They become "handle /srv/app.js:12" of kind FRAME_JS, with source file and line apart. How far V8 had compiled a
 * function is omitted: the same function is the same frame.
 */
#ifndef RUNTIME_V8_V8_H
#define RUNTIME_V8_V8_H

#include "runtime/runtime.h"

extern const struct runtime runtime_v8;

#endif
