/*
 * golang: functions, lines and inlined calls of Go programs, from the table their runtime carries.
 *
 * Concept. Every Go binary, stripped or not, holds its pclntab: a sorted table of functions with names,
 * files, lines and the tree of inlined calls, because the Go runtime prints stack traces from it. It is
 * found by its section (.gopclntab, .data.rel.ro.gopclntab) or, in a file without sections, by its
 * magic number in the read-only data. Read on demand through the ELF reader; nothing but the headers
 * is kept.
 *
 * Call order. go_table_open; go_table_lookup per address; go_table_release.
 *
 * Versions: 1.2, 1.16, 1.18, 1.20 and later (all magics known to Go 1.26). Unknown ones are
 * ERR_UNSUPPORTED by number. An image that is not Go's is ERR_GONE ("not a Go program").
 *
 * Limits. Every offset and count is checked against the section; chains of inlining end at
 * PROFILE_INLINES_MAX; a damaged table gives a miss, counted in `damaged`, never a crash.
 *
 * Format: Go source src/debug/gosym, src/runtime/symtab.go, src/internal/abi/symtab.go.
 */
#ifndef SYMBOL_GOLANG_H
#define SYMBOL_GOLANG_H

#include "elf/elf.h"
#include "profile/profile.h"

struct go_table;

struct go_frame {
    struct str name; /* "main.(*server).handle", "runtime.mallocgc" */
    struct str file; /* "/src/app/main.go" */
    uint32_t line;
};

struct go_frames {
    struct go_frame at[PROFILE_INLINES_MAX]; /* innermost first; borrowed until the next look-up */
    size_t count;
    uint64_t start, limit; /* ELF addresses of the function that really exists there */
};

/* Null with `err` set when there is no usable table. `elf` is borrowed. */
struct go_table *go_table_open(struct elf *elf, struct err *err);
void go_table_release(struct go_table *table);

/* False: no Go function holds this address. */
bool go_table_lookup(struct go_table *table, uint64_t address, struct go_frames *out);

/* Bytes between SP and the return address at this instruction (the frame's size there), by the table's
 * SP deltas: exact also where frame pointers are not, in prologues and leaves. False: unknown. */
bool go_table_sp_delta(struct go_table *table, uint64_t address, int32_t *bytes);

/* "go1.22.1" from the build info, "" unknown. Borrowed. */
struct str go_table_version(const struct go_table *table);
uint64_t go_table_damaged(const struct go_table *table);

#endif
