/*
 * inlines: which functions were inlined at an address, and the source lines, from debug information.
 *
 * Concept. libdw reads the debug file, in a child process (dwarf.h), because it can be made to
 * crash, to loop and to allocate without end. inlines_start opens a child for one file and hands it
 * all addresses of a window; inlines_lookup takes the answers in their order while the child works
 * on the next. An answer is the chain of inlined functions innermost first, each with the file and
 * line where it is in it, the last one being the function that really exists; it may be without a
 * name: assembler code has lines only.
 *
 * What the child sends is hostile: lengths and numbers are checked, texts are bounded (DWARF_TEXT_MAX)
 * and have no NUL, answers come in order. Anything else ends it. Where it asks for a file that the
 * debug information names, it gets the one that struct debug_source finds below the process's root,
 * if that is an ELF file with debug sections, and no other.
 *
 * Call order. inlines_start; inlines_lookup for each address, in the order given; inlines_end.
 * `files`, `debug` and the addresses stay the caller's until then.
 *
 * When it ends early. What was answered holds. After the deadline the rest is late: it may be asked
 * again. INLINES_FAILED says that the file is not worth another try: the child crashed, ran out of
 * memory, sent what is malformed, or had half of `budget_ns` and did not answer. INLINES_REFUSED says that this
 * system allows no such child.
 *
 * Split units (.dwo) that are nowhere leave their functions without lines of their own; the first is named at the end.
 *
 * Costs. A fork, one pass over the units' first entries (about 1 KB each), and the units that hold
 * addresses; processor time of the child counts as ours (clock_own_cpu_ns). In this process 64 KB.
 */
#ifndef SYMBOL_INLINES_H
#define SYMBOL_INLINES_H

#include "symbol/dwarf.h"
#include "symbol/files.h"

struct inlines_request {
    struct symbol_files *files;
    const struct debug_source *debug; /* opens what the debug information names; null: nothing */
    uint64_t image;                   /* for it */
    const struct sandbox *sandbox;
    const struct clock *clock;
    const uint64_t *addresses; /* rising, each once */
    size_t count;
    uint64_t deadline_ns, budget_ns;
};

enum inlines_end { INLINES_DONE, INLINES_LATE, INLINES_FAILED, INLINES_REFUSED };

struct inlines;

/* Null with `err` set: the image has no debug information (ERR_UNSUPPORTED), or no child can be
 * started (another kind). */
struct inlines *inlines_start(const struct inlines_request *request, struct err *err);

/* How many of `out` were filled; names are those of DWARF: linkage names (to be demangled) in
 * system_name where there are, plain ones in name. Borrowed until the next call. 0: nothing is
 * known, or, with *late set, there is no answer. */
size_t inlines_lookup(struct inlines *inlines, uint64_t address,
                      struct source_line out[static PROFILE_INLINES_MAX], bool *late);

/* Ends the child. With INLINES_FAILED and INLINES_REFUSED `err` says why, else which split unit is missing; of kind
 * ERR_NONE when none is. `err` is not null, and clear. */
enum inlines_end inlines_end(struct inlines *inlines, struct err *err);

#endif
