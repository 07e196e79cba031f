/*
 * ruby: Ruby (the C implementation) 2.3 to 4.0, read from outside.
 *
 * Concept. Each thread, and each fiber, has a stack of its own in memory: control frames grow down from its end, their
 * values up from its start. A control frame leads to an instruction sequence, and its environment (among the values,
 * or on the heap when a block outlives its method) says what kind of frame it is (up to 2.3 the frame itself does) and
 * to which method it belongs. C functions that Ruby calls have frames as well. Up to 2.4 a thread has no execution
 * context: the stack's fields stand in it.
 *
 * Where things are is a row per version (layout.c). It is believed after the virtual machine, its ractors, threads and
 * their stacks were found to point at each other as they must.
 *
 * Files: recognise.c (which file), loop.c (which of its code), layout.c (tables), attach.c (where, in one process),
 * walk*.c (frames of a thread), thread.c (a thread by its number), names.c (what frames are called), object.c
 * (strings, arrays, classes, numbers of names), lines.c (tables of lines).
 */
#ifndef RUNTIME_RUBY_RUBY_H
#define RUNTIME_RUBY_RUBY_H

#include "runtime/runtime.h"

extern const struct runtime runtime_ruby;

#endif
