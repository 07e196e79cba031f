/*
 * php: PHP 7.1 to 8.6, read from outside.
 *
 * Concept. A function that runs has a frame (execute_data), and frames are a list from the one that runs to the
 * script's. Most lie in one page of the VM stack, older ones below younger ones; a generator's lies on the heap. A
 * frame leads to its function, which is written in PHP ("user") or in C ("internal"), and a user's frame to the
 * instruction that it called something by. All are reached from one variable, executor_globals, which programs and
 * libraries export because extensions need it.
 *
 * Builds for threads (ZTS) have these globals once for each thread, in a table that has no name: it is known by what
 * its entries lead to.
 *
 * Where things are is a row per version (layout.c). It is believed after a stack, or where there is none the page for
 * one, was found to be as it must.
 *
 * Files: recognise.c (which file, and which of its code), layout.c (tables), attach.c (where, in one process), walk*.c
 * (frames of a thread), names.c (what frames are called).
 */
#ifndef RUNTIME_PHP_PHP_H
#define RUNTIME_PHP_PHP_H

#include "runtime/runtime.h"

extern const struct runtime runtime_php;

#endif
