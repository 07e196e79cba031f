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
    uint32_t start_line; /* where the function begins; 0: unknown (before Go 1.20) */
    uint8_t id;          /* runtime funcID (internal/abi FuncID) of tables since Go 1.18; 0: an ordinary function */
    uint64_t at;         /* the address that the line is of: for all but the innermost, the mark of the inlined call */
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
/*
 * How to go on from a frame to its caller. At a call, pass the return address itself: the stack is as it is there. The
 * return address stands at SP + delta, and behind it, at + one word, begins the caller's frame (x86-64; where calls
 * leave it in a register instead, it is at SP once the function has a frame, and SP + delta is the caller's).
 */
enum go_step_flag { GO_STEP_TOP = 1, GO_STEP_WRITES_SP = 2 }; /* of runtime._func.flag: outermost; nothing is known */

struct go_step {
    uint64_t start;   /* of the function */
    int32_t delta;    /* of the stack pointer since the function was entered, in bytes; -1: unknown */
    bool has_frames;  /* false: C or assembly without a table of its stack; the walk ends here */
    uint8_t id, flags;
};
/* False: no Go function is there. Tables since Go 1.18 only. */
bool go_table_step(struct go_table *table, uint64_t address, struct go_step *out);

/* The code of functions of package runtime by their names: those not there have limit 0. Reads the whole list once;
 * tables since Go 1.18 only. */
struct go_code {
    const char *name;
    uint64_t start, limit; /* ELF addresses */
};
void go_table_find(struct go_table *table, struct go_code *codes, size_t count);

#endif
