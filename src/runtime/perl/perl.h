/*
 * perl: Perl 5.28 to 5.44, read from outside.
 *
 * Concept. An interpreter keeps its calls as contexts in an array: subs, evals, loops and blocks, the leaf last. Where
 * C code calls Perl (a sort's block, an overloaded operator, DESTROY, a handler), a new array is begun, which leads
 * back to the one before it (struct stackinfo), down to that of the main program. A context holds the place (cop: line
 * and file) of what pushed it; the place of the leaf is the interpreter's own.
 *
 * A build is either threaded (Debian's): all this is in a structure, PL_curinterp points to the first interpreter's;
 * or not: then these are variables of the program.
 *
 * Files: recognise.c (which file), loop.c (which of its code), ops.c (operations), layout.c (tables), attach.c (where,
 * in one process), walk*.c (the calls of a thread), names.c (what frames are called).
 */
#ifndef RUNTIME_PERL_PERL_H
#define RUNTIME_PERL_PERL_H

#include "runtime/runtime.h"

extern const struct runtime runtime_perl;

#endif
