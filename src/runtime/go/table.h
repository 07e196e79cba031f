/*
 * table: functions, lines and inlined calls of Go programs, from the table their runtime carries.
 *
 * Concept. Every Go binary, stripped or not, holds its pclntab: a sorted table of functions with
 * names, files, lines and the tree of inlined calls, because the Go runtime prints stack traces
 * from it. It is found by its section (.gopclntab, .data.rel.ro.gopclntab). An external linker may
 * have put it elsewhere (.data.rel.ro of a position-independent program): then, if sections show
 * that there is Go in the file, or there are none, it is searched for by its first bytes. Read on
 * demand through the ELF reader in blocks of 1 KiB, of which 32 stay at hand.
 *
 * Call order. go_table_open; go_table_lookup per address; go_table_release. One thread per table.
 *
 * Versions: those of Go 1.2, 1.16, 1.18 and 1.20, the last one being that of Go 1.26. An unknown
 * one is ERR_UNSUPPORTED by number. An image that is not Go's, or without its table (a debug file),
 * is ERR_GONE ("not a Go program"). Inlined calls are in the table since Go 1.9.
 *
 * What stands outside of the table. Since Go 1.18 addresses are relative to the start of Go's text
 * and inline trees to "go:func.*"; runtime.moduledata has both (Go 1.26 no longer has the first in
 * the table's header). It is found by its pointers into the table, through relocations where the
 * linker left 0 in the file, and taken when what it leads to makes sense. Without it there are
 * functions and lines, if the text's start is known from the header, the symbol runtime.text, or
 * because the program's entry then is a Go function; inlined calls are missing.
 *
 * Limits. Every offset and count is checked against the section; chains of inlining end at
 * PROFILE_INLINES_MAX, the last frame being the function that exists; names are cut at 4096 bytes.
 * A damaged table gives a miss or less of an answer, counted in go_table.damaged, never a crash.
 *
 * Names are as they stand in the table: "slices.SortFunc[go.shape.int]" has its type arguments
 * (Go's own tools print "[...]"), dots in the last element of a package path are "%2e". Between
 * functions is padding, which counts to the one before it, without a file and line.
 *
 * Format: Go source src/debug/gosym, src/runtime/symtab.go, src/internal/abi/symtab.go.
 */
#ifndef RUNTIME_GO_TABLE_H
#define RUNTIME_GO_TABLE_H

#include "elf/elf.h"
#include "profile/profile.h"

struct go_table;

struct go_frame {
    struct str name; /* "main.(*server).handle", "runtime.mallocgc" */
    struct str file; /* "/src/app/main.go"; "" unknown */
    uint32_t line;   /* 0: unknown. For all but the innermost, where the next inner one is called */
};

struct go_frames {
    struct go_frame at[PROFILE_INLINES_MAX]; /* innermost first; borrowed until the next look-up */
    size_t count;
    uint64_t start, limit; /* ELF addresses of the function that really exists there */
};

/* Null with `err` set when there is no usable table. `elf` is borrowed. */
struct go_table *go_table_open(struct elf *elf, struct err *err);
void go_table_release(struct go_table *table);

/* False: no Go function holds this address. For a caller pass the return address - 1. */
bool go_table_lookup(struct go_table *table, uint64_t address, struct go_frames *out);

/* Is a function of this name in the program? */
bool go_table_has(struct go_table *table, const char *name);

#endif
