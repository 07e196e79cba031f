/*
 * dwarf: what runs in the sandbox: libdw reads one debug file and tells the inlined functions and
 * source lines of addresses.
 *
 * Concept. dwarf_work is started in a child process (base/iface.h) with a copy of its task. It opens
 * the file, lists the compile units by their code, and answers the addresses in the order they are
 * in. A unit's functions are listed when an address falls in it; within a function the way down to
 * the innermost inlined one is walked. The parent is asked for the files that the debug information
 * names: split units (.dwo, .dwp), and what dwz moved to an alternate file, which must have the
 * build id that is asked for.
 *
 * Nothing here is bounded but by the sandbox: libdw wants every section in memory (the file is
 * mapped; packed sections are unpacked), keeps what it allocates, ends the process when memory ends,
 * opens the files that the image names (here it asks for them), and in its line tables follows
 * lengths that nobody checked.
 *
 * Messages to the parent, little-endian, each with its length (32 bits, without itself) before it:
 *
 *     'A' u32 number, u8 count, then `count` times: u32 line, u16 lengths of name, linkage name and
 *         file, then these texts. Addresses are numbered from 0 and answered in this order; count
 *         0: nothing is known. Innermost function first, the one that really exists last.
 *     'O' a path: asks for a file (sandbox.give)
 *
 * Format: DWARF 2 to 5 (dwarfstd.org), GNU extensions (split units of DWARF 4, dwz).
 */
#ifndef SYMBOL_DWARF_H
#define SYMBOL_DWARF_H

#include "base/iface.h"
#include "profile/profile.h"

enum {
    DWARF_TEXT_MAX = 4000, /* longer texts are cut */
    DWARF_PATH_MAX = 4096,
    DWARF_LINE_BYTES = 4 + 3 * 2,
    DWARF_MESSAGE_MAX = 6 + PROFILE_INLINES_MAX * (DWARF_LINE_BYTES + 3 * DWARF_TEXT_MAX),
};

struct dwarf_task {
    const uint64_t *addresses; /* ELF addresses */
    size_t count;
    struct str bytes; /* the file; null: it is the first that is given */
    const char *path; /* of the program in the eyes of its process; null: not known */
};

void dwarf_work(void *task, const struct sandbox_port *port);

#endif
