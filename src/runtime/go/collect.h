/*
 * collect: what a Go program has counted of its heap, its locks and its goroutines, once for each window.
 *
 * By its address where it has one (endpoint.h), else by its memory (memory.h). What grows since the program began goes
 * out as the difference to the window before (delta.h); of one that was met later the first look is only a base.
 */
#ifndef RUNTIME_GO_COLLECT_H
#define RUNTIME_GO_COLLECT_H

#include "runtime/runtime.h"

extern const struct runtime_collect go_collects;

#endif
