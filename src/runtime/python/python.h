/*
 * python: CPython 2.7 and 3.5 to 3.15, read from outside.
 *
 * Concept. A thread's frames are a list from its PyThreadState: heap objects up to 3.10, from 3.11 on
 * records on a stack of their own (the "data stack"), with shims that mark where C entered the
 * interpreter. A frame leads to a code object, and that to names, file and a table of lines.
 *
 * Where things are is a layout (layout.h): from 3.13 on the process tells it itself (_Py_DebugOffsets),
 * before that it is a row per version; both are checked against the process's own member table of
 * PyCode_Type and by walking all its threads once before anything is believed.
 *
 * Files: recognise.c (which file), ranges.c with plumbing.c (which of its code), layout.c and offsets.c (tables,
 * DebugOffsets), attach.c with head.c and members.c (where, in one process), walk*.c (frames of a thread),
 * code.c (reads code objects), names.c (what frames are called), lines.c (tables of lines), text.c (str and bytes
 * objects), generated.c (names in perf maps). What is not CPython's own is in runtime/common.
 */
#ifndef RUNTIME_PYTHON_PYTHON_H
#define RUNTIME_PYTHON_PYTHON_H

#include "runtime/runtime.h"

extern const struct runtime runtime_python;

#endif
