/*
 * go: Go programs. Their code is native; names, lines and inlined calls come from the table that each file
 * carries (table.h); the labels of what they work on from memory (walk.h); profiles that they make from their address
 * or memory (collect.h).
 */
#ifndef RUNTIME_GO_GO_H
#define RUNTIME_GO_GO_H

#include "runtime/runtime.h"

extern const struct runtime runtime_go;

/* version.c: "go 1.24.4"; since Go 1.18. */
bool go_version(struct elf *elf, struct buf *out);

#endif
